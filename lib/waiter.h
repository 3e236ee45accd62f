/*
 * Waiters in the queue: what the server says of a place in it, and of a grant, and when it is looked at again whether
 * either was missed. It owns nothing, and sends nothing itself.
 */
#ifndef EVL_WAITER_H
#define EVL_WAITER_H

#include "lock.h"

/* The server has an acquire waiting, as it answered to what was asked at `sent`. */
void evl_waiter_queued(struct evlock *lock, int64_t sent, const struct lease_answer *answer);

/* The server is of no use now to an acquire that waits in the queue. */
void evl_waiter_away(struct evlock *lock, struct trouble why);

/* The server is back, and an acquire that waits in the queue is to look. */
void evl_waiter_back(struct evlock *lock);

/* The server has gone away: acquires in the queue that do not wait for it end. */
void evl_waiters_left(struct locks *locks);

/* What a listener for grants does. */
extern const struct listener_hooks evl_waiter_hooks;

#endif
