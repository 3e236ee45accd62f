/*
 * Renewals that are sent together, on a real server: few commands for many leases, and for each lease what it would
 * have been told alone, whatever is true of the others.
 */
#include "harness.h"

#include <stdio.h>
#include <time.h>

enum { TTL_MS = 60 * 1000, INTERVAL_MS = 200, MANY = 250 };

struct held {
    evlock *lock;
    struct record lost;
    int64_t deadline_ms; /* as it was */
};

static void told_lost(evlock *lock, int reason, void *arg) {
    record_end(lock, reason, &((struct held *)arg)->lost);
}

static evlock_options renewed(const char *prefix, int64_t ttl_ms, struct held *held) {
    evlock_options options = with_ttl(ttl_ms);
    options.prefix = prefix;
    options.auto_renewal = true;
    options.renewal_interval_ms = INTERVAL_MS;
    options.on_lost = told_lost;
    options.arg = held;
    return options;
}

static void hold(struct fixture *f, struct held *held, const char *name, int64_t ttl_ms) {
    evlock_options options = renewed("lock:", ttl_ms, held);
    *held = (struct held){.lock = lock_new(f, name, &options)};
    assert_status(await_acquire(f, held->lock, NULL), EVLOCK_OK);
    renew_by_script(held->lock);
}

/* Held by "lock:a", "lock:b" and so on. */
static void hold_all(struct fixture *f, struct held *held, int count) {
    for (int i = 0; i < count; i++)
        hold(f, &held[i], (const char[]){(char)('a' + i), '\0'}, TTL_MS);
}

/* The loop stands still until all that is held is due. */
static void fall_due(void) {
    nanosleep(&(struct timespec){0, 2 * INTERVAL_MS * 1000 * 1000}, NULL);
}

/* The key lies in front of the name. */
static const char *key_of(const struct held *held) {
    return (const char *)evlock_name(held->lock, NULL) - strlen("lock:");
}

static int64_t deadline_ms(const struct held *held) {
    return evlock_clock_us() / 1000 + evlock_remaining_ms(held->lock);
}

/* All are held, and have been renewed since now. */
static void assert_renewed(struct fixture *f, struct held *held, int count) {
    for (int i = 0; i < count; i++) {
        server_do(f->server, "PEXPIRE %s %d", key_of(&held[i]), TTL_MS / 2);
        held[i].deadline_ms = deadline_ms(&held[i]);
    }
    for (int i = 0; i < count; i++) {
        await(f, key_ttl(f->server, key_of(&held[i])) > TTL_MS * 2 / 3);
        await(f, deadline_ms(&held[i]) > held[i].deadline_ms + 10);
    }
    for (int i = 0; i < count; i++) {
        assert_int_equal(held[i].lost.count, 0);
        assert_true(evlock_is_held(held[i].lock));
    }
}

/* --- The commands ------------------------------------------------------------------------------------------------- */

static void many_leases_share_a_command(void **state) {
    struct fixture *f = *state;
    static struct held held[MANY];
    char name[16];
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "%d", i);
        hold(f, &held[i], name, TTL_MS);
    }
    fall_due();
    server_do(f->server, "CONFIG RESETSTAT");
    await(f, server_calls(f->server, "pexpire") >= MANY);
    assert_int_in_range(server_calls(f->server, "evalsha"), 3, MANY / 10); /* no more than 100 leases each */
    assert_int_equal(server_integer(f->server, "DBSIZE"), MANY);
}

/* What has one hash tag is in one slot: that alone goes together, wherever it stands among the others. */
static void a_cluster_is_asked_by_hash_tags(void **state) {
    enum { LEASES = 30 };
    static const char *const extra[] = {"--cluster-enabled", "yes", NULL};
    struct fixture *f = *state;
    static struct held held[LEASES];
    struct server cluster;
    char name[16];
    server_start(&cluster, true, extra);
    server_do(&cluster, "CLUSTER ADDSLOTSRANGE 0 16383");
    f->server = &cluster;
    f->client = NULL;
    client_new(f, NULL, NULL);
    for (int i = 0; i < LEASES; i++) {
        snprintf(name, sizeof(name), i % 3 == 0 ? "{a}%d" : i % 3 == 1 ? "{b}%d" : "%d", i);
        hold(f, &held[i], name, TTL_MS);
    }
    assert_renewed(f, held, LEASES);
    fall_due();
    server_do(&cluster, "CONFIG RESETSTAT");
    await(f, server_calls(&cluster, "pexpire") >= 3 * LEASES);
    /* One for each third of them, and one each for the last third. */
    assert_int_in_range(server_calls(&cluster, "evalsha"), 2 * (LEASES / 3), 3 * 2 * (LEASES / 3));
    assert_int_equal(server_errors(&cluster, "CROSSSLOT"), 0);
    assert_renewed(f, held, LEASES);
    for (int i = 0; i < LEASES; i++)
        lock_free(f, held[i].lock);
    client_free(f, f->client);
    f->server = &suite_server;
    server_stop(&cluster);
}

/* Whether another process has what the one before had is asked for all at once, and one command may be unanswered. So
 * they wait together: more than a command takes. */
static void more_than_a_command_takes_may_wait(void **state) {
    enum { LEASES = 400 };
    static const char *const durable[] = {"--appendonly", "yes", "--appendfsync", "always", NULL};
    struct fixture *f = *state;
    static struct held held[LEASES];
    struct server kept;
    char name[16];
    server_start(&kept, true, durable);
    f->server = &kept;
    evlock_client_options client_of_one = client_options(f);
    client_of_one.max_inflight = 1;
    f->client = NULL;
    client_new(f, NULL, &client_of_one);
    for (int i = 0; i < LEASES; i++) {
        evlock_options options = renewed("lock:", TTL_MS, &held[i]);
        options.renewal_interval_ms = TTL_MS - 1000; /* none falls due otherwise */
        held[i] = (struct held){0};
        snprintf(name, sizeof(name), "%d", i);
        assert_status(evlock_new(&held[i].lock, f->client, name, EVLOCK_CSTRING, &options), EVLOCK_OK);
        assert_status(await_acquire(f, held[i].lock, NULL), EVLOCK_OK);
        renew_by_script(held[i].lock);
    }
    server_restart(&kept);
    await(f, server_calls(&kept, "pexpire") >= LEASES);
    assert_int_equal(server_calls(&kept, "pexpire"), LEASES);
    /* No more than 100 leases each. */
    assert_int_in_range(server_calls(&kept, "evalsha"), LEASES / 100, LEASES / 10);
    for (int i = 0; i < LEASES; i++) {
        assert_int_equal(held[i].lost.count, 0);
        evlock_free(held[i].lock);
    }
    client_free(f, f->client);
    f->server = &suite_server;
    server_stop(&kept);
}

/* A command has room for some of them. */
static void long_names_share_a_command(void **state) {
    struct fixture *f = *state;
    enum { NAMES = 60 };
    static struct held held[NAMES];
    char name[507];
    memset(name, 'x', sizeof(name));
    for (int i = 0; i < NAMES; i++) {
        evlock_options options = renewed("lock:", TTL_MS, &held[i]);
        snprintf(name, sizeof(name), "%03d", i);
        name[3] = 'x';
        assert_status(evlock_new(&held[i].lock, f->client, name, sizeof(name), &options), EVLOCK_OK);
        assert_status(await_acquire(f, held[i].lock, NULL), EVLOCK_OK);
        renew_by_script(held[i].lock);
    }
    fall_due();
    server_do(f->server, "CONFIG RESETSTAT");
    await(f, server_calls(f->server, "pexpire") >= NAMES);
    assert_int_in_range(server_calls(f->server, "evalsha"), 3, NAMES / 5);
    for (int i = 0; i < NAMES; i++)
        evlock_free(held[i].lock);
}

static void leases_of_other_ttls_go_apart(void **state) {
    struct fixture *f = *state;
    struct held held[4];
    hold(f, &held[0], "a", TTL_MS);
    hold(f, &held[1], "b", TTL_MS);
    hold(f, &held[2], "c", 2 * TTL_MS);
    hold(f, &held[3], "d", 2 * TTL_MS);
    assert_renewed(f, held, 4);
    assert_int_in_range(key_ttl(f->server, "lock:b"), 0, TTL_MS);
    assert_true(key_ttl(f->server, "lock:c") > TTL_MS);
}

/* --- The answers -------------------------------------------------------------------------------------------------- */

static void each_of_many_has_its_own_answer(void **state) {
    struct fixture *f = *state;
    struct held held[6];
    hold_all(f, held, 6);
    fall_due();
    server_do(f->server, "DEL lock:b");
    server_do(f->server, "SET lock:c stranger");
    server_do(f->server, "DEL lock:d");
    server_do(f->server, "RPUSH lock:d stranger");
    server_do(f->server, "PEXPIRE lock:e %d", 10 * TTL_MS);
    server_do(f->server, "PERSIST lock:f");
    for (int i = 1; i < 4; i++) {
        await(f, held[i].lost.count);
        assert_int_equal(held[i].lost.status, EVLOCK_ENOTOWNED);
    }
    run_for(f, 2 * INTERVAL_MS);
    assert_true(key_is(f->server, "lock:c", "stranger", 8));
    assert_true(key_ttl(f->server, "lock:e") > 9 * TTL_MS); /* longer ones stay */
    assert_int_equal(key_ttl(f->server, "lock:f"), -1);
    assert_int_equal(times_logged(f, "f: the key has no expiry"), 1); /* of that alone, and once */
    assert_int_equal(times_logged(f, "the key has no expiry"), 1);
    assert_true(evlock_is_held(held[4].lock) && evlock_is_held(held[5].lock));
    assert_renewed(f, held, 1);
}

/* A user that may do what one lease needs, scripts included; not MGET. */
static void worker_set(struct fixture *f) {
    server_do(f->server, "ACL SETUSER worker on >work resetkeys ~lock:* -@all "
                         "+evalsha +script|load +info +get +set +pexpire +pttl +del");
}

static void client_of_worker(struct fixture *f, int64_t max_inflight) {
    evlock_client_options options = client_options(f);
    worker_set(f);
    options.user = "worker";
    options.password = "work";
    options.max_inflight = max_inflight;
    f->client = NULL;
    client_new(f, NULL, &options);
}

/* The server has forgotten them, and nothing falls due but what that leads to. */
static void hold_three_restarted(struct fixture *f, struct held *held) {
    for (int i = 0; i < 3; i++) {
        evlock_options options = renewed("lock:", TTL_MS, &held[i]);
        options.renewal_interval_ms = TTL_MS - 1000;
        held[i] = (struct held){.lock = lock_new(f, (const char[]){(char)('a' + i), '\0'}, &options)};
        assert_status(await_acquire(f, held[i].lock, NULL), EVLOCK_OK);
        renew_by_script(held[i].lock);
    }
    server_restart(f->server);
    worker_set(f);
}

/* What the server has answered has been heard then, and what that led to has been answered. The lock is not there. */
static void await_answers(struct fixture *f, evlock *lock) {
    for (int i = 0; i < 2; i++)
        assert_int_equal(ask_ttl(f, lock), 0);
}

static void what_is_refused_together_is_asked_alone_at_once(void **state) {
    struct fixture *f = *state;
    struct held held[3];
    client_of_worker(f, 0);
    hold_three_restarted(f, held);
    await(f, server_calls(f->server, "evalsha") >= 2);
    await_answers(f, held[0].lock);
    assert_int_equal(server_calls(f->server, "evalsha"), 1 + 1 + 3); /* the login asks for one, too */
    for (int i = 0; i < 3; i++)
        await(f, held[i].lost.count);
    server_do(f->server, "ACL DELUSER worker");
}

static void what_is_refused_to_each_is_asked_alone(void **state) {
    struct fixture *f = *state;
    struct held held[3];
    client_of_worker(f, 0);
    server_do(f->server, "ACL SETUSER worker +mget -pexpire");
    await_connected(f, f->client);
    server_do(f->server, "CONFIG RESETSTAT");
    hold_all(f, held, 3);
    fall_due();
    await(f, server_calls(f->server, "mget") >= 4);
    assert_true(server_calls(f->server, "evalsha") > 2 * server_calls(f->server, "mget"));
    assert_int_equal(f->connection_states[EVLOCK_AWAY], 0);
    server_do(f->server, "ACL SETUSER worker +pexpire");
    assert_renewed(f, held, 3);
    server_do(f->server, "ACL DELUSER worker");
}

static void what_is_refused_together_is_asked_alone(void **state) {
    struct fixture *f = *state;
    struct held held[3];
    client_of_worker(f, 0);
    hold_all(f, held, 3);
    fall_due(); /* MGET is forbidden */
    assert_renewed(f, held, 3);
    server_do(f->server, "ACL SETUSER worker +mget");
    fall_due();
    assert_renewed(f, held, 3);
    assert_int_equal(server_calls(f->server, "mget"), 0); /* not tried again */
    server_do(f->server, "ACL SETUSER worker resetkeys ~lock:a ~lock:c");
    assert_renewed(f, held, 1);
    server_do(f->server, "CLIENT KILL TYPE normal"); /* what was refused once is tried again by the next connection */
    fall_due();                                      /* one key is forbidden */
    server_do(f->server, "PEXPIRE lock:c %d", TTL_MS / 2);
    await(f, key_ttl(f->server, "lock:c") > TTL_MS * 2 / 3);
    server_do(f->server, "ACL SETUSER worker ~lock:*");
    assert_renewed(f, held, 3);
    server_do(f->server, "ACL DELUSER worker");
}

static void scripts_that_were_lost_are_loaded(void **state) {
    struct fixture *f = *state;
    struct held held[5];
    hold_all(f, held, 5);
    for (int i = 0; i < 3; i++) {
        fall_due();
        server_do(f->server, "SCRIPT FLUSH");
        server_do(f->server, "CONFIG RESETSTAT");
        assert_renewed(f, held, 5);
        assert_int_equal(server_calls(f->server, "script|load"), SCRIPTS); /* all there are, once */
        assert_int_in_range(server_errors(f->server, "NOSCRIPT"), 1, 5);   /* none is refused alone as well */
    }
}

/* The refusal of a batch is the first of two for each of its members; then the script is sent whole, and that it may
 * not be is told: they do not go on. */
static void assert_noscripts(struct fixture *f, int64_t max_inflight, int most, int most_whole) {
    struct held held[3];
    client_of_worker(f, max_inflight);
    hold_three_restarted(f, held);
    server_do(f->server, "ACL SETUSER worker -script");
    await(f, server_refusals(f->server, "eval") >= 3);
    await_answers(f, held[0].lock);
    assert_int_in_range(server_errors(f->server, "NOSCRIPT"), 1 + 2, 1 + most); /* one is the login's */
    assert_int_in_range(server_refusals(f->server, "eval"), 3, most_whole);
    for (int i = 0; i < 3; i++)
        assert_true(evlock_is_held(held[i].lock));
    client_free(f, f->client);
}

static void scripts_that_stay_lost_are_told_of(void **state) {
    struct fixture *f = *state;
    assert_noscripts(f, 0, 1 + 3, 3);         /* together, then each alone */
    assert_noscripts(f, 1, 1 + 3 * 3, 2 + 3); /* each after the refusal of another, which forgets the remedy */
    server_do(f->server, "ACL DELUSER worker");
}

static void a_lost_connection_loses_no_lease(void **state) {
    struct fixture *f = *state;
    struct held held[5];
    hold_all(f, held, 5);
    for (int i = 0; i < 3; i++) {
        fall_due();
        server_do(f->server, "CLIENT PAUSE 3600000 WRITE"); /* what writes waits */
        run_for(f, 2 * INTERVAL_MS);
        server_do(f->server, "CLIENT KILL TYPE normal");
        run_for(f, INTERVAL_MS);
        server_do(f->server, "CLIENT UNPAUSE");
        assert_renewed(f, held, 5);
    }
}

static void a_release_follows_an_unanswered_renewal(void **state) {
    struct fixture *f = *state;
    struct held held[4];
    struct record released[2] = {0};
    hold_all(f, held, 4);
    fall_due();
    server_pause(f->server);
    run_for(f, INTERVAL_MS);
    for (int i = 0; i < 2; i++)
        assert_status(evlock_release(held[i].lock, record_end, &released[i]), EVLOCK_OK);
    lock_free(f, held[2].lock);
    run_for(f, INTERVAL_MS);
    assert_int_equal(released[0].count + released[1].count, 0);
    server_resume(f->server);
    await(f, released[0].count && released[1].count && !key_exists(f->server, "lock:c"));
    for (int i = 0; i < 2; i++) {
        assert_ended(&released[i], EVLOCK_OK);
        assert_false(key_exists(f->server, key_of(&held[i])));
        assert_int_equal(held[i].lost.count, 0);
    }
    assert_renewed(f, &held[3], 1);
}

static void a_release_follows_a_lost_renewal(void **state) {
    struct fixture *f = *state;
    struct held held[3];
    struct record released = {0};
    hold_all(f, held, 3);
    fall_due();
    server_do(f->server, "CLIENT PAUSE 3600000 WRITE");
    run_for(f, 2 * INTERVAL_MS);
    assert_status(evlock_release(held[0].lock, record_end, &released), EVLOCK_OK);
    server_do(f->server, "CLIENT KILL TYPE normal");
    run_for(f, INTERVAL_MS);
    server_do(f->server, "CLIENT UNPAUSE");
    await(f, released.count);
    assert_ended(&released, EVLOCK_OK);
    assert_false(key_exists(f->server, "lock:a"));
    assert_renewed(f, &held[1], 2);
}

/* An exported lease is gone with the last answer to it, the first of the batch before the others'. */
static void members_may_be_exported_meanwhile(void **state) {
    enum { LEASES = 5 };
    struct fixture *f = *state;
    struct held held[LEASES];
    char token[EVLOCK_TOKEN_MAX];
    size_t len;
    hold_all(f, held, LEASES);
    fall_due();
    server_pause(f->server);
    run_for(f, INTERVAL_MS);
    for (int i = 0; i < LEASES; i++)
        assert_status(evlock_export(held[i].lock, token, sizeof(token), &len), EVLOCK_OK);
    server_resume(f->server);
    for (int i = 0; i < LEASES; i++) {
        assert_true(ask_ttl(f, held[i].lock) > 0);
        assert_int_equal(held[i].lost.count, 0);
    }
}

static void a_client_that_goes_leaves_nothing(void **state) {
    struct fixture *f = *state;
    struct held held[3];
    hold_all(f, held, 3);
    fall_due();
    server_pause(f->server);
    run_for(f, INTERVAL_MS);
    client_free(f, f->client);
    server_resume(f->server);
    await(f, server_integer(f->server, "DBSIZE") == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(many_leases_share_a_command),
        TEST_BARE(a_cluster_is_asked_by_hash_tags),
        TEST_BARE(more_than_a_command_takes_may_wait),
        TEST(long_names_share_a_command),
        TEST(leases_of_other_ttls_go_apart),
        TEST(each_of_many_has_its_own_answer),
        TEST_BARE(what_is_refused_together_is_asked_alone),
        TEST_BARE(what_is_refused_together_is_asked_alone_at_once),
        TEST_BARE(what_is_refused_to_each_is_asked_alone),
        TEST(scripts_that_were_lost_are_loaded),
        TEST_BARE(scripts_that_stay_lost_are_told_of),
        TEST(a_lost_connection_loses_no_lease),
        TEST(a_release_follows_an_unanswered_renewal),
        TEST(a_release_follows_a_lost_renewal),
        TEST(members_may_be_exported_meanwhile),
        TEST(a_client_that_goes_leaves_nothing),
    };
    return run_suite("batch", tests);
}
