/* Medians, percentiles, spread; see stats.h. */
#include "stats.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"

void samples_add(struct samples *samples, double value) {
    if (samples->count == samples->capacity) {
        samples->capacity = samples->capacity ? samples->capacity * 2 : 16;
        samples->at = realloc(samples->at, samples->capacity * sizeof(*samples->at));
        CHECK(samples->at, "out of memory");
    }
    samples->at[samples->count++] = value;
}

void samples_clear(struct samples *samples) {
    samples->count = 0;
}

void samples_free(struct samples *samples) {
    free(samples->at);
    *samples = (struct samples){0};
}

static int by_value(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

double samples_percentile(struct samples *samples, double share) {
    if (samples->count == 0)
        return 0;
    qsort(samples->at, samples->count, sizeof(*samples->at), by_value);
    size_t place = (size_t)(share * (double)samples->count);
    return samples->at[place < samples->count ? place : samples->count - 1];
}

/* Works on a copy: the order says which numbers of two sets were measured together. */
double samples_median(const struct samples *samples) {
    struct samples sorted = {0};
    for (size_t i = 0; i < samples->count; i++)
        samples_add(&sorted, samples->at[i]);
    double upper = samples_percentile(&sorted, 0.5);
    double median = sorted.count % 2 || sorted.count == 0 ? upper : (sorted.at[sorted.count / 2 - 1] + upper) / 2;
    samples_free(&sorted);
    return median;
}

double samples_min(const struct samples *samples) {
    double least = samples->count ? samples->at[0] : 0;
    for (size_t i = 1; i < samples->count; i++)
        least = samples->at[i] < least ? samples->at[i] : least;
    return least;
}

double samples_max(const struct samples *samples) {
    double most = samples->count ? samples->at[0] : 0;
    for (size_t i = 1; i < samples->count; i++)
        most = samples->at[i] > most ? samples->at[i] : most;
    return most;
}

struct samples samples_ratios(const struct samples *above, const struct samples *below) {
    struct samples ratios = {0};
    CHECK(above->count == below->count, "%zu numbers beside %zu", above->count, below->count);
    for (size_t i = 0; i < above->count; i++)
        samples_add(&ratios, above->at[i] / below->at[i]);
    return ratios;
}
