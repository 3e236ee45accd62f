/*
 * Nodes in trouble: one and two of five cost nothing, come back and are put in order; three end everything in time and
 * leave nothing behind. Each test is named after the behaviour that it shows.
 */
#include "nodes.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static void inflict(const struct trouble *trouble, size_t count) {
    for (size_t i = 0; i < count; i++)
        trouble->inflict(&nodes[i]);
}

static void mend(const struct trouble *trouble, size_t count) {
    for (size_t i = 0; i < count; i++)
        trouble->mend(&nodes[i]);
}

/* Nothing comes back either, from a command that lay about somewhere. */
static void assert_nothing_left(struct fixture *f, const char *key) {
    await(f, nodes_having(key) == 0);
    run_for(f, 200);
    assert_int_equal(nodes_having(key), 0);
}

/* Holds on, with a deadline that a majority backs at any time, until renewal has put the lease on all nodes. */
static void await_on_all(struct fixture *f, const evlock *lock) {
    int64_t end = evlock_clock_us() + (int64_t)WAIT_MS * 1000;
    while (nodes_with(lock) < NODES) {
        assert_true(evlock_clock_us() < end);
        assert_true(evlock_is_held(lock));
        assert_deadline_is_backed(lock, NODES);
        loop_turn(f->loop);
    }
}

/* --- One or two of five ------------------------------------------------------------------------------------------- */

/* The trouble is there before the acquire: it goes on without those nodes, which join when they are mended. */
static void joins_later(struct fixture *f, const struct trouble *trouble, size_t count) {
    evlock_options options = renewed_options();
    options.node_timeout_ms = LONG_TTL; /* who waits for one of those nodes does not come to an end */
    inflict(trouble, count);
    evlock *lock = acquired(f, "a", &options);
    assert_status(await_extend(f, lock, LONG_TTL, EVLOCK_EXTEND_REPLACE), EVLOCK_OK);
    assert_true(ask_owned(f, lock));
    assert_deadline_is_backed(lock, NODES);
    mend(trouble, count);
    await_on_all(f, lock);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_nothing_left(f, "a");
}

/* The trouble comes and goes while the lock is held, and worries nobody. */
static void holds_on(struct fixture *f, const struct trouble *trouble, size_t count) {
    struct record told = {0};
    evlock_options options = renewed_options();
    options.on_lost = record_end;
    options.on_at_risk = record_risk;
    options.arg = &told;
    evlock *lock = acquired(f, "a", &options);
    await(f, nodes_with(lock) == NODES);
    inflict(trouble, count);
    for (size_t i = count; i < NODES; i++)
        server_do(&nodes[i], "PEXPIRE a %d", LONG_TTL / 3);
    for (size_t i = count; i < NODES; i++)
        await(f, key_ttl(&nodes[i], "a") > LONG_TTL / 2);
    assert_status(await_extend(f, lock, LONG_TTL, EVLOCK_EXTEND_REPLACE), EVLOCK_OK);
    assert_deadline_is_backed(lock, NODES);
    mend(trouble, count);
    await_on_all(f, lock);
    assert_int_equal(told.count, 0);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_nothing_left(f, "a");
}

/* All of a short life is under the trouble. */
static void leaves_nothing(struct fixture *f, const struct trouble *trouble, size_t count) {
    inflict(trouble, count);
    evlock *lock = acquired(f, "a", NULL);
    assert_status(await_release(f, lock), EVLOCK_OK);
    mend(trouble, count);
    assert_nothing_left(f, "a");
    await(f, nodes_counting(f->client) == NODES);
}

#define MINOR_TESTS(trouble)                                                                                           \
    static void one_##trouble##_node_joins_later(void **state) {                                                       \
        joins_later(*state, &trouble, 1);                                                                              \
    }                                                                                                                  \
    static void two_##trouble##_nodes_join_later(void **state) {                                                       \
        joins_later(*state, &trouble, 2);                                                                              \
    }                                                                                                                  \
    static void a_lease_holds_on_with_one_##trouble(void **state) {                                                    \
        holds_on(*state, &trouble, 1);                                                                                 \
    }                                                                                                                  \
    static void a_lease_holds_on_with_two_##trouble(void **state) {                                                    \
        holds_on(*state, &trouble, 2);                                                                                 \
    }                                                                                                                  \
    static void nothing_is_left_on_one_##trouble##_node(void **state) {                                                \
        leaves_nothing(*state, &trouble, 1);                                                                           \
    }                                                                                                                  \
    static void nothing_is_left_on_two_##trouble##_nodes(void **state) {                                               \
        leaves_nothing(*state, &trouble, 2);                                                                           \
    }

MINOR_TESTS(stopped)
MINOR_TESTS(killed)
MINOR_TESTS(read_only)
MINOR_TESTS(full)

static void two_restarted_empty_are_armed_again(void **state) {
    struct fixture *f = *state;
    evlock_options options = renewed_options();
    evlock *lock = acquired(f, "a", &options);
    await(f, nodes_with(lock) == NODES);
    restart_empty(&nodes[1]);
    restart_empty(&nodes[3]);
    await_on_all(f, lock);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_nothing_left(f, "a");
}

/* --- A bare majority, and no renewal ------------------------------------------------------------------------------ */

/* On three nodes, of which one is in trouble: held by the other two. */
static evlock *held_barely(struct fixture *f, const struct trouble *trouble, const evlock_options *options) {
    evlock_client *client = quorum_client(f, 3, NULL);
    evlock *lock = lock_new_on(f, client, "a", options);
    await(f, nodes_counting(client) == 3);
    trouble->inflict(&nodes[2]);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_int_equal(evlock_keepers(lock), 2);
    return lock;
}

/* One of the two forgets, and nobody else is granted the lock, since the third has been given it. */
static void may_forget_when_mended(struct fixture *f, const struct trouble *trouble) {
    evlock_options options = quick_options();
    evlock *lock = held_barely(f, trouble, &options);
    evlock *other = lock_new_on(f, quorum_client(f, 3, NULL), "a", &options);
    int64_t left = evlock_remaining_ms(lock);
    trouble->mend(&nodes[2]);
    await(f, evlock_keepers(lock) == 3);
    assert_int_equal(nodes_with(lock), 3);
    assert_true(evlock_remaining_ms(lock) <= left);
    assert_true(key_ttl(&nodes[2], "a") <= LONG_TTL);
    assert_deadline_is_backed(lock, 3);
    server_do(&nodes[1], "FLUSHALL");
    for (int i = 0; i < 5; i++)
        assert_status(await_try(f, other), EVLOCK_EHELD);
    assert_true(evlock_is_held(lock));
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_status(await_acquire(f, other, NULL), EVLOCK_OK);
}

static void a_node_may_forget_when_a_killed_one_is_back(void **state) {
    may_forget_when_mended(*state, &killed);
}

static void a_node_may_forget_when_a_stopped_one_goes_on(void **state) {
    may_forget_when_mended(*state, &stopped);
}

static void a_node_may_forget_when_a_read_only_one_writes(void **state) {
    may_forget_when_mended(*state, &read_only);
}

/* What is told of a bare majority: none may forget. */
static void none_may_forget_of_a_bare_majority(void **state) {
    struct fixture *f = *state;
    evlock_options options = quick_options();
    evlock *lock = held_barely(f, &killed, &options);
    run_for(f, 200);
    assert_int_equal(evlock_keepers(lock), 2);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_int_equal(evlock_keepers(lock), 0);
    assert_int_equal(evlock_keepers(NULL), 0);
}

/* A key that is in the way on one node, and then goes. */
static void a_node_that_a_stranger_leaves_is_given_the_lock(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(8000); /* so that the pause is a second */
    evlock *lock = lock_new_on(f, quorum_client(f, 3, NULL), "a", &options);
    foreign_hold("a", 2, 3);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_int_equal(evlock_keepers(lock), 2);
    server_do(&nodes[2], "DEL a");
    await(f, evlock_keepers(lock) == 3 || !evlock_is_held(lock));
    assert_int_equal(nodes_with(lock), 3);
}

static void a_durable_node_that_forgot_is_given_the_lock_again(void **state) {
    struct fixture *f = *state;
    evlock_options options = quick_options();
    evlock *lock = lock_new_on(f, quorum_client(f, 3, NULL), "a", &options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    await(f, nodes_with(lock) == 3);
    restart_empty(&nodes[1]);
    await(f, nodes_with(lock) == 3);
    assert_deadline_is_backed(lock, 3);
}

static void all_restarted_with_their_data_go_on(void **state) {
    struct fixture *f = *state;
    struct record lost = {0};
    evlock *lock = renewed_everywhere(f, &lost);
    for (size_t i = 0; i < NODES; i++)
        restart_with_data(&nodes[i]);
    await(f, nodes_counting(f->client) < NODES);
    await(f, nodes_counting(f->client) == NODES);
    assert_status(await_extend(f, lock, LONG_TTL, EVLOCK_EXTEND_REPLACE), EVLOCK_OK);
    assert_int_equal(lost.count, 0);
    assert_int_equal(nodes_with(lock), NODES);
}

static void broken_connections_on_all_nodes(void **state) {
    struct fixture *f = *state;
    evlock_options options = renewed_options();
    evlock *lock = acquired(f, "a", &options);
    for (size_t i = 0; i < NODES; i++)
        server_do(&nodes[i], "CLIENT KILL TYPE normal");
    await(f, nodes_counting(f->client) < NODES);
    await(f, nodes_counting(f->client) == NODES);
    assert_status(await_extend(f, lock, LONG_TTL, EVLOCK_EXTEND_REPLACE), EVLOCK_OK);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_nothing_left(f, "a");
}

/* Of many locks on a stopped node no more than max_inflight commands lie there. */
static void what_waits_for_a_stopped_node_is_bounded(void **state) {
    enum { INFLIGHT = 50, ROUNDS = 500 };
    struct fixture *f = *state;
    evlock_client_options options = durable_options(f);
    options.max_inflight = INFLIGHT;
    options.command_timeout_ms = 2 * WAIT_MS; /* the connection stays */
    quorum_client(f, NODES, &options);
    await(f, nodes_counting(f->client) == NODES);
    evlock *lock = lock_new(f, "a", NULL);
    server_pause(&nodes[0]);
    for (int i = 0; i < ROUNDS; i++) {
        assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
        assert_status(await_release(f, lock), EVLOCK_OK);
    }
    server_resume(&nodes[0]);
    assert_nothing_left(f, "a");
    assert_int_in_range(server_calls(&nodes[0], "set"), 1, INFLIGHT);
    /* The node takes part again. */
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    await(f, nodes_with(lock) == NODES);
}

/* The break is told while one node hangs. When that node answers its first step, there is no room for the second one,
 * and nobody left to wait for it. */
static void a_break_that_was_told_waits_for_no_room(void **state) {
    struct fixture *f = *state;
    struct record broken = {0};
    evlock_client_options options = durable_options(f);
    options.max_inflight = 2;
    options.command_timeout_ms = 2 * WAIT_MS; /* the connection stays */
    quorum_client(f, NODES, &options);
    await(f, nodes_counting(f->client) == NODES);
    evlock *breaker = lock_new(f, "a", NULL), *other = lock_new(f, "b", NULL);
    foreign_hold("a", 0, NODES);
    server_pause(&nodes[0]);
    assert_status(evlock_break(breaker, record_end, &broken), EVLOCK_OK);
    assert_status(evlock_acquire(other, NULL, NULL, NULL), EVLOCK_OK);
    lock_free(f, other); /* its acquire has the other place, and its undo goes behind that all the same */
    await(f, broken.count);
    assert_ended(&broken, EVLOCK_OK);
    server_resume(&nodes[0]);
    assert_status(await_query(f, breaker, EVLOCK_QUERY_LOCKED), EVLOCK_OK);
    assert_nothing_left(f, "b");
    assert_int_in_range(nodes_having("a"), 0, NODES - MAJORITY); /* where it was not broken any more */
    assert_int_equal(broken.count, 1);
}

/* What a few nodes have in place of the token, or all. */
static void break_works_on_long_values(void **state) {
    static const size_t lengths[] = {100, 16 * 1024, 17 * 1024, 1024 * 1024};
    struct fixture *f = *state;
    evlock *breaker = lock_new(f, "a", NULL);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        for (size_t count = 1; count <= NODES; count += NODES - 1) {
            foreign_hold("a", count, NODES);
            for (size_t node = 0; node < count; node++)
                server_do(&nodes[node], "SETRANGE a %d v", (int)lengths[i] - 1);
            assert_status(await_break(f, breaker), EVLOCK_OK);
            assert_nothing_left(f, "a");
        }
    }
    server_do(&nodes[0], "LPUSH a v");
    foreign_hold("a", 1, NODES);
    assert_status(await_break(f, breaker), EVLOCK_OK);
    await(f, nodes_having("a") == 1); /* where it is no lock */
}

static void a_close_does_not_wait_for_a_stopped_node_for_ever(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = durable_options(f);
    options.command_timeout_ms = 500;
    quorum_client(f, NODES, &options);
    await(f, nodes_counting(f->client) == NODES);
    evlock *lock = acquired(f, "a", NULL);
    await(f, nodes_with(lock) == NODES);
    server_pause(&nodes[0]);
    assert_status(await_close(f, f->client), EVLOCK_EUNREACHABLE); /* not known of every key that it is gone */
    assert_int_equal(nodes_having("a"), 0);
}

/* What was never sent anywhere needs no answer from there. A close that had waited for one would have failed. */
static void a_close_needs_no_node_that_was_never_up(void **state) {
    struct fixture *f = *state;
    server_pause(&nodes[0]);
    server_kill9(&nodes[1]);
    quorum_client(f, NODES, NULL);
    await(f, nodes_counting(f->client) == MAJORITY);
    evlock *lock = acquired(f, "a", NULL);
    await(f, nodes_with(lock) == MAJORITY);
    assert_status(await_close(f, f->client), EVLOCK_OK);
    assert_int_equal(nodes_having("a"), 0);
}

/* --- Late answers ------------------------------------------------------------------------------------------------- */

static void late_yeses_are_kept(void **state) {
    struct fixture *f = *state;
    inflict(&stopped, 2);
    evlock *lock = acquired(f, "a", NULL); /* not renewed */
    mend(&stopped, 2);
    await(f, nodes_with(lock) == NODES);
    run_for(f, 100);
    assert_int_equal(nodes_with(lock), NODES);
    /* And they count: with the late two and one of the others there is still a majority. */
    server_do(&nodes[2], "DEL a");
    server_do(&nodes[3], "DEL a");
    assert_status(await_extend(f, lock, LONG_TTL, EVLOCK_EXTEND_REPLACE), EVLOCK_OK);
}

static void late_noes_are_ignored(void **state) {
    struct fixture *f = *state;
    foreign_hold("a", 0, 2);
    inflict(&stopped, 2);
    evlock *lock = acquired(f, "a", NULL);
    mend(&stopped, 2);
    run_for(f, 200);
    assert_true(evlock_is_held(lock));
    assert_status(await_extend(f, lock, LONG_TTL, EVLOCK_EXTEND_REPLACE), EVLOCK_OK);
    assert_status(await_release(f, lock), EVLOCK_OK);
    await(f, nodes_having("a") == 2);
    assert_true(key_is(&nodes[0], "a", "stranger", 8));
}

/* --- Three of five ------------------------------------------------------------------------------------------------ */

/* Not acquired, and nothing of the attempts is left when the nodes are back. */
static void acquires_nothing(struct fixture *f, const struct trouble *trouble) {
    evlock_options options = quick_options();
    options.node_timeout_ms = 200;
    evlock *lock = lock_new(f, "a", &options);
    inflict(trouble, MAJORITY);
    for (int i = 0; i < 3; i++) {
        assert_status(await_try(f, lock), EVLOCK_EQUORUM);
        if (!strstr(f->ended.error, "3 of 5"))
            fail_msg("it does not tell how many did not agree: \"%s\"", f->ended.error);
        assert_false(evlock_is_held(lock));
    }
    mend(trouble, MAJORITY);
    assert_nothing_left(f, "a");
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    await(f, nodes_counting(f->client) == NODES);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_nothing_left(f, "a");
}

/* A waiter gets the lock when the nodes are back. */
static void waits_for_mending(struct fixture *f, const struct trouble *trouble) {
    struct record waiting = {0};
    evlock_options options = quick_options();
    options.node_timeout_ms = 100;
    evlock *lock = lock_new(f, "a", &options);
    inflict(trouble, MAJORITY);
    assert_status(evlock_acquire(lock, NULL, record_end, &waiting), EVLOCK_OK);
    run_for(f, 500);
    assert_int_equal(waiting.count, 0);
    mend(trouble, MAJORITY);
    await(f, waiting.count);
    assert_ended(&waiting, EVLOCK_OK);
    assert_deadline_is_backed(lock, NODES);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_nothing_left(f, "a");
}

/* A holder is told of the loss when its deadline comes, and how many nodes were left. */
static void is_told_lost(struct fixture *f, const struct trouble *trouble) {
    struct record lost = {0};
    int64_t deadline = 0;
    evlock_options options = with_ttl(1500);
    options.auto_renewal = true;
    options.renewal_interval_ms = 100;
    options.on_lost = record_end;
    options.arg = &lost;
    evlock *lock = acquired(f, "a", &options);
    await(f, nodes_with(lock) == NODES);
    inflict(trouble, MAJORITY);
    int64_t end = evlock_clock_us() + (int64_t)WAIT_MS * 1000;
    while (!lost.count && evlock_clock_us() < end) {
        if (evlock_is_held(lock))
            deadline = evlock_clock_us() + (evlock_remaining_ms(lock) + 1) * 1000;
        loop_turn(f->loop);
    }
    assert_int_equal(lost.count, 1);
    assert_int_equal(lost.status, EVLOCK_EEXPIRED);
    assert_true(lost.at < deadline + 1000 * 1000); /* the machine may have been busy just then */
    if (!strstr(lost.error, "2 of 5"))
        fail_msg("it does not tell how many agreed: \"%s\"", lost.error);
    mend(trouble, MAJORITY);
    assert_nothing_left(f, "a");
}

#define MAJOR_TESTS(trouble)                                                                                           \
    static void nothing_is_acquired_with_three_##trouble(void **state) {                                               \
        acquires_nothing(*state, &trouble);                                                                            \
    }                                                                                                                  \
    static void a_waiter_outlasts_three_##trouble(void **state) {                                                      \
        waits_for_mending(*state, &trouble);                                                                           \
    }

MAJOR_TESTS(stopped)
MAJOR_TESTS(killed)
MAJOR_TESTS(read_only)
MAJOR_TESTS(full)

static void a_loss_by_three_stopped_is_told(void **state) {
    is_told_lost(*state, &stopped);
}

static void a_loss_by_three_killed_is_told(void **state) {
    is_told_lost(*state, &killed);
}

static void a_loss_by_three_read_only_is_told(void **state) {
    is_told_lost(*state, &read_only);
}

/* A full server still prolongs what it has. */
static void three_full_cost_a_holder_nothing(void **state) {
    holds_on(*state, &full, MAJORITY);
}

static void a_lease_that_three_restarted_nodes_gave_away_is_lost(void **state) {
    struct fixture *f = *state;
    struct record lost = {0};
    evlock *lock = renewed_everywhere(f, &lost);
    inflict(&killed, MAJORITY);
    mend(&killed, MAJORITY);
    foreign_hold("a", 0, MAJORITY); /* before the lease can be put there again */
    await(f, lost.count);
    assert_int_equal(lost.status, EVLOCK_EDATALOSS);
    assert_false(evlock_is_held(lock));
    assert_status(await_release(f, lock), EVLOCK_ENOTOWNED);
    await(f, nodes_having("a") == MAJORITY);
    assert_true(key_is(&nodes[0], "a", "stranger", 8));
}

static void three_stopped_for_a_while_cost_nothing(void **state) {
    struct fixture *f = *state;
    struct record lost = {0};
    evlock *lock = renewed_everywhere(f, &lost);
    inflict(&stopped, MAJORITY);
    run_for(f, 500);
    assert_deadline_is_backed(lock, NODES);
    mend(&stopped, MAJORITY);
    for (size_t i = 0; i < NODES; i++) {
        server_do(&nodes[i], "PEXPIRE a %d", LONG_TTL / 3);
        await(f, key_ttl(&nodes[i], "a") > LONG_TTL / 2);
    }
    assert_int_equal(lost.count, 0);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_nothing_left(f, "a");
}

/* A split vote is waited out; too few nodes are not. */
static void an_acquire_may_fail_when_too_few_are_connected(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new_on(f, quorum_client(f, 3, NULL), "a",
                               EVLOCK_OPTIONS(.ttl_ms = 60 * 1000, .retry_delay_ms = 10, .fail_when_away = true));
    server_do(&nodes[0], "SET a one PX 60000");
    server_do(&nodes[1], "SET a two PX 60000");
    assert_status(evlock_acquire(lock, NULL, record_end, &f->ended), EVLOCK_OK);
    await(f, server_calls(&nodes[2], "set") > 3);
    assert_int_equal(f->ended.count, 0);
    server_kill9(&nodes[0]);
    server_kill9(&nodes[1]);
    await(f, f->ended.count);
    assert_ended(&f->ended, EVLOCK_EQUORUM);
}

/* A listing on several nodes, to its end. */
struct listing {
    evlock_client *client;
    int pages, status;
    bool more, strange;
    int found[NODES]; /* how often "a", "b", ... */
};

static void note_page(evlock_client *client, int status, const evlock_page *page, void *arg) {
    struct listing *listing = arg;
    listing->pages++;
    listing->status = status;
    listing->more = page && page->more;
    for (size_t i = 0; page && i < page->count; i++) {
        int at = page->names[i].data[0] - 'a';
        listing->strange = listing->strange || page->names[i].len != 1 || at < 0 || at >= NODES;
        if (!listing->strange)
            listing->found[at]++;
    }
    if (listing->more)
        listing->status = evlock_client_list(client, "", 0, &page->next, note_page, listing);
}

static int list_all(struct fixture *f, struct listing *listing) {
    *listing = (struct listing){0};
    assert_status(evlock_client_list(f->client, "", 0, NULL, note_page, listing), EVLOCK_OK);
    await(f, listing->pages && (!listing->more || listing->status != EVLOCK_OK));
    assert_false(listing->strange);
    return listing->status;
}

/* Each of five locks is on another three, as if each had been lost by two. */
static void a_listing_needs_a_majority(void **state) {
    struct fixture *f = *state;
    static const char *const names[NODES] = {"a", "b", "c", "d", "e"};
    struct listing listing;
    for (int i = 0; i < NODES; i++)
        for (int j = 0; j < MAJORITY; j++)
            server_do(&nodes[(i + j) % NODES], "SET %s token", names[i]);
    for (int away = 0; away < MAJORITY; away++) {
        assert_status(list_all(f, &listing), EVLOCK_OK);
        assert_int_equal(listing.pages, NODES);
        for (int i = 0; i < NODES; i++)
            assert_int_in_range(listing.found[i], 1, MAJORITY);
        server_kill9(&nodes[2 * away]);
        await(f, node_info(f->client, (size_t)(2 * away)).connection == EVLOCK_AWAY);
    }
    assert_status(list_all(f, &listing), EVLOCK_EQUORUM);
    restart_empty(&nodes[0]);
    await(f, node_info(f->client, 0).connection == EVLOCK_CONNECTED);
    assert_status(list_all(f, &listing), EVLOCK_OK);
    restart_empty(&nodes[2]);
    restart_empty(&nodes[4]);
}

static void calls_end_though_three_are_silent(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = durable_options(f);
    options.command_timeout_ms = 500;
    quorum_client(f, NODES, &options);
    await(f, nodes_counting(f->client) == NODES);
    evlock *lock = acquired(f, "a", NULL);
    await(f, nodes_with(lock) == NODES);
    inflict(&stopped, MAJORITY);
    int64_t before = evlock_remaining_ms(lock);
    assert_status(await_extend(f, lock, LONG_TTL + 20 * 1000, EVLOCK_EXTEND_REPLACE), EVLOCK_EQUORUM);
    assert_int_in_range(evlock_remaining_ms(lock), 1, before); /* never out where the outcome is unknown */
    assert_status(await_query(f, lock, EVLOCK_QUERY_LOCKED), EVLOCK_EQUORUM);
    assert_status(await_query(f, lock, EVLOCK_QUERY_OWNED), EVLOCK_EQUORUM);
    assert_status(await_query(f, lock, EVLOCK_QUERY_TTL), EVLOCK_EQUORUM);
    assert_status(await_release(f, lock), EVLOCK_EUNREACHABLE); /* it goes on */
    mend(&stopped, MAJORITY);
    assert_nothing_left(f, "a");
}

static void a_shortening_moves_the_deadline_in_at_once(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock *lock = acquired(f, "a", NULL);
    inflict(&stopped, MAJORITY);
    assert_status(evlock_extend(lock, 5000, EVLOCK_EXTEND_REPLACE, record_end, &record), EVLOCK_OK);
    loop_turn(f->loop);
    assert_int_in_range(evlock_remaining_ms(lock), 0, 5000);
    mend(&stopped, MAJORITY);
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    assert_deadline_is_backed(lock, NODES);
}

static void a_wait_outlives_all_five(void **state) {
    struct fixture *f = *state;
    evlock_acquire_options options = {.size = sizeof(evlock_acquire_options)};
    evlock_options quick = quick_options();
    evlock *lock = lock_new(f, "a", &quick);
    options.max_wait_ms = 300;
    inflict(&killed, NODES);
    assert_status(await_acquire(f, lock, &options), EVLOCK_ETIMEDOUT);
    assert_string_not_equal(f->ended.error, "");
    assert_int_equal(evlock_client_connection(f->client), EVLOCK_AWAY);
    mend(&killed, NODES);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_int_equal(evlock_client_connection(f->client), EVLOCK_CONNECTED);
}

/* --- A fork ------------------------------------------------------------------------------------------------------- */

/* What this process's epolls watch, and what for, as the kernel says it. */
static void what_is_watched(char *text, size_t size) {
    char line[256], path[300], target[32];
    struct dirent *entry;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    text[0] = '\0';
    while ((entry = readdir(dir))) {
        ssize_t len = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
        if (len != (ssize_t)strlen("anon_inode:[eventpoll]") ||
            memcmp(target, "anon_inode:[eventpoll]", (size_t)len) != 0)
            continue;
        snprintf(path, sizeof(path), "/proc/self/fdinfo/%s", entry->d_name);
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        while (fgets(line, sizeof(line), file)) {
            assert_true(strlen(text) + strlen(line) < size);
            strcat(text, line);
        }
        fclose(file);
    }
    closedir(dir);
    assert_non_null(strstr(text, "tfd:"));
}

static int free_client_alone(void *arg) {
    evlock_client_free(((struct fixture *)arg)->client);
    return 0;
}

/* What is unanswered ends there node by node, and what that leads to must not reach the nodes after it: the child's
 * epoll is the parent's. */
static void a_child_that_frees_in_mid_acquire_leaves_the_parents_loop_alone(void **state) {
    struct fixture *f = *state;
    struct record acquire = {0};
    char before[8192], after[8192];
    evlock *lock = lock_new(f, "a", NULL);
    inflict(&stopped, NODES);
    assert_status(evlock_acquire(lock, NULL, record_end, &acquire), EVLOCK_OK);
    run_for(f, 20);
    what_is_watched(before, sizeof(before));
    assert_int_equal(in_child(free_client_alone, f), 0);
    what_is_watched(after, sizeof(after));
    assert_string_equal(after, before);
    mend(&stopped, NODES);
    await(f, acquire.count);
    assert_ended(&acquire, EVLOCK_OK);
}

#define MINOR_TEST_LIST(trouble)                                                                                       \
    QUORUM_TEST(one_##trouble##_node_joins_later), QUORUM_TEST(two_##trouble##_nodes_join_later),                      \
        QUORUM_TEST(a_lease_holds_on_with_one_##trouble), QUORUM_TEST(a_lease_holds_on_with_two_##trouble),            \
        QUORUM_TEST(nothing_is_left_on_one_##trouble##_node), QUORUM_TEST(nothing_is_left_on_two_##trouble##_nodes)

#define MAJOR_TEST_LIST(trouble)                                                                                       \
    QUORUM_TEST(nothing_is_acquired_with_three_##trouble), QUORUM_TEST(a_waiter_outlasts_three_##trouble)

/* --- A hold ------------------------------------------------------------------------------------------------------- */

struct reports {
    int count;
    int statuses[16];
};

static void reported(evlock *lock, int status, void *arg) {
    struct reports *reports = arg;

    (void)lock;
    if (reports->count < 16)
        reports->statuses[reports->count++] = status;
}

/* Three of five go and come back: the loss, the trouble and the return are each reported once. */
static void a_hold_comes_back(struct fixture *f, const struct trouble *trouble) {
    static const int expected[] = {EVLOCK_OK, EVLOCK_EEXPIRED, EVLOCK_EQUORUM, EVLOCK_OK, EVLOCK_ECANCELLED};
    struct reports reports = {0};
    evlock_options options = quick_options();

    options.ttl_ms = 2000;
    evlock *lock = lock_new(f, "a", &options);
    assert_status(evlock_hold(lock, reported, &reports), EVLOCK_OK);
    await(f, nodes_with(lock) == NODES);
    inflict(trouble, MAJORITY);
    await(f, reports.count == 3);
    run_for(f, 300);
    assert_false(evlock_is_held(lock));
    assert_int_equal(reports.count, 3);
    mend(trouble, MAJORITY);
    await(f, reports.count == 4);
    assert_deadline_is_backed(lock, NODES);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_nothing_left(f, "a");
    assert_int_equal(reports.count, 5);
    assert_memory_equal(reports.statuses, expected, sizeof(expected));
}

static void a_hold_outlives_three_stopped(void **state) {
    a_hold_comes_back(*state, &stopped);
}

static void a_hold_outlives_three_killed(void **state) {
    a_hold_comes_back(*state, &killed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        MINOR_TEST_LIST(stopped),
        MINOR_TEST_LIST(killed),
        MINOR_TEST_LIST(read_only),
        MINOR_TEST_LIST(full),
        QUORUM_TEST(two_restarted_empty_are_armed_again),
        QUORUM_TEST(a_node_may_forget_when_a_killed_one_is_back),
        QUORUM_TEST(a_node_may_forget_when_a_stopped_one_goes_on),
        QUORUM_TEST(a_node_may_forget_when_a_read_only_one_writes),
        QUORUM_TEST(none_may_forget_of_a_bare_majority),
        QUORUM_TEST(a_node_that_a_stranger_leaves_is_given_the_lock),
        QUORUM_TEST(a_durable_node_that_forgot_is_given_the_lock_again),
        QUORUM_TEST(all_restarted_with_their_data_go_on),
        QUORUM_TEST(broken_connections_on_all_nodes),
        QUORUM_TEST_BARE(what_waits_for_a_stopped_node_is_bounded),
        QUORUM_TEST_BARE(a_break_that_was_told_waits_for_no_room),
        QUORUM_TEST(break_works_on_long_values),
        QUORUM_TEST_BARE(a_close_does_not_wait_for_a_stopped_node_for_ever),
        QUORUM_TEST_BARE(a_close_needs_no_node_that_was_never_up),
        QUORUM_TEST(late_yeses_are_kept),
        QUORUM_TEST(late_noes_are_ignored),
        MAJOR_TEST_LIST(stopped),
        MAJOR_TEST_LIST(killed),
        MAJOR_TEST_LIST(read_only),
        MAJOR_TEST_LIST(full),
        QUORUM_TEST(a_loss_by_three_stopped_is_told),
        QUORUM_TEST(a_loss_by_three_killed_is_told),
        QUORUM_TEST(a_loss_by_three_read_only_is_told),
        QUORUM_TEST(three_full_cost_a_holder_nothing),
        QUORUM_TEST(a_lease_that_three_restarted_nodes_gave_away_is_lost),
        QUORUM_TEST(three_stopped_for_a_while_cost_nothing),
        QUORUM_TEST(a_listing_needs_a_majority),
        QUORUM_TEST_BARE(calls_end_though_three_are_silent),
        QUORUM_TEST(a_shortening_moves_the_deadline_in_at_once),
        QUORUM_TEST(a_wait_outlives_all_five),
        QUORUM_TEST(a_hold_outlives_three_stopped),
        QUORUM_TEST(a_hold_outlives_three_killed),
        QUORUM_TEST_BARE(an_acquire_may_fail_when_too_few_are_connected),
        QUORUM_TEST(a_child_that_frees_in_mid_acquire_leaves_the_parents_loop_alone),
    };
    return run_quorum_suite("faults", tests);
}
