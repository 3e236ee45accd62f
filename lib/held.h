/*
 * What a holder asks of the lease that is held: releases, extensions one after the other, and the token's way from
 * handle to handle. It owns nothing, and never sends anything itself: what they do on the wire is the tenure's.
 */
#ifndef EVL_HELD_H
#define EVL_HELD_H

#include "lock.h"

/* The extension under way ended: the next one begins, or all end where the lease has. */
void evl_held_extended(struct evlock *lock, struct trouble trouble);

/* A run's body has ended: the run goes on as a release of its lease. */
void evl_held_end_body(struct evlock *lock);

/* Ends the releases that are pending, a run's too. */
void evl_held_released(struct evlock *lock, struct trouble trouble);

/* Ends a release or an extension; one that ends by its time without a word says so. */
void evl_held_end(struct call *call, struct trouble trouble);

/* The release or extension under way may end by its time: keeps the words of what stood in its way last. */
void evl_held_note(struct evlock *lock, const char *words);

#endif
