/*
 * The timeline of a lock: who waited for it, held it and lost it, and when, as the workers report it. It owns a copy of
 * every turn, counts, and finds holds that overlap. It knows nothing of locks, processes or servers.
 */
#ifndef TIMELINE_H
#define TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/** What a report is about. */
enum report_kind {
    NOTE,     /**< nothing that the timeline keeps */
    WAITS,    /**< the worker asks for the lock: its turn begins */
    GIVES_UP, /**< it ends its wait without the lock */
    HOLDS,    /**< it has the lock, with `fence` */
    STALLS,   /**< it stands still on purpose, for longer than its lease lasts */
    RELEASES, /**< it gives the lock back: its hold ends */
    LOSES,    /**< its lease ended other than by release: its hold ends */
    REFUSED,  /**< its release came too late, and was refused */
    TROUBLE,  /**< it could not reach the server so far */
    FAILED,   /**< it ends, since something is wrong */
    DIED,     /**< it has ended without a word: its turn ends */
};

/** One line of the output. Times are microseconds of evlock_clock_us(), which all processes of a machine share. */
struct report {
    int64_t at;       /**< when */
    int64_t deadline; /**< until when the worker believes in its lease, if it holds */
    uint64_t fence;
    int worker; /**< who: 1 or more */
    enum report_kind kind;
    char text[200];
};

/** A wait, and the hold that it led to. A moment that was not reached is 0. */
struct turn {
    int worker;
    bool open;        /**< it still waits or holds */
    bool lost;        /**< its lease ended other than by release */
    int64_t asked;    /**< when it asked for the lock */
    int64_t got;      /**< when it was told that it has it: the hold begins; 0: it waited in vain, or still waits */
    int64_t stalled;  /**< when it stood still */
    int64_t end;      /**< when it last believed that it held, or ended its wait */
    int64_t refused;  /**< when its late release was refused */
    int64_t deadline; /**< until when it believed in its lease, by its last report */
    uint64_t fence;
};

/** Turns in the order in which they began. Begin with all zero. */
struct timeline {
    struct turn *turns;
    size_t count;
    size_t room;
};

/** What became of the turns of one worker, or of all. */
struct tally {
    int held;
    int lost;
    int in_vain;          /**< waits that did not lead to a hold */
    int64_t longest_wait; /**< of all waits, those in vain too */
};

/** What the check of all holds has found. */
struct findings {
    size_t overlaps; /**< holds that began before an earlier one had ended */
    size_t falls;    /**< holds whose fence was not greater than that of the hold before */
};

/** Adds what a report says; returns 0, or -1 when there is no memory for it. */
int timeline_add(struct timeline *timeline, const struct report *report);

/** Counts the turns of one worker, or of all for 0. */
struct tally timeline_count(const struct timeline *timeline, int worker);

/** Checks all holds, and prints each overlap on `out`. Sorts the turns by `got`. */
struct findings timeline_check(struct timeline *timeline, FILE *out);

/** Gives back the memory; the timeline is empty again. */
void timeline_clear(struct timeline *timeline);

#endif
