/*
 * What a server has commands of its own for, where others need a script: a renewal that sets the ttl (LEASE_REFRESH),
 * and a release that hands on to nobody. Its version says what it has, until it refuses that. This is what is known of
 * one connection's server, and which form a command takes there. Whether a lease may be renewed so, its lease decides.
 */
#ifndef EVL_NATIVE_H
#define EVL_NATIVE_H

#include "dialect.h"
#include "info.h"

struct native {
    int64_t refreshes_from;      /* from then on renewals may be refreshes; LEASE_NEVER: by script alone */
    const struct form *deletion; /* by which locks without a queue are released; NULL: by script */
};

/* Nothing is known of the server. */
void evl_native_reset(struct native *native);

/* What a server of these versions has. */
void evl_native_learn(struct native *native, const struct info_server *info);

/* The form of a release in this dialect. */
static inline const struct form *evl_native_release(const struct native *native, const struct dialect *dialect) {
    if (native->deletion && evl_dialect_releases_plainly(dialect))
        return native->deletion;
    return &dialect->commands[LEASE_RELEASE]->form;
}

/* A refresh or a release of its own form was refused. True: it is to be sent again, by script. That goes for all from
 * here on, or, where the server's memory is full, for a while. */
bool evl_native_withdraw(struct native *native, enum lease_command command, enum reply_error error, int64_t now);

#endif
