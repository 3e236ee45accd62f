/*
 * Statistics of a client: counts and histograms of what its locks went through. It owns nothing; the numbers live in
 * the deployment, and nothing is decided by them.
 */
#ifndef EVL_STATS_H
#define EVL_STATS_H

#include <evlock/evlock.h>

/* Counts a lease that was lost for this reason. */
void evl_stats_count_loss(struct evlock_stats *stats, int reason);

/* Counts a duration in microseconds. */
void evl_stats_count(uint64_t buckets[EVLOCK_STATS_BUCKETS], int64_t duration);

#endif
