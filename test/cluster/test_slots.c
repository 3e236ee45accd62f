/*
 * A slot that moves from one master to another, step by step, with every kind of call in every step; and many slots at
 * once under locks that are renewed. Nothing is lost by it, and nothing ends. Each test is named after the behaviour
 * that it shows.
 */
#include "clustered.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum step { BEFORE, OPEN, MIGRATED, SETTLED, STEPS };

static void do_step(enum step step, int slot, int to) {
    switch (step) {
    case OPEN:
        cluster_open(&cluster, slot, to);
        break;
    case MIGRATED:
        cluster_migrate(&cluster, slot, to);
        break;
    case SETTLED:
        cluster_settle(&cluster, slot, to);
        break;
    default:
        break;
    }
}

static evlock_options renewed(void) {
    return (evlock_options){.size = sizeof(evlock_options), .ttl_ms = 3000, .auto_renewal = true};
}

/* In each step, with a lock that was taken before the first, and one of the same slot that is taken in it. */
static void every_call_is_answered_in_every_step(void **state) {
    struct fixture *f = *state;
    evlock *held = lock_at(f, 0, 0, NULL);
    int slot = slot_of(held), to = other_than(0);
    char name[NAME_SIZE * 2];
    snprintf(name, sizeof(name), "{%s}:other", name_of(held));
    evlock *lock = lock_new(f, name, NULL), *rival = lock_new(f, name, NULL);
    assert_status(await_acquire(f, held, NULL), EVLOCK_OK);
    for (enum step step = BEFORE; step < STEPS; step++) {
        do_step(step, slot, to);
        assert_status(await_extend(f, held, 60000, EVLOCK_EXTEND_REPLACE), EVLOCK_OK);
        assert_true(ask_owned(f, held) && ask_ttl(f, held) > 30000);
        assert_status(await_try(f, lock), EVLOCK_OK);
        assert_true(ask_owned(f, lock) && ask_ttl(f, lock) > 0);
        assert_status(await_extend(f, lock, 40000, EVLOCK_EXTEND_ADD), EVLOCK_OK);
        assert_status(await_try(f, rival), EVLOCK_EHELD);
        assert_status(await_release(f, lock), EVLOCK_OK);
        assert_false(ask_locked(f, rival));
        assert_status(await_try(f, rival), EVLOCK_OK);
        assert_status(await_break(f, lock), EVLOCK_OK);
        assert_status(await_release(f, rival), EVLOCK_ENOTOWNED);
        assert_true(evlock_is_held(held));
    }
    assert_int_equal(owner_of(held), to);
    assert_true(is_kept(held));
    assert_status(await_release(f, held), EVLOCK_OK);
    assert_true(stats_of(f->client).redirects > 0);
    cluster_move(&cluster, slot, 0);
}

/* Renewals find it in each step, and go on as the new master can. */
static void renewals_go_on_in_every_step(void **state) {
    struct fixture *f = *state;
    evlock_options options = renewed();
    options.renewal_interval_ms = 50;
    evlock *lock = lock_at(f, 0, 0, &options);
    int slot = slot_of(lock), to = other_than(0);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    for (enum step step = BEFORE; step < STEPS; step++) {
        do_step(step, slot, to);
        uint64_t before = stats_of(f->client).renewals;
        await(f, stats_of(f->client).renewals >= before + 4);
        assert_true(evlock_is_held(lock));
    }
    assert_int_equal(owner_of(lock), to);
    server_do(&cluster.nodes[to], "CONFIG RESETSTAT");
    uint64_t before = stats_of(f->client).renewals;
    await(f, stats_of(f->client).renewals >= before + 4);
    assert_true(server_calls(&cluster.nodes[to], server_refreshes(&cluster.nodes[to]) ? "set" : "evalsha") >= 4);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_false(key_exists(&cluster.nodes[to], name_of(lock)));
    cluster_move(&cluster, slot, 0);
}

/* The first master has a command for it, and so has the second, but for us. */
static void a_release_behind_a_move_goes_by_script_where_it_must(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_at(f, 0, 0, NULL);
    int slot = slot_of(lock), to = other_than(0);
    char command[80];
    snprintf(command, sizeof(command), "ACL SETUSER default%s", deleting_rights(&cluster.nodes[to]) + strlen("-del"));
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    cluster_move(&cluster, slot, to);
    server_do(&cluster.nodes[to], command);
    for (int nth = 0; nth < 2; nth++) {
        assert_status(await_release(f, lock), EVLOCK_OK);
        assert_false(key_exists(&cluster.nodes[to], name_of(lock)));
        assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    }
    server_do(&cluster.nodes[to], "ACL SETUSER default +@all");
    assert_status(await_release(f, lock), EVLOCK_OK);
    cluster_move(&cluster, slot, 0);
}

/* What is taken in a step is given back in the next. */
static void what_is_taken_in_one_step_is_given_back_in_the_next(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_at(f, 1, 0, NULL);
    int slot = slot_of(lock), to = other_than(1);
    for (enum step step = BEFORE; step < STEPS; step++) {
        do_step(step, slot, to);
        if (step > BEFORE)
            assert_status(await_release(f, lock), EVLOCK_OK);
        assert_status(await_try(f, lock), EVLOCK_OK);
    }
    assert_true(is_kept(lock));
    assert_status(await_release(f, lock), EVLOCK_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(server_integer(&cluster.nodes[i], "DBSIZE"), 0);
    cluster_move(&cluster, slot, 1);
}

/* Its counter may be halfway: the acquire waits for that, and no attempt is lost by it. */
static void a_fence_waits_for_its_counter(void **state) {
    struct fixture *f = *state;
    evlock_options options = {.size = sizeof(options), .fence = true};
    evlock *lock = lock_at(f, 0, 0, &options);
    struct record record = {0};
    int slot = slot_of(lock), to = other_than(0);
    assert_status(await_try(f, lock), EVLOCK_OK);
    uint64_t fence = evlock_fence(lock);
    assert_status(await_release(f, lock), EVLOCK_OK);
    cluster_open(&cluster, slot, to);
    evlock_acquire_options once = {.size = sizeof(once), .max_attempts = 1};
    assert_status(evlock_acquire(lock, &once, record_end, &record), EVLOCK_OK);
    await(f, server_errors(&cluster.nodes[0], "TRYAGAIN") > 0);
    assert_int_equal(record.count, 0);
    cluster_migrate(&cluster, slot, to);
    cluster_settle(&cluster, slot, to);
    await(f, record.count == 1);
    assert_ended(&record, EVLOCK_OK);
    assert_true(evlock_fence(lock) > fence);
    assert_status(await_release(f, lock), EVLOCK_OK);
    cluster_move(&cluster, slot, 0);
}

/* A move that is not finished is no reason to try for ever. */
static void a_move_that_stands_still_ends_a_try(void **state) {
    struct fixture *f = *state;
    evlock_options options = {.size = sizeof(options), .fence = true};
    evlock *lock = lock_at(f, 0, 0, &options);
    int slot = slot_of(lock);
    assert_status(await_try(f, lock), EVLOCK_OK);
    assert_status(await_release(f, lock), EVLOCK_OK);
    cluster_open(&cluster, slot, other_than(0));
    assert_status(await_try(f, lock), EVLOCK_EREFUSED);
    assert_says(f->ended.error, "TRYAGAIN");
    cluster_cancel(&cluster, slot);
    assert_status(await_try(f, lock), EVLOCK_OK);
}

static void a_cancelled_move_leaves_the_lock(void **state) {
    struct fixture *f = *state;
    evlock_options options = renewed();
    evlock *held = lock_at(f, 2, 0, &options);
    int slot = slot_of(held);
    assert_status(await_acquire(f, held, NULL), EVLOCK_OK);
    cluster_open(&cluster, slot, other_than(2));
    uint64_t renewals = stats_of(f->client).renewals;
    await(f, stats_of(f->client).renewals > renewals + 1);
    cluster_cancel(&cluster, slot);
    renewals = stats_of(f->client).renewals;
    await(f, stats_of(f->client).renewals > renewals + 1);
    assert_true(evlock_is_held(held) && is_kept(held));
}

/* Who sends elsewhere knows more than the table: it is asked for its own, each time. */
static void who_sends_elsewhere_is_asked_for_its_table(void **state) {
    struct fixture *f = *state;
    evlock *moved[2];
    for (int i = 0; i < 3; i++)
        assert_status(await_try(f, lock_at(f, i, 9, NULL)), EVLOCK_OK); /* all are connected */
    for (int i = 0; i < 2; i++) {
        moved[i] = lock_at(f, 0, 0, NULL); /* another each time */
        cluster_move(&cluster, slot_of(moved[i]), other_than(0));
        long long asked = server_calls(&cluster.nodes[0], "cluster|nodes");
        assert_status(await_try(f, moved[i]), EVLOCK_OK);
        await(f, server_calls(&cluster.nodes[0], "cluster|nodes") > asked);
    }
    for (int i = 0; i < 2; i++) {
        assert_status(await_release(f, moved[i]), EVLOCK_OK);
        cluster_move(&cluster, slot_of(moved[i]), 0);
    }
}

/* How many clients wait for replicas. */
static const char blocked[] = "return tonumber(string.match(redis.call('INFO', 'clients'), 'blocked_clients:(%d+)'))";

/* The new master takes it by itself, and the others hear that. The old one is not told: in Valkey 8 it would tell its
 * replicas first, all of them. */
static void take_slot(struct fixture *f, int slot, int to) {
    server_do(&cluster.nodes[to], "CLUSTER SETSLOT %d IMPORTING %s", slot, cluster.ids[cluster_owner(&cluster, slot)]);
    cluster_migrate(&cluster, slot, to);
    server_do(&cluster.nodes[to], "CLUSTER SETSLOT %d NODE %s", slot, cluster.ids[to]);
    await(f, cluster_agrees(&cluster, slot, to));
}

/* They say that they have what the lock's key was there, and may say so after it has gone elsewhere. */
static void replicas_of_the_old_master_do_not_count(void **state) {
    struct fixture *f = *state;
    evlock_options options = {.size = sizeof(options), .min_replicas = 1, .replica_timeout_ms = 4000};
    evlock *lock = lock_at(f, 0, 0, &options);
    struct record record = {0};
    int slot = slot_of(lock), to = other_than(0), replica = cluster_replica_of(&cluster, 0);
    evlock_acquire_options once = {.size = sizeof(once), .max_attempts = 1};
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_status(await_release(f, lock), EVLOCK_OK);
    server_pause(&cluster.nodes[replica]);
    assert_status(evlock_acquire(lock, &once, record_end, &record), EVLOCK_OK);
    await(f, server_integer(&cluster.nodes[0], "EVAL %s 0", blocked) == 1);
    take_slot(f, slot, to);
    evlock *same = lock_new(f, name_of(lock), NULL);
    assert_true(ask_locked(f, same)); /* so that the client knows where the slot is */
    server_resume(&cluster.nodes[replica]);
    await(f, record.count == 1);
    assert_ended(&record, EVLOCK_EREPLICAS);
    assert_says(record.error, "another master");
    await(f, !ask_locked(f, same));
    cluster_move(&cluster, slot, 0);
}

static int lost_count;

static void count_loss(evlock *lock, int status, void *arg) {
    (void)lock, (void)status, (void)arg;
    lost_count++;
}

/* A thousand locks, of which many are in slots that move while they are renewed. */
static void none_of_many_renewed_locks_is_lost(void **state) {
    enum { MANY = 1000, MOVED = 12 };
    struct fixture *f = *state;
    static evlock *locks[MANY];
    static struct record records[MANY];
    evlock_options options = renewed();
    options.on_lost = count_loss;
    memset(records, 0, sizeof(records));
    lost_count = 0;
    char tag[MOVED][NAME_SIZE];
    int slots[MOVED];
    for (int i = 0; i < MOVED; i++) {
        cluster_key(&cluster, i % 3, i / 3, tag[i], NAME_SIZE);
        slots[i] = cluster_slot(&cluster, tag[i]);
    }
    for (int i = 0; i < MANY; i++) {
        char name[NAME_SIZE * 2];
        snprintf(name, sizeof(name), i % 2 ? "{%s}%d" : "%s%d", tag[i % MOVED], i);
        assert_status(evlock_new(&locks[i], f->client, name, EVLOCK_CSTRING, &options), EVLOCK_OK);
        assert_status(evlock_acquire(locks[i], NULL, record_end, &records[i]), EVLOCK_OK);
    }
    for (int i = 0; i < MANY; i++)
        await(f, records[i].count == 1 && records[i].status == EVLOCK_OK);
    for (int i = 0; i < MOVED; i++) {
        int to = other_than(cluster_owner(&cluster, slots[i]));
        cluster_open(&cluster, slots[i], to);
        run_for(f, 50);
        cluster_migrate(&cluster, slots[i], to);
        run_for(f, 50);
        cluster_settle(&cluster, slots[i], to);
    }
    uint64_t renewals = stats_of(f->client).renewals;
    await(f, stats_of(f->client).renewals > renewals + 2U * MANY);
    assert_int_equal(lost_count, 0);
    for (int i = 0; i < MANY; i++)
        assert_true(evlock_is_held(locks[i]));
    for (int i = 0; i < MANY; i++)
        evlock_free(locks[i]);
    for (int i = 0; i < 3; i++)
        await(f, server_integer(&cluster.nodes[i], "DBSIZE") == 0);
    for (int i = 0; i < MOVED; i++)
        cluster_move(&cluster, slots[i], i % 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CLUSTERED(every_call_is_answered_in_every_step),
        CLUSTERED(renewals_go_on_in_every_step),
        CLUSTERED(a_release_behind_a_move_goes_by_script_where_it_must),
        CLUSTERED(what_is_taken_in_one_step_is_given_back_in_the_next),
        CLUSTERED(a_fence_waits_for_its_counter),
        CLUSTERED(a_move_that_stands_still_ends_a_try),
        CLUSTERED(a_cancelled_move_leaves_the_lock),
        CLUSTERED(replicas_of_the_old_master_do_not_count),
        CLUSTERED(none_of_many_renewed_locks_is_lost),
        CLUSTERED(who_sends_elsewhere_is_asked_for_its_table),
    };
    return run_clustered("cluster-slots", tests, NULL);
}
