/*
 * Tokens: their form, that no two are the same, what becomes of the random bytes, who else draws from them, and where
 * in a token its holder's name ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "tickets.h"
#include "token.h"

static struct entropy entropy;
static long given = -1; /* so many bytes at most; negative: as the system does */
static int asked;

/* In place of the C library's. */
ssize_t getrandom(void *bytes, size_t len, unsigned flags) {
    asked++;
    if (given >= 0 && (size_t)given < len)
        len = (size_t)given;
    return len ? (ssize_t)syscall(SYS_getrandom, bytes, len, flags) : -1;
}

CASE(a_token_is_a_random_uuid_in_lower_case) {
    for (int round = 0; round < 1000; round++) {
        char token[EVL_TOKEN_TEXT + 1];
        token[EVL_TOKEN_TEXT] = '#';
        assert_true(evl_token_generate(&entropy, token));
        assert_int_equal(token[EVL_TOKEN_TEXT], '#');
        for (int i = 0; i < EVL_TOKEN_TEXT; i++) {
            if (i == 8 || i == 13 || i == 18 || i == 23)
                assert_int_equal(token[i], '-');
            else
                assert_non_null(memchr("0123456789abcdef", token[i], 16));
        }
        assert_int_equal(token[14], '4');
        assert_non_null(memchr("89ab", token[19], 4));
    }
}

/* All but the version, and the two bits of the variant. */
CASE(each_digit_takes_every_value) {
    static bool seen[EVL_TOKEN_TEXT][256];
    char token[EVL_TOKEN_TEXT];
    for (int round = 0; round < 2000; round++) {
        assert_true(evl_token_generate(&entropy, token));
        for (int i = 0; i < EVL_TOKEN_TEXT; i++)
            seen[i][(unsigned char)token[i]] = true;
    }
    for (int i = 0; i < EVL_TOKEN_TEXT; i++) {
        int count = 0;
        for (int j = 0; j < 256; j++)
            count += seen[i][j];
        assert_int_equal(count, i == 8 || i == 13 || i == 14 || i == 18 || i == 23 ? 1 : i == 19 ? 4 : 16);
    }
}

static int compare(const void *a, const void *b) {
    return memcmp(a, b, EVL_TOKEN_TEXT);
}

CASE(no_two_are_the_same) {
    enum { TOKENS = 100000 };
    static char tokens[TOKENS][EVL_TOKEN_TEXT];
    for (int i = 0; i < TOKENS; i++)
        assert_true(evl_token_generate(&entropy, tokens[i]));
    qsort(tokens, TOKENS, sizeof *tokens, compare);
    for (int i = 1; i < TOKENS; i++)
        assert_memory_not_equal(tokens[i - 1], tokens[i], EVL_TOKEN_TEXT);
}

CASE(random_bytes_are_drawn_for_sixteen_tokens_at_a_time) {
    struct entropy fresh = {0};
    char token[EVL_TOKEN_TEXT];
    for (int i = 0; i < 100 * 16; i++) {
        asked = i % 16 ? asked : 0;
        assert_true(evl_token_generate(&fresh, token));
        assert_int_equal(asked, 1);
    }
}

static size_t not_zero(const struct entropy *bytes) {
    size_t count = 0;
    for (size_t i = 0; i < ENTROPY_BYTES; i++)
        count += bytes->bytes[i] != 0;
    return count;
}

/* Who reads the memory later learns of no token that was drawn, nor, after the end, of one that was not. */
CASE(random_bytes_are_wiped) {
    struct entropy fresh = {0};
    char token[EVL_TOKEN_TEXT];
    for (size_t used = 16; used <= ENTROPY_BYTES; used += 16) {
        assert_true(evl_token_generate(&fresh, token));
        assert_int_in_range(not_zero(&fresh), (ENTROPY_BYTES - used) / 2, ENTROPY_BYTES - used);
    }
    assert_true(evl_token_generate(&fresh, token));
    assert_true(not_zero(&fresh) > 0);
    evl_entropy_wipe(&fresh);
    assert_int_equal(not_zero(&fresh), 0);
    assert_int_equal(fresh.left, 0);
}

CASE(without_random_bytes_there_is_no_token) {
    static const long too_few[] = {0, 1, 16, ENTROPY_BYTES - 1};
    struct entropy fresh = {0};
    char token[EVL_TOKEN_TEXT];
    for (size_t i = 0; i < sizeof(too_few) / sizeof(too_few[0]); i++) {
        given = too_few[i];
        assert_false(evl_token_generate(&fresh, token));
        assert_false(evl_token_generate(&fresh, token));
    }
    given = -1;
    assert_true(evl_token_generate(&fresh, token));
    given = 0; /* those that are there are used */
    for (int i = 1; i < 16; i++)
        assert_true(evl_token_generate(&fresh, token));
    assert_false(evl_token_generate(&fresh, token));
    given = -1;
}

/* --- Who else draws ----------------------------------------------------------------------------------------------- */

CASE(tickets_and_channels_take_the_bytes_of_a_token_each) {
    struct entropy fresh = {0};
    struct tickets tickets = {0};
    struct tenure *holder = (struct tenure *)&fresh; /* never looked at */
    char text[TICKET_SIZE];

    asked = 0;
    assert_true(evl_tickets_open(&tickets, &fresh));
    assert_int_equal(fresh.left, ENTROPY_BYTES - 16);
    assert_int_equal(evl_tickets_draw(&tickets, &fresh, holder, 0, text).status, EVLOCK_OK);
    assert_int_equal(fresh.left, ENTROPY_BYTES - 2 * 16);
    assert_int_equal(asked, 1);
    evl_tickets_withdraw(&tickets, holder, text);
    evl_tickets_free(&tickets);
}

CASE(without_random_bytes_there_is_no_ticket_and_no_channel) {
    struct entropy fresh = {0};
    struct tickets tickets = {0};
    struct trouble trouble;
    char text[TICKET_SIZE];

    given = 0;
    assert_false(evl_tickets_open(&tickets, &fresh));
    assert_string_equal(tickets.channel, "");
    trouble = evl_tickets_draw(&tickets, &fresh, NULL, 0, text);
    assert_int_equal(trouble.status, EVLOCK_ESYSTEM);
    assert_non_null(strstr(trouble.words, "random bytes"));
    given = -1;
    evl_tickets_free(&tickets);
}

/* --- Names -------------------------------------------------------------------------------------------------------- */

#define UUID "01234567-89ab-4cde-8f01-23456789abcd"

static void names(const char *token, size_t len) {
    assert_int_equal(evl_token_holder_len(token, strlen(token)), len);
}

CASE(a_name_ends_before_the_uuid) {
    names("x/" UUID, 1);
    names("host:4711/" UUID, 9);
    names("a/b/" UUID, 3);
    names("//" UUID, 1);
    names(UUID "/" UUID, EVL_TOKEN_TEXT);
    assert_int_equal(evl_token_holder_len("\0\n/" UUID, 3 + EVL_TOKEN_TEXT), 2); /* any bytes */
}

CASE(a_drawn_token_begins_with_its_holders_name) {
    static const char *const holders[] = {NULL, "x", "host:4711", "a/b/"};

    for (size_t i = 0; i < sizeof(holders) / sizeof(holders[0]); i++) {
        size_t name_len = holders[i] ? strlen(holders[i]) : 0, len = evl_token_drawn_len(holders[i]);
        char token[64];

        memset(token, '#', sizeof(token));
        assert_true(evl_token_draw(&entropy, holders[i], token));
        assert_int_equal(evl_token_holder_len(token, len), name_len);
        if (name_len)
            assert_memory_equal(token, holders[i], name_len);
        assert_int_equal(token[len], '#');
    }
}

CASE(a_token_of_another_form_has_no_name) {
    names("", 0);
    names("x", 0);
    names("another client's own idea of a token", 0);
    names(UUID, 0);
    names("/" UUID, 0); /* a name is not empty */
    names("x:" UUID, 0);
    names("x/" UUID "0", 0);
    names("x/0" UUID, 0);
    for (int i = 0; i < EVL_TOKEN_TEXT; i++) {
        char token[] = "host/" UUID;
        if (token[5 + i] == '-') {
            token[5 + i] = '+';
            names(token, 0);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_a_random_uuid_in_lower_case),
        cmocka_unit_test(each_digit_takes_every_value),
        cmocka_unit_test(no_two_are_the_same),
        cmocka_unit_test(random_bytes_are_drawn_for_sixteen_tokens_at_a_time),
        cmocka_unit_test(random_bytes_are_wiped),
        cmocka_unit_test(without_random_bytes_there_is_no_token),
        cmocka_unit_test(tickets_and_channels_take_the_bytes_of_a_token_each),
        cmocka_unit_test(without_random_bytes_there_is_no_ticket_and_no_channel),
        cmocka_unit_test(a_name_ends_before_the_uuid),
        cmocka_unit_test(a_drawn_token_begins_with_its_holders_name),
        cmocka_unit_test(a_token_of_another_form_has_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
