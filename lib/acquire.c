/* Acquiring; see acquire.h. */
#include "acquire.h"

#include <string.h>

#include "check.h"
#include "cohort.h"
#include "dialect.h"
#include "memory.h"
#include "minmax.h"
#include "queue.h"
#include "stats.h"

/* How often to look whether an earlier attempt with the same token, the caller's own, is undone at last. */
static const int64_t settle_pause = 10000;

static const char replicas_too_slow[] = "the replicas took too long";

bool evl_acquire_is_refused(int status) {
    switch (status) {
    case EVLOCK_EAUTH:
    case EVLOCK_ECERT:
    case EVLOCK_EMASTER:
    case EVLOCK_EPERM:
    case EVLOCK_EWRONGTYPE:
    case EVLOCK_EUNSUPPORTED:
    case EVLOCK_EPROTOCOL:
    case EVLOCK_ENOMEM:
    case EVLOCK_ESYSTEM:
    case EVLOCK_EFENCE:
        return true;
    default:
        return false;
    }
}

/* The next login may have credentials that are not refused. */
static bool acquire_may_log_in(const struct call *call, int status) {
    return status == EVLOCK_EAUTH && call->lock->config->deployment->config.renews_credentials;
}

/* What makes no sense once may be a bit that flipped on its way: the next connection, or the next attempt, is to tell.
 * An attempt is answered while the connection is up. */
static bool acquire_is_nonsense_again(struct call *call) {
    const struct connection *connection = evl_node_connection_of(evl_handle_home(call->lock));
    bool again = call->acquire.nonsense;

    if (!evl_connection_is_open(connection))
        return connection->reconnect.nonsense > 1;
    call->acquire.nonsense = true;
    return again;
}

/* Waiting cannot mend it, unless it is to go on for ever. */
static bool acquire_ends_by(struct call *call, int status) {
    if (status == EVLOCK_EPROTOCOL && !acquire_is_nonsense_again(call))
        return false;
    if (status != EVLOCK_EPROTOCOL && status != EVLOCK_EUNREACHABLE)
        call->acquire.nonsense = false;
    return evl_acquire_is_refused(status) && !acquire_may_log_in(call, status) && !call->sort->hindered;
}

static void acquire_free(struct call *call) {
    evl_free(call->acquire.token);
}

void evl_acquire_count(const struct call *call) {
    struct evlock_stats *stats;

    if (!evl_locks_of(call->lock))
        return;
    stats = &call->lock->config->deployment->stats;
    if (call->status != EVLOCK_OK) {
        stats->failed++;
        return;
    }
    stats->acquired++;
    stats->handed += call->acquire.handed;
    stats->passed += call->acquire.passed;
    stats->waited +=
        call->acquire.attempts > 1 || call->acquire.asked_time || call->acquire.handed || call->acquire.passed;
    evl_stats_count(stats->wait, evl_lease_since(evl_tenure_lease(call->lock->tenure)) - call->acquire.begun);
}

static const struct call_sort acquires = {
    .kind = CALL_ACQUIRE,
    .count = evl_acquire_count,
    .free = acquire_free,
    .ended = evl_cohort_leave,
};

static int64_t acquire_now_of(const struct call *call) {
    return evl_turn_now(evl_handle_turn(call->lock));
}

static bool acquire_listens(const struct call *call) {
    return evl_queue_listens(evl_handle_home(call->lock));
}

void evl_acquire_note(struct call *call, struct trouble obstacle) {
    evl_call_note(call, obstacle.words[0] ? obstacle.words : evlock_strerror(obstacle.status));
}

void evl_acquire_wait_on(struct call *call, struct trouble obstacle) {
    evl_acquire_note(call, obstacle);
    if (call->sort->hindered)
        (void)call->sort->hindered(call, obstacle.status);
}

/* --- Attempts ----------------------------------------------------------------------------------------------------- */

/* A token that is being undone must not be set again before that is settled, or the undo would end the new lease. */
static bool acquire_being_undone(const struct call *call) {
    struct bytes token = {call->acquire.token, call->acquire.token_len};

    return token.data && evl_tenures_haunt(&evl_locks_of(call->lock)->tenures, evl_handle_key(call->lock), token);
}

/* The server is what is missing, and not the lock. */
static bool acquire_is_away(const struct call *call, int status) {
    const struct deployment *deployment = call->lock->config->deployment;
    const struct node *trouble;

    if (status == EVLOCK_EQUORUM)
        return evl_deployment_connection(deployment, &trouble) == EVLOCK_AWAY;
    return status == EVLOCK_EUNREACHABLE || status == EVLOCK_EREFUSED || acquire_may_log_in(call, status);
}

/* After a failed attempt: a pause, unless that was the last one or the pause would last to the end of the wait. But
 * who is about to join the queue waits to the end: the client begins to listen at any time. */
static void acquire_pause_or_end(struct call *call, struct trouble why) {
    int64_t least = call->sort->hindered ? call->sort->hindered(call, why.status) : 0;
    int64_t next;

    if (call->acquire.retries == 0 || (call->acquire.fail_when_away && acquire_is_away(call, why.status))) {
        evl_call_end(call, why.status, why.words);
        return;
    }
    if (call->acquire.retries > 0)
        call->acquire.retries--;
    next = acquire_now_of(call) + evl_max(evl_call_pause(call), least);
    if (next >= call->acquire.wait_until && !call->acquire.contended)
        evl_call_end(call, EVLOCK_ETIMEDOUT, "");
    else
        evl_call_wake(call, evl_min(next, call->acquire.wait_until));
}

/* Another has the lock: the queue can be joined at once. */
static void acquire_go_on_waiting(struct call *call) {
    if (call->acquire.contended && acquire_listens(call))
        evl_call_wake(call, acquire_now_of(call));
    else
        acquire_pause_or_end(call, (struct trouble){EVLOCK_EHELD, ""});
}

/* An earlier attempt with the token, the caller's own, is settled first: as long as a command may take, and then it is
 * this attempt that has failed. */
static void acquire_await_settling(struct call *call) {
    static const struct trouble unsettled = {EVLOCK_EREFUSED, "an earlier use of the token is not settled yet"};
    const struct deployment *deployment = call->lock->config->deployment;
    const struct node *trouble = NULL;
    int64_t now = acquire_now_of(call), again = now + settle_pause;
    bool away = evl_deployment_connection(deployment, &trouble) == EVLOCK_AWAY;

    if (!call->acquire.settled_by) {
        call->acquire.settled_by = now + deployment->config.command_timeout;
        evl_acquire_note(call, unsettled);
    }
    if (!away && deployment->turn.heard < call->acquire.settled_by) {
        evl_call_wake(call, evl_min(again, call->acquire.wait_until));
        return;
    }
    call->acquire.settled_by = 0;
    if (!away)
        acquire_pause_or_end(call, unsettled);
    else if (deployment->votes == 1)
        acquire_pause_or_end(call, evl_node_trouble(trouble, now));
    else
        acquire_pause_or_end(call, (struct trouble){EVLOCK_EQUORUM, ""});
}

/* EVLOCK_OK, EVLOCK_ENOMEM or EVLOCK_ESYSTEM. */
static struct trouble acquire_attempt(struct call *call, int64_t now) {
    struct tenure_entry entry = {
        .token = {call->acquire.token, call->acquire.token_len},
        .lease =
            {
                .fenced = call->acquire.fenced,
                .spare = call->acquire.fenced ? evl_cohort_passes_ahead(call) : 0,
                .queued = call->acquire.contended && acquire_listens(call),
                .own = call->acquire.token != NULL,
            },
        .kept = call->acquire.keep != NULL,
    };
    struct trouble trouble;

    if (acquire_being_undone(call)) {
        acquire_await_settling(call);
        return evl_no_trouble;
    }
    if (entry.lease.own)
        call->acquire.settled_by = 0;
    call->acquire.asked_time = 0;
    call->acquire.handed = call->acquire.looks_anew = false;
    call->acquire.attempts++;
    evl_call_wake(call, call->acquire.wait_until);
    trouble = evl_tenure_begin(call->lock, &entry, now);
    if (trouble.status != EVLOCK_OK)
        evl_call_wake(call, INT64_MAX);
    return trouble;
}

/* --- Their end ---------------------------------------------------------------------------------------------------- */

/* Others wait for the lock as well. */
static bool acquire_is_crowded(const struct call *call) {
    bool passed = evl_call_passed(call) && evl_kind_has_queue(call->lock->config->kind);

    return call->sort->kind == CALL_ACQUIRE && (call->acquire.handed || passed);
}

static void acquire_grant(struct call *call) {
    struct evlock *lock = call->lock;
    int64_t fence = evl_lease_fence(evl_tenure_lease(lock->tenure));

    assert(evl_lease_state(evl_tenure_lease(lock->tenure)) == LEASE_HELD && !lock->untold);
    if (fence && !evl_fences_note(&evl_locks_of(lock)->fences, evl_handle_key(lock), fence)) {
        evl_acquire_drop(call, (struct trouble){EVLOCK_EFENCE, "the fence went backwards"});
        return;
    }
    lock->untold = call;
    lock->crowded = acquire_is_crowded(call);
    if (call->sort->kind == CALL_ACQUIRE && call->acquire.cohort)
        evl_cohort_hold(call);
    evl_handle_log(lock, EVLOCK_LOG_DEBUG, "held");
    evl_call_end(call, EVLOCK_OK, "");
}

void evl_acquire_grant(struct call *call) {
    acquire_grant(call->sort->kind == CALL_ACQUIRE && call->acquire.cohort ? evl_cohort_granted(call) : call);
}

static void acquire_drop(struct call *call) {
    evl_call_withdraw(call);
    call->aside = false;
    evl_tenure_abandon(call->lock->tenure);
}

void evl_acquire_drop(struct call *call, struct trouble why) {
    acquire_drop(call);
    evl_acquire_failed(call, why);
}

void evl_acquire_begin_again(struct call *call, struct trouble why) {
    acquire_drop(call);
    evl_acquire_note(call, why);
    evl_call_wake(call, evl_min(acquire_now_of(call), call->acquire.wait_until));
}

/* An attempt that nobody has answered says more by why it was not sent, if it was not. */
static const char *acquire_silence(const struct call *call) {
    const struct deployment *deployment = call->lock->config->deployment;
    const char *trouble = evl_node_connection_of(evl_handle_home(call->lock))->error;

    if (evl_tenure_flies(call->lock->tenure))
        return "no answer to the last attempt";
    return deployment->votes == 1 && trouble[0] ? trouble : "the last attempt could not be sent";
}

/* Unless it waits in the queue, as the server has said. */
static void acquire_note_silence(struct call *call) {
    if (call->aside)
        evl_call_note(call, replicas_too_slow);
    else if (!call->acquire.asked_time)
        evl_call_note(call, acquire_silence(call));
}

/* What else may be out is a question for replicas, of an attempt that has failed. */
bool evl_acquire_looks(const struct call *call) {
    const struct request *request = &call->requests[0];

    return request->kind == REQUEST_LOOK && (request->waiting || request->flying);
}

/* When it is given up for want of an answer: the answer that is waited for, or the last one. */
static int64_t acquire_given_up_at(const struct call *call) {
    bool asks = call->lock->tenure || evl_acquire_looks(call);

    if (call->aside)
        return evl_min(call->acquire.replicas_by, call->acquire.wait_until);
    return asks ? call->acquire.wait_until : INT64_MAX;
}

/* Another that waits beside it goes on with the attempt. */
static void acquire_give_up(struct call *call) {
    if (!evl_cohort_pass(call->lock))
        evl_tenure_abandon(call->lock->tenure);
}

static void acquire_end_waiting(struct call *call) {
    if (call->lock->tenure) {
        acquire_note_silence(call);
        acquire_give_up(call);
    }
    evl_call_end(call, EVLOCK_ETIMEDOUT, "");
}

/* While it is in line, no attempt fails because the server is away. */
static bool acquire_is_left_in_line(const struct call *call, int64_t now, struct trouble *ret) {
    if (!call->acquire.fail_when_away || !evl_lock_queues(call->lock))
        return false;
    *ret = evl_node_trouble(evl_handle_home(call->lock), now);
    return acquire_is_away(call, ret->status);
}

static void acquire_end_in_line(struct call *call, struct trouble why) {
    evl_acquire_note(call, why);
    acquire_give_up(call);
    evl_call_end(call, why.status, "");
}

void evl_acquire_ring(struct alarm *alarm, int64_t now) {
    struct call *call = EVL_OWNER(struct call, alarm, alarm);
    struct evlock *lock = call->lock;
    struct trouble trouble;

    assert(call->sort->kind == CALL_ACQUIRE && !call->ended);
    if (now >= acquire_given_up_at(call) &&
        evl_turn_puts_off(evl_handle_turn(lock), alarm, call->acquire.begun, acquire_given_up_at(call)))
        return;
    if (now >= call->acquire.wait_until) {
        acquire_end_waiting(call);
    } else if (!evl_cohort_leads(call)) {
        evl_call_wake(call, call->acquire.wait_until);
    } else if (lock->tenure && call->aside) {
        evl_acquire_drop(call, (struct trouble){EVLOCK_EREPLICAS, replicas_too_slow});
    } else if (acquire_is_left_in_line(call, now, &trouble)) {
        acquire_end_in_line(call, trouble);
    } else if (lock->tenure) {
        call->acquire.looks_anew = false;
        evl_call_wake(call, call->acquire.wait_until);
        evl_tenure_look(lock->tenure, now);
    } else if ((trouble = acquire_attempt(call, now)).status != EVLOCK_OK) {
        evl_acquire_failed(call, trouble);
    }
}

/* --- A look at what holds the key: SET NX says of a list what it says of a lock ----------------------------------- */

static bool acquire_take_look(struct request *request, int64_t now, struct command *command) {
    const struct call *call = evl_call_of(request);
    const struct subject subject = {.key = evl_handle_key(call->lock)};

    (void)now;
    evl_command_write(command, &evl_call_dialect(call)->asks[ASK_TYPE]->form, &subject);
    return true;
}

/* What has the key is no lock, or nobody may know: the next refusal is looked at, too. */
static void acquire_look_again(struct call *call, struct trouble why) {
    call->acquire.looked = false;
    acquire_pause_or_end(call, why);
}

static void acquire_see_refusal(struct call *call, const struct reply *error) {
    struct trouble trouble = {evl_reply_meaning(error->error).status, error->text};

    evl_acquire_note(call, trouble);
    if (acquire_ends_by(call, trouble.status))
        evl_call_end(call, trouble.status, "");
    else if (call->sort->hindered || trouble.status == EVLOCK_EPROTOCOL)
        acquire_look_again(call, trouble);
    else
        acquire_go_on_waiting(call);
}

static bool acquire_see(struct request *request, const struct reply *reply, int64_t now) {
    struct call *call = evl_call_of(request);
    struct found found;
    bool fits = reply->type == REPLY_LOST || reply->type == REPLY_ERROR ||
                evl_dialect_find(evl_call_dialect(call), ASK_TYPE, reply, &found);

    (void)now;
    if (call->ended)
        evl_call_free_told(call);
    else if (reply->type == REPLY_ERROR && evl_reply_meaning(reply->error).verdict == LEASE_AGAIN)
        evl_call_submit(call, 0);
    else if (reply->type == REPLY_ERROR)
        acquire_see_refusal(call, reply);
    else
        acquire_go_on_waiting(call);
    return fits;
}

static void acquire_see_nothing(struct request *request, struct trouble why, int64_t now) {
    struct call *call = evl_call_of(request);

    (void)why;
    (void)now;
    evl_pipe_withdraw(evl_call_pipe(call, request->vote), request);
    acquire_pause_or_end(call, (struct trouble){EVLOCK_EHELD, ""});
}

static void acquire_submit_look(struct request *request, int64_t now) {
    (void)now;
    evl_call_submit(evl_call_of(request), request->vote);
}

const struct request_ops evl_acquire_requests = {acquire_take_look,   acquire_see,        NULL, NULL,
                                                 acquire_see_nothing, acquire_submit_look};

/* Only where there is one node: among several, one that hangs or is odd must neither hold up nor end an acquire. One
 * that joins the queue looks by that. */
static bool acquire_may_look(const struct call *call) {
    bool joins = call->acquire.contended && acquire_listens(call);

    return call->lock->config->deployment->votes == 1 && !call->acquire.looked && !call->requests[0].flying && !joins;
}

static void acquire_look(struct call *call) {
    call->acquire.looked = true;
    evl_call_ask(call, REQUEST_LOOK);
    evl_call_submit(call, 0);
}

/* Another has the lock, and the next attempt is to join the queue for it. */
static void acquire_contend(struct call *call) {
    call->acquire.contended = true;
    evl_queue_open(evl_locks_of(call->lock), evl_handle_home(call->lock));
}

void evl_acquire_failed(struct call *call, struct trouble why) {
    evl_acquire_note(call, why);
    if (why.status == EVLOCK_EHELD && evl_kind_has_queue(call->lock->config->kind) && call->acquire.retries != 0)
        acquire_contend(call);
    if (acquire_ends_by(call, why.status))
        evl_call_end(call, why.status, "");
    else if (why.status != EVLOCK_EHELD)
        acquire_pause_or_end(call, why);
    else if (acquire_may_look(call))
        acquire_look(call);
    else
        acquire_go_on_waiting(call);
}

/* --- Limits ------------------------------------------------------------------------------------------------------- */

/* Those before it may not have waited themselves. When it leads, it can be in line at once if the client listens. */
static void acquire_wait_behind(struct call *call) {
    if (evl_kind_has_queue(call->lock->config->kind))
        evl_queue_open(evl_locks_of(call->lock), evl_handle_home(call->lock));
    call->acquire.attempts++; /* another is made before its own: it does not get the lock at once */
    evl_acquire_note(call, (struct trouble){EVLOCK_EHELD, "waiting behind other handles of this client"});
    evl_call_wake(call, call->acquire.wait_until);
}

static struct trouble acquire_begin(struct call *call) {
    struct evlock *lock = call->lock;

    if (lock->tenure) /* lost, and not released */
        evl_tenure_abandon(lock->tenure);
    evl_handle_log(lock, EVLOCK_LOG_DEBUG, "acquiring");
    if (evl_cohort_leads(call))
        return acquire_attempt(call, call->acquire.begun);
    acquire_wait_behind(call);
    return evl_no_trouble;
}

/* How far it goes, from now on. */
static void acquire_set_limits(struct call *call, const struct limits *limits) {
    bool endless = limits->attempts == EVLOCK_UNLIMITED;

    call->acquire.retries = endless ? EVLOCK_UNLIMITED : limits->attempts - 1;
    call->acquire.retry_delay = limits->retry_delay;
    call->acquire.fenced = limits->fence;
    call->acquire.fail_when_away = limits->fail_when_away;
    call->acquire.contended = call->lock->crowded && call->acquire.retries != 0;
    call->acquire.begun = acquire_now_of(call);
    call->acquire.wait_until = limits->wait == EVLOCK_UNLIMITED ? INT64_MAX : call->acquire.begun + limits->wait;
}

struct trouble evl_acquire_endlessly(struct call *call) {
    struct limits limits = call->lock->config->limits;

    limits.attempts = limits.wait = EVLOCK_UNLIMITED;
    limits.fail_when_away = false;
    acquire_set_limits(call, &limits);
    call->acquire.looked = call->acquire.nonsense = false;
    call->acquire.attempts = 0;
    return acquire_begin(call);
}

/* --- The calls ---------------------------------------------------------------------------------------------------- */

static struct trouble acquire_read_options(const evlock_acquire_options *options, const struct config *config,
                                           evlock_acquire_options *given, struct limits *limits, struct words *words) {
    struct trouble trouble = evl_config_read_acquire(limits, given, config, options, words);

    if (trouble.status == EVLOCK_OK && given->token)
        trouble = evl_lock_validate_token(given->token, &given->token_len, words);
    return trouble;
}

/* False: there is no memory for the caller's own token. */
static bool acquire_take_token(struct call *call, const evlock_acquire_options *given) {
    if (!given->token)
        return true;
    call->acquire.token = evl_dup(given->token, given->token_len);
    call->acquire.token_len = (uint8_t)given->token_len;
    return call->acquire.token != NULL;
}

struct trouble evl_acquire_begin(struct call **ret, struct evlock *lock, const evlock_acquire_options *options,
                                 void *arg, struct words *words) {
    evlock_acquire_options given;
    struct limits limits;
    struct call *call;
    struct trouble trouble = evl_lock_validate(lock);

    if (trouble.status == EVLOCK_OK)
        trouble = acquire_read_options(options, lock->config, &given, &limits, words);
    if (trouble.status == EVLOCK_OK)
        trouble = evl_lock_validate_idle(lock);
    if (trouble.status != EVLOCK_OK)
        return trouble;
    call = evl_call_new(lock, &acquires, arg);
    if (!call)
        return (struct trouble){EVLOCK_ENOMEM, "no memory for an acquire"};
    acquire_set_limits(call, &limits);
    if (!acquire_take_token(call, &given) || !evl_cohort_enter(call)) {
        evl_call_drop(call);
        return (struct trouble){EVLOCK_ENOMEM, "no memory for an acquire"};
    }
    trouble = acquire_begin(call);
    if (trouble.status == EVLOCK_OK)
        *ret = call;
    else
        evl_call_drop(call);
    evl_turn_rearm(evl_handle_turn(lock)); /* in any case: a lease that was lost may have been given up */
    return trouble;
}

int evlock_acquire(evlock *lock, const evlock_acquire_options *options, evlock_cb cb, void *arg) {
    struct words words;
    struct call *call;
    struct trouble trouble = evl_acquire_begin(&call, lock, options, arg, &words);

    if (trouble.status == EVLOCK_OK)
        call->cb = cb;
    return evl_report(trouble);
}

int evlock_cancel(evlock *lock) {
    struct call *call;
    struct trouble trouble = evl_lock_validate(lock);

    if (trouble.status != EVLOCK_OK)
        return evl_report(trouble);
    call = evl_call_pending(lock, CALL_ACQUIRE);
    if (!call)
        call = evl_call_pending(lock, CALL_ADOPT);
    if (!call && !lock->untold)
        return evl_fail(EVLOCK_ENOTHELD,
                        "no acquire of this handle is pending; evlock_release() gives back what it holds");
    evl_handle_log(lock, EVLOCK_LOG_DEBUG, "cancelled");
    evl_lock_cancel_acquire(lock, call);
    evl_turn_rearm(evl_handle_turn(lock));
    return evl_report(evl_no_trouble);
}
