/*
 * What a lock server is to the lease core: one key with its expiry, a fence counter, a queue with those who listen for
 * grants, and what each command does to them. It goes by its own clock, in microseconds, and rounds like a real one to
 * milliseconds, how it falls being the caller's choice. It loses nothing and refuses nothing by itself; that is for the
 * worlds around it.
 */
#ifndef MODEL_SERVER_H
#define MODEL_SERVER_H

#include "lease.h"
#include "size.h"

struct waiter {
    int64_t ttl;
    uint8_t token;
    uint8_t ticket;  /* one for each attempt; 0: it is nobody */
    uint8_t channel; /* on which it listens */
    uint8_t spare;   /* numbers that it asks for besides */
    bool fenced;
};

struct server {
    int64_t expires; /* LEASE_NEVER: the key has no expiry; in the past: there is no key */
    int64_t counter; /* of fences; 0: there is none */
    int token;       /* in the key */
    uint8_t listens; /* on which channels somebody does, by bit */
    uint8_t waiting; /* how many, */
    struct waiter line[LINE];
};

/* Who was granted the lock, and what was drawn for it, if anything was. */
struct grant_note {
    struct waiter waiter;
    int64_t fence;
    uint16_t spare;
};

struct request {
    enum lease_command command;
    int token;
    int64_t ttl;             /* what is asked for or, by an ADD, more; 0: no expiry */
    int64_t fence;           /* of a RAISE */
    uint8_t ticket, channel; /* of one that waits; 0: it does not */
    bool fenced;             /* an acquire that draws a number, */
    uint8_t spare;           /* and so many besides */
};

bool server_has(const struct server *server, int token, int64_t clock);

/* Whether it is in the queue. */
bool server_waits(const struct server *server, unsigned ticket);

/* Runs a command. `grain`: how much of the present millisecond has passed, which a ttl that is set begins with. `told`:
 * who was granted the lock by that without having asked, and is sent a message with its fence, if somebody is. */
enum lease_verdict server_run(struct server *server, const struct request *request, int64_t clock, int64_t grain,
                              struct lease_answer *answer, struct grant_note *told);

#endif
