/*
 * The timeline of a lock: an array of holds, sorted once when it is asked for overlaps. It prints only where it is
 * told to and decides nothing: what an overlap means is the caller's affair.
 */
#include "timeline.h"

#include <inttypes.h>
#include <stdlib.h>

int timeline_add(struct timeline *timeline, const struct hold *hold) {
    if (timeline->count == timeline->room) {
        size_t room = timeline->room ? timeline->room * 2 : 64;
        struct hold *holds = realloc(timeline->holds, room * sizeof *holds);
        if (!holds)
            return -1;
        timeline->holds = holds;
        timeline->room = room;
    }
    timeline->holds[timeline->count++] = *hold;
    return 0;
}

static int by_got(const void *left, const void *right) {
    const struct hold *a = left, *b = right;
    return (a->got > b->got) - (a->got < b->got);
}

size_t timeline_overlaps(struct timeline *timeline, FILE *out) {
    if (timeline->count == 0)
        return 0;
    qsort(timeline->holds, timeline->count, sizeof *timeline->holds, by_got);

    size_t overlaps = 0;
    const struct hold *last = &timeline->holds[0]; /* of all that began so far, the one that ends last */
    for (size_t i = 1; i < timeline->count; i++) {
        const struct hold *next = &timeline->holds[i];
        if (next->got < last->end) {
            overlaps++;
            fprintf(out, "worker-%d got the lock %" PRId64 " us before worker-%d had ended its hold\n", next->worker,
                    last->end - next->got, last->worker);
        }
        if (next->end > last->end)
            last = next;
    }
    return overlaps;
}

void timeline_clear(struct timeline *timeline) {
    free(timeline->holds);
    *timeline = (struct timeline){0};
}
