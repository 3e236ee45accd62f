/*
 * The tests' own cluster: that slots move in their steps, that replicas take over, and that it is mended for the next
 * test. One cluster serves all tests. Each is named after the behaviour that it shows.
 */
#include "../redis/harness.h"
#include "cluster.h"

static struct cluster cluster;

static int begin(void **state) {
    (void)state;
    cluster_start(&cluster, NULL);
    return 0;
}

static int end(void **state) {
    (void)state;
    cluster_stop(&cluster);
    return 0;
}

static int mend(void **state) {
    (void)state;
    cluster_mend(&cluster);
    return 0;
}

static struct server *node(int number) {
    return &cluster.nodes[number];
}

/* The slot of "kept", which its master has, and a replica has heard of it. */
static int kept(void) {
    int slot = cluster_slot(&cluster, "kept"), owner = cluster_owner(&cluster, slot);
    assert_true(owner >= 0);
    server_do(node(owner), "SET kept value");
    assert_int_equal(server_integer(node(owner), "WAIT 1 20000"), 1);
    return slot;
}

static void answers(int number, const char *start) {
    redisReply *reply = server_command(node(number), "GET kept");
    assert_non_null(reply->str);
    if (strncmp(reply->str, start, strlen(start)) != 0)
        fail_msg("it answers %s, not %s", reply->str, start);
    freeReplyObject(reply);
}

CASE(keys_are_found_for_each_master) {
    for (int i = 0; i < 3; i++)
        for (int nth = 0; nth < 2; nth++) {
            char key[32];
            cluster_key(&cluster, i, nth, key, sizeof(key));
            server_do(node(i), "SET %s value", key);
            assert_true(cluster_replica_of(&cluster, i) >= 3);
        }
}

CASE(a_slot_moves_in_its_steps) {
    int slot = kept(), from = cluster_owner(&cluster, slot), to = (from + 1) % 3;
    cluster_open(&cluster, slot, to);
    answers(from, "value");
    answers(to, "MOVED");
    cluster_migrate(&cluster, slot, to);
    answers(from, "ASK");
    answers(to, "MOVED");
    cluster_settle(&cluster, slot, to);
    answers(to, "value");
    answers(from, "MOVED");
    assert_int_equal(cluster_await_other(&cluster, slot, from), to);
    cluster_move(&cluster, slot, from);
    answers(from, "value");
}

/* Each owner claims the slot at an epoch that is greater than all, however soon it moves again. */
CASE(a_slot_moves_to_and_fro) {
    int slot = kept(), home = cluster_owner(&cluster, slot);
    for (int i = 1; i <= 12; i++) {
        int to = (home + i) % 3;
        cluster_open(&cluster, slot, to);
        cluster_migrate(&cluster, slot, to);
        cluster_settle(&cluster, slot, to);
    }
    cluster_await_ok(&cluster);
    assert_true(cluster_agrees(&cluster, slot, home));
    answers(home, "value");
}

CASE(a_move_can_be_cancelled) {
    int slot = kept(), from = cluster_owner(&cluster, slot), to = (from + 1) % 3;
    cluster_open(&cluster, slot, to);
    cluster_cancel(&cluster, slot);
    answers(from, "value");
    assert_true(cluster_agrees(&cluster, slot, from));
}

CASE(a_replica_takes_over_when_it_is_told_to) {
    static const char *const how[] = {"", "TAKEOVER"};
    for (int i = 0; i < 2; i++) {
        int slot = kept(), old = cluster_owner(&cluster, slot);
        int replica = cluster_replica_of(&cluster, old);
        cluster_fail_over(&cluster, replica, how[i]);
        assert_int_equal(cluster_await_other(&cluster, slot, old), replica);
        answers(replica, "value");
        cluster_await_ok(&cluster);
    }
}

CASE(a_replica_takes_over_for_a_killed_master) {
    int slot = kept(), old = cluster_owner(&cluster, slot);
    server_kill9(node(old));
    answers(cluster_await_other(&cluster, slot, old), "value");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(keys_are_found_for_each_master, mend),
        cmocka_unit_test_setup(a_slot_moves_in_its_steps, mend),
        cmocka_unit_test_setup(a_slot_moves_to_and_fro, mend),
        cmocka_unit_test_setup(a_move_can_be_cancelled, mend),
        cmocka_unit_test_setup(a_replica_takes_over_for_a_killed_master, mend),
        cmocka_unit_test_setup(a_replica_takes_over_when_it_is_told_to, mend),
    };
    return run_suite_with("cluster", tests, sizeof(tests) / sizeof(tests[0]), begin, end);
}
