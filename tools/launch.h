/*
 * The command's own process, from its fork until it is the command: its group, the terminal, its signals and its
 * descriptor. It looks at the deadline last of all, so that a command never begins behind it.
 */
#ifndef LAUNCH_H
#define LAUNCH_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct launch {
    char **words;         /**< the command and its arguments, with a NULL behind them */
    pid_t group;          /**< the process group that it joins; 0: one of its own */
    bool in_front;        /**< its group gets the terminal's foreground */
    int inherits;         /**< a descriptor that it has too, by a number as small as can be, from 3 */
    const char *variable; /**< what of its environment tells it that number */
    sigset_t mask;        /**< which signals it blocks */
};

/**
 * Becomes the command, in a process that `parent` has forked, with all signals blocked. It dies with its parent.
 * Returns only if it could not: errno, or 0 if `deadline` has passed, which is of evlock_clock_us().
 */
int launch(const struct launch *launch, pid_t parent, const _Atomic int64_t *deadline);

#endif
