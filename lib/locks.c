/* What all locks of a client share; see locks.h. */
#include "locks.h"

#include "check.h"
#include "memory.h"

void evl_locks_init(struct locks *locks, const struct listener_hooks *listener_hooks, void (*passed)(struct call *call),
                    size_t call_size, unsigned kept) {
    TAILQ_INIT(&locks->pending);
    TAILQ_INIT(&locks->running);
    TAILQ_INIT(&locks->done);
    STAILQ_INIT(&locks->noticed);
    STAILQ_INIT(&locks->announced);
    evl_slabs_init(&locks->calls, call_size, kept);
    locks->listener_hooks = listener_hooks;
    locks->cohorts.passed = passed;
    locks->phase = evl_turn_random(&evl_locks_deployment(locks)->turn);
    locks->open = true;
}

void evl_locks_free(struct locks *locks) {
    evl_config_unref(locks->last_config);
    evl_fences_free(&locks->fences);
    evl_slabs_free(&locks->calls);
    assert(locks->cohorts.count == 0);
    evl_free(locks->cohorts.places);
}

/* It reads nothing that changes while the client lives, since it may be another thread that asks. */
struct trouble evl_locks_validate_caller(const struct locks *locks) {
    if (evl_turn_forked(&locks->tenures.deployment.turn))
        return (struct trouble){EVLOCK_EFORKED, "the client belongs to the parent process: a child makes its own"};
    if (!evl_turn_in_thread(&locks->tenures.deployment.turn))
        return (struct trouble){EVLOCK_ETHREAD,
                                "the client belongs to another thread: hand it the call by evlock_client_post()"};
    return evl_no_trouble;
}

struct trouble evl_locks_validate(const struct locks *locks) {
    struct trouble trouble = evl_locks_validate_caller(locks);

    if (trouble.status == EVLOCK_OK && !locks->open)
        trouble = (struct trouble){EVLOCK_ECLOSED, "the client is closing"};
    return trouble;
}

static void locks_enlist(struct handles *handles, struct evlock *lock) {
    if (lock->noticed)
        return;
    STAILQ_INSERT_TAIL(handles, lock, notice);
    lock->noticed = true;
    evl_handle_ref(lock);
}

static bool locks_have(const struct handles *handles, const struct evlock *lock) {
    const struct evlock *other;

    STAILQ_FOREACH (other, handles, notice)
        if (other == lock)
            return true;
    return false;
}

static void locks_take_out(struct handles *handles, struct evlock *lock) {
    STAILQ_REMOVE(handles, lock, evlock, notice);
}

void evl_locks_notice(struct locks *locks, struct evlock *lock, bool first) {
    if (first && lock->noticed && locks_have(&locks->announced, lock)) {
        locks_take_out(&locks->announced, lock);
        STAILQ_INSERT_TAIL(&locks->noticed, lock, notice);
    }
    locks_enlist(&locks->noticed, lock);
}

void evl_locks_announce(struct locks *locks, struct evlock *lock) {
    locks_enlist(&locks->announced, lock);
}

struct evlock *evl_locks_next(struct handles *handles) {
    struct evlock *lock = STAILQ_FIRST(handles);

    if (!lock)
        return NULL;
    assert(lock->noticed);
    STAILQ_REMOVE_HEAD(handles, notice);
    lock->noticed = false;
    return lock;
}

void evl_locks_drop_handles(struct locks *locks) {
    struct config *config;
    struct evlock *lock;

    while ((lock = evl_locks_next(&locks->noticed)) || (lock = evl_locks_next(&locks->announced)))
        evl_handle_unref(lock);
    while ((config = LIST_FIRST(&locks->configs))) {
        LIST_REMOVE(config, link);
        config->deployment = NULL;
    }
}
