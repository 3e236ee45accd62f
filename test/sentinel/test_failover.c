/*
 * Locks over failovers that sentinels make: what is held stays held and is renewed at the new primary, nobody else gets
 * it meanwhile, and whatever waits or listens follows. Each test is named after the behaviour that it shows.
 */
#include "story.h"

static const struct sentinels_options two_servers = {.replicas = 1};

/* --- Held locks --------------------------------------------------------------------------------------------------- */

static void planned_failovers_keep_the_lock(void **state) {
    struct fixture *f = *state;
    struct story story;
    sentinels_start(&group, &two_servers);
    story_begin(f, &story, NULL);
    sentinels_fail_over(&group);
    assert_int_equal(story_goes_on(f, &story, 0), 1);
    group_is_ready(f); /* the old one has become a replica: for seconds it would have granted the lock to anybody */
    assert_int_equal(story.granted.count, 0);
    sentinels_fail_over(&group);
    assert_int_equal(story_goes_on(f, &story, 1), 0);
    story_end(f, &story, 0);
}

static bool is_at(const evlock_client *client, int server) {
    evlock_node_info info;
    char address[32];
    snprintf(address, sizeof(address), "127.0.0.1:%d", group.ports[server]);
    assert_status(evlock_client_node(client, 0, &info, sizeof(info)), EVLOCK_OK);
    return info.connection == EVLOCK_CONNECTED && info.product[0] && strcmp(info.address, address) == 0;
}

static void the_address_is_the_primarys(void **state) {
    struct fixture *f = *state;
    evlock_node_info info;
    sentinels_start(&group, &two_servers);
    evlock_client *client = story_client(f, NULL);
    assert_status(evlock_client_node(client, 0, &info, sizeof(info)), EVLOCK_OK);
    assert_string_equal(info.address, "");
    await(f, is_at(client, 0));
    sentinels_fail_over(&group);
    await(f, is_at(client, 1));
}

static void a_killed_primary_keeps_the_lock(void **state) {
    struct fixture *f = *state;
    struct story story;
    sentinels_start(&group, NULL);
    story_begin(f, &story, NULL);
    server_kill9(&group.servers[0]);
    int primary = story_goes_on(f, &story, 0);
    server_restart(&group.servers[0]); /* empty, and a primary as it was: nobody asks it for the lock */
    group_is_ready(f);
    assert_int_equal(story.granted.count, 0);
    story_end(f, &story, primary);
}

static void a_stopped_primary_keeps_the_lock(void **state) {
    struct fixture *f = *state;
    struct story story;
    sentinels_start(&group, NULL);
    story_begin(f, &story, NULL);
    server_pause(&group.servers[0]);
    int primary = story_goes_on(f, &story, 0);
    server_resume(&group.servers[0]);
    group_is_ready(f);
    assert_int_equal(story.granted.count, 0);
    story_end(f, &story, primary);
}

/* The replicas miss the grant: cut off while they are stopped, they are sent nothing. */
static void a_lock_that_no_replica_has_is_lost_and_said(void **state) {
    struct fixture *f = *state;
    struct record lost = {0};
    sentinels_start(&group, &two_servers);
    story_client(f, NULL);
    await_connected(f, f->client);
    server_pause(&group.servers[1]);
    server_do(&group.servers[0], "CLIENT KILL TYPE replica");
    evlock_options options = with_ttl(2 * WAIT_MS);
    options.auto_renewal = 1; /* such a lock is looked after at once when the server is another */
    options.on_lost = record_end;
    options.arg = &lost;
    evlock *lock = lock_new(f, "a", &options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    server_kill9(&group.servers[0]);
    server_resume(&group.servers[1]);
    await(f, lost.count);
    assert_ended(&lost, EVLOCK_EDATALOSS);
    works_at(f, f->client, 1);
}

/* --- Sentinels that are away -------------------------------------------------------------------------------------- */

static void one_dead_sentinel_of_three_costs_nothing(void **state) {
    struct fixture *f = *state;
    struct story story;
    sentinels_start(&group, &two_servers);
    server_kill9(&group.watchers[0]);
    story_begin(f, &story, NULL);
    sentinels_fail_over(&group);
    int primary = story_goes_on(f, &story, 0);
    story_end(f, &story, primary);
    assert_int_equal(f->connection_states[EVLOCK_AWAY], 0);
}

static void a_stopped_sentinel_costs_nothing(void **state) {
    struct fixture *f = *state;
    struct story story;
    sentinels_start(&group, &two_servers);
    server_pause(&group.watchers[0]);
    story_begin(f, &story, NULL);
    sentinels_fail_over(&group);
    int primary = story_goes_on(f, &story, 0);
    story_end(f, &story, primary);
    server_resume(&group.watchers[0]);
}

/* One that still answers is asked; when none does, the last primary that was heard of is used on. */
static void without_sentinels_the_last_primary_is_used(void **state) {
    struct fixture *f = *state;
    sentinels_start(&group, &two_servers);
    evlock_client *client = story_client(f, NULL);
    works_at(f, client, 0);
    server_kill9(&group.watchers[0]);
    server_kill9(&group.watchers[1]);
    works_at(f, client, 0);
    int warnings = f->log_lines[EVLOCK_LOG_WARN];
    server_kill9(&group.watchers[2]);
    await(f, f->log_lines[EVLOCK_LOG_WARN] > warnings);
    works_at(f, client, 0);
    int connections = f->connection_states[EVLOCK_CONNECTED];
    server_do(&group.servers[0], "CLIENT KILL TYPE normal");
    await(f, f->connection_states[EVLOCK_CONNECTED] > connections);
    works_at(f, client, 0);
}

/* A failover that the client missed is heard of from the first sentinel that comes back. */
static void a_sentinel_that_comes_back_says_what_was_missed(void **state) {
    struct fixture *f = *state;
    sentinels_start(&group, &two_servers);
    char first[256];
    snprintf(first, sizeof(first), "%s", sentinels_url(&group, 0, 1));
    evlock_client *client = story_client(f, first);
    works_at(f, client, 0);
    server_kill9(&group.watchers[0]);
    sentinels_fail_over(&group);
    int primary = other_primary(f, 0);
    server_restart(&group.watchers[0]);
    works_soon_at(f, client, primary);
}

/* --- Waiters and replicas ----------------------------------------------------------------------------------------- */

static size_t listeners(struct server *server) {
    redisReply *reply = server_ask(server, "PUBSUB CHANNELS evlock:*");
    size_t count = reply->elements;
    freeReplyObject(reply);
    return count;
}

static void waiters_in_line_follow_and_are_handed_the_lock(void **state) {
    struct fixture *f = *state;
    struct record granted = {0};
    evlock_options options = with_ttl(STORY_TTL);
    options.wait = EVLOCK_WAIT_QUEUE;
    options.auto_renewal = 1;
    sentinels_start(&group, &two_servers);
    evlock *holder = lock_new_on(f, story_client(f, NULL), "a", &options);
    evlock *waiter = lock_new_on(f, story_client(f, NULL), "a", &options);
    assert_status(await_acquire(f, holder, NULL), EVLOCK_OK);
    assert_status(evlock_acquire(waiter, NULL, record_end, &granted), EVLOCK_OK);
    await(f, server_integer(&group.servers[0], "ZCARD {a}:queue") == 1);
    all_have_it(0);
    sentinels_fail_over(&group);
    int primary = other_primary(f, 0);
    struct server *server = &group.servers[primary];
    await(f, listeners(server) > 0 && server_integer(server, "ZCARD {a}:queue") == 1);
    assert_int_equal(granted.count, 0);
    assert_status(await_release(f, holder), EVLOCK_OK);
    await(f, granted.count);
    assert_ended(&granted, EVLOCK_OK);
    assert_true(has_lock(primary, waiter));
    assert_status(await_release(f, waiter), EVLOCK_OK);
}

static void confirmed_grants_are_confirmed_by_the_new_primarys_replicas(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(STORY_TTL);
    options.min_replicas = 1;
    options.replica_timeout_ms = 2000;
    sentinels_start(&group, &two_servers);
    evlock *before = lock_new_on(f, story_client(f, NULL), "a", &options);
    assert_status(await_acquire(f, before, NULL), EVLOCK_OK);
    assert_true(key_exists(&group.servers[1], "a"));
    sentinels_fail_over(&group);
    assert_int_equal(other_primary(f, 0), 1);
    group_is_ready(f);
    evlock *after = lock_new(f, "b", &options);
    assert_status(await_acquire(f, after, NULL), EVLOCK_OK);
    assert_true(has_lock(1, after));
    assert_true(has_lock(0, after));
    assert_status(await_release(f, before), EVLOCK_OK);
    assert_status(await_release(f, after), EVLOCK_OK);
    assert_false(key_exists(&group.servers[1], "a"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SENTINEL_TEST(planned_failovers_keep_the_lock),
        SENTINEL_TEST(the_address_is_the_primarys),
        SENTINEL_TEST(a_killed_primary_keeps_the_lock),
        SENTINEL_TEST(a_stopped_primary_keeps_the_lock),
        SENTINEL_TEST(a_lock_that_no_replica_has_is_lost_and_said),
        SENTINEL_TEST(one_dead_sentinel_of_three_costs_nothing),
        SENTINEL_TEST(a_stopped_sentinel_costs_nothing),
        SENTINEL_TEST(without_sentinels_the_last_primary_is_used),
        SENTINEL_TEST(a_sentinel_that_comes_back_says_what_was_missed),
        SENTINEL_TEST(waiters_in_line_follow_and_are_handed_the_lock),
        SENTINEL_TEST(confirmed_grants_are_confirmed_by_the_new_primarys_replicas),
    };
    return run_sentinel_suite("failover", tests);
}
