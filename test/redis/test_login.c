/*
 * What a connection is told before it is of use, or why it is of none: no server, a server that turns it away, another
 * kind of server, one of a cluster, one that lacks commands. Whatever a lock can be had without is done without; all
 * else is told in words, and at once. Each test may leave its server in any state: the next one gets a new process.
 */
#include "harness.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct server other;
static int teardown(void **state) {
    server_stop(&other);
    return fixture_teardown_restart(state);
}

#define LOGIN_TEST(function) cmocka_unit_test_setup_teardown(function, fixture_setup_bare, teardown)

/* A server of its own for the rest of the test. */
static void move_to_other(struct fixture *f, bool tcp, const char *const *extra) {
    server_stop(&other);
    server_start(&other, tcp, extra);
    f->server = &other;
}

static evlock_client *quick_client(struct fixture *f, const char *url) {
    evlock_client_options options = client_options(f);
    options.backoff_max_ms = 200;
    f->client = NULL;
    return client_new(f, url, &options);
}

/* The connection is of no use, for this reason and in these words, and an acquire is told so. */
static void login_fails(struct fixture *f, const char *url, int status, const char *words) {
    f->away = (struct record){0};
    evlock_client *client = quick_client(f, url);
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(await_try(f, lock), status);
    assert_says(f->ended.error, words);
    await(f, f->away.count); /* of a later try, if the next one had begun before the client could say so */
    assert_status(f->away.status, status);
    assert_says(f->away.error, words);
    client_free(f, client);
}

/* --- Nobody there, or not for you --------------------------------------------------------------------------------- */

static void a_refused_connection_is_told_as_refused(void **state) {
    struct fixture *f = *state;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    char url[64], words[64];
    int nobody = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); /* has the port, and does not listen */
    assert_int_equal(bind(nobody, (struct sockaddr *)&address, len), 0);
    assert_int_equal(getsockname(nobody, (struct sockaddr *)&address, &len), 0);
    snprintf(url, sizeof(url), "%s://127.0.0.1:%d", server_scheme(), ntohs(address.sin_port));
    snprintf(words, sizeof(words), "127.0.0.1:%d: Connection refused", ntohs(address.sin_port));
    login_fails(f, url, EVLOCK_EUNREACHABLE, words);
    snprintf(words, sizeof(words), "node 0 (127.0.0.1:%d): not connected: Connection refused", ntohs(address.sin_port));
    assert_says(f->log, words);
    close(nobody);
}

static void a_server_that_went_is_told_as_refused(void **state) {
    struct fixture *f = *state;
    move_to_other(f, true, NULL);
    await_connected(f, quick_client(f, other.tcp_url));
    server_kill9(&other);
    await(f, f->away.status == EVLOCK_EUNREACHABLE && strstr(f->away.error, "refused"));
    assert_status(await_try(f, lock_new(f, "a", NULL)), EVLOCK_EUNREACHABLE);
    assert_says(f->ended.error, "Connection refused");
}

/* What a server says by itself to whom it does not want, before it hangs up. */
static void turns_away(struct fixture *f, const char *said, int status, const char *words) {
    relay_start(&f->relay, f->server);
    evlock_client *client = quick_client(f, f->relay.url);
    evlock *lock = lock_new(f, "a", NULL);
    await(f, relay_say(&f->relay, said));
    relay_hang_up(&f->relay);
    assert_status(await_try(f, lock), status);
    assert_says(f->ended.error, words);
    client_free(f, client);
    relay_stop(&f->relay);
}

static void a_protected_server_explains_itself(void **state) {
    struct fixture *f = *state;
    turns_away(f,
               "-DENIED Redis is running in protected mode because protected mode is enabled and no password is set "
               "for the default user. In this mode connections are only accepted from the loopback interface.\r\n",
               EVLOCK_EPERM, "protected mode");
    turns_away(f, "-ERR unknown sorrow\r\n", EVLOCK_EUNREACHABLE, "unknown sorrow");
    turns_away(f, "-SORROW as yet unknown\r\n", EVLOCK_EUNREACHABLE, "as yet unknown");
}

/* It may hang up later, when that was read: then its words are still why. */
static void a_server_that_hangs_up_later_has_said_why(void **state) {
    struct fixture *f = *state;
    relay_start(&f->relay, f->server);
    evlock_client *client = quick_client(f, f->relay.url);
    await(f, relay_say(&f->relay, "-ERR unknown sorrow\r\n"));
    run_for(f, 50);
    assert_int_equal(f->away.count, 0);
    relay_hang_up(&f->relay);
    await(f, f->away.count);
    assert_status(f->away.status, EVLOCK_EUNREACHABLE);
    assert_says(f->away.error, "unknown sorrow");
    client_free(f, client);
}

/* Such a server has not said who it is, and could be taken for another. */
static void what_is_refused_for_now_is_asked_again(void **state) {
    struct fixture *f = *state;
    relay_start(&f->relay, f->server);
    evlock_client *client = quick_client(f, f->relay.url);
    await(f, relay_say(&f->relay, "-LOADING Redis is loading the dataset in memory\r\n"));
    await(f, f->away.status == EVLOCK_EREFUSED);
    assert_says(f->away.error, "LOADING");
    relay_hang_up(&f->relay);
    await(f, relay_pump(&f->relay) && evlock_client_connection(client) == EVLOCK_CONNECTED);
    client_free(f, client);
}

/* --- Another kind of server --------------------------------------------------------------------------------------- */

static char sentinel_file[80];

static int sentinel_teardown(void **state) {
    unlink(sentinel_file);
    return teardown(state);
}

/* Whether it is asked for another database or not. */
static void a_sentinel_is_told_as_one(void **state) {
    static const char *const extra[] = {sentinel_file, "--sentinel", NULL};
    struct fixture *f = *state;
    const char *folder = getenv("TMPDIR");
    char url[80];
    snprintf(sentinel_file, sizeof(sentinel_file), "%.50s/sentinel-XXXXXX", folder ? folder : "/tmp");
    int file = mkstemp(sentinel_file);
    assert_true(file >= 0);
    close(file);
    move_to_other(f, true, extra);
    login_fails(f, other.tcp_url, EVLOCK_EUNSUPPORTED, "Sentinel");
    snprintf(url, sizeof(url), "%s/3", other.tcp_url);
    login_fails(f, url, EVLOCK_EUNSUPPORTED, "Sentinel");
}

static const char *const cluster[] = {"--cluster-enabled", "yes", "--cluster-node-timeout", "3600000", NULL};

static void lock_works(struct fixture *f, const char *name) {
    evlock_options options = with_ttl(60000);
    options.prefix = "lock:";
    evlock *lock = lock_new(f, name, &options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_status(await_extend(f, lock, 1000, EVLOCK_EXTEND_ADD), EVLOCK_OK);
    assert_status(await_extend(f, lock, 0, EVLOCK_EXTEND_RESET), EVLOCK_OK);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_false(ask_locked(f, lock));
    lock_free(f, lock);
}

/* Its scripts have three keys. */
static void queue_works(struct fixture *f, const char *name) {
    evlock_options options = with_ttl(60000);
    evlock_acquire_options fenced = {.size = sizeof(evlock_acquire_options)};
    struct record record = {0};
    options.wait = EVLOCK_WAIT_QUEUE;
    fenced.fence = EVLOCK_ON;
    evlock *first = lock_new(f, name, &options), *second = lock_new(f, name, &options);
    assert_status(await_acquire(f, first, &fenced), EVLOCK_OK);
    assert_status(evlock_acquire(second, &fenced, record_end, &record), EVLOCK_OK);
    await(f, await_query(f, first, EVLOCK_QUERY_WAITERS) == EVLOCK_OK && f->ended.answer.waiters == 1);
    assert_status(await_release(f, first), EVLOCK_OK);
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    assert_status(await_release(f, second), EVLOCK_OK);
    lock_free(f, first);
    lock_free(f, second);
}

static bool says(struct fixture *f, const char *command, const char *words) {
    redisReply *reply = server_command(f->server, command);
    bool found = strstr(reply->str, words);
    freeReplyObject(reply);
    return found;
}

/* All slots are here: it does whatever a server does that is in no cluster. */
static void a_cluster_of_one_is_a_server(void **state) {
    struct fixture *f = *state;
    move_to_other(f, true, cluster);
    server_do(f->server, "CLUSTER ADDSLOTSRANGE 0 16383");
    await(f, says(f, "CLUSTER INFO", "cluster_state:ok"));
    await_connected(f, quick_client(f, NULL));
    lock_works(f, "a");
    lock_works(f, "b");
    queue_works(f, "a");
    queue_works(f, "{a}b");
    queue_works(f, "/jobs/{}/a}b");
    assert_false(logged(f, "cluster"));
    char url[80];
    snprintf(url, sizeof(url), "%s/3", other.tcp_url);
    /* From Valkey 9 on, a cluster may have several. */
    bool several = server_info(f->server, "server", "valkey_version:") >= 9;
    login_fails(f, url, EVLOCK_EUNSUPPORTED, several ? "DB index" : "cluster");
}

/* It has the upper half of the slots. */
static void add_a_shard_that_is_not_there(struct fixture *f) {
    char path[128], self[41], stranger[41] = {0};
    redisReply *reply = server_command(f->server, "CLUSTER MYID");
    snprintf(self, sizeof(self), "%s", reply->str);
    freeReplyObject(reply);
    memset(stranger, 'a', 40);
    server_kill9(f->server);
    snprintf(path, sizeof(path), "%s/nodes.conf", f->server->folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "%s :0@0 myself,master - 0 0 1 connected 0-8191\n", self);
    fprintf(file, "%s 127.0.0.1:1@2 master - 0 0 2 connected 8192-16383\n", stranger);
    fprintf(file, "vars currentEpoch 2 lastVoteEpoch 0\n");
    fclose(file);
    server_restart(f->server);
}

static void a_cluster_of_several_is_refused(void **state) {
    struct fixture *f = *state;
    move_to_other(f, true, cluster);
    add_a_shard_that_is_not_there(f);
    await_connected(f, quick_client(f, NULL));
    assert_true(logged(f, "a cluster;")); /* it is down, and does not know */
    await(f, says(f, "CLUSTER INFO", "cluster_state:ok"));
    login_fails(f, NULL, EVLOCK_EUNSUPPORTED, "a cluster of 2 masters; use redis+cluster://");

    server_do(f->server, "ACL SETUSER default -cluster");
    forget_log(f);
    await_connected(f, quick_client(f, NULL));
    assert_true(logged(f, "a cluster;"));
}

/* --- A server that lacks something -------------------------------------------------------------------------------- */

/* A lock that waits in line, or polls where that cannot be done. */
static void line_works(struct fixture *f) {
    struct record second_got = {0};
    evlock_options options = with_ttl(60000);
    options.prefix = "lock:";
    options.wait = EVLOCK_WAIT_QUEUE;
    options.retry_delay_ms = 20;
    evlock *first = lock_new(f, "line", &options), *second = lock_new(f, "line", &options);
    assert_status(await_acquire(f, first, NULL), EVLOCK_OK);
    assert_status(evlock_acquire(second, NULL, record_end, &second_got), EVLOCK_OK);
    run_for(f, 50);
    assert_int_equal(second_got.count, 0);
    assert_status(await_release(f, first), EVLOCK_OK);
    await(f, second_got.count);
    assert_ended(&second_got, EVLOCK_OK);
    assert_status(await_release(f, second), EVLOCK_OK);
}

/* Leases enough for batches, renewed. */
static void renewals_work(struct fixture *f) {
    enum { LEASES = 30 };
    evlock *locks[LEASES];
    char name[16];
    evlock_options options = with_ttl(60000);
    options.prefix = "lock:";
    options.auto_renewal = true;
    options.renewal_interval_ms = 50;
    for (int i = 0; i < LEASES; i++) {
        snprintf(name, sizeof(name), "%d", i);
        locks[i] = lock_new(f, name, &options);
        assert_status(await_acquire(f, locks[i], NULL), EVLOCK_OK);
        server_do(f->server, "PEXPIRE lock:%s 30000", name);
    }
    for (int i = 0; i < LEASES; i++) {
        snprintf(name, sizeof(name), "lock:%d", i);
        await(f, key_ttl(f->server, name) > 40000);
        assert_true(evlock_is_held(locks[i]));
        lock_free(f, locks[i]);
    }
    await(f, server_integer(f->server, "DBSIZE") == 0);
}

static void all_works(struct fixture *f, evlock_client *client) {
    await_connected(f, client);
    lock_works(f, "a");
    line_works(f);
    renewals_work(f);
    assert_int_equal(f->connection_states[EVLOCK_AWAY], 0);
    client_free(f, client);
}

static const char *const one_missing[] = {"SCRIPT", "EVALSHA", "EVAL",      "CLIENT",
                                          "INFO",   "PUBLISH", "SUBSCRIBE", "PUBSUB"};
enum { ONE_MISSING = sizeof(one_missing) / sizeof(one_missing[0]) };

static void any_command_may_be_renamed_away(void **state) {
    struct fixture *f = *state;
    for (int i = 0; i < ONE_MISSING; i++) {
        const char *extra[] = {"--rename-command", one_missing[i], "", NULL};
        move_to_other(f, false, extra);
        all_works(f, quick_client(f, NULL));
    }
}

/* All that was renamed away goes together, but for one way to run scripts. */
static void eval_alone_is_enough(void **state) {
    struct fixture *f = *state;
    static const char *const extra[] = {"--rename-command",
                                        "SCRIPT",
                                        "",
                                        "--rename-command",
                                        "EVALSHA",
                                        "",
                                        "--rename-command",
                                        "CLIENT",
                                        "",
                                        "--rename-command",
                                        "INFO",
                                        "",
                                        NULL};
    move_to_other(f, false, extra);
    all_works(f, quick_client(f, NULL));
}

/* It quotes what it was sent. */
static void a_server_without_auth_is_not_quoted(void **state) {
    struct fixture *f = *state;
    static const char *const extra[] = {"--rename-command", "AUTH", "", NULL};
    move_to_other(f, false, extra);
    evlock_client_options options = client_options(f);
    options.password = "secret";
    client_new(f, NULL, &options);
    await(f, f->away.count);
    assert_non_null(strstr(f->away.error, "unknown command"));
    assert_null(strstr(f->away.error, "secret"));
}

/* What a script may not do is no reason to send the next one's digest, which this server does not know. */
static void eval_is_enough_after_a_refusal_too(void **state) {
    struct fixture *f = *state;
    static const char *const extra[] = {"--rename-command", "EVALSHA", "", NULL};
    move_to_other(f, false, extra);
    quick_client(f, NULL);
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    server_do(f->server, "ACL SETUSER default -pexpire");
    assert_status(await_extend(f, lock, 1000, EVLOCK_EXTEND_ADD), EVLOCK_EPERM);
    server_do(f->server, "ACL SETUSER default +pexpire");
    assert_status(await_extend(f, lock, 1000, EVLOCK_EXTEND_ADD), EVLOCK_OK);
    assert_status(await_release(f, lock), EVLOCK_OK);
}

static evlock_node_info known(const evlock_client *client) {
    evlock_node_info info;
    assert_status(evlock_client_node(client, 0, &info, sizeof(info)), EVLOCK_OK);
    return info;
}

static bool lacks_scripts(const evlock_client *client) {
    return known(client).missing & EVLOCK_MISSING_SCRIPTS;
}

/* All of it is as the server says, and is still there when that has gone. */
static void assert_known(struct fixture *f, const char *url, enum evlock_persistence persistence) {
    char line[64];
    evlock_client *client = quick_client(f, url);
    await_connected(f, client);
    evlock_node_info info = known(client);
    bool valkey = strcmp(info.product, "Valkey") == 0;
    snprintf(line, sizeof(line), "\n%s_version:%s\r\n", valkey ? "valkey" : "redis", info.version);
    redisReply *said = server_command(f->server, "INFO server");
    assert_non_null(strstr(said->str, line));
    assert_int_equal(valkey, strstr(said->str, "\nvalkey_version:") != NULL);
    assert_true(valkey || strcmp(info.product, "Redis") == 0);
    freeReplyObject(said);
    assert_int_equal(info.persistence, persistence);
    assert_non_null(strstr(url, info.address));
    server_kill9(f->server);
    await(f, known(client).connection == EVLOCK_AWAY);
    info.connection = EVLOCK_AWAY;
    info.status = EVLOCK_EUNREACHABLE;
    evlock_node_info last = known(client);
    assert_memory_equal(&last, &info, sizeof(info));
}

static void a_server_says_what_it_is(void **state) {
    struct fixture *f = *state;
    static const char *const keeps[] = {"--appendonly", "yes", NULL};
    move_to_other(f, false, NULL);
    assert_known(f, other.url, EVLOCK_PERSISTENCE_NO_AOF);
    move_to_other(f, true, keeps);
    assert_known(f, other.tcp_url, EVLOCK_PERSISTENCE_AOF);
}

static void a_server_that_runs_no_scripts_is_told_at_once(void **state) {
    struct fixture *f = *state;
    static const char *const extra[] = {"--rename-command", "EVALSHA", "", "--rename-command", "EVAL", "", NULL};
    move_to_other(f, false, extra);
    login_fails(f, NULL, EVLOCK_EUNSUPPORTED, "unknown command");
    evlock_client *client = quick_client(f, NULL);
    f->away = (struct record){0};
    await(f, f->away.count);
    assert_true(lacks_scripts(client));
}

static evlock_client *client_of_worker(struct fixture *f) {
    evlock_client_options options = client_options(f);
    options.user = "worker";
    options.password = "work";
    options.backoff_max_ms = 200;
    f->client = NULL;
    return client_new(f, NULL, &options);
}

static void worker_may(struct fixture *f, const char *change) {
    redisReply *reply = server_command(f->server,
                                       "ACL SETUSER worker reset on >work ~lock:* ~{lock:* &evlock:* +@all -@dangerous "
                                       "-@admin +client +info %s",
                                       change);
    assert_string_equal(reply->str, "OK");
    freeReplyObject(reply);
}

static void any_command_may_be_forbidden(void **state) {
    struct fixture *f = *state;
    char change[32];
    for (int i = 0; i < ONE_MISSING; i++) {
        snprintf(change, sizeof(change), "-%s", one_missing[i]);
        worker_may(f, change);
        server_do(f->server, "SCRIPT FLUSH");
        all_works(f, client_of_worker(f));
    }
}

static void what_a_user_may_not_ask_is_not_known(void **state) {
    struct fixture *f = *state;
    worker_may(f, "-info");
    evlock_client *client = client_of_worker(f);
    await_connected(f, client);
    evlock_node_info info = known(client);
    assert_string_equal(info.product, "");
    assert_string_equal(info.version, "");
    assert_int_equal(info.persistence, EVLOCK_PERSISTENCE_UNKNOWN);
    assert_non_null(strstr(f->server->url, info.address));
    worker_may(f, "+info");
    server_do(f->server, "CLIENT KILL USER worker");
    await(f, known(client).persistence == EVLOCK_PERSISTENCE_NO_AOF);
    worker_may(f, "-info"); /* what was known of another connection's server is not this one's */
    server_do(f->server, "CLIENT KILL USER worker");
    await(f, known(client).persistence == EVLOCK_PERSISTENCE_UNKNOWN);
    await_connected(f, client);
    assert_string_equal(known(client).product, "");
}

/* Nothing could be given back there: no lock is taken. It is tried again, as it may be allowed one day. */
static void who_may_run_no_scripts_is_told(void **state) {
    struct fixture *f = *state;
    worker_may(f, "-evalsha");
    server_do(f->server, "ACL SETUSER worker -eval");
    server_do(f->server, "CONFIG RESETSTAT");
    evlock_client *client = client_of_worker(f);
    evlock *lock = lock_new(f, "lock:a", NULL);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_EPERM);
    assert_says(f->ended.error, "NOPERM");
    await(f, f->away.count);
    assert_status(f->away.status, EVLOCK_EPERM);
    assert_true(lacks_scripts(client));
    assert_true(logged(f, "there are no locks without them"));
    assert_int_equal(server_calls(f->server, "set"), 0);
    server_do(f->server, "ACL SETUSER worker +eval");
    await_connected(f, client);
    assert_false(lacks_scripts(client));
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_status(await_release(f, lock), EVLOCK_OK);
    client_free(f, client);
}

/* What is forbidden for a while on a connection that serves is told by each call that needs it, and then goes on. */
static void scripts_may_be_forbidden_for_a_while(void **state) {
    struct fixture *f = *state;
    worker_may(f, "");
    evlock_client *client = client_of_worker(f);
    evlock *lock = lock_new(f, "lock:a", NULL);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    server_do(f->server, "ACL SETUSER worker -evalsha -eval");
    assert_false(lacks_scripts(client));
    for (int i = 0; i < 3; i++) {
        assert_status(await_extend(f, lock, 1000, EVLOCK_EXTEND_ADD), EVLOCK_EPERM);
        assert_says(f->ended.error, "NOPERM");
        assert_true(lacks_scripts(client));
    }
    server_do(f->server, "ACL SETUSER worker +evalsha");
    assert_status(await_release(f, lock), EVLOCK_OK);
    client_free(f, client);
}

/* Its right to keys has no part in it: the login asks for none. */
static void scripts_are_asked_for_without_a_key(void **state) {
    struct fixture *f = *state;
    worker_may(f, "resetkeys");
    await_connected(f, client_of_worker(f));
    assert_status(await_try(f, lock_new(f, "lock:a", NULL)), EVLOCK_EPERM);
    assert_int_equal(f->connection_states[EVLOCK_AWAY], 0);
}

/* --- Scripts that are not there, although they were loaded -------------------------------------------------------- */

static void pump_until(struct fixture *f, const struct record *record) {
    await(f, relay_pump(&f->relay) && record->count);
}

static void noscript_that_goes_on_is_met_with_the_scripts_text(void **state) {
    struct fixture *f = *state;
    struct record got = {0}, extended = {0}, released = {0};
    relay_start(&f->relay, f->server);
    f->relay.edit = relay_spoil_digests;
    evlock *lock = lock_new_on(f, quick_client(f, f->relay.url), "lock:a", NULL);
    assert_status(evlock_acquire(lock, NULL, record_end, &got), EVLOCK_OK);
    pump_until(f, &got);
    assert_ended(&got, EVLOCK_OK);
    server_do(f->server, "CONFIG RESETSTAT");
    assert_status(evlock_extend(lock, 1000, EVLOCK_EXTEND_ADD, record_end, &extended), EVLOCK_OK);
    pump_until(f, &extended);
    assert_ended(&extended, EVLOCK_OK);
    assert_int_equal(server_errors(f->server, "NOSCRIPT"), 2);
    assert_int_equal(server_calls(f->server, "eval"), 1);
    assert_status(evlock_release(lock, record_end, &released), EVLOCK_OK);
    pump_until(f, &released);
    assert_ended(&released, EVLOCK_OK);
    assert_int_equal(server_errors(f->server, "NOSCRIPT"), 2); /* this connection has learned it */
    assert_false(key_exists(f->server, "lock:a"));
}

static void noscript_that_goes_on_is_told_where_the_text_is_refused(void **state) {
    struct fixture *f = *state;
    struct record got = {0}, extended = {0};
    worker_may(f, "-eval");
    relay_start(&f->relay, f->server);
    f->relay.edit = relay_spoil_digests;
    evlock_client_options options = client_options(f);
    options.user = "worker";
    options.password = "work";
    evlock *lock = lock_new_on(f, client_new(f, f->relay.url, &options), "lock:a", NULL);
    assert_status(evlock_acquire(lock, NULL, record_end, &got), EVLOCK_OK);
    pump_until(f, &got);
    assert_ended(&got, EVLOCK_OK);
    for (int i = 1; i <= 3; i++) { /* each is tried as often, and no oftener */
        server_do(f->server, "CONFIG RESETSTAT");
        extended = (struct record){0};
        assert_status(evlock_extend(lock, 1000, EVLOCK_EXTEND_ADD, record_end, &extended), EVLOCK_OK);
        pump_until(f, &extended);
        assert_ended(&extended, EVLOCK_EPERM);
        assert_says(extended.error, "NOPERM");
        assert_int_equal(server_errors(f->server, "NOSCRIPT"), 2);
        assert_int_equal(server_errors(f->server, "NOPERM"), 1);
        assert_true(evlock_is_held(lock));
    }
}

/* --- The end of the connection before ----------------------------------------------------------------------------- */

static long long number_of(redisContext *connection) {
    redisReply *reply = redisCommand(connection, "CLIENT ID");
    assert_non_null(reply);
    long long number = reply->integer;
    freeReplyObject(reply);
    return number;
}

/* A server that was started again counts its connections anew: the number of the one that was lost is a stranger's. */
static void a_strangers_connection_is_not_ended(void **state) {
    enum { STRANGERS = 40 };
    struct fixture *f = *state;
    struct record tried = {0};
    redisContext *strangers[STRANGERS];
    move_to_other(f, false, NULL);
    for (int i = 0; i < STRANGERS / 2; i++) /* so that its number is one that a stranger will have */
        redisFree(redisConnectUnix(other.socket));
    await_connected(f, quick_client(f, NULL));
    evlock *lock = lock_new(f, "a", NULL);
    server_do(&other, "CLIENT PAUSE 3600000 WRITE");
    assert_status(evlock_acquire(lock, NULL, record_end, &tried), EVLOCK_OK);
    run_for(f, 50);
    long long number = server_integer(&other, "CLIENT ID"), had = 0;
    server_restart(&other);
    for (int i = 0; i < STRANGERS; i++) {
        strangers[i] = redisConnectUnix(other.socket);
        had = number_of(strangers[i]);
    }
    assert_true(had > number + 2); /* all numbers of before are somebody's */
    await(f, tried.count);
    assert_ended(&tried, EVLOCK_OK);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_int_equal(server_calls(&other, "client|kill"), 0);
    for (int i = 0; i < STRANGERS; i++) { /* also where calls are not counted so finely */
        redisReply *reply = redisCommand(strangers[i], "PING");
        assert_non_null(reply);
        freeReplyObject(reply);
        redisFree(strangers[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        LOGIN_TEST(a_refused_connection_is_told_as_refused),
        LOGIN_TEST(a_server_that_went_is_told_as_refused),
        LOGIN_TEST(a_protected_server_explains_itself),
        LOGIN_TEST(a_server_that_hangs_up_later_has_said_why),
        LOGIN_TEST(what_is_refused_for_now_is_asked_again),
        cmocka_unit_test_setup_teardown(a_sentinel_is_told_as_one, fixture_setup_bare, sentinel_teardown),
        LOGIN_TEST(a_cluster_of_one_is_a_server),
        LOGIN_TEST(a_cluster_of_several_is_refused),
        LOGIN_TEST(any_command_may_be_renamed_away),
        LOGIN_TEST(eval_alone_is_enough),
        LOGIN_TEST(a_server_without_auth_is_not_quoted),
        LOGIN_TEST(eval_is_enough_after_a_refusal_too),
        LOGIN_TEST(a_server_says_what_it_is),
        LOGIN_TEST(a_server_that_runs_no_scripts_is_told_at_once),
        LOGIN_TEST(any_command_may_be_forbidden),
        LOGIN_TEST(what_a_user_may_not_ask_is_not_known),
        LOGIN_TEST(who_may_run_no_scripts_is_told),
        LOGIN_TEST(scripts_may_be_forbidden_for_a_while),
        LOGIN_TEST(scripts_are_asked_for_without_a_key),
        LOGIN_TEST(noscript_that_goes_on_is_met_with_the_scripts_text),
        LOGIN_TEST(noscript_that_goes_on_is_told_where_the_text_is_refused),
        LOGIN_TEST(a_strangers_connection_is_not_ended),
    };
    return run_suite("login", tests);
}
