/*
 * The fences that a client has seen, by lock: one that does not grow tells that servers have forgotten more than they
 * may. Memory is bounded: of two locks that fall into one place of the table, the one used last is remembered.
 */
#include "client.h"
#include "memory.h"

enum { PLACES = 1024 };

struct fence_seen {
    uint64_t lock; /* the hash of its key */
    int64_t fence;
};

/* FNV-1a, 64 bits. */
static uint64_t hash(struct bytes key) {
    const unsigned char *bytes = key.data;
    uint64_t value = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < key.len; i++)
        value = (value ^ bytes[i]) * UINT64_C(1099511628211);
    return value;
}

bool evl_client_note_fence(struct evlock_client *client, struct bytes key, int64_t fence) {
    uint64_t lock = hash(key);
    struct fence_seen *place;

    if (!client->fences)
        client->fences = evl_alloc(PLACES * sizeof(*client->fences));
    if (!client->fences)
        return true; /* without memory, the resource must see to it */
    place = &client->fences[lock % PLACES];
    if (place->lock == lock && fence <= place->fence)
        return false;
    place->lock = lock;
    place->fence = fence;
    return true;
}
