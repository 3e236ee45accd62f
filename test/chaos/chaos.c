/*
 * Real servers under faults: chaos SECONDS [--seed S] [--mode single|quorum|failover|sentinel|cluster]. Processes
 * contend for a few names through a proxy, on servers of its own, while everything fails that may; then all is healed,
 * everybody must be served, and the history is judged. Without a mode, each has its part of the time. What is drawn
 * comes from the seed, which is printed; the machine's own timing does not, so a seed gives the same faults and not the
 * same run.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <evlock/evlock.h>
#include <evlock/loop.h>

#include "history.h"
#include "judge.h"
#include "mode.h"
#include "proxy.h"
#include "weather.h"
#include "worker.h"

enum {
    LOOK_MS = 300, /* from one look at the keys to the next */
    END_MS = 40 * 1000,
    PASSING_OF = 3, /* one process of so many passes leases on; of two, the one on libevent and the other on libuv */
};

/* --- The processes ------------------------------------------------------------------------------------------------ */

static struct {
    const struct mode *mode;
    struct history *history;
    char urls[SERVERS_MAX][256];
    const char *url[SERVERS_MAX];
    size_t urls_len;
    unsigned seed;
    pid_t pids[WORKERS]; /* 0: has ended */
    int generations[WORKERS];
    int64_t stopped_by[WORKERS];
} crew;

/* Whether a process passes leases on is up to the seed. */
static bool passes(int number) {
    return (crew.seed + (unsigned)number) % PASSING_OF == 0;
}

static void hire(int number) {
    struct employment employment = {
        .mode = crew.mode,
        .history = crew.history,
        .urls = crew.url,
        .urls_len = crew.urls_len,
        .number = number,
        .generation = crew.generations[number]++,
        .passes = passes(number),
    };
    employment.seed = crew.seed + (unsigned)(employment.generation * WORKERS + number) * 7919;
    atomic_store(&crew.history->diaries[number].retire, false);
    fflush(NULL);
    crew.pids[number] = fork();
    if (crew.pids[number] == 0)
        worker_run(&employment);
    if (crew.pids[number] < 0) {
        perror("fork");
        exit(2);
    }
}

static void stop(int process) {
    kill(crew.pids[process], SIGSTOP);
}

static void resume(int process) {
    kill(crew.pids[process], SIGCONT);
}

static void crash(int process) {
    int64_t now = evlock_clock_us(); /* before, so that what it believed is rather cut too short */
    kill(crew.pids[process], SIGKILL);
    waitpid(crew.pids[process], NULL, 0);
    history_crash(&crew.history->diaries[process], now);
    hire(process);
}

static void retire(int process) {
    atomic_store(&crew.history->diaries[process].retire, true);
}

/* Whether the process has ended; one that did so by itself, or badly, is a violation. */
static bool ended(int process) {
    struct diary *diary = &crew.history->diaries[process];
    int status;
    if (!crew.pids[process] || waitpid(crew.pids[process], &status, WNOHANG) != crew.pids[process])
        return !crew.pids[process];
    crew.pids[process] = 0;
    if (status || !atomic_load(&diary->retire)) {
        history_complain(diary, -1, "process %d ended with status %#x", process, (unsigned)status);
        history_crash(diary, evlock_clock_us());
    }
    return true;
}

/* --- The servers -------------------------------------------------------------------------------------------------- */

/* On one server nothing that was acknowledged is ever forgotten; those of the quorum save when they are told to. */
static const char *const keeping[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
static const char *const forgetting[] = {"--repl-diskless-sync-delay", "0", NULL};

static void start_servers(struct weather *weather) {
    for (int i = 0; i < weather->mode->servers; i++) {
        weather->servers[i] = &weather->own[i];
        server_start(weather->servers[i], true, weather->mode->bit == SINGLE ? keeping : forgetting);
    }
    if (weather->mode->bit == FAILOVER)
        server_do(weather->servers[1], "REPLICAOF 127.0.0.1 %d", weather->servers[0]->port);
}

static void lead_wire(size_t wire, int port, void *arg) {
    struct weather *weather = arg;
    atomic_store(&weather->proxy->wires[wire].server, port);
}

/* Also the replica and the sentinels see each server through its wire. */
static void start_sentinels(struct weather *weather) {
    int ports[SERVERS_MAX];
    struct sentinels_options options = {.replicas = (size_t)weather->mode->servers - 1,
                                        .sentinels = (size_t)weather->mode->sentinels,
                                        .keeping = true,
                                        .seen_at = ports,
                                        .started = lead_wire,
                                        .arg = weather};
    for (int i = 0; i < weather->mode->wires; i++)
        ports[i] = weather->proxy->wires[i].port;
    sentinels_start(&weather->group, &options);
    for (int i = 0; i < weather->mode->servers; i++)
        weather->servers[i] = &weather->group.servers[i];
    for (int i = 0; i < weather->mode->sentinels; i++)
        weather->servers[weather->mode->servers + i] = &weather->group.watchers[i];
}

static void start_cluster(struct weather *weather) {
    int ports[SERVERS_MAX];
    const struct cluster_options options = {
        .node_timeout_ms = CLUSTER_TIMEOUT_MS, .keeping = true, .seen_at = ports, .started = lead_wire, .arg = weather};
    for (int i = 0; i < weather->mode->wires; i++)
        ports[i] = weather->proxy->wires[i].port;
    cluster_start(&weather->cluster, &options);
    for (int i = 0; i < weather->mode->servers; i++)
        weather->servers[i] = &weather->cluster.nodes[i];
}

static bool answers(struct server *server) {
    return server->pid && !server->paused;
}

/* A key that would outlive its ttl is one that has none, or a longer one than anybody gave it. */
static void look_at_key(struct server *server, int index) {
    const struct name *name = &crew.mode->names[index];
    redisReply *reply = server_ask(server, "PTTL %s", name->key);
    int64_t most = name->ttl_ms > EXTENDED_MS ? name->ttl_ms : EXTENDED_MS;
    if (reply->type == REDIS_REPLY_INTEGER && (reply->integer == -1 || reply->integer > most))
        history_complain(&crew.history->diaries[0], index, "its key lives for %lld ms more", reply->integer);
    freeReplyObject(reply);
}

static void look_at_keys(struct weather *weather) {
    for (int i = 0; i < crew.mode->servers; i++)
        for (int j = 0; j < crew.mode->names_len && answers(weather->servers[i]); j++)
            look_at_key(weather->servers[i], j);
}

static bool is_there(struct server *server, const char *key) {
    redisReply *reply = server_ask(server, "EXISTS %s", key);
    bool elsewhere = reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "MOVED", 5) == 0;
    bool there = !elsewhere && (reply->type != REDIS_REPLY_INTEGER || reply->integer != 0);
    freeReplyObject(reply);
    return there;
}

static size_t keys_left(struct weather *weather) {
    size_t count = 0;
    for (int i = 0; i < crew.mode->servers; i++)
        for (int j = 0; j < crew.mode->names_len; j++)
            count += is_there(weather->servers[i], crew.mode->names[j].key);
    return count;
}

/* --- The run ------------------------------------------------------------------------------------------------------ */

/* One short step; those who have ended are replaced, or not. */
static void step(struct weather *weather, bool replace) {
    static int64_t looked;
    for (int i = 0; i < WORKERS; i++)
        if (ended(i) && replace)
            hire(i);
    if (evlock_clock_us() > looked + LOOK_MS * 1000) {
        look_at_keys(weather);
        looked = evlock_clock_us();
    }
    usleep(1000);
}

static bool all_served(struct weather *weather) {
    (void)weather;
    for (int i = 0; i < WORKERS; i++)
        for (int j = 0; j < (passes(i) ? HANDS_MAX : HANDS); j++)
            if (!atomic_load(&crew.history->diaries[i].served[j]))
                return false;
    return true;
}

static bool one_was_passed_on(struct weather *weather) {
    (void)weather;
    for (int i = 0; i < WORKERS; i++)
        if (atomic_load(&crew.history->diaries[i].passed))
            return true;
    return false;
}

static bool all_ended(struct weather *weather) {
    (void)weather;
    for (int i = 0; i < WORKERS; i++)
        if (crew.pids[i])
            return false;
    return true;
}

static bool no_key_is_left(struct weather *weather) {
    return keys_left(weather) == 0;
}

/* Waits until it is so; how long that took, in ms. That it never comes is a violation. */
static int64_t await(struct weather *weather, bool (*condition)(struct weather *weather), bool replace, int64_t most_ms,
                     const char *else_words) {
    int64_t start = evlock_clock_us();
    while (!condition(weather)) {
        if (evlock_clock_us() > start + most_ms * 1000) {
            history_complain(&crew.history->diaries[0], -1, "%s", else_words);
            break;
        }
        step(weather, replace);
    }
    return (evlock_clock_us() - start) / 1000;
}

static void trouble(struct weather *weather, int64_t seconds) {
    int64_t end = evlock_clock_us() + seconds * 1000 * 1000;
    while (evlock_clock_us() < end) {
        weather_step(weather);
        step(weather, true);
    }
    weather_clear(weather);
}

/* Every hand is served when nothing fails any more, then all give back what they have, and nothing is left. */
static void recover(struct weather *weather) {
    atomic_store(&crew.history->phase, CALM);
    int64_t served = await(weather, all_served, true, SERVED_MS, "somebody was not served");
    await(weather, one_was_passed_on, true, SERVED_MS, "no lease was passed on");
    for (int i = 0; i < WORKERS; i++)
        retire(i);
    int64_t gone = await(weather, all_ended, false, END_MS, "a process does not end");
    int64_t empty = await(weather, no_key_is_left, false, 2 * EXTENDED_MS, "a key is left");
    printf("after the faults: all served in %" PRId64 " ms; all ended in %" PRId64 " ms; no key left in %" PRId64
           " ms\n",
           served, gone, empty);
}

static void report(const struct weather *weather) {
    int64_t operations[OPERATIONS] = {0}, granted = 0, passed = 0, lost = 0, processes = 0, sum = 0;
    for (int i = 0; i < WORKERS; i++) {
        const struct diary *diary = &crew.history->diaries[i];
        for (int j = 0; j < OPERATIONS; j++)
            operations[j] += diary->operations[j];
        granted += diary->granted;
        passed += atomic_load(&diary->passed);
        lost += diary->lost;
        processes += crew.generations[i];
    }
    for (int i = 0; i < OPERATIONS; i++)
        sum += operations[i];
    printf("operations: %" PRId64 " by %" PRId64 " processes:", sum, processes);
    for (int i = 0; i < OPERATIONS; i++)
        printf(" %s %" PRId64 ";", operation_names[i], operations[i]);
    printf(" granted %" PRId64 ", of these passed on %" PRId64 "; lost %" PRId64 "\n", granted, passed, lost);
    weather_report(weather);
}

/* A URL for each wire. */
static void write_urls(const struct weather *weather) {
    crew.urls_len = (size_t)weather->mode->wires;
    for (int i = 0; i < weather->mode->wires; i++)
        snprintf(crew.urls[i], sizeof(crew.urls[i]), "%s://127.0.0.1:%d", server_scheme(),
                 weather->proxy->wires[i].port);
}

/* One that has the wires from `first` to `last`. */
static void write_url(const struct weather *weather, const char *kind, int first, int last, const char *name) {
    char *url = crew.urls[0];
    size_t size = sizeof(crew.urls[0]), len = (size_t)snprintf(url, size, "%s+%s://", server_scheme(), kind);
    for (int i = first; i <= last; i++)
        len += (size_t)snprintf(url + len, size - len, "%s127.0.0.1:%d", i > first ? "," : "",
                                weather->proxy->wires[i].port);
    snprintf(url + len, size - len, "%s", name);
    crew.urls_len = 1;
}

static void tell_urls(const struct weather *weather) {
    const struct mode *mode = weather->mode;
    if (mode->bit == SENTINEL)
        write_url(weather, "sentinel", mode->servers, mode->wires - 1, "/" SENTINELS_NAME);
    else if (mode->bit == CLUSTER)
        write_url(weather, "cluster", 0, 2, "");
    else
        write_urls(weather);
    for (size_t i = 0; i < crew.urls_len; i++)
        crew.url[i] = crew.urls[i];
}

static void start(struct weather *weather, const struct mode *mode, unsigned seed) {
    crew.mode = mode;
    crew.seed = seed;
    crew.history = history_new();
    *weather = (struct weather){.mode = mode, .stop = stop, .resume = resume, .crash = crash, .retire = retire};
    weather->proxy = proxy_start(mode->wires, seed);
    if (!crew.history || !weather->proxy) {
        perror("chaos");
        exit(2);
    }
    if (mode->bit == SENTINEL)
        start_sentinels(weather);
    else if (mode->bit == CLUSTER)
        start_cluster(weather);
    else
        start_servers(weather);
    for (int i = 0; i < mode->wires; i++)
        lead_wire((size_t)i, weather->servers[i]->port, weather);
    tell_urls(weather);
    for (int i = 0; i < WORKERS; i++) {
        crew.generations[i] = 0;
        hire(i);
    }
}

static void end(struct weather *weather) {
    for (int i = 0; i < WORKERS; i++)
        if (crew.pids[i]) {
            kill(crew.pids[i], SIGKILL);
            waitpid(crew.pids[i], NULL, 0);
        }
    proxy_stop(weather->proxy);
    for (int i = 0; i < SERVERS_MAX; i++)
        server_stop(&weather->own[i]);
    sentinels_stop(&weather->group);
    cluster_stop(&weather->cluster);
    free(weather->incidents);
    history_free(crew.history);
}

/* One mode; returns the violations. */
static size_t run(const struct mode *mode, int64_t seconds, unsigned seed) {
    static struct weather weather;
    printf("== %s for %" PRId64 " s, --seed %u\n", mode->title, seconds, seed);
    srandom(seed);
    start(&weather, mode, seed);
    trouble(&weather, seconds);
    recover(&weather);
    report(&weather);
    size_t violations = judge(crew.history, &weather);
    printf("%zu violations%s\n", violations, violations ? "" : "\n");
    if (violations)
        printf("again: chaos %" PRId64 " --mode %s --seed %u\n\n", seconds, mode->title, seed);
    end(&weather);
    return violations;
}

static void usage(void) {
    fprintf(stderr, "usage: chaos SECONDS [--seed S] [--mode single|quorum|failover|sentinel|cluster]\n");
    exit(2);
}

int main(int argc, char **argv) {
    static const struct option options[] = {
        {"seed", required_argument, NULL, 's'}, {"mode", required_argument, NULL, 'm'}, {NULL, 0, NULL, 0}};
    unsigned seed = (unsigned)evlock_clock_us();
    const char *wanted = NULL;
    size_t violations = 0, ran = 0;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) >= 0;)
        if (option == 's')
            seed = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 'm')
            wanted = optarg;
        else
            usage();
    signal(SIGPIPE, SIG_IGN); /* of a server that was just killed; said by what cannot be asked of it */
    int64_t seconds = optind == argc - 1 ? atoll(argv[optind]) : 0;
    if (seconds <= 0)
        usage();
    const char *missing = server_missing();
    if (missing) {
        printf("%s\n", missing);
        return 77;
    }
    for (int i = 0; i < MODES; i++)
        if (!wanted || strcmp(wanted, modes[i].title) == 0) {
            violations += run(&modes[i], wanted ? seconds : (seconds + MODES - 1) / MODES, seed);
            ran++;
        }
    if (!ran)
        usage();
    return violations != 0;
}
