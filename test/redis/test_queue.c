/*
 * Waiting in a queue, when all goes well: who comes first, what it costs, what can be asked, and that nothing is left
 * behind. What crosses and what breaks is in test_queue_faults.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../urls.h"
#include "waiters.h"

/* As `then`: releases the handle at once. */
static void release_it(struct record *record) {
    evlock_release(record->then_arg, NULL, NULL);
}

/* --- The order ---------------------------------------------------------------------------------------------------- */

enum { HANDLES = 12 };

/* Clients take turns in joining, and the order is not that of one client. */
static void who_came_first_is_served_first(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(60000);
    struct record records[HANDLES] = {0};
    evlock_client *clients[3] = {f->client, client_new(f, NULL, NULL), client_new(f, NULL, NULL)};
    evlock *holder = held(f, "a", &options);

    for (int i = 0; i < HANDLES; i++) {
        evlock *lock = joins(f, clients[i % 3], &options, &records[i]);
        records[i].then = release_it;
        records[i].then_arg = lock;
    }
    assert_status(await_release(f, holder), EVLOCK_OK);
    await(f, records[HANDLES - 1].count);
    for (int i = 0; i < HANDLES; i++) {
        assert_ended(&records[i], EVLOCK_OK);
        assert_true(i == 0 || records[i].order > records[i - 1].order);
    }
    leaves_nothing(f);
}

/* Each takes its place anew, behind the others. */
static void who_comes_again_goes_to_the_end(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(60000);
    struct record first = {0}, second = {0}, again = {0};
    evlock *holder = held(f, "a", &options);
    evlock *a = joins(f, f->client, &options, &first);
    evlock *b = joins(f, f->client, &options, &second);

    assert_status(await_release(f, holder), EVLOCK_OK);
    await(f, first.count);
    assert_status(await_release(f, a), EVLOCK_OK);
    assert_status(evlock_acquire(a, NULL, record_end, &again), EVLOCK_OK);
    await(f, second.count && waiting(f) == 1);
    assert_int_equal(again.count, 0);
    assert_status(await_release(f, b), EVLOCK_OK);
    await(f, again.count);
    assert_ended(&again, EVLOCK_OK);
    leaves_nothing(f);
}

/* The order is when the server was asked, and looks do not change it. */
static void a_look_keeps_the_place(void **state) {
    struct fixture *f = *state;
    evlock_options eager = queueing(60000), calm = patient(60000);
    struct record first = {0}, second = {0};
    evlock *holder = held(f, "a", &calm);
    evlock *a = joins(f, f->client, &eager, &first);

    joins(f, f->client, &calm, &second);
    long long before = server_calls(f->server, "evalsha");
    await(f, server_calls(f->server, "evalsha") >= before + 3);
    assert_status(await_release(f, holder), EVLOCK_OK);
    await(f, first.count);
    assert_ended(&first, EVLOCK_OK);
    assert_int_equal(second.count, 0);
    assert_status(await_release(f, a), EVLOCK_OK);
    await(f, second.count);
    leaves_nothing(f);
}

static const char *newcomer_path;

/* Tries without pause, until it has the lock. */
static int newcomer(void *arg) {
    redisContext *server = redisConnectUnix(newcomer_path);
    bool has = false;

    (void)arg;
    while (server && !has) {
        redisReply *reply = redisCommand(server, "SET a newcomer NX PX 60000");
        if (!reply)
            return 1;
        has = reply->type == REDIS_REPLY_STATUS;
        freeReplyObject(reply);
    }
    return has ? 0 : 1;
}

static void a_newcomer_does_not_overtake(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(60000);
    struct record records[HANDLES] = {0};
    evlock_client *other = client_new(f, NULL, NULL);
    evlock *holder = held(f, "a", &options), *last = NULL;
    int status;

    for (int i = 0; i < HANDLES; i++) {
        last = joins(f, i % 2 ? f->client : other, &options, &records[i]);
        records[i].then = i < HANDLES - 1 ? release_it : NULL;
        records[i].then_arg = last;
    }
    newcomer_path = f->server->socket;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(newcomer(NULL));
    long long before = server_calls(f->server, "set");
    await(f, server_calls(f->server, "set") > before + 10);
    assert_status(await_release(f, holder), EVLOCK_OK);
    await(f, records[HANDLES - 1].count);
    for (int i = 0; i < HANDLES; i++)
        assert_ended(&records[i], EVLOCK_OK);
    assert_int_equal(waitpid(child, &status, WNOHANG), 0);
    evlock_release(last, NULL, NULL);
    await(f, waitpid(child, &status, WNOHANG) == child);
    assert_int_equal(status, 0);
    assert_true(key_is(f->server, "a", "newcomer", 8));
    server_do(f->server, "DEL a");
    leaves_nothing(f);
}

/* --- With others -------------------------------------------------------------------------------------------------- */

struct turn {
    evlock **locks;
    int *served;
    int *together; /* how often another held it, too */
    int index, count;
};

static void take_turn(struct record *record) {
    struct turn *turn = record->then_arg;

    ++*turn->served;
    for (int i = 0; i < turn->count; i++)
        *turn->together += i != turn->index && evlock_is_held(turn->locks[i]);
    evlock_release(turn->locks[turn->index], NULL, NULL);
}

static void queue_and_polling_exclude_each_other(void **state) {
    struct fixture *f = *state;
    evlock_options queue = queueing(60000), poll = with_ttl(60000);
    struct record records[HANDLES] = {0};
    struct turn turns[HANDLES];
    evlock *locks[HANDLES];
    evlock_client *other = client_new(f, NULL, NULL);
    int served = 0, together = 0;

    poll.retry_delay_ms = 10;
    evlock *holder = held(f, "a", &queue);
    for (int i = 0; i < HANDLES; i++) {
        locks[i] = lock_new_on(f, i % 2 ? f->client : other, "a", i % 3 ? &queue : &poll);
        turns[i] = (struct turn){locks, &served, &together, i, HANDLES};
        records[i] = (struct record){.then = take_turn, .then_arg = &turns[i]};
        assert_status(evlock_acquire(locks[i], NULL, record_end, &records[i]), EVLOCK_OK);
    }
    await(f, waiting(f) == HANDLES - HANDLES / 3);
    assert_status(await_release(f, holder), EVLOCK_OK);
    await(f, served == HANDLES);
    assert_int_equal(together, 0);
    leaves_nothing(f);
}

/* Its release tells nobody, so the first in the queue looks. */
static void a_foreign_release_is_found(void **state) {
    struct fixture *f = *state;
    evlock_options options = queueing(60000);
    struct record record = {0};

    server_do(f->server, "SET a foreign PX 60000");
    evlock *lock = joins(f, f->client, &options, &record);
    server_do(f->server, "DEL a");
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    assert_int_equal(waiting(f), 0);
    assert_status(await_release(f, lock), EVLOCK_OK);
    leaves_nothing(f);
}

/* Who is eager finds the release before who is calm. */
enum { EACH = 5 };

/* Half of them are eager, and the others look so seldom that they find nothing meanwhile. */
static void looks_are_as_often(struct fixture *f, const evlock_options *eager, const evlock_acquire_options *eager_own,
                               const evlock_options *calm, const evlock_acquire_options *calm_own) {
    struct record records[2 * EACH] = {0};

    server_do(f->server, "MSET 0 foreign 1 foreign 2 foreign 3 foreign 4 foreign");
    server_do(f->server, "MSET 5 foreign 6 foreign 7 foreign 8 foreign 9 foreign");
    for (int i = 0; i < 2 * EACH; i++) {
        char name[] = {(char)('0' + i), '\0'};
        evlock *lock = lock_new(f, name, i < EACH ? eager : calm);
        assert_status(evlock_acquire(lock, i < EACH ? eager_own : calm_own, record_end, &records[i]), EVLOCK_OK);
    }
    for (int i = 0; i < 2 * EACH; i++)
        await(f, server_integer(f->server, "ZCARD {%d}:queue", i) == 1);
    server_do(f->server, "DEL 0 1 2 3 4 5 6 7 8 9");
    for (int i = 0; i < EACH; i++) {
        await(f, records[i].count);
        assert_ended(&records[i], EVLOCK_OK);
    }
    for (int i = EACH; i < 2 * EACH; i++)
        assert_int_equal(records[i].count, 0);
    leaves_nothing(f);
}

static void the_first_looks_as_often_as_its_delay_says(void **state) {
    evlock_options eager = queueing(60000), calm = patient(60000);

    looks_are_as_often(*state, &eager, NULL, &calm, NULL);
}

static void the_first_looks_as_often_as_its_acquire_says(void **state) {
    evlock_options eager = queueing(60000), calm = patient(60000);
    evlock_acquire_options seldom = {.size = sizeof(seldom)}, often = seldom;

    seldom.retry_delay_ms = calm.retry_delay_ms;
    often.retry_delay_ms = eager.retry_delay_ms;
    looks_are_as_often(*state, &calm, &often, &eager, &seldom);
}

/* Its looks are seconds apart, but for the one when the holder's ttl ends. */
static void a_dead_holders_lock_passes_on_with_its_ttl(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(60000);
    bool soon = false;

    for (int tries = 0; tries < 5 && !soon; tries++) {
        struct record record = {0};
        server_do(f->server, "SET a dead PX 400");
        int64_t ends = evlock_clock_us() + 400 * 1000;
        evlock *lock = joins(f, f->client, &options, &record);
        await(f, record.count);
        assert_ended(&record, EVLOCK_OK);
        soon = record.at - ends < 1500 * 1000;
        assert_status(await_release(f, lock), EVLOCK_OK);
    }
    assert_true(soon);
    leaves_nothing(f);
}

/* A foreign holder without expiry is waited for by looks alone. */
static void a_holder_without_expiry_is_waited_for(void **state) {
    struct fixture *f = *state;
    evlock_options options = queueing(60000);
    struct record record = {0};

    server_do(f->server, "SET a foreign");
    joins(f, f->client, &options, &record);
    run_for(f, 300);
    assert_int_equal(record.count, 0);
    server_do(f->server, "DEL a");
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    leaves_nothing(f);
}

/* --- What it costs ------------------------------------------------------------------------------------------------ */

static long long connections(struct fixture *f) {
    return server_integer(f->server, "EVAL %s 0",
                          "return tonumber(string.match(redis.call('INFO', 'clients'), 'connected_clients:(%d+)'))");
}

static void without_a_wait_it_is_as_without_a_queue(void **state) {
    struct fixture *f = *state;
    evlock_options options = queueing(60000);

    await_connected(f, f->client);
    long long before = connections(f);
    for (int i = 0; i < 3; i++) {
        server_do(f->server, "CONFIG RESETSTAT");
        evlock *lock = held(f, "a", &options);
        assert_int_equal(server_calls(f->server, "set"), 1);
        assert_int_equal(server_calls(f->server, "evalsha"), 0);
        assert_status(await_release(f, lock), EVLOCK_OK);
        assert_int_equal(server_calls(f->server, "set"), 1);
        assert_int_equal(server_calls(f->server, "evalsha"), 1);
        assert_int_equal(server_calls(f->server, "zadd"), 0);
    }
    assert_int_equal(connections(f), before);
    leaves_nothing(f);
}

/* The plain try, the join, and the release by the one before: so also if many wait. None to be granted. Once more, if
 * the machine was so slow that waiters looked. */
static void a_turn_costs_three_commands(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(60000);

    for (int tries = 0;; tries++) {
        struct record records[HANDLES] = {0};
        evlock *holder = held(f, "a", &options);
        int64_t begun = evlock_clock_us();
        server_do(f->server, "CONFIG RESETSTAT");
        for (int i = 0; i < HANDLES; i++) {
            evlock *lock = joins(f, f->client, &options, &records[i]);
            records[i].then = release_it;
            records[i].then_arg = lock;
        }
        assert_status(await_release(f, holder), EVLOCK_OK);
        await(f, records[HANDLES - 1].count && !key_exists(f->server, "a"));
        long long evals = server_calls(f->server, "evalsha"), sets = server_calls(f->server, "set");
        bool slow = evlock_clock_us() - begun > 2000 * 1000;
        while (f->locks_len)
            lock_free(f, f->locks[0]);
        if (slow && tries < 5)
            continue;
        /* one more release, the holder's; a SET in each grant */
        assert_int_equal(evals, 2 * HANDLES + 1);
        assert_int_equal(sets, 2 * HANDLES);
        break;
    }
    leaves_nothing(f);
}

static void who_may_not_wait_never_joins(void **state) {
    struct fixture *f = *state;
    evlock_options options = queueing(60000), never = queueing(60000);
    evlock_acquire_options try = {.size = sizeof(evlock_acquire_options)};
    evlock *holder = held(f, "a", &options), *lock = lock_new(f, "a", &options);

    await_connected(f, f->client);
    long long before = connections(f);
    try.max_attempts = EVLOCK_TRY;
    never.max_attempts = EVLOCK_TRY;
    assert_status(await_acquire(f, lock, &try), EVLOCK_EHELD);
    assert_status(await_try(f, lock_new(f, "a", &never)), EVLOCK_EHELD);
    assert_int_equal(server_calls(f->server, "zadd"), 0);
    assert_int_equal(connections(f), before);
    assert_status(await_release(f, holder), EVLOCK_OK);
    assert_status(await_acquire(f, lock, &try), EVLOCK_OK);
    leaves_nothing(f);
}

/* The client listens, for another handle. */
static void who_polls_goes_on_as_before_beside_who_queues(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(60000), polling = with_ttl(60000);
    struct record record = {0};

    held(f, "a", &options);
    joins(f, f->client, &options, &record);
    assert_status(await_try(f, lock_new(f, "a", &polling)), EVLOCK_EHELD);
    polling.max_wait_ms = 300;
    polling.retry_delay_ms = 200;
    polling.retry_jitter = EVLOCK_NO_JITTER;
    long long before = server_calls(f->server, "set");
    assert_status(await_acquire(f, lock_new(f, "a", &polling), NULL), EVLOCK_ETIMEDOUT);
    assert_int_in_range(server_calls(f->server, "set") - before, 1, 2);
    leaves_nothing(f);
}

/* --- Deadlines and fences ----------------------------------------------------------------------------------------- */

/* The server is asked first: what it has left then is more than what the handle believes in later. */
static void backed_by_the_server(struct fixture *f, const evlock *lock) {
    int64_t on_server = key_ttl(f->server, "a");
    assert_true(on_server > 0);
    assert_true(evlock_remaining_ms(lock) <= on_server);
}

static void no_deadline_is_later_than_the_servers(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(1000);
    evlock_client *other = client_new(f, NULL, NULL);

    for (int i = 0; i < 40; i++) {
        struct record record = {0};
        evlock *holder = held(f, "a", &options);
        evlock *lock = joins(f, i % 2 ? f->client : other, &options, &record);
        run_for(f, i % 8 == 7 ? 600 : i % 5);
        assert_status(evlock_release(holder, NULL, NULL), EVLOCK_OK);
        await(f, record.count);
        assert_ended(&record, EVLOCK_OK);
        backed_by_the_server(f, lock);
        lock_free(f, lock);
        lock_free(f, holder);
        await(f, !key_exists(f->server, "a"));
    }
    leaves_nothing(f);
}

/* What a grant is short of is what the clocks may differ by, however long the wait was. */
static void a_grant_is_nearly_the_whole_ttl(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(60000);
    struct record record = {0};
    evlock *holder = held(f, "a", &options);
    evlock *lock = joins(f, f->client, &options, &record);

    run_for(f, 2000);
    assert_status(await_release(f, holder), EVLOCK_OK);
    await(f, record.count);
    assert_true(evlock_remaining_ms(lock) > 30000);
    leaves_nothing(f);
}

struct drawing {
    evlock *lock;
    uint64_t fence;
};

static void draw_and_release(struct record *record) {
    struct drawing *drawing = record->then_arg;
    drawing->fence = evlock_fence(drawing->lock);
    evlock_release(drawing->lock, NULL, NULL);
}

/* The release frees the lock all the same; who wants a fence is told, and who wants none gets the lock. */
static void a_forged_counter_grants_no_fence_through_the_queue(void **state) {
    static const char *const forged[] = {"9007199254740992", "9223372036854775807", "1e30", "-1", "text"};
    struct fixture *f = *state;
    evlock_options options = queueing(60000);
    evlock_acquire_options fenced = {.size = sizeof(evlock_acquire_options)};

    fenced.fence = EVLOCK_ON;
    for (size_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
        struct record wants = {0}, other = {0};
        evlock *holder = held(f, "a", &options), *lock = lock_new(f, "a", &options);
        assert_status(evlock_acquire(lock, &fenced, record_end, &wants), EVLOCK_OK);
        await(f, server_integer(f->server, "ZCARD {a}:queue") == 1);
        evlock *next = joins(f, f->client, &options, &other);
        server_do(f->server, "SET {a}:fence %s", forged[i]);
        assert_status(await_release(f, holder), EVLOCK_OK);
        await(f, other.count);
        assert_ended(&other, EVLOCK_OK);
        assert_status(await_release(f, next), EVLOCK_OK);
        await(f, wants.count);
        assert_ended(&wants, EVLOCK_EFENCE);
        assert_true(key_is(f->server, "{a}:fence", forged[i], strlen(forged[i])));
        server_do(f->server, "FLUSHALL");
    }
}

static void fences_grow_through_the_queue(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(60000);
    evlock_acquire_options fenced = {.size = sizeof(evlock_acquire_options)};
    struct record records[HANDLES] = {0};
    struct drawing drawings[HANDLES];

    fenced.fence = EVLOCK_ON;
    evlock *holder = lock_new(f, "a", &options);
    for (int round = 0; round < 3; round++) {
        assert_status(await_acquire(f, holder, &fenced), EVLOCK_OK);
        uint64_t last = evlock_fence(holder);
        memset(records, 0, sizeof(records));
        for (int i = 0; i < HANDLES; i++) {
            drawings[i] = (struct drawing){.lock = lock_new(f, "a", &options)};
            records[i] = (struct record){.then = draw_and_release, .then_arg = &drawings[i]};
            assert_status(evlock_acquire(drawings[i].lock, i % 4 ? &fenced : NULL, record_end, &records[i]), EVLOCK_OK);
            await(f, waiting(f) == i + 1);
        }
        assert_status(await_release(f, holder), EVLOCK_OK);
        await(f, records[HANDLES - 1].count);
        for (int i = 0; i < HANDLES; i++) {
            assert_ended(&records[i], EVLOCK_OK);
            if (i % 4 == 0) {
                assert_int_equal(drawings[i].fence, 0);
                continue;
            }
            assert_true(drawings[i].fence > last);
            last = drawings[i].fence;
        }
    }
    server_do(f->server, "DEL {a}:fence");
    leaves_nothing(f);
}

/* --- What a granted lease can do ---------------------------------------------------------------------------------- */

/* A handle that has been granted the lock by the release of another. */
static evlock *granted(struct fixture *f, const evlock_options *options) {
    struct record record = {0};
    evlock *holder = held(f, "a", options);
    evlock *lock = joins(f, f->client, options, &record);

    assert_status(await_release(f, holder), EVLOCK_OK);
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    return lock;
}

static void a_granted_lease_is_like_any_other(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(60000);
    char token[128];
    size_t len;

    evlock *lock = granted(f, &options);
    assert_true(key_is(f->server, "a", evlock_token(lock, &len), 36));
    assert_int_equal(len, 36);
    assert_true(ask_owned(f, lock));
    assert_status(await_extend(f, lock, 60000, EVLOCK_EXTEND_ADD), EVLOCK_OK);
    assert_true(evlock_remaining_ms(lock) > 100000);
    assert_status(await_extend(f, lock, 0, EVLOCK_EXTEND_RESET), EVLOCK_OK);
    assert_true(evlock_remaining_ms(lock) < 60000);
    backed_by_the_server(f, lock);

    assert_status(evlock_export(lock, token, sizeof(token), &len), EVLOCK_OK);
    evlock *heir = lock_new(f, "a", &options);
    assert_status(await_adopt(f, heir, token, len), EVLOCK_OK);
    assert_status(await_release(f, heir), EVLOCK_OK);
    assert_false(key_exists(f->server, "a"));
    leaves_nothing(f);
}

static void a_granted_lease_is_renewed(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(2000);

    options.auto_renewal = true;
    options.renewal_interval_ms = 100;
    evlock *lock = granted(f, &options);
    evlock_stats before, now;
    assert_status(evlock_client_stats(f->client, &before, sizeof(before)), EVLOCK_OK);
    do {
        loop_turn(f->loop);
        assert_status(evlock_client_stats(f->client, &now, sizeof(now)), EVLOCK_OK);
        assert_true(evlock_is_held(lock));
    } while (now.renewals < before.renewals + 3);
    backed_by_the_server(f, lock);
    leaves_nothing(f);
}

/* An adopted lease, and one that is broken, is passed on to who waits as well. */
static void every_end_of_a_lease_grants_to_the_next(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(60000);
    struct record adopted = {0}, broken = {0}, freed = {0};
    evlock_stats stats;
    char token[128];
    size_t len;

    evlock *lock = granted(f, &options);
    joins(f, f->client, &options, &adopted);
    evlock *second = f->locks[f->locks_len - 1];
    joins(f, f->client, &options, &broken);
    evlock *third = f->locks[f->locks_len - 1];
    joins(f, f->client, &options, &freed);

    assert_status(evlock_export(lock, token, sizeof(token), &len), EVLOCK_OK);
    evlock *heir = lock_new(f, "a", &options);
    assert_status(await_adopt(f, heir, token, len), EVLOCK_OK);
    assert_status(await_release(f, heir), EVLOCK_OK);
    await(f, adopted.count);
    assert_true(evlock_is_held(second));
    assert_status(await_break(f, heir), EVLOCK_OK);
    assert_true(key_exists(f->server, "a")); /* granted in the same step */
    await(f, broken.count);
    assert_true(evlock_is_held(third));
    lock_free(f, third);
    await(f, freed.count);
    assert_ended(&freed, EVLOCK_OK);
    assert_status(evlock_client_stats(f->client, &stats, sizeof(stats)), EVLOCK_OK);
    assert_int_equal(stats.handed, 4);
    leaves_nothing(f);
}

/* --- Questions ---------------------------------------------------------------------------------------------------- */

static void holder_is(struct fixture *f, evlock *asks, const char *name) {
    assert_string_equal(ask_holder(f, asks), name);
}

static void a_holder_is_known_by_its_name(void **state) {
    struct fixture *f = *state;
    evlock_options named = queueing(60000), slashed = queueing(60000);
    evlock_acquire_options own = {.size = sizeof(evlock_acquire_options)};
    struct record record = {0};
    evlock *asks = lock_new(f, "a", NULL);

    holder_is(f, asks, "");
    named.holder = "host:4711";
    slashed.holder = "rack/7/host";
    evlock *first = held(f, "a", &named);
    holder_is(f, asks, "host:4711");
    joins(f, f->client, &slashed, &record);
    evlock *second = f->locks[f->locks_len - 1];
    holder_is(f, asks, "host:4711");
    assert_status(await_release(f, first), EVLOCK_OK);
    await(f, record.count);
    holder_is(f, asks, "rack/7/host");
    assert_status(await_release(f, second), EVLOCK_OK);

    own.token = "a token of its own";
    own.token_len = EVLOCK_CSTRING;
    assert_status(await_acquire(f, first, &own), EVLOCK_OK);
    holder_is(f, asks, "");
    assert_status(await_release(f, first), EVLOCK_OK);
    server_do(f->server, "SET a %s", "");
    holder_is(f, asks, "");
    server_do(f->server, "SET a foreign/token");
    holder_is(f, asks, "");
    server_do(f->server, "DEL a");
    leaves_nothing(f);
}

static void is_at(struct fixture *f, evlock *lock, int64_t place) {
    assert_int_equal(ask_place(f, lock), place);
}

static void there_are(struct fixture *f, evlock *asks, int64_t waiters) {
    assert_int_equal(ask_waiters(f, asks), waiters);
}

/* Rather than that it has none. */
static void a_place_that_may_not_be_read_is_no_answer(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(60000);
    struct record record = {0};

    held(f, "a", &options);
    evlock *lock = joins(f, f->client, &options, &record);
    server_do(f->server, "ACL SETUSER default -zrank");
    assert_status(await_query(f, lock, EVLOCK_QUERY_PLACE), EVLOCK_EPERM);
    assert_status(await_query(f, lock, EVERY_QUERY), EVLOCK_EPERM);
    server_do(f->server, "ACL SETUSER default +zrank");
    is_at(f, lock, 1);
    assert_status(await_query(f, lock, EVERY_QUERY), EVLOCK_OK);
    assert_int_equal(f->ended.answer.place, 1);
    leaves_nothing(f);
}

static void waiters_are_told_their_place(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(60000);
    struct record records[3] = {0};
    evlock *holder = held(f, "a", &options), *locks[3];

    there_are(f, holder, 0);
    is_at(f, holder, 0);
    for (int i = 0; i < 3; i++) {
        locks[i] = joins(f, f->client, &options, &records[i]);
        there_are(f, holder, i + 1);
    }
    for (int i = 0; i < 3; i++) {
        is_at(f, locks[i], i + 1);
        assert_status(await_query(f, locks[i], EVERY_QUERY), EVLOCK_OK);
        assert_true(f->ended.answer.locked && !f->ended.answer.owned && f->ended.answer.ttl_ms > 0);
        assert_int_equal(f->ended.answer.waiters, 3);
        assert_int_equal(f->ended.answer.place, i + 1);
    }
    assert_status(evlock_cancel(locks[0]), EVLOCK_OK);
    await(f, waiting(f) == 2);
    is_at(f, locks[0], 0);
    is_at(f, locks[1], 1);
    is_at(f, locks[2], 2);
    assert_status(await_release(f, holder), EVLOCK_OK);
    await(f, records[1].count);
    is_at(f, locks[1], 0);
    is_at(f, locks[2], 1);
    there_are(f, holder, 1);
    leaves_nothing(f);
}

static void the_wait_is_known_without_asking(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(60000);
    struct record record = {0};
    evlock *holder = held(f, "a", &options);

    assert_int_equal(evlock_waited_ms(NULL), 0);
    assert_int_equal(evlock_waited_ms(holder), 0);
    int64_t begun = evlock_clock_us();
    evlock *lock = joins(f, f->client, &options, &record);
    run_for(f, 50);
    int64_t waited = evlock_waited_ms(lock);
    assert_true(waited >= 50 && waited <= (evlock_clock_us() - begun) / 1000);
    assert_status(await_release(f, holder), EVLOCK_OK);
    await(f, record.count);
    assert_int_equal(evlock_waited_ms(lock), 0);
    leaves_nothing(f);
}

/* --- Statistics --------------------------------------------------------------------------------------------------- */

static uint64_t sum(const uint64_t buckets[EVLOCK_STATS_BUCKETS]) {
    uint64_t total = 0;
    for (size_t i = 0; i < EVLOCK_STATS_BUCKETS; i++)
        total += buckets[i];
    return total;
}

static void statistics_tell_what_happened(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(60000), brief = patient(100);
    struct record cancelled = {0}, lost = {0}, handed = {0};
    evlock_stats stats;

    brief.on_lost = record_end;
    brief.arg = &lost;
    evlock *holder = held(f, "a", &options);
    assert_status(await_try(f, lock_new(f, "a", &options)), EVLOCK_EHELD);
    evlock *gives_up = joins(f, f->client, &options, &cancelled);
    assert_status(evlock_cancel(gives_up), EVLOCK_OK);
    await(f, cancelled.count && waiting(f) == 0);
    evlock *lock = joins(f, f->client, &brief, &handed);
    run_for(f, 20);
    assert_status(await_release(f, holder), EVLOCK_OK);
    await(f, handed.count && lost.count);

    assert_status(evlock_client_stats(f->client, &stats, sizeof(stats)), EVLOCK_OK);
    assert_int_equal(stats.acquired, 2);
    assert_int_equal(stats.waited, 1);
    assert_int_equal(stats.handed, 1);
    assert_int_equal(stats.failed, 2);
    assert_int_equal(stats.released, 1);
    assert_int_equal(stats.lost_expired, 1);
    assert_int_equal(stats.renewals, 0);
    assert_int_equal(stats.reconnects, 0);
    assert_int_equal(sum(stats.wait), 2);
    assert_int_equal(sum(stats.hold), 2);
    uint64_t long_waits = 0;
    for (int i = 15; i < EVLOCK_STATS_BUCKETS; i++) /* from 16.384 ms */
        long_waits += stats.wait[i];
    assert_true(long_waits >= 1);
    assert_int_equal(stats.wait[EVLOCK_STATS_BUCKETS - 1], 0);
    lock_free(f, lock);
    leaves_nothing(f);
}

/* Who joins at once, for it was granted the lock so the last time, has waited all the same. */
static void a_wait_is_counted_however_it_began(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(60000);
    evlock_client *other = client_new(f, NULL, NULL);
    evlock *holder = held(f, "a", &options), *lock = lock_new_on(f, other, "a", &options);
    evlock_stats stats;

    for (uint64_t round = 1; round <= 3; round++) {
        struct record record = {0};
        assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
        await(f, waiting(f) == 1);
        assert_status(await_release(f, holder), EVLOCK_OK);
        await(f, record.count);
        assert_ended(&record, EVLOCK_OK);
        assert_status(evlock_client_stats(other, &stats, sizeof(stats)), EVLOCK_OK);
        assert_int_equal(stats.acquired, round);
        assert_int_equal(stats.handed, round);
        assert_int_equal(stats.waited, round);
        assert_status(await_release(f, lock), EVLOCK_OK);
        assert_status(await_acquire(f, holder, NULL), EVLOCK_OK);
    }
    leaves_nothing(f);
}

/* --- Keys --------------------------------------------------------------------------------------------------------- */

static unsigned slot_of(const char *key, size_t len) {
    const char *open = memchr(key, '{', len);
    const char *close = open ? memchr(open, '}', len - (size_t)(open - key)) : NULL;
    unsigned crc = 0;

    if (close && close > open + 1) {
        key = open + 1;
        len = (size_t)(close - key);
    }
    for (size_t i = 0; i < len; i++) {
        crc ^= (unsigned)(unsigned char)key[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1;
        crc &= 0xFFFF;
    }
    return crc % 16384;
}

/* Of what is on the server: all of it belongs to one slot, and has an expiry. */
static void share_a_slot(struct fixture *f, unsigned slot, size_t count) {
    redisReply *keys = server_command(f->server, "KEYS *");

    assert_int_equal(keys->elements, count);
    for (size_t i = 0; i < keys->elements; i++) {
        assert_int_equal(slot_of(keys->element[i]->str, keys->element[i]->len), slot);
        long long ttl = server_integer(f->server, "PTTL %b", keys->element[i]->str, keys->element[i]->len);
        assert_true(ttl > 0);
    }
    freeReplyObject(keys);
}

static void keeps_to_its_slot(struct fixture *f, const char *name) {
    evlock_options options = patient(60000);
    evlock_acquire_options fenced = {.size = sizeof(evlock_acquire_options)};
    struct record record = {0};
    evlock *holder = held(f, name, &options), *lock = lock_new(f, name, &options);

    fenced.fence = EVLOCK_ON;
    assert_status(evlock_acquire(lock, &fenced, record_end, &record), EVLOCK_OK);
    await(f, server_integer(f->server, "DBSIZE") == 2);
    share_a_slot(f, slot_of(name, strlen(name)), 2);
    assert_status(await_release(f, holder), EVLOCK_OK);
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
    share_a_slot(f, slot_of(name, strlen(name)), 2); /* the lock and its counter */
    assert_status(await_release(f, lock), EVLOCK_OK);
    server_do(f->server, "FLUSHALL");
}

static void the_keys_of_a_lock_share_a_slot_and_expire(void **state) {
    static const char *const names[] = {
        "a",     "{a}", "a{b}c", "{a}{b}", "{",  "a{b", "foo{{bar}}zap", "{x}:ay", "a b\n\tc", "{user}",
        "{a}b}", "{{}", "}",     "a}",     "}{", "{}",  "{}a",           "{}{b}",  "}{a",      "a{}b",
    };
    struct fixture *f = *state;
    char longest[513] = {0};

    assert_int_equal(slot_of("123456789", 9), 0x31C3);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        keeps_to_its_slot(f, names[i]);
    memset(longest, 'n', 512);
    keeps_to_its_slot(f, longest);
    longest[0] = '}';
    keeps_to_its_slot(f, longest);
}

/* Each has a queue of its own. */
static void a_name_in_braces_is_another_lock(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(60000);
    struct record plain = {0}, braced = {0};
    evlock *a = held(f, "a", &options), *b = held(f, "{a}", &options);
    evlock *next_a = lock_new(f, "a", &options), *next_b = lock_new(f, "{a}", &options);

    assert_status(evlock_acquire(next_b, NULL, record_end, &braced), EVLOCK_OK);
    await(f, server_integer(f->server, "DBSIZE") == 3);
    assert_status(evlock_acquire(next_a, NULL, record_end, &plain), EVLOCK_OK);
    await(f, server_integer(f->server, "DBSIZE") == 4);
    assert_status(await_release(f, a), EVLOCK_OK);
    await(f, plain.count);
    assert_int_equal(braced.count, 0);
    assert_status(await_release(f, b), EVLOCK_OK);
    await(f, braced.count);
    leaves_nothing(f);
}

/* --- Where there is no queue -------------------------------------------------------------------------------------- */

static void a_queue_is_refused_where_there_can_be_none(void **state) {
    struct fixture *f = *state;
    const char *urls[] = {f->server->url, f->server->tcp_url, f->server->url};
    evlock_options options = queueing(60000), forever = queueing(EVLOCK_NO_EXPIRY), counting = queueing(60000);
    evlock_acquire_options counted = {.size = sizeof(evlock_acquire_options)};
    evlock_client *several;
    evlock *lock;

    counting.max_attempts = counted.max_attempts = 4;
    assert_status(evlock_new(&lock, f->client, "a", 1, &forever), EVLOCK_EQUEUE);
    assert_string_not_equal(evlock_last_error(), "");
    assert_status(evlock_new(&lock, f->client, "a", 1, &counting), EVLOCK_EQUEUE);
    lock = lock_new(f, "a", &options);
    assert_status(evlock_acquire(lock, &counted, NULL, NULL), EVLOCK_EQUEUE);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);

    urls[0] = "redis://127.0.0.1:1";
    urls[2] = "redis://127.0.0.1:2";
    assert_status(evlock_client_new(&several, loop_for_evlock(f->loop), urls_joined(urls, 3).text, NULL), EVLOCK_OK);
    assert_status(evlock_new(&lock, several, "a", 1, &options), EVLOCK_EQUEUE);
    assert_string_not_equal(evlock_last_error(), "");
    lock = lock_new_on(f, several, "a", NULL);
    assert_status(evlock_query(lock, EVLOCK_QUERY_WAITERS, record_answer, &f->ended), EVLOCK_EQUEUE);
    assert_status(evlock_query(lock, EVLOCK_QUERY_PLACE, record_answer, &f->ended), EVLOCK_EQUEUE);
    assert_status(evlock_query(lock, EVERY_QUERY, record_answer, &f->ended), EVLOCK_EQUEUE);
    lock_free(f, lock);
    evlock_client_free(several);
    leaves_nothing(f);
}

/* --- Scopes ------------------------------------------------------------------------------------------------------- */

static int ran;

static int body(evlock *lock, void *arg) {
    (void)arg;
    ran += evlock_is_held(lock);
    return evlock_release(lock, NULL, NULL);
}

/* They do not give up after a few attempts, for there are none. */
static void runs_wait_in_line(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(60000);
    struct record records[3] = {0};
    evlock *holder = held(f, "a", &options);

    ran = 0;
    for (int i = 0; i < 3; i++)
        assert_status(evlock_run(NULL, f->client, "a", 1, &options, body, record_run, &records[i]), EVLOCK_OK);
    await(f, waiting(f) == 3);
    assert_status(await_release(f, holder), EVLOCK_OK);
    for (int i = 0; i < 3; i++) {
        await(f, records[i].count);
        assert_ended(&records[i], EVLOCK_OK);
    }
    assert_int_equal(ran, 3);
    leaves_nothing(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(who_came_first_is_served_first),
        TEST(who_comes_again_goes_to_the_end),
        TEST(a_look_keeps_the_place),
        TEST(a_newcomer_does_not_overtake),
        TEST(queue_and_polling_exclude_each_other),
        TEST(a_foreign_release_is_found),
        TEST(the_first_looks_as_often_as_its_delay_says),
        TEST(the_first_looks_as_often_as_its_acquire_says),
        TEST(a_dead_holders_lock_passes_on_with_its_ttl),
        TEST(a_holder_without_expiry_is_waited_for),
        TEST(without_a_wait_it_is_as_without_a_queue),
        TEST(a_turn_costs_three_commands),
        TEST(who_may_not_wait_never_joins),
        TEST(who_polls_goes_on_as_before_beside_who_queues),
        TEST(no_deadline_is_later_than_the_servers),
        TEST(a_grant_is_nearly_the_whole_ttl),
        TEST(fences_grow_through_the_queue),
        TEST(a_forged_counter_grants_no_fence_through_the_queue),
        TEST(a_granted_lease_is_like_any_other),
        TEST(a_granted_lease_is_renewed),
        TEST(every_end_of_a_lease_grants_to_the_next),
        TEST(a_holder_is_known_by_its_name),
        TEST(waiters_are_told_their_place),
        TEST(a_place_that_may_not_be_read_is_no_answer),
        TEST(the_wait_is_known_without_asking),
        TEST(statistics_tell_what_happened),
        TEST(a_wait_is_counted_however_it_began),
        TEST(the_keys_of_a_lock_share_a_slot_and_expire),
        TEST(a_name_in_braces_is_another_lock),
        TEST(a_queue_is_refused_where_there_can_be_none),
        TEST(runs_wait_in_line),
    };
    return run_suite("queue", tests);
}
