/* What a server's errors mean; see reply.h. One table, read from the top. */
#include "reply.h"

#include <string.h>

#include <evlock/evlock.h>

const char evl_reply_no_clock[] = "NOTIME the server gives its clock neither to scripts nor by TIME";

const char evl_reply_elsewhere[] = "MOVED to be sent again";
const char evl_reply_halfway[] = "TRYAGAIN to be sent again";

struct row {
    const char *words;
    bool anywhere; /* the words may stand in the middle: errors from inside scripts are wrapped */
    struct reply_meaning meaning;
};

static const struct row rows[] = {
    {"NOSCRIPT", false, {LEASE_AGAIN, EVLOCK_EREFUSED, false}},
    {"NOCLOCK", false, {LEASE_AGAIN, EVLOCK_EREFUSED, false}},        /* by our own scripts */
    {"NOTIME", false, {LEASE_FORBIDDEN, EVLOCK_EUNSUPPORTED, false}}, /* by evl_reply_no_clock */
    {"LOADING", false, {LEASE_REFUSED, EVLOCK_EREFUSED, false}},
    {"BUSY", false, {LEASE_REFUSED, EVLOCK_EREFUSED, false}},
    {"MASTERDOWN", false, {LEASE_REFUSED, EVLOCK_EREFUSED, false}},
    {"TRYAGAIN", false, {LEASE_REFUSED, EVLOCK_EREFUSED, false}},
    {"CLUSTERDOWN", false, {LEASE_REFUSED, EVLOCK_EREFUSED, false}},
    {"OOM", false, {LEASE_REFUSED, EVLOCK_EREFUSED, false}},
    {"MISCONF", false, {LEASE_REFUSED, EVLOCK_EREFUSED, false}},
    {"NOREPLICAS", false, {LEASE_REFUSED, EVLOCK_EREFUSED, false}},
    /* A replica: a new connection may find the new master. */
    {"READONLY", false, {LEASE_REFUSED, EVLOCK_EREFUSED, true}},
    {"ERR WAIT cannot be used", false, {LEASE_REFUSED, EVLOCK_EREFUSED, true}},
    {"ERR max number of clients", false, {LEASE_REFUSED, EVLOCK_EREFUSED, true}},
    {"MOVED", false, {LEASE_FORBIDDEN, EVLOCK_EUNSUPPORTED, false}},
    {"ASK", false, {LEASE_FORBIDDEN, EVLOCK_EUNSUPPORTED, false}},
    {"CROSSSLOT", false, {LEASE_FORBIDDEN, EVLOCK_EUNSUPPORTED, false}},
    {"NOAUTH", false, {LEASE_FORBIDDEN, EVLOCK_EAUTH, true}},
    {"WRONGPASS", false, {LEASE_FORBIDDEN, EVLOCK_EAUTH, true}},
    {"ERR AUTH", false, {LEASE_FORBIDDEN, EVLOCK_EAUTH, true}},
    {"ERR Client sent AUTH", false, {LEASE_FORBIDDEN, EVLOCK_EAUTH, true}},
    /* By a server that is protected from strangers: what it says then is why, and what to do. */
    {"DENIED", false, {LEASE_FORBIDDEN, EVLOCK_EPERM, true}},
    {"NOPERM", false, {LEASE_FORBIDDEN, EVLOCK_EPERM, false}},
    {"user executing the script can't", true, {LEASE_FORBIDDEN, EVLOCK_EPERM, false}},
    {"ACL failure in script", true, {LEASE_FORBIDDEN, EVLOCK_EPERM, false}},
    {"WRONGTYPE", false, {LEASE_FORBIDDEN, EVLOCK_EWRONGTYPE, false}},
    {"ERR unknown subcommand", false, {LEASE_FORBIDDEN, EVLOCK_EUNSUPPORTED, false}},
    {"ERR Unknown subcommand", false, {LEASE_FORBIDDEN, EVLOCK_EUNSUPPORTED, false}},
    {"scripting support disabled", true, {LEASE_FORBIDDEN, EVLOCK_EUNSUPPORTED, false}},
    {"not support for your account", true, {LEASE_FORBIDDEN, EVLOCK_EUNSUPPORTED, false}},
    {"command called from", true, {LEASE_FORBIDDEN, EVLOCK_EUNSUPPORTED, false}}, /* unknown to it */
    {"not allowed from script", true, {LEASE_FORBIDDEN, EVLOCK_EUNSUPPORTED, false}},
    /* A slot that is on its way to another node of a cluster. */
    {"attempted to access a non local key", true, {LEASE_REFUSED, EVLOCK_EREFUSED, false}},
    /* By our own scripts: a counter that is no number, or beyond reason. */
    {"FENCE", false, {LEASE_FORBIDDEN, EVLOCK_EFENCE, false}},
    {"ERR unknown command", false, {LEASE_FORBIDDEN, EVLOCK_EUNSUPPORTED, false}},
    {"ERR SELECT is not allowed in cluster mode", false, {LEASE_FORBIDDEN, EVLOCK_EUNSUPPORTED, false}},
    {"ERR DB index", false, {LEASE_FORBIDDEN, EVLOCK_EUNSUPPORTED, false}},
    {"ERR", false, {LEASE_FORBIDDEN, EVLOCK_EPROTOCOL, false}},
    /* An error code of a later server: it did not run, and may at another time. */
    {"", false, {LEASE_REFUSED, EVLOCK_EREFUSED, false}},
};

static const struct row *reply_row_of(const char *error) {
    const struct row *row = rows;

    while (row->anywhere ? !strstr(error, row->words) : strncmp(error, row->words, strlen(row->words)) != 0)
        row++;
    return row;
}

struct reply_meaning evl_reply_meaning(const char *error) {
    if (error == evl_reply_elsewhere || error == evl_reply_halfway)
        return (struct reply_meaning){LEASE_AGAIN, EVLOCK_EREFUSED, false};
    return reply_row_of(error)->meaning;
}

bool evl_reply_is_scattered(const char *error) {
    return strncmp(error, "CROSSSLOT", 9) == 0 || strstr(error, "non local key") || strstr(error, "same slot");
}

bool evl_reply_passes(const char *error) {
    const struct row *row = reply_row_of(error);

    return row->meaning.verdict == LEASE_REFUSED && row->words[0];
}

void evl_reply_drop_quotes(char *error) {
    char *quotes = strstr(error, ", with args");

    if (quotes)
        *quotes = '\0';
}
