/* The benchmark's servers; see servers.h. */
#include "servers.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

struct server servers[SERVERS_MAX];

static struct cluster cluster;

/* The cores that there were, in two parts: one for this process, and the others, or the same if it is alone. */
static cpu_set_t own_core, other_cores;

static pid_t owner;

static void part_cores(void) {
    int first = 0;
    CHECK(sched_getaffinity(0, sizeof(other_cores), &other_cores) == 0, "no affinity");
    while (!CPU_ISSET(first, &other_cores))
        first++;
    CPU_ZERO(&own_core);
    CPU_SET(first, &own_core);
    if (CPU_COUNT(&other_cores) > 1)
        CPU_CLR(first, &other_cores);
}

static void keep_to(const cpu_set_t *cores) {
    CHECK(sched_setaffinity(0, sizeof(*cores), cores) == 0, "no affinity");
}

/* What is started now keeps to the other cores. */
static void leave_core(void) {
    static bool begun;
    if (!begun) {
        owner = getpid();
        atexit(servers_stop);
        part_cores();
    }
    begun = true;
    keep_to(&other_cores);
}

void servers_start(size_t count) {
    leave_core(); /* servers stay where they were started */
    for (size_t i = 0; i < count; i++)
        server_start(&servers[i], false, NULL);
    keep_to(&own_core);
}

void servers_start_tls(const char *const *extra) {
    leave_core();
    setenv("EVLOCK_TEST_TLS", "1", 1);
    server_start(&servers[0], true, extra);
    unsetenv("EVLOCK_TEST_TLS");
    keep_to(&own_core);
}

struct cluster *servers_start_cluster(void) {
    leave_core();
    cluster_start(&cluster, &(struct cluster_options){.masters = 3, .alone = true});
    keep_to(&own_core);
    return &cluster;
}

/* A process that was forked off and fails leaves them to the benchmark. */
void servers_stop(void) {
    if (getpid() != owner)
        return;
    for (size_t i = 0; i < SERVERS_MAX; i++)
        server_stop(&servers[i]);
    cluster_stop(&cluster);
}

void check_keys_among(struct keepers keepers, size_t count) {
    long long found = 0;
    for (size_t i = 0; i < keepers.count; i++)
        found += server_integer(&keepers.at[i], "DBSIZE");
    CHECK(found == (long long)count, "there are %lld keys, not %zu", found, count);
}

void check_keys(struct server *server, size_t count) {
    check_keys_among((struct keepers){server, 1}, count);
}

void check_token(struct keepers keepers, const char *key, const void *token, size_t len) {
    bool found = false;
    for (size_t i = 0; token && i < keepers.count; i++)
        found |= key_is(&keepers.at[i], key, token, len);
    CHECK(found, "no server has the token of %s", key);
}
