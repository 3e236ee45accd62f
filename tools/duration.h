/* Lengths of time as people write them: 10s, 500ms, 2m, 1h, 1.5h; a number alone is seconds. */
#ifndef DURATION_H
#define DURATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>

/** Reads one, in milliseconds; false if it is none, or longer than ten years. */
bool duration_parse(const char *text, int64_t *ret_ms);

/** Writes one for people, in at most `size` bytes: "350ms", "4.2s", "3m07s", "2h05m". Returns `text`. */
const char *duration_print(int64_t ms, char *text, size_t size);

/** One in milliseconds, as an event loop wants it; nothing for one that is less. */
struct timeval duration_span(int64_t ms);

#endif
