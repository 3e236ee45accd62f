/*
 * A server that the fuzzer speaks through: it listens as one or several nodes, reads what clients ask, and says what it
 * is told to: any bytes, an answer that fits the oldest question, or a grant to who waits in a queue. It owns its
 * ends of the connections.
 */
#ifndef EVLOCK_FUZZ_SERVER_H
#define EVLOCK_FUZZ_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "world/resp.h"
#include "world/socket.h"

enum { SERVER_NODES = 3, SERVER_PEERS = 24, SERVER_QUESTIONS = 64, SERVER_WAITERS = 8 };

enum server_answer { ANSWER_YES, ANSWER_NO, ANSWER_ERROR, ANSWER_OTHER };

struct question {
    char verb[16];
    char second[48]; /* the word after it, cut to that */
    char token[129]; /* or "" */
    unsigned keys;   /* of a script */
};

struct peer {
    struct socket *socket; /* NULL: none */
    unsigned node;
    bool listens;                                /* for grants: nothing else that is said to it can grant */
    bool mumbled;                                /* it was told any bytes, so what it makes of answers is not known */
    struct question questions[SERVER_QUESTIONS]; /* unanswered, oldest first */
    unsigned asked;
    struct requests requests; /* read, and not yet a question */
};

/* A client's waiter that asked to join a queue. */
struct waiting {
    char key[8], channel[48], ticket[24];
    bool over; /* by its client: its ticket grants nothing any more */
};

/* Called for each thing that a node says that may grant a lock: that of `key`, or, with NULL, any. */
typedef void (*server_said_cb)(unsigned node, const char *key);

struct server {
    char urls[SERVER_NODES][128];
    struct peer peers[SERVER_PEERS];
    char token[129];                        /* the last that was named to it */
    struct waiting waiters[SERVER_WAITERS]; /* the newest, in a ring */
    unsigned joined;                        /* how often anybody asked to */
    int64_t time;                           /* in microseconds, for grants and answers that carry it */
    uint64_t fence;
    server_said_cb said;
    size_t piece;          /* what is sent goes in pieces of so many bytes; 0: whole */
    void (*between)(void); /* called after each piece */
};

/* How a connection's bytes go; as they are, unless there is another way. */
struct server_way {
    size_t (*take)(struct socket *socket, void *bytes, size_t size); /* as socket_take() */
    void (*put)(struct socket *socket, const void *bytes, size_t len);
    void (*end)(struct socket *socket);
};

/* Listens, once for the process, and forgets all of the run before. */
void server_begin(struct server *server);
/* For the process. */
void server_goes(const struct server_way *way);
/* Takes connections and reads what they ask. */
void server_turn(struct server *server);
/* The `which`th connection, counted around those there are; NULL: there are none. */
struct peer *server_peer(struct server *server, unsigned which);
void server_say(struct server *server, struct peer *peer, const void *bytes, size_t len);
/* Whether a node has said any bytes on a connection: some may be unread, and answer what is asked next. */
bool server_mumbles(const struct server *server, unsigned node);
/* Answers the oldest question, if there is one; `detail` chooses among what fits. */
void server_answer(struct server *server, struct peer *peer, enum server_answer how, unsigned detail);
/* A message on a connection that listens, to one of the waiters; what stands in it is the bytes' choice. */
void server_grant(struct server *server, const uint8_t *how, size_t len);
/* The client has ended the acquire of `key`: the tickets known until now are void. */
void server_forget(struct server *server, const char *key);
void server_hang_up(struct peer *peer);
/* Says so much, without an end to any line. */
void server_flood(struct server *server, struct peer *peer, size_t len);
/* Checks that every client has gone. */
void server_end(struct server *server);

#endif
