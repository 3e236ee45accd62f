/* Statistics; see stats.h. */
#include "stats.h"

void evl_stats_count(uint64_t buckets[EVLOCK_STATS_BUCKETS], int64_t duration) {
    unsigned bucket = duration > 0 ? 64 - (unsigned)__builtin_clzll((uint64_t)duration) : 0;

    buckets[bucket < EVLOCK_STATS_BUCKETS ? bucket : EVLOCK_STATS_BUCKETS - 1]++;
}
