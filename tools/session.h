/*
 * A session with the servers: the event loop, the client, and the exit status. It owns them all, says why a server
 * cannot be reached, and gives back what is held before evlock ends. It never asks for a lock by itself.
 */
#ifndef SESSION_H
#define SESSION_H

#include <event2/event.h>
#include <evlock/evlock.h>

#include "options.h"

struct session {
    struct event_base *base;
    evlock_client *client; /**< NULL when it has ended */
    const struct options *options;
    bool served;   /**< a server, or a quorum of them, was connected once */
    bool cluster;  /**< the servers are the masters of a cluster */
    bool alone;    /**< there is one node, which Sentinels may know */
    int status;    /**< why it was away last */
    char why[256]; /**< the same in words */
    bool ending;   /**< session_end() was called */
    int exit;      /**< the status to end with, of the first call of session_end() */
    struct event *patience;
    const char *not_had; /**< the lock that another holds, while it is asked who */
    void (*on_line)(enum evlock_log_level level, const char *line, void *arg); /**< hears the library's log; or NULL */
    void *on_line_arg;
};

/**
 * Makes the loop and the client, and begins to connect. From then on, a server that is away at the beginning ends the
 * session when `server_wait_ms` has passed. Returns 0, or the exit status of an error that was said.
 */
int session_open(struct session *session, const struct options *options);

/** Makes a handle for a lock of this session. Returns 0, or the exit status of an error that was said. */
int session_lock(struct session *session, const char *name, const evlock_options *options, evlock **ret_lock);

/** Whether evlock goes on where no server can be used. If not, the session ends at the end of this turn of the loop. */
bool session_is_patient(const struct session *session);

/**
 * Ends the session with this exit status: what is held is released, and then session_run() returns. A later call
 * changes nothing.
 */
void session_end(struct session *session, int exit);

/**
 * Ends the session since an acquire has ended without the lock, and says why: who holds it, to a terminal or with -v,
 * or what else it is. The exit status is that of -E where another holds it or the wait is over, else EXIT_TROUBLE.
 * `name` must stay. Call it before anything else of evlock is called.
 */
void session_end_not_had(struct session *session, evlock *lock, const char *name, int status);

/** Runs the loop until the session has ended. Returns the exit status. Only session_free() may follow. */
int session_loop(struct session *session);

/** Frees an event on the loop; or NULL, where it was not made. */
void session_forget(struct event *event);

/** Gives everything back. Events on the loop are freed before. */
void session_free(struct session *session);

/** Does both, for who has no events of its own. */
int session_run(struct session *session);

#endif
