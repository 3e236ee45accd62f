/*
 * What event loops in virtual time have in common: timers, and what hiredis wants of a connection. It owns the timers.
 * It never lets time pass, and never calls anything of itself: whose turn it is, the owner of the loop decides.
 */
#ifndef EVLOCK_WORLD_LOOP_H
#define EVLOCK_WORLD_LOOP_H

#include <stdbool.h>
#include <sys/queue.h>

#include <evlock/loop.h>

/* The `data` of an evlock_loop, whose operations are those below, and the owner's for all that differs. */
struct virtual_loop {
    int64_t now; /* for virtual_now(); an owner may have a clock of its own instead */
    TAILQ_HEAD(virtual_timers, virtual_timer) timers;
    void *owner;
    void (*wake)(void *owner); /* a timer was set, or a readiness is wanted; or NULL */
};

struct virtual_timer {
    TAILQ_ENTRY(virtual_timer) link;
    struct virtual_loop *loop;
    evlock_timer_cb cb;
    void *arg;
    int64_t at; /* INT64_MAX: not armed */
};

/* A connection's place on a loop; it is part of what the owner keeps of the connection. */
struct virtual_watch {
    struct virtual_loop *loop;
    void *owner;
    void (*gone)(void *owner); /* hiredis is about to close the connection */
    bool reads, writes;        /* what hiredis waits for; it asks anew after each call */
};

void virtual_loop_init(struct virtual_loop *loop, void (*wake)(void *owner), void *owner);

/* Operations of evlock_loop_ops. */
int64_t virtual_now(void *loop);
void *virtual_timer_new(void *loop, evlock_timer_cb cb, void *arg);
void virtual_timer_set(void *timer, int64_t at);
void virtual_timer_free(void *timer);

/* Those that do not differ. */
#define VIRTUAL_OPS                                                                                                    \
    .size = sizeof(evlock_loop_ops), .now = virtual_now, .timer_new = virtual_timer_new,                               \
    .timer_set = virtual_timer_set, .timer_free = virtual_timer_free

/* For an owner that calls in by itself when something is to be read or written. */
int virtual_attach_nowhere(void *loop, struct redisAsyncContext *connection);

/* The one that is due first, among equals the oldest; NULL: none is armed. */
struct virtual_timer *virtual_timer_next(const struct virtual_loop *loop);
/* Calls it, disarmed. It may be gone then. */
void virtual_timer_ring(struct virtual_timer *timer);

/* For the owner's attach(): from now on hiredis says here what it wants. */
void virtual_watch_init(struct virtual_watch *watch, struct virtual_loop *loop, struct redisAsyncContext *connection,
                        void (*gone)(void *owner), void *owner);

#endif
