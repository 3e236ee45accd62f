/*
 * Alarms: a radix heap. Every alarm is at or after `base`. One whose moment first differs from it in digit d of level l
 * lies in bucket (l, d); as it is later, d is greater than the base's own digit there. So the first bucket, of the
 * lowest level and in it of the lowest digit, has the earliest alarms; and when the base moves on to the earliest of
 * them, that bucket alone has to be sorted anew, into lower levels.
 *
 * To sort one means to fetch it from memory. So the members of a group lie in no bucket: the group's alarm does, until
 * the last of them is gone.
 */
#include "alarm.h"

#include <stddef.h>

#include "check.h"
#include "minmax.h"
#include "prefetch.h"

#define LAST_MOMENT ((INT64_C(1) << ALARM_MOMENT_BITS) - 1)

/* How many are sorted anew at a time: what an alarm that rings costs, about, when they lie scattered in memory. */
#define PORTION 12

/* In place of a bucket: in a group, or put off. */
#define GROUPED 0xff
#define PUT_OFF 0xfe

_Static_assert(ALARM_LEVELS *ALARM_DIGITS <= PUT_OFF, "buckets are told apart from what is in place of one");

/* --- Buckets ------------------------------------------------------------------------------------------------------ */

static unsigned alarm_level_of(unsigned bucket) {
    return bucket / ALARM_DIGITS;
}

static unsigned alarm_bucket_of(const struct alarms *alarms, int64_t at) {
    uint64_t differ = (uint64_t)(at ^ alarms->base);
    unsigned level = differ ? (63 - (unsigned)__builtin_clzll(differ)) / ALARM_BITS : 0;

    return level * ALARM_DIGITS + (unsigned)(at >> level * ALARM_BITS) % ALARM_DIGITS;
}

/* There must be an alarm. */
static unsigned alarm_first_bucket(const struct alarms *alarms) {
    unsigned level = (unsigned)__builtin_ctz(alarms->levels);

    return level * ALARM_DIGITS + (unsigned)__builtin_ctz(alarms->digits[level]);
}

static void alarm_put(struct alarms *alarms, struct alarm *alarm) {
    int64_t at = (int64_t)alarm->at;
    unsigned index = alarm_bucket_of(alarms, at), level = alarm_level_of(index);
    struct alarm_bucket *bucket = &alarms->buckets[index];
    uint16_t bit = (uint16_t)(1U << index % ALARM_DIGITS);

    assert(at >= alarms->base);
    if (!(alarms->digits[level] & bit)) {
        alarms->digits[level] |= bit;
        alarms->levels |= (uint16_t)(1U << level);
        TAILQ_INIT(&bucket->alarms);
        bucket->earliest = at;
    } else if (at < bucket->earliest) {
        bucket->earliest = at;
    }
    TAILQ_INSERT_TAIL(&bucket->alarms, alarm, link);
    alarm->bucket = index & 0xff;
}

static void alarm_empty(struct alarms *alarms, unsigned index) {
    alarms->digits[alarm_level_of(index)] &= (uint16_t) ~(1U << index % ALARM_DIGITS);
    if (!alarms->digits[alarm_level_of(index)])
        alarms->levels &= (uint16_t) ~(1U << alarm_level_of(index));
    if (alarms->unsorted == index)
        alarms->unsorted = 0;
}

static void alarm_take_out(struct alarms *alarms, struct alarm *alarm) {
    struct alarm_bucket *bucket = &alarms->buckets[alarm->bucket];

    assert((int64_t)alarm->at >= bucket->earliest);
    assert(alarms->digits[alarm_level_of(alarm->bucket)] & 1U << alarm->bucket % ALARM_DIGITS);
    TAILQ_REMOVE(&bucket->alarms, alarm, link);
    if (TAILQ_EMPTY(&bucket->alarms))
        alarm_empty(alarms, alarm->bucket);
}

/* --- Groups ------------------------------------------------------------------------------------------------------- */

/* The only one in which alarms of this moment can be. */
static struct alarm_group *alarm_group_of(struct alarms *alarms, uint64_t at) {
    return &alarms->groups[at * UINT64_C(0x9E3779B97F4A7C15) >> 32 & (ALARM_GROUPS - 1)];
}

static void alarm_join(struct alarm_group *group, struct alarm *alarm) {
    TAILQ_INSERT_TAIL(&group->members, alarm, link);
    alarm->bucket = GROUPED;
}

static void alarm_found(struct alarms *alarms, struct alarm_group *group, struct alarm *first) {
    group->alarm.at = first->at;
    group->alarm.group = group->alarm.set = 1;
    TAILQ_INIT(&group->members);
    alarm_put(alarms, &group->alarm);
    alarm_take_out(alarms, first);
    alarm_join(group, first);
}

static void alarm_quit(struct alarms *alarms, struct alarm *alarm) {
    struct alarm_group *group = alarm_group_of(alarms, alarm->at);

    assert(group->alarm.set && group->alarm.at == alarm->at);
    TAILQ_REMOVE(&group->members, alarm, link);
    if (!TAILQ_EMPTY(&group->members))
        return;
    alarm_take_out(alarms, &group->alarm);
    group->alarm.set = 0;
}

/* --- Put off ------------------------------------------------------------------------------------------------------ */

bool evl_alarm_is_put_off(const struct alarm *alarm) {
    return alarm->set && alarm->bucket == PUT_OFF;
}

static void alarm_bring_back(struct alarms *alarms, struct alarm *alarm) {
    if (alarms->resumed == alarm)
        alarms->resumed = TAILQ_PREV(alarm, alarm_list, link);
    TAILQ_REMOVE(&alarms->put_off, alarm, link);
}

void evl_alarms_resume(struct alarms *alarms) {
    if (!evl_alarms_have_put_off(alarms))
        return;
    alarms->resumed = TAILQ_LAST(&alarms->put_off, alarm_list);
    alarms->put_off_until = INT64_MAX;
}

/* --- The set ------------------------------------------------------------------------------------------------------ */

static void alarm_enter(struct alarms *alarms, struct alarm *alarm) {
    struct alarm_group *group = alarm_group_of(alarms, alarm->at);

    if (!group->alarm.set && alarms->last && alarms->last->at == alarm->at)
        alarm_found(alarms, group, alarms->last);
    if (group->alarm.set && group->alarm.at == alarm->at) {
        alarm_join(group, alarm);
    } else {
        alarm_put(alarms, alarm);
        alarms->last = alarm;
    }
    alarm->set = 1;
}

/* This and alarm_move() are not inlined, so that a call that changes nothing, as most do, is short. */
__attribute__((noinline)) static void alarm_leave(struct alarms *alarms, struct alarm *alarm) {
    if (alarm->bucket == GROUPED)
        alarm_quit(alarms, alarm);
    else if (alarm->bucket == PUT_OFF)
        alarm_bring_back(alarms, alarm);
    else
        alarm_take_out(alarms, alarm);
    if (alarms->last == alarm)
        alarms->last = NULL;
    alarm->set = 0;
}

__attribute__((noinline)) static void alarm_move(struct alarms *alarms, struct alarm *alarm, int64_t at) {
    at = evl_max(evl_min(at, LAST_MOMENT), alarms->base);
    if (alarm->set && (int64_t)alarm->at == at && alarm->bucket != PUT_OFF)
        return;
    if (alarm->set)
        alarm_leave(alarms, alarm);
    alarm->at = (uint64_t)at & LAST_MOMENT;
    alarm_enter(alarms, alarm);
}

void evl_alarm_set(struct alarms *alarms, struct alarm *alarm, int64_t at) {
    if (at != INT64_MAX)
        alarm_move(alarms, alarm, at);
    else if (alarm->set)
        alarm_leave(alarms, alarm);
}

void evl_alarm_put_off(struct alarms *alarms, struct alarm *alarm, int64_t by) {
    if (alarm->set)
        alarm_leave(alarms, alarm);
    if (TAILQ_EMPTY(&alarms->put_off)) {
        TAILQ_INIT(&alarms->put_off);
        alarms->put_off_until = by;
    }
    TAILQ_INSERT_TAIL(&alarms->put_off, alarm, link);
    alarms->put_off_until = evl_min(alarms->put_off_until, by);
    alarm->at = (uint64_t)evl_min(by, LAST_MOMENT) & LAST_MOMENT;
    alarm->bucket = PUT_OFF;
    alarm->set = 1;
}

/* Of those that are sorted. */
static int64_t alarms_next_moment(const struct alarms *alarms) {
    if (alarms->unsorted)
        return alarms->base;
    return alarms->levels ? alarms->buckets[alarm_first_bucket(alarms)].earliest : INT64_MAX;
}

int64_t evl_alarms_next(const struct alarms *alarms) {
    int64_t next = alarms_next_moment(alarms);

    if (!evl_alarms_have_put_off(alarms))
        return next;
    return evl_min(next, alarms->resumed ? alarms->base : alarms->put_off_until);
}

static void alarm_sort_some(struct alarms *alarms) {
    struct alarm_bucket *bucket = &alarms->buckets[alarms->unsorted];
    struct alarm *alarm;

    for (int i = 0; i < PORTION && alarms->unsorted; i++) {
        alarm = TAILQ_FIRST(&bucket->alarms);
        alarm_take_out(alarms, alarm);
        alarm_put(alarms, alarm);
    }
}

/* The first of those that are of one moment. The owners of the next will be asked for soon. */
static struct alarm *alarm_take_first(struct alarms *alarms, struct alarm_list *list) {
    struct alarm *alarm = TAILQ_FIRST(list), *next;

    if (alarm->group)
        alarm = TAILQ_FIRST(&alarm_group_of(alarms, alarm->at)->members);
    next = TAILQ_NEXT(alarm, link);
    if (next && TAILQ_NEXT(next, link))
        evl_prefetch(TAILQ_NEXT(next, link), -(ptrdiff_t)alarms->before, alarms->owner_size);
    alarm_leave(alarms, alarm);
    return alarm;
}

/* Where the moment of one has come, each is looked at. */
static struct alarm *alarms_take_put_off(struct alarms *alarms) {
    if (!alarms->resumed)
        evl_alarms_resume(alarms);
    return alarm_take_first(alarms, &alarms->put_off);
}

struct alarm *evl_alarms_due(struct alarms *alarms, int64_t now) {
    unsigned first;

    if (evl_alarms_have_put_off(alarms) && alarms_next_moment(alarms) > now)
        return alarms_take_put_off(alarms);
    assert(alarms->levels && !(alarms->unsorted && alarm_level_of(alarms->unsorted) == 0));
    if (!alarms->unsorted) {
        first = alarm_first_bucket(alarms);
        if (alarm_level_of(first) == 0) /* all of this bucket are of one moment */
            return alarm_take_first(alarms, &alarms->buckets[first].alarms);
        alarms->unsorted = (uint8_t)first;
        alarms->base = alarms->buckets[first].earliest;
    }
    alarm_sort_some(alarms);
    return NULL;
}
