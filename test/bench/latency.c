/*
 * Latency: one acquire and one release while nothing else runs, against PING. The steps take turns in one loop, each
 * begun from a clean turn of it, so that whatever slows the machine slows all of them.
 */
#include "scenarios.h"

#include "check.h"
#include "floor.h"
#include "locks.h"
#include "meter.h"
#include "report.h"

enum step { PING, FLOOR_ACQUIRE, FLOOR_RELEASE, EVLOCK_ACQUIRE, EVLOCK_RELEASE, STEPS };

static struct {
    struct event_base *base;
    struct event *turn; /* begins the next step */
    redisAsyncContext *connection;
    struct lease lease;
    struct locks locks;
    enum step step;
    double begun;
    long wanted; /* rounds of all steps */
    struct samples times[STEPS];
} run;

static void step_ended(void) {
    samples_add(&run.times[run.step], (clock_now() - run.begun) * 1e6);
    run.step = (run.step + 1) % STEPS;
    if (run.step == PING && --run.wanted == 0)
        event_base_loopbreak(run.base);
    else
        event_active(run.turn, EV_TIMEOUT, 0);
}

static void ponged(redisAsyncContext *connection, void *reply, void *arg) {
    (void)connection, (void)arg;
    step_ended();
    floor_expect_ok(reply);
}

static void lease_released(redisAsyncContext *connection, void *reply, void *arg) {
    (void)connection, (void)arg;
    step_ended();
    floor_expect_one(reply);
}

static void lock_told(evlock *lock, int status, void *arg) {
    (void)lock, (void)arg;
    step_ended();
    expect_ok(status);
}

static void begin_step(evutil_socket_t fd, short what, void *arg) {
    (void)fd, (void)what, (void)arg;
    run.begun = clock_now();
    switch (run.step) {
    case PING:
        floor_ping(run.connection, ponged, NULL);
        break;
    case FLOOR_ACQUIRE:
        floor_draw(&run.lease);
        floor_acquire(run.connection, &run.lease, ponged, NULL);
        break;
    case FLOOR_RELEASE:
        floor_release(run.connection, &run.lease, lease_released, NULL);
        break;
    case EVLOCK_ACQUIRE:
        expect_ok(evlock_acquire(run.locks.at[0], NULL, lock_told, NULL));
        break;
    case EVLOCK_RELEASE:
        expect_ok(evlock_release(run.locks.at[0], lock_told, NULL));
        break;
    case STEPS:
        break;
    }
}

static void run_rounds(long rounds) {
    for (size_t i = 0; i < STEPS; i++)
        samples_clear(&run.times[i]);
    run.wanted = rounds;
    event_active(run.turn, EV_TIMEOUT, 0);
    event_base_dispatch(run.base);
}

/* One repetition: the percentiles of each step, and the server's word that every round took two locks. */
static void measure(long rounds, struct samples p50[STEPS], struct samples p99[STEPS]) {
    struct cost begun = meter_begin(&servers[0]);
    run_rounds(rounds);
    struct cost cost = meter_end(&servers[0], &begun);
    CHECK(cost.sets == 2 * (double)rounds && cost.deletions == 2 * (double)rounds,
          "in %ld rounds the server granted %.0f and ended %.0f", rounds, cost.sets, cost.deletions);
    for (size_t i = 0; i < STEPS; i++) {
        samples_add(&p50[i], samples_percentile(&run.times[i], 0.5));
        samples_add(&p99[i], samples_percentile(&run.times[i], 0.99));
    }
}

static void report(const struct samples p50[STEPS], const struct samples p99[STEPS]) {
    struct aim aim = {RATIO_AT_MOST, 1.3}, none = {NO_AIM, 0};
    report_ratio("acquire, p50", "us", &p50[EVLOCK_ACQUIRE], "PING", &p50[PING], aim);
    report_ratio("release, p50", "us", &p50[EVLOCK_RELEASE], "PING", &p50[PING], aim);
    report_ratio("acquire, p50", "us", &p50[EVLOCK_ACQUIRE], "floor", &p50[FLOOR_ACQUIRE], none);
    report_ratio("release, p50", "us", &p50[EVLOCK_RELEASE], "floor", &p50[FLOOR_RELEASE], none);
    report_ratio("acquire, p99", "us", &p99[EVLOCK_ACQUIRE], "floor", &p99[FLOOR_ACQUIRE], none);
    report_ratio("release, p99", "us", &p99[EVLOCK_RELEASE], "floor", &p99[FLOOR_RELEASE], none);
}

void latency_run(bool quick) {
    struct samples p50[STEPS] = {0}, p99[STEPS] = {0};
    report_section("latency", "one acquire, one release, when nothing else runs");
    servers_start(1);
    run.base = event_base_new();
    run.turn = event_new(run.base, -1, 0, begin_step, NULL);
    run.connection = floor_connect(run.base, &servers[0]);
    key_write(run.lease.key, 1);
    locks_open(&run.locks, run.base, 1, 1, NULL);
    locks_acquire_all(&run.locks);
    locks_check_held(&run.locks);
    locks_release_all(&run.locks);

    run_rounds(500);
    for (int repetition = 0; repetition < (quick ? 3 : 9); repetition++)
        measure(quick ? 1000 : 3000, p50, p99);
    report(p50, p99);

    locks_close(&run.locks);
    redisAsyncFree(run.connection);
    for (size_t i = 0; i < STEPS; i++) {
        samples_free(&run.times[i]);
        samples_free(&p50[i]);
        samples_free(&p99[i]);
    }
    event_free(run.turn);
    event_base_free(run.base);
    servers_stop();
}
