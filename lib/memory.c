/*
 * Memory: the one way in which evlock allocates. It owns the pair of functions that evlock_set_allocator() sets. It
 * never keeps or counts what it gave.
 */
#include "memory.h"

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
