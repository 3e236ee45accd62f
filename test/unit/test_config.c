/*
 * Options that say how to wait and who holds, when to renew and when to tell a loss: what is refused, and that handles
 * share what is the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config.h"

static evlock_options queueing(void) {
    evlock_options options = EVLOCK_OPTIONS_INIT;

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

    assert_false(config->queue);
    assert_null(config->holder);
    evl_config_unref(config);
}

CASE(there_are_two_ways_to_wait) {
    static const int64_t wrong[] = {-1, 2, INT64_MAX, INT64_MIN + 1};
    evlock_options options = EVLOCK_OPTIONS_INIT;

    for (int64_t wait = EVLOCK_WAIT_POLL; wait <= EVLOCK_WAIT_QUEUE; wait++) {
        options.wait = wait;
        struct config *config = takes(NULL, &options);
        assert_int_equal(config->queue, wait == EVLOCK_WAIT_QUEUE);
        evl_config_unref(config);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        options.wait = wrong[i];
        refuses(&options, EVLOCK_EINVAL);
    }
}

CASE(a_queue_needs_a_ttl) {
    evlock_options options = queueing();

    options.ttl_ms = 0;
    refuses(&options, EVLOCK_EQUEUE);
    options.wait = EVLOCK_WAIT_POLL;
    evl_config_unref(takes(NULL, &options));
}

CASE(a_queue_counts_no_retries) {
    static const int64_t counted[] = {1, 3, INT64_MAX};
    static const int64_t fine[] = {0, EVLOCK_UNLIMITED, EVLOCK_DEFAULT};

    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
        evlock_options options = queueing();
        options.retry_times = counted[i];
        refuses(&options, EVLOCK_EQUEUE);
        assert_int_equal(evl_config_validate_retries(true, counted[i]).status, EVLOCK_EQUEUE);
        assert_int_equal(evl_config_validate_retries(false, counted[i]).status, EVLOCK_OK);
    }
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
        evlock_options options = queueing();
        options.retry_times = fine[i];
        evl_config_unref(takes(NULL, &options));
    }
}

CASE(a_holders_name_is_1_to_91_bytes_long) {
    char name[200];
    evlock_options options = EVLOCK_OPTIONS_INIT;

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
        evlock_options options = EVLOCK_OPTIONS_INIT;
        options.renewal_interval_ms = intervals_ms[i];
        for (options.auto_renewal = 0; options.auto_renewal <= 1; options.auto_renewal++) {
            struct config *config = takes(NULL, &options);
            assert_int_equal(config->terms.grain, options.auto_renewal * intervals_ms[i] * 1000 / 20);
            evl_config_unref(config);
        }
    }
}

/* The terms' lead for these options, in microseconds; negative: they are refused. */
static int64_t lead_of(int64_t ttl_ms, int64_t interval_ms, int64_t lead_ms) {
    evlock_options options = EVLOCK_OPTIONS_INIT;
    struct config *config;
    int64_t lead;

    options.ttl_ms = ttl_ms;
    options.lost_lead_ms = lead_ms;
    if (interval_ms) {
        options.auto_renewal = 1;
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
    assert_int_equal(lead_of(30000, 0, EVLOCK_DEFAULT), 1000);
    assert_int_equal(lead_of(0, 0, EVLOCK_DEFAULT), 1000);
    assert_int_equal(lead_of(20, 0, EVLOCK_DEFAULT), 1000);
    assert_int_equal(lead_of(3, 0, EVLOCK_DEFAULT), 150);
    assert_int_equal(lead_of(1000, 987, EVLOCK_DEFAULT), 1000); /* what has been taken without a word stays so */
    assert_int_equal(lead_of(30000, 0, 0), 0);
    assert_int_equal(lead_of(30000, 10000, 500), 500 * 1000);
}

CASE(a_lead_leaves_time_to_hold_and_to_renew) {
    assert_int_equal(lead_of(1000, 0, -1), -1);
    assert_int_equal(lead_of(1000, 0, INT64_MAX), -1);
    assert_int_equal(lead_of(1000, 0, 987), 987 * 1000); /* the drift is 12 ms */
    assert_int_equal(lead_of(1000, 0, 988), -1);
    assert_int_equal(lead_of(1000, 300, 687), 687 * 1000);
    assert_int_equal(lead_of(1000, 300, 688), -1);
    assert_int_equal(lead_of(0, 0, 5000), 5000 * 1000); /* of use if the lease is given an expiry */
}

/* A program that was built before there were names and queues. */
CASE(what_a_shorter_struct_lacks_keeps_its_default) {
    evlock_options options = queueing();

    options.holder = "";
    options.lost_lead_ms = -1;
    options.size = offsetof(evlock_options, wait);
    struct config *config = takes(NULL, &options);
    assert_false(config->queue);
    assert_null(config->holder);
    assert_int_equal(config->terms.lead, 1000);
    evl_config_unref(config);

    options = queueing();
    options.lost_lead_ms = -1;
    options.size = offsetof(evlock_options, lost_lead_ms);
    config = takes(NULL, &options);
    assert_true(config->queue);
    assert_int_equal(config->terms.lead, 1000);
    evl_config_unref(config);
}

CASE(no_struct_ends_within_a_member) {
    static const size_t wrong[] = {0, sizeof(size_t) - 1, offsetof(evlock_options, lost_lead_ms) + 1,
                                   offsetof(evlock_options, lost_lead_ms) + 2, 4096 + sizeof(int64_t)};
    evlock_options options = EVLOCK_OPTIONS_INIT;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        options.size = wrong[i];
        refuses(&options, EVLOCK_EINVAL);
    }
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
        {offsetof(evlock_options, ttl_ms), 20000},          {offsetof(evlock_options, auto_renewal), 1},
        {offsetof(evlock_options, max_hold_ms), 2},         {offsetof(evlock_options, at_risk_percent), 2},
        {offsetof(evlock_options, retry_delay_ms), 2},      {offsetof(evlock_options, retry_jitter), 2},
        {offsetof(evlock_options, retry_times), 0},         {offsetof(evlock_options, wait_timeout_ms), 2},
        {offsetof(evlock_options, node_timeout_ms), 2},     {offsetof(evlock_options, min_replicas), 2},
        {offsetof(evlock_options, lost_lead_ms), 2},        {offsetof(evlock_options, replica_timeout_ms), 2},
        {offsetof(evlock_options, wait), EVLOCK_WAIT_POLL},
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_says_nothing_polls_without_a_name),
        cmocka_unit_test(there_are_two_ways_to_wait),
        cmocka_unit_test(a_queue_needs_a_ttl),
        cmocka_unit_test(a_queue_counts_no_retries),
        cmocka_unit_test(a_holders_name_is_1_to_91_bytes_long),
        cmocka_unit_test(renewals_fall_due_on_twentieths_of_their_interval),
        cmocka_unit_test(losses_are_told_a_moment_ahead_unless_said_otherwise),
        cmocka_unit_test(a_lead_leaves_time_to_hold_and_to_renew),
        cmocka_unit_test(what_a_shorter_struct_lacks_keeps_its_default),
        cmocka_unit_test(no_struct_ends_within_a_member),
        cmocka_unit_test(only_what_is_the_same_is_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
