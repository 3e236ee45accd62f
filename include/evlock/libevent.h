/* evlock on libevent: the default adapter. Link with libevent_core and libevent_extra, as evlock.pc says. */
#ifndef EVLOCK_LIBEVENT_H
#define EVLOCK_LIBEVENT_H

#include <evlock/loop.h>

#ifdef __cplusplus
extern "C" {
#endif

struct event_base;

/**
 * The loop of a libevent base, for evlock_client_new(). The base must outlive every client on it; nothing is allocated
 * here. Host names are resolved by libevent's evdns, with the hosts file, from the machine's resolv.conf, of which the
 * options `timeout` and `attempts` are not used: a nameserver that does not answer costs a second. A client that ends
 * while it resolves leaves that to be freed on the next turn of the loop.
 */
EVLOCK_EXPORT evlock_loop evlock_libevent(struct event_base *base);

#ifdef __cplusplus
}
#endif

#endif
