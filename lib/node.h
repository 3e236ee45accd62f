/*
 * A node: one Redis that answers commands. It owns the connection: resolves, connects, logs in, loads scripts, sends,
 * gives up on a silent server, and comes back with jittered backoff. It alone knows hiredis. It never calls users and
 * never frees a hiredis context on hiredis's own stack.
 *
 * Who wants something sent lends the node a request. A request waits here without a command: what is sent is decided,
 * and the clock read, when it is sent. So a queue of requests cannot grow stale, and its length is that of its owners.
 */
#ifndef EVL_NODE_H
#define EVL_NODE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "alarm.h"
#include "drift.h"
#include "reply.h"
#include "shield.h"
#include "url.h"
#include "wire.h"

struct request;

struct request_ops {
    /* Fills in the command to be queued at this moment; false: nothing is wanted any more. */
    bool (*take)(struct request *request, int64_t now, struct command *command);
    /* The reply to the oldest command of this request; false: one that the command cannot have. */
    bool (*answer)(struct request *request, const struct reply *reply, int64_t now);
    /* If a renewal is wanted, for `ret->ttl` or, if that is 0, for any ttl, it is to be sent now, with others. May be
     * NULL. */
    bool (*join)(struct request *request, int64_t now, struct renewal *ret);
    /* The node cannot be reached for now, `status` says why. The request goes on waiting unless it is withdrawn. */
    void (*away)(struct request *request, int status, int64_t now);
};

/* What may be asked for, each with its owner's operations. */
enum request_kind { REQUEST_LEASE, REQUEST_QUERY, REQUEST_LOOK, REQUEST_REPLICAS };

extern const struct request_ops evl_lease_requests, evl_query_requests, evl_look_requests, evl_replicas_requests;
extern const struct request_ops *const evl_request_ops[];

struct request {
    TAILQ_ENTRY(request) link; /* in `waiting` or `flying` of its node */
    uint16_t back;     /* how far it lies behind the beginning of its owner, in bytes */
    uint8_t node;      /* which of the client's */
    uint8_t flying;    /* commands unanswered */
    uint8_t older;     /* commands unanswered that were sent before the last remedy for NOSCRIPT */
    uint8_t batch;     /* its oldest unanswered command renews so many: its own lease, and those of the requests behind
                        * it in `flying`; 0: it is no batch, or not the first of one */
    enum request_kind kind : 2;
    bool waiting : 1;
    unsigned noscripts : 2; /* so many of the last answers were NOSCRIPT */
};

TAILQ_HEAD(requests, request);

_Static_assert(sizeof(struct request) == sizeof(void *) * 2 + 8, "a request is small");

/* Prepares an owner's request to a node. It lies in its owner, zeroed, and is not out. */
static inline void evl_request_init(struct request *request, const void *owner, enum request_kind kind, unsigned node) {
    request->kind = kind;
    request->node = (uint8_t)node;
    request->back = (uint16_t)((const char *)request - (const char *)owner);
}

static inline void *owner_of(struct request *request) {
    return (char *)request - request->back;
}

enum node_state {
    NODE_AWAY,
    NODE_ENDED, /* its connection; what was unanswered is told so, before the next is made */
    NODE_RESOLVING,
    NODE_CONNECTING,
    NODE_RETURNING, /* logged in; nothing is sent before all leases have been told */
    NODE_READY,
    NODE_STOPPED,
};

/* So many are told at a ring of the node's alarm: about as much work as that of any other alarm. */
#define TOLD_A_RING 4

struct node {
    struct evlock_client *client;
    unsigned index;         /* which of the client's */
    struct url url;
    struct redisAsyncContext *connection;
    struct shield shield;   /* before the connection's reader */
    struct alarm alarm;     /* connect timeout, command timeout, or the end of the backoff; or there is more to tell */
    enum node_state state;
    int status;             /* AWAY: why */
    int64_t connect_by;     /* RESOLVING, CONNECTING: when that is given up */
    int64_t since;          /* READY: the last reply, or the first command after none */
    int64_t backoff;        /* the next pause */
    int64_t retry_at;       /* AWAY: when the present one ends */
    struct requests waiting;
    size_t waiting_count;
    size_t untold;          /* AWAY: of those at the front */
    struct tenure *telling; /* RETURNING: the next to be told; NULL: they were all of the client's `tenures`, */
    bool telling_ghosts;    /* or of its `ghosts` */
    bool settled;           /* RETURNING: what all are told */
    bool replaced;
    struct requests flying;
    unsigned gathered;      /* of those that wait, how many do so for others to be sent with */
    bool renews_many;       /* the server is new enough, and has not refused it */
    uint32_t inflight;      /* commands unanswered */
    size_t unwritten;       /* bytes queued since it was written last */
    bool parting;           /* nobody waits for answers any more */
    bool full;              /* the socket did not take all that was written */
    char **addresses;       /* what the name resolved to */
    size_t address_count;
    size_t address_next;
    void *resolution;
    int greetings;          /* replies of the login still to come */
    int64_t id;             /* this connection's number on the server; 0: unknown */
    int64_t lost_id;        /* of the last connection that ended with commands unanswered */
    char run_id[41];        /* the server process; "": unknown */
    char old_run_id[41];    /* as of the connection before */
    char replid[41];        /* the history of its data, which a promoted replica changes */
    char old_replid[41];
    bool inherited;         /* its data may have been another server's, since its process began */
    int64_t started;        /* when the server process began, at the latest; 0: unknown */
    int64_t excluded_until; /* it may have forgotten locks, and does not count before */
    bool agreed;            /* its last answer about a lease was yes */
    int64_t ready_at;       /* READY: since when */
    int64_t served;         /* until when the last connection did that was READY; 0: there was none */
    bool good;              /* this connection has answered a request */
    bool quick;             /* ENDED: it served, and is worth an immediate try */
    bool ears;              /* a second connection that listens for grants, and is sent nothing */
    bool link;              /* a second connection to a node, which does not count for anything itself */
    bool killed;            /* the connection before has been ended on the server */
    bool unsettled;         /* commands of an ended connection may still run */
    bool explained;         /* CONNECTING: the last answer was an error, and is in `error`: why, if it hangs up */
    bool broken;            /* to be ended when hiredis is off the stack */
    bool gone;              /* hiredis has freed, or is freeing, the connection by itself */
    char error[128];        /* the last trouble, in words */
    bool spells;            /* scripts are sent whole, as they are not there */
    bool lacks_evalsha;     /* the server has no such command */
    struct drift drift;     /* of this connection's server */
    char load_error[128];   /* why the scripts could not be loaded, or "" */
};

/* Sets up a node, which takes `url` over. Nothing begins before evl_node_start(). */
void evl_node_init(struct node *node, struct evlock_client *client, unsigned index, struct url *url);

/* Whether the last login found the process that was served by the connection before. */
bool evl_node_same_process(const struct node *node);

/* Whether it is known to be of no use for a grant now: EVLOCK_OK, or why. */
int evl_node_trouble(const struct node *node, int64_t now);
void evl_node_start(struct node *node);

/* Ends the connection for good: nothing is sent or waits from here on. In a forked child the loop's registrations are
 * left alone. */
void evl_node_stop(struct node *node, bool forked);

/* After that: unanswered commands end as lost. What they lead to must find the other nodes stopped, too. */
void evl_node_wind_up(struct node *node);

/* What is sent from here on is the last, and nobody is to hear answers: to be called before it is asked for. */
void evl_node_part(struct node *node);

/* Sends and writes what waits and what is queued, as far as the socket takes it. */
void evl_node_flush(struct node *node);

/* Writes what is queued, if it is more than so many bytes, and ends a connection that breaks at that. To be called with
 * nothing of hiredis on the stack. */
void evl_node_write(struct node *node, size_t bytes);

/* Sends as soon as can be: now, by a clock read no later than that, or when the node is ready. A request that waits
 * already goes on waiting. */
void evl_node_submit(struct node *node, struct request *request, int64_t now);

/* Sends what follows the reply that a request is being given, which is no error, at once and on the same connection. It
 * takes the place of the command that was answered, so `max_inflight` stands. */
void evl_node_follow(struct node *node, struct request *request, int64_t now);

/* Sends what waits, as far as may be sent. */
void evl_node_send_waiting(struct node *node, int64_t now);

/* For batch.c: counts a request as sent; sends a command, whose reply is to come to such a request; gives a request the
 * answer to its oldest command. */
void evl_node_fly(struct node *node, struct request *request);
void evl_node_send(struct node *node, struct request *request, struct command *command, int64_t now);
void evl_node_answer(struct node *node, struct request *request, const struct reply *reply, int64_t now);

/* Takes a waiting request back; one with unanswered commands stays until they are answered. */
void evl_node_withdraw(struct node *node, struct request *request);

/* What the server's clock said in the answer that is being given, to a command sent at `sent`. Warns where that clock
 * and the one here go apart by more than leases allow for. */
void evl_node_compare_clocks(struct node *node, int64_t sent, int64_t server);

/* Marks the connection to be ended once hiredis is off the stack. */
void evl_node_break(struct node *node, int status, const char *error);

/* Ends a connection that was found broken; to be called with nothing of hiredis on the stack. */
void evl_node_settle(struct node *node);

/* The node's alarm rang. */
void evl_node_ring(struct node *node, int64_t now);

#endif
