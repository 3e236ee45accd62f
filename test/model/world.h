/*
 * A world around the lease core, whole in one struct that is copied like a number: a few clients want one name on one
 * node or several, over connections that break and come back; clocks go at their extreme rates. It has a list of what
 * may happen next, lets one of it happen, and watches the promises. It draws nothing at random: who explores it, or
 * walks through it, chooses.
 */
#ifndef MODEL_WORLD_H
#define MODEL_WORLD_H

#include "server.h"

/* The quantum in which a world begins, at which the nodes' clocks differ by a second: fences want that they agree
 * within max_ttl, less a second. */
enum { LONG_AGO = 500000 };

/* Kinds of faults. */
enum {
    CUTS = 1,
    REFUSALS = 2,
    RESTARTS = 4,
    WIPES = 8,
    STALLS = 16,
    DEAFNESS = 32,
    LOSSES = 64,
    LAPSES = 128,
    ALL_KINDS = 255,
    FORGETFUL_COUNTERS = 256, /* the only node loses its counter */
    BREAKS = 512              /* somebody else removes the lock, or makes it live longer */
};

/* What a world lacks of what the promises rest on. */
enum flaw { NO_FLAW, NO_EXCLUSION, NO_RAISING };

/* How a lock is used. */
struct manner {
    struct lease_terms terms, heirs; /* alike; the others are those of whom it is passed on to */
    uint8_t spare;                   /* of what draws a fence: numbers that it asks for besides */
    bool fenced, own;
};

/* What a world may do at most, and how its locks are used. */
struct scope {
    const char *name;
    const char *about;
    unsigned nodes;
    unsigned attempts; /* ATTEMPTS of one client at most */
    unsigned extends;
    unsigned faults; /* connections that break, refusals, restarts, stalls */
    unsigned passes; /* of time */
    unsigned relays; /* leases, and attempts, that go on with another user of their client, who waits */
    unsigned clocks; /* which assignments of rates, by bit: see world_begin() */
    unsigned kinds;  /* of faults, by bit */
    bool renews;
    bool native;   /* what renews sets the ttl, where the lease lets it */
    bool unkilled; /* what was lost with a connection may run after the next one stands */
    bool own;      /* a client uses one token of its own in all attempts */
    bool handover; /* leases are exported and adopted */
    bool queues;   /* attempts may wait in the queue; of one node */
    bool lazy;     /* a command goes out by a move of its own, not as soon as it may */
    enum flaw flaw;
    int64_t counted;              /* fences begin after it, on the second node one later; 0: with the clock */
    int64_t stride;               /* in quanta: time does not pass by more at once; 0: as where all is explored */
    const struct manner *manners; /* from which an attempt has one, all with one max_ttl; NULL: there is one */
};

enum happening {
    BEGIN,
    JOIN, /* an attempt that waits in the queue begins */
    LOOK,
    ADOPT,
    CANCEL, /* also: the handle is freed */
    RELEASE,
    EXPORT,
    SHOW,          /* its user is told the token */
    RELAY,         /* a lease is passed on to another user, */
    TELL,          /* who is told that later */
    RELAY_ATTEMPT, /* an attempt is continued for another */
    REPLACE_LONGER,
    REPLACE_SHORTER,
    ADD,
    SEND,  /* a client's commands for a node go out */
    SERVE, /* the server runs the oldest command of a connection */
    SAY_AGAIN,
    REFUSE,
    FORBID,
    DELIVER,
    CUT,
    BACK_KILLED, /* a new connection, and what was lost with the old one will not run any more */
    BACK,
    RUN_LATE,   /* a command that was lost with its connection runs after all */
    HEAR,       /* a client hears of a grant, and counts it from when it was given */
    HEAR_EARLY, /* or from a tenth of its ttl earlier */
    DEAFEN,     /* a client does not listen for grants any more, which is not yet noticed, */
    NOTICE,     /* or now is */
    LISTEN,
    RESTART,
    WIPE,
    FORGET, /* a node loses its data, and does not start again */
    LOSE_QUEUE,
    LOSE_COUNTER,
    BREAK,      /* somebody removes the key */
    STRETCH,    /* or makes it live longer */
    PASS_SHORT, /* time, until something is due or expires */
    PASS,       /* the same, but for a node's mending, which then comes late */
    STALL,      /* the same up to an expiry, while one client does not run */
    WAKE,
};

struct move {
    uint8_t what, client, node, stray;
    uint8_t with; /* by whom walks: which manner, how much longer an extension or how short a time, whether a node was
                   * replaced that is back */
};

/* One lease of a client, and what its user was told: of one that was passed on, its last user. */
struct use {
    _Alignas(struct lease) unsigned char lease[sizeof(struct lease) + NODES * sizeof(struct lease_slot)];
    bool begun, granted, lost, extending, releasing, done, over;
    bool leaves; /* its token need not be gone when it is over */
    bool late;   /* a lost command of it ran when a newer connection stood */
    bool fenced;
    bool extended;    /* its user has changed the ttl; */
    bool tied;        /* its user, or another who knows the token, may still change it */
    bool untold;      /* its user does not know yet that it was passed on, */
    bool unheard;     /* nor that it is at risk */
    bool endangered;  /* a risk was told since it was renewed last, */
    uint8_t failed;   /* and there it could not be, by bit */
    uint8_t manner;   /* how it is used */
    uint8_t spare;    /* numbers that it asks for besides */
    uint8_t relays;   /* how often it was passed on */
    int64_t had_from; /* since when its user has it */
    int64_t most;     /* until when it asked for the lock at the most */
    uint8_t token;
    uint8_t ticket; /* 0: it does not wait in a queue */
    uint8_t stale;  /* which nodes have forgotten what they said yes to, by bit */
    uint8_t freed;  /* where its release was run and deleted the key, or where all was forgotten, by bit */
};

struct message {
    int64_t ttl;    /* what is asked for: a ttl, or of a RAISE the fence */
    int64_t left;   /* what the answer says: a ttl, or of an ACQUIRE the fence, */
    uint16_t spare; /* and how many after it */
    uint8_t attempt, command, connection, verdict;
    bool ran, stale; /* and what it did was forgotten */
};

struct channel {
    bool up, restarted;
    uint8_t connection; /* how many there were */
    uint8_t count, lost;
    struct message queue[QUEUE];
    struct message strays[STRAYS]; /* lost with older connections, and may still run */
};

/* On which a client hears of grants. */
struct ears {
    bool up;
    uint8_t count;
    struct grant {
        int64_t time, fence;
        uint16_t spare;
        uint8_t attempt;
        bool outdated; /* a look has found it waiting again */
    } queue[GRANTS];
};

struct client {
    unsigned rate; /* of its clock: microseconds in a quantum */
    uint8_t begun;
    bool stalled;
    struct use uses[ATTEMPTS];
    struct channel channels[NODES];
    struct ears ears;
};

struct node {
    struct server server;
    unsigned rate;
    uint8_t setter;       /* which attempt of its client set the key, */
    bool brought_back;    /* after it was exported */
    int64_t wiped;        /* when it lost its data last, in quanta; 0: never */
    int forgotten;        /* the token that it had then, */
    int64_t would_expire; /* and until when it would have kept it */
};

struct world {
    const struct scope *scope;
    const char *broken;                         /* the promise that is, or NULL */
    int64_t time;                               /* true time, in quanta of 200 us */
    unsigned attempts, extends, faults, passes; /* that are left */
    unsigned relays;                            /* the same */
    int handed_over;                            /* a token; 0: none */
    int64_t fence;                              /* the last that was granted, or could be passed on to */
    int64_t told;                               /* the last that a user was told */
    bool twice, backwards;                      /* two held it at a time, a fence did not grow: where that may be */
    bool forced, lapsed;                        /* somebody broke in, a node has lapsed */
    struct client clients[CLIENTS];
    struct node nodes[NODES];
};

/* In which ways clocks may differ at the most: this many. */
enum { CLOCKS = 3 };

void world_begin(struct world *world, const struct scope *scope, unsigned clocks);

/* Puts what may happen next into `moves`, and tells how much it is. */
unsigned world_moves(const struct world *world, struct move moves[MOVES]);

void world_move(struct world *world, struct move move);

/* The state in one number. Alike: states that differ in which client or which node is which, in when they are, or in
 * what the future cannot depend on. */
uint64_t world_fingerprint(const struct world *world);

void world_print_move(const struct world *world, struct move move);

static inline struct lease *lease_of(const struct use *use) {
    return (struct lease *)(void *)(uintptr_t)use->lease;
}

static inline int64_t client_clock(const struct world *world, unsigned client) {
    return world->time * world->clients[client].rate;
}

static inline int64_t server_clock(const struct world *world, unsigned node) {
    return world->time * world->nodes[node].rate;
}

#endif
