/* A simulated server beside a real one; see pair.h. The real answers are read with blocking calls. */
#include "pair.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "world/chance.h"

static const char marker[] = "end of the step";

int64_t machine_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

uint64_t pair_draw(struct pair *pair, uint64_t below) {
    return chance_next(&pair->random) % below;
}

void command_write(struct output *to, int argc, const char *const *argv) {
    reply_array(to, (size_t)argc);
    for (int i = 0; i < argc; i++)
        reply_bulk(to, argv[i], strlen(argv[i]));
}

/* --- Lines -------------------------------------------------------------------------------------------------------- */

static void on_output(void *arg, const char *bytes, size_t len) {
    struct line *line = arg;
    reply_raw(&line->sim, bytes, len);
}

static void on_ended(void *arg) {
    struct line *line = arg;
    line->session = NULL;
}

void line_open(struct line *line, struct pair *pair) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    *line = (struct line){.pair = pair};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", pair->socket);
    line->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(line->fd >= 0);
    assert_int_equal(connect(line->fd, (struct sockaddr *)&address, sizeof(address)), 0);
    sim_server_set_time(pair->sim, machine_now());
    line->session = sim_server_connect(pair->sim, on_output, on_ended, line);
}

void line_close(struct line *line) {
    close(line->fd);
    if (line->session)
        sim_session_close(line->session);
    reply_free(&line->real);
    reply_free(&line->sim);
}

void line_send(struct line *line, const char *bytes, size_t len) {
    bool in_pieces = pair_draw(line->pair, 4) == 0;
    sim_server_set_time(line->pair->sim, machine_now());
    (void)!send(line->fd, bytes, len, MSG_NOSIGNAL); /* its end is seen when it is read */
    for (size_t at = 0; at < len && line->session;) {
        size_t piece = in_pieces ? 1 + (size_t)pair_draw(line->pair, len - at) : len;
        sim_session_feed(line->session, bytes + at, piece);
        at += piece;
    }
}

static bool ends_with(const struct output *reply, const struct output *end) {
    return reply->len >= end->len && memcmp(reply->bytes + reply->len - end->len, end->bytes, end->len) == 0;
}

void line_read(struct line *line) {
    const char *const ping[] = {"PING", marker};
    struct output command = {0}, last = {0};
    char bytes[16384];
    ssize_t len;
    command_write(&command, 2, ping);
    line_send(line, command.bytes, command.len);
    reply_bulk(&last, marker, strlen(marker));
    while (!ends_with(&line->real, &last) && (len = recv(line->fd, bytes, sizeof(bytes), 0)) > 0)
        reply_raw(&line->real, bytes, (size_t)len);
    while (line->session && sim_session_waits(line->session) != INT64_MAX) { /* a wait that is over on the other side */
        sim_server_set_time(line->pair->sim, machine_now());
        sim_session_resume(line->session);
    }
    reply_free(&command);
    reply_free(&last);
}

/* --- Comparing ---------------------------------------------------------------------------------------------------- */

static uint64_t distance(uint64_t a, uint64_t b) {
    return a > b ? a - b : b - a;
}

/* Whether two numbers are the same time. Only the clock in microseconds, and what was added to it, is as great. */
static bool near(uint64_t a, uint64_t b, enum likeness likeness) {
    if (a >= UINT64_C(1000000000000000) && a < UINT64_C(100000000000000000))
        return distance(a, b) < PAIR_SLACK_MS * 1000;
    return likeness == TIMED && distance(a, b) < PAIR_SLACK_MS && a >= PAIR_SLACK_MS && b >= PAIR_SLACK_MS;
}

static bool alike_in_order(const struct output *a, const struct output *b, enum likeness likeness) {
    size_t i = 0, j = 0;
    while (i < a->len && j < b->len) {
        if (a->bytes[i] == b->bytes[j] && !isdigit((unsigned char)a->bytes[i])) {
            i++, j++;
            continue;
        }
        size_t from_i = i, from_j = j;
        while (i < a->len && isdigit((unsigned char)a->bytes[i]))
            i++;
        while (j < b->len && isdigit((unsigned char)b->bytes[j]))
            j++;
        if (i == from_i || j == from_j)
            return false;
        if (i - from_i == j - from_j && memcmp(a->bytes + from_i, b->bytes + from_j, i - from_i) == 0)
            continue;
        if (!near(strtoull(a->bytes + from_i, NULL, 10), strtoull(b->bytes + from_j, NULL, 10), likeness))
            return false;
    }
    return i == a->len && j == b->len;
}

/* All digits count as one, since the time is among them. */
static unsigned kind_of(char byte) {
    return isdigit((unsigned char)byte) ? '0' : (unsigned char)byte;
}

static bool alike_as_heaps(const struct output *a, const struct output *b) {
    size_t counts[256] = {0};
    for (size_t i = 0; i < a->len; i++)
        counts[kind_of(a->bytes[i])]++;
    for (size_t i = 0; i < b->len; i++)
        counts[kind_of(b->bytes[i])]--;
    for (size_t i = 0; i < 256; i++) {
        if (counts[i] != 0)
            return false;
    }
    return true;
}

static void print_reply(const char *whose, const struct output *reply) {
    printf("# %s ", whose);
    for (size_t i = 0; i < reply->len; i++) {
        unsigned char c = (unsigned char)reply->bytes[i];
        if (c == '\r' || c == '\n')
            printf("%s", c == '\r' ? "\\r" : "\\n");
        else
            printf(isprint(c) ? "%c" : "\\x%02x", c);
    }
    printf("\n");
}

bool line_alike(struct line *line, enum likeness likeness) {
    /* A zero behind each, where the last number ends. */
    reply_raw(&line->real, "", 1);
    reply_raw(&line->sim, "", 1);
    bool alike = likeness == REORDERED ? alike_as_heaps(&line->real, &line->sim)
                                       : alike_in_order(&line->real, &line->sim, likeness);
    if (!alike) {
        print_reply("real:     ", &line->real);
        print_reply("simulated:", &line->sim);
    }
    line->real.len = line->sim.len = 0;
    return alike;
}
