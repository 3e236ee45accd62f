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

#include "relay.h"

static struct server other;
static struct relay relay;

static int teardown(void **state) {
    relay_stop(&relay);
    server_stop(&other);
    server_stop(&suite_server);
    server_start(&suite_server, true, NULL);
    return fixture_teardown(state);
}

#define LOGIN_TEST(function) cmocka_unit_test_setup_teardown(function, fixture_setup_bare, teardown)

static void assert_words(const char *said, const char *words) {
    if (!strstr(said, words))
        fail_msg("the words are \"%s\", not \"%s\"", said, words);
}

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
    evlock_client *client = quick_client(f, url);
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(await_try(f, lock), status);
    assert_words(f->ended.error, words);
    assert_status(f->connection.status, status);
    assert_words(f->connection.error, words);
    client_free(f, client);
}

/* --- Nobody there, or not for you --------------------------------------------------------------------------------- */

static void a_refused_connection_is_told_as_refused(void **state) {
    struct fixture *f = *state;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    char url[64];
    int nobody = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); /* has the port, and does not listen */
    assert_int_equal(bind(nobody, (struct sockaddr *)&address, len), 0);
    assert_int_equal(getsockname(nobody, (struct sockaddr *)&address, &len), 0);
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", ntohs(address.sin_port));
    login_fails(f, url, EVLOCK_EUNREACHABLE, "Connection refused");
    close(nobody);
}

static void a_server_that_went_is_told_as_refused(void **state) {
    struct fixture *f = *state;
    move_to_other(f, true, NULL);
    await_connected(f, quick_client(f, other.tcp_url));
    server_kill9(&other);
    await(f, f->connection.status == EVLOCK_EUNREACHABLE && strstr(f->connection.error, "refused"));
    assert_status(await_try(f, lock_new(f, "a", NULL)), EVLOCK_EUNREACHABLE);
    assert_words(f->ended.error, "Connection refused");
}

/* What a server says by itself to whom it does not want, before it hangs up. */
static void turns_away(struct fixture *f, const char *said, int status, const char *words) {
    relay_start(&relay, f->server);
    evlock_client *client = quick_client(f, relay.url);
    evlock *lock = lock_new(f, "a", NULL);
    int connection = accept(relay.listener, NULL, NULL);
    assert_int_equal(send(connection, said, strlen(said), MSG_NOSIGNAL), strlen(said));
    close(connection);
    assert_status(await_try(f, lock), status);
    assert_words(f->ended.error, words);
    client_free(f, client);
    relay_stop(&relay);
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

/* --- Another kind of server --------------------------------------------------------------------------------------- */

static char sentinel_file[] = "/tmp/evlock-sentinel-XXXXXX";

static int sentinel_teardown(void **state) {
    unlink(sentinel_file);
    return teardown(state);
}

/* Whether it is asked for another database or not. */
static void a_sentinel_is_told_as_one(void **state) {
    static const char *const extra[] = {sentinel_file, "--sentinel", NULL};
    struct fixture *f = *state;
    char url[80];
    int file = mkstemp(sentinel_file);
    assert_true(file >= 0);
    close(file);
    move_to_other(f, true, extra);
    login_fails(f, other.tcp_url, EVLOCK_EUNSUPPORTED, "Sentinel");
    snprintf(url, sizeof(url), "%s/3", other.tcp_url);
    login_fails(f, url, EVLOCK_EUNSUPPORTED, "Sentinel");
}

static const char *const cluster[] = {"--cluster-enabled", "yes", "--cluster-node-timeout", "3600000", NULL};

static bool logged(struct fixture *f, const char *words) {
    return f->log && strstr(f->log, words);
}

static void forget_log(struct fixture *f) {
    free(f->log);
    f->log = NULL;
    f->log_len = 0;
}

static void lock_works(struct fixture *f, const char *name) {
    evlock_options options = with_ttl(60000);
    options.prefix = "lock:";
    evlock *lock = lock_new(f, name, &options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_status(await_extend(f, lock, 1000, EVLOCK_EXTEND_ADD), EVLOCK_OK);
    assert_status(await_reacquire(f, lock), EVLOCK_OK);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_status(await_query(f, lock, evlock_locked), EVLOCK_OK);
    assert_int_equal(f->ended.value, 0);
    lock_free(f, lock);
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
    assert_false(logged(f, "cluster"));
    char url[80];
    snprintf(url, sizeof(url), "%s/3", other.tcp_url);
    login_fails(f, url, EVLOCK_EUNSUPPORTED, "cluster");
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

static void a_cluster_of_several_is_told_as_one(void **state) {
    struct fixture *f = *state;
    char name[16] = "0";
    move_to_other(f, true, cluster);
    add_a_shard_that_is_not_there(f);
    await_connected(f, quick_client(f, NULL));
    assert_true(logged(f, "a cluster;")); /* it is down, and does not know */
    await(f, says(f, "CLUSTER INFO", "cluster_state:ok"));
    await_connected(f, quick_client(f, NULL));
    assert_true(logged(f, "a cluster of 2 shards"));
    for (int i = 1; server_integer(f->server, "CLUSTER KEYSLOT lock:%s", name) >= 8192; i++)
        snprintf(name, sizeof(name), "%d", i);
    lock_works(f, name);

    server_do(f->server, "ACL SETUSER default -cluster");
    forget_log(f);
    await_connected(f, quick_client(f, NULL));
    assert_true(logged(f, "a cluster;"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        LOGIN_TEST(a_refused_connection_is_told_as_refused),
        LOGIN_TEST(a_server_that_went_is_told_as_refused),
        LOGIN_TEST(a_protected_server_explains_itself),
        cmocka_unit_test_setup_teardown(a_sentinel_is_told_as_one, fixture_setup_bare, sentinel_teardown),
        LOGIN_TEST(a_cluster_of_one_is_a_server),
        LOGIN_TEST(a_cluster_of_several_is_told_as_one),
    };
    return run_suite("login", tests);
}
