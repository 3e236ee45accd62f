/*
 * Holding, on a real server: release, extension, the questions one can ask, handing a lease over by its token, breaking
 * it, and the longest hold. Each test is named after the behaviour that it shows.
 */
#include "harness.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* A handle that holds the lock of that name. */
static evlock *held(struct fixture *f, const char *name, const evlock_options *options) {
    evlock *lock = lock_new(f, name, options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    return lock;
}

static evlock *held_with_ttl(struct fixture *f, const char *name, int64_t ttl_ms) {
    evlock_options options = with_ttl(ttl_ms);
    return held(f, name, &options);
}

/* A handle whose lease has been lost by its deadline. */
static evlock *lost(struct fixture *f, const char *name, struct record *record) {
    evlock_options options = with_ttl(300);
    options.on_lost = record_end;
    options.arg = record;
    evlock *lock = held(f, name, &options);
    await(f, record->count);
    return lock;
}

/* --- Release ------------------------------------------------------------------------------------------------------ */

static void a_release_deletes_the_key(void **state) {
    struct fixture *f = *state;
    size_t len;
    evlock *lock = held(f, "a", NULL);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_int_equal(server_integer(f->server, "DBSIZE"), 0);
    assert_false(evlock_is_held(lock));
    assert_int_equal(evlock_remaining_ms(lock), 0);
    assert_null(evlock_token(lock, &len));
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
}

static void the_hold_ends_with_the_call_to_release(void **state) {
    struct fixture *f = *state;
    evlock *lock = held(f, "a", NULL);
    assert_status(evlock_release(lock, NULL, NULL), EVLOCK_OK);
    assert_false(evlock_is_held(lock));
    assert_int_equal(evlock_remaining_ms(lock), 0);
    await(f, !key_exists(f->server, "a"));
}

static void a_release_of_nothing_sends_nothing(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    server_do(f->server, "SET a stranger");
    assert_status(evlock_release(lock, record_end, &f->ended), EVLOCK_ENOTHELD);
    run_for(f, 50);
    assert_int_equal(f->ended.count, 0);
    assert_true(key_is(f->server, "a", "stranger", 8));
}

static void an_acquire_under_way_cannot_be_released(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(evlock_acquire(lock, NULL, record_end, &f->ended), EVLOCK_OK);
    assert_status(evlock_release(lock, NULL, NULL), EVLOCK_ENOTHELD);
    assert_non_null(strstr(evlock_last_error(), "evlock_cancel()"));
    await(f, f->ended.count);
    assert_ended(&f->ended, EVLOCK_OK);
}

static void a_release_of_a_key_that_is_gone_says_so(void **state) {
    struct fixture *f = *state;
    evlock *lock = held(f, "a", NULL);
    server_do(f->server, "DEL a");
    assert_status(await_release(f, lock), EVLOCK_ENOTOWNED);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
}

static void a_release_does_not_touch_the_next_owner(void **state) {
    struct fixture *f = *state;
    evlock *lock = held(f, "a", NULL);
    server_do(f->server, "SET a stranger PX 600000");
    assert_status(await_release(f, lock), EVLOCK_ENOTOWNED);
    assert_true(key_is(f->server, "a", "stranger", 8));
    assert_true(key_ttl(f->server, "a") > 0);
    assert_status(await_try(f, lock), EVLOCK_EHELD);
}

static void a_second_release_is_refused(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock *lock = held(f, "a", NULL);
    assert_status(evlock_release(lock, record_end, &record), EVLOCK_OK);
    f->ended = (struct record){0};
    assert_status(evlock_release(lock, record_end, &f->ended), EVLOCK_EALREADY);
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    assert_status(evlock_release(lock, record_end, &f->ended), EVLOCK_ENOTHELD);
    assert_int_equal(f->ended.count, 0);
}

static void a_release_after_a_loss_is_still_sent(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock *lock = lost(f, "a", &record);
    server_do(f->server, "SET a stranger");
    assert_status(await_release(f, lock), EVLOCK_ENOTOWNED);
    assert_true(key_is(f->server, "a", "stranger", 8));
    assert_int_equal(record.count, 1);
    assert_status(evlock_release(lock, NULL, NULL), EVLOCK_ENOTHELD);
}

static void a_release_after_a_loss_deletes_what_is_still_its_own(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock_options options = with_ttl(1500);
    options.on_lost = record_end;
    options.arg = &record;
    evlock *lock = held(f, "a", &options);
    /* The server keeps the key longer than the holder may believe in it. */
    server_do(f->server, "PERSIST a");
    await(f, record.count);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_false(key_exists(f->server, "a"));
}

static void a_release_goes_on_when_its_answer_is_overdue(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = client_options(f);
    options.command_timeout_ms = 300;
    client_new(f, NULL, &options);
    evlock *lock = held(f, "a", NULL);
    server_pause(f->server);
    assert_status(await_release(f, lock), EVLOCK_EUNREACHABLE);
    server_resume(f->server);
    await(f, !key_exists(f->server, "a"));
}

/* A connection that the server has accepted, for a command that it is to find when it goes on after a pause. */
static redisContext *second_voice(struct fixture *f) {
    redisContext *voice = redisConnectUnix(f->server->socket);
    freeReplyObject(redisCommand(voice, "PING"));
    return voice;
}

static void say(redisContext *voice, const char *command) {
    int done = 0;
    redisAppendCommand(voice, command);
    while (!done && redisBufferWrite(voice, &done) == REDIS_OK)
        continue;
}

static void hear(redisContext *voice) {
    void *reply;
    assert_int_equal(redisGetReply(voice, &reply), REDIS_OK);
    freeReplyObject(reply);
    redisFree(voice);
}

static void a_release_whose_reply_was_lost_was_done(void **state) {
    struct fixture *f = *state;
    evlock *lock = held(f, "a", NULL);
    redisContext *killer = second_voice(f);
    f->ended = (struct record){0};
    /* Stopped meanwhile, the server does in one go what it was sent, in that order: it releases the lock, and ends the
     * connection before it has written the answer. */
    server_pause(f->server);
    assert_status(evlock_release(lock, record_end, &f->ended), EVLOCK_OK);
    run_for(f, 50);
    say(killer, "CLIENT KILL TYPE normal");
    server_resume(f->server);
    hear(killer);
    await(f, f->ended.count);
    assert_ended(&f->ended, EVLOCK_OK);
    assert_false(key_exists(f->server, "a"));
}

static void freeing_a_held_handle_releases_it(void **state) {
    struct fixture *f = *state;
    lock_free(f, held(f, "a", NULL));
    await(f, !key_exists(f->server, "a"));
}

static void freeing_an_acquiring_handle_leaves_no_key(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock *lock = lock_new(f, "a", NULL);
    await_connected(f, f->client);
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    lock_free(f, lock);
    assert_int_equal(record.count, 0);
    await(f, record.count);
    assert_ended(&record, EVLOCK_ECANCELLED);
    assert_null(record.object);
    run_for(f, 200);
    assert_false(key_exists(f->server, "a"));
}

/* --- Extension ---------------------------------------------------------------------------------------------------- */

static void extend_adds_to_what_is_left(void **state) {
    struct fixture *f = *state;
    evlock *lock = held_with_ttl(f, "a", 100 * 1000);
    assert_status(await_extend(f, lock, 100 * 1000, EVLOCK_EXTEND_ADD), EVLOCK_OK);
    assert_int_in_range(key_ttl(f->server, "a"), 150 * 1000, 200 * 1000);
    assert_int_in_range(evlock_remaining_ms(lock), 150 * 1000, 200 * 1000 - 1);
}

static void extend_replaces_what_is_left(void **state) {
    struct fixture *f = *state;
    evlock *lock = held_with_ttl(f, "a", 100 * 1000);
    assert_status(await_extend(f, lock, 300 * 1000, EVLOCK_EXTEND_REPLACE), EVLOCK_OK);
    assert_int_in_range(key_ttl(f->server, "a"), 250 * 1000, 300 * 1000);
    assert_int_in_range(evlock_remaining_ms(lock), 250 * 1000, 300 * 1000 - 3002);
}

static void extend_can_shorten(void **state) {
    struct fixture *f = *state;
    evlock *lock = held_with_ttl(f, "a", 600 * 1000);
    assert_status(await_extend(f, lock, 60 * 1000, EVLOCK_EXTEND_REPLACE), EVLOCK_OK);
    assert_int_in_range(key_ttl(f->server, "a"), 1, 60 * 1000);
    assert_int_in_range(evlock_remaining_ms(lock), 1, 60 * 1000 - 602);
}

/* It would be lost at once. */
static void a_lease_is_not_shortened_to_less_than_its_lead(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(600 * 1000);
    options.lost_lead_ms = 60 * 1000;
    evlock *lock = held(f, "a", &options);
    f->ended = (struct record){0};
    assert_status(evlock_extend(lock, 60 * 1000, EVLOCK_EXTEND_REPLACE, record_end, &f->ended), EVLOCK_ETTL);
    assert_status(evlock_extend(lock, 60 * 1000 + 608, EVLOCK_EXTEND_REPLACE, record_end, &f->ended), EVLOCK_ETTL);
    assert_non_null(strstr(evlock_last_error(), "lead"));
    assert_int_in_range(evlock_remaining_ms(lock), 300 * 1000, 600 * 1000);
    assert_status(await_extend(f, lock, 1000, EVLOCK_EXTEND_ADD), EVLOCK_OK);
    assert_status(await_extend(f, lock, 300 * 1000, EVLOCK_EXTEND_REPLACE), EVLOCK_OK);
    assert_status(await_extend(f, lock, 0, EVLOCK_EXTEND_RESET), EVLOCK_OK);
}

/* The lead lies within the wait of the test by far, the deadline by far beyond. */
static void a_loss_is_told_by_its_lead(void **state) {
    struct fixture *f = *state;
    struct record lost = {0};
    evlock_options options = with_ttl(1000 * 1000);
    options.lost_lead_ms = 1000 * 1000 - 10002 - 300;
    options.on_lost = record_end;
    options.arg = &lost;
    evlock *lock = held(f, "a", &options);
    int64_t least = evlock_clock_us();
    least += (evlock_remaining_ms(lock) - options.lost_lead_ms) * 1000;
    await(f, lost.count);
    assert_status(lost.status, EVLOCK_EEXPIRED);
    assert_true(lost.at >= least);
    assert_false(evlock_is_held(lock));
    assert_true(key_exists(f->server, "a"));
}

static void a_shortening_moves_the_deadline_in_at_once(void **state) {
    struct fixture *f = *state;
    evlock *lock = held_with_ttl(f, "a", 600 * 1000);
    f->ended = (struct record){0};
    assert_status(evlock_extend(lock, 60 * 1000, EVLOCK_EXTEND_REPLACE, record_end, &f->ended), EVLOCK_OK);
    assert_int_in_range(evlock_remaining_ms(lock), 1, 60 * 1000 - 602);
    await(f, f->ended.count);
    assert_ended(&f->ended, EVLOCK_OK);
}

static void a_lengthening_moves_the_deadline_out_when_answered(void **state) {
    struct fixture *f = *state;
    evlock *lock = held_with_ttl(f, "a", 60 * 1000);
    f->ended = (struct record){0};
    assert_status(evlock_extend(lock, 600 * 1000, EVLOCK_EXTEND_REPLACE, record_end, &f->ended), EVLOCK_OK);
    assert_int_in_range(evlock_remaining_ms(lock), 1, 60 * 1000);
    await(f, f->ended.count);
    assert_int_in_range(evlock_remaining_ms(lock), 500 * 1000, 600 * 1000);
}

static void an_extension_of_unknown_outcome_never_moves_the_deadline_out(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = client_options(f);
    options.command_timeout_ms = 300;
    client_new(f, NULL, &options);
    evlock *lock = held_with_ttl(f, "a", 60 * 1000);
    server_pause(f->server);
    assert_status(await_extend(f, lock, 600 * 1000, EVLOCK_EXTEND_REPLACE), EVLOCK_EUNREACHABLE);
    assert_int_in_range(evlock_remaining_ms(lock), 1, 60 * 1000);
    await(f, evlock_client_connection(f->client) != EVLOCK_CONNECTED);
    server_resume(f->server);
    await_connected(f, f->client);
    run_for(f, 50);
    assert_int_in_range(evlock_remaining_ms(lock), 1, 60 * 1000);
}

static void extensions_are_done_in_order(void **state) {
    struct fixture *f = *state;
    struct record records[4] = {0};
    evlock *lock = held_with_ttl(f, "a", 100 * 1000);
    assert_status(evlock_extend(lock, 400 * 1000, EVLOCK_EXTEND_REPLACE, record_end, &records[0]), EVLOCK_OK);
    assert_status(evlock_extend(lock, 200 * 1000, EVLOCK_EXTEND_REPLACE, record_end, &records[1]), EVLOCK_OK);
    assert_status(evlock_extend(lock, 100 * 1000, EVLOCK_EXTEND_ADD, record_end, &records[2]), EVLOCK_OK);
    assert_status(evlock_extend(lock, 100 * 1000, EVLOCK_EXTEND_ADD, record_end, &records[3]), EVLOCK_OK);
    await(f, records[3].count);
    for (int i = 0; i < 4; i++) {
        assert_ended(&records[i], EVLOCK_OK);
        assert_true(i == 0 || records[i - 1].order < records[i].order);
    }
    assert_int_in_range(key_ttl(f->server, "a"), 350 * 1000, 400 * 1000);
    assert_int_in_range(evlock_remaining_ms(lock), 350 * 1000, 400 * 1000);
}

static void extend_needs_a_hold(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(evlock_extend(lock, 1000, EVLOCK_EXTEND_ADD, record_end, &f->ended), EVLOCK_ENOTHELD);
    assert_status(evlock_extend(lock, 0, EVLOCK_EXTEND_RESET, record_end, &f->ended), EVLOCK_ENOTHELD);
    lock = lost(f, "b", &record);
    f->ended = (struct record){0};
    assert_status(evlock_extend(lock, 1000, EVLOCK_EXTEND_ADD, record_end, &f->ended), EVLOCK_ELOST);
    assert_status(evlock_extend(lock, 0, EVLOCK_EXTEND_RESET, record_end, &f->ended), EVLOCK_ELOST);
    await(f, server_integer(f->server, "DBSIZE") == 0);
    lock = held_with_ttl(f, "c", 100);
    f->ended = (struct record){0};
    usleep(100 * 1000); /* it is over, and that has not been told yet */
    assert_status(evlock_extend(lock, 1000, EVLOCK_EXTEND_ADD, record_end, &f->ended), EVLOCK_ELOST);
    assert_int_equal(f->ended.count, 0);
}

static void a_lock_without_ttl_is_not_extended(void **state) {
    struct fixture *f = *state;
    evlock *lock = held_with_ttl(f, "a", EVLOCK_NO_EXPIRY);
    f->ended = (struct record){0};
    assert_status(evlock_extend(lock, 1000, EVLOCK_EXTEND_ADD, record_end, &f->ended), EVLOCK_ENOTTL);
    assert_status(evlock_extend(lock, 1000, EVLOCK_EXTEND_REPLACE, record_end, &f->ended), EVLOCK_ENOTTL);
    assert_status(evlock_extend(lock, 0, EVLOCK_EXTEND_RESET, record_end, &f->ended), EVLOCK_ENOTTL);
    run_for(f, 50);
    assert_int_equal(f->ended.count, 0);
    assert_int_equal(key_ttl(f->server, "a"), -1);
    assert_true(evlock_is_held(lock));
}

static void an_extension_of_a_key_that_is_gone_is_a_loss(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock_options options = {.size = sizeof(evlock_options)};
    options.on_lost = record_end;
    options.arg = &record;
    evlock *lock = held(f, "a", &options);
    server_do(f->server, "SET a stranger PX 600000");
    assert_status(await_extend(f, lock, 1000, EVLOCK_EXTEND_ADD), EVLOCK_ENOTOWNED);
    assert_int_equal(record.count, 1);
    assert_int_equal(record.status, EVLOCK_ENOTOWNED);
    assert_true(record.order < f->ended.order);
    assert_false(evlock_is_held(lock));
    assert_true(key_is(f->server, "a", "stranger", 8));
    assert_true(key_ttl(f->server, "a") > 100 * 1000);
}

static void a_key_made_to_last_for_ever_is_not_added_to(void **state) {
    struct fixture *f = *state;
    evlock *lock = held(f, "a", NULL);
    server_do(f->server, "PERSIST a");
    assert_status(await_extend(f, lock, 1000, EVLOCK_EXTEND_ADD), EVLOCK_ENOTTL);
    assert_int_equal(key_ttl(f->server, "a"), -1);
    assert_true(evlock_is_held(lock));
    assert_true(ask_owned(f, lock));
    /* a replacement gives it an end again */
    assert_status(await_extend(f, lock, 1000, EVLOCK_EXTEND_REPLACE), EVLOCK_OK);
    assert_int_in_range(key_ttl(f->server, "a"), 1, 1000);
}

static void a_release_ends_pending_extensions(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock *lock = held(f, "a", NULL);
    assert_status(evlock_extend(lock, 60 * 1000, EVLOCK_EXTEND_ADD, record_end, &record), EVLOCK_OK);
    assert_status(await_release(f, lock), EVLOCK_OK);
    await(f, record.count);
    assert_ended(&record, EVLOCK_ECANCELLED);
    run_for(f, 100);
    assert_false(key_exists(f->server, "a"));
}

static void a_reset_goes_back_to_the_locks_ttl(void **state) {
    struct fixture *f = *state;
    evlock *lock = held_with_ttl(f, "a", 100 * 1000);
    server_do(f->server, "PEXPIRE a 50000");
    assert_status(await_extend(f, lock, 0, EVLOCK_EXTEND_RESET), EVLOCK_OK);
    assert_int_in_range(key_ttl(f->server, "a"), 70 * 1000, 100 * 1000);
    assert_status(await_extend(f, lock, 500 * 1000, EVLOCK_EXTEND_ADD), EVLOCK_OK);
    assert_status(await_extend(f, lock, 0, EVLOCK_EXTEND_RESET), EVLOCK_OK);
    assert_int_in_range(key_ttl(f->server, "a"), 70 * 1000, 100 * 1000);
    assert_int_in_range(evlock_remaining_ms(lock), 1, 100 * 1000 - 1002);
}

static void a_reset_of_a_key_that_is_gone_is_a_loss(void **state) {
    struct fixture *f = *state;
    evlock *lock = held(f, "a", NULL);
    server_do(f->server, "DEL a");
    assert_status(await_extend(f, lock, 0, EVLOCK_EXTEND_RESET), EVLOCK_ENOTOWNED);
    assert_false(evlock_is_held(lock));
    assert_false(key_exists(f->server, "a"));
}

/* --- Questions ---------------------------------------------------------------------------------------------------- */

static void locked_asks_for_anyone(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    assert_false(ask_locked(f, lock));
    server_do(f->server, "SET a stranger");
    assert_true(ask_locked(f, lock));
    server_do(f->server, "DEL a");
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_true(ask_locked(f, lock));
}

static void owned_asks_for_the_own_token(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    server_do(f->server, "SET a stranger");
    assert_false(ask_owned(f, lock));
    server_do(f->server, "DEL a");
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_true(ask_owned(f, lock));
    server_do(f->server, "SET a stranger");
    assert_false(ask_owned(f, lock));
}

static void what_the_handle_knows_is_not_asked(void **state) {
    static const unsigned known[] = {EVLOCK_QUERY_OWNED, EVLOCK_QUERY_PLACE, EVLOCK_QUERY_OWNED | EVLOCK_QUERY_PLACE};
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    await_connected(f, f->client);
    server_pause(f->server);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        assert_status(await_query(f, lock, known[i]), EVLOCK_OK);
        assert_false(f->ended.answer.owned);
        assert_int_equal(f->ended.answer.place, 0);
        assert_string_equal(f->ended.answer.holder, "");
    }
    server_resume(f->server);
}

static void the_ttl_is_the_keys(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    assert_int_equal(ask_ttl(f, lock), 0);
    server_do(f->server, "SET a stranger PX 600000");
    assert_int_in_range(ask_ttl(f, lock), 500 * 1000, 600 * 1000);
    server_do(f->server, "PERSIST a");
    assert_int_equal(ask_ttl(f, lock), EVLOCK_NO_EXPIRY);
}

/* What there is to know of a lock, by the parts of a query. */
struct known {
    bool locked, owned;
    int64_t least, most; /* of its ttl */
    const char *holder;
};

/* Whatever is asked for together: that is answered, and nothing else. */
static void assert_known(struct fixture *f, evlock *lock, const struct known *known) {
    for (unsigned what = 1; what <= EVERY_QUERY; what++) {
        const evlock_answer *answer = &f->ended.answer;
        assert_status(await_query(f, lock, what), EVLOCK_OK);
        assert_int_equal(answer->locked, what & EVLOCK_QUERY_LOCKED ? known->locked : 0);
        assert_int_equal(answer->owned, what & EVLOCK_QUERY_OWNED ? known->owned : 0);
        assert_true(answer->ttl_ms >= (what & EVLOCK_QUERY_TTL ? known->least : 0));
        assert_true(answer->ttl_ms <= (what & EVLOCK_QUERY_TTL ? known->most : 0));
        assert_string_equal(answer->holder, what & EVLOCK_QUERY_HOLDER ? known->holder : "");
        assert_int_equal(answer->waiters, what & EVLOCK_QUERY_WAITERS ? 2 : 0);
        assert_int_equal(answer->place, 0);
    }
}

static void what_is_asked_together_is_answered_together(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(600 * 1000);
    options.holder = "web-3";
    evlock *lock = lock_new(f, "a", &options), *stranger = lock_new(f, "a", NULL);
    server_do(f->server, "ZADD {a}:queue 1 x 2 y");
    assert_known(f, lock, &(struct known){.holder = ""});
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_known(f, lock, &(struct known){true, true, 1, 600 * 1000, "web-3"});
    assert_known(f, stranger, &(struct known){true, false, 1, 600 * 1000, "web-3"});
    server_do(f->server, "PERSIST a");
    assert_known(f, lock, &(struct known){true, true, EVLOCK_NO_EXPIRY, EVLOCK_NO_EXPIRY, "web-3"});
    server_do(f->server, "SET a stranger PX 600000");
    assert_known(f, lock, &(struct known){true, false, 1, 600 * 1000, ""});
    server_do(f->server, "SET a %s", ""); /* a value without a byte is one, too */
    assert_known(f, stranger, &(struct known){true, false, EVLOCK_NO_EXPIRY, EVLOCK_NO_EXPIRY, ""});
    server_do(f->server, "DEL a");
    assert_known(f, lock, &(struct known){.holder = ""});
}

/* Whoever asks while the last milliseconds run out hears of a lock with a ttl, or of none. */
static void an_answer_does_not_contradict_itself(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    for (int i = 0; i < 300; i++) {
        server_do(f->server, "SET a stranger PX %d", 1 + i % 3);
        do
            assert_status(await_query(f, lock, EVLOCK_QUERY_LOCKED | EVLOCK_QUERY_TTL), EVLOCK_OK);
        while (f->ended.answer.locked && f->ended.answer.ttl_ms > 0);
        assert_false(f->ended.answer.locked);
        assert_int_equal(f->ended.answer.ttl_ms, 0);
    }
}

/* As it is with what one command answers. */
static void what_is_no_lock_is_no_answer(void **state) {
    static const unsigned asked[] = {EVLOCK_QUERY_LOCKED, EVLOCK_QUERY_HOLDER, EVLOCK_QUERY_LOCKED | EVLOCK_QUERY_TTL,
                                     EVERY_QUERY, EVLOCK_QUERY_TTL | EVLOCK_QUERY_WAITERS};
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    server_do(f->server, "RPUSH a x");
    for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++)
        assert_status(await_query(f, lock, asked[i]), EVLOCK_EWRONGTYPE);
    server_do(f->server, "DEL a");
    server_do(f->server, "SET {a}:queue x");
    assert_status(await_query(f, lock, EVLOCK_QUERY_WAITERS), EVLOCK_EWRONGTYPE);
    assert_status(await_query(f, lock, EVERY_QUERY), EVLOCK_EWRONGTYPE);
    assert_false(ask_locked(f, lock));
}

static void many_questions_at_a_time(void **state) {
    struct fixture *f = *state;
    struct record records[30] = {0};
    evlock *lock = held(f, "a", NULL);
    for (int i = 0; i < 30; i += 3) {
        assert_status(evlock_query(lock, EVLOCK_QUERY_LOCKED, record_answer, &records[i]), EVLOCK_OK);
        assert_status(evlock_query(lock, EVLOCK_QUERY_OWNED, record_answer, &records[i + 1]), EVLOCK_OK);
        assert_status(evlock_query(lock, EVLOCK_QUERY_TTL, record_answer, &records[i + 2]), EVLOCK_OK);
    }
    for (int i = 0; i < 30; i++) {
        await(f, records[i].count);
        assert_ended(&records[i], EVLOCK_OK);
        assert_true(records[i].answer.locked || records[i].answer.owned || records[i].answer.ttl_ms > 0);
    }
}

static void questions_end_unreachable_without_a_server(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = client_options(f);
    options.command_timeout_ms = 200;
    server_kill9(f->server);
    client_new(f, NULL, &options);
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(await_query(f, lock, EVLOCK_QUERY_LOCKED), EVLOCK_EUNREACHABLE);
    assert_status(await_query(f, lock, EVLOCK_QUERY_TTL), EVLOCK_EUNREACHABLE);
    assert_status(await_break(f, lock), EVLOCK_EUNREACHABLE);
    assert_status(await_adopt(f, lock, "token", 5), EVLOCK_EUNREACHABLE);
    assert_string_not_equal(f->ended.error, "");
}

static void the_name_can_be_read(void **state) {
    struct fixture *f = *state;
    size_t len;
    evlock *lock = lock_new(f, "a", NULL);
    assert_string_equal(evlock_name(lock, &len), "a");
    assert_int_equal(len, 1);
    assert_null(evlock_name(NULL, NULL));
}

/* --- Handing over ------------------------------------------------------------------------------------------------- */

struct handover {
    const char *url;
    char token[128];
    size_t len;
    bool ok;
};

static void export_from(evlock *lock, struct handover *handover) {
    assert_status(evlock_export(lock, handover->token, sizeof(handover->token), &handover->len), EVLOCK_OK);
}

/* Takes the lease over on a loop of its own, extends and releases it. */
static bool take_over(struct handover *handover) {
    struct fixture f;
    struct record records[3] = {0};
    evlock_client *client;
    evlock *lock;
    bool ok = fixture_init(&f, NULL) &&
              evlock_client_new(&client, loop_for_evlock(f.loop), handover->url, NULL) == EVLOCK_OK &&
              evlock_new(&lock, client, "a", EVLOCK_CSTRING, NULL) == EVLOCK_OK;
    if (!ok)
        return false;
    ok =
        ends(&f, evlock_adopt(lock, handover->token, handover->len, record_end, &records[0]), &records[0], EVLOCK_OK) &&
        evlock_is_held(lock) &&
        ends(&f, evlock_extend(lock, 60 * 1000, EVLOCK_EXTEND_REPLACE, record_end, &records[1]), &records[1],
             EVLOCK_OK) &&
        ends(&f, evlock_release(lock, record_end, &records[2]), &records[2], EVLOCK_OK);
    evlock_free(lock);
    evlock_client_free(client);
    return fixture_free(&f) == 0 && ok;
}

static void an_export_ends_the_lease_silently(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    struct handover handover;
    size_t len;
    evlock_options options = with_ttl(600);
    options.auto_renewal = true;
    options.on_lost = record_end;
    options.on_at_risk = record_risk;
    options.arg = &record;
    evlock *lock = held(f, "a", &options);
    export_from(lock, &handover);
    assert_false(evlock_is_held(lock));
    assert_int_equal(evlock_remaining_ms(lock), 0);
    assert_null(evlock_token(lock, &len));
    assert_true(key_is(f->server, "a", handover.token, handover.len));
    assert_status(evlock_release(lock, NULL, NULL), EVLOCK_ENOTHELD);
    /* not renewed, not told lost */
    await(f, !key_exists(f->server, "a"));
    run_for(f, 200);
    assert_int_equal(record.count, 0);
}

static void an_export_ends_pending_extensions(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    struct handover handover;
    evlock *lock = held(f, "a", NULL);
    assert_status(evlock_extend(lock, 60 * 1000, EVLOCK_EXTEND_ADD, record_end, &record), EVLOCK_OK);
    export_from(lock, &handover);
    await(f, record.count);
    assert_ended(&record, EVLOCK_ECANCELLED);
}

/* Sent and not answered, a replacement may cut the lease after whoever adopts it has asked for how long it lasts. */
static void an_export_waits_for_a_replacement(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    unsigned char token[128];
    size_t len = 0;
    evlock *lock = held(f, "a", NULL);
    assert_status(evlock_extend(lock, 5000, EVLOCK_EXTEND_REPLACE, record_end, &record), EVLOCK_OK);
    assert_status(evlock_export(lock, token, sizeof(token), &len), EVLOCK_EALREADY);
    assert_true(evlock_is_held(lock));
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    assert_status(evlock_export(lock, token, sizeof(token), &len), EVLOCK_OK);
}

static void an_export_needs_a_hold_and_room(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    char token[128];
    size_t len = 77;
    assert_status(evlock_export(lock_new(f, "a", NULL), token, sizeof(token), &len), EVLOCK_ENOTHELD);
    assert_status(evlock_export(lost(f, "b", &record), token, sizeof(token), &len), EVLOCK_ELOST);
    evlock *lock = held(f, "c", NULL);
    assert_status(evlock_export(lock, token, 3, &len), EVLOCK_EINVAL);
    assert_status(evlock_export(lock, NULL, sizeof(token), &len), EVLOCK_EINVAL);
    assert_status(evlock_export(lock, token, sizeof(token), NULL), EVLOCK_EINVAL);
    assert_true(evlock_is_held(lock));
    assert_int_equal(len, 77);
    evlock_token(lock, &len);
    assert_status(evlock_export(lock, token, len, &len), EVLOCK_OK);
}

static void another_handle_adopts(void **state) {
    struct fixture *f = *state;
    struct handover handover;
    size_t len;
    evlock *first = held_with_ttl(f, "a", 60 * 1000);
    evlock *second = lock_new(f, "a", NULL);
    export_from(first, &handover);
    assert_status(await_adopt(f, second, handover.token, handover.len), EVLOCK_OK);
    assert_true(evlock_is_held(second));
    assert_int_in_range(evlock_remaining_ms(second), 1, 60 * 1000);
    assert_memory_equal(evlock_token(second, &len), handover.token, handover.len);
    assert_status(await_extend(f, second, 600 * 1000, EVLOCK_EXTEND_REPLACE), EVLOCK_OK);
    assert_status(await_release(f, second), EVLOCK_OK);
    assert_false(key_exists(f->server, "a"));
}

static void another_client_adopts(void **state) {
    struct fixture *f = *state;
    struct handover handover;
    evlock *first = held(f, "a", NULL);
    evlock *second = lock_new_on(f, client_new(f, NULL, NULL), "a", NULL);
    export_from(first, &handover);
    assert_status(await_adopt(f, second, handover.token, handover.len), EVLOCK_OK);
    assert_status(await_release(f, second), EVLOCK_OK);
    assert_false(key_exists(f->server, "a"));
}

static void *take_over_in_thread(void *arg) {
    struct handover *handover = arg;
    handover->ok = take_over(handover);
    return NULL;
}

static void another_thread_adopts(void **state) {
    struct fixture *f = *state;
    struct handover handover = {.url = f->server->url};
    pthread_t thread;
    export_from(held(f, "a", NULL), &handover);
    assert_int_equal(pthread_create(&thread, NULL, take_over_in_thread, &handover), 0);
    pthread_join(thread, NULL);
    assert_true(handover.ok);
    assert_false(key_exists(f->server, "a"));
}

static int take_over_in_process(void *arg) {
    return take_over(arg) ? 0 : 1;
}

static void another_process_adopts(void **state) {
    struct fixture *f = *state;
    struct handover handover = {.url = f->server->url};
    export_from(held(f, "a", NULL), &handover);
    assert_int_equal(in_child(take_over_in_process, &handover), 0);
    assert_false(key_exists(f->server, "a"));
}

static void a_strangers_lease_is_adopted_and_renewed(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(60 * 1000);
    options.auto_renewal = true;
    options.renewal_interval_ms = 100;
    evlock *lock = lock_new(f, "a", &options);
    server_do(f->server, "SET a stranger PX 20000");
    assert_status(await_adopt(f, lock, "stranger", EVLOCK_CSTRING), EVLOCK_OK);
    assert_int_in_range(evlock_remaining_ms(lock), 1, 20 * 1000);
    await(f, key_ttl(f->server, "a") > 20 * 1000);
    await(f, evlock_remaining_ms(lock) > 20 * 1000);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_false(key_exists(f->server, "a"));
}

static void a_lease_without_expiry_is_adopted(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(EVLOCK_NO_EXPIRY);
    evlock *lock = lock_new(f, "a", &options);
    server_do(f->server, "SET a stranger");
    assert_status(await_adopt(f, lock, "stranger", EVLOCK_CSTRING), EVLOCK_OK);
    assert_true(evlock_remaining_ms(lock) == INT64_MAX);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_false(key_exists(f->server, "a"));
}

/* Its key was made to last for ever meanwhile, but its lock has a ttl. */
static void a_lease_without_expiry_is_given_one(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock_options options = with_ttl(1500);
    options.on_lost = record_end;
    options.arg = &record;
    evlock *lock = lock_new(f, "a", &options);
    server_do(f->server, "SET a stranger");
    assert_status(await_adopt(f, lock, "stranger", EVLOCK_CSTRING), EVLOCK_OK);
    assert_status(evlock_extend(lock, 1000, EVLOCK_EXTEND_ADD, record_end, &f->ended), EVLOCK_ENOTTL);
    assert_status(await_extend(f, lock, 600 * 1000, EVLOCK_EXTEND_REPLACE), EVLOCK_OK);
    assert_int_in_range(key_ttl(f->server, "a"), 500 * 1000, 600 * 1000);
    assert_int_in_range(evlock_remaining_ms(lock), 500 * 1000, 600 * 1000);
    assert_status(await_extend(f, lock, 0, EVLOCK_EXTEND_RESET), EVLOCK_OK);
    await(f, record.count); /* and so it ends */
    assert_status(record.status, EVLOCK_EEXPIRED);
}

static void an_extension_that_is_refused_leaves_it_without_expiry(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    server_do(f->server, "SET a stranger");
    assert_status(await_adopt(f, lock, "stranger", EVLOCK_CSTRING), EVLOCK_OK);
    server_do(f->server, "ACL SETUSER default -pexpire");
    assert_status(await_extend(f, lock, 1000, EVLOCK_EXTEND_REPLACE), EVLOCK_EPERM);
    server_do(f->server, "ACL SETUSER default +pexpire");
    assert_true(evlock_remaining_ms(lock) == INT64_MAX);
    assert_status(await_release(f, lock), EVLOCK_OK);
}

static void a_token_that_is_not_there_is_not_adopted(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(await_adopt(f, lock, "mine", EVLOCK_CSTRING), EVLOCK_ENOTOWNED);
    server_do(f->server, "SET a stranger PX 600000");
    assert_status(await_adopt(f, lock, "mine", EVLOCK_CSTRING), EVLOCK_ENOTOWNED);
    assert_false(evlock_is_held(lock));
    assert_true(key_is(f->server, "a", "stranger", 8));
    /* the handle is free again */
    server_do(f->server, "DEL a");
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
}

static void a_lease_is_not_adopted_when_too_little_is_left(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    server_do(f->server, "SET a stranger PX 2");
    assert_status(await_adopt(f, lock, "stranger", EVLOCK_CSTRING), EVLOCK_ENOTOWNED);
    assert_false(evlock_is_held(lock));
}

static void a_cancelled_adoption_leaves_the_lease(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    server_do(f->server, "SET a stranger PX 600000");
    await_connected(f, f->client);
    assert_status(evlock_adopt(lock, "stranger", EVLOCK_CSTRING, record_end, &f->ended), EVLOCK_OK);
    assert_status(evlock_cancel(lock), EVLOCK_OK);
    await(f, f->ended.count);
    assert_ended(&f->ended, EVLOCK_ECANCELLED);
    run_for(f, 200);
    assert_false(evlock_is_held(lock));
    assert_true(key_is(f->server, "a", "stranger", 8));
    assert_true(key_ttl(f->server, "a") > 500 * 1000);
}

/* --- Between an answer and its callback --------------------------------------------------------------------------- */

/* Two answers come in one reading of the socket: while the first is told, the second one, to an adoption, waits. */
struct meanwhile {
    struct fixture *f;
    struct record query, adoption;
    evlock *lock;
    void (*deed)(struct meanwhile *meanwhile);
    int returned;
};

static void do_meanwhile(struct record *record) {
    struct meanwhile *meanwhile = record->then_arg;
    meanwhile->deed(meanwhile);
}

/* The stranger's lease, of this ttl in ms, is adopted and not yet told when the deed is done; then all is told. */
static void adopt_and_meanwhile(struct meanwhile *meanwhile, int ttl_ms) {
    struct fixture *f = meanwhile->f;
    evlock *asked = lock_new(f, "b", NULL);
    meanwhile->lock = lock_new(f, "a", NULL);
    meanwhile->query.then = do_meanwhile;
    meanwhile->query.then_arg = meanwhile;
    await_connected(f, f->client);
    server_do(f->server, "SET a stranger PX %d", ttl_ms);
    server_pause(f->server);
    assert_status(evlock_query(asked, EVLOCK_QUERY_LOCKED, record_answer, &meanwhile->query), EVLOCK_OK);
    assert_status(evlock_adopt(meanwhile->lock, "stranger", EVLOCK_CSTRING, record_end, &meanwhile->adoption),
                  EVLOCK_OK);
    run_for(f, 50);
    server_resume(f->server);
    await(f, meanwhile->query.count && meanwhile->adoption.count);
    assert_ended(&meanwhile->query, EVLOCK_OK);
}

static void assert_left_as_it_was(struct meanwhile *meanwhile) {
    assert_ended(&meanwhile->adoption, EVLOCK_ECANCELLED);
    run_for(meanwhile->f, 200);
    assert_true(key_is(meanwhile->f->server, "a", "stranger", 8));
    assert_true(key_ttl(meanwhile->f->server, "a") > 500 * 1000);
}

static void cancel_it(struct meanwhile *meanwhile) {
    meanwhile->returned = evlock_cancel(meanwhile->lock);
}

static void free_it(struct meanwhile *meanwhile) {
    lock_free(meanwhile->f, meanwhile->lock);
}

static void close_its_client(struct meanwhile *meanwhile) {
    meanwhile->returned = evlock_client_close(meanwhile->f->client, NULL, NULL);
    client_forget(meanwhile->f, meanwhile->f->client);
}

static void free_its_client(struct meanwhile *meanwhile) {
    client_free(meanwhile->f, meanwhile->f->client);
}

static void an_adoption_cancelled_before_it_was_told_leaves_the_lease(void **state) {
    void (*const deeds[])(struct meanwhile *) = {cancel_it, free_it, free_its_client};
    for (size_t i = 0; i < sizeof(deeds) / sizeof(deeds[0]); i++) {
        struct meanwhile meanwhile = {.f = *state, .deed = deeds[i]};
        adopt_and_meanwhile(&meanwhile, 600000);
        assert_status(meanwhile.returned, EVLOCK_OK);
        assert_left_as_it_was(&meanwhile);
    }
}

static void an_adoption_closed_before_it_was_told_leaves_the_lease(void **state) {
    struct meanwhile meanwhile = {.f = *state, .deed = close_its_client};
    adopt_and_meanwhile(&meanwhile, 600000);
    assert_status(meanwhile.returned, EVLOCK_OK);
    assert_left_as_it_was(&meanwhile);
}

static void stand_still(struct meanwhile *meanwhile) {
    (void)meanwhile;
    usleep(500 * 1000);
}

static void an_adoption_lost_before_it_was_told_leaves_nothing_behind(void **state) {
    struct fixture *f = *state;
    struct meanwhile meanwhile = {.f = f, .deed = stand_still};
    evlock_acquire_options own = {.size = sizeof(evlock_acquire_options)};
    own.token = "stranger";
    own.token_len = 8;
    own.max_attempts = EVLOCK_TRY;
    adopt_and_meanwhile(&meanwhile, 400);
    assert_ended(&meanwhile.adoption, EVLOCK_ENOTOWNED);
    assert_status(evlock_release(meanwhile.lock, NULL, NULL), EVLOCK_ENOTHELD);
    await(f, !key_exists(f->server, "a"));
    assert_status(await_acquire(f, meanwhile.lock, &own), EVLOCK_OK);
    assert_status(await_close(f, f->client), EVLOCK_OK);
}

static void who_holds_or_acquires_does_not_adopt(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    assert_status(evlock_adopt(lock, "t", 1, NULL, NULL), EVLOCK_EALREADY);
    await(f, record.count);
    assert_status(evlock_adopt(lock, "t", 1, NULL, NULL), EVLOCK_EALREADY);
    assert_ended(&record, EVLOCK_OK);
}

/* --- Breaking ----------------------------------------------------------------------------------------------------- */

static void break_gives_the_lock_up_whoever_holds_it(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock_options options = {.size = sizeof(evlock_options)};
    options.on_lost = record_end;
    options.arg = &record;
    evlock *holder = held(f, "a", &options);
    evlock *breaker = lock_new(f, "a", NULL);
    assert_status(await_break(f, breaker), EVLOCK_OK);
    assert_false(key_exists(f->server, "a"));
    assert_status(await_release(f, holder), EVLOCK_ENOTOWNED);
    assert_int_equal(record.count, 0);
}

static void break_works_on_strangers_and_on_locks_without_ttl(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    server_do(f->server, "SET a stranger");
    assert_status(await_break(f, lock), EVLOCK_OK);
    assert_false(key_exists(f->server, "a"));
    /* also without a callback */
    server_do(f->server, "SET a stranger");
    assert_status(evlock_break(lock, NULL, NULL), EVLOCK_OK);
    await(f, !key_exists(f->server, "a"));
}

static void break_of_a_free_lock_says_so(void **state) {
    struct fixture *f = *state;
    assert_status(await_break(f, lock_new(f, "a", NULL)), EVLOCK_ENOTHELD);
}

static void a_late_break_does_not_end_the_next_holder(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    redisContext *next = second_voice(f);
    await_connected(f, f->client);
    server_do(f->server, "SET a first");
    f->ended = (struct record){0};
    /* As above: the breaker is told of the first holder, and before it can answer, the lock has its next. */
    server_pause(f->server);
    assert_status(evlock_break(lock, record_end, &f->ended), EVLOCK_OK);
    run_for(f, 50);
    say(next, "SET a second");
    server_resume(f->server);
    hear(next);
    await(f, f->ended.count);
    assert_true(key_is(f->server, "a", "second", 6));
    assert_ended(&f->ended, EVLOCK_ENOTOWNED);
}

/* Up to what was a command's room, beyond it, and beyond what evlock takes as an answer. */
static const size_t lengths[] = {1, 127, 128, 129, 168, 16000, 17000, 1024 * 1024, 20 * 1024 * 1024};

/* Puts a value of this length under "a", which ends in `last`. */
static void set_long(struct fixture *f, size_t len, char last) {
    char *value = malloc(len);
    assert_non_null(value);
    memset(value, 'v', len);
    value[len - 1] = last;
    server_do(f->server, "SET a %b", value, len);
    free(value);
}

static void break_works_on_values_of_any_length(void **state) {
    struct fixture *f = *state;
    evlock_options options = {.size = sizeof(evlock_options)};
    evlock *breakers[] = {lock_new(f, "a", NULL), NULL};
    options.wait = EVLOCK_WAIT_QUEUE;
    breakers[1] = lock_new(f, "a", &options);
    await_connected(f, f->client);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        for (int j = 0; j < 2; j++) {
            set_long(f, lengths[i], '!');
            assert_status(await_break(f, breakers[j]), EVLOCK_OK);
            assert_false(key_exists(f->server, "a"));
        }
    }
    server_do(f->server, "SET a %s", "");
    assert_status(await_break(f, breakers[0]), EVLOCK_OK);
    assert_false(key_exists(f->server, "a"));
    assert_int_equal(f->connection_states[EVLOCK_CONNECTING], 1); /* none was given up for it */
}

/* They differ in their last byte alone. */
static void a_late_break_of_a_long_value_does_not_end_the_next(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    redisContext *next = second_voice(f);
    char value[200];
    memset(value, 'v', sizeof(value));
    await_connected(f, f->client);
    set_long(f, sizeof(value), 'w');
    f->ended = (struct record){0};
    server_pause(f->server);
    assert_status(evlock_break(lock, record_end, &f->ended), EVLOCK_OK);
    run_for(f, 50);
    redisAppendCommand(next, "SET a %b", value, sizeof(value));
    say(next, "PING");
    server_resume(f->server);
    hear(next);
    await(f, f->ended.count);
    assert_true(key_is(f->server, "a", value, sizeof(value)));
    assert_ended(&f->ended, EVLOCK_ENOTOWNED);
}

static void break_leaves_alone_what_is_no_string(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    server_do(f->server, "LPUSH a x");
    assert_status(await_break(f, lock), EVLOCK_EWRONGTYPE);
    assert_true(key_exists(f->server, "a"));
}

/* --- The longest hold --------------------------------------------------------------------------------------------- */

static void renewal_ends_after_the_longest_hold(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock_options options = with_ttl(800);
    options.auto_renewal = true;
    options.max_hold_ms = 1500;
    options.on_lost = record_end;
    options.arg = &record;
    int64_t start = evlock_clock_us();
    held(f, "a", &options);
    await(f, record.count);
    assert_int_equal(record.status, EVLOCK_EMAXHOLD);
    assert_int_in_range(record.at - start, 1500 * 1000, (int64_t)WAIT_MS * 1000);
    await(f, !key_exists(f->server, "a"));
    run_for(f, 500);
    assert_int_equal(record.count, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_release_deletes_the_key),
        TEST(the_hold_ends_with_the_call_to_release),
        TEST(a_release_of_nothing_sends_nothing),
        TEST(an_acquire_under_way_cannot_be_released),
        TEST(a_release_of_a_key_that_is_gone_says_so),
        TEST(a_release_does_not_touch_the_next_owner),
        TEST(a_second_release_is_refused),
        TEST(a_release_after_a_loss_is_still_sent),
        TEST(a_release_after_a_loss_deletes_what_is_still_its_own),
        TEST_BARE(a_release_goes_on_when_its_answer_is_overdue),
        TEST(a_release_whose_reply_was_lost_was_done),
        TEST(freeing_a_held_handle_releases_it),
        TEST(freeing_an_acquiring_handle_leaves_no_key),
        TEST(extend_adds_to_what_is_left),
        TEST(extend_replaces_what_is_left),
        TEST(extend_can_shorten),
        TEST(a_lease_is_not_shortened_to_less_than_its_lead),
        TEST(a_loss_is_told_by_its_lead),
        TEST(a_shortening_moves_the_deadline_in_at_once),
        TEST(a_lengthening_moves_the_deadline_out_when_answered),
        TEST_BARE(an_extension_of_unknown_outcome_never_moves_the_deadline_out),
        TEST(extensions_are_done_in_order),
        TEST(extend_needs_a_hold),
        TEST(a_lock_without_ttl_is_not_extended),
        TEST(an_extension_of_a_key_that_is_gone_is_a_loss),
        TEST(a_key_made_to_last_for_ever_is_not_added_to),
        TEST(a_release_ends_pending_extensions),
        TEST(a_reset_goes_back_to_the_locks_ttl),
        TEST(a_reset_of_a_key_that_is_gone_is_a_loss),
        TEST(locked_asks_for_anyone),
        TEST(owned_asks_for_the_own_token),
        TEST(what_the_handle_knows_is_not_asked),
        TEST(the_ttl_is_the_keys),
        TEST(what_is_asked_together_is_answered_together),
        TEST(an_answer_does_not_contradict_itself),
        TEST(what_is_no_lock_is_no_answer),
        TEST(many_questions_at_a_time),
        TEST_BARE(questions_end_unreachable_without_a_server),
        TEST(the_name_can_be_read),
        TEST(an_export_ends_the_lease_silently),
        TEST(an_export_ends_pending_extensions),
        TEST(an_export_waits_for_a_replacement),
        TEST(an_export_needs_a_hold_and_room),
        TEST(another_handle_adopts),
        TEST(another_client_adopts),
        TEST(another_thread_adopts),
        TEST(another_process_adopts),
        TEST(a_strangers_lease_is_adopted_and_renewed),
        TEST(a_lease_without_expiry_is_adopted),
        TEST(a_lease_without_expiry_is_given_one),
        TEST(an_extension_that_is_refused_leaves_it_without_expiry),
        TEST(a_token_that_is_not_there_is_not_adopted),
        TEST(a_lease_is_not_adopted_when_too_little_is_left),
        TEST(a_cancelled_adoption_leaves_the_lease),
        TEST(an_adoption_cancelled_before_it_was_told_leaves_the_lease),
        TEST(an_adoption_closed_before_it_was_told_leaves_the_lease),
        TEST(an_adoption_lost_before_it_was_told_leaves_nothing_behind),
        TEST(who_holds_or_acquires_does_not_adopt),
        TEST(break_gives_the_lock_up_whoever_holds_it),
        TEST(break_works_on_strangers_and_on_locks_without_ttl),
        TEST(break_of_a_free_lock_says_so),
        TEST(a_late_break_does_not_end_the_next_holder),
        TEST(break_works_on_values_of_any_length),
        TEST(a_late_break_of_a_long_value_does_not_end_the_next),
        TEST(break_leaves_alone_what_is_no_string),
        TEST(renewal_ends_after_the_longest_hold),
    };
    return run_suite("hold", tests);
}
