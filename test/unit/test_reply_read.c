/* What hiredis read, as values: replies as they come over the wire, parsed by hiredis itself. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <hiredis/hiredis.h>

#include "reply_read.h"

static redisReply *parsed; /* what `reply` points into */
static const char *words[REPLY_WORDS_MAX];
static struct reply reply;

static redisReply *parse(const char *wire, size_t len) {
    redisReader *reader = redisReaderCreate();
    void *ret = NULL;

    assert_non_null(reader);
    assert_int_equal(redisReaderFeed(reader, wire, len), REDIS_OK);
    assert_int_equal(redisReaderGetReply(reader, &ret), REDIS_OK);
    assert_non_null(ret);
    redisReaderFree(reader);
    return ret;
}

static void read_bytes(const char *wire, size_t len) {
    if (parsed)
        freeReplyObject(parsed);
    parsed = parse(wire, len);
    memset(&reply, 0xa5, sizeof(reply));
    evl_reply_read(parsed, words, &reply);
}

static void read_wire(const char *wire) {
    read_bytes(wire, strlen(wire));
}

static int forget(void **state) {
    (void)state;
    freeReplyObject(parsed);
    parsed = NULL;
    return 0;
}

CASE(each_kind_is_known) {
    static const struct {
        const char *wire;
        enum reply_type type;
        const char *text;
    } said[] = {
        {"+OK\r\n", REPLY_OK, ""},
        {"+OKAY\r\n", REPLY_OTHER, ""},
        {"+PONG\r\n", REPLY_OTHER, ""},
        {"$-1\r\n", REPLY_NIL, ""},
        {"*-1\r\n", REPLY_NIL, ""},
        {"$2\r\nOK\r\n", REPLY_STRING, "OK"},
        {"$0\r\n\r\n", REPLY_STRING, ""},
        {"-NOSCRIPT No\r\n", REPLY_ERROR, "NOSCRIPT No"},
        {"*1\r\n:1\r\n", REPLY_OTHER, ""},
        {"*1\r\n*0\r\n", REPLY_OTHER, ""},
        {"*2\r\n$1\r\na\r\n$-1\r\n", REPLY_OTHER, ""},
    };

    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
        read_wire(said[i].wire);
        if (reply.type != said[i].type || strcmp(reply.text, said[i].text) != 0)
            fail_msg("%s: %d \"%s\"", said[i].wire, (int)reply.type, reply.text);
    }
}

CASE(integers_come_whole) {
    static const int64_t numbers[] = {0, 1, -1, -2, INT64_C(1) << 53, INT64_MAX, INT64_MIN};
    char wire[32];

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        snprintf(wire, sizeof(wire), ":%" PRId64 "\r\n", numbers[i]);
        read_wire(wire);
        assert_int_equal(reply.type, REPLY_INTEGER);
        assert_true(reply.integer == numbers[i]);
    }
}

CASE(a_string_may_have_any_bytes) {
    read_bytes("$5\r\na\0b\r\n\r\n", 11);
    assert_int_equal(reply.type, REPLY_STRING);
    assert_int_equal(reply.len, 5);
    assert_memory_equal(reply.text, "a\0b\r\n", 5);
}

CASE(an_error_keeps_what_was_sent_to_itself) {
    read_wire("-ERR unknown command `AUTH`, with args beginning with: `secret`\r\n");
    assert_int_equal(reply.type, REPLY_ERROR);
    assert_string_equal(reply.text, "ERR unknown command `AUTH`");
    assert_int_equal(reply.len, strlen(reply.text));
}

/* Seconds and microseconds. What is no time is words, for that is what else an array of two texts is. */
CASE(two_numbers_are_a_time) {
    static const struct {
        const char *seconds, *rest;
        int64_t time; /* -1: it is none */
    } said[] = {
        {"0", "0", 0},
        {"0", "9", 9},
        {"1700000000", "000009", INT64_C(1700000000000009)},
        {"1700000000", "999999", INT64_C(1700000000999999)},
        {"2305843009213", "0", INT64_C(2305843009213000000)},
        {"2305843009214", "0", -1}, /* beyond it sums would not fit */
        {"9223372036854775808", "0", -1},
        {"-1", "0", -1},
        {"0", "-1", -1},
        {"1.5", "0", -1},
        {"0", "soon", -1},
    };
    char wire[96];

    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
        snprintf(wire, sizeof(wire), "*2\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n", strlen(said[i].seconds), said[i].seconds,
                 strlen(said[i].rest), said[i].rest);
        read_wire(wire);
        if (reply.type != (said[i].time < 0 ? REPLY_WORDS : REPLY_TIME) ||
            (said[i].time >= 0 && reply.integer != said[i].time))
            fail_msg("%s, %s: %d", said[i].seconds, said[i].rest, (int)reply.type);
    }
}

CASE(an_array_of_texts_is_words) {
    read_wire("*3\r\n$1\r\n1\r\n$0\r\n\r\n$3\r\nabc\r\n");
    assert_int_equal(reply.type, REPLY_WORDS);
    assert_int_equal(reply.len, 3);
    assert_string_equal(reply.words[0], "1");
    assert_string_equal(reply.words[1], "");
    assert_string_equal(reply.words[2], "abc");
    read_wire("*0\r\n");
    assert_int_equal(reply.type, REPLY_WORDS);
    assert_int_equal(reply.len, 0);
}

/* So many words. */
static void read_words(int count) {
    char wire[16 + (REPLY_WORDS_MAX + 1) * 8];
    int len = snprintf(wire, sizeof(wire), "*%d\r\n", count);

    for (int i = 0; i < count; i++)
        len += snprintf(wire + len, sizeof(wire) - (size_t)len, "$1\r\nx\r\n");
    read_wire(wire);
}

CASE(an_array_that_is_longer_than_any_answer_is_none) {
    read_words(REPLY_WORDS_MAX);
    assert_int_equal(reply.type, REPLY_WORDS);
    assert_int_equal(reply.len, REPLY_WORDS_MAX);
    read_words(REPLY_WORDS_MAX + 1);
    assert_int_equal(reply.type, REPLY_OTHER);
}

CASE(messages_are_told_from_confirmations) {
    static const struct {
        const char *wire;
        bool confirms;
        const char *message;
    } said[] = {
        {"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n", true, NULL},
        {"*3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:0\r\n", false, NULL},
        {"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n", false, "hi"},
        {"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n:1\r\n", false, NULL},
        {"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$-1\r\n", false, NULL},
        {"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n+hi\r\n", false, NULL},
        {"*2\r\n$7\r\nmessage\r\n$2\r\nhi\r\n", false, NULL},
        {"*4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$1\r\nc\r\n$2\r\nhi\r\n", false, NULL},
        {"*3\r\n:1\r\n$1\r\nc\r\n$2\r\nhi\r\n", false, NULL},
        {"$7\r\nmessage\r\n", false, NULL},
    };

    for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
        const char *message;

        read_wire(said[i].wire);
        message = evl_reply_read_message(parsed);
        assert_int_equal(evl_reply_read_is_confirmation(parsed), said[i].confirms);
        assert_int_equal(message != NULL, said[i].message != NULL);
        if (message)
            assert_string_equal(message, said[i].message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(each_kind_is_known, forget),
        cmocka_unit_test_teardown(integers_come_whole, forget),
        cmocka_unit_test_teardown(a_string_may_have_any_bytes, forget),
        cmocka_unit_test_teardown(an_error_keeps_what_was_sent_to_itself, forget),
        cmocka_unit_test_teardown(two_numbers_are_a_time, forget),
        cmocka_unit_test_teardown(an_array_of_texts_is_words, forget),
        cmocka_unit_test_teardown(an_array_that_is_longer_than_any_answer_is_none, forget),
        cmocka_unit_test_teardown(messages_are_told_from_confirmations, forget),
    };
    return cmocka_run_group_tests_name("reply_read", tests, NULL, NULL);
}
