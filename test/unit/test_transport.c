/*
 * What a server that ends a TLS handshake says last, at the worst moment: after the client has read, and before it
 * sends. The socket is in memory, and the test is at its other end, right ahead of each send.
 */
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "client.h"
#include "world/loop.h"
#include "world/socket.h"

static struct virtual_loop loop;

static const evlock_loop_ops ops = {VIRTUAL_OPS, .attach = virtual_attach_nowhere};

/* The server says this before the next send, and ends the connection; NULL: it does nothing. */
static const unsigned char *last_words;
static size_t last_words_len;

/* In place of the library's calls of send(). */
ssize_t __real_send(int fd, const void *bytes, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t len, int flags);

ssize_t __wrap_send(int fd, const void *bytes, size_t len, int flags) {
    if (last_words) {
        socket_put(socket_of(fd), last_words, last_words_len);
        socket_end(socket_of(fd));
    }
    last_words = NULL;
    return __real_send(fd, bytes, len, flags);
}

static struct connection *connection_of(evlock_client *client) {
    return evl_node_connection(evl_client_deployment(client)->nodes[0]);
}

CASE(why_a_handshake_is_refused_is_heard_though_nothing_can_be_sent) {
    static const unsigned char alert[] = {0x15, 3, 3, 0, 2, 2, 80}; /* fatal: an internal error */
    evlock_client *client;

    virtual_loop_init(&loop, NULL, NULL);
    sockets_listen(0, true);
    assert_int_equal(evlock_client_new(&client, &(evlock_loop){&ops, &loop}, "rediss://127.0.0.1:7000", NULL),
                     EVLOCK_OK);
    last_words = alert;
    last_words_len = sizeof(alert);
    evlock_on_writable(connection_of(client)->context);
    assert_null(last_words);
    virtual_timer_ring(virtual_timer_next(&loop));
    assert_int_equal(evlock_client_connection(client), EVLOCK_AWAY);
    assert_non_null(strstr(connection_of(client)->error, "alert internal error"));
    evlock_client_free(client);
    while (virtual_timer_next(&loop))
        virtual_timer_ring(virtual_timer_next(&loop));
    assert_int_equal(sockets_count(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(why_a_handshake_is_refused_is_heard_though_nothing_can_be_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
