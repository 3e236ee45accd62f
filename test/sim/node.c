/* The nodes; see node.h. */
#include "node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge.h"
#include "reach.h"
#include "wire.h"

_Static_assert(2 * NODES_MAX <= SOCKET_PLACES, "each node has two places");

static void listen_at(const struct node *node, bool listens) {
    sockets_listen(node->index, listens);
    sockets_listen(node->index + NODES_MAX, listens);
}

static void listen_again(void *arg) {
    struct node *node = arg;

    node->refuses = false;
    listen_at(node, true);
}

/* --- Replicas that are behind ------------------------------------------------------------------------------------- */

/* The sessions that waited for it go on. */
static void resume(struct node *node) {
    struct wire *wire, *next;

    node_now(node);
    for (wire = TAILQ_FIRST(&node->world->wires); wire; wire = next) {
        next = TAILQ_NEXT(wire, link);
        if (wire->node == node && wire->session)
            wire_resume(wire);
    }
    node_fed(node);
}

static void on_wait_over(void *arg) {
    resume(arg);
}

static void on_sync(void *arg) {
    struct replica *replica = arg;
    struct node *node = replica->node;

    if (replica->copy)
        sim_server_free(replica->copy);
    replica->copy = sim_server_copy(node_now(node));
    replica->received = sim_server_written(node->server);
    sim_server_received(node->server, replica->index, replica->received);
    resume(node);
}

/* Mostly a moment; at times for longer than anybody waits. */
static int64_t draw_lag(struct world *world) {
    bool held = !world->calm && draw_chance(world, 5);
    return held ? draw_magnitude(world, world->plan.latency, world->plan.unit)
                : draw_between(world, world->plan.latency / 4, world->plan.latency);
}

static void plan_waits(struct node *node) {
    const struct wire *wire;
    int64_t first = INT64_MAX;

    TAILQ_FOREACH (wire, &node->world->wires, link)
        if (wire->node == node && wire->session && sim_session_waits(wire->session) < first)
            first = sim_session_waits(wire->session);
    agenda_set(&node->world->agenda, &node->waits,
               first == INT64_MAX ? NEVER : clock_when(&node->clock, first > node->clock.local ? first : 0));
}

void node_fed(struct node *node) {
    struct world *world = node->world;

    if (!world->plan.lagging)
        return;
    for (unsigned i = 0; i < node->replicas; i++) {
        struct replica *replica = &node->behind[i];
        if (replica->received < sim_server_written(node->server) && replica->sync.place == 0)
            agenda_set(&world->agenda, &replica->sync, world->now + draw_lag(world));
    }
    plan_waits(node);
}

bool node_fail_over(struct node *node, unsigned index, int64_t step) {
    struct world *world = node->world;
    struct replica *replica = &node->behind[index];
    sim_server *copy = replica->copy;

    if (!copy)
        return false;
    clock_change(&node->clock, world->now, draw_between(world, -world->plan.drift_ppm, world->plan.drift_ppm));
    clock_step(&node->clock, step);
    replica->copy = NULL;
    sim_server_become(node_now(node), copy, false);
    for (unsigned i = 0; i < REPLICAS_MAX; i++) {
        node->behind[i].received = -1;
        agenda_set(&world->agenda, &node->behind[i].sync, NEVER);
    }
    node_fed(node);
    return true;
}

static void refuse_to_kill(struct node *node) {
    sim_server_refuse(node->server, "client|kill", "NOPERM this user has no permissions to run it", UINT32_MAX);
}

/* By its own command: scripts go on. */
static void refuse_to_delete(struct node *node) {
    const char *verb = node->world->plan.make == SIM_VALKEY_9 ? "delifeq" : "delex";

    sim_server_refuse(node->server, verb, "NOPERM this user has no permissions to run it", UINT32_MAX);
}

/* Who keeps its server, its clock, and what is known of its data. */
static struct node *node_former(const struct node *node) {
    struct node *former = calloc(1, sizeof(*former));

    former->world = node->world;
    former->index = node->index;
    former->former = true;
    former->server = node->server;
    former->clock = node->clock;
    former->paused_until = node->paused_until;
    former->away_until = node->away_until;
    former->replaced_at = node->replaced_at;
    former->refused_until = node->refused_until;
    former->refused = node->refused;
    former->lied = node->lied;
    former->spares = node->spares;
    sim_server_watch(former->server, judge_watch, judge_refused, former);
    return former;
}

struct node *node_succeed(struct node *node, sim_server *copy, sim_server *known, int64_t step) {
    struct world *world = node->world;
    struct node *former = node_former(node);

    node->server = known ? known : sim_server_new((unsigned)draw(world));
    clock_change(&node->clock, world->now, draw_between(world, -world->plan.drift_ppm, world->plan.drift_ppm));
    clock_step(&node->clock, step);
    sim_server_become(node_now(node), copy, known != NULL);
    sim_server_watch(node->server, judge_watch, judge_refused, node);
    sim_server_set_replicas(node->server, node->replicas);
    if (world->plan.no_kill)
        refuse_to_kill(node);
    node->paused_until = 0;
    node->replaced_at = world->now;
    return former;
}

sim_server *node_retire(struct node *former) {
    sim_server *server = former->server;

    free(former);
    return server;
}

static void begin_replicas(struct node *node) {
    node->waits = (struct event){.happen = on_wait_over, .arg = node, .at = NEVER};
    for (unsigned i = 0; i < REPLICAS_MAX; i++)
        node->behind[i] = (struct replica){.node = node,
                                           .index = i,
                                           .received = -1,
                                           .sync = {.happen = on_sync, .arg = &node->behind[i], .at = NEVER}};
    if (node->world->plan.lagging)
        sim_server_lag(node->server);
}

static void end_replicas(struct node *node) {
    agenda_set(&node->world->agenda, &node->waits, NEVER);
    for (unsigned i = 0; i < REPLICAS_MAX; i++) {
        agenda_set(&node->world->agenda, &node->behind[i].sync, NEVER);
        if (node->behind[i].copy)
            sim_server_free(node->behind[i].copy);
    }
}

static void set_right(void *arg) {
    struct node *node = arg;

    clock_step(&node->clock, node->slow_by);
    node->slow_by = 0;
    note(node->world, NULL, "the clock of node %u is set right", node->index);
}

void node_be_slow(struct node *node, int64_t by, int64_t until) {
    clock_step(&node->clock, node->slow_by - by);
    node->slow_by = by;
    agenda_set(&node->world->agenda, &node->right, until);
}

/* --- Life --------------------------------------------------------------------------------------------------------- */

struct node *node_new(struct world *world, unsigned index) {
    struct node *node = calloc(1, sizeof(*node));
    int64_t spread = world->plan.cluster ? 2 * world->plan.unit : world->plan.unit / 8;

    node->world = world;
    node->index = index;
    node->server = sim_server_new((unsigned)draw(world));
    /* Clocks agree about the time of day as far as servers' do; nothing but the numbers of fences depends on it, and
     * in a cluster those go along with their slots. */
    node->clock = (struct clock){world->now, INT64_C(1700000000) * SECOND + draw_between(world, 0, spread),
                                 draw_between(world, -world->plan.drift_ppm, world->plan.drift_ppm)};
    sim_server_set_make(node->server, world->plan.make);
    node->open.happen = listen_again;
    node->open.arg = node;
    node->replaced_at = NEVER;
    snprintf(node->path, sizeof(node->path), SOCKETS_FOLDER "%u", index);
    snprintf(node->other_path, sizeof(node->other_path), SOCKETS_FOLDER "%u", index + NODES_MAX);
    listen_again(node);
    sim_server_watch(node_now(node), judge_watch, judge_refused, node);
    /* It has been running for long, or it would be excluded by those that count on several. */
    sim_server_set_time(node->server, node->clock.local - 3600 * SECOND);
    sim_server_restart(node->server, false, true);
    node->right = (struct event){.happen = set_right, .arg = node};
    begin_replicas(node);
    if (world->plan.replicas)
        node_replicate(node, REPLICAS_MAX);
    node->spares = world->plan.no_kill;
    if (node->spares)
        refuse_to_kill(node);
    if (world->plan.upgraded)
        refuse_to_delete(node);
    return node;
}

void node_free(struct node *node) {
    agenda_set(&node->world->agenda, &node->open, NEVER);
    listen_at(node, false);
    end_replicas(node);
    agenda_set(&node->world->agenda, &node->right, NEVER);
    if (node->copy)
        sim_server_free(node->copy);
    sim_server_free(node->server);
    free(node);
}

sim_server *node_now(struct node *node) {
    sim_server_set_time(node->server, clock_read(&node->clock, node->world->now));
    return node->server;
}

void node_replicate(struct node *node, unsigned replicas) {
    for (unsigned i = 0; i <= node->replicas; i++)
        node->had[i] = node->world->now;
    node->replicas = replicas;
    sim_server_set_replicas(node->server, replicas);
    for (unsigned i = replicas; i < REPLICAS_MAX; i++)
        agenda_set(&node->world->agenda, &node->behind[i].sync, NEVER);
    node_fed(node);
}

bool node_had(const struct node *node, unsigned replicas, int64_t since) {
    return node->replicas >= replicas || node->had[replicas] >= since;
}

void node_refuse(struct node *node, int64_t until) {
    node->refuses = true;
    reach_away(node, until);
    listen_at(node, false);
    agenda_set(&node->world->agenda, &node->open, until);
}
