/*
 * Forks: at moments that follow from the seed, between two steps of the world or inside a callback, the simulation
 * forks for real. The child has a copy of all the world, in which everything of evlock's is its parent's. It calls
 * that, frees it and lets its copy of the loops run, and judges what comes of it; then it ends, or lives on with
 * processes of its own. The parent waits for the child's verdict, and goes on as if nothing had been: forks have a
 * chance of their own, and change nothing of the world.
 */
#ifndef EVLOCK_SIM_FORKS_H
#define EVLOCK_SIM_FORKS_H

#include <stdbool.h>

#include "world.h"

enum { FORKS_SHARE = 12 };

/* So many of a hundred schedules are to fork. */
void forks_begin(struct world *world, int64_t share);
/* A place where the world may fork, and does if it is time; true: this is the child. `inside`: a callback. */
bool forks_come(struct world *world, bool inside);
/* Whether this is a child that does not live on. */
bool forks_over(const struct world *world);
/* The world is about to be closed: a child frees what is left of its parent's. */
void forks_close(struct world *world);
/* The schedule is at its end, and a child with it: it tells its parent what was violated. */
void forks_end(const struct world *world);

/* In a child, evlock has called for something of its parent's, which must never be. */
void forks_told(struct world *world, const char *what);

#endif
