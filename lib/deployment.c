/* Deployments; see deployment.h. */
#include "deployment.h"

#include <stdio.h>
#include <string.h>

#include "check.h"
#include "master.h"
#include "memory.h"
#include "quorum.h"
#include "side.h"

static const struct trouble deployment_no_memory = {EVLOCK_ENOMEM, "no memory for a client"};

/* --- From the nodes ----------------------------------------------------------------------------------------------- */

static struct deployment *deployment_owner_of(struct node *node) {
    return EVL_OWNER(struct deployment, turn, evl_node_connection(node)->turn);
}

/* Whether leases may count on what `other` said for the very server process that `login` has met: while it serves, and
 * until the longest of them must have ended. */
static bool deployment_has_voted(const struct node *other, const struct login *login) {
    const struct connection *connection = evl_node_connection_of(other);
    int64_t until = connection->served ? connection->served + connection->config->max_ttl : 0;

    return strcmp(other->pipe.login.before.run_id, login->server.run_id) == 0 &&
           (connection->state == CONNECTION_READY || evl_turn_now(connection->turn) < until);
}

static bool deployment_is_twin(const struct node *other, const struct login *login) {
    return evl_node_state(other) == CONNECTION_RETURNING &&
           strcmp(other->pipe.login.server.run_id, login->server.run_id) == 0;
}

/* Of two nodes that are one server, the later is kept away. One that has voted stays, also while it is away, or the
 * same server would vote again by its other address. */
static void deployment_refuse_twins(struct node *node) {
    struct deployment *deployment = deployment_owner_of(node);
    const struct login *login = &node->pipe.login;
    char words[64];

    for (unsigned i = 0; i < deployment->node_count; i++) {
        struct node *other = deployment->nodes[i];
        bool voted = deployment_has_voted(other, login);
        if (other == node || !login->server.run_id[0] || (!voted && !deployment_is_twin(other, login)))
            continue;
        snprintf(words, sizeof(words), "node %u and node %u are the same server", i, evl_node_index(node));
        evl_connection_break(evl_node_connection(voted || i < evl_node_index(node) ? node : other), EVLOCK_ESAME,
                             words);
    }
}

static void deployment_on_returned(struct node *node) {
    const struct deployment *deployment = deployment_owner_of(node);

    if (deployment->master)
        evl_master_node_returned(deployment->master);
    deployment->above->returned(node);
}

static void deployment_on_changed(struct node *node) {
    const struct deployment *deployment = deployment_owner_of(node);

    if (deployment->master)
        evl_master_node_changed(deployment->master);
    deployment->above->changed(node);
}

static void deployment_on_changed_in_cluster(struct node *node) {
    evl_cluster_changed(node);
    deployment_owner_of(node)->above->changed(node);
}

/* --- The beginning ------------------------------------------------------------------------------------------------ */

/* The options' user and password win over the URL's, which forgets its own. */
static struct trouble deployment_set_credentials(struct deployment *deployment, struct node *node, struct url *url,
                                                 const evlock_client_options *options) {
    const char *user = options->user ? options->user : url->user;
    const char *password = options->password ? options->password : url->password;
    struct trouble trouble;

    if (url->password && deployment->config.renews_credentials)
        return (struct trouble){EVLOCK_EINVAL, "it has a password, and on_login and password_file exclude that"};
    if (user && !password && !deployment->config.renews_credentials)
        return (struct trouble){EVLOCK_EINVAL, "a user needs a password"};
    trouble = evl_credentials_begin(&node->credentials, user, password, deployment->password_file,
                                    deployment->config.on_login);
    evl_url_forget_login(url);
    return trouble;
}

/* A file that is of no use now is found before anyone relies on it. */
static struct trouble deployment_try_file(const struct deployment *deployment, struct words *words) {
    struct secret password = {0};
    struct trouble trouble = evl_no_trouble;

    if (deployment->password_file)
        trouble = evl_credentials_read(&deployment->nodes[0]->credentials, &password, words);
    evl_secret_wipe(&password);
    return trouble;
}

/* Says which URL is meant. One that stands alone has no number to be called by. */
static struct trouble deployment_number(const struct url_list *urls, unsigned index, struct trouble trouble,
                                        struct words *words) {
    if (trouble.status == EVLOCK_OK || urls->count == 1)
        return trouble;
    return evl_trouble(words, trouble.status, "the URL of node %u: %s", index, trouble.words);
}

/* The same of what is wrong with a URL, which is named also when it stands alone. */
static struct trouble deployment_blame(const struct url_list *urls, unsigned index, struct trouble trouble,
                                       struct words *words) {
    if (trouble.status == EVLOCK_OK || urls->count > 1)
        return deployment_number(urls, index, trouble, words);
    return evl_trouble(words, trouble.status, "URL: %s", trouble.words);
}

static struct trouble deployment_parse(struct url *ret_url, const struct url_list *urls, unsigned index,
                                       struct words *words) {
    struct trouble trouble = evl_url_parse(ret_url, urls->urls[index].at, urls->urls[index].len, words);

    return deployment_blame(urls, index, trouble, words);
}

static struct trouble deployment_make_node(struct deployment *deployment, struct url *url,
                                           const evlock_client_options *options, struct words *words) {
    unsigned index = deployment->node_count;
    struct node *node = evl_alloc(sizeof(*node));
    struct trouble trouble;

    if (!node) {
        evl_url_free(url);
        return deployment_no_memory;
    }
    deployment->nodes[deployment->node_count++] = node;
    evl_node_init(node, &deployment->connections, index, url, &deployment->hooks, deployment->ops, &node->credentials);
    node->excludable = deployment->votes > 1 && !deployment->config.durable;
    trouble = deployment_set_credentials(deployment, node, &node->url, options);
    if (trouble.status != EVLOCK_OK)
        return trouble;
    for (unsigned i = 0; i < index; i++)
        if (evl_url_is_same_server(&node->url, &deployment->nodes[i]->url))
            return evl_trouble(words, EVLOCK_ESAME, "it names the server of node %u, too", i);
    return evl_no_trouble;
}

/* What the first server over TLS needs serves all. */
static struct trouble deployment_trust(struct deployment *deployment, struct url *url, const struct url_list *urls,
                                       unsigned index, const evlock_client_options *options, struct words *words) {
    struct connections *connections = &deployment->connections;
    struct trouble trouble = evl_no_trouble;

    if (url->tls && !connections->tls)
        trouble = evl_tls_new(&connections->tls, options, words);
    for (unsigned i = 0; url->tls && trouble.status == EVLOCK_OK && i < evl_url_addresses(url); i++)
        trouble = deployment_blame(
            urls, index, evl_tls_expect(connections->tls, i == 0 ? url->host : url->others[i - 1].host), words);
    if (trouble.status != EVLOCK_OK)
        evl_url_free(url);
    return trouble;
}

/* The Sentinels get what is theirs of the URL; what is left is of a server whose place is not known. */
static struct trouble deployment_ask_sentinels(struct deployment *deployment, struct url *url,
                                               const struct url_list *urls, const evlock_client_options *options) {
    struct url server = {.user = url->user, .password = url->password, .tls = url->tls, .db = url->db};
    struct trouble trouble = {EVLOCK_EURL, "Sentinels know one server, and a quorum is of several"};

    url->user = url->password = NULL;
    if (urls->count == 1) {
        deployment->master = evl_alloc(sizeof(*deployment->master));
        trouble = deployment->master ? evl_master_make(deployment->master, &deployment->connections, url, options)
                                     : deployment_no_memory;
    }
    evl_url_free(url);
    *url = server;
    if (trouble.status != EVLOCK_OK)
        evl_url_free(url);
    return trouble;
}

static struct trouble deployment_refuse_vain_sentinels(const struct deployment *deployment,
                                                       const evlock_client_options *options) {
    if ((options->sentinel_user || options->sentinel_password) && !deployment->master)
        return (struct trouble){EVLOCK_EINVAL, "the options speak of Sentinels, but the URL has none"};
    return evl_no_trouble;
}

/* Its masters are made when they are known. */
static struct trouble deployment_make_cluster(struct deployment *deployment, struct url *url,
                                              const evlock_client_options *options) {
    struct cluster_parts parts = {
        .connections = &deployment->connections,
        .hooks = &deployment->hooks,
        .ops = deployment->ops,
        .node_count = &deployment->node_count,
        .stats = &deployment->stats,
        .gone = deployment->above->gone,
    };
    struct trouble trouble;

    deployment->hooks.met = NULL;
    deployment->hooks.table = evl_cluster_said;
    deployment->hooks.silent = evl_cluster_silent;
    deployment->hooks.mark = evl_cluster_mark;
    deployment->hooks.changed = deployment_on_changed_in_cluster;
    evl_free(deployment->nodes);
    parts.nodes = deployment->nodes = evl_alloc(CLUSTER_PLACES * sizeof(struct node *));
    if (deployment->nodes)
        deployment->cluster = evl_cluster_new(&parts, url);
    if (!deployment->cluster) {
        evl_url_free(url);
        return deployment_no_memory;
    }
    trouble =
        deployment_set_credentials(deployment, deployment->nodes[0], evl_cluster_url(deployment->cluster), options);
    return trouble;
}

static struct trouble deployment_make_one(struct deployment *deployment, struct url *url, const struct url_list *urls,
                                          unsigned index, const evlock_client_options *options, struct words *words) {
    if (url->kind != URL_CLUSTER)
        return deployment_number(urls, index, deployment_make_node(deployment, url, options, words), words);
    if (urls->count == 1)
        return deployment_make_cluster(deployment, url, options);
    evl_url_free(url);
    return (struct trouble){EVLOCK_EURL, "a cluster cannot be one of several nodes"};
}

static struct trouble deployment_refuse_vain_trust(const struct deployment *deployment,
                                                   const evlock_client_options *options) {
    if (evl_tls_is_wanted(options) && !deployment->connections.tls)
        return (struct trouble){EVLOCK_EINVAL, "the options speak of TLS, but no URL is rediss:// or valkeys://"};
    return evl_no_trouble;
}

struct trouble evl_deployment_make(struct deployment *deployment, const struct url_list *urls,
                                   const evlock_client_options *options, const struct deployment_hooks *hooks,
                                   const struct request_ops *const ops[REQUEST_KINDS], struct words *words) {
    struct trouble trouble = evl_no_trouble;
    struct url url;

    deployment->ops = ops;
    deployment->above = hooks;
    deployment->hooks = (struct node_hooks){
        .met = deployment_refuse_twins,
        .returned = deployment_on_returned,
        .tell_back = hooks->tell_back,
        .changed = deployment_on_changed,
    };
    evl_connections_init(&deployment->connections, &deployment->turn, &deployment->config);
    deployment->nodes = evl_alloc(urls->count * sizeof(struct node *));
    if (options->password_file)
        deployment->password_file = evl_dup(options->password_file, strlen(options->password_file));
    if (!deployment->nodes || !deployment->password_file != !options->password_file)
        return deployment_no_memory;
    deployment->votes = urls->count;
    for (unsigned i = 0; trouble.status == EVLOCK_OK && i < urls->count; i++) {
        trouble = deployment_parse(&url, urls, i, words);
        if (trouble.status == EVLOCK_OK)
            trouble = deployment_trust(deployment, &url, urls, i, options, words);
        if (trouble.status == EVLOCK_OK && url.kind == URL_SENTINELS)
            trouble = deployment_blame(urls, i, deployment_ask_sentinels(deployment, &url, urls, options), words);
        if (trouble.status == EVLOCK_OK)
            trouble = deployment_make_one(deployment, &url, urls, i, options, words);
    }
    if (trouble.status == EVLOCK_OK)
        trouble = deployment_refuse_vain_trust(deployment, options);
    if (trouble.status == EVLOCK_OK)
        trouble = deployment_refuse_vain_sentinels(deployment, options);
    if (trouble.status == EVLOCK_OK && deployment->votes > 1 && deployment->config.failover_wait)
        trouble = (struct trouble){EVLOCK_EINVAL, "failover_wait_ms is for one server, and there are several"};
    if (trouble.status == EVLOCK_OK && deployment->master)
        deployment->master->node = deployment->nodes[0];
    return trouble.status == EVLOCK_OK ? deployment_try_file(deployment, words) : trouble;
}

void evl_deployment_start(struct deployment *deployment) {
    if (deployment->cluster) {
        evl_cluster_start(deployment->cluster);
        return;
    }
    for (unsigned i = 0; i < deployment->node_count; i++)
        evl_connection_start(evl_node_connection(deployment->nodes[i]));
    if (deployment->master)
        evl_master_start(deployment->master);
}

bool evl_deployment_add_side(struct deployment *deployment, struct node *node) {
    if (node->side)
        return true;
    node->side = evl_alloc(sizeof(*node->side));
    if (!node->side)
        return false;
    evl_side_init(node->side, &deployment->connections, node, deployment->ops);
    if (deployment->cluster)
        evl_cluster_join(deployment->cluster, node->side);
    evl_connection_start(evl_pipe_connection(node->side));
    return true;
}

struct trouble evl_deployment_add_sides(struct deployment *deployment) {
    if (deployment->cluster) /* each when it is needed */
        return evl_no_trouble;
    for (unsigned i = 0; i < deployment->node_count; i++)
        if (!evl_deployment_add_side(deployment, deployment->nodes[i]))
            return (struct trouble){EVLOCK_ENOMEM, "no memory for second connections"};
    evl_turn_rearm(&deployment->turn);
    return evl_no_trouble;
}

/* A user's number of a node: of a cluster, that among those with slots. */
unsigned evl_deployment_count(const struct deployment *deployment) {
    unsigned count = 0;

    if (!deployment->cluster)
        return deployment->node_count;
    for (unsigned i = 0; i < deployment->node_count; i++)
        count += evl_cluster_counts(deployment->nodes[i]);
    return count;
}

struct node *evl_deployment_node(const struct deployment *deployment, unsigned index) {
    unsigned place = 0;

    if (!deployment->cluster)
        return deployment->nodes[index];
    while (!evl_cluster_counts(deployment->nodes[place]) || index-- > 0)
        place++;
    return deployment->nodes[place];
}

/* --- All nodes together ------------------------------------------------------------------------------------------- */

enum evlock_connection evl_deployment_connection(const struct deployment *deployment, const struct node **ret_trouble) {
    unsigned ready = 0, away = 0;

    if (deployment->cluster)
        return evl_cluster_connection(deployment->cluster, ret_trouble);
    for (unsigned i = 0; i < deployment->node_count; i++) {
        ready += evl_node_state(deployment->nodes[i]) == CONNECTION_READY;
        if (evl_node_state(deployment->nodes[i]) != CONNECTION_AWAY)
            continue;
        away++;
        *ret_trouble = deployment->nodes[i];
    }
    if (evl_quorum_reached(deployment->node_count, ready))
        return EVLOCK_CONNECTED;
    return evl_quorum_missed(deployment->node_count, away) ? EVLOCK_AWAY : EVLOCK_CONNECTING;
}

void evl_deployment_send_waiting(struct deployment *deployment, int64_t now) {
    for (unsigned i = 0; i < deployment->node_count; i++)
        evl_pipe_send_waiting(&deployment->nodes[i]->pipe, now);
}

void evl_deployment_part(struct deployment *deployment) {
    for (unsigned i = 0; i < deployment->node_count; i++)
        evl_pipe_part(&deployment->nodes[i]->pipe);
}

void evl_deployment_flush(struct deployment *deployment) {
    for (unsigned i = 0; i < deployment->node_count; i++)
        evl_pipe_flush(&deployment->nodes[i]->pipe);
}

/* --- Credentials -------------------------------------------------------------------------------------------------- */

bool evl_deployment_asks(const struct deployment *deployment) {
    for (unsigned i = 0; deployment->config.on_login && i < deployment->node_count; i++)
        if (deployment->nodes[i]->credentials.wanted)
            return true;
    return false;
}

/* What is to be sent to a node: what was given, or what the file says. Without either, nothing. */
static struct trouble deployment_write_login(const struct credentials *credentials, const char *user,
                                             const char *password, struct secret *ret, struct words *words) {
    if (password)
        return evl_credentials_write(credentials, user, password, ret);
    return credentials->file ? evl_credentials_read(credentials, ret, words) : evl_no_trouble;
}

struct trouble evl_deployment_write_logins(const struct deployment *deployment, unsigned first, unsigned last,
                                           const char *user, const char *password, struct secret *ret,
                                           struct words *words) {
    struct trouble trouble = evl_no_trouble;

    for (unsigned i = first; trouble.status == EVLOCK_OK && i <= last; i++)
        trouble = deployment_write_login(&deployment->nodes[i]->credentials, user, password, &ret[i], words);
    for (unsigned i = first; trouble.status != EVLOCK_OK && i <= last; i++)
        evl_secret_wipe(&ret[i]);
    return trouble;
}

void evl_deployment_log_in(struct deployment *deployment, unsigned first, unsigned last, struct secret *given) {
    for (unsigned i = first; i <= last; i++) {
        struct credentials *credentials = &deployment->nodes[i]->credentials;
        bool asks = !given[i].bytes && credentials->asks;
        if (given[i].bytes)
            evl_credentials_give(credentials, &given[i]);
        credentials->wanted |= asks;
        if (!asks && evl_credentials_newest(credentials)->bytes)
            evl_logins_renew(credentials);
    }
}

/* --- The end ------------------------------------------------------------------------------------------------------ */

void evl_deployment_stop(struct deployment *deployment, bool forked) {
    if (deployment->cluster && !forked)
        evl_cluster_stop(deployment->cluster);
    evl_connections_stop(&deployment->connections, forked);
    for (unsigned i = 0; i < deployment->node_count; i++)
        evl_credentials_wipe(&deployment->nodes[i]->credentials);
    if (deployment->master)
        evl_master_wipe(deployment->master);
}

void evl_deployment_free(struct deployment *deployment) {
    for (unsigned i = 0; i < deployment->node_count; i++) {
        evl_url_free(&deployment->nodes[i]->url);
        evl_credentials_free(&deployment->nodes[i]->credentials);
        evl_free(deployment->nodes[i]->side);
        evl_free(deployment->nodes[i]);
    }
    if (deployment->master)
        evl_master_free(deployment->master);
    evl_free(deployment->master);
    evl_tls_free(deployment->connections.tls);
    evl_cluster_free(deployment->cluster);
    evl_free(deployment->nodes);
    evl_free(deployment->password_file);
}

/* --- Invariants --------------------------------------------------------------------------------------------------- */
#ifdef EVL_CHECKS

static bool deployment_counts(const struct node *node) {
    enum connection_state state = evl_node_state(node);

    return (state == CONNECTION_RETURNING || state == CONNECTION_READY) && !evl_node_connection_of(node)->broken;
}

/* No server counts for two. */
static void deployment_check_twins(const struct deployment *deployment, unsigned index) {
    const struct node *node = deployment->nodes[index];
    const char *id = node->pipe.login.server.run_id;

    if (deployment->cluster) /* a master may have two places while the table is not up to date */
        return;
    for (unsigned i = 0; i < index; i++) {
        const struct node *other = deployment->nodes[i];
        implies(id[0] && deployment_counts(node) && deployment_counts(other),
                strcmp(id, other->pipe.login.server.run_id) != 0);
    }
}

void evl_deployment_check(const struct deployment *deployment) {
    evl_connections_check(&deployment->connections);
    if (deployment->cluster)
        evl_cluster_check(deployment->cluster);
    for (unsigned i = 0; i < deployment->node_count; i++) {
        const struct node *node = deployment->nodes[i];
        assert(evl_node_index(node) == i);
        implies(node->excludable, deployment->votes > 1);
        evl_node_check(node);
        evl_pipe_check(&node->pipe);
        deployment_check_twins(deployment, i);
        if (node->side)
            evl_pipe_check(node->side);
    }
}

void evl_deployment_check_all(const struct deployment *deployment) {
    for (unsigned i = 0; i < deployment->node_count; i++) {
        evl_pipe_check_all(&deployment->nodes[i]->pipe);
        if (deployment->nodes[i]->side)
            evl_pipe_check_all(deployment->nodes[i]->side);
    }
}

#endif
