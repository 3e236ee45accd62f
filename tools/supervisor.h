/*
 * The command's parent: a process that does nothing else. It is the reaper of all that the command starts, so its
 * descendants are the command's processes, all of them and no others. It starts the command, kills them all when the
 * deadline has passed or evlock is gone, and ends when none is left. It never talks to a server.
 */
#ifndef SUPERVISOR_H
#define SUPERVISOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "launch.h"

/** What it does. Moments are of evlock_clock_us(), here and below. */
struct supervisor_wishes {
    struct launch launch;
    int64_t deadline; /**< all are dead by then, until supervisor_set_deadline() says otherwise */
    int64_t grace_us; /**< what the command leaves behind has so long to end */
    int end_signal;   /**< by which it is asked to end */
    bool leave;       /**< what the command leaves behind, when it ends by itself, is left alone */
};

/** What evlock and its supervisor share in memory. */
struct supervisor_page {
    _Atomic int64_t deadline;
    _Atomic pid_t group; /**< the command's own group; 0: it is not there, or in evlock's */
    _Atomic pid_t pid;   /**< the command; 0: it is not there, or was waited for */
    _Atomic bool struck; /**< the deadline has passed: all were killed, or the command was not started */
    _Atomic int error;   /**< why it could not be started; 0: it could */
    _Atomic int not_run; /**< with that, or 0: the exit status for it */
    _Atomic int status;  /**< as waitpid() has it, once it has ended */
    _Atomic bool ended;  /**< there is nothing left to do */
};

struct supervisor {
    pid_t pid;  /* 0: none */
    int socket; /* readable when it says something; -1: none */
    struct supervisor_page *page;
};

/** What it is asked to do. What comes when the command has ended is dropped. */
struct supervisor_order {
    enum { SUPERVISOR_PASS, SUPERVISOR_ALL, SUPERVISOR_END } what;
    int number;     /**< PASS: this signal to the command and its group. ALL: to all */
    int64_t moment; /**< END: all are asked to end, and killed then. It can only come nearer */
};

/** What it says. Its end is seen by its exit. */
struct supervisor_word {
    enum { SUPERVISOR_STOPPED, SUPERVISOR_REFUSED } what;
    int number; /**< STOPPED: the command was stopped by this signal. REFUSED: it may not signal this process; 0:
                     it does not find one */
};

/** Starts it. Returns 0, or -1 with errno. Whether the command could be run is in the page when it has ended. */
int supervisor_start(struct supervisor *supervisor, const struct supervisor_wishes *wishes);

/** The lease lasts until then. */
void supervisor_set_deadline(struct supervisor *supervisor, int64_t deadline);

void supervisor_order(const struct supervisor *supervisor, struct supervisor_order order);

/** The next word. False if there is none: `ret_gone` is whether none will come any more. */
bool supervisor_hear(const struct supervisor *supervisor, struct supervisor_word *ret_word, bool *ret_gone);

/** Kills and reaps it, unless `pid` is 0, which was reaped, and gives everything back. */
void supervisor_end(struct supervisor *supervisor);

#endif
