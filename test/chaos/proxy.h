/*
 * The proxy between the contending processes and the servers: a process of its own, with a wire to each server. What a
 * wire does to what passes is said in memory that is shared with it, and can be changed at any time. It never reads
 * what it moves.
 */
#ifndef EVLOCK_TEST_CHAOS_PROXY_H
#define EVLOCK_TEST_CHAOS_PROXY_H

#include <stdatomic.h>
#include <sys/types.h>

#include "mode.h"

/* Ways of a stall; both may be. */
enum {
    TO_SERVER = 1,
    TO_CLIENT = 2,
};

struct wire {
    int port;     /* of 127.0.0.1, for clients */
    int listener; /* the proxy's own */

    atomic_int server;        /* the server's port */
    atomic_int delay_ms;      /* what is read is passed on so much later, at most */
    atomic_int split;         /* it is passed on byte by byte, as far as that can be borne */
    atomic_int refuse;        /* connections are ended as soon as they are made */
    atomic_int stall_percent; /* on so many connections nothing moves, while both ends seem open */
    atomic_int stall_ways;
    atomic_int cut_percent;
    atomic_uint cuts_wanted; /* to be counted up: so many of the connections that there are, are reset */
    atomic_uint cuts_done;   /* what the proxy has seen of that */
};

struct proxy {
    pid_t pid;
    int wires_len;
    struct wire wires[SERVERS_MAX];
};

/* In shared memory; listens, and starts the process. NULL when it cannot. */
struct proxy *proxy_start(int wires, unsigned seed);
void proxy_stop(struct proxy *proxy);

/* Resets so many of the wire's connections, and waits until that is done. */
void proxy_cut(struct wire *wire, int percent);

#endif
