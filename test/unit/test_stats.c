/*
 * Statistics: into which bucket a duration falls, and what a program of another age is given.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client.h"
#include "stats.h"

enum { LAST = EVLOCK_STATS_BUCKETS - 1 };

/* The duration is counted once, in this bucket. */
static void falls_into(int64_t duration, unsigned bucket) {
    uint64_t buckets[EVLOCK_STATS_BUCKETS] = {0};

    evl_stats_count(buckets, duration);
    for (unsigned i = 0; i < EVLOCK_STATS_BUCKETS; i++)
        assert_int_equal(buckets[i], i == bucket);
}

CASE(buckets_double) {
    falls_into(0, 0);
    falls_into(1, 1);
    falls_into(2, 2);
    falls_into(3, 2);
    for (unsigned i = 1; i < LAST; i++) {
        falls_into(INT64_C(1) << (i - 1), i);
        falls_into((INT64_C(1) << i) - 1, i);
    }
}

CASE(the_last_bucket_takes_all_that_is_longer) {
    falls_into(INT64_C(1) << (LAST - 1), LAST);
    falls_into(INT64_C(1) << LAST, LAST);
    falls_into(INT64_MAX, LAST);
}

CASE(each_reason_of_a_loss_has_a_count_of_its_own) {
    struct evlock_stats stats = {0};

    evl_stats_count_loss(&stats, EVLOCK_EEXPIRED);
    for (int i = 0; i < 2; i++)
        evl_stats_count_loss(&stats, EVLOCK_ENOTOWNED);
    for (int i = 0; i < 3; i++)
        evl_stats_count_loss(&stats, EVLOCK_EDATALOSS);
    for (int i = 0; i < 4; i++)
        evl_stats_count_loss(&stats, EVLOCK_EMAXHOLD);
    assert_int_equal(stats.lost_expired, 1);
    assert_int_equal(stats.lost_not_owned, 2);
    assert_int_equal(stats.lost_data, 3);
    assert_int_equal(stats.lost_max_hold, 4);
}

CASE(what_ended_before_it_began_took_no_time) {
    falls_into(-1, 0);
    falls_into(INT64_MIN, 0);
}

/* What another language lays out by hand, and what later fields may not hide in. */
_Static_assert(offsetof(evlock_node_info, reserved) + sizeof(((evlock_node_info *)0)->reserved) ==
                   offsetof(evlock_node_info, missing),
               "nothing is between");
_Static_assert(offsetof(evlock_node_info, reserved_more) + sizeof(((evlock_node_info *)0)->reserved_more) ==
                   offsetof(evlock_node_info, address),
               "nothing is between");
_Static_assert(offsetof(evlock_node_info, persistence) + sizeof(enum evlock_persistence) == sizeof(evlock_node_info),
               "nothing follows");
_Static_assert(offsetof(evlock_node_info, agreed) + 1 == offsetof(evlock_node_info, reserved), "nothing is between");

CASE(a_program_of_another_age_is_given_what_both_know) {
    static struct evlock_client client;
    struct deployment *deployment = evl_client_deployment(&client);
    struct {
        evlock_stats stats;
        uint64_t newer;
    } given;

    deployment->turn.process = evlock_process();
    evl_turn_take(&deployment->turn);
    deployment->stats = (evlock_stats){.acquired = 1, .waited = 2};
    for (size_t i = 0; i < EVLOCK_STATS_BUCKETS; i++)
        deployment->stats.hold[i] = 100 + i;
    memset(&given, 0xA5, sizeof given);
    assert_int_equal(evlock_client_stats(&client, &given.stats, sizeof given), EVLOCK_OK);
    assert_memory_equal(&given.stats, &deployment->stats, sizeof given.stats);
    assert_int_equal(given.newer, 0);

    memset(&given, 0xA5, sizeof given);
    assert_int_equal(evlock_client_stats(&client, &given.stats, sizeof(uint64_t)), EVLOCK_OK);
    assert_int_equal(given.stats.acquired, 1);
    assert_int_equal(given.stats.waited, UINT64_C(0xA5A5A5A5A5A5A5A5));
}

CASE(nothing_is_copied_from_or_to_nowhere) {
    static struct evlock_client client;
    evlock_stats stats;

    assert_int_equal(evlock_client_stats(NULL, &stats, sizeof stats), EVLOCK_EINVAL);
    assert_string_equal(evlock_last_error(), "the client is NULL");
    assert_int_equal(evlock_client_stats(&client, NULL, sizeof stats), EVLOCK_EINVAL);
    assert_int_equal(evlock_client_stats(&client, &stats, 4097), EVLOCK_EINVAL);
    assert_true(evlock_last_error()[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_double),
        cmocka_unit_test(the_last_bucket_takes_all_that_is_longer),
        cmocka_unit_test(each_reason_of_a_loss_has_a_count_of_its_own),
        cmocka_unit_test(what_ended_before_it_began_took_no_time),
        cmocka_unit_test(a_program_of_another_age_is_given_what_both_know),
        cmocka_unit_test(nothing_is_copied_from_or_to_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
