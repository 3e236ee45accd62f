/*
 * What a lock says on the wire: one table for each kind of lock and each way to take it, with a row for each of its
 * commands. A row names the command and its arguments, and reads the answers to it. A new kind of lock, or a server's
 * own command in the place of a script, is a new row. The tables are constant: nothing here keeps anything, sends
 * anything or decides when.
 */
#ifndef EVL_DIALECT_H
#define EVL_DIALECT_H

#include "kind.h"
#include "lease.h"
#include "reply.h"
#include "wire.h"

/* What an answer says to a lease. */
struct reading {
    struct lease_answer answer;
    const char *words; /* with a status: why; valid for as long as the reply. Else NULL */
    bool no_clock;     /* it was done without the server's clock, which a script could not read */
};

/* A command of a lease. */
struct command_row {
    struct form form;
    /* Reads a reply that is no error; `ttl` is the lease's. False: the command cannot have it. */
    bool (*read)(const struct reply *reply, int64_t ttl, struct reading *ret);
};

/* What is asked about a lock, whoever holds it. */
enum ask {
    ASK_TOKEN,
    ASK_TYPE, /* whether it is of the type that such locks are */
    ASK_TTL,
    ASK_WAITERS,
    ASK_PLACE,
    ASK_STATE,    /* all but the queue, as it was at one moment */
    ASK_WHOLE,    /* the queue too */
    ASK_MARK,     /* of what holds it: the first step of a break */
    ASK_BREAK,    /* the second: to end what has this mark */
    ASK_RENEWAL,  /* on a connection for replicas: the write for which these are asked */
    ASK_REPLICAS, /* how many have it */
    ASK_LIST,     /* which locks there are, whatever this one is */
    ASKS,
};

/* What such a question finds; zero where it does not ask. */
struct found {
    bool there;     /* what it asks for, or, if it asks for several things, the lock */
    int64_t number; /* of what has no name here */
    int64_t ttl;    /* in milliseconds, 1 or more; INT64_MAX: no expiry */
    int64_t waiters;
    int64_t place; /* 1: the first; 0: none */
    struct bytes text;
    bool no_clock; /* as in a reading */
};

struct ask_row {
    struct form form;
    /* Reads a reply that is no error. False: the command cannot have it. */
    bool (*read)(const struct reply *reply, struct found *ret);
};

struct dialect {
    const struct command_row *commands[LEASE_RELEASE + 1]; /* by enum lease_command */
    const struct ask_row *asks[ASKS];
};

/* The dialect of a lease that is taken so, of a lock of this kind, which can be. What is asked about a lock is the same
 * however its leases are taken. */
const struct dialect *evl_dialect(enum lock_kind kind, enum taking taking);

/* The renewals of many locks as one command: of those whose dialect renews plainly, as all do. */
extern const struct form evl_renewals;

/* The same where their keys may be in many slots, all of the server that is asked. */
extern const struct form evl_renewals_scattered;

/* Whether its renewal is the one that `evl_renewals` has for many. */
bool evl_dialect_renews_plainly(const struct dialect *dialect);

/* Whether what gives it back is the plain one, which hands it on to nobody. */
bool evl_dialect_releases_plainly(const struct dialect *dialect);

/* What the reply to a lease's command says to the lease, errors too; false: it is none that the command can have. `ttl`
 * is the lease's. */
bool evl_dialect_read(const struct dialect *dialect, enum lease_command command, const struct reply *reply, int64_t ttl,
                      struct reading *ret);

/* What the reply to a question finds, if it is no error; false: it is none that the question can have. */
bool evl_dialect_find(const struct dialect *dialect, enum ask ask, const struct reply *reply, struct found *ret);

#endif
