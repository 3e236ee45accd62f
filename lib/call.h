/*
 * A call: something a user asked for, whose end is reported once. It waits in its handle's list and its client's, then
 * in its client's list of what is to be reported. It owns its own memory and the words that go with its status. What
 * else a kind of call owns or counts is seen to by hooks of that kind.
 */
#ifndef EVL_CALL_H
#define EVL_CALL_H

#include <evlock/evlock.h>

#include "locks.h"

enum call_kind {
    CALL_ACQUIRE, /* also of a hold that waits */
    CALL_HOLD,    /* a hold that holds */
    CALL_ADOPT,
    CALL_RUN,
    CALL_RELEASE,
    CALL_EXTEND,
    CALL_QUERY,
    CALL_BREAK,
    CALL_LIST, /* of a handle that nobody has but the call */
};

struct call;

/* What the room of a kind of calls does with them; each may be NULL. */
struct call_sort {
    enum call_kind kind;
    /* Its end is about to be reported: statistics. */
    void (*count)(const struct call *call);
    /* Frees what a call of this kind owns. */
    void (*free)(struct call *call);
    /* Of an acquire in a cohort: it is not pending any more, and leaves that. */
    void (*ended)(struct call *call);
    /* Of an acquire that no trouble ends: what stands in its way now. Returns the least pause before the next try. */
    int64_t (*hindered)(struct call *call, int status);
    /* Its success is being reported, and is not its end: it makes itself pending again. */
    void (*goes_on)(struct call *call);
    /* Its handle's lease was `lost`, or 0, and its user is to be called: returns the status to report; 0: none. */
    int (*noticed)(struct call *call, int lost);
};

struct cohort;
struct finding;
struct keep;

struct call {
    TAILQ_ENTRY(call) link; /* in its client's `pending`, `running` or `done` */
    struct call *next;      /* of those pending of its handle, the next newer, or NULL */
    struct call *previous;  /* the next older; of the oldest, the newest: a handle has room for one address */
    const struct call_sort *sort;
    struct evlock *lock; /* keeps the handle's memory */
    evlock_cb cb;
    evlock_query_cb query_cb; /* of a query */
    evlock_body body;         /* of a run, in all its stages; else NULL */
    evlock_done_cb done;      /* of a run */
    void *arg;
    char *error; /* words for evlock_last_error(), or NULL */
    int status;
    uint8_t count;      /* of requests; 0: it has had none yet */
    bool aside;         /* its requests go over the second connections */
    bool ended;         /* to be told, or told */
    bool told;          /* delivered, but a request is still out */
    bool made;          /* of a run: the handle is the library's to free */
    struct alarm alarm; /* of an acquire: the next attempt, or the end of its wait */
    union {
        struct {
            int64_t retries; /* left; EVLOCK_UNLIMITED */
            int64_t retry_delay;
            int64_t begun;
            int64_t wait_until;    /* INT64_MAX: without limit */
            char *token;           /* the caller's own, or NULL */
            struct keep *keep;     /* what a hold has of its own, also while it holds; or NULL */
            struct cohort *cohort; /* with whom it waits, which one with a token of its own never does; or NULL */
            union {
                TAILQ_ENTRY(call) beside; /* in the cohort */
                int64_t settled_by;       /* the end of waiting for an earlier use of the token; 0: not waiting */
            };
            int64_t replicas_by; /* the end of waiting for replicas */
            uint8_t token_len;
            bool fenced;
            bool fail_when_away;
            bool looked;     /* that the key holds a string at all */
            bool contended;  /* another had the lock, and the next attempt joins the queue */
            bool handed;     /* told by a message */
            bool passed;     /* another handle's lease was passed on to it */
            bool nonsense;   /* the last attempt that was answered was not in a way that makes sense */
            bool looks_anew; /* in a queue: its alarm is for a look that no earlier look stands for */
            uint32_t attempts;
            uint32_t ahead;     /* in a queue: how many waited ahead by the newest answered look, */
            int64_t asked_at;   /* the clock before that, */
            int64_t asked_time; /* and the server's clock at that; */
            uint16_t asked_of;  /* the node that answered */
            uint16_t asked_in;  /* in a cluster, the node that had the slot when the replicas were asked */
            uint16_t asked;     /* nodes, by bit, whose replicas are to confirm */
            uint16_t waiting;   /* those that wait for them */
            uint16_t confirmed; /* those that said so, or that it is not */
            uint16_t denied;
            uint16_t hopeless; /* of these, those that never will */
        } acquire;
        struct {
            int value; /* what the body returned */
            bool held; /* until the body's end */
        } run;         /* of a run whose body was called */
        struct {
            enum lease_command command;
            int64_t ttl;
        } extend;
        struct {
            unsigned asked; /* the parts that the servers are asked for: the handle knows the others */
            char *sought;   /* the handle's token, or what it has in the queue; NULL: neither is asked for */
            size_t sought_len;
            struct finding *findings; /* one for each node */
            evlock_answer answer;     /* its name lies in a finding */
        } query;
        struct {
            evlock_list_cb cb;
            char *sought; /* where to go on, a blank, and the prefix */
            size_t sought_len;
            bool resent;
            evlock_string *names; /* those of the page, in a block with their bytes; or NULL */
            evlock_page page;     /* until it is answered, `next` is what it was asked from */
        } list;
    };
    struct request requests[]; /* one for each node: of a query, and of an acquire's questions beside its lease */
};

/* The size of a call that asks so many nodes. */
size_t evl_call_size(unsigned nodes);

/* A pending call at the end of its handle's list, or NULL: out of memory. */
struct call *evl_call_new(struct evlock *lock, const struct call_sort *sort, void *arg);

/* The pending call of a kind, or NULL. */
struct call *evl_call_pending(const struct evlock *lock, enum call_kind kind);

/* The pending hold, or NULL. */
struct call *evl_call_hold(const struct evlock *lock);

/* It has requests of this kind to all nodes from here on, but for those that are still out as what they were. */
void evl_call_ask(struct call *call, enum request_kind kind);

/* The pipe over which its request to a node goes. */
struct pipe *evl_call_pipe(const struct call *call, unsigned vote);

/* Sends its request for this vote to where that is now; see evl_pipe_submit(). */
void evl_call_submit(struct call *call, unsigned vote);

/* What its requests say on the wire. */
const struct dialect *evl_call_dialect(const struct call *call);

/* Takes back its requests that wait. */
void evl_call_withdraw(struct call *call);

/* Sets its alarm; INT64_MAX takes it out. */
void evl_call_wake(struct call *call, int64_t at);

/* Of an acquire: the pause before another attempt, with jitter. */
int64_t evl_call_pause(const struct call *call);

/* Its end: it will be reported on a later turn. The words go with it, unless others were kept. */
void evl_call_end(struct call *call, int status, const char *words);

/* Keeps words for its end, in place of what was kept before; "" for none. */
void evl_call_note(struct call *call, const char *words);

/* Ends it as cancelled, without words; also a call that has ended otherwise and is not yet reported. */
void evl_call_cancel(struct call *call);

/* Its end in a forked child: it is not reported, and nothing is taken back from a node. */
void evl_call_end_forked(struct call *call);

/* Its success is a lease that was passed on, and is yet to be reported. */
static inline bool evl_call_passed(const struct call *call) {
    return call->sort->kind == CALL_ACQUIRE && call->acquire.passed;
}

/* A call that has ended and was not reported is pending again. */
void evl_call_reopen(struct call *call);

/* A call whose success is being reported is pending again. */
void evl_call_go_on(struct call *call);

/* It is pending as a call of another kind from here on, the newest of its handle. One that had ended is being reported
 * as what it was. */
void evl_call_go_on_as(struct call *call, const struct call_sort *sort);

/* Its user has been called. Frees it when its last request has come back: to be called for each that does. */
void evl_call_free_told(struct call *call);

/* Frees a pending call of which its user has not heard. */
void evl_call_drop(struct call *call);

/* The call that a request is of. */
struct call *evl_call_of(struct request *request);

/* Frees a call without reporting it. */
void evl_call_free(struct call *call);

/* Asserts what must be true between two inputs; see check.h. */
void evl_call_check(const struct call *call);

/* The same of all calls, and of the lists that they and the notices are in. */
void evl_calls_check_all(const struct locks *locks);

#endif
