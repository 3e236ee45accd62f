/*
 * How a lease that is held comes to nodes that do not have it: with a renewal, and without one.
 */
#include "minmax.h"
#include "test_lease.h"

/* --- Several nodes: re-arming ------------------------------------------------------------------------------------- */

CASE(a_node_without_the_token_is_asked_to_take_it) {
    struct bench b = bench_new();
    held_by_two_of_three(&b);
    int64_t deadline = b.now + KEPT;
    deadline_is(&b, deadline);
    pass(&b, INTERVAL);
    wakes(&b, 7);
    int64_t sent = b.now;
    sends(&b, 0, LEASE_REARM);
    sends(&b, 1, LEASE_RENEW);
    sends(&b, 2, LEASE_RENEW);
    pass(&b, SECOND);
    yes_ttl(&b, 0, TTL);
    deadline_is(&b, deadline); /* one node alone moves nothing */
    refused(&b, 1);
    no(&b, 2);
    deadline_is(&b, deadline); /* of 0 and 1 the lesser */
    tells_nothing(&b);
    pass(&b, SECOND);
    sends(&b, 0, LEASE_RENEW); /* it has it now */
    sends(&b, 1, LEASE_RENEW);
    sends(&b, 2, LEASE_REARM);
    no(&b, 1);
    tells_lost(&b, EVLOCK_ENOTOWNED); /* one alone does not keep it, */
    assert_int_equal(b.lease->slots[0].deadline, sent + KEPT);
    yes_ttl(&b, 2, TTL);
    tells_nothing(&b); /* and what comes after the loss does not either, */
    abandon(&b);
    wakes(&b, 5); /* but is undone */
}

CASE(a_node_that_took_it_counts_for_the_renewal) {
    struct bench b = bench_new();
    held_by_two_of_three(&b);
    pass(&b, INTERVAL);
    sends(&b, 0, LEASE_REARM);
    sends(&b, 1, LEASE_RENEW);
    sends(&b, 2, LEASE_RENEW);
    refused(&b, 1);
    refused(&b, 2);
    yes_ttl(&b, 0, TTL);
    next_is(&b, b.now + SECOND);
    pass(&b, SECOND);
    sends(&b, 1, LEASE_RENEW);
    yes_ttl(&b, 1, TTL);
    deadline_is(&b, b.now + KEPT - SECOND); /* of 0 and 1, and 2 an interval before */
    sends(&b, 0, LEASE_RENEW);
    yes_ttl(&b, 0, TTL);
    deadline_is(&b, b.now + KEPT);
    next_is(&b, b.now + INTERVAL);
}

CASE(a_node_that_does_not_take_it_is_asked_with_the_next_renewal) {
    static const enum lease_verdict verdicts[] = {LEASE_NO, LEASE_AGAIN, LEASE_REFUSED, LEASE_FORBIDDEN};
    for (size_t v = 0; v < 4; v++) {
        struct bench b = bench_new();
        held_by_two_of_three(&b);
        pass(&b, INTERVAL);
        sends(&b, 0, LEASE_REARM);
        int64_t due = evl_lease_next(b.lease);
        answer(&b, 0, verdicts[v], EVLOCK_EREFUSED, 0);
        tells_nothing(&b);
        wakes(&b, 0);
        next_is(&b, due);
        pass(&b, INTERVAL);
        sends(&b, 0, LEASE_REARM);
        answer(&b, 0, verdicts[v], EVLOCK_EREFUSED, 0);
        abandon(&b);
        wakes(&b, 6); /* it did not run there */
    }
}

CASE(a_lost_rearm_is_undone_like_an_acquire) {
    for (enum back how = UNSETTLED; how <= SETTLED; how++) {
        struct bench b = bench_new();
        held_by_two_of_three(&b);
        pass(&b, INTERVAL);
        sends(&b, 0, LEASE_REARM);
        unknown(&b, 0);
        tells_nothing(&b);
        back(&b, 0, how);
        pass(&b, INTERVAL);
        sends(&b, 0, LEASE_RENEW); /* it may be there */
        no(&b, 0);
        abandon(&b);
        wakes(&b, how == SETTLED ? 6 : 7);
        for (unsigned i = 1; i < 3; i++) {
            sends(&b, i, LEASE_RELEASE);
            yes(&b, i);
        }
        if (how == UNSETTLED) {
            sends(&b, 0, LEASE_RELEASE);
            no(&b, 0);
            next_is(&b, b.now + SECOND); /* it may still come */
            until(&b, evl_lease_next(b.lease));
            sends(&b, 0, LEASE_RELEASE);
            yes(&b, 0);
        }
        is_over(&b);
    }
}

CASE(a_rearm_that_is_unanswered_is_undone_behind_itself) {
    for (int releases = 0; releases < 2; releases++) {
        struct bench b = bench_new();
        held_by_two_of_three(&b);
        pass(&b, INTERVAL);
        sends(&b, 0, LEASE_REARM);
        if (releases)
            release(&b);
        else
            abandon(&b);
        wakes(&b, 7);
        for (unsigned i = 0; i < 3; i++)
            sends(&b, i, LEASE_RELEASE);
        for (unsigned i = 1; i < 3; i++)
            yes(&b, i);
        is_in(&b, LEASE_UNDOING);
        next_is(&b, LEASE_NEVER); /* it may run at any time */
        yes_ttl(&b, 0, TTL);
        next_is(&b, b.now + life(TTL));
        unknown(&b, 0);
        sends(&b, 0, LEASE_RELEASE);
        yes(&b, 0);
        is_over(&b);
    }
}

CASE(a_rearm_that_is_lost_during_an_undo_is_a_stray) {
    struct bench b = bench_new();
    held_by_two_of_three(&b);
    pass(&b, INTERVAL);
    sends(&b, 0, LEASE_REARM);
    abandon(&b);
    sends(&b, 0, LEASE_RELEASE);
    unknown(&b, 0); /* the re-arming */
    unknown(&b, 0); /* the release */
    back(&b, 0, UNSETTLED);
    sends(&b, 0, LEASE_RELEASE);
    no(&b, 0);
    next_is(&b, b.now + SECOND); /* once more */
}

CASE(a_rearm_gives_no_more_than_a_lost_replacement_leaves) {
    struct bench b = bench_new();
    held_by(&b, 3);
    extend(&b, LEASE_REPLACE, 3 * SECOND);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_REPLACE);
    int64_t kept = evl_lease_deadline(b.lease) - b.now;
    yes_ttl(&b, 1, 3 * SECOND);
    yes_ttl(&b, 2, 3 * SECOND);
    unknown(&b, 0);
    back(&b, 0, UNSETTLED);
    until(&b, evl_lease_next(b.lease));
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_RENEW);
    yes_ttl(&b, 1, TTL);
    yes_ttl(&b, 2, TTL);
    no(&b, 0);
    until(&b, evl_lease_next(b.lease));
    sends(&b, 0, LEASE_REARM);
    yes_ttl(&b, 0, TTL); /* the replacement may still run */
    assert_int_equal(b.lease->slots[0].deadline, b.now + kept);
}

/* A node that starts again without its data is asked for nothing for as long as the greatest ttl, and no longer. */
CASE(nothing_is_counted_on_beyond_the_greatest_ttl) {
    for (unsigned nodes = 1; nodes <= 3; nodes += 2) {
        struct bench b = bench_new();
        b.terms.max_ttl = 2 * TTL;
        held_by(&b, nodes);
        deadline_is(&b, b.now + KEPT);
        extend(&b, LEASE_ADD, 2 * TTL);
        for (unsigned i = 0; i < nodes; i++)
            sends(&b, i, LEASE_ADD);
        for (unsigned i = 0; i < nodes; i++)
            yes_ttl(&b, i, 3 * TTL);
        deadline_is(&b, b.now + 2 * TTL - evl_lease_drift(2 * TTL));
        abandon(&b);
        next_is(&b, b.now + life(3 * TTL)); /* but it may be there for longer */
    }
    struct bench b = bench_new();
    b.terms.max_ttl = 2 * TTL;
    begin_adopting(&b, 3);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_ADOPT);
    for (unsigned i = 0; i < 3; i++)
        yes_ttl(&b, i, i < 2 ? LEASE_NEVER : TTL);
    deadline_is(&b, b.now + 2 * TTL - evl_lease_drift(2 * TTL));
}

/* --- Several nodes: mending --------------------------------------------------------------------------------------- */

#define MENDED_FROM (50 * MS)   /* after the grant: a short hold pays nothing */
#define PAUSE (15 * SECOND / 4) /* an eighth of the ttl */

/* Two of three have granted, the other one, the first, has not; there is no renewal. */
static void held_barely(struct bench *b) {
    b->terms.interval = 0;
    begin(b, 3);
    for (unsigned i = 0; i < 3; i++)
        sends(b, i, LEASE_ACQUIRE);
    no(b, 0);
    yes(b, 1);
    yes(b, 2);
    tells(b, LEASE_TELL_GRANTED, 0);
    assert_int_equal(evl_lease_keepers(b->lease), 2);
}

CASE(what_may_live_for_weeks_is_not_waited_out) {
    struct bench b = bench_new();
    b.terms.ttl = 60 * 24 * 3600 * SECOND;
    held_by_one(&b);
    extend(&b, LEASE_ADD, SECOND);
    abandon(&b);
    next_is(&b, LEASE_NEVER);
}

CASE(who_does_not_hold_it_has_no_keepers) {
    struct bench b = bench_new();
    held_barely(&b);
    until(&b, evl_lease_deadline(b.lease));
    assert_int_equal(evl_lease_keepers(b.lease), 0);
}

/* What the node is asked for, and that it says yes. */
static void mends(struct bench *b, unsigned node) {
    sends(b, node, LEASE_MEND);
    yes_ttl(b, node, evl_lease_ttl(b->lease, LEASE_MEND, b->now));
    tells_nothing(b);
}

CASE(a_node_that_has_it_not_is_mended_without_renewal) {
    struct bench b = bench_new();
    held_barely(&b);
    int64_t granted = b.now, deadline = evl_lease_deadline(b.lease);
    wakes(&b, 0);
    next_is(&b, granted + MENDED_FROM);
    until(&b, granted + MENDED_FROM);
    wakes(&b, 1);
    sends(&b, 0, LEASE_MEND);
    int64_t ttl = evl_lease_ttl(b.lease, LEASE_MEND, b.now);
    assert_int_equal(b.now + ttl - evl_lease_drift(ttl), deadline); /* what is left, and the drift of that */
    pass(&b, SECOND);
    yes_ttl(&b, 0, ttl + MS);
    tells_nothing(&b);
    deadline_is(&b, deadline);
    assert_int_equal(b.lease->slots[0].deadline, deadline);
    assert_int_equal(evl_lease_keepers(b.lease), 3);
    next_is(&b, deadline - LEAD);
    release(&b);
    wakes(&b, 7);
}

/* A yes that comes after the grant moves the deadline out, beyond what the first node keeps. */
CASE(a_node_that_was_asked_earlier_is_mended) {
    struct bench b = bench_new();
    b.terms.interval = 0;
    begin(&b, 3);
    for (unsigned i = 0; i < 3; i++) {
        sends(&b, i, LEASE_ACQUIRE);
        pass(&b, 5 * MS);
    }
    yes(&b, 0);
    yes(&b, 1);
    tells(&b, LEASE_TELL_GRANTED, 0);
    int64_t granted = b.now;
    yes(&b, 2);
    assert_int_equal(evl_lease_keepers(b.lease), 2);
    next_is(&b, granted + MENDED_FROM);
    pass(&b, MENDED_FROM);
    wakes(&b, 1);
    mends(&b, 0);
    assert_int_equal(evl_lease_keepers(b.lease), 3);
}

/* However early the others said yes, and however much the server says that it has. */
CASE(mending_moves_no_deadline) {
    struct bench b = bench_new();
    b.terms.interval = 0;
    begin(&b, 3);
    sends(&b, 1, LEASE_ACQUIRE);
    pass(&b, SECOND);
    sends(&b, 2, LEASE_ACQUIRE);
    away(&b, 0);
    yes(&b, 1);
    yes(&b, 2);
    int64_t deadline = evl_lease_deadline(b.lease);
    back(&b, 0, SETTLED);
    wakes(&b, 0);
    pass(&b, MENDED_FROM);
    sends(&b, 0, LEASE_MEND);
    yes_ttl(&b, 0, 100 * TTL);
    deadline_is(&b, deadline);
}

CASE(a_short_ttl_is_mended_sooner) {
    struct bench b = bench_new();
    b.terms.ttl = 200 * MS;
    held_barely(&b);
    next_is(&b, b.now + 10 * MS);
    until(&b, b.now + 10 * MS);
    sends(&b, 0, LEASE_MEND);
    no(&b, 0);
    next_is(&b, b.now + 25 * MS);
    b.terms.ttl = 40 * MS;
    until(&b, b.now + 25 * MS);
    sends(&b, 0, LEASE_MEND);
    no(&b, 0);
    next_is(&b, b.now + 10 * MS); /* no pause is shorter, */
    b.terms.ttl = 3600 * SECOND;
    until(&b, b.now + 10 * MS);
    sends(&b, 0, LEASE_MEND);
    no(&b, 0);
    b.lease->slots[1].deadline = b.lease->slots[2].deadline = b.now + TTL;
    next_is(&b, b.now + 10 * SECOND); /* and none is longer */
}

CASE(a_node_that_does_not_take_it_is_asked_after_a_pause) {
    static const enum lease_verdict verdicts[] = {LEASE_NO, LEASE_AGAIN, LEASE_REFUSED, LEASE_FORBIDDEN};
    for (size_t v = 0; v < 4; v++) {
        struct bench b = bench_new();
        held_barely(&b);
        pass(&b, MENDED_FROM);
        for (int i = 0; i < 3; i++) {
            sends(&b, 0, LEASE_MEND);
            answer(&b, 0, verdicts[v], EVLOCK_EREFUSED, 0);
            tells_nothing(&b);
            wakes(&b, 0);
            next_is(&b, b.now + PAUSE);
            pass(&b, PAUSE);
            wakes(&b, 1);
        }
        abandon(&b);
        wakes(&b, 6); /* it did not run there */
    }
}

CASE(with_renewal_a_node_that_said_no_waits_for_the_next) {
    struct bench b = bench_new();
    held_barely(&b);
    b = bench_new();
    begin(&b, 3);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_ACQUIRE);
    yes(&b, 1);
    yes(&b, 2);
    no(&b, 0);
    int64_t granted = b.now;
    next_is(&b, granted + MENDED_FROM);
    until(&b, granted + MENDED_FROM);
    sends(&b, 0, LEASE_MEND);
    no(&b, 0);
    next_is(&b, granted + INTERVAL);
    until(&b, granted + INTERVAL);
    sends(&b, 0, LEASE_REARM);
}

CASE(a_node_that_comes_back_is_mended_at_once) {
    for (enum back how = UNSETTLED; how <= REPLACED; how++) {
        struct bench b = bench_new();
        b.terms.interval = 0;
        begin(&b, 3);
        away(&b, 0);
        for (unsigned i = 1; i < 3; i++) {
            sends(&b, i, LEASE_ACQUIRE);
            yes(&b, i);
        }
        pass(&b, MENDED_FROM);
        sends(&b, 0, LEASE_MEND);
        away(&b, 0);
        next_is(&b, evl_lease_deadline(b.lease) - LEAD);
        unknown(&b, 0);
        pass(&b, SECOND);
        back(&b, 0, how);
        if (how == UNSETTLED) { /* the lost one may run after a release */
            wakes(&b, 0);
            continue;
        }
        wakes(&b, 1);
        mends(&b, 0);
        assert_int_equal(evl_lease_keepers(b.lease), 3);
        back(&b, 0, SETTLED); /* it has it */
        wakes(&b, 0);
    }
}

CASE(a_node_is_mended_when_its_exclusion_ends) {
    struct bench b = bench_new();
    held_barely(&b);
    pass(&b, MENDED_FROM);
    for (int i = 0; i < 4; i++) {
        excluded(&b, 0);
        sends_nothing(&b, 0);
        next_is(&b, b.now + PAUSE);
        pass(&b, PAUSE);
        wakes(&b, 1);
    }
    mends(&b, 0);
    assert_int_equal(evl_lease_keepers(b.lease), 3);
}

/* It may have lost its data; where it is believed not to forget, it counts at once. */
CASE(a_node_that_was_replaced_is_asked_whether_it_has_it) {
    for (int has = 0; has < 2; has++) {
        struct bench b = bench_new();
        b.terms.interval = 0;
        held_by(&b, 3);
        pass(&b, SECOND);
        int64_t deadline = evl_lease_deadline(b.lease);
        for (unsigned i = 0; i < 2; i++) {
            back(&b, i, REPLACED);
            wakes(&b, 1U << i);
            sends(&b, i, LEASE_MEND);
            if (has)
                yes_ttl(&b, i, TTL);
            else
                no(&b, i); /* another has it */
        }
        if (has)
            deadline_is(&b, deadline);
        else
            tells_lost(&b, EVLOCK_EDATALOSS);
    }
}

/* One that runs on, on the connection that is still the same. */
CASE(a_node_that_missed_an_extension_is_mended) {
    static const enum lease_command commands[] = {LEASE_ADD, LEASE_REPLACE};

    for (size_t c = 0; c < 2; c++) {
        struct bench b = bench_new();
        b.terms.interval = 0;
        held_by(&b, 3);
        extend(&b, commands[c], 2 * TTL);
        for (unsigned i = 0; i < 3; i++)
            sends(&b, i, commands[c]);
        yes_ttl(&b, 0, 2 * TTL);
        yes_ttl(&b, 1, 2 * TTL);
        refused(&b, 2);
        int64_t deadline = evl_lease_deadline(b.lease);
        assert_int_equal(evl_lease_keepers(b.lease), 2);
        next_is(&b, b.now + PAUSE);
        pass(&b, PAUSE);
        sends(&b, 2, LEASE_MEND);
        refused(&b, 2);
        abandon(&b);
        wakes(&b, 7); /* it had it, and has it still */
        deadline_is(&b, 0);
        assert_true(deadline > b.now);
    }
}

CASE(nothing_is_mended_after_the_longest_hold) {
    struct bench b = bench_new();
    b.terms.max_hold = 12 * SECOND;
    held_by_two_of_three(&b);
    b.lease->slots[0].want = LEASE_NOTHING;
    pass(&b, 3 * SECOND);
    back(&b, 0, SETTLED);
    wakes(&b, 0);
    sends_nothing(&b, 0);
    b = bench_new();
    b.terms.max_hold = 12 * SECOND;
    held_by_two_of_three(&b);
    back(&b, 0, SETTLED);
    wakes(&b, 1);
    pass(&b, 3 * SECOND); /* it has waited for the node so long */
    sends_nothing(&b, 0);
}

CASE(a_renewal_takes_the_place_of_mending) {
    struct bench b = bench_new();
    held_by_two_of_three(&b);
    back(&b, 0, SETTLED);
    wakes(&b, 1); /* and it waits for its turn */
    pass(&b, INTERVAL);
    sends(&b, 0, LEASE_REARM);
}

CASE(a_node_that_is_being_mended_is_renewed_after_that) {
    for (int confirmed = 0; confirmed < 2; confirmed++) {
        struct bench b = bench_new();
        held_by_two_of_three(&b);
        back(&b, 0, SETTLED);
        sends(&b, 0, LEASE_MEND);
        int64_t deadline = evl_lease_deadline(b.lease);
        pass(&b, INTERVAL);
        wakes(&b, 6);
        for (unsigned i = 1; i < 3; i++)
            sends(&b, i, LEASE_RENEW);
        yes_ttl(&b, 1, TTL);
        if (confirmed)
            yes_ttl(&b, 2, TTL);
        int64_t due = evl_lease_next(b.lease);
        yes_ttl(&b, 0, TTL); /* which renews nothing */
        assert_int_equal(evl_lease_next(b.lease), due);
        if (confirmed) {
            wakes(&b, 0);
            continue;
        }
        deadline_is(&b, deadline);
        wakes(&b, 1);
        sends(&b, 0, LEASE_RENEW);
        yes_ttl(&b, 0, TTL);
        deadline_is(&b, b.now + KEPT);
    }
}

/* The renewal that it has missed comes with the next; the extension comes now or never. */
CASE(an_extension_that_waits_for_mending_is_sent_after_it) {
    struct bench b = bench_new();
    held_by_two_of_three(&b);
    back(&b, 0, SETTLED);
    sends(&b, 0, LEASE_MEND);
    pass(&b, INTERVAL);
    for (unsigned i = 1; i < 3; i++)
        sends(&b, i, LEASE_RENEW);
    extend(&b, LEASE_REPLACE, TTL);
    yes_ttl(&b, 0, TTL);
    wakes(&b, 1);
    sends(&b, 0, LEASE_REPLACE);
    yes_ttl(&b, 0, TTL);
    yes_ttl(&b, 1, TTL); /* the renewal */
    sends(&b, 1, LEASE_REPLACE);
    yes_ttl(&b, 1, TTL);
    tells(&b, LEASE_TELL_EXTENDED, EVLOCK_OK);
}

/* It is told to take it when it may have been granted already, to the millisecond. */
CASE(what_is_all_but_over_is_mended_for_a_millisecond) {
    struct bench b = bench_new();
    held_barely(&b);
    assert_int_equal(evl_lease_ttl(b.lease, LEASE_MEND, evl_lease_deadline(b.lease) + SECOND), MS);
}

CASE(what_is_believed_for_ever_is_not_mended) {
    struct bench b = bench_new();
    b.terms.interval = 0;
    begin_adopting(&b, 3);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_ADOPT);
    for (unsigned i = 1; i < 3; i++)
        yes_ttl(&b, i, LEASE_NEVER);
    no(&b, 0);
    deadline_is(&b, LEASE_NEVER);
    until(&b, evl_lease_next(b.lease));
    sends_nothing(&b, 0);
}

CASE(an_adopted_lease_is_mended_too) {
    struct bench b = bench_new();
    b.terms.interval = 0;
    begin_adopting(&b, 3);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_ADOPT);
    for (unsigned i = 1; i < 3; i++)
        yes_ttl(&b, i, 12 * SECOND);
    refused(&b, 0);
    int64_t deadline = evl_lease_deadline(b.lease);
    until(&b, evl_lease_next(b.lease));
    mends(&b, 0);
    deadline_is(&b, deadline);
    assert_int_equal(evl_lease_keepers(b.lease), 3);
}

CASE(a_lost_mending_is_undone_like_an_acquire) {
    for (enum back how = UNSETTLED; how <= SETTLED; how++) {
        struct bench b = bench_new();
        held_barely(&b);
        pass(&b, MENDED_FROM);
        sends(&b, 0, LEASE_MEND);
        abandon(&b);
        wakes(&b, 7);
        for (unsigned i = 0; i < 3; i++)
            sends(&b, i, LEASE_RELEASE);
        for (unsigned i = 1; i < 3; i++)
            yes(&b, i);
        unknown(&b, 0); /* the mending */
        unknown(&b, 0); /* the release */
        back(&b, 0, how);
        sends(&b, 0, LEASE_RELEASE);
        no(&b, 0);
        if (how == SETTLED)
            is_over(&b);
        else
            next_is(&b, b.now + SECOND); /* it may still come */
    }
}

/* The acquire was lost and had run; the mending is lost and has not: a release finds the first, and says nothing of the
 * second. */
CASE(a_lost_mending_outlives_the_release_of_what_was_there) {
    struct bench b = bench_new();
    b.terms.interval = 0;
    begin(&b, 3);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_ACQUIRE);
    yes(&b, 1);
    yes(&b, 2);
    unknown(&b, 0);
    back(&b, 0, SETTLED);
    pass(&b, MENDED_FROM);
    sends(&b, 0, LEASE_MEND);
    abandon(&b);
    for (unsigned i = 1; i < 3; i++) {
        sends(&b, i, LEASE_RELEASE);
        yes(&b, i);
    }
    unknown(&b, 0);
    back(&b, 0, UNSETTLED);
    sends(&b, 0, LEASE_RELEASE);
    yes(&b, 0);
    is_not_over(&b);
    next_is(&b, b.now + SECOND); /* once more */
    until(&b, evl_lease_next(b.lease));
    sends(&b, 0, LEASE_RELEASE);
}

/* Its answer comes before that of the release which was lost behind it. */
CASE(a_release_that_was_lost_behind_mending_was_done) {
    struct bench b = bench_new();
    held_barely(&b);
    pass(&b, MENDED_FROM);
    sends(&b, 0, LEASE_MEND);
    release(&b);
    for (unsigned i = 0; i < 3; i++)
        sends(&b, i, LEASE_RELEASE);
    yes_ttl(&b, 0, TTL - SECOND);
    unknown(&b, 0);
    yes(&b, 1);
    back(&b, 0, SETTLED);
    sends(&b, 0, LEASE_RELEASE);
    no(&b, 0);
    tells(&b, LEASE_TELL_RELEASED, EVLOCK_OK);
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_node_without_the_token_is_asked_to_take_it),
        cmocka_unit_test(a_node_that_took_it_counts_for_the_renewal),
        cmocka_unit_test(a_node_that_does_not_take_it_is_asked_with_the_next_renewal),
        cmocka_unit_test(a_lost_rearm_is_undone_like_an_acquire),
        cmocka_unit_test(a_rearm_that_is_unanswered_is_undone_behind_itself),
        cmocka_unit_test(a_rearm_that_is_lost_during_an_undo_is_a_stray),
        cmocka_unit_test(a_rearm_gives_no_more_than_a_lost_replacement_leaves),
        cmocka_unit_test(nothing_is_counted_on_beyond_the_greatest_ttl),
        cmocka_unit_test(what_may_live_for_weeks_is_not_waited_out),
        cmocka_unit_test(who_does_not_hold_it_has_no_keepers),
        cmocka_unit_test(a_node_that_has_it_not_is_mended_without_renewal),
        cmocka_unit_test(a_node_that_was_asked_earlier_is_mended),
        cmocka_unit_test(mending_moves_no_deadline),
        cmocka_unit_test(a_short_ttl_is_mended_sooner),
        cmocka_unit_test(a_node_that_does_not_take_it_is_asked_after_a_pause),
        cmocka_unit_test(with_renewal_a_node_that_said_no_waits_for_the_next),
        cmocka_unit_test(a_node_that_comes_back_is_mended_at_once),
        cmocka_unit_test(a_node_is_mended_when_its_exclusion_ends),
        cmocka_unit_test(a_node_that_was_replaced_is_asked_whether_it_has_it),
        cmocka_unit_test(a_node_that_missed_an_extension_is_mended),
        cmocka_unit_test(nothing_is_mended_after_the_longest_hold),
        cmocka_unit_test(a_renewal_takes_the_place_of_mending),
        cmocka_unit_test(a_node_that_is_being_mended_is_renewed_after_that),
        cmocka_unit_test(an_extension_that_waits_for_mending_is_sent_after_it),
        cmocka_unit_test(what_is_all_but_over_is_mended_for_a_millisecond),
        cmocka_unit_test(what_is_believed_for_ever_is_not_mended),
        cmocka_unit_test(an_adopted_lease_is_mended_too),
        cmocka_unit_test(a_lost_mending_is_undone_like_an_acquire),
        cmocka_unit_test(a_lost_mending_outlives_the_release_of_what_was_there),
        cmocka_unit_test(a_release_that_was_lost_behind_mending_was_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
