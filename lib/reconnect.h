/*
 * When the next connection is made, and whether at once, by how the ones before it ended. Pure: it is told the time and
 * what is random. It owns no alarm: its caller waits.
 *
 * Pauses grow from backoff_min_ms, doubled each time, up to backoff_max_ms. Half of each is random, so that many
 * clients of one server do not come back at one moment.
 */
#ifndef EVL_RECONNECT_H
#define EVL_RECONNECT_H

#include <stdbool.h>
#include <stdint.h>

#include "config.h"
#include "status.h"

/* Times in microseconds. */
struct reconnect {
    int64_t backoff;    /* the next pause */
    int64_t brief;      /* the pause after one that serves, but does not last; 0: none */
    int64_t not_before; /* it is of no use to try sooner; 0: it may be */
    uint8_t nonsense;   /* so often in a row it came to nothing since what was heard made no sense; 2 stands for more */
};

/* How one that served has ended. */
struct served {
    int status;   /* why */
    int64_t span; /* so long it served */
    bool proved;  /* it was of use */
};

/* It is a server that nothing is known about: as of zeroed memory. */
void evl_reconnect_reset(struct reconnect *reconnect, const struct client_config *config);

/* One that served has ended. Whether the next one is made at once; else, after evl_reconnect_pause(). */
bool evl_reconnect_after(struct reconnect *reconnect, const struct client_config *config, struct served served);

/* None could be made, or the one that served is not worth an immediate try, for this reason: when the next one is made.
 * Any number is random enough. */
int64_t evl_reconnect_pause(struct reconnect *reconnect, const struct client_config *config, struct trouble why,
                            int64_t now, uint64_t random);

#endif
