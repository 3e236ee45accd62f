/* Reach; see reach.h. */
#include "reach.h"

#include "actor.h"

static void raise_to(int64_t *moment, int64_t to) {
    if (*moment < to)
        *moment = to;
}

static void lower_to(int64_t *moment, int64_t to) {
    if (*moment != NEVER && *moment > to)
        *moment = to;
}

void reach_spoil(struct wire *wire, int64_t until) {
    raise_to(&wire->spoilt_until, until);
}

void reach_closed(struct wire *wire) {
    int64_t now = wire->world->now, spoilt = wire->spoilt_until;

    raise_to(&wire->process->lost_until[wire->node->index], spoilt < now ? spoilt : now);
}

void reach_away(struct node *node, int64_t until) {
    raise_to(&node->away_until, until);
}

void reach_replaced(struct node *node, int64_t within) {
    int64_t closed = node->world->plan.closed;

    if (closed)
        raise_to(&node->closed_until, node->world->now + within + 2 * (closed + closed / 20));
}

void reach_heal(struct world *world) {
    struct wire *wire;

    for (unsigned i = 0; i < world->plan.servers; i++)
        lower_to(&world->nodes[i]->away_until, world->now);
    TAILQ_FOREACH (wire, &world->wires, link)
        lower_to(&wire->spoilt_until, world->now);
}

/* A client that has noticed that it cannot reach a node tries again, with pauses, until it can. */
static int64_t recovery(const struct world *world) {
    return 3 * actor_longest_timeout(world) + 50 * world->plan.latency;
}

bool reach_fails(const struct process *process, const struct node *node, int64_t since) {
    int64_t from = since - recovery(process->world);
    const struct wire *wire;

    if ((node->refused && node->refused_until >= from) || node == process->left_out || process->lag > 0 ||
        node->away_until >= from || node->closed_until >= from || process->still_until >= from ||
        process->lost_until[node->index] >= from)
        return true;
    TAILQ_FOREACH (wire, &process->wires, local)
        if (wire->node->index == node->index && wire->spoilt_until >= from)
            return true;
    return false;
}
