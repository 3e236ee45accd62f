/*
 * The report: figures as they come, as lines of a table on the standard output, and all of them with the machine as
 * JSON in the end. It owns what it was told. It judges aims, and never ends the benchmark because one is missed.
 */
#ifndef EVLOCK_BENCH_REPORT_H
#define EVLOCK_BENCH_REPORT_H

#include <stdbool.h>

#include "stats.h"

/* Judged by the median of the repetitions; but what must never be more, by the most, which is then shown for it. */
enum aim_kind { NO_AIM, VALUE_AT_MOST, VALUE_AT_LEAST, VALUE_NEVER_MORE, RATIO_AT_MOST, RATIO_AT_LEAST };

struct aim {
    enum aim_kind kind;
    double bound;
};

/* Begins the table with the machine, or a scenario's part of it with what it measures. */
void report_begin(void);
void report_section(const char *scenario, const char *what);

/* A figure of evlock by itself, one number a repetition. */
void report_value(const char *figure, const char *unit, const struct samples *values, struct aim aim);

/* A figure beside another that was measured in the same repetitions: the ratio is the median of theirs. */
void report_ratio(const char *figure, const char *unit, const struct samples *values, const char *other_name,
                  const struct samples *others, struct aim aim);

/* Ends the table, and writes the JSON if `path` is not NULL. */
void report_end(const char *path);

#endif
