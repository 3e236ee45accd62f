/*
 * Servers that are no cluster, or lie about it: what is said to users then, and that nothing goes round for ever. Each
 * test is named after the behaviour that it shows.
 */
#include "../redis/harness.h"
#include "liar.h"

#include <stdio.h>

static struct liar liar;

static int lies_teardown(void **state) {
    int left = fixture_teardown(state);
    liar_stop(&liar);
    return left;
}

#define LIES_TEST(function) cmocka_unit_test_setup_teardown(function, fixture_setup_bare, lies_teardown)

static evlock_client_options quick(struct fixture *f) {
    evlock_client_options options = plain_client_options(f);
    options.command_timeout_ms = 2000;
    return options;
}

static void begin(struct fixture *f, enum lie lie) {
    evlock_client_options options = quick(f);
    liar_start(&liar, lie);
    client_new(f, liar.url, &options);
}

/* Sent on five times in a row, and then refused for now. */
static void circles_end(struct fixture *f, enum lie lie, long least, long most) {
    begin(f, lie);
    await_connected(f, f->client);
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(await_try(f, lock), EVLOCK_EREFUSED);
    assert_says(f->ended.error, "circles");
    assert_int_in_range(liar_count(&liar), least, most);
    assert_false(evlock_is_held(lock));
}

static void who_is_sent_round_is_refused(void **state) {
    circles_end(*state, LIE_MOVED, 6, 6);
    assert_true(stats_of(((struct fixture *)*state)->client).redirects >= 6);
}

/* As after a move that not all have heard of. */
static void who_is_sent_round_for_a_moment_is_served(void **state) {
    struct fixture *f = *state;
    begin(f, LIE_SOON);
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(await_query(f, lock, EVLOCK_QUERY_LOCKED), EVLOCK_OK);
    assert_int_in_range(liar_count(&liar), 2, 6);
}

/* As far as the first time. */
static void who_was_sent_round_is_sent_on_again(void **state) {
    struct fixture *f = *state;
    begin(f, LIE_HELD);
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(await_try(f, lock), EVLOCK_OK);
    for (long times = 1; times <= 2; times++) {
        assert_status(await_extend(f, lock, 1000, EVLOCK_EXTEND_ADD), EVLOCK_EREFUSED);
        assert_says(f->ended.error, "circles");
        assert_int_equal(liar_count(&liar), 6 * times);
    }
}

static void who_is_to_ask_round_is_refused(void **state) {
    circles_end(*state, LIE_ASK, 6, 6);
}

static void who_is_sent_nowhere_else_is_refused(void **state) {
    circles_end(*state, LIE_SELF, 6, 6);
}

static void who_is_sent_to_strangers_is_refused(void **state) {
    circles_end(*state, LIE_STRANGER, 6, 6);
}

static void a_redirection_without_a_place_is_refused(void **state) {
    struct fixture *f = *state;
    begin(f, LIE_NONSENSE);
    assert_status(await_try(f, lock_new(f, "a", NULL)), EVLOCK_EUNSUPPORTED);
    assert_says(f->ended.error, "MOVED 99999 nowhere");
}

static void a_query_is_refused_too(void **state) {
    struct fixture *f = *state;
    begin(f, LIE_MOVED);
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(await_query(f, lock, EVLOCK_QUERY_LOCKED), EVLOCK_EREFUSED);
    assert_status(await_break(f, lock), EVLOCK_EREFUSED);
    assert_int_equal(liar_count(&liar), 12);
}

static void is_away(struct fixture *f, int status, const char *words) {
    await(f, f->away.count > 0);
    assert_status(f->away.status, status);
    assert_says(f->away.error, words);
    evlock_options options = {.size = sizeof(options), .fail_when_away = true};
    await_acquire(f, lock_new(f, "a", &options), NULL);
}

static void a_table_that_is_none_is_refused(void **state) {
    struct fixture *f = *state;
    begin(f, LIE_TABLE);
    is_away(f, EVLOCK_EPROTOCOL, "no table of a cluster");
}

static void a_plain_server_is_no_node(void **state) {
    struct fixture *f = *state;
    begin(f, LIE_PLAIN);
    is_away(f, EVLOCK_EUNSUPPORTED, "this is no node of a cluster");
}

/* It is asked again later, as any that is full. */
static void a_full_node_is_no_plain_server(void **state) {
    struct fixture *f = *state;
    begin(f, LIE_FULL);
    is_away(f, EVLOCK_EREFUSED, "max number of clients");
}

static void a_table_without_slots_is_no_use(void **state) {
    struct fixture *f = *state;
    begin(f, LIE_EMPTY);
    is_away(f, EVLOCK_EREFUSED, "knows of no slots");
}

/* Who was given addresses has no use for names, and the other way round. */
static void names_are_for_who_was_given_names(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = quick(f);
    char url[96];
    begin(f, LIE_NAME);
    assert_status(await_query(f, lock_new(f, "a", NULL), EVLOCK_QUERY_LOCKED), EVLOCK_OK);
    liar_stop(&liar);
    liar_start(&liar, LIE_ADDRESS);
    snprintf(url, sizeof(url), "redis+cluster://localhost:%d", liar.ports[0]);
    evlock *lock = lock_new_on(f, client_new(f, url, &options), "a", NULL);
    assert_status(await_query(f, lock, EVLOCK_QUERY_LOCKED), EVLOCK_OK);
}

/* Unless nobody is left who is of the cluster from before: then all are others now. */
static void a_table_of_another_cluster_is_refused(void **state) {
    struct fixture *f = *state;
    begin(f, LIE_OTHERS);
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(await_query(f, lock, EVLOCK_QUERY_LOCKED), EVLOCK_EREFUSED);
    assert_says(f->ended.error, "another cluster than before");
    assert_int_equal(liar_count(&liar), 0);
    await(f, await_query(f, lock, EVLOCK_QUERY_LOCKED) == EVLOCK_OK);
}

static void an_older_table_takes_no_slots_back(void **state) {
    struct fixture *f = *state;
    begin(f, LIE_OLDER);
    assert_status(await_query(f, lock_new(f, "a", NULL), EVLOCK_QUERY_LOCKED), EVLOCK_OK);
    assert_int_equal(liar_count_at(&liar, 0), 0);
    assert_int_equal(liar_count_at(&liar, 1), 1);
}

/* Only who has the slot, as far as is known, can say that it has it no more. */
static void who_has_not_the_slot_does_not_move_it(void **state) {
    struct fixture *f = *state;
    begin(f, LIE_CLAIM);
    assert_status(await_query(f, lock_new(f, "b", NULL), EVLOCK_QUERY_LOCKED), EVLOCK_OK); /* it is at the first */
    assert_int_equal(liar_count_at(&liar, 0), 1);
    assert_status(await_query(f, lock_new(f, "a", NULL), EVLOCK_QUERY_LOCKED), EVLOCK_OK);
    assert_int_equal(liar_count_at(&liar, 0), 2);
    assert_int_equal(liar_count_at(&liar, 1), 2);
}

/* An acquire is lost at the second master, for good, and its client closes then: that waits until what was lost would
 * have expired, and no longer than for ever. */
static void is_outlived(struct fixture *f) {
    evlock_options options = {.size = sizeof(options), .ttl_ms = 1000};
    struct record record = {0};
    evlock *lock = lock_new(f, "a", &options);
    evlock_client *client = f->client;
    int64_t begun = evlock_clock_us();
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    await(f, liar_count_at(&liar, 1) == 1);
    assert_status(evlock_cancel(lock), EVLOCK_OK);
    await(f, record.count == 1);
    while (f->locks_len > 0)
        lock_free(f, f->locks[f->locks_len - 1]);
    client_forget(f, client);
    assert_status(await_close(f, client), EVLOCK_OK);
    assert_true(evlock_clock_us() - begun >= options.ttl_ms * 1000);
}

static void begin_unhurried(struct fixture *f, enum lie lie) {
    evlock_client_options options = plain_client_options(f);
    options.command_timeout_ms = WAIT_MS / 2;
    liar_start(&liar, lie);
    client_new(f, liar.url, &options);
}

static void begin_at_the_first(struct fixture *f, enum lie lie) {
    begin_unhurried(f, lie);
    assert_status(await_query(f, lock_new(f, "b", NULL), EVLOCK_QUERY_LOCKED), EVLOCK_OK);
}

static void what_a_master_owed_that_left_is_over_at_last(void **state) {
    begin_at_the_first(*state, LIE_LEAVES);
    is_outlived(*state);
}

/* Its first login has nothing to settle. */
static void a_new_master_does_not_settle_for_another(void **state) {
    begin_unhurried(*state, LIE_LEAVES);
    is_outlived(*state);
}

/* What it lost itself is settled, since it is another process. */
static void who_loses_more_does_not_settle_for_both(void **state) {
    begin_at_the_first(*state, LIE_LOSES);
    is_outlived(*state);
}

/* Long before its answer would be late. */
static void a_silent_master_without_slots_is_left(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = plain_client_options(f);
    options.command_timeout_ms = 10 * WAIT_MS;
    liar_start(&liar, LIE_SILENCE);
    client_new(f, liar.url, &options);
    assert_status(await_query(f, lock_new(f, "a", NULL), EVLOCK_QUERY_LOCKED), EVLOCK_OK);
    assert_int_equal(liar_count_at(&liar, 1), 1);
    assert_int_equal(liar_count_at(&liar, 0), 1);
}

static void a_plain_server_is_no_cluster(void **state) {
    struct fixture *f = *state;
    char url[96];
    evlock_client_options options = client_options(f);
    snprintf(url, sizeof(url), "%s+cluster://127.0.0.1:%d", server_scheme(), f->server->port);
    client_new(f, url, &options);
    is_away(f, EVLOCK_EUNSUPPORTED, "redis://");
}

static void nobody_there_is_told(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = quick(f);
    client_new(f, "redis+cluster://127.0.0.1:1,127.0.0.1:2", &options);
    is_away(f, EVLOCK_EUNREACHABLE, "refused");
}

static void bad_urls_are_refused(void **state) {
    struct fixture *f = *state;
    static const char *const urls[] = {
        "redis+cluster://127.0.0.1:7000/1",
        "redis+cluster://",
        "redis+cluster://127.0.0.1:7000,",
        "redis+cluster://127.0.0.1:70000",
        "quorum:redis://127.0.0.1:7000 redis+cluster://127.0.0.1:7001 redis://127.0.0.1:7002",
    };
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        evlock_client_options options = quick(f);
        evlock_client *client = NULL;
        int status = evlock_client_new(&client, loop_for_evlock(f->loop), urls[i], &options);
        assert_status(status, EVLOCK_EURL);
        assert_null(client);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        LIES_TEST(who_is_sent_round_is_refused),
        LIES_TEST(who_is_sent_round_for_a_moment_is_served),
        LIES_TEST(who_was_sent_round_is_sent_on_again),
        LIES_TEST(who_is_to_ask_round_is_refused),
        LIES_TEST(who_is_sent_nowhere_else_is_refused),
        LIES_TEST(who_is_sent_to_strangers_is_refused),
        LIES_TEST(a_redirection_without_a_place_is_refused),
        LIES_TEST(a_query_is_refused_too),
        LIES_TEST(a_table_that_is_none_is_refused),
        LIES_TEST(a_plain_server_is_no_node),
        LIES_TEST(a_full_node_is_no_plain_server),
        LIES_TEST(a_table_without_slots_is_no_use),
        LIES_TEST(names_are_for_who_was_given_names),
        LIES_TEST(a_table_of_another_cluster_is_refused),
        LIES_TEST(an_older_table_takes_no_slots_back),
        LIES_TEST(who_has_not_the_slot_does_not_move_it),
        LIES_TEST(what_a_master_owed_that_left_is_over_at_last),
        LIES_TEST(a_new_master_does_not_settle_for_another),
        LIES_TEST(who_loses_more_does_not_settle_for_both),
        LIES_TEST(a_silent_master_without_slots_is_left),
        LIES_TEST(a_plain_server_is_no_cluster),
        LIES_TEST(nobody_there_is_told),
        LIES_TEST(bad_urls_are_refused),
    };
    return run_suite("cluster-lies", tests);
}
