/*
 * What the subcommands for scripts share: a lease that one run of evlock acquires and another one gives back. It owns
 * the session and the handle of one run, and sees to it that a lease that is to last outlives them.
 */
#ifndef SCRIPT_H
#define SCRIPT_H

#include "outlive.h"
#include "session.h"
#include "signals.h"
#include "token.h"

struct script {
    struct session session;
    struct signals signals;
    struct outlive outlive;
    evlock *lock;
    const char *name;
    void (*adopted)(struct script *script);
    void (*left)(struct script *script);
};

/**
 * Opens a session, catches signals, which end it, and makes a handle. The caller then acts on that, or ends the session
 * if this did not return 0. Whatever it returns, script_run() follows.
 */
int script_open(struct script *script, const struct options *options, const char *name, const evlock_options *wanted);

/**
 * Leaves the lease on the server as it is: `left` is called, if it is not NULL, and the session ends with `exit`.
 */
void script_leave(struct script *script, int exit, void (*left)(struct script *script));

/** Runs the session to its end, unless `exit` says that there is none. Returns the exit status. */
int script_run(struct script *script, int exit);

/**
 * A whole run on the lease that the token of the options holds: `cb` is called with the script when it is adopted.
 * Returns the exit status.
 */
int script_run_adopted(const struct options *options, const char *name, void (*cb)(struct script *script));

#endif
