/*
 * The simulated server by itself: what a real one has no match for (its clock, its faults, looks into it), and what
 * does not wait for a real clock. No server runs, and nothing waits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "scripts.h"
#include "server.h"
#include "world/resp.h"

#define MS INT64_C(1000)
#define SECOND (1000 * MS)

static sim_server *server;
static int64_t now = INT64_C(1700000000) * SECOND;

/* A client: what it was answered, and whether it is still connected. */
struct client {
    sim_session *session;
    struct output answers;
};

static struct client one, two;

static void on_output(void *arg, const char *bytes, size_t len) {
    struct client *client = arg;
    reply_raw(&client->answers, bytes, len);
}

static void on_ended(void *arg) {
    struct client *client = arg;
    client->session = NULL;
}

static void client_connect(struct client *client) {
    client->session = sim_server_connect(server, on_output, on_ended, client);
}

static int setup(void **state) {
    (void)state;
    server = sim_server_new(7);
    sim_server_set_time(server, now);
    client_connect(&one);
    client_connect(&two);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    sim_server_free(server);
    reply_free(&one.answers);
    reply_free(&two.answers);
    one = two = (struct client){0};
    return 0;
}

static void say(struct client *client, int argc, const char *const *argv) {
    struct output command = {0};
    reply_array(&command, (size_t)argc);
    for (int i = 0; i < argc; i++)
        reply_bulk(&command, argv[i], strlen(argv[i]));
    sim_session_feed(client->session, command.bytes, command.len);
    reply_free(&command);
}

/* What was answered since this was looked at last. */
static void assert_answered(struct client *client, const char *answer) {
    reply_raw(&client->answers, "", 1);
    assert_string_equal(client->answers.bytes, answer);
    client->answers.len = 0;
}

#define SAY(client, ...)                                                                                               \
    say(client, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)), (const char *[]){__VA_ARGS__})
#define ASK(answer, ...) (SAY(&one, __VA_ARGS__), assert_answered(&one, answer))

/* Copies a field's value of what INFO has answered. */
static void info_field(const char *section, const char *field, char value[64]) {
    SAY(&one, "INFO", section);
    reply_raw(&one.answers, "", 1);
    const char *found = strstr(one.answers.bytes, field);
    assert_non_null(found);
    snprintf(value, 64, "%.*s", (int)strcspn(found, "\r"), found);
    one.answers.len = 0;
}

/* --- The clock ---------------------------------------------------------------------------------------------------- */

CASE(a_key_is_there_to_the_end_of_its_last_millisecond) {
    size_t len;
    ASK("+OK\r\n", "SET", "k", "v", "PX", "10");
    assert_int_equal(sim_server_expiry(server, "k", 1), now + 10 * MS);
    sim_server_set_time(server, now + 11 * MS - 1);
    ASK(":0\r\n", "PTTL", "k");
    assert_non_null(sim_server_get(server, "k", 1, &len));
    sim_server_set_time(server, now + 11 * MS);
    assert_null(sim_server_get(server, "k", 1, &len));
    assert_int_equal(sim_server_expiry(server, "k", 1), -2);
    ASK(":-2\r\n", "PTTL", "k");
    ASK("+OK\r\n", "SET", "k", "w", "NX");
    ASK(":-1\r\n", "PTTL", "k");
    assert_int_equal(sim_server_expiry(server, "k", 1), -1);
}

CASE(every_type_and_command_knows_of_expiry) {
    static const char *const gone[][3] = {
        {"EXISTS", "k"}, {"ZCARD", "k"}, {"DEL", "k"}, {"ZREM", "k", "v"}, {"PEXPIRE", "k", "5"}};
    for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++) {
        int argc = 0;
        while (argc < 3 && gone[i][argc])
            argc++;
        SAY(&one, "SET", "k", "v", "PX", "1");
        sim_server_set_time(server, now += 2 * MS);
        one.answers.len = 0;
        say(&one, argc, gone[i]);
        assert_answered(&one, ":0\r\n");
    }
    ASK(":1\r\n", "ZADD", "k", "1", "v");
    ASK(":1\r\n", "PEXPIRE", "k", "5");
    sim_server_set_time(server, now += 6 * MS);
    ASK(":1\r\n", "ZADD", "k", "1", "v");
    ASK(":-1\r\n", "PTTL", "k");
}

CASE(time_is_that_of_the_clock) {
    static const char time[] = "*2\r\n$10\r\n1800000000\r\n$5\r\n12345\r\n";
    sim_server_set_time(server, INT64_C(1800000000) * SECOND + 12345);
    ASK(time, "TIME");
    ASK(time, "EVAL", "return redis.call('TIME')", "0");
}

/* --- Bytes -------------------------------------------------------------------------------------------------------- */

CASE(a_command_may_come_byte_by_byte) {
    static const char bytes[] = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\na\r\nb\r\n";
    for (size_t i = 0; i < strlen(bytes); i++) {
        assert_int_equal(one.answers.len, 0);
        sim_session_feed(one.session, &bytes[i], 1);
    }
    assert_answered(&one, "+OK\r\n");
    ASK("$4\r\na\r\nb\r\n", "GET", "k");
}

CASE(commands_may_come_together) {
    static const char bytes[] = "*1\r\n$4\r\nPING\r\n*2\r\n$4\r\nPING\r\n$2\r\nhi\r\n*1\r\n$4\r\nPI";
    sim_session_feed(one.session, bytes, strlen(bytes));
    assert_answered(&one, "+PONG\r\n$2\r\nhi\r\n");
    sim_session_feed(one.session, "NG\r\n", 4);
    assert_answered(&one, "+PONG\r\n");
}

CASE(nothing_is_run_behind_an_end) {
    char bytes[160], id[24];
    size_t len;
    snprintf(id, sizeof(id), "%lld", (long long)sim_session_id(one.session));
    snprintf(bytes, sizeof(bytes),
             "*6\r\n$6\r\nCLIENT\r\n$4\r\nKILL\r\n$2\r\nID\r\n$%zu\r\n%s\r\n$6\r\nSKIPME\r\n$2\r\nno\r\n"
             "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n",
             strlen(id), id);
    sim_session_feed(one.session, bytes, strlen(bytes));
    assert_null(one.session);
    assert_answered(&one, ":1\r\n");
    assert_null(sim_server_get(server, "k", 1, &len));
}

/* --- Sessions ----------------------------------------------------------------------------------------------------- */

CASE(ids_are_never_used_again) {
    char id[32];
    int64_t first = sim_session_id(two.session);
    assert_ptr_equal(sim_session_arg(two.session), &two);
    sim_session_close(two.session);
    client_connect(&two);
    assert_true(sim_session_id(two.session) > first);
    snprintf(id, sizeof(id), "%lld", (long long)first);
    ASK(":0\r\n", "CLIENT", "KILL", "ID", id);
    snprintf(id, sizeof(id), "%lld", (long long)sim_session_id(two.session));
    ASK(":1\r\n", "CLIENT", "KILL", "ID", id);
    assert_null(two.session);
    assert_non_null(one.session);
}

CASE(a_closed_session_listens_no_more) {
    SAY(&two, "SUBSCRIBE", "c");
    two.answers.len = 0;
    ASK(":1\r\n", "PUBLISH", "c", "hi");
    assert_answered(&two, "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n");
    sim_session_close(two.session);
    two.session = NULL;
    ASK(":0\r\n", "PUBLISH", "c", "hi");
    ASK("*2\r\n$1\r\nc\r\n:0\r\n", "PUBSUB", "NUMSUB", "c");
}

CASE(a_password_is_for_new_sessions) {
    sim_server_set_password(server, "secret");
    ASK("+PONG\r\n", "PING");
    client_connect(&two);
    SAY(&two, "PING");
    SAY(&two, "AUTH", "secret");
    SAY(&two, "PING");
    assert_answered(&two, "-NOAUTH Authentication required.\r\n+OK\r\n+PONG\r\n");
}

CASE(wait_tells_of_the_replicas) {
    SAY(&one, "WAIT", "1", "100");
    sim_session_resume(one.session);
    assert_answered(&one, "");
    sim_server_set_time(server, now += 100 * MS);
    sim_session_resume(one.session);
    assert_answered(&one, ":0\r\n");
    sim_server_set_replicas(server, 2);
    ASK(":2\r\n", "WAIT", "1", "100");
}

/* --- Lives -------------------------------------------------------------------------------------------------------- */

CASE(a_restart_is_another_process) {
    char run_id[64], replid[64], found[64];
    info_field("server", "run_id:", run_id);
    info_field("replication", "master_replid:", replid);
    ASK("+OK\r\n", "SET", "k", "v");
    ASK("$40\r\ne0e1f9fabfc9d4800c877a703b823ac0578ff8db\r\n", "SCRIPT", "LOAD", "return 1");
    SAY(&two, "SUBSCRIBE", "c");
    sim_server_restart(server, true, true);
    assert_null(one.session);
    assert_null(two.session);
    client_connect(&one);
    ASK("$1\r\nv\r\n", "GET", "k");
    ASK("-NOSCRIPT No matching script. Please use EVAL.\r\n", "EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db",
        "0");
    ASK("*2\r\n$1\r\nc\r\n:0\r\n", "PUBSUB", "NUMSUB", "c");
    info_field("server", "run_id:", found);
    assert_string_not_equal(found, run_id);
    info_field("replication", "master_replid:", found);
    assert_string_equal(found, replid);
    sim_server_set_time(server, now += 3 * SECOND + 5);
    info_field("server", "uptime_in_seconds:", found);
    assert_string_equal(found, "uptime_in_seconds:3");
    sim_server_restart(server, false, false);
    client_connect(&one);
    ASK("$-1\r\n", "GET", "k");
    info_field("replication", "master_replid:", found);
    assert_string_not_equal(found, replid);
}

CASE(a_failover_takes_over_what_the_copy_had) {
    char run_id[64], replid[64], found[64];
    sim_server_restart(server, false, false);
    client_connect(&one);
    ASK("+OK\r\n", "SET", "k", "old", "PX", "5000");
    ASK("+OK\r\n", "SET", "soon", "old", "PX", "1000");
    ASK(":1\r\n", "ZADD", "z", "1.5", "m");
    ASK(":2\r\n", "ZADD", "gone", "1", "a", "2", "b");
    ASK("+OK\r\n", "SELECT", "3");
    ASK("+OK\r\n", "SET", "three", "v");
    info_field("server", "run_id:", run_id);
    info_field("replication", "master_replid:", replid);
    sim_server *copy = sim_server_copy(server);
    ASK("+OK\r\n", "SELECT", "0");
    ASK("+OK\r\n", "SET", "k", "new");
    ASK(":1\r\n", "DEL", "gone");
    sim_server_set_time(server, now += 2 * SECOND);
    sim_server_become(server, copy, false);
    assert_null(one.session);
    client_connect(&one);
    ASK("$3\r\nold\r\n", "GET", "k");
    ASK(":3000\r\n", "PTTL", "k");
    ASK("$-1\r\n", "GET", "soon");
    ASK("*2\r\n$1\r\nm\r\n$3\r\n1.5\r\n", "ZPOPMIN", "z");
    ASK(":2\r\n", "ZCARD", "gone");
    info_field("server", "run_id:", found);
    assert_string_not_equal(found, run_id);
    info_field("replication", "master_replid:", found);
    assert_string_not_equal(found, replid);
    info_field("server", "uptime_in_seconds:", found);
    assert_string_equal(found, "uptime_in_seconds:2");
    ASK("+OK\r\n", "SELECT", "3");
    ASK("$1\r\nv\r\n", "GET", "three");
}

CASE(seeds_differ_in_ids_alone) {
    char first[64], again[64];
    info_field("server", "run_id:", first);
    teardown(NULL);
    setup(NULL);
    info_field("server", "run_id:", again);
    assert_string_equal(first, again);
    sim_server *other = sim_server_new(8);
    sim_server_free(server);
    server = other;
    client_connect(&one);
    info_field("server", "run_id:", again);
    assert_string_not_equal(first, again);
}

/* --- Refusals ----------------------------------------------------------------------------------------------------- */

CASE(so_many_commands_of_a_name_are_refused) {
    sim_server_refuse(server, "GET", "LOADING soon", 2);
    ASK("+OK\r\n", "SET", "k", "v");
    ASK("-LOADING soon\r\n", "get", "k");
    ASK("-LOADING soon\r\n", "GET", "k");
    ASK("$1\r\nv\r\n", "GET", "k");
    sim_server_refuse(server, "set", "OOM", 1);
    ASK("-OOM\r\n", "SET", "k", "w");
    ASK("$1\r\nv\r\n", "GET", "k");
    sim_server_refuse(server, "zrank", "OOM", 1);
    ASK(":0\r\n", "ZREM", "z", "m");
    ASK("-OOM\r\n", "ZRANK", "z", "m");
}

CASE(refusals_name_kinds_and_members) {
    sim_server_refuse(server, "client|id", "NOPERM id", 1);
    ASK(":0\r\n", "CLIENT", "KILL", "ID", "1000000");
    ASK("", "CLIENT", "REPLY", "OFF");
    ASK("", "PING");
    ASK("+OK\r\n", "CLIENT", "REPLY", "ON");
    ASK("-NOPERM id\r\n", "CLIENT", "ID");
    sim_server_refuse(server, "script", "NOPERM script", 9);
    ASK("-NOPERM script\r\n", "SCRIPT", "LOAD", "return 1");
    sim_server_allow(server);
    ASK("$40\r\ne0e1f9fabfc9d4800c877a703b823ac0578ff8db\r\n", "SCRIPT", "LOAD", "return 1");
}

CASE(refusals_of_all_spare_logins) {
    sim_server_refuse(server, "", "MASTERDOWN", 2);
    ASK("+OK\r\n", "SELECT", "0");
    ASK(":0\r\n", "CLIENT", "KILL", "ID", "1000000");
    ASK("$40\r\ne0e1f9fabfc9d4800c877a703b823ac0578ff8db\r\n", "SCRIPT", "LOAD", "return 1");
    ASK("-MASTERDOWN\r\n", "PING");
    ASK("-MASTERDOWN\r\n", "EVAL", "return 1", "0");
    ASK(":1\r\n", "EVAL", "return 1", "0");
}

CASE(the_oldest_refusal_is_used_first) {
    sim_server_refuse(server, "", "FIRST", 1);
    sim_server_refuse(server, "get", "SECOND", 1);
    ASK("-FIRST\r\n", "GET", "k");
    ASK("-SECOND\r\n", "GET", "k");
    ASK("$-1\r\n", "GET", "k");
}

CASE(scripts_meet_refusals_by_name) {
    ASK("+OK\r\n", "SET", "k", "v");
    sim_server_refuse(server, "get", "NOPERM get", 1);
    ASK("*2\r\n-NOPERM get\r\n$1\r\nv\r\n", "EVAL", "return {redis.pcall('get', 'k'), redis.pcall('get', 'k')}", "0");
    sim_server_refuse(server, "", "BUSY", 2);
    ASK("-BUSY\r\n", "EVAL", "return redis.call('get', 'k')", "0");
    sim_server_allow(server);
    ASK("$1\r\nv\r\n", "EVAL", "return redis.call('get', 'k')", "0");
}

/* --- Looks -------------------------------------------------------------------------------------------------------- */

static char seen[512];

static void on_watch(void *arg, sim_session *session, int argc, const char *const *argv, const size_t *lens) {
    size_t at = strlen(seen);
    (void)arg;
    at += (size_t)snprintf(seen + at, sizeof(seen) - at, "%s:", sim_session_arg(session) == &one ? "one" : "two");
    for (int i = 0; i < argc; i++) {
        assert_int_equal(strlen(argv[i]), lens[i]);
        at += (size_t)snprintf(seen + at, sizeof(seen) - at, " %s", argv[i]);
    }
    snprintf(seen + at, sizeof(seen) - at, "\n");
}

CASE(the_watch_sees_commands_and_writes_of_scripts) {
    static const char script[] = "redis.call('GET', KEYS[1]) redis.call('set', KEYS[1], 5) redis.pcall('set') "
                                 "return redis.call('DEL', KEYS[1])";
    seen[0] = '\0';
    sim_server_watch(server, on_watch, NULL, NULL);
    SAY(&one, "GET", "k");
    SAY(&two, "EVAL", script, "1", "key");
    SAY(&one, "NOTHING");
    SAY(&one, "GET");
    sim_server_refuse(server, "get", "NOPERM", 1);
    SAY(&one, "GET", "k");
    assert_memory_equal(seen, "one: GET k\ntwo: EVAL redis", 26);
    assert_string_equal(strstr(seen, " 1 key\n"), " 1 key\ntwo: set key 5\ntwo: DEL key\n");
    seen[0] = '\0';
    sim_server_watch(server, NULL, NULL, NULL);
    SAY(&one, "GET", "k");
    assert_string_equal(seen, "");
}

CASE(looks_see_who_is_in_a_sorted_set) {
    size_t len;
    ASK(":2\r\n", "ZADD", "z", "2", "second", "1", "first");
    ASK("+OK\r\n", "SET", "k", "v");
    assert_string_equal(sim_server_member(server, "z", 1, 0, &len), "first");
    assert_int_equal(len, 5);
    assert_string_equal(sim_server_member(server, "z", 1, 1, &len), "second");
    assert_null(sim_server_member(server, "z", 1, 2, &len));
    assert_null(sim_server_member(server, "k", 1, 0, &len));
    assert_null(sim_server_member(server, "none", 4, 0, &len));
}

CASE(looks_see_who_listens) {
    assert_int_equal(sim_server_listeners(server, "ch", 2), 0);
    assert_false(sim_session_listens(two.session));
    SAY(&two, "SUBSCRIBE", "ch");
    SAY(&one, "SUBSCRIBE", "other");
    assert_int_equal(sim_server_listeners(server, "ch", 2), 1);
    assert_int_equal(sim_server_listeners(server, "c", 1), 0);
    assert_true(sim_session_listens(two.session));
}

static void on_key(void *arg, const char *key, size_t len) {
    unsigned *found = arg;
    assert_int_equal(len, strlen(key));
    *found += 1U << (unsigned)(key[0] - 'a');
}

CASE(looks_see_what_is_not_expired) {
    unsigned found = 0;
    size_t len;
    SAY(&one, "SET", "a", "1");
    SAY(&one, "SET", "b", "2", "PX", "10");
    SAY(&one, "ZADD", "c", "3", "m");
    SAY(&one, "SET", "d", "", "PX", "20");
    SAY(&one, "SELECT", "1");
    SAY(&one, "SET", "e", "5");
    sim_server_set_time(server, now += 15 * MS);
    sim_server_each_key(server, on_key, &found);
    assert_int_equal(found, 1 | 4 | 8);
    assert_null(sim_server_get(server, "c", 1, &len));
    assert_string_equal(sim_server_get(server, "d", 1, &len), "");
    assert_int_equal(len, 0);
    assert_null(sim_server_get(server, "e", 1, &len));
}

/* --- The store ---------------------------------------------------------------------------------------------------- */

CASE(many_keys_are_kept_apart) {
    char key[16], value[32];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 2000; i++) {
            snprintf(key, sizeof(key), "key %d", i);
            snprintf(value, sizeof(value), "%d", i + round);
            ASK("+OK\r\n", "SET", key, value);
        }
    }
    for (int i = 0; i < 2000; i += 2) {
        snprintf(key, sizeof(key), "key %d", i);
        ASK(":1\r\n", "DEL", key);
    }
    for (int i = 0; i < 2000; i++) {
        size_t len;
        snprintf(key, sizeof(key), "key %d", i);
        const char *found = sim_server_get(server, key, strlen(key), &len);
        assert_true((found != NULL) == (i % 2 == 1));
        assert_true(!found || atoi(found) == i + 1);
    }
}

/* --- evlock's scripts, by clocks that no real server shows -------------------------------------------------------- */

#define YEAR (366 * 24 * 3600 * SECOND)

/* Where numbers have gaps in Lua. */
#define MOST (INT64_C(1) << 53)

static const char too_late[] = "-FENCE the clock is beyond reason\r\n";

/* What a counter is raised to, and the answer to that where it is done. */
static const char *raised_to(int64_t fence, char answer[32]) {
    snprintf(answer, 32, ":%lld\r\n", (long long)fence);
    return answer;
}

static void raise_to(int64_t fence, const char *answer) {
    char number[32];
    snprintf(number, sizeof(number), "%lld", (long long)fence);
    ASK(answer, "EVAL", evl_scripts[SCRIPT_RAISE].text, "1", "counter", number, "1000");
}

static void draw_fenced(const char *lock, const char *answer) {
    ASK(answer, "EVAL", evl_scripts[SCRIPT_FENCED].text, "2", lock, "drawn", "token", "1000", "1000", "1");
}

/* What another node has drawn, whose clock is years ahead. */
CASE(no_counter_is_raised_a_year_ahead_of_the_clock) {
    char answer[32];
    raise_to(now + YEAR + 1, "-FENCE more than a year ahead of the clock\r\n");
    ASK("$-1\r\n", "GET", "counter");
    raise_to(now + YEAR, raised_to(now + YEAR, answer));
    raise_to(now, raised_to(now + YEAR, answer));
}

CASE(no_fence_is_drawn_by_a_clock_beyond_reason) {
    char answer[32];
    sim_server_set_time(server, MOST - 1 - YEAR);
    draw_fenced("a", raised_to(MOST - 1 - YEAR, answer));
    raise_to(MOST - 1, raised_to(MOST - 1, answer));
    sim_server_set_time(server, MOST - YEAR);
    draw_fenced("b", too_late);
    ASK("$-1\r\n", "GET", "b");
    ASK("+OK\r\n", "SET", "counter", "1");
    raise_to(2, too_late);
    ASK("$1\r\n1\r\n", "GET", "counter");
}

/* TIME says the microseconds of a second without leading zeroes. */
CASE(a_fence_is_the_clock_in_each_part_of_a_second) {
    static const int64_t parts[] = {0, 1, 9, 10, 99, 100, 999, 1000, 9999, 10000, 99999, 100000, 999999};
    const int64_t second = INT64_C(1800000000) * SECOND;
    char lock[] = "a", answer[32];
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++, lock[0]++) {
        sim_server_set_time(server, second + parts[i]);
        draw_fenced(lock, raised_to(second + parts[i], answer));
    }
}

/* The nodes of a quorum have clocks that differ by less than the grain. */
CASE(a_fence_beside_a_counter_is_rounded_to_the_grain) {
    const int64_t second = INT64_C(1800000000) * SECOND;
    char answer[32];
    sim_server_set_time(server, second + 123456);
    ASK("+OK\r\n", "SET", "drawn", "1");
    ASK(raised_to(second + 123000, answer), "EVAL", evl_scripts[SCRIPT_FENCED].text, "2", "lock", "drawn", "token",
        "1000", "1000", "1000");
}

static void refuse_what_follows(void *arg, sim_session *session, int argc, const char *const *argv,
                                const size_t *lens) {
    (void)arg, (void)session, (void)lens;
    if (argc > 1 && strcmp(argv[1], "lock") == 0)
        sim_server_refuse(server, "set", "OOM", 1);
}

CASE(a_lock_whose_fence_cannot_be_kept_is_free) {
    sim_server_watch(server, refuse_what_follows, NULL, NULL);
    draw_fenced("lock", "-OOM\r\n");
    sim_server_watch(server, NULL, NULL, NULL);
    ASK("$-1\r\n", "GET", "lock");
}

CASE(a_lock_whose_grant_cannot_be_told_is_free) {
    SAY(&two, "SUBSCRIBE", "channel");
    ASK(":1\r\n", "ZADD", "queue", "1", "channel first 1000 0 token");
    sim_server_refuse(server, "publish", "NOPERM", 1);
    ASK("-NOPERM\r\n", "EVAL", evl_scripts[SCRIPT_JOIN].text, "3", "lock", "queue", "counter",
        "other second 1000 0 another", "another");
    ASK("$-1\r\n", "GET", "lock");
}

static void break_marked(const char *mark, const char *answer) {
    ASK(answer, "EVAL", evl_scripts[SCRIPT_BREAK].text, "1", "lock", mark);
}

/* The mark is what a look tells of a value; the value may be another when it is broken. */
CASE(long_values_that_begin_alike_have_marks_of_their_own) {
    char value[201], mark[256];
    memset(value, 'v', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    ASK("+OK\r\n", "SET", "lock", value);
    SAY(&one, "EVAL", evl_scripts[SCRIPT_LOOK].text, "1", "lock");
    reply_raw(&one.answers, "", 1);
    assert_int_equal(sscanf(one.answers.bytes, "$%*d %255s", mark), 1);
    one.answers.len = 0;
    value[sizeof(value) - 2] = 'w';
    ASK("+OK\r\n", "SET", "lock", value);
    break_marked(mark, ":0\r\n");
    value[sizeof(value) - 2] = 'v';
    ASK("+OK\r\n", "SET", "lock", value);
    break_marked(mark, ":1\r\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_key_is_there_to_the_end_of_its_last_millisecond),
        TEST(every_type_and_command_knows_of_expiry),
        TEST(time_is_that_of_the_clock),
        TEST(a_command_may_come_byte_by_byte),
        TEST(commands_may_come_together),
        TEST(nothing_is_run_behind_an_end),
        TEST(ids_are_never_used_again),
        TEST(a_closed_session_listens_no_more),
        TEST(a_password_is_for_new_sessions),
        TEST(wait_tells_of_the_replicas),
        TEST(a_restart_is_another_process),
        TEST(a_failover_takes_over_what_the_copy_had),
        TEST(seeds_differ_in_ids_alone),
        TEST(so_many_commands_of_a_name_are_refused),
        TEST(refusals_name_kinds_and_members),
        TEST(refusals_of_all_spare_logins),
        TEST(the_oldest_refusal_is_used_first),
        TEST(scripts_meet_refusals_by_name),
        TEST(the_watch_sees_commands_and_writes_of_scripts),
        TEST(looks_see_who_is_in_a_sorted_set),
        TEST(looks_see_who_listens),
        TEST(looks_see_what_is_not_expired),
        TEST(many_keys_are_kept_apart),
        TEST(no_counter_is_raised_a_year_ahead_of_the_clock),
        TEST(no_fence_is_drawn_by_a_clock_beyond_reason),
        TEST(a_fence_is_the_clock_in_each_part_of_a_second),
        TEST(a_fence_beside_a_counter_is_rounded_to_the_grain),
        TEST(a_lock_whose_fence_cannot_be_kept_is_free),
        TEST(a_lock_whose_grant_cannot_be_told_is_free),
        TEST(long_values_that_begin_alike_have_marks_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
