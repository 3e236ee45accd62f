/* The unit tests of what a server's errors mean: as servers of several versions word them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <evlock/evlock.h>

#include "reply.h"

struct said {
    const char *error;
    enum lease_verdict verdict;
    int status;
};

static void assert_means(const struct said *said, size_t count) {
    struct reply_meaning meaning;

    for (size_t i = 0; i < count; i++) {
        meaning = evl_reply_meaning(said[i].error);
        if (meaning.verdict != said[i].verdict || meaning.status != said[i].status)
            fail_msg("\"%s\" means %d, %d", said[i].error, meaning.verdict, meaning.status);
    }
}

#define ASSERT_MEAN(said) assert_means((said), sizeof(said) / sizeof((said)[0]))

CASE(what_a_server_lacks_is_unsupported) {
    static const struct said said[] = {
        {"ERR unknown command 'EVALSHA'", LEASE_FORBIDDEN, EVLOCK_EUNSUPPORTED},
        {"ERR unknown command `SCRIPT`, with args beginning with: `LOAD`", LEASE_FORBIDDEN, EVLOCK_EUNSUPPORTED},
        {"ERR unknown subcommand 'LOAD'. Try SCRIPT HELP.", LEASE_FORBIDDEN, EVLOCK_EUNSUPPORTED},
        {"ERR Unknown subcommand or wrong number of arguments for 'LOAD'. Try SCRIPT HELP.", LEASE_FORBIDDEN,
         EVLOCK_EUNSUPPORTED},
        {"ERR scripting support disabled", LEASE_FORBIDDEN, EVLOCK_EUNSUPPORTED},
        {"ERR Error running script (call to f_0): @user_script:1: @user_script: 1: Unknown Redis command called from "
         "Lua "
         "script",
         LEASE_FORBIDDEN, EVLOCK_EUNSUPPORTED},
        {"ERR Unknown Redis command called from script script: 0, on @user_script:1.", LEASE_FORBIDDEN,
         EVLOCK_EUNSUPPORTED},
        {"ERR Error running script (call to f_0): @user_script:1: @user_script: 1: This Redis command is not allowed "
         "from "
         "scripts",
         LEASE_FORBIDDEN, EVLOCK_EUNSUPPORTED},
        {"ERR This Redis command is not allowed from script script: 0, on @user_script:1.", LEASE_FORBIDDEN,
         EVLOCK_EUNSUPPORTED},
        {"ERR command eval not support for your account", LEASE_FORBIDDEN, EVLOCK_EUNSUPPORTED},
        {"NOTIME the server gives its clock nowhere", LEASE_FORBIDDEN, EVLOCK_EUNSUPPORTED},
        {"ERR DB index is out of range", LEASE_FORBIDDEN, EVLOCK_EUNSUPPORTED},
        {"ERR SELECT is not allowed in cluster mode", LEASE_FORBIDDEN, EVLOCK_EUNSUPPORTED},
        {"MOVED 866 127.0.0.1:7001", LEASE_FORBIDDEN, EVLOCK_EUNSUPPORTED},
    };

    ASSERT_MEAN(said);
    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++)
        assert_true(evl_reply_is_lacking(evl_reply_meaning(said[i].error)));
}

CASE(what_a_user_may_not_is_forbidden) {
    static const struct said said[] = {
        {"NOPERM this user has no permissions to run the 'evalsha' command", LEASE_FORBIDDEN, EVLOCK_EPERM},
        {"DENIED Redis is running in protected mode", LEASE_FORBIDDEN, EVLOCK_EPERM},
        {"ERR The user executing the script can't run this command or subcommand", LEASE_FORBIDDEN, EVLOCK_EPERM},
        {"ERR ACL failure in script: User default has no permissions", LEASE_FORBIDDEN, EVLOCK_EPERM},
        {"NOAUTH Authentication required.", LEASE_FORBIDDEN, EVLOCK_EAUTH},
    };

    ASSERT_MEAN(said);
}

CASE(what_passes_is_for_now) {
    static const struct said said[] = {
        {"LOADING Redis is loading the dataset in memory", LEASE_REFUSED, EVLOCK_EREFUSED},
        {"BUSY Redis is busy running a script.", LEASE_REFUSED, EVLOCK_EREFUSED},
        {"ERR Error running script (call to f_0): @user_script:1: @user_script: 1: Script attempted to access a non "
         "local "
         "key in a cluster node",
         LEASE_REFUSED, EVLOCK_EREFUSED},
        {"ERR Script attempted to access a non local key in a cluster node script: 0, on @user_script:1.",
         LEASE_REFUSED, EVLOCK_EREFUSED},
    };

    ASSERT_MEAN(said);
    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++)
        assert_true(evl_reply_passes(said[i].error));
    assert_false(evl_reply_passes("STRANGE a code of a later server"));
    assert_false(evl_reply_passes("ERR something"));
}

CASE(keys_that_are_not_in_one_place_are_known) {
    assert_true(evl_reply_is_scattered("CROSSSLOT Keys in request don't hash to the same slot"));
    assert_true(evl_reply_is_scattered("ERR Script attempted to access a non local key in a cluster node"));
    assert_true(evl_reply_is_scattered("ERR Script attempted to access keys that do not hash to the same slot"));
    assert_false(evl_reply_is_scattered("MOVED 3999 127.0.0.1:6381"));
    assert_false(evl_reply_is_scattered("NOPERM no CROSSSLOT"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_server_lacks_is_unsupported),
        cmocka_unit_test(what_a_user_may_not_is_forbidden),
        cmocka_unit_test(what_passes_is_for_now),
        cmocka_unit_test(keys_that_are_not_in_one_place_are_known),
    };
    return cmocka_run_group_tests_name("reply", tests, NULL, NULL);
}
