/*
 * Names that take long: clients whose server's name the system is still asked for. Each test is named after the
 * behaviour. The system is a getaddrinfo() that waits until the test lets it go.
 */
#include "harness.h"

#include <dlfcn.h>
#include <netdb.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static sem_t let_go;
static atomic_int asked, answered;
static const char *_Atomic meaning; /* the address that the name has; NULL: the system knows */

/* In place of the C library's, which tells hiredis what an address means. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (strcmp(name, "localhost") != 0)
        return real(name, service, hints, found);
    asked++;
    sem_wait(&let_go);
    int status = real(meaning ? meaning : name, service, hints, found);
    answered++;
    return status;
}

/* A client that asks for its server's name, and gives that so long. */
static evlock_client *ask(struct fixture *f, int64_t connect_timeout_ms) {
    evlock_client_options options = client_options(f);
    char url[64];
    sem_init(&let_go, 0, 0);
    asked = answered = 0;
    options.connect_timeout_ms = connect_timeout_ms;
    options.backoff_max_ms = options.backoff_min_ms = 1;
    snprintf(url, sizeof(url), "%s://localhost:%d", server_scheme(), f->server->port);
    evlock_client *client = client_new(f, url, &options);
    await(f, asked > 0);
    return client;
}

/* The thread ends by itself. What it leaves, leak checkers see. */
static void let_all_go(struct fixture *f) {
    sem_post(&let_go);
    await(f, answered == asked);
}

static void let_all_that_come_go(void) {
    for (int i = 0; i < 1000; i++)
        sem_post(&let_go);
}

static void a_client_is_freed_at_once(void **state) {
    struct fixture *f = *state;
    client_free(f, ask(f, 10000));
    assert_int_equal(answered, 0);
    let_all_go(f);
}

static void a_close_does_not_wait_for_a_name(void **state) {
    struct fixture *f = *state;
    assert_status(await_close(f, ask(f, 10000)), EVLOCK_OK);
    assert_int_equal(answered, 0);
    let_all_go(f);
}

/* However often those who wait are told that the server is away. */
static void a_name_is_asked_for_once_and_counts_when_it_comes(void **state) {
    struct fixture *f = *state;
    evlock_client *client = ask(f, 500);
    await(f, f->connection_states[EVLOCK_AWAY] >= 2);
    assert_int_equal(asked, 1);
    assert_says(f->away.error, "localhost: no address within 500 ms");
    let_all_that_come_go(); /* the login may be late on a busy machine, and the next name is not to be */
    await_connected(f, client);
    await(f, answered == asked);
}

/* --- A name that moves -------------------------------------------------------------------------------------------- */

static struct server other;

static int stop_other(void **state) {
    meaning = NULL;
    server_stop(&other);
    return fixture_teardown(state);
}

/* Two servers have one port, at an address each. */
static void start_other(struct fixture *f) {
    static char port[16];
    static const char *extra[] = {"--bind", "127.0.0.2", NULL, port, NULL};
    extra[2] = f->server->tls ? "--tls-port" : "--port";
    snprintf(port, sizeof(port), "%d", f->server->port);
    server_start(&other, true, extra);
}

/* Also where the server of before is still there. */
static void a_name_that_moves_is_followed_by_the_next_connection(void **state) {
    struct fixture *f = *state;
    evlock_client *client = ask(f, 10000);
    evlock *lock = lock_new_on(f, client, "a", NULL);
    start_other(f);
    let_all_that_come_go();
    await_connected(f, client);
    meaning = "127.0.0.2";
    server_do(f->server, "CLIENT KILL TYPE normal");
    await(f, f->connection_states[EVLOCK_CONNECTED] >= 2);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_true(key_exists(&other, "a"));
    assert_false(key_exists(f->server, "a"));
    assert_status(await_release(f, lock), EVLOCK_OK);
    await(f, answered == asked);
}

/* --- Ends of processes -------------------------------------------------------------------------------------------- */

static int leave_while_asked(void *arg) {
    struct fixture f;
    evlock_client *client;
    (void)arg;
    if (!fixture_init(&f, NULL) ||
        evlock_client_new(&client, loop_for_evlock(f.loop), "redis://localhost", NULL) != EVLOCK_OK)
        return 1;
    while (!asked)
        loop_turn(f.loop);
    exit(0);
}

/* libuv's threads are libuv's, which waits for them when a process ends. */
static void a_process_may_end_while_a_name_is_asked_for(void **state) {
    const char *loop = getenv("EVLOCK_TEST_LOOP");
    (void)state;
    if (loop && strcmp(loop, "libuv") == 0)
        skip();
    asked = 0;
    sem_init(&let_go, 0, 0);
    assert_int_equal(in_child(leave_while_asked, NULL), 0);
}

/* --- Others ------------------------------------------------------------------------------------------------------- */

/* The other client's thread is not the first one's. */
static void a_name_that_hangs_holds_up_no_other_client(void **state) {
    struct fixture *f = *state;
    evlock_client *hangs = ask(f, 10000);
    evlock_client *client = client_new(f, NULL, NULL);
    await_connected(f, client);
    assert_int_not_equal(evlock_client_connection(hangs), EVLOCK_CONNECTED);
    client_free(f, hangs);
    let_all_go(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST_BARE(a_client_is_freed_at_once),
        TEST_BARE(a_close_does_not_wait_for_a_name),
        TEST_BARE(a_name_is_asked_for_once_and_counts_when_it_comes),
        cmocka_unit_test_setup_teardown(a_name_that_moves_is_followed_by_the_next_connection, fixture_setup_bare,
                                        stop_other),
        TEST_BARE(a_process_may_end_while_a_name_is_asked_for),
        TEST_BARE(a_name_that_hangs_holds_up_no_other_client),
    };
    return run_suite("names", tests);
}
