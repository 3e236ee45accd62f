/* Lengths of time as people write and read them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "duration.h"

#define TEN_YEARS_MS (INT64_C(3653) * 24 * 3600 * 1000)

bool duration_parse(const char *text, int64_t *ret_ms) {
    static const struct {
        const char *name;
        double ms;
    } units[] = {{"", 1e3}, {"ms", 1}, {"s", 1e3}, {"m", 60e3}, {"h", 3600e3}, {"d", 24 * 3600e3}};

    size_t digits = strspn(text, "0123456789.");
    char *end;
    double number = strtod(text, &end);
    if (digits == 0 || end != text + digits)
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        double ms = number * units[i].ms + 0.5;
        if (strcmp(end, units[i].name) == 0 && ms < (double)TEN_YEARS_MS) {
            *ret_ms = (int64_t)ms;
            return true;
        }
    }
    return false;
}

const char *duration_print(int64_t ms, char *text, size_t size) {
    int64_t seconds = ms / 1000;
    if (ms < 1000)
        snprintf(text, size, "%" PRId64 "ms", ms);
    else if (seconds < 60)
        snprintf(text, size, "%" PRId64 ".%" PRId64 "s", seconds, ms % 1000 / 100);
    else if (seconds < 3600)
        snprintf(text, size, "%" PRId64 "m%02" PRId64 "s", seconds / 60, seconds % 60);
    else
        snprintf(text, size, "%" PRId64 "h%02" PRId64 "m", seconds / 3600, seconds / 60 % 60);
    return text;
}

struct timeval duration_span(int64_t ms) {
    if (ms < 0)
        ms = 0;
    return (struct timeval){.tv_sec = (time_t)(ms / 1000), .tv_usec = (suseconds_t)(ms % 1000 * 1000)};
}
