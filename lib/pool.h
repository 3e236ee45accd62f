/*
 * Pools: memory for what comes and goes all the time, in blocks of one size. A pool owns the blocks that were given
 * back, and keeps them to be used again, up to a number. It never shares them with another pool.
 */
#ifndef EVL_POOL_H
#define EVL_POOL_H

#include <stddef.h>

struct pool {
    size_t size; /* of a block */
    unsigned keep;
    unsigned kept;
    void *first; /* each begins with the address of the next */
};

/* As evl_alloc(), of the pool's size. */
void *evl_pool_alloc(struct pool *pool);

/* Gives back a block that the pool gave. */
void evl_pool_free(struct pool *pool, void *block);

/* Frees what is kept. */
void evl_pool_free_kept(struct pool *pool);

#endif
