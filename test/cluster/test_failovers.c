/*
 * Masters that fail, or are taken over from, under locks that are held, renewed and waited for. What the new master has
 * is kept, and held on. Each test is named after the behaviour that it shows.
 */
#include "clustered.h"

#include <signal.h>
#include <stdio.h>

enum { MANY = 60, TTL = 10000 };

static evlock *locks[MANY];
static struct record records[MANY];
static struct record losses;

static evlock_options renewed(void) {
    return (evlock_options){
        .size = sizeof(evlock_options),
        .ttl_ms = TTL,
        .renewal_interval_ms = 500,
        .auto_renewal = true,
        .on_lost = record_end,
        .arg = &losses,
    };
}

/* On all masters; and each replica has them. */
static void hold_many(struct fixture *f) {
    evlock_options options = renewed();
    losses = (struct record){0};
    for (int i = 0; i < MANY; i++) {
        records[i] = (struct record){0};
        locks[i] = lock_at(f, i % 3, i / 3, &options);
        assert_status(evlock_acquire(locks[i], NULL, record_end, &records[i]), EVLOCK_OK);
    }
    for (int i = 0; i < MANY; i++)
        await(f, records[i].count == 1 && records[i].status == EVLOCK_OK);
    for (int i = 0; i < 3; i++) {
        int master = owner_of(locks[i]), replica = cluster_replica_of(&cluster, master);
        await(f, server_integer(&cluster.nodes[replica], "DBSIZE") == server_integer(&cluster.nodes[master], "DBSIZE"));
    }
}

static void all_are_held_on(struct fixture *f) {
    uint64_t renewals = stats_of(f->client).renewals;
    await(f, stats_of(f->client).renewals >= renewals + 2U * MANY);
    assert_int_equal(losses.count, 0);
    for (int i = 0; i < MANY; i++)
        assert_true(evlock_is_held(locks[i]) && is_kept(locks[i]));
}

static void all_can_be_given_back(struct fixture *f) {
    for (int i = 0; i < MANY; i++) {
        assert_status(await_release(f, locks[i]), EVLOCK_OK);
        assert_status(await_try(f, locks[i]), EVLOCK_OK);
        assert_status(await_release(f, locks[i]), EVLOCK_OK);
    }
}

/* The loop runs while another process is waited for. */
static int await_heir(struct fixture *f, int slot, int old) {
    int owner = old;
    await(f, (owner = cluster_owner(&cluster, slot)) >= 0 && owner != old && cluster_agrees(&cluster, slot, owner));
    return owner;
}

static void a_planned_failover_loses_nothing(void **state) {
    struct fixture *f = *state;
    hold_many(f);
    int slot = slot_of(locks[0]), old = owner_of(locks[0]);
    cluster_fail_over(&cluster, cluster_replica_of(&cluster, old), "");
    await_heir(f, slot, old);
    all_are_held_on(f);
    all_can_be_given_back(f);
}

static void a_takeover_is_followed(void **state) {
    struct fixture *f = *state;
    hold_many(f);
    int slot = slot_of(locks[1]), old = owner_of(locks[1]);
    cluster_fail_over(&cluster, cluster_replica_of(&cluster, old), "TAKEOVER");
    await_heir(f, slot, old);
    all_are_held_on(f);
    all_can_be_given_back(f);
}

static void a_killed_master_is_replaced(void **state) {
    struct fixture *f = *state;
    hold_many(f);
    int slot = slot_of(locks[2]), old = owner_of(locks[2]);
    server_kill9(&cluster.nodes[old]);
    await_heir(f, slot, old);
    all_are_held_on(f);
    all_can_be_given_back(f);
}

/* What was on its way when the master was killed is settled or undone: nothing is left on any server. */
static void nothing_is_left_of_what_was_on_its_way(void **state) {
    struct fixture *f = *state;
    evlock_options options = {.size = sizeof(options), .ttl_ms = 60000};
    static evlock *tries[MAX_LOCKS / 2];
    static struct record ended[MAX_LOCKS / 2];
    enum { TRIES = MAX_LOCKS / 2 };
    for (int i = 0; i < TRIES; i++) {
        ended[i] = (struct record){0};
        tries[i] = lock_at(f, i % 3, i / 3, &options);
    }
    assert_status(await_try(f, tries[0]), EVLOCK_OK);
    int old = owner_of(tries[0]), slot = slot_of(tries[0]);
    server_pause(&cluster.nodes[old]);
    for (int i = 1; i < TRIES; i++)
        assert_status(evlock_acquire(tries[i], NULL, record_end, &ended[i]), EVLOCK_OK);
    run_for(f, 100);
    server_kill9(&cluster.nodes[old]);
    await_heir(f, slot, old);
    for (int i = 1; i < TRIES; i++)
        await(f, ended[i].count == 1 && ended[i].status == EVLOCK_OK);
    for (int i = 1; i < TRIES; i++)
        assert_status(await_release(f, tries[i]), EVLOCK_OK);
    for (int i = TRIES; i-- > 0;)
        lock_free(f, tries[i]);
    evlock_client *client = f->client;
    client_forget(f, client);
    assert_status(await_close(f, client), EVLOCK_OK);
    for (size_t i = 0; i < cluster.len; i++)
        if (cluster.nodes[i].pid)
            await(f, server_integer(&cluster.nodes[i], "DBSIZE") == 0);
}

/* A shard that is away holds up its own locks alone. */
static void other_masters_serve_meanwhile(void **state) {
    struct fixture *f = *state;
    evlock_options options = {.size = sizeof(options), .fail_when_away = true};
    evlock *here = lock_at(f, 0, 0, &options), *there = lock_at(f, 1, 0, &options);
    assert_status(await_acquire(f, here, NULL), EVLOCK_OK);
    int old = owner_of(here);
    assert_status(await_release(f, here), EVLOCK_OK);
    server_kill9(&cluster.nodes[old]);
    await(f, evlock_client_connection(f->client) == EVLOCK_AWAY);
    assert_status(await_acquire(f, here, NULL), EVLOCK_EUNREACHABLE);
    for (int i = 0; i < 5; i++) {
        assert_status(await_acquire(f, there, NULL), EVLOCK_OK);
        assert_status(await_release(f, there), EVLOCK_OK);
    }
    await(f, evlock_client_connection(f->client) == EVLOCK_CONNECTED);
    assert_status(await_acquire(f, here, NULL), EVLOCK_OK);
}

static evlock_client_options unhurried(struct fixture *f) {
    evlock_client_options options = client_options(f);
    options.command_timeout_ms = options.connect_timeout_ms = 4 * WAIT_MS;
    return options;
}

/* The client's own timeouts have not ended when it is served: it asks elsewhere, and leaves what is silent. */
static void is_served_by_the_heir(struct fixture *f, evlock *lock, evlock *other) {
    struct record record = {0};
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_status(await_release(f, lock), EVLOCK_OK);
    if (other)
        assert_status(await_acquire(f, other, NULL), EVLOCK_OK);
    server_pause(&cluster.nodes[owner_of(lock)]);
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    await(f, record.count == 1);
    assert_ended(&record, EVLOCK_OK);
    assert_true(is_kept(lock));
    assert_status(await_release(f, lock), EVLOCK_OK);
}

static void a_silent_master_is_left_when_another_has_its_slots(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = unhurried(f);
    client_new(f, cluster.url, &options);
    is_served_by_the_heir(f, lock_at(f, 0, 0, NULL), lock_at(f, 1, 0, NULL));
}

/* No other master is connected to: the scout goes, and not to where nobody answers. */
static void the_only_master_that_was_needed_is_left_too(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = unhurried(f);
    client_new(f, cluster.url, &options);
    is_served_by_the_heir(f, lock_at(f, 0, 0, NULL), NULL);
}

/* Nor is a call told that they are. */
static void a_client_begins_where_its_first_addresses_are_away(void **state) {
    struct fixture *f = *state;
    evlock_options options = {.size = sizeof(options), .fail_when_away = true};
    char url[256];
    server_kill9(&cluster.nodes[0]);
    snprintf(url, sizeof(url), "%s+cluster://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d", server_scheme(),
             cluster.nodes[0].port, cluster.nodes[0].port == 1 ? 2 : 1, cluster.nodes[1].port);
    client_new(f, url, NULL);
    assert_status(await_acquire(f, lock_at(f, 1, 0, &options), NULL), EVLOCK_OK);
    assert_int_equal(f->connection_states[EVLOCK_AWAY], 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CLUSTERED(a_planned_failover_loses_nothing),
        CLUSTERED(a_takeover_is_followed),
        CLUSTERED(a_killed_master_is_replaced),
        CLUSTERED(nothing_is_left_of_what_was_on_its_way),
        CLUSTERED(other_masters_serve_meanwhile),
        CLUSTERED_BARE(a_client_begins_where_its_first_addresses_are_away),
        CLUSTERED_BARE(a_silent_master_is_left_when_another_has_its_slots),
        CLUSTERED_BARE(the_only_master_that_was_needed_is_left_too),
    };
    return run_clustered("cluster-failovers", tests, NULL);
}
