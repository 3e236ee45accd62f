/* The table of modes; see mode.h. */
#include "mode.h"

/* Of servers that lose no lock but by being killed. The long one is for a server that keeps its data even then. */
static const struct name sure_names[] = {
    {.key = "plain", .ttl_ms = 500, .exclusive = true},
    {.key = "fenced", .ttl_ms = 500, .fenced = true, .exclusive = true},
    {.key = "renewed", .ttl_ms = 500, .fenced = true, .renewed = true, .exclusive = true},
    {.key = "long", .ttl_ms = LONG_TTL_MS, .steady = true, .exclusive = true},
};

/* Of masters whose replicas may lag behind. */
static const struct name followed_names[] = {
    {.key = "confirmed", .ttl_ms = 500, .confirmed = true, .exclusive = true},
    {.key = "both", .ttl_ms = 500, .fenced = true, .confirmed = true, .exclusive = true},
    {.key = "plain", .ttl_ms = 500},
    {.key = "renewed", .ttl_ms = 500, .fenced = true, .renewed = true},
};

const struct mode modes[MODES] = {
    {
        /* One server that keeps its data, whatever befalls it. */
        .title = "single",
        .bit = SINGLE,
        .servers = 1,
        .wires = 1,
        .names_len = 4,
        .names = sure_names,
    },
    {
        /* Five servers that forget when they are killed. */
        .title = "quorum",
        .bit = QUORUM,
        .servers = 5,
        .wires = 5,
        .names_len = 3,
        .names = sure_names,
    },
    {
        /* A primary that fails, and is followed by its replica. */
        .title = "failover",
        .bit = FAILOVER,
        .servers = 2,
        .wires = 1,
        .names_len = 4,
        .names = followed_names,
    },
    {
        /* A primary and a replica that sentinels make the primary, or not, by what they see of both. So there may be
         * two that take themselves for it. */
        .title = "sentinel",
        .bit = SENTINEL,
        .servers = 2,
        .sentinels = 3,
        .wires = 5,
        .names_len = 4,
        .names = followed_names,
    },
    {
        /* Three masters with a replica each, which takes the place of its master by the votes of the others. */
        .title = "cluster",
        .bit = CLUSTER,
        .servers = 6,
        .wires = 6,
        .names_len = 4,
        .names = followed_names,
    },
};
