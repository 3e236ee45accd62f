/*
 * Hash tags: which keys have one, and that each slot has a tag that leads to it. The slots are reckoned anew here, byte
 * by byte, as the specification has it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "hash_tag.h"

#define SLOTS 16384

static unsigned crc_of(const char *text, size_t len) {
    unsigned crc = 0;

    for (size_t i = 0; i < len; i++)
        for (int bit = 7; bit >= 0; bit--) {
            unsigned in = (unsigned)(unsigned char)text[i] >> bit & 1;
            crc = crc << 1 ^ ((crc >> 15 & 1) != in ? 0x1021 : 0);
            crc &= 0xFFFF;
        }
    return crc;
}

static bool is_letter_or_digit(char c) {
    return c && strchr("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", c);
}

CASE(the_reckoning_is_that_of_the_specification) {
    assert_int_equal(crc_of("123456789", 9), 0x31C3);
    assert_int_equal(crc_of("foo", 3) % SLOTS, 12182); /* CLUSTER KEYSLOT foo */
}

CASE(each_slot_has_a_tag) {
    static bool seen[SLOTS];
    char text[16], tag[HASH_TAG_SIZE];
    size_t slots = 0;

    for (unsigned i = 0; slots < SLOTS; i++) {
        size_t len = (size_t)snprintf(text, sizeof(text), "%u", i);
        unsigned slot = crc_of(text, len) % SLOTS;
        slots += !seen[slot];
        seen[slot] = true;
        evl_hash_tag_make(tag, (struct bytes){text, len});
        assert_int_equal(crc_of(tag, HASH_TAG_SIZE) % SLOTS, slot);
        assert_true(tag[0] >= 'a' && tag[0] <= 'z');
        assert_true(is_letter_or_digit(tag[1]) && is_letter_or_digit(tag[2]));
    }
}

static void expect_slot(const char *key, size_t len, unsigned slot) {
    assert_int_equal(evl_hash_tag_slot((struct bytes){key, len}), slot);
}

CASE(a_key_is_in_the_slot_of_its_tag) {
    static char bytes[256];

    expect_slot("foo", 3, 12182); /* CLUSTER KEYSLOT of each */
    expect_slot("123456789", 9, 12739);
    expect_slot("{user1000}.following", 20, 3443);
    expect_slot("foo{}{bar}", 10, 8363);
    expect_slot("foo{{bar}}zap", 13, 4015);
    expect_slot("foo{bar}{zap}", 13, 5061);
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)i;
    expect_slot(bytes, '{', crc_of(bytes, '{') % SLOTS);
    for (int first = 0; first < 256; first++)
        for (int second = 0; second < 256; second++) {
            const char key[] = {(char)first, (char)second};
            expect_slot(key, 2, crc_of(key, 2) % SLOTS);
        }
}

/* Whoever else reckons a tag has to come to the same. */
static void find_first(char to[HASH_TAG_SIZE], unsigned slot) {
    unsigned least = UINT32_MAX;

    for (char first = 'a'; first <= 'z' && least == UINT32_MAX; first++)
        for (int second = '0'; second <= 'z'; second++)
            for (int third = '0'; third <= 'z'; third++) {
                char tag[HASH_TAG_SIZE] = {first, (char)second, (char)third};
                unsigned crc = crc_of(tag, HASH_TAG_SIZE);
                if (!is_letter_or_digit(tag[1]) || !is_letter_or_digit(tag[2]) || crc % SLOTS != slot || crc >= least)
                    continue;
                least = crc;
                memcpy(to, tag, HASH_TAG_SIZE);
            }
}

CASE(a_tag_is_the_first_of_its_slot) {
    static const char *const texts[] = {"a}b", "}", "{}", "a}", "}{a", "{}{b}", "0", "the longest of these names}"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char tag[HASH_TAG_SIZE], first[HASH_TAG_SIZE];
        size_t len = strlen(texts[i]);
        evl_hash_tag_make(tag, (struct bytes){texts[i], len});
        find_first(first, crc_of(texts[i], len) % SLOTS);
        assert_memory_equal(tag, first, HASH_TAG_SIZE);
    }
}

CASE(a_tag_is_what_stands_in_the_first_braces) {
    static const char *const with[] = {"{a}", "x{a}y", "{{}", "{a}}", "{a}{}", "{ }"};
    static const char *const without[] = {"", "a", "{", "}", "{}", "{}{a}", "}{", "a}b{c", "{a"};

    for (size_t i = 0; i < sizeof(with) / sizeof(with[0]); i++)
        assert_true(evl_hash_tag_is_in((struct bytes){with[i], strlen(with[i])}));
    for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++)
        assert_false(evl_hash_tag_is_in((struct bytes){without[i], strlen(without[i])}));
    assert_false(evl_hash_tag_is_in((struct bytes){"{a}", 2}));
    struct bytes tag = evl_hash_tag_of((struct bytes){"x{ab}{c}", 8});
    assert_int_equal(tag.len, 2);
    assert_memory_equal(tag.data, "ab", 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reckoning_is_that_of_the_specification),
        cmocka_unit_test(each_slot_has_a_tag),
        cmocka_unit_test(a_key_is_in_the_slot_of_its_tag),
        cmocka_unit_test(a_tag_is_the_first_of_its_slot),
        cmocka_unit_test(a_tag_is_what_stands_in_the_first_braces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
