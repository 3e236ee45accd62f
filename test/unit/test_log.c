/*
 * Log lines on their way out: which go anywhere, what is made of their bytes, and what evlock_log_stderr() writes.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "log.h"

/* What one write brings to the standard error, instead of to the terminal: a pipe in packets keeps writes apart. */
static const char *written(enum evlock_log_level level, const char *line) {
    static char text[2000];
    int ends[2], before = dup(STDERR_FILENO);

    assert_true(before >= 0);
    assert_int_equal(pipe2(ends, O_DIRECT | O_NONBLOCK), 0);
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    evlock_log_stderr(level, line, NULL);
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    ssize_t len = read(ends[0], text, sizeof(text) - 1);
    assert_true(len > 0);
    text[len] = '\0';
    close(ends[1]);
    assert_int_equal(read(ends[0], text + len, 1), 0);
    close(ends[0]);
    close(before);
    return text;
}

CASE(a_line_is_written_at_once_with_its_level) {
    assert_string_equal(written(EVLOCK_LOG_DEBUG, "a: held"), "evlock: DEBUG: a: held\n");
    assert_string_equal(written(EVLOCK_LOG_INFO, "b"), "evlock: INFO: b\n");
    assert_string_equal(written(EVLOCK_LOG_WARN, "50 %s"), "evlock: WARN: 50 %s\n");
    assert_string_equal(written(EVLOCK_LOG_ERROR, ""), "evlock: ERROR: \n");
    assert_string_equal(written((enum evlock_log_level)0, "c"), "evlock: ?: c\n");
}

/* None of evlock's own is: they have 255 bytes at most. */
CASE(a_longer_line_is_cut) {
    char line[1000];
    memset(line, 'x', sizeof(line) - 1);
    for (size_t len = 480; len < sizeof(line); len++) {
        line[len] = '\0';
        const char *text = written(EVLOCK_LOG_INFO, line);
        size_t whole = strlen("evlock: INFO: ") + len + 1;
        assert_int_equal(strlen(text), whole < 511 ? whole : 511);
        assert_int_equal(text[strlen(text) - 1], '\n');
        line[len] = 'x';
    }
}

CASE(who_has_no_standard_error_hears_nothing) {
    int before = dup(STDERR_FILENO);
    assert_true(before >= 0);
    close(STDERR_FILENO);
    evlock_log_stderr(EVLOCK_LOG_WARN, "a", NULL);
    assert_true(dup2(before, STDERR_FILENO) >= 0);
    close(before);
}

static unsigned logged;

static void note(enum evlock_log_level level, const char *line, void *arg) {
    (void)level;
    logged++;
    assert_string_equal(line, arg);
}

CASE(lines_below_the_level_go_nowhere) {
    const struct log_sink sink = {note, EVLOCK_LOG_WARN, (void *)(uintptr_t) "a?b 7"};
    logged = 0;
    evl_log(&sink, EVLOCK_LOG_DEBUG, "x");
    evl_log(&sink, EVLOCK_LOG_INFO, "x");
    assert_int_equal(logged, 0);
    evl_log(&sink, EVLOCK_LOG_WARN, "a\nb %d", 7);
    evl_log(&sink, EVLOCK_LOG_ERROR,
            "a\x1b"
            "b %d",
            7);
    assert_int_equal(logged, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_written_at_once_with_its_level),
        cmocka_unit_test(a_longer_line_is_cut),
        cmocka_unit_test(who_has_no_standard_error_hears_nothing),
        cmocka_unit_test(lines_below_the_level_go_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
