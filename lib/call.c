/* Calls and their ends; see call.h. */
#include "call.h"

#include <string.h>

#include "check.h"
#include "memory.h"

size_t evl_call_size(unsigned nodes) {
    return sizeof(struct call) + nodes * sizeof(struct request);
}

/* Bodies are found apart, since a client that closes waits for them. */
static struct calls *call_list_of(const struct call *call) {
    struct locks *locks = evl_locks_of(call->lock);

    return call->sort->kind == CALL_RUN ? &locks->running : &locks->pending;
}

static void call_enlist(struct call *call) {
    struct evlock *lock = call->lock;
    struct call *newest = lock->calls ? lock->calls->previous : call;

    call->previous = newest;
    call->next = NULL;
    if (lock->calls)
        newest->next = lock->calls->previous = call;
    else
        lock->calls = call;
    TAILQ_INSERT_TAIL(call_list_of(call), call, link);
}

static void call_delist(struct call *call) {
    struct evlock *lock = call->lock;

    if (call->next)
        call->next->previous = call->previous;
    else
        lock->calls->previous = call->previous;
    if (call == lock->calls)
        lock->calls = call->next;
    else
        call->previous->next = call->next;
    TAILQ_REMOVE(call_list_of(call), call, link);
}

struct call *evl_call_new(struct evlock *lock, const struct call_sort *sort, void *arg) {
    struct call *call = evl_slab_alloc(&evl_locks_of(lock)->calls);

    if (!call)
        return NULL;
    call->lock = lock;
    call->sort = sort;
    call->arg = arg;
    call->alarm.kind = ALARM_CALL;
    evl_handle_ref(lock);
    call_enlist(call);
    evl_check(evl_call_check(call));
    return call;
}

struct call *evl_call_pending(const struct evlock *lock, enum call_kind kind) {
    struct call *call;

    for (call = lock->calls; call; call = call->next)
        if (call->sort->kind == kind)
            return call;
    return NULL;
}

struct call *evl_call_hold(const struct evlock *lock) {
    struct call *call;

    for (call = lock->calls; call; call = call->next)
        if (call->sort->noticed)
            return call;
    return NULL;
}

void evl_call_ask(struct call *call, enum request_kind kind) {
    call->count = (uint8_t)call->lock->config->deployment->votes;
    for (unsigned i = 0; i < call->count; i++)
        if (!call->requests[i].flying)
            evl_request_init(&call->requests[i], call, kind, i);
}

struct pipe *evl_call_pipe(const struct call *call, unsigned vote) {
    struct node *node = call->lock->config->deployment->nodes[call->requests[vote].node];

    return call->requests[vote].kind == REQUEST_REPLICAS ? node->side : &node->pipe;
}

void evl_call_submit(struct call *call, unsigned vote) {
    struct request *request = &call->requests[vote];

    evl_deployment_route(call->lock->config->deployment, request, evl_handle_key(call->lock));
    evl_pipe_submit(evl_call_pipe(call, vote), request, evl_turn_now(evl_handle_turn(call->lock)));
}

const struct dialect *evl_call_dialect(const struct call *call) {
    return evl_dialect(call->lock->config->kind, TAKE_AT_ONCE);
}

void evl_call_withdraw(struct call *call) {
    for (unsigned i = 0; i < call->count; i++)
        evl_pipe_withdraw(evl_call_pipe(call, i), &call->requests[i]);
}

void evl_call_wake(struct call *call, int64_t at) {
    assert(at == INT64_MAX || (call->sort->kind == CALL_ACQUIRE && !call->ended));
    evl_turn_wake(evl_handle_turn(call->lock), &call->alarm, at);
}

int64_t evl_call_pause(const struct call *call) {
    int64_t delay = call->acquire.retry_delay;
    int64_t jitter = delay * call->lock->config->retry_jitter / 100;

    return jitter ? delay - (int64_t)(evl_turn_random(evl_handle_turn(call->lock)) % (uint64_t)(jitter + 1)) : delay;
}

static void call_leave(struct call *call) {
    if (call->sort->ended && call->acquire.cohort)
        call->sort->ended(call);
    call_delist(call);
}

void evl_call_drop(struct call *call) {
    call_leave(call);
    evl_call_free(call);
}

void evl_call_free(struct call *call) {
    evl_handle_unref(call->lock);
    evl_free(call->error);
    if (call->sort->free)
        call->sort->free(call);
    evl_slab_free(call);
}

void evl_call_end(struct call *call, int status, const char *words) {
    struct locks *locks = evl_locks_of(call->lock);

    assert(!call->ended);
    call->status = status;
    if (!call->error)
        evl_call_note(call, words);
    evl_call_withdraw(call);
    evl_call_wake(call, INT64_MAX);
    call->ended = true;
    call_leave(call);
    TAILQ_INSERT_TAIL(&locks->done, call, link);
    evl_check(evl_call_check(call));
    evl_turn_rearm(evl_handle_turn(call->lock));
}

void evl_call_end_forked(struct call *call) {
    assert(!call->ended);
    call->ended = true;
    call_leave(call);
    TAILQ_INSERT_TAIL(&evl_locks_of(call->lock)->done, call, link);
}

void evl_call_note(struct call *call, const char *words) {
    evl_free(call->error);
    call->error = words[0] ? evl_dup(words, strlen(words)) : NULL; /* without memory, the status must do */
}

void evl_call_cancel(struct call *call) {
    evl_call_note(call, "");
    if (call->ended)
        call->status = EVLOCK_ECANCELLED;
    else
        evl_call_end(call, EVLOCK_ECANCELLED, "");
}

void evl_call_reopen(struct call *call) {
    assert(call->ended && !call->told);
    TAILQ_REMOVE(&evl_locks_of(call->lock)->done, call, link);
    if (evl_call_passed(call)) {
        evl_locks_of(call->lock)->passed--;
        call->acquire.passed = false;
    }
    evl_call_go_on(call);
}

void evl_call_go_on(struct call *call) {
    call_enlist(call);
    call->ended = false;
    evl_check(evl_call_check(call));
}

void evl_call_go_on_as(struct call *call, const struct call_sort *sort) {
    if (!call->ended)
        call_delist(call);
    if (call->sort->free)
        call->sort->free(call);
    call->sort = sort;
    call->aside = false;
    evl_call_go_on(call);
}

void evl_call_free_told(struct call *call) {
    for (unsigned i = 0; i < call->count; i++)
        if (call->requests[i].flying)
            return;
    if (call->told)
        evl_call_free(call);
}

struct call *evl_call_of(struct request *request) {
    return evl_request_owner(request);
}

/* --- Invariants --------------------------------------------------------------------------------------------------- */
#ifdef EVL_CHECKS

/* It is in its handle's ring: of the oldest, the one before is the newest. */
static void call_check_pending(const struct call *call) {
    const struct call *oldest = call->lock->calls;

    assert(oldest && !call->told);
    assert(call == oldest ? !call->previous->next : call->previous->next == call);
    assert(call->next ? call->next->previous == call : oldest->previous == call);
}

void evl_call_check(const struct call *call) {
    const struct deployment *deployment = call->lock->config->deployment;

    evl_handle_check(call->lock);
    implies(!call->ended, call->lock->references > 0);
    implies(call->sort->kind == CALL_RUN, call->body);
    implies(call->body || call->made, call->sort->kind <= CALL_RELEASE && call->sort->kind != CALL_ADOPT && !call->cb);
    implies(call->aside, call->sort->kind == CALL_ACQUIRE && (deployment->cluster || deployment->nodes[0]->side));
    implies(call->alarm.set, call->sort->kind == CALL_ACQUIRE && !call->ended);
    assert(call->count == 0 || call->count == deployment->votes);
    for (unsigned i = 0; i < call->count; i++) {
        const struct request *request = &call->requests[i];
        assert((const char *)request - request->back == (const char *)call);
        implies(request->waiting, !call->ended && request->vote == i);
        evl_request_check(request);
    }
    if (!call->ended)
        call_check_pending(call);
}

void evl_calls_check_all(const struct locks *locks) {
    const struct evlock *lock;
    const struct call *call;

    TAILQ_FOREACH (call, &locks->pending, link) {
        assert(!call->ended && call->sort->kind != CALL_RUN);
        evl_call_check(call);
    }
    TAILQ_FOREACH (call, &locks->running, link) {
        assert(!call->ended && call->sort->kind == CALL_RUN);
        evl_call_check(call);
    }
    TAILQ_FOREACH (call, &locks->done, link) {
        assert(call->ended && !call->told);
        evl_call_check(call);
    }
    STAILQ_FOREACH (lock, &locks->noticed, notice) {
        assert(lock->noticed);
        evl_handle_check(lock);
    }
    STAILQ_FOREACH (lock, &locks->announced, notice) {
        assert(lock->noticed);
        evl_handle_check(lock);
    }
}

#endif
