/*
 * The lock algorithm; see lease.h. One function per input: what may come in any state is a switch over every state, or
 * asks for the one where it matters; a call that is allowed in some asserts that it is one of them. evl_lease_next()
 * alone derives from the state when time matters next. It owns nothing but the struct that it is given.
 */
#include "lease.h"

#include <string.h>

#include <evlock/evlock.h>

#include "check.h"
#include "minmax.h"
#include "quorum.h"

#define MS INT64_C(1000)
#define SECOND (1000 * MS)

enum { OPEN, YES, NO };                  /* slot.vote */
enum { CLEAR, ASKED, MAYBE, THERE };     /* slot.trace; ASKED: CLEAR but for what is unanswered */
enum { SETTLED, UNSEEN, MAY_STILL_RUN }; /* slot.stray; UNSEEN: the node has not been back since */

/* A token without expiry has no ttl after which an undo is needless: this counts as one. */
static const int64_t undo_without_expiry = SECOND * 24 * 3600;

int64_t evl_lease_drift(int64_t ttl) {
    return ttl / 100 + 2 * MS;
}

static int64_t lease_lifetime(int64_t ttl) {
    return ttl == LEASE_NEVER ? undo_without_expiry : ttl;
}

/* Until when a node keeps what it was asked for at `sent` and granted for `ttl`. */
static int64_t lease_kept_until(int64_t sent, int64_t ttl) {
    return ttl == LEASE_NEVER ? LEASE_NEVER : evl_max(sent + ttl - evl_lease_drift(ttl), 1);
}

/* The token is on a server for so long, perhaps. */
static void lease_note_life(struct lease *lease, int64_t life) {
    uint32_t ms = (uint32_t)evl_min((life + MS - 1) / MS, LEASE_AGES);

    if (lease->longest_ms < ms)
        lease->longest_ms = ms;
}

static int64_t lease_longest_life(const struct lease *lease) {
    return lease->longest_ms == LEASE_AGES ? LEASE_NEVER : lease->longest_ms * MS;
}

/* For how long a node that has the token for `ttl` is believed in: if it starts again without its data, it is asked for
 * nothing for no longer than the greatest ttl. */
static int64_t lease_believed(const struct lease *lease, int64_t ttl) {
    return lease->terms->max_ttl ? evl_min(ttl, lease->terms->max_ttl) : ttl;
}

/* The ttl of which this is kept: the reverse of lease_kept_until(). */
static int64_t lease_ttl_for(int64_t span) {
    return span + 2 * MS + (span + 2 * MS) / 99;
}

/* A replacement's ttl as it is kept: rounded down, and weeks at most, which no lease is believed in for longer then. */
static uint32_t lease_in_ms(int64_t ttl) {
    return (uint32_t)evl_min(ttl / MS, LEASE_NO_CUT - 1);
}

static int64_t lease_cut_to(const struct lease_slot *slot) {
    return slot->cut_ms == LEASE_NO_CUT ? LEASE_NEVER : slot->cut_ms * MS;
}

/* Until then, a majority still keeps the token. Not inlined, so that who has one node does not pay for the room. */
__attribute__((noinline)) static int64_t lease_majority_deadline(const struct lease *lease) {
    int64_t deadlines[LEASE_NODES] = {0};

    for (unsigned i = 0; i < lease->nodes; i++)
        deadlines[i] = lease->slots[i].deadline;
    return evl_quorum_number(deadlines, lease->nodes);
}

int64_t evl_lease_deadline(const struct lease *lease) {
    if (lease->state != LEASE_HELD)
        return 0;
    return lease->nodes == 1 ? lease->slots[0].deadline : lease_majority_deadline(lease);
}

int64_t evl_lease_moment(int64_t ttl) {
    return ttl ? evl_min(MS, ttl / 20) : MS;
}

/* It keeps the token for as long as that is believed in, but for a moment. */
static bool lease_keeps(const struct lease *lease, const struct lease_slot *slot) {
    return slot->deadline >= evl_lease_deadline(lease) - evl_lease_moment(lease->terms->ttl);
}

unsigned evl_lease_keepers(const struct lease *lease) {
    unsigned count = 0;

    for (unsigned i = 0; i < lease->nodes; i++)
        count += lease->state == LEASE_HELD && lease_keeps(lease, &lease->slots[i]);
    return count;
}

static int64_t lease_told_lost_at(const struct lease *lease) {
    int64_t deadline = evl_lease_deadline(lease);
    return deadline == LEASE_NEVER ? LEASE_NEVER : deadline - lease->terms->lead;
}

/* The pause before something that was refused is tried again, short beside the time there is for it. */
static int64_t lease_retry_pause(int64_t whole) {
    return evl_min(evl_max(whole / 8, 10 * MS), SECOND);
}

/* Whether a command of a lease that is held may bring the token to a node where it is not, as an acquire does. */
static bool lease_arms(enum lease_command command) {
    return command == LEASE_REARM || command == LEASE_MEND;
}

bool evl_lease_prolongs(enum lease_command command) {
    return evl_lease_renews(command) || command == LEASE_ADD || command == LEASE_REPLACE;
}

static unsigned lease_votes(const struct lease *lease, unsigned vote) {
    unsigned count = 0;
    for (unsigned i = 0; i < lease->nodes; i++)
        count += lease->slots[i].vote == vote;
    return count;
}

static bool lease_agreed(const struct lease *lease) {
    return evl_quorum_reached(lease->nodes, lease_votes(lease, YES));
}

static bool lease_hopeless(const struct lease *lease) {
    return evl_quorum_missed(lease->nodes, lease_votes(lease, NO));
}

static void lease_open_votes(struct lease *lease) {
    for (unsigned i = 0; i < lease->nodes; i++)
        lease->slots[i].vote = OPEN;
    lease->status = 0;
}

/* A release may follow an unanswered command on the same connection; anything else waits for the answer. */
static void lease_want(struct lease *lease, unsigned node, enum lease_command command, struct lease_out *out) {
    struct lease_slot *slot = &lease->slots[node];

    slot->want = command;
    if (!slot->flying || command == LEASE_RELEASE)
        out->wake |= 1U << node;
}

static void lease_want_nothing(struct lease *lease) {
    for (unsigned i = 0; i < lease->nodes; i++)
        lease->slots[i].want = LEASE_NOTHING;
}

static void lease_tell(struct lease_out *out, enum lease_event event, int status) {
    out->events |= event;
    out->status = status;
}

/* --- Undoing ------------------------------------------------------------------------------------------------------ */

static void lease_end(struct lease *lease) {
    lease->state = LEASE_ENDED;
    lease->extending = LEASE_NOTHING;
    lease_want_nothing(lease);
}

/* So late nothing runs any more that was lost. But where it was a look, it may have joined the queue after the last
 * release that was answered: one more takes it out. */
static void lease_end_undo(struct lease *lease, struct lease_out *out) {
    struct lease_slot *slot = &lease->slots[0];

    if (!lease->queued) {
        lease_end(lease);
        return;
    }
    slot->stray = slot->late = SETTLED;
    slot->trace = MAYBE;
    slot->removed = false;
    lease->until = lease->due = LEASE_NEVER;
    lease_want(lease, 0, LEASE_RELEASE, out);
}

/* Nothing of the token is left, and, where it may be set again, nothing can still run. */
static bool lease_clean(const struct lease *lease) {
    for (unsigned i = 0; i < lease->nodes; i++) {
        const struct lease_slot *slot = &lease->slots[i];
        if (slot->trace != CLEAR || (lease->own && (slot->late != SETTLED || slot->flying || slot->releasing)))
            return false;
    }
    return true;
}

/* It waits in the queue, for all that is known. */
static bool lease_may_wait(const struct lease *lease, const struct lease_slot *slot) {
    return lease->queued && !slot->removed;
}

/* While a release is unanswered it may become one that was lost: of an own token, it runs when that is set again; of
 * what waited in a queue, it does not say whether it left. */
static bool lease_may_be_late(const struct lease *lease) {
    for (unsigned i = 0; i < lease->nodes; i++)
        if ((lease->own || lease->queued) && lease->slots[i].releasing)
            return true;
    return false;
}

/* An undo is needless when the token would have expired by itself, counted from when it can have been set last. What
 * waits in a queue may be granted at any time. */
static void lease_set_undo_limit(struct lease *lease, int64_t now) {
    int64_t life = lease_longest_life(lease);

    lease->until = life == LEASE_NEVER ? LEASE_NEVER : now + life + evl_lease_drift(life);
    for (unsigned i = 0; i < lease->nodes; i++) {
        const struct lease_slot *slot = &lease->slots[i];
        if (slot->stray == UNSEEN || slot->late == UNSEEN || slot->flying || lease_may_wait(lease, slot))
            lease->until = LEASE_NEVER;
    }
}

static void lease_undo(struct lease *lease, int64_t now, struct lease_out *out) {
    lease->state = LEASE_UNDOING;
    lease->extending = LEASE_NOTHING;
    lease->due = LEASE_NEVER;
    for (unsigned i = 0; i < lease->nodes; i++) {
        struct lease_slot *slot = &lease->slots[i];
        if (slot->trace == CLEAR)
            slot->want = LEASE_NOTHING;
        else if (!slot->releasing)
            lease_want(lease, i, LEASE_RELEASE, out);
    }
    lease_set_undo_limit(lease, now);
    if (lease_clean(lease))
        lease_end(lease);
}

static void lease_repeat_later(struct lease *lease, int64_t now) {
    lease->due = evl_min(lease->due, now + lease_retry_pause(lease_longest_life(lease)));
}

/* The token is not there now. Where an acquire may still run, or it waits in a queue, it may yet come. */
static void lease_note_absent(const struct lease *lease, struct lease_slot *slot) {
    slot->trace = slot->stray == SETTLED && !lease_may_wait(lease, slot) ? CLEAR : MAYBE;
}

/* What the answer to a release says of the token on that node. */
static void lease_note_release(struct lease *lease, unsigned node, const struct lease_answer *answer, int64_t now,
                               struct lease_out *out) {
    struct lease_slot *slot = &lease->slots[node];

    switch (answer->verdict) {
    case LEASE_YES:
        slot->removed = true;
        if (lease->queued || slot->twice)
            lease_note_absent(lease, slot); /* a stray may yet join the queue again, or set it */
        else
            slot->trace = CLEAR; /* also of a stray: an acquire runs once */
        slot->vote = YES;
        if (slot->trace != CLEAR)
            lease_repeat_later(lease, now);
        break;
    case LEASE_NO:
        slot->removed = true;
        /* Before the deadline nobody else can have removed it but the release whose answer was lost. */
        slot->vote = slot->resent && now < slot->deadline ? YES : NO;
        if (slot->trace != CLEAR || lease->nodes == 1) /* else it says nothing of the others */
            lease->status = EVLOCK_ENOTOWNED;
        lease_note_absent(lease, slot);
        if (slot->trace != CLEAR)
            lease_repeat_later(lease, now);
        break;
    case LEASE_FORBIDDEN: /* to repeat it is no use: what is there expires */
        slot->removed = true;
        lease->status = (int8_t)answer->status;
        lease->left |= slot->trace != CLEAR;
        slot->trace = CLEAR;
        slot->vote = NO;
        break;
    case LEASE_REFUSED:
        lease->status = (int8_t)answer->status;
        lease_repeat_later(lease, now);
        break;
    case LEASE_UNKNOWN:
        lease->status = (int8_t)answer->status;
        slot->resent = true;
        lease_want(lease, node, LEASE_RELEASE, out);
        break;
    case LEASE_AGAIN:
        lease_want(lease, node, LEASE_RELEASE, out);
        break;
    case LEASE_QUEUED: /* not said to a release */
        break;
    }
}

/* The releases that were refused, or found nothing while an acquire may still run, go out once more. */
static void lease_repeat_releases(struct lease *lease, struct lease_out *out) {
    lease->due = LEASE_NEVER;
    for (unsigned i = 0; i < lease->nodes; i++) {
        struct lease_slot *slot = &lease->slots[i];
        bool asked = lease->state == LEASE_RELEASING && slot->vote == OPEN;
        if (!slot->releasing && (asked || slot->trace != CLEAR))
            lease_want(lease, i, LEASE_RELEASE, out);
    }
}

/* --- Acquiring ---------------------------------------------------------------------------------------------------- */

static void lease_fail(struct lease *lease, int status, int64_t now, struct lease_out *out) {
    lease_tell(out, LEASE_TELL_FAILED, status);
    out->denied = (uint8_t)lease_votes(lease, NO);
    if (lease->adopted)
        lease_end(lease); /* not ours to undo */
    else
        lease_undo(lease, now, out);
}

/* The next renewal after a confirmation that was asked for at `sent`. A lease with less than its ttl left (adopted, or
 * cut short by its user) is renewed while there is time. */
static void lease_plan_renewal(struct lease *lease, int64_t sent, int64_t ttl) {
    int64_t interval = lease->terms->interval;

    if (!interval)
        return;
    if (ttl < lease->terms->ttl)
        interval = evl_min(interval, evl_min(ttl / 3, evl_max(ttl - lease->terms->lead, 0) / 2));
    lease->due = sent + interval;
    if (lease->terms->grain && interval == lease->terms->interval)
        lease->due -= (lease->due - lease->terms->phase) % lease->terms->grain;
}

/* Its holder has had it for so long that it is not renewed any more. */
static bool lease_hung(const struct lease *lease, int64_t now) {
    const struct lease_terms *terms = lease->terms;
    return terms->interval && terms->max_hold != LEASE_NEVER && now >= lease->since + terms->max_hold;
}

/* --- Mending --------------------------------------------------------------------------------------------------------
 * A lease that a bare majority keeps is not safe from one node that forgets. So a node that does not keep it for as
 * long as it is believed in is armed when it can be: with what is left of the lease, which its deadline does not pass.
 */

/* A short hold is over before this, and pays nothing. */
static int64_t lease_mends_from(const struct lease *lease) {
    return lease->since + evl_min(50 * MS, lease->terms->ttl / 20);
}

/* The node does not keep the token, or may have forgotten it, and nothing can still run that would bring it there. */
static bool lease_lacks(const struct lease *lease, const struct lease_slot *slot) {
    bool idle = slot->stray == SETTLED && !slot->flying && !slot->want;

    return lease->nodes > 1 && idle && (slot->replaced || !lease_keeps(lease, slot)) &&
           evl_lease_deadline(lease) != LEASE_NEVER;
}

static void lease_plan_mend(struct lease *lease, unsigned node, int64_t at) {
    int64_t after = evl_max(at, lease_mends_from(lease)) - lease->since;

    lease->slots[node].mend_ms = (uint32_t)evl_min((after + MS - 1) / MS, LEASE_AGES);
}

static int64_t lease_mends_at(const struct lease *lease, unsigned node) {
    uint32_t mend_ms = lease->slots[node].mend_ms;

    return mend_ms == LEASE_AGES ? LEASE_NEVER : lease->since + mend_ms * MS;
}

static int64_t lease_next_mend(const struct lease *lease) {
    int64_t next = LEASE_NEVER;

    for (unsigned i = 0; i < lease->nodes; i++)
        next = evl_min(next, lease_mends_at(lease, i));
    return next;
}

/* A node has not done what it was asked, or must not be asked for a while. Who had the lock there when this lease was
 * granted may have lost it since; else there is a pause, or the next renewal. */
static void lease_see_to(struct lease *lease, unsigned node, enum lease_command command, int64_t now) {
    int64_t pause = evl_min(evl_max(lease->terms->ttl / 8, 10 * MS), 10 * SECOND);

    if (lease->nodes == 1)
        return;
    if (command == LEASE_ACQUIRE)
        lease_plan_mend(lease, node, now);
    else if (lease->due == LEASE_NEVER)
        lease_plan_mend(lease, node, now + pause);
}

/* Of a fenced lease, first the fence: who is granted next with this node's vote has to draw a greater one. */
static void lease_arm(struct lease *lease, unsigned node, enum lease_command command, struct lease_out *out) {
    lease_want(lease, node, lease->fence ? LEASE_RAISE : command, out);
}

/* Those that lack it now that the deadline is another, unless their moment has been chosen. */
static void lease_plan_mends(struct lease *lease, int64_t now) {
    for (unsigned i = 0; i < lease->nodes; i++)
        if (lease->slots[i].mend_ms == LEASE_AGES && lease_lacks(lease, &lease->slots[i]))
            lease_plan_mend(lease, i, now);
}

static void lease_mend(struct lease *lease, int64_t now, struct lease_out *out) {
    for (unsigned i = 0; i < lease->nodes; i++) {
        if (now < lease_mends_at(lease, i))
            continue;
        lease->slots[i].mend_ms = LEASE_AGES;
        if (lease_lacks(lease, &lease->slots[i]) && !lease_hung(lease, now))
            lease_arm(lease, i, LEASE_MEND, out);
    }
}

static void lease_hold(struct lease *lease, unsigned node, int64_t ttl, int64_t now, struct lease_out *out) {
    lease->state = LEASE_HELD;
    lease->until = LEASE_NEVER;
    lease->granted = true;
    lease->since = now;
    if (lease->queued)
        lease->slots[0].want = LEASE_NOTHING; /* a look that was to come would add nothing */
    lease_plan_renewal(lease, lease->slots[node].sent, ttl);
    lease_plan_mends(lease, now);
    out->events |= LEASE_TELL_GRANTED;
}

/* The fence is the greatest number that the quorum drew; those after it that any node of the quorum has kept are the
 * lease's too. */
static void lease_find_fence(struct lease *lease) {
    int64_t fence = 0, last = 0, asked = lease->last_fence;

    for (unsigned i = 0; i < lease->nodes; i++) {
        const struct lease_slot *slot = &lease->slots[i];
        if (slot->vote != YES)
            continue;
        fence = evl_max(fence, slot->counter - (slot->spares ? asked : 0));
        last = evl_max(last, slot->counter);
    }
    lease->fence = fence;
    lease->last_fence = last;
    lease->raising = true;
}

/* The fence stands when a quorum has counted as far as the last of them, so that the next holder's is greater: nodes
 * that counted less are raised, and vote again by their answer. */
static bool lease_settle_fence(struct lease *lease, struct lease_out *out) {
    if (!lease->fenced)
        return true;
    if (!lease->raising)
        lease_find_fence(lease);
    for (unsigned i = 0; i < lease->nodes; i++) {
        struct lease_slot *slot = &lease->slots[i];
        if (slot->vote != YES || slot->counter >= evl_lease_last_fence(lease))
            continue;
        slot->vote = OPEN;
        lease_want(lease, i, LEASE_RAISE, out);
    }
    return lease_agreed(lease);
}

/* Why the acquire failed: among several nodes, troubles that differ from node to node are a missing quorum. */
static int lease_blame(const struct lease *lease) {
    bool said = lease->status == EVLOCK_EHELD || lease->status == EVLOCK_ENOTOWNED;
    return lease->nodes == 1 || said ? lease->status : EVLOCK_EQUORUM;
}

/* Decides an acquire after `node` has voted. `ttl`: what that node granted. */
static void lease_decide_acquire(struct lease *lease, unsigned node, int64_t ttl, int64_t now, struct lease_out *out) {
    if (lease_agreed(lease)) {
        if (!lease_settle_fence(lease, out))
            return;
        lease_hold(lease, node, ttl, now, out);
        if (now >= lease_told_lost_at(lease)) { /* the yes came too late to be of use */
            out->events = 0;
            lease_fail(lease, lease->adopted ? EVLOCK_ENOTOWNED : EVLOCK_EUNREACHABLE, now, out);
        }
    } else if (lease_hopeless(lease)) {
        lease_fail(lease, lease_blame(lease), now, out);
    }
}

/* A node does not count for the acquire. That somebody holds the lock says more than any trouble with a node. */
static void lease_vote_no(struct lease *lease, struct lease_slot *slot, int status) {
    if (lease->state != LEASE_ACQUIRING)
        return;
    slot->vote = NO;
    if (lease->status != EVLOCK_EHELD && lease->status != EVLOCK_ENOTOWNED)
        lease->status = (int8_t)status;
}

static void lease_note_acquire(struct lease *lease, unsigned node, enum lease_command command,
                               const struct lease_answer *answer, int64_t now, struct lease_out *out) {
    struct lease_slot *slot = &lease->slots[node];
    bool maybe = command == LEASE_ADOPT || lease->queued; /* the token may be there even if this did not run */
    int64_t ttl = command == LEASE_ADOPT ? answer->ttl : lease->terms->ttl ? lease->terms->ttl : LEASE_NEVER;

    switch (answer->verdict) {
    case LEASE_YES:
        slot->trace = THERE;
        slot->replaced = false;
        slot->deadline = lease_kept_until(slot->sent, lease_believed(lease, ttl));
        slot->counter = answer->fence + answer->spare;
        slot->spares = answer->spare >= evl_lease_spare(lease);
        lease_note_life(lease, lease_lifetime(ttl));
        if (lease->state == LEASE_ACQUIRING)
            slot->vote = YES;
        break;
    case LEASE_NO:
        slot->trace = CLEAR;
        lease_vote_no(lease, slot, lease->adopted ? EVLOCK_ENOTOWNED : EVLOCK_EHELD);
        break;
    case LEASE_REFUSED:
    case LEASE_FORBIDDEN:
        slot->trace = maybe ? MAYBE : CLEAR;
        lease_vote_no(lease, slot, answer->status);
        break;
    case LEASE_UNKNOWN:
        if (command == LEASE_ACQUIRE)
            slot->stray = UNSEEN;
        lease_vote_no(lease, slot, answer->status);
        break;
    case LEASE_AGAIN:
        slot->trace = maybe ? MAYBE : CLEAR;
        break;
    case LEASE_QUEUED:
        return;
    }
    if (lease->state == LEASE_HELD && answer->verdict == LEASE_YES && slot->counter < evl_lease_last_fence(lease) &&
        !slot->want)
        lease_want(lease, node, LEASE_RAISE, out); /* a quorum stands without it, and bears more with it */
    if (lease->state != LEASE_ACQUIRING)
        return;
    if (answer->verdict == LEASE_AGAIN)
        lease_want(lease, node, command, out);
    else
        lease_decide_acquire(lease, node, ttl, now, out);
}

/* The answer to a raise counts for the node's vote alone: the token is there since the acquire. Were it gone, somebody
 * else might have drawn a number there before the raise. */
static void lease_note_raise(struct lease *lease, unsigned node, const struct lease_answer *answer, int64_t now,
                             struct lease_out *out) {
    struct lease_slot *slot = &lease->slots[node];

    if (answer->verdict == LEASE_AGAIN) {
        lease_want(lease, node, LEASE_RAISE, out);
        return;
    }
    if (answer->verdict == LEASE_YES && now < slot->deadline) {
        slot->counter = evl_lease_last_fence(lease);
        slot->vote = YES;
    } else {
        lease_vote_no(lease, slot, answer->verdict == LEASE_YES ? EVLOCK_EUNREACHABLE : answer->status);
    }
    lease_decide_acquire(lease, node, lease->terms->ttl, now, out);
}

/* --- Holding ------------------------------------------------------------------------------------------------------ */

static void lease_end_extension(struct lease *lease, int status, struct lease_out *out) {
    for (unsigned i = 0; i < lease->nodes; i++) {
        lease->slots[i].voting = false;
        if (lease->slots[i].want == lease->extending)
            lease->slots[i].want = LEASE_NOTHING;
    }
    lease->extending = LEASE_NOTHING;
    lease->until = LEASE_NEVER;
    lease_tell(out, LEASE_TELL_EXTENDED, status);
}

/* The deadline is 0, if a quorum said that the token is gone. */
static uint8_t lease_agreed_beyond(const struct lease *lease) {
    int64_t deadline = evl_lease_deadline(lease);
    unsigned count = 0;

    for (unsigned i = 0; i < lease->nodes; i++)
        count += lease->slots[i].deadline > deadline;
    return (uint8_t)count;
}

static void lease_lose(struct lease *lease, int reason, struct lease_out *out) {
    if (lease->extending)
        lease_end_extension(
            lease, reason == EVLOCK_ENOTOWNED || reason == EVLOCK_EDATALOSS ? EVLOCK_ENOTOWNED : EVLOCK_ELOST, out);
    out->agreed = lease_agreed_beyond(lease);
    lease->state = LEASE_LOST;
    lease->due = LEASE_NEVER;
    lease_want_nothing(lease);
    out->events |= LEASE_TELL_LOST;
    out->reason = reason;
}

/* A quorum has answered yes since the renewal began. */
static bool lease_confirmed(const struct lease *lease) {
    unsigned fresh = 0;

    for (unsigned i = 0; i < lease->nodes; i++)
        fresh += lease->slots[i].fresh;
    return evl_quorum_reached(lease->nodes, fresh);
}

/* What a command that prolongs asked of the node for, counted from when it was sent. An addition asked for what was
 * believed, and so much more. Of an extension that was given up, the last one's time stands for its own. */
static int64_t lease_asked_for(const struct lease *lease, const struct lease_slot *slot, enum lease_command command) {
    switch (command) {
    case LEASE_ADD:
        if (slot->deadline == LEASE_NEVER)
            return LEASE_NEVER;
        return lease_ttl_for(evl_max(slot->deadline - slot->sent, 0) + lease->extension);
    case LEASE_REPLACE:
        return lease->extension;
    default: /* a renewal, or a re-arming */
        return lease->terms->ttl;
    }
}

/* The node has the token for `ttl`, of which no more counts than was asked for: its clock may have been set back, or
 * somebody made the key live longer, or it does not say the truth. */
static void lease_confirm(struct lease *lease, unsigned node, int64_t ttl) {
    struct lease_slot *slot = &lease->slots[node];
    int64_t certain = evl_min(lease_believed(lease, ttl), lease_cut_to(slot));
    int64_t deadline = lease_kept_until(slot->sent, certain);

    slot->trace = THERE;
    slot->replaced = false;
    slot->fresh = true;
    slot->trouble = EVLOCK_OK;
    slot->deadline = evl_max(slot->deadline, deadline); /* both are what the server keeps at least */
    lease_note_life(lease, lease_lifetime(ttl));
    if (lease_confirmed(lease)) {
        lease->asked = 0;
        lease->failing = false;
        lease->warned = false;
        lease_plan_renewal(lease, slot->sent, certain);
    }
}

/* A renewal follows soon: also upon an extension, which may have stood in a renewal's way or moved the deadline in. */
static void lease_note_unconfirmed(struct lease *lease, enum lease_command command, int64_t now) {
    int64_t left = evl_lease_deadline(lease) - now;

    if (command == LEASE_RENEW && lease_confirmed(lease))
        return; /* one node that refuses does not make all be asked more often */
    lease->failing |= command == LEASE_RENEW;
    if (lease->due != LEASE_NEVER)
        lease->due = evl_min(lease->due, now + lease_retry_pause(evl_min(lease->terms->interval, left)));
}

/* The node did not do it, or may not have. An extension's trouble is its user's own. */
static void lease_note_hindered(struct lease *lease, struct lease_slot *slot, enum lease_command command, int status,
                                int64_t now) {
    if (command == LEASE_RENEW)
        slot->trouble = (int8_t)status;
    lease_note_unconfirmed(lease, command, now);
}

/* Its deadline comes before anything else, also before an answer that would have moved it. */
static bool lease_lose_in_time(struct lease *lease, int64_t now, struct lease_out *out) {
    if (now < lease_told_lost_at(lease))
        return false;
    lease_lose(lease, lease_hung(lease, now) ? EVLOCK_EMAXHOLD : EVLOCK_EEXPIRED, out);
    return true;
}

/* The token is not on that node. Too many such nodes, and the lease is lost; or the deadline is that of others, and may
 * be past. */
static void lease_note_gone(struct lease *lease, unsigned node, int64_t now, struct lease_out *out) {
    struct lease_slot *slot = &lease->slots[node];

    lease_note_absent(lease, slot);
    slot->deadline = 0;
    if (!evl_lease_deadline(lease))
        lease_lose(lease, slot->replaced ? EVLOCK_EDATALOSS : EVLOCK_ENOTOWNED, out);
    else
        lease_lose_in_time(lease, now, out);
}

/* What the answer to a re-arming says of the token on that node. No acquire could still run there when it was sent. */
static void lease_note_armed(struct lease_slot *slot, const struct lease_answer *answer) {
    switch (answer->verdict) {
    case LEASE_YES:
        slot->trace = THERE;
        break;
    case LEASE_UNKNOWN:
        slot->trace = MAYBE;
        slot->stray = UNSEEN;
        break;
    case LEASE_NO:
        slot->trace = CLEAR;
        break;
    case LEASE_AGAIN:
    case LEASE_REFUSED:
    case LEASE_FORBIDDEN:
    case LEASE_QUEUED: /* not said to a re-arming */
        if (slot->trace == ASKED)
            slot->trace = CLEAR;
        break;
    }
}

/* A release that follows may have to know by when the token can have gone by itself. */
static void lease_note_armed_late(const struct lease *lease, struct lease_slot *slot,
                                  const struct lease_answer *answer) {
    lease_note_armed(slot, answer);
    if (answer->verdict == LEASE_YES)
        slot->deadline = lease_kept_until(slot->sent, evl_min(answer->ttl, lease->terms->ttl));
}

/* What the node now keeps counts until the lease's deadline, which it does not move. It renews nothing. */
static void lease_note_mended(struct lease *lease, struct lease_slot *slot, int64_t ttl) {
    int64_t kept = lease_kept_until(slot->sent, evl_min(lease_believed(lease, ttl), lease_cut_to(slot)));

    slot->replaced = false;
    slot->deadline = evl_min(kept, evl_lease_deadline(lease));
}

/* The answer to a re-arming while the lease is held. */
static void lease_note_rearmed(struct lease *lease, unsigned node, enum lease_command command,
                               const struct lease_answer *answer, int64_t now, struct lease_out *out) {
    struct lease_slot *slot = &lease->slots[node];

    lease_note_armed(slot, answer);
    if (answer->verdict == LEASE_NO)
        lease_note_gone(lease, node, now, out);
    if (answer->verdict != LEASE_YES)
        return;
    if (command == LEASE_REARM) {
        lease_confirm(lease, node, evl_min(answer->ttl, lease_asked_for(lease, slot, command)));
        return;
    }
    lease_note_mended(lease, slot, answer->ttl);
    if (lease->asked && !slot->want) /* it has missed the renewal that is under way */
        lease_want(lease, node, LEASE_RENEW, out);
}

/* The node has the fence, and may have the token. */
static void lease_note_raised(struct lease *lease, unsigned node, const struct lease_answer *answer,
                              struct lease_out *out) {
    if (answer->verdict == LEASE_YES && lease_lacks(lease, &lease->slots[node]))
        lease_want(lease, node, lease->asked ? LEASE_REARM : LEASE_MEND, out);
}

/* Why an extension failed: of several nodes, none speaks for the others. */
static int lease_hindrance(const struct lease *lease) {
    if (lease->nodes > 1)
        return EVLOCK_EQUORUM;
    return lease->status ? lease->status : EVLOCK_EUNREACHABLE;
}

/* Decides the extension under way after `node` has answered it. */
static void lease_decide_extension(struct lease *lease, unsigned node, const struct lease_answer *answer,
                                   struct lease_out *out) {
    lease->slots[node].vote = answer->verdict == LEASE_YES ? YES : NO;
    if (answer->verdict != LEASE_YES)
        lease->status = (int8_t)(answer->verdict == LEASE_NO ? EVLOCK_ENOTOWNED : answer->status);
    if (lease_agreed(lease))
        lease_end_extension(lease, EVLOCK_OK, out);
    else if (lease_hopeless(lease))
        lease_end_extension(lease, lease_hindrance(lease), out);
}

static bool lease_did_not_run(enum lease_verdict verdict) {
    return verdict == LEASE_AGAIN || verdict == LEASE_REFUSED || verdict == LEASE_FORBIDDEN;
}

/* The answer to a renewal or an extension while the lease is held. */
static void lease_note_prolonged(struct lease *lease, unsigned node, enum lease_command command,
                                 const struct lease_answer *answer, int64_t now, struct lease_out *out) {
    struct lease_slot *slot = &lease->slots[node];
    bool extension = slot->voting;

    slot->voting = false;
    if (answer->verdict != LEASE_UNKNOWN)
        slot->replacing_ms = LEASE_NO_CUT;
    if (evl_lease_renews(command)) /* but for their late effects, all are alike */
        command = LEASE_RENEW;
    if (command == LEASE_REPLACE && lease_did_not_run(answer->verdict))
        slot->deadline = slot->uncut;
    if (answer->verdict == LEASE_AGAIN) {
        if (command == LEASE_RENEW ? slot->want == LEASE_NOTHING : extension)
            lease_want(lease, node, command, out);
        return;
    }
    if (answer->verdict == LEASE_YES)
        lease_confirm(lease, node, evl_min(answer->ttl, lease_asked_for(lease, slot, command)));
    else if (answer->verdict == LEASE_NO)
        lease_note_gone(lease, node, now, out);
    else
        lease_note_hindered(lease, slot, command, answer->status, now);
    if (extension && lease->extending)
        lease_decide_extension(lease, node, answer, out);
}

static void lease_renew(struct lease *lease, int64_t now, struct lease_out *out) {
    lease->due = LEASE_NEVER;
    if (lease_hung(lease, now))
        return;
    if (!lease->asked)
        lease->asked = now;
    lease->due = now + lease->terms->interval; /* unless an answer plans otherwise */
    for (unsigned i = 0; i < lease->nodes; i++) {
        struct lease_slot *slot = &lease->slots[i];
        slot->fresh = false;
        if (slot->flying || (slot->want && slot->want != LEASE_MEND))
            continue;
        if (slot->trace == CLEAR)
            lease_arm(lease, i, LEASE_REARM, out);
        else
            lease_want(lease, i, LEASE_RENEW, out);
    }
}

/* A renewal that has just been asked for is given a quarter of what is left before anyone is worried. */
static int64_t lease_risk_at(const struct lease *lease) {
    int64_t deadline = evl_lease_deadline(lease);

    if (lease->warned || deadline == LEASE_NEVER || !lease->asked)
        return LEASE_NEVER;
    if (lease->failing)
        return deadline - lease->terms->risk;
    return evl_max(deadline - lease->terms->risk, lease->asked + (deadline - lease->asked) / 4);
}

/* What stands in the way of the renewal: of several nodes, none speaks for the others. Nothing but silence is known of
 * a node that owes its answer. */
static int lease_danger(const struct lease *lease) {
    if (lease->nodes > 1)
        return EVLOCK_EQUORUM;
    return lease->slots[0].trouble ? lease->slots[0].trouble : EVLOCK_EUNREACHABLE;
}

static void lease_warn(struct lease *lease, struct lease_out *out) {
    lease->warned = true;
    out->events |= LEASE_TELL_RISK;
    out->reason = lease_danger(lease);
    out->agreed = lease_agreed_beyond(lease);
}

static void lease_hold_on(struct lease *lease, int64_t now, int64_t heard, struct lease_out *out) {
    if (lease_lose_in_time(lease, now, out))
        return;
    if (now >= lease->due)
        lease_renew(lease, now, out);
    lease_mend(lease, now, out);
    if (heard >= lease_risk_at(lease))
        lease_warn(lease, out);
    if (lease->extending && heard >= lease->until) {
        enum lease_command command = lease->extending;
        lease_end_extension(lease, lease_hindrance(lease), out);
        lease_note_unconfirmed(lease, command, now);
    }
}

/* --- Releasing ---------------------------------------------------------------------------------------------------- */

/* What ends by its time has no answer: of several nodes, none speaks for those that are silent. */
static int lease_out_of_time(const struct lease *lease) {
    return lease->nodes == 1 && lease->status ? lease->status : EVLOCK_EUNREACHABLE;
}

static void lease_end_release(struct lease *lease, int status, int64_t now, struct lease_out *out) {
    lease_tell(out, LEASE_TELL_RELEASED, status);
    lease_undo(lease, now, out);
}

static void lease_decide_release(struct lease *lease, int64_t now, struct lease_out *out) {
    if (lease_agreed(lease))
        lease_end_release(lease, EVLOCK_OK, now, out);
    else if (lease_hopeless(lease))
        lease_end_release(lease, lease->status ? lease->status : EVLOCK_ENOTOWNED, now, out);
}

/* --- Inputs ------------------------------------------------------------------------------------------------------- */

void evl_lease_begin(struct lease *lease, const struct lease_terms *terms, unsigned nodes,
                     const struct lease_entry *entry, int64_t now, struct lease_out *out) {
    assert(nodes >= 1 && nodes <= LEASE_NODES);
    assert(!entry->queued || nodes == 1);
    assert(!entry->spare || entry->fenced);
    assert(!entry->adopt || !(entry->fenced || entry->queued));
    assert(!entry->watched || (entry->own && !(entry->fenced || entry->queued || entry->adopt)));
    memset(lease, 0, evl_lease_size(nodes));
    lease->terms = terms;
    lease->state = entry->watched ? LEASE_UNDOING : LEASE_ACQUIRING;
    lease->nodes = nodes & LEASE_NODES;
    lease->fenced = entry->fenced;
    lease->last_fence = entry->spare;
    lease->queued = entry->queued;
    lease->adopted = entry->adopt;
    lease->own = entry->own;
    lease->since = now;
    lease->due = LEASE_NEVER;
    lease->until = LEASE_NEVER;
    lease->cut_over = LEASE_NEVER;
    lease_note_life(lease, terms->ttl ? terms->ttl : undo_without_expiry);
    for (unsigned i = 0; i < nodes; i++) {
        lease->slots[i].trace = entry->adopt ? MAYBE : CLEAR;
        lease->slots[i].late = entry->watched >> i & 1U ? UNSEEN : SETTLED;
        lease->slots[i].replacing_ms = LEASE_NO_CUT;
        lease->slots[i].cut_ms = LEASE_NO_CUT;
        lease->slots[i].mend_ms = LEASE_AGES;
        if (!entry->watched)
            lease_want(lease, i, entry->adopt ? LEASE_ADOPT : LEASE_ACQUIRE, out);
    }
    evl_check(evl_lease_check(lease));
}

/* From here on it is unanswered. */
static void lease_send(struct lease *lease, struct lease_slot *slot, enum lease_command command, int64_t now) {
    slot->flying = command;
    if (now >= lease->cut_over)
        slot->cut_ms = LEASE_NO_CUT;
    if (command != LEASE_RAISE) /* the lease counts from the acquire */
        slot->sent = now;
    slot->voting = false;
    switch (command) {
    case LEASE_ACQUIRE:
        slot->trace = MAYBE;
        break;
    case LEASE_REFRESH:
        slot->replacing_ms = lease_in_ms(lease->terms->ttl);
        break;
    case LEASE_RESTORE:
        slot->twice |= slot->trace != CLEAR;
        break;
    case LEASE_REARM:
    case LEASE_MEND:
        slot->twice |= slot->trace != CLEAR;
        slot->trace = slot->trace == CLEAR ? ASKED : MAYBE;
        break;
    case LEASE_ADD:
        slot->voting = true;
        break;
    case LEASE_REPLACE: /* it may run from now on: a shorter time counts before it is sent */
        slot->voting = true;
        slot->replacing_ms = lease_in_ms(lease->extension);
        slot->uncut = slot->deadline;
        slot->deadline = evl_min(slot->deadline, lease_kept_until(now, lease->extension));
        break;
    default:
        break;
    }
}

/* The state has decided what is wanted. */
enum lease_command evl_lease_take(struct lease *lease, unsigned node, enum lease_command renewal, int64_t now) {
    struct lease_slot *slot = &lease->slots[node];
    enum lease_command command = slot->want;

    assert(evl_lease_renews(renewal) && (renewal != LEASE_RESTORE || lease->nodes == 1));
    if (slot->flying && command != LEASE_RELEASE)
        return LEASE_NOTHING;
    slot->want = LEASE_NOTHING;
    if ((command == LEASE_RENEW || lease_arms(command)) &&
        lease_hung(lease, now)) /* it has waited for the node so long */
        command = LEASE_NOTHING;
    if (command == LEASE_RENEW)
        command = renewal;
    if (command == LEASE_RELEASE)
        slot->releasing = true;
    else if (command != LEASE_NOTHING)
        lease_send(lease, slot, command, now);
    evl_check(evl_lease_check(lease));
    return command;
}

/* What is to last for weeks has a ttl that may not be known to the millisecond. */
bool evl_lease_may_refresh(const struct lease *lease) {
    return !lease->adopted && !lease->own && !lease->tied && lease->longest_ms != LEASE_AGES;
}

int64_t evl_lease_ttl(const struct lease *lease, enum lease_command command, int64_t now) {
    if (command == LEASE_ADD || command == LEASE_REPLACE)
        return lease->extension;
    if (command == LEASE_MEND)
        return evl_max(lease_ttl_for(evl_min(evl_lease_deadline(lease) - now, LEASE_NEVER / 2)), MS);
    return lease->terms->ttl;
}

/* An answer that comes when nobody waits for the command's effect still says where the token is. */
static void lease_note_trace(struct lease *lease, unsigned node, enum lease_command command,
                             const struct lease_answer *answer, int64_t now, struct lease_out *out) {
    struct lease_slot *slot = &lease->slots[node];

    if (command == LEASE_ACQUIRE)
        lease_note_acquire(lease, node, command, answer, now, out);
    else if (lease_arms(command))
        lease_note_armed_late(lease, slot, answer);
    else if (answer->verdict == LEASE_NO && command != LEASE_RAISE)
        lease_note_absent(lease, slot);
    if (lease->state != LEASE_UNDOING)
        return;
    lease_set_undo_limit(lease, now);
    if (slot->trace == CLEAR)
        slot->want = LEASE_NOTHING;
    if (lease_clean(lease))
        lease_end(lease);
}

/* What is answered does not fly any more. What was lost without a word may run yet. */
static void lease_note_landed(struct lease *lease, struct lease_slot *slot, enum lease_command command,
                              enum lease_verdict verdict, int64_t now) {
    implies(command == LEASE_RELEASE, slot->releasing);
    if (command == LEASE_RELEASE)
        slot->releasing = false;
    slot->flying = LEASE_NOTHING;
    if (verdict != LEASE_UNKNOWN || !(lease->own || evl_lease_prolongs(command)))
        return;
    if (slot->late != MAY_STILL_RUN) /* or one that was lost before is not settled with it */
        slot->late = UNSEEN;
    if (command == LEASE_RESTORE && slot->stray != MAY_STILL_RUN) /* it may set the token after a release */
        slot->stray = UNSEEN;
    if (lease->state == LEASE_UNDOING)
        lease_set_undo_limit(lease, now);
}

/* The answer to any command, the lease being acquired. */
static void lease_answer_acquiring(struct lease *lease, unsigned node, enum lease_command command,
                                   const struct lease_answer *answer, int64_t now, struct lease_out *out) {
    if (command == LEASE_RAISE)
        lease_note_raise(lease, node, answer, now, out);
    else
        lease_note_acquire(lease, node, command, answer, now, out);
}

static void lease_answer_held(struct lease *lease, unsigned node, enum lease_command command,
                              const struct lease_answer *answer, int64_t now, struct lease_out *out) {
    bool late = command == LEASE_ACQUIRE || command == LEASE_ADOPT;
    bool moves;

    if (!late && answer->ttl > lease->terms->ttl) /* somebody who knows it has made it live longer */
        lease->tied = true;
    if (late)
        lease_note_acquire(lease, node, command, answer, now, out);
    else if (lease_arms(command))
        lease_note_rearmed(lease, node, command, answer, now, out);
    else if (command == LEASE_RAISE)
        lease_note_raised(lease, node, answer, out);
    else
        lease_note_prolonged(lease, node, command, answer, now, out);
    moves = late || (evl_lease_prolongs(command) && lease->due == LEASE_NEVER);
    if (answer->verdict == LEASE_YES && moves)
        lease_plan_mends(lease, now); /* the deadline may be beyond those of other nodes now, */
    else if (answer->verdict != LEASE_YES || (lease_arms(command) && lease_lacks(lease, &lease->slots[node])))
        lease_see_to(lease, node, command, now); /* or beyond what was asked for here */
}

/* The token is given back, and nobody waits any more for what else was sent. */
static void lease_answer_leaving(struct lease *lease, unsigned node, enum lease_command command,
                                 const struct lease_answer *answer, int64_t now, struct lease_out *out) {
    if (command != LEASE_RELEASE) {
        lease_note_trace(lease, node, command, answer, now, out);
        return;
    }
    lease_note_release(lease, node, answer, now, out);
    if (lease->state == LEASE_RELEASING) {
        lease_decide_release(lease, now, out);
        return;
    }
    if (lease->until == LEASE_NEVER)
        lease_set_undo_limit(lease, now);
    if (lease_clean(lease))
        lease_end(lease);
}

void evl_lease_answer(struct lease *lease, unsigned node, const struct lease_answer *answer, int64_t now,
                      struct lease_out *out) {
    struct lease_slot *slot = &lease->slots[node];
    enum lease_command command = evl_lease_unanswered(lease, node);
    int64_t believed_until = slot->deadline;

    /* Who joins the queue has the lock or waits, and nobody else waits. */
    assert(answer->verdict != LEASE_NO || command != LEASE_ACQUIRE || !lease->queued);
    assert(answer->verdict != LEASE_QUEUED || (command == LEASE_ACQUIRE && lease->queued));
    lease_note_landed(lease, slot, command, answer->verdict, now);
    if (lease->state == LEASE_HELD)
        lease_lose_in_time(lease, now, out);
    switch (lease->state) {
    case LEASE_ACQUIRING:
        lease_answer_acquiring(lease, node, command, answer, now, out);
        break;
    case LEASE_HELD:
        lease_answer_held(lease, node, command, answer, now, out);
        break;
    case LEASE_RELEASING:
    case LEASE_UNDOING:
        lease_answer_leaving(lease, node, command, answer, now, out);
        break;
    case LEASE_LOST:
    case LEASE_ENDED:
        lease_note_trace(lease, node, command, answer, now, out);
        break;
    }
    if (slot->want) /* what was held up by the answered command */
        out->wake |= 1U << node;
    assert(answer->verdict != LEASE_UNKNOWN || slot->deadline <= believed_until);
    (void)believed_until;
    evl_check(evl_lease_check(lease));
}

/* Only one that queues may be asked more than once; and only while it waits. */
void evl_lease_look(struct lease *lease, struct lease_out *out) {
    if (evl_lease_in_line(lease) && !lease->slots[0].want)
        lease_want(lease, 0, LEASE_ACQUIRE, out);
    evl_check(evl_lease_check(lease));
}

/* A look may be unanswered: what it says then adds nothing. */
void evl_lease_granted(struct lease *lease, int64_t since, const struct lease_answer *yes, int64_t now,
                       struct lease_out *out) {
    assert(lease->queued && yes->verdict == LEASE_YES);
    /* Or else a look has said so before, or it is given back already. */
    if (lease->state == LEASE_ACQUIRING) {
        lease->slots[0].sent = since;
        lease_note_acquire(lease, 0, LEASE_ACQUIRE, yes, now, out);
    }
    evl_check(evl_lease_check(lease));
}

/* The others go on; the next renewal asks this node again. */
static void lease_do_without(struct lease *lease, unsigned node, int status, struct lease_out *out) {
    const struct lease_answer refused = {.verdict = LEASE_REFUSED, .status = status};
    struct lease_slot *slot = &lease->slots[node];
    bool extension = slot->want != LEASE_NOTHING && slot->want == lease->extending;

    slot->want = LEASE_NOTHING;
    if (extension)
        lease_decide_extension(lease, node, &refused, out);
}

void evl_lease_node_away(struct lease *lease, unsigned node, int status, int64_t now, struct lease_out *out) {
    struct lease_slot *slot = &lease->slots[node];

    switch (lease->state) {
    case LEASE_ACQUIRING:
        if (!slot->want)
            break;
        slot->want = LEASE_NOTHING;
        if (lease->queued && slot->trace != CLEAR) /* a look at how it stands: it may yet be granted */
            break;
        lease_vote_no(lease, slot, status);
        lease_decide_acquire(lease, node, 0, now, out);
        break;
    case LEASE_HELD:
        if (slot->want == LEASE_RENEW) {
            lease->failing = true;
            slot->trouble = (int8_t)status;
        }
        lease->status = (int8_t)status;
        if (lease->nodes > 1)
            lease_do_without(lease, node, status, out);
        if (status == EVLOCK_EEXCLUDED)
            lease_see_to(lease, node, LEASE_MEND, now);
        break; /* what is wanted of the only node waits for it */
    case LEASE_RELEASING:
    case LEASE_UNDOING:
        if (lease->nodes == 1) /* of several, none speaks for the others */
            lease->status = (int8_t)status;
        break;
    case LEASE_LOST:
    case LEASE_ENDED:
        break; /* nothing is wanted */
    }
    evl_check(evl_lease_check(lease));
}

/* What was lost sets a ttl when it runs: like what is undone, no later than the token may live from now. */
static void lease_note_cut(struct lease *lease, struct lease_slot *slot, int64_t now) {
    int64_t life = lease_longest_life(lease);

    slot->cut_ms = slot->replacing_ms < slot->cut_ms ? slot->replacing_ms : slot->cut_ms;
    lease->cut_over = life == LEASE_NEVER ? LEASE_NEVER : now + life + evl_lease_drift(life);
}

void evl_lease_node_back(struct lease *lease, unsigned node, bool settled, bool replaced, int64_t now,
                         struct lease_out *out) {
    struct lease_slot *slot = &lease->slots[node];

    assert(!slot->flying && !slot->releasing); /* what was unanswered went with the old connection */
    slot->replaced |= replaced;
    if (slot->stray == UNSEEN)
        slot->stray = settled ? SETTLED : MAY_STILL_RUN;
    if (!settled && slot->replacing_ms != LEASE_NO_CUT)
        lease_note_cut(lease, slot, now);
    slot->replacing_ms = LEASE_NO_CUT;
    if (slot->late == UNSEEN)
        slot->late = settled ? SETTLED : MAY_STILL_RUN;
    switch (lease->state) {
    case LEASE_HELD:
        /* Ask at once whether the token outlived what happened. */
        if (lease->due != LEASE_NEVER && (lease->failing || slot->replaced))
            lease_renew(lease, now, out);
        if (lease_lacks(lease, slot))
            lease_plan_mend(lease, node, now);
        lease_mend(lease, now, out);
        break;
    case LEASE_UNDOING:
        if (lease->until == LEASE_NEVER) /* or else what is to be outlived does not begin again with each connection */
            lease_set_undo_limit(lease, now);
        if (lease_clean(lease))
            lease_end(lease);
        break;
    case LEASE_ACQUIRING: /* who waits in line is to look, soon, and not all at once */
    case LEASE_RELEASING:
    case LEASE_LOST:
    case LEASE_ENDED:
        break; /* what is wanted is sent by itself */
    }
    evl_check(evl_lease_check(lease));
}

void evl_lease_extend(struct lease *lease, enum lease_command command, int64_t ttl, int64_t until,
                      struct lease_out *out) {
    assert(lease->state == LEASE_HELD && !lease->extending);
    lease->extending = command;
    lease->extension = ttl;
    lease->until = until;
    lease->tied = true;
    if (lease->longest_ms != LEASE_AGES)
        lease_note_life(lease, command == LEASE_ADD ? lease_longest_life(lease) + ttl : ttl);
    lease_open_votes(lease);
    for (unsigned i = 0; i < lease->nodes; i++)
        lease_want(lease, i, command, out);
    evl_check(evl_lease_check(lease));
}

void evl_lease_release(struct lease *lease, int64_t until, struct lease_out *out) {
    assert(lease->state == LEASE_HELD || lease->state == LEASE_LOST);
    lease->state = LEASE_RELEASING;
    lease->extending = LEASE_NOTHING;
    lease->due = LEASE_NEVER;
    lease->until = until;
    lease_open_votes(lease);
    for (unsigned i = 0; i < lease->nodes; i++)
        lease_want(lease, i, LEASE_RELEASE, out);
    evl_check(evl_lease_check(lease));
}

void evl_lease_abandon(struct lease *lease, int64_t now, struct lease_out *out) {
    switch (lease->state) {
    case LEASE_ACQUIRING:
        if (lease->adopted) {
            lease_end(lease);
            break;
        }
        lease_undo(lease, now, out);
        break;
    case LEASE_HELD:
    case LEASE_LOST:
    case LEASE_RELEASING:
        lease_undo(lease, now, out);
        break;
    case LEASE_UNDOING:
    case LEASE_ENDED:
        break;
    }
    evl_check(evl_lease_check(lease));
}

bool evl_lease_exportable(const struct lease *lease, int64_t now) {
    for (unsigned i = 0; i < lease->nodes; i++) {
        const struct lease_slot *slot = &lease->slots[i];
        bool looks = lease->queued && (slot->flying == LEASE_ACQUIRE || slot->stray == UNSEEN);
        bool cut = slot->cut_ms != LEASE_NO_CUT && now < lease->cut_over;
        if (looks || cut || slot->replacing_ms != LEASE_NO_CUT)
            return false;
    }
    return true;
}

void evl_lease_export(struct lease *lease) {
    assert(lease->state == LEASE_HELD || lease->state == LEASE_LOST);
    lease_end(lease);
    evl_check(evl_lease_check(lease));
}

void evl_lease_tie(struct lease *lease) {
    lease->tied = true;
}

bool evl_lease_passable(const struct lease *lease, int64_t now) {
    int64_t deadline = evl_lease_deadline(lease), ttl = lease->terms->ttl;
    bool random = !lease->own && !lease->tied; /* an adopted token is its user's own */
    bool well = !lease->failing && !lease->warned;

    return lease->state == LEASE_HELD && random && well && (!lease->fenced || lease->fence < lease->last_fence) &&
           deadline != LEASE_NEVER && deadline - now >= ttl / 2;
}

/* It is not renewed by itself. A node that refuses to must be noticed, whatever it confirmed before. */
static void lease_renew_once(struct lease *lease, struct lease_out *out) {
    for (unsigned i = 0; i < lease->nodes; i++) {
        struct lease_slot *slot = &lease->slots[i];
        if (slot->flying || slot->want || slot->trace == CLEAR)
            continue;
        slot->fresh = false;
        lease_want(lease, i, LEASE_RENEW, out);
    }
}

/* Also where it is not renewed otherwise: who has it now did not choose when it was granted. But one that replicas have
 * confirmed is not, as they may lack the renewal, and end the lease early. One that was held for as long as may be is
 * renewed again. */
static void lease_freshen(struct lease *lease, int64_t now, struct lease_out *out) {
    int64_t deadline = evl_lease_deadline(lease);
    bool low = deadline - now < lease->terms->ttl / 4 * 3;

    if (lease->asked && lease->due != LEASE_NEVER)
        return;
    if (!lease->terms->interval && low && !lease->terms->replicated)
        lease_renew_once(lease, out);
    else if (lease->terms->interval && (low || lease->due == LEASE_NEVER))
        lease_renew(lease, now, out);
}

/* What is counted from the grant counts from now on, but for the mends that are planned: they do not wait longer. */
static void lease_count_from(struct lease *lease, int64_t now) {
    for (unsigned i = 0; i < lease->nodes; i++)
        if (lease->slots[i].mend_ms != LEASE_AGES)
            lease->slots[i].mend_ms = (uint32_t)(evl_max(lease_mends_at(lease, i) - now, 0) / MS);
    lease->since = now;
}

void evl_lease_pass(struct lease *lease, const struct lease_terms *terms, int64_t now, struct lease_out *out) {
    assert(evl_lease_passable(lease, now) && terms->ttl == lease->terms->ttl);
    lease->terms = terms;
    lease_count_from(lease, now);
    lease->fence += lease->fenced;
    lease_freshen(lease, now, out);
    evl_check(evl_lease_check(lease));
}

void evl_lease_inherit(struct lease *lease, const struct lease_terms *terms) {
    assert(lease->state == LEASE_ACQUIRING || lease->state == LEASE_HELD);
    assert(terms->ttl == lease->terms->ttl);
    lease->terms = terms;
}

bool evl_lease_warn_anew(struct lease *lease) {
    bool warned = lease->warned;

    assert(lease->state == LEASE_HELD);
    lease->warned = false;
    return warned;
}

/* How long an attempt waits for a node: while a yes would be of use, and among several nodes no longer than agreed. */
static int64_t lease_patience_ends(const struct lease *lease, const struct lease_slot *slot) {
    int64_t limit = LEASE_NEVER;

    if (slot->vote != OPEN)
        return LEASE_NEVER;
    if (slot->flying == LEASE_ACQUIRE && lease->terms->ttl && !lease->queued)
        limit = lease_kept_until(slot->sent, lease->terms->ttl);
    return lease->nodes > 1 ? evl_min(limit, lease->since + lease->terms->patience) : limit;
}

static void lease_time_attempt(struct lease *lease, int64_t now, int64_t heard, struct lease_out *out) {
    for (unsigned i = 0; i < lease->nodes && lease->state == LEASE_ACQUIRING; i++) {
        struct lease_slot *slot = &lease->slots[i];
        if (heard < lease_patience_ends(lease, slot))
            continue;
        lease_vote_no(lease, slot, EVLOCK_EUNREACHABLE);
        lease_decide_acquire(lease, i, 0, now, out);
    }
}

void evl_lease_time(struct lease *lease, int64_t now, int64_t heard, struct lease_out *out) {
    switch (lease->state) {
    case LEASE_ACQUIRING:
        lease_time_attempt(lease, now, heard, out);
        break;
    case LEASE_HELD:
        lease_hold_on(lease, now, heard, out);
        break;
    case LEASE_RELEASING:
        if (heard >= lease->until)
            lease_end_release(lease, lease_out_of_time(lease), now, out);
        else if (now >= lease->due)
            lease_repeat_releases(lease, out);
        break;
    case LEASE_UNDOING:
        if (now >= lease->until && !lease_may_be_late(lease))
            lease_end_undo(lease, out);
        else if (now >= lease->due)
            lease_repeat_releases(lease, out);
        break;
    case LEASE_LOST:
    case LEASE_ENDED:
        break;
    }
    evl_check(evl_lease_check(lease));
}

/* When time matters next, if what is given up for want of an answer does not matter before `patient`. */
static int64_t lease_next_from(const struct lease *lease, int64_t patient) {
    int64_t next = LEASE_NEVER;

    switch (lease->state) {
    case LEASE_ACQUIRING:
        for (unsigned i = 0; i < lease->nodes; i++)
            next = evl_min(next, lease_patience_ends(lease, &lease->slots[i]));
        next = evl_max(next, patient);
        break;
    case LEASE_HELD:
        next = evl_min(evl_min(lease_told_lost_at(lease), lease->due),
                       evl_max(evl_min(lease_risk_at(lease), lease->until), patient));
        next = evl_min(next, lease_next_mend(lease));
        break;
    case LEASE_RELEASING:
        next = evl_min(lease->due, evl_max(lease->until, patient));
        break;
    case LEASE_UNDOING:
        next = lease_may_be_late(lease) ? lease->due : evl_min(lease->due, lease->until);
        break;
    case LEASE_LOST:
    case LEASE_ENDED:
        break;
    }
    return next;
}

int64_t evl_lease_next(const struct lease *lease) {
    return lease_next_from(lease, 0);
}

int64_t evl_lease_next_exact(const struct lease *lease) {
    return lease_next_from(lease, LEASE_NEVER);
}

bool evl_lease_over(const struct lease *lease) {
    if (lease->state != LEASE_ENDED)
        return false;
    for (unsigned i = 0; i < lease->nodes; i++)
        if (lease->slots[i].flying || lease->slots[i].releasing)
            return false;
    return true;
}

/* What was not let out of the queue has no ttl before its turn comes. */
int64_t evl_lease_left_until(const struct lease *lease) {
    if (!lease->left)
        return 0;
    return lease->queued && !lease->granted ? LEASE_NEVER : lease->until;
}

/* --- Invariants ---------------------------------------------------------------------------------------------------
 * What is true of every lease between two inputs. What a server says is never asserted, but taken in.
 */
#ifdef EVL_CHECKS

/* What is to be sent follows from the state. */
static void lease_check_wanted(const struct lease *lease, const struct lease_slot *slot) {
    enum lease_command want = slot->want;

    switch (lease->state) {
    case LEASE_ACQUIRING:
        implies(want,
                want == (lease->adopted ? LEASE_ADOPT : LEASE_ACQUIRE) || (want == LEASE_RAISE && lease->raising));
        break;
    case LEASE_HELD:
        assert(want != LEASE_RELEASE);
        implies(want == LEASE_ADD || want == LEASE_REPLACE, want == lease->extending);
        implies(want == LEASE_RENEW, slot->trace != CLEAR);
        implies(lease_arms(want), lease->nodes > 1 && slot->stray == SETTLED);
        break;
    case LEASE_RELEASING:
    case LEASE_UNDOING:
        implies(want, want == LEASE_RELEASE && !slot->releasing);
        break;
    case LEASE_LOST:
    case LEASE_ENDED:
        assert(!want);
        break;
    }
    /* Behind what is unanswered. */
    implies(slot->flying && want,
            want == LEASE_RELEASE || want == lease->extending || (want == LEASE_ACQUIRE && lease->queued));
}

/* One command is unanswered at most, but for a release behind it. */
static void lease_check_flying(const struct lease *lease, const struct lease_slot *slot) {
    bool held = lease->state == LEASE_HELD;

    implies(slot->releasing, lease->state >= LEASE_RELEASING);
    implies(evl_lease_prolongs(slot->flying) || lease_arms(slot->flying), lease->granted);
    implies(slot->flying == LEASE_ACQUIRE || lease_arms(slot->flying), slot->trace != CLEAR);
    implies(slot->trace == ASKED, lease_arms(slot->flying));
    implies(held && slot->voting, slot->flying && slot->flying == lease->extending);
    implies(held && slot->replacing_ms != LEASE_NO_CUT,
            slot->flying == LEASE_REPLACE || slot->flying == LEASE_REFRESH || slot->late != SETTLED);
    switch (slot->flying) {
    case LEASE_NOTHING:
    case LEASE_RENEW:
    case LEASE_ADD:
        break;
    case LEASE_ACQUIRE:
        assert(!lease->adopted);
        break;
    case LEASE_ADOPT:
        assert(lease->adopted);
        break;
    case LEASE_RAISE:
        assert(lease->raising && lease->nodes > 1);
        break;
    case LEASE_REARM:
    case LEASE_MEND:
        assert(lease->nodes > 1 && slot->stray == SETTLED);
        break;
    case LEASE_RESTORE:
        assert(lease->nodes == 1);
        break;
    case LEASE_REFRESH:
        assert(slot->replacing_ms != LEASE_NO_CUT && !lease->adopted && !lease->own);
        break;
    case LEASE_REPLACE:
        assert(slot->replacing_ms != LEASE_NO_CUT);
        implies(held, slot->deadline <= slot->uncut);
        break;
    case LEASE_RELEASE:
        assert(slot->flying != LEASE_RELEASE); /* it flies beside them, as `releasing` */
    }
}

static void lease_check_slot(const struct lease *lease, const struct lease_slot *slot) {
    lease_check_wanted(lease, slot);
    lease_check_flying(lease, slot);
    assert(slot->deadline >= 0);
    implies(lease->state == LEASE_ACQUIRING && slot->vote == YES, slot->deadline && slot->trace == THERE);
    implies(lease->state == LEASE_HELD && slot->deadline, slot->trace != CLEAR);
    implies(slot->mend_ms != LEASE_AGES, lease->granted && lease->nodes > 1);
    implies(slot->twice, lease->granted);
    implies(slot->removed || slot->resent, lease->state >= LEASE_RELEASING);
    implies(slot->trouble, lease->granted);
    implies(lease->state == LEASE_HELD && lease->nodes == 1 && slot->trouble, lease->failing);
}

/* Something will still come of a node that has not voted, and of one that may have the token to undo. */
static bool lease_is_pursued(const struct lease *lease, const struct lease_slot *slot) {
    switch (lease->state) {
    case LEASE_ACQUIRING:
        return slot->vote != OPEN || slot->want || slot->flying || lease->queued;
    case LEASE_HELD:
        return !lease->extending || slot->vote != OPEN || slot->want == lease->extending || slot->voting;
    case LEASE_RELEASING:
        return slot->vote != OPEN || slot->want || slot->releasing || lease->due != LEASE_NEVER;
    case LEASE_UNDOING:
        return slot->trace == CLEAR || slot->want || slot->releasing || lease->due != LEASE_NEVER;
    case LEASE_LOST:
    case LEASE_ENDED:
        break;
    }
    return true;
}

/* An undo without an end waits for something. */
static bool lease_is_endless(const struct lease *lease) {
    for (unsigned i = 0; i < lease->nodes; i++) {
        const struct lease_slot *slot = &lease->slots[i];
        if (slot->stray == UNSEEN || slot->late == UNSEEN || slot->flying || lease_may_wait(lease, slot))
            return true;
    }
    return lease->longest_ms == LEASE_AGES;
}

static void lease_check_state(const struct lease *lease) {
    switch (lease->state) {
    case LEASE_ACQUIRING:
        assert(!lease->granted && !lease_agreed(lease) && !lease_hopeless(lease));
        assert(lease->until == LEASE_NEVER && lease->due == LEASE_NEVER);
        break;
    case LEASE_HELD:
        assert(evl_lease_deadline(lease) > 0);
        assert(evl_quorum_reached(lease->nodes, evl_lease_keepers(lease)));
        assert(lease->granted && lease->raising == lease->fenced);
        implies(lease->extending, !lease_agreed(lease) && !lease_hopeless(lease));
        implies(!lease->extending, lease->until == LEASE_NEVER);
        implies(lease->due != LEASE_NEVER, lease->terms->interval);
        implies(lease->asked, !lease_confirmed(lease));
        implies(lease->warned, lease->asked);
        break;
    case LEASE_LOST:
        assert(lease->granted && !lease->extending);
        assert(lease->until == LEASE_NEVER && lease->due == LEASE_NEVER);
        break;
    case LEASE_RELEASING:
        assert(lease->granted && !lease_agreed(lease) && !lease_hopeless(lease));
        break;
    case LEASE_UNDOING:
        assert(!lease_clean(lease));
        implies(lease->until == LEASE_NEVER, lease_is_endless(lease));
        break;
    case LEASE_ENDED:
        break;
    }
}

void evl_lease_check(const struct lease *lease) {
    assert(lease->nodes >= 1 && lease->nodes <= LEASE_NODES);
    implies(lease->queued, lease->nodes == 1);
    implies(lease->adopted, !lease->queued && !lease->fenced);
    implies(lease->raising || evl_lease_spare(lease), lease->fenced);
    assert(evl_lease_spare(lease) >= 0);
    implies(lease->fence, lease->raising);
    implies(lease->extending, lease->state == LEASE_HELD);
    implies(lease->left, lease->state >= LEASE_RELEASING);
    lease_check_state(lease);
    for (unsigned i = 0; i < lease->nodes; i++) {
        lease_check_slot(lease, &lease->slots[i]);
        assert(lease_is_pursued(lease, &lease->slots[i]));
    }
}

#endif
