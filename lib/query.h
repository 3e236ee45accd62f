/*
 * Queries: what users ask the servers about a lock, whoever holds it, and the breaking of it. All nodes are asked at
 * once, and what a quorum says is reported; one node is a quorum of one. A break has two steps on each node: it reads
 * the mark of what holds the lock, which is short, however long that is, then compares and deletes that one. A queue is
 * that of the only node. It owns what the nodes said until that is reported. Nothing of the handle changes.
 */
#ifndef EVL_QUERY_H
#define EVL_QUERY_H

#include "lock.h"

/* What a query asks of nodes, for the table of requests. */
extern const struct request_ops evl_query_requests;

#endif
