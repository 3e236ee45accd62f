/*
 * How a held lease is extended: by and to a time, by the vote of a quorum, and where the deadline is meanwhile.
 */
#include "test_lease.h"

static int64_t kept(int64_t ttl) {
    return ttl - evl_lease_drift(ttl);
}

/* --- One node ----------------------------------------------------------------------------------------------------- */

CASE(an_addition_moves_the_deadline_when_it_is_answered) {
    struct bench b = bench_new();
    held_by_one(&b);
    int64_t deadline = evl_lease_deadline(b.lease);
    pass(&b, SECOND);
    extend(&b, LEASE_ADD, 10 * SECOND);
    wakes(&b, 1);
    pass(&b, SECOND);
    int64_t sent = b.now;
    sends(&b, 0, LEASE_ADD);
    deadline_is(&b, deadline);
    pass(&b, SECOND);
    yes_ttl(&b, 0, TTL + 8 * SECOND);
    tells(&b, LEASE_TELL_EXTENDED, EVLOCK_OK);
    deadline_is(&b, sent + kept(TTL + 8 * SECOND));
    next_is(&b, sent + INTERVAL);
    extend(&b, LEASE_ADD, 10 * SECOND); /* the next may follow at once */
    sends(&b, 0, LEASE_ADD);
    yes_ttl(&b, 0, TTL + 18 * SECOND);
    tells(&b, LEASE_TELL_EXTENDED, EVLOCK_OK);
}

CASE(a_longer_replacement_moves_it_out_when_answered) {
    struct bench b = bench_new();
    held_by_one(&b);
    int64_t deadline = evl_lease_deadline(b.lease);
    extend(&b, LEASE_REPLACE, 60 * SECOND);
    sends(&b, 0, LEASE_REPLACE);
    deadline_is(&b, deadline);
    yes_ttl(&b, 0, 60 * SECOND);
    tells(&b, LEASE_TELL_EXTENDED, EVLOCK_OK);
    deadline_is(&b, b.now + kept(60 * SECOND));
}

CASE(a_shorter_replacement_moves_it_in_before_it_is_sent) {
    struct bench b = bench_new();
    held_by_one(&b);
    int64_t deadline = evl_lease_deadline(b.lease);
    pass(&b, SECOND);
    extend(&b, LEASE_REPLACE, 3 * SECOND);
    deadline_is(&b, deadline); /* it has not gone out */
    sends(&b, 0, LEASE_REPLACE);
    deadline_is(&b, b.now + kept(3 * SECOND));
    int64_t sent = b.now;
    pass(&b, SECOND);
    yes_ttl(&b, 0, 3 * SECOND);
    deadline_is(&b, sent + kept(3 * SECOND));
    next_is(&b, sent + SECOND); /* renewed while there is time */
}

CASE(an_unanswered_replacement_ends_the_lease_by_its_own_time) {
    struct bench b = bench_new();
    held_by_one(&b);
    extend(&b, LEASE_REPLACE, 3 * SECOND);
    sends(&b, 0, LEASE_REPLACE);
    next_is(&b, b.now + kept(3 * SECOND) - LEAD);
    pass(&b, kept(3 * SECOND) - LEAD);
    assert_int_equal(b.out.events, LEASE_TELL_EXTENDED | LEASE_TELL_LOST);
    assert_int_equal(b.out.status, EVLOCK_ELOST);
    assert_int_equal(b.out.reason, EVLOCK_EEXPIRED);
}

CASE(an_unknown_extension_never_moves_the_deadline_out) {
    static const enum lease_command commands[] = {LEASE_ADD, LEASE_REPLACE};
    for (size_t c = 0; c < 2; c++) {
        struct bench b = bench_new();
        held_by_one(&b);
        int64_t deadline = evl_lease_deadline(b.lease);
        extend(&b, commands[c], 100 * SECOND);
        sends(&b, 0, commands[c]);
        unknown(&b, 0);
        tells(&b, LEASE_TELL_EXTENDED, EVLOCK_EUNREACHABLE);
        deadline_is(&b, deadline);
        abandon(&b);
        assert_true(evl_lease_next(b.lease) >= b.now + 100 * SECOND); /* but the token may live for so long */
    }
}

/* A renewal after a replacement to three seconds was lost, or not, and the node came back. */
static void renewed_after(struct bench *b, void (*outcome)(struct bench *b, unsigned node), enum back how) {
    held_by_one(b);
    extend(b, LEASE_REPLACE, 3 * SECOND);
    sends(b, 0, LEASE_REPLACE);
    outcome(b, 0);
    back(b, 0, how);
    until(b, evl_lease_next(b->lease));
    sends(b, 0, LEASE_RENEW);
    yes_ttl(b, 0, TTL);
}

CASE(a_lost_replacement_may_shorten_the_lease_at_any_time) {
    struct bench b = bench_new();
    renewed_after(&b, unknown, UNSETTLED);
    deadline_is(&b, b.now + kept(3 * SECOND)); /* whatever the renewal was granted */
    next_is(&b, b.now + SECOND);
    pass(&b, SECOND);
    sends(&b, 0, LEASE_RENEW);
    unknown(&b, 0);
    back(&b, 0, SETTLED); /* this says nothing of that older connection */
    sends(&b, 0, LEASE_RENEW);
    yes_ttl(&b, 0, TTL);
    deadline_is(&b, b.now + kept(3 * SECOND));
    back(&b, 0, UNSETTLED); /* and this, that no other replacement was lost */
    pass(&b, SECOND);
    sends(&b, 0, LEASE_RENEW);
    yes_ttl(&b, 0, TTL);
    deadline_is(&b, b.now + kept(3 * SECOND));
    extend(&b, LEASE_REPLACE, 60 * SECOND);
    sends(&b, 0, LEASE_REPLACE);
    yes_ttl(&b, 0, 60 * SECOND);
    deadline_is(&b, b.now + kept(3 * SECOND));
}

CASE(a_lost_replacement_by_weeks_is_not_forgotten) {
    static const int64_t most = (LEASE_NO_CUT - INT64_C(1)) * MS; /* that is kept of it */
    static const int64_t ttls[] = {2 * 3600 * SECOND, most, most + MS, most + 2 * MS, 2 * most};
    for (size_t i = 0; i < sizeof ttls / sizeof *ttls; i++) {
        struct bench b = bench_new();
        held_by_one(&b);
        extend(&b, LEASE_REPLACE, ttls[i]);
        sends(&b, 0, LEASE_REPLACE);
        assert_false(evl_lease_exportable(b.lease, b.now));
        unknown(&b, 0);
        back(&b, 0, UNSETTLED);
        assert_false(evl_lease_exportable(b.lease, b.now));
        until(&b, evl_lease_next(b.lease));
        b.terms.ttl = 3 * most; /* or no more would be asked for */
        sends(&b, 0, LEASE_RENEW);
        yes_ttl(&b, 0, 3 * most);
        deadline_is(&b, b.now + kept(ttls[i] < most ? ttls[i] : most));
    }
}

CASE(a_replacement_that_cannot_run_any_more_shortens_nothing) {
    struct bench b = bench_new();
    renewed_after(&b, unknown, SETTLED);
    deadline_is(&b, b.now + KEPT);
    extend(&b, LEASE_REPLACE, 3 * SECOND);
    sends(&b, 0, LEASE_REPLACE);
    unknown(&b, 0);
    back(&b, 0, SETTLED);
    back(&b, 0, UNSETTLED); /* nothing was lost this time */
    until(&b, evl_lease_next(b.lease));
    sends(&b, 0, LEASE_RENEW);
    yes_ttl(&b, 0, TTL);
    deadline_is(&b, b.now + KEPT);
    renewed_after(&b, refused, UNSETTLED);
    deadline_is(&b, b.now + KEPT);
    back(&b, 0, UNSETTLED); /* nothing was lost this time */
    pass(&b, INTERVAL);
    sends(&b, 0, LEASE_RENEW);
    yes_ttl(&b, 0, TTL);
    deadline_is(&b, b.now + KEPT);
}

CASE(an_extension_that_failed_is_made_up_for_by_a_renewal) {
    static void (*const failures[])(struct bench * b, unsigned node) = {refused, forbidden, unknown};
    static const int statuses[] = {EVLOCK_EREFUSED, EVLOCK_EPERM, EVLOCK_EUNREACHABLE};
    for (size_t f = 0; f < 3; f++) {
        struct bench b = bench_new();
        held_by_one(&b);
        extend(&b, LEASE_REPLACE, SECOND);
        sends(&b, 0, LEASE_REPLACE);
        failures[f](&b, 0);
        tells(&b, LEASE_TELL_EXTENDED, statuses[f]);
        /* What did not run has shortened nothing; what may have run counts as if it had. */
        deadline_is(&b, b.now + (f < 2 ? KEPT : kept(SECOND)));
        next_is(&b, b.now + (f < 2 ? SECOND : kept(SECOND) / 8));
        until(&b, evl_lease_next(b.lease));
        sends(&b, 0, LEASE_RENEW);
        yes_ttl(&b, 0, TTL);
        deadline_is(&b, b.now + KEPT);
    }
}

CASE(a_renewal_waits_for_an_extension) {
    struct bench b = bench_new();
    b.terms.interval = 25 * SECOND;
    held_by_one(&b);
    pass(&b, 24 * SECOND);
    extend(&b, LEASE_ADD, SECOND);
    sends(&b, 0, LEASE_ADD);
    pass(&b, SECOND);
    wakes(&b, 0);
    refused(&b, 0); /* what it stood in the way of is not put off for a whole interval */
    assert_true(evl_lease_next(b.lease) <= b.now + SECOND);
    until(&b, evl_lease_next(b.lease));
    sends(&b, 0, LEASE_RENEW);
}

CASE(each_command_asks_for_its_own_ttl) {
    struct bench b = bench_new();
    held_by_one(&b);
    extend(&b, LEASE_REPLACE, SECOND);
    assert_int_equal(evl_lease_ttl(b.lease, LEASE_REPLACE, b.now), SECOND);
    assert_int_equal(evl_lease_ttl(b.lease, LEASE_ADD, b.now), SECOND);
    assert_int_equal(evl_lease_ttl(b.lease, LEASE_RENEW, b.now), TTL);
}

CASE(an_extension_takes_the_place_of_a_renewal) {
    struct bench b = bench_new();
    held_by_one(&b);
    pass(&b, INTERVAL);
    extend(&b, LEASE_ADD, SECOND);
    sends(&b, 0, LEASE_ADD);
    yes_ttl(&b, 0, TTL - 9 * SECOND);
    int64_t interval = evl_lease_next(b.lease) - b.now; /* there is less than the ttl to renew it in */
    assert_int_in_range(interval, (TTL - DRIFT - 9 * SECOND) / 3, (TTL - 9 * SECOND) / 3);
}

CASE(an_extension_is_told_by_its_time) {
    for (int is_away = 0; is_away < 2; is_away++) {
        struct bench b = bench_new();
        held_by_one(&b);
        extend(&b, LEASE_REPLACE, SECOND);
        if (is_away)
            evl_lease_node_away(b.lease, 0, EVLOCK_EAUTH, b.now, fresh(&b));
        next_is(&b, b.now + 5 * SECOND);
        pass(&b, 5 * SECOND);
        tells(&b, LEASE_TELL_EXTENDED, is_away ? EVLOCK_EAUTH : EVLOCK_EUNREACHABLE);
        sends_nothing(&b, 0); /* it was not sent, and is not any more */
        deadline_is(&b, b.now - 5 * SECOND + KEPT);
    }
}

CASE(the_answer_to_an_extension_that_was_given_up_counts) {
    struct bench b = bench_new();
    held_by_one(&b);
    extend(&b, LEASE_ADD, 60 * SECOND);
    int64_t sent = b.now;
    sends(&b, 0, LEASE_ADD);
    pass(&b, 5 * SECOND);
    tells(&b, LEASE_TELL_EXTENDED, EVLOCK_EUNREACHABLE);
    extend(&b, LEASE_REPLACE, 70 * SECOND); /* the next one waits for that answer */
    assert_int_equal(takes(&b, 0, LEASE_NOTHING), LEASE_NOTHING);
    yes_ttl(&b, 0, 90 * SECOND);
    tells_nothing(&b); /* which is not its own */
    deadline_is(&b, sent + kept(90 * SECOND));
    wakes(&b, 1);
    sends(&b, 0, LEASE_REPLACE);
    deadline_is(&b, b.now + kept(70 * SECOND));
    yes_ttl(&b, 0, 70 * SECOND);
    tells(&b, LEASE_TELL_EXTENDED, EVLOCK_OK);
}

CASE(an_extension_given_up_is_not_sent_again) {
    struct bench b = bench_new();
    held_by_one(&b);
    extend(&b, LEASE_ADD, SECOND);
    sends(&b, 0, LEASE_ADD);
    again(&b, 0);
    wakes(&b, 1); /* while it is under way, it is */
    sends(&b, 0, LEASE_ADD);
    pass(&b, 5 * SECOND);
    again(&b, 0);
    wakes(&b, 0);
    sends_nothing(&b, 0);
}

CASE(an_extension_ends_with_the_lease) {
    for (int gone = 0; gone < 2; gone++) {
        struct bench b = bench_new();
        renewing(&b);
        evl_lease_extend(b.lease, LEASE_ADD, SECOND, LEASE_NEVER, fresh(&b));
        if (gone)
            no(&b, 0);
        else
            pass(&b, KEPT - INTERVAL);
        assert_int_equal(b.out.events, LEASE_TELL_EXTENDED | LEASE_TELL_LOST);
        assert_int_equal(b.out.status, gone ? EVLOCK_ENOTOWNED : EVLOCK_ELOST);
        assert_int_equal(b.out.reason, gone ? EVLOCK_ENOTOWNED : EVLOCK_EEXPIRED);
        sends_nothing(&b, 0);
    }
}

CASE(an_extension_finds_the_token_gone_with_the_servers_data) {
    struct bench b = bench_new();
    b.terms.interval = 0;
    held_by_one(&b);
    back(&b, 0, REPLACED);
    extend(&b, LEASE_ADD, SECOND);
    sends(&b, 0, LEASE_ADD);
    no(&b, 0);
    assert_int_equal(b.out.events, LEASE_TELL_EXTENDED | LEASE_TELL_LOST);
    assert_int_equal(b.out.status, EVLOCK_ENOTOWNED);
    assert_int_equal(b.out.reason, EVLOCK_EDATALOSS);
}

CASE(without_renewal_an_extension_plans_none) {
    struct bench b = bench_new();
    b.terms.interval = 0;
    held_by_one(&b);
    extend(&b, LEASE_REPLACE, 60 * SECOND);
    sends(&b, 0, LEASE_REPLACE);
    yes_ttl(&b, 0, 60 * SECOND);
    next_is(&b, b.now + kept(60 * SECOND) - LEAD);
}

CASE(extensions_end_with_a_release) {
    struct bench b = bench_new();
    held_by_one(&b);
    extend(&b, LEASE_ADD, SECOND);
    sends(&b, 0, LEASE_ADD);
    release(&b);
    sends(&b, 0, LEASE_RELEASE);
    yes_ttl(&b, 0, TTL);
    tells_nothing(&b);
    yes(&b, 0);
    tells(&b, LEASE_TELL_RELEASED, EVLOCK_OK);
    is_over(&b);
}

/* --- What is asked for is the most that counts -------------------------------------------------------------------- */

#define AGES (INT64_C(10) * 366 * 24 * 3600 * SECOND)

/* A server's clock was set back, or somebody has made the key live longer, or the server lies. */
CASE(no_answer_to_an_extension_counts_for_more_than_was_asked_for) {
    for (unsigned nodes = 1; nodes <= 3; nodes += 2) {
        struct bench b = bench_new();
        held_by(&b, nodes);
        int64_t deadline = evl_lease_deadline(b.lease);
        pass(&b, SECOND);
        extend(&b, LEASE_ADD, 10 * SECOND);
        for (unsigned i = 0; i < nodes; i++)
            sends(&b, i, LEASE_ADD);
        for (unsigned i = 0; i < nodes; i++)
            yes_ttl(&b, i, AGES);
        deadline_is(&b, deadline + 10 * SECOND); /* what was believed, and so much more */
        extend(&b, LEASE_REPLACE, 60 * SECOND);
        for (unsigned i = 0; i < nodes; i++)
            sends(&b, i, LEASE_REPLACE);
        for (unsigned i = 0; i < nodes; i++)
            yes_ttl(&b, i, AGES);
        deadline_is(&b, b.now + kept(60 * SECOND));
    }
}

CASE(an_addition_where_nothing_is_believed_counts_by_itself) {
    struct bench b = bench_new();
    begin(&b, 3);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_ACQUIRE);
    yes(&b, 1);
    yes(&b, 2);
    unknown(&b, 0); /* but it ran */
    back(&b, 0, SETTLED);
    extend(&b, LEASE_ADD, 10 * SECOND);
    sends(&b, 0, LEASE_ADD);
    yes_ttl(&b, 0, TTL + 10 * SECOND);
    assert_int_equal(b.lease->slots[0].deadline, b.now + 10 * SECOND);
}

/* Small additions, one after the other, do not wear off what is believed. */
CASE(many_additions_keep_the_deadline) {
    struct bench b = bench_new();
    b.terms.interval = 0;
    held_by_one(&b);
    int64_t expires = b.now + TTL, deadline = evl_lease_deadline(b.lease);
    for (int i = 0; i < 1000; i++) {
        pass(&b, SECOND);
        extend(&b, LEASE_ADD, SECOND);
        sends(&b, 0, LEASE_ADD);
        expires += SECOND;
        yes_ttl(&b, 0, expires - b.now);
        deadline += SECOND;
        deadline_is(&b, deadline);
    }
}

CASE(an_addition_to_what_is_believed_for_ever_ends_nothing) {
    struct bench b = bench_new();
    begin_adopting(&b, 1);
    sends(&b, 0, LEASE_ADOPT);
    yes_ttl(&b, 0, LEASE_NEVER);
    extend(&b, LEASE_ADD, SECOND);
    sends(&b, 0, LEASE_ADD);
    yes_ttl(&b, 0, TTL);
    tells(&b, LEASE_TELL_EXTENDED, EVLOCK_OK);
    deadline_is(&b, LEASE_NEVER);
}

/* --- Several nodes ------------------------------------------------------------------------------------------------ */

static void three_are_asked(struct bench *b) {
    held_by(b, 3);
    extend(b, LEASE_REPLACE, 60 * SECOND);
    wakes(b, 7);
    for (unsigned i = 0; i < 3; i++)
        sends(b, i, LEASE_REPLACE);
}

CASE(a_quorum_extends) {
    struct bench b = bench_new();
    three_are_asked(&b);
    refused(&b, 1);
    tells_nothing(&b);
    yes_ttl(&b, 0, 60 * SECOND);
    tells_nothing(&b);
    deadline_is(&b, b.now + KEPT);
    yes_ttl(&b, 2, 60 * SECOND);
    tells(&b, LEASE_TELL_EXTENDED, EVLOCK_OK);
    deadline_is(&b, b.now + kept(60 * SECOND));
}

CASE(the_rest_of_an_extension_is_not_told) {
    struct bench b = bench_new();
    three_are_asked(&b);
    yes_ttl(&b, 0, 60 * SECOND);
    yes_ttl(&b, 1, 60 * SECOND);
    tells(&b, LEASE_TELL_EXTENDED, EVLOCK_OK);
    refused(&b, 2);
    tells_nothing(&b);
}

CASE(an_extension_fails_without_a_quorum) {
    struct bench b = bench_new();
    three_are_asked(&b);
    unknown(&b, 0);
    tells_nothing(&b);
    no(&b, 1);
    tells(&b, LEASE_TELL_EXTENDED, EVLOCK_EQUORUM);
    is_in(&b, LEASE_HELD); /* two nodes may keep it yet */
    deadline_is(&b, b.now + KEPT);
}

CASE(an_extension_without_enough_answers_is_told_by_its_time) {
    struct bench b = bench_new();
    three_are_asked(&b);
    refused(&b, 0);              /* speaks for itself alone */
    yes_ttl(&b, 1, 60 * SECOND); /* says nothing of why it fails */
    pass(&b, 5 * SECOND);
    tells(&b, LEASE_TELL_EXTENDED, EVLOCK_EQUORUM); /* as if they had been lost */
}

CASE(a_shorter_extension_shortens_where_it_is_sent) {
    struct bench b = bench_new();
    held_by(&b, 3);
    int64_t deadline = evl_lease_deadline(b.lease);
    extend(&b, LEASE_REPLACE, SECOND);
    sends(&b, 0, LEASE_REPLACE);
    deadline_is(&b, deadline); /* two nodes keep it as it was */
    sends(&b, 1, LEASE_REPLACE);
    deadline_is(&b, b.now + kept(SECOND));
}

CASE(a_gone_token_fails_the_extension_and_then_the_lease) {
    struct bench b = bench_new();
    three_are_asked(&b);
    no(&b, 0);
    tells_nothing(&b);
    no(&b, 1);
    assert_int_equal(b.out.events, LEASE_TELL_EXTENDED | LEASE_TELL_LOST);
    assert_int_equal(b.out.status, EVLOCK_ENOTOWNED);
    yes_ttl(&b, 2, 60 * SECOND);
    tells_nothing(&b);
    abandon(&b);
    wakes(&b, 4);
}

CASE(an_extension_does_not_wait_for_nodes_that_are_away) {
    struct bench b = bench_new();
    held_by(&b, 3);
    extend(&b, LEASE_ADD, SECOND);
    excluded(&b, 0);
    tells_nothing(&b);
    sends_nothing(&b, 0);
    for (unsigned i = 1; i < 3; i++) {
        sends(&b, i, LEASE_ADD);
        yes_ttl(&b, i, TTL + SECOND);
    }
    tells(&b, LEASE_TELL_EXTENDED, EVLOCK_OK);
    deadline_is(&b, b.now + kept(TTL + SECOND));

    extend(&b, LEASE_ADD, SECOND);
    away(&b, 0);
    away(&b, 1);
    tells(&b, LEASE_TELL_EXTENDED, EVLOCK_EQUORUM);
    sends_nothing(&b, 2);
    away(&b, 2); /* nothing is wanted of it any more */
    tells_nothing(&b);
}

CASE(a_node_that_goes_away_before_it_answered_has_not_voted) {
    struct bench b = bench_new();
    three_are_asked(&b);
    away(&b, 0);
    away(&b, 1);
    tells_nothing(&b);
    yes_ttl(&b, 0, 60 * SECOND);
    yes_ttl(&b, 1, 60 * SECOND);
    tells(&b, LEASE_TELL_EXTENDED, EVLOCK_OK);
}

CASE(a_renewal_of_a_node_that_is_away_is_no_vote) {
    struct bench b = bench_new();
    held_by(&b, 3);
    pass(&b, INTERVAL - SECOND);
    extend(&b, LEASE_ADD, SECOND);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_ADD);
    yes_ttl(&b, 0, TTL);
    refused(&b, 1);
    until(&b, evl_lease_next(b.lease)); /* the renewal that follows soon, while node 2 has not answered */
    wakes(&b, 3);
    away(&b, 0); /* its yes to the extension stands */
    tells_nothing(&b);
    yes_ttl(&b, 2, TTL);
    tells(&b, LEASE_TELL_EXTENDED, EVLOCK_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_addition_moves_the_deadline_when_it_is_answered),
        cmocka_unit_test(a_longer_replacement_moves_it_out_when_answered),
        cmocka_unit_test(a_shorter_replacement_moves_it_in_before_it_is_sent),
        cmocka_unit_test(an_unanswered_replacement_ends_the_lease_by_its_own_time),
        cmocka_unit_test(an_unknown_extension_never_moves_the_deadline_out),
        cmocka_unit_test(a_lost_replacement_may_shorten_the_lease_at_any_time),
        cmocka_unit_test(a_lost_replacement_by_weeks_is_not_forgotten),
        cmocka_unit_test(a_replacement_that_cannot_run_any_more_shortens_nothing),
        cmocka_unit_test(an_extension_that_failed_is_made_up_for_by_a_renewal),
        cmocka_unit_test(a_renewal_waits_for_an_extension),
        cmocka_unit_test(each_command_asks_for_its_own_ttl),
        cmocka_unit_test(an_extension_takes_the_place_of_a_renewal),
        cmocka_unit_test(an_extension_is_told_by_its_time),
        cmocka_unit_test(the_answer_to_an_extension_that_was_given_up_counts),
        cmocka_unit_test(an_extension_given_up_is_not_sent_again),
        cmocka_unit_test(an_extension_ends_with_the_lease),
        cmocka_unit_test(an_extension_finds_the_token_gone_with_the_servers_data),
        cmocka_unit_test(without_renewal_an_extension_plans_none),
        cmocka_unit_test(extensions_end_with_a_release),
        cmocka_unit_test(no_answer_to_an_extension_counts_for_more_than_was_asked_for),
        cmocka_unit_test(an_addition_where_nothing_is_believed_counts_by_itself),
        cmocka_unit_test(many_additions_keep_the_deadline),
        cmocka_unit_test(an_addition_to_what_is_believed_for_ever_ends_nothing),
        cmocka_unit_test(a_quorum_extends),
        cmocka_unit_test(the_rest_of_an_extension_is_not_told),
        cmocka_unit_test(an_extension_fails_without_a_quorum),
        cmocka_unit_test(an_extension_without_enough_answers_is_told_by_its_time),
        cmocka_unit_test(a_shorter_extension_shortens_where_it_is_sent),
        cmocka_unit_test(a_gone_token_fails_the_extension_and_then_the_lease),
        cmocka_unit_test(an_extension_does_not_wait_for_nodes_that_are_away),
        cmocka_unit_test(a_node_that_goes_away_before_it_answered_has_not_voted),
        cmocka_unit_test(a_renewal_of_a_node_that_is_away_is_no_vote),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
