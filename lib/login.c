/*
 * The login of a connection: authenticates, selects the database, learns which server process this is, loads the
 * scripts, and ends the connection before this one on the server, so that nothing that was sent on it can still run.
 * All of it is sent at once but for that last step, which must know that the server is the same process: the number
 * of a connection means nothing to another.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "hiredis.h"
#include "log.h"
#include "queue.h"

/* Of one command, at most. */
#define WORDS 4

enum greeting { AUTH, SERVER, SHARDS, SELECT, ID, MEMORY, REPLICATION, LOAD, CALL, SPELL, KILL, COUNT, PUBLISH };

static void on_greeting(redisAsyncContext *connection, void *raw, void *privdata);
static bool greet(struct node *node, enum greeting step, const char *word, ...) __attribute__((sentinel));

/* Queues a command of these words, the last of which is NULL. */
static bool greet(struct node *node, enum greeting step, const char *word, ...) {
    const char *words[WORDS] = {NULL};
    va_list rest;
    int count = 0;

    va_start(rest, word);
    for (; word && count < WORDS; word = va_arg(rest, const char *))
        words[count++] = word;
    va_end(rest);
    node->greetings++;
    return redisAsyncCommandArgv(node->connection, on_greeting, (void *)(intptr_t)step, count, words, NULL) == REDIS_OK;
}

/* What was found out on the way is to be asked about as well. */
static void ask_more(struct node *node, bool queued) {
    if (!queued)
        evl_node_break(node, EVLOCK_ENOMEM, "hiredis could not queue a command");
}

/* Copies the value of a line "field:value" of INFO. */
static void info_field(const char *info, const char *field, char *ret, size_t size) {
    const char *line = strstr(info, field);
    size_t len;

    ret[0] = '\0';
    if (!line)
        return;
    line += strlen(field);
    len = strcspn(line, "\r\n");
    if (len < size) {
        memcpy(ret, line, len);
        ret[len] = '\0';
    }
}

/* Keys with an expiry that a full server may evict are locks that it may drop. */
static void warn_of_eviction(struct node *node, const char *info) {
    char limit[24], policy[32];

    info_field(info, "\nmaxmemory:", limit, sizeof(limit));
    info_field(info, "\nmaxmemory_policy:", policy, sizeof(policy));
    if (limit[0] && strcmp(limit, "0") != 0 && policy[0] && strcmp(policy, "noeviction") != 0)
        evl_log(node->client, EVLOCK_LOG_WARN, "the server's maxmemory-policy %s may evict locks; use noeviction",
                policy);
}

/* A lock whose slot another node of the cluster has is refused by this one. `info` is what is known of the cluster: how
 * many have slots is not, while it is down. */
static void warn_of_shards(struct node *node, const char *info) {
    char shards[8] = "";

    if (strstr(info, "cluster_state:ok"))
        info_field(info, "\ncluster_size:", shards, sizeof(shards));
    if (strcmp(shards, "1") != 0)
        evl_log(node->client, EVLOCK_LOG_WARN,
                "node %u: belongs to a cluster%s%s%s; names whose slots are not on this node are refused", node->index,
                shards[0] ? " of " : "", shards, shards[0] ? " shards" : "");
}

/* Whether the connection is of use without what this step was refused. What is refused for now alone is asked again by
 * the next login: a server that could not say who it is might be taken for another. */
static bool can_do_without(enum greeting step, const char *error) {
    struct reply_meaning meaning = evl_reply_meaning(error);

    if (meaning.reconnect || evl_reply_passes(error))
        return false;
    if (step == SPELL)
        return !evl_reply_is_lacking(meaning);
    return step != AUTH && step != SELECT && step != COUNT && step != PUBLISH;
}

/* A server without EVALSHA may have EVAL. */
static void do_without_evalsha(struct node *node, const char *error) {
    evl_node_spell(node, error);
    node->lacks_evalsha = true;
    ask_more(node, greet(node, SPELL, "EVAL", "return 1", "0", NULL));
}

static void on_refused(struct node *node, enum greeting step, char *error) {
    struct reply_meaning meaning;

    evl_node_drop_quotes(error);
    meaning = evl_reply_meaning(error);
    if (step == LOAD)
        snprintf(node->load_error, sizeof(node->load_error), "%s", error);
    if (step == SHARDS)
        warn_of_shards(node, "");
    if (step == CALL && meaning.status == EVLOCK_EUNSUPPORTED)
        do_without_evalsha(node, error);
    if (can_do_without(step, error)) {
        node->explained = node->state == NODE_CONNECTING;
        if (node->explained)
            evl_node_note(node, error);
        return;
    }
    if (step == AUTH && meaning.verdict != LEASE_REFUSED)
        meaning.status = EVLOCK_EAUTH;
    evl_node_break(node, meaning.status, error);
}

/* Which kind of server this is. A Sentinel knows none of the commands; of a cluster, one node may have all slots. */
static void meet_mode(struct node *node, const char *info) {
    char mode[16];

    info_field(info, "\nredis_mode:", mode, sizeof(mode));
    if (!mode[0]) /* Valkey has a name of its own for it */
        info_field(info, "\nserver_mode:", mode, sizeof(mode));
    if (strcmp(mode, "sentinel") == 0)
        evl_node_break(node, EVLOCK_EUNSUPPORTED, "this is a Sentinel, which has no locks; give the server's address");
    else if (strcmp(mode, "cluster") == 0)
        ask_more(node, greet(node, SHARDS, "CLUSTER", "INFO", NULL));
}

/* Which process this is, what it can do, and since when it runs. The uptime is in whole seconds, of a clock read at two
 * moments: it may be one too many. One that is nonsense is taken for a start just now. */
static void meet(struct node *node, const char *info) {
    static const int64_t century = INT64_C(100) * 366 * 24 * 3600;
    char text[24];
    int64_t uptime;

    info_field(info, "\nrun_id:", node->run_id, sizeof(node->run_id));
    info_field(info, "\nredis_version:", text, sizeof(text));
    node->renews_many = strtol(text, NULL, 10) >= 7;
    info_field(info, "\nuptime_in_seconds:", text, sizeof(text));
    uptime = strtoll(text, NULL, 10);
    if (uptime < 0 || uptime > century)
        uptime = 0;
    if (text[0])
        node->started = evl_client_now(node->client) - (uptime - 1) * 1000000;
    meet_mode(node, info);
    if (!node->link)
        evl_client_refuse_twins(node->client, node);
}

/* Which history its data have, and whether that began here: a second one is that of a server whose data it took. */
static void meet_data(struct node *node, const char *info) {
    static const char none[] = "0000000000000000000000000000000000000000";
    char role[16], second[41];

    info_field(info, "\nmaster_replid:", node->replid, sizeof(node->replid));
    info_field(info, "\nmaster_replid2:", second, sizeof(second));
    info_field(info, "\nrole:", role, sizeof(role));
    node->inherited = strcmp(role, "master") != 0 || strcmp(second, none) != 0;
}

static void on_granted(struct node *node, enum greeting step, const redisReply *reply) {
    node->explained = false;
    switch (step) {
    case ID:
        if (reply->type == REDIS_REPLY_INTEGER)
            node->id = reply->integer;
        break;
    case SERVER:
        if (reply->type == REDIS_REPLY_STRING)
            meet(node, reply->str);
        break;
    case SHARDS:
        if (reply->type == REDIS_REPLY_STRING)
            warn_of_shards(node, reply->str);
        break;
    case REPLICATION:
        if (reply->type == REDIS_REPLY_STRING)
            meet_data(node, reply->str);
        break;
    case MEMORY:
        if (reply->type == REDIS_REPLY_STRING)
            warn_of_eviction(node, reply->str);
        break;
    case KILL: /* none with that number is as good: it has ended */
        node->killed = reply->type == REDIS_REPLY_INTEGER;
        break;
    case LOAD:
        node->load_error[0] = '\0';
        break;
    case AUTH:
    case SELECT:
    case CALL: /* which was sent without arguments: the server has it, and did nothing */
    case SPELL:
    case COUNT:
    case PUBLISH:
        break;
    }
}

/* What was sent on the last connection may lie in its socket, unread: end that connection on the server. */
static bool kill_lost(struct node *node) {
    char number[24];

    if (!node->unsettled || !node->lost_id || !evl_node_same_process(node))
        return false;
    snprintf(number, sizeof(number), "%" PRId64, node->lost_id);
    return greet(node, KILL, "CLIENT", "KILL", "ID", number, NULL);
}

/* --- Ears --------------------------------------------------------------------------------------------------------- */

static bool says(const redisReply *reply, const char *word) {
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 && reply->element[0]->type == REDIS_REPLY_STRING &&
           strcmp(reply->element[0]->str, word) == 0;
}

static void on_heard(redisAsyncContext *connection, void *raw, void *privdata) {
    struct node *node = connection->data;
    const redisReply *reply = raw;

    (void)privdata;
    if (!node || node->broken)
        return;
    if (!reply)
        node->gone = true;
    else if (node->state == NODE_CONNECTING && says(reply, "subscribe"))
        evl_node_ready(node, true);
    else if (node->state == NODE_READY && says(reply, "message") && reply->element[2]->type == REDIS_REPLY_STRING)
        evl_queue_heard(node->client, reply->element[2]->str);
}

static void subscribe(struct node *node) {
    const char *words[] = {"SUBSCRIBE", evl_queue_channel(node->client)};

    evl_shield_listen(&node->shield, words[1], strlen(words[1]));
    if (redisAsyncCommandArgv(node->connection, on_heard, NULL, 2, words, NULL) != REDIS_OK)
        evl_node_break(node, EVLOCK_ENOMEM, "hiredis could not queue a command");
}

/* What a release does to tell a waiter is tried here, so that nobody waits for what may not be told. */
static bool greet_ears(struct node *node) {
    const char *channel = evl_queue_channel(node->client);

    return greet(node, COUNT, "PUBSUB", "NUMSUB", channel, NULL) && greet(node, PUBLISH, "PUBLISH", channel, "", NULL);
}

static void on_greeting(redisAsyncContext *connection, void *raw, void *privdata) {
    struct node *node = connection->data;
    enum greeting step = (enum greeting)(intptr_t)privdata;
    const redisReply *reply = raw;

    if (!node || node->broken)
        return;
    if (!reply) {
        node->gone = true;
        return;
    }
    if (reply->type == REDIS_REPLY_ERROR && !(step == CALL && strstr(reply->str, "number of arguments")))
        on_refused(node, step, reply->str);
    else
        on_granted(node, step, reply);
    if (--node->greetings > 0 || node->broken || node->state != NODE_CONNECTING || (step != KILL && kill_lost(node)))
        return;
    if (node->ears)
        subscribe(node);
    else
        evl_node_ready(node, !node->unsettled || node->killed);
}

bool evl_node_load_scripts(struct node *node) {
    bool done = true;

    if (node->state == NODE_READY && node->greetings > 0)
        return true; /* under way already, ahead of whatever is sent now */
    for (unsigned i = 0; i < evl_script_count; i++)
        done = done && greet(node, LOAD, "SCRIPT", "LOAD", evl_scripts[i].text, NULL);
    return done;
}

static bool authenticate(struct node *node) {
    const struct url *url = &node->url;

    if (!url->password)
        return true;
    if (url->user)
        return greet(node, AUTH, "AUTH", url->user, url->password, NULL);
    return greet(node, AUTH, "AUTH", url->password, NULL);
}

static bool select_db(struct node *node) {
    char number[16];

    if (node->url.db == 0)
        return true;
    snprintf(number, sizeof(number), "%d", node->url.db);
    return greet(node, SELECT, "SELECT", number, NULL);
}

bool evl_node_greet(struct node *node) {
    node->id = 0;
    node->greetings = 0;
    node->killed = false;
    node->run_id[0] = '\0';
    node->replid[0] = '\0';
    node->inherited = true;
    node->started = 0;
    node->renews_many = false;
    node->spells = node->lacks_evalsha = false;
    node->load_error[0] = '\0';
    node->drift = (struct drift){0};
    node->explained = false;
    if (node->ears)
        return authenticate(node) && greet_ears(node);
    return authenticate(node) && greet(node, SERVER, "INFO", "server", NULL) && select_db(node) &&
           greet(node, ID, "CLIENT", "ID", NULL) && greet(node, MEMORY, "INFO", "memory", NULL) &&
           greet(node, REPLICATION, "INFO", "replication", NULL) && evl_node_load_scripts(node) &&
           greet(node, CALL, "EVALSHA", NULL);
}
