/* Runs: acquire, work, release, in one call; see run.h. */
#include "run.h"

#include "acquire.h"
#include "check.h"
#include "held.h"

static const struct call_sort runs = {.kind = CALL_RUN};

/* --- Its way ------------------------------------------------------------------------------------------------------ */

void evl_run_enter(struct call *call) {
    assert(call->body && call->sort->kind == CALL_ACQUIRE && call->status == EVLOCK_OK);
    evl_call_note(call, "");
    evl_call_go_on_as(call, &runs);
    call->run.held = false;
    call->run.value = EVLOCK_OK;
}

/* The body may have ended meanwhile, or its handle or client may have gone: the value is what is reported. */
void evl_run_entered(struct call *call, int value) {
    assert(call->sort->kind == CALL_RUN || call->sort->kind == CALL_RELEASE);
    call->run.value = value;
    if (value != EVLOCK_OK && !call->ended && call->sort->kind == CALL_RUN)
        evl_held_end_body(call->lock);
}

static int run_status(const struct call *call) {
    if (call->run.value != EVLOCK_OK)
        return call->run.value;
    if (call->status == EVLOCK_ECANCELLED || call->status == EVLOCK_ENOTHELD)
        return call->status;
    return call->run.held && call->status != EVLOCK_ENOTOWNED ? call->status : EVLOCK_ELOST;
}

void evl_run_settle(struct call *call) {
    int status;

    assert(call->body && call->ended);
    if (call->sort->kind == CALL_ACQUIRE)
        return;
    status = run_status(call);
    if (status != call->status)
        evl_call_note(call, "");
    call->status = status;
}

void evl_run_free_handle(struct call *call) {
    if (call->made && !call->lock->freed)
        evlock_free(call->lock);
}

/* --- The calls ---------------------------------------------------------------------------------------------------- */

static struct trouble run_begin(struct evlock *lock, bool made, evlock_body body, evlock_done_cb done, void *arg,
                                struct words *words) {
    struct call *call;
    struct trouble trouble = evl_acquire_begin(&call, lock, NULL, arg, words);

    if (trouble.status != EVLOCK_OK)
        return trouble;
    call->body = body;
    call->done = done;
    call->made = made;
    return evl_no_trouble;
}

int evlock_with(evlock *lock, evlock_body body, evlock_done_cb done, void *arg) {
    struct words words;

    if (!body)
        return evl_fail(EVLOCK_EINVAL, "a run needs a body");
    return evl_report(run_begin(lock, false, body, done, arg, &words));
}

/* A run gives up after a few attempts where nobody said how often or how long to try. Neither a queue counts attempts,
 * nor who waits for a lease to be passed on. */
static struct trouble run_read_options(evlock_options *ret, const evlock_options *options, struct words *words) {
    struct trouble trouble = evl_config_read_options(ret, options, words);

    if (trouble.status == EVLOCK_OK && !ret->max_attempts && !ret->max_wait_ms && !ret->max_passes &&
        ret->wait != EVLOCK_WAIT_QUEUE)
        ret->max_attempts = 4;
    return trouble;
}

int evlock_run(evlock **ret_lock, evlock_client *client, const void *name, size_t name_len,
               const evlock_options *options, evlock_body body, evlock_done_cb done, void *arg) {
    evlock_options given;
    struct trouble trouble;
    struct words words;
    evlock *lock;
    int status;

    if (!body)
        return evl_fail(EVLOCK_EINVAL, "a run needs a body");
    status = evl_report(run_read_options(&given, options, &words));
    if (status == EVLOCK_OK)
        status = evlock_new(&lock, client, name, name_len, &given);
    if (status != EVLOCK_OK)
        return status;
    trouble = run_begin(lock, true, body, done, arg, &words);
    if (trouble.status != EVLOCK_OK)
        evlock_free(lock);
    else if (ret_lock)
        *ret_lock = lock;
    return evl_report(trouble);
}
