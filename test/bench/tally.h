/* How often evlock allocates: counts the calls of the functions that it is given to allocate with. */
#ifndef EVLOCK_BENCH_TALLY_H
#define EVLOCK_BENCH_TALLY_H

/* Before anything else of evlock. */
void tally_install(void);

double tally_allocations(void);

#endif
