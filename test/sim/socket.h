/*
 * The process's end of a connection: a descriptor that hiredis has made, but whose bytes go through memory, since
 * system calls were most of what a schedule cost. socket(), connect(), read() and write() are met here before they are
 * in the C library; those on anything else go on to the kernel. Knows nothing of wires and of time.
 */
#ifndef EVLOCK_SIM_SOCKET_H
#define EVLOCK_SIM_SOCKET_H

#include <stdbool.h>
#include <stddef.h>

/* Sockets whose paths begin so are none of the kernel's. */
#define SOCKETS_FOLDER "/evlock-simulated/"

/* Somebody takes connections to this path, the last byte of which is a digit; or does not. */
void sockets_listen(const char *path, bool listens);

/* Bytes that were put in and not yet taken out. */
struct pipe {
    char *bytes;
    size_t start, end, room;
};

struct socket {
    int fd;              /* the library's; -1: closed by it */
    bool ended;          /* the other end is closed */
    struct pipe in, out; /* to the library, and from it */
};

void socket_open(struct socket *socket, int fd);
/* The library closes its end. */
void socket_close(struct socket *socket);
/* The other end is closed: what it has written may still be read, and what was written to it is gone. */
void socket_end(struct socket *socket);
void socket_free(struct socket *socket);

/* What the library will read. */
void socket_put(struct socket *socket, const char *bytes, size_t len);
/* Takes what it has written; how many bytes that were, at most `size`. */
size_t socket_take(struct socket *socket, char *bytes, size_t size);
bool socket_has_written(const struct socket *socket);
/* Whether a read would not have to wait. */
bool socket_readable(const struct socket *socket);

#endif
