/*
 * The event loop as evlock sees it: what an adapter implements. Users take a ready one (<evlock/libevent.h>,
 * <evlock/libuv.h>) and need nothing of this page.
 *
 * An adapter gives a clock, timers, and the attachment of a hiredis connection. It may resolve names, too. It calls the
 * functions it was handed from the loop only, never from inside one of its own operations. Everything happens in the
 * loop's thread, but for what `threads` says of timer_set().
 *
 * Connections are attached by hiredis's own adapter for the loop, with one change: what hiredis's adapter calls when a
 * socket is ready must be evlock_on_readable() and evlock_on_writable() in place of redisAsyncHandleRead() and
 * redisAsyncHandleWrite(). Define those two names before including hiredis's header:
 *
 *     #define redisAsyncHandleRead evlock_on_readable
 *     #define redisAsyncHandleWrite evlock_on_writable
 *     #include <hiredis/adapters/libevent.h>
 *
 * They check deadlines before anything is delivered, keep SIGPIPE from the process, and call the user's callbacks when
 * hiredis is done, so that no user code ever runs on hiredis's stack.
 */
#ifndef EVLOCK_LOOP_H
#define EVLOCK_LOOP_H

#include <stddef.h>
#include <stdint.h>

#include <evlock/export.h>

#ifdef __cplusplus
extern "C" {
#endif

struct redisAsyncContext;

/** What a timer calls. */
typedef void (*evlock_timer_cb)(void *arg);

/**
 * What a resolution ends with: the addresses in text form ("192.0.2.1", "2001:db8::1"), in the order to be tried, valid
 * during the call; or count 0 and an error text. Called once, from the loop, unless the resolution was cancelled.
 */
typedef void (*evlock_resolve_cb)(const char *const *addresses, size_t count, const char *error, void *arg);

/** The operations of an event loop. `data` is the evlock_loop's. */
typedef struct evlock_loop_ops {
    size_t size; /**< sizeof(evlock_loop_ops) */

    /** Microseconds on a clock that never steps and goes on in suspend; read now, not cached by the loop.
     *  evlock_clock_us() is one. */
    int64_t (*now)(void *data);

    /** A one-shot timer, not yet armed; NULL when there is no memory or descriptor for it. */
    void *(*timer_new)(void *data, evlock_timer_cb cb, void *arg);
    /** Arms it for the moment `at` of now()'s clock, in place of what was armed; a moment in the past means the next
     *  turn of the loop; INT64_MAX disarms. Must not fail once the timer exists. */
    void (*timer_set)(void *timer, int64_t at);
    /** Disarms and frees it. May be called from its own callback. */
    void (*timer_free)(void *timer);

    /** Attaches a hiredis connection, as above; 0, or -1 when there is no memory for it. It sets, in connection->ev,
     * all that hiredis and evlock call: data, addRead, delRead, addWrite, delWrite and cleanup. scheduleTimer may stay
     * NULL: the times are evlock's own. connection->data is evlock's. */
    int (*attach)(void *data, struct redisAsyncContext *connection);

    /** Begins to resolve a host name without blocking; returns the resolution, or NULL when it cannot be begun, and
     *  then `cb` is not called. May be NULL, as with libevent and libuv: then evlock calls getaddrinfo() in a thread of
     *  its own, and a name means what it means to the system. That needs `threads`; without it, only literal addresses
     *  can be connected to. */
    void *(*resolve)(void *data, const char *host, evlock_resolve_cb cb, void *arg);
    /** Ends a resolution whose callback has not been called. NULL if `resolve` is. */
    void (*resolve_cancel)(void *resolution);

    /** 64 random bits for jitter; may be NULL. A simulation makes its runs repeatable with this; tokens never come
     *  from here. */
    uint64_t (*random)(void *data);

    /** 1: timer_free and resolve_cancel may be called in a forked child, on what the parent made (see
     * evlock_process()), and so may the clean-up of attached connections, whose descriptors are closed by then. They
     * must leave alone what the loop shares with the parent's: above all its epoll, from which nothing is taken out by
     * way of a descriptor that was closed before. 0: they are not called there, and what they would free stays until
     * the child exits. */
    int forks;

    /** 1: timer_set() may be called from any thread while the timer exists, also while the loop waits or is at work:
     *  the timer then rings in the loop's thread. evlock_client_post() needs that, and so do names where `resolve` is
     *  NULL. 0: it may not. */
    int threads;
} evlock_loop_ops;

/** An event loop: its operations, which must outlive every client on it, and what they work on. */
struct evlock_loop {
    const evlock_loop_ops *ops; /**< what it can do */
    void *data;                 /**< handed to every operation */
};

/** The clock of evlock's deadlines: microseconds of CLOCK_BOOTTIME, or CLOCK_MONOTONIC where that is missing. */
EVLOCK_EXPORT int64_t evlock_clock_us(void);

/** A number that this process keeps, and that none of its children has, however they are made: what was made under
 *  another is the parent's. A child may run its copy of a loop: a timer's descriptor that the parent made must then not
 *  be read, for the parent would not be woken. */
EVLOCK_EXPORT uint32_t evlock_process(void);

/** To be called when an attached connection's socket is readable. */
EVLOCK_EXPORT void evlock_on_readable(struct redisAsyncContext *connection);

/** To be called when an attached connection's socket is writable. */
EVLOCK_EXPORT void evlock_on_writable(struct redisAsyncContext *connection);

#ifdef __cplusplus
}
#endif

#endif
