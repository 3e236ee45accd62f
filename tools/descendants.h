/*
 * The descendants of this process, as /proc has them: also those that left its group or session. It finds them from
 * child to child, reads of no other process, and sends them signals. It never waits for any.
 */
#ifndef DESCENDANTS_H
#define DESCENDANTS_H

#include <stdbool.h>
#include <sys/types.h>

/** When a process began. All zero is before all others. */
struct descendants_birth {
    unsigned long long ticks;
    pid_t pid; /**< the later one of those that began in the same tick has the greater number */
};

/** When the process `pid` began; all zero where /proc does not know it. */
struct descendants_birth descendants_birth(pid_t pid);

/**
 * Sends a signal to each, but for children that began before `since` and what they started. Returns how many there
 * were. Where there is no /proc, or that of another namespace, the result is -1, and none got it. `ret_refused` becomes
 * one that this process may not signal, and is left alone if there is none.
 */
int descendants_signal(int number, struct descendants_birth since, pid_t *ret_refused);

#endif
