/*
 * A stage: what one run of a scenario under a planned fault has to do with, and what must be true of it whatever was
 * refused. Owns the loop, the client and the handles of the run; the servers are the suite's. Calls here take NULL for
 * what could not be made, and then do nothing, so that a scenario reads as if nothing ever failed.
 *
 * What is checked: a call is refused with EVLOCK_ENOMEM (a client, and an acquire without random bytes, also with
 * EVLOCK_ESYSTEM) or not at all; what was accepted is answered once, not before the call has returned; a handle that
 * believes in its lease has it, on a quorum of the servers, beyond its deadline; when nothing is refused any more every
 * lock can be acquired again by the same client, and its close leaves no key; and no block, descriptor or registration
 * stays.
 */
#ifndef EVLOCK_TEST_STAGE_H
#define EVLOCK_TEST_STAGE_H

#include <stdbool.h>
#include <stdint.h>

#include <evlock/evlock.h>

#include "../redis/loops.h"
#include "../redis/server.h"
#include "faults.h"

enum {
    STAGE_LOCKS = 40,
    STAGE_CALLS = 96,
    STAGE_SERVERS = 3,
    STAGE_TTL_MS = 50000, /* outlives the wait for anything: so a key that was left over is found */
    STAGE_SKIPPED = 1,    /* in place of what a call returned: it was not made */
};

extern struct server stage_servers[STAGE_SERVERS];
extern struct server stage_replica;  /* of the first of them */
extern struct server stage_sentinel; /* that knows the first of them as "locks"; the second is a cluster of one */

struct stage;

/* One call that is to be answered. */
struct told {
    struct stage *stage;
    int due; /* 1 when it was accepted */
    int count;
    int status;
    void (*then)(struct told *told, evlock *lock); /* inside the callback; may be NULL */
};

struct stage {
    struct test_loop *loop;
    evlock_client *client; /* NULL: not made, or not any more */
    char url[160];         /* of its server; "" for all of them */
    size_t first;          /* which server that is */
    int db;
    struct {
        evlock *handle; /* NULL: not any more */
        char key[64];
    } locks[STAGE_LOCKS];
    size_t lock_count;
    struct told calls[STAGE_CALLS];
    size_t call_count;
    bool plain; /* nothing is refused in this run: every step must go as the scenario expects */
    bool in_call;
    bool freed;              /* its client was, and not closed: keys may be left, to their ttl */
    int lost;                /* how often on_lost was called */
    int wrong;               /* what was found wrong */
    int blocks[FAULT_KINDS]; /* that lived before, of each kind */
    int descriptors;
    char label[160]; /* of the run, for what is told of it */
};

/* EVLOCK_TEST_STRIDE: of so many points one is refused, in builds that take long; 1 by default. */
long stage_stride(void);

/* Starts and stops the servers; for the group of tests. */
int stage_servers_start(void **state);
int stage_servers_stop(void **state);

/* The fault is planned by the caller before. */
void stage_begin(struct stage *stage, const char *label, bool plain);
/* Heals, ends everything and checks it; false if anything was wrong in the run, which has been printed. */
bool stage_end(struct stage *stage);
void stage_wrong(struct stage *stage, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* --- Making and unmaking ------------------------------------------------------------------------------------------ */

evlock_client_options stage_client_options(struct stage *stage);
/* NULL for `url`: the first server's unix socket; NULL for `options`: stage_client_options(). */
void stage_client(struct stage *stage, const char *url, const evlock_client_options *options);
/* The database that the client's URL names, for the tests' own looks. */
void stage_select(struct stage *stage, int db);
/* A client of the second server as a cluster, or of the first as what the Sentinel knows. */
void stage_cluster(struct stage *stage);
void stage_master(struct stage *stage);
/* A client of all servers. */
void stage_quorum(struct stage *stage);
/* NULL for `options`: stage_options(), whose ttl is STAGE_TTL_MS. */
evlock_options stage_options(struct stage *stage);
evlock *stage_lock(struct stage *stage, const char *name, const evlock_options *options);
void stage_free_lock(struct stage *stage, evlock *lock);
void stage_free_client(struct stage *stage);
/* The scenario has freed the handle itself. */
void stage_forget(struct stage *stage, const evlock *lock);

/* --- Calls -------------------------------------------------------------------------------------------------------- */

/* Every call of evlock stands between these two: what its callback is told by, and what it returned, which is judged.
 * Gives the told back if the call was accepted, and NULL if not. */
struct told *stage_told(struct stage *stage);
struct told *stage_judge(struct told *told, int returned);

void told_end(evlock *lock, int status, void *told);
void told_answer(evlock *lock, int status, const evlock_answer *answer, void *told);
void told_run(int status, bool ran, void *told);
void told_closed(int status, void *told);

struct told *stage_acquire(struct stage *stage, evlock *lock, const evlock_acquire_options *options);
struct told *stage_release(struct stage *stage, evlock *lock);
struct told *stage_close(struct stage *stage);

/* Runs the loop until it is told; a plain run must be told `expected`. Of NULL, nothing is told. */
void stage_await(struct told *told, int expected);
/* Runs the loop until the condition holds, or, where something was refused, for as long as that is worth it. */
#define stage_until(stage, expression)                                                                                 \
    do {                                                                                                               \
        int64_t stage_limit = stage_patience(stage);                                                                   \
        while (!(expression) && evlock_clock_us() < stage_limit)                                                       \
            stage_turn(stage);                                                                                         \
        if ((stage)->plain && !(expression))                                                                           \
            stage_wrong((stage), "waited in vain for %s", #expression);                                                \
    } while (0)
int64_t stage_patience(const struct stage *stage);
void stage_turn(struct stage *stage);

#endif
