/*
 * A proxy of the tests between clients and a server, in a thread of its own. It sends each command on as another one
 * where a rule says so, and so hides what the server can do, or has it answer otherwise. Merged, it sends the commands
 * of all clients on one connection, as multiplexers do, and hands each answer back to who asked. Owns its thread, its
 * sockets and its folder; the server is the test's.
 */
#ifndef EVLOCK_TEST_MUX_H
#define EVLOCK_TEST_MUX_H

#include <pthread.h>
#include <stdbool.h>

#include "server.h"

/* A command that begins with these words is sent on with others in their place. A table ends with NULL. */
struct mux_rule {
    const char *from;
    const char *to;
};

struct mux {
    bool running;
    bool merged;
    const struct mux_rule *rules;
    int listener;
    int orders[2]; /* a pipe by which the thread is told to cut, or to end */
    pthread_t thread;
    char folder[FOLDER_SIZE];
    char socket[96];
    char server[96]; /* its socket */
    char url[128];   /* for evlock_client_new() */
};

/* Begins to listen. `rules` must outlive it; NULL: none. */
void mux_start(struct mux *mux, const struct server *server, bool merged, const struct mux_rule *rules);
/* Ends the clients' connections. What they sent goes on to the server, and the answers are dropped. */
void mux_cut(struct mux *mux);
/* Ends all. Harmless when it was not started. */
void mux_stop(struct mux *mux);

#endif
