/* Options, checked and converted; see config.h. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "check.h"
#include "memory.h"
#include "status.h"

#define TEN_YEARS_MS (INT64_C(10) * 366 * 24 * 3600 * 1000)

static int64_t config_or_default(int64_t given, int64_t otherwise) {
    return given == EVLOCK_DEFAULT ? otherwise : given;
}

static struct trouble config_validate_range(const char *name, int64_t value, int64_t least, int64_t most,
                                            struct words *words) {
    if (value >= least && value <= most)
        return evl_no_trouble;
    return evl_trouble(words, EVLOCK_EINVAL, "%s is %" PRId64 ", not from %" PRId64 " to %" PRId64, name, value, least,
                       most);
}

/* A program that was built with an older header has a shorter struct: what it lacks keeps its default. No size ends
 * within a member. */
static struct trouble config_read_struct(void *ret, size_t size, const void *given) {
    size_t given_size;

    if (!given)
        return evl_no_trouble;
    memcpy(&given_size, given, sizeof(given_size));
    if (given_size < sizeof(size_t) || given_size > 4096 || given_size % _Alignof(int64_t) != 0)
        return (struct trouble){EVLOCK_EINVAL, "options must start from their INIT macro"};
    memcpy(ret, given, given_size < size ? given_size : size);
    return evl_no_trouble;
}

struct trouble evl_config_read_client(struct client_config *ret, evlock_client_options *ret_given,
                                      const evlock_client_options *options, struct words *words) {
    evlock_client_options given = EVLOCK_CLIENT_OPTIONS_INIT;
    struct trouble trouble = config_read_struct(&given, sizeof(given), options);
    struct {
        const char *name;
        int64_t *value;
        int64_t otherwise, least, most;
    } numbers[] = {
        {"connect_timeout_ms", &given.connect_timeout_ms, 5000, 1, TEN_YEARS_MS},
        {"command_timeout_ms", &given.command_timeout_ms, 5000, 1, TEN_YEARS_MS},
        {"backoff_min_ms", &given.backoff_min_ms, 50, 1, TEN_YEARS_MS},
        {"backoff_max_ms", &given.backoff_max_ms, 5000, 1, TEN_YEARS_MS},
        {"max_inflight", &given.max_inflight, 65536, 1, INT32_MAX},
        {"max_ttl_ms", &given.max_ttl_ms, 60000, 1, TEN_YEARS_MS},
        {"durable", &given.durable, 0, 0, 1},
        {"distrust_uptime", &given.distrust_uptime, 0, 0, 1},
        {"log_level", &given.log_level, EVLOCK_LOG_INFO, EVLOCK_LOG_DEBUG, EVLOCK_LOG_ERROR},
    };

    for (size_t i = 0; trouble.status == EVLOCK_OK && i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        *numbers[i].value = config_or_default(*numbers[i].value, numbers[i].otherwise);
        trouble = config_validate_range(numbers[i].name, *numbers[i].value, numbers[i].least, numbers[i].most, words);
    }
    if (trouble.status == EVLOCK_OK && given.backoff_max_ms < given.backoff_min_ms)
        trouble = (struct trouble){EVLOCK_EINVAL, "backoff_max_ms is less than backoff_min_ms"};
    if (trouble.status != EVLOCK_OK)
        return trouble;
    *ret_given = given;
    *ret = (struct client_config){
        .connect_timeout = given.connect_timeout_ms * 1000,
        .command_timeout = given.command_timeout_ms * 1000,
        .backoff_min = given.backoff_min_ms * 1000,
        .backoff_max = given.backoff_max_ms * 1000,
        .max_inflight = (uint32_t)given.max_inflight,
        .max_ttl = given.max_ttl_ms * 1000,
        .durable = given.durable,
        .distrust_uptime = given.distrust_uptime,
        .log_level = (int)given.log_level,
        .on_connection = given.on_connection,
        .on_log = given.on_log,
        .arg = given.arg,
    };
    return evl_no_trouble;
}

struct trouble evl_config_read_options(evlock_options *ret, const evlock_options *options) {
    static const evlock_options defaults = EVLOCK_OPTIONS_INIT;

    *ret = defaults;
    return config_read_struct(ret, sizeof(*ret), options);
}

struct trouble evl_config_read_acquire(evlock_acquire_options *ret, const evlock_acquire_options *options) {
    static const evlock_acquire_options defaults = EVLOCK_ACQUIRE_OPTIONS_INIT;

    *ret = defaults;
    return config_read_struct(ret, sizeof(*ret), options);
}

struct trouble evl_config_waiting(int64_t *retry_times, int64_t *wait_timeout, int64_t given_times,
                                  int64_t given_timeout_ms, struct words *words) {
    struct trouble trouble;

    if (given_times != EVLOCK_DEFAULT) {
        if ((trouble = config_validate_range("retry_times", given_times, EVLOCK_UNLIMITED, INT64_MAX, words)).status !=
            EVLOCK_OK)
            return trouble;
        *retry_times = given_times;
    }
    if (given_timeout_ms != EVLOCK_DEFAULT) {
        if ((trouble =
                 config_validate_range("wait_timeout_ms", given_timeout_ms, EVLOCK_UNLIMITED, TEN_YEARS_MS, words))
                .status != EVLOCK_OK)
            return trouble;
        *wait_timeout = given_timeout_ms == EVLOCK_UNLIMITED ? EVLOCK_UNLIMITED : given_timeout_ms * 1000;
    }
    return evl_no_trouble;
}

struct trouble evl_config_validate_ttl(int64_t ttl_ms, struct words *words) {
    if (ttl_ms < 0 || ttl_ms > TEN_YEARS_MS)
        return evl_trouble(words, EVLOCK_ETTL, "the ttl is %" PRId64 " ms, not from 0 to ten years", ttl_ms);
    if (ttl_ms > 0 && ttl_ms * 1000 <= evl_lease_drift(ttl_ms * 1000))
        return evl_trouble(words, EVLOCK_ETTL,
                           "the ttl of %" PRId64 " ms is not longer than its drift of ttl / 100 + 2 ms", ttl_ms);
    return evl_no_trouble;
}

struct trouble evl_config_validate_retries(bool queue, int64_t retry_times) {
    if (queue && retry_times != 0 && retry_times != EVLOCK_UNLIMITED)
        return (struct trouble){EVLOCK_EQUEUE, "a queue has no retries to count: set wait_timeout_ms"};
    return evl_no_trouble;
}

static struct trouble config_read_wait(struct config *config, const evlock_options *given, struct words *words) {
    int64_t wait = config_or_default(given->wait, EVLOCK_WAIT_POLL);

    if (wait != EVLOCK_WAIT_POLL && wait != EVLOCK_WAIT_QUEUE)
        return (struct trouble){EVLOCK_EINVAL, "wait is neither EVLOCK_WAIT_POLL nor EVLOCK_WAIT_QUEUE"};
    config->queue = wait == EVLOCK_WAIT_QUEUE;
    if (config->queue && config->terms.ttl == 0)
        return (struct trouble){EVLOCK_EQUEUE, "a queue needs a ttl: a holder that dies would hold it up for ever"};
    if (given->holder && (given->holder[0] == '\0' || strlen(given->holder) > HOLDER_MAX_LEN))
        return evl_trouble(words, EVLOCK_EHOLDER, "the holder's name has %zu bytes, not 1 to %d", strlen(given->holder),
                           HOLDER_MAX_LEN);
    return evl_config_validate_retries(config->queue, config->retry_times);
}

static struct trouble config_read_retrying(struct config *config, const evlock_options *given, struct words *words) {
    int64_t delay_ms = config_or_default(given->retry_delay_ms, 100);
    struct trouble trouble = config_validate_range("retry_delay_ms", delay_ms, 1, TEN_YEARS_MS, words);

    if (trouble.status != EVLOCK_OK)
        return trouble;
    if (given->retry_delay_ms != EVLOCK_DEFAULT && given->ttl_ms != EVLOCK_DEFAULT && given->ttl_ms != 0 &&
        delay_ms > given->ttl_ms)
        return evl_trouble(words, EVLOCK_ERETRY,
                           "the retry delay of %" PRId64 " ms is longer than the ttl of %" PRId64 " ms", delay_ms,
                           given->ttl_ms);
    config->retry_delay = delay_ms * 1000;
    config->retry_jitter = config_or_default(given->retry_jitter, 50);
    config->retry_times = config->wait_timeout = EVLOCK_UNLIMITED;
    trouble = config_validate_range("retry_jitter", config->retry_jitter, 0, 100, words);
    if (trouble.status == EVLOCK_OK)
        trouble = evl_config_waiting(&config->retry_times, &config->wait_timeout, given->retry_times,
                                     given->wait_timeout_ms, words);
    return trouble;
}

static struct trouble config_read_renewal(struct config *config, const evlock_options *given, struct words *words) {
    int64_t ttl = config->terms.ttl;
    int64_t renewal = config_or_default(given->auto_renewal, 0);
    int64_t interval_ms = config_or_default(given->renewal_interval_ms, ttl / 3000 ? ttl / 3000 : 1);
    int64_t interval;
    int64_t max_hold_ms = config_or_default(given->max_hold_ms, EVLOCK_UNLIMITED);
    int64_t percent = config_or_default(given->at_risk_percent, 33);
    struct trouble trouble = config_validate_range("auto_renewal", renewal, 0, 1, words);

    if (trouble.status == EVLOCK_OK && given->renewal_interval_ms != EVLOCK_DEFAULT)
        trouble = config_validate_range("renewal_interval_ms", interval_ms, 1, TEN_YEARS_MS, words);
    if (trouble.status == EVLOCK_OK && max_hold_ms != EVLOCK_UNLIMITED)
        trouble = config_validate_range("max_hold_ms", max_hold_ms, 1, TEN_YEARS_MS, words);
    if (trouble.status == EVLOCK_OK)
        trouble = config_validate_range("at_risk_percent", percent, 1, 99, words);
    if (trouble.status != EVLOCK_OK)
        return trouble;
    interval = interval_ms * 1000;
    if (renewal && ttl == 0)
        return (struct trouble){EVLOCK_ERENEWAL, "a lock without expiry has nothing to renew"};
    if (ttl && (renewal || given->renewal_interval_ms != EVLOCK_DEFAULT) && interval >= ttl - evl_lease_drift(ttl))
        return evl_trouble(words, EVLOCK_ERENEWAL,
                           "the renewal interval of %" PRId64 " ms leaves no time before the deadline", interval_ms);
    config->terms.interval = renewal ? interval : 0;
    config->terms.grain = config->terms.interval / 20;
    config->terms.max_hold = max_hold_ms == EVLOCK_UNLIMITED ? LEASE_NEVER : max_hold_ms * 1000;
    config->terms.risk = ttl / 100 * percent;
    return evl_no_trouble;
}

/* After the renewal: it is told lost after the first renewal was due, or else it would always be. */
static struct trouble config_read_lead(struct config *config, const evlock_options *given, struct words *words) {
    struct lease_terms *terms = &config->terms;
    int64_t lead_ms = given->lost_lead_ms;
    struct trouble trouble;

    terms->lead = evl_lease_moment(terms->ttl);
    if (lead_ms == EVLOCK_DEFAULT)
        return evl_no_trouble;
    if ((trouble = config_validate_range("lost_lead_ms", lead_ms, 0, TEN_YEARS_MS, words)).status != EVLOCK_OK)
        return trouble;
    terms->lead = lead_ms * 1000;
    if (terms->ttl && terms->lead >= terms->ttl - evl_lease_drift(terms->ttl) - terms->interval)
        return evl_trouble(words, EVLOCK_EINVAL, "lost_lead_ms is %" PRId64 ", which leaves no time %s", lead_ms,
                           terms->interval ? "after the renewal interval" : "to hold the lock");
    return evl_no_trouble;
}

/* What a grant needs besides the first answer. */
static struct trouble config_read_agreement(struct config *config, const evlock_options *given, struct words *words) {
    int64_t share_ms = config->terms.ttl / 10000 ? config->terms.ttl / 10000 : 1;
    int64_t node_ms = config_or_default(given->node_timeout_ms, share_ms);
    int64_t replica_ms = config_or_default(given->replica_timeout_ms, share_ms);
    struct trouble trouble = config_validate_range("node_timeout_ms", node_ms, 1, TEN_YEARS_MS, words);

    config->min_replicas = config_or_default(given->min_replicas, 0);
    if (trouble.status == EVLOCK_OK)
        trouble = config_validate_range("replica_timeout_ms", replica_ms, 1, TEN_YEARS_MS, words);
    if (trouble.status == EVLOCK_OK)
        trouble = config_validate_range("min_replicas", config->min_replicas, 0, INT32_MAX, words);
    if (trouble.status != EVLOCK_OK)
        return trouble;
    config->terms.patience = node_ms * 1000;
    config->replica_timeout = replica_ms * 1000;
    return evl_no_trouble;
}

static struct trouble config_read(struct config *config, const evlock_options *given, struct words *words) {
    int64_t ttl_ms = config_or_default(given->ttl_ms, 30000);
    struct trouble trouble = evl_config_validate_ttl(ttl_ms, words);

    if (trouble.status != EVLOCK_OK)
        return trouble;
    config->terms.ttl = ttl_ms * 1000;
    config->on_lost = given->on_lost;
    config->on_at_risk = given->on_at_risk;
    if ((trouble = config_read_retrying(config, given, words)).status != EVLOCK_OK ||
        (trouble = config_read_wait(config, given, words)).status != EVLOCK_OK ||
        (trouble = config_read_agreement(config, given, words)).status != EVLOCK_OK ||
        (trouble = config_read_renewal(config, given, words)).status != EVLOCK_OK)
        return trouble;
    return config_read_lead(config, given, words);
}

static bool config_same_text(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool config_same(const struct config *a, const struct config *b, const evlock_options *b_strings) {
    return a->terms.ttl == b->terms.ttl && a->terms.interval == b->terms.interval && a->terms.lead == b->terms.lead &&
           a->terms.max_hold == b->terms.max_hold && a->terms.risk == b->terms.risk &&
           a->terms.patience == b->terms.patience && a->min_replicas == b->min_replicas &&
           a->replica_timeout == b->replica_timeout && a->retry_delay == b->retry_delay &&
           a->retry_jitter == b->retry_jitter && a->retry_times == b->retry_times &&
           a->wait_timeout == b->wait_timeout && a->queue == b->queue && a->on_lost == b->on_lost &&
           a->on_at_risk == b->on_at_risk && config_same_text(a->holder, b_strings->holder) &&
           config_same_text(a->prefix, b_strings->prefix) && config_same_text(a->label, b_strings->label);
}

static char *config_copy_text(const char *text, bool *failed) {
    char *copy = text ? evl_dup(text, strlen(text)) : NULL;

    *failed |= text && !copy;
    return copy;
}

struct trouble evl_config_get(struct config **ret, struct config *last, const evlock_options *options,
                              struct words *words) {
    struct config read = {.references = 1};
    struct config *config;
    evlock_options given;
    bool failed = false;
    struct trouble trouble = evl_config_read_options(&given, options);

    if (trouble.status == EVLOCK_OK)
        trouble = config_read(&read, &given, words);
    if (trouble.status != EVLOCK_OK)
        return trouble;
    if (last && config_same(last, &read, &given)) {
        last->references++;
        *ret = last;
        return evl_no_trouble;
    }
    config = evl_alloc(sizeof(*config));
    if (!config)
        return (struct trouble){EVLOCK_ENOMEM, "no memory for a lock's options"};
    *config = read;
    config->holder = config_copy_text(given.holder, &failed);
    config->prefix = config_copy_text(given.prefix, &failed);
    config->label = config_copy_text(given.label, &failed);
    if (failed) {
        evl_config_unref(config);
        return (struct trouble){EVLOCK_ENOMEM, "no memory for a lock's options"};
    }
    *ret = config;
    return evl_no_trouble;
}

void evl_config_unref(struct config *config) {
    assert(!config || config->references > 0);
    if (!config || --config->references > 0)
        return;
    if (config->deployment)
        LIST_REMOVE(config, link);
    evl_free(config->holder);
    evl_free(config->prefix);
    evl_free(config->label);
    evl_free(config);
}
