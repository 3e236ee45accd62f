/*
 * Hash tags: a Redis Cluster keeps each key in one of 16,384 slots, and a script's keys must be in one. Here is known
 * which tags decide it, and one is made that leads to the slot of a key without. It owns nothing and knows no lock.
 */
#ifndef EVL_HASH_TAG_H
#define EVL_HASH_TAG_H

#include <stdbool.h>

#include "bytes.h"

#define HASH_TAG_SIZE 3 /* bytes of a tag that is made */
#define HASH_TAG_SLOTS 16384

/* A key's hash tag: what stands in its first braces decides its slot, if that is not empty. Without one: no bytes. */
struct bytes evl_hash_tag_of(struct bytes key);

static inline bool evl_hash_tag_is_in(struct bytes key) {
    return evl_hash_tag_of(key).len > 0;
}

/* The slot that a key is in: less than HASH_TAG_SLOTS. */
unsigned evl_hash_tag_slot(struct bytes key);

/* Writes a tag for the slot that `text`, as a tag or as a key without one, is in: a small letter and two letters or
 * digits. Of all such tags it is the one with the first letter, and of those the one with the least CRC. */
void evl_hash_tag_make(char to[HASH_TAG_SIZE], struct bytes text);

#endif
