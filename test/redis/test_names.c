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
#include <unistd.h>

static sem_t let_go;
static atomic_int asked, answered;

/* In place of the C library's. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    asked++;
    sem_wait(&let_go);
    int status = real(name, service, hints, found);
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
    for (int i = 0; i < 1000; i++) /* the login may be late on a busy machine, and the next name is not to be */
        sem_post(&let_go);
    await_connected(f, client);
    await(f, answered == asked);
}

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
        TEST_BARE(a_name_that_hangs_holds_up_no_other_client),
    };
    return run_suite("names", tests);
}
