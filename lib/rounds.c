/* Who hears next; see rounds.h. */
#include "rounds.h"

#include "check.h"

void evl_rounds_init(struct rounds *rounds) {
    TAILQ_INIT(&rounds->live);
    TAILQ_INIT(&rounds->ghosts);
    LIST_INIT(&rounds->open);
}

static void rounds_aim(struct rounds *rounds, struct round *round, struct round_member *next) {
    if (next && !round->next)
        LIST_INSERT_HEAD(&rounds->open, round, link);
    if (!next && round->next)
        LIST_REMOVE(round, link);
    round->next = next;
}

void evl_rounds_pass_over(struct rounds *rounds, const struct round_member *member) {
    struct round *round, *after;

    for (round = LIST_FIRST(&rounds->open); round; round = after) {
        after = LIST_NEXT(round, link);
        if (round->next == member)
            rounds_aim(rounds, round, TAILQ_NEXT(member, link));
    }
}

void evl_round_begin(struct rounds *rounds, struct round *round) {
    rounds_aim(rounds, round, TAILQ_FIRST(&rounds->live));
    round->more = true;
}

/* Who comes next is known before anybody is visited, who may go by that. */
struct round_member *evl_round_take(struct rounds *rounds, struct round *round) {
    struct round_member *member;

    if (!round->next && round->more) {
        round->more = false;
        rounds_aim(rounds, round, TAILQ_FIRST(&rounds->ghosts));
    }
    member = round->next;
    if (member)
        rounds_aim(rounds, round, TAILQ_NEXT(member, link));
    return member;
}

#ifdef EVL_CHECKS
void evl_rounds_check(const struct rounds *rounds) {
    const struct round_member *member;
    const struct round *round;

    LIST_FOREACH (round, &rounds->open, link) {
        TAILQ_FOREACH (member, round->more ? &rounds->live : &rounds->ghosts, link)
            if (member == round->next)
                break;
        assert(round->next && member);
    }
}
#endif
