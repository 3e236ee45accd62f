/*
 * Promotions: another server takes the place of a world's only node, with data that are behind, while the server of
 * before goes on serving whoever is connected to it. It owns that server until this ends. When one is made is decided
 * in faults.c.
 */
#ifndef EVLOCK_SIM_PROMOTION_H
#define EVLOCK_SIM_PROMOTION_H

#include <stdbool.h>

struct world;

void promotion_begin(struct world *world);
/* From now on nothing is copied to who is going to be promoted; false: there is a promotion under way. */
bool promotion_strike(struct world *world);
/* None comes any more, and a server of before serves nobody. */
void promotion_end(struct world *world);

#endif
