/*
 * What a server's answer is and what its errors mean. A reply is valid while its handler runs. Nothing here knows of
 * hiredis or of leases' states.
 */
#ifndef EVL_REPLY_H
#define EVL_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <evlock/evlock.h>

#include "lease.h"

enum reply_type {
    REPLY_LOST, /* the connection ended first: whether the command ran is not known; text says why */
    REPLY_OK,
    REPLY_NIL,
    REPLY_INTEGER,
    REPLY_STRING,
    REPLY_ERROR,
    REPLY_TIME,  /* what TIME says, as microseconds in `integer` */
    REPLY_WORDS, /* `len` texts, in `words` */
    REPLY_OTHER,
    /* To a member of a batch, and from no server: renewed for as long as was asked; to be sent again. */
    REPLY_RENEWED,
    REPLY_AGAIN,
};

/* So many words has the longest answer that evlock asks for. */
#define REPLY_WORDS_MAX 96

struct reply {
    enum reply_type type;
    union {
        int64_t integer;
        const char *const *words; /* of WORDS */
    };
    const char *text; /* of OK, STRING, ERROR, LOST */
    size_t len;
};

/* What an error reply means: a row of the table in docs/protocol.md. */
struct reply_meaning {
    enum lease_verdict verdict;
    int status;
    bool reconnect; /* this connection will not do better */
};

/* What an error reply with this text means. */
struct reply_meaning evl_reply_meaning(const char *error);

/* A server that does not know a command quotes what it was sent with it: a token, or a password. Cuts that off. */
void evl_reply_drop_quotes(char *error);

/* Whether the server says that it is not able to now, rather than something that is not known here. */
bool evl_reply_passes(const char *error);

/* Whether it may be refused because its keys are not all in one place. */
bool evl_reply_is_scattered(const char *error);

/* In place of an error, and from no server: what was asked for is to be sent again, to where it is then. It is known by
 * its address. */
extern const char evl_reply_elsewhere[];

/* The same, after a pause: some of the keys have been moved, and some not yet. */
extern const char evl_reply_halfway[];

/* Whether it is one of these two. */
static inline bool evl_reply_sends_on(const struct reply *reply) {
    return reply->text == evl_reply_elsewhere || reply->text == evl_reply_halfway;
}

/* In place of an error, and from no server: the server's clock is nowhere to be had. It is known by its address. */
extern const char evl_reply_no_clock[];

/* Whether the server has not got what was asked for, or has it not for this user. */
static inline bool evl_reply_is_lacking(struct reply_meaning meaning) {
    return meaning.status == EVLOCK_EUNSUPPORTED || meaning.status == EVLOCK_EPERM;
}

#endif
