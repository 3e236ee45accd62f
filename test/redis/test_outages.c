/*
 * Connections that end, and servers that fall silent, with commands unanswered: every call ends once, and in the end no
 * key is left that nobody holds, also where a command runs long after its connection was given up. Each test may leave
 * its server in any state: the next one gets a new process.
 */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>

#define OUTAGE_TEST(function) cmocka_unit_test_setup_teardown(function, fixture_setup_bare, fixture_teardown_restart)

/* A client, connected, that gives a silent server up after `command_timeout_ms`, or not in this test if that is 0. */
static evlock_client *client_at(struct fixture *f, const char *url, int64_t command_timeout_ms) {
    evlock_client_options options = client_options(f);
    options.command_timeout_ms = command_timeout_ms ? command_timeout_ms : 2 * WAIT_MS;
    options.connect_timeout_ms = 2 * WAIT_MS;
    options.backoff_min_ms = 10;
    options.backoff_max_ms = 100;
    return client_new(f, url, &options);
}

static evlock *held(struct fixture *f, const char *name) {
    evlock *lock = lock_new(f, name, NULL);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    return lock;
}

/* One call of each kind, unanswered. */
struct calls {
    evlock *acquiring, *released, *extended, *adopting, *broken, *asked;
    struct record acquire, release, extend, adopt, break_, locked;
};

static void hold_for_calls(struct fixture *f, struct calls *calls) {
    *calls = (struct calls){0};
    calls->acquiring = lock_new(f, "acquired", NULL);
    calls->released = held(f, "released");
    calls->extended = held(f, "extended");
    calls->adopting = lock_new(f, "adopted", NULL);
    calls->broken = lock_new(f, "broken", NULL);
    calls->asked = lock_new(f, "asked", NULL);
    server_do(f->server, "SET adopted stranger PX 600000");
    server_do(f->server, "SET broken stranger PX 600000");
}

static void make_calls(struct calls *calls) {
    assert_status(evlock_acquire(calls->acquiring, NULL, record_end, &calls->acquire), EVLOCK_OK);
    assert_status(evlock_release(calls->released, record_end, &calls->release), EVLOCK_OK);
    assert_status(evlock_extend(calls->extended, 5000, EVLOCK_EXTEND_ADD, record_end, &calls->extend), EVLOCK_OK);
    assert_status(evlock_adopt(calls->adopting, "stranger", EVLOCK_CSTRING, record_end, &calls->adopt), EVLOCK_OK);
    assert_status(evlock_break(calls->broken, record_end, &calls->break_), EVLOCK_OK);
    assert_status(evlock_query(calls->asked, EVLOCK_QUERY_LOCKED, record_answer, &calls->locked), EVLOCK_OK);
}

/* The acquire, the release and the questions are seen through on the next connection; of the rest nobody knows. */
static void await_calls(struct fixture *f, struct calls *calls) {
    await(f, calls->acquire.count && calls->release.count && calls->extend.count && calls->adopt.count &&
                 calls->break_.count && calls->locked.count);
    run_for(f, 100);
    assert_ended(&calls->acquire, EVLOCK_OK);
    assert_ended(&calls->release, EVLOCK_OK);
    assert_ended(&calls->extend, EVLOCK_EUNREACHABLE);
    assert_ended(&calls->adopt, EVLOCK_EUNREACHABLE);
    assert_ended(&calls->break_, EVLOCK_OK);
    assert_ended(&calls->locked, EVLOCK_OK);
    assert_true(evlock_is_held(calls->acquiring));
    assert_true(evlock_is_held(calls->extended));
    assert_false(key_exists(f->server, "released"));
    assert_false(key_exists(f->server, "broken"));
    assert_true(key_is(f->server, "adopted", "stranger", 8));
    assert_status(await_release(f, calls->acquiring), EVLOCK_OK);
    assert_status(await_release(f, calls->extended), EVLOCK_OK);
    server_do(f->server, "DEL adopted");
    assert_int_equal(server_integer(f->server, "DBSIZE"), 0);
}

/* --- Ended connections -------------------------------------------------------------------------------------------- */

static void client_kill_loses_nothing(void **state) {
    struct fixture *f = *state;
    struct calls calls;
    client_at(f, NULL, 0);
    hold_for_calls(f, &calls);
    server_do(f->server, "CLIENT PAUSE 3600000 WRITE"); /* what writes waits; the rest is answered */
    make_calls(&calls);
    run_for(f, 100);
    assert_int_equal(calls.acquire.count, 0);
    server_do(f->server, "CLIENT KILL TYPE normal");
    run_for(f, 100);
    server_do(f->server, "CLIENT UNPAUSE");
    await_calls(f, &calls);
    assert_int_equal(f->connection_states[EVLOCK_AWAY], 0); /* a connection that served is replaced quietly */
}

static void client_kill_of_an_idle_connection_is_quiet(void **state) {
    struct fixture *f = *state;
    client_at(f, NULL, 0);
    evlock *lock = held(f, "a");
    server_do(f->server, "CLIENT KILL TYPE normal");
    await(f, f->connection_states[EVLOCK_CONNECTED] == 2);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_int_equal(f->connection_states[EVLOCK_AWAY], 0);
}

static void the_servers_idle_timeout_is_quiet(void **state) {
    struct fixture *f = *state;
    client_at(f, NULL, 0);
    evlock *lock = held(f, "a");
    server_do(f->server, "CONFIG SET timeout 1");
    await(f, f->connection_states[EVLOCK_CONNECTED] >= 3);
    server_do(f->server, "CONFIG SET timeout 0");
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_int_equal(f->connection_states[EVLOCK_AWAY], 0);
}

static void a_server_killed_and_restarted_loses_no_call(void **state) {
    struct fixture *f = *state;
    struct calls calls;
    client_at(f, NULL, 0);
    hold_for_calls(f, &calls);
    server_pause(f->server);
    make_calls(&calls);
    run_for(f, 100);
    server_restart(f->server);
    await(f, calls.acquire.count && calls.release.count && calls.extend.count && calls.adopt.count &&
                 calls.break_.count && calls.locked.count);
    run_for(f, 100);
    assert_ended(&calls.acquire, EVLOCK_OK);
    assert_ended(&calls.release, EVLOCK_OK); /* before its deadline nobody but the release can have deleted it */
    assert_ended(&calls.extend, EVLOCK_EUNREACHABLE);
    assert_ended(&calls.adopt, EVLOCK_EUNREACHABLE);
    assert_int_equal(calls.break_.count, 1);
    assert_int_equal(calls.locked.count, 1);
    assert_status(await_release(f, calls.acquiring), EVLOCK_OK);
    assert_status(await_release(f, calls.extended), EVLOCK_ENOTOWNED);
    assert_int_equal(server_integer(f->server, "DBSIZE"), 0);
}

/* --- The next connection ------------------------------------------------------------------------------------------ */

static void a_connection_that_was_of_no_use_is_replaced_after_a_pause(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = client_options(f);
    options.backoff_min_ms = 10;
    options.backoff_max_ms = 2 * WAIT_MS; /* one that lasted so long would be of use */
    client_new(f, NULL, &options);
    assert_status(await_release(f, held(f, "a")), EVLOCK_OK);
    server_do(f->server, "CLIENT KILL TYPE normal");
    await(f, f->connection_states[EVLOCK_CONNECTED] == 2);
    assert_int_equal(f->connection_states[EVLOCK_AWAY], 0);
    server_do(f->server, "CLIENT KILL TYPE normal"); /* this one has answered nothing */
    await(f, f->connection_states[EVLOCK_CONNECTED] == 3);
    assert_int_equal(f->connection_states[EVLOCK_AWAY], 1);
}

/* The last pause that was logged since then, in milliseconds; -1: none was. */
static int last_pause(const struct fixture *f, size_t since) {
    static const char said[] = "next try in ";
    int pause = -1;
    for (const char *at = f->log ? f->log + since : NULL; at && (at = strstr(at, said)); at++)
        pause = atoi(at + strlen(said));
    return pause;
}

static void pauses_begin_anew_when_a_connection_was_of_use(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = client_options(f);
    options.backoff_min_ms = 10;
    options.backoff_max_ms = 2 * WAIT_MS;
    server_kill9(f->server);
    client_new(f, NULL, &options);
    await(f, last_pause(f, 0) > 50);
    server_restart(f->server);
    assert_status(await_release(f, held(f, "a")), EVLOCK_OK);
    size_t before = f->log_len;
    server_kill9(f->server);
    await(f, last_pause(f, before) >= 0);
    assert_int_in_range(last_pause(f, before), 0, 10);
}

/* One that answers and is ended then, time and again: the first is replaced at once, and pauses grow from there. */
static void pauses_grow_while_connections_do_not_last(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = client_options(f);
    evlock *lock;
    options.backoff_min_ms = 400;
    options.backoff_max_ms = 2 * WAIT_MS;
    client_new(f, NULL, &options);
    lock = lock_new(f, "a", NULL);
    for (int ends = 0; ends < 4; ends++) {
        size_t before = f->log_len;
        assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
        assert_status(await_release(f, lock), EVLOCK_OK);
        int connected = f->connection_states[EVLOCK_CONNECTED];
        server_do(f->server, "CLIENT KILL TYPE normal");
        await(f, f->connection_states[EVLOCK_CONNECTED] > connected);
        if (ends == 0)
            assert_int_equal(last_pause(f, before), -1);
        else
            assert_int_in_range(last_pause(f, before), 200 << (ends - 1), 400 << (ends - 1));
    }
}

static void a_connection_that_lasts_is_replaced_at_once_again(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = client_options(f);
    options.backoff_min_ms = 10;
    options.backoff_max_ms = 2 * WAIT_MS;
    client_new(f, NULL, &options);
    for (int ends = 0; ends < 2; ends++) {
        assert_status(await_release(f, held(f, ends ? "a" : "b")), EVLOCK_OK);
        run_for(f, 8 * 10 + 1);
        server_do(f->server, "CLIENT KILL TYPE normal");
        await(f, f->connection_states[EVLOCK_CONNECTED] == ends + 2);
        assert_int_equal(f->connection_states[EVLOCK_AWAY], 0);
    }
}

static int count_ended(const struct record *records, int count) {
    int ended = 0;
    for (int i = 0; i < count; i++)
        ended += records[i].count;
    return ended;
}

/* A server that has memory for some clients only ends one as soon as it has answered another. */
static void clients_that_the_server_has_no_memory_for_do_not_connect_without_end(void **state) {
    enum { CLIENTS = MAX_CLIENTS, ROOM = CLIENTS / 2, MS = 2000 };
    struct fixture *f = *state;
    struct record records[CLIENTS] = {0};
    evlock_options options = with_ttl(60000);
    redisReply *reply = server_command(f->server, "CLIENT NO-EVICT on");
    bool can = reply->type != REDIS_REPLY_ERROR;
    freeReplyObject(reply);
    if (!can) {
        print_message("# the server evicts no clients\n");
        skip();
    }
    options.wait = EVLOCK_WAIT_QUEUE;
    server_do(f->server, "SET a another PX 600000");
    for (int i = 0; i < CLIENTS; i++) {
        evlock_client *client = client_new(f, NULL, NULL);
        evlock *lock = lock_new_on(f, client, "a", &options);
        await_connected(f, client);
        assert_status(evlock_acquire(lock, NULL, record_end, &records[i]), EVLOCK_OK);
    }
    run_for(f, 300);
    server_do(f->server, "CONFIG SET maxmemory-clients %lld",
              server_info(f->server, "memory", "mem_clients_normal:") * ROOM / CLIENTS);
    long long before = server_info(f->server, "stats", "total_connections_received:");
    run_for(f, MS);
    long long connections = server_info(f->server, "stats", "total_connections_received:") - before;
    print_message("# %lld connections in %d ms, %lld clients evicted\n", connections, MS,
                  server_info(f->server, "stats", "evicted_clients:"));
    assert_int_in_range(server_info(f->server, "stats", "evicted_clients:"), CLIENTS - ROOM, INT32_MAX);
    assert_int_in_range(connections, 1, 50 * CLIENTS); /* it was ten thousand a second */
    server_do(f->server, "CONFIG SET maxmemory-clients 0");
    server_do(f->server, "DEL a");
    await(f, count_ended(records, CLIENTS) > 0);
    for (int i = 0; i < CLIENTS; i++)
        assert_true(records[i].count == 0 || records[i].status == EVLOCK_OK);
}

/* --- Silence ------------------------------------------------------------------------------------------------------ */

/* Asked for inside a callback, it is written when the callback has returned, with no turn of the loop in between. */
static void ask_a_dead_server(struct record *record) {
    evlock **locks = record->then_arg;
    server_kill9(&suite_server);
    record->value = evlock_acquire(locks[1], NULL, record_end, record + 1);
}

static void a_write_to_a_dead_server_loses_no_call(void **state) {
    struct fixture *f = *state;
    client_at(f, NULL, 0);
    evlock_options options = with_ttl(10 * WAIT_MS);
    evlock *locks[] = {lock_new(f, "a", &options), lock_new(f, "b", &options)};
    struct record ends[2] = {{.then = ask_a_dead_server, .then_arg = locks}};
    assert_status(evlock_acquire(locks[0], NULL, record_end, &ends[0]), EVLOCK_OK);
    await(f, ends[0].count && f->connection_states[EVLOCK_AWAY]);
    assert_status((int)ends[0].value, EVLOCK_OK);
    server_restart(f->server);
    await(f, ends[1].count);
    assert_ended(&ends[1], EVLOCK_OK);
    assert_true(evlock_is_held(locks[1]));
}

static void client_pause_delays_the_answer_but_not_the_deadline(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock_options options = with_ttl(60000);
    client_at(f, NULL, 0);
    await_connected(f, f->client);
    evlock *lock = lock_new(f, "a", &options);
    server_do(f->server, "CLIENT PAUSE 3600000 WRITE");
    int64_t asked = evlock_clock_us();
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    run_for(f, 1000);
    assert_int_equal(record.count, 0);
    server_do(f->server, "CLIENT UNPAUSE");
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    /* by the clock before the command was sent; a second later, if it were by the answer */
    assert_true(deadline_of(lock) < asked + (60000 - 602 + 800) * 1000);
    assert_status(await_release(f, lock), EVLOCK_OK);
}

static void a_long_client_pause_leaves_nothing(void **state) {
    struct fixture *f = *state;
    client_at(f, NULL, 200);
    evlock *lock = lock_new(f, "a", NULL), *kept = held(f, "kept");
    server_do(f->server, "CLIENT PAUSE 3600000 WRITE");
    assert_status(await_try(f, lock), EVLOCK_EUNREACHABLE);
    assert_status(await_release(f, kept), EVLOCK_EUNREACHABLE);
    server_do(f->server, "CLIENT UNPAUSE");
    await(f, server_integer(f->server, "DBSIZE") == 0);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK); /* the connection may yet be ended for its silence */
    run_for(f, 300);
    assert_true(evlock_is_held(lock) && key_exists(f->server, "a"));
}

static void a_stopped_server_loses_no_call(void **state) {
    struct fixture *f = *state;
    struct calls calls;
    client_at(f, NULL, 0);
    hold_for_calls(f, &calls);
    server_pause(f->server);
    make_calls(&calls);
    run_for(f, 200);
    assert_int_equal(calls.acquire.count + calls.release.count + calls.extend.count, 0);
    server_resume(f->server);
    await(f, calls.acquire.count && calls.release.count && calls.extend.count && calls.adopt.count &&
                 calls.break_.count && calls.locked.count);
    assert_ended(&calls.acquire, EVLOCK_OK);
    assert_ended(&calls.release, EVLOCK_OK);
    assert_ended(&calls.extend, EVLOCK_OK);
    assert_ended(&calls.adopt, EVLOCK_OK);
    assert_ended(&calls.break_, EVLOCK_OK);
    assert_ended(&calls.locked, EVLOCK_OK);
    assert_int_equal(f->connection_states[EVLOCK_CONNECTED], 1);
}

/* The server finds the acquire in its socket after the client has left that connection. */
static void an_acquire_left_in_a_stopped_servers_socket_leaves_nothing(void **state) {
    struct fixture *f = *state;
    client_at(f, NULL, 200);
    await_connected(f, f->client);
    evlock *lock = lock_new(f, "a", NULL);
    server_do(f->server, "CONFIG RESETSTAT");
    server_pause(f->server);
    assert_status(await_try(f, lock), EVLOCK_EUNREACHABLE);
    server_resume(f->server);
    await(f, server_calls(f->server, "evalsha") > 0);
    await(f, !key_exists(f->server, "a"));
    run_for(f, 300);
    assert_false(key_exists(f->server, "a"));
    assert_int_equal(server_calls(f->server, "set"), 1);
}

/* As long as a server answers, however late, it is not silent. */
static void every_answer_gives_the_next_its_time(void **state) {
    struct fixture *f = *state;
    struct record first = {0}, next = {0};
    relay_start(&f->relay, f->server);
    client_at(f, f->relay.url, 1000);
    await(f, relay_pump(&f->relay) && f->connection_states[EVLOCK_CONNECTED]);
    f->relay.pairs[0].muted = true;
    assert_status(evlock_query(lock_new(f, "a", NULL), EVLOCK_QUERY_LOCKED, record_answer, &first), EVLOCK_OK);
    int64_t heard = evlock_clock_us() + 500 * 1000;
    await(f, relay_pump(&f->relay) && evlock_clock_us() > heard);
    f->relay.pairs[0].held = true;
    assert_status(evlock_query(lock_new(f, "b", NULL), EVLOCK_QUERY_LOCKED, record_answer, &next), EVLOCK_OK);
    f->relay.pairs[0].muted = false;
    await(f, relay_pump(&f->relay) && first.count);
    assert_ended(&first, EVLOCK_OK);
    await(f, relay_pump(&f->relay) && strstr(f->log, "no answer within 1000 ms"));
    assert_true(evlock_clock_us() >= heard + 1000 * 1000);
    await(f, relay_pump(&f->relay) && next.count);
    assert_ended(&next, EVLOCK_OK);
}

/* --- Commands that outlive their connection ----------------------------------------------------------------------- */

/* Gives up an acquire that is held back on the way to the server, and returns when its undo has been answered. */
static evlock *abandon_a_held_acquire(struct fixture *f) {
    evlock_options options = with_ttl(3600 * 1000);
    struct record record = {0};
    options.prefix = "lock:";
    evlock *lock = lock_new(f, "a", &options);
    evlock_acquire_options try = {.size = sizeof(evlock_acquire_options)};
    try.max_attempts = EVLOCK_TRY;
    await(f, relay_pump(&f->relay) && evlock_client_connection(f->client) == EVLOCK_CONNECTED);
    server_do(f->server, "CONFIG RESETSTAT");
    f->relay.pairs[f->relay.count - 1].held = true;
    assert_status(evlock_acquire(lock, &try, record_end, &record), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && record.count);
    assert_ended(&record, EVLOCK_EUNREACHABLE);
    await(f, relay_pump(&f->relay) && server_releases(f->server) > 1); /* the next login's is the first */
    assert_int_equal(server_calls(f->server, "set"), 0);
    return lock;
}

/* The old connection is ended on the server before the undo, so the acquire can never run. */
static void a_late_acquire_is_cut_off(void **state) {
    struct fixture *f = *state;
    relay_start(&f->relay, f->server);
    client_at(f, f->relay.url, 200);
    abandon_a_held_acquire(f);
    f->relay.pairs[0].held = false;
    await(f, relay_pump(&f->relay) && f->relay.pairs[0].client < 0);
    int64_t end = evlock_clock_us() + 500 * 1000;
    await(f, relay_pump(&f->relay) && evlock_clock_us() > end);
    assert_int_equal(server_calls(f->server, "set"), 0);
    assert_int_equal(server_releases(f->server), 1 + 1); /* the login's, and one undo, which was final */
}

/* Where CLIENT is forbidden the undo is repeated, and so finds what came late. */
static void a_late_acquire_that_cannot_be_cut_off_is_undone(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = client_options(f);
    server_do(f->server, "ACL SETUSER worker on >work resetkeys resetchannels -@all ~lock:* "
                         "+evalsha +script|load +get +set +pexpire +pttl +del");
    relay_start(&f->relay, f->server);
    options.user = "worker";
    options.password = "work";
    options.command_timeout_ms = 200;
    client_new(f, f->relay.url, &options);
    evlock *lock = abandon_a_held_acquire(f);
    f->relay.pairs[0].held = false;
    await(f, relay_pump(&f->relay) && server_calls(f->server, "set") == 1);
    await(f, relay_pump(&f->relay) && !key_exists(f->server, "lock:a"));

    struct record record = {0};
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && record.count);
    assert_ended(&record, EVLOCK_OK);
    int64_t end = evlock_clock_us() + 1500 * 1000;
    await(f, relay_pump(&f->relay) && evlock_clock_us() > end);
    assert_true(evlock_is_held(lock));
    assert_true(key_exists(f->server, "lock:a")); /* the undo knows its own token only */
}

/* A user who may do what leases need, and that. */
static void allow_worker(struct fixture *f, const char *more) {
    char text[256];
    snprintf(
        text, sizeof(text),
        "ACL SETUSER worker on >work resetkeys resetchannels -@all ~lock:* +evalsha +script|load +get +set +pexpire "
        "+pttl +del %s",
        more);
    server_do(f->server, text);
}

static void worker_new(struct fixture *f) {
    evlock_client_options options = client_options(f);
    relay_start(&f->relay, f->server);
    options.user = "worker";
    options.password = "work";
    options.command_timeout_ms = 200;
    client_new(f, f->relay.url, &options);
}

/* The command that was held back on the second connection is not taken for settled: what it left is removed. */
static void assert_undone_when_late(struct fixture *f) {
    abandon_a_held_acquire(f);
    f->relay.pairs[1].held = false;
    await(f, relay_pump(&f->relay) && server_calls(f->server, "set") == 1);
    await(f, relay_pump(&f->relay) && !key_exists(f->server, "lock:a"));
}

/* Its own number is not known, and that of the connection before is not its own. */
static void a_connection_that_did_not_tell_its_number_is_not_settled(void **state) {
    struct fixture *f = *state;
    allow_worker(f, "+info +client|id +client|kill");
    worker_new(f);
    await(f, relay_pump(&f->relay) && f->connection_states[EVLOCK_CONNECTED]);
    allow_worker(f, "+info +client|kill");
    relay_cut(&f->relay, 0);
    await(f, relay_pump(&f->relay) && f->connection_states[EVLOCK_CONNECTED] == 2);
    assert_undone_when_late(f);
}

static void a_connection_that_was_cut_off_settles_no_later_one(void **state) {
    struct fixture *f = *state;
    allow_worker(f, "+info +client|id +client|kill");
    worker_new(f);
    abandon_a_held_acquire(f);
    allow_worker(f, "+info");
    server_do(f->server, "CONFIG RESETSTAT");
    assert_undone_when_late(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OUTAGE_TEST(client_kill_loses_nothing),
        OUTAGE_TEST(client_kill_of_an_idle_connection_is_quiet),
        OUTAGE_TEST(the_servers_idle_timeout_is_quiet),
        OUTAGE_TEST(a_server_killed_and_restarted_loses_no_call),
        OUTAGE_TEST(a_connection_that_was_of_no_use_is_replaced_after_a_pause),
        OUTAGE_TEST(pauses_begin_anew_when_a_connection_was_of_use),
        OUTAGE_TEST(pauses_grow_while_connections_do_not_last),
        OUTAGE_TEST(a_connection_that_lasts_is_replaced_at_once_again),
        OUTAGE_TEST(clients_that_the_server_has_no_memory_for_do_not_connect_without_end),
        OUTAGE_TEST(a_write_to_a_dead_server_loses_no_call),
        OUTAGE_TEST(client_pause_delays_the_answer_but_not_the_deadline),
        OUTAGE_TEST(a_long_client_pause_leaves_nothing),
        OUTAGE_TEST(a_stopped_server_loses_no_call),
        OUTAGE_TEST(every_answer_gives_the_next_its_time),
        OUTAGE_TEST(an_acquire_left_in_a_stopped_servers_socket_leaves_nothing),
        OUTAGE_TEST(a_late_acquire_is_cut_off),
        OUTAGE_TEST(a_late_acquire_that_cannot_be_cut_off_is_undone),
        OUTAGE_TEST(a_connection_that_did_not_tell_its_number_is_not_settled),
        OUTAGE_TEST(a_connection_that_was_cut_off_settles_no_later_one),
    };
    return run_suite("outages", tests);
}
