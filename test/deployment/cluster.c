/* A cluster; see cluster.h. It is made by the commands that redis-cli would send, without its pauses. */
#include "cluster.h"

#include "../redis/tls.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    AGREED_MS = 60 * 1000, /* until the nodes have found each other, on a machine that is busy */
    LOOK_MS = 10,
    SLOTS_SIZE = 8192,
    MIGRATED = 100, /* keys at a time */
    MIGRATE_MS = 10 * 1000,
};

/* --- What a node says --------------------------------------------------------------------------------------------- */

static bool runs(const struct server *server) {
    return server->pid && !server->paused;
}

static bool says(struct server *node, const char *question, const char *words) {
    redisReply *reply = server_ask(node, question);
    bool found = reply->type == REDIS_REPLY_STRING && strstr(reply->str, words);
    freeReplyObject(reply);
    return found;
}

/* A line of CLUSTER NODES. */
struct row {
    char id[CLUSTER_ID + 1];
    char flags[64];
    char master[CLUSTER_ID + 1]; /* "-": it is none's replica */
    unsigned long long epoch;    /* of its claims, or, of a replica, of its master's */
    char slots[SLOTS_SIZE];      /* such as " 0-99 105"; not those on their way */
};

/* Reads the line and steps behind it; false at the end. */
static bool read_row(char **at, struct row *row) {
    int slots = 0;
    char *line = *at, *end = line ? strchr(line, '\n') : NULL, *open;
    if (!end)
        return false;
    *end = '\0';
    *at = end + 1;
    if (sscanf(line, "%40s %*s %63s %40s %*s %*s %llu %*s%n", row->id, row->flags, row->master, &row->epoch, &slots) !=
            4 ||
        !slots || end - line - slots >= SLOTS_SIZE)
        fail_msg("a table's line: %s", line);
    memcpy(row->slots, line + slots, (size_t)(end - line - slots) + 1);
    if ((open = strstr(row->slots, " [")))
        *open = '\0';
    return true;
}

/* Whether a list of slots has this one. */
static bool has_slot(const char *slots, int slot) {
    while (*slots == ' ') {
        int first = -1, last = -1, len = 0;
        int read = sscanf(slots, " %d-%d%n", &first, &last, &len);
        if (read < 2)
            read = sscanf(slots, " %d%n", &first, &len);
        if (read >= 1 && (slot == first || (slot > first && slot <= last)))
            return true;
        slots += 1 + strcspn(slots + 1, " ");
    }
    return false;
}

/* Which node this one says has the slot. */
static int owner_said(struct cluster *cluster, size_t node, int slot) {
    int owner = -1;
    struct row row;
    redisReply *reply = server_ask(&cluster->nodes[node], "CLUSTER NODES");
    char *at = reply->type == REDIS_REPLY_STRING ? reply->str : NULL;
    while (read_row(&at, &row))
        for (size_t i = 0; has_slot(row.slots, slot) && i < cluster->len; i++)
            if (strcmp(row.id, cluster->ids[i]) == 0)
                owner = (int)i;
    freeReplyObject(reply);
    return owner;
}

/* Its own line. */
static void own_row(struct server *node, struct row *row) {
    redisReply *reply = server_ask(node, "CLUSTER NODES");
    char *at = reply->type == REDIS_REPLY_STRING ? reply->str : NULL;
    do
        assert_true(read_row(&at, row));
    while (!strstr(row->flags, "myself"));
    freeReplyObject(reply);
}

/* --- What all say ------------------------------------------------------------------------------------------------- */

static int node_of(const struct cluster *cluster, const char *id) {
    for (size_t i = 0; i < cluster->len; i++)
        if (strcmp(cluster->ids[i], id) == 0)
            return (int)i;
    return -1;
}

/* Whether two masters claim slots at the same epoch. Then one of them takes another soon. */
static bool is_tie(const struct row *one, const struct row *other) {
    return one->master[0] == '-' && other->master[0] == '-' && one->epoch == other->epoch;
}

/* What each that runs says of itself; false: they are not done with each other. */
static bool read_own(struct cluster *cluster, struct row own[CLUSTER_MAX]) {
    for (size_t i = 0; i < cluster->len; i++) {
        if (!runs(&cluster->nodes[i]))
            continue;
        own_row(&cluster->nodes[i], &own[i]);
        for (size_t j = 0; j < i; j++)
            if (runs(&cluster->nodes[j]) && is_tie(&own[i], &own[j]))
                return false;
    }
    return true;
}

static bool is_known(const struct row *said, const struct row *own) {
    return !strstr(said->flags, "fail") && !strstr(said->flags, "handshake") &&
           strcmp(said->master, own->master) == 0 && said->epoch == own->epoch && strcmp(said->slots, own->slots) == 0;
}

/* Whether the node knows all those that run as they know themselves, and takes none of them for failed. */
static bool knows_all(struct cluster *cluster, size_t node, const struct row own[CLUSTER_MAX]) {
    size_t known = 0, running = 0;
    struct row row;
    redisReply *reply = server_ask(&cluster->nodes[node], "CLUSTER NODES");
    char *at = reply->type == REDIS_REPLY_STRING ? reply->str : NULL;
    while (read_row(&at, &row)) {
        int of = node_of(cluster, row.id);
        known += of >= 0 && runs(&cluster->nodes[of]) && is_known(&row, &own[of]);
    }
    freeReplyObject(reply);
    for (size_t i = 0; i < cluster->len; i++)
        running += runs(&cluster->nodes[i]);
    return known == running;
}

bool cluster_is_ok(struct cluster *cluster) {
    static struct row own[CLUSTER_MAX];
    if (!read_own(cluster, own))
        return false;
    for (size_t i = 0; i < cluster->len; i++) {
        struct server *node = &cluster->nodes[i];
        if (!runs(node))
            continue;
        if (!says(node, "CLUSTER INFO", "cluster_state:ok") || !knows_all(cluster, i, own) ||
            says(node, "INFO replication", "master_link_status:down"))
            return false;
    }
    return true;
}

/* A node that loads its data says nothing else. */
int cluster_slot(struct cluster *cluster, const char *key) {
    int slot = -1;
    for (size_t i = 0; i < cluster->len && slot < 0; i++) {
        if (!runs(&cluster->nodes[i]))
            continue;
        redisReply *reply = server_ask(&cluster->nodes[i], "CLUSTER KEYSLOT %s", key);
        if (reply->type == REDIS_REPLY_INTEGER)
            slot = (int)reply->integer;
        freeReplyObject(reply);
    }
    assert_true(slot >= 0);
    return slot;
}

int cluster_owner(struct cluster *cluster, int slot) {
    int owner = -1;
    for (size_t i = 0; i < cluster->len; i++) {
        if (!runs(&cluster->nodes[i]) || owner_said(cluster, i, slot) != (int)i)
            continue;
        if (owner >= 0)
            return -1;
        owner = (int)i;
    }
    return owner;
}

bool cluster_agrees(struct cluster *cluster, int slot, int node) {
    for (size_t i = 0; i < cluster->len; i++)
        if (runs(&cluster->nodes[i]) && owner_said(cluster, i, slot) != node)
            return false;
    return true;
}

int cluster_replica_of(struct cluster *cluster, int node) {
    for (size_t i = 0; i < cluster->len; i++) {
        struct row row;
        if (!runs(&cluster->nodes[i]))
            continue;
        own_row(&cluster->nodes[i], &row);
        if (strcmp(row.master, cluster->ids[node]) == 0)
            return (int)i;
    }
    return -1;
}

void cluster_key(struct cluster *cluster, int node, int nth, char *key, size_t size) {
    for (int i = 0, found = 0; i < CLUSTER_SLOTS; i++) {
        snprintf(key, size, "N:%d", i);
        if (owner_said(cluster, (size_t)node, cluster_slot(cluster, key)) == node && found++ == nth)
            return;
    }
    fail_msg("node %d has no slots", node);
}

/* --- Waiting ------------------------------------------------------------------------------------------------------ */

/* `text` says what is waited for in vain. */
#define AWAIT(condition, text)                                                                                         \
    do {                                                                                                               \
        int waited = 0;                                                                                                \
        while (!(condition)) {                                                                                         \
            if ((waited += LOOK_MS) > AGREED_MS)                                                                       \
                fail_msg("in vain: %s", text);                                                                         \
            usleep(LOOK_MS * 1000);                                                                                    \
        }                                                                                                              \
    } while (0)

void cluster_await_ok(struct cluster *cluster) {
    AWAIT(cluster_is_ok(cluster), "all slots are served, and all replicas follow");
}

/* The one that all agree on, if it is another. */
static int agreed_other(struct cluster *cluster, int slot, int old) {
    int owner = cluster_owner(cluster, slot);
    return owner >= 0 && owner != old && cluster_agrees(cluster, slot, owner) ? owner : -1;
}

int cluster_await_other(struct cluster *cluster, int slot, int old) {
    int owner = -1;
    AWAIT((owner = agreed_other(cluster, slot, old)) >= 0, "another node has the slot");
    return owner;
}

/* --- Slots that move ---------------------------------------------------------------------------------------------- */

/* The new owner takes an epoch by itself, which must be greater than all: so it has to know them. Else the old owner's
 * claim may be the greater one, or still on its way to it, and then each takes the other for the owner, for good. */
void cluster_open(struct cluster *cluster, int slot, int to) {
    cluster_await_ok(cluster);
    int from = cluster_owner(cluster, slot);
    assert_true(from >= 0 && from != to);
    server_do(&cluster->nodes[to], "CLUSTER SETSLOT %d IMPORTING %s", slot, cluster->ids[from]);
    server_do(&cluster->nodes[from], "CLUSTER SETSLOT %d MIGRATING %s", slot, cluster->ids[to]);
}

static size_t migrate_some(struct server *from, const struct server *to, int slot) {
    redisReply *keys = server_command(from, "CLUSTER GETKEYSINSLOT %d %d", slot, MIGRATED);
    size_t len = keys->elements;
    for (size_t i = 0; i < len; i++)
        server_do(from, "MIGRATE 127.0.0.1 %d %b 0 %d", to->port, keys->element[i]->str, keys->element[i]->len,
                  MIGRATE_MS);
    freeReplyObject(keys);
    return len;
}

void cluster_migrate(struct cluster *cluster, int slot, int to) {
    int from = cluster_owner(cluster, slot);
    assert_true(from >= 0 && from != to);
    while (migrate_some(&cluster->nodes[from], &cluster->nodes[to], slot))
        ;
}

static bool is_master(struct server *node) {
    return runs(node) && says(node, "INFO replication", "role:master");
}

/* The new one first, so that there is always one that has it. */
void cluster_settle(struct cluster *cluster, int slot, int to) {
    server_do(&cluster->nodes[to], "CLUSTER SETSLOT %d NODE %s", slot, cluster->ids[to]);
    for (size_t i = 0; i < cluster->len; i++)
        if ((int)i != to && is_master(&cluster->nodes[i]))
            server_do(&cluster->nodes[i], "CLUSTER SETSLOT %d NODE %s", slot, cluster->ids[to]);
}

void cluster_cancel(struct cluster *cluster, int slot) {
    for (size_t i = 0; i < cluster->len; i++)
        if (is_master(&cluster->nodes[i]))
            server_do(&cluster->nodes[i], "CLUSTER SETSLOT %d STABLE", slot);
}

void cluster_move(struct cluster *cluster, int slot, int to) {
    cluster_open(cluster, slot, to);
    cluster_migrate(cluster, slot, to);
    cluster_settle(cluster, slot, to);
    AWAIT(cluster_is_ok(cluster) && cluster_agrees(cluster, slot, to), "all say where the slot is, and will");
}

void cluster_fail_over(struct cluster *cluster, int replica, const char *how) {
    server_do(&cluster->nodes[replica], *how ? "CLUSTER FAILOVER %s" : "CLUSTER FAILOVER", how);
}

/* --- The start and the end ---------------------------------------------------------------------------------------- */

static void set_args(struct cluster *cluster, size_t node, const struct cluster_options *options) {
    const char *all[] = {"--cluster-enabled", "yes", "--repl-diskless-sync-delay", "0", "--cluster-node-timeout"};
    size_t len = sizeof(all) / sizeof(all[0]);
    const char **args = cluster->args[node];
    memcpy(args, all, sizeof(all));
    snprintf(cluster->numbers[0], sizeof(cluster->numbers[0]), "%d",
             options->node_timeout_ms ? options->node_timeout_ms : 2000);
    args[len++] = cluster->numbers[0];
    if (options->min_replicas) {
        snprintf(cluster->numbers[1], sizeof(cluster->numbers[1]), "%d", options->min_replicas);
        args[len++] = "--min-replicas-to-write";
        args[len++] = cluster->numbers[1];
    }
    if (options->seen_at) {
        snprintf(cluster->seen[node], sizeof(cluster->seen[node]), "%d", options->seen_at[node]);
        args[len++] = tls_wanted() ? "--cluster-announce-tls-port" : "--cluster-announce-port";
        args[len++] = cluster->seen[node];
    }
    if (options->keeping) {
        const char *keeping[] = {"--appendonly", "yes", "--appendfsync", "always"};
        memcpy(args + len, keeping, sizeof(keeping));
        len += sizeof(keeping) / sizeof(keeping[0]);
    }
    if (options->hostnames) {
        const char *names[] = {"--cluster-announce-hostname", "localhost", "--cluster-preferred-endpoint-type",
                               "hostname"};
        memcpy(args + len, names, sizeof(names));
    }
}

static void start_node(struct cluster *cluster, size_t i, const struct cluster_options *options) {
    struct server *node = &cluster->nodes[i];
    set_args(cluster, i, options);
    server_start(node, true, cluster->args[i]);
    if (options->started)
        options->started(i, node->port, options->arg);
    redisReply *reply = server_command(node, "CLUSTER MYID");
    assert_int_equal(reply->len, CLUSTER_ID);
    memcpy(cluster->ids[i], reply->str, CLUSTER_ID);
    freeReplyObject(reply);
    server_do(node, "CLUSTER SET-CONFIG-EPOCH %d", (int)i + 1);
}

static bool has_met(struct cluster *cluster, size_t node) {
    size_t met = 0;
    struct row row;
    redisReply *reply = server_ask(&cluster->nodes[node], "CLUSTER NODES");
    char *at = reply->str;
    while (read_row(&at, &row))
        met += node_of(cluster, row.id) >= 0 && !strstr(row.flags, "handshake");
    freeReplyObject(reply);
    return met == cluster->len;
}

/* Each is told of those after it, which is quicker than to let them find each other. */
static void introduce(struct cluster *cluster) {
    for (size_t i = 0; i < cluster->len; i++)
        for (size_t j = i + 1; j < cluster->len; j++)
            server_do(&cluster->nodes[i], "CLUSTER MEET 127.0.0.1 %d", cluster->nodes[j].port);
    for (size_t i = 0; i < cluster->len; i++)
        AWAIT(has_met(cluster, i), "the nodes have met");
}

static void share_out(struct cluster *cluster) {
    for (size_t i = 0; i < cluster->masters; i++)
        server_do(&cluster->nodes[i], "CLUSTER ADDSLOTSRANGE %d %d", (int)(CLUSTER_SLOTS * i / cluster->masters),
                  (int)(CLUSTER_SLOTS * (i + 1) / cluster->masters) - 1);
    for (size_t i = cluster->masters; i < cluster->len; i++)
        server_do(&cluster->nodes[i], "CLUSTER REPLICATE %s", cluster->ids[(i - cluster->masters) % cluster->masters]);
}

void cluster_start(struct cluster *cluster, const struct cluster_options *options) {
    static const struct cluster_options none;
    options = options ? options : &none;
    size_t masters = options->masters ? options->masters : 3, replicas = options->replicas ? options->replicas : 1;
    *cluster = (struct cluster){.masters = masters, .len = masters * (options->alone ? 1 : 1 + replicas)};
    assert_true(cluster->len <= CLUSTER_MAX);
    for (size_t i = 0; i < cluster->len; i++)
        start_node(cluster, i, options);
    introduce(cluster);
    share_out(cluster);
    size_t len = (size_t)snprintf(cluster->url, sizeof(cluster->url), "%s+cluster://", server_scheme());
    for (size_t i = 0; i < cluster->len && i < 3; i++)
        len += (size_t)snprintf(cluster->url + len, sizeof(cluster->url) - len, "%s127.0.0.1:%d", i ? "," : "",
                                cluster->nodes[i].port);
    cluster_await_ok(cluster);
}

void cluster_stop(struct cluster *cluster) {
    for (size_t i = 0; i < CLUSTER_MAX; i++)
        server_stop(&cluster->nodes[i]);
}

/* Slots whose move was left in its midst stay where they are. */
static void close_moves(struct server *node) {
    redisReply *reply = server_ask(node, "CLUSTER NODES");
    for (const char *open = strchr(reply->str, '['); open; open = strchr(open + 1, '['))
        server_do(node, "CLUSTER SETSLOT %d STABLE", atoi(open + 1));
    freeReplyObject(reply);
}

void cluster_mend(struct cluster *cluster) {
    for (size_t i = 0; i < cluster->len; i++)
        server_resume(&cluster->nodes[i]);
    for (size_t i = 0; i < cluster->len; i++)
        if (!cluster->nodes[i].pid)
            server_restart(&cluster->nodes[i]);
    for (size_t i = 0; i < cluster->len; i++)
        if (is_master(&cluster->nodes[i]))
            close_moves(&cluster->nodes[i]);
    cluster_await_ok(cluster);
    for (size_t i = 0; i < cluster->len; i++)
        if (is_master(&cluster->nodes[i]))
            server_do(&cluster->nodes[i], "FLUSHALL");
}
