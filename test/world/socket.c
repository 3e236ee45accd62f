/* Sockets in memory; see socket.h. */
#undef _FORTIFY_SOURCE /* with which read() and recv() are inline functions */
#include "socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

#include "need.h"

enum { FIRST_FD = 1 << 20, DESCRIPTORS = 1024, ROOM = 208 * 1024 }; /* which is what Linux has for what is written */

/* Bytes that were put in and not yet taken out. */
struct stream {
    char *bytes;
    size_t start, end, room;
};

struct socket {
    int fd;
    unsigned place;
    bool open;             /* the library's end */
    bool ended;            /* the other end is closed, or there is none yet */
    bool accepted;         /* the other end was given out */
    bool parents;          /* it came with a fork */
    struct stream in, out; /* to the library, and from it */
};

static struct socket *sockets[DESCRIPTORS];
static unsigned count; /* of them */
static bool listening[SOCKET_PLACES], refusing[SOCKET_PLACES];
static bool used; /* one that is the parent's */

static int socket_fail(int error) {
    errno = error;
    return -1;
}

/* --- Bytes -------------------------------------------------------------------------------------------------------- */

static size_t stream_size(const struct stream *stream) {
    return stream->end - stream->start;
}

static void stream_put(struct stream *stream, const void *bytes, size_t len) {
    if (stream->start == stream->end)
        stream->start = stream->end = 0;
    if (stream->end + len > stream->room) {
        stream->room = 2 * (stream->end + len);
        stream->bytes = need(realloc(stream->bytes, stream->room));
    }
    memcpy(stream->bytes + stream->end, bytes, len);
    stream->end += len;
}

static size_t stream_copy(const struct stream *stream, void *bytes, size_t size) {
    size_t len = stream_size(stream) < size ? stream_size(stream) : size;

    if (len > 0)
        memcpy(bytes, stream->bytes + stream->start, len);
    return len;
}

/* --- Life --------------------------------------------------------------------------------------------------------- */

static int socket_new(void) {
    struct socket *socket;
    int i = 0;

    while (i < DESCRIPTORS && sockets[i])
        i++;
    if (i == DESCRIPTORS)
        return socket_fail(EMFILE);
    socket = sockets[i] = need(calloc(1, sizeof(*socket)));
    socket->fd = FIRST_FD + i;
    socket->open = socket->ended = true;
    count++;
    return socket->fd;
}

static void socket_free_if_over(struct socket *socket) {
    if (socket->open || !socket->ended)
        return;
    sockets[socket->fd - FIRST_FD] = NULL;
    count--;
    free(socket->in.bytes);
    free(socket->out.bytes);
    free(socket);
}

/* --- The library's end -------------------------------------------------------------------------------------------- */

/* NULL: the descriptor is the kernel's. One that is closed is nobody's, and must not be used. */
static struct socket *find_socket(int fd) {
    struct socket *socket;

    if (fd < FIRST_FD)
        return NULL;
    socket = fd < FIRST_FD + DESCRIPTORS ? sockets[fd - FIRST_FD] : NULL;
    if (!socket || !socket->open)
        abort();
    return socket;
}

/* The same, for all but to close it. */
static struct socket *use_socket(int fd) {
    struct socket *socket = find_socket(fd);

    used |= socket && socket->parents;
    return socket;
}

/* The number of the place that has this address; SOCKET_PLACES: none has. */
static unsigned place_of(const struct sockaddr *address) {
    const char *path = ((const struct sockaddr_un *)(const void *)address)->sun_path;

    if (address->sa_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)(const void *)address)->sin_port) % SOCKET_PLACES;
    if (strncmp(path, SOCKETS_FOLDER, strlen(SOCKETS_FOLDER)) != 0)
        return SOCKET_PLACES;
    return (unsigned)(path[strlen(SOCKETS_FOLDER)] - '0');
}

static int socket_join(struct socket *socket, unsigned place) {
    /* hiredis from 1.0 on asks by this whether it is connected, also when the other end has closed meanwhile. */
    if (!socket->ended || socket->accepted)
        return socket_fail(EISCONN);
    if (place >= SOCKET_PLACES)
        return socket_fail(ENOENT);
    if (!listening[place] || refusing[place]) {
        refusing[place] = false;
        return socket_fail(ECONNREFUSED);
    }
    socket->place = place;
    socket->ended = false;
    return 0;
}

static ssize_t socket_look(const struct socket *socket, void *bytes, size_t size) {
    size_t len = stream_copy(&socket->in, bytes, size);

    return len > 0 || socket->ended ? (ssize_t)len : socket_fail(EAGAIN);
}

static ssize_t take_in(struct socket *socket, void *bytes, size_t size) {
    ssize_t len = socket_look(socket, bytes, size);

    if (len > 0)
        socket->in.start += (size_t)len;
    return len;
}

static ssize_t put_out(struct socket *socket, const void *bytes, size_t len) {
    size_t room = ROOM - stream_size(&socket->out);

    if (socket->ended)
        return socket_fail(EPIPE);
    if (room == 0)
        return socket_fail(EAGAIN);
    len = len < room ? len : room;
    stream_put(&socket->out, bytes, len);
    return (ssize_t)len;
}

static int socket_leave(struct socket *socket) {
    socket->open = false;
    socket_free_if_over(socket);
    return 0;
}

/* --- In place of the C library ------------------------------------------------------------------------------------ */

/* Each has a name of its own here, and the C library's for the linker. */
#define STANDS_FOR(name) __asm__(#name)

int system_socket(int domain, int type, int protocol) STANDS_FOR(socket);
int system_socket(int domain, int type, int protocol) {
    (void)type, (void)protocol;
    return domain == AF_UNIX || domain == AF_INET ? socket_new() : socket_fail(EAFNOSUPPORT);
}

int system_connect(int fd, const struct sockaddr *address, socklen_t len) STANDS_FOR(connect);
int system_connect(int fd, const struct sockaddr *address, socklen_t len) {
    struct socket *socket = use_socket(fd);

    if (!socket)
        return (int)syscall(SYS_connect, fd, address, len);
    return socket_join(socket, place_of(address));
}

/* hiredis 0.14 calls read() and write(), later ones recv() and send(). */

ssize_t system_read(int fd, void *bytes, size_t size) STANDS_FOR(read);
ssize_t system_read(int fd, void *bytes, size_t size) {
    struct socket *socket = use_socket(fd);
    return socket ? take_in(socket, bytes, size) : syscall(SYS_read, fd, bytes, size);
}

ssize_t system_recv(int fd, void *bytes, size_t size, int flags) STANDS_FOR(recv);
ssize_t system_recv(int fd, void *bytes, size_t size, int flags) {
    struct socket *socket = use_socket(fd);

    if (!socket)
        return recvfrom(fd, bytes, size, flags, NULL, NULL);
    return flags & MSG_PEEK ? socket_look(socket, bytes, size) : take_in(socket, bytes, size);
}

ssize_t system_write(int fd, const void *bytes, size_t len) STANDS_FOR(write);
ssize_t system_write(int fd, const void *bytes, size_t len) {
    struct socket *socket = use_socket(fd);
    return socket ? put_out(socket, bytes, len) : syscall(SYS_write, fd, bytes, len);
}

ssize_t system_send(int fd, const void *bytes, size_t len, int flags) STANDS_FOR(send);
ssize_t system_send(int fd, const void *bytes, size_t len, int flags) {
    struct socket *socket = use_socket(fd);
    return socket ? put_out(socket, bytes, len) : sendto(fd, bytes, len, flags, NULL, 0);
}

int system_shutdown(int fd, int how) STANDS_FOR(shutdown);
int system_shutdown(int fd, int how) {
    return use_socket(fd) ? 0 : (int)syscall(SYS_shutdown, fd, how);
}

int system_close(int fd) STANDS_FOR(close);
int system_close(int fd) {
    struct socket *socket = find_socket(fd);
    return socket ? socket_leave(socket) : (int)syscall(SYS_close, fd);
}

static int control(int fd, int command, va_list args) {
    return use_socket(fd) ? 0 : (int)syscall(SYS_fcntl, fd, command, va_arg(args, long));
}

int system_fcntl(int fd, int command, ...) STANDS_FOR(fcntl);
int system_fcntl(int fd, int command, ...) {
    va_list args;
    int result;

    va_start(args, command);
    result = control(fd, command, args);
    va_end(args);
    return result;
}

/* By this name whoever was built with _FILE_OFFSET_BITS calls it. */
int system_fcntl64(int fd, int command, ...) __asm__("fcntl64") __attribute__((alias("fcntl")));

int system_setsockopt(int fd, int level, int option, const void *value, socklen_t len) STANDS_FOR(setsockopt);
int system_setsockopt(int fd, int level, int option, const void *value, socklen_t len) {
    return use_socket(fd) ? 0 : (int)syscall(SYS_setsockopt, fd, level, option, value, len);
}

int system_getsockopt(int fd, int level, int option, void *value, socklen_t *len) STANDS_FOR(getsockopt);
int system_getsockopt(int fd, int level, int option, void *value, socklen_t *len) {
    if (!use_socket(fd))
        return (int)syscall(SYS_getsockopt, fd, level, option, value, len);
    memset(value, 0, *len); /* as SO_ERROR: none */
    return 0;
}

/* --- The other end ------------------------------------------------------------------------------------------------ */

void sockets_listen(unsigned place, bool listens) {
    listening[place] = listens;
    refusing[place] = false;
}

void sockets_refuse_next(unsigned place) {
    refusing[place] = true;
}

void sockets_forked(void) {
    for (int i = 0; i < DESCRIPTORS; i++)
        if (sockets[i])
            sockets[i]->parents = true;
}

bool sockets_used(void) {
    return used;
}

unsigned sockets_count(void) {
    return count;
}

struct socket *socket_of(int fd) {
    return find_socket(fd);
}

struct socket *socket_accept(unsigned place) {
    struct socket *socket;

    for (unsigned i = 0, seen = 0; seen < count; i++) {
        socket = sockets[i];
        seen += socket != NULL;
        if (!socket || socket->ended || socket->accepted || socket->place != place)
            continue;
        socket->accepted = true;
        return socket;
    }
    return NULL;
}

unsigned socket_place(const struct socket *socket) {
    return socket->place;
}

void socket_put(struct socket *socket, const void *bytes, size_t len) {
    if (len > 0 && socket->open && !socket->ended)
        stream_put(&socket->in, bytes, len);
}

size_t socket_take(struct socket *socket, void *bytes, size_t size) {
    size_t len = stream_copy(&socket->out, bytes, size);

    socket->out.start += len;
    return len;
}

bool socket_has_written(const struct socket *socket) {
    return stream_size(&socket->out) > 0;
}

bool socket_readable(const struct socket *socket) {
    return socket->ended || stream_size(&socket->in) > 0;
}

bool socket_is_left(const struct socket *socket) {
    return !socket->open;
}

void socket_end(struct socket *socket) {
    socket->ended = true;
    socket->out.start = socket->out.end;
    socket_free_if_over(socket);
}
