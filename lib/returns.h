/*
 * Returns: a node is back, and all tenures hear of it, some at a time. Who is next, `rounds` says; what a lease of a
 * cluster is to hear, `owing` says; what comes of it is the lease's. Here these three are put together, and no more.
 */
#ifndef EVL_RETURNS_H
#define EVL_RETURNS_H

#include "tenure.h"

/* A node is logged in, and all are about to be told. */
void evl_returns_begin(struct tenures *tenures, struct node *node);

/* Some more are told that it is back; true: there are more. */
bool evl_returns_go_on(struct tenures *tenures, struct node *node, int64_t now);

/* A node of a cluster is done with, and will not be back. */
void evl_returns_forget(struct tenures *tenures, struct node *node);

#endif
