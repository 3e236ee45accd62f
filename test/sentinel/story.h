/*
 * What the tests of Sentinel share: a group of servers and sentinels for each test, a lock that is held and wanted
 * while the primary changes, and the questions about where it is. Owns the group. As with the harness it is built on,
 * what cannot be done fails the running cmocka test.
 */
#ifndef EVLOCK_TEST_SENTINEL_STORY_H
#define EVLOCK_TEST_SENTINEL_STORY_H

#include "../deployment/sentinels.h"
#include "../redis/harness.h"

enum { STORY_TTL = 10 * 1000 }; /* outlives a failover */

extern struct sentinels group;

/* Per-test set-up and clean-up; the group is started by the test, since each wants another. */
int story_setup(void **state);
int story_teardown(void **state);
#define SENTINEL_TEST(function) cmocka_unit_test_setup_teardown(function, story_setup, story_teardown)
#define run_sentinel_suite(name, tests) run_suite_with((name), (tests), sizeof(tests) / sizeof((tests)[0]), NULL, NULL)

/* A client of the group's sentinels that comes back soon; NULL for `url`: all of them. */
evlock_client_options story_options(struct fixture *fixture);
evlock_client *story_client(struct fixture *fixture, const char *url);

/* The lock "a": held, renewed every tenth of a second, and wanted by another client. */
struct story {
    evlock *holder;
    evlock *contender;
    struct record lost;
    struct record granted;
};

/* It is held, and on all replicas; the other waits. NULL for `url`: all sentinels. */
void story_begin(struct fixture *fixture, struct story *story, const char *url);
/* Waits for another primary than `old`, and that the holder's renewals arrive there; it was never lost, and nobody else
 * had it. Returns which. */
int story_goes_on(struct fixture *fixture, struct story *story, int old);
/* The holder releases it, and the other has it, on that server. */
void story_end(struct fixture *fixture, struct story *story, int primary);

/* Waits for another primary than `old` while the loop runs; returns which. */
int other_primary(struct fixture *fixture, int old);
/* Waits until the sentinels could fail over again. */
void group_is_ready(struct fixture *fixture);
/* Every replica has heard of what the primary was told. */
void all_have_it(int primary);
/* Whether that server has the lock's key with the handle's token. */
bool has_lock(int server, const evlock *lock);
/* A lock of any options is had by this client on that server, and given back. */
void works_at(struct fixture *fixture, evlock_client *client, int server);
/* The same, when it is had there at last: what the sentinels say takes its time to come. */
void works_soon_at(struct fixture *fixture, evlock_client *client, int server);
/* The client is away for this reason, and says so in these words. */
void is_away(struct fixture *fixture, int status, const char *words);

#endif
