/*
 * The descendants of a process, as /proc has them: also those that left its group or session. It finds them and sends
 * them signals. It never waits for any.
 */
#ifndef DESCENDANTS_H
#define DESCENDANTS_H

#include <stddef.h>
#include <sys/types.h>

enum { DESCENDANTS_SPARED = 32 };

/** Whose descendants, and which of its children are none of our business, with all that they started. */
struct descendants {
    pid_t root;
    pid_t spared[DESCENDANTS_SPARED];
    size_t count; /**< of those spared */
};

/** Begins with `root`, and spares the children that it has now. */
void descendants_begin(struct descendants *descendants, pid_t root);

/** Spares one more. */
void descendants_spare(struct descendants *descendants, pid_t pid);

/**
 * Sends a signal to each, and returns how many live: zombies are dead, once all their threads are. Signal 0 counts
 * them alone. Where there is no /proc, or that of another namespace, the result is -1, and none got it.
 */
int descendants_signal(const struct descendants *descendants, int number);

#endif
