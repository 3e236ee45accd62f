/*
 * Every scenario, again and again: each allocation and each system call in turn is refused, once and from there on. At
 * the end it is counted where, and no place where evlock allocates may have been left out.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../redis/tls.h"
#include "scenarios.h"
#include "sites.h"

enum {
    RUN_S = 200,    /* a run that takes longer hangs */
    WRONGS_MAX = 5, /* after so many bad runs a scenario is not gone on with */
    SITES_MAX = 512,
};

static struct stage stage;
static long runs;

/* A crash or a hang says first in which run; then it takes its course. */
static void tell_run(int signal_number) {
    (void)!write(STDERR_FILENO, "\nin ", 4);
    (void)!write(STDERR_FILENO, stage.label, strlen(stage.label));
    (void)!write(STDERR_FILENO, "\n", 1);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

/* One run; whether the planned point was reached. */
static bool play(const struct scenario *scenario, enum fault_kind kind, long at, bool from_there_on, int *wrongs) {
    char label[sizeof(stage.label)], site[80];
    snprintf(label, sizeof(label), "%s, %s, point %ld, %s", scenario->name, fault_names[kind], at,
             from_there_on ? "from there on" : "once");
    alarm(RUN_S);
    faults_plan(kind, at, from_there_on);
    stage_begin(&stage, label, at < 0);
    scenario->play(&stage);
    bool fired = faults_fired();
    if (!stage_end(&stage)) {
        sites_name(faults_planned_site(), site, sizeof(site));
        print_error("%s: that was %s at %s\n", label, faults_planned_name(), site);
        ++*wrongs;
    }
    runs++;
    return fired;
}

static void every_point(const struct scenario *scenario, enum fault_kind kind, bool from_there_on, int *wrongs) {
    /* Scenarios begin alike: with a stride, each looks at other points of that. */
    long at = stage_stride() > 1 ? runs % stage_stride() : 0;
    while (*wrongs < WRONGS_MAX && play(scenario, kind, at, from_there_on, wrongs))
        at += stage_stride();
}

static bool refusable(const struct scenario *scenario, enum fault_kind kind) {
    bool aborts = scenario->listens && faults_possible(FAULT_HIREDIS) && kind != FAULT_OWN;

    return faults_possible(kind) && !aborts;
}

static void refuse(void **state) {
    const struct scenario *scenario = *state;
    const char *only = getenv("EVLOCK_TEST_FAULT"); /* "KIND POINT ON", as numbers, to look at one run */
    int wrongs = 0, kind, on;
    long at;
    if (only && sscanf(only, "%d %ld %d", &kind, &at, &on) == 3) {
        play(scenario, (enum fault_kind)kind, at, on, &wrongs);
        assert_int_equal(wrongs, 0);
        return;
    }
    play(scenario, FAULT_OWN, -1, false, &wrongs);
    for (kind = 0; kind < FAULT_KINDS; kind++)
        for (on = 0; on < 2 && refusable(scenario, (enum fault_kind)kind); on++)
            every_point(scenario, (enum fault_kind)kind, on, &wrongs);
    assert_int_equal(wrongs, 0);
}

/* In a process where evlock has not been used yet: 0 when all is well. */
static int fork_unaided(void) {
    static evlock_client *client; /* what the process ends with is still to be found there */
    static struct test_loop *loop;
    int status;
    faults_plan(FAULT_SYSTEM, 0, true);
    loop = loop_new();
    faults_arm();
    if (evlock_client_new(&client, loop_for_evlock(loop), stage_servers[0].url, NULL) != EVLOCK_OK)
        return 1;
    faults_disarm();
    if (strcmp(faults_planned_name(), "forks_refused") != 0)
        return 2;
    pid_t child = fork();
    if (child == 0)
        _exit(evlock_client_close(client, NULL, NULL) == EVLOCK_EFORKED ? 0 : 3);
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return 4;
    return WEXITSTATUS(status);
}

/* The first test, since a process asks to be told of its forks once. */
CASE(a_fork_is_noticed_where_nothing_tells_of_it) {
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(fork_unaided());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* A line of the source where evlock allocates; the compiler may have made several calls of it. */
struct place {
    char name[80];
    bool refused;
};

static size_t find_places(struct place *places) {
    static const char *const allocators[] = {"__wrap_evl_alloc",
                                             "__wrap_evl_resize",
                                             "__wrap_evl_dup",
                                             "__wrap_evl_pool_alloc",
                                             "__wrap_evl_secret_make",
                                             "__wrap_evl_slab_alloc",
                                             NULL};
    uintptr_t sites[SITES_MAX];
    size_t site_count = sites_of(allocators, sites, SITES_MAX), count = 0;
    for (size_t i = 0; i < site_count; i++) {
        struct place *place = places;
        char name[sizeof(place->name)];
        sites_name(sites[i], name, sizeof(name));
        while (place < places + count && strcmp(place->name, name) != 0)
            place++;
        if (place == places + count)
            memcpy(places[count++].name, name, sizeof(name));
        place->refused |= faults_refused_at(FAULT_OWN, sites[i]);
    }
    return count;
}

static bool is_of_tls(const struct place *place) {
    return strncmp(place->name, "tls.c:", 6) == 0 || strncmp(place->name, "tls_", 4) == 0;
}

/* What is linked in and idle: the adapter for libevent when the loop is libuv's, and TLS when the servers have none. */
static bool is_idle(const struct place *place) {
    const char *loop = getenv("EVLOCK_TEST_LOOP");
    bool on_uv = loop && strcmp(loop, "libuv") == 0;
    return (on_uv && strncmp(place->name, "libevent.c:", 11) == 0) || (!tls_wanted() && is_of_tls(place));
}

/* A run that takes a part of the points owes what no other run meets. */
static bool is_owed(const struct place *place) {
    return stage_stride() > 1 ? tls_wanted() && is_of_tls(place) : !is_idle(place);
}

CASE(no_place_is_left_out) {
    static struct place places[SITES_MAX];
    size_t count = find_places(places), refused = 0, missed = 0;
    for (size_t i = 0; i < count; i++) {
        refused += places[i].refused;
        missed += !places[i].refused && is_owed(&places[i]);
        if (!places[i].refused)
            print_message("never refused: %s\n", places[i].name);
    }
    print_message("%ld runs\n", runs);
    print_message("%s: %ld refusals, at %zu of %zu places\n", fault_names[FAULT_OWN], faults_refused(FAULT_OWN),
                  refused, count);
    for (int kind = FAULT_OWN + 1; kind < FAULT_KINDS; kind++)
        print_message("%s: %ld refusals, at %zu sites\n", fault_names[kind], faults_refused((enum fault_kind)kind),
                      faults_sites((enum fault_kind)kind));
    if (getenv("EVLOCK_TEST_FAULT") || getenv("EVLOCK_TEST_FILTER"))
        return; /* a part of it only */
    assert_true(count > 1 || stage_stride() > 1);
    assert_int_equal(missed, 0);
}

int main(void) {
    struct CMUnitTest tests[64] = {{0}};
    size_t count = 0;
    const char *missing = server_missing();
    if (missing) {
        printf("%s\n", missing);
        return 77;
    }
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(a_fork_is_noticed_where_nothing_tells_of_it);
    for (size_t i = 0; i < scenario_count; i++)
        tests[count++] = (struct CMUnitTest){scenarios[i].name, refuse, NULL, NULL, (void *)(uintptr_t)&scenarios[i]};
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(no_place_is_left_out);
    faults_install();
    signal(SIGSEGV, tell_run);
    signal(SIGABRT, tell_run);
    signal(SIGALRM, tell_run);
    cmocka_set_test_filter(getenv("EVLOCK_TEST_FILTER"));
    return _cmocka_run_group_tests("failures", tests, count, stage_servers_start, stage_servers_stop);
}
