/*
 * Acquiring, on a real server: what is written there, how attempts are repeated and end, whose token it is, and
 * cancelling in every phase. Each test is named after the behaviour that it shows.
 */
#include "harness.h"

#include <stdio.h>
#include <unistd.h>

/* A holder that never heard of evlock. */
static void foreign_hold(struct fixture *f, const char *key) {
    server_do(f->server, "SET %s stranger NX PX 600000", key);
}

static int64_t ms_since(int64_t us) {
    return (evlock_clock_us() - us) / 1000;
}

static evlock_acquire_options acquire_options(int64_t max_attempts, int64_t max_wait_ms) {
    evlock_acquire_options options = {.size = sizeof(evlock_acquire_options)};
    options.max_attempts = max_attempts;
    options.max_wait_ms = max_wait_ms;
    return options;
}

/* --- What a grant is ---------------------------------------------------------------------------------------------- */

static void a_lock_is_its_token_under_its_name_with_a_px_expiry(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(20 * 1000);
    evlock *lock = lock_new(f, "invoices", &options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);

    size_t len;
    const void *token = evlock_token(lock, &len);
    assert_non_null(token);
    assert_true(key_is(f->server, "invoices", token, len));
    assert_int_in_range(key_ttl(f->server, "invoices"), 1, 20 * 1000);
    assert_int_equal(server_integer(f->server, "DBSIZE"), 1);
    assert_true(evlock_is_held(lock));
    assert_int_in_range(evlock_remaining_ms(lock), 1, 20 * 1000 - 202);
    assert_ptr_equal(f->ended.object, lock);
}

static void the_default_ttl_is_thirty_seconds(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_int_in_range(key_ttl(f->server, "a"), 20 * 1000, 30 * 1000);
    assert_int_in_range(evlock_remaining_ms(lock), 1, 30 * 1000 - 302);
}

static void ttl_zero_never_expires(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(EVLOCK_NO_EXPIRY);
    evlock *lock = lock_new(f, "a", &options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_int_equal(key_ttl(f->server, "a"), -1);
    assert_true(evlock_is_held(lock));
    assert_true(evlock_remaining_ms(lock) == INT64_MAX);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_false(key_exists(f->server, "a"));
}

static void the_prefix_comes_before_the_name(void **state) {
    struct fixture *f = *state;
    evlock_options options = {.size = sizeof(evlock_options)};
    options.prefix = "distributed_lock:";
    evlock *lock = lock_new(f, "a", &options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_true(key_exists(f->server, "distributed_lock:a"));
    assert_false(key_exists(f->server, "a"));
    assert_string_equal(evlock_name(lock, NULL), "a");
}

static void a_callback_is_not_needed(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(evlock_acquire(lock, NULL, NULL, NULL), EVLOCK_OK);
    await(f, evlock_is_held(lock));
    assert_status(evlock_release(lock, NULL, NULL), EVLOCK_OK);
    await(f, !key_exists(f->server, "a"));
}

static void nothing_is_held_before_the_grant(void **state) {
    struct fixture *f = *state;
    size_t len;
    evlock *lock = lock_new(f, "a", NULL);
    assert_false(evlock_is_held(lock));
    assert_int_equal(evlock_remaining_ms(lock), 0);
    assert_null(evlock_token(lock, &len));
    assert_status(evlock_acquire(lock, NULL, record_end, &f->ended), EVLOCK_OK);
    assert_false(evlock_is_held(lock));
    assert_null(evlock_token(lock, &len));
    await(f, f->ended.count);
    assert_true(evlock_is_held(lock));
}

/* --- Attempts ----------------------------------------------------------------------------------------------------- */

static void a_try_takes_a_free_lock(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(await_try(f, lock), EVLOCK_OK);
    assert_true(evlock_is_held(lock));
}

static void a_try_on_a_held_lock_is_one_attempt(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    foreign_hold(f, "a");
    long long before = server_calls(f->server, "set");
    assert_status(await_try(f, lock), EVLOCK_EHELD);
    assert_int_equal(server_calls(f->server, "set") - before, 1);
    assert_false(evlock_is_held(lock));
    assert_true(key_is(f->server, "a", "stranger", 8));
}

static void retries_are_counted(void **state) {
    struct fixture *f = *state;
    evlock_options options = {.size = sizeof(evlock_options)};
    options.max_attempts = 4;
    options.retry_delay_ms = 20;
    evlock *lock = lock_new(f, "a", &options);
    foreign_hold(f, "a");
    long long before = server_calls(f->server, "set"), looks = server_calls(f->server, "get");
    assert_status(await_acquire(f, lock, NULL), EVLOCK_EHELD);
    assert_int_equal(server_calls(f->server, "set") - before, 4);
    assert_int_equal(server_calls(f->server, "get") - looks, 1); /* what holds it is looked at once */
}

static void the_pause_is_the_retry_delay(void **state) {
    struct fixture *f = *state;
    evlock_options options = {.size = sizeof(evlock_options)};
    options.max_attempts = 4;
    options.retry_delay_ms = 100;
    options.retry_jitter = EVLOCK_NO_JITTER;
    evlock *lock = lock_new(f, "a", &options);
    foreign_hold(f, "a");
    int64_t start = evlock_clock_us();
    assert_status(await_acquire(f, lock, NULL), EVLOCK_EHELD);
    assert_int_in_range(ms_since(start), 3 * 100, WAIT_MS);
}

static void a_wait_ends_at_its_timeout(void **state) {
    struct fixture *f = *state;
    evlock_options options = {.size = sizeof(evlock_options)};
    options.retry_delay_ms = 20;
    options.max_wait_ms = 300;
    evlock *lock = lock_new(f, "a", &options);
    foreign_hold(f, "a");
    int64_t start = evlock_clock_us();
    assert_status(await_acquire(f, lock, NULL), EVLOCK_ETIMEDOUT);
    assert_int_in_range(ms_since(start), 300 - 20, WAIT_MS);
    assert_string_not_equal(f->ended.error, "");
    assert_true(server_calls(f->server, "set") > 2);
}

static void a_wait_ends_before_a_pause_that_would_outlast_it(void **state) {
    struct fixture *f = *state;
    evlock_options options = {.size = sizeof(evlock_options)};
    options.retry_delay_ms = 60 * 60 * 1000;
    options.retry_jitter = EVLOCK_NO_JITTER;
    options.max_wait_ms = 20 * 60 * 1000;
    evlock *lock = lock_new(f, "a", &options);
    foreign_hold(f, "a");
    long long before = server_calls(f->server, "set");
    assert_status(await_acquire(f, lock, NULL), EVLOCK_ETIMEDOUT);
    assert_int_equal(server_calls(f->server, "set") - before, 1);
}

static void a_wait_without_limit_goes_on_until_the_lock_is_free(void **state) {
    struct fixture *f = *state;
    evlock_options options = {.size = sizeof(evlock_options)};
    options.retry_delay_ms = 20;
    evlock *lock = lock_new(f, "a", &options);
    foreign_hold(f, "a");
    long long before = server_calls(f->server, "set");
    assert_status(evlock_acquire(lock, NULL, record_end, &f->ended), EVLOCK_OK);
    await(f, server_calls(f->server, "set") - before >= 10);
    assert_int_equal(f->ended.count, 0);
    server_do(f->server, "DEL a");
    await(f, f->ended.count);
    assert_ended(&f->ended, EVLOCK_OK);
}

static void a_lock_that_expires_on_the_server_is_taken(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    server_do(f->server, "SET a stranger PX 200");
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
}

static void many_commands_take_turns_within_max_inflight(void **state) {
    struct fixture *f = *state;
    struct record records[20] = {0};
    evlock_client_options options = client_options(f);
    options.max_inflight = 1;
    client_new(f, NULL, &options);
    for (int i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof(name), "lock-%d", i);
        assert_status(evlock_acquire(lock_new(f, name, NULL), NULL, record_end, &records[i]), EVLOCK_OK);
    }
    for (int i = 0; i < 20; i++) {
        await(f, records[i].count);
        assert_ended(&records[i], EVLOCK_OK);
    }
    assert_int_equal(server_integer(f->server, "DBSIZE"), 20);
}

static void no_more_than_max_inflight_are_unanswered(void **state) {
    struct fixture *f = *state;
    struct record records[3] = {0};
    evlock_client_options options = client_options(f);
    options.max_inflight = 2;
    relay_start(&f->relay, f->server);
    client_new(f, f->relay.url, &options);
    await(f, relay_pump(&f->relay) && evlock_client_connection(f->client) == EVLOCK_CONNECTED);
    f->relay.pairs[0].muted = true;
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof(name), "lock-%d", i);
        assert_status(evlock_acquire(lock_new(f, name, NULL), NULL, record_end, &records[i]), EVLOCK_OK);
    }
    await(f, relay_pump(&f->relay) && server_integer(f->server, "DBSIZE") == 2);
    for (int turns = 0; turns < 20 && relay_pump(&f->relay); turns++)
        loop_turn(f->loop);
    assert_int_equal(server_integer(f->server, "DBSIZE"), 2);
    f->relay.pairs[0].muted = false;
    await(f, relay_pump(&f->relay) && records[0].count && records[1].count && records[2].count);
    assert_int_equal(server_integer(f->server, "DBSIZE"), 3);
}

/* --- What one acquire may want otherwise -------------------------------------------------------------------------- */

static void an_acquire_may_be_a_try_on_a_waiting_lock(void **state) {
    struct fixture *f = *state;
    evlock_options options = {.size = sizeof(evlock_options)};
    options.retry_delay_ms = 20;
    options.max_wait_ms = 200;
    evlock *lock = lock_new(f, "a", &options);
    evlock_acquire_options try = acquire_options(EVLOCK_TRY, 0);
    foreign_hold(f, "a");
    assert_status(await_acquire(f, lock, &try), EVLOCK_EHELD);
    /* for that one acquire only */
    assert_status(await_acquire(f, lock, NULL), EVLOCK_ETIMEDOUT);
}

static void an_acquire_may_wait_on_a_trying_lock(void **state) {
    struct fixture *f = *state;
    evlock_options options = {.size = sizeof(evlock_options)};
    options.max_attempts = EVLOCK_TRY;
    options.retry_delay_ms = 20;
    evlock *lock = lock_new(f, "a", &options);
    evlock_acquire_options wait = acquire_options(EVLOCK_UNLIMITED, 0);
    foreign_hold(f, "a");
    assert_status(await_acquire(f, lock, NULL), EVLOCK_EHELD);
    f->ended = (struct record){0};
    assert_status(evlock_acquire(lock, &wait, record_end, &f->ended), EVLOCK_OK);
    run_for(f, 200);
    assert_int_equal(f->ended.count, 0);
    server_do(f->server, "DEL a");
    await(f, f->ended.count);
    assert_ended(&f->ended, EVLOCK_OK);
}

static void an_acquire_may_have_its_own_timeout(void **state) {
    struct fixture *f = *state;
    evlock_options options = {.size = sizeof(evlock_options)};
    options.retry_delay_ms = 20;
    evlock *lock = lock_new(f, "a", &options);
    evlock_acquire_options wait = acquire_options(0, 200);
    foreign_hold(f, "a");
    assert_status(await_acquire(f, lock, &wait), EVLOCK_ETIMEDOUT);
}

static void an_acquire_may_wait_longer_than_its_lock(void **state) {
    struct fixture *f = *state;
    evlock_options options = {.size = sizeof(evlock_options)};
    options.retry_delay_ms = 20;
    options.max_wait_ms = 50;
    evlock *lock = lock_new(f, "a", &options);
    evlock_acquire_options wait = acquire_options(0, EVLOCK_UNLIMITED);
    foreign_hold(f, "a");
    assert_status(evlock_acquire(lock, &wait, record_end, &f->ended), EVLOCK_OK);
    run_for(f, 300);
    assert_int_equal(f->ended.count, 0);
    server_do(f->server, "DEL a");
    await(f, f->ended.count);
    assert_ended(&f->ended, EVLOCK_OK);
}

/* --- Tokens ------------------------------------------------------------------------------------------------------- */

static void own_token_works(struct fixture *f, const void *token, size_t len, size_t real_len) {
    evlock *lock = lock_new(f, "a", NULL);
    evlock_acquire_options own = {.size = sizeof(evlock_acquire_options)};
    size_t got;
    own.token = token;
    own.token_len = len;
    assert_status(await_acquire(f, lock, &own), EVLOCK_OK);
    assert_true(key_is(f->server, "a", token, real_len));
    assert_memory_equal(evlock_token(lock, &got), token, real_len);
    assert_int_equal(got, real_len);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_false(key_exists(f->server, "a"));
    lock_free(f, lock);
}

static void a_token_of_the_callers_own_may_be_any_bytes(void **state) {
    struct fixture *f = *state;
    unsigned char longest[128];
    for (size_t i = 0; i < sizeof(longest); i++)
        longest[i] = (unsigned char)(i * 2);
    own_token_works(f, "job-17", EVLOCK_CSTRING, 6);
    own_token_works(f, "x", 1, 1);
    own_token_works(f, "\0", 1, 1);
    own_token_works(f, "a\0b\r\n{}%s\xff", 11, 11);
    own_token_works(f, longest, sizeof(longest), sizeof(longest));
}

static void the_callers_token_is_copied(void **state) {
    struct fixture *f = *state;
    char token[] = "job-17";
    evlock *lock = lock_new(f, "a", NULL);
    evlock_acquire_options own = {.size = sizeof(evlock_acquire_options)};
    own.token = token;
    own.token_len = EVLOCK_CSTRING;
    assert_status(evlock_acquire(lock, &own, record_end, &f->ended), EVLOCK_OK);
    memset(token, '!', sizeof(token) - 1);
    await(f, f->ended.count);
    assert_true(key_is(f->server, "a", "job-17", 6));
}

enum { TOKENS = 8 };

/* Lets `f` make three attempts on the key "a", which a stranger holds, and reads what the server saw. */
static int tokens_of_attempts(struct fixture *f, const evlock_acquire_options *options, char tokens[TOKENS][129]) {
    evlock_options three = {.size = sizeof(evlock_options)};
    redisReply *reply;
    int found = 0;
    three.max_attempts = 3;
    three.retry_delay_ms = 10;
    evlock *lock = lock_new(f, "a", &three);
    foreign_hold(f, "a");
    redisContext *monitor = redisConnectUnix(f->server->socket);
    freeReplyObject(redisCommand(monitor, "MONITOR"));
    assert_status(await_acquire(f, lock, options), EVLOCK_EHELD);
    server_do(f->server, "ECHO enough");
    for (bool enough = false; !enough && redisGetReply(monitor, (void **)&reply) == REDIS_OK;) {
        const char *set = strstr(reply->str, "\"SET\" \"a\" \"");
        enough = strstr(reply->str, "\"enough\"") != NULL;
        if (set && found < TOKENS)
            found += sscanf(set, "\"SET\" \"a\" \"%128[^\"]", tokens[found]) == 1;
        freeReplyObject(reply);
    }
    redisFree(monitor);
    return found;
}

static void every_attempt_has_a_token_of_its_own(void **state) {
    char tokens[TOKENS][129];
    assert_int_equal(tokens_of_attempts(*state, NULL, tokens), 3);
    assert_string_not_equal(tokens[0], tokens[1]);
    assert_string_not_equal(tokens[0], tokens[2]);
    assert_string_not_equal(tokens[1], tokens[2]);
}

static void the_callers_token_is_the_one_of_every_attempt(void **state) {
    char tokens[TOKENS][129];
    evlock_acquire_options own = {.size = sizeof(evlock_acquire_options)};
    own.token = "mine";
    own.token_len = EVLOCK_CSTRING;
    assert_int_equal(tokens_of_attempts(*state, &own, tokens), 3);
    for (int i = 0; i < 3; i++)
        assert_string_equal(tokens[i], "mine");
}

/* --- Whose turn --------------------------------------------------------------------------------------------------- */

static void a_second_acquire_is_refused(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    assert_status(evlock_acquire(lock, NULL, record_end, &f->ended), EVLOCK_EALREADY);
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    assert_status(evlock_acquire(lock, NULL, record_end, &f->ended), EVLOCK_EALREADY);
    record = (struct record){0};
    assert_status(evlock_release(lock, record_end, &record), EVLOCK_OK);
    assert_status(evlock_acquire(lock, NULL, record_end, &f->ended), EVLOCK_EALREADY);
    await(f, record.count);
    assert_int_equal(f->ended.count, 0);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
}

static void a_waiter_takes_over(struct fixture *f, evlock *holder, evlock *waiter) {
    struct record record = {0};
    assert_status(await_acquire(f, holder, NULL), EVLOCK_OK);
    assert_status(evlock_acquire(waiter, NULL, record_end, &record), EVLOCK_OK);
    run_for(f, 200);
    assert_int_equal(record.count, 0);
    assert_status(await_release(f, holder), EVLOCK_OK);
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    assert_true(evlock_is_held(waiter));
    assert_false(evlock_is_held(holder));
}

static void two_handles_of_one_client_exclude_each_other(void **state) {
    struct fixture *f = *state;
    a_waiter_takes_over(f, lock_new(f, "a", NULL), lock_new(f, "a", NULL));
}

static void two_clients_exclude_each_other(void **state) {
    struct fixture *f = *state;
    evlock_client *other = client_new(f, NULL, NULL);
    a_waiter_takes_over(f, lock_new(f, "a", NULL), lock_new_on(f, other, "a", NULL));
}

enum { CROWD = 10 };

struct crowd {
    struct record records[CROWD];
    int holding;
    int most;
};

static void come(struct record *record) {
    struct crowd *crowd = record->then_arg;
    crowd->holding++;
    if (crowd->holding > crowd->most)
        crowd->most = crowd->holding;
}

/* The one that holds stays for a while and goes. */
static void let_one_go(struct fixture *f, struct crowd *crowd) {
    int i = 0;
    await(f, crowd->holding);
    run_for(f, 50);
    while (i < CROWD && !evlock_is_held(crowd->records[i].object))
        i++;
    assert_true(i < CROWD);
    crowd->holding--;
    assert_status(await_release(f, crowd->records[i].object), EVLOCK_OK);
}

static void a_crowd_takes_turns(void **state) {
    struct fixture *f = *state;
    struct crowd crowd = {0};
    evlock_options options = {.size = sizeof(evlock_options)};
    evlock_client *other = client_new(f, NULL, NULL);
    options.retry_delay_ms = 20;
    for (int i = 0; i < CROWD; i++) {
        evlock *lock = lock_new_on(f, i % 2 ? other : f->client, "a", &options);
        crowd.records[i].then = come;
        crowd.records[i].then_arg = &crowd;
        assert_status(evlock_acquire(lock, NULL, record_end, &crowd.records[i]), EVLOCK_OK);
    }
    for (int i = 0; i < CROWD; i++)
        let_one_go(f, &crowd);
    for (int i = 0; i < CROWD; i++)
        assert_ended(&crowd.records[i], EVLOCK_OK);
    assert_int_equal(crowd.most, 1);
    assert_false(key_exists(f->server, "a"));
}

/* --- Cancelling --------------------------------------------------------------------------------------------------- */

/* The undo of an attempt has been done when the key is gone and stays away. */
static void await_gone(struct fixture *f, const char *key) {
    await(f, !key_exists(f->server, key));
    run_for(f, 200);
    assert_false(key_exists(f->server, key));
}

static void cancel_and_await(struct fixture *f, evlock *lock, struct record *record) {
    assert_status(evlock_cancel(lock), EVLOCK_OK);
    assert_int_equal(record->count, 0);
    assert_status(evlock_cancel(lock), EVLOCK_ENOTHELD);
    await(f, record->count);
    assert_ended(record, EVLOCK_ECANCELLED);
    assert_string_equal(record->error, ""); /* nothing of what the attempts met */
    assert_false(evlock_is_held(lock));
}

static void cancel_before_anything_was_sent(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(evlock_acquire(lock, NULL, record_end, &f->ended), EVLOCK_OK);
    cancel_and_await(f, lock, &f->ended);
    await_connected(f, f->client);
    await_gone(f, "a");
    assert_int_equal(f->ended.count, 1);
}

static void cancel_while_the_attempt_is_in_flight(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    await_connected(f, f->client);
    server_pause(f->server);
    assert_status(evlock_acquire(lock, NULL, record_end, &f->ended), EVLOCK_OK);
    run_for(f, 50);
    cancel_and_await(f, lock, &f->ended);
    server_resume(f->server);
    await(f, server_calls(f->server, "set") == 1);
    await_gone(f, "a");
    assert_int_equal(f->ended.count, 1);
}

static void cancel_in_the_pause_between_attempts(void **state) {
    struct fixture *f = *state;
    evlock_options options = {.size = sizeof(evlock_options)};
    options.retry_delay_ms = 60 * 60 * 1000;
    evlock *lock = lock_new(f, "a", &options);
    foreign_hold(f, "a");
    long long before = server_calls(f->server, "set");
    assert_status(evlock_acquire(lock, NULL, record_end, &f->ended), EVLOCK_OK);
    await(f, server_calls(f->server, "set") > before);
    run_for(f, 50);
    cancel_and_await(f, lock, &f->ended);
    assert_true(key_is(f->server, "a", "stranger", 8));
}

static void cancel_the_other(struct record *record) {
    evlock_cancel(record->then_arg);
}

static void cancel_what_was_granted_but_not_yet_told(void **state) {
    struct fixture *f = *state;
    evlock *a = lock_new(f, "a", NULL);
    evlock *b = lock_new(f, "b", NULL);
    struct record got_a = {.then = cancel_the_other, .then_arg = b};
    struct record got_b = {.then = cancel_the_other, .then_arg = a};
    await_connected(f, f->client);
    /* Stopped meanwhile, the server answers both in one go. */
    server_pause(f->server);
    assert_status(evlock_acquire(a, NULL, record_end, &got_a), EVLOCK_OK);
    assert_status(evlock_acquire(b, NULL, record_end, &got_b), EVLOCK_OK);
    run_for(f, 50);
    server_resume(f->server);
    await(f, got_a.count && got_b.count);

    bool a_won = got_a.status == EVLOCK_OK;
    assert_ended(a_won ? &got_a : &got_b, EVLOCK_OK);
    assert_ended(a_won ? &got_b : &got_a, EVLOCK_ECANCELLED);
    assert_true(evlock_is_held(a_won ? a : b));
    assert_false(evlock_is_held(a_won ? b : a));
    await_gone(f, a_won ? "b" : "a");
    assert_true(key_exists(f->server, a_won ? "a" : "b"));
}

static void cancel_while_the_server_is_away(void **state) {
    struct fixture *f = *state;
    server_kill9(f->server);
    client_new(f, NULL, NULL);
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(evlock_acquire(lock, NULL, record_end, &f->ended), EVLOCK_OK);
    await(f, f->connection_states[EVLOCK_AWAY] > 0);
    cancel_and_await(f, lock, &f->ended);
    server_restart(f->server);
    await_connected(f, f->client);
    await_gone(f, "a");
}

static void cancel_and_acquire_again(struct fixture *f, const evlock_acquire_options *options) {
    struct record first = {0};
    struct record second = {0};
    size_t len;
    evlock *lock = lock_new(f, "a", NULL);
    await_connected(f, f->client);
    server_pause(f->server);
    assert_status(evlock_acquire(lock, options, record_end, &first), EVLOCK_OK);
    run_for(f, 50);
    assert_status(evlock_cancel(lock), EVLOCK_OK);
    assert_status(evlock_acquire(lock, options, record_end, &second), EVLOCK_OK);
    run_for(f, 50);
    assert_ended(&first, EVLOCK_ECANCELLED);
    server_resume(f->server);
    await(f, second.count);
    assert_ended(&second, EVLOCK_OK);
    run_for(f, 200);
    assert_true(evlock_is_held(lock));
    const void *token = evlock_token(lock, &len);
    assert_true(key_is(f->server, "a", token, len));
    assert_ended(&first, EVLOCK_ECANCELLED);
}

static void cancel_then_acquire_at_once(void **state) {
    cancel_and_acquire_again(*state, NULL);
}

static void cancel_then_acquire_at_once_with_the_same_token(void **state) {
    evlock_acquire_options own = {.size = sizeof(evlock_acquire_options)};
    own.token = "mine";
    own.token_len = EVLOCK_CSTRING;
    cancel_and_acquire_again(*state, &own);
}

static void cancel_needs_something_pending(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(evlock_cancel(lock), EVLOCK_ENOTHELD);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_status(evlock_cancel(lock), EVLOCK_ENOTHELD);
    assert_true(evlock_is_held(lock));
}

/* --- A silent server ---------------------------------------------------------------------------------------------- */

static evlock_client *patient_client(struct fixture *f) {
    evlock_client_options options = client_options(f);
    options.command_timeout_ms = 60 * 60 * 1000;
    evlock_client *client = client_new(f, NULL, &options);
    await_connected(f, client);
    return client;
}

static void a_wait_that_ends_in_an_attempt_answers_at_once_and_undoes_it(void **state) {
    struct fixture *f = *state;
    patient_client(f);
    evlock *lock = lock_new(f, "a", NULL);
    evlock_acquire_options wait = acquire_options(0, 200);
    server_pause(f->server);
    assert_status(await_acquire(f, lock, &wait), EVLOCK_ETIMEDOUT);
    assert_string_not_equal(f->ended.error, "");
    assert_false(evlock_is_held(lock));
    server_resume(f->server);
    await(f, server_calls(f->server, "set") == 1);
    await_gone(f, "a");
    assert_int_equal(f->ended.count, 1);
    assert_status(await_try(f, lock), EVLOCK_OK);
}

static void a_yes_after_its_own_deadline_is_no_acquisition(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(400);
    patient_client(f);
    evlock *lock = lock_new(f, "a", &options);
    evlock_acquire_options try = acquire_options(EVLOCK_TRY, 0);
    server_pause(f->server);
    assert_status(evlock_acquire(lock, &try, record_end, &f->ended), EVLOCK_OK);
    run_for(f, 600);
    server_resume(f->server);
    await(f, f->ended.count);
    assert_ended(&f->ended, EVLOCK_EUNREACHABLE);
    assert_false(evlock_is_held(lock));
    await_gone(f, "a");
}

static void a_yes_that_waited_out_a_stall_is_no_acquisition(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(400);
    evlock *lock = lock_new(f, "a", &options);
    evlock_acquire_options try = acquire_options(EVLOCK_TRY, 0);
    await_connected(f, f->client);
    server_pause(f->server);
    assert_status(evlock_acquire(lock, &try, record_end, &f->ended), EVLOCK_OK);
    run_for(f, 50);
    server_resume(f->server);
    usleep(500 * 1000); /* the answer lies there, and the loop does not run */
    await(f, f->ended.count);
    assert_ended(&f->ended, EVLOCK_EUNREACHABLE);
    assert_false(evlock_is_held(lock));
    await_gone(f, "a");
}

static void a_yes_after_its_own_deadline_is_tried_again(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(2000);
    patient_client(f);
    evlock *lock = lock_new(f, "a", &options);
    server_pause(f->server);
    assert_status(evlock_acquire(lock, NULL, record_end, &f->ended), EVLOCK_OK);
    run_for(f, 2200);
    server_resume(f->server);
    await(f, f->ended.count);
    assert_ended(&f->ended, EVLOCK_OK);
    assert_true(evlock_remaining_ms(lock) <= 2000 - 22);
}

static void a_lock_is_acquired_when_its_server_comes_back(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    await_connected(f, f->client);
    server_kill9(f->server);
    assert_status(evlock_acquire(lock, NULL, record_end, &f->ended), EVLOCK_OK);
    await(f, f->connection_states[EVLOCK_AWAY] > 0);
    run_for(f, 100);
    assert_int_equal(f->ended.count, 0);
    server_restart(f->server);
    await(f, f->ended.count);
    assert_ended(&f->ended, EVLOCK_OK);
}

static void an_acquire_on_a_lost_lease_gives_that_up_first(void **state) {
    struct fixture *f = *state;
    struct record lost = {0};
    evlock_options options = with_ttl(500);
    options.on_lost = record_end;
    options.arg = &lost;
    evlock *lock = lock_new(f, "a", &options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    await(f, lost.count);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_int_equal(lost.count, 1);
}

/* --- Which obstacle is waited for --------------------------------------------------------------------------------- */

static void an_acquire_may_fail_when_the_server_is_away(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", EVLOCK_OPTIONS(.retry_delay_ms = 10, .fail_when_away = true));
    foreign_hold(f, "a");
    assert_status(evlock_acquire(lock, NULL, record_end, &f->ended), EVLOCK_OK);
    await(f, server_calls(f->server, "set") > 3); /* it waits for who holds it */
    assert_int_equal(f->ended.count, 0);
    server_kill9(f->server);
    await(f, f->ended.count);
    assert_ended(&f->ended, EVLOCK_EUNREACHABLE);
    struct record patient = {0};
    assert_status(await_acquire(f, lock, NULL), EVLOCK_EUNREACHABLE);
    assert_status(evlock_acquire(lock, EVLOCK_ACQUIRE_OPTIONS(.fail_when_away = EVLOCK_OFF), record_end, &patient),
                  EVLOCK_OK);
    run_for(f, 50);
    assert_int_equal(patient.count, 0);
    server_restart(f->server);
    await(f, patient.count);
    assert_ended(&patient, EVLOCK_OK);
}

static void an_acquire_may_fail_when_the_server_refuses(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", EVLOCK_OPTIONS(.retry_delay_ms = 10));
    server_do(f->server, "CONFIG SET maxmemory 1");
    assert_status(await_acquire(f, lock, EVLOCK_ACQUIRE_OPTIONS(.fail_when_away = EVLOCK_ON)), EVLOCK_EREFUSED);
    server_do(f->server, "CONFIG RESETSTAT");
    f->ended = (struct record){0};
    assert_status(evlock_acquire(lock, NULL, record_end, &f->ended), EVLOCK_OK);
    await(f, server_refusals(f->server, "set") > 2);
    assert_int_equal(f->ended.count, 0);
    server_do(f->server, "CONFIG SET maxmemory 0");
    await(f, f->ended.count);
    assert_ended(&f->ended, EVLOCK_OK);
}

static void one_acquire_may_have_a_pace_of_its_own(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", EVLOCK_OPTIONS(.ttl_ms = 600 * 1000, .retry_delay_ms = 600 * 1000));
    foreign_hold(f, "a");
    assert_status(evlock_acquire(lock, EVLOCK_ACQUIRE_OPTIONS(.retry_delay_ms = 5), record_end, &f->ended), EVLOCK_OK);
    await(f, server_calls(f->server, "set") > 10);
    assert_status(evlock_cancel(lock), EVLOCK_OK);
    await(f, f->ended.count);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_lock_is_its_token_under_its_name_with_a_px_expiry),
        TEST(the_default_ttl_is_thirty_seconds),
        TEST(ttl_zero_never_expires),
        TEST(the_prefix_comes_before_the_name),
        TEST(a_callback_is_not_needed),
        TEST(nothing_is_held_before_the_grant),
        TEST(a_try_takes_a_free_lock),
        TEST(a_try_on_a_held_lock_is_one_attempt),
        TEST(retries_are_counted),
        TEST(the_pause_is_the_retry_delay),
        TEST(a_wait_ends_at_its_timeout),
        TEST(a_wait_ends_before_a_pause_that_would_outlast_it),
        TEST(a_wait_without_limit_goes_on_until_the_lock_is_free),
        TEST(a_lock_that_expires_on_the_server_is_taken),
        TEST_BARE(many_commands_take_turns_within_max_inflight),
        TEST_BARE(no_more_than_max_inflight_are_unanswered),
        TEST(an_acquire_may_be_a_try_on_a_waiting_lock),
        TEST(an_acquire_may_wait_on_a_trying_lock),
        TEST(an_acquire_may_have_its_own_timeout),
        TEST(an_acquire_may_wait_longer_than_its_lock),
        TEST(a_token_of_the_callers_own_may_be_any_bytes),
        TEST(the_callers_token_is_copied),
        TEST(every_attempt_has_a_token_of_its_own),
        TEST(the_callers_token_is_the_one_of_every_attempt),
        TEST(a_second_acquire_is_refused),
        TEST(two_handles_of_one_client_exclude_each_other),
        TEST(two_clients_exclude_each_other),
        TEST(a_crowd_takes_turns),
        TEST(cancel_before_anything_was_sent),
        TEST(cancel_while_the_attempt_is_in_flight),
        TEST(cancel_in_the_pause_between_attempts),
        TEST(cancel_what_was_granted_but_not_yet_told),
        TEST_BARE(cancel_while_the_server_is_away),
        TEST(cancel_then_acquire_at_once),
        TEST(cancel_then_acquire_at_once_with_the_same_token),
        TEST(cancel_needs_something_pending),
        TEST_BARE(a_wait_that_ends_in_an_attempt_answers_at_once_and_undoes_it),
        TEST_BARE(a_yes_after_its_own_deadline_is_no_acquisition),
        TEST(a_yes_that_waited_out_a_stall_is_no_acquisition),
        TEST_BARE(a_yes_after_its_own_deadline_is_tried_again),
        TEST(a_lock_is_acquired_when_its_server_comes_back),
        TEST(an_acquire_on_a_lost_lease_gives_that_up_first),
        TEST(an_acquire_may_fail_when_the_server_is_away),
        TEST(an_acquire_may_fail_when_the_server_refuses),
        TEST(one_acquire_may_have_a_pace_of_its_own),
    };
    return run_suite("acquire", tests);
}
