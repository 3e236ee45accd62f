/*
 * Counted memory; see counted.h. Each block has its size in front.
 */
#include "counted.h"

#include <stdlib.h>
#include <string.h>

#include <evlock/evlock.h>

struct block {
    size_t size;
    max_align_t data[];
};

static long live;
static long good_left;
static const char *secret_bytes;
static bool leaked;

static struct block *block_of(void *data) {
    return (struct block *)((char *)data - offsetof(struct block, data));
}

static void release(void *data) {
    struct block *block = block_of(data);
    if (secret_bytes && memmem(data, block->size, secret_bytes, strlen(secret_bytes)))
        leaked = true;
    live--;
    free(block);
}

static void *resize(void *data, size_t size) {
    if (good_left == 0)
        return NULL;
    if (good_left > 0)
        good_left--;
    struct block *block = malloc(sizeof *block + size);
    if (!block)
        return NULL;
    block->size = size;
    memset(block->data, 0xa5, size);
    live++;
    if (data) {
        size_t old = block_of(data)->size;
        memcpy(block->data, data, old < size ? old : size);
        release(data);
    }
    return block->data;
}

void counted_begin(const char *secret) {
    live = 0;
    good_left = -1;
    secret_bytes = secret;
    leaked = false;
    evlock_set_allocator(resize, release);
}

void counted_fail_after(long good) {
    good_left = good;
}

long counted_live(void) {
    return live;
}

bool counted_leaked_secret(void) {
    return leaked;
}

void counted_end(void) {
    evlock_set_allocator(NULL, NULL);
}

int counted_teardown(void **state) {
    (void)state;
    counted_end();
    return 0;
}
