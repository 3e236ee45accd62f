/* What is known of a client; see client.h. */
#include "client.h"

#include <string.h>

#include "check.h"
#include "cohort.h"
#include "queue.h"

enum evlock_connection evlock_client_connection(const evlock_client *client) {
    const struct deployment *deployment = client ? &client->locks.tenures.deployment : NULL;
    const struct node *trouble;

    if (!client || evl_locks_validate_caller(&client->locks).status != EVLOCK_OK || client->state == CLIENT_FREED)
        return EVLOCK_AWAY;
    return evl_deployment_connection(deployment, &trouble);
}

int evlock_client_move(evlock_client *client) {
    if (!client)
        return evl_fail(EVLOCK_EINVAL, "the client is NULL");
    if (evl_turn_forked(evl_client_turn(client)))
        return evl_fail(EVLOCK_EFORKED, "the client belongs to the parent process: a child makes its own");
    evl_turn_take(evl_client_turn(client));
    return evl_report(evl_no_trouble);
}

/* It reads nothing that changes while the client lives, but for the posts. */
int evlock_client_post(evlock_client *client, evlock_post_cb cb, void *arg) {
    int status;

    if (!client || !cb)
        return evl_fail(EVLOCK_EINVAL, "%s is NULL", client ? "the callback" : "the client");
    if (evl_turn_forked(evl_client_turn(client)))
        return evl_fail(EVLOCK_EFORKED, "the client belongs to the parent process: a child makes its own");
    if (!evl_turn_loop_threads(evl_client_turn(client)))
        return evl_fail(EVLOCK_EUNSUPPORTED, "the event loop cannot be woken from another thread");
    status = evl_posts_add(&client->posts, evl_client_turn(client), cb, arg);
    return status == EVLOCK_OK ? evl_report(evl_no_trouble) : evl_fail(status, "%s", evlock_strerror(status));
}

static enum evlock_connection client_connection_of(const struct node *node) {
    switch (evl_node_state(node)) {
    case CONNECTION_READY:
        return EVLOCK_CONNECTED;
    case CONNECTION_AWAY:
    case CONNECTION_STOPPED:
        return EVLOCK_AWAY;
    case CONNECTION_RESOLVING:
    case CONNECTION_CONNECTING:
    case CONNECTION_RETURNING:
    case CONNECTION_ENDED:
    case CONNECTION_IDLE:
        break;
    }
    return EVLOCK_CONNECTING;
}

/* Those that listen and those for replicas find out what they alone need. */
static uint32_t client_missing_of(const struct node *node) {
    uint32_t missing = evl_login_missing(&node->pipe.login);

    if (node->side)
        missing |= evl_login_missing(&node->side->login) & EVLOCK_MISSING_WAIT;
    if (node->listener)
        missing |= node->listener->missing;
    return missing;
}

/* What its server says of itself, and where that is. */
static void client_describe(const struct node *node, evlock_node_info *ret) {
    const struct login *login = &node->pipe.login;

    ret->missing = client_missing_of(node);
    evl_url_write_address(&node->url, ret->address);
    memcpy(ret->product, login->server.product.name, strlen(login->server.product.name) + 1);
    memcpy(ret->version, login->server.product.version, sizeof(ret->version));
    ret->persistence = login->server.persistence;
}

int evlock_client_node(const evlock_client *client, size_t index, evlock_node_info *ret_info, size_t size) {
    const struct deployment *deployment = client ? &client->locks.tenures.deployment : NULL;
    struct trouble trouble;
    const struct node *node;
    evlock_node_info info;
    int64_t now;

    if (!client || !ret_info || index >= evl_deployment_count(deployment) || size > 4096)
        return evl_fail(EVLOCK_EINVAL, "there is no such node");
    trouble = evl_locks_validate_caller(&client->locks);
    if (trouble.status != EVLOCK_OK)
        return evl_report(trouble);
    node = evl_deployment_node(deployment, (unsigned)index);
    now = evl_turn_now(&deployment->turn);
    trouble = evl_node_trouble(node, now);
    memset(&info, 0, sizeof(info));
    info.connection = client_connection_of(node);
    info.status = trouble.status;
    info.excluded_ms = node->excluded_until > now ? (node->excluded_until - now + 999) / 1000 : 0;
    info.agreed = node->agreed;
    client_describe(node, &info);
    memset(ret_info, 0, size);
    memcpy(ret_info, &info, size < sizeof(info) ? size : sizeof(info));
    return evl_report((struct trouble){EVLOCK_OK, trouble.status == EVLOCK_EEXCLUDED ? evlock_strerror(EVLOCK_EEXCLUDED)
                                                                                     : trouble.words});
}

/* --- Credentials -------------------------------------------------------------------------------------------------- */

/* A node that a user may name: one that is counted, or that on_login names. A cluster's masters are counted when its
 * table is known, and on_login is asked before that. */
static bool client_has_node(const struct deployment *deployment, size_t node) {
    return node < evl_deployment_count(deployment) || node < evl_deployment_identities(deployment) ||
           node == EVLOCK_ALL_NODES;
}

static struct trouble client_validate_login(const evlock_client *client, size_t node, const char *user,
                                            const char *password) {
    const struct deployment *deployment = client ? &client->locks.tenures.deployment : NULL;
    struct trouble trouble;

    if (!client || !client_has_node(deployment, node))
        return (struct trouble){EVLOCK_EINVAL, client ? "there is no such node" : "the client is NULL"};
    trouble = evl_locks_validate_caller(&client->locks);
    if (trouble.status != EVLOCK_OK)
        return trouble;
    if (client->state == CLIENT_FREED)
        return (struct trouble){EVLOCK_ECLOSED, "the client is gone"};
    if (user && !password)
        return (struct trouble){EVLOCK_EINVAL, "a user needs a password"};
    if (!password && deployment->asking)
        return (struct trouble){EVLOCK_EINVAL, "on_login is asked for a password, and asks for one"};
    return evl_no_trouble;
}

/* Without new ones: whether there are any that can be used, or asked for. */
static bool client_has_credentials(const struct deployment *deployment, unsigned first, unsigned last) {
    for (unsigned i = first; i <= last; i++) {
        const struct credentials *credentials = &deployment->nodes[i]->credentials;
        if (evl_credentials_renew(credentials) || credentials->kept.bytes)
            return true;
    }
    return false;
}

/* A listener is the first node's, or that of any master of a cluster. It is replaced when there is something to log in
 * with, and not when it is asked for. */
static bool client_renew_listener(struct evlock_client *client, unsigned first, bool asks) {
    return asks || first > 0 || evl_queue_renew(&client->locks);
}

static struct trouble client_log_in(struct evlock_client *client, unsigned first, unsigned last, const char *user,
                                    const char *password, struct words *words) {
    struct secret given[EVLOCK_NODES_MAX] = {{0}};
    struct deployment *deployment = evl_client_deployment(client);
    bool asks = !password && deployment->config.on_login;
    struct trouble trouble;

    if (!password && !client_has_credentials(deployment, first, last))
        return (struct trouble){EVLOCK_EINVAL, "there is nothing to log in with"};
    trouble = evl_deployment_write_logins(deployment, first, last, user, password, given, words);
    if (trouble.status == EVLOCK_OK && !client_renew_listener(client, first, asks))
        trouble = (struct trouble){EVLOCK_ENOMEM, "no memory for a connection that listens"};
    if (trouble.status == EVLOCK_OK)
        evl_deployment_log_in(deployment, first, last, given);
    for (unsigned i = first; i <= last; i++)
        evl_secret_wipe(&given[i]);
    return trouble;
}

int evlock_client_login(evlock_client *client, size_t node, const char *user, const char *password) {
    struct trouble trouble = client_validate_login(client, node, user, password);
    unsigned first, last;
    struct words words;

    if (trouble.status != EVLOCK_OK)
        return evl_report(trouble);
    last = evl_deployment_identities(evl_client_deployment(client)) - 1;
    first = node == EVLOCK_ALL_NODES || last == 0 ? 0 : (unsigned)node;
    last = node == EVLOCK_ALL_NODES ? last : first;
    trouble = client_log_in(client, first, last, user, password, &words);
    evl_check(evl_client_check(client));
    evl_turn_rearm(evl_client_turn(client));
    return evl_report(trouble);
}

int evlock_client_stats(const evlock_client *client, evlock_stats *ret_stats, size_t size) {
    const struct deployment *deployment = client ? &client->locks.tenures.deployment : NULL;
    struct trouble trouble;
    evlock_stats stats;

    if (!client || !ret_stats || size > 4096)
        return evl_fail(EVLOCK_EINVAL, "%s", !client ? "the client is NULL" : "there is no such struct");
    trouble = evl_locks_validate_caller(&client->locks);
    if (trouble.status != EVLOCK_OK)
        return evl_report(trouble);
    stats = deployment->stats;
    for (unsigned i = 0; i < deployment->node_count; i++)
        stats.reconnects += deployment->nodes[i]->reconnects;
    memset(ret_stats, 0, size);
    memcpy(ret_stats, &stats, size < sizeof(stats) ? size : sizeof(stats));
    return evl_report(evl_no_trouble);
}

/* --- Invariants --------------------------------------------------------------------------------------------------- */
#ifdef EVL_CHECKS

bool evl_checks_all;

static void client_check_state(const struct evlock_client *client) {
    const struct rounds *rounds = &client->locks.tenures.rounds;

    assert(client->locks.open == (client->state == CLIENT_OPEN));
    switch (client->state) {
    case CLIENT_OPEN:
        assert(!client->late && !client->releasing && !client->closed && !client->close_alarm.alarm.set);
        break;
    case CLIENT_CLOSING:
        break;
    case CLIENT_FREED:
        assert(TAILQ_EMPTY(&rounds->live) && TAILQ_EMPTY(&rounds->ghosts) && !client->close_alarm.alarm.set);
        assert(TAILQ_EMPTY(&client->locks.pending) && TAILQ_EMPTY(&client->locks.running));
        assert(STAILQ_EMPTY(&client->locks.noticed) && STAILQ_EMPTY(&client->locks.announced));
        break;
    }
}

void evl_client_check(struct evlock_client *client) {
    if (evl_turn_forked(evl_client_turn(client))) /* memory is given back there, and nothing else kept up */
        return;
    client_check_state(client);
    evl_deployment_check(evl_client_deployment(client));
    if (!evl_checks_all)
        return;
    evl_deployment_check_all(evl_client_deployment(client));
    evl_tenures_check_all(&client->locks.tenures);
    if (client->state == CLIENT_FREED) /* the handles are their users' alone */
        return;
    evl_calls_check_all(&client->locks);
    evl_cohorts_check_all(&client->locks);
}

#endif
