/* Promotions; see promotion.h. */
#include "promotion.h"

#include <inttypes.h>

#include "judge.h"
#include "node.h"
#include "process.h"
#include "reach.h"
#include "wire.h"

/* For how long the server of before serves. Where no harm may come of it, clients wait as long; often not a moment
 * longer. */
static int64_t draw_stay(struct world *world) {
    const struct plan *plan = &world->plan;

    if (!world->scenario->exclusive)
        return plan->closed + draw_between(world, plan->unit / 2, 5 * plan->unit);
    return draw_chance(world, 60) ? plan->closed : draw_between(world, 1, plan->closed);
}

/* Its data count no more, and what still lies in its sockets is never run. */
static void part(void *arg) {
    struct world *world = arg;
    struct promotion *promotion = &world->promotion;
    struct node *former = promotion->former;
    struct wire *wire;

    note(world, NULL, "the server of before is none any more");
    judge_forgets(world->judge, former);
    sim_server_kill_sessions(node_now(former));
    TAILQ_FOREACH (wire, &world->wires, link)
        if (wire->node == former)
            wire->node = world->nodes[0];
    promotion->former = NULL;
    if (promotion->process)
        sim_server_free(promotion->process);
    promotion->process = node_retire(former);
}

/* The process is told to go where the new server is: it has left the old one, where what it has sent may still run. */
static void leave(struct process *process) {
    struct world *world = process->world;
    int64_t until = world->now + draw_between(world, 0, 2 * world->plan.closed);
    struct wire *wire, *next;

    for (wire = TAILQ_FIRST(&process->wires); wire; wire = next) {
        next = TAILQ_NEXT(wire, local);
        if (wire->node == world->promotion.former && draw_chance(world, 80))
            wire_strand(wire, until);
        else if (wire->node == world->promotion.former)
            wire_reset(wire, draw_chance(world, 50), true);
    }
}

static void promote(void *arg) {
    struct world *world = arg;
    struct promotion *promotion = &world->promotion;
    struct node *node = world->nodes[0];
    int64_t stay = draw_stay(world);
    /* The numbers of fences depend on the time of day, and so far servers agree about it. */
    int64_t step = world->plan.fences ? world->plan.unit / 16 : world->plan.unit;
    sim_server *known = draw_chance(world, 50) ? promotion->process : NULL;
    struct process *process;
    struct wire *wire;

    note(world, NULL, "another server is promoted; the one of before goes on for %" PRId64 " us", stay);
    judge_resurrects(world->judge, node);
    promotion->former = node_succeed(node, promotion->copy, known, draw_between(world, -step, step));
    promotion->copy = NULL;
    if (known)
        promotion->process = NULL;
    TAILQ_FOREACH (wire, &world->wires, link)
        if (wire->node == node && wire->connected)
            wire->node = promotion->former;
    TAILQ_FOREACH (process, &world->processes, link)
        if (!process->crashed && draw_chance(world, 50))
            leave(process);
    reach_replaced(node, stay);
    agenda_set(&world->agenda, &promotion->parting, world->now + stay);
}

void promotion_begin(struct world *world) {
    world->promotion.due = (struct event){.happen = promote, .arg = world};
    world->promotion.parting = (struct event){.happen = part, .arg = world};
}

bool promotion_strike(struct world *world) {
    struct promotion *promotion = &world->promotion;

    if (promotion->copy || promotion->former)
        return false;
    note(world, NULL, "a replica receives no more");
    promotion->copy = sim_server_copy(node_now(world->nodes[0]));
    agenda_set(&world->agenda, &promotion->due,
               world->now + draw_magnitude(world, world->plan.latency, world->plan.unit));
    return true;
}

void promotion_end(struct world *world) {
    struct promotion *promotion = &world->promotion;

    agenda_set(&world->agenda, &promotion->due, NEVER);
    agenda_set(&world->agenda, &promotion->parting, NEVER);
    if (promotion->copy)
        sim_server_free(promotion->copy);
    promotion->copy = NULL;
    if (promotion->former)
        part(world);
    if (promotion->process)
        sim_server_free(promotion->process);
    promotion->process = NULL;
}
