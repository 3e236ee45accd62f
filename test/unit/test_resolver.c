/*
 * The resolver by itself: its threads, by a getaddrinfo() that waits until the test lets it go, and a loop whose timers
 * ring when the test says so. Each test ends with no timer and no answer left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checks.h"
#include "resolver.h"

/* --- A loop ------------------------------------------------------------------------------------------------------- */

/* Its timers are set by any thread, and ring here. */
struct bell {
    struct bell *next;
    evlock_timer_cb cb;
    void *arg;
    bool set;
};

static pthread_mutex_t bells_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t bells_moved = PTHREAD_COND_INITIALIZER;
static struct bell *bells;
static int bells_count;
static bool no_bells;
static atomic_bool hold_in_set; /* who sets a timer stays there */
static sem_t in_set;

static int64_t now(void *data) {
    (void)data;
    return 0;
}

static void *bell_new(void *data, evlock_timer_cb cb, void *arg) {
    struct bell *bell = no_bells ? NULL : calloc(1, sizeof(*bell));
    assert_ptr_equal(data, &bells);
    if (!bell)
        return NULL;
    *bell = (struct bell){bells, cb, arg, false};
    bells = bell;
    bells_count++;
    return bell;
}

static void bell_set(void *timer, int64_t at) {
    struct bell *bell = timer;
    (void)at;
    pthread_mutex_lock(&bells_mutex);
    bell->set = true;
    pthread_cond_broadcast(&bells_moved);
    pthread_mutex_unlock(&bells_mutex);
    if (hold_in_set) {
        sem_post(&in_set);
        while (hold_in_set)
            usleep(1000);
    }
}

static void bell_free(void *timer) {
    struct bell **place = &bells;
    while (*place != timer)
        place = &(*place)->next;
    *place = (*place)->next;
    bells_count--;
    free(timer);
}

/* Waits until one is set, and rings it. */
static void ring_one(void) {
    struct bell *bell;
    pthread_mutex_lock(&bells_mutex);
    for (;;) {
        for (bell = bells; bell && !bell->set; bell = bell->next) {
        }
        if (bell)
            break;
        pthread_cond_wait(&bells_moved, &bells_mutex);
    }
    bell->set = false;
    pthread_mutex_unlock(&bells_mutex);
    bell->cb(bell->arg);
}

static evlock_loop_ops ops;
static struct turn turn;

/* --- A system ----------------------------------------------------------------------------------------------------- */

enum { ADDRESSES = 60 };

static sem_t asked, let_go;
static atomic_int asking; /* threads that were made, and have no answer yet */
static atomic_int lists;
static atomic_bool waits;   /* until it is let go */
static atomic_int count;    /* of the addresses that it finds, */
static atomic_int fails;    /* or why it finds none */
static atomic_bool signals; /* one of them may have come there */
static pthread_t main_thread;
static atomic_bool here;   /* the loop's thread was kept waiting */
static atomic_bool narrow; /* of some addresses it was not asked */

/* In place of the C library's. */
int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    char room[128 * 1024]; /* as a module of NSS may want */
    sigset_t blocked;
    memset(room, host[0], sizeof(room));
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    signals = signals || room[100] != host[0] || !sigismember(&blocked, SIGTERM) || !sigismember(&blocked, SIGCHLD);
    here = here || pthread_equal(pthread_self(), main_thread) || service || hints->ai_socktype != SOCK_STREAM;
    narrow = narrow || hints->ai_family != AF_UNSPEC || hints->ai_flags;
    bool wait = waits;
    sem_post(&asked);
    if (wait)
        sem_wait(&let_go);
    *found = NULL;
    for (int i = count; i > 0; i--) {
        struct addrinfo *one = calloc(1, sizeof(*one) + sizeof(struct sockaddr_in));
        struct sockaddr_in *address = (struct sockaddr_in *)(one + 1);
        address->sin_family = AF_INET;
        address->sin_addr.s_addr = htonl(0xC0000200U + (uint32_t)i);
        *one = (struct addrinfo){.ai_addr = (struct sockaddr *)address, .ai_addrlen = sizeof(*address)};
        one->ai_next = *found;
        *found = one;
    }
    lists += *found != NULL;
    asking--;
    errno = ENOTTY;
    return fails;
}

void freeaddrinfo(struct addrinfo *list) {
    lists--;
    while (list) {
        struct addrinfo *next = list->ai_next;
        free(list);
        list = next;
    }
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *arg);

static bool no_threads;
static bool joinable; /* a thread that nobody joins stays as memory */

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *arg) {
    int state = PTHREAD_CREATE_JOINABLE;
    assert_int_equal(pthread_attr_getdetachstate(attributes, &state), 0);
    joinable = joinable || state != PTHREAD_CREATE_DETACHED;
    asking += !no_threads;
    return no_threads ? EAGAIN : __real_pthread_create(thread, attributes, body, arg);
}

/* --- A test ------------------------------------------------------------------------------------------------------- */

static struct told {
    int times;
    size_t count;
    bool in_order;
    char error[100];
} told;

static void take_note(const char *const *addresses, size_t found, const char *error, void *arg) {
    struct told *note = arg;
    char expected[40];
    note->times++;
    note->count = found;
    note->in_order = pthread_equal(pthread_self(), main_thread);
    for (size_t i = 0; i < found; i++) {
        snprintf(expected, sizeof(expected), "192.0.2.%zu", i + 1);
        note->in_order = note->in_order && strcmp(addresses[i], expected) == 0;
    }
    snprintf(note->error, sizeof(note->error), "%s", error ? error : "");
}

static void *ask(void) {
    return evl_resolver_ask(&turn, "server.example", take_note, &told);
}

static int begin(void **state) {
    (void)state;
    ops = (evlock_loop_ops){
        .size = sizeof(ops),
        .now = now,
        .timer_new = bell_new,
        .timer_set = bell_set,
        .timer_free = bell_free,
        .forks = 1,
        .threads = 1,
    };
    turn = (struct turn){.loop = {&ops, &bells}, .process = evlock_process()};
    told = (struct told){0};
    main_thread = pthread_self();
    waits = signals = here = narrow = hold_in_set = false; /* atomics are of a type of their own to older clang */
    joinable = no_bells = no_threads = false;
    count = 1;
    fails = 0;
    sem_init(&asked, 0, 0);
    sem_init(&let_go, 0, 0);
    sem_init(&in_set, 0, 0);
    return 0;
}

/* A thread that was forgotten frees what it found, soon. */
static int end(void **state) {
    (void)state;
    while (asking > 0 || lists > 0)
        usleep(1000);
    assert_int_equal(lists, 0);
    assert_int_equal(bells_count, 0);
    assert_false(signals);
    assert_false(here);
    assert_false(narrow);
    assert_false(joinable);
    return 0;
}

/* --- Answers ------------------------------------------------------------------------------------------------------ */

CASE(an_answer_comes_from_the_loop) {
    sigset_t before, after;
    sigemptyset(&before);
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_non_null(ask());
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_int_equal(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
    sem_wait(&asked);
    assert_int_equal(told.times, 0);
    ring_one();
    assert_int_equal(told.times, 1);
    assert_int_equal(told.count, 1);
    assert_true(told.in_order);
    assert_string_equal(told.error, "");
}

CASE(the_first_sixteen_are_told_in_the_order_of_the_system) {
    count = ADDRESSES;
    assert_non_null(ask());
    ring_one();
    assert_int_equal(told.count, 16);
    assert_true(told.in_order);
}

static const char *words_of(int error) {
    count = 0;
    fails = error;
    assert_non_null(ask());
    ring_one();
    assert_int_equal(told.count, 0);
    return told.error;
}

CASE(an_error_is_in_the_words_of_the_system) {
    assert_string_equal(words_of(EAI_NONAME), gai_strerror(EAI_NONAME));
    assert_string_equal(words_of(EAI_AGAIN), gai_strerror(EAI_AGAIN));
    assert_string_equal(words_of(EAI_SYSTEM), strerror(ENOTTY));
    assert_string_equal(words_of(0), "the name has no address");
}

CASE(one_that_hangs_holds_up_no_other) {
    enum { HANGING = 20 };
    void *hanging[HANGING];
    struct told other = {0};
    waits = true;
    for (int i = 0; i < HANGING; i++) {
        hanging[i] = ask();
        assert_non_null(hanging[i]);
        sem_wait(&asked);
    }
    waits = false;
    assert_non_null(evl_resolver_ask(&turn, "another.example", take_note, &other));
    ring_one();
    assert_int_equal(other.times, 1);
    assert_int_equal(told.times, 0);
    for (int i = 0; i < HANGING; i++)
        sem_post(&let_go);
    for (int i = 0; i < HANGING; i++)
        ring_one();
    assert_int_equal(told.times, HANGING);
}

/* --- What is cancelled -------------------------------------------------------------------------------------------- */

CASE(what_is_cancelled_while_it_is_asked_is_forgotten_at_once) {
    waits = true;
    void *resolution = ask();
    sem_wait(&asked);
    evl_resolver_cancel(&turn, resolution);
    assert_int_equal(bells_count, 0);
    assert_int_equal(asking, 1);
    sem_post(&let_go);
}

CASE(what_is_cancelled_when_it_is_answered_is_not_told) {
    void *resolution = ask();
    pthread_mutex_lock(&bells_mutex);
    while (!bells->set)
        pthread_cond_wait(&bells_moved, &bells_mutex);
    pthread_mutex_unlock(&bells_mutex);
    evl_resolver_cancel(&turn, resolution);
    assert_int_equal(lists, 0);
    assert_int_equal(told.times, 0);
}

/* At whatever moment: ThreadSanitizer looks on. */
CASE(cancels_and_answers_may_cross) {
    for (int i = 0; i < 2000; i++) {
        void *resolution = ask();
        assert_non_null(resolution);
        if (i % 3)
            sem_wait(&asked);
        if (i % 5)
            evl_resolver_cancel(&turn, resolution);
        else
            ring_one();
    }
    assert_int_equal(told.times, 400);
}

/* --- What cannot be begun ----------------------------------------------------------------------------------------- */

CASE(without_a_thread_or_a_timer_nothing_begins) {
    no_threads = true;
    assert_null(ask());
    no_threads = false;
    no_bells = true;
    assert_null(ask());
    assert_int_equal(bells_count, 0);
}

static void *own_resolve(void *data, const char *host, evlock_resolve_cb cb, void *arg) {
    (void)host;
    (void)cb;
    (void)arg;
    return data;
}

static void own_cancel(void *resolution) {
    assert_ptr_equal(resolution, &bells);
    told.times++;
}

CASE(a_loop_that_resolves_is_asked_itself) {
    ops.resolve = own_resolve;
    ops.resolve_cancel = own_cancel;
    ops.threads = 0;
    assert_true(evl_resolver_exists(&turn));
    void *resolution = ask();
    assert_ptr_equal(resolution, &bells);
    evl_resolver_cancel(&turn, resolution);
    assert_int_equal(told.times, 1);
}

CASE(a_loop_that_no_other_thread_may_wake_resolves_nothing) {
    ops.threads = 0;
    assert_false(evl_resolver_exists(&turn));
    assert_null(ask());
    ops.threads = 1;
    ops.size = offsetof(evlock_loop_ops, threads);
    assert_false(evl_resolver_exists(&turn));
}

/* --- Forks -------------------------------------------------------------------------------------------------------- */

/* The exit status of a child that cancels what the parent asked, and then asks itself. */
static int of_a_child(void *resolution) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        alarm(20);
        evl_resolver_cancel(&turn, resolution);
        if (bells_count > 0 || told.times > 0)
            _exit(1);
        turn.process = evlock_process();
        waits = hold_in_set = false;
        if (!ask())
            _exit(2);
        ring_one();
        _exit(told.times == 1 ? 0 : 3);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

CASE(a_child_that_was_made_meanwhile_may_cancel) {
    waits = true;
    void *resolution = ask();
    sem_wait(&asked);
    assert_int_equal(of_a_child(resolution), 0);
    sem_post(&let_go);
    ring_one();
    assert_int_equal(told.times, 1);
}

/* The thread has the mutex, which no thread of the child will give back. */
CASE(a_child_that_was_made_while_it_is_answered_may_cancel) {
    hold_in_set = true;
    void *resolution = ask();
    sem_wait(&in_set);
    assert_int_equal(of_a_child(resolution), 0);
    hold_in_set = false;
    ring_one();
    assert_int_equal(told.times, 1);
}

int main(void) {
#define RESOLVER_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        RESOLVER_TEST(an_answer_comes_from_the_loop),
        RESOLVER_TEST(the_first_sixteen_are_told_in_the_order_of_the_system),
        RESOLVER_TEST(an_error_is_in_the_words_of_the_system),
        RESOLVER_TEST(one_that_hangs_holds_up_no_other),
        RESOLVER_TEST(what_is_cancelled_while_it_is_asked_is_forgotten_at_once),
        RESOLVER_TEST(what_is_cancelled_when_it_is_answered_is_not_told),
        RESOLVER_TEST(cancels_and_answers_may_cross),
        RESOLVER_TEST(without_a_thread_or_a_timer_nothing_begins),
        RESOLVER_TEST(a_loop_that_resolves_is_asked_itself),
        RESOLVER_TEST(a_loop_that_no_other_thread_may_wake_resolves_nothing),
        RESOLVER_TEST(a_child_that_was_made_meanwhile_may_cancel),
        RESOLVER_TEST(a_child_that_was_made_while_it_is_answered_may_cancel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
