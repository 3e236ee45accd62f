/*
 * The line of progress while evlock waits for a lock: place in line, holder, time waited. It owns its timer and asks
 * the server once a second, but only where a terminal shows the line.
 */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <event2/event.h>
#include <evlock/evlock.h>

#include "session.h"

struct progress {
    const struct session *session;
    evlock *lock;
    const char *name;
    struct event *timer; /* NULL: nothing is shown */
};

/** Begins, if there is a terminal. It lasts until progress_end(), which must come before the handle is freed. */
void progress_begin(struct progress *progress, const struct session *session, evlock *lock, const char *name);

/** Takes the line away. A second call does nothing. */
void progress_end(struct progress *progress);

#endif
