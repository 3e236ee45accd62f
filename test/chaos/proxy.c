/*
 * The proxy; see proxy.h. One thread, one poll() over all sockets. Each connection has a stream to either side, in
 * which pieces wait for their time.
 */
#include "proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <evlock/evlock.h>
#include <evlock/loop.h>

enum {
    PIECE = 4096,
    CROWDED = 64,       /* pieces in a stream; then nothing more is read */
    SPLIT_BYTES = 24,   /* so many of a piece go one by one, the rest at once: a login must be possible */
    CONNECTIONS = 1024, /* at a time */
    POLL_MS = 1,
};

struct piece {
    STAILQ_ENTRY(piece) link;
    int64_t due;
    size_t len;
    size_t sent;
    char bytes[PIECE];
};

/* One way of a connection. */
struct stream {
    int from;
    int to;
    bool ended; /* nothing more comes */
    bool deaf;  /* nobody takes it any more */
    size_t pieces_len;
    int64_t last_due;
    STAILQ_HEAD(, piece) pieces;
};

struct connection {
    LIST_ENTRY(connection) link;
    struct wire *wire;
    int draw; /* 0 to 99: which share of a trouble hits it */
    struct stream to_server;
    struct stream to_client;
};

static LIST_HEAD(, connection) connections = LIST_HEAD_INITIALIZER(connections);
static size_t connections_len;

/* --- Connections -------------------------------------------------------------------------------------------------- */

static struct sockaddr_in loopback(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

/* Ends it by a reset, as where a peer is gone. */
static void reset(int fd) {
    struct linger none = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    close(fd);
}

static int connect_to(int port) {
    struct sockaddr_in address = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address))) {
        close(fd);
        return -1;
    }
    return fd;
}

static void stream_init(struct stream *stream, int from, int to) {
    int on = 1;
    *stream = (struct stream){.from = from, .to = to};
    STAILQ_INIT(&stream->pieces);
    setsockopt(to, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static void accept_one(struct wire *wire) {
    int client = accept4(wire->listener, NULL, NULL, SOCK_CLOEXEC);
    if (client < 0)
        return;
    bool welcome = !atomic_load(&wire->refuse) && connections_len < CONNECTIONS;
    int server = welcome ? connect_to(atomic_load(&wire->server)) : -1;
    struct connection *connection = server < 0 ? NULL : calloc(1, sizeof(*connection));
    if (!connection) {
        reset(client);
        if (server >= 0)
            close(server);
        return;
    }
    connection->wire = wire;
    connection->draw = (int)(random() % 100);
    stream_init(&connection->to_server, client, server);
    stream_init(&connection->to_client, server, client);
    LIST_INSERT_HEAD(&connections, connection, link);
    connections_len++;
}

static void stream_done(struct stream *stream) {
    struct piece *piece;
    while ((piece = STAILQ_FIRST(&stream->pieces)) != NULL) {
        STAILQ_REMOVE_HEAD(&stream->pieces, link);
        free(piece);
    }
}

static void connection_end(struct connection *connection) {
    reset(connection->to_server.from);
    reset(connection->to_server.to);
    stream_done(&connection->to_server);
    stream_done(&connection->to_client);
    LIST_REMOVE(connection, link);
    connections_len--;
    free(connection);
}

/* --- Moving ------------------------------------------------------------------------------------------------------- */

static void take_in(struct stream *stream, const struct wire *wire, int64_t now) {
    struct piece *piece = malloc(sizeof(*piece));
    ssize_t len = piece ? recv(stream->from, piece->bytes, sizeof(piece->bytes), MSG_DONTWAIT) : -1;
    if (len <= 0) {
        stream->ended = piece && (len == 0 || errno != EAGAIN);
        free(piece);
        return;
    }
    int delay = atomic_load(&wire->delay_ms);
    piece->len = (size_t)len;
    piece->sent = 0;
    piece->due = now + (delay ? random() % (delay * 1000) : 0);
    if (piece->due < stream->last_due)
        piece->due = stream->last_due; /* they stay in order */
    stream->last_due = piece->due;
    STAILQ_INSERT_TAIL(&stream->pieces, piece, link);
    stream->pieces_len++;
}

/* Sends of the first piece what may go now; false when no more of the stream can. */
static bool pass_on(struct stream *stream, const struct wire *wire, int64_t now) {
    struct piece *piece = STAILQ_FIRST(&stream->pieces);
    if (!piece || piece->due > now)
        return false;
    bool single = atomic_load(&wire->split) && piece->sent < SPLIT_BYTES;
    size_t len = single ? 1 : piece->len - piece->sent;
    ssize_t sent =
        stream->deaf ? (ssize_t)len : send(stream->to, piece->bytes + piece->sent, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
        stream->deaf = errno != EAGAIN;
        return stream->deaf;
    }
    piece->sent += (size_t)sent;
    if (piece->sent == piece->len) {
        STAILQ_REMOVE_HEAD(&stream->pieces, link);
        stream->pieces_len--;
        free(piece);
    }
    return !single; /* the next byte goes on a later turn, in a packet of its own */
}

static bool stalled(const struct connection *connection, int way) {
    const struct wire *wire = connection->wire;
    return connection->draw < atomic_load(&wire->stall_percent) && atomic_load(&wire->stall_ways) & way;
}

static bool over(const struct stream *stream) {
    return stream->ended && STAILQ_EMPTY(&stream->pieces);
}

/* What a client had sent still goes to the server when the client has gone: then it runs late. */
static void move(struct connection *connection, int64_t now) {
    while (!stalled(connection, TO_SERVER) && pass_on(&connection->to_server, connection->wire, now))
        ;
    while (!stalled(connection, TO_CLIENT) && pass_on(&connection->to_client, connection->wire, now))
        ;
    if (over(&connection->to_server) || over(&connection->to_client))
        connection_end(connection);
}

static void cut(struct wire *wire) {
    unsigned wanted = atomic_load(&wire->cuts_wanted);
    if (wanted == atomic_load(&wire->cuts_done))
        return;
    int percent = atomic_load(&wire->cut_percent);
    struct connection *connection = LIST_FIRST(&connections);
    while (connection) {
        struct connection *next = LIST_NEXT(connection, link);
        if (connection->wire == wire && random() % 100 < percent)
            connection_end(connection);
        connection = next;
    }
    atomic_store(&wire->cuts_done, wanted);
}

/* --- The process -------------------------------------------------------------------------------------------------- */

static size_t watch(struct proxy *proxy, struct pollfd *sockets) {
    struct connection *connection;
    size_t len = 0;
    for (int i = 0; i < proxy->wires_len; i++)
        sockets[len++] = (struct pollfd){.fd = proxy->wires[i].listener, .events = POLLIN};
    LIST_FOREACH (connection, &connections, link) {
        const struct stream *both[] = {&connection->to_server, &connection->to_client};
        for (int i = 0; i < 2; i++) {
            bool wanted = !both[i]->ended && both[i]->pieces_len < CROWDED;
            sockets[len++] = (struct pollfd){.fd = wanted ? both[i]->from : -1, .events = POLLIN};
        }
    }
    return len;
}

static void turn(struct proxy *proxy, struct pollfd *sockets) {
    size_t at = (size_t)proxy->wires_len;
    poll(sockets, watch(proxy, sockets), POLL_MS);
    int64_t now = evlock_clock_us();
    struct connection *connection = LIST_FIRST(&connections);
    while (connection) {
        struct connection *next = LIST_NEXT(connection, link);
        if (sockets[at++].revents)
            take_in(&connection->to_server, connection->wire, now);
        if (sockets[at++].revents)
            take_in(&connection->to_client, connection->wire, now);
        move(connection, now);
        connection = next;
    }
    for (int i = 0; i < proxy->wires_len; i++) {
        if (sockets[i].revents)
            accept_one(&proxy->wires[i]);
        cut(&proxy->wires[i]);
    }
}

static void run(struct proxy *proxy, unsigned seed) {
    static struct pollfd sockets[SERVERS_MAX + 2 * CONNECTIONS];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    srandom(seed);
    for (;;)
        turn(proxy, sockets);
}

static bool wire_listen(struct wire *wire) {
    struct sockaddr_in address = loopback(0);
    socklen_t len = sizeof(address);
    wire->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (wire->listener < 0 || bind(wire->listener, (struct sockaddr *)&address, len) || listen(wire->listener, 128) ||
        getsockname(wire->listener, (struct sockaddr *)&address, &len))
        return false;
    wire->port = ntohs(address.sin_port);
    return true;
}

struct proxy *proxy_start(int wires, unsigned seed) {
    struct proxy *proxy = mmap(NULL, sizeof(*proxy), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (proxy == MAP_FAILED)
        return NULL;
    proxy->wires_len = wires;
    for (int i = 0; i < wires; i++)
        if (!wire_listen(&proxy->wires[i]))
            return NULL;
    pid_t pid = fork();
    if (pid == 0)
        run(proxy, seed);
    for (int i = 0; i < wires; i++)
        close(proxy->wires[i].listener);
    proxy->pid = pid;
    return pid > 0 ? proxy : NULL;
}

void proxy_stop(struct proxy *proxy) {
    kill(proxy->pid, SIGKILL);
    waitpid(proxy->pid, NULL, 0);
    munmap(proxy, sizeof(*proxy));
}

void proxy_cut(struct wire *wire, int percent) {
    atomic_store(&wire->cut_percent, percent);
    unsigned wanted = atomic_fetch_add(&wire->cuts_wanted, 1) + 1;
    while (atomic_load(&wire->cuts_done) != wanted)
        usleep(200);
}
