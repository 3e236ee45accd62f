/*
 * Moves: the slots of the world's locks go from one master of its cluster to the other, step by step, as redis-cli
 * moves them; a replica takes a master's place; and who has heard of it says so late. It owns what is under way of
 * that. The servers' views are in slots.h; whether there is a cluster is the plan's.
 *
 * What safety.md does not claim happens only where the scenario has gaps: a move that is given up at the old master
 * alone, and a master that fails while its slot moves.
 */
#ifndef EVLOCK_SIM_MOVES_H
#define EVLOCK_SIM_MOVES_H

#include <stdbool.h>

struct node;
struct world;

/* None, without a cluster. */
void moves_begin(struct world *world);
/* All that is under way is brought to its end, and all have heard of it. */
void moves_finish(struct world *world);
void moves_end(struct world *world);

/* A replica takes the place of a master: true, if that is possible now. */
bool moves_fail_over(struct world *world);

/* The master that has the slot of this key; and the server where a key of that slot lies, or else that master. Of one
 * node, that node. */
struct node *moves_home(const struct world *world, const char *key);
struct node *moves_find(const struct world *world, const char *key);

#endif
