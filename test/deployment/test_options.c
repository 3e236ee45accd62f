/*
 * Every option of a client in every deployment: a table whose rows are the options and whose columns are the
 * deployments. In each cell the option has the effect that it has on one server, or is refused with the status that the
 * header names. Below it, what a URL says besides its hosts, and the options of a lock and of an acquire. A test is
 * called by its row and column.
 */
#include "sites.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../redis/tls.h"

enum {
    IN_ONE = 1 << SITE_ONE,
    IN_FAILOVER = 1 << SITE_FAILOVER,
    IN_QUORUM = 1 << SITE_QUORUM,
    IN_SENTINEL = 1 << SITE_SENTINEL,
    IN_CLUSTER = 1 << SITE_CLUSTER,
};

/* --- What the rows have in common --------------------------------------------------------------------------------- */

static struct site *site; /* the column */
static const char *row;   /* its name is that of the lock */

static bool is_in(int columns) {
    return columns >> site->kind & 1;
}

static evlock *lock_of(struct fixture *f, const evlock_options *options) {
    return lock_new(f, row, options);
}

/* Where a lease must be. */
static bool is_kept(void) {
    return site_having(site, row) >= (is_in(IN_QUORUM) ? 2 : 1);
}

static void works(struct fixture *f) {
    evlock *lock = lock_of(f, NULL);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_true(is_kept());
    assert_status(await_release(f, lock), EVLOCK_OK);
    lock_free(f, lock);
}

/* A client with these options is refused so. */
static void refused(struct fixture *f, const evlock_client_options *options, int status) {
    evlock_client *client = NULL;
    assert_status(evlock_client_new(&client, loop_for_evlock(f->loop), site->url, options), status);
    assert_null(client);
}

static evlock *held(struct fixture *f, const evlock_options *options) {
    evlock *lock = lock_of(f, options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    return lock;
}

static int64_t ms_since(int64_t begun) {
    return (evlock_clock_us() - begun) / 1000;
}

/* --- Times -------------------------------------------------------------------------------------------------------- */

/* Nobody answers: the default would be to wait for five seconds. */
static void connect_timeout_ms(struct fixture *f) {
    evlock_client_options options = site_options(f, site);
    options.connect_timeout_ms = 100;
    site_pause(site, true);
    int64_t begun = evlock_clock_us();
    site_client(f, site, &options);
    await(f, f->away.count > 0);
    assert_status(f->away.status, EVLOCK_EUNREACHABLE);
    assert_true(ms_since(begun) < 4000);
    site_resume(site);
    works(f);
}

static void backoff_min_ms(struct fixture *f) {
    evlock_client_options options = site_options(f, site);
    options.connect_timeout_ms = 100;
    options.backoff_min_ms = options.backoff_max_ms = 600;
    site_pause(site, true);
    site_client(f, site, &options);
    await(f, f->away.count > 0);
    int64_t away = f->away.at;
    await(f, f->connection.value == EVLOCK_CONNECTING);
    assert_true((f->connection.at - away) / 1000 >= 200); /* the default: 50 ms at most */
}

/* Who is refused pauses for the longest time. */
static void backoff_max_ms(struct fixture *f) {
    evlock_client_options options = site_options(f, site);
    options.backoff_min_ms = options.backoff_max_ms = 50;
    options.user = "worker";
    options.password = "wrong";
    int64_t begun = evlock_clock_us();
    site_client(f, site, &options);
    /* Of three nodes, each tells that it is away, and that it tries again while the others are. */
    await(f, f->connection_states[EVLOCK_AWAY] >= (is_in(IN_QUORUM) ? 3 * 2 * 4 : 4));
    assert_status(f->away.status, EVLOCK_EAUTH);
    assert_true(ms_since(begun) < 7000); /* three pauses by default: 7.5 s at least */
}

static void command_timeout_ms(struct fixture *f) {
    evlock_client_options options = site_options(f, site);
    options.command_timeout_ms = 200;
    site_client(f, site, &options);
    evlock *lock = held(f, NULL);
    site_pause(site, false);
    int64_t begun = evlock_clock_us();
    int status = await_extend(f, lock, 1000, EVLOCK_EXTEND_ADD);
    if (!is_in(IN_QUORUM) || status != EVLOCK_EQUORUM) /* whose connections may end a moment before the extension */
        assert_status(status, EVLOCK_EUNREACHABLE);
    assert_true(ms_since(begun) < 4000);
}

/* What was not sent is never done: of three at once, a server sees the first one's. */
static void max_inflight(struct fixture *f) {
    evlock_client_options options = site_options(f, site);
    struct record records[3] = {{0}};
    evlock *locks[3];
    char name[64];
    options.max_inflight = 1;
    site_client(f, site, &options);
    works(f);
    site_do(site, "CONFIG RESETSTAT");
    site_pause(site, false);
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof(name), i ? "{%s}%d" : "%s", row, i);
        locks[i] = lock_new(f, name, NULL);
        assert_status(evlock_acquire(locks[i], NULL, record_end, &records[i]), EVLOCK_OK);
    }
    run_for(f, 20);
    for (int i = 1; i < 3; i++)
        assert_status(evlock_cancel(locks[i]), EVLOCK_OK);
    site_resume(site);
    await(f, records[0].count == 1 && records[1].count == 1 && records[2].count == 1);
    assert_status(records[0].status, EVLOCK_OK);
    assert_status(await_release(f, locks[0]), EVLOCK_OK);
    assert_int_in_range(site_calls(site, "set"), is_in(IN_QUORUM) ? 2 : 1, is_in(IN_QUORUM) ? 3 : 1);
}

static void max_ttl_ms(struct fixture *f) {
    evlock_client_options options = site_options(f, site);
    evlock_options longer = with_ttl(6000);
    evlock *lock = NULL;
    options.max_ttl_ms = 5000;
    evlock_client *client = site_client(f, site, &options);
    assert_status(evlock_new(&lock, client, row, EVLOCK_CSTRING, &longer),
                  is_in(IN_QUORUM | IN_FAILOVER) ? EVLOCK_ETTL : EVLOCK_OK);
    evlock_free(lock);
}

static bool began;

static int begins_for_ever(evlock *lock, void *arg) {
    (void)lock;
    (void)arg;
    began = true;
    return EVLOCK_OK;
}

/* By default a body is waited for without end. */
static void close_wait_ms(struct fixture *f) {
    evlock_client_options options = site_options(f, site);
    struct record done = {0};
    options.close_wait_ms = 50;
    began = false;
    site_client(f, site, &options);
    assert_status(evlock_with(lock_of(f, NULL), begins_for_ever, record_run, &done), EVLOCK_OK);
    await(f, began);
    assert_true(is_kept());
    assert_status(await_close(f, f->client), EVLOCK_OK);
    assert_status(done.status, EVLOCK_ECANCELLED);
    assert_true(done.value);
    assert_int_equal(site_having(site, row), 0);
}

/* --- What nodes are believed -------------------------------------------------------------------------------------- */

/* Servers that are younger than the longest ttl do not count, unless they forget nothing. */
static void durable(struct fixture *f) {
    evlock_client_options options = site_options(f, site);
    const int64_t day_ms = INT64_C(24) * 60 * 60 * 1000;
    if (!is_in(IN_FAILOVER))
        options.max_ttl_ms = day_ms;
    options.durable = true;
    site_client(f, site, &options);
    works(f);
    assert_false(logged(f, "may have forgotten locks"));
    client_free(f, f->client);
    f->client = NULL;
    options.durable = false;
    site_client(f, site, &options);
    await_connected(f, f->client);
    assert_int_equal(logged(f, "may have forgotten locks"), is_in(IN_QUORUM));
}

/* The servers have run for longer than the longest ttl, and one that is met first may all the same be a new one. */
static void distrust_uptime(struct fixture *f) {
    evlock_client_options options = site_options(f, site);
    if (!is_in(IN_FAILOVER))
        options.max_ttl_ms = 1000;
    options.durable = false;
    site_client(f, site, &options);
    await_connected(f, f->client);
    assert_false(logged(f, "may have forgotten locks"));
    options.distrust_uptime = true;
    await_connected(f, site_client(f, site, &options));
    assert_int_equal(logged(f, "may have forgotten locks"), is_in(IN_QUORUM));
}

static void failover_wait_ms(struct fixture *f) {
    evlock_client_options options = site_options(f, site);
    evlock_options shorter = with_ttl(300);
    options.failover_wait_ms = 200;
    options.max_ttl_ms = 300;
    if (is_in(IN_QUORUM)) {
        refused(f, &options, EVLOCK_EINVAL);
        return;
    }
    if (!is_in(IN_CLUSTER)) /* no other test here waits in it, so its masters have no marks yet */
        site_do(site, "DEL evlock:history");
    int64_t begun = evlock_clock_us();
    site_client(f, site, &options);
    evlock *lock = lock_of(f, &shorter);
    await(f, f->away.count > 0);
    assert_status(f->away.status, EVLOCK_EEXCLUDED);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_true(ms_since(begun) >= 500);
}

/* --- Who logs in -------------------------------------------------------------------------------------------------- */

static void has_worker(const char *password) {
    site_do(site, "ACL SETUSER worker reset on >%s ~* &* +@all", password);
}

/* The client logs in, works, and logs in again when its connections have ended. */
static void logs_in_twice(struct fixture *f) {
    works(f);
    assert_true(site_connections(site, "user=worker") > 0);
    for (size_t i = 0; i < site->len; i++)
        freeReplyObject(server_command(site->servers[i], "CLIENT KILL USER worker"));
    works(f);
}

static void user_and_password(struct fixture *f) {
    evlock_client_options options = site_options(f, site);
    has_worker("one");
    options.user = "worker";
    options.password = "one";
    site_client(f, site, &options);
    logs_in_twice(f);
}

static void write_password(const char *path, const char *password) {
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fprintf(file, "%s\n", password);
    assert_int_equal(fclose(file), 0);
}

/* It is read again at each login. */
static void password_file(struct fixture *f) {
    evlock_client_options options = site_options(f, site);
    char path[FOLDER_SIZE + 16];
    has_worker("one");
    snprintf(path, sizeof(path), "%s/password", site->servers[0]->folder);
    write_password(path, "one");
    options.user = "worker";
    options.password_file = path;
    site_client(f, site, &options);
    works(f);
    has_worker("two");
    write_password(path, "two");
    logs_in_twice(f);
}

static struct {
    int count;
    bool all; /* it is answered for all nodes */
} asked;

static void on_login_answered(evlock_client *client, size_t node, void *arg) {
    (void)arg;
    asked.count++;
    (void)evlock_client_login(client, asked.all ? EVLOCK_ALL_NODES : node, "worker", "one");
}

static void on_login_for(struct fixture *f, bool all) {
    evlock_client_options options = site_options(f, site);
    has_worker("one");
    asked.count = 0;
    asked.all = all;
    options.on_login = on_login_answered;
    site_client(f, site, &options);
    logs_in_twice(f);
    assert_true(asked.count >= (is_in(IN_QUORUM) && !all ? 2 * 2 : 2));
}

static void on_login(struct fixture *f) {
    on_login_for(f, false);
}

static void on_login_for_all(struct fixture *f) {
    on_login_for(f, true);
}

static void sentinel_user_and_password(struct fixture *f) {
    evlock_client_options options = site_options(f, site);
    options.sentinel_user = "worker";
    options.sentinel_password = "three";
    if (!is_in(IN_SENTINEL)) {
        refused(f, &options, EVLOCK_EINVAL);
        return;
    }
    server_do(site->watcher, "ACL SETUSER worker reset on >three ~* &* +@all");
    site_client(f, site, &options);
    works(f);
    assert_true(server_connections(site->watcher, "user=worker") > 0);
    assert_int_equal(site_connections(site, "user=worker"), 0);
}

static void connection_name(struct fixture *f) {
    evlock_client_options options = site_options(f, site);
    options.connection_name = "table";
    site_client(f, site, &options);
    works(f);
    assert_true(site_connections(site, "name=table") > 0);
    if (site->watcher)
        assert_true(server_connections(site->watcher, "name=table") > 0);
}

/* --- What is told ------------------------------------------------------------------------------------------------- */

/* The fixture is `arg`: what its client tells is recorded there alone. */
static void on_connection_and_arg(struct fixture *f) {
    site_client(f, site, NULL);
    works(f);
    await(f, f->connection.value == EVLOCK_CONNECTED);
    assert_ptr_equal(f->connection.object, f->client);
}

static void on_log_and_log_level(struct fixture *f) {
    evlock_client_options options = site_options(f, site);
    options.log_level = EVLOCK_LOG_ERROR;
    site_client(f, site, &options);
    works(f);
    assert_int_equal(f->log_len, 0);
    options.log_level = EVLOCK_LOG_INFO;
    client_free(f, f->client);
    f->client = NULL;
    site_client(f, site, &options);
    works(f);
    assert_true(f->log_lines[EVLOCK_LOG_INFO] > 0);
    assert_int_equal(f->log_lines[EVLOCK_LOG_DEBUG], 0);
}

/* --- TLS ---------------------------------------------------------------------------------------------------------- */

/* Whom a certificate or a name is wrong for stays away. */
static void distrusted(struct fixture *f, const evlock_client_options *options) {
    site_client(f, site, options);
    await(f, f->away.count > 0);
    assert_status(f->away.status, EVLOCK_ECERT);
    assert_false(evlock_client_connection(f->client) == EVLOCK_CONNECTED);
}

static void tls_ca(struct fixture *f) {
    evlock_client_options options = site_options(f, site);
    if (!tls_wanted()) {
        options.tls_ca = "/dev/null";
        refused(f, &options, EVLOCK_EINVAL);
        return;
    }
    options.tls_ca = options.tls_cert;
    distrusted(f, &options);
}

static void tls_name(struct fixture *f) {
    evlock_client_options options = site_options(f, site);
    options.tls_name = "localhost";
    if (!tls_wanted()) {
        refused(f, &options, EVLOCK_EINVAL);
        return;
    }
    site_client(f, site, &options);
    works(f);
    client_free(f, f->client);
    f->client = NULL;
    options.tls_name = "elsewhere.example";
    distrusted(f, &options);
}

static void tls_cert_and_key(struct fixture *f) {
    evlock_client_options options = site_options(f, site);
    if (!tls_wanted()) {
        options.tls_cert = options.tls_key = "/dev/null";
        refused(f, &options, EVLOCK_EINVAL);
        return;
    }
    site_do(site, "CONFIG SET tls-auth-clients yes");
    site_client(f, site, &options);
    works(f);
    client_free(f, f->client);
    f->client = NULL;
    options.tls_key = NULL;
    refused(f, &options, EVLOCK_EINVAL);
    options.tls_cert = NULL;
    distrusted(f, &options);
    site_do(site, "CONFIG SET tls-auth-clients optional");
}

static void tls_context(struct fixture *f) {
    evlock_client_options options = site_options(f, site);
    options.tls_context = (struct ssl_ctx_st *)&options; /* is not looked at: TLS is not wanted, or files are given */
    refused(f, &options, EVLOCK_EINVAL);
}

/* --- What a URL says besides its hosts ---------------------------------------------------------------------------- */

/* The site's, by TCP, with these words before each first host and behind each end. */
static const char *url_with(const char *before, const char *behind) {
    static char url[640];
    size_t count = is_in(IN_QUORUM) ? site->len : 1, len = 0;
    url[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        const char *plain = is_in(IN_SENTINEL | IN_CLUSTER) ? site->url : site->servers[i]->tcp_url;
        const char *hosts = strstr(plain, "://") + strlen("://");
        len += (size_t)snprintf(url + len, sizeof(url) - len, "%s%.*s%s%s%s",
                                i           ? " "
                                : count > 1 ? "quorum:"
                                            : "",
                                (int)(hosts - plain), plain, before, hosts, behind);
    }
    return url;
}

static void url_user_and_password(struct fixture *f) {
    evlock_client_options options = site_options(f, site);
    has_worker("one");
    client_new(f, url_with("worker:one@", ""), &options);
    logs_in_twice(f);
    options.user = "worker";
    options.password = "two";
    client_new(f, url_with("worker:one@", ""), &options); /* the options win */
    await(f, f->away.object == f->clients[1]);
    assert_status(f->away.status, EVLOCK_EAUTH);
}

static void url_db(struct fixture *f) {
    evlock_client_options options = site_options(f, site);
    evlock_client *client = NULL;
    if (is_in(IN_CLUSTER)) {
        assert_status(evlock_client_new(&client, loop_for_evlock(f->loop), url_with("", "/3"), &options), EVLOCK_EURL);
        return;
    }
    if (is_in(IN_FAILOVER)) /* whose history in that database is new */
        options.failover_wait_ms = 1;
    client_new(f, url_with("", "/3"), &options);
    await_connected(f, f->client);
    assert_true(site_connections(site, " db=3 ") > 0);
}

/* --- Locks -------------------------------------------------------------------------------------------------------- */

/* False: it is refused, as it is to be. */
static bool is_made(struct fixture *f, const evlock_options *options, int refused_in, int status) {
    evlock *lock = NULL;
    site_client(f, site, NULL);
    int made = evlock_new(&lock, f->client, row, EVLOCK_CSTRING, options);
    evlock_free(lock);
    assert_status(made, is_in(refused_in) ? status : EVLOCK_OK);
    return made == EVLOCK_OK;
}

static void lock_wait_in_queue(struct fixture *f) {
    evlock_options options = {.size = sizeof(options), .wait = EVLOCK_WAIT_QUEUE, .ttl_ms = 20000};
    struct record record = {0};
    if (!is_made(f, &options, IN_QUORUM | IN_FAILOVER, EVLOCK_EQUEUE))
        return;
    evlock *first = held(f, &options), *second = lock_of(f, &options);
    assert_status(evlock_acquire(second, NULL, record_end, &record), EVLOCK_OK);
    await(f, ask_waiters(f, first) == 1 && ask_place(f, second) == 1);
    assert_status(await_release(f, first), EVLOCK_OK);
    await(f, record.count == 1);
    assert_status(record.status, EVLOCK_OK);
    assert_int_equal(stats_of(f->client).handed, 1);
}

static void lock_without_expiry(struct fixture *f) {
    evlock_options options = {.size = sizeof(options), .ttl_ms = EVLOCK_NO_EXPIRY};
    if (!is_made(f, &options, IN_QUORUM | IN_FAILOVER, EVLOCK_ETTL))
        return;
    evlock *lock = held(f, &options);
    assert_int_equal(site_ttl(site, row), -1);
    assert_status(await_release(f, lock), EVLOCK_OK);
}

/* Two deployments here have a replica. */
static void lock_min_replicas(struct fixture *f) {
    evlock_options options = {.size = sizeof(options), .min_replicas = 1, .max_attempts = EVLOCK_TRY};
    bool replicated = is_in(IN_FAILOVER | IN_SENTINEL);
    options.replica_timeout_ms = replicated ? 4000 : 50;
    site_client(f, site, NULL);
    assert_status(await_acquire(f, lock_of(f, &options), NULL), replicated ? EVLOCK_OK : EVLOCK_EREPLICAS);
}

/* However long the ttl is, and however short the client's patience with a server. */
static void lock_replica_timeout_ms(struct fixture *f) {
    evlock_client_options client_options = site_options(f, site);
    evlock_options options = {.size = sizeof(options), .min_replicas = 1, .ttl_ms = 60000};
    evlock *lock = NULL;
    client_options.command_timeout_ms = 400;
    site_client(f, site, &client_options);
    lock_of(f, &options);
    options.replica_timeout_ms = 399;
    lock_of(f, &options);
    options.replica_timeout_ms = 400;
    assert_status(evlock_new(&lock, f->client, row, EVLOCK_CSTRING, &options), EVLOCK_EINVAL);
    assert_non_null(strstr(evlock_last_error(), "replica_timeout_ms"));
    options.ttl_ms = EVLOCK_NO_EXPIRY;
    assert_status(evlock_new(&lock, f->client, row, EVLOCK_CSTRING, &options), EVLOCK_ETTL);
}

static void lock_fence(struct fixture *f) {
    evlock_options options = {.size = sizeof(options), .fence = true};
    uint64_t last = 0;
    site_client(f, site, NULL);
    for (int i = 0; i < 3; i++) {
        evlock *lock = held(f, &options);
        assert_true(evlock_fence(lock) > last);
        last = evlock_fence(lock);
        assert_status(await_release(f, lock), EVLOCK_OK);
    }
}

static void lock_holder_and_prefix(struct fixture *f) {
    evlock_options options = {.size = sizeof(options), .holder = "who", .prefix = "before:"};
    char key[128];
    site_client(f, site, NULL);
    evlock *lock = held(f, &options);
    assert_string_equal(ask_holder(f, lock), "who");
    snprintf(key, sizeof(key), "before:%s", row);
    assert_true(site_having(site, key) > 0);
    assert_int_equal(site_having(site, row), 0);
}

/* Nine renewals are three of three nodes, or more of fewer. By default there would be one in twenty seconds. */
static void lock_auto_renewal(struct fixture *f) {
    evlock_options options = {.size = sizeof(options), .auto_renewal = true, .ttl_ms = 60000};
    options.renewal_interval_ms = 50;
    site_client(f, site, NULL);
    evlock *lock = held(f, &options);
    await(f, stats_of(f->client).renewals >= 9);
    assert_status(await_extend(f, lock, 1000, EVLOCK_EXTEND_REPLACE), EVLOCK_OK);
    await(f, evlock_remaining_ms(lock) > 1000); /* a renewal brings the ttl back */
}

static void lock_max_passes(struct fixture *f) {
    evlock_options options = {.size = sizeof(options), .max_passes = 1, .ttl_ms = 20000};
    struct record record = {0};
    site_client(f, site, NULL);
    evlock *first = held(f, &options);
    assert_status(evlock_acquire(lock_of(f, &options), NULL, record_end, &record), EVLOCK_OK);
    assert_status(await_release(f, first), EVLOCK_OK);
    await(f, record.count == 1);
    assert_status(record.status, EVLOCK_OK);
    assert_int_equal(stats_of(f->client).passed, 1);
}

/* Once the servers are silent, an acquire by these options has failed. */
static void fails_when_away(struct fixture *f, const evlock_options *lock, const evlock_acquire_options *acquire) {
    evlock_client_options options = site_options(f, site);
    options.command_timeout_ms = options.connect_timeout_ms = 100;
    site_client(f, site, &options);
    works(f);
    site_pause(site, true);
    assert_status(await_acquire(f, lock_of(f, lock), acquire), is_in(IN_QUORUM) ? EVLOCK_EQUORUM : EVLOCK_EUNREACHABLE);
}

static void lock_fail_when_away(struct fixture *f) {
    evlock_options options = {.size = sizeof(options), .fail_when_away = true};
    fails_when_away(f, &options, NULL);
}

/* Somebody holds it; what an acquire by these options comes to. */
static int waits_in_vain(struct fixture *f, const evlock_options *options) {
    site_client(f, site, NULL);
    held(f, NULL);
    return await_acquire(f, lock_of(f, options), NULL);
}

static void lock_ttl_ms(struct fixture *f) {
    evlock_options options = with_ttl(7000);
    site_client(f, site, NULL);
    held(f, &options);
    assert_int_in_range(site_ttl(site, row), 1, 7000);
}

static void lock_max_wait_ms(struct fixture *f) {
    evlock_options options = {.size = sizeof(options), .max_wait_ms = 50};
    assert_status(waits_in_vain(f, &options), EVLOCK_ETIMEDOUT);
}

static void lock_max_attempts(struct fixture *f) {
    evlock_options options = {.size = sizeof(options), .max_attempts = 3, .retry_delay_ms = 1};
    site_do(site, "CONFIG RESETSTAT");
    assert_status(waits_in_vain(f, &options), EVLOCK_EHELD);
    assert_int_in_range(site_calls(site, "set"), 1 + 3, is_in(IN_QUORUM) ? 3 * (1 + 3) : 1 + 3);
}

static void lock_retry_delay_ms_and_jitter(struct fixture *f) {
    evlock_options options = {.size = sizeof(options), .max_attempts = 2, .retry_delay_ms = 300};
    options.retry_jitter = EVLOCK_NO_JITTER;
    int64_t begun = evlock_clock_us();
    assert_status(waits_in_vain(f, &options), EVLOCK_EHELD);
    assert_true(ms_since(begun) >= 300); /* the default delay: 100 ms at most, the default jitter: mostly less */
}

static void lock_max_hold_ms(struct fixture *f) {
    struct record lost = {0};
    evlock_options options = {.size = sizeof(options), .auto_renewal = true, .ttl_ms = 500, .max_hold_ms = 100};
    options.on_lost = record_end;
    options.arg = &lost;
    site_client(f, site, NULL);
    held(f, &options);
    await(f, lost.count == 1);
    assert_status(lost.status, EVLOCK_EMAXHOLD);
}

static void lock_at_risk_percent(struct fixture *f) {
    struct record risk = {0};
    evlock_options options = {.size = sizeof(options), .auto_renewal = true, .ttl_ms = 4000, .at_risk_percent = 99};
    options.renewal_interval_ms = 100;
    options.on_at_risk = record_risk;
    options.arg = &risk;
    site_client(f, site, NULL);
    held(f, &options);
    site_pause(site, false);
    await(f, risk.count == 1);
    assert_true(risk.value > 2000); /* by default a third of the ttl */
}

static void lock_lost_lead_ms(struct fixture *f) {
    struct record lost = {0};
    evlock_options options = {.size = sizeof(options), .ttl_ms = 20000, .lost_lead_ms = 19500};
    options.on_lost = record_end;
    options.arg = &lost;
    site_client(f, site, NULL);
    held(f, &options);
    await(f, lost.count == 1);
    assert_status(lost.status, EVLOCK_EEXPIRED);
    assert_true(site_ttl(site, row) > 10000);
}

/* Two of three are silent. One server alone is waited for, whatever the option says. */
static void lock_node_timeout_ms(struct fixture *f) {
    evlock_options options = {.size = sizeof(options), .node_timeout_ms = 50, .max_attempts = EVLOCK_TRY};
    struct record record = {0};
    site_client(f, site, NULL);
    works(f);
    for (size_t i = 0; i < 2 && i < site->len; i++)
        server_pause(site->servers[i]);
    int64_t begun = evlock_clock_us();
    assert_status(evlock_acquire(lock_of(f, &options), NULL, record_end, &record), EVLOCK_OK);
    if (!is_in(IN_QUORUM)) {
        run_for(f, 100);
        site_resume(site);
    }
    await(f, record.count == 1);
    assert_status(record.status, is_in(IN_QUORUM) ? EVLOCK_EQUORUM : EVLOCK_OK);
    assert_true(ms_since(begun) < 2500); /* by default a tenth of 30 s */
}

static void lock_label(struct fixture *f) {
    evlock_options options = {.size = sizeof(options), .label = "called so\n"};
    site_client(f, site, NULL);
    held(f, &options);
    assert_true(logged(f, "called so\\x0a"));
}

static void lock_max_pass_ms(struct fixture *f) {
    evlock_options options = {.size = sizeof(options), .max_passes = 5, .max_pass_ms = 1, .ttl_ms = 20000};
    struct record record = {0};
    site_client(f, site, NULL);
    evlock *first = held(f, &options);
    assert_status(evlock_acquire(lock_of(f, &options), NULL, record_end, &record), EVLOCK_OK);
    run_for(f, 5);
    assert_status(await_release(f, first), EVLOCK_OK);
    await(f, record.count == 1);
    assert_status(record.status, EVLOCK_OK);
    assert_int_equal(stats_of(f->client).passed, 0);
}

/* --- Acquires ----------------------------------------------------------------------------------------------------- */

static void acquire_token(struct fixture *f) {
    evlock_acquire_options options = {.size = sizeof(options), .token = "my own", .token_len = 6};
    char own[7] = "";
    size_t len = 0;
    site_client(f, site, NULL);
    evlock *lock = lock_of(f, NULL);
    assert_status(await_acquire(f, lock, &options), EVLOCK_OK);
    const void *token = evlock_token(lock, &len);
    assert_int_equal(len, 6);
    memcpy(own, token, len);
    assert_string_equal(own, "my own");
    assert_true(ask_owned(f, lock));
    assert_true(is_kept());
}

static void acquire_fence(struct fixture *f) {
    evlock_acquire_options options = {.size = sizeof(options), .fence = EVLOCK_ON};
    site_client(f, site, NULL);
    evlock *lock = lock_of(f, NULL);
    assert_status(await_acquire(f, lock, &options), EVLOCK_OK);
    assert_true(evlock_fence(lock) > 0);
}

static void acquire_limits(struct fixture *f) {
    evlock_acquire_options options = {.size = sizeof(options), .max_wait_ms = 50};
    site_client(f, site, NULL);
    held(f, NULL);
    assert_status(await_acquire(f, lock_of(f, NULL), &options), EVLOCK_ETIMEDOUT);
    options.max_wait_ms = 0;
    options.max_attempts = 2;
    options.retry_delay_ms = 1;
    assert_status(await_acquire(f, lock_of(f, NULL), &options), EVLOCK_EHELD);
}

static void acquire_fail_when_away(struct fixture *f) {
    evlock_acquire_options options = {.size = sizeof(options), .fail_when_away = EVLOCK_ON};
    fails_when_away(f, NULL, &options);
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

static const struct row {
    const char *name;
    void (*works)(struct fixture *f);
} rows[] = {
    {"connect_timeout_ms", connect_timeout_ms},
    {"command_timeout_ms", command_timeout_ms},
    {"backoff_min_ms", backoff_min_ms},
    {"backoff_max_ms", backoff_max_ms},
    {"max_inflight", max_inflight},
    {"max_ttl_ms", max_ttl_ms},
    {"close_wait_ms", close_wait_ms},
    {"durable", durable},
    {"distrust_uptime", distrust_uptime},
    {"failover_wait_ms", failover_wait_ms},
    {"user, password", user_and_password},
    {"password_file", password_file},
    {"on_login", on_login},
    {"on_login for all nodes", on_login_for_all},
    {"sentinel_user, sentinel_password", sentinel_user_and_password},
    {"connection_name", connection_name},
    {"on_connection, arg", on_connection_and_arg},
    {"on_log, log_level", on_log_and_log_level},
    {"tls_ca", tls_ca},
    {"tls_name", tls_name},
    {"tls_cert, tls_key", tls_cert_and_key},
    {"tls_context", tls_context},
    {"the URL's user, password", url_user_and_password},
    {"the URL's database", url_db},
    {"a lock's wait", lock_wait_in_queue},
    {"a lock's ttl_ms: none", lock_without_expiry},
    {"a lock's min_replicas", lock_min_replicas},
    {"a lock's replica_timeout_ms", lock_replica_timeout_ms},
    {"a lock's fence", lock_fence},
    {"a lock's holder, prefix", lock_holder_and_prefix},
    {"a lock's auto_renewal", lock_auto_renewal},
    {"a lock's max_passes", lock_max_passes},
    {"a lock's fail_when_away", lock_fail_when_away},
    {"a lock's ttl_ms", lock_ttl_ms},
    {"a lock's max_wait_ms", lock_max_wait_ms},
    {"a lock's max_attempts", lock_max_attempts},
    {"a lock's retry_delay_ms, retry_jitter", lock_retry_delay_ms_and_jitter},
    {"a lock's max_hold_ms, on_lost, arg", lock_max_hold_ms},
    {"a lock's at_risk_percent, on_at_risk", lock_at_risk_percent},
    {"a lock's lost_lead_ms", lock_lost_lead_ms},
    {"a lock's node_timeout_ms", lock_node_timeout_ms},
    {"a lock's label", lock_label},
    {"a lock's max_pass_ms", lock_max_pass_ms},
    {"an acquire's token", acquire_token},
    {"an acquire's fence", acquire_fence},
    {"an acquire's max_wait_ms, max_attempts, retry_delay_ms", acquire_limits},
    {"an acquire's fail_when_away", acquire_fail_when_away},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]), CELLS = ROWS * SITES };

struct cell {
    const struct row *row;
    enum site_kind kind;
    char name[96];
};

static int begin(void **state) {
    (void)state;
    sites_start();
    return 0;
}

static int end(void **state) {
    (void)state;
    sites_stop();
    return 0;
}

static int set_up(void **state) {
    static struct fixture fixture;
    const struct cell *cell = *state;
    site = site_at(cell->kind);
    row = cell->row->name;
    site_mend(site);
    *state = &fixture;
    return fixture_init(&fixture, site->servers[0]) ? 0 : -1;
}

static int tear_down(void **state) {
    site_mend(site);
    return fixture_teardown(state);
}

static void cell_holds(void **state) {
    struct fixture *f = *state;
    for (const struct row *each = rows; each < rows + ROWS; each++)
        if (each->name == row)
            each->works(f);
}

int main(void) {
    static struct cell cells[CELLS];
    struct CMUnitTest tests[CELLS];
    for (size_t i = 0; i < CELLS; i++) {
        struct cell *cell = &cells[i];
        cell->row = &rows[i / SITES];
        cell->kind = (enum site_kind)(i % SITES);
        snprintf(cell->name, sizeof(cell->name), "%s, %s", cell->row->name, site_at(cell->kind)->name);
        tests[i] = (struct CMUnitTest){cell->name, cell_holds, set_up, tear_down, cell};
    }
    return run_suite_with("options", tests, CELLS, begin, end);
}
