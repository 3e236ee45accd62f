/*
 * What the tests on several servers share: up to fifteen servers a suite, a fixture over the first five of them, looks
 * at all of them at once, and every trouble that a node can be in. Owns the servers. As with the harness it is built
 * on, functions fail the running cmocka test, and nothing asserts how fast something is.
 *
 * A suite is a file with tests and `return run_quorum_suite("name", tests)`.
 */
#ifndef EVLOCK_TEST_NODES_H
#define EVLOCK_TEST_NODES_H

#include "../redis/harness.h"
#include "../urls.h"

enum {
    NODES = 5,
    MAJORITY = 3,
    LONG_TTL = 40 * 1000, /* outlives any wait of a test */
};

/* The servers; the first five run in every suite, with TCP. */
extern struct server nodes[EVLOCK_NODES_MAX];

/* Per-test set-up and clean-up: five nodes that are healthy and empty. `quorum_setup` makes a client of them, durable,
 * with which all are connected and count; the bare one makes none. */
int quorum_setup(void **state);
int quorum_setup_bare(void **state);

#define QUORUM_TEST(function) cmocka_unit_test_setup_teardown(function, quorum_setup, quorum_teardown)
#define QUORUM_TEST_BARE(function) cmocka_unit_test_setup_teardown(function, quorum_setup_bare, quorum_teardown)
int quorum_teardown(void **state);

#define run_quorum_suite(name, tests) run_quorum_suite_of((name), (tests), sizeof(tests) / sizeof((tests)[0]))
int run_quorum_suite_of(const char *name, const struct CMUnitTest *tests, size_t count);

/* --- Clients and locks -------------------------------------------------------------------------------------------- */

/* Recorded in the fixture, quick to connect again, and durable: restarted servers count at once. */
evlock_client_options durable_options(struct fixture *fixture);
/* As those, but a restarted server is excluded until `max_ttl_ms` after its start. */
evlock_client_options excluding_options(struct fixture *fixture, int64_t max_ttl_ms);
/* A client of the first `count` nodes, freed by the clean-up. NULL for `options`: durable_options(). */
evlock_client *quorum_client(struct fixture *fixture, size_t count, const evlock_client_options *options);
/* The same of any URLs. */
evlock_client *quorum_client_of(struct fixture *fixture, const char *const *urls, size_t count,
                                const evlock_client_options *options);

/* A ttl that outlives the test, tries that pause a moment only. */
evlock_options quick_options(void);
/* Those, renewed again and again. */
evlock_options renewed_options(void);
/* A lock on the fixture's client, acquired. NULL for `options`: quick_options(). */
evlock *acquired(struct fixture *fixture, const char *name, const evlock_options *options);
/* The lock "a", acquired, renewed, and on all five; its loss is recorded. */
evlock *renewed_everywhere(struct fixture *fixture, struct record *lost);

/* --- What a client knows of its nodes ----------------------------------------------------------------------------- */

evlock_node_info node_info(const evlock_client *client, size_t node);
/* Connected, and not excluded. */
bool node_counts(const evlock_client *client, size_t node);
/* How many nodes the client has. */
size_t nodes_of(const evlock_client *client);
size_t nodes_counting(const evlock_client *client);

/* --- What is on the nodes: of those that run and are not paused --------------------------------------------------- */

/* How many have the key, and how many have it with the token that the handle holds. */
size_t nodes_having(const char *key);
size_t nodes_with(const evlock *lock);
/* A holder that never heard of evlock, on nodes `from` to `to` - 1. */
void foreign_hold(const char *key, size_t from, size_t to);
/* On every node that the lease counts on, the key must live beyond the deadline that the handle believes in: fails the
 * test unless a majority of `count` nodes do. Nodes that cannot be asked are believed. */
void assert_deadline_is_backed(const evlock *lock, size_t count);

/* --- Troubles ----------------------------------------------------------------------------------------------------- */

/* One kind of trouble with a node. */
struct trouble {
    void (*inflict)(struct server *node);
    void (*mend)(struct server *node);
};

extern const struct trouble stopped;   /* SIGSTOP */
extern const struct trouble killed;    /* SIGKILL; mended without its data */
extern const struct trouble read_only; /* a replica of nobody */
extern const struct trouble full;      /* no memory for writes */

/* Saves first, so that the restarted server has what it had. */
void restart_with_data(struct server *node);
void restart_empty(struct server *node);

#endif
