/*
 * How a fence is drawn: the greatest number of the quorum, granted when a quorum has a counter at least as great.
 */
#include "test_lease.h"

#define fence_is(b, number) assert_int_equal((b)->lease->fence, number)

/* All of `nodes` nodes are asked for a fence. */
static void asked(struct bench *b, unsigned nodes) {
    begin_fenced(b, nodes);
    for (unsigned i = 0; i < nodes; i++)
        sends(b, i, LEASE_ACQUIRE);
}

CASE(one_node_draws_it_alone) {
    struct bench b = bench_new();
    asked(&b, 1);
    draws(&b, 0, INT64_C(1700000000000000));
    tells(&b, LEASE_TELL_GRANTED, 0);
    fence_is(&b, INT64_C(1700000000000000));
    sends_nothing(&b, 0);
    deadline_is(&b, b.now + KEPT);
}

CASE(nodes_that_agree_are_asked_once) {
    struct bench b = bench_new();
    asked(&b, 5);
    for (unsigned i = 0; i < 2; i++) {
        draws(&b, i, 7);
        tells_nothing(&b);
        fence_is(&b, 0);
    }
    draws(&b, 2, 7);
    tells(&b, LEASE_TELL_GRANTED, 0);
    wakes(&b, 0);
    fence_is(&b, 7);
    draws(&b, 3, 9); /* the quorum's is not changed by what comes later */
    wakes(&b, 0);
    fence_is(&b, 7);
}

CASE(without_a_fence_numbers_mean_nothing) {
    struct bench b = bench_new();
    begin(&b, 3);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_ACQUIRE);
    draws(&b, 0, 5);
    draws(&b, 1, 7);
    tells(&b, LEASE_TELL_GRANTED, 0);
    wakes(&b, 0);
    fence_is(&b, 0);
}

/* Of three nodes the first drew 5 and the second 7; the first is to be raised, the third has not answered. */
static void raising(struct bench *b) {
    asked(b, 3);
    draws(b, 0, 5);
    pass(b, SECOND);
    draws(b, 1, 7);
    tells_nothing(b);
    fence_is(b, 7);
    wakes(b, 1);
    is_in(b, LEASE_ACQUIRING);
}

CASE(a_node_that_drew_less_is_raised) {
    struct bench b = bench_new();
    raising(&b);
    sends(&b, 0, LEASE_RAISE);
    sends_nothing(&b, 1);
    pass(&b, SECOND);
    yes(&b, 0);
    tells(&b, LEASE_TELL_GRANTED, 0);
    fence_is(&b, 7);
    deadline_is(&b, b.now - 2 * SECOND + KEPT); /* from the acquire */
    next_is(&b, b.now - 2 * SECOND + INTERVAL);
}

CASE(the_greatest_is_found_wherever_it_is) {
    static const int64_t orders[][3] = {{7, 5, 6}, {5, 7, 6}, {5, 6, 7}};
    for (size_t o = 0; o < 3; o++) {
        struct bench b = bench_new();
        asked(&b, 5);
        for (unsigned i = 0; i < 3; i++)
            draws(&b, i, orders[o][i]);
        tells_nothing(&b);
        fence_is(&b, 7);
        wakes(&b, 7U & ~(1U << o));
        unsigned raised = 0;
        for (unsigned i = 0; i < 3; i++) {
            if (i == o)
                continue;
            sends(&b, i, LEASE_RAISE);
            yes(&b, i);
            tells(&b, ++raised == 2 ? LEASE_TELL_GRANTED : 0, 0);
        }
    }
}

CASE(another_node_that_has_it_saves_the_raising) {
    for (int64_t more = 0; more < 2; more++) {
        struct bench b = bench_new();
        raising(&b);
        sends(&b, 0, LEASE_RAISE);
        draws(&b, 2, 7 + more);
        tells(&b, LEASE_TELL_GRANTED, 0);
        fence_is(&b, 7); /* it stays what it is */
        yes(&b, 0);      /* comes too late to matter */
        tells_nothing(&b);
        wakes(&b, 0);
    }
}

CASE(another_node_that_drew_less_is_raised_too) {
    struct bench b = bench_new();
    raising(&b);
    sends(&b, 0, LEASE_RAISE);
    draws(&b, 2, 6);
    tells_nothing(&b);
    wakes(&b, 4);
    sends(&b, 2, LEASE_RAISE);
    refused(&b, 0);
    tells_nothing(&b);
    yes(&b, 2);
    tells(&b, LEASE_TELL_GRANTED, 0);
    fence_is(&b, 7);
}

CASE(a_number_that_was_not_of_the_quorum_does_not_count) {
    struct bench b = bench_new();
    begin_fenced(&b, 3);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_ACQUIRE);
    b.lease->slots[0].counter = 100;
    no(&b, 0);
    draws(&b, 1, 5);
    draws(&b, 2, 5);
    tells(&b, LEASE_TELL_GRANTED, 0);
    fence_is(&b, 5);
}

CASE(a_raise_that_did_not_run_is_sent_again) {
    struct bench b = bench_new();
    raising(&b);
    sends(&b, 0, LEASE_RAISE);
    again(&b, 0);
    tells_nothing(&b);
    wakes(&b, 1);
    sends(&b, 0, LEASE_RAISE);
    yes(&b, 0);
    tells(&b, LEASE_TELL_GRANTED, 0);
}

CASE(a_quorum_that_cannot_be_raised_fails_the_acquire) {
    static void (*const failures[])(struct bench * b, unsigned node) = {no, refused, forbidden, unknown};
    for (size_t f = 0; f < 4; f++) {
        struct bench b = bench_new();
        raising(&b);
        no(&b, 2);
        tells_nothing(&b);
        sends(&b, 0, LEASE_RAISE);
        failures[f](&b, 0);
        tells(&b, LEASE_TELL_FAILED, EVLOCK_EHELD);
        assert_int_equal(b.out.denied, 2);
        wakes(&b, 3); /* undone also where it was not raised */
        for (unsigned i = 0; i < 2; i++) {
            sends(&b, i, LEASE_RELEASE);
            yes(&b, i);
        }
        is_over(&b);

        raising(&b);
        sends(&b, 0, LEASE_RAISE);
        failures[f](&b, 0);
        tells_nothing(&b); /* the third may make a quorum */
        refused(&b, 2);
        tells(&b, LEASE_TELL_FAILED, EVLOCK_EQUORUM);
    }
}

CASE(a_node_that_cannot_be_sent_a_raise_has_voted_no) {
    struct bench b = bench_new();
    raising(&b);
    excluded(&b, 0);
    tells_nothing(&b);
    sends_nothing(&b, 0);
    draws(&b, 2, 6);
    wakes(&b, 4);
    sends(&b, 2, LEASE_RAISE);
    yes(&b, 2);
    tells(&b, LEASE_TELL_GRANTED, 0); /* by the other two */
}

CASE(a_raise_is_not_waited_for_longer_than_agreed) {
    struct bench b = bench_new();
    b.terms.patience = 3 * SECOND;
    raising(&b);
    next_is(&b, b.now + 2 * SECOND);
    sends(&b, 0, LEASE_RAISE);
    next_is(&b, b.now + 2 * SECOND);
    pass(&b, 2 * SECOND);
    tells(&b, LEASE_TELL_FAILED, EVLOCK_EQUORUM);
    is_in(&b, LEASE_UNDOING);
    next_is(&b, LEASE_NEVER); /* the acquire of node 2 is unanswered */
    sends(&b, 0, LEASE_RELEASE);
    sends(&b, 1, LEASE_RELEASE);
    yes(&b, 1);
    no(&b, 2);
    no(&b, 0); /* the raise says nothing of the token */
    is_in(&b, LEASE_UNDOING);
    yes(&b, 0);
    is_over(&b);
}

/* Until its deadline nobody else can have drawn a number of the node; later somebody may have, before it was raised. */
CASE(a_raise_counts_while_the_node_keeps_the_token) {
    for (int late = 0; late < 2; late++) {
        struct bench b = bench_new();
        begin_fenced(&b, 3);
        sends(&b, 0, LEASE_ACQUIRE);
        draws(&b, 0, 5);
        int64_t kept = b.now + KEPT;
        pass(&b, TTL / 2);
        for (unsigned i = 1; i < 3; i++)
            sends(&b, i, LEASE_ACQUIRE);
        draws(&b, 1, 7);
        sends(&b, 0, LEASE_RAISE);
        draws(&b, 2, 6);
        sends(&b, 2, LEASE_RAISE);
        until(&b, kept - !late);
        yes(&b, 0);
        tells(&b, late ? 0 : LEASE_TELL_GRANTED, 0);
        yes(&b, 2);
        tells(&b, late ? LEASE_TELL_GRANTED : 0, 0);
    }
}

CASE(a_raise_unanswered_stands_in_nobodys_way) {
    struct bench b = bench_new();
    raising(&b);
    sends(&b, 0, LEASE_RAISE);
    draws(&b, 2, 7);
    tells(&b, LEASE_TELL_GRANTED, 0);
    int64_t deadline = evl_lease_deadline(b.lease);
    refused(&b, 0); /* nor does the answer matter, which has no ttl */
    tells_nothing(&b);
    deadline_is(&b, deadline);
    next_is(&b, b.now - SECOND + INTERVAL);
    release(&b);
    wakes(&b, 7);
}

CASE(a_raise_that_was_not_sent_when_granted_may_still_be) {
    struct bench b = bench_new();
    raising(&b);
    draws(&b, 2, 7);
    tells(&b, LEASE_TELL_GRANTED, 0);
    sends(&b, 0, LEASE_RAISE);
    release(&b);
    wakes(&b, 7);
    sends(&b, 0, LEASE_RELEASE); /* behind it */
    yes(&b, 0);                  /* the raise */
    tells_nothing(&b);
    yes(&b, 0);
    sends(&b, 1, LEASE_RELEASE);
    yes(&b, 1);
    tells(&b, LEASE_TELL_RELEASED, EVLOCK_OK);
}

CASE(a_yes_too_late_is_no_grant_with_a_fence_either) {
    struct bench b = bench_new();
    raising(&b);
    sends(&b, 0, LEASE_RAISE);
    pass(&b, KEPT - LEAD - SECOND);
    yes(&b, 0);
    tells(&b, LEASE_TELL_FAILED, EVLOCK_EUNREACHABLE);
    wakes(&b, 7);
}

/* --- Fences for those it is passed on to -------------------------------------------------------------------------- */

#define spare_is(b, number) assert_int_equal(evl_lease_spare((b)->lease), number)

/* All of `nodes` nodes are asked for so many fences besides. */
static void asked_for_more(struct bench *b, unsigned nodes, uint16_t spare) {
    begin_as(b, nodes, (struct lease_entry){.fenced = true, .spare = spare});
    for (unsigned i = 0; i < nodes; i++)
        sends(b, i, LEASE_ACQUIRE);
}

static void passes_on(struct bench *b) {
    assert_true(evl_lease_passable(b->lease, b->now));
    evl_lease_pass(b->lease, &b->terms, b->now, fresh(b));
    wakes(b, 0);
}

CASE(each_to_whom_it_is_passed_on_has_the_next_fence) {
    struct bench b = bench_new();
    asked_for_more(&b, 1, 2);
    draws_more(&b, 0, 7, 2);
    tells(&b, LEASE_TELL_GRANTED, 0);
    fence_is(&b, 7);
    passes_on(&b);
    fence_is(&b, 8);
    passes_on(&b);
    fence_is(&b, 9);
    assert_false(evl_lease_passable(b.lease, b.now));
}

CASE(what_a_node_did_not_draw_is_not_passed_on) {
    struct bench b = bench_new();
    asked_for_more(&b, 1, 2);
    draws(&b, 0, 7);
    tells(&b, LEASE_TELL_GRANTED, 0);
    fence_is(&b, 7);
    assert_false(evl_lease_passable(b.lease, b.now));
}

/* A server's word may be any: what it has counted to is all that is believed. */
CASE(more_or_less_than_was_asked_for_is_never_passed_on_beyond_the_counter) {
    static const uint16_t said[] = {1, 2, 3, 100};
    for (size_t i = 0; i < 4; i++) {
        struct bench b = bench_new();
        asked_for_more(&b, 1, 2);
        draws_more(&b, 0, 7, said[i]);
        tells(&b, LEASE_TELL_GRANTED, 0);
        assert_true(b.lease->fence >= 7 && evl_lease_spare(b.lease) <= 2);
        assert_int_equal(evl_lease_last_fence(b.lease), 7 + said[i]);
    }
}

CASE(nodes_that_kept_as_many_are_asked_once) {
    struct bench b = bench_new();
    asked_for_more(&b, 3, 5);
    draws_more(&b, 0, 7, 5);
    draws_more(&b, 1, 7, 5);
    tells(&b, LEASE_TELL_GRANTED, 0);
    wakes(&b, 0);
    fence_is(&b, 7);
    spare_is(&b, 5);
    draws_more(&b, 2, 6, 5); /* it bears more with the rest of them */
    wakes(&b, 4);
    sends(&b, 2, LEASE_RAISE);
    assert_int_equal(evl_lease_last_fence(b.lease), 12);
}

/* The greatest number drawn is the fence, and the greatest kept is the last of them: of whatever nodes these are. */
CASE(a_quorum_has_counted_to_the_last_of_them) {
    static const struct {
        int64_t drawn[2];
        uint16_t more[2];
        int64_t fence, last;
        uint32_t raised;
    } cases[] = {
        {{5, 7}, {5, 5}, 7, 12, 1}, {{7, 7}, {5, 0}, 7, 12, 2},   {{5, 7}, {5, 0}, 7, 10, 2},
        {{5, 7}, {2, 0}, 7, 7, 0},  {{5, 20}, {5, 0}, 20, 20, 1}, {{7, 5}, {0, 0}, 7, 7, 2},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct bench b = bench_new();
        asked_for_more(&b, 3, 5);
        for (unsigned n = 0; n < 2; n++)
            draws_more(&b, n, cases[i].drawn[n], cases[i].more[n]);
        fence_is(&b, cases[i].fence);
        assert_int_equal(evl_lease_last_fence(b.lease), cases[i].last);
        wakes(&b, cases[i].raised);
        tells(&b, cases[i].raised ? 0 : LEASE_TELL_GRANTED, 0);
        for (unsigned n = 0; n < 2; n++)
            if (cases[i].raised >> n & 1U) {
                sends(&b, n, LEASE_RAISE);
                yes(&b, n);
                tells(&b, LEASE_TELL_GRANTED, 0);
            }
    }
}

/* What is passed on meanwhile changes nothing: the last is the same. */
CASE(a_node_is_raised_to_the_last_of_them_before_it_is_mended) {
    struct bench b = bench_new();
    b.terms.interval = 0;
    asked_for_more(&b, 3, 5);
    no(&b, 2);
    draws_more(&b, 0, 7, 5);
    draws_more(&b, 1, 7, 5);
    tells(&b, LEASE_TELL_GRANTED, 0);
    passes_on(&b);
    passes_on(&b);
    fence_is(&b, 9);
    assert_int_equal(evl_lease_last_fence(b.lease), 12);
    until(&b, evl_lease_next(b.lease));
    sends(&b, 2, LEASE_RAISE);
    yes(&b, 2);
    sends(&b, 2, LEASE_MEND);
}

CASE(a_grant_that_is_told_brings_them_too) {
    struct bench b = bench_new();
    begin_as(&b, 1, (struct lease_entry){.fenced = true, .spare = 3, .queued = true});
    sends(&b, 0, LEASE_ACQUIRE);
    queued(&b);
    granted_more(&b, b.now, 7, 3);
    tells(&b, LEASE_TELL_GRANTED, 0);
    fence_is(&b, 7);
    spare_is(&b, 3);
    passes_on(&b);
    fence_is(&b, 8);
}

/* --- Mending ------------------------------------------------------------------------------------------------------ */

/* Two of three have granted and drawn, the third is away. */
static void held_without_the_third(struct bench *b) {
    begin_fenced(b, 3);
    away(b, 2);
    for (unsigned i = 0; i < 2; i++)
        sends(b, i, LEASE_ACQUIRE);
    draws(b, 0, 7);
    draws(b, 1, 7);
    tells(b, LEASE_TELL_GRANTED, 0);
}

/* Who is granted next with its vote must draw a greater number. */
CASE(a_node_has_the_fence_before_it_is_mended) {
    for (int renews = 0; renews < 2; renews++) {
        struct bench b = bench_new();
        b.terms.interval = renews ? INTERVAL : 0;
        held_without_the_third(&b);
        pass(&b, SECOND);
        if (renews) {
            away(&b, 2);
            pass(&b, INTERVAL - SECOND);
        } else {
            back(&b, 2, SETTLED);
        }
        sends(&b, 2, LEASE_RAISE);
        yes(&b, 2);
        wakes(&b, 4);
        sends(&b, 2, renews ? LEASE_REARM : LEASE_MEND);
        yes_ttl(&b, 2, TTL);
        tells_nothing(&b);
    }
}

CASE(a_node_that_is_not_raised_is_not_mended) {
    static void (*const failures[])(struct bench * b, unsigned node) = {no, refused, forbidden, unknown, again};
    for (size_t f = 0; f < 5; f++) {
        struct bench b = bench_new();
        b.terms.interval = 0;
        held_without_the_third(&b);
        pass(&b, SECOND);
        back(&b, 2, SETTLED);
        sends(&b, 2, LEASE_RAISE);
        failures[f](&b, 2);
        tells_nothing(&b);
        sends_nothing(&b, 2);
        until(&b, evl_lease_next(b.lease)); /* after a pause */
        is_in(&b, LEASE_HELD);
        sends(&b, 2, LEASE_RAISE);
    }
}

CASE(a_node_that_drew_less_and_late_is_raised) {
    struct bench b = bench_new();
    begin_fenced(&b, 3);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_ACQUIRE);
    draws(&b, 0, 7);
    draws(&b, 1, 7);
    draws(&b, 2, 6);
    tells_nothing(&b);
    wakes(&b, 4);
    sends(&b, 2, LEASE_RAISE);
    yes(&b, 2);
    tells_nothing(&b);
    wakes(&b, 0);
}

/* Of an extension it has a say; that it be raised is a help only. */
CASE(a_node_that_drew_less_and_late_is_not_raised_but_extended) {
    struct bench b = bench_new();
    asked(&b, 3);
    draws(&b, 0, 7);
    draws(&b, 1, 7);
    extend(&b, LEASE_ADD, SECOND);
    for (unsigned i = 0; i < 2; i++)
        sends(&b, i, LEASE_ADD);
    draws(&b, 2, 6);
    wakes(&b, 4);
    sends(&b, 2, LEASE_ADD);
    yes_ttl(&b, 2, TTL + SECOND);
    refused(&b, 1);
    yes_ttl(&b, 0, TTL + SECOND);
    tells(&b, LEASE_TELL_EXTENDED, EVLOCK_OK);
}

/* A node whose clock is years ahead draws what the others refuse, and for the attempt it is too late to do without. */
CASE(a_fence_that_only_its_node_accepts_fails_the_attempt) {
    struct bench b = bench_new();
    asked(&b, 3);
    draws(&b, 1, INT64_C(2000000000000000));
    draws(&b, 0, INT64_C(1700000000000000));
    sends(&b, 0, LEASE_RAISE);
    answer(&b, 0, LEASE_FORBIDDEN, EVLOCK_EFENCE, 0);
    tells_nothing(&b);
    draws(&b, 2, INT64_C(1700000000000000));
    tells_nothing(&b);
    sends(&b, 2, LEASE_RAISE);
    answer(&b, 2, LEASE_FORBIDDEN, EVLOCK_EFENCE, 0);
    tells(&b, LEASE_TELL_FAILED, EVLOCK_EQUORUM);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_node_draws_it_alone),
        cmocka_unit_test(nodes_that_agree_are_asked_once),
        cmocka_unit_test(without_a_fence_numbers_mean_nothing),
        cmocka_unit_test(a_node_that_drew_less_is_raised),
        cmocka_unit_test(the_greatest_is_found_wherever_it_is),
        cmocka_unit_test(another_node_that_has_it_saves_the_raising),
        cmocka_unit_test(another_node_that_drew_less_is_raised_too),
        cmocka_unit_test(a_number_that_was_not_of_the_quorum_does_not_count),
        cmocka_unit_test(a_raise_that_did_not_run_is_sent_again),
        cmocka_unit_test(a_quorum_that_cannot_be_raised_fails_the_acquire),
        cmocka_unit_test(a_node_that_cannot_be_sent_a_raise_has_voted_no),
        cmocka_unit_test(a_fence_that_only_its_node_accepts_fails_the_attempt),
        cmocka_unit_test(a_raise_is_not_waited_for_longer_than_agreed),
        cmocka_unit_test(a_raise_counts_while_the_node_keeps_the_token),
        cmocka_unit_test(a_raise_unanswered_stands_in_nobodys_way),
        cmocka_unit_test(a_raise_that_was_not_sent_when_granted_may_still_be),
        cmocka_unit_test(a_yes_too_late_is_no_grant_with_a_fence_either),
        cmocka_unit_test(each_to_whom_it_is_passed_on_has_the_next_fence),
        cmocka_unit_test(what_a_node_did_not_draw_is_not_passed_on),
        cmocka_unit_test(more_or_less_than_was_asked_for_is_never_passed_on_beyond_the_counter),
        cmocka_unit_test(nodes_that_kept_as_many_are_asked_once),
        cmocka_unit_test(a_quorum_has_counted_to_the_last_of_them),
        cmocka_unit_test(a_node_is_raised_to_the_last_of_them_before_it_is_mended),
        cmocka_unit_test(a_grant_that_is_told_brings_them_too),
        cmocka_unit_test(a_node_has_the_fence_before_it_is_mended),
        cmocka_unit_test(a_node_that_is_not_raised_is_not_mended),
        cmocka_unit_test(a_node_that_drew_less_and_late_is_raised),
        cmocka_unit_test(a_node_that_drew_less_and_late_is_not_raised_but_extended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
