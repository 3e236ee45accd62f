/*
 * Leases that are passed on inside a client: to whom, when, how often, and what becomes of them at every point of it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "users.h"

enum { MANY = 20, KEYS = 40 };

static char *key_of(struct fixture *f) {
    redisReply *reply = server_command(f->server, "GET a");
    char *token = reply->type == REDIS_REPLY_STRING ? strdup(reply->str) : NULL;

    freeReplyObject(reply);
    return token;
}

/* --- To whom ------------------------------------------------------------------------------------------------------ */

static void goes_to_those_who_wait_in_order(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing(100);
    struct user users[MANY];
    char *token;

    crowd(f, users, MANY, &options);
    token = key_of(f);
    assert_non_null(token);
    for (int i = 1; i < MANY; i++) {
        char *now;
        release(&users[i - 1]);
        assert_false(evlock_is_held(users[i - 1].lock));
        assert_false(evlock_is_held(users[i].lock));
        await_held(f, &users[i]);
        assert_ended(&users[i - 1].released, EVLOCK_OK);
        assert_true(users[i - 1].released.order < users[i].record.order);
        now = key_of(f);
        assert_string_equal(now, token);
        free(now);
        for (int j = i + 1; j < MANY; j++)
            assert_int_equal(users[j].record.count, 0);
    }
    assert_int_equal(passed(f), MANY - 1);
    assert_status(await_release(f, users[MANY - 1].lock), EVLOCK_OK);
    assert_null(key_of(f));
    free(token);
}

/* As each does that asks the server. */
static void is_counted_for_each_holder(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing(100);
    struct user users[3];
    uint64_t holds = 0;
    evlock_stats stats;

    crowd(f, users, 3, &options);
    for (int i = 1; i < 3; i++) {
        release(&users[i - 1]);
        await_held(f, &users[i]);
    }
    stats = stats_of(f->client);
    for (size_t i = 0; i < sizeof(stats.hold) / sizeof(stats.hold[0]); i++)
        holds += stats.hold[i];
    assert_int_equal(stats.acquired, 3);
    assert_int_equal(stats.waited, 2);
    assert_int_equal(stats.passed, 2);
    assert_int_equal(stats.released, 2);
    assert_int_equal(holds, 2);
}

/* Nobody got the lock at once but the first, though nobody asked for it in vain. */
static void counts_who_waited_without_asking(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing(1);
    struct user users[3];

    crowd(f, users, 3, &options);
    release(&users[0]);
    await_held(f, &users[1]);
    release(&users[1]);
    await_held(f, &users[2]);
    assert_int_equal(passed(f), 1);
    assert_int_equal(stats_of(f->client).waited, 2);
}

static void is_not_passed_on_by_default(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(60000);
    struct user users[2];
    char *token, *now;

    options.retry_delay_ms = 20;
    crowd(f, users, 2, &options);
    token = key_of(f);
    release(&users[0]);
    await_held(f, &users[1]);
    now = key_of(f);
    assert_string_not_equal(now, token);
    assert_int_equal(passed(f), 0);
    free(token);
    free(now);
}

static void ends_passing_at_the_bound(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing_in_queue(3);
    struct user users[9];
    char *token[9];
    int changes = 0;

    crowd(f, users, 9, &options);
    for (int i = 0; i < 9; i++) {
        await_held(f, &users[i]);
        token[i] = key_of(f);
        changes += i > 0 && strcmp(token[i], token[i - 1]) != 0;
        release(&users[i]);
    }
    await(f, users[8].released.count);
    assert_int_equal(changes, 2);
    assert_int_equal(passed(f), 6);
    for (int i = 0; i < 9; i++)
        free(token[i]);
}

static void leaves_the_lock_to_others_at_the_bound(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing_in_queue(2);
    evlock_client *other = client_new(f, NULL, NULL);
    struct user users[6], stranger = {.lock = lock_new_on(f, other, "a", &options)};

    crowd(f, users, 6, &options);
    acquire(&stranger);
    await(f, ask_waiters(f, users[0].lock) == 1);
    for (int i = 0; i < 2; i++) {
        release(&users[i]);
        await_held(f, &users[i + 1]);
    }
    release(&users[2]);
    await_held(f, &stranger);
    assert_int_equal(users[3].record.count, 0);
    release(&stranger);
    await_held(f, &users[3]);
}

/* Who leads the group next makes no attempt before that, either. */
static void leaves_the_lock_alone_though_its_first_goes(struct fixture *f, void (*go)(struct user *user)) {
    evlock_options options = passing(1);
    struct user users[4];

    options.retry_delay_ms = 600;
    options.retry_jitter = EVLOCK_NO_JITTER;
    crowd(f, users, 2, &options);
    make(f, users + 2, 2, &options);
    acquire_for(&users[2], 100);
    acquire(&users[3]);
    release(&users[0]);
    await_held(f, &users[1]);
    release(&users[1]);
    await(f, users[1].released.count);
    go(&users[2]);
    await(f, users[2].record.count);
    run_for(f, 200);
    assert_false(key_exists(f->server, "a"));
    assert_int_equal(users[3].record.count, 0);
    await_held(f, &users[3]);
}

static void is_cancelled(struct user *user) {
    assert_status(evlock_cancel(user->lock), EVLOCK_OK);
}

static void waits_to_its_end(struct user *user) {
    (void)user;
}

static void leaves_the_lock_to_others_though_its_first_is_cancelled(void **state) {
    leaves_the_lock_alone_though_its_first_goes(*state, is_cancelled);
}

static void leaves_the_lock_to_others_though_the_wait_of_its_first_ends(void **state) {
    leaves_the_lock_alone_though_its_first_goes(*state, waits_to_its_end);
}

static size_t channels(struct fixture *f) {
    redisReply *reply = server_command(f->server, "PUBSUB CHANNELS *");
    size_t count = reply->elements;

    freeReplyObject(reply);
    return count;
}

/* For longer than any test waits. */
static evlock_options pausing(evlock_options options) {
    options.retry_delay_ms = options.ttl_ms = 10LL * WAIT_MS;
    return options;
}

/* Without a pause, and by a place in the queue: nobody is overtaken. */
static void joins_the_queue_at_once_at_the_bound(void **state) {
    struct fixture *f = *state;
    evlock_options options = pausing(passing_in_queue(1));
    struct user users[3];
    long long joined;

    crowd(f, users, 3, &options);
    await(f, channels(f) == 1);
    assert_int_equal(ask_waiters(f, users[0].lock), 0); /* the client has heard of that, too */
    release(&users[0]);
    await_held(f, &users[1]);
    joined = server_calls(f->server, "zadd");
    release(&users[1]);
    await_held(f, &users[2]);
    assert_int_equal(server_calls(f->server, "zadd"), joined + 1);
    assert_status(await_release(f, users[2].lock), EVLOCK_OK);
    acquire(&users[1]); /* who was passed a lease expects others to wait, too */
    await_held(f, &users[1]);
    assert_int_equal(server_calls(f->server, "zadd"), joined + 2);
    assert_int_equal(passed(f), 1);
}

static void lock_is_free(struct fixture *f, const struct user *next) {
    await(f, !key_exists(f->server, "a") || next->record.count);
    assert_int_equal(next->record.count, 0);
}

/* Who polls leaves others a pause in which they see that the lock is free. */
static void leaves_the_lock_free_for_a_pause_when_it_polls(void **state) {
    struct fixture *f = *state;
    evlock_options options = pausing(passing(1));

    for (int frees = 0; frees < 2; frees++) {
        struct user users[3];
        crowd(f, users, 3, &options);
        release(&users[0]);
        await_held(f, &users[1]);
        if (frees)
            lock_free(f, users[1].lock);
        else
            release(&users[1]);
        lock_is_free(f, &users[2]);
        lock_free(f, users[2].lock);
        await(f, users[2].record.count);
    }
}

/* All of it: what is random of other pauses keeps waiters apart, and here there are none. */
static void leaves_the_lock_free_for_the_whole_pause(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing(1);
    struct user users[5];

    options.retry_delay_ms = 300;
    options.retry_jitter = 100;
    crowd(f, users, 5, &options);
    for (int i = 0; i < 4; i++) {
        int64_t released = evlock_clock_us();
        release(&users[i]);
        await_held(f, &users[i + 1]);
        if (i % 2 && users[i + 1].record.at - released < 300000)
            fail_msg("the lock was left free for %d us", (int)(users[i + 1].record.at - released));
    }
}

/* Else it would poll for the lock once, while others take turns. */
static void listens_before_it_has_to_wait_for_others(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing_in_queue(100);
    struct user users[2];

    crowd(f, users, 2, &options);
    await(f, channels(f) == 1);
    assert_int_equal(users[1].record.count, 0);
}

/* --- Who waits together ------------------------------------------------------------------------------------------- */

static evlock_options alike(void) {
    evlock_options options = passing_in_queue(10);

    options.auto_renewal = true;
    return options;
}

/* It has asked for itself, and waits as it is to. */
static void await_waiting(struct fixture *f, const struct user *user, const evlock_options *options, long long tried) {
    if (options->wait == EVLOCK_WAIT_QUEUE)
        await(f, ask_waiters(f, user->lock) == 1);
    else
        await(f, server_calls(f->server, "set") > tried);
}

/* Whoever waits has no attempt of its own: the server is asked by one of them. The stranger asks for itself. */
static void waits_without(struct fixture *f, const evlock_options *other) {
    evlock_options options = alike();
    struct user users[2], stranger;
    uint64_t before = passed(f);
    long long tried;

    crowd(f, users, 2, &options);
    tried = server_calls(f->server, "set");
    stranger = (struct user){.lock = lock_new(f, "a", other)};
    acquire(&stranger);
    await_waiting(f, &stranger, other, tried);
    release(&users[0]);
    await_held(f, &users[1]);
    assert_int_equal(stranger.record.count, 0);
    release(&users[1]);
    await_held(f, &stranger);
    assert_status(await_release(f, stranger.lock), EVLOCK_OK);
    assert_int_equal(passed(f) - before, 1);
}

static void waits_with_its_like_alone(void **state) {
    struct fixture *f = *state;
    evlock_options others[15];

    for (int i = 0; i < 15; i++)
        others[i] = alike();
    others[0].ttl_ms = 50000;
    others[1].max_passes = 0;
    others[2].max_passes = 11;
    others[3].max_pass_ms = 50000;
    others[4].fence = true;
    others[5].fail_when_away = true;
    others[6].holder = "another";
    others[7].auto_renewal = false;
    others[8].renewal_interval_ms = 5000;
    others[9].max_hold_ms = 50000;
    others[10].at_risk_percent = 50;
    others[11].lost_lead_ms = 100;
    others[12].node_timeout_ms = 100;
    others[13].replica_timeout_ms = 100;
    others[14].wait = EVLOCK_WAIT_POLL;
    for (int i = 0; i < 15; i++)
        waits_without(f, &others[i]);
}

/* More keys than there are places for at first. */
static void waits_for_its_own_lock_among_many(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing(10);
    struct user first[KEYS], next[KEYS];
    char name[16];

    for (int i = 0; i < KEYS; i++) {
        snprintf(name, sizeof(name), "a%d", i);
        first[i] = (struct user){.lock = lock_new(f, name, &options)};
        next[i] = (struct user){.lock = lock_new(f, name, &options)};
        acquire(&first[i]);
        acquire(&next[i]);
    }
    for (int i = 0; i < KEYS; i++)
        await_held(f, &first[i]);
    for (int i = 0; i < KEYS; i++)
        release(&first[i]);
    for (int i = 0; i < KEYS; i++)
        await_held(f, &next[i]);
    assert_int_equal(passed(f), KEYS);
}

static void goes_by_itself_with(struct fixture *f, const evlock_acquire_options *options) {
    evlock_options locks = passing(10);
    struct user users[2];

    make(f, users, 2, &locks);
    acquire(&users[0]);
    await_held(f, &users[0]);
    assert_status(evlock_acquire(users[1].lock, options, record_end, &users[1].record), EVLOCK_OK);
    if (options->max_attempts == EVLOCK_TRY) {
        await(f, users[1].record.count);
        assert_ended(&users[1].record, EVLOCK_EHELD);
    } else {
        release(&users[0]);
        await_held(f, &users[1]);
        assert_status(await_release(f, users[1].lock), EVLOCK_OK);
    }
    assert_int_equal(passed(f), 0);
    for (int i = 0; i < 2; i++)
        lock_free(f, users[i].lock);
    await(f, !ask_locked(f, lock_new(f, "a", NULL)));
}

static void goes_by_itself_with_a_token_or_a_count(void **state) {
    struct fixture *f = *state;

    goes_by_itself_with(f, EVLOCK_ACQUIRE_OPTIONS(.token = "own", .token_len = EVLOCK_CSTRING));
    goes_by_itself_with(f, EVLOCK_ACQUIRE_OPTIONS(.max_attempts = 1000));
    goes_by_itself_with(f, EVLOCK_ACQUIRE_OPTIONS(.max_attempts = EVLOCK_TRY));
}

/* Also where the client listens for others. */
static void stays_out_of_the_queue_when_it_polls(void **state) {
    struct fixture *f = *state;
    evlock_options polls = passing(10), queues = passing_in_queue(10);
    evlock *other = lock_new(f, "b", &queues), *behind = lock_new(f, "b", &queues);
    struct user users[2];
    struct record record = {0};
    long long tried;

    assert_status(await_acquire(f, other, NULL), EVLOCK_OK);
    assert_status(evlock_acquire(behind, NULL, record_end, &record), EVLOCK_OK);
    await(f, channels(f) == 1);
    crowd(f, users, 2, &polls);
    release(&users[0]);
    await_held(f, &users[1]);
    assert_status(await_release(f, users[1].lock), EVLOCK_OK);
    assert_int_equal(passed(f), 1);
    server_do(f->server, "SET a foreign");
    tried = server_calls(f->server, "set");
    acquire(&users[1]);
    await(f, server_calls(f->server, "set") > tried || key_exists(f->server, "{a}:queue"));
    assert_false(key_exists(f->server, "{a}:queue"));
}

static void holds_wait_by_themselves(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing(10);
    struct user users[2];

    options.auto_renewal = true;
    make(f, users, 2, &options);
    acquire(&users[0]);
    await_held(f, &users[0]);
    assert_status(evlock_hold(users[1].lock, record_end, &users[1].record), EVLOCK_OK);
    await(f, users[1].record.status == EVLOCK_EHELD);
    release(&users[0]);
    await(f, users[1].record.status == EVLOCK_OK);
    assert_int_equal(passed(f), 0);
}

static void takes_no_other_bounds(void **state) {
    struct fixture *f = *state;
    evlock *lock;

    assert_status(evlock_new(&lock, f->client, "a", 1, EVLOCK_OPTIONS(.max_passes = -1)), EVLOCK_EINVAL);
    assert_says(evlock_last_error(), "max_passes is -1, not from 1 to 65535");
    assert_status(evlock_new(&lock, f->client, "a", 1, EVLOCK_OPTIONS(.max_passes = 65536)), EVLOCK_EINVAL);
    assert_status(evlock_new(&lock, f->client, "a", 1, EVLOCK_OPTIONS(.max_passes = 1, .max_pass_ms = -1)),
                  EVLOCK_EINVAL);
}

/* --- Those who leave ---------------------------------------------------------------------------------------------- */

/* The lock is another client's, and a third one waits behind the group. */
struct line {
    evlock_client *others;
    struct user holder, last, users[4];
};

static void form(struct fixture *f, struct line *line) {
    evlock_options options = passing_in_queue(10);

    *line = (struct line){.others = client_new(f, NULL, NULL)};
    line->holder.lock = lock_new_on(f, line->others, "a", &options);
    line->last.lock = lock_new_on(f, client_new(f, NULL, NULL), "a", &options);
    acquire(&line->holder);
    await_held(f, &line->holder);
    make(f, line->users, 4, &options);
    for (int i = 0; i < 4; i++)
        acquire(&line->users[i]);
    await(f, ask_waiters(f, line->holder.lock) == 1);
    acquire(&line->last);
    await(f, ask_waiters(f, line->holder.lock) == 2);
}

static void is_first_in_line(struct fixture *f, struct line *line, struct user *user) {
    assert_int_equal(ask_place(f, user->lock), 1);
    release(&line->holder);
    await_held(f, user);
    assert_int_equal(line->last.record.count, 0);
}

static void leaves_its_place_when_cancelled(void **state) {
    struct fixture *f = *state;
    struct line line;

    form(f, &line);
    for (int i = 0; i < 2; i++) {
        assert_status(evlock_cancel(line.users[i].lock), EVLOCK_OK);
        await(f, line.users[i].record.count);
        assert_ended(&line.users[i].record, EVLOCK_ECANCELLED);
    }
    is_first_in_line(f, &line, &line.users[2]);
}

static void leaves_its_place_when_freed(void **state) {
    struct fixture *f = *state;
    struct line line;

    form(f, &line);
    assert_int_equal(ask_place(f, line.users[3].lock), 1); /* by that of its group */
    lock_free(f, line.users[0].lock);
    is_first_in_line(f, &line, &line.users[1]);
    assert_ended(&line.users[0].record, EVLOCK_ECANCELLED);
}

/* Two of them have little time, the second much less: it is over while it waits behind the first. */
static void leaves_its_place_when_its_time_is_up(void **state) {
    static const int times_ms[] = {500, 100, WAIT_MS};
    struct fixture *f = *state;
    struct line line;

    form(f, &line);
    for (int i = 0; i < 4; i++) {
        struct user *user = &line.users[i];
        assert_status(evlock_cancel(user->lock), EVLOCK_OK);
        await(f, user->record.count);
        if (i < 3)
            acquire_for(user, times_ms[i]);
    }
    await(f, line.users[0].record.count && line.users[1].record.count);
    assert_ended(&line.users[0].record, EVLOCK_ETIMEDOUT);
    assert_ended(&line.users[1].record, EVLOCK_ETIMEDOUT);
    assert_says(line.users[1].record.error, "waiting behind other handles");
    is_first_in_line(f, &line, &line.users[2]);
}

static void leaves_its_attempts_when_it_polls(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing(10);
    struct user users[3];

    server_do(f->server, "SET a foreign");
    make(f, users, 3, &options);
    for (int i = 0; i < 3; i++)
        acquire(&users[i]);
    run_for(f, 50);
    assert_status(evlock_cancel(users[0].lock), EVLOCK_OK);
    lock_free(f, users[1].lock);
    server_do(f->server, "DEL a");
    await_held(f, &users[2]);
}

/* Who leads goes on as before. */
static void leaves_without_a_word_to_the_server(void **state) {
    struct fixture *f = *state;
    evlock_options options = pausing(passing(10));
    struct user users[2];
    long long tried;

    server_do(f->server, "SET a foreign");
    tried = server_calls(f->server, "set");
    make(f, users, 2, &options);
    acquire(&users[0]);
    acquire(&users[1]);
    await(f, server_calls(f->server, "set") > tried);
    assert_true(ask_locked(f, users[0].lock));
    assert_status(evlock_cancel(users[1].lock), EVLOCK_OK);
    await(f, users[1].record.count);
    assert_true(ask_locked(f, users[0].lock));
    assert_int_equal(server_calls(f->server, "set"), tried + 1);
}

/* --- Those who do not get it -------------------------------------------------------------------------------------- */

static void passes_by_those_whose_time_is_up(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing(10);
    struct user users[3];

    make(f, users, 3, &options);
    acquire(&users[0]);
    await_held(f, &users[0]);
    acquire_for(&users[1], 20);
    acquire(&users[2]);
    usleep(40 * 1000); /* the loop does not turn meanwhile */
    release(&users[0]);
    await_held(f, &users[2]);
    assert_ended(&users[1].record, EVLOCK_ETIMEDOUT);
}

/* Cancels or frees the one who was passed a lease, before it is told. */
static struct fixture *fixture_of_then;
static bool frees_then;

static void leave_then(struct record *record) {
    struct user *user = record->then_arg;

    if (frees_then)
        lock_free(fixture_of_then, user->lock);
    else
        evlock_cancel(user->lock);
}

static void goes_on_if_it_was_not_told(struct fixture *f, bool frees) {
    evlock_options options = passing(10);
    struct user users[3];

    fixture_of_then = f;
    frees_then = frees;
    crowd(f, users, 3, &options);
    users[0].released = (struct record){.then = leave_then, .then_arg = &users[1]};
    assert_status(evlock_release(users[0].lock, record_end, &users[0].released), EVLOCK_OK);
    await_held(f, &users[2]);
    assert_ended(&users[1].record, EVLOCK_ECANCELLED);
    assert_status(await_release(f, users[2].lock), EVLOCK_OK);
    assert_null(key_of(f));
}

static void goes_on_from_one_that_is_cancelled_untold(void **state) {
    goes_on_if_it_was_not_told(*state, false);
}

static void goes_on_from_one_that_is_freed_untold(void **state) {
    goes_on_if_it_was_not_told(*state, true);
}

static void goes_on_from_a_holder_that_is_freed(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing(10);
    struct user users[2];

    crowd(f, users, 2, &options);
    lock_free(f, users[0].lock);
    await_held(f, &users[1]);
    assert_int_equal(passed(f), 1);
}

static void ask_again_then(struct record *record) {
    const struct user *user = record->then_arg;

    if (record->count >= 100)
        return;
    assert_status(evlock_acquire(user->lock, NULL, record_end, record), EVLOCK_OK);
    assert_status(evlock_cancel(user->lock), EVLOCK_OK);
}

/* Its callback is called once a turn, though it asks anew each time. */
static void asks_again_turn_by_turn(struct fixture *f, struct user *user) {
    user->record = (struct record){.then = ask_again_then, .then_arg = user};
    ask_again_then(&user->record);
    for (int last = 0; user->record.count < 100; last = user->record.count) {
        loop_turn(f->loop);
        assert_true(user->record.count <= last + 1);
    }
}

static void sleep_then(struct record *record) {
    (void)record;
    usleep(400 * 1000);
}

/* It is lost between the pass and the report: whoever was to have it goes on waiting, and gets the next one. */
static void waits_on_if_it_is_lost_untold(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing(10);
    struct user users[3];

    options.ttl_ms = 300;
    crowd(f, users, 3, &options);
    users[0].released = (struct record){.then = sleep_then};
    assert_status(evlock_release(users[0].lock, record_end, &users[0].released), EVLOCK_OK);
    await_held(f, &users[1]);
    assert_int_equal(users[2].record.count, 0);
    assert_int_equal(passed(f), 0);
    assert_true(evlock_remaining_ms(users[1].lock) > 0);
    asks_again_turn_by_turn(f, &users[0]); /* nothing is left of that pass */
}

/* Others may wait in the queue by then, and are not overtaken. */
static void joins_the_queue_if_it_is_lost_untold(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing_in_queue(10);
    struct user users[2];
    long long joined;

    options.ttl_ms = 300;
    crowd(f, users, 2, &options);
    await(f, channels(f) == 1);
    assert_int_equal(ask_waiters(f, users[0].lock), 0); /* the client has heard of that, too */
    joined = server_calls(f->server, "zadd");
    users[0].released = (struct record){.then = sleep_then};
    assert_status(evlock_release(users[0].lock, record_end, &users[0].released), EVLOCK_OK);
    await_held(f, &users[1]);
    assert_int_equal(server_calls(f->server, "zadd"), joined + 1);
    assert_int_equal(passed(f), 0);
}

/* --- What is not passed on ---------------------------------------------------------------------------------------- */

static void is_released_after(struct fixture *f, void (*meddle)(struct fixture *f, evlock *lock)) {
    evlock_options options = passing(10);
    struct user users[2];
    char *token, *now;

    crowd(f, users, 2, &options);
    token = key_of(f);
    meddle(f, users[0].lock);
    release(&users[0]);
    await_held(f, &users[1]);
    assert_ended(&users[0].released, EVLOCK_OK);
    now = key_of(f);
    assert_string_not_equal(now, token);
    assert_int_equal(passed(f), 0);
    free(token);
    free(now);
}

static void ask_for_the_token(struct fixture *f, evlock *lock) {
    (void)f;
    assert_non_null(evlock_token(lock, NULL));
}

static void add(struct fixture *f, evlock *lock) {
    assert_status(await_extend(f, lock, 1, EVLOCK_EXTEND_ADD), EVLOCK_OK);
}

static void replace(struct fixture *f, evlock *lock) {
    assert_status(await_extend(f, lock, 0, EVLOCK_EXTEND_RESET), EVLOCK_OK);
}

static void is_not_passed_on_with_a_known_token(void **state) {
    is_released_after(*state, ask_for_the_token);
}

static void is_not_passed_on_once_added_to(void **state) {
    is_released_after(*state, add);
}

static void is_not_passed_on_once_replaced(void **state) {
    is_released_after(*state, replace);
}

static void is_not_passed_on_late(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing(10);
    struct user users[2];
    char *token, *now;

    options.ttl_ms = 1000;
    crowd(f, users, 2, &options);
    token = key_of(f);
    await(f, evlock_remaining_ms(users[0].lock) < 500);
    release(&users[0]);
    await_held(f, &users[1]);
    now = key_of(f);
    assert_string_not_equal(now, token);
    free(token);
    free(now);
}

static void is_renewed_when_it_is_passed_on_later(struct fixture *f, bool renews) {
    evlock_options options = passing(10);
    struct user users[2];

    options.ttl_ms = 2000;
    options.auto_renewal = renews;
    options.renewal_interval_ms = renews ? 1500 : 0;
    crowd(f, users, 2, &options);
    await(f, evlock_remaining_ms(users[0].lock) < 1450);
    release(&users[0]);
    await_held(f, &users[1]);
    assert_int_equal(passed(f), 1);
    await(f, evlock_remaining_ms(users[1].lock) > 1600);
}

static void is_renewed_on_its_way(void **state) {
    is_renewed_when_it_is_passed_on_later(*state, true);
}

static void is_renewed_on_its_way_once_if_it_is_not_otherwise(void **state) {
    is_renewed_when_it_is_passed_on_later(*state, false);
}

static void is_not_passed_on_for_long(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing(1000);
    struct user users[3];
    char *token, *now;

    options.max_pass_ms = 50;
    crowd(f, users, 3, &options);
    token = key_of(f);
    release(&users[0]);
    await_held(f, &users[1]);
    run_for(f, 60);
    release(&users[1]);
    await_held(f, &users[2]);
    now = key_of(f);
    assert_string_not_equal(now, token);
    free(token);
    free(now);
}

/* Its longest hold counts from the pass. */
static void is_held_anew(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing(10);
    struct user users[2];

    options.ttl_ms = 1000;
    options.auto_renewal = true;
    options.renewal_interval_ms = 100;
    options.max_hold_ms = 1500;
    crowd(f, users, 2, &options);
    run_for(f, 800);
    release(&users[0]);
    await_held(f, &users[1]);
    assert_int_equal(passed(f), 1);
    run_for(f, 1100);
    await(f, evlock_remaining_ms(users[1].lock) > 800);
}

/* --- Ends --------------------------------------------------------------------------------------------------------- */

static void is_acquired_anew_when_lost(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing_in_queue(10);
    struct record lost = {0};
    struct user users[2];

    options.auto_renewal = true;
    options.renewal_interval_ms = 50;
    options.on_lost = record_end;
    options.arg = &lost;
    crowd(f, users, 2, &options);
    server_do(f->server, "DEL a");
    await_held(f, &users[1]);
    assert_status(lost.status, EVLOCK_ENOTOWNED);
    assert_int_equal(passed(f), 0);
}

/* Nobody was given anything, so nobody is left a pause. */
static void is_acquired_at_once_when_it_ends_otherwise(void **state) {
    struct fixture *f = *state;
    evlock_options options = pausing(passing(10));
    char token[EVLOCK_TOKEN_MAX];
    size_t len;

    options.auto_renewal = true;
    options.renewal_interval_ms = 50;
    for (int exports = 0; exports < 2; exports++) {
        struct user users[2];
        crowd(f, users, 2, &options);
        server_do(f->server, "DEL a");
        if (exports)
            assert_status(evlock_export(users[0].lock, token, sizeof(token), &len), EVLOCK_OK);
        await_held(f, &users[1]);
        assert_status(await_release(f, users[1].lock), EVLOCK_OK);
    }
    assert_int_equal(passed(f), 0);
}

static void is_acquired_anew_when_exported(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing_in_queue(10);
    struct user users[2];
    char token[EVLOCK_TOKEN_MAX];
    size_t len;

    crowd(f, users, 2, &options);
    assert_status(evlock_export(users[0].lock, token, sizeof(token), &len), EVLOCK_OK);
    await(f, ask_waiters(f, users[0].lock) == 1);
    assert_status(await_adopt(f, users[0].lock, token, len), EVLOCK_OK);
    release(&users[0]);
    await_held(f, &users[1]);
    assert_int_equal(passed(f), 0);
}

static void is_broken_whoever_has_it(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing_in_queue(10);
    struct record lost = {0};
    struct user users[3];

    options.auto_renewal = true;
    options.renewal_interval_ms = 50;
    options.on_lost = record_end;
    options.arg = &lost;
    crowd(f, users, 3, &options);
    release(&users[0]);
    await_held(f, &users[1]);
    assert_status(await_break(f, lock_new(f, "a", &options)), EVLOCK_OK);
    await_held(f, &users[2]);
    assert_ptr_equal(lost.object, users[1].lock);
}

/* No lease is renewed here, so nobody would hear of the break before the last of them. */
static void is_released_after_a_break_by_its_own_client(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing(10), others = with_ttl(50000);
    struct user users[2];

    crowd(f, users, 2, &options);
    assert_status(await_break(f, lock_new(f, "a", &others)), EVLOCK_OK);
    release(&users[0]);
    await(f, users[0].released.count);
    assert_ended(&users[0].released, EVLOCK_ENOTOWNED);
    await_held(f, &users[1]);
    assert_int_equal(passed(f), 0);
}

/* Another client may have the lock by then. */
static void is_released_after_a_break_by_its_holder(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing(10);
    evlock *stranger = lock_new_on(f, client_new(f, NULL, NULL), "a", NULL);
    struct user users[2];

    crowd(f, users, 2, &options);
    assert_status(await_break(f, users[0].lock), EVLOCK_OK);
    server_do(f->server, "SET a stranger PX 60000");
    release(&users[0]);
    await(f, users[0].released.count);
    assert_ended(&users[0].released, EVLOCK_ENOTOWNED);
    assert_int_equal(passed(f), 0);
    assert_int_equal(users[1].record.count, 0);
    assert_status(await_break(f, stranger), EVLOCK_OK);
    await_held(f, &users[1]);
}

/* However many there are. */
static void is_passed_on_after_a_break_of_another(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing(10), others = with_ttl(50000);
    struct user first[KEYS], next[KEYS];
    char name[16];

    for (int i = 0; i < KEYS; i++) {
        snprintf(name, sizeof(name), "a%d", i);
        first[i] = (struct user){.lock = lock_new(f, name, &options)};
        next[i] = (struct user){.lock = lock_new(f, name, &options)};
        acquire(&first[i]);
        await_held(f, &first[i]);
        acquire(&next[i]);
        if (i % 2)
            assert_status(await_break(f, lock_new(f, name, &others)), EVLOCK_OK);
    }
    for (int i = 0; i < KEYS; i++) {
        release(&first[i]);
        await_held(f, &next[i]);
        assert_int_equal(passed(f), i / 2 + 1);
    }
}

static void is_not_passed_on_by_a_client_that_closes(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing_in_queue(10);
    struct user users[3];

    crowd(f, users, 3, &options);
    assert_status(await_close(f, f->client), EVLOCK_OK);
    for (int i = 1; i < 3; i++)
        assert_ended(&users[i].record, EVLOCK_ECANCELLED);
    assert_null(key_of(f));
    assert_int_equal(server_integer(f->server, "EXISTS {a}:queue"), 0);
}

static void is_not_passed_on_by_a_client_that_is_freed(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing_in_queue(10);
    struct user users[3];

    crowd(f, users, 3, &options);
    client_free(f, f->client);
    run_for(f, 10);
    for (int i = 1; i < 3; i++)
        assert_ended(&users[i].record, EVLOCK_ECANCELLED);
    await(f, !server_integer(f->server, "EXISTS a"));
}

static int frees_all_in_a_child(void *arg) {
    struct user *users = arg;

    for (int i = 0; i < 3; i++) {
        if (evlock_is_held(users[i].lock) || evlock_release(users[i].lock, NULL, NULL) != EVLOCK_EFORKED)
            return 1;
        evlock_free(users[i].lock);
    }
    return users[1].record.count || users[2].record.count ? 2 : 0;
}

static void is_not_passed_on_in_a_child(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing_in_queue(10);
    struct user users[3];

    crowd(f, users, 3, &options);
    assert_int_equal(in_child(frees_all_in_a_child, users), 0);
    release(&users[0]);
    await_held(f, &users[1]);
    assert_int_equal(passed(f), 1);
}

/* --- Many in a turn ----------------------------------------------------------------------------------------------- */

static void release_then(struct record *record) {
    evlock_release(((struct user *)record->then_arg)->lock, NULL, NULL);
}

static void is_told_to_many_in_a_turn(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing(1000);
    struct user users[MAX_LOCKS - 1];
    int count = MAX_LOCKS - 1, turns = 0, served = 1;

    crowd(f, users, count, &options);
    for (int i = 1; i < count; i++) {
        users[i].record.then = release_then;
        users[i].record.then_arg = &users[i];
    }
    release(&users[0]);
    while (served < count) {
        int before = served;
        loop_turn(f->loop);
        while (served < count && users[served].record.count)
            served++;
        assert_true(served <= before + 64);
        assert_true(++turns <= count);
    }
    assert_int_equal(passed(f), count - 1);
    assert_true(turns >= (count - 1) / 64 && turns <= (count - 1) / 64 + 3);
    await(f, !server_integer(f->server, "EXISTS a"));
}

/* Also when some were passed on before. */
static void whoever_asks_again_at_once_waits_for_the_next_turn(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing(10);
    struct user users[2];

    crowd(f, users, 2, &options);
    release(&users[0]);
    await_held(f, &users[1]);
    assert_int_equal(passed(f), 1);
    asks_again_turn_by_turn(f, &users[0]);
}

static int work(evlock *lock, void *arg) {
    (void)arg;
    return evlock_is_held(lock) ? evlock_release(lock, NULL, NULL) : 1;
}

static void is_passed_on_by_runs(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing(10);
    struct record done[3] = {{0}};

    for (int i = 0; i < 3; i++)
        assert_status(evlock_with(lock_new(f, "a", &options), work, record_run, &done[i]), EVLOCK_OK);
    await(f, done[2].count);
    assert_int_equal(passed(f), 2);
}

/* --- Fences ------------------------------------------------------------------------------------------------------- */

#define COUNTER "{a}:fence"
#define QUEUE "{a}:queue"

static evlock_options fenced(evlock_options options) {
    options.fence = true;
    return options;
}

static uint64_t fence_of(const struct user *user) {
    uint64_t fence = evlock_fence(user->lock);

    assert_true(fence > 0);
    return fence;
}

static uint64_t counted(struct fixture *f) {
    return (uint64_t)server_integer(f->server, "INCRBY " COUNTER " 0");
}

/* The server's clock in microseconds, and so much more, becomes the counter. */
static void count_ahead(struct fixture *f, int64_t us) {
    static const char script[] =
        "local now = redis.call('TIME') return redis.call('SET', KEYS[1], string.format('%.0f', now[1] * 1000000 + "
        "now[2] + ARGV[1]))";

    server_do(f->server, "EVAL %s 1 " COUNTER " %lld", script, (long long)us);
}

/* It is held, by a fence that is greater than the last. */
static uint64_t await_greater(struct fixture *f, struct user *user, uint64_t last) {
    await_held(f, user);
    assert_true(fence_of(user) > last);
    return fence_of(user);
}

/* Who comes first asks when nobody waits behind it. The next asks for as many fences as are wanted behind it. */
static void each_holder_has_a_greater_fence(void **state) {
    struct fixture *f = *state;
    const evlock_options options[] = {fenced(passing(100)), fenced(passing_in_queue(100))};

    for (size_t way = 0; way < 2; way++) {
        struct user users[MANY];
        uint64_t last = 0, before = passed(f);
        crowd(f, users, MANY, &options[way]);
        for (int i = 0; i < MANY; i++) {
            last = await_greater(f, &users[i], last);
            assert_true(last <= counted(f));
            release(&users[i]);
        }
        await(f, !key_exists(f->server, "a"));
        assert_int_equal(passed(f) - before, MANY - 2);
        assert_int_equal(counted(f), last); /* none was drawn in vain */
    }
}

static void others_in_between_have_greater_fences_too(void **state) {
    struct fixture *f = *state;
    const evlock_options options[] = {fenced(passing(3)), fenced(passing_in_queue(3))};
    evlock_client *other = client_new(f, NULL, NULL);

    for (size_t way = 0; way < 2; way++) {
        evlock_options alone = options[way];
        struct user users[MANY], stranger = {0};
        uint64_t last = 0, before = passed(f);
        alone.max_passes = 0;
        stranger.lock = lock_new_on(f, other, "a", &alone);
        crowd(f, users, MANY, &options[way]);
        acquire(&stranger);
        for (int i = 0; i < MANY;) {
            await(f, users[i].record.count || stranger.record.count);
            if (stranger.record.count) {
                last = await_greater(f, &stranger, last);
                assert_int_equal(counted(f), last); /* who does not pass on draws one */
                assert_status(await_release(f, stranger.lock), EVLOCK_OK);
                acquire(&stranger);
            } else {
                last = await_greater(f, &users[i], last);
                release(&users[i++]);
            }
        }
        assert_true(passed(f) - before >= MANY / 2);
        await_greater(f, &stranger, last);
        assert_status(await_release(f, stranger.lock), EVLOCK_OK);
    }
}

/* A second ahead of the clock, a counter is not counted up for holders to come: each asks the server then. */
static void a_counter_ahead_of_the_clock_is_drawn_from_one_by_one(void **state) {
    struct fixture *f = *state;
    const evlock_options options[] = {fenced(passing(100)), fenced(passing_in_queue(100))};

    for (size_t way = 0; way < 2; way++) {
        struct user users[5];
        uint64_t last, before = passed(f);
        crowd(f, users, 5, &options[way]);
        count_ahead(f, (int64_t)(way + 1) * 60000000); /* and of what this client has seen */
        last = counted(f);
        release(&users[0]);
        for (int i = 1; i < 5; i++) {
            await_held(f, &users[i]);
            assert_int_equal(fence_of(&users[i]), ++last);
            assert_int_equal(counted(f), last);
            release(&users[i]);
        }
        await(f, !key_exists(f->server, "a"));
        assert_int_equal(passed(f), before);
    }
}

/* Up to that, it is. */
static void a_counter_a_little_ahead_of_the_clock_is_counted_up(void **state) {
    struct fixture *f = *state;
    evlock_options options = fenced(passing_in_queue(100));
    struct user users[5];
    uint64_t last;

    crowd(f, users, 5, &options);
    count_ahead(f, 900000);
    last = counted(f);
    release(&users[0]);
    await_held(f, &users[1]);
    assert_int_equal(fence_of(&users[1]), last + 1);
    assert_int_equal(counted(f), last + 4);
    for (int i = 2; i < 5; i++) {
        release(&users[i - 1]);
        await_held(f, &users[i]);
        assert_int_equal(fence_of(&users[i]), last + (uint64_t)i);
    }
    assert_int_equal(passed(f), 3);
}

/* The counter goes back to the first of them. It is tried again where the server's clock has overtaken the last. */
static void the_fence_of_a_pass_is_remembered(void **state) {
    struct fixture *f = *state;
    evlock_options options = fenced(passing_in_queue(100));
    int status = EVLOCK_OK;

    for (int tries = 0; status == EVLOCK_OK && tries < 100; tries++) {
        struct user users[5];
        uint64_t first;
        crowd(f, users, 5, &options);
        count_ahead(f, 900000);
        release(&users[0]);
        await_held(f, &users[1]);
        first = fence_of(&users[1]);
        for (int i = 1; i < 4; i++) {
            release(&users[i]);
            await_held(f, &users[i + 1]);
        }
        assert_status(await_release(f, users[4].lock), EVLOCK_OK);
        server_do(f->server, "SET " COUNTER " %llu", (unsigned long long)first);
        status = await_acquire(f, users[0].lock, NULL);
        if (status != EVLOCK_OK)
            continue;
        assert_true(evlock_fence(users[0].lock) > first + 3);
        for (int i = 0; i < 5; i++)
            lock_free(f, users[i].lock);
        await(f, !key_exists(f->server, "a"));
    }
    assert_status(status, EVLOCK_EFENCE);
}

/* Whoever came while it was held was not counted. */
static void who_came_too_late_for_a_fence_is_granted_by_the_server(void **state) {
    struct fixture *f = *state;
    evlock_options options = fenced(passing_in_queue(100));
    struct user users[3];
    uint64_t last;

    crowd(f, users, 2, &options);
    release(&users[0]);
    await_held(f, &users[1]);
    last = fence_of(&users[1]);
    users[2] = (struct user){.lock = lock_new(f, "a", &options)};
    acquire(&users[2]);
    release(&users[1]);
    await_greater(f, &users[2], last);
    assert_int_equal(passed(f), 0);
}

static void without_fences_none_is_counted(void **state) {
    struct fixture *f = *state;
    evlock_options options = passing_in_queue(100);
    struct user users[5];

    crowd(f, users, 5, &options);
    for (int i = 1; i < 5; i++) {
        release(&users[i - 1]);
        await_held(f, &users[i]);
        assert_int_equal(evlock_fence(users[i].lock), 0);
    }
    assert_false(key_exists(f->server, COUNTER));
    assert_int_equal(passed(f), 4);
}

/* --- Fences, beside other versions -------------------------------------------------------------------------------- */

/* A connection that listens to a channel, and to nothing else. */
static redisContext *listen_to(struct fixture *f, const char *channel) {
    redisContext *context = redisConnectUnix(f->server->socket);
    redisReply *reply = redisCommand(context, "SUBSCRIBE %s", channel);

    assert_non_null(reply);
    freeReplyObject(reply);
    return context;
}

/* Waits in the queue as the versions before did. It is granted the lock by three words; a fourth would be none of its
 * form. */
static void a_waiter_of_an_older_version_is_told_one_fence(void **state) {
    struct fixture *f = *state;
    evlock_options options = fenced(passing_in_queue(2));
    redisContext *old = listen_to(f, "evlock:old");
    struct user users[6];
    uint64_t last;
    redisReply *reply;
    char ticket[64];
    long long time, fence, more = 0;

    crowd(f, users, 6, &options);
    server_do(f->server, "ZADD " QUEUE " 1 %s", "evlock:old 7-0123456789ab 5000 1 old-token");
    release(&users[0]);
    await(f, key_is(f->server, "a", "old-token", 9));
    assert_int_equal(redisGetReply(old, (void **)&reply), REDIS_OK);
    assert_int_equal(reply->elements, 3);
    assert_int_equal(sscanf(reply->element[2]->str, "%63s %lld %lld %lld", ticket, &time, &fence, &more), 3);
    assert_string_equal(ticket, "7-0123456789ab");
    assert_int_equal(counted(f), fence);
    last = (uint64_t)fence;
    freeReplyObject(reply);
    server_do(f->server, "DEL a");
    last = await_greater(f, &users[1], last);
    release(&users[1]);
    await_greater(f, &users[2], last);
    redisFree(old);
}

/* A holder of an older version reads the waiter as it always did, and draws one number. */
static void a_grant_by_an_older_version_is_not_passed_on(void **state) {
    static const char grant[] =
        "local waiter = redis.call('ZPOPMIN', KEYS[2])[1] "
        "local channel, ticket, ttl, fenced, token = string.match(waiter, '^([^ ]+) ([^ ]+) (%d+) ([01]) (.+)$') "
        "local us = redis.call('TIME') us = us[1] .. string.sub('00000' .. us[2], -6) "
        "local fence = fenced == '1' and redis.call('INCR', KEYS[3]) "
        "redis.call('SET', KEYS[1], token, 'PX', ttl) "
        "return redis.call('PUBLISH', channel, ticket .. ' ' .. us .. ' ' .. string.format('%.0f', fence))";
    struct fixture *f = *state;
    evlock_options options = fenced(passing_in_queue(100));
    struct user users[4];
    uint64_t last;

    make(f, users, 4, &options);
    server_do(f->server, "SET a old");
    count_ahead(f, 0);
    last = counted(f);
    for (int i = 0; i < 4; i++)
        acquire(&users[i]);
    await(f, server_integer(f->server, "ZCARD " QUEUE) == 1);
    assert_int_equal(server_integer(f->server, "EVAL %s 3 a " QUEUE " " COUNTER, grant), 1);
    await_held(f, &users[0]);
    assert_int_equal(fence_of(&users[0]), ++last);
    release(&users[0]);
    await_greater(f, &users[1], last);
    assert_int_equal(passed(f), 0);
}

/* --- Fences, under load ------------------------------------------------------------------------------------------- */

enum { CLIENTS = 4, HANDLES = 12, GRANTS = 3000 };

/* Handles of several clients that take the lock as often as they can. */
struct load {
    uint64_t greatest;
    int grants, wrong, active;
};

struct hand {
    evlock *lock;
    struct load *load;
};

static void on_taken(evlock *lock, int status, void *arg);

static void on_back(evlock *lock, int status, void *arg) {
    struct hand *hand = arg;

    hand->load->wrong += status != EVLOCK_OK;
    if (hand->load->grants < GRANTS)
        assert_status(evlock_acquire(lock, NULL, on_taken, hand), EVLOCK_OK);
    else
        hand->load->active--;
}

static void on_taken(evlock *lock, int status, void *arg) {
    struct hand *hand = arg;
    uint64_t fence = evlock_fence(lock);

    hand->load->wrong += status != EVLOCK_OK || fence <= hand->load->greatest;
    hand->load->greatest = fence;
    hand->load->grants++;
    assert_status(evlock_release(lock, on_back, hand), EVLOCK_OK);
}

static void fences_grow_over_all_clients_under_load(void **state) {
    struct fixture *f = *state;
    const evlock_options options[] = {fenced(passing(30)), fenced(passing_in_queue(30))};
    evlock_client *clients[CLIENTS];
    uint64_t passes = 0;

    for (int c = 0; c < CLIENTS; c++)
        clients[c] = client_new(f, NULL, NULL);
    for (size_t way = 0; way < 2; way++) {
        struct load load = {.active = CLIENTS * HANDLES};
        struct hand hands[CLIENTS * HANDLES];
        for (int h = 0; h < load.active; h++) {
            hands[h] = (struct hand){lock_new_on(f, clients[h % CLIENTS], "a", &options[way]), &load};
            assert_status(evlock_acquire(hands[h].lock, NULL, on_taken, &hands[h]), EVLOCK_OK);
        }
        await(f, load.active == 0);
        assert_int_equal(load.wrong, 0);
    }
    for (int c = 0; c < CLIENTS; c++)
        passes += stats_of(clients[c]).passed;
    assert_true(passes > GRANTS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(goes_to_those_who_wait_in_order),
        TEST(is_counted_for_each_holder),
        TEST(counts_who_waited_without_asking),
        TEST(is_not_passed_on_by_default),
        TEST(ends_passing_at_the_bound),
        TEST(leaves_the_lock_to_others_at_the_bound),
        TEST(joins_the_queue_at_once_at_the_bound),
        TEST(leaves_the_lock_free_for_a_pause_when_it_polls),
        TEST(leaves_the_lock_free_for_the_whole_pause),
        TEST(leaves_the_lock_to_others_though_its_first_is_cancelled),
        TEST(leaves_the_lock_to_others_though_the_wait_of_its_first_ends),
        TEST(listens_before_it_has_to_wait_for_others),
        TEST(waits_with_its_like_alone),
        TEST(waits_for_its_own_lock_among_many),
        TEST(goes_by_itself_with_a_token_or_a_count),
        TEST(stays_out_of_the_queue_when_it_polls),
        TEST(holds_wait_by_themselves),
        TEST(takes_no_other_bounds),
        TEST(leaves_its_place_when_cancelled),
        TEST(leaves_its_place_when_freed),
        TEST(leaves_its_place_when_its_time_is_up),
        TEST(leaves_its_attempts_when_it_polls),
        TEST(leaves_without_a_word_to_the_server),
        TEST(passes_by_those_whose_time_is_up),
        TEST(goes_on_from_one_that_is_cancelled_untold),
        TEST(goes_on_from_one_that_is_freed_untold),
        TEST(goes_on_from_a_holder_that_is_freed),
        TEST(waits_on_if_it_is_lost_untold),
        TEST(joins_the_queue_if_it_is_lost_untold),
        TEST(is_not_passed_on_with_a_known_token),
        TEST(is_not_passed_on_once_added_to),
        TEST(is_not_passed_on_once_replaced),
        TEST(is_not_passed_on_late),
        TEST(is_renewed_on_its_way),
        TEST(is_renewed_on_its_way_once_if_it_is_not_otherwise),
        TEST(is_not_passed_on_for_long),
        TEST(is_held_anew),
        TEST(is_acquired_anew_when_lost),
        TEST(is_acquired_at_once_when_it_ends_otherwise),
        TEST(is_acquired_anew_when_exported),
        TEST(is_broken_whoever_has_it),
        TEST(is_released_after_a_break_by_its_own_client),
        TEST(is_released_after_a_break_by_its_holder),
        TEST(is_passed_on_after_a_break_of_another),
        TEST(is_not_passed_on_by_a_client_that_closes),
        TEST(is_not_passed_on_by_a_client_that_is_freed),
        TEST(is_not_passed_on_in_a_child),
        TEST(is_told_to_many_in_a_turn),
        TEST(whoever_asks_again_at_once_waits_for_the_next_turn),
        TEST(is_passed_on_by_runs),
        TEST(each_holder_has_a_greater_fence),
        TEST(others_in_between_have_greater_fences_too),
        TEST(a_counter_ahead_of_the_clock_is_drawn_from_one_by_one),
        TEST(a_counter_a_little_ahead_of_the_clock_is_counted_up),
        TEST(the_fence_of_a_pass_is_remembered),
        TEST(who_came_too_late_for_a_fence_is_granted_by_the_server),
        TEST(without_fences_none_is_counted),
        TEST(a_waiter_of_an_older_version_is_told_one_fence),
        TEST(a_grant_by_an_older_version_is_not_passed_on),
        TEST(fences_grow_over_all_clients_under_load),
    };

    return run_suite("passing", tests);
}
