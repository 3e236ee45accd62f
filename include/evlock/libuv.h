/* evlock on libuv: an adapter in a library of its own, evlock-libuv. */
#ifndef EVLOCK_LIBUV_H
#define EVLOCK_LIBUV_H

#include <evlock/loop.h>

#ifdef __cplusplus
extern "C" {
#endif

struct uv_loop_s;

/**
 * The loop of a libuv loop, for evlock_client_new(). It must outlive every client on it; nothing is allocated here.
 * libuv frees handles on a later turn, so run the loop once more after a client is gone, before uv_loop_close(). Host
 * names are resolved by uv_getaddrinfo, in libuv's thread pool.
 */
EVLOCK_EXPORT evlock_loop evlock_libuv(struct uv_loop_s *loop);

#ifdef __cplusplus
}
#endif

#endif
