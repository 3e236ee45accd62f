/*
 * Renewal: leases that are held and renewed, evlock beside one command a lease by the floor, and beside itself where it
 * has to renew them one by one. First one interval is measured for what it costs, then another for what is late: the
 * renewals themselves, and a timer of the same loop. In the end evlock's connection is taken away, time and again.
 * Under callgrind it counts the instructions of the first interval instead.
 */
#include "scenarios.h"

#include <stdio.h>
#include <unistd.h>

#include "check.h"
#include "instructions.h"
#include "leases.h"
#include "locks.h"
#include "meter.h"
#include "probe.h"
#include "report.h"
#include "tally.h"

/* One number a repetition; CPU in microseconds a renewed lease. */
struct results {
    struct samples client_cpu, server_cpu, scripts, script_time, allocations, renewal_late, timer_late, timer_late_own,
        reconnect_late_own;
};

static struct event_base *base;

static void run_for(double seconds) {
    struct timeval time = {(long)seconds, (long)((seconds - (double)(long)seconds) * 1e6)};
    event_base_loopexit(base, &time);
    event_base_dispatch(base);
}

/* Every lease is renewed once an interval. They were acquired, and so come due, within a part of it; half an interval
 * later all have been. */
static void settle(double interval) {
    run_for(1.5 * interval);
}

static void measure_cost(const char *way, size_t count, double interval, struct results *results) {
    struct cost begun = meter_begin(&servers[0]);
    double allocations = tally_allocations();
    instructions_begin();
    run_for(interval);
    instructions_end("renewal", way, count, count);
    allocations = tally_allocations() - allocations;
    struct cost cost = meter_end(&servers[0], &begun);
    double renewed = cost.expiries + cost.sets;
    double off = instructions_counted() ? 0.01 : 0.1;
    CHECK(renewed > (1 - off) * (double)count && renewed < (1 + off) * (double)count, "%.0f of %zu leases were renewed",
          renewed, count);
    check_keys(&servers[0], count);
    samples_add(&results->client_cpu, cost.client_cpu / renewed * 1e6);
    samples_add(&results->server_cpu, cost.server_cpu / renewed * 1e6);
    samples_add(&results->scripts, cost.scripts / renewed);
    samples_add(&results->script_time, cost.scripts > 0 ? cost.script_time / cost.scripts * 1e6 : 0);
    samples_add(&results->allocations, allocations / renewed);
}

static void note_timer(const struct probe *probe, struct results *results) {
    samples_add(&results->timer_late, probe->latest * 1e3);
    samples_add(&results->timer_late_own, probe->latest_own * 1e3);
}

/* --- evlock ------------------------------------------------------------------------------------------------------- */

/* Watches the deadlines of some locks: what has gone by of one since the lease was last renewed is never to be much
 * more than an interval. */
struct watch {
    const struct locks *locks;
    int64_t whole_ms; /* what is left right after a renewal */
    int64_t oldest_ms;
    int turns;
};

static void look(void *arg) {
    struct watch *watch = arg;
    const struct locks *locks = watch->locks;
    if (watch->turns++ % 5)
        return;
    for (size_t i = 0; i < locks->count; i += locks->count / 50) {
        int64_t age = watch->whole_ms - evlock_remaining_ms(locks->at[i]);
        watch->oldest_ms = age > watch->oldest_ms ? age : watch->oldest_ms;
    }
}

static void lost(evlock *lock, int reason, void *arg) {
    (void)lock, (void)arg;
    CHECK(false, "a lease was lost: %s", evlock_strerror(reason));
}

/* The server ends evlock's connection as soon as it can; its answer is read when it has gone on. */
static void order_end(void) {
    int done = 0;
    CHECK(redisAppendCommand(servers[0].side, "CLIENT KILL TYPE normal") == REDIS_OK, "out of memory");
    while (!done)
        CHECK(redisBufferWrite(servers[0].side, &done) == REDIS_OK, "the server is gone");
}

static void await_end(void) {
    void *reply;
    CHECK(redisGetReply(servers[0].side, &reply) == REDIS_OK, "the server is gone");
    freeReplyObject(reply);
}

/* While leases are renewed as ever. */
static void end_now(double interval) {
    run_for(0.3 * interval);
    order_end();
    await_end();
}

/* After a silence: nearly all leases wait for an answer, or to be sent, and all are renewed at once. */
static void end_after_silence(double interval) {
    server_pause(&servers[0]);
    run_for(0.9 * interval);
    order_end();
    server_resume(&servers[0]);
    await_end();
}

/* And it cannot be made anew before nearly all wait for that. */
static void end_for_long(double interval) {
    char away[sizeof(servers[0].socket) + 8];
    snprintf(away, sizeof(away), "%s.away", servers[0].socket);
    CHECK(rename(servers[0].socket, away) == 0, "no socket");
    order_end();
    await_end();
    run_for(0.9 * interval);
    CHECK(rename(away, servers[0].socket) == 0, "no socket");
}

static void measure_reconnects(double interval, struct results *results) {
    void (*const ends[])(double) = {end_now, end_after_silence, end_for_long};
    struct probe probe;
    probe_begin(&probe, base, NULL, NULL);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        ends[i](interval);
        run_for(1.1 * interval); /* until all are renewed */
    }
    probe_end(&probe);
    samples_add(&results->reconnect_late_own, probe.latest_own * 1e3);
}

static void measure_lateness(const struct locks *locks, const evlock_options *options, struct results *results) {
    struct watch watch = {.locks = locks, .whole_ms = options->ttl_ms - options->ttl_ms / 100 - 2};
    double interval = (double)options->renewal_interval_ms / 1e3;
    struct probe probe;
    probe_begin(&probe, base, look, &watch);
    run_for(interval);
    probe_end(&probe);
    note_timer(&probe, results);
    double late = (double)watch.oldest_ms / 1e3 - interval;
    samples_add(&results->renewal_late, late > 0 ? late / interval * 100 : 0);
}

/* What others may know is renewed by script. */
static void show_tokens(const struct locks *locks) {
    for (size_t i = 0; i < locks->count; i++)
        CHECK(evlock_token(locks->at[i], NULL), "a lease is not held");
}

static void measure_evlock(const char *way, size_t count, double interval, bool scripts, bool reconnects,
                           struct results *results) {
    evlock_options options = {.size = sizeof(evlock_options)};
    struct locks locks;

    options.auto_renewal = true;
    options.renewal_interval_ms = (int64_t)(interval * 1e3);
    options.ttl_ms = 3 * options.renewal_interval_ms;
    options.on_lost = lost;
    locks_open(&locks, base, 1, count, &options);
    locks_acquire_all(&locks);
    if (scripts)
        show_tokens(&locks);
    settle(interval);
    measure_cost(way, count, interval, results);
    measure_lateness(&locks, &options, results);
    if (reconnects && !instructions_counted())
        measure_reconnects(interval, results);
    locks_check_held(&locks);
    locks_release_all(&locks);
    locks_close(&locks);
}

/* The server's own counts say whether there were batches. */
static void measure_batches(size_t count, double interval, struct results *results) {
    measure_evlock("batches", count, interval, true, true, results);
    CHECK(samples_max(&results->scripts) < 0.1, "%.3f scripts a renewed lease are no batches",
          samples_max(&results->scripts));
}

/* Without MGET there are no batches. Afterwards the server's user may do everything again, as before. */
static void measure_one_by_one(size_t count, double interval, struct results *results) {
    server_do(&servers[0], "ACL SETUSER default -mget");
    measure_evlock("alone", count, interval, true, false, results);
    CHECK(samples_min(&results->scripts) == 1 && samples_max(&results->scripts) == 1,
          "%.3f to %.3f scripts a renewed lease are not one by one", samples_min(&results->scripts),
          samples_max(&results->scripts));
    server_do(&servers[0], "ACL SETUSER default +@all");
}

/* Whether the server has a command of its own. */
static bool has_command(void) {
    redisReply *reply = server_command(&servers[0], "SET none token IFEQ token PX 1000");
    bool has = reply->type == REDIS_REPLY_NIL;

    freeReplyObject(reply);
    return has;
}

static void measure_by_command(size_t count, double interval, struct results *results) {
    measure_evlock("native", count, interval, false, true, results);
    CHECK(samples_max(&results->scripts) == 0, "%.3f scripts a renewed lease", samples_max(&results->scripts));
}

/* --- The floor ---------------------------------------------------------------------------------------------------- */

/* Renews in the order in which it acquired, each lease an interval after it was last renewed. */
static struct {
    struct leases leases;
    struct event *timer;
    double interval;
    double *due; /* of each lease */
    size_t next;
} run;

static void renewed(redisAsyncContext *connection, void *reply, void *arg) {
    (void)connection, (void)arg;
    floor_expect_one(reply);
}

static void renew_due(evutil_socket_t fd, short what, void *arg) {
    double now = clock_now(), *due;
    (void)fd, (void)what, (void)arg;
    while (*(due = &run.due[run.next]) <= now) {
        floor_renew(run.leases.connection, &run.leases.at[run.next], renewed, NULL);
        *due = now + run.interval;
        run.next = (run.next + 1) % run.leases.count;
    }
    struct timeval pause = {(long)(*due - now), (long)((*due - now - (double)(long)(*due - now)) * 1e6)};
    event_add(run.timer, &pause);
}

/* Spread as they were acquired: evenly over the time that took. */
static void plan(double begun, double ended) {
    for (size_t i = 0; i < run.leases.count; i++)
        run.due[i] = run.interval + begun + (ended - begun) * (double)i / (double)run.leases.count;
    run.next = 0;
    renew_due(-1, 0, NULL);
}

static void measure_floor(size_t count, double interval, struct results *results) {
    struct probe probe;
    double begun = clock_now();
    leases_open(&run.leases, base, count);
    leases_acquire_all(&run.leases);
    run.interval = interval;
    run.due = calloc(count, sizeof(*run.due));
    run.timer = evtimer_new(base, renew_due, NULL);
    CHECK(run.due && run.timer, "out of memory");
    plan(begun, clock_now());
    settle(interval);
    measure_cost("floor", count, interval, results);
    probe_begin(&probe, base, NULL, NULL);
    run_for(interval);
    probe_end(&probe);
    note_timer(&probe, results);
    event_free(run.timer);
    free(run.due);
    leases_check_held(&run.leases);
    leases_release_all(&run.leases);
    leases_close(&run.leases);
}

/* ------------------------------------------------------------------------------------------------------------------ */

static void free_results(struct results *results) {
    samples_free(&results->client_cpu);
    samples_free(&results->server_cpu);
    samples_free(&results->scripts);
    samples_free(&results->script_time);
    samples_free(&results->allocations);
    samples_free(&results->renewal_late);
    samples_free(&results->timer_late);
    samples_free(&results->timer_late_own);
    samples_free(&results->reconnect_late_own);
}

static const char *called(size_t count, const char *what) {
    static char name[64];
    snprintf(name, sizeof(name), "%zu: %s", count, what);
    return name;
}

static void report_by_command(size_t count, const struct results *own, const struct results *batches,
                              const struct results *alone) {
    report_ratio(called(count, "server CPU by SET IFEQ, to batches"), "us", &own->server_cpu, "batches",
                 &batches->server_cpu, (struct aim){RATIO_AT_MOST, 0.85});
    report_ratio(called(count, "server CPU by SET IFEQ, to one by one"), "us", &own->server_cpu, "one by one",
                 &alone->server_cpu, (struct aim){RATIO_AT_MOST, 0.4});
    report_ratio(called(count, "client CPU by SET IFEQ, to batches"), "us", &own->client_cpu, "batches",
                 &batches->client_cpu, (struct aim){NO_AIM, 0});
    report_value(called(count, "the latest by SET IFEQ"), "% of int.", &own->renewal_late,
                 (struct aim){VALUE_NEVER_MORE, 10});
    report_value(called(count, "another timer late by own work, then"), "ms", &own->timer_late_own,
                 (struct aim){VALUE_NEVER_MORE, 5});
}

static void measure(size_t count, double interval, int repetitions) {
    struct results ours = {0}, alone = {0}, raw = {0}, native = {0};
    struct aim none = {NO_AIM, 0}, server = {RATIO_AT_MOST, 0.55}, client = {RATIO_AT_MOST, 0.4};
    for (int repetition = 0; repetition < repetitions; repetition++) {
        measure_batches(count, interval, &ours);
        measure_one_by_one(count, interval, &alone);
        measure_floor(count, interval, &raw);
        if (has_command())
            measure_by_command(count, interval, &native);
    }
    report_ratio(called(count, "server CPU a renewed lease"), "us", &ours.server_cpu, "floor", &raw.server_cpu, server);
    report_ratio(called(count, "client CPU a renewed lease"), "us", &ours.client_cpu, "floor", &raw.client_cpu, client);
    report_ratio(called(count, "scripts a renewed lease"), "", &ours.scripts, "one by one", &alone.scripts, none);
    report_value(called(count, "the server's time for a batch, mean"), "us", &ours.script_time,
                 (struct aim){VALUE_AT_MOST, 1000});
    report_ratio(called(count, "server CPU, to evlock one by one"), "us", &ours.server_cpu, "one by one",
                 &alone.server_cpu, server);
    report_ratio(called(count, "client CPU, to evlock one by one"), "us", &ours.client_cpu, "one by one",
                 &alone.client_cpu, client);
    report_value(called(count, "allocations a renewed lease"), "", &ours.allocations,
                 (struct aim){VALUE_NEVER_MORE, 0});
    report_value(called(count, "the latest renewal"), "% of int.", &ours.renewal_late,
                 (struct aim){VALUE_NEVER_MORE, 10});
    report_ratio(called(count, "another timer late by own work"), "ms", &ours.timer_late_own, "floor",
                 &raw.timer_late_own, (struct aim){VALUE_NEVER_MORE, 5});
    if (ours.reconnect_late_own.count > 0)
        report_value(called(count, "the same when a connection ends"), "ms", &ours.reconnect_late_own,
                     (struct aim){VALUE_NEVER_MORE, 5});
    report_ratio(called(count, "another timer late by the clock"), "ms", &ours.timer_late, "floor", &raw.timer_late,
                 none);
    if (has_command())
        report_by_command(count, &native, &ours, &alone);
    free_results(&native);
    free_results(&ours);
    free_results(&alone);
    free_results(&raw);
}

void renewal_run(bool quick) {
    report_section("renewal", "held leases, each renewed once an interval");
    servers_start(1);
    base = event_base_new();
    if (instructions_counted()) {
        measure(10 * 1000, 10, 1);
    } else {
        measure(10 * 1000, 1, quick ? 1 : 3);
        measure(100 * 1000, 3, quick ? 1 : 3);
    }
    event_base_free(base);
    servers_stop();
}
