/* The judgment; see judge.h. That on the windows of one name is shared with the quorum's tests. */
#include "judge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    NEIGHBOURS_US = 1000 * 1000, /* so far before and after a violation, history is printed */
    TOLD = 5,                    /* violations that are printed with their neighbours */
};

static size_t violations;

static const char *const target_names[TARGETS] = {"wire", "connections of wire", "server", "process"};

/* --- What happened around a moment -------------------------------------------------------------------------------- */

static void print_incidents(const struct weather *weather, int64_t moment) {
    for (size_t i = 0; i < weather->incidents_len; i++) {
        const struct incident *incident = &weather->incidents[i];
        if (incident->at > moment + NEIGHBOURS_US || incident->until < moment - NEIGHBOURS_US)
            continue;
        printf("    %+10.3f ms until %+10.3f ms: %s %d: %s\n", (double)(incident->at - moment) / 1000,
               (double)(incident->until - moment) / 1000, target_names[incident->target], incident->number,
               incident->fault);
    }
}

static void print_beliefs(const struct history *history, int name, int64_t moment) {
    for (int i = 0; i < WORKERS; i++)
        for (size_t j = 0; j < history->diaries[i].beliefs_len; j++) {
            const struct belief *belief = &history->diaries[i].beliefs[j];
            const struct window *window = &belief->window;
            if (belief->name != name || window->from > moment + NEIGHBOURS_US || window->until < moment - NEIGHBOURS_US)
                continue;
            printf("    %+10.3f ms until %+10.3f ms: process %d held it, called at %+.3f ms, fence %" PRIu64 "\n",
                   (double)(window->from - moment) / 1000, (double)(window->until - moment) / 1000, i,
                   (double)(belief->called - moment) / 1000, window->fence);
        }
}

static void tell(const struct history *history, const struct weather *weather, int name, int64_t moment,
                 const char *words) {
    printf("VIOLATION after %.1f s: %s: %s\n", (double)(moment - history->began) / 1e6,
           name < 0 ? "a process" : weather->mode->names[name].key, words);
    if (violations++ >= TOLD)
        return;
    printf("  around that time:\n");
    print_incidents(weather, moment);
    print_beliefs(history, name, moment);
}

/* --- Windows ------------------------------------------------------------------------------------------------------ */

static size_t count_beliefs(const struct history *history) {
    size_t count = 0;
    for (int i = 0; i < WORKERS; i++)
        count += history->diaries[i].beliefs_len;
    return count;
}

/* Those of one name; one that was over before it was told is none. */
static size_t collect(const struct history *history, int name, bool fenced, struct window *windows) {
    size_t len = 0;
    for (int i = 0; i < WORKERS; i++)
        for (size_t j = 0; j < history->diaries[i].beliefs_len; j++) {
            const struct belief *belief = &history->diaries[i].beliefs[j];
            if (belief->name != name || belief->window.until <= belief->window.from)
                continue;
            windows[len] = belief->window;
            windows[len++].fence = fenced ? belief->window.fence : 0;
        }
    return len;
}

/* Without exclusion, overlaps are counted, and are no violation. */
static void judge_windows(const struct history *history, const struct weather *weather, int name,
                          struct window *windows) {
    const struct name *of = &weather->mode->names[name];
    char words[512];
    size_t first;
    size_t len = collect(history, name, of->fenced && of->exclusive, windows);
    size_t faults = windows_check(windows, len, words, sizeof(words), &first);
    printf("%s: %zu leases%s", of->key, len, of->exclusive ? "\n" : ", exclusion not claimed: ");
    if (!of->exclusive)
        printf("%zu overlaps\n", faults);
    else if (faults)
        tell(history, weather, name, windows[first].from, words);
    violations += of->exclusive && faults > 1 ? faults - 1 : 0;
}

/* --- Fences ------------------------------------------------------------------------------------------------------- */

static int64_t told_at(const struct belief *belief) {
    return belief->window.from;
}

static int sooner_told(const void *one, const void *other) {
    int64_t a = told_at(*(const struct belief *const *)one), b = told_at(*(const struct belief *const *)other);
    return (a > b) - (a < b);
}

static int sooner_called(const void *one, const void *other) {
    int64_t a = (*(const struct belief *const *)one)->called, b = (*(const struct belief *const *)other)->called;
    return (a > b) - (a < b);
}

/* Also where leases may overlap: what is asked for after a fence was told draws a greater one. What was adopted has
 * none. */
static void judge_fences(const struct history *history, const struct weather *weather, int name,
                         const struct belief **told, const struct belief **called) {
    const struct belief *greatest = NULL;
    size_t len = 0, next = 0;
    for (int i = 0; i < WORKERS; i++)
        for (size_t j = 0; j < history->diaries[i].beliefs_len; j++)
            if (history->diaries[i].beliefs[j].name == name && history->diaries[i].beliefs[j].window.fence)
                called[len] = told[len] = &history->diaries[i].beliefs[j], len++;
    qsort(told, len, sizeof(*told), sooner_told);
    qsort(called, len, sizeof(*called), sooner_called);
    for (size_t i = 0; i < len; i++) {
        for (; next < len && told_at(told[next]) < called[i]->called; next++)
            if (!greatest || told[next]->window.fence > greatest->window.fence)
                greatest = told[next];
        if (greatest && called[i]->window.fence <= greatest->window.fence)
            tell(history, weather, name, told_at(called[i]), "a fence is not greater than one told before its call");
    }
}

/* --- All together ------------------------------------------------------------------------------------------------- */

static void judge_complaints(const struct history *history, const struct weather *weather) {
    for (int i = 0; i < WORKERS; i++)
        for (size_t j = 0; j < history->diaries[i].complaints_len; j++) {
            const struct complaint *complaint = &history->diaries[i].complaints[j];
            tell(history, weather, complaint->name, complaint->at, complaint->words);
        }
}

size_t judge(const struct history *history, const struct weather *weather) {
    size_t count = count_beliefs(history) + 1;
    struct window *windows = calloc(count, sizeof(*windows));
    const struct belief **told = calloc(count, sizeof(*told)), **called = calloc(count, sizeof(*called));
    if (!windows || !told || !called)
        exit(2);
    violations = 0;
    for (int i = 0; i < weather->mode->names_len; i++) {
        judge_windows(history, weather, i, windows);
        if (weather->mode->names[i].fenced)
            judge_fences(history, weather, i, told, called);
    }
    judge_complaints(history, weather);
    free(windows);
    free(told);
    free(called);
    return violations;
}
