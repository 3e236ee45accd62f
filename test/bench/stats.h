/* Numbers that were measured, and what can be said of many of them. It owns their memory, and knows no units. */
#ifndef EVLOCK_BENCH_STATS_H
#define EVLOCK_BENCH_STATS_H

#include <stddef.h>

/* Zeroed at first. Asking may sort it. */
struct samples {
    double *at;
    size_t count;
    size_t capacity;
};

void samples_add(struct samples *samples, double value);
/* Forgets the numbers, and keeps the memory for the next ones. */
void samples_clear(struct samples *samples);
void samples_free(struct samples *samples);

/* The value that `share` (0 to 1) of them do not exceed; 0 when there are none. */
double samples_percentile(struct samples *samples, double share);

/* Of few numbers, the middle one or the mean of the middle two; and their ends. */
double samples_median(const struct samples *samples);
double samples_min(const struct samples *samples);
double samples_max(const struct samples *samples);

/* The quotients of numbers measured side by side. */
struct samples samples_ratios(const struct samples *above, const struct samples *below);

#endif
