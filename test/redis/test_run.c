/*
 * Runs, on a real server: acquire, work, release, as one call on a handle, and as one call for all. Each test is named
 * after the behaviour that it shows.
 */
#include "harness.h"

#include <stdio.h>

/* One run of a body, ended by the test or in the body. */
struct run {
    struct record done;           /* value: whether the body ran */
    int bodies;                   /* how often the body was called */
    evlock *lock;                 /* while the body has not ended */
    int held;                     /* what evlock_is_held() said in the body */
    int (*work)(struct run *run); /* what else the body does, and its value; may be NULL */
    struct record released;
    struct record lost;
    evlock_client *client;
    struct server *server;
};

static int body(evlock *lock, void *arg) {
    struct run *run = arg;
    run->bodies++;
    run->held = evlock_is_held(lock);
    run->lock = lock;
    return run->work ? run->work(run) : EVLOCK_OK;
}

static void done(int status, bool ran, void *arg) {
    record_run(status, ran, &((struct run *)arg)->done);
}

/* Ends the body. */
static int end(struct run *run) {
    evlock *lock = run->lock;
    run->lock = NULL;
    return evlock_release(lock, NULL, NULL);
}

static int end_at_once(struct run *run) {
    return end(run);
}

#define assert_done(run, expected_status, expected_ran)                                                                \
    do {                                                                                                               \
        assert_ended(&(run)->done, (expected_status));                                                                 \
        assert_int_equal((run)->done.value, (expected_ran));                                                           \
        assert_int_equal((run)->bodies, (expected_ran));                                                               \
    } while (0)

#define await_done(f, run, expected_status, expected_ran)                                                              \
    do {                                                                                                               \
        await((f), (run)->done.count);                                                                                 \
        assert_done((run), (expected_status), (expected_ran));                                                         \
    } while (0)

/* Begins a run on the handle, and waits for its body. */
static void enter(struct fixture *f, evlock *lock, struct run *run) {
    assert_status(evlock_with(lock, body, done, run), EVLOCK_OK);
    await(f, run->bodies);
}

static void foreign_hold(struct fixture *f, const char *key) {
    server_do(f->server, "SET %s stranger NX PX 600000", key);
}

/* --- The body ----------------------------------------------------------------------------------------------------- */

static void a_body_runs_under_its_lock(void **state) {
    struct fixture *f = *state;
    struct run run = {.work = end_at_once};
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(evlock_with(lock, body, done, &run), EVLOCK_OK);
    assert_int_equal(run.bodies, 0);
    await_done(f, &run, EVLOCK_OK, 1);
    assert_true(run.held);
    assert_false(evlock_is_held(lock));
    assert_false(key_exists(f->server, "a"));
}

static void a_body_may_end_many_turns_later(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    evlock *lock = lock_new(f, "a", NULL);
    enter(f, lock, &run);
    assert_ptr_equal(run.lock, lock);
    run_for(f, 200);
    assert_int_equal(run.done.count, 0);
    assert_true(evlock_is_held(lock));
    assert_true(key_exists(f->server, "a"));
    assert_status(end(&run), EVLOCK_OK);
    assert_false(evlock_is_held(lock));
    assert_int_equal(run.done.count, 0);
    await_done(f, &run, EVLOCK_OK, 1);
    assert_false(key_exists(f->server, "a"));
}

static void a_handle_can_be_used_again_after_its_run(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    for (int i = 0; i < 3; i++) {
        struct run run = {.work = end_at_once};
        assert_status(evlock_with(lock, body, done, &run), EVLOCK_OK);
        await_done(f, &run, EVLOCK_OK, 1);
    }
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
}

static void nobody_needs_to_know_of_the_end(void **state) {
    struct fixture *f = *state;
    struct run run = {.work = end_at_once};
    assert_status(evlock_with(lock_new(f, "a", NULL), body, NULL, &run), EVLOCK_OK);
    await(f, run.bodies);
    await(f, !key_exists(f->server, "a"));
    assert_int_equal(run.done.count, 0);
}

/* The release's own callback comes first, from its own arg, and both once. */
static void a_release_is_told_before_its_run(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    enter(f, lock_new(f, "a", NULL), &run);
    assert_status(evlock_release(run.lock, record_end, &run.released), EVLOCK_OK);
    assert_status(evlock_release(run.lock, record_end, &run.released), EVLOCK_EALREADY);
    await_done(f, &run, EVLOCK_OK, 1);
    assert_ended(&run.released, EVLOCK_OK);
    assert_ptr_equal(run.released.object, run.lock);
    assert_true(run.released.order < run.done.order);
}

static int cannot_begin(struct run *run) {
    (void)run;
    return EVLOCK_EUNSUPPORTED;
}

static int a_value_of_its_own(struct run *run) {
    (void)run;
    return 7;
}

static void a_body_that_cannot_begin_says_why(void **state) {
    struct fixture *f = *state;
    int (*const works[])(struct run *) = {cannot_begin, a_value_of_its_own};
    const int values[] = {EVLOCK_EUNSUPPORTED, 7};
    evlock *lock = lock_new(f, "a", NULL);
    for (int i = 0; i < 2; i++) {
        struct run run = {.work = works[i]};
        assert_status(evlock_with(lock, body, done, &run), EVLOCK_OK);
        await_done(f, &run, values[i], 1);
        assert_string_equal(run.done.error, "");
        assert_false(key_exists(f->server, "a"));
    }
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
}

static int end_and_fail(struct run *run) {
    return end(run) == EVLOCK_OK ? 7 : 8;
}

static void a_body_that_has_ended_may_still_fail(void **state) {
    struct fixture *f = *state;
    struct run run = {.work = end_and_fail};
    assert_status(evlock_with(lock_new(f, "a", NULL), body, done, &run), EVLOCK_OK);
    await_done(f, &run, 7, 1);
    assert_false(key_exists(f->server, "a"));
}

static int free_the_handle(struct run *run) {
    evlock_free(run->lock);
    return EVLOCK_OK;
}

static int free_the_handle_and_fail(struct run *run) {
    evlock_free(run->lock);
    return 7;
}

static int free_the_client(struct run *run) {
    evlock_client_free(run->client);
    return EVLOCK_OK;
}

static int free_the_client_and_fail(struct run *run) {
    evlock_client_free(run->client);
    return 7;
}

static void a_body_may_free_its_handle(void **state) {
    struct fixture *f = *state;
    int (*const works[])(struct run *) = {free_the_handle, free_the_handle_and_fail};
    const int values[] = {EVLOCK_ECANCELLED, 7};
    for (int i = 0; i < 2; i++) {
        struct run run = {.work = works[i]}, own = {.work = works[i]};
        evlock *lock = lock_new(f, "a", NULL);
        lock_forget(f, lock);
        assert_status(evlock_with(lock, body, done, &run), EVLOCK_OK);
        assert_status(evlock_run(NULL, f->client, "b", 1, NULL, body, done, &own), EVLOCK_OK);
        await_done(f, &run, values[i], 1);
        await_done(f, &own, values[i], 1);
        await(f, server_integer(f->server, "DBSIZE") == 0);
    }
}

static void a_body_may_free_its_client(void **state) {
    struct fixture *f = *state;
    int (*const works[])(struct run *) = {free_the_client, free_the_client_and_fail};
    const int values[] = {EVLOCK_ECANCELLED, 7};
    for (int i = 0; i < 2; i++) {
        evlock_client *client = client_new(f, NULL, NULL);
        struct run run = {.work = works[i], .client = client}, other = {0};
        client_forget(f, client);
        assert_status(evlock_run(NULL, client, "a", 1, NULL, body, done, &run), EVLOCK_OK);
        assert_status(evlock_with(lock_new_on(f, client, "a", NULL), body, done, &other), EVLOCK_OK);
        await_done(f, &run, values[i], 1);
        await_done(f, &other, EVLOCK_ECANCELLED, 0);
        server_do(f->server, "FLUSHALL");
    }
}

/* --- The wait ----------------------------------------------------------------------------------------------------- */

static void a_body_is_skipped_when_the_lock_is_not_had(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    evlock_options options = {.size = sizeof(evlock_options)};
    options.max_attempts = EVLOCK_TRY;
    foreign_hold(f, "a");
    assert_status(evlock_with(lock_new(f, "a", &options), body, done, &run), EVLOCK_OK);
    await_done(f, &run, EVLOCK_EHELD, 0);

    run = (struct run){0};
    options.max_attempts = EVLOCK_UNLIMITED;
    options.retry_delay_ms = 10;
    options.max_wait_ms = 100;
    assert_status(evlock_with(lock_new(f, "a", &options), body, done, &run), EVLOCK_OK);
    await_done(f, &run, EVLOCK_ETIMEDOUT, 0);
    assert_string_not_equal(run.done.error, "");
    assert_true(key_is(f->server, "a", "stranger", 8));
}

static void a_cancelled_wait_skips_the_body(void **state) {
    struct fixture *f = *state;
    struct run run = {0}, next = {0};
    evlock *lock = lock_new(f, "a", NULL);
    foreign_hold(f, "a");
    assert_status(evlock_with(lock, body, done, &run), EVLOCK_OK);
    assert_status(evlock_cancel(lock), EVLOCK_OK);
    assert_int_equal(run.done.count, 0);
    /* the handle is free at once */
    assert_status(evlock_with(lock, body, done, &next), EVLOCK_OK);
    await_done(f, &run, EVLOCK_ECANCELLED, 0);
    server_do(f->server, "DEL a");
    await(f, next.bodies);
    assert_status(end(&next), EVLOCK_OK);
    await_done(f, &next, EVLOCK_OK, 1);
    assert_done(&run, EVLOCK_ECANCELLED, 0);
}

static void a_released_wait_skips_the_body(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    evlock *lock;
    foreign_hold(f, "a");
    assert_status(evlock_run(&lock, f->client, "a", 1, NULL, body, done, &run), EVLOCK_OK);
    assert_status(evlock_release(lock, record_end, &run.released), EVLOCK_OK);
    assert_int_equal(run.done.count + run.released.count, 0);
    await_done(f, &run, EVLOCK_ECANCELLED, 0);
    assert_ended(&run.released, EVLOCK_ENOTHELD);
    assert_true(run.released.order < run.done.order);

    run = (struct run){0};
    lock = lock_new(f, "a", NULL);
    assert_status(evlock_with(lock, body, done, &run), EVLOCK_OK);
    assert_status(evlock_release(lock, NULL, NULL), EVLOCK_OK);
    assert_status(evlock_release(lock, NULL, NULL), EVLOCK_ENOTHELD);
    await_done(f, &run, EVLOCK_ECANCELLED, 0);
    assert_true(key_is(f->server, "a", "stranger", 8));
}

/* Both are answered together, and the second is ended when the first is told. */
static void release_the_other(struct record *record) {
    struct run *run = record->then_arg;
    if (run->bodies == 0)
        (void)evlock_release(run->lock, record_end, &run->released);
}

static void a_wait_ends_though_its_lock_was_granted(void **state) {
    struct fixture *f = *state;
    for (int i = 0; i < 20; i++) {
        struct run run = {.lock = lock_new(f, "a", NULL)};
        struct record first = {.then = release_the_other, .then_arg = &run};
        evlock *other = lock_new(f, "b", NULL);
        await_connected(f, f->client);
        assert_status(evlock_acquire(other, NULL, record_end, &first), EVLOCK_OK);
        assert_status(evlock_with(run.lock, body, done, &run), EVLOCK_OK);
        await_done(f, &run, EVLOCK_ECANCELLED, 0);
        assert_ended(&run.released, EVLOCK_ENOTHELD);
        assert_true(run.released.order < run.done.order);
        lock_free(f, run.lock);
        lock_free(f, other);
        await(f, server_integer(f->server, "DBSIZE") == 0);
    }
}

static void a_body_goes_on_when_a_wait_would_be_cancelled(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    evlock *lock = lock_new(f, "a", NULL);
    enter(f, lock, &run);
    assert_status(evlock_cancel(lock), EVLOCK_ENOTHELD);
    run_for(f, 50);
    assert_int_equal(run.done.count, 0);
    assert_true(evlock_is_held(lock));
    assert_status(end(&run), EVLOCK_OK);
    await_done(f, &run, EVLOCK_OK, 1);
}

static void a_handle_freed_before_the_body_skips_it(void **state) {
    struct fixture *f = *state;
    struct run run = {0}, own = {0};
    evlock *lock = lock_new(f, "a", NULL), *made;
    assert_status(evlock_with(lock, body, done, &run), EVLOCK_OK);
    assert_status(evlock_run(&made, f->client, "b", 1, NULL, body, done, &own), EVLOCK_OK);
    lock_free(f, lock);
    evlock_free(made);
    assert_int_equal(run.done.count + own.done.count, 0);
    await_done(f, &run, EVLOCK_ECANCELLED, 0);
    await_done(f, &own, EVLOCK_ECANCELLED, 0);
    await(f, server_integer(f->server, "DBSIZE") == 0);
}

/* --- The lease ---------------------------------------------------------------------------------------------------- */

static void a_lease_lost_during_the_body_is_told_twice(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    evlock_options options = with_ttl(400);
    options.on_lost = record_end;
    options.arg = &run.lost;
    evlock *lock = lock_new(f, "a", &options);
    assert_status(evlock_with(lock, body, done, &run), EVLOCK_OK);
    await(f, run.lost.count);
    run_for(f, 100);
    assert_int_equal(run.done.count, 0);
    foreign_hold(f, "a");
    assert_status(end(&run), EVLOCK_OK);
    await_done(f, &run, EVLOCK_ELOST, 1);
    assert_int_equal(run.lost.count, 1);
    assert_true(key_is(f->server, "a", "stranger", 8));
    assert_status(await_try(f, lock), EVLOCK_EHELD);
}

static void a_lease_that_is_gone_at_the_release_was_lost(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    enter(f, lock_new(f, "a", NULL), &run);
    server_do(f->server, "DEL a");
    assert_status(evlock_release(run.lock, record_end, &run.released), EVLOCK_OK);
    await_done(f, &run, EVLOCK_ELOST, 1);
    assert_ended(&run.released, EVLOCK_ENOTOWNED);
}

static void a_lease_that_outlives_its_loss_was_lost(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    evlock_options options = with_ttl(1000);
    options.on_lost = record_end;
    options.arg = &run.lost;
    enter(f, lock_new(f, "a", &options), &run);
    server_do(f->server, "PERSIST a");
    await(f, run.lost.count);
    assert_status(end(&run), EVLOCK_OK);
    await_done(f, &run, EVLOCK_ELOST, 1);
    assert_false(key_exists(f->server, "a"));
}

static void a_release_that_is_not_confirmed_is_told(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    evlock_client_options options = client_options(f);
    options.command_timeout_ms = 300;
    client_new(f, NULL, &options);
    enter(f, lock_new(f, "a", NULL), &run);
    server_pause(f->server);
    assert_status(end(&run), EVLOCK_OK);
    await_done(f, &run, EVLOCK_EUNREACHABLE, 1);
    assert_string_not_equal(run.done.error, "");
    server_resume(f->server);
    await(f, !key_exists(f->server, "a"));
}

static int pause_the_server_and_fail(struct run *run) {
    server_pause(run->server);
    return 7;
}

/* And nothing else, be it that the release fails, too. */
static void a_body_that_cannot_begin_is_told_by_its_value(void **state) {
    struct fixture *f = *state;
    struct run run = {.work = pause_the_server_and_fail, .server = f->server};
    evlock_client_options options = client_options(f);
    options.command_timeout_ms = 300;
    client_new(f, NULL, &options);
    assert_status(evlock_with(lock_new(f, "a", NULL), body, done, &run), EVLOCK_OK);
    await_done(f, &run, 7, 1);
    assert_string_equal(run.done.error, "");
    server_resume(f->server);
    await(f, !key_exists(f->server, "a"));
}

static void a_body_may_hand_its_lease_over(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    char token[128];
    size_t len;
    evlock *heir = lock_new(f, "a", NULL);
    enter(f, lock_new(f, "a", NULL), &run);
    assert_status(evlock_export(run.lock, token, sizeof(token), &len), EVLOCK_OK);
    run_for(f, 20);
    assert_int_equal(run.done.count, 0);
    assert_status(evlock_acquire(run.lock, NULL, NULL, NULL), EVLOCK_EALREADY);
    assert_status(evlock_release(run.lock, record_end, &run.released), EVLOCK_OK);
    await_done(f, &run, EVLOCK_ENOTHELD, 1);
    assert_ended(&run.released, EVLOCK_ENOTHELD);
    assert_status(await_adopt(f, heir, token, len), EVLOCK_OK);
}

static void a_handle_freed_during_the_body(void **state) {
    struct fixture *f = *state;
    struct run run = {0}, own = {0};
    evlock *lock = lock_new(f, "a", NULL), *made;
    assert_status(evlock_run(&made, f->client, "b", 1, NULL, body, done, &own), EVLOCK_OK);
    enter(f, lock, &run);
    await(f, own.bodies);
    lock_free(f, lock);
    evlock_free(made);
    assert_int_equal(run.done.count + own.done.count, 0);
    await_done(f, &run, EVLOCK_ECANCELLED, 1);
    await_done(f, &own, EVLOCK_ECANCELLED, 1);
    await(f, server_integer(f->server, "DBSIZE") == 0);
}

static void a_handle_freed_during_its_release(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    evlock *lock = lock_new(f, "a", NULL);
    enter(f, lock, &run);
    assert_status(evlock_release(lock, record_end, &run.released), EVLOCK_OK);
    lock_free(f, lock);
    await_done(f, &run, EVLOCK_ECANCELLED, 1);
    assert_ended(&run.released, EVLOCK_ECANCELLED);
    await(f, !key_exists(f->server, "a"));
}

static void a_handle_serves_one_run_at_a_time(void **state) {
    struct fixture *f = *state;
    struct run run = {0}, second = {0};
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(evlock_with(NULL, body, done, &run), EVLOCK_EINVAL);
    assert_status(evlock_with(lock, NULL, done, &run), EVLOCK_EINVAL);
    assert_status(evlock_with(lock, body, done, &run), EVLOCK_OK);
    assert_status(evlock_with(lock, body, done, &second), EVLOCK_EALREADY);
    await(f, run.bodies);
    assert_status(evlock_with(lock, body, done, &second), EVLOCK_EALREADY);
    assert_status(evlock_acquire(lock, NULL, NULL, NULL), EVLOCK_EALREADY);
    assert_status(evlock_adopt(lock, "t", 1, NULL, NULL), EVLOCK_EALREADY);
    assert_true(evlock_is_held(lock));
    assert_status(end(&run), EVLOCK_OK);
    assert_status(evlock_with(lock, body, done, &second), EVLOCK_EALREADY);
    await_done(f, &run, EVLOCK_OK, 1);
    assert_int_equal(second.done.count + second.bodies, 0);

    /* A handle that holds by itself serves none. */
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_status(evlock_with(lock, body, done, &second), EVLOCK_EALREADY);
    run_for(f, 50);
    assert_int_equal(second.done.count + second.bodies, 0);
    assert_true(evlock_is_held(lock));
}

/* --- evlock_run --------------------------------------------------------------------------------------------------- */

static char name_at_the_end[8];

static void done_with_a_name(int status, bool ran, void *arg) {
    struct run *run = arg;
    snprintf(name_at_the_end, sizeof(name_at_the_end), "%s", (const char *)evlock_name(run->lock, NULL));
    done(status, ran, arg);
}

static void one_call_does_it_all(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    evlock_options options = {.size = sizeof(evlock_options)};
    evlock *lock = NULL;
    options.prefix = "jobs:";
    assert_status(evlock_run(&lock, f->client, "a", EVLOCK_CSTRING, &options, body, done_with_a_name, &run), EVLOCK_OK);
    assert_non_null(lock);
    assert_true(evlock_waited_ms(lock) >= 0);
    await(f, run.bodies);
    assert_ptr_equal(run.lock, lock);
    assert_true(run.held);
    assert_true(key_exists(f->server, "jobs:a"));
    assert_status(evlock_release(lock, NULL, NULL), EVLOCK_OK);
    /* the handle is valid until `done` has returned */
    await_done(f, &run, EVLOCK_OK, 1);
    assert_string_equal(name_at_the_end, "a");
    assert_int_equal(server_integer(f->server, "DBSIZE"), 0);
}

static void one_call_needs_no_place_for_its_handle(void **state) {
    struct fixture *f = *state;
    struct run run = {.work = end_at_once};
    assert_status(evlock_run(NULL, f->client, "a", EVLOCK_CSTRING, NULL, body, done, &run), EVLOCK_OK);
    await_done(f, &run, EVLOCK_OK, 1);
    assert_int_equal(server_integer(f->server, "DBSIZE"), 0);
}

static void free_in_done(int status, bool ran, void *arg) {
    struct run *run = arg;
    done(status, ran, arg);
    evlock_free(run->lock);
}

static void acquire_in_done(int status, bool ran, void *arg) {
    struct run *run = arg;
    done(status, ran, arg);
    (void)evlock_acquire(run->lock, NULL, record_end, &run->released);
}

/* What is begun on it in `done` ends with it. */
static void a_made_handle_ends_with_done(void **state) {
    struct fixture *f = *state;
    const evlock_done_cb dones[] = {free_in_done, acquire_in_done};
    for (int i = 0; i < 2; i++) {
        struct run run = {0};
        assert_status(evlock_run(NULL, f->client, "a", 1, NULL, body, dones[i], &run), EVLOCK_OK);
        await(f, run.bodies);
        assert_status(evlock_release(run.lock, NULL, NULL), EVLOCK_OK);
        await_done(f, &run, EVLOCK_OK, 1);
        if (i == 1) {
            await(f, run.released.count);
            assert_ended(&run.released, EVLOCK_ECANCELLED);
            assert_null(run.released.object);
        }
        await(f, !key_exists(f->server, "a"));
    }
}

static void a_made_handle_cancels_its_wait(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    evlock *lock;
    foreign_hold(f, "a");
    assert_status(evlock_run(&lock, f->client, "a", 1, NULL, body, done, &run), EVLOCK_OK);
    assert_status(evlock_cancel(lock), EVLOCK_OK);
    await_done(f, &run, EVLOCK_ECANCELLED, 0);
}

static void one_call_makes_four_attempts(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    foreign_hold(f, "a");
    long long before = server_calls(f->server, "set");
    assert_status(evlock_run(NULL, f->client, "a", EVLOCK_CSTRING, NULL, body, done, &run), EVLOCK_OK);
    await_done(f, &run, EVLOCK_EHELD, 0);
    assert_int_equal(server_calls(f->server, "set") - before, 4);
}

static void one_call_makes_as_many_attempts_as_its_options_say(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    evlock_options options = {.size = sizeof(evlock_options)};
    options.max_attempts = 2;
    options.retry_delay_ms = 10;
    foreign_hold(f, "a");
    long long before = server_calls(f->server, "set");
    assert_status(evlock_run(NULL, f->client, "a", EVLOCK_CSTRING, &options, body, done, &run), EVLOCK_OK);
    await_done(f, &run, EVLOCK_EHELD, 0);
    assert_int_equal(server_calls(f->server, "set") - before, 2);
}

/* More tries than those four fit into the wait, which ends in time. */
static void one_call_waits_as_its_options_say(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    evlock_options options = {.size = sizeof(evlock_options)};
    options.max_wait_ms = 400;
    options.retry_delay_ms = 5;
    options.retry_jitter = EVLOCK_NO_JITTER;
    foreign_hold(f, "a");
    assert_status(evlock_run(NULL, f->client, "a", EVLOCK_CSTRING, &options, body, done, &run), EVLOCK_OK);
    await_done(f, &run, EVLOCK_ETIMEDOUT, 0);

    /* The lock is had after more tries than four. */
    options.max_wait_ms = EVLOCK_UNLIMITED;
    run = (struct run){.work = end_at_once};
    server_do(f->server, "CONFIG RESETSTAT");
    assert_status(evlock_run(NULL, f->client, "a", EVLOCK_CSTRING, &options, body, done, &run), EVLOCK_OK);
    await(f, server_calls(f->server, "set") > 10);
    server_do(f->server, "DEL a");
    await_done(f, &run, EVLOCK_OK, 1);
}

/* The lock is had after more tries than four, and then by both: the second waits behind the first. */
static void one_call_counts_no_attempts_where_leases_are_passed_on(void **state) {
    struct fixture *f = *state;
    struct run runs[2] = {{.work = end_at_once}, {.work = end_at_once}};
    evlock_options options = {.size = sizeof(evlock_options)};
    options.max_passes = 1;
    options.retry_delay_ms = 5;
    foreign_hold(f, "a");
    for (int i = 0; i < 2; i++)
        assert_status(evlock_run(NULL, f->client, "a", EVLOCK_CSTRING, &options, body, done, &runs[i]), EVLOCK_OK);
    await(f, server_calls(f->server, "set") > 10);
    server_do(f->server, "DEL a");
    for (int i = 0; i < 2; i++)
        await_done(f, &runs[i], EVLOCK_OK, 1);
    assert_int_equal(stats_of(f->client).passed, 1);
}

static void one_call_counts_and_waits(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    evlock_options options = {.size = sizeof(evlock_options)};
    options.max_wait_ms = WAIT_MS;
    options.max_attempts = 3;
    options.retry_delay_ms = 5;
    foreign_hold(f, "a");
    assert_status(evlock_run(NULL, f->client, "a", EVLOCK_CSTRING, &options, body, done, &run), EVLOCK_OK);
    await_done(f, &run, EVLOCK_EHELD, 0);
}

static void one_call_checks_its_arguments(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    evlock_options options = with_ttl(-5);
    evlock *lock = NULL;
    assert_status(evlock_run(&lock, NULL, "a", 1, NULL, body, done, &run), EVLOCK_EINVAL);
    assert_status(evlock_run(&lock, f->client, "", 0, NULL, body, done, &run), EVLOCK_ENAME);
    assert_status(evlock_run(&lock, f->client, "a", 1, &options, body, done, &run), EVLOCK_ETTL);
    assert_status(evlock_run(&lock, f->client, "a", 1, NULL, NULL, done, &run), EVLOCK_EINVAL);
    assert_null(lock);
    run_for(f, 50);
    assert_int_equal(run.done.count + run.bodies, 0);
}

enum { CALLS = 5 };

static struct run *inside;

static int take_turns(struct run *run) {
    if (inside)
        return 7;
    inside = run;
    return EVLOCK_OK;
}

static int nightly(evlock *lock, void *arg) {
    return body(lock, arg);
}

/* A lock that is named after a function: its calls take turns. */
static void calls_of_a_function_take_turns(void **state) {
    struct fixture *f = *state;
    struct run runs[CALLS];
    evlock_options options = {.size = sizeof(evlock_options)};
    options.max_attempts = EVLOCK_UNLIMITED;
    options.retry_delay_ms = 10;
    inside = NULL;
    for (int i = 0; i < CALLS; i++) {
        runs[i] = (struct run){.work = take_turns};
        assert_status(
            evlock_run(NULL, f->client, EVLOCK_NAME_OF(nightly), EVLOCK_CSTRING, &options, nightly, done, &runs[i]),
            EVLOCK_OK);
    }
    for (int i = 0; i < CALLS; i++) {
        await(f, inside);
        assert_true(key_exists(f->server, EVLOCK_NAME_OF(nightly)));
        run_for(f, 30);
        struct run *run = inside;
        inside = NULL;
        assert_status(end(run), EVLOCK_OK);
    }
    for (int i = 0; i < CALLS; i++)
        await_done(f, &runs[i], EVLOCK_OK, 1);
}

/* Its file without a folder, where the compiler knows that. */
static void a_function_names_a_lock(void **state) {
    (void)state;
#ifdef __FILE_NAME__
    assert_string_equal(EVLOCK_NAME_OF(nightly), "test_run.c:nightly");
#else
    assert_string_equal(EVLOCK_NAME_OF(nightly), __FILE__ ":nightly");
#endif
}

/* --- With the client ---------------------------------------------------------------------------------------------- */

static evlock_options renewed(int64_t ttl_ms, struct run *run) {
    evlock_options options = with_ttl(ttl_ms);
    options.auto_renewal = true;
    options.on_lost = record_end;
    options.arg = &run->lost;
    return options;
}

/* The lease outlasts its ttl by far, while nothing else is left. */
static void a_close_lets_bodies_end(void **state) {
    struct fixture *f = *state;
    struct run run = {0}, own = {0}, waiting = {0}, queued = {0};
    struct record closed = {0};
    evlock_options options = renewed(400, &run), in_line = renewed(400, &queued);
    evlock *lock = lock_new(f, "a", &options), *plain = lock_new(f, "plain", NULL);
    in_line.wait = EVLOCK_WAIT_QUEUE;
    foreign_hold(f, "foreign");
    assert_status(await_acquire(f, plain, NULL), EVLOCK_OK);
    enter(f, lock, &run);
    assert_status(evlock_run(NULL, f->client, "b", 1, NULL, body, done, &own), EVLOCK_OK);
    await(f, own.bodies);
    assert_status(evlock_run(NULL, f->client, "foreign", 7, NULL, body, done, &waiting), EVLOCK_OK);
    assert_status(evlock_run(NULL, f->client, "b", 1, &in_line, body, done, &queued), EVLOCK_OK);
    run_for(f, 20);

    assert_status(evlock_client_close(f->client, record_closed, &closed), EVLOCK_OK);
    await_done(f, &waiting, EVLOCK_ECANCELLED, 0);
    await_done(f, &queued, EVLOCK_ECANCELLED, 0);
    await(f, !key_exists(f->server, "plain"));
    run_for(f, 1000);
    assert_int_equal(closed.count + run.done.count + own.done.count + run.lost.count, 0);
    assert_true(evlock_is_held(lock));
    assert_true(key_exists(f->server, "a"));

    assert_status(end(&run), EVLOCK_OK);
    await_done(f, &run, EVLOCK_OK, 1);
    assert_false(key_exists(f->server, "a"));
    run_for(f, 20);
    assert_int_equal(closed.count, 0);
    client_forget(f, f->client);
    assert_status(evlock_release(own.lock, record_end, &own.released), EVLOCK_OK);
    await(f, closed.count);
    assert_ended(&closed, EVLOCK_OK);
    assert_done(&own, EVLOCK_OK, 1);
    assert_ended(&own.released, EVLOCK_OK);
    assert_true(own.done.order < closed.order);
    assert_false(key_exists(f->server, "b"));
}

static void a_closing_client_takes_no_calls_but_ends(void **state) {
    struct fixture *f = *state;
    struct run run = {0}, other = {0};
    struct record closed = {0};
    char token[128];
    size_t len;
    evlock *lock = lock_new(f, "a", NULL), *idle = lock_new(f, "b", NULL);
    evlock_client *client = f->client;
    enter(f, lock, &run);
    assert_status(evlock_client_close(client, record_closed, &closed), EVLOCK_OK);
    client_forget(f, client);
    assert_status(evlock_client_close(client, NULL, NULL), EVLOCK_ECLOSED);
    assert_status(evlock_extend(lock, 1000, EVLOCK_EXTEND_ADD, NULL, NULL), EVLOCK_ECLOSED);
    assert_status(evlock_export(lock, token, sizeof(token), &len), EVLOCK_ECLOSED);
    assert_status(evlock_cancel(lock), EVLOCK_ECLOSED);
    assert_status(evlock_with(lock, body, done, &other), EVLOCK_ECLOSED);
    assert_status(evlock_release(idle, NULL, NULL), EVLOCK_ECLOSED);
    assert_status(evlock_acquire(idle, NULL, NULL, NULL), EVLOCK_ECLOSED);
    assert_status(evlock_run(NULL, client, "c", 1, NULL, body, done, &other), EVLOCK_ECLOSED);
    assert_true(evlock_is_held(lock));
    assert_status(end(&run), EVLOCK_OK);
    assert_status(evlock_release(lock, NULL, NULL), EVLOCK_ECLOSED);
    await(f, closed.count);
    assert_ended(&closed, EVLOCK_OK);
    assert_done(&run, EVLOCK_OK, 1);
    assert_int_equal(other.done.count + other.bodies, 0);
}

static void a_loss_is_told_while_its_client_closes(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    struct record closed = {0};
    evlock_options options = renewed(300, &run);
    enter(f, lock_new(f, "a", &options), &run);
    assert_status(evlock_client_close(f->client, record_closed, &closed), EVLOCK_OK);
    client_forget(f, f->client);
    server_do(f->server, "DEL a");
    await(f, run.lost.count);
    run_for(f, 20);
    assert_int_equal(closed.count + run.done.count, 0);
    assert_status(end(&run), EVLOCK_OK);
    await(f, closed.count);
    assert_ended(&closed, EVLOCK_OK);
    assert_done(&run, EVLOCK_ELOST, 1);
}

static void close_at_the_loss(evlock *lock, int status, void *arg) {
    struct run *run = arg;
    record_end(lock, status, &run->lost);
    (void)evlock_client_close(run->client, NULL, NULL);
}

/* Both leases are over before the loop looks, and whoever hears first closes the client. */
static void a_loss_that_was_seen_before_a_close_is_told(void **state) {
    struct fixture *f = *state;
    struct run runs[] = {{.client = f->client}, {.client = f->client}};
    evlock_options options = with_ttl(300);
    options.on_lost = close_at_the_loss;
    for (int i = 0; i < 2; i++) {
        options.arg = &runs[i];
        enter(f, lock_new(f, i ? "b" : "a", &options), &runs[i]);
    }
    while (evlock_is_held(runs[0].lock) || evlock_is_held(runs[1].lock))
        continue;
    client_forget(f, f->client);
    await(f, runs[0].lost.count && runs[1].lost.count);
    for (int i = 0; i < 2; i++) {
        assert_status(end(&runs[i]), EVLOCK_OK);
        await_done(f, &runs[i], EVLOCK_ELOST, 1);
    }
}

static void a_handle_freed_while_its_client_closes(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    struct record closed = {0};
    evlock *lock = lock_new(f, "a", NULL);
    enter(f, lock, &run);
    assert_status(evlock_client_close(f->client, record_closed, &closed), EVLOCK_OK);
    client_forget(f, f->client);
    run_for(f, 20);
    lock_free(f, lock);
    await(f, closed.count);
    assert_ended(&closed, EVLOCK_OK);
    assert_done(&run, EVLOCK_ECANCELLED, 1);
    assert_false(key_exists(f->server, "a"));
}

/* The leases are given back, and the bodies learn of it at once. */
static void a_close_waits_for_bodies_as_long_as_its_options_say(void **state) {
    struct fixture *f = *state;
    struct run run = {0}, own = {0}, handed_over = {0};
    struct record closed = {0};
    char token[128];
    size_t len;
    evlock_client_options options = client_options(f);
    options.close_wait_ms = 200;
    client_new(f, NULL, &options);
    enter(f, lock_new(f, "a", NULL), &run);
    enter(f, lock_new(f, "c", NULL), &handed_over);
    assert_status(evlock_export(handed_over.lock, token, sizeof(token), &len), EVLOCK_OK);
    assert_status(evlock_run(NULL, f->client, "b", 1, NULL, body, done, &own), EVLOCK_OK);
    await(f, own.bodies);
    int64_t begun = evlock_clock_us();
    assert_status(evlock_client_close(f->client, record_closed, &closed), EVLOCK_OK);
    client_forget(f, f->client);
    await(f, closed.count);
    assert_ended(&closed, EVLOCK_OK);
    assert_done(&run, EVLOCK_ECANCELLED, 1);
    assert_done(&own, EVLOCK_ECANCELLED, 1);
    assert_done(&handed_over, EVLOCK_ECANCELLED, 1);
    assert_true(run.done.at - begun >= 200000);
    assert_false(key_exists(f->server, "a"));
    assert_false(key_exists(f->server, "b"));
    assert_status(evlock_release(run.lock, NULL, NULL), EVLOCK_ECLOSED);
}

/* After the last body's end there is as much time as ever for what is left; not before. */
static void a_close_ends_though_the_server_is_silent(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    struct record closed = {0};
    evlock_client_options options = client_options(f);
    options.command_timeout_ms = 300;
    client_new(f, NULL, &options);
    enter(f, lock_new(f, "a", NULL), &run);
    assert_status(evlock_client_close(f->client, record_closed, &closed), EVLOCK_OK);
    client_forget(f, f->client);
    run_for(f, 500);
    assert_int_equal(closed.count, 0);
    server_pause(f->server);
    assert_status(end(&run), EVLOCK_OK);
    await(f, closed.count);
    server_resume(f->server);
    assert_ended(&closed, EVLOCK_EUNREACHABLE);
    assert_done(&run, EVLOCK_EUNREACHABLE, 1);
}

static void a_client_freed_during_the_body(void **state) {
    struct fixture *f = *state;
    struct run run = {0}, own = {0}, waiting = {0};
    foreign_hold(f, "foreign");
    enter(f, lock_new(f, "a", NULL), &run);
    assert_status(evlock_run(NULL, f->client, "b", 1, NULL, body, done, &own), EVLOCK_OK);
    assert_status(evlock_run(NULL, f->client, "foreign", 7, NULL, body, done, &waiting), EVLOCK_OK);
    await(f, own.bodies);
    client_free(f, f->client);
    assert_int_equal(run.done.count + own.done.count + waiting.done.count, 0);
    loop_turn(f->loop);
    await_done(f, &run, EVLOCK_ECANCELLED, 1);
    await_done(f, &own, EVLOCK_ECANCELLED, 1);
    await_done(f, &waiting, EVLOCK_ECANCELLED, 0);
    assert_status(evlock_release(run.lock, NULL, NULL), EVLOCK_ECLOSED);
}

static void a_client_freed_while_it_waits_for_bodies(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    struct record closed = {0};
    enter(f, lock_new(f, "a", NULL), &run);
    assert_status(evlock_client_close(f->client, record_closed, &closed), EVLOCK_OK);
    run_for(f, 20);
    client_free(f, f->client);
    await(f, closed.count);
    assert_ended(&closed, EVLOCK_ECANCELLED);
    assert_done(&run, EVLOCK_ECANCELLED, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_body_runs_under_its_lock),
        TEST(a_body_may_end_many_turns_later),
        TEST(a_handle_can_be_used_again_after_its_run),
        TEST(nobody_needs_to_know_of_the_end),
        TEST(a_release_is_told_before_its_run),
        TEST(a_body_that_cannot_begin_says_why),
        TEST(a_body_that_has_ended_may_still_fail),
        TEST(a_body_may_free_its_handle),
        TEST(a_body_may_free_its_client),
        TEST(a_body_is_skipped_when_the_lock_is_not_had),
        TEST(a_cancelled_wait_skips_the_body),
        TEST(a_released_wait_skips_the_body),
        TEST(a_wait_ends_though_its_lock_was_granted),
        TEST(a_body_goes_on_when_a_wait_would_be_cancelled),
        TEST(a_handle_freed_before_the_body_skips_it),
        TEST(a_lease_lost_during_the_body_is_told_twice),
        TEST(a_lease_that_is_gone_at_the_release_was_lost),
        TEST(a_lease_that_outlives_its_loss_was_lost),
        TEST_BARE(a_release_that_is_not_confirmed_is_told),
        TEST_BARE(a_body_that_cannot_begin_is_told_by_its_value),
        TEST(a_body_may_hand_its_lease_over),
        TEST(a_handle_freed_during_the_body),
        TEST(a_handle_freed_during_its_release),
        TEST(a_handle_serves_one_run_at_a_time),
        TEST(one_call_does_it_all),
        TEST(one_call_needs_no_place_for_its_handle),
        TEST(a_made_handle_ends_with_done),
        TEST(a_made_handle_cancels_its_wait),
        TEST(one_call_makes_four_attempts),
        TEST(one_call_makes_as_many_attempts_as_its_options_say),
        TEST(one_call_waits_as_its_options_say),
        TEST(one_call_counts_no_attempts_where_leases_are_passed_on),
        TEST(one_call_counts_and_waits),
        TEST(one_call_checks_its_arguments),
        TEST(calls_of_a_function_take_turns),
        TEST(a_function_names_a_lock),
        TEST(a_close_lets_bodies_end),
        TEST(a_closing_client_takes_no_calls_but_ends),
        TEST(a_loss_is_told_while_its_client_closes),
        TEST(a_loss_that_was_seen_before_a_close_is_told),
        TEST(a_handle_freed_while_its_client_closes),
        TEST_BARE(a_close_waits_for_bodies_as_long_as_its_options_say),
        TEST_BARE(a_close_ends_though_the_server_is_silent),
        TEST(a_client_freed_during_the_body),
        TEST(a_client_freed_while_it_waits_for_bodies),
    };
    return run_suite("run", tests);
}
