/* Statistics; see stats.h. */
#include "stats.h"

void evl_stats_count_loss(struct evlock_stats *stats, int reason) {
    stats->lost_expired += reason == EVLOCK_EEXPIRED;
    stats->lost_not_owned += reason == EVLOCK_ENOTOWNED;
    stats->lost_data += reason == EVLOCK_EDATALOSS;
    stats->lost_max_hold += reason == EVLOCK_EMAXHOLD;
}

void evl_stats_count(uint64_t buckets[EVLOCK_STATS_BUCKETS], int64_t duration) {
    unsigned bucket = duration > 0 ? 64 - (unsigned)__builtin_clzll((uint64_t)duration) : 0;

    buckets[bucket < EVLOCK_STATS_BUCKETS ? bucket : EVLOCK_STATS_BUCKETS - 1]++;
}
