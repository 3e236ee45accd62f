/*
 * A herd: 20,000 waiters of one process in one queue, each of whom waits again at once, while the server ends all
 * connections now and then. What was granted meanwhile may have been missed, so all have to look again; grants are to
 * go on beside that. The rate is shown beside that of the same waiters whose connections stay.
 */
#include "scenarios.h"

#include <stdlib.h>

#include "check.h"
#include "locks.h"
#include "meter.h"
#include "report.h"

enum { HERD = 20 * 1000, PACES = 6 };

/* How often connections are ended, and which of the two: that which is asked, or that which listens. */
static const struct pace {
    const char *name;
    int pause_ms; /* 0: they stay */
    bool asked, listens;
} paces[PACES] = {
    {"none ended", 0, false, false},
    {"grants, ended each 1000 ms", 1000, true, true},
    {"grants, ended each 500 ms", 500, true, true},
    {"- that which is asked alone", 500, true, false},
    {"- that which listens alone", 500, false, true},
    {"grants, ended each 100 ms", 100, true, true},
};

static struct {
    struct event_base *base;
    struct event *end, *cut;
    const struct pace *pace;
    long grants;
    bool over;
} run;

/* --- The waiters -------------------------------------------------------------------------------------------------- */

static void acquired(evlock *lock, int status, void *arg);

static void released(evlock *lock, int status, void *arg) {
    if (run.over)
        return;
    expect_ok(status);
    expect_ok(evlock_acquire(lock, NULL, acquired, arg));
}

static void acquired(evlock *lock, int status, void *arg) {
    if (run.over)
        return;
    expect_ok(status);
    run.grants++;
    expect_ok(evlock_release(lock, released, arg));
}

static void herd_open(struct locks *herd) {
    evlock_options options = {.size = sizeof(options), .ttl_ms = 10 * 1000, .wait = EVLOCK_WAIT_QUEUE};

    locks_open(herd, run.base, 1, 0, NULL);
    herd->at = calloc(HERD, sizeof(evlock *));
    CHECK(herd->at, "out of memory");
    for (; herd->count < HERD; herd->count++)
        expect_ok(evlock_new(&herd->at[herd->count], herd->client, "herd", EVLOCK_CSTRING, &options));
}

/* --- Measuring ---------------------------------------------------------------------------------------------------- */

static void cut(evutil_socket_t fd, short events, void *arg) {
    (void)fd, (void)events, (void)arg;
    if (run.pace->asked)
        server_do(&servers[0], "CLIENT KILL TYPE normal SKIPME yes");
    if (run.pace->listens)
        server_do(&servers[0], "CLIENT KILL TYPE pubsub");
}

static void end(evutil_socket_t fd, short events, void *arg) {
    (void)fd, (void)events, (void)arg;
    event_base_loopbreak(run.base);
}

static void let_run(double seconds) {
    long whole = (long)seconds;

    event_add(run.end, &(struct timeval){whole, (suseconds_t)((seconds - (double)whole) * 1e6)});
    event_base_dispatch(run.base);
}

/* Their grants in a second, once all have come to wait. */
static double measure_rate(const struct pace *pace, double seconds) {
    struct locks herd;
    double begun;

    run.over = false;
    run.pace = pace;
    herd_open(&herd);
    for (size_t i = 0; i < HERD; i++)
        expect_ok(evlock_acquire(herd.at[i], NULL, acquired, NULL));
    let_run(1);
    if (pace->pause_ms)
        event_add(run.cut, &(struct timeval){pace->pause_ms / 1000, pace->pause_ms % 1000 * 1000});
    run.grants = 0;
    begun = clock_now();
    let_run(seconds);
    begun = clock_now() - begun;
    event_del(run.cut);
    run.over = true;
    locks_close(&herd);
    return (double)run.grants / begun;
}

void herd_run(bool quick) {
    struct samples rates[PACES] = {0};

    report_section("herd", "20,000 waiters of one process at one lock, whose connections end");
    servers_start(1);
    run.base = event_base_new();
    run.end = evtimer_new(run.base, end, NULL);
    run.cut = event_new(run.base, -1, EV_PERSIST, cut, NULL);
    for (int repetition = 0; repetition < (quick ? 1 : 5); repetition++)
        for (int i = 0; i < PACES; i++)
            samples_add(&rates[i], measure_rate(&paces[i], quick ? 3 : 5));
    for (int i = 1; i < PACES; i++) {
        struct aim aim = {RATIO_AT_LEAST, 0.1};
        report_ratio(paces[i].name, "/s", &rates[i], paces[0].name, &rates[0], aim);
    }
    for (int i = 0; i < PACES; i++)
        samples_free(&rates[i]);
    event_free(run.cut);
    event_free(run.end);
    event_base_free(run.base);
    servers_stop();
}
