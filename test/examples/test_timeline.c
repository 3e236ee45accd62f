/*
 * The checks and counts that `workers` ends with, on timelines made by hand: they must find every overlap, or the
 * example proves nothing.
 */
#include "../../examples/timeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

static void add(struct timeline *timeline, int worker, enum report_kind kind, int64_t at, int64_t deadline) {
    struct report report = {.at = at, .deadline = deadline, .fence = (uint64_t)at, .worker = worker, .kind = kind};
    assert_int_equal(timeline_add(timeline, &report), 0);
}

/* A turn that waits for 1 us, and ends its hold by release. */
static void add_turn(struct timeline *timeline, int worker, int64_t got, int64_t end) {
    add(timeline, worker, WAITS, got - 1, 0);
    add(timeline, worker, HOLDS, got, INT64_MAX);
    add(timeline, worker, RELEASES, end, INT64_MAX);
}

/* What is found in holds given as {worker, got, end}; `*ret_text` is what was printed of them. */
static struct findings check(const int64_t (*holds)[3], size_t count, char **ret_text) {
    struct timeline timeline = {0};
    for (size_t i = 0; i < count; i++)
        add_turn(&timeline, (int)holds[i][0], holds[i][1], holds[i][2]);
    size_t length;
    FILE *out = open_memstream(ret_text, &length);
    assert_non_null(out);
    struct findings findings = timeline_check(&timeline, out);
    assert_int_equal(fclose(out), 0);
    timeline_clear(&timeline);
    return findings;
}

#define assert_overlaps(expected, ...)                                                                                 \
    do {                                                                                                               \
        const int64_t holds[][3] = {__VA_ARGS__};                                                                      \
        char *text;                                                                                                    \
        assert_int_equal(check(holds, sizeof holds / sizeof *holds, &text).overlaps, expected);                        \
        free(text);                                                                                                    \
    } while (0)

CASE(no_holds_do_not_overlap) {
    struct timeline timeline = {0};
    add(&timeline, 1, WAITS, 10, 0);
    add(&timeline, 2, WAITS, 10, 0);
    struct findings findings = timeline_check(&timeline, stdout);
    assert_int_equal(findings.overlaps, 0);
    assert_int_equal(findings.falls, 0);
    timeline_clear(&timeline);
    assert_int_equal(timeline_check(&timeline, stdout).overlaps, 0);
}

CASE(turns_do_not_overlap) {
    assert_overlaps(0, {1, 10, 20});
    assert_overlaps(0, {1, 10, 20}, {2, 21, 30}, {1, 31, 40});
}

CASE(a_hold_may_begin_when_the_last_one_ends) {
    assert_overlaps(0, {1, 10, 20}, {2, 20, 30});
}

CASE(one_microsecond_is_an_overlap) {
    assert_overlaps(1, {1, 10, 20}, {2, 19, 30});
}

CASE(the_order_of_reports_does_not_matter) {
    assert_overlaps(1, {2, 19, 30}, {3, 40, 50}, {1, 10, 20});
    assert_overlaps(0, {3, 40, 50}, {2, 20, 30}, {1, 10, 20});
}

CASE(a_hold_within_another_is_an_overlap) {
    assert_overlaps(1, {1, 10, 40}, {2, 20, 30});
}

/* The second hold ended, but the first, which began before it, has not. */
CASE(a_long_hold_overlaps_all_that_begin_in_it) {
    assert_overlaps(2, {1, 10, 40}, {2, 15, 20}, {3, 25, 30});
}

CASE(the_same_moment_is_an_overlap) {
    assert_overlaps(1, {1, 10, 20}, {2, 10, 20});
}

CASE(an_overlap_is_told_with_its_workers) {
    const int64_t holds[][3] = {{7, 10, 20}, {9, 16, 30}};
    char *text;
    assert_int_equal(check(holds, 2, &text).overlaps, 1);
    assert_string_equal(text, "worker-9 got the lock 4 us before worker-7 had ended its hold\n");
    free(text);
}

CASE(a_hold_ends_at_its_deadline_however_late_that_is_reported) {
    struct timeline timeline = {0};
    add(&timeline, 1, WAITS, 10, 0);
    add(&timeline, 1, HOLDS, 20, 100);
    add(&timeline, 1, NOTE, 90, 150);
    add(&timeline, 1, LOSES, 170, 150);
    add(&timeline, 1, RELEASES, 180, 150);
    add(&timeline, 1, REFUSED, 190, 150);
    assert_int_equal(timeline.count, 1);
    assert_int_equal(timeline.turns[0].end, 150);
    assert_true(timeline.turns[0].lost);
    assert_int_equal(timeline.turns[0].refused, 190);
    timeline_clear(&timeline);
}

/* Its hold ends when it died, or at the deadline that it last reported. */
CASE(a_worker_that_died_holds_no_more) {
    const int64_t died[] = {80, 170};
    for (int i = 0; i < 2; i++) {
        struct timeline timeline = {0};
        add(&timeline, 1, WAITS, 10, 0);
        add(&timeline, 1, HOLDS, 20, 100);
        add(&timeline, 1, DIED, died[i], 0);
        assert_int_equal(timeline.turns[0].end, i == 0 ? 80 : 100);
        assert_true(timeline.turns[0].lost);
        timeline_clear(&timeline);
    }
}

CASE(a_fence_that_does_not_grow_is_found) {
    struct timeline timeline = {0};
    add_turn(&timeline, 1, 10, 20);
    add_turn(&timeline, 2, 30, 40);
    assert_int_equal(timeline_check(&timeline, stdout).falls, 0);
    timeline.turns[1].fence = timeline.turns[0].fence;
    assert_int_equal(timeline_check(&timeline, stdout).falls, 1);
    timeline_clear(&timeline);
}

CASE(all_waits_are_counted) {
    struct timeline timeline = {0};
    add_turn(&timeline, 1, 10, 20);
    add(&timeline, 2, WAITS, 12, 0);
    add(&timeline, 2, GIVES_UP, 52, 0);
    add(&timeline, 3, NOTE, 53, 0);
    struct tally one = timeline_count(&timeline, 1), two = timeline_count(&timeline, 2);
    struct tally all = timeline_count(&timeline, 0);
    assert_int_equal(one.held, 1);
    assert_int_equal(one.in_vain, 0);
    assert_int_equal(one.longest_wait, 1);
    assert_int_equal(two.held, 0);
    assert_int_equal(two.in_vain, 1);
    assert_int_equal(two.longest_wait, 40);
    assert_int_equal(all.held, 1);
    assert_int_equal(all.in_vain, 1);
    assert_int_equal(all.longest_wait, 40);
    assert_int_equal(all.lost, 0);
    timeline_clear(&timeline);
}

CASE(many_turns_are_all_kept) {
    struct timeline timeline = {0};
    for (int i = 0; i < 1000; i++)
        add_turn(&timeline, i, 2 * (1000 - i), 2 * (1000 - i) + 1);
    assert_int_equal(timeline.count, 1000);
    assert_int_equal(timeline_check(&timeline, stdout).overlaps, 0);
    assert_int_equal(timeline.turns[0].worker, 999);
    timeline_clear(&timeline);
    assert_null(timeline.turns);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_holds_do_not_overlap),
        cmocka_unit_test(turns_do_not_overlap),
        cmocka_unit_test(a_hold_may_begin_when_the_last_one_ends),
        cmocka_unit_test(one_microsecond_is_an_overlap),
        cmocka_unit_test(the_order_of_reports_does_not_matter),
        cmocka_unit_test(a_hold_within_another_is_an_overlap),
        cmocka_unit_test(a_long_hold_overlaps_all_that_begin_in_it),
        cmocka_unit_test(the_same_moment_is_an_overlap),
        cmocka_unit_test(an_overlap_is_told_with_its_workers),
        cmocka_unit_test(a_hold_ends_at_its_deadline_however_late_that_is_reported),
        cmocka_unit_test(a_worker_that_died_holds_no_more),
        cmocka_unit_test(a_fence_that_does_not_grow_is_found),
        cmocka_unit_test(all_waits_are_counted),
        cmocka_unit_test(many_turns_are_all_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
