/* The lesser and the greater of two moments or spans. Pure arithmetic. */
#ifndef EVL_MINMAX_H
#define EVL_MINMAX_H

#include <stdint.h>

static inline int64_t evl_min(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline int64_t evl_max(int64_t a, int64_t b) {
    return a > b ? a : b;
}

#endif
