/* The handle: its life, what it tells locally, and what its lease leads to; see lock.h. */
#include "lock.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "memory.h"
#include "stats.h"
#include "status.h"

#define NAME_MAX_LEN 512

void evl_lock_ref(struct evlock *lock) {
    lock->references++;
}

void evl_lock_unref(struct evlock *lock) {
    if (--lock->references > 0)
        return;
    evl_config_unref(lock->config);
    evl_free(lock);
}

struct bytes evl_lock_key(const struct evlock *lock) {
    return (struct bytes){lock->key, lock->key_len};
}

int evl_lock_check(const struct evlock *lock) {
    evl_error_clear();
    if (!lock)
        return evl_fail(EVLOCK_EINVAL, "the lock is NULL");
    if (!client_of(lock))
        return evl_fail(EVLOCK_ECLOSED, "the lock's client is gone");
    return evl_client_check(client_of(lock));
}

struct call *evl_lock_pending(const struct evlock *lock, enum call_kind kind) {
    struct call *call;

    for (call = lock->calls; call; call = call->next)
        if (call->kind == kind)
            return call;
    return NULL;
}

bool evl_lock_holds(const struct evlock *lock) {
    return lock && client_of(lock) && lock->tenure && evl_lease_state(lease_of(lock->tenure)) == LEASE_HELD &&
           !evl_lock_acquiring(lock) && !evl_client_forked(client_of(lock)) &&
           evl_client_now(client_of(lock)) < evl_lease_deadline(lease_of(lock->tenure));
}

bool evl_lock_acquiring(const struct evlock *lock) {
    return lock->untold || evl_lock_pending(lock, CALL_ACQUIRE) || evl_lock_pending(lock, CALL_ADOPT);
}

bool evl_lock_queues(const struct evlock *lock) {
    return lock->tenure && evl_lease_in_line(lease_of(lock->tenure));
}

/* --- Life --------------------------------------------------------------------------------------------------------- */

static int check_name(const void *name, size_t *len, size_t prefix_len) {
    if (!name)
        return evl_fail(EVLOCK_ENAME, "the name is NULL");
    if (*len == EVLOCK_CSTRING)
        *len = strlen(name);
    if (*len == 0)
        return evl_fail(EVLOCK_ENAME, "the name is empty");
    if (*len > NAME_MAX_LEN || *len + prefix_len > NAME_MAX_LEN)
        return evl_fail(EVLOCK_ENAME, "the name has %zu bytes with its prefix, more than %d",
                        *len > NAME_MAX_LEN ? *len : *len + prefix_len, NAME_MAX_LEN);
    return EVLOCK_OK;
}

static size_t length_of(const char *prefix) {
    return prefix ? strlen(prefix) : 0;
}

static struct evlock *make(struct config *config, const void *name, size_t len, void *arg) {
    size_t prefix_len = length_of(config->prefix);
    struct evlock *lock = evl_alloc(sizeof(*lock) + prefix_len + len + 1);

    if (!lock)
        return NULL;
    lock->config = config;
    lock->arg = arg;
    lock->references = 1;
    lock->key_len = (uint16_t)(prefix_len + len);
    if (prefix_len)
        memcpy(lock->key, config->prefix, prefix_len);
    memcpy(lock->key + prefix_len, name, len);
    return lock;
}

/* A new config becomes the client's. */
static void take_on(struct evlock_client *client, struct config *config) {
    config->client = client;
    LIST_INSERT_HEAD(&client->configs, config, link);
    config->terms.max_ttl = client->config.max_ttl;
    if (config->terms.grain)
        config->terms.phase = (int64_t)(client->phase % (uint64_t)config->terms.grain);
}

/* The newest config is remembered, for the next handle often wants the same. */
static void remember(struct evlock_client *client, struct config *config) {
    if (client->last_config == config)
        return;
    evl_config_unref(client->last_config);
    client->last_config = config;
    config->references++;
}

/* What a lock asks of its client's nodes. */
static int check_deployment(struct evlock_client *client, const struct config *config) {
    int64_t max = client->config.max_ttl;

    if (client->node_count > 1 && config->terms.ttl == 0)
        return evl_fail(EVLOCK_ETTL, "a lock on several nodes needs a ttl");
    if (client->node_count > 1 && config->terms.ttl > max)
        return evl_fail(EVLOCK_ETTL, "the ttl of %" PRId64 " ms is longer than the client's max_ttl of %" PRId64 " ms",
                        config->terms.ttl / 1000, max / 1000);
    if (client->node_count > 1 && config->queue)
        return evl_fail(EVLOCK_EQUEUE, "several nodes have no queue in common");
    if (config->min_replicas == 0)
        return EVLOCK_OK;
    if (config->terms.ttl == 0)
        return evl_fail(EVLOCK_ETTL, "a lock that its replicas confirm needs a ttl");
    if (config->replica_timeout >= client->config.command_timeout)
        return evl_fail(EVLOCK_EINVAL, "replica_timeout_ms is not less than the client's command_timeout_ms");
    return evl_client_link(client);
}

int evlock_new(evlock **ret_lock, evlock_client *client, const void *name, size_t name_len,
               const evlock_options *options) {
    evlock_options given;
    struct config *config;
    struct evlock *lock;
    int status;

    evl_error_clear();
    if (!ret_lock || !client)
        return evl_fail(EVLOCK_EINVAL, "%s is NULL", ret_lock ? "the client" : "ret_lock");
    if ((status = evl_client_check(client)) != EVLOCK_OK)
        return status;
    if ((status = evl_options_read(&given, options)) != EVLOCK_OK)
        return status;
    if ((status = check_name(name, &name_len, length_of(given.prefix))) != EVLOCK_OK)
        return status;
    if ((status = evl_config_get(&config, client->last_config, options)) != EVLOCK_OK)
        return status;
    if (!config->client)
        take_on(client, config);
    if ((status = check_deployment(client, config)) != EVLOCK_OK) {
        evl_config_unref(config);
        return status;
    }
    lock = make(config, name, name_len, given.arg);
    if (!lock) {
        evl_config_unref(config);
        return evl_fail(EVLOCK_ENOMEM, "no memory for a lock");
    }
    if (config->queue && !evl_key_has_company(evl_lock_key(lock))) {
        evlock_free(lock);
        return evl_fail(EVLOCK_EQUEUE, "no other key is in the cluster slot of a name with } and without a hash tag");
    }
    remember(client, config);
    *ret_lock = lock;
    return EVLOCK_OK;
}

void evl_lock_forget_notices(struct evlock *lock) {
    lock->lost = 0;
    lock->risky = false;
}

/* A lease that was adopted and not yet told is left as it was found. */
static void drop_tenure(struct evlock *lock) {
    struct call *untold = lock->untold;

    lock->untold = NULL;
    if (untold)
        evl_call_cancel(untold);
    if (untold && untold->kind == CALL_ADOPT)
        evl_tenure_export(lock->tenure);
    else if (lock->tenure)
        evl_tenure_abandon(lock->tenure);
}

void evl_lock_drop(struct evlock *lock) {
    struct call *call;

    evl_lock_forget_notices(lock);
    drop_tenure(lock);
    while ((call = lock->calls))
        evl_call_cancel(call);
}

void evl_lock_wind_up(struct evlock *lock) {
    struct call *call, *next, *release = evl_lock_pending(lock, CALL_RELEASE);

    if (!release) {
        evl_lock_drop(lock);
        return;
    }
    for (call = lock->calls; call; call = next) {
        next = call->next;
        if (call != release)
            evl_call_cancel(call);
    }
}

void evl_lock_cancel_acquire(struct evlock *lock, struct call *call) {
    drop_tenure(lock);
    if (call)
        evl_call_cancel(call);
}

void evl_lock_give_up_lost(struct evlock *lock) {
    evl_tenure_abandon(lock->tenure);
}

void evl_lock_drop_forked(struct evlock *lock) {
    struct call *call;

    evl_lock_forget_notices(lock);
    lock->untold = NULL;
    while ((call = lock->calls))
        evl_call_finish_forked(call);
    if (lock->tenure)
        evl_tenure_let_go(lock->tenure);
}

void evlock_free(evlock *lock) {
    struct evlock_client *client;

    if (!lock)
        return;
    client = client_of(lock);
    lock->freed = true;
    if (client && evl_client_forked(client))
        evl_lock_drop_forked(lock);
    else if (client)
        evl_lock_drop(lock);
    if (client)
        evl_client_rearm(client);
    evl_lock_unref(lock);
}

const void *evlock_name(const evlock *lock, size_t *ret_len) {
    if (ret_len)
        *ret_len = lock ? lock->key_len - length_of(lock->config->prefix) : 0;
    return lock ? lock->key + length_of(lock->config->prefix) : NULL;
}

/* --- What is known without asking --------------------------------------------------------------------------------- */

int evlock_is_held(const evlock *lock) {
    return evl_lock_holds(lock);
}

int64_t evlock_remaining_ms(const evlock *lock) {
    int64_t deadline;

    if (!evl_lock_holds(lock))
        return 0;
    deadline = evl_lease_deadline(lease_of(lock->tenure));
    if (deadline == LEASE_NEVER)
        return INT64_MAX;
    deadline -= evl_client_now(client_of(lock));
    return deadline > 0 ? deadline / 1000 : 0;
}

uint64_t evlock_fence(const evlock *lock) {
    return evl_lock_holds(lock) ? (uint64_t)evl_lease_fence(lease_of(lock->tenure)) : 0;
}

const void *evlock_token(const evlock *lock, size_t *ret_len) {
    if (!evl_lock_holds(lock))
        return NULL;
    if (ret_len)
        *ret_len = token_of(lock->tenure).len;
    return token_of(lock->tenure).data;
}

size_t evlock_keepers(const evlock *lock) {
    return evl_lock_holds(lock) ? evl_lease_keepers(lease_of(lock->tenure)) : 0;
}

int64_t evlock_waited_ms(const evlock *lock) {
    const struct call *call = lock && client_of(lock) ? evl_lock_pending(lock, CALL_ACQUIRE) : NULL;

    return call && !evl_client_forked(client_of(lock)) ? (evl_client_now(client_of(lock)) - call->acquire.begun) / 1000
                                                       : 0;
}

void evl_lock_count_hold(struct evlock *lock, int64_t now) {
    evl_stats_count(client_of(lock)->stats.hold, now - evl_lease_since(lease_of(lock->tenure)));
}

/* --- What a lease leads to ---------------------------------------------------------------------------------------- */

static void notice(struct evlock *lock) {
    if (lock->noticed)
        return;
    STAILQ_INSERT_TAIL(&client_of(lock)->noticed, lock, notice);
    lock->noticed = true;
    evl_lock_ref(lock);
}

static void tell_notices(struct evlock *lock) {
    enum evlock_lost_reason reason = lock->lost;
    const struct config *config = lock->config;
    bool risky = lock->risky;

    evl_lock_forget_notices(lock);
    evl_error_clear();
    if (reason) {
        if (client_of(lock)->node_count > 1)
            evl_fail(EVLOCK_ELOST, "%u of %u nodes still agreed", lock->agreed, client_of(lock)->node_count);
        if (config->on_lost)
            config->on_lost(lock, reason, lock->arg);
    } else if (risky && config->on_at_risk) {
        config->on_at_risk(lock, evlock_remaining_ms(lock), lock->arg);
    }
}

void evl_lock_tell_notices(struct evlock_client *client) {
    struct evlock *lock = STAILQ_FIRST(&client->noticed);

    STAILQ_REMOVE_HEAD(&client->noticed, notice);
    lock->noticed = false;
    tell_notices(lock);
    evl_lock_unref(lock);
}

static void on_granted(struct evlock *lock) {
    struct call *call = evl_lock_pending(lock, CALL_ACQUIRE);

    if (!call)
        call = evl_lock_pending(lock, CALL_ADOPT);
    if (call->kind == CALL_ACQUIRE && lock->config->min_replicas > 0)
        evl_replicas_ask(call);
    else
        evl_lock_grant(lock, call);
}

void evl_lock_grant(struct evlock *lock, struct call *call) {
    int64_t fence = evl_lease_fence(lease_of(lock->tenure));

    if (fence && !evl_client_note_fence(client_of(lock), evl_lock_key(lock), fence)) {
        evl_error_set("the fence went backwards");
        evl_lock_fail(lock, call, EVLOCK_EFENCE);
        return;
    }
    lock->untold = call;
    lock->crowded = call->kind == CALL_ACQUIRE && call->acquire.handed;
    evl_log_lock(lock, EVLOCK_LOG_DEBUG, "held");
    evl_call_finish(call, EVLOCK_OK);
}

void evl_lock_fail(struct evlock *lock, struct call *call, int status) {
    evl_tenure_abandon(lock->tenure);
    evl_acquire_failed(call, status);
}

/* A missing quorum is told by numbers, and by what one of the nodes said, if any did. */
static void count_denied(const struct evlock *lock, uint8_t denied) {
    char words[200];

    snprintf(words, sizeof(words), "%s", evlock_last_error());
    evl_fail(EVLOCK_EQUORUM, "%u of %u nodes did not agree%s%s", denied, client_of(lock)->node_count,
             words[0] ? ": " : "", words);
}

static void on_failed(struct evlock *lock, int status, uint8_t denied) {
    struct call *call = evl_lock_pending(lock, CALL_ACQUIRE);

    if (status == EVLOCK_EQUORUM)
        count_denied(lock, denied);
    evl_log_lock(lock, EVLOCK_LOG_DEBUG, "not acquired: %s", evlock_strerror(status));
    evl_tenure_let_go(lock->tenure);
    if (call)
        evl_acquire_failed(call, status);
    else
        evl_call_finish(evl_lock_pending(lock, CALL_ADOPT), status);
}

/* A grant that is lost before it could be told is a failed attempt. */
static void on_lost_untold(struct evlock *lock) {
    struct call *call = lock->untold;

    lock->untold = NULL;
    evl_call_reopen(call);
    evl_error_set("the lease was over before it could be told");
    if (call->kind == CALL_ACQUIRE) {
        evl_lock_fail(lock, call, EVLOCK_EUNREACHABLE);
    } else {
        evl_tenure_export(lock->tenure); /* not ours to undo */
        evl_call_finish(call, EVLOCK_ENOTOWNED);
    }
}

static void on_lost(struct evlock *lock, int reason, uint8_t agreed) {
    struct call *acquire = evl_lock_pending(lock, CALL_ACQUIRE);

    if (lock->untold) {
        on_lost_untold(lock);
        return;
    }
    if (acquire) { /* granted, and its replicas were being asked */
        evl_replicas_fail(acquire, "the lease was over before its replicas had confirmed it");
        return;
    }
    evl_log_lock(lock, EVLOCK_LOG_ERROR, "lost: %s", evlock_lost_reason_string((enum evlock_lost_reason)reason));
    client_of(lock)->stats.lost[reason]++;
    evl_lock_count_hold(lock, evl_client_now(client_of(lock)));
    notice(lock);
    lock->lost = (enum evlock_lost_reason)reason;
    lock->agreed = agreed;
}

void evl_lock_note_silence(const struct call *call, int status) {
    if (status == EVLOCK_EUNREACHABLE && !call->error && !evlock_last_error()[0])
        evl_error_set("no answer in time");
}

static void on_released(struct evlock *lock, int status) {
    struct call *call = evl_lock_pending(lock, CALL_RELEASE);

    evl_lock_note_silence(call, status);
    evl_log_lock(lock, EVLOCK_LOG_DEBUG, "released: %s", evlock_strerror(status));
    client_of(lock)->stats.released += status == EVLOCK_OK;
    evl_tenure_let_go(lock->tenure);
    evl_call_finish(call, status);
}

void evl_lock_note_words(struct evlock *lock) {
    struct call *call = evl_lock_pending(lock, CALL_RELEASE);

    if (!call)
        call = evl_lock_pending(lock, CALL_EXTEND);
    if (call)
        evl_call_note(call);
}

static void on_risk(struct evlock *lock) {
    evl_log_lock(lock, EVLOCK_LOG_WARN, "at risk: %" PRId64 " ms left, and not renewed", evlock_remaining_ms(lock));
    if (evl_lock_acquiring(lock)) /* its user does not know yet that it holds */
        return;
    notice(lock);
    lock->risky = true;
}

void evl_lock_events(struct evlock *lock, const struct lease_out *out) {
    if (out->events & LEASE_TELL_LOST)
        on_lost(lock, out->reason, out->agreed);
    if (out->events & LEASE_TELL_GRANTED)
        on_granted(lock);
    if (out->events & LEASE_TELL_FAILED)
        on_failed(lock, out->status, out->denied);
    if (out->events & LEASE_TELL_EXTENDED)
        evl_extension_ended(lock, out->status);
    if (out->events & LEASE_TELL_RELEASED)
        on_released(lock, out->status);
    if (out->events & LEASE_TELL_RISK)
        on_risk(lock);
}
