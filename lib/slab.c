/* Slabs; see slab.h. */
#include "slab.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "memory.h"

/* So large that allocators take it from the system by itself, unless the program has made them change their mind. A
 * sanitizer sees each use of what was given back, if a slab is one block. */
#define SLAB_SIZE (EVL_MEMORY_WATCHED ? 1 : 256 * 1024)

struct slab_block {
    struct slab *slab;       /* what is behind it, is the user's, */
    struct slab_block *next; /* but while the block is not out */
};

#define BLOCK_HEAD offsetof(struct slab_block, next)

static size_t slab_size(const struct slabs *slabs) {
    return sizeof(struct slab) + slabs->per_slab * slabs->size;
}

/* It is spare, or there is one. */
static void slab_give_up(struct slab *slab) {
    size_t size = slab_size(slab->owner), page = (size_t)sysconf(_SC_PAGESIZE);
    char *begin = (char *)slab + (page - (uintptr_t)slab % page) % page;
    char *end = (char *)slab + size - ((uintptr_t)slab + size) % page;

    /* An allocator may keep what lies between other blocks, and the system may refuse: then it stays resident. */
    if (!EVL_MEMORY_WATCHED && begin < end)
        (void)madvise(begin, (size_t)(end - begin), MADV_DONTNEED);
    evl_free(slab);
}

static struct slab *slab_new(struct slabs *slabs) {
    struct slab *slab = evl_resize(NULL, slab_size(slabs));

    if (slab)
        *slab = (struct slab){.owner = slabs};
    return slab;
}

static struct slab *slab_with_room(struct slabs *slabs) {
    struct slab *slab = LIST_FIRST(&slabs->room);

    if (slab)
        return slab;
    slab = slabs->spare ? slabs->spare : slab_new(slabs);
    slabs->spare = NULL;
    if (slab)
        LIST_INSERT_HEAD(&slabs->room, slab, link);
    return slab;
}

static struct slab_block *slab_take(struct slabs *slabs) {
    struct slab *slab = slab_with_room(slabs);
    struct slab_block *block;

    if (!slab)
        return NULL;
    block = slab->first;
    if (block)
        slab->first = block->next;
    else
        block = (struct slab_block *)(void *)((char *)(slab + 1) + slab->begun++ * slabs->size);
    if (++slab->used == slabs->per_slab)
        LIST_REMOVE(slab, link);
    block->slab = slab;
    return block;
}

/* None by itself has come back. */
static struct slab_block *slab_take_more(struct slabs *slabs) {
    struct slab_block *block;

    if (EVL_MEMORY_WATCHED || slabs->alone.begun >= slabs->keep)
        return slab_take(slabs);
    block = evl_resize(NULL, slabs->size);
    if (block) {
        block->slab = &slabs->alone;
        slabs->alone.begun++;
    }
    return block;
}

/* One of its blocks has come back. */
static void slab_settle(struct slab *slab) {
    struct slabs *slabs = slab->owner;

    assert(slab->used > 0 && slab->used <= slab->begun);
    if (slab->used-- == slabs->per_slab)
        LIST_INSERT_HEAD(&slabs->room, slab, link);
    if (slab->used > 0)
        return;
    LIST_REMOVE(slab, link);
    if (slabs->spare || EVL_MEMORY_WATCHED)
        slab_give_up(slab);
    else
        slabs->spare = slab;
}

void evl_slabs_init(struct slabs *slabs, size_t size, unsigned keep) {
    size_t unit = sizeof(void *);

    *slabs = (struct slabs){.alone.owner = slabs, .size = (BLOCK_HEAD + size + unit - 1) / unit * unit, .keep = keep};
    slabs->per_slab = slabs->size < SLAB_SIZE ? (unsigned)(SLAB_SIZE / slabs->size) : 1;
    LIST_INIT(&slabs->room);
}

void *evl_slab_alloc(struct slabs *slabs) {
    struct slab_block *block = slabs->alone.first;

    if (block)
        slabs->alone.first = block->next;
    else if (!(block = slab_take_more(slabs)))
        return NULL;
    return memset((char *)block + BLOCK_HEAD, 0, slabs->size - BLOCK_HEAD);
}

void evl_slab_free(void *bytes) {
    struct slab_block *block = (struct slab_block *)(void *)((char *)bytes - BLOCK_HEAD);
    struct slab *slab = block->slab;

    block->next = slab->first;
    slab->first = block;
    if (slab != &slab->owner->alone)
        slab_settle(slab);
}

void evl_slabs_free(struct slabs *slabs) {
    struct slab_block *block;

    for (; (block = slabs->alone.first); slabs->alone.begun--) {
        slabs->alone.first = block->next;
        evl_free(block);
    }
    assert(slabs->alone.begun == 0 && LIST_EMPTY(&slabs->room));
    evl_free(slabs->spare);
    slabs->spare = NULL;
}
