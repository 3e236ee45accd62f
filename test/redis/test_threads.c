/*
 * Threads: what is refused to a thread that is not the client's, how a client goes over to another thread, and clients
 * in several threads at once. Each test is named after the behaviour. Threads return what went wrong, by a number.
 */
#include "harness.h"

#include <pthread.h>
#include <sched.h>
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

static void never_page(evlock_client *client, int status, const evlock_page *page, void *arg) {
    (void)client, (void)status, (void)page, (void)arg;
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
    STRANGE(evlock_client_list(client, "a", 1, NULL, never_page, NULL));
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
    assert_status(await_release(f, f->locks[0]), EVLOCK_OK);
    f->log[f->log_len = 0] = '\0';
    assert_int_equal(in_thread(use_the_loop_and_ask, f), 0);
    await(f, logged(f, words)); /* once again, since it was moved */
    assert_status(evlock_client_move(f->client), EVLOCK_OK);
}

/* --- Posts -------------------------------------------------------------------------------------------------------- */

enum { POSTERS = 8, POSTS = 1000 };

/* What a thread posts. Its posts have addresses by which they are known. */
struct poster {
    evlock_client *client;
    struct posting {
        struct poster *poster;
        int called;
    } posts[POSTS];
    int accepted, refused; /* by its thread */
    int next;              /* that is to be called; by the client's thread, as what follows */
    int called, wrong;
    int orphans; /* called when the client had ended */
    pthread_t thread;
};

static pthread_t test_thread;

static void posted(evlock_client *client, void *arg) {
    struct posting *posting = arg;
    struct poster *poster = posting->poster;
    poster->wrong += posting->called++ != 0 || posting - poster->posts != poster->next++;
    poster->wrong += !pthread_equal(pthread_self(), test_thread) || (client && client != poster->client);
    poster->wrong += evlock_last_error()[0] != '\0';
    poster->orphans += !client;
    poster->called++;
}

/* Until it is refused, or has posted all. */
static int post_all(struct poster *poster) {
    for (int i = 0; i < POSTS; i++) {
        int status = evlock_client_post(poster->client, posted, &poster->posts[i]);
        if (status != EVLOCK_OK)
            return status;
        poster->accepted++;
        if (i % 7 == 0)
            sched_yield();
    }
    return EVLOCK_OK;
}

static void *run_poster(void *arg) {
    struct poster *poster = arg;
    poster->refused = post_all(poster);
    return NULL;
}

static struct poster *begin_posters(evlock_client *client) {
    struct poster *posters = calloc(POSTERS, sizeof(*posters));
    assert_non_null(posters);
    test_thread = pthread_self();
    for (int i = 0; i < POSTERS; i++) {
        posters[i].client = client;
        for (int k = 0; k < POSTS; k++)
            posters[i].posts[k].poster = &posters[i];
        assert_int_equal(pthread_create(&posters[i].thread, NULL, run_poster, &posters[i]), 0);
    }
    return posters;
}

static int calls_of(const struct poster *posters) {
    int count = 0;
    for (int i = 0; i < POSTERS; i++)
        count += posters[i].called;
    return count;
}

static void join_posters(struct poster *posters) {
    for (int i = 0; i < POSTERS; i++)
        pthread_join(posters[i].thread, NULL);
}

/* All that were accepted were called, once and in order. */
static void assert_all_called(struct poster *posters, int refused, bool orphans) {
    for (int i = 0; i < POSTERS; i++) {
        assert_status(posters[i].refused, refused);
        assert_int_equal(posters[i].called, posters[i].accepted);
        assert_int_equal(posters[i].wrong, 0);
        assert_int_equal(posters[i].orphans, orphans ? posters[i].called : 0);
    }
    free(posters);
}

static void posts_of_many_threads_are_called_while_the_loop_works(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_new(f, "a", NULL);
    struct poster *posters = begin_posters(f->client);
    while (calls_of(posters) < POSTERS * POSTS) {
        assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
        assert_status(await_release(f, lock), EVLOCK_OK);
    }
    join_posters(posters);
    assert_all_called(posters, EVLOCK_OK, false);
}

/* One whose wake-up were lost would wait for ever. */
static void a_post_wakes_a_loop_that_waits(void **state) {
    struct fixture *f = *state;
    await_connected(f, f->client);
    loop_be_patient(f->loop);
    struct poster *posters = begin_posters(f->client);
    while (calls_of(posters) < POSTERS * POSTS)
        loop_turn(f->loop);
    join_posters(posters);
    assert_all_called(posters, EVLOCK_OK, false);
    client_free(f, f->client);
}

static atomic_int answered;

static void answer(evlock_client *client, void *arg) {
    (void)client;
    (void)arg;
    atomic_fetch_add(&answered, 1);
}

enum { QUESTIONS = 200 };

/* Each post finds a loop that waits, or is about to. */
static int post_one_by_one(void *arg) {
    for (int i = 0; i < QUESTIONS; i++) {
        if (evlock_client_post(arg, answer, NULL) != EVLOCK_OK)
            return __LINE__;
        while (atomic_load(&answered) <= i)
            sched_yield();
    }
    return 0;
}

static void each_post_wakes_the_loop(void **state) {
    struct fixture *f = *state;
    struct errand errand = {post_one_by_one, f->client, -1};
    await_connected(f, f->client);
    loop_be_patient(f->loop);
    atomic_store(&answered, 0);
    int64_t end = evlock_clock_us() + (int64_t)WAIT_MS * 1000;
    pthread_t thread = begin_errand(&errand);
    while (atomic_load(&answered) < QUESTIONS && evlock_clock_us() < end)
        loop_turn(f->loop);
    if (atomic_load(&answered) < QUESTIONS)
        abort(); /* the thread is still at it, so there is no going on */
    pthread_join(thread, NULL);
    assert_int_equal(errand.returned, 0);
    client_free(f, f->client);
}

static void what_was_posted_is_called_before_a_close_ends(void **state) {
    struct fixture *f = *state;
    struct record closed = {0};
    evlock_client *client = f->client;
    await_connected(f, client);
    struct poster *posters = begin_posters(client);
    assert_status(evlock_client_close(client, record_closed, &closed), EVLOCK_OK);
    client_forget(f, client);
    join_posters(posters); /* before the loop goes on, and the client may go */
    assert_int_equal(calls_of(posters), 0);
    await(f, closed.count);
    assert_ended(&closed, EVLOCK_OK);
    assert_all_called(posters, EVLOCK_OK, false);
}

struct chatter {
    int posted, called, refused;
};

static void post_again(evlock_client *client, void *arg) {
    struct chatter *chatter = arg;
    int status = evlock_client_post(client, post_again, chatter);
    chatter->called++;
    chatter->posted += status == EVLOCK_OK;
    chatter->refused += status == EVLOCK_ECLOSED;
}

static void posts_do_not_hold_up_a_close(void **state) {
    struct fixture *f = *state;
    struct chatter chatter = {.posted = 1};
    await_connected(f, f->client);
    assert_status(evlock_client_post(f->client, post_again, &chatter), EVLOCK_OK);
    assert_status(await_close(f, f->client), EVLOCK_OK);
    assert_int_equal(chatter.refused, 1);
    assert_int_equal(chatter.called, chatter.posted);
}

static char letters[] = "abcd", spelled[8];

static void spell(evlock_client *client, void *arg) {
    (void)client;
    strncat(spelled, arg, 1);
}

static struct record closed_by_a_post;

static void spell_and_close(evlock_client *client, void *arg) {
    spell(client, arg);
    evlock_client_post(client, spell, &letters[3]);
    evlock_client_close(client, record_closed, &closed_by_a_post);
}

/* A close inside one leaves the others to the next turn, by which there are more. */
static void what_a_turn_leaves_is_called_in_order(void **state) {
    struct fixture *f = *state;
    await_connected(f, f->client);
    spelled[0] = '\0';
    closed_by_a_post = (struct record){0};
    assert_status(evlock_client_post(f->client, spell_and_close, &letters[0]), EVLOCK_OK);
    assert_status(evlock_client_post(f->client, spell, &letters[1]), EVLOCK_OK);
    assert_status(evlock_client_post(f->client, spell, &letters[2]), EVLOCK_OK);
    client_forget(f, f->client);
    await(f, closed_by_a_post.count);
    assert_ended(&closed_by_a_post, EVLOCK_OK);
    assert_string_equal(spelled, letters);
}

static int body_begins(evlock *lock, void *arg) {
    *(evlock **)arg = lock;
    return EVLOCK_OK;
}

static int ran_well;

static void body_ended(int status, bool ran, void *arg) {
    (void)arg;
    ran_well = status == EVLOCK_OK && ran;
}

static void end_body(evlock_client *client, void *lock) {
    if (client)
        evlock_release(lock, NULL, NULL);
}

struct ending {
    evlock_client *client;
    evlock *lock;
};

static int post_the_end(void *arg) {
    struct ending *ending = arg;
    return evlock_client_post(ending->client, end_body, ending->lock) == EVLOCK_OK ? 0 : __LINE__;
}

static void a_thread_may_end_a_body_while_the_client_closes(void **state) {
    struct fixture *f = *state;
    struct record closed = {0};
    struct ending ending = {.client = f->client};
    ran_well = 0;
    assert_status(evlock_run(NULL, f->client, "a", 1, NULL, body_begins, body_ended, &ending.lock), EVLOCK_OK);
    await(f, ending.lock);
    assert_status(evlock_client_close(f->client, record_closed, &closed), EVLOCK_OK);
    client_forget(f, f->client);
    run_for(f, 20);
    assert_int_equal(closed.count, 0);
    assert_int_equal(in_thread(post_the_end, &ending), 0);
    await(f, closed.count);
    assert_ended(&closed, EVLOCK_OK);
    assert_true(ran_well);
}

/* The loop's own operations, but for a timer that stays in a thread that wakes the loop until it may go on. */
static evlock_loop_ops stalling_ops;
static void (*set_timer)(void *timer, int64_t at);
static pthread_t at_home;
static atomic_bool stalls, may_go_on;

static void set_timer_and_stall(void *timer, int64_t at) {
    set_timer(timer, at);
    if (pthread_equal(pthread_self(), at_home))
        return;
    stalls = true;
    while (!may_go_on)
        sched_yield();
}

/* The post is called, and ends the last body, while its thread still needs the client. */
static void a_client_lives_until_a_posting_thread_has_let_go(void **state) {
    struct fixture *f = *state;
    struct record closed = {0};
    evlock_loop loop = *loop_for_evlock(f->loop);
    struct ending ending = {0};
    struct errand errand = {post_the_end, &ending, -1};
    set_timer = loop.ops->timer_set;
    stalling_ops = *loop.ops;
    stalling_ops.timer_set = set_timer_and_stall;
    loop.ops = &stalling_ops;
    at_home = pthread_self();
    stalls = may_go_on = false;
    assert_status(evlock_client_new(&ending.client, &loop, f->server->url, NULL), EVLOCK_OK);
    ran_well = 0;
    assert_status(evlock_run(NULL, ending.client, "a", 1, NULL, body_begins, body_ended, &ending.lock), EVLOCK_OK);
    await(f, ending.lock);
    assert_status(evlock_client_close(ending.client, record_closed, &closed), EVLOCK_OK);
    pthread_t thread = begin_errand(&errand);
    await(f, stalls && ran_well);
    run_for(f, 50);
    int early = closed.count;
    may_go_on = true;
    pthread_join(thread, NULL);
    await(f, closed.count);
    assert_int_equal(early, 0);
    assert_int_equal(errand.returned, 0);
    assert_ended(&closed, EVLOCK_OK);
}

static void what_was_posted_is_called_after_a_free(void **state) {
    struct fixture *f = *state;
    evlock_client *client = f->client;
    struct poster *posters = begin_posters(client);
    join_posters(posters);
    client_free(f, client);
    assert_int_equal(calls_of(posters), 0); /* not from inside the call */
    loop_turn(f->loop);
    assert_all_called(posters, EVLOCK_OK, true);
}

struct chain {
    struct fixture *f;
    int called, orphans;
};

/* It posts the next one, and the last one frees the client. */
static void post_on(evlock_client *client, void *arg) {
    struct chain *chain = arg;
    chain->called++;
    chain->orphans += !client;
    if (chain->called == 3)
        client_free(chain->f, client);
    else if (client && evlock_client_post(client, post_on, chain) != EVLOCK_OK)
        chain->orphans = 100;
}

static void a_post_may_post_and_free_the_client(void **state) {
    struct fixture *f = *state;
    struct chain chain = {.f = f};
    for (int i = 0; i < 2; i++)
        assert_status(evlock_client_post(f->client, post_on, &chain), EVLOCK_OK);
    await(f, chain.called == 4); /* two of its own, of which the first freed the client, and those that came later */
    run_for(f, 20);
    assert_int_equal(chain.called, 4);
    assert_int_equal(chain.orphans, 1);
}

struct glance {
    char error[256];
    int called;
};

static void note_error(evlock_client *client, void *arg) {
    struct glance *glance = arg;
    (void)client;
    snprintf(glance->error, sizeof(glance->error), "%s", evlock_last_error());
    glance->called++;
}

static void a_post_meets_no_error_of_before(void **state) {
    struct fixture *f = *state;
    struct glance glance = {"", 0};
    await_connected(f, f->client);
    assert_status(evlock_client_post(f->client, note_error, &glance), EVLOCK_OK);
    assert_status(evlock_client_post(NULL, note_error, &glance), EVLOCK_EINVAL);
    assert_string_not_equal(evlock_last_error(), "");
    await(f, glance.called);
    assert_string_equal(glance.error, "");
}

static void bad_posts_are_refused(void **state) {
    struct fixture *f = *state;
    evlock_loop loop = *loop_for_evlock(f->loop);
    static evlock_loop_ops ops; /* outlives the clients, also where the test fails */
    ops = *loop.ops;
    loop.ops = &ops;
    assert_status(evlock_client_post(NULL, posted, NULL), EVLOCK_EINVAL);
    assert_status(evlock_client_post(f->client, NULL, NULL), EVLOCK_EINVAL);
    for (int older = 0; older < 2; older++) {
        evlock_client *client = NULL;
        ops.threads = older;
        ops.size = older ? offsetof(evlock_loop_ops, threads) : sizeof(ops);
        assert_status(evlock_client_new(&client, &loop, f->server->url, NULL), EVLOCK_OK);
        assert_status(evlock_client_post(client, posted, NULL), EVLOCK_EUNSUPPORTED);
        assert_string_not_equal(evlock_last_error(), "");
        evlock_client_free(client);
    }
}

static void count_post(evlock_client *client, void *arg) {
    *(int *)arg += client ? 1 : 100;
}

/* Neither by a callback, nor by eating up what wakes the parent. */
static int child_with_a_post(void *arg) {
    struct fixture *f = arg;
    int called = 0;
    if (evlock_client_post(f->client, count_post, &called) != EVLOCK_EFORKED)
        return __LINE__ % 100;
    loop_forked(f->loop);
    for (int i = 0; i < 5; i++)
        loop_turn(f->loop);
    evlock_client_free(f->client);
    loop_turn(f->loop);
    return called ? __LINE__ % 100 : 0;
}

static int called_in_parent;

static void a_child_has_no_part_in_posts(void **state) {
    struct fixture *f = *state;
    await_connected(f, f->client);
    called_in_parent = 0;
    assert_status(evlock_client_post(f->client, count_post, &called_in_parent), EVLOCK_OK);
    assert_int_equal(in_child(child_with_a_post, f), 0);
    loop_be_patient(f->loop);
    while (!called_in_parent)
        loop_turn(f->loop);
    assert_int_equal(called_in_parent, 1);
    client_free(f, f->client);
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
        TEST(posts_of_many_threads_are_called_while_the_loop_works),
        TEST(a_post_wakes_a_loop_that_waits),
        TEST(each_post_wakes_the_loop),
        TEST(what_was_posted_is_called_before_a_close_ends),
        TEST(what_a_turn_leaves_is_called_in_order),
        TEST(posts_do_not_hold_up_a_close),
        TEST(a_thread_may_end_a_body_while_the_client_closes),
        TEST(a_client_lives_until_a_posting_thread_has_let_go),
        TEST(what_was_posted_is_called_after_a_free),
        TEST(a_post_may_post_and_free_the_client),
        TEST(a_post_meets_no_error_of_before),
        TEST(bad_posts_are_refused),
        TEST(a_child_has_no_part_in_posts),
        TEST_BARE(loops_in_several_threads_notice_nothing),
    };
    return run_suite("threads", tests);
}
