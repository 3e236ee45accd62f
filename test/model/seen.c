/* The set of states that were seen; see seen.h. A hash table without chains, of the fingerprints themselves; the lowest
 * byte is the length of the way. */
#include "seen.h"

#include <stdio.h>
#include <stdlib.h>

#define STATE (~UINT64_C(0xff))

struct seen {
    uint64_t *slots;   /* 0: free */
    uint64_t *futures; /* NULL: not kept */
    uint64_t size, count;
};

static void *allocate(uint64_t count, size_t size) {
    void *memory = count <= SIZE_MAX ? calloc((size_t)count, size) : NULL;

    if (!memory) {
        fputs("exhaust: no memory for so many states\n", stderr);
        exit(2);
    }
    return memory;
}

struct seen *seen_new(bool futures) {
    struct seen *seen = allocate(1, sizeof *seen);

    seen->size = 1 << 16;
    seen->slots = allocate(seen->size, sizeof *seen->slots);
    seen->futures = futures ? allocate(seen->size, sizeof *seen->futures) : NULL;
    return seen;
}

void seen_free(struct seen *seen) {
    free(seen->slots);
    free(seen->futures);
    free(seen);
}

static uint64_t find(const struct seen *seen, uint64_t state) {
    uint64_t i = state >> 8;

    for (;; i++) {
        i &= seen->size - 1;
        if (!seen->slots[i] || ((seen->slots[i] ^ state) & STATE) == 0)
            return i;
    }
}

static void grow(struct seen *seen) {
    struct seen old = *seen;

    seen->size *= 2;
    seen->slots = allocate(seen->size, sizeof *seen->slots);
    seen->futures = old.futures ? allocate(seen->size, sizeof *seen->futures) : NULL;
    for (uint64_t i = 0; i < old.size; i++) {
        if (!old.slots[i])
            continue;
        uint64_t at = find(seen, old.slots[i]);
        seen->slots[at] = old.slots[i];
        if (old.futures)
            seen->futures[at] = old.futures[i];
    }
    free(old.slots);
    free(old.futures);
}

bool seen_add(struct seen *seen, uint64_t state, unsigned length) {
    uint64_t i = find(seen, state);

    if (seen->slots[i] && (seen->slots[i] & ~STATE) <= length)
        return false;
    seen->count += !seen->slots[i];
    seen->slots[i] = (state & STATE) | length;
    if (seen->count > seen->size / 4 * 3)
        grow(seen);
    return true;
}

uint64_t seen_count(const struct seen *seen) {
    return seen->count;
}

uint64_t *seen_future(struct seen *seen, uint64_t state) {
    return &seen->futures[find(seen, state)];
}
