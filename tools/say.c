/*
 * Lines on the standard error. It owns the level and the line of progress on a terminal, and knows nothing of what is
 * said.
 */
#include <evlock/evlock.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "exits.h"
#include "say.h"

enum { SAY_HEX = sizeof "\\x1b" - 1 };

static enum say_level say_most = SAY_NOTES;
static bool say_in_progress; /* a line of progress stands on the terminal */

void say_up_to(enum say_level level) {
    say_most = level;
}

bool says(enum say_level level) {
    return level <= say_most;
}

/* A standard error that is gone or full is no reason to stop. */
static void say_write(const char *text, size_t length) {
    ssize_t written = write(STDERR_FILENO, text, length);
    (void)written;
}

/* One line, whatever names and servers' words have in them: a terminal gets no control characters. */
__attribute__((format(printf, 1, 0))) static void say_line(const char *format, va_list arguments) {
    char text[2048], line[sizeof text * 2] = "evlock: ";
    size_t length = strlen(line);
    say_progress(NULL);
    vsnprintf(text, sizeof text, format, arguments);
    for (const char *from = text; *from && length + SAY_HEX + 1 < sizeof line; from++) {
        if ((unsigned char)*from < ' ' || *from == '\177')
            length += (size_t)snprintf(line + length, SAY_HEX + 1, "\\x%02x", (unsigned char)*from);
        else
            line[length++] = *from;
    }
    line[length] = '\n';
    say_write(line, length + 1);
}

void say(enum say_level level, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (says(level))
        say_line(format, arguments);
    va_end(arguments);
}

int say_error(int exit, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say_line(format, arguments);
    va_end(arguments);
    return exit;
}

int say_status(const char *what, int status) {
    const char *details = evlock_last_error();
    if (*details)
        return say_error(EXIT_TROUBLE, "%s: %s (%s)", what, evlock_strerror(status), details);
    return say_error(EXIT_TROUBLE, "%s: %s", what, evlock_strerror(status));
}

bool say_shows_progress(void) {
    return says(SAY_NOTES) && isatty(STDERR_FILENO);
}

void say_progress(const char *line) {
    static const char clear[] = "\r\033[K";
    if (say_in_progress)
        say_write(clear, sizeof clear - 1);
    say_in_progress = line && say_shows_progress();
    if (say_in_progress)
        say_write(line, strlen(line));
}
