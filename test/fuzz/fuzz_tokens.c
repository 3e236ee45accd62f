/*
 * Tokens: arbitrary bytes as the caller's own, exported into buffers of any size, adopted by another handle. What goes
 * out comes in again, byte for byte, and the lease is on one handle at a time.
 */
#include "input.h"

#include <stdbool.h>

#include <evlock/evlock.h>

#include "../unit/counted.h"
#include "loop.h"
#include "server.h"

static struct loop loop;
static struct server server;

static void nothing_said(unsigned node, const char *key) {
    (void)node, (void)key;
}

static void on_end(evlock *lock, int status, void *arg) {
    (void)lock;
    *(int *)arg = status;
}

/* Lets the server answer all there is to answer with yes; every ttl is 30 s. */
static void settle(void) {
    struct peer *peer;

    for (int i = 0; i < 8; i++) {
        loop_turn(&loop);
        server_turn(&server);
        for (unsigned j = 0; j < SERVER_PEERS && (peer = server_peer(&server, j)); j++)
            while (peer->socket && peer->asked > 0)
                server_answer(&server, peer, ANSWER_YES, 0);
    }
}

static void check_token(const evlock *lock, const uint8_t *token, size_t len) {
    size_t found_len;
    const void *found = evlock_token(lock, &found_len);

    check(found && found_len == len && memcmp(found, token, len) == 0);
}

/* Moves the lease from one handle to the other, if the buffer is large enough. */
static void hand_over(evlock *from, evlock *to, const uint8_t *token, size_t len, size_t room) {
    uint8_t *buffer = malloc(room ? room : 1);
    size_t exported = 0;
    int status = evlock_export(from, buffer, room, &exported);
    int told = 1;

    check(buffer);
    check(status == (room < len ? EVLOCK_EINVAL : EVLOCK_OK));
    check(evlock_is_held(from) == (status != EVLOCK_OK));
    if (status == EVLOCK_OK) {
        check(exported == len && memcmp(buffer, token, len) == 0);
        check(!evlock_token(from, &exported));
        check(evlock_adopt(to, buffer, len, on_end, &told) == EVLOCK_OK);
        check(!evlock_is_held(to));
        settle();
        check(told == EVLOCK_OK && evlock_is_held(to));
        check_token(to, token, len);
        check(evlock_fence(to) == 0);
    }
    free(buffer);
}

static void acquire(evlock *one, evlock *other, const uint8_t *token, size_t len, size_t room) {
    evlock_acquire_options options = {.size = sizeof(evlock_acquire_options)};
    int told = 1, status;

    options.token = token;
    options.token_len = len;
    status = evlock_acquire(one, &options, on_end, &told);
    check(status == (len < 1 || len > 128 ? EVLOCK_ETOKEN : EVLOCK_OK));
    check(evlock_adopt(other, token, len, NULL, NULL) == status);
    check(evlock_cancel(other) == (status == EVLOCK_OK ? EVLOCK_OK : EVLOCK_ENOTHELD));
    settle();
    if (status != EVLOCK_OK)
        return;
    check(told == EVLOCK_OK && evlock_is_held(one));
    check_token(one, token, len);
    hand_over(one, other, token, len, room);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct input input = {data, data + size};
    evlock_loop adapter;
    evlock_client *client;
    evlock *one, *other;
    size_t room = take_byte(&input);
    size_t len = (size_t)(input.end - input.at);
    const char *url;

    counted_begin(NULL);
    loop_begin(&loop);
    adapter = loop_adapter(&loop);
    server.said = nothing_said;
    server_begin(&server);
    url = server.urls[0];
    check(evlock_client_new(&client, &adapter, url, NULL) == EVLOCK_OK);
    check(evlock_new(&one, client, "a", 1, NULL) == EVLOCK_OK);
    check(evlock_new(&other, client, "a", 1, NULL) == EVLOCK_OK);
    settle();
    check(evlock_client_connection(client) == EVLOCK_CONNECTED);
    acquire(one, other, input.at, len, room);
    evlock_free(one);
    evlock_free(other);
    settle();
    evlock_client_free(client);
    loop_turn(&loop);
    server_end(&server);
    loop_end(&loop);
    check(counted_live() == 0);
    return 0;
}
