/*
 * evlock on libuv, by hiredis's own adapter for it. It owns its timers, each until libuv lets go of it on a turn after
 * it was freed. It never calls evlock but from the loop.
 */
#include <evlock/libuv.h>

#include <stdlib.h>
#include <string.h>

#include <uv.h>

#define redisAsyncHandleRead evlock_on_readable
#define redisAsyncHandleWrite evlock_on_writable

/* hiredis 0.14 hears of a failed socket only as a status, ignores that, and so never learns of a refused connection,
 * for libuv then stops watching. This stands between libuv and hiredis, and says "ready" in that case, as 1.x does. */
static void socket_ready(uv_poll_t *handle, int status, int events);
#define uv_poll_start(handle, events, hiredis_ready) uv_poll_start(handle, events, socket_ready)
#include <hiredis/adapters/libuv.h>
#undef uv_poll_start

#include "timerfd.h"

static int64_t loop_now(void *loop) {
    (void)loop;
    return evlock_clock_us();
}

/* --- Timers ------------------------------------------------------------------------------------------------------- */

struct timer {
    uv_poll_t poll;
    struct evl_timerfd timerfd;
    evlock_timer_cb cb;
    void *arg;
};

static void timer_readable(uv_poll_t *poll, int status, int events) {
    struct timer *timer = poll->data;
    (void)status;
    (void)events;
    if (evl_timerfd_leave(&timer->timerfd))
        (void)uv_poll_stop(poll);
    else if (evl_timerfd_take(&timer->timerfd))
        timer->cb(timer->arg);
}

static void timer_closed(uv_handle_t *poll) {
    free(poll->data);
}

static void timer_free(void *arg) {
    struct timer *timer = arg;
    (void)evl_timerfd_leave(&timer->timerfd);
    uv_close((uv_handle_t *)&timer->poll, timer_closed);
    evl_timerfd_close(&timer->timerfd);
}

static void *timer_new(void *loop, evlock_timer_cb cb, void *arg) {
    struct timer *timer = calloc(1, sizeof *timer);
    if (!timer)
        return NULL;
    timer->cb = cb;
    timer->arg = arg;
    if (!evl_timerfd_open(&timer->timerfd)) {
        free(timer);
        return NULL;
    }
    if (uv_poll_init(loop, &timer->poll, timer->timerfd.fd) != 0) {
        evl_timerfd_close(&timer->timerfd);
        free(timer);
        return NULL;
    }
    timer->poll.data = timer;
    if (uv_poll_start(&timer->poll, UV_READABLE, timer_readable) != 0) {
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

static void socket_ready(uv_poll_t *handle, int status, int events) {
    redisLibuvEvents *hiredis = handle->data;
    redisLibuvPoll(handle, 0, status == 0 ? events : hiredis->events);
}

/* uv_poll_start() costs two system calls and more, also where it changes nothing: these two, which are called for each
 * reading and each writing, do without it then. */

/* libuv stops to look at a socket that fails. hiredis 1.x takes it for looked at, and what comes after the bytes that
 * were still there, such as that the connection has ended, would never be read. */
static void await_bytes(void *data) {
    redisLibuvEvents *hiredis = data;
    if (hiredis->events & UV_READABLE && uv_is_active((uv_handle_t *)&hiredis->handle))
        return;
    hiredis->events |= UV_READABLE;
    uv_poll_start(&hiredis->handle, hiredis->events, socket_ready);
}

static void await_no_room(void *data) {
    const redisLibuvEvents *hiredis = data;
    if (hiredis->events & UV_WRITABLE)
        redisLibuvDelWrite(data);
}

static int connection_attach(void *loop, struct redisAsyncContext *connection) {
    if (redisLibuvAttach(connection, loop) == REDIS_OK) {
        connection->ev.addRead = await_bytes;
        connection->ev.delWrite = await_no_room;
        return 0;
    }
    /* hiredis has left its functions there, and would call them with the data that it could not make. */
    memset(&connection->ev, 0, sizeof connection->ev);
    return -1;
}

/* ------------------------------------------------------------------------------------------------------------------ */

static const evlock_loop_ops libuv_ops = {
    .size = sizeof(evlock_loop_ops),
    .now = loop_now,
    .timer_new = timer_new,
    .timer_set = timer_set,
    .timer_free = timer_free,
    .attach = connection_attach,
    .forks = 1,
    .threads = 1,
};

evlock_loop evlock_libuv(uv_loop_t *loop) {
    return (evlock_loop){&libuv_ops, loop};
}

int evlock_client_new_libuv(evlock_client **ret_client, uv_loop_t *loop, const char *url,
                            const evlock_client_options *options) {
    evlock_loop adapter = evlock_libuv(loop);
    return evlock_client_new(ret_client, loop ? &adapter : NULL, url, options);
}
