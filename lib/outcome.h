/*
 * What a lease leads to: which calls end by it, and what is to be reported besides. The tenure comes here with what has
 * happened; the rooms beside this one act on it. It owns nothing, and calls no user.
 */
#ifndef EVL_OUTCOME_H
#define EVL_OUTCOME_H

#include "lock.h"

/* What a tenure does with what comes of its lease. */
extern const struct tenure_hooks evl_outcome_hooks;

#endif
