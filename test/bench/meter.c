/* Reads the clocks and the server's INFO; see meter.h. */
#include "meter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

double clock_now(void) {
    return seconds(CLOCK_MONOTONIC);
}

double clock_cpu(void) {
    return seconds(CLOCK_THREAD_CPUTIME_ID);
}

static double process_cpu(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* The number behind `name` in what INFO says; 0 where it is not said. */
static double field(const char *info, const char *name) {
    const char *found = strstr(info, name);
    return found ? strtod(found + strlen(name), NULL) : 0;
}

/* The time spent in a command, whose name begins a line of what INFO says. */
static double time_of(const char *info, const char *name) {
    const char *found = strstr(info, name);
    return found ? field(found, ",usec=") / 1e6 : 0;
}

static void add_server(struct server *server, struct cost *cost) {
    redisReply *reply = server_command(server, "INFO all");
    const char *info = reply->type == REDIS_REPLY_STRING ? reply->str : "";
    double natives;
    cost->server_cpu += field(info, "\nused_cpu_user:") + field(info, "\nused_cpu_sys:");
    cost->sets += field(info, "\ncmdstat_set:calls=");
    cost->scripts += field(info, "\ncmdstat_evalsha:calls=");
    cost->script_time += time_of(info, "\ncmdstat_evalsha:");
    natives = field(info, "\ncmdstat_delifeq:calls=") + field(info, "\ncmdstat_delex:calls=");
    cost->natives += natives;
    cost->deletions += natives + field(info, "\ncmdstat_del:calls=");
    cost->expiries += field(info, "\ncmdstat_pexpire:calls=");
    cost->messages += field(info, "\ncmdstat_publish:calls=");
    cost->bytes += field(info, "\ntotal_net_input_bytes:") + field(info, "\ntotal_net_output_bytes:");
    freeReplyObject(reply);
}

struct cost meter_begin_among(struct keepers keepers) {
    struct cost cost = {0};
    for (size_t i = 0; i < keepers.count; i++)
        add_server(&keepers.at[i], &cost);
    cost.client_cpu = process_cpu();
    cost.wall = clock_now();
    return cost;
}

struct cost meter_end_among(struct keepers keepers, const struct cost *begun) {
    struct cost now = {.wall = clock_now() - begun->wall, .client_cpu = process_cpu() - begun->client_cpu};
    for (size_t i = 0; i < keepers.count; i++)
        add_server(&keepers.at[i], &now);
    now.server_cpu -= begun->server_cpu;
    now.sets -= begun->sets;
    now.scripts -= begun->scripts;
    now.script_time -= begun->script_time;
    now.natives -= begun->natives;
    now.deletions -= begun->deletions;
    now.expiries -= begun->expiries;
    now.messages -= begun->messages;
    now.bytes -= begun->bytes;
    return now;
}

struct cost meter_begin(struct server *server) {
    return meter_begin_among((struct keepers){server, 1});
}

struct cost meter_end(struct server *server, const struct cost *begun) {
    return meter_end_among((struct keepers){server, 1}, begun);
}
