/*
 * The addresses that a name resolved to, which are tried in turn. It owns copies of their texts. It resolves nothing,
 * and connects to nothing.
 */
#ifndef EVL_ADDRESSES_H
#define EVL_ADDRESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct addresses {
    char **texts; /* NULL: there are none, so what the URL says is the only place to try */
    size_t count;
    size_t next; /* so many have been tried */
};

/* Takes copies, at least one, in place of those of before, none of which is tried yet. False: out of memory, and there
 * are none. */
bool evl_addresses_keep(struct addresses *addresses, const char *const *texts, size_t count);

/* The next one to try, and it counts as tried. NULL: what the URL says. */
const char *evl_addresses_take(struct addresses *addresses);

/* Whether some are still untried. */
bool evl_addresses_remain(const struct addresses *addresses);

/* The part of a time, in microseconds, that each may take, so that all of them have had their turn at its end. */
int64_t evl_addresses_share(const struct addresses *addresses, int64_t time);

/* Lets them go: as of zeroed memory. */
void evl_addresses_free(struct addresses *addresses);

#endif
