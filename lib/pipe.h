/*
 * A pipe: what waits to be sent to a server, and what has been sent and is unanswered, over a connection that logs in.
 * It owns no command and no memory for them. Whoever wants something sent lends it a request, without a command: what
 * is sent is decided, and the clock read, when it is sent. So a list of requests cannot grow stale, and is never longer
 * than the number of their owners. It knows none of those: what a request is for is told by tables of functions, which
 * are handed down.
 */
#ifndef EVL_PIPE_H
#define EVL_PIPE_H

#include "login.h"
#include "status.h"
#include "wire.h"

struct request;

/* What the owner of a request does with it. */
struct request_ops {
    /* Fills in the command to be queued at this moment; false: nothing is wanted any more. */
    bool (*take)(struct request *request, int64_t now, struct command *command);
    /* The reply to the oldest command of this request; false: one that the command cannot have. */
    bool (*answer)(struct request *request, const struct reply *reply, int64_t now);
    /* If a renewal is wanted, for `ret->ttl` or, if that is 0, for any ttl, it is to be sent now, with others. May be
     * NULL. */
    bool (*join)(struct request *request, int64_t now, struct renewal *ret);
    /* Whether a renewal is wanted, and of which key. Where `join` is. */
    bool (*renews)(struct request *request, struct bytes *ret_key);
    /* The server cannot be reached for now, for this reason. The request goes on waiting unless it is withdrawn. */
    void (*away)(struct request *request, struct trouble why, int64_t now);
    /* It waited where it was no use, and was withdrawn: sends what it wants to where that is now. */
    void (*submit)(struct request *request, int64_t now);
};

struct pipe;

/* What the owner of several pipes does where one server sends commands on to another. */
struct route_hooks {
    /* What the owner of a request is told in place of an error, or the error itself. */
    struct reply (*redirect)(struct pipe *pipe, struct request *request, const struct reply *error, int64_t now);
    /* It was told, and has sent what it wanted to send. */
    void (*redirected)(struct pipe *pipe);
};

/* What may be asked for: the place of its owner's operations in the table. */
enum request_kind { REQUEST_LEASE, REQUEST_QUERY, REQUEST_LOOK, REQUEST_REPLICAS, REQUEST_LIST };

#define REQUEST_KINDS 5

struct request {
    TAILQ_ENTRY(request) link; /* in `waiting` or `flying` of its pipe */
    uint16_t back;             /* how far it lies behind the beginning of its owner, in bytes */
    uint16_t node : 11;        /* which of the client's it goes to */
    uint16_t older : 2;        /* commands unanswered that were sent before the last remedy for NOSCRIPT */
    uint16_t turns : 3;        /* so many of the last answers sent it elsewhere, or had it wait */
    uint8_t flying;            /* commands unanswered */
    uint8_t batch;             /* its oldest unanswered command renews so many: its own lease, and those of the requests
                                * behind it in `flying`; 0: it is no batch, or not the first of one */
    uint8_t vote;              /* which of its owner's it is */
    enum request_kind kind : 3;
    bool waiting : 1;
    bool asking : 1;        /* the next command is for a key whose slot is on its way to that node */
    bool native : 1;        /* its release that is unanswered is by the server's own command */
    unsigned noscripts : 2; /* so many of the last answers were NOSCRIPT, or NOCLOCK */
};

TAILQ_HEAD(requests, request);

_Static_assert(sizeof(struct request) == sizeof(void *) * 2 + 8, "a request is small");

/* It goes to this node from here on. Nothing of it is out. */
static inline void evl_request_aim(struct request *request, unsigned node) {
    request->node = node & 0x7FFU;
}

/* Prepares an owner's request, which goes to the node of the same number. It lies in its owner, zeroed, and is not out.
 */
static inline void evl_request_init(struct request *request, const void *owner, enum request_kind kind, unsigned vote) {
    request->kind = kind;
    request->vote = (uint8_t)vote;
    evl_request_aim(request, vote);
    request->back = (uint16_t)((const char *)request - (const char *)owner);
}

static inline void *evl_request_owner(struct request *request) {
    return (char *)request - request->back;
}

struct pipe {
    struct login login;
    const struct request_ops *const *ops; /* by the kind of a request */
    const struct route_hooks *routes;     /* NULL: servers send nobody elsewhere */
    void *router;                         /* whose hooks these are */
    struct requests waiting;
    size_t waiting_count;
    size_t untold;     /* AWAY: of those at the front */
    unsigned gathered; /* of those that wait, how many do so for others to be sent with */
    struct requests flying;
    bool parting; /* nobody waits for answers any more */
};

/* Sets up a pipe of zeroed memory. */
void evl_pipe_init(struct pipe *pipe, const struct request_ops *const ops[REQUEST_KINDS]);

static inline struct pipe *evl_pipe_of(struct connection *connection) {
    return EVL_OWNER(struct pipe, login.connection, connection);
}

static inline struct connection *evl_pipe_connection(struct pipe *pipe) {
    return &pipe->login.connection;
}

/* Sends as soon as can be: now, by a clock read no later than that, or when the connection is ready. A request that
 * waits already goes on waiting. */
void evl_pipe_submit(struct pipe *pipe, struct request *request, int64_t now);

/* Sends what follows the reply that a request is being given, which is no error, at once and on the same connection. It
 * takes the place of the command that was answered, so `max_inflight` stands. */
void evl_pipe_follow(struct pipe *pipe, struct request *request, int64_t now);

/* Takes a waiting request back; one with unanswered commands stays until they are answered. */
void evl_pipe_withdraw(struct pipe *pipe, struct request *request);

/* Each request that waits is withdrawn, and submitted anew by its owner: to where it is wanted now. */
void evl_pipe_submit_anew(struct pipe *pipe, int64_t now);

/* Sends what waits, as far as may be sent. */
void evl_pipe_send_waiting(struct pipe *pipe, int64_t now);

/* Hook of its connection: the reply to the oldest unanswered command of the request `of`. */
void evl_pipe_answered(struct connection *connection, void *of, const struct reply *reply, int64_t now);

/* Hook of its connection: there may be room for what waits. */
void evl_pipe_writable(struct connection *connection, int64_t now);

/* Hook of its connection: some more unanswered commands end as lost; true: there are more. */
bool evl_pipe_ended(struct connection *connection, int64_t now);

/* Hook of its connection: some more of those that wait are told that it is away; true: there are more. */
bool evl_pipe_away(struct connection *connection, bool begins, int64_t now);

/* The hooks of a pipe's connection. Its owner may add `returning` and `changed`. */
#define EVL_PIPE_HOOKS                                                                                                 \
    .greet = evl_login_greet, .greeted = evl_login_greeted, .answered = evl_pipe_answered,                             \
    .writable = evl_pipe_writable, .lost = evl_login_lost, .ended = evl_pipe_ended, .away = evl_pipe_away

/* What is sent from here on is the last, and nobody is to hear answers: to be called before it is asked for. */
void evl_pipe_part(struct pipe *pipe);

/* Sends and writes what waits and what is queued, as far as the socket takes it. */
void evl_pipe_flush(struct pipe *pipe);

/* Asserts what must be true of a request between two inputs; see check.h. */
void evl_request_check(const struct request *request);

/* Asserts what must be true of a pipe between two inputs. */
void evl_pipe_check(const struct pipe *pipe);

/* The same, with a walk over all that waits and flies. */
void evl_pipe_check_all(const struct pipe *pipe);

#endif
