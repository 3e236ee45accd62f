/*
 * A cluster: masters, each with its replicas, as real processes on loopback ports of their own, for one test or for a
 * suite. Owns the processes and nothing of a client. With EVLOCK_TEST_TLS=1 all of them speak TLS, with each other too.
 * Who has a slot is always asked, of the node that has it: the cluster decides that.
 *
 * As with the server that it is built on, what cannot be done fails the running cmocka test.
 */
#ifndef EVLOCK_TEST_CLUSTER_H
#define EVLOCK_TEST_CLUSTER_H

#include "../redis/server.h"

enum {
    CLUSTER_MAX = 12, /* nodes */
    CLUSTER_SLOTS = 16384,
    CLUSTER_ARGS = 32,
    CLUSTER_ID = 40, /* characters of a node's name */
};

/* All zero: three masters with a replica each. */
struct cluster_options {
    size_t masters;      /* default 3 */
    size_t replicas;     /* of each master; default 1 */
    bool alone;          /* no replicas */
    int node_timeout_ms; /* default 2000 */
    bool hostnames;      /* the table has "localhost" for all, and says that it is to be used */
    int min_replicas;    /* min-replicas-to-write; default none */
    bool keeping;        /* what the nodes have acknowledged is not forgotten when they are killed */
    const int *seen_at;  /* by clients and replicas, each node is seen at this port of 127.0.0.1, … */
    void (*started)(size_t node, int port, void *arg); /* … which leads to its own from this call on; with `arg` */
    void *arg;
};

struct cluster {
    struct server nodes[CLUSTER_MAX]; /* the masters of the start, then the replicas of each in turn */
    size_t len;
    size_t masters;
    char ids[CLUSTER_MAX][CLUSTER_ID + 1];
    char url[256]; /* of the first three nodes, for evlock_client_new() */

    /* The arguments of the processes. */
    char numbers[2][16];
    char seen[CLUSTER_MAX][16];
    const char *args[CLUSTER_MAX][CLUSTER_ARGS];
};

/* Starts all, and returns when every node says that all slots are served, and replicas follow: in three seconds. NULL
 * for `options`: the defaults. */
void cluster_start(struct cluster *cluster, const struct cluster_options *options);
/* Ends all. Harmless when it was not started. */
void cluster_stop(struct cluster *cluster);
/* For the next test: what is stopped, killed or in the midst of a move is mended, and there are no keys. Who is master
 * of what stays. */
void cluster_mend(struct cluster *cluster);

/* Whether every node that runs says that all slots are served, and sees no failed node that runs, nor a replica that
 * does not follow; and all have the same table, with the same epochs, so that no news that is old can change it. */
bool cluster_is_ok(struct cluster *cluster);
void cluster_await_ok(struct cluster *cluster);

/* The slot of a key, as a node says. */
int cluster_slot(struct cluster *cluster, const char *key);
/* Which node says that it has the slot; -1: none, or two. */
int cluster_owner(struct cluster *cluster, int slot);
/* Whether all nodes that run say that this one has it. */
bool cluster_agrees(struct cluster *cluster, int slot, int node);
/* Waits until another than `old` has it, for all that run, and returns which. */
int cluster_await_other(struct cluster *cluster, int slot, int old);
/* A replica of that node which runs; -1: there is none. */
int cluster_replica_of(struct cluster *cluster, int node);
/* A key, "N:number", of a slot that this node has, the `nth` of them from 0. */
void cluster_key(struct cluster *cluster, int node, int nth, char *key, size_t size);

/* A slot's way to another master, in its steps: both know of it, once the cluster is ok; the keys go there; all masters
 * are told. The third may also be the first and only one, which moves no key. */
void cluster_open(struct cluster *cluster, int slot, int to);
void cluster_migrate(struct cluster *cluster, int slot, int to);
void cluster_settle(struct cluster *cluster, int slot, int to);
/* Instead of the last two: as it was before the first. Keys that went stay where they are. */
void cluster_cancel(struct cluster *cluster, int slot);
/* All three, and all agree, and the cluster is ok. */
void cluster_move(struct cluster *cluster, int slot, int to);

/* Makes a replica the master; `how`: "" for the way that loses nothing, "FORCE" or "TAKEOVER". A replica that has been
 * elected once takes those votes for new ones, in Redis 7.0, when its master fails within four times the node timeout:
 * then the others do not follow it. */
void cluster_fail_over(struct cluster *cluster, int replica, const char *how);

#endif
