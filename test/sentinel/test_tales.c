/*
 * Sentinels that say what real ones say rarely, or never: whom the client believes then. Each test is named after the
 * behaviour that it shows.
 */
#include "../redis/harness.h"
#include "teller.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

static struct teller tellers[2];

static int tales_teardown(void **state) {
    int left = fixture_teardown(state);
    for (int i = 0; i < 2; i++)
        teller_stop(&tellers[i]);
    return left;
}

#define TALE_TEST(function) cmocka_unit_test_setup_teardown(function, fixture_setup_bare, tales_teardown)

/* A client of the tellers that were started. */
static void begin(struct fixture *f) {
    evlock_client_options options = plain_client_options(f);
    char url[128], other[32] = "";
    options.backoff_min_ms = 10;
    options.backoff_max_ms = 200;
    if (tellers[1].pid)
        snprintf(other, sizeof(other), ",127.0.0.1:%d", tellers[1].port);
    snprintf(url, sizeof(url), "redis+sentinel://127.0.0.1:%d%s/locks", tellers[0].port, other);
    client_new(f, url, &options);
}

static void tell(struct fixture *f, int teller, enum tale tale) {
    teller_start(&tellers[teller], tale, f->server->port);
}

static void works(struct fixture *f) {
    evlock *lock = lock_new(f, "works", NULL);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_status(await_release(f, lock), EVLOCK_OK);
    lock_free(f, lock);
}

/* It was heard twice, at the least, and nothing came of it. */
static void stays(struct fixture *f, struct teller *teller) {
    await(f, teller_said(teller) >= 2);
    for (int i = 0; i < 5; i++)
        works(f);
    assert_int_equal(f->connection_states[EVLOCK_CONNECTED], 1);
    assert_int_equal(f->connection_states[EVLOCK_AWAY], 0);
}

/* Or the last epoch would be believed of the address before. */
static void an_address_is_of_the_epoch_before_and_after_it(void **state) {
    struct fixture *f = *state;
    tell(f, 0, TALE_TORN);
    begin(f);
    works(f);
    stays(f, &tellers[0]);
    assert_true(logged(f, "by epoch 2") && !logged(f, "by epoch 1"));
}

static void what_changed_before_it_listened_is_asked_for(void **state) {
    struct fixture *f = *state;
    tell(f, 0, TALE_MISSED);
    begin(f);
    await(f, logged(f, "by epoch 2"));
    works(f);
}

static bool has_stopped(const struct teller *teller) {
    int status;
    return waitpid(teller->pid, &status, WNOHANG | WUNTRACED) == teller->pid && WIFSTOPPED(status);
}

/* What is answered then may be of the time before. */
static void what_is_heard_while_it_is_asked_is_asked_for_again(void **state) {
    struct fixture *f = *state;
    tell(f, 0, TALE_PUSHED);
    begin(f);
    await(f, has_stopped(&tellers[0]));
    for (int i = 0; i < 3; i++)
        loop_turn(f->loop); /* what was told has come, and is read */
    kill(tellers[0].pid, SIGCONT);
    await(f, logged(f, "by epoch 2"));
    works(f);
}

static void a_later_epoch_of_the_same_master_moves_nothing(void **state) {
    struct fixture *f = *state;
    tell(f, 0, TALE_AGAIN);
    begin(f);
    works(f);
    stays(f, &tellers[0]);
    assert_false(logged(f, "by epoch 6"));
}

/* Of two masters of one epoch, the one that is of use stays. */
static void another_master_of_the_same_epoch_is_left(void **state) {
    struct fixture *f = *state;
    tell(f, 0, TALE_TRUE);
    tell(f, 1, TALE_FALSE);
    kill(tellers[1].pid, SIGSTOP);
    begin(f);
    works(f);
    kill(tellers[1].pid, SIGCONT);
    stays(f, &tellers[1]);
}

static void another_master_of_the_same_epoch_is_taken_where_one_is_away(void **state) {
    struct fixture *f = *state;
    tell(f, 0, TALE_MENDED);
    begin(f);
    works(f);
}

static void all_are_asked_where_the_master_is_away(void **state) {
    struct fixture *f = *state;
    tell(f, 0, TALE_FALSE);
    tell(f, 1, TALE_MENDED);
    begin(f);
    works(f);
}

static void who_hangs_up_is_asked_again(void **state) {
    struct fixture *f = *state;
    tell(f, 0, TALE_CUT);
    begin(f);
    works(f);
}

static void an_address_that_is_none_is_refused(void **state) {
    struct fixture *f = *state;
    tell(f, 0, TALE_NO_PORT);
    begin(f);
    await(f, f->away.count > 0);
    assert_status(f->away.status, EVLOCK_EPROTOCOL);
    assert_says(f->away.error, "no address");
}

/* However often it is told meanwhile that something has changed. */
static void one_answer_serves_all_that_is_heard_before_it(void **state) {
    struct fixture *f = *state;
    tell(f, 0, TALE_SHOUTED);
    begin(f);
    await(f, has_stopped(&tellers[0]));
    for (int i = 0; i < 3; i++)
        loop_turn(f->loop);
    kill(tellers[0].pid, SIGCONT);
    await(f, logged(f, "by epoch 2"));
    works(f);
    assert_int_equal(teller_said(&tellers[0]), 3);
}

/* Where each answer begs for another question: who does not read them is asked no more. */
static void who_does_not_read_is_not_asked_without_end(void **state) {
    struct fixture *f = *state;
    tell(f, 0, TALE_DEAF);
    begin(f);
    await(f, logged(f, "connection lost"));
    assert_true(logged(f, "nobody asked for"));
}

static void an_answer_of_too_many_words_is_refused(void **state) {
    struct fixture *f = *state;
    tell(f, 0, TALE_LONG);
    begin(f);
    await(f, f->away.count > 0);
    assert_status(f->away.status, EVLOCK_EPROTOCOL);
    assert_says(f->away.error, "too many elements");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TALE_TEST(an_address_is_of_the_epoch_before_and_after_it),
        TALE_TEST(what_changed_before_it_listened_is_asked_for),
        TALE_TEST(what_is_heard_while_it_is_asked_is_asked_for_again),
        TALE_TEST(a_later_epoch_of_the_same_master_moves_nothing),
        TALE_TEST(another_master_of_the_same_epoch_is_left),
        TALE_TEST(another_master_of_the_same_epoch_is_taken_where_one_is_away),
        TALE_TEST(all_are_asked_where_the_master_is_away),
        TALE_TEST(who_hangs_up_is_asked_again),
        TALE_TEST(an_address_that_is_none_is_refused),
        TALE_TEST(one_answer_serves_all_that_is_heard_before_it),
        TALE_TEST(who_does_not_read_is_not_asked_without_end),
        TALE_TEST(an_answer_of_too_many_words_is_refused),
    };
    return run_suite("sentinel-tales", tests);
}
