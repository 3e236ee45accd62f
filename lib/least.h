/* The lesser and the greater of two moments or spans. */
#ifndef EVL_LEAST_H
#define EVL_LEAST_H

#include <stdint.h>

static inline int64_t min64(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t max64(int64_t a, int64_t b) {
    return a > b ? a : b;
}

#endif
