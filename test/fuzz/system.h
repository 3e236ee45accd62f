/*
 * The system that hiredis and evlock meet in a fuzz target: unix sockets in memory, and tokens that are the same in
 * each run of an input. It takes the place of the C library's functions, which the real hiredis goes on calling, and
 * owns what lies in the sockets. It never makes a real socket, and leaves all other descriptors to the kernel.
 */
#ifndef EVLOCK_FUZZ_SYSTEM_H
#define EVLOCK_FUZZ_SYSTEM_H

#include <stdbool.h>

/* What a path begins with behind which there may be a server; its number follows, as one digit. */
#define SYSTEM_PATH "/fuzz/"

/* Forgets all sockets; as many servers as that listen from now on. */
void system_begin(unsigned servers);
/* The server's end of the next connection that it has not taken, or -1. */
int system_accept(unsigned server);
/* Its next connection is refused. */
void system_refuse(unsigned server);
/* Whether there is anything to read, if only the end. */
bool system_readable(int fd);
/* Checks that every end has been closed. */
void system_end(void);

#endif
