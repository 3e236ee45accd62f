/* The transport; see transport.h. */
#include "transport.h"

#include <errno.h>
#include <sys/socket.h>
#include <time.h>

#include <hiredis/async.h>

/* So often a socket is read that is about to be closed: a server that never ends to speak is not heard out. */
#define DRAINED 64

void evl_transport_read(redisAsyncContext *context) {
    redisAsyncHandleRead(context);
}

void evl_transport_write(redisAsyncContext *context) {
    redisAsyncHandleWrite(context);
}

static void transport_only_sigpipe(sigset_t *set) {
    sigemptyset(set);
    sigaddset(set, SIGPIPE);
}

void evl_transport_quiet(struct transport_quiet *quiet) {
    sigset_t sigpipe;

    transport_only_sigpipe(&sigpipe);
    sigemptyset(&quiet->pending);
    pthread_sigmask(SIG_BLOCK, &sigpipe, &quiet->before);
    if (sigismember(&quiet->before, SIGPIPE)) /* or else none can be pending */
        sigpending(&quiet->pending);
}

void evl_transport_unquiet(const struct transport_quiet *quiet, bool broken) {
    struct timespec none = {0, 0};
    sigset_t sigpipe;

    transport_only_sigpipe(&sigpipe);
    if (broken && !sigismember(&quiet->pending, SIGPIPE))
        sigtimedwait(&sigpipe, NULL, &none);
    pthread_sigmask(SIG_SETMASK, &quiet->before, NULL);
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
