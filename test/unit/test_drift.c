/*
 * Drift: what two readings prove and what they leave open, to the microsecond, and how long a reading is compared with.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "drift.h"

#define MS INT64_C(1000)
#define S (1000 * MS)
#define EPOCH (1700000000 * S)

static bool told(struct drift *drift, int64_t sent, int64_t received, int64_t server, struct drift_found *found) {
    struct clock_reading reading = {server, sent, received};
    return evl_drift_note(drift, &reading, found);
}

/* Of two readings: the first sent for at 1 s, the second `span` later, each with an answer after `away`. */
static int64_t gained(int64_t span, int64_t away, int64_t passed) {
    struct drift drift = {0};
    struct drift_found found = {0};

    assert_false(told(&drift, S, S + away, EPOCH, &found));
    if (!told(&drift, S + span, S + span + away, EPOCH + passed, &found))
        assert_int_equal(found.gained, 0);
    return found.gained;
}

CASE(clocks_that_agree_are_not_told) {
    struct drift drift = {0};
    struct drift_found found;
    for (int64_t at = 0; at < 3600; at++)
        assert_false(told(&drift, S * at, S * at + MS, EPOCH + S * at, &found));
}

CASE(more_than_a_hundredth_is_told) {
    assert_int_equal(gained(2 * S, 0, 2 * S + 20 * MS), 0);
    assert_int_equal(gained(2 * S, 0, 2 * S + 20 * MS + 1), 20 * MS + 1);
    assert_int_equal(gained(2 * S, 0, 2 * S - 20 * MS), 0);
    assert_int_equal(gained(2 * S, 0, 2 * S - 20 * MS - 1), -20 * MS - 1);
}

CASE(what_the_way_may_have_taken_proves_nothing) {
    /* Sent for at 1 s and answered at 3.1 s: 2.1 s at most. Answered at 1.1 s and sent for at 3 s: 1.9 s at least. */
    assert_int_equal(gained(2 * S, 100 * MS, 2100 * MS + 21 * MS), 0);
    assert_int_equal(gained(2 * S, 100 * MS, 2100 * MS + 21 * MS + 1), 21 * MS + 1);
    assert_int_equal(gained(2 * S, 100 * MS, 1900 * MS - 19 * MS), 0);
    assert_int_equal(gained(2 * S, 100 * MS, 1900 * MS - 19 * MS - 1), -19 * MS - 1);
}

CASE(the_span_is_the_one_that_proves_it) {
    struct drift fast = {0}, slow = {0};
    struct drift_found found;
    assert_false(told(&fast, S, S + 100 * MS, EPOCH, &found));
    assert_true(told(&fast, 3 * S, 3 * S + 100 * MS, EPOCH + 3 * S, &found));
    assert_int_equal(found.span, 2100 * MS);
    assert_int_equal(found.gained, 900 * MS);
    assert_false(told(&slow, S, S + 100 * MS, EPOCH, &found));
    assert_true(told(&slow, 3 * S, 3 * S + 100 * MS, EPOCH + S, &found));
    assert_int_equal(found.span, 1900 * MS);
    assert_int_equal(found.gained, -900 * MS);
}

CASE(a_span_of_less_than_a_second_proves_nothing) {
    assert_int_equal(gained(S - 1, 0, 2 * S), 0);
    assert_int_equal(gained(S, 0, 2 * S), S);
    assert_int_equal(gained(S, 1, 2 * S), 0);
    assert_int_equal(gained(S + 1, 1, 2 * S + 2), S);
}

CASE(a_step_is_told_as_drift_is) {
    assert_int_equal(gained(S, 0, 3601 * S), 3600 * S);
    assert_int_equal(gained(S, 0, -3599 * S), -3600 * S);
}

CASE(it_is_told_once) {
    struct drift drift = {0};
    struct drift_found found;
    assert_false(told(&drift, 0, 0, EPOCH, &found));
    assert_true(told(&drift, 2 * S, 2 * S, EPOCH + 3 * S, &found));
    for (int64_t at = 3; at < 60; at++)
        assert_false(told(&drift, S * at, S * at, EPOCH + S * 2 * at, &found));
}

/* A clock that is right for hours, and then goes too fast by an eighth for three seconds. */
CASE(a_rate_that_lasts_for_seconds_is_told) {
    struct drift drift = {0};
    struct drift_found found;
    int64_t at = 0, times = 0;
    for (; at < 7200; at++)
        assert_false(told(&drift, S * at, S * at, EPOCH + S * at, &found));
    for (int64_t more = 0; more < 3; more++, at++)
        times += told(&drift, S * at, S * at, EPOCH + S * at + S * (more + 1) / 8, &found);
    assert_int_equal(times, 1);
}

/* A rate that the compared readings are too close to each other to prove, and those that lie ten seconds apart are
 * not. */
CASE(a_reading_is_compared_with_for_ten_seconds) {
    struct drift drift = {0};
    struct drift_found found;
    int64_t away = 100 * MS;
    for (int64_t at = 0; at < 10; at++)
        assert_false(told(&drift, S * at, S * at + away, EPOCH + S * at * 1021 / 1000, &found));
    assert_true(told(&drift, 10 * S, 10 * S + away, EPOCH + 10 * S * 1022 / 1000, &found));
    assert_int_equal(found.gained, 120 * MS);
    assert_int_equal(found.span, 10100 * MS);
}

CASE(no_time_overflows) {
    struct drift drift = {0};
    struct drift_found found;
    assert_false(told(&drift, 0, 0, INT64_MAX, &found));
    assert_false(told(&drift, 2 * S, 2 * S, 1, &found));
    assert_false(told(&drift, 4 * S, 4 * S, INT64_MAX, &found));
    assert_true(told(&drift, 4 * S, 4 * S, INT64_MAX / 4, &found));
    assert_int_equal(found.gained, INT64_MAX / 4 - 1 - 2 * S);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_that_agree_are_not_told),
        cmocka_unit_test(more_than_a_hundredth_is_told),
        cmocka_unit_test(what_the_way_may_have_taken_proves_nothing),
        cmocka_unit_test(the_span_is_the_one_that_proves_it),
        cmocka_unit_test(a_span_of_less_than_a_second_proves_nothing),
        cmocka_unit_test(a_step_is_told_as_drift_is),
        cmocka_unit_test(it_is_told_once),
        cmocka_unit_test(a_rate_that_lasts_for_seconds_is_told),
        cmocka_unit_test(a_reading_is_compared_with_for_ten_seconds),
        cmocka_unit_test(no_time_overflows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
