/*
 * A node of the world: a simulated server, its wrong clock, and the socket at which the library finds it. It owns the
 * server and the socket. What it is made to suffer is decided in faults.c.
 */
#ifndef EVLOCK_SIM_NODE_H
#define EVLOCK_SIM_NODE_H

#include "clock.h"
#include "server.h"
#include "world.h"

struct node {
    struct world *world;
    unsigned index;
    sim_server *server;
    struct clock clock;
    int listener; /* -1: connections are refused */
    char path[108];
    int64_t paused_until; /* nothing is read before */
    struct event open;    /* when it listens again */
    sim_server *copy;     /* a replica that fell behind; or NULL */
    bool refused;         /* it was made to refuse commands */
    bool lied;            /* and said of a lock that it is none */
};

/* Where the sockets are; made once, before any world. */
void nodes_place(const char *folder);

struct node *node_new(struct world *world, unsigned index);
void node_free(struct node *node);

/* Brings the server's clock up to the moment; before anything is asked of it. */
sim_server *node_now(struct node *node);

/* Refuses connections until then. */
void node_refuse(struct node *node, int64_t until);
/* Takes the connection that has just been made to the path: the descriptor of its other end. */
int node_accept(struct node *node);
struct node *node_at(struct world *world, const char *path);

#endif
