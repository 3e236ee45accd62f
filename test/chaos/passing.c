/* Passing on in one process; see passing.h. */
#include "passing.h"

#include <stdlib.h>

enum {
    PASSES_MOST = 4,
    BRIEF_MS = 300,
    LONG_MS = 3000, /* longer than a lease that is not renewed */
};

void passing_draw(struct passing *passing, const struct mode *mode) {
    const int64_t terms[] = {0, 10 + random() % BRIEF_MS, LONG_MS};
    *passing = (struct passing){.mode = mode};
    passing->queue = mode->bit != QUORUM && random() % 2;
    passing->renewal = random() % 2;
    passing->most = 1 + random() % PASSES_MOST;
    passing->most_ms = terms[random() % 3];
}

int64_t passing_ms(const struct passing *passing, const struct name *name) {
    return passing->most_ms ? passing->most_ms : name->ttl_ms;
}

static struct chain *passing_chain(struct passing *passing, const struct name *name) {
    return &passing->chains[name - passing->mode->names];
}

void passing_let_go(struct passing *passing, const struct name *name, int64_t now, int64_t left) {
    struct chain *chain = passing_chain(passing, name);
    chain->let_go = now;
    chain->left = left;
}

void passing_left(struct passing *passing, const struct name *name) {
    passing_chain(passing, name)->known = false;
}

void passing_granted(struct passing *passing, const struct name *name, int64_t now, uint64_t fence) {
    *passing_chain(passing, name) = (struct chain){.known = true, .since = now, .fence = fence, .let_go = now};
}

const char *passing_passed(struct passing *passing, const struct name *name, uint64_t fence) {
    struct chain *chain = passing_chain(passing, name);
    uint64_t before = chain->fence;
    if (!chain->known)
        return NULL;
    chain->passes++;
    chain->fence = fence;
    if (chain->passes > passing->most)
        return "it was passed on more often than may be";
    if (chain->let_go >= chain->since + passing_ms(passing, name) * 1000)
        return "it was passed on for longer than may be";
    if (chain->left < name->ttl_ms * 1000 / 2)
        return "it was passed on with less than half of its ttl";
    if (fence && fence <= before)
        return "it was passed on, and its fence did not grow";
    return NULL;
}
