/*
 * A node of the world: a simulated server, its wrong clock, and the path at which the library finds it. It owns the
 * server. What it is made to suffer is decided in faults.c.
 */
#ifndef EVLOCK_SIM_NODE_H
#define EVLOCK_SIM_NODE_H

#include "clock.h"
#include "server.h"
#include "world.h"

/* A replica that is behind: a copy of what the node had when it was last brought up to date. */
struct replica {
    struct node *node;
    unsigned index;
    sim_server *copy;  /* NULL: it has never been */
    int64_t received;  /* of what the node has written; -1: nothing */
    struct event sync; /* when it is next */
};

struct node {
    struct world *world;
    unsigned index;
    sim_server *server;
    struct clock clock;
    bool refuses; /* connections */
    bool former;  /* another server has taken its place */
    char path[32], other_path[32];
    int64_t paused_until; /* nothing is read before */
    int64_t away_until;   /* it did not serve; see reach.h */
    int64_t closed_until; /* clients kept away; see reach.h */
    struct event open;    /* when it listens again */
    struct event right;   /* when its clock is set right */
    int64_t slow_by;      /* its clock until then */
    int64_t set_back_at;  /* when a fault last set its clock back; 0: never */
    sim_server *copy;     /* a replica that fell behind; or NULL */
    unsigned replicas;
    struct replica behind[REPLICAS_MAX];
    struct event waits;             /* when the time of a WAIT is up */
    int64_t had[REPLICAS_MAX + 1];  /* until when it had so many */
    int64_t replaced_at;            /* when it may last have forgotten what it had; NEVER: it has not */
    int64_t emptied_at, flushed_at; /* when it last restarted without its data; lost data otherwise; 0: never */
    int64_t refused_until;          /* when it last did so */
    bool refused;                   /* it was made to refuse commands */
    bool lied;                      /* and said of a lock that it is none */
    bool spares;                    /* and may have let live a connection that its client wanted ended */
};

struct node *node_new(struct world *world, unsigned index);
void node_free(struct node *node);

/* Brings the server's clock up to the moment; before anything is asked of it. */
sim_server *node_now(struct node *node);

/* From now on it has so many replicas; whether it had at least so many at some moment from then on. */
void node_replicate(struct node *node, unsigned replicas);
bool node_had(const struct node *node, unsigned replicas, int64_t since);

/* It has been fed: its replicas are to be, later. */
void node_fed(struct node *node);
/* A replica takes its place, with the node's time of day, or one that differs by `step`; false: it cannot. */
bool node_fail_over(struct node *node, unsigned replica, int64_t step);

/* Another server takes its place, with the copy's data and a clock that differs by `step` and runs at a rate of its
 * own: a new process, or `known`, which has been the server before. Returns who was in that place until now, with its
 * sessions. */
struct node *node_succeed(struct node *node, sim_server *copy, sim_server *known, int64_t step);
/* Frees one that was succeeded and has no sessions any more; returns its server. */
sim_server *node_retire(struct node *former);

/* Its clock is so slow until then, when it is set right. */
void node_be_slow(struct node *node, int64_t by, int64_t until);

/* Refuses connections until then. */
void node_refuse(struct node *node, int64_t until);

#endif
