/*
 * A server's own commands: which its version promises, and what takes them back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "native.h"

#define SECOND INT64_C(1000000)
#define NOW (100 * SECOND)

static struct native native_of(unsigned valkey, unsigned redis) {
    const struct info_server info = {.valkey = valkey, .redis = redis};
    struct native native;

    memset(&native, 0xa5, sizeof(native));
    evl_native_learn(&native, &info);
    return native;
}

static bool refreshes(const struct native *native, int64_t now) {
    return now >= native->refreshes_from;
}

/* The verb of a release in the dialect of a lock; 0: it is by script. */
static unsigned release_of(const struct native *native, enum lock_kind kind) {
    const struct form *form = evl_native_release(native, evl_dialect(kind, TAKE_AT_ONCE));

    return form->script ? 0 : form->arguments[0];
}

static void assert_has(unsigned valkey, unsigned redis, bool refresh, unsigned release) {
    struct native native = native_of(valkey, redis);

    assert_int_equal(refreshes(&native, 0), refresh);
    assert_int_equal(release_of(&native, LOCK_PLAIN), release);
    assert_int_equal(release_of(&native, LOCK_QUEUED), 0); /* it may hand the lock on */
}

CASE(a_version_says_what_there_is) {
    assert_has(0, 0, false, 0);
    assert_has(0, 700, false, 0);
    assert_has(0, 803, false, 0);
    assert_has(0, 804, true, ARG_DELEX);
    assert_has(0, 900, true, ARG_DELEX);
    assert_has(800, 702, false, 0);
    assert_has(801, 702, true, 0);
    assert_has(900, 702, true, ARG_DELIFEQ);
    assert_has(901, 702, true, ARG_DELIFEQ);
    assert_has(800, 804, false, 0); /* whatever Redis that says it is like */
}

CASE(of_a_server_that_says_nothing_nothing_is_known) {
    struct native native;

    memset(&native, 0, sizeof(native));
    evl_native_reset(&native);
    assert_false(refreshes(&native, INT64_MAX - 1));
    assert_int_equal(release_of(&native, LOCK_PLAIN), 0);
}

/* The other command goes on. */
static void assert_withdrawn(const char *text) {
    enum reply_error error = evl_reply_error(text);
    struct native native = native_of(900, 702);

    assert_true(evl_native_withdraw(&native, LEASE_REFRESH, error, NOW));
    assert_false(refreshes(&native, INT64_MAX - 1));
    assert_int_equal(release_of(&native, LOCK_PLAIN), ARG_DELIFEQ);
    assert_true(evl_native_withdraw(&native, LEASE_REFRESH, error, NOW)); /* that was under way, too */
    native = native_of(900, 702);
    assert_true(evl_native_withdraw(&native, LEASE_RELEASE, error, NOW));
    assert_true(refreshes(&native, NOW));
    assert_int_equal(release_of(&native, LOCK_PLAIN), 0);
    assert_true(evl_native_withdraw(&native, LEASE_RELEASE, error, NOW));
}

CASE(what_is_refused_for_good_goes_by_script) {
    assert_withdrawn("ERR unknown command 'DELIFEQ', with args beginning with: 'a' 'token' ");
    assert_withdrawn("ERR syntax error");
    assert_withdrawn("ERR Key should be of string type if conditions are specified");
    assert_withdrawn("NOPERM User worker has no permissions to run the 'delifeq' command");
    assert_withdrawn("PROXY what is this?"); /* nobody knows for how long */
}

static void assert_stays_by(enum reply_error error) {
    struct native native = native_of(900, 702);

    assert_false(evl_native_withdraw(&native, LEASE_REFRESH, error, NOW));
    assert_false(evl_native_withdraw(&native, LEASE_RELEASE, error, NOW));
    assert_true(refreshes(&native, NOW));
    assert_int_equal(release_of(&native, LOCK_PLAIN), ARG_DELIFEQ);
}

static void assert_stays(const char *text) {
    assert_stays_by(evl_reply_error(text));
}

CASE(what_the_script_would_hear_too_stands) {
    assert_stays("WRONGTYPE Operation against a key holding the wrong kind of value");
    assert_stays("LOADING the dataset");
    assert_stays("BUSY a script");
    assert_stays("MISCONF disk");
    assert_stays("NOREPLICAS Not enough good replicas to write.");
    assert_stays("READONLY You can't write against a read only replica.");
    assert_stays("CLUSTERDOWN");
    assert_stays("NOAUTH Authentication required.");
    assert_stays_by(ERROR_ELSEWHERE);
    assert_stays_by(ERROR_HALFWAY);
}

CASE(a_full_server_renews_by_script_for_a_while) {
    enum reply_error full = evl_reply_error("OOM command not allowed when used memory > 'maxmemory'.");
    struct native native = native_of(900, 702);

    assert_true(evl_native_withdraw(&native, LEASE_REFRESH, full, NOW));
    assert_false(refreshes(&native, NOW));
    assert_false(refreshes(&native, NOW + 10 * SECOND - 1));
    assert_true(refreshes(&native, NOW + 10 * SECOND));
    assert_int_equal(release_of(&native, LOCK_PLAIN), ARG_DELIFEQ);
    assert_false(evl_native_withdraw(&native, LEASE_RELEASE, full, NOW)); /* which takes no memory: a lie */
    assert_true(evl_native_withdraw(&native, LEASE_REFRESH, evl_reply_error("ERR syntax error"), NOW));
    assert_true(evl_native_withdraw(&native, LEASE_REFRESH, full, NOW)); /* of before */
    assert_false(refreshes(&native, INT64_MAX - 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_version_says_what_there_is),
        cmocka_unit_test(of_a_server_that_says_nothing_nothing_is_known),
        cmocka_unit_test(what_is_refused_for_good_goes_by_script),
        cmocka_unit_test(what_the_script_would_hear_too_stands),
        cmocka_unit_test(a_full_server_renews_by_script_for_a_while),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
