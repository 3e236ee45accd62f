/* The table and the JSON; see report.h. */
#include "report.h"

#include <stdio.h>
#include <string.h>

#include "check.h"
#include "machine.h"

enum { FIGURES_MAX = 256, NAME_MAX_LEN = 64 };

struct figure {
    char scenario[16];
    char name[NAME_MAX_LEN];
    char unit[24];
    char other_name[24]; /* "": by itself */
    double value[3];     /* median, least, most */
    double other[3];
    double ratio[3];
    struct aim aim;
};

static struct figure figures[FIGURES_MAX];
static size_t figure_count;
static char scenario_now[16];
static double load_before;

static void summarise(const struct samples *samples, double to[3]) {
    to[0] = samples_median(samples);
    to[1] = samples_min(samples);
    to[2] = samples_max(samples);
}

/* The value that is shown, and judged if the aim is one for it. */
static double value_of(const struct figure *figure) {
    return figure->value[figure->aim.kind == VALUE_NEVER_MORE ? 2 : 0];
}

static bool is_met(const struct figure *figure) {
    switch (figure->aim.kind) {
    case VALUE_AT_MOST:
    case VALUE_NEVER_MORE:
        return value_of(figure) <= figure->aim.bound;
    case VALUE_AT_LEAST:
        return value_of(figure) >= figure->aim.bound;
    case RATIO_AT_MOST:
        return figure->ratio[0] <= figure->aim.bound;
    case RATIO_AT_LEAST:
        return figure->ratio[0] >= figure->aim.bound;
    case NO_AIM:
        break;
    }
    return true;
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

static const char *number(double value, char text[24]) {
    int decimals = value >= 1000 ? 0 : value >= 100 ? 1 : value >= 1 ? 2 : 3;
    snprintf(text, 24, "%.*f", decimals, value);
    return text;
}

static bool is_least(struct aim aim) {
    return aim.kind == VALUE_AT_LEAST || aim.kind == RATIO_AT_LEAST;
}

static void print(const struct figure *figure) {
    char value[24], other[24], range[64] = "";
    const double *spread = figure->other_name[0] ? figure->ratio : figure->value;

    printf("  %-46s %9s %-9s", figure->name, number(value_of(figure), value), figure->unit);
    if (figure->other_name[0]) {
        printf(" %9s %-10s", number(figure->other[0], other), figure->other_name);
        snprintf(range, sizeof(range), "%.2f (%.2f to %.2f)", spread[0], spread[1], spread[2]);
    } else {
        printf(" %20s", "");
        snprintf(range, sizeof(range), "     (%s to %s)", number(spread[1], value), number(spread[2], other));
    }
    printf(" %-24s", range);
    if (figure->aim.kind != NO_AIM)
        printf(" %s %s %s", is_least(figure->aim) ? "at least" : "at most", number(figure->aim.bound, value),
               is_met(figure) ? "met" : "MISSED");
    putchar('\n');
    fflush(stdout);
}

void report_begin(void) {
    struct machine machine = machine_describe();
    load_before = machine.load;
    printf("evlock %s, %s, %d cores, Linux %s\n%s, hiredis %s, libevent %s, load %.2f\n\n", machine.evlock, machine.cpu,
           machine.cores, machine.kernel, machine.server, machine.hiredis, machine.libevent, machine.load);
    printf("  %-46s %9s %-9s %9s %-10s %-24s %s\n", "", "evlock", "", "beside", "", "ratio (least to most)", "aim");
}

void report_section(const char *scenario, const char *what) {
    snprintf(scenario_now, sizeof(scenario_now), "%s", scenario);
    printf("%s: %s\n", scenario, what);
    fflush(stdout);
}

static struct figure *add(const char *name, const char *unit, const struct samples *values, struct aim aim) {
    CHECK(figure_count < FIGURES_MAX, "too many figures");
    struct figure *figure = &figures[figure_count++];
    snprintf(figure->scenario, sizeof(figure->scenario), "%s", scenario_now);
    snprintf(figure->name, sizeof(figure->name), "%s", name);
    snprintf(figure->unit, sizeof(figure->unit), "%s", unit);
    summarise(values, figure->value);
    figure->aim = aim;
    return figure;
}

void report_value(const char *name, const char *unit, const struct samples *values, struct aim aim) {
    print(add(name, unit, values, aim));
}

void report_ratio(const char *name, const char *unit, const struct samples *values, const char *other_name,
                  const struct samples *others, struct aim aim) {
    struct figure *figure = add(name, unit, values, aim);
    struct samples ratios = samples_ratios(values, others);
    snprintf(figure->other_name, sizeof(figure->other_name), "%s", other_name);
    summarise(others, figure->other);
    summarise(&ratios, figure->ratio);
    samples_free(&ratios);
    print(figure);
}

/* --- The JSON ----------------------------------------------------------------------------------------------------- */

static void write_numbers(FILE *file, const char *name, const double numbers[3]) {
    fprintf(file, ", \"%s\": {\"median\": %.6g, \"min\": %.6g, \"max\": %.6g}", name, numbers[0], numbers[1],
            numbers[2]);
}

static void write_figure(FILE *file, const struct figure *figure) {
    static const char *const kinds[] = {
        [VALUE_AT_MOST] = "value at most",
        [VALUE_AT_LEAST] = "value at least",
        [VALUE_NEVER_MORE] = "value never more than",
        [RATIO_AT_MOST] = "ratio at most",
        [RATIO_AT_LEAST] = "ratio at least",
    };
    fprintf(file, "    {\"scenario\": \"%s\", \"figure\": \"%s\", \"unit\": \"%s\"", figure->scenario, figure->name,
            figure->unit);
    write_numbers(file, "evlock", figure->value);
    if (figure->other_name[0]) {
        fprintf(file, ", \"beside\": \"%s\"", figure->other_name);
        write_numbers(file, "other", figure->other);
        write_numbers(file, "ratio", figure->ratio);
    }
    if (figure->aim.kind != NO_AIM)
        fprintf(file, ", \"aim\": \"%s %g\", \"met\": %s", kinds[figure->aim.kind], figure->aim.bound,
                is_met(figure) ? "true" : "false");
    fputc('}', file);
}

static void write_json(const char *path, const struct machine *machine) {
    FILE *file = fopen(path, "w");
    CHECK(file, "%s cannot be written", path);
    fprintf(file,
            "{\n  \"machine\": {\"evlock\": \"%s\", \"cpu\": \"%s\", \"cores\": %d, \"kernel\": \"%s\", "
            "\"server\": \"%s\", \"hiredis\": \"%s\", \"libevent\": \"%s\", \"load_before\": %.2f, "
            "\"load_after\": %.2f},\n  \"figures\": [\n",
            machine->evlock, machine->cpu, machine->cores, machine->kernel, machine->server, machine->hiredis,
            machine->libevent, load_before, machine->load);
    for (size_t i = 0; i < figure_count; i++) {
        write_figure(file, &figures[i]);
        fputs(i + 1 < figure_count ? ",\n" : "\n", file);
    }
    fputs("  ]\n}\n", file);
    CHECK(!ferror(file) && fclose(file) == 0, "%s cannot be written", path);
}

void report_end(const char *path) {
    struct machine machine = machine_describe();
    size_t aims = 0, missed = 0;
    for (size_t i = 0; i < figure_count; i++) {
        aims += figures[i].aim.kind != NO_AIM;
        missed += !is_met(&figures[i]);
    }
    printf("\n%zu of %zu aims missed; load %.2f before, %.2f after\n", missed, aims, load_before, machine.load);
    if (path)
        write_json(path, &machine);
}
