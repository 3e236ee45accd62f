/*
 * A client on a loop whose clock and timer are the test's, and whose server is never found: when it renews, in which
 * portions it sees to what is due, tells that a node is back, and sends, what it makes of answers, which are the test's
 * too, and what it leaves alone in a forked child.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "client.h"
#include "counted.h"
#include "memory.h"
#include "returns.h"
#include "world/loop.h"
#include "world/socket.h"

enum { TTL_MS = 6000 * 1000 };

static struct virtual_loop loop;
static int timer_sets;
static int attached = -1;

static void count_set(void *owner) {
    (void)owner;
    timer_sets++;
}

static int attach(void *data, struct redisAsyncContext *connection) {
    (void)data;
    (void)connection;
    return attached;
}

/* The latest question, which the test may answer. */
static evlock_resolve_cb resolved;
static void *resolved_arg;
static int questions, cancels;

static void *resolve(void *data, const char *host, evlock_resolve_cb cb, void *arg) {
    (void)host;
    resolved = cb;
    resolved_arg = arg;
    questions++;
    return data;
}

static void resolve_cancel(void *resolution) {
    (void)resolution;
    cancels++;
}

static const evlock_loop_ops ops = {
    VIRTUAL_OPS,
    .attach = attach,
    .resolve = resolve,
    .resolve_cancel = resolve_cancel,
};

/* The latest client's; NULL: it has freed it. */
static struct virtual_timer *timer(void) {
    return TAILQ_LAST(&loop.timers, virtual_timers);
}

/* Whether or not it is due. */
static void ring(void) {
    timer()->cb(timer()->arg);
}

/* As the timer says, which may be: as soon as it can. */
static void ring_next(void) {
    if (timer()->at > loop.now)
        loop.now = timer()->at;
    ring();
}

static evlock_client *client_at(const char *url, const evlock_client_options *options) {
    evlock_client *client;

    assert_int_equal(evlock_client_new(&client, &(evlock_loop){&ops, &loop}, url, options), EVLOCK_OK);
    return client;
}

static evlock_client *client_with(const evlock_client_options *options) {
    return client_at("redis://never.resolved", options);
}

static evlock_client *client_new(void) {
    return client_with(NULL);
}

/* What was pending is told as cancelled on the next turn, with which the client goes. */
static void client_end(evlock_client *client) {
    evlock_client_free(client);
    if (timer())
        ring();
}

/* In place of the C library's. */
static bool dry;          /* the system refuses random bytes */
static const char *drawn; /* what it gives, again and again; NULL: random ones */

ssize_t getrandom(void *bytes, size_t len, unsigned flags) {
    if (dry)
        return -1;
    for (size_t i = 0; drawn && i < len; i++)
        ((char *)bytes)[i] = drawn[i % strlen(drawn)];
    return drawn ? (ssize_t)len : (ssize_t)syscall(SYS_getrandom, bytes, len, flags);
}

/* --- Renewals ----------------------------------------------------------------------------------------------------- */

/* The phase of a handle that wants this ttl, and a prefix that no other has. */
static int64_t phase(evlock_client *client, int64_t ttl_ms, const char *prefix) {
    evlock_options options = {.size = sizeof(evlock_options)};
    evlock *lock;
    int64_t phase;

    options.ttl_ms = ttl_ms;
    options.auto_renewal = true;
    options.prefix = prefix;
    assert_int_equal(evlock_new(&lock, client, "name", EVLOCK_CSTRING, &options), EVLOCK_OK);
    phase = lock->config->terms.phase;
    assert_int_in_range(phase, 0, lock->config->terms.grain - 1);
    evlock_free(lock);
    return phase;
}

CASE(handles_of_a_client_renew_in_one_phase) {
    evlock_client *client = client_new();

    for (int i = 0; i < 10; i++)
        assert_int_equal(phase(client, TTL_MS, "a:"), phase(client, TTL_MS, "b:"));
    evlock_client_free(client);
}

/* The grain is 100 s, in microseconds: two clients have the same phase once in a hundred million times. */
CASE(clients_renew_in_phases_of_their_own) {
    enum { CLIENTS = 5 };
    evlock_client *client[CLIENTS];

    for (int i = 0; i < CLIENTS; i++)
        client[i] = client_new();
    for (int i = 1; i < CLIENTS; i++)
        assert_int_not_equal(phase(client[i], TTL_MS, "a:"), phase(client[0], TTL_MS, "a:"));
    for (int i = 0; i < CLIENTS; i++)
        evlock_client_free(client[i]);
}

CASE(a_lease_without_renewal_has_none) {
    evlock_client *client = client_new();
    evlock *lock;

    assert_int_equal(evlock_new(&lock, client, "name", EVLOCK_CSTRING, NULL), EVLOCK_OK);
    assert_int_equal(lock->config->terms.phase, 0);
    evlock_free(lock);
    evlock_client_free(client);
}

/* --- What is due -------------------------------------------------------------------------------------------------- */

enum { MANY = 20000 };

static int told;

static void ended(evlock *lock, int status, void *arg) {
    (void)lock;
    (void)arg;
    told += status != EVLOCK_OK;
}

/* As many acquires that end by their time all at once, when the timer rings next. */
static void fall_due(evlock_client *client, evlock **locks) {
    evlock_options options = {.size = sizeof(evlock_options)};

    options.max_wait_ms = 1000;
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(evlock_new(&locks[i], client, &i, sizeof(i), &options), EVLOCK_OK);
        assert_int_equal(evlock_acquire(locks[i], NULL, ended, NULL), EVLOCK_OK);
    }
    loop.now += 1000 * 1000;
    told = 0;
}

static int to_be_told(const evlock_client *client) {
    const struct call *call;
    int count = 0;

    TAILQ_FOREACH (call, &client->locks.done, link)
        count++;
    return count;
}

/* So others have their turn; and what is told may be late, but a loss that lies among what is due comes before it. */
CASE(the_many_that_are_due_are_seen_to_by_slices_before_anything_is_told) {
    static evlock *locks[MANY];
    evlock_client *client = client_new();
    int turns = 0;

    fall_due(client, locks);
    while (told == 0) {
        int before = to_be_told(client);
        loop.now++;
        ring();
        turns++;
        assert_int_in_range(told ? 0 : to_be_told(client) - before, 0, 1000);
        if (turns == 1)
            assert_int_in_range(to_be_told(client), 0, 999); /* to sort them is work, too */
    }
    assert_true(turns > MANY / 1000);
    assert_int_equal(told + to_be_told(client), MANY);
    ring();
    assert_int_equal(told, MANY);
    for (int i = 0; i < MANY; i++)
        evlock_free(locks[i]);
    evlock_client_free(client);
}

/* --- Random bytes ------------------------------------------------------------------------------------------------- */

static int told_status;
static char told_words[256];

static void failed(evlock *lock, int status, void *arg) {
    (void)lock;
    (void)arg;
    told++;
    told_status = status;
    snprintf(told_words, sizeof(told_words), "%s", evlock_last_error());
}

CASE(an_acquire_without_random_bytes_is_refused) {
    evlock_client *client = client_new();
    evlock *lock;

    assert_int_equal(evlock_new(&lock, client, "name", EVLOCK_CSTRING, NULL), EVLOCK_OK);
    dry = true;
    assert_int_equal(evlock_acquire(lock, NULL, failed, NULL), EVLOCK_ESYSTEM);
    assert_non_null(strstr(evlock_last_error(), "random bytes"));
    assert_int_equal(evlock_acquire(lock, &(evlock_acquire_options){.size = 0}, failed, NULL), EVLOCK_EINVAL);
    assert_int_equal(evlock_acquire(lock, NULL, failed, NULL), EVLOCK_ESYSTEM);
    dry = false;
    assert_int_equal(evlock_acquire(lock, NULL, failed, NULL), EVLOCK_OK);
    evlock_free(lock);
    client_end(client);
}

/* It had an alarm, which was the first of all. */
CASE(an_acquire_that_is_refused_leaves_the_timer_as_it_must_be) {
    evlock_client *client = client_new();
    evlock_acquire_options soon = {.size = sizeof(soon), .max_wait_ms = 4};
    struct turn *turn = evl_client_turn(client);
    evlock *lock;

    assert_int_equal(evlock_new(&lock, client, "name", EVLOCK_CSTRING, NULL), EVLOCK_OK);
    ring();
    assert_true(turn->armed > loop.now + 4000);
    dry = true;
    assert_int_equal(evlock_acquire(lock, &soon, failed, NULL), EVLOCK_ESYSTEM);
    dry = false;
    assert_true(turn->armed <= evl_alarms_next(&turn->alarms));
    evlock_free(lock);
    client_end(client);
}

/* What stood in the way before is not why it ends. */
CASE(a_later_attempt_without_random_bytes_ends_the_acquire) {
    evlock_client_options options = {.size = sizeof(evlock_client_options)};
    evlock_client *client;
    evlock *lock;

    options.connect_timeout_ms = 1;
    client = client_with(&options);
    told = 0;
    assert_int_equal(evlock_new(&lock, client, "name", EVLOCK_CSTRING, NULL), EVLOCK_OK);
    assert_int_equal(evlock_acquire(lock, NULL, failed, NULL), EVLOCK_OK);
    dry = true;
    for (int i = 0; i < 10000 && !told; i++)
        ring_next();
    dry = false;
    assert_int_equal(told, 1);
    assert_int_equal(told_status, EVLOCK_ESYSTEM);
    assert_non_null(strstr(told_words, "random bytes"));
    evlock_free(lock);
    client_end(client);
}

CASE(the_end_of_a_client_wipes_its_random_bytes) {
    evlock_client *client;
    evlock *lock;

    drawn = "0123456789abcdef";
    counted_begin(drawn);
    client = client_new();
    assert_int_equal(evlock_new(&lock, client, "name", EVLOCK_CSTRING, NULL), EVLOCK_OK);
    assert_int_equal(evlock_acquire(lock, NULL, failed, NULL), EVLOCK_OK);
    evlock_free(lock);
    client_end(client);
    drawn = NULL;
    assert_int_equal(counted_live(), 0);
    assert_false(counted_leaked_secret());
    counted_end();
}

/* It would be as good as a look at the tokens that the parent has yet to use. */
CASE(a_child_that_frees_its_copy_wipes_its_random_bytes) {
    int status = -1;
    evlock_client *client;
    evlock *lock;
    pid_t forked;

    drawn = "0123456789abcdef";
    counted_begin(drawn);
    client = client_new();
    assert_int_equal(evlock_new(&lock, client, "name", EVLOCK_CSTRING, NULL), EVLOCK_OK);
    assert_int_equal(evlock_acquire(lock, NULL, failed, NULL), EVLOCK_OK);
    forked = fork();
    if (forked == 0) {
        evlock_free(lock);
        evlock_client_free(client);
        _exit(counted_live() == 0 && !counted_leaked_secret() ? 0 : 1);
    }
    assert_true(forked > 0);
    assert_int_equal(waitpid(forked, &status, 0), forked);
    assert_int_equal(status, 0);
    evlock_free(lock);
    client_end(client);
    drawn = NULL;
    counted_end();
}

/* --- Memory ------------------------------------------------------------------------------------------------------- */

enum { BURST = 4000 };

/* As many as take slabs. */
static void ask_for_many(evlock_client *client, evlock **locks) {
    for (int i = 0; i < BURST; i++) {
        assert_int_equal(evlock_new(&locks[i], client, "name", EVLOCK_CSTRING, NULL), EVLOCK_OK);
        assert_int_equal(evlock_acquire(locks[i], NULL, failed, NULL), EVLOCK_OK);
    }
}

CASE(many_calls_leave_little_memory) {
    static evlock *locks[BURST];
    evlock_client *client;
    struct locks *all;

    counted_begin(NULL);
    client = client_new();
    all = evl_locks_of_client(client);
    told = 0;
    ask_for_many(client, locks);
    assert_int_equal(LIST_EMPTY(&all->calls.room), EVL_MEMORY_WATCHED); /* a slab of one block is always full */
    for (int i = 0; i < BURST; i++)
        evlock_free(locks[i]);
    ring();
    assert_int_equal(told, BURST);
    assert_true(LIST_EMPTY(&all->calls.room));
    client_end(client);
    assert_int_equal(counted_live(), 0);
    counted_end();
}

/* Their handles stay, and have no client when they are told. */
CASE(many_calls_end_with_their_client) {
    static evlock *locks[BURST];
    evlock_client *client;

    counted_begin(NULL);
    client = client_new();
    told = 0;
    ask_for_many(client, locks);
    client_end(client);
    assert_int_equal(told, BURST);
    for (int i = 0; i < BURST; i++)
        evlock_free(locks[i]);
    assert_int_equal(counted_live(), 0);
    counted_end();
}

/* --- How long one waits ------------------------------------------------------------------------------------------- */

/* The third attempt fails where the fourth would come with the end of the wait. */
CASE(a_pause_that_meets_the_end_of_the_wait_is_not_waited_out) {
    evlock_client_options client_options = {.size = sizeof(evlock_client_options)};
    evlock_options options = {.size = sizeof(evlock_options)};
    evlock_client *client;
    evlock *lock;
    int64_t begun;

    client_options.connect_timeout_ms = 1;
    client_options.backoff_min_ms = client_options.backoff_max_ms = 3600 * 1000;
    client = client_with(&client_options);
    for (int i = 0; i < 10 && evlock_client_connection(client) != EVLOCK_AWAY; i++)
        ring_next();
    assert_int_equal(evlock_client_connection(client), EVLOCK_AWAY);
    options.retry_delay_ms = 100;
    options.retry_jitter = EVLOCK_NO_JITTER;
    options.max_wait_ms = 300;
    assert_int_equal(evlock_new(&lock, client, "name", EVLOCK_CSTRING, &options), EVLOCK_OK);
    told = 0;
    begun = loop.now;
    assert_int_equal(evlock_acquire(lock, NULL, failed, NULL), EVLOCK_OK);
    for (int i = 0; i < 100 && !told; i++)
        ring_next();
    assert_int_equal(told_status, EVLOCK_ETIMEDOUT);
    assert_int_equal(loop.now - begun, 200 * 1000);
    evlock_free(lock);
    client_end(client);
}

/* --- What is given up --------------------------------------------------------------------------------------------- */

/* An acquire that waits for a second, and has asked. */
static evlock *waiting(evlock_client *client) {
    evlock_options options = {.size = sizeof(evlock_options)};
    evlock *lock;

    told = 0;
    options.max_wait_ms = 1000;
    assert_int_equal(evlock_new(&lock, client, "name", EVLOCK_CSTRING, &options), EVLOCK_OK);
    assert_int_equal(evlock_acquire(lock, NULL, ended, NULL), EVLOCK_OK);
    return lock;
}

static void ring_at(int64_t at) {
    loop.now = at;
    ring();
}

/* Nothing may be left unread: what had come by its end was seen in the turn that follows, and read before the next. */
CASE(a_wait_ends_when_all_that_had_come_by_its_end_was_read) {
    evlock_client *client = client_new();
    evlock *lock = waiting(client);
    int64_t end = loop.now + 1000 * 1000;

    ring_at(end - 1);
    assert_int_equal(told, 0);
    ring_at(end);
    assert_int_equal(told, 0);
    assert_true(timer()->at <= end); /* as soon as it can */
    ring_at(end + 1);
    assert_int_equal(told, 0);
    assert_true(timer()->at <= end);
    ring_at(end + 2);
    assert_int_equal(told, 1);
    evlock_free(lock);
    client_end(client);
}

/* For as long as it stood still, within bounds; once, however late the next turns are. */
CASE(a_loop_that_stood_still_is_given_time) {
    static const struct {
        int64_t late, given;
    } stalls[] = {{1001, 20000}, {15000, 20000}, {60000, 60000}, {30000000, 100000}};

    for (size_t i = 0; i < sizeof(stalls) / sizeof(stalls[0]); i++) {
        evlock_client *client = client_new();
        evlock *lock = waiting(client);
        int64_t found = loop.now + 1000 * 1000 + stalls[i].late;
        int turns = 0;

        ring_at(found);
        assert_int_in_range(timer()->at, found + 1, found + stalls[i].given);
        for (int part = 1; part < 10; part++)
            ring_at(found + stalls[i].given * part / 10);
        assert_int_equal(told, 0);
        for (; told == 0 && turns < 10; turns++)
            ring_at(timer()->at + stalls[i].late);
        assert_int_in_range(turns, 1, 4);
        evlock_free(lock);
        client_end(client);
    }
}

/* Nor does a turn that is late meanwhile begin that time anew. */
CASE(a_loop_that_goes_on_late_is_given_no_more_time) {
    enum { LOCKS = 30, APART = 10000, LATE = 2000 };
    evlock_client *client = client_new();
    evlock_acquire_options options = {.size = sizeof(evlock_acquire_options)};
    evlock *locks[LOCKS];
    int64_t begun = loop.now, found = begun + 10 * LATE;

    told = 0;
    for (int i = 0; i < LOCKS; i++) {
        options.max_wait_ms = 1 + i * APART / 1000;
        assert_int_equal(evlock_new(&locks[i], client, &i, sizeof(i), NULL), EVLOCK_OK);
        assert_int_equal(evlock_acquire(locks[i], &options, ended, NULL), EVLOCK_OK);
    }
    for (ring_at(found); loop.now < begun + (LOCKS - 5) * APART;)
        ring_at(timer()->at + LATE);
    assert_true(told > 0);
    for (int i = 0; i < LOCKS; i++)
        evlock_free(locks[i]);
    client_end(client);
}

/* What is begun after that has its answers in time, and ends by its own. */
CASE(what_begins_after_the_loop_stood_still_ends_by_its_time) {
    enum { WAIT = 20000, STALL = 30000000 };
    evlock_client *client = client_new();
    evlock_acquire_options options = {.size = sizeof(evlock_acquire_options)};
    evlock *before = waiting(client), *after;
    int64_t found = loop.now + STALL;

    ring_at(found);
    options.max_wait_ms = WAIT / 1000;
    assert_int_equal(evlock_new(&after, client, "other", EVLOCK_CSTRING, NULL), EVLOCK_OK);
    assert_int_equal(evlock_acquire(after, &options, ended, NULL), EVLOCK_OK);
    for (int turn = 0; turn < 4; turn++)
        ring_at(found + WAIT + turn);
    assert_int_equal(told, 1);
    assert_false(evl_lock_acquiring(after));
    assert_true(evl_lock_acquiring(before));
    evlock_free(after);
    evlock_free(before);
    client_end(client);
}

/* What a socket brings is seen to before the timer is, and may find each time that the loop is late. That gives no more
 * time, or a loop that is always busy would never end a wait. */
CASE(a_loop_that_is_always_late_ends_a_wait) {
    static const int64_t late[] = {1500, 60000, 300000};

    for (size_t i = 0; i < sizeof(late) / sizeof(late[0]); i++) {
        evlock_client *client = client_new();
        evlock *lock = waiting(client);
        int64_t end = loop.now + 1000 * 1000;

        while (told == 0 && loop.now < end + 100000 + 6 * late[i]) {
            loop.now += late[i];
            if (evl_turn_enter(evl_client_turn(client)))
                evl_turn_leave(evl_client_turn(client));
            if (loop.now >= timer()->at)
                ring_at(loop.now);
        }
        assert_int_equal(told, 1);
        evlock_free(lock);
        client_end(client);
    }
}

/* --- A node that is back ------------------------------------------------------------------------------------------ */

enum { FEW = 30 };

static struct node *node_at(evlock_client *client, unsigned index) {
    return evl_client_deployment(client)->nodes[index];
}

static struct node *node_of(evlock_client *client) {
    return node_at(client, 0);
}

/* As if what waits to be sent to its node had been, and answered by this. */
static void answer(evlock_client *client, struct request *request, struct reply reply) {
    struct pipe *pipe = &evl_client_deployment(client)->nodes[request->node]->pipe;
    const struct request_ops *owner = pipe->ops[request->kind];
    struct command command;

    assert_true(request->waiting);
    evl_pipe_withdraw(pipe, request);
    assert_true(owner->take(request, loop.now, &command));
    assert_true(owner->answer(request, &reply, loop.now));
    evl_turn_rearm(evl_client_turn(client));
}

static struct reply text(enum reply_type type, const char *words) {
    return (struct reply){.type = type, .text = words, .len = strlen(words)};
}

static struct reply number(int64_t value) {
    return (struct reply){.type = REPLY_INTEGER, .integer = value};
}

/* The node says yes. */
static void grant(evlock_client *client, evlock *lock) {
    answer(client, evl_tenure_request(lock->tenure, 0), text(REPLY_OK, "OK"));
}

/* Acquires of which every other one was granted, so that there is a token to undo. */
static void acquire_few(evlock_client *client, int count) {
    evlock *lock;

    for (int i = 0; i < count; i++) {
        assert_int_equal(evlock_new(&lock, client, &i, sizeof(i), NULL), EVLOCK_OK);
        assert_int_equal(evlock_acquire(lock, NULL, ended, NULL), EVLOCK_OK);
        if (i % 2)
            grant(client, lock);
    }
}

/* Ends the user's interest in one that is to be told: it is gone, or a ghost; and a ghost is gone. */
static void drop(struct tenure *tenure) {
    if (tenure && tenure->lock->tenure == tenure)
        evlock_free(tenure->lock);
    else if (tenure)
        evl_tenure_free(tenure);
}

static int not_told(const struct round_members *members) {
    struct tenure *tenure;
    int count = 0;

    for (tenure = evl_tenures_first(members); tenure; tenure = evl_tenures_next(tenure))
        count += !evl_tenure_lease(tenure)->slots[0].replaced;
    return count;
}

/* There is a connection, for all that the client knows. */
static void open_up(struct pipe *pipe) {
    struct connection *connection = evl_pipe_connection(pipe);

    connection->state = CONNECTION_CONNECTING;
    connection->resolution = NULL;
    connection->late = false;
    connection->addresses.next = 1;
    connection->telling = false;
    pipe->untold = 0;
    pipe->login.open = 0;
}

static void cut(struct node *node) {
    if (evl_node_state(node) == CONNECTION_AWAY || evl_node_state(node) == CONNECTION_RESOLVING)
        open_up(&node->pipe);
    evl_connection_break(evl_node_connection(node), EVLOCK_EUNREACHABLE, "cut");
    evl_connection_end_broken(evl_node_connection(node));
    evl_turn_rearm(evl_node_connection(node)->turn);
    assert_int_not_equal(evl_node_state(node), CONNECTION_READY);
}

/* Its login is done. */
static void log_in(struct node *node, bool settled) {
    open_up(&node->pipe);
    node->pipe.login.hooks->done(&node->pipe.login, settled);
    evl_turn_rearm(evl_node_connection(node)->turn);
    assert_int_equal(evl_node_state(node), CONNECTION_RETURNING);
}

/* A slice; whether there is more. */
static bool tell_back(evlock_client *client) {
    return evl_returns_go_on(&client->locks.tenures, node_of(client), loop.now);
}

static void finish(evlock_client *client) {
    struct tenure *tenure;
    struct call *call;

    cut(node_of(client));
    while ((call = TAILQ_FIRST(&client->locks.pending)))
        evlock_free(call->lock);
    while ((tenure = evl_tenures_first(&client->locks.tenures.rounds.live))) /* those that were granted */
        evlock_free(tenure->lock);
    while (to_be_told(client))
        ring();
    client_end(client);
}

/* Those who wait for it have no other turn to wait for than the next. */
CASE(that_a_node_is_away_is_told_by_slices) {
    static evlock *locks[MANY];
    evlock_acquire_options once = {.size = sizeof(evlock_acquire_options)};
    evlock_client *client = client_new();
    int turns = 0;

    once.max_attempts = EVLOCK_TRY;
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(evlock_new(&locks[i], client, &i, sizeof(i), NULL), EVLOCK_OK);
        assert_int_equal(evlock_acquire(locks[i], &once, ended, NULL), EVLOCK_OK);
    }
    told = 0;
    cut(node_of(client));
    for (int before = 0; told == 0; before = to_be_told(client), turns++) {
        ring();
        assert_int_in_range(told ? 1 : to_be_told(client) - before, 1, 1000 * TOLD_A_RING);
    }
    assert_int_equal(told + to_be_told(client), MANY);
    assert_true(turns >= MANY / (1000 * TOLD_A_RING));
    for (int i = 0; i < MANY; i++)
        evlock_free(locks[i]);
    ring();
    client_end(client);
}

static int seen_to; /* of the many, when the connection was reported */

static void count_seen_to(evlock_client *client, enum evlock_connection state, int status, void *arg) {
    (void)state;
    (void)status;
    (void)arg;
    seen_to = told + to_be_told(client);
}

/* A loss that lies among what is due comes before that, too. */
CASE(the_many_that_are_due_are_seen_to_before_the_connection_is_reported) {
    static evlock *locks[MANY];
    evlock_client_options options = {.size = sizeof(options), .on_connection = count_seen_to};
    evlock_client *client = client_with(&options);

    fall_due(client, locks);
    cut(node_of(client));
    seen_to = -1;
    for (int turns = 0; seen_to < 0; turns++) {
        assert_true(turns < MANY);
        loop.now++;
        ring();
    }
    assert_int_equal(seen_to, MANY);
    while (to_be_told(client))
        ring();
    for (int i = 0; i < MANY; i++)
        evlock_free(locks[i]);
    client_end(client);
}

/* The one that is next may go, or become a ghost, also as the last, and others begin. */
CASE(all_are_told_that_a_node_is_back) {
    for (int count = 0; count < FEW; count++) {
        for (int drops = 0; drops < 3; drops++) {
            evlock_client *client = client_new();
            struct node *node = node_of(client);
            int begun = 0;

            acquire_few(client, count);
            log_in(node, true);
            while (tell_back(client))
                ;
            cut(node);
            log_in(node, true); /* once more */
            node->replaced = true;
            while (tell_back(client)) {
                for (int i = 0; i < drops; i++)
                    drop(evl_tenure_of_member(node->round.next));
                if (begun < 2 && node->round.more)
                    acquire_few(client, ++begun);
            }
            assert_int_equal(not_told(&client->locks.tenures.rounds.ghosts), 0);
            assert_int_in_range(not_told(&client->locks.tenures.rounds.live), 0, 3);
            finish(client);
        }
    }
}

/* Then the connection before it is not done with: the next has all told anew. */
CASE(a_return_that_is_cut_short_settles_nothing) {
    evlock_client *client = client_new();
    struct node *node = node_of(client);
    struct login *login = &node->pipe.login;

    acquire_few(client, 2 * TOLD_A_RING);
    login->unsettled = true;
    login->lost_id = 7;
    login->before.run_id[0] = 'a';
    login->server.run_id[0] = 'b';
    log_in(node, false);
    assert_true(tell_back(client));
    assert_int_equal(not_told(&client->locks.tenures.rounds.live), TOLD_A_RING);
    cut(node);
    assert_int_equal(evl_node_state(node), CONNECTION_AWAY);
    assert_true(login->unsettled && login->lost_id == 7);
    assert_string_equal(login->before.run_id, "a");
    log_in(node, false);
    while (tell_back(client))
        ;
    assert_int_equal(not_told(&client->locks.tenures.rounds.live), 0);
    finish(client);
}

CASE(a_login_that_is_kept_is_done_with_the_connection_before) {
    evlock_client *client = client_new();
    struct node *node = node_of(client);
    struct login *login = &node->pipe.login;

    login->unsettled = true;
    login->lost_id = 7;
    log_in(node, false);
    assert_false(evl_node_connection(node)->hooks->returning(evl_node_connection(node), loop.now));
    assert_false(login->unsettled);
    assert_int_equal(login->lost_id, 0);
    finish(client);
}

/* What was refused on the way is no trouble of a node that serves. */
CASE(a_node_that_is_back_has_no_words_of_trouble) {
    evlock_client *client = client_new();
    struct node *node = node_of(client);
    struct connection *connection = evl_node_connection(node);

    open_up(&node->pipe);
    evl_connection_explain(connection, "NOPERM this user has no permissions");
    assert_true(connection->explained);
    log_in(node, true);
    assert_false(connection->explained);
    assert_string_equal(evl_node_trouble(node, loop.now).words, "");
    finish(client);
}

/* --- Calls, and what the node answers ----------------------------------------------------------------------------- */

static evlock *lock_with(evlock_client *client, const evlock_options *options) {
    evlock *lock;

    assert_int_equal(evlock_new(&lock, client, "name", EVLOCK_CSTRING, options), EVLOCK_OK);
    return lock;
}

static struct request *request_of(const evlock *lock) {
    return evl_tenure_request(lock->tenure, 0);
}

/* Until something is told, or it is this late. */
static void go_on_until(int64_t at) {
    while (told == 0 && timer()->at <= at)
        ring_next();
}

/* A first step that was sent twice says nothing of the second: who is not there then was ended by somebody else. */
CASE(a_break_whose_first_step_was_lost_is_not_the_one_that_ended_a_lease) {
    evlock_client *client = client_new();
    evlock *lock = lock_with(client, NULL);
    struct request *request;

    told = 0;
    assert_int_equal(evlock_break(lock, failed, NULL), EVLOCK_OK);
    request = &lock->calls->requests[0];
    answer(client, request, text(REPLY_LOST, "cut"));
    answer(client, request, text(REPLY_STRING, "token"));
    answer(client, request, number(0));
    ring();
    assert_int_equal(told, 1);
    assert_int_equal(told_status, EVLOCK_ENOTOWNED);
    evlock_free(lock);
    finish(client);
}

static evlock *beside; /* another that was held, or NULL */
static int losses;
static int64_t lost_at;

static void release_beside(evlock *lock, int reason, void *arg) {
    (void)lock;
    (void)reason;
    (void)arg;
    losses++;
    lost_at = loop.now;
    if (beside)
        assert_int_equal(evlock_release(beside, NULL, NULL), EVLOCK_OK);
    beside = NULL;
}

static evlock *held(evlock_client *client, const char *name) {
    evlock_options options = {.size = sizeof(evlock_options)};
    evlock *lock;

    options.ttl_ms = 60000;
    options.on_lost = release_beside;
    assert_int_equal(evlock_new(&lock, client, name, EVLOCK_CSTRING, &options), EVLOCK_OK);
    assert_int_equal(evlock_acquire(lock, NULL, ended, NULL), EVLOCK_OK);
    grant(client, lock);
    ring();
    assert_true(evlock_is_held(lock));
    losses = 0;
    return lock;
}

/* The release goes on waiting, and has been told. */
CASE(that_a_node_is_away_is_told_behind_what_waits_on) {
    evlock_acquire_options once = {.size = sizeof(evlock_acquire_options)};
    evlock_client *client = client_new();
    evlock *released = held(client, "a"), *lock;

    once.max_attempts = EVLOCK_TRY;
    assert_int_equal(evlock_release(released, NULL, NULL), EVLOCK_OK);
    assert_int_equal(evlock_new(&lock, client, "b", EVLOCK_CSTRING, NULL), EVLOCK_OK);
    assert_int_equal(evlock_acquire(lock, &once, failed, NULL), EVLOCK_OK);
    told = 0;
    cut(node_of(client));
    ring();
    ring();
    assert_int_equal(told, 1);
    assert_int_equal(told_status, EVLOCK_EUNREACHABLE);
    assert_true(request_of(released)->waiting);
    evlock_free(lock);
    evlock_free(released);
    finish(client);
}

/* Both are lost at once, and one is told before the other. */
CASE(no_loss_is_told_after_a_release_was_asked_for) {
    evlock_client *client = client_new();
    evlock *first = held(client, "a"), *second = held(client, "b");

    beside = second;
    ring_at(loop.now + 60000 * 1000);
    while (timer()->at <= loop.now)
        ring();
    assert_int_equal(losses, 1);
    evlock_free(first);
    evlock_free(second);
    finish(client);
}

static int acquired_with_fence(evlock_client *client, evlock *lock, int64_t fence) {
    evlock_acquire_options fenced = {.size = sizeof(evlock_acquire_options)};

    told_status = EVLOCK_OK;
    fenced.fence = EVLOCK_ON;
    assert_int_equal(evlock_acquire(lock, &fenced, failed, NULL), EVLOCK_OK);
    answer(client, request_of(lock), number(fence));
    ring();
    return told_status;
}

/* Two holders with one number cannot be told apart by what they guard. */
CASE(no_fence_is_told_twice) {
    for (int64_t fence = 4; fence <= 6; fence++) {
        evlock_client *client = client_new();
        evlock *first = lock_with(client, NULL), *second = lock_with(client, NULL);

        assert_int_equal(acquired_with_fence(client, first, 5), EVLOCK_OK);
        assert_int_equal(acquired_with_fence(client, second, fence), fence > 5 ? EVLOCK_OK : EVLOCK_EFENCE);
        evlock_free(first);
        evlock_free(second);
        finish(client);
    }
}

/* It was over before it could be reported. The key may be there for longer, and keeps nobody waiting. */
CASE(a_grant_that_is_lost_untold_is_undone) {
    evlock_options options = {.size = sizeof(options), .max_attempts = EVLOCK_TRY};
    evlock_client *client = client_new();
    evlock *lock = lock_with(client, &options);

    told = 0;
    assert_int_equal(evlock_acquire(lock, NULL, failed, NULL), EVLOCK_OK);
    grant(client, lock);
    assert_non_null(lock->untold);
    ring_at(loop.now + 60000 * 1000);
    assert_int_equal(told, 1);
    assert_int_equal(told_status, EVLOCK_EUNREACHABLE);
    assert_null(lock->tenure);
    assert_false(TAILQ_EMPTY(&client->locks.tenures.rounds.ghosts));
    evlock_free(lock);
    finish(client);
}

/* It was over before it could be reported: what is there may be its giver's again. */
CASE(an_adoption_that_is_lost_untold_leaves_the_token) {
    evlock_client *client = client_new();
    evlock *lock = lock_with(client, NULL);

    told = 0;
    assert_int_equal(evlock_adopt(lock, "token", EVLOCK_CSTRING, failed, NULL), EVLOCK_OK);
    answer(client, request_of(lock), number(60000));
    assert_non_null(lock->untold);
    ring_at(loop.now + 60000 * 1000);
    assert_int_equal(told, 1);
    assert_int_equal(told_status, EVLOCK_ENOTOWNED);
    assert_true(TAILQ_EMPTY(&client->locks.tenures.rounds.ghosts));
    evlock_free(lock);
    finish(client);
}

/* The loss is the end of the hold. */
CASE(what_is_lost_was_held_until_then) {
    evlock_client *client = client_new();
    evlock *lock = held(client, "name");
    const uint64_t *hold = evl_client_deployment(client)->stats.hold;
    uint64_t ended = 0;

    beside = NULL;
    ring_at(loop.now + 60000 * 1000);
    while (losses == 0)
        ring();
    for (int i = 0; i < EVLOCK_STATS_BUCKETS; i++)
        ended += hold[i];
    assert_int_equal(ended, 1);
    evlock_free(lock);
    finish(client);
}

/* Whether a node agrees is what it says of a lease, and not how that ends. */
CASE(a_release_that_finds_nothing_is_no_disagreement) {
    evlock_client *client = client_new();
    evlock *lock = held(client, "name");

    assert_true(node_of(client)->agreed);
    assert_int_equal(evlock_release(lock, ended, NULL), EVLOCK_OK);
    answer(client, request_of(lock), number(0));
    assert_true(node_of(client)->agreed);
    evlock_free(lock);
    finish(client);
}

static const char own[] = "own";

static int closed;

static void note_closed(int status, void *arg) {
    (void)status;
    (void)arg;
    closed++;
}

static evlock_client *to_close;

/* The other one waits for its token to be undone, and has no lease meanwhile. */
static void acquire_beside_and_close(evlock *lock, int reason, void *arg) {
    evlock_acquire_options given = {.size = sizeof(evlock_acquire_options)};

    (void)lock;
    (void)reason;
    (void)arg;
    given.token = own;
    given.token_len = strlen(own);
    assert_int_equal(losses++, 0);
    assert_int_equal(evlock_acquire(beside, &given, ended, NULL), EVLOCK_OK);
    assert_null(beside->tenure);
    assert_int_equal(evlock_client_close(to_close, note_closed, NULL), EVLOCK_OK);
}

/* Both are lost at once, and the client is closed before the other loss is told. */
CASE(no_loss_is_told_after_a_close) {
    evlock_options options = {.size = sizeof(evlock_options)};
    evlock_acquire_options given = {.size = sizeof(evlock_acquire_options)};
    evlock *locks[2];

    to_close = client_new();
    options.ttl_ms = 60000;
    options.on_lost = acquire_beside_and_close;
    given.token = own;
    given.token_len = strlen(own);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(evlock_new(&locks[i], to_close, &i, sizeof(i), &options), EVLOCK_OK);
        assert_int_equal(evlock_acquire(locks[i], &given, ended, NULL), EVLOCK_OK);
        grant(to_close, locks[i]);
    }
    ring();
    beside = locks[1];
    losses = closed = 0;
    ring_at(loop.now + 60000 * 1000);
    while (!closed)
        ring_next();
    assert_int_equal(losses, 1);
    beside = NULL;
    evlock_free(locks[0]);
    evlock_free(locks[1]);
}

static evlock *acquire_own(evlock_client *client, int64_t max_attempts) {
    evlock_acquire_options given = {.size = sizeof(evlock_acquire_options)};
    evlock_options options = {.size = sizeof(evlock_options)};
    evlock *lock;

    options.retry_delay_ms = 100;
    options.retry_jitter = EVLOCK_NO_JITTER;
    options.max_attempts = max_attempts;
    lock = lock_with(client, &options);
    given.token = own;
    given.token_len = EVLOCK_CSTRING;
    assert_int_equal(evlock_acquire(lock, &given, failed, NULL), EVLOCK_OK);
    return lock;
}

/* The first wait ends when its ghost is gone, with an attempt; the second is as long as any. */
CASE(an_attempt_that_waits_for_its_token_again_waits_as_long_again) {
    enum { TIMEOUT = 1000 * 1000 };
    evlock_client_options options = {.size = sizeof(evlock_client_options)};
    evlock *before, *next, *lock;
    int64_t again;

    options.connect_timeout_ms = 60000;
    options.command_timeout_ms = TIMEOUT / 1000;
    evlock_client *client = client_with(&options);
    before = acquire_own(client, EVLOCK_TRY);
    grant(client, before);
    next = acquire_own(client, EVLOCK_TRY);
    grant(client, next);
    ring();
    evlock_free(before);
    lock = acquire_own(client, 2);
    assert_null(lock->tenure);
    loop.now += TIMEOUT / 2;
    answer(client, evl_tenure_request(evl_tenures_first(&client->locks.tenures.rounds.ghosts), 0), number(1));
    ring();
    answer(client, request_of(lock), (struct reply){.type = REPLY_NIL});
    answer(client, &lock->calls->requests[0], text(REPLY_STRING, "other"));
    evlock_free(next);
    told = 0;
    again = loop.now + 100 * 1000;
    go_on_until(again + TIMEOUT - 1);
    assert_int_equal(told, 0);
    go_on_until(again + 2 * TIMEOUT);
    assert_int_equal(told, 1);
    assert_int_equal(told_status, EVLOCK_EREFUSED);
    evlock_free(lock);
    finish(client);
}

/* What becomes of the second connections is not what becomes of the nodes. */
CASE(an_acquire_is_told_at_once_that_no_replica_can_be_asked) {
    evlock_options options = {.size = sizeof(evlock_options)};
    evlock_client *client = client_new();
    struct connection *side;
    evlock *lock;

    options.min_replicas = 1;
    options.max_attempts = EVLOCK_TRY;
    lock = lock_with(client, &options);
    side = evl_pipe_connection(evl_client_deployment(client)->nodes[0]->side);
    told = 0;
    assert_int_equal(evlock_acquire(lock, NULL, failed, NULL), EVLOCK_OK);
    grant(client, lock);
    assert_true(lock->calls->requests[0].waiting);
    open_up(evl_client_deployment(client)->nodes[0]->side);
    evl_connection_break(side, EVLOCK_EUNREACHABLE, "cut");
    evl_connection_end_broken(side);
    evl_turn_rearm(side->turn);
    go_on_until(loop.now);
    assert_int_equal(told, 1);
    assert_int_equal(told_status, EVLOCK_EREPLICAS);
    assert_string_equal(told_words, "never.resolved:6379: cut");
    evlock_free(lock);
    finish(client);
}

/* --- Words of a wait that ends ------------------------------------------------------------------------------------ */

/* What such an acquire is told, of a client that is still looking for its server, whose last trouble was this. */
static const char *words_of_a_wait(const char *trouble) {
    evlock_client *client = client_new();
    evlock_options options = {.size = sizeof(evlock_options)};
    evlock *lock;

    options.max_wait_ms = 1000;
    evl_connection_note(evl_node_connection(node_of(client)), trouble);
    assert_int_equal(evlock_new(&lock, client, "name", EVLOCK_CSTRING, &options), EVLOCK_OK);
    assert_int_equal(evlock_acquire(lock, NULL, failed, NULL), EVLOCK_OK);
    told = 0;
    for (loop.now += 1000 * 1000; !told; loop.now++)
        ring();
    assert_int_equal(told_status, EVLOCK_ETIMEDOUT);
    evlock_free(lock);
    client_end(client);
    return told_words;
}

CASE(what_was_not_sent_is_not_said_to_be_unanswered) {
    assert_string_equal(words_of_a_wait(""), "the last attempt could not be sent");
    assert_string_equal(words_of_a_wait("no such name"), "never.resolved: no such name");
}

/* --- Addresses ---------------------------------------------------------------------------------------------------- */

/* The name has two, neither of which can be tried here: there are sockets of one kind alone. */
static void find_two_addresses(void) {
    static const char *const addresses[] = {"127.0.0.1", "127.0.0.2"};

    resolved(addresses, 2, NULL, resolved_arg);
}

CASE(each_address_has_its_share_of_the_time) {
    evlock_client *client = client_new();
    struct connection *connection = evl_node_connection(node_of(client));

    find_two_addresses();
    assert_int_equal(connection->addresses.next, 2);
    assert_int_equal(connection->connect_by - loop.now, connection->config->connect_timeout / 2);
    client_end(client);
}

/* Another service may answer at the first address. */
CASE(what_makes_no_sense_at_one_address_is_asked_at_the_next) {
    static const char *const addresses[] = {"127.0.0.1", "127.0.0.2"};
    evlock_client *client = client_new();
    struct connection *connection = evl_node_connection(node_of(client));

    open_up(&node_of(client)->pipe);
    assert_true(evl_addresses_keep(&connection->addresses, addresses, 2));
    (void)evl_addresses_take(&connection->addresses);
    evl_connection_break(connection, EVLOCK_EPROTOCOL, "it makes no sense");
    evl_connection_end_broken(connection);
    assert_int_equal(connection->addresses.next, 2);
    client_end(client);
}

/* The loop stood still, and hears of the addresses when the time for them has passed: they are tried all the same. */
CASE(addresses_that_are_found_while_the_loop_is_late_are_tried) {
    evlock_client *client = client_new();
    struct connection *connection = evl_node_connection(node_of(client));

    loop.now = connection->connect_by;
    find_two_addresses();
    assert_int_equal(connection->addresses.next, 2);
    client_end(client);
}

/* So much later, whatever is due by then has rung: it is away, and as late again, it asks. */
static void let_pass(struct connection *connection, enum connection_state state) {
    for (loop.now = connection->alarm.at; connection->state != state; loop.now++)
        ring();
}

static evlock_client *client_of_a_late_name(struct connection **connection) {
    evlock_client *client = client_new();

    *connection = evl_node_connection(node_of(client));
    questions = cancels = 0;
    let_pass(*connection, CONNECTION_AWAY);
    assert_string_equal((*connection)->error, "never.resolved: no address within 5000 ms");
    return client;
}

CASE(a_name_that_takes_too_long_is_not_asked_for_twice) {
    struct connection *connection;
    evlock_client *client = client_of_a_late_name(&connection);

    let_pass(connection, CONNECTION_RESOLVING);
    let_pass(connection, CONNECTION_AWAY);
    let_pass(connection, CONNECTION_RESOLVING);
    assert_int_equal(questions, 0);
    assert_int_equal(cancels, 0);
    find_two_addresses();
    assert_int_equal(connection->addresses.next, 2);
    client_end(client);
}

CASE(addresses_that_come_during_the_pause_end_it) {
    struct connection *connection;
    evlock_client *client = client_of_a_late_name(&connection);

    find_two_addresses();
    ring();
    assert_int_equal(connection->addresses.next, 2);
    assert_int_equal(questions, 0);
    let_pass(connection, CONNECTION_RESOLVING);
    assert_int_equal(questions, 1);
    client_end(client);
}

CASE(a_name_that_is_not_known_during_the_pause_is_asked_for_again) {
    struct connection *connection;
    evlock_client *client = client_of_a_late_name(&connection);

    resolved(NULL, 0, "no such name", resolved_arg);
    assert_int_equal(connection->state, CONNECTION_AWAY);
    assert_string_equal(connection->error, "never.resolved: no such name");
    let_pass(connection, CONNECTION_RESOLVING);
    assert_int_equal(questions, 1);
    client_end(client);
}

CASE(a_late_name_is_forgotten_by_who_moves_rests_or_ends) {
    struct connection *connection;
    evlock_client *client = client_of_a_late_name(&connection);

    evl_connection_move(connection);
    assert_int_equal(cancels, 1);
    evl_turn_rearm(connection->turn);
    let_pass(connection, CONNECTION_RESOLVING);
    assert_int_equal(questions, 1);
    let_pass(connection, CONNECTION_AWAY);
    evl_connection_rest(connection);
    assert_int_equal(cancels, 2);
    client_end(client);
    client = client_of_a_late_name(&connection);
    client_end(client);
    assert_int_equal(cancels, 1);
}

/* What one server says of a login, the other addresses would say again. */
CASE(no_other_address_is_tried_where_a_server_refused) {
    evlock_client *client = client_new();
    struct connection *connection = evl_node_connection(node_of(client));

    find_two_addresses();
    open_up(&node_of(client)->pipe);
    evl_connection_break(connection, EVLOCK_EAUTH, "WRONGPASS");
    evl_connection_end_broken(connection);
    assert_int_equal(connection->state, CONNECTION_AWAY);
    assert_int_equal(connection->status, EVLOCK_EAUTH);
    evl_turn_rearm(connection->turn);
    client_end(client);
}

static void nobody_answers(evlock_client *client, size_t node, void *arg) {
    (void)client;
    (void)node;
    (void)arg;
}

/* Whether a connection that had served, and is logged out, is made anew at once. */
static bool returns_at_once(evlock_login_cb on_login) {
    evlock_client_options options = {.size = sizeof(evlock_client_options)};
    struct connection *connection;
    evlock_client *client;
    bool quick;

    options.on_login = on_login;
    client = client_at("redis://never.resolved:1", &options);
    connection = evl_node_connection(node_of(client));
    open_up(&node_of(client)->pipe);
    connection->state = CONNECTION_READY;
    connection->proved = true;
    evl_connection_break(connection, EVLOCK_EAUTH, "NOAUTH");
    evl_connection_end_broken(connection);
    assert_int_equal(connection->state, CONNECTION_ENDED);
    quick = connection->next == NEXT_AT_ONCE;
    evl_turn_rearm(connection->turn);
    client_end(client);
    return quick;
}

/* Others than those that are kept may be better. */
CASE(who_is_logged_out_comes_back_at_once_if_it_is_asked_for_credentials) {
    assert_true(returns_at_once(nobody_answers));
    assert_false(returns_at_once(NULL));
}

/* --- Several nodes ------------------------------------------------------------------------------------------------ */

static evlock_client *client_of_three(void) {
    static const char urls[] = "quorum:redis://never.resolved:1 redis://never.resolved:2 redis://never.resolved:3";
    evlock_client *client;

    assert_int_equal(evlock_client_new(&client, &(evlock_loop){&ops, &loop}, urls, NULL), EVLOCK_OK);
    return client;
}

/* It may have started just now, without its locks; or it is another one that is as old. */
CASE(a_node_that_does_not_say_which_it_is_or_since_when_does_not_count_yet) {
    evlock_client *client = client_of_three();
    struct node *silent = node_of(client), *nameless = node_at(client, 1), *old = node_at(client, 2);

    strcpy(silent->pipe.login.server.run_id, "its own");
    log_in(silent, true);
    assert_int_equal(evl_node_trouble(silent, loop.now).status, EVLOCK_EEXCLUDED);
    nameless->pipe.login.server.started = 1;
    log_in(nameless, true);
    assert_int_equal(evl_node_trouble(nameless, loop.now).status, EVLOCK_EEXCLUDED);
    strcpy(old->pipe.login.server.run_id, "another");
    old->pipe.login.server.started = 1;
    log_in(old, true);
    assert_int_equal(evl_node_trouble(old, loop.now).status, EVLOCK_OK);
    cut(silent);
    cut(nameless);
    cut(old);
    client_end(client);
}

/* A node that had not granted it is given the token by the next renewal. */
CASE(a_node_that_takes_the_token_by_a_renewal_has_renewed) {
    evlock_client *client = client_of_three();
    evlock_options options = {.size = sizeof(evlock_options)};
    struct evlock_stats *stats = &evl_client_deployment(client)->stats;
    struct tenure *tenure;
    evlock *lock;

    options.auto_renewal = true;
    options.ttl_ms = 30000;
    lock = lock_with(client, &options);
    assert_int_equal(evlock_acquire(lock, NULL, ended, NULL), EVLOCK_OK);
    tenure = lock->tenure;
    answer(client, evl_tenure_request(tenure, 0), (struct reply){.type = REPLY_NIL});
    answer(client, evl_tenure_request(tenure, 1), text(REPLY_OK, "OK"));
    answer(client, evl_tenure_request(tenure, 2), text(REPLY_OK, "OK"));
    while (evl_lease_wanted(evl_tenure_lease(tenure), 0) != LEASE_REARM)
        ring_next();
    answer(client, evl_tenure_request(tenure, 0), number(options.ttl_ms));
    assert_int_equal(stats->renewals, 1);
    answer(client, evl_tenure_request(tenure, 1), number(options.ttl_ms));
    assert_int_equal(stats->renewals, 2);
    evlock_free(lock);
    client_end(client);
}

static bool is_refused(struct node *node, const char *run_id) {
    open_up(&node->pipe);
    strcpy(node->pipe.login.server.run_id, run_id);
    node->pipe.login.hooks->met(&node->pipe.login);
    return evl_node_connection(node)->broken == EVLOCK_ESAME;
}

/* The same server must not vote again by its other address. */
CASE(a_server_that_has_voted_is_no_other_node_before_the_longest_lease_has_ended) {
    evlock_client *client = client_of_three();
    struct node *first = node_of(client), *later = node_at(client, 1);

    cut(first);
    strcpy(first->pipe.login.before.run_id, "a");
    evl_node_connection(first)->served = loop.now;
    loop.now += evl_node_connection(first)->config->max_ttl - 1;
    assert_true(is_refused(later, "a"));
    cut(later);
    assert_false(is_refused(later, "b"));
    cut(later);
    loop.now++;
    assert_false(is_refused(later, "a"));
    cut(later);
    client_end(client);
}

/* Neither served when the server said to either which process it is. */
CASE(of_two_logins_of_one_server_at_a_time_the_later_is_refused) {
    evlock_client *client = client_of_three();
    struct node *first = node_of(client), *later = node_at(client, 1);
    const struct connection *refused = evl_node_connection(later);

    for (unsigned i = 0; i < 2; i++)
        assert_false(is_refused(node_at(client, i), "a"));
    log_in(first, true);
    later->pipe.login.hooks->done(&later->pipe.login, true);
    evl_turn_rearm(refused->turn);
    assert_int_equal(refused->broken, EVLOCK_ESAME);
    assert_false(evl_node_connection(first)->broken);
    evl_connection_end_broken(evl_node_connection(later));
    /* To come back soon cannot help. */
    assert_true(refused->retry_at - loop.now >= refused->config->backoff_max / 2);
    cut(first);
    client_end(client);
}

/* --- With a socket ------------------------------------------------------------------------------------------------ */

/* Its socket is connected: the login begins. */
static void open_connection(struct connection *connection) {
    evlock_on_writable(connection->context);
    assert_true(connection->transport.open);
}

/* A client whose connections are made, and whose logins are never answered; it has its time for them. */
static evlock_client *client_at_socket(void) {
    evlock_client_options options = {.size = sizeof(evlock_client_options)};
    evlock_client *client;

    attached = 0;
    options.connect_timeout_ms = 600000;
    client = client_at("unix://" SOCKETS_FOLDER "0", &options);
    open_connection(evl_node_connection(node_of(client)));
    return client;
}

static void finish_at_socket(evlock_client *client) {
    struct socket *peer;

    attached = -1;
    finish(client);
    while ((peer = socket_accept(0)))
        socket_end(peer);
    assert_int_equal(sockets_count(), 0);
}

static void serve(struct node *node) {
    log_in(node, true);
    evl_connection_ring(&evl_node_connection(node)->alarm, loop.now);
    assert_int_equal(evl_node_state(node), CONNECTION_READY);
}

/* The first step of a login without a password is answered by this. */
static void say(struct node *node, const char *info) {
    char reply[256];
    struct socket *peer = socket_accept(0);
    int len = snprintf(reply, sizeof(reply), "$%zu\r\n%s\r\n", strlen(info), info);

    assert_non_null(peer);
    socket_put(peer, reply, (size_t)len);
    evlock_on_readable(evl_node_connection(node)->context);
    socket_end(peer);
}

/* The room is for a number of 40 digits. */
CASE(what_is_longer_than_its_room_is_not_known) {
    static const char digits[] = "0123456789012345678901234567890123456789x";
    char info[128];

    for (int len = 40; len <= 41; len++) {
        evlock_client *client = client_at_socket();
        struct node *node = node_of(client);
        snprintf(info, sizeof(info), "# Server\r\nrun_id:%.*s\r\n", len, digits);
        say(node, info);
        assert_string_equal(node->pipe.login.server.run_id,
                            len == 40 ? "0123456789012345678901234567890123456789" : "");
        finish_at_socket(client);
    }
}

CASE(a_login_begins_without_what_the_last_one_found) {
    evlock_client *client = client_at_socket();
    struct node *node = node_of(client);
    struct login *login = &node->pipe.login;

    login->server.run_id[0] = login->server.replid[0] = login->server.load_error[0] = 'a';
    login->server.inherited = false;
    login->server.started = 1;
    login->server.spells = login->server.lacks_evalsha = login->server.bare = true;
    cut(node);
    assert_int_equal(evl_node_state(node), CONNECTION_AWAY);
    ring_at(evl_node_connection(node)->retry_at);
    assert_int_equal(evl_node_state(node), CONNECTION_CONNECTING);
    open_connection(evl_node_connection(node));
    assert_string_equal(login->server.run_id, "");
    assert_string_equal(login->server.replid, "");
    assert_string_equal(login->server.load_error, "");
    assert_true(login->server.inherited);
    assert_true(login->server.started == 0);
    assert_false(login->server.spells || login->server.lacks_evalsha || login->server.bare);
    finish_at_socket(client);
}

/* No clock is compared with that of the server of before. */
CASE(another_servers_clock_has_not_stepped) {
    evlock_client *client = client_at_socket();
    struct node *node = node_of(client);
    struct drift_found found;

    serve(node);
    evl_node_compare_clocks(node, loop.now, 1);
    cut(node);
    loop.now += INT64_C(60) * 1000000;
    log_in(node, true);
    assert_false(evl_drift_note(&node->drift, &(struct clock_reading){5, loop.now, loop.now}, &found));
    finish_at_socket(client);
}

/* The new ttl counts from when it was sent. */
CASE(a_shorter_lease_that_was_sent_late_is_lost_by_its_own_time) {
    enum { SHORT = 1000 * 1000 };
    evlock_client *client = client_at_socket();
    evlock *lock = held(client, "name");

    told = 0;
    assert_int_equal(evlock_extend(lock, SHORT / 1000, EVLOCK_EXTEND_REPLACE, ended, NULL), EVLOCK_OK);
    assert_true(request_of(lock)->waiting);
    loop.now += SHORT;
    int64_t sent = loop.now;
    log_in(node_of(client), true);
    ring();
    assert_true(request_of(lock)->flying);
    while (losses == 0)
        ring_next();
    assert_int_in_range(lost_at, sent, sent + SHORT);
    evlock_free(lock);
    finish_at_socket(client);
}

/* --- In a queue --------------------------------------------------------------------------------------------------- */

static evlock *queueing_as(evlock_client *client, evlock_options options) {
    evlock *lock;

    options.wait = EVLOCK_WAIT_QUEUE;
    lock = lock_with(client, &options);
    assert_int_equal(evlock_acquire(lock, NULL, ended, NULL), EVLOCK_OK);
    answer(client, request_of(lock), (struct reply){.type = REPLY_NIL});
    answer(client, &lock->calls->requests[0], text(REPLY_STRING, "other"));
    assert_non_null(node_of(client)->listener);
    return lock;
}

static evlock *queueing(evlock_client *client) {
    return queueing_as(client, (evlock_options){.size = sizeof(evlock_options)});
}

/* As if the server had said that the client is subscribed. */
static struct listener *listening(evlock_client *client) {
    struct listener *listener = node_of(client)->listener;

    listener->login.open = 0;
    listener->login.connection.hooks->heard(&listener->login.connection, NULL);
    evl_turn_rearm(evl_client_turn(client));
    assert_true(evl_listener_hears(listener));
    return listener;
}

/* The client listens anew, looks, and is handed the lock so long after that look, by its own clock and the server's.
 * From when on the lease counts, beside the look. */
static int64_t handed_after(int64_t passed, int64_t by_server) {
    char message[128];
    evlock_client *client = client_at_socket();
    evlock *lock = queueing(client);
    struct listener *listener = listening(client);
    int64_t looked, since, ttl = lock->config->terms.ttl;

    ring();
    answer(client, request_of(lock), text(REPLY_STRING, "5000000 0 20000"));
    listener->hooks->listens(listener);
    evl_turn_rearm(evl_client_turn(client));
    ring();
    looked = loop.now;
    answer(client, request_of(lock), text(REPLY_STRING, "5000000 0 20000"));
    loop.now += passed;
    snprintf(message, sizeof(message), "%s %" PRId64 " 0", evl_tenure_ticket(lock->tenure), 5000000 + by_server);
    listener->hooks->heard(listener, message);
    since = evl_lease_deadline(evl_tenure_lease(lock->tenure)) - ttl + evl_lease_drift(ttl);
    evlock_free(lock);
    finish_at_socket(client);
    return since - looked;
}

/* Two connections listen for a moment, where one takes the other's place. */
CASE(a_grant_that_is_heard_twice_counts_once) {
    char message[128];
    evlock_client *client = client_at_socket();
    evlock *lock = queueing(client);
    struct listener *listener = listening(client);
    evlock_stats stats;

    ring();
    answer(client, request_of(lock), text(REPLY_STRING, "5000000 0 20000"));
    snprintf(message, sizeof(message), "%s 5000000 0", evl_tenure_ticket(lock->tenure));
    listener->hooks->heard(listener, message);
    listener->hooks->heard(listener, message);
    evl_turn_rearm(evl_client_turn(client));
    ring();
    assert_true(evlock_is_held(lock));
    listener->hooks->heard(listener, message);
    assert_int_equal(evlock_client_stats(client, &stats, sizeof(stats)), EVLOCK_OK);
    assert_int_equal(stats.acquired, 1);
    assert_int_equal(stats.handed, 1);
    evlock_free(lock);
    finish_at_socket(client);
}

enum { PASSED = 1000 * 1000 };

/* What the client did not hear before the newest look does not make the lease shorter. */
CASE(a_lease_that_is_handed_counts_from_what_the_newest_look_found) {
    assert_int_equal(handed_after(PASSED, PASSED), PASSED - PASSED / 100);
}

/* Whatever a server's clock says. */
CASE(no_lease_that_is_handed_counts_from_later_than_now) {
    assert_int_equal(handed_after(PASSED, 60 * PASSED), PASSED);
}

/* What waits to be sent is, and is not answered. */
static void send_to(evlock_client *client, struct request *request) {
    struct pipe *pipe = &evl_client_deployment(client)->nodes[request->node]->pipe;
    struct command command;

    assert_true(request->waiting);
    evl_pipe_withdraw(pipe, request);
    assert_true(pipe->ops[request->kind]->take(request, loop.now, &command));
}

/* Another of its group had looked, and left. That it looks again meanwhile does not make the lease longer. */
CASE(a_lease_that_is_handed_to_an_heir_counts_from_the_look_before) {
    char message[128];
    evlock_options options = {.size = sizeof(evlock_options), .wait = EVLOCK_WAIT_QUEUE, .max_passes = 1};
    evlock_client *client = client_at_socket();
    evlock *lock = queueing_as(client, options), *heir = lock_with(client, &options);
    struct listener *listener = listening(client);
    const struct reply one = {.type = REPLY_INTEGER, .integer = 1};
    int64_t looked, ttl = lock->config->terms.ttl;

    ring();
    looked = loop.now;
    answer(client, request_of(lock), text(REPLY_STRING, "5000000 0 20000"));
    assert_int_equal(evlock_acquire(heir, NULL, ended, NULL), EVLOCK_OK);
    loop.now += PASSED;
    evlock_free(lock);
    ring();
    send_to(client, request_of(heir));
    snprintf(message, sizeof(message), "%s 5000000 0", evl_tenure_ticket(heir->tenure));
    listener->hooks->heard(listener, message);
    assert_int_equal(evl_lease_deadline(evl_tenure_lease(heir->tenure)) - ttl + evl_lease_drift(ttl), looked);
    assert_true(evl_tenure_requests.answer(request_of(heir), &one, loop.now));
    evlock_free(heir);
    finish_at_socket(client);
}

static int risks;

static void on_risk(evlock *lock, int trouble, void *arg) {
    (void)lock, (void)trouble, (void)arg;
    risks++;
}

/* The report of the grant took long. */
CASE(a_risk_from_before_the_grant_is_told_in_time) {
    evlock_options options = {.size = sizeof(evlock_options), .auto_renewal = true, .on_at_risk = on_risk};
    evlock_client *client = client_new();
    evlock *lock;

    options.ttl_ms = 30000;
    lock = lock_with(client, &options);
    assert_int_equal(evlock_acquire(lock, NULL, ended, NULL), EVLOCK_OK);
    grant(client, lock);
    risks = 0;
    for (int i = 0; i < 2; i++) {
        loop.now += 12 * 1000 * 1000;
        evl_client_turn(client)->heard = loop.now;
        evl_tenure_ring(&lock->tenure->alarm, loop.now);
    }
    assert_int_equal(risks, 0);
    ring();
    assert_true(evlock_is_held(lock));
    while (risks == 0 && evlock_is_held(lock))
        ring_next();
    assert_int_equal(risks, 1);
    evlock_free(lock);
    finish(client);
}

/* The attempt that it was granted is another's first. */
CASE(who_inherits_an_attempt_has_waited) {
    evlock_options options = {.size = sizeof(evlock_options), .max_passes = 1};
    evlock_client *client = client_at_socket();
    evlock *lock = lock_with(client, &options), *heir = lock_with(client, &options);
    evlock_stats stats;

    assert_int_equal(evlock_acquire(lock, NULL, ended, NULL), EVLOCK_OK);
    assert_int_equal(evlock_acquire(heir, NULL, ended, NULL), EVLOCK_OK);
    evlock_free(lock);
    answer(client, request_of(heir), text(REPLY_OK, "OK"));
    evl_turn_rearm(evl_client_turn(client));
    ring();
    assert_true(evlock_is_held(heir));
    assert_int_equal(evlock_client_stats(client, &stats, sizeof(stats)), EVLOCK_OK);
    assert_int_equal(stats.waited, 1);
    evlock_free(heir);
    finish_at_socket(client);
}

/* Its wait has ended, and the loop has not turned since. */
CASE(a_lease_that_is_handed_past_the_end_of_a_wait_goes_to_the_heir) {
    char message[128];
    evlock_options options = {.size = sizeof(evlock_options), .wait = EVLOCK_WAIT_QUEUE, .max_passes = 1};
    evlock_options brief = options;
    evlock_client *client = client_at_socket();
    struct listener *listener;
    evlock *lock, *heir;
    evlock_stats stats;

    brief.max_wait_ms = PASSED / 1000;
    lock = queueing_as(client, brief);
    heir = lock_with(client, &options);
    listener = listening(client);
    ring();
    answer(client, request_of(lock), text(REPLY_STRING, "5000000 0 20000"));
    assert_int_equal(evlock_acquire(heir, NULL, ended, NULL), EVLOCK_OK);
    snprintf(message, sizeof(message), "%s 5000000 0", evl_tenure_ticket(lock->tenure));
    loop.now += PASSED;
    listener->hooks->heard(listener, message);
    evl_turn_rearm(evl_client_turn(client));
    ring();
    assert_false(evlock_is_held(lock));
    assert_true(evlock_is_held(heir));
    assert_int_equal(evlock_client_stats(client, &stats, sizeof(stats)), EVLOCK_OK);
    assert_int_equal(stats.handed, 1);
    assert_true(heir->crowded);
    evlock_free(lock);
    evlock_free(heir);
    finish_at_socket(client);
}

/* Whether it holds by a message that comes so long after its look, on a connection that has listened for less. */
static bool holds_by_a_new_connection(int64_t (*later)(int64_t ttl)) {
    char message[128];
    evlock_client *client = client_at_socket();
    evlock *lock = queueing(client);
    struct listener *listener = listening(client);
    int64_t looked, ttl = lock->config->terms.ttl;
    bool held;

    ring();
    looked = loop.now;
    answer(client, request_of(lock), text(REPLY_STRING, "5000000 0 20000"));
    loop.now += later(ttl);
    listener->login.connection.ready_at = loop.now;
    snprintf(message, sizeof(message), "%s %" PRId64 " 0", evl_tenure_ticket(lock->tenure), 5000000 + later(ttl));
    listener->hooks->heard(listener, message);
    held = evl_lease_state(evl_tenure_lease(lock->tenure)) == LEASE_HELD;
    if (held)
        assert_int_equal(evl_lease_deadline(evl_tenure_lease(lock->tenure)) - ttl + evl_lease_drift(ttl), looked);
    else
        assert_true((int64_t)lock->calls->alarm.at <= loop.now);
    evlock_free(lock);
    finish_at_socket(client);
    return held;
}

static int64_t a_quarter(int64_t ttl) {
    return ttl / 4;
}

static int64_t more_than_a_quarter(int64_t ttl) {
    return ttl / 4 + 1;
}

/* Its clock is not known to be the one that the look was told: the lease counts from the look, if that is of use. */
CASE(a_grant_by_a_new_connection_counts_from_the_look_or_is_looked_at) {
    assert_true(holds_by_a_new_connection(a_quarter));
    assert_false(holds_by_a_new_connection(more_than_a_quarter));
}

/* Whether a waiter that wants a fence, and none besides, holds by these words behind its ticket. */
static bool holds_by(const char *words, bool other_ticket) {
    char message[256];
    evlock_options options = {.size = sizeof(evlock_options), .wait = EVLOCK_WAIT_QUEUE, .fence = true};
    evlock_client *client = client_at_socket();
    struct listener *listener;
    evlock *lock;
    size_t len;
    bool held;

    options.max_passes = 10;
    lock = lock_with(client, &options);
    assert_int_equal(evlock_acquire(lock, NULL, ended, NULL), EVLOCK_OK);
    answer(client, request_of(lock), number(0));
    answer(client, &lock->calls->requests[0], text(REPLY_STRING, "other"));
    listener = listening(client);
    ring();
    answer(client, request_of(lock), text(REPLY_STRING, "5000000 0 20000"));
    len = strlen(evl_tenure_ticket(lock->tenure));
    snprintf(message, sizeof(message), "%s%s", evl_tenure_ticket(lock->tenure), words);
    if (other_ticket)
        message[len - 1] = message[len - 1] == '0' ? '1' : '0';
    listener->hooks->heard(listener, message);
    held = evl_lease_state(evl_tenure_lease(lock->tenure)) == LEASE_HELD;
    evlock_free(lock);
    finish_at_socket(client);
    return held;
}

/* Whoever may publish may say anything. */
CASE(no_grant_is_believed_that_no_server_would_tell) {
    static const char *const others[] = {
        " 5000000 0",   " 5000000 7 0",   " 5000000 7 1", " 5000000 7 -1", " 5000000 -7",
        " 5000000 7 x", " 5000000 7 1 1", " 4999999 7",   " -1 7",         " 5000000 9223372036854775807",
    };

    assert_true(holds_by(" 5000000 7", false));
    assert_false(holds_by(" 5000000 7", true));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_false(holds_by(others[i], false));
}

/* Whether it holds the lock by a message, or looks first. */
static void assert_looks(const char *queued, int64_t time) {
    char message[128];
    evlock_client *client = client_at_socket();
    evlock *lock = queueing(client);
    struct listener *listener = listening(client);

    ring();
    answer(client, request_of(lock), text(REPLY_STRING, queued));
    loop.now += PASSED / 10;
    snprintf(message, sizeof(message), "%s %" PRId64 " 7", evl_tenure_ticket(lock->tenure), time);
    listener->hooks->heard(listener, message);
    assert_false(evlock_is_held(lock));
    assert_int_equal(lock->calls->alarm.at, loop.now);
    evl_turn_rearm(evl_client_turn(client));
    ring();
    assert_true(request_of(lock)->waiting);
    evlock_free(lock);
    finish_at_socket(client);
}

/* It might be from before the newest look, and over. */
CASE(a_grant_of_unknown_time_is_looked_at) {
    assert_looks("0 0 20000", 0);
    assert_looks("0 0 20000", 5100000);
    assert_looks("5000000 0 20000", 0);
}

/* How long after an answered look the next one is due, of one with these options. */
static int64_t look_pause(evlock_options options, const char *answered) {
    evlock_client *client = client_at_socket();
    evlock *lock = queueing_as(client, options);
    int64_t pause;

    (void)listening(client);
    ring();
    answer(client, request_of(lock), text(REPLY_STRING, answered));
    pause = (int64_t)lock->calls->alarm.at - loop.now;
    evlock_free(lock);
    finish_at_socket(client);
    return pause;
}

/* The hundredth that a look's age takes from the lease is not to be much of it, however many wait ahead. */
CASE(no_look_is_as_old_as_ten_ttls) {
    enum { SHORT_MS = 50 };
    evlock_options options = {.size = sizeof(evlock_options)};

    options.ttl_ms = options.retry_delay_ms = SHORT_MS;
    assert_int_in_range(look_pause(options, "5000000 9 20000"), 0, 10 * SHORT_MS * 1000);
}

/* A tenth of a second, of which half at most is taken by chance. */
CASE(no_look_follows_at_once_however_short_the_retry_delay_is) {
    evlock_options options = {.size = sizeof(evlock_options)};

    options.retry_delay_ms = 1;
    assert_int_in_range(look_pause(options, "5000000 0 20000"), 50 * 1000, 100 * 1000);
}

/* Nor is a message that was lost missed for long by who waits far behind. */
CASE(no_look_is_far_away_however_many_wait_ahead) {
    evlock_options options = {.size = sizeof(evlock_options)};

    assert_int_in_range(look_pause(options, "5000000 1000000 -1"), 15 * 1000 * 1000, 30 * 1000 * 1000);
}

enum { IN_LINE = 20, STEP = 100, ROUND = 32 * STEP };

/* They wait behind others, and listen. */
static struct listener *stand_in_line(evlock_client *client, evlock *locks[IN_LINE]) {
    struct listener *listener;

    for (int i = 0; i < IN_LINE; i++)
        locks[i] = queueing(client);
    listener = listening(client);
    ring();
    for (int i = 0; i < IN_LINE; i++)
        answer(client, request_of(locks[i]), text(REPLY_STRING, "5000000 9 -1"));
    return listener;
}

static void leave_line(evlock_client *client, evlock *locks[IN_LINE]) {
    for (int i = 0; i < IN_LINE; i++)
        evlock_free(locks[i]);
    finish_at_socket(client);
}

static int64_t looks_in(const evlock *lock) {
    return (int64_t)lock->calls->alarm.at - loop.now;
}

/* Who has waited longest looks at once; no two of the others at the same time. */
CASE(who_listens_again_looks_at_a_moment_of_its_own) {
    evlock_client *client = client_at_socket();
    evlock *locks[IN_LINE];
    struct listener *listener = stand_in_line(client, locks);
    bool taken[ROUND / STEP] = {false};

    loop.now += 12345;
    listener->hooks->listens(listener);
    assert_int_equal(looks_in(locks[0]), 0);
    for (int i = 1; i < IN_LINE; i++) {
        int64_t in = looks_in(locks[i]);
        assert_int_in_range(in, 0, ROUND - 1);
        assert_false(taken[in / STEP]);
        taken[in / STEP] = true;
    }
    leave_line(client, locks);
}

/* So that returns one after the other do not put it off, nor have it look more often. */
CASE(that_moment_stays_if_it_listens_again_meanwhile) {
    evlock_client *client = client_at_socket();
    evlock *locks[IN_LINE];
    struct listener *listener = stand_in_line(client, locks);

    listener->hooks->listens(listener);
    for (int i = 1; i < IN_LINE; i++) {
        int64_t in = looks_in(locks[i]);
        listener->hooks->listens(listener);
        assert_int_equal(looks_in(locks[i]), in);
    }
    leave_line(client, locks);
}

/* What was asked for before says nothing of what was not heard since. */
CASE(an_answer_on_its_way_does_not_put_off_that_moment) {
    evlock_client *client = client_at_socket();
    evlock *locks[IN_LINE];
    struct listener *listener = stand_in_line(client, locks);

    loop.now += 60 * 1000 * 1000;
    ring();
    listener->hooks->listens(listener);
    for (int i = 1; i < IN_LINE; i++) {
        int64_t in = looks_in(locks[i]);
        assert_int_in_range(in, 0, ROUND - 1);
        answer(client, request_of(locks[i]), text(REPLY_STRING, "65000000 9 -1"));
        assert_int_equal(looks_in(locks[i]), in);
    }
    leave_line(client, locks);
}

/* It is no reason to look later than without it. */
CASE(a_look_that_is_due_is_not_put_off_by_listening_again) {
    evlock_client *client = client_at_socket();
    evlock *locks[IN_LINE];
    struct listener *listener = stand_in_line(client, locks);

    loop.now = (int64_t)locks[1]->calls->alarm.at - 1;
    listener->hooks->listens(listener);
    assert_int_in_range(looks_in(locks[1]), 0, 1);
    leave_line(client, locks);
}

/* It was the first of those who wait, by what it was told last. */
CASE(who_was_ahead_of_all_looks_at_once) {
    evlock_client *client = client_at_socket();
    evlock *locks[IN_LINE];
    struct listener *listener = stand_in_line(client, locks);

    loop.now += 60 * 1000 * 1000;
    ring();
    answer(client, request_of(locks[5]), text(REPLY_STRING, "65000000 0 -1"));
    assert_true(looks_in(locks[5]) > 0);
    listener->hooks->listens(listener);
    assert_int_equal(looks_in(locks[5]), 0);
    leave_line(client, locks);
}

static int connected;

static void count_connected(enum evlock_log_level level, const char *line, void *arg) {
    (void)level;
    (void)arg;
    connected += strcmp(line, "node 0 (" SOCKETS_FOLDER "0): connected") == 0;
}

/* The log says when it was lost. */
CASE(a_listener_that_is_connected_is_in_the_log) {
    evlock_client_options options = {.size = sizeof(evlock_client_options)};
    evlock_client *client;
    evlock *lock;

    attached = 0;
    options.on_log = count_connected;
    client = client_at("unix://" SOCKETS_FOLDER "0", &options);
    lock = queueing(client);
    connected = 0;
    listening(client);
    assert_int_equal(connected, 1);
    evlock_free(lock);
    finish_at_socket(client);
}

/* It may be another server: the listener may be connected to the one before. */
CASE(a_listener_follows_a_node_that_does_not_say_who_it_is) {
    evlock_client *client = client_at_socket();
    evlock *lock = queueing(client);
    struct node *node = node_of(client);
    const struct connection *connection;

    serve(node);
    loop.now++;
    connection = &listening(client)->login.connection;
    loop.now++;
    cut(node);
    ring();
    ring_at(loop.now + 10 * 1000000); /* it connects anew */
    assert_int_equal(evl_node_state(node), CONNECTION_CONNECTING);
    assert_false(connection->broken);
    log_in(node, true);
    assert_int_equal(connection->broken, EVLOCK_EUNREACHABLE);
    assert_false(evl_listener_hears(node_of(client)->listener));
    evlock_free(lock);
    finish_at_socket(client);
}

CASE(a_listener_goes_where_its_node_goes) {
    static const char path[] = "unix://" SOCKETS_FOLDER "0";
    evlock_client *client = client_at_socket();
    evlock *lock = queueing(client);
    struct node *node = node_of(client);
    const struct connection *connection;
    struct words words;
    struct url url;

    serve(node);
    connection = &listening(client)->login.connection;
    assert_int_equal(evl_url_parse(&url, path, strlen(path), &words).status, EVLOCK_OK);
    evl_node_move(node, &url);
    assert_int_equal(evl_node_connection(node)->broken, EVLOCK_EUNREACHABLE);
    assert_int_equal(connection->broken, EVLOCK_EUNREACHABLE);
    evlock_free(lock);
    finish_at_socket(client);
}

/* --- A socket that is full ---------------------------------------------------------------------------------------- */

enum { TURN_BYTES = 64 * 1024, ACQUIRE_BYTES = 90 }; /* at least */

/* What it sends in a turn in which the socket takes more. */
static size_t sent_in_a_turn(struct node *node) {
    size_t before = node->pipe.waiting_count;

    evlock_on_writable(evl_node_connection(node)->context);
    return before - node->pipe.waiting_count;
}

static int unanswered(const struct node *node) {
    const struct request *request;
    int count = 0;

    TAILQ_FOREACH (request, &node->pipe.flying, link)
        count++;
    return count;
}

/* And no connection is made before all have been told. */
static void assert_lost_by_slices(const struct node *node) {
    int before = unanswered(node);

    assert_int_equal(before, MANY);
    for (int left; before > 0; before = left) {
        assert_int_equal(evl_node_state(node), CONNECTION_ENDED);
        ring();
        left = unanswered(node);
        assert_int_in_range(before - left, 1, 1000 * TOLD_A_RING);
    }
    assert_int_equal(evl_node_state(node), CONNECTION_AWAY);
}

/* What was lost with a connection is reported by slices. Before its owner has heard, a lost delete of a token may still
 * run, and nobody knows of it: so every token waits to be used again. */
CASE(no_token_is_used_again_before_all_know_what_was_lost) {
    const struct bytes word = {"own", 3};
    evlock_client *client = client_at_socket();
    struct node *node = node_of(client);
    serve(node);
    assert_false(evl_tenures_haunt(&client->locks.tenures, word, word));
    attached = -1;
    cut(node);
    assert_int_equal(evl_node_state(node), CONNECTION_ENDED);
    assert_true(evl_tenures_haunt(&client->locks.tenures, word, word));
    ring();
    assert_int_equal(evl_node_state(node), CONNECTION_AWAY);
    assert_false(evl_tenures_haunt(&client->locks.tenures, word, word));
    finish_at_socket(client);
}

/* It ends as one that is not needed; meanwhile it is. */
CASE(who_is_wanted_again_before_it_rests_comes_back) {
    evlock_client *client = client_at_socket();
    struct connection *connection = evl_node_connection(node_of(client));
    serve(node_of(client));
    evl_connection_rest(connection);
    evl_connection_end_broken(connection);
    assert_int_equal(connection->state, CONNECTION_ENDED);
    evl_connection_want(connection);
    evl_connection_ring(&connection->alarm, loop.now);
    assert_int_equal(connection->state, CONNECTION_CONNECTING);
    finish_at_socket(client);
}

/* What served for nothing pauses; but where it is to go now, nothing has been tried. */
CASE(who_is_moved_before_its_end_is_told_pauses_no_more) {
    for (int moved = 0; moved < 2; moved++) {
        evlock_client *client = client_at_socket();
        struct connection *connection = evl_node_connection(node_of(client));
        serve(node_of(client));
        cut(node_of(client));
        assert_int_equal(connection->state, CONNECTION_ENDED);
        if (moved)
            evl_connection_move(connection);
        ring();
        assert_int_equal(connection->state, moved ? CONNECTION_CONNECTING : CONNECTION_AWAY);
        finish_at_socket(client);
    }
}

/* As if this were the answer to what it has sent. */
static void hear(struct node *node, struct request *request, struct reply reply) {
    assert_true(request->flying);
    evl_node_connection(node)->unanswered--;
    evl_pipe_answered(evl_node_connection(node), request, &reply, loop.now);
    ring();
}

/* What is sent once more is not sent for ever. */
static void refuse_for_ever(const char *words, const char *told_of) {
    evlock_options options = {.size = sizeof(options), .fence = true, .max_attempts = EVLOCK_TRY};
    evlock_client *client = client_at_socket();
    struct node *node = node_of(client);
    evlock *lock;
    int answers = 0;
    serve(node);
    node->pipe.login.server.clock.server = 1; /* so that it is brought */
    told = 0;
    assert_int_equal(evlock_new(&lock, client, "name", EVLOCK_CSTRING, &options), EVLOCK_OK);
    assert_int_equal(evlock_acquire(lock, NULL, failed, NULL), EVLOCK_OK);
    for (; !told && answers < 10; answers++)
        hear(node, request_of(lock), evl_reply_of(words));
    assert_int_equal(answers, 3);
    assert_int_equal(told_status, EVLOCK_EREFUSED);
    assert_non_null(strstr(told_words, told_of));
    evlock_free(lock);
    finish_at_socket(client);
}

CASE(a_server_that_loses_each_script_is_left_in_peace) {
    refuse_for_ever("NOSCRIPT No matching script.", "keeps losing its scripts");
}

CASE(a_server_that_has_no_clock_though_it_was_brought_is_left_in_peace) {
    refuse_for_ever("NOCLOCK TRYAGAIN later", "TRYAGAIN later");
}

/* The next connection may lead to a server that keeps what it is given. So it is given its scripts first, before each
 * command has them in it. */
CASE(scripts_that_were_missing_on_a_lost_connection_do_not_count_on_the_next) {
    const struct reply missing = evl_reply_of("NOSCRIPT No matching script.");
    evlock_client *client = client_at_socket();
    struct node *node = node_of(client);
    evlock *lock = lock_with(client, NULL);
    serve(node);
    assert_int_equal(evlock_acquire(lock, NULL, NULL, NULL), EVLOCK_OK);
    hear(node, request_of(lock), text(REPLY_OK, "OK"));
    assert_int_equal(evlock_release(lock, NULL, NULL), EVLOCK_OK);
    hear(node, request_of(lock), missing);
    cut(node);
    ring();
    open_connection(evl_node_connection(node));
    serve(node);
    evlock_on_writable(evl_node_connection(node)->context);
    hear(node, request_of(lock), missing);
    assert_false(node->pipe.login.server.spells);
    hear(node, request_of(lock), missing);
    assert_true(node->pipe.login.server.spells);
    evlock_free(lock);
    finish_at_socket(client);
}

/* A wait is of the server that was found to be new, and of no other that is asked in its place. */
CASE(a_wait_is_not_taken_along_to_another_server) {
    evlock_client *client = client_at_socket();
    struct connection *connection = evl_node_connection(node_of(client));
    int64_t until = loop.now + INT64_C(3600) * 1000000;
    evl_connection_break_until(connection, EVLOCK_EEXCLUDED, "its history is new", until);
    evl_connection_move(connection);
    evl_connection_end_broken(connection);
    assert_int_equal(connection->state, CONNECTION_CONNECTING);
    evl_connection_break(connection, EVLOCK_EUNREACHABLE, "cut");
    evl_connection_end_broken(connection);
    assert_int_equal(connection->state, CONNECTION_AWAY);
    assert_true(connection->retry_at < until);
    finish_at_socket(client);
}

CASE(a_wait_is_forgotten_by_who_rests) {
    evlock_client *client = client_at_socket();
    struct connection *connection = evl_node_connection(node_of(client));
    int64_t until = loop.now + INT64_C(3600) * 1000000;
    evl_connection_break_until(connection, EVLOCK_EEXCLUDED, "its history is new", until);
    evl_connection_rest(connection);
    evl_connection_end_broken(connection);
    assert_int_equal(connection->state, CONNECTION_IDLE);
    evl_connection_want(connection);
    evl_connection_break(connection, EVLOCK_EUNREACHABLE, "cut");
    evl_connection_end_broken(connection);
    assert_int_equal(connection->state, CONNECTION_AWAY);
    assert_true(connection->retry_at < until);
    finish_at_socket(client);
}

static size_t taken(struct socket *peer) {
    char bytes[4096];
    size_t len, all = 0;

    while ((len = socket_take(peer, bytes, sizeof(bytes))) > 0)
        all += len;
    return all;
}

/* All acquires are as long as the first. */
CASE(what_a_socket_takes_in_parts_arrives_whole) {
    evlock_client *client = client_at_socket();
    struct node *node = node_of(client);
    struct socket *peer;
    size_t length = 0, all = 0;

    serve(node);
    assert_non_null(peer = socket_accept(0));
    evlock_on_writable(evl_node_connection(node)->context);
    (void)taken(peer);
    for (int i = 0; i < MANY; i++) {
        evlock *lock;
        assert_int_equal(evlock_new(&lock, client, &i, sizeof(i), NULL), EVLOCK_OK);
        assert_int_equal(evlock_acquire(lock, NULL, ended, NULL), EVLOCK_OK);
        if (i > 0)
            continue;
        evlock_on_writable(evl_node_connection(node)->context);
        all = length = taken(peer);
        assert_true(length > 0);
    }
    while (sent_in_a_turn(node) > 0)
        ;
    assert_true(evl_node_connection(node)->transport.full);
    for (size_t len = 1; len > 0; all += len) {
        len = taken(peer);
        evlock_on_writable(evl_node_connection(node)->context);
    }
    assert_int_equal(node->pipe.waiting_count, 0);
    assert_int_equal(all, MANY * length);
    attached = -1;
    cut(node);
    assert_lost_by_slices(node);
    socket_end(peer);
    finish_at_socket(client);
}

CASE(what_a_socket_does_not_take_waits_unsent) {
    static char bytes[1024 * 1024];
    evlock_client *client = client_at_socket();
    struct socket *peer;
    size_t sent;
    struct node *node = node_of(client);
    serve(node);
    for (int i = 0; i < MANY; i++) {
        evlock *lock;
        assert_int_equal(evlock_new(&lock, client, &i, sizeof(i), NULL), EVLOCK_OK);
        assert_int_equal(evlock_acquire(lock, NULL, ended, NULL), EVLOCK_OK);
    }
    assert_int_in_range(MANY - node->pipe.waiting_count, 1, TURN_BYTES / ACQUIRE_BYTES);
    while ((sent = sent_in_a_turn(node)) > 0)
        assert_int_in_range(sent, 1, TURN_BYTES / ACQUIRE_BYTES);
    assert_true(evl_node_connection(node)->transport.full && node->pipe.waiting_count > 0);
    assert_non_null(peer = socket_accept(0));
    while (node->pipe.waiting_count > 0) {
        while (socket_take(peer, bytes, sizeof(bytes)) > 0)
            ;
        assert_int_in_range(sent_in_a_turn(node), 1, TURN_BYTES / ACQUIRE_BYTES);
    }
    attached = -1;
    cut(node);
    assert_lost_by_slices(node);
    socket_end(peer);
    finish_at_socket(client);
}

/* --- Forked inside a callback ------------------------------------------------------------------------------------- */

static pid_t child = -1;

static void fork_inside(evlock_client *client, enum evlock_connection connection, int status, void *arg) {
    (void)client;
    (void)connection;
    (void)status;
    (void)arg;
    child = fork();
    timer_sets = 0;
}

/* Both come back from the callback into the library; the timer is registered with the parent's loop. */
CASE(a_child_does_not_set_its_parents_timer) {
    evlock_client_options options = {.size = sizeof(evlock_client_options)};
    int status = -1;

    options.on_connection = fork_inside;
    evlock_client *client = client_with(&options);
    ring();
    if (child == 0)
        _exit(timer_sets);
    assert_true(child > 0);
    assert_int_equal(timer_sets, 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    client_end(client);
}

static long live;

static void fork_and_free(evlock_client *client, enum evlock_connection connection, int status, void *arg) {
    fork_inside(client, connection, status, arg);
    if (child != 0)
        return;
    evlock_client_free(client);
    live = counted_live();
}

/* The library is still at work on its copy of the client. */
CASE(a_child_that_frees_its_copy_in_a_callback_returns_from_that) {
    evlock_client_options options = {.size = sizeof(evlock_client_options)};
    int status = -1;

    options.on_connection = fork_and_free;
    counted_begin(NULL);
    evlock_client *client = client_with(&options);
    ring();
    if (child == 0)
        _exit(live > 0 && counted_live() == 0 ? 0 : 1);
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    client_end(client);
    counted_end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handles_of_a_client_renew_in_one_phase),
        cmocka_unit_test(clients_renew_in_phases_of_their_own),
        cmocka_unit_test(a_lease_without_renewal_has_none),
        cmocka_unit_test(an_acquire_without_random_bytes_is_refused),
        cmocka_unit_test(an_acquire_that_is_refused_leaves_the_timer_as_it_must_be),
        cmocka_unit_test(a_later_attempt_without_random_bytes_ends_the_acquire),
        cmocka_unit_test(many_calls_leave_little_memory),
        cmocka_unit_test(many_calls_end_with_their_client),
        cmocka_unit_test(a_pause_that_meets_the_end_of_the_wait_is_not_waited_out),
        cmocka_unit_test(the_end_of_a_client_wipes_its_random_bytes),
        cmocka_unit_test(a_child_that_frees_its_copy_wipes_its_random_bytes),
        cmocka_unit_test(a_wait_ends_when_all_that_had_come_by_its_end_was_read),
        cmocka_unit_test(a_loop_that_stood_still_is_given_time),
        cmocka_unit_test(a_loop_that_goes_on_late_is_given_no_more_time),
        cmocka_unit_test(what_begins_after_the_loop_stood_still_ends_by_its_time),
        cmocka_unit_test(a_loop_that_is_always_late_ends_a_wait),
        cmocka_unit_test(the_many_that_are_due_are_seen_to_by_slices_before_anything_is_told),
        cmocka_unit_test(that_a_node_is_away_is_told_by_slices),
        cmocka_unit_test(the_many_that_are_due_are_seen_to_before_the_connection_is_reported),
        cmocka_unit_test(all_are_told_that_a_node_is_back),
        cmocka_unit_test(a_return_that_is_cut_short_settles_nothing),
        cmocka_unit_test(a_login_that_is_kept_is_done_with_the_connection_before),
        cmocka_unit_test(a_node_that_is_back_has_no_words_of_trouble),
        cmocka_unit_test(a_break_whose_first_step_was_lost_is_not_the_one_that_ended_a_lease),
        cmocka_unit_test(that_a_node_is_away_is_told_behind_what_waits_on),
        cmocka_unit_test(no_loss_is_told_after_a_release_was_asked_for),
        cmocka_unit_test(no_loss_is_told_after_a_close),
        cmocka_unit_test(no_fence_is_told_twice),
        cmocka_unit_test(a_grant_that_is_lost_untold_is_undone),
        cmocka_unit_test(an_adoption_that_is_lost_untold_leaves_the_token),
        cmocka_unit_test(what_is_lost_was_held_until_then),
        cmocka_unit_test(a_release_that_finds_nothing_is_no_disagreement),
        cmocka_unit_test(an_attempt_that_waits_for_its_token_again_waits_as_long_again),
        cmocka_unit_test(an_acquire_is_told_at_once_that_no_replica_can_be_asked),
        cmocka_unit_test(what_was_not_sent_is_not_said_to_be_unanswered),
        cmocka_unit_test(each_address_has_its_share_of_the_time),
        cmocka_unit_test(what_makes_no_sense_at_one_address_is_asked_at_the_next),
        cmocka_unit_test(addresses_that_are_found_while_the_loop_is_late_are_tried),
        cmocka_unit_test(a_name_that_takes_too_long_is_not_asked_for_twice),
        cmocka_unit_test(addresses_that_come_during_the_pause_end_it),
        cmocka_unit_test(a_name_that_is_not_known_during_the_pause_is_asked_for_again),
        cmocka_unit_test(a_late_name_is_forgotten_by_who_moves_rests_or_ends),
        cmocka_unit_test(no_other_address_is_tried_where_a_server_refused),
        cmocka_unit_test(a_node_that_does_not_say_which_it_is_or_since_when_does_not_count_yet),
        cmocka_unit_test(a_node_that_takes_the_token_by_a_renewal_has_renewed),
        cmocka_unit_test(a_server_that_has_voted_is_no_other_node_before_the_longest_lease_has_ended),
        cmocka_unit_test(a_grant_that_is_heard_twice_counts_once),
        cmocka_unit_test(who_is_logged_out_comes_back_at_once_if_it_is_asked_for_credentials),
        cmocka_unit_test(of_two_logins_of_one_server_at_a_time_the_later_is_refused),
        cmocka_unit_test(what_is_longer_than_its_room_is_not_known),
        cmocka_unit_test(a_login_begins_without_what_the_last_one_found),
        cmocka_unit_test(another_servers_clock_has_not_stepped),
        cmocka_unit_test(a_shorter_lease_that_was_sent_late_is_lost_by_its_own_time),
        cmocka_unit_test(a_lease_that_is_handed_counts_from_what_the_newest_look_found),
        cmocka_unit_test(no_lease_that_is_handed_counts_from_later_than_now),
        cmocka_unit_test(a_grant_of_unknown_time_is_looked_at),
        cmocka_unit_test(no_look_is_as_old_as_ten_ttls),
        cmocka_unit_test(no_look_follows_at_once_however_short_the_retry_delay_is),
        cmocka_unit_test(no_look_is_far_away_however_many_wait_ahead),
        cmocka_unit_test(who_listens_again_looks_at_a_moment_of_its_own),
        cmocka_unit_test(that_moment_stays_if_it_listens_again_meanwhile),
        cmocka_unit_test(an_answer_on_its_way_does_not_put_off_that_moment),
        cmocka_unit_test(a_look_that_is_due_is_not_put_off_by_listening_again),
        cmocka_unit_test(no_grant_is_believed_that_no_server_would_tell),
        cmocka_unit_test(who_was_ahead_of_all_looks_at_once),
        cmocka_unit_test(a_lease_that_is_handed_to_an_heir_counts_from_the_look_before),
        cmocka_unit_test(a_risk_from_before_the_grant_is_told_in_time),
        cmocka_unit_test(who_inherits_an_attempt_has_waited),
        cmocka_unit_test(a_lease_that_is_handed_past_the_end_of_a_wait_goes_to_the_heir),
        cmocka_unit_test(a_grant_by_a_new_connection_counts_from_the_look_or_is_looked_at),
        cmocka_unit_test(a_listener_that_is_connected_is_in_the_log),
        cmocka_unit_test(a_listener_follows_a_node_that_does_not_say_who_it_is),
        cmocka_unit_test(a_listener_goes_where_its_node_goes),
        cmocka_unit_test(no_token_is_used_again_before_all_know_what_was_lost),
        cmocka_unit_test(who_is_wanted_again_before_it_rests_comes_back),
        cmocka_unit_test(who_is_moved_before_its_end_is_told_pauses_no_more),
        cmocka_unit_test(a_server_that_loses_each_script_is_left_in_peace),
        cmocka_unit_test(a_server_that_has_no_clock_though_it_was_brought_is_left_in_peace),
        cmocka_unit_test(scripts_that_were_missing_on_a_lost_connection_do_not_count_on_the_next),
        cmocka_unit_test(a_wait_is_not_taken_along_to_another_server),
        cmocka_unit_test(a_wait_is_forgotten_by_who_rests),
        cmocka_unit_test(what_a_socket_takes_in_parts_arrives_whole),
        cmocka_unit_test(what_a_socket_does_not_take_waits_unsent),
        cmocka_unit_test(a_child_does_not_set_its_parents_timer),
        cmocka_unit_test(a_child_that_frees_its_copy_in_a_callback_returns_from_that),
    };
#ifdef EVL_CHECKS
    evl_checks_all = true;
#endif
    sockets_listen(0, true);
    virtual_loop_init(&loop, count_set, NULL);
    loop.now = 1000000000;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
