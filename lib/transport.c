/* The transport; see transport.h. */
#include "transport.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>

#include <hiredis/async.h>

/* So often a socket is read that is about to be closed: a server that never ends to speak is not heard out. */
#define DRAINED 64

void evl_transport_read(redisAsyncContext *context) {
    redisAsyncHandleRead(context);
}

static void transport_only_sigpipe(sigset_t *set) {
    sigemptyset(set);
    sigaddset(set, SIGPIPE);
}

/* Holds SIGPIPE back from this thread, and lets it through again: `broken` says whether a write has failed meanwhile,
 * whose signal is taken back. The process's own dispositions are left alone. */
struct transport_quiet {
    sigset_t before;
    sigset_t pending;
};

static void transport_quiet(struct transport_quiet *quiet) {
    sigset_t sigpipe;

    transport_only_sigpipe(&sigpipe);
    sigemptyset(&quiet->pending);
    pthread_sigmask(SIG_BLOCK, &sigpipe, &quiet->before);
    if (sigismember(&quiet->before, SIGPIPE)) /* or else none can be pending */
        sigpending(&quiet->pending);
}

static void transport_unquiet(const struct transport_quiet *quiet, bool broken) {
    struct timespec none = {0, 0};
    sigset_t sigpipe;

    transport_only_sigpipe(&sigpipe);
    if (broken && !sigismember(&quiet->pending, SIGPIPE))
        sigtimedwait(&sigpipe, NULL, &none);
    pthread_sigmask(SIG_SETMASK, &quiet->before, NULL);
}

bool evl_transport_write(redisAsyncContext *const *context) {
    struct transport_quiet quiet;

    transport_quiet(&quiet);
    redisAsyncHandleWrite(*context);
    transport_unquiet(&quiet, !*context);
    return *context && sdslen((*context)->c.obuf) > 0;
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
