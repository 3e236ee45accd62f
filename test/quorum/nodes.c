/* The tests' nodes and what can befall them; see nodes.h. */
#include "nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct server nodes[EVLOCK_NODES_MAX];

/* A replica is fed at once, not after the pause in which others might ask as well. */
static const char *const node_args[] = {"--repl-diskless-sync-delay", "0", NULL};

/* --- The suite ---------------------------------------------------------------------------------------------------- */

static int suite_start(void **state) {
    (void)state;
    for (size_t i = 0; i < NODES; i++)
        server_start(&nodes[i], true, node_args);
    return 0;
}

static int suite_stop(void **state) {
    (void)state;
    for (size_t i = 0; i < EVLOCK_NODES_MAX; i++)
        server_stop(&nodes[i]);
    return 0;
}

int run_quorum_suite_of(const char *name, const struct CMUnitTest *tests, size_t count) {
    return run_suite_with(name, tests, count, suite_start, suite_stop);
}

static void forget_saved(const struct server *node) {
    char path[96];
    snprintf(path, sizeof(path), "%s/dump.rdb", node->folder);
    unlink(path);
}

/* Whatever the test before did to it. */
static void make_new(struct server *node) {
    forget_saved(node);
    if (!node->pid)
        server_restart(node);
    server_resume(node);
    server_do(node, "ACL SETUSER default +@all");
    server_do(node, "REPLICAOF NO ONE");
    server_do(node, "CONFIG SET maxmemory 0");
    server_do(node, "FLUSHALL");
    server_do(node, "CONFIG RESETSTAT");
}

int quorum_setup_bare(void **state) {
    static struct fixture fixture;
    for (size_t i = 0; i < EVLOCK_NODES_MAX; i++)
        if (nodes[i].folder[0])
            make_new(&nodes[i]);
    *state = &fixture;
    return fixture_init(&fixture, &nodes[0]) ? 0 : -1;
}

int quorum_setup(void **state) {
    if (quorum_setup_bare(state))
        return -1;
    struct fixture *f = *state;
    quorum_client(f, NODES, NULL);
    await(f, nodes_counting(f->client) == NODES);
    return 0;
}

int quorum_teardown(void **state) {
    for (size_t i = 0; i < EVLOCK_NODES_MAX; i++)
        server_resume(&nodes[i]);
    return fixture_teardown(state);
}

/* --- Clients and locks -------------------------------------------------------------------------------------------- */

evlock_client_options durable_options(struct fixture *f) {
    evlock_client_options options = client_options(f);
    options.durable = 1;
    options.backoff_max_ms = 100;
    return options;
}

evlock_client_options excluding_options(struct fixture *f, int64_t max_ttl_ms) {
    evlock_client_options options = durable_options(f);
    options.durable = 0;
    options.max_ttl_ms = max_ttl_ms;
    return options;
}

evlock_client *quorum_client_of(struct fixture *f, const char *const *urls, size_t count,
                                const evlock_client_options *options) {
    evlock_client_options own = durable_options(f);
    evlock_client *client = NULL;
    int status =
        evlock_client_new(&client, loop_for_evlock(f->loop), urls_joined(urls, count).text, options ? options : &own);
    assert_status(status, EVLOCK_OK);
    assert_true(f->clients_len < MAX_CLIENTS);
    f->clients[f->clients_len++] = client;
    if (!f->client)
        f->client = client;
    return client;
}

evlock_client *quorum_client(struct fixture *f, size_t count, const evlock_client_options *options) {
    const char *urls[EVLOCK_NODES_MAX];
    for (size_t i = 0; i < count; i++)
        urls[i] = nodes[i].url;
    return quorum_client_of(f, urls, count, options);
}

evlock_options quick_options(void) {
    evlock_options options = with_ttl(LONG_TTL);
    options.retry_delay_ms = 20;
    return options;
}

evlock_options renewed_options(void) {
    evlock_options options = quick_options();
    options.auto_renewal = 1;
    options.renewal_interval_ms = 50;
    return options;
}

evlock *acquired(struct fixture *f, const char *name, const evlock_options *options) {
    evlock_options own = quick_options();
    evlock *lock = lock_new(f, name, options ? options : &own);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    return lock;
}

evlock *renewed_everywhere(struct fixture *fixture, struct record *lost) {
    evlock_options options = renewed_options();
    options.on_lost = record_end;
    options.arg = lost;
    evlock *lock = acquired(fixture, "a", &options);
    await(fixture, nodes_with(lock) == NODES);
    return lock;
}

/* --- What a client knows of its nodes ----------------------------------------------------------------------------- */

evlock_node_info node_info(const evlock_client *client, size_t node) {
    evlock_node_info info;
    assert_status(evlock_client_node(client, node, &info, sizeof(info)), EVLOCK_OK);
    return info;
}

size_t nodes_of(const evlock_client *client) {
    evlock_node_info info;
    size_t count = 0;
    while (evlock_client_node(client, count, &info, sizeof(info)) == EVLOCK_OK)
        count++;
    assert_status(evlock_client_node(client, count, &info, sizeof(info)), EVLOCK_EINVAL);
    return count;
}

bool node_counts(const evlock_client *client, size_t node) {
    evlock_node_info info = node_info(client, node);
    return info.connection == EVLOCK_CONNECTED && info.status == EVLOCK_OK && info.excluded_ms == 0;
}

size_t nodes_counting(const evlock_client *client) {
    size_t count = 0;
    for (size_t i = 0, all = nodes_of(client); i < all; i++)
        count += node_counts(client, i);
    return count;
}

/* --- What is on the nodes ----------------------------------------------------------------------------------------- */

static bool can_be_asked(const struct server *node) {
    return node->pid && !node->paused;
}

size_t nodes_having(const char *key) {
    size_t count = 0;
    for (size_t i = 0; i < EVLOCK_NODES_MAX; i++)
        count += can_be_asked(&nodes[i]) && key_exists(&nodes[i], key);
    return count;
}

size_t nodes_with(const evlock *lock) {
    size_t len, count = 0;
    const void *token = evlock_token(lock, &len);
    for (size_t i = 0; token && i < EVLOCK_NODES_MAX; i++)
        count += can_be_asked(&nodes[i]) && key_is(&nodes[i], evlock_name(lock, NULL), token, len);
    return count;
}

void foreign_hold(const char *key, size_t from, size_t to) {
    for (size_t i = from; i < to; i++)
        server_do(&nodes[i], "SET %s stranger NX PX 600000", key);
}

/* Whether the node keeps the token beyond `deadline`, or that has passed meanwhile. */
static bool keeps_beyond(struct server *node, const evlock *lock, int64_t deadline) {
    size_t len;
    const void *token = evlock_token(lock, &len);
    const char *key = evlock_name(lock, NULL);
    if (node->paused)
        return true;
    if (!node->pid)
        return false;
    int64_t left = token && key_is(node, key, token, len) ? key_ttl(node, key) : -1;
    int64_t now = evlock_clock_us();
    return now >= deadline || (left >= 0 && now + (left + 1) * 1000 >= deadline); /* + 1: the server rounds down */
}

void assert_deadline_is_backed(const evlock *lock, size_t count) {
    int64_t deadline = evlock_clock_us() + evlock_remaining_ms(lock) * 1000;
    size_t backing = 0;
    if (!evlock_is_held(lock))
        return;
    for (size_t i = 0; i < count; i++)
        backing += keeps_beyond(&nodes[i], lock, deadline);
    assert_true(backing > count / 2);
}

/* --- Troubles ----------------------------------------------------------------------------------------------------- */

static void unmake_replica(struct server *node) {
    server_do(node, "REPLICAOF NO ONE");
}

static void make_replica(struct server *node) {
    server_do(node, "REPLICAOF 127.0.0.1 1");
}

static void fill(struct server *node) {
    server_do(node, "CONFIG SET maxmemory 1");
}

static void empty(struct server *node) {
    server_do(node, "CONFIG SET maxmemory 0");
}

void restart_with_data(struct server *node) {
    server_do(node, "SAVE");
    server_restart(node);
}

void restart_empty(struct server *node) {
    forget_saved(node);
    server_restart(node);
}

const struct trouble stopped = {server_pause, server_resume};
const struct trouble killed = {server_kill9, restart_empty};
const struct trouble read_only = {make_replica, unmake_replica};
const struct trouble full = {fill, empty};
