/* The judgment on windows is able to fail: every kind of fault is found, wherever it is, and nothing else is. */
#include "windows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { MANY = 1000 };

static char words[512];
static size_t first;

#define check(...)                                                                                                     \
    windows_check((struct window[]){__VA_ARGS__}, sizeof((struct window[]){__VA_ARGS__}) / sizeof(struct window),      \
                  words, sizeof(words), &first)

CASE(no_windows_are_faultless) {
    struct window one = {10, 20, 1, 0};
    assert_int_equal(windows_check(NULL, 0, words, sizeof(words), &first), 0);
    assert_int_equal(windows_check(&one, 1, words, sizeof(words), &first), 0);
    assert_string_equal(words, "");
}

CASE(windows_may_touch) {
    assert_int_equal(check({10, 20, 1, 0}, {20, 30, 2, 1}, {30, 30, 3, 0}, {30, 40, 4, 1}), 0);
    assert_string_equal(words, "");
}

CASE(their_order_does_not_matter) {
    assert_int_equal(check({30, 40, 3, 0}, {10, 20, 1, 0}, {20, 30, 2, 1}), 0);
    assert_int_equal(check({30, 40, 3, 0}, {10, 21, 1, 0}, {20, 30, 2, 1}), 1);
}

CASE(an_overlap_of_one_microsecond_is_found) {
    assert_int_equal(check({10, 21, 1, 7}, {20, 30, 2, 8}), 1);
    assert_non_null(strstr(words, "two held at once: holder 7 from 10"));
    assert_non_null(strstr(words, "holder 8 from 20"));
}

CASE(a_window_within_another_is_found) {
    assert_int_equal(check({10, 100, 1, 0}, {20, 30, 2, 1}), 1);
    /* and every one that the long one covers, not the next alone */
    assert_int_equal(check({10, 100, 1, 0}, {20, 30, 2, 1}, {40, 50, 3, 1}, {90, 110, 4, 1}, {110, 120, 5, 1}), 3);
}

CASE(two_at_the_same_moment_are_found) {
    assert_int_equal(check({10, 20, 1, 0}, {10, 20, 2, 1}), 1);
}

CASE(equal_fences_are_found) {
    assert_int_equal(check({10, 20, 1, 0}, {20, 30, 1, 1}), 1);
    assert_non_null(strstr(words, "the fence did not grow"));
}

CASE(a_falling_fence_is_found) {
    assert_int_equal(check({10, 20, 9, 0}, {20, 30, 8, 1}), 1);
    /* against the greatest so far, not the last */
    assert_int_equal(check({10, 20, 9, 0}, {20, 30, 5, 1}, {30, 40, 6, 1}, {40, 50, 10, 0}), 2);
}

CASE(windows_without_a_fence_are_passed_over) {
    assert_int_equal(check({10, 20, 9, 0}, {20, 30, 0, 1}, {30, 40, 10, 0}, {40, 50, 0, 0}), 0);
    assert_int_equal(check({10, 20, 9, 0}, {20, 30, 0, 1}, {30, 40, 9, 0}), 1);
    assert_int_equal(first, 2);
    assert_int_equal(check({10, 21, 0, 0}, {20, 30, 0, 1}), 1);
}

CASE(one_fault_among_many_is_found) {
    struct window windows[MANY];
    for (size_t fault = 1; fault < MANY; fault++) {
        for (size_t i = 0; i < MANY; i++)
            windows[i] = (struct window){(int64_t)i * 10, (int64_t)i * 10 + 9, i + 1, (int64_t)(i % 10)};
        assert_int_equal(windows_check(windows, MANY, words, sizeof(words), &first), 0);
        windows[fault].from -= 2;
        assert_int_equal(windows_check(windows, MANY, words, sizeof(words), &first), 1);
        assert_int_equal(first, fault);
        windows[fault].from += 2;
        windows[fault].fence--;
        assert_int_equal(windows_check(windows, MANY, words, sizeof(words), &first), 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_windows_are_faultless),
        cmocka_unit_test(windows_may_touch),
        cmocka_unit_test(their_order_does_not_matter),
        cmocka_unit_test(an_overlap_of_one_microsecond_is_found),
        cmocka_unit_test(a_window_within_another_is_found),
        cmocka_unit_test(two_at_the_same_moment_are_found),
        cmocka_unit_test(equal_fences_are_found),
        cmocka_unit_test(a_falling_fence_is_found),
        cmocka_unit_test(windows_without_a_fence_are_passed_over),
        cmocka_unit_test(one_fault_among_many_is_found),
    };
    return cmocka_run_group_tests_name("windows", tests, NULL, NULL);
}
