/*
 * Alarms: a min-heap with four children to a node, which is shallower than a binary one and keeps siblings in one cache
 * line. It owns the heap's entries and keeps each alarm's place up to date. It never reads a clock.
 */
#include "alarm.h"

#include <string.h>

#include <evlock/evlock.h>

#include "memory.h"

#define ARITY 4
#define FIRST_CAPACITY 16

int evl_alarms_reserve(struct alarms *alarms) {
    if (alarms->reserved == alarms->capacity) {
        if (alarms->capacity > UINT32_MAX / 2 / sizeof *alarms->entries)
            return EVLOCK_ENOMEM;
        uint32_t capacity = alarms->capacity ? alarms->capacity * 2 : FIRST_CAPACITY;
        struct alarm_entry *entries = evl_resize(alarms->entries, capacity * sizeof *entries);
        if (!entries)
            return EVLOCK_ENOMEM;
        alarms->entries = entries;
        alarms->capacity = capacity;
    }
    alarms->reserved++;
    return EVLOCK_OK;
}

void evl_alarms_unreserve(struct alarms *alarms) {
    alarms->reserved--;
}

void evl_alarms_clear(struct alarms *alarms) {
    evl_free(alarms->entries);
    memset(alarms, 0, sizeof *alarms);
}

static void put(struct alarms *alarms, uint32_t index, struct alarm_entry entry) {
    alarms->entries[index] = entry;
    entry.alarm->place = index + 1;
}

/** Moves the hole at `index` up to where `entry` may stand, and puts it there. */
static void sift_up(struct alarms *alarms, uint32_t index, struct alarm_entry entry) {
    while (index > 0) {
        uint32_t parent = (index - 1) / ARITY;
        if (alarms->entries[parent].at <= entry.at)
            break;
        put(alarms, index, alarms->entries[parent]);
        index = parent;
    }
    put(alarms, index, entry);
}

/** Moves the hole at `index` down to where `entry` may stand, and puts it there. */
static void sift_down(struct alarms *alarms, uint32_t index, struct alarm_entry entry) {
    for (;;) {
        uint64_t child = (uint64_t)index * ARITY + 1;
        if (child >= alarms->count)
            break;
        uint64_t end = child + ARITY < alarms->count ? child + ARITY : alarms->count;
        uint32_t least = (uint32_t)child;
        for (child++; child < end; child++)
            if (alarms->entries[child].at < alarms->entries[least].at)
                least = (uint32_t)child;
        if (entry.at <= alarms->entries[least].at)
            break;
        put(alarms, index, alarms->entries[least]);
        index = least;
    }
    put(alarms, index, entry);
}

/** Fills the hole at `index` with `entry`, which may belong above it or below it. */
static void settle(struct alarms *alarms, uint32_t index, struct alarm_entry entry) {
    if (index > 0 && entry.at < alarms->entries[(index - 1) / ARITY].at)
        sift_up(alarms, index, entry);
    else
        sift_down(alarms, index, entry);
}

static void take_out(struct alarms *alarms, struct alarm *alarm) {
    uint32_t index = alarm->place - 1;
    alarm->place = 0;
    alarms->count--;
    if (index < alarms->count)
        settle(alarms, index, alarms->entries[alarms->count]);
}

void evl_alarm_set(struct alarms *alarms, struct alarm *alarm, int64_t at) {
    struct alarm_entry entry = {at, alarm};
    if (at == INT64_MAX) {
        if (alarm->place)
            take_out(alarms, alarm);
    } else if (!alarm->place) {
        sift_up(alarms, alarms->count++, entry);
    } else if (alarms->entries[alarm->place - 1].at != at) {
        settle(alarms, alarm->place - 1, entry);
    }
}

int64_t evl_alarms_next(const struct alarms *alarms) {
    return alarms->count ? alarms->entries[0].at : INT64_MAX;
}

struct alarm *evl_alarms_due(struct alarms *alarms, int64_t now) {
    if (alarms->count == 0 || alarms->entries[0].at > now)
        return NULL;
    struct alarm *alarm = alarms->entries[0].alarm;
    take_out(alarms, alarm);
    return alarm;
}
