/*
 * Alarms: the moments at which a client's many parts want to be woken, under the client's single timer. They lie in
 * their owners, linked in buckets by the leading digit in which their moment differs from the present: the farther off,
 * the wider the bucket, and it is sorted finer when its time comes. Those that are set one after the other to the same
 * moment are a group, which is sorted as one. So setting one takes a few steps whatever their number, and cannot fail.
 * Those that are put off lie in a list of their own until something else than time goes on. It never reads a clock and
 * never allocates.
 */
#ifndef EVL_ALARM_H
#define EVL_ALARM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define ALARM_BITS 4 /* of a digit */
#define ALARM_DIGITS (1 << ALARM_BITS)
#define ALARM_MOMENT_BITS 52 /* a century and more, in microseconds */
#define ALARM_LEVELS (ALARM_MOMENT_BITS / ALARM_BITS)
#define ALARM_GROUPS 64

/* What wants to be woken; zeroed at first, and to be taken out before its owner goes. Small, for there may be very
 * many. */
struct alarm {
    TAILQ_ENTRY(alarm) link;
    uint64_t at : ALARM_MOMENT_BITS;
    uint64_t bucket : 8;
    uint64_t kind : 2; /* the mark by which the owner of the set knows the owner of the alarm */
    uint64_t set : 1;
    uint64_t group : 1; /* it stands for a group */
};

/* One that says by itself who is to be called, and has no kind of its own: for those of which there are few. */
struct other_alarm {
    struct alarm alarm;
    void (*ring)(struct other_alarm *other, int64_t now);
};

TAILQ_HEAD(alarm_list, alarm);

struct alarm_bucket {
    struct alarm_list alarms;
    int64_t earliest; /* no alarm of the bucket is due before */
};

/* Alarms of one moment; there is one while it has members, and its own alarm is set for them. */
struct alarm_group {
    struct alarm alarm;
    struct alarm_list members;
};

/* A set of alarms; zeroed at first. */
struct alarms {
    int64_t base;                  /* no alarm is before it, and it is not after the clock */
    uint8_t unsorted;              /* the bucket that is being sorted anew; 0: none */
    uint16_t levels;               /* by bit: those that have an alarm */
    uint16_t digits[ALARM_LEVELS]; /* by bit: the buckets that have one; the others are not initialised */
    struct alarm_bucket buckets[ALARM_LEVELS * ALARM_DIGITS];
    struct alarm_group groups[ALARM_GROUPS];
    uint16_t owner_size;       /* of the owners of which there are many: they are fetched ahead; */
    uint16_t before;           /* so much of one lies before its alarm */
    struct alarm *last;        /* the one that was set last without a group to join */
    struct alarm_list put_off; /* initialised while it has one */
    int64_t put_off_until;     /* none of these is due by its moment before */
    struct alarm *resumed;     /* the last of these that is due nevertheless; NULL: none is */
};

/* Sets an alarm to `at`, in place of what it was set to; INT64_MAX takes it out. What is long past is due at once;
 * what is more than a century off, in a century. */
void evl_alarm_set(struct alarms *alarms, struct alarm *alarm, int64_t at);

/* Puts an alarm off, in place of what it was set to: it is due when evl_alarms_resume() is called next, or at `by`. */
void evl_alarm_put_off(struct alarms *alarms, struct alarm *alarm, int64_t by);

/* All that were put off until now are due. */
void evl_alarms_resume(struct alarms *alarms);

/* Whether it is put off. */
bool evl_alarm_is_put_off(const struct alarm *alarm);

/* Whether any is. */
static inline bool evl_alarms_have_put_off(const struct alarms *alarms) {
    return alarms->put_off.tqh_first;
}

/* No alarm is due before this; INT64_MAX when none is set. It may be too early where one was taken out. */
int64_t evl_alarms_next(const struct alarms *alarms);

/* Goes on towards the earliest alarm: takes it out and returns it, or does a little of what has to be done before, and
 * returns NULL. To be called when the moment of evl_alarms_next() has come, and while it has. Those that were put off
 * come after those whose moment has come by `now`. */
struct alarm *evl_alarms_due(struct alarms *alarms, int64_t now);

#endif
