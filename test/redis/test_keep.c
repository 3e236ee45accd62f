/*
 * Holds: a lock that is held for ever comes back after every loss and every trouble, each change is reported once, and
 * the end is, too. Each test may leave its server in any state: the next one gets a new process.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "waiters.h"

#define KEEP_TEST(function) cmocka_unit_test_setup_teardown(function, fixture_setup_bare, fixture_teardown_restart)

enum { REPORTS_MAX = 64 };

/* All that a hold has reported. */
struct watch {
    int count;
    int statuses[REPORTS_MAX];
    evlock *last;    /* the handle that it was given */
    bool held;       /* what evlock_is_held() said at that */
    char error[256]; /* and evlock_last_error() */
    void (*then)(struct watch *watch);
    void *then_arg;
};

static void watched(evlock *lock, int status, void *arg) {
    struct watch *watch = arg;

    if (watch->count < REPORTS_MAX)
        watch->statuses[watch->count++] = status;
    watch->last = lock;
    watch->held = evlock_is_held(lock);
    snprintf(watch->error, sizeof(watch->error), "%s", evlock_last_error());
    if (watch->then)
        watch->then(watch);
}

static int newest(const struct watch *watch) {
    return watch->count ? watch->statuses[watch->count - 1] : 1;
}

/* Exactly these, in this order; what is listed ends with a number that is no status. */
static void assert_reports(const struct watch *watch, const int *expected) {
    int i = 0;

    for (; expected[i] <= 0; i++) {
        assert_true(i < watch->count);
        assert_status(watch->statuses[i], expected[i]);
    }
    assert_int_equal(watch->count, i);
}

#define assert_reported(watch, ...) assert_reports((watch), (const int[]){__VA_ARGS__, 1})

/* A client that is quick to come back. */
static evlock_client *client(struct fixture *f) {
    evlock_client_options options = client_options(f);

    options.backoff_min_ms = 10;
    options.backoff_max_ms = 100;
    return client_new(f, NULL, &options);
}

/* Not to be renewed, as far as the options go. */
static evlock_options quick(int64_t ttl_ms) {
    evlock_options options = with_ttl(ttl_ms);

    options.retry_delay_ms = 20;
    options.renewal_interval_ms = 50;
    return options;
}

static evlock *holding(struct fixture *f, evlock_client *of, const evlock_options *options, struct watch *watch) {
    evlock *lock = lock_new_on(f, of, "a", options);

    assert_status(evlock_hold(lock, watched, watch), EVLOCK_OK);
    assert_int_equal(watch->count, 0);
    await(f, watch->count);
    assert_status(watch->statuses[0], EVLOCK_OK);
    assert_true(watch->held && watch->last == lock);
    return lock;
}

/* Ends it, sees that nothing comes after that, and that nothing is left. */
static void ends_at_last(struct fixture *f, evlock *lock, struct watch *watch) {
    int before = watch->count;

    lock_free(f, lock);
    await(f, watch->count > before);
    assert_null(watch->last);
    run_for(f, 200);
    assert_int_equal(watch->count, before + 1);
    assert_status(newest(watch), EVLOCK_ECANCELLED);
    await(f, !key_exists(f->server, "a"));
}

/* --- Held --------------------------------------------------------------------------------------------------------- */

static void it_is_renewed_whatever_the_options_say(void **state) {
    struct fixture *f = *state;
    evlock_options options = quick(400);
    struct watch watch = {0};
    evlock *lock = holding(f, client(f), &options, &watch);

    await(f, stats_of(f->client).renewals > 12);
    assert_true(evlock_is_held(lock));
    assert_reported(&watch, EVLOCK_OK);
    ends_at_last(f, lock, &watch);
}

static void an_acquire_after_it_is_not_renewed(void **state) {
    struct fixture *f = *state;
    evlock_options options = quick(400);
    struct watch watch = {0};
    evlock *lock = holding(f, client(f), &options, &watch);

    assert_status(await_release(f, lock), EVLOCK_OK);
    server_do(f->server, "CONFIG RESETSTAT");
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    await(f, !evlock_is_held(lock));
    assert_int_equal(server_calls(f->server, "pexpire"), 0);
    assert_reported(&watch, EVLOCK_OK, EVLOCK_ECANCELLED);
}

static void without_expiry_it_needs_no_renewal(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(EVLOCK_NO_EXPIRY);
    struct watch watch = {0};
    evlock *lock = holding(f, client(f), &options, &watch);

    assert_int_equal(evlock_remaining_ms(lock), INT64_MAX);
    ends_at_last(f, lock, &watch);
}

static void the_lease_is_as_any_other(void **state) {
    struct fixture *f = *state;
    evlock_options options = quick(2000);
    struct watch watch = {0};
    evlock *lock = holding(f, client(f), &options, &watch);
    size_t len = 0;
    const void *token = evlock_token(lock, &len);

    assert_true(key_is(f->server, "a", token, len));
    assert_status(await_extend(f, lock, 5000, EVLOCK_EXTEND_ADD), EVLOCK_OK);
    assert_int_in_range(evlock_remaining_ms(lock), 4000, 8000);
    assert_status(await_query(f, lock, EVLOCK_QUERY_OWNED), EVLOCK_OK);
    assert_true(f->ended.answer.owned);
    assert_reported(&watch, EVLOCK_OK);
    ends_at_last(f, lock, &watch);
}

static void each_lease_draws_a_fence_if_the_lock_does(void **state) {
    struct fixture *f = *state;
    evlock_options options = quick(2000);
    struct watch watch = {0};

    options.fence = true;
    evlock *lock = holding(f, client(f), &options, &watch);
    uint64_t fence = evlock_fence(lock);
    assert_true(fence > 0);
    server_do(f->server, "DEL a");
    await(f, watch.count == 3);
    assert_reported(&watch, EVLOCK_OK, EVLOCK_ENOTOWNED, EVLOCK_OK);
    assert_true(evlock_fence(lock) > fence);
    lock_free(f, lock);
    await(f, watch.count == 4 && !key_exists(f->server, "a"));
}

static void each_lease_is_counted(void **state) {
    struct fixture *f = *state;
    evlock_options options = quick(20000);
    struct watch watch = {0};
    evlock_stats stats;

    evlock *lock = holding(f, client(f), &options, &watch);
    server_do(f->server, "DEL a");
    await(f, watch.count == 3);
    assert_reported(&watch, EVLOCK_OK, EVLOCK_ENOTOWNED, EVLOCK_OK);
    assert_status(evlock_client_stats(f->client, &stats, sizeof(stats)), EVLOCK_OK);
    assert_int_equal(stats.acquired, 2);
    assert_int_equal(stats.waited, 0);
    assert_int_equal(stats.lost_not_owned, 1);
    ends_at_last(f, lock, &watch);
}

/* --- Another holder ----------------------------------------------------------------------------------------------- */

static void limits_of_an_acquire_do_not_count(void **state) {
    struct fixture *f = *state;
    evlock_options options = quick(2000);
    struct watch watch = {0};

    options.max_attempts = 2;
    options.max_wait_ms = 30;
    options.fail_when_away = true;
    server_do(f->server, "SET a stranger PX 600000");
    evlock *lock = lock_new_on(f, client(f), "a", &options);
    assert_status(evlock_hold(lock, watched, &watch), EVLOCK_OK);
    await(f, server_calls(f->server, "set") > 10);
    assert_reported(&watch, EVLOCK_EHELD);
    assert_true(evlock_waited_ms(lock) > 0);
    server_do(f->server, "DEL a");
    await(f, watch.count == 2);
    assert_reported(&watch, EVLOCK_EHELD, EVLOCK_OK);
    assert_int_equal(evlock_waited_ms(lock), 0);
    ends_at_last(f, lock, &watch);
}

static void a_break_is_a_loss_and_it_comes_back(void **state) {
    struct fixture *f = *state;
    evlock_options options = quick(2000);
    struct record lost = {0};
    struct watch watch = {0};

    options.on_lost = record_end;
    options.arg = &lost;
    evlock *lock = holding(f, client(f), &options, &watch);
    evlock *other = lock_new(f, "a", NULL);
    for (int i = 1; i <= 3; i++) {
        assert_status(await_break(f, other), EVLOCK_OK);
        await(f, watch.count == 1 + 2 * i);
        assert_true(evlock_is_held(lock));
    }
    assert_reported(&watch, EVLOCK_OK, EVLOCK_ENOTOWNED, EVLOCK_OK, EVLOCK_ENOTOWNED, EVLOCK_OK, EVLOCK_ENOTOWNED,
                    EVLOCK_OK);
    assert_int_equal(lost.count, 0);
    ends_at_last(f, lock, &watch);
}

static void who_broke_it_and_took_it_is_waited_for(void **state) {
    struct fixture *f = *state;
    evlock_options options = quick(2000);
    struct watch watch = {0};
    evlock *lock = holding(f, client(f), &options, &watch);

    server_do(f->server, "SET a stranger PX 600000");
    await(f, watch.count == 3);
    assert_reported(&watch, EVLOCK_OK, EVLOCK_ENOTOWNED, EVLOCK_EHELD);
    server_do(f->server, "DEL a");
    await(f, watch.count == 4);
    assert_status(newest(&watch), EVLOCK_OK);
    ends_at_last(f, lock, &watch);
}

static void a_term_ends_and_who_waits_in_the_queue_comes_before_it(void **state) {
    struct fixture *f = *state;
    evlock_options options = queueing(500), others = queueing(2000);
    struct watch watch = {0};
    struct record record = {0};

    options.max_hold_ms = 100;
    evlock *lock = holding(f, client(f), &options, &watch);
    evlock *other = joins(f, client(f), &others, &record);
    await(f, watch.count == 3);
    assert_ended(&record, EVLOCK_OK);
    assert_reported(&watch, EVLOCK_OK, EVLOCK_EMAXHOLD, EVLOCK_EHELD);
    assert_status(await_release(f, other), EVLOCK_OK);
    await(f, watch.count == 4);
    assert_status(newest(&watch), EVLOCK_OK);
    ends_at_last(f, lock, &watch);
}

/* --- A leader hands over ------------------------------------------------------------------------------------------ */

/* The ttl is much longer than the test waits. */
static void a_close_hands_over(struct fixture *f, const evlock_options *options) {
    struct watch first = {0}, second = {0};
    evlock_client *leader = client(f), *follower = client(f);

    holding(f, leader, options, &first);
    evlock *next = lock_new_on(f, follower, "a", options);
    assert_status(evlock_hold(next, watched, &second), EVLOCK_OK);
    await(f, second.count);
    assert_reported(&second, EVLOCK_EHELD);
    assert_status(await_close(f, leader), EVLOCK_OK);
    assert_reported(&first, EVLOCK_OK, EVLOCK_ECANCELLED);
    await(f, second.count == 2);
    assert_reported(&second, EVLOCK_EHELD, EVLOCK_OK);
    ends_at_last(f, next, &second);
}

static void a_close_hands_over_to_who_polls(void **state) {
    evlock_options options = quick(120000);

    a_close_hands_over(*state, &options);
}

static void a_close_hands_over_to_who_queues(void **state) {
    evlock_options options = patient(120000);

    a_close_hands_over(*state, &options);
}

static void a_close_ends_one_that_waits(void **state) {
    struct fixture *f = *state;
    struct watch watch = {0};
    evlock_client *of = client(f);

    server_do(f->server, "SET a stranger PX 600000");
    assert_status(evlock_hold(lock_new_on(f, of, "a", NULL), watched, &watch), EVLOCK_OK);
    await(f, watch.count);
    assert_status(await_close(f, of), EVLOCK_OK);
    assert_reported(&watch, EVLOCK_EHELD, EVLOCK_ECANCELLED);
}

/* --- Troubles ----------------------------------------------------------------------------------------------------- */

static void a_server_that_forgets_is_a_loss(void **state) {
    struct fixture *f = *state;
    evlock_options options = quick(20000);
    struct watch watch = {0};
    evlock *lock = holding(f, client(f), &options, &watch);

    server_restart(f->server);
    await(f, watch.count == 3);
    assert_reported(&watch, EVLOCK_OK, EVLOCK_EDATALOSS, EVLOCK_OK);
    ends_at_last(f, lock, &watch);
}

static void a_server_that_stays_away_is_reported_once(void **state) {
    struct fixture *f = *state;
    evlock_options options = quick(2000);
    struct record risk = {0};
    struct watch watch = {0};

    options.on_at_risk = record_risk;
    options.arg = &risk;
    evlock *lock = holding(f, client(f), &options, &watch);
    server_kill9(f->server);
    await(f, watch.count == 3);
    assert_int_equal(risk.count, 1);
    run_for(f, 300);
    assert_reported(&watch, EVLOCK_OK, EVLOCK_EEXPIRED, EVLOCK_EUNREACHABLE);
    assert_string_not_equal(watch.error, "");
    server_restart(f->server);
    await(f, watch.count == 4);
    assert_status(newest(&watch), EVLOCK_OK);
    ends_at_last(f, lock, &watch);
}

static void outlasts_the_lease(evlock *lock, int status, void *arg) {
    record_risk(lock, status, arg);
    while (evlock_remaining_ms(lock) > 0)
        usleep(1000);
}

/* A hold that was told of a risk waits to be asked for news. The loss comes in that very turn, and goes ahead. */
static void a_loss_right_after_a_risk_is_reported(void **state) {
    struct fixture *f = *state;
    evlock_options options = quick(1000);
    struct record risk = {0};
    struct watch watch = {0};

    options.on_at_risk = outlasts_the_lease;
    options.arg = &risk;
    evlock *lock = holding(f, client(f), &options, &watch);
    server_pause(f->server);
    await(f, risk.count);
    await(f, watch.count > 1);
    assert_reported(&watch, EVLOCK_OK, EVLOCK_EEXPIRED);
    server_resume(f->server);
    await(f, newest(&watch) == EVLOCK_OK && watch.count > 2);
    assert_int_equal(risk.count, 1);
    ends_at_last(f, lock, &watch);
}

/* Which is to be held when the other's lease is lost, and is lost just then. */
struct successor {
    evlock *lock;
    struct watch watch;
    struct record lost;
    int told_before; /* what the hold had reported by its loss */
};

static void hold_at_the_loss(evlock *lock, int status, void *arg) {
    struct successor *successor = arg;

    (void)lock;
    assert_status(status, EVLOCK_EEXPIRED);
    assert_false(evlock_is_held(successor->lock));
    assert_status(evlock_hold(successor->lock, watched, &successor->watch), EVLOCK_OK);
}

static void successor_lost(evlock *lock, int status, void *arg) {
    struct successor *successor = arg;

    successor->told_before = successor->watch.count;
    record_end(lock, status, &successor->lost);
}

static void the_loss_of_the_lease_before_is_not_its_own(void **state) {
    struct fixture *f = *state;
    struct successor successor = {.told_before = -1};
    evlock_options options = quick(3000);

    evlock_client *of = client(f);
    options.on_lost = hold_at_the_loss;
    options.arg = &successor;
    evlock *lock = lock_new_on(f, of, "first", &options);
    options.on_lost = successor_lost;
    successor.lock = lock_new_on(f, of, "a", &options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_status(await_acquire(f, successor.lock, NULL), EVLOCK_OK);
    while (evlock_remaining_ms(successor.lock) > 0) /* both are lost in one turn of the loop */
        usleep(1000);
    await(f, successor.watch.count);
    assert_ended(&successor.lost, EVLOCK_EEXPIRED);
    assert_int_equal(successor.told_before, 0);
    assert_reported(&successor.watch, EVLOCK_OK);
    ends_at_last(f, successor.lock, &successor.watch);
}

static void no_server_at_the_beginning_is_reported(void **state) {
    struct fixture *f = *state;
    struct watch watch = {0};

    server_kill9(f->server);
    evlock_options options = quick(20000);
    evlock *lock = lock_new_on(f, client(f), "a", &options);
    assert_status(evlock_hold(lock, watched, &watch), EVLOCK_OK);
    await(f, watch.count == 1);
    run_for(f, 300);
    assert_reported(&watch, EVLOCK_EUNREACHABLE);
    server_restart(f->server);
    await(f, watch.count == 2);
    assert_status(newest(&watch), EVLOCK_OK);
    ends_at_last(f, lock, &watch);
}

/* Who waits in the queue learns of it, and that the other holds it again. */
static void one_in_the_queue_hears_of_troubles(void **state) {
    struct fixture *f = *state;
    evlock_options options = queueing(20000);
    struct watch watch = {0};
    evlock *lock = lock_new_on(f, client(f), "a", &options);

    server_do(f->server, "SET a stranger PX 600000");
    assert_status(evlock_hold(lock, watched, &watch), EVLOCK_OK);
    await(f, waiting(f) == 1);
    assert_reported(&watch, EVLOCK_EHELD);
    server_kill9(f->server);
    await(f, watch.count == 2);
    assert_reported(&watch, EVLOCK_EHELD, EVLOCK_EUNREACHABLE);
    server_restart(f->server);
    await(f, watch.count == 3);
    assert_status(newest(&watch), EVLOCK_OK);
    ends_at_last(f, lock, &watch);
}

static long long evals(struct fixture *f) {
    return server_calls(f->server, "evalsha") + server_calls(f->server, "eval");
}

static void a_wrong_password_is_waited_out(void **state) {
    struct fixture *f = *state;
    struct watch watch = {0};
    evlock_options options = quick(20000);

    server_do(f->server, "CONFIG SET requirepass secret");
    evlock *lock = lock_new_on(f, client(f), "a", &options);
    assert_status(evlock_hold(lock, watched, &watch), EVLOCK_OK);
    await(f, watch.count == 1);
    run_for(f, 300);
    assert_reported(&watch, EVLOCK_EAUTH);
    assert_non_null(strstr(watch.error, "AUTH"));
    server_do(f->server, "CONFIG SET requirepass %s", "");
    await(f, watch.count == 2);
    assert_status(newest(&watch), EVLOCK_OK);
    ends_at_last(f, lock, &watch);
}

static void a_refusal_is_waited_out_without_hammering(void **state) {
    struct fixture *f = *state;
    struct watch watch = {0};
    evlock_options options = quick(20000);

    options.retry_delay_ms = 1;
    server_do(f->server, "ACL SETUSER default -set");
    evlock *lock = lock_new_on(f, client(f), "a", &options);
    assert_status(evlock_hold(lock, watched, &watch), EVLOCK_OK);
    await(f, server_errors(f->server, "NOPERM") >= 9); /* the longest pause by now, and no longer one */
    int64_t begun = evlock_clock_us();
    long long before = server_errors(f->server, "NOPERM");
    run_for(f, 500);
    int64_t most = (evlock_clock_us() - begun) / 50000 + 2; /* by pauses of 50 ms, the upper half of 100 */
    assert_int_in_range(server_errors(f->server, "NOPERM") - before, 1, most);
    assert_reported(&watch, EVLOCK_EPERM);
    server_do(f->server, "ACL SETUSER default +set");
    await(f, watch.count == 2);
    assert_status(newest(&watch), EVLOCK_OK);
    ends_at_last(f, lock, &watch);
}

/* Another answer in between ends the doubling: the pauses that were come to more than four seconds. */
static void pauses_begin_anew_after_another_answer(void **state) {
    struct fixture *f = *state;
    struct watch watch = {0};
    evlock_options options = quick(20000);
    evlock_client_options patient_client = client_options(f);

    options.retry_delay_ms = 1;
    patient_client.backoff_min_ms = 10;
    server_do(f->server, "SET a stranger PX 600000");
    server_do(f->server, "ACL SETUSER default -set");
    evlock *lock = lock_new_on(f, client_new(f, NULL, &patient_client), "a", &options);
    assert_status(evlock_hold(lock, watched, &watch), EVLOCK_OK);
    await(f, server_errors(f->server, "NOPERM") >= 7);
    server_do(f->server, "ACL SETUSER default +set");
    await(f, watch.count == 2);
    assert_reported(&watch, EVLOCK_EPERM, EVLOCK_EHELD);
    server_do(f->server, "ACL SETUSER default -set");
    await(f, watch.count == 3);
    int64_t begun = evlock_clock_us();
    long long before = server_errors(f->server, "NOPERM");
    await(f, server_errors(f->server, "NOPERM") >= before + 3);
    assert_true(evlock_clock_us() - begun < 4000000);
    assert_status(newest(&watch), EVLOCK_EPERM);
    server_do(f->server, "ACL SETUSER default +set");
    server_do(f->server, "DEL a");
    await(f, newest(&watch) == EVLOCK_OK);
    ends_at_last(f, lock, &watch);
}

static void what_is_no_lock_is_waited_out(void **state) {
    struct fixture *f = *state;
    struct watch watch = {0};
    evlock_options options = quick(20000);

    server_do(f->server, "RPUSH a b");
    evlock *lock = lock_new_on(f, client(f), "a", &options);
    assert_status(evlock_hold(lock, watched, &watch), EVLOCK_OK);
    await(f, server_calls(f->server, "get") > 4);
    assert_reported(&watch, EVLOCK_EWRONGTYPE);
    server_do(f->server, "SET a stranger");
    await(f, watch.count == 2);
    assert_status(newest(&watch), EVLOCK_EHELD);
    server_do(f->server, "DEL a");
    await(f, watch.count == 3);
    assert_status(newest(&watch), EVLOCK_OK);
    ends_at_last(f, lock, &watch);
}

/* It is looked for anew after each loss. */
static void what_is_no_lock_after_a_loss_is_reported(void **state) {
    struct fixture *f = *state;
    struct watch watch = {0};
    evlock_options options = quick(20000);
    evlock *lock = lock_new_on(f, client(f), "a", &options);

    server_do(f->server, "RPUSH b c");
    server_do(f->server, "SET a stranger PX 600000");
    assert_status(evlock_hold(lock, watched, &watch), EVLOCK_OK);
    await(f, watch.count == 1);
    server_do(f->server, "DEL a");
    await(f, watch.count == 2);
    server_do(f->server, "RENAME b a");
    await(f, watch.count == 4);
    assert_reported(&watch, EVLOCK_EHELD, EVLOCK_OK, EVLOCK_ENOTOWNED, EVLOCK_EWRONGTYPE);
    server_do(f->server, "DEL a");
    await(f, watch.count == 5);
    assert_status(newest(&watch), EVLOCK_OK);
    ends_at_last(f, lock, &watch);
}

static void a_forged_fence_is_waited_out_without_hammering(void **state) {
    struct fixture *f = *state;
    struct watch watch = {0};
    evlock_options options = quick(20000);

    options.retry_delay_ms = 1;
    options.fence = true;
    server_do(f->server, "SET {a}:fence text");
    evlock *lock = lock_new_on(f, client(f), "a", &options);
    assert_status(evlock_hold(lock, watched, &watch), EVLOCK_OK);
    await(f, evals(f) >= 6);
    int64_t begun = evlock_clock_us();
    long long before = evals(f);
    run_for(f, 500);
    int64_t most = (evlock_clock_us() - begun) / 50000 + 2;
    assert_int_in_range(evals(f) - before, 1, most);
    assert_reported(&watch, EVLOCK_EFENCE);
    server_do(f->server, "DEL {a}:fence");
    await(f, watch.count == 2);
    assert_status(newest(&watch), EVLOCK_OK);
    ends_at_last(f, lock, &watch);
}

/* --- The end ------------------------------------------------------------------------------------------------------ */

static void a_release_ends_it(void **state) {
    struct fixture *f = *state;
    evlock_options options = quick(20000);
    struct watch watch = {0};
    evlock *lock = holding(f, client(f), &options, &watch);

    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_reported(&watch, EVLOCK_OK, EVLOCK_ECANCELLED);
    assert_ptr_equal(watch.last, lock);
    assert_false(key_exists(f->server, "a"));
    run_for(f, 200);
    assert_int_equal(watch.count, 2);
    assert_status(evlock_release(lock, NULL, NULL), EVLOCK_ENOTHELD);
}

static void a_release_ends_one_that_waits(void **state) {
    struct fixture *f = *state;
    struct watch watch = {0};
    struct record released = {0};
    evlock_options options = quick(20000);
    evlock *lock = lock_new_on(f, client(f), "a", &options);

    server_do(f->server, "SET a stranger PX 600000");
    assert_status(evlock_hold(lock, watched, &watch), EVLOCK_OK);
    await(f, watch.count);
    assert_status(evlock_release(lock, record_end, &released), EVLOCK_OK);
    assert_int_equal(watch.count, 1);
    await(f, released.count);
    assert_ended(&released, EVLOCK_ENOTHELD);
    assert_reported(&watch, EVLOCK_EHELD, EVLOCK_ECANCELLED);
    server_do(f->server, "DEL a");
    run_for(f, 200);
    assert_int_equal(watch.count, 2);
    assert_false(key_exists(f->server, "a"));
}

/* Granted, and not yet reported: the call comes first. */
static void a_release_before_the_report_undoes_the_grant(void **state) {
    struct fixture *f = *state;
    evlock_options options = quick(20000);
    struct watch watch = {0};
    struct record released = {0};
    evlock *lock = lock_new_on(f, client(f), "a", &options);

    await_connected(f, f->client);
    assert_status(evlock_hold(lock, watched, &watch), EVLOCK_OK);
    assert_status(evlock_release(lock, record_end, &released), EVLOCK_OK);
    assert_status(evlock_hold(lock, watched, &watch), EVLOCK_OK);
    await(f, released.count && watch.count == 2);
    assert_ended(&released, EVLOCK_ENOTHELD);
    assert_reported(&watch, EVLOCK_ECANCELLED, EVLOCK_OK);
    ends_at_last(f, lock, &watch);
}

static void a_cancel_ends_what_waits_and_only_that(void **state) {
    struct fixture *f = *state;
    evlock_options options = quick(20000);
    struct watch first = {0}, second = {0};
    evlock_client *of = client(f);
    evlock *leader = holding(f, of, &options, &first);
    evlock *follower = lock_new_on(f, of, "a", &options);

    assert_status(evlock_hold(follower, watched, &second), EVLOCK_OK);
    await(f, second.count);
    assert_status(evlock_cancel(leader), EVLOCK_ENOTHELD);
    assert_status(evlock_cancel(follower), EVLOCK_OK);
    assert_status(evlock_cancel(follower), EVLOCK_ENOTHELD);
    await(f, second.count == 2);
    assert_reported(&second, EVLOCK_EHELD, EVLOCK_ECANCELLED);
    assert_reported(&first, EVLOCK_OK);
    assert_true(evlock_is_held(leader));
    ends_at_last(f, leader, &first);
}

static void an_export_ends_it_and_the_lease_goes_on(void **state) {
    struct fixture *f = *state;
    evlock_options options = quick(20000);
    struct watch watch = {0};
    evlock *lock = holding(f, client(f), &options, &watch);
    char token[128];
    size_t len;

    assert_status(evlock_export(lock, token, sizeof(token), &len), EVLOCK_OK);
    await(f, watch.count == 2);
    assert_reported(&watch, EVLOCK_OK, EVLOCK_ECANCELLED);
    assert_true(key_is(f->server, "a", token, len));
    evlock *heir = lock_new(f, "a", NULL);
    assert_status(await_adopt(f, heir, token, len), EVLOCK_OK);
    assert_status(await_release(f, heir), EVLOCK_OK);
    assert_int_equal(watch.count, 2);
}

/* --- Wrong calls -------------------------------------------------------------------------------------------------- */

static void a_handle_does_one_thing_at_a_time(void **state) {
    struct fixture *f = *state;
    evlock_options options = quick(20000);
    struct watch watch = {0}, none = {0};
    evlock *lock = holding(f, client(f), &options, &watch);
    evlock *busy = lock_new(f, "b", NULL);

    assert_status(evlock_hold(lock, watched, &none), EVLOCK_EALREADY);
    assert_status(evlock_acquire(lock, NULL, NULL, NULL), EVLOCK_EALREADY);
    assert_status(evlock_adopt(lock, "token", EVLOCK_CSTRING, NULL, NULL), EVLOCK_EALREADY);
    assert_status(await_acquire(f, busy, NULL), EVLOCK_OK);
    assert_status(evlock_hold(busy, watched, &none), EVLOCK_EALREADY);
    assert_int_equal(none.count, 0);
    ends_at_last(f, lock, &watch);
}

static void what_cannot_be_held_is_refused(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(1000);

    client(f);
    assert_status(evlock_hold(NULL, watched, NULL), EVLOCK_EINVAL);
    assert_status(evlock_hold(lock_new(f, "a", NULL), NULL, NULL), EVLOCK_EINVAL);
    options.lost_lead_ms = 900;
    assert_status(evlock_hold(lock_new(f, "a", &options), watched, NULL), EVLOCK_ERENEWAL);
    options.lost_lead_ms = 0;
    options.ttl_ms = 3;
    options.retry_delay_ms = 1;
    assert_status(evlock_hold(lock_new(f, "a", &options), watched, NULL), EVLOCK_ERENEWAL);
}

/* --- From inside its callback ------------------------------------------------------------------------------------- */

struct scene {
    struct fixture *f;
    evlock *lock;
    int at; /* the status at which to act */
    void (*act)(struct scene *scene);
    struct watch again;
};

static void act_then(struct watch *watch) {
    struct scene *scene = watch->then_arg;

    if (newest(watch) == scene->at && scene->act) {
        void (*act)(struct scene * scene) = scene->act;
        scene->act = NULL;
        act(scene);
    }
}

static void free_lock(struct scene *scene) {
    lock_free(scene->f, scene->lock);
}

static void free_client(struct scene *scene) {
    client_free(scene->f, scene->f->client);
}

static void release_lock(struct scene *scene) {
    evlock_release(scene->lock, NULL, NULL);
}

static void close_client(struct scene *scene) {
    evlock_client *of = scene->f->client;

    client_forget(scene->f, of);
    evlock_client_close(of, NULL, NULL);
}

/* Whatever ends it in whatever report, the end is reported once, as the last. */
static void it_may_be_ended_in_every_report(void **state) {
    static void (*const acts[])(struct scene * scene) = {free_lock, free_client, release_lock, close_client};
    static const int at[] = {EVLOCK_EHELD, EVLOCK_OK, EVLOCK_ENOTOWNED};
    struct fixture *f = *state;

    for (unsigned i = 0; i < 12; i++) {
        struct scene scene = {.f = f, .at = at[i / 4], .act = acts[i % 4]};
        struct watch watch = {.then = act_then, .then_arg = &scene};
        evlock_options options = quick(20000);
        f->client = client(f);
        scene.lock = lock_new_on(f, f->client, "a", &options);
        server_do(f->server, "SET a stranger PX 600000");
        assert_status(evlock_hold(scene.lock, watched, &watch), EVLOCK_OK);
        await(f, watch.count == 1);
        server_do(f->server, "DEL a");
        await(f, watch.count == 2);
        if (newest(&watch) == EVLOCK_OK)
            server_do(f->server, "DEL a");
        await(f, newest(&watch) == EVLOCK_ECANCELLED);
        assert_int_equal(watch.count, 2 + (int)i / 4);
        run_for(f, 50);
        assert_int_equal(watch.count, 2 + (int)i / 4);
        if (f->clients_len)
            client_free(f, f->clients[0]);
        server_do(f->server, "DEL a");
    }
}

/* At its end the handle is free for the next one. */
static void hold_again(struct scene *scene) {
    evlock_hold(scene->lock, watched, &scene->again);
}

static void it_may_begin_again_at_its_end(void **state) {
    struct fixture *f = *state;
    struct scene scene = {.f = f, .at = EVLOCK_ECANCELLED, .act = hold_again};
    struct watch watch = {.then = act_then, .then_arg = &scene};
    evlock_options options = quick(20000);

    scene.lock = lock_new_on(f, client(f), "a", &options);
    server_do(f->server, "SET a stranger PX 600000");
    assert_status(evlock_hold(scene.lock, watched, &watch), EVLOCK_OK);
    await(f, watch.count);
    assert_status(evlock_cancel(scene.lock), EVLOCK_OK);
    server_do(f->server, "DEL a");
    await(f, scene.again.count == 1);
    assert_reported(&watch, EVLOCK_EHELD, EVLOCK_ECANCELLED);
    assert_reported(&scene.again, EVLOCK_OK);
    ends_at_last(f, scene.lock, &scene.again);
}

/* --- In a forked child -------------------------------------------------------------------------------------------- */

static int child_frees(void *arg) {
    struct scene *scene = arg;

    if (evlock_hold(scene->lock, watched, NULL) != EVLOCK_EFORKED || evlock_is_held(scene->lock))
        return 1;
    lock_free(scene->f, scene->lock);
    client_free(scene->f, scene->f->client);
    return scene->again.count == 1 ? 0 : 2;
}

static void a_child_hears_nothing(void **state) {
    struct fixture *f = *state;
    struct scene scene = {.f = f};
    evlock_options options = quick(20000);

    scene.lock = holding(f, client(f), &options, &scene.again);
    assert_int_equal(in_child(child_frees, &scene), 0);
    await(f, stats_of(f->client).renewals > 2);
    assert_true(evlock_is_held(scene.lock));
    ends_at_last(f, scene.lock, &scene.again);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        KEEP_TEST(it_is_renewed_whatever_the_options_say),
        KEEP_TEST(an_acquire_after_it_is_not_renewed),
        KEEP_TEST(without_expiry_it_needs_no_renewal),
        KEEP_TEST(the_lease_is_as_any_other),
        KEEP_TEST(each_lease_draws_a_fence_if_the_lock_does),
        KEEP_TEST(each_lease_is_counted),
        KEEP_TEST(limits_of_an_acquire_do_not_count),
        KEEP_TEST(a_break_is_a_loss_and_it_comes_back),
        KEEP_TEST(who_broke_it_and_took_it_is_waited_for),
        KEEP_TEST(a_term_ends_and_who_waits_in_the_queue_comes_before_it),
        KEEP_TEST(a_close_hands_over_to_who_polls),
        KEEP_TEST(a_close_hands_over_to_who_queues),
        KEEP_TEST(a_close_ends_one_that_waits),
        KEEP_TEST(a_server_that_forgets_is_a_loss),
        KEEP_TEST(a_server_that_stays_away_is_reported_once),
        KEEP_TEST(a_loss_right_after_a_risk_is_reported),
        KEEP_TEST(the_loss_of_the_lease_before_is_not_its_own),
        KEEP_TEST(no_server_at_the_beginning_is_reported),
        KEEP_TEST(one_in_the_queue_hears_of_troubles),
        KEEP_TEST(a_wrong_password_is_waited_out),
        KEEP_TEST(a_refusal_is_waited_out_without_hammering),
        KEEP_TEST(pauses_begin_anew_after_another_answer),
        KEEP_TEST(what_is_no_lock_is_waited_out),
        KEEP_TEST(what_is_no_lock_after_a_loss_is_reported),
        KEEP_TEST(a_forged_fence_is_waited_out_without_hammering),
        KEEP_TEST(a_release_ends_it),
        KEEP_TEST(a_release_ends_one_that_waits),
        KEEP_TEST(a_release_before_the_report_undoes_the_grant),
        KEEP_TEST(a_cancel_ends_what_waits_and_only_that),
        KEEP_TEST(an_export_ends_it_and_the_lease_goes_on),
        KEEP_TEST(a_handle_does_one_thing_at_a_time),
        KEEP_TEST(what_cannot_be_held_is_refused),
        KEEP_TEST(it_may_be_ended_in_every_report),
        KEEP_TEST(it_may_begin_again_at_its_end),
        KEEP_TEST(a_child_hears_nothing),
    };

    return run_suite("keep", tests);
}
