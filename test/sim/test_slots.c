/*
 * The members of the simulated cluster by themselves. A real cluster of Redis 7.0 was asked all of this by hand, and
 * answered so. No server runs, and nothing waits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "server.h"
#include "slots.h"
#include "world/resp.h"

enum { MEMBERS = 4, SLOT = 9753 }; /* of lock:one, which is the second master's at first */

#define LOCK "lock:one"
#define QUEUE "{lock:one}:queue"
#define MOVED "-MOVED 9753 127.0.0.1:7001\r\n"
#define ASKED "-ASK 9753 127.0.0.1:7000\r\n"
#define HALFWAY "-TRYAGAIN Multiple keys request during rehashing of slot\r\n"

static sim_server *members[MEMBERS];
static struct output answers;
static int64_t now = INT64_C(1700000000000000);

static void on_output(void *arg, const char *bytes, size_t len) {
    (void)arg;
    reply_raw(&answers, bytes, len);
}

static void on_ended(void *arg) {
    (void)arg;
}

static sim_session *sessions[MEMBERS];

static int setup(void **state) {
    (void)state;
    for (unsigned i = 0; i < MEMBERS; i++) {
        members[i] = sim_server_new(i);
        sim_server_set_time(members[i], now);
        sim_slots_join(members[i], i, MEMBERS);
        sessions[i] = sim_server_connect(members[i], on_output, on_ended, NULL);
    }
    return 0;
}

static int teardown(void **state) {
    (void)state;
    for (unsigned i = 0; i < MEMBERS; i++)
        sim_server_free(members[i]);
    reply_free(&answers);
    answers = (struct output){0};
    return 0;
}

static const char *ask(unsigned member, int argc, const char *const *argv) {
    struct output command = {0};
    reply_array(&command, (size_t)argc);
    for (int i = 0; i < argc; i++)
        reply_bulk(&command, argv[i], strlen(argv[i]));
    answers.len = 0;
    sim_session_feed(sessions[member], command.bytes, command.len);
    reply_free(&command);
    reply_raw(&answers, "", 1);
    return answers.bytes;
}

#define ASK(answer, member, ...)                                                                                       \
    assert_string_equal(                                                                                               \
        ask(member, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)), (const char *[]){__VA_ARGS__}),     \
        answer)

static void begin_move(void) {
    ASK("+OK\r\n", 1, "SET", LOCK, "a", "PX", "1000");
    ASK("+OK\r\n", 1, "SET", QUEUE, "b");
    sim_slots_import(members[0], SLOT, 1);
    sim_slots_migrate(members[1], SLOT, 0);
}

static void carry(unsigned from, unsigned to, const char *key) {
    sim_slots_carry(members[from], members[to], key, strlen(key), 0);
}

/* The published value for CRC16 is that of 123456789. */
CASE(a_key_has_the_slot_that_the_specification_says) {
    assert_int_equal(sim_slots_of("123456789", 9), 0x31C3);
    assert_int_equal(sim_slots_of("lock:one", 8), SLOT);
    assert_int_equal(sim_slots_of("{lock:one}:queue", 16), SLOT);
    assert_int_equal(sim_slots_of("lock:{two}", 10), sim_slots_of("two", 3));
    assert_int_equal(sim_slots_of("{}a", 3), sim_slots_of("{}a", 3));
    assert_int_not_equal(sim_slots_of("{}a", 3), sim_slots_of("", 0));
}

CASE(a_master_sends_on_what_is_not_its) {
    ASK("$-1\r\n", 1, "GET", LOCK);
    ASK(MOVED, 0, "GET", LOCK);
    ASK(MOVED, 2, "GET", LOCK);
    ASK(MOVED, 3, "SET", LOCK, "a");
    ASK(MOVED, 0, "EVAL", "return 1", "2", LOCK, QUEUE);
    ASK("-CROSSSLOT Keys in request don't hash to the same slot\r\n", 0, "EVAL", "return 1", "2", "a", "b");
    ASK(":1\r\n", 0, "EVAL", "return 1", "0");
    ASK("-ERR SELECT is not allowed in cluster mode\r\n", 0, "SELECT", "1");
}

CASE(of_a_slot_on_its_way_the_old_master_has_what_is_left) {
    begin_move();
    ASK("$1\r\na\r\n", 1, "EVAL", "return redis.call('get', KEYS[1])", "2", LOCK, QUEUE);
    ASK(HALFWAY, 1, "EVAL", "return 1", "2", LOCK, "{lock:one}:other");
    ASK(ASKED, 1, "EVAL", "return 1", "2", "{lock:one}:other", "{lock:one}:another");
    ASK(ASKED, 1, "GET", "{lock:one}:other");
    carry(1, 0, LOCK);
    ASK(ASKED, 1, "GET", LOCK);
    ASK(HALFWAY, 1, "EVAL", "return 1", "2", LOCK, QUEUE);
}

CASE(of_a_slot_on_its_way_the_new_master_has_what_has_come_for_those_that_ask) {
    begin_move();
    carry(1, 0, LOCK);
    ASK(MOVED, 0, "GET", LOCK);
    ASK("+OK\r\n", 0, "ASKING");
    ASK("$1\r\na\r\n", 0, "GET", LOCK);
    ASK(MOVED, 0, "GET", LOCK);
    ASK("+OK\r\n", 0, "ASKING");
    ASK(HALFWAY, 0, "EVAL", "return 1", "2", LOCK, QUEUE);
    ASK("+OK\r\n", 0, "ASKING");
    ASK("$1\r\na\r\n", 0, "EVAL", "return redis.call('get', '" LOCK "')", "0");
    ASK("+OK\r\n", 0, "ASKING");
    ASK("+OK\r\n", 0, "SET", "{lock:one}:new", "c");
}

CASE(a_script_reaches_no_key_that_is_elsewhere) {
    static const char elsewhere[] = "ERR Script attempted to access a non local key in a cluster node";
    begin_move();
    carry(1, 0, LOCK);
    assert_non_null(
        strstr(ask(1, 3, (const char *[]){"EVAL", "return redis.pcall('get', '" LOCK "')", "0"}), elsewhere));
    assert_non_null(strstr(
        ask(1, 4,
            (const char *[]){"EVAL", "redis.call('del', KEYS[1]) return redis.pcall('set', KEYS[1], 'x')", "1", QUEUE}),
        elsewhere));
}

CASE(a_key_that_is_carried_keeps_its_ttl_by_another_clock) {
    begin_move();
    sim_server_set_time(members[0], now + 5000000);
    sim_server_set_time(members[1], now + 400000);
    carry(1, 0, LOCK);
    carry(1, 0, QUEUE);
    assert_int_equal(sim_server_expiry(members[0], LOCK, strlen(LOCK)), now + 5600000);
    assert_int_equal(sim_server_expiry(members[0], QUEUE, strlen(QUEUE)), -1);
}

CASE(who_gets_a_slot_has_the_greatest_epoch) {
    begin_move();
    carry(1, 0, LOCK);
    carry(1, 0, QUEUE);
    sim_slots_give(members[0], SLOT, 0);
    assert_int_equal(sim_slots_epoch(members[0]), 3);
    ASK("$1\r\na\r\n", 0, "GET", LOCK);
    ASK(ASKED, 1, "GET", LOCK);
    ASK(MOVED, 3, "GET", LOCK);
    sim_slots_hear(members[1], members[0]);
    sim_slots_hear(members[3], members[0]);
    sim_slots_hear(members[3], members[1]);
    ASK("-MOVED 9753 127.0.0.1:7000\r\n", 1, "GET", LOCK);
    ASK("-MOVED 9753 127.0.0.1:7000\r\n", 3, "GET", LOCK);
}

CASE(a_replica_takes_over_what_its_master_has_and_not_its_moves) {
    begin_move();
    sim_slots_take_over(members[3], members[1]);
    ASK("$1\r\na\r\n", 3, "GET", LOCK);
    ASK("$-1\r\n", 3, "GET", "{lock:one}:other");
    ASK("-MOVED 9753 127.0.0.1:7003\r\n", 1, "GET", LOCK);
    ASK(MOVED, 2, "GET", LOCK);
    sim_slots_hear(members[2], members[3]);
    ASK("-MOVED 9753 127.0.0.1:7003\r\n", 2, "GET", LOCK);
}

CASE(the_table_is_as_the_server_knows_it) {
    static const char line[] = "1111111111111111111111111111111111111111 127.0.0.1:7001@17001 myself,master - 0 0 2 "
                               "connected 8192-16383 [9753->-0000000000000000000000000000000000000000]\n";
    static const char replica[] = "3333333333333333333333333333333333333333 127.0.0.1:7003@17003 slave "
                                  "1111111111111111111111111111111111111111 0 0 2 connected\n";
    begin_move();
    assert_non_null(strstr(ask(1, 2, (const char *[]){"CLUSTER", "NODES"}), line));
    assert_non_null(strstr(ask(1, 2, (const char *[]){"CLUSTER", "NODES"}), replica));
    assert_non_null(strstr(ask(3, 2, (const char *[]){"INFO", "replication"}), "role:slave"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_key_has_the_slot_that_the_specification_says),
        TEST(a_master_sends_on_what_is_not_its),
        TEST(of_a_slot_on_its_way_the_old_master_has_what_is_left),
        TEST(of_a_slot_on_its_way_the_new_master_has_what_has_come_for_those_that_ask),
        TEST(a_script_reaches_no_key_that_is_elsewhere),
        TEST(a_key_that_is_carried_keeps_its_ttl_by_another_clock),
        TEST(who_gets_a_slot_has_the_greatest_epoch),
        TEST(a_replica_takes_over_what_its_master_has_and_not_its_moves),
        TEST(the_table_is_as_the_server_knows_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
