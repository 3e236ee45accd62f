/*
 * Reach: whether a call may say that a node is out of reach. It may where something had been wrong, not long before,
 * with the connection, the node or the process. Keeps when that was; does nothing to any of them.
 */
#ifndef EVLOCK_SIM_REACH_H
#define EVLOCK_SIM_REACH_H

#include "node.h"
#include "process.h"
#include "wire.h"

/* The connection is slow, silent or ended until then; NEVER: for good. */
void reach_spoil(struct wire *wire, int64_t until);
/* The process has closed its end. */
void reach_closed(struct wire *wire);
/* The node does not serve until then. */
void reach_away(struct node *node, int64_t until);
/* It is another server, whom all have met in `within`. Clients that wait out what the one before may do keep away for
 * so long; and before, for as long again, if they were doing so already. */
void reach_replaced(struct node *node, int64_t within);
/* A server answers a command of the process: in a cluster, it may send that elsewhere. */
void reach_answered(struct wire *wire, const char *bytes, size_t len);
/* All is well from now on, but for what was lost. */
void reach_heal(struct world *world);

/* Whether a call that was made at `since` may have found the node out of reach. */
bool reach_fails(const struct process *process, const struct node *node, int64_t since);

/* Whether a call about that key, made at `since`, may have been on its way for longer than its client waits, since it
 * was sent on. */
bool reach_is_late(const struct process *process, unsigned key, int64_t since);

#endif
