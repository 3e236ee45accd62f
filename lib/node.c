/* Nodes; see node.h. */
#include "node.h"

#include <inttypes.h>
#include <stdio.h>

#include "check.h"

static struct node *node_of(struct connection *connection) {
    return EVL_OWNER(struct node, pipe.login.connection, connection);
}

/* --- What may have been forgotten --------------------------------------------------------------------------------- */

/* Until when, at the latest, it may have forgotten locks. An age says nothing of one that does not say who it is: at
 * each login it may be another. */
static int64_t node_may_have_forgotten_until(const struct node *node, int64_t now) {
    const struct login *login = &node->pipe.login;
    bool stranger = login->connection.config->distrust_uptime && !evl_login_is_same_process(login);
    bool unknown = !login->server.run_id[0] || !login->server.started;

    return node->replaced || evl_login_has_other_data(login) || unknown || stranger ? now : login->server.started;
}

/* Among several nodes, one that may have forgotten locks does not count before the longest of them must have ended.
 * What was found out before stays: another login is no reason to count earlier. */
static void node_exclude(struct node *node) {
    const struct connection *connection = evl_node_connection_of(node);
    int64_t now = evl_turn_now(connection->turn);
    int64_t until = node_may_have_forgotten_until(node, now) + connection->config->max_ttl;

    if (node->excludable && node->excluded_until < until)
        node->excluded_until = until;
    if (node->excluded_until > now)
        evl_connection_log(connection, EVLOCK_LOG_WARN,
                           "may have forgotten locks, and does not count for %" PRId64 " ms",
                           (node->excluded_until - now) / 1000);
}

/* The server of before may be at work for a while, unknown to this one: nothing is asked of it meanwhile. */
static bool node_waits_out(struct node *node) {
    struct connection *connection = evl_node_connection(node);
    int64_t closed_until = node->pipe.login.server.reigned_since + connection->config->failover_wait;

    if (!connection->config->failover_wait)
        return false;
    node->excluded_until = closed_until + connection->config->max_ttl;
    if (evl_turn_now(connection->turn) >= closed_until)
        return false;
    evl_connection_break_until(connection, EVLOCK_EEXCLUDED,
                               "its history is new, and the server of before may still grant locks", closed_until);
    return true;
}

struct trouble evl_node_trouble(const struct node *node, int64_t now) {
    const struct connection *connection = evl_node_connection_of(node);

    switch (connection->state) {
    case CONNECTION_AWAY:
        return (struct trouble){connection->status, connection->error};
    case CONNECTION_RETURNING:
    case CONNECTION_READY:
        return (struct trouble){now < node->excluded_until ? EVLOCK_EEXCLUDED : EVLOCK_OK, connection->error};
    case CONNECTION_RESOLVING:
    case CONNECTION_CONNECTING:
    case CONNECTION_ENDED:
    case CONNECTION_IDLE:
    case CONNECTION_STOPPED:
        break;
    }
    return (struct trouble){EVLOCK_OK, connection->error};
}

/* The clock is read anew: the answer may have come after the reading of it when the loop called. */
void evl_node_compare_clocks(struct node *node, int64_t sent, int64_t server) {
    const struct connection *connection = evl_node_connection_of(node);
    struct clock_reading reading = {server, sent, evl_turn_now(connection->turn)};
    struct drift_found found;

    if (evl_drift_note(&node->drift, &reading, &found))
        evl_connection_log(connection, EVLOCK_LOG_WARN,
                           "the server's clock %s %" PRId64 " ms or more in %" PRId64
                           " ms: it steps, or drifts by more than leases allow for",
                           found.gained > 0 ? "gained" : "lost",
                           (found.gained > 0 ? found.gained : -found.gained) / 1000, found.span / 1000);
}

/* --- From its connection ------------------------------------------------------------------------------------------ */

static void node_on_met(struct login *login) {
    struct node *node = node_of(&login->connection);

    node->hooks->met(node);
}

/* The commands of a process that has ended cannot run any more. */
static void node_on_login_done(struct login *login, bool settled) {
    struct node *node = node_of(&login->connection);

    if (node->hooks->met)
        node->hooks->met(node);
    if (login->connection.broken)
        return;
    evl_login_take_stock(login);
    node->replaced = evl_login_is_other_process(login);
    node->settled = settled || node->replaced;
    node->drift = (struct drift){0};
    if (node_waits_out(node))
        return;
    node_exclude(node);
    node->hooks->returned(node);
    evl_connection_return(&login->connection);
    evl_check(evl_node_check(node));
}

/* Had this connection ended before all were told, the next would tell all anew, and those who had been told would keep
 * to the worse of the two. */
static bool node_on_returning(struct connection *connection, int64_t now) {
    struct node *node = node_of(connection);

    if (node->hooks->tell_back(node, now))
        return true;
    evl_login_keep(&node->pipe.login);
    node->reconnects += connection->ready_at != 0;
    evl_check(evl_node_check(node));
    return false;
}

static void node_on_changed(struct connection *connection) {
    struct node *node = node_of(connection);

    node->hooks->changed(node);
}

static const struct connection_hooks connection_hooks = {
    EVL_PIPE_HOOKS,
    .returning = node_on_returning,
    .changed = node_on_changed,
};

static void node_on_silent(struct connection *connection) {
    struct node *node = node_of(connection);

    node->hooks->silent(node);
}

static const struct connection_hooks connection_hooks_in_cluster = {
    EVL_PIPE_HOOKS,
    .returning = node_on_returning,
    .changed = node_on_changed,
    .silent = node_on_silent,
};

static void node_on_table(struct login *login, const struct reply *reply) {
    struct node *node = node_of(&login->connection);

    node->hooks->table(node, reply);
}

static bool node_on_mark(struct login *login, unsigned nth, char ret[SHARDS_MARK_SIZE]) {
    struct node *node = node_of(&login->connection);

    if (node->hooks->mark)
        return node->hooks->mark(node, nth, ret);
    snprintf(ret, SHARDS_MARK_SIZE, "evlock:history");
    return nth == 0;
}

static const struct login_hooks login_hooks = {.met = node_on_met, .mark = node_on_mark, .done = node_on_login_done};

static const struct login_hooks login_hooks_in_cluster = {
    .table = node_on_table,
    .mark = node_on_mark,
    .done = node_on_login_done,
};

void evl_node_init(struct node *node, struct connections *all, unsigned index, struct url *url,
                   const struct node_hooks *hooks, const struct request_ops *const ops[REQUEST_KINDS],
                   struct credentials *credentials) {
    node->hooks = hooks;
    node->url = *url;
    evl_connection_init(evl_node_connection(node), all, index, &node->url,
                        hooks->table ? &connection_hooks_in_cluster : &connection_hooks);
    evl_login_init(&node->pipe.login, credentials, hooks->table ? &login_hooks_in_cluster : &login_hooks);
    evl_pipe_init(&node->pipe, ops);
}

/* Nodes may share credentials: the connections to this one go where its URL says. */
void evl_node_move(struct node *node, struct url *url) {
    struct login *login;

    evl_url_free(&node->url);
    node->url = *url;
    LIST_FOREACH (login, &node->pipe.login.credentials->logins, link)
        if (login->connection.url == &node->url)
            evl_connection_move(&login->connection);
    evl_check(evl_node_check(node));
}

/* --- Invariants --------------------------------------------------------------------------------------------------- */
#ifdef EVL_CHECKS

void evl_node_check(const struct node *node) {
    implies(node->replaced, node->settled);
    implies(node->excluded_until, node->excludable || evl_node_connection_of(node)->config->failover_wait);
    implies(evl_node_state(node) == CONNECTION_READY && evl_node_connection_of(node)->config->failover_wait,
            node->pipe.login.server.reigned_since);
    implies(node->excludable, !node->pipe.login.connection.config->durable);
    assert(!node->pipe.login.channel);
    evl_login_check(&node->pipe.login);
}

#endif
