/* One worker of the `workers` example: a process that takes, keeps, sometimes loses, and gives back the one lock. */
#ifndef WORKER_H
#define WORKER_H

/** The lease's length, and how often a worker that waits asks for the lock. */
enum { TTL_MS = 2000, POLL_MS = 100 };

/** What all workers have in common. */
struct worker_options {
    const char *url;
    const char *lock;  /**< the lock's name */
    unsigned int seed; /**< of the random choices; each worker adds its number */
};

/**
 * Runs the worker in this process until SIGTERM or SIGINT, which must be blocked, and writes a `struct report` to the
 * pipe `reports` for every step. Returns the exit status: 0, or 1 if it could not start or saw something impossible.
 */
int worker_run(const struct worker_options *options, int number, int reports);

#endif
