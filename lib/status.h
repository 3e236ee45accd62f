/*
 * Statuses in words, and the text behind evlock_last_error(). It owns one short text per thread. It never sees a token
 * or a password: callers name what is wrong without quoting secrets.
 */
#ifndef EVL_STATUS_H
#define EVL_STATUS_H

#include <evlock/evlock.h>

/** Sets this thread's last error text and returns `status`, so that a failure is told and returned in one line. */
int evl_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Sets the text as it is, cut to its room, with anything but printable ASCII replaced by '?'. */
void evl_error_set(const char *text);

/** Makes the text "". */
void evl_error_clear(void);

#endif
