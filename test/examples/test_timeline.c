/*
 * The check that `workers` ends with, on timelines made by hand: it must find every overlap, or the example proves
 * nothing.
 */
#include "../../examples/timeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

/* The overlaps of holds given as {worker, got, end}; `*ret_text` is what was told of them. */
static size_t overlaps(const int64_t (*holds)[3], size_t count, char **ret_text) {
    struct timeline timeline = {0};
    for (size_t i = 0; i < count; i++) {
        struct hold hold = {.worker = (int)holds[i][0], .got = holds[i][1], .end = holds[i][2]};
        assert_int_equal(timeline_add(&timeline, &hold), 0);
    }
    size_t length;
    FILE *out = open_memstream(ret_text, &length);
    assert_non_null(out);
    size_t found = timeline_overlaps(&timeline, out);
    assert_int_equal(fclose(out), 0);
    timeline_clear(&timeline);
    return found;
}

#define assert_overlaps(expected, ...)                                                                                 \
    do {                                                                                                               \
        const int64_t holds[][3] = {__VA_ARGS__};                                                                      \
        char *text;                                                                                                    \
        assert_int_equal(overlaps(holds, sizeof holds / sizeof *holds, &text), expected);                              \
        free(text);                                                                                                    \
    } while (0)

CASE(no_holds_do_not_overlap) {
    struct timeline timeline = {0};
    assert_int_equal(timeline_overlaps(&timeline, stdout), 0);
    timeline_clear(&timeline);
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
    assert_int_equal(overlaps(holds, 2, &text), 1);
    assert_string_equal(text, "worker-9 got the lock 4 us before worker-7 had ended its hold\n");
    free(text);
}

CASE(many_holds_are_all_kept) {
    struct timeline timeline = {0};
    for (int i = 0; i < 1000; i++) {
        struct hold hold = {.worker = i, .got = 1000 - i, .end = 1001 - i};
        assert_int_equal(timeline_add(&timeline, &hold), 0);
    }
    assert_int_equal(timeline.count, 1000);
    assert_int_equal(timeline_overlaps(&timeline, stdout), 0);
    assert_int_equal(timeline.holds[0].worker, 999);
    timeline_clear(&timeline);
    assert_null(timeline.holds);
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
        cmocka_unit_test(many_holds_are_all_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
