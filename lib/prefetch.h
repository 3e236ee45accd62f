/*
 * Prefetching: memory is on its way into the cache while something else is worked on. It is for what is gone through
 * one after the other, and is more than a cache holds. It owns and changes nothing.
 */
#ifndef EVL_PREFETCH_H
#define EVL_PREFETCH_H

#include <stddef.h>
#include <stdint.h>

#define CACHE_LINE 64

/* Fetches `size` bytes. They begin so many bytes from `memory`, before it if negative. */
static inline void evl_prefetch(const void *memory, ptrdiff_t from, size_t size) {
    uintptr_t begin = (uintptr_t)memory + (uintptr_t)from;

    for (size_t at = 0; at < size; at += CACHE_LINE)
        __builtin_prefetch((const void *)(begin + at));
    __builtin_prefetch((const void *)(begin + size - 1)); /* where it does not begin with a line */
}

#endif
