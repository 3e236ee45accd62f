/*
 * The process stands still for longer than anything is waited for, while the server goes on: what it answered meanwhile
 * lies in the sockets, and what it was not asked yet can still be asked. Neither is taken for silence. Each test is
 * named after the behaviour that it shows.
 */
#include "harness.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    PATIENCE_MS = 500, /* how long an answer is waited for */
    STALL_MS = 700,
    TRIALS = 20, /* where a busy machine may be too slow for the time that a stall is made up for */
};

static void stand_still(void) {
    usleep(STALL_MS * 1000);
}

/* The server answers what it was sent while this process stands still. */
static void stand_still_while_it_answers(struct fixture *f) {
    run_for(f, 50);
    server_resume(f->server);
    stand_still();
}

static evlock_client *client_of_little_patience(struct fixture *f) {
    evlock_client_options options = client_options(f);
    options.command_timeout_ms = PATIENCE_MS;
    evlock_client *client = client_new(f, NULL, &options);
    await_connected(f, client);
    return client;
}

static evlock *held(struct fixture *f, const char *name, const evlock_options *options) {
    evlock *lock = lock_new(f, name, options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    f->ended = (struct record){0};
    return lock;
}

static void assert_still_connected(struct fixture *f) {
    assert_int_equal(f->connection_states[EVLOCK_CONNECTED], 1);
    assert_int_equal(f->connection_states[EVLOCK_AWAY], 0);
}

/* --- Answers that lie in the socket ------------------------------------------------------------------------------- */

static void a_release_that_was_answered_is_ok(void **state) {
    struct fixture *f = *state;
    client_of_little_patience(f);
    evlock *lock = held(f, "a", NULL);
    server_pause(f->server);
    assert_status(evlock_release(lock, record_end, &f->ended), EVLOCK_OK);
    stand_still_while_it_answers(f);
    await(f, f->ended.count);
    assert_ended(&f->ended, EVLOCK_OK);
    assert_still_connected(f);
}

static void an_extension_that_was_answered_is_ok(void **state) {
    struct fixture *f = *state;
    client_of_little_patience(f);
    evlock *lock = held(f, "a", NULL);
    server_pause(f->server);
    assert_status(evlock_extend(lock, 60 * 1000, EVLOCK_EXTEND_REPLACE, record_end, &f->ended), EVLOCK_OK);
    stand_still_while_it_answers(f);
    await(f, f->ended.count);
    assert_ended(&f->ended, EVLOCK_OK);
    assert_int_in_range(evlock_remaining_ms(lock), 31 * 1000, 60 * 1000);
    assert_still_connected(f);
}

static void a_query_that_was_answered_is_ok(void **state) {
    struct fixture *f = *state;
    client_of_little_patience(f);
    evlock *lock = lock_new(f, "a", NULL);
    server_pause(f->server);
    assert_status(evlock_query(lock, EVLOCK_QUERY_LOCKED, record_answer, &f->ended), EVLOCK_OK);
    stand_still_while_it_answers(f);
    await(f, f->ended.count);
    assert_ended(&f->ended, EVLOCK_OK);
    assert_still_connected(f);
}

static void a_close_whose_releases_were_answered_is_ok(void **state) {
    struct fixture *f = *state;
    struct record closed = {0};
    evlock_client *client = client_of_little_patience(f);
    held(f, "a", NULL);
    server_pause(f->server);
    client_forget(f, client);
    assert_status(evlock_client_close(client, record_closed, &closed), EVLOCK_OK);
    stand_still_while_it_answers(f);
    await(f, closed.count);
    assert_status(closed.status, EVLOCK_OK);
    assert_false(key_exists(f->server, "a"));
}

static void a_wait_that_was_granted_in_time_is_ok(void **state) {
    struct fixture *f = *state;
    client_new(f, NULL, NULL);
    evlock *lock = lock_new(f, "a", NULL);
    evlock_acquire_options wait = {.size = sizeof(evlock_acquire_options)};
    wait.max_wait_ms = PATIENCE_MS;
    await_connected(f, f->client);
    server_pause(f->server);
    assert_status(evlock_acquire(lock, &wait, record_end, &f->ended), EVLOCK_OK);
    stand_still_while_it_answers(f);
    await(f, f->ended.count);
    assert_ended(&f->ended, EVLOCK_OK);
}

/* Two answers in a row have to come in the time that is given after a stall. A busy machine may not manage that at
 * once; a library that gives no time never does. */
static void a_wait_whose_end_finds_a_list_says_so(void **state) {
    struct fixture *f = *state;
    client_new(f, NULL, NULL);
    evlock *lock = lock_new(f, "a", NULL);
    evlock_acquire_options wait = {.size = sizeof(evlock_acquire_options)};
    wait.max_wait_ms = PATIENCE_MS;
    await_connected(f, f->client);
    server_do(f->server, "RPUSH a x");
    for (int trial = 0; trial < TRIALS && f->ended.status != EVLOCK_EWRONGTYPE; trial++) {
        f->ended = (struct record){0};
        assert_status(evlock_acquire(lock, &wait, record_end, &f->ended), EVLOCK_OK);
        stand_still(); /* neither the attempt nor the look is sent before */
        await(f, f->ended.count);
    }
    assert_ended(&f->ended, EVLOCK_EWRONGTYPE);
}

static void a_turn_in_the_queue_that_came_in_time_is_taken(void **state) {
    struct fixture *f = *state;
    struct record released = {0};
    client_new(f, NULL, NULL);
    evlock_client *other = client_new(f, NULL, NULL);
    evlock_options options = with_ttl(60 * 1000);
    options.wait = EVLOCK_WAIT_QUEUE;
    evlock *waiter = lock_new(f, "a", &options), *holder = lock_new_on(f, other, "a", &options);
    evlock_acquire_options wait = {.size = sizeof(evlock_acquire_options)};
    wait.max_wait_ms = 2 * PATIENCE_MS;
    assert_status(await_acquire(f, holder, NULL), EVLOCK_OK);
    f->ended = (struct record){0};
    assert_status(evlock_acquire(waiter, &wait, record_end, &f->ended), EVLOCK_OK);
    await(f, server_integer(f->server, "EXISTS {a}:queue") == 1 || f->ended.count);
    server_pause(f->server);
    assert_status(evlock_release(holder, record_end, &released), EVLOCK_OK);
    run_for(f, 50);
    server_resume(f->server);
    usleep(2 * STALL_MS * 1000);
    await(f, f->ended.count);
    assert_ended(&f->ended, EVLOCK_OK);
    await(f, released.count);
}

static void the_callers_token_whose_last_use_was_settled_is_taken(void **state) {
    struct fixture *f = *state;
    client_of_little_patience(f);
    evlock *lock = lock_new(f, "a", NULL);
    evlock_acquire_options try = {.size = sizeof(evlock_acquire_options)};
    try.max_attempts = EVLOCK_TRY;
    try.token = "mine";
    try.token_len = 4;
    server_pause(f->server);
    assert_status(evlock_acquire(lock, &try, NULL, NULL), EVLOCK_OK);
    run_for(f, 50);
    assert_status(evlock_cancel(lock), EVLOCK_OK);
    assert_status(evlock_acquire(lock, &try, record_end, &f->ended), EVLOCK_OK);
    stand_still_while_it_answers(f);
    await(f, f->ended.count);
    assert_ended(&f->ended, EVLOCK_OK);
    assert_still_connected(f);
}

static void a_login_that_was_answered_goes_on(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = client_options(f);
    options.connect_timeout_ms = PATIENCE_MS;
    server_pause(f->server);
    client_new(f, NULL, &options);
    stand_still_while_it_answers(f);
    await(f, f->connection_states[EVLOCK_CONNECTED]);
    assert_int_equal(f->connection_states[EVLOCK_AWAY], 0);
}

static void a_renewal_that_was_answered_worries_nobody(void **state) {
    struct fixture *f = *state;
    struct record risk = {0};
    evlock_options options = with_ttl(4000);
    options.auto_renewal = true;
    options.renewal_interval_ms = 100;
    options.at_risk_percent = 99;
    options.on_at_risk = record_risk;
    options.arg = &risk;
    client_new(f, NULL, NULL);
    evlock *lock = held(f, "a", &options);
    uint64_t renewals = stats_of(f->client).renewals;
    await(f, stats_of(f->client).renewals > renewals);
    server_pause(f->server);
    run_for(f, 150); /* asked for once more */
    server_resume(f->server);
    usleep(1500 * 1000);
    renewals = stats_of(f->client).renewals;
    await(f, stats_of(f->client).renewals > renewals);
    assert_int_equal(risk.count, 0);
    assert_true(evlock_is_held(lock));
}

/* --- What was not even asked -------------------------------------------------------------------------------------- */

static void stand_still_in_the_callback(struct record *record) {
    struct fixture *f = record->then_arg;
    if (evlock_extend(f->locks[0], 60 * 1000, EVLOCK_EXTEND_REPLACE, record_end, &f->ended) != EVLOCK_OK)
        abort();
    stand_still();
}

static void a_call_of_a_callback_that_takes_long_is_asked_first(void **state) {
    struct fixture *f = *state;
    bool well = false;
    for (int trial = 0; trial < TRIALS && !well; trial++) {
        struct record queried = {.then = stand_still_in_the_callback, .then_arg = f};
        memset(f->connection_states, 0, sizeof(f->connection_states));
        evlock_client *client = client_of_little_patience(f);
        evlock *lock = held(f, "a", NULL);
        assert_status(evlock_query(lock, EVLOCK_QUERY_LOCKED, record_answer, &queried), EVLOCK_OK);
        await(f, f->ended.count);
        well = f->ended.status == EVLOCK_OK && f->connection_states[EVLOCK_AWAY] == 0;
        lock_free(f, lock);
        client_free(f, client);
        server_do(f->server, "DEL a");
    }
    assert_true(well);
}

/* --- A process that is stopped ------------------------------------------------------------------------------------ */

/* Stops this process, which another lets go on later. */
static bool be_stopped(void) {
    pid_t self = getpid(), other = fork();
    if (other == 0) {
        stand_still();
        _exit(kill(self, SIGCONT) ? 1 : 0);
    }
    return other > 0 && raise(SIGSTOP) == 0;
}

static int release_and_be_stopped(void *arg) {
    struct fixture f;
    struct record record = {0};
    evlock_client_options options = {.size = sizeof(evlock_client_options)};
    options.command_timeout_ms = PATIENCE_MS;
    if (!fixture_init(&f, arg))
        return 1;
    client_new(&f, NULL, &options);
    evlock *lock = lock_new(&f, "a", NULL);
    if (!ends(&f, evlock_acquire(lock, NULL, record_end, &record), &record, EVLOCK_OK))
        return 2;
    record = (struct record){0};
    int returned = evlock_release(lock, record_end, &record);
    bool well = be_stopped() && ends(&f, returned, &record, EVLOCK_OK);
    return fixture_free(&f) || !well ? 3 : 0;
}

static void a_release_of_a_process_that_is_stopped_is_ok(void **state) {
    struct fixture *f = *state;
    int said = 1;
    for (int i = 0; i < TRIALS && said != 0; i++)
        said = in_child(release_and_be_stopped, f->server);
    assert_int_equal(said, 0);
}

/* --- Silence is still silence ------------------------------------------------------------------------------------- */

static void a_release_that_was_not_answered_is_told_so(void **state) {
    struct fixture *f = *state;
    client_of_little_patience(f);
    evlock *lock = held(f, "a", NULL);
    server_pause(f->server);
    assert_status(evlock_release(lock, record_end, &f->ended), EVLOCK_OK);
    run_for(f, 50);
    stand_still();
    await(f, f->ended.count);
    assert_ended(&f->ended, EVLOCK_EUNREACHABLE);
    assert_string_not_equal(f->ended.error, "");
    await(f, f->connection_states[EVLOCK_CONNECTED] == 1);
    server_resume(f->server);
    await(f, !key_exists(f->server, "a"));
}

/* Every turn of the loop takes long, and each timer is late. */
static void a_loop_that_is_always_late_gives_up_in_the_end(void **state) {
    struct fixture *f = *state;
    client_of_little_patience(f);
    evlock *lock = held(f, "a", NULL);
    server_pause(f->server);
    assert_status(evlock_release(lock, record_end, &f->ended), EVLOCK_OK);
    int64_t end = evlock_clock_us() + WAIT_MS * 1000;
    while (!f->ended.count && evlock_clock_us() < end) {
        usleep(50 * 1000);
        loop_turn(f->loop);
    }
    server_resume(f->server);
    assert_ended(&f->ended, EVLOCK_EUNREACHABLE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST_BARE(a_release_that_was_answered_is_ok),
        TEST_BARE(an_extension_that_was_answered_is_ok),
        TEST_BARE(a_query_that_was_answered_is_ok),
        TEST_BARE(a_close_whose_releases_were_answered_is_ok),
        TEST_BARE(a_wait_that_was_granted_in_time_is_ok),
        TEST_BARE(a_wait_whose_end_finds_a_list_says_so),
        TEST_BARE(a_turn_in_the_queue_that_came_in_time_is_taken),
        TEST_BARE(the_callers_token_whose_last_use_was_settled_is_taken),
        TEST_BARE(a_login_that_was_answered_goes_on),
        TEST_BARE(a_renewal_that_was_answered_worries_nobody),
        TEST_BARE(a_call_of_a_callback_that_takes_long_is_asked_first),
        TEST_BARE(a_release_of_a_process_that_is_stopped_is_ok),
        TEST_BARE(a_release_that_was_not_answered_is_told_so),
        TEST_BARE(a_loop_that_is_always_late_gives_up_in_the_end),
    };
    return run_suite("stalls", tests);
}
