/*
 * Commands as bytes. A form says, as data, which arguments a command has; a subject is what it is about; one function
 * writes the command from the two. This file owns nothing: a command is its caller's, and has copied what it was given.
 * It never decides which form is used (see dialect.h), and knows nothing of answers.
 */
#ifndef EVL_WIRE_H
#define EVL_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <evlock/evlock.h>

#include "bytes.h"
#include "scripts.h"

/* Enough for many renewals; any other command is shorter. */
#define COMMAND_SIZE 16384

/* Of renewals in one command: what all may take, and one. */
#define RENEWALS_SIZE (COMMAND_SIZE - 256)
#define RENEWAL_SIZE_MAX (512 + EVLOCK_TOKEN_MAX + 32)

/* Of what a queue has for a waiter. */
#define WAITER_SIZE 256

/* Of what tells a value of any length from others: a token, or the beginning of a longer value and its digest. */
#define MARK_SIZE (EVLOCK_TOKEN_MAX + 40)

/* --- What a command is about -------------------------------------------------------------------------------------- */

/* Who waits in a queue. Without a ticket: nobody. */
struct waiter {
    const char *channel;
    const char *ticket;
    int64_t ttl; /* in microseconds */
    bool fenced;
    unsigned master; /* of a cluster, at which the channel is heard: its number is behind that; 0: there is none */
};

/* One of the renewals that are sent as one command, all for the same ttl. */
struct renewal {
    struct bytes key;
    struct bytes token;
    int64_t ttl;
};

/* Each command needs some of it. Times are in microseconds. */
struct subject {
    struct bytes key;
    struct bytes token;
    int64_t ttl; /* 0, of what takes the lock: no expiry */
    int64_t fence;
    int64_t spare; /* fences that are asked for besides */
    bool alone;    /* the node is the only one */
    int64_t clock; /* the server's, of one that does not let scripts read it; else 0 */
    struct waiter waiter;
    struct bytes sought; /* a mark to break, a member of the queue to find, or where and what to list */
    int64_t replicas;
    int64_t timeout;
    const struct renewal *renewals;
    unsigned count; /* of renewals */
};

/* --- What a command looks like ------------------------------------------------------------------------------------ */

/* One argument of a command. Those that stand for more, or for fewer, say so. */
enum argument {
    ARG_END, /* none, and there are no more */
    /* The same in each command: verbs, and other words. */
    ARG_DELEX,
    ARG_DELIFEQ,
    ARG_GET,
    ARG_IFEQ,
    ARG_NX,
    ARG_PTTL,
    ARG_SET,
    ARG_WAIT,
    ARG_ZCARD,
    ARG_ZRANK,
    ARG_WORDS, /* none; so many are words */
    /* Keys. */
    ARG_LOCK = ARG_WORDS,
    ARG_QUEUE,
    ARG_COUNTER,
    ARG_LOCKS, /* the key of each renewal */
    /* The rest. */
    ARG_TOKEN,
    ARG_TOKENS, /* the token of each renewal */
    ARG_TTL,    /* times are in milliseconds, rounded up */
    ARG_PX_TTL, /* PX and the ttl; without a ttl, nothing */
    ARG_FENCE,
    ARG_FENCE_TTL, /* that of the fence counter */
    ARG_GRAIN,     /* what the clock is rounded to for a fence */
    ARG_SPARE,     /* if any are asked for: else nothing, or 0 ahead of a clock */
    ARG_WAITER,    /* as grant.lua takes it apart; without a ticket, nothing, or an empty one ahead of a clock */
    ARG_CLOCK,     /* if there is one: else nothing */
    ARG_SOUGHT,
    ARG_REPLICAS,
    ARG_TIMEOUT,
};

#define FORM_ARGUMENTS 8
#define FORM_KEY_EACH UINT8_MAX /* in place of a number of keys: one for each renewal */

struct form {
    const struct script *script;       /* NULL: a plain command, whose first argument is its verb */
    uint8_t keys;                      /* so many of the script's arguments are said to be keys */
    uint8_t arguments[FORM_ARGUMENTS]; /* enum argument, to the first ARG_END */
};

/* Whether commands of this form have the argument. */
static inline bool evl_form_has(const struct form *form, enum argument which) {
    return memchr(form->arguments, which, sizeof(form->arguments));
}

/* A command as it is sent. Its head, which counts the arguments, is written in front of them when all are there. */
struct command {
    unsigned count;
    char *end;
    const struct script *script; /* that it calls, or NULL */
    char text[COMMAND_SIZE];
};

/* Writes a command of this form about this subject. */
void evl_command_write(struct command *command, const struct form *form, const struct subject *subject);

/* The whole command, once it has been written. */
struct bytes evl_command_text(struct command *command);

/* The same for a server that has not got the script: with its text in place of its digest, in a block for evl_free();
 * NULL: no memory. Only of a command that calls a script. */
char *evl_command_spelled(const struct command *command, size_t *ret_len);

/* Whether a key is evlock's own: the fence counter of some lock, or the mark of a server's history. */
bool evl_wire_is_own(struct bytes key);

/* What one renewal takes in a command, at most. */
size_t evl_renewal_size(const struct renewal *renewal);

/* What the queue has for a waiter, into `to`; its length. */
size_t evl_wire_waiter(char to[WAITER_SIZE], struct bytes token, const struct waiter *waiter);

#endif
