/*
 * Batches: renewals that wait for a node together are sent as one command, and each is answered as if it had been sent
 * alone. A batch needs no memory: its members fly one behind the other, and the first is marked with their number. It
 * decides nothing about a lease.
 */
#ifndef EVL_BATCH_H
#define EVL_BATCH_H

#include "node.h"

/* At most. More would hold the server for longer than other clients should wait. */
#define BATCH_MEMBERS 100

/* Sends the renewals at the front of those that wait, up to the first request that wants something else; false if
 * there are none, or the server cannot renew many at once: then each is sent alone. */
bool evl_batch_send(struct node *node, int64_t now);

/* The reply to the batch that begins with this request. */
void evl_batch_answer(struct node *node, struct request *first, const struct reply *reply, int64_t now);

#endif
