/*
 * What a pair of acquire and release costs, however it goes to the servers. Their own counts say afterwards that each
 * lock was taken: their script deletes a key only where it finds the token.
 */
#ifndef EVLOCK_BENCH_PAIRS_H
#define EVLOCK_BENCH_PAIRS_H

#include <event2/event.h>

#include "locks.h"
#include "report.h"

enum {
    WARM_UP = 1000,
    PAIRS_ALONE = 8000, /* in one repetition, with one in flight, and with more */
    PAIRS = 80000,
};

/* One number a repetition. */
struct pair_costs {
    struct samples throughput, client_cpu, server_cpu, commands, bytes;
};

/* Measures what runs so many pairs, and leaves no key. */
void pairs_measure(struct keepers keepers, void (*run)(void *arg, long pairs), void *arg, long pairs,
                   struct pair_costs *costs);
/* The same of evlock, with as many in flight as there are locks, which are closed. */
void pairs_measure_locks(struct locks *locks, struct keepers keepers, long pairs, struct pair_costs *costs);
/* The same with `level` in flight, by the URL of the first server. */
void pairs_measure_evlock(struct event_base *base, size_t level, long pairs, struct pair_costs *costs);

/* evlock's beside the floor's. */
void pairs_report(size_t level, const struct pair_costs *ours, const struct pair_costs *raw);
void pairs_forget(struct pair_costs *costs);

#endif
