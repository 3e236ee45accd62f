/* The floor over TLS; see tls_floor.h. */
#include "tls_floor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/ssl.h>

#include "certs.h"
#include "check.h"
#include "floor.h"

enum { READ_SIZE = 16 * 1024 };

struct tls_lease {
    struct lease lease;
    bool granted;
};

struct tls_floor {
    struct event_base *base;
    struct event *readable;
    SSL_CTX *context;
    SSL *ssl;
    BIO *out; /* gathers what is written */
    int fd;
    redisReader *reader;
    struct tls_lease *leases;
    struct tls_lease **asked; /* a ring of those whose replies are to come, in their order */
    size_t count, first, pending;
    char *commands;
    size_t commands_len;
    long wanted; /* pairs still to be begun */
};

/* --- Writing ------------------------------------------------------------------------------------------------------ */

static void await_room(const struct tls_floor *floor) {
    struct pollfd room = {.fd = floor->fd, .events = POLLOUT};
    CHECK(poll(&room, 1, -1) == 1, "poll");
}

static void flush(struct tls_floor *floor) {
    if (floor->commands_len == 0)
        return;
    while (SSL_write(floor->ssl, floor->commands, (int)floor->commands_len) <= 0)
        await_room(floor);
    while (BIO_flush(floor->out) <= 0)
        await_room(floor);
    floor->commands_len = 0;
}

static void ask(struct tls_floor *floor, struct tls_lease *lease) {
    char *to = floor->commands + floor->commands_len;
    char *end = lease->granted ? floor_put_release(to, &lease->lease) : floor_put_acquire(to, &lease->lease);
    floor->commands_len += (size_t)(end - to);
    floor->asked[(floor->first + floor->pending++) % floor->count] = lease;
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

static void answered(struct tls_floor *floor, const redisReply *reply) {
    struct tls_lease *lease = floor->asked[floor->first];
    floor->first = (floor->first + 1) % floor->count;
    floor->pending--;
    if (!lease->granted)
        floor_expect_ok(reply);
    else
        floor_expect_one(reply);
    lease->granted = !lease->granted;
    if (!lease->granted && floor->wanted-- <= 0)
        return;
    if (!lease->granted)
        floor_draw(&lease->lease);
    ask(floor, lease);
}

static void on_readable(evutil_socket_t fd, short what, void *arg) {
    struct tls_floor *floor = arg;
    char bytes[READ_SIZE];
    int len;
    (void)fd, (void)what;
    while ((len = SSL_read(floor->ssl, bytes, sizeof(bytes))) > 0) {
        void *reply;
        CHECK(redisReaderFeed(floor->reader, bytes, (size_t)len) == REDIS_OK, "out of memory");
        while (redisReaderGetReply(floor->reader, &reply) == REDIS_OK && reply) {
            answered(floor, reply);
            freeReplyObject(reply);
        }
        flush(floor);
    }
    CHECK(SSL_get_error(floor->ssl, len) == SSL_ERROR_WANT_READ, "the connection ended");
    if (floor->pending == 0)
        event_base_loopbreak(floor->base);
}

void tls_floor_run(void *arg, long pairs) {
    struct tls_floor *floor = arg;
    floor->wanted = pairs - (long)floor->count;
    for (size_t i = 0; i < floor->count; i++) {
        floor_draw(&floor->leases[i].lease);
        ask(floor, &floor->leases[i]);
    }
    flush(floor);
    event_base_dispatch(floor->base);
}

/* --- Connecting --------------------------------------------------------------------------------------------------- */

static int connect_to(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0, "no connection");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

/* The handshake waits, and nothing after it does. */
static void shake_hands(struct tls_floor *floor) {
    floor->context = SSL_CTX_new(TLS_client_method());
    CHECK(floor->context && SSL_CTX_load_verify_file(floor->context, cert_file("authority")) == 1, "no TLS");
    SSL_CTX_set_verify(floor->context, SSL_VERIFY_PEER, NULL);
    floor->ssl = SSL_new(floor->context);
    floor->out = BIO_new(BIO_f_buffer());
    CHECK(floor->ssl && floor->out, "out of memory");
    CHECK(BIO_set_write_buffer_size(floor->out, 4 * READ_SIZE) == 1, "out of memory");
    SSL_set_bio(floor->ssl, BIO_new_socket(floor->fd, BIO_NOCLOSE),
                BIO_push(floor->out, BIO_new_socket(floor->fd, BIO_NOCLOSE)));
    SSL_set_read_ahead(floor->ssl, 1);
    CHECK(SSL_connect(floor->ssl) == 1, "no handshake");
    CHECK(fcntl(floor->fd, F_SETFL, O_NONBLOCK) == 0, "no descriptor");
}

struct tls_floor *tls_floor_open(struct event_base *base, struct server *server, size_t level) {
    struct tls_floor *floor = calloc(1, sizeof(*floor));
    CHECK(floor, "out of memory");
    *floor = (struct tls_floor){.base = base, .count = level, .reader = redisReaderCreate()};
    floor->leases = calloc(level, sizeof(*floor->leases));
    floor->asked = calloc(level, sizeof(*floor->asked));
    floor->commands = malloc(level * COMMAND_MAX);
    CHECK(floor->reader && floor->leases && floor->asked && floor->commands, "out of memory");
    for (size_t i = 0; i < level; i++)
        key_write(floor->leases[i].lease.key, i);
    floor_load(server);
    floor->fd = connect_to(server->port);
    shake_hands(floor);
    floor->readable = event_new(base, floor->fd, EV_READ | EV_PERSIST, on_readable, floor);
    CHECK(floor->readable && event_add(floor->readable, NULL) == 0, "no event");
    return floor;
}

void tls_floor_close(struct tls_floor *floor) {
    event_free(floor->readable);
    SSL_free(floor->ssl);
    SSL_CTX_free(floor->context);
    close(floor->fd);
    redisReaderFree(floor->reader);
    free(floor->leases);
    free(floor->asked);
    free(floor->commands);
    free(floor);
}
