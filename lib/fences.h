/*
 * The fences that a client has seen, by lock: one that does not grow tells that servers have forgotten more than they
 * may. It owns a table of one size: of two locks that fall into one place of it, the one used last is remembered. What
 * comes of such a fence is never decided here.
 */
#ifndef EVL_FENCES_H
#define EVL_FENCES_H

#include <stdint.h>

#include "bytes.h"

/* Zeroed at first. */
struct fences {
    struct fence_seen *places;
};

/* Notes a fence that was drawn for a lock; false: it is not greater than one that was seen. */
bool evl_fences_note(struct fences *fences, struct bytes key, int64_t fence);

/* Frees the table. */
void evl_fences_free(struct fences *fences);

#endif
