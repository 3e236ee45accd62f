/*
 * The reply guard: stands between hiredis and what a server says. hiredis aborts on a reply that nobody waits for,
 * reads past the end of a push of another shape than it expects, and follows nesting and announced lengths as far as
 * they go. The guard makes hiredis end the connection instead, before such a reply exists. Short replies are made in
 * its own memory: hiredis has one reply at a time. It knows nothing of nodes, never reads a socket, and costs less than
 * it saves.
 */
#ifndef EVL_REPLY_GUARD_H
#define EVL_REPLY_GUARD_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>

/* Bytes for a reply, with the text of most statuses. */
#define SHORT_REPLY_SIZE 128

struct redisAsyncContext;
struct redisReplyObjectFunctions;

struct reply_guard {
    struct redisAsyncContext *connection;
    const struct redisReplyObjectFunctions *plain; /* hiredis's own, which make what is let through */
    const char *channel;                           /* what the connection listens to; NULL: to nothing */
    size_t channel_len;
    size_t elements;     /* an array has so many at most */
    bool push;           /* the reply that is being read was not asked for: a message, or a confirmation */
    bool message;        /* it is a message */
    const char *refused; /* why the connection is ended, or NULL */
    alignas(max_align_t) char made[SHORT_REPLY_SIZE]; /* the short reply that is being handed on */
};

/* Shields a connection from its first reply on; `guard` must stay for as long as the connection. */
void evl_reply_guard_raise(struct reply_guard *guard, struct redisAsyncContext *connection);

/* Lets through longer arrays than answers about locks are, up to this. */
void evl_reply_guard_allow(struct reply_guard *guard, size_t elements);

/* Lets through, beside answers, that the server subscribes the connection to `channel` and what is published there; to
 * be called before SUBSCRIBE is queued. `channel` must stay. Nothing that expects an answer may be sent after that:
 * hiredis 0.14 would take a message for it. */
void evl_reply_guard_listen(struct reply_guard *guard, const char *channel, size_t len);

/* Whether more has come, to be called after a read that left the connection alive, than any reply is long. */
bool evl_reply_guard_overrun(struct reply_guard *guard);

#endif
