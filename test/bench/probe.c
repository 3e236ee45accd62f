/* The probe, on a timer descriptor, since libevent's own clock is coarser than what is to be seen; see probe.h. */
#include "probe.h"

#include <stdint.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "check.h"
#include "meter.h"

static void expired(evutil_socket_t fd, short what, void *arg) {
    struct probe *probe = arg;
    uint64_t expiries;
    (void)what;
    if (read(fd, &expiries, sizeof(expiries)) != sizeof(expiries))
        return;
    double late = clock_now() - probe->due;
    double cpu = clock_cpu();
    double own = cpu - probe->cpu < late ? cpu - probe->cpu : late;
    probe->due += (double)expiries * 1e-3;
    probe->latest = late > probe->latest ? late : probe->latest;
    probe->latest_own = own > probe->latest_own ? own : probe->latest_own;
    if (probe->turn)
        probe->turn(probe->arg);
    probe->cpu = clock_cpu();
}

void probe_begin(struct probe *probe, struct event_base *base, void (*turn)(void *arg), void *arg) {
    static const struct itimerspec every = {{0, 1000000}, {0, 1000000}};
    *probe = (struct probe){.turn = turn, .arg = arg};
    probe->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    probe->event = event_new(base, probe->fd, EV_READ | EV_PERSIST, expired, probe);
    CHECK(probe->fd >= 0 && probe->event && event_add(probe->event, NULL) == 0, "no timer");
    probe->cpu = clock_cpu();
    CHECK(timerfd_settime(probe->fd, 0, &every, NULL) == 0, "no timer");
    probe->due = clock_now() + 1e-3;
}

void probe_end(struct probe *probe) {
    event_free(probe->event);
    close(probe->fd);
}
