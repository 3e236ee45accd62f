/* evlock on libevent: the default adapter. Link with libevent_core, as evlock.pc says. */
#ifndef EVLOCK_LIBEVENT_H
#define EVLOCK_LIBEVENT_H

#include <event2/event.h>

#include <evlock/evlock.h>
#include <evlock/loop.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Makes a client on a libevent base, as evlock_client_new() does. The base must outlive the client. Returns as
 * evlock_client_new(), and EVLOCK_EINVAL if `base` is NULL.
 */
EVLOCK_EXPORT int evlock_client_new_libevent(evlock_client **ret_client, struct event_base *base, const char *url,
                                             const evlock_client_options *options);

/** The loop of a libevent base, for programs that wrap a loop. Nothing is allocated here. */
EVLOCK_EXPORT evlock_loop evlock_libevent(struct event_base *base);

#ifdef __cplusplus
}
#endif

#endif
