/*
 * The library among threads and signals: two loops in two threads, SIGPIPE, descriptors across exec. (For forks, see
 * test_forks.c.)
 * Each test is named after the behaviour that it shows.
 */
#include "harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- Threads ------------------------------------------------------------------------------------------------------ */

enum { ROUNDS = 100 };

static atomic_int inside;
static atomic_int collisions;

/* Takes the lock that all threads want, ROUNDS times; false on any surprise. */
static bool take_turns(struct fixture *f, const char *url) {
    evlock_options options = {.size = sizeof(evlock_options)};
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

CASE(the_last_error_is_the_threads_own) {
    pthread_t thread;
    char before[256];
    evlock_client_new(NULL, NULL, NULL, NULL);
    snprintf(before, sizeof(before), "%s", evlock_last_error());
    assert_int_equal(pthread_create(&thread, NULL, fail_once, NULL), 0);
    pthread_join(thread, NULL);
    assert_string_not_equal(before, "");
    assert_string_equal(evlock_last_error(), before);
}

/* --- Signals and descriptors -------------------------------------------------------------------------------------- */

struct gone {
    const struct server *server;
    bool pending; /* a signal of the program's own, which it has blocked */
};

/* In a child, since the signal would end the process: writes to a server that is gone. */
static int write_into_the_void(void *arg) {
    const struct gone *gone = arg;
    const struct server *server = gone->server;
    struct fixture f;
    struct record got = {0};
    evlock_client *client;
    evlock *lock;
    struct sigaction now;
    sigset_t pending;
    signal(SIGPIPE, SIG_DFL);
    sigemptyset(&pending);
    sigaddset(&pending, SIGPIPE);
    if (gone->pending && (pthread_sigmask(SIG_BLOCK, &pending, NULL) || raise(SIGPIPE)))
        return 4;
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
    return sigismember(&pending, SIGPIPE) != gone->pending ? 2 : now.sa_handler != SIG_DFL ? 3 : 0;
}

static void loses_its_server(struct fixture *f, bool pending) {
    struct gone gone = {f->server, pending};
    int failed = in_child(write_into_the_void, &gone);
    server_kill9(f->server); /* the child did that, and cannot clean up after it */
    assert_int_equal(failed, 0);
}

static void a_server_that_goes_away_raises_no_sigpipe(void **state) {
    loses_its_server(*state, false);
}

static void a_sigpipe_of_the_programs_own_stays(void **state) {
    loses_its_server(*state, true);
}

/* Each socket that the library made is what it should be; how many there are. */
static int sockets_that(struct fixture *f, void (*judge)(int fd)) {
    int sockets = 0;
    for (int fd = 3; fd < 1024; fd++) {
        struct stat what;
        if (fd == f->server->side->fd || fstat(fd, &what) || !S_ISSOCK(what.st_mode))
            continue;
        sockets++;
        judge(fd);
    }
    return sockets;
}

static void two_clients(struct fixture *f) {
    client_new(f, f->server->tcp_url, NULL);
    await_connected(f, f->clients[0]);
    await_connected(f, f->clients[1]);
}

static void closes_on_exec(int fd) {
    if (!(fcntl(fd, F_GETFD) & FD_CLOEXEC))
        fail_msg("the socket %d is not closed on exec", fd);
}

static void sockets_are_closed_on_exec(void **state) {
    two_clients(*state);
    assert_true(sockets_that(*state, closes_on_exec) >= 2);
}

static int kept_alive;

static void counts_if_kept_alive(int fd) {
    int domain = 0, keeps = 0;
    socklen_t len = sizeof(int);
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len), 0);
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &keeps, &len), 0);
    kept_alive += domain == AF_INET && keeps;
}

/* Or else a server whose machine went would never be found away while nothing is asked. */
static void a_tcp_connection_is_kept_alive(void **state) {
    two_clients(*state);
    (void)sockets_that(*state, counts_if_kept_alive);
    assert_int_equal(kept_alive, suite_server.tls ? 2 : 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST_BARE(clients_in_two_threads_are_independent),
        TEST_BARE(the_last_error_is_the_threads_own),
        TEST_BARE(a_server_that_goes_away_raises_no_sigpipe),
        TEST_BARE(a_sigpipe_of_the_programs_own_stays),
        TEST(sockets_are_closed_on_exec),
        TEST(a_tcp_connection_is_kept_alive),
    };
    return run_suite("process", tests);
}
