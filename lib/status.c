/*
 * Statuses in words and by name, and the text behind evlock_last_error(). It owns one short text per thread. It never
 * sees a token or a password: callers name what is wrong without quoting secrets.
 */
#include "status.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static _Thread_local struct words last_error;

const char *evlock_version(void) {
    return EVLOCK_VERSION_STRING;
}

/* What is said of a status. */
struct saying {
    const char *name;
    const char *words;
};

#define SAYING(status, words) [-(status)] = {#status, words}

/* By the status without its sign. */
static const struct saying status_sayings[] = {
    SAYING(EVLOCK_OK, "success"),
    SAYING(EVLOCK_EHELD, "held by another"),
    SAYING(EVLOCK_ETIMEDOUT, "the wait timed out"),
    SAYING(EVLOCK_ECANCELLED, "cancelled"),
    SAYING(EVLOCK_ENOTHELD, "not held"),
    SAYING(EVLOCK_ENOTOWNED, "not owned: the server does not have the token"),
    SAYING(EVLOCK_ELOST, "the lease was lost"),
    SAYING(EVLOCK_ENOTTL, "the lock has no expiry"),
    SAYING(EVLOCK_EALREADY, "the handle is acquiring, holding or releasing already"),
    SAYING(EVLOCK_EQUORUM, "too few nodes agreed"),
    SAYING(EVLOCK_EREPLICAS, "too few replicas confirmed the lock in time"),
    SAYING(EVLOCK_EFENCE, "the fence went backwards, or its counter is beyond reason"),
    SAYING(EVLOCK_EEXCLUDED, "restarted or replaced lately: it may have forgotten locks"),
    SAYING(EVLOCK_EEXPIRED, "the lease's deadline passed"),
    SAYING(EVLOCK_EDATALOSS, "the server lost its data"),
    SAYING(EVLOCK_EMAXHOLD, "the lease's maximum hold passed"),
    SAYING(EVLOCK_EINVAL, "invalid argument"),
    SAYING(EVLOCK_ENAME, "a name must be 1 to 512 bytes long, its prefix included"),
    SAYING(EVLOCK_ETOKEN, "a token must be 1 to 128 bytes long"),
    SAYING(EVLOCK_ETTL, "the ttl is out of its bounds"),
    SAYING(EVLOCK_ERETRY, "the retry delay is longer than the ttl"),
    SAYING(EVLOCK_ERENEWAL, "the renewal interval leaves no time to renew within the ttl"),
    SAYING(EVLOCK_EURL, "malformed URL"),
    SAYING(EVLOCK_ESCHEME, "the URL's scheme is not supported"),
    SAYING(EVLOCK_EPATH, "the unix socket's path is too long"),
    SAYING(EVLOCK_ESAME, "two nodes are the same server"),
    SAYING(EVLOCK_EQUEUE, "a queue needs a single node and a ttl, and counts no attempts"),
    SAYING(EVLOCK_EHOLDER, "a holder's name must be 1 to 91 bytes long"),
    SAYING(EVLOCK_ETLS, "a certificate or key cannot be used"),
    SAYING(EVLOCK_EFILE, "the password file cannot be used"),
    SAYING(EVLOCK_ECLOSED, "the client is closed"),
    SAYING(EVLOCK_EFORKED, "the object belongs to the parent process"),
    SAYING(EVLOCK_ENOMEM, "out of memory"),
    SAYING(EVLOCK_ESYSTEM, "refused by the system or the event loop"),
    SAYING(EVLOCK_ETHREAD, "called from another thread than the client's"),
    SAYING(EVLOCK_EVERSION, "the options set a field that is newer than this library"),
    SAYING(EVLOCK_EUNREACHABLE, "the server cannot be reached"),
    SAYING(EVLOCK_EAUTH, "authentication refused"),
    SAYING(EVLOCK_EPERM, "permission refused"),
    SAYING(EVLOCK_EWRONGTYPE, "the key holds something that is not a lock"),
    SAYING(EVLOCK_EREFUSED, "the server refuses for now"),
    SAYING(EVLOCK_EUNSUPPORTED, "the server lacks something that is needed"),
    SAYING(EVLOCK_EPROTOCOL, "unexpected answer"),
    SAYING(EVLOCK_ECERT, "certificate refused"),
    SAYING(EVLOCK_EMASTER, "the Sentinels know no such master"),
};

static struct saying status_say(int status) {
    static const struct saying unknown = {"EVLOCK_?", "unknown status"};
    bool known = status <= 0 && status > -(int)(sizeof(status_sayings) / sizeof(status_sayings[0])) &&
                 status_sayings[-status].name;

    return known ? status_sayings[-status] : unknown;
}

const char *evlock_strerror(int status) {
    return status_say(status).words;
}

const char *evlock_status_name(int status) {
    return status_say(status).name;
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
