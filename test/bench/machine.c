/* Asks the system what it is; see machine.h. */
#include "machine.h"

#include <event2/event.h>
#include <evlock/evlock.h>
#include <hiredis/hiredis.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static void read_cpu(char *to, size_t size) {
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    snprintf(to, size, "unknown CPU");
    while (file && fgets(line, sizeof(line), file)) {
        const char *colon = strchr(line, ':');
        if (colon && strncmp(line, "model name", 10) == 0) {
            snprintf(to, size, "%.*s", (int)strcspn(colon + 2, "\"\n"), colon + 2);
            break;
        }
    }
    if (file)
        fclose(file);
}

/* "Redis server v=7.0.15 …" or "Valkey server v=8.0.1 …": as far as the version. */
static void read_server(char *to, size_t size) {
    const char *program = getenv("EVLOCK_TEST_SERVER");
    char command[512], line[256];
    snprintf(to, size, "unknown server");
    snprintf(command, sizeof(command), "%s --version", program && *program ? program : "redis-server");
    FILE *pipe = popen(command, "r");
    if (pipe && fgets(line, sizeof(line), pipe)) {
        char *end = strstr(line, " sha=");
        snprintf(to, size, "%.*s", (int)(end ? end - line : (long)strcspn(line, "\"\n")), line);
    }
    if (pipe)
        pclose(pipe);
}

struct machine machine_describe(void) {
    struct machine machine = {
        .cores = (int)sysconf(_SC_NPROCESSORS_ONLN), .libevent = event_get_version(), .evlock = evlock_version()};
    struct utsname system;
    read_cpu(machine.cpu, sizeof(machine.cpu));
    if (uname(&system) == 0)
        snprintf(machine.kernel, sizeof(machine.kernel), "%s", system.release);
    read_server(machine.server, sizeof(machine.server));
    snprintf(machine.hiredis, sizeof(machine.hiredis), "%d.%d.%d", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
    if (getloadavg(&machine.load, 1) != 1)
        machine.load = 0;
    return machine;
}
