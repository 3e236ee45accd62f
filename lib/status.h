/*
 * Statuses in words, and the text behind evlock_last_error(). It owns one short text per thread. It never sees a token
 * or a password: callers name what is wrong without quoting secrets.
 */
#ifndef EVL_STATUS_H
#define EVL_STATUS_H

#include <evlock/evlock.h>

/* What went wrong, on its way from where it arose to where it is reported. The words are somebody else's, and valid
 * for the call that they are given to; "" where there are none. */
struct trouble {
    int status;
    const char *words;
};

static const struct trouble evl_no_trouble = {EVLOCK_OK, ""};

/* Sets this thread's last error text and returns `status`, so that a failure is told and returned in one line. */
int evl_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same of a trouble: at the return of a public call. */
int evl_report(struct trouble trouble);

/* Puts words in front of the text that a failure has just set. */
void evl_fail_within(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Sets the text as it is, cut to its room, with anything but printable ASCII replaced by '?'. */
void evl_error_set(const char *text);

/* Makes the text "". */
void evl_error_clear(void);

#endif
