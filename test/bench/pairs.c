/*
 * Pairs: acquire and release on distinct free keys, with so many in flight, evlock beside two floors: one draws a token
 * by libuuid for each acquire, the other sets each key to the same token again. Every release begins the next acquire
 * of its lock. See pairs.h.
 */
#include "pairs.h"

#include <stdio.h>

#include "check.h"
#include "leases.h"
#include "locks.h"
#include "meter.h"
#include "scenarios.h"

static const size_t levels[] = {1, 64, 1000, 10000};

/* The run that is under way. */
static struct {
    struct event_base *base;
    void (*renew_token)(struct lease *lease); /* the floor's, before it acquires once more */
    long wanted;                              /* pairs still to be begun */
    long pending;                             /* begun and not ended */
} run;

/* --- evlock ------------------------------------------------------------------------------------------------------- */

static void lock_acquired(evlock *lock, int status, void *arg);

static void lock_released(evlock *lock, int status, void *arg) {
    expect_ok(status);
    if (run.wanted > 0) {
        run.wanted--;
        expect_ok(evlock_acquire(lock, NULL, lock_acquired, arg));
    } else if (--run.pending == 0) {
        event_base_loopbreak(run.base);
    }
}

static void lock_acquired(evlock *lock, int status, void *arg) {
    expect_ok(status);
    expect_ok(evlock_release(lock, lock_released, arg));
}

static void run_locks(void *arg, long pairs) {
    const struct locks *locks = arg;
    run.wanted = pairs - (long)locks->count;
    run.pending = (long)locks->count;
    for (size_t i = 0; i < locks->count; i++)
        expect_ok(evlock_acquire(locks->at[i], NULL, lock_acquired, NULL));
    event_base_dispatch(run.base);
}

/* --- The floors --------------------------------------------------------------------------------------------------- */

static void lease_acquired(redisAsyncContext *connection, void *reply, void *arg);

/* What drawing tokens costs at the least: nothing. */
static void keep_token(struct lease *lease) {
    (void)lease;
}

static void lease_released(redisAsyncContext *connection, void *reply, void *arg) {
    floor_expect_one(reply);
    if (run.wanted > 0) {
        run.wanted--;
        run.renew_token(arg);
        floor_acquire(connection, arg, lease_acquired, arg);
    } else if (--run.pending == 0) {
        event_base_loopbreak(run.base);
    }
}

static void lease_acquired(redisAsyncContext *connection, void *reply, void *arg) {
    floor_expect_ok(reply);
    floor_release(connection, arg, lease_released, arg);
}

static void run_leases(void *arg, long pairs) {
    const struct leases *leases = arg;
    run.wanted = pairs - (long)leases->count;
    run.pending = (long)leases->count;
    for (size_t i = 0; i < leases->count; i++) {
        run.renew_token(&leases->at[i]);
        floor_acquire(leases->connection, &leases->at[i], lease_acquired, &leases->at[i]);
    }
    event_base_dispatch(run.base);
}

/* --- Measuring ---------------------------------------------------------------------------------------------------- */

void pairs_measure(struct keepers keepers, void (*run_pairs)(void *arg, long pairs), void *arg, long pairs,
                   struct pair_costs *costs) {
    struct cost begun = meter_begin_among(keepers);
    run_pairs(arg, pairs);
    struct cost cost = meter_end_among(keepers, &begun);
    double count = (double)pairs;

    CHECK(cost.sets == count && cost.deletions == count, "of %ld pairs %.0f were granted and %.0f ended", pairs,
          cost.sets, cost.deletions);
    check_keys_among(keepers, 0);
    samples_add(&costs->throughput, count / cost.wall);
    samples_add(&costs->client_cpu, cost.client_cpu / count * 1e6);
    samples_add(&costs->server_cpu, cost.server_cpu / count * 1e6);
    samples_add(&costs->commands, (cost.sets + cost.scripts + cost.natives) / count);
    samples_add(&costs->bytes, cost.bytes / count);
}

void pairs_measure_locks(struct locks *locks, struct keepers keepers, long pairs, struct pair_costs *costs) {
    run.base = locks->base;
    locks_acquire_all(locks);
    locks_check_held_by(locks, keepers);
    locks_release_all(locks);
    run_locks(locks, WARM_UP + (long)locks->count);
    pairs_measure(keepers, run_locks, locks, pairs, costs);
    locks_close(locks);
}

void pairs_measure_evlock(struct event_base *base, size_t level, long pairs, struct pair_costs *costs) {
    struct locks locks;
    locks_open(&locks, base, 1, level, NULL);
    pairs_measure_locks(&locks, (struct keepers){servers, 1}, pairs, costs);
}

static void measure_floor(struct event_base *base, void (*renew_token)(struct lease *lease), size_t level, long pairs,
                          struct pair_costs *costs) {
    struct leases leases;
    run.base = base;
    run.renew_token = renew_token;
    leases_open(&leases, base, level);
    leases_acquire_all(&leases);
    leases_check_held(&leases);
    leases_release_all(&leases);
    run_leases(&leases, WARM_UP + (long)level);
    pairs_measure((struct keepers){servers, 1}, run_leases, &leases, pairs, costs);
    leases_close(&leases);
}

void pairs_report(size_t level, const struct pair_costs *ours, const struct pair_costs *raw) {
    struct {
        const char *what, *unit;
        const struct samples *value, *other;
        struct aim aim;
    } figures[] = {
        {"throughput", "pairs/s", &ours->throughput, &raw->throughput, {RATIO_AT_LEAST, 0.9}},
        {"client CPU a pair", "us", &ours->client_cpu, &raw->client_cpu, {RATIO_AT_MOST, 1.3}},
        {"server CPU a pair", "us", &ours->server_cpu, &raw->server_cpu, {NO_AIM, 0}},
        {"commands a pair", "", &ours->commands, &raw->commands, {NO_AIM, 0}},
        {"bytes a pair, both ways", "", &ours->bytes, &raw->bytes, {NO_AIM, 0}},
    };
    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
        char name[64];
        snprintf(name, sizeof(name), "%zu in flight: %s", level, figures[i].what);
        report_ratio(name, figures[i].unit, figures[i].value, "floor", figures[i].other, figures[i].aim);
    }
}

/* The same beside the floor that draws no tokens. With one in flight, and with more than a cache holds, it is shown and
 * not judged. */
static void report_fixed(size_t level, const struct pair_costs *ours, const struct pair_costs *fixed) {
    const struct aim no_aim = {NO_AIM, 0};
    bool judged = level == 64 || level == 1000;
    char name[64];
    snprintf(name, sizeof(name), "%zu in flight: throughput", level);
    report_ratio(name, "pairs/s", &ours->throughput, "fixed", &fixed->throughput,
                 judged ? (struct aim){RATIO_AT_LEAST, 0.95} : no_aim);
    snprintf(name, sizeof(name), "%zu in flight: client CPU a pair", level);
    report_ratio(name, "us", &ours->client_cpu, "fixed", &fixed->client_cpu,
                 judged ? (struct aim){RATIO_AT_MOST, 1.5} : no_aim);
}

void pairs_forget(struct pair_costs *costs) {
    samples_free(&costs->throughput);
    samples_free(&costs->client_cpu);
    samples_free(&costs->server_cpu);
    samples_free(&costs->commands);
    samples_free(&costs->bytes);
}

/* Who is first in one repetition is last in the next. */
static void repeat(struct event_base *base, size_t level, int repetition, struct pair_costs *ours,
                   struct pair_costs *raw, struct pair_costs *fixed) {
    long pairs = level == 1 ? PAIRS_ALONE : PAIRS;
    if (repetition % 2) {
        measure_floor(base, keep_token, level, pairs, fixed);
        measure_floor(base, floor_draw, level, pairs, raw);
    }
    pairs_measure_evlock(base, level, pairs, ours);
    if (repetition % 2 == 0) {
        measure_floor(base, floor_draw, level, pairs, raw);
        measure_floor(base, keep_token, level, pairs, fixed);
    }
}

void pairs_run(bool quick) {
    report_section("pairs", "acquire and release on distinct free keys");
    servers_start(1);
    struct event_base *base = event_base_new();
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        struct pair_costs ours = {0}, raw = {0}, fixed = {0};
        for (int repetition = 0; repetition < (quick ? 3 : 7); repetition++)
            repeat(base, levels[i], repetition, &ours, &raw, &fixed);
        pairs_report(levels[i], &ours, &raw);
        report_fixed(levels[i], &ours, &fixed);
        pairs_forget(&ours);
        pairs_forget(&raw);
        pairs_forget(&fixed);
    }
    event_base_free(base);
    servers_stop();
}
