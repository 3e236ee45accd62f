/*
 * Fences: they grow with every acquisition of a name, whoever makes it, whatever the servers forget, on one node and on
 * a quorum whose nodes have counted differently. Each test is named after the behaviour that it shows.
 *
 * The counter's key is found by looking: it is what the server has besides the lock.
 */
#include "nodes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static evlock_acquire_options fenced(void) {
    evlock_acquire_options options = {.size = sizeof(evlock_acquire_options)};
    options.fence = EVLOCK_ON;
    return options;
}

/* Acquires with a fence and returns that. */
static uint64_t draw(struct fixture *f, evlock *lock) {
    evlock_acquire_options options = fenced();
    assert_status(await_acquire(f, lock, &options), EVLOCK_OK);
    assert_true(evlock_fence(lock) > 0);
    return evlock_fence(lock);
}

/* A whole tenure; returns its fence. */
static uint64_t draw_and_release(struct fixture *f, evlock *lock) {
    uint64_t fence = draw(f, lock);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_int_equal(evlock_fence(lock), 0);
    return fence;
}

#define assert_grown(fence, last)                                                                                      \
    do {                                                                                                               \
        uint64_t grown = (fence);                                                                                      \
        if (grown <= (last))                                                                                           \
            fail_msg("the fence %" PRIu64 " is not greater than %" PRIu64, grown, (last));                             \
        (last) = grown;                                                                                                \
    } while (0)

/* The name of the key beside the lock's, in `counter`; whether there is exactly one. */
static bool find_counter(struct server *node, const char *lock_name, char counter[256]) {
    size_t found = 0;
    redisReply *reply = server_command(node, "KEYS *");
    for (size_t i = 0; i < reply->elements; i++)
        if (strcmp(reply->element[i]->str, lock_name) != 0) {
            snprintf(counter, 256, "%s", reply->element[i]->str);
            found++;
        }
    freeReplyObject(reply);
    return found == 1;
}

static uint64_t counted(struct server *node, const char *counter) {
    char text[64];
    return key_value(node, counter, text, sizeof(text)) < 0 ? 0 : strtoull(text, NULL, 10);
}

static size_t nodes_that_counted(const char *counter, uint64_t fence) {
    size_t count = 0;
    for (size_t i = 0; i < NODES; i++)
        count += nodes[i].pid && !nodes[i].paused && counted(&nodes[i], counter) >= fence;
    return count;
}

/* --- What a fence is ---------------------------------------------------------------------------------------------- */

static void no_fence_unless_asked(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    assert_true(evlock_fence(NULL) == 0);
    assert_true(evlock_fence(lock) == 0);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_true(evlock_fence(lock) == 0);
    for (size_t i = 0; i < NODES; i++)
        assert_true(server_integer(&nodes[i], "DBSIZE") <= 1);
    assert_status(await_release(f, lock), EVLOCK_OK);
    draw(f, lock);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_true(evlock_fence(lock) == 0);
}

static void a_fence_ends_with_its_lease(void **state) {
    struct fixture *f = *state;
    char token[128];
    size_t len;
    evlock_acquire_options options = fenced();
    struct record record = {0};
    evlock *lock = lock_new(f, "a", NULL);
    evlock *heir = lock_new(f, "a", NULL);
    assert_status(evlock_acquire(lock, &options, record_end, &record), EVLOCK_OK);
    assert_true(evlock_fence(lock) == 0);
    await(f, record.count);
    assert_true(evlock_fence(lock) > 0);
    assert_status(evlock_export(lock, token, sizeof(token), &len), EVLOCK_OK);
    assert_true(evlock_fence(lock) == 0);
    await(f, nodes_having("a") == NODES);
    assert_status(await_adopt(f, heir, token, len), EVLOCK_OK);
    assert_true(evlock_fence(heir) == 0);
}

static void a_lost_lease_has_no_fence(void **state) {
    struct fixture *f = *state;
    struct record lost = {0};
    evlock_options options = with_ttl(300);
    options.on_lost = record_end;
    options.arg = &lost;
    evlock *lock = lock_new(f, "a", &options);
    draw(f, lock);
    await(f, lost.count);
    assert_true(evlock_fence(lock) == 0);
}

static void the_fence_outlives_renewals(void **state) {
    struct fixture *f = *state;
    evlock_options options = renewed_options();
    evlock *lock = lock_new(f, "a", &options);
    uint64_t fence = draw(f, lock);
    run_for(f, 300);
    assert_status(await_extend(f, lock, LONG_TTL, EVLOCK_EXTEND_REPLACE), EVLOCK_OK);
    assert_true(evlock_fence(lock) == fence);
}

/* --- They grow ---------------------------------------------------------------------------------------------------- */

/* Draws in turn by two handles each of two clients: `rounds` times, each greater than the last. */
static uint64_t grows(struct fixture *f, evlock_client *one, evlock_client *other, int rounds) {
    evlock_options options = quick_options();
    evlock *locks[] = {lock_new_on(f, one, "a", &options), lock_new_on(f, other, "a", &options),
                       lock_new_on(f, one, "a", &options), lock_new_on(f, other, "a", &options)};
    uint64_t last = 0;
    for (int i = 0; i < rounds; i++)
        assert_grown(draw_and_release(f, locks[i % 4]), last);
    for (size_t i = 0; i < 4; i++)
        lock_free(f, locks[i]);
    return last;
}

static void fences_grow_on_one_node(void **state) {
    struct fixture *f = *state;
    grows(f, client_new(f, NULL, NULL), client_new(f, NULL, NULL), 40);
}

static void fences_grow_on_a_quorum(void **state) {
    struct fixture *f = *state;
    grows(f, f->client, quorum_client(f, NODES, NULL), 40);
}

static void names_count_for_themselves(void **state) {
    struct fixture *f = *state;
    uint64_t last = draw(f, lock_new(f, "a", NULL));
    draw(f, lock_new(f, "b", NULL));
    for (size_t i = 0; i < NODES; i++)
        await(f, server_integer(&nodes[i], "DBSIZE") == 4);
    lock_free(f, f->locks[0]);
    await(f, nodes_having("a") == 0);
    assert_grown(draw(f, lock_new(f, "a", NULL)), last);
}

static void a_waiters_fence_is_greater_than_the_holders(void **state) {
    struct fixture *f = *state;
    struct record waiting = {0};
    evlock_acquire_options options = fenced();
    evlock_options quick = quick_options();
    evlock *holder = lock_new(f, "a", &quick);
    evlock *waiter = lock_new(f, "a", &quick);
    uint64_t last = draw(f, holder);
    assert_status(evlock_acquire(waiter, &options, record_end, &waiting), EVLOCK_OK);
    run_for(f, 200);
    assert_status(await_release(f, holder), EVLOCK_OK);
    await(f, waiting.count);
    assert_ended(&waiting, EVLOCK_OK);
    assert_grown(evlock_fence(waiter), last);
}

/* --- What servers forget ------------------------------------------------------------------------------------------ */

/* Draws, lets all nodes of the client forget by `forget`, draws again, three times over. */
static void grows_though(struct fixture *f, evlock_client *client, size_t count, void (*forget)(struct server *node)) {
    evlock_options options = quick_options();
    uint64_t last = 0;
    for (int i = 0; i < 3; i++) {
        evlock *lock = lock_new_on(f, client, "a", &options); /* a handle that has seen nothing */
        assert_grown(draw_and_release(f, lock), last);
        assert_grown(draw_and_release(f, lock), last);
        await(f, nodes_having("a") == 0);
        lock_free(f, lock);
        for (size_t node = 0; node < count; node++)
            forget(&nodes[node]);
        await(f, nodes_counting(client) == nodes_of(client));
    }
    assert_grown(draw(f, lock_new_on(f, client, "a", &options)), last);
}

static void flush(struct server *node) {
    server_do(node, "FLUSHALL");
}

static void delete_the_counter(struct server *node) {
    char counter[256];
    assert_true(find_counter(node, "a", counter));
    server_do(node, "DEL %s", counter);
}

static void expire_the_counter(struct server *node) {
    char counter[256];
    assert_true(find_counter(node, "a", counter));
    server_do(node, "PEXPIRE %s 1", counter);
    while (key_exists(node, counter))
        continue;
}

/* Two of three draw it, the third is away; when that is back it has it too, and so one of the two may forget it. */
static void a_node_that_is_given_the_lock_has_the_fence(void **state) {
    struct fixture *f = *state;
    evlock_options options = quick_options();
    evlock_client *client = quorum_client(f, 3, NULL);
    evlock *lock = lock_new_on(f, client, "a", &options);
    char counter[256], number[32];
    await(f, nodes_counting(client) == 3);
    killed.inflict(&nodes[2]);
    uint64_t fence = draw(f, lock);
    killed.mend(&nodes[2]);
    await(f, evlock_keepers(lock) == 3);
    assert_true(find_counter(&nodes[2], "a", counter));
    assert_true(key_value(&nodes[2], counter, number, sizeof number) > 0);
    assert_true(strtoull(number, NULL, 10) >= fence);
}

static void one_node_flushed(void **state) {
    struct fixture *f = *state;
    grows_though(f, client_new(f, NULL, NULL), 1, flush);
}

static void one_node_without_the_counter(void **state) {
    struct fixture *f = *state;
    grows_though(f, client_new(f, NULL, NULL), 1, delete_the_counter);
}

static void one_node_with_an_expired_counter(void **state) {
    struct fixture *f = *state;
    grows_though(f, client_new(f, NULL, NULL), 1, expire_the_counter);
}

static void one_node_restarted_empty(void **state) {
    struct fixture *f = *state;
    grows_though(f, client_new(f, NULL, NULL), 1, restart_empty);
}

/* A server that saves now and then comes back with what it knew some time ago. */
static void an_old_copy(void **state) {
    struct fixture *f = *state;
    evlock_options options = quick_options();
    evlock_client *client = client_new(f, NULL, NULL);
    evlock *lock = lock_new_on(f, client, "a", &options);
    uint64_t last = draw_and_release(f, lock);
    server_do(&nodes[0], "SAVE");
    for (int i = 0; i < 20; i++)
        assert_grown(draw_and_release(f, lock), last);
    server_restart(&nodes[0]);
    assert_grown(draw_and_release(f, lock_new_on(f, client, "a", &options)), last);
}

static void old_copies_on_a_majority(void **state) {
    struct fixture *f = *state;
    evlock_client_options excluding = excluding_options(f, 1000);
    evlock_options options = with_ttl(1000);
    evlock_client *client = quorum_client(f, NODES, &excluding);
    await(f, nodes_counting(client) == NODES);
    evlock *lock = lock_new_on(f, client, "a", &options);
    uint64_t last = draw_and_release(f, lock);
    await(f, nodes_having("a") == 0);
    for (size_t i = 0; i < MAJORITY; i++)
        server_do(&nodes[i], "SAVE");
    for (int i = 0; i < 20; i++)
        assert_grown(draw_and_release(f, lock), last);
    for (size_t i = 0; i < MAJORITY; i++)
        server_restart(&nodes[i]);
    server_pause(&nodes[3]); /* those who know better have no say */
    server_pause(&nodes[4]);
    assert_grown(draw_and_release(f, lock_new_on(f, client, "a", &options)), last);
}

static void a_quorum_flushed(void **state) {
    struct fixture *f = *state;
    grows_though(f, f->client, NODES, flush);
}

static void a_majority_flushed(void **state) {
    struct fixture *f = *state;
    grows_though(f, f->client, MAJORITY, flush);
}

static void a_quorum_restarted_empty(void **state) {
    struct fixture *f = *state;
    grows_though(f, f->client, NODES, restart_empty);
}

/* --- Nodes that counted differently ------------------------------------------------------------------------------- */

static void a_quorum_has_the_number_before_it_is_told(void **state) {
    struct fixture *f = *state;
    char counter[256];
    evlock_options options = quick_options();
    evlock *lock = lock_new(f, "a", &options);
    uint64_t last = draw_and_release(f, lock);
    await(f, nodes_having("a") == 0);
    assert_true(find_counter(&nodes[0], "a", counter));
    for (size_t ahead = 0; ahead < NODES; ahead++) {
        /* One node is far ahead of all others. Whether it is in the quorum is up to chance: if it is not, the fence is
         * a small one; either way a majority has counted as far. */
        server_do(&nodes[ahead], "SET %s %" PRIu64, counter, last + 1000);
        uint64_t fence = draw(f, lock);
        assert_true(nodes_that_counted(counter, fence) >= MAJORITY);
        assert_grown(fence, last);
        assert_status(await_release(f, lock), EVLOCK_OK);
        await(f, nodes_having("a") == 0);
        last = fence + 2000; /* beyond what any has */
        for (size_t i = 0; i < NODES; i++)
            if (i != ahead)
                server_do(&nodes[i], "SET %s %" PRIu64, counter, last);
    }
}

/* The greatest number may be known to a minority of the next quorum only, or be all but forgotten: any two majorities
 * meet in a node that knows it. */
static void the_next_quorum_goes_on_from_the_last(void **state) {
    struct fixture *f = *state;
    uint64_t last = 0;
    for (size_t round = 0; round < 10; round++) {
        /* Another two of the five are stopped each time. */
        server_pause(&nodes[round % NODES]);
        server_pause(&nodes[(round + 2) % NODES]);
        evlock_options options = quick_options();
        evlock *lock = lock_new_on(f, f->client, "a", &options);
        assert_grown(draw_and_release(f, lock), last);
        lock_free(f, lock);
        server_resume(&nodes[round % NODES]);
        server_resume(&nodes[(round + 2) % NODES]);
        await(f, nodes_having("a") == 0);
    }
}

enum { USERS = 8 };

/* Each has the lock once. Who comes first asks for its own fence alone, the next for those of all behind it. */
static uint64_t pass_on(struct fixture *f, evlock *const *locks, const char *counter, uint64_t last) {
    struct record records[USERS] = {{0}};
    for (size_t i = 0; i < USERS; i++)
        assert_status(evlock_acquire(locks[i], NULL, record_end, &records[i]), EVLOCK_OK);
    for (size_t i = 0; i < USERS; i++) {
        await(f, records[i].count);
        assert_ended(&records[i], EVLOCK_OK);
        assert_grown(evlock_fence(locks[i]), last);
        if (i > 0)
            assert_true(nodes_that_counted(counter, last + USERS - 1 - i) >= MAJORITY);
        assert_status(evlock_release(locks[i], NULL, NULL), EVLOCK_OK);
    }
    return last;
}

static void a_lease_that_is_passed_on_has_greater_fences(void **state) {
    struct fixture *f = *state;
    char counter[256];
    evlock_options options = quick_options();
    evlock *other = lock_new_on(f, quorum_client(f, NODES, NULL), "a", &options), *locks[USERS];
    uint64_t last = draw_and_release(f, other);
    options.fence = true;
    options.max_passes = USERS;
    for (size_t i = 0; i < USERS; i++)
        locks[i] = lock_new(f, "a", &options);
    for (size_t round = 0; round < NODES; round++) {
        await(f, nodes_having("a") == 0);
        assert_true(find_counter(&nodes[0], "a", counter));
        for (size_t i = 0; i < NODES; i++)
            server_do(&nodes[i], "SET %s %" PRIu64, counter, last + 40000 * ((i + round) % NODES));
        last = pass_on(f, locks, counter, last);
        await(f, nodes_having("a") == 0);
        assert_grown(draw_and_release(f, other), last);
    }
    assert_int_equal(stats_of(f->client).passed, NODES * (USERS - 2));
}

/* --- The counter -------------------------------------------------------------------------------------------------- */

static void the_counter_expires_when_long_unused(void **state) {
    struct fixture *f = *state;
    char counter[256];
    evlock *lock = lock_new(f, "a", NULL);
    draw_and_release(f, lock);
    await(f, nodes_having("a") == 0);
    for (size_t i = 0; i < NODES; i++) {
        await(f, find_counter(&nodes[i], "a", counter));
        assert_true(key_ttl(&nodes[i], counter) > LONG_TTL); /* not before the lease */
        server_do(&nodes[i], "PEXPIRE %s %d", counter, LONG_TTL);
    }
    draw(f, lock); /* its life begins anew with every use */
    for (size_t i = 0; i < NODES; i++)
        await(f, key_ttl(&nodes[i], counter) > LONG_TTL);
}

/* A hand on the counter sets it far beyond the clock, and takes it away when it has been seen. */
static void goes_backwards(struct fixture *f, evlock_client *client, size_t count) {
    char counter[256];
    evlock_acquire_options options = fenced();
    evlock_options quick = quick_options();
    evlock *lock = lock_new_on(f, client, "a", &quick);
    uint64_t ahead = draw_and_release(f, lock) + UINT64_C(100) * 24 * 3600 * 1000000;
    for (size_t i = 0; i < count; i++) {
        await(f, find_counter(&nodes[i], "a", counter));
        server_do(&nodes[i], "SET %s %" PRIu64, counter, ahead);
    }
    assert_true(draw_and_release(f, lock) > ahead);
    for (size_t i = 0; i < count; i++)
        server_do(&nodes[i], "DEL %s", counter);
    assert_status(await_acquire(f, lock, &options), EVLOCK_EFENCE);
    assert_string_not_equal(f->ended.error, "");
    assert_false(evlock_is_held(lock));
    assert_true(evlock_fence(lock) == 0);
    await(f, nodes_having("a") == 0);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK); /* without a fence it is a lock like any other */
}

static void a_fence_that_goes_backwards_is_an_error(void **state) {
    struct fixture *f = *state;
    goes_backwards(f, client_new(f, NULL, NULL), 1);
}

static void a_fence_that_goes_backwards_on_a_quorum_is_an_error(void **state) {
    struct fixture *f = *state;
    goes_backwards(f, f->client, NODES);
}

/* Something else under the counter's name must not be taken for a grant. */
static void a_counter_of_another_type(void **state) {
    struct fixture *f = *state;
    char counter[256];
    evlock_acquire_options options = fenced();
    evlock_client *client = client_new(f, NULL, NULL);
    evlock *lock = lock_new_on(f, client, "a", NULL);
    draw_and_release(f, lock);
    assert_true(find_counter(&nodes[0], "a", counter));
    server_do(&nodes[0], "DEL %s", counter);
    server_do(&nodes[0], "RPUSH %s x", counter);
    options.max_attempts = EVLOCK_TRY;
    assert_status(await_acquire(f, lock, &options), EVLOCK_EWRONGTYPE);
    assert_false(evlock_is_held(lock));
    await(f, !key_exists(&nodes[0], "a"));
}

/* --- Counters beyond reason --------------------------------------------------------------------------------------- */

/* What no counter holds: where numbers have gaps, more than a year ahead, below zero, and no numbers. */
static const char *const forged[] = {
    "9007199254740992",
    "9223372036854775807",
    "18446744073709551616",
    "1000000000000000000000000000000",
    "1e30",
    "5000000000000000",
    "-1",
    "0x10",
    "1.5",
    "inf",
    "nan",
    "text",
    "",
};

enum { FORGED = sizeof(forged) / sizeof(forged[0]) };

static void forge(size_t from, size_t to, const char *value) {
    for (size_t i = from; i < to; i++)
        freeReplyObject(server_command(&nodes[i], "SET {a}:fence %b", value, strlen(value)));
}

static void assert_forged(size_t from, size_t to, const char *value) {
    for (size_t i = from; i < to; i++)
        assert_true(key_is(&nodes[i], "{a}:fence", value, strlen(value)));
}

static void a_forged_counter_is_refused_and_left_alone(void **state) {
    struct fixture *f = *state;
    evlock_acquire_options options = fenced();
    client_new(f, nodes[0].url, NULL);
    evlock *lock = lock_new_on(f, f->clients[f->clients_len - 1], "a", NULL);
    for (size_t i = 0; i < FORGED; i++) {
        forge(0, 1, forged[i]);
        assert_status(await_acquire(f, lock, &options), EVLOCK_EFENCE);
        assert_string_not_equal(f->ended.error, "");
        assert_false(key_exists(&nodes[0], "a"));
        assert_forged(0, 1, forged[i]);
    }
    server_do(&nodes[0], "DEL {a}:fence");
    server_do(&nodes[0], "RPUSH {a}:fence x");
    assert_status(await_acquire(f, lock, &options), EVLOCK_EWRONGTYPE);
    server_do(&nodes[0], "DEL {a}:fence");
    draw(f, lock);
}

/* Sets the first node's counter so many days ahead of what it drew; what it is then. */
static uint64_t put_ahead(struct fixture *f, evlock *lock, uint64_t days) {
    char ahead[32];
    uint64_t fence = draw_and_release(f, lock) + days * 24 * 3600 * 1000000;
    snprintf(ahead, sizeof(ahead), "%" PRIu64, fence);
    forge(0, 1, ahead);
    return fence;
}

/* As after a clock that was set back: what it had drawn until then is gone on from. */
static void a_counter_that_is_months_ahead_goes_on(void **state) {
    struct fixture *f = *state;
    evlock_client *client = client_new(f, nodes[0].url, NULL);
    evlock *lock = lock_new_on(f, client, "a", NULL);
    uint64_t last = put_ahead(f, lock, 200);
    for (int i = 0; i < 5; i++) {
        uint64_t before = last;
        assert_grown(draw_and_release(f, lock), last);
        assert_true(last == before + 1);
    }
}

static void a_counter_that_is_more_than_a_year_ahead_is_refused(void **state) {
    struct fixture *f = *state;
    evlock_acquire_options options = fenced();
    evlock *lock = lock_new_on(f, client_new(f, nodes[0].url, NULL), "a", NULL);
    put_ahead(f, lock, 368);
    assert_status(await_acquire(f, lock, &options), EVLOCK_EFENCE);
}

/* The others draw, and are not raised to it. */
static void a_minority_that_was_forged_counts_for_nothing(void **state) {
    struct fixture *f = *state;
    evlock_options options = quick_options();
    evlock *lock = lock_new(f, "a", &options);
    uint64_t last = draw_and_release(f, lock);
    for (size_t i = 0; i < FORGED; i++) {
        forge(0, NODES - MAJORITY, forged[i]);
        assert_grown(draw_and_release(f, lock), last);
        await(f, nodes_having("a") == 0);
        assert_forged(0, NODES - MAJORITY, forged[i]);
    }
}

static void a_majority_that_was_forged_grants_nothing(void **state) {
    struct fixture *f = *state;
    evlock_acquire_options options = fenced();
    evlock *lock = lock_new(f, "a", NULL);
    options.max_attempts = EVLOCK_TRY;
    for (size_t i = 0; i < FORGED; i++) {
        forge(0, MAJORITY, forged[i]);
        assert_status(await_acquire(f, lock, &options), EVLOCK_EQUORUM);
        assert_non_null(strstr(f->ended.error, "FENCE"));
        await(f, nodes_having("a") == 0);
        assert_forged(0, MAJORITY, forged[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        QUORUM_TEST(no_fence_unless_asked),
        QUORUM_TEST(a_fence_ends_with_its_lease),
        QUORUM_TEST(a_lost_lease_has_no_fence),
        QUORUM_TEST(the_fence_outlives_renewals),
        QUORUM_TEST_BARE(fences_grow_on_one_node),
        QUORUM_TEST(fences_grow_on_a_quorum),
        QUORUM_TEST(names_count_for_themselves),
        QUORUM_TEST(a_waiters_fence_is_greater_than_the_holders),
        QUORUM_TEST(a_node_that_is_given_the_lock_has_the_fence),
        QUORUM_TEST_BARE(one_node_flushed),
        QUORUM_TEST_BARE(one_node_without_the_counter),
        QUORUM_TEST_BARE(one_node_with_an_expired_counter),
        QUORUM_TEST_BARE(one_node_restarted_empty),
        QUORUM_TEST_BARE(an_old_copy),
        QUORUM_TEST_BARE(old_copies_on_a_majority),
        QUORUM_TEST(a_quorum_flushed),
        QUORUM_TEST(a_majority_flushed),
        QUORUM_TEST(a_quorum_restarted_empty),
        QUORUM_TEST(a_quorum_has_the_number_before_it_is_told),
        QUORUM_TEST(the_next_quorum_goes_on_from_the_last),
        QUORUM_TEST(a_lease_that_is_passed_on_has_greater_fences),
        QUORUM_TEST(the_counter_expires_when_long_unused),
        QUORUM_TEST_BARE(a_fence_that_goes_backwards_is_an_error),
        QUORUM_TEST(a_fence_that_goes_backwards_on_a_quorum_is_an_error),
        QUORUM_TEST_BARE(a_counter_of_another_type),
        QUORUM_TEST_BARE(a_forged_counter_is_refused_and_left_alone),
        QUORUM_TEST_BARE(a_counter_that_is_months_ahead_goes_on),
        QUORUM_TEST_BARE(a_counter_that_is_more_than_a_year_ahead_is_refused),
        QUORUM_TEST(a_minority_that_was_forged_counts_for_nothing),
        QUORUM_TEST(a_majority_that_was_forged_grants_nothing),
    };
    return run_quorum_suite("fence", tests);
}
