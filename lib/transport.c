/* The transport; see transport.h. */
#include "transport.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <hiredis/async.h>

/* hiredis exports it, for those who read in its place, as its own TLS does; no header of it says so. */
void redisProcessCallbacks(redisAsyncContext *context);

/* Bytes that are read at once. */
#define PIECE 16384

/* So many pieces are read before what they say is handed on. */
#define PIECES 4

/* Bytes: no server that reads has TLS owe it so much that is not said for commands. */
#define OWED_MOST 65536

/* So often a socket is read that is about to be closed: a server that never ends to speak is not heard out. */
#define DRAINED 64

struct trouble evl_transport_begin(struct transport *transport, const char *host, int port, struct words *words) {
    transport->connected = transport->open = transport->full = false;
    transport->owed = 0;
    return transport->tls ? evl_tls_begin(&transport->peer, transport->tls, host, port, words) : evl_no_trouble;
}

void evl_transport_end(struct transport *transport) {
    if (transport->peer)
        evl_tls_end(transport->peer);
    transport->open = transport->full = false;
}

void evl_transport_free(struct transport *transport) {
    if (transport->peer)
        evl_tls_peer_free(transport->peer);
    transport->peer = NULL;
}

static struct trouble transport_fail(int error) {
    return (struct trouble){EVLOCK_EUNREACHABLE, strerror(error)};
}

/* --- Out ---------------------------------------------------------------------------------------------------------- */

/* Sends of `len` bytes as many as the socket takes; -1: it fails. */
static ssize_t transport_send(int fd, const char *bytes, size_t len) {
    size_t sent = 0;

    while (sent < len) {
        ssize_t count = send(fd, bytes + sent, len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0 && errno != EINTR)
            return errno == EAGAIN ? (ssize_t)sent : -1;
        sent += count > 0 ? (size_t)count : 0;
    }
    return (ssize_t)sent;
}

/* The loop calls when the socket takes more, if there is more. */
static void transport_await_room(redisAsyncContext *context, bool full) {
    void (*await)(void *) = full ? context->ev.addWrite : context->ev.delWrite;

    if (await)
        await(context->ev.data);
}

/* What was sent may hold a password, or a token. */
static void transport_forget(redisAsyncContext *context, size_t count) {
    sds queued = context->c.obuf;
    size_t left = sdslen(queued) - count;

    memmove(queued, queued + count, left);
    explicit_bzero(queued + left, count);
    sdssetlen(queued, left);
}

void evl_transport_wipe(const redisAsyncContext *context) {
    explicit_bzero(context->c.obuf, sdslen(context->c.obuf));
}

/* Sends the first `len` bytes of what is queued. */
static struct trouble transport_write_plain(struct transport *transport, redisAsyncContext *context, size_t len) {
    ssize_t sent = len ? transport_send(context->c.fd, context->c.obuf, len) : 0;

    if (sent < 0)
        return transport_fail(errno);
    if (sent > 0)
        transport_forget(context, (size_t)sent);
    transport->full = (size_t)sent < len;
    return evl_no_trouble;
}

/* Sends what TLS has made of what was said, or says by itself. */
static struct trouble transport_send_sealed(struct transport *transport, const redisAsyncContext *context) {
    const char *bytes;
    size_t len = evl_tls_sealed(transport->peer, &bytes);
    ssize_t sent = len ? transport_send(context->c.fd, bytes, len) : 0;

    if (sent < 0)
        return transport_fail(errno);
    evl_tls_sent(transport->peer, (size_t)sent);
    transport->full = (size_t)sent < len;
    if (!transport->full)
        transport->owed = 0;
    return evl_no_trouble;
}

/* What is queued waits until all was sent that had been sealed before. */
static struct trouble transport_write_sealed(struct transport *transport, redisAsyncContext *context, size_t len) {
    struct trouble trouble = transport_send_sealed(transport, context);

    if (trouble.status != EVLOCK_OK || transport->full || len == 0)
        return trouble;
    trouble = evl_tls_put(transport->peer, context->c.obuf, len);
    if (trouble.status != EVLOCK_OK)
        return trouble;
    transport_forget(context, len);
    return transport_send_sealed(transport, context);
}

/* --- In ----------------------------------------------------------------------------------------------------------- */

/* Reads what has come, which is sealed. The trouble is how the socket ended. */
static struct trouble transport_hear(struct transport *transport, redisAsyncContext *context) {
    char bytes[PIECE];
    struct trouble trouble = evl_no_trouble;

    for (int i = 0; trouble.status == EVLOCK_OK && i < PIECES; i++) {
        ssize_t count = recv(context->c.fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (count == 0)
            return (struct trouble){EVLOCK_EUNREACHABLE, "Server closed the connection"};
        if (count < 0)
            return errno == EAGAIN || errno == EINTR ? evl_no_trouble : transport_fail(errno);
        trouble = evl_tls_feed(transport->peer, bytes, (size_t)count);
        if ((size_t)count < sizeof(bytes))
            break;
    }
    return trouble;
}

/* Hands all to hiredis that can be opened. */
static struct trouble transport_unseal(struct transport *transport, redisAsyncContext *context) {
    char bytes[PIECE];
    size_t len, longest = 0;
    struct trouble trouble;

    do {
        trouble = evl_tls_take(transport->peer, bytes, sizeof(bytes), &len);
        longest = len > longest ? len : longest;
        if (len > 0 && redisReaderFeed(context->c.reader, bytes, len) != REDIS_OK)
            break; /* it says so when it is asked for replies */
    } while (len > 0);
    explicit_bzero(bytes, longest);
    return trouble;
}

static void transport_await_bytes(redisAsyncContext *context) {
    if (context->ev.addRead)
        context->ev.addRead(context->ev.data);
}

static struct trouble transport_first(struct trouble first, struct trouble second) {
    return first.status != EVLOCK_OK ? first : second;
}

static size_t transport_unsent(const struct transport *transport) {
    const char *bytes;

    return evl_tls_sealed(transport->peer, &bytes);
}

/* Opens what was heard, and sends what TLS answers by itself: new keys are confirmed, a new handshake is refused. A
 * server that asks for such without end and reads nothing would have that grow without end. To read no more before it
 * does could have both wait for each other: it is the end. */
static struct trouble transport_answer(struct transport *transport, redisAsyncContext *context,
                                       struct trouble *ret_unsealed) {
    size_t before = transport_unsent(transport);
    struct trouble unsent;

    *ret_unsealed = transport_unseal(transport, context);
    transport->owed += transport_unsent(transport) - before;
    unsent = transport_send_sealed(transport, context);
    if (transport->owed > OWED_MOST)
        return (struct trouble){EVLOCK_EPROTOCOL, "TLS: the server asks for more and more, and reads no answer"};
    return unsent;
}

static struct trouble transport_read_sealed(struct transport *transport, redisAsyncContext *context) {
    struct trouble ended = transport_hear(transport, context), unsealed;
    struct trouble unsent = transport_answer(transport, context, &unsealed);

    if (transport->full)
        transport_await_room(context, true);
    transport_await_bytes(context);
    redisProcessCallbacks(context);
    return transport_first(unsealed, transport_first(ended, unsent));
}

/* Nothing more can be sent. What the server said last may be why: TLS 1.3 lets a client speak before the server has
 * looked at its certificate. */
static struct trouble transport_last_words(struct transport *transport, redisAsyncContext *context,
                                           struct trouble unsent) {
    (void)transport_hear(transport, context);
    return transport_first(transport_unseal(transport, context), unsent);
}

struct trouble evl_transport_write(struct transport *transport, redisAsyncContext *context) {
    size_t len = sdslen(context->c.obuf);
    struct trouble trouble = transport->tls ? transport_write_sealed(transport, context, len)
                                            : transport_write_plain(transport, context, len);

    if (trouble.status == EVLOCK_OK)
        transport_await_room(context, transport->full || sdslen(context->c.obuf) > 0);
    else if (transport->tls)
        return transport_last_words(transport, context, trouble);
    return trouble;
}

struct trouble evl_transport_read(struct transport *transport, redisAsyncContext *context) {
    if (transport->tls)
        return transport_read_sealed(transport, context);
    redisAsyncHandleRead(context);
    return evl_no_trouble;
}

/* --- The beginning ------------------------------------------------------------------------------------------------ */

/* hiredis, with nothing to write, looks whether the socket is connected. */
static bool transport_connects(struct transport *transport, redisAsyncContext *const *context) {
    if (!transport->connected) {
        redisAsyncHandleWrite(*context);
        transport->connected = *context && (*context)->c.flags & REDIS_CONNECTED;
    }
    return transport->connected;
}

/* What the server says last may be why it ends the connection. */
static struct trouble transport_shake(struct transport *transport, redisAsyncContext *context) {
    struct trouble ended = transport_hear(transport, context);
    struct trouble shaken = evl_no_trouble, unsent;

    if (ended.status == EVLOCK_OK || ended.status == EVLOCK_EUNREACHABLE)
        shaken = evl_tls_shake(transport->peer, &transport->open);
    unsent = transport_send_sealed(transport, context);
    if (unsent.status != EVLOCK_OK)
        unsent = transport_last_words(transport, context, unsent);
    transport_await_room(context, transport->full);
    transport_await_bytes(context);
    return transport_first(shaken, transport_first(ended, unsent));
}

struct trouble evl_transport_open(struct transport *transport, redisAsyncContext *const *context) {
    if (!transport_connects(transport, context))
        return evl_no_trouble;
    if (transport->tls)
        return transport_shake(transport, *context);
    transport->open = true;
    return evl_no_trouble;
}

bool evl_transport_spoke(const redisAsyncContext *context, int *ret_errno) {
    char byte;
    ssize_t count = recv(context->c.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    if (count < 0 && errno != EAGAIN && errno != EINTR && errno != ENOTCONN)
        *ret_errno = errno;
    return count == 1;
}

void evl_transport_drain(const redisAsyncContext *context) {
    char bytes[16384];

    for (int i = 0; i < DRAINED && recv(context->c.fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0; i++)
        ;
}
