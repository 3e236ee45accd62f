/*
 * What a server may say instead of doing what it was asked, and what evlock makes of it: for each refusal that a real
 * server can be brought to, the status, the server's words, the pace of what follows, and that nothing is left behind.
 * Each test may leave its server in any state: the next one gets a new process.
 */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static struct server other;
static int teardown(void **state) {
    server_stop(&other);
    return fixture_teardown_restart(state);
}

#define REPLY_TEST(function) cmocka_unit_test_setup_teardown(function, fixture_setup, teardown)
#define REPLY_TEST_BARE(function) cmocka_unit_test_setup_teardown(function, fixture_setup_bare, teardown)

/* The rest of the test is about a server of its own. */
static void move_to_other(struct fixture *f, bool tcp, const char *const *extra) {
    server_start(&other, tcp, extra);
    f->server = &other;
}

static void assert_words(struct fixture *f, const char *words) {
    if (!strstr(f->ended.error, words))
        fail_msg("the last error is \"%s\", not \"%s\"", f->ended.error, words);
}

/* What was counted since `begun` came so far apart, in the mean, but for the first few. */
static void assert_paced(long long count, int64_t begun, int first, int pause_ms) {
    long long most = first + (evlock_clock_us() - begun) / 1000 / pause_ms;
    if (count > most)
        fail_msg("%lld attempts, more than %lld", count, most);
}

static evlock *held(struct fixture *f, const char *name) {
    evlock *lock = lock_new(f, name, NULL);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    return lock;
}

/* A client that sees its calls through as long as a test lasts, but for a short command timeout if one is given. */
static evlock_client *quick_client(struct fixture *f, int64_t command_timeout_ms) {
    evlock_client_options options = client_options(f);
    options.command_timeout_ms = command_timeout_ms ? command_timeout_ms : 2 * WAIT_MS;
    options.backoff_max_ms = 200;
    f->client = NULL;
    return client_new(f, f->server->url, &options);
}

/* The server refuses all locks in these words: a try says so, and an acquire tries on, calmly, until the command `mend`
 * has helped. `each` is how many errors an attempt makes: a login makes one for each script, and a few more. */
static void refused_until(struct fixture *f, const char *code, int each, const char *mend) {
    evlock *lock = lock_new(f, "a", NULL);
    struct record record = {0};
    int64_t begun = evlock_clock_us();
    assert_status(await_try(f, lock), EVLOCK_EREFUSED);
    assert_words(f, code);
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    run_for(f, 700);
    assert_int_equal(record.count, 0);
    server_do(f->server, mend);
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    assert_int_in_range(server_errors(f->server, code), 2, INT32_MAX);
    assert_paced(server_errors(f->server, code) / each, begun, 4, 50);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_false(key_exists(f->server, "a"));
    assert_int_equal(record.count, 1);
}

/* --- Not now ------------------------------------------------------------------------------------------------------ */

/* What one call costs when the server has lost the scripts: its commands, the first twice, and each script once. */
#define assert_one_reload(f, call, commands)                                                                           \
    do {                                                                                                               \
        server_do((f)->server, "SCRIPT FLUSH");                                                                        \
        server_do((f)->server, "CONFIG RESETSTAT");                                                                    \
        assert_status((call), EVLOCK_OK);                                                                              \
        assert_int_equal(server_calls((f)->server, "evalsha"), 1 + (commands));                                        \
        assert_int_equal(server_errors((f)->server, "NOSCRIPT"), 1);                                                   \
        assert_int_equal(server_calls((f)->server, "script|load"), SCRIPTS); /* all there are */                       \
    } while (0)

static void noscript_is_mended_by_one_load(void **state) {
    struct fixture *f = *state;
    evlock *lock = held(f, "a");
    release_by_script(f);
    assert_one_reload(f, await_extend(f, lock, 1000, EVLOCK_EXTEND_ADD), 1);
    assert_one_reload(f, await_extend(f, lock, 60000, EVLOCK_EXTEND_REPLACE), 1);
    assert_one_reload(f, await_extend(f, lock, 0, EVLOCK_EXTEND_RESET), 1);
    assert_one_reload(f, await_release(f, lock), 1);
    server_do(f->server, "SET a stranger PX 600000");
    assert_one_reload(f, await_adopt(f, lock, "stranger", EVLOCK_CSTRING), 1);
    assert_status(await_release(f, lock), EVLOCK_OK);
    server_do(f->server, "SET a stranger PX 600000");
    assert_one_reload(f, await_break(f, lock), 2);
}

static void noscript_to_a_renewal_is_mended_by_one_load(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(60000);
    options.auto_renewal = 1;
    options.renewal_interval_ms = 200;
    evlock *lock = lock_new(f, "a", &options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    renew_by_script(lock);
    server_do(f->server, "CONFIG RESETSTAT");
    server_do(f->server, "SCRIPT FLUSH");
    server_do(f->server, "PEXPIRE a 30000");
    await(f, key_ttl(f->server, "a") > 40000);
    assert_int_equal(server_errors(f->server, "NOSCRIPT"), 1);
    assert_status(await_release(f, lock), EVLOCK_OK);
}

/* Many commands that meet NOSCRIPT together share one load. */
static void noscript_to_many_is_mended_by_one_load(void **state) {
    struct fixture *f = *state;
    evlock *locks[20];
    struct record records[20] = {0};
    char name[16];
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "lock%d", i);
        locks[i] = held(f, name);
    }
    release_by_script(f);
    server_do(f->server, "SCRIPT FLUSH");
    server_do(f->server, "CONFIG RESETSTAT");
    for (int i = 0; i < 20; i++)
        assert_status(evlock_release(locks[i], record_end, &records[i]), EVLOCK_OK);
    for (int i = 0; i < 20; i++) {
        await(f, records[i].count);
        assert_ended(&records[i], EVLOCK_OK);
    }
    assert_int_in_range(server_calls(f->server, "script|load"), 5, SCRIPTS);
    assert_int_in_range(server_calls(f->server, "evalsha"), 40, 60);
}

/* Two commands of one lease were on their way: the second refusal is no sign that loading did not help. */
static void noscript_to_two_of_a_lease_is_mended_by_one_load(void **state) {
    struct fixture *f = *state;
    struct record extended = {0}, released = {0};
    evlock *lock = held(f, "a");
    release_by_script(f);
    server_do(f->server, "SCRIPT FLUSH");
    server_do(f->server, "CONFIG RESETSTAT");
    assert_status(evlock_extend(lock, 1000, EVLOCK_EXTEND_ADD, record_end, &extended), EVLOCK_OK);
    assert_status(evlock_release(lock, record_end, &released), EVLOCK_OK);
    await(f, extended.count && released.count);
    assert_ended(&released, EVLOCK_OK);
    assert_int_equal(server_errors(f->server, "NOSCRIPT"), 2);
    assert_int_equal(server_calls(f->server, "script|load"), SCRIPTS);
    assert_int_equal(server_calls(f->server, "eval"), 0);
}

/* A server that takes its time over a big file; `mend` lets it hurry. */
static void loading_is_waited_out(void **state) {
    static const char *const extra[] = {"--loading-process-events-interval-bytes", "1024", "--key-load-delay", "20000",
                                        NULL};
    struct fixture *f = *state;
    move_to_other(f, false, extra);
    server_do(&other, "EVAL %s 0", "for i = 1, 10000 do redis.call('SET', 'k' .. i, string.rep('x', 100)) end");
    server_do(&other, "SAVE");
    server_restart(&other);
    quick_client(f, 0);
    refused_until(f, "LOADING", SCRIPTS, "CONFIG SET key-load-delay 0");
    assert_int_equal(server_integer(&other, "DBSIZE"), 10000);
}

static redisContext *run_a_long_script(struct fixture *f) {
    redisContext *busy = redisConnectUnix(f->server->socket);
    int done = 0;
    assert_true(busy && !busy->err);
    server_do(f->server, "CONFIG SET lua-time-limit 20");
    redisAppendCommand(busy, "EVAL %s 0", "while true do end");
    while (!done)
        assert_int_equal(redisBufferWrite(busy, &done), REDIS_OK);
    for (bool refused = false; !refused;) {
        redisReply *reply = server_command(f->server, "GET a");
        refused = reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "BUSY", 4) == 0;
        freeReplyObject(reply);
    }
    return busy;
}

static void busy_is_waited_out(void **state) {
    struct fixture *f = *state;
    quick_client(f, 0);
    await_connected(f, f->client);
    redisContext *busy = run_a_long_script(f);
    refused_until(f, "BUSY", 1, "SCRIPT KILL"); /* which says NOTBUSY if another had killed it */
    redisFree(busy);
}

static void busy_is_waited_out_before_the_login(void **state) {
    struct fixture *f = *state;
    redisContext *busy = run_a_long_script(f);
    quick_client(f, 0);
    refused_until(f, "BUSY", SCRIPTS, "SCRIPT KILL");
    redisFree(busy);
}

static void what_is_held_outlasts_busy(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    quick_client(f, 0);
    evlock *kept = held(f, "kept"), *released = held(f, "released");
    redisContext *busy = run_a_long_script(f);
    assert_status(evlock_release(released, record_end, &record), EVLOCK_OK);
    assert_status(await_extend(f, kept, 1000, EVLOCK_EXTEND_ADD), EVLOCK_EREFUSED);
    assert_words(f, "BUSY");
    assert_true(evlock_is_held(kept));
    assert_int_equal(record.count, 0);
    server_do(f->server, "SCRIPT KILL");
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    assert_false(key_exists(f->server, "released"));
    assert_status(await_release(f, kept), EVLOCK_OK);
    redisFree(busy);
}

static void readonly_is_waited_out(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    quick_client(f, 0);
    await_connected(f, f->client);
    server_do(f->server, "REPLICAOF 127.0.0.1 1");
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(await_try(f, lock), EVLOCK_EREFUSED);
    assert_words(f, "READONLY");
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    await(f, f->connection_states[EVLOCK_AWAY] >= 3); /* another connection may find the new master */
    assert_status(f->away.status, EVLOCK_EREFUSED);
    assert_non_null(strstr(f->away.error, "replica; give the address of its primary"));
    assert_int_equal(record.count, 0);
    assert_int_equal(server_errors(f->server, "READONLY"), 1); /* nothing is asked of one that says what it is */
    server_do(f->server, "REPLICAOF NO ONE");
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    assert_status(await_release(f, lock), EVLOCK_OK);
}

static void a_lease_outlasts_readonly(void **state) {
    struct fixture *f = *state;
    struct record lost = {0};
    evlock_options options = with_ttl(2 * WAIT_MS);
    options.auto_renewal = 1;
    options.renewal_interval_ms = 100;
    options.on_lost = record_end;
    options.arg = &lost;
    quick_client(f, 0);
    evlock *lock = lock_new(f, "a", &options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    server_do(f->server, "REPLICAOF 127.0.0.1 1");
    await(f, server_errors(f->server, "READONLY") >= 1);
    int64_t begun = evlock_clock_us();
    int before = f->connection_states[EVLOCK_AWAY];
    run_for(f, 500);
    assert_paced(f->connection_states[EVLOCK_AWAY] - before, begun, 4, 50);
    server_do(f->server, "REPLICAOF NO ONE");
    server_do(f->server, "PEXPIRE a %d", WAIT_MS);
    await(f, key_ttl(f->server, "a") > 3 * WAIT_MS / 2);
    assert_true(evlock_is_held(lock));
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_int_equal(lost.count, 0);
}

/* What its new master has not is gone from a replica, also when that is promoted. */
static void a_lease_that_the_new_master_lacks_is_lost(void **state) {
    static const char *const extra[] = {"--repl-diskless-sync-delay", "0", NULL};
    struct fixture *f = *state;
    struct record lost = {0};
    evlock_options options = with_ttl(2 * WAIT_MS);
    options.auto_renewal = 1;
    options.renewal_interval_ms = 100;
    options.on_lost = record_end;
    options.arg = &lost;
    server_start(&other, true, extra);
    quick_client(f, 0);
    evlock *lock = lock_new(f, "a", &options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    server_do(f->server, "REPLICAOF 127.0.0.1 %d", other.port);
    await(f, !key_exists(f->server, "a"));
    server_do(f->server, "REPLICAOF NO ONE");
    await(f, lost.count);
    assert_false(evlock_is_held(lock));
    assert_int_equal(lost.status, EVLOCK_ENOTOWNED);
    assert_status(await_release(f, lock), EVLOCK_ENOTOWNED);
    assert_int_equal(lost.count, 1);
}

/* A replica that has lost its master may refuse reads as well. */
static void masterdown_refuses_what_a_replica_could_do(void **state) {
    struct fixture *f = *state;
    quick_client(f, 0);
    evlock *lock = held(f, "a");
    server_do(f->server, "CONFIG SET replica-serve-stale-data no");
    server_do(f->server, "REPLICAOF 127.0.0.1 1");
    assert_status(await_extend(f, lock, 1000, EVLOCK_EXTEND_ADD), EVLOCK_EREFUSED);
    assert_words(f, "MASTERDOWN");
    assert_status(await_query(f, lock, EVLOCK_QUERY_LOCKED), EVLOCK_EREFUSED);
    assert_words(f, "MASTERDOWN");
    assert_true(evlock_is_held(lock));
    server_do(f->server, "REPLICAOF NO ONE");
    assert_status(await_release(f, lock), EVLOCK_OK);
}

static void oom_is_waited_out(void **state) {
    struct fixture *f = *state;
    server_do(f->server, "CONFIG SET maxmemory 1");
    refused_until(f, "OOM", 1, "CONFIG SET maxmemory 0");
}

static void a_full_server_still_renews_and_releases(void **state) {
    struct fixture *f = *state;
    evlock *lock = held(f, "a");
    server_do(f->server, "CONFIG SET maxmemory 1");
    assert_status(await_extend(f, lock, 1000, EVLOCK_EXTEND_ADD), EVLOCK_OK);
    assert_status(await_extend(f, lock, 0, EVLOCK_EXTEND_RESET), EVLOCK_OK);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_false(key_exists(f->server, "a"));
}

static void noreplicas_is_waited_out(void **state) {
    struct fixture *f = *state;
    server_do(f->server, "CONFIG SET min-replicas-to-write 1");
    refused_until(f, "NOREPLICAS", 1, "CONFIG SET min-replicas-to-write 0");
}

/* A release is refused too: it is answered in time, and goes on by itself. */
static void a_release_outlasts_its_refusal(void **state) {
    struct fixture *f = *state;
    quick_client(f, 300);
    evlock *lock = held(f, "a");
    server_do(f->server, "CONFIG SET min-replicas-to-write 1");
    int64_t begun = evlock_clock_us();
    assert_status(await_release(f, lock), EVLOCK_EREFUSED);
    assert_words(f, "NOREPLICAS");
    assert_true(key_exists(f->server, "a"));
    run_for(f, 500);
    assert_paced(server_errors(f->server, "NOREPLICAS"), begun, 4, 50);
    server_do(f->server, "CONFIG SET min-replicas-to-write 0");
    await(f, !key_exists(f->server, "a"));
}

/* Where nobody comes back to it, the ttl frees the lock. */
static void the_ttl_frees_what_may_not_be_released(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(1000);
    quick_client(f, 300);
    evlock *lock = lock_new(f, "a", &options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    server_do(f->server, "CONFIG SET min-replicas-to-write 1");
    assert_status(await_release(f, lock), EVLOCK_EREFUSED);
    await(f, !key_exists(f->server, "a"));
}

/* A directory in the place of the dump makes saving fail. */
static void misconf_is_waited_out(void **state) {
    struct fixture *f = *state;
    char dump[128];
    snprintf(dump, sizeof(dump), "%s/dump.rdb", f->server->folder);
    assert_int_equal(mkdir(dump, 0700), 0);
    server_do(f->server, "CONFIG SET save %s", "3600 1");
    server_do(f->server, "BGSAVE");
    for (bool failed = false; !failed;) {
        redisReply *reply = server_command(f->server, "INFO persistence");
        failed = strstr(reply->str, "rdb_last_bgsave_status:err") != NULL;
        freeReplyObject(reply);
    }
    assert_int_equal(rmdir(dump), 0);
    refused_until(f, "MISCONF", 1, "CONFIG SET stop-writes-on-bgsave-error no");
}

/* The server says so and hangs up, perhaps before it was asked anything. Before TLS is spoken it cannot say so. */
static void max_clients_is_waited_out(void **state) {
    struct fixture *f = *state;
    int refused = f->server->tls ? EVLOCK_EUNREACHABLE : EVLOCK_EREFUSED;
    struct record record = {0};
    evlock_client_options options = client_options(f);
    options.backoff_min_ms = 1;
    options.backoff_max_ms = 400;
    client_free(f, f->client);
    await(f, server_info(f->server, "clients", "connected_clients:") == 1);
    server_do(f->server, "CONFIG SET maxclients 1");
    evlock *lock = lock_new_on(f, client_new(f, NULL, &options), "a", NULL);
    int64_t begun = evlock_clock_us();
    assert_status(await_try(f, lock), refused);
    if (!f->server->tls)
        assert_words(f, "max number of clients");
    await(f, f->away.count);
    assert_status(f->away.status, refused);
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    run_for(f, 1000);
    assert_int_equal(record.count, 0);
    assert_paced(server_info(f->server, "stats", "rejected_connections:"), begun, f->server->tls ? 10 : 2, 200);
    server_do(f->server, "CONFIG SET maxclients 100");
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
}

/* The words are heard also when the server has hung up before the client had written a byte. */
static void max_clients_is_heard_in_time(void **state) {
    struct fixture *f = *state;
    relay_start(&f->relay, f->server);
    evlock *lock = lock_new_on(f, client_new(f, f->relay.url, NULL), "a", NULL);
    await(f, relay_say(&f->relay, "-ERR max number of clients reached\r\n"));
    relay_hang_up(&f->relay);
    assert_status(await_try(f, lock), EVLOCK_EREFUSED);
    assert_words(f, "max number of clients");
}

/* --- Not for you -------------------------------------------------------------------------------------------------- */

/* The login is refused in these words: acquires end at once, the connection is tried again at its longest pause. */
static void login_is_refused(struct fixture *f, const char *url, int status, const char *words) {
    evlock_client_options options = client_options(f);
    options.backoff_min_ms = 1;
    options.backoff_max_ms = 2000;
    evlock *lock = lock_new_on(f, client_new(f, url, &options), "a", NULL);
    server_do(f->server, "CONFIG RESETSTAT");
    int64_t begun = evlock_clock_us();
    assert_status(await_acquire(f, lock, NULL), status);
    assert_words(f, words);
    assert_status(await_query(f, lock, EVLOCK_QUERY_LOCKED), status);
    assert_words(f, words);
    run_for(f, 500);
    assert_paced(server_info(f->server, "stats", "total_connections_received:"), begun, 1, 1000);
    assert_int_equal(server_calls(f->server, "set"), 0);
}

static void noauth_ends_an_acquire(void **state) {
    struct fixture *f = *state;
    server_do(f->server, "CONFIG SET requirepass secret");
    login_is_refused(f, NULL, EVLOCK_EAUTH, "NOAUTH");
}

static void wrongpass_ends_an_acquire(void **state) {
    struct fixture *f = *state;
    char url[128];
    server_do(f->server, "CONFIG SET requirepass secret");
    snprintf(url, sizeof(url), "%s://:guessed@127.0.0.1:%d", server_scheme(), f->server->port);
    login_is_refused(f, url, EVLOCK_EAUTH, "WRONGPASS");
    assert_null(strstr(f->log, "guessed"));
    assert_null(strstr(f->ended.error, "guessed"));
}

static void a_password_that_is_not_wanted_ends_an_acquire(void **state) {
    struct fixture *f = *state;
    char url[128];
    snprintf(url, sizeof(url), "%s://:guessed@127.0.0.1:%d", server_scheme(), f->server->port);
    login_is_refused(f, url, EVLOCK_EAUTH, "AUTH");
}

static void a_database_that_is_not_there_ends_an_acquire(void **state) {
    struct fixture *f = *state;
    char url[128];
    snprintf(url, sizeof(url), "%s://127.0.0.1:%d/99", server_scheme(), f->server->port);
    login_is_refused(f, url, EVLOCK_EUNSUPPORTED, "DB index");
}

/* The client of a user who may do no more than locks need: no CLIENT and no INFO either. */
static evlock_client *client_of_worker(struct fixture *f) {
    evlock_client_options options = client_options(f);
    server_do(f->server, "ACL SETUSER worker on >work resetkeys resetchannels -@all ~lock:* "
                         "+evalsha +script|load +get +set +pexpire +pttl +del");
    options.user = "worker";
    options.password = "work";
    options.backoff_max_ms = 200;
    f->client = NULL;
    return client_new(f, NULL, &options);
}

static void the_least_privilege_is_enough(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(60000);
    char token[128];
    size_t len;
    options.prefix = "lock:";
    client_of_worker(f);
    evlock *lock = lock_new(f, "a", &options), *next = lock_new(f, "a", &options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_status(await_try(f, next), EVLOCK_EHELD);
    assert_status(await_extend(f, lock, 1000, EVLOCK_EXTEND_ADD), EVLOCK_OK);
    assert_status(await_extend(f, lock, 90000, EVLOCK_EXTEND_REPLACE), EVLOCK_OK);
    assert_status(await_extend(f, lock, 0, EVLOCK_EXTEND_RESET), EVLOCK_OK);
    assert_true(ask_owned(f, lock));
    assert_status(await_query(f, lock, EVLOCK_QUERY_LOCKED), EVLOCK_OK);
    assert_status(await_query(f, lock, EVLOCK_QUERY_TTL), EVLOCK_OK);
    server_do(f->server, "CLIENT KILL USER worker");
    assert_status(await_query(f, next, EVLOCK_QUERY_LOCKED), EVLOCK_OK);
    server_do(f->server, "SCRIPT FLUSH");
    assert_status(evlock_export(lock, token, sizeof(token), &len), EVLOCK_OK);
    assert_status(await_adopt(f, next, token, len), EVLOCK_OK);
    assert_status(await_release(f, next), EVLOCK_OK);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_status(await_break(f, next), EVLOCK_OK);
    assert_status(await_release(f, lock), EVLOCK_ENOTOWNED);
    assert_false(key_exists(f->server, "lock:a"));
}

/* Renewal, by the same user. */
static void the_least_privilege_renews(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(60000);
    options.prefix = "lock:";
    options.auto_renewal = 1;
    options.renewal_interval_ms = 50;
    client_of_worker(f);
    evlock *lock = lock_new(f, "a", &options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    for (int i = 0; i < 3; i++) {
        server_do(f->server, "PEXPIRE lock:a 30000");
        await(f, key_ttl(f->server, "lock:a") > 40000);
    }
    assert_status(await_release(f, lock), EVLOCK_OK);
}

/* The worker lacks one command: what needs it says so, once, and the rest goes on. */
static void noperm_names_what_is_missing(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(60000);
    options.prefix = "lock:";
    client_of_worker(f);
    evlock *lock = lock_new(f, "a", &options);
    server_do(f->server, "ACL SETUSER worker -set");
    assert_status(await_acquire(f, lock, NULL), EVLOCK_EPERM);
    assert_words(f, "NOPERM");
    server_do(f->server, "ACL SETUSER worker +set");
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);

    server_do(f->server, "ACL SETUSER worker -pttl");
    assert_status(await_extend(f, lock, 1000, EVLOCK_EXTEND_ADD), EVLOCK_EPERM);
    assert_status(await_query(f, lock, EVLOCK_QUERY_TTL), EVLOCK_EPERM);
    server_do(f->server, "ACL SETUSER worker +pttl -pexpire");
    assert_status(await_extend(f, lock, 0, EVLOCK_EXTEND_RESET), EVLOCK_EPERM);
    assert_true(evlock_is_held(lock));
    server_do(f->server, "ACL SETUSER worker +pexpire -get");
    assert_status(await_extend(f, lock, 1000, EVLOCK_EXTEND_ADD), EVLOCK_EPERM);
    assert_status(await_query(f, lock, EVLOCK_QUERY_LOCKED), EVLOCK_EPERM);
    assert_status(await_break(f, lock), EVLOCK_EPERM);
    server_do(f->server, "ACL SETUSER worker +get");
    assert_status(await_release(f, lock), EVLOCK_OK);
}

static void a_release_without_permission_leaves_the_lock_to_its_ttl(void **state) {
    struct fixture *f = *state;
    static const char *const missing[] = {"get", "del", "evalsha"};
    evlock_options options = with_ttl(60000);
    options.prefix = "lock:";
    client_of_worker(f);
    evlock *lock = lock_new(f, "a", &options);
    for (int i = 0; i < 3; i++) {
        assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
        server_do(f->server, "ACL SETUSER worker -%s", missing[i]);
        server_do(f->server, "CONFIG RESETSTAT");
        assert_status(await_release(f, lock), EVLOCK_EPERM);
        run_for(f, 300);
        assert_int_in_range(key_ttl(f->server, "lock:a"), 1, 60000);
        assert_int_in_range(server_calls(f->server, "evalsha"), 0, 1); /* to repeat it is no use */
        assert_int_in_range(server_errors(f->server, "NOPERM"), 0, 2); /* a script is tried by its text, too */
        server_do(f->server, "DEL lock:a");
        server_do(f->server, "ACL SETUSER worker +%s", missing[i]);
    }
}

static void a_key_without_permission_ends_an_acquire(void **state) {
    struct fixture *f = *state;
    client_of_worker(f);
    evlock *lock = lock_new(f, "a", NULL);
    server_do(f->server, "CONFIG RESETSTAT");
    assert_status(await_acquire(f, lock, NULL), EVLOCK_EPERM);
    assert_words(f, "NOPERM");
    run_for(f, 300);
    assert_int_in_range(server_errors(f->server, "NOPERM"), 1, 10); /* some of them the login's */
    assert_status(await_query(f, lock, EVLOCK_QUERY_LOCKED), EVLOCK_EPERM);
}

/* Somebody else may have loaded the scripts. */
static void scripts_that_may_not_be_loaded_may_be_there(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(60000);
    options.prefix = "lock:";
    await_connected(f, f->client); /* which loads them */
    client_of_worker(f);
    server_do(f->server, "ACL SETUSER worker -script");
    evlock *lock = lock_new(f, "a", &options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_status(await_extend(f, lock, 0, EVLOCK_EXTEND_RESET), EVLOCK_OK);
    server_do(f->server, "SCRIPT FLUSH");
    server_do(f->server, "CONFIG RESETSTAT");
    assert_status(await_extend(f, lock, 1000, EVLOCK_EXTEND_ADD), EVLOCK_EPERM);
    assert_words(f, "NOPERM");
    assert_int_equal(server_errors(f->server, "NOSCRIPT"), 2);
    assert_true(evlock_is_held(lock));
    server_do(f->server, "ACL SETUSER worker +script|load");
    assert_status(await_release(f, lock), EVLOCK_OK);
}

/* --- Not a lock --------------------------------------------------------------------------------------------------- */

static void wrongtype_ends_every_call(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    server_do(f->server, "RPUSH a x y");
    server_do(f->server, "CONFIG RESETSTAT");
    assert_status(await_acquire(f, lock, NULL), EVLOCK_EWRONGTYPE);
    assert_words(f, "WRONGTYPE");
    assert_int_equal(server_calls(f->server, "set"), 1);
    assert_status(await_try(f, lock), EVLOCK_EWRONGTYPE);
    assert_status(await_adopt(f, lock, "token", EVLOCK_CSTRING), EVLOCK_EWRONGTYPE);
    assert_status(await_query(f, lock, EVLOCK_QUERY_LOCKED), EVLOCK_EWRONGTYPE);
    assert_status(await_break(f, lock), EVLOCK_EWRONGTYPE);
    assert_int_equal(server_integer(f->server, "LLEN a"), 2);
}

/* A key of another type says as surely as another token that the lease is gone. */
static void wrongtype_under_a_hold_ends_the_lease(void **state) {
    struct fixture *f = *state;
    evlock *lock = held(f, "a");
    server_do(f->server, "DEL a");
    server_do(f->server, "RPUSH a x y");
    assert_status(await_extend(f, lock, 1000, EVLOCK_EXTEND_ADD), EVLOCK_ENOTOWNED);
    assert_words(f, "WRONGTYPE");
    assert_false(evlock_is_held(lock));
    assert_status(evlock_extend(lock, 1000, EVLOCK_EXTEND_REPLACE, NULL, NULL), EVLOCK_ELOST);
    assert_status(await_release(f, lock), EVLOCK_EWRONGTYPE);
    assert_words(f, "WRONGTYPE");
    assert_int_equal(server_integer(f->server, "LLEN a"), 2);
    server_do(f->server, "DEL a");
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
}

/* --- Clusters ----------------------------------------------------------------------------------------------------- */

static const char *const cluster[] = {"--cluster-enabled", "yes", "--cluster-node-timeout", "3600000", NULL};

static void clusterdown_is_waited_out(void **state) {
    struct fixture *f = *state;
    move_to_other(f, true, cluster);
    quick_client(f, 0);
    refused_until(f, "CLUSTERDOWN", 1, "CLUSTER ADDSLOTSRANGE 0 16383");
}

/* Restarts the cluster's one node with a second one that is not there: it has the slot of "moved", and the slot of
 * "asked" is on its way to it. */
static void add_a_node_that_is_not_there(struct fixture *f) {
    long long moved = server_integer(f->server, "CLUSTER KEYSLOT moved");
    long long asked = server_integer(f->server, "CLUSTER KEYSLOT asked");
    char path[128], rest[96], self[41], stranger[41];
    redisReply *reply = server_command(f->server, "CLUSTER MYID");
    snprintf(self, sizeof(self), "%s", reply->str);
    freeReplyObject(reply);
    memset(stranger, 'a', 40);
    stranger[40] = '\0';
    server_kill9(f->server);
    snprintf(path, sizeof(path), "%s/nodes.conf", f->server->folder);
    snprintf(rest, sizeof(rest), "[%lld->-%s]", asked, stranger);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "%s :0@0 myself,master - 0 0 1 connected 0-%lld %lld-16383 %s\n", self, moved - 1, moved + 1, rest);
    fprintf(file, "%s 127.0.0.1:1@2 master - 0 0 2 connected %lld\n", stranger, moved);
    fprintf(file, "vars currentEpoch 2 lastVoteEpoch 0\n");
    fclose(file);
    server_restart(f->server);
}

static void redirections_end_an_acquire(void **state) {
    struct fixture *f = *state;
    move_to_other(f, true, cluster);
    add_a_node_that_is_not_there(f);
    quick_client(f, 0);
    assert_status(await_acquire(f, lock_new(f, "moved", NULL), NULL), EVLOCK_EUNSUPPORTED);
    assert_words(f, "MOVED");
    assert_status(await_acquire(f, lock_new(f, "asked", NULL), NULL), EVLOCK_EUNSUPPORTED);
    assert_words(f, "ASK");
    assert_int_equal(server_errors(f->server, "MOVED"), 1);
    assert_int_equal(server_errors(f->server, "ASK"), 1);
    evlock *lock = held(f, "here");
    assert_status(await_release(f, lock), EVLOCK_OK);
}

/* --- Not said, but to be known ------------------------------------------------------------------------------------ */

static bool warned_of_eviction(struct fixture *f) {
    bool warned = f->log && strstr(f->log, "maxmemory-policy");
    free(f->log);
    f->log = NULL;
    f->log_len = 0;
    return warned;
}

/* --- What makes no sense ------------------------------------------------------------------------------------------ */

static const char nil[] = "$-1\r\n"; /* another has the lock */

/* What becomes of a word on its way, `left` times; and how often the server's refusal came as it was since. */
static struct {
    const char *word;
    int byte;
    unsigned char bits; /* that flip */
    int left;
    int whole;
} flips;

static void flip_bits(struct relay *relay, char *bytes, size_t len, bool to_server) {
    bool flip = flips.left > 0 && to_server == (flips.word != nil);
    char *at = memmem(bytes, len, flip ? flips.word : nil, strlen(flip ? flips.word : nil));
    (void)relay;
    if (!at)
        return;
    if (!flip) {
        flips.whole++;
        return;
    }
    at[flips.byte] = (char)(at[flips.byte] ^ flips.bits);
    flips.left--;
    flips.whole = 0;
}

/* A client at a relay, and a lock that another holds. */
static void waiting_at_relay(struct fixture *f, int64_t pause_ms, struct record *record) {
    evlock_client_options options = client_options(f);
    evlock_options polling = with_ttl(60000);
    options.command_timeout_ms = 300;
    options.backoff_min_ms = options.backoff_max_ms = pause_ms;
    polling.retry_delay_ms = 20;
    flips.left = flips.whole = 0;
    flips.word = nil;
    server_do(f->server, "SET a another PX 600000");
    relay_start(&f->relay, f->server);
    f->relay.edit = flip_bits;
    evlock_client *client = client_new(f, f->relay.url, &options);
    evlock *lock = lock_new_on(f, client, "a", &polling);
    assert_status(evlock_acquire(lock, NULL, record_end, record), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && flips.whole);
}

/* One flips in each place of this word. Whichever it is, the next answer tells. */
static void flip_each_bit_of(struct fixture *f, const char *word, const struct record *record) {
    flips.word = word;
    for (size_t at = 0; at < 8 * strlen(word); at++) {
        flips.byte = (int)(at / 8);
        flips.bits = (unsigned char)(1U << at % 8);
        await(f, relay_pump(&f->relay) && flips.whole);
        flips.left = 1;
        await(f, relay_pump(&f->relay) && (record->count || (flips.left == 0 && flips.whole > 1)));
        if (record->count)
            fail_msg("bit %zu of \"%s\" flipped, and the wait ended: %s (%s)", at, word,
                     evlock_strerror(record->status), record->error);
        flips.whole = 0;
        relay_stop(&f->relay); /* which keeps count of some connections only */
        relay_start(&f->relay, f->server);
        f->relay.edit = flip_bits;
    }
}

static void a_bit_that_flips_ends_no_wait(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    waiting_at_relay(f, 50, &record); /* in which an attempt is made */
    flip_each_bit_of(f, nil, &record);
    flip_each_bit_of(f, "NX", &record); /* of what is asked */
    flip_each_bit_of(f, "PX", &record);
    server_do(f->server, "DEL a");
    await(f, relay_pump(&f->relay) && record.count);
    assert_ended(&record, EVLOCK_OK);
}

/* A number is no answer to an attempt. */
static void what_makes_no_sense_twice_ends_a_wait(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    waiting_at_relay(f, 1, &record);
    flips.byte = 0;
    flips.bits = '$' ^ ':';
    flips.left = 2;
    await(f, relay_pump(&f->relay) && record.count);
    assert_ended(&record, EVLOCK_EPROTOCOL);
    assert_int_equal(flips.left, 0);
}

/* With an answer in between it is each time the first. */
static void what_makes_no_sense_now_and_then_ends_no_wait(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    waiting_at_relay(f, 1, &record);
    flips.byte = 0;
    flips.bits = '$' ^ ':';
    for (int i = 0; i < 5; i++) {
        flips.left = 1;
        await(f, relay_pump(&f->relay) && (record.count || (flips.left == 0 && flips.whole > 0)));
        assert_int_equal(record.count, 0);
    }
}

/* Says what no server says to the next connection, in place of all that it is asked. */
static void answer_login_with(struct fixture *f, const char *nonsense) {
    await(f, relay_say(&f->relay, nonsense));
    relay_hang_up(&f->relay);
}

/* Of a connection's beginning the same is true. */
static void end_a_wait_by(struct fixture *f, const char *nonsense, struct record *record) {
    waiting_at_relay(f, 200, record); /* in which attempts are made */
    relay_cut(&f->relay, f->relay.count - 1);
    answer_login_with(f, nonsense);
    flips.whole = 0;
    await(f, relay_pump(&f->relay) && (record->count || flips.whole));
    assert_int_equal(record->count, 0);
    relay_cut(&f->relay, f->relay.count - 1);
    answer_login_with(f, nonsense);
    answer_login_with(f, nonsense);
    await(f, record->count);
    assert_ended(record, EVLOCK_EPROTOCOL);
}

static void nonsense_in_place_of_a_login_ends_a_wait_the_second_time(void **state) {
    struct record record = {0};
    end_a_wait_by(*state, "*1\r\n*1\r\n:1\r\n", &record);
}

/* It is hiredis that finds these. */
static void what_is_no_reply_in_place_of_a_login_ends_a_wait_the_second_time(void **state) {
    struct record record = {0};
    end_a_wait_by(*state, "SSH-2.0-OpenSSH_9.2\r\n", &record);
    assert_non_null(strstr(record.error, "Protocol error"));
}

static void what_is_no_reply_after_the_login_is_told(void **state) {
    struct fixture *f = *state;
    struct record answered = {0};
    relay_start(&f->relay, f->server);
    evlock_client *client = client_new(f, f->relay.url, NULL);
    evlock *lock = lock_new_on(f, client, "a", NULL);
    await(f, relay_pump(&f->relay) && evlock_client_connection(client) == EVLOCK_CONNECTED);
    flips.word = nil;
    flips.byte = 0;
    flips.bits = '$' ^ '?';
    flips.left = 1;
    f->relay.edit = flip_bits;
    f->away = (struct record){0};
    assert_status(evlock_query(lock, EVLOCK_QUERY_LOCKED, record_answer, &answered), EVLOCK_OK);
    await(f, relay_pump(&f->relay) && f->away.count && answered.count);
    assert_status(f->away.status, EVLOCK_EPROTOCOL);
    assert_ended(&answered, EVLOCK_EPROTOCOL); /* it was to be sent again */
}

static void a_policy_that_evicts_locks_is_logged(void **state) {
    struct fixture *f = *state;
    server_do(f->server, "CONFIG SET maxmemory 0"); /* a server of 32 bits has a limit by itself */
    await_connected(f, f->client);
    assert_false(warned_of_eviction(f));
    server_do(f->server, "CONFIG SET maxmemory-policy volatile-lru"); /* with no limit, nothing is evicted */
    await_connected(f, quick_client(f, 0));
    assert_false(warned_of_eviction(f));
    server_do(f->server, "CONFIG SET maxmemory 100mb");
    await_connected(f, quick_client(f, 0));
    assert_true(warned_of_eviction(f));
    server_do(f->server, "CONFIG SET maxmemory-policy noeviction");
    await_connected(f, quick_client(f, 0));
    assert_false(warned_of_eviction(f));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        REPLY_TEST(noscript_is_mended_by_one_load),
        REPLY_TEST(noscript_to_a_renewal_is_mended_by_one_load),
        REPLY_TEST(noscript_to_many_is_mended_by_one_load),
        REPLY_TEST(noscript_to_two_of_a_lease_is_mended_by_one_load),
        REPLY_TEST_BARE(loading_is_waited_out),
        REPLY_TEST(busy_is_waited_out),
        REPLY_TEST_BARE(busy_is_waited_out_before_the_login),
        REPLY_TEST(what_is_held_outlasts_busy),
        REPLY_TEST(readonly_is_waited_out),
        REPLY_TEST(a_lease_outlasts_readonly),
        REPLY_TEST(a_lease_that_the_new_master_lacks_is_lost),
        REPLY_TEST(masterdown_refuses_what_a_replica_could_do),
        REPLY_TEST(oom_is_waited_out),
        REPLY_TEST(a_full_server_still_renews_and_releases),
        REPLY_TEST(noreplicas_is_waited_out),
        REPLY_TEST(a_release_outlasts_its_refusal),
        REPLY_TEST(the_ttl_frees_what_may_not_be_released),
        REPLY_TEST(misconf_is_waited_out),
        REPLY_TEST(max_clients_is_waited_out),
        REPLY_TEST_BARE(max_clients_is_heard_in_time),
        REPLY_TEST_BARE(noauth_ends_an_acquire),
        REPLY_TEST_BARE(wrongpass_ends_an_acquire),
        REPLY_TEST_BARE(a_password_that_is_not_wanted_ends_an_acquire),
        REPLY_TEST_BARE(a_database_that_is_not_there_ends_an_acquire),
        REPLY_TEST(the_least_privilege_is_enough),
        REPLY_TEST(the_least_privilege_renews),
        REPLY_TEST(noperm_names_what_is_missing),
        REPLY_TEST(a_release_without_permission_leaves_the_lock_to_its_ttl),
        REPLY_TEST(a_key_without_permission_ends_an_acquire),
        REPLY_TEST(scripts_that_may_not_be_loaded_may_be_there),
        REPLY_TEST(wrongtype_ends_every_call),
        REPLY_TEST(wrongtype_under_a_hold_ends_the_lease),
        REPLY_TEST_BARE(clusterdown_is_waited_out),
        REPLY_TEST_BARE(redirections_end_an_acquire),
        REPLY_TEST_BARE(a_bit_that_flips_ends_no_wait),
        REPLY_TEST_BARE(what_makes_no_sense_twice_ends_a_wait),
        REPLY_TEST_BARE(what_makes_no_sense_now_and_then_ends_no_wait),
        REPLY_TEST_BARE(nonsense_in_place_of_a_login_ends_a_wait_the_second_time),
        REPLY_TEST_BARE(what_is_no_reply_in_place_of_a_login_ends_a_wait_the_second_time),
        REPLY_TEST_BARE(what_is_no_reply_after_the_login_is_told),
        REPLY_TEST(a_policy_that_evicts_locks_is_logged),
    };
    return run_suite("replies", tests);
}
