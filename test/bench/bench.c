/*
 * The benchmark: evlock beside the raw floor, on real servers of its own, scenario by scenario. Prints a table, and
 * writes JSON when asked. Exits with 0 also when an aim is missed, since figures depend on the machine, and with 1 when
 * what was measured was not so.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "report.h"
#include "scenarios.h"
#include "tally.h"

static const struct scenario {
    const char *name;
    void (*run)(bool quick);
} scenarios[] = {
    {"memory", memory_run},   {"latency", latency_run}, {"pairs", pairs_run},     {"queue", queue_run},
    {"passing", passing_run}, {"quorum", quorum_run},   {"growth", growth_run},   {"renewal", renewal_run},
    {"silence", silence_run}, {"herd", herd_run},       {"cluster", cluster_run},
#ifdef EVLOCK_BENCH_TLS
    {"tls", tls_run},
#endif
};
enum { SCENARIOS = sizeof(scenarios) / sizeof(scenarios[0]) };

static int usage(void) {
    fprintf(stderr, "usage: bench [--quick] [--json FILE] [SCENARIO...]\nscenarios:");
    for (size_t i = 0; i < SCENARIOS; i++)
        fprintf(stderr, " %s", scenarios[i].name);
    fputc('\n', stderr);
    return 2;
}

static bool mark(const char *name, bool chosen[SCENARIOS]) {
    for (size_t i = 0; i < SCENARIOS; i++)
        if (strcmp(name, scenarios[i].name) == 0)
            return chosen[i] = true;
    return false;
}

int main(int argc, char **argv) {
    bool chosen[SCENARIOS] = {false}, quick = false, some = false;
    const char *json = NULL;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            quick = true;
        else if (strcmp(argv[i], "--json") == 0 && i + 1 < argc)
            json = argv[++i];
        else if (mark(argv[i], chosen))
            some = true;
        else
            return usage();
    }
    tally_install();
    report_begin();
    for (size_t i = 0; i < SCENARIOS; i++)
        if (!some || chosen[i])
            scenarios[i].run(quick);
    report_end(json);
    return 0;
}
