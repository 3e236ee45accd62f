/* A primary, its replicas and their sentinels; see sentinels.h. The sentinels are told of the primary once they run, so
 * that their files begin empty. */
#include "sentinels.h"

#include "../redis/tls.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    AGREED_MS = 60 * 1000, /* until the processes have found each other, on a machine that is busy */
    FINDING_MS = 100,      /* how often sentinels look at others until they have found them … */
    LOOKING_MS = 300,      /* … and later */
    /* How often a sentinel speaks of itself. After four times that it undoes a promotion that it has not heard of, and
     * who has promoted looks once a second whether that is done. */
    SPEAKING_MS = 1000,
};

/* --- Questions ---------------------------------------------------------------------------------------------------- */

static bool runs(const struct server *server) {
    return server->pid && !server->paused;
}

/* The value behind a name, of a flat list of both; "" if it is not there. */
static const char *field(const redisReply *list, const char *name) {
    for (size_t i = 0; i + 1 < list->elements; i += 2)
        if (strcmp(list->element[i]->str, name) == 0)
            return list->element[i + 1]->str;
    return "";
}

static int server_at(const struct sentinels *group, const char *port) {
    for (size_t i = 0; i < group->servers_len; i++)
        if (atoi(port) == group->ports[i])
            return (int)i;
    return -1;
}

int sentinels_said(struct sentinels *group, size_t watcher) {
    if (!runs(&group->watchers[watcher]))
        return -1;
    redisReply *reply = server_ask(&group->watchers[watcher], "SENTINEL GET-MASTER-ADDR-BY-NAME " SENTINELS_NAME);
    int said = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 ? server_at(group, reply->element[1]->str) : -1;
    freeReplyObject(reply);
    return said;
}

static bool says_of_itself(struct server *server, const char *words) {
    redisReply *reply = server_ask(server, "INFO replication");
    bool found = reply->type == REDIS_REPLY_STRING && strstr(reply->str, words);
    freeReplyObject(reply);
    return found;
}

int sentinels_primary(struct sentinels *group) {
    int agreed = -1;
    for (size_t i = 0; i < group->watchers_len; i++) {
        if (!runs(&group->watchers[i]))
            continue;
        int said = sentinels_said(group, i);
        if (said < 0 || (agreed >= 0 && said != agreed))
            return -1;
        agreed = said;
    }
    if (agreed < 0 || !runs(&group->servers[agreed]))
        return -1;
    return says_of_itself(&group->servers[agreed], "role:master") ? agreed : -1;
}

static bool follows(struct sentinels *group, size_t server, int primary) {
    char port[32];
    snprintf(port, sizeof(port), "master_port:%d\r", group->ports[primary]);
    return says_of_itself(&group->servers[server], port) &&
           says_of_itself(&group->servers[server], "master_link_status:up");
}

/* The replicas of that primary which a sentinel would promote. */
static size_t fit_replicas(struct server *watcher, int primary_port) {
    size_t fit = 0;
    redisReply *reply = server_ask(watcher, "SENTINEL REPLICAS " SENTINELS_NAME);
    for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++) {
        const redisReply *of = reply->element[i];
        fit += strcmp(field(of, "flags"), "slave") == 0 && strcmp(field(of, "master-link-status"), "ok") == 0 &&
               atoi(field(of, "master-port")) == primary_port;
    }
    freeReplyObject(reply);
    return fit;
}

/* Those that it takes for well, itself among them. */
static size_t known_watchers(struct server *watcher) {
    size_t known = 1;
    redisReply *reply = server_ask(watcher, "SENTINEL SENTINELS " SENTINELS_NAME);
    for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++)
        known += strcmp(field(reply->element[i], "flags"), "sentinel") == 0;
    freeReplyObject(reply);
    return known;
}

static bool undisturbed(struct server *watcher) {
    redisReply *reply = server_ask(watcher, "SENTINEL MASTER " SENTINELS_NAME);
    bool so = reply->type == REDIS_REPLY_ARRAY && strcmp(field(reply, "flags"), "master") == 0;
    freeReplyObject(reply);
    return so;
}

bool sentinels_ready(struct sentinels *group) {
    size_t replicas = 0, watchers = 0;
    int primary = sentinels_primary(group);
    if (primary < 0)
        return false;
    for (size_t i = 0; i < group->servers_len; i++) {
        if (!runs(&group->servers[i]) || (int)i == primary)
            continue;
        if (!follows(group, i, primary))
            return false;
        replicas++;
    }
    for (size_t i = 0; i < group->watchers_len; i++)
        watchers += runs(&group->watchers[i]);
    for (size_t i = 0; i < group->watchers_len; i++) {
        struct server *watcher = &group->watchers[i];
        if (runs(watcher) && (!undisturbed(watcher) || known_watchers(watcher) < watchers ||
                              fit_replicas(watcher, group->ports[primary]) < replicas))
            return false;
    }
    return replicas > 0;
}

/* --- Orders ------------------------------------------------------------------------------------------------------- */

void sentinels_fail_over(struct sentinels *group) {
    for (size_t i = 0; i < group->watchers_len; i++)
        if (runs(&group->watchers[i])) {
            server_do(&group->watchers[i], "SENTINEL FAILOVER " SENTINELS_NAME);
            return;
        }
    fail_msg("no sentinel runs");
}

int sentinels_await_other(struct sentinels *group, int old) {
    for (int waited = 0; waited < AGREED_MS; waited += 10) {
        int primary = sentinels_primary(group);
        if (primary >= 0 && primary != old)
            return primary;
        usleep(10 * 1000);
    }
    fail_msg("no other primary was made");
    return -1;
}

void sentinels_await_ready(struct sentinels *group) {
    for (int waited = 0; waited < AGREED_MS; waited += 10) {
        if (sentinels_ready(group))
            return;
        usleep(10 * 1000);
    }
    fail_msg("the sentinels do not find each other and their servers");
}

/* --- The start and the end ---------------------------------------------------------------------------------------- */

/* An empty file of options, which the process rewrites. */
static const char *options_file(struct sentinels *group, size_t number) {
    snprintf(group->files[number], sizeof(group->files[number]), "%s/%zu.conf", group->folder, number);
    FILE *file = fopen(group->files[number], "we");
    if (!file)
        fail_msg("no file %s", group->files[number]);
    fclose(file);
    return group->files[number];
}

static size_t with(const char **args, size_t len, const char *option, const char *value) {
    if (!value)
        return len;
    args[len++] = option;
    args[len++] = value;
    return len;
}

static void start_server(struct sentinels *group, size_t number, const struct sentinels_options *options) {
    const char **args = group->server_args[number];
    size_t len = 0;
    args[len++] = options_file(group, number);
    len = with(args, len, "--repl-diskless-sync-delay", "0");
    len = with(args, len, "--min-replicas-to-write", options->min_replicas ? group->numbers[0] : NULL);
    len = with(args, len, "--min-replicas-max-lag", options->max_lag_s ? group->numbers[1] : NULL);
    len = with(args, len, "--requirepass", options->password);
    len = with(args, len, "--masterauth", options->password);
    len = with(args, len, "--appendonly", options->keeping ? "yes" : NULL);
    len = with(args, len, "--appendfsync", options->keeping ? "always" : NULL);
    with(args, len, "--replica-announce-port", options->seen_at ? group->seen[number] : NULL);
    server_start(&group->servers[number], true, args);
    group->ports[number] = options->seen_at ? options->seen_at[number] : group->servers[number].port;
    if (options->started)
        options->started(number, group->servers[number].port, options->arg);
    if (number == 0)
        return;
    server_do(&group->servers[number], "REPLICAOF 127.0.0.1 %d", group->ports[0]);
    server_do(&group->servers[number], "CONFIG REWRITE");
}

/* What only impatient tests need, and older sentinels do not know. */
static void hurry(struct server *watcher, int speaking_ms, int looking_ms) {
    freeReplyObject(server_command(watcher, "SENTINEL DEBUG publish-period %d info-period %d ping-period %d",
                                   speaking_ms, looking_ms, looking_ms));
}

static void watch(struct sentinels *group, struct server *watcher, const struct sentinels_options *options) {
    int down_after_ms = options->down_after_ms ? options->down_after_ms : 1000;
    int timeout_ms = options->failover_timeout_ms ? options->failover_timeout_ms : 3000;
    if (!options->unhurried)
        hurry(watcher, FINDING_MS, FINDING_MS);
    server_do(watcher, "SENTINEL MONITOR " SENTINELS_NAME " 127.0.0.1 %d %d", group->ports[0],
              (int)group->watchers_len / 2 + 1);
    server_do(watcher, "SENTINEL SET " SENTINELS_NAME " down-after-milliseconds %d failover-timeout %d", down_after_ms,
              timeout_ms);
    if (options->password)
        server_do(watcher, "SENTINEL SET " SENTINELS_NAME " auth-pass %s", options->password);
}

static void start_watcher(struct sentinels *group, struct server *watcher, size_t number,
                          const struct sentinels_options *options) {
    const char **args = group->watcher_args[number];
    size_t len = 0;
    args[len++] = options_file(group, GROUP_MAX + number);
    args[len++] = "--sentinel";
    with(args, len, "--requirepass", options->sentinel_password);
    server_start(watcher, true, args);
}

void sentinels_start_stale(struct sentinels *group, int server) {
    static const struct sentinels_options none;
    assert_non_null(group->password);
    start_watcher(group, &group->stale, SENTINELS_MAX, &none);
    server_do(&group->stale, "SENTINEL MONITOR " SENTINELS_NAME " 127.0.0.1 %d %d", group->ports[server],
              SENTINELS_MAX);
}

void sentinels_restart(struct sentinels *group, size_t watcher) {
    server_restart(&group->watchers[watcher]);
    if (!group->unhurried)
        hurry(&group->watchers[watcher], SPEAKING_MS, LOOKING_MS);
}

const char *sentinels_url(const struct sentinels *group, size_t from, size_t to) {
    static char url[sizeof(group->url)];
    const char *password = group->password ? group->password : "";
    size_t len = (size_t)snprintf(url, sizeof(url), "%s+sentinel://%s%s%s", server_scheme(), *password ? ":" : "",
                                  password, *password ? "@" : "");
    for (size_t i = from; i < to; i++)
        len += (size_t)snprintf(url + len, sizeof(url) - len, "%s127.0.0.1:%d", i > from ? "," : "",
                                group->watchers[i].port);
    snprintf(url + len, sizeof(url) - len, "/" SENTINELS_NAME);
    return url;
}

void sentinels_start(struct sentinels *group, const struct sentinels_options *options) {
    static const struct sentinels_options none;
    options = options ? options : &none;
    *group = (struct sentinels){.servers_len = 1 + (options->replicas ? options->replicas : 2),
                                .watchers_len = options->sentinels ? options->sentinels : 3};
    group->password = options->password;
    group->unhurried = options->unhurried;
    if (!folder_make(group->folder))
        fail_msg("no folder %s", group->folder);
    snprintf(group->numbers[0], sizeof(group->numbers[0]), "%d", options->min_replicas);
    snprintf(group->numbers[1], sizeof(group->numbers[1]), "%d", options->max_lag_s);
    for (size_t i = 0; i < group->servers_len; i++) {
        snprintf(group->seen[i], sizeof(group->seen[i]), "%d", options->seen_at ? options->seen_at[i] : 0);
        start_server(group, i, options);
    }
    for (size_t i = 0; i < group->watchers_len; i++)
        start_watcher(group, &group->watchers[i], i, options);
    for (size_t i = 0; i < group->watchers_len; i++)
        watch(group, &group->watchers[i], options);
    snprintf(group->url, sizeof(group->url), "%s", sentinels_url(group, 0, group->watchers_len));
    sentinels_await_ready(group);
    for (size_t i = 0; !options->unhurried && i < group->watchers_len; i++)
        hurry(&group->watchers[i], SPEAKING_MS, LOOKING_MS);
}

void sentinels_stop(struct sentinels *group) {
    server_stop(&group->stale);
    for (size_t i = 0; i < SENTINELS_MAX; i++)
        server_stop(&group->watchers[i]);
    for (size_t i = 0; i < GROUP_MAX; i++)
        server_stop(&group->servers[i]);
    if (group->folder[0])
        folder_remove(group->folder);
    group->folder[0] = '\0';
}
