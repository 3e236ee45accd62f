/* Log lines; see log.h. */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

void evl_log(const struct log_sink *sink, enum evlock_log_level level, const char *format, ...) {
    char line[400];
    va_list args;

    if (!evl_log_wants(sink, level))
        return;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    for (char *c = line; *c; c++) /* a server's words may be of anything */
        *c = *c >= ' ' && *c <= '~' ? *c : '?';
    sink->on_log(level, line, sink->arg);
}

static const char *log_level_name(enum evlock_log_level level) {
    switch (level) {
    case EVLOCK_LOG_DEBUG:
        return "DEBUG";
    case EVLOCK_LOG_INFO:
        return "INFO";
    case EVLOCK_LOG_WARN:
        return "WARN";
    case EVLOCK_LOG_ERROR:
        return "ERROR";
    }
    return "?";
}

/* By one write, so that the lines of threads and processes do not mix. Who cannot write is not told. */
void evlock_log_stderr(enum evlock_log_level level, const char *line, void *arg) {
    char text[512];
    int len = snprintf(text, sizeof(text) - 1, "evlock: %s: %s", log_level_name(level), line);
    size_t end = (size_t)len < sizeof(text) - 1 ? (size_t)len : sizeof(text) - 2;

    (void)arg;
    text[end] = '\n';
    if (write(STDERR_FILENO, text, end + 1) < 0)
        return;
}
