/* The tests' deployments, one of each; see sites.h. */
#include "sites.h"

#include <stdio.h>

#include "cluster.h"
#include "sentinels.h"

/* Of the site with failover_wait_ms. A history of before is never waited for, see site_mend(). */
enum { FAILOVER_WAIT_MS = 200, FAILOVER_MAX_TTL_MS = 60000 };

/* The mark of a history, see history.lua, as if it had been seen first in 1970. */
static const char older[] = "local run, data = ARGV[1], ARGV[2] "
                            "return redis.call('SET', KEYS[1], run .. ' ' .. data .. ' 1')";

static struct server one, primary, replica, voters[3];
static struct sentinels group;
static struct cluster masters;

static struct site sites[SITES] = {
    [SITE_ONE] = {.name = "one server", .servers = {&one}, .len = 1},
    [SITE_FAILOVER] = {.name = "failover_wait_ms", .servers = {&primary}, .len = 1},
    [SITE_QUORUM] = {.name = "a quorum", .servers = {&voters[0], &voters[1], &voters[2]}, .len = 3},
    [SITE_SENTINEL] = {.name = "Sentinel", .servers = {&group.servers[0]}, .len = 1, .watcher = &group.watchers[0]},
    [SITE_CLUSTER] = {.name = "a cluster",
                      .servers = {&masters.nodes[0], &masters.nodes[1], &masters.nodes[2]},
                      .len = 3},
};

static const char *const server_args[] = {"--repl-diskless-sync-delay", "0", NULL};

static void start_servers(void) {
    server_start(&one, true, server_args);
    server_start(&primary, true, server_args);
    server_start(&replica, true, server_args);
    server_do(&replica, "REPLICAOF 127.0.0.1 %d", primary.port);
    for (size_t i = 0; i < 3; i++)
        server_start(&voters[i], true, server_args);
    snprintf(sites[SITE_ONE].url, sizeof(sites[SITE_ONE].url), "%s", one.url);
    snprintf(sites[SITE_FAILOVER].url, sizeof(sites[SITE_FAILOVER].url), "%s", primary.url);
    snprintf(sites[SITE_QUORUM].url, sizeof(sites[SITE_QUORUM].url), "quorum:%s %s %s", voters[0].url, voters[1].url,
             voters[2].url);
}

void sites_start(void) {
    /* A server that a test pauses is not failed over. */
    static const struct sentinels_options two = {.replicas = 1, .sentinels = 1, .down_after_ms = 600 * 1000};
    static const struct cluster_options alone = {.alone = true, .node_timeout_ms = 60 * 1000};
    for (int i = 0; i < SITES; i++)
        sites[i].kind = (enum site_kind)i;
    start_servers();
    cluster_start(&masters, &alone);
    sentinels_start(&group, &two);
    snprintf(sites[SITE_SENTINEL].url, sizeof(sites[SITE_SENTINEL].url), "%s", group.url);
    snprintf(sites[SITE_CLUSTER].url, sizeof(sites[SITE_CLUSTER].url), "%s", masters.url);
}

void sites_stop(void) {
    cluster_stop(&masters);
    sentinels_stop(&group);
    for (size_t i = 0; i < 3; i++)
        server_stop(&voters[i]);
    server_stop(&replica);
    server_stop(&primary);
    server_stop(&one);
}

struct site *site_at(enum site_kind kind) {
    return &sites[kind];
}

/* --- Troubles ----------------------------------------------------------------------------------------------------- */

/* As a line of INFO has it. */
static void info_word(struct server *server, const char *section, const char *name, char *ret, size_t size) {
    redisReply *reply = server_command(server, "INFO %s", section);
    const char *at = strstr(reply->str, name);
    snprintf(ret, size, "%.*s", (int)strcspn(at + strlen(name), "\r"), at + strlen(name));
    freeReplyObject(reply);
}

static void age_history(struct server *server) {
    char run[64], data[64];
    info_word(server, "server", "\nrun_id:", run, sizeof(run));
    info_word(server, "replication", "\nmaster_replid:", data, sizeof(data));
    server_do(server, "EVAL %s 1 evlock:history %s %s", older, run, data);
}

void site_mend(struct site *site) {
    site_resume(site);
    if (site->watcher)
        freeReplyObject(server_command(site->watcher, "ACL DELUSER worker"));
    site_do(site, "ACL DELUSER worker");
    if (site->kind == SITE_FAILOVER)
        age_history(site->servers[0]);
}

void site_pause(struct site *site, bool watcher) {
    for (size_t i = 0; i < site->len; i++)
        server_pause(site->servers[i]);
    if (watcher && site->watcher)
        server_pause(site->watcher);
}

void site_resume(struct site *site) {
    for (size_t i = 0; i < site->len; i++)
        server_resume(site->servers[i]);
    if (site->watcher)
        server_resume(site->watcher);
}

/* --- Looks -------------------------------------------------------------------------------------------------------- */

void site_do(struct site *site, const char *format, ...) {
    char command[256];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof(command), format, args);
    va_end(args);
    for (size_t i = 0; i < site->len; i++)
        server_do(site->servers[i], command);
}

long long site_calls(struct site *site, const char *command) {
    long long sum = 0;
    for (size_t i = 0; i < site->len; i++)
        sum += server_calls(site->servers[i], command);
    return sum;
}

int server_connections(struct server *server, const char *words) {
    redisReply *reply = server_command(server, "CLIENT LIST");
    int count = 0;
    for (const char *at = reply->str; (at = strstr(at, words)); at++)
        count++;
    freeReplyObject(reply);
    return count;
}

int site_connections(struct site *site, const char *words) {
    int sum = 0;
    for (size_t i = 0; i < site->len; i++)
        sum += server_connections(site->servers[i], words);
    return sum;
}

/* A key of another master's is there not: that master says where it is. */
static bool has_key(struct server *server, const char *key) {
    redisReply *reply = server_command(server, "EXISTS %s", key);
    bool has = reply->type == REDIS_REPLY_INTEGER && reply->integer == 1;
    freeReplyObject(reply);
    return has;
}

size_t site_having(struct site *site, const char *key) {
    size_t count = 0;
    for (size_t i = 0; i < site->len; i++)
        count += has_key(site->servers[i], key);
    return count;
}

int64_t site_ttl(struct site *site, const char *key) {
    for (size_t i = 0; i < site->len; i++)
        if (has_key(site->servers[i], key))
            return key_ttl(site->servers[i], key);
    return -2;
}

/* --- Clients ------------------------------------------------------------------------------------------------------ */

evlock_client_options site_options(struct fixture *f, const struct site *site) {
    evlock_client_options options = client_options(f);
    options.backoff_min_ms = 10;
    options.backoff_max_ms = 100;
    if (site->kind == SITE_QUORUM)
        options.durable = true;
    if (site->kind != SITE_FAILOVER)
        return options;
    options.failover_wait_ms = FAILOVER_WAIT_MS;
    options.max_ttl_ms = FAILOVER_MAX_TTL_MS;
    return options;
}

evlock_client *site_client(struct fixture *f, const struct site *site, const evlock_client_options *options) {
    evlock_client_options own = site_options(f, site);
    return client_new(f, site->url, options ? options : &own);
}
