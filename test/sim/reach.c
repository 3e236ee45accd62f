/* Reach; see reach.h. */
#include "reach.h"

#include <stdlib.h>
#include <string.h>

#include "actor.h"
#include "judge.h"
#include "slots.h"

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

static bool begins(const char *bytes, size_t len, const char *word) {
    return len > strlen(word) && memcmp(bytes, word, strlen(word)) == 0;
}

/* A member of a cluster that has only some of the keys does not say which slot it is. */
void reach_answered(struct wire *wire, const char *bytes, size_t len) {
    const struct world *world = wire->world;
    bool halfway = begins(bytes, len, "-TRYAGAIN ");
    bool elsewhere = begins(bytes, len, "-MOVED ") || begins(bytes, len, "-ASK ");

    for (unsigned key = 0; world->plan.cluster && (halfway || elsewhere) && key < world->plan.keys; key++)
        if (halfway || sim_slots_of(judge_key(key), strlen(judge_key(key))) == strtoul(strchr(bytes, ' '), NULL, 10))
            wire->process->sent_on_at[key] = world->now;
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

/* Masters that send it to and fro are asked six times, with one pause of 400 ms, before evlock calls that a refusal.
 * One that is connected to first is asked no later than that. */
bool reach_is_late(const struct process *process, unsigned key, int64_t since) {
    int64_t longest = 400 * MS + 12 * process->world->plan.latency;

    return process->sent_on_at[key] >= since && process->command_timeout < longest;
}
