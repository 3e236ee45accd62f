/*
 * Acquiring: the pace of attempts. Each attempt is a tenure with a token of its own; here is when the next one comes
 * and when there is none. It never sends anything of a lease itself.
 */
#include <inttypes.h>
#include <string.h>

#include "dialect.h"
#include "least.h"
#include "lock.h"
#include "log.h"
#include "memory.h"
#include "queue.h"
#include "status.h"

/* In a queue: the shortest and the longest pause between looks of the first; the others look more rarely. Theirs is no
 * longer than that either, or than this for each who waits ahead if that is more, so that it matters little how many
 * there are; nor than the last, nor than ten of their ttls, as a hundredth of the pause is taken from the lease. */
static const int64_t look_least = 100000;
static const int64_t look_most = 5000000;
static const int64_t look_each = 5000;
static const int64_t look_far = 30000000;

/* How often to look whether an earlier attempt with the same token, the caller's own, is undone at last. */
static const int64_t settle_pause = 10000;

/* Waiting cannot mend these. */
static bool is_final(int status) {
    switch (status) {
    case EVLOCK_EAUTH:
    case EVLOCK_EPERM:
    case EVLOCK_EWRONGTYPE:
    case EVLOCK_EUNSUPPORTED:
    case EVLOCK_EPROTOCOL:
    case EVLOCK_ENOMEM:
    case EVLOCK_EFENCE:
        return true;
    default:
        return false;
    }
}

static void wake_at(struct call *call, int64_t at) {
    evl_alarm_set(&client_of(call->lock)->alarms, &call->alarm, at);
}

/* What stood in the way last, for the words that go with the end. */
static void note_obstacle(struct call *call, int status) {
    if (!evlock_last_error()[0])
        evl_error_set(evlock_strerror(status));
    evl_call_note(call);
}

/* --- Attempts ----------------------------------------------------------------------------------------------------- */

/* A token that is being undone must not be set again before that is settled, or the undo would end the new lease. */
static bool being_undone(const struct call *call) {
    const struct evlock *lock = call->lock;
    struct bytes token = {call->acquire.token, call->acquire.token_len};
    struct tenure *ghost;

    if (!call->acquire.token)
        return false;
    TAILQ_FOREACH (ghost, &client_of(lock)->ghosts, link)
        if (same_bytes(token_of(ghost), token) && same_bytes(evl_lock_key(ghost->lock), evl_lock_key(lock)))
            return true;
    for (unsigned i = 0; i < client_of(lock)->node_count; i++)
        if (client_of(lock)->nodes[i].state == NODE_ENDED) /* who has lost what with it is about to be told */
            return true;
    return false;
}

static int64_t retry_pause(const struct evlock *lock) {
    int64_t delay = lock->config->retry_delay;
    int64_t jitter = delay * lock->config->retry_jitter / 100;

    return jitter ? delay - (int64_t)(evl_client_random(client_of(lock)) % (uint64_t)(jitter + 1)) : delay;
}

/* After a failed attempt: a pause, unless that was the last one or the pause would last to the end of the wait. But
 * who is about to join the queue waits to the end: the client begins to listen at any time. */
static void pause_or_give_up(struct call *call, int status) {
    struct evlock *lock = call->lock;
    int64_t next;

    if (call->acquire.retries == 0) {
        evl_call_finish(call, status);
        return;
    }
    if (call->acquire.retries > 0)
        call->acquire.retries--;
    next = evl_client_now(client_of(lock)) + retry_pause(lock);
    if (next >= call->acquire.wait_until && !call->acquire.contended)
        evl_call_finish(call, EVLOCK_ETIMEDOUT);
    else
        wake_at(call, min64(next, call->acquire.wait_until));
}

/* Another has the lock: the queue can be joined at once. */
static void go_on_waiting(struct call *call) {
    if (call->acquire.contended && evl_queue_listens(client_of(call->lock)))
        wake_at(call, evl_client_now(client_of(call->lock)));
    else
        pause_or_give_up(call, EVLOCK_EHELD);
}

/* An earlier attempt with the token, the caller's own, is settled first: as long as a command may take, and then it is
 * this attempt that has failed. */
static void await_settling(struct call *call) {
    const struct evlock_client *client = client_of(call->lock);
    const struct node *trouble = NULL;
    int64_t now = evl_client_now(client), again = now + settle_pause;
    bool away = evl_client_connection(client, &trouble) == EVLOCK_AWAY;

    if (!call->acquire.settled_by) {
        call->acquire.settled_by = now + client->config.command_timeout;
        evl_error_set("an earlier use of the token is not settled yet");
        note_obstacle(call, EVLOCK_EREFUSED);
    }
    if (away || client->heard >= call->acquire.settled_by) {
        call->acquire.settled_by = 0;
        pause_or_give_up(call, !away ? EVLOCK_EREFUSED : client->node_count == 1 ? trouble->status : EVLOCK_EQUORUM);
        return;
    }
    wake_at(call, min64(again, call->acquire.wait_until));
}

/* EVLOCK_OK, EVLOCK_ENOMEM or EVLOCK_ESYSTEM. */
static int attempt(struct call *call, int64_t now) {
    struct evlock *lock = call->lock;
    struct entry entry = {
        .token = {call->acquire.token, call->acquire.token_len},
        .lease =
            {
                .fenced = call->acquire.fenced,
                .queued = call->acquire.contended && evl_queue_listens(client_of(lock)),
                .own = call->acquire.token != NULL,
            },
    };
    int status;

    if (being_undone(call)) {
        await_settling(call);
        return EVLOCK_OK;
    }
    call->acquire.settled_by = 0;
    call->acquire.asked_time = 0;
    call->acquire.handed = call->acquire.other_ears = false;
    call->acquire.attempts++;
    wake_at(call, call->acquire.wait_until);
    if ((status = evl_tenure_begin(lock, &entry, now)) != EVLOCK_OK)
        wake_at(call, INT64_MAX);
    return status;
}

/* Unless it waits in the queue, as the server has said. */
static void note_silence(struct call *call) {
    if (call->acquire.asked_time)
        return;
    evl_error_set("no answer to the last attempt");
    note_obstacle(call, EVLOCK_EUNREACHABLE);
}

/* Its key is being looked at, and what comes next is decided by that. What else may be out is a question for replicas,
 * of an attempt that has failed. */
static bool looks(const struct call *call) {
    const struct request *request = &call->requests[0];

    return request->kind == REQUEST_LOOK && (request->waiting || request->flying);
}

/* When it is given up for want of an answer: the answer that is waited for, or the last one. */
static int64_t given_up_at(const struct call *call) {
    bool asks = call->lock->tenure || looks(call);

    if (call->linked)
        return min64(call->acquire.replicas_by, call->acquire.wait_until);
    return asks ? call->acquire.wait_until : INT64_MAX;
}

void evl_acquire_ring(struct call *call, int64_t now) {
    struct evlock *lock = call->lock;
    int status;

    if (now >= given_up_at(call) &&
        evl_client_puts_off(client_of(lock), &call->alarm, call->acquire.begun, given_up_at(call)))
        return;
    if (lock->tenure && call->linked && now < call->acquire.wait_until) {
        evl_replicas_fail(call, "the replicas took too long");
    } else if (now >= call->acquire.wait_until) {
        if (lock->tenure) {
            note_silence(call);
            evl_tenure_abandon(lock->tenure);
        }
        evl_call_finish(call, EVLOCK_ETIMEDOUT);
    } else if (lock->tenure) {
        wake_at(call, call->acquire.wait_until);
        evl_tenure_look(lock->tenure, now);
    } else if ((status = attempt(call, now)) != EVLOCK_OK) {
        evl_call_note(call);
        evl_call_finish(call, status);
    }
}

/* --- In the queue ------------------------------------------------------------------------------------------------- */

/* When the holder's ttl has ended, for the holder may have crashed, the first looks, and who has found the lock free
 * before and granted it to that holder. Only they are told what is left. */
static int64_t look_pause(const struct call *call, int64_t left) {
    const struct evlock *lock = call->lock;
    int64_t ahead = min64(call->acquire.ahead, look_far / look_each);
    int64_t pause = min64(max64(10 * lock->config->retry_delay, look_least), look_most);

    if (!evl_queue_listens(client_of(lock)))
        return retry_pause(lock);
    pause = min64(min64(pause * (ahead + 1), max64(look_most, ahead * look_each)), 10 * lock->config->terms.ttl);
    pause -= (int64_t)(evl_client_random(client_of(lock)) % (uint64_t)(pause / 2));
    return left != LEASE_NEVER ? min64(pause, left + 1000) : pause;
}

void evl_acquire_queued(struct evlock *lock, int64_t sent, const struct lease_answer *answer) {
    struct call *call = evl_lock_pending(lock, CALL_ACQUIRE);

    evl_node_compare_clocks(&client_of(lock)->nodes[0], sent, answer->time);
    call->acquire.asked_at = sent;
    call->acquire.asked_time = answer->time;
    call->acquire.other_ears = false;
    call->acquire.ahead = answer->ahead;
    evl_error_set("waiting in the queue");
    note_obstacle(call, EVLOCK_EHELD);
    wake_at(call, min64(evl_client_now(client_of(lock)) + look_pause(call, answer->ttl), call->acquire.wait_until));
}

/* The lease counts from a moment that is no later than the grant: the newest answered look was before it, by as much as
 * the server's clock went on meanwhile, less what that may be fast by. Before the first answer, it is when that look
 * was asked for. A grant from before that look is over, for the look found it waiting again; one without the fence that
 * was asked for is none. Of a new connection it is not known yet whether it leads to the server with that clock. */
void evl_acquire_granted(struct evlock *lock, int64_t time, int64_t fence) {
    struct call *call = evl_lock_pending(lock, CALL_ACQUIRE);
    int64_t passed = time - call->acquire.asked_time;
    int64_t since = call->acquire.asked_at + passed - passed / 100;
    int64_t now = evl_client_now(client_of(lock));

    if (passed < 0 || (call->acquire.fenced && fence == 0))
        return;
    if (!call->acquire.asked_time)
        since = evl_lease_sent(lease_of(lock->tenure), 0);
    else if (call->acquire.other_ears)
        since = call->acquire.asked_at;
    call->acquire.handed = true;
    evl_tenure_granted(lock->tenure, min64(since, now), fence, now);
}

void evl_acquire_wake(struct call *call) {
    if (call->linked || !call->acquire.contended || looks(call))
        return;
    call->acquire.other_ears = true;
    wake_at(call, evl_client_now(client_of(call->lock)));
}

/* --- A look at what holds the key: SET NX says of a list what it says of a lock ----------------------------------- */

static const struct dialect *dialect_of(const struct call *call) {
    return evl_dialect(call->lock->config->queue, false, false);
}

static bool take_look(struct request *request, int64_t now, struct command *command) {
    const struct call *call = evl_call_of(request);
    const struct subject subject = {.key = evl_lock_key(call->lock)};

    (void)now;
    evl_command_write(command, &dialect_of(call)->asks[ASK_TOKEN]->form, &subject);
    return true;
}

static bool see(struct request *request, const struct reply *reply, int64_t now) {
    struct call *call = evl_call_of(request);
    struct reply_meaning meaning;
    struct found found;
    bool fits = reply->type == REPLY_LOST || reply->type == REPLY_ERROR ||
                evl_dialect_find(dialect_of(call), ASK_TOKEN, reply, &found);

    (void)now;
    if (call->finished) {
        evl_call_settle(call);
    } else if (reply->type == REPLY_ERROR) {
        meaning = evl_reply_meaning(reply->text);
        evl_error_set(reply->text);
        note_obstacle(call, meaning.status);
        if (is_final(meaning.status))
            evl_call_finish(call, meaning.status);
        else
            go_on_waiting(call);
    } else {
        go_on_waiting(call);
    }
    return fits;
}

static void see_nothing(struct request *request, int status, int64_t now) {
    struct call *call = evl_call_of(request);

    (void)status;
    (void)now;
    evl_node_withdraw(&client_of(call->lock)->nodes[request->node], request);
    pause_or_give_up(call, EVLOCK_EHELD);
}

const struct request_ops evl_look_requests = {take_look, see, NULL, see_nothing};

/* Only where there is one node: among several, one that hangs or is odd must neither hold up nor end an acquire. */
static bool may_look(const struct call *call) {
    bool joins = call->acquire.contended && evl_queue_listens(client_of(call->lock)); /* which looks, too */
    return client_of(call->lock)->node_count == 1 && !call->acquire.looked && !call->requests[0].flying && !joins;
}

static void look(struct call *call) {
    call->acquire.looked = true;
    evl_call_ask(call, REQUEST_LOOK);
    evl_node_submit(&client_of(call->lock)->nodes[0], &call->requests[0], evl_client_now(client_of(call->lock)));
}

/* Another has the lock, and the next attempt is to join the queue for it. */
static void contend(struct call *call) {
    call->acquire.contended = true;
    evl_queue_open(client_of(call->lock));
}

void evl_acquire_failed(struct call *call, int status) {
    note_obstacle(call, status);
    if (status == EVLOCK_EHELD && call->lock->config->queue && call->acquire.retries != 0)
        contend(call);
    if (is_final(status))
        evl_call_finish(call, status);
    else if (status != EVLOCK_EHELD)
        pause_or_give_up(call, status);
    else if (may_look(call))
        look(call);
    else
        go_on_waiting(call);
}

/* --- The calls ---------------------------------------------------------------------------------------------------- */

int evl_check_token(const void *token, size_t *len) {
    if (!token)
        return evl_fail(EVLOCK_ETOKEN, "the token is NULL");
    if (*len == EVLOCK_CSTRING)
        *len = strlen(token);
    if (*len < 1 || *len > TOKEN_MAX)
        return evl_fail(EVLOCK_ETOKEN, "the token has %zu bytes, not 1 to %d", *len, TOKEN_MAX);
    return EVLOCK_OK;
}

int evl_check_idle(const struct evlock *lock) {
    if (evl_lock_acquiring(lock))
        return evl_fail(EVLOCK_EALREADY, "an acquire or an adoption of this handle is pending");
    if (lock->tenure && evl_lease_state(lease_of(lock->tenure)) == LEASE_RELEASING)
        return evl_fail(EVLOCK_EALREADY, "this handle is being released");
    if (lock->tenure && evl_lease_state(lease_of(lock->tenure)) == LEASE_HELD)
        return evl_fail(EVLOCK_EALREADY, "this handle holds the lock");
    return EVLOCK_OK;
}

static int read_options(const evlock_acquire_options *options, const struct config *config,
                        evlock_acquire_options *given, int64_t *times, int64_t *wait) {
    int status = evl_acquire_options_read(given, options);

    *times = config->retry_times;
    *wait = config->wait_timeout;
    if (status == EVLOCK_OK && given->token)
        status = evl_check_token(given->token, &given->token_len);
    if (status == EVLOCK_OK)
        status = evl_config_waiting(times, wait, given->retry_times, given->wait_timeout_ms);
    if (status == EVLOCK_OK)
        status = evl_config_check_retries(config->queue, *times);
    if (status == EVLOCK_OK && given->fence != EVLOCK_DEFAULT && given->fence != 0 && given->fence != 1)
        status = evl_fail(EVLOCK_EINVAL, "fence is neither 0 nor 1");
    if (status == EVLOCK_OK && *wait == 0) { /* no time to wait: one attempt, however long the server takes for it */
        *times = 0;
        *wait = EVLOCK_UNLIMITED;
    }
    return status;
}

int evlock_acquire(evlock *lock, const evlock_acquire_options *options, evlock_cb cb, void *arg) {
    evlock_acquire_options given;
    int64_t times, wait;
    struct call *call;
    int status = evl_lock_check(lock);

    if (status == EVLOCK_OK)
        status = read_options(options, lock->config, &given, &times, &wait);
    if (status == EVLOCK_OK)
        status = evl_check_idle(lock);
    if (status != EVLOCK_OK)
        return status;
    call = evl_call_new(lock, CALL_ACQUIRE, arg);
    if (!call)
        return evl_fail(EVLOCK_ENOMEM, "no memory for an acquire");
    call->cb = cb;
    call->acquire.retries = times;
    call->acquire.fenced = given.fence == 1;
    call->acquire.contended = lock->crowded && times != 0;
    call->acquire.begun = evl_client_now(client_of(lock));
    call->acquire.wait_until = wait == EVLOCK_UNLIMITED ? INT64_MAX : call->acquire.begun + wait;
    if (given.token) {
        call->acquire.token = evl_dup(given.token, given.token_len);
        call->acquire.token_len = (uint8_t)given.token_len;
    }
    if (lock->tenure) /* lost, and not released */
        evl_lock_give_up_lost(lock);
    evl_log_lock(lock, EVLOCK_LOG_DEBUG, "acquiring");
    if (given.token && !call->acquire.token)
        status = evl_fail(EVLOCK_ENOMEM, "no memory for an acquire");
    else
        status = attempt(call, call->acquire.begun);
    if (status != EVLOCK_OK) {
        evl_call_drop(call);
        return status;
    }
    evl_client_rearm(client_of(lock));
    return EVLOCK_OK;
}

int evlock_cancel(evlock *lock) {
    struct call *call;
    int status = evl_lock_check(lock);

    if (status != EVLOCK_OK)
        return status;
    call = evl_lock_pending(lock, CALL_ACQUIRE);
    if (!call)
        call = evl_lock_pending(lock, CALL_ADOPT);
    if (!call && !lock->untold)
        return evl_fail(EVLOCK_ENOTHELD, "no acquire of this handle is pending");
    evl_log_lock(lock, EVLOCK_LOG_DEBUG, "cancelled");
    evl_lock_cancel_acquire(lock, call);
    evl_client_rearm(client_of(lock));
    return EVLOCK_OK;
}
