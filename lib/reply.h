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

/* What an error says, as far as anything here makes a difference. Its text is read once, when it comes in. */
enum reply_error {
    ERROR_NONE, /* the reply is no error */
    ERROR_NOSCRIPT,
    ERROR_NOCLOCK,    /* by our own scripts: they may not read the server's clock; the server's words follow */
    ERROR_FENCE,      /* by our own scripts: a counter that is no number, or beyond reason */
    ERROR_FOR_NOW,    /* it did not run, and will at another time */
    ERROR_OOM,        /* the same, for want of memory */
    ERROR_TRYAGAIN,   /* the same: some of the keys have been moved, and some not yet */
    ERROR_DOWN,       /* the same: the cluster is */
    ERROR_NOT_LOCAL,  /* the same, of a key that a script asks for: its slot is on its way */
    ERROR_REPLICA,    /* the server is one: a new connection may find the new master */
    ERROR_CROWDED,    /* it has no room for one more connection */
    ERROR_OVER_LIMIT, /* by services that count what is asked for */
    ERROR_MOVED,      /* the key is elsewhere, for this once or from now on */
    ERROR_CROSS_SLOT, /* its keys are not all in one slot */
    ERROR_SLOTS,      /* the same, of what a script asks for */
    ERROR_LOGIN,      /* who asks is not known */
    ERROR_PROTECTED,  /* by a server that is protected from strangers: what it says then is why, and what to do */
    ERROR_NO_EVALSHA, /* there is no right to call scripts by their digests, */
    ERROR_NO_EVAL,    /* nor to send them whole, */
    ERROR_NO_RIGHT,   /* or to something else */
    ERROR_TYPE,       /* the key is none of a lock */
    ERROR_LACKING,    /* the server has not got it */
    ERROR_ARGUMENTS,  /* there are too few of them, or too many */
    ERROR_NO_MASTER,  /* by a Sentinel: it knows none of that name */
    ERROR_SENSELESS,  /* it makes no sense to the server */
    ERROR_STRANGE,    /* an error code of a later server: it did not run, and may at another time */
    ERROR_NO_CLOCK,   /* from no server: its clock is nowhere to be had */
    ERROR_ELSEWHERE,  /* from no server: to be sent again, to where it is wanted then */
    ERROR_HALFWAY,    /* from no server: the same, after a pause, while the keys are being moved */
    ERRORS,
};

struct reply {
    enum reply_type type;
    enum reply_error error;
    union {
        int64_t integer;
        const char *const *words; /* of WORDS */
    };
    const char *text; /* of OK, STRING, ERROR, LOST */
    size_t len;
};

/* What an error means: as the table in docs/protocol.md has it. */
struct reply_meaning {
    enum lease_verdict verdict;
    int status;
    bool reconnect; /* this connection will not do better */
};

/* What a server says by this text. */
enum reply_error evl_reply_error(const char *text);

/* The reply by which a server says this. */
struct reply evl_reply_of(const char *text);

/* A reply that stands in the place of a server's: an error of this sense, in these words. */
struct reply evl_reply_instead(enum reply_error error, const char *words);

/* Of an error. */
struct reply_meaning evl_reply_meaning(enum reply_error error);

/* A server that does not know a command quotes what it was sent with it: a token, or a password. Cuts that off. */
void evl_reply_drop_quotes(char *error);

/* Whether the server says that it is not able to now, rather than something that is not known here. */
bool evl_reply_passes(enum reply_error error);

/* Whether it may be refused because its keys are not all in one place. */
bool evl_reply_is_scattered(enum reply_error error);

/* Whether its command is to be sent again, to where the cluster has its keys. */
static inline bool evl_reply_sends_on(const struct reply *reply) {
    return reply->error == ERROR_ELSEWHERE || reply->error == ERROR_HALFWAY;
}

/* Whether the server has not got what was asked for, or has it not for this user. */
static inline bool evl_reply_is_lacking(struct reply_meaning meaning) {
    return meaning.status == EVLOCK_EUNSUPPORTED || meaning.status == EVLOCK_EPERM;
}

#endif
