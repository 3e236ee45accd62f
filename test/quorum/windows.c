/* The judgment on windows; see windows.h. */
#include "windows.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static int earlier(const void *one, const void *other) {
    int64_t a = ((const struct window *)one)->from;
    int64_t b = ((const struct window *)other)->from;
    return (a > b) - (a < b);
}

static void describe(const char *fault, const struct window *before, const struct window *after, char *words,
                     size_t size) {
    snprintf(words, size,
             "%s: holder %" PRId64 " from %" PRId64 " until %" PRId64 " with fence %" PRIu64 ", then holder %" PRId64
             " from %" PRId64 " until %" PRId64 " with fence %" PRIu64,
             fault, before->holder, before->from, before->until, before->fence, after->holder, after->from,
             after->until, after->fence);
}

size_t windows_check(struct window *windows, size_t count, char *words, size_t size, size_t *first) {
    const struct window *last = windows;     /* the one that ends last, so far */
    const struct window *greatest = windows; /* the one with the greatest fence, so far */
    size_t faults = 0;

    words[0] = '\0';
    *first = 0;
    if (count == 0)
        return 0;
    qsort(windows, count, sizeof(*windows), earlier);
    for (size_t i = 1; i < count; i++) {
        const struct window *window = &windows[i];
        bool overlaps = window->from < last->until;
        bool falls = window->fence && window->fence <= greatest->fence;
        if (faults == 0 && (overlaps || falls)) {
            *first = i;
            describe(overlaps ? "two held at once" : "the fence did not grow", overlaps ? last : greatest, window,
                     words, size);
        }
        faults += (size_t)overlaps + (size_t)falls;
        if (window->until > last->until)
            last = window;
        if (window->fence > greatest->fence)
            greatest = window;
    }
    return faults;
}
