/*
 * Every state of a lease and every input: a table that says for each pair what it leads to, also where that is nothing.
 * One node, or the first of three. The states are split by what is wanted and what is unanswered, for
 * that is where inputs differ. The finer points of each (times, votes, sequences) are in the other tests of the lease.
 */
#include "test_lease.h"

#include <stdio.h>

enum input {
    TAKE, /* the node is ready for a command */
    YES,  /* the answers to the oldest command; … */
    NO,
    AGAIN,
    REFUSED,
    FORBID,
    UNKNOWN,
    QUEUED,
    LOOK, /* of one that queues: it is asked how it stands; … */
    GRANTED,
    AWAY, /* the node; … */
    BACK, /* is back: settled; … */
    BACK_UNSETTLED,
    BACK_REPLACED,
    EXTEND, /* the calls: by a second more; … */
    RELEASE,
    ABANDON,
    EXPORT,
    SAME, /* the time is asked for when nothing is due */
    NEXT, /* the time goes on to when it was wanted next, if ever */
    INPUTS,
};

static const char *const input_names[INPUTS] = {
    "TAKE",    "YES",     "NO",   "AGAIN", "REFUSED",        "FORBID",        "UNKNOWN", "QUEUED",
    "LOOK",    "GRANTED", "AWAY", "BACK",  "BACK_UNSETTLED", "BACK_REPLACED", "EXTEND",  "RELEASE",
    "ABANDON", "EXPORT",  "SAME", "NEXT"};

/* --- What came out, in words -------------------------------------------------------------------------------------- */

static const char *const state_names[] = {"acquiring", "held", "lost", "releasing", "undoing", "ended"};
static const char *const command_names[] = {
    [LEASE_NOTHING] = "nothing", [LEASE_ACQUIRE] = "acquire", [LEASE_ADOPT] = "adopt",     [LEASE_RAISE] = "raise",
    [LEASE_RENEW] = "renew",     [LEASE_REFRESH] = "refresh", [LEASE_RESTORE] = "restore", [LEASE_REARM] = "rearm",
    [LEASE_MEND] = "mend",       [LEASE_ADD] = "add",         [LEASE_REPLACE] = "replace", [LEASE_RELEASE] = "release",
};

static const char *status_name(int status) {
    switch (status) {
    case EVLOCK_OK:
        return "ok";
    case EVLOCK_EHELD:
        return "held";
    case EVLOCK_ENOTOWNED:
        return "not owned";
    case EVLOCK_ELOST:
        return "lost";
    case EVLOCK_EUNREACHABLE:
        return "unreachable";
    case EVLOCK_EREFUSED:
        return "refused";
    case EVLOCK_EQUORUM:
        return "quorum";
    case EVLOCK_EPERM:
        return "forbidden";
    case EVLOCK_EEXPIRED:
        return "expired";
    default:
        return "some other status";
    }
}

/*
 * "held" is the state; "over" is ended, with nothing unanswered. "!renew": the node is woken for a renewal; "renew":
 * one is wanted, but the node is not woken; "?renew": one is unanswered. Behind the colon is what is told.
 */
static const char *outcome(const struct bench *b, unsigned node) {
    static char text[200];
    const struct lease_slot *slot = &b->lease->slots[node];
    int at = sprintf(text, "%s", evl_lease_over(b->lease) ? "over" : state_names[b->lease->state]);

    if (slot->want)
        at += sprintf(text + at, " %s%s", b->out.wake & 1U << node ? "!" : "", command_names[slot->want]);
    else if (b->out.wake & 1U << node)
        at += sprintf(text + at, " WOKEN FOR NOTHING");
    if (slot->flying)
        at += sprintf(text + at, " ?%s", command_names[slot->flying]);
    if (slot->releasing)
        at += sprintf(text + at, " ?release");
    if (b->out.events)
        at += sprintf(text + at, ":");
    if (b->out.events & LEASE_TELL_GRANTED)
        at += sprintf(text + at, " granted");
    if (b->out.events & LEASE_TELL_FAILED)
        at += sprintf(text + at, " failed %s", status_name(b->out.status));
    if (b->out.events & LEASE_TELL_EXTENDED)
        at += sprintf(text + at, " extended %s", status_name(b->out.status));
    if (b->out.events & LEASE_TELL_RELEASED)
        at += sprintf(text + at, " released %s", status_name(b->out.status));
    if (b->out.events & LEASE_TELL_LOST)
        at += sprintf(text + at, " lost %s", status_name(b->out.reason));
    if (b->out.events & LEASE_TELL_RISK)
        sprintf(text + at, " at risk");
    return text;
}

/* --- Situations --------------------------------------------------------------------------------------------------- */

static void acquire_wanted(struct bench *b) {
    begin(b, 1);
}

static void acquire_sent(struct bench *b) {
    begin(b, 1);
    sends(b, 0, LEASE_ACQUIRE);
}

static void adopt_wanted(struct bench *b) {
    begin_adopting(b, 1);
}

static void adopt_sent(struct bench *b) {
    begin_adopting(b, 1);
    sends(b, 0, LEASE_ADOPT);
}

static void held(struct bench *b) {
    held_by_one(b);
    pass(b, SECOND);
}

static void held_adopted(struct bench *b) {
    adopt_sent(b);
    yes_ttl(b, 0, TTL);
}

static void renewal_wanted(struct bench *b) {
    held_by_one(b);
    pass(b, INTERVAL);
}

static void renewal_sent(struct bench *b) {
    renewing(b);
}

static void restoring_sent(struct bench *b) {
    held_by_one(b);
    until(b, evl_lease_next(b->lease));
    sends(b, 0, LEASE_RESTORE);
}

static void release_behind_restoring(struct bench *b) {
    restoring_sent(b);
    release(b);
    sends(b, 0, LEASE_RELEASE);
}

static void renewal_refused(struct bench *b) {
    renewing(b);
    refused(b, 0);
}

static void extension_wanted(struct bench *b) {
    held_by_one(b);
    pass(b, SECOND);
    extend(b, LEASE_ADD, SECOND);
}

static void addition_sent(struct bench *b) {
    extension_wanted(b);
    sends(b, 0, LEASE_ADD);
}

static void replacement_sent(struct bench *b) {
    held_by_one(b);
    pass(b, SECOND);
    extend(b, LEASE_REPLACE, TTL);
    sends(b, 0, LEASE_REPLACE);
}

static void extension_behind_renewal(struct bench *b) {
    renewing(b);
    extend(b, LEASE_ADD, SECOND);
}

static void extension_given_up(struct bench *b) {
    addition_sent(b);
    pass(b, 5 * SECOND);
    tells(b, LEASE_TELL_EXTENDED, EVLOCK_EUNREACHABLE);
}

/* Of three nodes two have granted it, and this one, the first, has not answered. */
static void held_elsewhere(struct bench *b) {
    begin(b, 3);
    for (unsigned i = 0; i < 3; i++)
        sends(b, i, LEASE_ACQUIRE);
    yes(b, 1);
    yes(b, 2);
}

/* Of three nodes this one, the first, drew less than the second; the third has not answered. */
static void raise_wanted(struct bench *b) {
    begin_fenced(b, 3);
    for (unsigned i = 0; i < 3; i++)
        sends(b, i, LEASE_ACQUIRE);
    draws(b, 0, 5);
    draws(b, 1, 7);
}

static void raise_sent(struct bench *b) {
    raise_wanted(b);
    sends(b, 0, LEASE_RAISE);
}

static void raise_overtaken(struct bench *b) {
    raise_sent(b);
    draws(b, 2, 7);
}

/* Held by the other two of three. */
static void rearm_wanted(struct bench *b) {
    held_by_two_of_three(b);
    pass(b, INTERVAL);
}

static void rearm_sent(struct bench *b) {
    rearm_wanted(b);
    sends(b, 0, LEASE_REARM);
}

/* Without renewal: the others have it, and the first said no. */
static void mend_planned(struct bench *b) {
    b->terms.interval = 0;
    begin(b, 3);
    for (unsigned i = 0; i < 3; i++)
        sends(b, i, LEASE_ACQUIRE);
    no(b, 0);
    yes(b, 1);
    yes(b, 2);
}

static void mend_wanted(struct bench *b) {
    mend_planned(b);
    pass(b, SECOND);
}

static void mend_sent(struct bench *b) {
    mend_wanted(b);
    sends(b, 0, LEASE_MEND);
}

static void lost_while_mending(struct bench *b) {
    mend_sent(b);
    until(b, evl_lease_deadline(b->lease));
}

static void release_behind_mend(struct bench *b) {
    mend_sent(b);
    release(b);
    sends(b, 0, LEASE_RELEASE);
}

static void one_renewal_of_three_wanted(struct bench *b) {
    held_by(b, 3);
    pass(b, INTERVAL);
}

static void one_extension_of_three_wanted(struct bench *b) {
    held_by(b, 3);
    pass(b, SECOND);
    extend(b, LEASE_ADD, SECOND);
}

/* The last that is missing for the decision; one of the others has refused. */
static void last_extension_of_three_wanted(struct bench *b) {
    one_extension_of_three_wanted(b);
    for (unsigned i = 1; i < 3; i++)
        sends(b, i, LEASE_ADD);
    yes_ttl(b, 1, TTL);
    refused(b, 2);
}

static void lost_while_rearming(struct bench *b) {
    rearm_sent(b);
    until(b, evl_lease_deadline(b->lease));
}

static void release_behind_rearm(struct bench *b) {
    rearm_sent(b);
    release(b);
    sends(b, 0, LEASE_RELEASE);
}

static void undo_before_rearms_answer(struct bench *b) {
    rearm_sent(b);
    abandon(b);
}

static void undo_behind_rearm(struct bench *b) {
    undo_before_rearms_answer(b);
    sends(b, 0, LEASE_RELEASE);
}

static void undo_behind_raise(struct bench *b) {
    raise_sent(b);
    abandon(b);
    sends(b, 0, LEASE_RELEASE);
}

static void lost(struct bench *b) {
    b->terms.interval = 0;
    held_by_one(b);
    pass(b, KEPT);
}

static void lost_while_renewing(struct bench *b) {
    renewing(b);
    until(b, evl_lease_deadline(b->lease));
    is_in(b, LEASE_LOST);
}

static void gone(struct bench *b) {
    renewing(b);
    no(b, 0);
}

static void release_wanted(struct bench *b) {
    held(b);
    release(b);
}

static void release_sent(struct bench *b) {
    release_wanted(b);
    sends(b, 0, LEASE_RELEASE);
}

static void release_behind_renewal(struct bench *b) {
    renewing(b);
    release(b);
    sends(b, 0, LEASE_RELEASE);
}

static void release_before_renewals_answer(struct bench *b) {
    renewing(b);
    release(b);
}

static void release_refused(struct bench *b) {
    release_sent(b);
    refused(b, 0);
}

static void release_after_loss(struct bench *b) {
    lost(b);
    release(b);
    sends(b, 0, LEASE_RELEASE);
}

static void undo_wanted(struct bench *b) {
    held(b);
    abandon(b);
}

static void undo_sent(struct bench *b) {
    undo_wanted(b);
    sends(b, 0, LEASE_RELEASE);
}

static void undo_before_acquires_answer(struct bench *b) {
    acquire_sent(b);
    abandon(b);
}

static void undo_behind_acquire(struct bench *b) {
    undo_before_acquires_answer(b);
    sends(b, 0, LEASE_RELEASE);
}

static void undo_behind_renewal(struct bench *b) {
    renewing(b);
    abandon(b);
    sends(b, 0, LEASE_RELEASE);
}

static void undo_of_a_lost_acquire(struct bench *b) {
    acquire_sent(b);
    unknown(b, 0);
}

/* The node is back, but the acquire may still run, and the release found nothing yet. */
static void undo_of_a_stray_acquire(struct bench *b) {
    undo_of_a_lost_acquire(b);
    back(b, 0, UNSETTLED);
    sends(b, 0, LEASE_RELEASE);
    no(b, 0);
}

/* --- Situations in a queue: one waits, looks, is granted the lock or gives up ------------------------------------ */

static void join_wanted(struct bench *b) {
    begin_queued(b);
}

static void join_sent(struct bench *b) {
    begin_queued(b);
    sends(b, 0, LEASE_ACQUIRE);
}

static void waiting(struct bench *b) {
    waits(b);
}

static void look_wanted(struct bench *b) {
    waits(b);
    look(b);
}

static void look_sent(struct bench *b) {
    look_wanted(b);
    sends(b, 0, LEASE_ACQUIRE);
}

static void granted_before_the_looks_answer(struct bench *b) {
    look_sent(b);
    granted(b, b->now);
}

static void lost_before_the_looks_answer(struct bench *b) {
    granted_before_the_looks_answer(b);
    until(b, evl_lease_deadline(b->lease));
}

static void release_behind_look(struct bench *b) {
    granted_before_the_looks_answer(b);
    release(b);
    sends(b, 0, LEASE_RELEASE);
}

static void leave_wanted(struct bench *b) {
    waits(b);
    abandon(b);
}

static void leave_sent(struct bench *b) {
    leave_wanted(b);
    sends(b, 0, LEASE_RELEASE);
}

static void leave_refused(struct bench *b) {
    leave_sent(b);
    refused(b, 0);
}

static void leave_behind_look(struct bench *b) {
    look_sent(b);
    abandon(b);
    sends(b, 0, LEASE_RELEASE);
}

static void leave_of_a_lost_look(struct bench *b) {
    look_sent(b);
    unknown(b, 0);
}

static void gone_from_the_queue(struct bench *b) {
    leave_sent(b);
    no(b, 0);
}

/* --- Ends --------------------------------------------------------------------------------------------------------- */

static void over(struct bench *b) {
    acquire_sent(b);
    no(b, 0);
}

static void exported_while_renewing(struct bench *b) {
    renewing(b);
    evl_lease_export(b->lease);
}

/* The acquire was not granted, and the release that followed it is unanswered. */
static void ended_before_the_last_answer(struct bench *b) {
    undo_behind_acquire(b);
    no(b, 0);
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

/* clang-format off */
static const struct row {
    const char *name;
    void (*arrange)(struct bench *b);
    const char *outcomes[INPUTS]; /* none: nothing is unanswered, the call is not allowed, or nothing will be due */
} rows[] = {
    {"acquire wanted", acquire_wanted,
     {[TAKE] = "acquiring ?acquire", [AWAY] = "over: failed unreachable", [BACK] = "acquiring acquire",
      [BACK_UNSETTLED] = "acquiring acquire", [BACK_REPLACED] = "acquiring acquire", [ABANDON] = "over",
      [SAME] = "acquiring acquire"}},
    {"acquire sent", acquire_sent,
     {[TAKE] = "acquiring ?acquire", [YES] = "held: granted", [NO] = "over: failed held",
      [AGAIN] = "acquiring !acquire", [REFUSED] = "over: failed refused", [FORBID] = "over: failed forbidden",
      [UNKNOWN] = "undoing !release: failed unreachable", [AWAY] = "acquiring ?acquire",
      [ABANDON] = "undoing !release ?acquire", [SAME] = "acquiring ?acquire",
      [NEXT] = "undoing !release ?acquire: failed unreachable"}},
    {"adopt wanted", adopt_wanted,
     {[TAKE] = "acquiring ?adopt", [AWAY] = "over: failed unreachable", [BACK] = "acquiring adopt",
      [BACK_UNSETTLED] = "acquiring adopt", [BACK_REPLACED] = "acquiring adopt", [ABANDON] = "over",
      [SAME] = "acquiring adopt"}},
    {"adopt sent", adopt_sent,
     {[TAKE] = "acquiring ?adopt", [YES] = "held: granted", [NO] = "over: failed not owned",
      [AGAIN] = "acquiring !adopt", [REFUSED] = "over: failed refused", [FORBID] = "over: failed forbidden",
      [UNKNOWN] = "over: failed unreachable", [AWAY] = "acquiring ?adopt", [ABANDON] = "ended ?adopt",
      [SAME] = "acquiring ?adopt"}},
    {"held", held,
     {[TAKE] = "held", [AWAY] = "held", [BACK] = "held", [BACK_UNSETTLED] = "held", [BACK_REPLACED] = "held !renew",
      [EXTEND] = "held !add", [RELEASE] = "releasing !release", [ABANDON] = "undoing !release", [EXPORT] = "over",
      [SAME] = "held", [NEXT] = "held !renew"}},
    {"held adopted", held_adopted,
     {[TAKE] = "held", [AWAY] = "held", [BACK] = "held", [BACK_UNSETTLED] = "held", [BACK_REPLACED] = "held !renew",
      [EXTEND] = "held !add", [RELEASE] = "releasing !release", [ABANDON] = "undoing !release", [EXPORT] = "over",
      [SAME] = "held", [NEXT] = "held !renew"}},
    {"renewal wanted", renewal_wanted,
     {[TAKE] = "held ?renew", [AWAY] = "held renew", [BACK] = "held renew", [BACK_UNSETTLED] = "held renew",
      [BACK_REPLACED] = "held renew", [EXTEND] = "held !add", [RELEASE] = "releasing !release",
      [ABANDON] = "undoing !release", [EXPORT] = "over", [SAME] = "held renew", [NEXT] = "held renew"}},
    {"renewal sent", renewal_sent,
     {[TAKE] = "held ?renew", [YES] = "held", [NO] = "lost: lost not owned", [AGAIN] = "held !renew", [REFUSED] = "held",
      [FORBID] = "held", [UNKNOWN] = "held", [AWAY] = "held ?renew", [EXTEND] = "held add ?renew",
      [RELEASE] = "releasing !release ?renew", [ABANDON] = "undoing !release ?renew", [EXPORT] = "ended ?renew",
      [SAME] = "held ?renew", [NEXT] = "held ?renew"}},
    {"restoring sent", restoring_sent,
     {[TAKE] = "held ?restore", [YES] = "held", [NO] = "lost: lost not owned", [AGAIN] = "held !renew",
      [REFUSED] = "held", [FORBID] = "held", [UNKNOWN] = "held", [AWAY] = "held ?restore",
      [EXTEND] = "held add ?restore", [RELEASE] = "releasing !release ?restore",
      [ABANDON] = "undoing !release ?restore", [EXPORT] = "ended ?restore", [SAME] = "held ?restore",
      [NEXT] = "held ?restore"}},
    {"release behind restoring", release_behind_restoring,
     {[TAKE] = "releasing ?restore ?release", [YES] = "releasing ?release", [NO] = "releasing ?release",
      [AGAIN] = "releasing ?release", [REFUSED] = "releasing ?release", [FORBID] = "releasing ?release",
      [UNKNOWN] = "releasing ?release", [AWAY] = "releasing ?restore ?release",
      [ABANDON] = "undoing ?restore ?release", [SAME] = "releasing ?restore ?release",
      [NEXT] = "undoing ?restore ?release: released unreachable"}},
    {"renewal refused", renewal_refused,
     {[TAKE] = "held", [AWAY] = "held", [BACK] = "held !renew", [BACK_UNSETTLED] = "held !renew",
      [BACK_REPLACED] = "held !renew", [EXTEND] = "held !add", [RELEASE] = "releasing !release",
      [ABANDON] = "undoing !release", [EXPORT] = "over", [SAME] = "held", [NEXT] = "held !renew"}},
    {"extension wanted", extension_wanted,
     {[TAKE] = "held ?add", [AWAY] = "held add", [BACK] = "held add", [BACK_UNSETTLED] = "held add",
      [BACK_REPLACED] = "held add", [RELEASE] = "releasing !release", [ABANDON] = "undoing !release",
      [EXPORT] = "over", [SAME] = "held add", [NEXT] = "held: extended unreachable"}},
    {"addition sent", addition_sent,
     {[TAKE] = "held ?add", [YES] = "held: extended ok", [NO] = "lost: extended not owned lost not owned",
      [AGAIN] = "held !add", [REFUSED] = "held: extended refused", [FORBID] = "held: extended forbidden",
      [UNKNOWN] = "held: extended unreachable", [AWAY] = "held ?add", [RELEASE] = "releasing !release ?add",
      [ABANDON] = "undoing !release ?add", [EXPORT] = "ended ?add", [SAME] = "held ?add",
      [NEXT] = "held ?add: extended unreachable"}},
    {"replacement sent", replacement_sent,
     {[TAKE] = "held ?replace", [YES] = "held: extended ok", [NO] = "lost: extended not owned lost not owned",
      [AGAIN] = "held !replace", [REFUSED] = "held: extended refused", [FORBID] = "held: extended forbidden",
      [UNKNOWN] = "held: extended unreachable", [AWAY] = "held ?replace",
      [RELEASE] = "releasing !release ?replace", [ABANDON] = "undoing !release ?replace", [EXPORT] = "ended ?replace",
      [SAME] = "held ?replace", [NEXT] = "held ?replace: extended unreachable"}},
    {"extension behind renewal", extension_behind_renewal,
     {[TAKE] = "held add ?renew", [YES] = "held !add", [NO] = "lost: extended not owned lost not owned",
      [AGAIN] = "held !add", [REFUSED] = "held !add", [FORBID] = "held !add", [UNKNOWN] = "held !add",
      [AWAY] = "held add ?renew", [RELEASE] = "releasing !release ?renew",
      [ABANDON] = "undoing !release ?renew", [EXPORT] = "ended ?renew", [SAME] = "held add ?renew",
      [NEXT] = "held ?renew: extended unreachable"}},
    {"extension given up", extension_given_up,
     {[TAKE] = "held ?add", [YES] = "held", [NO] = "lost: lost not owned", [AGAIN] = "held", [REFUSED] = "held",
      [FORBID] = "held", [UNKNOWN] = "held", [AWAY] = "held ?add", [EXTEND] = "held add ?add",
      [RELEASE] = "releasing !release ?add", [ABANDON] = "undoing !release ?add", [EXPORT] = "ended ?add",
      [SAME] = "held ?add", [NEXT] = "held ?add"}},
    {"held elsewhere", held_elsewhere,
     {[TAKE] = "held ?acquire", [YES] = "held", [NO] = "held", [AGAIN] = "held", [REFUSED] = "held",
      [FORBID] = "held", [UNKNOWN] = "held", [AWAY] = "held ?acquire", [EXTEND] = "held add ?acquire",
      [RELEASE] = "releasing !release ?acquire", [ABANDON] = "undoing !release ?acquire", [EXPORT] = "ended ?acquire",
      [SAME] = "held ?acquire", [NEXT] = "held ?acquire"}},
    {"raise wanted", raise_wanted,
     {[TAKE] = "acquiring ?raise", [AWAY] = "acquiring", [BACK] = "acquiring raise",
      [BACK_UNSETTLED] = "acquiring raise", [BACK_REPLACED] = "acquiring raise", [ABANDON] = "undoing !release",
      [SAME] = "acquiring raise", [NEXT] = "acquiring raise"}},
    {"raise sent", raise_sent,
     {[TAKE] = "acquiring ?raise", [YES] = "held: granted", [NO] = "acquiring", [AGAIN] = "acquiring !raise",
      [REFUSED] = "acquiring", [FORBID] = "acquiring", [UNKNOWN] = "acquiring", [AWAY] = "acquiring ?raise",
      [ABANDON] = "undoing !release ?raise", [SAME] = "acquiring ?raise", [NEXT] = "acquiring ?raise"}},
    {"raise overtaken", raise_overtaken,
     {[TAKE] = "held ?raise", [YES] = "held", [NO] = "held", [AGAIN] = "held", [REFUSED] = "held", [FORBID] = "held",
      [UNKNOWN] = "held", [AWAY] = "held ?raise", [EXTEND] = "held add ?raise", [RELEASE] = "releasing !release ?raise",
      [ABANDON] = "undoing !release ?raise", [EXPORT] = "ended ?raise", [SAME] = "held ?raise",
      [NEXT] = "held ?raise"}},
    {"rearm wanted", rearm_wanted,
     {[TAKE] = "held ?rearm", [AWAY] = "held", [BACK] = "held rearm", [BACK_UNSETTLED] = "held rearm",
      [BACK_REPLACED] = "held rearm", [EXTEND] = "held !add", [RELEASE] = "releasing !release", [ABANDON] = "undoing",
      [EXPORT] = "over", [SAME] = "held rearm", [NEXT] = "held rearm"}},
    {"rearm sent", rearm_sent,
     {[TAKE] = "held ?rearm", [YES] = "held", [NO] = "held", [AGAIN] = "held", [REFUSED] = "held", [FORBID] = "held",
      [UNKNOWN] = "held", [AWAY] = "held ?rearm", [EXTEND] = "held add ?rearm", [RELEASE] = "releasing !release ?rearm",
      [ABANDON] = "undoing !release ?rearm", [EXPORT] = "ended ?rearm", [SAME] = "held ?rearm",
      [NEXT] = "held ?rearm"}},
    {"mend planned", mend_planned,
     {[TAKE] = "held", [AWAY] = "held", [BACK] = "held", [BACK_UNSETTLED] = "held", [BACK_REPLACED] = "held",
      [EXTEND] = "held !add", [RELEASE] = "releasing !release", [ABANDON] = "undoing", [EXPORT] = "over",
      [SAME] = "held", [NEXT] = "held !mend"}},
    {"mend wanted", mend_wanted,
     {[TAKE] = "held ?mend", [AWAY] = "held", [BACK] = "held mend", [BACK_UNSETTLED] = "held mend",
      [BACK_REPLACED] = "held mend", [EXTEND] = "held !add", [RELEASE] = "releasing !release", [ABANDON] = "undoing",
      [EXPORT] = "over", [SAME] = "held mend", [NEXT] = "lost: lost expired"}},
    {"mend sent", mend_sent,
     {[TAKE] = "held ?mend", [YES] = "held", [NO] = "held", [AGAIN] = "held", [REFUSED] = "held", [FORBID] = "held",
      [UNKNOWN] = "held", [AWAY] = "held ?mend", [EXTEND] = "held add ?mend", [RELEASE] = "releasing !release ?mend",
      [ABANDON] = "undoing !release ?mend", [EXPORT] = "ended ?mend", [SAME] = "held ?mend",
      [NEXT] = "lost ?mend: lost expired"}},
    {"lost while mending", lost_while_mending,
     {[TAKE] = "lost ?mend", [YES] = "lost", [NO] = "lost", [AGAIN] = "lost", [REFUSED] = "lost", [FORBID] = "lost",
      [UNKNOWN] = "lost", [AWAY] = "lost ?mend", [RELEASE] = "releasing !release ?mend", [ABANDON] = "undoing !release ?mend",
      [SAME] = "lost ?mend"}},
    {"release behind mend", release_behind_mend,
     {[TAKE] = "releasing ?mend ?release", [YES] = "releasing ?release", [NO] = "releasing ?release",
      [AGAIN] = "releasing ?release", [REFUSED] = "releasing ?release", [FORBID] = "releasing ?release",
      [UNKNOWN] = "releasing ?release", [AWAY] = "releasing ?mend ?release",
      [ABANDON] = "undoing ?mend ?release", [SAME] = "releasing ?mend ?release",
      [NEXT] = "undoing ?mend ?release: released unreachable"}},
    {"renewal of three wanted", one_renewal_of_three_wanted,
     {[TAKE] = "held ?renew", [AWAY] = "held", [BACK] = "held renew", [BACK_UNSETTLED] = "held renew",
      [BACK_REPLACED] = "held renew", [EXTEND] = "held !add", [RELEASE] = "releasing !release",
      [ABANDON] = "undoing !release", [EXPORT] = "over", [SAME] = "held renew", [NEXT] = "held renew"}},
    {"extension of three wanted", one_extension_of_three_wanted,
     {[TAKE] = "held ?add", [AWAY] = "held", [BACK] = "held add", [BACK_UNSETTLED] = "held add",
      [BACK_REPLACED] = "held add", [RELEASE] = "releasing !release", [ABANDON] = "undoing !release",
      [EXPORT] = "over", [SAME] = "held add", [NEXT] = "held: extended quorum"}},
    {"last extension of three wanted", last_extension_of_three_wanted,
     {[TAKE] = "held ?add", [AWAY] = "held: extended quorum", [BACK] = "held add", [BACK_UNSETTLED] = "held add",
      [BACK_REPLACED] = "held add", [RELEASE] = "releasing !release", [ABANDON] = "undoing !release",
      [EXPORT] = "over", [SAME] = "held add", [NEXT] = "held add"}},
    {"lost while rearming", lost_while_rearming,
     {[TAKE] = "lost ?rearm", [YES] = "lost", [NO] = "lost", [AGAIN] = "lost", [REFUSED] = "lost", [FORBID] = "lost",
      [UNKNOWN] = "lost", [AWAY] = "lost ?rearm", [RELEASE] = "releasing !release ?rearm", [ABANDON] = "undoing !release ?rearm",
      [SAME] = "lost ?rearm"}},
    {"release behind rearm", release_behind_rearm,
     {[TAKE] = "releasing ?rearm ?release", [YES] = "releasing ?release", [NO] = "releasing ?release",
      [AGAIN] = "releasing ?release", [REFUSED] = "releasing ?release", [FORBID] = "releasing ?release",
      [UNKNOWN] = "releasing ?release", [AWAY] = "releasing ?rearm ?release",
      [ABANDON] = "undoing ?rearm ?release", [SAME] = "releasing ?rearm ?release",
      [NEXT] = "undoing ?rearm ?release: released unreachable"}},
    {"undo before rearms answer", undo_before_rearms_answer,
     {[TAKE] = "undoing ?rearm ?release", [YES] = "undoing !release", [NO] = "undoing", [AGAIN] = "undoing",
      [REFUSED] = "undoing", [FORBID] = "undoing", [UNKNOWN] = "undoing !release", [AWAY] = "undoing release ?rearm", [ABANDON] = "undoing release ?rearm",
      [SAME] = "undoing release ?rearm"}},
    {"undo behind rearm", undo_behind_rearm,
     {[TAKE] = "undoing ?rearm ?release", [YES] = "undoing ?release", [NO] = "undoing ?release",
      [AGAIN] = "undoing ?release", [REFUSED] = "undoing ?release", [FORBID] = "undoing ?release",
      [UNKNOWN] = "undoing ?release", [AWAY] = "undoing ?rearm ?release",
      [ABANDON] = "undoing ?rearm ?release", [SAME] = "undoing ?rearm ?release"}},
    {"undo behind raise", undo_behind_raise,
     {[TAKE] = "undoing ?raise ?release", [YES] = "undoing ?release", [NO] = "undoing ?release",
      [AGAIN] = "undoing ?release", [REFUSED] = "undoing ?release", [FORBID] = "undoing ?release",
      [UNKNOWN] = "undoing ?release", [AWAY] = "undoing ?raise ?release",
      [ABANDON] = "undoing ?raise ?release", [SAME] = "undoing ?raise ?release"}},
    {"lost", lost,
     {[TAKE] = "lost", [AWAY] = "lost", [BACK] = "lost", [BACK_UNSETTLED] = "lost", [BACK_REPLACED] = "lost",
      [RELEASE] = "releasing !release", [ABANDON] = "undoing !release", [SAME] = "lost"}},
    {"lost while renewing", lost_while_renewing,
     {[TAKE] = "lost ?renew", [YES] = "lost", [NO] = "lost", [AGAIN] = "lost", [REFUSED] = "lost", [FORBID] = "lost",
      [UNKNOWN] = "lost", [AWAY] = "lost ?renew", [RELEASE] = "releasing !release ?renew", [ABANDON] = "undoing !release ?renew",
      [SAME] = "lost ?renew"}},
    {"gone", gone,
     {[TAKE] = "lost", [AWAY] = "lost", [BACK] = "lost", [BACK_UNSETTLED] = "lost", [BACK_REPLACED] = "lost",
      [RELEASE] = "releasing !release", [ABANDON] = "over", [SAME] = "lost"}},
    {"release wanted", release_wanted,
     {[TAKE] = "releasing ?release", [AWAY] = "releasing release", [BACK] = "releasing release",
      [BACK_UNSETTLED] = "releasing release", [BACK_REPLACED] = "releasing release", [ABANDON] = "undoing !release",
      [SAME] = "releasing release", [NEXT] = "undoing !release: released unreachable"}},
    {"release sent", release_sent,
     {[TAKE] = "releasing ?release", [YES] = "over: released ok", [NO] = "over: released not owned",
      [AGAIN] = "releasing !release", [REFUSED] = "releasing", [FORBID] = "over: released forbidden",
      [UNKNOWN] = "releasing !release", [AWAY] = "releasing ?release", [ABANDON] = "undoing ?release",
      [SAME] = "releasing ?release", [NEXT] = "undoing ?release: released unreachable"}},
    {"release behind renewal", release_behind_renewal,
     {[TAKE] = "releasing ?renew ?release", [YES] = "releasing ?release", [NO] = "releasing ?release",
      [AGAIN] = "releasing ?release", [REFUSED] = "releasing ?release", [FORBID] = "releasing ?release",
      [UNKNOWN] = "releasing ?release", [AWAY] = "releasing ?renew ?release",
      [ABANDON] = "undoing ?renew ?release", [SAME] = "releasing ?renew ?release",
      [NEXT] = "undoing ?renew ?release: released unreachable"}},
    {"release before renewals answer", release_before_renewals_answer,
     {[TAKE] = "releasing ?renew ?release", [YES] = "releasing !release", [NO] = "releasing !release",
      [AGAIN] = "releasing !release", [REFUSED] = "releasing !release", [FORBID] = "releasing !release",
      [UNKNOWN] = "releasing !release", [AWAY] = "releasing release ?renew",
      [ABANDON] = "undoing !release ?renew", [SAME] = "releasing release ?renew",
      [NEXT] = "undoing !release ?renew: released unreachable"}},
    {"release refused", release_refused,
     {[TAKE] = "releasing", [AWAY] = "releasing", [BACK] = "releasing", [BACK_UNSETTLED] = "releasing",
      [BACK_REPLACED] = "releasing", [ABANDON] = "undoing !release", [SAME] = "releasing",
      [NEXT] = "releasing !release"}},
    {"release after loss", release_after_loss,
     {[TAKE] = "releasing ?release", [YES] = "over: released ok", [NO] = "over: released not owned",
      [AGAIN] = "releasing !release", [REFUSED] = "releasing", [FORBID] = "over: released forbidden",
      [UNKNOWN] = "releasing !release", [AWAY] = "releasing ?release", [ABANDON] = "undoing ?release",
      [SAME] = "releasing ?release", [NEXT] = "undoing ?release: released unreachable"}},
    {"undo wanted", undo_wanted,
     {[TAKE] = "undoing ?release", [AWAY] = "undoing release", [BACK] = "undoing release",
      [BACK_UNSETTLED] = "undoing release", [BACK_REPLACED] = "undoing release", [ABANDON] = "undoing release",
      [SAME] = "undoing release", [NEXT] = "over"}},
    {"undo sent", undo_sent,
     {[TAKE] = "undoing ?release", [YES] = "over", [NO] = "over", [AGAIN] = "undoing !release", [REFUSED] = "undoing",
      [FORBID] = "over", [UNKNOWN] = "undoing !release", [AWAY] = "undoing ?release", [ABANDON] = "undoing ?release",
      [SAME] = "undoing ?release", [NEXT] = "ended ?release"}},
    {"undo before acquires answer", undo_before_acquires_answer,
     {[TAKE] = "undoing ?acquire ?release", [YES] = "undoing !release", [NO] = "over", [AGAIN] = "over",
      [REFUSED] = "over", [FORBID] = "over", [UNKNOWN] = "undoing !release", [AWAY] = "undoing release ?acquire", [ABANDON] = "undoing release ?acquire",
      [SAME] = "undoing release ?acquire"}},
    {"undo behind acquire", undo_behind_acquire,
     {[TAKE] = "undoing ?acquire ?release", [YES] = "undoing ?release", [NO] = "ended ?release",
      [AGAIN] = "ended ?release", [REFUSED] = "ended ?release", [FORBID] = "ended ?release",
      [UNKNOWN] = "undoing ?release", [AWAY] = "undoing ?acquire ?release",
      [ABANDON] = "undoing ?acquire ?release", [SAME] = "undoing ?acquire ?release"}},
    {"undo behind renewal", undo_behind_renewal,
     {[TAKE] = "undoing ?renew ?release", [YES] = "undoing ?release", [NO] = "ended ?release",
      [AGAIN] = "undoing ?release", [REFUSED] = "undoing ?release", [FORBID] = "undoing ?release",
      [UNKNOWN] = "undoing ?release", [AWAY] = "undoing ?renew ?release",
      [ABANDON] = "undoing ?renew ?release", [SAME] = "undoing ?renew ?release"}},
    {"undo of a lost acquire", undo_of_a_lost_acquire,
     {[TAKE] = "undoing ?release", [AWAY] = "undoing release", [BACK] = "undoing release",
      [BACK_UNSETTLED] = "undoing release", [BACK_REPLACED] = "undoing release", [ABANDON] = "undoing release",
      [SAME] = "undoing release"}},
    {"undo of a stray acquire", undo_of_a_stray_acquire,
     {[TAKE] = "undoing", [AWAY] = "undoing", [BACK] = "undoing", [BACK_UNSETTLED] = "undoing",
      [BACK_REPLACED] = "undoing", [ABANDON] = "undoing", [SAME] = "undoing", [NEXT] = "undoing !release"}},
    {"join wanted", join_wanted,
     {[TAKE] = "acquiring ?acquire", [LOOK] = "acquiring acquire", [GRANTED] = "held: granted",
      [AWAY] = "over: failed unreachable", [BACK] = "acquiring acquire", [BACK_UNSETTLED] = "acquiring acquire",
      [BACK_REPLACED] = "acquiring acquire", [ABANDON] = "over", [SAME] = "acquiring acquire"}},
    {"join sent", join_sent,
     {[TAKE] = "acquiring ?acquire", [YES] = "held: granted",
      [AGAIN] = "acquiring !acquire", [REFUSED] = "undoing !release: failed refused",
      [FORBID] = "undoing !release: failed forbidden", [UNKNOWN] = "undoing !release: failed unreachable",
      [QUEUED] = "acquiring", [LOOK] = "acquiring acquire ?acquire", [GRANTED] = "held ?acquire: granted",
      [AWAY] = "acquiring ?acquire",
      [ABANDON] = "undoing !release ?acquire", [SAME] = "acquiring ?acquire"}},
    {"waiting", waiting,
     {[TAKE] = "acquiring", [LOOK] = "acquiring !acquire", [GRANTED] = "held: granted", [AWAY] = "acquiring",
      [BACK] = "acquiring", [BACK_UNSETTLED] = "acquiring", [BACK_REPLACED] = "acquiring",
      [ABANDON] = "undoing !release", [SAME] = "acquiring"}},
    {"look wanted", look_wanted,
     {[TAKE] = "acquiring ?acquire", [LOOK] = "acquiring acquire", [GRANTED] = "held: granted", [AWAY] = "acquiring",
      [BACK] = "acquiring acquire", [BACK_UNSETTLED] = "acquiring acquire", [BACK_REPLACED] = "acquiring acquire",
      [ABANDON] = "undoing !release", [SAME] = "acquiring acquire"}},
    {"look sent", look_sent,
     {[TAKE] = "acquiring ?acquire", [YES] = "held: granted",
      [AGAIN] = "acquiring !acquire", [REFUSED] = "undoing !release: failed refused",
      [FORBID] = "undoing !release: failed forbidden", [UNKNOWN] = "undoing !release: failed unreachable",
      [QUEUED] = "acquiring", [LOOK] = "acquiring acquire ?acquire", [GRANTED] = "held ?acquire: granted",
      [AWAY] = "acquiring ?acquire",
      [ABANDON] = "undoing !release ?acquire", [SAME] = "acquiring ?acquire"}},
    {"granted before the looks answer", granted_before_the_looks_answer,
     {[TAKE] = "held ?acquire", [YES] = "held", [AGAIN] = "held", [REFUSED] = "held",
      [FORBID] = "held", [UNKNOWN] = "held", [QUEUED] = "held", [LOOK] = "held ?acquire",
      [GRANTED] = "held ?acquire", [AWAY] = "held ?acquire", [EXTEND] = "held add ?acquire",
      [RELEASE] = "releasing !release ?acquire", [ABANDON] = "undoing !release ?acquire", [EXPORT] = "ended ?acquire",
      [SAME] = "held ?acquire", [NEXT] = "held ?acquire"}},
    {"lost before the looks answer", lost_before_the_looks_answer,
     {[TAKE] = "lost ?acquire", [YES] = "lost", [AGAIN] = "lost", [REFUSED] = "lost",
      [FORBID] = "lost", [UNKNOWN] = "lost", [QUEUED] = "lost", [LOOK] = "lost ?acquire",
      [GRANTED] = "lost ?acquire", [AWAY] = "lost ?acquire",
      [RELEASE] = "releasing !release ?acquire", [ABANDON] = "undoing !release ?acquire", [SAME] = "lost ?acquire"}},
    {"release behind look", release_behind_look,
     {[TAKE] = "releasing ?acquire ?release", [YES] = "releasing ?release",
      [AGAIN] = "releasing ?release", [REFUSED] = "releasing ?release", [FORBID] = "releasing ?release",
      [UNKNOWN] = "releasing ?release", [QUEUED] = "releasing ?release", [LOOK] = "releasing ?acquire ?release",
      [GRANTED] = "releasing ?acquire ?release", [AWAY] = "releasing ?acquire ?release", [ABANDON] = "undoing ?acquire ?release",
      [SAME] = "releasing ?acquire ?release", [NEXT] = "undoing ?acquire ?release: released unreachable"}},
    {"leave wanted", leave_wanted,
     {[TAKE] = "undoing ?release", [LOOK] = "undoing release", [GRANTED] = "undoing release",
      [AWAY] = "undoing release", [BACK] = "undoing release", [BACK_UNSETTLED] = "undoing release",
      [BACK_REPLACED] = "undoing release", [ABANDON] = "undoing release", [SAME] = "undoing release"}},
    {"leave sent", leave_sent,
     {[TAKE] = "undoing ?release", [YES] = "over", [NO] = "over", [AGAIN] = "undoing !release", [REFUSED] = "undoing",
      [FORBID] = "over", [UNKNOWN] = "undoing !release", [LOOK] = "undoing ?release",
      [GRANTED] = "undoing ?release", [AWAY] = "undoing ?release", [ABANDON] = "undoing ?release",
      [SAME] = "undoing ?release"}},
    {"leave refused", leave_refused,
     {[TAKE] = "undoing", [LOOK] = "undoing", [GRANTED] = "undoing", [AWAY] = "undoing", [BACK] = "undoing",
      [BACK_UNSETTLED] = "undoing", [BACK_REPLACED] = "undoing", [ABANDON] = "undoing", [SAME] = "undoing",
      [NEXT] = "undoing !release"}},
    {"leave behind look", leave_behind_look,
     {[TAKE] = "undoing ?acquire ?release", [YES] = "undoing ?release",
      [AGAIN] = "undoing ?release", [REFUSED] = "undoing ?release", [FORBID] = "undoing ?release",
      [UNKNOWN] = "undoing ?release", [QUEUED] = "undoing ?release", [LOOK] = "undoing ?acquire ?release",
      [GRANTED] = "undoing ?acquire ?release", [AWAY] = "undoing ?acquire ?release", [ABANDON] = "undoing ?acquire ?release",
      [SAME] = "undoing ?acquire ?release"}},
    {"leave of a lost look", leave_of_a_lost_look,
     {[TAKE] = "undoing ?release", [LOOK] = "undoing release", [GRANTED] = "undoing release",
      [AWAY] = "undoing release", [BACK] = "undoing release", [BACK_UNSETTLED] = "undoing release",
      [BACK_REPLACED] = "undoing release", [ABANDON] = "undoing release", [SAME] = "undoing release"}},
    {"gone from the queue", gone_from_the_queue,
     {[TAKE] = "over", [LOOK] = "over", [GRANTED] = "over", [AWAY] = "over", [BACK] = "over",
      [BACK_UNSETTLED] = "over", [BACK_REPLACED] = "over", [ABANDON] = "over", [SAME] = "over"}},
    {"over", over,
     {[TAKE] = "over", [AWAY] = "over", [BACK] = "over", [BACK_UNSETTLED] = "over", [BACK_REPLACED] = "over",
      [ABANDON] = "over", [SAME] = "over"}},
    {"exported while renewing", exported_while_renewing,
     {[TAKE] = "ended ?renew", [YES] = "over", [NO] = "over", [AGAIN] = "over", [REFUSED] = "over", [FORBID] = "over",
      [UNKNOWN] = "over", [AWAY] = "ended ?renew", [ABANDON] = "ended ?renew", [SAME] = "ended ?renew"}},
    {"ended before the last answer", ended_before_the_last_answer,
     {[TAKE] = "ended ?release", [YES] = "over", [NO] = "over", [AGAIN] = "over", [REFUSED] = "over",
      [FORBID] = "over", [UNKNOWN] = "over", [AWAY] = "ended ?release", [ABANDON] = "ended ?release",
      [SAME] = "ended ?release"}},
};
/* clang-format on */

static void do_input(struct bench *b, enum input input) {
    switch (input) {
    case TAKE:
        fresh(b);
        takes(b, 0, LEASE_NOTHING);
        break;
    case YES:
        yes_ttl(b, 0, TTL);
        break;
    case NO:
        no(b, 0);
        break;
    case AGAIN:
        again(b, 0);
        break;
    case REFUSED:
        refused(b, 0);
        break;
    case FORBID:
        forbidden(b, 0);
        break;
    case UNKNOWN:
        unknown(b, 0);
        break;
    case QUEUED:
        queued(b);
        break;
    case LOOK:
        look(b);
        break;
    case GRANTED:
        granted(b, b->now);
        break;
    case AWAY:
        away(b, 0);
        break;
    case BACK:
        back(b, 0, SETTLED);
        break;
    case BACK_UNSETTLED:
        back(b, 0, UNSETTLED);
        break;
    case BACK_REPLACED:
        back(b, 0, REPLACED);
        break;
    case EXTEND:
        extend(b, LEASE_ADD, SECOND);
        break;
    case RELEASE:
        release(b);
        break;
    case ABANDON:
        abandon(b);
        break;
    case EXPORT:
        fresh(b);
        evl_lease_export(b->lease);
        break;
    case SAME:
        pass(b, 0);
        break;
    case NEXT:
        until(b, evl_lease_next(b->lease));
        break;
    case INPUTS:
        break;
    }
}

static bool possible(const struct bench *b, enum input input) {
    const struct lease_slot *slot = &b->lease->slots[0];

    switch (input) {
    case YES:
    case AGAIN:
    case REFUSED:
    case FORBID:
    case UNKNOWN:
        return slot->flying || slot->releasing;
    case NO: /* who joins the queue has the lock or waits */
        return slot->flying ? slot->flying != LEASE_ACQUIRE || !b->lease->queued : slot->releasing;
    case QUEUED:
        return b->lease->queued && slot->flying == LEASE_ACQUIRE;
    case BACK:
    case BACK_UNSETTLED:
    case BACK_REPLACED:
        return !slot->flying && !slot->releasing;
    case LOOK:
    case GRANTED:
        return b->lease->queued;
    case EXTEND:
        return b->lease->state == LEASE_HELD && !b->lease->extending;
    case RELEASE:
        return b->lease->state == LEASE_HELD || b->lease->state == LEASE_LOST;
    case EXPORT:
        return b->lease->state == LEASE_HELD;
    case NEXT:
        return evl_lease_next(b->lease) != LEASE_NEVER;
    default:
        return true;
    }
}

/* The node does all that it was asked. */
static void answers(struct bench *b, unsigned node) {
    while (b->lease->slots[node].flying || b->lease->slots[node].releasing) {
        yes_ttl(b, node, TTL);
        tells_nothing(b);
    }
}

/* Wherever a lease is, it comes to its end once it is abandoned and the nodes are there and answer. */
static void comes_to_its_end(struct bench *b) {
    abandon(b);
    for (unsigned i = 0; i < b->lease->nodes; i++) {
        answers(b, i);
        back(b, i, SETTLED);
    }
    for (int turn = 0; turn < 40 && !evl_lease_over(b->lease); turn++)
        for (unsigned i = 0; i < b->lease->nodes; i++) {
            takes(b, i, LEASE_NOTHING);
            answers(b, i);
            if (evl_lease_next(b->lease) != LEASE_NEVER)
                until(b, evl_lease_next(b->lease));
        }
    is_over(b);
}

CASE(each_state_takes_each_input) {
    int failed = 0;

    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        for (enum input input = 0; input < INPUTS; input++) {
            const char *expected = rows[r].outcomes[input];
            struct bench b = bench_new();

            rows[r].arrange(&b);
            assert_int_equal(possible(&b, input), expected != NULL);
            if (!expected)
                continue;
            do_input(&b, input);
            if (strcmp(outcome(&b, 0), expected) != 0) {
                print_error("%s, %s: \"%s\", not \"%s\"\n", rows[r].name, input_names[input], outcome(&b, 0), expected);
                failed++;
            }
            comes_to_its_end(&b);
        }
    }
    assert_int_equal(failed, 0);
}

/* What the compiler cannot exclude: a state or a verdict that is none, or not one of a release's, leads to nothing. */
CASE(what_is_no_state_takes_no_input) {
    for (enum input input = 0; input < INPUTS; input++) {
        struct bench b = bench_new();

        if (input == QUEUED || input == EXTEND || input == RELEASE || input == EXPORT)
            continue;
        waits(&b);
        granted(&b, b.now);
        b.lease->slots[0].flying = input < LOOK ? LEASE_RENEW : LEASE_NOTHING;
        b.lease->state = 7;
        next_is(&b, LEASE_NEVER);
        do_input(&b, input);
        tells_nothing(&b);
        wakes(&b, 0);
        is_in(&b, 7);
    }
}

#ifdef NDEBUG /* or else it is asserted that it is not said */
CASE(what_is_no_verdict_says_nothing) {
    static void (*const asked[])(struct bench * b) = {acquire_sent, release_sent, undo_sent, mend_sent};
    static const enum lease_verdict said[] = {LEASE_QUEUED, (enum lease_verdict)UINT8_MAX};

    for (size_t a = 0; a < 8; a++) {
        struct bench b = bench_new();

        asked[a % 4](&b);
        enum lease_state before = b.lease->state;
        answer(&b, 0, said[a / 4], 0, 0);
        tells_nothing(&b);
        wakes(&b, 0);
        is_in(&b, before);
    }
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_state_takes_each_input),
        cmocka_unit_test(what_is_no_state_takes_no_input),
#ifdef NDEBUG
        cmocka_unit_test(what_is_no_verdict_says_nothing),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
