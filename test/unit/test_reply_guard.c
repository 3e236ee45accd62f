/*
 * The guard, on hiredis alone: what a hostile server says ends the connection instead of the process, and what a good
 * one says comes through. Each case is also shown to hiredis without the guard, in a process of its own; what becomes
 * of that is printed, and no test, since it differs by hiredis's version.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <hiredis/async.h>

#include "reply_guard.h"
#include "world/socket.h"

enum { CHUNK = 4096 };

struct said {
    const char *name;
    const char *bytes;
    int times;      /* that the bytes come */
    int asked;      /* commands unanswered */
    bool listening; /* to "ch" */
    int answers;    /* that come through */
    int pushes;
    bool ended; /* the connection */
};

#define MESSAGE "*3\r\n$7\r\nmessage\r\n$2\r\nch\r\n"
#define CONFIRMED "*3\r\n$9\r\nsubscribe\r\n$2\r\nch\r\n:1\r\n"

/* What ends the connection: in place of a push, and of an answer. */
#define PUSH(words, said)                                                                                              \
    { .name = (words), .bytes = said, .listening = true, .ended = true }
#define ANSWER(words, said)                                                                                            \
    { .name = (words), .bytes = said, .asked = 1, .ended = true }

static const struct said cases[] = {
    /* As it should be. */
    {.name = "answers", .bytes = "+OK\r\n$1\r\na\r\n:1\r\n$-1\r\n-ERR no\r\n", .asked = 5, .answers = 5},
    {.name = "a status after a longer one", .bytes = "+QUEUED\r\n+OK\r\n", .asked = 2, .answers = 2},
    {.name = "a long string", .bytes = "$119989\r\n0\r\n", .times = 10000, .asked = 1, .answers = 1},
    {.name = "a small array", .bytes = "*2\r\n:1\r\n$-1\r\n", .asked = 1, .answers = 1},
    {.name = "an empty array", .bytes = "*0\r\n", .asked = 1, .answers = 1},
    {.name = "messages", .bytes = CONFIRMED MESSAGE "$1\r\nx\r\n" MESSAGE "$0\r\n\r\n", .listening = true, .pushes = 3},
    {.name = "an answer, then a message",
     .bytes = "+OK\r\n" MESSAGE "$1\r\nx\r\n",
     .asked = 1,
     .listening = true,
     .answers = 1,
     .pushes = 1},
    {.name = "an error of a full server", .bytes = "-ERR max number of clients reached\r\n", .ended = true},
    /* What nobody waits for. */
    {.name = "an unasked status", .bytes = "+OK\r\n", .ended = true},
    {.name = "an unasked integer", .bytes = ":1\r\n", .ended = true},
    {.name = "an unasked nil", .bytes = "$-1\r\n", .ended = true},
    {.name = "an unasked string", .bytes = "$1\r\na\r\n", .ended = true},
    {.name = "an unasked array", .bytes = "*1\r\n:1\r\n", .ended = true},
    {.name = "an answer too many", .bytes = ":1\r\n:1\r\n", .asked = 1, .answers = 1, .ended = true},
    {.name = "a message to nobody", .bytes = MESSAGE "$1\r\nx\r\n", .ended = true},
    /* Pushes of other shapes. */
    PUSH("a status as a push", "+OK\r\n"),
    PUSH("an empty push", "*0\r\n"),
    PUSH("a push of one element", "*1\r\n$7\r\nmessage\r\n"),
    PUSH("an end of two elements", "*2\r\n$11\r\nunsubscribe\r\n$2\r\nch\r\n"),
    PUSH("an end", "*3\r\n$11\r\nunsubscribe\r\n$2\r\nch\r\n:0\r\n"),
    PUSH("a push of integers", "*3\r\n:1\r\n:2\r\n:3\r\n"),
    PUSH("a push of nils", "*3\r\n$-1\r\n$-1\r\n$-1\r\n"),
    PUSH("a message without channel", "*3\r\n$7\r\nmessage\r\n:1\r\n$1\r\nx\r\n"),
    PUSH("a message of another channel", "*3\r\n$7\r\nmessage\r\n$3\r\nchx\r\n$1\r\nx\r\n"),
    PUSH("a message without text", MESSAGE "$-1\r\n"),
    PUSH("a message of a number", MESSAGE ":1\r\n"),
    PUSH("a message of more", "*4\r\n$7\r\nmessage\r\n$2\r\nch\r\n$1\r\nx\r\n$1\r\nx\r\n"),
    PUSH("a strange confirmation", "*3\r\n$9\r\nsubscribe\r\n$2\r\nxx\r\n:1\r\n"),
    PUSH("a confirmation without number", "*3\r\n$9\r\nsubscribe\r\n$2\r\nch\r\n$1\r\n1\r\n"),
    /* Kinds that no answer has. */
    ANSWER("a nested array", "*1\r\n*1\r\n:1\r\n"),
    {.name = "deep nesting", .bytes = "*1\r\n", .times = 400000, .asked = 1, .ended = true},
    ANSWER("a long array", "*100000000\r\n"),
    ANSWER("an array of 5", "*5\r\n"),
    ANSWER("a map", "%1\r\n:1\r\n:1\r\n"),
    ANSWER("a set", "~1\r\n:1\r\n"),
    ANSWER("a RESP3 push", ">1\r\n:1\r\n"),
    ANSWER("a double", ",1.5\r\n"),
    ANSWER("a bool", "#t\r\n"),
    /* What does not end. */
    {.name = "a status without end", .bytes = "+0123456789", .times = 10000, .asked = 1, .ended = true},
    {.name = "a length without end", .bytes = "$0", .times = 50000, .asked = 1, .ended = true},
    {.name = "a string without end",
     .bytes = "$9223372036854775807\r\n0123456789012345678901234567890123456789",
     .times = 300000,
     .asked = 1,
     .ended = true},
};

/* --- One conversation --------------------------------------------------------------------------------------------- */

struct heard {
    int answers, pushes;
    bool ended;
    char words[512]; /* all that came through, in words */
    size_t len;      /* of these */
};

__attribute__((format(printf, 2, 3))) static void write_word(struct heard *heard, const char *format, ...) {
    size_t room = sizeof(heard->words) - heard->len;
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(heard->words + heard->len, room, format, args);
    va_end(args);
    heard->len += (size_t)len < room ? (size_t)len : room - 1;
}

/* As far as there is room for its words. */
static void write_reply(struct heard *heard, const redisReply *reply) {
    write_word(heard, "%d %lld ", reply->type, reply->integer);
    if (reply->str)
        write_word(heard, "%zu %s ", (size_t)reply->len, reply->str);
    for (size_t i = 0; i < reply->elements; i++)
        write_reply(heard, reply->element[i]);
}

static void on_reply(redisAsyncContext *connection, void *reply, void *count) {
    if (!reply)
        return;
    write_reply(connection->data, reply);
    ++*(int *)count;
}

static void on_end(const redisAsyncContext *connection, int status) {
    (void)status;
    ((struct heard *)connection->data)->ended = true;
}

/* Says it in chunks of `size`, until all is said or the connection ends. */
static void say(redisAsyncContext *connection, struct socket *peer, const struct said *said, size_t size,
                struct reply_guard *guard, struct heard *heard) {
    size_t len = strlen(said->bytes);
    size_t total = len * (size_t)(said->times ? said->times : 1);
    char chunk[CHUNK];

    for (size_t at = 0; at < total && !heard->ended; at += size) {
        size_t count = total - at < size ? total - at : size;
        for (size_t i = 0; i < count; i++)
            chunk[i] = said->bytes[(at + i) % len];
        socket_put(peer, chunk, count);
        redisAsyncHandleRead(connection);
        if (guard && !heard->ended && evl_reply_guard_overrun(guard))
            redisAsyncFree(connection); /* which tells its end */
    }
}

static struct heard converse(const struct said *said, size_t size, struct reply_guard *guard) {
    struct heard heard = {.ended = false};
    redisAsyncContext *connection = redisAsyncConnectUnix(SOCKETS_FOLDER "0");
    struct socket *peer = socket_accept(0);

    assert_int_equal(connection->err, 0);
    assert_non_null(peer);
    connection->data = &heard;
    redisAsyncSetDisconnectCallback(connection, on_end);
    if (guard)
        evl_reply_guard_raise(guard, connection);
    for (int i = 0; i < said->asked; i++)
        assert_int_equal(redisAsyncCommand(connection, on_reply, &heard.answers, "PING"), REDIS_OK);
    if (said->listening) {
        if (guard)
            evl_reply_guard_listen(guard, "ch", 2);
        assert_int_equal(redisAsyncCommand(connection, on_reply, &heard.pushes, "SUBSCRIBE ch"), REDIS_OK);
    }
    redisAsyncHandleWrite(connection);
    say(connection, peer, said, size, guard, &heard);
    socket_end(peer);
    if (!heard.ended) {
        redisAsyncFree(connection);
        heard.ended = false;
    }
    return heard;
}

/* --- Tests -------------------------------------------------------------------------------------------------------- */

static void hear(void **state) {
    const struct said *said = *state;
    size_t sizes[] = {CHUNK, 7, 1};

    for (size_t i = 0; i < (said->times ? 1 : sizeof(sizes) / sizeof(sizes[0])); i++) {
        struct reply_guard guard;
        struct heard heard = converse(said, sizes[i], &guard);
        assert_int_equal(heard.answers, said->answers);
        assert_int_equal(heard.pushes, said->pushes);
        assert_int_equal(heard.ended, said->ended);
        if (!said->ended)
            assert_string_equal(heard.words, converse(said, sizes[i], NULL).words);
    }
}

/* Short ones are the guard's own, long ones hiredis's: users cannot tell. Nothing is written beyond the guard. */
CASE(a_status_of_any_length_comes_through_whole) {
    char bytes[160] = "+";

    for (size_t len = 0; len < 150; len++) {
        struct {
            struct reply_guard guard;
            char behind;
        } guarded = {.behind = 'x'};
        struct said said = {.bytes = bytes, .asked = 1};
        memset(bytes + 1, 'x', len);
        strcpy(bytes + 1 + len, "\r\n");
        struct heard heard = converse(&said, CHUNK, &guarded.guard);
        assert_int_equal(guarded.behind, 'x');
        assert_int_equal(heard.answers, 1);
        assert_string_equal(heard.words, converse(&said, CHUNK, NULL).words);
    }
}

CASE(without_the_guard) {
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int status;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
            alarm(20);
            signal(SIGSEGV, SIG_DFL); /* which cmocka would take for a failure of the test */
            signal(SIGBUS, SIG_DFL);
            if (!freopen("/dev/null", "w", stderr))
                _exit(1);
            converse(&cases[i], CHUNK, NULL);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        if (status != 0)
            print_message("hiredis %d.%d does not survive %s: %s\n", HIREDIS_MAJOR, HIREDIS_MINOR, cases[i].name,
                          WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "it exits");
    }
}

int main(void) {
    struct CMUnitTest tests[sizeof(cases) / sizeof(cases[0]) + 2];
    size_t count = 0;

    for (; count < sizeof(cases) / sizeof(cases[0]); count++)
        tests[count] = (struct CMUnitTest){
            .name = cases[count].name, .test_func = hear, .initial_state = (void *)(uintptr_t)&cases[count]};
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(a_status_of_any_length_comes_through_whole);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(without_the_guard);
    sockets_listen(0, true);
    return _cmocka_run_group_tests("reply_guard", tests, count, NULL, NULL);
}
