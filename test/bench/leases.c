/* Many leases of the floor; see leases.h. */
#include "leases.h"

#include <stdlib.h>

#include "check.h"
#include "locks.h"

void leases_open(struct leases *leases, struct event_base *base, size_t count) {
    *leases = (struct leases){.base = base, .count = count, .at = calloc(count, sizeof(struct lease))};
    CHECK(leases->at, "out of memory");
    leases->connection = floor_connect(base, &servers[0]);
    for (size_t i = 0; i < count; i++)
        key_write(leases->at[i].key, i);
}

void leases_close(struct leases *leases) {
    redisAsyncFree(leases->connection);
    free(leases->at);
}

/* --- All of them -------------------------------------------------------------------------------------------------- */

static void acquire_next(struct leases *leases);
static void release_next(struct leases *leases);

static void settle(struct leases *leases) {
    if (--leases->left == 0)
        event_base_loopbreak(leases->base);
}

static void acquired(redisAsyncContext *connection, void *reply, void *arg) {
    (void)connection;
    floor_expect_ok(reply);
    settle(arg);
    acquire_next(arg);
}

static void released(redisAsyncContext *connection, void *reply, void *arg) {
    (void)connection;
    floor_expect_one(reply);
    settle(arg);
    release_next(arg);
}

static void acquire_next(struct leases *leases) {
    if (leases->next < leases->count) {
        struct lease *lease = &leases->at[leases->next++];
        floor_draw(lease);
        floor_acquire(leases->connection, lease, acquired, leases);
    }
}

static void release_next(struct leases *leases) {
    if (leases->next < leases->count)
        floor_release(leases->connection, &leases->at[leases->next++], released, leases);
}

static void all(struct leases *leases, void (*next)(struct leases *leases)) {
    leases->next = 0;
    leases->left = leases->count;
    for (size_t i = 0; i < WINDOW; i++)
        next(leases);
    event_base_dispatch(leases->base);
}

void leases_acquire_all(struct leases *leases) {
    all(leases, acquire_next);
}

void leases_release_all(struct leases *leases) {
    all(leases, release_next);
}

void leases_check_held(const struct leases *leases) {
    check_keys(&servers[0], leases->count);
    for (size_t i = 0; i < leases->count; i += leases->count / 10 + 1)
        check_token((struct keepers){servers, 1}, leases->at[i].key, leases->at[i].token, TOKEN_LEN);
}
