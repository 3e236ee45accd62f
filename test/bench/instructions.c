/* Speaks to callgrind, if the benchmark was built where its header is; see instructions.h. */
#include "instructions.h"

#if __has_include(<valgrind/callgrind.h>)
#include <stdio.h>

#include <valgrind/callgrind.h>

bool instructions_counted(void) {
    return RUNNING_ON_VALGRIND;
}

void instructions_begin(void) {
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS; /* or else the file's sum is wrong, though its parts are right */
}

void instructions_end(const char *what, const char *way, size_t held, size_t count) {
    char name[96];
    snprintf(name, sizeof(name), "%s %s held=%zu count=%zu", what, way, held, count);
    CALLGRIND_DUMP_STATS_AT(name); /* first: stopping forgets what was counted */
    CALLGRIND_STOP_INSTRUMENTATION;
}

#else

bool instructions_counted(void) {
    return false;
}

void instructions_begin(void) {
}

void instructions_end(const char *what, const char *way, size_t held, size_t count) {
    (void)what, (void)way, (void)held, (void)count;
}

#endif
