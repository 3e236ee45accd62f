/*
 * A command under a lock: waits for the lock, runs the command while it is held, and ends the command in time when it
 * is lost. It owns the handle, the command, and what the command is told by environment, signals and a pipe. What
 * happens before and after is its caller's.
 */
#ifndef WORK_H
#define WORK_H

#include <event2/event.h>
#include <evlock/evlock.h>

#include "child.h"
#include "options.h"
#include "progress.h"
#include "session.h"
#include "signals.h"

struct work {
    struct session *session;
    const char *name;
    char **words;
    void (*on_end)(struct work *work, int exit);
    void (*on_signal)(struct work *work, int exit); /* a signal to end, behind on_end; NULL: it ends the session */
    void (*on_lost)(struct work *work);             /* the lock is lost behind on_end; NULL: that is nothing to it */

    evlock *lock;
    struct signals signals;
    struct progress progress;
    struct child child;
    struct event *tick;  /* looks at the deadline */
    struct event *limit; /* --at-most */
    int told[2];         /* the pipe of EVLOCK_FD; -1: none */
    int64_t kill_after;  /* milliseconds, as is margin */
    int64_t margin;      /* the command is killed so long before the deadline */
    int64_t granted;     /* when, by evlock_clock_us(), as is deadline */
    int64_t deadline;    /* as it was last known */
    bool running;        /* the command runs */
    bool lost;           /* the command must end, or had to; the lock may be held still, behind --at-most */
    bool refused;        /* evlock cannot end all of it */
    int stopped_by;      /* a signal to end that came while it ran; 0: none */
};

/**
 * Makes the handle. `session`, `name`, `words` and `on_end` are set, all else is zero. Returns 0, or the exit status of
 * an error that was said.
 */
int work_open(struct work *work);

/**
 * Waits for the lock, and runs the command. `on_end` comes when the command and its descendants have ended, with the
 * exit status: the command's, 128 + its signal, or EXIT_LOST. The lock may be held then, and is not released. An end
 * before that, for any reason, ends the session. Returns 0, or the exit status of an error that was said.
 */
int work_stand(struct work *work);

/** Gives back what work_open() made, when session_loop() has returned. */
void work_close(struct work *work);

#endif
