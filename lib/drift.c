/*
 * Drift; see drift.h. Between two readings, no more time has passed here than from the sending for the first to the
 * answer to the second, and no less than from the answer to the first to the sending for the second. A server's clock
 * that went on by more than the one, or by less than the other, differs by at least what lies between.
 */
#include "drift.h"

/* In microseconds. Shorter spans say nothing: a hundredth of them is less than what clocks are corrected by at once.
 * Longer ones would hide a rate that lasts for seconds only. */
static const int64_t span_least = 1000000;
static const int64_t span_most = 10000000;

/* No clock shows more; sums of such times do not overflow. */
static const int64_t time_most = INT64_MAX / 4;

static bool drift_proves(const struct clock_reading *from, const struct clock_reading *to, struct drift_found *ret) {
    int64_t passed = to->server - from->server;
    int64_t most = to->received - from->sent;
    int64_t least = to->sent - from->received;

    if (least < span_least)
        return false;
    if (passed - most > most / 100)
        *ret = (struct drift_found){passed - most, most};
    else if (least - passed > least / 100)
        *ret = (struct drift_found){passed - least, least};
    else
        return false;
    return true;
}

bool evl_drift_note(struct drift *drift, const struct clock_reading *reading, struct drift_found *ret) {
    if (drift->found || reading->server > time_most)
        return false;
    if (drift->from.server && drift_proves(&drift->from, reading, ret)) {
        drift->found = true;
        return true;
    }
    if (!drift->from.server || reading->sent - drift->from.sent >= span_most)
        drift->from = *reading;
    return false;
}
