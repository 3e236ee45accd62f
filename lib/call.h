/*
 * A call: something a user asked for and will be told of, once. It waits in its handle's list and its client's, then in
 * its client's list of what is to be told. It owns its own memory and the words that go with its status.
 */
#ifndef EVL_CALL_H
#define EVL_CALL_H

#include <evlock/evlock.h>

#include "alarm.h"
#include "node.h"

enum call_kind {
    CALL_ACQUIRE,
    CALL_ADOPT,
    CALL_RELEASE,
    CALL_EXTEND,
    CALL_LOCKED,
    CALL_OWNED,
    CALL_SERVER_TTL,
    CALL_BREAK,
    CALL_HOLDER,
    CALL_WAITERS,
    CALL_PLACE,
};

struct finding;

struct call {
    TAILQ_ENTRY(call) link;     /* in its client's `pending` or `done` */
    struct call *next;          /* of those pending of its handle, the next newer, or NULL */
    struct call *previous;      /* the next older; of the oldest, the newest: a handle has room for one address */
    struct evlock *lock; /* keeps the handle's memory */
    evlock_cb cb;
    evlock_value_cb value_cb; /* of queries */
    evlock_text_cb text_cb;   /* of a query for a name */
    void *arg;
    char *error; /* words for evlock_last_error(), or NULL */
    int64_t value;
    int status;
    uint8_t kind;
    uint8_t count;       /* of requests; 0: it has had none yet */
    bool linked;         /* its requests go over the second connections */
    bool finished;       /* to be told, or told */
    bool told;           /* delivered, but a request is still out */
    struct alarm alarm;  /* of an acquire: the next attempt, or the end of its wait */
    union {
        struct {
            int64_t retries;    /* left; EVLOCK_UNLIMITED */
            int64_t begun;
            int64_t wait_until; /* INT64_MAX: without limit */
            char *token;        /* the caller's own, or NULL */
            uint8_t token_len;
            int64_t settled_by; /* the end of waiting for an earlier use of the token; 0: not waiting */
            int64_t replicas_by; /* the end of waiting for replicas */
            bool fenced;
            bool looked;        /* that the key holds a string at all */
            bool contended;     /* another had the lock, and the next attempt joins the queue */
            bool handed;        /* told by a message */
            bool other_ears;    /* the client began to listen anew since then */
            uint32_t attempts;
            int64_t asked_at;   /* in a queue: the clock before the newest answered look, */
            int64_t asked_time; /* the server's clock at that, */
            int64_t ahead;      /* and how many waited ahead */
            uint16_t asked;     /* nodes, by bit, whose replicas are to confirm */
            uint16_t waiting;   /* those that wait for them */
            uint16_t confirmed; /* those that said so, or that it is not */
            uint16_t denied;
        } acquire;
        struct {
            enum lease_command command;
            int64_t ttl;
        } extend;
        struct {
            char *token; /* `owned`: the handle's; `place`: what waits in the queue */
            size_t token_len;
            const char *name; /* `holder`: in a finding's token */
            size_t name_len;
            struct finding *findings; /* one for each node */
        } query;
    };
    struct request requests[]; /* one for each node: of a query, and of an acquire's questions beside its lease */
};

TAILQ_HEAD(calls, call);

/* The size of a call that asks so many nodes. */
size_t evl_call_size(unsigned nodes);

/* A pending call at the end of its handle's list, or NULL: out of memory. */
struct call *evl_call_new(struct evlock *lock, enum call_kind kind, void *arg);

/* It has requests of this kind to all nodes from here on, but for those that are still out as what they were. */
void evl_call_ask(struct call *call, enum request_kind kind);

/* Its end: it will be told on a later turn, with this thread's present error words. */
void evl_call_finish(struct call *call, int status);

/* Keeps this thread's present error words for its end, in place of what was kept before. */
void evl_call_note(struct call *call);

/* As finish, as cancelled, without words; also for a call that is finished otherwise and not yet told. */
void evl_call_cancel(struct call *call);

/* Its end in a forked child: it is not told, and nothing is taken back from a node. */
void evl_call_finish_forked(struct call *call);

/* A finished call that has not been told is pending again. */
void evl_call_reopen(struct call *call);

/* Tells a finished call that has been taken from the list, and frees it. */
void evl_call_tell(struct call *call);

/* Frees a call that has been told when its last request has come back. */
void evl_call_settle(struct call *call);

/* Frees a pending call of which its user has not heard. */
void evl_call_drop(struct call *call);

/* The call that a request is of. */
struct call *evl_call_of(struct request *request);

/* Frees a call without telling it. */
void evl_call_free(struct call *call);

#endif
