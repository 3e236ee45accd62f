/* A server as a login finds it: tables of what it says, and of what that means beside the server of before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server.h"

#define SECOND 1000000
#define NOW ((int64_t)5000 * SECOND)

/* --- What it says ------------------------------------------------------------------------------------------------- */

CASE(nothing_is_said_by_the_server_of_before) {
    struct server server, fresh = {.inherited = true};

    evl_native_reset(&fresh.native);
    memset(&server, 0xa5, sizeof(server));
    evl_server_reset(&server);
    assert_string_equal(server.run_id, "");
    assert_string_equal(server.replid, "");
    assert_string_equal(server.load_error, "");
    assert_string_equal(server.clock_error, "");
    assert_true(server.inherited);
    assert_false(server.bare || server.renews_many || server.renews_by_tag || server.shared || server.spells ||
                 server.lacks_evalsha || server.reading || server.hides_clock);
    assert_true(server.id == 0 && server.started == 0 && server.reigned_since == 0 && server.confirmed_at == 0 &&
                server.asked_history_at == 0 && server.asked_clock_at == 0);
    assert_true(server.marks_refused == 0 && server.missing == 0 && server.clock.server == 0);
    assert_true(server.native.refreshes_from == fresh.native.refreshes_from && !server.native.deletion);
}

CASE(a_process_began_a_second_later_than_its_uptime_says) {
    static const struct {
        int64_t uptime, started;
    } said[] = {{-1, 0}, {0, NOW + SECOND}, {1, NOW}, {42, NOW - (int64_t)41 * SECOND}};

    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
        struct server server;
        struct info_server info = {.run_id = "abc", .uptime = said[i].uptime, .renews_many = i % 2};

        evl_server_reset(&server);
        evl_server_learn(&server, &info, NOW);
        assert_true(server.started == said[i].started);
        assert_string_equal(server.run_id, "abc");
        assert_int_equal(server.renews_many, i % 2);
    }
}

CASE(its_version_says_what_commands_it_has) {
    struct server server;
    struct info_server info = {.uptime = -1, .redis = 804};

    evl_server_reset(&server);
    evl_server_learn(&server, &info, NOW);
    assert_non_null(server.native.deletion);
    evl_server_reset(&server);
    assert_null(server.native.deletion);
}

CASE(what_its_data_are_is_taken_whole) {
    struct server server;
    struct info_data info = {.replid = "def", .bare = true};

    evl_server_reset(&server);
    evl_server_learn_data(&server, &info);
    assert_string_equal(server.replid, "def");
    assert_true(server.bare && !server.inherited);
    evl_server_learn_data(&server, &(struct info_data){.inherited = true});
    assert_string_equal(server.replid, "");
    assert_true(!server.bare && server.inherited);
}

/* A hundredth of it may be its clock's. */
CASE(a_history_is_as_old_as_it_surely_is) {
    static const struct {
        int64_t age, since;
    } said[] = {
        {-1, NOW},
        {0, NOW},
        {100, NOW - 99},
        {(int64_t)1000 * SECOND, NOW - (int64_t)990 * SECOND},
        {INT64_C(5050505050), -1}, /* it began when the clock here read 0, which would stand for none */
        {2 * NOW, NOW - 2 * NOW + NOW / 50},
    };

    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
        struct server server;

        evl_server_reset(&server);
        evl_server_learn_age(&server, said[i].age, NOW);
        if (server.reigned_since != said[i].since)
            fail_msg("row %zu: %lld", i, (long long)server.reigned_since);
    }
}

/* --- Whose connection it sees ------------------------------------------------------------------------------------- */

/* Ages are in whole seconds of a clock that was read at two moments, so two seconds more are still its own. */
CASE(a_connection_of_others_has_another_number_or_is_older) {
    static const struct {
        int64_t own, id, age, passed;
        bool another;
    } said[] = {
        {7, 7, 0, 0, false},
        {7, 8, 0, 0, true},
        {7, -1, 0, 0, false}, /* it is not said */
        {0, 8, 0, 0, false},  /* its own is not known */
        {7, 7, 2, 0, false},
        {7, 7, 3, 0, true},
        {7, 7, 3, SECOND - 1, true},
        {7, 7, 3, SECOND, false},
        {7, 7, 4, SECOND, true},
        {7, -1, -1, 0, false},
        {0, -1, 600, (int64_t)600 * SECOND, false},
        {0, -1, 700, (int64_t)600 * SECOND, true},
    };

    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
        struct server server;

        evl_server_reset(&server);
        server.id = said[i].own;
        if (evl_server_sees_another(&server, said[i].id, said[i].age, said[i].passed) != said[i].another)
            fail_msg("row %zu", i);
    }
}

CASE(a_shared_connection_has_no_number_of_its_own) {
    struct server server;

    evl_server_reset(&server);
    server.id = 7;
    evl_server_share(&server);
    assert_true(server.shared && server.id == 0);
}

/* It was read somewhere between the question and the answer: from the question on it would be ahead. */
CASE(a_clock_goes_on_from_its_answer) {
    static const struct {
        int64_t now, shows;
    } said[] = {{900, 5000}, {1000, 5000}, {1001, 5001}, {1700, 5700}, {100, 5000}};
    struct server server;

    evl_server_reset(&server);
    server.clock = (struct clock_reading){.server = 5000, .sent = 400, .received = 1000};
    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++)
        assert_true(evl_server_clock(&server, said[i].now) == said[i].shows);
}

/* --- Before and now ----------------------------------------------------------------------------------------------- */

/* Processes P and Q, histories X and Y; "": it is not said. */
CASE(another_process_and_other_data_are_told_from_the_same) {
    static const struct {
        const char *was, *is;  /* the process */
        const char *had, *has; /* the history */
        bool inherited;
        bool same, other, other_data;
    } said[] = {
        {"P", "P", "X", "X", false, true, false, false},
        {"P", "Q", "X", "X", false, false, true, false}, /* it restarted with its data */
        {"P", "Q", "X", "Y", false, false, true, true},  /* and without */
        {"P", "P", "X", "Y", false, true, false, false}, /* its first replica came */
        {"P", "P", "X", "Y", true, true, false, true},   /* it was a replica meanwhile */
        {"P", "Q", "X", "X", true, false, true, false},  /* promoted, it goes on with the history */
        {"P", "Q", "X", "Y", true, false, true, true},
        {"", "P", "", "X", true, false, false, false}, /* the first login of all */
        {"P", "", "X", "", true, false, false, false}, /* INFO is refused now */
        {"P", "", "X", "Y", false, false, false, true},
        {"", "", "X", "Y", false, false, false, true},
        {"", "P", "X", "Y", false, false, false, true},
    };

    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
        struct server before = {0}, now = {.inherited = said[i].inherited};

        strcpy(before.run_id, said[i].was);
        strcpy(now.run_id, said[i].is);
        strcpy(before.replid, said[i].had);
        strcpy(now.replid, said[i].has);
        if (evl_server_is_same(&now, &before) != said[i].same || evl_server_is_other(&now, &before) != said[i].other ||
            evl_server_has_other_data(&now, &before) != said[i].other_data)
            fail_msg("row %zu", i);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_said_by_the_server_of_before),
        cmocka_unit_test(a_process_began_a_second_later_than_its_uptime_says),
        cmocka_unit_test(its_version_says_what_commands_it_has),
        cmocka_unit_test(what_its_data_are_is_taken_whole),
        cmocka_unit_test(a_history_is_as_old_as_it_surely_is),
        cmocka_unit_test(a_connection_of_others_has_another_number_or_is_older),
        cmocka_unit_test(a_shared_connection_has_no_number_of_its_own),
        cmocka_unit_test(a_clock_goes_on_from_its_answer),
        cmocka_unit_test(another_process_and_other_data_are_told_from_the_same),
    };
    return cmocka_run_group_tests_name("server", tests, NULL, NULL);
}
