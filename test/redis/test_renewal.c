/*
 * Keeping and losing a lease, on a real server: automatic renewal through everything that a server and a network do,
 * and being told of a loss in time and once. Each test is named after the behaviour that it shows.
 */
#include "harness.h"

#include <stdio.h>
#include <unistd.h>

/* A lock whose losses and risks are recorded. */
struct watched {
    evlock *lock;
    struct record lost;
    struct record risk;
};

static void watched_lost(evlock *lock, int reason, void *arg) {
    record_end(lock, reason, &((struct watched *)arg)->lost);
}

static void watched_risk(evlock *lock, int status, void *arg) {
    record_risk(lock, status, &((struct watched *)arg)->risk);
}

/* Acquires it; `interval_ms` 0: no renewal. */
static void hold(struct fixture *f, struct watched *watched, const char *name, int64_t ttl_ms, int64_t interval_ms) {
    evlock_options options = with_ttl(ttl_ms);
    *watched = (struct watched){0};
    options.on_lost = watched_lost;
    options.on_at_risk = watched_risk;
    options.arg = watched;
    options.auto_renewal = interval_ms != 0;
    if (interval_ms)
        options.renewal_interval_ms = interval_ms;
    watched->lock = lock_new(f, name, &options);
    assert_status(await_acquire(f, watched->lock, NULL), EVLOCK_OK);
}

/* Shortens the key's life behind the holder's back and waits for the renewal that makes up for it. */
static void await_renewal(struct fixture *f, const char *key) {
    server_do(f->server, "PEXPIRE %s 30000", key);
    await(f, key_ttl(f->server, key) > 40 * 1000);
}

static evlock_client *client_with_timeout(struct fixture *f, int64_t command_timeout_ms) {
    evlock_client_options options = client_options(f);
    options.command_timeout_ms = command_timeout_ms;
    options.connect_timeout_ms = 60 * 60 * 1000;
    options.backoff_min_ms = 10;
    options.backoff_max_ms = 50;
    evlock_client *client = client_new(f, NULL, &options);
    await_connected(f, client);
    return client;
}

/* --- Renewal ------------------------------------------------------------------------------------------------------ */

static void renewal_keeps_a_lock_beyond_its_ttl(void **state) {
    struct fixture *f = *state;
    struct watched watched;
    evlock_options options = with_ttl(3000);
    options.auto_renewal = 1;
    options.on_lost = watched_lost;
    options.arg = &watched;
    watched = (struct watched){.lock = lock_new(f, "a", &options)};
    assert_status(await_acquire(f, watched.lock, NULL), EVLOCK_OK);
    int64_t end = evlock_clock_us() + 2 * 3000 * 1000;
    while (evlock_clock_us() < end) {
        run_for(f, 20);
        /* what the server says first can only shrink until the holder is asked */
        int64_t on_server = key_ttl(f->server, "a");
        assert_true(evlock_is_held(watched.lock));
        assert_true(evlock_remaining_ms(watched.lock) <= on_server);
    }
    assert_int_equal(watched.lost.count, 0);
    assert_status(await_release(f, watched.lock), EVLOCK_OK);
}

static void the_interval_is_the_users(void **state) {
    struct fixture *f = *state;
    struct watched watched;
    hold(f, &watched, "a", 60 * 1000, 50);
    for (int i = 0; i < 5; i++)
        await_renewal(f, "a");
    assert_true(evlock_is_held(watched.lock));
}

static void nothing_is_renewed_unless_asked_for(void **state) {
    struct fixture *f = *state;
    struct watched watched;
    hold(f, &watched, "a", 600, 0);
    await(f, watched.lost.count);
    assert_int_equal(watched.lost.status, EVLOCK_EEXPIRED);
    await(f, !key_exists(f->server, "a"));
}

static void a_renewal_does_not_lower_a_longer_ttl(void **state) {
    struct fixture *f = *state;
    struct watched watched;
    hold(f, &watched, "a", 60 * 1000, 50);
    await_renewal(f, "a");
    assert_status(await_extend(f, watched.lock, 600 * 1000, EVLOCK_EXTEND_REPLACE), EVLOCK_OK);
    run_for(f, 400);
    assert_int_in_range(key_ttl(f->server, "a"), 500 * 1000, 600 * 1000);
    assert_int_in_range(evlock_remaining_ms(watched.lock), 500 * 1000, 600 * 1000);
}

/* Who has shown its token is renewed by scripts, which leave what others have done to its key. */
static void a_key_that_lasts_for_ever_is_warned_of_once(void **state) {
    struct fixture *f = *state;
    struct watched watched;
    hold(f, &watched, "a", 60 * 1000, 50);
    assert_non_null(evlock_token(watched.lock, NULL));
    server_do(f->server, "PERSIST a");
    await(f, logged(f, "a: the key has no expiry"));
    for (int i = 0; i < 3; i++)
        run_for(f, 50);
    assert_int_equal(times_logged(f, "the key has no expiry"), 1);
    assert_int_equal(key_ttl(f->server, "a"), -1);
    assert_true(evlock_is_held(watched.lock) && evlock_remaining_ms(watched.lock) <= 60 * 1000);
    assert_status(await_extend(f, watched.lock, 0, EVLOCK_EXTEND_RESET), EVLOCK_OK);
    assert_int_in_range(key_ttl(f->server, "a"), 1, 60 * 1000);
    assert_status(await_release(f, watched.lock), EVLOCK_OK);
}

/* As where a server's clock is set back, of which it says more than was ever asked of it. */
static void a_key_that_lives_longer_is_believed_in_for_the_ttl_alone(void **state) {
    struct fixture *f = *state;
    struct watched watched;
    evlock_stats before = {0}, now = {0};
    hold(f, &watched, "a", 60 * 1000, 50);
    renew_by_script(watched.lock);
    server_do(f->server, "PEXPIRE a 1000000000000000");
    assert_status(evlock_client_stats(f->client, &before, sizeof before), EVLOCK_OK);
    await(f, evlock_client_stats(f->client, &now, sizeof now) == EVLOCK_OK && now.renewals > before.renewals + 1);
    assert_int_in_range(evlock_remaining_ms(watched.lock), 0, 60 * 1000);
    assert_true(key_ttl(f->server, "a") > 60 * 1000);
}

static void renewal_goes_on_after_the_connection_is_killed(void **state) {
    struct fixture *f = *state;
    struct watched watched;
    hold(f, &watched, "a", 60 * 1000, 50);
    for (int i = 1; i <= 3; i++) {
        server_do(f->server, "CLIENT KILL TYPE normal");
        await(f, f->connection_states[EVLOCK_CONNECTED] > i);
        await_renewal(f, "a");
    }
    assert_int_equal(watched.lost.count, 0);
}

static void renewal_goes_on_after_a_script_flush(void **state) {
    struct fixture *f = *state;
    struct watched watched;
    hold(f, &watched, "a", 60 * 1000, 50);
    for (int i = 0; i < 3; i++) {
        server_do(f->server, "SCRIPT FLUSH");
        await_renewal(f, "a");
    }
    assert_int_equal(watched.lost.count, 0);
}

static void every_call_survives_a_script_flush(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    server_do(f->server, "SCRIPT FLUSH");
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    server_do(f->server, "SCRIPT FLUSH");
    assert_status(await_extend(f, lock, 1000, EVLOCK_EXTEND_ADD), EVLOCK_OK);
    server_do(f->server, "SCRIPT FLUSH");
    assert_status(await_extend(f, lock, 0, EVLOCK_EXTEND_RESET), EVLOCK_OK);
    server_do(f->server, "SCRIPT FLUSH");
    assert_status(await_release(f, lock), EVLOCK_OK);
    server_do(f->server, "SET a stranger PX 600000");
    server_do(f->server, "SCRIPT FLUSH");
    assert_status(await_adopt(f, lock, "stranger", EVLOCK_CSTRING), EVLOCK_OK);
    server_do(f->server, "SCRIPT FLUSH");
    assert_status(await_query(f, lock, EVLOCK_QUERY_OWNED), EVLOCK_OK);
    server_do(f->server, "SCRIPT FLUSH");
    assert_status(await_query(f, lock, EVLOCK_QUERY_LOCKED), EVLOCK_OK);
    server_do(f->server, "SCRIPT FLUSH");
    assert_status(await_query(f, lock, EVLOCK_QUERY_TTL), EVLOCK_OK);
    server_do(f->server, "SCRIPT FLUSH");
    assert_status(await_break(f, lock), EVLOCK_OK);
}

static void renewal_goes_on_after_the_server_was_silent(void **state) {
    struct fixture *f = *state;
    struct watched watched;
    client_with_timeout(f, 200);
    hold(f, &watched, "a", 60 * 1000, 50);
    server_pause(f->server);
    await(f, evlock_client_connection(f->client) != EVLOCK_CONNECTED);
    server_resume(f->server);
    await_renewal(f, "a");
    await(f, evlock_remaining_ms(watched.lock) > 40 * 1000);
    assert_int_equal(watched.lost.count, 0);
}

static void a_refused_renewal_is_repeated(void **state) {
    struct fixture *f = *state;
    struct watched watched;
    hold(f, &watched, "a", 60 * 1000, 50);
    server_do(f->server, "CONFIG SET min-replicas-to-write 1");
    run_for(f, 300);
    assert_true(evlock_is_held(watched.lock));
    assert_int_equal(watched.lost.count, 0);
    server_do(f->server, "CONFIG SET min-replicas-to-write 0");
    await_renewal(f, "a");
    assert_int_equal(watched.lost.count, 0);
}

static void many_leases_are_renewed(void **state) {
    struct fixture *f = *state;
    static struct watched watched[100];
    char name[16];
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "lock-%d", i);
        hold(f, &watched[i], name, 3000, 300);
    }
    run_for(f, 3500);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(watched[i].lost.count, 0);
        assert_true(evlock_is_held(watched[i].lock));
    }
    assert_int_equal(server_integer(f->server, "DBSIZE"), 100);
}

/* --- Losing ------------------------------------------------------------------------------------------------------- */

/* One loss, for this reason, told by now and never again. */
static void assert_lost_once(struct fixture *f, struct watched *watched, int reason) {
    size_t len;
    await(f, watched->lost.count);
    assert_int_equal(watched->lost.status, reason);
    assert_ptr_equal(watched->lost.object, watched->lock);
    assert_false(evlock_is_held(watched->lock));
    assert_int_equal(evlock_remaining_ms(watched->lock), 0);
    assert_null(evlock_token(watched->lock, &len));
    run_for(f, 300);
    assert_int_equal(watched->lost.count, 1);
}

static void a_deleted_token_is_a_loss_at_once(void **state) {
    struct fixture *f = *state;
    struct watched watched;
    hold(f, &watched, "a", 600 * 1000, 50);
    server_do(f->server, "DEL a");
    assert_lost_once(f, &watched, EVLOCK_ENOTOWNED);
    assert_false(key_exists(f->server, "a"));
}

static void a_taken_lock_is_a_loss_at_once(void **state) {
    struct fixture *f = *state;
    struct watched watched;
    hold(f, &watched, "a", 600 * 1000, 50);
    server_do(f->server, "SET a stranger PX 500000");
    assert_lost_once(f, &watched, EVLOCK_ENOTOWNED);
    assert_true(key_is(f->server, "a", "stranger", 8));
    assert_int_in_range(key_ttl(f->server, "a"), 400 * 1000, 500 * 1000);
}

static void a_broken_lock_is_a_loss_at_once(void **state) {
    struct fixture *f = *state;
    struct watched watched;
    hold(f, &watched, "a", 600 * 1000, 50);
    assert_status(await_break(f, lock_new(f, "a", NULL)), EVLOCK_OK);
    assert_lost_once(f, &watched, EVLOCK_ENOTOWNED);
}

static void a_server_that_lost_its_data_is_a_loss_of_its_own_kind(void **state) {
    struct fixture *f = *state;
    struct watched watched;
    hold(f, &watched, "a", 600 * 1000, 50);
    server_restart(f->server);
    assert_lost_once(f, &watched, EVLOCK_EDATALOSS);
}

static void a_loss_is_told_once_though_the_deadline_follows(void **state) {
    struct fixture *f = *state;
    struct watched watched;
    hold(f, &watched, "a", 1500, 50);
    server_do(f->server, "DEL a");
    assert_lost_once(f, &watched, EVLOCK_ENOTOWNED);
    run_for(f, 2000);
    assert_int_equal(watched.lost.count, 1);
}

static void refused_renewals_end_in_a_loss(void **state) {
    struct fixture *f = *state;
    struct watched watched;
    hold(f, &watched, "a", 1500, 100);
    server_do(f->server, "CONFIG SET min-replicas-to-write 1");
    await(f, watched.lost.count);
    server_do(f->server, "CONFIG SET min-replicas-to-write 0");
    assert_lost_once(f, &watched, EVLOCK_EEXPIRED);
}

enum {
    LEASES = 25,
    /* What the machine may take away from this process at a stretch. A library that waited for the network instead of
     * the deadline would be late by the command timeout, an hour. */
    SCHEDULING_MS = 10 * 1000,
};

/*
 * Told no later than the deadline, though the network is silent. A loaded machine may hold the process up at any one
 * deadline, but not at all of them: one at least must have been told in time, to the microsecond.
 */
static void a_loss_is_told_by_the_deadline(void **state) {
    struct fixture *f = *state;
    struct watched watched[LEASES];
    int64_t deadlines[LEASES];
    char name[16];
    int in_time = 0;
    client_with_timeout(f, 60 * 60 * 1000);
    for (int i = 0; i < LEASES; i++) {
        snprintf(name, sizeof(name), "lock-%d", i);
        hold(f, &watched[i], name, 3000 + 40 * i, 900);
    }
    server_pause(f->server);
    for (int i = 0; i < LEASES; i++)
        deadlines[i] = deadline_of(watched[i].lock);
    for (int i = 0; i < LEASES; i++) {
        await(f, watched[i].lost.count);
        assert_int_equal(watched[i].lost.status, EVLOCK_EEXPIRED);
        assert_int_in_range(watched[i].lost.at, deadlines[i] - 3000 * 1000, deadlines[i] + SCHEDULING_MS * 1000);
        in_time += watched[i].lost.at <= deadlines[i];
    }
    assert_true(in_time >= 1);
    server_resume(f->server);
    run_for(f, 200);
    for (int i = 0; i < LEASES; i++)
        assert_int_equal(watched[i].lost.count, 1);
}

static void the_deadline_is_not_told_early(void **state) {
    struct fixture *f = *state;
    struct watched watched;
    hold(f, &watched, "a", 2000, 0);
    int64_t deadline = deadline_of(watched.lock);
    await(f, watched.lost.count);
    /* early by what a timer may be late, not by a part of the lease */
    assert_true(watched.lost.at > deadline - 500 * 1000);
}

static void at_the_deadline_the_hold_is_over(void **state) {
    struct fixture *f = *state;
    struct watched watched;
    hold(f, &watched, "a", 400, 0);
    /* the loop does not run meanwhile */
    while (evlock_remaining_ms(watched.lock) > 0)
        continue;
    usleep(2000);
    assert_false(evlock_is_held(watched.lock));
    assert_int_equal(watched.lost.count, 0);
    assert_lost_once(f, &watched, EVLOCK_EEXPIRED);
}

static void after_a_stall_the_loss_is_told_first(void **state) {
    struct fixture *f = *state;
    struct watched watched;
    struct record queries[3] = {0};
    hold(f, &watched, "a", 500, 100);
    evlock *other = lock_new(f, "b", NULL);
    assert_status(evlock_query(other, EVLOCK_QUERY_LOCKED, record_answer, &queries[0]), EVLOCK_OK);
    assert_status(evlock_query(other, EVLOCK_QUERY_TTL, record_answer, &queries[1]), EVLOCK_OK);
    assert_status(evlock_acquire(other, NULL, record_end, &queries[2]), EVLOCK_OK);
    /* All are answered while the process is stalled beyond the deadline. */
    usleep(700 * 1000);
    for (int i = 0; i < 3; i++) {
        await(f, queries[i].count);
        assert_true(watched.lost.order > 0);
        assert_true(watched.lost.order < queries[i].order);
    }
    assert_lost_once(f, &watched, EVLOCK_EEXPIRED);
}

static void a_stall_within_the_deadline_loses_nothing(void **state) {
    struct fixture *f = *state;
    struct watched watched;
    hold(f, &watched, "a", 60 * 1000, 50);
    usleep(300 * 1000);
    await_renewal(f, "a");
    assert_int_equal(watched.lost.count, 0);
    assert_int_equal(watched.risk.count, 0);
}

static void no_loss_is_told_after_a_release(void **state) {
    struct fixture *f = *state;
    struct watched watched;
    client_with_timeout(f, 60 * 60 * 1000);
    hold(f, &watched, "a", 600, 100);
    server_pause(f->server);
    f->ended = (struct record){0};
    assert_status(evlock_release(watched.lock, record_end, &f->ended), EVLOCK_OK);
    run_for(f, 900);
    server_resume(f->server);
    await(f, f->ended.count);
    assert_int_equal(watched.lost.count, 0);
    assert_int_equal(watched.risk.count, 0);
}

static void no_renewal_follows_a_release(void **state) {
    struct fixture *f = *state;
    struct watched watched;
    hold(f, &watched, "a", 60 * 1000, 50);
    assert_status(await_release(f, watched.lock), EVLOCK_OK);
    size_t log_len = f->log_len;
    long long scripts = server_calls(f->server, "evalsha");
    run_for(f, 300);
    assert_int_equal(server_calls(f->server, "evalsha"), scripts);
    assert_int_equal(f->log_len, log_len);
    assert_int_equal(watched.lost.count, 0);
}

static void no_loss_is_told_after_a_free(void **state) {
    struct fixture *f = *state;
    struct watched watched;
    hold(f, &watched, "a", 500, 0);
    lock_free(f, watched.lock);
    run_for(f, 800);
    assert_int_equal(watched.lost.count, 0);
}

static void free_the_other(struct record *record) {
    struct fixture *f = record->then_arg;
    lock_free(f, f->locks[0] == record->object ? f->locks[1] : f->locks[0]);
}

static void no_loss_is_told_after_a_free_in_another_loss(void **state) {
    struct fixture *f = *state;
    struct watched watched[2];
    hold(f, &watched[0], "a", 400, 0);
    hold(f, &watched[1], "b", 400, 0);
    for (int i = 0; i < 2; i++) {
        watched[i].lost.then = free_the_other;
        watched[i].lost.then_arg = f;
    }
    usleep(600 * 1000); /* both are lost by then, and neither is told */
    await(f, watched[0].lost.count + watched[1].lost.count);
    run_for(f, 200);
    assert_int_equal(watched[0].lost.count + watched[1].lost.count, 1);
}

static void a_lease_after_a_loss_can_be_lost_again(void **state) {
    struct fixture *f = *state;
    struct watched watched;
    hold(f, &watched, "a", 600 * 1000, 50);
    server_do(f->server, "DEL a");
    await(f, watched.lost.count == 1);
    assert_status(await_acquire(f, watched.lock, NULL), EVLOCK_OK);
    server_do(f->server, "DEL a");
    await(f, watched.lost.count == 2);
    assert_int_equal(watched.lost.status, EVLOCK_ENOTOWNED);
}

/* --- In danger ---------------------------------------------------------------------------------------------------- */

static void a_risk_is_told_before_the_loss(void **state) {
    struct fixture *f = *state;
    struct watched watched;
    client_with_timeout(f, 60 * 60 * 1000);
    hold(f, &watched, "a", 3000, 300);
    server_pause(f->server);
    await(f, watched.risk.count);
    assert_true(evlock_is_held(watched.lock));
    assert_int_in_range(watched.risk.value, 1, 3000 * 33 / 100);
    assert_status(watched.risk.status, EVLOCK_EUNREACHABLE);
    assert_string_equal(watched.risk.error, "");
    assert_int_equal(watched.lost.count, 0);
    assert_ptr_equal(watched.risk.object, watched.lock);
    await(f, watched.lost.count);
    assert_int_equal(watched.risk.count, 1);
    server_resume(f->server);
}

static void a_risk_says_that_the_server_refuses(void **state) {
    struct fixture *f = *state;
    struct watched watched;
    hold(f, &watched, "a", 3000, 300);
    server_do(f->server, "REPLICAOF 127.0.0.1 1");
    await(f, watched.risk.count);
    assert_status(watched.risk.status, EVLOCK_EREFUSED);
    server_do(f->server, "REPLICAOF NO ONE");
    assert_int_equal(watched.lost.count, 0);
}

/* Its words are those of the connection. */
static void a_risk_says_why_the_server_is_away(void **state) {
    struct fixture *f = *state;
    struct watched watched;
    hold(f, &watched, "a", 3000, 300);
    server_do(f->server, "CONFIG SET requirepass secret");
    server_do(f->server, "CLIENT KILL TYPE normal SKIPME yes");
    await(f, watched.risk.count);
    assert_status(watched.risk.status, EVLOCK_EAUTH);
    assert_non_null(strstr(watched.risk.error, "NOAUTH"));
    await(f, watched.lost.count);
    assert_status(watched.lost.status, EVLOCK_EEXPIRED);
}

static void a_risk_that_passes_can_come_again(void **state) {
    struct fixture *f = *state;
    struct watched watched;
    evlock_options options = with_ttl(4000);
    options.at_risk_percent = 95;
    options.auto_renewal = 1;
    options.renewal_interval_ms = 100;
    options.on_lost = watched_lost;
    options.on_at_risk = watched_risk;
    options.arg = &watched;
    client_with_timeout(f, 60 * 60 * 1000);
    watched = (struct watched){.lock = lock_new(f, "a", &options)};
    assert_status(await_acquire(f, watched.lock, NULL), EVLOCK_OK);
    for (int i = 1; i <= 2; i++) {
        server_pause(f->server);
        await(f, watched.risk.count == i);
        server_resume(f->server);
        await(f, evlock_remaining_ms(watched.lock) > 3700);
    }
    assert_int_equal(watched.lost.count, 0);
}

static void a_lease_that_is_not_renewed_is_not_at_risk(void **state) {
    struct fixture *f = *state;
    struct watched watched;
    hold(f, &watched, "a", 600, 0);
    await(f, watched.lost.count);
    assert_int_equal(watched.risk.count, 0);
}

static int renewal_teardown(void **state) {
    if (suite_server.pid) {
        server_resume(&suite_server);
        server_do(&suite_server, "CONFIG SET min-replicas-to-write 0");
        server_do(&suite_server, "CONFIG SET requirepass %s", "");
    }
    return fixture_teardown(state);
}

#define TEST_CONFIG(function) cmocka_unit_test_setup_teardown(function, fixture_setup, renewal_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(renewal_keeps_a_lock_beyond_its_ttl),
        TEST(the_interval_is_the_users),
        TEST(nothing_is_renewed_unless_asked_for),
        TEST(a_renewal_does_not_lower_a_longer_ttl),
        TEST(a_key_that_lasts_for_ever_is_warned_of_once),
        TEST(a_key_that_lives_longer_is_believed_in_for_the_ttl_alone),
        TEST(renewal_goes_on_after_the_connection_is_killed),
        TEST(renewal_goes_on_after_a_script_flush),
        TEST(every_call_survives_a_script_flush),
        TEST_BARE(renewal_goes_on_after_the_server_was_silent),
        TEST_CONFIG(a_refused_renewal_is_repeated),
        TEST(many_leases_are_renewed),
        TEST(a_deleted_token_is_a_loss_at_once),
        TEST(a_taken_lock_is_a_loss_at_once),
        TEST(a_broken_lock_is_a_loss_at_once),
        TEST(a_server_that_lost_its_data_is_a_loss_of_its_own_kind),
        TEST(a_loss_is_told_once_though_the_deadline_follows),
        TEST_CONFIG(refused_renewals_end_in_a_loss),
        TEST_BARE(a_loss_is_told_by_the_deadline),
        TEST(the_deadline_is_not_told_early),
        TEST(at_the_deadline_the_hold_is_over),
        TEST(after_a_stall_the_loss_is_told_first),
        TEST(a_stall_within_the_deadline_loses_nothing),
        TEST_BARE(no_loss_is_told_after_a_release),
        TEST(no_renewal_follows_a_release),
        TEST(no_loss_is_told_after_a_free),
        TEST(no_loss_is_told_after_a_free_in_another_loss),
        TEST(a_lease_after_a_loss_can_be_lost_again),
        TEST_BARE(a_risk_is_told_before_the_loss),
        TEST_CONFIG(a_risk_says_that_the_server_refuses),
        TEST_CONFIG(a_risk_says_why_the_server_is_away),
        TEST_BARE(a_risk_that_passes_can_come_again),
        TEST(a_lease_that_is_not_renewed_is_not_at_risk),
    };
    return run_suite("renewal", tests);
}
