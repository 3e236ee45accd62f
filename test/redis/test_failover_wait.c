/*
 * failover_wait_ms on one server: after a restart without data, or a promotion, nothing is granted until what may have
 * been lost is over, while what is held is kept. Each test may leave its server in any state: the next one gets a new
 * process.
 */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>

#define WAIT_TEST(function) cmocka_unit_test_setup_teardown(function, fixture_setup_bare, fixture_teardown_restart)

enum { CLOSED_MS = 400, MAX_TTL_MS = 2000 };

static evlock_client_options waiting_options(struct fixture *f) {
    evlock_client_options options = client_options(f);

    options.failover_wait_ms = CLOSED_MS;
    options.max_ttl_ms = MAX_TTL_MS;
    options.backoff_min_ms = 10;
    options.backoff_max_ms = 100;
    return options;
}

static evlock_client *waiting_client(struct fixture *f) {
    evlock_client_options options = waiting_options(f);

    return client_new(f, NULL, &options);
}

static evlock *renewed_lock(struct fixture *f, evlock_client *client, struct record *lost) {
    evlock_options options = with_ttl(MAX_TTL_MS);

    options.auto_renewal = true;
    options.renewal_interval_ms = 300;
    options.retry_delay_ms = 20;
    options.on_lost = record_end;
    options.arg = lost;
    return lock_new_on(f, client, "kept", &options);
}

/* A server that nobody has seen before makes all wait, and nobody who comes later. */
static void nothing_is_granted_at_first(void **state) {
    struct fixture *f = *state;
    int64_t begun = evlock_clock_us();
    evlock_client *client = waiting_client(f);
    struct record lost = {0};
    evlock *lock = renewed_lock(f, client, &lost);
    evlock_node_info info;

    await(f, f->away.count > 0);
    assert_status(f->away.status, EVLOCK_EEXCLUDED);
    assert_says(f->away.error, "its history is new");
    await_connected(f, client);
    assert_true(evlock_clock_us() - begun >= CLOSED_MS * 1000);
    assert_status(evlock_client_node(client, 0, &info, sizeof(info)), EVLOCK_OK);
    assert_status(info.status, EVLOCK_EEXCLUDED);
    assert_true(info.excluded_ms > 0 && info.excluded_ms <= MAX_TTL_MS);
    assert_status(await_try(f, lock), EVLOCK_EEXCLUDED);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_true(evlock_clock_us() - begun >= (CLOSED_MS + MAX_TTL_MS) * 1000);
    client = waiting_client(f);
    lock_free(f, lock);
    assert_status(await_acquire(f, renewed_lock(f, client, &lost), NULL), EVLOCK_OK);
    assert_int_equal(lost.count, 0);
}

/* It has no digest by the time that its history is asked for. */
static void one_that_loses_its_scripts_meanwhile_serves(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = waiting_options(f);

    relay_start(&f->relay, f->server);
    f->relay.edit = relay_spoil_digests;
    client_new(f, f->relay.url, &options);
    await(f, relay_pump(&f->relay) && evlock_client_connection(f->client) == EVLOCK_CONNECTED);
}

/* Clocks count from the boot of the client's machine, and the server may have been there for longer. */
static void a_history_older_than_the_machine_is_not_waited_out(void **state) {
    static const char older[] = "return redis.call('SET', KEYS[1], "
                                "(string.gsub(redis.call('GET', KEYS[1]), '%d+$', '1')))";
    struct fixture *f = *state;
    struct record lost = {0};
    evlock_client *client;
    int waits;

    await_connected(f, waiting_client(f));
    waits = f->away.count;
    server_do(f->server, "EVAL %s 1 evlock:history", older);
    client = waiting_client(f);
    assert_status(await_acquire(f, renewed_lock(f, client, &lost), NULL), EVLOCK_OK);
    assert_int_equal(f->away.count, waits);
}

/* The longest pause that was begun so; -1: none was. */
static int longest_pause(const struct fixture *f, const char *words) {
    int longest = -1, pause;

    for (const char *at = f->log; at && (at = strstr(at, words)); at++)
        if (sscanf(at + strlen(words), "%*[^;]; next try in %d ms", &pause) == 1 && pause > longest)
            longest = pause;
    return longest;
}

/* It had failed to connect for so long that its pauses were longer than the wait. */
static void failures_before_make_a_wait_no_longer(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = waiting_options(f);
    evlock_client *client;

    options.backoff_max_ms = 10 * CLOSED_MS;
    server_kill9(f->server);
    client = client_new(f, NULL, &options);
    await(f, longest_pause(f, "not connected: ") > 2 * CLOSED_MS);
    server_restart(f->server);
    await_connected(f, client);
    assert_int_in_range(longest_pause(f, "its history is new"), CLOSED_MS / 2, CLOSED_MS + options.backoff_min_ms);
}

static struct server replica;

static int teardown_with_replica(void **state) {
    server_stop(&replica);
    return fixture_teardown_restart(state);
}

/* By the name that the server gives it. */
static void copy_history(struct fixture *f, char ret[64]) {
    redisReply *reply = server_command(f->server, "INFO replication");
    const char *found = strstr(reply->str, "master_replid:");

    assert_non_null(found);
    snprintf(ret, 64, "%.40s", found + strlen("master_replid:"));
    freeReplyObject(reply);
}

/* The server gives it another name then, and has lost nothing by that. */
static void a_first_replica_makes_no_new_history(void **state) {
    static const char *const extra[] = {"--repl-diskless-sync-delay", "0", NULL};
    struct fixture *f = *state;
    struct record lost = {0};
    evlock *lock = renewed_lock(f, waiting_client(f), &lost);
    char before[64], after[64];
    int waits;

    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_status(await_release(f, lock), EVLOCK_OK);
    waits = f->away.count;
    copy_history(f, before);
    server_start(&replica, true, extra);
    server_do(&replica, "REPLICAOF 127.0.0.1 %d", f->server->port);
    await(f, server_info(f->server, "replication", "connected_slaves:") == 1);
    copy_history(f, after);
    assert_string_not_equal(before, after);
    assert_status(await_acquire(f, renewed_lock(f, waiting_client(f), &lost), NULL), EVLOCK_OK);
    assert_int_equal(f->away.count, waits);
}

/* By a clock that went back, the mark is of a moment that is to come: nothing is known of what was before. */
static void a_history_that_is_to_come_is_waited_out(void **state) {
    static const char later[] = "return redis.call('SET', KEYS[1], "
                                "(string.gsub(redis.call('GET', KEYS[1]), '%d+$', '9%0')))";
    struct fixture *f = *state;
    int waits;

    await_connected(f, waiting_client(f));
    waits = f->away.count;
    server_do(f->server, "EVAL %s 1 evlock:history", later);
    waiting_client(f);
    await(f, f->away.count > waits);
    assert_status(f->away.status, EVLOCK_EEXCLUDED);
}

/* By a clock that is fast, the age of a history is less than it seems: here by more than is missing. */
static void a_hundredth_of_an_age_does_not_count(void **state) {
    enum { LONG_MS = 1000 * 1000, MORE_MS = 1000 };
    static const char aged[] =
        "local now = redis.call('TIME'); local since = now[1] * 1000000 + now[2] - ARGV[1] * 1000 "
        "return redis.call('SET', KEYS[1], (string.gsub(redis.call('GET', KEYS[1]), '%d+$', "
        "string.format('%.0f', since))))";
    struct fixture *f = *state;
    evlock_client_options options = waiting_options(f);
    int waits;

    await_connected(f, waiting_client(f));
    waits = f->away.count;
    server_do(f->server, "EVAL %s 1 evlock:history %d", aged, LONG_MS + MORE_MS);
    options.failover_wait_ms = LONG_MS;
    client_new(f, NULL, &options);
    await(f, f->away.count > waits);
    assert_status(f->away.status, EVLOCK_EEXCLUDED);
}

/* The server comes back without data: nobody else gets the lock, and its holder keeps it. */
static void a_lease_survives_the_loss_of_its_key(void **state) {
    struct fixture *f = *state;
    struct record lost = {0}, wanted = {0};
    evlock *lock = renewed_lock(f, waiting_client(f), &lost);
    evlock *other = renewed_lock(f, waiting_client(f), &lost);
    int64_t until;

    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_status(evlock_acquire(other, NULL, record_end, &wanted), EVLOCK_OK);
    server_restart(f->server);
    await(f, f->away.count > 0 && f->away.status == EVLOCK_EEXCLUDED);
    until = evlock_clock_us() + (CLOSED_MS + MAX_TTL_MS + 1500) * 1000;
    while (evlock_clock_us() < until) {
        assert_true(evlock_is_held(lock));
        assert_int_equal(wanted.count, 0);
        loop_turn(f->loop);
    }
    assert_true(ask_owned(f, lock));
    assert_status(await_release(f, lock), EVLOCK_OK);
    await(f, wanted.count);
    assert_ended(&wanted, EVLOCK_OK);
    assert_int_equal(lost.count, 0);
}

/* Not by the batches that renew them else, which find nothing there. */
static void many_leases_survive_the_loss_of_their_keys(void **state) {
    enum { MANY = 20 };
    struct fixture *f = *state;
    struct record lost = {0}, records[MANY] = {0};
    evlock_client *client = waiting_client(f);
    evlock_options options = with_ttl(MAX_TTL_MS);
    char name[16];

    options.auto_renewal = true;
    options.renewal_interval_ms = 300;
    options.on_lost = record_end;
    options.arg = &lost;
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "kept%d", i);
        assert_status(evlock_acquire(lock_new_on(f, client, name, &options), NULL, record_end, &records[i]), EVLOCK_OK);
    }
    for (int i = 0; i < MANY; i++)
        await(f, records[i].count == 1 && records[i].status == EVLOCK_OK);
    server_restart(f->server);
    await(f, lost.count > 0 || server_integer(f->server, "DBSIZE") == MANY + 1); /* and the mark */
    assert_int_equal(lost.count, 0);
}

/* Without renewal nothing is set again, and nobody is granted the lock while its holder may believe. */
static void a_lease_that_is_not_renewed_runs_out_before_the_next_grant(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(MAX_TTL_MS);
    evlock *lock = lock_new_on(f, waiting_client(f), "kept", &options);
    struct record wanted = {0}, lost = {0};
    int64_t deadline;

    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    deadline = deadline_of(lock);
    server_restart(f->server);
    assert_status(evlock_acquire(renewed_lock(f, waiting_client(f), &lost), NULL, record_end, &wanted), EVLOCK_OK);
    await(f, wanted.count);
    assert_ended(&wanted, EVLOCK_OK);
    assert_true(wanted.at > deadline);
    assert_false(evlock_is_held(lock));
}

/* Who has it back from somebody else's hands has lost it. */
static void a_key_that_is_another_s_is_not_set_again(void **state) {
    struct fixture *f = *state;
    struct record lost = {0};
    evlock *lock = renewed_lock(f, waiting_client(f), &lost);

    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    server_restart(f->server);
    server_do(f->server, "SET kept stranger PX 600000");
    await(f, lost.count);
    assert_status(lost.status, EVLOCK_EDATALOSS);
    assert_int_equal(server_integer(f->server, "STRLEN kept"), 8);
}

/* The first renewal that the server confirms is one that would have set it again. */
static void a_key_that_lasts_for_ever_is_warned_of_also_then(void **state) {
    struct fixture *f = *state;
    struct record lost = {0};
    evlock_client *client = waiting_client(f);
    evlock *lock = renewed_lock(f, client, &lost);
    uint64_t renewals;
    const char *token;
    size_t len;

    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    token = evlock_token(lock, &len);
    renewals = stats_of(client).renewals;
    server_restart(f->server);
    server_do(f->server, "SET kept %b", token, len);
    await(f, stats_of(client).renewals > renewals);
    assert_true(logged(f, "kept: the key has no expiry"));
    assert_true(evlock_is_held(lock));
}

/* What is not there may have been forgotten: it is not said that it is another's. */
static void an_adoption_is_as_a_grant(void **state) {
    struct fixture *f = *state;
    struct record lost = {0};
    evlock_client *client = waiting_client(f);

    await_connected(f, client);
    assert_status(await_adopt(f, renewed_lock(f, client, &lost), "token", 5), EVLOCK_EEXCLUDED);
}

static void a_release_is_no_grant(void **state) {
    struct fixture *f = *state;
    struct record lost = {0};
    evlock_client *client = waiting_client(f);
    evlock *lock = renewed_lock(f, client, &lost);

    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    server_restart(f->server);
    await(f, f->away.count > 0 && f->away.status == EVLOCK_EEXCLUDED);
    await_connected(f, client);
    await(f, stats_of(client).renewals > 0 && ask_owned(f, lock));
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_status(await_try(f, lock), EVLOCK_EEXCLUDED);
}

static void what_cannot_be_waited_out_is_refused(void **state) {
    struct fixture *f = *state;
    evlock_client_options client_options = waiting_options(f);
    evlock_client *client = client_new(f, NULL, &client_options), *none = NULL;
    evlock_options options = with_ttl(MAX_TTL_MS + 1);
    char url[512];
    evlock *lock;

    assert_status(evlock_new(&lock, client, "x", EVLOCK_CSTRING, &options), EVLOCK_ETTL);
    assert_non_null(strstr(evlock_last_error(), "or more as max_ttl_ms"));
    options.ttl_ms = EVLOCK_NO_EXPIRY;
    assert_status(evlock_new(&lock, client, "x", EVLOCK_CSTRING, &options), EVLOCK_ETTL);
    options.ttl_ms = MAX_TTL_MS;
    options.wait = EVLOCK_WAIT_QUEUE;
    assert_status(evlock_new(&lock, client, "x", EVLOCK_CSTRING, &options), EVLOCK_EQUEUE);
    assert_non_null(strstr(evlock_last_error(), "give EVLOCK_WAIT_POLL as wait"));
    snprintf(url, sizeof(url), "quorum:%s redis://127.0.0.2:1", f->server->url);
    assert_status(evlock_client_new(&none, loop_for_evlock(f->loop), url, &client_options), EVLOCK_EINVAL);
    client_options.failover_wait_ms = -1;
    assert_status(evlock_client_new(&none, loop_for_evlock(f->loop), f->server->url, &client_options), EVLOCK_EINVAL);
    options = with_ttl(MAX_TTL_MS);
    lock = lock_new_on(f, client, "kept", &options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_status(evlock_extend(lock, MAX_TTL_MS + 1, EVLOCK_EXTEND_REPLACE, NULL, NULL), EVLOCK_ETTL);
}

/* Who may not see the mark cannot know that nothing was lost. */
static void without_the_mark_nothing_is_granted(void **state) {
    struct fixture *f = *state;

    server_do(f->server, "LPUSH evlock:history list");
    waiting_client(f);
    await(f, f->away.count > 0 && f->away.status == EVLOCK_EWRONGTYPE);
    server_do(f->server, "DEL evlock:history");
    await(f, f->away.status == EVLOCK_EEXCLUDED);
}

/* Nor may who cannot set it. */
static void where_the_mark_cannot_be_set_nothing_is_granted(void **state) {
    struct fixture *f = *state;

    server_do(f->server, "CONFIG SET maxmemory 1");
    waiting_client(f);
    await(f, f->away.count > 0);
    assert_says(f->away.error, "OOM");
    server_do(f->server, "CONFIG SET maxmemory 0");
    await(f, f->away.status == EVLOCK_EEXCLUDED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        WAIT_TEST(nothing_is_granted_at_first),
        WAIT_TEST(one_that_loses_its_scripts_meanwhile_serves),
        WAIT_TEST(a_history_older_than_the_machine_is_not_waited_out),
        WAIT_TEST(failures_before_make_a_wait_no_longer),
        cmocka_unit_test_setup_teardown(a_first_replica_makes_no_new_history, fixture_setup_bare,
                                        teardown_with_replica),
        WAIT_TEST(a_history_that_is_to_come_is_waited_out),
        WAIT_TEST(a_hundredth_of_an_age_does_not_count),
        WAIT_TEST(a_lease_survives_the_loss_of_its_key),
        WAIT_TEST(many_leases_survive_the_loss_of_their_keys),
        WAIT_TEST(a_lease_that_is_not_renewed_runs_out_before_the_next_grant),
        WAIT_TEST(a_key_that_is_another_s_is_not_set_again),
        WAIT_TEST(a_key_that_lasts_for_ever_is_warned_of_also_then),
        WAIT_TEST(an_adoption_is_as_a_grant),
        WAIT_TEST(a_release_is_no_grant),
        WAIT_TEST(what_cannot_be_waited_out_is_refused),
        WAIT_TEST(without_the_mark_nothing_is_granted),
        WAIT_TEST(where_the_mark_cannot_be_set_nothing_is_granted),
    };

    return run_suite("failover_wait", tests);
}
