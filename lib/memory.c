/*
 * Memory: the one way in which evlock allocates. It owns the pair of functions that evlock_set_allocator() sets. It
 * never counts what it gave, and keeps of what came back only what a pool of its caller's holds.
 */
#include "memory.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <evlock/evlock.h>

static void *(*allocator_resize)(void *block, size_t size) = realloc;
static void (*allocator_release)(void *block) = free;

int evlock_set_allocator(void *(*resize)(void *block, size_t size), void (*release)(void *block)) {
    if (!resize != !release)
        return EVLOCK_EINVAL;
    allocator_resize = resize ? resize : realloc;
    allocator_release = release ? release : free;
    return EVLOCK_OK;
}

void *evl_alloc(size_t size) {
    void *block = allocator_resize(NULL, size);
    if (block)
        memset(block, 0, size);
    return block;
}

void *evl_resize(void *block, size_t size) {
    return allocator_resize(block, size);
}

void evl_free(void *block) {
    if (block)
        allocator_release(block);
}

char *evl_dup(const void *bytes, size_t len) {
    char *copy = allocator_resize(NULL, len + 1);
    if (!copy)
        return NULL;
    if (len > 0)
        memcpy(copy, bytes, len);
    copy[len] = '\0';
    return copy;
}

/* --- Pools -------------------------------------------------------------------------------------------------------- */

/* A sanitizer is to see each use of what was given back. */
#if defined(__SANITIZE_ADDRESS__)
static const bool keeps = false;
#else
static const bool keeps = true;
#endif

void *evl_pool_alloc(struct pool *pool) {
    void *block = pool->first;

    if (!block)
        return evl_alloc(pool->size);
    memcpy(&pool->first, block, sizeof(pool->first));
    pool->kept--;
    memset(block, 0, pool->size);
    return block;
}

void evl_pool_free(struct pool *pool, void *block) {
    if (!keeps || pool->kept == pool->keep) {
        evl_free(block);
        return;
    }
    memcpy(block, &pool->first, sizeof(pool->first));
    pool->first = block;
    pool->kept++;
}

void evl_pool_clear(struct pool *pool) {
    void *block;

    while ((block = pool->first)) {
        memcpy(&pool->first, block, sizeof(pool->first));
        evl_free(block);
    }
    pool->kept = 0;
}
