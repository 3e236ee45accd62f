/* Log lines: to the user's callback and nowhere else, of which one is here. It owns nothing, and is never given a token
 * or a password. */
#ifndef EVL_LOG_H
#define EVL_LOG_H

#include <stdbool.h>

#include <evlock/evlock.h>

/* Where a client's lines go. */
struct log_sink {
    evlock_log_cb on_log; /* NULL: nowhere */
    int level;            /* of enum evlock_log_level: less is not wanted */
    void *arg;
};

/* Whether a line of this level would go anywhere. */
static inline bool evl_log_wants(const struct log_sink *sink, enum evlock_log_level level) {
    return sink->on_log && (int)level >= sink->level;
}

/* A line, of at most 399 bytes; what is not printable in it is '?'. */
void evl_log(const struct log_sink *sink, enum evlock_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
