/*
 * evlock on libevent, by hiredis's own adapter for it. It owns its timers, each until it is freed. It never calls
 * evlock but from the loop.
 */
#include <evlock/libevent.h>

#include <string.h>

#include <event2/event.h>
#include <event2/util.h>

#define redisAsyncHandleRead evlock_on_readable
#define redisAsyncHandleWrite evlock_on_writable
#include <hiredis/adapters/libevent.h>

#include "../lib/memory.h"
#include "timerfd.h"

static int64_t loop_now(void *base) {
    (void)base;
    return evlock_clock_us();
}

/* --- Timers ------------------------------------------------------------------------------------------------------- */

struct timer {
    struct evl_timerfd timerfd;
    struct event *readable;
    evlock_timer_cb cb;
    void *arg;
};

static void timer_readable(evutil_socket_t fd, short what, void *arg) {
    struct timer *timer = arg;
    (void)fd;
    (void)what;
    if (evl_timerfd_leave(&timer->timerfd))
        (void)event_del(timer->readable);
    else if (evl_timerfd_take(&timer->timerfd))
        timer->cb(timer->arg);
}

static void timer_free(void *arg) {
    struct timer *timer = arg;
    (void)evl_timerfd_leave(&timer->timerfd);
    event_free(timer->readable);
    evl_timerfd_close(&timer->timerfd);
    evl_free(timer);
}

static void *timer_new(void *base, evlock_timer_cb cb, void *arg) {
    struct timer *timer = evl_alloc(sizeof *timer);
    if (!timer)
        return NULL;
    timer->cb = cb;
    timer->arg = arg;
    if (!evl_timerfd_open(&timer->timerfd)) {
        evl_free(timer);
        return NULL;
    }
    timer->readable = event_new(base, timer->timerfd.fd, EV_READ | EV_PERSIST, timer_readable, timer);
    if (!timer->readable) {
        evl_timerfd_close(&timer->timerfd);
        evl_free(timer);
        return NULL;
    }
    if (event_add(timer->readable, NULL) != 0) {
        timer_free(timer);
        return NULL;
    }
    return timer;
}

static void timer_set(void *arg, int64_t at) {
    struct timer *timer = arg;
    evl_timerfd_set(&timer->timerfd, at);
}

/* --- Connections -------------------------------------------------------------------------------------------------- */

static int connection_attach(void *base, struct redisAsyncContext *connection) {
    if (redisLibeventAttach(connection, base) != REDIS_OK)
        return -1;
#if HIREDIS_MAJOR >= 1
    /* hiredis does not look whether it got its event, and would free the missing one. (0.14 would have crashed.) */
    redisLibeventEvents *events = connection->ev.data;
    if (!events->ev) {
        memset(&connection->ev, 0, sizeof connection->ev);
        hi_free(events);
        return -1;
    }
#else
    /* hiredis 0.14 would ask the loop anew for each reading, by two system calls. */
    redisLibeventEvents *events = connection->ev.data;
    event_del(events->rev);
    event_assign(events->rev, base, connection->c.fd, EV_READ | EV_PERSIST, redisLibeventReadEvent, events);
    event_add(events->rev, NULL);
#endif
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------------ */

static const evlock_loop_ops libevent_ops = {
    .size = sizeof(evlock_loop_ops),
    .now = loop_now,
    .timer_new = timer_new,
    .timer_set = timer_set,
    .timer_free = timer_free,
    .attach = connection_attach,
    .forks = 1,
    .threads = 1,
};

evlock_loop evlock_libevent(struct event_base *base) {
    return (evlock_loop){&libevent_ops, base};
}

int evlock_client_new_libevent(evlock_client **ret_client, struct event_base *base, const char *url,
                               const evlock_client_options *options) {
    evlock_loop loop = evlock_libevent(base);
    return evlock_client_new(ret_client, base ? &loop : NULL, url, options);
}
