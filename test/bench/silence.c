/*
 * Silence: a server that stops answering while one client holds many leases, each of which is told that it is at risk
 * and then that it is lost. It shows how long a turn of the loop is held: by the work of its own thread, with callbacks
 * that only count.
 */
#include "scenarios.h"

#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "locks.h"
#include "meter.h"
#include "report.h"

enum { TTL_MS = 3000 };

static size_t risks, losses;

static void at_risk(evlock *lock, int reason, void *arg) {
    (void)lock, (void)reason, (void)arg;
    risks++;
}

static void lost(evlock *lock, int reason, void *arg) {
    (void)lock, (void)arg;
    CHECK(reason == EVLOCK_EEXPIRED, "a lease was lost: %s", evlock_strerror(reason));
    losses++;
}

/* Seconds of work in one turn of the loop. */
static double turn(struct event_base *base) {
    double begun = clock_cpu();

    CHECK(event_base_loop(base, EVLOOP_ONCE) == 0, "the loop ended");
    return clock_cpu() - begun;
}

static void measure(struct event_base *base, size_t count, struct samples *longest, struct samples *each) {
    const evlock_options options = {
        .size = sizeof(evlock_options), .ttl_ms = TTL_MS, .auto_renewal = true, .on_at_risk = at_risk, .on_lost = lost};
    double begun, worst = 0, now;
    struct locks locks;

    locks_open(&locks, base, 1, count, &options);
    locks_acquire_all(&locks);
    event_base_loopexit(base, &(struct timeval){TTL_MS / 1000, 0}); /* until all were renewed */
    event_base_dispatch(base);
    risks = losses = 0;
    server_pause(&servers[0]);
    begun = clock_cpu();
    while (losses < count) {
        now = turn(base);
        worst = now > worst ? now : worst;
    }
    samples_add(longest, worst * 1e3);
    samples_add(each, (clock_cpu() - begun) / (double)count * 1e6);
    CHECK(risks == count, "%zu of %zu leases were told to be at risk", risks, count);
    server_resume(&servers[0]);
    locks_close(&locks);
}

void silence_run(bool quick) {
    static const size_t counts[] = {10 * 1000, 50 * 1000};
    char name[64];

    report_section("silence", "held leases, and a server that falls silent");
    servers_start(1);
    struct event_base *base = event_base_new();
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct samples longest = {0}, each = {0};
        for (int repetition = 0; repetition < (quick ? 1 : 3); repetition++)
            measure(base, counts[i], &longest, &each);
        snprintf(name, sizeof(name), "%zu: the longest turn", counts[i]);
        report_value(name, "ms", &longest, (struct aim){VALUE_NEVER_MORE, 5});
        snprintf(name, sizeof(name), "%zu: client CPU a lease that is lost", counts[i]);
        report_value(name, "us", &each, (struct aim){NO_AIM, 0});
        samples_free(&longest);
        samples_free(&each);
    }
    event_base_free(base);
    servers_stop();
}
