/*
 * A tenure: one lease on the wire. It carries the lease's commands to the nodes and the answers back, keeps its alarm,
 * and reports what comes of it by hooks. It owns the lease and the token. While it is its handle's, it is among the
 * `live`; when the handle has no more use for it, it goes on among the `ghosts` until nothing of its token can be left
 * on a server, and frees itself.
 */
#ifndef EVL_TENURE_H
#define EVL_TENURE_H

#include "deployment.h"
#include "handle.h"
#include "listener.h"
#include "owing.h"
#include "pool.h"
#include "rounds.h"
#include "tickets.h"

/* There may be very many, so it is one block without gaps: this, the lease, a request for each node, and the rest. */
struct tenure {
    struct round_member member; /* of the family's; a ghost, when its handle has no more use for it */
    struct evlock *lock;        /* keeps the handle's memory */
    struct alarm alarm;
};

struct tenure_rest {
    uint8_t acting; /* depth of what an input leads to: only the outermost may free it */
    uint8_t token_len;
    struct owing owing; /* in a cluster. And `plainly`, the same: its release does not hand on, as the queue is not
                         * where the lock is. `endless`: a renewal found its key without expiry, and the log has that */
    char token[];       /* and the ticket of one that queues */
};

_Static_assert(sizeof(struct tenure_rest) == offsetof(struct tenure_rest, token), "there is no gap before the token");
_Static_assert(CLUSTER_PLACES < OWING_MASTERS, "each node of a cluster can owe something");
_Static_assert(offsetof(struct tenure, member) == 0, "a tenure is where its member is");
_Static_assert(sizeof(struct tenure) % _Alignof(struct lease) == 0, "the lease is aligned");
_Static_assert(sizeof(struct lease) == offsetof(struct lease, slots), "and its slots end where the requests begin");
_Static_assert(sizeof(struct lease_slot) % _Alignof(struct request) == 0, "the requests are aligned");

/* What the rooms above do with what comes of a lease. */
struct tenure_hooks {
    /* A lease that its handle has led to this. Losses come first, then what may be ends of calls. */
    void (*happened)(struct evlock *lock, const struct lease_out *out, const char *words);
    /* A node said something (or it is said of the node): words for a call that may end by its time. */
    void (*spoken)(struct evlock *lock, const char *words);
    /* It waits in the queue, and the server is of no use to it now. */
    void (*away)(struct evlock *lock, struct trouble why);
    /* The same, and the server is back: what was asked of it meanwhile was not. */
    void (*back)(struct evlock *lock);
    /* The server has it waiting in the queue, as it answered to what was asked at `sent`. */
    void (*queued)(struct evlock *lock, int64_t sent, const struct lease_answer *answer);
};

/* All tenures on a deployment, and what they share. */
struct tenures {
    struct deployment deployment;
    const struct tenure_hooks *hooks;
    struct rounds rounds;   /* they are its members, and each node that is back has one. Live are those of handles:
                             * acquiring, held, releasing; ghosts are nobody's: being undone */
    struct pool pool;       /* for those of the usual size */
    struct entropy entropy; /* for tokens */
    struct tickets tickets; /* of those that queue */
    int64_t left_until;     /* until then something may be there that was left to its ttl */
};

_Static_assert(offsetof(struct tenures, deployment) == 0, "a config that has no deployment has no tenures");

static inline struct tenures *evl_tenures_of(struct deployment *deployment) {
    return EVL_OWNER(struct tenures, deployment, deployment);
}

static inline struct tenure *evl_tenure_of_member(struct round_member *member) {
    return (struct tenure *)(void *)member;
}

/* Of the live ones or of the ghosts; NULL: there is none, or no more. */
static inline struct tenure *evl_tenures_first(const struct round_members *list) {
    return evl_tenure_of_member(TAILQ_FIRST(list));
}

static inline struct tenure *evl_tenures_next(const struct tenure *tenure) {
    return evl_tenure_of_member(TAILQ_NEXT(&tenure->member, link));
}

/* Its handle has no more use for it. */
static inline bool evl_tenure_is_ghost(const struct tenure *tenure) {
    return tenure->lock->tenure != tenure;
}

static inline struct lease *evl_tenure_lease(struct tenure *tenure) {
    return (struct lease *)(void *)(tenure + 1);
}

/* Its request to a node. */
static inline struct request *evl_tenure_request(struct tenure *tenure, unsigned node) {
    char *lease = (char *)evl_tenure_lease(tenure);

    return (struct request *)(void *)(lease + evl_lease_size(evl_lease_nodes(evl_tenure_lease(tenure)))) + node;
}

static inline struct tenure_rest *evl_tenure_rest(struct tenure *tenure) {
    return (struct tenure_rest *)(void *)evl_tenure_request(tenure, evl_lease_nodes(evl_tenure_lease(tenure)));
}

static inline char *evl_tenure_ticket(struct tenure *tenure) {
    return evl_tenure_rest(tenure)->token + evl_tenure_rest(tenure)->token_len;
}

static inline struct bytes evl_tenure_token(struct tenure *tenure) {
    return (struct bytes){evl_tenure_rest(tenure)->token, evl_tenure_rest(tenure)->token_len};
}

/* How a tenure begins. */
struct tenure_entry {
    struct bytes token;       /* a fresh one if its data is NULL, */
    struct lease_entry lease; /* else an own one */
    bool kept;                /* by the terms of a hold */
};

/* Sets up the tenures of a deployment that has been made: so many blocks of memory are kept. */
void evl_tenures_init(struct tenures *tenures, const struct tenure_hooks *hooks, unsigned kept);

/* Frees what they own, but for their own memory: all tenures are gone. */
void evl_tenures_free(struct tenures *tenures);

/* A tenure for a handle, begun: what the new lease asks for is sent, by a clock read no later than that. EVLOCK_OK; or
 * EVLOCK_ENOMEM or EVLOCK_ESYSTEM, and nothing has changed. */
struct trouble evl_tenure_begin(struct evlock *lock, const struct tenure_entry *entry, int64_t now);

/* A ghost that sends nothing: for as long as a release of this token may run late, which was this request's, lost with
 * the node's connection. False: out of memory. */
bool evl_tenure_watch(struct evlock *lock, struct bytes token, const struct request *request);

/* What it asks of nodes, for the table of requests. */
extern const struct request_ops evl_tenure_requests;

/* Whether a node owes an answer to a command of its. */
bool evl_tenure_flies(struct tenure *tenure);

/* As whom it waits in the queue; without a ticket, if it does not. */
struct waiter evl_tenure_waiter(struct tenure *tenure);

/* Asks how one stands that queues. */
void evl_tenure_look(struct tenure *tenure, int64_t now);

/* The server says that it granted one that queues. */
void evl_tenure_granted(struct tenure *tenure, int64_t since, const struct lease_answer *yes, int64_t now);

/* Its handle extends the lease. The tenure may be gone on return, as after all inputs below. */
void evl_tenure_extend(struct tenure *tenure, enum lease_command command, int64_t ttl);

/* Its handle's user is told of the grant now, and has heard of no risk before that. */
void evl_tenure_warn_anew(struct tenure *tenure);

/* The lease goes to another handle, which has none, with all that is under way; see evl_lease_pass(). */
void evl_tenure_pass(struct tenure *tenure, struct evlock *to);

/* The same of an acquire, which goes on for the other. */
void evl_tenure_inherit(struct tenure *tenure, struct evlock *to);

/* Its handle releases the lease, and waits for that. */
void evl_tenure_release(struct tenure *tenure);

/* Its handle wants the lease no more: a ghost undoes what may be left of it. */
void evl_tenure_abandon(struct tenure *tenure);

/* Somebody else has the token now: a ghost that leaves it where it is. */
void evl_tenure_export(struct tenure *tenure);

/* The handle is done with it, and so is the lease but for what goes on in the background. */
void evl_tenure_drop(struct tenure *tenure);

/* Whether something of this token for this key may still run late, by a tenure that is nobody's any more or by what a
 * connection has just lost. */
bool evl_tenures_haunt(const struct tenures *tenures, struct bytes key, struct bytes token);

/* It hears that a node is back. */
void evl_tenure_hear(struct tenure *tenure, unsigned vote, const struct comeback *comeback, int64_t now);

/* The alarm of a tenure rang. */
void evl_tenure_ring(struct alarm *alarm, int64_t now);

/* Counts how long the lease was held, which ends now. */
void evl_tenure_count_hold(struct tenure *tenure, int64_t now);

/* Frees it at once, whatever its state; its node must have been stopped. */
void evl_tenure_free(struct tenure *tenure);

/* Asserts what must be true between two inputs; see check.h. */
void evl_tenure_check(struct tenure *tenure);

/* The same of all at the end of a turn, and what is true of them only then. */
void evl_tenures_check_all(struct tenures *tenures);

#endif
