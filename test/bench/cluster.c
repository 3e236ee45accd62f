/*
 * Pairs in a cluster of three masters: evlock beside a floor that knows where each slot is. All masters share the cores
 * that the benchmark leaves them.
 */
#include "scenarios.h"

#include "cluster_floor.h"
#include "pairs.h"

static const size_t levels[] = {1, 64, 1000};

static struct {
    struct event_base *base;
    struct cluster *cluster;
    struct keepers masters;
} run;

static void measure_evlock(size_t level, long pairs, struct pair_costs *costs) {
    struct locks locks;
    locks_open_at(&locks, run.base, run.cluster->url, level, NULL);
    pairs_measure_locks(&locks, run.masters, pairs, costs);
}

static void measure_floor(size_t level, long pairs, struct pair_costs *costs) {
    struct cluster_floor *floor = cluster_floor_open(run.base, run.masters, level);
    cluster_floor_run(floor, WARM_UP + (long)level);
    pairs_measure(run.masters, cluster_floor_run, floor, pairs, costs);
    cluster_floor_close(floor);
}

void cluster_run(bool quick) {
    report_section("cluster", "acquire and release on distinct free keys in a cluster of three masters");
    run.cluster = servers_start_cluster();
    run.masters = (struct keepers){run.cluster->nodes, run.cluster->masters};
    run.base = event_base_new();
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        struct pair_costs ours = {0}, raw = {0};
        long pairs = levels[i] == 1 ? PAIRS_ALONE : PAIRS;
        for (int repetition = 0; repetition < (quick ? 3 : 7); repetition++) {
            if (repetition % 2)
                measure_floor(levels[i], pairs, &raw);
            measure_evlock(levels[i], pairs, &ours);
            if (repetition % 2 == 0)
                measure_floor(levels[i], pairs, &raw);
        }
        pairs_report(levels[i], &ours, &raw);
        pairs_forget(&ours);
        pairs_forget(&raw);
    }
    event_base_free(run.base);
    servers_stop();
}
