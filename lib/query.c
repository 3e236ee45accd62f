/*
 * Queries: what users ask the server about a lock, whoever holds it, and the breaking of it. Each is one command, but
 * for the break: it first reads the token that it then compares and deletes. They change nothing of the handle.
 */
#include <string.h>

#include "lock.h"
#include "log.h"
#include "memory.h"
#include "status.h"

static struct call *call_of(struct request *request) {
    return (struct call *)(void *)((char *)request - offsetof(struct call, request));
}

static bool take(struct request *request, int64_t now, struct command *command) {
    const struct call *call = call_of(request);
    struct bytes key = evl_lock_key(call->lock);
    struct bytes found = {call->query.token, call->query.token_len};

    (void)now;
    if (call->kind == CALL_SERVER_TTL)
        evl_command_key(command, "PTTL", key);
    else if (call->kind == CALL_BREAK && found.data)
        evl_command_lease(command, LEASE_RELEASE, key, found, 0);
    else
        evl_command_key(command, "GET", key);
    return true;
}

static void finish_value(struct call *call, int64_t value) {
    call->value = value;
    evl_call_finish(call, EVLOCK_OK);
}

static bool answer_ttl(struct call *call, const struct reply *reply) {
    if (reply->type != REPLY_INTEGER)
        return false;
    if (reply->integer >= 0)
        finish_value(call, reply->integer);
    else
        evl_call_finish(call, reply->integer == -1 ? EVLOCK_ENOTTL : EVLOCK_ENOTHELD);
    return true;
}

/* The first answer is the token to break, the second whether it was still there. */
static bool answer_break(struct call *call, const struct reply *reply) {
    if (call->query.token) {
        if (reply->type != REPLY_INTEGER)
            return false;
        evl_call_finish(call, reply->integer ? EVLOCK_OK : EVLOCK_ENOTOWNED);
        return true;
    }
    if (reply->type == REPLY_NIL) {
        evl_call_finish(call, EVLOCK_ENOTHELD);
        return true;
    }
    call->query.token = evl_dup(reply->text, reply->len);
    call->query.token_len = reply->len;
    if (call->query.token)
        evl_node_submit(&call->lock->client->node, &call->request);
    else
        evl_call_finish(call, EVLOCK_ENOMEM);
    return reply->type == REPLY_STRING;
}

static bool answer_found(struct call *call, const struct reply *reply) {
    const struct bytes token = {call->query.token, call->query.token_len};

    if (reply->type != REPLY_NIL && reply->type != REPLY_STRING)
        return false;
    if (call->kind == CALL_OWNED)
        finish_value(call, reply->type == REPLY_STRING && reply->len == token.len &&
                               memcmp(reply->text, token.data, token.len) == 0);
    else
        finish_value(call, reply->type == REPLY_STRING);
    return true;
}

/* The command did not run, or may be run twice without harm. */
static bool send_again(struct call *call, const struct reply *reply) {
    bool missing = reply->type == REPLY_ERROR && evl_reply_meaning(reply->text).verdict == LEASE_AGAIN;

    if (!missing && (reply->type != REPLY_LOST || call->query.resent))
        return false;
    call->query.resent = !missing;
    evl_node_submit(&call->lock->client->node, &call->request);
    return true;
}

static bool answer(struct request *request, const struct reply *reply, int64_t now) {
    struct call *call = call_of(request);
    bool fits;

    (void)now;
    if (call->told)
        evl_call_free(call);
    else if (!call->finished && !send_again(call, reply)) {
        if (reply->type == REPLY_ERROR || reply->type == REPLY_LOST) {
            evl_error_set(reply->text);
            evl_call_finish(call, reply->type == REPLY_LOST ? EVLOCK_EUNREACHABLE : evl_reply_meaning(reply->text).status);
            return true;
        }
        fits = call->kind == CALL_SERVER_TTL ? answer_ttl(call, reply)
               : call->kind == CALL_BREAK    ? answer_break(call, reply)
                                             : answer_found(call, reply);
        if (!fits && !call->finished)
            evl_call_finish(call, EVLOCK_EPROTOCOL);
        return fits;
    }
    return true;
}

static void away(struct request *request, int status, int64_t now) {
    (void)now;
    evl_call_finish(call_of(request), status);
}

static const struct request_ops ops = {take, answer, away};

static void begin(struct call *call) {
    struct node *node = &call->lock->client->node;

    call->request.ops = &ops;
    evl_node_submit(node, &call->request);
    if (node->state == NODE_AWAY) {
        evl_error_set(node->error);
        evl_call_finish(call, node->status);
    }
    evl_client_rearm(call->lock->client);
}

static int query(evlock *lock, enum call_kind kind, evlock_value_cb cb, void *arg) {
    struct call *call;
    int status = evl_lock_check(lock);

    if (status != EVLOCK_OK)
        return status;
    if (!cb)
        return evl_fail(EVLOCK_EINVAL, "a query needs a callback");
    call = evl_call_new(lock, kind, arg);
    if (!call)
        return evl_fail(EVLOCK_ENOMEM, "no memory for a query");
    call->value_cb = cb;
    if (kind == CALL_OWNED && evl_lock_holds(lock)) {
        call->query.token = evl_dup(lock->tenure->token, lock->tenure->token_len);
        call->query.token_len = lock->tenure->token_len;
        if (!call->query.token) {
            TAILQ_REMOVE(&lock->calls, call, link);
            evl_call_free(call);
            return evl_fail(EVLOCK_ENOMEM, "no memory for a query");
        }
    }
    if (kind == CALL_OWNED && !call->query.token)
        finish_value(call, 0);
    else
        begin(call);
    return EVLOCK_OK;
}

int evlock_locked(evlock *lock, evlock_value_cb cb, void *arg) {
    return query(lock, CALL_LOCKED, cb, arg);
}

int evlock_owned(evlock *lock, evlock_value_cb cb, void *arg) {
    return query(lock, CALL_OWNED, cb, arg);
}

int evlock_server_ttl(evlock *lock, evlock_value_cb cb, void *arg) {
    return query(lock, CALL_SERVER_TTL, cb, arg);
}

int evlock_break(evlock *lock, evlock_cb cb, void *arg) {
    struct call *call;
    int status = evl_lock_check(lock);

    if (status != EVLOCK_OK)
        return status;
    call = evl_call_new(lock, CALL_BREAK, arg);
    if (!call)
        return evl_fail(EVLOCK_ENOMEM, "no memory for a break");
    call->cb = cb;
    evl_log_lock(lock, EVLOCK_LOG_INFO, "breaking");
    begin(call);
    return EVLOCK_OK;
}
