/* Batches of renewals; see batch.h. */
#include "batch.h"

#include <assert.h>

#include "dialect.h"
#include "memory.h"

_Static_assert(BATCH_MEMBERS <= UINT8_MAX, "as a request counts them");

/* --- The way out -------------------------------------------------------------------------------------------------- */

/* Takes the request that waits in front, if it wants to be renewed, for `ttl` unless that is 0. What waits has nothing
 * unanswered, so it flies right behind the one that was taken before. */
static bool take_next(struct node *node, int64_t ttl, int64_t now, struct renewal *renewal) {
    struct request *request = TAILQ_FIRST(&node->waiting);
    const struct request_ops *ops = request ? evl_request_ops[request->kind] : NULL;

    renewal->ttl = ttl;
    if (!ops || !ops->join || !ops->join(request, now, renewal))
        return false;
    assert(!request->flying);
    evl_node_withdraw(node, request);
    evl_node_fly(node, request);
    return true;
}

bool evl_batch_send(struct node *node, int64_t now) {
    struct request *first = TAILQ_FIRST(&node->waiting);
    struct renewal renewals[BATCH_MEMBERS];
    size_t room = RENEWALS_SIZE;
    struct command command;
    unsigned count = 0;
    int64_t ttl = 0;

    if (!node->renews_many || first == TAILQ_LAST(&node->waiting, requests))
        return false;
    while (count < BATCH_MEMBERS && room >= RENEWAL_SIZE_MAX && take_next(node, ttl, now, &renewals[count])) {
        ttl = renewals[count].ttl;
        room -= evl_renewal_size(&renewals[count++]);
    }
    if (count == 0)
        return false;
    first->batch = (uint8_t)count;
    evl_command_write(&command, &evl_renewals, &(struct subject){.ttl = ttl, .renewals = renewals, .count = count});
    evl_node_send(node, first, &command, now);
    return true;
}

/* --- The way back ------------------------------------------------------------------------------------------------- */

/* What one of `count` members is answered: what it would have been alone, or that it is to ask again. */
static struct reply part(const struct reply *reply, unsigned member, unsigned count) {
    if (reply->type == REPLY_ERROR || reply->type == REPLY_AGAIN)
        return *reply;
    switch (reply->type == REPLY_STRING && reply->len == count ? reply->text[member] : '\0') {
    case '1':
        return (struct reply){.type = REPLY_RENEWED};
    case '0':
        return (struct reply){.type = REPLY_INTEGER, .integer = 0};
    case '?':
        return (struct reply){.type = REPLY_AGAIN};
    default:
        return (struct reply){.type = REPLY_OTHER};
    }
}

void evl_batch_answer(struct node *node, struct request *first, const struct reply *reply, int64_t now) {
    static const struct reply again = {.type = REPLY_AGAIN};
    struct request *member = first, *next;
    struct reply own;
    unsigned count = first->batch;

    /* It may be one of them, or that they were together: each is told alone. */
    if (reply->type == REPLY_ERROR && evl_reply_meaning(reply->text).verdict == LEASE_FORBIDDEN) {
        node->renews_many = false;
        reply = &again;
    }
    first->batch = 0;
    for (unsigned i = 0; i < count; i++, member = next) {
        next = TAILQ_NEXT(member, link); /* flies until it is answered, whereas this one may land, and be gone */
        if (next && TAILQ_NEXT(next, link))
            prefetch(TAILQ_NEXT(next, link), CACHE_LINE - OWNER_SIZE, OWNER_SIZE);
        own = part(reply, i, count);
        evl_node_answer(node, member, &own, now);
    }
}
