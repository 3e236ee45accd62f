/*
 * Cluster slots: a Redis Cluster keeps each key in one of 16,384, and a script's keys must be in one. It knows the hash
 * tags that decide it, and makes one that leads to the slot of a key without. It owns nothing and knows no lock.
 */
#ifndef EVL_SLOT_H
#define EVL_SLOT_H

#include <stdbool.h>

#include "bytes.h"

#define SLOT_TAG 3 /* bytes of a tag that is made */

/* Whether a key has a hash tag: what stands in its first braces decides its slot, if that is not empty. */
bool evl_slot_has_tag(struct bytes key);

/* Writes a tag for the slot that `text`, as a tag or as a key without one, is in: a small letter and two letters or
 * digits. Of all such tags it is the one with the first letter, and of those the one with the least CRC. */
void evl_slot_make_tag(char to[SLOT_TAG], struct bytes text);

#endif
