/*
 * Renewals of other forms: those that set the ttl, and those that set the token again. When a lease may be renewed so,
 * and what becomes of one that is lost.
 */
#include "test_lease.h"

static int64_t kept(int64_t ttl) {
    return ttl - evl_lease_drift(ttl);
}

/* Its renewal is due, and goes to the node like this. */
static void refreshes(struct bench *b, unsigned node) {
    assert_true(evl_lease_may_refresh(b->lease));
    sends(b, node, LEASE_REFRESH);
    assert_int_equal(evl_lease_unanswered(b->lease, node), LEASE_REFRESH);
}

static void renews_by_script(struct bench *b) {
    assert_false(evl_lease_may_refresh(b->lease));
    sends(b, 0, LEASE_RENEW);
    assert_int_equal(evl_lease_unanswered(b->lease, 0), LEASE_RENEW);
}

static void due(struct bench *b) {
    until(b, evl_lease_next(b->lease));
}

CASE(a_refresh_is_a_renewal) {
    struct bench b = bench_new();
    held_by_one(&b);
    due(&b);
    refreshes(&b, 0);
    yes_ttl(&b, 0, TTL);
    tells_nothing(&b);
    deadline_is(&b, b.now + KEPT);
    next_is(&b, b.now + INTERVAL);
    due(&b);
    refreshes(&b, 0);
    no(&b, 0);
    assert_int_equal(b.out.events, LEASE_TELL_LOST);
    assert_int_equal(b.out.reason, EVLOCK_ENOTOWNED);
}

CASE(what_says_again_goes_out_anew) {
    struct bench b = bench_new();
    held_by_one(&b);
    int64_t deadline = evl_lease_deadline(b.lease);
    due(&b);
    refreshes(&b, 0);
    again(&b, 0);
    wakes(&b, 1);
    deadline_is(&b, deadline);
    assert_true(evl_lease_exportable(b.lease, b.now));
    sends(&b, 0, LEASE_RENEW);
    yes_ttl(&b, 0, TTL);
    deadline_is(&b, b.now + KEPT);
}

CASE(a_refresh_that_is_refused_is_repeated_soon) {
    struct bench b = bench_new();
    held_by_one(&b);
    due(&b);
    refreshes(&b, 0);
    refused(&b, 0);
    tells_nothing(&b);
    assert_true(evl_lease_next(b.lease) <= b.now + SECOND);
    due(&b);
    refreshes(&b, 0);
}

/* An extension may follow on another connection. */
CASE(a_lost_refresh_may_cut_an_extension) {
    struct bench b = bench_new();
    held_by_one(&b);
    due(&b);
    refreshes(&b, 0);
    assert_false(evl_lease_exportable(b.lease, b.now));
    unknown(&b, 0);
    back(&b, 0, UNSETTLED);
    assert_false(evl_lease_exportable(b.lease, b.now));
    due(&b);
    refreshes(&b, 0); /* for no less than the one before */
    yes_ttl(&b, 0, TTL);
    deadline_is(&b, b.now + KEPT);
    extend(&b, LEASE_REPLACE, 60 * SECOND);
    sends(&b, 0, LEASE_REPLACE);
    yes_ttl(&b, 0, 60 * SECOND);
    deadline_is(&b, b.now + KEPT);
}

CASE(a_lost_refresh_that_cannot_run_any_more_cuts_nothing) {
    struct bench b = bench_new();
    held_by_one(&b);
    due(&b);
    refreshes(&b, 0);
    unknown(&b, 0);
    back(&b, 0, SETTLED);
    assert_true(evl_lease_exportable(b.lease, b.now));
    due(&b);
    refreshes(&b, 0);
    yes_ttl(&b, 0, TTL);
    extend(&b, LEASE_REPLACE, 60 * SECOND);
    sends(&b, 0, LEASE_REPLACE);
    yes_ttl(&b, 0, 60 * SECOND);
    deadline_is(&b, b.now + kept(60 * SECOND));
}

/* By the same assumption as for undos: what was lost runs no later than a ttl after the next connection stood. */
CASE(a_lost_refresh_that_is_too_old_cuts_nothing) {
    struct bench b = bench_new();
    held_by_one(&b);
    due(&b);
    refreshes(&b, 0);
    unknown(&b, 0);
    back(&b, 0, UNSETTLED);
    int64_t over = b.now + TTL + evl_lease_drift(TTL);
    while (evl_lease_next(b.lease) < over) {
        due(&b);
        refreshes(&b, 0);
        yes_ttl(&b, 0, TTL);
        assert_false(evl_lease_exportable(b.lease, b.now));
    }
    until(&b, over - 1);
    extend(&b, LEASE_REPLACE, 60 * SECOND);
    sends(&b, 0, LEASE_REPLACE);
    assert_false(evl_lease_exportable(b.lease, over));
    pass(&b, 1);
    yes_ttl(&b, 0, 60 * SECOND);
    deadline_is(&b, over - 1 + KEPT); /* it may have run behind this, which was sent before */
    assert_true(evl_lease_exportable(b.lease, b.now));
    extend(&b, LEASE_REPLACE, 60 * SECOND);
    sends(&b, 0, LEASE_REPLACE);
    yes_ttl(&b, 0, 60 * SECOND);
    deadline_is(&b, b.now + kept(60 * SECOND));
}

/* One more that is lost begins the time anew. */
CASE(the_last_lost_refresh_counts) {
    struct bench b = bench_new();
    held_by_one(&b);
    for (int i = 0; i < 2; i++) {
        due(&b);
        refreshes(&b, 0);
        unknown(&b, 0);
        back(&b, 0, UNSETTLED);
        sends(&b, 0, LEASE_RENEW);
        yes_ttl(&b, 0, TTL);
    }
    int64_t over = b.now + TTL + evl_lease_drift(TTL);
    assert_false(evl_lease_exportable(b.lease, over - 1));
    assert_true(evl_lease_exportable(b.lease, over));
}

/* Of several that are lost, any may run last. */
CASE(the_shortest_of_those_that_were_lost_counts) {
    static const int64_t ttls[][2] = {{5 * SECOND, 20 * SECOND}, {20 * SECOND, 5 * SECOND}};
    for (int order = 0; order < 2; order++) {
        struct bench b = bench_new();
        held_by_one(&b);
        for (int i = 0; i < 2; i++) {
            extend(&b, LEASE_REPLACE, ttls[order][i]);
            sends(&b, 0, LEASE_REPLACE);
            unknown(&b, 0);
            back(&b, 0, UNSETTLED);
        }
        due(&b);
        sends(&b, 0, LEASE_RENEW);
        yes_ttl(&b, 0, TTL);
        deadline_is(&b, b.now + kept(5 * SECOND));
    }
}

CASE(what_may_live_longer_is_renewed_by_script) {
    struct bench b = bench_new();
    held_by_one(&b);
    due(&b);
    refreshes(&b, 0);
    yes_ttl(&b, 0, TTL);
    extend(&b, LEASE_REPLACE, TTL + MS);
    sends(&b, 0, LEASE_REPLACE);
    refused(&b, 0); /* or it says so */
    due(&b);
    renews_by_script(&b);
}

CASE(what_its_user_knows_is_renewed_by_script) {
    struct bench b = bench_new();
    held_by_one(&b);
    evl_lease_tie(b.lease);
    due(&b);
    renews_by_script(&b);
}

CASE(what_somebody_made_live_longer_is_renewed_by_script) {
    struct bench b = bench_new();
    held_by_one(&b);
    due(&b);
    refreshes(&b, 0);
    yes_ttl(&b, 0, TTL + MS);
    due(&b);
    renews_by_script(&b);
}

CASE(what_was_added_to_is_renewed_by_script) {
    struct bench b = bench_new();
    held_by_one(&b);
    extend(&b, LEASE_ADD, MS);
    sends(&b, 0, LEASE_ADD);
    unknown(&b, 0);
    back(&b, 0, UNSETTLED);
    due(&b);
    renews_by_script(&b);
}

CASE(what_others_may_prolong_is_renewed_by_script) {
    struct bench b = bench_new();
    begin_adopting(&b, 1);
    sends(&b, 0, LEASE_ADOPT);
    yes_ttl(&b, 0, TTL);
    due(&b);
    renews_by_script(&b);
    b = bench_new();
    b.entry.own = true;
    held_by_one(&b);
    due(&b);
    renews_by_script(&b);
}

CASE(a_ttl_of_weeks_is_renewed_by_script) {
    struct bench b = bench_new();
    b.terms.ttl = 50 * 24 * 3600 * SECOND;
    held_by_one(&b);
    due(&b);
    renews_by_script(&b);
}

/* Each node may have been sent another form. */
CASE(a_quorum_renews_by_either) {
    struct bench b = bench_new();
    held_by(&b, 3);
    due(&b);
    refreshes(&b, 0);
    sends(&b, 1, LEASE_RENEW);
    refreshes(&b, 2);
    yes_ttl(&b, 0, TTL);
    yes_ttl(&b, 1, TTL);
    deadline_is(&b, b.now + KEPT);
    no(&b, 2);
    tells_nothing(&b);
    deadline_is(&b, b.now + KEPT);
}

/* A release goes out behind it, and what is left has ended with that. */
CASE(a_release_follows_a_refresh) {
    struct bench b = bench_new();
    held_by_one(&b);
    due(&b);
    refreshes(&b, 0);
    release(&b);
    sends(&b, 0, LEASE_RELEASE);
    yes_ttl(&b, 0, TTL);
    tells_nothing(&b);
    yes(&b, 0);
    tells(&b, LEASE_TELL_RELEASED, EVLOCK_OK);
    assert_true(evl_lease_over(b.lease));
}

/* --- Those that set the token again ------------------------------------------------------------------------------- */

CASE(a_restoring_renewal_is_a_renewal) {
    struct bench b = bench_new();
    held_by_one(&b);
    due(&b);
    sends(&b, 0, LEASE_RESTORE);
    yes_ttl(&b, 0, TTL);
    tells_nothing(&b);
    deadline_is(&b, b.now + KEPT);
    next_is(&b, b.now + INTERVAL);
    due(&b);
    sends(&b, 0, LEASE_RESTORE);
    no(&b, 0);
    assert_int_equal(b.out.events, LEASE_TELL_LOST);
    assert_int_equal(b.out.reason, EVLOCK_ENOTOWNED);
}

/* Its renewal was lost, and it is released on another connection. */
static void released_after_a_lost_one(struct bench *b, enum lease_command renewal, bool settled) {
    held_by_one(b);
    due(b);
    sends(b, 0, renewal);
    unknown(b, 0);
    back(b, 0, settled);
    release(b);
    sends(b, 0, LEASE_RELEASE);
}

CASE(a_lost_renewal_sets_nothing_after_a_release) {
    struct bench b = bench_new();
    released_after_a_lost_one(&b, LEASE_RENEW, UNSETTLED);
    yes(&b, 0);
    tells(&b, LEASE_TELL_RELEASED, EVLOCK_OK);
    assert_true(evl_lease_over(b.lease));
}

CASE(a_lost_restoring_renewal_is_undone_once_more) {
    struct bench b = bench_new();
    released_after_a_lost_one(&b, LEASE_RESTORE, UNSETTLED);
    yes(&b, 0);
    tells(&b, LEASE_TELL_RELEASED, EVLOCK_OK);
    assert_false(evl_lease_over(b.lease));
    sends(&b, 0, LEASE_RELEASE);
}

/* The node had forgotten the token when it was released. */
CASE(a_lost_restoring_renewal_may_come_after_all) {
    struct bench b = bench_new();
    released_after_a_lost_one(&b, LEASE_RESTORE, UNSETTLED);
    no(&b, 0);
    assert_false(evl_lease_over(b.lease));
    sends(&b, 0, LEASE_RELEASE);
    yes(&b, 0);
    pass(&b, 2 * TTL);
    assert_true(evl_lease_over(b.lease));
}

CASE(a_lost_restoring_renewal_that_cannot_run_any_more_leaves_nothing) {
    struct bench b = bench_new();
    released_after_a_lost_one(&b, LEASE_RESTORE, SETTLED);
    yes(&b, 0);
    tells(&b, LEASE_TELL_RELEASED, EVLOCK_OK);
    assert_true(evl_lease_over(b.lease));
}

/* What was lost earlier is not settled with what was lost later. */
CASE(an_earlier_lost_restoring_renewal_counts) {
    struct bench b = bench_new();
    held_by_one(&b);
    for (int lost = 0; lost < 2; lost++) {
        due(&b);
        sends(&b, 0, LEASE_RESTORE);
        unknown(&b, 0);
        back(&b, 0, lost == 0 ? UNSETTLED : SETTLED);
    }
    release(&b);
    sends(&b, 0, LEASE_RELEASE);
    yes(&b, 0);
    assert_false(evl_lease_over(b.lease));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_restoring_renewal_is_a_renewal),
        cmocka_unit_test(a_lost_renewal_sets_nothing_after_a_release),
        cmocka_unit_test(a_lost_restoring_renewal_is_undone_once_more),
        cmocka_unit_test(a_lost_restoring_renewal_may_come_after_all),
        cmocka_unit_test(a_lost_restoring_renewal_that_cannot_run_any_more_leaves_nothing),
        cmocka_unit_test(an_earlier_lost_restoring_renewal_counts),
        cmocka_unit_test(a_refresh_is_a_renewal),
        cmocka_unit_test(what_says_again_goes_out_anew),
        cmocka_unit_test(a_refresh_that_is_refused_is_repeated_soon),
        cmocka_unit_test(a_lost_refresh_may_cut_an_extension),
        cmocka_unit_test(a_lost_refresh_that_cannot_run_any_more_cuts_nothing),
        cmocka_unit_test(a_lost_refresh_that_is_too_old_cuts_nothing),
        cmocka_unit_test(the_last_lost_refresh_counts),
        cmocka_unit_test(the_shortest_of_those_that_were_lost_counts),
        cmocka_unit_test(what_may_live_longer_is_renewed_by_script),
        cmocka_unit_test(what_its_user_knows_is_renewed_by_script),
        cmocka_unit_test(what_somebody_made_live_longer_is_renewed_by_script),
        cmocka_unit_test(what_was_added_to_is_renewed_by_script),
        cmocka_unit_test(what_others_may_prolong_is_renewed_by_script),
        cmocka_unit_test(a_ttl_of_weeks_is_renewed_by_script),
        cmocka_unit_test(a_quorum_renews_by_either),
        cmocka_unit_test(a_release_follows_a_refresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
