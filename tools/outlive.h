/*
 * A lease that is to outlive evlock: it is handed over to nobody, and ends on the server in its time. It sees to it
 * that no command on its way can change the lease any more.
 */
#ifndef OUTLIVE_H
#define OUTLIVE_H

#include "session.h"

struct outlive {
    struct session *session;
    evlock *lock;
    const char *name;
    void (*left)(void *arg); /* or NULL: called when it is done, before the session ends */
    void *arg;
    struct event *again; /* pending: it could not be left yet */
    int exit;            /* the status to end with then */
};

/** Begins with nothing to do. Returns 0, or the exit status of an error that was said. */
int outlive_open(struct outlive *outlive, struct session *session);

/**
 * Leaves the lease of `lock` on the server as it is, then calls `left`, and ends the session with `exit`; with
 * EXIT_LOST if the lease is lost before. The other members are set.
 */
void outlive(struct outlive *outlive, int exit);

/** Gives back what outlive_open() made. */
void outlive_close(struct outlive *outlive);

#endif
