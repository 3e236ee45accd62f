/* Batches of renewals; see batch.h. */
#include "batch.h"

#include "dialect.h"

_Static_assert(BATCH_MEMBERS <= UINT8_MAX, "as a request counts them");

void evl_batch_begin(struct batch *batch) {
    batch->count = 0;
    batch->room = RENEWALS_SIZE;
}

struct renewal *evl_batch_place(struct batch *batch) {
    struct renewal *place = &batch->renewals[batch->count];

    if (batch->count == BATCH_MEMBERS || batch->room < RENEWAL_SIZE_MAX)
        return NULL;
    place->ttl = batch->count ? batch->renewals[0].ttl : 0;
    return place;
}

void evl_batch_add(struct batch *batch) {
    batch->room -= evl_renewal_size(&batch->renewals[batch->count++]);
}

void evl_batch_write(const struct batch *batch, bool scattered, struct command *command) {
    const struct subject subject = {
        .ttl = batch->renewals[0].ttl,
        .renewals = batch->renewals,
        .count = batch->count,
    };

    evl_command_write(command, scattered ? &evl_renewals_scattered : &evl_renewals, &subject);
}

bool evl_batch_is_refused(const struct reply *reply) {
    return reply->type == REPLY_ERROR && evl_reply_meaning(reply->error).verdict == LEASE_FORBIDDEN;
}

struct reply evl_batch_part(const struct reply *reply, unsigned member, unsigned count) {
    if (reply->type == REPLY_ERROR || reply->type == REPLY_AGAIN)
        return *reply;
    switch (reply->type == REPLY_STRING && reply->len == count ? reply->text[member] : '\0') {
    case '1':
        return (struct reply){.type = REPLY_RENEWED};
    case '2':
        return (struct reply){.type = REPLY_INTEGER, .integer = -1};
    case '0':
        return (struct reply){.type = REPLY_INTEGER, .integer = 0};
    case '?':
        return (struct reply){.type = REPLY_AGAIN};
    default:
        return (struct reply){.type = REPLY_OTHER};
    }
}
