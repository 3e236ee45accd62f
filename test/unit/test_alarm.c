/*
 * Alarms: each rule by itself, then many random steps against a model that is too simple to be wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "alarm.h"

/** The earliest alarm that is due at `now`, or NULL. */
static struct alarm *due(struct alarms *alarms, int64_t now) {
    struct alarm *alarm = NULL;
    while (!alarm && evl_alarms_next(alarms) <= now && evl_alarms_next(alarms) != INT64_MAX)
        alarm = evl_alarms_due(alarms, now);
    return alarm;
}

CASE(none_is_due_in_an_empty_set) {
    struct alarms alarms = {0};
    assert_true(evl_alarms_next(&alarms) == INT64_MAX);
    assert_null(due(&alarms, INT64_MAX));
}

CASE(an_alarm_is_due_at_its_moment_and_once) {
    struct alarms alarms = {0};
    struct alarm alarm = {0};
    evl_alarm_set(&alarms, &alarm, 100);
    assert_true(evl_alarms_next(&alarms) == 100);
    assert_null(due(&alarms, 99));
    assert_ptr_equal(due(&alarms, 100), &alarm);
    assert_null(due(&alarms, 100));
    assert_true(evl_alarms_next(&alarms) == INT64_MAX);
    evl_alarm_set(&alarms, &alarm, 5);
    assert_ptr_equal(due(&alarms, 100), &alarm);
}

CASE(a_moment_can_be_moved_and_taken_back) {
    struct alarms alarms = {0};
    struct alarm a = {0}, b = {0};
    evl_alarm_set(&alarms, &a, 10);
    evl_alarm_set(&alarms, &b, 20);
    evl_alarm_set(&alarms, &a, 30);
    assert_true(evl_alarms_next(&alarms) == 20);
    evl_alarm_set(&alarms, &a, 15);
    assert_true(evl_alarms_next(&alarms) == 15);
    evl_alarm_set(&alarms, &a, 15);
    evl_alarm_set(&alarms, &a, INT64_MAX);
    evl_alarm_set(&alarms, &a, INT64_MAX);
    assert_false(a.set);
    assert_ptr_equal(due(&alarms, 100), &b);
    assert_null(due(&alarms, 100));
}

CASE(alarms_of_one_moment_come_in_the_order_in_which_they_were_set) {
    enum { ALARMS = 100, MOMENT = 123456789 };
    struct alarms alarms = {0};
    struct alarm alarm[ALARMS], before = {0};
    memset(alarm, 0, sizeof(alarm));
    evl_alarm_set(&alarms, &before, MOMENT - 70000);
    for (int i = 0; i < ALARMS; i++)
        evl_alarm_set(&alarms, &alarm[i], MOMENT);
    assert_ptr_equal(due(&alarms, MOMENT), &before);
    for (int i = 0; i < ALARMS; i++)
        assert_ptr_equal(due(&alarms, MOMENT), &alarm[i]);
    assert_null(due(&alarms, INT64_MAX));
}

/* The many of a wide bucket are sorted by portions, in whose pauses others may be set and taken out. */
CASE(many_become_due_by_portions) {
    enum { ALARMS = 1000, WIDE = 1 << 20 };
    static struct alarm alarm[ALARMS];
    struct alarms alarms = {0};
    struct alarm late = {0};
    memset(alarm, 0, sizeof(alarm));
    for (int i = 0; i < ALARMS; i++)
        evl_alarm_set(&alarms, &alarm[i], WIDE + (ALARMS - i) * 17);
    assert_null(evl_alarms_due(&alarms, INT64_MAX));
    assert_true(evl_alarms_next(&alarms) <= WIDE + 17);
    evl_alarm_set(&alarms, &alarm[ALARMS - 1], INT64_MAX);
    evl_alarm_set(&alarms, &alarm[0], INT64_MAX);
    evl_alarm_set(&alarms, &late, WIDE + 35);
    assert_ptr_equal(due(&alarms, 2 * WIDE), &alarm[ALARMS - 2]);
    assert_ptr_equal(due(&alarms, 2 * WIDE), &late);
    for (int i = ALARMS - 3; i > 0; i--)
        assert_ptr_equal(due(&alarms, 2 * WIDE), &alarm[i]);
    assert_true(evl_alarms_next(&alarms) == INT64_MAX);
}

/* One step costs about as much as an alarm that rings. */
CASE(a_step_sorts_only_few) {
    enum { ALARMS = 1000, WIDE = 1 << 20 };
    static struct alarm alarm[ALARMS];
    struct alarms alarms = {0};
    int sorted = 0;
    memset(alarm, 0, sizeof(alarm));
    for (int i = 0; i < ALARMS; i++)
        evl_alarm_set(&alarms, &alarm[i], WIDE + i);
    unsigned wide = alarm[0].bucket;
    assert_null(evl_alarms_due(&alarms, INT64_MAX));
    for (int i = 0; i < ALARMS; i++)
        sorted += alarm[i].bucket != wide;
    assert_int_in_range(sorted, 1, 20);
}

CASE(what_is_long_past_is_due_at_once) {
    struct alarms alarms = {0};
    struct alarm a = {0}, b = {0};
    evl_alarm_set(&alarms, &a, 1000);
    assert_ptr_equal(due(&alarms, 2000), &a);
    evl_alarm_set(&alarms, &a, -5);
    evl_alarm_set(&alarms, &b, 1);
    assert_true(evl_alarms_next(&alarms) <= 1000);
    assert_ptr_equal(due(&alarms, 1000), &a);
    assert_ptr_equal(due(&alarms, 1000), &b);
}

/* However many they are. */
CASE(alarms_that_were_set_together_to_one_moment_are_sorted_as_one) {
    enum { ALARMS = 1000, MOMENT = 123456789, BEFORE = MOMENT - 70000 };
    static struct alarm alarm[ALARMS];
    struct alarms alarms = {0};
    struct alarm other = {0};
    evl_alarm_set(&alarms, &other, BEFORE);
    for (int i = 0; i < ALARMS; i++)
        evl_alarm_set(&alarms, &alarm[i], MOMENT);
    assert_ptr_equal(due(&alarms, MOMENT), &other);
    for (int steps = 0; steps < ALARM_LEVELS; steps++)
        if (evl_alarms_due(&alarms, INT64_MAX) == &alarm[0])
            return;
    fail();
}

CASE(what_is_more_than_a_century_off_is_not_due_before) {
    const int64_t century = INT64_C(100) * 365 * 24 * 3600 * 1000000;
    struct alarms alarms = {0};
    struct alarm a = {0};
    for (int bits = 51; bits < 63; bits++) {
        evl_alarm_set(&alarms, &a, (INT64_C(1) << bits) + century);
        assert_true(a.set);
        assert_true(evl_alarms_next(&alarms) >= century);
    }
}

/* A client's timer rings then in vain, at most once for each that was taken out. */
CASE(one_that_was_taken_out_may_ring_in_vain_once) {
    struct alarms alarms = {0};
    struct alarm a = {0}, b = {0};
    evl_alarm_set(&alarms, &a, 5000);
    evl_alarm_set(&alarms, &b, 5001);
    evl_alarm_set(&alarms, &a, INT64_MAX);
    assert_null(due(&alarms, 5000));
    assert_true(evl_alarms_next(&alarms) == 5001);
}

CASE(what_is_put_off_is_due_when_resumed) {
    struct alarms alarms = {0};
    struct alarm a = {0}, b = {0}, later = {0};
    evl_alarms_resume(&alarms);
    evl_alarm_put_off(&alarms, &a, INT64_MAX);
    evl_alarm_set(&alarms, &b, 100);
    evl_alarm_put_off(&alarms, &b, INT64_MAX);
    assert_true(evl_alarm_is_put_off(&a) && evl_alarm_is_put_off(&b));
    assert_true(evl_alarms_have_put_off(&alarms));
    assert_null(due(&alarms, 1000));
    evl_alarms_resume(&alarms);
    evl_alarm_put_off(&alarms, &later, INT64_MAX);
    assert_ptr_equal(due(&alarms, 1000), &a);
    evl_alarm_put_off(&alarms, &a, INT64_MAX);
    assert_ptr_equal(due(&alarms, 1000), &b);
    assert_null(due(&alarms, 1000));
    evl_alarms_resume(&alarms);
    assert_ptr_equal(due(&alarms, 1000), &later);
    assert_ptr_equal(due(&alarms, 1000), &a);
    assert_false(evl_alarms_have_put_off(&alarms));
}

CASE(what_is_put_off_is_due_at_its_moment_too) {
    struct alarms alarms = {0};
    struct alarm a = {0}, b = {0}, c = {0};
    evl_alarm_put_off(&alarms, &a, 500);
    evl_alarm_put_off(&alarms, &b, 300);
    evl_alarm_set(&alarms, &c, 400);
    assert_true(evl_alarms_next(&alarms) == 300);
    assert_null(due(&alarms, 299));
    assert_ptr_equal(due(&alarms, 400), &c); /* its moment has come for sure */
    assert_ptr_equal(due(&alarms, 400), &a);
    evl_alarm_put_off(&alarms, &a, 500);
    assert_ptr_equal(due(&alarms, 400), &b);
    assert_null(due(&alarms, 499));
    assert_ptr_equal(due(&alarms, 500), &a);
}

CASE(what_is_put_off_can_be_set_and_taken_out) {
    struct alarms alarms = {0};
    struct alarm a = {0}, b = {0}, c = {0};
    evl_alarm_put_off(&alarms, &a, 100);
    evl_alarm_put_off(&alarms, &b, 100);
    evl_alarm_put_off(&alarms, &c, 100);
    evl_alarms_resume(&alarms);
    evl_alarm_set(&alarms, &c, INT64_MAX); /* the last of those that are due */
    evl_alarm_set(&alarms, &a, 100);
    assert_false(evl_alarm_is_put_off(&a) || evl_alarm_is_put_off(&c));
    assert_ptr_equal(due(&alarms, 50), &b);
    assert_null(due(&alarms, 50));
    assert_ptr_equal(due(&alarms, 100), &a);
    evl_alarm_put_off(&alarms, &a, 200);
    evl_alarms_resume(&alarms);
    evl_alarm_set(&alarms, &a, INT64_MAX); /* the only one */
    assert_true(evl_alarms_next(&alarms) == INT64_MAX);
}

/* --- Against a model ---------------------------------------------------------------------------------------------- */

enum { OWNERS = 300, STEPS = 30000 };

struct model {
    struct alarms alarms;
    struct alarm alarm[OWNERS];
    int64_t at[OWNERS]; /* INT64_MAX: not set */
};

static int64_t model_next(const struct model *model) {
    int64_t next = INT64_MAX;
    for (int i = 0; i < OWNERS; i++)
        if (model->at[i] < next)
            next = model->at[i];
    return next;
}

static void model_set(struct model *model, int owner, int64_t at) {
    evl_alarm_set(&model->alarms, &model->alarm[owner], at);
    model->at[owner] = at < model->alarms.base ? model->alarms.base : at;
}

/** Takes out one alarm that is due at `now`, here and there; 0 when none is. */
static int model_due(struct model *model, int64_t now) {
    int64_t next = model_next(model);
    struct alarm *first = due(&model->alarms, now);
    if (next > now || next == INT64_MAX) {
        assert_null(first);
        return 0;
    }
    assert_non_null(first);
    assert_true(model->at[first - model->alarm] == next);
    assert_false(first->set);
    model->at[first - model->alarm] = INT64_MAX;
    return 1;
}

static void run_against_model(unsigned seed, int64_t moments) {
    static struct model model;
    struct alarm *step_due;
    model = (struct model){0};
    for (int i = 0; i < OWNERS; i++)
        model.at[i] = INT64_MAX;
    srandom(seed);
    for (int step = 0; step < STEPS; step++) {
        int owner = (int)(random() % OWNERS);
        int64_t now = step * (moments / 2000 + 1);
        int64_t moment = now + random() % moments - moments / 4;
        switch (random() % 8) {
        case 0:
            model_set(&model, owner, INT64_MAX);
            break;
        case 1:
            model_due(&model, now);
            break;
        case 2:
            model_set(&model, owner, model.at[owner]);
            break;
        case 3: /* goes on, by one step at most */
            if (evl_alarms_next(&model.alarms) <= now && (step_due = evl_alarms_due(&model.alarms, now)))
                evl_alarm_set(&model.alarms, step_due, model.at[step_due - model.alarm]);
            break;
        default:
            model_set(&model, owner, moment);
        }
        assert_true(evl_alarms_next(&model.alarms) <= model_next(&model));
    }
    while (model_due(&model, INT64_MAX - 1))
        continue;
    assert_int_equal(model.alarms.levels, 0);
}

CASE(random_steps_agree_with_a_model) {
    for (unsigned seed = 1; seed <= 5; seed++) {
        print_message("# seed %u\n", seed);
        run_against_model(seed, 1000000);
        run_against_model(seed, 10); /* mostly equal moments */
        run_against_model(seed, INT64_C(1) << 30);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_is_due_in_an_empty_set),
        cmocka_unit_test(an_alarm_is_due_at_its_moment_and_once),
        cmocka_unit_test(a_moment_can_be_moved_and_taken_back),
        cmocka_unit_test(alarms_of_one_moment_come_in_the_order_in_which_they_were_set),
        cmocka_unit_test(many_become_due_by_portions),
        cmocka_unit_test(a_step_sorts_only_few),
        cmocka_unit_test(what_is_long_past_is_due_at_once),
        cmocka_unit_test(alarms_that_were_set_together_to_one_moment_are_sorted_as_one),
        cmocka_unit_test(what_is_more_than_a_century_off_is_not_due_before),
        cmocka_unit_test(one_that_was_taken_out_may_ring_in_vain_once),
        cmocka_unit_test(what_is_put_off_is_due_when_resumed),
        cmocka_unit_test(what_is_put_off_is_due_at_its_moment_too),
        cmocka_unit_test(what_is_put_off_can_be_set_and_taken_out),
        cmocka_unit_test(random_steps_agree_with_a_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
