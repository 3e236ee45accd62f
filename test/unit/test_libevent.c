/*
 * The adapter for libevent, by the tests that all adapters share, and where memory ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <event2/event.h>
#include <evlock/libevent.h>
#include <hiredis/async.h>

#include "adapter_tests.h"
#include "counted.h"

static void *open_base(void) {
    return event_base_new();
}

static evlock_loop base_loop(void *base) {
    return evlock_libevent(base);
}

static int base_client(evlock_client **ret_client, void *base, const char *url, const evlock_client_options *options) {
    return evlock_client_new_libevent(ret_client, base, url, options);
}

static void turn_base(void *base) {
    event_base_loop(base, EVLOOP_NONBLOCK);
}

static int count_events(void *base) {
    return event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED | EVENT_BASE_COUNT_ACTIVE);
}

static void close_base(void *base) {
    event_base_free(base);
}

static const struct adapter libevent = {open_base, base_loop, base_client, turn_base, count_events, close_base};

/* --- Memory that ends --------------------------------------------------------------------------------------------- */

static long good_before_bad = -1; /* libevent's allocations until the one that fails; negative: none does */

static bool may_allocate(void) {
    return good_before_bad < 0 || good_before_bad-- > 0;
}

static void *event_malloc(size_t size) {
    return may_allocate() ? malloc(size) : NULL;
}

static void *event_realloc(void *block, size_t size) {
    return may_allocate() ? realloc(block, size) : NULL;
}

static void never_called(void *arg) {
    (void)arg;
    fail();
}

CASE(without_memory_there_is_no_timer) {
    struct event_base *base = event_base_new();
    evlock_loop loop = evlock_libevent(base);
    counted_begin(NULL);
    counted_fail_after(0);
    assert_null(loop.ops->timer_new(loop.data, never_called, NULL));
    counted_fail_after(-1);
    void *timer = NULL;
    for (long good = 0; !timer; good++) {
        assert_int_equal(counted_live(), 0);
        good_before_bad = good;
        timer = loop.ops->timer_new(loop.data, never_called, NULL);
        good_before_bad = -1;
    }
    loop.ops->timer_free(timer);
    assert_int_equal(counted_live(), 0);
    counted_end();
    assert_int_equal(count_events(base), 0);
    event_base_free(base);
}

#if HIREDIS_MAJOR >= 1 /* 0.14's adapter does not survive this */
CASE(without_memory_there_is_no_attachment) {
    struct event_base *base = event_base_new();
    evlock_loop loop = evlock_libevent(base);
    redisAsyncContext *connection = redisAsyncConnect("127.0.0.1", 1);
    assert_non_null(connection);
    good_before_bad = 0;
    assert_int_equal(loop.ops->attach(loop.data, connection), -1);
    good_before_bad = -1;
    redisAsyncFree(connection);
    event_base_free(base);
}
#endif

int main(void) {
    event_set_mem_functions(event_malloc, event_realloc, free);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_there_is_no_timer),
#if HIREDIS_MAJOR >= 1
        cmocka_unit_test(without_memory_there_is_no_attachment),
#endif
    };
    int failed = adapter_tests(&libevent);
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
