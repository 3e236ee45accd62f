/*
 * How a lease is acquired and adopted: by which answers, until which deadline, and what is told when it is not.
 */
#include "test_lease.h"

/* --- One node ----------------------------------------------------------------------------------------------------- */

CASE(the_deadline_counts_from_before_the_command) {
    struct bench b = bench_new();
    begin(&b, 1);
    wakes(&b, 1);
    tells_nothing(&b);
    deadline_is(&b, 0);
    pass(&b, SECOND); /* waiting to be sent costs nothing of the lease */
    int64_t sent = b.now;
    sends(&b, 0, LEASE_ACQUIRE);
    pass(&b, 7 * SECOND);
    yes(&b, 0);
    tells(&b, LEASE_TELL_GRANTED, 0);
    deadline_is(&b, sent + TTL - TTL / 100 - 2 * MS);
    next_is(&b, sent + INTERVAL);
}

CASE(drift_is_a_hundredth_and_two_milliseconds) {
    assert_int_equal(evl_lease_drift(TTL), DRIFT);
    assert_int_equal(evl_lease_drift(0), 2 * MS);
}

CASE(a_yes_after_its_deadline_is_undone) {
    for (int late = 0; late < 2; late++) {
        struct bench b = bench_new();
        begin(&b, 1);
        sends(&b, 0, LEASE_ACQUIRE);
        b.now += KEPT - LEAD - 1 + late;
        yes(&b, 0);
        if (late) {
            tells(&b, LEASE_TELL_FAILED, EVLOCK_EUNREACHABLE);
            is_in(&b, LEASE_UNDOING);
            wakes(&b, 1);
            sends(&b, 0, LEASE_RELEASE);
            yes(&b, 0);
            is_over(&b);
        } else {
            tells(&b, LEASE_TELL_GRANTED, 0);
        }
    }
}

CASE(an_attempt_ends_when_a_yes_would_be_of_no_use) {
    struct bench b = bench_new();
    begin(&b, 1);
    next_is(&b, LEASE_NEVER);
    sends(&b, 0, LEASE_ACQUIRE);
    next_is(&b, b.now + KEPT);
    pass(&b, KEPT - 1);
    tells_nothing(&b);
    pass(&b, 1);
    tells(&b, LEASE_TELL_FAILED, EVLOCK_EUNREACHABLE);
    sends(&b, 0, LEASE_RELEASE); /* behind the acquire, on the same connection */
    next_is(&b, LEASE_NEVER);    /* the acquire may still run at any time */
    pass(&b, TTL);
    yes(&b, 0); /* now it has */
    tells_nothing(&b);
    next_is(&b, b.now + life(TTL));
    is_not_over(&b);
    yes(&b, 0);
    is_over(&b);
}

CASE(sending_again_counts_from_then) {
    struct bench b = bench_new();
    begin(&b, 1);
    sends(&b, 0, LEASE_ACQUIRE);
    pass(&b, SECOND);
    again(&b, 0);
    wakes(&b, 1);
    sends(&b, 0, LEASE_ACQUIRE);
    yes(&b, 0);
    deadline_is(&b, b.now + KEPT);
}

CASE(a_lock_without_expiry_has_no_deadline) {
    struct bench b = bench_new();
    b.terms = (struct lease_terms){.lead = LEAD, .max_hold = LEASE_NEVER};
    begin(&b, 1);
    sends(&b, 0, LEASE_ACQUIRE);
    next_is(&b, LEASE_NEVER);
    pass(&b, 100 * 24 * 3600 * SECOND);
    yes(&b, 0);
    tells(&b, LEASE_TELL_GRANTED, 0);
    deadline_is(&b, LEASE_NEVER);
    next_is(&b, LEASE_NEVER);
    pass(&b, 100 * 24 * 3600 * SECOND);
    is_in(&b, LEASE_HELD);
    tells_nothing(&b);
}

CASE(a_short_lease_is_told_lost_sooner) {
    struct bench b = bench_new();
    b.terms = (struct lease_terms){.ttl = 4 * MS, .lead = 200, .max_hold = LEASE_NEVER};
    held_by_one(&b);
    deadline_is(&b, b.now + 1960);
    next_is(&b, b.now + 1960 - 200); /* a twentieth of the ttl, where that is less than a millisecond */
}

/* --- Adopting ----------------------------------------------------------------------------------------------------- */

CASE(an_adopted_lease_lasts_as_long_as_the_server_says) {
    struct bench b = bench_new();
    begin_adopting(&b, 1);
    wakes(&b, 1);
    sends(&b, 0, LEASE_ADOPT);
    next_is(&b, LEASE_NEVER);
    int64_t sent = b.now;
    pass(&b, SECOND);
    yes_ttl(&b, 0, 6 * SECOND);
    tells(&b, LEASE_TELL_GRANTED, 0);
    deadline_is(&b, sent + 6 * SECOND - 62 * MS);
    next_is(&b, sent + 2 * SECOND); /* renewed while there is time */
}

/* Its loss is told long before its deadline. */
CASE(an_adopted_lease_is_renewed_before_its_lead) {
    struct bench b = bench_new();
    b.terms.lead = 2 * SECOND;
    begin_adopting(&b, 1);
    sends(&b, 0, LEASE_ADOPT);
    yes_ttl(&b, 0, 3 * SECOND);
    tells(&b, LEASE_TELL_GRANTED, EVLOCK_OK);
    assert_true(evl_lease_next(b.lease) < evl_lease_deadline(b.lease) - b.terms.lead);
    until(&b, evl_lease_next(b.lease));
    sends(&b, 0, LEASE_RENEW);
}

CASE(a_longer_adopted_lease_is_renewed_at_the_usual_pace) {
    struct bench b = bench_new();
    begin_adopting(&b, 1);
    sends(&b, 0, LEASE_ADOPT);
    yes_ttl(&b, 0, 3600 * SECOND);
    next_is(&b, b.now + INTERVAL);
    abandon(&b);
    next_is(&b, b.now + life(3600 * SECOND)); /* and undone for as long as it may last */
}

CASE(an_adopted_lease_may_be_without_expiry) {
    struct bench b = bench_new();
    begin_adopting(&b, 1);
    sends(&b, 0, LEASE_ADOPT);
    yes_ttl(&b, 0, LEASE_NEVER);
    deadline_is(&b, LEASE_NEVER);
    next_is(&b, b.now + INTERVAL);
    abandon(&b);
    next_is(&b, b.now + life(24 * 3600 * SECOND));
}

CASE(a_token_with_too_little_left_is_not_adopted) {
    struct bench b = bench_new();
    begin_adopting(&b, 1);
    sends(&b, 0, LEASE_ADOPT);
    b.now += SECOND;
    yes_ttl(&b, 0, SECOND);
    tells(&b, LEASE_TELL_FAILED, EVLOCK_ENOTOWNED);
    is_over(&b); /* and it is left alone */
}

CASE(an_adoption_that_fails_leaves_the_token_alone) {
    for (enum lease_verdict verdict = LEASE_NO; verdict <= LEASE_UNKNOWN; verdict++) {
        struct bench b = bench_new();
        if (verdict == LEASE_AGAIN)
            continue;
        begin_adopting(&b, 1);
        sends(&b, 0, LEASE_ADOPT);
        answer(&b, 0, verdict, EVLOCK_EREFUSED, 0);
        tells(&b, LEASE_TELL_FAILED, verdict == LEASE_NO ? EVLOCK_ENOTOWNED : EVLOCK_EREFUSED);
        is_over(&b);
        wakes(&b, 0);
        sends_nothing(&b, 0);
    }
}

CASE(an_adopted_token_may_be_on_nodes_that_did_not_say) {
    struct bench b = bench_new();
    begin_adopting(&b, 5);
    for (unsigned i = 0; i < 5; i++)
        sends(&b, i, LEASE_ADOPT);
    unknown(&b, 0);
    refused(&b, 1);
    for (unsigned i = 2; i < 5; i++)
        yes_ttl(&b, i, TTL);
    tells(&b, LEASE_TELL_GRANTED, 0);
    back(&b, 0, UNSETTLED);
    pass(&b, INTERVAL);
    wakes(&b, 31); /* it is renewed there */
    abandon(&b);
    wakes(&b, 31); /* and removed there */
    for (unsigned i = 0; i < 5; i++)
        sends(&b, i, LEASE_RELEASE);
    no(&b, 0); /* an adoption leaves nothing behind that could run */
    for (unsigned i = 1; i < 5; i++)
        yes(&b, i);
    is_over(&b);
}

CASE(a_late_answer_to_an_adoption_counts) {
    struct bench b = bench_new();
    begin_adopting(&b, 3);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_ADOPT);
    yes_ttl(&b, 0, TTL);
    yes_ttl(&b, 1, 2 * TTL);
    tells(&b, LEASE_TELL_GRANTED, 0);
    deadline_is(&b, b.now + KEPT);
    yes_ttl(&b, 2, 2 * TTL);
    tells_nothing(&b);
    deadline_is(&b, b.now + 2 * TTL - evl_lease_drift(2 * TTL));
}

CASE(a_lock_without_expiry_may_adopt_one_that_expires) {
    struct bench b = bench_new();
    b.terms = (struct lease_terms){.lead = LEAD, .max_hold = LEASE_NEVER};
    begin_adopting(&b, 1);
    sends(&b, 0, LEASE_ADOPT);
    yes_ttl(&b, 0, TTL);
    deadline_is(&b, b.now + KEPT);
    next_is(&b, b.now + KEPT - LEAD);
}

/* --- Several nodes ------------------------------------------------------------------------------------------------ */

CASE(it_is_granted_by_the_yes_that_completes_the_quorum) {
    static const struct { unsigned nodes, quorum; } sizes[] = {{1, 1}, {2, 2}, {3, 2}, {4, 3}, {5, 3}, {15, 8}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        struct bench b = bench_new();
        begin(&b, sizes[s].nodes);
        wakes(&b, (1U << sizes[s].nodes) - 1);
        for (unsigned i = 0; i < sizes[s].nodes; i++)
            sends(&b, i, LEASE_ACQUIRE);
        for (unsigned i = 0; i < sizes[s].nodes; i++) {
            yes(&b, i);
            tells(&b, i + 1 == sizes[s].quorum ? LEASE_TELL_GRANTED : 0, 0); /* and only once */
            is_in(&b, i + 1 < sizes[s].quorum ? LEASE_ACQUIRING : LEASE_HELD);
        }
    }
}

CASE(it_fails_when_a_quorum_cannot_be_any_more) {
    struct bench b = bench_new();
    begin(&b, 5);
    for (unsigned i = 0; i < 5; i++)
        sends(&b, i, LEASE_ACQUIRE);
    no(&b, 0);
    yes(&b, 1);
    no(&b, 2);
    yes(&b, 3);
    tells_nothing(&b);
    no(&b, 4);
    tells(&b, LEASE_TELL_FAILED, EVLOCK_EHELD);
    wakes(&b, 1U << 1 | 1U << 3); /* undone where it was set */
    sends(&b, 1, LEASE_RELEASE);
    sends(&b, 3, LEASE_RELEASE);
    sends_nothing(&b, 0);
    yes(&b, 1);
    is_not_over(&b);
    yes(&b, 3);
    is_over(&b);
}

CASE(a_failed_attempt_is_undone_also_where_nothing_was_answered) {
    struct bench b = bench_new();
    begin(&b, 3);
    sends(&b, 0, LEASE_ACQUIRE);
    sends(&b, 1, LEASE_ACQUIRE); /* node 2 is not ready for a command */
    sends(&b, 2, LEASE_ACQUIRE);
    no(&b, 0);
    no(&b, 1);
    tells(&b, LEASE_TELL_FAILED, EVLOCK_EHELD);
    wakes(&b, 1U << 2);
    sends(&b, 2, LEASE_RELEASE);
    yes(&b, 2);
    is_not_over(&b);
    yes(&b, 2);
    is_over(&b);
}

CASE(what_was_not_sent_when_it_failed_is_not_sent) {
    struct bench b = bench_new();
    begin(&b, 3);
    sends(&b, 0, LEASE_ACQUIRE);
    sends(&b, 1, LEASE_ACQUIRE);
    no(&b, 0);
    no(&b, 1);
    is_over(&b);
    sends_nothing(&b, 2);
}

CASE(that_another_holds_it_says_more_than_any_trouble) {
    for (int order = 0; order < 2; order++) {
        struct bench b = bench_new();
        begin(&b, 3);
        for (unsigned i = 0; i < 3; i++)
            sends(&b, i, LEASE_ACQUIRE);
        if (order)
            refused(&b, 0);
        no(&b, 1);
        if (!order)
            refused(&b, 0);
        tells(&b, LEASE_TELL_FAILED, EVLOCK_EHELD);
    }
    struct bench b = bench_new();
    begin_adopting(&b, 3);
    sends(&b, 0, LEASE_ADOPT);
    no(&b, 0);
    away(&b, 1);
    tells(&b, LEASE_TELL_FAILED, EVLOCK_ENOTOWNED);
}

CASE(the_deadline_is_the_quorums) {
    struct bench b = bench_new();
    begin(&b, 5);
    int64_t first = b.now;
    for (unsigned i = 0; i < 5; i++) { /* node i a second after node i - 1 */
        sends(&b, i, LEASE_ACQUIRE);
        pass(&b, SECOND);
    }
    yes(&b, 1);
    yes(&b, 4);
    yes(&b, 0);
    deadline_is(&b, first + KEPT); /* of 4, 1, 0 the third greatest */
    yes(&b, 2);
    deadline_is(&b, first + SECOND + KEPT);
    yes(&b, 3);
    deadline_is(&b, first + 2 * SECOND + KEPT); /* of 4, 3, 2, 1, 0 the third greatest */
    next_is(&b, b.now + 50 * MS);               /* then 0 and 1, which do not keep it for as long, are mended */
}

CASE(a_quorum_of_late_votes_is_no_grant) {
    struct bench b = bench_new();
    begin(&b, 3);
    sends(&b, 0, LEASE_ACQUIRE);
    b.now += SECOND;
    sends(&b, 1, LEASE_ACQUIRE);
    sends(&b, 2, LEASE_ACQUIRE);
    yes(&b, 0);
    b.now += KEPT - SECOND - LEAD; /* node 0 has it for no longer than it takes to tell */
    yes(&b, 1);
    tells(&b, LEASE_TELL_FAILED, EVLOCK_EUNREACHABLE);
    wakes(&b, 7);
}

CASE(a_node_that_hangs_costs_nothing_while_a_quorum_answers) {
    struct bench b = bench_new();
    begin(&b, 3);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_ACQUIRE);
    yes(&b, 0);
    next_is(&b, b.now + KEPT);
    away(&b, 1); /* its acquire is unanswered: that it is away says nothing yet */
    tells_nothing(&b);
    unknown(&b, 1);
    tells_nothing(&b);
    yes(&b, 2);
    tells(&b, LEASE_TELL_GRANTED, 0);
}

CASE(a_node_that_hangs_is_not_waited_for) {
    struct bench b = bench_new();
    begin(&b, 3);
    for (unsigned i = 0; i < 2; i++)
        sends(&b, i, LEASE_ACQUIRE);
    b.now += SECOND;
    sends(&b, 2, LEASE_ACQUIRE);
    pass(&b, KEPT - SECOND);
    tells(&b, LEASE_TELL_FAILED, EVLOCK_EQUORUM); /* two of three, and the third may still have a second */

    begin(&b, 3);
    sends(&b, 0, LEASE_ACQUIRE);
    b.now += SECOND;
    sends(&b, 1, LEASE_ACQUIRE);
    sends(&b, 2, LEASE_ACQUIRE);
    yes(&b, 2);
    pass(&b, KEPT - SECOND);
    tells_nothing(&b);
    next_is(&b, b.now + SECOND); /* nothing is due for the one that was given up */
    yes(&b, 1);
    tells(&b, LEASE_TELL_GRANTED, 0);
}

CASE(nodes_that_answer_late_are_kept) {
    struct bench b = bench_new();
    begin(&b, 5);
    for (unsigned i = 0; i < 5; i++)
        sends(&b, i, LEASE_ACQUIRE);
    for (unsigned i = 0; i < 3; i++)
        yes(&b, i);
    yes(&b, 3);
    no(&b, 4);
    tells_nothing(&b);
    assert_int_equal(b.lease->slots[3].deadline, b.now + KEPT);
    abandon(&b);
    wakes(&b, 15);
}

CASE(an_acquire_that_could_not_be_sent_yet_is_sent_when_held) {
    struct bench b = bench_new();
    begin(&b, 3);
    sends(&b, 0, LEASE_ACQUIRE);
    sends(&b, 1, LEASE_ACQUIRE);
    yes(&b, 0);
    yes(&b, 1);
    sends(&b, 2, LEASE_ACQUIRE);
    again(&b, 2); /* once is enough: it is held without */
    sends_nothing(&b, 2);
}

CASE(an_acquire_does_not_wait_for_a_node_once_held) {
    struct bench b = bench_new();
    begin(&b, 3);
    sends(&b, 0, LEASE_ACQUIRE);
    sends(&b, 1, LEASE_ACQUIRE);
    yes(&b, 0);
    yes(&b, 1);
    away(&b, 2);
    back(&b, 2, SETTLED);
    sends_nothing(&b, 2);
    pass(&b, INTERVAL);
    sends(&b, 2, LEASE_REARM); /* it is asked again with the first renewal */
}

CASE(too_many_nodes_in_trouble_are_a_missing_quorum) {
    struct bench b = bench_new();
    begin(&b, 5);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_ACQUIRE);
    yes(&b, 0);
    refused(&b, 1);
    away(&b, 3);
    tells_nothing(&b);
    excluded(&b, 4);
    tells(&b, LEASE_TELL_FAILED, EVLOCK_EQUORUM);
    assert_int_equal(b.out.denied, 3);
    wakes(&b, 1U << 0 | 1U << 2);

    begin(&b, 2); /* of two both are needed */
    away(&b, 0);
    tells(&b, LEASE_TELL_FAILED, EVLOCK_EQUORUM);
    assert_int_equal(b.out.denied, 1);
    begin(&b, 1);
    excluded(&b, 0);
    tells(&b, LEASE_TELL_FAILED, EVLOCK_EEXCLUDED);
}

/* --- Patience ----------------------------------------------------------------------------------------------------- */

CASE(no_node_is_waited_for_longer_than_agreed) {
    struct bench b = bench_new();
    b.terms.patience = 3 * SECOND;
    begin(&b, 3);
    int64_t end = b.now + 3 * SECOND;
    next_is(&b, end); /* also where nothing could be sent yet */
    pass(&b, SECOND);
    for (unsigned i = 0; i < 2; i++)
        sends(&b, i, LEASE_ACQUIRE);
    yes(&b, 0);
    next_is(&b, end); /* from the beginning, whenever it was sent */
    until(&b, end - 1);
    tells_nothing(&b);
    until(&b, end);
    tells(&b, LEASE_TELL_FAILED, EVLOCK_EQUORUM);
    assert_int_equal(b.out.denied, 2);
    wakes(&b, 3);
    sends_nothing(&b, 2);
}

CASE(who_ran_out_of_time_takes_nothing_from_what_was_said) {
    struct bench b = bench_new();
    b.terms.patience = 3 * SECOND;
    begin(&b, 3);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_ACQUIRE);
    no(&b, 1);
    pass(&b, 3 * SECOND);
    tells(&b, LEASE_TELL_FAILED, EVLOCK_EHELD);
}

CASE(a_short_lease_is_given_up_before_the_patience_ends) {
    struct bench b = bench_new();
    b.terms.patience = KEPT + 1;
    begin(&b, 3);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_ACQUIRE);
    next_is(&b, b.now + KEPT);
    pass(&b, KEPT);
    tells(&b, LEASE_TELL_FAILED, EVLOCK_EQUORUM);
}

CASE(an_adoption_is_patient_as_long) {
    struct bench b = bench_new();
    b.terms.patience = 3 * SECOND;
    begin_adopting(&b, 3);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_ADOPT);
    next_is(&b, b.now + 3 * SECOND);
    pass(&b, 3 * SECOND);
    tells(&b, LEASE_TELL_FAILED, EVLOCK_EQUORUM);
}

CASE(one_node_alone_is_waited_for) {
    struct bench b = bench_new();
    b.terms.patience = 3 * SECOND;
    begin(&b, 1);
    next_is(&b, LEASE_NEVER);
    pass(&b, 10 * SECOND);
    tells_nothing(&b);
    sends(&b, 0, LEASE_ACQUIRE);
    next_is(&b, b.now + KEPT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_deadline_counts_from_before_the_command),
        cmocka_unit_test(drift_is_a_hundredth_and_two_milliseconds),
        cmocka_unit_test(a_yes_after_its_deadline_is_undone),
        cmocka_unit_test(an_attempt_ends_when_a_yes_would_be_of_no_use),
        cmocka_unit_test(sending_again_counts_from_then),
        cmocka_unit_test(a_lock_without_expiry_has_no_deadline),
        cmocka_unit_test(a_short_lease_is_told_lost_sooner),
        cmocka_unit_test(an_adopted_lease_lasts_as_long_as_the_server_says),
        cmocka_unit_test(a_longer_adopted_lease_is_renewed_at_the_usual_pace),
        cmocka_unit_test(an_adopted_lease_is_renewed_before_its_lead),
        cmocka_unit_test(an_adopted_lease_may_be_without_expiry),
        cmocka_unit_test(a_token_with_too_little_left_is_not_adopted),
        cmocka_unit_test(an_adoption_that_fails_leaves_the_token_alone),
        cmocka_unit_test(an_adopted_token_may_be_on_nodes_that_did_not_say),
        cmocka_unit_test(a_late_answer_to_an_adoption_counts),
        cmocka_unit_test(a_lock_without_expiry_may_adopt_one_that_expires),
        cmocka_unit_test(it_is_granted_by_the_yes_that_completes_the_quorum),
        cmocka_unit_test(it_fails_when_a_quorum_cannot_be_any_more),
        cmocka_unit_test(a_failed_attempt_is_undone_also_where_nothing_was_answered),
        cmocka_unit_test(what_was_not_sent_when_it_failed_is_not_sent),
        cmocka_unit_test(that_another_holds_it_says_more_than_any_trouble),
        cmocka_unit_test(the_deadline_is_the_quorums),
        cmocka_unit_test(a_quorum_of_late_votes_is_no_grant),
        cmocka_unit_test(a_node_that_hangs_costs_nothing_while_a_quorum_answers),
        cmocka_unit_test(a_node_that_hangs_is_not_waited_for),
        cmocka_unit_test(nodes_that_answer_late_are_kept),
        cmocka_unit_test(an_acquire_that_could_not_be_sent_yet_is_sent_when_held),
        cmocka_unit_test(an_acquire_does_not_wait_for_a_node_once_held),
        cmocka_unit_test(too_many_nodes_in_trouble_are_a_missing_quorum),
        cmocka_unit_test(no_node_is_waited_for_longer_than_agreed),
        cmocka_unit_test(who_ran_out_of_time_takes_nothing_from_what_was_said),
        cmocka_unit_test(a_short_lease_is_given_up_before_the_patience_ends),
        cmocka_unit_test(an_adoption_is_patient_as_long),
        cmocka_unit_test(one_node_alone_is_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
