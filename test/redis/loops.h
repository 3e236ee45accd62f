/*
 * The event loops that the tests run on, behind one face: libevent's, and libuv's where the build has it. Which one is
 * said by the environment variable EVLOCK_TEST_LOOP, "libevent" (the default) or "libuv".
 */
#ifndef EVLOCK_TEST_LOOPS_H
#define EVLOCK_TEST_LOOPS_H

#include <evlock/evlock.h>
#include <evlock/loop.h>

struct test_loop;

/* NULL when EVLOCK_TEST_LOOP names a loop that is not built in. */
struct test_loop *loop_new(void);
/* The loop as evlock takes it, for as long as the loop lives. */
const evlock_loop *loop_for_evlock(struct test_loop *loop);
/* Waits for something to do, a few milliseconds at most, and does it. */
void loop_turn(struct test_loop *loop);
/* From now on a turn waits for as long as there is nothing to do. */
void loop_be_patient(struct test_loop *loop);
/* How many events and timers are registered on the loop, not counting the harness's own. */
int loop_registrations(struct test_loop *loop);
/* In a forked child, before its copy of the loop is run: what the loop shares with the parent's is made anew. */
void loop_forked(struct test_loop *loop);
void loop_free(struct test_loop *loop);

#endif
