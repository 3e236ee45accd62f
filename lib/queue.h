/*
 * The client's side of the wait queue, which itself is the server's: when it begins to listen for grants, and whether
 * it does. It makes the listener, which is the locks'. What becomes of a grant is never decided here, but in waiter.c.
 */
#ifndef EVL_QUEUE_H
#define EVL_QUEUE_H

#include "locks.h"

/* Begins to listen at a node, at the first wait there. Without memory or random bytes it does not, and the next wait
 * tries again. */
void evl_queue_open(struct locks *locks, struct node *node);

/* Whether a grant of that node would be heard now, and its server has the clock that its queue needs. */
bool evl_queue_listens(const struct node *node);

/* Who listens is to log in anew, which it cannot: another begins to listen in its place. False: no memory. */
bool evl_queue_renew(struct locks *locks);

/* This one listens from now on. One whose place it takes ends by that. */
void evl_queue_succeed(struct locks *locks, const struct listener *listener);

/* The node may be another server than before, which a listener is to follow. */
void evl_queue_follow(const struct node *node);

/* Ends the listening for good. */
void evl_queue_stop(struct locks *locks, bool forked);

/* Frees the listeners, which have been stopped. */
void evl_queue_free(struct locks *locks);

#endif
