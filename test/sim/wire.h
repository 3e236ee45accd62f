/*
 * A wire: one connection in virtual time. What the library writes to its socket is taken out at once and reaches the
 * server when the world has it arrive, in pieces, late or never; answers come back the same way. It owns the
 * other end of the socket, the session at the server, and what is on its way.
 */
#ifndef EVLOCK_SIM_WIRE_H
#define EVLOCK_SIM_WIRE_H

#include "node.h"
#include "server.h"
#include "world.h"
#include "world/loop.h"
#include "world/socket.h"

struct redisAsyncContext;

struct segment {
    TAILQ_ENTRY(segment) link;
    int64_t at, sent;
    bool end; /* of the connection; no bytes */
    size_t len;
    char bytes[];
};

/* One direction. */
struct flow {
    TAILQ_HEAD(, segment) segments;
    struct event arrival;
    int64_t last;       /* when the last of it arrives */
    int64_t held_until; /* nothing more arrives before */
    bool lost;          /* what comes from now on vanishes */
};

struct wire {
    TAILQ_ENTRY(wire) link;  /* the world's */
    TAILQ_ENTRY(wire) local; /* the process's, while its end is open */
    struct world *world;
    struct process *process;
    struct node *node;
    unsigned number, client;              /* `client`: which of all that processes had */
    int64_t gone_at;                      /* when the process's end was closed */
    struct redisAsyncContext *connection; /* the process's end; NULL: closed */
    sim_session *session;                 /* the server's end; NULL: not yet, or no more */
    struct socket *socket;                /* that of the process's end; NULL: closed */
    int64_t spoilt_until;                 /* see reach.h */
    struct event connect;
    int64_t unheard;      /* since when the server has answered what the process did not hear; 0: all was heard */
    bool connected, dead; /* dead: the process has crashed, and sends no more */
    struct virtual_watch watch;
    bool readable;
    bool sends_on; /* to another member of a cluster, in what the process may not have read yet */
    struct flow up, down;
};

/* For a connection of the process's that has just been made. */
struct wire *wire_new(struct process *process, struct redisAsyncContext *connection);
void wire_free(struct wire *wire);

/* The server's end goes on, where it waited for replicas. */
void wire_resume(struct wire *wire);
/* Sends on what the library has written. */
void wire_drain(struct wire *wire);
/* The process has closed its end, or is about to. */
void wire_client_gone(struct wire *wire);
/* Whether the library is to be called. */
bool wire_can_read(const struct wire *wire);
bool wire_can_write(const struct wire *wire);
/* After reading: whether there is more. */
void wire_look(struct wire *wire);

/* --- Faults ------------------------------------------------------------------------------------------------------- */

enum flow_fault { FLOW_HOLD, FLOW_LOSE };

void wire_disturb(struct wire *wire, bool up, enum flow_fault fault, int64_t until);
/* The connection is reset. What was on its way to the server is run before that, or is lost; the server notices, or
 * goes on believing in it. */
void wire_reset(struct wire *wire, bool run, bool noticed);
/* The process sees an end; what it has sent stays at the server, unread, and is run then. */
void wire_strand(struct wire *wire, int64_t until);
/* All that is on its way to the server arrives then. */
void wire_due(struct wire *wire, int64_t at);
/* Whether something is on its way to the server that a member of a cluster has sent there by ASK. */
bool wire_asks(const struct wire *wire);
/* Whether the process is yet to read that it is to send something elsewhere by ASK. */
bool wire_sends_on(const struct wire *wire);
/* Nothing is held any more; what has lost bytes is reset. */
void wire_heal(struct wire *wire);

#endif
