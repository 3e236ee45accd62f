/*
 * Threads: what is refused to a thread that is not the client's, how a client goes over to another thread, and clients
 * in several threads at once. Each test is named after the behaviour. Threads return what went wrong, by a number.
 */
#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct errand {
    int (*body)(void *arg);
    void *arg;
    int returned;
};

static void *run_errand(void *arg) {
    struct errand *errand = arg;
    errand->returned = errand->body(errand->arg);
    return NULL;
}

static pthread_t begin_errand(struct errand *errand) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_errand, errand), 0);
    return thread;
}

/* Runs `body` in a thread of its own, which returns 0 when all is well there. */
static int in_thread(int (*body)(void *arg), void *arg) {
    struct errand errand = {body, arg, -1};
    pthread_join(begin_errand(&errand), NULL);
    return errand.returned;
}

static bool logged(const struct fixture *f, const char *words) {
    return f->log && strstr(f->log, words);
}

/* --- What is refused ---------------------------------------------------------------------------------------------- */

struct strange {
    struct fixture *f;
    evlock *held, *waiting;
    struct record record;
};

#define STRANGE(call)                                                                                                  \
    do {                                                                                                               \
        if ((call) != EVLOCK_ETHREAD || evlock_last_error()[0] == '\0')                                                \
            return __LINE__;                                                                                           \
    } while (0)

static int call_all_of(evlock *lock, struct record *record) {
    char token[128];
    size_t len;
    STRANGE(evlock_acquire(lock, NULL, record_end, record));
    STRANGE(evlock_cancel(lock));
    STRANGE(evlock_release(lock, record_end, record));
    STRANGE(evlock_extend(lock, 1000, EVLOCK_EXTEND_ADD, record_end, record));
    STRANGE(evlock_export(lock, token, sizeof(token), &len));
    STRANGE(evlock_adopt(lock, "t", 1, record_end, record));
    STRANGE(evlock_query(lock, EVLOCK_QUERY_LOCKED, record_answer, record));
    STRANGE(evlock_break(lock, record_end, record));
    if (evlock_is_held(lock) || evlock_remaining_ms(lock) || evlock_keepers(lock) || evlock_fence(lock) ||
        evlock_token(lock, NULL) || evlock_waited_ms(lock))
        return __LINE__;
    if (!evlock_name(lock, &len) || len != 1)
        return __LINE__;
    evlock_free(lock);
    return 0;
}

static int call_all(void *arg) {
    struct strange *strange = arg;
    evlock_client *client = strange->f->client;
    evlock *made = NULL;
    evlock_stats stats;
    evlock_node_info info;
    int failed = call_all_of(strange->held, &strange->record);
    if (!failed)
        failed = call_all_of(strange->waiting, &strange->record);
    STRANGE(evlock_new(&made, client, "c", 1, NULL));
    STRANGE(evlock_client_stats(client, &stats, sizeof(stats)));
    STRANGE(evlock_client_node(client, 0, &info, sizeof(info)));
    STRANGE(evlock_client_close(client, record_closed, &strange->record));
    if (evlock_client_connection(client) != EVLOCK_AWAY || made)
        return __LINE__;
    evlock_client_free(client);
    return failed;
}

static void begin_strange(struct strange *strange, struct fixture *f, struct record *waiting) {
    evlock_options options = with_ttl(60000);
    *strange = (struct strange){.f = f, .held = lock_new(f, "a", &options), .waiting = lock_new(f, "a", &options)};
    assert_status(await_acquire(f, strange->held, NULL), EVLOCK_OK);
    assert_status(evlock_acquire(strange->waiting, NULL, record_end, waiting), EVLOCK_OK);
}

static void assert_untouched(struct strange *strange, struct record *waiting) {
    struct fixture *f = strange->f;
    assert_int_equal(strange->record.count, 0);
    assert_true(evlock_is_held(strange->held));
    assert_status(await_release(f, strange->held), EVLOCK_OK);
    await(f, waiting->count);
    assert_ended(waiting, EVLOCK_OK);
    assert_status(await_release(f, strange->waiting), EVLOCK_OK);
    assert_int_equal(f->connection_states[EVLOCK_AWAY], 0);
}

static void another_thread_is_refused_everything(void **state) {
    struct fixture *f = *state;
    struct record waiting = {0};
    struct strange strange;
    begin_strange(&strange, f, &waiting);
    assert_int_equal(in_thread(call_all, &strange), 0);
    assert_untouched(&strange, &waiting);
}

static void a_free_in_another_thread_is_logged(void **state) {
    struct fixture *f = *state;
    struct record waiting = {0};
    struct strange strange;
    begin_strange(&strange, f, &waiting);
    assert_false(logged(f, "freed nothing"));
    assert_int_equal(in_thread(call_all, &strange), 0);
    assert_false(logged(f, "freed nothing")); /* not in a thread where nobody expects it */
    await(f, logged(f, "another thread than the client's called a free, which freed nothing\n"));
    f->log_len = 0;
    f->log[0] = '\0';
    assert_untouched(&strange, &waiting);
    assert_false(logged(f, "freed nothing"));
}

static atomic_bool enough;

static int call_all_until_enough(void *arg) {
    int failed = 0;
    while (!failed && !atomic_load(&enough))
        failed = call_all(arg);
    return failed;
}

/* Whatever the client's thread is at. */
static void another_thread_is_refused_at_any_time(void **state) {
    struct fixture *f = *state;
    struct record waiting = {0};
    struct strange strange;
    begin_strange(&strange, f, &waiting);
    struct errand errand = {call_all_until_enough, &strange, -1};
    atomic_store(&enough, false);
    pthread_t thread = begin_errand(&errand);
    evlock *lock = lock_new(f, "b", NULL);
    for (int i = 0; i < 200; i++) {
        assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
        assert_status(await_release(f, lock), EVLOCK_OK);
    }
    atomic_store(&enough, true);
    pthread_join(thread, NULL);
    assert_int_equal(errand.returned, 0);
    assert_untouched(&strange, &waiting);
}

static int free_handle(void *arg) {
    evlock_free(arg);
    return 0;
}

static void a_handle_whose_client_is_gone_may_be_freed_in_any_thread(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    lock_forget(f, lock);
    client_free(f, f->client);
    loop_turn(f->loop);
    assert_int_equal(in_thread(free_handle, lock), 0); /* the sanitizers see it if it is left */
}

/* --- Going over --------------------------------------------------------------------------------------------------- */

/* The thread of the loop, which the program starts when it has set up all. */
static int use_the_loop(void *arg) {
    struct fixture *f = arg;
    struct record got = {0}, released = {0};
    evlock *lock = f->locks[0];
    int64_t end = evlock_clock_us() + (int64_t)WAIT_MS * 1000;
    while (evlock_client_connection(f->client) != EVLOCK_CONNECTED && evlock_clock_us() < end)
        loop_turn(f->loop);
    if (!ends(f, evlock_acquire(lock, NULL, record_end, &got), &got, EVLOCK_OK) || !evlock_is_held(lock))
        return __LINE__;
    return ends(f, evlock_release(lock, record_end, &released), &released, EVLOCK_OK) ? 0 : __LINE__;
}

static void a_client_goes_over_to_the_thread_of_its_loop(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    assert_int_equal(in_thread(use_the_loop, f), 0);
    assert_status(evlock_acquire(lock, NULL, NULL, NULL), EVLOCK_ETHREAD);
    assert_int_equal(evlock_client_connection(f->client), EVLOCK_AWAY);
    assert_status(evlock_client_move(f->client), EVLOCK_OK);
    assert_int_equal(evlock_client_connection(f->client), EVLOCK_CONNECTED);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_false(logged(f, "evlock_client_move"));
}

static int move_and_use_the_loop(void *arg) {
    struct fixture *f = arg;
    if (evlock_cancel(f->locks[0]) != EVLOCK_ETHREAD)
        return __LINE__;
    if (evlock_client_move(f->client) != EVLOCK_OK || evlock_cancel(f->locks[0]) != EVLOCK_ENOTHELD)
        return __LINE__;
    return use_the_loop(f);
}

/* Each time as if it had been made there. */
static void a_client_can_be_moved_again_and_again(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(in_thread(move_and_use_the_loop, f), 0);
        assert_status(evlock_cancel(lock), EVLOCK_ETHREAD);
        assert_status(evlock_client_move(f->client), EVLOCK_OK);
        assert_status(evlock_break(lock, NULL, NULL), EVLOCK_OK); /* for which the loop has to call */
        assert_int_equal(in_thread(use_the_loop, f), 0);
        assert_status(evlock_client_move(f->client), EVLOCK_OK);
        assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
        assert_status(await_release(f, lock), EVLOCK_OK);
    }
    assert_false(logged(f, "evlock_client_move"));
    assert_status(evlock_client_move(NULL), EVLOCK_EINVAL);
}

static int use_the_loop_and_ask(void *arg) {
    struct fixture *f = arg;
    int failed = use_the_loop(arg);
    if (!failed && evlock_break(f->locks[0], NULL, NULL) != EVLOCK_OK)
        failed = __LINE__;
    return failed;
}

static void a_loop_that_strays_is_logged_once(void **state) {
    struct fixture *f = *state;
    struct record got = {0};
    const char *words = "the loop runs in another thread than the client's: call evlock_client_move() there\n";
    lock_new(f, "a", NULL);
    assert_int_equal(in_thread(use_the_loop_and_ask, f), 0);
    await(f, logged(f, words));
    run_for(f, 50);
    assert_null(strstr(strstr(f->log, words) + 1, words));
    assert_status(evlock_acquire(f->locks[0], NULL, record_end, &got), EVLOCK_ETHREAD);
    assert_status(evlock_client_move(f->client), EVLOCK_OK);
    assert_status(await_acquire(f, f->locks[0], NULL), EVLOCK_OK);
}

/* --- Several loops ------------------------------------------------------------------------------------------------ */

struct worker {
    struct server *server;
    int number;
};

static int work_alone(void *arg) {
    const struct worker *worker = arg;
    struct server *server = worker->server;
    struct fixture f;
    evlock_client *client;
    evlock *lock;
    if (!fixture_init(&f, server) ||
        evlock_client_new(&client, loop_for_evlock(f.loop), server->url, NULL) != EVLOCK_OK ||
        evlock_new(&lock, client, &worker->number, sizeof(worker->number), NULL) != EVLOCK_OK)
        return __LINE__;
    for (int i = 0; i < 20; i++) {
        struct record got = {0}, released = {0};
        if (!ends(&f, evlock_acquire(lock, NULL, record_end, &got), &got, EVLOCK_OK) ||
            !ends(&f, evlock_release(lock, record_end, &released), &released, EVLOCK_OK))
            return __LINE__;
    }
    evlock_free(lock);
    evlock_client_free(client);
    return fixture_free(&f) ? __LINE__ : 0;
}

static void loops_in_several_threads_notice_nothing(void **state) {
    enum { LOOPS = 4 };
    struct fixture *f = *state;
    struct errand errands[LOOPS];
    pthread_t threads[LOOPS];
    struct worker workers[LOOPS];
    for (int i = 0; i < LOOPS; i++) {
        workers[i] = (struct worker){f->server, i};
        errands[i] = (struct errand){work_alone, &workers[i], -1};
        threads[i] = begin_errand(&errands[i]);
    }
    for (int i = 0; i < LOOPS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < LOOPS; i++)
        assert_int_equal(errands[i].returned, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(another_thread_is_refused_everything),
        TEST(a_free_in_another_thread_is_logged),
        TEST(another_thread_is_refused_at_any_time),
        TEST(a_handle_whose_client_is_gone_may_be_freed_in_any_thread),
        TEST(a_client_goes_over_to_the_thread_of_its_loop),
        TEST(a_client_can_be_moved_again_and_again),
        TEST(a_loop_that_strays_is_logged_once),
        TEST_BARE(loops_in_several_threads_notice_nothing),
    };
    return run_suite("threads", tests);
}
