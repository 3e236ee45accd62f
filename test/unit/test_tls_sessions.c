/*
 * The unit tests of kept sessions: which are handed out, and which go. The room never looks into a session, so that the
 * address of a byte stands for one here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "counted.h"
#include "tls_sessions.h"

enum { MANY = 2 * TLS_SESSIONS_MAX };

static char bytes[256];
static struct tls_sessions sessions;

static struct ssl_session_st *session(int number) {
    return (struct ssl_session_st *)(void *)&bytes[number];
}

/* Keeps one of a server; which of all went for it: its number, or -1. */
static int keep(const char *host, int port, int number) {
    struct ssl_session_st *gone = evl_tls_sessions_keep(&sessions, host, port, session(number));

    return gone ? (int)((char *)gone - bytes) : -1;
}

static int take(const char *host, int port) {
    struct ssl_session_st *taken = evl_tls_sessions_take(&sessions, host, port);

    return taken ? (int)((char *)taken - bytes) : -1;
}

static int take_any(void) {
    struct ssl_session_st *taken = evl_tls_sessions_take_any(&sessions);

    return taken ? (int)((char *)taken - bytes) : -1;
}

CASE(the_newest_of_a_server_comes_first_and_each_once) {
    assert_int_equal(take("a", 1), -1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(keep("a", 1, i), -1);
    for (int i = 2; i >= 0; i--)
        assert_int_equal(take("a", 1), i);
    assert_int_equal(take("a", 1), -1);
}

CASE(a_server_is_a_host_and_a_port) {
    keep("a", 1, 0);
    keep("a", 2, 1);
    keep("b", 1, 2);
    assert_int_equal(take("b", 2), -1);
    assert_int_equal(take("A", 1), -1);
    assert_int_equal(take("", 1), -1);
    assert_int_equal(take("a", 1), 0);
    assert_int_equal(take("a", 2), 1);
    assert_int_equal(take("b", 1), 2);
}

/* Whichever is taken out, the others stay, each of its own server. */
CASE(one_goes_and_the_others_stay_in_order) {
    for (int out = 0; out < 4; out++) {
        char host[2] = "a";
        for (int i = 0; i < 4; i++) {
            host[0] = (char)('a' + i);
            keep(host, 1, i);
        }
        host[0] = (char)('a' + out);
        assert_int_equal(take(host, 1), out);
        assert_int_equal(sessions.count, 3);
        for (int i = 3; i >= 0; i--)
            if (i != out)
                assert_int_equal(take_any(), i);
        assert_int_equal(take_any(), -1);
    }
}

CASE(the_oldest_of_a_server_goes_for_its_newest) {
    keep("before", 1, 100);
    for (int i = 0; i < TLS_SESSIONS_EACH; i++) {
        assert_int_equal(keep("a", 1, i), -1);
        keep("between", i, 101 + i);
    }
    for (int i = 0; i < 10; i++)
        assert_int_equal(keep("a", 1, TLS_SESSIONS_EACH + i), i);
    assert_int_equal(take("before", 1), 100);
    assert_int_equal(take("between", 0), 101);
    for (int i = 0; i < TLS_SESSIONS_EACH; i++)
        assert_int_equal(take("a", 1), TLS_SESSIONS_EACH + 9 - i);
    assert_int_equal(take("a", 1), -1);
}

/* As when a cluster's members change all the time. */
CASE(the_oldest_of_all_goes_when_there_is_no_room) {
    for (int i = 0; i < TLS_SESSIONS_MAX; i++)
        assert_int_equal(keep("a", i, i), -1);
    for (int i = TLS_SESSIONS_MAX; i < MANY - 1; i++)
        assert_int_equal(keep("a", i, i), i - TLS_SESSIONS_MAX);
    assert_int_equal(keep("a", MANY - 2, MANY - 1), MANY - TLS_SESSIONS_MAX - 1);
    assert_int_equal(sessions.count, TLS_SESSIONS_MAX);
}

CASE(a_full_room_drops_of_the_server_before_all_others) {
    for (int i = 0; i < TLS_SESSIONS_MAX - TLS_SESSIONS_EACH; i++)
        keep("others", i, i);
    for (int i = 0; i < TLS_SESSIONS_EACH; i++)
        assert_int_equal(keep("a", 1, 200 + i), -1);
    assert_int_equal(keep("a", 1, 210), 200);
    assert_int_equal(take("others", 0), 0);
}

/* A host is copied, and its copy goes with the session. */
CASE(a_session_without_memory_is_given_back) {
    char host[] = "a";

    counted_begin(NULL);
    assert_int_equal(keep(host, 1, 0), -1);
    host[0] = 'b';
    counted_fail_after(0);
    assert_int_equal(keep("a", 1, 1), 1);
    assert_int_equal(sessions.count, 1);
    assert_int_equal(take("a", 1), 0);
    assert_int_equal(counted_live(), 0);
}

static int teardown(void **state) {
    while (take_any() >= 0)
        ;
    return counted_teardown(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_newest_of_a_server_comes_first_and_each_once, teardown),
        cmocka_unit_test_teardown(a_server_is_a_host_and_a_port, teardown),
        cmocka_unit_test_teardown(one_goes_and_the_others_stay_in_order, teardown),
        cmocka_unit_test_teardown(the_oldest_of_a_server_goes_for_its_newest, teardown),
        cmocka_unit_test_teardown(the_oldest_of_all_goes_when_there_is_no_room, teardown),
        cmocka_unit_test_teardown(a_full_room_drops_of_the_server_before_all_others, teardown),
        cmocka_unit_test_teardown(a_session_without_memory_is_given_back, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
