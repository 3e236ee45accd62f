/*
 * When clients renew: the leases of one together, those of several at moments of their own. The loop is one whose
 * timers never ring.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client.h"
#include "lock.h"

enum { TTL_MS = 6000 * 1000 };

static void *timer_new(void *data, evlock_timer_cb cb, void *arg) {
    (void)cb;
    (void)arg;
    return data;
}

static void timer_set(void *timer, int64_t at) {
    (void)timer;
    (void)at;
}

static void timer_free(void *timer) {
    (void)timer;
}

static int64_t now(void *data) {
    (void)data;
    return evlock_clock_us();
}

static int attach(void *data, struct redisAsyncContext *connection) {
    (void)data;
    (void)connection;
    return -1;
}

static const evlock_loop_ops ops = {
    .size = sizeof(ops),
    .now = now,
    .timer_new = timer_new,
    .timer_set = timer_set,
    .timer_free = timer_free,
    .attach = attach,
};

static evlock_client *client_new(void) {
    static int data;
    evlock_client *client;

    assert_int_equal(evlock_client_new(&client, (evlock_loop){&ops, &data}, "redis://127.0.0.1", NULL), EVLOCK_OK);
    return client;
}

/* The phase of a handle that wants this ttl, and a prefix that no other has. */
static int64_t phase(evlock_client *client, int64_t ttl_ms, const char *prefix) {
    evlock_options options = EVLOCK_OPTIONS_INIT;
    evlock *lock;
    int64_t phase;

    options.ttl_ms = ttl_ms;
    options.auto_renewal = 1;
    options.prefix = prefix;
    assert_int_equal(evlock_new(&lock, client, "name", EVLOCK_CSTRING, &options), EVLOCK_OK);
    phase = lock->config->terms.phase;
    assert_in_range(phase, 0, lock->config->terms.grain - 1);
    evlock_free(lock);
    return phase;
}

static void handles_of_a_client_renew_in_one_phase(void **state) {
    evlock_client *client = client_new();

    (void)state;
    for (int i = 0; i < 10; i++)
        assert_int_equal(phase(client, TTL_MS, "a:"), phase(client, TTL_MS, "b:"));
    evlock_client_free(client);
}

/* The grain is 100 s, in microseconds: two clients have the same phase once in a hundred million times. */
static void clients_renew_in_phases_of_their_own(void **state) {
    enum { CLIENTS = 5 };
    evlock_client *client[CLIENTS];

    (void)state;
    for (int i = 0; i < CLIENTS; i++)
        client[i] = client_new();
    for (int i = 1; i < CLIENTS; i++)
        assert_int_not_equal(phase(client[i], TTL_MS, "a:"), phase(client[0], TTL_MS, "a:"));
    for (int i = 0; i < CLIENTS; i++)
        evlock_client_free(client[i]);
}

static void a_lease_without_renewal_has_none(void **state) {
    evlock_client *client = client_new();
    evlock *lock;

    (void)state;
    assert_int_equal(evlock_new(&lock, client, "name", EVLOCK_CSTRING, NULL), EVLOCK_OK);
    assert_int_equal(lock->config->terms.phase, 0);
    evlock_free(lock);
    evlock_client_free(client);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handles_of_a_client_renew_in_one_phase),
        cmocka_unit_test(clients_renew_in_phases_of_their_own),
        cmocka_unit_test(a_lease_without_renewal_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
