/*
 * When the next connection is made: tables of how connections end, and of the pauses that follow. Times are in
 * milliseconds here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "reconnect.h"

#define MS 1000
#define LEAST 100 /* of a pause */
#define MOST 1000
#define NOW 50000

static const struct client_config plain = {.backoff_min = LEAST * MS, .backoff_max = MOST * MS};
static const struct client_config renewing = {
    .backoff_min = LEAST * MS, .backoff_max = MOST * MS, .renews_credentials = true};

static struct reconnect fresh(void) {
    struct reconnect reconnect = {1, 2, 3, 2};

    evl_reconnect_reset(&reconnect, &plain);
    return reconnect;
}

/* Until the next connection, by this number: UINT64_MAX / 2 or so is neither end of what is random. */
static int64_t pause_by(struct reconnect *reconnect, int status, const char *words, uint64_t random) {
    return evl_reconnect_pause(reconnect, &plain, (struct trouble){status, words}, (int64_t)NOW * MS, random) / MS -
           NOW;
}

/* The longest that it may be. */
static int64_t pause_of(struct reconnect *reconnect, int status, const char *words) {
    int64_t pause = 0;

    for (uint64_t half = LEAST * MS / 2; half <= (uint64_t)MOST * MS / 2; half += MS / 2) {
        struct reconnect copy = *reconnect;
        int64_t by = pause_by(&copy, status, words, half);

        pause = by > pause ? by : pause;
    }
    (void)pause_by(reconnect, status, words, 0);
    return pause;
}

CASE(nothing_is_known_of_a_server_that_is_new) {
    struct reconnect reconnect = fresh();

    assert_int_equal(reconnect.backoff, LEAST * MS);
    assert_int_equal(reconnect.brief, 0);
    assert_int_equal(reconnect.not_before, 0);
    assert_int_equal(reconnect.nonsense, 0);
}

CASE(pauses_double_up_to_the_greatest) {
    struct reconnect reconnect = fresh();
    static const int pauses[] = {100, 200, 400, 800, 1000, 1000};

    for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++)
        assert_int_equal(pause_of(&reconnect, EVLOCK_EUNREACHABLE, "Connection refused"), pauses[i]);
}

CASE(half_of_a_pause_is_random) {
    struct reconnect reconnect = fresh();
    static const struct {
        uint64_t random;
        int pause;
    } said[] = {{0, 50}, {50 * MS, 100}, {50 * MS + 1, 50}, {25 * MS, 75}, {100 * MS + 1, 100}};

    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
        struct reconnect copy = reconnect;
        assert_int_equal(pause_by(&copy, EVLOCK_EUNREACHABLE, "", said[i].random), said[i].pause);
    }
}

CASE(what_no_quick_return_mends_pauses_longest) {
    static const struct {
        int status;
        const char *words;
        int pause;
    } said[] = {
        {EVLOCK_EUNREACHABLE, "", LEAST},
        {EVLOCK_EUNREACHABLE, "ERR max number of clients reached", MOST},
        {EVLOCK_EPROTOCOL, "ERR max requests limit exceeded", MOST},
        {EVLOCK_EUNREACHABLE, "LOADING", LEAST},
        {EVLOCK_EPROTOCOL, "", LEAST},
        {EVLOCK_ENOMEM, "out of memory", LEAST},
        {EVLOCK_EAUTH, "WRONGPASS", MOST},
        {EVLOCK_ECERT, "expired", MOST},
        {EVLOCK_EPERM, "NOPERM", MOST},
        {EVLOCK_EUNSUPPORTED, "ERR unknown command", MOST},
        {EVLOCK_ESAME, "the same server", MOST},
        {EVLOCK_EMASTER, "no such master", MOST},
    };

    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
        struct reconnect reconnect = fresh();

        assert_int_equal(pause_of(&reconnect, said[i].status, said[i].words), said[i].pause);
        assert_int_equal(reconnect.backoff, (said[i].pause == MOST ? MOST : 2 * LEAST) * MS);
    }
}

/* Of a server that says when it is of use, and one at which that has passed. */
CASE(a_moment_that_is_known_is_waited_for_and_is_no_failure) {
    struct reconnect reconnect = fresh();

    (void)pause_of(&reconnect, EVLOCK_EUNREACHABLE, "");
    (void)pause_of(&reconnect, EVLOCK_EUNREACHABLE, "");
    reconnect.not_before = (int64_t)(NOW + 3000) * MS;
    assert_int_equal(pause_by(&reconnect, EVLOCK_EPERM, "", 0), 3000 + LEAST / 2);
    assert_int_equal(reconnect.not_before, 0);
    assert_int_equal(pause_of(&reconnect, EVLOCK_EUNREACHABLE, ""), LEAST);
    reconnect.not_before = (int64_t)(NOW - 3000) * MS;
    assert_int_equal(pause_by(&reconnect, EVLOCK_EUNREACHABLE, "", 0), LEAST / 2);
}

CASE(nonsense_is_counted_up_to_two) {
    struct reconnect reconnect = fresh();
    static const struct {
        int status, count;
    } said[] = {{EVLOCK_EUNREACHABLE, 0},
                {EVLOCK_EPROTOCOL, 1},
                {EVLOCK_EAUTH, 1},
                {EVLOCK_EPROTOCOL, 2},
                {EVLOCK_EPROTOCOL, 2}};

    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
        (void)pause_by(&reconnect, said[i].status, "", 0);
        assert_int_equal(reconnect.nonsense, said[i].count);
    }
}

CASE(who_was_of_use_is_tried_at_once) {
    static const struct {
        const struct client_config *config;
        struct served served;
        bool at_once;
    } said[] = {
        {&plain, {EVLOCK_EUNREACHABLE, 0, true}, true},
        {&plain, {EVLOCK_EUNREACHABLE, 0, false}, false},
        {&plain, {EVLOCK_EUNREACHABLE, MOST * MS, false}, false},
        {&plain, {EVLOCK_EUNREACHABLE, MOST * MS + 1, false}, true},
        {&plain, {EVLOCK_EPROTOCOL, 0, true}, true},
        {&plain, {EVLOCK_EAUTH, 0, true}, false},
        {&renewing, {EVLOCK_EAUTH, 0, true}, true},
        {&renewing, {EVLOCK_EPERM, 0, true}, false},
        {&plain, {EVLOCK_ENOMEM, 0, true}, false},
        {&plain, {EVLOCK_EUNSUPPORTED, MOST * MS * 9, true}, false},
    };

    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
        struct reconnect reconnect = fresh();

        if (evl_reconnect_after(&reconnect, said[i].config, said[i].served) != said[i].at_once)
            fail_msg("row %zu", i);
    }
}

/* A server that answers, hangs up, and does so again: each connection is of use, for no time. */
CASE(who_does_not_last_is_tried_at_once_only_once) {
    struct reconnect reconnect = fresh();
    struct served brief = {EVLOCK_EUNREACHABLE, MS, true};
    static const int pauses[] = {100, 200, 400, 800, 1000, 1000};

    assert_true(evl_reconnect_after(&reconnect, &plain, brief));
    for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
        assert_false(evl_reconnect_after(&reconnect, &plain, brief));
        assert_int_equal(pause_of(&reconnect, EVLOCK_EUNREACHABLE, ""), pauses[i]);
    }
}

/* Eight times the pause before it, and never more than the greatest pause. */
CASE(who_lasted_is_tried_at_once_again) {
    static const struct {
        int before; /* so many did not last */
        int span;
        bool at_once;
    } said[] = {{1, 799, false}, {1, 800, true}, {2, 999, false}, {2, 1000, true}, {9, 999, false}, {9, 1000, true}};

    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
        struct reconnect reconnect = fresh();

        for (int j = 0; j < said[i].before; j++)
            (void)evl_reconnect_after(&reconnect, &plain, (struct served){EVLOCK_EUNREACHABLE, 0, true});
        if (evl_reconnect_after(&reconnect, &plain, (struct served){EVLOCK_EUNREACHABLE, said[i].span * MS, true}) !=
            said[i].at_once)
            fail_msg("row %zu", i);
    }
}

/* Those that are of no use do not make the pauses begin anew. */
CASE(who_served_nobody_earns_nothing) {
    struct reconnect reconnect = fresh();

    for (int pause = LEAST; pause < MOST; pause *= 2) {
        assert_false(evl_reconnect_after(&reconnect, &plain, (struct served){EVLOCK_EUNREACHABLE, MS, false}));
        assert_int_equal(pause_of(&reconnect, EVLOCK_EUNREACHABLE, ""), pause);
    }
    assert_true(evl_reconnect_after(&reconnect, &plain, (struct served){EVLOCK_EUNREACHABLE, MS, true}));
    assert_int_equal(pause_of(&reconnect, EVLOCK_EUNREACHABLE, ""), LEAST);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_known_of_a_server_that_is_new),
        cmocka_unit_test(pauses_double_up_to_the_greatest),
        cmocka_unit_test(half_of_a_pause_is_random),
        cmocka_unit_test(what_no_quick_return_mends_pauses_longest),
        cmocka_unit_test(a_moment_that_is_known_is_waited_for_and_is_no_failure),
        cmocka_unit_test(nonsense_is_counted_up_to_two),
        cmocka_unit_test(who_was_of_use_is_tried_at_once),
        cmocka_unit_test(who_does_not_last_is_tried_at_once_only_once),
        cmocka_unit_test(who_lasted_is_tried_at_once_again),
        cmocka_unit_test(who_served_nobody_earns_nothing),
    };
    return cmocka_run_group_tests_name("reconnect", tests, NULL, NULL);
}
