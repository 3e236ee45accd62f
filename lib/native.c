/* A server's own commands; see native.h. */
#include "native.h"

static const struct form form_delifeq = {NULL, 0, {ARG_DELIFEQ, ARG_LOCK, ARG_TOKEN}};
static const struct form form_delex = {NULL, 0, {ARG_DELEX, ARG_LOCK, ARG_IFEQ, ARG_TOKEN}};

/* For so long, a server whose memory was full is asked for no refresh. */
static const int64_t pause_when_full = INT64_C(10) * 1000000;

void evl_native_reset(struct native *native) {
    *native = (struct native){.refreshes_from = LEASE_NEVER};
}

/* Valkey also says which Redis it is like, which is an old one. */
void evl_native_learn(struct native *native, const struct info_server *info) {
    evl_native_reset(native);
    if (info->valkey ? info->valkey >= 801 : info->redis >= 804)
        native->refreshes_from = 0;
    if (info->valkey >= 900)
        native->deletion = &form_delifeq;
    else if (!info->valkey && info->redis >= 804)
        native->deletion = &form_delex;
}

/* What the script would be refused as well says nothing of the command. An error that is not known may be for good. */
static bool native_is_refused(enum reply_error error) {
    struct reply_meaning meaning = evl_reply_meaning(error);

    if (meaning.reconnect || meaning.verdict == LEASE_AGAIN || meaning.status == EVLOCK_EWRONGTYPE)
        return false;
    return !evl_reply_passes(error);
}

/* Where a SET is refused for want of memory, the script goes on: it takes none. */
bool evl_native_withdraw(struct native *native, enum lease_command command, enum reply_error error, int64_t now) {
    bool full = command == LEASE_REFRESH && error == ERROR_OOM;

    if (full && native->refreshes_from != LEASE_NEVER)
        native->refreshes_from = now + pause_when_full;
    else if (!native_is_refused(error))
        return full;
    else if (command == LEASE_REFRESH)
        native->refreshes_from = LEASE_NEVER;
    else
        native->deletion = NULL;
    return true;
}
