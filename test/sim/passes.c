/* Passes; see passes.h. */
#include "passes.h"

#include <inttypes.h>

#include "reach.h"

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

    holder->token->relay.awaited |= waiter->doing == ACQUIRING && in_a_group(waiter, holder);
}

void passes_give_up(struct handle *handle) {
    struct relay *relay;
    int64_t left;

    if (handle->doing != HOLDING || !handle->lock || !handle->token || !evlock_is_held(handle->lock))
        return;
    relay = &handle->token->relay;
    left = evlock_remaining_ms(handle->lock);
    relay->given_up = process_clock(handle->process);
    relay->gone_at = process_time(handle->process);
    relay->left = left == INT64_MAX ? NEVER : left * MS;
    relay->status = EVLOCK_OK;
    relay->awaited = false;
    judge_each_handle(handle->process->world->judge, handle->process, note_awaited, handle);
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

/* By any clock. */
static bool wait_goes_on(const struct handle *handle, int64_t now) {
    int64_t limit = handle->pending->limit;

    return limit == NEVER || now - handle->pending->asked + limit / 10 + 2 * MS < limit;
}

static bool wait_is_over(const struct handle *handle, int64_t now) {
    int64_t limit = handle->pending->limit;

    return limit != NEVER && now - handle->pending->asked > limit + limit / 10 + 2 * MS;
}

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
    else if (wait_is_over(handle, relay->gone_at))
        violated(world, "h%u: a lease is passed on to it, whose wait had ended", handle->number);
    else if (relay->status != EVLOCK_OK)
        violated(world, "h%u holds by the lease of h%u, whose release was told: %s", handle->number, before->number,
                 evlock_strerror(relay->status));
}

/* First come, first served, of those whose wait has not ended by any clock. */
static void check_order(struct handle *waiter, void *arg) {
    const struct handle *winner = arg;
    struct world *world = waiter->process->world;

    if (waiter->doing == ACQUIRING && in_a_group(waiter, winner) && waiter->pending->number < winner->pending->number &&
        wait_goes_on(waiter, world->now))
        violated(world, "h%u holds, and h%u waits for longer beside it", winner->number, waiter->number);
}

void passes_hold(struct handle *handle) {
    struct relay *relay = &handle->token->relay;
    struct world *world = handle->process->world;

    if (relay->holder && handle->pending->kind != P_ADOPT && !handle->token->own) {
        relay->passes++;
        check_pass(handle, relay);
        relay->passed_at = relay->given_up;
        world->tally->passed++;
        note(world, handle->process, "  h%u has the lease of h%u", handle->number, relay->holder->number);
    } else {
        *relay = (struct relay){.first = process_clock(handle->process), .since_asked = handle->pending->asked};
        relay->tied = handle->pending->kind == P_ADOPT || handle->token->own;
    }
    relay->holder = handle;
    relay->given_up = 0;
    if (handle->pending->grouped)
        judge_each_handle(world->judge, handle->process, check_order, handle);
}

/* What may be held for so long only may be so by each. */
void passes_lose(const struct handle *handle, int reason) {
    const struct relay *relay = handle->token ? &handle->token->relay : NULL;

    if (reason == EVLOCK_EMAXHOLD && relay && relay->holder == handle && relay->passed_at &&
        process_clock(handle->process) < relay->passed_at + handle->max_hold - MS)
        violated(handle->process->world, "h%u is told that it held too long, %" PRId64 " us after it had the lease",
                 handle->number, process_clock(handle->process) - relay->passed_at);
}

/* --- Who leaves the queue ----------------------------------------------------------------------------------------- */

/* Who may have the place in line. */
struct place {
    unsigned key;
    int64_t since;
    const struct handle *oldest; /* of those who have waited since before */
    bool certain;                /* it is theirs */
};

static void find_oldest(struct handle *handle, void *arg) {
    struct place *place = arg;

    if (handle->key == place->key && handle->doing == ACQUIRING && handle->pending->grouped &&
        handle->pending->asked < place->since && wait_goes_on(handle, handle->process->world->now))
        place->oldest = handle;
}

/* One of its own, or of another group, may have been there, and have left it a while ago. */
static void doubt(struct handle *handle, void *arg) {
    struct place *place = arg;
    int64_t other = handle->gave_up_group[!place->oldest->pending->fenced];
    int64_t while_ago = place->since - judge_patience(handle->process->world->judge);
    bool left = handle->gave_up && handle->gave_up >= while_ago;
    bool alone = handle->gave_up_alone && handle->gave_up_alone >= while_ago;
    bool elsewhere = other && other >= while_ago;

    if (handle->key == place->key && handle->pending && (handle->doing == ACQUIRING || left))
        place->certain &= !alone && !elsewhere && (handle == place->oldest || in_a_group(handle, place->oldest));
}

/* Who leaves those with whom it waits leaves them the place. Where an answer was lost, they begin anew. */
void passes_leave_line(const struct process *process, const struct node *node, unsigned key, int64_t since) {
    struct world *world = process->world;
    struct place place = {.key = key, .since = since, .certain = true};

    if (!process->client || process->closes || reach_fails(process, node, since) || world->plan.errors)
        return;
    judge_each_handle(world->judge, process, find_oldest, &place);
    if (!place.oldest)
        return;
    judge_each_handle(world->judge, process, doubt, &place);
    if (place.certain)
        violated(world, "h%u waits, and has lost its place in line", place.oldest->number);
}

/* --- Looks -------------------------------------------------------------------------------------------------------- */

/* Nobody believes before it is told. */
static void check_untold(struct handle *handle, void *arg) {
    (void)arg;
    if (handle->doing == ACQUIRING && handle->lock &&
        evlock_is_held(handle->lock)) /* of a run's, the user may not know */
        violated(handle->process->world, "h%u believes to hold, and was not told", handle->number);
}

void passes_look(struct judge *judge) {
    judge_each_handle(judge, NULL, check_untold, NULL);
}
