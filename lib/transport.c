/* The transport; see transport.h. */
#include "transport.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <hiredis/async.h>

/* So often a socket is read that is about to be closed: a server that never ends to speak is not heard out. */
#define DRAINED 64

void evl_transport_begin(struct transport *transport) {
    *transport = (struct transport){0};
}

/* hiredis, with nothing to write, looks whether the socket is connected. */
void evl_transport_open(struct transport *transport, redisAsyncContext *const *context) {
    redisAsyncHandleWrite(*context);
    transport->open = *context && (*context)->c.flags & REDIS_CONNECTED;
}

void evl_transport_read(redisAsyncContext *context) {
    redisAsyncHandleRead(context);
}

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

struct trouble evl_transport_write(struct transport *transport, redisAsyncContext *context) {
    size_t len = sdslen(context->c.obuf);
    ssize_t sent = len ? transport_send(context->c.fd, context->c.obuf, len) : 0;

    if (sent < 0)
        return (struct trouble){EVLOCK_EUNREACHABLE, strerror(errno)};
    if (sent > 0)
        transport_forget(context, (size_t)sent);
    transport->full = (size_t)sent < len;
    transport_await_room(context, transport->full);
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
