/*
 * What sentinels say, and what is made of it: whom the client believes, servers that are no primaries, credentials,
 * lists of any length, and every address that is not what its URL says. Each test is named after the behaviour that it
 * shows.
 */
#include "../redis/tls.h"
#include "story.h"

static const struct sentinels_options two_servers = {.replicas = 1};
static const struct sentinels_options guarded = {.replicas = 1, .password = "secret"};

/* A list of the sentinel that knows no better, and maybe of the others behind it; until the next call. */
static const char *url_with_stale(bool others) {
    static char url[256];
    const char *all = sentinels_url(&group, 0, others ? group.watchers_len : 0);
    size_t head = (size_t)(strrchr(all, '@') - all) + 1;
    snprintf(url, sizeof(url), "%.*s127.0.0.1:%d%s%s", (int)head, all, group.stale.port, others ? "," : "", all + head);
    return url;
}

/* The URL of one address, which may be no sentinel's. */
static const char *url_of(const char *kind, int port, const char *behind) {
    static char url[128];
    snprintf(url, sizeof(url), "%s%s://127.0.0.1:%d%s", server_scheme(), kind, port, behind);
    return url;
}

/* --- Whom to believe ---------------------------------------------------------------------------------------------- */

/* The client listens to it, and has asked it: its answers are there. */
static bool stale_has_told(void) {
    redisReply *reply = server_ask(&group.stale, "CLIENT LIST");
    bool told = strstr(reply->str, "cmd=subscribe") && strstr(reply->str, "cmd=sentinel");
    freeReplyObject(reply);
    return told;
}

/* Whoever is heard first. The primary of before is one for a while, for who has been told nothing else. */
static void the_newest_epoch_is_believed(void **state) {
    struct fixture *f = *state;
    sentinels_start(&group, &guarded);
    sentinels_fail_over(&group);
    int primary = other_primary(f, 0);
    sentinels_start_stale(&group, 0);
    evlock_client *client = story_client(f, url_with_stale(true));
    works_soon_at(f, client, primary);

    /* Also when it is heard later than the others. */
    await(f, stale_has_told());
    int connections = f->connection_states[EVLOCK_CONNECTED];
    server_kill9(&group.stale);
    server_restart(&group.stale);
    await(f, stale_has_told());
    works_at(f, client, primary);
    assert_int_equal(f->connection_states[EVLOCK_CONNECTED], connections);
}

/* Also when it is the only one that answers for a while. */
static void who_was_believed_is_left_for_a_newer_epoch(void **state) {
    struct fixture *f = *state;
    sentinels_start(&group, &guarded);
    sentinels_start_stale(&group, 0);
    for (size_t i = 0; i < group.watchers_len; i++)
        server_kill9(&group.watchers[i]);
    evlock_client *client = story_client(f, url_with_stale(true));
    works_at(f, client, 0);
    for (size_t i = 0; i < group.watchers_len; i++)
        sentinels_restart(&group, i);
    group_is_ready(f);
    sentinels_fail_over(&group);
    int primary = other_primary(f, 0);
    works_soon_at(f, client, primary);
}

static void a_replica_at_the_address_is_left_until_it_is_promoted(void **state) {
    struct fixture *f = *state;
    sentinels_start(&group, &guarded);
    sentinels_start_stale(&group, 1);
    evlock_client *client = story_client(f, url_with_stale(false));
    await(f, f->away.count);
    assert_int_equal(f->connection_states[EVLOCK_CONNECTED], 0);
    sentinels_fail_over(&group);
    assert_int_equal(other_primary(f, 0), 1);
    works_soon_at(f, client, 1);
}

/* --- Lists -------------------------------------------------------------------------------------------------------- */

static void follows_by(struct fixture *f, size_t from, size_t to) {
    struct story story;
    sentinels_start(&group, &two_servers);
    story_begin(f, &story, sentinels_url(&group, from, to));
    sentinels_fail_over(&group);
    story_end(f, &story, story_goes_on(f, &story, 0));
}

static void a_list_of_one_follows(void **state) {
    follows_by(*state, 1, 2);
}

static void a_list_of_two_follows(void **state) {
    follows_by(*state, 1, 3);
}

static void the_default_port_and_other_spellings_are_taken(void **state) {
    struct fixture *f = *state;
    static const char *const urls[] = {
        "redis+sentinel://localhost/locks",
        "valkey+sentinel://localhost,[::1]:7/locks/3",
        "redis-sentinel://:pw@localhost/locks/0",
        "redis+sentinel://user:pw@a:1,b:2,c:3,d:4/locks",
    };
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        evlock_client *client;
        assert_status(evlock_client_new(&client, loop_for_evlock(f->loop), urls[i], NULL), EVLOCK_OK);
        evlock_client_free(client);
    }
    await(f, loop_registrations(f->loop) == 0);
}

/* --- Databases and warnings --------------------------------------------------------------------------------------- */

static void the_database_is_taken_at_each_primary(void **state) {
    struct fixture *f = *state;
    char url[260];
    sentinels_start(&group, &two_servers);
    snprintf(url, sizeof(url), "%s/3", group.url);
    evlock *lock = lock_new_on(f, story_client(f, url), "a", NULL);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_true(server_info(&group.servers[0], "keyspace", "db3:keys=") == 1);
    all_have_it(0);
    sentinels_fail_over(&group);
    assert_int_equal(other_primary(f, 0), 1);
    await(f, f->connection_states[EVLOCK_CONNECTED] == 2);
    assert_true(server_info(&group.servers[1], "keyspace", "db3:keys=") == 1);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_true(server_info(&group.servers[1], "keyspace", "db3:keys=") == 0);
}

/* Once, however often it is connected. */
static void a_primary_that_would_go_on_alone_is_warned_of(void **state) {
    struct fixture *f = *state;
    sentinels_start(&group, &two_servers);
    works_at(f, story_client(f, NULL), 0);
    assert_int_equal(times_logged(f, "min-replicas-to-write"), 1);
    server_do(&group.servers[0], "CLIENT KILL TYPE normal");
    await(f, f->connection_states[EVLOCK_CONNECTED] == 2);
    works_at(f, f->client, 0);
    assert_int_equal(times_logged(f, "min-replicas-to-write"), 1);
}

static void a_primary_that_would_not_is_not_warned_of(void **state) {
    static const struct sentinels_options careful = {.replicas = 1, .min_replicas = 1};
    struct fixture *f = *state;
    sentinels_start(&group, &careful);
    works_at(f, story_client(f, NULL), 0);
    assert_false(logged(f, "min-replicas-to-write"));
}

/* --- Credentials -------------------------------------------------------------------------------------------------- */

static const struct sentinels_options locked = {.replicas = 1, .password = "secret", .sentinel_password = "concealed"};

static void sentinels_have_their_own_password(void **state) {
    struct fixture *f = *state;
    sentinels_start(&group, &locked);
    evlock_client_options options = story_options(f);
    options.sentinel_password = "concealed";
    evlock_client *client = client_new(f, group.url, &options);
    works_at(f, client, 0);
    sentinels_fail_over(&group);
    assert_int_equal(other_primary(f, 0), 1);
    works_soon_at(f, client, 1);
    assert_false(logged(f, "secret"));
    assert_false(logged(f, "concealed"));
}

static void a_wrong_password_for_the_sentinels_is_said(void **state) {
    struct fixture *f = *state;
    sentinels_start(&group, &locked);
    evlock_client_options options = story_options(f);
    options.sentinel_password = "wrong";
    client_new(f, group.url, &options);
    is_away(f, EVLOCK_EAUTH, "entinel");
}

static void no_password_for_the_sentinels_is_said(void **state) {
    struct fixture *f = *state;
    sentinels_start(&group, &locked);
    story_client(f, NULL);
    is_away(f, EVLOCK_EAUTH, "entinel");
}

static void a_wrong_password_for_the_primary_is_said(void **state) {
    struct fixture *f = *state;
    sentinels_start(&group, &locked);
    evlock_client_options options = story_options(f);
    options.sentinel_password = "concealed";
    group.password = "wrong";
    client_new(f, sentinels_url(&group, 0, 3), &options);
    is_away(f, EVLOCK_EAUTH, "");
}

/* --- Addresses that are not what they are said to be -------------------------------------------------------------- */

static void an_unknown_name_is_said(void **state) {
    struct fixture *f = *state;
    sentinels_start(&group, &two_servers);
    char url[256];
    snprintf(url, sizeof(url), "%s", group.url);
    memcpy(strrchr(url, '/'), "/other", sizeof("/other"));
    evlock_client *client = story_client(f, url);
    is_away(f, EVLOCK_EMASTER, "other");
    evlock_options options = with_ttl(STORY_TTL);
    options.fail_when_away = true;
    assert_status(await_acquire(f, lock_new_on(f, client, "a", &options), NULL), EVLOCK_EMASTER);
}

static void a_sentinels_address_for_a_server_is_said(void **state) {
    struct fixture *f = *state;
    sentinels_start(&group, &two_servers);
    story_client(f, url_of("", group.watchers[0].port, ""));
    is_away(f, EVLOCK_EUNSUPPORTED, "redis+sentinel://");
}

static void a_servers_address_for_a_sentinel_is_said(void **state) {
    struct fixture *f = *state;
    sentinels_start(&group, &two_servers);
    story_client(f, url_of("+sentinel", group.servers[0].port, "/locks"));
    is_away(f, EVLOCK_EUNSUPPORTED, "no Sentinel");
}

/* One that is wrong in a list costs nothing. */
static void a_servers_address_among_sentinels_costs_nothing(void **state) {
    struct fixture *f = *state;
    char url[256];
    sentinels_start(&group, &two_servers);
    snprintf(url, sizeof(url), "%s+sentinel://127.0.0.1:%d,127.0.0.1:%d/" SENTINELS_NAME, server_scheme(),
             group.servers[0].port, group.watchers[1].port);
    works_at(f, story_client(f, url), 0);
}

static void sentinels_in_a_quorum_are_refused(void **state) {
    struct fixture *f = *state;
    evlock_client *client = NULL;
    assert_status(evlock_client_new(&client, loop_for_evlock(f->loop),
                                    "quorum:redis+sentinel://a/locks redis://b redis://c", NULL),
                  EVLOCK_EURL);
    assert_string_not_equal(evlock_last_error(), "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SENTINEL_TEST(the_newest_epoch_is_believed),
        SENTINEL_TEST(who_was_believed_is_left_for_a_newer_epoch),
        SENTINEL_TEST(a_replica_at_the_address_is_left_until_it_is_promoted),
        SENTINEL_TEST(a_list_of_one_follows),
        SENTINEL_TEST(a_list_of_two_follows),
        SENTINEL_TEST(the_default_port_and_other_spellings_are_taken),
        SENTINEL_TEST(the_database_is_taken_at_each_primary),
        SENTINEL_TEST(a_primary_that_would_go_on_alone_is_warned_of),
        SENTINEL_TEST(a_primary_that_would_not_is_not_warned_of),
        SENTINEL_TEST(sentinels_have_their_own_password),
        SENTINEL_TEST(a_wrong_password_for_the_sentinels_is_said),
        SENTINEL_TEST(no_password_for_the_sentinels_is_said),
        SENTINEL_TEST(a_wrong_password_for_the_primary_is_said),
        SENTINEL_TEST(an_unknown_name_is_said),
        SENTINEL_TEST(a_sentinels_address_for_a_server_is_said),
        SENTINEL_TEST(a_servers_address_for_a_sentinel_is_said),
        SENTINEL_TEST(a_servers_address_among_sentinels_costs_nothing),
        SENTINEL_TEST(sentinels_in_a_quorum_are_refused),
    };
    return run_sentinel_suite("sentinel", tests);
}
