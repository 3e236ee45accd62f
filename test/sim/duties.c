/* Duties; see duties.h. */
#include "duties.h"

#include <inttypes.h>
#include <strings.h>

#include "node.h"
#include "reach.h"
#include "wire.h"

/* Time for a command and its answer, and for timers. */
static int64_t round_trip(const struct world *world) {
    return 2 * world->plan.latency + 5 * MS;
}

/* The wire, if it has been open since, and nothing was wrong with it. */
static bool is_sound(const struct process *process, unsigned number) {
    const struct wire *wire;

    TAILQ_FOREACH (wire, &process->wires, local)
        if (wire->number == number)
            return wire->spoilt_until == 0 && wire->session && wire->node->away_until == 0;
    return false;
}

/* Its process has not stood still since, nor is it busy. */
static bool has_run(const struct process *process, int64_t since) {
    return !process->crashed && process->still_until < since && process->lag == 0;
}

/* --- Renewals that are refused ------------------------------------------------------------------------------------ */

/* Where commands wait for each other, or turns are long, nobody knows when one is sent. */
static bool is_prompt(const struct handle *handle) {
    const struct plan *plan = &handle->process->world->plan;

    return handle->renews && handle->max_hold == NEVER && plan->nodes == 1 && !plan->crowd && !plan->breaks &&
           !handle->process->few_in_flight;
}

void duties_command(struct node *node, int argc, const char *const *argv, const size_t *lens, bool refused) {
    const struct wire *wire = node->world->feeding;

    bool refresh = argc > 3 && strcasecmp(argv[3], "IFEQ") == 0;

    if (node->world->plan.nodes > 1 || !(refresh || strncasecmp(argv[0], "EVAL", 4) == 0))
        return;
    for (int i = 3; i < argc; i++) {
        const struct token *token = judge_known(node->world->judge, argv[i], lens[i]);
        struct handle *holder = token ? token->holder : NULL;
        if (!holder || holder->doing != HOLDING || holder->client != wire->client || !is_prompt(holder))
            continue;
        holder->refused_at = refused ? node->world->now : 0;
        holder->asked_at = refused ? 0 : node->world->now;
        holder->refused_over = holder->asked_over = wire->number;
        holder->back_at = 0;
    }
}

/* The pause is an eighth of the interval, from 10 ms to a second. */
static int64_t retry_pause(const struct handle *handle) {
    int64_t pause = handle->interval / 8 < 10 * MS ? 10 * MS : handle->interval / 8;

    return pause > SECOND ? SECOND : pause;
}

static void look_at_refused(struct handle *handle) {
    struct world *world = handle->process->world;
    int64_t pause = retry_pause(handle);
    int64_t slack = pause / (world->scenario->beyond ? 10 : 50); /* by the process's clock, which may be slow */

    if (!handle->refused_at || world->now <= handle->refused_at + pause + slack + round_trip(world))
        return;
    if (is_sound(handle->process, handle->refused_over) && has_run(handle->process, handle->refused_at))
        violated(world, "h%u: its renewal was refused %" PRId64 " us ago, and not sent again", handle->number,
                 world->now - handle->refused_at);
    handle->refused_at = 0;
}

/* --- Renewals that are lost --------------------------------------------------------------------------------------- */

/* Only what is sent for nothing else is known for a renewal, and only the one connection for the one that it needs. */
static void note_lost(struct handle *handle, const struct wire *wire) {
    const struct world *world = wire->world;

    if (handle->asked_at && handle->asked_over == wire->number && wire->unheard && wire->unheard <= handle->asked_at &&
        !handle->extended && !world->plan.replicas && !world->plan.errors && !world->scenario->queue &&
        !world->plan.cluster)
        handle->back_at = NEVER;
    handle->asked_at = 0;
}

static void note_back(struct handle *handle, const struct wire *wire) {
    if (!handle->back_at)
        return;
    handle->back_at = wire->world->now;
    handle->back_over = wire->number;
}

void duties_parted(const struct wire *wire) {
    judge_each_holder(wire->world->judge, wire, note_lost);
}

void duties_connected(const struct wire *wire) {
    judge_each_holder(wire->world->judge, wire, note_back);
}

/* A login takes a few commands. */
static void look_at_lost(struct handle *handle) {
    struct world *world = handle->process->world;

    if (!handle->back_at || handle->back_at == NEVER || world->now <= handle->back_at + 4 * round_trip(world))
        return;
    if (!handle->extended && is_sound(handle->process, handle->back_over) && has_run(handle->process, handle->back_at))
        violated(world, "h%u: its renewal was lost, and not sent again upon the next connection", handle->number);
    handle->back_at = 0;
}

void duties_look(struct handle *handle) {
    look_at_refused(handle);
    look_at_lost(handle);
}

/* --- Losses for no reason ----------------------------------------------------------------------------------------- */

void duties_lost(const struct handle *handle) {
    struct world *world = handle->process->world;
    const struct plan *plan = &world->plan;
    const struct scenario *scenario = world->scenario;

    if (!handle->renews || handle->max_hold != NEVER || handle->shortened || handle->process->few_in_flight ||
        plan->crowd || plan->lagging || scenario->beyond || scenario->steps ||
        handle->length - handle->lead < 10 * round_trip(world)) /* one that is adopted may have little left */
        return;
    for (unsigned i = 0; i < plan->servers; i++)
        if (reach_fails(handle->process, world->nodes[i], handle->since) || world->nodes[i]->replaced_at != NEVER)
            return;
    violated(world, "h%u: lost, as it was not renewed, and nothing was in the way", handle->number);
}

/* --- Acquires that fail ------------------------------------------------------------------------------------------- */

/* The only acquire of the client for the key: all that it sends for that is this one's. */
static struct promise *only_acquire(const struct judge *judge, unsigned client, unsigned key) {
    struct handle *handle = judge_acquiring(judge, client, key);

    return handle ? handle->pending : NULL;
}

void duties_denied(struct node *node, const struct token *token, unsigned key) {
    const struct world *world = node->world;
    struct promise *promise;

    if (world->plan.nodes == 1 || world->plan.crowd)
        return;
    promise = only_acquire(world->judge, world->feeding->client, key);
    if (!promise || !promise->once || token->own || world->feeding_sent < promise->asked)
        return;
    promise->denied_at = world->now;
    promise->denied_over = world->feeding->number;
    promise->denied_in_time = world->now + world->plan.latency + 2 * MS < promise->asked + promise->handle->patience;
}

/* That another holds the lock says more than any trouble with a node. */
void duties_told(const struct promise *promise, int status) {
    struct world *world = promise->process->world;

    if ((status == EVLOCK_EQUORUM || status == EVLOCK_EUNREACHABLE) && promise->denied_at && promise->denied_in_time &&
        world->plan.nodes > 1 && world->now > promise->denied_at + round_trip(world) &&
        is_sound(promise->process, promise->denied_over) && has_run(promise->process, promise->denied_at))
        violated(world, "call %u, an acquire, ends so: %s, though another holds the lock", promise->number,
                 evlock_strerror(status));
}
