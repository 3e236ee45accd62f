/* A server that goes on failing; see failing.h. */
#include "failing.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "redis/listen.h"
#include "world/need.h"
#include "world/resp.h"

enum { PEERS = 64 };

static struct {
    const struct failing_server *server;
    enum failing how;
    int healthy;   /* so many commands more are answered */
    bool hangs_up; /* on who is being heard */
    bool flicker;
} now;

static void answer_info(struct output *output) {
    static const char info[] = "# Server\r\nredis_version:7.0.0\r\nrun_id:0123456789abcdef0123456789abcdef01234567\r\n"
                               "uptime_in_seconds:1000\r\n# Replication\r\nrole:master\r\n";
    reply_bulk(output, info, sizeof(info) - 1);
}

static void answer_table(struct output *output) {
    char text[160];
    int len = snprintf(text, sizeof(text), "%040d 127.0.0.1:%d@1 myself,master - 0 0 1 connected 0-16383\n", 1,
                       now.server->port);
    reply_bulk(output, text, (size_t)len);
}

static void answer_time(struct output *output) {
    reply_array(output, 2);
    reply_bulk(output, "1700000000", 10);
    reply_bulk(output, "000000", 6);
}

/* What is said before and beside what is asked of keys; false: it is none of that. */
static bool answer_login(const struct requests *requests, struct output *output) {
    const char *verb = requests->argv[0], *next = requests->argc > 1 ? requests->argv[1] : "";
    if (strcasecmp(verb, "CLUSTER") == 0)
        answer_table(output);
    else if (strcasecmp(verb, "INFO") == 0)
        answer_info(output);
    else if (strcasecmp(verb, "TIME") == 0)
        answer_time(output);
    else if (strcasecmp(verb, "CLIENT") == 0 && strcasecmp(next, "SETNAME") != 0 && strcasecmp(next, "SETINFO") != 0)
        reply_integer(output, 1);
    else if (strcasecmp(verb, "CLIENT") == 0 || strcasecmp(verb, "SCRIPT") == 0 || strcasecmp(verb, "ASKING") == 0)
        reply_ok(output);
    else if (strcasecmp(verb, "EVALSHA") == 0 && next[0] == '0') /* whether scripts may be called */
        reply_error(output, "NOSCRIPT");
    else
        return false;
    return true;
}

static void answer_well(const struct requests *requests, struct output *output) {
    bool sets = strcasecmp(requests->argv[0], "SET") == 0;
    if (sets && strcmp(requests->argv[1], FAILING_HELD) == 0)
        reply_nil(output);
    else if (sets)
        reply_ok(output);
    else
        reply_bulk(output, "token", 5);
}

static void fail_key(struct output *output) {
    now.flicker = !now.flicker;
    switch (now.how) {
    case FAILING_HANGS_UP:
        now.hangs_up = true;
        return;
    case FAILING_FLICKERS:
        now.hangs_up = !now.flicker;
        if (now.flicker)
            reply_error(output, "NOSCRIPT No matching script");
        return;
    case FAILING_WANDERS:
        if (now.flicker)
            reply_error(output, "NOSCRIPT No matching script");
        else
            reply_error(output, "MOVED 15495 127.0.0.1:%d", now.server->port);
        return;
    case FAILING_FORGETS:
        reply_error(output, "NOSCRIPT No matching script");
        return;
    case FAILING_NO_CLOCK:
        reply_error(output, "NOCLOCK This Redis command is not allowed from script");
        return;
    case FAILING_MOVES:
        reply_error(output, "MOVED 15495 127.0.0.1:%d", now.server->port);
        return;
    case FAILING_ASKS:
        reply_error(output, "ASK 15495 127.0.0.1:%d", now.server->port);
        return;
    case FAILING_TRY_AGAIN:
        reply_error(output, "TRYAGAIN Multiple keys request during rehashing of slot");
        return;
    case FAILING_IS_DOWN:
        reply_error(output, "CLUSTERDOWN The cluster is down");
        return;
    case FAILING_LOADS:
        reply_error(output, "LOADING Redis is loading the dataset in memory");
        return;
    case FAILING_READS_ONLY:
        reply_error(output, "READONLY You can't write against a read only replica.");
        return;
    case FAILING_IS_BUSY:
        reply_error(output, "BUSY Redis is busy running a script.");
        return;
    case FAILING_IS_SILENT:
    case FAILINGS:
        return;
    }
}

static void answer(const struct requests *requests, struct output *output) {
    if (answer_login(requests, output))
        return;
    (void)!write(now.server->counts[1], "", 1);
    if (now.healthy-- > 0)
        answer_well(requests, output);
    else
        fail_key(output);
}

struct peer {
    int fd;
    struct requests requests;
};

/* False: it has hung up, or was hung up on. */
static bool hear(struct peer *peer) {
    struct output output = {0};
    char bytes[4096];
    ssize_t len = read(peer->fd, bytes, sizeof(bytes));
    if (len <= 0)
        return false;
    now.hangs_up = false;
    requests_add(&peer->requests, bytes, (size_t)len);
    while (!now.hangs_up && requests_parse(&peer->requests) == PARSED_COMMAND)
        answer(&peer->requests, &output);
    for (size_t sent = 0; sent < output.len && len > 0; sent += (size_t)len)
        len = send(peer->fd, output.bytes + sent, output.len - sent, MSG_NOSIGNAL);
    reply_free(&output);
    if (now.hangs_up)
        usleep(LASTING_MS * 1000);
    return len > 0 && !now.hangs_up;
}

static void serve(int listener) {
    struct pollfd polls[1 + PEERS] = {{listener, POLLIN, 0}};
    struct peer peers[PEERS] = {{0}};
    nfds_t count = 1;
    while (poll(polls, count, -1) >= 0) {
        for (nfds_t i = 1; i < count; i++)
            if (polls[i].revents && !hear(&peers[i - 1])) {
                close(polls[i].fd);
                requests_free(&peers[i - 1].requests);
                peers[i - 1] = peers[count - 2];
                polls[i] = polls[count - 1];
                peers[count-- - 2] = (struct peer){0};
            }
        if (!polls[0].revents || count == 1 + PEERS)
            continue;
        int fd = accept(listener, NULL, NULL);
        peers[count - 1] = (struct peer){.fd = fd};
        polls[count++] = (struct pollfd){fd, POLLIN, 0};
    }
}

void failing_start(struct failing_server *server, enum failing failing, int healthy) {
    int listener = listen_at_loopback(&server->port);
    if (pipe(server->counts) != 0 || fcntl(server->counts[0], F_SETFL, O_NONBLOCK) != 0 ||
        fcntl(server->counts[1], F_SETFL, O_NONBLOCK) != 0)
        abort();
    server->asked = 0;
    snprintf(server->url, sizeof(server->url), "redis://127.0.0.1:%d", server->port);
    snprintf(server->cluster_url, sizeof(server->cluster_url), "redis+cluster://127.0.0.1:%d", server->port);
    now.server = server;
    now.how = failing;
    now.healthy = healthy;
    now.flicker = false;
    server->pid = fork();
    if (server->pid < 0)
        abort();
    if (server->pid == 0) {
        serve(listener);
        _exit(0);
    }
    close(listener);
}

long failing_count(struct failing_server *server) {
    char bytes[4096];
    ssize_t len;
    while ((len = read(server->counts[0], bytes, sizeof(bytes))) > 0)
        server->asked += len;
    return server->asked;
}

void failing_stop(struct failing_server *server) {
    if (server->pid <= 0)
        return;
    kill(server->pid, SIGKILL);
    waitpid(server->pid, NULL, 0);
    close(server->counts[0]);
    close(server->counts[1]);
    server->pid = 0;
}
