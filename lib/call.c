/* Calls and their ends; see call.h. */
#include "call.h"

#include <assert.h>
#include <string.h>

#include "lock.h"
#include "memory.h"
#include "stats.h"
#include "status.h"

size_t evl_call_size(unsigned nodes) {
    return sizeof(struct call) + nodes * sizeof(struct request);
}

static void enlist(struct call *call) {
    struct evlock *lock = call->lock;
    struct call *newest = lock->calls ? lock->calls->previous : call;

    call->previous = newest;
    call->next = NULL;
    if (lock->calls)
        newest->next = lock->calls->previous = call;
    else
        lock->calls = call;
    TAILQ_INSERT_TAIL(&client_of(lock)->pending, call, link);
}

static void delist(struct call *call) {
    struct evlock *lock = call->lock;

    if (call->next)
        call->next->previous = call->previous;
    else
        lock->calls->previous = call->previous;
    if (call == lock->calls)
        lock->calls = call->next;
    else
        call->previous->next = call->next;
    TAILQ_REMOVE(&client_of(lock)->pending, call, link);
}

struct call *evl_call_new(struct evlock *lock, enum call_kind kind, void *arg) {
    struct call *call;

    call = evl_pool_alloc(&client_of(lock)->calls);
    if (!call)
        return NULL;
    call->lock = lock;
    call->kind = (uint8_t)kind;
    call->arg = arg;
    call->alarm.kind = ALARM_CALL;
    evl_lock_ref(lock);
    enlist(call);
    return call;
}

void evl_call_ask(struct call *call, enum request_kind kind) {
    call->count = (uint8_t)client_of(call->lock)->node_count;
    for (unsigned i = 0; i < call->count; i++)
        if (!call->requests[i].flying)
            evl_request_init(&call->requests[i], call, kind, i);
}

void evl_call_drop(struct call *call) {
    delist(call);
    evl_call_free(call);
}

void evl_call_free(struct call *call) {
    struct evlock_client *client = client_of(call->lock);

    evl_lock_unref(call->lock);
    evl_free(call->error);
    if (call->kind == CALL_ACQUIRE || call->kind == CALL_ADOPT)
        evl_free(call->acquire.token);
    else if (call->kind != CALL_EXTEND && call->kind != CALL_RELEASE)
        evl_query_free(call);
    if (client)
        evl_pool_free(&client->calls, call);
    else
        evl_free(call);
}

void evl_call_finish(struct call *call, int status) {
    struct evlock *lock = call->lock;
    struct evlock_client *client = client_of(lock);

    call->status = status;
    if (!call->error)
        evl_call_note(call);
    for (unsigned i = 0; i < call->count; i++)
        evl_node_withdraw(call->linked ? &client->links[i] : &client->nodes[i], &call->requests[i]);
    evl_alarm_set(&client->alarms, &call->alarm, INT64_MAX);
    call->finished = true;
    delist(call);
    TAILQ_INSERT_TAIL(&client->done, call, link);
    evl_client_rearm(client);
}

void evl_call_finish_forked(struct call *call) {
    call->finished = true;
    delist(call);
    TAILQ_INSERT_TAIL(&client_of(call->lock)->done, call, link);
}

void evl_call_note(struct call *call) {
    const char *words = evlock_last_error();

    evl_free(call->error);
    call->error = words[0] ? evl_dup(words, strlen(words)) : NULL; /* without memory, the status must do */
}

void evl_call_cancel(struct call *call) {
    evl_error_clear();
    evl_call_note(call);
    if (call->finished)
        call->status = EVLOCK_ECANCELLED;
    else
        evl_call_finish(call, EVLOCK_ECANCELLED);
}

void evl_call_reopen(struct call *call) {
    TAILQ_REMOVE(&client_of(call->lock)->done, call, link);
    enlist(call);
    call->finished = false;
}

static void count_acquire(const struct call *call, struct evlock_stats *stats) {
    if (call->status != EVLOCK_OK) {
        stats->failed++;
        return;
    }
    stats->acquired++;
    stats->handed += call->acquire.handed;
    stats->waited += call->acquire.attempts > 1 || call->acquire.asked_time || call->acquire.handed;
    evl_stats_count(stats->wait, evl_lease_since(lease_of(call->lock->tenure)) - call->acquire.begun);
}

void evl_call_tell(struct call *call) {
    struct evlock *lock = call->lock;
    evlock *handle = lock->freed ? NULL : lock;

    if (lock->untold == call)
        lock->untold = NULL;
    if (call->kind == CALL_ACQUIRE && client_of(lock))
        count_acquire(call, &client_of(lock)->stats);
    evl_error_clear();
    if (call->error && call->status != EVLOCK_OK)
        evl_error_set(call->error);
    if (call->cb)
        call->cb(handle, call->status, call->arg);
    else if (call->value_cb)
        call->value_cb(handle, call->status, call->status == EVLOCK_OK ? call->value : 0, call->arg);
    else if (call->text_cb)
        call->text_cb(handle, call->status, call->query.name ? call->query.name : "", call->query.name_len, call->arg);
    call->told = true; /* not before: what was called may have ended the connection, and with it the last request */
    evl_call_settle(call);
}

void evl_call_settle(struct call *call) {
    for (unsigned i = 0; i < call->count; i++)
        if (call->requests[i].flying)
            return;
    if (call->told)
        evl_call_free(call);
}

struct call *evl_call_of(struct request *request) {
    return owner_of(request);
}
