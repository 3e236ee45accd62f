/*
 * Drift: whether a server's clock and the clock here went apart by more than leases allow for, as far as the answers on
 * one connection prove it. It reads no clock and logs nothing, and no lease depends on what it finds.
 */
#ifndef EVL_DRIFT_H
#define EVL_DRIFT_H

#include <stdbool.h>
#include <stdint.h>

/* What the server's clock said, and between which two moments of the clock here it was read. In microseconds. */
struct clock_reading {
    int64_t server;
    int64_t sent;
    int64_t received;
};

/* Of one connection; zeroed when that begins. */
struct drift {
    struct clock_reading from; /* what later ones are compared with; 0: none */
    bool found;
};

struct drift_found {
    int64_t gained; /* by the server's clock, at least; negative: lost */
    int64_t span;   /* in so much time here */
};

/* Takes a reading that came after the others. True, once for a connection, when the two clocks have gone apart by more
 * than a hundredth, or one of them has stepped by as much; only then `*ret` is set. */
bool evl_drift_note(struct drift *drift, const struct clock_reading *reading, struct drift_found *ret);

#endif
