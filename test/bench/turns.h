/*
 * Turns: waiters in several processes that contend for one lock, and what each turn's times were, in memory that the
 * processes share. It knows nothing of how they wait: that is a way's, of which evlock has two and the floor one. It
 * owns the processes and the memory. What fails in any of them ends the benchmark.
 */
#ifndef EVLOCK_BENCH_TURNS_H
#define EVLOCK_BENCH_TURNS_H

#include <stdbool.h>
#include <stddef.h>

#include <event2/event.h>

#include "servers.h"

enum {
    PROCESSES_MAX = 4,
    WAITERS_MAX = 400, /* in all */
    TURNS_MAX = 1 << 22,
};

struct turn {
    double granted, released; /* when the holder was told, and when it called the release */
};

/* A way to wait: what a process does for its waiters, which are numbered from 0 there. */
struct way {
    const char *name;
    const char *queued; /* the command that tells how many wait, or NULL: they cannot be counted */
    bool grouped;       /* a process has one place in the queue, however many of its own wait */
    void (*open)(struct event_base *base, size_t waiters);
    void (*acquire)(size_t waiter); /* ends with turn_granted() */
    void (*release)(size_t waiter); /* ends with turn_released() */
    void (*close)(void);
};

extern const struct way by_queue, by_polling, by_passing, bare;

/* Who waits, and how: each has one turn, or, endless, waits again at once. */
struct crowd {
    const struct way *way;
    size_t processes;
    size_t waiters; /* in all; the processes have equal shares */
    int hold_ms;    /* from a grant to the call of its release */
    bool endless;
};

/* To be called by a way, in its process. */
void turn_granted(size_t waiter);
void turn_released(size_t waiter);

/* Starts the processes: one waiter has the lock, the others wait. Then it is let go. */
void turns_begin(const struct crowd *crowd);
void turns_let_go(void);

/* How many turns have ended; a turn; the turns of each waiter; the most that others had while one waited; the CPU
 * seconds of all processes. */
size_t turns_count(void);
struct turn turns_at(size_t index);
void turns_of_each(long turns[WAITERS_MAX]);
size_t turns_most_waited(void);
double turns_cpu(void);

/* Nobody queues again; ends when all have had their last turn and the processes are gone. */
void turns_end(void);

#endif
