/*
 * How a lease ends on the servers: by release, by the undo of what an attempt may have left, by export; and when
 * nothing more is to be done for it.
 */
#include "test_lease.h"

/* --- Releasing ---------------------------------------------------------------------------------------------------- */

CASE(a_release_ends_holding_at_once) {
    struct bench b = bench_new();
    held_by_one(&b);
    release(&b);
    tells_nothing(&b);
    wakes(&b, 1);
    deadline_is(&b, 0);
    next_is(&b, b.now + 5 * SECOND);
    sends(&b, 0, LEASE_RELEASE);
    is_not_over(&b);
    yes(&b, 0);
    tells(&b, LEASE_TELL_RELEASED, EVLOCK_OK);
    is_over(&b);
    next_is(&b, LEASE_NEVER);
}

CASE(nothing_is_renewed_or_lost_after_a_release) {
    struct bench b = bench_new();
    renewing(&b);
    evl_lease_release(b.lease, b.now + 100 * TTL, fresh(&b));
    pass(&b, 2 * TTL);
    tells_nothing(&b);
    again(&b, 0); /* the renewal */
    tells_nothing(&b);
    back(&b, 0, REPLACED);
    tells_nothing(&b);
    sends(&b, 0, LEASE_RELEASE);
    no(&b, 0);
    tells(&b, LEASE_TELL_RELEASED, EVLOCK_ENOTOWNED);
}

CASE(no_renewal_is_due_after_a_release) {
    struct bench b = bench_new();
    held_by_one(&b);
    pass(&b, INTERVAL - SECOND);
    release(&b);
    next_is(&b, b.now + 5 * SECOND);
}

CASE(a_release_follows_an_unanswered_command) {
    struct bench b = bench_new();
    renewing(&b);
    release(&b);
    wakes(&b, 1);
    sends(&b, 0, LEASE_RELEASE);
    yes_ttl(&b, 0, TTL); /* the oldest answer is the renewal's */
    tells_nothing(&b);
    yes(&b, 0);
    tells(&b, LEASE_TELL_RELEASED, EVLOCK_OK);
}

CASE(a_release_that_was_held_up_wakes_with_the_answer) {
    struct bench b = bench_new();
    renewing(&b);
    release(&b);
    yes_ttl(&b, 0, TTL);
    wakes(&b, 1);
    sends(&b, 0, LEASE_RELEASE);
}

/* The answer to a release that was sent twice. */
static void resent(struct bench *b, int64_t later, int status) {
    held_by_one(b);
    evl_lease_release(b->lease, b->now + 10 * TTL, fresh(b));
    sends(b, 0, LEASE_RELEASE);
    unknown(b, 0);
    tells_nothing(b);
    wakes(b, 1);
    away(b, 0);
    pass(b, later);
    back(b, 0, SETTLED);
    sends(b, 0, LEASE_RELEASE);
    no(b, 0);
    tells(b, LEASE_TELL_RELEASED, status);
    is_over(b);
}

CASE(a_lost_reply_and_nothing_there_was_the_release) {
    struct bench b = bench_new();
    resent(&b, KEPT - 1, EVLOCK_OK);
    resent(&b, KEPT, EVLOCK_ENOTOWNED); /* it may have expired */
    b.terms.ttl = 0;
    b.terms.interval = 0;
    resent(&b, 5 * TTL, EVLOCK_OK); /* it cannot */
}

CASE(nothing_there_at_the_first_release_is_told) {
    struct bench b = bench_new();
    held_by_one(&b);
    release(&b);
    sends(&b, 0, LEASE_RELEASE);
    again(&b, 0); /* one that did not run is not one that was lost */
    wakes(&b, 1);
    sends(&b, 0, LEASE_RELEASE);
    no(&b, 0);
    tells(&b, LEASE_TELL_RELEASED, EVLOCK_ENOTOWNED);
}

CASE(a_refused_release_is_repeated) {
    struct bench b = bench_new();
    held_by_one(&b);
    release(&b);
    for (int i = 0; i < 4; i++) {
        sends(&b, 0, LEASE_RELEASE);
        refused(&b, 0);
        tells_nothing(&b);
        next_is(&b, b.now + SECOND);
        pass(&b, SECOND);
        wakes(&b, 1);
    }
    sends(&b, 0, LEASE_RELEASE);
    next_is(&b, b.now + SECOND); /* the end of the wait */
    refused(&b, 0);
    pass(&b, SECOND);
    tells(&b, LEASE_TELL_RELEASED, EVLOCK_EREFUSED);
    is_in(&b, LEASE_UNDOING); /* it goes on in the background */
    wakes(&b, 1);
    next_is(&b, b.now + life(TTL));
    sends(&b, 0, LEASE_RELEASE);
    refused(&b, 0);
    next_is(&b, b.now + SECOND);
    pass(&b, SECOND);
    sends(&b, 0, LEASE_RELEASE);
    yes(&b, 0);
    tells_nothing(&b);
    is_over(&b);
}

CASE(a_forbidden_release_is_not_repeated) {
    struct bench b = bench_new();
    held_by_one(&b);
    release(&b);
    sends(&b, 0, LEASE_RELEASE);
    forbidden(&b, 0);
    tells(&b, LEASE_TELL_RELEASED, EVLOCK_EPERM);
    is_over(&b);
}

CASE(a_release_is_told_by_its_time) {
    for (int is_away = 0; is_away < 2; is_away++) {
        struct bench b = bench_new();
        held_by_one(&b);
        release(&b);
        if (is_away)
            evl_lease_node_away(b.lease, 0, EVLOCK_EAUTH, b.now, fresh(&b));
        pass(&b, 5 * SECOND - 1);
        tells_nothing(&b);
        pass(&b, 1);
        tells(&b, LEASE_TELL_RELEASED, is_away ? EVLOCK_EAUTH : EVLOCK_EUNREACHABLE);
        sends(&b, 0, LEASE_RELEASE); /* still wanted */
        yes(&b, 0);
        tells_nothing(&b);
        is_over(&b);
    }
}

CASE(a_release_after_a_loss_still_sends) {
    static const enum lease_verdict verdicts[] = {LEASE_YES, LEASE_NO};
    for (int v = 0; v < 2; v++) {
        struct bench b = bench_new();
        renewing(&b);
        no(&b, 0);
        tells_lost(&b, EVLOCK_ENOTOWNED);
        release(&b);
        wakes(&b, 1);
        sends(&b, 0, LEASE_RELEASE);
        answer(&b, 0, verdicts[v], 0, 0);
        tells(&b, LEASE_TELL_RELEASED, v ? EVLOCK_ENOTOWNED : EVLOCK_OK);
        is_over(&b);
    }
}

CASE(a_refused_release_is_repeated_after_a_loss) {
    struct bench b = bench_new();
    renewing(&b);
    no(&b, 0);
    release(&b);
    sends(&b, 0, LEASE_RELEASE);
    refused(&b, 0);
    pass(&b, SECOND);
    wakes(&b, 1); /* it is not there, but its user waits to be told by the server */
    sends(&b, 0, LEASE_RELEASE);
    no(&b, 0);
    tells(&b, LEASE_TELL_RELEASED, EVLOCK_ENOTOWNED);
}

CASE(a_lost_reply_after_a_token_was_gone_proves_nothing) {
    struct bench b = bench_new();
    renewing(&b);
    no(&b, 0);
    release(&b);
    sends(&b, 0, LEASE_RELEASE);
    unknown(&b, 0);
    sends(&b, 0, LEASE_RELEASE);
    no(&b, 0);
    tells(&b, LEASE_TELL_RELEASED, EVLOCK_ENOTOWNED);
}

/* --- Releasing on several nodes ----------------------------------------------------------------------------------- */

static void three_are_asked(struct bench *b) {
    held_by(b, 3);
    release(b);
    wakes(b, 7);
    for (unsigned i = 0; i < 3; i++)
        sends(b, i, LEASE_RELEASE);
}

CASE(a_quorum_releases_and_the_rest_is_undone) {
    struct bench b = bench_new();
    three_are_asked(&b);
    refused(&b, 0);
    yes(&b, 1);
    tells_nothing(&b);
    yes(&b, 2);
    tells(&b, LEASE_TELL_RELEASED, EVLOCK_OK);
    is_in(&b, LEASE_UNDOING);
    wakes(&b, 1);
    sends(&b, 0, LEASE_RELEASE);
    yes(&b, 0);
    is_over(&b);
}

CASE(a_release_without_a_quorum_tells_why) {
    struct bench b = bench_new();
    three_are_asked(&b);
    no(&b, 0);
    yes(&b, 1);
    tells_nothing(&b);
    forbidden(&b, 2);
    tells(&b, LEASE_TELL_RELEASED, EVLOCK_EPERM);
    is_over(&b);
}

CASE(a_release_goes_also_where_nothing_was_set) {
    struct bench b = bench_new();
    begin(&b, 3);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_ACQUIRE);
    no(&b, 0);
    yes(&b, 1);
    yes(&b, 2);
    release(&b);
    wakes(&b, 7);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_RELEASE);
    yes(&b, 1);
    yes(&b, 2);
    tells(&b, LEASE_TELL_RELEASED, EVLOCK_OK);
    is_not_over(&b); /* an answer is outstanding, though its node wants nothing */
    unknown(&b, 0);
    is_over(&b);
}

CASE(only_refused_releases_are_repeated) {
    struct bench b = bench_new();
    three_are_asked(&b);
    refused(&b, 0);
    pass(&b, SECOND / 2);
    yes(&b, 1);
    next_is(&b, b.now + SECOND / 2);
    pass(&b, SECOND / 2);
    wakes(&b, 1); /* one said yes, one has not answered */
}

/* --- Undoing ------------------------------------------------------------------------------------------------------ */

CASE(a_lost_acquire_is_undone_until_it_cannot_run) {
    struct bench b = bench_new();
    begin(&b, 1);
    sends(&b, 0, LEASE_ACQUIRE);
    unknown(&b, 0);
    tells(&b, LEASE_TELL_FAILED, EVLOCK_EUNREACHABLE);
    next_is(&b, LEASE_NEVER); /* for as long as the node is away */
    away(&b, 0);
    pass(&b, 100 * TTL);
    is_in(&b, LEASE_UNDOING);
    back(&b, 0, UNSETTLED);
    int64_t limit = b.now + life(TTL);
    next_is(&b, limit);
    while (b.now < limit - SECOND) {
        sends(&b, 0, LEASE_RELEASE);
        no(&b, 0); /* is not final */
        tells_nothing(&b);
        next_is(&b, b.now + SECOND);
        pass(&b, SECOND);
    }
    sends(&b, 0, LEASE_RELEASE);
    no(&b, 0);
    until(&b, limit);
    is_over(&b);
    tells_nothing(&b);
}

/* Or what each attempt leaves would stay, and grow, for as long as a server ends connections in place of answers. */
CASE(an_undo_ends_though_its_connections_do) {
    struct bench b = bench_new();
    begin(&b, 1);
    sends(&b, 0, LEASE_ACQUIRE);
    unknown(&b, 0);
    back(&b, 0, UNSETTLED);
    int64_t limit = b.now + life(TTL);
    while (b.now < limit - SECOND) {
        sends(&b, 0, LEASE_RELEASE);
        pass(&b, SECOND);
        unknown(&b, 0);
        back(&b, 0, UNSETTLED);
        is_in(&b, LEASE_UNDOING);
    }
    until(&b, limit);
    is_over(&b);
    tells_nothing(&b);
}

CASE(a_lost_acquire_that_was_settled_is_undone_once) {
    struct bench b = bench_new();
    begin(&b, 1);
    sends(&b, 0, LEASE_ACQUIRE);
    unknown(&b, 0);
    back(&b, 0, SETTLED);
    sends(&b, 0, LEASE_RELEASE);
    no(&b, 0);
    is_over(&b);
}

CASE(a_stray_acquire_that_was_found_is_done_with) {
    struct bench b = bench_new();
    begin(&b, 1);
    sends(&b, 0, LEASE_ACQUIRE);
    unknown(&b, 0);
    back(&b, 0, UNSETTLED);
    sends(&b, 0, LEASE_RELEASE);
    no(&b, 0);
    pass(&b, SECOND);
    sends(&b, 0, LEASE_RELEASE);
    yes(&b, 0); /* it has run, and runs once */
    is_over(&b);
}

/* What was sent, and what is sent next, with the connections: the first may run late, for all that is known. */
static void loses_it_and_a_release(struct bench *b) {
    unknown(b, 0);
    back(b, 0, UNSETTLED);
    sends(b, 0, LEASE_RELEASE);
    unknown(b, 0);
    back(b, 0, SETTLED);
    sends(b, 0, LEASE_RELEASE);
    no(b, 0);
    is_in(b, LEASE_UNDOING);
}

CASE(a_later_return_does_not_settle_an_older_connection) {
    struct bench b = bench_new();
    begin(&b, 1);
    sends(&b, 0, LEASE_ACQUIRE);
    loses_it_and_a_release(&b);
}

CASE(an_undo_goes_on_through_refusals_and_lost_answers) {
    struct bench b = bench_new();
    held_by_one(&b);
    abandon(&b);
    int64_t limit = b.now + life(TTL);
    sends(&b, 0, LEASE_RELEASE);
    unknown(&b, 0);
    wakes(&b, 1);
    sends(&b, 0, LEASE_RELEASE);
    refused(&b, 0);
    next_is(&b, b.now + SECOND);
    pass(&b, SECOND);
    sends(&b, 0, LEASE_RELEASE);
    again(&b, 0);
    sends(&b, 0, LEASE_RELEASE);
    next_is(&b, limit);
    until(&b, limit); /* by now it has expired */
    is_not_over(&b);  /* but the answer will come */
    yes(&b, 0);
    is_over(&b);
    tells_nothing(&b);
}

CASE(an_undo_without_expiry_goes_on_for_a_day_at_a_calm_pace) {
    struct bench b = bench_new();
    b.terms = (struct lease_terms){.lead = LEAD, .max_hold = LEASE_NEVER};
    held_by_one(&b);
    abandon(&b);
    next_is(&b, b.now + life(24 * 3600 * SECOND));
    sends(&b, 0, LEASE_RELEASE);
    refused(&b, 0);
    next_is(&b, b.now + SECOND);
}

CASE(the_undo_limit_counts_from_when_the_token_was_set_last) {
    struct bench b = bench_new();
    renewing(&b);
    abandon(&b);
    next_is(&b, LEASE_NEVER); /* the renewal may run at any time, */
    pass(&b, 4 * SECOND);
    yes_ttl(&b, 0, TTL); /* or just now */
    next_is(&b, b.now + life(TTL));
}

CASE(the_undo_limit_counts_what_was_asked_for) {
    struct bench b = bench_new();
    held_by_one(&b);
    extend(&b, LEASE_ADD, 7 * SECOND);
    abandon(&b);
    next_is(&b, b.now + life(TTL + 7 * SECOND));
    held_by_one(&b);
    extend(&b, LEASE_REPLACE, 50 * SECOND);
    abandon(&b);
    next_is(&b, b.now + life(50 * SECOND));
    held_by_one(&b);
    extend(&b, LEASE_REPLACE, SECOND); /* it may not run */
    abandon(&b);
    next_is(&b, b.now + life(TTL));
}

CASE(an_abandoned_acquire_is_undone_behind_itself) {
    struct bench b = bench_new();
    begin(&b, 1);
    sends(&b, 0, LEASE_ACQUIRE);
    abandon(&b);
    wakes(&b, 1);
    sends(&b, 0, LEASE_RELEASE);
    yes(&b, 0);
    tells_nothing(&b); /* nobody waits for it */
    deadline_is(&b, 0);
    unknown(&b, 0);
    sends(&b, 0, LEASE_RELEASE);
    yes(&b, 0);
    is_over(&b);
}

CASE(an_acquire_that_did_not_run_needs_no_undo) {
    static const enum lease_verdict verdicts[] = {LEASE_NO, LEASE_AGAIN, LEASE_REFUSED, LEASE_FORBIDDEN};
    for (size_t v = 0; v < 4; v++) {
        struct bench b = bench_new();
        begin(&b, 1);
        sends(&b, 0, LEASE_ACQUIRE);
        abandon(&b);
        answer(&b, 0, verdicts[v], EVLOCK_EREFUSED, 0);
        is_over(&b);
        sends_nothing(&b, 0);
        tells_nothing(&b);
    }
}

CASE(a_renewal_that_finds_nothing_saves_the_undo) {
    struct bench b = bench_new();
    renewing(&b);
    abandon(&b);
    no(&b, 0);
    is_over(&b);
    sends_nothing(&b, 0);
}

/* --- Undoing a token that may be set again ------------------------------------------------------------------------ */

/* Held with an own token; a renewal was lost with its connection, and the release was done on the next. */
static void own_is_released_after_a_loss(struct bench *b, bool own, enum back how) {
    b->entry.own = own;
    renewing(b);
    unknown(b, 0);
    back(b, 0, how);
    release(b);
    sends(b, 0, LEASE_RELEASE);
    yes(b, 0);
    tells(b, LEASE_TELL_RELEASED, EVLOCK_OK);
}

CASE(an_own_token_is_not_done_with_while_anything_may_still_run) {
    struct bench b = bench_new();
    own_is_released_after_a_loss(&b, false, UNSETTLED);
    is_over(&b); /* a random one is not used again */
    own_is_released_after_a_loss(&b, true, SETTLED);
    is_over(&b);
    own_is_released_after_a_loss(&b, true, UNSETTLED);
    is_in(&b, LEASE_UNDOING);
    wakes(&b, 0);
    next_is(&b, b.now + life(TTL));
    until(&b, evl_lease_next(b.lease));
    is_over(&b);
}

CASE(an_own_token_waits_for_the_node_that_was_not_back) {
    for (enum back how = UNSETTLED; how <= SETTLED; how++) {
        struct bench b = bench_new();
        b.entry.own = true;
        renewing(&b);
        release(&b);
        sends(&b, 0, LEASE_RELEASE);
        yes_ttl(&b, 0, TTL);
        pass(&b, 5 * SECOND);
        tells(&b, LEASE_TELL_RELEASED, EVLOCK_EUNREACHABLE);
        unknown(&b, 0);           /* the release */
        next_is(&b, LEASE_NEVER); /* it may run at any time */
        back(&b, 0, how);
        sends(&b, 0, LEASE_RELEASE);
        no(&b, 0);
        if (how == UNSETTLED) {
            is_in(&b, LEASE_UNDOING);
            next_is(&b, b.now + life(TTL));
            back(&b, 0, SETTLED); /* of another connection */
            is_in(&b, LEASE_UNDOING);
            until(&b, evl_lease_next(b.lease));
        }
        is_over(&b);
    }
}

CASE(an_own_token_waits_for_every_answer) {
    struct bench b = bench_new();
    b.entry.own = true;
    renewing(&b);
    abandon(&b);
    sends(&b, 0, LEASE_RELEASE);
    no(&b, 0); /* the renewal: it is gone, and the release has nothing to do, */
    is_in(&b, LEASE_UNDOING);
    unknown(&b, 0); /* but may run when the token is set again */
    next_is(&b, LEASE_NEVER);
    back(&b, 0, SETTLED);
    is_over(&b);

    held_by_two_of_three(&b); /* and for that of any other command */
    extend(&b, LEASE_ADD, SECOND);
    sends(&b, 0, LEASE_ADD);
    abandon(&b);
    for (unsigned i = 1; i < 3; i++) {
        sends(&b, i, LEASE_RELEASE);
        yes(&b, i);
    }
    is_in(&b, LEASE_UNDOING);
    no(&b, 0);
    is_over(&b);
}

/* What was lost with the connection before is not settled by the end of the last one. */
CASE(an_own_token_waits_for_what_was_lost_twice) {
    struct bench b = bench_new();
    b.entry.own = true;
    held_by_one(&b);
    abandon(&b);
    sends(&b, 0, LEASE_RELEASE);
    loses_it_and_a_release(&b);
    until(&b, evl_lease_next(b.lease));
    is_over(&b);
}

/* Of nobody's lease: only how long it may run late is of interest. */
CASE(a_late_release_of_nobodys_is_watched) {
    static const enum back hows[] = {SETTLED, REPLACED, UNSETTLED};
    struct bench b = bench_new();
    for (unsigned i = 0; i < 3; i++) {
        begin_as(&b, 3, (struct lease_entry){.own = true, .watched = 1U << 1});
        for (unsigned node = 0; node < 3; node++)
            sends_nothing(&b, node);
        next_is(&b, LEASE_NEVER);
        back(&b, 0, SETTLED); /* another node */
        is_in(&b, LEASE_UNDOING);
        back(&b, 1, hows[i]);
        if (hows[i] == UNSETTLED) {
            is_in(&b, LEASE_UNDOING);
            next_is(&b, b.now + life(TTL));
            until(&b, evl_lease_next(b.lease));
        }
        is_over(&b);
    }
}

/* Its connection may still break, and the release run late. */
CASE(an_own_token_waits_for_a_release_beyond_its_ttl) {
    struct bench b = bench_new();
    b.entry.own = true;
    held_by_one(&b);
    abandon(&b);
    sends(&b, 0, LEASE_RELEASE);
    next_is(&b, LEASE_NEVER);
    pass(&b, life(TTL));
    is_in(&b, LEASE_UNDOING);
    unknown(&b, 0);
    is_not_over(&b);
    next_is(&b, LEASE_NEVER);
    back(&b, 0, UNSETTLED);
    next_is(&b, b.now + life(TTL));
}

/* It may run as long as the node is away, and let the token live as long again. */
CASE(a_lost_extension_is_undone_until_the_node_is_back) {
    struct bench b = bench_new();
    held_by_one(&b);
    extend(&b, LEASE_REPLACE, 2 * TTL);
    sends(&b, 0, LEASE_REPLACE);
    unknown(&b, 0);
    abandon(&b);
    next_is(&b, LEASE_NEVER);
    pass(&b, 3 * TTL);
    back(&b, 0, SETTLED);
    next_is(&b, b.now + life(2 * TTL));
    sends(&b, 0, LEASE_RELEASE);
    no(&b, 0);
    is_over(&b);
}

CASE(a_token_that_is_left_to_its_ttl_is_remembered) {
    for (int there = 0; there < 2; there++) {
        struct bench b = bench_new();
        renewing(&b);
        if (there)
            yes_ttl(&b, 0, TTL);
        else
            no(&b, 0);
        release(&b);
        sends(&b, 0, LEASE_RELEASE);
        forbidden(&b, 0);
        is_over(&b);
        assert_int_equal(evl_lease_left_until(b.lease), there ? b.now + life(TTL) : 0);
    }
}

/* --- Undoing on several nodes ------------------------------------------------------------------------------------- */

/* Of three nodes two have granted it, and the third's answer was lost with its connection. */
static void one_is_a_stray(struct bench *b) {
    begin(b, 3);
    for (unsigned i = 0; i < 3; i++)
        sends(b, i, LEASE_ACQUIRE);
    yes(b, 0);
    yes(b, 1);
    unknown(b, 2);
    is_in(b, LEASE_HELD);
}

CASE(a_stray_is_undone_also_when_a_renewal_found_nothing) {
    struct bench b = bench_new();
    one_is_a_stray(&b);
    back(&b, 2, UNSETTLED);
    pass(&b, INTERVAL);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_RENEW);
    yes_ttl(&b, 0, TTL);
    yes_ttl(&b, 1, TTL);
    no(&b, 2);
    tells_nothing(&b);
    release(&b);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_RELEASE);
    no(&b, 2); /* not yet */
    yes(&b, 0);
    yes(&b, 1);
    tells(&b, LEASE_TELL_RELEASED, EVLOCK_OK);
    is_in(&b, LEASE_UNDOING);
    wakes(&b, 4);
    sends(&b, 2, LEASE_RELEASE);
    no(&b, 2);
    next_is(&b, b.now + SECOND);
    pass(&b, SECOND);
    wakes(&b, 4);
    sends(&b, 2, LEASE_RELEASE);
    yes(&b, 2);
    is_over(&b);
}

CASE(a_renewal_that_finds_nothing_does_not_save_the_undo_of_a_stray) {
    struct bench b = bench_new();
    one_is_a_stray(&b);
    back(&b, 2, UNSETTLED);
    pass(&b, INTERVAL);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_RENEW);
    abandon(&b);
    no(&b, 0);
    no(&b, 1);
    no(&b, 2);
    is_not_over(&b);
    sends(&b, 2, LEASE_RELEASE);
    sends_nothing(&b, 1);
}

CASE(a_settled_node_is_clean) {
    struct bench b = bench_new();
    one_is_a_stray(&b);
    back(&b, 2, SETTLED);
    pass(&b, INTERVAL);
    sends(&b, 2, LEASE_RENEW);
    no(&b, 2);
    abandon(&b);
    wakes(&b, 3);
}

CASE(an_undo_waits_for_the_node_that_was_not_back) {
    struct bench b = bench_new();
    one_is_a_stray(&b);
    abandon(&b);
    wakes(&b, 7);
    sends(&b, 0, LEASE_RELEASE);
    sends(&b, 1, LEASE_RELEASE);
    yes(&b, 0);
    yes(&b, 1);
    pass(&b, 10 * TTL);
    is_not_over(&b);
    back(&b, 2, SETTLED);
    sends(&b, 2, LEASE_RELEASE);
    no(&b, 2);
    is_over(&b);
}

CASE(answers_come_to_an_undo_in_any_order) {
    struct bench b = bench_new();
    begin(&b, 3);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_ACQUIRE);
    abandon(&b);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_RELEASE);
    no(&b, 2);
    unknown(&b, 2); /* its release: there is nothing to release */
    yes(&b, 0);
    yes(&b, 0);
    is_not_over(&b);
    yes(&b, 1);
    next_is(&b, b.now + life(TTL));
    yes(&b, 1);
    is_over(&b);
}

/* --- Exporting ---------------------------------------------------------------------------------------------------- */

CASE(an_exported_lease_ends_and_leaves_the_token) {
    struct bench b = bench_new();
    held_by_one(&b);
    evl_lease_export(b.lease);
    is_over(&b);
    deadline_is(&b, 0);
    next_is(&b, LEASE_NEVER);
    pass(&b, 2 * TTL);
    tells_nothing(&b);
    sends_nothing(&b, 0);
}

CASE(an_export_waits_for_what_is_unanswered) {
    struct bench b = bench_new();
    renewing(&b);
    extend(&b, LEASE_ADD, SECOND);
    evl_lease_export(b.lease);
    is_not_over(&b);
    sends_nothing(&b, 0);
    no(&b, 0);
    tells_nothing(&b);
    wakes(&b, 0);
    is_over(&b);
}

CASE(what_may_yet_be_shortened_is_not_exported) {
    struct bench b = bench_new();
    held_by(&b, 3);
    assert_true(evl_lease_exportable(b.lease, b.now));
    extend(&b, LEASE_REPLACE, SECOND);
    assert_true(evl_lease_exportable(b.lease, b.now)); /* it was not sent */
    sends(&b, 2, LEASE_REPLACE);
    assert_false(evl_lease_exportable(b.lease, b.now));
    unknown(&b, 2);
    assert_false(evl_lease_exportable(b.lease, b.now));
    back(&b, 2, SETTLED);
    assert_true(evl_lease_exportable(b.lease, b.now));
    sends(&b, 1, LEASE_REPLACE);
    unknown(&b, 1);
    back(&b, 1, UNSETTLED);
    assert_false(evl_lease_exportable(b.lease, b.now));
}

/* A node that is known not to have the token says nothing new by having none. */
CASE(a_node_without_the_token_does_not_speak_for_the_others) {
    struct bench b = bench_new();
    held_by_two_of_three(&b);
    release(&b);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_RELEASE);
    no(&b, 0);
    yes(&b, 1);
    until(&b, evl_lease_next(b.lease));
    tells(&b, LEASE_TELL_RELEASED, EVLOCK_EUNREACHABLE);
}

CASE(a_lost_lease_that_is_gone_everywhere_is_not_owned) {
    struct bench b = bench_new();
    held_by_two_of_three(&b);
    pass(&b, INTERVAL);
    sends(&b, 1, LEASE_RENEW);
    sends(&b, 2, LEASE_RENEW);
    no(&b, 1);
    no(&b, 2);
    is_in(&b, LEASE_LOST);
    release(&b);
    for (unsigned i = 1; i < 3; i++)
        sends(&b, i, LEASE_RELEASE);
    no(&b, 1);
    no(&b, 2);
    tells(&b, LEASE_TELL_RELEASED, EVLOCK_ENOTOWNED);
}

/* Nor does one that is kept away, for whatever reason, say why the others do not have it. */
CASE(a_node_that_is_away_does_not_speak_for_the_others) {
    struct bench b = bench_new();
    held_by_two_of_three(&b);
    pass(&b, INTERVAL);
    sends(&b, 1, LEASE_RENEW);
    sends(&b, 2, LEASE_RENEW);
    no(&b, 1);
    no(&b, 2);
    release(&b);
    evl_lease_node_away(b.lease, 0, EVLOCK_ESAME, b.now, fresh(&b));
    for (unsigned i = 1; i < 3; i++)
        sends(&b, i, LEASE_RELEASE);
    no(&b, 1);
    no(&b, 2);
    tells(&b, LEASE_TELL_RELEASED, EVLOCK_ENOTOWNED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_release_ends_holding_at_once),
        cmocka_unit_test(nothing_is_renewed_or_lost_after_a_release),
        cmocka_unit_test(no_renewal_is_due_after_a_release),
        cmocka_unit_test(a_release_follows_an_unanswered_command),
        cmocka_unit_test(a_release_that_was_held_up_wakes_with_the_answer),
        cmocka_unit_test(a_lost_reply_and_nothing_there_was_the_release),
        cmocka_unit_test(nothing_there_at_the_first_release_is_told),
        cmocka_unit_test(a_refused_release_is_repeated),
        cmocka_unit_test(a_forbidden_release_is_not_repeated),
        cmocka_unit_test(a_release_is_told_by_its_time),
        cmocka_unit_test(a_release_after_a_loss_still_sends),
        cmocka_unit_test(a_refused_release_is_repeated_after_a_loss),
        cmocka_unit_test(a_lost_reply_after_a_token_was_gone_proves_nothing),
        cmocka_unit_test(a_quorum_releases_and_the_rest_is_undone),
        cmocka_unit_test(a_release_without_a_quorum_tells_why),
        cmocka_unit_test(a_release_goes_also_where_nothing_was_set),
        cmocka_unit_test(only_refused_releases_are_repeated),
        cmocka_unit_test(a_lost_acquire_is_undone_until_it_cannot_run),
        cmocka_unit_test(an_undo_ends_though_its_connections_do),
        cmocka_unit_test(a_lost_acquire_that_was_settled_is_undone_once),
        cmocka_unit_test(a_stray_acquire_that_was_found_is_done_with),
        cmocka_unit_test(a_later_return_does_not_settle_an_older_connection),
        cmocka_unit_test(an_undo_goes_on_through_refusals_and_lost_answers),
        cmocka_unit_test(an_undo_without_expiry_goes_on_for_a_day_at_a_calm_pace),
        cmocka_unit_test(the_undo_limit_counts_from_when_the_token_was_set_last),
        cmocka_unit_test(the_undo_limit_counts_what_was_asked_for),
        cmocka_unit_test(an_abandoned_acquire_is_undone_behind_itself),
        cmocka_unit_test(an_acquire_that_did_not_run_needs_no_undo),
        cmocka_unit_test(a_renewal_that_finds_nothing_saves_the_undo),
        cmocka_unit_test(an_own_token_is_not_done_with_while_anything_may_still_run),
        cmocka_unit_test(an_own_token_waits_for_the_node_that_was_not_back),
        cmocka_unit_test(an_own_token_waits_for_every_answer),
        cmocka_unit_test(an_own_token_waits_for_what_was_lost_twice),
        cmocka_unit_test(a_late_release_of_nobodys_is_watched),
        cmocka_unit_test(an_own_token_waits_for_a_release_beyond_its_ttl),
        cmocka_unit_test(a_lost_extension_is_undone_until_the_node_is_back),
        cmocka_unit_test(a_token_that_is_left_to_its_ttl_is_remembered),
        cmocka_unit_test(a_stray_is_undone_also_when_a_renewal_found_nothing),
        cmocka_unit_test(a_renewal_that_finds_nothing_does_not_save_the_undo_of_a_stray),
        cmocka_unit_test(a_settled_node_is_clean),
        cmocka_unit_test(an_undo_waits_for_the_node_that_was_not_back),
        cmocka_unit_test(answers_come_to_an_undo_in_any_order),
        cmocka_unit_test(an_exported_lease_ends_and_leaves_the_token),
        cmocka_unit_test(an_export_waits_for_what_is_unanswered),
        cmocka_unit_test(a_node_without_the_token_does_not_speak_for_the_others),
        cmocka_unit_test(a_lost_lease_that_is_gone_everywhere_is_not_owned),
        cmocka_unit_test(a_node_that_is_away_does_not_speak_for_the_others),
        cmocka_unit_test(what_may_yet_be_shortened_is_not_exported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
