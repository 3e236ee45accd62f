/*
 * Posts: what other threads want to have called in the client's. Any thread adds one; the client's own takes them out,
 * oldest first. It owns their memory, and never calls anyone but the turn, to be given one soon.
 */
#ifndef EVL_POST_H
#define EVL_POST_H

#include <stdatomic.h>
#include <stdbool.h>

#include "turn.h"

struct post {
    struct post *next;
    evlock_post_cb cb;
    void *arg;
};

/* Zeroed at first. */
struct posts {
    _Atomic(struct post *) added; /* newest first; a mark when nobody may add any more */
    atomic_uint adding;           /* threads that are at it: they need the client, also when their posts are taken */
    struct post *taken;           /* oldest first; the client's thread's alone, as what follows */
    struct post **end;            /* of those; NULL: there has been none */
};

/* From any thread: adds one, and wakes the loop. EVLOCK_OK, EVLOCK_ENOMEM, or EVLOCK_ECLOSED after evl_posts_close().
 */
int evl_posts_add(struct posts *posts, struct turn *turn, evlock_post_cb cb, void *arg);

/* Whether a thread is adding one: the turn it gave may be over before it has let go of the client. */
static inline bool evl_posts_adding(struct posts *posts) {
    return atomic_load(&posts->adding) > 0;
}

/* Takes what has been added by now. */
void evl_posts_take(struct posts *posts);

/* Whether there are any that were taken. */
static inline bool evl_posts_left(const struct posts *posts) {
    return posts->taken;
}

/* The oldest that was taken, which goes by that: one is left. */
struct post evl_posts_next(struct posts *posts);

/* Takes what has been added, and no more can be. */
void evl_posts_close(struct posts *posts);

/* Frees those that are left, uncalled. */
void evl_posts_free(struct posts *posts);

#endif
