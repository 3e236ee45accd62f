/* What a master of a cluster owes a lease; see owing.h. */
#include "owing.h"

#include "check.h"

static const struct comeback owing_nothing_heard = {.heard = false};

static bool owing_is_by(const struct owing *owing, unsigned master) {
    return owing->debtor == master + 1;
}

/* What was of the debtor before is over. */
static void owing_set(struct owing *owing, unsigned debtor, bool more) {
    owing->debtor = debtor & OWING_MASTERS;
    owing->more = more;
    owing->back = false;
    owing->settled = false;
}

/* Of two that owe, the later one is waited for. */
void evl_owing_lost(struct owing *owing, unsigned master) {
    bool more = owing->more || (owing->debtor && !owing_is_by(owing, master));

    assert(master < OWING_MASTERS);
    owing_set(owing, master + 1, more);
    evl_check(evl_owing_check(owing));
}

/* Once only. What is unanswered at another master is waited for first: the lease takes what it hears of its one vote
 * for all that it has sent. */
struct comeback evl_owing_answered(struct owing *owing, bool flying) {
    struct comeback comeback = {.heard = true, .settled = owing->settled && !owing->more};

    if (!owing->back || flying)
        return owing_nothing_heard;
    owing_set(owing, 0, false);
    return comeback;
}

static struct comeback owing_end(struct owing *owing, bool settled, bool flying) {
    owing->back = true;
    owing->settled = settled;
    evl_check(evl_owing_check(owing));
    return evl_owing_answered(owing, flying);
}

/* Where the lease is, it hears of a return like any other; but what others owe is not settled by it. */
struct comeback evl_owing_back(struct owing *owing, struct owing_place at, struct owing_return from) {
    bool owes = owing_is_by(owing, from.master), alone = owes || !owing->debtor;
    struct comeback comeback = {true, true, from.settled && alone && !owing->more, from.replaced};

    if (at.master == from.master && !at.flying) {
        owing_set(owing, 0, false);
        return comeback;
    }
    return owes ? owing_end(owing, from.settled, at.flying) : owing_nothing_heard;
}

struct comeback evl_owing_gone(struct owing *owing, bool flying, unsigned master) {
    return owing_is_by(owing, master) ? owing_end(owing, false, flying) : owing_nothing_heard;
}

/* Another master than the last command went to is a server that was replaced: whether the keys came along is for the
 * answer to say. What is under way is told by its own answer; and what is owed, by its debtor. */
struct comeback evl_owing_moved(const struct owing *owing, struct owing_place at, unsigned home) {
    if (at.flying || owing->debtor || at.master == home)
        return owing_nothing_heard;
    return (struct comeback){.heard = true, .settled = true, .replaced = true};
}

#ifdef EVL_CHECKS
void evl_owing_check(const struct owing *owing) {
    implies(!owing->debtor, !owing->more && !owing->back);
    implies(owing->settled, owing->back);
}
#endif
