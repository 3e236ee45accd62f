/*
 * The adapter for libuv, by the tests that all adapters share.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <evlock/libuv.h>
#include <uv.h>

#include "adapter_tests.h"

static void *open_loop(void) {
    static uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    return &loop;
}

static evlock_loop loop_of(void *loop) {
    return evlock_libuv(loop);
}

static int client_on(evlock_client **ret_client, void *loop, const char *url, const evlock_client_options *options) {
    return evlock_client_new_libuv(ret_client, loop, url, options);
}

static void turn_loop(void *loop) {
    uv_run(loop, UV_RUN_NOWAIT);
}

static int is_alive(void *loop) {
    return uv_loop_alive(loop);
}

static void close_loop(void *loop) {
    assert_int_equal(uv_loop_close(loop), 0);
}

static const struct adapter libuv = {open_loop, loop_of, client_on, turn_loop, is_alive, close_loop};

int main(void) {
    return adapter_tests(&libuv);
}
