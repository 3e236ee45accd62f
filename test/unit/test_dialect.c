/*
 * Answers, as they are read: of each row, which replies its command can have, and what they say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "dialect.h"

#define TTL INT64_C(10000000)
#define DECADE (INT64_C(10) * 366 * 24 * 3600 * 1000)
#define FENCE_MOST (INT64_C(1) << 53)

static const struct reply ok = {.type = REPLY_OK, .text = "OK", .len = 2};
static const struct reply nil = {.type = REPLY_NIL};
static const struct reply other = {.type = REPLY_OTHER};
static const struct reply renewed = {.type = REPLY_RENEWED};
static const struct reply again = {.type = REPLY_AGAIN};

static struct reply number(int64_t integer) {
    return (struct reply){.type = REPLY_INTEGER, .integer = integer};
}

static struct reply text(const char *text) {
    return (struct reply){.type = REPLY_STRING, .text = text, .len = strlen(text)};
}

static struct reply error(const char *text) {
    return evl_reply_of(text);
}

static const struct dialect *plain(void) {
    return evl_dialect(LOCK_PLAIN, TAKE_AT_ONCE);
}

static const struct dialect *fenced(void) {
    return evl_dialect(LOCK_PLAIN, TAKE_FENCED);
}

static const struct dialect *queued(void) {
    return evl_dialect(LOCK_QUEUED, TAKE_IN_LINE);
}

static struct reading read_it(const struct dialect *dialect, enum lease_command command, struct reply reply) {
    struct reading reading;

    assert_true(evl_dialect_read(dialect, command, &reply, TTL, &reading));
    return reading;
}

static void assert_says(const struct dialect *dialect, enum lease_command command, struct reply reply,
                        enum lease_verdict verdict, int64_t ttl) {
    struct reading reading = read_it(dialect, command, reply);

    assert_int_equal(reading.answer.verdict, verdict);
    assert_int_equal(reading.answer.ttl, ttl);
    assert_null(reading.words);
}

static void assert_cannot(const struct dialect *dialect, enum lease_command command, struct reply reply) {
    struct reading reading;

    assert_false(evl_dialect_read(dialect, command, &reply, TTL, &reading));
}

/* --- A lease's commands ------------------------------------------------------------------------------------------- */

CASE(a_set_says_ok_or_nil) {
    assert_says(plain(), LEASE_ACQUIRE, ok, LEASE_YES, 0);
    assert_says(plain(), LEASE_ACQUIRE, nil, LEASE_NO, 0);
    assert_cannot(plain(), LEASE_ACQUIRE, number(0));
    assert_cannot(plain(), LEASE_ACQUIRE, number(1));
    assert_cannot(plain(), LEASE_ACQUIRE, text("1 2 3"));
    assert_cannot(plain(), LEASE_ACQUIRE, renewed);
    assert_cannot(plain(), LEASE_ACQUIRE, other);
}

CASE(a_fenced_acquire_says_its_fence) {
    assert_says(fenced(), LEASE_ACQUIRE, number(0), LEASE_NO, 0);
    assert_says(fenced(), LEASE_ACQUIRE, number(7), LEASE_YES, 0);
    assert_int_equal(read_it(fenced(), LEASE_ACQUIRE, number(FENCE_MOST)).answer.fence, FENCE_MOST);
    assert_int_equal(read_it(plain(), LEASE_RAISE, number(7)).answer.fence, 7);
    assert_cannot(fenced(), LEASE_ACQUIRE, number(FENCE_MOST + 1));
    assert_cannot(fenced(), LEASE_ACQUIRE, number(-1));
    assert_cannot(fenced(), LEASE_ACQUIRE, ok);
    assert_cannot(fenced(), LEASE_ACQUIRE, nil);
}

CASE(an_acquire_says_how_many_fences_it_drew) {
    const struct dialect *const draw[] = {fenced(), queued()};
    struct reading reading;

    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(read_it(draw[i], LEASE_ACQUIRE, number(7)).answer.spare, 0);
        assert_says(draw[i], LEASE_ACQUIRE, text("7 1"), LEASE_YES, 0);
        reading = read_it(draw[i], LEASE_ACQUIRE, text("9007199254740992 65535"));
        assert_int_equal(reading.answer.fence, FENCE_MOST);
        assert_int_equal(reading.answer.spare, UINT16_MAX);
        assert_cannot(draw[i], LEASE_ACQUIRE, text("9007199254740993 1"));
        assert_cannot(draw[i], LEASE_ACQUIRE, text("0 1"));
        assert_cannot(draw[i], LEASE_ACQUIRE, text("7 0"));
        assert_cannot(draw[i], LEASE_ACQUIRE, text("7 -1"));
        assert_cannot(draw[i], LEASE_ACQUIRE, text("7 65536"));
        assert_cannot(draw[i], LEASE_ACQUIRE, text("7 x"));
        assert_cannot(draw[i], LEASE_ACQUIRE, text("7"));
        assert_cannot(draw[i], LEASE_ACQUIRE, text(""));
    }
    assert_cannot(fenced(), LEASE_ACQUIRE, text("7 1 1"));
    assert_cannot(fenced(), LEASE_RAISE, text("7 1"));
}

CASE(who_joins_has_the_lock_or_a_place) {
    struct reading reading;

    assert_says(queued(), LEASE_ACQUIRE, number(1), LEASE_YES, 0);
    assert_says(queued(), LEASE_ACQUIRE, text("5 0 -1"), LEASE_QUEUED, LEASE_NEVER);
    reading = read_it(queued(), LEASE_ACQUIRE, text("5 3 200"));
    assert_int_equal(reading.answer.time, 5);
    assert_int_equal(reading.answer.ahead, 3);
    assert_int_equal(reading.answer.ttl, 200000);
    assert_cannot(queued(), LEASE_ACQUIRE, number(0));
    assert_int_equal(read_it(queued(), LEASE_ACQUIRE, text("0 3 200")).answer.time, 0);
    assert_cannot(queued(), LEASE_ACQUIRE, text("-1 3 200"));
    assert_cannot(queued(), LEASE_ACQUIRE, text("5 -1 200"));
    assert_cannot(queued(), LEASE_ACQUIRE, text("5 3 -2"));
    assert_cannot(queued(), LEASE_ACQUIRE, text("5 3 -9223372036854775808"));
    assert_cannot(queued(), LEASE_ACQUIRE, text("5 3 200x"));
    assert_cannot(queued(), LEASE_ACQUIRE, ok);
}

CASE(what_prolongs_says_the_ttl) {
    static const enum lease_command commands[] = {LEASE_RENEW,   LEASE_REARM, LEASE_MEND,
                                                  LEASE_REPLACE, LEASE_ADD,   LEASE_ADOPT};

    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        assert_says(plain(), commands[i], number(0), LEASE_NO, 0);
        assert_says(plain(), commands[i], number(7), LEASE_YES, 7000);
        assert_says(plain(), commands[i], number(INT64_MAX), LEASE_YES, DECADE * 1000);
        assert_cannot(plain(), commands[i], number(-2));
        assert_cannot(plain(), commands[i], number(INT64_MIN)); /* nor is it reckoned with */
        assert_cannot(plain(), commands[i], ok);
        assert_cannot(plain(), commands[i], text("7"));
        if (commands[i] != LEASE_RENEW)
            assert_cannot(plain(), commands[i], renewed);
    }
}

CASE(a_refresh_says_ok_or_nil) {
    assert_says(plain(), LEASE_REFRESH, ok, LEASE_YES, TTL);
    assert_int_equal(read_it(queued(), LEASE_REFRESH, nil).answer.verdict, LEASE_NO);
    assert_cannot(plain(), LEASE_REFRESH, number(1));
    assert_cannot(plain(), LEASE_REFRESH, text("token"));
    assert_cannot(plain(), LEASE_REFRESH, renewed);
}

CASE(a_key_without_expiry_is_adopted_and_renewed_and_not_added_to) {
    struct reading reading = read_it(plain(), LEASE_ADD, number(-1));

    assert_says(plain(), LEASE_ADOPT, number(-1), LEASE_YES, LEASE_NEVER);
    assert_says(plain(), LEASE_RENEW, number(-1), LEASE_YES, LEASE_NEVER);
    assert_says(plain(), LEASE_REARM, number(-1), LEASE_YES, LEASE_NEVER);
    assert_cannot(plain(), LEASE_REPLACE, number(-1));
    assert_int_equal(reading.answer.verdict, LEASE_REFUSED);
    assert_int_equal(reading.answer.status, EVLOCK_ENOTTL);
    assert_string_equal(reading.words, "the key has no expiry");
}

CASE(a_member_of_a_batch_has_the_ttl_or_asks_again) {
    assert_says(plain(), LEASE_RENEW, renewed, LEASE_YES, TTL);
    assert_says(plain(), LEASE_RENEW, again, LEASE_AGAIN, 0);
    assert_cannot(plain(), LEASE_RELEASE, again);
}

CASE(a_release_says_one_or_zero) {
    assert_says(plain(), LEASE_RELEASE, number(1), LEASE_YES, 0);
    assert_says(queued(), LEASE_RELEASE, number(0), LEASE_NO, 0);
    assert_says(queued(), LEASE_RELEASE, number(2), LEASE_YES, 0);
    assert_true(read_it(queued(), LEASE_RELEASE, number(2)).no_clock);
    assert_false(read_it(queued(), LEASE_RELEASE, number(1)).no_clock);
    assert_cannot(queued(), LEASE_RELEASE, number(3));
    assert_cannot(plain(), LEASE_RELEASE, number(2));
    assert_cannot(plain(), LEASE_RELEASE, number(-1));
    assert_cannot(plain(), LEASE_RELEASE, ok);
}

CASE(an_error_is_read_with_its_words) {
    const struct reply lost = {.type = REPLY_LOST, .text = "gone"};

    for (enum lease_command command = LEASE_ACQUIRE; command <= LEASE_RELEASE; command++) {
        struct reading reading = read_it(plain(), command, lost);
        assert_int_equal(reading.answer.verdict, LEASE_UNKNOWN);
        assert_int_equal(reading.answer.status, EVLOCK_EUNREACHABLE);
        assert_string_equal(reading.words, "gone");
        reading = read_it(plain(), command, error("WRONGTYPE a list"));
        assert_int_equal(reading.answer.verdict, evl_lease_prolongs(command) ? LEASE_NO : LEASE_FORBIDDEN);
        assert_int_equal(reading.answer.status, EVLOCK_EWRONGTYPE);
        assert_string_equal(reading.words, "WRONGTYPE a list");
    }
}

/* --- Questions ---------------------------------------------------------------------------------------------------- */

static void assert_finds(enum ask ask, struct reply reply, bool there, int64_t what) {
    struct found found;

    assert_true(evl_dialect_find(plain(), ask, &reply, &found));
    assert_int_equal(found.there, there);
    if (there)
        assert_int_equal(found.number, what);
}

static void assert_finds_none(enum ask ask, struct reply reply) {
    struct found found;

    assert_false(evl_dialect_find(plain(), ask, &reply, &found));
}

CASE(a_text_is_found_or_not_there) {
    struct reply mark = text("token");
    struct found found;

    for (enum ask ask = ASK_TOKEN; ask <= ASK_MARK; ask += ASK_MARK - ASK_TOKEN) {
        assert_finds(ask, nil, false, 0);
        assert_finds_none(ask, ok);
        assert_finds_none(ask, number(1));
        assert_true(evl_dialect_find(plain(), ask, &mark, &found));
        assert_true(found.there);
        assert_int_equal(found.text.len, 5);
        assert_memory_equal(found.text.data, "token", 5);
    }
    mark.len = MARK_SIZE + 1;
    assert_finds_none(ASK_MARK, mark);
    assert_finds(ASK_TOKEN, mark, true, 0);
}

static void assert_finds_state(enum ask ask, struct reply reply, struct found expected) {
    struct found found;

    assert_true(evl_dialect_find(plain(), ask, &reply, &found));
    assert_int_equal(found.there, expected.there);
    assert_int_equal(found.ttl, expected.ttl);
    assert_int_equal(found.waiters, expected.waiters);
    assert_int_equal(found.place, expected.place);
    assert_int_equal(found.text.len, expected.text.len);
    if (expected.text.len > 0)
        assert_memory_equal(found.text.data, expected.text.data, expected.text.len);
}

CASE(numbers_are_found_as_they_are_meant) {
    assert_finds_state(ASK_TTL, number(-2), (struct found){0});
    assert_finds_state(ASK_TTL, number(-1), (struct found){.there = true, .ttl = INT64_MAX});
    assert_finds_state(ASK_TTL, number(0), (struct found){.there = true, .ttl = 1});
    assert_finds_state(ASK_TTL, number(7), (struct found){.there = true, .ttl = 7});
    assert_finds_state(ASK_WAITERS, number(0), (struct found){.there = true});
    assert_finds_state(ASK_WAITERS, number(7), (struct found){.there = true, .waiters = 7});
    assert_finds_state(ASK_PLACE, number(0), (struct found){.there = true, .place = 1});
    assert_finds_state(ASK_PLACE, nil, (struct found){0});
    assert_finds(ASK_BREAK, number(1), true, 1);
    assert_finds(ASK_RENEWAL, number(7), true, 7);
    assert_finds(ASK_REPLICAS, number(2), true, 2);
}

CASE(a_break_that_hands_on_says_where_it_had_no_clock) {
    static const struct reply done = {.type = REPLY_INTEGER, .integer = 1},
                              undone = {.type = REPLY_INTEGER, .integer = 2};
    struct found found;

    assert_true(evl_dialect_find(queued(), ASK_BREAK, &done, &found));
    assert_false(found.no_clock);
    assert_true(evl_dialect_find(queued(), ASK_BREAK, &undone, &found));
    assert_true(found.no_clock && found.number);
}

CASE(what_is_no_such_number_is_not_found) {
    for (enum ask ask = ASK_TTL; ask < ASKS; ask++) {
        if (ask == ASK_MARK || ask == ASK_STATE || ask == ASK_WHOLE || ask == ASK_LIST)
            continue;
        assert_finds_none(ask, ok);
        assert_finds_none(ask, text("7"));
        if (ask != ASK_PLACE)
            assert_finds_none(ask, nil);
    }
    assert_finds_none(ASK_TTL, number(-3));
    assert_finds_none(ASK_WAITERS, number(-1));
    assert_finds_none(ASK_WAITERS, number(INT64_MAX));
    assert_finds_none(ASK_PLACE, number(-1));
    assert_finds_none(ASK_PLACE, number(INT64_MAX));
}

CASE(a_page_is_a_text) {
    assert_finds(ASK_LIST, text("0 1 a"), true, 0);
    assert_finds_none(ASK_LIST, nil);
    assert_finds_none(ASK_LIST, ok);
    assert_finds_none(ASK_LIST, number(0));
}

CASE(a_state_is_found_at_once) {
    for (enum ask ask = ASK_STATE; ask <= ASK_WHOLE; ask++) {
        assert_finds_state(ask, text("-2 0 -1 "), (struct found){0});
        assert_finds_state(ask, text("-2 3 2 "), (struct found){.waiters = 3, .place = 3});
        assert_finds_state(ask, text("7 3 0 a b"), (struct found){true, 0, 7, 3, 1, {"a b", 3}, false});
        assert_finds_state(ask, text("-1 0 -1 x"), (struct found){true, 0, INT64_MAX, 0, 0, {"x", 1}, false});
        assert_finds_state(ask, text("0 0 -1 "), (struct found){true, 0, 1, 0, 0, {"", 0}, false});
        assert_finds_state(ask, text("9223372036854775807 9223372036854775806 9223372036854775806 x"),
                           (struct found){true, 0, INT64_MAX, INT64_MAX - 1, INT64_MAX, {"x", 1}, false});
    }
}

CASE(what_is_no_state_is_not_found) {
    static const char *const bad[] = {
        "",
        "7",
        "7 3",
        "7 3 0",
        "7 3 0x",
        "x 3 0 t",
        "7 x 0 t",
        "7 3 x t",
        "-3 3 0 t",
        "7 -1 0 t",
        "7 3 -2 t",
        "7,3,0,t",
        "7 9223372036854775807 0 t",
        "7 3 9223372036854775807 t",
    };

    for (enum ask ask = ASK_STATE; ask <= ASK_WHOLE; ask++) {
        assert_finds_none(ask, ok);
        assert_finds_none(ask, nil);
        assert_finds_none(ask, number(1));
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
            assert_finds_none(ask, text(bad[i]));
    }
}

/* Who would wait in line polls; a server that says the same is believed as to itself alone. */
CASE(without_a_clock_there_is_no_line) {
    struct reply no_clock = evl_reply_instead(ERROR_NO_CLOCK, "NOTIME it gives its clock nowhere");
    struct reading reading = read_it(queued(), LEASE_ACQUIRE, no_clock);

    assert_int_equal(reading.answer.verdict, LEASE_REFUSED);
    assert_int_equal(reading.answer.status, EVLOCK_EHELD);
    reading = read_it(queued(), LEASE_ACQUIRE, error("NOTIME the server gives its clock nowhere"));
    assert_int_equal(reading.answer.verdict, LEASE_FORBIDDEN);
    assert_int_equal(reading.answer.status, EVLOCK_EUNSUPPORTED);
    reading = read_it(fenced(), LEASE_ACQUIRE, no_clock);
    assert_int_equal(reading.answer.verdict, LEASE_FORBIDDEN);
    assert_int_equal(reading.answer.status, EVLOCK_EUNSUPPORTED);
}

/* Also a kind that is yet to come. */
CASE(each_kind_has_all_its_rows_however_it_is_taken) {
    for (enum lock_kind kind = 0; kind < LOCK_KINDS; kind++) {
        for (enum taking taking = 0; taking < TAKINGS; taking++) {
            if (taking == TAKE_IN_LINE && !evl_kind_has_queue(kind))
                continue;
            const struct dialect *dialect = evl_dialect(kind, taking);
            for (enum lease_command command = LEASE_ACQUIRE; command <= LEASE_RELEASE; command++)
                assert_non_null(dialect->commands[command]);
            for (enum ask ask = 0; ask < ASKS; ask++)
                assert_ptr_equal(dialect->asks[ask], evl_dialect(kind, TAKE_AT_ONCE)->asks[ask]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_says_ok_or_nil),
        cmocka_unit_test(a_fenced_acquire_says_its_fence),
        cmocka_unit_test(an_acquire_says_how_many_fences_it_drew),
        cmocka_unit_test(who_joins_has_the_lock_or_a_place),
        cmocka_unit_test(what_prolongs_says_the_ttl),
        cmocka_unit_test(a_refresh_says_ok_or_nil),
        cmocka_unit_test(a_key_without_expiry_is_adopted_and_renewed_and_not_added_to),
        cmocka_unit_test(a_member_of_a_batch_has_the_ttl_or_asks_again),
        cmocka_unit_test(a_release_says_one_or_zero),
        cmocka_unit_test(an_error_is_read_with_its_words),
        cmocka_unit_test(without_a_clock_there_is_no_line),
        cmocka_unit_test(each_kind_has_all_its_rows_however_it_is_taken),
        cmocka_unit_test(a_text_is_found_or_not_there),
        cmocka_unit_test(numbers_are_found_as_they_are_meant),
        cmocka_unit_test(a_break_that_hands_on_says_where_it_had_no_clock),
        cmocka_unit_test(what_is_no_such_number_is_not_found),
        cmocka_unit_test(a_page_is_a_text),
        cmocka_unit_test(a_state_is_found_at_once),
        cmocka_unit_test(what_is_no_state_is_not_found),
    };
    return cmocka_run_group_tests_name("dialect", tests, NULL, NULL);
}
