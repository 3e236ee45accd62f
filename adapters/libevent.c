/*
 * evlock on libevent, by hiredis's own adapter for it. It owns its timers and name resolutions, each until it is freed,
 * told or cancelled. It never calls evlock but from the loop.
 */
#include <evlock/libevent.h>

#include <stdio.h>
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

/* --- Names -------------------------------------------------------------------------------------------------------- */

/*
 * A resolution asks two questions, for IPv4 and IPv6 addresses. Each has an evdns of its own, which goes by the files
 * as they are now, and asks the nameservers in turn: by one evdns for both, a question may meet the same dead
 * nameserver again and again while the other one meets the good one. Who has an answer waits for the other question for
 * a moment only, since that may never be answered.
 *
 * evdns may answer at once, from inside evdns_getaddrinfo(), and may be at work on its base after it has answered; so
 * an answer is only kept, and a turn of the loop later it is told and everything freed. A cancelled resolution, or
 * question, takes the same way: evdns answers the cancelling too, and there is just nobody left to tell.
 */
struct question {
    struct resolution *resolution;
    struct evdns_base *dns;
    struct evdns_getaddrinfo_request *request; /* NULL once evdns has answered */
    struct evutil_addrinfo *found;
    int error;
    bool answered;
};

struct resolution {
    struct question questions[2];
    struct event *end;
    uint32_t process;     /* whose it is */
    evlock_resolve_cb cb; /* NULL: told, or cancelled */
    void *arg;
};

static const struct timeval at_once = {0, 0};
static const struct timeval a_moment = {0, 200000};

static void resolution_free(struct resolution *resolution) {
    for (int i = 0; i < 2; i++) {
        struct question *question = &resolution->questions[i];
        if (question->found)
            evutil_freeaddrinfo(question->found);
        if (question->dns)
            evdns_base_free(question->dns, 0);
    }
    if (resolution->end)
        event_free(resolution->end);
    evl_free(resolution);
}

static void resolution_tell(struct resolution *resolution) {
    struct question *first = &resolution->questions[0], *second = &resolution->questions[1];
    struct evutil_addrinfo *list = first->found, **rest = &list;
    int error = first->error ? first->error : second->error;
    evlock_resolve_cb cb = resolution->cb;
    while (*rest)
        rest = &(*rest)->ai_next;
    *rest = second->found;
    first->found = NULL;
    second->found = NULL;
    resolution->cb = NULL;
    evl_addresses_tell(list, error ? evutil_gai_strerror(error) : NULL, cb, resolution->arg);
    if (list)
        evutil_freeaddrinfo(list);
}

static void resolution_cancel_questions(struct resolution *resolution) {
    for (int i = 0; i < 2; i++)
        if (resolution->questions[i].request)
            evdns_getaddrinfo_cancel(resolution->questions[i].request);
}

static void resolution_end(evutil_socket_t fd, short what, void *arg) {
    struct resolution *resolution = arg;
    (void)fd;
    (void)what;
    if (resolution->cb)
        resolution_tell(resolution);
    if (resolution->questions[0].answered && resolution->questions[1].answered)
        resolution_free(resolution);
    else
        resolution_cancel_questions(resolution); /* whose answer brings it here again */
}

static void question_answered(int error, struct evutil_addrinfo *found, void *arg) {
    struct question *question = arg;
    struct resolution *resolution = question->resolution;
    question->request = NULL;
    question->error = error;
    question->found = found;
    question->answered = true;
    if (resolution->questions[0].answered && resolution->questions[1].answered)
        (void)event_add(resolution->end, &at_once);
    else if (found)
        (void)event_add(resolution->end, &a_moment);
}

/** Readies a question; whether that worked. What resolv.conf says of times is meant for glibc's way of asking. */
static bool question_prepare(struct question *question, struct resolution *resolution, struct event_base *base) {
    char attempts[12];
    question->resolution = resolution;
    question->dns = evdns_base_new(base, EVDNS_BASE_DISABLE_WHEN_INACTIVE);
    if (!question->dns)
        return false;
    /* Where this fails, it has read the hosts file and fallen back to a nameserver on this machine. */
    (void)evdns_base_resolv_conf_parse(question->dns, DNS_OPTIONS_ALL, "/etc/resolv.conf");
    /* Each nameserver is asked twice, and a single one three times, for a second. None is given up: evdns would count
     * the silence of one against the next. */
    int count = evdns_base_count_nameservers(question->dns);
    (void)snprintf(attempts, sizeof attempts, "%d", count > 1 ? 2 * count : 3);
    (void)evdns_base_set_option(question->dns, "attempts:", attempts);
    (void)evdns_base_set_option(question->dns, "timeout:", "1");
    (void)evdns_base_set_option(question->dns, "max-timeouts:", "255");
    return true;
}

/** Readies what a resolution needs; whether that worked. */
static bool resolution_prepare(struct resolution *resolution, struct event_base *base) {
    /* The timer is armed, for tomorrow, since moving it later needs no memory, as arming it would. It is not armed for
     * the end of time: a sum of that and the present does not fit into the 32 bits that time_t may have. */
    static const struct timeval tomorrow = {86400, 0};
    resolution->end = evtimer_new(base, resolution_end, resolution);
    return resolution->end && event_add(resolution->end, &tomorrow) == 0 &&
           question_prepare(&resolution->questions[0], resolution, base) &&
           question_prepare(&resolution->questions[1], resolution, base);
}

/** Both families are asked for whatever addresses this machine has: an unreachable one fails at once when it is tried,
 *  and what libevent knows about the machine's addresses is as old as the process. */
static void question_ask(struct question *question, const char *host, int family) {
    struct evutil_addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_STREAM};
    question->request = evdns_getaddrinfo(question->dns, host, NULL, &hints, question_answered, question);
}

static void *resolve(void *base, const char *host, evlock_resolve_cb cb, void *arg) {
    struct resolution *resolution = evl_alloc(sizeof *resolution);
    if (!resolution)
        return NULL;
    resolution->cb = cb;
    resolution->arg = arg;
    resolution->process = evlock_process();
    if (!resolution_prepare(resolution, base)) {
        resolution_free(resolution);
        return NULL;
    }
    question_ask(&resolution->questions[0], host, AF_INET);
    question_ask(&resolution->questions[1], host, AF_INET6);
    return resolution;
}

static void resolve_cancel(void *arg) {
    struct resolution *resolution = arg;
    resolution->cb = NULL;
    if (resolution->process == evlock_process()) /* in a child, evdns's sockets are the parent's */
        resolution_cancel_questions(resolution);
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
