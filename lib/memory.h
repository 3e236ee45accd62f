/*
 * Memory: the one way in which evlock allocates. It owns the pair of functions that evlock_set_allocator() sets. It
 * never keeps or counts what it gave.
 */
#ifndef EVL_MEMORY_H
#define EVL_MEMORY_H

#include <stddef.h>

#define CACHE_LINE 64
#define OWNER_SIZE (3 * CACHE_LINE) /* what an owner has behind its alarm or request, about */

/** A zeroed block, or NULL. */
void *evl_alloc(size_t size);

/** As realloc(): on NULL the old block is still there. What is added is not zeroed. */
void *evl_resize(void *block, size_t size);

/** Gives a block back; NULL is allowed. */
void evl_free(void *block);

/** A copy of `len` bytes with a NUL behind them, or NULL. */
char *evl_dup(const void *bytes, size_t len);

/** Has memory on its way into the cache while something else is worked on: for what is gone through one after the
 * other, and is more than a cache holds. */
static inline void prefetch(const void *memory, size_t size) {
    for (size_t at = 0; at < size; at += CACHE_LINE)
        __builtin_prefetch((const char *)memory + at);
}

#endif
