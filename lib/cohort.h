/*
 * Cohorts: handles of one client that want the same lock on equal terms. They wait together: the first of them makes
 * the attempts, or stands in the queue, for all. A lease that one of them holds may be passed on to the next without a
 * word to the server: so many times in a row, and for so long (lock cohorting: Dice, Marathe and Shavit, PPoPP 2012).
 * A cohort is there while anybody waits in it, or holds by it. It owns its memory, and a reference to a config.
 *
 * Two never believe: the lease changes its owner in one step, and the new one is told later. Where no lease may be
 * passed on, nobody is in a cohort.
 */
#ifndef EVL_COHORT_H
#define EVL_COHORT_H

#include "call.h"

/* Whether a handle's options let its leases be passed on. Where they do not, nothing of a cohort costs more than this.
 */
static inline bool evl_cohort_is_for(const struct evlock *lock) {
    return lock->config->max_passes > 0;
}

/* An acquire without a token of its own and attempts to count waits with its like from here on, if its handle's options
 * say so. False: no memory. */
bool evl_cohort_join(struct call *call);

static inline bool evl_cohort_enter(struct call *call) {
    return !evl_cohort_is_for(call->lock) || evl_cohort_join(call);
}

/* The same at the head, if its handle holds for a cohort: it had been granted a lease that is gone before it was told.
 */
bool evl_cohort_enter_again(struct call *call);

/* Who makes the attempts of a cohort; NULL: one of it holds, or all end. */
struct call *evl_cohort_leader(const struct evlock *lock, const struct cohort *cohort);

/* Whether it is to make attempts: it waits alone, or is the first of its cohort, of which nobody holds. */
static inline bool evl_cohort_leads(const struct call *call) {
    return !call->acquire.cohort || evl_cohort_leader(call->lock, call->acquire.cohort) == call;
}

/* How often the lease that it is about to ask for could be passed on to who waits behind it. */
uint16_t evl_cohort_passes_ahead(const struct call *call);

/* It waits in a cohort, and is not pending any more. If it led, the next one does. */
void evl_cohort_leave(struct call *call);

/* Who of its cohort has what the server has granted to the one that led: the first whose wait has not ended, or else
 * the last. The others have timed out. What was passed on is its own. */
struct call *evl_cohort_granted(struct call *call);

/* It waits in a cohort, and is being granted what it led to, or what was passed on: its handle holds for the cohort. */
void evl_cohort_hold(struct call *call);

/* Who may have the lease that a handle holds, and would be told of it; NULL: it is to be released. */
struct call *evl_cohort_find_heir(const struct evlock *lock);

static inline struct call *evl_cohort_heir(const struct evlock *lock) {
    return evl_cohort_is_for(lock) ? evl_cohort_find_heir(lock) : NULL;
}

/* It has it now, and the handle has none. */
void evl_cohort_give(struct evlock *lock, struct call *heir);

/* A handle is done with its attempt or its lease: another that waits may have it. True: it does, and the handle has
 * none. False: nothing has changed. */
bool evl_cohort_pass(struct evlock *lock);

/* A handle's lease ends, or is not the cohort's any more: who leads from here on makes an attempt, and, where the lease
 * was `released`, leaves it to others before. */
void evl_cohort_end_hold(struct evlock *lock, bool released);

static inline void evl_cohort_let_go(struct evlock *lock, bool released) {
    if (evl_cohort_is_for(lock))
        evl_cohort_end_hold(lock, released);
}

/* This client breaks the handle's lock: a lease of it that may be passed on is released instead, and so its holder
 * hears of the break. */
void evl_cohorts_doubt(const struct evlock *lock);

/* The tenure by which a handle stands in line: its own, or that of its cohort; NULL: neither. */
struct tenure *evl_cohort_standing(const struct evlock *lock);

/* Asserts what must be true of all between two inputs; see check.h. */
void evl_cohorts_check_all(const struct locks *locks);

#endif
