/*
 * The tests' own sentinels: that they agree, promote a replica in every kind of failover, and take the old primary back
 * as a replica. Each test is named after the behaviour that it shows.
 */
#include "../redis/harness.h"
#include "sentinels.h"

static struct sentinels group;

static int teardown(void **state) {
    (void)state;
    sentinels_stop(&group);
    return 0;
}

static void started(const struct sentinels_options *options) {
    sentinels_start(&group, options);
    assert_int_equal(sentinels_primary(&group), 0);
    server_do(&group.servers[0], "SET kept value");
    assert_int_equal(server_integer(&group.servers[0], "WAIT %d 20000", (int)group.servers_len - 1),
                     group.servers_len - 1);
}

/* Another is the primary for all, with the data, and the old one follows it. */
static void followed_by(int old) {
    int primary = sentinels_await_other(&group, old);
    assert_true(key_is(&group.servers[primary], "kept", "value", 5));
    server_do(&group.servers[primary], "SET new value");
}

static void returned(int old) {
    sentinels_await_ready(&group);
    assert_int_not_equal(sentinels_primary(&group), old);
    assert_true(server_info(&group.servers[old], "replication", "master_port:") > 0);
}

CASE(a_planned_failover_promotes_a_replica) {
    started(NULL);
    sentinels_fail_over(&group);
    followed_by(0);
    returned(0);
}

CASE(a_killed_primary_is_replaced_and_comes_back_as_a_replica) {
    started(NULL);
    server_kill9(&group.servers[0]);
    followed_by(0);
    server_restart(&group.servers[0]);
    returned(0);
}

CASE(a_stopped_primary_is_replaced_though_a_sentinel_is_dead) {
    started(NULL);
    server_kill9(&group.watchers[0]);
    server_pause(&group.servers[0]);
    followed_by(0);
    server_resume(&group.servers[0]);
}

CASE(all_of_it_works_with_passwords) {
    static const struct sentinels_options options = {
        .replicas = 1, .password = "secret", .sentinel_password = "other", .min_replicas = 1, .max_lag_s = 2};
    started(&options);
    assert_int_equal(server_integer(&group.servers[0], "EXISTS kept"), 1);
    assert_int_equal(server_info(&group.servers[0], "replication", "min_slaves_good_slaves:"), 1);
    sentinels_fail_over(&group);
    assert_int_equal(sentinels_await_other(&group, 0), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_planned_failover_promotes_a_replica, teardown),
        cmocka_unit_test_teardown(a_killed_primary_is_replaced_and_comes_back_as_a_replica, teardown),
        cmocka_unit_test_teardown(a_stopped_primary_is_replaced_though_a_sentinel_is_dead, teardown),
        cmocka_unit_test_teardown(all_of_it_works_with_passwords, teardown),
    };
    return run_suite_with("sentinels", tests, sizeof(tests) / sizeof(tests[0]), NULL, NULL);
}
