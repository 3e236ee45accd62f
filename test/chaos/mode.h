/* The modes of a run: how many servers there are, what befalls them, which names are contended for, what is claimed. */
#ifndef EVLOCK_TEST_CHAOS_MODE_H
#define EVLOCK_TEST_CHAOS_MODE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SERVERS_MAX = 6,
    NAMES_MAX = 4,
    MAX_TTL_MS = 1000,              /* of the quorum's client; no name but a long one has a longer ttl */
    EXTENDED_MS = 5000,             /* and no key of them lives for longer, however often it is extended */
    LONG_TTL_MS = 24 * 3600 * 1000, /* so long that nobody can wait for its end: what is released must be gone */
    CLUSTER_TIMEOUT_MS = 1000,
    SERVED_MS = 40 * 1000, /* when faults have ended, everybody is served by then */
};

/* In which modes a fault may come. */
enum {
    SINGLE = 1,
    QUORUM = 2,
    FAILOVER = 4,
    SENTINEL = 8,
    CLUSTER = 16,
};

struct name {
    const char *key;
    int64_t ttl_ms;
    bool fenced;    /* every acquire of it draws a fence */
    bool renewed;   /* some of its holders renew, some extend and shorten */
    bool confirmed; /* a grant counts when the replica has it */
    bool steady;    /* only for processes that never crash */
    bool exclusive; /* that no two believe in it at once is claimed */
};

struct mode {
    const char *title;
    int bit;
    int servers;
    int sentinels; /* behind them in the list of servers */
    int wires;     /* what clients see: one for each server, or one for a primary and its replica */
    int names_len;
    const struct name *names;
};

extern const struct mode modes[];
enum { MODES = 5 };

#endif
