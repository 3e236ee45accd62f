/*
 * Memory: what evl_alloc() and its like give, and the exchange of the functions behind them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <evlock/evlock.h>

#include "counted.h"
#include "memory.h"
#include "pool.h"

CASE(a_block_is_zeroed) {
    counted_begin(NULL);
    unsigned char *block = evl_alloc(100);
    assert_non_null(block);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(block[i], 0);
    evl_free(block);
    assert_int_equal(counted_live(), 0);
}

CASE(resizing_keeps_the_bytes) {
    counted_begin(NULL);
    char *block = evl_dup("abc", 3);
    block = evl_resize(block, 1000);
    assert_string_equal(block, "abc");
    assert_int_equal(counted_live(), 1);
    counted_fail_after(0);
    assert_null(evl_resize(block, 2000));
    assert_string_equal(block, "abc");
    evl_free(block);
    assert_int_equal(counted_live(), 0);
}

CASE(a_copy_takes_any_bytes_and_ends_in_nul) {
    counted_begin(NULL);
    char *copy = evl_dup("a\0b\n", 4);
    assert_memory_equal(copy, "a\0b\n\0", 5);
    evl_free(copy);
    copy = evl_dup(NULL, 0);
    assert_string_equal(copy, "");
    evl_free(copy);
}

CASE(failure_is_null) {
    counted_begin(NULL);
    counted_fail_after(0);
    assert_null(evl_alloc(1));
    assert_null(evl_dup("a", 1));
    assert_null(evl_resize(NULL, 1));
    evl_free(NULL);
    assert_int_equal(counted_live(), 0);
}

CASE(a_pool_gives_again_what_came_back) {
    struct pool pool = {.size = 24, .keep = 1};
    counted_begin(NULL);
    char *one = evl_pool_alloc(&pool), *two = evl_pool_alloc(&pool);
    memset(one, 'x', 24);
    memset(two, 'x', 24);
    evl_pool_free(&pool, one);
    evl_pool_free(&pool, two); /* one too many to keep */
    assert_int_in_range(counted_live(), 0, 1);
    one = evl_pool_alloc(&pool);
    for (int i = 0; i < 24; i++)
        assert_int_equal(one[i], 0);
    counted_fail_after(0);
    assert_null(evl_pool_alloc(&pool));
    evl_pool_free(&pool, one);
    evl_pool_free_kept(&pool);
    assert_int_equal(counted_live(), 0);
}

static void *never_resize(void *block, size_t size) {
    (void)block;
    (void)size;
    return NULL;
}

static void never_release(void *block) {
    (void)block;
}

CASE(half_an_allocator_is_refused) {
    assert_int_equal(evlock_set_allocator(never_resize, NULL), EVLOCK_EINVAL);
    assert_int_equal(evlock_set_allocator(NULL, never_release), EVLOCK_EINVAL);
    void *block = evl_alloc(1);
    assert_non_null(block);
    evl_free(block);
}

CASE(null_brings_back_the_default) {
    assert_int_equal(evlock_set_allocator(never_resize, never_release), EVLOCK_OK);
    assert_null(evl_alloc(1));
    assert_int_equal(evlock_set_allocator(NULL, NULL), EVLOCK_OK);
    void *block = evl_alloc(1);
    assert_non_null(block);
    evl_free(block);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_block_is_zeroed, counted_teardown),
        cmocka_unit_test_teardown(resizing_keeps_the_bytes, counted_teardown),
        cmocka_unit_test_teardown(a_copy_takes_any_bytes_and_ends_in_nul, counted_teardown),
        cmocka_unit_test_teardown(failure_is_null, counted_teardown),
        cmocka_unit_test_teardown(a_pool_gives_again_what_came_back, counted_teardown),
        cmocka_unit_test_teardown(half_an_allocator_is_refused, counted_teardown),
        cmocka_unit_test_teardown(null_brings_back_the_default, counted_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
