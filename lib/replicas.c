/*
 * Replicas: whether a grant has reached enough of them. WAIT holds up what is behind it, so it goes over a second
 * connection to each node; it tells of the writes of its own connection alone, so a renewal goes ahead of it there. A
 * quorum of nodes must confirm; the lease runs meanwhile, and is given up if they do not.
 */
#include "lock.h"
#include "status.h"

static bool take(struct request *request, int64_t now, struct command *command) {
    const struct call *call = evl_call_of(request);
    const struct evlock *lock = call->lock;
    struct tenure *tenure = lock->tenure;

    (void)now;
    if (call->acquire.waiting & 1U << request->node)
        evl_command_wait(command, lock->config->min_replicas, lock->config->replica_timeout);
    else
        evl_command_lease(command, LEASE_RENEW, evl_lock_key(lock), token_of(tenure), lease_of(tenure)->terms->ttl);
    return true;
}

static void stop(struct call *call) {
    for (unsigned i = 0; i < call->count; i++)
        evl_node_withdraw(&client_of(call->lock)->links[i], &call->requests[i]);
    call->linked = false;
}

void evl_replicas_fail(struct call *call, const char *why) {
    stop(call);
    evl_error_set(why);
    evl_lock_fail(call->lock, call, EVLOCK_EREPLICAS);
}

static void decide(struct call *call) {
    struct evlock *lock = call->lock;
    unsigned quorum = evl_client_quorum(client_of(lock));

    if ((unsigned)__builtin_popcount(call->acquire.confirmed) >= quorum) {
        stop(call);
        evl_lock_grant(lock, call);
    } else if ((unsigned)__builtin_popcount(call->acquire.denied) > call->count - quorum) {
        evl_replicas_fail(call, "too few replicas have it");
    }
}

static bool answer(struct request *request, const struct reply *reply, int64_t now) {
    struct call *call = evl_call_of(request);
    struct evlock *lock = call->lock;
    uint16_t node = (uint16_t)(1U << request->node);
    bool number = reply->type == REPLY_INTEGER;

    if (call->finished || !call->linked || !(call->acquire.asked & node)) {
        evl_call_settle(call);
        return true;
    }
    if (number && reply->integer > 0 && !(call->acquire.waiting & node)) {
        call->acquire.waiting |= node;
        evl_node_submit(&client_of(lock)->links[request->node], request, now);
        return true;
    }
    if (number && reply->integer >= lock->config->min_replicas)
        call->acquire.confirmed |= node;
    else
        call->acquire.denied |= node;
    decide(call);
    return true;
}

static void away(struct request *request, int status, int64_t now) {
    struct call *call = evl_call_of(request);

    (void)status;
    (void)now;
    evl_node_withdraw(&client_of(call->lock)->links[request->node], request);
    call->acquire.denied |= (uint16_t)(1U << request->node);
    decide(call);
}

const struct request_ops evl_replicas_requests = {take, answer, NULL, away};

/* A node whose last WAIT is not over, of an attempt before this one, is not asked. */
void evl_replicas_ask(struct call *call) {
    struct evlock_client *client = client_of(call->lock);
    int64_t now = evl_client_now(client), late = now + call->lock->config->replica_timeout;

    call->linked = true;
    evl_call_ask(call, REQUEST_REPLICAS);
    call->acquire.asked = call->acquire.waiting = call->acquire.confirmed = call->acquire.denied = 0;
    evl_alarm_set(&client->alarms, &call->alarm, late < call->acquire.wait_until ? late : call->acquire.wait_until);
    for (unsigned i = 0; i < call->count; i++) {
        uint16_t node = (uint16_t)(1U << i);
        if (call->requests[i].flying || client->links[i].state == NODE_AWAY) {
            call->acquire.denied |= node;
            continue;
        }
        call->acquire.asked |= node;
        evl_node_submit(&client->links[i], &call->requests[i], now);
    }
    decide(call);
}
