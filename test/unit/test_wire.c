/*
 * Commands, as they are sent: each row of each dialect, word by word; with the longest arguments that each can have,
 * they fit, and are what Redis reads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "batch.h"
#include "cluster.h"
#include "dialect.h"
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

/* --- Each row of each dialect ------------------------------------------------------------------------------------- */

enum { PLAIN, FENCED, QUEUED, BESIDE, FENCED_BESIDE, DIALECTS };

static const struct dialect *dialect(unsigned which) {
    static const enum taking takings[DIALECTS] = {
        [FENCED] = TAKE_FENCED, [QUEUED] = TAKE_IN_LINE, [FENCED_BESIDE] = TAKE_FENCED};

    return evl_dialect(which >= QUEUED ? LOCK_QUEUED : LOCK_PLAIN, takings[which]);
}

/* Where a dialect says nothing of its own, it says what the plain one does. */
static const char *const commands[LEASE_RELEASE + 1][DIALECTS] = {
    [LEASE_ACQUIRE] =
        {
            "SET a token NX PX 10001",
            "fenced 2 a {a}:fence token 10001 604800000 1",
            "join 3 a {a}:queue {a}:fence channel|ticket|10001|1|token token",
            "SET a token NX PX 10001",
            "fenced 2 a {a}:fence token 10001 604800000 1",
        },
    [LEASE_ADOPT] = {"adopt 1 a token"},
    [LEASE_RAISE] = {"raise 1 {a}:fence 1234567890123456 604800000"},
    [LEASE_RENEW] = {"renew 1 a token 10001"},
    [LEASE_REFRESH] = {"SET a token IFEQ token PX 10001"},
    [LEASE_RESTORE] = {"rearm 1 a token 10001"},
    [LEASE_REARM] = {"rearm 1 a token 10001"},
    [LEASE_MEND] = {"rearm 1 a token 10001"},
    [LEASE_ADD] = {"add 1 a token 10001"},
    [LEASE_REPLACE] = {"replace 1 a token 10001"},
    [LEASE_RELEASE] =
        {
            "release 1 a token",
            "release 1 a token",
            "hand 3 a {a}:queue {a}:fence token channel|ticket|10001|1|token",
            "hand 3 a {a}:queue {a}:fence token",
            "hand 3 a {a}:queue {a}:fence token",
        },
};

static const char *const asks[ASKS][DIALECTS] = {
    [ASK_TOKEN] = {"GET a"},
    [ASK_TYPE] = {"GET a"},
    [ASK_TTL] = {"PTTL a"},
    [ASK_WAITERS] = {"ZCARD {a}:queue"},
    [ASK_PLACE] = {"ZRANK {a}:queue mark"},
    [ASK_STATE] = {"survey 1 a"},
    [ASK_WHOLE] = {"survey 2 a {a}:queue mark"},
    [ASK_MARK] = {"look 1 a"},
    [ASK_BREAK] =
        {
            "break 1 a mark",
            "break 1 a mark",
            "break 3 a {a}:queue {a}:fence mark",
            "break 3 a {a}:queue {a}:fence mark",
            "break 3 a {a}:queue {a}:fence mark",
        },
    [ASK_RENEWAL] = {"renew 1 a token 10001"},
    [ASK_REPLICAS] = {"WAIT 2 1501"},
    [ASK_LIST] = {"list 0 mark"},
};

#define TEXT(text) ((struct bytes){(text), sizeof(text) - 1})

static struct subject subject_of(unsigned which) {
    struct subject subject = {
        .key = TEXT("a"),
        .token = TEXT("token"),
        .ttl = 10000001,
        .fence = INT64_C(1234567890123456),
        .alone = true,
        .sought = TEXT("mark"),
        .replicas = 2,
        .timeout = 1500001,
    };

    if (which == QUEUED)
        subject.waiter = (struct waiter){"channel", "ticket", 10000001, true, 0};
    return subject;
}

/* The words of a sound command: the name of a script in the place of its digest, and other blanks for those in words.
 */
static const char *words_of(const struct form *form, const struct subject *subject) {
    static char words[512];
    struct command command;
    struct bytes text;
    char *end = words;
    size_t len;

    evl_command_write(&command, form, subject);
    assert_sound(&command);
    text = evl_command_text(&command);
    for (size_t left = read_number(&text, '*'); left > 0; left--) {
        len = read_number(&text, '$');
        for (size_t i = 0; i < len; i++)
            *end++ = ((const char *)text.data)[i] == ' ' ? '|' : ((const char *)text.data)[i];
        *end++ = left > 1 ? ' ' : '\0';
        text = (struct bytes){(const char *)text.data + len + 2, text.len - len - 2};
    }
    if (!form->script)
        return words;
    assert_memory_equal(words, "EVALSHA ", 8);
    assert_memory_equal(words + 8, form->script->sha, 40);
    end = words + 8 + 40 - strlen(form->script->name);
    return memcpy(end, form->script->name, strlen(form->script->name));
}

CASE(each_command_of_a_lease_is_these_words) {
    for (unsigned which = 0; which < DIALECTS; which++) {
        struct subject subject = subject_of(which);
        for (enum lease_command kind = LEASE_ACQUIRE; kind <= LEASE_RELEASE; kind++) {
            const char *words = commands[kind][which] ? commands[kind][which] : commands[kind][PLAIN];
            assert_string_equal(words_of(&dialect(which)->commands[kind]->form, &subject), words);
        }
    }
}

/* The words of a command have blanks in names changed: none is in these. */
CASE(counters_are_told_from_locks) {
    static const char *const keys[] = {"a",       "{a}",     "{a}b",   "b{a}",     "a}b",      "{}",       "{}a",
                                       "}",       "{",       "a{b",    "{a",       "}{a}",     "x:fence",  "{x:fence",
                                       "::fence", "}:fence", ":fence", "a}:fence", "{}:fence", "{}}:fence"};
    static const char *const locks[] = {"{abc}b}:fence", "{a9k}a}b}:fence", "a::fence",  "{a}:queue",
                                        "{a}:fence2",    "{}a::fence",      "{ab}:fenc", "{a}b::queue"};
    const struct form counter = {&evl_scripts[SCRIPT_RAISE], 1, {ARG_COUNTER}};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        struct subject subject = {.key = {keys[i], strlen(keys[i])}};
        const char *words = strrchr(words_of(&counter, &subject), ' ') + 1;
        assert_true(evl_wire_is_own((struct bytes){words, strlen(words)}));
        assert_false(evl_wire_is_own(subject.key) && strcmp(keys[i], "{}:fence") != 0);
    }
    for (size_t i = 0; i < sizeof(locks) / sizeof(locks[0]); i++)
        assert_false(evl_wire_is_own((struct bytes){locks[i], strlen(locks[i])}));
}

CASE(each_question_is_these_words) {
    for (unsigned which = 0; which < DIALECTS; which++) {
        struct subject subject = subject_of(which);
        for (enum ask ask = 0; ask < ASKS; ask++) {
            const char *words = asks[ask][which] ? asks[ask][which] : asks[ask][PLAIN];
            assert_string_equal(words_of(&dialect(which)->asks[ask]->form, &subject), words);
        }
    }
}

CASE(renewals_of_many_are_these_words) {
    struct renewal renewals[10];
    struct subject subject = {.ttl = 10000001, .renewals = renewals, .count = 2};

    for (size_t i = 0; i < 10; i++)
        renewals[i] = (struct renewal){{&"abcdefghij"[i], 1}, {&"0123456789"[i], 1}, 10000001};
    assert_string_equal(words_of(&evl_renewals, &subject), "renew_many 2 a b 10001 0 1");
    subject.count = 10;
    assert_string_equal(words_of(&evl_renewals, &subject),
                        "renew_many 10 a b c d e f g h i j 10001 0 1 2 3 4 5 6 7 8 9");
}

CASE(a_lock_without_expiry_is_taken_without_px) {
    struct subject subject = subject_of(PLAIN);

    subject.ttl = 0;
    assert_string_equal(words_of(&dialect(PLAIN)->commands[LEASE_ACQUIRE]->form, &subject), "SET a token NX");
    assert_string_equal(words_of(&dialect(FENCED)->commands[LEASE_ACQUIRE]->form, &subject),
                        "fenced 2 a {a}:fence token 0 604800000 1");
}

CASE(several_nodes_draw_by_a_coarse_clock) {
    struct subject subject = subject_of(FENCED);

    subject.alone = false;
    assert_string_equal(words_of(&dialect(FENCED)->commands[LEASE_ACQUIRE]->form, &subject),
                        "fenced 2 a {a}:fence token 10001 604800000 100000");
}

CASE(a_waiter_may_want_no_fence) {
    struct subject subject = subject_of(QUEUED);

    subject.waiter.fenced = false;
    assert_string_equal(words_of(&dialect(QUEUED)->commands[LEASE_ACQUIRE]->form, &subject),
                        "join 3 a {a}:queue {a}:fence channel|ticket|10001|0|token token");
}

CASE(fences_that_are_asked_for_besides_are_an_argument) {
    const struct form *form = &dialect(FENCED)->commands[LEASE_ACQUIRE]->form;
    struct subject subject = subject_of(FENCED);

    subject.spare = 99;
    assert_string_equal(words_of(form, &subject), "fenced 2 a {a}:fence token 10001 604800000 1 99");
    subject.clock = INT64_C(1700000000000001);
    assert_string_equal(words_of(form, &subject), "fenced 2 a {a}:fence token 10001 604800000 1 99 1700000000000001");
}

CASE(each_master_has_a_channel_of_its_own) {
    struct subject subject = subject_of(QUEUED);

    subject.waiter.master = 12;
    assert_string_equal(words_of(&dialect(QUEUED)->commands[LEASE_ACQUIRE]->form, &subject),
                        "join 3 a {a}:queue {a}:fence channel-12|ticket|10001|1|token token");
}

CASE(a_clock_that_is_brought_is_the_last_argument) {
    struct subject subject = subject_of(QUEUED);

    subject.clock = INT64_C(1700000000000001);
    assert_string_equal(words_of(&dialect(QUEUED)->commands[LEASE_ACQUIRE]->form, &subject),
                        "join 3 a {a}:queue {a}:fence channel|ticket|10001|1|token token 1700000000000001");
    assert_string_equal(words_of(&dialect(QUEUED)->commands[LEASE_RELEASE]->form, &subject),
                        "hand 3 a {a}:queue {a}:fence token channel|ticket|10001|1|token 1700000000000001");
    subject.waiter.ticket = NULL;
    assert_string_equal(words_of(&dialect(QUEUED)->commands[LEASE_RELEASE]->form, &subject),
                        "hand 3 a {a}:queue {a}:fence token  1700000000000001");
    assert_string_equal(words_of(&dialect(QUEUED)->asks[ASK_BREAK]->form, &subject),
                        "break 3 a {a}:queue {a}:fence mark 1700000000000001");
    assert_string_equal(words_of(&dialect(FENCED)->commands[LEASE_ACQUIRE]->form, &subject),
                        "fenced 2 a {a}:fence token 10001 604800000 1 0 1700000000000001");
    assert_string_equal(words_of(&dialect(FENCED)->commands[LEASE_RAISE]->form, &subject),
                        "raise 1 {a}:fence 1234567890123456 604800000 1700000000000001");
    assert_string_equal(words_of(&dialect(PLAIN)->commands[LEASE_RELEASE]->form, &subject), "release 1 a token");
}

CASE(what_belongs_to_a_lock_shares_its_slot) {
    struct subject subject = subject_of(PLAIN);

    subject.key = TEXT("{t}a");
    assert_string_equal(words_of(&dialect(PLAIN)->asks[ASK_WAITERS]->form, &subject), "ZCARD {t}a::queue");
    subject.key = TEXT("{}a");
    assert_string_equal(words_of(&dialect(PLAIN)->asks[ASK_WAITERS]->form, &subject), "ZCARD {bvi}{}a}:queue");
}

/* --- The longest of all ------------------------------------------------------------------------------------------- */

static void assert_fits(const struct form *form) {
    char channel[sizeof("evlock:") + 36], ticket[TICKET_SIZE], text[WAITER_SIZE];
    struct subject subject = {
        .key = key(),
        .token = token(),
        .ttl = LONGEST_TTL,
        .fence = INT64_MAX,
        .spare = UINT16_MAX,
        .clock = INT64_MAX,
        .waiter = {channel, ticket, LONGEST_TTL, true, CLUSTER_PLACES - 1},
        .replicas = INT32_MAX,
        .timeout = LONGEST_TTL,
    };
    struct command command;

    memset(channel, 'c', sizeof(channel) - 1);
    memset(ticket, 't', sizeof(ticket) - 1);
    channel[sizeof(channel) - 1] = ticket[sizeof(ticket) - 1] = '\0';
    subject.sought = (struct bytes){text, evl_wire_waiter(text, token(), &subject.waiter)};
    assert_int_in_range(subject.sought.len, MARK_SIZE, WAITER_SIZE);
    evl_command_write(&command, form, &subject);
    assert_sound(&command);
}

CASE(the_longest_commands_fit) {
    for (unsigned which = 0; which < DIALECTS; which++) {
        for (enum lease_command kind = LEASE_ACQUIRE; kind <= LEASE_RELEASE; kind++)
            assert_fits(&dialect(which)->commands[kind]->form);
        for (enum ask ask = 0; ask < ASKS; ask++)
            assert_fits(&dialect(which)->asks[ask]->form);
    }
}

/* As batch.c fills it: with members for as long as there is room for the longest. */
CASE(a_batch_fits) {
    struct renewal renewals[BATCH_MEMBERS];
    struct command command;
    size_t room;
    unsigned count;

    for (size_t len = 1; len <= 128; len++) {
        room = RENEWALS_SIZE;
        for (count = 0; count < BATCH_MEMBERS && room >= RENEWAL_SIZE_MAX; count++) {
            renewals[count] = (struct renewal){longest_of(4 * len), longest_of(len), LONGEST_TTL};
            assert_int_in_range(evl_renewal_size(&renewals[count]), 1, RENEWAL_SIZE_MAX);
            room -= evl_renewal_size(&renewals[count]);
        }
        evl_command_write(&command, &evl_renewals,
                          &(struct subject){.ttl = LONGEST_TTL, .renewals = renewals, .count = count});
        assert_sound(&command);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_command_of_a_lease_is_these_words),
        cmocka_unit_test(counters_are_told_from_locks),
        cmocka_unit_test(each_question_is_these_words),
        cmocka_unit_test(renewals_of_many_are_these_words),
        cmocka_unit_test(a_lock_without_expiry_is_taken_without_px),
        cmocka_unit_test(several_nodes_draw_by_a_coarse_clock),
        cmocka_unit_test(a_waiter_may_want_no_fence),
        cmocka_unit_test(fences_that_are_asked_for_besides_are_an_argument),
        cmocka_unit_test(each_master_has_a_channel_of_its_own),
        cmocka_unit_test(a_clock_that_is_brought_is_the_last_argument),
        cmocka_unit_test(what_belongs_to_a_lock_shares_its_slot),
        cmocka_unit_test(the_longest_commands_fit),
        cmocka_unit_test(a_batch_fits),
    };
    return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
