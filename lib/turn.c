/* The turn; see turn.h. */
#include "turn.h"

#include <stddef.h>
#include <sys/random.h>

#include "bytes.h"
#include "check.h"
#include "minmax.h"

/* Alarms: about a millisecond of work. Other users of the loop have their turn in between. */
#define SLICE 500

/* In microseconds: by how much an alarm is late, at most, while the loop runs; and how long a loop that stood still is
 * given. */
#define STALL 1000
#define RECOVERY_LEAST 20000
#define RECOVERY_MOST 100000

/* --- Its life ----------------------------------------------------------------------------------------------------- */

/* What the timer had come to when it rang the time before last was seen, at the latest, when the loop looked for what
 * made it ring last, and all that it saw then has been read before it looked again. So nothing is given up for want of
 * an answer that lies in a socket. */
static void turn_note_ring(struct turn *turn, int64_t now) {
    turn->read = turn->rings[1];
    if (now >= turn->recovery)
        turn->heard = turn->read;
    turn->rings[1] = turn->rings[0];
    turn->rings[0] = now;
    evl_alarms_resume(&turn->alarms);
}

static void turn_on_timer(void *arg) {
    struct turn *turn = arg;

    turn_note_ring(turn, evl_turn_now(turn));
    if (!evl_turn_enter(turn))
        return;
    turn->armed = INT64_MAX;
    evl_turn_leave(turn);
}

bool evl_turn_init(struct turn *turn, const struct evlock_loop *loop, const struct turn_hooks *hooks,
                   const struct log_sink *log, int64_t recovery_most) {
    turn->loop = *loop;
    turn->hooks = hooks;
    turn->log = *log;
    turn->armed = INT64_MAX;
    turn->looked = evl_turn_now(turn);
    turn->recovery_most = evl_min(RECOVERY_MOST, recovery_most);
    turn->process = evlock_process();
    evl_turn_take(turn);
    if (getrandom(&turn->random, sizeof(turn->random), GRND_NONBLOCK) != sizeof(turn->random))
        turn->random = (uint64_t)evl_turn_now(turn);
    turn->random |= 1; /* xorshift stays at zero */
    turn->timer = turn->loop.ops->timer_new(turn->loop.data, turn_on_timer, turn);
    return turn->timer;
}

void evl_turn_free(struct turn *turn) {
    if (turn->timer && (!evl_turn_forked(turn) || evl_turn_loop_forks(turn)))
        turn->loop.ops->timer_free(turn->timer);
    turn->timer = NULL;
}

void evl_turn_take(struct turn *turn) {
    atomic_store_explicit(&turn->thread, pthread_self(), memory_order_relaxed);
    turn->met = turn->strayed = false;
}

/* In a child nobody hears of it. */
bool evl_turn_may_free(struct turn *turn) {
    if (evl_turn_in_thread(turn))
        return true;
    atomic_store_explicit(&turn->left_unfreed, true, memory_order_relaxed);
    return false;
}

/* xorshift64* */
uint64_t evl_turn_random(struct turn *turn) {
    if (turn->loop.ops->random)
        return turn->loop.ops->random(turn->loop.data);
    turn->random ^= turn->random >> 12;
    turn->random ^= turn->random << 25;
    turn->random ^= turn->random >> 27;
    return turn->random * UINT64_C(2685821657736338717);
}

bool evl_turn_loop_forks(const struct turn *turn) {
    return turn->loop.ops->size > offsetof(evlock_loop_ops, forks) && turn->loop.ops->forks;
}

bool evl_turn_loop_threads(const struct turn *turn) {
    return turn->loop.ops->size > offsetof(evlock_loop_ops, threads) && turn->loop.ops->threads;
}

/* --- Alarms ------------------------------------------------------------------------------------------------------- */

/* What came until it was seen that the loop had stood still has not all been read, for all that is known. */
static bool turn_recovers(const struct turn *turn) {
    return turn->heard < turn->stood;
}

/* What was due and not looked at for more than a moment tells that the loop stood still, here or elsewhere: then
 * commands may not have been written yet, nor connections made. So there is as much time again, within bounds, for them
 * to be answered. Not again before what came until then was read: a loop that is always busy would never end a wait. */
static void turn_note_stall(struct turn *turn, int64_t due, int64_t now) {
    int64_t stood = now - evl_max(turn->looked, due);

    turn->looked = now;
    if (stood > STALL && turn->recovery <= now && !turn_recovers(turn)) {
        turn->stood = now;
        turn->recovery = now + evl_min(evl_max(stood, RECOVERY_LEAST), turn->recovery_most);
    }
}

/* What was not under way when the loop stood still has nothing to make up for. */
static bool turn_is_fresh(const struct turn *turn, int64_t begun) {
    return begun >= turn->stood;
}

void evl_turn_put_off(struct turn *turn, struct alarm *alarm, int64_t begun, int64_t by) {
    if (turn->looked < turn->recovery && !turn_is_fresh(turn, begun))
        evl_turn_wake(turn, alarm, evl_min(by, turn->recovery));
    else
        evl_alarm_put_off(&turn->alarms, alarm, by);
}

bool evl_turn_puts_off(struct turn *turn, struct alarm *alarm, int64_t begun, int64_t limit) {
    if (limit <= (turn_is_fresh(turn, begun) ? turn->read : turn->heard))
        return false;
    if (limit > turn->looked)
        evl_turn_wake(turn, alarm, limit);
    else
        evl_turn_put_off(turn, alarm, begun, INT64_MAX);
    return true;
}

void evl_turn_ring_other(struct alarm *alarm, int64_t now) {
    struct other_alarm *other = EVL_OWNER(struct other_alarm, alarm, alarm);

    other->ring(other, now);
}

bool evl_turn_ring(struct turn *turn, int64_t now) {
    int64_t next = evl_alarms_next(&turn->alarms);
    struct alarm *alarm;
    unsigned left = SLICE;

    assert(turn->depth > 0 && !turn->gathering);
    turn_note_stall(turn, next, now);
    if (next > now)
        return true;
    turn->gathering = true;
    for (; left > 0 && evl_alarms_next(&turn->alarms) <= now; left--)
        if ((alarm = evl_alarms_due(&turn->alarms, now)))
            turn->hooks->ring[alarm->kind](alarm, now);
    turn->gathering = false;
    turn->hooks->rung(turn, now);
    return left > 0;
}

/* --- The brackets ------------------------------------------------------------------------------------------------- */

/* The loop calls from another thread than before. It does so once without being asked: when a program has set up all
 * and starts the thread of its loop. */
static void turn_meet_thread(struct turn *turn) {
    if (!turn->met) {
        evl_turn_take(turn);
        turn->met = true;
    } else if (!turn->strayed) {
        turn->strayed = true;
        evl_log(&turn->log, EVLOCK_LOG_ERROR,
                "the loop runs in another thread than the client's: call evlock_client_move() there");
    }
}

static void turn_log_unfreed(struct turn *turn) {
    atomic_store_explicit(&turn->left_unfreed, false, memory_order_relaxed);
    evl_log(&turn->log, EVLOCK_LOG_ERROR, "another thread than the client's called a free, which freed nothing");
}

bool evl_turn_enter(struct turn *turn) {
    if (evl_turn_forked(turn))
        return false;
    evl_check(evl_turn_check(turn));
    if (!evl_turn_in_thread(turn))
        turn_meet_thread(turn);
    if (atomic_load_explicit(&turn->left_unfreed, memory_order_relaxed))
        turn_log_unfreed(turn);
    turn->now = evl_turn_now(turn);
    if (turn->depth++ == 0)
        evl_turn_ring(turn, turn->now);
    return true;
}

void evl_turn_leave(struct turn *turn) {
    assert(turn->depth > 0 && !turn->gathering);
    if (turn->depth == 1)
        turn->hooks->end(turn);
    if (--turn->depth == 0 && !turn->hooks->left(turn))
        evl_turn_rearm(turn);
}

/* Whoever asks after another asked, and before that was seen, need not set the timer. */
void evl_turn_ask(struct turn *turn) {
    if (!atomic_exchange(&turn->asked, true))
        turn->loop.ops->timer_set(turn->timer, 0);
}

bool evl_turn_asked(struct turn *turn) {
    return atomic_load(&turn->asked) && atomic_exchange(&turn->asked, false);
}

/* When the timer must ring. By its rings alone more is heard, and a recovery comes to its end. */
static int64_t turn_next(const struct turn *turn) {
    int64_t at;

    if (turn->hooks->waiting(turn) || evl_alarms_have_put_off(&turn->alarms))
        return 0;
    at = evl_alarms_next(&turn->alarms);
    return turn_recovers(turn) ? evl_min(at, turn->recovery) : at;
}

/* The timer is set when it must ring earlier than it would; when later, it rings in vain and is set again. Where
 * another thread set it in between, that is done once more: who asks says so first, and sets the timer then. */
void evl_turn_rearm(struct turn *turn) {
    int64_t at;

    if (turn->depth > 0)
        return;
    at = turn_next(turn);
    if (at >= turn->armed || evl_turn_forked(turn))
        return;
    turn->armed = at;
    turn->loop.ops->timer_set(turn->timer, at);
    if (atomic_load(&turn->asked))
        turn->loop.ops->timer_set(turn->timer, 0);
}

/* --- Invariants --------------------------------------------------------------------------------------------------- */
#ifdef EVL_CHECKS

/* Whatever was asked for since the loop called last, the timer rings for it. */
void evl_turn_check(const struct turn *turn) {
    assert(!turn->gathering);
    implies(turn->depth == 0, turn->armed <= turn_next(turn));
}

#endif
