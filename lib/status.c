/*
 * Statuses in words, and the text behind evlock_last_error(). It owns one short text per thread. It never sees a token
 * or a password: callers name what is wrong without quoting secrets.
 */
#include "status.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static _Thread_local struct words last_error;

const char *evlock_version(void) {
    return EVLOCK_VERSION_STRING;
}

/* By the status without its sign. */
static const char *const status_words[] = {
    [-EVLOCK_OK] = "success",
    [-EVLOCK_EHELD] = "held by another",
    [-EVLOCK_ETIMEDOUT] = "the wait timed out",
    [-EVLOCK_ECANCELLED] = "cancelled",
    [-EVLOCK_ENOTHELD] = "not held",
    [-EVLOCK_ENOTOWNED] = "not owned: the server does not have the token",
    [-EVLOCK_ELOST] = "the lease was lost",
    [-EVLOCK_ENOTTL] = "the lock has no expiry",
    [-EVLOCK_EALREADY] = "the handle is acquiring, holding or releasing already",
    [-EVLOCK_EQUORUM] = "too few nodes agreed",
    [-EVLOCK_EREPLICAS] = "too few replicas confirmed the lock in time",
    [-EVLOCK_EFENCE] = "the fence went backwards, or its counter is beyond reason",
    [-EVLOCK_EEXCLUDED] = "restarted or replaced lately: it may have forgotten locks",
    [-EVLOCK_EEXPIRED] = "the lease's deadline passed",
    [-EVLOCK_EDATALOSS] = "the server lost its data",
    [-EVLOCK_EMAXHOLD] = "the lease's maximum hold passed",
    [-EVLOCK_EINVAL] = "invalid argument",
    [-EVLOCK_ENAME] = "a name must be 1 to 512 bytes long, its prefix included",
    [-EVLOCK_ETOKEN] = "a token must be 1 to 128 bytes long",
    [-EVLOCK_ETTL] = "the ttl is not longer than its drift, or over ten years",
    [-EVLOCK_ERETRY] = "the retry delay is longer than the ttl",
    [-EVLOCK_ERENEWAL] = "the renewal interval leaves no time to renew within the ttl",
    [-EVLOCK_EURL] = "malformed URL",
    [-EVLOCK_ESCHEME] = "the URL's scheme is not supported",
    [-EVLOCK_EPATH] = "the unix socket's path is too long",
    [-EVLOCK_ESAME] = "two nodes are the same server",
    [-EVLOCK_EQUEUE] = "a queue needs a single node and a ttl, and counts no attempts",
    [-EVLOCK_EHOLDER] = "a holder's name must be 1 to 91 bytes long",
    [-EVLOCK_ECLOSED] = "the client is closed",
    [-EVLOCK_EFORKED] = "the object belongs to the parent process",
    [-EVLOCK_ENOMEM] = "out of memory",
    [-EVLOCK_ESYSTEM] = "refused by the system or the event loop",
    [-EVLOCK_EVERSION] = "the options set a field that is newer than this library",
    [-EVLOCK_EUNREACHABLE] = "the server cannot be reached",
    [-EVLOCK_EAUTH] = "authentication refused",
    [-EVLOCK_EPERM] = "permission refused",
    [-EVLOCK_EWRONGTYPE] = "the key holds something that is not a lock",
    [-EVLOCK_EREFUSED] = "the server refuses for now",
    [-EVLOCK_EUNSUPPORTED] = "the server lacks something that is needed",
    [-EVLOCK_EPROTOCOL] = "unexpected answer",
};

const char *evlock_strerror(int status) {
    bool known =
        status <= 0 && status > -(int)(sizeof(status_words) / sizeof(status_words[0])) && status_words[-status];
    return known ? status_words[-status] : "unknown status";
}

const char *evlock_last_error(void) {
    return last_error.text;
}

void evl_error_set(const char *text) {
    size_t len = 0;
    for (; text[len] != '\0' && len < sizeof(last_error.text) - 1; len++)
        last_error.text[len] = text[len] >= ' ' && text[len] <= '~' ? text[len] : '?';
    last_error.text[len] = '\0';
}

/* Aside, since an argument may be what stands there. */
__attribute__((format(printf, 2, 0))) static void status_format(struct words *words, const char *format, va_list args) {
    struct words made = {""};

    (void)vsnprintf(made.text, sizeof(made.text), format, args);
    *words = made;
}

struct trouble evl_trouble(struct words *words, int status, const char *format, ...) {
    va_list args;

    va_start(args, format);
    status_format(words, format, args);
    va_end(args);
    return (struct trouble){status, words->text};
}

int evl_report(struct trouble trouble) {
    evl_error_set(trouble.words);
    return trouble.status;
}

int evl_fail(int status, const char *format, ...) {
    struct words words;
    va_list args;

    va_start(args, format);
    status_format(&words, format, args);
    va_end(args);
    return evl_report((struct trouble){status, words.text});
}
