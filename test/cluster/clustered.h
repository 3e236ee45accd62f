/*
 * What the tests of locks in a cluster have in common: one cluster a suite, mended before each test, and a client of
 * it. Owns the cluster; the client and the handles are the fixture's.
 */
#ifndef EVLOCK_TEST_CLUSTERED_H
#define EVLOCK_TEST_CLUSTERED_H

#include "../deployment/cluster.h"
#include "../redis/harness.h"

enum { NAME_SIZE = 32 };

extern struct cluster cluster;

/* Runs the tests of one file on a cluster of their own; NULL: the usual one. */
#define run_clustered(name, tests, options)                                                                            \
    run_clustered_of((name), (tests), sizeof(tests) / sizeof((tests)[0]), (options))
int run_clustered_of(const char *name, const struct CMUnitTest *tests, size_t count,
                     const struct cluster_options *options);

/* Per-test set-up: the bare one makes no client. */
int clustered_setup(void **state);
int clustered_setup_bare(void **state);
int clustered_teardown(void **state);

#define CLUSTERED(function) cmocka_unit_test_setup_teardown(function, clustered_setup, clustered_teardown)
#define CLUSTERED_BARE(function) cmocka_unit_test_setup_teardown(function, clustered_setup_bare, clustered_teardown)

/* A handle for the name of a slot that this master had at the beginning, the `nth`; or who has taken over from it. */
evlock *lock_at(struct fixture *f, int node, int nth, const evlock_options *options);
/* The name, the slot and the node of a handle that lock_at() made. */
const char *name_of(const evlock *lock);
int slot_of(const evlock *lock);
int owner_of(const evlock *lock);
/* Another master than the one that has it. */
int other_than(int node);

/* Whether the lock's key has its token at its master. */
bool is_kept(const evlock *lock);

#endif
