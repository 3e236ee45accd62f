/*
 * Many locks of evlock: a client, and handles that are acquired and released all together, so many in flight at a time
 * that the server is busy and little memory is used. It owns the client and the handles. What fails ends the benchmark.
 */
#ifndef EVLOCK_BENCH_LOCKS_H
#define EVLOCK_BENCH_LOCKS_H

#include <evlock/evlock.h>
#include <evlock/libevent.h>

#include <event2/event.h>

#include "servers.h"

enum { WINDOW = 1000 }; /* in flight while all are acquired or released */

struct locks {
    struct event_base *base;
    evlock_client *client;
    evlock **at; /* of the keys 0, 1, 2 … */
    size_t count;
    size_t next; /* while all are acquired or released: the first that was not asked for */
    size_t left; /* and how many are not done */
};

/* Makes a client of the first `nodes` servers, waits until all are connected, and makes `count` handles. */
void locks_open(struct locks *locks, struct event_base *base, size_t nodes, size_t count,
                const evlock_options *options);
/* The same by a URL, without waiting: what is asked for waits itself. */
void locks_open_at(struct locks *locks, struct event_base *base, const char *url, size_t count,
                   const evlock_options *options);
/* Ends the client in good order, and frees the handles. */
void locks_close(struct locks *locks);

void locks_acquire_all(struct locks *locks);
/* The same, all asked for in one turn. */
void locks_acquire_at_once(struct locks *locks);
void locks_release_all(struct locks *locks);

/* Ends the benchmark unless all are held, and these servers, or the first, have every key, no others, and the tokens of
 * some. */
void locks_check_held_by(const struct locks *locks, struct keepers keepers);
void locks_check_held(const struct locks *locks);

/* Ends the benchmark unless it is EVLOCK_OK. */
void expect_ok(int status);

#endif
