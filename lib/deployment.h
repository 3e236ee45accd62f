/*
 * A deployment: the nodes that a client's locks are kept on, as one. It owns the turn, the nodes and the connections,
 * knows how many nodes are a quorum and what they are doing together, and keeps two of them that are one server from
 * counting twice. It knows nothing of leases.
 */
#ifndef EVL_DEPLOYMENT_H
#define EVL_DEPLOYMENT_H

#include "cluster.h"
#include "node.h"

/* What the owner of a deployment does with it, beside what a turn asks for. */
struct deployment_hooks {
    /* See struct node_hooks. */
    void (*returned)(struct node *node);
    bool (*tell_back)(struct node *node, int64_t now);
    /* What the nodes are doing together may have changed. */
    void (*changed)(struct node *node);
    /* A node of a cluster is done with: what it owes is never settled. */
    void (*gone)(struct node *node);
};

struct deployment {
    struct turn turn;
    struct client_config config;
    const struct deployment_hooks *above;
    struct node_hooks hooks;              /* of its nodes */
    const struct request_ops *const *ops; /* by the kind of a request */
    struct connections connections;
    struct node **nodes;
    struct master *master;   /* whose server the only node is; NULL: the nodes are where their URLs say */
    struct cluster *cluster; /* that these are the masters of, but for the first, its gate; NULL: they are no cluster */
    char *password_file;     /* NULL: none */
    unsigned node_count;
    unsigned votes; /* of a lock: one for each node that it is kept on */
    bool asking;    /* the user is in on_login */
    struct evlock_stats stats;
};

/* Parses the URLs into nodes, which are not started; the config is there. EVLOCK_OK, or what is wrong with which URL,
 * in words that may be put together in `words`; evl_deployment_free() is to be called in any case. */
struct trouble evl_deployment_make(struct deployment *deployment, const struct url_list *urls,
                                   const evlock_client_options *options, const struct deployment_hooks *hooks,
                                   const struct request_ops *const ops[REQUEST_KINDS], struct words *words);

/* Whether a server that may have forgotten locks grants none until the longest of them must have ended. */
static inline bool evl_deployment_excludes(const struct deployment *deployment) {
    return deployment->votes > 1 || deployment->config.failover_wait > 0;
}

/* Starts the connections to the nodes. The turn has been set up. */
void evl_deployment_start(struct deployment *deployment);

/* Chooses the node that a request about this key goes to now, by its vote or its slot. Where it waits elsewhere, it is
 * withdrawn. */
static inline struct node *evl_deployment_route(struct deployment *deployment, struct request *request,
                                                struct bytes key) {
    if (deployment->cluster)
        evl_cluster_route(deployment->cluster, request, key);
    return deployment->nodes[request->node];
}

/* The node that speaks for what has one vote, about this key. */
static inline struct node *evl_deployment_home(const struct deployment *deployment, struct bytes key) {
    return deployment->cluster ? evl_cluster_home(deployment->cluster, key) : deployment->nodes[0];
}

/* How many nodes a user knows of, and which they are. */
unsigned evl_deployment_count(const struct deployment *deployment);
struct node *evl_deployment_node(const struct deployment *deployment, unsigned index);

/* So many nodes have credentials of their own: all, or the first for all. */
static inline unsigned evl_deployment_identities(const struct deployment *deployment) {
    return deployment->cluster ? 1 : deployment->node_count;
}

/* Makes the second connection to a node, unless it is there; false: no memory. */
bool evl_deployment_add_side(struct deployment *deployment, struct node *node);

/* What all nodes together are doing; `*ret_trouble` is set to one that is away, if any is. */
enum evlock_connection evl_deployment_connection(const struct deployment *deployment, const struct node **ret_trouble);

/* Makes the second connections, unless they are there; EVLOCK_OK or EVLOCK_ENOMEM. */
struct trouble evl_deployment_add_sides(struct deployment *deployment);

/* Sends what was held back to be sent together. */
void evl_deployment_send_waiting(struct deployment *deployment, int64_t now);

/* What is sent to the nodes from here on is the last, and nobody is to hear answers. */
void evl_deployment_part(struct deployment *deployment);

/* Sends and writes to the nodes what waits, as far as the sockets take it. */
void evl_deployment_flush(struct deployment *deployment);

/* Whether the user is to be asked for the credentials of a node. */
bool evl_deployment_asks(const struct deployment *deployment);

/* Writes what logs in at each of these nodes, into the place of its number in `ret`: with this password, or, if that is
 * NULL, with what the password file says now. Without either nothing is written. EVLOCK_OK, EVLOCK_ENOMEM or
 * EVLOCK_EFILE. */
struct trouble evl_deployment_write_logins(const struct deployment *deployment, unsigned first, unsigned last,
                                           const char *user, const char *password, struct secret *ret,
                                           struct words *words);

/* All connections to these nodes log in with what was written, which is taken over; where nothing was, with what they
 * have, or the user is to be asked. */
void evl_deployment_log_in(struct deployment *deployment, unsigned first, unsigned last, struct secret *given);

/* Stops all connections, and wipes what they logged in with. */
void evl_deployment_stop(struct deployment *deployment, bool forked);

/* Frees what it owns, but for its own memory. The connections have been stopped, or were never started. */
void evl_deployment_free(struct deployment *deployment);

/* Asserts what must be true at the end of a turn; see check.h. */
void evl_deployment_check(const struct deployment *deployment);

/* The same of all that is sent over its connections. */
void evl_deployment_check_all(const struct deployment *deployment);

#endif
