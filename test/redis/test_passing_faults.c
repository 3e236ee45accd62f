/*
 * Leases that are passed on inside a client, and what goes wrong amid that.
 */
#include "harness.h"

#include <stdio.h>
#include <unistd.h>

static evlock_options passing_for(int64_t ttl_ms) {
    evlock_options options = with_ttl(ttl_ms);

    options.max_passes = 100;
    options.retry_delay_ms = 20;
    return options;
}

/* The process stands still: no loop runs. */
static void stand_still(int64_t ms) {
    usleep((useconds_t)ms * 1000);
}

/* --- Before it was told ------------------------------------------------------------------------------------------- */

/* The wait of the next one is over by then, too. */
static void a_pass_that_is_over_before_it_was_told_ends_as_a_wait(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing_for(300);
    evlock *first = lock_new(f, "a", &options), *next = lock_new(f, "a", &options);
    struct record record = {0};

    assert_status(await_acquire(f, first, NULL), EVLOCK_OK);
    assert_status(evlock_acquire(next, EVLOCK_ACQUIRE_OPTIONS(.max_wait_ms = 350), record_end, &record), EVLOCK_OK);
    assert_status(evlock_release(first, NULL, NULL), EVLOCK_OK);
    stand_still(400);
    await(f, record.count);
    assert_ended(&record, EVLOCK_ETIMEDOUT);
    assert_status(await_acquire(f, next, NULL), EVLOCK_OK);
    assert_int_equal(stats_of(f->client).passed, 0);
}

/* --- At the end of a client --------------------------------------------------------------------------------------- */

static int granted; /* as the log says */

static void count_grants(enum evlock_log_level level, const char *line, void *arg) {
    (void)level;
    (void)arg;
    granted += strstr(line, ": held") != NULL;
}

static void a_client_that_is_freed_passes_nothing_on(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = client_options(f);
    evlock_options passing = passing_for(60000);
    evlock *locks[5];
    struct record records[5] = {{0}};
    evlock_client *client;

    options.on_log = count_grants;
    options.log_level = EVLOCK_LOG_DEBUG;
    client = client_new(f, NULL, &options);
    for (int i = 0; i < 5; i++) {
        locks[i] = lock_new_on(f, client, "a", &passing);
        assert_status(evlock_acquire(locks[i], NULL, record_end, &records[i]), EVLOCK_OK);
    }
    await(f, records[0].count);
    granted = 0;
    client_free(f, client);
    assert_int_equal(granted, 0);
    for (int i = 1; i < 5; i++) {
        await(f, records[i].count);
        assert_ended(&records[i], EVLOCK_ECANCELLED);
    }
}

/* The server granted what it asked for, and its wait was over when that was read. */
static void a_grant_goes_to_who_still_waits(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing_for(60000);
    evlock *first = lock_new(f, "a", &options), *next = lock_new(f, "a", &options);
    struct record over = {0}, waits = {0};

    assert_status(await_acquire(f, first, NULL), EVLOCK_OK);
    assert_status(await_release(f, first), EVLOCK_OK);
    assert_status(evlock_acquire(first, EVLOCK_ACQUIRE_OPTIONS(.max_wait_ms = 100), record_end, &over), EVLOCK_OK);
    assert_status(evlock_acquire(next, NULL, record_end, &waits), EVLOCK_OK);
    loop_turn(f->loop); /* it is asked for */
    assert_int_equal(over.count, 0);
    stand_still(200);
    await(f, waits.count);
    assert_ended(&waits, EVLOCK_OK);
    assert_ended(&over, EVLOCK_ETIMEDOUT);
    assert_int_equal(stats_of(f->client).passed, 0);
}

/* Neither a pause nor a server that seems away is the end of its wait. */
static void a_pass_that_is_over_before_it_was_told_is_waited_for_again(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing_for(300);
    struct record record = {0};
    evlock *first, *next;

    options.fail_when_away = true;
    first = lock_new(f, "a", &options), next = lock_new(f, "a", &options);
    assert_status(await_acquire(f, first, NULL), EVLOCK_OK);
    assert_status(evlock_acquire(next, NULL, record_end, &record), EVLOCK_OK);
    assert_status(evlock_release(first, NULL, NULL), EVLOCK_OK);
    stand_still(400);
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_grant_goes_to_who_still_waits),
        TEST(a_pass_that_is_over_before_it_was_told_is_waited_for_again),
        TEST(a_pass_that_is_over_before_it_was_told_ends_as_a_wait),
        TEST(a_client_that_is_freed_passes_nothing_on),
    };

    return run_suite("passing_faults", tests);
}
