/*
 * Growth: what a release and a new acquire cost the client while 1,000 to 1,000,000 renewed locks are held, with 1,000
 * in flight and every lock in turn. The floor beside it shows what of the growth is the machine's: more memory to
 * touch. Under callgrind it counts instructions instead, of fewer pairs, on locks spread evenly over all that are held.
 */
#include "scenarios.h"

#include <stdio.h>

#include "check.h"
#include "instructions.h"
#include "leases.h"
#include "locks.h"
#include "meter.h"
#include "report.h"

static const size_t sizes[] = {1000, 10000, 100000, 1000000};
enum {
    SIZES = sizeof(sizes) / sizeof(sizes[0]),
    QUICK_SIZES = SIZES - 1,
    PAIRS = 100 * 1000, /* at least: every lock has its turn */
    COUNTED_PAIRS = 10 * 1000,
    COUNTED_ROUNDS = 5,
};

static struct {
    struct event_base *base;
    struct locks *locks;
    struct leases *leases;
    size_t next;
    size_t step;
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

/* Whose turn it is, of so many. */
static size_t turn(size_t count) {
    size_t place = run.next;
    run.next = (place + run.step) % count;
    return place;
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
    expect_ok(evlock_release(run.locks->at[turn(run.locks->count)], lock_released, NULL));
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
    struct lease *lease = &run.leases->at[turn(run.leases->count)];
    floor_release(run.leases->connection, lease, lease_released, lease);
}

/* --- Measuring ---------------------------------------------------------------------------------------------------- */

/* One of the two, and the CPU time that a pair cost it with each size, one number a repetition. */
struct side {
    const char *name;
    void (*next)(void);
    struct samples cpu[SIZES];
};

static long pairs_with(size_t size) {
    if (instructions_counted())
        return COUNTED_PAIRS;
    return size > PAIRS ? (long)size : PAIRS;
}

static void run_pairs(void (*next)(void), size_t size, long pairs) {
    run.next = 0;
    run.step = size > (size_t)pairs ? size / (size_t)pairs : 1;
    run.wanted = pairs - WINDOW;
    run.pending = WINDOW;
    for (int i = 0; i < WINDOW; i++)
        next();
    event_base_dispatch(run.base);
}

static void measure_round(struct side *side, int i) {
    long pairs = pairs_with(sizes[i]);
    struct cost begun = meter_begin(&servers[0]);
    instructions_begin();
    run_pairs(side->next, sizes[i], pairs);
    instructions_end("pair", side->name, sizes[i], (size_t)pairs);
    struct cost cost = meter_end(&servers[0], &begun);
    CHECK(cost.deletions == (double)pairs && cost.sets == (double)pairs,
          "of %ld pairs the server ended %.0f and granted %.0f", pairs, cost.deletions, cost.sets);
    samples_add(&side->cpu[i], cost.client_cpu / (double)pairs * 1e6);
}

static void measure(struct side *side, int i) {
    for (int round = 0; round < (instructions_counted() ? COUNTED_ROUNDS : 1); round++)
        measure_round(side, i);
}

static void measure_evlock(struct side *side, int i) {
    evlock_options options = {.size = sizeof(evlock_options)};
    struct locks locks;
    options.auto_renewal = true;
    options.ttl_ms = 600 * 1000; /* none comes due meanwhile */
    run.locks = &locks;
    locks_open(&locks, run.base, 1, sizes[i], &options);
    locks_acquire_all(&locks);
    measure(side, i);
    locks_check_held(&locks);
    locks_release_all(&locks);
    locks_close(&locks);
}

static void measure_floor(struct side *side, int i) {
    struct leases leases;
    run.leases = &leases;
    leases_open(&leases, run.base, sizes[i]);
    leases_acquire_all(&leases);
    measure(side, i);
    leases_check_held(&leases);
    leases_release_all(&leases);
    leases_close(&leases);
}

/* The first numbers of a size, as many as another has: those of the same repetitions. */
static struct samples beside(const struct samples *samples, const struct samples *other) {
    return (struct samples){.at = samples->at, .count = other->count};
}

static void report(const struct side *ours, const struct side *raw, int size_count) {
    for (int i = 0; i < size_count; i++) {
        struct samples smallest = beside(&ours->cpu[0], &ours->cpu[i]);
        char name[64];
        snprintf(name, sizeof(name), "%zu held", sizes[i]);
        report_ratio(name, "us", &ours->cpu[i], "with 1000", &smallest, (struct aim){RATIO_AT_MOST, 1.2});
        report_ratio(name, "us", &ours->cpu[i], "floor", &raw->cpu[i], (struct aim){NO_AIM, 0});
    }
}

void growth_run(bool quick) {
    struct side ours = {.name = "evlock", .next = next_lock}, raw = {.name = "floor", .next = next_lease};
    int repetitions = instructions_counted() ? 1 : quick ? 2 : 5, size_count = quick ? QUICK_SIZES : SIZES;
    report_section("growth", "client CPU of a release and an acquire, by locks held");
    servers_start(1);
    run.base = event_base_new();
    for (int repetition = 0; repetition < repetitions; repetition++)
        for (int i = 0; i < (repetition == 0 ? size_count : QUICK_SIZES); i++) { /* the largest once, if at all */
            measure_evlock(&ours, i);
            measure_floor(&raw, i);
        }
    report(&ours, &raw, size_count);
    for (int i = 0; i < SIZES; i++) {
        samples_free(&ours.cpu[i]);
        samples_free(&raw.cpu[i]);
    }
    event_base_free(run.base);
    servers_stop();
}
