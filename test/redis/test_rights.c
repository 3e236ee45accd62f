/*
 * What each right is for that docs/protocol.md lists: a user who has all of them but one goes a whole course, and what
 * comes out other than with all of them must be what is told there.
 */
#include "harness.h"

#include <stdio.h>

#include "waiters.h"

#define PLAIN                                                                                                          \
    "~lock:* ~{lock:* -@all +get +mget +set +del +pttl +pexpire +time +evalsha +script|load +client|id +client|info "  \
    "+client|kill +client|reply +info +wait"
#define QUEUED "&evlock:* +zadd +zpopmin +zrem +zrank +zcard +publish +pubsub|numsub +subscribe"

#define ALL PLAIN " " QUEUED
#define LINE "{lock:a}:queue"

enum { TTL = 60000, MANY = 8 };

/* What came out otherwise than it does with all rights; a step alone: it was refused for want of permission. */
static char found[400];

static void note(const char *step, int status, int expected) {
    if (status == expected)
        return;
    size_t len = strlen(found);
    snprintf(found + len, sizeof(found) - len, "%s%s%s%s", len ? "; " : "", step, status == EVLOCK_EPERM ? "" : ": ",
             status == EVLOCK_EPERM ? "" : evlock_strerror(status));
}

static void note_that(const char *what, bool so) {
    size_t len = strlen(found);
    if (so)
        snprintf(found + len, sizeof(found) - len, "%s%s", len ? "; " : "", what);
}

static void assert_found(const char *course, const char *right, const char *expected) {
    if (strcmp(found, expected) != 0)
        fail_msg("%s, rights \"%s\": \"%s\", not \"%s\"", course, right, found, expected);
}

/* Taken away from a user who is logged in, who then logs in anew. */
static void set_rights(struct fixture *f, const char *without) {
    char command[600];
    snprintf(command, sizeof(command), "ACL SETUSER worker reset on >work resetchannels " ALL " %s", without);
    server_do(f->server, command);
    server_do(f->server, "CLIENT KILL USER worker");
}

static evlock_client *worker(struct fixture *f) {
    evlock_client_options options = client_options(f);
    options.user = "worker";
    options.password = "work";
    options.backoff_min_ms = 10;
    options.backoff_max_ms = 100;
    return client_new(f, NULL, &options);
}

static evlock_options prefixed(evlock_options options) {
    options.prefix = "lock:";
    return options;
}

/* --- Without waiting in line -------------------------------------------------------------------------------------- */

static bool renewed_each(void *client) {
    return stats_of(client).renewals >= 2 * MANY;
}

/* Many are due together. */
static void go_on_renewing(struct fixture *f, evlock_client *client) {
    struct record records[MANY] = {0};
    evlock_options options = prefixed(with_ttl(TTL));
    char name[16];
    options.auto_renewal = true;
    options.renewal_interval_ms = 100;
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "renewed%d", i);
        evlock *lock = lock_new_on(f, client, name, &options);
        assert_status(evlock_acquire(lock, NULL, record_end, &records[i]), EVLOCK_OK);
    }
    for (int i = 0; i < MANY; i++)
        await(f, records[i].count);
    for (size_t i = 0; i < f->locks_len; i++)
        evlock_token(f->locks[i], NULL); /* others may know them now: they are renewed by script */
    run_until(f, renewed_each, client, records[0].status == EVLOCK_OK ? 3000 : 0);
    note_that("nothing is renewed", stats_of(client).renewals == 0);
    note_that("each is renewed alone", stats_of(client).renewals > 0 && server_calls(f->server, "mget") == 0);
}

static void ask(struct fixture *f, evlock *lock) {
    note("locked", await_query(f, lock, EVLOCK_QUERY_LOCKED), EVLOCK_OK);
    note("ttl", await_query(f, lock, EVLOCK_QUERY_TTL), EVLOCK_OK);
    note("locked and ttl", await_query(f, lock, EVLOCK_QUERY_LOCKED | EVLOCK_QUERY_TTL), EVLOCK_OK);
}

static int acquire_fenced(struct fixture *f, evlock *lock) {
    evlock_acquire_options options = {.size = sizeof(evlock_acquire_options)};
    options.fence = EVLOCK_ON;
    return await_acquire(f, lock, &options);
}

/* Whoever holds it. */
static void is_free(struct fixture *f) {
    server_do(f->server, "DEL lock:a");
}

static void hold_and_ask(struct fixture *f, const char *without) {
    evlock_options options = prefixed(with_ttl(TTL));
    set_rights(f, "");
    evlock_client *client = worker(f);
    evlock *lock = lock_new_on(f, client, "a", &options), *other = lock_new_on(f, client, "a", &options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    set_rights(f, without);
    server_do(f->server, "SCRIPT FLUSH");
    server_do(f->server, "CONFIG RESETSTAT");
    ask(f, lock);
    note("extend", await_extend(f, lock, 1000, EVLOCK_EXTEND_ADD), EVLOCK_OK);
    note("break", await_break(f, other), EVLOCK_OK);
    is_free(f);
    note("acquire", await_try(f, other), EVLOCK_OK);
    bool had = evlock_is_held(other);
    note("release", await_release(f, had ? other : lock), had ? EVLOCK_OK : EVLOCK_ENOTOWNED);
    is_free(f);
    note("fence", acquire_fenced(f, other), EVLOCK_OK);
    go_on_renewing(f, client);
    client_free(f, client);
}

/* --- In line ------------------------------------------------------------------------------------------------------ */

static bool none_waits(void *server) {
    return server_integer(server, "ZCARD " LINE) == 0;
}

/* Until it stands in line, or has ended, or asked again so often that it does not. */
static void tries(struct fixture *f, evlock *lock, struct record *record) {
    server_do(f->server, "CONFIG RESETSTAT");
    assert_status(evlock_acquire(lock, NULL, record_end, record), EVLOCK_OK);
    await(f, record->count || !none_waits(f->server) || server_calls(f->server, "set") > 100);
    await_query(f, lock, EVLOCK_QUERY_LOCKED); /* so that it has heard what it was answered */
}

static void stand_in_line(struct fixture *f, evlock *lock) {
    struct record record = {0};
    tries(f, lock, &record);
    note_that("polls", !record.count && none_waits(f->server));
    if (record.count)
        note("wait", record.status, EVLOCK_OK);
    note("waiters", await_query(f, lock, EVLOCK_QUERY_WAITERS), EVLOCK_OK);
    if (!none_waits(f->server))
        note("place", await_query(f, lock, EVLOCK_QUERY_PLACE), EVLOCK_OK);
    note("all", await_query(f, lock, EVERY_QUERY), EVLOCK_OK);
    if (!record.count)
        assert_status(evlock_cancel(lock), EVLOCK_OK);
    await(f, record.count);
    note_that("a place is left", !run_until(f, none_waits, f->server, 3000));
    server_do(f->server, "DEL " LINE);
}

/* The turn of the worker, and then of one who has all rights. */
static void take_turns(struct fixture *f, evlock *holder, evlock *lock) {
    struct record record = {0}, next = {0};
    tries(f, lock, &record);
    assert_status(await_release(f, holder), EVLOCK_OK);
    await(f, record.count);
    if (record.status != EVLOCK_OK)
        return;
    assert_status(evlock_acquire(holder, NULL, record_end, &next), EVLOCK_OK);
    await(f, !none_waits(f->server));
    note("release", await_release(f, lock), EVLOCK_OK);
    bool handed = key_exists(f->server, "lock:a");
    note_that("not handed on", !handed);
    assert_status(handed ? EVLOCK_OK : evlock_cancel(holder), EVLOCK_OK);
    await(f, next.count);
    assert_ended(&next, handed ? EVLOCK_OK : EVLOCK_ECANCELLED);
    if (handed)
        assert_status(await_release(f, holder), EVLOCK_OK);
}

static void wait_in_line(struct fixture *f, const char *without) {
    evlock_options options = prefixed(queueing(TTL));
    set_rights(f, "");
    evlock_client *client = worker(f);
    evlock_options seldom = prefixed(patient(TTL));
    evlock *holder = lock_new(f, "a", &seldom), *lock = lock_new_on(f, client, "a", &options);
    assert_status(await_acquire(f, holder, NULL), EVLOCK_OK);
    await_connected(f, client);
    set_rights(f, without);
    stand_in_line(f, lock);
    take_turns(f, holder, lock);
    server_do(f->server, "DEL " LINE);
    is_free(f);
    if (await_try(f, lock) == EVLOCK_OK)
        note("release", await_release(f, lock), EVLOCK_OK);
    client_free(f, client);
}

static const struct {
    const char *right;
    const char *plain; /* what comes out otherwise */
    const char *queued;
} rights[] = {
    {"", "", ""},
    {"-get", "locked; locked and ttl; extend; break; release; fence", "wait; all; release"},
    {"-mget", "each is renewed alone", ""},
    {"-set", "acquire; fence; nothing is renewed", "wait"},
    {"-del", "break; release", "release"},
    {"-pttl", "ttl; locked and ttl; extend", "wait; all"},
    {"-pexpire", "extend; nothing is renewed", "wait"},
    {"-time", "fence: the server lacks something that is needed", "polls; not handed on"},
    {"-evalsha", "locked; ttl; locked and ttl; extend; break; acquire; release; fence; nothing is renewed",
     "wait; waiters; all"}, /* without +eval, too */
    {"-script|load", "locked and ttl; extend; break; release; fence; nothing is renewed", ""},
    {"-client|id", "", ""},
    {"-client|info", "", ""},
    {"-client|kill", "", ""},
    {"-client|reply", "", ""},
    {"-info", "each is renewed alone", ""},
    {"-wait", "", ""},
    {"resetkeys ~lock:*", "fence", "wait; waiters; all; release"},
    {"resetkeys ~{lock:*", "locked; ttl; locked and ttl; extend; break; acquire; release; fence; nothing is renewed",
     "wait; all"},
    {"resetchannels", "", "polls; not handed on"},
    {"-zadd", "", "wait"},
    {"-zpopmin", "", "not handed on"},
    {"-zrem", "", "a place is left"},
    {"-zrank", "", "wait"},
    {"-zcard", "", "waiters; all"},
    {"-publish", "", "polls; not handed on"},
    {"-pubsub|numsub", "", "polls; not handed on"},
    {"-subscribe", "", "polls"},
};

/* What shows only when a connection is lost, or replicas are asked, has tests beside those of such things. */
static void each_right_is_for_what_is_told(void **state) {
    struct fixture *f = *state;
    if (server_info(f->server, "server", "redis_version:") < 7)
        skip(); /* a right to a part of a command cannot be taken away */
    for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++) {
        server_do(f->server, "FLUSHALL");
        found[0] = '\0';
        hold_and_ask(f, rights[i].right);
        assert_found("held", rights[i].right, rights[i].plain);
        while (f->locks_len)
            lock_free(f, f->locks[0]);
        server_do(f->server, "FLUSHALL");
        found[0] = '\0';
        wait_in_line(f, rights[i].right);
        assert_found("waiting", rights[i].right, rights[i].queued);
        while (f->locks_len)
            lock_free(f, f->locks[0]);
    }
    server_do(f->server, "ACL DELUSER worker");
}

/* The counter and the queue of such a key begin with a tag that is made for its slot. */
static void a_brace_in_a_key_needs_a_right_more(void **state) {
    static const char *const rights_more[] = {"", "~{???}lock:*"};
    static const int expected[] = {EVLOCK_EPERM, EVLOCK_OK};
    struct fixture *f = *state;
    evlock_options options = prefixed(queueing(TTL)), polling = prefixed(with_ttl(TTL));
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        struct record record = {0};
        set_rights(f, rights_more[i]);
        evlock_client *client = worker(f);
        evlock *holder = lock_new(f, "a}b", &options), *waiter = lock_new_on(f, client, "a}b", &options);
        assert_status(await_acquire(f, holder, NULL), EVLOCK_OK);
        assert_status(evlock_acquire(waiter, NULL, record_end, &record), EVLOCK_OK);
        await(f, record.count || ask_waiters(f, holder) == 1);
        assert_status(await_release(f, holder), EVLOCK_OK);
        await(f, record.count);
        assert_ended(&record, expected[i]);
        if (record.status == EVLOCK_OK)
            assert_status(await_release(f, waiter), EVLOCK_OK);
        assert_status(acquire_fenced(f, lock_new_on(f, client, "a}c", &polling)), expected[i]);
        client_free(f, client);
    }
    server_do(f->server, "ACL DELUSER worker");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(each_right_is_for_what_is_told),
        TEST(a_brace_in_a_key_needs_a_right_more),
    };
    return run_suite("rights", tests);
}
