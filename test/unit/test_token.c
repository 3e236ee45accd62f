/*
 * Tokens: their form, that no two are the same, and where in one its holder's name ends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "token.h"

static void a_token_is_a_random_uuid_in_lower_case(void **state) {
    (void)state;
    for (int round = 0; round < 100; round++) {
        char token[EVL_TOKEN_TEXT + 1];
        token[EVL_TOKEN_TEXT] = '#';
        evl_token_generate(token);
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

static int compare(const void *a, const void *b) {
    return memcmp(a, b, EVL_TOKEN_TEXT);
}

static void no_two_are_the_same(void **state) {
    enum { TOKENS = 10000 };
    static char tokens[TOKENS][EVL_TOKEN_TEXT];
    (void)state;
    for (int i = 0; i < TOKENS; i++)
        evl_token_generate(tokens[i]);
    qsort(tokens, TOKENS, sizeof *tokens, compare);
    for (int i = 1; i < TOKENS; i++)
        assert_memory_not_equal(tokens[i - 1], tokens[i], EVL_TOKEN_TEXT);
}

#define UUID "01234567-89ab-4cde-8f01-23456789abcd"

static void names(const char *token, size_t len) {
    assert_int_equal(evl_token_holder_len(token, strlen(token)), len);
}

static void a_name_ends_before_the_uuid(void **state) {
    (void)state;
    names("x/" UUID, 1);
    names("host:4711/" UUID, 9);
    names("a/b/" UUID, 3);
    names("//" UUID, 1);
    names(UUID "/" UUID, EVL_TOKEN_TEXT);
    assert_int_equal(evl_token_holder_len("\0\n/" UUID, 3 + EVL_TOKEN_TEXT), 2); /* any bytes */
}

static void a_token_of_another_form_has_no_name(void **state) {
    (void)state;
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
        cmocka_unit_test(no_two_are_the_same),
        cmocka_unit_test(a_name_ends_before_the_uuid),
        cmocka_unit_test(a_token_of_another_form_has_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
