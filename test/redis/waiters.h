/*
 * Waiters: what the tests of the wait queue have in common. The lock is "a", but where a name is given. It owns
 * nothing; handles are the fixture's.
 */
#ifndef EVLOCK_TEST_WAITERS_H
#define EVLOCK_TEST_WAITERS_H

#include "harness.h"

#define QUEUE "{a}:queue"

/* Options of a handle that waits in the queue: one that looks often, and one that looks so seldom that nothing is found
 * by a look while a test goes well. */
evlock_options queueing(int64_t ttl_ms);
evlock_options patient(int64_t ttl_ms);

/* How many wait. */
long long waiting(struct fixture *f);

/* A handle that holds the lock; one that waits for it behind all that are there. */
evlock *held(struct fixture *f, const char *name, const evlock_options *options);
evlock *joins(struct fixture *f, evlock_client *client, const evlock_options *options, struct record *record);

/* Nothing is left on the server, once what goes on in the background is done; the handles are freed for that. */
void leaves_nothing(struct fixture *f);

#endif
