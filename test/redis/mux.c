/* The proxy of the tests; see mux.h. All state of connections is the thread's own, so nothing is locked. */
#include "mux.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

enum { LINKS = 32, WORDS = 300, OWED = 4096, ROOM = 1 << 20 };

/* Bytes that have come and are not whole yet. */
struct input {
    char *bytes;
    size_t len;
};

/* A client's connection, and the one to the server for it: its own, or the first link's if merged. */
struct link {
    int client; /* -1: it has gone */
    int server; /* -1: it has none of its own */
    struct input from_client, from_server;
    int owed[OWED]; /* merged: whose the next answers are, in a ring */
    unsigned owed_first, owed_count;
};

struct word {
    const char *at;
    size_t len;
};

/* --- RESP --------------------------------------------------------------------------------------------------------- */

/* The number behind a type's letter, and where its line ends; NULL: it has not come whole. */
static const char *number_line(const char *at, const char *end, long *ret) {
    const char *line = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
    if (line)
        *ret = strtol(at + 1, NULL, 10);
    return line ? line + 1 : NULL;
}

/* Where a reply ends; NULL: it has not come whole. */
static const char *reply_end(const char *at, const char *end) {
    long number;
    const char *next = number_line(at, end, &number);
    if (!next)
        return NULL;
    if (*at == '$')
        return number < 0 ? next : end - next >= number + 2 ? next + number + 2 : NULL;
    for (long i = 0; *at == '*' && next && i < number; i++)
        next = reply_end(next, end);
    return next;
}

/* A command's words; returns where it ends, NULL: it has not come whole. */
static const char *command_end(const char *at, const char *end, struct word words[WORDS], int *count) {
    long number, len;
    const char *next = number_line(at, end, &number);
    for (*count = 0; next && *count < number && *count < WORDS; ++*count) {
        next = number_line(next, end, &len);
        if (!next || end - next < len + 2)
            return NULL;
        words[*count] = (struct word){next, (size_t)len};
        next += len + 2;
    }
    return next;
}

/* How many of the words a rule's are; 0: they are others. */
static int rule_fits(const char *from, const struct word *words, int count) {
    int fits = 0;
    for (size_t len; *from; from += len + (from[len] == ' ')) {
        len = strcspn(from, " ");
        if (fits == count || words[fits].len != len || strncasecmp(words[fits].at, from, len) != 0)
            return 0;
        fits++;
    }
    return fits;
}

/* The command as it goes on. */
static int rewrite(const struct mux *mux, struct word words[WORDS], int count) {
    struct word rest[WORDS];
    for (const struct mux_rule *rule = mux->rules; rule && rule->from; rule++) {
        int fits = rule_fits(rule->from, words, count), now = 0;
        if (!fits)
            continue;
        memcpy(rest, words, sizeof(rest));
        for (const char *to = rule->to; *to; to += strcspn(to, " "), to += *to == ' ')
            words[now++] = (struct word){to, strcspn(to, " ")};
        memcpy(words + now, rest + fits, (size_t)(count - fits) * sizeof(*words));
        return now + count - fits;
    }
    return count;
}

static void put(int fd, const void *bytes, size_t len) {
    for (ssize_t done; len > 0; bytes = (const char *)bytes + done, len -= (size_t)done)
        if ((done = send(fd, bytes, len, MSG_NOSIGNAL)) <= 0)
            return;
}

static void put_command(int fd, const struct word *words, int count) {
    char head[32];
    put(fd, head, (size_t)snprintf(head, sizeof(head), "*%d\r\n", count));
    for (int i = 0; i < count; i++) {
        put(fd, head, (size_t)snprintf(head, sizeof(head), "$%zu\r\n", words[i].len));
        put(fd, words[i].at, words[i].len);
        put(fd, "\r\n", 2);
    }
}

/* --- Links -------------------------------------------------------------------------------------------------------- */

static int connect_to(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    close(fd);
    return -1;
}

static void end(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* More bytes; false: there are none, and none will come. */
static bool fill(int fd, struct input *input) {
    ssize_t got = recv(fd, input->bytes + input->len, ROOM - input->len, 0);
    input->len += got > 0 ? (size_t)got : 0;
    return got > 0;
}

static void eat(struct input *input, const char *to) {
    size_t eaten = (size_t)(to - input->bytes);
    memmove(input->bytes, to, input->len - eaten);
    input->len -= eaten;
}

static void send_on(const struct mux *mux, struct link *links, int index) {
    struct link *link = &links[index], *way = mux->merged ? &links[0] : link;
    struct word words[WORDS];
    const char *next;
    int count;
    while (
        (next = command_end(link->from_client.bytes, link->from_client.bytes + link->from_client.len, words, &count))) {
        count = rewrite(mux, words, count);
        if (mux->merged)
            way->owed[(way->owed_first + way->owed_count++) % OWED] = index;
        put_command(way->server, words, count);
        eat(&link->from_client, next);
    }
}

static void hand_back(const struct mux *mux, struct link *links, int index) {
    struct link *way = &links[index];
    const char *next;
    if (!mux->merged) {
        put(way->client, way->from_server.bytes, way->from_server.len);
        way->from_server.len = 0;
    }
    while (way->owed_count > 0 &&
           (next = reply_end(way->from_server.bytes, way->from_server.bytes + way->from_server.len))) {
        int owner = way->owed[way->owed_first];
        way->owed_first = (way->owed_first + 1) % OWED;
        way->owed_count--;
        if (owner >= 0)
            put(links[owner].client, way->from_server.bytes, (size_t)(next - way->from_server.bytes));
        eat(&way->from_server, next);
    }
}

/* Its client has gone: what is still answered to it is dropped. */
static void leave(const struct mux *mux, struct link *links, int index) {
    end(&links[index].client);
    links[index].from_client.len = 0;
    if (!mux->merged)
        end(&links[index].server);
    for (unsigned i = 0; i < links[0].owed_count; i++) {
        int *owner = &links[0].owed[(links[0].owed_first + i) % OWED];
        if (*owner == index)
            *owner = -1;
    }
}

static void take_client(const struct mux *mux, struct link *links) {
    int client = accept(mux->listener, NULL, NULL), index = 0;
    while (index < LINKS && links[index].client >= 0)
        index++;
    if (client < 0 || index == LINKS) {
        end(&client);
        return;
    }
    links[index].client = client;
    if (!mux->merged && (links[index].server = connect_to(mux->server)) < 0)
        leave(mux, links, index);
}

/* All links at once, for what the thread was told. */
static void leave_all(const struct mux *mux, struct link *links) {
    for (int i = 0; i < LINKS; i++)
        if (links[i].client >= 0)
            leave(mux, links, i);
}

static void *run(void *arg) {
    const struct mux *mux = arg;
    struct link *links = calloc(LINKS, sizeof(*links));
    struct pollfd fds[2 + 2 * LINKS];
    char order = 0;
    for (int i = 0; i < LINKS; i++) {
        links[i].client = links[i].server = -1;
        links[i].from_client.bytes = malloc(ROOM);
        links[i].from_server.bytes = malloc(ROOM);
    }
    if (mux->merged)
        links[0].server = connect_to(mux->server);
    while (order != 'e') {
        fds[0] = (struct pollfd){mux->orders[0], POLLIN, 0};
        fds[1] = (struct pollfd){mux->listener, POLLIN, 0};
        for (int i = 0; i < LINKS; i++) {
            fds[2 + 2 * i] = (struct pollfd){links[i].client, POLLIN, 0};
            fds[3 + 2 * i] = (struct pollfd){links[i].server, POLLIN, 0};
        }
        poll(fds, 2 + 2 * LINKS, -1);
        for (int i = 0; i < LINKS; i++) {
            if (fds[2 + 2 * i].revents && fill(links[i].client, &links[i].from_client))
                send_on(mux, links, i);
            else if (fds[2 + 2 * i].revents)
                leave(mux, links, i);
            if (fds[3 + 2 * i].revents && links[i].server >= 0 && fill(links[i].server, &links[i].from_server))
                hand_back(mux, links, i);
            else if (fds[3 + 2 * i].revents && links[i].server >= 0)
                mux->merged ? end(&links[i].server) : leave(mux, links, i);
        }
        if (mux->merged && links[0].server < 0) { /* it had been killed: those who were served by it see that */
            leave_all(mux, links);
            links[0].owed_count = 0;
            links[0].from_server.len = 0;
            links[0].server = connect_to(mux->server);
        }
        if (fds[1].revents)
            take_client(mux, links);
        if (fds[0].revents && read(mux->orders[0], &order, 1) == 1)
            leave_all(mux, links);
    }
    for (int i = 0; i < LINKS; i++) {
        end(&links[i].server);
        free(links[i].from_client.bytes);
        free(links[i].from_server.bytes);
    }
    free(links);
    return NULL;
}

/* --- For the tests ------------------------------------------------------------------------------------------------ */

void mux_start(struct mux *mux, const struct server *server, bool merged, const struct mux_rule *rules) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    *mux = (struct mux){.running = true, .merged = merged, .rules = rules};
    assert_true(folder_make(mux->folder));
    snprintf(mux->socket, sizeof(mux->socket), "%s/sock", mux->folder);
    snprintf(mux->server, sizeof(mux->server), "%s", server->socket);
    snprintf(mux->url, sizeof(mux->url), "unix://%s", mux->socket);
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", mux->socket);
    mux->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(mux->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(mux->listener, LINKS), 0);
    assert_int_equal(pipe(mux->orders), 0);
    assert_int_equal(pthread_create(&mux->thread, NULL, run, mux), 0);
}

void mux_cut(struct mux *mux) {
    assert_int_equal(write(mux->orders[1], "c", 1), 1);
}

void mux_stop(struct mux *mux) {
    if (!mux->running)
        return;
    assert_int_equal(write(mux->orders[1], "e", 1), 1);
    pthread_join(mux->thread, NULL);
    close(mux->listener);
    close(mux->orders[0]);
    close(mux->orders[1]);
    unlink(mux->socket);
    rmdir(mux->folder);
    mux->running = false;
}
