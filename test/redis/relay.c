/* The tests' relay; see relay.h. */
#include "relay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
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

static bool listen_to_path(struct relay *relay) {
    struct sockaddr_un address = address_of(relay->path);
    unlink(relay->path); /* of a test that failed */
    snprintf(relay->url, sizeof(relay->url), "unix://%s", relay->path);
    relay->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return relay->listener >= 0 && bind(relay->listener, (struct sockaddr *)&address, sizeof(address)) == 0 &&
           listen(relay->listener, 8) == 0;
}

/* A socket of the address, or of a free port, which is put there. Others may share it from then on. */
static int bind_port(struct sockaddr_in *address, int type) {
    socklen_t len = sizeof(*address);
    int on = 1, fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    if (fd < 0 || (address->sin_port && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on))) ||
        bind(fd, (struct sockaddr *)address, len) || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
        getsockname(fd, (struct sockaddr *)address, &len))
        fail_msg("no port: %s", strerror(errno));
    return fd;
}

static bool listen_to_port(struct relay *relay) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    if (!relay->kept)
        relay->kept = bind_port(&address, SOCK_STREAM);
    else if (getsockname(relay->kept, (struct sockaddr *)&address, &len))
        return false;
    relay->listener = bind_port(&address, SOCK_STREAM | SOCK_NONBLOCK);
    snprintf(relay->url, sizeof(relay->url), "rediss://127.0.0.1:%d", ntohs(address.sin_port));
    return listen(relay->listener, 8) == 0;
}

void relay_start(struct relay *relay, const struct server *server) {
    *relay = (struct relay){.server = server, .kept = relay->kept, .guest.client = -1};
    snprintf(relay->path, sizeof(relay->path), "%s/relay", server->folder);
    if (!(server->tls ? listen_to_port(relay) : listen_to_path(relay)))
        fail_msg("no relay: %s", strerror(errno));
}

static void end(struct relay_pair *pair) {
    if (pair->client < 0)
        return;
    close(pair->client);
    close(pair->server);
    tls_end_free(pair->tls);
    pair->client = -1;
}

void relay_stop(struct relay *relay) {
    if (!relay->server)
        return;
    for (int i = 0; i < relay->count; i++)
        end(&relay->pairs[i]);
    relay_hang_up(relay);
    close(relay->listener);
    unlink(relay->path);
    relay->server = NULL;
}

void relay_free(struct relay *relay) {
    relay_stop(relay);
    if (relay->kept)
        close(relay->kept);
    relay->kept = 0;
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
    relay->pairs[relay->count++] =
        (struct relay_pair){.client = client, .server = server, .tls = relay->server->tls ? tls_end_new(client) : NULL};
}

static ssize_t take(const struct relay_pair *pair, bool to_server, char *bytes, size_t len) {
    if (to_server && pair->tls)
        return tls_end_recv(pair->tls, bytes, len);
    return recv(to_server ? pair->client : pair->server, bytes, len, MSG_DONTWAIT);
}

static bool give(const struct relay_pair *pair, bool to_server, const char *bytes, size_t len) {
    if (!to_server && pair->tls)
        return tls_end_send(pair->tls, bytes, len) == (ssize_t)len;
    return send(to_server ? pair->server : pair->client, bytes, len, MSG_NOSIGNAL) == (ssize_t)len;
}

/* Moves what is there; false at the end of the stream. */
static bool move(struct relay *relay, const struct relay_pair *pair, bool to_server) {
    char bytes[16384];
    ssize_t len = take(pair, to_server, bytes, sizeof(bytes));
    if (len > 0 && relay->edit)
        relay->edit(relay, bytes, (size_t)len, to_server);
    return len > 0 ? give(pair, to_server, bytes, (size_t)len) : len < 0 && errno == EAGAIN;
}

bool relay_pump(struct relay *relay) {
    accept_one(relay);
    for (int i = 0; i < relay->count; i++) {
        struct relay_pair *pair = &relay->pairs[i];
        if (pair->client < 0)
            continue;
        bool alive = pair->held || move(relay, pair, true);
        if (!alive || (!pair->muted && !move(relay, pair, false) && !pair->held))
            end(pair);
    }
    return true;
}

bool relay_say(struct relay *relay, const char *said) {
    struct relay_pair *guest = &relay->guest;
    size_t len = strlen(said);
    char bytes[4096];
    if (guest->client < 0)
        guest->client = accept4(relay->listener, NULL, NULL, SOCK_CLOEXEC);
    if (guest->client < 0)
        return false;
    if (relay->server->tls && !guest->tls)
        guest->tls = tls_end_new(guest->client);
    if (guest->tls)
        (void)tls_end_recv(guest->tls, bytes, sizeof(bytes)); /* the handshake */
    return give(guest, false, said, len);
}

void relay_hang_up(struct relay *relay) {
    struct relay_pair *guest = &relay->guest;
    if (guest->client < 0)
        return;
    close(guest->client);
    tls_end_free(guest->tls);
    *guest = (struct relay_pair){.client = -1};
}

void relay_spoil_digests(struct relay *relay, char *bytes, size_t len, bool to_server) {
    static const char call[] = "EVALSHA\r\n$40\r\n";
    (void)relay;
    char *end = bytes + len, *at = to_server ? bytes : end;
    while (at < end && (at = memmem(at, (size_t)(end - at), call, strlen(call)))) {
        at += strlen(call);
        memcpy(at, "ff", 2);
    }
}
