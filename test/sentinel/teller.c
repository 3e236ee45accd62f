/* A Sentinel of the tests' own; see teller.h. */
#include "teller.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
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
#include "world/resp.h"

enum { PEERS = 32, NOWHERE = 1, SHOUTS = 100, WORDS = 1000, ROUNDS = 100 * 1000, AT_ONCE = 100 };

static const char switched[] = "+switch-master";

struct peer {
    int fd;
    bool waits; /* to be told that it listens */
    struct requests requests;
};

/* What the process knows. */
struct told {
    const struct teller *teller;
    enum tale tale;
    int server;
    int epochs, addresses; /* so often each was said */
    int listens;           /* the connection of who does; 0: nobody */
    bool cut;
};

static int epoch_of(const struct told *told) {
    switch (told->tale) {
    case TALE_TORN:
        return told->epochs == 1 ? 1 : 2;
    case TALE_MISSED:
        return told->epochs <= 2 ? 1 : 2;
    case TALE_PUSHED:
    case TALE_SHOUTED:
        return told->epochs <= 4 ? 1 : 2;
    case TALE_AGAIN:
        return told->epochs <= 2 ? 5 : 6;
    case TALE_DEAF:
        return told->epochs;
    default:
        return 5;
    }
}

static int port_of(const struct told *told) {
    bool nowhere = told->tale == TALE_FALSE || (told->tale == TALE_TORN && told->addresses == 1) ||
                   (told->tale == TALE_MENDED && told->addresses <= 2);

    if (told->tale == TALE_NO_PORT)
        return UINT16_MAX + 1;
    return nowhere ? NOWHERE : told->server;
}

static void reply_text(struct output *output, const char *text) {
    reply_bulk(output, text, strlen(text));
}

static void say_epoch(struct told *told, struct output *output) {
    char number[16];

    told->epochs++;
    snprintf(number, sizeof(number), "%d", epoch_of(told));
    reply_array(output, told->tale == TALE_LONG ? WORDS : 2);
    reply_text(output, "config-epoch");
    reply_text(output, number);
    for (int i = 2; told->tale == TALE_LONG && i < WORDS; i++)
        reply_text(output, "more");
}

static bool has_moved(const struct told *told) {
    bool pushed = told->tale == TALE_PUSHED || told->tale == TALE_SHOUTED;

    return (told->tale == TALE_MISSED && told->addresses > 1) || (pushed && told->addresses > 2);
}

static void say_address(struct told *told, struct output *output) {
    char number[16];

    told->addresses++;
    snprintf(number, sizeof(number), "%d", port_of(told));
    reply_array(output, 2);
    reply_text(output, has_moved(told) ? "localhost" : "127.0.0.1");
    reply_text(output, number);
    (void)!write(told->teller->counts[1], "", 1);
}

static bool say(int fd, struct output *output) {
    ssize_t len = 1;

    for (size_t sent = 0; sent < output->len && len > 0; sent += (size_t)len)
        len = send(fd, output->bytes + sent, output->len - sent, MSG_NOSIGNAL);
    reply_free(output);
    *output = (struct output){0};
    return len > 0;
}

/* The answers to what is under way come when that has been heard for certain: it is so little that one reading of the
 * socket has it all. */
static void push(const struct told *told) {
    struct output output = {0};

    for (int i = 0; i < (told->tale == TALE_SHOUTED ? SHOUTS : 1); i++) {
        reply_array(&output, 3);
        reply_text(&output, "message");
        reply_text(&output, switched);
        reply_text(&output, "locks 127.0.0.1 1 localhost 1");
    }
    say(told->listens, &output);
    raise(SIGSTOP);
}

/* Until the other end hangs up, or it has said enough. */
static void answer_unasked(struct told *told, int fd) {
    struct output output = {0};
    bool heard = true;

    for (int i = 1; i <= ROUNDS && heard; i++) {
        say_epoch(told, &output);
        say_address(told, &output);
        say_epoch(told, &output);
        heard = i % AT_ONCE > 0 || say(fd, &output);
    }
    reply_free(&output);
}

/* False: it hangs up. */
static bool answer(struct told *told, struct peer *peer, struct output *output) {
    const char *verb = peer->requests.argv[0];
    const char *next = peer->requests.argc > 1 ? peer->requests.argv[1] : "";

    if (strcasecmp(verb, "SUBSCRIBE") == 0) {
        peer->waits = true;
    } else if (strcasecmp(verb, "SENTINEL") != 0) {
        reply_error(output, "ERR unknown command '%s'", verb);
    } else if (told->tale == TALE_CUT && !told->cut) {
        told->cut = true;
        return false;
    } else if (strcasecmp(next, "MASTER") == 0) {
        if ((told->tale == TALE_PUSHED || told->tale == TALE_SHOUTED) && told->epochs == 2)
            push(told);
        say_epoch(told, output);
        if (told->tale == TALE_DEAF && told->epochs == 2) {
            say(peer->fd, output);
            answer_unasked(told, peer->fd);
            return false;
        }
    } else {
        say_address(told, output);
    }
    return true;
}

/* False: it has hung up, or is hung up on. */
static bool hear(struct told *told, struct peer *peer) {
    struct output output = {0};
    char bytes[4096];
    ssize_t len = read(peer->fd, bytes, sizeof(bytes));
    bool stays = len > 0;

    if (stays)
        requests_add(&peer->requests, bytes, (size_t)len);
    while (stays && requests_parse(&peer->requests) == PARSED_COMMAND)
        stays = answer(told, peer, &output);
    return say(peer->fd, &output) && stays;
}

static void let_listen(struct told *told, struct peer *peer) {
    struct output output = {0};

    if (!peer->waits || told->epochs < 2)
        return;
    peer->waits = false;
    told->listens = peer->fd;
    reply_array(&output, 3);
    reply_text(&output, "subscribe");
    reply_text(&output, switched);
    reply_integer(&output, 1);
    say(peer->fd, &output);
}

static void tell(struct told *told, int listener) {
    struct pollfd polls[1 + PEERS] = {{listener, POLLIN, 0}};
    struct peer peers[PEERS] = {{0}};
    nfds_t count = 1;

    while (poll(polls, count, -1) >= 0) {
        for (nfds_t i = 1; i < count; i++)
            if (polls[i].revents && !hear(told, &peers[i - 1])) {
                close(polls[i].fd);
                requests_free(&peers[i - 1].requests);
                peers[i - 1] = peers[count - 2];
                polls[i] = polls[count - 1];
                peers[count-- - 2] = (struct peer){0};
            }
        for (nfds_t i = 1; i < count; i++)
            let_listen(told, &peers[i - 1]);
        if (!polls[0].revents || count == 1 + PEERS)
            continue;
        int fd = accept(listener, NULL, NULL);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)); /* what is sent has come when it stops */
        peers[count - 1] = (struct peer){.fd = fd};
        polls[count++] = (struct pollfd){fd, POLLIN, 0};
    }
}

void teller_start(struct teller *teller, enum tale tale, int server) {
    struct told told = {.teller = teller, .tale = tale, .server = server};
    int listener = listen_at_loopback(&teller->port);

    teller->said = 0;
    if (pipe(teller->counts) != 0 || fcntl(teller->counts[0], F_SETFL, O_NONBLOCK) != 0 ||
        fcntl(teller->counts[1], F_SETFL, O_NONBLOCK) != 0)
        abort();
    teller->pid = fork();
    if (teller->pid < 0)
        abort();
    if (teller->pid == 0) {
        tell(&told, listener);
        _exit(0);
    }
    close(listener);
}

long teller_said(struct teller *teller) {
    char bytes[256];
    ssize_t len;

    while ((len = read(teller->counts[0], bytes, sizeof(bytes))) > 0)
        teller->said += len;
    return teller->said;
}

void teller_stop(struct teller *teller) {
    if (teller->pid <= 0)
        return;
    kill(teller->pid, SIGKILL);
    waitpid(teller->pid, NULL, 0);
    close(teller->counts[0]);
    close(teller->counts[1]);
    teller->pid = 0;
}
