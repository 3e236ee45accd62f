/*
 * Runs: acquire, work, release, in one call. A run is one call all the way: an acquire while it waits, a run while its
 * body is at work, a release from the body's end on. So it ends as these end, with its handle or its client too. It
 * owns the handle that evlock_run() made. It never calls its user: that is delivery's.
 */
#ifndef EVL_RUN_H
#define EVL_RUN_H

#include "call.h"

/* Its acquire has succeeded, and is being reported: its body is about to be called. */
void evl_run_enter(struct call *call);

/* Its body has returned this. */
void evl_run_entered(struct call *call, int value);

/* It has ended and is being reported: its status becomes what `done` is given. */
void evl_run_settle(struct call *call);

/* The handle that the library made for it goes, unless its user has freed that. */
void evl_run_free_handle(struct call *call);

#endif
