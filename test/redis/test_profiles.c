/*
 * Servers that lack commands, hide who they are, or share connections: what a lock can still do there, and that what is
 * lost is told. Each service is a profile: what its documents say that it refuses is taken away from a real server.
 */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mux.h"

enum { TTL = 60000, LONG = 4000, SERVERS = 3, EXTRA = 64 };

static struct server servers[SERVERS];
static struct mux muxes[SERVERS];

static void stop_all(void) {
    for (size_t i = 0; i < SERVERS; i++) {
        mux_stop(&muxes[i]);
        server_stop(&servers[i]);
    }
}

static int teardown(void **state) {
    int left = fixture_teardown_restart(state);
    stop_all();
    return left;
}

#define PROFILE_TEST(function) cmocka_unit_test_setup_teardown(function, fixture_setup_bare, teardown)

/* The options of a server by which it has none of these commands, which stand in one string. */
struct extra {
    const char *words[EXTRA];
    char text[256];
};

static void rename_away(struct extra *extra, const char *commands) {
    size_t count = 0;
    snprintf(extra->text, sizeof(extra->text), "%s", commands);
    for (char *word = strtok(extra->text, " "); word; word = strtok(NULL, " ")) {
        extra->words[count++] = "--rename-command";
        extra->words[count++] = word;
        extra->words[count++] = "";
    }
    extra->words[count] = NULL;
}

static uint32_t missing(const evlock_client *client) {
    evlock_node_info info;
    assert_status(evlock_client_node(client, 0, &info, sizeof(info)), EVLOCK_OK);
    return info.missing;
}

/* A fixture's clients, locks and log go; its loop stays. */
static void clear(struct fixture *f) {
    while (f->locks_len)
        lock_free(f, f->locks[0]);
    while (f->clients_len)
        client_free(f, f->clients[0]);
    f->client = NULL;
    forget_log(f);
    memset(f->connection_states, 0, sizeof(f->connection_states));
    f->away = (struct record){0};
}

/* The proxies speak no TLS, whatever the suite does. */
static evlock_client_options options_for(struct fixture *f, const char *url) {
    evlock_client_options options = client_options(f);
    if (url && strstr(url, "unix:"))
        options.tls_ca = options.tls_cert = options.tls_key = NULL;
    return options;
}

static evlock_client *plain_client(struct fixture *f, const char *url) {
    evlock_client_options options = options_for(f, url);
    return client_new(f, url, &options);
}

static evlock_client *quick_client(struct fixture *f, const char *url) {
    evlock_client_options options = options_for(f, url);
    options.backoff_max_ms = 200;
    f->client = NULL;
    return client_new(f, url, &options);
}

/* --- Each thing a lock does --------------------------------------------------------------------------------------- */

static void lock_works(struct fixture *f) {
    evlock_options options = with_ttl(TTL);
    evlock *lock = lock_new(f, "a", &options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_status(await_extend(f, lock, 1000, EVLOCK_EXTEND_ADD), EVLOCK_OK);
    assert_true(ask_locked(f, lock));
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_false(ask_locked(f, lock));
    lock_free(f, lock);
}

/* Many, so that they would be a batch. */
static void renewals_work(struct fixture *f) {
    enum { LEASES = 20 };
    evlock_options options = with_ttl(TTL);
    char name[16];
    options.auto_renewal = true;
    options.renewal_interval_ms = 50;
    for (int i = 0; i < LEASES; i++) {
        snprintf(name, sizeof(name), "%d", i);
        assert_status(await_acquire(f, lock_new(f, name, &options), NULL), EVLOCK_OK);
        renew_by_script(f->locks[f->locks_len - 1]);
    }
    uint64_t before = stats_of(f->client).renewals;
    await(f, stats_of(f->client).renewals >= before + 3 * LEASES);
    while (f->locks_len) {
        assert_true(evlock_is_held(f->locks[0]));
        lock_free(f, f->locks[0]);
    }
}

/* Waiters take turns, in line or by polling. */
static void wait_in_line(struct fixture *f) {
    struct record records[3] = {0};
    evlock_options options = with_ttl(TTL);
    options.wait = EVLOCK_WAIT_QUEUE;
    options.retry_delay_ms = 20;
    evlock *first = lock_new(f, "line", &options), *waiters[3];
    assert_status(await_acquire(f, first, NULL), EVLOCK_OK);
    for (int i = 0; i < 3; i++) {
        waiters[i] = lock_new(f, "line", &options);
        assert_status(evlock_acquire(waiters[i], NULL, record_end, &records[i]), EVLOCK_OK);
    }
    run_for(f, 100);
    assert_int_equal(records[0].count + records[1].count + records[2].count, 0);
    assert_status(await_release(f, first), EVLOCK_OK);
    for (int ended = 0; ended < 3; ended++) {
        int at = -1;
        await(f, evlock_is_held(waiters[0]) + evlock_is_held(waiters[1]) + evlock_is_held(waiters[2]) == 1);
        for (int i = 0; i < 3; i++)
            at = evlock_is_held(waiters[i]) ? i : at;
        await(f, records[at].count);
        assert_ended(&records[at], EVLOCK_OK);
        assert_status(await_release(f, waiters[at]), EVLOCK_OK);
    }
}

/* --- What is missing is told -------------------------------------------------------------------------------------- */

static const struct {
    const char *commands; /* renamed away */
    uint32_t missing;
    const char *words; /* of the log */
} lacks[] = {
    {"", 0, NULL},
    {"INFO", EVLOCK_MISSING_IDENTITY | EVLOCK_MISSING_BATCHES | EVLOCK_MISSING_KILL, "data that it loses"},
    {"CLIENT", EVLOCK_MISSING_KILL, "an unknown attempt is undone for a ttl"},
    {"SCRIPT", EVLOCK_MISSING_DIGESTS, "carries its whole script"},
    {"EVALSHA", EVLOCK_MISSING_DIGESTS, "carries its whole script"},
    {"EVAL", 0, NULL},
    {"MGET", EVLOCK_MISSING_BATCHES, "renewed by a command of its own"},
    {"PUBLISH", EVLOCK_MISSING_CHANNELS, "waiters poll"},
    {"PUBSUB", EVLOCK_MISSING_CHANNELS, "waiters poll"},
    {"SUBSCRIBE", EVLOCK_MISSING_CHANNELS, "waiters poll"},
};

static void each_is_told(struct fixture *f, bool by_rights) {
    struct extra extra;
    for (size_t i = 0; i < sizeof(lacks) / sizeof(lacks[0]); i++) {
        rename_away(&extra, by_rights ? "" : lacks[i].commands);
        server_start(&servers[0], false, extra.words);
        if (by_rights && lacks[i].commands[0])
            server_do(&servers[0], "ACL SETUSER default -%s", lacks[i].commands);
        evlock_client *client = quick_client(f, servers[0].url);
        lock_works(f);
        renewals_work(f);
        wait_in_line(f);
        await(f, missing(client) == lacks[i].missing);
        assert_int_equal(f->connection_states[EVLOCK_AWAY], 0);
        if (lacks[i].words)
            assert_int_equal(times_logged(f, lacks[i].words), 1);
        clear(f);
        server_stop(&servers[0]);
    }
}

static void what_is_missing_is_told(void **state) {
    each_is_told(*state, false);
}

static void what_is_forbidden_is_told_as_missing(void **state) {
    each_is_told(*state, true);
}

/* It stays known while the node is away, and is told again of each connection. */
static void what_is_missing_is_told_of_each_connection(void **state) {
    struct fixture *f = *state;
    struct extra extra;
    rename_away(&extra, "EVALSHA");
    server_start(&servers[0], false, extra.words);
    evlock_client *client = quick_client(f, servers[0].url);
    lock_works(f);
    assert_int_equal(times_logged(f, "carries its whole script"), 1);
    server_kill9(&servers[0]);
    await(f, f->connection_states[EVLOCK_AWAY]);
    assert_int_equal(missing(client), EVLOCK_MISSING_DIGESTS);
    server_restart(&servers[0]);
    await(f, f->connection_states[EVLOCK_CONNECTED] == 2);
    assert_int_equal(missing(client), EVLOCK_MISSING_DIGESTS);
    assert_int_equal(times_logged(f, "carries its whole script"), 2);
}

/* What may be listened to again is not missing any more. */
static void a_channel_that_is_allowed_again_is_not_missing(void **state) {
    struct fixture *f = *state;
    server_do(f->server, "ACL SETUSER default -subscribe");
    evlock_client *client = quick_client(f, NULL);
    wait_in_line(f);
    await(f, missing(client) == EVLOCK_MISSING_CHANNELS);
    server_do(f->server, "ACL SETUSER default +subscribe");
    await(f, missing(client) == 0);
}

/* It is tried for as long as the client lives. */
static void a_channel_that_is_missing_is_warned_of_once(void **state) {
    struct fixture *f = *state;
    struct extra extra;
    rename_away(&extra, "SUBSCRIBE");
    server_start(&servers[0], false, extra.words);
    evlock_client *client = quick_client(f, servers[0].url);
    wait_in_line(f);
    await(f, missing(client) == EVLOCK_MISSING_CHANNELS);
    int tries = times_logged(f, "next try in"), warnings = f->log_lines[EVLOCK_LOG_WARN];
    await(f, times_logged(f, "next try in") >= tries + 3);
    assert_int_equal(f->log_lines[EVLOCK_LOG_WARN], warnings);
}

/* --- Who one is --------------------------------------------------------------------------------------------------- */

static bool listed(struct server *server, const char *words) {
    redisReply *reply = server_command(server, "CLIENT LIST");
    bool found = strstr(reply->str, words);
    freeReplyObject(reply);
    return found;
}

static void connections_say_whose_they_are(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = client_options(f);
    options.connection_name = "billing:3~!";
    await_connected(f, client_new(f, NULL, &options));
    await(f, listed(f->server, " name=billing:3~! "));
    if (listed(f->server, "lib-name"))
        assert_true(listed(f->server, " lib-name=evlock lib-ver=" EVLOCK_VERSION_STRING));
    wait_in_line(f); /* what listens says so, too */
    redisReply *reply = server_command(f->server, "CLIENT LIST TYPE pubsub");
    assert_non_null(strstr(reply->str, " name=billing:3~! "));
    freeReplyObject(reply);
}

static void a_name_that_is_refused_is_logged(void **state) {
    struct fixture *f = *state;
    static const struct mux_rule rules[] = {{"CLIENT SETNAME", "CLIENT NOTHING"}, {NULL, NULL}};
    mux_start(&muxes[0], f->server, false, rules);
    evlock_client_options options = options_for(f, muxes[0].url);
    options.connection_name = "billing";
    await_connected(f, client_new(f, muxes[0].url, &options));
    assert_int_equal(times_logged(f, "refuses the connection's name"), 1);
    lock_works(f);
}

/* --- Servers that are left ---------------------------------------------------------------------------------------- */

/* How long the first pause is; the longest is 200 ms. */
static int first_pause(const struct fixture *f) {
    static const char words[] = "next try in ";
    const char *at = f->log ? strstr(f->log, words) : NULL;
    assert_non_null(at);
    return atoi(at + strlen(words));
}

static void is_left(struct fixture *f, const char *section, const char *info, int status, const char *words) {
    const struct mux_rule rules[] = {{section, "GET info"}, {NULL, NULL}};
    server_do(f->server, "SET info %s", info);
    mux_start(&muxes[0], f->server, false, rules);
    quick_client(f, muxes[0].url);
    assert_status(await_try(f, lock_new(f, "a", NULL)), status);
    assert_says(f->ended.error, words);
    await(f, f->away.count);
    assert_status(f->away.status, status);
    assert_says(f->away.error, words);
    if (status == EVLOCK_EUNSUPPORTED)
        assert_int_in_range(first_pause(f), 100, 200); /* a quick return cannot help */
    assert_false(key_exists(f->server, "a"));
    clear(f);
    mux_stop(&muxes[0]);
}

static void servers_that_cannot_keep_a_lock_are_left(void **state) {
    struct fixture *f = *state;
    is_left(f, "INFO server", "\nredis_version:7.4.3\r\ngarnet_version:1.0.84\r\n", EVLOCK_EUNSUPPORTED, "Garnet");
    is_left(f, "INFO replication", "\nrole:active-replica\r\n", EVLOCK_EUNSUPPORTED, "active-replica");
    is_left(f, "INFO replication", "\nrole:slave\r\n", EVLOCK_EREFUSED, "address of its primary");
    is_left(f, "INFO replication", "\nrole:replica\r\n", EVLOCK_EREFUSED, "address of its primary");
}

/* --- Shared connections ------------------------------------------------------------------------------------------- */

static const struct mux_rule no_channels[] = {{"SUBSCRIBE", "NOTHING"}, {NULL, NULL}};

/* Its connection ends with an acquire unanswered: what was sent last may still be on its way when the next one is made.
 * The lock is acquired all the same. */
static void acquire_across_a_cut(struct fixture *f, evlock_client *client, evlock *lock) {
    struct record tried = {0};
    server_do(f->server, "CLIENT PAUSE 3600000 WRITE");
    assert_status(evlock_acquire(lock, NULL, record_end, &tried), EVLOCK_OK);
    run_for(f, 50);
    mux_cut(&muxes[0]);
    await(f, evlock_client_connection(client) != EVLOCK_CONNECTED);
    server_do(f->server, "CLIENT UNPAUSE");
    await(f, tried.count);
    assert_ended(&tried, EVLOCK_OK);
    assert_int_not_equal(missing(client) & EVLOCK_MISSING_KILL, 0);
}

/* What the server sees is everybody's. */
static void nobodys_connection_is_ended(struct fixture *f) {
    evlock_client *other = plain_client(f, muxes[0].url), *client = plain_client(f, muxes[0].url);
    evlock_options options = with_ttl(TTL);
    await_connected(f, other);
    await_connected(f, client);
    assert_int_not_equal(missing(other) & EVLOCK_MISSING_KILL, 0); /* the server's connection is older */
    acquire_across_a_cut(f, client, lock_new_on(f, client, "shared", &options));
    client_free(f, client); /* which hushes nobody */
    await_connected(f, other);
    assert_status(await_try(f, lock_new_on(f, other, "else", &options)), EVLOCK_OK);
    assert_int_equal(server_calls(f->server, "client|kill"), 0);
    assert_int_equal(server_calls(f->server, "client|reply"), 0);
}

static void a_shared_connection_is_not_ended(void **state) {
    struct fixture *f = *state;
    mux_start(&muxes[0], f->server, true, no_channels);
    server_do(f->server, "CONFIG RESETSTAT");
    run_for(f, 3100); /* the age of a connection is in whole seconds */
    nobodys_connection_is_ended(f);
}

/* Its age does not tell then: its number does, when it comes again. */
static void a_new_shared_connection_is_not_ended(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(TTL);
    mux_start(&muxes[0], f->server, true, no_channels);
    evlock_client *client = quick_client(f, muxes[0].url);
    await_connected(f, client);
    server_do(f->server, "CONFIG RESETSTAT");
    acquire_across_a_cut(f, client, lock_new(f, "shared", &options));
    assert_int_equal(server_calls(f->server, "client|kill"), 0);
}

/* The proxy keeps the acquire, and answers with what ends the connection. What it kept runs when the first undo has
 * found nothing; its key would stay for long. */
static void a_late_acquire_behind_a_proxy_is_undone(void **state) {
    static const struct mux_rule keeps[] = {{"SUBSCRIBE", "NOTHING"}, {"SET", "RPUSH kept"}, {NULL, NULL}};
    struct fixture *f = *state;
    evlock_options options = with_ttl(LONG);
    mux_start(&muxes[0], f->server, true, keeps);
    evlock_client *client = quick_client(f, muxes[0].url);
    await_connected(f, client);
    server_do(f->server, "CONFIG RESETSTAT");
    assert_int_not_equal(await_try(f, lock_new(f, "late", &options)), EVLOCK_OK);
    await(f, f->connection_states[EVLOCK_CONNECTED] == 2);
    run_for(f, 300);
    redisReply *token = server_command(f->server, "LINDEX kept 1");
    assert_int_equal(token->type, REDIS_REPLY_STRING);
    server_do(f->server, "SET late %s NX PX %d", token->str, TTL);
    freeReplyObject(token);
    int64_t end = evlock_clock_us() + LONG * 1000;
    await(f, !key_exists(f->server, "late") || evlock_clock_us() > end);
    assert_false(key_exists(f->server, "late"));
    assert_int_equal(server_calls(f->server, "client|kill"), 0);
}

/* That is known when it is wanted. */
static void an_end_that_is_refused_is_told(void **state) {
    struct fixture *f = *state;
    static const struct mux_rule rules[] = {{"CLIENT KILL", "NOTHING"}, {NULL, NULL}};
    evlock_options options = with_ttl(TTL);
    mux_start(&muxes[0], f->server, false, rules);
    evlock_client *client = quick_client(f, muxes[0].url);
    await_connected(f, client);
    assert_int_equal(missing(client), 0);
    acquire_across_a_cut(f, client, lock_new(f, "a", &options));
    assert_int_equal(missing(client), EVLOCK_MISSING_KILL);
}

/* What is asked on one connection may be answered by another. */
static void a_connection_with_two_numbers_is_shared(void **state) {
    struct fixture *f = *state;
    static const struct mux_rule rules[] = {{"CLIENT INFO", "GET info"}, {NULL, NULL}};
    server_do(f->server, "SET info %s", "id=999999 addr=? age=0 idle=0");
    mux_start(&muxes[0], f->server, false, rules);
    evlock_client *client = quick_client(f, muxes[0].url);
    await_connected(f, client);
    assert_int_equal(missing(client), EVLOCK_MISSING_KILL);
    lock_works(f);
}

static void reconnect(struct fixture *f, evlock_client *client) {
    mux_cut(&muxes[0]);
    await(f, evlock_client_connection(client) != EVLOCK_CONNECTED);
    await_connected(f, client);
}

/* The server counts in whole seconds, by a clock that it reads now and then. */
static void a_connection_is_its_own_though_it_seems_two_seconds_old(void **state) {
    struct fixture *f = *state;
    static const struct mux_rule rules[] = {{"CLIENT INFO", "GET info"}, {NULL, NULL}};
    server_do(f->server, "SET info %s", "addr=? age=2 idle=0");
    mux_start(&muxes[0], f->server, false, rules);
    evlock_client *client = quick_client(f, muxes[0].url);
    await_connected(f, client);
    assert_int_equal(missing(client), 0);
    server_do(f->server, "SET info %s", "addr=? age=100 idle=0");
    reconnect(f, client);
    assert_int_equal(missing(client), EVLOCK_MISSING_KILL);
}

/* --- Replicas ----------------------------------------------------------------------------------------------------- */

static evlock *replicated(struct fixture *f, int64_t count, int64_t timeout_ms) {
    evlock_options options = with_ttl(TTL);
    options.min_replicas = count;
    options.replica_timeout_ms = timeout_ms;
    return lock_new(f, "replicated", &options);
}

/* However long it might wait. */
static void assert_hopeless(struct fixture *f, evlock *lock, int status, const char *words) {
    assert_status(await_acquire(f, lock, NULL), status);
    assert_says(f->ended.error, words);
    await(f, !key_exists(f->server, "replicated"));
}

static void replicas_that_cannot_be_asked_are_told_at_once(void **state) {
    struct fixture *f = *state;
    static const struct mux_rule none[] = {{"WAIT", "NOTHING"}, {NULL, NULL}};
    mux_start(&muxes[0], f->server, false, none);
    evlock_client *client = quick_client(f, muxes[0].url);
    evlock *lock = replicated(f, 1, LONG);
    assert_hopeless(f, lock, EVLOCK_EUNSUPPORTED, "unknown command");
    assert_int_equal(missing(client), EVLOCK_MISSING_WAIT);
    assert_int_equal(times_logged(f, "no lock with min_replicas"), 1);
    assert_hopeless(f, lock, EVLOCK_EUNSUPPORTED, "unknown command");
    assert_int_equal(times_logged(f, "no lock with min_replicas"), 1);
    lock_works(f);
    clear(f);
    mux_stop(&muxes[0]);

    server_do(f->server, "ACL SETUSER default -wait");
    client = quick_client(f, NULL);
    assert_hopeless(f, replicated(f, 1, LONG), EVLOCK_EPERM, "NOPERM");
    assert_int_equal(missing(client), EVLOCK_MISSING_WAIT);
    server_do(f->server, "ACL SETUSER default +wait");
}

static const struct mux_rule counts_one[] = {{"WAIT", "EVAL return(1) 0"}, {NULL, NULL}};

static void replicas_that_can_be_asked_again_are_not_missing(void **state) {
    struct fixture *f = *state;
    mux_start(&muxes[0], f->server, false, counts_one);
    evlock_client *client = quick_client(f, muxes[0].url);
    evlock *lock = replicated(f, 1, LONG);
    server_do(f->server, "ACL SETUSER default -eval");
    assert_hopeless(f, lock, EVLOCK_EPERM, "NOPERM");
    assert_int_equal(missing(client), EVLOCK_MISSING_WAIT);
    server_do(f->server, "ACL SETUSER default +eval");
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_int_equal(missing(client), 0);
}

/* What is asked about is in the database of the lock. */
static void replicas_are_asked_of_the_locks_database(void **state) {
    struct fixture *f = *state;
    char url[160];
    mux_start(&muxes[0], f->server, false, counts_one);
    snprintf(url, sizeof(url), "%s?db=1", muxes[0].url);
    quick_client(f, url);
    assert_status(await_try(f, replicated(f, 1, LONG)), EVLOCK_OK);
}

/* One that waits no longer for the second than for the first will never say two. */
static void a_server_that_counts_one_replica_at_most_is_told_at_once(void **state) {
    struct fixture *f = *state;
    mux_start(&muxes[0], f->server, false, counts_one);
    quick_client(f, muxes[0].url);
    evlock *lock = replicated(f, 1, LONG);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_hopeless(f, replicated(f, 2, LONG), EVLOCK_EUNSUPPORTED, "1 of 2 replicas have it, and");
}

/* They may come: an acquire that may wait waits. */
static void too_few_replicas_are_told_as_that(void **state) {
    struct fixture *f = *state;
    quick_client(f, NULL);
    assert_status(await_try(f, replicated(f, 2, 200)), EVLOCK_EREPLICAS);
}

/* Whether that shows by the connection's number, or by its age. */
static void replicas_are_not_asked_on_a_shared_connection(void **state) {
    struct fixture *f = *state;
    mux_start(&muxes[0], f->server, true, no_channels);
    quick_client(f, muxes[0].url);
    assert_hopeless(f, replicated(f, 1, LONG), EVLOCK_EUNSUPPORTED, "shares its connections");
    run_for(f, 3100);
    quick_client(f, muxes[0].url);
    assert_hopeless(f, replicated(f, 1, LONG), EVLOCK_EUNSUPPORTED, "shares its connections");
}

/* The number that a connection has which is made now. */
static long long next_number(const struct server *server) {
    redisContext *context = redisConnectUnix(server->socket);
    redisReply *reply = redisCommand(context, "CLIENT ID");
    assert_non_null(reply);
    long long number = reply->integer;
    freeReplyObject(reply);
    redisFree(context);
    return number;
}

/* The next connection has this number, which is far ahead. */
static void count_up_to(const struct server *server, long long number) {
    for (long long last = 0; last < number - 1;)
        last = next_number(server);
}

/* The grant is of the server before; by the time it is heard, the other connection is to the next one, and has the
 * number there that the first one had. */
static void equal_numbers_of_two_processes_are_no_shared_connection(void **state) {
    enum { NUMBER = 40 };
    struct fixture *f = *state;
    struct record tried = {0};
    evlock_acquire_options once = {.size = sizeof(once), .max_attempts = EVLOCK_TRY};
    server_start(&servers[0], false, NULL);
    count_up_to(&servers[0], NUMBER);
    relay_start(&f->relay, &servers[0]);
    evlock_client *client = quick_client(f, f->relay.url);
    await(f, relay_pump(&f->relay) && evlock_client_connection(client) == EVLOCK_CONNECTED);
    assert_true(listed(&servers[0], "id=40 "));
    evlock *lock = replicated(f, 1, LONG);
    await(f, relay_pump(&f->relay) && times_logged(f, "): connected") == 2);
    f->relay.pairs[0].muted = true;
    assert_status(evlock_acquire(lock, &once, record_end, &tried), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && key_exists(&servers[0], "replicated"));
    server_do(&servers[0], "PING"); /* by which the grant has left */
    server_restart(&servers[0]);
    count_up_to(&servers[0], NUMBER);
    await(f, relay_pump(&f->relay) && times_logged(f, "): connected") == 3);
    assert_true(listed(&servers[0], "id=40 "));
    f->relay.pairs[0].muted = false;
    relay_pump(&f->relay);
    f->relay.pairs[0].muted = true; /* so that its end is not heard before the answer of the other one */
    await(f, relay_pump(&f->relay) && tried.count);
    assert_ended(&tried, EVLOCK_EREPLICAS);
    assert_null(strstr(tried.error, "shares"));
}

/* --- The server's clock, brought ---------------------------------------------------------------------------------- */

/* Scripts cannot ask for TIME by its name; plain commands come by the proxy. */
static const char *const hides_time[] = {"--rename-command", "TIME", "SECRETTIME", NULL};
static const struct mux_rule shows_time[] = {{"TIME", "SECRETTIME"}, {NULL, NULL}};

static void start_without_time(struct fixture *f, size_t index) {
    server_start(&servers[index], false, hides_time);
    mux_start(&muxes[index], &servers[index], false, shows_time);
    f->server = &servers[0];
}

static int draw_fence(struct fixture *f, evlock *lock, uint64_t *last) {
    int status = await_try(f, lock);
    if (status != EVLOCK_OK)
        return status;
    assert_true(evlock_fence(lock) > *last);
    *last = evlock_fence(lock);
    assert_status(await_release(f, lock), EVLOCK_OK);
    return EVLOCK_OK;
}

static evlock_options fenced(void) {
    evlock_options options = with_ttl(TTL);
    options.fence = true;
    return options;
}

/* By whoever; it depends on the server under which name they are counted. */
static long long readings_of(struct server *server) {
    return server_calls(server, "secrettime") + server_calls(server, "time");
}

/* The next connection is made. */
/* The fence is about the server's clock: it goes on growing where the counter is lost. */
static void fences_are_drawn_by_a_clock_that_is_brought(void **state) {
    struct fixture *f = *state;
    evlock_options options = fenced();
    uint64_t last = 0;
    long long readings = 0;
    start_without_time(f, 0);
    evlock_client *client = quick_client(f, muxes[0].url);
    evlock *lock = lock_new(f, "a", &options);
    for (int i = 0; i < 5; i++) {
        assert_status(draw_fence(f, lock, &last), EVLOCK_OK);
        redisReply *reply = server_command(&servers[0], "SECRETTIME");
        int64_t now = strtoll(reply->element[0]->str, NULL, 10) * 1000000 + strtoll(reply->element[1]->str, NULL, 10);
        freeReplyObject(reply);
        assert_int_in_range(last, now - WAIT_MS * 1000, now);
        server_do(&servers[0], "DEL {a}:fence");
        if (i == 1)
            readings = readings_of(&servers[0]);
        run_for(f, 1100 * (i == 2)); /* so that it is read anew */
    }
    await(f, readings_of(&servers[0]) > readings + 3); /* ours of those times, and one more */
    assert_int_equal(missing(client), EVLOCK_MISSING_CLOCK);
    assert_int_equal(times_logged(f, "lacks TIME in scripts"), 1);
    assert_int_in_range(readings_of(&servers[0]), 0, 20);
    lock_works(f);
}

/* Neither a renewal nor a plain acquire brings it. */
static void a_clock_is_asked_for_by_what_brings_it_alone(void **state) {
    struct fixture *f = *state;
    evlock_options options = fenced(), renewed = with_ttl(TTL);
    uint64_t last = 0;
    renewed.auto_renewal = true;
    renewed.renewal_interval_ms = 50;
    start_without_time(f, 0);
    evlock_client *client = quick_client(f, muxes[0].url);
    assert_status(draw_fence(f, lock_new(f, "a", &options), &last), EVLOCK_OK);
    long long readings = readings_of(&servers[0]);
    assert_status(await_acquire(f, lock_new(f, "b", &renewed), NULL), EVLOCK_OK);
    run_for(f, 1100); /* so that it would be read anew */
    uint64_t before = stats_of(client).renewals;
    await(f, stats_of(client).renewals > before);
    lock_works(f);
    assert_int_equal(readings_of(&servers[0]), readings);
}

/* All who know that give it up hand it on, each by the clock that it brings. */
static void a_queue_goes_on_by_a_clock_that_is_brought(void **state) {
    enum { WAITERS = 6 };
    struct fixture *f = *state;
    struct record records[WAITERS] = {0};
    evlock_options options = with_ttl(TTL);
    evlock *waiters[WAITERS];
    uint64_t last = 0;
    options.wait = EVLOCK_WAIT_QUEUE;
    options.retry_delay_ms = 500; /* looks are far apart */
    options.fence = true;
    start_without_time(f, 0);
    evlock_client *client = quick_client(f, muxes[0].url);
    evlock *first = lock_new(f, "a", &options);
    assert_status(await_acquire(f, first, NULL), EVLOCK_OK);
    for (int i = 0; i < WAITERS; i++) {
        waiters[i] = lock_new(f, "a", &options);
        assert_status(evlock_acquire(waiters[i], NULL, record_end, &records[i]), EVLOCK_OK);
        await(f, ask_waiters(f, first) == i + 1);
        assert_int_equal(ask_place(f, waiters[i]), i + 1);
    }
    int64_t begun = evlock_clock_us();
    last = evlock_fence(first);
    assert_status(await_release(f, first), EVLOCK_OK);
    for (int i = 0; i < WAITERS; i++) {
        await(f, records[i].count);
        assert_ended(&records[i], EVLOCK_OK);
        assert_true(evlock_is_held(waiters[i]) && evlock_fence(waiters[i]) > last);
        assert_int_in_range(evlock_remaining_ms(waiters[i]), TTL / 2, key_ttl(&servers[0], "a"));
        last = evlock_fence(waiters[i]);
        if (i == 2)
            assert_status(await_break(f, first), EVLOCK_OK); /* hands on as well */
        else
            assert_status(await_release(f, waiters[i]), EVLOCK_OK);
    }
    assert_int_in_range(evlock_clock_us() - begun, 0, 2400 * 1000); /* by messages, and not by looks after pauses */
    assert_int_equal(missing(client), EVLOCK_MISSING_CLOCK);
    assert_false(key_exists(&servers[0], "a"));
}

/* From here on, the server counts commands. */
static void one_holds_and_one_waits(struct fixture *f, evlock *holder, evlock *waiter, struct record *record) {
    *record = (struct record){0};
    assert_status(await_acquire(f, holder, NULL), EVLOCK_OK);
    assert_status(evlock_acquire(waiter, NULL, record_end, record), EVLOCK_OK);
    await(f, ask_waiters(f, holder) == 1);
    server_do(&servers[0], "CONFIG RESETSTAT");
}

/* Who has never drawn a fence or waited learns it by the first release that could not hand on. */
static void a_holder_learns_that_its_clock_is_wanted(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock_options options = with_ttl(TTL);
    options.wait = EVLOCK_WAIT_QUEUE;
    start_without_time(f, 0);
    evlock_client *client = quick_client(f, muxes[0].url), *other = plain_client(f, muxes[0].url);
    evlock *lock = lock_new_on(f, client, "a", &options), *waiter = lock_new_on(f, other, "a", &options);
    for (int i = 0; i < 2; i++) {
        one_holds_and_one_waits(f, lock, waiter, &record);
        assert_int_equal(missing(client), i == 0 ? 0 : EVLOCK_MISSING_CLOCK);
        assert_status(await_release(f, lock), EVLOCK_OK);
        await(f, record.count);
        assert_ended(&record, EVLOCK_OK);
        assert_int_equal(server_calls(&servers[0], "publish"), i);
        assert_status(await_release(f, waiter), EVLOCK_OK);
    }
}

/* The same by its first break. */
static void who_breaks_learns_that_its_clock_is_wanted(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(TTL);
    options.wait = EVLOCK_WAIT_QUEUE;
    start_without_time(f, 0);
    evlock_client *client = quick_client(f, muxes[0].url), *other = plain_client(f, muxes[0].url);
    evlock *breaks = lock_new_on(f, client, "a", &options);
    await_connected(f, client);
    for (int i = 0; i < 2; i++) {
        struct record record = {0};
        evlock *holder = lock_new_on(f, other, "a", &options), *waiter = lock_new_on(f, other, "a", &options);
        one_holds_and_one_waits(f, holder, waiter, &record);
        assert_int_equal(missing(client), i == 0 ? 0 : EVLOCK_MISSING_CLOCK);
        assert_status(await_break(f, breaks), EVLOCK_OK);
        await(f, record.count);
        assert_ended(&record, EVLOCK_OK);
        assert_int_equal(server_calls(&servers[0], "publish"), i);
        await(f, missing(client) == EVLOCK_MISSING_CLOCK);
        assert_status(await_release(f, waiter), EVLOCK_OK);
        lock_free(f, holder);
    }
}

/* Nothing goes on for ever where the clock is nowhere to be had: a fence ends, and waiters poll. */
static void go_without_clock(struct fixture *f) {
    evlock_options options = fenced();
    evlock_client *client = quick_client(f, servers[0].url);
    evlock *lock = lock_new(f, "a", &options);
    for (int i = 0; i < 2; i++) {
        assert_status(await_acquire(f, lock, NULL), EVLOCK_EUNSUPPORTED);
        assert_says(f->ended.error, "gives its clock neither to scripts nor by TIME");
        assert_int_equal(missing(client), EVLOCK_MISSING_TIME);
    }
    wait_in_line(f);
    assert_int_equal(server_calls(&servers[0], "zadd"), 0);
    assert_int_equal(times_logged(f, "no fence and no queue"), 1);
    assert_int_equal(times_logged(f, "its clock is brought"), 0);
    assert_int_equal(f->connection_states[EVLOCK_AWAY], 0);
    lock_works(f);
    clear(f);
}

/* The same of a client that waits in line before it knows. */
static void wait_without_clock(struct fixture *f) {
    evlock_client *client = quick_client(f, servers[0].url);
    wait_in_line(f);
    assert_int_equal(missing(client), EVLOCK_MISSING_TIME);
    assert_int_equal(server_calls(&servers[0], "zadd"), 0);
    clear(f);
}

static void without_a_clock_there_is_no_fence_and_no_queue(void **state) {
    struct fixture *f = *state;
    struct extra extra;
    rename_away(&extra, "TIME");
    server_start(&servers[0], false, extra.words);
    go_without_clock(f);
    wait_without_clock(f);
    server_stop(&servers[0]);
    server_start(&servers[0], false, NULL);
    server_do(&servers[0], "ACL SETUSER default -time");
    go_without_clock(f);
    wait_without_clock(f);
}

/* Who waited in line when the clock went polls from then on. */
static void a_waiter_leaves_a_line_that_has_no_clock_any_more(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock_options options = with_ttl(TTL);
    options.wait = EVLOCK_WAIT_QUEUE;
    options.retry_delay_ms = 20;
    evlock_client *client = quick_client(f, NULL);
    evlock *holder = lock_new(f, "a", &options), *waiter = lock_new(f, "a", &options);
    assert_status(await_acquire(f, holder, NULL), EVLOCK_OK);
    assert_status(evlock_acquire(waiter, NULL, record_end, &record), EVLOCK_OK);
    await(f, ask_waiters(f, holder) == 1);
    server_do(f->server, "ACL SETUSER default -time");
    await(f, missing(client) == EVLOCK_MISSING_TIME);
    await(f, ask_waiters(f, holder) == 0);
    assert_int_equal(record.count, 0);
    assert_status(await_release(f, holder), EVLOCK_OK);
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    assert_status(await_release(f, waiter), EVLOCK_OK);
    server_do(f->server, "ACL SETUSER default +time");
}

/* A server that goes is asked anew: another's clock may be another. */
static void a_clock_is_not_brought_to_another_connection(void **state) {
    struct fixture *f = *state;
    evlock_options options = fenced();
    uint64_t last = 0;
    start_without_time(f, 0);
    evlock_client *client = quick_client(f, muxes[0].url);
    evlock *lock = lock_new(f, "a", &options);
    assert_status(draw_fence(f, lock, &last), EVLOCK_OK);
    reconnect(f, client);
    assert_status(draw_fence(f, lock, &last), EVLOCK_OK);
    assert_int_equal(times_logged(f, "lacks TIME in scripts"), 2);
}

/* Nor does the next connection wait for what the last one asked for. */
static void a_clock_that_was_not_answered_is_asked_for_again(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock_options options = fenced();
    uint64_t last = 0;
    start_without_time(f, 0);
    evlock_client *client = quick_client(f, muxes[0].url);
    evlock *lock = lock_new(f, "a", &options);
    assert_status(draw_fence(f, lock, &last), EVLOCK_OK);
    run_for(f, 1100); /* so that it is read anew */
    server_pause(&servers[0]);
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    mux_cut(&muxes[0]);
    await(f, evlock_client_connection(client) != EVLOCK_CONNECTED);
    server_resume(&servers[0]);
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    assert_true(evlock_fence(lock) > last);
}

/* It may be allowed by the next login. */
static void a_clock_that_was_refused_is_asked_for_by_the_next_connection(void **state) {
    struct fixture *f = *state;
    evlock_options options = fenced();
    uint64_t last = 0;
    start_without_time(f, 0);
    server_do(&servers[0], "ACL SETUSER default -time");
    evlock_client *client = quick_client(f, muxes[0].url);
    evlock *lock = lock_new(f, "a", &options);
    assert_status(draw_fence(f, lock, &last), EVLOCK_EUNSUPPORTED);
    server_do(&servers[0], "ACL SETUSER default +time");
    reconnect(f, client);
    assert_status(draw_fence(f, lock, &last), EVLOCK_OK);
}

/* A server that is busy for now has the clock all the same. */
static void a_clock_that_is_refused_for_now_is_asked_for_again(void **state) {
    static const struct mux_rule busy[] = {
        {"TIME", "EVAL if(redis.call('EXISTS','busy')==1)then\treturn(redis.error_reply('BUSY\\32now'))end\t"
                 "return(redis.call('SECRETTIME')) 0"},
        {NULL, NULL},
    };
    struct fixture *f = *state;
    evlock_options options = fenced();
    uint64_t last = 0;
    server_start(&servers[0], false, hides_time);
    mux_start(&muxes[0], &servers[0], false, busy);
    f->server = &servers[0];
    evlock_client *client = quick_client(f, muxes[0].url);
    evlock *lock = lock_new(f, "a", &options);
    server_do(f->server, "SET busy 1");
    assert_status(draw_fence(f, lock, &last), EVLOCK_EUNSUPPORTED);
    server_do(f->server, "DEL busy");
    assert_status(draw_fence(f, lock, &last), EVLOCK_OK);
    assert_int_equal(missing(client), EVLOCK_MISSING_CLOCK);
    assert_int_equal(f->connection_states[EVLOCK_AWAY], 0);
}

/* Each node has its own clock; a number that a node did not draw is raised there. */
static void a_quorum_draws_by_clocks_that_are_brought(void **state) {
    struct fixture *f = *state;
    evlock_client_options durable = options_for(f, muxes[0].url);
    evlock_options options = fenced();
    uint64_t last = 0;
    char url[512];
    for (size_t i = 0; i < SERVERS; i++)
        start_without_time(f, i);
    snprintf(url, sizeof(url), "quorum:%s %s %s", muxes[0].url, muxes[1].url, muxes[2].url);
    durable.durable = true;
    f->client = NULL;
    client_new(f, url, &durable);
    evlock *lock = lock_new(f, "a", &options);
    for (int i = 0; i < 10; i++) {
        await(f, draw_fence(f, lock, &last) == EVLOCK_OK);
        server_do(&servers[i % 3], "SET {a}:fence 5");
    }
}

/* --- Profiles ----------------------------------------------------------------------------------------------------- */

/* What a service refuses, as its documents have it, and what comes of that. docs/services.md has the same table. */
struct profile {
    const char *name;
    const char *away;   /* commands that it has not, nor its scripts */
    const char *hidden; /* commands that scripts have, and clients have not */
    const char *info;   /* what INFO server says; NULL: the server's own */
    bool cluster;       /* all slots are there, and kept apart */
    bool merged;        /* connections are shared */
    bool counts_one;    /* WAIT answers 1 at once */
    bool brings_time;   /* TIME is refused to scripts alone */
    int refused;        /* no lock is to be had, for this reason */
    bool polls;         /* instead of waiting in line */
    int replicas;       /* of an acquire that wants one, of which there is none */
    uint32_t missing;
};

#define BEHIND_PROXY "SCRIPT CLIENT INFO SELECT WAIT SUBSCRIBE PUBSUB PUBLISH"
#define NO_RUN_ID "\nredis_version:7.4.0\r\nuptime_in_seconds:1000\r\n"

static const struct profile profiles[] = {
    {.name = "a server of one's own", .replicas = EVLOCK_EREPLICAS},
    {.name = "ElastiCache, MemoryDB: one shard",
     .cluster = true,
     .replicas = EVLOCK_EREPLICAS,
     .missing = EVLOCK_MISSING_BATCHES},
    {.name = "ElastiCache Serverless",
     .away = "WAIT",
     .cluster = true,
     .brings_time = true,
     .replicas = EVLOCK_EUNSUPPORTED,
     .missing = EVLOCK_MISSING_BATCHES | EVLOCK_MISSING_CLOCK | EVLOCK_MISSING_WAIT},
    {.name = "Azure, Redis Software", .hidden = "SELECT", .counts_one = true, .replicas = EVLOCK_OK},
    {.name = "Upstash",
     .hidden = "KILL",
     .info = NO_RUN_ID,
     .replicas = EVLOCK_EREPLICAS,
     .missing = EVLOCK_MISSING_IDENTITY | EVLOCK_MISSING_KILL},
    {.name = "Alibaba, Tencent: behind their proxies",
     .hidden = "WAIT CLIENT",
     .replicas = EVLOCK_EUNSUPPORTED,
     .missing = EVLOCK_MISSING_WAIT | EVLOCK_MISSING_KILL},
    {.name = "Envoy, twemproxy",
     .hidden = BEHIND_PROXY,
     .merged = true,
     .polls = true,
     .replicas = EVLOCK_EUNSUPPORTED,
     .missing = EVLOCK_MISSING_DIGESTS | EVLOCK_MISSING_BATCHES | EVLOCK_MISSING_IDENTITY | EVLOCK_MISSING_KILL |
                EVLOCK_MISSING_CHANNELS | EVLOCK_MISSING_WAIT},
    {.name = "Dragonfly",
     .info = NO_RUN_ID,
     .replicas = EVLOCK_EREPLICAS,
     .missing = EVLOCK_MISSING_IDENTITY | EVLOCK_MISSING_KILL},
    {.name = "KeyDB, not active",
     .info = "\nredis_version:6.3.4\r\nrun_id:0123456789012345678901234567890123456789\r\n",
     .replicas = EVLOCK_EREPLICAS,
     .missing = EVLOCK_MISSING_BATCHES},
    {.name = "OCI, sharded", .away = "EVAL EVALSHA SCRIPT", .refused = EVLOCK_EUNSUPPORTED},
    {.name = "Garnet", .info = "\nredis_version:7.4.3\r\ngarnet_version:1.0.84\r\n", .refused = EVLOCK_EUNSUPPORTED},
};

/* As rules and as options, of the server and of the proxy ahead of it. */
struct setting {
    struct extra extra;
    struct mux_rule rules[16];
    char hidden[128];
};

static void add_option(struct extra *extra, const char *const *words) {
    size_t count = 0;
    while (extra->words[count])
        count++;
    while (*words)
        extra->words[count++] = *words++;
    extra->words[count] = NULL;
}

static void make_setting(struct setting *setting, const struct profile *profile) {
    static const char *const cluster[] = {"--cluster-enabled", "yes", NULL};
    size_t count = 0;
    *setting = (struct setting){0};
    rename_away(&setting->extra, profile->away ? profile->away : "");
    if (profile->cluster)
        add_option(&setting->extra, cluster);
    if (profile->brings_time)
        add_option(&setting->extra, hides_time);
    snprintf(setting->hidden, sizeof(setting->hidden), "%s", profile->hidden ? profile->hidden : "");
    if (profile->brings_time)
        setting->rules[count++] = shows_time[0];
    if (profile->counts_one)
        setting->rules[count++] = counts_one[0];
    if (profile->info)
        setting->rules[count++] = (struct mux_rule){"INFO server", "GET info"};
    for (char *word = strtok(setting->hidden, " "); word; word = strtok(NULL, " "))
        setting->rules[count++] = (struct mux_rule){strcmp(word, "KILL") == 0 ? "CLIENT KILL" : word, "NOTHING"};
}

static void start_profile(const struct profile *profile, struct setting *setting, size_t index) {
    server_start(&servers[index], profile->cluster, setting->extra.words);
    if (profile->cluster)
        server_do(&servers[index], "CLUSTER ADDSLOTSRANGE 0 16383");
    for (bool up = !profile->cluster; !up;) {
        redisReply *reply = server_command(&servers[index], "CLUSTER INFO");
        up = strstr(reply->str, "cluster_state:ok");
        freeReplyObject(reply);
    }
    if (profile->info)
        server_do(&servers[index], "SET info %s", profile->info);
    mux_start(&muxes[index], &servers[index], profile->merged, setting->rules);
}

static void use_alone(struct fixture *f, const struct profile *profile) {
    evlock_options options = fenced();
    uint64_t last = 0;
    f->server = &servers[0];
    evlock_client *client = quick_client(f, muxes[0].url);
    if (profile->refused) {
        assert_status(await_try(f, lock_new(f, "a", NULL)), profile->refused);
        return;
    }
    lock_works(f);
    renewals_work(f);
    evlock *lock = lock_new(f, "fenced", &options);
    for (int i = 0; i < 3; i++)
        assert_status(draw_fence(f, lock, &last), EVLOCK_OK);
    wait_in_line(f);
    assert_status(await_try(f, replicated(f, 1, profile->replicas == EVLOCK_EREPLICAS ? 50 : LONG)), profile->replicas);
    if (profile->counts_one) {
        lock_free(f, f->locks[f->locks_len - 1]);
        assert_hopeless(f, replicated(f, 2, LONG), EVLOCK_EUNSUPPORTED, "1 of 2 replicas have it, and");
    }
    assert_int_equal(server_calls(&servers[0], "zadd") == 0, profile->polls);
    await(f, missing(client) == profile->missing);
    assert_int_equal(f->connection_states[EVLOCK_AWAY], 0);
}

static void use_three(struct fixture *f) {
    evlock_client_options durable = options_for(f, muxes[0].url);
    evlock_options options = fenced();
    uint64_t last = 0;
    char url[512];
    snprintf(url, sizeof(url), "quorum:%s %s %s", muxes[0].url, muxes[1].url, muxes[2].url);
    durable.durable = true; /* or else those that do not say who they are would not count yet */
    f->client = NULL;
    client_new(f, url, &durable);
    evlock *lock = lock_new(f, "quorum", &options);
    for (int i = 0; i < 3; i++)
        await(f, draw_fence(f, lock, &last) == EVLOCK_OK);
    options.auto_renewal = true;
    options.renewal_interval_ms = 50;
    evlock *renewed = lock_new(f, "renewed", &options);
    assert_status(await_acquire(f, renewed, NULL), EVLOCK_OK);
    await(f, stats_of(f->client).renewals > 20);
    assert_true(evlock_is_held(renewed));
    assert_status(await_release(f, renewed), EVLOCK_OK);
}

static int64_t excluded_ms(const evlock_client *client, size_t node) {
    evlock_node_info info;
    assert_status(evlock_client_node(client, node, &info, sizeof(info)), EVLOCK_OK);
    return info.excluded_ms;
}

/* Whatever age it has: another server may have that behind the same address, and none of the locks. */
static void a_node_that_says_not_who_it_is_counts_late(void **state) {
    enum { MAX_TTL = 1000 };
    static const struct mux_rule rules[] = {{"INFO server", "GET info"}, {NULL, NULL}};
    struct fixture *f = *state;
    evlock_client_options options = options_for(f, "unix:");
    evlock_options terms = with_ttl(MAX_TTL);
    char url[512];
    for (size_t i = 0; i < SERVERS; i++) {
        server_start(&servers[i], false, NULL);
        server_do(&servers[i], "SET info %s", NO_RUN_ID);
        mux_start(&muxes[i], &servers[i], false, rules);
    }
    snprintf(url, sizeof(url), "quorum:%s %s %s", muxes[0].url, muxes[1].url, muxes[2].url);
    options.max_ttl_ms = MAX_TTL;
    f->client = NULL;
    evlock_client *client = client_new(f, url, &options);
    evlock *lock = lock_new(f, "a", &terms);
    int64_t begun = evlock_clock_us();
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_true(evlock_clock_us() - begun >= MAX_TTL * 1000);
    await(f, !excluded_ms(client, 0) && !excluded_ms(client, 1) && !excluded_ms(client, 2));
    mux_cut(&muxes[1]); /* each login may have found another one */
    await(f, excluded_ms(client, 1));
    assert_int_equal(excluded_ms(client, 0), 0);
}

/* Three of one run_id would be one server. */
static bool has_own_identity(const struct profile *profile) {
    return !profile->info || !strstr(profile->info, "run_id");
}

static void each_service_gives_what_is_told(void **state) {
    struct fixture *f = *state;
    struct setting setting;
    for (size_t i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++) {
        const struct profile *profile = &profiles[i];
        print_message("# %s\n", profile->name);
        make_setting(&setting, profile);
        for (size_t at = 0; at < SERVERS; at++)
            start_profile(profile, &setting, at);
        use_alone(f, profile);
        clear(f);
        if (!profile->refused && has_own_identity(profile))
            use_three(f);
        clear(f);
        stop_all();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROFILE_TEST(what_is_missing_is_told),
        PROFILE_TEST(what_is_forbidden_is_told_as_missing),
        PROFILE_TEST(what_is_missing_is_told_of_each_connection),
        PROFILE_TEST(a_channel_that_is_allowed_again_is_not_missing),
        PROFILE_TEST(a_channel_that_is_missing_is_warned_of_once),
        PROFILE_TEST(connections_say_whose_they_are),
        PROFILE_TEST(a_name_that_is_refused_is_logged),
        PROFILE_TEST(servers_that_cannot_keep_a_lock_are_left),
        PROFILE_TEST(a_shared_connection_is_not_ended),
        PROFILE_TEST(a_new_shared_connection_is_not_ended),
        PROFILE_TEST(a_late_acquire_behind_a_proxy_is_undone),
        PROFILE_TEST(an_end_that_is_refused_is_told),
        PROFILE_TEST(a_connection_with_two_numbers_is_shared),
        PROFILE_TEST(a_connection_is_its_own_though_it_seems_two_seconds_old),
        PROFILE_TEST(replicas_that_cannot_be_asked_are_told_at_once),
        PROFILE_TEST(replicas_that_can_be_asked_again_are_not_missing),
        PROFILE_TEST(replicas_are_asked_of_the_locks_database),
        PROFILE_TEST(a_server_that_counts_one_replica_at_most_is_told_at_once),
        PROFILE_TEST(too_few_replicas_are_told_as_that),
        PROFILE_TEST(replicas_are_not_asked_on_a_shared_connection),
        PROFILE_TEST(equal_numbers_of_two_processes_are_no_shared_connection),
        PROFILE_TEST(fences_are_drawn_by_a_clock_that_is_brought),
        PROFILE_TEST(a_clock_is_asked_for_by_what_brings_it_alone),
        PROFILE_TEST(a_queue_goes_on_by_a_clock_that_is_brought),
        PROFILE_TEST(a_holder_learns_that_its_clock_is_wanted),
        PROFILE_TEST(who_breaks_learns_that_its_clock_is_wanted),
        PROFILE_TEST(without_a_clock_there_is_no_fence_and_no_queue),
        PROFILE_TEST(a_waiter_leaves_a_line_that_has_no_clock_any_more),
        PROFILE_TEST(a_clock_is_not_brought_to_another_connection),
        PROFILE_TEST(a_clock_that_was_not_answered_is_asked_for_again),
        PROFILE_TEST(a_clock_that_was_refused_is_asked_for_by_the_next_connection),
        PROFILE_TEST(a_clock_that_is_refused_for_now_is_asked_for_again),
        PROFILE_TEST(a_quorum_draws_by_clocks_that_are_brought),
        PROFILE_TEST(a_node_that_says_not_who_it_is_counts_late),
        PROFILE_TEST(each_service_gives_what_is_told),
    };
    return run_suite("profiles", tests);
}
