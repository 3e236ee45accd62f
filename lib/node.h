/*
 * A node: one Redis that grants locks. It judges whether the server that it meets may have forgotten locks, keeps it
 * out for as long as that matters, and has those who used it before told when it is back. It owns a pipe. What there is
 * beside it, and who uses it, is known to its owner alone.
 */
#ifndef EVL_NODE_H
#define EVL_NODE_H

#include "drift.h"
#include "pipe.h"
#include "rounds.h"

struct listener;
struct node;

/* What the owner of a node does with it. */
struct node_hooks {
    /* The server said which process it is: the login may be broken for it. */
    void (*met)(struct node *node);
    /* It is logged in: all that have used it are about to be told. */
    void (*returned)(struct node *node);
    /* Some more are told that it is back, by `settled` and `replaced`; true: there are more. */
    bool (*tell_back)(struct node *node, int64_t now);
    /* Its connection's state changed. */
    void (*changed)(struct node *node);
    /* In a cluster: it does not answer, for now. */
    void (*silent)(struct node *node);
    /* It said what it knows of the cluster that it belongs to. NULL: it belongs to none. */
    void (*table)(struct node *node, const struct reply *reply);
    /* The same of login_hooks.mark. NULL: it is no shard, and has one mark. */
    bool (*mark)(struct node *node, unsigned nth, char ret[SHARDS_MARK_SIZE]);
};

struct node {
    struct pipe pipe;
    struct url url;                 /* where it is, and */
    struct credentials credentials; /* who logs in there; of all connections to it, unless it shares another's */
    const struct node_hooks *hooks;
    struct pipe *side;          /* a second connection to it, its owner's; NULL: nobody needs one yet */
    struct listener *listener;  /* one that hears what is published there, its owner's; NULL: nobody waits for that */
    struct listener *successor; /* that takes its place when it listens; NULL: none is to */
    struct round round;         /* RETURNING: how many have been told */
    bool excludable;            /* it is one of several, and may have forgotten locks when it comes back */
    bool settled;               /* RETURNING: nothing of the connection before can still run; */
    bool replaced;              /* and this is another process than that led to */
    struct drift drift;         /* of the present connection's server */
    bool agreed;                /* its last answer about a lease was yes */
    uint64_t reconnects;        /* so often it served anew */
    int64_t excluded_until;     /* it may have forgotten locks, and does not count before */
};

/* Sets up a node of zeroed memory, which takes `url` over, and logs in with its own credentials or another's. Nothing
 * begins before evl_connection_start(). */
void evl_node_init(struct node *node, struct connections *all, unsigned index, struct url *url,
                   const struct node_hooks *hooks, const struct request_ops *const ops[REQUEST_KINDS],
                   struct credentials *credentials);

/* Its server is elsewhere now, as `url` says, which it takes over: all connections to it go there at once. Whoever used
 * it meets a server that is not the one before. */
void evl_node_move(struct node *node, struct url *url);

static inline struct connection *evl_node_connection(struct node *node) {
    return &node->pipe.login.connection;
}

static inline const struct connection *evl_node_connection_of(const struct node *node) {
    return &node->pipe.login.connection;
}

static inline enum connection_state evl_node_state(const struct node *node) {
    return node->pipe.login.connection.state;
}

/* Which of the client's it is. */
static inline unsigned evl_node_index(const struct node *node) {
    return node->pipe.login.connection.index;
}

/* What the server's clock said in the answer that is being given, to a command sent at `sent`. Warns where that clock
 * and the one here go apart by more than leases allow for. */
void evl_node_compare_clocks(struct node *node, int64_t sent, int64_t server);

/* Whether it is logged in, and counts. */
static inline bool evl_node_serves(const struct node *node, int64_t now) {
    return evl_node_state(node) == CONNECTION_READY && now >= node->excluded_until;
}

/* Why it is known to be of no use for a grant now: EVLOCK_OK if it is not. The words are the node's. */
struct trouble evl_node_trouble(const struct node *node, int64_t now);

/* It is the only one, and serves those whose leases it may have forgotten, by setting them again; but it grants nothing
 * yet. */
static inline bool evl_node_restores(const struct node *node, int64_t now) {
    return now < node->excluded_until && evl_node_connection_of(node)->config->failover_wait > 0;
}

/* Asserts what must be true between two inputs; see check.h. */
void evl_node_check(const struct node *node);

#endif
