/*
 * The transport: how bytes get from a hiredis context into the socket and out of it; today as they are. What sits
 * between the two, like TLS, belongs here. It owns nothing, knows no connection, and changes nothing for the process:
 * SIGPIPE is held back from this thread while it writes.
 */
#ifndef EVL_TRANSPORT_H
#define EVL_TRANSPORT_H

#include <stdbool.h>

struct redisAsyncContext;

/* Reads what has come, and has hiredis hand on the replies. hiredis may have freed the context by then. */
void evl_transport_read(struct redisAsyncContext *context);

/* Writes what is queued; whether the socket did not take all. hiredis may free the context meanwhile: `*context` is
 * then NULL, by its handlers. */
bool evl_transport_write(struct redisAsyncContext *const *context);

/* Whether the server has spoken already: its byte is left to be read. `*ret_errno` is set to why the socket failed, if
 * it has; this takes that off the socket, where hiredis would have found it. */
bool evl_transport_spoke(const struct redisAsyncContext *context, int *ret_errno);

/* Reads and forgets what has come: what lies unread in a socket that is closed makes the kernel end the connection at
 * once, with what was written. */
void evl_transport_drain(const struct redisAsyncContext *context);

#endif
