/*
 * The ways of evlock to wait for a lock: by the queue, by polling, and by the queue with leases that are passed on,
 * with the same calls. See turns.h.
 */
#include "locks.h"
#include "turns.h"

#include "check.h"

static evlock_client *client;
static evlock *handles[WAITERS_MAX];
static size_t handle_count;

static void open_all(struct event_base *base, size_t waiters, const evlock_options *options) {
    expect_ok(evlock_client_new_libevent(&client, base, servers[0].url, NULL));
    handle_count = waiters;
    for (size_t i = 0; i < handle_count; i++)
        expect_ok(evlock_new(&handles[i], client, "lock", EVLOCK_CSTRING, options));
}

static void open_queue(struct event_base *base, size_t waiters) {
    open_all(base, waiters, EVLOCK_OPTIONS(.wait = EVLOCK_WAIT_QUEUE));
}

static void open_polling(struct event_base *base, size_t waiters) {
    open_all(base, waiters, EVLOCK_OPTIONS(.wait = EVLOCK_WAIT_POLL));
}

static void open_passing(struct event_base *base, size_t waiters) {
    open_all(base, waiters, EVLOCK_OPTIONS(.wait = EVLOCK_WAIT_QUEUE, .max_passes = 64));
}

static void on_acquired(evlock *lock, int status, void *arg) {
    expect_ok(status);
    CHECK(evlock_is_held(lock), "a lock that was acquired is not held");
    turn_granted((size_t)((evlock **)arg - handles));
}

static void on_released(evlock *lock, int status, void *arg) {
    (void)lock;
    expect_ok(status);
    turn_released((size_t)((evlock **)arg - handles));
}

static void acquire(size_t waiter) {
    expect_ok(evlock_acquire(handles[waiter], NULL, on_acquired, &handles[waiter]));
}

static void release(size_t waiter) {
    expect_ok(evlock_release(handles[waiter], on_released, &handles[waiter]));
}

static void close_all(void) {
    for (size_t i = 0; i < handle_count; i++)
        evlock_free(handles[i]);
    evlock_client_free(client);
}

const struct way by_queue = {"queue", "ZCARD {lock}:queue", false, open_queue, acquire, release, close_all};
const struct way by_polling = {"polling", NULL, false, open_polling, acquire, release, close_all};
const struct way by_passing = {"passing", "ZCARD {lock}:queue", true, open_passing, acquire, release, close_all};
