/* Servers that send commands round; see liar.h. */
#include "liar.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "redis/listen.h"
#include "world/need.h"
#include "world/resp.h"

enum { PEERS = 64, SOON_MS = 500 };

struct peer {
    int fd;
    int side; /* which of the ports it came by */
    struct requests requests;
};

/* The second server is gone for good; the first one has lost a command since, and hangs up. */
static bool left, lost, hangs_up;

static void say_table(const struct liar *liar, enum lie lie, int side, struct output *output) {
    static bool said;
    bool older = lie == LIE_OLDER && said;
    const char *address = lie == LIE_ADDRESS ? "127.0.0.9" : "127.0.0.1";
    const char *name = lie == LIE_ADDRESS ? ",127.0.0.1" : lie == LIE_NAME ? ",nobody.invalid" : "";
    const char *slots[2] = {older ? " 0-16383" : " 0-8191", older ? "" : " 8192-16383"};
    char id[40], text[512];

    memset(id, lie == LIE_OTHERS && said ? 'f' : '0', sizeof(id) - 1);
    id[sizeof(id) - 1] = '\0';
    int len = snprintf(text, sizeof(text),
                       "%s0 %s:%d@1%s %smaster - 0 0 1 connected%s\n"
                       "%s1 %s:%d@1%s %smaster - 0 0 %d connected%s\n",
                       id, address, liar->ports[0], name, side == 0 ? "myself," : "", lie == LIE_EMPTY ? "" : slots[0],
                       id, address, liar->ports[1], name, side == 1 ? "myself," : "", older ? 1 : 2,
                       lie == LIE_EMPTY ? "" : slots[1]);

    said = true;
    if (left)
        len = snprintf(text, sizeof(text), "%s0 127.0.0.1:%d@1 myself,master - 0 0 3 connected 0-16383\n", id,
                       liar->ports[0]);
    if (lie == LIE_TABLE)
        reply_bulk(output, "nonsense", 8);
    else if (lie == LIE_FULL)
        reply_error(output, "ERR max number of clients reached");
    else if (lie == LIE_PLAIN)
        reply_error(output, "ERR This instance has cluster support disabled");
    else
        reply_bulk(output, text, (size_t)len);
}

/* Whether the moment after the first call has passed. */
static bool is_soon(void) {
    static struct timespec first;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!first.tv_sec)
        first = now;
    return (now.tv_sec - first.tv_sec) * 1000 + (now.tv_nsec - first.tv_nsec) / 1000000 >= SOON_MS;
}

static void claim(const struct liar *liar, int side, struct output *output) {
    static bool asks, claimed;

    if (claimed || (side == 0 && !asks))
        reply_nil(output);
    else
        reply_error(output, "%s 15495 127.0.0.1:%d", side == 0 ? "MOVED" : "ASK", liar->ports[0]);
    asks |= side == 1;
    claimed |= asks && side == 0;
}

/* The first port is asked to release what nobody has. */
static void leave(enum lie lie, int side, struct output *output) {
    hangs_up = side == 1 || (lie == LIE_LOSES && left && !lost);
    lost |= left && hangs_up;
    left |= side == 1;
    if (left)
        reply_integer(output, 0);
    else
        reply_nil(output);
}

static void say_process(struct output *output) {
    char text[64];
    int len = snprintf(text, sizeof(text), "# Server\r\nrun_id:%040d\r\n", lost ? 2 : 1);

    reply_bulk(output, text, (size_t)len);
}

static void lie_about(const struct liar *liar, enum lie lie, int side, struct output *output) {
    (void)!write(liar->counts[1], &(char){(char)side}, 1);
    if (lie == LIE_SOON && is_soon()) {
        reply_nil(output);
        return;
    }
    switch (lie) {
    case LIE_MOVED:
    case LIE_SOON:
    case LIE_HELD:
        reply_error(output, "MOVED 15495 127.0.0.1:%d", liar->ports[!side]);
        break;
    case LIE_ASK:
        reply_error(output, "ASK 15495 127.0.0.1:%d", liar->ports[!side]);
        break;
    case LIE_SELF:
        reply_error(output, "MOVED 15495 127.0.0.1:%d", liar->ports[side]);
        break;
    case LIE_CLAIM:
        claim(liar, side, output);
        break;
    case LIE_LEAVES:
    case LIE_LOSES:
        leave(lie, side, output);
        break;
    case LIE_SILENCE:
        left |= side == 1;
        if (side == 0)
            reply_nil(output);
        break;
    case LIE_NAME:
    case LIE_ADDRESS:
    case LIE_OTHERS:
    case LIE_OLDER:
        reply_nil(output);
        break;
    case LIE_STRANGER:
        reply_error(output, "MOVED 15495 127.0.0.1:1");
        break;
    default:
        reply_error(output, "MOVED 99999 nowhere");
        break;
    }
}

static void answer(const struct liar *liar, enum lie lie, const struct peer *peer, struct output *output) {
    const char *verb = peer->requests.argv[0];
    const char *next = peer->requests.argc > 1 ? peer->requests.argv[1] : "";

    if (strcasecmp(verb, "CLUSTER") == 0 && strcasecmp(next, "NODES") == 0)
        say_table(liar, lie, peer->side, output);
    else if (strcasecmp(verb, "EVALSHA") == 0 && next[0] == '0')
        reply_error(output, "NOSCRIPT");
    else if (strcasecmp(verb, "SET") == 0 && lie == LIE_HELD)
        reply_ok(output);
    else if (strcasecmp(verb, "SET") == 0 || strcasecmp(verb, "GET") == 0 || strcasecmp(verb, "EVALSHA") == 0)
        lie_about(liar, lie, peer->side, output);
    else if (strcasecmp(verb, "INFO") == 0 && lie == LIE_LOSES)
        say_process(output);
    else if (strcasecmp(verb, "ASKING") == 0 || strcasecmp(verb, "SCRIPT") == 0)
        reply_ok(output);
    else
        reply_error(output, "ERR unknown command '%s'", verb);
}

/* False: it has hung up. */
static bool hear(const struct liar *liar, enum lie lie, struct peer *peer) {
    struct output output = {0};
    char bytes[4096];
    ssize_t len = read(peer->fd, bytes, sizeof(bytes));

    if (len <= 0)
        return false;
    requests_add(&peer->requests, bytes, (size_t)len);
    while (!hangs_up && requests_parse(&peer->requests) == PARSED_COMMAND)
        answer(liar, lie, peer, &output);
    if (hangs_up)
        len = 0;
    hangs_up = false;
    for (size_t sent = 0; sent < output.len && len > 0; sent += (size_t)len)
        len = send(peer->fd, output.bytes + sent, output.len - sent, MSG_NOSIGNAL);
    reply_free(&output);
    return len > 0;
}

static void lie_on(const struct liar *liar, enum lie lie, const int listeners[2]) {
    struct pollfd polls[2 + PEERS] = {{listeners[0], POLLIN, 0}, {listeners[1], POLLIN, 0}};
    struct peer peers[PEERS] = {{0}};
    nfds_t count = 2;

    while (poll(polls, count, -1) >= 0) {
        for (nfds_t i = 2; i < count; i++)
            if (polls[i].revents && !hear(liar, lie, &peers[i - 2])) {
                close(polls[i].fd);
                requests_free(&peers[i - 2].requests);
                peers[i - 2] = peers[count - 3];
                polls[i] = polls[count - 1];
                peers[count-- - 3] = (struct peer){0};
            }
        if (left && polls[1].fd >= 0) {
            close(polls[1].fd);
            polls[1].fd = -1;
        }
        for (int side = 0; side < 2; side++) {
            if (!polls[side].revents || count == 2 + PEERS)
                continue;
            int fd = accept(listeners[side], NULL, NULL);
            peers[count - 2] = (struct peer){.fd = fd, .side = side};
            polls[count++] = (struct pollfd){fd, POLLIN, 0};
        }
    }
}

void liar_start(struct liar *liar, enum lie lie) {
    int listeners[2] = {listen_at_loopback(&liar->ports[0]), listen_at_loopback(&liar->ports[1])};

    if (pipe(liar->counts) != 0 || fcntl(liar->counts[0], F_SETFL, O_NONBLOCK) != 0 ||
        fcntl(liar->counts[1], F_SETFL, O_NONBLOCK) != 0)
        abort();
    liar->asked[0] = liar->asked[1] = 0;
    snprintf(liar->url, sizeof(liar->url), "redis+cluster://127.0.0.1:%d,127.0.0.1:%d", liar->ports[0], liar->ports[1]);
    liar->pid = fork();
    if (liar->pid < 0)
        abort();
    if (liar->pid == 0) {
        lie_on(liar, lie, listeners);
        _exit(0);
    }
    close(listeners[0]);
    close(listeners[1]);
}

long liar_count_at(struct liar *liar, int side) {
    char bytes[4096];
    ssize_t len;

    while ((len = read(liar->counts[0], bytes, sizeof(bytes))) > 0)
        for (ssize_t i = 0; i < len; i++)
            liar->asked[(int)bytes[i]]++;
    return liar->asked[side];
}

long liar_count(struct liar *liar) {
    return liar_count_at(liar, 0) + liar_count_at(liar, 1);
}

void liar_stop(struct liar *liar) {
    if (liar->pid <= 0)
        return;
    kill(liar->pid, SIGKILL);
    waitpid(liar->pid, NULL, 0);
    close(liar->counts[0]);
    close(liar->counts[1]);
    liar->pid = 0;
}
