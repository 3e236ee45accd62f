/* Log lines: to the user's callback and nowhere else. Tokens and passwords are never given to it. */
#ifndef EVL_LOG_H
#define EVL_LOG_H

#include <evlock/evlock.h>

struct evlock;

void evl_log(struct evlock_client *client, enum evlock_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A line about a lock, by its label. */
void evl_log_lock(const struct evlock *lock, enum evlock_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
