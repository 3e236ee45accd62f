/*
 * A cluster: which of its masters a key is kept on now, and the life of the connections to them. It owns the table of
 * the slots and keeps it up to date, makes a node for each master when there is something to be asked of it, and has
 * what was sent to the wrong one sent on. It knows nothing of locks: a request says its key, and is sent by its owner.
 *
 * The first of the nodes is the gate: nobody's master. Its connection scouts, among the addresses that were given and
 * those that are known, for a server that says who has which slot; and there waits what cannot be sent anywhere yet.
 */
#ifndef EVL_CLUSTER_H
#define EVL_CLUSTER_H

#include "node.h"
#include "shards.h"

/* So many masters, and the gate. */
#define CLUSTER_PLACES 1024

/* The place of the gate. That it "returned" means that slots have other masters than before. */
#define CLUSTER_GATE 0

/* What a cluster is made of. All of it must stay. */
struct cluster_parts {
    struct connections *connections;
    const struct node_hooks *hooks; /* of the masters; `table` is to be evl_cluster_said() */
    const struct request_ops *const *ops;
    struct node **nodes; /* with room for CLUSTER_PLACES */
    unsigned *node_count;
    struct evlock_stats *stats;
    /* What a master that was retired owes will never be settled. */
    void (*gone)(struct node *node);
};

struct cluster;

/* Makes a cluster that is known by the addresses of `url`, which it takes over, and its gate. NULL: no memory. */
struct cluster *evl_cluster_new(const struct cluster_parts *parts, struct url *url);

/* What was given. Who logs in there is to be taken out of it. */
struct url *evl_cluster_url(struct cluster *cluster);

/* Begins to look for the table. */
void evl_cluster_start(struct cluster *cluster);

/* Chooses where a request goes about this key, unless something of it is unanswered; `request->node` is that from here
 * on. One that waits elsewhere is withdrawn there. */
void evl_cluster_route(struct cluster *cluster, struct request *request, struct bytes key);

/* The node that has this key now, for all that is known; the gate, if nothing is. */
struct node *evl_cluster_home(const struct cluster *cluster, struct bytes key);

/* A node answered what it knows of the cluster. */
void evl_cluster_said(struct node *node, const struct reply *reply);

/* Writes the key of a mark of a master's history; false: it has no slots. See struct node_hooks. */
bool evl_cluster_mark(struct node *node, unsigned nth, char ret[SHARDS_MARK_SIZE]);

/* The state of a node's connection changed. */
void evl_cluster_changed(struct node *node);

/* A node does not answer, for now. */
void evl_cluster_silent(struct node *node);

/* A pipe to one of the masters sends on what its server sends elsewhere. */
void evl_cluster_join(struct cluster *cluster, struct pipe *pipe);

/* Whether a node is a master with slots, as far as it is known. */
bool evl_cluster_counts(const struct node *node);

/* How the masters are that were needed, together; `*ret_trouble` is set to one that is away, if any is. */
enum evlock_connection evl_cluster_connection(const struct cluster *cluster, const struct node **ret_trouble);

/* Nothing is asked any more. */
void evl_cluster_stop(struct cluster *cluster);

/* Frees it, and not the nodes. NULL is allowed. */
void evl_cluster_free(struct cluster *cluster);

/* Asserts what must be true between two inputs; see check.h. */
void evl_cluster_check(const struct cluster *cluster);

#endif
