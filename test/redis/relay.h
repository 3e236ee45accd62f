/*
 * A relay between a client and the tests' server, in the test's own thread: what goes to the server on a connection can
 * be held back, as a full network or a busy server would, also beyond the client's end of that connection; so can what
 * comes back. It moves bytes only when it is pumped. It ends the TLS of a server that has it, and sees what is inside.
 */
#ifndef EVLOCK_TEST_RELAY_H
#define EVLOCK_TEST_RELAY_H

#include <stdbool.h>
#include <stddef.h>

#include "server.h"
#include "tls.h"

enum { RELAY_PAIRS = 16 };

struct relay {
    char path[108];
    char url[128]; /* for evlock_client_new() */
    const struct server *server;
    int listener;
    int kept;  /* the socket that keeps the port, with TLS; or 0 */
    int count; /* connections so far, the first is 0 */
    /* Changes what passes, without changing its length; NULL: nothing does. */
    void (*edit)(struct relay *relay, char *bytes, size_t len, bool to_server);
    struct relay_pair {
        int client; /* -1: ended */
        int server;
        struct tls_end *tls; /* towards the client; NULL: none */
        bool held;           /* what the client sends, its end included, stays here */
        bool muted;          /* what the server sends stays here */
    } pairs[RELAY_PAIRS];
    struct relay_pair guest; /* whom it speaks to in the server's place */
};

/* Listens beside the server's socket, or at a port, for TLS; again, after a stop, at the same. Fails the test when it
 * cannot. */
void relay_start(struct relay *relay, const struct server *server);
void relay_stop(struct relay *relay);
/* Stops it, and gives up the port. */
void relay_free(struct relay *relay);
/* Both ends see this connection end, and what stayed here is lost. */
void relay_cut(struct relay *relay, int pair);
/* Accepts and moves what there is, without waiting; true, so as to be put before a condition that is waited for. */
bool relay_pump(struct relay *relay);

/* Says this to the next who connects, in the server's place; true when it is said, to be waited for. Without TLS that
 * is at once. Who is hung up on finds it said. */
bool relay_say(struct relay *relay, const char *said);
void relay_hang_up(struct relay *relay);

/* An edit: what is called is not what was loaded. */
void relay_spoil_digests(struct relay *relay, char *bytes, size_t len, bool to_server);

#endif
