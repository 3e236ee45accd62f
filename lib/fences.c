/* Fences that were seen; see fences.h. */
#include "fences.h"

#include "memory.h"

enum { PLACES = 1024 };

struct fence_seen {
    uint64_t lock; /* the hash of its key */
    int64_t fence;
};

/* FNV-1a, 64 bits. */
static uint64_t fences_hash(struct bytes key) {
    const unsigned char *bytes = key.data;
    uint64_t value = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < key.len; i++)
        value = (value ^ bytes[i]) * UINT64_C(1099511628211);
    return value;
}

bool evl_fences_note(struct fences *fences, struct bytes key, int64_t fence) {
    uint64_t lock = fences_hash(key);
    struct fence_seen *place;

    if (!fences->places)
        fences->places = evl_alloc(PLACES * sizeof(*fences->places));
    if (!fences->places)
        return true; /* without memory, the resource must see to it */
    place = &fences->places[lock % PLACES];
    if (place->lock == lock && fence <= place->fence)
        return false;
    place->lock = lock;
    place->fence = fence;
    return true;
}

void evl_fences_free(struct fences *fences) {
    evl_free(fences->places);
}
