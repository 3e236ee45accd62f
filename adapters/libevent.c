/*
 * evlock on libevent, by hiredis's own adapter for it. It owns its timers and name resolutions, each until it is freed,
 * told or cancelled. It never calls evlock but from the loop.
 */
#include <evlock/libevent.h>

#include <string.h>

#include <event2/dns.h>
#include <event2/event.h>
#include <event2/util.h>

#define redisAsyncHandleRead evlock_on_readable
#define redisAsyncHandleWrite evlock_on_writable
#include <hiredis/adapters/libevent.h>

#include "../lib/memory.h"
#include "addresses.h"
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
    if (evl_timerfd_take(&timer->timerfd))
        timer->cb(timer->arg);
}

static void timer_free(void *arg) {
    struct timer *timer = arg;
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
#endif
    return 0;
}

/* --- Names -------------------------------------------------------------------------------------------------------- */

/*
 * A resolution has an evdns of its own, so that it goes by the files as they are now. evdns may answer at once, from
 * inside evdns_getaddrinfo(), and may be at work on its base after it has answered; so an answer is only kept, and a
 * turn of the loop later it is told and everything freed. A cancelled resolution takes the same way: evdns answers the
 * cancelling too, and there is just nobody left to tell.
 */
struct resolution {
    struct evdns_base *dns;
    struct evdns_getaddrinfo_request *request; /* NULL once evdns has answered */
    struct event *end;
    struct evutil_addrinfo *found;
    int error;
    evlock_resolve_cb cb; /* NULL: cancelled */
    void *arg;
};

static void resolution_free(struct resolution *resolution) {
    if (resolution->found)
        evutil_freeaddrinfo(resolution->found);
    if (resolution->end)
        event_free(resolution->end);
    if (resolution->dns)
        evdns_base_free(resolution->dns, 0);
    evl_free(resolution);
}

static void resolution_end(evutil_socket_t fd, short what, void *arg) {
    struct resolution *resolution = arg;
    (void)fd;
    (void)what;
    if (resolution->cb)
        evl_addresses_tell(resolution->found, resolution->error ? evutil_gai_strerror(resolution->error) : NULL,
                           resolution->cb, resolution->arg);
    resolution_free(resolution);
}

static void resolution_answered(int error, struct evutil_addrinfo *found, void *arg) {
    static const struct timeval now = {0, 0};
    struct resolution *resolution = arg;
    resolution->request = NULL;
    resolution->error = error;
    resolution->found = found;
    (void)event_add(resolution->end, &now);
}

/** Readies what a resolution needs; whether that worked. */
static bool resolution_prepare(struct resolution *resolution, struct event_base *base) {
    /* The timer is armed, for a day that never comes, since moving it later needs no memory, as arming it would. */
    static const struct timeval never = {INT32_MAX, 0};
    resolution->end = evtimer_new(base, resolution_end, resolution);
    if (!resolution->end || event_add(resolution->end, &never) != 0)
        return false;
    resolution->dns = evdns_base_new(base, EVDNS_BASE_DISABLE_WHEN_INACTIVE);
    if (!resolution->dns)
        return false;
    /* By default a nameserver is given longer than getaddrinfo waits in all, and the second is never asked. */
    (void)evdns_base_set_option(resolution->dns, "timeout:", "1");
    /* Where this fails, it has read the hosts file and fallen back to a nameserver on this machine. */
    (void)evdns_base_resolv_conf_parse(resolution->dns, DNS_OPTIONS_ALL, "/etc/resolv.conf");
    return true;
}

static void *resolve(void *base, const char *host, evlock_resolve_cb cb, void *arg) {
    /* Both families whatever addresses this machine has: an unreachable one fails at once when it is tried, and what
     * libevent knows about the machine's addresses is as old as the process. */
    static const struct evutil_addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct resolution *resolution = evl_alloc(sizeof *resolution);
    if (!resolution)
        return NULL;
    resolution->cb = cb;
    resolution->arg = arg;
    if (!resolution_prepare(resolution, base)) {
        resolution_free(resolution);
        return NULL;
    }
    resolution->request = evdns_getaddrinfo(resolution->dns, host, NULL, &hints, resolution_answered, resolution);
    return resolution;
}

static void resolve_cancel(void *arg) {
    struct resolution *resolution = arg;
    resolution->cb = NULL;
    if (resolution->request)
        evdns_getaddrinfo_cancel(resolution->request);
}

/* ------------------------------------------------------------------------------------------------------------------ */

static const evlock_loop_ops libevent_ops = {
    .size = sizeof(evlock_loop_ops),
    .now = loop_now,
    .timer_new = timer_new,
    .timer_set = timer_set,
    .timer_free = timer_free,
    .attach = connection_attach,
    .resolve = resolve,
    .resolve_cancel = resolve_cancel,
};

evlock_loop evlock_libevent(struct event_base *base) {
    return (evlock_loop){&libevent_ops, base};
}
