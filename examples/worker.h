/* One worker of the `workers` example: a process that takes, keeps, sometimes loses, and gives back the one lock. */
#ifndef WORKER_H
#define WORKER_H

#include <stdint.h>

/** What all workers have in common. */
struct worker_options {
    const char *url;
    const char *lock;  /**< the lock's name */
    unsigned int seed; /**< of the random choices; each worker adds its number */
    int64_t start;     /**< when the timeline begins: microseconds of evlock_clock_us() */
};

/**
 * Runs the worker in this process until SIGTERM or SIGINT, which must be blocked, and writes a `struct hold` to the
 * pipe `report` for every hold. Returns the exit status: 0, or 1 if it could not start or saw something impossible.
 */
int worker_run(const struct worker_options *options, int number, int report);

#endif
