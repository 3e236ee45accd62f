/* What a lease leads to; see outcome.h. */
#include "outcome.h"

#include <inttypes.h>
#include <stdio.h>

#include "acquire.h"
#include "check.h"
#include "cohort.h"
#include "held.h"
#include "replicas.h"
#include "stats.h"
#include "waiter.h"

static void outcome_on_granted(struct evlock *lock) {
    struct call *acquire = evl_call_pending(lock, CALL_ACQUIRE);

    if (acquire && lock->config->min_replicas > 0)
        evl_replicas_ask(acquire);
    else
        evl_acquire_grant(acquire ? acquire : evl_call_pending(lock, CALL_ADOPT));
}

/* A missing quorum is reported by numbers, and by what one of the nodes said, if any did. */
static void outcome_count_denied(char *to, size_t size, const struct evlock *lock, uint8_t denied, const char *words) {
    snprintf(to, size, "%u of %u nodes did not agree%s%.200s", denied, lock->config->deployment->votes,
             words[0] ? ": " : "", words);
}

static void outcome_on_failed(struct evlock *lock, int status, uint8_t denied, const char *words) {
    struct call *acquire = evl_call_pending(lock, CALL_ACQUIRE);
    struct trouble why = {status, words};
    char counted[256];

    if (status == EVLOCK_EQUORUM) {
        outcome_count_denied(counted, sizeof(counted), lock, denied, words);
        why.words = counted;
    }
    evl_handle_log(lock, EVLOCK_LOG_DEBUG, "not acquired: %s", evlock_strerror(status));
    evl_tenure_drop(lock->tenure);
    if (acquire)
        evl_acquire_failed(acquire, why);
    else
        evl_call_end(evl_call_pending(lock, CALL_ADOPT), why.status, why.words);
}

/* A grant that is lost before it could be reported is a failed attempt. In a cohort it is none, and others wait behind:
 * the lock is asked for at once. */
static void outcome_on_lost_untold(struct evlock *lock) {
    static const char words[] = "the lease was over before it could be told";
    struct call *call = lock->untold;

    lock->untold = NULL;
    evl_call_reopen(call);
    if (call->sort->kind == CALL_ACQUIRE && evl_cohort_enter_again(call)) {
        evl_acquire_begin_again(call, (struct trouble){EVLOCK_EUNREACHABLE, words});
    } else if (call->sort->kind == CALL_ACQUIRE) {
        evl_acquire_drop(call, (struct trouble){EVLOCK_EUNREACHABLE, words});
    } else {
        evl_tenure_export(lock->tenure); /* not ours to undo */
        evl_call_end(call, EVLOCK_ENOTOWNED, words);
    }
}

static void outcome_notice(struct evlock *lock, bool lost, const struct lease_out *out) {
    bool first = !lock->why;

    lock->why = (enum evlock_status)out->reason;
    lock->lost = lost;
    lock->agreed = out->agreed & 15U;
    evl_locks_notice(evl_locks_of(lock), lock, first);
}

static void outcome_on_lost(struct evlock *lock, const struct lease_out *out) {
    struct call *acquire = evl_call_pending(lock, CALL_ACQUIRE);

    if (lock->untold) {
        outcome_on_lost_untold(lock);
        return;
    }
    if (acquire) { /* granted, and its replicas were being asked */
        evl_replicas_fail(acquire, "the lease was over before its replicas had confirmed it");
        return;
    }
    evl_handle_log(lock, EVLOCK_LOG_ERROR, "lost: %s", evlock_strerror(out->reason));
    evl_stats_count_loss(&lock->config->deployment->stats, out->reason);
    evl_tenure_count_hold(lock->tenure, evl_turn_now(evl_handle_turn(lock)));
    evl_cohort_let_go(lock, false);
    outcome_notice(lock, true, out);
}

static void outcome_on_released(struct evlock *lock, struct trouble trouble) {
    evl_handle_log(lock, EVLOCK_LOG_DEBUG, "released: %s", evlock_strerror(trouble.status));
    lock->config->deployment->stats.released += trouble.status == EVLOCK_OK;
    evl_tenure_drop(lock->tenure);
    evl_held_released(lock, trouble);
}

static void outcome_on_risk(struct evlock *lock, const struct lease_out *out) {
    if (evl_lock_acquiring(lock)) /* its user does not know yet that it holds: it is told of the risk after the grant */
        return;
    evl_handle_log(lock, EVLOCK_LOG_WARN, "at risk: %" PRId64 " ms left, and not renewed: %s",
                   evlock_remaining_ms(lock), evlock_strerror(out->reason));
    if (!lock->lost) /* a loss of the lease before is still to be reported */
        outcome_notice(lock, false, out);
}

static void outcome_happened(struct evlock *lock, const struct lease_out *out, const char *words) {
    struct trouble trouble = {out->status, words};

    assert(evl_locks_of(lock) && !lock->freed);
    if (out->events & LEASE_TELL_LOST)
        outcome_on_lost(lock, out);
    if (out->events & LEASE_TELL_GRANTED)
        outcome_on_granted(lock);
    if (out->events & LEASE_TELL_FAILED)
        outcome_on_failed(lock, out->status, out->denied, words);
    if (out->events & LEASE_TELL_EXTENDED)
        evl_held_extended(lock, trouble);
    if (out->events & LEASE_TELL_RELEASED)
        outcome_on_released(lock, trouble);
    if (out->events & LEASE_TELL_RISK)
        outcome_on_risk(lock, out);
}

const struct tenure_hooks evl_outcome_hooks = {
    .happened = outcome_happened,
    .spoken = evl_held_note,
    .away = evl_waiter_away,
    .back = evl_waiter_back,
    .queued = evl_waiter_queued,
};
