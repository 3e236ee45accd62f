/*
 * Whoever uses the lock in a picture: it does what the lines of its input say, and prints what it did and what was
 * reported to it, each line with its moment in microseconds. `scenes` directs it. It draws nothing.
 *
 *     actor URL NAME HOLDER TTL_MS      then lines: acquire, release, watch
 *
 * It draws a fence where there is one server, and waits in line there. It renews its lease. To watch is to say every 20
 * ms how long the lease lasts. The end of the input ends it.
 */
#include <event2/event.h>
#include <evlock/evlock.h>
#include <evlock/libevent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static evlock_client *client;
static evlock *lock;
static struct event *input, *reading;

static void say(const char *what) {
    printf("%" PRId64 " %s\n", evlock_clock_us(), what);
}

static void on_acquired(evlock *which, int status, void *arg) {
    (void)arg;
    char text[64];
    if (status == EVLOCK_OK)
        snprintf(text, sizeof text, "held %" PRIu64, evlock_fence(which));
    else
        snprintf(text, sizeof text, "not held: %s", evlock_status_name(status));
    say(text);
}

static void on_released(evlock *which, int status, void *arg) {
    (void)which, (void)arg;
    say(status == EVLOCK_OK ? "released" : evlock_status_name(status));
}

static void on_lost(evlock *which, int reason, void *arg) {
    (void)which, (void)arg, (void)reason;
    say("lost");
}

static void on_at_risk(evlock *which, int why, void *arg) {
    (void)which, (void)arg, (void)why;
    say("at risk");
}

static void on_reading(evutil_socket_t fd, short events, void *arg) {
    (void)fd, (void)events, (void)arg;
    char text[64];
    snprintf(text, sizeof text, "left %" PRId64, evlock_remaining_ms(lock));
    say(text);
}

/* With a quorum, once all nodes are there: a picture begins with that. */
static void on_connection(evlock_client *which, enum evlock_connection state, int status, void *arg) {
    (void)status, (void)arg;
    evlock_node_info node;
    for (size_t i = 0; evlock_client_node(which, i, &node, sizeof node) == EVLOCK_OK; i++)
        if (node.connection != EVLOCK_CONNECTED)
            return;
    if (state == EVLOCK_CONNECTED)
        say("connected");
}

static void on_input(evutil_socket_t fd, short events, void *arg) {
    (void)events, (void)arg;
    char text[64];
    ssize_t length = read(fd, text, sizeof text - 1);
    text[length > 0 ? length : 0] = '\0';
    if (length <= 0) {
        event_del(input);
        event_del(reading);
        evlock_client_close(client, NULL, NULL);
    } else if (strstr(text, "acquire")) {
        say("acquire");
        evlock_acquire(lock, NULL, on_acquired, NULL);
    } else if (strstr(text, "release")) {
        say("release");
        evlock_release(lock, on_released, NULL);
    } else if (strstr(text, "watch")) {
        say("watch");
        event_add(reading, &(struct timeval){.tv_usec = 20000});
    }
}

int main(int argc, char **argv) {
    if (argc != 5)
        return fputs("usage: actor URL NAME HOLDER TTL_MS\n", stderr), 2;
    struct event_base *base = event_base_new();
    bool alone = strncmp(argv[1], "quorum:", 7) != 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (evlock_client_new_libevent(&client, base, argv[1],
                                   EVLOCK_CLIENT_OPTIONS(.durable = true, .on_connection = on_connection)) ||
        evlock_new(&lock, client, argv[2], EVLOCK_CSTRING,
                   EVLOCK_OPTIONS(.ttl_ms = strtoll(argv[4], NULL, 10), .auto_renewal = true, .holder = argv[3],
                                  .fence = alone, .wait = alone ? EVLOCK_WAIT_QUEUE : EVLOCK_WAIT_POLL,
                                  .on_lost = on_lost, .on_at_risk = on_at_risk)))
        return fprintf(stderr, "actor: cannot start: %s\n", evlock_last_error()), 1;
    input = event_new(base, STDIN_FILENO, EV_READ | EV_PERSIST, on_input, NULL);
    event_add(input, NULL);
    reading = event_new(base, -1, EV_PERSIST, on_reading, NULL);
    event_base_dispatch(base);
    event_free(input);
    event_free(reading);
    event_base_free(base);
    return 0;
}
