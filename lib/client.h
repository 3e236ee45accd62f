/*
 * The client: a deployment and the locks on it, as one object of the user's. What is known of it is in client.c; how it
 * is made, in create.c; the one place from which users are called, in deliver.c; the two ways in which it ends, in
 * close.c. It owns everything but the handles, and decides nothing about a lock.
 */
#ifndef EVL_CLIENT_H
#define EVL_CLIENT_H

#include "lock.h"
#include "post.h"

enum client_state { CLIENT_OPEN, CLIENT_CLOSING, CLIENT_FREED };

struct evlock_client {
    struct locks locks;
    struct posts posts;
    enum client_state state;
    int told_connection; /* the last enum evlock_connection that was reported */
    bool news;           /* a node changed since */
    struct other_alarm close_alarm;
    int64_t close_by; /* the end of what it waits for */
    bool releasing;   /* the bodies of runs have ended, and what is left is waited for until then */
    bool late;        /* the close took too long */
    evlock_closed_cb closed;
    void *closed_arg;
};

_Static_assert(offsetof(struct evlock_client, locks) == 0, "the rooms below know it as its locks");

/* Asserts what must be true at the end of a turn; see check.h. */
void evl_client_check(struct evlock_client *client);

#ifdef EVL_CHECKS
/* Whether that also walks over all tenures, calls and requests: for the simulation and other tests with few of them. */
extern bool evl_checks_all;
#endif

static inline struct deployment *evl_client_deployment(struct evlock_client *client) {
    return &client->locks.tenures.deployment;
}

static inline struct turn *evl_client_turn(struct evlock_client *client) {
    return &client->locks.tenures.deployment.turn;
}

static inline struct evlock_client *evl_client_of(const struct evlock *lock) {
    return EVL_OWNER(struct evlock_client, locks, evl_locks_of(lock));
}

static inline struct evlock_client *evl_client_of_turn(const struct turn *turn) {
    return EVL_OWNER(struct evlock_client, locks.tenures.deployment.turn, turn);
}

#endif
