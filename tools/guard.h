/*
 * A process that watches evlock, for as long as a command runs under a lease. It kills the command and its descendants
 * at the deadline, when evlock could not: stopped, or blocked. It kills the command's group when evlock is gone. It
 * never talks to a server.
 */
#ifndef GUARD_H
#define GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "descendants.h"

/** What evlock and its guard share in memory. */
struct guard_page {
    _Atomic int64_t deadline; /* microseconds of CLOCK_BOOTTIME */
    _Atomic pid_t group;      /* the command's own group; 0: it has none yet */
    _Atomic bool struck;      /* the guard has begun to kill */
};

struct guard {
    pid_t pid; /* 0: none */
    int alive; /* its end shows the guard that evlock has ended */
    struct guard_page *page;
};

/**
 * Starts it, for a lease that lasts `ms` from now on. It kills all `descendants` but itself. Returns 0, or -1 with
 * errno.
 */
int guard_start(struct guard *guard, const struct descendants *descendants, int64_t ms);

/** The command's own group. */
void guard_set_group(struct guard *guard, pid_t group);

/** The lease lasts so long from now on, ten years at most. */
void guard_set_remaining(struct guard *guard, int64_t ms);

/** Whether it has begun to kill. False when it has ended. */
bool guard_struck(const struct guard *guard);

/** Ends it, and reaps it. */
void guard_end(struct guard *guard);

#endif
