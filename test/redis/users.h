/*
 * Users: handles of one lock that pass it on to one another, and what the tests of that have in common. It owns
 * nothing; handles are the fixture's.
 */
#ifndef EVLOCK_TEST_USERS_H
#define EVLOCK_TEST_USERS_H

#include "harness.h"

/* Options of a handle that passes on, so often in a row: one that polls, and one that waits in the queue. */
evlock_options passing(int64_t passes);
evlock_options passing_in_queue(int64_t passes);

/* A handle that acquires. */
struct user {
    evlock *lock;
    struct record record;
    struct record released;
};

/* Handles of the fixture's client. */
void make_named(struct fixture *f, struct user *users, int count, const char *name, const evlock_options *options);
/* Those of the lock "a". */
void make(struct fixture *f, struct user *users, int count, const evlock_options *options);

void acquire(struct user *user);
void acquire_for(struct user *user, int64_t ms);
void release(struct user *user);
void await_held(struct fixture *f, struct user *user);

/* The first holds, and the others wait, in order. */
void crowd(struct fixture *f, struct user *users, int count, const evlock_options *options);

/* How many of the fixture's client were passed a lease. */
uint64_t passed(const struct fixture *f);

#endif
