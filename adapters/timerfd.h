/*
 * Timers for adapters: a descriptor that becomes readable at a moment of evlock_clock_us(). Its user owns the
 * descriptor and watches it. A loop's own timers will not do: they are late by milliseconds and stop in suspend. A
 * forked child has the parent's descriptor, and what it read there the parent would never see.
 */
#ifndef EVL_TIMERFD_H
#define EVL_TIMERFD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <evlock/loop.h>

struct evl_timerfd {
    int fd; /* negative: there is none */
    clockid_t clock;
    uint32_t process; /* whose it is */
};

/** Opens one, not armed; whether that worked. */
static inline bool evl_timerfd_open(struct evl_timerfd *timer) {
    timer->process = evlock_process();
    timer->clock = CLOCK_BOOTTIME;
    timer->fd = timerfd_create(timer->clock, TFD_NONBLOCK | TFD_CLOEXEC);
    if (timer->fd < 0) {
        timer->clock = CLOCK_MONOTONIC;
        timer->fd = timerfd_create(timer->clock, TFD_NONBLOCK | TFD_CLOEXEC);
    }
    return timer->fd >= 0;
}

static inline void evl_timerfd_close(struct evl_timerfd *timer) {
    if (timer->fd >= 0)
        (void)close(timer->fd);
    timer->fd = -1;
}

/** In a forked child, closes what is the parent's; whether it was. To be called before the loop is told to watch it no
 *  longer: the loop's epoll may be the parent's, and loses nothing by way of a descriptor that is closed. */
static inline bool evl_timerfd_leave(struct evl_timerfd *timer) {
    if (timer->process == evlock_process())
        return false;
    evl_timerfd_close(timer);
    return true;
}

/** Arms it for the moment `at`, in place of what was armed; INT64_MAX disarms. From any thread. */
static inline void evl_timerfd_set(struct evl_timerfd *timer, int64_t at) {
    struct itimerspec spec = {0};
    if (at != INT64_MAX) {
        if (timer->clock != CLOCK_BOOTTIME) {
            struct timespec now;
            (void)clock_gettime(timer->clock, &now);
            at += (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 - evlock_clock_us();
        }
        if (at < 1)
            at = 1; /* zero would disarm */
        /* Where time_t has 32 bits, 68 years have to do. */
        int64_t seconds = at / 1000000, most = sizeof(time_t) < sizeof seconds ? INT32_MAX : INT64_MAX;
        spec.it_value.tv_sec = (time_t)(seconds < most ? seconds : most);
        spec.it_value.tv_nsec = (long)(at % 1000000 * 1000);
    }
    (void)timerfd_settime(timer->fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

/** Whether its moment has come, told once. A loop may find the descriptor readable, then run what sets it anew. */
static inline bool evl_timerfd_take(struct evl_timerfd *timer) {
    uint64_t times;
    return read(timer->fd, &times, sizeof times) == (ssize_t)sizeof times;
}

#endif
