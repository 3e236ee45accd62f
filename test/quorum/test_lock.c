/*
 * The lock on five healthy nodes: every call does on a majority what it does on one node, strangers on some nodes do
 * not disturb, and what is granted is what a majority keeps. Each test is named after the behaviour that it shows.
 */
#include "nodes.h"

#include <stdio.h>
#include <stdlib.h>

enum { TOKEN_SIZE = 128 };

static void remove_from(const char *key, size_t from, size_t to) {
    for (size_t i = from; i < to; i++)
        server_do(&nodes[i], "DEL %s", key);
}

/* --- Acquire and release ------------------------------------------------------------------------------------------ */

static void a_lock_is_its_token_on_all_nodes(void **state) {
    struct fixture *f = *state;
    evlock *lock = acquired(f, "a", NULL);
    await(f, nodes_with(lock) == NODES);
    assert_true(evlock_is_held(lock));
    assert_int_in_range(evlock_remaining_ms(lock), 1, LONG_TTL - LONG_TTL / 100 - 2);
    for (size_t i = 0; i < NODES; i++) {
        assert_int_in_range(key_ttl(&nodes[i], "a"), 1, LONG_TTL);
        assert_int_equal(server_integer(&nodes[i], "DBSIZE"), 1);
    }
    assert_deadline_is_backed(lock, NODES);
}

static void a_release_removes_it_from_all(void **state) {
    struct fixture *f = *state;
    evlock *lock = acquired(f, "a", NULL);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_false(evlock_is_held(lock));
    await(f, nodes_having("a") == 0);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_status(await_release(f, lock), EVLOCK_OK);
    await(f, nodes_having("a") == 0);
}

static void an_acquire_before_the_connections_are_up(void **state) {
    struct fixture *f = *state;
    quorum_client(f, NODES, NULL);
    evlock *lock = acquired(f, "a", NULL);
    await(f, nodes_with(lock) == NODES);
}

static void two_clients_exclude_each_other(void **state) {
    struct fixture *f = *state;
    struct record waiting = {0};
    evlock_options options = quick_options();
    evlock *first = acquired(f, "a", NULL);
    evlock *second = lock_new_on(f, quorum_client(f, NODES, NULL), "a", &options);
    assert_status(await_try(f, second), EVLOCK_EHELD);
    assert_status(evlock_acquire(second, NULL, record_end, &waiting), EVLOCK_OK);
    run_for(f, 200);
    assert_int_equal(waiting.count, 0);
    assert_status(await_release(f, first), EVLOCK_OK);
    await(f, waiting.count);
    assert_ended(&waiting, EVLOCK_OK);
    await(f, nodes_with(second) == NODES);
}

static void handles_of_one_client_exclude_each_other(void **state) {
    struct fixture *f = *state;
    evlock *first = acquired(f, "a", NULL);
    evlock *second = lock_new(f, "a", NULL);
    assert_status(await_try(f, second), EVLOCK_EHELD);
    assert_true(evlock_is_held(first));
    assert_int_equal(nodes_with(first), NODES);
}

static void many_handles_take_turns(void **state) {
    enum { HANDLES = 20 };
    struct fixture *f = *state;
    evlock_options options = quick_options();
    struct record records[HANDLES] = {0};
    evlock *locks[HANDLES];
    evlock_client *other = quorum_client(f, NODES, NULL);
    options.retry_delay_ms = 5;
    for (size_t i = 0; i < HANDLES; i++) {
        locks[i] = lock_new_on(f, i % 2 ? other : f->client, "a", &options);
        assert_status(evlock_acquire(locks[i], NULL, record_end, &records[i]), EVLOCK_OK);
    }
    for (size_t done = 0; done < HANDLES; done++) {
        size_t held = 0, holder = 0;
        while (held == 0) {
            loop_turn(f->loop);
            for (size_t i = 0; i < HANDLES; i++)
                if (evlock_is_held(locks[i])) {
                    held++;
                    holder = i;
                }
        }
        assert_int_equal(held, 1);
        assert_status(await_release(f, locks[holder]), EVLOCK_OK);
    }
    for (size_t i = 0; i < HANDLES; i++)
        assert_ended(&records[i], EVLOCK_OK);
    await(f, nodes_having("a") == 0);
}

static void the_callers_own_token_is_set_everywhere(void **state) {
    struct fixture *f = *state;
    evlock_acquire_options options = {.size = sizeof(evlock_acquire_options)};
    evlock *lock = lock_new(f, "a", NULL);
    options.token = "mine";
    options.token_len = 4;
    for (int round = 0; round < 2; round++) {
        assert_status(await_acquire(f, lock, &options), EVLOCK_OK);
        await(f, nodes_with(lock) == NODES);
        assert_true(key_is(&nodes[0], "a", "mine", 4));
        assert_status(await_release(f, lock), EVLOCK_OK);
        await(f, nodes_having("a") == 0);
    }
}

static void a_freed_handle_is_released_everywhere(void **state) {
    struct fixture *f = *state;
    lock_free(f, acquired(f, "a", NULL));
    await(f, nodes_having("a") == 0);
}

static void a_close_releases_everywhere(void **state) {
    struct fixture *f = *state;
    acquired(f, "a", NULL);
    acquired(f, "b", NULL);
    assert_status(await_close(f, f->client), EVLOCK_OK);
    assert_int_equal(nodes_having("a") + nodes_having("b"), 0);
}

/* A server that still has to answer may find the connection's end before it has read the release. */
static void a_freed_client_releases_what_it_can(void **state) {
    struct fixture *f = *state;
    acquired(f, "a", NULL);
    for (size_t i = 0; i < NODES; i++)
        await(f, node_info(f->client, i).agreed);
    client_free(f, f->client);
    await(f, nodes_having("a") == 0);
}

/* --- Cancel and give up ------------------------------------------------------------------------------------------- */

static void a_cancelled_acquire_leaves_nothing(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    loop_turn(f->loop);
    assert_status(evlock_cancel(lock), EVLOCK_OK);
    await(f, record.count);
    assert_ended(&record, EVLOCK_ECANCELLED);
    assert_false(evlock_is_held(lock));
    await(f, nodes_having("a") == 0);
    /* The handle is free, and nothing of the cancelled attempt ends the next lease. */
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    await(f, nodes_with(lock) == NODES);
    run_for(f, 100);
    assert_int_equal(nodes_with(lock), NODES);
}

static void a_wait_ends_at_its_timeout(void **state) {
    struct fixture *f = *state;
    evlock_acquire_options options = {.size = sizeof(evlock_acquire_options)};
    evlock *lock = lock_new(f, "a", NULL);
    foreign_hold("a", 0, NODES);
    options.max_wait_ms = 200;
    assert_status(await_acquire(f, lock, &options), EVLOCK_ETIMEDOUT);
    assert_string_not_equal(f->ended.error, "");
}

static void retries_are_counted_in_rounds(void **state) {
    struct fixture *f = *state;
    evlock_acquire_options options = {.size = sizeof(evlock_acquire_options)};
    evlock_options quick = quick_options();
    evlock *lock = lock_new(f, "a", &quick);
    foreign_hold("a", 0, NODES);
    options.max_attempts = 4;
    for (size_t i = 0; i < NODES; i++)
        server_do(&nodes[i], "CONFIG RESETSTAT");
    assert_status(await_acquire(f, lock, &options), EVLOCK_EHELD);
    for (size_t i = 0; i < NODES; i++)
        await(f, server_calls(&nodes[i], "set") == 4);
}

/* --- Holding ------------------------------------------------------------------------------------------------------ */

static void all_nodes_are_renewed(void **state) {
    struct fixture *f = *state;
    evlock_options options = renewed_options();
    evlock *lock = acquired(f, "a", &options);
    await(f, nodes_with(lock) == NODES);
    for (size_t i = 0; i < NODES; i++)
        server_do(&nodes[i], "PEXPIRE a %d", LONG_TTL / 3);
    for (size_t i = 0; i < NODES; i++)
        await(f, key_ttl(&nodes[i], "a") > LONG_TTL / 2);
    assert_true(evlock_is_held(lock));
    assert_deadline_is_backed(lock, NODES);
}

static void renewal_outlives_the_ttl(void **state) {
    struct fixture *f = *state;
    struct record lost = {0};
    evlock_options options = with_ttl(2000);
    options.auto_renewal = true;
    options.renewal_interval_ms = 100;
    options.on_lost = record_end;
    options.arg = &lost;
    evlock *lock = acquired(f, "a", &options);
    for (int i = 0; i < 10; i++) {
        run_for(f, 300);
        assert_true(evlock_is_held(lock));
        assert_deadline_is_backed(lock, NODES);
    }
    assert_int_equal(lost.count, 0);
    assert_status(await_release(f, lock), EVLOCK_OK);
}

static bool renewed_on(size_t count) {
    for (size_t i = 0; i < count; i++)
        if (key_ttl(&nodes[i], "a") <= LONG_TTL / 2)
            return false;
    return true;
}

/* By script in each way, beside what the test does. */
static void assert_by_script(size_t node, bool expected) {
    assert_true((server_calls(&nodes[node], "pexpire") > 1) == expected);
    assert_true((server_calls(&nodes[node], "del") > 0) == expected);
}

/* Of three nodes, one says that it has commands of its own, or all but one: each is renewed and released its way. */
static void nodes_of_two_versions_hold_together(void **state) {
    struct fixture *f = *state;
    bool refresh = server_refreshes(&nodes[1]), deletes = strcmp(deleting_rights(&nodes[1]), "-del") != 0;
    struct record acquired = {0}, released = {0};
    evlock_options options = renewed_options();
    relay_start(&f->relay, &nodes[0]);
    f->relay.edit = refresh ? say_older : say_newer;
    const char *urls[] = {f->relay.url, nodes[1].url, nodes[2].url};
    f->client = quorum_client_of(f, urls, 3, NULL);
    await(f, relay_pump(&f->relay) && nodes_counting(f->client) == 3);
    evlock *lock = lock_new(f, "a", &options);
    assert_status(evlock_acquire(lock, NULL, record_end, &acquired), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && acquired.count && nodes_having("a") == 3); /* the token is not shown */
    for (size_t i = 0; i < 3; i++) {
        server_do(&nodes[i], "CONFIG RESETSTAT");
        server_do(&nodes[i], "PEXPIRE a %d", LONG_TTL / 3);
    }
    await(f, relay_pump(&f->relay) && renewed_on(3));
    assert_deadline_is_backed(lock, 3);
    assert_status(evlock_release(lock, record_end, &released), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && released.count && !nodes_having("a"));
    assert_ended(&released, EVLOCK_OK);
    assert_by_script(0, true);
    if (refresh == deletes)
        assert_by_script(1, !refresh);
}

static void extensions_reach_all_nodes(void **state) {
    struct fixture *f = *state;
    evlock *lock = acquired(f, "a", NULL);
    await(f, nodes_with(lock) == NODES);
    assert_status(await_extend(f, lock, 19 * 1000, EVLOCK_EXTEND_ADD), EVLOCK_OK);
    assert_true(evlock_remaining_ms(lock) > LONG_TTL);
    for (size_t i = 0; i < NODES; i++)
        await(f, key_ttl(&nodes[i], "a") > LONG_TTL);
    assert_deadline_is_backed(lock, NODES);

    assert_status(await_extend(f, lock, 10 * 1000, EVLOCK_EXTEND_REPLACE), EVLOCK_OK);
    assert_true(evlock_remaining_ms(lock) <= 10 * 1000 - 102);
    for (size_t i = 0; i < NODES; i++)
        await(f, key_ttl(&nodes[i], "a") <= 10 * 1000);
    assert_deadline_is_backed(lock, NODES);

    assert_status(await_extend(f, lock, 0, EVLOCK_EXTEND_RESET), EVLOCK_OK);
    assert_true(evlock_remaining_ms(lock) > 10 * 1000);
    for (size_t i = 0; i < NODES; i++)
        await(f, key_ttl(&nodes[i], "a") > 10 * 1000);
    assert_deadline_is_backed(lock, NODES);
}

static void an_extension_needs_a_majority(void **state) {
    struct fixture *f = *state;
    evlock *lock = acquired(f, "a", NULL);
    await(f, nodes_with(lock) == NODES);
    remove_from("a", 0, 2);
    assert_status(await_extend(f, lock, LONG_TTL, EVLOCK_EXTEND_REPLACE), EVLOCK_OK);
    assert_true(evlock_is_held(lock));
    remove_from("a", 2, 3);
    assert_status(await_extend(f, lock, LONG_TTL, EVLOCK_EXTEND_REPLACE), EVLOCK_ENOTOWNED);
    assert_false(evlock_is_held(lock));
}

static void a_lease_that_a_majority_forgot_is_lost(void **state) {
    struct fixture *f = *state;
    struct record lost = {0};
    evlock *lock = renewed_everywhere(f, &lost);
    foreign_hold("b", 0, NODES);
    for (size_t i = 0; i < MAJORITY; i++)
        server_do(&nodes[i], "RENAME b a"); /* taken: a renewal cannot set it again */
    await(f, lost.count);
    assert_int_equal(lost.count, 1);
    assert_int_equal(lost.status, EVLOCK_ENOTOWNED);
    assert_string_not_equal(lost.error, "");
    assert_false(evlock_is_held(lock));
    assert_true(key_is(&nodes[0], "a", "stranger", 8));
}

/* --- Queries, break ----------------------------------------------------------------------------------------------- */

static void queries_ask_the_majority(void **state) {
    struct fixture *f = *state;
    evlock_client *other = quorum_client(f, NODES, NULL);
    evlock *lock = lock_new(f, "a", NULL);
    evlock *stranger = lock_new_on(f, other, "a", NULL);
    assert_false(ask_locked(f, lock));
    assert_false(ask_owned(f, lock));
    assert_int_equal(ask_ttl(f, lock), 0);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    await(f, nodes_with(lock) == NODES);
    for (size_t gone = 0; gone <= 2; gone++) {
        assert_true(ask_locked(f, lock));
        assert_true(ask_locked(f, stranger));
        assert_true(ask_owned(f, lock));
        assert_false(ask_owned(f, stranger));
        assert_int_in_range(ask_ttl(f, stranger), 1, LONG_TTL);
        remove_from("a", gone, gone + 1);
    }
    assert_false(ask_owned(f, lock));
}

/* No more than a majority has it. */
static void the_ttl_is_for_how_long_a_majority_keeps_it(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    for (int i = 0; i < MAJORITY; i++)
        server_do(&nodes[i], "SET a stranger PX %d", 1000000 * (1 + (i + 1) % MAJORITY));
    assert_int_in_range(ask_ttl(f, lock), 1, 1000000);
}

static void a_key_on_a_minority_is_no_lock(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    foreign_hold("a", 1, 3);
    assert_false(ask_locked(f, lock));
    assert_false(ask_owned(f, lock));
    assert_int_equal(ask_ttl(f, lock), 0);
}

/* Without a majority for one of two tokens, nobody has the lock, though most nodes have a key. */
static void two_minorities_are_no_holder(void **state) {
    static const unsigned together[] = {EVLOCK_QUERY_LOCKED | EVLOCK_QUERY_TTL, EVLOCK_QUERY_HOLDER | EVLOCK_QUERY_TTL};
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    for (int i = 0; i < 4; i++)
        server_do(&nodes[i], "SET a %s PX 600000", i < 2 ? "stranger" : "another");
    assert_int_in_range(ask_ttl(f, lock), 1, 600000);
    for (int i = 0; i < 20; i++) {
        assert_status(await_query(f, lock, together[i % 2]), EVLOCK_OK);
        assert_false(f->ended.answer.locked);
        assert_int_equal(f->ended.answer.ttl_ms, 0);
        assert_string_equal(f->ended.answer.holder, "");
    }
}

/* A longer ttl of another's token does not count. */
static void the_ttl_is_that_of_the_holder(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    for (int i = 0; i < NODES; i++)
        server_do(&nodes[i], "SET a %s PX %d", i < MAJORITY ? "stranger" : "another", (i + 1) * 1000000);
    for (int i = 0; i < 50; i++) {
        assert_status(await_query(f, lock, EVLOCK_QUERY_LOCKED | EVLOCK_QUERY_TTL), EVLOCK_OK);
        assert_true(f->ended.answer.locked);
        assert_int_in_range(f->ended.answer.ttl_ms, 1, 1000000);
    }
}

/* That on a minority is another's. */
static void the_holder_is_the_majoritys(void **state) {
    struct fixture *f = *state;
    evlock_options options = quick_options();
    options.holder = "host:1";
    foreign_hold("a", 0, NODES - MAJORITY);
    evlock *lock = acquired(f, "a", &options);
    await(f, nodes_with(lock) == MAJORITY);
    for (int i = 0; i < 20; i++)
        assert_string_equal(ask_holder(f, lock), "host:1");
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_string_equal(ask_holder(f, lock), "");
}

static void a_break_ends_it_everywhere(void **state) {
    struct fixture *f = *state;
    struct record lost = {0};
    evlock_options options = renewed_options();
    options.on_lost = record_end;
    options.arg = &lost;
    evlock *lock = acquired(f, "a", &options);
    evlock_client *other = quorum_client(f, NODES, NULL);
    evlock *breaker = lock_new_on(f, other, "a", NULL);
    await(f, nodes_with(lock) == NODES && nodes_counting(other) == NODES); /* all at once, before it is renewed */
    assert_status(await_break(f, breaker), EVLOCK_OK);
    await(f, lost.count);
    assert_int_equal(lost.status, EVLOCK_ENOTOWNED);
    await(f, nodes_having("a") == 0);
    assert_status(await_break(f, breaker), EVLOCK_ENOTHELD);
    assert_status(await_acquire(f, breaker, NULL), EVLOCK_OK);
}

/* --- Runs --------------------------------------------------------------------------------------------------------- */

struct run {
    bool held; /* in the body */
    struct record done;
};

static int run_body(evlock *lock, void *arg) {
    ((struct run *)arg)->held = evlock_is_held(lock);
    return evlock_release(lock, NULL, NULL);
}

static void run_done(int status, bool ran, void *arg) {
    record_run(status, ran, &((struct run *)arg)->done);
}

static void bodies_run_under_the_lock(void **state) {
    struct fixture *f = *state;
    struct run with = {0};
    struct run run = {0};
    assert_status(evlock_with(lock_new(f, "a", NULL), run_body, run_done, &with), EVLOCK_OK);
    await(f, with.done.count);
    assert_ended(&with.done, EVLOCK_OK);
    assert_true(with.held);
    assert_status(evlock_run(NULL, f->client, "a", EVLOCK_CSTRING, NULL, run_body, run_done, &run), EVLOCK_OK);
    await(f, run.done.count);
    assert_ended(&run.done, EVLOCK_OK);
    assert_true(run.held);
    await(f, nodes_having("a") == 0);
}

/* --- The token's way ---------------------------------------------------------------------------------------------- */

static void another_client_adopts(void **state) {
    struct fixture *f = *state;
    char token[TOKEN_SIZE];
    size_t len;
    evlock_options options = renewed_options();
    evlock *first = acquired(f, "a", NULL);
    evlock *second = lock_new_on(f, quorum_client(f, NODES, NULL), "a", &options);
    await(f, nodes_with(first) == NODES);
    assert_status(evlock_export(first, token, sizeof(token), &len), EVLOCK_OK);
    assert_false(evlock_is_held(first));
    remove_from("a", 3, 5); /* a majority is enough, and renewal sees to the rest */
    assert_status(await_adopt(f, second, token, len), EVLOCK_OK);
    assert_true(evlock_is_held(second));
    assert_deadline_is_backed(second, NODES);
    await(f, nodes_with(second) == NODES);
    assert_status(await_release(f, second), EVLOCK_OK);
    await(f, nodes_having("a") == 0);
}

static void a_token_on_a_minority_is_not_adopted(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    foreign_hold("a", 0, 2);
    assert_status(await_adopt(f, lock, "stranger", 8), EVLOCK_ENOTOWNED);
    assert_false(evlock_is_held(lock));
    assert_int_equal(nodes_having("a"), 2);
    foreign_hold("a", 2, 3);
    assert_status(await_adopt(f, lock, "stranger", 8), EVLOCK_OK);
    assert_true(evlock_is_held(lock));
}

/* --- Strangers on some of the nodes ------------------------------------------------------------------------------- */

static void a_stranger_on_a_minority_does_not_disturb(void **state) {
    struct fixture *f = *state;
    for (size_t strangers = 1; strangers <= 2; strangers++) {
        evlock_options options = renewed_options();
        foreign_hold("a", 0, strangers);
        evlock *lock = acquired(f, "a", &options);
        await(f, nodes_with(lock) == NODES - strangers);
        run_for(f, 200);
        assert_true(evlock_is_held(lock));
        assert_int_equal(nodes_with(lock), NODES - strangers);
        assert_deadline_is_backed(lock, NODES);
        /* When the stranger goes, renewal puts the lease there. */
        server_do(&nodes[0], "DEL a");
        await(f, nodes_with(lock) == NODES - strangers + 1);
        assert_status(await_release(f, lock), EVLOCK_OK);
        await(f, nodes_having("a") == strangers - 1);
        if (strangers == 2)
            assert_true(key_is(&nodes[1], "a", "stranger", 8));
    }
}

/* Has redis-py's own lock class do something with the lock "a" on that node; whether it says so. Skips the test where
 * there is no redis-py. */
static bool redis_py(const struct server *node, const char *method) {
    char command[512];
    char said[16] = "";
    snprintf(command, sizeof(command),
             "/usr/bin/python3 -c \"import redis; r = redis.Redis(unix_socket_path='%s'); "
             "l = r.lock('a', timeout=600, thread_local=False); l.local.token = b'py'; print(l.%s)\" 2>&1",
             node->socket, method);
    FILE *python = popen(command, "r");
    assert_non_null(python);
    while (fgets(said, sizeof(said), python))
        continue;
    pclose(python);
    return strcmp(said, "True\n") == 0 || strcmp(said, "None\n") == 0;
}

static void redis_py_on_one_node_does_not_disturb(void **state) {
    struct fixture *f = *state;
    evlock_options options = renewed_options();
    if (system("/usr/bin/python3 -c 'import redis' 2>/dev/null"))
        skip();
    assert_true(redis_py(&nodes[0], "acquire(blocking=False, token='py')"));
    evlock *lock = acquired(f, "a", &options);
    await(f, nodes_with(lock) == NODES - 1);
    assert_true(redis_py(&nodes[0], "extend(60)"));
    run_for(f, 200);
    assert_true(evlock_is_held(lock));
    assert_true(redis_py(&nodes[0], "release()"));
    await(f, nodes_with(lock) == NODES);
    assert_false(redis_py(&nodes[0], "acquire(blocking=False, token='py')"));
    assert_int_equal(nodes_with(lock), NODES);
    assert_status(await_release(f, lock), EVLOCK_OK);
    await(f, nodes_having("a") == 0);
}

static void a_stranger_on_a_majority_holds(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    foreign_hold("a", 1, 1 + MAJORITY);
    assert_status(await_try(f, lock), EVLOCK_EHELD);
    assert_false(evlock_is_held(lock));
    await(f, nodes_having("a") == MAJORITY);
    for (size_t i = 1; i < 1 + MAJORITY; i++)
        assert_true(key_is(&nodes[i], "a", "stranger", 8));
}

static void a_split_vote_resolves(void **state) {
    struct fixture *f = *state;
    struct record waiting = {0};
    evlock_options options = quick_options();
    evlock *lock = lock_new(f, "a", &options);
    for (size_t i = 0; i < 4; i++)
        server_do(&nodes[i], "SET a %s PX 500", i < 2 ? "one" : "other");
    assert_status(evlock_acquire(lock, NULL, record_end, &waiting), EVLOCK_OK);
    await(f, waiting.count);
    assert_ended(&waiting, EVLOCK_OK);
    assert_deadline_is_backed(lock, NODES);
}

static void something_else_under_the_name(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    for (size_t i = 0; i < 2; i++)
        server_do(&nodes[i], "RPUSH a x");
    assert_status(await_try(f, lock), EVLOCK_OK);
    assert_status(await_extend(f, lock, LONG_TTL, EVLOCK_EXTEND_REPLACE), EVLOCK_OK);
    assert_status(await_release(f, lock), EVLOCK_OK);
    await(f, nodes_having("a") == 2);
    server_do(&nodes[2], "RPUSH a x");
    assert_status(await_try(f, lock), EVLOCK_EHELD);
    await(f, nodes_having("a") == MAJORITY);
}

static void a_node_that_hangs_holds_up_no_break(void **state) {
    struct fixture *f = *state;
    evlock *holder = acquired(f, "a", NULL), *breaker = lock_new(f, "a", NULL);
    await(f, nodes_with(holder) == NODES);
    server_pause(&nodes[0]);
    int64_t begun = evlock_clock_us();
    int status = await_break(f, breaker);
    int64_t took = evlock_clock_us() - begun;
    server_resume(&nodes[0]);
    assert_status(status, EVLOCK_OK);
    assert_int_in_range(took, 0, 3 * 1000000);
    await(f, nodes_having("a") == 0);
}

/* What the others say is enough, also for that nobody holds it. */
static void a_node_that_hangs_holds_up_no_query(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock_client_options options = durable_options(f);
    options.command_timeout_ms = 10 * WAIT_MS;
    evlock_client *client = quorum_client(f, NODES, &options);
    await(f, nodes_counting(client) == NODES);
    evlock *lock = lock_new_on(f, client, "a", NULL);
    server_pause(&nodes[0]);
    assert_status(evlock_query(lock, EVLOCK_QUERY_LOCKED, record_answer, &record), EVLOCK_OK);
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    assert_false(record.answer.locked);
}

/* A node that hangs is still connected: nobody must wait for what it might say of a lock that is held elsewhere. */
static void a_node_that_hangs_holds_up_no_contender(void **state) {
    struct fixture *f = *state;
    evlock *holder = acquired(f, "a", NULL), *lock = lock_new(f, "a", NULL);
    await(f, nodes_with(holder) == NODES);
    server_pause(&nodes[0]);
    int64_t begun = evlock_clock_us();
    int status = await_try(f, lock);
    int64_t took = evlock_clock_us() - begun;
    server_resume(&nodes[0]);
    assert_status(status, EVLOCK_EHELD);
    assert_int_in_range(took, 0, 3 * 1000000);
}

static void a_stranger_who_breaks_in_on_one_node(void **state) {
    struct fixture *f = *state;
    evlock_options options = renewed_options();
    evlock *lock = acquired(f, "a", &options);
    await(f, nodes_with(lock) == NODES);
    server_do(&nodes[4], "SET a stranger PX 600000");
    run_for(f, 200);
    assert_true(evlock_is_held(lock));
    assert_true(key_is(&nodes[4], "a", "stranger", 8));
    assert_deadline_is_backed(lock, NODES);
    assert_status(await_release(f, lock), EVLOCK_OK);
    await(f, nodes_having("a") == 1);
    assert_true(key_is(&nodes[4], "a", "stranger", 8));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        QUORUM_TEST(a_lock_is_its_token_on_all_nodes),
        QUORUM_TEST(a_release_removes_it_from_all),
        QUORUM_TEST_BARE(an_acquire_before_the_connections_are_up),
        QUORUM_TEST(two_clients_exclude_each_other),
        QUORUM_TEST(handles_of_one_client_exclude_each_other),
        QUORUM_TEST(many_handles_take_turns),
        QUORUM_TEST(the_callers_own_token_is_set_everywhere),
        QUORUM_TEST(a_freed_handle_is_released_everywhere),
        QUORUM_TEST(a_close_releases_everywhere),
        QUORUM_TEST(a_freed_client_releases_what_it_can),
        QUORUM_TEST(a_cancelled_acquire_leaves_nothing),
        QUORUM_TEST(a_wait_ends_at_its_timeout),
        QUORUM_TEST(retries_are_counted_in_rounds),
        QUORUM_TEST(all_nodes_are_renewed),
        QUORUM_TEST(renewal_outlives_the_ttl),
        QUORUM_TEST_BARE(nodes_of_two_versions_hold_together),
        QUORUM_TEST(extensions_reach_all_nodes),
        QUORUM_TEST(an_extension_needs_a_majority),
        QUORUM_TEST(a_lease_that_a_majority_forgot_is_lost),
        QUORUM_TEST(queries_ask_the_majority),
        QUORUM_TEST(the_ttl_is_for_how_long_a_majority_keeps_it),
        QUORUM_TEST(a_key_on_a_minority_is_no_lock),
        QUORUM_TEST(two_minorities_are_no_holder),
        QUORUM_TEST(the_ttl_is_that_of_the_holder),
        QUORUM_TEST(the_holder_is_the_majoritys),
        QUORUM_TEST(a_break_ends_it_everywhere),
        QUORUM_TEST(bodies_run_under_the_lock),
        QUORUM_TEST(another_client_adopts),
        QUORUM_TEST(a_token_on_a_minority_is_not_adopted),
        QUORUM_TEST(a_stranger_on_a_minority_does_not_disturb),
        QUORUM_TEST(redis_py_on_one_node_does_not_disturb),
        QUORUM_TEST(a_stranger_on_a_majority_holds),
        QUORUM_TEST(a_split_vote_resolves),
        QUORUM_TEST(something_else_under_the_name),
        QUORUM_TEST(a_node_that_hangs_holds_up_no_contender),
        QUORUM_TEST(a_node_that_hangs_holds_up_no_break),
        QUORUM_TEST(a_node_that_hangs_holds_up_no_query),
        QUORUM_TEST(a_stranger_who_breaks_in_on_one_node),
    };
    return run_quorum_suite("lock", tests);
}
