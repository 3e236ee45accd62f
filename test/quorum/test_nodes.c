/*
 * The nodes of a client: how many, which, whose credentials, and what is told of each; ttls against the longest ttl;
 * and every bad argument. Each test is named after the behaviour that it shows.
 */
#include "nodes.h"

#include <stdio.h>

/* --- Counts ------------------------------------------------------------------------------------------------------- */

/* With strangers on all but a majority it is acquired, with one more it is not. */
static void majority_is_exact(struct fixture *f, size_t count) {
    evlock_options options = quick_options();
    size_t majority = count / 2 + 1;
    evlock_client *client = quorum_client(f, count, NULL);
    evlock *lock = lock_new_on(f, client, "a", &options);
    assert_int_equal(nodes_of(client), count);
    await(f, nodes_counting(client) == count);
    foreign_hold("a", 0, count - majority);
    assert_status(await_try(f, lock), EVLOCK_OK);
    await(f, nodes_with(lock) == majority);
    assert_status(await_release(f, lock), EVLOCK_OK);
    await(f, nodes_having("a") == count - majority);
    foreign_hold("a", count - majority, count - majority + 1);
    int status = await_try(f, lock);
    if (status != EVLOCK_EQUORUM) /* where a majority did not say so, it is not known to be held */
        assert_status(status, EVLOCK_EHELD);
    await(f, nodes_having("a") == count - majority + 1);
    for (size_t i = 0; i < count; i++)
        server_do(&nodes[i], "DEL a");
    lock_free(f, lock);
    client_free(f, client);
    loop_turn(f->loop);
}

static void one_to_fifteen_nodes(void **state) {
    for (size_t i = NODES; i < EVLOCK_NODES_MAX; i++)
        if (!nodes[i].pid)
            server_start(&nodes[i], false, NULL);
    for (size_t count = 1; count <= EVLOCK_NODES_MAX; count++)
        majority_is_exact(*state, count);
}

static void one_url_makes_the_plain_client(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = excluding_options(f, 1000);
    evlock *lock;
    restart_empty(&nodes[0]);
    evlock_client *client = quorum_client(f, 1, &options); /* neither excluded nor limited in its ttl */
    lock = lock_new_on(f, client, "a", NULL);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_true(key_ttl(&nodes[0], "a") > 1000);
}

/* --- Bad lists of URLs -------------------------------------------------------------------------------------------- */

static int refused(struct fixture *f, const char *const *urls, size_t count) {
    evlock_client *client = NULL;
    int status = evlock_client_new(&client, loop_for_evlock(f->loop), urls_joined(urls, count).text, NULL);
    assert_null(client);
    assert_string_not_equal(evlock_last_error(), "");
    return status;
}

static void one_to_fifteen_urls_are_wanted(void **state) {
    struct fixture *f = *state;
    char urls[EVLOCK_NODES_MAX + 1][64];
    const char *list[EVLOCK_NODES_MAX + 1];
    for (size_t i = 0; i <= EVLOCK_NODES_MAX; i++) {
        snprintf(urls[i], sizeof(urls[i]), "%s://127.0.0.1:%zu", server_scheme(), i + 1);
        list[i] = urls[i];
    }
    assert_status(refused(f, list, 0), EVLOCK_EURL);
    assert_status(refused(f, list, EVLOCK_NODES_MAX + 1), EVLOCK_EURL);
}

static void the_malformed_url_is_told(void **state) {
    struct fixture *f = *state;
    const struct {
        const char *url;
        int status;
    } bad[] = {
        {"redis://127.0.0.1:99999", EVLOCK_EURL},
        {"http://127.0.0.1", EVLOCK_ESCHEME},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        for (size_t place = 0; place < NODES; place++) {
            char number[8];
            const char *urls[NODES];
            for (size_t node = 0; node < NODES; node++)
                urls[node] = node == place ? bad[i].url : nodes[node].url;
            assert_status(refused(f, urls, NODES), bad[i].status);
            snprintf(number, sizeof(number), "%zu", place);
            if (!strstr(evlock_last_error(), number))
                fail_msg("it does not tell that it is URL %zu: \"%s\"", place, evlock_last_error());
        }
}

static void a_password_is_never_told(void **state) {
    struct fixture *f = *state;
    const char *urls[] = {nodes[0].url, "redis://user:secret@127.0.0.1:port", nodes[1].url};
    assert_status(refused(f, urls, 3), EVLOCK_EURL);
    assert_null(strstr(evlock_last_error(), "secret"));
}

/* --- The same server twice ---------------------------------------------------------------------------------------- */

static void the_same_url_twice_is_refused(void **state) {
    struct fixture *f = *state;
    const char *urls[] = {nodes[0].url, nodes[1].url, nodes[0].url};
    assert_status(refused(f, urls, 3), EVLOCK_ESAME);
    assert_non_null(strchr(evlock_last_error(), '0'));
    assert_non_null(strchr(evlock_last_error(), '2'));
}

/* However it is written: with the port that it has anyway, another database or user, and capitals. */
static void urls_of_one_server_are_refused(void **state) {
    struct fixture *f = *state;
    const char *const pairs[][2] = {
        {"redis://host", "redis://host:6379"},    {"redis://host/0", "valkey://HOST/1"},
        {"redis://host:7", "redis://:pw@host:7"}, {"redis://[::1]:1", "redis://[::1]:1/3"},
        {"unix:///a", "unix:///a?db=1"},
    };
    const char *const others[][2] = {{nodes[0].url, nodes[1].url}, {nodes[0].url, "unix:///127.0.0.1"}};
    evlock_client *client;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        assert_status(refused(f, pairs[i], 2), EVLOCK_ESAME);
        assert_string_equal(evlock_last_error(), "the URL of node 1: it names the server of node 0, too");
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_status(evlock_client_new(&client, loop_for_evlock(f->loop), urls_joined(others[i], 2).text, NULL),
                      EVLOCK_OK);
        evlock_client_free(client);
    }
}

/* Of nodes 0 and 2. */
static int kept_away(evlock_client *client) {
    for (int i = 0; i <= 2; i += 2)
        if (node_info(client, (size_t)i).status == EVLOCK_ESAME)
            return i;
    return -1;
}

/* Whichever of the two serves first stays, the other is kept away, and the rest go on. */
static void same_server(struct fixture *f, const char *one, const char *other) {
    const char *urls[] = {one, nodes[1].url, other};
    evlock_client *client = quorum_client_of(f, urls, 3, NULL);
    await(f, kept_away(client) >= 0);
    int away = kept_away(client);
    assert_string_not_equal(evlock_last_error(), "");
    assert_int_equal(node_info(client, (size_t)away).connection, EVLOCK_AWAY);
    await(f, nodes_counting(client) == 2);
    run_for(f, 300);
    assert_true(node_counts(client, 2 - (size_t)away));
    assert_false(node_counts(client, (size_t)away));
    evlock *lock = lock_new_on(f, client, "a", NULL);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_status(await_release(f, lock), EVLOCK_OK);
    await(f, nodes_having("a") == 0);
    /* One server never makes a majority by being asked twice. */
    foreign_hold("a", 1, 2);
    int status = await_try(f, lock);
    if (status != EVLOCK_EHELD)
        assert_status(status, EVLOCK_EQUORUM);
    client_free(f, client);
}

static void the_same_server_by_another_name_is_found(void **state) {
    char localhost[64];
    snprintf(localhost, sizeof(localhost), "%s://localhost:%d", server_scheme(), nodes[0].port);
    same_server(*state, nodes[0].tcp_url, localhost);
}

static void the_same_server_by_socket_and_port_is_found(void **state) {
    same_server(*state, nodes[0].socket_url, nodes[0].tcp_url);
}

/* Also where it stands behind the other in the list: leases count on what it has said. */
static void of_one_server_twice_the_one_that_serves_stays(void **state) {
    struct fixture *f = *state;
    relay_start(&f->relay, &nodes[0]);
    const char *urls[] = {f->relay.url, nodes[1].url, nodes[0].url};
    evlock_client *client = quorum_client_of(f, urls, 3, NULL);
    await(f, nodes_counting(client) == 2);
    await(f, relay_pump(&f->relay) && node_info(client, 0).status == EVLOCK_ESAME);
    assert_true(node_counts(client, 1));
    assert_true(node_counts(client, 2));
    client_free(f, client);
}

/* --- Credentials -------------------------------------------------------------------------------------------------- */

static void every_node_has_its_own_credentials(void **state) {
    struct fixture *f = *state;
    char urls[NODES][64];
    const char *list[NODES];
    for (size_t i = 0; i < NODES; i++) {
        server_do(&nodes[i], "ACL SETUSER user%d on >pass%d ~* &* +@all", (int)i, (int)i);
        snprintf(urls[i], sizeof(urls[i]), "%s://user%zu:pass%zu@127.0.0.1:%d", server_scheme(), i, i, nodes[i].port);
        list[i] = urls[i];
    }
    evlock_client *client = quorum_client_of(f, list, NODES, NULL);
    evlock *lock = lock_new_on(f, client, "a", NULL);
    await(f, nodes_counting(client) == NODES);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    await(f, nodes_with(lock) == NODES);
    assert_status(await_release(f, lock), EVLOCK_OK);
    client_free(f, client);

    /* Two wrong passwords cost nothing, and are told. */
    for (size_t i = 0; i < 2; i++)
        server_do(&nodes[i], "ACL SETUSER user%d resetpass >other", (int)i);
    client = quorum_client_of(f, list, NODES, NULL);
    lock = lock_new_on(f, client, "a", NULL);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    for (size_t i = 0; i < 2; i++) {
        await(f, node_info(client, i).status == EVLOCK_EAUTH);
        assert_string_not_equal(evlock_last_error(), "");
        assert_null(strstr(evlock_last_error(), i == 0 ? "pass0" : "pass1"));
    }
    assert_status(await_release(f, lock), EVLOCK_OK);
    await(f, nodes_having("a") == 0);
}

static void a_majority_of_wrong_passwords_is_told(void **state) {
    struct fixture *f = *state;
    char urls[NODES][64];
    const char *list[NODES];
    for (size_t i = 0; i < NODES; i++) {
        snprintf(urls[i], sizeof(urls[i]), "%s://nobody:wrong@127.0.0.1:%d", server_scheme(), nodes[i].port);
        list[i] = i < MAJORITY ? urls[i] : nodes[i].url;
    }
    evlock_client *client = quorum_client_of(f, list, NODES, NULL);
    evlock *lock = lock_new_on(f, client, "a", NULL);
    await(f, nodes_counting(client) == NODES - MAJORITY && evlock_client_connection(client) == EVLOCK_AWAY);
    int status = await_try(f, lock);
    if (status != EVLOCK_EAUTH)
        assert_status(status, EVLOCK_EQUORUM);
    assert_string_not_equal(f->ended.error, "");
    await(f, nodes_having("a") == 0);
}

static void a_node_without_scripts_costs_nothing(void **state) {
    struct fixture *f = *state;
    char url[96];
    const char *list[NODES];
    server_do(&nodes[0], "ACL SETUSER poor on >poor ~* &* +@all -evalsha -eval -script");
    snprintf(url, sizeof(url), "%s://poor:poor@127.0.0.1:%d", server_scheme(), nodes[0].port);
    for (size_t i = 0; i < NODES; i++)
        list[i] = i == 0 ? url : nodes[i].url;
    evlock_client *client = quorum_client_of(f, list, NODES, NULL);
    await(f, nodes_counting(client) == NODES - 1); /* it is refused at the login */
    evlock *lock = lock_new_on(f, client, "a", NULL);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_status(await_extend(f, lock, LONG_TTL, EVLOCK_EXTEND_REPLACE), EVLOCK_OK);
    assert_status(await_release(f, lock), EVLOCK_OK);
    await(f, nodes_having("a") == 0);
}

/* --- The longest ttl ---------------------------------------------------------------------------------------------- */

static void no_ttl_is_longer_than_the_longest(void **state) {
    struct fixture *f = *state;
    const int64_t refused_ms[] = {EVLOCK_NO_EXPIRY, 5001, 30 * 1000, 0}; /* the default is 30 s */
    evlock_client_options client_options = excluding_options(f, 5000);
    evlock_client *client = quorum_client(f, NODES, &client_options);
    for (size_t i = 0; i < sizeof(refused_ms) / sizeof(refused_ms[0]); i++) {
        evlock *lock = NULL;
        evlock_options options = with_ttl(refused_ms[i]);
        assert_status(evlock_new(&lock, client, "a", EVLOCK_CSTRING, &options), EVLOCK_ETTL);
        assert_null(lock);
        assert_string_not_equal(evlock_last_error(), "");
    }
    evlock_options longest = with_ttl(5000);
    lock_new_on(f, client, "a", &longest);
}

static void no_extension_goes_beyond_the_longest(void **state) {
    enum { LONGEST = 4000 * 1000, DRIFT = LONGEST / 100 };
    struct fixture *f = *state;
    evlock_client_options client_options = durable_options(f);
    client_options.max_ttl_ms = LONGEST;
    evlock_client *client = quorum_client(f, NODES, &client_options);
    evlock_options options = with_ttl(LONGEST - 10 * DRIFT);
    evlock *lock = lock_new_on(f, client, "a", &options);
    await(f, nodes_counting(client) == NODES);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    await(f, nodes_with(lock) == NODES);
    assert_status(evlock_extend(lock, LONGEST + 1, EVLOCK_EXTEND_REPLACE, NULL, NULL), EVLOCK_ETTL);
    assert_status(evlock_extend(lock, LONGEST + 1, EVLOCK_EXTEND_ADD, NULL, NULL), EVLOCK_ETTL);
    /* The nodes have more left than the holder believes in. */
    int64_t lacks = LONGEST - evlock_remaining_ms(lock);
    assert_status(evlock_extend(lock, lacks, EVLOCK_EXTEND_ADD, NULL, NULL), EVLOCK_ETTL);
    assert_status(await_extend(f, lock, lacks - 2 * DRIFT, EVLOCK_EXTEND_ADD), EVLOCK_OK);
    for (size_t i = 0; i < NODES; i++)
        assert_int_in_range(key_ttl(&nodes[i], "a"), 1, LONGEST);
    assert_true(evlock_is_held(lock));
}

static void the_options_have_ranges(void **state) {
    struct fixture *f = *state;
    const int64_t bad[] = {-1, INT64_MIN, INT64_MAX};
    const struct urls urls = urls_joined((const char *[]){nodes[0].url, nodes[1].url, nodes[2].url}, 3);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        evlock_client *client = NULL;
        evlock *lock = NULL;
        evlock_client_options client_options = durable_options(f);
        client_options.max_ttl_ms = bad[i];
        assert_status(evlock_client_new(&client, loop_for_evlock(f->loop), urls.text, &client_options), EVLOCK_EINVAL);
        evlock_options options = {.size = sizeof(evlock_options)};
        options.node_timeout_ms = bad[i];
        assert_status(evlock_new(&lock, f->client, "a", 1, &options), EVLOCK_EINVAL);
        options = (evlock_options){.size = sizeof(evlock_options)};
        options.replica_timeout_ms = bad[i];
        assert_status(evlock_new(&lock, f->client, "a", 1, &options), EVLOCK_EINVAL);
        options = (evlock_options){.size = sizeof(evlock_options)};
        options.min_replicas = bad[i];
        assert_status(evlock_new(&lock, f->client, "a", 1, &options), EVLOCK_EINVAL);
    }
    evlock_client *client = NULL;
    evlock_client_options client_options = durable_options(f);
    memset(&client_options.durable, 2, 1);
    assert_status(evlock_client_new(&client, loop_for_evlock(f->loop), urls.text, &client_options), EVLOCK_EINVAL);
}

/* --- What is told of a node --------------------------------------------------------------------------------------- */

static void every_node_is_told(void **state) {
    struct fixture *f = *state;
    evlock_node_info info;
    assert_int_equal(nodes_of(f->client), NODES);
    evlock *lock = acquired(f, "a", NULL);
    await(f, nodes_with(lock) == NODES);
    for (size_t i = 0; i < NODES; i++) {
        await(f, node_info(f->client, i).agreed);
        info = node_info(f->client, i);
        assert_int_equal(info.connection, EVLOCK_CONNECTED);
        assert_status(info.status, EVLOCK_OK);
        assert_int_equal(info.excluded_ms, 0);
        assert_string_equal(evlock_last_error(), "");
    }
    assert_status(evlock_client_node(f->client, NODES, &info, sizeof(info)), EVLOCK_EINVAL);
    assert_status(evlock_client_node(NULL, 0, &info, sizeof(info)), EVLOCK_EINVAL);
    assert_status(evlock_client_node(f->client, 0, NULL, sizeof(info)), EVLOCK_EINVAL);
}

static void an_older_programs_struct_is_filled_so_far(void **state) {
    struct fixture *f = *state;
    evlock_node_info info;
    memset(&info, 0x55, sizeof(info));
    size_t size = offsetof(evlock_node_info, excluded_ms);
    assert_status(evlock_client_node(f->client, 0, &info, size), EVLOCK_OK);
    assert_int_equal(info.connection, EVLOCK_CONNECTED);
    for (size_t i = size; i < sizeof(info); i++)
        assert_int_equal(((unsigned char *)&info)[i], 0x55);
}

static void a_single_node_is_told_too(void **state) {
    struct fixture *f = *state;
    evlock_client *client = client_new(f, NULL, NULL);
    assert_int_equal(nodes_of(client), 1);
    await_connected(f, client);
    assert_int_equal(node_info(client, 0).connection, EVLOCK_CONNECTED);
    assert_status(node_info(client, 0).status, EVLOCK_OK);
}

static void a_node_that_refuses_did_not_agree(void **state) {
    struct fixture *f = *state;
    full.inflict(&nodes[0]);
    foreign_hold("a", 1, 2);
    evlock *lock = acquired(f, "a", NULL);
    await(f, nodes_with(lock) == 3);
    run_for(f, 100);
    assert_false(node_info(f->client, 0).agreed);
    assert_false(node_info(f->client, 1).agreed);
    for (size_t i = 2; i < NODES; i++)
        await(f, node_info(f->client, i).agreed);
    full.mend(&nodes[0]);
}

static void an_unreachable_node_is_told(void **state) {
    struct fixture *f = *state;
    int told = f->connection.count;
    server_kill9(&nodes[3]);
    await(f, node_info(f->client, 3).connection == EVLOCK_AWAY);
    assert_status(node_info(f->client, 3).status, EVLOCK_EUNREACHABLE);
    assert_string_not_equal(evlock_last_error(), "");
    await(f, f->connection.count > told); /* though all together are connected as before */
    assert_int_equal(f->connection.value, EVLOCK_CONNECTED);
    assert_int_equal(evlock_client_connection(f->client), EVLOCK_CONNECTED);
    server_kill9(&nodes[2]);
    server_kill9(&nodes[1]);
    await(f, evlock_client_connection(f->client) != EVLOCK_CONNECTED);
    await(f, evlock_client_connection(f->client) == EVLOCK_AWAY);
    await(f, f->away.status == EVLOCK_EUNREACHABLE);
    assert_string_not_equal(f->away.error, "");
    restart_empty(&nodes[1]);
    await(f, evlock_client_connection(f->client) == EVLOCK_CONNECTED);
    await(f, f->connection.value == EVLOCK_CONNECTED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        QUORUM_TEST_BARE(one_to_fifteen_nodes),
        QUORUM_TEST_BARE(one_url_makes_the_plain_client),
        QUORUM_TEST_BARE(one_to_fifteen_urls_are_wanted),
        QUORUM_TEST_BARE(the_malformed_url_is_told),
        QUORUM_TEST_BARE(a_password_is_never_told),
        QUORUM_TEST_BARE(the_same_url_twice_is_refused),
        QUORUM_TEST_BARE(urls_of_one_server_are_refused),
        QUORUM_TEST_BARE(the_same_server_by_another_name_is_found),
        QUORUM_TEST_BARE(the_same_server_by_socket_and_port_is_found),
        QUORUM_TEST_BARE(of_one_server_twice_the_one_that_serves_stays),
        QUORUM_TEST_BARE(every_node_has_its_own_credentials),
        QUORUM_TEST_BARE(a_majority_of_wrong_passwords_is_told),
        QUORUM_TEST_BARE(a_node_without_scripts_costs_nothing),
        QUORUM_TEST_BARE(no_ttl_is_longer_than_the_longest),
        QUORUM_TEST_BARE(no_extension_goes_beyond_the_longest),
        QUORUM_TEST(the_options_have_ranges),
        QUORUM_TEST(every_node_is_told),
        QUORUM_TEST(an_older_programs_struct_is_filled_so_far),
        QUORUM_TEST(a_single_node_is_told_too),
        QUORUM_TEST(a_node_that_refuses_did_not_agree),
        QUORUM_TEST(an_unreachable_node_is_told),
    };
    return run_quorum_suite("nodes", tests);
}
