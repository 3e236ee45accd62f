/*
 * Many leases of the floor: as locks.h has evlock's, a connection and leases that are acquired and released all
 * together. It owns the connection and the leases.
 */
#ifndef EVLOCK_BENCH_LEASES_H
#define EVLOCK_BENCH_LEASES_H

#include "floor.h"

struct leases {
    struct event_base *base;
    redisAsyncContext *connection; /* to the first server */
    struct lease *at;              /* of the keys 0, 1, 2 … */
    size_t count;
    size_t next;
    size_t left;
};

void leases_open(struct leases *leases, struct event_base *base, size_t count);
void leases_close(struct leases *leases);

void leases_acquire_all(struct leases *leases);
void leases_release_all(struct leases *leases);

/* Ends the benchmark unless the first server has every lease's key and no others, and some leases' tokens. */
void leases_check_held(const struct leases *leases);

#endif
