/*
 * Options, checked and in the library's units. A config is shared by the handles that want the same, so that many
 * handles cost little. By it a handle finds its deployment, and learns that this is gone. It owns its strings.
 */
#ifndef EVL_CONFIG_H
#define EVL_CONFIG_H

#include <sys/queue.h>

#include <evlock/evlock.h>

#include "bytes.h"
#include "kind.h"
#include "lease.h"
#include "status.h"

struct deployment;

#define CONNECTION_NAME_MAX 64
#define HOLDER_MAX_LEN 91 /* what a token has room for beside a UUID and what parts them */

/* Of a client; times in microseconds. */
struct client_config {
    int64_t connect_timeout;
    int64_t command_timeout;
    int64_t backoff_min;
    int64_t backoff_max;
    uint32_t max_inflight;
    int64_t max_ttl;
    int64_t close_wait; /* INT64_MAX: without limit */
    int64_t failover_wait;
    bool durable;
    bool distrust_uptime;
    bool renews_credentials; /* refused ones may be followed by better ones */
    int log_level;
    char connection_name[CONNECTION_NAME_MAX + 1]; /* "": none is given */
    evlock_connection_cb on_connection;
    evlock_log_cb on_log;
    evlock_login_cb on_login;
    void *arg;
};

/* How far an acquire goes, and what it draws; times in microseconds. */
struct limits {
    int64_t attempts; /* the first included; EVLOCK_UNLIMITED: without limit */
    int64_t wait;     /* EVLOCK_UNLIMITED: without limit */
    int64_t retry_delay;
    bool fence;
    bool fail_when_away;
};

/* Of handles; times in microseconds. */
struct config {
    LIST_ENTRY(config) link;       /* among all of its client */
    struct deployment *deployment; /* of the handles that have it; NULL before, and once it is gone */
    uint32_t references;
    struct lease_terms terms;
    struct lease_terms kept; /* the same of a lease that is held for ever, which is renewed in any case */
    struct limits limits;
    int64_t retry_jitter;
    int64_t min_replicas;
    int64_t replica_timeout; /* as given; 0: it is not */
    int64_t replica_wait;    /* what that means with the deployment's command_timeout */
    enum lock_kind kind;     /* by how to wait: in the queue, or by polling */
    uint32_t max_passes;     /* of a lease from handle to handle, in a row; 0: it is never passed on */
    int64_t max_pass;        /* and for how long, from the server's grant */
    evlock_cb on_lost;
    evlock_cb on_at_risk;
    char *holder; /* NULL: none is given */
    char *prefix;
    char *label; /* NULL: the name */
};

/* Checks and converts; the options as given come back too, of this library's size. Both are set on success only. NULL
 * options are the defaults. */
struct trouble evl_config_read_client(struct client_config *ret, evlock_client_options *ret_given,
                                      const evlock_client_options *options, struct words *words);

/* A config for `options`: `last` with one more reference if it is the same (`last` may be NULL), else a new one.
 * Returns as evlock_new(). */
struct trouble evl_config_get(struct config **ret, struct config *last, const evlock_options *options,
                              struct words *words);

/* Takes a reference back; with the last one it is freed. NULL is allowed. */
void evl_config_unref(struct config *config);

/* The options as given, of whatever size, with zero in place of what is missing. */
struct trouble evl_config_read_options(evlock_options *ret, const evlock_options *options, struct words *words);

/* The limits of an acquire: the lock's, and what its own options set; and these as given. */
struct trouble evl_config_read_acquire(struct limits *ret, evlock_acquire_options *ret_given,
                                       const struct config *config, const evlock_acquire_options *options,
                                       struct words *words);

/* Whether their handles say the same of a lease on the wire and agree on its terms: one may have the other's lease. */
bool evl_config_same_lease(const struct config *a, const struct config *b);

/* The config of which these are the terms. */
static inline const struct config *evl_config_of_terms(const struct lease_terms *terms) {
    return terms->kept ? EVL_OWNER(const struct config, kept, terms) : EVL_OWNER(const struct config, terms, terms);
}

/* EVLOCK_OK or EVLOCK_ETTL, of a ttl. */
struct trouble evl_config_validate_ttl(int64_t ttl_ms, struct words *words);

#endif
