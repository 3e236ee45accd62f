/*
 * The library among processes, threads and signals: forks, two loops in two threads, SIGPIPE, inherited descriptors.
 * Each test is named after the behaviour that it shows.
 */
#include "harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- Fork --------------------------------------------------------------------------------------------------------- */

/* What the parent has when it forks, for the child to lay its hands on. */
struct family {
    struct fixture *f;
    evlock *lock;
    evlock *waiter;
    evlock_handler *handler;
};

static void never_body(evlock_scope *scope, evlock *lock, void *arg) {
    (void)scope;
    (void)lock;
    (void)arg;
    abort();
}

/* In the child: the number of the first call that does not return EVLOCK_EFORKED, or 0. */
static int call_everything(void *arg) {
    struct family *family = arg;
    evlock_client *client = family->f->client;
    evlock *lock = family->lock;
    evlock *made = NULL;
    evlock_handler *handler = NULL;
    struct record record = {0};
    char token[128];
    size_t len;
    const int returned[] = {
        evlock_acquire(lock, NULL, record_end, &record),
        evlock_acquire(family->waiter, NULL, record_end, &record),
        evlock_cancel(family->waiter),
        evlock_release(lock, record_end, &record),
        evlock_extend(lock, 1000, EVLOCK_EXTEND_ADD, record_end, &record),
        evlock_reacquire(lock, record_end, &record),
        evlock_export(lock, token, sizeof(token), &len),
        evlock_adopt(family->waiter, "t", 1, record_end, &record),
        evlock_locked(lock, record_value, &record),
        evlock_owned(lock, record_value, &record),
        evlock_server_ttl(lock, record_value, &record),
        evlock_break(lock, record_end, &record),
        evlock_with(family->waiter, never_body, NULL, NULL),
        evlock_run(client, "b", 1, NULL, never_body, NULL, NULL),
        evlock_handler_new_named(&handler, client, "b", 1, NULL, never_body),
        evlock_handler_call(family->handler, NULL, NULL),
        evlock_new(&made, client, "b", 1, NULL),
        evlock_client_close(client, record_closed, &record),
    };
    for (size_t i = 0; i < sizeof(returned) / sizeof(returned[0]); i++)
        if (returned[i] != EVLOCK_EFORKED || evlock_last_error()[0] == '\0')
            return (int)i + 1;
    return record.count || made || handler ? 99 : 0;
}

/* In the child: gives everything back. The loop itself stays, as the header says. */
static int free_everything(void *arg) {
    struct family *family = arg;
    evlock_handler_free(family->handler);
    evlock_free(family->lock);
    evlock_client_free(family->f->client);
    int refused = evlock_acquire(family->waiter, NULL, NULL, NULL);
    bool held = evlock_is_held(family->waiter);
    evlock_free(family->waiter);
    return refused == EVLOCK_ECLOSED && !held ? 0 : 98;
}

static int call_and_free_everything(void *arg) {
    int failed = call_everything(arg);
    int freed = free_everything(arg);
    return failed ? failed : freed;
}

static void begin_family(struct family *family, struct fixture *f) {
    evlock_options options = with_ttl(60 * 1000);
    options.auto_renewal = 1;
    options.renewal_interval_ms = 50;
    *family = (struct family){.f = f, .lock = lock_new(f, "a", &options), .waiter = lock_new(f, "w", NULL)};
    assert_status(evlock_handler_new_named(&family->handler, f->client, "h", 1, NULL, never_body), EVLOCK_OK);
    assert_status(await_acquire(f, family->lock, NULL), EVLOCK_OK);
}

/* The parent's connection answers, its lease is renewed, it connects again. */
static void assert_parent_is_well(struct family *family) {
    struct fixture *f = family->f;
    for (int i = 0; i < 2; i++) {
        assert_true(evlock_is_held(family->lock));
        assert_status(await_query(f, family->lock, evlock_owned), EVLOCK_OK);
        assert_int_equal(f->ended.value, 1);
        assert_int_equal(f->connection_states[EVLOCK_CONNECTED], i + 1); /* not deaf until it timed out */
        server_do(f->server, "PEXPIRE a 30000");
        await(f, key_ttl(f->server, "a") > 40 * 1000);
        server_do(f->server, "CLIENT KILL TYPE normal");
        await(f, f->connection_states[EVLOCK_CONNECTED] > i + 1);
    }
    assert_status(await_release(f, family->lock), EVLOCK_OK);
    evlock_handler_free(family->handler);
}

static void a_child_is_refused_everything(void **state) {
    struct family family;
    begin_family(&family, *state);
    assert_int_equal(in_child(call_everything, &family), 0);
    assert_parent_is_well(&family);
}

static void a_child_may_free_everything(void **state) {
    struct family family;
    begin_family(&family, *state);
    assert_int_equal(in_child(free_everything, &family), 0);
    assert_parent_is_well(&family);
}

static void a_child_may_be_refused_and_free_everything(void **state) {
    struct fixture *f = *state;
    struct family family;
    struct record waiting = {0};
    begin_family(&family, f);
    server_do(f->server, "SET w stranger");
    assert_status(evlock_acquire(family.waiter, NULL, record_end, &waiting), EVLOCK_OK);
    run_for(f, 50);
    assert_int_equal(in_child(call_and_free_everything, &family), 0);
    server_do(f->server, "DEL w");
    await(f, waiting.count);
    assert_ended(&waiting, EVLOCK_OK);
    assert_parent_is_well(&family);
}

static int free_client_alone(void *arg) {
    evlock_client_free(((struct fixture *)arg)->client);
    return 0;
}

/* Forks while the connection is in this or that state, and sees the parent's come up all the same. */
static void parent_connects(struct fixture *f) {
    int away = f->connection_states[EVLOCK_AWAY];
    assert_int_equal(in_child(free_client_alone, f), 0);
    server_resume(f->server);
    if (!f->server->pid)
        server_restart(f->server);
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_int_equal(f->connection_states[EVLOCK_CONNECTED], 1);
    assert_int_equal(f->connection_states[EVLOCK_AWAY], away); /* not deaf until it timed out */
}

static void a_fork_before_the_loop_ran(void **state) {
    parent_connects(*state);
}

static void a_fork_while_resolving(void **state) {
    struct fixture *f = *state;
    char url[128];
    snprintf(url, sizeof(url), "redis://localhost:%d", f->server->port);
    client_new(f, url, NULL);
    parent_connects(f);
}

static void a_fork_while_logging_in(void **state) {
    struct fixture *f = *state;
    server_pause(f->server);
    client_new(f, NULL, NULL);
    run_for(f, 50);
    parent_connects(f);
}

static void a_fork_while_the_server_is_away(void **state) {
    struct fixture *f = *state;
    server_kill9(f->server);
    client_new(f, NULL, NULL);
    await(f, f->connection_states[EVLOCK_AWAY]);
    parent_connects(f);
}

static int live_in_child(void *arg) {
    struct family *family = arg;
    struct fixture f;
    struct record got = {0};
    struct record gone = {0};
    evlock_client *client;
    evlock *lock;
    free_everything(family);
    if (!fixture_init(&f, NULL) ||
        evlock_client_new(&client, loop_for_evlock(f.loop), family->f->server->url, NULL) != EVLOCK_OK ||
        evlock_new(&lock, client, "child", EVLOCK_CSTRING, NULL) != EVLOCK_OK)
        return 1;
    bool ok = ends(&f, evlock_acquire(lock, NULL, record_end, &got), &got, EVLOCK_OK) &&
              ends(&f, evlock_release(lock, record_end, &gone), &gone, EVLOCK_OK);
    evlock_free(lock);
    evlock_client_free(client);
    return fixture_free(&f) == 0 && ok ? 0 : 2;
}

static void a_child_may_have_a_client_of_its_own(void **state) {
    struct family family;
    begin_family(&family, *state);
    assert_int_equal(in_child(live_in_child, &family), 0);
    assert_parent_is_well(&family);
}

/* --- Threads ------------------------------------------------------------------------------------------------------ */

enum { ROUNDS = 100 };

static atomic_int inside;
static atomic_int collisions;

/* Takes the lock that all threads want, ROUNDS times; false on any surprise. */
static bool take_turns(struct fixture *f, const char *url) {
    evlock_options options = EVLOCK_OPTIONS_INIT;
    evlock_client *client;
    evlock *lock;
    bool ok = true;
    options.retry_delay_ms = 1;
    if (evlock_client_new(&client, loop_for_evlock(f->loop), url, NULL) != EVLOCK_OK ||
        evlock_new(&lock, client, "a", EVLOCK_CSTRING, &options) != EVLOCK_OK)
        return false;
    for (int i = 0; ok && i < ROUNDS; i++) {
        struct record got = {0};
        struct record gone = {0};
        ok = ends(f, evlock_acquire(lock, NULL, record_end, &got), &got, EVLOCK_OK);
        collisions += inside++ != 0;
        loop_turn(f->loop);
        inside--;
        ok = ok && ends(f, evlock_release(lock, record_end, &gone), &gone, EVLOCK_OK);
    }
    evlock_free(lock);
    evlock_client_free(client);
    return ok;
}

struct worker {
    pthread_t thread;
    const char *url;
    bool ok;
};

static void *work(void *arg) {
    struct worker *worker = arg;
    struct fixture f;
    worker->ok = fixture_init(&f, NULL) && take_turns(&f, worker->url) && fixture_free(&f) == 0;
    return NULL;
}

static void clients_in_two_threads_are_independent(void **state) {
    struct fixture *f = *state;
    struct worker workers[2] = {{.url = f->server->url}, {.url = f->server->tcp_url}};
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(workers[i].thread, NULL);
    assert_true(workers[0].ok);
    assert_true(workers[1].ok);
    assert_int_equal(collisions, 0);
    assert_int_equal(server_integer(f->server, "DBSIZE"), 0);
}

static void *fail_once(void *arg) {
    (void)arg;
    evlock_cancel(NULL);
    return NULL;
}

static void the_last_error_is_the_threads_own(void **state) {
    pthread_t thread;
    char before[256];
    (void)state;
    evlock_client_new(NULL, (evlock_loop){0}, NULL, NULL);
    snprintf(before, sizeof(before), "%s", evlock_last_error());
    assert_int_equal(pthread_create(&thread, NULL, fail_once, NULL), 0);
    pthread_join(thread, NULL);
    assert_string_not_equal(before, "");
    assert_string_equal(evlock_last_error(), before);
}

/* --- Signals and descriptors -------------------------------------------------------------------------------------- */

/* In a child, since the signal would end the process: writes to a server that is gone. */
static int write_into_the_void(void *arg) {
    const struct server *server = arg;
    struct fixture f;
    struct record got = {0};
    evlock_client *client;
    evlock *lock;
    struct sigaction now;
    sigset_t pending;
    signal(SIGPIPE, SIG_DFL);
    if (!fixture_init(&f, NULL) ||
        evlock_client_new(&client, loop_for_evlock(f.loop), server->url, NULL) != EVLOCK_OK ||
        evlock_new(&lock, client, "a", EVLOCK_CSTRING, NULL) != EVLOCK_OK ||
        !ends(&f, evlock_acquire(lock, NULL, record_end, &got), &got, EVLOCK_OK))
        return 1;
    kill(server->pid, SIGKILL);
    usleep(300 * 1000);
    evlock_client_free(client);
    evlock_free(lock);
    fixture_free(&f);
    sigpending(&pending);
    sigaction(SIGPIPE, NULL, &now);
    return sigismember(&pending, SIGPIPE) ? 2 : now.sa_handler != SIG_DFL ? 3 : 0;
}

static void a_server_that_goes_away_raises_no_sigpipe(void **state) {
    struct fixture *f = *state;
    int failed = in_child(write_into_the_void, f->server);
    server_kill9(f->server); /* the child did that, and cannot clean up after it */
    assert_int_equal(failed, 0);
}

static void sockets_are_closed_on_exec(void **state) {
    struct fixture *f = *state;
    int sockets = 0;
    client_new(f, f->server->tcp_url, NULL);
    await_connected(f, f->clients[0]);
    await_connected(f, f->clients[1]);
    for (int fd = 3; fd < 1024; fd++) {
        struct stat what;
        if (fd == f->server->side->fd || fstat(fd, &what) || !S_ISSOCK(what.st_mode))
            continue;
        sockets++;
        if (!(fcntl(fd, F_GETFD) & FD_CLOEXEC))
            fail_msg("the socket %d is not closed on exec", fd);
    }
    assert_true(sockets >= 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_child_is_refused_everything),
        TEST(a_child_may_free_everything),
        TEST(a_child_may_be_refused_and_free_everything),
        TEST(a_fork_before_the_loop_ran),
        TEST_BARE(a_fork_while_resolving),
        TEST_BARE(a_fork_while_logging_in),
        TEST_BARE(a_fork_while_the_server_is_away),
        TEST(a_child_may_have_a_client_of_its_own),
        TEST_BARE(clients_in_two_threads_are_independent),
        TEST_BARE(the_last_error_is_the_threads_own),
        TEST_BARE(a_server_that_goes_away_raises_no_sigpipe),
        TEST(sockets_are_closed_on_exec),
    };
    return run_suite("process", tests);
}
