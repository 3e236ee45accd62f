/*
 * How a lease is held: renewed, in danger, lost, told so once and in time.
 */
#include "minmax.h"
#include "test_lease.h"

/* --- Renewing ----------------------------------------------------------------------------------------------------- */

CASE(a_renewal_counts_from_when_it_was_sent) {
    struct bench b = bench_new();
    held_by_one(&b);
    pass(&b, INTERVAL - 1);
    wakes(&b, 0);
    pass(&b, 1);
    wakes(&b, 1);
    pass(&b, SECOND);
    int64_t sent = b.now;
    sends(&b, 0, LEASE_RENEW);
    pass(&b, 2 * SECOND);
    yes_ttl(&b, 0, TTL);
    tells_nothing(&b);
    deadline_is(&b, sent + KEPT);
    next_is(&b, sent + INTERVAL);
}

CASE(renewals_fall_due_together) {
    struct bench b = bench_new();
    b.terms.grain = 99 * MS;
    renewing(&b);
    int64_t sent = b.now;
    pass(&b, SECOND);
    yes_ttl(&b, 0, TTL);
    int64_t due = (sent + INTERVAL) / b.terms.grain * b.terms.grain; /* a little early, and never late */
    assert_true(due < sent + INTERVAL);
    next_is(&b, due);
    pass(&b, due - b.now);
    sends(&b, 0, LEASE_RENEW);
    yes_ttl(&b, 0, 3 * MS); /* so little left that it cannot wait for the others */
    next_is(&b, b.now + MS);
}

CASE(renewals_fall_due_with_those_of_their_client) {
    struct bench b = bench_new();
    b.terms.grain = 100 * MS;
    b.terms.phase = 70 * MS;
    renewing(&b);
    yes_ttl(&b, 0, TTL);
    next_is(&b, b.now + INTERVAL - 30 * MS); /* b.now is a whole number of grains */
    pass(&b, INTERVAL - 30 * MS);
    sends(&b, 0, LEASE_RENEW);
    yes_ttl(&b, 0, TTL);
    next_is(&b, b.now + INTERVAL);
}

CASE(an_answer_after_the_deadline_is_too_late) {
    struct bench b = bench_new();
    renewing(&b);
    b.now += TTL; /* the clock has not been looked at meanwhile */
    yes_ttl(&b, 0, TTL);
    tells_lost(&b, EVLOCK_EEXPIRED);
    deadline_is(&b, 0);
}

CASE(without_renewal_it_is_lost_at_its_deadline) {
    struct bench b = bench_new();
    b.terms.interval = 0;
    held_by_one(&b);
    next_is(&b, b.now + KEPT - LEAD);
    pass(&b, KEPT - LEAD - 1);
    tells_nothing(&b);
    back(&b, 0, REPLACED); /* nobody is asked */
    wakes(&b, 0);
    pass(&b, 1);
    tells_lost(&b, EVLOCK_EEXPIRED);
    deadline_is(&b, 0);
    next_is(&b, LEASE_NEVER);
    pass(&b, TTL);
    tells_nothing(&b); /* once */
}

/* Also one that is not what a lease of that length has by itself. */
CASE(a_loss_is_told_by_its_lead) {
    static const int64_t leads[] = {0, 1, 7 * MS, 20 * SECOND, KEPT - 1};
    for (size_t i = 0; i < sizeof(leads) / sizeof(leads[0]); i++) {
        struct bench b = bench_new();
        b.terms.interval = 0;
        b.terms.lead = leads[i];
        held_by_one(&b);
        next_is(&b, b.now + KEPT - leads[i]);
        deadline_is(&b, b.now + KEPT);
        pass(&b, KEPT - leads[i] - 1);
        tells_nothing(&b);
        is_in(&b, LEASE_HELD);
        pass(&b, 1);
        tells_lost(&b, EVLOCK_EEXPIRED);
        deadline_is(&b, 0);
    }
}

/* It would be told lost as soon as it was granted. */
CASE(a_yes_within_the_lead_is_no_grant) {
    for (int64_t late = 0; late <= 1; late++) {
        struct bench b = bench_new();
        b.terms.lead = 20 * SECOND;
        begin(&b, 1);
        sends(&b, 0, LEASE_ACQUIRE);
        pass(&b, KEPT - 20 * SECOND - 1 + late);
        yes(&b, 0);
        if (late)
            tells(&b, LEASE_TELL_FAILED, EVLOCK_EUNREACHABLE);
        else
            tells(&b, LEASE_TELL_GRANTED, 0);
    }
}

/* A node that is done before the others is mended, however early a loss is told. */
CASE(the_lead_does_not_say_who_keeps_a_lease) {
    struct bench b = bench_new();
    b.terms.lead = 20 * SECOND;
    b.terms.interval = 0;
    begin(&b, 3);
    sends(&b, 0, LEASE_ACQUIRE);
    pass(&b, 2 * MS);
    sends(&b, 1, LEASE_ACQUIRE);
    sends(&b, 2, LEASE_ACQUIRE);
    for (unsigned i = 0; i < 3; i++)
        yes(&b, i);
    assert_int_equal(evl_lease_keepers(b.lease), 2);
}

CASE(a_moment_is_little_beside_the_ttl) {
    assert_int_equal(evl_lease_moment(0), MS);
    assert_int_equal(evl_lease_moment(3 * MS), 150);
    assert_int_equal(evl_lease_moment(20 * MS), MS);
    assert_int_equal(evl_lease_moment(TTL), MS);
}

CASE(a_renewal_does_not_lower_what_was_extended) {
    struct bench b = bench_new();
    held_by_one(&b);
    extend(&b, LEASE_REPLACE, 100 * SECOND);
    sends(&b, 0, LEASE_REPLACE);
    yes_ttl(&b, 0, 100 * SECOND);
    int64_t deadline = b.now + 100 * SECOND - evl_lease_drift(100 * SECOND);
    deadline_is(&b, deadline);
    next_is(&b, b.now + INTERVAL);
    pass(&b, INTERVAL);
    sends(&b, 0, LEASE_RENEW);
    yes_ttl(&b, 0, 90 * SECOND); /* as the server says, or the ttl, which it has at least: both change nothing */
    deadline_is(&b, deadline);
    pass(&b, INTERVAL);
    sends(&b, 0, LEASE_RENEW);
    yes_ttl(&b, 0, TTL);
    deadline_is(&b, deadline);
    abandon(&b);
    next_is(&b, b.now + life(100 * SECOND));
}

CASE(a_renewal_with_little_left_is_followed_sooner) {
    struct bench b = bench_new();
    b.terms.interval = 20 * SECOND;
    held_by_one(&b);
    pass(&b, 20 * SECOND);
    sends(&b, 0, LEASE_RENEW);
    yes_ttl(&b, 0, TTL - 1);
    next_is(&b, b.now + (TTL - 1) / 3);
    pass(&b, (TTL - 1) / 3);
    sends(&b, 0, LEASE_RENEW);
    yes_ttl(&b, 0, TTL);
    next_is(&b, b.now + 20 * SECOND);
}

CASE(only_one_command_is_unanswered_at_a_time) {
    struct bench b = bench_new();
    renewing(&b);
    next_is(&b, b.now + INTERVAL);
    pass(&b, INTERVAL);
    wakes(&b, 0);
    sends_nothing(&b, 0);
    extend(&b, LEASE_ADD, SECOND);
    wakes(&b, 0);
    assert_int_equal(takes(&b, 0, LEASE_NOTHING), LEASE_NOTHING);
    yes_ttl(&b, 0, TTL);
    wakes(&b, 1);
    sends(&b, 0, LEASE_ADD);
}

CASE(a_script_that_the_server_lost_is_sent_with_a_new_clock) {
    struct bench b = bench_new();
    renewing(&b);
    pass(&b, SECOND);
    again(&b, 0);
    wakes(&b, 1);
    sends(&b, 0, LEASE_RENEW);
    yes_ttl(&b, 0, TTL);
    deadline_is(&b, b.now + KEPT);
}

CASE(a_failed_renewal_is_tried_again_soon) {
    static void (*const failures[])(struct bench * b, unsigned node) = {refused, forbidden, unknown};
    for (size_t f = 0; f < 3; f++) {
        struct bench b = bench_new();
        renewing(&b);
        int64_t deadline = evl_lease_deadline(b.lease);
        failures[f](&b, 0);
        tells_nothing(&b);
        deadline_is(&b, deadline); /* an unknown one never moves it out */
        next_is(&b, b.now + SECOND);
        pass(&b, SECOND);
        wakes(&b, 1);
        sends(&b, 0, LEASE_RENEW);
        yes_ttl(&b, 0, TTL);
        next_is(&b, b.now + INTERVAL);
        deadline_is(&b, b.now + KEPT);
    }
}

CASE(the_pause_is_short_beside_what_is_left) {
    struct bench b = bench_new();
    b.terms.interval = 25 * SECOND;
    b.terms.risk = 0;
    held_by_one(&b);
    pass(&b, 25 * SECOND);
    sends(&b, 0, LEASE_RENEW);
    refused(&b, 0);
    next_is(&b, b.now + (KEPT - 25 * SECOND) / 8);
    pass(&b, KEPT - 25 * SECOND - 50 * MS);
    sends(&b, 0, LEASE_RENEW);
    refused(&b, 0);
    next_is(&b, b.now + 10 * MS); /* and never less than this */

    b.terms.interval = SECOND; /* and short beside the interval */
    held_by_one(&b);
    pass(&b, SECOND);
    sends(&b, 0, LEASE_RENEW);
    refused(&b, 0);
    next_is(&b, b.now + SECOND / 8);
}

CASE(a_node_that_comes_back_is_asked_at_once) {
    struct bench b = bench_new();
    held_by_one(&b);
    pass(&b, SECOND);
    away(&b, 0);
    back(&b, 0, SETTLED);
    wakes(&b, 0); /* nothing was under way */

    pass(&b, INTERVAL - SECOND);
    away(&b, 0); /* the renewal could not be sent */
    back(&b, 0, SETTLED);
    sends(&b, 0, LEASE_RENEW);
    unknown(&b, 0);
    wakes(&b, 0); /* not upon a broken connection */
    back(&b, 0, SETTLED);
    wakes(&b, 1);
    sends(&b, 0, LEASE_RENEW);
    yes_ttl(&b, 0, TTL);
    back(&b, 0, SETTLED);
    wakes(&b, 0);
    back(&b, 0, REPLACED); /* does the token outlive the server? */
    wakes(&b, 1);
    sends(&b, 0, LEASE_RENEW);
    yes_ttl(&b, 0, TTL);
    back(&b, 0, SETTLED);
    wakes(&b, 0); /* it did */
}

CASE(each_renewal_takes_a_quorum_of_its_own) {
    struct bench b = bench_new();
    held_by(&b, 3);
    pass(&b, INTERVAL);
    for (unsigned i = 0; i < 3; i++) {
        sends(&b, i, LEASE_RENEW);
        yes_ttl(&b, i, TTL);
    }
    pass(&b, INTERVAL);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_RENEW);
    refused(&b, 0);
    yes_ttl(&b, 1, TTL); /* one; that the others confirmed the last does not count */
    next_is(&b, b.now + SECOND);
}

/* One node that is read-only, say, would else have all of them asked again every second. */
CASE(a_node_that_refuses_last_hastens_nothing) {
    struct bench b = bench_new();
    held_by(&b, 3);
    pass(&b, INTERVAL);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_RENEW);
    yes_ttl(&b, 0, TTL);
    yes_ttl(&b, 1, TTL);
    refused(&b, 2);
    next_is(&b, b.now + INTERVAL);
}

/* --- In danger ---------------------------------------------------------------------------------------------------- */

CASE(danger_is_told_once_an_episode) {
    struct bench b = bench_new();
    renewing(&b);
    refused(&b, 0);
    int64_t risk = evl_lease_deadline(b.lease) - RISK;
    while (evl_lease_next(b.lease) < risk) {
        until(&b, evl_lease_next(b.lease));
        tells_nothing(&b);
        sends(&b, 0, LEASE_RENEW);
        refused(&b, 0);
    }
    next_is(&b, risk);
    until(&b, risk);
    tells_risk(&b, EVLOCK_EREFUSED);
    pass(&b, SECOND);
    tells_nothing(&b);
    sends(&b, 0, LEASE_RENEW);
    yes_ttl(&b, 0, TTL); /* the episode is over */
    pass(&b, INTERVAL);
    sends(&b, 0, LEASE_RENEW);
    refused(&b, 0);
    until(&b, evl_lease_deadline(b.lease) - RISK);
    tells_risk(&b, EVLOCK_EREFUSED);
    until(&b, evl_lease_deadline(b.lease) - LEAD);
    tells_lost(&b, EVLOCK_EEXPIRED);
}

CASE(danger_of_which_nobody_heard_is_told_anew) {
    struct bench b = bench_new();
    renewing(&b);
    assert_false(evl_lease_warn_anew(b.lease));
    refused(&b, 0);
    until(&b, evl_lease_deadline(b.lease) - RISK);
    assert_true(b.out.events & LEASE_TELL_RISK);
    assert_true(evl_lease_warn_anew(b.lease));
    next_is(&b, evl_lease_deadline(b.lease) - RISK);
    pass(&b, 0);
    tells_risk(&b, EVLOCK_EREFUSED);
    pass(&b, SECOND);
    tells_nothing(&b);
}

CASE(a_renewal_just_asked_for_worries_nobody) {
    struct bench b = bench_new();
    b.terms.risk = 29 * SECOND; /* there is less left when the first renewal is due */
    renewing(&b);
    int64_t risk = b.now + (evl_lease_deadline(b.lease) - b.now) / 4;
    next_is(&b, risk);
    until(&b, risk - 1);
    tells_nothing(&b);
    until(&b, risk);
    tells_risk(&b, EVLOCK_EUNREACHABLE);
    yes_ttl(&b, 0, TTL);
    next_is(&b, 1000 * SECOND + 2 * INTERVAL); /* an interval after it was sent */
}

CASE(a_renewal_that_cannot_be_sent_worries_at_once) {
    struct bench b = bench_new();
    b.terms.risk = 29 * SECOND;
    held_by_one(&b);
    pass(&b, INTERVAL);
    away(&b, 0);
    pass(&b, 0);
    tells_risk(&b, EVLOCK_EUNREACHABLE);
}

static void until_risk(struct bench *b) {
    until(b, evl_lease_deadline(b->lease) - RISK);
}

CASE(danger_is_told_by_the_last_failure) {
    static void (*const failures[])(struct bench * b, unsigned node) = {refused, forbidden, unknown};
    static const int statuses[] = {EVLOCK_EREFUSED, EVLOCK_EPERM, EVLOCK_EUNREACHABLE};
    for (size_t first = 0; first < 3; first++)
        for (size_t last = 0; last < 3; last++) {
            struct bench b = bench_new();
            renewing(&b);
            failures[first](&b, 0);
            until(&b, b.lease->due);
            sends(&b, 0, LEASE_RENEW);
            failures[last](&b, 0);
            until_risk(&b);
            tells_risk(&b, statuses[last]);
        }
}

CASE(danger_is_told_by_why_a_node_is_away) {
    struct bench b = bench_new();
    held_by_one(&b);
    pass(&b, INTERVAL);
    away(&b, 0);
    evl_lease_node_away(b.lease, 0, EVLOCK_EAUTH, b.now, fresh(&b));
    until_risk(&b);
    tells_risk(&b, EVLOCK_EAUTH);
}

/* Nothing of the node's words has to do with renewals: nothing is known of those but silence. */
CASE(an_extension_that_fails_is_no_danger_of_its_own) {
    struct bench b = bench_new();
    held_by_one(&b);
    extend(&b, LEASE_ADD, SECOND);
    sends(&b, 0, LEASE_ADD);
    refused(&b, 0);
    tells(&b, LEASE_TELL_EXTENDED, EVLOCK_EREFUSED);
    pass(&b, INTERVAL);
    sends(&b, 0, LEASE_RENEW);
    until_risk(&b);
    tells_risk(&b, EVLOCK_EUNREACHABLE);
}

CASE(a_failure_that_a_confirmation_followed_is_forgotten) {
    struct bench b = bench_new();
    renewing(&b);
    refused(&b, 0);
    until(&b, b.lease->due);
    sends(&b, 0, LEASE_RENEW);
    yes_ttl(&b, 0, TTL);
    pass(&b, INTERVAL);
    sends(&b, 0, LEASE_RENEW);
    until_risk(&b);
    tells_risk(&b, EVLOCK_EUNREACHABLE);
}

CASE(a_renewal_counts_from_its_beginning_however_long_it_hangs) {
    struct bench b = bench_new();
    renewing(&b);
    pass(&b, INTERVAL); /* the next is due, and the first unanswered */
    tells_nothing(&b);
    next_is(&b, evl_lease_deadline(b.lease) - RISK);
}

CASE(a_renewal_that_an_extension_stands_before_counts) {
    struct bench b = bench_new();
    held_by_one(&b);
    pass(&b, SECOND);
    evl_lease_extend(b.lease, LEASE_ADD, SECOND, LEASE_NEVER, fresh(&b));
    sends(&b, 0, LEASE_ADD);
    pass(&b, INTERVAL - SECOND); /* due, and not sent */
    until(&b, evl_lease_deadline(b.lease) - RISK - 1);
    tells_nothing(&b);
    pass(&b, 1);
    tells_risk(&b, EVLOCK_EUNREACHABLE);
}

CASE(no_danger_is_told_where_nothing_is_due) {
    struct bench b = bench_new();
    b.terms.interval = 25 * SECOND;
    held_by_one(&b);
    pass(&b, KEPT - RISK + 1);
    tells_nothing(&b);
    b.terms.interval = 0;
    held_by_one(&b);
    extend(&b, LEASE_ADD, SECOND);
    sends(&b, 0, LEASE_ADD);
    unknown(&b, 0);
    pass(&b, KEPT - RISK + 1);
    tells_nothing(&b);
}

/* --- Lost --------------------------------------------------------------------------------------------------------- */

CASE(a_stall_is_answered_by_the_loss) {
    struct bench b = bench_new();
    held_by_one(&b);
    pass(&b, 100 * TTL);
    tells_lost(&b, EVLOCK_EEXPIRED); /* no renewal, no warning */
    wakes(&b, 0);
}

CASE(a_token_that_is_gone_is_told_at_once) {
    for (int replaced = 0; replaced < 2; replaced++) {
        struct bench b = bench_new();
        held_by_one(&b);
        if (replaced)
            back(&b, 0, REPLACED);
        else
            pass(&b, INTERVAL);
        sends(&b, 0, LEASE_RENEW);
        no(&b, 0);
        tells_lost(&b, replaced ? EVLOCK_EDATALOSS : EVLOCK_ENOTOWNED);
        deadline_is(&b, 0);
        abandon(&b);
        is_over(&b); /* there is nothing to undo */
    }
}

CASE(a_server_that_was_replaced_before_it_granted_has_lost_nothing) {
    struct bench b = bench_new();
    begin(&b, 1);
    back(&b, 0, REPLACED);
    sends(&b, 0, LEASE_ACQUIRE);
    yes(&b, 0);
    back(&b, 0, SETTLED);
    wakes(&b, 0);
    pass(&b, INTERVAL);
    sends(&b, 0, LEASE_RENEW);
    no(&b, 0);
    tells_lost(&b, EVLOCK_ENOTOWNED);
}

CASE(a_confirmation_by_the_new_server_settles_it) {
    struct bench b = bench_new();
    held_by_one(&b);
    back(&b, 0, REPLACED);
    sends(&b, 0, LEASE_RENEW);
    yes_ttl(&b, 0, TTL);
    pass(&b, INTERVAL);
    sends(&b, 0, LEASE_RENEW);
    no(&b, 0);
    tells_lost(&b, EVLOCK_ENOTOWNED);
}

CASE(a_maximum_hold_ends_renewal) {
    struct bench b = bench_new();
    b.terms.max_hold = 25 * SECOND;
    held_by_one(&b);
    int64_t granted = b.now;
    for (int i = 0; i < 2; i++) {
        pass(&b, INTERVAL);
        sends(&b, 0, LEASE_RENEW);
        yes_ttl(&b, 0, TTL);
    }
    pass(&b, INTERVAL); /* at 30 s */
    wakes(&b, 0);
    tells_nothing(&b);
    back(&b, 0, REPLACED); /* nor upon a return */
    wakes(&b, 0);
    next_is(&b, granted + 2 * INTERVAL + KEPT - LEAD); /* and no danger: nothing is due */
    until(&b, evl_lease_next(b.lease));
    tells_lost(&b, EVLOCK_EMAXHOLD);
}

CASE(a_renewal_under_way_at_the_maximum_hold_is_not_tried_again) {
    struct bench b = bench_new();
    b.terms.max_hold = INTERVAL + SECOND;
    renewing(&b);
    pass(&b, INTERVAL);
    refused(&b, 0);
    next_is(&b, evl_lease_deadline(b.lease) - RISK); /* in danger all the same */
    until(&b, evl_lease_deadline(b.lease) - LEAD);
    tells_lost(&b, EVLOCK_EMAXHOLD);
}

CASE(a_renewal_that_waited_beyond_the_maximum_hold_is_not_sent) {
    struct bench b = bench_new();
    b.terms.max_hold = INTERVAL + SECOND;
    held_by_one(&b);
    pass(&b, INTERVAL);
    wakes(&b, 1);
    pass(&b, 2 * SECOND); /* for a node that was away */
    sends(&b, 0, LEASE_NOTHING);
    until(&b, evl_lease_deadline(b.lease) - LEAD);
    tells_lost(&b, EVLOCK_EMAXHOLD);
}

CASE(a_loss_before_the_maximum_hold_is_the_deadlines) {
    struct bench b = bench_new();
    b.terms.max_hold = TTL;
    renewing(&b);
    until(&b, evl_lease_deadline(b.lease) - LEAD);
    tells_lost(&b, EVLOCK_EEXPIRED);
}

CASE(a_maximum_hold_without_renewal_ends_nothing) {
    struct bench b = bench_new();
    b.terms.max_hold = SECOND;
    b.terms.interval = 0;
    held_by_one(&b);
    pass(&b, KEPT);
    tells_lost(&b, EVLOCK_EEXPIRED);
}

/* --- Several nodes ------------------------------------------------------------------------------------------------ */

CASE(a_renewal_is_confirmed_by_a_quorum) {
    struct bench b = bench_new();
    held_by(&b, 3);
    int64_t deadline = b.now + KEPT;
    pass(&b, INTERVAL);
    wakes(&b, 7);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_RENEW);
    refused(&b, 0);
    yes_ttl(&b, 1, TTL);
    deadline_is(&b, deadline);
    next_is(&b, b.now + SECOND);
    yes_ttl(&b, 2, TTL);
    deadline_is(&b, b.now + KEPT);
    next_is(&b, b.now + INTERVAL); /* the node that refused has its turn then */
    pass(&b, INTERVAL);
    wakes(&b, 7);
}

CASE(a_node_that_hangs_endangers_nothing) {
    struct bench b = bench_new();
    b.terms.risk = 29 * SECOND;
    held_by(&b, 3);
    pass(&b, INTERVAL);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_RENEW);
    yes_ttl(&b, 0, TTL);
    yes_ttl(&b, 1, TTL);
    next_is(&b, b.now + INTERVAL);
    pass(&b, INTERVAL - 1);
    tells_nothing(&b);
    pass(&b, 1);
    wakes(&b, 3); /* the third has not answered yet */
}

CASE(a_lease_is_lost_with_its_quorum) {
    struct bench b = bench_new();
    held_by(&b, 5);
    pass(&b, INTERVAL);
    for (unsigned i = 0; i < 5; i++)
        sends(&b, i, LEASE_RENEW);
    no(&b, 0);
    no(&b, 1);
    tells_nothing(&b);
    for (unsigned i = 3; i < 5; i++)
        yes_ttl(&b, i, TTL);
    pass(&b, INTERVAL);
    wakes(&b, 0x1b); /* also where it is gone */
    is_in(&b, LEASE_HELD);
    no(&b, 2);
    tells_lost(&b, EVLOCK_ENOTOWNED);
    assert_int_equal(b.out.agreed, 2); /* those that have not said otherwise */
    abandon(&b);
    wakes(&b, 0x18); /* undone where it may be */
}

CASE(a_node_that_may_yet_get_it_does_not_keep_it) {
    struct bench b = bench_new();
    begin(&b, 3);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_ACQUIRE);
    yes(&b, 0);
    yes(&b, 1);
    pass(&b, INTERVAL);
    sends(&b, 0, LEASE_RENEW);
    no(&b, 0);
    tells_lost(&b, EVLOCK_ENOTOWNED); /* one node keeps it, and one has not answered */
}

CASE(a_loss_says_how_many_had_agreed) {
    struct bench b = bench_new();
    held_by(&b, 5);
    pass(&b, INTERVAL);
    for (unsigned i = 0; i < 5; i++)
        sends(&b, i, LEASE_RENEW);
    for (unsigned i = 0; i < 3; i++)
        yes_ttl(&b, i, TTL);
    release(&b);
    assert_int_equal(b.out.agreed, 0); /* a release says nothing of the kind */

    held_by(&b, 5);
    pass(&b, INTERVAL);
    for (unsigned i = 0; i < 5; i++)
        sends(&b, i, LEASE_RENEW);
    yes_ttl(&b, 0, TTL);
    yes_ttl(&b, 1, TTL);
    refused(&b, 2);
    extend(&b, LEASE_ADD, SECOND);
    for (unsigned i = 0; i < 2; i++) /* one of those has it no more */
        sends(&b, i, LEASE_ADD);
    no(&b, 1);
    tells_nothing(&b);
    until(&b, evl_lease_deadline(b.lease) - LEAD);
    assert_true(b.out.events & LEASE_TELL_LOST);
    assert_int_equal(b.out.agreed, 1);
}

CASE(a_node_that_was_replaced_is_one_of_several) {
    struct bench b = bench_new();
    held_by(&b, 3);
    back(&b, 1, REPLACED);
    wakes(&b, 7);
    sends(&b, 1, LEASE_RENEW);
    no(&b, 1);
    tells_nothing(&b);
    sends(&b, 0, LEASE_RENEW);
    no(&b, 0);
    tells_lost(&b, EVLOCK_ENOTOWNED);
}

CASE(answers_after_the_loss_tell_nothing) {
    struct bench b = bench_new();
    begin(&b, 3);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_ACQUIRE);
    yes(&b, 0);
    yes(&b, 1);
    pass(&b, TTL);
    tells_lost(&b, EVLOCK_EEXPIRED);
    yes(&b, 2); /* an acquire that is as late as that */
    tells_nothing(&b);
    deadline_is(&b, 0);
    abandon(&b);
    wakes(&b, 7);
}

/* A server's clock was set back, or somebody has made the key live longer, or the server lies. */
CASE(no_answer_to_a_renewal_counts_for_more_than_the_ttl) {
    for (unsigned nodes = 1; nodes <= 3; nodes += 2) {
        struct bench b = bench_new();
        held_by(&b, nodes);
        pass(&b, INTERVAL);
        for (unsigned i = 0; i < nodes; i++)
            sends(&b, i, LEASE_RENEW);
        for (unsigned i = 0; i < nodes; i++)
            yes_ttl(&b, i, i ? LEASE_NEVER : 1000000 * TTL);
        deadline_is(&b, b.now + KEPT);
        next_is(&b, b.now + INTERVAL);
        abandon(&b);
        next_is(&b, b.now + life(TTL)); /* nor is it undone for longer */
    }
}

CASE(no_answer_to_a_rearm_counts_for_more_than_the_ttl) {
    struct bench b = bench_new();
    held_by_two_of_three(&b);
    pass(&b, INTERVAL);
    sends(&b, 0, LEASE_REARM);
    yes_ttl(&b, 0, 1000000 * TTL);
    assert_int_equal(b.lease->slots[0].deadline, b.now + KEPT);
}

/* A node had confirmed, and forgot; another's confirmation is under way, and what it confirmed before is past. */
CASE(a_deadline_that_falls_into_the_past_is_told_at_once) {
    struct bench b = bench_new();
    held_by(&b, 3);
    int64_t first = evl_lease_deadline(b.lease);
    pass(&b, INTERVAL);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_RENEW);
    yes_ttl(&b, 0, TTL);
    yes_ttl(&b, 1, TTL);
    until(&b, first - LEAD);
    tells_nothing(&b);
    sends(&b, 0, LEASE_RENEW);
    no(&b, 0);
    tells_lost(&b, EVLOCK_EEXPIRED);
}

/* --- Several nodes: one is away ----------------------------------------------------------------------------------- */

CASE(the_others_renew_without_a_node_that_is_away) {
    static void (*const gone[])(struct bench * b, unsigned node) = {away, excluded};
    for (size_t g = 0; g < 2; g++) {
        struct bench b = bench_new();
        held_by(&b, 3);
        pass(&b, INTERVAL);
        gone[g](&b, 0);
        tells_nothing(&b);
        sends_nothing(&b, 0); /* it is not kept for later */
        for (unsigned i = 1; i < 3; i++) {
            sends(&b, i, LEASE_RENEW);
            yes_ttl(&b, i, TTL);
        }
        deadline_is(&b, b.now + KEPT);
        back(&b, 0, SETTLED);
        wakes(&b, 1); /* and is asked when it is back */
        sends(&b, 0, LEASE_MEND);
    }
}

CASE(nodes_that_come_back_before_a_quorum_renewed_are_asked_at_once) {
    struct bench b = bench_new();
    held_by(&b, 3);
    pass(&b, INTERVAL);
    for (unsigned i = 0; i < 3; i++)
        away(&b, i);
    tells_nothing(&b);
    back(&b, 2, SETTLED);
    wakes(&b, 7);
}

CASE(a_quorum_away_loses_it_by_the_deadline) {
    struct bench b = bench_new();
    held_by(&b, 3);
    pass(&b, INTERVAL);
    excluded(&b, 0);
    excluded(&b, 1);
    sends(&b, 2, LEASE_RENEW);
    yes_ttl(&b, 2, TTL);
    deadline_is(&b, b.now - INTERVAL + KEPT);
    until(&b, evl_lease_deadline(b.lease) - RISK);
    tells_risk(&b, EVLOCK_EQUORUM);
    assert_int_equal(b.out.agreed, 1);
    until(&b, evl_lease_deadline(b.lease) - LEAD);
    tells_lost(&b, EVLOCK_EEXPIRED);
    assert_int_equal(b.out.agreed, 1);
}

/* --- What may lie in the sockets ---------------------------------------------------------------------------------- */

/* The time goes on to `now`, and nothing has been read since `heard`. */
static void unheard(struct bench *b, int64_t now, int64_t heard) {
    b->now = now;
    evl_lease_time(b->lease, now, heard, fresh(b));
}

CASE(an_attempt_is_not_given_up_unheard) {
    struct bench b = bench_new();
    b.terms.patience = SECOND;
    begin(&b, 3);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_ACQUIRE);
    int64_t end = b.now + SECOND;
    unheard(&b, end + SECOND, end - 1);
    tells_nothing(&b);
    next_is(&b, end);
    assert_true(evl_lease_next_exact(b.lease) == LEASE_NEVER);
    unheard(&b, end + 2 * SECOND, end);
    tells(&b, LEASE_TELL_FAILED, EVLOCK_EQUORUM);
}

CASE(an_extension_is_not_given_up_unheard) {
    struct bench b = bench_new();
    held_by_one(&b);
    extend(&b, LEASE_ADD, SECOND);
    int64_t end = b.now + 5 * SECOND;
    unheard(&b, end, end - 1);
    tells_nothing(&b);
    assert_int_equal(evl_lease_next(b.lease), evl_min(b.lease->due, end));
    assert_int_equal(evl_lease_next_exact(b.lease), evl_min(b.lease->due, evl_lease_deadline(b.lease) - LEAD));
    unheard(&b, end, end);
    tells(&b, LEASE_TELL_EXTENDED, EVLOCK_EUNREACHABLE);
}

CASE(a_release_is_not_given_up_unheard) {
    struct bench b = bench_new();
    held_by_one(&b);
    release(&b);
    int64_t end = b.now + 5 * SECOND;
    unheard(&b, end, end - 1);
    tells_nothing(&b);
    next_is(&b, end);
    assert_true(evl_lease_next_exact(b.lease) == LEASE_NEVER);
    unheard(&b, end, end);
    tells(&b, LEASE_TELL_RELEASED, EVLOCK_EUNREACHABLE);
}

CASE(no_danger_is_told_unheard) {
    struct bench b = bench_new();
    renewing(&b);
    refused(&b, 0);
    int64_t risk = evl_lease_deadline(b.lease) - RISK;
    unheard(&b, risk, risk - 1);
    tells_nothing(&b);
    unheard(&b, risk, risk);
    tells_risk(&b, EVLOCK_EREFUSED);
}

/* What is heard cannot change it. */
CASE(a_deadline_is_kept_unheard) {
    struct bench b = bench_new();
    held_by_one(&b);
    int64_t end = evl_lease_deadline(b.lease) - LEAD;
    assert_int_equal(evl_lease_next_exact(b.lease), evl_min(b.lease->due, end));
    unheard(&b, end, 0);
    tells_lost(&b, EVLOCK_EEXPIRED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_renewal_counts_from_when_it_was_sent),
        cmocka_unit_test(renewals_fall_due_together),
        cmocka_unit_test(renewals_fall_due_with_those_of_their_client),
        cmocka_unit_test(an_answer_after_the_deadline_is_too_late),
        cmocka_unit_test(without_renewal_it_is_lost_at_its_deadline),
        cmocka_unit_test(a_loss_is_told_by_its_lead),
        cmocka_unit_test(a_yes_within_the_lead_is_no_grant),
        cmocka_unit_test(the_lead_does_not_say_who_keeps_a_lease),
        cmocka_unit_test(a_moment_is_little_beside_the_ttl),
        cmocka_unit_test(a_renewal_does_not_lower_what_was_extended),
        cmocka_unit_test(a_renewal_with_little_left_is_followed_sooner),
        cmocka_unit_test(only_one_command_is_unanswered_at_a_time),
        cmocka_unit_test(a_script_that_the_server_lost_is_sent_with_a_new_clock),
        cmocka_unit_test(a_failed_renewal_is_tried_again_soon),
        cmocka_unit_test(the_pause_is_short_beside_what_is_left),
        cmocka_unit_test(a_node_that_comes_back_is_asked_at_once),
        cmocka_unit_test(each_renewal_takes_a_quorum_of_its_own),
        cmocka_unit_test(a_node_that_refuses_last_hastens_nothing),
        cmocka_unit_test(danger_is_told_once_an_episode),
        cmocka_unit_test(danger_of_which_nobody_heard_is_told_anew),
        cmocka_unit_test(a_renewal_just_asked_for_worries_nobody),
        cmocka_unit_test(a_renewal_that_cannot_be_sent_worries_at_once),
        cmocka_unit_test(danger_is_told_by_the_last_failure),
        cmocka_unit_test(danger_is_told_by_why_a_node_is_away),
        cmocka_unit_test(an_extension_that_fails_is_no_danger_of_its_own),
        cmocka_unit_test(a_failure_that_a_confirmation_followed_is_forgotten),
        cmocka_unit_test(a_renewal_counts_from_its_beginning_however_long_it_hangs),
        cmocka_unit_test(a_renewal_that_an_extension_stands_before_counts),
        cmocka_unit_test(no_danger_is_told_where_nothing_is_due),
        cmocka_unit_test(an_attempt_is_not_given_up_unheard),
        cmocka_unit_test(an_extension_is_not_given_up_unheard),
        cmocka_unit_test(a_release_is_not_given_up_unheard),
        cmocka_unit_test(no_danger_is_told_unheard),
        cmocka_unit_test(a_deadline_is_kept_unheard),
        cmocka_unit_test(a_stall_is_answered_by_the_loss),
        cmocka_unit_test(a_token_that_is_gone_is_told_at_once),
        cmocka_unit_test(a_server_that_was_replaced_before_it_granted_has_lost_nothing),
        cmocka_unit_test(a_confirmation_by_the_new_server_settles_it),
        cmocka_unit_test(a_maximum_hold_ends_renewal),
        cmocka_unit_test(a_renewal_under_way_at_the_maximum_hold_is_not_tried_again),
        cmocka_unit_test(a_renewal_that_waited_beyond_the_maximum_hold_is_not_sent),
        cmocka_unit_test(a_loss_before_the_maximum_hold_is_the_deadlines),
        cmocka_unit_test(a_maximum_hold_without_renewal_ends_nothing),
        cmocka_unit_test(a_renewal_is_confirmed_by_a_quorum),
        cmocka_unit_test(a_node_that_hangs_endangers_nothing),
        cmocka_unit_test(a_lease_is_lost_with_its_quorum),
        cmocka_unit_test(a_node_that_may_yet_get_it_does_not_keep_it),
        cmocka_unit_test(a_loss_says_how_many_had_agreed),
        cmocka_unit_test(a_node_that_was_replaced_is_one_of_several),
        cmocka_unit_test(answers_after_the_loss_tell_nothing),
        cmocka_unit_test(no_answer_to_a_renewal_counts_for_more_than_the_ttl),
        cmocka_unit_test(no_answer_to_a_rearm_counts_for_more_than_the_ttl),
        cmocka_unit_test(a_deadline_that_falls_into_the_past_is_told_at_once),
        cmocka_unit_test(the_others_renew_without_a_node_that_is_away),
        cmocka_unit_test(nodes_that_come_back_before_a_quorum_renewed_are_asked_at_once),
        cmocka_unit_test(a_quorum_away_loses_it_by_the_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
