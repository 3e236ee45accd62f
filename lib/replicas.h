/*
 * Replicas: whether a grant has reached enough of them. WAIT holds up what is behind it, so it goes over a second
 * connection to each node; it tells of the writes before the last command of its own connection, so a renewal goes
 * ahead of it there, which also shows that this server has the lease. A quorum of nodes must confirm; the lease runs
 * meanwhile, and is given up if they do not. It owns nothing: what was asked and confirmed is noted in the call.
 */
#ifndef EVL_REPLICAS_H
#define EVL_REPLICAS_H

#include "lock.h"

/* Asks the replicas of all nodes whether they have the lease that was granted to an acquire; its success or failure
 * comes of that. */
void evl_replicas_ask(struct call *call);

/* Asks no more, and gives the lease up. */
void evl_replicas_fail(struct call *call, const char *why);

/* What it asks of nodes, for the table of requests. */
extern const struct request_ops evl_replicas_requests;

#endif
