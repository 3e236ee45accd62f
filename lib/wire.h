/*
 * How commands look on the wire, and what their replies say: the pairs of a lease's commands with SET and the scripts.
 * It owns nothing; a command points at bytes of its caller's and is used up before the caller returns.
 */
#ifndef EVL_WIRE_H
#define EVL_WIRE_H

#include "reply.h"

#define COMMAND_ARGS 10
#define WAITER_SIZE 256

struct script {
    const char *name;
    const char *text;
    const char *sha;
};

extern const struct script evl_scripts[];
extern const unsigned evl_script_count;

struct command {
    int argc;
    const char *argv[COMMAND_ARGS];
    size_t len[COMMAND_ARGS];
    const struct script *script; /* what EVALSHA names, or NULL */
    char numbers[2][24];         /* room for arguments */
    char fence_key[544];         /* room for what is made of the lock's key */
    char queue_key[544];
    char waiter[WAITER_SIZE];
};

struct bytes {
    const void *data;
    size_t len;
};

/* A command of string literals: the words, separated by blanks in docs, given one by one. Ends with NULL. */
void evl_command_words(struct command *command, ...) __attribute__((sentinel));

/* `verb key`, for the queries. */
void evl_command_key(struct command *command, const char *verb, struct bytes key);

/* `verb queue [member]`, for queries of the queue beside a lock. */
void evl_command_queue(struct command *command, const char *verb, struct bytes key, struct bytes member);

/* A lease's command. `ttl` in microseconds where the command has one (0 for an ACQUIRE: no expiry). */
void evl_command_lease(struct command *command, enum lease_command kind, struct bytes key, struct bytes token,
                       int64_t ttl);

/* An ACQUIRE that draws a fence, on the `only` node or on one of several, and the RAISE of a node's counter to one. */
void evl_command_fenced(struct command *command, struct bytes key, struct bytes token, int64_t ttl, bool only);
void evl_command_raise(struct command *command, struct bytes key, int64_t fence);

/* Who waits in a queue. Without a ticket: nobody. */
struct waiter {
    const char *channel;
    const char *ticket;
    int64_t ttl; /* in microseconds */
    bool fenced;
};

/* What the queue has for a waiter, into `to`; its length. */
size_t evl_waiter_write(char to[WAITER_SIZE], struct bytes token, const struct waiter *waiter);

/* An ACQUIRE that joins the queue, and a RELEASE that hands on to it, or leaves it. */
void evl_command_join(struct command *command, struct bytes key, struct bytes token, const struct waiter *waiter);
void evl_command_hand(struct command *command, struct bytes key, struct bytes token, const struct waiter *waiter);

/* `WAIT replicas timeout`, the timeout in microseconds. */
void evl_command_wait(struct command *command, int64_t replicas, int64_t timeout);

/* What the reply to a lease's command says to the lease; false: it is none that the command can have. Error texts go to
 * evlock_last_error(). */
bool evl_command_answer(enum lease_command kind, const struct lease *lease, const struct reply *reply,
                        struct lease_answer *ret_answer);

#endif
