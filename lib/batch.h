/*
 * Batches: renewals that wait for a node together are sent as one command. A batch is a request of the node's; its
 * members are requests like any others, which are sent with it, and each answered as if it had been sent alone. Where
 * the command as a whole is refused, each is. It owns its memory, which is used again. It decides nothing about a
 * lease.
 */
#ifndef EVL_BATCH_H
#define EVL_BATCH_H

#include "node.h"

/* Sends the renewals at the front of those that wait, up to the first request that wants something else; false if
 * there are none, or the server cannot renew many at once, or there is no memory: then each is sent alone. */
bool evl_batch_send(struct node *node, int64_t now);

/* The memory of a node's batches. */
void evl_batches_init(struct pool *batches);

#endif
