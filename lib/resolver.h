/*
 * The resolver: which addresses a host name has, asked without blocking. A loop may bring a resolver of its own. For
 * all others a name means what the system says that it means: getaddrinfo() is called, in a thread of its own for each
 * question. It owns the questions under way, and never waits for a thread.
 */
#ifndef EVL_RESOLVER_H
#define EVL_RESOLVER_H

#include <stdbool.h>

#include "turn.h"

/* Whether names can be resolved on this loop. */
bool evl_resolver_exists(const struct turn *turn);

/* Begins to resolve, as the operation `resolve` of <evlock/loop.h>. NULL: that cannot be begun now. */
void *evl_resolver_ask(struct turn *turn, const char *host, evlock_resolve_cb cb, void *arg);

/* Ends a resolution that has not been told: it is forgotten at once, however long its thread goes on. In a forked child
 * it is the parent's, and only memory and a timer are given back: for loops that know of forks. */
void evl_resolver_cancel(struct turn *turn, void *resolution);

#endif
