/*
 * Tokens: their form, and that no two are the same.
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_is_a_random_uuid_in_lower_case),
        cmocka_unit_test(no_two_are_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
