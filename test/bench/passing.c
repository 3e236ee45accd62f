/*
 * Passing on: waiters at one lock, by the queue as it is by default, by the queue with leases that are passed on 64
 * times at most, and by the bare floor. A hundred of them in four processes or in one, who hold for no time or for a
 * millisecond, drained or endless; then more and fewer of them. See queue.c.
 */
#include "scenarios.h"

#include <stdio.h>
#include <time.h>

#include "check.h"
#include "meter.h"
#include "report.h"
#include "turns.h"

enum { PASSING, QUEUE, POLLING, BARE, WAYS, HUNDRED = 100 };

static const struct way *const ways[WAYS] = {&by_passing, &by_queue, &by_polling, &bare};
static const struct aim none = {NO_AIM, 0};

/* What a way came to, one number a repetition. */
struct results {
    struct samples drained, endless, server_cpu, client_cpu, waited;
};

static void free_results(struct results results[WAYS]) {
    for (size_t i = 0; i < WAYS; i++) {
        samples_free(&results[i].drained);
        samples_free(&results[i].endless);
        samples_free(&results[i].server_cpu);
        samples_free(&results[i].client_cpu);
        samples_free(&results[i].waited);
    }
}

/* --- Measuring ---------------------------------------------------------------------------------------------------- */

static void pause_for(double seconds) {
    nanosleep(&(struct timespec){(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)}, NULL);
}

/* From the call of a release to a grant, so many handoffs later. */
static double rate_of(size_t from, size_t to) {
    CHECK(to > from + 1, "no handoffs");
    return (double)(to - 1 - from) / (turns_at(to - 1).granted - turns_at(from).released);
}

static void drain(struct crowd crowd, struct results *results) {
    crowd.endless = false;
    turns_begin(&crowd);
    turns_let_go();
    while (turns_count() < crowd.waiters)
        pause_for(0.001);
    samples_add(&results->drained, rate_of(0, crowd.waiters));
    turns_end();
    check_keys(&servers[0], 0);
}

static void run_endless(struct crowd crowd, double seconds, struct results *results) {
    crowd.endless = true;
    turns_begin(&crowd);
    turns_let_go();
    pause_for(0.3);
    struct cost begun = meter_begin(&servers[0]);
    double cpu = turns_cpu();
    size_t from = turns_count();
    pause_for(seconds);
    size_t to = turns_count();
    cpu = turns_cpu() - cpu;
    struct cost cost = meter_end(&servers[0], &begun);
    samples_add(&results->endless, rate_of(from, to));
    samples_add(&results->server_cpu, cost.server_cpu / (double)(to - from) * 1e6);
    samples_add(&results->client_cpu, cpu / (double)(to - from) * 1e6);
    samples_add(&results->waited, (double)turns_most_waited() / (double)crowd.waiters);
    turns_end();
    check_keys(&servers[0], 0);
}

/* --- A hundred ---------------------------------------------------------------------------------------------------- */

/* The aims are for those who hold for no time: else the time is theirs. */
static void report_handoffs(const char *who, const struct crowd *crowd, const struct results results[WAYS]) {
    bool judged = crowd->hold_ms == 0, alone = crowd->processes == 1;
    const struct results *passing = &results[PASSING], *queue = &results[QUEUE];
    char name[96];

    snprintf(name, sizeof(name), "%s, endless: handoffs", who);
    report_ratio(name, "/s", &passing->endless, "today", &queue->endless,
                 judged && !alone ? (struct aim){RATIO_AT_LEAST, 25} : none);
    report_ratio(name, "/s", &passing->endless, "bare", &results[BARE].endless, none);
    if (judged && alone)
        report_value(name, "/s", &passing->endless, (struct aim){VALUE_AT_LEAST, 300000});
    snprintf(name, sizeof(name), "%s, drained: handoffs", who);
    report_ratio(name, "/s", &passing->drained, "today", &queue->drained, none);
    report_ratio(name, "/s", &passing->drained, "bare", &results[BARE].drained, none);
}

static void report_costs(const char *who, const struct crowd *crowd, const struct results results[WAYS]) {
    bool judged = crowd->hold_ms == 0 && crowd->processes > 1;
    const struct results *passing = &results[PASSING], *queue = &results[QUEUE];
    char name[96];

    snprintf(name, sizeof(name), "%s: server CPU a handoff", who);
    report_ratio(name, "us", &passing->server_cpu, "today", &queue->server_cpu,
                 judged ? (struct aim){RATIO_AT_MOST, 0.04} : none);
    report_ratio(name, "us", &passing->server_cpu, "bare", &results[BARE].server_cpu, none);
    snprintf(name, sizeof(name), "%s: client CPU a handoff", who);
    report_ratio(name, "us", &passing->client_cpu, "today", &queue->client_cpu, none);
    snprintf(name, sizeof(name), "%s: holds while one waits, a waiter", who);
    report_value(name, "", &passing->waited, (struct aim){VALUE_NEVER_MORE, 3});
}

static void measure_hundred(const struct crowd *like, bool quick) {
    struct results results[WAYS] = {0};
    struct crowd crowd = *like;
    char who[48];

    snprintf(who, sizeof(who), "%zu process%s, %d ms", crowd.processes, crowd.processes > 1 ? "es" : "", crowd.hold_ms);
    for (int repetition = 0; repetition < (quick ? 3 : 5); repetition++)
        for (size_t i = 0; i < WAYS; i++) {
            crowd.way = ways[i];
            if (i == POLLING)
                continue;
            drain(crowd, &results[i]);
            run_endless(crowd, quick ? 0.5 : 1.5, &results[i]);
        }
    report_handoffs(who, &crowd, results);
    report_costs(who, &crowd, results);
    free_results(results);
}

/* --- More and fewer ----------------------------------------------------------------------------------------------- */

/* The figures are those of a picture: test/bench/run draws it. */
static void measure_crowds(bool quick) {
    static const size_t sizes[] = {4, 12, 40, 100, 200, 400};
    char name[96];

    for (size_t size = 0; size < sizeof(sizes) / sizeof(sizes[0]); size++) {
        struct results results[WAYS] = {0};
        for (int repetition = 0; repetition < (quick ? 1 : 3); repetition++)
            for (size_t i = 0; i < WAYS; i++)
                run_endless((struct crowd){.way = ways[i], .processes = 4, .waiters = sizes[size]}, 0.5, &results[i]);
        for (size_t i = 0; i < WAYS; i++) {
            snprintf(name, sizeof(name), "%zu waiters: handoffs, %s", sizes[size], ways[i]->name);
            report_value(name, "/s", &results[i].endless, none);
        }
        free_results(results);
    }
}

void passing_run(bool quick) {
    static const struct crowd crowds[] = {
        {.processes = 4, .waiters = HUNDRED},
        {.processes = 1, .waiters = HUNDRED},
        {.processes = 4, .waiters = HUNDRED, .hold_ms = 1},
        {.processes = 1, .waiters = HUNDRED, .hold_ms = 1},
    };

    report_section("passing", "a hundred waiters at one lock; a lease is passed on 64 times at most");
    servers_start(1);
    for (size_t i = 0; i < sizeof(crowds) / sizeof(crowds[0]); i++)
        measure_hundred(&crowds[i], quick);
    measure_crowds(quick);
    servers_stop();
}
