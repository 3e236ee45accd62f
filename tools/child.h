/*
 * A command that evlock runs, with all that it starts, as evlock sees it. It passes signals on, has the terminal given
 * and taken, and tells the command's supervisor what to do. If that is killed, it ends the command itself. It knows
 * nothing of locks.
 */
#ifndef CHILD_H
#define CHILD_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "descendants.h"
#include "signals.h"
#include "supervisor.h"

/** How it is run. */
struct child_wishes {
    char **words;         /**< the command and its arguments, with a NULL behind them */
    bool foreground;      /**< in evlock's own group */
    bool leave;           /**< what the command leaves behind, when it ends by itself, is left alone */
    int end_signal;       /**< by which it is asked to end */
    int64_t grace_ms;     /**< from there to SIGKILL */
    int64_t deadline;     /**< by evlock_clock_us(): it is dead then, until child_set_deadline() says otherwise */
    int inherits;         /**< a descriptor that it has too, by a number as small as can be, from 3 */
    const char *variable; /**< what of its environment tells it that number */

    /** The command has ended, and so has all that it started: its exit status, or 128 + the signal that ended it. If it
     *  could not be run or supervised, that was said, and `exit` is the status for it. */
    void (*on_end)(int exit, void *arg);
    /** Evlock or the command was stopped: may the command go on? */
    bool (*may_go_on)(void *arg);
    /** Evlock may not signal this process of the command's, or 0: does not find one. So it can only wait for its end.
     * It comes once. */
    void (*on_refused)(pid_t pid, void *arg);
    void *arg;
};

struct child {
    struct child_wishes wishes;
    struct event_base *base;
    struct supervisor supervisor;
    struct signals signals;
    struct event *words;            /* pending: the supervisor may say something */
    struct event *killer;           /* pending: when evlock kills, in the place of its supervisor */
    struct descendants_birth since; /* the supervisor's, once it was killed: what is younger is the command's */
    int64_t kill_at;                /* when all that is left is killed; INT64_MAX: it was not asked to end */
    int64_t look_ms;                /* the next pause between two looks for these; 0: the supervisor lives */
    bool terminal;                  /* its group has the terminal's foreground where evlock's would have it */
    bool told_of_one;               /* on_refused was called */
    bool struck;                    /* once it has ended: its deadline had passed before */
    bool not_run;                   /* once it has ended: it never was the command */
};

/**
 * Starts it. Returns 0, or the exit status of an error that was said. From then on signals that evlock gets are passed
 * on to it. `on_end` comes once, from the loop, and never before this call has returned.
 */
int child_start(struct child *child, struct event_base *base, const struct child_wishes *wishes);

/** Sends the command and its group a signal. */
void child_signal(struct child *child, int number);

/** Asks all to end, and kills what is left `grace_ms` later. A second call can only bring that forward. */
void child_end(struct child *child, int64_t grace_ms);

/** All are dead by then: a moment of evlock_clock_us(). */
void child_set_deadline(struct child *child, int64_t deadline);

#endif
