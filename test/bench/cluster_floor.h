/*
 * The floor in a cluster: the floor's commands over one connection to each master. Who has which slot is asked once,
 * and the slot of a key is reckoned for each command. Nothing is asked for twice, and nobody is followed elsewhere. It
 * owns the connections and the leases. What fails ends the benchmark.
 */
#ifndef EVLOCK_BENCH_CLUSTER_FLOOR_H
#define EVLOCK_BENCH_CLUSTER_FLOOR_H

#include <event2/event.h>

#include "servers.h"

struct cluster_floor;

/* Connects to all masters, for `level` pairs in flight. */
struct cluster_floor *cluster_floor_open(struct event_base *base, struct keepers masters, size_t level);
void cluster_floor_close(struct cluster_floor *floor);

/* Runs so many pairs. */
void cluster_floor_run(void *floor, long pairs);

#endif
