/*
 * Where two things cross: an ending and a question, a loss and the next acquire, a resent command and its lost answer,
 * a refusal and the deadline. Each test is named after what the user may rely on, and may leave its server in any
 * state: the next one gets a new process.
 */
#include "harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define CROSSING(function) cmocka_unit_test_setup_teardown(function, fixture_setup_bare, fixture_teardown_restart)

/* Gives a silent server up soon, and is back soon. */
static evlock_client_options impatient(struct fixture *f) {
    evlock_client_options options = client_options(f);
    options.command_timeout_ms = 300;
    options.connect_timeout_ms = 300;
    options.backoff_min_ms = 10;
    options.backoff_max_ms = 100;
    return options;
}

/* A client of the user that the test has made. */
static evlock_client *worker_new(struct fixture *f, const char *url, evlock_client_options options) {
    options.user = "worker";
    options.password = "work";
    return client_new(f, url, &options);
}

static evlock *held(struct fixture *f, const char *name, const evlock_options *options) {
    evlock *lock = lock_new(f, name, options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    return lock;
}

/* Options of a lock whose loss is recorded. */
static evlock_options watched(int64_t ttl_ms, struct record *lost) {
    evlock_options options = with_ttl(ttl_ms);
    options.on_lost = record_end;
    options.arg = lost;
    return options;
}

static evlock_acquire_options with_token(const char *token, int64_t max_attempts) {
    evlock_acquire_options options = {.size = sizeof(evlock_acquire_options)};
    options.token = token;
    options.token_len = EVLOCK_CSTRING;
    options.max_attempts = max_attempts;
    return options;
}

/* --- The caller's own token --------------------------------------------------------------------------------------- */

/* Through the relay, as a user that cannot have a connection cut off. */
static evlock *worker_holds(struct fixture *f, const evlock_acquire_options *own) {
    evlock_options options = with_ttl(60000);
    struct record first = {0};
    server_do(f->server, "ACL SETUSER worker on >work ~* -@all +get +set +del +pttl +pexpire +evalsha +script|load");
    relay_start(&f->relay, f->server);
    worker_new(f, f->relay.url, impatient(f));
    evlock *lock = lock_new(f, "a", &options);
    assert_status(evlock_acquire(lock, own, record_end, &first), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && first.count);
    assert_ended(&first, EVLOCK_OK);
    return lock;
}

/* It acquires again; then what was held back runs, and another tries. */
static void assert_no_two_holders(struct fixture *f, evlock *lock, const evlock_acquire_options *own) {
    evlock_options quick = {.size = sizeof(evlock_options)};
    struct record second = {0}, rival = {0};
    assert_status(evlock_acquire(lock, own, record_end, &second), EVLOCK_OK);
    int64_t end = evlock_clock_us() + 500 * 1000;
    await(f, relay_pump(&f->relay) && (second.count || evlock_clock_us() > end));

    long long before = server_calls(f->server, "evalsha");
    f->relay.pairs[0].held = false;
    await(f, relay_pump(&f->relay) && f->relay.pairs[0].client < 0 && server_calls(f->server, "evalsha") > before);
    quick.retry_delay_ms = 10;
    quick.max_wait_ms = 500;
    evlock *other = lock_new_on(f, client_new(f, NULL, NULL), "a", &quick);
    assert_status(evlock_acquire(other, NULL, record_end, &rival), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && rival.count);
    assert_false(evlock_is_held(lock) && evlock_is_held(other));
    lock_free(f, lock);
    await(f, second.count);
}

/* A release that is held back on the way, and may run after its connection was given up, must not end a later lease of
 * the same token. */
static void a_late_release_does_not_make_two_holders(void **state) {
    struct fixture *f = *state;
    evlock_acquire_options own = with_token("mine", EVLOCK_UNLIMITED);
    struct record release = {0};
    evlock *lock = worker_holds(f, &own);
    f->relay.pairs[0].held = true;
    assert_status(evlock_release(lock, record_end, &release), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && release.count && !key_exists(f->server, "a"));
    assert_no_two_holders(f, lock, &own);
}

/* So must a break that is held back: its first step has found the token, and the second one lies about. */
static void break_late(struct fixture *f, const char *token) {
    evlock_acquire_options own = with_token(token, EVLOCK_UNLIMITED);
    struct record broken = {0}, release = {0};
    evlock *lock = worker_holds(f, &own);
    long long before = server_calls(f->server, "evalsha");
    f->relay.pairs[0].muted = true;
    assert_status(evlock_break(lock, record_end, &broken), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && server_calls(f->server, "evalsha") > before);
    f->relay.pairs[0].held = true;
    f->relay.pairs[0].muted = false;
    await(f, relay_pump(&f->relay) && broken.count);
    assert_ended(&broken, EVLOCK_OK); /* on the next connection */
    assert_false(key_exists(f->server, "a"));
    assert_status(evlock_release(lock, record_end, &release), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && release.count);
    assert_no_two_holders(f, lock, &own);
}

static void a_late_break_does_not_make_two_holders(void **state) {
    break_late(*state, "mine");
}

/* The longest token there is is told as it is, and not by a digest. */
static void a_late_break_of_the_longest_token_does_not_make_two_holders(void **state) {
    char token[129];
    memset(token, 't', sizeof(token) - 1);
    token[sizeof(token) - 1] = '\0';
    break_late(*state, token);
}

static void an_unsettled_token_of_ones_own_does_not_wait_for_ever(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = impatient(f);
    evlock_acquire_options twice = with_token("mine", 2), once = with_token("mine", EVLOCK_TRY);
    client_new(f, NULL, &options);
    evlock *lock = lock_new(f, "a", NULL);
    await_connected(f, f->client);
    server_pause(f->server);
    /* the attempts failed for the silence, or for the unsettled token */
    int status = await_acquire(f, lock, &twice);
    assert_true(status == EVLOCK_EUNREACHABLE || status == EVLOCK_EREFUSED);
    status = await_acquire(f, lock, &once);
    assert_true(status == EVLOCK_EUNREACHABLE || status == EVLOCK_EREFUSED);
}

static void a_token_that_is_being_removed_is_waited_for(void **state) {
    struct fixture *f = *state;
    evlock_acquire_options mine = with_token("mine", EVLOCK_TRY);
    client_new(f, NULL, NULL);
    evlock *lock = lock_new(f, "a", NULL), *next = lock_new(f, "a", NULL);
    assert_status(await_acquire(f, lock, &mine), EVLOCK_OK);
    lock_free(f, lock);
    assert_status(await_acquire(f, next, &mine), EVLOCK_OK);
    run_for(f, 50);
    assert_true(key_is(f->server, "a", "mine", 4));
}

/* The server answers, and refuses to have it removed. */
static void a_token_that_cannot_be_removed_holds_up_no_other(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = impatient(f);
    evlock_acquire_options mine = with_token("mine", EVLOCK_TRY), ours = with_token("ours", EVLOCK_TRY);
    client_new(f, NULL, &options);
    evlock *lock = lock_new(f, "a", NULL), *next = lock_new(f, "a", NULL);
    assert_status(await_acquire(f, lock, &mine), EVLOCK_OK);
    server_do(f->server, "CONFIG SET min-replicas-to-write 1");
    lock_free(f, lock);
    assert_status(await_acquire(f, next, &mine), EVLOCK_EREFUSED);
    assert_non_null(strstr(f->ended.error, "not settled"));
    assert_status(await_acquire(f, next, &ours), EVLOCK_EREFUSED);
    assert_non_null(strstr(f->ended.error, "NOREPLICAS"));
    mine.max_wait_ms = 100; /* less than it would be waited for */
    mine.max_attempts = EVLOCK_UNLIMITED;
    assert_status(await_acquire(f, next, &mine), EVLOCK_ETIMEDOUT);
    assert_non_null(strstr(f->ended.error, "not settled"));
}

/* A handle that has lost its token "mine" by its own clock alone: the server still has it. */
static evlock *lost_what_is_there(struct fixture *f, struct record *lost) {
    evlock_options options = watched(1000, lost);
    evlock_acquire_options own = with_token("mine", EVLOCK_TRY);
    client_new(f, NULL, NULL);
    evlock *lock = lock_new(f, "a", &options);
    assert_status(await_acquire(f, lock, &own), EVLOCK_OK);
    server_do(f->server, "PEXPIRE a 600000");
    await(f, lost->count);
    return lock;
}

static void a_lost_token_can_be_adopted_by_the_handle_that_lost_it(void **state) {
    struct fixture *f = *state;
    struct record lost = {0};
    evlock *lock = lost_what_is_there(f, &lost);
    assert_status(await_adopt(f, lock, "mine", EVLOCK_CSTRING), EVLOCK_OK);
    run_for(f, 100);
    assert_true(evlock_is_held(lock));
    assert_true(key_is(f->server, "a", "mine", 4));
    assert_status(await_release(f, lock), EVLOCK_OK);
}

static void a_lost_token_is_given_up_for_another(void **state) {
    struct fixture *f = *state;
    struct record lost = {0};
    evlock *lock = lost_what_is_there(f, &lost);
    assert_status(await_adopt(f, lock, "ours", EVLOCK_CSTRING), EVLOCK_ENOTOWNED);
    await(f, !key_exists(f->server, "a"));
}

/* A handle that has lost its token "mine", with a shortening of its lease on the way; it adopts it again. */
static evlock *adopts_what_may_yet_be_cut_short(struct fixture *f, int64_t max_inflight, struct record *lost,
                                                struct record *adopt) {
    struct record acquire = {0};
    evlock_client_options options = client_options(f);
    evlock_options lasting = watched(600 * 1000, lost);
    evlock_acquire_options own = with_token("mine", EVLOCK_TRY);
    options.command_timeout_ms = 600 * 1000;
    options.max_inflight = max_inflight;
    relay_start(&f->relay, f->server);
    client_new(f, f->relay.url, &options);
    evlock *lock = lock_new(f, "a", &lasting);
    assert_status(evlock_acquire(lock, &own, record_end, &acquire), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && acquire.count);
    f->relay.pairs[0].held = true;
    assert_status(evlock_extend(lock, 500, EVLOCK_EXTEND_REPLACE, NULL, NULL), EVLOCK_OK);
    await(f, lost->count);
    assert_status(evlock_adopt(lock, "mine", 4, record_end, adopt), EVLOCK_OK);
    return lock;
}

/* It goes, and nothing is adopted. */
static void a_lost_token_that_may_yet_be_cut_short_is_not_adopted(void **state) {
    struct fixture *f = *state;
    struct record lost = {0}, adopt = {0};
    adopts_what_may_yet_be_cut_short(f, 0, &lost, &adopt);
    f->relay.pairs[0].held = false;
    await(f, relay_pump(&f->relay) && adopt.count);
    assert_ended(&adopt, EVLOCK_ENOTOWNED);
    await(f, relay_pump(&f->relay) && !key_exists(f->server, "a"));
}

/* Nor where its release is lost with the connection, and would run once more behind the adoption, which has waited. */
static void a_lost_token_whose_release_is_lost_is_not_adopted(void **state) {
    struct fixture *f = *state;
    struct record lost = {0}, adopt = {0};
    evlock *lock = adopts_what_may_yet_be_cut_short(f, 2, &lost, &adopt);
    relay_cut(&f->relay, 0);
    await(f, relay_pump(&f->relay) && adopt.count && !key_exists(f->server, "a"));
    assert_ended(&adopt, EVLOCK_ENOTOWNED);
    assert_false(evlock_is_held(lock));
}

static void a_foreign_lease_without_end_to_speak_of_can_be_adopted(void **state) {
    struct fixture *f = *state;
    client_new(f, NULL, NULL);
    server_do(f->server, "SET a stranger PX 9223000000000000000");
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(await_adopt(f, lock, "stranger", EVLOCK_CSTRING), EVLOCK_OK);
    assert_true(evlock_is_held(lock));
    assert_true(evlock_remaining_ms(lock) > 0);
    assert_true(ask_ttl(f, lock) > 0);
    assert_status(await_query(f, lock, EVLOCK_QUERY_OWNED | EVLOCK_QUERY_TTL), EVLOCK_OK);
    assert_true(f->ended.answer.owned && f->ended.answer.ttl_ms > INT64_C(9000000000000000));
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_false(key_exists(f->server, "a"));
}

/* Lua writes a number of more than 14 digits otherwise than servers read it. */
static void an_addition_to_a_foreign_lease_without_end_is_exact(void **state) {
    static const int64_t far_ms = INT64_C(123456789012345), added_ms = INT64_C(1000000000);
    struct fixture *f = *state;
    client_new(f, NULL, NULL);
    server_do(f->server, "SET a stranger PX %" PRId64, far_ms);
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(await_adopt(f, lock, "stranger", EVLOCK_CSTRING), EVLOCK_OK);
    assert_status(await_extend(f, lock, added_ms, EVLOCK_EXTEND_ADD), EVLOCK_OK);
    assert_status(await_query(f, lock, EVLOCK_QUERY_TTL), EVLOCK_OK);
    assert_int_in_range(f->ended.answer.ttl_ms, far_ms + added_ms / 2, far_ms + added_ms);
}

/* --- Closing ------------------------------------------------------------------------------------------------------ */

/* The query waits for its turn behind the release. */
static void a_close_ends_a_query_behind_a_release(void **state) {
    struct fixture *f = *state;
    struct record release = {0}, locked = {0};
    evlock_client_options options = client_options(f);
    options.max_inflight = 1;
    evlock_client *client = client_new(f, NULL, &options);
    evlock *lock = held(f, "a", NULL);
    assert_status(evlock_release(lock, record_end, &release), EVLOCK_OK);
    assert_status(evlock_query(lock, EVLOCK_QUERY_LOCKED, record_answer, &locked), EVLOCK_OK);
    assert_status(await_close(f, client), EVLOCK_OK);
    lock_free(f, lock);
    run_for(f, 20);
    assert_ended(&release, EVLOCK_OK);
    assert_int_equal(locked.count, 1);
}

/* The release is answered before the break's second step. */
static void a_close_ends_a_break_behind_a_release(void **state) {
    struct fixture *f = *state;
    struct record release = {0}, broken = {0};
    evlock_client *client = client_new(f, NULL, NULL);
    evlock *lock = held(f, "a", NULL);
    server_do(f->server, "SET a stranger");
    assert_status(evlock_release(lock, record_end, &release), EVLOCK_OK);
    assert_status(evlock_break(lock, record_end, &broken), EVLOCK_OK);
    await_close(f, client);
    lock_free(f, lock);
    run_for(f, 20);
    assert_ended(&release, EVLOCK_ENOTOWNED);
    assert_int_equal(broken.count, 1);
}

static void worker_may_delete_nothing(struct fixture *f, const char *nor) {
    char command[200];
    snprintf(command, sizeof(command), "ACL SETUSER worker on >work ~* +@all %s %s", deleting_rights(f->server), nor);
    server_do(f->server, command);
}

static void a_close_does_not_hide_a_forbidden_release(void **state) {
    struct fixture *f = *state;
    evlock_options forever = with_ttl(EVLOCK_NO_EXPIRY);
    worker_may_delete_nothing(f, "");
    evlock_client *client = worker_new(f, NULL, client_options(f));
    held(f, "a", &forever);
    assert_int_not_equal(await_close(f, client), EVLOCK_OK);
    assert_true(key_exists(f->server, "a"));
}

/* What a lease that has ended left to its ttl is left there when the client closes, unless that ttl is over by then. */
static void a_close_does_not_hide_an_earlier_forbidden_release(void **state) {
    struct fixture *f = *state;
    evlock_options brief = with_ttl(300), forever = with_ttl(EVLOCK_NO_EXPIRY);
    worker_may_delete_nothing(f, "");
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "b" : "a";
        evlock_client *client = worker_new(f, NULL, client_options(f));
        evlock *lock = lock_new_on(f, client, name, i ? &brief : &forever);
        assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
        assert_status(await_release(f, lock), EVLOCK_EPERM);
        if (i)
            run_for(f, 2 * brief.ttl_ms);
        assert_int_equal(key_exists(f->server, name), i == 0);
        assert_status(await_close(f, client), i ? EVLOCK_OK : EVLOCK_EUNREACHABLE);
    }
}

/* --- Losses ------------------------------------------------------------------------------------------------------- */

static void a_hash_in_the_locks_place_is_a_loss_at_the_next_renewal(void **state) {
    struct fixture *f = *state;
    struct record lost = {0};
    evlock_options options = watched(600000, &lost);
    options.auto_renewal = true;
    options.renewal_interval_ms = 100;
    client_new(f, NULL, NULL);
    evlock *lock = held(f, "a", &options);
    server_do(f->server, "DEL a");
    server_do(f->server, "HSET a stranger 1");
    await(f, lost.count);
    assert_int_equal(lost.status, EVLOCK_ENOTOWNED);
    assert_false(evlock_is_held(lock));
}

static void a_hash_in_the_locks_place_is_not_owned_to_an_extension(void **state) {
    struct fixture *f = *state;
    struct record lost = {0};
    evlock_options options = watched(600000, &lost);
    client_new(f, NULL, NULL);
    evlock *lock = held(f, "a", &options);
    server_do(f->server, "DEL a");
    server_do(f->server, "HSET a stranger 1");
    assert_status(await_extend(f, lock, 1000, EVLOCK_EXTEND_ADD), EVLOCK_ENOTOWNED);
    assert_int_equal(lost.count, 1);
    assert_int_equal(lost.status, EVLOCK_ENOTOWNED);
    assert_false(evlock_is_held(lock));
}

/* Acquires the other lock, which the same turn lost. */
static void acquire_the_other(struct record *record) {
    evlock_acquire(record->then_arg, NULL, NULL, NULL);
}

static void an_acquire_inside_a_loss_does_not_silence_another_loss(void **state) {
    struct fixture *f = *state;
    struct record lost[2] = {{.then = acquire_the_other}, {.then = acquire_the_other}};
    evlock_options options[2] = {watched(1000, &lost[0]), watched(1000, &lost[1])};
    client_new(f, NULL, NULL);
    lost[1].then_arg = held(f, "a", &options[0]);
    lost[0].then_arg = held(f, "b", &options[1]);
    usleep(1200 * 1000);
    server_do(f->server, "SET a stranger"); /* what is acquired now is not granted, nor lost again */
    server_do(f->server, "SET b stranger");
    await(f, lost[0].count || lost[1].count);
    run_for(f, 100);
    assert_int_equal(lost[0].count, 1);
    assert_int_equal(lost[1].count, 1);
}

/* What is acquired inside a loss, with a handle whose own loss is due as well. */
struct again {
    evlock *other;
    struct record acquired;
};

static void acquire_again(struct record *record) {
    struct again *again = record->then_arg;
    evlock_acquire(again->other, NULL, record_end, &again->acquired);
}

static void a_loss_is_told_before_the_end_of_the_next_acquire(void **state) {
    struct fixture *f = *state;
    struct again again[2] = {0};
    struct record lost[2] = {{.then = acquire_again, .then_arg = &again[0]},
                             {.then = acquire_again, .then_arg = &again[1]}};
    evlock_options options[2] = {watched(1000, &lost[0]), watched(1000, &lost[1])};
    client_new(f, NULL, NULL);
    again[1].other = held(f, "a", &options[0]);
    again[0].other = held(f, "b", &options[1]);
    usleep(1200 * 1000);
    await(f, again[0].acquired.count && again[1].acquired.count);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(lost[i].count, 1);
        assert_ended(&again[1 - i].acquired, EVLOCK_OK);
        assert_true(lost[i].order < again[1 - i].acquired.order);
    }
}

/* Of two that are lost in one turn: inside the first loss the other has its tenure taken away, and all is closed. */
struct closer {
    struct fixture *f;
    evlock *other;
    struct record closed;
};

static void close_inside_a_loss(struct record *record) {
    struct closer *closer = record->then_arg;
    evlock_acquire(closer->other, NULL, NULL, NULL);
    evlock_cancel(closer->other);
    if (evlock_client_close(closer->f->client, record_closed, &closer->closed) == EVLOCK_OK)
        client_forget(closer->f, closer->f->client);
}

static void no_loss_is_told_after_a_close(void **state) {
    struct fixture *f = *state;
    struct closer closer[2] = {{.f = f}, {.f = f}};
    struct record lost[2] = {{.then = close_inside_a_loss, .then_arg = &closer[0]},
                             {.then = close_inside_a_loss, .then_arg = &closer[1]}};
    evlock_options options[2] = {watched(1000, &lost[0]), watched(1000, &lost[1])};
    client_new(f, NULL, NULL);
    closer[1].other = held(f, "a", &options[0]);
    closer[0].other = held(f, "b", &options[1]);
    usleep(1200 * 1000);
    await(f, closer[0].closed.count || closer[1].closed.count);
    assert_int_equal(lost[0].count + lost[1].count, 1);
}

/* --- Renewals and extensions -------------------------------------------------------------------------------------- */

static void a_refused_shortening_leaves_the_deadline(void **state) {
    struct fixture *f = *state;
    struct record lost = {0};
    evlock_options options = watched(600000, &lost);
    server_do(f->server, "ACL SETUSER worker on >work ~* +@all -pexpire");
    worker_new(f, NULL, client_options(f));
    evlock *lock = held(f, "a", &options);
    int64_t before = deadline_of(lock);
    assert_status(await_extend(f, lock, 500, EVLOCK_EXTEND_REPLACE), EVLOCK_EPERM);
    run_for(f, 600);
    assert_int_equal(lost.count, 0);
    assert_true(evlock_is_held(lock));
    assert_true(llabs(deadline_of(lock) - before) < 1000 * 1000);
}

/* The replacement waits behind a question, and counts from when it is sent, answered or not. */
static void a_shortening_that_was_held_back_moves_the_loss_in(void **state) {
    struct fixture *f = *state;
    struct record lost = {0}, acquire = {0}, question = {0}, extend = {0};
    evlock_client_options options = client_options(f);
    evlock_options lasting = watched(600 * 1000, &lost);
    options.max_inflight = 1;
    options.command_timeout_ms = 600 * 1000;
    relay_start(&f->relay, f->server);
    client_new(f, f->relay.url, &options);
    evlock *lock = lock_new(f, "a", &lasting);
    assert_status(evlock_acquire(lock, NULL, record_end, &acquire), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && acquire.count);
    assert_ended(&acquire, EVLOCK_OK);

    assert_status(evlock_query(lock, EVLOCK_QUERY_LOCKED, record_answer, &question), EVLOCK_OK);
    assert_status(evlock_extend(lock, 500, EVLOCK_EXTEND_REPLACE, record_end, &extend), EVLOCK_OK);
    assert_true(evlock_remaining_ms(lock) > 500);
    await(f, question.count || !relay_pump(&f->relay));
    f->relay.pairs[0].muted = true; /* before anything of the extension has gone through */
    await(f, relay_pump(&f->relay) && lost.count);
    assert_int_equal(lost.status, EVLOCK_EEXPIRED);
    assert_ended(&extend, EVLOCK_ELOST);
}

/* The renewal falls due while an extension waits for a server that is away, and after that its interval is longer than
 * what is left of the lease. */
static void an_extension_that_ran_out_of_time_does_not_starve_the_renewal(void **state) {
    struct fixture *f = *state;
    struct record lost = {0}, acquire = {0}, extend = {0};
    evlock_client_options options = impatient(f);
    evlock_options renewed = watched(9000, &lost);
    options.command_timeout_ms = 5500;
    renewed.auto_renewal = true;
    renewed.renewal_interval_ms = 5000;
    relay_start(&f->relay, f->server);
    client_new(f, f->relay.url, &options);
    evlock *lock = lock_new(f, "a", &renewed);
    assert_status(evlock_acquire(lock, NULL, record_end, &acquire), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && acquire.count);
    assert_ended(&acquire, EVLOCK_OK);

    relay_stop(&f->relay);
    await(f, evlock_client_connection(f->client) == EVLOCK_AWAY);
    assert_status(evlock_extend(lock, 100, EVLOCK_EXTEND_ADD, record_end, &extend), EVLOCK_OK);
    await(f, extend.count);
    assert_ended(&extend, EVLOCK_EUNREACHABLE);
    relay_start(&f->relay, f->server);
    await(f, relay_pump(&f->relay) && (lost.count || evlock_remaining_ms(lock) > 7000));
    assert_int_equal(lost.count, 0);
}

/* Neither finds its script. By how many round trips the answer comes, not by the clock, is seen that no pause was made.
 */
static void a_release_behind_a_renewal_finds_its_script_again(void **state) {
    struct fixture *f = *state;
    struct record release = {0};
    evlock_options options = {.size = sizeof(evlock_options)};
    int trips = 0;
    options.auto_renewal = true;
    options.renewal_interval_ms = 200;
    options.wait = EVLOCK_WAIT_QUEUE;
    client_new(f, NULL, NULL);
    evlock *lock = held(f, "a", &options), *other = lock_new(f, "b", NULL);
    renew_by_script(lock);
    server_do(f->server, "CONFIG RESETSTAT");
    server_do(f->server, "SCRIPT FLUSH");
    server_pause(f->server);
    run_for(f, 400);
    assert_status(evlock_release(lock, record_end, &release), EVLOCK_OK);
    run_for(f, 20);
    server_resume(f->server);
    for (; !release.count; trips++)
        assert_status(await_query(f, other, EVLOCK_QUERY_LOCKED), EVLOCK_OK);
    assert_ended(&release, EVLOCK_OK);
    assert_true(trips < 10);
    assert_int_equal(server_calls(f->server, "evalsha"), 3); /* the renewal, the release, and the release again */
    assert_null(strstr(f->log, "keeps losing"));
}

/* --- Lost answers ------------------------------------------------------------------------------------------------- */

/* Keeps back what is answered to the second script, the end of the break. */
static int scripts_seen;

static void mute_from_second_script(struct relay *relay, char *bytes, size_t len, bool to_server) {
    if (to_server && memmem(bytes, len, "EVALSHA", 7) && scripts_seen++ > 0)
        relay->pairs[0].muted = true;
}

/* So that the server does not know the script that a command is of: once, and not what each login asks for. */
static void ask_for_no_script(struct relay *relay, char *bytes, size_t len, bool to_server) {
    static const char before[] = "EVALSHA\r\n$40\r\n";
    char *at = to_server ? memmem(bytes, len, before, strlen(before)) : NULL;
    if (!at || at + strlen(before) + 40 > bytes + len || memcmp(at + strlen(before), "00000000", 8) == 0)
        return;
    memset(at + strlen(before), '0', 40);
    relay->edit = NULL;
}

/* Its key may be another client's, since the server has done the break. */
static void nothing_is_passed_on_while_a_break_is_unanswered(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(60000);
    struct record first = {0}, second = {0}, broken = {0}, released = {0};
    options.max_passes = 10;
    relay_start(&f->relay, f->server);
    client_new(f, f->relay.url, NULL);
    evlock *lock = lock_new(f, "a", &options), *heir = lock_new(f, "a", &options);
    await(f, relay_pump(&f->relay) && evlock_client_connection(f->client) == EVLOCK_CONNECTED);
    scripts_seen = 0;
    f->relay.edit = mute_from_second_script;
    assert_status(evlock_acquire(lock, NULL, record_end, &first), EVLOCK_OK);
    assert_status(evlock_acquire(heir, NULL, record_end, &second), EVLOCK_OK);
    assert_status(evlock_break(lock, record_end, &broken), EVLOCK_OK); /* finds what is not held yet */
    await(f, relay_pump(&f->relay) && first.count && f->relay.pairs[0].muted && !key_exists(f->server, "a"));
    server_do(f->server, "SET a stranger PX 60000");
    assert_status(evlock_release(lock, record_end, &released), EVLOCK_OK);
    f->relay.edit = NULL;
    f->relay.pairs[0].muted = false;
    await(f, relay_pump(&f->relay) && broken.count && released.count);
    assert_ended(&broken, EVLOCK_OK);
    assert_ended(&released, EVLOCK_ENOTOWNED);
    assert_int_equal(second.count, 0);
}

/* The heir's lease would be the one that the break ends. */
static void nothing_is_passed_on_in_the_turn_of_a_break(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(60000);
    struct record first = {0}, second = {0}, broken = {0}, released = {0};
    options.max_passes = 10;
    client_new(f, NULL, NULL);
    evlock *lock = lock_new(f, "a", &options), *heir = lock_new(f, "a", &options);
    assert_status(evlock_acquire(lock, NULL, record_end, &first), EVLOCK_OK);
    assert_status(evlock_acquire(heir, NULL, record_end, &second), EVLOCK_OK);
    await(f, first.count);
    assert_status(evlock_break(lock, record_end, &broken), EVLOCK_OK);
    assert_status(evlock_release(lock, record_end, &released), EVLOCK_OK);
    await(f, broken.count && released.count && second.count);
    assert_ended(&second, EVLOCK_OK);
    assert_true(key_exists(f->server, "a"));
}

/* The first break ran; the second finds nothing, and can only have been the first's work. */
static void break_with_a_lost_answer(struct fixture *f,
                                     void (*then)(struct relay *relay, char *bytes, size_t len, bool to_server)) {
    struct record broken = {0};
    relay_start(&f->relay, f->server);
    client_new(f, f->relay.url, NULL);
    evlock *lock = lock_new(f, "a", NULL);
    server_do(f->server, "SET a stranger");
    await(f, relay_pump(&f->relay) && evlock_client_connection(f->client) == EVLOCK_CONNECTED);
    scripts_seen = 0;
    f->relay.edit = mute_from_second_script;
    assert_status(evlock_break(lock, record_end, &broken), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && !key_exists(f->server, "a"));
    assert_int_equal(broken.count, 0);
    relay_stop(&f->relay); /* with the answer */
    relay_start(&f->relay, f->server);
    f->relay.edit = then;
    await(f, relay_pump(&f->relay) && broken.count);
    assert_ended(&broken, EVLOCK_OK);
}

static void a_break_whose_answer_was_lost_was_done(void **state) {
    struct fixture *f = *state;
    break_with_a_lost_answer(f, NULL);
    assert_int_equal(server_calls(f->server, "evalsha"), 2 + 3); /* each login asks for a script, too */
}

/* That the server has lost its scripts meanwhile says nothing of the first. */
static void a_break_whose_answer_was_lost_was_done_before_the_scripts_were(void **state) {
    struct fixture *f = *state;
    break_with_a_lost_answer(f, ask_for_no_script);
    assert_null(f->relay.edit);
}

/* --- Runs --------------------------------------------------------------------------------------------------------- */

/* A run, and its end. */
struct run {
    bool entered;
    struct record done;
};

static int enter_body(evlock *lock, void *arg) {
    (void)lock;
    ((struct run *)arg)->entered = true;
    return EVLOCK_OK;
}

static void run_done(int status, bool ran, void *arg) {
    record_run(status, ran, &((struct run *)arg)->done);
}

/* Begins a run and waits for its body. */
static void enter(struct fixture *f, evlock *lock, struct run *run) {
    assert_status(evlock_with(lock, enter_body, run_done, run), EVLOCK_OK);
    await(f, run->entered);
}

static void a_run_that_lost_its_lease_says_so_without_a_server(void **state) {
    struct fixture *f = *state;
    struct record lost = {0};
    struct run run = {0};
    evlock_client_options options = impatient(f);
    evlock_options brief = watched(1000, &lost);
    client_new(f, NULL, &options);
    evlock *lock = lock_new(f, "a", &brief);
    enter(f, lock, &run);
    server_kill9(f->server);
    await(f, lost.count);
    assert_status(evlock_release(lock, NULL, NULL), EVLOCK_OK);
    await(f, run.done.count);
    assert_ended(&run.done, EVLOCK_ELOST);
    assert_int_equal(run.done.value, 1);
}

static void a_run_that_lost_its_lease_says_so_where_releases_are_forbidden(void **state) {
    struct fixture *f = *state;
    struct record lost = {0};
    struct run run = {0};
    evlock_options brief = watched(1000, &lost);
    worker_may_delete_nothing(f, "-pexpire");
    worker_new(f, NULL, client_options(f));
    evlock *lock = lock_new(f, "a", &brief);
    enter(f, lock, &run);
    await(f, lost.count);
    assert_status(evlock_release(lock, NULL, NULL), EVLOCK_OK);
    await(f, run.done.count);
    assert_ended(&run.done, EVLOCK_ELOST);
    assert_int_equal(run.done.value, 1);
}

static bool out_of_memory;

static void *resize(void *block, size_t size) {
    return out_of_memory ? NULL : realloc(block, size);
}

/* Where the release is to be reported by itself, it needs memory, and the body goes on. */
static void a_body_ends_without_memory(void **state) {
    struct fixture *f = *state;
    struct run run = {0};
    struct record released = {0};
    evlock_options renewed = with_ttl(2000);
    renewed.auto_renewal = true;
    assert_status(evlock_set_allocator(resize, free), EVLOCK_OK); /* what realloc gave fits either */
    client_new(f, NULL, NULL);
    evlock *lock = lock_new(f, "a", &renewed);
    enter(f, lock, &run);
    out_of_memory = true;
    assert_status(evlock_release(lock, record_end, &released), EVLOCK_ENOMEM);
    assert_true(evlock_is_held(lock));
    assert_status(evlock_release(lock, NULL, NULL), EVLOCK_OK);
    out_of_memory = false;
    assert_false(evlock_is_held(lock));
    await(f, run.done.count);
    assert_ended(&run.done, EVLOCK_OK);
    assert_int_equal(run.done.value, 1);
    assert_false(key_exists(f->server, "a"));
    assert_status(evlock_set_allocator(NULL, NULL), EVLOCK_OK);
    assert_int_equal(released.count, 0);
}

/* --- Connecting --------------------------------------------------------------------------------------------------- */

static const char *const hole_address = "127.0.0.9";

/* An address at which nothing answers: a listener of ours whose queue is full. -1 when this system has none. */
static int dig_hole(int port, int fillers[3]) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int hole = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    inet_pton(AF_INET, hole_address, &address.sin_addr);
    if (bind(hole, (struct sockaddr *)&address, sizeof(address)) || listen(hole, 0)) {
        close(hole);
        return -1;
    }
    for (int i = 0; i < 3; i++) {
        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (connect(fillers[i], (struct sockaddr *)&address, sizeof(address)) && errno != EINPROGRESS)
            fail_msg("the hole: %s", strerror(errno));
    }
    usleep(100 * 1000);
    return hole;
}

static void fill_hole(int hole, const int fillers[3]) {
    if (hole < 0)
        return;
    for (int i = 0; i < 3; i++)
        close(fillers[i]);
    close(hole);
}

/* A resolver that knows one answer. */
static struct {
    const evlock_loop_ops *loop; /* the real ones */
    const char *addresses[2];
    size_t count;
    void *timer;
    evlock_resolve_cb cb;
    void *arg;
} resolver;

static void answer_known(void *arg) {
    (void)arg;
    resolver.loop->timer_free(resolver.timer);
    resolver.cb(resolver.addresses, resolver.count, NULL, resolver.arg);
}

static void *resolve_known(void *data, const char *host, evlock_resolve_cb cb, void *arg) {
    (void)host;
    resolver.cb = cb;
    resolver.arg = arg;
    resolver.timer = resolver.loop->timer_new(data, answer_known, NULL);
    resolver.loop->timer_set(resolver.timer, 0);
    return &resolver;
}

static void cancel_known(void *resolution) {
    (void)resolution;
    resolver.loop->timer_free(resolver.timer);
}

/* A client of a server that has these addresses; NULL for the second: one alone. Each is given so long. */
static evlock_client *client_of_addresses(struct fixture *f, const char *first, const char *second, int each_ms) {
    static evlock_loop_ops ops; /* outlives the client, also where the test fails */
    evlock_client_options options = client_options(f);
    evlock_loop loop = *loop_for_evlock(f->loop);
    evlock_client *client = NULL;
    char url[64];
    resolver.loop = loop.ops;
    resolver.addresses[0] = first;
    resolver.addresses[1] = second;
    resolver.count = second ? 2 : 1;
    ops = *loop.ops;
    ops.resolve = resolve_known;
    ops.resolve_cancel = cancel_known;
    loop.ops = &ops;
    options.connect_timeout_ms = each_ms * (int)resolver.count;
    options.tls_name = f->server->tls ? "localhost" : NULL;
    snprintf(url, sizeof(url), "%s://two.example:%d", server_scheme(), f->server->port);
    assert_status(evlock_client_new(&client, &loop, url, &options), EVLOCK_OK);
    f->clients[f->clients_len++] = client;
    return client;
}

static void a_silent_address_leaves_time_for_the_next(void **state) {
    struct fixture *f = *state;
    int fillers[3];
    int hole = dig_hole(f->server->port, fillers);
    if (hole < 0)
        skip();
    evlock_client *client = client_of_addresses(f, hole_address, "127.0.0.1", 2000);
    await_connected(f, client);
    assert_int_equal(f->connection_states[EVLOCK_AWAY], 0); /* it was within the first connect_timeout */
    client_free(f, client);
    fill_hole(hole, fillers);
}

/* Why a client is away whose server accepts connections and is silent. */
static const char *words_of_addresses(struct fixture *f, const char *second) {
    f->away = (struct record){0};
    evlock_client *client = client_of_addresses(f, "127.0.0.1", second, 300);
    await(f, f->away.count);
    client_free(f, client);
    assert_status(f->away.status, EVLOCK_EUNREACHABLE);
    return f->away.error;
}

/* Whether the others refuse, are silent, or cannot be tried at all. */
static void the_words_are_those_of_the_address_that_was_connected_to(void **state) {
    const char *const others[] = {"127.0.0.2", "255.255.255.255", hole_address};
    struct fixture *f = *state;
    char alone[256];
    int fillers[3];
    int hole = dig_hole(f->server->port, fillers);
    server_pause(f->server);
    snprintf(alone, sizeof(alone), "%s", words_of_addresses(f, NULL));
    assert_non_null(
        strstr(alone, f->server->tls ? "no TLS handshake within 300 ms" : "no answer to the login within 300 ms"));
    for (int i = 0; i < (hole < 0 ? 2 : 3); i++)
        assert_string_equal(words_of_addresses(f, others[i]), alone);
    server_resume(f->server);
    fill_hole(hole, fillers);
}

/* --- The log ------------------------------------------------------------------------------------------------------ */

static void note_newline(enum evlock_log_level level, const char *line, void *arg) {
    int *lines = arg; /* how many, and how many of them are more than one */
    (void)level;
    lines[0]++;
    lines[1] += strpbrk(line, "\r\n") != NULL;
}

static void a_label_with_a_newline_stays_one_line(void **state) {
    struct fixture *f = *state;
    int lines[2] = {0};
    evlock_client_options options = client_options(f);
    evlock_options labelled = {.size = sizeof(evlock_options)};
    options.on_connection = NULL;
    options.on_log = note_newline;
    options.arg = lines;
    labelled.label = "two\r\nlines";
    client_new(f, NULL, &options);
    evlock *lock = held(f, "a", &labelled);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_true(lines[0] > 0);
    assert_int_equal(lines[1], 0);
}

static void an_idle_connections_end_is_no_warning(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = client_options(f);
    options.log_level = EVLOCK_LOG_WARN;
    client_new(f, NULL, &options);
    assert_status(await_release(f, held(f, "a", NULL)), EVLOCK_OK);
    server_do(f->server, "CONFIG SET timeout 1");
    await(f, f->connection_states[EVLOCK_CONNECTED] >= 2);
    if (f->log)
        fail_msg("logged: %s", f->log);
}

/* --- Delivery ----------------------------------------------------------------------------------------------------- */

enum { MANY = 1000 };

/* A question that is answered without the server, and asked again from its callback. */
struct asker {
    evlock *lock; /* holds nothing */
    struct record told;
    int limit; /* of told.count, so that a loop without end ends */
};

static void ask(struct record *record) {
    struct asker *asker = record->then_arg;
    if (record->count < asker->limit)
        evlock_query(asker->lock, EVLOCK_QUERY_OWNED, record_answer, record);
}

/* Begins to ask, and takes so long that the other lease, granted and not yet told, is over. */
static void ask_and_dawdle(struct record *record) {
    ask(&((struct asker *)record->then_arg)->told);
    usleep(1200 * 1000);
}

static void a_user_who_always_asks_again_does_not_hold_up_the_loop(void **state) {
    struct fixture *f = *state;
    struct asker asker = {.told = {.then = ask, .then_arg = &asker}};
    struct record first = {.then = ask_and_dawdle, .then_arg = &asker}, last = {0};
    evlock_options brief = with_ttl(1000);
    int most = 0;
    client_new(f, NULL, NULL);
    await_connected(f, f->client);
    asker.lock = lock_new(f, "asked", NULL);
    evlock *one = lock_new(f, "a", NULL), *two = lock_new(f, "b", &brief);
    server_pause(f->server); /* so that both grants come at once */
    assert_status(evlock_acquire(one, NULL, record_end, &first), EVLOCK_OK);
    assert_status(evlock_acquire(two, NULL, record_end, &last), EVLOCK_OK);
    run_for(f, 50);
    server_resume(f->server);
    for (int turns = 0; turns < 20 || !last.count; turns++) {
        int before = asker.told.count;
        asker.limit = before + MANY;
        loop_turn(f->loop);
        most = asker.told.count - before > most ? asker.told.count - before : most;
    }
    asker.limit = 0;
    run_for(f, 20);
    assert_true(most > 0);
    assert_true(most < MANY / 10);
}

/* More is released at once than is sent at once, and all had been renewed, some of them together. What was sent has
 * been written when the next call comes, so there is room again, and the server has answered nothing. */
static void a_call_comes_behind_those_that_wait_to_be_sent(void **state) {
    enum { LOCKS = 250, NAME_LEN = 500 };
    struct fixture *f = *state;
    struct record again = {0};
    evlock_acquire_options once = {.size = sizeof(evlock_acquire_options)};
    evlock_options options = with_ttl(WAIT_MS);
    evlock_stats stats = {0};
    evlock *locks[LOCKS];
    char name[NAME_LEN + 1];
    once.max_attempts = EVLOCK_TRY;
    options.auto_renewal = true;
    options.renewal_interval_ms = 1000;
    client_new(f, NULL, NULL);
    for (int i = 0; i < LOCKS; i++) {
        snprintf(name, sizeof(name), "%0*d", NAME_LEN, i);
        locks[i] = held(f, name, &options);
    }
    await(f, evlock_client_stats(f->client, &stats, sizeof(stats)) == EVLOCK_OK && stats.renewals >= LOCKS);
    evlock *last = lock_new(f, name, NULL);
    server_pause(f->server);
    for (int i = 0; i < LOCKS; i++)
        assert_status(evlock_release(locks[i], NULL, NULL), EVLOCK_OK);
    run_for(f, 20);
    assert_status(evlock_acquire(last, &once, record_end, &again), EVLOCK_OK);
    run_for(f, 20);
    server_resume(f->server);
    await(f, again.count);
    assert_ended(&again, EVLOCK_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CROSSING(a_late_release_does_not_make_two_holders),
        CROSSING(a_late_break_does_not_make_two_holders),
        CROSSING(a_late_break_of_the_longest_token_does_not_make_two_holders),
        CROSSING(an_unsettled_token_of_ones_own_does_not_wait_for_ever),
        CROSSING(a_token_that_is_being_removed_is_waited_for),
        CROSSING(a_token_that_cannot_be_removed_holds_up_no_other),
        CROSSING(a_lost_token_is_given_up_for_another),
        CROSSING(a_lost_token_can_be_adopted_by_the_handle_that_lost_it),
        CROSSING(a_lost_token_that_may_yet_be_cut_short_is_not_adopted),
        CROSSING(a_lost_token_whose_release_is_lost_is_not_adopted),
        CROSSING(a_foreign_lease_without_end_to_speak_of_can_be_adopted),
        CROSSING(an_addition_to_a_foreign_lease_without_end_is_exact),
        CROSSING(a_close_ends_a_query_behind_a_release),
        CROSSING(a_close_ends_a_break_behind_a_release),
        CROSSING(a_close_does_not_hide_a_forbidden_release),
        CROSSING(a_close_does_not_hide_an_earlier_forbidden_release),
        CROSSING(a_hash_in_the_locks_place_is_a_loss_at_the_next_renewal),
        CROSSING(a_hash_in_the_locks_place_is_not_owned_to_an_extension),
        CROSSING(an_acquire_inside_a_loss_does_not_silence_another_loss),
        CROSSING(no_loss_is_told_after_a_close),
        CROSSING(a_loss_is_told_before_the_end_of_the_next_acquire),
        CROSSING(a_refused_shortening_leaves_the_deadline),
        CROSSING(a_shortening_that_was_held_back_moves_the_loss_in),
        CROSSING(an_extension_that_ran_out_of_time_does_not_starve_the_renewal),
        CROSSING(a_release_behind_a_renewal_finds_its_script_again),
        CROSSING(nothing_is_passed_on_in_the_turn_of_a_break),
        CROSSING(nothing_is_passed_on_while_a_break_is_unanswered),
        CROSSING(a_break_whose_answer_was_lost_was_done),
        CROSSING(a_break_whose_answer_was_lost_was_done_before_the_scripts_were),
        CROSSING(a_run_that_lost_its_lease_says_so_without_a_server),
        CROSSING(a_run_that_lost_its_lease_says_so_where_releases_are_forbidden),
        CROSSING(a_body_ends_without_memory),
        CROSSING(a_silent_address_leaves_time_for_the_next),
        CROSSING(the_words_are_those_of_the_address_that_was_connected_to),
        CROSSING(a_label_with_a_newline_stays_one_line),
        CROSSING(an_idle_connections_end_is_no_warning),
        CROSSING(a_user_who_always_asks_again_does_not_hold_up_the_loop),
        CROSSING(a_call_comes_behind_those_that_wait_to_be_sent),
    };
    return run_suite("crossings", tests);
}
