/*
 * Memory: what the resident set grows by for each held lock that is renewed, short names and all. The handle, its
 * lease, its token, its alarm and its share of what grows by doubling all count.
 */
#include "scenarios.h"

#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "check.h"
#include "locks.h"
#include "report.h"

static double resident_bytes(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%*d %ld", &pages) == 1, "/proc/self/statm cannot be read");
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void measure(struct event_base *base, size_t count, void (*acquire)(struct locks *locks),
                    struct samples *bytes) {
    evlock_options options = {.size = sizeof(evlock_options)};
    struct timeval second = {.tv_sec = 1};
    struct locks locks;

    options.auto_renewal = true;
#ifdef __GLIBC__
    malloc_trim(0); /* so that what earlier work has freed is not resident */
#endif
    double before = resident_bytes();
    locks_open(&locks, base, 1, count, &options);
    acquire(&locks);
    event_base_loopexit(base, &second);
    event_base_dispatch(base);
    double used = resident_bytes() - before - (double)(count * sizeof(*locks.at)); /* the pointers are ours */
    locks_check_held(&locks);
    samples_add(bytes, used / (double)count);
    locks_release_all(&locks);
    locks_close(&locks);
    check_keys(&servers[0], 0);
}

static void measure_ways(struct event_base *base, const char *what, void (*acquire)(struct locks *locks), bool quick) {
    struct samples bytes = {0};

    for (int repetition = 0; repetition < (quick ? 1 : 3); repetition++)
        measure(base, 100 * 1000, acquire, &bytes);
    report_value(what, "bytes", &bytes, (struct aim){VALUE_AT_MOST, acquire == locks_acquire_all ? 320 : 330});
    samples_free(&bytes);
}

void memory_run(bool quick) {
    report_section("memory",
                   "resident bytes of a held lock that is renewed, of 100,000, a second after the last grant");
    servers_start(1);
    struct event_base *base = event_base_new();
    measure_ways(base, "a lock, 1,000 in flight", locks_acquire_all, quick);
    measure_ways(base, "a lock, all asked for in one turn", locks_acquire_at_once, quick);
    event_base_free(base);
    servers_stop();
}
