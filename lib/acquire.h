/*
 * Acquiring: the pace of attempts. Each attempt is a tenure with a token of its own; here is when the next one comes
 * and when there is none. It owns the token that its user gave, if any. It never sends anything of a lease itself.
 */
#ifndef EVL_ACQUIRE_H
#define EVL_ACQUIRE_H

#include "lock.h"

/* Begins one, whose callback is not set yet: `*ret` is set on success only. Returns as evlock_acquire(). */
struct trouble evl_acquire_begin(struct call **ret, struct evlock *lock, const evlock_acquire_options *options,
                                 void *arg, struct words *words);

/* Begins an acquire without limits, by its lock's way of waiting: EVLOCK_OK, EVLOCK_ENOMEM or EVLOCK_ESYSTEM. Also once
 * more, after its lease was lost. */
struct trouble evl_acquire_endlessly(struct call *call);

/* Whether the server would say so again if it were asked at once, unlike that another has the lock. */
bool evl_acquire_is_refused(int status);

/* Its end is about to be reported. */
void evl_acquire_count(const struct call *call);

/* A tenure was granted, and nothing stands against it: its success is to be reported, or that of another of its cohort.
 */
void evl_acquire_grant(struct call *call);

/* The same, but something stands against it: it is given up, and was a failed attempt. */
void evl_acquire_drop(struct call *call, struct trouble why);

/* The same, but its cohort is to have the lock, and that was no attempt: it is asked for at once. */
void evl_acquire_begin_again(struct call *call, struct trouble why);

/* An attempt ended without a lease. */
void evl_acquire_failed(struct call *call, struct trouble why);

/* What stood in the way last, for the words that go with the end. */
void evl_acquire_note(struct call *call, struct trouble obstacle);

/* The same while it waits in the queue, and goes on waiting. */
void evl_acquire_wait_on(struct call *call, struct trouble obstacle);

/* Whether its key is being looked at, so that what comes next is decided by that. */
bool evl_acquire_looks(const struct call *call);

/* The alarm of an acquire rang. */
void evl_acquire_ring(struct alarm *alarm, int64_t now);

/* What a look asks of nodes, for the table of requests. */
extern const struct request_ops evl_acquire_requests;

#endif
