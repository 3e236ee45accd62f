/*
 * Rounds: in which order many hear one thing, some at a time. A round visits all who are somebody's, and then the
 * ghosts, who are nobody's any more. Members may come, go and become ghosts meanwhile, and any number of rounds may be
 * under way. It calls nobody, and owns no memory: members lie in their owners, and each round in what is told of.
 */
#ifndef EVL_ROUNDS_H
#define EVL_ROUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

/* Who is visited. */
struct round_member {
    TAILQ_ENTRY(round_member) link;
};

TAILQ_HEAD(round_members, round_member);

/* How far one has come; zeroed at first, and over. */
struct round {
    LIST_ENTRY(round) link;    /* while `next` is somebody */
    struct round_member *next; /* who is visited next */
    bool more;                 /* the ghosts come after these */
};

LIST_HEAD(open_rounds, round);

/* All members, and the rounds that have somebody next. */
struct rounds {
    struct round_members live;
    struct round_members ghosts;
    struct open_rounds open;
};

void evl_rounds_init(struct rounds *rounds);

/* A new member comes last, and need not be visited by the rounds that are under way. */
static inline void evl_rounds_add(struct rounds *rounds, struct round_member *member, bool ghost) {
    TAILQ_INSERT_TAIL(ghost ? &rounds->ghosts : &rounds->live, member, link);
}

/* Rounds that were to visit a member next go on behind it. */
void evl_rounds_pass_over(struct rounds *rounds, const struct round_member *member);

/* A member goes. */
static inline void evl_rounds_remove(struct rounds *rounds, struct round_member *member, bool ghost) {
    if (!LIST_EMPTY(&rounds->open))
        evl_rounds_pass_over(rounds, member);
    TAILQ_REMOVE(ghost ? &rounds->ghosts : &rounds->live, member, link);
}

/* Begins a round, or begins it anew. */
void evl_round_begin(struct rounds *rounds, struct round *round);

/* Who is visited now; NULL: the round is over. One that became a ghost since the round began may be visited twice. */
struct round_member *evl_round_take(struct rounds *rounds, struct round *round);

/* Asserts that each round goes on with a member; see check.h. */
void evl_rounds_check(const struct rounds *rounds);

#endif
