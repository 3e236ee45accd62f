/* What must be true or the figures are worth nothing: one macro, which ends the benchmark with words and status 1. */
#ifndef EVLOCK_BENCH_CHECK_H
#define EVLOCK_BENCH_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "bench: %s:%d: ", __FILE__, __LINE__);                                                     \
            fprintf(stderr, __VA_ARGS__);                                                                              \
            fputc('\n', stderr);                                                                                       \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#endif
