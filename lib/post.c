/* Posts; see post.h. */
#include "post.h"

#include "check.h"
#include "memory.h"

static struct post closed; /* the mark; nothing is ever written to it */

/* Whoever adds looks only at the newest one's address. So one that is freed and made anew meanwhile does no harm. */
static bool post_add(struct posts *posts, struct post *post) {
    post->next = atomic_load(&posts->added);
    while (post->next != &closed)
        if (atomic_compare_exchange_weak(&posts->added, &post->next, post))
            return true;
    return false;
}

int evl_posts_add(struct posts *posts, struct turn *turn, evlock_post_cb cb, void *arg) {
    struct post *post = evl_alloc(sizeof(*post));
    bool added;

    if (!post)
        return EVLOCK_ENOMEM;
    *post = (struct post){NULL, cb, arg};
    atomic_fetch_add(&posts->adding, 1);
    added = post_add(posts, post);
    if (added)
        evl_turn_ask(turn);
    atomic_fetch_sub(&posts->adding, 1); /* last: from here on the client may be freed */
    if (added)
        return EVLOCK_OK;
    evl_free(post);
    return EVLOCK_ECLOSED;
}

/* Turns them round. */
static void post_take(struct posts *posts, struct post *added) {
    struct post *oldest = NULL, **end = added ? &added->next : NULL;

    while (added) {
        struct post *next = added->next;
        added->next = oldest;
        oldest = added;
        added = next;
    }
    if (!oldest)
        return;
    *(posts->taken ? posts->end : &posts->taken) = oldest;
    posts->end = end;
}

void evl_posts_take(struct posts *posts) {
    struct post *added = atomic_load(&posts->added);

    if (added && added != &closed)
        post_take(posts, atomic_exchange(&posts->added, NULL));
}

struct post evl_posts_next(struct posts *posts) {
    struct post *first = posts->taken, post;

    assert(first);
    post = *first;
    posts->taken = post.next;
    evl_free(first);
    return post;
}

void evl_posts_close(struct posts *posts) {
    struct post *added = atomic_exchange(&posts->added, &closed);

    if (added != &closed)
        post_take(posts, added);
}

void evl_posts_free(struct posts *posts) {
    evl_posts_close(posts);
    while (evl_posts_left(posts))
        (void)evl_posts_next(posts);
}
