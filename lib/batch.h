/*
 * Batches: renewals that wait together are sent as one command, and each is answered as if it had been sent alone. A
 * batch owns nothing and is gone when it is sent; what it decides is only which renewals fit, never anything of a
 * lease.
 */
#ifndef EVL_BATCH_H
#define EVL_BATCH_H

#include "reply.h"
#include "wire.h"

/* At most. More would hold the server for longer than other clients should wait. */
#define BATCH_MEMBERS 100

/* Renewals for one ttl, on their way into a command. */
struct batch {
    unsigned count;
    size_t room;
    struct renewal renewals[BATCH_MEMBERS];
};

/* Begins one, of no renewal. */
void evl_batch_begin(struct batch *batch);

/* The place of the next member, with the ttl of those before it (0: there are none); NULL: it is full. It counts when
 * it has been filled in, and is added. */
struct renewal *evl_batch_place(struct batch *batch);

/* Adds the renewal that was filled in. */
void evl_batch_add(struct batch *batch);

/* Writes the command that renews all of them. `scattered`: their keys need not be in one slot. */
void evl_batch_write(const struct batch *batch, bool scattered, struct command *command);

/* Whether the server refuses a batch as such: then each member is to be answered that it is to ask again, alone. */
bool evl_batch_is_refused(const struct reply *reply);

/* What one of `count` members is answered: what it would have been alone, or that it is to ask again. */
struct reply evl_batch_part(const struct reply *reply, unsigned member, unsigned count);

#endif
