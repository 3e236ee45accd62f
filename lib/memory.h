/*
 * Memory: the one way in which evlock allocates. It owns the pair of functions that evlock_set_allocator() sets. It
 * never keeps or counts what it gave.
 */
#ifndef EVL_MEMORY_H
#define EVL_MEMORY_H

#include <stddef.h>

/* Whether a sanitizer is to see each use of what was given back: then nothing is kept to be used again. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ /* as gcc says it */
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define EVL_MEMORY_WATCHED 1
#else
#define EVL_MEMORY_WATCHED 0
#endif

/* A zeroed block, or NULL. */
void *evl_alloc(size_t size);

/* As realloc(): on NULL the old block is still there. What is added is not zeroed. */
void *evl_resize(void *block, size_t size);

/* Gives a block back; NULL is allowed. */
void evl_free(void *block);

/* A copy of `len` bytes with a NUL behind them, or NULL. */
char *evl_dup(const void *bytes, size_t len);

#endif
