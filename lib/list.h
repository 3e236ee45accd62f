/*
 * Listings: which locks there are, a page at a time. A page is one step on one node, and the user asks for the next, so
 * nothing is remembered between two. It owns the page until that is reported. It asks nothing about any lock.
 */
#ifndef EVL_LIST_H
#define EVL_LIST_H

#include "call.h"

/* What a listing asks of nodes, for the table of requests. */
extern const struct request_ops evl_list_requests;

#endif
