/* The lock as users know it; see lock.h. */
#include "lock.h"

#include <inttypes.h>
#include <string.h>

#include "cohort.h"
#include "memory.h"
#include "minmax.h"

#define NAME_MAX_LEN 512

struct trouble evl_lock_validate(const struct evlock *lock) {
    if (!lock)
        return (struct trouble){EVLOCK_EINVAL, "the lock is NULL"};
    if (!evl_locks_of(lock))
        return (struct trouble){EVLOCK_ECLOSED, "the lock's client is gone"};
    return evl_locks_validate(evl_locks_of(lock));
}

struct trouble evl_lock_validate_idle(const struct evlock *lock) {
    if (evl_call_hold(lock))
        return (struct trouble){EVLOCK_EALREADY, "this handle holds the lock, or waits for it, for ever"};
    if (evl_lock_acquiring(lock))
        return (struct trouble){EVLOCK_EALREADY, "an acquire or an adoption of this handle is pending"};
    if (evl_call_pending(lock, CALL_RUN))
        return (struct trouble){EVLOCK_EALREADY, "a body runs under this handle"};
    if (lock->tenure && evl_lease_state(evl_tenure_lease(lock->tenure)) == LEASE_RELEASING)
        return (struct trouble){EVLOCK_EALREADY, "this handle is being released"};
    if (lock->tenure && evl_lease_state(evl_tenure_lease(lock->tenure)) == LEASE_HELD)
        return (struct trouble){EVLOCK_EALREADY, "this handle holds the lock"};
    return evl_no_trouble;
}

struct trouble evl_lock_validate_token(const void *token, size_t *len, struct words *words) {
    if (!token)
        return (struct trouble){EVLOCK_ETOKEN, "the token is NULL"};
    if (*len == EVLOCK_CSTRING)
        *len = strlen(token);
    if (*len == 0)
        return (struct trouble){EVLOCK_ETOKEN, "the token has 0 bytes: give its length, or EVLOCK_CSTRING"};
    if (*len > EVLOCK_TOKEN_MAX)
        return evl_trouble(words, EVLOCK_ETOKEN, "the token has %zu bytes, not 1 to %d", *len, EVLOCK_TOKEN_MAX);
    return evl_no_trouble;
}

/* Whether there is anything to know of it: not in a child, nor in another thread. */
static bool lock_answers(const struct evlock *lock) {
    return lock && evl_locks_of(lock) && !evl_turn_forked(evl_handle_turn(lock)) &&
           evl_turn_in_thread(evl_handle_turn(lock));
}

bool evl_lock_holds(const struct evlock *lock) {
    return lock_answers(lock) && lock->tenure && evl_lease_state(evl_tenure_lease(lock->tenure)) == LEASE_HELD &&
           !evl_lock_acquiring(lock) &&
           evl_turn_now(evl_handle_turn(lock)) < evl_lease_deadline(evl_tenure_lease(lock->tenure));
}

bool evl_lock_acquiring(const struct evlock *lock) {
    return lock->untold || evl_call_pending(lock, CALL_ACQUIRE) || evl_call_pending(lock, CALL_ADOPT);
}

bool evl_lock_queues(const struct evlock *lock) {
    return lock->tenure && evl_lease_in_line(evl_tenure_lease(lock->tenure));
}

/* --- Life --------------------------------------------------------------------------------------------------------- */

static struct trouble lock_validate_name(const void *name, size_t *len, size_t prefix_len, struct words *words) {
    if (!name)
        return (struct trouble){EVLOCK_ENAME, "the name is NULL"};
    if (*len == EVLOCK_CSTRING)
        *len = strlen(name);
    if (*len == 0)
        return (struct trouble){EVLOCK_ENAME, "the name is empty"};
    if (*len > NAME_MAX_LEN || *len + prefix_len > NAME_MAX_LEN)
        return evl_trouble(words, EVLOCK_ENAME, "the name has %zu bytes with its prefix, more than %d",
                           *len > NAME_MAX_LEN ? *len : *len + prefix_len, NAME_MAX_LEN);
    return evl_no_trouble;
}

static size_t lock_length_of(const char *prefix) {
    return prefix ? strlen(prefix) : 0;
}

static struct evlock *lock_make(struct config *config, const void *name, size_t len, void *arg) {
    size_t prefix_len = lock_length_of(config->prefix);
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

static void lock_take_on_terms(struct locks *locks, struct lease_terms *terms) {
    const struct deployment *deployment = evl_locks_deployment(locks);

    terms->max_ttl = evl_deployment_excludes(deployment) ? deployment->config.max_ttl : 0;
    if (terms->grain)
        terms->phase = (int64_t)(locks->phase % (uint64_t)terms->grain);
}

/* By default a share of the ttl, and well within the time after which a silent connection is ended. */
static int64_t lock_replica_wait(const struct config *config, int64_t command_timeout) {
    int64_t ms = evl_min(config->terms.ttl / 10, command_timeout / 2) / 1000;

    return config->replica_timeout ? config->replica_timeout : evl_max(ms, 1) * 1000;
}

/* A new config becomes the client's. */
static void lock_take_on(struct locks *locks, struct config *config) {
    config->deployment = evl_locks_deployment(locks);
    config->replica_wait = lock_replica_wait(config, config->deployment->config.command_timeout);
    LIST_INSERT_HEAD(&locks->configs, config, link);
    lock_take_on_terms(locks, &config->terms);
    lock_take_on_terms(locks, &config->kept);
}

/* The newest config is remembered, for the next handle often wants the same. */
static void lock_remember(struct locks *locks, struct config *config) {
    if (locks->last_config == config)
        return;
    evl_config_unref(locks->last_config);
    locks->last_config = config;
    config->references++;
}

/* What a lock asks of its client's nodes. */
static struct trouble lock_validate_deployment(struct deployment *deployment, const struct config *config,
                                               struct words *words) {
    int64_t max = deployment->config.max_ttl;
    bool excludes = evl_deployment_excludes(deployment);

    if (excludes && config->terms.ttl == 0)
        return (struct trouble){EVLOCK_ETTL, "a lock on several nodes, or with failover_wait_ms, needs a ttl"};
    if (excludes && config->terms.ttl > max)
        return evl_trouble(words, EVLOCK_ETTL,
                           "the ttl of %" PRId64 " ms is longer than the client's max_ttl_ms, %" PRId64
                           " ms: give less as ttl_ms, or more as max_ttl_ms",
                           config->terms.ttl / 1000, max / 1000);
    if (excludes && evl_kind_has_queue(config->kind))
        return (struct trouble){EVLOCK_EQUEUE,
                                deployment->votes > 1
                                    ? "several nodes have no queue in common: give EVLOCK_WAIT_POLL as wait"
                                    : "no queue waits out failover_wait_ms: give EVLOCK_WAIT_POLL as wait"};
    if (config->min_replicas == 0)
        return evl_no_trouble;
    if (config->terms.ttl == 0)
        return (struct trouble){EVLOCK_ETTL, "a lock that its replicas confirm needs a ttl"};
    if (config->replica_wait >= deployment->config.command_timeout)
        return (struct trouble){EVLOCK_EINVAL, "replica_timeout_ms is not less than the client's command_timeout_ms"};
    return evl_deployment_add_sides(deployment);
}

int evlock_new(evlock **ret_lock, evlock_client *client, const void *name, size_t name_len,
               const evlock_options *options) {
    struct locks *locks = evl_locks_of_client(client);
    struct trouble trouble;
    evlock_options given;
    struct config *config;
    struct evlock *lock;
    struct words words;

    if (!ret_lock || !client)
        return evl_fail(EVLOCK_EINVAL, "%s is NULL", ret_lock ? "the client" : "ret_lock");
    trouble = evl_locks_validate(locks);
    if (trouble.status == EVLOCK_OK)
        trouble = evl_config_read_options(&given, options, &words);
    if (trouble.status == EVLOCK_OK)
        trouble = lock_validate_name(name, &name_len, lock_length_of(given.prefix), &words);
    if (trouble.status == EVLOCK_OK)
        trouble = evl_config_get(&config, locks->last_config, options, &words);
    if (trouble.status != EVLOCK_OK)
        return evl_report(trouble);
    if (!config->deployment)
        lock_take_on(locks, config);
    trouble = lock_validate_deployment(evl_locks_deployment(locks), config, &words);
    lock = trouble.status == EVLOCK_OK ? lock_make(config, name, name_len, given.arg) : NULL;
    if (!lock) {
        evl_config_unref(config);
        return trouble.status == EVLOCK_OK ? evl_fail(EVLOCK_ENOMEM, "no memory for a lock") : evl_report(trouble);
    }
    *ret_lock = lock;
    lock_remember(locks, config);
    return evl_report(evl_no_trouble);
}

void evl_lock_drop_notices(struct evlock *lock) {
    lock->why = EVLOCK_OK;
    lock->lost = false;
}

/* A lease that was adopted and not yet told is left as it was found. Another that waits may have what was acquired. */
static void lock_drop_tenure(struct evlock *lock) {
    struct call *untold = lock->untold;

    lock->untold = NULL;
    if (untold)
        evl_call_cancel(untold);
    if (untold && untold->sort->kind == CALL_ADOPT)
        evl_tenure_export(lock->tenure);
    else if (lock->tenure && !evl_cohort_pass(lock)) {
        evl_tenure_abandon(lock->tenure);
        evl_cohort_let_go(lock, true);
    }
}

void evl_lock_drop(struct evlock *lock) {
    struct call *call;

    evl_lock_drop_notices(lock);
    lock_drop_tenure(lock);
    while ((call = lock->calls))
        evl_call_cancel(call);
}

void evl_lock_drop_but_waited_for(struct evlock *lock) {
    struct call *call, *next;

    if (!evl_call_pending(lock, CALL_RELEASE) && !evl_call_pending(lock, CALL_RUN)) {
        evl_lock_drop(lock);
        return;
    }
    for (call = lock->calls; call; call = next) {
        next = call->next;
        if (call->sort->kind != CALL_RELEASE && call->sort->kind != CALL_RUN)
            evl_call_cancel(call);
    }
}

void evl_lock_cancel_acquire(struct evlock *lock, struct call *call) {
    lock_drop_tenure(lock);
    if (call)
        evl_call_cancel(call);
}

void evl_lock_drop_forked(struct evlock *lock) {
    struct call *call;

    evl_lock_drop_notices(lock);
    lock->untold = NULL;
    while ((call = lock->calls))
        evl_call_end_forked(call);
    evl_cohort_let_go(lock, false);
    if (lock->tenure)
        evl_tenure_drop(lock->tenure);
}

void evlock_free(evlock *lock) {
    if (!lock || (evl_locks_of(lock) && !evl_turn_may_free(evl_handle_turn(lock))))
        return;
    lock->freed = true;
    if (evl_locks_of(lock)) {
        if (evl_turn_forked(evl_handle_turn(lock)))
            evl_lock_drop_forked(lock);
        else
            evl_lock_drop(lock);
        evl_turn_rearm(evl_handle_turn(lock));
    }
    evl_handle_unref(lock);
}

const void *evlock_name(const evlock *lock, size_t *ret_len) {
    if (ret_len)
        *ret_len = lock ? lock->key_len - lock_length_of(lock->config->prefix) : 0;
    return lock ? lock->key + lock_length_of(lock->config->prefix) : NULL;
}

/* --- What is known without asking --------------------------------------------------------------------------------- */

bool evlock_is_held(const evlock *lock) {
    return evl_lock_holds(lock);
}

int64_t evlock_remaining_ms(const evlock *lock) {
    int64_t deadline;

    if (!evl_lock_holds(lock))
        return 0;
    deadline = evl_lease_deadline(evl_tenure_lease(lock->tenure));
    if (deadline == LEASE_NEVER)
        return INT64_MAX;
    deadline -= evl_turn_now(evl_handle_turn(lock));
    return deadline > 0 ? deadline / 1000 : 0;
}

uint64_t evlock_fence(const evlock *lock) {
    return evl_lock_holds(lock) ? (uint64_t)evl_lease_fence(evl_tenure_lease(lock->tenure)) : 0;
}

const void *evlock_token(const evlock *lock, size_t *ret_len) {
    if (!evl_lock_holds(lock))
        return NULL;
    evl_lease_tie(evl_tenure_lease(lock->tenure));
    if (ret_len)
        *ret_len = evl_tenure_token(lock->tenure).len;
    return evl_tenure_token(lock->tenure).data;
}

size_t evlock_keepers(const evlock *lock) {
    return evl_lock_holds(lock) ? evl_lease_keepers(evl_tenure_lease(lock->tenure)) : 0;
}

int64_t evlock_waited_ms(const evlock *lock) {
    const struct call *call = lock_answers(lock) ? evl_call_pending(lock, CALL_ACQUIRE) : NULL;

    if (!call)
        return 0;
    return (evl_turn_now(evl_handle_turn(lock)) - call->acquire.begun) / 1000;
}
