/*
 * A side connection: a second way to a node, for what holds up everything behind it. It is a pipe that counts for
 * nothing itself: nobody is told of its state, and nothing is excluded by it.
 */
#ifndef EVL_SIDE_H
#define EVL_SIDE_H

#include "node.h"

/* Sets up a side connection to a node, of zeroed memory. Nothing begins before evl_connection_start(). */
void evl_side_init(struct pipe *side, struct connections *all, struct node *node,
                   const struct request_ops *const ops[REQUEST_KINDS]);

#endif
