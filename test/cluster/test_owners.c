/*
 * Slots that have other masters than before, by whatever way: what of their locks is kept, what is told to be lost, and
 * who settles what was on its way. Each test is named after the behaviour that it shows.
 */
#include "clustered.h"

#include <stdio.h>

/* So long that nothing is renewed, and no timeout ends, within a test. */
enum { NEVER_MS = 10 * WAIT_MS };

static struct record losses;

static evlock_options kept_for_long(void) {
    losses = (struct record){0};
    return (evlock_options){
        .size = sizeof(evlock_options),
        .ttl_ms = 3 * NEVER_MS,
        .renewal_interval_ms = NEVER_MS,
        .auto_renewal = true,
        .on_lost = record_end,
        .arg = &losses,
    };
}

static evlock *neighbour_of(struct fixture *f, const evlock *lock) {
    char name[NAME_SIZE * 2];
    snprintf(name, sizeof(name), "{%s}:other", name_of(lock));
    return lock_new(f, name, NULL);
}

/* --- Whether the keys came along ---------------------------------------------------------------------------------- */

/* The client hears of the new master by another lock of the slot. */
static void keys_that_did_not_come_along_are_told_at_once(void **state) {
    struct fixture *f = *state;
    evlock_options options = kept_for_long();
    evlock *held = lock_at(f, 0, 0, &options), *untouched = lock_at(f, 0, 1, &options), *other = neighbour_of(f, held);
    assert_status(await_acquire(f, held, NULL), EVLOCK_OK);
    assert_status(await_acquire(f, untouched, NULL), EVLOCK_OK);
    int slot = slot_of(held), to = other_than(0);
    cluster_open(&cluster, slot, to);
    server_do(&cluster.nodes[to], "CLUSTER SETSLOT %d NODE %s", slot, cluster.ids[to]);
    await(f, cluster_agrees(&cluster, slot, to));
    assert_int_equal(losses.count, 0);
    assert_false(ask_locked(f, other));
    await(f, losses.count > 0);
    assert_ended(&losses, EVLOCK_EDATALOSS);
    assert_false(evlock_is_held(held));
    assert_true(evlock_is_held(untouched));
    cluster_move(&cluster, slot, 0);
}

/* It hears of it by the table alone, which it reads when another slot has moved. */
static void keys_that_did_not_come_along_are_told_by_the_table(void **state) {
    struct fixture *f = *state;
    evlock_options options = kept_for_long();
    evlock *held = lock_at(f, 0, 0, &options), *other = lock_at(f, 0, 1, NULL);
    assert_status(await_acquire(f, held, NULL), EVLOCK_OK);
    int slots[] = {slot_of(held), slot_of(other)}, to = other_than(0);
    for (int i = 0; i < 2; i++) {
        cluster_open(&cluster, slots[i], to);
        server_do(&cluster.nodes[to], "CLUSTER SETSLOT %d NODE %s", slots[i], cluster.ids[to]);
        await(f, cluster_agrees(&cluster, slots[i], to));
    }
    assert_false(ask_locked(f, other));
    await(f, losses.count > 0);
    assert_ended(&losses, EVLOCK_EDATALOSS);
    for (int i = 0; i < 2; i++)
        cluster_move(&cluster, slots[i], 0);
}

static void keys_that_came_along_are_found_at_once(void **state) {
    struct fixture *f = *state;
    evlock_options options = kept_for_long();
    evlock *held = lock_at(f, 0, 0, &options), *other = neighbour_of(f, held);
    assert_status(await_acquire(f, held, NULL), EVLOCK_OK);
    int slot = slot_of(held);
    uint64_t renewals = stats_of(f->client).renewals;
    cluster_move(&cluster, slot, other_than(0));
    assert_false(ask_locked(f, other));
    await(f, stats_of(f->client).renewals == renewals + 1);
    assert_int_equal(losses.count, 0);
    assert_true(evlock_is_held(held) && is_kept(held));
    cluster_move(&cluster, slot, 0);
}

/* --- What was on its way ------------------------------------------------------------------------------------------ */

static void begin_unhurried(struct fixture *f) {
    evlock_client_options options = client_options(f);
    options.command_timeout_ms = NEVER_MS;
    client_new(f, cluster.url, &options);
    await_connected(f, f->client);
}

/* An acquire that a stopped master may have done, and that nobody waits for any more. */
static evlock *leave_astray(struct fixture *f, int opened_to) {
    evlock_options options = {.size = sizeof(options), .ttl_ms = 3 * NEVER_MS};
    evlock *lock = lock_at(f, 0, 0, &options);
    static struct record record;
    record = (struct record){0};
    assert_status(await_try(f, lock), EVLOCK_OK);
    assert_status(await_release(f, lock), EVLOCK_OK);
    int master = owner_of(lock);
    if (opened_to >= 0)
        cluster_open(&cluster, slot_of(lock), opened_to);
    server_pause(&cluster.nodes[master]);
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    run_for(f, 1); /* it is sent when the loop turns */
    assert_status(evlock_cancel(lock), EVLOCK_OK);
    await(f, record.count == 1);
    return lock;
}

static void kill_the_stopped(void) {
    for (size_t i = 0; i < cluster.len; i++)
        if (cluster.nodes[i].paused)
            server_kill9(&cluster.nodes[i]);
}

/* A client that is closed waits for all that it left, and would for longer than this test. */
static void all_is_settled(struct fixture *f) {
    while (f->locks_len > 0)
        lock_free(f, f->locks[f->locks_len - 1]);
    evlock_client *client = f->client;
    client_forget(f, client);
    assert_status(await_close(f, client), EVLOCK_OK);
}

/* It has the place of the master before, whatever was owed there. Nothing is sent by which the client would hear of it:
 * the table says so. */
static void an_heir_settles_what_its_master_owed(void **state) {
    struct fixture *f = *state;
    begin_unhurried(f);
    assert_status(await_acquire(f, lock_at(f, 1, 0, NULL), NULL), EVLOCK_OK);
    leave_astray(f, -1);
    kill_the_stopped();
    all_is_settled(f);
}

/* Whether what is asked about this slot by now goes to where it is answered. */
static bool is_answered(struct fixture *f, const evlock *lock) {
    static struct record asked[MAX_LOCKS];
    struct record *record = &asked[f->locks_len];
    evlock *other = neighbour_of(f, lock);
    *record = (struct record){0};
    assert_status(evlock_acquire(other, NULL, record_end, record), EVLOCK_OK);
    run_for(f, 300);
    return record->count == 1 && record->status == EVLOCK_OK;
}

/* The slot is elsewhere by then. */
static void who_lost_it_settles_it(void **state) {
    struct fixture *f = *state;
    begin_unhurried(f);
    assert_status(await_acquire(f, lock_at(f, 1, 0, NULL), NULL), EVLOCK_OK);
    int to = other_than(0);
    evlock *lock = leave_astray(f, to);
    server_do(&cluster.nodes[to], "CLUSTER SETSLOT %d NODE %s", slot_of(lock), cluster.ids[to]);
    await(f, is_answered(f, lock));
    kill_the_stopped();
    all_is_settled(f);
}

/* --- Who waits ---------------------------------------------------------------------------------------------------- */

static int listeners_at(int node) {
    redisReply *reply = server_ask(&cluster.nodes[node], "PUBSUB CHANNELS evlock:*");
    int count = (int)reply->elements;
    freeReplyObject(reply);
    return count;
}

static long long waiting_at(const evlock *lock) {
    return server_integer(&cluster.nodes[owner_of(lock)], "ZCARD {%s}:queue", name_of(lock));
}

static void a_waiter_listens_where_its_slot_arrives(void **state) {
    struct fixture *f = *state;
    evlock_options options = {.size = sizeof(options), .ttl_ms = NEVER_MS, .wait = EVLOCK_WAIT_QUEUE};
    evlock *holder = lock_at(f, 0, 0, &options), *waiter = lock_new(f, name_of(holder), &options);
    struct record record = {0};
    int slot = slot_of(holder), to = other_than(0);
    assert_status(await_acquire(f, holder, NULL), EVLOCK_OK);
    assert_status(evlock_acquire(waiter, NULL, record_end, &record), EVLOCK_OK);
    await(f, listeners_at(owner_of(holder)) == 1 && waiting_at(holder) == 1);
    assert_int_equal(listeners_at(to), 0);
    cluster_move(&cluster, slot, to);
    await(f, listeners_at(to) == 1);
    assert_status(await_release(f, holder), EVLOCK_OK);
    await(f, record.count == 1);
    assert_ended(&record, EVLOCK_OK);
    assert_status(await_release(f, waiter), EVLOCK_OK);
    cluster_move(&cluster, slot, 0);
}

/* --- Moves that are cancelled, or taken back ---------------------------------------------------------------------- */

/* The key is at a master that the slot never came to. Nobody can protect a lock from that but who cancels. */
static void a_lock_from_behind_ask_is_lost_by_a_cancelled_move(void **state) {
    struct fixture *f = *state;
    evlock_options options = {.size = sizeof(options), .ttl_ms = NEVER_MS};
    evlock *behind = lock_at(f, 0, 0, &options), *rival = lock_at(f, 0, 0, &options);
    int slot = slot_of(behind), to = other_than(0);
    cluster_open(&cluster, slot, to);
    assert_status(await_try(f, behind), EVLOCK_OK);
    assert_status(await_try(f, rival), EVLOCK_EHELD);
    assert_int_equal(server_integer(&cluster.nodes[to], "DBSIZE"), 1);
    cluster_cancel(&cluster, slot);
    assert_status(await_try(f, rival), EVLOCK_OK);
    assert_true(evlock_is_held(behind) && evlock_is_held(rival));                              /* two believe, */
    assert_status(await_extend(f, behind, NEVER_MS, EVLOCK_EXTEND_REPLACE), EVLOCK_ENOTOWNED); /* until then */
    assert_false(evlock_is_held(behind));
    assert_true(evlock_is_held(rival) && is_kept(rival));
    assert_status(await_release(f, rival), EVLOCK_OK);
}

/* Each master has a channel of its own, so the queue has the waiter twice after its slot went elsewhere, once by each.
 * It leaves only by the one that it looked from last. */
static void who_gives_up_elsewhere_may_be_granted_the_lock_for_a_ttl(void **state) {
    struct fixture *f = *state;
    evlock_options options = {.size = sizeof(options), .ttl_ms = NEVER_MS, .wait = EVLOCK_WAIT_QUEUE};
    evlock *holder = lock_at(f, 0, 0, &options);
    options.ttl_ms = 1500;
    evlock *waiter = lock_at(f, 0, 0, &options);
    struct record record = {0};
    int slot = slot_of(holder), to = other_than(0);
    assert_status(await_acquire(f, holder, NULL), EVLOCK_OK);
    assert_status(evlock_acquire(waiter, NULL, record_end, &record), EVLOCK_OK);
    await(f, listeners_at(owner_of(holder)) == 1 && waiting_at(holder) == 1);
    cluster_move(&cluster, slot, to);
    await(f, waiting_at(holder) == 2);
    assert_status(evlock_cancel(waiter), EVLOCK_OK);
    await(f, record.count == 1 && waiting_at(holder) == 1);
    cluster_move(&cluster, slot, 0);
    assert_status(await_release(f, holder), EVLOCK_OK);
    assert_true(ask_locked(f, holder)); /* by nobody */
    await(f, !ask_locked(f, holder));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CLUSTERED(keys_that_did_not_come_along_are_told_at_once),
        CLUSTERED(keys_that_did_not_come_along_are_told_by_the_table),
        CLUSTERED(keys_that_came_along_are_found_at_once),
        CLUSTERED(a_waiter_listens_where_its_slot_arrives),
        CLUSTERED(a_lock_from_behind_ask_is_lost_by_a_cancelled_move),
        CLUSTERED(who_gives_up_elsewhere_may_be_granted_the_lock_for_a_ttl),
        CLUSTERED_BARE(an_heir_settles_what_its_master_owed),
        CLUSTERED_BARE(who_lost_it_settles_it),
    };
    return run_clustered("cluster-owners", tests, NULL);
}
