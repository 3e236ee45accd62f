/*
 * A server's own commands in place of scripts: SET with IFEQ, DELIFEQ and DELEX. On a server that has them, what they
 * do there, and what they must not; on any server, that it may say it has them, and refuse them.
 */
#include "harness.h"

#include <stdio.h>

enum { TTL_MS = 60 * 1000, INTERVAL_MS = 50 };

struct held {
    evlock *lock;
    struct record lost;
};

static void told_lost(evlock *lock, int reason, void *arg) {
    record_end(lock, reason, &((struct held *)arg)->lost);
}

static evlock_options renewing(struct held *held) {
    evlock_options options = with_ttl(TTL_MS);
    options.auto_renewal = true;
    options.renewal_interval_ms = INTERVAL_MS;
    options.on_lost = told_lost;
    options.arg = held;
    return options;
}

static void hold(struct fixture *f, struct held *held, const char *name) {
    evlock_options options = renewing(held);
    *held = (struct held){.lock = lock_new(f, name, &options)};
    assert_status(await_acquire(f, held->lock, NULL), EVLOCK_OK);
}

static uint64_t renewals(const struct fixture *f) {
    return stats_of(f->client).renewals;
}

static bool pump(struct fixture *f) {
    return !f->relay.server || relay_pump(&f->relay);
}

/* Twice more than now: the second was sent after this. */
static void await_renewals(struct fixture *f) {
    uint64_t before = renewals(f);
    await(f, pump(f) && renewals(f) >= before + 2);
}

/* By the names "a", "b" and so on. */
static const char *name_of(int i) {
    static const char names[][2] = {"a", "b", "c"};
    return names[i];
}

static long long deletions(struct server *server) {
    return server_calls(server, "delifeq") + server_calls(server, "delex");
}

/* What the server has by its version. */
static bool deletes(struct server *server) {
    return strcmp(deleting_rights(server), "-del") != 0;
}

#define needs(f, what)                                                                                                 \
    do {                                                                                                               \
        if (!what((f)->server)) {                                                                                      \
            print_message("the server has no command for this\n");                                                     \
            skip();                                                                                                    \
        }                                                                                                              \
    } while (0)

/* --- On a server that has them ------------------------------------------------------------------------------------ */

static void a_renewal_is_one_command(void **state) {
    struct fixture *f = *state;
    struct held held[3];
    needs(f, server_refreshes);
    for (int i = 0; i < 3; i++)
        hold(f, &held[i], name_of(i));
    server_do(f->server, "CONFIG RESETSTAT");
    for (int i = 0; i < 3; i++)
        server_do(f->server, "PEXPIRE %s %d", name_of(i), TTL_MS / 2);
    for (int i = 0; i < 3; i++)
        await(f, key_ttl(f->server, name_of(i)) > TTL_MS * 2 / 3);
    assert_int_equal(server_calls(f->server, "evalsha"), 0);
    assert_true(server_calls(f->server, "set") >= 3);
    for (int i = 0; i < 3; i++)
        assert_true(evlock_is_held(held[i].lock));
}

static void a_release_is_one_command(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    needs(f, deletes);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    server_do(f->server, "CONFIG RESETSTAT");
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_false(key_exists(f->server, "a"));
    assert_int_equal(deletions(f->server), 1);
    assert_int_equal(server_calls(f->server, "evalsha"), 0);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    server_do(f->server, "SET a stranger");
    assert_status(await_release(f, lock), EVLOCK_ENOTOWNED);
    assert_true(key_is(f->server, "a", "stranger", 8));
    assert_int_equal(deletions(f->server), 2);
}

/* Nobody queues now; but somebody may at any time. */
static void a_lock_with_a_queue_is_released_by_script(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(TTL_MS);
    options.wait = EVLOCK_WAIT_QUEUE;
    evlock *lock = lock_new(f, "a", &options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_false(key_exists(f->server, "a"));
    assert_int_equal(deletions(f->server), 0);
}

static void what_is_gone_is_lost(void **state) {
    struct fixture *f = *state;
    struct held held[3];
    needs(f, server_refreshes);
    for (int i = 0; i < 3; i++)
        hold(f, &held[i], name_of(i));
    server_do(f->server, "DEL a");
    server_do(f->server, "SET b stranger");
    server_do(f->server, "DEL c");
    server_do(f->server, "RPUSH c stranger");
    for (int i = 0; i < 3; i++) {
        await(f, held[i].lost.count);
        assert_status(held[i].lost.status, EVLOCK_ENOTOWNED);
    }
    assert_false(key_exists(f->server, "a")); /* nor is it set again */
    assert_true(key_is(f->server, "b", "stranger", 8));
    assert_int_equal(key_ttl(f->server, "b"), -1);
    assert_int_equal(server_integer(f->server, "LLEN c"), 1);
}

/* Each has another reason to live longer than its renewals ask for. */
static void a_longer_ttl_is_never_cut(void **state) {
    struct fixture *f = *state;
    struct held added, replaced, shown;
    hold(f, &added, "a");
    hold(f, &replaced, "b");
    hold(f, &shown, "c");
    assert_status(await_extend(f, added.lock, 10 * TTL_MS, EVLOCK_EXTEND_ADD), EVLOCK_OK);
    assert_status(await_extend(f, replaced.lock, 10 * TTL_MS, EVLOCK_EXTEND_REPLACE), EVLOCK_OK);
    assert_non_null(evlock_token(shown.lock, NULL));
    await_renewals(f); /* what was under way before it was shown */
    server_do(f->server, "PEXPIRE c %d", 10 * TTL_MS);
    for (int i = 0; i < 3; i++)
        await_renewals(f);
    assert_true(key_ttl(f->server, "a") > 9 * TTL_MS);
    assert_true(key_ttl(f->server, "b") > 9 * TTL_MS);
    assert_true(key_ttl(f->server, "c") > 9 * TTL_MS);
}

static void an_adopted_lease_is_never_cut(void **state) {
    struct fixture *f = *state;
    struct held held;
    evlock_options options = renewing(&held);
    held = (struct held){.lock = lock_new(f, "a", &options)};
    server_do(f->server, "SET a mine PX %d", 10 * TTL_MS);
    assert_status(await_adopt(f, held.lock, "mine", EVLOCK_CSTRING), EVLOCK_OK);
    for (int i = 0; i < 3; i++)
        await_renewals(f);
    assert_true(key_ttl(f->server, "a") > 9 * TTL_MS);
}

static bool said_oom(struct server *server) {
    return server_errors(server, "OOM") > 0;
}

/* It has no room for anything new. What is held goes on, by script. */
static void a_full_server_keeps_what_is_held(void **state) {
    struct fixture *f = *state;
    struct held held[3];
    char *filling = malloc(1 << 20);
    long long set = 0;
    assert_non_null(filling);
    memset(filling, 'x', 1 << 20);
    for (int i = 0; i < 3; i++)
        hold(f, &held[i], name_of(i));
    server_do(f->server, "CONFIG RESETSTAT");
    server_do(f->server, "CONFIG SET maxmemory-policy noeviction");
    server_do(f->server, "CONFIG SET maxmemory 16mb");
    for (int i = 0; i < 64 && !said_oom(f->server); i++)
        freeReplyObject(server_command(f->server, "SET filling%d %b", i, filling, (size_t)1 << 20));
    free(filling);
    assert_true(said_oom(f->server));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++)
            server_do(f->server, "PEXPIRE %s %d", name_of(i), TTL_MS / 2);
        for (int i = 0; i < 3; i++)
            await(f, key_ttl(f->server, name_of(i)) > TTL_MS * 2 / 3);
        if (round == 1)
            set = server_refusals(f->server, "set");
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(held[i].lost.count, 0);
        assert_true(evlock_is_held(held[i].lock));
    }
    assert_int_equal(server_refusals(f->server, "set"), set); /* for a while, none asks again */
    assert_status(await_release(f, held[0].lock), EVLOCK_OK); /* which makes room */
    assert_false(key_exists(f->server, "a"));
    server_do(f->server, "CONFIG SET maxmemory 0");
}

/* --- On one that refuses them ------------------------------------------------------------------------------------- */

/* A user whose rights were given before the server had a command of its own for it. */
static void an_upgraded_server_releases_for_who_may_not(void **state) {
    struct fixture *f = *state;
    struct held held;
    evlock_client_options options = client_options(f);
    server_do(f->server, "ACL SETUSER worker reset on >work ~* -@all +get +mget +set +del +pttl +pexpire +evalsha "
                         "+script|load +client|id +client|kill +info");
    options.user = "worker";
    options.password = "work";
    f->client = NULL;
    client_new(f, NULL, &options);
    for (int i = 0; i < 2; i++) {
        hold(f, &held, "a");
        await_renewals(f);
        assert_status(await_release(f, held.lock), EVLOCK_OK);
        assert_false(key_exists(f->server, "a"));
        assert_int_equal(held.lost.count, 0);
    }
    assert_true(server_errors(f->server, "NOPERM") <= 1 + 3); /* one release alone; the login asks for more */
    client_free(f, f->client);
    server_do(f->server, "ACL DELUSER worker");
}

static void connection_by(struct fixture *f, void (*edit)(struct relay *, char *, size_t, bool)) {
    relay_start(&f->relay, f->server);
    f->relay.edit = edit;
    f->client = NULL;
    client_new(f, f->relay.url, NULL);
    await(f, relay_pump(&f->relay) && evlock_client_connection(f->client) == EVLOCK_CONNECTED);
    server_do(f->server, "CONFIG RESETSTAT");
}

static bool ended(struct fixture *f, const struct record *record) {
    return relay_pump(&f->relay) && record->count > 0;
}

static void acquire_through(struct fixture *f, struct held *held, const char *name) {
    struct record acquired = {0};
    evlock_options options = renewing(held);
    *held = (struct held){.lock = lock_new(f, name, &options)};
    assert_status(evlock_acquire(held->lock, NULL, record_end, &acquired), EVLOCK_OK);
    await(f, ended(f, &acquired));
    assert_ended(&acquired, EVLOCK_OK);
}

static void release_through(struct fixture *f, struct held *held) {
    struct record released = {0};
    assert_status(evlock_release(held->lock, record_end, &released), EVLOCK_OK);
    await(f, ended(f, &released));
    assert_ended(&released, EVLOCK_OK);
}

/* The first refusal of each is the last. */
static void what_a_server_does_not_know_goes_by_script(void **state) {
    struct fixture *f = *state;
    struct held held[3];
    connection_by(f, say_newer);
    for (int i = 0; i < 3; i++)
        acquire_through(f, &held[i], name_of(i));
    await_renewals(f);
    long long errors = server_info(f->server, "stats", "total_error_replies:");
    for (int i = 0; i < 3; i++)
        await_renewals(f);
    if (!server_refreshes(f->server)) {
        assert_int_equal(server_info(f->server, "stats", "total_error_replies:"), errors + 1); /* this test's own */
        assert_true(server_calls(f->server, "pexpire") >= 3);
    }
    for (int i = 0; i < 3; i++) {
        release_through(f, &held[i]);
        assert_int_equal(held[i].lost.count, 0);
        assert_false(key_exists(f->server, name_of(i)));
    }
    assert_false(logged(f, "protocol"));
    assert_int_equal(f->connection_states[EVLOCK_AWAY], 0);
}

/* A release behind a renewal, both unanswered when both are refused. */
static void two_that_are_refused_go_by_script(void **state) {
    struct fixture *f = *state;
    struct held held;
    connection_by(f, say_newer);
    acquire_through(f, &held, "a");
    f->relay.pairs[0].held = true;
    run_for(f, 4 * INTERVAL_MS); /* the renewal is under way */
    struct record released = {0};
    assert_status(evlock_release(held.lock, record_end, &released), EVLOCK_OK);
    run_for(f, 20);
    f->relay.pairs[0].held = false;
    await(f, ended(f, &released));
    assert_ended(&released, EVLOCK_OK);
    assert_false(key_exists(f->server, "a"));
}

static long long scripts(struct server *server) {
    return server_calls(server, "pexpire"); /* by which a script renews, and nothing else here */
}

/* The server that comes back is another version, and says so. */
static void another_version(struct fixture *f, void (*edit)(struct relay *, char *, size_t, bool)) {
    f->relay.edit = edit;
    relay_cut(&f->relay, f->relay.count - 1);
    await(f, pump(f) && evlock_client_connection(f->client) != EVLOCK_CONNECTED);
    await(f, pump(f) && evlock_client_connection(f->client) == EVLOCK_CONNECTED);
    server_do(f->server, "CONFIG RESETSTAT");
    await_renewals(f);
}

/* Down, up, and to where it says more than it has: with a lease that is held, and one that is taken and released. */
static void each_login_learns_what_the_server_has(void **state) {
    struct fixture *f = *state;
    struct held held, other;
    bool refreshes = server_refreshes(f->server);
    connection_by(f, NULL);
    acquire_through(f, &held, "a");
    await_renewals(f);
    assert_true(refreshes ? !scripts(f->server) : scripts(f->server) > 0);
    another_version(f, say_older);
    assert_true(scripts(f->server) > 0);
    acquire_through(f, &other, "b");
    release_through(f, &other);
    assert_int_equal(deletions(f->server), 0);
    another_version(f, say_newer);
    acquire_through(f, &other, "b");
    release_through(f, &other);
    another_version(f, NULL);
    assert_true(refreshes ? !scripts(f->server) : scripts(f->server) > 0);
    assert_int_equal(held.lost.count, 0);
    release_through(f, &held);
    assert_false(key_exists(f->server, "a"));
    assert_int_equal(deletions(f->server), deletes(f->server));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_renewal_is_one_command),
        TEST(a_release_is_one_command),
        TEST(a_lock_with_a_queue_is_released_by_script),
        TEST(what_is_gone_is_lost),
        TEST(a_longer_ttl_is_never_cut),
        TEST(an_adopted_lease_is_never_cut),
        TEST(a_full_server_keeps_what_is_held),
        TEST(an_upgraded_server_releases_for_who_may_not),
        TEST(what_a_server_does_not_know_goes_by_script),
        TEST(two_that_are_refused_go_by_script),
        TEST(each_login_learns_what_the_server_has),
    };
    return run_suite("native", tests);
}
