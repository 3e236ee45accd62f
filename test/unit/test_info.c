/* The unit tests of what a server says of itself: as servers of several makes word it, and as none should. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <evlock/evlock.h>

#include "info.h"

#define FORTY "0123456789abcdef0123456789abcdef01234567"
#define NONE "0000000000000000000000000000000000000000"

/* --- INFO server -------------------------------------------------------------------------------------------------- */

static struct info_server server_of(const char *text) {
    struct info_server info;

    memset(&info, 0xa5, sizeof(info));
    evl_info_server(text, &info);
    return info;
}

CASE(a_server_says_who_it_is) {
    struct info_server info = server_of("# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n"
                                        "run_id:" FORTY "\r\nuptime_in_seconds:42\r\nuptime_in_days:0\r\n");

    assert_string_equal(info.run_id, FORTY);
    assert_int_equal(info.uptime, 42);
    assert_true(info.renews_many);
    assert_false(info.clusters);
    assert_int_equal(info.refusal.status, EVLOCK_OK);
}

CASE(what_a_server_does_not_say_is_not_there) {
    struct info_server info = server_of("");

    assert_string_equal(info.run_id, "");
    assert_int_equal(info.uptime, -1);
    assert_false(info.renews_many);
    assert_false(info.clusters);
    assert_int_equal(info.refusal.status, EVLOCK_OK);
    info = server_of("# Server\r\nrun_id:" FORTY "0\r\n"); /* longer than any */
    assert_string_equal(info.run_id, "");
    info = server_of("redis_version:7.0.15\r\nno_run_id:" FORTY "\r\n"); /* a field begins its line */
    assert_string_equal(info.run_id, "");
    assert_false(info.renews_many);
}

CASE(an_uptime_that_is_nonsense_is_that_of_a_new_server) {
    assert_int_equal(server_of("\nuptime_in_seconds:0").uptime, 0);
    assert_int_equal(server_of("\nuptime_in_seconds:soon\r\n").uptime, 0);
    assert_int_equal(server_of("\nuptime_in_seconds:-1\r\n").uptime, 0);
    assert_int_equal(server_of("\nuptime_in_seconds:3162240000\r\n").uptime, 3162240000); /* a hundred years */
    assert_int_equal(server_of("\nuptime_in_seconds:3162240001\r\n").uptime, 0);
    assert_int_equal(server_of("\nuptime_in_seconds:99999999999999999999999\r\n").uptime, 0);
    assert_int_equal(server_of("\nuptime_in_seconds:999999999999999999999999\r\n").uptime,
                     -1); /* no number is so long */
    assert_int_equal(server_of("\nuptime_in_seconds:\r\n").uptime, -1);
}

CASE(batches_need_version_7) {
    assert_false(server_of("\nredis_version:6.2.14\r\n").renews_many);
    assert_true(server_of("\nredis_version:7.0.0\r\n").renews_many);
    assert_true(server_of("\nredis_version:10.1\r\n").renews_many);
    assert_false(server_of("\nredis_version:unknown\r\n").renews_many);
}

CASE(versions_are_a_number_each) {
    struct info_server info = server_of("\nserver_name:valkey\r\nvalkey_version:8.1.1\r\nredis_version:7.2.4\r\n");

    assert_int_equal(info.valkey, 801);
    assert_int_equal(info.redis, 702);
    assert_int_equal(server_of("\nredis_version:8.4\r\n").redis, 804);
    assert_int_equal(server_of("\nredis_version:9\r\n").redis, 900);
    assert_int_equal(server_of("\nredis_version:8.100.1\r\n").redis, 899); /* and no greater one */
    assert_int_equal(server_of("\nredis_version:255.255.255\r\n").redis, 25599);
    assert_int_equal(server_of("\nredis_version:-1.2\r\n").redis, 0);
    assert_int_equal(server_of("\nredis_version:99999999999999999999.1\r\n").redis, 0);
    assert_int_equal(server_of("\nredis_version:unstable\r\n").redis, 0);
    assert_int_equal(server_of("").valkey, 0);
}

static void assert_product(const char *text, const char *product, const char *version) {
    struct info_server info = server_of(text);

    assert_string_equal(info.product.name, product);
    assert_string_equal(info.product.version, version);
}

CASE(a_product_is_known_by_a_name_of_its_own) {
    assert_product("# Server\r\nredis_version:7.0.15\r\n", "Redis", "7.0.15");
    assert_product("\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.1\r\n", "Valkey", "8.1.1");
    assert_product("\nredis_version:7.4.0\r\ndragonfly_version:df-v1.40.1\r\n", "Dragonfly", "df-v1.40.1");
    assert_product("\nversion:2.0.5\r\nkvrocks_version:2.0.5\r\nredis_version:6.2.6\r\n", "Kvrocks", "2.0.5");
    assert_product("\nredis_version:7.2.4\r\nredict_version:7.3.0\r\n", "Redict", "7.3.0");
    assert_product("", "", "");
}

CASE(a_version_without_room_is_not_said) {
    assert_product("\nredis_version:7.2.4\r\nvalkey_version:8.1.1-" FORTY "\r\n", "Valkey", "");
    assert_product("\nredis_version:\r\n", "Redis", "");
}

CASE(a_cluster_is_known_by_either_name) {
    assert_true(server_of("\nredis_mode:cluster\r\n").clusters);
    assert_true(server_of("\nserver_mode:cluster\r\n").clusters);
    assert_false(server_of("\nserver_mode:standalone\r\n").clusters);
}

static void assert_refused(struct trouble refusal, int status, const char *words) {
    assert_int_equal(refusal.status, status);
    assert_non_null(strstr(refusal.words, words));
}

CASE(servers_without_locks_are_refused) {
    assert_refused(server_of("\nredis_mode:sentinel\r\n").refusal, EVLOCK_EUNSUPPORTED, "Sentinel");
    assert_refused(server_of("\nserver_mode:sentinel\r\n").refusal, EVLOCK_EUNSUPPORTED, "Sentinel");
    assert_refused(server_of("\nredis_version:7.4.3\r\ngarnet_version:1.0.84\r\n").refusal, EVLOCK_EUNSUPPORTED,
                   "Garnet");
}

/* --- INFO replication --------------------------------------------------------------------------------------------- */

static struct info_data data_of(const char *text) {
    struct info_data info;

    memset(&info, 0xa5, sizeof(info));
    evl_info_data(text, &info);
    return info;
}

CASE(data_that_began_here_are_not_inherited) {
    struct info_data info = data_of("# Replication\r\nrole:master\r\nconnected_slaves:0\r\n"
                                    "master_replid:" FORTY "\r\nmaster_replid2:" NONE "\r\n");

    assert_string_equal(info.replid, FORTY);
    assert_false(info.inherited);
    assert_int_equal(info.refusal.status, EVLOCK_OK);
}

CASE(data_of_a_second_history_are_inherited) {
    assert_true(data_of("\nrole:master\r\nmaster_replid:" NONE "\r\nmaster_replid2:" FORTY "\r\n").inherited);
    assert_true(data_of("\nrole:master\r\n").inherited); /* as far as is known */
    assert_true(data_of("\nmaster_replid2:" NONE "\r\n").inherited);
    assert_true(data_of("").inherited);
    assert_string_equal(data_of("").replid, "");
}

CASE(who_others_write_to_is_refused) {
    assert_refused(data_of("\nrole:active-replica\r\n").refusal, EVLOCK_EUNSUPPORTED, "active-replica");
    assert_refused(data_of("\nrole:slave\r\n").refusal, EVLOCK_EREFUSED, "its primary");
    assert_refused(data_of("\nrole:replica\r\n").refusal, EVLOCK_EREFUSED, "its primary");
    assert_int_equal(data_of("\nrole:primary\r\n").refusal.status, EVLOCK_OK);
}

/* --- The others --------------------------------------------------------------------------------------------------- */

CASE(who_keeps_data_says_so) {
    assert_int_equal(evl_info_persistence("# Persistence\r\nloading:0\r\naof_enabled:0\r\n"),
                     EVLOCK_PERSISTENCE_NO_AOF);
    assert_int_equal(evl_info_persistence("\nrdb_saves:1\r\naof_enabled:1\r\n"), EVLOCK_PERSISTENCE_AOF);
    assert_int_equal(evl_info_persistence(""), EVLOCK_PERSISTENCE_UNKNOWN);
    assert_int_equal(evl_info_persistence("\naof_enabled:maybe\r\n"), EVLOCK_PERSISTENCE_UNKNOWN);
    assert_int_equal(evl_info_persistence("\nno_aof_enabled:1\r\n"), EVLOCK_PERSISTENCE_UNKNOWN);
}

CASE(a_limit_and_a_policy_evict_together) {
    char policy[POLICY_SIZE];

    assert_true(evl_info_evicts("\nmaxmemory:1048576\r\nmaxmemory_policy:allkeys-lru\r\n", policy));
    assert_string_equal(policy, "allkeys-lru");
    assert_false(evl_info_evicts("\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n", policy));
    assert_false(evl_info_evicts("\nmaxmemory:1048576\r\nmaxmemory_policy:noeviction\r\n", policy));
    assert_false(evl_info_evicts("\nmaxmemory_policy:allkeys-lru\r\n", policy));
    assert_false(evl_info_evicts("\nmaxmemory:1048576\r\n", policy));
    assert_false(evl_info_evicts("", policy));
}

CASE(the_only_shard_is_whole) {
    char shards[SHARDS_SIZE];

    assert_true(evl_info_is_whole("cluster_state:ok\r\ncluster_known_nodes:3\r\ncluster_size:1\r\n", shards));
    assert_false(evl_info_is_whole("cluster_state:ok\r\ncluster_size:2\r\n", shards));
    assert_string_equal(shards, "2");
    assert_false(evl_info_is_whole("cluster_state:fail\r\ncluster_size:1\r\n", shards)); /* of those that it knows */
    assert_string_equal(shards, "");
    assert_false(evl_info_is_whole("", shards));
    assert_string_equal(shards, "");
}

CASE(a_connection_has_a_number_and_an_age) {
    int64_t id, age;

    evl_info_connection("id=17 addr=127.0.0.1:4711 laddr=127.0.0.1:6379 fd=8 name= age=3 idle=0", &id, &age);
    assert_int_equal(id, 17);
    assert_int_equal(age, 3);
    evl_info_connection("addr=? page=7", &id, &age);
    assert_int_equal(id, -1);
    assert_int_equal(age, -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_says_who_it_is),
        cmocka_unit_test(what_a_server_does_not_say_is_not_there),
        cmocka_unit_test(an_uptime_that_is_nonsense_is_that_of_a_new_server),
        cmocka_unit_test(batches_need_version_7),
        cmocka_unit_test(versions_are_a_number_each),
        cmocka_unit_test(a_product_is_known_by_a_name_of_its_own),
        cmocka_unit_test(a_version_without_room_is_not_said),
        cmocka_unit_test(a_cluster_is_known_by_either_name),
        cmocka_unit_test(servers_without_locks_are_refused),
        cmocka_unit_test(data_that_began_here_are_not_inherited),
        cmocka_unit_test(data_of_a_second_history_are_inherited),
        cmocka_unit_test(who_others_write_to_is_refused),
        cmocka_unit_test(who_keeps_data_says_so),
        cmocka_unit_test(a_limit_and_a_policy_evict_together),
        cmocka_unit_test(the_only_shard_is_whole),
        cmocka_unit_test(a_connection_has_a_number_and_an_age),
    };
    return cmocka_run_group_tests_name("info", tests, NULL, NULL);
}
