/* Scenarios; see scenario.h. */
#include "scenario.h"

#include "world.h"

const struct scenario scenarios[] = {
    {.name = "single", .summary = "one node that keeps its data", .few = 1, .many = 1, .exclusive = true, .share = 29},
    {.name = "single-loss",
     .summary = "one node that loses its data: nothing excludes, all else holds",
     .few = 1,
     .many = 1,
     .loses_data = true,
     .share = 7},
    {.name = "lingering",
     .summary = "one node that ends no connection for its clients, who use their tokens again",
     .few = 1,
     .many = 1,
     .exclusive = true,
     .lingers = true,
     .share = 3},
    {.name = "quorum",
     .summary = "three or five nodes that restart without their data, or as stale copies",
     .few = 3,
     .many = 5,
     .exclusive = true,
     .loses_data = true,
     .share = 24},
    {.name = "fence",
     .summary = "one or three nodes, and a fence with every acquire",
     .few = 1,
     .many = 3,
     .exclusive = true,
     .loses_data = false,
     .fences = true,
     .share = 8},
    {.name = "drift-beyond",
     .summary = "clocks that run apart by more than is allowed: two holders must be seen",
     .few = 1,
     .many = 1,
     .beyond = true,
     .must_overlap = true,
     .share = 5},
    {.name = "queue",
     .summary = "one node that keeps its data, and handles that wait in line",
     .few = 1,
     .many = 1,
     .queue = true,
     .exclusive = true,
     .share = 15},
    {.name = "queue-loss",
     .summary = "the same, on a node that loses its data",
     .few = 1,
     .many = 1,
     .queue = true,
     .loses_data = true,
     .share = 3},
    {.name = "queue-step",
     .summary = "the same, on a node whose clock jumps: two holders must be seen",
     .few = 1,
     .many = 1,
     .queue = true,
     .steps = true,
     .must_overlap = true,
     .share = 2},
    {.name = "failover",
     .summary = "one node whose place its replicas take, which may be behind; locks want all of them to know",
     .few = 1,
     .many = 1,
     .exclusive = true,
     .fails_over = true,
     .share = 4},
    {.name = "failover-step",
     .summary = "the same, with clocks of their own: two holders must be seen",
     .few = 1,
     .many = 1,
     .fails_over = true,
     .steps = true,
     .must_overlap = true,
     .share = 1},
    {.name = "failover-wait",
     .summary = "one node that loses its data, and clients that wait out what it may have forgotten",
     .few = 1,
     .many = 1,
     .exclusive = true,
     .loses_data = true,
     .waits = true,
     .share = 4},
    {.name = "failover-two",
     .summary = "one node whose place another server takes, while it goes on for as long as clients wait",
     .few = 1,
     .many = 1,
     .exclusive = true,
     .waits = true,
     .promotes = true,
     .share = 3},
    {.name = "failover-two-long",
     .summary = "the same, and it goes on for longer: two holders must be seen",
     .few = 1,
     .many = 1,
     .waits = true,
     .promotes = true,
     .must_overlap = true,
     .share = 1},
    {.name = "cluster",
     .summary = "two masters of a cluster, between which slots move, and a replica of each",
     .few = 1,
     .many = 1,
     .exclusive = true,
     .cluster = true,
     .share = 5},
    {.name = "cluster-queue",
     .summary = "the same, and handles that wait in line",
     .few = 1,
     .many = 1,
     .queue = true,
     .exclusive = true,
     .cluster = true,
     .share = 4},
    {.name = "cluster-gap",
     .summary = "the same, with moves given up at one end, and failovers amid them: two holders must be seen",
     .few = 1,
     .many = 1,
     .cluster = true,
     .gaps = true,
     .must_overlap = true,
     .share = 1},
    {.name = "native",
     .summary = "one or three nodes that renew and delete by commands of their own",
     .few = 1,
     .many = 3,
     .exclusive = true,
     .native = true,
     .share = 6},
    {.name = "crowd",
     .summary = "one or three nodes, and up to hundreds of handles a process, on as many keys",
     .few = 1,
     .many = 3,
     .exclusive = true,
     .crowds = true,
     .share = 2},
    {.name = "passing",
     .summary = "one or three nodes, and handles that pass their leases on to others of their client",
     .few = 1,
     .many = 3,
     .exclusive = true,
     .passes = true,
     .share = 5},
    {.name = "passing-queue",
     .summary = "one node, and handles of one client that wait in line together, and pass their leases on",
     .few = 1,
     .many = 1,
     .queue = true,
     .exclusive = true,
     .passes = true,
     .share = 5},
};
const size_t scenario_count = sizeof(scenarios) / sizeof(scenarios[0]);

/* Very many handles, which mostly share their options, on about as many keys; and not for long. */
static void plan_crowd(struct world *world, struct plan *plan) {
    plan->crowd = plan->bursts = plan->shared = true;
    plan->processes = draw_chance(world, 70) ? 1 : 2;
    plan->handles = (unsigned)draw_magnitude(world, 30, KEYS_MAX);
    plan->keys = plan->handles;
    plan->length = plan->unit * draw_between(world, 2, 4);
    plan->bad_bytes /= 4;
    plan->latency = draw_magnitude(world, 200, plan->unit / 1000);
}

/* Locks that want all replicas to know of them, often many at once, so that one waits for the other. */
static void plan_failover(struct plan *plan, struct world *world) {
    plan->replicas = plan->lagging = true;
    plan->eternal = plan->outlasts = false;
    plan->bursts = draw_chance(world, 60);
    if (plan->bursts)
        plan->keys = plan->handles = (unsigned)draw_between(world, 2, 12);
}

/* Clients on both servers, whose leases end and begin while there are two. */
static void plan_promotions(struct plan *plan, struct world *world) {
    plan->closed = draw_magnitude(world, plan->unit / 16, plan->unit);
    plan->fault_gap = draw_magnitude(world, plan->unit / 10, plan->unit);
    plan->processes = (unsigned)draw_between(world, 2, 4);
    plan->replicas = false; /* the one that takes over is not counted */
}

/* Its clients ask who has which slot once in a second at most. The servers' errors are those of slots that move. */
static void plan_cluster(struct plan *plan, struct world *world) {
    plan->cluster = true;
    plan->servers = 4;
    plan->unit = draw_magnitude(world, SECOND, 40 * SECOND);
    plan->length = plan->unit * draw_between(world, 3, 12);
    plan->latency = draw_magnitude(world, 200, plan->unit / 100);
    plan->max_ttl = plan->unit * draw_between(world, 1, 2);
    if (plan->fault_gap != NEVER)
        plan->fault_gap = draw_magnitude(world, plan->unit / 10, plan->unit * 3);
    plan->keys = (unsigned)draw_between(world, 1, 6);
    plan->handles = plan->keys > 2 ? (unsigned)draw_between(world, 2, 8) : plan->handles;
    plan->processes = (unsigned)draw_between(world, 1, 3);
    plan->errors = plan->replicas = plan->eternal = plan->breaks = false;
    plan->fences &= !world->scenario->gaps; /* where the counter may be out of reach */
}

/* Several handles of one client on the same lock, on equal terms. */
static void plan_passes(struct plan *plan, struct world *world) {
    plan->shared = true;
    plan->handles = (unsigned)draw_between(world, 3, 8);
    plan->processes = (unsigned)draw_between(world, 1, 3);
    plan->keys = draw_chance(world, 90) ? 1 : KEYS_FEW;
}

/* What is sent late may cut what was extended meanwhile. */
static void plan_natives(struct plan *plan, struct world *world) {
    plan->make = draw_chance(world, 50) ? SIM_VALKEY_9 : SIM_REDIS_8;
    plan->upgraded = draw_chance(world, 25);
    plan->no_kill |= draw_chance(world, 50);
    plan->extends |= plan->no_kill;
}

void scenario_plan(struct world *world, struct plan *plan) {
    const struct scenario *scenario = world->scenario;

    plan->unit = draw_magnitude(world, 100 * MS, 40 * SECOND);
    plan->length = plan->unit * draw_between(world, 3, 12);
    plan->latency = draw_magnitude(world, 200, plan->unit / 50);
    plan->fault_gap = draw_chance(world, 10) ? NEVER : draw_magnitude(world, plan->unit / 10, plan->unit * 3);
    plan->max_ttl = plan->unit * draw_between(world, 1, 2);
    plan->drift_ppm = scenario->beyond ? 60000 : draw_chance(world, 70) ? 4900 : 0;
    plan->nodes = draw_chance(world, 60) ? scenario->few : scenario->many;
    plan->servers = plan->nodes;
    plan->processes = (unsigned)draw_between(world, 1, 4);
    plan->keys = draw_chance(world, 70) ? 1 : KEYS_FEW;
    plan->handles = (unsigned)draw_between(world, 1, 4);
    plan->bad_bytes = draw_chance(world, 20) ? 0 : (unsigned)draw_magnitude(world, 1, 100);
    plan->durable = plan->nodes > 1 && draw_chance(world, 15);
    plan->twins = plan->nodes > 1 && draw_chance(world, 12);
    plan->distrust = plan->nodes > 1 && !plan->durable && draw_chance(world, 15);
    plan->fences = scenario->fences || draw_chance(world, 15);
    plan->breaks = draw_chance(world, 15);
    plan->own_tokens = draw_chance(world, 25);
    plan->eternal = plan->nodes == 1 && !scenario->waits && draw_chance(world, 5);
    plan->errors = draw_chance(world, 30);
    plan->lag = draw_chance(world, 25);
    plan->outlasts = draw_chance(world, plan->nodes == 1 ? 100 : 10);
    plan->no_kill = draw_chance(world, 15);
    plan->patient = draw_chance(world, 10);
    if (scenario->lingers)
        plan->no_kill = plan->own_tokens = plan->patient = true;
    plan->extends = plan->no_kill || draw_chance(world, 10);
    plan->replicas = draw_chance(world, 15);
    plan->shared = draw_chance(world, 40);
    if (scenario->native)
        plan_natives(plan, world);
    if (scenario->waits)
        plan->closed = draw_magnitude(world, MS, plan->unit / 4);
    if (scenario->promotes)
        plan_promotions(plan, world);
    if (scenario->crowds)
        plan_crowd(world, plan);
    if (scenario->fails_over)
        plan_failover(plan, world);
    if (scenario->cluster)
        plan_cluster(plan, world);
    if (scenario->queue) { /* more of them, for the same lock */
        plan->processes += (unsigned)draw_between(world, 0, 2);
        plan->handles += (unsigned)draw_between(world, 0, 2);
        plan->keys = draw_chance(world, 85) ? 1 : KEYS_FEW;
        plan->late_grants = draw_chance(world, 25);
    }
    if (scenario->passes)
        plan_passes(plan, world);
}
