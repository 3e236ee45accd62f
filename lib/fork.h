/*
 * Forks: how an object tells that it has been carried into a forked child. It owns a counter of the process. It never
 * touches the objects themselves.
 */
#ifndef EVL_FORK_H
#define EVL_FORK_H

#include <stdint.h>

/** A number that differs between a process and the children it forks; an object keeps the one it was made under. */
uint32_t evl_fork_generation(void);

#endif
