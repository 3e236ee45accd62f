/* Passes; see passes.h. */
#include "passes.h"

#include <inttypes.h>

/* Whether two wait together, in the order of their calls. */
static bool in_a_group(const struct handle *one, const struct handle *other) {
    return one->process == other->process && one->client == other->client && one->key == other->key &&
           one->group == other->group && one->pending && other->pending && one->pending->grouped &&
           other->pending->grouped && one->pending->fenced == other->pending->fenced;
}

/* --- Who gives a lease up ----------------------------------------------------------------------------------------- */

/* Somebody waits for what another handle holds. */
static void note_awaited(struct handle *waiter, void *arg) {
    const struct handle *holder = arg;

    holder->token->relay.awaited |= in_a_group(waiter, holder);
}

void passes_give_up(struct handle *handle) {
    struct relay *relay;
    int64_t left;

    if (handle->doing != HOLDING || !handle->lock || !handle->token || !evlock_is_held(handle->lock))
        return;
    relay = &handle->token->relay;
    left = evlock_remaining_ms(handle->lock);
    relay->given_up = process_clock(handle->process);
    relay->left = left == INT64_MAX ? NEVER : left * MS;
    relay->status = EVLOCK_OK;
    relay->awaited = false;
    judge_each_acquiring(handle->process->world->judge, handle->process, note_awaited, handle);
}

void passes_tie(const struct handle *handle) {
    if (handle->token)
        handle->token->relay.tied = true;
}

void passes_released(const struct handle *handle, int status) {
    if (handle->token && handle->token->relay.holder == handle)
        handle->token->relay.status = status;
}

bool passes_may_go(const struct handle *handle) {
    return handle->group && handle->token && (handle->token->relay.awaited || handle->token->relay.holder != handle);
}

/* --- Who has it next ---------------------------------------------------------------------------------------------- */

/* What may be passed on, so often and for so long. */
static void check_pass(const struct handle *handle, const struct relay *relay) {
    const struct handle *before = relay->holder;
    struct world *world = handle->process->world;
    int64_t bound = relay->first + before->max_pass + MS;

    if (!relay->given_up)
        violated(world, "h%u holds by the lease that h%u has not given up", handle->number, before->number);
    else if (!handle->pending->grouped || !before->group || handle->client != before->client ||
             handle->key != before->key || handle->ttl != before->ttl || handle->queued != before->queued ||
             handle->replicas != before->replicas || handle->lead != before->lead)
        violated(world, "h%u holds by the lease of h%u, with which it does not wait", handle->number, before->number);
    else if (relay->tied)
        violated(world, "h%u holds by a lease that h%u might still change", handle->number, before->number);
    else if (relay->passes > before->max_passes)
        violated(world, "h%u: a lease is passed on for the %" PRId64 ". time, and may be for %" PRId64, handle->number,
                 relay->passes, before->max_passes);
    else if (relay->given_up > bound)
        violated(world, "h%u: a lease is passed on %" PRId64 " us after it was granted", handle->number,
                 relay->given_up - relay->first);
    else if (relay->left < handle->ttl / 2 - 2 * MS)
        violated(world, "h%u: a lease is passed on of which %" PRId64 " us were left", handle->number, relay->left);
    else if (relay->status != EVLOCK_OK)
        violated(world, "h%u holds by the lease of h%u, whose release was told: %s", handle->number, before->number,
                 evlock_strerror(relay->status));
}

/* First come, first served, of those whose wait has not ended by any clock. */
static void check_order(struct handle *waiter, void *arg) {
    const struct handle *winner = arg;
    const struct promise *promise = waiter->pending;
    struct world *world = waiter->process->world;
    int64_t waited = world->now - promise->asked;

    if (in_a_group(waiter, winner) && promise->number < winner->pending->number &&
        (promise->limit == NEVER || waited + promise->limit / 10 + 2 * MS < promise->limit))
        violated(world, "h%u holds, and h%u waits for longer beside it", winner->number, waiter->number);
}

void passes_hold(struct handle *handle) {
    struct relay *relay = &handle->token->relay;
    struct world *world = handle->process->world;

    if (relay->holder && handle->pending->kind != P_ADOPT && !handle->token->own) {
        relay->passes++;
        check_pass(handle, relay);
        world->tally->passed++;
        note(world, handle->process, "  h%u has the lease of h%u", handle->number, relay->holder->number);
    } else {
        *relay = (struct relay){.first = process_clock(handle->process), .since_asked = handle->pending->asked};
        relay->tied = handle->pending->kind == P_ADOPT || handle->token->own;
    }
    relay->holder = handle;
    relay->given_up = 0;
    if (handle->pending->grouped)
        judge_each_acquiring(world->judge, handle->process, check_order, handle);
}

/* --- Looks -------------------------------------------------------------------------------------------------------- */

/* Nobody believes before it is told. */
static void check_untold(struct handle *handle, void *arg) {
    (void)arg;
    if (handle->lock && evlock_is_held(handle->lock)) /* of a run's, the user may not know */
        violated(handle->process->world, "h%u believes to hold, and was not told", handle->number);
}

void passes_look(struct judge *judge) {
    judge_each_acquiring(judge, NULL, check_untold, NULL);
}
