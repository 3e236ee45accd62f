/*
 * The process stands still for longer than it waits for a node, while all nodes go on: their answers are read before
 * any of them is done without. Each test is named after the behaviour that it shows.
 */
#include "nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    PATIENCE_MS = 500, /* how long an answer is waited for */
    STALL_MS = 700,
    ANSWER_MS = 10, /* what a node takes at least, that is not waited for by who gives up at once */
    TRIALS = 20,
};

static evlock_options impatient_options(void) {
    evlock_options options = quick_options();
    options.node_timeout_ms = PATIENCE_MS;
    options.max_attempts = EVLOCK_TRY;
    return options;
}

static void pause_all(void) {
    for (size_t i = 0; i < NODES; i++)
        server_pause(&nodes[i]);
}

static void resume_all(void) {
    for (size_t i = 0; i < NODES; i++)
        server_resume(&nodes[i]);
}

/* The nodes answer what they were sent while this process stands still. */
static void stand_still_while_they_answer(struct fixture *f) {
    run_for(f, 50);
    resume_all();
    usleep(STALL_MS * 1000);
}

static void an_attempt_that_was_answered_succeeds(void **state) {
    struct fixture *f = *state;
    evlock_options options = impatient_options();
    evlock *lock = lock_new(f, "a", &options);
    pause_all();
    assert_status(evlock_acquire(lock, NULL, record_end, &f->ended), EVLOCK_OK);
    stand_still_while_they_answer(f);
    await(f, f->ended.count);
    assert_ended(&f->ended, EVLOCK_OK);
    await(f, nodes_with(lock) == NODES);
}

static void an_attempt_that_draws_a_fence_succeeds(void **state) {
    struct fixture *f = *state;
    evlock_options options = impatient_options();
    evlock_acquire_options fenced = {.size = sizeof(evlock_acquire_options)};
    evlock *lock = lock_new(f, "a", &options);
    fenced.fence = EVLOCK_ON;
    pause_all();
    assert_status(evlock_acquire(lock, &fenced, record_end, &f->ended), EVLOCK_OK);
    stand_still_while_they_answer(f);
    await(f, f->ended.count);
    assert_ended(&f->ended, EVLOCK_OK);
    assert_true(evlock_fence(lock) > 0);
}

static void an_adoption_that_was_answered_succeeds(void **state) {
    struct fixture *f = *state;
    evlock_options options = impatient_options();
    evlock *lock = lock_new(f, "a", &options);
    foreign_hold("a", 0, NODES);
    pause_all();
    assert_status(evlock_adopt(lock, "stranger", EVLOCK_CSTRING, record_end, &f->ended), EVLOCK_OK);
    stand_still_while_they_answer(f);
    await(f, f->ended.count);
    assert_ended(&f->ended, EVLOCK_OK);
}

static void a_release_and_an_extension_that_were_answered_are_ok(void **state) {
    struct fixture *f = *state;
    struct record extended = {0};
    evlock_client_options options = durable_options(f);
    options.command_timeout_ms = PATIENCE_MS;
    evlock_client *client = quorum_client(f, NODES, &options);
    evlock_options lasting = quick_options();
    evlock *locks[2];
    for (int i = 0; i < 2; i++) {
        locks[i] = lock_new_on(f, client, i ? "b" : "a", &lasting);
        assert_status(await_acquire(f, locks[i], NULL), EVLOCK_OK);
    }
    await(f, nodes_with(locks[0]) == NODES && nodes_with(locks[1]) == NODES);
    f->ended = (struct record){0};
    pause_all();
    assert_status(evlock_release(locks[0], record_end, &f->ended), EVLOCK_OK);
    assert_status(evlock_extend(locks[1], LONG_TTL, EVLOCK_EXTEND_REPLACE, record_end, &extended), EVLOCK_OK);
    stand_still_while_they_answer(f);
    await(f, f->ended.count && extended.count);
    assert_ended(&f->ended, EVLOCK_OK);
    assert_ended(&extended, EVLOCK_OK);
}

/* What was not sent yet is given 100 ms to be answered in. A machine that is overloaded may not run the nodes for so
 * long: then there is another trial. None would succeed where that time is not given. */
static void succeeds(struct fixture *f, void (*attempt)(struct fixture *f)) {
    evlock_options options = impatient_options();
    lock_new(f, "a", &options);
    for (int i = 0; i < TRIALS; i++) {
        f->ended = (struct record){0};
        attempt(f);
        run_for(f, ANSWER_MS);
        resume_all();
        await(f, f->ended.count);
        if (f->ended.status == EVLOCK_OK)
            return;
        assert_ended(&f->ended, EVLOCK_EQUORUM);
        await(f, nodes_having("a") == 0);
    }
    fail_msg("no attempt succeeded");
}

static void acquire_and_stand_still(struct fixture *f) {
    pause_all();
    if (evlock_acquire(f->locks[0], NULL, record_end, &f->ended) != EVLOCK_OK)
        abort();
    usleep(STALL_MS * 1000);
}

static void then_acquire_and_stand_still(struct record *record) {
    acquire_and_stand_still(record->then_arg);
}

static void acquire_in_a_callback(struct fixture *f) {
    struct record queried = {.then = then_acquire_and_stand_still, .then_arg = f};
    assert_status(evlock_query(f->locks[0], EVLOCK_QUERY_LOCKED, record_answer, &queried), EVLOCK_OK);
    await(f, queried.count);
}

static void an_attempt_of_a_callback_that_takes_long_succeeds(void **state) {
    succeeds(*state, acquire_in_a_callback);
}

static void an_attempt_that_was_not_sent_yet_succeeds(void **state) {
    succeeds(*state, acquire_and_stand_still);
}

static void replicas_that_confirmed_in_time_are_heard(void **state) {
    struct fixture *f = *state;
    evlock_options options = quick_options();
    struct server *master = &nodes[0], *replica = &nodes[1];
    server_do(replica, "REPLICAOF 127.0.0.1 %d", master->port);
    await(f, server_integer(master, "EVAL %s 0",
                            "return string.find(redis.call('INFO', 'replication'), 'state=online') and 1 or 0"));
    client_new(f, NULL, NULL); /* of node 0 alone */
    options.min_replicas = 1;
    options.replica_timeout_ms = 2 * PATIENCE_MS;
    options.max_attempts = EVLOCK_TRY;
    evlock *lock = lock_new(f, "a", &options);
    await_connected(f, f->client);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK); /* the second connection is there */
    assert_status(await_release(f, lock), EVLOCK_OK);
    f->ended = (struct record){0};
    server_pause(replica);
    assert_status(evlock_acquire(lock, NULL, record_end, &f->ended), EVLOCK_OK);
    await(f, server_integer(master, "EVAL %s 0",
                            "return tonumber(string.match(redis.call('INFO', 'clients'), 'blocked_clients:(%d+)'))"));
    server_resume(replica);
    usleep(2 * STALL_MS * 1000);
    await(f, f->ended.count);
    assert_ended(&f->ended, EVLOCK_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        QUORUM_TEST(an_attempt_that_was_answered_succeeds),
        QUORUM_TEST(an_attempt_that_draws_a_fence_succeeds),
        QUORUM_TEST(an_adoption_that_was_answered_succeeds),
        QUORUM_TEST(a_release_and_an_extension_that_were_answered_are_ok),
        QUORUM_TEST(an_attempt_of_a_callback_that_takes_long_succeeds),
        QUORUM_TEST(an_attempt_that_was_not_sent_yet_succeeds),
        QUORUM_TEST_BARE(replicas_that_confirmed_in_time_are_heard),
    };
    return run_quorum_suite("quorum-stalls", tests);
}
