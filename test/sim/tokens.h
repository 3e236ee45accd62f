/* Tokens that follow from the seed; see tokens.c. */
#ifndef EVLOCK_SIM_TOKENS_H
#define EVLOCK_SIM_TOKENS_H

#include "world.h"

/* The world from which tokens are drawn from now on. */
void tokens_from(struct world *world);

#endif
