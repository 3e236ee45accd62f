/*
 * What all locks of a client share: the lists of calls, the notices, the handles' options, the fences that were seen,
 * and the listeners for grants. It owns these, but not the handles, which are their users' and outlive it. It decides
 * nothing about a lock.
 */
#ifndef EVL_LOCKS_H
#define EVL_LOCKS_H

#include "fences.h"
#include "listener.h"
#include "slab.h"
#include "tenure.h"

LIST_HEAD(configs, config);
TAILQ_HEAD(calls, call);

LIST_HEAD(cohort_list, cohort);

/* The cohorts of a client, by key. They tell whoever a lease is passed on to. */
struct cohorts {
    struct cohort_list *places; /* as many as a power of two; NULL: there was none yet */
    size_t size, count;
    void (*passed)(struct call *call);
};

struct locks {
    struct tenures tenures;
    struct calls pending;       /* oldest first */
    struct calls running;       /* those of runs whose bodies are at work, oldest first */
    struct calls done;          /* to be reported, in order */
    unsigned passed;            /* of these, those to whom a lease was passed on */
    struct slabs calls;         /* their memory */
    struct cohorts cohorts;     /* who waits together, and may have a lease from another */
    struct handles noticed;     /* those with a loss or a risk to be reported; each has one more reference, */
    struct handles announced;   /* as have those of which a hold has news */
    struct configs configs;     /* of its handles */
    struct config *last_config; /* of the newest handle: the next one often wants the same */
    struct fences fences;
    const struct listener_hooks *listener_hooks; /* of those for grants, which lie with the nodes */
    uint64_t phase; /* of its renewals: another than those of clients that share the clock */
    bool open;      /* calls may be made */
};

_Static_assert(offsetof(struct locks, tenures) == 0, "a handle whose deployment is gone has none of this");

/* Of a handle; NULL once its client is gone. */
static inline struct locks *evl_locks_of(const struct evlock *lock) {
    return EVL_OWNER(struct locks, tenures.deployment, lock->config->deployment);
}

static inline struct deployment *evl_locks_deployment(struct locks *locks) {
    return &locks->tenures.deployment;
}

/* Of what users hand in as a client, which begins with them: all that is known of that here. */
static inline struct locks *evl_locks_of_client(struct evlock_client *client) {
    return (struct locks *)(void *)client;
}

/* Sets them up on tenures that are set up: so many calls, of this size, have memory that is kept. `passed` hears of
 * each lease that is passed on to a call. */
void evl_locks_init(struct locks *locks, const struct listener_hooks *listener_hooks, void (*passed)(struct call *call),
                    size_t call_size, unsigned kept);

/* Frees what they own, but for their own memory. */
void evl_locks_free(struct locks *locks);

/* Whether the caller may call: EVLOCK_OK, EVLOCK_EFORKED or EVLOCK_ETHREAD. */
struct trouble evl_locks_validate_caller(const struct locks *locks);

/* Whether calls may be made: as above, or EVLOCK_ECLOSED. */
struct trouble evl_locks_validate(const struct locks *locks);

/* Something is to be reported of this handle that is no end of a call. `first`: nothing of the sort was before; then it
 * also goes ahead of a hold's news. */
void evl_locks_notice(struct locks *locks, struct evlock *lock, bool first);

/* The hold of this handle may have news, which can wait for losses. */
void evl_locks_announce(struct locks *locks, struct evlock *lock);

/* Takes out the first of those, whose reference becomes the caller's; NULL: there is none. */
struct evlock *evl_locks_next(struct handles *handles);

/* The handles stay with their users, without a client. */
void evl_locks_drop_handles(struct locks *locks);

#endif
