/*
 * Statuses in words, and the text behind evlock_last_error(). It owns one short text per thread. It never sees a token
 * or a password: callers name what is wrong without quoting secrets.
 */
#include "status.h"

#include <stdarg.h>
#include <stdio.h>

#define ERROR_SIZE 256

static _Thread_local char last_error[ERROR_SIZE];

const char *evlock_version(void) {
    return EVLOCK_VERSION_STRING;
}

const char *evlock_strerror(int status) {
    switch (status) {
    case EVLOCK_OK:
        return "success";
    case EVLOCK_EHELD:
        return "held by another";
    case EVLOCK_ETIMEDOUT:
        return "the wait timed out";
    case EVLOCK_ECANCELLED:
        return "cancelled";
    case EVLOCK_ENOTHELD:
        return "not held";
    case EVLOCK_ENOTOWNED:
        return "not owned: the server does not have the token";
    case EVLOCK_ELOST:
        return "the lease was lost";
    case EVLOCK_ENOTTL:
        return "the lock has no expiry";
    case EVLOCK_EALREADY:
        return "the handle is acquiring, holding or releasing already";
    case EVLOCK_EQUORUM:
        return "too few nodes agreed";
    case EVLOCK_EREPLICAS:
        return "too few replicas confirmed the lock in time";
    case EVLOCK_EFENCE:
        return "the fence went backwards";
    case EVLOCK_EEXCLUDED:
        return "restarted or replaced lately: it may have forgotten locks";
    case EVLOCK_EINVAL:
        return "invalid argument";
    case EVLOCK_ENAME:
        return "a name must be 1 to 512 bytes long, its prefix included";
    case EVLOCK_ETOKEN:
        return "a token must be 1 to 128 bytes long";
    case EVLOCK_ETTL:
        return "the ttl is negative, not longer than its drift, or over ten years";
    case EVLOCK_ERETRY:
        return "the retry delay is longer than the ttl";
    case EVLOCK_ERENEWAL:
        return "the renewal interval leaves no time to renew within the ttl";
    case EVLOCK_EURL:
        return "malformed URL";
    case EVLOCK_ESCHEME:
        return "the URL's scheme is not supported";
    case EVLOCK_EPATH:
        return "the unix socket's path is too long";
    case EVLOCK_ESAME:
        return "two nodes are the same server";
    case EVLOCK_ECLOSED:
        return "the client is closed";
    case EVLOCK_EFORKED:
        return "the object belongs to the parent process";
    case EVLOCK_ENOMEM:
        return "out of memory";
    case EVLOCK_ESYSTEM:
        return "refused by the system or the event loop";
    case EVLOCK_EUNREACHABLE:
        return "the server cannot be reached";
    case EVLOCK_EAUTH:
        return "authentication refused";
    case EVLOCK_EPERM:
        return "permission refused";
    case EVLOCK_EWRONGTYPE:
        return "the key holds something that is not a lock";
    case EVLOCK_EREFUSED:
        return "the server refuses for now";
    case EVLOCK_EUNSUPPORTED:
        return "the server lacks something that is needed";
    case EVLOCK_EPROTOCOL:
        return "unexpected answer";
    default:
        return "unknown status";
    }
}

const char *evlock_lost_reason_string(enum evlock_lost_reason reason) {
    switch (reason) {
    case EVLOCK_LOST_DEADLINE:
        return "its deadline passed";
    case EVLOCK_LOST_GONE:
        return "the token is gone from the server";
    case EVLOCK_LOST_DATA:
        return "the server lost its data";
    case EVLOCK_LOST_MAX_HOLD:
        return "its maximum hold passed";
    }
    return "unknown reason";
}

const char *evlock_last_error(void) {
    return last_error;
}

void evl_error_set(const char *text) {
    size_t len = 0;
    for (; text[len] != '\0' && len < ERROR_SIZE - 1; len++)
        last_error[len] = text[len] >= ' ' && text[len] <= '~' ? text[len] : '?';
    last_error[len] = '\0';
}

void evl_error_clear(void) {
    last_error[0] = '\0';
}

int evl_fail(int status, const char *format, ...) {
    /* Formatted aside, since an argument may be the last error itself. */
    char text[ERROR_SIZE] = "";
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    evl_error_set(text);
    return status;
}
