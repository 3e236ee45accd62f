/* The process's ends of connections; see socket.h. */
#undef _FORTIFY_SOURCE /* with which read() and recv() are inline functions */
#include "socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

enum { DESCRIPTORS = 1024 };

static struct socket *sockets[DESCRIPTORS]; /* by the library's descriptors */
static bool listening[10];                  /* by the paths' last digits */

void sockets_listen(const char *path, bool listens) {
    listening[path[strlen(path) - 1] - '0'] = listens;
}

/* --- Bytes -------------------------------------------------------------------------------------------------------- */

static size_t pipe_size(const struct pipe *pipe) {
    return pipe->end - pipe->start;
}

static void pipe_put(struct pipe *pipe, const char *bytes, size_t len) {
    if (pipe->start == pipe->end)
        pipe->start = pipe->end = 0;
    if (pipe->end + len > pipe->room) {
        pipe->room = 2 * (pipe->end + len);
        pipe->bytes = realloc(pipe->bytes, pipe->room);
        if (!pipe->bytes)
            abort();
    }
    memcpy(pipe->bytes + pipe->end, bytes, len);
    pipe->end += len;
}

static size_t pipe_take(struct pipe *pipe, char *bytes, size_t size) {
    size_t len = pipe_size(pipe) < size ? pipe_size(pipe) : size;

    if (len)
        memcpy(bytes, pipe->bytes + pipe->start, len);
    pipe->start += len;
    return len;
}

/* --- The library's end -------------------------------------------------------------------------------------------- */

static struct socket *find_socket(int fd) {
    return fd >= 0 && fd < DESCRIPTORS ? sockets[fd] : NULL;
}

static ssize_t take_in(struct socket *socket, void *bytes, size_t size) {
    size_t len = pipe_take(&socket->in, bytes, size);

    if (len > 0 || socket->ended)
        return (ssize_t)len;
    errno = EAGAIN;
    return -1;
}

static ssize_t put_out(struct socket *socket, const void *bytes, size_t len) {
    if (socket->ended) {
        errno = EPIPE;
        return -1;
    }
    pipe_put(&socket->out, bytes, len);
    return (ssize_t)len;
}

/* Each has a name of its own here, and the C library's for the linker. */
#define STANDS_FOR(name) __asm__(#name)

/* All that are the library's may be one to the kernel. */
int socket_socket(int domain, int type, int protocol) STANDS_FOR(socket);
int socket_socket(int domain, int type, int protocol) {
    static int one = -1;

    if (domain != AF_UNIX)
        return (int)syscall(SYS_socket, domain, type, protocol);
    if (one < 0)
        one = (int)syscall(SYS_socket, domain, type, protocol);
    return dup(one);
}

int socket_connect(int fd, const struct sockaddr *address, socklen_t len) STANDS_FOR(connect);
int socket_connect(int fd, const struct sockaddr *address, socklen_t len) {
    const char *path = ((const struct sockaddr_un *)address)->sun_path;

    if (address->sa_family != AF_UNIX || strncmp(path, SOCKETS_FOLDER, strlen(SOCKETS_FOLDER)) != 0)
        return (int)syscall(SYS_connect, fd, address, len);
    if (listening[path[strlen(path) - 1] - '0'])
        return 0;
    errno = ECONNREFUSED;
    return -1;
}

/* hiredis 0.14 calls read() and write(), later ones recv() and send(). */

ssize_t socket_read(int fd, void *bytes, size_t size) STANDS_FOR(read);
ssize_t socket_read(int fd, void *bytes, size_t size) {
    struct socket *socket = find_socket(fd);
    return socket ? take_in(socket, bytes, size) : syscall(SYS_read, fd, bytes, size);
}

ssize_t socket_recv(int fd, void *bytes, size_t size, int flags) STANDS_FOR(recv);
ssize_t socket_recv(int fd, void *bytes, size_t size, int flags) {
    struct socket *socket = find_socket(fd);
    return socket ? take_in(socket, bytes, size) : recvfrom(fd, bytes, size, flags, NULL, NULL);
}

ssize_t socket_write(int fd, const void *bytes, size_t len) STANDS_FOR(write);
ssize_t socket_write(int fd, const void *bytes, size_t len) {
    struct socket *socket = find_socket(fd);
    return socket ? put_out(socket, bytes, len) : syscall(SYS_write, fd, bytes, len);
}

ssize_t socket_send(int fd, const void *bytes, size_t len, int flags) STANDS_FOR(send);
ssize_t socket_send(int fd, const void *bytes, size_t len, int flags) {
    struct socket *socket = find_socket(fd);
    return socket ? put_out(socket, bytes, len) : sendto(fd, bytes, len, flags, NULL, 0);
}

/* --- The wire's end ----------------------------------------------------------------------------------------------- */

void socket_open(struct socket *socket, int fd) {
    *socket = (struct socket){.fd = fd};
    if (fd >= DESCRIPTORS)
        abort();
    sockets[fd] = socket;
}

void socket_close(struct socket *socket) {
    if (socket->fd >= 0)
        sockets[socket->fd] = NULL;
    socket->fd = -1;
}

void socket_end(struct socket *socket) {
    socket->ended = true;
    socket->out.start = socket->out.end;
}

void socket_free(struct socket *socket) {
    socket_close(socket);
    free(socket->in.bytes);
    free(socket->out.bytes);
}

void socket_put(struct socket *socket, const char *bytes, size_t len) {
    pipe_put(&socket->in, bytes, len);
}

size_t socket_take(struct socket *socket, char *bytes, size_t size) {
    return pipe_take(&socket->out, bytes, size);
}

bool socket_has_written(const struct socket *socket) {
    return pipe_size(&socket->out) > 0;
}

bool socket_readable(const struct socket *socket) {
    return socket->ended || pipe_size(&socket->in) > 0;
}
