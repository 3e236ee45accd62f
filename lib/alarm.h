/*
 * Alarms: the moments at which a client's many parts want to be woken, in one heap under the client's single timer. It
 * owns the heap's entries; an alarm lies in its owner, which finds itself by it. It never reads a clock, and setting an
 * alarm never fails: room is reserved when the owner is made.
 */
#ifndef EVL_ALARM_H
#define EVL_ALARM_H

#include <stdint.h>

/** What wants to be woken; zeroed at first, and to be taken out before its owner goes. */
struct alarm {
    uint32_t place; /* where in the heap, counted from 1; 0: not set */
    uint8_t kind;   /* the mark by which the owner of the heap knows the owner of the alarm */
};

/** The moment lies here and not in the alarm: comparing entries then touches one array and none of the owners. */
struct alarm_entry {
    int64_t at;
    struct alarm *alarm;
};

/** A set of alarms; zeroed at first. */
struct alarms {
    struct alarm_entry *entries;
    uint32_t count;
    uint32_t capacity;
    uint32_t reserved;
};

/** Makes room for one more alarm, until it is unreserved. Returns EVLOCK_OK or EVLOCK_ENOMEM. */
int evl_alarms_reserve(struct alarms *alarms);

/** Gives up the room of one alarm, which is not set. */
void evl_alarms_unreserve(struct alarms *alarms);

/** Sets an alarm to `at`, in place of what it was set to; INT64_MAX takes it out. */
void evl_alarm_set(struct alarms *alarms, struct alarm *alarm, int64_t at);

/** The earliest moment; INT64_MAX when none is set. */
int64_t evl_alarms_next(const struct alarms *alarms);

/** Takes out and returns the earliest alarm if its moment is `now` or before, else NULL. */
struct alarm *evl_alarms_due(struct alarms *alarms, int64_t now);

/** Frees the heap and leaves it as new, with nothing reserved; alarms that were set are forgotten. */
void evl_alarms_clear(struct alarms *alarms);

#endif
