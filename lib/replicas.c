/*
 * Replicas: whether a grant has reached enough of them. WAIT holds up what is behind it, so it goes over a second
 * connection to each node; it tells of the writes before the last command of its own connection, so a renewal goes
 * ahead of it there, which also shows that this server has the lease. A quorum of nodes must confirm; the lease runs
 * meanwhile, and is given up if they do not.
 */
#include <string.h>

#include "dialect.h"
#include "least.h"
#include "lock.h"
#include "quorum.h"
#include "status.h"

static bool take(struct request *request, int64_t now, struct command *command) {
    const struct call *call = evl_call_of(request);
    const struct evlock *lock = call->lock;
    enum ask ask = call->acquire.waiting & 1U << request->node ? ASK_REPLICAS : ASK_RENEWAL;
    const struct subject subject = {
        .key = evl_lock_key(lock),
        .token = token_of(lock->tenure),
        .ttl = evl_lease_terms(lease_of(lock->tenure))->ttl,
        .replicas = lock->config->min_replicas,
        .timeout = lock->config->replica_timeout,
    };

    (void)now;
    evl_command_write(command, &evl_dialect(lock->config->queue, false, false)->asks[ask]->form, &subject);
    return true;
}

static void stop(struct call *call) {
    for (unsigned i = 0; i < call->count; i++)
        evl_node_withdraw(&client_of(call->lock)->links[i], &call->requests[i]);
    call->linked = false;
}

static void fail(struct call *call, int status) {
    stop(call);
    evl_lock_fail(call->lock, call, status);
}

void evl_replicas_fail(struct call *call, const char *why) {
    evl_error_set(why);
    fail(call, EVLOCK_EREPLICAS);
}

/* What can still come of it; `status` is what it fails with. The words are those of the node that was heard last. */
static void decide(struct call *call, int status) {
    struct evlock *lock = call->lock;

    if (evl_quorum_reached(call->count, (unsigned)__builtin_popcount(call->acquire.confirmed))) {
        stop(call);
        evl_lock_grant(lock, call);
    } else if (evl_quorum_missed(call->count, (unsigned)__builtin_popcount(call->acquire.denied))) {
        if (!evlock_last_error()[0])
            evl_error_set("too few replicas have it");
        fail(call, status);
    }
}

/* Among several nodes, one that refuses for good is one that does not confirm. */
static int status_of(const struct call *call, struct reply_meaning meaning) {
    return call->count == 1 && meaning.verdict == LEASE_FORBIDDEN ? meaning.status : EVLOCK_EREPLICAS;
}

static void deny(struct call *call, uint16_t node, int status) {
    call->acquire.denied |= node;
    decide(call, status);
}

static void on_refused(struct call *call, struct request *request, const char *error, int64_t now) {
    struct reply_meaning meaning = evl_reply_meaning(error);
    uint16_t node = (uint16_t)(1U << request->node);

    if (meaning.verdict == LEASE_AGAIN && !(call->acquire.waiting & node)) {
        evl_node_submit(&client_of(call->lock)->links[request->node], request, now);
        return;
    }
    evl_error_set(error);
    deny(call, node, status_of(call, meaning));
}

/* Of several nodes, the second connection leads to the server that the node's own one was made to last. Or else it may
 * be a server that has another address among the nodes: its replicas would confirm twice. */
static bool leads_home(const struct call *call, unsigned node) {
    const struct evlock_client *client = client_of(call->lock);

    return client->node_count == 1 || strcmp(client->links[node].run_id, client->nodes[node].old_run_id) == 0;
}

/* The replicas are asked on the connection on which the renewal was answered, or not at all: what is known to another
 * server's says nothing of this one's writes. */
static bool answer(struct request *request, const struct reply *reply, int64_t now) {
    struct call *call = evl_call_of(request);
    uint16_t node = (uint16_t)(1U << request->node);
    int64_t number = reply->type == REPLY_INTEGER ? reply->integer : 0;

    if (call->finished || !call->linked || !(call->acquire.asked & node)) {
        evl_call_settle(call);
    } else if (reply->type == REPLY_ERROR) {
        on_refused(call, request, reply->text, now);
    } else if (!(call->acquire.waiting & node) && number > 0 && leads_home(call, request->node)) {
        call->acquire.waiting |= node;
        evl_node_follow(&client_of(call->lock)->links[request->node], request, now);
    } else if (call->acquire.waiting & node && number >= call->lock->config->min_replicas) {
        call->acquire.confirmed |= node;
        decide(call, EVLOCK_EREPLICAS);
    } else {
        deny(call, node, EVLOCK_EREPLICAS);
    }
    return reply->type == REPLY_INTEGER || reply->type == REPLY_ERROR || reply->type == REPLY_LOST;
}

static void away(struct request *request, int status, int64_t now) {
    struct call *call = evl_call_of(request);

    (void)status;
    (void)now;
    evl_node_withdraw(&client_of(call->lock)->links[request->node], request);
    deny(call, (uint16_t)(1U << request->node), EVLOCK_EREPLICAS);
}

const struct request_ops evl_replicas_requests = {take, answer, NULL, away};

/* A node whose last WAIT is not over, of an attempt before this one, is not asked. */
void evl_replicas_ask(struct call *call) {
    struct evlock_client *client = client_of(call->lock);
    int64_t now = evl_client_now(client);

    call->linked = true;
    evl_call_ask(call, REQUEST_REPLICAS);
    call->acquire.asked = call->acquire.waiting = call->acquire.confirmed = call->acquire.denied = 0;
    call->acquire.replicas_by = now + call->lock->config->replica_timeout;
    evl_alarm_set(&client->alarms, &call->alarm, min64(call->acquire.replicas_by, call->acquire.wait_until));
    for (unsigned i = 0; i < call->count; i++) {
        uint16_t node = (uint16_t)(1U << i);
        if (call->requests[i].flying || client->links[i].state == NODE_AWAY) {
            evl_error_set(client->links[i].error);
            call->acquire.denied |= node;
            continue;
        }
        call->acquire.asked |= node;
        evl_node_submit(&client->links[i], &call->requests[i], now);
    }
    decide(call, EVLOCK_EREPLICAS);
}
