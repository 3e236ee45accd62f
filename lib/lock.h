/*
 * The handle: what users hold. It turns their calls into inputs of its tenure's lease, and what comes of it into ends
 * of calls. It owns its name and its pending calls.
 */
#ifndef EVL_LOCK_H
#define EVL_LOCK_H

#include "client.h"

struct evlock {
    struct config *config;
    struct tenure *tenure;       /* the present one: acquiring, held, lost, releasing; or NULL */
    struct call *untold;         /* an acquire that was granted and not yet told */
    struct call *calls;          /* the oldest of those pending, or NULL */
    STAILQ_ENTRY(evlock) notice; /* in client->noticed */
    void *arg;
    uint32_t references;         /* the user's, one for each tenure and call, and one while it is `noticed` */
    uint16_t key_len;
    uint8_t agreed;              /* with `lost`: the nodes that had confirmed the last renewal */
    enum evlock_lost_reason lost : 4; /* to be told; 0: none */
    bool risky : 1;                   /* to be told */
    bool noticed : 1;                 /* in client->noticed, even if there is nothing left to tell */
    bool freed : 1;
    bool crowded : 1;                 /* its last acquire waited in the queue: the next one joins it at once */
    char key[];
};

/* A handle's client; NULL once that is gone. */
static inline struct evlock_client *client_of(const struct evlock *lock) {
    return lock->config->client;
}

/* An acquire or an adoption is pending, or its success is yet to be told. */
bool evl_lock_acquiring(const struct evlock *lock);

/* Counts how long the lease was held, which ends now. */
void evl_lock_count_hold(struct evlock *lock, int64_t now);

/* Its acquire waits in the queue. */
bool evl_lock_queues(const struct evlock *lock);

/* A grant that nothing stands against is to be told; one that something does is a failed attempt. */
void evl_lock_grant(struct evlock *lock, struct call *call);
void evl_lock_fail(struct evlock *lock, struct call *call, int status);

/* Memory goes with the last reference. */
void evl_lock_ref(struct evlock *lock);
void evl_lock_unref(struct evlock *lock);

/* Whether calls may be made on it: EVLOCK_OK, EVLOCK_EINVAL, EVLOCK_ECLOSED, EVLOCK_EFORKED; with words. */
int evl_lock_check(const struct evlock *lock);

/* Ends everything of the handle that is pending, and gives up what it holds; nothing is told but CANCELLED. */
void evl_lock_drop(struct evlock *lock);

/* The same, but for a release that is pending: it is waited for. */
void evl_lock_wind_up(struct evlock *lock);

/* The same in a forked child: nothing is sent and nobody is told, only memory is made ready to go. */
void evl_lock_drop_forked(struct evlock *lock);

/* Ends the pending acquire or adoption (`call`, or the untold one if that is NULL). */
void evl_lock_cancel_acquire(struct evlock *lock, struct call *call);

/* Gives up a lease that was lost and that nobody released. */
void evl_lock_give_up_lost(struct evlock *lock);

/* What was to be told besides the ends of calls is not told any more. */
void evl_lock_forget_notices(struct evlock *lock);

/* The release or extension under way may end by its time: keeps the words of what stood in its way last. */
void evl_lock_note_words(struct evlock *lock);

/* What the lease of the present tenure leads to; to be done in this order: lost, then the ends of calls. */
void evl_lock_events(struct evlock *lock, const struct lease_out *out);

/* Tells the notices of the first handle that is in the client's list for them, which has one more reference. */
void evl_lock_tell_notices(struct evlock_client *client);

/* Whether a lease is the user's: held, told, and before its deadline. */
bool evl_lock_holds(const struct evlock *lock);

/* The pending call of a kind, or NULL. */
struct call *evl_lock_pending(const struct evlock *lock, enum call_kind kind);

struct bytes evl_lock_key(const struct evlock *lock);

/* acquire.c: an attempt ended; the alarm of an acquire rang. */
void evl_acquire_failed(struct call *call, int status);
void evl_acquire_ring(struct call *call, int64_t now);

/* acquire.c: of an acquire that queues. The server has it waiting, as it said to what was asked at `sent`; it has
 * granted it, at `time` by its clock; what is known of it may be out of date. */
void evl_acquire_queued(struct evlock *lock, int64_t sent, const struct lease_answer *answer);
void evl_acquire_granted(struct evlock *lock, int64_t time, int64_t fence);
void evl_acquire_wake(struct call *call);

/* acquire.c: a token's length, EVLOCK_CSTRING resolved; whether the handle is free to acquire or adopt. With words. */
int evl_check_token(const void *token, size_t *len);
int evl_check_idle(const struct evlock *lock);

/* replicas.c: asks the replicas of all nodes whether they have the lease; fail: asks no more, and gives it up. */
void evl_replicas_ask(struct call *call);
void evl_replicas_fail(struct call *call, const char *why);

/* query.c: frees what a query owns. */
void evl_query_free(struct call *call);

/* Words for a release or an extension that ended by its time, where nothing else was said. */
void evl_lock_note_silence(const struct call *call, int status);

/* keep.c: the extension under way ended; all pending ones end so. */
void evl_extension_ended(struct evlock *lock, int status);
void evl_extensions_end(struct evlock *lock, int status);

#endif
