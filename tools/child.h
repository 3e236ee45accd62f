/*
 * A command that evlock runs, with all that it starts. It owns the processes from the start to the end of the last one:
 * their group, their signals, the terminal while they have it, and the guard that kills them if evlock cannot. It knows
 * nothing of locks.
 */
#ifndef CHILD_H
#define CHILD_H

#include <event2/event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "descendants.h"
#include "guard.h"
#include "signals.h"

/** How it is run. */
struct child_wishes {
    char **words;         /**< the command and its arguments, with a NULL behind them */
    bool foreground;      /**< in evlock's own group */
    bool leave;           /**< what the command leaves behind, when it ends by itself, is left alone */
    int end_signal;       /**< by which it is asked to end */
    int64_t grace_ms;     /**< from there to SIGKILL */
    int64_t remaining_ms; /**< when the guard kills it, until child_set_remaining() says otherwise */
    int inherits;         /**< a descriptor that it has too, by a number as small as can be, from 3 */
    const char *variable; /**< what of its environment tells it that number */

    /** The command has ended, and so has all that it started. `status` is as waitpid() has it. */
    void (*on_end)(int status, void *arg);
    /** Evlock or the command was stopped: may the command go on? */
    bool (*may_go_on)(void *arg);
    void *arg;
};

struct child {
    struct child_wishes wishes;
    struct event_base *base;
    struct descendants descendants;
    struct guard guard;
    struct signals signals;
    struct event *killer; /* pending: when it kills, or looks whether all are gone */
    pid_t pid;            /* 0: it has ended */
    pid_t group;          /* its own; 0: it is in evlock's */
    int status;           /* once it has ended */
    bool terminal;        /* its group has the terminal's foreground where evlock's would have it */
    bool struck;          /* once it has ended: the guard has killed it */
    bool ending;          /* it was asked to end, or nothing but what it left behind is there */
    int64_t look_ms;      /* the next pause between two looks for what was killed; 0: nothing was killed yet */
};

/**
 * Starts it. Returns 0, or the exit status of an error that was said: 126 or 127 where the command cannot be run. From
 * then on signals that evlock gets are passed on to it. `on_end` comes once, from the loop, and never before this call
 * has returned.
 */
int child_start(struct child *child, struct event_base *base, const struct child_wishes *wishes);

/** Sends the command and its group a signal. */
void child_signal(struct child *child, int number);

/** Asks all to end, and kills what is left `grace_ms` later. A second call can only bring that forward. */
void child_end(struct child *child, int64_t grace_ms);

/** When the guard kills it, from now on. */
void child_set_remaining(struct child *child, int64_t ms);

#endif
