/*
 * The lock as users know it: its life, what it knows without asking, and how it ends what it has under way. It owns
 * nothing: the data are the handle's (see handle.h). It sends nothing itself.
 */
#ifndef EVL_LOCK_H
#define EVL_LOCK_H

#include "call.h"

/* Whether calls may be made on it: EVLOCK_OK, EVLOCK_EINVAL, EVLOCK_ECLOSED, EVLOCK_EFORKED or EVLOCK_ETHREAD. */
struct trouble evl_lock_validate(const struct evlock *lock);

/* Whether it is free to acquire or adopt: EVLOCK_OK or EVLOCK_EALREADY. */
struct trouble evl_lock_validate_idle(const struct evlock *lock);

/* A token's length, EVLOCK_CSTRING resolved: EVLOCK_OK or EVLOCK_ETOKEN. */
struct trouble evl_lock_validate_token(const void *token, size_t *len, struct words *words);

/* An acquire or an adoption is pending, or its success is yet to be reported. */
bool evl_lock_acquiring(const struct evlock *lock);

/* Its acquire waits in the queue. */
bool evl_lock_queues(const struct evlock *lock);

/* Whether a lease is the user's, in whose thread this is: held, reported, and before its deadline. */
bool evl_lock_holds(const struct evlock *lock);

/* Ends everything of the handle that is pending, and gives up what it holds; nothing is reported but CANCELLED. */
void evl_lock_drop(struct evlock *lock);

/* The same, but for a release that is pending, or a body that is at work: these are waited for. */
void evl_lock_drop_but_waited_for(struct evlock *lock);

/* The same in a forked child: nothing is sent and nobody is called, only memory is made ready to go. */
void evl_lock_drop_forked(struct evlock *lock);

/* Ends the pending acquire or adoption (`call`, or the one that is not reported yet if that is NULL). */
void evl_lock_cancel_acquire(struct evlock *lock, struct call *call);

/* What was to be reported besides the ends of calls is not reported any more. */
void evl_lock_drop_notices(struct evlock *lock);

#endif
