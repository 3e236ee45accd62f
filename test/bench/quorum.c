/*
 * Quorum: how long an acquire over five nodes takes while all are healthy, one is stopped, two are stopped. Beside it,
 * in the same repetition: the floor that asks the same nodes and is done at the third yes, and evlock and the floor on
 * one node. Between any two acquires the lock is released, by as many answers as an acquire waits for.
 */
#include "scenarios.h"

#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "check.h"
#include "floor.h"
#include "locks.h"
#include "meter.h"
#include "report.h"

enum { NODES = 5, MAJORITY = 3, STOPPED_MAX = 2, WARM_UP = 50 };

/* What is measured: evlock or the floor, on how many nodes. */
enum { EVLOCK, FLOOR, EVLOCK_ONE, FLOOR_ONE, KINDS };

static struct event_base *base;
static struct samples times; /* of the block that is under way, in microseconds */
static double begun;
static long wanted;  /* acquires still to be begun in this block */
static bool holding; /* stop when the lock is held, for a look at the servers */

/* --- evlock ------------------------------------------------------------------------------------------------------- */

static void begin_lock(struct locks *locks);

static void lock_released(evlock *lock, int status, void *arg) {
    (void)lock;
    expect_ok(status);
    if (--wanted > 0)
        begin_lock(arg);
    else
        event_base_loopbreak(base);
}

static void lock_acquired(evlock *lock, int status, void *arg) {
    samples_add(&times, (clock_now() - begun) * 1e6);
    expect_ok(status);
    if (holding)
        event_base_loopbreak(base);
    else
        expect_ok(evlock_release(lock, lock_released, arg));
}

static void begin_lock(struct locks *locks) {
    begun = clock_now();
    expect_ok(evlock_acquire(locks->at[0], NULL, lock_acquired, locks));
}

static void release_lock(struct locks *locks) {
    expect_ok(evlock_release(locks->at[0], lock_released, locks));
}

/* --- The floor ---------------------------------------------------------------------------------------------------- */

struct crowd {
    redisAsyncContext *connections[NODES];
    size_t count;
    size_t yes;
    uintptr_t round; /* what answers come to now; late ones come to earlier rounds */
    struct lease lease;
    size_t unanswered;
};

static struct crowd five, one; /* by the connections' data */

static void begin_crowd(struct crowd *crowd);

static bool counts(struct crowd *crowd, void *arg) {
    crowd->unanswered--;
    return (uintptr_t)arg == crowd->round && ++crowd->yes == crowd->count / 2 + 1;
}

static void crowd_released(redisAsyncContext *connection, void *reply, void *arg) {
    struct crowd *crowd = connection->data;
    floor_expect_one(reply);
    if (!counts(crowd, arg))
        return;
    if (--wanted > 0)
        begin_crowd(crowd);
    else
        event_base_loopbreak(base);
}

static void release_crowd(struct crowd *crowd) {
    crowd->round++;
    crowd->yes = 0;
    crowd->unanswered += crowd->count;
    for (size_t i = 0; i < crowd->count; i++)
        floor_release(crowd->connections[i], &crowd->lease, crowd_released, (void *)crowd->round);
}

static void crowd_acquired(redisAsyncContext *connection, void *reply, void *arg) {
    struct crowd *crowd = connection->data;
    floor_expect_ok(reply);
    if (!counts(crowd, arg))
        return;
    samples_add(&times, (clock_now() - begun) * 1e6);
    if (holding)
        event_base_loopbreak(base);
    else
        release_crowd(crowd);
}

static void begin_crowd(struct crowd *crowd) {
    begun = clock_now();
    crowd->round++;
    crowd->yes = 0;
    crowd->unanswered += crowd->count;
    floor_draw(&crowd->lease);
    for (size_t i = 0; i < crowd->count; i++)
        floor_acquire(crowd->connections[i], &crowd->lease, crowd_acquired, (void *)crowd->round);
}

static void open_crowd(struct crowd *crowd, size_t count, size_t number) {
    *crowd = (struct crowd){.count = count};
    key_write(crowd->lease.key, number);
    for (size_t i = 0; i < count; i++) {
        crowd->connections[i] = floor_connect(base, &servers[i]);
        crowd->connections[i]->data = crowd;
    }
}

static void close_crowd(struct crowd *crowd) {
    for (size_t i = 0; i < crowd->count; i++)
        redisAsyncFree(crowd->connections[i]);
}

/* --- Blocks: one kind for a while --------------------------------------------------------------------------------- */

static struct locks locks_of_five, locks_of_one;

static void begin_kind(int kind) {
    if (kind == FLOOR || kind == FLOOR_ONE)
        begin_crowd(kind == FLOOR ? &five : &one);
    else
        begin_lock(kind == EVLOCK ? &locks_of_five : &locks_of_one);
}

static void release_kind(int kind) {
    if (kind == FLOOR || kind == FLOOR_ONE)
        release_crowd(kind == FLOOR ? &five : &one);
    else
        release_lock(kind == EVLOCK ? &locks_of_five : &locks_of_one);
}

static void run_rounds(int kind, long rounds) {
    samples_clear(&times);
    wanted = rounds;
    begin_kind(kind);
    event_base_dispatch(base);
}

/* Acquires once, sees that a quorum of the servers has the token, and releases. */
static void check_grant(int kind) {
    const struct crowd *crowd = kind == FLOOR ? &five : &one;
    struct locks *locks = kind == EVLOCK ? &locks_of_five : &locks_of_one;
    size_t nodes = kind == EVLOCK || kind == FLOOR ? NODES : 1, having = 0, len = TOKEN_LEN;

    holding = true;
    run_rounds(kind, 1);
    holding = false;
    bool raw = kind == FLOOR || kind == FLOOR_ONE;
    const void *token = raw ? crowd->lease.token : evlock_token(locks->at[0], &len);
    const char *key = raw ? crowd->lease.key : evlock_name(locks->at[0], NULL);
    for (size_t i = 0; i < nodes; i++)
        having += !servers[i].paused && token && key_is(&servers[i], key, token, len);
    CHECK(having >= nodes / 2 + 1, "%zu of %zu servers have the token of %s", having, nodes, key);
    release_kind(kind);
    event_base_dispatch(base);
}

/* Whether the first server, which is never stopped, granted and ended so many: the last of them it may do late. */
static void check_count(long rounds, const struct cost *at_first) {
    struct cost cost = {0};
    for (int tries = 0; tries < 1000 && cost.deletions < (double)rounds; tries++) {
        event_base_loop(base, EVLOOP_NONBLOCK);
        cost = meter_end(&servers[0], at_first);
    }
    CHECK(cost.sets == (double)rounds && cost.deletions == (double)rounds,
          "of %ld acquires the first server granted %.0f and ended %.0f", rounds, cost.sets, cost.deletions);
}

static void run_block(int kind, long rounds, struct samples *p50, struct samples *p99) {
    check_grant(kind);
    run_rounds(kind, WARM_UP);
    check_keys(&servers[0], 0);
    struct cost at_first = meter_begin(&servers[0]);
    run_rounds(kind, rounds);
    samples_add(p50, samples_percentile(&times, 0.5));
    samples_add(p99, samples_percentile(&times, 0.99));
    check_count(rounds, &at_first);
}

/* --- The scenario ------------------------------------------------------------------------------------------------- */

struct results {
    struct samples p50, p99;
};

static void stop_nodes(size_t count) {
    for (size_t i = 0; i < count; i++)
        server_pause(&servers[NODES - 1 - i]);
}

/* Back to what it was: every node runs, has answered everything, and has no lock. */
static void heal(void) {
    for (size_t i = 0; i < NODES; i++)
        server_resume(&servers[i]);
    for (size_t i = 0; i < NODES; i++)
        for (int tries = 0; server_integer(&servers[i], "DBSIZE") > 0 || five.unanswered > 0; tries++) {
            CHECK(tries < 5000, "a lock is left on server %zu", i);
            event_base_loop(base, EVLOOP_NONBLOCK);
            usleep(1000);
        }
}

static void repeat(int repetition, long rounds, struct results results[STOPPED_MAX + 1][KINDS]) {
    for (size_t stopped = 0; stopped <= STOPPED_MAX; stopped++) {
        int kinds = stopped == 0 ? KINDS : FLOOR + 1;
        stop_nodes(stopped);
        for (int i = 0; i < kinds; i++) {
            int kind = (i + repetition) % kinds; /* none always comes first */
            run_block(kind, rounds, &results[stopped][kind].p50, &results[stopped][kind].p99);
        }
        heal();
    }
}

static void report(struct results results[STOPPED_MAX + 1][KINDS]) {
    static const char *const states[] = {"all healthy", "one stopped", "two stopped"};
    struct results *healthy = results[0];
    char name[64];

    for (size_t i = 0; i <= STOPPED_MAX; i++) {
        snprintf(name, sizeof(name), "%s: acquire, p50", states[i]);
        report_ratio(name, "us", &results[i][EVLOCK].p50, "floor", &results[i][FLOOR].p50, (struct aim){NO_AIM, 0});
        snprintf(name, sizeof(name), "%s: acquire, p99", states[i]);
        report_ratio(name, "us", &results[i][EVLOCK].p99, "floor", &results[i][FLOOR].p99,
                     (struct aim){RATIO_AT_MOST, 1.3});
    }
    report_ratio("two stopped, p50", "us", &results[2][EVLOCK].p50, "healthy", &healthy[EVLOCK].p50,
                 (struct aim){RATIO_AT_MOST, 1.5});
    report_ratio("five nodes, p50", "us", &healthy[EVLOCK].p50, "one node", &healthy[EVLOCK_ONE].p50,
                 (struct aim){RATIO_AT_MOST, 2});
    report_ratio("one node, p50", "us", &healthy[EVLOCK_ONE].p50, "floor", &healthy[FLOOR_ONE].p50,
                 (struct aim){NO_AIM, 0});
    report_ratio("five nodes, p50 (the floor itself)", "us", &healthy[FLOOR].p50, "one node", &healthy[FLOOR_ONE].p50,
                 (struct aim){NO_AIM, 0});
}

void quorum_run(bool quick) {
    struct results results[STOPPED_MAX + 1][KINDS] = {0};
    report_section("quorum", "an acquire over five nodes");
    servers_start(NODES);
    base = event_base_new();
    locks_open(&locks_of_five, base, NODES, 1, NULL);
    locks_open(&locks_of_one, base, 1, 1, NULL);
    open_crowd(&five, NODES, 1);
    open_crowd(&one, 1, 2);

    for (int repetition = 0; repetition < (quick ? 3 : 9); repetition++)
        repeat(repetition, quick ? 400 : 1000, results);
    report(results);

    close_crowd(&five);
    close_crowd(&one);
    locks_close(&locks_of_one);
    locks_close(&locks_of_five);
    for (size_t i = 0; i <= STOPPED_MAX; i++)
        for (size_t kind = 0; kind < KINDS; kind++) {
            samples_free(&results[i][kind].p50);
            samples_free(&results[i][kind].p99);
        }
    samples_free(&times);
    event_base_free(base);
    servers_stop();
}
