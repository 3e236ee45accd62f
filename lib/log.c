/* Log lines; see log.h. */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>

void evl_log(const struct log_sink *sink, enum evlock_log_level level, const char *format, ...) {
    char line[256];
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
