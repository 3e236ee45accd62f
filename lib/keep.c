/*
 * Holds: a lock that is held for ever. A hold is one call: it waits as an acquire that no trouble ends, is reported as
 * held and goes on, and is that acquire again when the lease is lost. What stands in its way comes from the acquire by
 * a hook, and what befalls the lease from the delivery by another. It owns what it remembers between two reports. It
 * never calls a user itself, and never ends by itself: a release, a cancel or the end of the handle does that.
 */
#include "acquire.h"
#include "memory.h"
#include "minmax.h"

struct keep {
    int64_t pause; /* the next one after a refusal */
    int told;      /* the last status that was reported; 0: that it is held, or nothing yet */
    int news;      /* one that is to be reported; 0: none */
};

static void keep_free(struct call *call) {
    evl_free(call->acquire.keep);
}

static const struct client_config *keep_client_of(const struct call *call) {
    return &call->lock->config->deployment->config;
}

/* --- What stands in its way --------------------------------------------------------------------------------------- */

/* As connections make them: pauses double, and are drawn from their upper half. While the server is away an attempt
 * asks nothing of it, and the connection makes the pauses. */
static int64_t keep_back_off(struct call *call, int status) {
    const struct node *trouble;
    struct keep *keep = call->acquire.keep;
    int64_t pause = evl_max(keep->pause, keep_client_of(call)->backoff_min);

    if (!evl_acquire_is_refused(status)) {
        keep->pause = 0;
        return 0;
    }
    if (evl_deployment_connection(call->lock->config->deployment, &trouble) == EVLOCK_AWAY)
        return 0;
    keep->pause = evl_min(pause * 2, keep_client_of(call)->backoff_max);
    return pause / 2 + (int64_t)(evl_turn_random(evl_handle_turn(call->lock)) % (uint64_t)(pause / 2 + 1));
}

static int64_t keep_hindered(struct call *call, int status) {
    struct keep *keep = call->acquire.keep;

    keep->news = status == keep->told ? EVLOCK_OK : status;
    if (keep->news)
        evl_locks_announce(evl_locks_of(call->lock), call->lock);
    return keep_back_off(call, status);
}

/* --- Held, and lost ----------------------------------------------------------------------------------------------- */

static void keep_goes_on(struct call *call);
static int keep_noticed(struct call *call, int lost);

static const struct call_sort keep_waits = {
    .kind = CALL_ACQUIRE,
    .count = evl_acquire_count,
    .free = keep_free,
    .hindered = keep_hindered,
    .goes_on = keep_goes_on,
    .noticed = keep_noticed,
};

static const struct call_sort keep_holds = {
    .kind = CALL_HOLD,
    .free = keep_free,
    .noticed = keep_noticed,
};

static void keep_goes_on(struct call *call) {
    *call->acquire.keep = (struct keep){.told = EVLOCK_OK};
    call->sort = &keep_holds;
    evl_call_go_on(call);
}

static void keep_acquire_again(struct call *call) {
    struct trouble trouble;

    call->sort = &keep_waits;
    evl_call_note(call, "");
    trouble = evl_acquire_endlessly(call);
    if (trouble.status != EVLOCK_OK)
        evl_acquire_failed(call, trouble);
}

static int keep_noticed(struct call *call, int lost) {
    struct keep *keep = call->acquire.keep;
    int status = lost ? lost : keep->news;

    keep->news = EVLOCK_OK;
    if (status)
        keep->told = status;
    if (lost)
        keep_acquire_again(call);
    return status;
}

/* --- The call ----------------------------------------------------------------------------------------------------- */

static struct trouble keep_validate(const struct evlock *lock, evlock_cb cb) {
    struct trouble trouble = evl_lock_validate(lock);

    if (trouble.status == EVLOCK_OK && !cb)
        return (struct trouble){EVLOCK_EINVAL, "a hold needs a callback"};
    if (trouble.status == EVLOCK_OK)
        trouble = evl_lock_validate_idle(lock);
    if (trouble.status == EVLOCK_OK && lock->config->kept.ttl && !lock->config->kept.interval)
        return (struct trouble){EVLOCK_ERENEWAL, "the lock's ttl and lead leave no time to renew it"};
    return trouble;
}

static struct call *keep_new(struct evlock *lock, evlock_cb cb, void *arg) {
    struct call *call = evl_call_new(lock, &keep_waits, arg);

    if (!call)
        return NULL;
    call->cb = cb;
    call->acquire.keep = evl_alloc(sizeof(*call->acquire.keep));
    if (call->acquire.keep)
        return call;
    evl_call_drop(call);
    return NULL;
}

int evlock_hold(evlock *lock, evlock_cb cb, void *arg) {
    struct trouble trouble = keep_validate(lock, cb);
    struct call *call;

    if (trouble.status != EVLOCK_OK)
        return evl_report(trouble);
    call = keep_new(lock, cb, arg);
    if (!call)
        return evl_fail(EVLOCK_ENOMEM, "no memory for a hold");
    trouble = evl_acquire_endlessly(call);
    if (trouble.status != EVLOCK_OK)
        evl_call_drop(call);
    evl_turn_rearm(evl_handle_turn(lock));
    return evl_report(trouble);
}
