/*
 * Waiting in a queue, when things cross and break: whoever gives up, hangs, crashes or loses a connection, at most one
 * holds the lock, and it passes on to who still waits. Each test may leave its server in any state: the next one gets a
 * new process.
 */
#include "harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "waiters.h"

#define FAULT(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown_restart)

static evlock_client_options quick(struct fixture *f) {
    evlock_client_options options = client_options(f);
    options.command_timeout_ms = 1000;
    options.connect_timeout_ms = 1000;
    options.backoff_min_ms = 10;
    options.backoff_max_ms = 100;
    return options;
}

static evlock_client *another(struct fixture *f) {
    evlock_client_options options = quick(f);
    return client_new(f, NULL, &options);
}

static bool is_the_servers(struct fixture *f, const evlock *lock) {
    size_t len = 0;
    const void *token = evlock_token(lock, &len);
    return token && key_is(f->server, "a", token, len);
}

/* --- A message that never came ------------------------------------------------------------------------------------ */

/* Its lease counts from the look, so the server has to keep it for as long. */
static void who_looks_late_gets_a_whole_ttl(void **state) {
    static const char grant[] = "local first = redis.call('ZPOPMIN', KEYS[2])[1] "
                                "return redis.call('SET', KEYS[1], string.match(first, '^%S+ %S+ %d+ [01] (.*)$'), "
                                "'PX', 5000)";
    struct fixture *f = *state;
    struct record got = {0};
    evlock_options options = with_ttl(60000);
    options.wait = EVLOCK_WAIT_QUEUE;
    options.retry_delay_ms = 50;
    evlock *lock = lock_new(f, "a", &options);
    server_do(f->server, "SET a held");
    assert_status(evlock_acquire(lock, NULL, record_end, &got), EVLOCK_OK);
    await(f, server_integer(f->server, "ZCARD {a}:queue") == 1);
    server_do(f->server, "EVAL %s 2 a {a}:queue", grant);
    await(f, got.count);
    assert_ended(&got, EVLOCK_OK);
    assert_true(server_integer(f->server, "PTTL a") >= evlock_remaining_ms(lock));
}

/* --- Giving up and a grant cross ---------------------------------------------------------------------------------- */

enum give_up { CANCEL, FREE_HANDLE, FREE_CLIENT, CLOSE_CLIENT, WAYS_OUT };

static void gives_up(struct fixture *f, enum give_up how, evlock_client *client, evlock *lock) {
    switch (how) {
    case CANCEL:
        if (evlock_cancel(lock) == EVLOCK_ENOTHELD) /* it was told first */
            evlock_release(lock, NULL, NULL);
        break;
    case FREE_HANDLE:
        lock_free(f, lock);
        break;
    case FREE_CLIENT:
        client_free(f, client);
        break;
    case CLOSE_CLIENT:
        client_forget(f, client);
        evlock_client_close(client, NULL, NULL);
        break;
    case WAYS_OUT:
        break;
    }
}

/* The release comes first or the giving up, or the grant is heard in between. */
static void who_gives_up_at_the_grant_does_not_keep_it(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(60000);

    for (int round = 0; round < 3 * WAYS_OUT * 4; round++) {
        enum give_up how = (enum give_up)(round % WAYS_OUT);
        struct record record = {0}, next = {0};
        evlock_client *client = another(f);
        evlock *holder = held(f, "a", &options);
        evlock *lock = joins(f, client, &options, &record), *heir;
        heir = joins(f, f->client, &options, &next);
        if (round % 3 == 0)
            gives_up(f, how, client, lock);
        assert_status(evlock_release(holder, NULL, NULL), EVLOCK_OK);
        for (int turn = 0; round % 3 == 2 && turn < round / 12; turn++)
            loop_turn(f->loop);
        if (round % 3 > 0)
            gives_up(f, how, client, lock);
        await(f, next.count && record.count);
        assert_ended(&next, EVLOCK_OK);
        assert_true(record.status == EVLOCK_ECANCELLED || (round % 3 == 2 && record.status == EVLOCK_OK));
        assert_true(is_the_servers(f, heir));
        assert_int_equal(waiting(f), 0);
        while (f->locks_len)
            lock_free(f, f->locks[0]);
        if (how < FREE_CLIENT)
            client_free(f, client);
        await(f, server_integer(f->server, "DBSIZE") == 0);
    }
}

/* In the callback of the release that granted it: the grant is not told yet, or was not heard yet. */
static void cancel_it(struct record *record) {
    evlock_cancel(record->then_arg);
}

static void a_cancel_beside_the_grant_wins(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(60000);

    for (int round = 0; round < 20; round++) {
        struct record record = {0}, release = {.then = cancel_it}, next = {0};
        evlock *holder = held(f, "a", &options);
        evlock *lock = joins(f, f->client, &options, &record);
        evlock *heir = joins(f, f->client, &options, &next);
        release.then_arg = lock;
        assert_status(evlock_release(holder, record_end, &release), EVLOCK_OK);
        await(f, record.count && release.count);
        assert_true(record.status == EVLOCK_ECANCELLED || record.order < release.order);
        if (record.status == EVLOCK_OK)
            assert_status(evlock_release(lock, NULL, NULL), EVLOCK_OK);
        await(f, next.count);
        assert_true(is_the_servers(f, heir));
        leaves_nothing(f);
    }
}

static void a_wait_that_ends_at_the_grant_ends_once(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(60000);
    int told[2] = {0};

    for (int round = 0; round < 40; round++) {
        struct record record = {0}, next = {0};
        evlock_options brief = options;
        brief.max_wait_ms = 20;
        evlock *holder = held(f, "a", &options), *lock = lock_new(f, "a", &brief);
        int64_t begun = evlock_clock_us();
        assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
        run_for(f, 17 + round % 4 - (evlock_clock_us() - begun) / 1000);
        assert_status(evlock_release(holder, NULL, NULL), EVLOCK_OK);
        await(f, record.count);
        assert_true(record.status == EVLOCK_OK || record.status == EVLOCK_ETIMEDOUT);
        told[record.status == EVLOCK_OK]++;
        assert_int_equal(evlock_is_held(lock), record.status == EVLOCK_OK);
        evlock *heir = lock_new(f, "a", &options);
        assert_status(evlock_acquire(heir, NULL, record_end, &next), EVLOCK_OK);
        if (record.status == EVLOCK_OK)
            assert_status(evlock_release(lock, NULL, NULL), EVLOCK_OK);
        await(f, next.count);
        assert_ended(&next, EVLOCK_OK);
        assert_int_equal(record.count, 1);
        leaves_nothing(f);
    }
    print_message("%d granted, %d timed out\n", told[1], told[0]);
}

/* It ends by its time also while the server does not answer a look, long before the client would give the server up. */
static void a_wait_ends_by_its_time_whatever_the_server_does(void **state) {
    struct fixture *f = *state;
    evlock_client_options enduring = client_options(f);
    evlock_options options = queueing(60000);
    struct record record = {0};
    evlock *holder = held(f, "a", &options);

    enduring.command_timeout_ms = 2 * WAIT_MS;
    options.max_wait_ms = 1000;
    evlock *lock = joins(f, client_new(f, NULL, &enduring), &options, &record);
    assert_status(await_query(f, lock, EVLOCK_QUERY_PLACE), EVLOCK_OK); /* it has heard that it waits */
    server_pause(f->server);
    await(f, record.count);
    assert_ended(&record, EVLOCK_ETIMEDOUT);
    assert_string_equal(record.error, "waiting in the queue");
    server_resume(f->server);
    assert_status(await_release(f, holder), EVLOCK_OK);
    leaves_nothing(f);
}

static void a_wait_ends_by_its_time_also_without_a_server(void **state) {
    struct fixture *f = *state;
    evlock_options options = queueing(60000);
    struct record record = {0};

    options.max_wait_ms = 1000;
    held(f, "a", &options);
    joins(f, f->client, &options, &record);
    server_kill9(f->server);
    await(f, record.count);
    assert_ended(&record, EVLOCK_ETIMEDOUT);
}

/* What the server said last is told, unless it never answered. */
static void a_silent_server_is_told_from_a_wait(void **state) {
    struct fixture *f = *state;
    evlock_options options = queueing(60000);
    struct record record = {0};

    options.max_wait_ms = 1000;
    evlock *lock = lock_new(f, "a", &options);
    await_connected(f, f->client);
    server_pause(f->server);
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    await(f, record.count);
    assert_ended(&record, EVLOCK_ETIMEDOUT);
    assert_string_equal(record.error, "no answer to the last attempt");
    server_resume(f->server);
    leaves_nothing(f);
}

/* --- Grants that are heard late ----------------------------------------------------------------------------------- */

/* A client whose connections go through the relay: 0 asks, 1 listens. */
static evlock_client *through_relay(struct fixture *f) {
    evlock_client_options options = client_options(f);
    relay_start(&f->relay, f->server);
    return client_new(f, f->relay.url, &options);
}

static evlock *joins_through_relay(struct fixture *f, evlock_client *client, const evlock_options *options,
                                   struct record *record) {
    evlock *lock = lock_new_on(f, client, "a", options);
    assert_status(evlock_acquire(lock, NULL, record_end, record), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && waiting(f) == 1);
    assert_int_equal(f->relay.count, 2);
    return lock;
}

static long long listeners(struct fixture *f) {
    return server_integer(f->server, "EVAL %s 0", "return #redis.call('PUBSUB', 'CHANNELS')");
}

static void pump_for(struct fixture *f, int64_t ms) {
    int64_t end = evlock_clock_us() + ms * 1000;
    await(f, relay_pump(&f->relay) && evlock_clock_us() > end);
}

static void frees_through_relay(struct fixture *f) {
    while (f->locks_len)
        lock_free(f, f->locks[0]);
    await(f, relay_pump(&f->relay) && server_integer(f->server, "DBSIZE") == 0);
}

static void a_late_message_does_not_prolong_the_lease(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(4000);
    evlock_client *client = through_relay(f);

    for (int round = 0; round < 3; round++) {
        struct record record = {0};
        evlock *holder = held(f, "a", &options);
        evlock *lock = joins_through_relay(f, client, &options, &record);
        pump_for(f, 200 * round); /* so old is its knowledge of the server's clock */
        f->relay.pairs[1].muted = true;
        assert_status(evlock_release(holder, NULL, NULL), EVLOCK_OK);
        await(f, relay_pump(&f->relay) && waiting(f) == 0);
        pump_for(f, 500);
        f->relay.pairs[1].muted = false;
        await(f, relay_pump(&f->relay) && record.count);
        assert_ended(&record, EVLOCK_OK);
        int64_t on_server = key_ttl(f->server, "a");
        assert_true(evlock_remaining_ms(lock) <= on_server && on_server > 0);
        lock_free(f, lock);
        lock_free(f, holder);
        await(f, relay_pump(&f->relay) && server_integer(f->server, "DBSIZE") == 0);
    }
}

/* The server refuses to hear about the library, as older ones do. Who listens has no answer any more. */
static void mute_who_subscribes(struct relay *relay, char *bytes, size_t len, bool to_server) {
    char *word;
    while (to_server && (word = memmem(bytes, len, "SETINFO", 7)))
        memcpy(word, "NOTHING", 7);
    if (to_server && memmem(bytes, len, "SUBSCRIBE", 9))
        relay->pairs[1].muted = true;
}

static void a_listener_that_ends_as_it_begins_is_no_sign_of_a_lack(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(20000);
    struct record record = {0};
    evlock_node_info info;
    evlock *holder = held(f, "a", &options);
    evlock_client *client = through_relay(f);

    f->relay.edit = mute_who_subscribes;
    evlock *lock = lock_new_on(f, client, "a", &options);
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && f->relay.pairs[1].muted);
    relay_cut(&f->relay, 1);
    await(f, relay_pump(&f->relay) && strstr(f->log, "next try in"));
    assert_null(strstr(f->log, "lacks messages"));
    assert_null(strstr(f->log, "NOTHING"));
    assert_status(evlock_client_node(client, 0, &info, sizeof(info)), EVLOCK_OK);
    assert_int_equal(info.missing & EVLOCK_MISSING_CHANNELS, 0);
    await(f, relay_pump(&f->relay) && waiting(f) == 1);
    assert_status(evlock_release(holder, NULL, NULL), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && record.count);
    assert_ended(&record, EVLOCK_OK);
    frees_through_relay(f);
}

/* Nor does one from a connection of which no look has said yet whose clock speaks there. */
static void a_message_on_a_new_connection_counts_from_the_look(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(20000);
    struct record record = {0};
    evlock_stats stats;
    evlock_client *client = through_relay(f);
    evlock *holder = held(f, "a", &options);
    evlock *lock = joins_through_relay(f, client, &options, &record);
    int64_t joined = evlock_clock_us();

    pump_for(f, 1000);
    f->relay.pairs[0].held = true; /* no look comes through any more */
    server_do(f->server, "CLIENT KILL TYPE pubsub");
    await(f, relay_pump(&f->relay) && f->relay.count == 3 && listeners(f) == 1);
    assert_null(strstr(f->log, "next try in")); /* one that has listened is replaced at once */
    assert_status(evlock_release(holder, NULL, NULL), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && record.count);
    assert_ended(&record, EVLOCK_OK);
    assert_true(evlock_is_held(lock));
    assert_true(evlock_remaining_ms(lock) <= key_ttl(f->server, "a"));
    assert_true(deadline_of(lock) <= joined + 20000 * 1000);
    assert_status(evlock_client_stats(client, &stats, sizeof(stats)), EVLOCK_OK);
    assert_int_equal(stats.handed, 1);
    f->relay.pairs[0].held = false;
    frees_through_relay(f);
}

/* The lease was over, and another had the lock, when the message came, behind the answer to a newer look. */
static void a_message_that_is_older_than_a_look_grants_nothing(void **state) {
    struct fixture *f = *state;
    evlock_options options = queueing(60000), rival_options = patient(60000);
    struct record record = {0};
    evlock_client *client = through_relay(f);
    evlock *holder = held(f, "a", &rival_options);
    evlock *lock = joins_through_relay(f, client, &options, &record);

    f->relay.pairs[0].held = f->relay.pairs[1].muted = true;
    assert_status(await_release(f, holder), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && waiting(f) == 0 && key_exists(f->server, "a"));
    server_do(f->server, "DEL a"); /* granted, and over */
    evlock *rival = held(f, "a", &rival_options);
    f->relay.pairs[0].held = false;
    await(f, relay_pump(&f->relay) && waiting(f) == 1); /* a look */
    pump_for(f, 50);                                    /* and its answer */
    f->relay.pairs[1].muted = false;
    pump_for(f, 200);
    assert_int_equal(record.count, 0);
    assert_false(evlock_is_held(lock));
    assert_true(is_the_servers(f, rival));
    assert_status(evlock_release(rival, NULL, NULL), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && record.count);
    assert_ended(&record, EVLOCK_OK);
    lock_free(f, lock);
    await(f, relay_pump(&f->relay) && server_integer(f->server, "DBSIZE") == 0);
}

/* They come before the answer to the first look, by which another could be known to be wrong. */
static void a_message_that_no_server_sends_grants_nothing(void **state) {
    static const char *const said[] = {"", "0 0", "-1 0", "1 -1", "1 0 0", "9223372036854775807 0"};
    struct fixture *f = *state;
    evlock_options options = patient(60000);
    struct record record = {0}, again = {0};
    char channel[128], ticket[32], message[128];
    evlock_client *client = through_relay(f);
    evlock *holder = held(f, "a", &options);
    evlock *lock = joins_through_relay(f, client, &options, &record);

    assert_status(evlock_release(holder, NULL, NULL), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && record.count); /* by a message: so it joins at once the next time */
    assert_status(evlock_release(lock, NULL, NULL), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && !key_exists(f->server, "a"));
    pump_for(f, 50);
    holder = held(f, "a", &options);
    f->relay.pairs[0].muted = true;
    assert_status(evlock_acquire(lock, NULL, record_end, &again), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && waiting(f) == 1);
    redisReply *waiter = server_command(f->server, "ZRANGE " QUEUE " 0 0");
    assert_int_equal(sscanf(waiter->element[0]->str, "%127s %31s", channel, ticket), 2);
    freeReplyObject(waiter);
    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
        snprintf(message, sizeof(message), "%s %s", ticket, said[i]);
        assert_int_equal(server_integer(f->server, "PUBLISH %s %s", channel, message), 1);
    }
    /* the place behind the client's last */
    assert_int_equal(server_integer(f->server, "PUBLISH %s %s", channel, "10-000000000000 1 0"), 1);
    pump_for(f, 50);
    assert_int_equal(again.count, 0);
    assert_status(evlock_release(holder, NULL, NULL), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && again.count);
    assert_ended(&again, EVLOCK_OK);
    f->relay.pairs[0].muted = false;
    frees_through_relay(f);
}

/* The connection that listens hangs, and the server does not know. */
static void a_grant_that_is_not_heard_is_found_by_a_look(void **state) {
    struct fixture *f = *state;
    evlock_options options = queueing(60000);
    struct record record = {0};
    evlock_stats stats;
    evlock_client *client = through_relay(f);
    evlock *holder = held(f, "a", &options);
    evlock *lock = joins_through_relay(f, client, &options, &record);

    f->relay.pairs[1].muted = true;
    assert_status(evlock_release(holder, NULL, NULL), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && record.count);
    assert_ended(&record, EVLOCK_OK);
    assert_true(is_the_servers(f, lock));
    assert_true(evlock_remaining_ms(lock) <= key_ttl(f->server, "a"));
    assert_status(evlock_client_stats(client, &stats, sizeof(stats)), EVLOCK_OK);
    assert_int_equal(stats.handed, 0);
    f->relay.pairs[1].muted = false; /* and now it comes */
    pump_for(f, 50);
    assert_int_equal(record.count, 1);
    assert_true(evlock_is_held(lock));
    lock_free(f, lock);
    await(f, relay_pump(&f->relay) && server_integer(f->server, "DBSIZE") == 0);
}

/* --- The first wait of a client ----------------------------------------------------------------------------------- */

/* An acquire that has found the lock held, while the client begins to listen: its look at the key stays in the relay,
 * and all that listens is there. */
static evlock *looks(struct fixture *f, const evlock_options *options, struct record *record) {
    evlock_client *client = through_relay(f);
    evlock *lock = lock_new_on(f, client, "a", options);

    await(f, relay_pump(&f->relay) && evlock_client_connection(client) == EVLOCK_CONNECTED);
    f->relay.pairs[0].muted = true;
    long long before = server_calls(f->server, "set");
    assert_status(evlock_acquire(lock, NULL, record_end, record), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && server_calls(f->server, "set") > before);
    f->relay.pairs[0].held = true;
    f->relay.pairs[0].muted = false;
    await(f, relay_pump(&f->relay) && f->relay.count == 2 && listeners(f) == 1);
    pump_for(f, 50);
    assert_int_equal(record->count, 0);
    assert_int_equal(server_calls(f->server, "zadd"), 0);
    return lock;
}

static void a_look_that_is_answered_late_joins_once(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(120000);
    struct record record = {0};

    options.retry_delay_ms = 2 * WAIT_MS; /* another plain attempt would be too late, but it takes a place */
    options.max_wait_ms = WAIT_MS;
    evlock *holder = held(f, "a", &options), *lock = looks(f, &options, &record);
    f->relay.pairs[0].held = false;
    await(f, relay_pump(&f->relay) && waiting(f) == 1);
    pump_for(f, 50);
    assert_int_equal(server_calls(f->server, "zadd"), 1);
    assert_status(evlock_release(holder, NULL, NULL), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && record.count);
    assert_ended(&record, EVLOCK_OK);
    assert_true(is_the_servers(f, lock));
    frees_through_relay(f);
}

static void a_look_that_fails_late_ends_once(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(60000);
    struct record record = {0};

    held(f, "a", &options);
    evlock *lock = looks(f, &options, &record);
    server_do(f->server, "DEL a");
    server_do(f->server, "RPUSH a x");
    f->relay.pairs[0].held = false;
    await(f, relay_pump(&f->relay) && record.count);
    pump_for(f, 50);
    assert_ended(&record, EVLOCK_EWRONGTYPE);
    server_do(f->server, "DEL a");
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && record.count == 2);
    assert_status(record.status, EVLOCK_OK);
    frees_through_relay(f);
}

static void a_look_whose_connection_ends_is_done_without(void **state) {
    struct fixture *f = *state;
    evlock_options options = queueing(60000);
    struct record record = {0};
    evlock *holder = held(f, "a", &options), *lock = looks(f, &options, &record);

    relay_cut(&f->relay, 0);
    await(f, relay_pump(&f->relay) && waiting(f) == 1);
    assert_status(evlock_release(holder, NULL, NULL), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && record.count);
    assert_ended(&record, EVLOCK_OK);
    assert_true(is_the_servers(f, lock));
    frees_through_relay(f);
}

static void a_wait_that_ends_with_a_look_in_flight_ends_once(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(60000), brief = patient(60000);
    struct record record = {0}, again = {0};

    brief.max_wait_ms = 3000;
    evlock *holder = held(f, "a", &options), *lock = looks(f, &brief, &record);
    await(f, relay_pump(&f->relay) && record.count);
    assert_ended(&record, EVLOCK_ETIMEDOUT);
    assert_status(evlock_release(holder, NULL, NULL), EVLOCK_OK);
    assert_status(evlock_acquire(lock, NULL, record_end, &again), EVLOCK_OK);
    f->relay.pairs[0].held = false; /* and now it is answered */
    await(f, relay_pump(&f->relay) && again.count);
    pump_for(f, 50);
    assert_ended(&again, EVLOCK_OK);
    assert_int_equal(record.count, 1);
    assert_true(is_the_servers(f, lock));
    frees_through_relay(f);
}

/* The pause before another plain attempt would outlast the wait, but the queue does not. */
static void a_wait_shorter_than_a_pause_is_waited(void **state) {
    struct fixture *f = *state;
    evlock_options options = queueing(120000);
    struct record record = {0};
    evlock *holder = held(f, "a", &options);

    options.retry_delay_ms = 2 * WAIT_MS;
    options.max_wait_ms = WAIT_MS;
    evlock *lock = joins(f, another(f), &options, &record);
    assert_status(await_release(f, holder), EVLOCK_OK);
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    assert_true(is_the_servers(f, lock));
    leaves_nothing(f);
}

static void a_wait_shorter_than_a_pause_ends_by_its_time(void **state) {
    struct fixture *f = *state;
    evlock_options options = queueing(120000);
    struct record record = {0};
    evlock_client_options deaf = quick(f);

    server_do(f->server, "ACL SETUSER worker on >work ~* resetchannels +@all");
    deaf.user = "worker";
    deaf.password = "work";
    held(f, "a", &options);
    options.retry_delay_ms = 2 * WAIT_MS;
    options.max_wait_ms = 300;
    evlock *lock = lock_new_on(f, client_new(f, NULL, &deaf), "a", &options);
    int64_t begun = evlock_clock_us();
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    await(f, record.count);
    assert_ended(&record, EVLOCK_ETIMEDOUT);
    assert_true(record.at - begun >= 300 * 1000);
    leaves_nothing(f);
}

/* --- Many who look anew ------------------------------------------------------------------------------------------- */

enum { HERD = 4000, STEP = 100 }; /* the least time between two looks, in microseconds */

static long long looks_seen(struct fixture *f) {
    return server_calls(f->server, "zadd");
}

/* They wait in one client's line, and hardly look. */
static void herd_waits(struct fixture *f, evlock *herd[HERD], evlock_client *client, struct record *record) {
    evlock_options options = patient(60000);

    for (int i = 0; i < HERD; i++) {
        assert_status(evlock_new(&herd[i], client, "a", EVLOCK_CSTRING, &options), EVLOCK_OK);
        assert_status(evlock_acquire(herd[i], NULL, record_end, record), EVLOCK_OK);
    }
    await(f, waiting(f) == HERD);
}

/* Since before they can have begun to look there were no more looks than steps: twice that, for those that are due by
 * themselves and the first in line. */
static void looks_come_one_by_one(struct fixture *f, long long before) {
    int64_t checked[2] = {evlock_clock_us(), evlock_clock_us()}, end = checked[0] + (int64_t)WAIT_MS * 1000;
    long long seen;

    while ((seen = looks_seen(f)) <= before + 10) {
        assert_true(checked[1] < end);
        checked[0] = checked[1];
        checked[1] = evlock_clock_us();
        loop_turn(f->loop);
    }
    assert_true(seen - before <= 2 * (evlock_clock_us() - checked[0]) / STEP + 20);
}

/* And each of them looks, and keeps its place. */
static void a_herd_looks_one_after_the_other(void **state) {
    static const char *const ended[] = {"pubsub", "normal"};
    struct fixture *f = *state;
    evlock_options options = patient(60000);
    static evlock *herd[HERD];
    struct record record = {0};
    evlock *holder = held(f, "a", &options);

    herd_waits(f, herd, another(f), &record);
    for (size_t i = 0; i < 2; i++) {
        long long before = looks_seen(f);
        server_do(f->server, "CLIENT KILL TYPE %s SKIPME yes", ended[i]);
        looks_come_one_by_one(f, before);
        await(f, looks_seen(f) >= before + HERD);
        assert_int_equal(waiting(f), HERD);
    }
    assert_int_equal(record.count, 0);
    assert_status(await_release(f, holder), EVLOCK_OK);
    await(f, record.count);
    assert_status(record.status, EVLOCK_OK);
    for (int i = 0; i < HERD; i++)
        evlock_free(herd[i]);
    leaves_nothing(f);
}

/* --- Processes that are stopped ----------------------------------------------------------------------------------- */

/* A process of its own, with one waiter. It ends with 0 when it holds what the server says it holds. */
struct waiter {
    struct server *server;
    int64_t ttl_ms;
};

static int wait_alone(void *arg) {
    const struct waiter *waiter = arg;
    struct server server = *waiter->server;
    struct fixture own;
    struct record record = {0};
    evlock_options options = patient(waiter->ttl_ms);
    evlock *lock;
    size_t len;

    server.side = NULL;
    if (!fixture_init(&own, &server) || !client_new(&own, NULL, NULL))
        return 2;
    lock = lock_new(&own, "a", &options);
    if (!ends(&own, evlock_acquire(lock, NULL, record_end, &record), &record, EVLOCK_OK))
        return 3;
    redisContext *side = redisConnectUnix(server.socket);
    redisReply *reply = side ? redisCommand(side, "GET a") : NULL;
    const void *token = evlock_token(lock, &len);
    bool same =
        reply && token && reply->type == REDIS_REPLY_STRING && reply->len == len && !memcmp(reply->str, token, len);
    bool fine = same || !evlock_is_held(lock); /* it may have ended between the two questions */
    freeReplyObject(reply);
    redisFree(side);
    fixture_free(&own);
    return fine ? 0 : 1;
}

static pid_t waiter_start(struct fixture *f, int64_t ttl_ms) {
    struct waiter waiter = {f->server, ttl_ms};
    long long before = waiting(f);

    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(2 * WAIT_MS / 1000);
        _exit(wait_alone(&waiter));
    }
    await(f, waiting(f) == before + 1);
    return pid;
}

static void who_was_stopped_beyond_its_lease_does_not_hold(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(60000);
    int status;

    for (int round = 0; round < 3; round++) {
        evlock *holder = held(f, "a", &options);
        pid_t child = waiter_start(f, 200);
        assert_int_equal(kill(child, SIGSTOP), 0);
        assert_int_equal(waitpid(child, &status, WUNTRACED), child);
        assert_status(await_release(f, holder), EVLOCK_OK);
        await(f, waiting(f) == 0 && !key_exists(f->server, "a"));
        evlock *rival = held(f, "a", &options);
        assert_int_equal(kill(child, SIGCONT), 0);
        await(f, waiting(f) == 1); /* it has come again */
        assert_true(is_the_servers(f, rival));
        assert_int_equal(waitpid(child, &status, WNOHANG), 0);
        assert_status(await_release(f, rival), EVLOCK_OK);
        await(f, waitpid(child, &status, WNOHANG) == child);
        assert_int_equal(status, 0);
        leaves_nothing(f);
    }
}

/* --- Crashes ------------------------------------------------------------------------------------------------------ */

static void waiters_that_crashed_are_passed_over(void **state) {
    enum { CRASHING = 3 };
    struct fixture *f = *state;
    evlock_options options = patient(60000);
    struct record record = {0};
    pid_t children[CRASHING];
    redisContext *nosy = redisConnectUnix(f->server->socket); /* hears all channels, and is nobody's client */
    redisReply *reply = redisCommand(nosy, "PSUBSCRIBE *");
    evlock *holder = held(f, "a", &options);

    assert_non_null(reply);
    freeReplyObject(reply);
    for (int i = 0; i < CRASHING; i++)
        children[i] = waiter_start(f, 60000);
    joins(f, f->client, &options, &record);
    for (int i = 0; i < CRASHING; i++) {
        assert_int_equal(kill(children[i], SIGKILL), 0);
        assert_int_equal(waitpid(children[i], NULL, 0), children[i]);
    }
    /* the server has seen their ends, when this process alone listens */
    await(f, listeners(f) == 1);
    assert_status(await_release(f, holder), EVLOCK_OK);
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    leaves_nothing(f);
    redisFree(nosy);
}

static void a_waiter_that_crashed_with_the_grant_holds_for_its_ttl_alone(void **state) {
    struct fixture *f = *state;
    evlock_options options = queueing(60000);
    struct record record = {0};
    int status;
    evlock *holder = held(f, "a", &options);
    pid_t child = waiter_start(f, 300);

    joins(f, f->client, &options, &record);
    assert_int_equal(kill(child, SIGSTOP), 0);
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    assert_status(await_release(f, holder), EVLOCK_OK);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    leaves_nothing(f);
}

/* --- Connections -------------------------------------------------------------------------------------------------- */

static void a_release_that_is_sent_again_does_not_end_the_next_lease(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(60000);
    struct record got = {0}, release = {0}, record = {0};
    evlock_client_options again = quick(f);

    relay_start(&f->relay, f->server);
    evlock *holder = lock_new_on(f, client_new(f, f->relay.url, &again), "a", &options);
    assert_status(evlock_acquire(holder, NULL, record_end, &got), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && got.count);
    evlock *lock = joins(f, f->client, &options, &record);
    f->relay.pairs[0].muted = true;
    assert_status(evlock_release(holder, record_end, &release), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && record.count);
    assert_ended(&record, EVLOCK_OK);
    assert_int_equal(release.count, 0);
    long long before = server_calls(f->server, "evalsha");
    relay_cut(&f->relay, 0);
    await(f, relay_pump(&f->relay) && release.count);
    assert_ended(&release, EVLOCK_OK);
    assert_true(server_calls(f->server, "evalsha") > before);
    assert_true(evlock_is_held(lock));
    assert_true(is_the_servers(f, lock));
    assert_status(evlock_release(lock, NULL, NULL), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && server_integer(f->server, "DBSIZE") == 0);
}

static void a_waiter_outlives_its_connections(void **state) {
    static const char *const kills[] = {"CLIENT KILL TYPE pubsub", "CLIENT KILL TYPE normal"};
    struct fixture *f = *state;
    evlock_options options = queueing(60000);

    for (int round = 0; round < 12; round++) {
        struct record records[3] = {0};
        evlock *holder = held(f, "a", &options);
        for (int i = 0; i < 3; i++)
            joins(f, f->client, &options, &records[i]);
        if (round % 3 == 0) { /* before the release, with time to come back, or without */
            server_do(f->server, kills[round % 2]);
            run_for(f, round);
        }
        assert_status(evlock_release(holder, NULL, NULL), EVLOCK_OK);
        if (round % 3 == 1) { /* with the grant */
            await(f, waiting(f) < 3);
            server_do(f->server, kills[round % 2]);
        }
        if (round % 3 == 2) { /* with both */
            loop_turn(f->loop);
            server_do(f->server, kills[0]);
            server_do(f->server, kills[1]);
        }
        int served = 0;
        while (served < 3) {
            await(f, records[0].count + records[1].count + records[2].count > served);
            served = records[0].count + records[1].count + records[2].count;
            for (int i = 0; i < 3; i++)
                if (records[i].count && evlock_is_held(f->locks[f->locks_len - 3 + (size_t)i])) {
                    assert_ended(&records[i], EVLOCK_OK);
                    evlock_release(f->locks[f->locks_len - 3 + (size_t)i], NULL, NULL);
                }
        }
        leaves_nothing(f);
    }
}

/* It comes back as soon as it listens, seconds before it would look. */
static void a_waiter_that_was_passed_over_comes_back(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(60000);
    bool soon = false;

    for (int tries = 0; tries < 5 && !soon; tries++) {
        struct record record = {0};
        evlock *holder = held(f, "a", &options);
        joins(f, f->client, &options, &record);
        server_do(f->server, "CLIENT KILL TYPE pubsub");
        int64_t begun = evlock_clock_us();
        assert_status(evlock_release(holder, NULL, NULL), EVLOCK_OK);
        await(f, record.count);
        assert_ended(&record, EVLOCK_OK);
        soon = record.at - begun < 2000 * 1000;
        leaves_nothing(f);
    }
    assert_true(soon);
}

/* Where nobody may listen, waiters poll; and so they do while they cannot. */
static void who_cannot_listen_polls(void **state) {
    struct fixture *f = *state;
    evlock_options options = queueing(60000);
    struct record record = {0};
    evlock_client_options worker = quick(f);

    server_do(f->server, "ACL SETUSER worker on >work ~* resetchannels +@all");
    worker.user = "worker";
    worker.password = "work";
    evlock_client *client = client_new(f, NULL, &worker);
    evlock *holder = held(f, "a", &options), *lock = lock_new_on(f, client, "a", &options);
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    run_for(f, 300);
    assert_int_equal(record.count, 0);
    assert_int_equal(waiting(f), 0);
    assert_status(await_release(f, holder), EVLOCK_OK);
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    assert_non_null(strstr(f->log, "NOPERM"));
    leaves_nothing(f);
}

/* --- The server --------------------------------------------------------------------------------------------------- */

static void scripts_that_the_server_lost_are_loaded_again(void **state) {
    struct fixture *f = *state;
    evlock_options options = queueing(60000);
    struct record first = {0}, second = {0};
    evlock *holder = held(f, "a", &options);

    server_do(f->server, "SCRIPT FLUSH");
    evlock *a = joins(f, f->client, &options, &first);
    server_do(f->server, "SCRIPT FLUSH");
    joins(f, f->client, &options, &second);
    server_do(f->server, "SCRIPT FLUSH");
    assert_status(await_release(f, holder), EVLOCK_OK);
    await(f, first.count);
    server_do(f->server, "SCRIPT FLUSH");
    assert_status(await_release(f, a), EVLOCK_OK);
    await(f, second.count);
    assert_ended(&second, EVLOCK_OK);
    leaves_nothing(f);
}

/* The order is as they come back, and the lock is not held any more. */
static void waiters_outlive_a_server_without_its_data(void **state) {
    struct fixture *f = *state;
    evlock_options options = queueing(60000);
    struct record first = {0}, second = {0};
    evlock_client *client = another(f);

    held(f, "a", &options);
    evlock *a = joins(f, client, &options, &first), *b = joins(f, client, &options, &second);
    server_restart(f->server);
    await(f, first.count || second.count);
    evlock *winner = first.count ? a : b;
    assert_true(is_the_servers(f, winner));
    assert_status(await_release(f, winner), EVLOCK_OK);
    await(f, first.count && second.count);
    assert_ended(&first, EVLOCK_OK);
    assert_ended(&second, EVLOCK_OK);
    leaves_nothing(f);
}

static bool has_loaded(struct fixture *f) {
    redisReply *reply = server_command(f->server, "PING");
    bool loaded = reply->type == REDIS_REPLY_STATUS;

    freeReplyObject(reply);
    return loaded;
}

/* Who is asking when the server ends loses its place. These have been answered, and look seldom. */
static void waiters_outlive_a_server_with_its_data(void **state) {
    static const char *const durable[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
    struct fixture *f = *state;
    evlock_options options = patient(60000);
    struct record first = {0}, second = {0};

    server_stop(&suite_server);
    server_start(&suite_server, true, durable);
    evlock_client *client = another(f);
    evlock *holder = lock_new_on(f, client, "a", &options);
    assert_status(await_acquire(f, holder, NULL), EVLOCK_OK);
    evlock *a = joins(f, client, &options, &first), *b = joins(f, client, &options, &second);
    assert_int_equal(ask_place(f, b), 2);
    server_restart(f->server);
    await(f, has_loaded(f) && listeners(f) == 1);
    assert_int_equal(waiting(f), 2);
    assert_true(is_the_servers(f, holder));
    run_for(f, 300);
    assert_int_equal(first.count + second.count, 0);
    assert_status(await_release(f, holder), EVLOCK_OK);
    await(f, first.count);
    assert_int_equal(second.count, 0);
    assert_true(is_the_servers(f, a));
    assert_status(await_release(f, a), EVLOCK_OK);
    await(f, second.count);
    assert_true(is_the_servers(f, b));
    leaves_nothing(f);
}

static void a_queue_that_is_none_is_told(void **state) {
    struct fixture *f = *state;
    evlock_options options = queueing(60000);
    evlock *holder = held(f, "a", &options), *lock = lock_new(f, "a", &options);

    server_do(f->server, "SET " QUEUE " x");
    assert_status(await_acquire(f, lock, NULL), EVLOCK_EWRONGTYPE);
    assert_non_null(strstr(f->ended.error, "WRONGTYPE"));
    assert_status(await_release(f, holder), EVLOCK_OK);
    assert_false(key_exists(f->server, "a"));
    assert_status(await_try(f, lock), EVLOCK_OK);
    assert_status(await_release(f, lock), EVLOCK_OK);
    server_do(f->server, "DEL " QUEUE);
    leaves_nothing(f);
}

/* Whoever waited leaves the queue, which is not only to go by its own expiry. */
static void a_lock_that_becomes_none_ends_the_wait(void **state) {
    struct fixture *f = *state;
    evlock_options options = queueing(60000);
    struct record records[4] = {0};
    evlock *last = NULL;

    held(f, "a", &options);
    for (int i = 0; i < 4; i++)
        last = joins(f, f->client, &options, &records[i]);
    server_do(f->server, "EVAL %s 0", "redis.call('DEL', 'a') redis.call('RPUSH', 'a', 'x')");
    assert_status(evlock_cancel(last), EVLOCK_OK);
    for (int i = 0; i < 4; i++)
        await(f, records[i].count);
    for (int i = 0; i < 3; i++)
        assert_ended(&records[i], EVLOCK_EWRONGTYPE);
    await(f, waiting(f) == 0);
    server_do(f->server, "DEL a");
    leaves_nothing(f);
}

/* --- Rights ------------------------------------------------------------------------------------------------------- */

#define RIGHTS "+get +set +del +pttl +pexpire +time +evalsha +script|load +client|id +client|kill +info"

/* Without a right on the queue the wait ends with a clear error; without the rights of the listening, it polls. */
static void a_missing_right_is_told_or_done_without(void **state) {
    static const struct {
        const char *rights;
        int status;
    } cases[] = {
        {"+@all &* -zadd", EVLOCK_EPERM},   {"+@all resetchannels", EVLOCK_OK},
        {"+@all &* -publish", EVLOCK_OK},   {"+@all &* -pubsub", EVLOCK_OK},
        {"+@all &* -subscribe", EVLOCK_OK}, {"resetchannels -@all " RIGHTS, EVLOCK_OK},
    };
    struct fixture *f = *state;
    evlock_options options = queueing(60000);

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct record record = {0};
        char command[300];
        evlock_client_options worker = quick(f);
        snprintf(command, sizeof(command), "ACL SETUSER worker reset on >work ~* %s", cases[i].rights);
        server_do(f->server, command);
        worker.user = "worker";
        worker.password = "work";
        evlock_client *client = client_new(f, NULL, &worker);
        evlock *holder = held(f, "a", &options), *lock = lock_new_on(f, client, "a", &options);
        assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
        run_for(f, 200);
        assert_int_equal(record.count, cases[i].status != EVLOCK_OK);
        assert_status(await_release(f, holder), EVLOCK_OK);
        await(f, record.count);
        assert_ended(&record, cases[i].status);
        if (cases[i].status != EVLOCK_OK)
            assert_string_not_equal(record.error, "");
        leaves_nothing(f);
        client_free(f, client);
    }
}

/* A holder that may not grant frees the lock all the same, and its waiters find that. */
static void who_may_not_grant_still_releases(void **state) {
    static const char *const rights[] = {("-@all " RIGHTS), "+@all resetchannels", "+@all &* -zpopmin -zrange"};
    struct fixture *f = *state;
    evlock_options options = queueing(60000);

    for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++) {
        struct record record = {0};
        char command[300];
        evlock_client_options worker = quick(f);
        snprintf(command, sizeof(command), "ACL SETUSER worker reset on >work ~* %s", rights[i]);
        server_do(f->server, command);
        worker.user = "worker";
        worker.password = "work";
        evlock *holder = lock_new_on(f, client_new(f, NULL, &worker), "a", &options);
        assert_status(await_acquire(f, holder, NULL), EVLOCK_OK);
        joins(f, f->client, &options, &record);
        assert_status(await_release(f, holder), EVLOCK_OK);
        await(f, record.count);
        assert_ended(&record, EVLOCK_OK);
        leaves_nothing(f);
    }
}

/* Its connection stands, so each of its waiters is granted the lock in turn, and only the end of its ttl ends that. Who
 * found out does not leave the next of them to the time at which it would have looked. */
static void who_found_a_holder_gone_looks_again_at_the_end_of_the_next(void **state) {
    enum { STOPPED = 6 };
    struct fixture *f = *state;
    struct record record = {0};
    evlock_options options = patient(60000);
    redisContext *silent = redisConnectUnix(f->server->socket);
    redisReply *reply = redisCommand(silent, "SUBSCRIBE stopped");
    assert_non_null(reply);
    freeReplyObject(reply);
    server_do(f->server, "SET a stranger PX 600000");
    server_do(f->server, "EVAL %s 1 " QUEUE " %d",
              "for i = 1, ARGV[1] do redis.call('ZADD', KEYS[1], i, 'stopped ' .. i .. ' 300 0 stopped') end", STOPPED);
    joins(f, f->client, &options, &record);
    server_do(f->server, "DEL a");
    await(f, key_is(f->server, "a", "stopped", 7));
    int64_t begun = evlock_clock_us();
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    assert_true(evlock_clock_us() - begun < STOPPED * INT64_C(2500000) - 5000000); /* two looks less */
    redisFree(silent);
}

/* The machine may be late now and then, but a wait of this kind is not: one of a few ends within LATE_MS. Where it
 * ended with the next thing that it had to do, it would be after some seconds each time. */
enum { BRIEF_MS = 200, LATE_MS = 1500, ROUNDS = 4 };

static bool ends_in_time(struct fixture *f, evlock_client *client, int64_t retry_delay_ms) {
    for (int i = 0; i < ROUNDS; i++) {
        struct record record = {0};
        evlock_options options = patient(60000);
        options.max_wait_ms = BRIEF_MS;
        options.retry_delay_ms = retry_delay_ms;
        evlock *lock = lock_new_on(f, client, "a", &options);
        int64_t begun = evlock_clock_us();
        assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
        await(f, record.count);
        assert_ended(&record, EVLOCK_ETIMEDOUT);
        assert_true(evlock_clock_us() - begun >= BRIEF_MS * INT64_C(1000));
        if (evlock_clock_us() - begun < LATE_MS * INT64_C(1000))
            return true;
    }
    return false;
}

static void a_wait_in_line_ends_in_time(void **state) {
    struct fixture *f = *state;
    evlock_client_options enduring = client_options(f);
    enduring.command_timeout_ms = 2 * WAIT_MS;
    evlock_client *client = client_new(f, NULL, &enduring);
    server_do(f->server, "SET a stranger PX 600000");
    assert_true(ends_in_time(f, client, 10000)); /* long before its first look */
    server_pause(f->server);
    assert_true(ends_in_time(f, client, 10)); /* with an attempt unanswered */
    server_resume(f->server);
}

/* It cannot join, and polls. */
static void a_wait_that_cannot_join_ends_in_time(void **state) {
    struct fixture *f = *state;
    evlock_client_options worker = quick(f);
    server_do(f->server, "ACL SETUSER worker reset on >work ~* +@all resetchannels");
    worker.user = "worker";
    worker.password = "work";
    evlock_client *client = client_new(f, NULL, &worker);
    server_do(f->server, "SET a stranger PX 600000");
    assert_true(ends_in_time(f, client, 10000));
}

/* What was late before it began is no reason to let it go on. */
static void a_wait_after_a_stall_ends_in_time(void **state) {
    struct fixture *f = *state;
    evlock_client *client = another(f);
    struct record record = {0};
    evlock_options options = queueing(60000);
    server_do(f->server, "SET a stranger PX 600000");
    evlock *lock = joins(f, client, &options, &record); /* has something due all the time */
    for (int i = 0; i < ROUNDS; i++) {
        struct record brief = {0};
        evlock_options after = patient(60000);
        after.max_wait_ms = 50;
        evlock *next = lock_new_on(f, client, "a", &after);
        usleep(900 * 1000);
        run_for(f, 1);
        int64_t begun = evlock_clock_us();
        assert_status(evlock_acquire(next, NULL, record_end, &brief), EVLOCK_OK);
        await(f, brief.count);
        assert_ended(&brief, EVLOCK_ETIMEDOUT);
        if (evlock_clock_us() - begun < 500 * 1000) {
            assert_status(evlock_cancel(lock), EVLOCK_OK);
            return;
        }
    }
    fail_msg("a wait of 50 ms never ended within 500 ms");
}

/* --- With the rest of the library --------------------------------------------------------------------------------- */

static void a_close_gives_up_what_waits(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(60000);
    struct record records[3] = {0};
    evlock_client *client = another(f);
    evlock *holder = held(f, "a", &options);

    for (int i = 0; i < 3; i++)
        joins(f, client, &options, &records[i]);
    assert_status(await_close(f, client), EVLOCK_OK);
    for (int i = 0; i < 3; i++)
        assert_ended(&records[i], EVLOCK_ECANCELLED);
    assert_int_equal(waiting(f), 0);
    assert_status(await_release(f, holder), EVLOCK_OK);
    leaves_nothing(f);
}

/* It waits on in the queue, where it has no ttl before its turn comes. */
static void a_close_tells_of_a_waiter_that_it_may_not_take_out(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock_options options = patient(300);
    evlock_client_options worker = quick(f);
    server_do(f->server, "ACL SETUSER worker reset on >work ~* +@all &* -zrem");
    worker.user = "worker";
    worker.password = "work";
    evlock_client *client = client_new(f, NULL, &worker);
    server_do(f->server, "SET a stranger PX 600000");
    evlock *lock = joins(f, client, &options, &record);
    assert_status(evlock_cancel(lock), EVLOCK_OK);
    await(f, record.count);
    run_for(f, 2 * options.ttl_ms);
    assert_int_equal(waiting(f), 1);
    assert_status(await_close(f, client), EVLOCK_EUNREACHABLE);
}

/* What it held is granted to another's waiter, and not to its own, who go with it and would each have to be undone. */
static void a_freed_client_grants_nothing_to_its_own(void **state) {
    enum { WAITERS = 300 };
    struct fixture *f = *state;
    evlock_options options = patient(60000);
    struct record next = {0};
    evlock_client *client = another(f);
    evlock *locks[WAITERS], *holder = lock_new_on(f, client, "a", &options);

    assert_status(await_acquire(f, holder, NULL), EVLOCK_OK);
    for (int i = 0; i < WAITERS; i++) {
        assert_status(evlock_new(&locks[i], client, "a", 1, &options), EVLOCK_OK);
        assert_status(evlock_acquire(locks[i], NULL, NULL, NULL), EVLOCK_OK);
    }
    await(f, waiting(f) == WAITERS);
    evlock *heir = joins(f, f->client, &options, &next);
    client_free(f, client);
    await(f, next.count); /* half its ttl at most, and it looks for itself every few seconds */
    assert_ended(&next, EVLOCK_OK);
    assert_true(is_the_servers(f, heir));
    for (int i = 0; i < WAITERS; i++)
        evlock_free(locks[i]);
    leaves_nothing(f);
}

static evlock *waiter_of_parent;
static evlock_client *client_of_parent;

static int use_parents_waiter(void *arg) {
    struct record record = {0};
    evlock_stats stats;

    (void)arg;
    if (evlock_cancel(waiter_of_parent) != EVLOCK_EFORKED || evlock_is_held(waiter_of_parent) ||
        evlock_query(waiter_of_parent, EVLOCK_QUERY_PLACE, record_answer, &record) != EVLOCK_EFORKED)
        return 1;
    if (evlock_waited_ms(waiter_of_parent) != 0)
        return 2;
    if (evlock_client_stats(client_of_parent, &stats, sizeof(stats)) != EVLOCK_EFORKED || !evlock_last_error()[0])
        return 3;
    evlock_free(waiter_of_parent);
    evlock_client_free(client_of_parent);
    return 0;
}

static void a_forked_childs_copy_gives_up_nothing(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(60000);
    struct record record = {0};
    evlock *holder = held(f, "a", &options);

    client_of_parent = another(f);
    waiter_of_parent = joins(f, client_of_parent, &options, &record);
    run_for(f, 50);
    assert_true(evlock_waited_ms(waiter_of_parent) > 0);
    assert_int_equal(in_child(use_parents_waiter, NULL), 0);
    assert_int_equal(waiting(f), 1);
    assert_status(await_release(f, holder), EVLOCK_OK);
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    leaves_nothing(f);
}

static bool is_replicated(struct fixture *f) {
    return server_integer(f->server, "EVAL %s 0",
                          "return string.find(redis.call('INFO', 'replication'), 'state=online') and 1 or 0");
}

static void a_grant_is_confirmed_by_replicas(void **state) {
    struct fixture *f = *state;
    evlock_options options = queueing(20000), none = queueing(20000);
    struct record record = {0}, too_many = {0};
    struct server replica = {0};
    size_t len;

    server_start(&replica, true, NULL);
    server_do(f->server, "CONFIG SET repl-diskless-sync-delay 0");
    server_do(&replica, "REPLICAOF 127.0.0.1 %d", f->server->port);
    await(f, is_replicated(f));
    options.min_replicas = 1;
    none.min_replicas = 2;
    options.replica_timeout_ms = 4000;
    none.replica_timeout_ms = 100;
    evlock *holder = held(f, "a", &options);
    evlock *lock = joins(f, f->client, &options, &record);
    evlock *hopeless = joins(f, f->client, &none, &too_many);
    assert_status(await_release(f, holder), EVLOCK_OK);
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    const void *token = evlock_token(lock, &len);
    assert_true(key_is(&replica, "a", token, len));
    assert_status(await_release(f, lock), EVLOCK_OK);
    run_for(f, 500);
    assert_int_equal(too_many.count, 0); /* it tries for as long as it may */
    assert_status(evlock_cancel(hopeless), EVLOCK_OK);
    leaves_nothing(f);
    server_stop(&replica);
}

/* Nothing of it is under way when the connection ends, and it does not look for a long while. */
static void who_is_in_line_may_fail_when_the_server_is_away(void **state) {
    struct fixture *f = *state;
    evlock_client *client = another(f);
    evlock_options options = patient(60 * 1000);
    struct record waits = {0}, stays = {0};
    held(f, "a", NULL);
    joins(f, client, &options, &stays);
    options.fail_when_away = true;
    joins(f, client, &options, &waits);
    server_kill9(f->server);
    await(f, waits.count);
    assert_ended(&waits, EVLOCK_EUNREACHABLE);
    assert_int_equal(stays.count, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        FAULT(who_looks_late_gets_a_whole_ttl),
        FAULT(who_gives_up_at_the_grant_does_not_keep_it),
        FAULT(a_cancel_beside_the_grant_wins),
        FAULT(a_wait_that_ends_at_the_grant_ends_once),
        FAULT(a_wait_ends_by_its_time_whatever_the_server_does),
        FAULT(a_wait_ends_by_its_time_also_without_a_server),
        FAULT(a_silent_server_is_told_from_a_wait),
        FAULT(a_late_message_does_not_prolong_the_lease),
        FAULT(a_listener_that_ends_as_it_begins_is_no_sign_of_a_lack),
        FAULT(a_message_on_a_new_connection_counts_from_the_look),
        FAULT(a_message_that_is_older_than_a_look_grants_nothing),
        FAULT(a_message_that_no_server_sends_grants_nothing),
        FAULT(a_grant_that_is_not_heard_is_found_by_a_look),
        FAULT(a_look_that_is_answered_late_joins_once),
        FAULT(a_look_that_fails_late_ends_once),
        FAULT(a_look_whose_connection_ends_is_done_without),
        FAULT(a_wait_that_ends_with_a_look_in_flight_ends_once),
        FAULT(a_wait_shorter_than_a_pause_is_waited),
        FAULT(a_wait_shorter_than_a_pause_ends_by_its_time),
        FAULT(a_herd_looks_one_after_the_other),
        FAULT(who_was_stopped_beyond_its_lease_does_not_hold),
        FAULT(waiters_that_crashed_are_passed_over),
        FAULT(a_waiter_that_crashed_with_the_grant_holds_for_its_ttl_alone),
        FAULT(a_release_that_is_sent_again_does_not_end_the_next_lease),
        FAULT(a_waiter_outlives_its_connections),
        FAULT(a_waiter_that_was_passed_over_comes_back),
        FAULT(who_cannot_listen_polls),
        FAULT(scripts_that_the_server_lost_are_loaded_again),
        FAULT(waiters_outlive_a_server_without_its_data),
        FAULT(waiters_outlive_a_server_with_its_data),
        FAULT(a_queue_that_is_none_is_told),
        FAULT(a_lock_that_becomes_none_ends_the_wait),
        FAULT(a_missing_right_is_told_or_done_without),
        FAULT(who_found_a_holder_gone_looks_again_at_the_end_of_the_next),
        FAULT(a_wait_in_line_ends_in_time),
        FAULT(a_wait_that_cannot_join_ends_in_time),
        FAULT(a_wait_after_a_stall_ends_in_time),
        FAULT(who_may_not_grant_still_releases),
        FAULT(a_close_gives_up_what_waits),
        FAULT(a_close_tells_of_a_waiter_that_it_may_not_take_out),
        FAULT(a_freed_client_grants_nothing_to_its_own),
        FAULT(a_forked_childs_copy_gives_up_nothing),
        FAULT(a_grant_is_confirmed_by_replicas),
        FAULT(who_is_in_line_may_fail_when_the_server_is_away),
    };
    return run_suite("queue_faults", tests);
}
