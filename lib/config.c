/* Options, checked and converted; see config.h. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "check.h"
#include "memory.h"
#include "status.h"

#define TEN_YEARS_MS (INT64_C(10) * 366 * 24 * 3600 * 1000)
#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

enum { OPTIONS_MAX_SIZE = 4096 };

struct config_number {
    const char *name;
    int64_t *value;
    int64_t otherwise, least, most; /* what zero means, and what else is allowed */
};

struct config_choice {
    const char *name;
    const void *value; /* a bool: from another language it may be any byte */
};

static struct trouble config_read_numbers(const struct config_number *numbers, size_t count, struct words *words) {
    for (size_t i = 0; i < count; i++) {
        const struct config_number *number = &numbers[i];
        if (*number->value == 0)
            *number->value = number->otherwise;
        else if (*number->value < number->least || *number->value > number->most)
            return evl_trouble(words, EVLOCK_EINVAL, "%s is %" PRId64 ", not from %" PRId64 " to %" PRId64,
                               number->name, *number->value, number->least, number->most);
    }
    return evl_no_trouble;
}

static struct trouble config_validate_choices(const struct config_choice *choices, size_t count, struct words *words) {
    for (size_t i = 0; i < count; i++) {
        unsigned char byte;
        memcpy(&byte, choices[i].value, 1);
        if (byte > 1)
            return evl_trouble(words, EVLOCK_EINVAL, "%s is the byte %d, neither true nor false", choices[i].name,
                               byte);
    }
    return evl_no_trouble;
}

static struct trouble config_validate_zero(const void *bytes, size_t len) {
    const unsigned char *byte = bytes;

    for (size_t i = 0; i < len; i++)
        if (byte[i])
            return (struct trouble){EVLOCK_EVERSION, "the options set a field that this library does not know"};
    return evl_no_trouble;
}

void evlock_options_init(void *options, size_t size) {
    memset(options, 0, size);
    memcpy(options, &size, sizeof(size));
}

/* A program that was built with an older header has a shorter struct: what it lacks keeps its default. One that was
 * built with a newer header has a longer one, of which nothing may be set that is not known here. No size ends within a
 * member. */
static struct trouble config_read_struct(void *ret, size_t size, const void *given, struct words *words) {
    size_t given_size;

    evlock_options_init(ret, size);
    if (!given)
        return evl_no_trouble;
    memcpy(&given_size, given, sizeof(given_size));
    if (given_size < sizeof(size_t) || given_size > OPTIONS_MAX_SIZE || given_size % _Alignof(int64_t) != 0)
        return evl_trouble(words, EVLOCK_EINVAL, "the options' size is %zu: set it to that of their struct",
                           given_size);
    memcpy(ret, given, given_size < size ? given_size : size);
    memcpy(ret, &size, sizeof(size));
    return given_size <= size ? evl_no_trouble : config_validate_zero((const char *)given + size, given_size - size);
}

/* --- A client's --------------------------------------------------------------------------------------------------- */

/* As servers take it. One that is too long to be shown is more likely something else. */
static struct trouble config_validate_connection_name(const char *name, struct words *words) {
    size_t len = name ? strnlen(name, CONNECTION_NAME_MAX + 1) : 1;

    if (len < 1 || len > CONNECTION_NAME_MAX)
        return evl_trouble(words, EVLOCK_EINVAL, "connection_name is not 1 to %d bytes long", CONNECTION_NAME_MAX);
    for (size_t i = 0; name && i < len; i++)
        if (name[i] < '!' || name[i] > '~')
            return evl_trouble(words, EVLOCK_EINVAL, "connection_name has the byte %d, which is no visible character",
                               (unsigned char)name[i]);
    return evl_no_trouble;
}

static struct trouble config_read_client_fields(evlock_client_options *given, struct words *words) {
    const struct config_number numbers[] = {
        {"connect_timeout_ms", &given->connect_timeout_ms, 5000, 1, TEN_YEARS_MS},
        {"command_timeout_ms", &given->command_timeout_ms, 5000, 1, TEN_YEARS_MS},
        {"backoff_min_ms", &given->backoff_min_ms, 50, 1, TEN_YEARS_MS},
        {"backoff_max_ms", &given->backoff_max_ms, 5000, 1, TEN_YEARS_MS},
        {"max_inflight", &given->max_inflight, 65536, 1, INT32_MAX},
        {"max_ttl_ms", &given->max_ttl_ms, 60000, 1, TEN_YEARS_MS},
        {"failover_wait_ms", &given->failover_wait_ms, 0, 0, TEN_YEARS_MS},
        {"close_wait_ms", &given->close_wait_ms, EVLOCK_UNLIMITED, EVLOCK_UNLIMITED, TEN_YEARS_MS},
    };
    const struct config_choice choices[] = {
        {"durable", &given->durable},
        {"distrust_uptime", &given->distrust_uptime},
    };
    struct trouble trouble = config_read_numbers(numbers, ARRAY_LEN(numbers), words);

    if (trouble.status == EVLOCK_OK)
        trouble = config_validate_choices(choices, ARRAY_LEN(choices), words);
    if (trouble.status == EVLOCK_OK)
        trouble = config_validate_zero(given->reserved, sizeof(given->reserved));
    if (trouble.status == EVLOCK_OK)
        trouble = config_validate_zero(&given->reserved_pointer, sizeof(given->reserved_pointer));
    if (trouble.status != EVLOCK_OK)
        return trouble;
    if (!given->log_level)
        given->log_level = EVLOCK_LOG_INFO;
    if ((int)given->log_level < EVLOCK_LOG_DEBUG || (int)given->log_level > EVLOCK_LOG_ERROR)
        return evl_trouble(words, EVLOCK_EINVAL, "log_level is %d, no enum evlock_log_level", (int)given->log_level);
    if (given->backoff_max_ms < given->backoff_min_ms)
        return (struct trouble){EVLOCK_EINVAL, "backoff_max_ms is less than backoff_min_ms"};
    if (!!given->password + !!given->password_file + !!given->on_login > 1)
        return (struct trouble){EVLOCK_EINVAL, "password, password_file and on_login exclude each other"};
    return config_validate_connection_name(given->connection_name, words);
}

struct trouble evl_config_read_client(struct client_config *ret, evlock_client_options *ret_given,
                                      const evlock_client_options *options, struct words *words) {
    evlock_client_options given;
    struct trouble trouble = config_read_struct(&given, sizeof(given), options, words);

    if (trouble.status == EVLOCK_OK)
        trouble = config_read_client_fields(&given, words);
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
        .close_wait = given.close_wait_ms == EVLOCK_UNLIMITED ? INT64_MAX : given.close_wait_ms * 1000,
        .failover_wait = given.failover_wait_ms * 1000,
        .durable = given.durable,
        .distrust_uptime = given.distrust_uptime,
        .renews_credentials = given.password_file || given.on_login,
        .log_level = (int)given.log_level,
        .on_connection = given.on_connection,
        .on_log = given.on_log,
        .on_login = given.on_login,
        .arg = given.arg,
    };
    if (given.connection_name)
        memcpy(ret->connection_name, given.connection_name, strlen(given.connection_name));
    return evl_no_trouble;
}

/* --- An acquire's ------------------------------------------------------------------------------------------------- */

static struct trouble config_override(const char *name, bool *setting, int given, struct words *words) {
    if (given < EVLOCK_INHERIT || given > EVLOCK_OFF)
        return evl_trouble(words, EVLOCK_EINVAL, "%s is %d, no enum evlock_override", name, given);
    if (given != EVLOCK_INHERIT)
        *setting = given == EVLOCK_ON;
    return evl_no_trouble;
}

static struct trouble config_validate_attempts(enum lock_kind kind, int64_t attempts) {
    if (evl_kind_has_queue(kind) && attempts != EVLOCK_TRY && attempts != EVLOCK_UNLIMITED)
        return (struct trouble){EVLOCK_EQUEUE, "a queue has no attempts to count: set max_wait_ms"};
    return evl_no_trouble;
}

/* Sets those limits that are given. */
static struct trouble config_read_limits(struct limits *limits, int64_t wait_ms, int64_t attempts, int64_t delay_ms,
                                         struct words *words) {
    const struct config_number numbers[] = {
        {"max_wait_ms", &wait_ms, 0, EVLOCK_UNLIMITED, TEN_YEARS_MS},
        {"max_attempts", &attempts, limits->attempts, EVLOCK_UNLIMITED, INT64_MAX},
        {"retry_delay_ms", &delay_ms, limits->retry_delay / 1000, 1, TEN_YEARS_MS},
    };
    struct trouble trouble = config_read_numbers(numbers, ARRAY_LEN(numbers), words);

    if (trouble.status != EVLOCK_OK)
        return trouble;
    if (wait_ms)
        limits->wait = wait_ms == EVLOCK_UNLIMITED ? EVLOCK_UNLIMITED : wait_ms * 1000;
    limits->attempts = attempts;
    limits->retry_delay = delay_ms * 1000;
    return evl_no_trouble;
}

static struct trouble config_slow(int64_t delay_ms, int64_t ttl_ms, struct words *words) {
    return evl_trouble(words, EVLOCK_ERETRY,
                       "the retry delay of %" PRId64 " ms is longer than the ttl of %" PRId64 " ms", delay_ms, ttl_ms);
}

struct trouble evl_config_read_acquire(struct limits *ret, evlock_acquire_options *ret_given,
                                       const struct config *config, const evlock_acquire_options *options,
                                       struct words *words) {
    evlock_acquire_options *given = ret_given;
    struct trouble trouble = config_read_struct(given, sizeof(*given), options, words);

    *ret = config->limits;
    if (!options)
        return evl_no_trouble;
    if (trouble.status == EVLOCK_OK)
        trouble = config_read_limits(ret, given->max_wait_ms, given->max_attempts, given->retry_delay_ms, words);
    if (trouble.status == EVLOCK_OK)
        trouble = config_validate_attempts(config->kind, ret->attempts);
    if (trouble.status == EVLOCK_OK)
        trouble = config_override("fence", &ret->fence, (int)given->fence, words);
    if (trouble.status == EVLOCK_OK)
        trouble = config_override("fail_when_away", &ret->fail_when_away, (int)given->fail_when_away, words);
    if (trouble.status == EVLOCK_OK && config->terms.ttl && given->retry_delay_ms * 1000 > config->terms.ttl)
        return config_slow(given->retry_delay_ms, config->terms.ttl / 1000, words);
    return trouble;
}

/* --- A lock's ----------------------------------------------------------------------------------------------------- */

struct trouble evl_config_read_options(evlock_options *ret, const evlock_options *options, struct words *words) {
    return config_read_struct(ret, sizeof(*ret), options, words);
}

struct trouble evl_config_validate_ttl(int64_t ttl_ms, struct words *words) {
    if (ttl_ms < 1 || ttl_ms > TEN_YEARS_MS)
        return evl_trouble(words, EVLOCK_ETTL, "the ttl is %" PRId64 " ms, not from 1 ms to ten years", ttl_ms);
    if (ttl_ms * 1000 <= evl_lease_drift(ttl_ms * 1000))
        return evl_trouble(words, EVLOCK_ETTL,
                           "the ttl of %" PRId64 " ms is not longer than its drift of ttl / 100 + 2 ms", ttl_ms);
    return evl_no_trouble;
}

static struct trouble config_read_ttl(struct config *config, int64_t given_ms, struct words *words) {
    int64_t ttl_ms = given_ms ? given_ms : 30000;
    struct trouble trouble = evl_no_trouble;

    if (ttl_ms == EVLOCK_NO_EXPIRY)
        ttl_ms = 0;
    else
        trouble = evl_config_validate_ttl(ttl_ms, words);
    config->terms.ttl = trouble.status == EVLOCK_OK ? ttl_ms * 1000 : 0;
    return trouble;
}

static struct trouble config_read_choices(struct config *config, const evlock_options *given, struct words *words) {
    const struct config_choice choices[] = {
        {"auto_renewal", &given->auto_renewal},
        {"fence", &given->fence},
        {"fail_when_away", &given->fail_when_away},
    };
    struct trouble trouble = config_validate_choices(choices, ARRAY_LEN(choices), words);

    if (trouble.status == EVLOCK_OK)
        trouble = config_validate_zero(&given->reserved, sizeof(given->reserved));
    if (trouble.status != EVLOCK_OK)
        return trouble;
    config->limits.fence = given->fence;
    config->limits.fail_when_away = given->fail_when_away;
    return evl_no_trouble;
}

static struct trouble config_read_wait(struct config *config, const evlock_options *given, struct words *words) {
    if (given->wait != EVLOCK_WAIT_POLL && given->wait != EVLOCK_WAIT_QUEUE)
        return evl_trouble(words, EVLOCK_EINVAL, "wait is %d, no enum evlock_wait", (int)given->wait);
    config->kind = given->wait == EVLOCK_WAIT_QUEUE ? LOCK_QUEUED : LOCK_PLAIN;
    if (evl_kind_has_queue(config->kind) && config->terms.ttl == 0)
        return (struct trouble){EVLOCK_EQUEUE, "a queue needs a ttl: a holder that dies would hold it up for ever"};
    if (given->holder && (given->holder[0] == '\0' || strlen(given->holder) > HOLDER_MAX_LEN))
        return evl_trouble(words, EVLOCK_EHOLDER, "the holder's name has %zu bytes, not 1 to %d", strlen(given->holder),
                           HOLDER_MAX_LEN);
    return config_validate_attempts(config->kind, config->limits.attempts);
}

static struct trouble config_read_retrying(struct config *config, const evlock_options *given, struct words *words) {
    int64_t jitter = given->retry_jitter;
    const struct config_number number = {"retry_jitter", &jitter, 50, EVLOCK_NO_JITTER, 100};
    struct limits *limits = &config->limits;
    struct trouble trouble = config_read_numbers(&number, 1, words);

    limits->attempts = limits->wait = EVLOCK_UNLIMITED;
    limits->retry_delay = 100000;
    if (trouble.status == EVLOCK_OK)
        trouble = config_read_limits(limits, given->max_wait_ms, given->max_attempts, given->retry_delay_ms, words);
    if (trouble.status != EVLOCK_OK)
        return trouble;
    if (given->ttl_ms > 0 && given->retry_delay_ms > given->ttl_ms)
        return config_slow(given->retry_delay_ms, given->ttl_ms, words);
    config->retry_jitter = jitter == EVLOCK_NO_JITTER ? 0 : jitter;
    return evl_no_trouble;
}

static struct trouble config_read_renewal(struct config *config, const evlock_options *given, struct words *words) {
    int64_t ttl = config->terms.ttl;
    int64_t interval_ms = given->renewal_interval_ms;
    int64_t max_hold_ms = given->max_hold_ms;
    int64_t percent = given->at_risk_percent;
    const struct config_number numbers[] = {
        {"renewal_interval_ms", &interval_ms, ttl / 3000 ? ttl / 3000 : 1, 1, TEN_YEARS_MS},
        {"max_hold_ms", &max_hold_ms, EVLOCK_UNLIMITED, EVLOCK_UNLIMITED, TEN_YEARS_MS},
        {"at_risk_percent", &percent, 33, 1, 99},
    };
    struct trouble trouble = config_read_numbers(numbers, ARRAY_LEN(numbers), words);
    int64_t interval;

    if (trouble.status != EVLOCK_OK)
        return trouble;
    interval = interval_ms * 1000;
    if (given->auto_renewal && ttl == 0)
        return (struct trouble){EVLOCK_ERENEWAL, "a lock without expiry has nothing to renew"};
    if (ttl && (given->auto_renewal || given->renewal_interval_ms) && interval >= ttl - evl_lease_drift(ttl))
        return evl_trouble(words, EVLOCK_ERENEWAL,
                           "the renewal interval of %" PRId64 " ms leaves no time before the deadline", interval_ms);
    config->terms.interval = given->auto_renewal ? interval : 0;
    config->kept.interval = ttl ? interval : 0;
    config->terms.grain = config->terms.interval / 20;
    config->terms.max_hold = max_hold_ms == EVLOCK_UNLIMITED ? LEASE_NEVER : max_hold_ms * 1000;
    config->terms.risk = ttl / 100 * percent;
    return evl_no_trouble;
}

/* After the renewal: it is told lost after the first renewal was due, or else it would always be. */
static struct trouble config_read_lead(struct config *config, const evlock_options *given, struct words *words) {
    struct lease_terms *terms = &config->terms;
    int64_t lead_ms = given->lost_lead_ms;
    const struct config_number number = {"lost_lead_ms", &lead_ms, 0, EVLOCK_NO_LEAD, TEN_YEARS_MS};
    struct trouble trouble = config_read_numbers(&number, 1, words);

    if (trouble.status != EVLOCK_OK)
        return trouble;
    terms->lead = lead_ms == 0 ? evl_lease_moment(terms->ttl) : lead_ms == EVLOCK_NO_LEAD ? 0 : lead_ms * 1000;
    if (lead_ms > 0 && terms->ttl && terms->lead >= terms->ttl - evl_lease_drift(terms->ttl) - terms->interval)
        return evl_trouble(words, EVLOCK_EINVAL, "lost_lead_ms is %" PRId64 ", which leaves no time %s", lead_ms,
                           terms->interval ? "after the renewal interval" : "to hold the lock");
    return evl_no_trouble;
}

/* The terms of a hold: an interval of 0, where there is a ttl, says that these options leave no time for one. */
static void config_make_kept(struct config *config) {
    const struct lease_terms *terms = &config->terms;
    int64_t interval = config->kept.interval;

    if (!terms->interval && interval >= terms->ttl - evl_lease_drift(terms->ttl) - terms->lead)
        interval = 0;
    config->kept = *terms;
    config->kept.kept = true;
    config->kept.interval = interval;
    config->kept.grain = interval / 20;
}

/* What a grant needs besides the first answer. */
static struct trouble config_read_agreement(struct config *config, const evlock_options *given, struct words *words) {
    int64_t share_ms = config->terms.ttl / 10000 ? config->terms.ttl / 10000 : 1;
    int64_t node_ms = given->node_timeout_ms;
    int64_t replica_ms = given->replica_timeout_ms;
    int64_t replicas = given->min_replicas;
    const struct config_number numbers[] = {
        {"node_timeout_ms", &node_ms, share_ms, 1, TEN_YEARS_MS},
        {"replica_timeout_ms", &replica_ms, 0, 1, TEN_YEARS_MS},
        {"min_replicas", &replicas, 0, 1, INT32_MAX},
    };
    struct trouble trouble = config_read_numbers(numbers, ARRAY_LEN(numbers), words);

    if (trouble.status != EVLOCK_OK)
        return trouble;
    config->terms.patience = node_ms * 1000;
    config->replica_timeout = replica_ms * 1000;
    config->min_replicas = replicas;
    config->terms.replicated = replicas > 0;
    return evl_no_trouble;
}

/* How long a lease stays in the client: passed on from handle to handle. */
static struct trouble config_read_passing(struct config *config, const evlock_options *given, struct words *words) {
    int64_t passes = given->max_passes, pass_ms = given->max_pass_ms;
    const struct config_number numbers[] = {
        {"max_passes", &passes, 0, 1, UINT16_MAX},
        {"max_pass_ms", &pass_ms, config->terms.ttl / 1000, 1, TEN_YEARS_MS},
    };
    struct trouble trouble = config_read_numbers(numbers, ARRAY_LEN(numbers), words);

    if (trouble.status != EVLOCK_OK)
        return trouble;
    if (given->max_pass_ms && !given->max_passes)
        return (struct trouble){EVLOCK_EINVAL, "max_pass_ms does nothing without max_passes"};
    if (given->max_passes && config->terms.ttl == 0)
        return (struct trouble){EVLOCK_EINVAL, "max_passes needs a ttl: a lease without expiry is not passed on"};
    config->max_passes = (uint32_t)passes;
    config->max_pass = pass_ms * 1000;
    return evl_no_trouble;
}

static struct trouble config_read(struct config *config, const evlock_options *given, struct words *words) {
    struct trouble trouble = config_read_ttl(config, given->ttl_ms, words);

    config->on_lost = given->on_lost;
    config->on_at_risk = given->on_at_risk;
    if (trouble.status != EVLOCK_OK || (trouble = config_read_choices(config, given, words)).status != EVLOCK_OK ||
        (trouble = config_read_retrying(config, given, words)).status != EVLOCK_OK ||
        (trouble = config_read_wait(config, given, words)).status != EVLOCK_OK ||
        (trouble = config_read_agreement(config, given, words)).status != EVLOCK_OK ||
        (trouble = config_read_renewal(config, given, words)).status != EVLOCK_OK ||
        (trouble = config_read_passing(config, given, words)).status != EVLOCK_OK)
        return trouble;
    trouble = config_read_lead(config, given, words);
    config_make_kept(config);
    return trouble;
}

static bool config_same_limits(const struct limits *a, const struct limits *b) {
    return a->attempts == b->attempts && a->wait == b->wait && a->retry_delay == b->retry_delay &&
           a->fence == b->fence && a->fail_when_away == b->fail_when_away;
}

static bool config_same_text(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* What is said of a lease on the wire, and agreed for it, but for the holder's name. */
static bool config_same_agreement(const struct config *a, const struct config *b) {
    return a->terms.ttl == b->terms.ttl && a->terms.interval == b->terms.interval && a->terms.lead == b->terms.lead &&
           a->terms.max_hold == b->terms.max_hold && a->terms.risk == b->terms.risk &&
           a->terms.patience == b->terms.patience && a->min_replicas == b->min_replicas &&
           a->replica_timeout == b->replica_timeout && a->kind == b->kind && a->max_passes == b->max_passes &&
           a->max_pass == b->max_pass;
}

static bool config_same(const struct config *a, const struct config *b, const evlock_options *b_strings) {
    return config_same_agreement(a, b) && a->kept.interval == b->kept.interval &&
           config_same_limits(&a->limits, &b->limits) && a->retry_jitter == b->retry_jitter &&
           a->on_lost == b->on_lost && a->on_at_risk == b->on_at_risk &&
           config_same_text(a->holder, b_strings->holder) && config_same_text(a->prefix, b_strings->prefix) &&
           config_same_text(a->label, b_strings->label);
}

bool evl_config_same_lease(const struct config *a, const struct config *b) {
    return a == b || (config_same_agreement(a, b) && config_same_text(a->holder, b->holder));
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
    struct trouble trouble = evl_config_read_options(&given, options, words);

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
