/*
 * Addresses for adapters: what getaddrinfo() and its likes find, as the texts that evlock takes. It owns nothing and
 * allocates nothing; the list stays its caller's.
 */
#ifndef EVL_ADDRESSES_H
#define EVL_ADDRESSES_H

#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

#include <evlock/loop.h>

/** The rest of a name's addresses is left out: nobody waits for so many to be tried. */
#define EVL_ADDRESSES_MAX 16

/** Tells `cb` the addresses of `list` in their order, or `error` if there are none. */
static inline void evl_addresses_tell(const struct addrinfo *list, const char *error, evlock_resolve_cb cb, void *arg) {
    char texts[EVL_ADDRESSES_MAX][INET6_ADDRSTRLEN + 1 + IF_NAMESIZE];
    const char *addresses[EVL_ADDRESSES_MAX];
    size_t count = 0;
    for (; list && count < EVL_ADDRESSES_MAX; list = list->ai_next)
        if (getnameinfo(list->ai_addr, list->ai_addrlen, texts[count], sizeof texts[count], NULL, 0, NI_NUMERICHOST) ==
            0) {
            addresses[count] = texts[count];
            count++;
        }
    if (count > 0)
        cb(addresses, count, NULL, arg);
    else
        cb(NULL, 0, error ? error : "the name has no address", arg);
}

#endif
