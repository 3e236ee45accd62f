/*
 * Scopes, on a real server: acquire, run, release, as one call on a handle, as one call for all, and as a handler that
 * is bound to a lock's name. Each test is named after the behaviour that it shows.
 */
#include "harness.h"

#include <stdio.h>

/* One run of a body, ended by the test or at once. */
struct run {
    struct record done;  /* value: whether the body ran */
    int bodies;          /* how often the body was called */
    evlock_scope *scope; /* while the body has not ended */
    evlock *lock;
    bool held; /* what evlock_is_held() said in the body */
    bool at_once;
};

static void body(evlock_scope *scope, evlock *lock, void *arg) {
    struct run *run = arg;
    run->bodies++;
    run->lock = lock;
    run->held = evlock_is_held(lock);
    run->scope = scope;
    if (run->at_once) {
        run->scope = NULL;
        evlock_scope_end(scope);
    }
}

static void done(int status, int ran, void *arg) {
    record_scope(status, ran, &((struct run *)arg)->done);
}

static void end(struct run *run) {
    evlock_scope *scope = run->scope;
    run->scope = NULL;
    evlock_scope_end(scope);
}

#define assert_done(run, expected_status, expected_ran)                                                                \
    do {                                                                                                               \
        assert_ended(&(run)->done, (expected_status));                                                                 \
        assert_int_equal((run)->done.value, (expected_ran));                                                           \
        assert_int_equal((run)->bodies, (expected_ran));                                                               \
    } while (0)

static void foreign_hold(struct fixture *f, const char *key) {
    server_do(f->server, "SET %s stranger NX PX 600000", key);
}

/* --- evlock_with -------------------------------------------------------------------------------------------------- */

static void a_body_runs_under_its_lock(void **state) {
    struct fixture *f = *state;
    struct run run = {.at_once = true};
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(evlock_with(lock, body, done, &run), EVLOCK_OK);
    assert_int_equal(run.bodies, 0);
    await(f, run.done.count);
    assert_done(&run, EVLOCK_OK, 1);
    assert_true(run.held);
    assert_ptr_equal(run.lock, lock);
    assert_false(evlock_is_held(lock));
    assert_false(key_exists(f->server, "a"));
}

static void a_body_may_end_many_turns_later(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(evlock_with(lock, body, done, &run), EVLOCK_OK);
    await(f, run.scope);
    run_for(f, 200);
    assert_int_equal(run.done.count, 0);
    assert_true(evlock_is_held(lock));
    assert_true(key_exists(f->server, "a"));
    end(&run);
    assert_int_equal(run.done.count, 0);
    await(f, run.done.count);
    assert_done(&run, EVLOCK_OK, 1);
    assert_false(key_exists(f->server, "a"));
}

static void a_handle_can_be_used_again_after_its_scope(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    for (int i = 0; i < 3; i++) {
        struct run run = {.at_once = true};
        assert_status(evlock_with(lock, body, done, &run), EVLOCK_OK);
        await(f, run.done.count);
        assert_done(&run, EVLOCK_OK, 1);
    }
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
}

static void nobody_needs_to_know_of_the_end(void **state) {
    struct fixture *f = *state;
    struct run run = {.at_once = true};
    assert_status(evlock_with(lock_new(f, "a", NULL), body, NULL, &run), EVLOCK_OK);
    await(f, run.bodies);
    await(f, !key_exists(f->server, "a"));
    assert_int_equal(run.done.count, 0);
}

static void a_body_is_skipped_when_the_lock_is_not_had(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    evlock_options options = {.size = sizeof(evlock_options)};
    options.max_attempts = EVLOCK_TRY;
    foreign_hold(f, "a");
    assert_status(evlock_with(lock_new(f, "a", &options), body, done, &run), EVLOCK_OK);
    await(f, run.done.count);
    assert_done(&run, EVLOCK_EHELD, 0);

    run = (struct run){0};
    options.max_attempts = EVLOCK_UNLIMITED;
    options.retry_delay_ms = 10;
    options.max_wait_ms = 100;
    assert_status(evlock_with(lock_new(f, "a", &options), body, done, &run), EVLOCK_OK);
    await(f, run.done.count);
    assert_done(&run, EVLOCK_ETIMEDOUT, 0);
    assert_true(key_is(f->server, "a", "stranger", 8));
}

static void a_cancelled_scope_skips_its_body(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    evlock *lock = lock_new(f, "a", NULL);
    foreign_hold(f, "a");
    assert_status(evlock_with(lock, body, done, &run), EVLOCK_OK);
    assert_status(evlock_cancel(lock), EVLOCK_OK);
    await(f, run.done.count);
    assert_done(&run, EVLOCK_ECANCELLED, 0);
}

static void a_lease_lost_during_the_body_is_told_twice(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    struct record lost = {0};
    evlock_options options = with_ttl(400);
    options.on_lost = record_end;
    options.arg = &lost;
    evlock *lock = lock_new(f, "a", &options);
    assert_status(evlock_with(lock, body, done, &run), EVLOCK_OK);
    await(f, lost.count);
    run_for(f, 100);
    assert_int_equal(run.done.count, 0);
    foreign_hold(f, "a");
    end(&run);
    await(f, run.done.count);
    assert_done(&run, EVLOCK_ELOST, 1);
    assert_int_equal(lost.count, 1);
    assert_true(key_is(f->server, "a", "stranger", 8));
    assert_status(await_try(f, lock), EVLOCK_EHELD);
}

static void a_lease_that_is_gone_at_the_release_was_lost(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    assert_status(evlock_with(lock_new(f, "a", NULL), body, done, &run), EVLOCK_OK);
    await(f, run.scope);
    server_do(f->server, "DEL a");
    end(&run);
    await(f, run.done.count);
    assert_done(&run, EVLOCK_ELOST, 1);
}

static void a_lease_that_outlives_its_loss_was_lost(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    struct record lost = {0};
    evlock_options options = with_ttl(1000);
    options.on_lost = record_end;
    options.arg = &lost;
    assert_status(evlock_with(lock_new(f, "a", &options), body, done, &run), EVLOCK_OK);
    await(f, run.scope);
    server_do(f->server, "PERSIST a");
    await(f, lost.count);
    end(&run);
    await(f, run.done.count);
    assert_done(&run, EVLOCK_ELOST, 1);
    assert_false(key_exists(f->server, "a"));
}

static void a_release_that_is_not_confirmed_is_told(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    evlock_client_options options = client_options(f);
    options.command_timeout_ms = 300;
    client_new(f, NULL, &options);
    assert_status(evlock_with(lock_new(f, "a", NULL), body, done, &run), EVLOCK_OK);
    await(f, run.scope);
    server_pause(f->server);
    end(&run);
    await(f, run.done.count);
    assert_done(&run, EVLOCK_EUNREACHABLE, 1);
    server_resume(f->server);
    await(f, !key_exists(f->server, "a"));
}

static void a_handle_freed_during_the_body(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(evlock_with(lock, body, done, &run), EVLOCK_OK);
    await(f, run.scope);
    lock_free(f, lock);
    await(f, !key_exists(f->server, "a"));
    assert_int_equal(run.done.count, 0);
    end(&run);
    await(f, run.done.count);
    assert_int_equal(run.done.count, 1);
    assert_int_equal(run.done.value, 1);
    assert_int_not_equal(run.done.status, EVLOCK_OK);
}

static void a_client_closed_during_the_body(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    assert_status(evlock_with(lock_new(f, "a", NULL), body, done, &run), EVLOCK_OK);
    await(f, run.scope);
    assert_status(await_close(f, f->client), EVLOCK_OK);
    assert_false(key_exists(f->server, "a"));
    assert_int_equal(run.done.count, 0);
    end(&run);
    await(f, run.done.count);
    assert_int_equal(run.done.count, 1);
    assert_int_equal(run.done.value, 1);
    assert_int_not_equal(run.done.status, EVLOCK_OK);
}

static void a_client_freed_during_the_body(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    assert_status(evlock_with(lock_new(f, "a", NULL), body, done, &run), EVLOCK_OK);
    await(f, run.scope);
    client_free(f, f->client);
    run_for(f, 50);
    assert_int_equal(run.done.count, 0);
    end(&run);
    await(f, run.done.count);
    assert_int_equal(run.done.count, 1);
    assert_int_equal(run.done.value, 1);
    assert_int_not_equal(run.done.status, EVLOCK_OK);
}

static void a_handle_freed_before_the_body_skips_it(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(evlock_with(lock, body, done, &run), EVLOCK_OK);
    lock_free(f, lock);
    await(f, run.done.count);
    assert_done(&run, EVLOCK_ECANCELLED, 0);
    run_for(f, 100);
    assert_false(key_exists(f->server, "a"));
}

static void a_scope_needs_a_free_handle_and_a_body(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(evlock_with(NULL, body, done, &run), EVLOCK_EINVAL);
    assert_status(evlock_with(lock, NULL, done, &run), EVLOCK_EINVAL);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_status(evlock_with(lock, body, done, &run), EVLOCK_EALREADY);
    run_for(f, 50);
    assert_int_equal(run.done.count + run.bodies, 0);
    assert_true(evlock_is_held(lock));
}

/* --- evlock_run --------------------------------------------------------------------------------------------------- */

static void one_call_does_it_all(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    evlock_options options = {.size = sizeof(evlock_options)};
    options.prefix = "jobs:";
    assert_status(evlock_run(f->client, "a", EVLOCK_CSTRING, &options, body, done, &run), EVLOCK_OK);
    await(f, run.scope);
    assert_true(run.held);
    assert_true(key_exists(f->server, "jobs:a"));
    end(&run);
    await(f, run.done.count);
    assert_done(&run, EVLOCK_OK, 1);
    assert_int_equal(server_integer(f->server, "DBSIZE"), 0);
}

static void one_call_retries_three_times(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    foreign_hold(f, "a");
    long long before = server_calls(f->server, "set");
    assert_status(evlock_run(f->client, "a", EVLOCK_CSTRING, NULL, body, done, &run), EVLOCK_OK);
    await(f, run.done.count);
    assert_done(&run, EVLOCK_EHELD, 0);
    assert_int_equal(server_calls(f->server, "set") - before, 4);
}

static void one_call_retries_as_its_options_say(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    evlock_options options = {.size = sizeof(evlock_options)};
    options.max_attempts = 2;
    options.retry_delay_ms = 10;
    foreign_hold(f, "a");
    long long before = server_calls(f->server, "set");
    assert_status(evlock_run(f->client, "a", EVLOCK_CSTRING, &options, body, done, &run), EVLOCK_OK);
    await(f, run.done.count);
    assert_done(&run, EVLOCK_EHELD, 0);
    assert_int_equal(server_calls(f->server, "set") - before, 2);
}

/* More tries than those three fit into the wait, which ends in time. */
static void one_call_waits_as_its_options_say(void **state) {
    struct fixture *f = *state;
    struct run run = {0}, other = {0};
    evlock_handler *handler;
    evlock_options options = {.size = sizeof(evlock_options)};
    options.max_wait_ms = 400;
    options.retry_delay_ms = 5;
    options.retry_jitter = EVLOCK_NO_JITTER;
    foreign_hold(f, "a");
    assert_status(evlock_handler_new_named(&handler, f->client, "a", EVLOCK_CSTRING, &options, body), EVLOCK_OK);
    assert_status(evlock_run(f->client, "a", EVLOCK_CSTRING, &options, body, done, &run), EVLOCK_OK);
    assert_status(evlock_handler_call(handler, done, &other), EVLOCK_OK);
    evlock_handler_free(handler);
    await(f, run.done.count && other.done.count);
    assert_done(&run, EVLOCK_ETIMEDOUT, 0);
    assert_done(&other, EVLOCK_ETIMEDOUT, 0);

    /* The lock is had after more tries than three. */
    options.max_wait_ms = EVLOCK_UNLIMITED;
    run = (struct run){.at_once = true};
    server_do(f->server, "CONFIG RESETSTAT");
    assert_status(evlock_run(f->client, "a", EVLOCK_CSTRING, &options, body, done, &run), EVLOCK_OK);
    await(f, server_calls(f->server, "set") > 10);
    server_do(f->server, "DEL a");
    await(f, run.done.count);
    assert_done(&run, EVLOCK_OK, 1);
}

static void one_call_counts_and_waits(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    evlock_options options = {.size = sizeof(evlock_options)};
    options.max_wait_ms = WAIT_MS;
    options.max_attempts = 3;
    options.retry_delay_ms = 5;
    foreign_hold(f, "a");
    assert_status(evlock_run(f->client, "a", EVLOCK_CSTRING, &options, body, done, &run), EVLOCK_OK);
    await(f, run.done.count);
    assert_done(&run, EVLOCK_EHELD, 0);
}

static void one_call_checks_its_arguments(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    evlock_options options = with_ttl(-2);
    assert_status(evlock_run(NULL, "a", 1, NULL, body, done, &run), EVLOCK_EINVAL);
    assert_status(evlock_run(f->client, "", 0, NULL, body, done, &run), EVLOCK_ENAME);
    assert_status(evlock_run(f->client, "a", 1, &options, body, done, &run), EVLOCK_ETTL);
    assert_status(evlock_run(f->client, "a", 1, NULL, NULL, done, &run), EVLOCK_EINVAL);
    run_for(f, 50);
    assert_int_equal(run.done.count + run.bodies, 0);
}

static void one_call_ends_with_its_client(void **state) {
    struct fixture *f = *state;
    struct run waiting = {0};
    struct run running = {0};
    foreign_hold(f, "a");
    assert_status(evlock_run(f->client, "a", 1, NULL, body, done, &waiting), EVLOCK_OK);
    assert_status(evlock_run(f->client, "b", 1, NULL, body, done, &running), EVLOCK_OK);
    await(f, running.scope);
    assert_status(await_close(f, f->client), EVLOCK_OK);
    await(f, waiting.done.count);
    assert_int_equal(waiting.bodies, 0);
    assert_int_equal(running.done.count, 0);
    end(&running);
    await(f, running.done.count);
    assert_int_equal(running.done.value, 1);
    assert_false(key_exists(f->server, "b"));
}

/* --- Handlers ----------------------------------------------------------------------------------------------------- */

static struct run *current;

static void nightly(evlock_scope *scope, evlock *lock, void *arg) {
    (void)arg;
    body(scope, lock, current);
}

static void weekly(evlock_scope *scope, evlock *lock, void *arg) {
    (void)arg;
    body(scope, lock, current);
}

static void a_handlers_lock_is_named_after_its_file_and_function(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    evlock_handler *first;
    evlock_handler *second;
    size_t len;
    assert_status(evlock_handler_new(&first, f->client, NULL, nightly), EVLOCK_OK);
    assert_status(evlock_handler_new(&second, f->client, NULL, weekly), EVLOCK_OK);
    assert_string_equal(evlock_handler_name(first, &len), __FILE__ ":nightly");
    assert_int_equal(len, strlen(__FILE__ ":nightly"));
    assert_string_equal(evlock_handler_name(second, NULL), __FILE__ ":weekly");
    run_for(f, 50);
    assert_int_equal(server_integer(f->server, "DBSIZE"), 0);

    current = &run;
    assert_status(evlock_handler_call(first, done, &run), EVLOCK_OK);
    await(f, run.scope);
    assert_true(key_exists(f->server, __FILE__ ":nightly"));
    end(&run);
    await(f, run.done.count);
    assert_done(&run, EVLOCK_OK, 1);
    evlock_handler_free(first);
    evlock_handler_free(second);
}

enum { CALLS = 5 };

struct turns {
    struct record done[CALLS];
    int bodies;
    int inside;
    int most;
    evlock_scope *scope;
};

static struct turns *turns;

static void turn(evlock_scope *scope, evlock *lock, void *arg) {
    (void)lock;
    (void)arg;
    turns->bodies++;
    turns->inside++;
    if (turns->inside > turns->most)
        turns->most = turns->inside;
    turns->scope = scope;
}

static void calls_of_a_handler_take_turns(void **state) {
    struct fixture *f = *state;
    struct turns all = {0};
    evlock_handler *handler;
    evlock_options options = {.size = sizeof(evlock_options)};
    options.max_attempts = EVLOCK_UNLIMITED;
    options.retry_delay_ms = 10;
    turns = &all;
    assert_status(evlock_handler_new_named(&handler, f->client, "a\0b", 3, &options, turn), EVLOCK_OK);
    for (int i = 0; i < CALLS; i++)
        assert_status(evlock_handler_call(handler, record_scope, &all.done[i]), EVLOCK_OK);
    /* calls under way go on to their end without their handler */
    evlock_handler_free(handler);
    for (int i = 0; i < CALLS; i++) {
        await(f, all.scope);
        run_for(f, 50);
        evlock_scope *scope = all.scope;
        all.scope = NULL;
        all.inside--;
        evlock_scope_end(scope);
    }
    for (int i = 0; i < CALLS; i++) {
        await(f, all.done[i].count);
        assert_ended(&all.done[i], EVLOCK_OK);
        assert_int_equal(all.done[i].value, 1);
    }
    assert_int_equal(all.bodies, CALLS);
    assert_int_equal(all.most, 1);
}

static void a_handler_is_given_the_calls_argument(void **state) {
    struct fixture *f = *state;
    struct run run = {.at_once = true};
    evlock_handler *handler;
    assert_status(evlock_handler_new_named(&handler, f->client, "a", EVLOCK_CSTRING, NULL, body), EVLOCK_OK);
    assert_status(evlock_handler_call(handler, done, &run), EVLOCK_OK);
    await(f, run.done.count);
    assert_done(&run, EVLOCK_OK, 1);
    evlock_handler_free(handler);
}

static void a_handler_retries_three_times(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    evlock_handler *handler;
    foreign_hold(f, "a");
    assert_status(evlock_handler_new_named(&handler, f->client, "a", EVLOCK_CSTRING, NULL, body), EVLOCK_OK);
    long long before = server_calls(f->server, "set");
    assert_status(evlock_handler_call(handler, done, &run), EVLOCK_OK);
    await(f, run.done.count);
    assert_done(&run, EVLOCK_EHELD, 0);
    assert_int_equal(server_calls(f->server, "set") - before, 4);
    evlock_handler_free(handler);
}

static void a_handler_outlives_its_client(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    evlock_handler *handler;
    assert_status(evlock_handler_new_named(&handler, f->client, "a", EVLOCK_CSTRING, NULL, body), EVLOCK_OK);
    assert_status(await_close(f, f->client), EVLOCK_OK);
    assert_status(evlock_handler_call(handler, done, &run), EVLOCK_ECLOSED);
    assert_string_equal(evlock_handler_name(handler, NULL), "a");
    run_for(f, 50);
    assert_int_equal(run.done.count + run.bodies, 0);
    evlock_handler_free(handler);
}

static void a_handler_checks_its_arguments(void **state) {
    struct fixture *f = *state;
    evlock_handler *handler = NULL;
    evlock_options options = with_ttl(-2);
    assert_status(evlock_handler_new_named(NULL, f->client, "a", 1, NULL, body), EVLOCK_EINVAL);
    assert_status(evlock_handler_new_named(&handler, NULL, "a", 1, NULL, body), EVLOCK_EINVAL);
    assert_status(evlock_handler_new_named(&handler, f->client, "a", 1, NULL, NULL), EVLOCK_EINVAL);
    assert_status(evlock_handler_new_named(&handler, f->client, "", 0, NULL, body), EVLOCK_ENAME);
    assert_status(evlock_handler_new_named(&handler, f->client, "a", 1, &options, body), EVLOCK_ETTL);
    assert_status(evlock_handler_call(NULL, NULL, NULL), EVLOCK_EINVAL);
    assert_null(handler);
    assert_null(evlock_handler_name(NULL, NULL));
    evlock_handler_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_body_runs_under_its_lock),
        TEST(a_body_may_end_many_turns_later),
        TEST(a_handle_can_be_used_again_after_its_scope),
        TEST(nobody_needs_to_know_of_the_end),
        TEST(a_body_is_skipped_when_the_lock_is_not_had),
        TEST(a_cancelled_scope_skips_its_body),
        TEST(a_lease_lost_during_the_body_is_told_twice),
        TEST(a_lease_that_is_gone_at_the_release_was_lost),
        TEST(a_lease_that_outlives_its_loss_was_lost),
        TEST_BARE(a_release_that_is_not_confirmed_is_told),
        TEST(a_handle_freed_during_the_body),
        TEST(a_client_closed_during_the_body),
        TEST(a_client_freed_during_the_body),
        TEST(a_handle_freed_before_the_body_skips_it),
        TEST(a_scope_needs_a_free_handle_and_a_body),
        TEST(one_call_does_it_all),
        TEST(one_call_retries_three_times),
        TEST(one_call_retries_as_its_options_say),
        TEST(one_call_waits_as_its_options_say),
        TEST(one_call_counts_and_waits),
        TEST(one_call_checks_its_arguments),
        TEST(one_call_ends_with_its_client),
        TEST(a_handlers_lock_is_named_after_its_file_and_function),
        TEST(calls_of_a_handler_take_turns),
        TEST(a_handler_is_given_the_calls_argument),
        TEST(a_handler_retries_three_times),
        TEST(a_handler_outlives_its_client),
        TEST(a_handler_checks_its_arguments),
    };
    return run_suite("scope", tests);
}
