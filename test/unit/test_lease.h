/*
 * A bench for the lease core: one lease, the time, and what the last input led to. It does by hand what a client does
 * (takes commands, hands answers in) and owns nothing that outlives a test; it judges nothing beyond what a test asks.
 */
#ifndef TEST_LEASE_H
#define TEST_LEASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <evlock/evlock.h>

#include "lease.h"

#define MS INT64_C(1000)
#define SECOND (1000 * MS)

/* The terms of most tests, and what follows from them. */
#define TTL (30 * SECOND)
#define INTERVAL (10 * SECOND)
#define RISK (9 * SECOND)
#define DRIFT (302 * MS)
#define LEAD MS
#define PATIENCE (2 * TTL) /* so long that it plays no part; what it is for is tested with less */
#define KEPT (TTL - DRIFT) /* from sending a command to the deadline that it gives */

/* By then a token that was given this ttl has expired, also by a slow clock. */
static inline int64_t life(int64_t ttl) {
    return ttl + evl_lease_drift(ttl);
}

struct bench {
    struct lease_terms terms;
    struct lease_entry entry; /* how the next leases begin, unless a test's call says it */
    struct lease *lease;
    struct lease_out out; /* of the last input */
    int64_t now;
};

/* A bench with the usual terms, at a time that is not zero. The lease of the last one is forgotten. */
static inline struct bench bench_new(void) {
    static struct lease *room;

    if (!room)
        room = malloc(evl_lease_size(LEASE_NODES));
    assert_non_null(room);
    memset(room, 0xA5, evl_lease_size(LEASE_NODES)); /* a lease does not count on zeroed memory */
    return (struct bench){
        .terms = {.ttl = TTL,
                  .interval = INTERVAL,
                  .lead = LEAD,
                  .max_hold = LEASE_NEVER,
                  .patience = PATIENCE,
                  .risk = RISK},
        .lease = room,
        .now = 1000 * SECOND,
    };
}

/* --- Inputs: each forgets what the one before led to -------------------------------------------------------------- */

static inline struct lease_out *fresh(struct bench *b) {
    memset(&b->out, 0, sizeof(b->out));
    return &b->out;
}

static inline void begin_as(struct bench *b, unsigned nodes, struct lease_entry entry) {
    evl_lease_begin(b->lease, &b->terms, nodes, &entry, b->now, fresh(b));
}

static inline void begin(struct bench *b, unsigned nodes) {
    begin_as(b, nodes, b->entry);
}

static inline void begin_adopting(struct bench *b, unsigned nodes) {
    begin_as(b, nodes, (struct lease_entry){.adopt = true});
}

static inline void begin_fenced(struct bench *b, unsigned nodes) {
    begin_as(b, nodes, (struct lease_entry){.fenced = true});
}

static inline void begin_queued(struct bench *b) {
    begin_as(b, 1, (struct lease_entry){.queued = true, .fenced = b->entry.fenced, .own = b->entry.own});
}

static inline void answer(struct bench *b, unsigned node, enum lease_verdict verdict, int status, int64_t ttl) {
    struct lease_answer a = {.verdict = verdict, .status = status, .ttl = ttl};
    evl_lease_answer(b->lease, node, &a, b->now, fresh(b));
}

static inline void yes(struct bench *b, unsigned node) {
    answer(b, node, LEASE_YES, 0, 0);
}

static inline void yes_ttl(struct bench *b, unsigned node, int64_t ttl) {
    answer(b, node, LEASE_YES, 0, ttl);
}

/* An acquire is granted, and draws this number. */
static inline void draws(struct bench *b, unsigned node, int64_t fence) {
    struct lease_answer a = {.verdict = LEASE_YES, .fence = fence};
    evl_lease_answer(b->lease, node, &a, b->now, fresh(b));
}

/* And so many after it. */
static inline void draws_more(struct bench *b, unsigned node, int64_t fence, uint16_t spare) {
    struct lease_answer a = {.verdict = LEASE_YES, .fence = fence, .spare = spare};
    evl_lease_answer(b->lease, node, &a, b->now, fresh(b));
}

static inline void no(struct bench *b, unsigned node) {
    answer(b, node, LEASE_NO, 0, 0);
}

static inline void again(struct bench *b, unsigned node) {
    answer(b, node, LEASE_AGAIN, 0, 0);
}

static inline void refused(struct bench *b, unsigned node) {
    answer(b, node, LEASE_REFUSED, EVLOCK_EREFUSED, 0);
}

static inline void forbidden(struct bench *b, unsigned node) {
    answer(b, node, LEASE_FORBIDDEN, EVLOCK_EPERM, 0);
}

static inline void unknown(struct bench *b, unsigned node) {
    answer(b, node, LEASE_UNKNOWN, EVLOCK_EUNREACHABLE, 0);
}

/* Another has it, and this one waits in the queue. */
static inline void queued(struct bench *b) {
    answer(b, 0, LEASE_QUEUED, 0, TTL);
}

static inline void look(struct bench *b) {
    evl_lease_look(b->lease, fresh(b));
}

/* The server says that it has granted it, and drawn this number and so many after it. */
static inline void granted_more(struct bench *b, int64_t since, int64_t fence, uint16_t spare) {
    struct lease_answer a = {.verdict = LEASE_YES, .fence = fence, .spare = spare};
    evl_lease_granted(b->lease, since, &a, b->now, fresh(b));
}

static inline void granted(struct bench *b, int64_t since) {
    granted_more(b, since, 1, 0);
}

static inline void away(struct bench *b, unsigned node) {
    evl_lease_node_away(b->lease, node, EVLOCK_EUNREACHABLE, b->now, fresh(b));
}

/* It may have forgotten locks, and grants nothing for the time being. */
static inline void excluded(struct bench *b, unsigned node) {
    evl_lease_node_away(b->lease, node, EVLOCK_EEXCLUDED, b->now, fresh(b));
}

enum back { UNSETTLED, SETTLED, REPLACED };

static inline void back(struct bench *b, unsigned node, enum back how) {
    evl_lease_node_back(b->lease, node, how != UNSETTLED, how == REPLACED, b->now, fresh(b));
}

static inline void extend(struct bench *b, enum lease_command command, int64_t ttl) {
    evl_lease_extend(b->lease, command, ttl, b->now + 5 * SECOND, fresh(b));
}

static inline void release(struct bench *b) {
    evl_lease_release(b->lease, b->now + 5 * SECOND, fresh(b));
}

static inline void abandon(struct bench *b) {
    evl_lease_abandon(b->lease, b->now, fresh(b));
}

/* The time goes on to `now`. */
static inline void until(struct bench *b, int64_t now) {
    b->now = now;
    evl_lease_time(b->lease, now, now, fresh(b));
}

static inline void pass(struct bench *b, int64_t time) {
    until(b, b->now + time);
}

/* --- What tests ask ----------------------------------------------------------------------------------------------- */

/* What the node is sent, where a renewal goes as `command` if that is one. */
static inline enum lease_command takes(struct bench *b, unsigned node, enum lease_command command) {
    return evl_lease_take(b->lease, node, evl_lease_renews(command) ? command : LEASE_RENEW, b->now);
}

/* The node is sent this and nothing else. */
#define sends(b, node, command)                                                                                        \
    do {                                                                                                               \
        assert_int_equal(takes(b, node, command), command);                                                            \
        if ((command) != LEASE_NOTHING)                                                                                \
            assert_int_equal(takes(b, node, command), LEASE_NOTHING);                                                  \
    } while (0)

#define sends_nothing(b, node) sends(b, node, LEASE_NOTHING)

/* The last input led to these events, with this status. */
#define tells(b, what, why)                                                                                            \
    do {                                                                                                               \
        assert_int_equal((b)->out.events, what);                                                                       \
        assert_int_equal((b)->out.status, why);                                                                        \
    } while (0)

#define tells_nothing(b) tells(b, 0, 0)

#define tells_lost(b, why)                                                                                             \
    do {                                                                                                               \
        assert_int_equal((b)->out.events, LEASE_TELL_LOST);                                                            \
        assert_int_equal((b)->out.reason, why);                                                                        \
    } while (0)

#define tells_risk(b, why)                                                                                             \
    do {                                                                                                               \
        assert_int_equal((b)->out.events, LEASE_TELL_RISK);                                                            \
        assert_int_equal((b)->out.reason, why);                                                                        \
    } while (0)

#define is_in(b, what) assert_int_equal((b)->lease->state, what)
#define wakes(b, bits) assert_int_equal((b)->out.wake, bits)
#define next_is(b, when) assert_int_equal(evl_lease_next((b)->lease), when)
#define deadline_is(b, when) assert_int_equal(evl_lease_deadline((b)->lease), when)

#define is_over(b) assert_true(evl_lease_over((b)->lease))
#define is_not_over(b) assert_false(evl_lease_over((b)->lease))

/* --- Ways there --------------------------------------------------------------------------------------------------- */

/* Sends the acquire to one node, and grants it at once. */
static inline void held_by_one(struct bench *b) {
    begin(b, 1);
    sends(b, 0, LEASE_ACQUIRE);
    yes(b, 0);
    tells(b, LEASE_TELL_GRANTED, 0);
}

/* It has joined the queue of the only node. */
static inline void waits(struct bench *b) {
    begin_queued(b);
    sends(b, 0, LEASE_ACQUIRE);
    queued(b);
    tells_nothing(b);
    is_in(b, LEASE_ACQUIRING);
}

/* All of `nodes` nodes are asked and grant at once. */
static inline void held_by(struct bench *b, unsigned nodes) {
    begin(b, nodes);
    for (unsigned i = 0; i < nodes; i++)
        sends(b, i, LEASE_ACQUIRE);
    for (unsigned i = 0; i < nodes; i++)
        yes(b, i);
    is_in(b, LEASE_HELD);
}

/* Of three nodes two keep the token, and the first has lost it. */
static inline void held_by_two_of_three(struct bench *b) {
    held_by(b, 3);
    pass(b, INTERVAL);
    for (unsigned i = 0; i < 3; i++)
        sends(b, i, LEASE_RENEW);
    no(b, 0);
    yes_ttl(b, 1, TTL);
    yes_ttl(b, 2, TTL);
    tells_nothing(b);
}

/* Held by one, and the first renewal is unanswered. */
static inline void renewing(struct bench *b) {
    held_by_one(b);
    pass(b, INTERVAL);
    sends(b, 0, LEASE_RENEW);
}

#endif
