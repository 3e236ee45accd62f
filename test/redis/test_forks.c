/*
 * The library in children: each kind of child, each call, each state of a handle, before and after the child has given
 * back what it inherited, and with a copy of the loop that runs. The parent must not notice any of it.
 */
#include "harness.h"

#include <dirent.h>
#include <dlfcn.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit/children.h"

/* --- A family ----------------------------------------------------------------------------------------------------- */

/* What the parent has when it forks, for the child to lay its hands on: a handle in each state. */
struct family {
    struct fixture *f;
    evlock *lock;     /* held, and renewed */
    evlock *waiter;   /* idle, or acquiring */
    evlock *queueing; /* waiting in line, or idle */
    evlock *released;
    evlock *running; /* a run's, whose body is at work; there is another, whose handle is nobody's */
    struct record waiting, queued, ran[2];
    pid_t (*make)(void); /* how the child is made */
};

static int never_body(evlock *lock, void *arg) {
    (void)lock;
    (void)arg;
    abort();
}

static int keep_body(evlock *lock, void *arg) {
    (void)lock;
    (void)arg;
    return EVLOCK_OK;
}

static pid_t parent;

static void never_in_a_child(int status, bool ran, void *arg) {
    if (getpid() != parent)
        abort();
    record_run(status, ran, arg);
}

/* Whether a handle looks as it must in a child: not held. */
static bool looks_free(const evlock *lock) {
    return !evlock_is_held(lock) && evlock_remaining_ms(lock) == 0 && evlock_fence(lock) == 0 &&
           !evlock_token(lock, NULL) && evlock_waited_ms(lock) == 0;
}

static void never_page(evlock_client *client, int status, const evlock_page *page, void *arg) {
    (void)client, (void)status, (void)page, (void)arg;
}

/* The number of the first call on a handle that does not return EVLOCK_EFORKED, or 0. */
static int call_all_of(evlock *lock) {
    struct record record = {0};
    char token[128];
    size_t len;
    const int returned[] = {
        evlock_acquire(lock, NULL, record_end, &record),
        evlock_cancel(lock),
        evlock_release(lock, record_end, &record),
        evlock_extend(lock, 1000, EVLOCK_EXTEND_ADD, record_end, &record),
        evlock_extend(lock, 0, EVLOCK_EXTEND_RESET, record_end, &record),
        evlock_export(lock, token, sizeof(token), &len),
        evlock_adopt(lock, "t", 1, record_end, &record),
        evlock_query(lock, EVLOCK_QUERY_LOCKED, record_answer, &record),
        evlock_query(lock, EVLOCK_QUERY_OWNED | EVLOCK_QUERY_PLACE, record_answer, &record),
        evlock_break(lock, record_end, &record),
        evlock_with(lock, never_body, NULL, NULL),
    };
    for (size_t i = 0; i < sizeof(returned) / sizeof(returned[0]); i++)
        if (returned[i] != EVLOCK_EFORKED || evlock_last_error()[0] == '\0')
            return (int)i + 1;
    return record.count ? 30 : 0;
}

/* The same of those on the client. */
static int call_all_of_client(struct family *family) {
    evlock_client *client = family->f->client;
    evlock *made = NULL;
    evlock_stats stats;
    evlock_node_info node;
    struct record record = {0};
    const int returned[] = {
        evlock_run(&made, client, "b", 1, NULL, never_body, NULL, NULL),
        evlock_new(&made, client, "b", 1, NULL),
        evlock_client_stats(client, &stats, sizeof(stats)),
        evlock_client_node(client, 0, &node, sizeof(node)),
        evlock_client_move(client),
        evlock_client_list(client, "b", 1, NULL, never_page, NULL),
        evlock_client_close(client, record_closed, &record),
    };
    for (size_t i = 0; i < sizeof(returned) / sizeof(returned[0]); i++)
        if (returned[i] != EVLOCK_EFORKED || evlock_last_error()[0] == '\0')
            return (int)i + 31;
    return record.count || made || evlock_client_connection(client) != EVLOCK_AWAY ? 40 : 0;
}

static int call_everything(void *arg) {
    struct family *family = arg;
    evlock *const locks[] = {family->lock, family->waiter, family->queueing, family->released, family->running};
    int failed = call_all_of_client(family);
    for (int i = 0; i < 5 && !failed; i++)
        failed = !looks_free(locks[i]) ? 90 + i : call_all_of(locks[i]);
    return failed;
}

/* How many descriptors are open that are sockets or timers. */
static int sockets_and_timers(void) {
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;
    char what[64];
    int count = 0;
    while (folder && (entry = readdir(folder))) {
        ssize_t len = readlinkat(dirfd(folder), entry->d_name, what, sizeof(what) - 1);
        what[len > 0 ? len : 0] = '\0';
        count += strncmp(what, "socket:", 7) == 0 || strcmp(what, "anon_inode:[timerfd]") == 0;
    }
    if (folder)
        closedir(folder);
    return count;
}

static int without_a_client; /* of these */

/* In the child: gives everything back. */
static int free_everything(void *arg) {
    struct family *family = arg;
    evlock_free(family->running);
    evlock_free(family->lock);
    evlock_client_free(family->f->client);
    int refused = evlock_acquire(family->waiter, NULL, NULL, NULL);
    bool held = !looks_free(family->waiter);
    evlock_free(family->waiter);
    evlock_free(family->queueing);
    evlock_free(family->released);
    if (sockets_and_timers() != without_a_client)
        return 97;
    return refused == EVLOCK_ECLOSED && !held ? 0 : 98;
}

static int call_and_free_everything(void *arg) {
    int failed = call_everything(arg);
    int freed = free_everything(arg);
    return failed ? failed : freed;
}

static void begin_family(struct family *family, struct fixture *f) {
    evlock_options options = with_ttl(60 * 1000), in_line = with_ttl(60 * 1000);
    evlock_acquire_options fenced = {.size = sizeof(evlock_acquire_options)};
    options.auto_renewal = true;
    options.renewal_interval_ms = 50;
    in_line.wait = EVLOCK_WAIT_QUEUE;
    fenced.fence = EVLOCK_ON;
    server_do(f->server, "PING"); /* the tests' own connection is there */
    without_a_client = sockets_and_timers();
    client_new(f, NULL, NULL);
    *family = (struct family){.f = f,
                              .make = child_by_fork,
                              .lock = lock_new(f, "a", &options),
                              .waiter = lock_new(f, "w", NULL),
                              .queueing = lock_new(f, "q", &in_line),
                              .released = lock_new(f, "r", NULL)};
    parent = getpid();
    assert_status(evlock_run(&family->running, f->client, "h", 1, NULL, keep_body, never_in_a_child, &family->ran[0]),
                  EVLOCK_OK);
    assert_status(evlock_run(NULL, f->client, "i", 1, NULL, keep_body, never_in_a_child, &family->ran[1]), EVLOCK_OK);
    await(f, evlock_is_held(family->running));
    assert_status(await_acquire(f, family->lock, &fenced), EVLOCK_OK);
    assert_status(await_acquire(f, family->released, NULL), EVLOCK_OK);
    assert_status(await_release(f, family->released), EVLOCK_OK);
}

/* Strangers have what the waiters want. */
static void let_wait(struct family *family) {
    struct fixture *f = family->f;
    server_do(f->server, "SET w stranger");
    server_do(f->server, "SET q stranger");
    assert_status(evlock_acquire(family->waiter, NULL, record_end, &family->waiting), EVLOCK_OK);
    assert_status(evlock_acquire(family->queueing, NULL, record_end, &family->queued), EVLOCK_OK);
    await(f, server_integer(f->server, "ZCARD {q}:queue") == 1);
}

/* The parent's connection answers, its lease is renewed, it connects again. */
static void assert_parent_is_well(struct family *family) {
    struct fixture *f = family->f;
    for (int i = 0; i < 2; i++) {
        assert_true(evlock_is_held(family->lock));
        assert_true(ask_owned(f, family->lock));
        assert_int_equal(f->connection_states[EVLOCK_CONNECTED], i + 1); /* not deaf until it timed out */
        server_do(f->server, "PEXPIRE a 30000");
        await(f, key_ttl(f->server, "a") > 40 * 1000);
        server_do(f->server, "CLIENT KILL TYPE normal");
        await(f, f->connection_states[EVLOCK_CONNECTED] > i + 1);
    }
    assert_status(await_release(f, family->lock), EVLOCK_OK);
    assert_int_equal(family->ran[0].count + family->ran[1].count, 0);
    assert_status(evlock_release(family->running, NULL, NULL), EVLOCK_OK);
    await(f, family->ran[0].count);
    assert_ended(&family->ran[0], EVLOCK_OK);
}

/* Those who waited are granted what they waited for. */
static void let_have(struct family *family) {
    struct fixture *f = family->f;
    assert_int_equal(family->waiting.count + family->queued.count, 0);
    assert_int_equal(server_integer(f->server, "ZCARD {q}:queue"), 1);
    server_do(f->server, "DEL w q");
    await(f, family->waiting.count && family->queued.count);
    assert_ended(&family->waiting, EVLOCK_OK);
    assert_ended(&family->queued, EVLOCK_OK);
}

/* What a child of each kind does, if it returns 0, the parent must not notice, whatever its handles are at. */
static void each_kind_of_child(struct fixture *f, int (*body)(void *arg)) {
    for (int kind = 0; kind < 2 * CHILD_KINDS; kind++) {
        struct family family;
        char token[36];
        size_t len;
        memset(f->connection_states, 0, sizeof(f->connection_states));
        begin_family(&family, f);
        family.make = child_kinds[kind / 2];
        if (kind % 2)
            let_wait(&family);
        uint64_t fence = evlock_fence(family.lock);
        assert_true(fence > 0);
        memcpy(token, evlock_token(family.lock, &len), sizeof(token));
        assert_int_equal(in_child_by(family.make, body, &family), 0);
        assert_true(evlock_remaining_ms(family.lock) > 0 && evlock_fence(family.lock) == fence);
        assert_true(key_is(f->server, "a", evlock_token(family.lock, NULL), len));
        assert_memory_equal(evlock_token(family.lock, NULL), token, sizeof(token));
        if (kind % 2)
            let_have(&family);
        assert_parent_is_well(&family);
        client_free(f, f->client);
        f->client = NULL;
        loop_turn(f->loop);
        server_do(f->server, "FLUSHALL");
    }
}

static void a_child_is_refused_everything(void **state) {
    each_kind_of_child(*state, call_everything);
}

static void a_child_may_free_everything(void **state) {
    each_kind_of_child(*state, free_everything);
}

static void a_child_may_be_refused_and_free_everything(void **state) {
    each_kind_of_child(*state, call_and_free_everything);
}

static int have_a_child(void *arg) {
    struct family *family = arg;
    int status = -1;
    pid_t child = family->make();
    if (child == 0)
        _exit(call_and_free_everything(arg));
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return 96;
    return WEXITSTATUS(status) ? WEXITSTATUS(status) : call_and_free_everything(arg);
}

static void so_may_a_grandchild(void **state) {
    each_kind_of_child(*state, have_a_child);
}

/* Nothing of evlock's may be freed there, since it belongs to another thread, which may have been in the middle of it.
 */
static void *fork_elsewhere(void *arg) {
    struct family *family = arg;
    int status = -1;
    pid_t child = family->make();
    if (child == 0)
        _exit(call_everything(family));
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? family : NULL;
}

static void a_child_of_another_thread_is_refused_everything(void **state) {
    struct fixture *f = *state;
    struct family family;
    pthread_t thread;
    void *well;
    begin_family(&family, f);
    for (int kind = 0; kind < CHILD_KINDS; kind++) {
        family.make = child_kinds[kind];
        assert_int_equal(pthread_create(&thread, NULL, fork_elsewhere, &family), 0);
        pthread_join(thread, &well);
        assert_ptr_equal(well, &family);
    }
    assert_parent_is_well(&family);
}

static int forked_inside; /* what the child returned */

static void fork_inside(struct record *record) {
    struct family *family = record->then_arg;
    pid_t child = family->make();
    if (child == 0)
        _exit(call_and_free_everything(family));
    waitpid(child, &forked_inside, 0);
}

static void a_child_may_be_made_inside_a_callback(void **state) {
    struct fixture *f = *state;
    struct family family;
    begin_family(&family, f);
    for (int kind = 0; kind < CHILD_KINDS; kind++) {
        struct record owned = {.then = fork_inside, .then_arg = &family};
        family.make = child_kinds[kind];
        forked_inside = -1;
        assert_status(evlock_query(family.lock, EVLOCK_QUERY_OWNED, record_answer, &owned), EVLOCK_OK);
        await(f, owned.count);
        assert_ended(&owned, EVLOCK_OK);
        assert_true(WIFEXITED(forked_inside));
        assert_int_equal(WEXITSTATUS(forked_inside), 0);
    }
    assert_parent_is_well(&family);
}

static bool is_child;
static int child_failed;
static struct record asked_before_the_fork;
static int (*before_it_returns)(void *arg);

/* What was asked for before is not written yet, neither here nor there. */
static void fork_and_return(struct record *record) {
    struct family *family = record->then_arg;
    pid_t child;
    assert_status(evlock_query(family->lock, EVLOCK_QUERY_LOCKED, record_answer, &asked_before_the_fork), EVLOCK_OK);
    child = family->make();
    is_child = child == 0;
    if (is_child)
        child_failed = before_it_returns(family);
    else
        waitpid(child, &forked_inside, 0);
}

/* The child comes back to the loop, and is not called for what else there was to tell. */
static void return_from_a_callback(struct fixture *f, struct family *family) {
    struct record owned = {.then = fork_and_return, .then_arg = family}, others = {0};
    asked_before_the_fork = (struct record){0};
    forked_inside = -1;
    assert_status(evlock_query(family->lock, EVLOCK_QUERY_OWNED, record_answer, &owned), EVLOCK_OK);
    assert_status(evlock_query(family->lock, EVLOCK_QUERY_TTL, record_answer, &others), EVLOCK_OK);
    await(f, owned.count);
    if (is_child)
        _exit(others.count ? 80 : child_failed);
    await(f, others.count && asked_before_the_fork.count);
    assert_ended(&owned, EVLOCK_OK);
    assert_ended(&others, EVLOCK_OK);
    assert_ended(&asked_before_the_fork, EVLOCK_OK);
    assert_true(WIFEXITED(forked_inside));
    assert_int_equal(WEXITSTATUS(forked_inside), 0);
}

static void a_child_may_return_from_a_callback(void **state) {
    int (*const bodies[])(void *) = {call_everything, free_everything, call_and_free_everything};
    struct fixture *f = *state;
    struct family family;
    begin_family(&family, f);
    for (int kind = 0; kind < CHILD_KINDS; kind++) {
        family.make = child_kinds[kind];
        for (int i = 0; i < 3; i++) {
            before_it_returns = bodies[i];
            return_from_a_callback(f, &family);
        }
    }
    assert_parent_is_well(&family);
}

/* Made inside the body of a run, which the child returns from, as it likes. */
static struct family *family_of_body;
static int value_of_body;

static int fork_in_body(evlock *lock, void *arg) {
    struct family *family = family_of_body;
    pid_t child = family->make();
    (void)arg;
    is_child = child == 0;
    if (!is_child) {
        waitpid(child, &forked_inside, 0);
        return evlock_release(lock, NULL, NULL);
    }
    child_failed = evlock_release(lock, NULL, NULL) != EVLOCK_EFORKED ? 81 : before_it_returns(family);
    return value_of_body;
}

static int do_nothing(void *arg) {
    (void)arg;
    return 0;
}

static void a_child_may_return_from_a_body(void **state) {
    int (*const bodies[])(void *) = {do_nothing, call_everything, free_everything, call_and_free_everything};
    struct fixture *f = *state;
    struct family family;
    begin_family(&family, f);
    for (int i = 0; i < CHILD_KINDS * 8; i++) {
        struct record ran = {0};
        family.make = child_kinds[i / 8];
        before_it_returns = bodies[i % 8 / 2];
        value_of_body = i % 2 ? 7 : EVLOCK_OK;
        forked_inside = -1;
        family_of_body = &family;
        assert_status(evlock_run(NULL, f->client, "b", 1, NULL, fork_in_body, never_in_a_child, &ran), EVLOCK_OK);
        await(f, ran.count || is_child);
        if (is_child)
            _exit(child_failed);
        assert_ended(&ran, EVLOCK_OK);
        assert_true(WIFEXITED(forked_inside));
        assert_int_equal(WEXITSTATUS(forked_inside), 0);
    }
    assert_parent_is_well(&family);
}

static int end_body(evlock *lock, void *arg) {
    (void)arg;
    return evlock_release(lock, NULL, NULL);
}

static void a_child_may_return_from_the_end_of_a_run(void **state) {
    int (*const bodies[])(void *) = {do_nothing, call_everything, free_everything};
    struct fixture *f = *state;
    struct family family;
    begin_family(&family, f);
    for (int i = 0; i < CHILD_KINDS * 3; i++) {
        struct record ran = {.then = fork_and_return, .then_arg = &family};
        family.make = child_kinds[i / 3];
        before_it_returns = bodies[i % 3];
        forked_inside = -1;
        asked_before_the_fork = (struct record){0};
        assert_status(evlock_run(NULL, f->client, "b", 1, NULL, end_body, record_run, &ran), EVLOCK_OK);
        await(f, ran.count);
        if (is_child)
            _exit(child_failed);
        assert_ended(&ran, EVLOCK_OK);
        assert_true(WIFEXITED(forked_inside));
        assert_int_equal(WEXITSTATUS(forked_inside), 0);
        await(f, asked_before_the_fork.count);
    }
    assert_parent_is_well(&family);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* These children have nothing of the parent's but its memory, until they run another program. */
static void another_program_is_no_child_of_ours(void **state) {
    struct family family;
    char *const args[] = {(char[]){"true"}, NULL};
    int status = -1;
    pid_t child;
    begin_family(&family, *state);
    child = vfork();
    if (child == 0) {
        execvp(args[0], args);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(evlock_is_held(family.lock));
    assert_int_equal(posix_spawnp(&child, args[0], NULL, NULL, args, NULL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_parent_is_well(&family);
}

#pragma GCC diagnostic pop

/* --- A copy of the loop ------------------------------------------------------------------------------------------- */

static int pipe_of_children[2];

/* Tells that it runs, and runs its loop until its parent has seen enough. */
static void run_copy(struct family *family) {
    (void)!write(pipe_of_children[1], "", 1);
    for (;;)
        loop_turn(family->f->loop);
}

/* It is called for the parent's timer and connection, and then no more, which a second byte tells. (On libuv the timer
 * is stopped, and stays.) */
static void run_as_it_is(struct family *family) {
    struct test_loop *loop = family->f->loop;
    const char *name = getenv("EVLOCK_TEST_LOOP");
    int enough = loop_registrations(loop) - (name && strcmp(name, "libuv") == 0 ? 1 : 2);
    loop_forked(loop);
    (void)!write(pipe_of_children[1], "", 1);
    while (loop_registrations(loop) > enough)
        loop_turn(loop);
    run_copy(family);
}

static void free_and_run(struct family *family) {
    if (free_everything(family) != 0)
        _exit(1);
    loop_forked(family->f->loop);
    run_copy(family);
}

static void run_and_free_meanwhile(struct family *family) {
    loop_forked(family->f->loop);
    for (int i = 0; i < 20; i++)
        loop_turn(family->f->loop);
    if (free_everything(family) != 0)
        _exit(1);
    run_copy(family);
}

static void renew_before_free_and_run(struct family *family) {
    loop_forked(family->f->loop);
    if (free_everything(family) != 0)
        _exit(1);
    run_copy(family);
}

static bool tells_again(void) {
    struct pollfd told = {.fd = pipe_of_children[0], .events = POLLIN};
    char byte;
    return poll(&told, 1, 0) == 1 && read(told.fd, &byte, 1) == 1;
}

/* The parent renews and talks, while a child runs its copy of the loop. */
static void beside_a_child_that_runs(struct fixture *f, void (*body)(struct family *family)) {
    struct family family;
    char byte;
    int status = -1;
    begin_family(&family, f);
    let_wait(&family);
    assert_int_equal(pipe(pipe_of_children), 0);
    pid_t child = fork();
    if (child == 0) {
        alarm(2 * WAIT_MS / 1000);
        body(&family);
    }
    close(pipe_of_children[1]);
    assert_int_equal(read(pipe_of_children[0], &byte, 1), 1); /* it ended otherwise */
    for (int i = 0; i < 20; i++) {
        server_do(f->server, "PEXPIRE a 30000");
        await(f, key_ttl(f->server, "a") > 40 * 1000);
        assert_status(await_query(f, family.lock, EVLOCK_QUERY_OWNED), EVLOCK_OK);
    }
    let_have(&family);
    if (body == run_as_it_is)
        await(f, tells_again());
    close(pipe_of_children[0]);
    assert_parent_is_well(&family);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL); /* and not by itself */
}

static void a_child_may_run_its_copy_of_the_loop(void **state) {
    beside_a_child_that_runs(*state, run_as_it_is);
}

static void a_child_may_free_everything_and_run_its_copy_of_the_loop(void **state) {
    beside_a_child_that_runs(*state, free_and_run);
}

static void a_child_may_renew_its_copy_of_the_loop_and_free_everything(void **state) {
    beside_a_child_that_runs(*state, renew_before_free_and_run);
}

static void a_child_may_free_everything_while_it_runs_its_copy_of_the_loop(void **state) {
    beside_a_child_that_runs(*state, run_and_free_meanwhile);
}

/* --- While it connects -------------------------------------------------------------------------------------------- */

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

/* evlock's threads resolve by this one, which takes its time, so that the fork finds them at it. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    int status = real(name, service, hints, found);
    usleep(100 * 1000);
    return status;
}

static void a_fork_while_resolving(void **state) {
    struct fixture *f = *state;
    char url[128];
    snprintf(url, sizeof(url), "%s://localhost:%d", server_scheme(), f->server->port);
    client_new(f, url, NULL);
    run_for(f, 20);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST_BARE(a_child_is_refused_everything),
        TEST_BARE(a_child_may_free_everything),
        TEST_BARE(a_child_may_be_refused_and_free_everything),
        TEST_BARE(so_may_a_grandchild),
        TEST_BARE(a_child_of_another_thread_is_refused_everything),
        TEST_BARE(a_child_may_be_made_inside_a_callback),
        TEST_BARE(a_child_may_return_from_a_callback),
        TEST_BARE(a_child_may_return_from_a_body),
        TEST_BARE(a_child_may_return_from_the_end_of_a_run),
        TEST_BARE(another_program_is_no_child_of_ours),
        TEST_BARE(a_child_may_run_its_copy_of_the_loop),
        TEST_BARE(a_child_may_free_everything_and_run_its_copy_of_the_loop),
        TEST_BARE(a_child_may_renew_its_copy_of_the_loop_and_free_everything),
        TEST_BARE(a_child_may_free_everything_while_it_runs_its_copy_of_the_loop),
        TEST(a_fork_before_the_loop_ran),
        TEST_BARE(a_fork_while_resolving),
        TEST_BARE(a_fork_while_logging_in),
        TEST_BARE(a_fork_while_the_server_is_away),
        TEST_BARE(a_child_may_have_a_client_of_its_own),
    };
    return run_suite("forks", tests);
}
