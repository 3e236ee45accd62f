/*
 * Kinds of locks. A handle's config says of which one its lock is, and dialect.c what it says on the wire. One more
 * kind is one more name here, and its row there.
 */
#ifndef EVL_KIND_H
#define EVL_KIND_H

#include <stdbool.h>

enum lock_kind {
    LOCK_PLAIN,  /* who waits asks again after a pause */
    LOCK_QUEUED, /* others may wait in line for it, so what ends a lease hands it on */
    LOCK_KINDS,
};

/* How a lease of it is taken. */
enum taking {
    TAKE_AT_ONCE, /* if nobody has it */
    TAKE_FENCED,  /* the same, and a fence is drawn */
    TAKE_IN_LINE, /* by waiting for one's turn, where there is a queue */
    TAKINGS,
};

static inline bool evl_kind_has_queue(enum lock_kind kind) {
    return kind == LOCK_QUEUED;
}

#endif
