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

/* Room for words that are put together: that of a public call, on its stack. */
struct words {
    char text[256];
};

static const struct trouble evl_no_trouble = {EVLOCK_OK, ""};

/* A trouble whose words are put together in `words`, cut to its room. Those that stood there may be a part of them. */
struct trouble evl_trouble(struct words *words, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* At the return of a public call: makes the words this thread's last error, and returns the status. */
int evl_report(struct trouble trouble);

/* Both in one, in a public call that has no words to hand on. */
int evl_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sets the text as it is, cut to its room, with anything but printable ASCII replaced by '?'. */
void evl_error_set(const char *text);

#endif
