/*
 * Slabs: memory for what there may be very much of for a short while, in blocks of one size. The first blocks are each
 * by themselves, and are kept when they come back. Any further ones lie side by side in slabs, apart from what stays
 * longer. So a slab is empty soon after, and is freed as a whole. A slab never moves. It owns all of that memory.
 */
#ifndef EVL_SLAB_H
#define EVL_SLAB_H

#include <stddef.h>
#include <sys/queue.h>

struct slab_block;

struct slab {
    struct slabs *owner;
    struct slab_block *first; /* of those that came back */
    LIST_ENTRY(slab) link;    /* in `room` of its owner, unless it is full or the spare one */
    unsigned used;            /* blocks that are out */
    unsigned begun;           /* those that ever were; the others are untouched */
};

struct slabs {
    struct slab alone; /* stands for the blocks by themselves, and does not count those that are out */
    size_t size;       /* of a block, with what belongs to the slab */
    unsigned keep;     /* the most by themselves */
    unsigned per_slab; /* blocks */
    LIST_HEAD(, slab) room;
    struct slab *spare; /* an empty one, so that the next block needs none; or NULL */
};

/* Sets them up: so many blocks of this size are by themselves. */
void evl_slabs_init(struct slabs *slabs, size_t size, unsigned keep);

/* A zeroed block, aligned for pointers; or NULL. */
void *evl_slab_alloc(struct slabs *slabs);

/* Gives back a block's bytes, to the slabs that gave them. */
void evl_slab_free(void *bytes);

/* Frees what is kept. All blocks have come back. */
void evl_slabs_free(struct slabs *slabs);

#endif
