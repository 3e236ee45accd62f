/* What is known of each server; see servers.h. */
#include "servers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "plain.h"

static const struct {
    enum evlock_missing what;
    const char *name, *cost;
} servers_missing[] = {
    {EVLOCK_MISSING_SCRIPTS, "scripts", "there are no locks without them"},
    {EVLOCK_MISSING_DIGESTS, "digests", "each command carries its whole script, up to 6 kB"},
    {EVLOCK_MISSING_BATCHES, "batches", "each lock is renewed by a command of its own"},
    {EVLOCK_MISSING_IDENTITY, "identity", "lost data look like a broken lock; in a quorum, each login costs --max-ttl"},
    {EVLOCK_MISSING_KILL, "kill", "an attempt of unknown outcome is undone for up to one ttl"},
    {EVLOCK_MISSING_CLOCK, "clock", "a handover in line takes one more round trip"},
    {EVLOCK_MISSING_CHANNELS, "channels", "there is no line: waiters try again and again"},
    {EVLOCK_MISSING_WAIT, "wait", "--min-replicas fails"},
    {EVLOCK_MISSING_TIME, "time", "there are no fences and no line"},
};

enum { SERVERS_MISSING = sizeof servers_missing / sizeof *servers_missing };

/* Whether there is such a server. */
static bool servers_get(const evlock_client *client, size_t index, evlock_node_info *ret) {
    return evlock_client_node(client, index, ret, sizeof *ret) == EVLOCK_OK;
}

bool servers_have_come(const evlock_client *client) {
    evlock_node_info info;
    for (size_t i = 0; servers_get(client, i, &info); i++) {
        if (info.connection == EVLOCK_CONNECTING)
            return false;
    }
    return true;
}

bool servers_lack_one(const evlock_client *client) {
    evlock_node_info info;
    for (size_t i = 0; servers_get(client, i, &info); i++) {
        if (info.connection != EVLOCK_CONNECTED && info.excluded_ms == 0)
            return true;
    }
    return false;
}

/* --- In words ----------------------------------------------------------------------------------------------------- */

static const char *servers_state(const evlock_node_info *info) {
    if (info->excluded_ms > 0)
        return "excluded";
    return info->connection == EVLOCK_CONNECTED ? "connected" : info->connection == EVLOCK_AWAY ? "away" : "connecting";
}

static const char *servers_persistence(const evlock_node_info *info) {
    switch (info->persistence) {
    case EVLOCK_PERSISTENCE_NO_AOF:
        return "no append-only file: a restart may forget locks";
    case EVLOCK_PERSISTENCE_AOF:
        return "an append-only file: unless appendfsync is always, a crash may forget the newest locks";
    case EVLOCK_PERSISTENCE_UNKNOWN:
        break;
    }
    return "not known: INFO does not say, or is not allowed";
}

/* --- A table ------------------------------------------------------------------------------------------------------ */

static const char *servers_address(const evlock_node_info *info) {
    return info->address[0] ? info->address : "not known";
}

/* Of the first column: what the longest address takes. */
static int servers_width(const evlock_client *client) {
    evlock_node_info info;
    int width = 8;
    for (size_t i = 0; servers_get(client, i, &info); i++) {
        int one = plain_width(servers_address(&info), strlen(servers_address(&info)));
        width = one > width ? one : width;
    }
    return width;
}

/* What is known of one that was logged in to, a row each. */
static void servers_print_facts(const evlock_node_info *info, int indent) {
    printf("version: ");
    plain_print(stdout, info->product, strlen(info->product), 0);
    printf("%s", info->version[0] ? " " : "");
    plain_print(stdout, info->version, strlen(info->version), 0);
    printf("%s\n", info->product[0] ? "" : "not known");
    printf("%*spersistence: %s\n", indent, "", servers_persistence(info));
    for (size_t i = 0; i < SERVERS_MISSING; i++) {
        if (info->missing & servers_missing[i].what)
            printf("%*slacks %s: %s\n", indent, "", servers_missing[i].name, servers_missing[i].cost);
    }
}

/* The words that the library has for a node's trouble stand in the last error. */
void servers_print(const evlock_client *client) {
    int width = servers_width(client);
    evlock_node_info info;
    printf("%-*s  %-10s  %s\n", width, "SERVER", "STATE", "WHAT IS KNOWN");
    for (size_t i = 0; servers_get(client, i, &info); i++) {
        plain_print(stdout, servers_address(&info), strlen(servers_address(&info)), width);
        printf("  %-10s  ", servers_state(&info));
        if (info.excluded_ms > 0)
            printf("does not count for another %" PRId64 " ms\n%*s", info.excluded_ms, width + 14, "");
        if (info.connection == EVLOCK_CONNECTED)
            servers_print_facts(&info, width + 14);
        else if (info.status != EVLOCK_OK)
            printf("%s (%s)\n", evlock_strerror(info.status), evlock_last_error());
        else
            printf("nothing yet\n");
    }
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static void servers_print_one_json(const evlock_node_info *info, struct json *json) {
    json_open(json, NULL, '{');
    json_text(json, "address", info->address);
    json_text(json, "state", servers_state(info));
    json_text(json, "status", evlock_status_name(info->status));
    json_text(json, "product", info->product);
    json_text(json, "version", info->version);
    if (info->persistence == EVLOCK_PERSISTENCE_UNKNOWN)
        json_null(json, "aof");
    else
        json_truth(json, "aof", info->persistence == EVLOCK_PERSISTENCE_AOF);
    json_open(json, "missing", '[');
    for (size_t i = 0; i < SERVERS_MISSING; i++) {
        if (info->missing & servers_missing[i].what)
            json_text(json, NULL, servers_missing[i].name);
    }
    json_close(json, ']');
    json_close(json, '}');
}

void servers_print_json(const evlock_client *client, struct json *json, const char *key) {
    evlock_node_info info;
    json_open(json, key, '[');
    for (size_t i = 0; servers_get(client, i, &info); i++)
        servers_print_one_json(&info, json);
    json_close(json, ']');
}
