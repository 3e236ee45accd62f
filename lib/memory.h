/*
 * Memory: the one way in which evlock allocates. It owns the pair of functions that evlock_set_allocator() sets. It
 * never counts what it gave, and keeps of what came back only what a pool of its caller's holds.
 */
#ifndef EVL_MEMORY_H
#define EVL_MEMORY_H

#include <stddef.h>

/** A zeroed block, or NULL. */
void *evl_alloc(size_t size);

/** As realloc(): on NULL the old block is still there. What is added is not zeroed. */
void *evl_resize(void *block, size_t size);

/** Gives a block back; NULL is allowed. */
void evl_free(void *block);

/** Blocks of one size that were given back and are kept to be used again, up to a number. */
struct pool {
    size_t size;
    unsigned keep;
    unsigned kept;
    void *first; /* each begins with the address of the next */
};

/** As evl_alloc(), of the pool's size. */
void *evl_pool_alloc(struct pool *pool);

/** Gives back a block that the pool gave. */
void evl_pool_free(struct pool *pool, void *block);

/** Frees what is kept. */
void evl_pool_clear(struct pool *pool);

/** A copy of `len` bytes with a NUL behind them, or NULL. */
char *evl_dup(const void *bytes, size_t len);

#endif
