/*
 * The raw floor: the least that any client of hiredis and libevent could do. The cheapest correct commands, written out
 * without formatting; no handles, no deadlines, no retries. It owns nothing: connections and leases are the callers'.
 */
#ifndef EVLOCK_BENCH_FLOOR_H
#define EVLOCK_BENCH_FLOOR_H

#include "servers.h"

#include <event2/event.h>
#include <hiredis/async.h>

enum {
    KEY_LEN = 9, /* short names, all of one length */
    TOKEN_LEN = 36,
    COMMAND_MAX = 192,
};

/* Writes the key of lock `number`, with a zero. */
void key_write(char key[KEY_LEN + 1], size_t number);

struct lease {
    char key[KEY_LEN + 1];
    char token[TOKEN_LEN + 1];
};

/* Gives the server the scripts, and connects; the connection is freed by redisAsyncFree(). */
void floor_load(struct server *server);
redisAsyncContext *floor_connect(struct event_base *base, struct server *server);

/* Draws a token by libuuid. */
void floor_draw(struct lease *lease);

/* Write a command, of COMMAND_MAX bytes at most, and return its end. */
char *floor_put_acquire(char *to, const struct lease *lease);
char *floor_put_release(char *to, const struct lease *lease);

/* Queues SET NX PX; compare and delete; compare and PEXPIRE; PING. */
void floor_acquire(redisAsyncContext *connection, const struct lease *lease, redisCallbackFn *cb, void *arg);
void floor_release(redisAsyncContext *connection, const struct lease *lease, redisCallbackFn *cb, void *arg);
void floor_renew(redisAsyncContext *connection, const struct lease *lease, redisCallbackFn *cb, void *arg);
void floor_ping(redisAsyncContext *connection, redisCallbackFn *cb, void *arg);

/* End the benchmark unless the reply is the one that success has. */
void floor_expect_ok(const void *reply);
void floor_expect_one(const void *reply);

#endif
