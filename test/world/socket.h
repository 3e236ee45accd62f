/*
 * Sockets in memory: what the library and hiredis meet in place of the kernel's. Here are the C library's socket(),
 * connect(), read(), write() and what else is called on a socket; a call on any other descriptor goes on to the kernel.
 * It owns the descriptors, which are numbers that no file has, and the bytes in both directions. What lies at the other
 * end, and when its bytes move, the owner of that end decides. It makes no real socket, and knows nothing of time.
 */
#ifndef EVLOCK_WORLD_SOCKET_H
#define EVLOCK_WORLD_SOCKET_H

#include <stdbool.h>
#include <stddef.h>

/* Behind this a path has the number of a place: one digit. There are no other paths. Of a port it is the last digit,
 * at any address of IPv4. */
#define SOCKETS_FOLDER "/in-memory/"
enum { SOCKET_PLACES = 10 };

/* Somebody takes connections to that place, or does not any more. */
void sockets_listen(unsigned place, bool listens);
/* The next connection to it is refused. */
void sockets_refuse_next(unsigned place);
/* This is a forked child: all that are open are its parent's, and it may close them. Whether it did anything else. */
void sockets_forked(void);
bool sockets_used(void);
/* How many there are that are not closed at both ends. */
unsigned sockets_count(void);

/* A connection, as its other end sees it: there until both ends are closed. */
struct socket;

/* The library's descriptor, which must be open. */
struct socket *socket_of(int fd);
/* One that is connected to this place and was not given out here before; NULL: there is none. */
struct socket *socket_accept(unsigned place);
/* To which it is connected. */
unsigned socket_place(const struct socket *socket);

/* What the library will read; nothing, once either end is closed. */
void socket_put(struct socket *socket, const void *bytes, size_t len);
/* Takes what the library has written; how many bytes that were, at most `size`. */
size_t socket_take(struct socket *socket, void *bytes, size_t size);
bool socket_has_written(const struct socket *socket);
/* Whether a read of the library would not have to wait. */
bool socket_readable(const struct socket *socket);
/* The library has closed its end; what it had written may still be taken. */
bool socket_is_left(const struct socket *socket);
/* Closes this end: what was put may still be read, and what was written is gone. */
void socket_end(struct socket *socket);

#endif
