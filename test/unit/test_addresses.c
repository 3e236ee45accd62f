/* The addresses of a name: taken in turn, each once, with its share of the time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "addresses.h"
#include "counted.h"

static const char *const three[] = {"127.0.0.1", "::1", "127.0.0.3"};

CASE(each_is_taken_once_and_in_their_order) {
    struct addresses addresses = {0};

    counted_begin(NULL);
    assert_true(evl_addresses_keep(&addresses, three, 3));
    for (size_t i = 0; i < 3; i++) {
        assert_true(evl_addresses_remain(&addresses));
        assert_string_equal(evl_addresses_take(&addresses), three[i]);
    }
    assert_false(evl_addresses_remain(&addresses));
    evl_addresses_free(&addresses);
    assert_int_equal(counted_live(), 0);
}

CASE(without_any_the_url_is_the_place) {
    struct addresses addresses = {0};

    assert_false(evl_addresses_remain(&addresses));
    assert_null(evl_addresses_take(&addresses));
    assert_false(evl_addresses_remain(&addresses));
    evl_addresses_free(&addresses);
    assert_int_equal(addresses.next, 0);
}

CASE(others_take_their_place_and_are_untried) {
    struct addresses addresses = {0};
    char text[] = "127.0.0.9";
    const char *one = text;

    counted_begin(NULL);
    assert_true(evl_addresses_keep(&addresses, three, 3));
    (void)evl_addresses_take(&addresses);
    (void)evl_addresses_take(&addresses);
    assert_true(evl_addresses_keep(&addresses, &one, 1));
    memset(text, 'x', sizeof(text) - 1); /* they are copies */
    assert_string_equal(evl_addresses_take(&addresses), "127.0.0.9");
    assert_false(evl_addresses_remain(&addresses));
    evl_addresses_free(&addresses);
    assert_int_equal(counted_live(), 0);
}

CASE(each_has_its_share_of_the_time) {
    struct addresses addresses = {0};

    assert_int_equal(evl_addresses_share(&addresses, 6000), 6000);
    assert_true(evl_addresses_keep(&addresses, three, 3));
    assert_int_equal(evl_addresses_share(&addresses, 6000), 2000);
    (void)evl_addresses_take(&addresses);
    assert_int_equal(evl_addresses_share(&addresses, 6000), 2000);
    evl_addresses_free(&addresses);
    assert_int_equal(evl_addresses_share(&addresses, 6000), 6000);
}

/* Some alone would stand for all of them. */
CASE(without_memory_for_all_there_are_none) {
    for (int good = 0; good < 4; good++) {
        struct addresses addresses = {0};

        counted_begin(NULL);
        counted_fail_after(good);
        assert_false(evl_addresses_keep(&addresses, three, 3));
        assert_int_equal(counted_live(), 0);
        assert_null(addresses.texts);
        assert_false(evl_addresses_remain(&addresses));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(each_is_taken_once_and_in_their_order, counted_teardown),
        cmocka_unit_test(without_any_the_url_is_the_place),
        cmocka_unit_test_teardown(others_take_their_place_and_are_untried, counted_teardown),
        cmocka_unit_test(each_has_its_share_of_the_time),
        cmocka_unit_test_teardown(without_memory_for_all_there_are_none, counted_teardown),
    };
    return cmocka_run_group_tests_name("addresses", tests, NULL, NULL);
}
