/* Tokens that follow from the seed; see tokens.c. */
#ifndef EVLOCK_SIM_TOKENS_H
#define EVLOCK_SIM_TOKENS_H

#include <evlock/evlock.h>

#include "world.h"

/* The world from which tokens are drawn from now on. */
void tokens_from(struct world *world);

/* As evlock_token(), but the library does not take it for a look of its user's. */
const void *tokens_peek(const evlock *lock, size_t *ret_len);

#endif
