/*
 * A connection: the way to one server. It resolves the name, tries the addresses in turn, carries bytes out and replies
 * in, ends a connection that is silent or broken, and makes the next one after a pause with jitter. It owns the hiredis
 * context; only it, the transport and what guards and reads replies know hiredis. It knows neither what is asked nor
 * what an answer means: those are its owner's hooks. It never calls users.
 *
 * hiredis calls back from inside its own functions and may free its context after. So a context is never freed from
 * inside such a callback: evl_connection_break() marks it, and evl_connection_end_broken() ends it later.
 */
#ifndef EVL_CONNECTION_H
#define EVL_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "addresses.h"
#include "bytes.h"
#include "config.h"
#include "reconnect.h"
#include "reply.h"
#include "reply_guard.h"
#include "status.h"
#include "transport.h"
#include "turn.h"
#include "url.h"

/* So many are told of a change at a ring of the alarm: about as much work as that of any other alarm. */
#define TOLD_A_RING 4

enum connection_state {
    CONNECTION_AWAY, /* pausing, after those who wait have been told why */
    CONNECTION_RESOLVING,
    CONNECTION_CONNECTING, /* and logging in */
    CONNECTION_RETURNING,  /* logged in; nothing is sent before all have been told */
    CONNECTION_READY,
    CONNECTION_ENDED, /* what was unanswered is told so, before the next connection is made */
    CONNECTION_IDLE,  /* nothing is wanted of it now, and none is made */
    CONNECTION_STOPPED,
};

/* What follows its end; of two that are asked for, the later in this list. */
enum connection_next {
    NEXT_PAUSE,   /* a new one after a pause, or another address of the name */
    NEXT_AT_ONCE, /* a new one: it served, or is to go to another place */
    NEXT_NOWHERE, /* none: it is IDLE then */
};

struct connection;

/* What the owner of a connection does with it. A hook that tells many tells TOLD_A_RING, and returns true if there are
 * more: it is called again at the next ring. Those that may be NULL say so. */
struct connection_hooks {
    /* It is open: begins the login. False: out of memory. */
    bool (*greet)(struct connection *connection);
    /* The reply to a step of the login, which the owner sent by evl_connection_greet(). */
    void (*greeted)(struct connection *connection, int step, const struct reply *reply);
    /* The reply to what the owner sent by evl_connection_send(). */
    void (*answered)(struct connection *connection, void *request, const struct reply *reply, int64_t now);
    /* After evl_connection_listen(): the server has it listen (NULL), and each message. */
    void (*heard)(struct connection *connection, const char *message);
    /* There may be room for more to be sent. May be NULL. */
    void (*writable)(struct connection *connection, int64_t now);
    /* It ended with commands unanswered. */
    void (*lost)(struct connection *connection);
    /* ENDED: those who wait for answers are told that none come. May be NULL. */
    bool (*ended)(struct connection *connection, int64_t now);
    /* AWAY: those who wait to send are told why it is; if that begins, nobody yet. May be NULL. */
    bool (*away)(struct connection *connection, bool begins, int64_t now);
    /* RETURNING: those who have used it before are told that it is back. May be NULL, as there are none. */
    bool (*returning)(struct connection *connection, int64_t now);
    /* Its state changed in a way that users may hear of. May be NULL. */
    void (*changed)(struct connection *connection);
    /* READY: what was sent is unanswered for long enough to ask elsewhere what may be the matter. May be NULL. */
    void (*silent)(struct connection *connection);
};

TAILQ_HEAD(connection_list, connection);

/* All connections of a client. */
struct connections {
    struct turn *turn;
    const struct client_config *config;
    struct tls *tls; /* NULL: no server is spoken to over TLS */
    struct connection_list list;
};

struct connection {
    TAILQ_ENTRY(connection) link; /* among all of its client */
    struct turn *turn;
    const struct client_config *config;
    const struct connection_hooks *hooks;
    const char *called;                /* in the log: "node", and */
    unsigned index;                    /* its number */
    const struct url *url;             /* where the server is, its node's; without host and path: not known yet */
    struct redisAsyncContext *context; /* NULL: there is none, or hiredis has freed it */
    struct reply_guard guard;          /* before its reader */
    struct transport transport;        /* under it */
    struct alarm alarm; /* connect timeout, command timeout, or the end of the pause; or there is more to tell */
    enum connection_state state;
    int status;          /* AWAY, ENDED: why */
    int broken;          /* why it is to be ended when hiredis is off the stack; EVLOCK_OK: it is not */
    char error[256];     /* the last trouble, in words that begin with where that was; "": none */
    const char *why;     /* in `error`: what happened there */
    uint32_t unanswered; /* commands */
    size_t unwritten;    /* bytes queued since it was written last */
    int64_t since; /* RESOLVING, CONNECTING: the beginning. READY: the last reply, or the first command after none */
    int64_t connect_by; /* RESOLVING, CONNECTING: when that is given up */
    int64_t retry_at;   /* AWAY: when the pause ends */
    int64_t ready_at;   /* since when it is, or the last one was, READY; 0: none was yet */
    int64_t served;     /* until when the last one was READY; 0: none was yet */
    struct reconnect reconnect;
    struct addresses addresses; /* what the name resolved to */
    void *resolution;
    enum connection_next next;
    const char *awaited; /* CONNECTING: what is missed if the login comes to nothing in time; NULL: an answer */
    bool late;           /* AWAY: the name took too long, and its resolution goes on, or its addresses are untried */
    bool telling;        /* AWAY: not all have been told */
    bool expected;       /* AWAY: its owner, which is told, knew why before: no more warnings */
    bool proved;         /* READY: it has been of use */
    bool met;            /* one of the addresses was connected to */
    bool greeted;        /* CONNECTING: a step of the login was answered */
    bool explained;      /* CONNECTING: the last answer was an error, and is in `error`: why, if the server hangs up */
};

/* Sets up a connection of zeroed memory to where `url` says, which must stay. Nothing begins before
 * evl_connection_start(). */
void evl_connection_init(struct connection *connection, struct connections *all, unsigned index, const struct url *url,
                         const struct connection_hooks *hooks);

/* Whether it has a context, unless hiredis has freed that by itself. */
bool evl_connection_is_open(const struct connection *connection);

/* Begins to connect. */
void evl_connection_start(struct connection *connection);

/* Nobody knows where the server is, for this reason: it is away, if it has been waiting for that. */
void evl_connection_has_none(struct connection *connection, struct trouble why);

/* What it was set up with as its place says something else now: it leaves the server where it is, or was about to go,
 * and goes there at once. */
void evl_connection_move(struct connection *connection);

/* Nothing is wanted of it for now, and nothing of what was sent is unanswered: it is ended, and none is made before
 * evl_connection_want(). What waits to be sent goes on waiting. */
void evl_connection_rest(struct connection *connection);

/* Something is wanted of one that rests, or never began: it begins to connect. To others it makes no difference. */
void evl_connection_want(struct connection *connection);

/* Ends it for good: nothing is sent or read from here on. In a forked child the loop's registrations are left alone. */
void evl_connection_stop(struct connection *connection, bool forked);

/* Whether a command may be sent now: it is READY, not broken, and has not more unwritten than it should. */
bool evl_connection_takes(const struct connection *connection);

/* Whether what is sent now would still reach the server, though there may be much ahead of it. */
static inline bool evl_connection_is_usable(const struct connection *connection) {
    return connection->state == CONNECTION_READY && connection->context && !connection->broken;
}

/* Whether it is READY, and what was sent is unanswered for long enough to ask elsewhere what may be the matter. */
bool evl_connection_is_silent(const struct connection *connection, int64_t now);

/* Queues a step of the login: so many words, whose reply comes to `greeted`. False: out of memory. */
bool evl_connection_greet(struct connection *connection, int step, int count, const char **words);

/* Queues a step that is written already, and may be a secret. False: out of memory. */
bool evl_connection_greet_with(struct connection *connection, int step, struct bytes text);

/* Subscribes to a channel, which must stay. Nothing else may be sent after that. */
void evl_connection_listen(struct connection *connection, const char *channel);

/* Queues a whole command, whose reply comes to `answered` with the request. Without memory it breaks. */
void evl_connection_send(struct connection *connection, void *request, struct bytes text, int64_t now);

/* Sends something that the server does not answer: nothing else is answered from here on either. */
void evl_connection_hush(struct connection *connection, struct bytes text);

/* The login is done: those who have used it before are told, and then it serves. */
void evl_connection_return(struct connection *connection);

/* Marks it to be ended once hiredis is off the stack. */
void evl_connection_break(struct connection *connection, int status, const char *words);

/* The same of one that will be of use from a moment on. */
void evl_connection_break_until(struct connection *connection, int status, const char *words, int64_t until);

/* Ends one that was found broken; to be called with nothing of hiredis on the stack. */
void evl_connection_end_broken(struct connection *connection);

/* Writes what is queued, if it is more than so many bytes, and ends a connection that breaks at that. To be called with
 * nothing of hiredis on the stack. */
void evl_connection_write(struct connection *connection, size_t bytes);

/* Writes what is queued; one that breaks at that is left as it is, for it will be stopped. */
void evl_connection_flush(struct connection *connection);

/* A line of the log about it: "node 0 (HOST:PORT): ...". */
void evl_connection_log(const struct connection *connection, enum evlock_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Notes the last trouble in words, to which it adds where the server is. */
void evl_connection_note(struct connection *connection, const char *words);

/* A step of the login was refused, and so the server may hang up, or (NULL) it was not. */
void evl_connection_explain(struct connection *connection, const char *why);

/* The alarm of a connection rang. */
void evl_connection_ring(struct alarm *alarm, int64_t now);

/* Asserts what must be true between two inputs; see check.h. */
void evl_connection_check(const struct connection *connection);

/* Sets up the list of all, which is empty. */
void evl_connections_init(struct connections *all, struct turn *turn, const struct client_config *config);

/* Stops one, and takes it out. */
void evl_connections_remove(struct connections *all, struct connection *connection);

/* evl_connection_end_broken() for each. */
void evl_connections_end_broken(struct connections *all);

/* evl_connection_write() for each. */
void evl_connections_write(struct connections *all, size_t bytes);

/* evl_connection_stop() for each; then those who wait for answers are told that none come. */
void evl_connections_stop(struct connections *all, bool forked);

/* evl_connection_check() for each, at the end of a turn: none is left that hiredis has freed. */
void evl_connections_check(const struct connections *all);

#endif
