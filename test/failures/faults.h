/*
 * Faults: every place where the program may be refused memory or a system call, and the one that is refused now. Owns
 * what stands between the program and its allocators and system calls. Only what happens in the main thread while
 * faults are armed is counted or refused, so that the tests' own work is not; never refuses what its caller cannot
 * survive whatever evlock does, as hiredis 0.14 and parts of libuv cannot.
 *
 * A point is one such call when it is made; a site is the place in the program that made it.
 */
#ifndef EVLOCK_TEST_FAULTS_H
#define EVLOCK_TEST_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <evlock/loop.h>

enum fault_kind {
    FAULT_OWN,     /* evlock's own memory */
    FAULT_HIREDIS, /* hiredis's memory, from 1.0 on */
    FAULT_LOOP,    /* the event loop's memory, and that of the adapter for libuv */
    FAULT_SYSTEM,  /* system calls, and what is as good as one */
    FAULT_KINDS
};

extern const char *const fault_names[FAULT_KINDS];

/* To be called before the first call of an event loop or of hiredis. */
void faults_install(void);
/* Whether this build has any point of that kind. */
bool faults_possible(enum fault_kind kind);
/* The adapter's loop, so that its operations are refused only what they can survive. */
const evlock_loop *faults_loop(const evlock_loop *loop);

/* The point number `at` of that kind, from 0 and from now on, will be refused: that one alone, or all that follow as
 * well (of system calls: those of the same name). Negative: none will be, and points are just counted. */
void faults_plan(enum fault_kind kind, long at, bool from_there_on);
/* Nothing is refused any more. */
void faults_heal(void);
/* Whether the planned point has been reached. */
bool faults_fired(void);
/* Around every call of evlock and every turn of the loop; not nested. */
void faults_arm(void);
void faults_disarm(void);

/* Blocks given and not taken back. */
long faults_live(enum fault_kind kind);
/* How often something was refused, and at how many sites. */
long faults_refused(enum fault_kind kind);
size_t faults_sites(enum fault_kind kind);
/* Whether the call that returns to this place in the program was ever refused. */
bool faults_refused_at(enum fault_kind kind, uintptr_t site);
/* What the plan refused first, and at which site, as an address in the program's file. */
const char *faults_planned_name(void);
uintptr_t faults_planned_site(void);

#endif
