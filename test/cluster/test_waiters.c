/*
 * Waiters in the queues of locks in a cluster: each hears of its grant on the master of its lock, and goes on waiting
 * where the slot goes. Each test is named after the behaviour that it shows.
 */
#include "clustered.h"

#include <stdio.h>

enum { QUEUES = 3, EACH = 4 };

static evlock *holders[QUEUES];
static evlock *waiters[QUEUES][EACH];
static struct record records[QUEUES][EACH];

static evlock_options queueing(void) {
    return (evlock_options){
        .size = sizeof(evlock_options), .ttl_ms = 20000, .auto_renewal = true, .wait = EVLOCK_WAIT_QUEUE};
}

static long long waiting_at(const evlock *lock) {
    return server_integer(&cluster.nodes[owner_of(lock)], "ZCARD {%s}:queue", name_of(lock));
}

/* A holder on each master, and waiters behind it, each of which is in the queue. */
static void queue_up(struct fixture *f) {
    evlock_options options = queueing();
    for (int i = 0; i < QUEUES; i++) {
        holders[i] = lock_at(f, i, 0, &options);
        assert_status(await_acquire(f, holders[i], NULL), EVLOCK_OK);
        for (int j = 0; j < EACH; j++) {
            records[i][j] = (struct record){0};
            waiters[i][j] = lock_new(f, name_of(holders[i]), &options);
            assert_status(evlock_acquire(waiters[i][j], NULL, record_end, &records[i][j]), EVLOCK_OK);
            await(f, waiting_at(holders[i]) == j + 1);
        }
    }
}

static int granted(int queue) {
    int count = 0;
    for (int j = 0; j < EACH; j++)
        count += records[queue][j].count;
    return count;
}

/* Whoever has the lock gives it back, until all have had it, one at a time. */
static void all_give_it_back(struct fixture *f, int queue) {
    bool had[EACH] = {false};
    for (int given = 0; given < EACH;) {
        await(f, granted(queue) > given);
        for (int j = 0; j < EACH; j++) {
            if (!records[queue][j].count || had[j])
                continue;
            had[j] = true;
            given++;
            assert_ended(&records[queue][j], EVLOCK_OK);
            assert_true(evlock_is_held(waiters[queue][j]));
            assert_int_equal(granted(queue), given);
            assert_status(await_release(f, waiters[queue][j]), EVLOCK_OK);
        }
    }
}

static void all_have_it_in_turn(struct fixture *f, int queue) {
    assert_int_equal(granted(queue), 0);
    assert_status(await_release(f, holders[queue]), EVLOCK_OK);
    all_give_it_back(f, queue);
}

static void grants_are_heard_on_each_master(void **state) {
    struct fixture *f = *state;
    queue_up(f);
    for (int i = 0; i < QUEUES; i++)
        all_have_it_in_turn(f, i);
    assert_int_equal(stats_of(f->client).handed, QUEUES * EACH);
}

static void waiters_go_where_their_slot_goes(void **state) {
    struct fixture *f = *state;
    queue_up(f);
    int slots[QUEUES];
    for (int i = 0; i < QUEUES; i++) {
        slots[i] = slot_of(holders[i]);
        cluster_open(&cluster, slots[i], other_than(i));
        run_for(f, 100);
        cluster_migrate(&cluster, slots[i], other_than(i));
        run_for(f, 100);
        cluster_settle(&cluster, slots[i], other_than(i));
        run_for(f, 100);
    }
    for (int i = 0; i < QUEUES; i++)
        all_have_it_in_turn(f, i);
    for (int i = 0; i < QUEUES; i++)
        cluster_move(&cluster, slots[i], i);
}

static size_t listeners(struct server *server) {
    redisReply *reply = server_ask(server, "PUBSUB CHANNELS evlock:*");
    size_t count = reply->elements;
    freeReplyObject(reply);
    return count;
}

/* Where nobody waited before. */
static void who_waits_listens_where_the_slot_goes(void **state) {
    struct fixture *f = *state;
    evlock_options options = queueing();
    struct record record = {0};
    evlock *holder = lock_at(f, 0, 0, &options), *waiter;
    int slot = slot_of(holder), to = other_than(0);
    assert_status(await_acquire(f, holder, NULL), EVLOCK_OK);
    waiter = lock_new(f, name_of(holder), &options);
    assert_status(evlock_acquire(waiter, NULL, record_end, &record), EVLOCK_OK);
    await(f, waiting_at(holder) == 1 && listeners(&cluster.nodes[0]) == 1);
    assert_int_equal(listeners(&cluster.nodes[to]), 0);
    cluster_move(&cluster, slot, to);
    await(f, listeners(&cluster.nodes[to]) == 1);
    assert_status(await_release(f, holder), EVLOCK_OK);
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    assert_status(await_release(f, waiter), EVLOCK_OK);
    cluster_move(&cluster, slot, 0);
}

/* The queue is halfway: the lock is given back without it, and who waits finds that by looking. */
static void a_release_does_not_wait_for_the_queue(void **state) {
    struct fixture *f = *state;
    queue_up(f);
    int slot = slot_of(holders[0]), to = other_than(0);
    cluster_open(&cluster, slot, to);
    char queue[NAME_SIZE + 16];
    snprintf(queue, sizeof(queue), "{%s}:queue", name_of(holders[0]));
    server_do(&cluster.nodes[0], "MIGRATE 127.0.0.1 %d %s 0 5000", cluster.nodes[to].port, queue);
    assert_status(await_release(f, holders[0]), EVLOCK_OK);
    assert_true(server_errors(&cluster.nodes[0], "TRYAGAIN") > 0);
    assert_int_equal(granted(0), 0);
    cluster_migrate(&cluster, slot, to);
    cluster_settle(&cluster, slot, to);
    all_give_it_back(f, 0);
    cluster_move(&cluster, slot, 0);
}

static void who_gives_up_leaves_the_queue(void **state) {
    struct fixture *f = *state;
    queue_up(f);
    int slot = slot_of(holders[1]);
    cluster_move(&cluster, slot, other_than(1));
    for (int j = 0; j < EACH; j++) {
        assert_status(evlock_cancel(waiters[1][j]), EVLOCK_OK);
        await(f, records[1][j].count == 1);
        assert_ended(&records[1][j], EVLOCK_ECANCELLED);
    }
    assert_status(await_release(f, holders[1]), EVLOCK_OK);
    assert_status(await_try(f, holders[1]), EVLOCK_OK);
    assert_status(await_release(f, holders[1]), EVLOCK_OK);
    cluster_move(&cluster, slot, 1);
}

static void waiters_wait_on_at_the_new_master(void **state) {
    struct fixture *f = *state;
    queue_up(f);
    int slot = slot_of(holders[2]), old = owner_of(holders[2]), owner = old;
    server_kill9(&cluster.nodes[old]);
    await(f, (owner = cluster_owner(&cluster, slot)) >= 0 && owner != old && cluster_agrees(&cluster, slot, owner));
    all_have_it_in_turn(f, 2);
    all_have_it_in_turn(f, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CLUSTERED(grants_are_heard_on_each_master),       CLUSTERED(waiters_go_where_their_slot_goes),
        CLUSTERED(who_waits_listens_where_the_slot_goes), CLUSTERED(a_release_does_not_wait_for_the_queue),
        CLUSTERED(who_gives_up_leaves_the_queue),         CLUSTERED(waiters_wait_on_at_the_new_master),
    };
    return run_clustered("cluster-waiters", tests, NULL);
}
