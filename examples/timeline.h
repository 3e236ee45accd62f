/*
 * The timeline of a lock: who held it from when to when, as each holder saw it. It owns a copy of every hold and finds
 * those that overlap; it knows nothing of locks, processes or servers.
 */
#ifndef TIMELINE_H
#define TIMELINE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/** One hold. Times are microseconds of evlock_clock_us(), which all processes of a machine share. */
struct hold {
    int worker;    /**< who */
    int lost;      /**< 1 if the lease ended other than by release */
    int64_t asked; /**< when the worker asked for the lock */
    int64_t got;   /**< when it was told that it has it: the hold begins */
    int64_t end;   /**< when it last believed so: it asked for the release, or the lease was lost */
};

/** Holds in no order. Begin with all zero. */
struct timeline {
    struct hold *holds;
    size_t count;
    size_t room;
};

/** Adds a copy of `hold`; returns 0, or -1 when there is no memory for it. */
int timeline_add(struct timeline *timeline, const struct hold *hold);

/** Returns how many holds began before an earlier one had ended, and tells each on `out`. Sorts the holds by `got`. */
size_t timeline_overlaps(struct timeline *timeline, FILE *out);

/** Gives back the memory; the timeline is empty again. */
void timeline_clear(struct timeline *timeline);

#endif
