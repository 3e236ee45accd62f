/* Many locks of evlock; see locks.h. */
#include "locks.h"

#include <stdlib.h>

#include "../urls.h"
#include "check.h"
#include "floor.h"

void expect_ok(int status) {
    CHECK(status == EVLOCK_OK, "%s: %s", evlock_strerror(status), evlock_last_error());
}

/* --- The client --------------------------------------------------------------------------------------------------- */

static bool is_ready(const struct locks *locks, size_t node) {
    evlock_node_info info;
    expect_ok(evlock_client_node(locks->client, node, &info, sizeof(info)));
    return info.connection == EVLOCK_CONNECTED && info.status == EVLOCK_OK;
}

static void connect_all(struct locks *locks, size_t nodes) {
    for (size_t i = 0; i < nodes; i++)
        while (!is_ready(locks, i))
            CHECK(event_base_loop(locks->base, EVLOOP_ONCE) == 0, "the loop ended");
}

void locks_open_at(struct locks *locks, struct event_base *base, const char *url, size_t count,
                   const evlock_options *options) {
    evlock_client_options client_options = {.size = sizeof(evlock_client_options)};
    char key[KEY_LEN + 1];

    client_options.durable = true; /* of several nodes: ones that have just started count */
    *locks = (struct locks){.base = base, .count = count, .at = calloc(count, sizeof(evlock *))};
    CHECK(locks->at, "out of memory");
    expect_ok(evlock_client_new_libevent(&locks->client, base, url, &client_options));
    for (size_t i = 0; i < count; i++) {
        key_write(key, i);
        expect_ok(evlock_new(&locks->at[i], locks->client, key, KEY_LEN, options));
    }
}

void locks_open(struct locks *locks, struct event_base *base, size_t nodes, size_t count,
                const evlock_options *options) {
    const char *urls[SERVERS_MAX];

    for (size_t i = 0; i < nodes; i++)
        urls[i] = servers[i].url;
    locks_open_at(locks, base, urls_joined(urls, nodes).text, count, options);
    connect_all(locks, nodes);
}

static void closed(int status, void *arg) {
    struct locks *locks = arg;
    expect_ok(status);
    event_base_loopbreak(locks->base);
}

void locks_close(struct locks *locks) {
    expect_ok(evlock_client_close(locks->client, closed, locks));
    event_base_dispatch(locks->base);
    for (size_t i = 0; i < locks->count; i++)
        evlock_free(locks->at[i]);
    free(locks->at);
}

/* --- All of them -------------------------------------------------------------------------------------------------- */

static void acquire_next(struct locks *locks);
static void release_next(struct locks *locks);

static void settle(struct locks *locks, int status) {
    expect_ok(status);
    if (--locks->left == 0)
        event_base_loopbreak(locks->base);
}

static void acquired(evlock *lock, int status, void *arg) {
    (void)lock;
    settle(arg, status);
    acquire_next(arg);
}

static void released(evlock *lock, int status, void *arg) {
    (void)lock;
    settle(arg, status);
    release_next(arg);
}

static void acquire_next(struct locks *locks) {
    if (locks->next < locks->count)
        expect_ok(evlock_acquire(locks->at[locks->next++], NULL, acquired, locks));
}

static void release_next(struct locks *locks) {
    if (locks->next < locks->count)
        expect_ok(evlock_release(locks->at[locks->next++], released, locks));
}

static void all(struct locks *locks, void (*next)(struct locks *locks), size_t window) {
    locks->next = 0;
    locks->left = locks->count;
    for (size_t i = 0; i < window; i++)
        next(locks);
    event_base_dispatch(locks->base);
}

void locks_acquire_all(struct locks *locks) {
    all(locks, acquire_next, WINDOW);
}

void locks_acquire_at_once(struct locks *locks) {
    all(locks, acquire_next, locks->count);
}

void locks_release_all(struct locks *locks) {
    all(locks, release_next, WINDOW);
}

void locks_check_held_by(const struct locks *locks, struct keepers keepers) {
    check_keys_among(keepers, locks->count);
    for (size_t i = 0; i < locks->count; i += locks->count / 10 + 1) {
        size_t len;
        const void *token = evlock_token(locks->at[i], &len);
        CHECK(evlock_is_held(locks->at[i]), "a lock that was acquired is not held");
        check_token(keepers, evlock_name(locks->at[i], NULL), token, len);
    }
}

void locks_check_held(const struct locks *locks) {
    locks_check_held_by(locks, (struct keepers){servers, 1});
}
