/*
 * How commands look on the wire, and what their replies say: the pairs of a lease's commands with SET and the scripts.
 * It owns nothing; a command is its caller's, and has copied what it was given.
 */
#ifndef EVL_WIRE_H
#define EVL_WIRE_H

#include <string.h>

#include "reply.h"

/* The longest token, in bytes. */
#define TOKEN_MAX 128

/* Enough for many renewals; any other command is shorter. */
#define COMMAND_SIZE 16384

/* Of renewals in one command: what all may take, and one. */
#define RENEWALS_SIZE (COMMAND_SIZE - 256)
#define RENEWAL_SIZE_MAX (512 + TOKEN_MAX + 32)

/* Of what a queue has for a waiter. */
#define WAITER_SIZE 256

/* Of what tells a value of any length from others: a token, or the beginning of a longer value and its digest. */
#define MARK_SIZE (TOKEN_MAX + 40)

struct script {
    const char *name;
    const char *text;
    const char *sha;
};

extern const struct script evl_scripts[];
extern const unsigned evl_script_count;

struct bytes {
    const void *data;
    size_t len;
};

static inline bool same_bytes(struct bytes a, struct bytes b) {
    return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

/* A command as it is sent. Its head, which counts the arguments, is written in front of them when all are there. */
struct command {
    unsigned count;
    char *end;
    const struct script *script; /* that it calls, or NULL */
    char text[COMMAND_SIZE];
};

/* The whole command, once it has been filled in. */
struct bytes evl_command_text(struct command *command);

/* The same for a server that has not got the script: with its text in place of its digest, in a block for evl_free();
 * NULL: no memory. Only of a command that calls a script. */
char *evl_command_spelled(const struct command *command, size_t *ret_len);

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

/* Renewals of many locks for the same ttl, in microseconds. */
struct renewal {
    struct bytes key;
    struct bytes token;
    int64_t ttl;
};

void evl_command_renewals(struct command *command, const struct renewal *renewals, unsigned count);

/* What one of them takes, at most. */
size_t evl_renewal_size(const struct renewal *renewal);

/* Who waits in a queue. Without a ticket: nobody. */
struct waiter {
    const char *channel;
    const char *ticket;
    int64_t ttl; /* in microseconds */
    bool fenced;
};

/* What the queue has for a waiter, into `to`; its length. */
size_t evl_waiter_write(char to[WAITER_SIZE], struct bytes token, const struct waiter *waiter);

/* Whether there can be other keys in a key's cluster slot: it has a hash tag, or can be one. */
bool evl_key_has_company(struct bytes key);

/* An ACQUIRE that joins the queue, and a RELEASE that hands on to it, or leaves it. */
void evl_command_join(struct command *command, struct bytes key, struct bytes token, const struct waiter *waiter);
void evl_command_hand(struct command *command, struct bytes key, struct bytes token, const struct waiter *waiter);

/* The two steps of a break: what holds the lock, whatever that is, by a mark of MARK_SIZE bytes at most; and the end of
 * what has this mark, which hands the lock on to a queue if it has one. */
void evl_command_look(struct command *command, struct bytes key);
void evl_command_break(struct command *command, struct bytes key, struct bytes mark, bool queue);

/* `WAIT replicas timeout`, the timeout in microseconds. */
void evl_command_wait(struct command *command, int64_t replicas, int64_t timeout);

/* What the reply to a lease's command says to the lease; false: it is none that the command can have. Error texts go to
 * evlock_last_error(). */
bool evl_command_answer(enum lease_command kind, const struct lease *lease, const struct reply *reply,
                        struct lease_answer *ret_answer);

#endif
