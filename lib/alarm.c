/*
 * Alarms: a radix heap. Every alarm is at or after `base`. One whose moment first differs from it in digit d of level l
 * lies in bucket (l, d); as it is later, d is greater than the base's own digit there. So the first bucket, of the
 * lowest level and in it of the lowest digit, has the earliest alarms; and when the base moves on to the earliest of
 * them, that bucket alone has to be sorted anew, into lower levels.
 */
#include "alarm.h"

#include <stddef.h>

#include "memory.h"

/* How many are sorted anew at a time: what an alarm that rings costs, about, when they lie scattered in memory. */
#define PORTION 12

static unsigned level_of(unsigned bucket) {
    return bucket / ALARM_DIGITS;
}

static unsigned bucket_of(const struct alarms *alarms, int64_t at) {
    uint64_t differ = (uint64_t)(at ^ alarms->base);
    unsigned level = differ ? (63 - (unsigned)__builtin_clzll(differ)) / ALARM_BITS : 0;

    return level * ALARM_DIGITS + (unsigned)(at >> level * ALARM_BITS) % ALARM_DIGITS;
}

/* There must be an alarm. */
static unsigned first_bucket(const struct alarms *alarms) {
    unsigned level = (unsigned)__builtin_ctz(alarms->levels);

    return level * ALARM_DIGITS + (unsigned)__builtin_ctz(alarms->digits[level]);
}

static void put(struct alarms *alarms, struct alarm *alarm) {
    unsigned index = bucket_of(alarms, alarm->at), level = level_of(index);
    struct alarm_bucket *bucket = &alarms->buckets[index];
    uint16_t bit = (uint16_t)(1U << index % ALARM_DIGITS);

    if (!(alarms->digits[level] & bit)) {
        alarms->digits[level] |= bit;
        alarms->levels |= (uint16_t)(1U << level);
        TAILQ_INIT(&bucket->alarms);
        bucket->earliest = alarm->at;
    } else if (alarm->at < bucket->earliest) {
        bucket->earliest = alarm->at;
    }
    TAILQ_INSERT_TAIL(&bucket->alarms, alarm, link);
    alarm->bucket = (uint8_t)index;
    alarm->set = true;
}

static void empty(struct alarms *alarms, unsigned index) {
    alarms->digits[level_of(index)] &= (uint16_t) ~(1U << index % ALARM_DIGITS);
    if (!alarms->digits[level_of(index)])
        alarms->levels &= (uint16_t) ~(1U << level_of(index));
    if (alarms->unsorted == index)
        alarms->unsorted = 0;
}

static void take_out(struct alarms *alarms, struct alarm *alarm) {
    struct alarm_bucket *bucket = &alarms->buckets[alarm->bucket];

    TAILQ_REMOVE(&bucket->alarms, alarm, link);
    if (TAILQ_EMPTY(&bucket->alarms))
        empty(alarms, alarm->bucket);
    alarm->set = false;
}

void evl_alarm_set(struct alarms *alarms, struct alarm *alarm, int64_t at) {
    if (at < alarms->base)
        at = alarms->base;
    if (alarm->set && alarm->at == at)
        return;
    if (alarm->set)
        take_out(alarms, alarm);
    if (at == INT64_MAX)
        return;
    alarm->at = at;
    put(alarms, alarm);
}

int64_t evl_alarms_next(const struct alarms *alarms) {
    if (alarms->unsorted)
        return alarms->base;
    return alarms->levels ? alarms->buckets[first_bucket(alarms)].earliest : INT64_MAX;
}

static void sort_some(struct alarms *alarms) {
    struct alarm_bucket *bucket = &alarms->buckets[alarms->unsorted];
    struct alarm *alarm;

    for (int i = 0; i < PORTION && alarms->unsorted; i++) {
        alarm = TAILQ_FIRST(&bucket->alarms);
        take_out(alarms, alarm);
        put(alarms, alarm);
    }
}

struct alarm *evl_alarms_due(struct alarms *alarms, int64_t now) {
    struct alarm *alarm;
    unsigned first;

    if (!alarms->levels || evl_alarms_next(alarms) > now)
        return NULL;
    if (!alarms->unsorted) {
        first = first_bucket(alarms);
        if (level_of(first) == 0) { /* all of this bucket are of the same moment */
            alarm = TAILQ_FIRST(&alarms->buckets[first].alarms);
            if (TAILQ_NEXT(alarm, link)) /* its owner will be asked for next */
                prefetch(TAILQ_NEXT(alarm, link), OWNER_SIZE);
            take_out(alarms, alarm);
            return alarm;
        }
        alarms->unsorted = (uint8_t)first;
        alarms->base = alarms->buckets[first].earliest;
    }
    sort_some(alarms);
    return NULL;
}
