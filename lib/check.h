/*
 * Checks: what each room asserts of its own structs at the end of an input. They are there in builds with
 * -Dchecks=true, as the tests' are; a release has none. A check costs no more than what the input touched. What
 * comes from outside, of a server, a user or a loop, is never asserted.
 */
#ifndef EVL_CHECK_H
#define EVL_CHECK_H

#include <assert.h>

#define implies(condition, consequence) assert(!(condition) || (consequence))

#ifdef EVL_CHECKS
#define evl_check(call) call
#else
#define evl_check(call) ((void)0)
#endif

#endif
