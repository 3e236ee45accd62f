/*
 * The turn: the ground on which everything of a client stands. It has the loop's clock and one timer, the alarms under
 * that timer, randomness for jitter, the marks of the process and the thread that it belongs to, the sink for log
 * lines, and the brackets through which everything passes that the loop starts. It owns the timer. It knows neither
 * servers nor locks: what an alarm leads to, and what the end of a turn is for, are hooks of its owner.
 *
 * All moments and spans are in microseconds.
 */
#ifndef EVL_TURN_H
#define EVL_TURN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <evlock/loop.h>

#include "alarm.h"
#include "log.h"

/* Who may set an alarm: its `kind`, by which the owner of the turn finds what the alarm leads to. */
enum alarm_kind { ALARM_CONNECTION, ALARM_TENURE, ALARM_CALL, ALARM_OTHER, ALARM_KINDS };

struct turn;

/* What the owner of a turn does with it. */
struct turn_hooks {
    /* An alarm of this kind rang. */
    void (*ring[ALARM_KINDS])(struct alarm *alarm, int64_t now);
    /* A slice of what was due has rung. */
    void (*rung)(struct turn *turn, int64_t now);
    /* The loop is about to get control back, and nothing that it called into is on the stack: the place to call users,
     * and to write. */
    void (*end)(struct turn *turn);
    /* The brackets have been left; true: the turn's memory is gone by that. */
    bool (*left)(struct turn *turn);
    /* Something is to be done in a turn of its own, soon, which no alarm is set for. */
    bool (*waiting)(const struct turn *turn);
};

struct turn {
    struct evlock_loop loop;
    const struct turn_hooks *hooks;
    struct log_sink log;
    void *timer;
    int64_t armed;         /* what the timer is set to */
    int64_t now;           /* the clock when the loop last called in */
    int64_t looked;        /* the clock when it was last looked at what is due */
    int64_t rings[2];      /* and when the timer rang last, and the time before */
    int64_t read;          /* what had come by then has been read */
    int64_t heard;         /* the same, for what was under way when the loop stood still: not before `recovery` */
    int64_t stood;         /* when it was seen that the loop had stood still; */
    int64_t recovery;      /* until then nothing more counts as heard */
    int64_t recovery_most; /* so long a recovery lasts at most */
    struct alarms alarms;
    uint64_t random;
    uint32_t process;          /* that it was made in; see evlock_process() */
    unsigned depth;            /* of enter and leave */
    bool gathering;            /* what may be sent together waits for the others */
    bool met;                  /* the loop has called in from another thread, and the turn went over to it; */
    bool strayed;              /* and from yet another, without being moved there */
    atomic_bool asked;         /* another thread wants a turn soon */
    atomic_bool left_unfreed;  /* another thread wanted to free something; to be logged */
    _Atomic(pthread_t) thread; /* that it belongs to; what follows from that, any thread may ask */
};

/* Sets up a turn of zeroed memory; false: the loop has no timer to give. */
bool evl_turn_init(struct turn *turn, const struct evlock_loop *loop, const struct turn_hooks *hooks,
                   const struct log_sink *log, int64_t recovery_most);

/* Frees what it owns, the timer, but for its own memory. In a forked child it may be the parent's, which only some
 * loops know how to leave alone. */
void evl_turn_free(struct turn *turn);

/* The clock, read afresh. */
static inline int64_t evl_turn_now(const struct turn *turn) {
    return turn->loop.ops->now(turn->loop.data);
}

/* Random bits: jitter needs them to differ, not to be secret. */
uint64_t evl_turn_random(struct turn *turn);

/* Whether this process is a forked child of the one that the turn was made in. */
static inline bool evl_turn_forked(const struct turn *turn) {
    return turn->process != evlock_process();
}

/* Whether the caller is in the thread that the turn belongs to. */
static inline bool evl_turn_in_thread(const struct turn *turn) {
    return pthread_equal(atomic_load_explicit(&turn->thread, memory_order_relaxed), pthread_self());
}

/* Gives the turn to the caller's thread. Nobody else is at it. */
void evl_turn_take(struct turn *turn);

/* Whether the caller may free what stands on the turn: not from another thread, which is logged later. */
bool evl_turn_may_free(struct turn *turn);

/* Whether the loop knows how to leave alone in a forked child what is the parent's. */
bool evl_turn_loop_forks(const struct turn *turn);

/* Whether the loop's timers may be set from any thread. */
bool evl_turn_loop_threads(const struct turn *turn);

/* Sets an alarm, in place of what it was set to; INT64_MAX takes it out. */
static inline void evl_turn_wake(struct turn *turn, struct alarm *alarm, int64_t at) {
    evl_alarm_set(&turn->alarms, alarm, at);
}

/* From any thread: the loop is to take a turn soon, which finds that it was asked to. The loop must know of threads. */
void evl_turn_ask(struct turn *turn);

/* Whether it was asked to, since this was last called. */
bool evl_turn_asked(struct turn *turn);

/* The first bracket of whatever the loop starts: a socket, the timer, a resolution. False in a forked child, which must
 * do nothing. */
bool evl_turn_enter(struct turn *turn);

/* The second, after a first that was true. The turn may be gone by that. */
void evl_turn_leave(struct turn *turn);

/* The hook for ALARM_OTHER. */
void evl_turn_ring_other(struct alarm *alarm, int64_t now);

/* Looks at what is due, and lets a slice of it ring; true: that was all. */
bool evl_turn_ring(struct turn *turn, int64_t now);

/* After a user's call: what it left to be done or woken is seen to on a later turn of the loop. */
void evl_turn_rearm(struct turn *turn);

/* What was begun at `begun` is not to be given up before more has been read: its alarm rings when that has, or at `by`
 * for something else. However often a turn looks at what is due, it does not ring for this again in the same turn. */
void evl_turn_put_off(struct turn *turn, struct alarm *alarm, int64_t begun, int64_t by);

/* An alarm rang, which would give up what was begun at `begun`, because no answer came by `limit`. True: not all that
 * had come by then was read yet, so the alarm is set anew. */
bool evl_turn_puts_off(struct turn *turn, struct alarm *alarm, int64_t begun, int64_t limit);

/* Asserts what must be true while the loop has control; see check.h. */
void evl_turn_check(const struct turn *turn);

#endif
