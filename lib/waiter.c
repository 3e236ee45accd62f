/* Waiters in the queue; see waiter.h. */
#include "waiter.h"

#include <stdlib.h>

#include "acquire.h"
#include "check.h"
#include "cohort.h"
#include "minmax.h"
#include "queue.h"

/* As the server's clock: it was not told, as its scripts do not read it. */
static const int64_t time_untold = -1;

/* In a queue: the shortest and the longest pause between looks of the first; the others look more rarely. Theirs is no
 * longer than that either, or than this for each who waits ahead if that is more, so that it matters little how many
 * there are; nor than the last, nor than ten of their ttls, as a hundredth of the pause is taken from the lease. */
static const int64_t look_least = 100000;
static const int64_t look_most = 5000000;
static const int64_t look_each = 5000;
static const int64_t look_far = 30000000;

/* When grants may have been missed, all look. Who is first in line does at once. No two of the others do at the same
 * time: each has a moment of its own in a round, whose steps and length are these at most. So grants go on beside that,
 * however often all are to look anew. */
static const int64_t look_step = 100;
static const int64_t look_round = 5000000;

static int64_t waiter_now_of(const struct evlock *lock) {
    return evl_turn_now(evl_handle_turn(lock));
}

/* Where it waits: in a cluster, the master that its last look went to. */
static struct node *waiter_node_of(const struct evlock *lock) {
    return lock->config->deployment->nodes[evl_tenure_request(lock->tenure, 0)->node];
}

/* When the holder's ttl has ended, for the holder may have crashed, the first looks, and who has found the lock free
 * before and granted it to that holder. Only they are told what is left. */
static int64_t waiter_look_pause(const struct call *call, int64_t left) {
    const struct evlock *lock = call->lock;
    int64_t ahead = evl_min(call->acquire.ahead, look_far / look_each);
    int64_t pause = evl_min(evl_max(10 * call->acquire.retry_delay, look_least), look_most);

    if (!evl_queue_listens(waiter_node_of(lock)))
        return evl_call_pause(call);
    pause = evl_min(evl_min(pause * (ahead + 1), evl_max(look_most, ahead * look_each)), 10 * lock->config->terms.ttl);
    pause -= (int64_t)(evl_turn_random(evl_handle_turn(lock)) % (uint64_t)(pause / 2));
    return left != LEASE_NEVER ? evl_min(pause, left + 1000) : pause;
}

/* No later than that, whatever is answered until then. */
static void waiter_look_by(struct call *call, int64_t at) {
    call->acquire.looks_anew = true;
    evl_call_wake(call, evl_min(at, call->alarm.set ? (int64_t)call->alarm.at : call->acquire.wait_until));
}

/* The next moment that is its own, by its ticket. */
static int64_t waiter_moment(const struct call *call, int64_t now) {
    const struct tickets *tickets = &evl_locks_of(call->lock)->tenures.tickets;
    int64_t step = evl_max(evl_min(look_step, look_round / tickets->size), 1);
    int64_t round = step * tickets->size;
    int64_t into = now % round, own = step * evl_tickets_number(evl_tenure_ticket(call->lock->tenure));

    return now - into + own + (own < into ? round : 0);
}

/* Of whom it is not told that others are ahead, may be the first. */
static void waiter_look_anew(struct call *call, bool is_first) {
    struct tenure *tenure = call->lock->tenure;
    bool in_line = tenure && evl_lease_in_line(evl_tenure_lease(tenure));
    int64_t now = waiter_now_of(call->lock);

    waiter_look_by(call, is_first || !in_line || call->acquire.ahead == 0 ? now : waiter_moment(call, now));
}

void evl_waiter_queued(struct evlock *lock, int64_t sent, const struct lease_answer *answer) {
    struct call *call = evl_call_pending(lock, CALL_ACQUIRE);
    int64_t latest = call->acquire.looks_anew ? (int64_t)call->alarm.at : call->acquire.wait_until;

    assert(call && call->acquire.contended);
    if (answer->time)
        evl_node_compare_clocks(waiter_node_of(lock), sent, answer->time);
    evl_queue_open(evl_locks_of(lock), waiter_node_of(lock)); /* its slot may have come to where nobody listens */
    call->acquire.asked_of = (uint16_t)evl_node_index(waiter_node_of(lock));
    call->acquire.asked_at = sent;
    call->acquire.asked_time = answer->time ? answer->time : time_untold;
    call->acquire.ahead = (uint32_t)evl_min(answer->ahead, UINT32_MAX);
    evl_acquire_wait_on(call, (struct trouble){EVLOCK_EHELD, "waiting in the queue"});
    evl_call_wake(call, evl_min(waiter_now_of(lock) + waiter_look_pause(call, answer->ttl), latest));
}

void evl_waiter_away(struct evlock *lock, struct trouble why) {
    struct call *call = evl_call_pending(lock, CALL_ACQUIRE);

    assert(call && call->acquire.contended);
    evl_acquire_wait_on(call, why);
}

void evl_waiter_back(struct evlock *lock) {
    struct call *call = evl_call_pending(lock, CALL_ACQUIRE);

    assert(call && call->acquire.contended);
    waiter_look_anew(call, false);
}

/* A waiter has nothing under way most of the time, by which it would learn that. */
void evl_waiters_left(struct locks *locks) {
    struct call *call;

    TAILQ_FOREACH (call, &locks->pending, link)
        if (call->sort->kind == CALL_ACQUIRE && call->acquire.fail_when_away && evl_lock_queues(call->lock))
            evl_call_wake(call, waiter_now_of(call->lock));
}

/* The client does, since the newest answered look was asked for. */
static bool waiter_listens_anew(const struct call *call) {
    const struct node *node = call->lock->config->deployment->nodes[call->acquire.asked_of];

    return call->acquire.asked_time && call->acquire.asked_at < evl_listener_since(node->listener);
}

/* A grant whose time is not known is looked at: it may be one from before the last look, and is over then. Else the
 * lease counts from a moment that is no later than the grant: the newest answered look was before it, by as much as
 * the server's clock went on meanwhile, less what that may be fast by. Before the first answer, it is when that look
 * was asked for. A grant from before that look is over, for the look found it waiting again; one without the fence that
 * was asked for is none. Of a new connection it is not known yet whether it leads to the server with that clock: the
 * lease counts from that look, unless much of it is over then. Another master than the one that answered has another.
 */
static void waiter_grant(struct evlock *lock, unsigned node, const struct lease_answer *yes) {
    struct call *call = evl_call_pending(lock, CALL_ACQUIRE);
    int64_t passed = yes->time - call->acquire.asked_time;
    int64_t since = call->acquire.asked_at + passed - passed / 100;
    unsigned asked_of = call->acquire.asked_time ? call->acquire.asked_of : evl_node_index(waiter_node_of(lock));
    int64_t now = waiter_now_of(lock), oldest = now - evl_lease_terms(evl_tenure_lease(lock->tenure))->ttl / 4;
    bool anew = node == asked_of && waiter_listens_anew(call);

    assert(evl_lock_queues(lock) && call->acquire.contended);
    if (node != asked_of || !yes->time || call->acquire.asked_time == time_untold ||
        (anew && call->acquire.asked_at < oldest)) {
        waiter_look_by(call, now);
        return;
    }
    if (passed < 0 || (call->acquire.fenced && yes->fence == 0))
        return;
    if (!call->acquire.asked_time)
        since = evl_lease_sent(evl_tenure_lease(lock->tenure), 0);
    else if (anew)
        since = call->acquire.asked_at;
    call->acquire.handed = true;
    evl_tenure_granted(lock->tenure, evl_min(since, now), yes, now);
}

/* --- From the listener -------------------------------------------------------------------------------------------- */

static struct locks *waiter_locks_of(struct listener *listener) {
    return EVL_OWNER(struct locks, tenures.deployment.turn, listener->login.connection.turn);
}

/* What comes next is not decided otherwise. */
static bool waiter_may_look(const struct call *call) {
    return call->sort->kind == CALL_ACQUIRE && !call->aside && call->acquire.contended && evl_cohort_leads(call) &&
           !evl_acquire_looks(call);
}

/* It is to look at this master next, or has looked there last: a slot on its way is the old master's until it is not.
 */
static bool waiter_is_at(const struct evlock *lock, unsigned place) {
    return evl_node_index(evl_handle_home(lock)) == place ||
           (lock->tenure && evl_node_index(waiter_node_of(lock)) == place);
}

/* What was granted meanwhile was not heard, and who was not listening may have been passed over. Who has waited longest
 * may have come to be the first since it looked. */
static void waiter_on_listens(struct listener *listener) {
    bool is_first = true;
    struct call *call;

    evl_queue_succeed(waiter_locks_of(listener), listener);
    TAILQ_FOREACH (call, &waiter_locks_of(listener)->pending, link) {
        if (!waiter_may_look(call) || !waiter_is_at(call->lock, evl_listener_index(listener)))
            continue;
        waiter_look_anew(call, is_first);
        is_first = false;
    }
}

/* What stands behind the ticket of a waiter that asked for so many fences besides its own; false: no clock shows such a
 * time, or no counter such fences. */
static bool waiter_read_grant(const char *text, int64_t asked, struct lease_answer *ret) {
    int64_t spare = 0;
    char *end;

    ret->verdict = LEASE_YES;
    ret->time = strtoll(text, &end, 10);
    ret->fence = strtoll(end, &end, 10);
    if (*end && (spare = strtoll(end, &end, 10)) < 1)
        return false;
    ret->spare = (uint16_t)spare;
    return !*end && ret->time >= 0 && ret->time < LEASE_NEVER / 4 && ret->fence >= 0 && ret->fence < LEASE_NEVER / 4 &&
           spare <= asked;
}

/* "TICKET TIME FENCE" or "TICKET TIME FENCE SPARE": a grant, the server's clock in microseconds at that, and what it
 * drew. One that finds nobody is of an attempt that was given up, and is undone by that. */
static void waiter_on_heard(struct listener *listener, const char *message) {
    const char *rest;
    struct tenure *tenure = evl_tickets_find(&waiter_locks_of(listener)->tenures.tickets, message, &rest);
    struct lease_answer yes = {0};

    if (tenure && waiter_read_grant(rest, evl_lease_spare(evl_tenure_lease(tenure)), &yes))
        waiter_grant(tenure->lock, evl_listener_index(listener), &yes);
}

const struct listener_hooks evl_waiter_hooks = {.listens = waiter_on_listens, .heard = waiter_on_heard};
