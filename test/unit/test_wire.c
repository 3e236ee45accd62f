/*
 * Commands, as they are sent: with the longest arguments that each can have, they fit, and are what Redis reads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "batch.h"
#include "memory.h"
#include "queue.h"

#define LONGEST_TTL (INT64_C(10) * 366 * 24 * 3600 * 1000000)

static char longest[512]; /* of any bytes, among them those that end lines */

static struct bytes longest_of(size_t len) {
    memset(longest, '\n', sizeof(longest));
    return (struct bytes){longest, len};
}

static struct bytes key(void) {
    return longest_of(512);
}

static struct bytes token(void) {
    return longest_of(128);
}

static size_t read_number(struct bytes *text, char kind) {
    const char *at = text->data;
    char *end;
    size_t number;

    assert_int_equal(at[0], kind);
    number = strtoul(at + 1, &end, 10);
    assert_memory_equal(end, "\r\n", 2);
    text->len -= (size_t)(end + 2 - at);
    text->data = end + 2;
    return number;
}

/* Each argument has the length that it says, and there are as many as it says. */
static void assert_words(struct bytes text) {
    size_t len, count;

    for (count = read_number(&text, '*'); count > 0; count--) {
        len = read_number(&text, '$');
        assert_int_in_range(len + 2, 2, text.len);
        assert_memory_equal((const char *)text.data + len, "\r\n", 2);
        text.data = (const char *)text.data + len + 2;
        text.len -= len + 2;
    }
    assert_int_equal(text.len, 0);
}

/* In both forms, if it has two: the script by its digest, and whole. */
static void assert_sound(struct command *command) {
    struct bytes text = evl_command_text(command);
    char *spelled;
    size_t len;

    assert_int_in_range(text.len, 1, COMMAND_SIZE);
    assert_words(text);
    if (!command->script)
        return;
    spelled = evl_command_spelled(command, &len);
    assert_non_null(spelled);
    assert_words((struct bytes){spelled, len});
    assert_non_null(memmem(spelled, len, command->script->text, strlen(command->script->text)));
    evl_free(spelled);
}

static void the_commands_of_a_lease_fit(void **state) {
    struct command command;

    (void)state;
    for (enum lease_command kind = LEASE_ACQUIRE; kind <= LEASE_RELEASE; kind++) {
        if (kind == LEASE_RAISE)
            evl_command_raise(&command, key(), INT64_MAX);
        else
            evl_command_lease(&command, kind, key(), token(), LONGEST_TTL);
        assert_sound(&command);
    }
    evl_command_fenced(&command, key(), token(), LONGEST_TTL, false);
    assert_sound(&command);
    evl_command_wait(&command, INT32_MAX, LONGEST_TTL);
    assert_sound(&command);
}

static void the_commands_of_a_queue_fit(void **state) {
    char channel[sizeof("evlock:") + 36], ticket[TICKET_SIZE], text[WAITER_SIZE];
    struct waiter waiter = {channel, ticket, LONGEST_TTL, true};
    struct command command;
    size_t len;

    (void)state;
    memset(channel, 'c', sizeof(channel) - 1);
    memset(ticket, 't', sizeof(ticket) - 1);
    channel[sizeof(channel) - 1] = ticket[sizeof(ticket) - 1] = '\0';
    len = evl_waiter_write(text, token(), &waiter);
    assert_int_in_range(len, 1, WAITER_SIZE);
    evl_command_join(&command, key(), token(), &waiter);
    assert_sound(&command);
    evl_command_hand(&command, key(), token(), &waiter);
    assert_sound(&command);
    evl_command_queue(&command, "ZRANK", key(), (struct bytes){text, len});
    assert_sound(&command);
}

static void the_commands_of_queries_and_breaks_fit(void **state) {
    struct command command;

    (void)state;
    evl_command_key(&command, "PTTL", key());
    assert_sound(&command);
    evl_command_look(&command, key());
    assert_sound(&command);
    evl_command_break(&command, key(), longest_of(MARK_SIZE), true);
    assert_sound(&command);
}

/* As batch.c fills it: with members for as long as there is room for the longest. */
static void a_batch_fits(void **state) {
    struct renewal renewals[BATCH_MEMBERS];
    struct command command;
    size_t room;
    unsigned count;

    (void)state;
    for (size_t len = 1; len <= 128; len++) {
        room = RENEWALS_SIZE;
        for (count = 0; count < BATCH_MEMBERS && room >= RENEWAL_SIZE_MAX; count++) {
            renewals[count] = (struct renewal){longest_of(4 * len), longest_of(len), LONGEST_TTL};
            assert_int_in_range(evl_renewal_size(&renewals[count]), 1, RENEWAL_SIZE_MAX);
            room -= evl_renewal_size(&renewals[count]);
        }
        evl_command_renewals(&command, renewals, count);
        assert_sound(&command);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_commands_of_a_lease_fit),
        cmocka_unit_test(the_commands_of_a_queue_fit),
        cmocka_unit_test(the_commands_of_queries_and_breaks_fit),
        cmocka_unit_test(a_batch_fits),
    };
    return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
