/*
 * How a lease goes from holder to holder: which one may, and what begins anew with that.
 */
#include "minmax.h"
#include "test_lease.h"

static bool passable(const struct bench *b) {
    return evl_lease_passable(b->lease, b->now);
}

static void hand_over(struct bench *b) {
    assert_true(passable(b));
    evl_lease_pass(b->lease, &b->terms, b->now, fresh(b));
    is_in(b, LEASE_HELD);
    tells_nothing(b);
}

/* --- Which one may ------------------------------------------------------------------------------------------------ */

CASE(one_that_is_held_may_go) {
    struct bench b = bench_new();
    begin(&b, 1);
    assert_false(passable(&b));
    sends(&b, 0, LEASE_ACQUIRE);
    yes(&b, 0);
    assert_true(passable(&b));
    release(&b);
    assert_false(passable(&b));
}

CASE(one_with_half_of_its_ttl_may_go) {
    struct bench b = bench_new();
    b.terms.interval = 0;
    held_by_one(&b);
    pass(&b, KEPT - TTL / 2);
    assert_true(passable(&b));
    pass(&b, 1);
    assert_false(passable(&b));
}

/* Nobody would learn that it was broken. */
CASE(one_without_an_end_stays) {
    struct bench b = bench_new();
    b.terms.ttl = b.terms.interval = 0;
    held_by_one(&b);
    assert_false(passable(&b));
}

CASE(one_with_a_token_of_its_users_own_stays) {
    struct bench b = bench_new();
    b.entry.own = true;
    held_by_one(&b);
    assert_false(passable(&b));
}

CASE(one_whose_token_was_told_stays) {
    struct bench b = bench_new();
    held_by_one(&b);
    evl_lease_tie(b.lease);
    assert_false(passable(&b));
}

CASE(one_that_was_extended_stays) {
    const enum lease_command ways[] = {LEASE_ADD, LEASE_REPLACE};
    for (int i = 0; i < 2; i++) {
        struct bench b = bench_new();
        held_by_one(&b);
        extend(&b, ways[i], TTL);
        assert_false(passable(&b));
        sends(&b, 0, ways[i]);
        yes_ttl(&b, 0, TTL);
        tells(&b, LEASE_TELL_EXTENDED, EVLOCK_OK);
        assert_false(passable(&b));
    }
}

CASE(one_that_somebody_made_live_longer_stays) {
    struct bench b = bench_new();
    renewing(&b);
    yes_ttl(&b, 0, TTL + SECOND);
    assert_false(passable(&b));
}

CASE(one_that_was_made_live_longer_on_its_return_stays) {
    struct bench b = bench_new();
    held_by_two_of_three(&b);
    assert_true(passable(&b));
    pass(&b, INTERVAL);
    sends(&b, 0, LEASE_REARM);
    yes_ttl(&b, 0, TTL + SECOND);
    assert_false(passable(&b));
}

CASE(one_whose_renewal_fails_stays_until_it_is_confirmed) {
    struct bench b = bench_new();
    renewing(&b);
    refused(&b, 0);
    assert_false(passable(&b));
    pass(&b, SECOND);
    sends(&b, 0, LEASE_RENEW);
    yes_ttl(&b, 0, TTL);
    assert_true(passable(&b));
}

CASE(one_that_is_at_risk_stays) {
    struct bench b = bench_new();
    b.terms.risk = TTL - SECOND;
    b.terms.interval = 5 * SECOND;
    held_by_one(&b);
    pass(&b, b.terms.interval);
    sends(&b, 0, LEASE_RENEW);
    pass(&b, 7 * SECOND);
    tells_risk(&b, EVLOCK_EUNREACHABLE);
    assert_true(evl_lease_deadline(b.lease) - b.now > TTL / 2);
    assert_false(passable(&b));
}

CASE(one_with_a_fence_stays_if_none_was_drawn_for_the_next) {
    struct bench b = bench_new();
    begin_fenced(&b, 1);
    sends(&b, 0, LEASE_ACQUIRE);
    draws(&b, 0, 5);
    is_in(&b, LEASE_HELD);
    assert_false(passable(&b));
}

/* --- What begins anew --------------------------------------------------------------------------------------------- */

CASE(a_lease_that_goes_is_the_same_lease) {
    struct bench b = bench_new();
    held_by_one(&b);
    int64_t deadline = evl_lease_deadline(b.lease), next = evl_lease_next(b.lease);
    pass(&b, SECOND);
    hand_over(&b);
    wakes(&b, 0);
    deadline_is(&b, deadline);
    next_is(&b, next);
    assert_int_equal(evl_lease_since(b.lease), b.now);
}

CASE(its_terms_are_those_of_the_new_holder) {
    struct bench b = bench_new();
    struct lease_terms others = b.terms;
    held_by_one(&b);
    evl_lease_pass(b.lease, &others, b.now, fresh(&b));
    assert_ptr_equal(evl_lease_terms(b.lease), &others);
}

CASE(its_longest_hold_counts_from_then) {
    struct bench b = bench_new();
    b.terms.max_hold = INTERVAL + SECOND;
    held_by_one(&b);
    pass(&b, 5 * SECOND);
    hand_over(&b);
    pass(&b, 5 * SECOND);
    sends(&b, 0, LEASE_RENEW);
    yes_ttl(&b, 0, TTL);
    pass(&b, INTERVAL);
    wakes(&b, 0); /* 15 s from then */
}

/* A renewal was unanswered when that ended. */
CASE(its_renewal_goes_on_if_the_one_under_way_fails) {
    struct bench b = bench_new();
    b.terms.interval = 5 * SECOND;
    b.terms.max_hold = 8 * SECOND;
    held_by_one(&b);
    pass(&b, 5 * SECOND);
    sends(&b, 0, LEASE_RENEW);
    pass(&b, 5 * SECOND);
    wakes(&b, 0);
    hand_over(&b);
    refused(&b, 0);
    assert_true(evl_lease_next(b.lease) <= b.now + 5 * SECOND);
}

CASE(it_is_renewed_when_three_quarters_are_left) {
    struct bench b = bench_new();
    b.terms.interval = 15 * SECOND;
    held_by_one(&b);
    pass(&b, KEPT - TTL / 4 * 3);
    hand_over(&b);
    wakes(&b, 0);
    pass(&b, 1);
    hand_over(&b);
    sends(&b, 0, LEASE_RENEW);
    hand_over(&b); /* that is under way */
    wakes(&b, 0);
    yes_ttl(&b, 0, TTL);
    deadline_is(&b, b.now + KEPT);
    next_is(&b, b.now + 15 * SECOND);
}

CASE(without_renewal_it_is_renewed_once) {
    struct bench b = bench_new();
    b.terms.interval = 0;
    held_by_one(&b);
    pass(&b, KEPT - TTL / 4 * 3 + 1);
    hand_over(&b);
    wakes(&b, 1);
    hand_over(&b); /* it is wanted already, */
    sends(&b, 0, LEASE_RENEW);
    hand_over(&b); /* and under way */
    wakes(&b, 0);
    int64_t sent = b.now;
    pass(&b, SECOND);
    yes_ttl(&b, 0, TTL);
    deadline_is(&b, sent + KEPT);
    next_is(&b, sent + KEPT - LEAD);
}

/* They might lack the renewal when one of them takes over. */
CASE(without_renewal_it_is_not_renewed_if_replicas_had_to_confirm_it) {
    struct bench b = bench_new();
    b.terms.interval = 0;
    b.terms.replicated = true;
    held_by_one(&b);
    pass(&b, KEPT - TTL / 2);
    hand_over(&b);
    sends_nothing(&b, 0);
}

CASE(without_renewal_a_failure_of_that_is_no_danger) {
    struct bench b = bench_new();
    b.terms.interval = 0;
    held_by_one(&b);
    pass(&b, KEPT - TTL / 4 * 3 + 1);
    hand_over(&b);
    sends(&b, 0, LEASE_RENEW);
    refused(&b, 0);
    tells_nothing(&b);
    assert_false(passable(&b));
    next_is(&b, evl_lease_deadline(b.lease) - LEAD);
}

CASE(it_is_renewed_only_where_it_may_be) {
    struct bench b = bench_new();
    b.terms.interval = 0;
    held_by(&b, 3);
    b.lease->slots[0].trace = 0; /* it is not there */
    b.lease->slots[0].deadline = 0;
    pass(&b, KEPT - TTL / 4 * 3 + 1);
    hand_over(&b);
    wakes(&b, 6);
}

/* Of three nodes the last one refuses: it is to be mended. */
static void held_by_all_but_one(struct bench *b) {
    begin(b, 3);
    for (unsigned i = 0; i < 3; i++)
        sends(b, i, LEASE_ACQUIRE);
    yes(b, 0);
    yes(b, 1);
    no(b, 2);
}

CASE(mends_are_not_put_off) {
    struct bench b = bench_new();
    b.terms.interval = 0;
    held_by_all_but_one(&b);
    int64_t mend = evl_lease_next(b.lease);
    assert_true(mend < b.now + SECOND);
    while (b.now < mend - 10 * MS) {
        pass(&b, 10 * MS);
        hand_over(&b);
    }
    assert_true(evl_lease_next(b.lease) <= mend);
    pass(&b, 10 * MS);
    sends(&b, 2, LEASE_MEND);
}

/* A timer may be late. */
CASE(a_mend_that_is_due_is_not_put_off) {
    struct bench b = bench_new();
    b.terms.interval = 0;
    held_by_all_but_one(&b);
    b.now = evl_lease_next(b.lease) + 10 * MS;
    hand_over(&b);
    next_is(&b, b.now);
    pass(&b, 0);
    sends(&b, 2, LEASE_MEND);
}

/* One that had its command unanswered then keeps the lease for less than the others do. */
CASE(a_node_that_was_not_renewed_along_is_mended) {
    struct bench b = bench_new();
    b.terms.interval = 0;
    begin(&b, 3);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_ACQUIRE);
    yes(&b, 0);
    yes(&b, 1);
    pass(&b, TTL / 3);
    hand_over(&b);
    wakes(&b, 3);
    sends(&b, 0, LEASE_RENEW);
    sends(&b, 1, LEASE_RENEW);
    yes(&b, 2);
    yes_ttl(&b, 0, TTL);
    yes_ttl(&b, 1, TTL);
    deadline_is(&b, b.now + KEPT);
    pass(&b, SECOND); /* a lease is not mended in its first moments */
    sends(&b, 2, LEASE_MEND);
}

CASE(a_node_that_was_mended_meanwhile_is_mended_again) {
    struct bench b = bench_new();
    b.terms.interval = 0;
    held_by_all_but_one(&b);
    pass(&b, evl_lease_next(b.lease) - b.now);
    sends(&b, 2, LEASE_MEND);
    int64_t asked = evl_lease_ttl(b.lease, LEASE_MEND, b.now);
    pass(&b, TTL / 3);
    hand_over(&b);
    sends(&b, 0, LEASE_RENEW);
    sends(&b, 1, LEASE_RENEW);
    yes_ttl(&b, 0, TTL);
    yes_ttl(&b, 1, TTL);
    yes_ttl(&b, 2, asked);
    deadline_is(&b, b.now + KEPT);
    next_is(&b, b.now + TTL / 8);
    pass(&b, TTL / 8);
    sends(&b, 2, LEASE_MEND);
}

/* Nor does it count as asked for later. */
CASE(a_renewal_under_way_does_not_begin_anew) {
    struct bench b = bench_new();
    held_by(&b, 3);
    pass(&b, INTERVAL);
    int64_t sent = b.now;
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_RENEW);
    yes_ttl(&b, 0, TTL);
    pass(&b, SECOND);
    hand_over(&b);
    wakes(&b, 0);
    yes_ttl(&b, 1, TTL);
    deadline_is(&b, sent + KEPT);
    next_is(&b, sent + INTERVAL);
}

CASE(what_is_under_way_comes_along) {
    struct bench b = bench_new();
    renewing(&b);
    int64_t sent = b.now;
    hand_over(&b);
    pass(&b, SECOND);
    yes_ttl(&b, 0, TTL);
    deadline_is(&b, sent + KEPT);
    release(&b);
    sends(&b, 0, LEASE_RELEASE);
    yes(&b, 0);
    tells(&b, LEASE_TELL_RELEASED, EVLOCK_OK);
    is_over(&b);
}

CASE(an_attempt_goes_on_for_another) {
    struct bench b = bench_new();
    struct lease_terms others = b.terms;
    waits(&b);
    evl_lease_inherit(b.lease, &others);
    assert_ptr_equal(evl_lease_terms(b.lease), &others);
    granted(&b, b.now);
    is_in(&b, LEASE_HELD);
}

CASE(one_that_hung_is_renewed_again_for_the_next) {
    struct bench b = bench_new();
    b.terms.interval = TTL / 10;
    b.terms.max_hold = TTL / 20;
    held_by_one(&b);
    pass(&b, TTL / 10); /* it hangs, and is not renewed any more */
    wakes(&b, 0);
    hand_over(&b);
    wakes(&b, 1);
    sends(&b, 0, LEASE_RENEW);
    yes_ttl(&b, 0, TTL);
    next_is(&b, b.now + TTL / 10);
}

CASE(one_whose_renewal_along_was_refused_stays) {
    struct bench b = bench_new();
    b.terms.interval = 0;
    held_by_one(&b);
    for (int i = 0; i < 2; i++) { /* also after one that was not */
        pass(&b, TTL / 3);
        hand_over(&b);
        sends(&b, 0, LEASE_RENEW);
        if (i == 0)
            yes_ttl(&b, 0, TTL);
    }
    refused(&b, 0);
    assert_false(passable(&b));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_is_held_may_go),
        cmocka_unit_test(one_with_half_of_its_ttl_may_go),
        cmocka_unit_test(one_without_an_end_stays),
        cmocka_unit_test(one_with_a_token_of_its_users_own_stays),
        cmocka_unit_test(one_whose_token_was_told_stays),
        cmocka_unit_test(one_that_was_extended_stays),
        cmocka_unit_test(one_that_somebody_made_live_longer_stays),
        cmocka_unit_test(one_that_was_made_live_longer_on_its_return_stays),
        cmocka_unit_test(one_whose_renewal_fails_stays_until_it_is_confirmed),
        cmocka_unit_test(one_that_is_at_risk_stays),
        cmocka_unit_test(one_with_a_fence_stays_if_none_was_drawn_for_the_next),
        cmocka_unit_test(a_lease_that_goes_is_the_same_lease),
        cmocka_unit_test(its_terms_are_those_of_the_new_holder),
        cmocka_unit_test(its_longest_hold_counts_from_then),
        cmocka_unit_test(its_renewal_goes_on_if_the_one_under_way_fails),
        cmocka_unit_test(it_is_renewed_when_three_quarters_are_left),
        cmocka_unit_test(without_renewal_it_is_renewed_once),
        cmocka_unit_test(without_renewal_it_is_not_renewed_if_replicas_had_to_confirm_it),
        cmocka_unit_test(without_renewal_a_failure_of_that_is_no_danger),
        cmocka_unit_test(it_is_renewed_only_where_it_may_be),
        cmocka_unit_test(mends_are_not_put_off),
        cmocka_unit_test(a_mend_that_is_due_is_not_put_off),
        cmocka_unit_test(a_node_that_was_not_renewed_along_is_mended),
        cmocka_unit_test(a_node_that_was_mended_meanwhile_is_mended_again),
        cmocka_unit_test(a_renewal_under_way_does_not_begin_anew),
        cmocka_unit_test(what_is_under_way_comes_along),
        cmocka_unit_test(an_attempt_goes_on_for_another),
        cmocka_unit_test(one_that_hung_is_renewed_again_for_the_next),
        cmocka_unit_test(one_whose_renewal_along_was_refused_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
