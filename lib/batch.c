/* Batches of renewals; see batch.h. */
#include "batch.h"

#include "memory.h"

/* More would hold the server for longer than other clients should wait. */
#define MEMBERS 100

/* So many are kept when they are not on their way: renewals then go on without allocating. */
#define KEPT 1024

struct batch {
    struct request request;
    struct node *node;
    int64_t ttl;
    unsigned count;
    struct request *members[MEMBERS];
};

static bool answer(struct request *request, const struct reply *reply, int64_t now);

static const struct request_ops ops = {.answer = answer}; /* it never waits */

static struct batch *begin(struct node *node) {
    struct batch *batch = evl_pool_alloc(&node->batches);

    if (!batch)
        return NULL;
    batch->request.ops = &ops;
    batch->request.node = (uint8_t)node->index;
    batch->node = node;
    return batch;
}

void evl_batches_init(struct pool *batches) {
    *batches = (struct pool){.size = sizeof(struct batch), .keep = KEPT};
}

/* --- The way out -------------------------------------------------------------------------------------------------- */

/* Takes the request that waits in front, if it wants to be renewed for the same ttl as the others. */
static bool take_next(struct batch *batch, int64_t now, struct renewal *renewal) {
    struct node *node = batch->node;
    struct request *request = TAILQ_FIRST(&node->waiting);

    renewal->ttl = batch->ttl;
    if (!request || !request->ops->join || !request->ops->join(request, now, renewal))
        return false;
    evl_node_withdraw(node, request);
    evl_node_fly(node, request);
    batch->members[batch->count++] = request;
    batch->ttl = renewal->ttl;
    return true;
}

bool evl_batch_send(struct node *node, int64_t now) {
    struct renewal renewals[MEMBERS];
    size_t room = RENEWALS_SIZE;
    struct command command;
    struct batch *batch;

    if (!node->renews_many || TAILQ_FIRST(&node->waiting) == TAILQ_LAST(&node->waiting, requests) ||
        !(batch = begin(node)))
        return false;
    while (batch->count < MEMBERS && room >= RENEWAL_SIZE_MAX && take_next(batch, now, &renewals[batch->count]))
        room -= evl_renewal_size(&renewals[batch->count - 1]);
    if (batch->count == 0) {
        evl_pool_free(&node->batches, batch);
        return false;
    }
    evl_command_renewals(&command, renewals, batch->count);
    evl_node_send(node, &batch->request, &command, now);
    return true;
}

/* --- The way back ------------------------------------------------------------------------------------------------- */

/* What a member is answered: what it would have been alone, or that it is to ask alone. */
static struct reply part(const struct batch *batch, const struct reply *reply, unsigned member) {
    static const struct reply alone = {REPLY_ERROR, 0, "NOSCRIPT to be asked alone", 26};
    char letter;

    if (reply->type == REPLY_ERROR)
        return evl_reply_meaning(reply->text).verdict == LEASE_REFUSED ? *reply : alone;
    letter = reply->type == REPLY_STRING && reply->len == batch->count ? reply->text[member] : '\0';
    switch (letter) {
    case '1':
        return (struct reply){.type = REPLY_INTEGER, .integer = batch->ttl / 1000};
    case '0':
        return (struct reply){.type = REPLY_INTEGER, .integer = 0};
    case '?':
        return alone;
    default:
        return (struct reply){.type = REPLY_OTHER};
    }
}

static bool answer(struct request *request, const struct reply *reply, int64_t now) {
    struct batch *batch = (struct batch *)(void *)((char *)request - offsetof(struct batch, request));
    struct node *node = batch->node;
    bool fits = true;

    /* When a connection ends, each member is told like any other request. */
    for (unsigned i = 0; i < batch->count && reply->type != REPLY_LOST; i++) {
        struct reply own = part(batch, reply, i);
        if (i + 1 < batch->count)
            prefetch(batch->members[i + 1], OWNER_SIZE);
        evl_node_land(node, batch->members[i]);
        fits &= batch->members[i]->ops->answer(batch->members[i], &own, now);
    }
    if (reply->type == REPLY_ERROR && evl_reply_meaning(reply->text).verdict == LEASE_FORBIDDEN)
        node->renews_many = false;
    evl_pool_free(&node->batches, batch);
    return fits;
}
