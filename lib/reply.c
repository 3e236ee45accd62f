/* What a server's errors mean; see reply.h. Two tables: what each text says, read from the top, and what that means. */
#include "reply.h"

#include <string.h>

#include <evlock/evlock.h>

#include "check.h"

/* --- What a text says --------------------------------------------------------------------------------------------- */

/* It begins with the code and has the words in it: errors from inside scripts are wrapped. */
static const struct {
    const char *code, *words;
    enum reply_error error;
} rows[] = {
    {"NOSCRIPT", "", ERROR_NOSCRIPT},
    {"NOCLOCK", "", ERROR_NOCLOCK},
    {"NOTIME", "", ERROR_LACKING},
    {"LOADING", "", ERROR_FOR_NOW},
    {"BUSY", "", ERROR_FOR_NOW},
    {"MASTERDOWN", "", ERROR_FOR_NOW},
    {"TRYAGAIN", "", ERROR_TRYAGAIN},
    {"CLUSTERDOWN", "", ERROR_DOWN},
    {"OOM", "", ERROR_OOM},
    {"MISCONF", "", ERROR_FOR_NOW},
    {"NOREPLICAS", "", ERROR_FOR_NOW},
    {"READONLY", "", ERROR_REPLICA},
    {"ERR WAIT cannot be used", "", ERROR_REPLICA},
    {"ERR max number of clients", "", ERROR_CROWDED},
    {"ERR max", "", ERROR_OVER_LIMIT},
    {"MOVED", "", ERROR_MOVED},
    {"ASK", "", ERROR_MOVED},
    {"CROSSSLOT", "", ERROR_CROSS_SLOT},
    {"NOAUTH", "", ERROR_LOGIN},
    {"WRONGPASS", "", ERROR_LOGIN},
    {"ERR AUTH", "", ERROR_LOGIN},
    {"ERR Client sent AUTH", "", ERROR_LOGIN},
    {"DENIED", "", ERROR_PROTECTED},
    {"NOPERM", "'evalsha'", ERROR_NO_EVALSHA},
    {"NOPERM", "'eval'", ERROR_NO_EVAL},
    {"NOPERM", "", ERROR_NO_RIGHT},
    {"", "user executing the script can't", ERROR_NO_RIGHT},
    {"", "ACL failure in script", ERROR_NO_RIGHT},
    {"WRONGTYPE", "", ERROR_TYPE},
    {"ERR unknown subcommand", "", ERROR_LACKING},
    {"ERR Unknown subcommand", "", ERROR_LACKING},
    {"", "scripting support disabled", ERROR_LACKING},
    {"", "not support for your account", ERROR_LACKING},
    {"", "command called from", ERROR_LACKING}, /* unknown to it */
    {"", "not allowed from script", ERROR_LACKING},
    {"", "non local key", ERROR_NOT_LOCAL},
    {"FENCE", "", ERROR_FENCE},
    {"ERR unknown command", "", ERROR_LACKING},
    {"ERR SELECT is not allowed in cluster mode", "", ERROR_LACKING},
    {"ERR DB index", "", ERROR_LACKING},
    {"ERR", "same slot", ERROR_SLOTS},
    {"", "number of arguments", ERROR_ARGUMENTS},
    {"ERR", "No such master", ERROR_NO_MASTER},
    {"ERR", "", ERROR_SENSELESS},
    {"", "", ERROR_STRANGE},
};

enum reply_error evl_reply_error(const char *text) {
    size_t i = 0;

    while (strncmp(text, rows[i].code, strlen(rows[i].code)) != 0 || !strstr(text, rows[i].words))
        i++;
    return rows[i].error;
}

struct reply evl_reply_of(const char *text) {
    return evl_reply_instead(evl_reply_error(text), text);
}

struct reply evl_reply_instead(enum reply_error error, const char *words) {
    return (struct reply){.type = REPLY_ERROR, .error = error, .text = words, .len = strlen(words)};
}

/* --- What that means ---------------------------------------------------------------------------------------------- */

#define AGAIN                                                                                                          \
    { LEASE_AGAIN, EVLOCK_EREFUSED, false }
#define FOR_NOW                                                                                                        \
    { LEASE_REFUSED, EVLOCK_EREFUSED, false }
#define FOR_NOW_HERE                                                                                                   \
    { LEASE_REFUSED, EVLOCK_EREFUSED, true }
#define FOR_GOOD(status)                                                                                               \
    { LEASE_FORBIDDEN, status, false }
#define FOR_GOOD_HERE(status)                                                                                          \
    { LEASE_FORBIDDEN, status, true }

static const struct reply_meaning meanings[ERRORS] = {
    [ERROR_NOSCRIPT] = AGAIN,
    [ERROR_NOCLOCK] = AGAIN,
    [ERROR_FENCE] = FOR_GOOD(EVLOCK_EFENCE),
    [ERROR_FOR_NOW] = FOR_NOW,
    [ERROR_OOM] = FOR_NOW,
    [ERROR_TRYAGAIN] = FOR_NOW,
    [ERROR_DOWN] = FOR_NOW,
    [ERROR_NOT_LOCAL] = FOR_NOW,
    [ERROR_REPLICA] = FOR_NOW_HERE,
    [ERROR_CROWDED] = FOR_NOW_HERE,
    [ERROR_OVER_LIMIT] = FOR_GOOD(EVLOCK_EPROTOCOL),
    [ERROR_MOVED] = FOR_GOOD(EVLOCK_EUNSUPPORTED),
    [ERROR_CROSS_SLOT] = FOR_GOOD(EVLOCK_EUNSUPPORTED),
    [ERROR_SLOTS] = FOR_GOOD(EVLOCK_EPROTOCOL),
    [ERROR_LOGIN] = FOR_GOOD_HERE(EVLOCK_EAUTH),
    [ERROR_PROTECTED] = FOR_GOOD_HERE(EVLOCK_EPERM),
    [ERROR_NO_EVALSHA] = FOR_GOOD(EVLOCK_EPERM),
    [ERROR_NO_EVAL] = FOR_GOOD(EVLOCK_EPERM),
    [ERROR_NO_RIGHT] = FOR_GOOD(EVLOCK_EPERM),
    [ERROR_TYPE] = FOR_GOOD(EVLOCK_EWRONGTYPE),
    [ERROR_LACKING] = FOR_GOOD(EVLOCK_EUNSUPPORTED),
    [ERROR_ARGUMENTS] = FOR_GOOD(EVLOCK_EPROTOCOL),
    [ERROR_NO_MASTER] = FOR_GOOD(EVLOCK_EPROTOCOL),
    [ERROR_SENSELESS] = FOR_GOOD(EVLOCK_EPROTOCOL),
    [ERROR_STRANGE] = FOR_NOW,
    [ERROR_NO_CLOCK] = FOR_GOOD(EVLOCK_EUNSUPPORTED),
    [ERROR_ELSEWHERE] = AGAIN,
    [ERROR_HALFWAY] = AGAIN,
};

struct reply_meaning evl_reply_meaning(enum reply_error error) {
    assert(error != ERROR_NONE);
    return meanings[error];
}

bool evl_reply_is_scattered(enum reply_error error) {
    return error == ERROR_CROSS_SLOT || error == ERROR_SLOTS || error == ERROR_NOT_LOCAL;
}

bool evl_reply_passes(enum reply_error error) {
    return evl_reply_meaning(error).verdict == LEASE_REFUSED && error != ERROR_STRANGE;
}

/* --- Secrets ------------------------------------------------------------------------------------------------------ */

void evl_reply_drop_quotes(char *error) {
    char *quotes = strstr(error, ", with args");

    if (quotes)
        *quotes = '\0';
}
