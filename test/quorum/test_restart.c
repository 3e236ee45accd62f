/*
 * Nodes that may have forgotten a lock: the attack on a quorum by restarts, shown to succeed where the exclusion is
 * turned off and to fail where it is not; and every way in which a node can turn out to be another than before. Each
 * test is named after the behaviour that it shows.
 *
 * Excluded nodes are waited for by the server's clock, so MAX_TTL_MS is what most of these tests take.
 */
#include "nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_TTL_MS = 2000,
    SLACK_MS = 2000, /* a server tells its age in whole seconds */
};

static evlock_client *excluding_client(struct fixture *f, size_t count) {
    evlock_client_options options = excluding_options(f, MAX_TTL_MS);
    return quorum_client(f, count, &options);
}

static bool excluded(const evlock_client *client, size_t node) {
    evlock_node_info info = node_info(client, node);
    return info.status == EVLOCK_EEXCLUDED && info.excluded_ms > 0;
}

/* Known by the client, one way or the other, and by now. */
static void await_excluded_for(struct fixture *f, const evlock_client *client, size_t node, int64_t max_ttl_ms) {
    await(f, excluded(client, node));
    assert_string_not_equal(evlock_last_error(), "");
    assert_int_in_range(node_info(client, node).excluded_ms, 1, max_ttl_ms + SLACK_MS);
}

static void await_excluded(struct fixture *f, const evlock_client *client, size_t node) {
    await_excluded_for(f, client, node, MAX_TTL_MS);
}

static void break_connections(size_t node) {
    server_do(&nodes[node], "CLIENT KILL TYPE normal");
}

/* --- The attack --------------------------------------------------------------------------------------------------- */

/*
 * Two of three nodes forget the lock of a holder, who is not renewed any more and so learns nothing of it, nor gives it
 * to them again; then another client asks for it. Returns whether it was granted while the first still held.
 */
static bool is_granted_twice(struct fixture *f, evlock_client *first_client, evlock_client *second_client,
                             int64_t ttl_ms) {
    struct record second_got = {0};
    evlock_options options = with_ttl(ttl_ms);
    options.retry_delay_ms = 20;
    options.auto_renewal = true;
    options.max_hold_ms = 1;
    evlock *first = lock_new_on(f, first_client, "a", &options);
    assert_status(await_acquire(f, first, NULL), EVLOCK_OK);
    await(f, nodes_with(first) == 3);
    restart_empty(&nodes[0]);
    restart_empty(&nodes[1]);
    evlock *second = lock_new_on(f, second_client, "a", &options);
    assert_status(evlock_acquire(second, NULL, record_end, &second_got), EVLOCK_OK);
    while (!second_got.count && evlock_is_held(first))
        loop_turn(f->loop);
    bool twice = evlock_is_held(second) && evlock_is_held(first);
    await(f, second_got.count); /* sooner or later */
    assert_ended(&second_got, EVLOCK_OK);
    return twice;
}

static void restarted_nodes_do_not_grant_a_held_lock_again(void **state) {
    struct fixture *f = *state;
    evlock_client *first = excluding_client(f, 3);
    evlock_client *second = excluding_client(f, 3);
    await(f, nodes_counting(first) == 3 && nodes_counting(second) == 3);
    assert_false(is_granted_twice(f, first, second, MAX_TTL_MS));
}

static void a_client_that_comes_after_the_restarts_is_no_way_round(void **state) {
    struct fixture *f = *state;
    evlock_client *first = excluding_client(f, 3);
    await(f, nodes_counting(first) == 3);
    assert_false(is_granted_twice(f, first, excluding_client(f, 3), MAX_TTL_MS));
}

/* The power of the two tests above: without the exclusion, the same steps break the lock. */
static void without_the_exclusion_the_attack_succeeds(void **state) {
    struct fixture *f = *state;
    evlock_client *first = quorum_client(f, 3, NULL);
    evlock_client *second = quorum_client(f, 3, NULL);
    await(f, nodes_counting(first) == 3 && nodes_counting(second) == 3);
    assert_true(is_granted_twice(f, first, second, LONG_TTL));
}

/* --- What is excluded, and for how long --------------------------------------------------------------------------- */

static void fresh_servers_are_excluded_and_told(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(MAX_TTL_MS);
    for (size_t i = 0; i < NODES; i++)
        restart_empty(&nodes[i]);
    evlock_client *client = excluding_client(f, NODES);
    evlock *lock = lock_new_on(f, client, "a", &options);
    for (size_t i = 0; i < NODES; i++)
        await_excluded(f, client, i);
    assert_status(await_try(f, lock), EVLOCK_EQUORUM);
    assert_string_not_equal(f->ended.error, "");
    assert_int_equal(nodes_having("a"), 0);
    int64_t before = node_info(client, 0).excluded_ms;
    run_for(f, 100);
    assert_true(node_info(client, 0).excluded_ms < before);
    /* It ends by itself, and a waiter gets the lock then. */
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_true(nodes_counting(client) >= MAJORITY);
    await(f, nodes_counting(client) == NODES);
}

static void an_excluded_node_is_not_asked_to_grant(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(MAX_TTL_MS);
    evlock_client *client = excluding_client(f, NODES);
    await(f, nodes_counting(client) == NODES);
    restart_empty(&nodes[2]);
    await_excluded(f, client, 2);
    evlock *lock = lock_new_on(f, client, "a", &options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    await(f, nodes_with(lock) >= 4);
    run_for(f, 100);
    if (excluded(client, 2))
        assert_false(key_exists(&nodes[2], "a"));
    assert_status(await_release(f, lock), EVLOCK_OK);
    await(f, nodes_having("a") == 0);
}

/* The lease outlives the exclusion, and is on the node soon after, though it is never renewed. */
static void a_lease_is_put_on_a_node_that_counts_again(void **state) {
    struct fixture *f = *state;
    evlock_client_options client_options = excluding_options(f, 8000);
    evlock_options options = with_ttl(8000);
    evlock_client *client = quorum_client(f, 3, &client_options);
    await(f, nodes_counting(client) == 3);
    restart_empty(&nodes[2]);
    await_excluded_for(f, client, 2, 8000);
    await(f, node_info(client, 2).excluded_ms < 4000);
    evlock *lock = lock_new_on(f, client, "a", &options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_int_equal(evlock_keepers(lock), 2);
    assert_false(key_exists(&nodes[2], "a"));
    await(f, evlock_keepers(lock) == 3 || !evlock_is_held(lock));
    assert_true(node_counts(client, 2));
    assert_int_equal(nodes_with(lock), 3);
}

/* Made before the connections stand: when they do, it is told that no node counts before anything is sent. */
static void what_waited_for_an_excluded_node_is_not_asked_of_it(void **state) {
    struct fixture *f = *state;
    struct record tried = {0};
    evlock_acquire_options once = {.size = sizeof(evlock_acquire_options)};
    once.max_attempts = EVLOCK_TRY;
    for (size_t i = 0; i < NODES; i++)
        restart_empty(&nodes[i]);
    evlock_client_options options = excluding_options(f, LONG_TTL);
    evlock *lock = lock_new_on(f, quorum_client(f, NODES, &options), "a", NULL);
    assert_status(evlock_acquire(lock, &once, record_end, &tried), EVLOCK_OK);
    await(f, tried.count);
    assert_ended(&tried, EVLOCK_EQUORUM);
    for (size_t i = 0; i < NODES; i++)
        await_excluded_for(f, f->client, i, LONG_TTL);
    run_for(f, 100);
    for (size_t i = 0; i < NODES; i++)
        assert_int_equal(server_calls(&nodes[i], "set"), 0);
}

/* It grants nothing, and still tells what it has, however early it was asked. */
static void an_excluded_node_still_answers_queries(void **state) {
    struct fixture *f = *state;
    struct record early = {0};
    for (size_t i = 0; i < NODES; i++) {
        restart_empty(&nodes[i]);
        server_do(&nodes[i], "SET a stranger PX 600000");
    }
    evlock_client_options options = excluding_options(f, LONG_TTL);
    evlock *lock = lock_new_on(f, quorum_client(f, NODES, &options), "a", NULL);
    assert_status(evlock_query(lock, EVLOCK_QUERY_LOCKED, record_answer, &early), EVLOCK_OK);
    await(f, early.count);
    assert_ended(&early, EVLOCK_OK);
    assert_true(early.answer.locked);
    for (size_t i = 0; i < NODES; i++)
        await_excluded_for(f, f->client, i, LONG_TTL);
    assert_true(ask_locked(f, lock));
}

static void a_lease_outlives_two_restarts(void **state) {
    struct fixture *f = *state;
    struct record lost = {0};
    evlock_options options = with_ttl(MAX_TTL_MS);
    options.auto_renewal = true;
    options.renewal_interval_ms = 50;
    options.on_lost = record_end;
    options.arg = &lost;
    evlock_client *client = excluding_client(f, NODES);
    await(f, nodes_counting(client) == NODES);
    evlock *lock = lock_new_on(f, client, "a", &options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    await(f, nodes_with(lock) == NODES);
    restart_empty(&nodes[0]);
    restart_empty(&nodes[1]);
    int64_t end = evlock_clock_us() + (int64_t)WAIT_MS * 1000;
    while (nodes_with(lock) < NODES) { /* armed again once they count */
        assert_true(evlock_clock_us() < end);
        assert_true(evlock_is_held(lock));
        assert_deadline_is_backed(lock, NODES);
        loop_turn(f->loop);
    }
    assert_int_equal(lost.count, 0);
}

static void a_restart_with_data_is_excluded_all_the_same(void **state) {
    struct fixture *f = *state;
    evlock_client *client = excluding_client(f, NODES);
    await(f, nodes_counting(client) == NODES);
    restart_with_data(&nodes[2]);
    await_excluded(f, client, 2);
    await(f, node_counts(client, 2));
}

static void durable_nodes_count_at_once(void **state) {
    struct fixture *f = *state;
    for (size_t i = 0; i < NODES; i++)
        restart_empty(&nodes[i]);
    evlock_client *client = quorum_client(f, NODES, NULL); /* of servers younger than its longest ttl */
    await(f, nodes_counting(client) == NODES);
    evlock *lock = lock_new_on(f, client, "a", NULL);
    assert_status(await_try(f, lock), EVLOCK_OK);
}

static void a_broken_connection_is_no_restart(void **state) {
    struct fixture *f = *state;
    evlock_client *client = excluding_client(f, NODES);
    await(f, nodes_counting(client) == NODES);
    break_connections(2);
    await(f, !node_counts(client, 2));
    assert_int_equal(node_info(client, 2).excluded_ms, 0);
    await(f, node_info(client, 2).connection == EVLOCK_CONNECTED);
    assert_true(node_counts(client, 2));
}

/* By evlock_clock_us(): before that, the node does not count, to the millisecond. */
static int64_t excluded_until(const evlock_client *client, size_t node) {
    return evlock_clock_us() + (node_info(client, node).excluded_ms + 1) * 1000;
}

/* --- The age that a server claims --------------------------------------------------------------------------------- */

static int64_t wall_clock_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* An age is the difference of two readings in whole seconds: a server that started at the end of one claims, just after
 * it, to be a second old. Asked again and again, until it is surely two. */
static void an_age_may_be_a_second_too_great(void **state) {
    struct fixture *f = *state;
    while (wall_clock_us() % 1000000 < 800000)
        usleep(1000);
    int64_t started = evlock_clock_us();
    restart_empty(&nodes[0]);
    while (evlock_clock_us() < started + 2000000) {
        evlock_client_options options = excluding_options(f, LONG_TTL);
        evlock_client *client = quorum_client(f, 3, &options);
        await(f, node_info(client, 0).connection == EVLOCK_CONNECTED);
        assert_true(excluded_until(client, 0) >= started + (int64_t)LONG_TTL * 1000);
        client_free(f, client);
        run_for(f, 20);
    }
}

static const char *claimed_age; /* 6 characters */

/* In place of "uptime_in_days:N", behind the age that is claimed. */
static void claim_age(struct relay *relay, char *bytes, size_t len, bool to_server) {
    (void)relay;
    char *age = to_server ? NULL : memmem(bytes, len, "\nuptime_in_seconds:", 19);
    char *rest = age ? memmem(age, len - (size_t)(age - bytes), "\nuptime_in_days:", 16) : NULL;
    if (!rest)
        return;
    memset(age + 19, ' ', (size_t)(rest + 15 - (age + 19)));
    memcpy(age + 19, claimed_age, 6);
    memcpy(rest + 8, "\r\nnone", 6);
}

static void relayed(struct fixture *f, evlock_client **ret_client, const evlock_client_options *options) {
    relay_start(&f->relay, &nodes[0]);
    f->relay.edit = claim_age;
    const char *urls[] = {f->relay.url, nodes[1].url, nodes[2].url};
    *ret_client = quorum_client_of(f, urls, 3, options);
    await(f, relay_pump(&f->relay) && node_info(*ret_client, 0).connection == EVLOCK_CONNECTED);
}

/* The server's clock was set back behind its start. */
static void a_negative_age_is_a_start_just_now(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = excluding_options(f, LONG_TTL);
    evlock_client *client;
    int64_t begun = evlock_clock_us();
    claimed_age = "-99999";
    relayed(f, &client, &options);
    assert_true(excluded_until(client, 0) >= begun + (int64_t)LONG_TTL * 1000);
    assert_int_in_range(node_info(client, 0).excluded_ms, 1, LONG_TTL + SLACK_MS);
}

/* It booted with a slow clock, which was then set: it claims to have run for a day. */
static void an_age_need_not_be_believed(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = excluding_options(f, LONG_TTL);
    evlock_client *client;
    claimed_age = "086400";
    relayed(f, &client, &options);
    assert_true(node_counts(client, 0)); /* it is believed */
    relay_stop(&f->relay);
    client_free(f, client);

    options.distrust_uptime = true;
    int64_t begun = evlock_clock_us();
    relayed(f, &client, &options);
    assert_true(excluded(client, 0));
    int64_t until = excluded_until(client, 0);
    assert_true(until >= begun + (int64_t)LONG_TTL * 1000);

    /* The same process again: its start is still that login. */
    relay_cut(&f->relay, 0);
    await(f, relay_pump(&f->relay) && f->relay.count == 2 && node_info(client, 0).connection == EVLOCK_CONNECTED);
    assert_int_in_range(excluded_until(client, 0), until - 2000, until + 2000);
}

static void a_first_login_is_a_start_where_ages_are_not_believed(void **state) {
    struct fixture *f = *state;
    evlock_client *elder = excluding_client(f, NODES);
    await(f, nodes_counting(elder) == NODES);
    evlock_client_options options = excluding_options(f, MAX_TTL_MS);
    options.distrust_uptime = true;
    evlock_client *client = quorum_client(f, NODES, &options);
    await_excluded(f, client, 0);
    await(f, nodes_counting(client) == NODES);
    break_connections(2);
    await(f, !node_counts(client, 2));
    await(f, node_info(client, 2).connection == EVLOCK_CONNECTED);
    assert_true(node_counts(client, 2)); /* the same process, and no first login */
}

/* --- Another server at the same address --------------------------------------------------------------------------- */

/* A client whose last node is reached through a link, which can be turned to another server. */
static evlock_client *linked_client(struct fixture *f, char link[96]) {
    static char url[128];
    evlock_client_options options = excluding_options(f, MAX_TTL_MS);
    const char *urls[] = {nodes[0].url, nodes[1].url, url};
    snprintf(link, 96, "%s/link", nodes[0].folder);
    snprintf(url, sizeof(url), "unix://%s", link);
    unlink(link);
    assert_int_equal(symlink(nodes[2].socket, link), 0);
    return quorum_client_of(f, urls, 3, &options);
}

static void another_process_at_the_same_address_is_excluded(void **state) {
    struct fixture *f = *state;
    char link[96];
    evlock_client *client = linked_client(f, link);
    evlock_client *elder = excluding_client(f, NODES); /* the other server is as old as can be, but a stranger here */
    await(f, nodes_counting(client) == 3 && nodes_counting(elder) == NODES);
    unlink(link);
    assert_int_equal(symlink(nodes[4].socket, link), 0);
    break_connections(2);
    await_excluded(f, client, 2);
    await(f, node_counts(elder, 4)); /* which knows it well */
    await(f, node_counts(client, 2));
    unlink(link);
}

/* By the second login it is known, and as old as can be: what the first has found out stays. */
static void a_plain_reconnect_cuts_no_exclusion_short(void **state) {
    struct fixture *f = *state;
    char link[96];
    evlock_client *client = linked_client(f, link);
    evlock_client *elder = excluding_client(f, NODES);
    await(f, nodes_counting(client) == 3 && nodes_counting(elder) == NODES);
    unlink(link);
    assert_int_equal(symlink(nodes[4].socket, link), 0);
    int64_t replaced = evlock_clock_us();
    break_connections(2);
    await_excluded(f, client, 2);
    for (int i = 0; i < 3; i++) {
        break_connections(4);
        await(f, node_info(client, 2).connection != EVLOCK_CONNECTED);
        await(f, node_info(client, 2).connection == EVLOCK_CONNECTED);
        assert_true(excluded_until(client, 2) >= replaced + MAX_TTL_MS * 1000 ||
                    evlock_clock_us() >= replaced + MAX_TTL_MS * 1000);
    }
    await(f, node_counts(client, 2));
    unlink(link);
}

static void assert_reconnects_uncounted(struct fixture *f, const evlock_client *client, size_t node) {
    break_connections(node);
    await(f, !node_counts(client, node));
    await(f, node_info(client, node).connection == EVLOCK_CONNECTED);
    assert_int_equal(node_info(client, node).excluded_ms, 0);
}

static bool replid_is(size_t node, char replid[41]) {
    redisReply *reply = server_command(&nodes[node], "INFO replication");
    const char *now = strstr(reply->str, "master_replid:") + strlen("master_replid:");
    bool same = strncmp(now, replid, 40) == 0;
    snprintf(replid, 41, "%.40s", now);
    freeReplyObject(reply);
    return same;
}

/* A server names its data anew when its first replica comes, and a while after its last has gone: it has lost none. */
static void a_history_that_is_named_anew_is_no_loss(void **state) {
    struct fixture *f = *state;
    char replid[41] = "";
    restart_empty(&nodes[2]);
    evlock_client *client = excluding_client(f, 3);
    await(f, nodes_counting(client) == 3);
    replid_is(2, replid);
    server_do(&nodes[4], "REPLICAOF 127.0.0.1 %d", nodes[2].port);
    await(f, server_info(&nodes[2], "replication", "connected_slaves:") == 1);
    assert_false(replid_is(2, replid));
    assert_reconnects_uncounted(f, client, 2);
    server_do(&nodes[2], "CONFIG SET repl-backlog-ttl 1");
    server_do(&nodes[4], "REPLICAOF NO ONE");
    await(f, !replid_is(2, replid));
    assert_reconnects_uncounted(f, client, 2);
}

static void a_promoted_replica_is_excluded(void **state) {
    struct fixture *f = *state;
    evlock_client *client = excluding_client(f, NODES);
    await(f, nodes_counting(client) == NODES);
    /* The same process; but for a while it copied another's data, and that is what it now has. */
    server_do(&nodes[2], "REPLICAOF 127.0.0.1 %d", nodes[3].port);
    await(f, server_integer(&nodes[2], "EVAL %s 0",
                            "return string.find(redis.call('INFO', 'replication'), 'link_status:up') and 1 or 0"));
    server_do(&nodes[2], "REPLICAOF NO ONE");
    break_connections(2);
    await_excluded(f, client, 2);
    await(f, node_counts(client, 2));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        QUORUM_TEST_BARE(without_the_exclusion_the_attack_succeeds),
        QUORUM_TEST_BARE(restarted_nodes_do_not_grant_a_held_lock_again),
        QUORUM_TEST_BARE(a_client_that_comes_after_the_restarts_is_no_way_round),
        QUORUM_TEST_BARE(fresh_servers_are_excluded_and_told),
        QUORUM_TEST_BARE(an_excluded_node_is_not_asked_to_grant),
        QUORUM_TEST_BARE(a_lease_is_put_on_a_node_that_counts_again),
        QUORUM_TEST_BARE(what_waited_for_an_excluded_node_is_not_asked_of_it),
        QUORUM_TEST_BARE(an_excluded_node_still_answers_queries),
        QUORUM_TEST_BARE(a_lease_outlives_two_restarts),
        QUORUM_TEST_BARE(a_restart_with_data_is_excluded_all_the_same),
        QUORUM_TEST_BARE(durable_nodes_count_at_once),
        QUORUM_TEST_BARE(a_broken_connection_is_no_restart),
        QUORUM_TEST_BARE(another_process_at_the_same_address_is_excluded),
        QUORUM_TEST_BARE(a_plain_reconnect_cuts_no_exclusion_short),
        QUORUM_TEST_BARE(a_history_that_is_named_anew_is_no_loss),
        QUORUM_TEST_BARE(a_promoted_replica_is_excluded),
        QUORUM_TEST_BARE(an_age_may_be_a_second_too_great),
        QUORUM_TEST_BARE(a_negative_age_is_a_start_just_now),
        QUORUM_TEST_BARE(an_age_need_not_be_believed),
        QUORUM_TEST_BARE(a_first_login_is_a_start_where_ages_are_not_believed),
    };
    return run_quorum_suite("restart", tests);
}
