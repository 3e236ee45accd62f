/*
 * Options that say how to wait and who holds, when to renew and when to tell a loss: what is refused, and that handles
 * share what is the same.
 */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config.h"

/* What programs were built with stays where it is: new fields take what is reserved, or come at the end. Nothing is
 * padded, since a compound literal leaves dirt there, which a later version's field would take for a value. */
#if UINTPTR_MAX == UINT64_MAX
_Static_assert(sizeof(evlock_options) == 176 && offsetof(evlock_options, max_passes) == 160, "");
_Static_assert(offsetof(evlock_options, auto_renewal) == 16 && offsetof(evlock_options, wait) == 20, "");
_Static_assert(offsetof(evlock_options, max_wait_ms) == 24 && offsetof(evlock_options, holder) == 112, "");
_Static_assert(sizeof(evlock_acquire_options) == 56 && offsetof(evlock_acquire_options, fence) == 32, "");
_Static_assert(sizeof(evlock_client_options) == 208 && offsetof(evlock_client_options, user) == 72, "");
#endif
_Static_assert(sizeof(bool) == 1 && sizeof(enum evlock_wait) == sizeof(int), "");

static evlock_options queueing(void) {
    evlock_options options = {.size = sizeof(evlock_options)};

    options.wait = EVLOCK_WAIT_QUEUE;
    return options;
}

static struct words words;

/* The options are refused with this status, and with words, which are returned. */
static const char *refuses(const evlock_options *options, int status) {
    struct config *config = NULL;
    struct trouble trouble = evl_config_get(&config, NULL, options, &words);

    assert_int_equal(trouble.status, status);
    assert_null(config);
    assert_true(trouble.words[0]);
    return trouble.words;
}

static struct config *takes(struct config *last, const evlock_options *options) {
    struct config *config = NULL;

    assert_int_equal(evl_config_get(&config, last, options, &words).status, EVLOCK_OK);
    assert_non_null(config);
    return config;
}

CASE(who_says_nothing_polls_without_a_name) {
    struct config *config = takes(NULL, NULL);

    assert_int_equal(config->kind, LOCK_PLAIN);
    assert_null(config->holder);
    evl_config_unref(config);
}

CASE(there_are_two_ways_to_wait) {
    static const int wrong[] = {-1, 2, INT_MAX, INT_MIN};
    evlock_options options = {.size = sizeof(evlock_options)};

    for (int wait = EVLOCK_WAIT_POLL; wait <= EVLOCK_WAIT_QUEUE; wait++) {
        options.wait = (enum evlock_wait)wait;
        struct config *config = takes(NULL, &options);
        assert_int_equal(config->kind, wait == EVLOCK_WAIT_QUEUE ? LOCK_QUEUED : LOCK_PLAIN);
        evl_config_unref(config);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        options.wait = (enum evlock_wait)wrong[i];
        refuses(&options, EVLOCK_EINVAL);
    }
}

CASE(a_queue_needs_a_ttl) {
    evlock_options options = queueing();

    options.ttl_ms = EVLOCK_NO_EXPIRY;
    refuses(&options, EVLOCK_EQUEUE);
    options.wait = EVLOCK_WAIT_POLL;
    evl_config_unref(takes(NULL, &options));
}

CASE(what_cannot_be_passed_on_is_refused) {
    evlock_options options = {.size = sizeof(evlock_options), .max_pass_ms = 1};

    assert_non_null(strstr(refuses(&options, EVLOCK_EINVAL), "max_passes"));
    options.max_passes = 1;
    evl_config_unref(takes(NULL, &options));
    options.ttl_ms = EVLOCK_NO_EXPIRY;
    assert_non_null(strstr(refuses(&options, EVLOCK_EINVAL), "ttl"));
    options.max_pass_ms = 0;
    refuses(&options, EVLOCK_EINVAL);
    options.max_passes = 0;
    evl_config_unref(takes(NULL, &options));
}

CASE(a_queue_counts_no_attempts) {
    static const int64_t counted[] = {2, 4, INT64_MAX};
    static const int64_t fine[] = {0, EVLOCK_UNLIMITED, EVLOCK_TRY};

    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
        evlock_options options = queueing();
        options.max_attempts = counted[i];
        refuses(&options, EVLOCK_EQUEUE);
        options.wait = EVLOCK_WAIT_POLL;
        evl_config_unref(takes(NULL, &options));
    }
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        evlock_options options = queueing();
        options.max_attempts = fine[i];
        evl_config_unref(takes(NULL, &options));
    }
}

CASE(a_holders_name_is_1_to_91_bytes_long) {
    char name[200];
    evlock_options options = {.size = sizeof(evlock_options)};

    for (size_t len = 0; len <= 100; len++) {
        memset(name, 'n', len);
        name[len] = '\0';
        options.holder = name;
        if (len == 0 || len > 91) {
            refuses(&options, EVLOCK_EHOLDER);
            continue;
        }
        struct config *config = takes(NULL, &options);
        assert_string_equal(config->holder, name);
        assert_ptr_not_equal(config->holder, name);
        evl_config_unref(config);
    }
}

CASE(renewals_fall_due_on_twentieths_of_their_interval) {
    static const int64_t intervals_ms[] = {1, 7, 1000, 9000};

    for (size_t i = 0; i < sizeof intervals_ms / sizeof *intervals_ms; i++) {
        evlock_options options = {.size = sizeof(evlock_options)};
        options.renewal_interval_ms = intervals_ms[i];
        for (int renewed = 0; renewed <= 1; renewed++) {
            options.auto_renewal = renewed;
            struct config *config = takes(NULL, &options);
            assert_int_equal(config->terms.grain, renewed * intervals_ms[i] * 1000 / 20);
            evl_config_unref(config);
        }
    }
}

/* The terms' lead for these options, in microseconds; negative: they are refused. */
static int64_t lead_of(int64_t ttl_ms, int64_t interval_ms, int64_t lead_ms) {
    evlock_options options = {.size = sizeof(evlock_options)};
    struct config *config;
    int64_t lead;

    options.ttl_ms = ttl_ms;
    options.lost_lead_ms = lead_ms;
    if (interval_ms) {
        options.auto_renewal = true;
        options.renewal_interval_ms = interval_ms;
    }
    if (evl_config_get(&config, NULL, &options, &words).status != EVLOCK_OK) {
        assert_non_null(strstr(refuses(&options, EVLOCK_EINVAL), "lost_lead_ms"));
        return -1;
    }
    lead = config->terms.lead;
    evl_config_unref(config);
    return lead;
}

CASE(losses_are_told_a_moment_ahead_unless_said_otherwise) {
    assert_int_equal(lead_of(30000, 0, 0), 1000);
    assert_int_equal(lead_of(EVLOCK_NO_EXPIRY, 0, 0), 1000);
    assert_int_equal(lead_of(20, 0, 0), 1000);
    assert_int_equal(lead_of(3, 0, 0), 150);
    assert_int_equal(lead_of(1000, 987, 0), 1000); /* what has been taken without a word stays so */
    assert_int_equal(lead_of(30000, 0, EVLOCK_NO_LEAD), 0);
    assert_int_equal(lead_of(30000, 10000, 500), 500 * 1000);
}

CASE(a_lead_leaves_time_to_hold_and_to_renew) {
    assert_int_equal(lead_of(1000, 0, -2), -1);
    assert_int_equal(lead_of(1000, 0, INT64_MAX), -1);
    assert_int_equal(lead_of(1000, 0, 987), 987 * 1000); /* the drift is 12 ms */
    assert_int_equal(lead_of(1000, 0, 988), -1);
    assert_int_equal(lead_of(1000, 300, 687), 687 * 1000);
    assert_int_equal(lead_of(1000, 300, 688), -1);
    assert_int_equal(lead_of(EVLOCK_NO_EXPIRY, 0, 5000), 5000 * 1000); /* of use if the lease is given an expiry */
}

/* A program that was built before there were names and queues. */
/* Its other terms are those of an acquire. */
CASE(a_hold_is_renewed_whatever_the_options_say) {
    struct config *config = takes(NULL, EVLOCK_OPTIONS(.ttl_ms = 30000));

    assert_int_equal(config->terms.interval, 0);
    assert_int_equal(config->terms.max_hold, LEASE_NEVER);
    assert_int_equal(config->kept.interval, 10000 * 1000);
    assert_int_equal(config->kept.grain, 500 * 1000);
    assert_true(config->kept.kept && !config->terms.kept);
    assert_int_equal(config->kept.ttl, config->terms.ttl);
    assert_int_equal(config->kept.lead, config->terms.lead);
    assert_int_equal(config->kept.risk, config->terms.risk);
    assert_int_equal(config->kept.max_hold, LEASE_NEVER);
    assert_int_equal(config->kept.patience, config->terms.patience);
    evl_config_unref(config);
    config = takes(NULL, EVLOCK_OPTIONS(.ttl_ms = 30000, .renewal_interval_ms = 2000, .max_hold_ms = 7));
    assert_int_equal(config->kept.interval, 2000 * 1000);
    assert_int_equal(config->kept.max_hold, 7 * 1000);
    evl_config_unref(config);
}

CASE(a_hold_has_no_interval_where_there_is_no_time_for_one) {
    struct config *config = takes(NULL, EVLOCK_OPTIONS(.ttl_ms = EVLOCK_NO_EXPIRY));

    assert_int_equal(config->kept.ttl, 0);
    assert_int_equal(config->kept.interval, 0);
    evl_config_unref(config);
    config = takes(NULL, EVLOCK_OPTIONS(.ttl_ms = 30000, .lost_lead_ms = 19698)); /* with a drift of 302 ms */
    assert_int_equal(config->kept.interval, 0);
    evl_config_unref(config);
    config = takes(NULL, EVLOCK_OPTIONS(.ttl_ms = 30000, .lost_lead_ms = 19697));
    assert_int_equal(config->kept.interval, 10000 * 1000);
    evl_config_unref(config);
}

/* What is renewed by a hold alone is refused where it is said, and not where it is held. */
CASE(an_interval_leaves_time_whatever_renews) {
    for (int automatic = 0; automatic <= 1; automatic++)
        refuses(EVLOCK_OPTIONS(.ttl_ms = 30000, .renewal_interval_ms = 29698, .auto_renewal = automatic),
                EVLOCK_ERENEWAL);
    evl_config_unref(takes(NULL, EVLOCK_OPTIONS(.ttl_ms = 30000, .renewal_interval_ms = 29697)));
}

CASE(what_a_shorter_struct_lacks_keeps_its_default) {
    evlock_options options = queueing();

    options.holder = "";
    options.lost_lead_ms = -2;
    options.size = offsetof(evlock_options, auto_renewal);
    struct config *config = takes(NULL, &options);
    assert_int_equal(config->kind, LOCK_PLAIN);
    assert_null(config->holder);
    assert_int_equal(config->terms.lead, 1000);
    evl_config_unref(config);

    options = queueing();
    options.lost_lead_ms = -2;
    options.size = offsetof(evlock_options, lost_lead_ms);
    config = takes(NULL, &options);
    assert_int_equal(config->kind, LOCK_QUEUED);
    assert_int_equal(config->terms.lead, 1000);
    evl_config_unref(config);
}

CASE(no_struct_ends_within_a_member) {
    static const size_t wrong[] = {0, sizeof(size_t) - 1, offsetof(evlock_options, lost_lead_ms) + 1,
                                   offsetof(evlock_options, lost_lead_ms) + 2, 4096 + sizeof(int64_t)};
    evlock_options options = {.size = sizeof(evlock_options)};

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        options.size = wrong[i];
        refuses(&options, EVLOCK_EINVAL);
    }
#if UINTPTR_MAX == UINT64_MAX
    options.size = offsetof(evlock_options, lost_lead_ms) + 4;
    refuses(&options, EVLOCK_EINVAL);
#endif
}

/* As another language may fill it in. */
CASE(a_bool_is_0_or_1) {
    static const size_t choices[] = {
        offsetof(evlock_options, auto_renewal),
        offsetof(evlock_options, fence),
        offsetof(evlock_options, fail_when_away),
    };

    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        evlock_options options = {.size = sizeof(evlock_options)};
        memset((char *)&options + choices[i], 2, 1);
        refuses(&options, EVLOCK_EINVAL);
        memset((char *)&options + choices[i], 1, 1);
        evl_config_unref(takes(NULL, &options));
    }
}

CASE(what_is_reserved_is_zero) {
    evlock_options options = {.size = sizeof(evlock_options), .reserved = 1};
    evlock_client_options client_options = {.size = sizeof(evlock_client_options)}, given;
    struct client_config config;

    refuses(&options, EVLOCK_EVERSION);
    assert_int_equal(evl_config_read_client(&config, &given, &client_options, &words).status, EVLOCK_OK);
    client_options.reserved[1] = 1;
    assert_int_equal(evl_config_read_client(&config, &given, &client_options, &words).status, EVLOCK_EVERSION);
    client_options.reserved[1] = 0;
    client_options.reserved_pointer = &config;
    assert_int_equal(evl_config_read_client(&config, &given, &client_options, &words).status, EVLOCK_EVERSION);
}

/* A program that was built with a newer header. */
CASE(a_longer_struct_is_taken_while_its_end_is_zero) {
    struct {
        evlock_options known;
        int64_t newer[2];
    } options = {.known.size = sizeof options, .known.ttl_ms = 7000};
    struct config *config = takes(NULL, &options.known);

    assert_int_equal(config->terms.ttl, 7000 * 1000);
    evl_config_unref(config);
    memset((char *)&options + sizeof options - 1, 1, 1);
    refuses(&options.known, EVLOCK_EVERSION);
}

static struct limits limits_of(const evlock_options *options, const evlock_acquire_options *own) {
    struct config *config = takes(NULL, options);
    evlock_acquire_options given;
    struct limits limits;

    assert_int_equal(evl_config_read_acquire(&limits, &given, config, own, &words).status, EVLOCK_OK);
    evl_config_unref(config);
    return limits;
}

CASE(an_acquire_says_what_it_wants_otherwise) {
    const evlock_options *options = EVLOCK_OPTIONS(.fence = true, .max_wait_ms = 50, .max_attempts = 7);
    struct limits limits = limits_of(options, NULL);

    assert_true(limits.fence && !limits.fail_when_away);
    assert_int_equal(limits.wait, 50 * 1000);
    assert_int_equal(limits.attempts, 7);
    assert_int_equal(limits.retry_delay, 100 * 1000);
    limits = limits_of(options, EVLOCK_ACQUIRE_OPTIONS(.fence = EVLOCK_OFF, .fail_when_away = EVLOCK_ON));
    assert_true(!limits.fence && limits.fail_when_away);
    assert_int_equal(limits.wait, 50 * 1000);
    limits = limits_of(options, EVLOCK_ACQUIRE_OPTIONS(.max_wait_ms = EVLOCK_UNLIMITED, .max_attempts = EVLOCK_TRY,
                                                       .retry_delay_ms = 3));
    assert_int_equal(limits.wait, EVLOCK_UNLIMITED);
    assert_int_equal(limits.attempts, EVLOCK_TRY);
    assert_int_equal(limits.retry_delay, 3 * 1000);
}

static int acquire_status(const evlock_acquire_options *own) {
    struct config *config = takes(NULL, EVLOCK_OPTIONS(.ttl_ms = 1000));
    evlock_acquire_options given;
    struct limits limits;
    int status = evl_config_read_acquire(&limits, &given, config, own, &words).status;

    evl_config_unref(config);
    return status;
}

CASE(an_acquires_options_have_ranges) {
    assert_int_equal(acquire_status(EVLOCK_ACQUIRE_OPTIONS(.retry_delay_ms = 1000)), EVLOCK_OK);
    assert_int_equal(acquire_status(EVLOCK_ACQUIRE_OPTIONS(.retry_delay_ms = 1001)), EVLOCK_ERETRY);
    assert_int_equal(acquire_status(EVLOCK_ACQUIRE_OPTIONS(.retry_delay_ms = -1)), EVLOCK_EINVAL);
    assert_int_equal(acquire_status(EVLOCK_ACQUIRE_OPTIONS(.max_attempts = -2)), EVLOCK_EINVAL);
    assert_int_equal(acquire_status(EVLOCK_ACQUIRE_OPTIONS(.max_wait_ms = -2)), EVLOCK_EINVAL);
    assert_int_equal(acquire_status(EVLOCK_ACQUIRE_OPTIONS(.fence = (enum evlock_override)3)), EVLOCK_EINVAL);
    assert_int_equal(acquire_status(EVLOCK_ACQUIRE_OPTIONS(.fail_when_away = (enum evlock_override) - 1)),
                     EVLOCK_EINVAL);
}

CASE(an_initialiser_zeroes_all_but_the_size) {
    evlock_client_options options;

    memset(&options, 0xa5, sizeof options);
    evlock_options_init(&options, sizeof options);
    assert_memory_equal(&options, EVLOCK_CLIENT_OPTIONS(), sizeof options);
}

static void on_lost(evlock *lock, int reason, void *arg) {
    (void)lock;
    (void)reason;
    (void)arg;
}

static void on_at_risk(evlock *lock, int status, void *arg) {
    (void)lock;
    (void)status;
    (void)arg;
}

static void is_not_shared(struct config *config, const evlock_options *other) {
    struct config *another = takes(config, other);

    assert_ptr_not_equal(another, config);
    evl_config_unref(another);
}

CASE(only_what_is_the_same_is_shared) {
    static const struct {
        size_t at;
        int64_t value;
    } numbers[] = {
        {offsetof(evlock_options, ttl_ms), 20000},         {offsetof(evlock_options, lost_lead_ms), 2},
        {offsetof(evlock_options, max_hold_ms), 2},        {offsetof(evlock_options, at_risk_percent), 2},
        {offsetof(evlock_options, retry_delay_ms), 2},     {offsetof(evlock_options, retry_jitter), 2},
        {offsetof(evlock_options, max_attempts), 1},       {offsetof(evlock_options, max_wait_ms), 2},
        {offsetof(evlock_options, node_timeout_ms), 2},    {offsetof(evlock_options, min_replicas), 2},
        {offsetof(evlock_options, replica_timeout_ms), 2}, {offsetof(evlock_options, renewal_interval_ms), 2},
    };
    static const struct {
        size_t at;
        const char *value;
    } texts[] = {
        {offsetof(evlock_options, holder), "host:2"},
        {offsetof(evlock_options, holder), NULL},
        {offsetof(evlock_options, prefix), "a"},
        {offsetof(evlock_options, label), "a"},
    };
    static const size_t choices[] = {
        offsetof(evlock_options, auto_renewal),
        offsetof(evlock_options, fence),
        offsetof(evlock_options, fail_when_away),
    };
    evlock_options first = queueing(), other;
    char same_name[] = "host:1";

    first.holder = "host:1";
    struct config *config = takes(NULL, &first);

    other = first;
    other.holder = same_name;
    assert_ptr_equal(takes(config, &other), config);
    evl_config_unref(config);

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        other = first;
        memcpy((char *)&other + numbers[i].at, &numbers[i].value, sizeof numbers[i].value);
        is_not_shared(config, &other);
    }
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        other = first;
        memcpy((char *)&other + choices[i], &(bool){true}, 1);
        is_not_shared(config, &other);
    }
    other = first;
    other.wait = EVLOCK_WAIT_POLL;
    is_not_shared(config, &other);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        other = first;
        memcpy((char *)&other + texts[i].at, &texts[i].value, sizeof texts[i].value);
        is_not_shared(config, &other);
    }
    other = first;
    other.on_lost = on_lost;
    is_not_shared(config, &other);
    other = first;
    other.on_at_risk = on_at_risk;
    is_not_shared(config, &other);
    evl_config_unref(config);
}

#define TEN_YEARS_MS (INT64_C(10) * 366 * 24 * 3600 * 1000)

struct range {
    const char *name;
    size_t at;
    int64_t least, most;
};

#define RANGE(type, name, least, most)                                                                                 \
    { #name, offsetof(type, name), least, most }

static int status_with(const struct range *range, int64_t value, bool of_client) {
    evlock_options options = {.size = sizeof(evlock_options), .max_passes = 1};
    evlock_client_options client_options = {.size = sizeof(evlock_client_options)}, given;
    struct client_config client_config;
    struct config *config = NULL;
    struct trouble trouble;

    client_options.backoff_max_ms = TEN_YEARS_MS;
    client_options.backoff_min_ms = 1;
    memcpy((char *)(of_client ? (void *)&client_options : (void *)&options) + range->at, &value, sizeof(value));
    trouble = of_client ? evl_config_read_client(&client_config, &given, &client_options, &words)
                        : evl_config_get(&config, NULL, &options, &words);
    evl_config_unref(config);
    if (trouble.status != EVLOCK_OK && !strstr(trouble.words, range->name))
        fail_msg("%s: %s", range->name, trouble.words);
    return trouble.status;
}

static void has_range(const struct range *range, bool of_client) {
    assert_int_equal(status_with(range, 0, of_client), EVLOCK_OK);
    assert_int_equal(status_with(range, range->least, of_client), EVLOCK_OK);
    assert_int_equal(status_with(range, range->most, of_client), EVLOCK_OK);
    assert_int_equal(status_with(range, range->least == 1 ? -1 : range->least - 1, of_client), EVLOCK_EINVAL);
    assert_int_equal(status_with(range, INT64_MIN, of_client), EVLOCK_EINVAL);
    if (range->most < INT64_MAX)
        assert_int_equal(status_with(range, range->most + 1, of_client), EVLOCK_EINVAL);
}

CASE(each_number_has_its_range) {
    static const struct range of_clients[] = {
        RANGE(evlock_client_options, connect_timeout_ms, 1, TEN_YEARS_MS),
        RANGE(evlock_client_options, command_timeout_ms, 1, TEN_YEARS_MS),
        RANGE(evlock_client_options, backoff_min_ms, 1, TEN_YEARS_MS),
        RANGE(evlock_client_options, backoff_max_ms, 1, TEN_YEARS_MS),
        RANGE(evlock_client_options, max_inflight, 1, INT32_MAX),
        RANGE(evlock_client_options, max_ttl_ms, 1, TEN_YEARS_MS),
        RANGE(evlock_client_options, close_wait_ms, EVLOCK_UNLIMITED, TEN_YEARS_MS),
        RANGE(evlock_client_options, failover_wait_ms, 1, TEN_YEARS_MS),
    };
    static const struct range of_locks[] = {
        RANGE(evlock_options, max_wait_ms, EVLOCK_UNLIMITED, TEN_YEARS_MS),
        RANGE(evlock_options, max_attempts, EVLOCK_UNLIMITED, INT64_MAX),
        RANGE(evlock_options, retry_delay_ms, 1, TEN_YEARS_MS),
        RANGE(evlock_options, retry_jitter, EVLOCK_NO_JITTER, 100),
        RANGE(evlock_options, max_hold_ms, EVLOCK_UNLIMITED, TEN_YEARS_MS),
        RANGE(evlock_options, at_risk_percent, 1, 99),
        RANGE(evlock_options, lost_lead_ms, EVLOCK_NO_LEAD, 30000 - 302 - 1),
        RANGE(evlock_options, node_timeout_ms, 1, TEN_YEARS_MS),
        RANGE(evlock_options, min_replicas, 1, INT32_MAX),
        RANGE(evlock_options, replica_timeout_ms, 1, TEN_YEARS_MS),
        RANGE(evlock_options, max_passes, 1, UINT16_MAX),
        RANGE(evlock_options, max_pass_ms, 1, TEN_YEARS_MS),
    };

    for (size_t i = 0; i < sizeof of_clients / sizeof *of_clients; i++)
        has_range(&of_clients[i], true);
    for (size_t i = 0; i < sizeof of_locks / sizeof *of_locks; i++)
        has_range(&of_locks[i], false);
}

static int client_status(const evlock_client_options *options) {
    evlock_client_options given;
    struct client_config config;
    struct trouble trouble = evl_config_read_client(&config, &given, options, &words);

    assert_int_equal(!trouble.words[0], trouble.status == EVLOCK_OK);
    return trouble.status;
}

CASE(a_clients_options_go_together) {
    assert_int_equal(client_status(EVLOCK_CLIENT_OPTIONS(.backoff_min_ms = 9, .backoff_max_ms = 9)), EVLOCK_OK);
    assert_int_equal(client_status(EVLOCK_CLIENT_OPTIONS(.backoff_min_ms = 9, .backoff_max_ms = 8)), EVLOCK_EINVAL);
    assert_int_equal(client_status(EVLOCK_CLIENT_OPTIONS(.backoff_min_ms = 5001)), EVLOCK_EINVAL);
    assert_int_equal(client_status(EVLOCK_CLIENT_OPTIONS(.backoff_max_ms = 49)), EVLOCK_EINVAL);
    assert_int_equal(client_status(EVLOCK_CLIENT_OPTIONS(.password = "a", .password_file = "b")), EVLOCK_EINVAL);
    for (int level = -1; level <= EVLOCK_LOG_ERROR + 1; level++)
        assert_int_equal(client_status(EVLOCK_CLIENT_OPTIONS(.log_level = (enum evlock_log_level)level)),
                         level < 0 || level > EVLOCK_LOG_ERROR ? EVLOCK_EINVAL : EVLOCK_OK);
}

static void assert_name(const char *name, int status) {
    evlock_client_options options = {.size = sizeof(evlock_client_options)}, given;
    struct client_config config;
    struct words why;

    options.connection_name = name;
    assert_int_equal(evl_config_read_client(&config, &given, &options, &why).status, status);
    if (status == EVLOCK_OK)
        assert_string_equal(config.connection_name, name ? name : "");
}

CASE(a_connection_name_is_one_that_servers_take) {
    char longest[66];

    memset(longest, 'a', 65);
    longest[65] = '\0';
    assert_name(longest, EVLOCK_EINVAL);
    longest[64] = '\0';
    assert_name(longest, EVLOCK_OK);
    assert_name(NULL, EVLOCK_OK);
    assert_name("!a~", EVLOCK_OK);
    assert_name("", EVLOCK_EINVAL);
    assert_name("a blank", EVLOCK_EINVAL);
    assert_name("a\nline", EVLOCK_EINVAL);
    assert_name("\177", EVLOCK_EINVAL);
    assert_name("\303\251", EVLOCK_EINVAL);
}

/* Pauses of one length are as good as others; they cannot grow from more to less. */
CASE(pauses_do_not_shrink) {
    evlock_client_options options = {.size = sizeof(evlock_client_options), .backoff_min_ms = 7}, given;
    struct client_config config;
    struct words why;

    options.backoff_max_ms = 7;
    assert_int_equal(evl_config_read_client(&config, &given, &options, &why).status, EVLOCK_OK);
    options.backoff_max_ms = 6;
    assert_int_equal(evl_config_read_client(&config, &given, &options, &why).status, EVLOCK_EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_number_has_its_range),
        cmocka_unit_test(a_clients_options_go_together),
        cmocka_unit_test(a_connection_name_is_one_that_servers_take),
        cmocka_unit_test(pauses_do_not_shrink),
        cmocka_unit_test(who_says_nothing_polls_without_a_name),
        cmocka_unit_test(there_are_two_ways_to_wait),
        cmocka_unit_test(a_queue_needs_a_ttl),
        cmocka_unit_test(what_cannot_be_passed_on_is_refused),
        cmocka_unit_test(a_queue_counts_no_attempts),
        cmocka_unit_test(a_holders_name_is_1_to_91_bytes_long),
        cmocka_unit_test(renewals_fall_due_on_twentieths_of_their_interval),
        cmocka_unit_test(losses_are_told_a_moment_ahead_unless_said_otherwise),
        cmocka_unit_test(a_lead_leaves_time_to_hold_and_to_renew),
        cmocka_unit_test(a_hold_is_renewed_whatever_the_options_say),
        cmocka_unit_test(a_hold_has_no_interval_where_there_is_no_time_for_one),
        cmocka_unit_test(an_interval_leaves_time_whatever_renews),
        cmocka_unit_test(what_a_shorter_struct_lacks_keeps_its_default),
        cmocka_unit_test(no_struct_ends_within_a_member),
        cmocka_unit_test(a_bool_is_0_or_1),
        cmocka_unit_test(what_is_reserved_is_zero),
        cmocka_unit_test(a_longer_struct_is_taken_while_its_end_is_zero),
        cmocka_unit_test(an_acquire_says_what_it_wants_otherwise),
        cmocka_unit_test(an_acquires_options_have_ranges),
        cmocka_unit_test(an_initialiser_zeroes_all_but_the_size),
        cmocka_unit_test(only_what_is_the_same_is_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
