/*
 * Pairs over TLS: evlock beside the floor over TLS, and beside itself over plain TCP to the same server.
 */
#include "scenarios.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "pairs.h"
#include "servers.h"
#include "tls_floor.h"

static const size_t levels[] = {1, 64, 1000};

static struct {
    struct event_base *base;
    char tls_url[64];
    char plain_url[64];
} run;

/* Of a port that is free; that it stays so until the server has it is likely enough. */
static int free_port(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&address, len) == 0, "no port");
    CHECK(getsockname(fd, (struct sockaddr *)&address, &len) == 0, "no port");
    close(fd);
    return ntohs(address.sin_port);
}

/* One server with both kinds of ports. */
static void start(void) {
    static char port[16];
    static const char *const extra[] = {"--port", port, NULL};
    int number = free_port();
    snprintf(port, sizeof(port), "%d", number);
    servers_start_tls(extra);
    snprintf(run.plain_url, sizeof(run.plain_url), "redis://127.0.0.1:%d", number);
    snprintf(run.tls_url, sizeof(run.tls_url), "%s", servers[0].tcp_url);
    run.base = event_base_new();
}

static void measure_evlock(const char *url, size_t level, long pairs, struct pair_costs *costs) {
    snprintf(servers[0].url, sizeof(servers[0].url), "%s", url);
    pairs_measure_evlock(run.base, level, pairs, costs);
}

static void measure_floor(size_t level, long pairs, struct pair_costs *costs) {
    struct tls_floor *floor = tls_floor_open(run.base, &servers[0], level);
    tls_floor_run(floor, WARM_UP + (long)level);
    pairs_measure((struct keepers){servers, 1}, tls_floor_run, floor, pairs, costs);
    tls_floor_close(floor);
}

static void report(size_t level, const struct pair_costs *tls, const struct pair_costs *raw,
                   const struct pair_costs *plain) {
    char name[64];
    struct aim aim = level == 1000 ? (struct aim){RATIO_AT_MOST, 1.25} : (struct aim){NO_AIM, 0};
    pairs_report(level, tls, raw);
    snprintf(name, sizeof(name), "%zu in flight: throughput", level);
    report_ratio(name, "pairs/s", &tls->throughput, "plain", &plain->throughput, (struct aim){NO_AIM, 0});
    snprintf(name, sizeof(name), "%zu in flight: client CPU a pair", level);
    report_ratio(name, "us", &tls->client_cpu, "plain", &plain->client_cpu, aim);
}

void tls_run(bool quick) {
    report_section("tls", "acquire and release on distinct free keys over TLS");
    start();
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        struct pair_costs tls = {0}, raw = {0}, plain = {0};
        long pairs = levels[i] == 1 ? PAIRS_ALONE : PAIRS;
        for (int repetition = 0; repetition < (quick ? 3 : 7); repetition++) {
            if (repetition % 2)
                measure_floor(levels[i], pairs, &raw);
            measure_evlock(run.tls_url, levels[i], pairs, &tls);
            if (repetition % 2 == 0)
                measure_floor(levels[i], pairs, &raw);
            measure_evlock(run.plain_url, levels[i], pairs, &plain);
        }
        report(levels[i], &tls, &raw, &plain);
        pairs_forget(&tls);
        pairs_forget(&raw);
        pairs_forget(&plain);
    }
    event_base_free(run.base);
    servers_stop();
}
