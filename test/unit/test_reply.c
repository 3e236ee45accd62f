/* The unit tests of what a server's errors mean: as servers of several versions word them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <evlock/evlock.h>

#include "reply.h"

/* How servers of several versions, and services, word it: each row of the table, and who comes near to another. */
static const struct said {
    const char *text;
    enum reply_error error;
} said[] = {
    {"NOSCRIPT No matching script. Please use EVAL.", ERROR_NOSCRIPT},
    {"NOCLOCK ERR This Redis command is not allowed from script", ERROR_NOCLOCK},
    {"FENCE the counter is no number", ERROR_FENCE},
    {"LOADING Redis is loading the dataset in memory", ERROR_FOR_NOW},
    {"BUSY Redis is busy running a script.", ERROR_FOR_NOW},
    {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", ERROR_FOR_NOW},
    {"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist on disk.", ERROR_FOR_NOW},
    {"NOREPLICAS Not enough good replicas to write.", ERROR_FOR_NOW},
    {"OOM command not allowed when used memory > 'maxmemory'.", ERROR_OOM},
    {"TRYAGAIN Multiple keys request during rehashing of slot", ERROR_TRYAGAIN},
    {"CLUSTERDOWN Hash slot not served", ERROR_DOWN},
    {"ERR Error running script (call to f_0): @user_script:1: @user_script: 1: Script attempted to access a non local "
     "key in a cluster node",
     ERROR_NOT_LOCAL},
    {"ERR Script attempted to access a non local key in a cluster node script: 0, on @user_script:1.", ERROR_NOT_LOCAL},
    {"READONLY You can't write against a read only replica.", ERROR_REPLICA},
    {"ERR WAIT cannot be used with replica instances.", ERROR_REPLICA},
    {"ERR max number of clients reached", ERROR_CROWDED},
    {"ERR max number of clients + cluster connections reached", ERROR_CROWDED},
    {"ERR max requests limit exceeded. Limit: 500000, Usage: 500000.", ERROR_OVER_LIMIT},
    {"MOVED 866 127.0.0.1:7001", ERROR_MOVED},
    {"ASK 866 127.0.0.1:7001", ERROR_MOVED},
    {"CROSSSLOT Keys in request don't hash to the same slot", ERROR_CROSS_SLOT},
    {"ERR Script attempted to access keys that do not hash to the same slot", ERROR_SLOTS},
    {"NOAUTH Authentication required.", ERROR_LOGIN},
    {"WRONGPASS invalid username-password pair or user is disabled.", ERROR_LOGIN},
    {"ERR AUTH <password> called without any password configured for the default user.", ERROR_LOGIN},
    {"ERR Client sent AUTH, but no password is set", ERROR_LOGIN},
    {"DENIED Redis is running in protected mode", ERROR_PROTECTED},
    {"NOPERM this user has no permissions to run the 'evalsha' command", ERROR_NO_EVALSHA},
    {"NOPERM User worker has no permissions to run the 'eval' command", ERROR_NO_EVAL},
    {"NOPERM No permissions to access a key", ERROR_NO_RIGHT},
    {"NOPERM no CROSSSLOT", ERROR_NO_RIGHT},
    {"ERR The user executing the script can't run this command or subcommand", ERROR_NO_RIGHT},
    {"ERR ACL failure in script: User default has no permissions", ERROR_NO_RIGHT},
    {"WRONGTYPE Operation against a key holding the wrong kind of value", ERROR_TYPE},
    {"NOTIME the server gives its clock nowhere", ERROR_LACKING},
    {"ERR unknown command 'EVALSHA'", ERROR_LACKING},
    {"ERR unknown command `SCRIPT`, with args beginning with: `LOAD`", ERROR_LACKING},
    {"ERR unknown subcommand 'LOAD'. Try SCRIPT HELP.", ERROR_LACKING},
    {"ERR Unknown subcommand or wrong number of arguments for 'LOAD'. Try SCRIPT HELP.", ERROR_LACKING},
    {"ERR scripting support disabled", ERROR_LACKING},
    {"ERR command eval not support for your account", ERROR_LACKING},
    {"ERR Error running script (call to f_0): @user_script:1: @user_script: 1: Unknown Redis command called from Lua "
     "script",
     ERROR_LACKING},
    {"ERR Unknown Redis command called from script script: 0, on @user_script:1.", ERROR_LACKING},
    {"ERR Error running script (call to f_0): @user_script:1: @user_script: 1: This Redis command is not allowed from "
     "scripts",
     ERROR_LACKING},
    {"ERR This Redis command is not allowed from script script: 0, on @user_script:1.", ERROR_LACKING},
    {"ERR SELECT is not allowed in cluster mode", ERROR_LACKING},
    {"ERR DB index is out of range", ERROR_LACKING},
    {"ERR wrong number of arguments for 'evalsha' command", ERROR_ARGUMENTS},
    {"wrong number of arguments for 'evalsha' command", ERROR_ARGUMENTS},
    {"ERR No such master with that name", ERROR_NO_MASTER},
    {"ERR syntax error", ERROR_SENSELESS},
    {"ERR", ERROR_SENSELESS},
    {"STRANGE a code of a later server", ERROR_STRANGE},
    {"STRANGE: ERR syntax error", ERROR_STRANGE},
    {"", ERROR_STRANGE},
};

CASE(each_text_is_read_as_what_it_says) {
    bool seen[ERRORS] = {false};

    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
        struct reply reply = evl_reply_of(said[i].text);
        if (reply.error != said[i].error)
            fail_msg("\"%s\" is read as %d, not %d", said[i].text, (int)reply.error, (int)said[i].error);
        assert_int_equal(reply.type, REPLY_ERROR);
        assert_ptr_equal(reply.text, said[i].text);
        assert_int_equal(reply.len, strlen(said[i].text));
        seen[said[i].error] = true;
    }
    for (enum reply_error error = 0; error < ERRORS; error++)
        assert_int_equal(seen[error], error > ERROR_NONE && error <= ERROR_STRANGE);
}

/* What comes of it. */
static const struct {
    enum lease_verdict verdict;
    int status;
    bool reconnect;
} outcomes[ERRORS] = {
    [ERROR_NOSCRIPT] = {LEASE_AGAIN, EVLOCK_EREFUSED, false},
    [ERROR_NOCLOCK] = {LEASE_AGAIN, EVLOCK_EREFUSED, false},
    [ERROR_FENCE] = {LEASE_FORBIDDEN, EVLOCK_EFENCE, false},
    [ERROR_FOR_NOW] = {LEASE_REFUSED, EVLOCK_EREFUSED, false},
    [ERROR_OOM] = {LEASE_REFUSED, EVLOCK_EREFUSED, false},
    [ERROR_TRYAGAIN] = {LEASE_REFUSED, EVLOCK_EREFUSED, false},
    [ERROR_DOWN] = {LEASE_REFUSED, EVLOCK_EREFUSED, false},
    [ERROR_NOT_LOCAL] = {LEASE_REFUSED, EVLOCK_EREFUSED, false},
    [ERROR_REPLICA] = {LEASE_REFUSED, EVLOCK_EREFUSED, true},
    [ERROR_CROWDED] = {LEASE_REFUSED, EVLOCK_EREFUSED, true},
    [ERROR_OVER_LIMIT] = {LEASE_FORBIDDEN, EVLOCK_EPROTOCOL, false},
    [ERROR_MOVED] = {LEASE_FORBIDDEN, EVLOCK_EUNSUPPORTED, false},
    [ERROR_CROSS_SLOT] = {LEASE_FORBIDDEN, EVLOCK_EUNSUPPORTED, false},
    [ERROR_SLOTS] = {LEASE_FORBIDDEN, EVLOCK_EPROTOCOL, false},
    [ERROR_LOGIN] = {LEASE_FORBIDDEN, EVLOCK_EAUTH, true},
    [ERROR_PROTECTED] = {LEASE_FORBIDDEN, EVLOCK_EPERM, true},
    [ERROR_NO_EVALSHA] = {LEASE_FORBIDDEN, EVLOCK_EPERM, false},
    [ERROR_NO_EVAL] = {LEASE_FORBIDDEN, EVLOCK_EPERM, false},
    [ERROR_NO_RIGHT] = {LEASE_FORBIDDEN, EVLOCK_EPERM, false},
    [ERROR_TYPE] = {LEASE_FORBIDDEN, EVLOCK_EWRONGTYPE, false},
    [ERROR_LACKING] = {LEASE_FORBIDDEN, EVLOCK_EUNSUPPORTED, false},
    [ERROR_ARGUMENTS] = {LEASE_FORBIDDEN, EVLOCK_EPROTOCOL, false},
    [ERROR_NO_MASTER] = {LEASE_FORBIDDEN, EVLOCK_EPROTOCOL, false},
    [ERROR_SENSELESS] = {LEASE_FORBIDDEN, EVLOCK_EPROTOCOL, false},
    [ERROR_STRANGE] = {LEASE_REFUSED, EVLOCK_EREFUSED, false},
    [ERROR_NO_CLOCK] = {LEASE_FORBIDDEN, EVLOCK_EUNSUPPORTED, false},
    [ERROR_ELSEWHERE] = {LEASE_AGAIN, EVLOCK_EREFUSED, false},
    [ERROR_HALFWAY] = {LEASE_AGAIN, EVLOCK_EREFUSED, false},
};

CASE(each_error_has_its_meaning) {
    for (enum reply_error error = ERROR_NONE + 1; error < ERRORS; error++) {
        struct reply_meaning meaning = evl_reply_meaning(error);
        assert_int_equal(meaning.verdict, outcomes[error].verdict);
        assert_int_equal(meaning.status, outcomes[error].status);
        assert_int_equal(meaning.reconnect, outcomes[error].reconnect);
        assert_int_equal(evl_reply_is_lacking(meaning),
                         meaning.status == EVLOCK_EUNSUPPORTED || meaning.status == EVLOCK_EPERM);
    }
}

/* Of a code that nobody knows, nobody knows for how long. */
CASE(what_passes_is_for_now) {
    for (enum reply_error error = ERROR_NONE + 1; error < ERRORS; error++)
        assert_int_equal(evl_reply_passes(error), outcomes[error].verdict == LEASE_REFUSED && error != ERROR_STRANGE);
}

CASE(keys_that_are_not_in_one_place_are_known) {
    for (enum reply_error error = ERROR_NONE + 1; error < ERRORS; error++)
        assert_int_equal(evl_reply_is_scattered(error),
                         error == ERROR_CROSS_SLOT || error == ERROR_SLOTS || error == ERROR_NOT_LOCAL);
}

CASE(what_stands_in_the_place_of_an_error_is_one) {
    static const char words[] = "MOVED to be sent again";
    struct reply reply = evl_reply_instead(ERROR_ELSEWHERE, words);

    assert_int_equal(reply.type, REPLY_ERROR);
    assert_ptr_equal(reply.text, words);
    assert_int_equal(reply.len, strlen(words));
    assert_true(evl_reply_sends_on(&reply));
    reply = evl_reply_instead(ERROR_HALFWAY, words);
    assert_true(evl_reply_sends_on(&reply));
    reply = evl_reply_of(words); /* a server's own words */
    assert_false(evl_reply_sends_on(&reply));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_text_is_read_as_what_it_says),
        cmocka_unit_test(each_error_has_its_meaning),
        cmocka_unit_test(what_passes_is_for_now),
        cmocka_unit_test(keys_that_are_not_in_one_place_are_known),
        cmocka_unit_test(what_stands_in_the_place_of_an_error_is_one),
    };
    return cmocka_run_group_tests_name("reply", tests, NULL, NULL);
}
