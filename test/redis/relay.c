/* The tests' relay; see relay.h. */
#include "relay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct sockaddr_un address_of(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    return address;
}

void relay_start(struct relay *relay, const struct server *server) {
    *relay = (struct relay){.server = server};
    snprintf(relay->path, sizeof(relay->path), "%s/relay", server->folder);
    snprintf(relay->url, sizeof(relay->url), "unix://%s", relay->path);
    struct sockaddr_un address = address_of(relay->path);
    unlink(relay->path); /* of a test that failed */
    relay->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (relay->listener < 0 || bind(relay->listener, (struct sockaddr *)&address, sizeof(address)) ||
        listen(relay->listener, 8))
        fail_msg("no relay: %s", strerror(errno));
}

static void end(struct relay_pair *pair) {
    if (pair->client < 0)
        return;
    close(pair->client);
    close(pair->server);
    pair->client = -1;
}

void relay_stop(struct relay *relay) {
    if (!relay->server)
        return;
    for (int i = 0; i < relay->count; i++)
        end(&relay->pairs[i]);
    close(relay->listener);
    unlink(relay->path);
    relay->server = NULL;
}

void relay_cut(struct relay *relay, int pair) {
    end(&relay->pairs[pair]);
}

static void accept_one(struct relay *relay) {
    struct sockaddr_un address = address_of(relay->server->socket);
    int client = accept4(relay->listener, NULL, NULL, SOCK_CLOEXEC);
    if (client < 0)
        return;
    int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (relay->count == RELAY_PAIRS || connect(server, (struct sockaddr *)&address, sizeof(address)))
        fail_msg("the relay cannot connect: %s", strerror(errno));
    relay->pairs[relay->count++] = (struct relay_pair){.client = client, .server = server};
}

/* Moves what is there; false at the end of the stream. */
static bool move(struct relay *relay, int from, int to, bool to_server) {
    char bytes[16384];
    struct pollfd ready = {.fd = from, .events = POLLIN};
    if (poll(&ready, 1, 0) < 1)
        return true;
    ssize_t len = recv(from, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (len > 0 && relay->edit)
        relay->edit(relay, bytes, (size_t)len, to_server);
    return len > 0 && send(to, bytes, (size_t)len, MSG_NOSIGNAL) == len;
}

bool relay_pump(struct relay *relay) {
    accept_one(relay);
    for (int i = 0; i < relay->count; i++) {
        struct relay_pair *pair = &relay->pairs[i];
        if (pair->client < 0)
            continue;
        bool alive = pair->held || move(relay, pair->client, pair->server, true);
        if (!alive || (!pair->muted && !move(relay, pair->server, pair->client, false) && !pair->held))
            end(pair);
    }
    return true;
}
