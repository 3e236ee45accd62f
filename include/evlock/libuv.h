/* evlock on libuv: an adapter in a library of its own, evlock-libuv. */
#ifndef EVLOCK_LIBUV_H
#define EVLOCK_LIBUV_H

#include <uv.h>

#include <evlock/evlock.h>
#include <evlock/loop.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Makes a client on a libuv loop, as evlock_client_new() does. The loop must outlive the client. Returns as
 * evlock_client_new(), and EVLOCK_EINVAL if `loop` is NULL.
 *
 * libuv frees handles on a later turn, so run the loop once more after a client is gone, before uv_loop_close().
 */
EVLOCK_EXPORT int evlock_client_new_libuv(evlock_client **ret_client, uv_loop_t *loop, const char *url,
                                          const evlock_client_options *options);

/** The loop of a libuv loop, for programs that wrap a loop. Nothing is allocated here. */
EVLOCK_EXPORT evlock_loop evlock_libuv(uv_loop_t *loop);

#ifdef __cplusplus
}
#endif

#endif
