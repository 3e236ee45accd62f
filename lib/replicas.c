/* Replicas; see replicas.h. */
#include "replicas.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "acquire.h"
#include "dialect.h"
#include "minmax.h"
#include "quorum.h"

static bool replicas_take(struct request *request, int64_t now, struct command *command) {
    const struct call *call = evl_call_of(request);
    const struct evlock *lock = call->lock;
    enum ask ask = call->acquire.waiting & 1U << request->vote ? ASK_REPLICAS : ASK_RENEWAL;
    const struct subject subject = {
        .key = evl_handle_key(lock),
        .token = evl_tenure_token(lock->tenure),
        .ttl = evl_lease_terms(evl_tenure_lease(lock->tenure))->ttl,
        .replicas = lock->config->min_replicas,
        .timeout = lock->config->replica_wait,
    };

    (void)now;
    evl_command_write(command, &evl_call_dialect(call)->asks[ask]->form, &subject);
    return true;
}

/* What can still come of it; `why` is what it fails with: the words are those of the node that was heard last. Without
 * those that never will, and among several nodes, it may come another time. */
static void replicas_decide(struct call *call, struct trouble why) {
    if (evl_quorum_reached(call->count, (unsigned)__builtin_popcount(call->acquire.confirmed))) {
        evl_call_withdraw(call);
        call->aside = false;
        evl_acquire_grant(call);
    } else if (evl_quorum_missed(call->count, (unsigned)__builtin_popcount(call->acquire.denied))) {
        if (!evl_quorum_missed(call->count, (unsigned)__builtin_popcount(call->acquire.hopeless)))
            why.status = EVLOCK_EREPLICAS;
        if (!why.words[0])
            why.words = "too few replicas have it";
        evl_acquire_drop(call, why);
    }
}

static void replicas_count_out(struct call *call, uint16_t node, int status) {
    call->acquire.denied |= node;
    if (status != EVLOCK_EREPLICAS)
        call->acquire.hopeless |= node;
}

static void replicas_deny(struct call *call, uint16_t node, int status, const char *words) {
    replicas_count_out(call, node, status);
    replicas_decide(call, (struct trouble){status, words});
}

static const struct node *replicas_node_of(const struct call *call, unsigned vote) {
    return call->lock->config->deployment->nodes[call->requests[vote].node];
}

static struct login *replicas_login_of(const struct call *call, unsigned vote) {
    return &replicas_node_of(call, vote)->side->login;
}

/* Among several nodes, one that refuses for good is one that does not confirm, but for one that cannot be asked. */
static int replicas_status_of(const struct call *call, struct reply_meaning meaning) {
    bool final = call->count == 1 ? meaning.verdict == LEASE_FORBIDDEN : meaning.status == EVLOCK_EUNSUPPORTED;

    return final ? meaning.status : EVLOCK_EREPLICAS;
}

/* Of a cluster, the second connection to a master is made when it is needed, and it may be another master by then.
 * False: there is none to ask. */
static bool replicas_find_side(struct call *call, unsigned vote) {
    struct deployment *deployment = call->lock->config->deployment;
    struct node *node = evl_deployment_route(deployment, &call->requests[vote], evl_handle_key(call->lock));

    if (!deployment->cluster)
        return true;
    if (!evl_cluster_counts(node) || !evl_deployment_add_side(deployment, node))
        return false;
    evl_connection_want(evl_pipe_connection(node->side));
    return true;
}

static void replicas_submit(struct request *request, int64_t now) {
    struct call *call = evl_call_of(request);

    if (replicas_find_side(call, request->vote))
        evl_pipe_submit(evl_call_pipe(call, request->vote), request, now);
    else
        replicas_deny(call, (uint16_t)(1U << request->vote), EVLOCK_EREPLICAS, "its slot is on its way");
}

/* A lock that is kept elsewhere by now may not be known to the replicas of that. */
static bool replicas_has_moved(const struct call *call) {
    return call->lock->config->deployment->cluster &&
           call->acquire.asked_in != evl_node_index(evl_handle_home(call->lock));
}

static void replicas_on_refused(struct call *call, struct request *request, const struct reply *reply, int64_t now) {
    struct reply_meaning meaning = evl_reply_meaning(reply->error);
    uint16_t node = (uint16_t)(1U << request->vote);

    if (meaning.verdict == LEASE_AGAIN && !(call->acquire.waiting & node)) {
        replicas_submit(request, now);
        return;
    }
    if (call->acquire.waiting & node && evl_reply_is_lacking(meaning))
        evl_login_lacks(replicas_login_of(call, request->vote), EVLOCK_MISSING_WAIT, reply->text);
    replicas_deny(call, node, replicas_status_of(call, meaning), reply->text);
}

/* Whether the server sees both as one connection. A number says nothing beside that of another process. */
static bool replicas_are_one(const struct login *side, const struct login *own) {
    return side->server.id && side->server.id == own->server.id && strcmp(side->server.run_id, own->server.run_id) == 0;
}

/* Why no answer of a node would say anything of its replicas; NULL: it would. What a proxy sends on a shared connection
 * is not known to be behind what it sent before. */
static const char *replicas_hopeless(const struct call *call, unsigned node) {
    const struct login *side = replicas_login_of(call, node);
    const struct login *own = &replicas_node_of(call, node)->pipe.login;

    if (side->server.shared || replicas_are_one(side, own))
        return "a proxy shares its connections, on which replicas cannot be asked";
    return NULL;
}

/* Too few. A server waits for as long as it was told to; one that does not counts no more of them. */
static void replicas_on_few(struct call *call, unsigned node, int64_t number, int64_t now) {
    int64_t passed = now - (call->acquire.replicas_by - call->lock->config->replica_wait);
    bool waited = number == 0 || passed >= call->lock->config->replica_wait / 2;
    char words[96];

    snprintf(words, sizeof(words), "%" PRId64 " of %" PRId64 " replicas have it%s", number,
             call->lock->config->min_replicas, waited ? "" : ", and the server waits for no more");
    replicas_deny(call, (uint16_t)(1U << node), waited ? EVLOCK_EREPLICAS : EVLOCK_EUNSUPPORTED, words);
}

/* Of several nodes, the second connection leads to the server that the node's own one was made to last. Or else it may
 * be a server that has another address among the nodes: its replicas would confirm twice. */
static bool replicas_leads_home(const struct call *call, unsigned node) {
    const struct node *home = replicas_node_of(call, node);

    return call->count == 1 || strcmp(home->side->login.server.run_id, home->pipe.login.before.run_id) == 0;
}

/* The replicas are asked on the connection on which the renewal was answered, or not at all: what is known to another
 * server's says nothing of this one's writes. */
static bool replicas_answer(struct request *request, const struct reply *reply, int64_t now) {
    struct call *call = evl_call_of(request);
    uint16_t node = (uint16_t)(1U << request->vote);
    int64_t number = reply->type == REPLY_INTEGER ? reply->integer : 0;
    const char *hopeless;

    if (call->ended || !call->aside || !(call->acquire.asked & node)) {
        evl_call_free_told(call);
    } else if (reply->type == REPLY_ERROR) {
        replicas_on_refused(call, request, reply, now);
    } else if ((hopeless = replicas_hopeless(call, request->vote))) {
        replicas_deny(call, node, EVLOCK_EUNSUPPORTED, hopeless);
    } else if (!(call->acquire.waiting & node) && number != 0 && replicas_leads_home(call, request->vote)) {
        call->acquire.waiting |= node;
        call->acquire.asked_in = (uint16_t)evl_node_index(evl_handle_home(call->lock));
        evl_pipe_follow(evl_call_pipe(call, request->vote), request, now);
    } else if (call->acquire.waiting & node && replicas_has_moved(call)) {
        replicas_deny(call, node, EVLOCK_EREPLICAS, "its slot went to another master meanwhile");
    } else if (call->acquire.waiting & node && number >= call->lock->config->min_replicas) {
        replicas_login_of(call, request->vote)->server.missing &= ~(uint32_t)EVLOCK_MISSING_WAIT;
        call->acquire.confirmed |= node;
        replicas_decide(call, (struct trouble){EVLOCK_EREPLICAS, ""});
    } else if (call->acquire.waiting & node && reply->type == REPLY_INTEGER) {
        replicas_on_few(call, request->vote, number, now);
    } else {
        replicas_deny(call, node, EVLOCK_EREPLICAS, "");
    }
    return reply->type == REPLY_INTEGER || reply->type == REPLY_ERROR || reply->type == REPLY_LOST;
}

static void replicas_away(struct request *request, struct trouble why, int64_t now) {
    struct call *call = evl_call_of(request);

    (void)now;
    evl_pipe_withdraw(evl_call_pipe(call, request->vote), request);
    replicas_deny(call, (uint16_t)(1U << request->vote), EVLOCK_EREPLICAS, why.words);
}

const struct request_ops evl_replicas_requests = {replicas_take, replicas_answer, NULL,
                                                  NULL,          replicas_away,   replicas_submit};

void evl_replicas_fail(struct call *call, const char *why) {
    evl_acquire_drop(call, (struct trouble){EVLOCK_EREPLICAS, why});
}

/* Why a node is not asked: its answer would say nothing, its last WAIT is not over, of an attempt before this one, or
 * it is away. */
static struct trouble replicas_obstacle(struct call *call, unsigned node) {
    const struct connection *side;
    const char *hopeless;

    if (call->requests[node].flying)
        return (struct trouble){EVLOCK_EREPLICAS, ""};
    if (!replicas_find_side(call, node))
        return (struct trouble){EVLOCK_EREPLICAS, "its slot is on its way"};
    side = evl_pipe_connection(evl_call_pipe(call, node));
    hopeless = side->state == CONNECTION_READY ? replicas_hopeless(call, node) : NULL;
    if (hopeless)
        return (struct trouble){EVLOCK_EUNSUPPORTED, hopeless};
    if (side->state == CONNECTION_AWAY)
        return (struct trouble){EVLOCK_EREPLICAS, side->error};
    return evl_no_trouble;
}

void evl_replicas_ask(struct call *call) {
    int64_t now = evl_turn_now(evl_handle_turn(call->lock));
    struct trouble trouble = {EVLOCK_EREPLICAS, ""};

    call->aside = true;
    evl_call_ask(call, REQUEST_REPLICAS);
    call->acquire.asked = call->acquire.waiting = call->acquire.confirmed = call->acquire.denied = 0;
    call->acquire.hopeless = 0;
    call->acquire.replicas_by = now + call->lock->config->replica_wait;
    evl_call_wake(call, evl_min(call->acquire.replicas_by, call->acquire.wait_until));
    for (unsigned i = 0; i < call->count; i++) {
        struct trouble obstacle = replicas_obstacle(call, i);
        uint16_t node = (uint16_t)(1U << i);
        if (obstacle.status != EVLOCK_OK) {
            replicas_count_out(call, node, obstacle.status);
            trouble = obstacle;
            continue;
        }
        call->acquire.asked |= node;
        evl_pipe_submit(evl_call_pipe(call, i), &call->requests[i], now);
    }
    replicas_decide(call, trouble);
}
