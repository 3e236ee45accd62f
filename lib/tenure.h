/*
 * A tenure: one lease on the wire. It carries the lease's commands to the nodes and the answers back, keeps its alarm,
 * and tells its handle what comes of it. It owns the lease and the token. While it is its handle's, it is in the
 * client's `tenures`; when the handle has no more use for it, it goes on among the `ghosts` until nothing of its token
 * can be left on a server, and frees itself.
 */
#ifndef EVL_TENURE_H
#define EVL_TENURE_H

#include "alarm.h"
#include "lease.h"
#include "node.h"

struct evlock;

/* There may be very many, so it is one block without gaps: this, the lease, a request for each node, and the rest. */
struct tenure {
    TAILQ_ENTRY(tenure) link;
    struct evlock *lock; /* keeps the handle's memory */
    struct alarm alarm;
};

struct tenure_rest {
    uint8_t acting; /* depth of what an input leads to: only the outermost may free it */
    uint8_t token_len;
    char token[]; /* and the ticket of one that queues */
};

_Static_assert(sizeof(struct tenure) % _Alignof(struct lease) == 0, "the lease is aligned");
_Static_assert(sizeof(struct lease) == offsetof(struct lease, slots), "and its slots end where the requests begin");
_Static_assert(sizeof(struct lease_slot) % _Alignof(struct request) == 0, "the requests are aligned");

TAILQ_HEAD(tenures, tenure);

static inline struct lease *lease_of(struct tenure *tenure) {
    return (struct lease *)(void *)(tenure + 1);
}

static inline struct request *requests_of(struct tenure *tenure) {
    return (struct request *)(void *)((char *)lease_of(tenure) + evl_lease_size(evl_lease_nodes(lease_of(tenure))));
}

static inline struct tenure_rest *rest_of(struct tenure *tenure) {
    return (struct tenure_rest *)(void *)&requests_of(tenure)[evl_lease_nodes(lease_of(tenure))];
}

static inline char *ticket_text(struct tenure *tenure) {
    return rest_of(tenure)->token + rest_of(tenure)->token_len;
}

static inline struct bytes token_of(struct tenure *tenure) {
    return (struct bytes){rest_of(tenure)->token, rest_of(tenure)->token_len};
}

/* How a tenure begins. */
struct entry {
    struct bytes token;       /* a fresh one if its data is NULL, */
    struct lease_entry lease; /* else an own one */
};

/* The size of one with a token of evlock's own, over so many nodes. */
size_t evl_tenure_size(unsigned nodes);

/* A tenure for a handle, begun: what the new lease asks for is sent, by a clock read no later than that. EVLOCK_OK; or
 * EVLOCK_ENOMEM or EVLOCK_ESYSTEM, with words, and nothing has changed. */
int evl_tenure_begin(struct evlock *lock, const struct entry *entry, int64_t now);

/* A ghost that sends nothing: for as long as a release of this token may run late, which was lost with the node's
 * connection and is no tenure's. False: out of memory. */
bool evl_tenure_watch(struct evlock *lock, struct bytes token, unsigned node);

/* Of one that queues: who waits there; how does it stand?; the server says that it granted it. */
struct waiter evl_tenure_waiter(struct tenure *tenure);
void evl_tenure_look(struct tenure *tenure, int64_t now);
void evl_tenure_granted(struct tenure *tenure, int64_t since, int64_t fence, int64_t now);

/* The handle's inputs. abandon and export make it a ghost. The tenure may be gone on return. */
void evl_tenure_extend(struct tenure *tenure, enum lease_command command, int64_t ttl);
void evl_tenure_release(struct tenure *tenure);
void evl_tenure_abandon(struct tenure *tenure);
void evl_tenure_export(struct tenure *tenure);

/* The handle is done with it, and so is the lease but for what goes on in the background. */
void evl_tenure_let_go(struct tenure *tenure);

/* Its alarm rang; its node is back. */
void evl_tenure_ring(struct tenure *tenure, int64_t now);
void evl_tenure_node_back(struct tenure *tenure, unsigned node, bool settled, bool replaced, int64_t now);

/* Frees it at once, whatever its state; its node must have been stopped. */
void evl_tenure_destroy(struct tenure *tenure);

#endif
