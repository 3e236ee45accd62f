/*
 * min_replicas: a grant counts when so many replicas have it too, and is undone when they do not say so in time. Each
 * test is named after the behaviour that it shows.
 *
 * The masters are the first nodes; node R is the replica of node R - 3.
 */
#include "nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../redis/users.h"

enum { MASTERS = 2, FIRST_REPLICA = 3 };

static void replicate(size_t master) {
    struct server *replica = &nodes[FIRST_REPLICA + master];
    server_do(replica, "REPLICAOF 127.0.0.1 %d", nodes[master].port);
}

static bool is_replicated(size_t master) {
    return server_integer(&nodes[master], "EVAL %s 0",
                          "return string.find(redis.call('INFO', 'replication'), 'state=online') and 1 or 0");
}

/* How many clients wait for the replicas. */
static const char waiting[] = "return tonumber(string.match(redis.call('INFO', 'clients'), 'blocked_clients:(%d+)'))";

/* How many commands were refused for want of replicas. */
static const char refused[] =
    "return tonumber(string.match(redis.call('INFO', 'errorstats'), 'NOREPLICAS:count=(%d+)') or 0)";

/* How many clients listen. */
static const char channels[] = "return #redis.call('PUBSUB', 'CHANNELS')";

static int replicas_setup(void **state) {
    if (quorum_setup_bare(state))
        return -1;
    struct fixture *f = *state;
    for (size_t i = 0; i < MASTERS; i++)
        replicate(i);
    for (size_t i = 0; i < MASTERS; i++)
        await(f, is_replicated(i));
    evlock_client_options options = durable_options(f);
    options.command_timeout_ms = 2 * LONG_TTL; /* longer than any wait for replicas */
    client_new(f, NULL, &options);             /* of node 0 alone */
    await_connected(f, f->client);
    return 0;
}

#define REPLICAS_TEST(function) cmocka_unit_test_setup_teardown(function, replicas_setup, quorum_teardown)

/* A lock that needs a replica, and tells within `timeout_ms` that there is none. */
static evlock_options replicated(int64_t count, int64_t timeout_ms) {
    evlock_options options = quick_options();
    options.min_replicas = count;
    options.replica_timeout_ms = timeout_ms;
    return options;
}

static void a_grant_is_on_the_replica_when_told(void **state) {
    struct fixture *f = *state;
    evlock_options options = replicated(1, WAIT_MS / 2);
    evlock *lock = lock_new(f, "a", &options);
    for (int i = 0; i < 20; i++) {
        size_t len;
        assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
        const void *token = evlock_token(lock, &len);
        assert_true(key_is(&nodes[FIRST_REPLICA], "a", token, len));
        assert_deadline_is_backed(lock, 1);
        assert_status(await_release(f, lock), EVLOCK_OK);
    }
}

static void a_silent_replica_is_not_enough(void **state) {
    struct fixture *f = *state;
    evlock_options options = replicated(1, 200);
    evlock *lock = lock_new(f, "a", &options);
    server_pause(&nodes[FIRST_REPLICA]);
    for (int i = 0; i < 3; i++) {
        assert_status(await_try(f, lock), EVLOCK_EREPLICAS);
        assert_string_not_equal(f->ended.error, "");
        assert_false(evlock_is_held(lock));
        await(f, !key_exists(&nodes[0], "a"));
    }
    server_resume(&nodes[FIRST_REPLICA]);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_status(await_release(f, lock), EVLOCK_OK);
    await(f, nodes_having("a") == 0);
}

static void more_replicas_than_there_are(void **state) {
    struct fixture *f = *state;
    evlock_options options = replicated(2, 200);
    evlock *lock = lock_new(f, "a", &options);
    assert_status(await_try(f, lock), EVLOCK_EREPLICAS);
    await(f, nodes_having("a") == 0);
}

static void a_waiter_goes_on_until_the_replica_is_back(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock_options options = replicated(1, 100);
    evlock *lock = lock_new(f, "a", &options);
    server_pause(&nodes[FIRST_REPLICA]);
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    run_for(f, 400);
    assert_int_equal(record.count, 0);
    assert_false(evlock_is_held(lock));
    server_resume(&nodes[FIRST_REPLICA]);
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    assert_true(key_exists(&nodes[FIRST_REPLICA], "a"));
}

static void nothing_else_waits_for_replicas(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock_options options = replicated(1, LONG_TTL);
    evlock *lock = lock_new(f, "a", &options);
    evlock *other = lock_new(f, "b", NULL);
    server_pause(&nodes[FIRST_REPLICA]);
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    await(f, key_exists(&nodes[0], "a"));
    for (int i = 0; i < 20; i++) {
        assert_status(await_acquire(f, other, NULL), EVLOCK_OK);
        assert_status(await_query(f, lock, EVLOCK_QUERY_LOCKED), EVLOCK_OK);
        assert_status(await_release(f, other), EVLOCK_OK);
    }
    assert_int_equal(record.count, 0);
    assert_false(evlock_is_held(lock));
    server_resume(&nodes[FIRST_REPLICA]);
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    assert_true(evlock_is_held(lock));
}

static void the_wait_for_replicas_can_be_cancelled(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock_options options = replicated(1, LONG_TTL);
    evlock *lock = lock_new(f, "a", &options);
    server_pause(&nodes[FIRST_REPLICA]);
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    await(f, key_exists(&nodes[0], "a"));
    assert_status(evlock_cancel(lock), EVLOCK_OK);
    await(f, record.count);
    assert_ended(&record, EVLOCK_ECANCELLED);
    await(f, !key_exists(&nodes[0], "a"));
    /* Also by its end in the middle of it. */
    struct record freed = {0};
    assert_status(evlock_acquire(lock, NULL, record_end, &freed), EVLOCK_OK);
    await(f, key_exists(&nodes[0], "a"));
    lock_free(f, lock);
    await(f, freed.count);
    assert_ended(&freed, EVLOCK_ECANCELLED);
    await(f, !key_exists(&nodes[0], "a"));
}

/* Whoever listens anew looks how its waiters stand; but this one waits for replicas. */
static void a_listener_that_comes_back_does_not_end_the_wait_for_replicas(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    size_t len;
    evlock_options options = replicated(1, LONG_TTL), plain = quick_options();
    options.wait = plain.wait = EVLOCK_WAIT_QUEUE;
    evlock *holder = lock_new(f, "a", &plain), *lock = lock_new(f, "a", &options);
    assert_status(await_acquire(f, holder, NULL), EVLOCK_OK);
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    await(f, server_integer(&nodes[0], "ZCARD {a}:queue") == 1);
    server_pause(&nodes[FIRST_REPLICA]);
    assert_status(evlock_release(holder, NULL, NULL), EVLOCK_OK);
    await(f, server_integer(&nodes[0], "EVAL %s 0", waiting) == 1);
    redisReply *token = server_command(&nodes[0], "GET a");
    assert_int_equal(server_integer(&nodes[0], "CLIENT KILL TYPE pubsub"), 1);
    await(f, server_integer(&nodes[0], "EVAL %s 0", channels) == 1);
    run_for(f, 50);
    server_resume(&nodes[FIRST_REPLICA]);
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    const void *granted = evlock_token(lock, &len);
    assert_int_equal(len, token->len);
    assert_memory_equal(granted, token->str, len);
    freeReplyObject(token);
}

/* It was broken before the replicas were asked: what they have is without it. */
static void a_grant_that_is_gone_before_the_wait_is_none(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock_options options = replicated(1, LONG_TTL);
    evlock_client_options client_options = durable_options(f);
    options.max_attempts = EVLOCK_TRY;
    client_options.command_timeout_ms = 2 * LONG_TTL;
    relay_start(&f->relay, &nodes[0]);
    evlock_client *client = client_new(f, f->relay.url, &client_options);
    await(f, relay_pump(&f->relay) && evlock_client_connection(client) == EVLOCK_CONNECTED);
    evlock *lock = lock_new_on(f, client, "a", &options);
    await(f, relay_pump(&f->relay) && f->relay.count == 2);
    f->relay.pairs[1].held = true;
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && key_exists(&nodes[0], "a"));
    server_do(&nodes[0], "DEL a");
    f->relay.pairs[1].held = false;
    await(f, relay_pump(&f->relay) && record.count);
    assert_ended(&record, EVLOCK_EREPLICAS);
    client_free(f, client);
}

static void end_the_wait(struct server *server) {
    redisReply *reply = server_command(server, "CLIENT LIST");
    const char *at = NULL;
    assert_non_null(reply->str);
    for (char *line = strtok(reply->str, "\n"); line; line = strtok(NULL, "\n"))
        at = strstr(line, " cmd=wait ") ? line + strlen("id=") : at;
    assert_non_null(at);
    server_do(server, "CLIENT UNBLOCK %lld", strtoll(at, NULL, 10));
    freeReplyObject(reply);
}

/* Then the server says how many had it by then: too few. */
static void a_wait_for_replicas_that_the_server_ends_grants_nothing(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock_options options = replicated(1, LONG_TTL);
    options.max_attempts = EVLOCK_TRY;
    evlock *lock = lock_new(f, "a", &options);
    server_pause(&nodes[FIRST_REPLICA]);
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    await(f, server_integer(&nodes[0], "EVAL %s 0", waiting) == 1);
    end_the_wait(&nodes[0]);
    await(f, record.count);
    assert_ended(&record, EVLOCK_EREPLICAS);
    await(f, !key_exists(&nodes[0], "a"));
}

static void the_wait_for_replicas_is_part_of_the_wait(void **state) {
    struct fixture *f = *state;
    evlock_acquire_options acquire = {.size = sizeof(evlock_acquire_options)};
    evlock_options options = replicated(1, LONG_TTL);
    evlock *lock = lock_new(f, "a", &options);
    acquire.max_wait_ms = 300;
    server_pause(&nodes[FIRST_REPLICA]);
    assert_status(await_acquire(f, lock, &acquire), EVLOCK_ETIMEDOUT);
    assert_string_equal(f->ended.error, "the replicas took too long");
    await(f, !key_exists(&nodes[0], "a"));
}

static void a_grant_of_replicas_that_comes_too_late_is_none(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(500);
    options.min_replicas = 1;
    options.replica_timeout_ms = LONG_TTL;
    evlock *lock = lock_new(f, "a", &options);
    server_pause(&nodes[FIRST_REPLICA]);
    int status = await_try(f, lock); /* its ttl ends before the replicas' time does */
    if (status != EVLOCK_EREPLICAS)
        assert_status(status, EVLOCK_EUNREACHABLE);
    assert_false(evlock_is_held(lock));
}

/* Who is not yet told of the grant is told of the risk after it. */
static void a_risk_that_comes_before_the_grant_is_told_after_it(void **state) {
    struct fixture *f = *state;
    struct record record = {0}, risk = {0};
    evlock_options options = replicated(1, LONG_TTL);
    options.ttl_ms = LONG_TTL;
    options.auto_renewal = true;
    options.renewal_interval_ms = 100;
    options.at_risk_percent = 99;
    options.on_at_risk = record_risk;
    options.arg = &risk;
    evlock *lock = lock_new(f, "a", &options);
    server_pause(&nodes[FIRST_REPLICA]);
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    await(f, server_integer(&nodes[0], "EVAL %s 0", waiting) == 1);
    server_do(&nodes[0], "CONFIG SET min-replicas-to-write 5"); /* so no renewal is confirmed */
    await(f, server_integer(&nodes[0], "EVAL %s 0", refused) >= 3);
    assert_int_equal(risk.count, 0);
    server_resume(&nodes[FIRST_REPLICA]);
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    await(f, risk.count);
    assert_ended(&risk, EVLOCK_EREFUSED);
    server_do(&nodes[0], "CONFIG SET min-replicas-to-write 0");
    await(f, evlock_remaining_ms(lock) > LONG_TTL * 98 / 100);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_int_equal(risk.count, 1);
}

static void a_held_lock_says_so_at_once(void **state) {
    struct fixture *f = *state;
    evlock_options options = replicated(1, LONG_TTL);
    evlock *lock = lock_new(f, "a", &options);
    server_pause(&nodes[FIRST_REPLICA]);
    foreign_hold("a", 0, 1);
    assert_status(await_try(f, lock), EVLOCK_EHELD);
}

static void replicas_and_a_fence(void **state) {
    struct fixture *f = *state;
    evlock_acquire_options acquire = {.size = sizeof(evlock_acquire_options)};
    evlock_options options = replicated(1, WAIT_MS / 2);
    uint64_t last = 0;
    evlock *lock = lock_new(f, "a", &options);
    acquire.fence = EVLOCK_ON;
    for (int i = 0; i < 5; i++) {
        assert_status(await_acquire(f, lock, &acquire), EVLOCK_OK);
        assert_true(evlock_fence(lock) > last);
        last = evlock_fence(lock);
        assert_status(await_release(f, lock), EVLOCK_OK);
    }
}

static void a_quorum_of_nodes_with_replicas(void **state) {
    struct fixture *f = *state;
    evlock_options options = replicated(1, 300);
    evlock_client *client = quorum_client(f, 3, NULL); /* the third has no replica, and need not */
    evlock *lock = lock_new_on(f, client, "a", &options);
    await(f, nodes_counting(client) == 3);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_true(evlock_is_held(lock));
    assert_true(key_exists(&nodes[FIRST_REPLICA], "a"));
    assert_true(key_exists(&nodes[FIRST_REPLICA + 1], "a"));
    assert_status(await_release(f, lock), EVLOCK_OK);
    await(f, nodes_having("a") == 0);
    server_pause(&nodes[FIRST_REPLICA + 1]);
    assert_status(await_try(f, lock), EVLOCK_EREPLICAS);
    await(f, nodes_having("a") == 0);
}

/* Of two servers, one has no replica; the other's replica has what it has, by whichever address it is asked. */
static void one_server_by_two_addresses_confirms_once(void **state) {
    struct fixture *f = *state;
    evlock_options options = replicated(1, 300);
    const char *urls[] = {nodes[0].socket_url, nodes[2].url, nodes[0].tcp_url};
    /* The replica confirms from here on: it is said to be online up to a second before it does. */
    assert_status(await_acquire(f, lock_new(f, "alone", &options), NULL), EVLOCK_OK);
    evlock_client *client = quorum_client_of(f, urls, 3, NULL);
    evlock *lock = lock_new_on(f, client, "a", &options);
    await(f, node_info(client, 2).status == EVLOCK_ESAME || node_info(client, 0).status == EVLOCK_ESAME);
    await(f, nodes_counting(client) == 2);
    for (int i = 0; i < 3; i++) {
        assert_status(await_try(f, lock), EVLOCK_EREPLICAS);
        await(f, nodes_having("a") == 0);
    }
}

/* The answer of the replica comes when the lease that it was asked for is gone, and another attempt under way. */
static void a_grant_that_is_lost_meanwhile_is_not_confirmed(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock_options options = replicated(1, LONG_TTL);
    options.auto_renewal = true;
    options.renewal_interval_ms = 20;
    evlock *lock = lock_new(f, "a", &options);
    server_pause(&nodes[FIRST_REPLICA]);
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    await(f, key_exists(&nodes[0], "a"));
    await(f, server_integer(&nodes[0], "EVAL %s 0", waiting) == 1);
    server_do(&nodes[0], "SET a stranger PX 600000"); /* found at the next renewal */
    long long tries = server_calls(&nodes[0], "set");
    await(f, server_calls(&nodes[0], "set") > tries + 1);
    server_resume(&nodes[FIRST_REPLICA]);
    await(f, server_integer(&nodes[0], "EVAL %s 0", waiting) == 0);
    run_for(f, 100);
    assert_int_equal(record.count, 0);
    assert_false(evlock_is_held(lock));
    server_do(&nodes[0], "DEL a");
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    assert_true(evlock_is_held(lock));
    assert_deadline_is_backed(lock, 1);
}

/* --- A client whose second connection goes through a relay -------------------------------------------------------- */

/* A client through a relay that leads to node 0. The relay's first connection is the client's own, the second its
 * side, which stands once a lock asks for replicas. */
static evlock_client *relayed_client(struct fixture *f, int64_t max_inflight) {
    evlock_client_options options = durable_options(f);
    options.command_timeout_ms = 2 * LONG_TTL;
    options.max_inflight = max_inflight;
    relay_start(&f->relay, &nodes[0]);
    evlock_client *client = client_new(f, f->relay.url, &options);
    await(f, relay_pump(&f->relay) && evlock_client_connection(client) == EVLOCK_CONNECTED);
    return client;
}

static int count_ended(const struct record *records, int count) {
    int ended = 0;
    for (int i = 0; i < count; i++)
        ended += records[i].count > 0;
    return ended;
}

/* The side is lost while the replica's word is waited for, and leads to another server next, as after a failover: that
 * one's replicas have all that it has, and nothing of the locks. `whole`: so is the client's own connection. */
static void ask_two_servers(struct fixture *f, int count, int64_t max_inflight, const struct server *next, bool whole) {
    static struct record records[MAX_LOCKS];
    evlock *locks[MAX_LOCKS];
    char name[16];
    evlock_options options = replicated(1, LONG_TTL);
    options.max_attempts = EVLOCK_TRY;
    memset(records, 0, sizeof(records));
    evlock_client *client = relayed_client(f, max_inflight);
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        locks[i] = lock_new_on(f, client, name, &options);
    }
    await(f, relay_pump(&f->relay) && f->relay.count == 2);
    if (next != &nodes[FIRST_REPLICA])
        server_pause(&nodes[FIRST_REPLICA]);
    f->relay.pairs[1].held = true; /* till all want to be asked for */
    for (int i = 0; i < count; i++)
        assert_status(evlock_acquire(locks[i], NULL, record_end, &records[i]), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && server_integer(&nodes[0], "DBSIZE") == count);
    f->relay.pairs[1].held = false;
    await(f, relay_pump(&f->relay) && server_integer(&nodes[0], "EVAL %s 0", waiting) == 1);
    for (int i = 0; i < 100; i++) { /* as far as it goes */
        relay_pump(&f->relay);
        run_for(f, 1);
    }
    f->relay.server = next;
    relay_cut(&f->relay, 1);
    if (whole)
        relay_cut(&f->relay, 0);
    await(f, relay_pump(&f->relay) && count_ended(records, count) == count);
    for (int i = 0; i < count; i++) {
        assert_ended(&records[i], EVLOCK_EREPLICAS);
        assert_false(evlock_is_held(locks[i]));
    }
    client_free(f, client);
}

static void replicas_of_another_server_confirm_nothing(void **state) {
    ask_two_servers(*state, 2, 1, &nodes[1], false);
}

static void replicas_of_another_server_confirm_none_of_many(void **state) {
    ask_two_servers(*state, 200, 32, &nodes[1], false);
}

/* The replica is cut off, promoted with a replica of its own, and then the old primary is. */
static void a_replica_that_is_promoted_behind_confirms_nothing(void **state) {
    struct server *promoted = &nodes[FIRST_REPLICA];
    struct fixture *f = *state;
    server_do(&nodes[FIRST_REPLICA + 1], "REPLICAOF 127.0.0.1 %d", promoted->port);
    await(f, is_replicated(FIRST_REPLICA));
    server_do(promoted, "REPLICAOF NO ONE");
    await(f, !is_replicated(0));
    ask_two_servers(f, 200, 32, promoted, true);
    assert_int_equal(server_integer(promoted, "DBSIZE"), 0);
}

static bool waits_for_replicas(size_t node) {
    return server_integer(&nodes[node], "EVAL %s 0", waiting) == 1;
}

/* Whether this attempt's token is on the replica of node 1, and on node 2, which has none. */
static bool is_half_confirmed(void) {
    char on_replica[64], alone[64];
    return waits_for_replicas(2) && !waits_for_replicas(1) &&
           key_value(&nodes[FIRST_REPLICA + 1], "a", on_replica, sizeof(on_replica)) > 0 &&
           key_value(&nodes[2], "a", alone, sizeof(alone)) > 0 && strcmp(on_replica, alone) == 0;
}

/* One that confirms an earlier attempt says nothing of this one, whose token that server has lost. */
static void the_word_for_an_earlier_attempt_is_none_for_this(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock_options options = replicated(1, 1000);
    evlock_client_options client_options = durable_options(f);
    client_options.command_timeout_ms = 2 * LONG_TTL;
    relay_start(&f->relay, &nodes[0]);
    const char *urls[] = {f->relay.url, nodes[1].url, nodes[2].url};
    evlock_client *client = quorum_client_of(f, urls, 3, &client_options);
    await(f, relay_pump(&f->relay) && nodes_counting(client) == 3);
    evlock *lock = lock_new_on(f, client, "a", &options);
    await(f, relay_pump(&f->relay) && f->relay.count == 2);
    server_do(&nodes[0], "CONFIG RESETSTAT");
    server_pause(&nodes[FIRST_REPLICA + 1]); /* so that the first attempt finds too few */
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && server_calls(&nodes[0], "pexpire") >= 1);
    f->relay.pairs[1].held = true; /* the question itself, which follows the renewal's answer */
    await(f, relay_pump(&f->relay) && server_calls(&nodes[0], "set") > 1);
    server_resume(&nodes[FIRST_REPLICA + 1]);
    await(f, relay_pump(&f->relay) && is_half_confirmed());
    server_do(&nodes[0], "SET a stranger PX 600000");
    long long asked = server_calls(&nodes[2], "wait");
    f->relay.pairs[1].held = false;
    await(f, relay_pump(&f->relay) && (record.count || server_calls(&nodes[2], "wait") > asked + 1));
    assert_int_equal(record.count, 0);
    assert_true(server_calls(&nodes[0], "wait") > 0);
    server_do(&nodes[0], "DEL a");
    await(f, relay_pump(&f->relay) && record.count);
    assert_ended(&record, EVLOCK_OK);
    client_free(f, client);
}

/* No replica confirms a pass: so it may not count on more than they have. */
static void a_lease_that_is_passed_on_is_on_the_replica_for_as_long(void **state) {
    struct server *replica = &nodes[FIRST_REPLICA];
    struct fixture *f = *state;
    struct record record = {0};
    evlock_options options = replicated(1, WAIT_MS / 2);
    options.ttl_ms = 2000;
    options.max_passes = 1;
    evlock *lock = lock_new(f, "a", &options), *heir = lock_new(f, "a", &options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_status(evlock_acquire(heir, NULL, record_end, &record), EVLOCK_OK);
    server_pause(replica); /* and it gets nothing any more */
    server_do(&nodes[0], "CLIENT KILL TYPE replica");
    await(f, evlock_remaining_ms(lock) < options.ttl_ms * 3 / 4);
    assert_status(evlock_release(lock, NULL, NULL), EVLOCK_OK);
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    assert_status(await_query(f, heir, EVLOCK_QUERY_OWNED), EVLOCK_OK); /* what was sent with the pass is answered */
    server_do(&nodes[0], "CLIENT KILL TYPE replica");
    server_resume(replica);
    server_do(replica, "REPLICAOF NO ONE");
    assert_true(evlock_is_held(heir));
    int64_t deadline = evlock_clock_us() + evlock_remaining_ms(heir) * 1000;
    int64_t left = server_integer(replica, "PTTL a") * 1000;
    assert_true(evlock_clock_us() + left >= deadline);
}

/* One way to the server and back, on the client's own connection. */
static void round_trip(struct fixture *f, evlock *lock) {
    struct record record = {0};
    assert_status(evlock_query(lock, EVLOCK_QUERY_LOCKED, record_answer, &record), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && record.count);
}

/* Who listens anew looks at once for what it may have missed, also while the replicas' word for an earlier attempt is
 * not there yet. */
static void who_listens_again_looks_whatever_is_unanswered(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock_options options = replicated(1, 300), plain = quick_options();
    options.wait = plain.wait = EVLOCK_WAIT_QUEUE;
    options.retry_delay_ms = 500; /* looks every few seconds only */
    evlock_client *client = relayed_client(f, 16);
    evlock *lock = lock_new_on(f, client, "a", &options), *holder = lock_new(f, "a", &plain);
    server_do(&nodes[0], "CONFIG RESETSTAT");
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && server_calls(&nodes[0], "pexpire") >= 1);
    f->relay.pairs[1].held = true;
    server_do(&nodes[0], "SET a stranger PX 600000");
    await(f, relay_pump(&f->relay) && server_integer(&nodes[0], "ZCARD {a}:queue") == 1);
    assert_status(await_adopt(f, holder, "stranger", EVLOCK_CSTRING), EVLOCK_OK);
    assert_int_equal(f->relay.count, 3);
    round_trip(f, lock);
    f->relay.pairs[2].muted = true;
    assert_status(await_release(f, holder), EVLOCK_OK);
    assert_int_equal(server_integer(&nodes[0], "ZCARD {a}:queue"), 0);
    assert_true(key_exists(&nodes[0], "a"));
    relay_cut(&f->relay, 2);
    await(f, relay_pump(&f->relay) && f->relay.count == 4 && server_integer(&nodes[0], "EVAL %s 0", channels) == 1);
    long long scripts = server_calls(&nodes[0], "evalsha");
    for (int i = 0; i < 50 && server_calls(&nodes[0], "evalsha") == scripts; i++)
        round_trip(f, lock);
    assert_true(server_calls(&nodes[0], "evalsha") > scripts);
    f->relay.pairs[1].held = false;
    await(f, relay_pump(&f->relay) && record.count);
    assert_ended(&record, EVLOCK_OK);
    client_free(f, client);
}

/* After a failover the old primary may go on, and the connection that listens there with it. */
static void who_waits_listens_to_the_server_that_is_asked(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock_options options = quick_options();
    options.wait = EVLOCK_WAIT_QUEUE;
    evlock_client *client = relayed_client(f, 16), *next = quorum_client_of(f, &(const char *){nodes[1].url}, 1, NULL);
    evlock *lock = lock_new_on(f, client, "a", &options), *holder = lock_new_on(f, next, "a", &options);
    foreign_hold("a", 0, 1);
    assert_status(await_acquire(f, holder, NULL), EVLOCK_OK);
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && server_integer(&nodes[0], "ZCARD {a}:queue") == 1);
    assert_int_equal(f->relay.count, 2);
    f->relay.server = &nodes[1];
    relay_cut(&f->relay, 0);
    await(f, relay_pump(&f->relay) && server_integer(&nodes[1], "EVAL %s 0", channels) == 1);
    assert_int_equal(server_integer(&nodes[0], "EVAL %s 0", channels), 0);
    await(f, relay_pump(&f->relay) && server_integer(&nodes[1], "ZCARD {a}:queue") == 1);
    assert_status(await_release(f, holder), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && record.count);
    assert_ended(&record, EVLOCK_OK);
    client_free(f, client);
}

static void scripts_that_are_gone_are_loaded_on_the_link(void **state) {
    struct fixture *f = *state;
    evlock_options options = replicated(1, WAIT_MS / 2);
    evlock *lock = lock_new(f, "a", &options);
    for (int i = 0; i < 3; i++) {
        server_do(&nodes[0], "SCRIPT FLUSH");
        assert_status(await_try(f, lock), EVLOCK_OK);
        assert_status(await_release(f, lock), EVLOCK_OK);
    }
}

/* Nothing that waits can mend this. */
static void a_wait_that_is_forbidden_ends_the_acquire(void **state) {
    struct fixture *f = *state;
    evlock_options options = replicated(1, WAIT_MS / 2);
    evlock *lock = lock_new(f, "a", &options);
    server_do(&nodes[0], "ACL SETUSER default -wait");
    assert_status(await_acquire(f, lock, NULL), EVLOCK_EPERM);
    assert_non_null(strstr(f->ended.error, "NOPERM"));
    await(f, !key_exists(&nodes[0], "a"));
    server_do(&nodes[0], "ACL SETUSER default +wait");
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
}

/* Among several, it is a node that does not confirm, and others may. */
static void a_wait_that_one_node_of_several_forbids_confirms_nothing(void **state) {
    struct fixture *f = *state;
    evlock_options options = replicated(1, WAIT_MS / 2);
    evlock_client_options client_options = durable_options(f);
    client_options.command_timeout_ms = WAIT_MS;
    evlock_client *client = quorum_client(f, MASTERS, &client_options);
    await(f, nodes_counting(client) == MASTERS);
    evlock *lock = lock_new_on(f, client, "a", &options);
    server_do(&nodes[1], "ACL SETUSER default -wait");
    assert_status(await_try(f, lock), EVLOCK_EREPLICAS);
    assert_non_null(strstr(f->ended.error, "NOPERM"));
    server_do(&nodes[1], "ACL SETUSER default +wait");
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
}

/* Where replicas cannot be asked, it is said at once, and why, if the server can: it cannot before TLS is spoken. */
static void a_second_connection_that_is_refused_confirms_nothing(void **state) {
    struct fixture *f = *state;
    evlock_options options = replicated(1, 100);
    evlock_client_options client_options = durable_options(f);
    client_options.backoff_max_ms = LONG_TTL;
    evlock_client *client = client_new(f, nodes[0].url, &client_options);
    await(f, evlock_client_connection(client) == EVLOCK_CONNECTED);
    server_do(&nodes[0], "CONFIG SET maxclients %lld", server_info(&nodes[0], "clients", "connected_clients:") + 1);
    evlock *lock = lock_new_on(f, client, "a", &options);
    for (int i = 0; i < 2; i++) {
        assert_status(await_try(f, lock), EVLOCK_EREPLICAS);
        assert_true(nodes[0].tls || strstr(f->ended.error, "max number of clients"));
    }
    server_do(&nodes[0], "CONFIG SET maxclients 10000");
    client_free(f, client);
}

/* It was demoted between the renewal and the question: another may serve next, or it again. */
static void a_primary_that_is_demoted_is_waited_for(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock_options options = replicated(1, WAIT_MS / 2);
    evlock_client *client = relayed_client(f, 1);
    evlock *lock = lock_new_on(f, client, "a", &options);
    server_do(&nodes[0], "CONFIG RESETSTAT");
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && server_calls(&nodes[0], "pexpire") >= 1);
    f->relay.pairs[1].held = true;
    server_do(&nodes[0], "REPLICAOF 127.0.0.1 %d", nodes[2].port);
    f->relay.pairs[1].held = false;
    await(f, relay_pump(&f->relay) && server_calls(&nodes[0], "wait") >= 1);
    await(f, relay_pump(&f->relay) && server_errors(&nodes[0], "READONLY") >= 1);
    assert_int_equal(record.count, 0);
    server_do(&nodes[0], "REPLICAOF NO ONE");
    await(f, relay_pump(&f->relay) && record.count);
    assert_ended(&record, EVLOCK_OK);
    client_free(f, client);
}

static void a_server_without_wait_ends_the_acquire(void **state) {
    static const char *const args[] = {"--rename-command", "WAIT", "", NULL};
    struct fixture *f = *state;
    struct server own = {0};
    evlock_options options = replicated(1, WAIT_MS / 2);
    server_start(&own, false, args);
    evlock_client_options client_options = durable_options(f);
    client_options.command_timeout_ms = WAIT_MS;
    evlock_client *client = client_new(f, own.url, &client_options);
    evlock *lock = lock_new_on(f, client, "a", &options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_EUNSUPPORTED);
    assert_non_null(strstr(f->ended.error, "unknown command"));
    await(f, !key_exists(&own, "a"));
    client_free(f, client);
    server_stop(&own);
}

/* --- Leases that are passed on ------------------------------------------------------------------------------------ */

enum { USERS = 6, PASSES = 2 };

static evlock_options confirmed(evlock_options options, int64_t timeout_ms) {
    options.min_replicas = 1;
    options.replica_timeout_ms = timeout_ms;
    return options;
}

/* It is the first node's and its replica's. */
static void is_confirmed(struct fixture *f, struct user *user) {
    char token[64];
    ssize_t len;
    await_held(f, user);
    len = key_value(&nodes[0], "a", token, sizeof(token));
    assert_true(len > 0 && key_is(&nodes[FIRST_REPLICA], "a", token, (size_t)len));
}

static void all_have_it_in_order(struct fixture *f, struct user *users, int count) {
    for (int i = 0; i < count; i++) {
        is_confirmed(f, &users[i]);
        for (int j = i + 1; j < count; j++)
            assert_int_equal(users[j].record.count, 0);
        release(&users[i]);
    }
    await(f, !key_exists(&nodes[0], "a"));
}

/* Once for each lease, however many have it. */
static void replicas_are_asked_once_of_a_lease_that_is_passed_on(void **state) {
    struct fixture *f = *state;
    const evlock_options options[] = {confirmed(passing(PASSES), WAIT_MS / 2),
                                      confirmed(passing_in_queue(PASSES), WAIT_MS / 2)};
    for (size_t way = 0; way < 2; way++) {
        struct user users[USERS];
        long long asked = server_calls(&nodes[0], "wait");
        uint64_t before = passed(f);
        crowd(f, users, USERS, &options[way]);
        all_have_it_in_order(f, users, USERS);
        assert_int_equal(server_calls(&nodes[0], "wait") - asked, USERS / (PASSES + 1));
        assert_int_equal(passed(f) - before, USERS * PASSES / (PASSES + 1));
    }
}

/* None of them is told, and the group goes on asking. */
static void a_group_goes_on_until_the_replica_is_back(void **state) {
    struct fixture *f = *state;
    const evlock_options options[] = {confirmed(passing(USERS), 100), confirmed(passing_in_queue(USERS), 100)};
    for (size_t way = 0; way < 2; way++) {
        struct user users[USERS];
        uint64_t before = passed(f);
        server_pause(&nodes[FIRST_REPLICA]);
        long long asked = server_calls(&nodes[0], "wait");
        make(f, users, USERS, &options[way]);
        for (int i = 0; i < USERS; i++)
            acquire(&users[i]);
        await(f, server_calls(&nodes[0], "wait") >= asked + 3);
        for (int i = 0; i < USERS; i++)
            assert_true(!users[i].record.count && !evlock_is_held(users[i].lock));
        server_resume(&nodes[FIRST_REPLICA]);
        all_have_it_in_order(f, users, USERS);
        assert_int_equal(passed(f) - before, USERS - 1);
    }
}

/* Another client has the lock, and a group waits, whose replicas do not answer. Then they are asked for its first,
 * which has so much time. */
static void ask_for_first(struct fixture *f, struct user *users, const evlock_options *options, int64_t ms) {
    evlock_options plain = quick_options();
    plain.wait = options->wait;
    evlock_client *other = f->clients_len > 1 ? f->clients[1] : client_new(f, NULL, NULL);
    struct user holder = {.lock = lock_new_on(f, other, "a", &plain)};
    assert_status(await_acquire(f, holder.lock, NULL), EVLOCK_OK);
    make(f, users, USERS, options);
    acquire_for(&users[0], ms);
    for (int i = 1; i < USERS; i++)
        acquire(&users[i]);
    if (options->wait == EVLOCK_WAIT_QUEUE)
        await(f, ask_waiters(f, holder.lock) == 1);
    server_pause(&nodes[FIRST_REPLICA]);
    assert_status(await_release(f, holder.lock), EVLOCK_OK);
    await(f, server_integer(&nodes[0], "EVAL %s 0", waiting) == 1);
}

enum leave { BY_CANCEL, BY_FREE, BY_TIME, LEAVES };

static void leaves(struct fixture *f, struct user *user, enum leave how) {
    if (how == BY_CANCEL)
        assert_status(evlock_cancel(user->lock), EVLOCK_OK);
    else if (how == BY_FREE)
        lock_free(f, user->lock);
    await(f, user->record.count);
    assert_ended(&user->record, how == BY_TIME ? EVLOCK_ETIMEDOUT : EVLOCK_ECANCELLED);
}

/* What was not confirmed for it is nobody's: the lock is asked for anew, and the replicas, too. */
static void who_leaves_while_replicas_are_asked_leaves_no_lease(void **state) {
    struct fixture *f = *state;
    const evlock_options options[] = {confirmed(passing(USERS), LONG_TTL),
                                      confirmed(passing_in_queue(USERS), LONG_TTL)};
    for (int round = 0; round < 2 * LEAVES; round++) {
        enum leave how = (enum leave)(round % LEAVES);
        struct user users[USERS];
        char token[64], next[64];
        ssize_t len;
        ask_for_first(f, users, &options[round / LEAVES], how == BY_TIME ? 2000 : LONG_TTL);
        len = key_value(&nodes[0], "a", token, sizeof(token));
        leaves(f, &users[1], BY_CANCEL);
        assert_true(len > 0 && key_is(&nodes[0], "a", token, (size_t)len));
        leaves(f, &users[0], how);
        await(f, key_value(&nodes[0], "a", next, sizeof(next)) > 0 && strcmp(next, token) != 0);
        for (int i = 2; i < USERS; i++)
            assert_int_equal(users[i].record.count, 0);
        server_resume(&nodes[FIRST_REPLICA]);
        all_have_it_in_order(f, users + 2, USERS - 2);
    }
    assert_int_equal(passed(f), 2 * LEAVES * (USERS - 3));
}

/* Its time was up when the answer was read. It is confirmed, whoever has it. */
static void a_confirmed_lease_goes_to_who_still_waits(void **state) {
    struct fixture *f = *state;
    const evlock_options options[] = {confirmed(passing(USERS), LONG_TTL),
                                      confirmed(passing_in_queue(USERS), LONG_TTL)};
    for (size_t way = 0; way < 2; way++) {
        struct user users[USERS];
        int64_t begun = evlock_clock_us();
        long long asked = server_calls(&nodes[0], "wait");
        ask_for_first(f, users, &options[way], 2000);
        server_resume(&nodes[FIRST_REPLICA]);
        while (server_integer(&nodes[0], "EVAL %s 0", waiting) || evlock_clock_us() < begun + 2100 * 1000)
            usleep(1000); /* no loop runs */
        all_have_it_in_order(f, users + 1, USERS - 1);
        assert_ended(&users[0].record, EVLOCK_ETIMEDOUT);
        assert_int_equal(server_calls(&nodes[0], "wait") - asked, 1);
    }
}

/* In both directions. */
static void who_needs_other_replicas_waits_by_itself(void **state) {
    struct fixture *f = *state;
    evlock_options options[] = {confirmed(passing_in_queue(USERS), WAIT_MS / 2),
                                confirmed(passing_in_queue(USERS), WAIT_MS / 2)};
    options[0].min_replicas = 0;
    for (int way = 0; way < 2; way++) {
        struct user users[2], stranger = {.lock = lock_new(f, "a", &options[1 - way])};
        uint64_t before = passed(f);
        crowd(f, users, 2, &options[way]);
        acquire(&stranger);
        await(f, ask_waiters(f, stranger.lock) == 1);
        release(&users[0]);
        await_held(f, &users[1]);
        assert_int_equal(stranger.record.count, 0);
        release(&users[1]);
        await_held(f, &stranger);
        assert_status(await_release(f, stranger.lock), EVLOCK_OK);
        assert_int_equal(passed(f) - before, 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        REPLICAS_TEST(a_grant_is_on_the_replica_when_told),
        REPLICAS_TEST(a_silent_replica_is_not_enough),
        REPLICAS_TEST(more_replicas_than_there_are),
        REPLICAS_TEST(a_waiter_goes_on_until_the_replica_is_back),
        REPLICAS_TEST(nothing_else_waits_for_replicas),
        REPLICAS_TEST(the_wait_for_replicas_can_be_cancelled),
        REPLICAS_TEST(a_listener_that_comes_back_does_not_end_the_wait_for_replicas),
        REPLICAS_TEST(a_grant_that_is_gone_before_the_wait_is_none),
        REPLICAS_TEST(a_wait_for_replicas_that_the_server_ends_grants_nothing),
        REPLICAS_TEST(the_wait_for_replicas_is_part_of_the_wait),
        REPLICAS_TEST(a_grant_of_replicas_that_comes_too_late_is_none),
        REPLICAS_TEST(a_risk_that_comes_before_the_grant_is_told_after_it),
        REPLICAS_TEST(a_held_lock_says_so_at_once),
        REPLICAS_TEST(replicas_and_a_fence),
        REPLICAS_TEST(a_quorum_of_nodes_with_replicas),
        REPLICAS_TEST(one_server_by_two_addresses_confirms_once),
        REPLICAS_TEST(a_grant_that_is_lost_meanwhile_is_not_confirmed),
        REPLICAS_TEST(replicas_of_another_server_confirm_nothing),
        REPLICAS_TEST(replicas_of_another_server_confirm_none_of_many),
        REPLICAS_TEST(a_replica_that_is_promoted_behind_confirms_nothing),
        REPLICAS_TEST(the_word_for_an_earlier_attempt_is_none_for_this),
        REPLICAS_TEST(a_lease_that_is_passed_on_is_on_the_replica_for_as_long),
        REPLICAS_TEST(who_listens_again_looks_whatever_is_unanswered),
        REPLICAS_TEST(who_waits_listens_to_the_server_that_is_asked),
        REPLICAS_TEST(scripts_that_are_gone_are_loaded_on_the_link),
        REPLICAS_TEST(a_wait_that_is_forbidden_ends_the_acquire),
        REPLICAS_TEST(a_wait_that_one_node_of_several_forbids_confirms_nothing),
        REPLICAS_TEST(a_second_connection_that_is_refused_confirms_nothing),
        REPLICAS_TEST(a_primary_that_is_demoted_is_waited_for),
        REPLICAS_TEST(a_server_without_wait_ends_the_acquire),
        REPLICAS_TEST(replicas_are_asked_once_of_a_lease_that_is_passed_on),
        REPLICAS_TEST(a_group_goes_on_until_the_replica_is_back),
        REPLICAS_TEST(who_leaves_while_replicas_are_asked_leaves_no_lease),
        REPLICAS_TEST(a_confirmed_lease_goes_to_who_still_waits),
        REPLICAS_TEST(who_needs_other_replicas_waits_by_itself),
    };
    return run_quorum_suite("replicas", tests);
}
