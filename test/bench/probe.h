/*
 * A probe: another timer of the same loop, of one millisecond, that tells how late it is. Late by the wall clock may be
 * the machine's fault; so it also tells how much of that the loop's own thread was at work. It owns a descriptor.
 */
#ifndef EVLOCK_BENCH_PROBE_H
#define EVLOCK_BENCH_PROBE_H

#include <event2/event.h>

struct probe {
    struct event *event;
    int fd;
    double due;              /* of the oldest expiry that was not served */
    double cpu;              /* the thread's at the last turn */
    double latest;           /* seconds: by the clock */
    double latest_own;       /* and of that at most the thread's own work */
    void (*turn)(void *arg); /* called at every expiry; may be NULL */
    void *arg;
};

void probe_begin(struct probe *probe, struct event_base *base, void (*turn)(void *arg), void *arg);
void probe_end(struct probe *probe);

#endif
