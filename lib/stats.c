/* Statistics of a client; see stats.h. */
#include "stats.h"

#include <string.h>

#include "client.h"
#include "status.h"

void evl_stats_count(uint64_t buckets[EVLOCK_STATS_BUCKETS], int64_t duration) {
    unsigned bucket = duration > 0 ? 64 - (unsigned)__builtin_clzll((uint64_t)duration) : 0;

    buckets[bucket < EVLOCK_STATS_BUCKETS ? bucket : EVLOCK_STATS_BUCKETS - 1]++;
}

int evlock_client_stats(const evlock_client *client, evlock_stats *ret_stats, size_t size) {
    evl_error_clear();
    if (!client || !ret_stats || size > 4096)
        return evl_fail(EVLOCK_EINVAL, "%s", !client ? "the client is NULL" : "there is no such struct");
    if (evl_client_forked(client))
        return evl_fail(EVLOCK_EFORKED, "the client belongs to the parent process");
    memset(ret_stats, 0, size);
    memcpy(ret_stats, &client->stats, size < sizeof(client->stats) ? size : sizeof(client->stats));
    return EVLOCK_OK;
}
