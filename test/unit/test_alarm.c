/*
 * Alarms: each rule by itself, then many random steps against a model that is too simple to be wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <evlock/evlock.h>

#include "alarm.h"
#include "counted.h"

static void reserve(struct alarms *alarms, int count) {
    for (int i = 0; i < count; i++)
        assert_int_equal(evl_alarms_reserve(alarms), EVLOCK_OK);
}

static void none_is_due_in_an_empty_set(void **state) {
    (void)state;
    struct alarms alarms = {0};
    assert_true(evl_alarms_next(&alarms) == INT64_MAX);
    assert_null(evl_alarms_due(&alarms, INT64_MAX));
    evl_alarms_clear(&alarms);
}

static void an_alarm_is_due_at_its_moment_and_once(void **state) {
    (void)state;
    struct alarms alarms = {0};
    struct alarm alarm = {0};
    reserve(&alarms, 1);
    evl_alarm_set(&alarms, &alarm, 100);
    assert_true(evl_alarms_next(&alarms) == 100);
    assert_null(evl_alarms_due(&alarms, 99));
    assert_ptr_equal(evl_alarms_due(&alarms, 100), &alarm);
    assert_null(evl_alarms_due(&alarms, 100));
    assert_true(evl_alarms_next(&alarms) == INT64_MAX);
    evl_alarm_set(&alarms, &alarm, 5);
    assert_ptr_equal(evl_alarms_due(&alarms, 100), &alarm);
    evl_alarms_clear(&alarms);
}

static void a_moment_can_be_moved_and_taken_back(void **state) {
    (void)state;
    struct alarms alarms = {0};
    struct alarm a = {0}, b = {0};
    reserve(&alarms, 2);
    evl_alarm_set(&alarms, &a, 10);
    evl_alarm_set(&alarms, &b, 20);
    evl_alarm_set(&alarms, &a, 30);
    assert_true(evl_alarms_next(&alarms) == 20);
    evl_alarm_set(&alarms, &a, 15);
    assert_true(evl_alarms_next(&alarms) == 15);
    evl_alarm_set(&alarms, &a, 15);
    evl_alarm_set(&alarms, &a, INT64_MAX);
    evl_alarm_set(&alarms, &a, INT64_MAX);
    assert_int_equal(a.place, 0);
    assert_ptr_equal(evl_alarms_due(&alarms, 100), &b);
    assert_null(evl_alarms_due(&alarms, 100));
    evl_alarms_clear(&alarms);
}

static void reserved_room_is_enough_to_set(void **state) {
    enum { ALARMS = 100 };
    struct alarms alarms = {0};
    struct alarm alarm[ALARMS] = {{0}};
    (void)state;
    counted_begin(NULL);
    reserve(&alarms, ALARMS);
    counted_fail_after(0);
    for (int i = 0; i < ALARMS; i++)
        evl_alarm_set(&alarms, &alarm[i], ALARMS - i);
    for (int i = ALARMS - 1; i >= 0; i--)
        assert_ptr_equal(evl_alarms_due(&alarms, ALARMS), &alarm[i]);
    evl_alarms_clear(&alarms);
    assert_int_equal(counted_live(), 0);
    counted_end();
}

static void reserving_can_fail_and_changes_nothing_then(void **state) {
    struct alarms alarms = {0};
    struct alarm alarm = {0};
    int reserved = 1;
    (void)state;
    counted_begin(NULL);
    reserve(&alarms, 1);
    evl_alarm_set(&alarms, &alarm, 7);
    counted_fail_after(0);
    while (evl_alarms_reserve(&alarms) == EVLOCK_OK)
        assert_true(++reserved < 1000);
    assert_int_equal(alarms.reserved, reserved);
    assert_int_equal(evl_alarms_reserve(&alarms), EVLOCK_ENOMEM);
    assert_true(evl_alarms_next(&alarms) == 7);
    evl_alarms_unreserve(&alarms);
    assert_int_equal(evl_alarms_reserve(&alarms), EVLOCK_OK);
    counted_fail_after(-1);
    assert_int_equal(evl_alarms_reserve(&alarms), EVLOCK_OK);
    assert_ptr_equal(evl_alarms_due(&alarms, 7), &alarm);
    evl_alarms_clear(&alarms);
    counted_end();
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
    model->at[owner] = at;
}

/** Takes out one alarm that is due at `now`, here and there; 0 when none is. */
static int model_due(struct model *model, int64_t now) {
    int64_t next = model_next(model);
    struct alarm *due = evl_alarms_due(&model->alarms, now);
    if (next > now || next == INT64_MAX) {
        assert_null(due);
        return 0;
    }
    assert_non_null(due);
    assert_true(model->at[due - model->alarm] == next);
    assert_int_equal(due->place, 0);
    model->at[due - model->alarm] = INT64_MAX;
    return 1;
}

static void run_against_model(unsigned seed, int64_t moments) {
    static struct model model;
    model = (struct model){0};
    reserve(&model.alarms, OWNERS);
    for (int i = 0; i < OWNERS; i++)
        model.at[i] = INT64_MAX;
    srandom(seed);
    for (int step = 0; step < STEPS; step++) {
        int owner = (int)(random() % OWNERS);
        int64_t moment = random() % moments - moments / 2;
        switch (random() % 8) {
        case 0:
            model_set(&model, owner, INT64_MAX);
            break;
        case 1:
            model_due(&model, moment);
            break;
        case 2:
            model_set(&model, owner, model.at[owner]);
            break;
        default:
            model_set(&model, owner, moment);
        }
        assert_true(evl_alarms_next(&model.alarms) == model_next(&model));
    }
    while (model_due(&model, INT64_MAX - 1))
        continue;
    assert_int_equal(model.alarms.count, 0);
    evl_alarms_clear(&model.alarms);
}

static void random_steps_agree_with_a_model(void **state) {
    (void)state;
    for (unsigned seed = 1; seed <= 5; seed++) {
        print_message("# seed %u\n", seed);
        run_against_model(seed, 1000000);
        run_against_model(seed, 10); /* mostly equal moments */
    }
}

static int restore(void **state) {
    (void)state;
    counted_end();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_is_due_in_an_empty_set),
        cmocka_unit_test(an_alarm_is_due_at_its_moment_and_once),
        cmocka_unit_test(a_moment_can_be_moved_and_taken_back),
        cmocka_unit_test_teardown(reserved_room_is_enough_to_set, restore),
        cmocka_unit_test_teardown(reserving_can_fail_and_changes_nothing_then, restore),
        cmocka_unit_test(random_steps_agree_with_a_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
