/* Counts evlock's allocations; see tally.h. */
#include "tally.h"

#include <evlock/evlock.h>

#include <stdlib.h>

static size_t allocations;

static void *resize(void *block, size_t size) {
    allocations++;
    return realloc(block, size);
}

void tally_install(void) {
    evlock_set_allocator(resize, free);
}

double tally_allocations(void) {
    return (double)allocations;
}
