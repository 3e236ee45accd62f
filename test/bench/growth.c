/*
 * Growth: what a release and a new acquire cost the client while 1,000, 10,000 or 100,000 renewed locks are held, with
 * 1,000 in flight and every lock in turn. The floor beside it shows what of the growth is the machine's: more memory to
 * touch.
 */
#include "scenarios.h"

#include <stdio.h>

#include "check.h"
#include "leases.h"
#include "locks.h"
#include "meter.h"
#include "report.h"

static const size_t sizes[] = {1000, 10000, 100000};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static struct {
    struct event_base *base;
    struct locks *locks;
    struct leases *leases;
    size_t next;
    long wanted;
    long pending;
} run;

static bool begin_another(void) {
    if (run.wanted == 0) {
        if (--run.pending == 0)
            event_base_loopbreak(run.base);
        return false;
    }
    run.wanted--;
    return true;
}

/* --- evlock ------------------------------------------------------------------------------------------------------- */

static void next_lock(void);

static void lock_acquired(evlock *lock, int status, void *arg) {
    (void)lock, (void)arg;
    expect_ok(status);
    if (begin_another())
        next_lock();
}

static void lock_released(evlock *lock, int status, void *arg) {
    expect_ok(status);
    expect_ok(evlock_acquire(lock, NULL, lock_acquired, arg));
}

static void next_lock(void) {
    expect_ok(evlock_release(run.locks->at[run.next++ % run.locks->count], lock_released, NULL));
}

/* --- The floor ---------------------------------------------------------------------------------------------------- */

static void next_lease(void);

static void lease_acquired(redisAsyncContext *connection, void *reply, void *arg) {
    (void)connection, (void)arg;
    floor_expect_ok(reply);
    if (begin_another())
        next_lease();
}

static void lease_released(redisAsyncContext *connection, void *reply, void *arg) {
    floor_expect_one(reply);
    floor_draw(arg);
    floor_acquire(connection, arg, lease_acquired, arg);
}

static void next_lease(void) {
    struct lease *lease = &run.leases->at[run.next++ % run.leases->count];
    floor_release(run.leases->connection, lease, lease_released, lease);
}

/* --- Measuring ---------------------------------------------------------------------------------------------------- */

static void run_pairs(void (*next)(void), long pairs) {
    run.next = 0;
    run.wanted = pairs - WINDOW;
    run.pending = WINDOW;
    for (int i = 0; i < WINDOW; i++)
        next();
    event_base_dispatch(run.base);
}

static void measure(void (*next)(void), long pairs, struct samples *cpu) {
    struct cost begun = meter_begin(&servers[0]);
    run_pairs(next, pairs);
    struct cost cost = meter_end(&servers[0], &begun);
    CHECK(cost.deletions == (double)pairs && cost.sets == (double)pairs,
          "of %ld pairs the server ended %.0f and granted %.0f", pairs, cost.deletions, cost.sets);
    samples_add(cpu, cost.client_cpu / (double)pairs * 1e6);
}

static void measure_evlock(size_t size, long pairs, struct samples *cpu) {
    evlock_options options = EVLOCK_OPTIONS_INIT;
    struct locks locks;
    options.auto_renewal = 1;
    options.ttl_ms = 600 * 1000; /* none comes due meanwhile */
    run.locks = &locks;
    locks_open(&locks, run.base, 1, size, &options);
    locks_acquire_all(&locks);
    measure(next_lock, pairs, cpu);
    locks_check_held(&locks);
    locks_release_all(&locks);
    locks_close(&locks);
}

static void measure_floor(size_t size, long pairs, struct samples *cpu) {
    struct leases leases;
    run.leases = &leases;
    leases_open(&leases, run.base, size);
    leases_acquire_all(&leases);
    measure(next_lease, pairs, cpu);
    leases_check_held(&leases);
    leases_release_all(&leases);
    leases_close(&leases);
}

void growth_run(bool quick) {
    struct samples ours[SIZES] = {0}, raw[SIZES] = {0};
    report_section("growth", "client CPU of a release and an acquire, by locks held");
    servers_start(1);
    run.base = event_base_new();
    for (int repetition = 0; repetition < (quick ? 2 : 5); repetition++)
        for (size_t i = 0; i < SIZES; i++) {
            measure_evlock(sizes[i], 100 * 1000, &ours[i]);
            measure_floor(sizes[i], 100 * 1000, &raw[i]);
        }
    for (size_t i = 0; i < SIZES; i++) {
        char name[64];
        snprintf(name, sizeof(name), "%zu held", sizes[i]);
        report_ratio(name, "us", &ours[i], "with 1000", &ours[0], (struct aim){RATIO_AT_MOST, 1.2});
        report_ratio(name, "us", &ours[i], "floor", &raw[i], (struct aim){NO_AIM, 0});
    }
    for (size_t i = 0; i < SIZES; i++) {
        samples_free(&ours[i]);
        samples_free(&raw[i]);
    }
    event_base_free(run.base);
    servers_stop();
}
