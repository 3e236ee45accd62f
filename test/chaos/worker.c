/* The contending process; see worker.h. All that is drawn comes from its seed. */
#include "worker.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <unistd.h>

#include <evlock/evlock.h>
#include <evlock/loop.h>

#include "../redis/loops.h"
#include "../urls.h"
#include "passing.h"

enum {
    PATIENT_TURNS = 3, /* after a deadline has passed, by the end of which its loss must have been told */
    CLOSING_MS = 30 * 1000,
};

struct worker;

/* One lock at a time, in one of the worker's hands. */
struct hand {
    struct worker *worker;
    int number;
    int serial; /* of its handles */
    evlock *lock;
    const struct name *name;
    enum { IDLE, ACQUIRING, HOLDING, RELEASING, ADOPTING } state;
    bool alone;        /* what it takes is not passed on */
    int64_t called;    /* the acquire */
    int64_t wake;      /* idle: when to acquire */
    int64_t cancel_at; /* acquiring */
    struct belief *belief;
    int64_t deadline; /* what the library said last */
    int64_t ceiling;  /* while an extension is unanswered: what it may leave */
    int64_t enough;   /* when to let go */
    int64_t meddle;   /* when to extend or to ask */
    int overdue;      /* turns since the deadline passed, without a word */
    bool lost;
    bool decided; /* its acquire has failed, and is to be reported in the next turn */
};

/* One call on the library that is to be answered once. Kept to the end, so that a second answer is found. */
struct call {
    LIST_ENTRY(call) link;
    struct hand *hand;
    enum operation what;
    bool inside;  /* it has not returned yet */
    bool freed;   /* its handle was freed meanwhile */
    bool settled; /* it was answered, or refused: then no answer must come */
};

struct worker {
    struct employment employment;
    const struct mode *mode;
    struct diary *diary;
    struct test_loop *loop;
    evlock_client *client;
    struct hand hands[HANDS_MAX];
    int hands_len;
    struct passing passing;
    LIST_HEAD(, call) pending;
    LIST_HEAD(, call) settled;
    bool finishing;
    bool closed;
};

static long blocks; /* of the library's memory */

/* --- What is drawn ------------------------------------------------------------------------------------------------ */

static bool chance(int percent) {
    return random() % 100 < percent;
}

static int64_t ms_from(int64_t now, int64_t most_ms) {
    return now + random() % (most_ms * 1000 + 1);
}

static bool calm(const struct worker *worker) {
    return atomic_load(&worker->employment.history->phase) == CALM;
}

/* Such a process may have what is long, so it has to give it back. */
static bool steady(const struct worker *worker) {
    return worker->employment.number < STEADY;
}

static int name_index(const struct hand *hand) {
    return (int)(hand->name - hand->worker->mode->names);
}

#define complain(hand, ...) history_complain((hand)->worker->diary, name_index(hand), __VA_ARGS__)

/* --- Calls and their answers -------------------------------------------------------------------------------------- */

static struct call *call_new(struct hand *hand, enum operation what) {
    struct call *call = calloc(1, sizeof(*call));
    if (!call)
        exit(2);
    *call = (struct call){.hand = hand, .what = what, .inside = true};
    LIST_INSERT_HEAD(&hand->worker->pending, call, link);
    hand->worker->diary->operations[what]++;
    return call;
}

static void call_settle(struct call *call) {
    call->settled = true;
    LIST_REMOVE(call, link);
    LIST_INSERT_HEAD(&call->hand->worker->settled, call, link);
}

/* The call has returned this; true if it was accepted. */
static bool call_made(struct call *call, int status) {
    call->inside = false;
    if (status != EVLOCK_OK && !call->settled)
        call_settle(call);
    return status == EVLOCK_OK;
}

/* Takes an answer; false if the hand has nothing to do with it any more. */
static bool call_answered(struct call *call, const evlock *lock, int status) {
    const char *what = operation_names[call->what];
    if (call->settled) {
        complain(call->hand, "%s was answered once more: %s", what, evlock_strerror(status));
        return false;
    }
    if (call->inside)
        complain(call->hand, "%s was answered before it had returned", what);
    if (lock != (call->freed ? NULL : call->hand->lock))
        complain(call->hand, "%s was answered with the wrong handle", what);
    if (call->freed && call->what == ACQUIRE && status == EVLOCK_OK)
        complain(call->hand, "a freed handle was granted the lock");
    if (call->hand->worker->finishing && call->what == ACQUIRE && status == EVLOCK_OK)
        complain(call->hand, "granted after the client's end");
    call_settle(call);
    return !call->freed && !call->hand->worker->finishing;
}

static void check_calls(struct worker *worker) {
    struct call *call;
    while ((call = LIST_FIRST(&worker->settled)) != NULL) {
        LIST_REMOVE(call, link);
        free(call);
    }
    LIST_FOREACH (call, &worker->pending, link)
        complain(call->hand, "%s was never answered", operation_names[call->what]);
}

/* --- Handles ------------------------------------------------------------------------------------------------------ */

static void rest(struct hand *hand, int64_t most_ms) {
    hand->state = IDLE;
    hand->wake = ms_from(evlock_clock_us(), most_ms);
}

/* Takes note until when the lock may be believed in, seen from `now`. That was read before: so a stop of this process
 * in between makes the belief too short, and never too long. */
static void believe(struct hand *hand) {
    int64_t now = evlock_clock_us();
    int64_t remaining = evlock_remaining_ms(hand->lock);
    if (!evlock_is_held(hand->lock))
        return;
    hand->deadline = now + remaining * 1000 < hand->ceiling ? now + remaining * 1000 : hand->ceiling;
    hand->belief->window.until = hand->deadline;
}

/* On a server that forgets nothing, nobody takes a lease from its holder before its time. */
static void check_robbed(struct hand *hand, int64_t deadline, const char *how) {
    if (hand->worker->mode->bit == SINGLE && evlock_clock_us() < deadline)
        complain(hand, "%s before the deadline", how);
}

static void on_lost(evlock *lock, int reason, void *arg) {
    struct hand *hand = arg;
    int64_t now = evlock_clock_us();
    hand->worker->diary->lost++;
    if (lock != hand->lock || hand->state != HOLDING || hand->lost) {
        complain(hand, "a loss was told %s", hand->lost ? "twice" : "of what was not held");
        return;
    }
    if (evlock_is_held(lock))
        complain(hand, "a loss was told of what is still held");
    if (reason == EVLOCK_ENOTOWNED || reason == EVLOCK_EDATALOSS)
        check_robbed(hand, hand->deadline, evlock_strerror(reason));
    hand->lost = true;
    history_let_go(hand->belief, now);
}

/* On equal terms for all hands of the process, so that these wait together. */
static void add_passing(const struct hand *hand, evlock_options *options) {
    const struct passing *passing = &hand->worker->passing;
    options->auto_renewal = hand->name->renewed && passing->renewal;
    options->wait = passing->queue ? EVLOCK_WAIT_QUEUE : EVLOCK_WAIT_POLL;
    options->max_passes = passing->most;
    options->max_pass_ms = passing_ms(passing, hand->name);
}

static evlock_options options_of(struct hand *hand) {
    evlock_options options = {.size = sizeof(evlock_options)};
    options.ttl_ms = hand->name->ttl_ms;
    options.retry_delay_ms = 30;
    options.retry_jitter = 100;
    options.auto_renewal = hand->name->renewed && chance(40);
    if (hand->worker->employment.passes)
        add_passing(hand, &options);
    options.renewal_interval_ms = options.auto_renewal ? hand->name->ttl_ms / 4 : 0;
    options.min_replicas = hand->name->confirmed;
    options.replica_timeout_ms = hand->name->confirmed ? 150 : 0;
    options.on_lost = on_lost;
    options.arg = hand;
    return options;
}

/* A name that this process may take; what is long is left to the steady ones, so they take it more often. */
static const struct name *choose_name(const struct worker *worker) {
    const struct mode *mode = worker->mode;
    const struct name *name = &mode->names[random() % mode->names_len];
    for (int i = 0; steady(worker) && !name->steady && i < 3; i++)
        name = &mode->names[random() % mode->names_len];
    while (name->steady && !steady(worker))
        name = &mode->names[random() % mode->names_len];
    return name;
}

/* Those who pass leases on want the same, now this and now that. */
static const struct name *choose_wanted(struct worker *worker) {
    if (!worker->passing.wanted || chance(10))
        worker->passing.wanted = choose_name(worker);
    return chance(10) ? choose_name(worker) : worker->passing.wanted;
}

static void take_handle(struct hand *hand) {
    struct worker *worker = hand->worker;
    hand->name = worker->employment.passes ? choose_wanted(worker) : choose_name(worker);
    evlock_options options = options_of(hand);
    hand->serial++;
    if (evlock_new(&hand->lock, hand->worker->client, hand->name->key, EVLOCK_CSTRING, &options) != EVLOCK_OK)
        complain(hand, "no handle: %s", evlock_last_error());
}

/* What is held at `now`, and may be passed on from here on. */
static void end_belief(struct hand *hand, int64_t now) {
    if (!hand->alone && evlock_is_held(hand->lock))
        passing_let_go(&hand->worker->passing, hand->name, now, (evlock_remaining_ms(hand->lock) + 1) * 1000);
    history_let_go(hand->belief, now);
}

/* Frees the handle with all that it does. */
static void drop_handle(struct hand *hand) {
    struct call *call;
    int64_t now = evlock_clock_us();
    LIST_FOREACH (call, &hand->worker->pending, link)
        call->freed |= call->hand == hand;
    if (hand->state == HOLDING)
        end_belief(hand, now);
    else if (hand->state == ACQUIRING)
        passing_left(&hand->worker->passing, hand->name);
    hand->worker->diary->operations[FREE]++;
    evlock_free(hand->lock);
    hand->lock = NULL;
}

static void change_handle(struct hand *hand) {
    drop_handle(hand);
    take_handle(hand);
    rest(hand, 20);
}

/* --- What a hand gets --------------------------------------------------------------------------------------------- */

static int64_t brief_ttl(const struct hand *hand) {
    return hand->name->ttl_ms < MAX_TTL_MS ? hand->name->ttl_ms : MAX_TTL_MS;
}

/* For a moment, for a part of the ttl, or until the lease is lost or must have been renewed. What may be passed
 * on is held more often for so long that it has aged by then: a little, or too much. */
static int64_t hold_until(const struct hand *hand, int64_t now) {
    int64_t ttl = brief_ttl(hand);
    if (calm(hand->worker))
        return ms_from(now, 2);
    int draw = (int)(random() % 100);
    int brief = hand->name->renewed ? 50 : 85;
    if (!hand->alone && draw % 4 == 0)
        return ms_from(now, draw % 8 ? ttl : ttl / 4);
    return draw < brief ? ms_from(now, 3) : draw < 93 ? ms_from(now, ttl) : now + ttl * 2500;
}

static void begin_holding(struct hand *hand, int64_t now) {
    struct diary *diary = hand->worker->diary;
    uint64_t fence = evlock_fence(hand->lock);
    hand->state = HOLDING;
    hand->lost = false;
    hand->overdue = 0;
    hand->deadline = now;
    hand->ceiling = INT64_MAX;
    hand->enough = hold_until(hand, now);
    hand->meddle = chance(70) ? ms_from(now, hand->name->ttl_ms / 5) : INT64_MAX;
    hand->belief = history_believe(diary, hand->worker->employment.number, name_index(hand), hand->called, now, fence);
    believe(hand);
}

/* --- Letting go --------------------------------------------------------------------------------------------------- */

static void on_released(evlock *lock, int status, void *arg) {
    struct call *call = arg;
    struct hand *hand = call->hand;
    if (!call_answered(call, lock, status))
        return;
    if (status == EVLOCK_ENOTOWNED)
        check_robbed(hand, hand->deadline, "the lock was found not owned at its release,");
    if (chance(calm(hand->worker) ? 50 : 10))
        change_handle(hand);
    else
        rest(hand, 5);
}

static void release(struct hand *hand) {
    int64_t now = evlock_clock_us();
    end_belief(hand, now);
    hand->state = RELEASING;
    struct call *call = call_new(hand, RELEASE);
    if (!call_made(call, evlock_release(hand->lock, on_released, call)))
        complain(hand, "a release was refused: %s", evlock_last_error());
    if (evlock_is_held(hand->lock))
        complain(hand, "it is believed in after its release");
}

static void think_again(struct hand *hand) {
    hand->cancel_at = INT64_MAX;
    if (chance(30)) {
        change_handle(hand);
        return;
    }
    hand->worker->diary->operations[CANCEL]++;
    passing_left(&hand->worker->passing, hand->name);
    int status = evlock_cancel(hand->lock);
    hand->decided = status == EVLOCK_ENOTHELD;
    if (status != EVLOCK_OK && !hand->decided)
        complain(hand, "a cancel was refused: %s", evlock_last_error());
}

/* One of those who wait, perhaps before it was told that it has the lease by now. */
static void have_one_think_again(struct worker *worker) {
    struct hand *hand = &worker->hands[random() % worker->hands_len];
    if (hand->state == ACQUIRING && !hand->decided)
        think_again(hand);
}

static void let_go(struct hand *hand) {
    if (chance(5))
        change_handle(hand);
    else
        release(hand);
}

/* --- Holding ------------------------------------------------------------------------------------------------------ */

static void on_extended(evlock *lock, int status, void *arg) {
    struct call *call = arg;
    if (call_answered(call, lock, status))
        call->hand->ceiling = INT64_MAX;
}

/* One that shortens moves the deadline in, at some time between the call and its answer. */
static void extend(struct hand *hand) {
    bool add = chance(50);
    int64_t now = evlock_clock_us();
    int64_t ms = add ? 100 + random() % 200 : 50 + random() % 550;
    struct call *call = call_new(hand, EXTEND);
    hand->ceiling = add ? INT64_MAX : now + ms * 1000;
    believe(hand);
    if (!call_made(call,
                   evlock_extend(hand->lock, ms, add ? EVLOCK_EXTEND_ADD : EVLOCK_EXTEND_REPLACE, on_extended, call)))
        hand->ceiling = INT64_MAX;
}

static void on_asked(evlock *lock, int status, const evlock_answer *answer, void *arg) {
    struct call *call = arg;
    struct hand *hand = call->hand;
    if (!call_answered(call, lock, status) || !answer || answer->locked || answer->owned)
        return;
    if (hand->state == HOLDING && evlock_is_held(lock))
        check_robbed(hand, evlock_clock_us() + evlock_remaining_ms(lock) * 1000, "the token was found missing");
}

static void ask(struct hand *hand) {
    struct call *call = call_new(hand, QUERY);
    unsigned what = chance(50) ? EVLOCK_QUERY_OWNED : EVLOCK_QUERY_LOCKED;
    call_made(call, evlock_query(hand->lock, chance(50) ? what : what | EVLOCK_QUERY_TTL, on_asked, call));
}

static void on_adopted(evlock *lock, int status, void *arg) {
    struct call *call = arg;
    int64_t now = evlock_clock_us();
    if (!call_answered(call, lock, status))
        return;
    if (status == EVLOCK_OK)
        begin_holding(call->hand, now);
    else
        rest(call->hand, 10);
}

/* Takes the lease from its handle, and gives it back: between the two the others have no part in it. */
static void hand_over(struct hand *hand) {
    char token[EVLOCK_TOKEN_MAX];
    size_t len;
    int64_t now = evlock_clock_us();
    if (evlock_export(hand->lock, token, sizeof(token), &len) != EVLOCK_OK)
        return;
    history_let_go(hand->belief, now);
    hand->state = ADOPTING;
    hand->alone = true;
    hand->called = now;
    struct call *call = call_new(hand, ADOPT);
    if (!call_made(call, evlock_adopt(hand->lock, token, len, on_adopted, call)))
        complain(hand, "an adoption was refused: %s", evlock_last_error());
}

/* What the hand does with its lock meanwhile. */
static void meddle(struct hand *hand) {
    hand->meddle = ms_from(evlock_clock_us(), hand->name->ttl_ms);
    if (!evlock_is_held(hand->lock))
        return;
    if (hand->name->renewed && chance(50))
        extend(hand);
    else if (hand->worker->employment.passes && !hand->name->steady && chance(30))
        hand_over(hand);
    else
        ask(hand);
}

static void hold(struct hand *hand, int64_t now) {
    if (hand->lost) {
        let_go(hand);
        return;
    }
    believe(hand);
    if (now >= hand->enough) {
        let_go(hand);
        if (hand->worker->employment.passes && !calm(hand->worker) && chance(5))
            have_one_think_again(hand->worker);
    } else if (now >= hand->meddle) {
        meddle(hand);
    }
}

/* --- Acquiring ---------------------------------------------------------------------------------------------------- */

/* One that was passed on is held beyond its deadline more often, as that may have been taken over wrongly. */
static void inherit(struct hand *hand, int64_t now) {
    struct worker *worker = hand->worker;
    const char *wrong = "it was passed on to one who is to wait alone";
    atomic_fetch_add(&worker->diary->passed, 1);
    if (!hand->alone)
        wrong = passing_passed(&worker->passing, hand->name, hand->belief->window.fence);
    if (wrong)
        complain(hand, "%s", wrong);
    if (!calm(worker) && chance(15))
        hand->enough = now + brief_ttl(hand) * 2500;
}

/* Whether it was passed on is told by the library's counts alone. */
static bool was_passed(struct worker *worker) {
    evlock_stats stats;
    uint64_t before = worker->passing.counted;
    if (evlock_client_stats(worker->client, &stats, sizeof(stats)) != EVLOCK_OK)
        return false;
    worker->passing.counted = stats.passed;
    return stats.passed > before;
}

static void granted(struct hand *hand, int64_t now) {
    struct worker *worker = hand->worker;
    begin_holding(hand, now);
    worker->diary->granted++;
    if ((hand->belief->window.fence != 0) != hand->name->fenced && evlock_is_held(hand->lock))
        complain(hand, "the fence is %llu", (unsigned long long)hand->belief->window.fence);
    if (was_passed(worker))
        inherit(hand, now);
    else if (!hand->alone)
        passing_granted(&worker->passing, hand->name, now, hand->belief->window.fence);
    if (calm(worker))
        atomic_fetch_add(&worker->diary->served[hand->number], 1);
    if (chance(3))
        let_go(hand);
}

static void on_acquired(evlock *lock, int status, void *arg) {
    struct call *call = arg;
    struct hand *hand = call->hand;
    int64_t now = evlock_clock_us();
    if (!call_answered(call, lock, status))
        return;
    if (hand->decided && (status == EVLOCK_OK || status == EVLOCK_ECANCELLED))
        complain(hand, "a cancel found nothing, and then there was: %s", evlock_strerror(status));
    hand->decided = false;
    if (status == EVLOCK_EFENCE)
        complain(hand, "%s", evlock_last_error());
    if (status == EVLOCK_OK)
        granted(hand, now);
    else
        rest(hand, 10);
    if (status != EVLOCK_OK && chance(5))
        change_handle(hand);
}

static void acquire(struct hand *hand, int64_t now) {
    evlock_acquire_options options = {.size = sizeof(evlock_acquire_options)};
    bool patient = calm(hand->worker);
    char token[64];
    options.fence = hand->name->fenced ? EVLOCK_ON : EVLOCK_INHERIT;
    if (!patient && chance(15))
        options.max_attempts = EVLOCK_TRY;
    else if (!patient && chance(40))
        options.max_wait_ms = 50 + random() % 600;
    if (chance(10)) { /* the handle's own, which it uses again */
        snprintf(token, sizeof(token), "%d.%d.%d.%d", hand->worker->employment.number,
                 hand->worker->employment.generation, hand->number, hand->serial);
        options.token = token;
        options.token_len = EVLOCK_CSTRING;
    }
    hand->alone = !hand->worker->employment.passes || options.token || options.max_attempts;
    hand->called = now;
    hand->cancel_at = !patient && chance(5) ? ms_from(now, 50) : INT64_MAX;
    hand->state = ACQUIRING;
    struct call *call = call_new(hand, ACQUIRE);
    if (!call_made(call, evlock_acquire(hand->lock, &options, on_acquired, call)))
        complain(hand, "an acquire was refused: %s", evlock_last_error());
}

/* --- Turns -------------------------------------------------------------------------------------------------------- */

static void step(struct hand *hand) {
    int64_t now = evlock_clock_us();
    if (hand->state == IDLE && now >= hand->wake)
        acquire(hand, now);
    else if (hand->state == ACQUIRING && now >= hand->cancel_at)
        think_again(hand);
    else if (hand->state == HOLDING)
        hold(hand, now);
}

/* A lease whose deadline has passed is told lost by the first code of the library that runs. How late that may be is up
 * to the machine, so it is counted in turns of the loop: the timer was due before the turn began. What was passed on is
 * not held before it was told. */
static void check_told(struct hand *hand) {
    if (hand->state != HOLDING && evlock_is_held(hand->lock))
        complain(hand, "it is held, and that was not told");
    if (hand->state != HOLDING || hand->lost || evlock_is_held(hand->lock))
        hand->overdue = 0;
    else if (++hand->overdue > PATIENT_TURNS)
        complain(hand, "the deadline has passed, and no loss is told");
}

/* Only what has failed already, and is to be reported, is pending no more. */
static void check_decided(struct hand *hand) {
    if (hand->decided)
        complain(hand, "a cancel found nothing, and nothing was reported in the next turn");
    hand->decided = false;
}

static void work(struct worker *worker) {
    while (!atomic_load(&worker->diary->retire)) {
        for (int i = 0; i < worker->hands_len; i++)
            check_told(&worker->hands[i]);
        loop_turn(worker->loop);
        for (int i = 0; i < worker->hands_len; i++)
            check_decided(&worker->hands[i]);
        for (int i = 0; i < worker->hands_len; i++)
            step(&worker->hands[i]);
    }
}

/* --- The beginning and the end ------------------------------------------------------------------------------------ */

static void *counted_resize(void *block, size_t size) {
    void *fresh = realloc(block, size);
    blocks += fresh && !block;
    return fresh;
}

static void counted_release(void *block) {
    blocks -= block != NULL;
    free(block);
}

static int descriptors(void) {
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count;
}

static struct test_loop *choose_loop(int number) {
    setenv("EVLOCK_TEST_LOOP", number % 2 ? "libuv" : "libevent", 1);
    struct test_loop *loop = loop_new();
    if (!loop) { /* a build without libuv */
        setenv("EVLOCK_TEST_LOOP", "libevent", 1);
        loop = loop_new();
    }
    return loop;
}

static void begin(struct worker *worker) {
    evlock_client_options options = {.size = sizeof(evlock_client_options)};
    options.max_ttl_ms = MAX_TTL_MS;
    options.connect_timeout_ms = 500;
    options.command_timeout_ms = steady(worker) ? 3000 : 400; /* the close of one that is steady must not end early */
    options.backoff_min_ms = 10;
    options.backoff_max_ms = 100;
    int status = evlock_client_new(&worker->client, loop_for_evlock(worker->loop),
                                   urls_joined(worker->employment.urls, worker->employment.urls_len).text, &options);
    if (status != EVLOCK_OK)
        exit(2);
    passing_draw(&worker->passing, worker->mode);
    for (int i = 0; i < worker->hands_len; i++) {
        struct hand *hand = &worker->hands[i];
        *hand = (struct hand){.worker = worker, .number = i};
        take_handle(hand);
        rest(hand, 20);
    }
}

static void on_closed(int status, void *arg) {
    struct worker *worker = arg;
    (void)status; /* what a close can say depends on what befalls the servers */
    if (worker->closed)
        history_complain(worker->diary, -1, "a close was answered twice");
    worker->closed = true;
}

static void close_client(struct worker *worker) {
    int64_t end = evlock_clock_us() + (int64_t)CLOSING_MS * 1000;
    worker->diary->operations[CLOSE]++;
    evlock_client_close(worker->client, on_closed, worker);
    while (!worker->closed && evlock_clock_us() < end)
        loop_turn(worker->loop);
    if (!worker->closed)
        history_complain(worker->diary, -1, "a close was not answered");
}

static void drop_handles(struct worker *worker) {
    for (int i = 0; i < worker->hands_len; i++)
        drop_handle(&worker->hands[i]);
}

/* Another may have it when the client ends, and must not be told. */
static void let_go_of_one(struct worker *worker) {
    for (int i = 0; i < worker->hands_len; i++)
        if (worker->hands[i].state == HOLDING) {
            let_go(&worker->hands[i]);
            return;
        }
}

/* Lets everything go in the midst of it, in one way or another. */
static void finish(struct worker *worker) {
    if (worker->employment.passes && chance(50))
        let_go_of_one(worker);
    int64_t now = evlock_clock_us();
    worker->finishing = true;
    for (int i = 0; i < worker->hands_len; i++) {
        struct hand *hand = &worker->hands[i];
        if (hand->state == HOLDING)
            history_let_go(hand->belief, now);
        hand->state = IDLE; /* from now on no loss is told */
    }
    if (steady(worker) || chance(50)) {
        close_client(worker);
        drop_handles(worker);
    } else {
        drop_handles(worker);
        evlock_client_free(worker->client);
    }
    for (int i = 0; i < 3; i++)
        loop_turn(worker->loop);
}

void worker_run(const struct employment *employment) {
    static struct worker worker;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_DFL); /* the library's writes must not raise it */
    srandom(employment->seed);
    evlock_set_allocator(counted_resize, counted_release);
    worker.employment = *employment;
    worker.mode = employment->mode;
    worker.hands_len = employment->passes ? HANDS_MAX : HANDS;
    worker.diary = &employment->history->diaries[employment->number];
    worker.loop = choose_loop(employment->number);
    int before = descriptors();
    begin(&worker);
    work(&worker);
    finish(&worker);

    check_calls(&worker);
    int left = loop_registrations(worker.loop), fds = descriptors() - before;
    if (left || fds || blocks)
        history_complain(worker.diary, -1, "%d registrations, %d descriptors, %ld blocks of memory were left", left,
                         fds, blocks);
    loop_free(worker.loop);
    exit(0);
}
