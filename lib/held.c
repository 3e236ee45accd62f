/* What a holder asks of its lease; see held.h. */
#include "held.h"

#include <inttypes.h>
#include <string.h>

#include "check.h"
#include "cohort.h"

static const struct call_sort releases = {.kind = CALL_RELEASE};
static const struct call_sort extensions = {.kind = CALL_EXTEND};
static const struct call_sort adoptions = {.kind = CALL_ADOPT};

static enum lease_state held_state_of(const struct evlock *lock) {
    return lock->tenure && !evl_lock_acquiring(lock) ? evl_lease_state(evl_tenure_lease(lock->tenure)) : LEASE_ENDED;
}

/* Whether the handle holds a lease: EVLOCK_OK, EVLOCK_ELOST or EVLOCK_ENOTHELD. */
static struct trouble held_validate_held(const struct evlock *lock) {
    enum lease_state state = held_state_of(lock);

    if (evl_lock_holds(lock))
        return evl_no_trouble;
    if (state == LEASE_LOST || state == LEASE_HELD)
        return (struct trouble){EVLOCK_ELOST, "the lease was lost"};
    return (struct trouble){EVLOCK_ENOTHELD, "this handle holds nothing"};
}

static void held_end_extensions(struct evlock *lock, int status) {
    struct call *call;

    while ((call = evl_call_pending(lock, CALL_EXTEND)))
        evl_call_end(call, status, "");
}

/* It waits, or its success is yet to be reported. */
static bool held_waiting_hold(const struct evlock *lock) {
    const struct call *hold = lock->untold ? lock->untold : evl_call_hold(lock);

    return hold && hold->sort->hindered;
}

/* A hold ends with the lease that it holds. */
static void held_end_hold(struct evlock *lock) {
    struct call *hold = evl_call_hold(lock);

    if (hold)
        evl_call_cancel(hold);
}

/* --- Release ------------------------------------------------------------------------------------------------------ */

/* A client that closes waits for the bodies of runs, and lets them end. */
static struct trouble held_validate_release(const struct evlock *lock) {
    struct trouble trouble = evl_lock_validate(lock);

    if (trouble.status == EVLOCK_ECLOSED && evl_call_pending(lock, CALL_RUN))
        return evl_no_trouble;
    return trouble;
}

/* Whether there is anything to release, be it a hold that still waits: EVLOCK_OK, EVLOCK_EALREADY or EVLOCK_ENOTHELD.
 */
static struct trouble held_validate_lease(const struct evlock *lock) {
    switch (held_state_of(lock)) {
    case LEASE_HELD:
    case LEASE_LOST:
        return evl_no_trouble;
    case LEASE_RELEASING:
        return (struct trouble){EVLOCK_EALREADY, "this handle is being released already"};
    default:
        if (held_waiting_hold(lock))
            return evl_no_trouble;
        if (evl_lock_acquiring(lock))
            return (struct trouble){EVLOCK_ENOTHELD, "this handle is acquiring: evlock_cancel() ends that"};
        return (struct trouble){EVLOCK_ENOTHELD, "this handle holds nothing to release"};
    }
}

/* Whether another handle has the lease now: nobody has to be asked. */
static bool held_pass_on(struct evlock *lock) {
    struct call *heir = evl_cohort_heir(lock);

    if (!heir)
        return false;
    evl_handle_log(lock, EVLOCK_LOG_DEBUG, "passed on");
    evl_tenure_count_hold(lock->tenure, evl_turn_now(evl_handle_turn(lock)));
    lock->config->deployment->stats.released++;
    evl_held_released(lock, evl_no_trouble);
    evl_cohort_give(lock, heir);
    return true;
}

/* Its releases are pending calls. A body may have handed its lease over: then they end here. */
static void held_release(struct evlock *lock) {
    evl_lock_drop_notices(lock);
    held_end_hold(lock);
    held_end_extensions(lock, EVLOCK_ECANCELLED);
    evl_handle_log(lock, EVLOCK_LOG_DEBUG, "releasing");
    if (!lock->tenure) {
        evl_held_released(lock, held_validate_lease(lock));
    } else if (!held_pass_on(lock)) {
        evl_tenure_release(lock->tenure);
        evl_cohort_let_go(lock, true);
    }
    evl_turn_rearm(evl_handle_turn(lock));
}

void evl_held_end_body(struct evlock *lock) {
    struct call *run = evl_call_pending(lock, CALL_RUN);

    run->run.held = evl_lock_holds(lock);
    evl_call_go_on_as(run, &releases);
    held_release(lock);
}

void evl_held_released(struct evlock *lock, struct trouble trouble) {
    struct call *call;

    while ((call = evl_call_pending(lock, CALL_RELEASE)))
        evl_held_end(call, trouble);
}

/* A run that waits has nothing to release: its wait ends, and is reported behind the release. */
static void held_end_wait(struct evlock *lock, struct call *wait) {
    if (lock->untold) {
        lock->untold = NULL;
        evl_call_reopen(wait);
    }
    evl_held_released(lock, (struct trouble){EVLOCK_ENOTHELD, "the run's body was not called yet"});
    evl_handle_log(lock, EVLOCK_LOG_DEBUG, "cancelled");
    evl_lock_cancel_acquire(lock, wait);
    evl_turn_rearm(evl_handle_turn(lock));
}

static void held_end_waiting_hold(struct evlock *lock) {
    evl_lock_cancel_acquire(lock, evl_call_hold(lock));
    evl_held_released(lock, (struct trouble){EVLOCK_ENOTHELD, "the lock was waited for, and not held"});
    evl_turn_rearm(evl_handle_turn(lock));
}

/* The acquire of a run, pending or not yet reported; NULL: none. */
static struct call *held_wait_of(const struct evlock *lock) {
    struct call *call = lock->untold ? lock->untold : evl_call_pending(lock, CALL_ACQUIRE);

    return call && call->body ? call : NULL;
}

/* The end of a run's body, or of its wait, needs no memory if it is not to be reported by itself. */
int evlock_release(evlock *lock, evlock_cb cb, void *arg) {
    struct trouble trouble = held_validate_release(lock);
    struct call *call, *wait, *body;

    if (trouble.status != EVLOCK_OK)
        return evl_report(trouble);
    wait = held_wait_of(lock);
    body = evl_call_pending(lock, CALL_RUN);
    if (!wait && !body && (trouble = held_validate_lease(lock)).status != EVLOCK_OK)
        return evl_report(trouble);
    if (cb || (!wait && !body)) {
        if (!(call = evl_call_new(lock, &releases, arg)))
            return evl_fail(EVLOCK_ENOMEM, "no memory for a release");
        call->cb = cb;
    }
    if (wait)
        held_end_wait(lock, wait);
    else if (body)
        evl_held_end_body(lock);
    else if (held_waiting_hold(lock))
        held_end_waiting_hold(lock);
    else
        held_release(lock);
    return evl_report(evl_no_trouble);
}

/* --- Extensions --------------------------------------------------------------------------------------------------- */

static void held_begin_extension(struct call *call) {
    assert(call == evl_call_pending(call->lock, CALL_EXTEND));
    evl_tenure_extend(call->lock->tenure, call->extend.command, call->extend.ttl);
}

void evl_held_end(struct call *call, struct trouble trouble) {
    bool silent = trouble.status == EVLOCK_EUNREACHABLE && !trouble.words[0];

    evl_call_end(call, trouble.status, silent ? "no answer in time" : trouble.words);
}

void evl_held_extended(struct evlock *lock, struct trouble trouble) {
    struct call *call = evl_call_pending(lock, CALL_EXTEND);

    if (call)
        evl_held_end(call, trouble);
    if (held_state_of(lock) != LEASE_HELD)
        held_end_extensions(lock, EVLOCK_ELOST);
    else if ((call = evl_call_pending(lock, CALL_EXTEND)))
        held_begin_extension(call);
}

void evl_held_note(struct evlock *lock, const char *words) {
    struct call *call = evl_call_pending(lock, CALL_RELEASE);

    if (!call)
        call = evl_call_pending(lock, CALL_EXTEND);
    if (call)
        evl_call_note(call, words);
}

/* No lease may outlast what a restarted node is kept out for. */
static struct trouble held_validate_max_ttl(const struct evlock *lock, int64_t ttl, enum lease_command command,
                                            struct words *words) {
    const struct deployment *deployment = lock->config->deployment;
    int64_t max = deployment->config.max_ttl;

    if (!evl_deployment_excludes(deployment))
        return evl_no_trouble;
    if (command == LEASE_ADD)
        ttl +=
            evl_lease_deadline(evl_tenure_lease(lock->tenure)) - evl_turn_now(&deployment->turn) + evl_lease_drift(max);
    if (ttl <= max)
        return evl_no_trouble;
    return evl_trouble(words, EVLOCK_ETTL, "the lease would last longer than the client's max_ttl_ms, %" PRId64 " ms",
                       max / 1000);
}

/* Else it would be told lost at once. */
static struct trouble held_validate_lead(const struct evlock *lock, int64_t ttl_ms, struct words *words) {
    int64_t lead = lock->config->terms.lead;

    if (ttl_ms * 1000 > evl_lease_drift(ttl_ms * 1000) + lead)
        return evl_no_trouble;
    return evl_trouble(words, EVLOCK_ETTL,
                       "the ttl of %" PRId64 " ms is not longer than its drift and the lead of %" PRId64 " us", ttl_ms,
                       lead);
}

static struct trouble held_extend(evlock *lock, int64_t ttl_ms, enum lease_command command, evlock_cb cb, void *arg,
                                  struct words *words) {
    struct call *call;
    struct trouble trouble = held_validate_held(lock);

    if (trouble.status != EVLOCK_OK)
        return trouble;
    if (evl_lease_deadline(evl_tenure_lease(lock->tenure)) == LEASE_NEVER &&
        (command == LEASE_ADD || lock->config->terms.ttl == 0))
        return (struct trouble){EVLOCK_ENOTTL, "the lock has no expiry to extend"};
    trouble = held_validate_max_ttl(lock, ttl_ms * 1000, command, words);
    if (trouble.status != EVLOCK_OK)
        return trouble;
    call = evl_call_new(lock, &extensions, arg);
    if (!call)
        return (struct trouble){EVLOCK_ENOMEM, "no memory for an extension"};
    call->cb = cb;
    call->extend.command = command;
    call->extend.ttl = ttl_ms * 1000;
    if (evl_call_pending(lock, CALL_EXTEND) == call) /* no other is before it */
        held_begin_extension(call);
    evl_turn_rearm(evl_handle_turn(lock));
    return evl_no_trouble;
}

static struct trouble held_give(evlock *lock, int64_t ms, enum evlock_extend_mode mode, evlock_cb cb, void *arg,
                                struct words *words) {
    bool adds = mode == EVLOCK_EXTEND_ADD;
    struct trouble trouble;

    if (ms < 1)
        return (struct trouble){EVLOCK_ETTL, "an extension is 1 ms or more"};
    trouble = evl_config_validate_ttl(adds && ms < 10 ? 10 : ms, words);
    if (trouble.status == EVLOCK_OK && !adds)
        trouble = held_validate_lead(lock, ms, words);
    if (trouble.status != EVLOCK_OK)
        return trouble;
    return held_extend(lock, ms, adds ? LEASE_ADD : LEASE_REPLACE, cb, arg, words);
}

static struct trouble held_reset(evlock *lock, int64_t ms, evlock_cb cb, void *arg, struct words *words) {
    struct trouble trouble = held_validate_held(lock);

    if (ms != 0)
        return (struct trouble){EVLOCK_EINVAL, "EVLOCK_EXTEND_RESET goes back to the lock's own ttl: its time is 0"};
    if (trouble.status != EVLOCK_OK)
        return trouble;
    if (lock->config->terms.ttl == 0)
        return (struct trouble){EVLOCK_ENOTTL, "the lock has no ttl to go back to"};
    return held_extend(lock, lock->config->terms.ttl / 1000, LEASE_REPLACE, cb, arg, words);
}

int evlock_extend(evlock *lock, int64_t ms, enum evlock_extend_mode mode, evlock_cb cb, void *arg) {
    struct trouble trouble = evl_lock_validate(lock);
    struct words words;

    if (trouble.status != EVLOCK_OK)
        return evl_report(trouble);
    switch (mode) {
    case EVLOCK_EXTEND_ADD:
    case EVLOCK_EXTEND_REPLACE:
        return evl_report(held_give(lock, ms, mode, cb, arg, &words));
    case EVLOCK_EXTEND_RESET:
        return evl_report(held_reset(lock, ms, cb, arg, &words));
    }
    return evl_fail(EVLOCK_EINVAL, "the mode is none of enum evlock_extend_mode");
}

/* --- The token's way ---------------------------------------------------------------------------------------------- */

int evlock_export(evlock *lock, void *token, size_t size, size_t *ret_len) {
    struct trouble trouble = evl_lock_validate(lock);

    if (trouble.status == EVLOCK_OK)
        trouble = held_validate_held(lock);
    if (trouble.status != EVLOCK_OK)
        return evl_report(trouble);
    if (!token || !ret_len || size < evl_tenure_token(lock->tenure).len)
        return evl_fail(EVLOCK_EINVAL, "there is no room for a token of %zu bytes", evl_tenure_token(lock->tenure).len);
    if (!evl_lease_exportable(evl_tenure_lease(lock->tenure), evl_turn_now(evl_handle_turn(lock))))
        return evl_fail(EVLOCK_EALREADY, "what is unanswered might shorten it later, or wait in its queue");
    memcpy(token, evl_tenure_token(lock->tenure).data, evl_tenure_token(lock->tenure).len);
    *ret_len = evl_tenure_token(lock->tenure).len;
    evl_handle_log(lock, EVLOCK_LOG_DEBUG, "handed over");
    evl_lock_drop_notices(lock);
    held_end_hold(lock);
    held_end_extensions(lock, EVLOCK_ECANCELLED);
    evl_tenure_export(lock->tenure);
    evl_cohort_let_go(lock, false);
    evl_turn_rearm(evl_handle_turn(lock));
    return evl_report(evl_no_trouble);
}

/* A lease that was lost and not released is given up, unless it is the very one to be adopted. Where something on its
 * way might still change that one unseen, it is released too, and must not be adopted before: false. */
static bool held_drop_lost_but(struct evlock *lock, struct bytes token) {
    struct tenure *lost = lock->tenure;
    bool same = lost && evl_same_bytes(evl_tenure_token(lost), token);
    bool stays = same && evl_lease_exportable(evl_tenure_lease(lost), evl_turn_now(evl_handle_turn(lock)));

    if (stays)
        evl_tenure_export(lost);
    else if (lost)
        evl_tenure_abandon(lost);
    return stays || !same;
}

int evlock_adopt(evlock *lock, const void *token, size_t token_len, evlock_cb cb, void *arg) {
    struct trouble trouble = evl_lock_validate(lock);
    struct words words;
    struct call *call;

    if (trouble.status == EVLOCK_OK)
        trouble = evl_lock_validate_token(token, &token_len, &words);
    if (trouble.status == EVLOCK_OK)
        trouble = evl_lock_validate_idle(lock);
    if (trouble.status != EVLOCK_OK)
        return evl_report(trouble);
    call = evl_call_new(lock, &adoptions, arg);
    if (!call)
        return evl_fail(EVLOCK_ENOMEM, "no memory for an adoption");
    call->cb = cb;
    evl_handle_log(lock, EVLOCK_LOG_DEBUG, "adopting");
    if (!held_drop_lost_but(lock, (struct bytes){token, token_len})) {
        evl_call_end(call, EVLOCK_ENOTOWNED, "what this handle lost is released");
        return evl_report(evl_no_trouble);
    }
    trouble = evl_tenure_begin(
        lock, &(struct tenure_entry){.token = {token, token_len}, .lease = {.adopt = true, .own = true}},
        evl_turn_now(evl_handle_turn(lock)));
    if (trouble.status != EVLOCK_OK)
        evl_call_drop(call);
    evl_turn_rearm(evl_handle_turn(lock));
    return evl_report(trouble);
}
