/*
 * Checks: what each room asserts of its own structs at the end of an input. They are there in builds with
 * -Dchecks=true, as the tests' are; a release has none. A check costs no more than what the input touched. What
 * comes from outside, of a server, a user or a loop, is never asserted.
 */
#ifndef EVL_CHECK_H
#define EVL_CHECK_H

#include <assert.h>

#define implies(condition, consequence) assert(!(condition) || (consequence))

#if defined(EVL_CHECKS) && defined(NDEBUG)
#error "-Dchecks=true is for builds with assertions, which this one is without"
#endif

#ifdef EVL_CHECKS
#define evl_check(call) call
#else
#define evl_check(call) ((void)0)
#endif

#endif
