/* Fences that were seen; see fences.h. */
#include "fences.h"

#include "memory.h"

enum { PLACES = 1024 };

struct fence_seen {
    uint64_t lock; /* the hash of its key */
    int64_t fence;
};

bool evl_fences_note(struct fences *fences, struct bytes key, int64_t fence) {
    uint64_t lock = evl_hash_bytes(key);
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
