/*
 * A client on a loop whose clock and timer are the test's, and whose server is never found: when it renews, and in
 * which portions it sees to what is due.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client.h"
#include "lock.h"

enum { TTL_MS = 6000 * 1000 };

static int64_t clock_us = 1000000000;
static evlock_timer_cb timer_cb;
static void *timer_arg;

static void *timer_new(void *data, evlock_timer_cb cb, void *arg) {
    timer_cb = cb;
    timer_arg = arg;
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
    return clock_us;
}

static int attach(void *data, struct redisAsyncContext *connection) {
    (void)data;
    (void)connection;
    return -1;
}

static void *resolve(void *data, const char *host, evlock_resolve_cb cb, void *arg) {
    (void)host;
    (void)cb;
    (void)arg;
    return data;
}

static void resolve_cancel(void *resolution) {
    (void)resolution;
}

static const evlock_loop_ops ops = {
    .size = sizeof(ops),
    .now = now,
    .timer_new = timer_new,
    .timer_set = timer_set,
    .timer_free = timer_free,
    .attach = attach,
    .resolve = resolve,
    .resolve_cancel = resolve_cancel,
};

static evlock_client *client_new(void) {
    static int data;
    evlock_client *client;

    assert_int_equal(evlock_client_new(&client, (evlock_loop){&ops, &data}, "redis://never.resolved", NULL), EVLOCK_OK);
    return client;
}

/* --- Renewals ----------------------------------------------------------------------------------------------------- */

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

/* --- What is due -------------------------------------------------------------------------------------------------- */

enum { MANY = 20000 };

static int told;

static void ended(evlock *lock, int status, void *arg) {
    (void)lock;
    (void)arg;
    told += status != EVLOCK_OK;
}

/* As many acquires that end by their time all at once, when the timer rings next. */
static void fall_due(evlock_client *client, evlock **locks) {
    evlock_options options = EVLOCK_OPTIONS_INIT;

    options.wait_timeout_ms = 1000;
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(evlock_new(&locks[i], client, &i, sizeof(i), &options), EVLOCK_OK);
        assert_int_equal(evlock_acquire(locks[i], NULL, ended, NULL), EVLOCK_OK);
    }
    clock_us += 1000 * 1000;
    told = 0;
}

static int to_be_told(const evlock_client *client) {
    const struct call *call;
    int count = 0;

    TAILQ_FOREACH (call, &client->done, link)
        count++;
    return count;
}

/* So others have their turn; and what is told may be late, but a loss that lies among what is due comes before it. */
static void the_many_that_are_due_are_seen_to_by_slices_before_anything_is_told(void **state) {
    static evlock *locks[MANY];
    evlock_client *client = client_new();
    int turns = 0;

    (void)state;
    fall_due(client, locks);
    while (told == 0) {
        int before = to_be_told(client);
        timer_cb(timer_arg);
        turns++;
        assert_in_range(told ? 0 : to_be_told(client) - before, 0, 1000);
        if (turns == 1)
            assert_in_range(to_be_told(client), 0, 999); /* to sort them is work, too */
    }
    assert_true(turns > MANY / 1000);
    assert_int_equal(told + to_be_told(client), MANY);
    timer_cb(timer_arg);
    assert_int_equal(told, MANY);
    for (int i = 0; i < MANY; i++)
        evlock_free(locks[i]);
    evlock_client_free(client);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handles_of_a_client_renew_in_one_phase),
        cmocka_unit_test(clients_renew_in_phases_of_their_own),
        cmocka_unit_test(a_lease_without_renewal_has_none),
        cmocka_unit_test(the_many_that_are_due_are_seen_to_by_slices_before_anything_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
