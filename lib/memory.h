/*
 * Memory: the one way in which evlock allocates. It owns the pair of functions that evlock_set_allocator() sets. It
 * never keeps or counts what it gave.
 */
#ifndef EVL_MEMORY_H
#define EVL_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#define CACHE_LINE 64
#define OWNER_SIZE 224 /* of a lease's owner, about; its alarm is near the beginning, its request near the end */

/** A zeroed block, or NULL. */
void *evl_alloc(size_t size);

/** As realloc(): on NULL the old block is still there. What is added is not zeroed. */
void *evl_resize(void *block, size_t size);

/** Gives a block back; NULL is allowed. */
void evl_free(void *block);

/** A copy of `len` bytes with a NUL behind them, or NULL. */
char *evl_dup(const void *bytes, size_t len);

/** Has memory on its way into the cache while something else is worked on: for what is gone through one after the
 * other, and is more than a cache holds. It begins so many bytes from `memory`, before it if negative. */
static inline void evl_prefetch(const void *memory, ptrdiff_t from, size_t size) {
    uintptr_t begin = (uintptr_t)memory + (uintptr_t)from;

    for (size_t at = 0; at < size; at += CACHE_LINE)
        __builtin_prefetch((const void *)(begin + at));
    __builtin_prefetch((const void *)(begin + size - 1)); /* where it does not begin with a line */
}

#endif
