/*
 * An acquire that waits in a queue: it is asked for any number of times, granted by the server without being asked, and
 * leaves the queue when nobody wants it any more.
 */
#include "test_lease.h"

static void fenced_waiter(struct bench *b) {
    b->entry.fenced = true;
    waits(b);
}

/* --- Waiting ------------------------------------------------------------------------------------------------------ */

CASE(a_waiter_waits_for_as_long_as_it_takes) {
    struct bench b = bench_new();
    waits(&b);
    sends_nothing(&b, 0);
    next_is(&b, LEASE_NEVER);
    pass(&b, 1000 * TTL);
    tells_nothing(&b);
    is_in(&b, LEASE_ACQUIRING);
}

/* How long the server is silent is its connection's concern: it may have put the waiter into the queue. */
CASE(a_join_is_waited_for_beyond_its_ttl) {
    struct bench b = bench_new();
    begin_queued(&b);
    sends(&b, 0, LEASE_ACQUIRE);
    next_is(&b, LEASE_NEVER);
    pass(&b, 2 * TTL);
    tells_nothing(&b);
    queued(&b);
    tells_nothing(&b);
    is_in(&b, LEASE_ACQUIRING);
}

CASE(a_look_asks_once) {
    struct bench b = bench_new();
    waits(&b);
    look(&b);
    wakes(&b, 1);
    look(&b); /* is wanted already */
    wakes(&b, 0);
    sends(&b, 0, LEASE_ACQUIRE);
    queued(&b);
    tells_nothing(&b);
    sends_nothing(&b, 0);
}

/* What has changed since that was sent is not known by its answer. */
CASE(a_look_follows_an_unanswered_one) {
    struct bench b = bench_new();
    waits(&b);
    look(&b);
    sends(&b, 0, LEASE_ACQUIRE);
    look(&b);
    wakes(&b, 0);
    sends_nothing(&b, 0);
    queued(&b);
    wakes(&b, 1);
    sends(&b, 0, LEASE_ACQUIRE);
}

CASE(only_a_waiter_looks) {
    struct bench b = bench_new();
    begin(&b, 1);
    sends(&b, 0, LEASE_ACQUIRE);
    look(&b); /* this one polls */
    wakes(&b, 0);
    yes(&b, 0);
    sends_nothing(&b, 0);
    waits(&b);
    granted(&b, b.now);
    look(&b); /* this one has it */
    wakes(&b, 0);
    sends_nothing(&b, 0);
}

CASE(a_look_that_did_not_run_is_sent_again) {
    struct bench b = bench_new();
    waits(&b);
    look(&b);
    sends(&b, 0, LEASE_ACQUIRE);
    again(&b, 0);
    tells_nothing(&b);
    sends(&b, 0, LEASE_ACQUIRE);
    queued(&b);
    is_in(&b, LEASE_ACQUIRING);
}

/* --- The grant ---------------------------------------------------------------------------------------------------- */

CASE(a_grant_counts_from_when_it_was_given) {
    struct bench b = bench_new();
    waits(&b);
    pass(&b, 100 * SECOND);
    granted(&b, b.now - 2 * SECOND);
    tells(&b, LEASE_TELL_GRANTED, 0);
    deadline_is(&b, b.now - 2 * SECOND + KEPT);
    next_is(&b, b.now - 2 * SECOND + INTERVAL);
    sends_nothing(&b, 0);
    assert_int_equal(b.lease->fence, 0);
}

CASE(a_grant_that_is_heard_late_is_renewed_at_once) {
    struct bench b = bench_new();
    waits(&b);
    pass(&b, 100 * SECOND);
    granted(&b, b.now - INTERVAL - SECOND);
    tells(&b, LEASE_TELL_GRANTED, 0);
    pass(&b, 0);
    sends(&b, 0, LEASE_RENEW);
}

/* The process was stopped beyond the ttl, say. */
CASE(a_grant_that_is_heard_too_late_is_given_back) {
    struct bench b = bench_new();
    waits(&b);
    pass(&b, 100 * SECOND);
    granted(&b, b.now - KEPT + LEAD);
    tells(&b, LEASE_TELL_FAILED, EVLOCK_EUNREACHABLE);
    is_in(&b, LEASE_UNDOING);
    sends(&b, 0, LEASE_RELEASE);
    no(&b, 0);
    is_over(&b);
}

CASE(a_grant_brings_its_fence) {
    struct bench b = bench_new();
    fenced_waiter(&b);
    granted_more(&b, b.now, INT64_C(1700000000000000), 0);
    tells(&b, LEASE_TELL_GRANTED, 0);
    assert_int_equal(b.lease->fence, INT64_C(1700000000000000));
    sends_nothing(&b, 0);
}

CASE(a_grant_saves_a_look_that_was_not_sent) {
    struct bench b = bench_new();
    waits(&b);
    look(&b);
    granted(&b, b.now);
    tells(&b, LEASE_TELL_GRANTED, 0);
    sends_nothing(&b, 0);
}

CASE(only_who_waits_is_granted_anything) {
    struct bench b = bench_new();
    waits(&b);
    granted(&b, b.now - SECOND);
    granted(&b, b.now);
    tells_nothing(&b);
    deadline_is(&b, b.now - SECOND + KEPT);

    waits(&b);
    abandon(&b);
    granted(&b, b.now);
    tells_nothing(&b);
    is_in(&b, LEASE_UNDOING);
}

/* --- A grant and a look cross ------------------------------------------------------------------------------------- */

/* The message was lost, or is under way. The server has set the ttl anew for the look. */
CASE(a_look_finds_the_grant) {
    struct bench b = bench_new();
    fenced_waiter(&b);
    pass(&b, 100 * SECOND);
    look(&b);
    sends(&b, 0, LEASE_ACQUIRE);
    pass(&b, SECOND);
    draws(&b, 0, 8);
    tells(&b, LEASE_TELL_GRANTED, 0);
    deadline_is(&b, b.now - SECOND + KEPT);
    assert_int_equal(b.lease->fence, 8);
    granted(&b, b.now - 90 * SECOND); /* and here it comes */
    tells_nothing(&b);
    deadline_is(&b, b.now - SECOND + KEPT);
}

CASE(a_look_that_finds_the_grant_saves_the_next) {
    struct bench b = bench_new();
    waits(&b);
    look(&b);
    sends(&b, 0, LEASE_ACQUIRE);
    look(&b);
    yes(&b, 0);
    tells(&b, LEASE_TELL_GRANTED, 0);
    sends_nothing(&b, 0);
}

CASE(a_look_of_before_the_grant_adds_nothing) {
    struct bench b = bench_new();
    waits(&b);
    pass(&b, 100 * SECOND);
    look(&b);
    sends(&b, 0, LEASE_ACQUIRE);
    granted(&b, b.now - SECOND);
    pass(&b, SECOND);
    queued(&b);
    tells_nothing(&b);
    deadline_is(&b, b.now - 2 * SECOND + KEPT);
    next_is(&b, b.now - 2 * SECOND + INTERVAL);
}

CASE(a_look_of_after_the_grant_adds_nothing) {
    struct bench b = bench_new();
    fenced_waiter(&b);
    pass(&b, 100 * SECOND);
    look(&b);
    sends(&b, 0, LEASE_ACQUIRE);
    granted_more(&b, b.now - SECOND, 7, 0);
    pass(&b, SECOND);
    draws(&b, 0, 8);
    tells_nothing(&b);
    deadline_is(&b, b.now - 2 * SECOND + KEPT);
    assert_int_equal(b.lease->fence, 7);
}

CASE(a_renewal_waits_for_the_look) {
    struct bench b = bench_new();
    waits(&b);
    look(&b);
    sends(&b, 0, LEASE_ACQUIRE);
    granted(&b, b.now);
    pass(&b, INTERVAL);
    sends_nothing(&b, 0);
    queued(&b);
    pass(&b, INTERVAL);
    sends(&b, 0, LEASE_RENEW);
    yes_ttl(&b, 0, TTL);
    deadline_is(&b, b.now + KEPT);
}

/* --- Failures ----------------------------------------------------------------------------------------------------- */

CASE(an_answer_that_is_none_ends_the_wait) {
    static const struct {
        void (*answer)(struct bench *b, unsigned node);
        int status;
    } ends[] = {{refused, EVLOCK_EREFUSED}, {forbidden, EVLOCK_EPERM}, {unknown, EVLOCK_EUNREACHABLE}};

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct bench b = bench_new();

        waits(&b);
        look(&b);
        sends(&b, 0, LEASE_ACQUIRE);
        ends[i].answer(&b, 0);
        tells(&b, LEASE_TELL_FAILED, ends[i].status);
        sends(&b, 0, LEASE_RELEASE); /* its place in the queue is given up */
    }
}

CASE(a_join_that_cannot_be_sent_leaves_nothing) {
    struct bench b = bench_new();
    begin_queued(&b);
    away(&b, 0);
    tells(&b, LEASE_TELL_FAILED, EVLOCK_EUNREACHABLE);
    is_over(&b);
}

CASE(a_waiter_keeps_its_place_while_the_node_is_away) {
    struct bench b = bench_new();
    waits(&b);
    away(&b, 0);
    tells_nothing(&b);
    look(&b);
    away(&b, 0);
    tells_nothing(&b);
    sends_nothing(&b, 0);
    is_in(&b, LEASE_ACQUIRING);
    for (enum back how = UNSETTLED; how <= REPLACED; how++) {
        back(&b, 0, how);
        wakes(&b, 0);
        look(&b);
        sends(&b, 0, LEASE_ACQUIRE);
        queued(&b);
        is_in(&b, LEASE_ACQUIRING);
    }
}

/* --- The way out -------------------------------------------------------------------------------------------------- */

/* The queue's server says no to a release that found the waiter in the queue, or nowhere; yes if it had the lock. */
CASE(who_gives_up_leaves_the_queue) {
    for (int had_it = 0; had_it < 2; had_it++) {
        struct bench b = bench_new();

        waits(&b);
        abandon(&b);
        wakes(&b, 1);
        sends(&b, 0, LEASE_RELEASE);
        answer(&b, 0, had_it ? LEASE_YES : LEASE_NO, 0, 0);
        tells_nothing(&b);
        is_over(&b);
    }
}

CASE(it_leaves_behind_an_unanswered_look) {
    struct bench b = bench_new();
    waits(&b);
    look(&b);
    sends(&b, 0, LEASE_ACQUIRE);
    abandon(&b);
    sends(&b, 0, LEASE_RELEASE);
    queued(&b);
    is_in(&b, LEASE_UNDOING);
    is_not_over(&b);
    no(&b, 0);
    is_over(&b);
}

/* It may be granted the lock at any time, so there is no time after which that is needless. */
CASE(it_does_not_leave_by_time) {
    struct bench b = bench_new();
    waits(&b);
    abandon(&b);
    away(&b, 0);
    next_is(&b, LEASE_NEVER);
    pass(&b, 1000 * TTL);
    back(&b, 0, SETTLED);
    next_is(&b, LEASE_NEVER);
    sends(&b, 0, LEASE_RELEASE);
    next_is(&b, LEASE_NEVER);
    unknown(&b, 0);
    next_is(&b, LEASE_NEVER);
    pass(&b, 1000 * TTL);
    sends(&b, 0, LEASE_RELEASE);
    no(&b, 0);
    is_over(&b);
}

CASE(it_leaves_however_often_it_is_refused) {
    struct bench b = bench_new();
    int asked = 0;

    waits(&b);
    abandon(&b);
    for (int64_t end = b.now + 10 * TTL; b.now < end; asked++) {
        sends(&b, 0, LEASE_RELEASE);
        refused(&b, 0);
        tells_nothing(&b);
        until(&b, evl_lease_next(b.lease));
    }
    assert_true(asked <= 300); /* at a calm pace */
    away(&b, 0);
    pass(&b, 1000 * TTL);
    back(&b, 0, SETTLED);
    sends(&b, 0, LEASE_RELEASE);
    refused(&b, 0);
    back(&b, 0, SETTLED);
    pass(&b, 1000 * TTL);
    sends(&b, 0, LEASE_RELEASE);
    no(&b, 0);
    is_over(&b);
}

/* A grant was heard when it had gone, and a look had joined the queue again. */
CASE(a_lease_that_is_gone_may_be_in_the_queue) {
    struct bench b = bench_new();
    waits(&b);
    granted(&b, b.now);
    pass(&b, INTERVAL);
    sends(&b, 0, LEASE_RENEW);
    no(&b, 0);
    tells_lost(&b, EVLOCK_ENOTOWNED);
    abandon(&b);
    sends(&b, 0, LEASE_RELEASE);
    no(&b, 0);
    is_over(&b);
}

/* --- A look that was lost may run later, and join the queue again ------------------------------------------------- */

static void until_it_cannot_run(struct bench *b) {
    int asked = 0;

    is_in(b, LEASE_UNDOING);
    int64_t limit = b->lease->until;
    assert_true(limit != LEASE_NEVER && limit <= b->now + life(TTL));
    until(b, evl_lease_next(b->lease));
    for (; takes(b, 0, LEASE_NOTHING) == LEASE_RELEASE; asked++) {
        no(b, 0);
        tells_nothing(b);
        until(b, evl_lease_next(b->lease));
        if (b->now == limit)
            break;
    }
    assert_int_equal(b->now, limit);
    assert_true(asked > 10 && asked < 100);
    next_is(b, LEASE_NEVER);
    sends(b, 0, LEASE_RELEASE); /* it may have run since the last */
    no(b, 0);
    is_over(b);
}

/* Before its turn comes it has no ttl. */
CASE(a_place_that_is_left_may_be_granted_at_any_time) {
    for (int has_got_it = 0; has_got_it < 2; has_got_it++) {
        struct bench b = bench_new();
        waits(&b);
        if (has_got_it)
            granted(&b, b.now);
        abandon(&b);
        sends(&b, 0, LEASE_RELEASE);
        forbidden(&b, 0);
        is_over(&b);
        assert_int_equal(evl_lease_left_until(b.lease), has_got_it ? b.now + life(TTL) : LEASE_NEVER);
    }
}

CASE(a_lost_look_is_undone_until_it_cannot_run) {
    struct bench b = bench_new();
    waits(&b);
    look(&b);
    sends(&b, 0, LEASE_ACQUIRE);
    unknown(&b, 0);
    next_is(&b, LEASE_NEVER);
    back(&b, 0, UNSETTLED);
    sends(&b, 0, LEASE_RELEASE);
    next_is(&b, LEASE_NEVER);
    no(&b, 0);
    until_it_cannot_run(&b);
}

/* The process was stopped, or the node away, and the look has run since the last undo that was answered. */
CASE(a_lost_look_is_undone_when_it_cannot_run_any_more) {
    struct bench b = bench_new();
    waits(&b);
    look(&b);
    sends(&b, 0, LEASE_ACQUIRE);
    unknown(&b, 0);
    back(&b, 0, UNSETTLED);
    sends(&b, 0, LEASE_RELEASE);
    no(&b, 0);
    until(&b, evl_lease_next(b.lease));
    sends(&b, 0, LEASE_RELEASE);
    pass(&b, 2 * TTL);
    is_in(&b, LEASE_UNDOING);
    no(&b, 0); /* it may have run before */
    is_in(&b, LEASE_UNDOING);
    pass(&b, 0);
    sends(&b, 0, LEASE_RELEASE);
    next_is(&b, LEASE_NEVER);
    unknown(&b, 0);
    pass(&b, 1000 * TTL);
    back(&b, 0, UNSETTLED);
    next_is(&b, LEASE_NEVER);
    sends(&b, 0, LEASE_RELEASE);
    no(&b, 0);
    is_over(&b);
}

CASE(a_lost_look_that_was_settled_is_undone_once) {
    for (int had_it = 0; had_it < 2; had_it++) {
        struct bench b = bench_new();

        waits(&b);
        look(&b);
        sends(&b, 0, LEASE_ACQUIRE);
        unknown(&b, 0);
        back(&b, 0, SETTLED);
        sends(&b, 0, LEASE_RELEASE);
        answer(&b, 0, had_it ? LEASE_YES : LEASE_NO, 0, 0);
        is_over(&b);
    }
}

/* It is not done with by the release of what it was granted: that look may yet come. */
CASE(a_lost_look_outlasts_the_release) {
    struct bench b = bench_new();
    waits(&b);
    look(&b);
    sends(&b, 0, LEASE_ACQUIRE);
    granted(&b, b.now);
    unknown(&b, 0);
    tells_nothing(&b);
    is_in(&b, LEASE_HELD);
    back(&b, 0, UNSETTLED);
    release(&b);
    sends(&b, 0, LEASE_RELEASE);
    yes(&b, 0);
    tells(&b, LEASE_TELL_RELEASED, EVLOCK_OK);
    sends(&b, 0, LEASE_RELEASE);
    no(&b, 0);
    until_it_cannot_run(&b);
}

/* What may still run here is a release that was lost, of a token that is removed for all that is known. */
CASE(the_last_release_is_repeated_when_it_is_refused) {
    struct bench b = bench_new();
    b.entry.own = true;
    waits(&b);
    granted(&b, b.now);
    release(&b);
    sends(&b, 0, LEASE_RELEASE);
    unknown(&b, 0);
    back(&b, 0, UNSETTLED);
    sends(&b, 0, LEASE_RELEASE);
    yes(&b, 0);
    tells(&b, LEASE_TELL_RELEASED, EVLOCK_OK);
    is_in(&b, LEASE_UNDOING);
    until(&b, evl_lease_next(b.lease));
    sends(&b, 0, LEASE_RELEASE);
    refused(&b, 0);
    until(&b, evl_lease_next(b.lease));
    sends(&b, 0, LEASE_RELEASE);
    no(&b, 0);
    is_over(&b);
}

CASE(an_unanswered_look_is_waited_for_before_the_lease_is_handed_over) {
    struct bench b = bench_new();
    waits(&b);
    look(&b);
    sends(&b, 0, LEASE_ACQUIRE);
    granted(&b, b.now);
    assert_false(evl_lease_exportable(b.lease, b.now));
    unknown(&b, 0);
    assert_false(evl_lease_exportable(b.lease, b.now));
    back(&b, 0, SETTLED);
    assert_true(evl_lease_exportable(b.lease, b.now));
}

CASE(a_lost_look_outlasts_the_undo_of_the_grant) {
    struct bench b = bench_new();
    waits(&b);
    look(&b);
    sends(&b, 0, LEASE_ACQUIRE);
    unknown(&b, 0);
    back(&b, 0, UNSETTLED);
    sends(&b, 0, LEASE_RELEASE);
    yes(&b, 0);
    until_it_cannot_run(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_waiter_waits_for_as_long_as_it_takes),
        cmocka_unit_test(a_join_is_waited_for_beyond_its_ttl),
        cmocka_unit_test(a_look_asks_once),
        cmocka_unit_test(a_look_follows_an_unanswered_one),
        cmocka_unit_test(only_a_waiter_looks),
        cmocka_unit_test(a_look_that_did_not_run_is_sent_again),
        cmocka_unit_test(a_grant_counts_from_when_it_was_given),
        cmocka_unit_test(a_grant_that_is_heard_late_is_renewed_at_once),
        cmocka_unit_test(a_grant_that_is_heard_too_late_is_given_back),
        cmocka_unit_test(a_grant_brings_its_fence),
        cmocka_unit_test(a_grant_saves_a_look_that_was_not_sent),
        cmocka_unit_test(only_who_waits_is_granted_anything),
        cmocka_unit_test(a_look_finds_the_grant),
        cmocka_unit_test(a_look_that_finds_the_grant_saves_the_next),
        cmocka_unit_test(a_look_of_before_the_grant_adds_nothing),
        cmocka_unit_test(a_look_of_after_the_grant_adds_nothing),
        cmocka_unit_test(a_renewal_waits_for_the_look),
        cmocka_unit_test(an_answer_that_is_none_ends_the_wait),
        cmocka_unit_test(a_join_that_cannot_be_sent_leaves_nothing),
        cmocka_unit_test(a_waiter_keeps_its_place_while_the_node_is_away),
        cmocka_unit_test(who_gives_up_leaves_the_queue),
        cmocka_unit_test(it_leaves_behind_an_unanswered_look),
        cmocka_unit_test(it_does_not_leave_by_time),
        cmocka_unit_test(it_leaves_however_often_it_is_refused),
        cmocka_unit_test(a_lease_that_is_gone_may_be_in_the_queue),
        cmocka_unit_test(a_place_that_is_left_may_be_granted_at_any_time),
        cmocka_unit_test(a_lost_look_is_undone_until_it_cannot_run),
        cmocka_unit_test(a_lost_look_is_undone_when_it_cannot_run_any_more),
        cmocka_unit_test(a_lost_look_that_was_settled_is_undone_once),
        cmocka_unit_test(a_lost_look_outlasts_the_release),
        cmocka_unit_test(the_last_release_is_repeated_when_it_is_refused),
        cmocka_unit_test(an_unanswered_look_is_waited_for_before_the_lease_is_handed_over),
        cmocka_unit_test(a_lost_look_outlasts_the_undo_of_the_grant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
