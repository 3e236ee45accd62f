/*
 * The transport: how bytes get from a hiredis context into the socket and out of it; as they are, or over TLS. A
 * connection has one. hiredis connects, parses and calls back; it never writes: what is queued in its context is sent
 * here, without a signal if nobody reads, and wiped. It knows no connection.
 */
#ifndef EVL_TRANSPORT_H
#define EVL_TRANSPORT_H

#include <stdbool.h>

#include "status.h"
#include "tls.h"

struct redisAsyncContext;

struct transport {
    struct tls *tls;       /* the client's; NULL: bytes go as they are */
    struct tls_peer *peer; /* with `tls`: the server, once it was connected to */
    bool connected;        /* the socket is */
    bool open;             /* bytes go both ways */
    bool full;             /* the socket did not take all that was written */
    size_t owed;           /* bytes that TLS answered by itself since the socket last took all */
};

/* The next context's socket is not connected yet, and nothing is queued. EVLOCK_OK, or as evl_tls_begin(), whose words
 * may be put together in `words`. */
struct trouble evl_transport_begin(struct transport *transport, const char *host, int port, struct words *words);

/* The context's end is near, or it has none any more. */
void evl_transport_end(struct transport *transport);

/* Gives back what was kept for the next context. */
void evl_transport_free(struct transport *transport);

/* The socket is ready for something, for the first time or again: goes on until the transport is open. hiredis may have
 * freed the context by then, if there is no connection: `*context` is NULL, by its handlers. The trouble is the
 * server's, or the socket's. */
struct trouble evl_transport_open(struct transport *transport, struct redisAsyncContext *const *context);

/* Reads what has come, and has hiredis hand on the replies. hiredis may have freed the context by then; the trouble, if
 * it has not, is what came after them. */
struct trouble evl_transport_read(struct transport *transport, struct redisAsyncContext *context);

/* Writes what is queued, or as much as the socket takes. The trouble is the socket's. */
struct trouble evl_transport_write(struct transport *transport, struct redisAsyncContext *context);

/* The context is about to go: what is queued will not be written, and is wiped. */
void evl_transport_wipe(const struct redisAsyncContext *context);

/* Whether the server has spoken already: its byte is left to be read. `*ret_errno` is set to why the socket failed, if
 * it has; this takes that off the socket, where hiredis would have found it. */
bool evl_transport_spoke(const struct redisAsyncContext *context, int *ret_errno);

/* Reads and forgets what has come: what lies unread in a socket that is closed makes the kernel end the connection at
 * once, with what was written. */
void evl_transport_drain(const struct redisAsyncContext *context);

#endif
