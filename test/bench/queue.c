/*
 * Waiting: a hundred waiters in four processes at one lock, which do nothing while they have it: by the queue, by
 * polling, and by the bare floor. Drained: all wait behind a holder, and each has one turn. Endless: each waits again
 * at once. A handoff is the time from the call of a release to the next holder's callback. Alone: one waiter has turn
 * after turn, and finds the lock free each time.
 */
#include "scenarios.h"

#include <stdio.h>
#include <time.h>

#include "check.h"
#include "floor.h"
#include "meter.h"
#include "report.h"
#include "turns.h"

enum { QUEUE, POLLING, BARE, WAYS, WAITERS = 100 };

static const struct way *const ways[WAYS] = {&by_queue, &by_polling, &bare};

/* What a way came to, one number a repetition. */
struct results {
    struct samples rate, p50, p99, commands, scripts, server_cpu, client_cpu, unfair;
};

static double ping; /* seconds, the median round trip in this run */

/* --- PING --------------------------------------------------------------------------------------------------------- */

static struct {
    struct event_base *base;
    struct samples times;
    double begun;
    int left;
} pinging;

static void ponged(redisAsyncContext *connection, void *reply, void *arg) {
    (void)arg;
    floor_expect_ok(reply);
    samples_add(&pinging.times, clock_now() - pinging.begun);
    if (--pinging.left == 0) {
        event_base_loopbreak(pinging.base);
        return;
    }
    pinging.begun = clock_now();
    floor_ping(connection, ponged, NULL);
}

static double measure_ping(void) {
    redisAsyncContext *connection;
    double median;

    pinging.base = event_base_new();
    pinging.left = 2000;
    connection = floor_connect(pinging.base, &servers[0]);
    pinging.begun = clock_now();
    floor_ping(connection, ponged, NULL);
    event_base_dispatch(pinging.base);
    redisAsyncFree(connection);
    event_base_free(pinging.base);
    median = samples_percentile(&pinging.times, 0.5);
    samples_free(&pinging.times);
    return median;
}

/* --- Measuring ---------------------------------------------------------------------------------------------------- */

static void add_handoffs(size_t from, size_t to, struct results *results) {
    struct samples times = {0};

    for (size_t i = from; i + 1 < to; i++)
        samples_add(&times, turns_at(i + 1).granted - turns_at(i).released);
    samples_add(&results->rate, (double)(to - 1 - from) / (turns_at(to - 1).granted - turns_at(from).released));
    samples_add(&results->p50, samples_percentile(&times, 0.5) / ping);
    samples_add(&results->p99, samples_percentile(&times, 0.99) / ping);
    samples_free(&times);
}

static void drain(const struct way *way, struct results *results) {
    turns_begin(&(struct crowd){.way = way, .processes = 4, .waiters = WAITERS});
    turns_let_go();
    while (turns_count() < WAITERS)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    add_handoffs(0, WAITERS, results);
    turns_end();
    check_keys(&servers[0], 0);
}

/* The most turns that a waiter had, to the fewest. */
static double unfairness(size_t waiters, const long before[WAITERS_MAX], const long after[WAITERS_MAX]) {
    long most = 0, fewest = after[0] - before[0];

    for (size_t i = 0; i < waiters; i++) {
        long turns = after[i] - before[i];
        most = turns > most ? turns : most;
        fewest = turns < fewest ? turns : fewest;
    }
    return fewest ? (double)most / (double)fewest : (double)most;
}

static void run_endless(const struct crowd *crowd, double seconds, struct results *results) {
    long before[WAITERS_MAX], after[WAITERS_MAX];
    struct timespec whole = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

    turns_begin(crowd);
    turns_let_go();
    nanosleep(&(struct timespec){0, 300000000}, NULL);
    struct cost begun = meter_begin(&servers[0]);
    double cpu = turns_cpu();
    size_t from = turns_count();
    turns_of_each(before);
    nanosleep(&whole, NULL);
    turns_of_each(after);
    size_t to = turns_count();
    cpu = turns_cpu() - cpu;
    struct cost cost = meter_end(&servers[0], &begun);
    double handoffs = (double)(to - from);
    add_handoffs(from, to, results);
    turns_end();
    check_keys(&servers[0], 0);
    CHECK(cost.sets + cost.scripts >= handoffs, "the server saw fewer commands than turns");
    samples_add(&results->commands, (cost.scripts + cost.sets - cost.messages) / handoffs);
    samples_add(&results->scripts, cost.script_time / handoffs * 1e6);
    samples_add(&results->server_cpu, cost.server_cpu / handoffs * 1e6);
    samples_add(&results->client_cpu, cpu / handoffs * 1e6);
    samples_add(&results->unfair, unfairness(crowd->waiters, before, after));
}

/* --- Reporting ---------------------------------------------------------------------------------------------------- */

static void report_times(const char *what, const struct results results[WAYS]) {
    static const struct aim none = {NO_AIM, 0};
    char name[64];

    snprintf(name, sizeof(name), "%s: handoffs", what);
    report_ratio(name, "/s", &results[QUEUE].rate, "bare", &results[BARE].rate, (struct aim){RATIO_AT_LEAST, 0.9});
    report_ratio(name, "/s", &results[QUEUE].rate, "polling", &results[POLLING].rate, none);
    for (size_t i = 0; i < WAYS; i++) {
        bool judged = i == QUEUE;
        snprintf(name, sizeof(name), "%s: a handoff by %s, p50", what, ways[i]->name);
        report_value(name, "PING", &results[i].p50, judged ? (struct aim){VALUE_AT_MOST, 1} : none);
        snprintf(name, sizeof(name), "%s: a handoff by %s, p99", what, ways[i]->name);
        report_value(name, "PING", &results[i].p99, judged ? (struct aim){VALUE_AT_MOST, 4} : none);
    }
}

static void report_costs(const struct results results[WAYS]) {
    static const struct aim none = {NO_AIM, 0};

    report_value("endless: commands a handoff, queue", "", &results[QUEUE].commands, (struct aim){VALUE_AT_MOST, 3.1});
    report_value("endless: commands a handoff, polling", "", &results[POLLING].commands, none);
    report_ratio("endless: the server's time in scripts", "us", &results[QUEUE].scripts, "bare", &results[BARE].scripts,
                 none);
    report_ratio("endless: server CPU a handoff", "us", &results[QUEUE].server_cpu, "bare", &results[BARE].server_cpu,
                 none);
    report_ratio("endless: client CPU a handoff", "us", &results[QUEUE].client_cpu, "bare", &results[BARE].client_cpu,
                 none);
    report_value("endless: most turns to fewest, queue", "", &results[QUEUE].unfair, (struct aim){VALUE_AT_MOST, 1.05});
    report_value("endless: most turns to fewest, polling", "", &results[POLLING].unfair, none);
}

/* A release that finds nobody waiting, and an acquire that finds the lock free. */
static void report_alone(const struct results results[WAYS]) {
    report_ratio("alone: turns", "/s", &results[QUEUE].rate, "bare", &results[BARE].rate,
                 (struct aim){RATIO_AT_LEAST, 0.91});
    report_ratio("alone: turns", "/s", &results[QUEUE].rate, "polling", &results[POLLING].rate,
                 (struct aim){NO_AIM, 0});
}

static void free_results(struct results results[WAYS]) {
    for (size_t i = 0; i < WAYS; i++) {
        samples_free(&results[i].rate);
        samples_free(&results[i].p50);
        samples_free(&results[i].p99);
        samples_free(&results[i].commands);
        samples_free(&results[i].scripts);
        samples_free(&results[i].server_cpu);
        samples_free(&results[i].client_cpu);
        samples_free(&results[i].unfair);
    }
}

void queue_run(bool quick) {
    struct results drained[WAYS] = {0}, endless[WAYS] = {0}, alone[WAYS] = {0};
    struct crowd crowd = {.processes = 4, .waiters = WAITERS, .endless = true};
    struct crowd one = {.processes = 1, .waiters = 1, .endless = true};

    report_section("queue", "a hundred waiters in four processes at one lock");
    servers_start(1);
    ping = measure_ping();
    for (int repetition = 0; repetition < (quick ? 3 : 11); repetition++)
        for (size_t i = 0; i < WAYS; i++)
            drain(ways[i], &drained[i]);
    report_times("drained", drained);
    for (int repetition = 0; repetition < (quick ? 2 : 5); repetition++)
        for (size_t i = 0; i < WAYS; i++) {
            crowd.way = one.way = ways[i];
            run_endless(&crowd, quick ? 0.5 : 2, &endless[i]);
            run_endless(&one, 0.5, &alone[i]);
        }
    report_times("endless", endless);
    report_costs(endless);
    report_alone(alone);
    free_results(drained);
    free_results(endless);
    free_results(alone);
    servers_stop();
}
