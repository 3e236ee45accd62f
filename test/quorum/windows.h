/*
 * Windows of time in which holders believed in one lock, and the judgment on a collection of them: none overlaps
 * another, and their fences grow in the order of time. It knows nothing of locks, servers or processes.
 */
#ifndef EVLOCK_TEST_WINDOWS_H
#define EVLOCK_TEST_WINDOWS_H

#include <stddef.h>
#include <stdint.h>

/* One tenure. What is written through pipes. */
struct window {
    int64_t from;   /* the grant was told, by evlock_clock_us() */
    int64_t until;  /* the release was called, or the deadline if that was earlier; not before `from` */
    uint64_t fence; /* 0: drew none */
    int64_t holder; /* for the words */
};

/* Puts the windows in order and counts the faults; the first one is told in `words`, and is of the window at `*first`.
 */
size_t windows_check(struct window *windows, size_t count, char *words, size_t size, size_t *first);

#endif
