/*
 * Scopes: acquire, run, release, in one call. They are written on the public calls of a lock, with few exceptions: a
 * scope keeps its handle's memory, so as to see that its user freed it under the running body; a lock that cannot be
 * released for want of memory is dropped; and options are read ahead, for defaults of their own. A scope owns itself,
 * and the handle where evlock_run() made one, unless its user freed that, too.
 */
#include "client.h"
#include "memory.h"

struct evlock_scope {
    evlock *lock;
    evlock_body body;
    evlock_scope_cb done;
    void *arg;
    bool made; /* the handle is the scope's own */
    bool ran;
    bool held; /* until the body's end */
};

struct evlock_handler {
    evlock *lock; /* never acquired: it keeps the name and the checked options */
    evlock_options options;
    evlock_body body;
};

static void scope_free(evlock_scope *scope) {
    if (scope->made && !scope->lock->freed)
        evlock_free(scope->lock);
    evl_handle_unref(scope->lock);
    evl_free(scope);
}

static void scope_end(evlock_scope *scope, int status) {
    evlock_scope_cb done = scope->done;
    void *arg = scope->arg;
    int ran = scope->ran;

    scope_free(scope);
    if (done)
        done(status, ran, arg);
}

static void scope_on_acquired(evlock *lock, int status, void *arg) {
    evlock_scope *scope = arg;

    if (status != EVLOCK_OK) {
        scope_end(scope, status);
        return;
    }
    scope->ran = true;
    scope->body(scope, lock, scope->arg);
}

static void scope_on_released(evlock *lock, int status, void *arg) {
    evlock_scope *scope = arg;

    (void)lock;
    if (status == EVLOCK_ENOTOWNED || !scope->held)
        status = EVLOCK_ELOST;
    scope_end(scope, status);
}

void evlock_scope_end(evlock_scope *scope) {
    int status = EVLOCK_ECANCELLED;

    evl_error_set("");
    scope->held = evlock_is_held(scope->lock);
    if (!scope->lock->freed)
        status = evlock_release(scope->lock, scope_on_released, scope);
    if (status == EVLOCK_ENOMEM) /* nobody can be told, but it must not be kept */
        evl_lock_drop(scope->lock);
    if (status != EVLOCK_OK)
        scope_end(scope, status);
}

static evlock_scope *scope_new(evlock *lock, bool made, evlock_body body, evlock_scope_cb done, void *arg) {
    evlock_scope *scope = evl_alloc(sizeof(*scope));

    if (!scope)
        return NULL;
    *scope = (evlock_scope){.lock = lock, .body = body, .done = done, .arg = arg, .made = made};
    evl_handle_ref(lock);
    return scope;
}

static int scope_begin(evlock_scope *scope) {
    int status = evlock_acquire(scope->lock, NULL, scope_on_acquired, scope);

    if (status != EVLOCK_OK)
        scope_free(scope);
    return status;
}

int evlock_with(evlock *lock, evlock_body body, evlock_scope_cb done, void *arg) {
    struct trouble trouble = evl_lock_validate(lock);
    evlock_scope *scope;

    if (trouble.status != EVLOCK_OK)
        return evl_report(trouble);
    if (!body)
        return evl_fail(EVLOCK_EINVAL, "a scope needs a body");
    scope = scope_new(lock, false, body, done, arg);
    return scope ? scope_begin(scope) : evl_fail(EVLOCK_ENOMEM, "no memory for a scope");
}

/* One-call runs give up after a few attempts where nobody said how often or how long to try; a queue counts none. */
static struct trouble scope_read_options(evlock_options *ret, const evlock_options *options, struct words *words) {
    struct trouble trouble = evl_config_read_options(ret, options, words);

    if (trouble.status == EVLOCK_OK && !ret->max_attempts && !ret->max_wait_ms && ret->wait != EVLOCK_WAIT_QUEUE)
        ret->max_attempts = 4;
    return trouble;
}

int evlock_run(evlock_client *client, const void *name, size_t name_len, const evlock_options *options,
               evlock_body body, evlock_scope_cb done, void *arg) {
    evlock_options given;
    evlock_scope *scope;
    struct words words;
    evlock *lock;
    int status;

    if (!body)
        return evl_fail(EVLOCK_EINVAL, "a run needs a body");
    status = evl_report(scope_read_options(&given, options, &words));
    if (status == EVLOCK_OK)
        status = evlock_new(&lock, client, name, name_len, &given);
    if (status != EVLOCK_OK)
        return status;
    scope = scope_new(lock, true, body, done, arg);
    if (scope)
        return scope_begin(scope);
    evlock_free(lock);
    return evl_fail(EVLOCK_ENOMEM, "no memory for a scope");
}

int evlock_handler_new_named(evlock_handler **ret_handler, evlock_client *client, const void *name, size_t name_len,
                             const evlock_options *options, evlock_body body) {
    evlock_handler *handler;
    struct words words;
    int status;

    if (!ret_handler || !body)
        return evl_fail(EVLOCK_EINVAL, "%s is NULL", ret_handler ? "the body" : "ret_handler");
    handler = evl_alloc(sizeof(*handler));
    if (!handler)
        return evl_fail(EVLOCK_ENOMEM, "no memory for a handler");
    status = evl_report(scope_read_options(&handler->options, options, &words));
    if (status == EVLOCK_OK)
        status = evlock_new(&handler->lock, client, name, name_len, &handler->options);
    if (status != EVLOCK_OK) {
        evl_free(handler);
        return status;
    }
    handler->body = body;
    handler->options.holder = handler->lock->config->holder;
    handler->options.prefix = handler->lock->config->prefix;
    handler->options.label = handler->lock->config->label;
    *ret_handler = handler;
    return evl_report(evl_no_trouble);
}

const void *evlock_handler_name(const evlock_handler *handler, size_t *ret_len) {
    return evlock_name(handler ? handler->lock : NULL, ret_len);
}

int evlock_handler_call(evlock_handler *handler, evlock_scope_cb done, void *arg) {
    const void *name;
    size_t len;
    struct trouble trouble;

    if (!handler)
        return evl_fail(EVLOCK_EINVAL, "the handler is NULL");
    trouble = evl_lock_validate(handler->lock);
    if (trouble.status != EVLOCK_OK)
        return evl_report(trouble);
    name = evlock_name(handler->lock, &len);
    return evlock_run(evl_client_of(handler->lock), name, len, &handler->options, handler->body, done, arg);
}

void evlock_handler_free(evlock_handler *handler) {
    if (!handler)
        return;
    evlock_free(handler->lock);
    evl_free(handler);
}
