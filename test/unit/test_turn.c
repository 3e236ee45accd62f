/*
 * The turn: what is taken for read, and how long a loop that stood still is given, by a loop and a clock of the test's.
 */
#include <string.h>

#include "turn.h"

enum { BEGAN = 1000000, RECOVERY_MOST = 50000 };

static int64_t clock_now, timer_at;
static evlock_timer_cb timer_cb;
static void *timer_arg;
static struct turn turn;
static int rung;

/* What a ring is for, and what is done at the end of a turn; NULL: nothing. */
static void (*rings)(struct alarm *alarm);
static void (*ends)(void);

static int64_t now(void *data) {
    (void)data;
    return clock_now;
}

static void *timer_new(void *data, evlock_timer_cb cb, void *arg) {
    (void)data;
    timer_cb = cb;
    timer_arg = arg;
    timer_at = INT64_MAX;
    return &timer_at;
}

static bool asked_meanwhile; /* another thread asks just before the timer is set */

static void timer_set(void *timer, int64_t at) {
    (void)timer;
    if (asked_meanwhile) {
        asked_meanwhile = false;
        evl_turn_ask(&turn);
    }
    timer_at = at;
}

static void timer_free(void *timer) {
    (void)timer;
}

static void on_ring(struct alarm *alarm, int64_t at) {
    assert_true(turn.gathering && at == clock_now);
    rung++;
    if (rings)
        rings(alarm);
}

static void on_rung(struct turn *of, int64_t at) {
    (void)at;
    assert_false(of->gathering);
}

static void on_end(struct turn *of) {
    (void)of;
    if (ends)
        ends();
}

static bool no_left(struct turn *of) {
    (void)of;
    return false;
}

static bool not_waiting(const struct turn *of) {
    (void)of;
    return false;
}

static int set_up(void **state) {
    static const evlock_loop_ops ops = {
        .size = sizeof(ops), .now = now, .timer_new = timer_new, .timer_set = timer_set, .timer_free = timer_free};
    static const struct turn_hooks hooks = {
        .ring = {on_ring, on_ring, on_ring, on_ring},
        .rung = on_rung,
        .end = on_end,
        .left = no_left,
        .waiting = not_waiting,
    };
    const struct evlock_loop loop = {.ops = &ops};
    const struct log_sink log = {0};
    (void)state;
    memset(&turn, 0, sizeof(turn));
    clock_now = BEGAN;
    rung = 0;
    rings = NULL;
    ends = NULL;
    return evl_turn_init(&turn, &loop, &hooks, &log, RECOVERY_MOST) ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    evl_turn_free(&turn);
    return 0;
}

/* The loop's timer rings so long after the beginning. */
static void ring_at(int64_t time) {
    clock_now = BEGAN + time;
    timer_at = INT64_MAX;
    timer_cb(timer_arg);
}

static void wake(struct alarm *alarm, int64_t at) {
    evl_turn_wake(&turn, alarm, at);
    evl_turn_rearm(&turn);
}

/* Whether what was begun then, and should have been answered by then, is given more time. */
static bool puts_off(int64_t begun, int64_t limit) {
    struct alarm alarm = {0};
    bool put_off = evl_turn_puts_off(&turn, &alarm, BEGAN + begun, BEGAN + limit);
    wake(&alarm, INT64_MAX);
    return put_off;
}

/* An alarm of 5 ms rings at 20 ms. */
static void stand_still(void) {
    struct alarm alarm = {0};
    wake(&alarm, BEGAN + 5000);
    ring_at(20000);
    assert_int_equal(rung, 1);
}

CASE(what_came_by_the_ring_before_the_last_two_is_read) {
    ring_at(1000);
    ring_at(2000);
    assert_true(puts_off(0, 1000));
    ring_at(3000);
    assert_false(puts_off(0, 1000));
    assert_true(puts_off(0, 1001));
}

CASE(what_was_under_way_in_a_stall_is_given_a_recovery) {
    stand_still();
    for (int64_t time = 21000; time < 40000; time += 1000) {
        ring_at(time);
        assert_true(puts_off(0, 10000));
        assert_true(timer_at == BEGAN + 40000); /* by this ring alone it ends */
    }
    ring_at(40000);
    assert_false(puts_off(0, 10000));
}

CASE(what_was_begun_after_a_stall_waits_for_no_recovery) {
    stand_still();
    for (int64_t time = 21000; time <= 24000; time += 1000)
        ring_at(time);
    assert_false(puts_off(20000, 22000));
    assert_true(puts_off(20000, 22001));
    assert_true(puts_off(19999, 22000));
}

CASE(a_recovery_is_not_begun_anew_within_itself) {
    struct alarm alarm = {0};
    stand_still();
    wake(&alarm, BEGAN + 25000);
    ring_at(30000);
    assert_true(timer_at == BEGAN + 40000);
}

CASE(a_recovery_lasts_no_longer_than_its_most) {
    struct alarm alarm = {0};
    wake(&alarm, BEGAN + 1000);
    ring_at(900000);
    assert_true(timer_at == BEGAN + 900000 + RECOVERY_MOST);
}

/* --- Put off ------------------------------------------------------------------------------------------------------ */

enum { MANY = 2000, LIMIT = 100 };

static struct alarm many[MANY];
static int given_up;

static void give_up_or_put_off(struct alarm *alarm) {
    given_up += !evl_turn_puts_off(&turn, alarm, BEGAN, BEGAN + LIMIT);
}

/* Each user who is called has what is due looked at anew. */
static void call_many_users(void) {
    for (int i = 0; i < MANY; i++) {
        clock_now += 10;
        evl_turn_ring(&turn, clock_now);
    }
}

/* Every alarm of the many is for an answer that is overdue. */
static void wake_many(void) {
    given_up = 0;
    memset(many, 0, sizeof(many));
    rings = give_up_or_put_off;
    for (int i = 0; i < MANY; i++)
        wake(&many[i], BEGAN + LIMIT);
}

CASE(what_is_put_off_rings_once_a_turn_however_many_are_called) {
    wake_many();
    ends = call_many_users;
    ring_at(LIMIT);
    assert_int_equal(rung, MANY);
    for (int turns = 2; turns <= 3; turns++) {
        assert_true(timer_at <= clock_now); /* by its rings alone more is heard */
        ring_at(clock_now - BEGAN + 100);
        assert_int_equal(rung, turns * MANY);
    }
    assert_int_equal(given_up, MANY);
    assert_int_equal(timer_at, INT64_MAX);
}

CASE(what_is_put_off_is_cut_into_slices) {
    wake_many();
    ring_at(LIMIT);
    assert_int_in_range(rung, 1, MANY / 2);
    for (int turns = 2, before; given_up < MANY; turns++) {
        assert_true(turns < 20);
        before = rung;
        ring_at(LIMIT + turns * 100);
        assert_int_in_range(rung - before, 1, MANY / 2);
    }
    assert_true(rung <= 2 * MANY);
}

static struct alarm with_moment;

static void put_off_until_moment(struct alarm *alarm) {
    assert_ptr_equal(alarm, &with_moment);
    if (clock_now < BEGAN + 5000)
        evl_turn_put_off(&turn, alarm, BEGAN, BEGAN + 5000);
}

static void call_a_slow_user(void) {
    for (int i = 0; i < 100; i++) {
        clock_now += 100;
        evl_turn_ring(&turn, clock_now);
        assert_int_equal(rung, clock_now < BEGAN + 5000 ? 1 : 2);
    }
}

CASE(what_is_put_off_rings_in_the_same_turn_if_its_own_moment_comes) {
    memset(&with_moment, 0, sizeof(with_moment));
    rings = put_off_until_moment;
    ends = call_a_slow_user;
    wake(&with_moment, BEGAN + 100);
    ring_at(100);
    assert_int_equal(rung, 2);
}

CASE(what_was_due_before_the_beginning_is_no_stall) {
    struct alarm alarm = {0};
    wake(&alarm, BEGAN - 5000);
    ring_at(500);
    assert_int_equal(rung, 1);
    assert_true(timer_at == INT64_MAX);
}

CASE(who_asks_for_a_turn_gets_one) {
    assert_false(evl_turn_asked(&turn));
    evl_turn_ask(&turn);
    assert_int_equal(timer_at, 0);
    timer_at = INT64_MAX;
    evl_turn_ask(&turn); /* it will ring for the first */
    assert_int_equal(timer_at, INT64_MAX);
    assert_true(evl_turn_asked(&turn));
    assert_false(evl_turn_asked(&turn));
    evl_turn_ask(&turn);
    assert_int_equal(timer_at, 0);
}

CASE(who_asks_while_the_timer_is_set_gets_a_turn) {
    struct alarm alarm = {0};
    asked_meanwhile = true;
    wake(&alarm, BEGAN + 5000);
    assert_int_equal(timer_at, 0);
    wake(&alarm, INT64_MAX);
}

#define TURN_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TURN_TEST(what_came_by_the_ring_before_the_last_two_is_read),
        TURN_TEST(what_was_under_way_in_a_stall_is_given_a_recovery),
        TURN_TEST(what_was_begun_after_a_stall_waits_for_no_recovery),
        TURN_TEST(a_recovery_is_not_begun_anew_within_itself),
        TURN_TEST(a_recovery_lasts_no_longer_than_its_most),
        TURN_TEST(what_is_put_off_rings_once_a_turn_however_many_are_called),
        TURN_TEST(what_is_put_off_is_cut_into_slices),
        TURN_TEST(what_is_put_off_rings_in_the_same_turn_if_its_own_moment_comes),
        TURN_TEST(what_was_due_before_the_beginning_is_no_stall),
        TURN_TEST(who_asks_for_a_turn_gets_one),
        TURN_TEST(who_asks_while_the_timer_is_set_gets_a_turn),
    };
    return cmocka_run_group_tests_name("turn", tests, NULL, NULL);
}
