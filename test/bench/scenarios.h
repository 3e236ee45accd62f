/* The scenarios: each measures one thing, reports it, and ends the benchmark if what it measured was not so. */
#ifndef EVLOCK_BENCH_SCENARIOS_H
#define EVLOCK_BENCH_SCENARIOS_H

#include <stdbool.h>

/* `quick`: fewer repetitions and shorter ones, for rough figures. */
void memory_run(bool quick);
void latency_run(bool quick);
void pairs_run(bool quick);
void queue_run(bool quick);
void passing_run(bool quick);
void quorum_run(bool quick);
void growth_run(bool quick);
void herd_run(bool quick);
void renewal_run(bool quick);
void silence_run(bool quick);
void cluster_run(bool quick);
void tls_run(bool quick);

#endif
