/*
 * The floor over TLS: the floor's commands over one connection of OpenSSL's own, since the floor's hiredis may have no
 * TLS. It reads a record, answers each reply in it, and writes what that led to at once, in as few records and system
 * calls as can be. It owns the connection and the leases. What fails ends the benchmark.
 */
#ifndef EVLOCK_BENCH_TLS_FLOOR_H
#define EVLOCK_BENCH_TLS_FLOOR_H

#include <event2/event.h>

#include "servers.h"

struct tls_floor;

/* Connects and logs in, for `level` pairs in flight. */
struct tls_floor *tls_floor_open(struct event_base *base, struct server *server, size_t level);
void tls_floor_close(struct tls_floor *floor);

/* Runs so many pairs. */
void tls_floor_run(void *floor, long pairs);

#endif
