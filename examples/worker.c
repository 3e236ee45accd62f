/*
 * One worker of the `workers` example. It owns an event base, a client and a handle, and goes round in steps, each
 * begun by a timer or by an answer of the library: acquire, work (or lose the lock), release, pause. It never waits for
 * the server; when it does block, it does so on purpose, to lose the lock.
 */
#include "worker.h"
#include "timeline.h"

#include <event2/event.h>
#include <evlock/evlock.h>
#include <evlock/libevent.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { TTL_MS = 2000, POLL_MS = 100, STEPS = 10, STEP_MS = 200, STALL_S = 2, SECOND_STALL_S = 4 };

struct worker {
    const struct worker_options *options;
    int number;
    char name[24];
    int report;
    struct event_base *base;
    struct event *timer;
    struct event *signals[2];
    evlock_client *client;
    evlock *lock;
    void (*next)(struct worker *worker); /* the step that the timer begins */
    struct hold hold;                    /* under way if `got` is not 0 */
    int64_t deadline;                    /* until when the worker may believe in its lease, in microseconds */
    int steps;                           /* of work, left to do */
    int losing;                          /* this time it is to lose the lock */
    int was_connected;
    int stopping;
    int failed;
};

static void begin(struct worker *worker);
static void stop(struct worker *worker);

/* Prints a line of the timeline, in one write, so that the lines of several processes do not mix. */
__attribute__((format(printf, 2, 3))) static void say(const struct worker *worker, const char *format, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    printf("%8.3f %s: %s\n", (double)(evlock_clock_us() - worker->options->start) / 1e6, worker->name, text);
}

/* Tells what went wrong, with the library's particulars, and ends the worker. */
static void fail(struct worker *worker, const char *what, int status) {
    fprintf(stderr, "%s: %s: %s (%s)\n", worker->name, what, evlock_strerror(status), evlock_last_error());
    worker->failed = 1;
    stop(worker);
}

/* Begins the next step in so many milliseconds. */
static void after(struct worker *worker, long ms, void (*next)(struct worker *worker)) {
    if (worker->stopping)
        return;
    struct timeval pause = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
    worker->next = next;
    if (event_add(worker->timer, &pause) != 0)
        fail(worker, "timer", EVLOCK_ESYSTEM);
}

static void on_timer(evutil_socket_t fd, short events, void *arg) {
    struct worker *worker = arg;
    (void)fd, (void)events;
    worker->next(worker);
}

/* Blocks the whole event loop, which no program should do. A signal ends it early; the loop then sees that first. */
static void stall(struct worker *worker, time_t seconds, void (*next)(struct worker *worker)) {
    nanosleep(&(struct timespec){.tv_sec = seconds}, NULL);
    event_base_update_cache_time(worker->base);
    after(worker, 0, next);
}

static const char *state(const struct worker *worker) {
    return evlock_is_held(worker->lock) ? "held" : "not-held";
}

/* --- The hold, for the timeline ----------------------------------------------------------------------------------- */

/* remaining_ms is rounded down, so a millisecond more is on the strict side of the check for overlaps. */
static void note_deadline(struct worker *worker) {
    worker->deadline = evlock_clock_us() + (evlock_remaining_ms(worker->lock) + 1) * 1000;
}

/* Ends the hold that is under way, if any: now, or at the deadline if that has passed. */
static void end_hold(struct worker *worker, int lost) {
    if (worker->hold.got == 0)
        return;
    int64_t now = evlock_clock_us();
    worker->hold.end = now < worker->deadline ? now : worker->deadline;
    worker->hold.lost = lost;
    ssize_t written = write(worker->report, &worker->hold, sizeof worker->hold);
    worker->hold.got = 0;
    if (written != (ssize_t)sizeof worker->hold)
        fail(worker, "report", EVLOCK_ESYSTEM);
}

static void on_lost(evlock *lock, enum evlock_lost_reason reason, void *arg) {
    struct worker *worker = arg;
    (void)lock;
    say(worker, "lost the lock: %s", evlock_lost_reason_string(reason));
    end_hold(worker, 1);
}

/* --- The steps ---------------------------------------------------------------------------------------------------- */

static void on_released(evlock *lock, int status, void *arg) {
    struct worker *worker = arg;
    (void)lock;
    say(worker, "%s to release lock", status == EVLOCK_OK ? "success" : "fail");
    say(worker, "%s %s release", state(worker), worker->name);
    if (worker->losing && status == EVLOCK_OK)
        fail(worker, "released a lock that had timed out", status);
    after(worker, 1000 * (1 + random() % 4), begin);
}

static void release(struct worker *worker) {
    say(worker, "release lock!");
    end_hold(worker, 0);
    int status = evlock_release(worker->lock, on_released, worker);
    if (status != EVLOCK_OK)
        on_released(worker->lock, status, worker);
}

static void time_out(struct worker *worker) {
    say(worker, "lock timeout!");
    stall(worker, SECOND_STALL_S, release);
}

static void work(struct worker *worker);

static void on_ttl_updated(evlock *lock, int status, void *arg) {
    struct worker *worker = arg;
    if (status == EVLOCK_ECANCELLED)
        return;
    if (status == EVLOCK_OK)
        note_deadline(worker);
    else
        say(worker, "fail to update ttl for lock!");
    if (evlock_is_held(lock) && --worker->steps > 0)
        work(worker);
    else
        release(worker);
}

static void update_ttl(struct worker *worker) {
    int status = evlock_extend(worker->lock, TTL_MS, EVLOCK_EXTEND_REPLACE, on_ttl_updated, worker);
    if (status != EVLOCK_OK)
        on_ttl_updated(worker->lock, status, worker);
}

static void work(struct worker *worker) {
    say(worker, "doing sth…");
    after(worker, STEP_MS, update_ttl);
}

static void on_acquired(evlock *lock, int status, void *arg) {
    struct worker *worker = arg;
    if (status == EVLOCK_ECANCELLED)
        return;
    if (status != EVLOCK_OK) {
        fail(worker, "acquire", status);
        return;
    }
    note_deadline(worker);
    worker->hold.got = evlock_clock_us();
    size_t length;
    const char *token = evlock_token(lock, &length);
    say(worker, "[identifier %.*s] waited %.3f seconds", (int)length, token,
        (double)(worker->hold.got - worker->hold.asked) / 1e6);
    say(worker, "%s %s got", state(worker), worker->name);

    worker->steps = STEPS;
    worker->losing = random() % 10 < 2;
    if (worker->losing)
        stall(worker, STALL_S, time_out);
    else
        work(worker);
}

static void begin(struct worker *worker) {
    say(worker, "acquiring lock…");
    worker->hold = (struct hold){.worker = worker->number, .asked = evlock_clock_us()};
    int status = evlock_acquire(worker->lock, NULL, on_acquired, worker);
    if (status != EVLOCK_OK)
        fail(worker, "acquire", status);
}

/* --- The worker's life -------------------------------------------------------------------------------------------- */

/* A server that goes away later is waited for; one that was never there means that the worker cannot start. */
static void on_connection(evlock_client *client, enum evlock_connection now, int status, void *arg) {
    struct worker *worker = arg;
    (void)client;
    if (now == EVLOCK_CONNECTED)
        worker->was_connected = 1;
    else if (now == EVLOCK_AWAY && !worker->was_connected)
        fail(worker, "connect", status);
}

static void on_closed(int status, void *arg) {
    struct worker *worker = arg;
    if (status != EVLOCK_OK) {
        fprintf(stderr, "%s: close: %s\n", worker->name, evlock_strerror(status));
        worker->failed = 1;
    }
    for (int i = 0; i < 2; i++)
        event_del(worker->signals[i]); /* the last events of the base: the loop ends */
}

/* Ends in good order: the client gives back the lock, if it is held, before it calls on_closed. */
static void stop(struct worker *worker) {
    if (worker->stopping)
        return;
    worker->stopping = 1;
    event_del(worker->timer);
    end_hold(worker, 0);
    int status = evlock_client_close(worker->client, on_closed, worker);
    if (status != EVLOCK_OK) {
        evlock_client_free(worker->client);
        on_closed(status, worker);
    }
}

static void on_signal(evutil_socket_t signal_number, short events, void *arg) {
    (void)signal_number, (void)events;
    say(arg, "told to stop");
    stop(arg);
}

static int start_events(struct worker *worker) {
    worker->base = event_base_new();
    if (!worker->base)
        return -1;
    worker->timer = evtimer_new(worker->base, on_timer, worker);
    worker->signals[0] = evsignal_new(worker->base, SIGTERM, on_signal, worker);
    worker->signals[1] = evsignal_new(worker->base, SIGINT, on_signal, worker);
    if (!worker->timer || !worker->signals[0] || !worker->signals[1])
        return -1;
    if (event_add(worker->signals[0], NULL) != 0 || event_add(worker->signals[1], NULL) != 0)
        return -1;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    return sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static int start_lock(struct worker *worker) {
    evlock_client_options client_options = EVLOCK_CLIENT_OPTIONS_INIT;
    client_options.on_connection = on_connection;
    client_options.arg = worker;
    int status =
        evlock_client_new(&worker->client, evlock_libevent(worker->base), worker->options->url, &client_options);
    if (status != EVLOCK_OK)
        return status;

    evlock_options options = EVLOCK_OPTIONS_INIT;
    options.ttl_ms = TTL_MS;
    options.retry_delay_ms = POLL_MS;
    options.label = worker->name;
    options.on_lost = on_lost;
    options.arg = worker;
    return evlock_new(&worker->lock, worker->client, worker->options->lock, EVLOCK_CSTRING, &options);
}

static void free_all(struct worker *worker) {
    evlock_free(worker->lock);
    struct event *events[] = {worker->timer, worker->signals[0], worker->signals[1]};
    for (int i = 0; i < 3; i++)
        if (events[i])
            event_free(events[i]);
    if (worker->base)
        event_base_free(worker->base);
}

int worker_run(const struct worker_options *options, int number, int report) {
    struct worker worker = {.options = options, .number = number, .report = report};
    snprintf(worker.name, sizeof worker.name, "worker-%d", number);
    srandom(options->seed + (unsigned int)number);

    if (start_events(&worker) != 0) {
        fprintf(stderr, "%s: no event loop\n", worker.name);
        free_all(&worker);
        return 1;
    }
    int status = start_lock(&worker);
    if (status != EVLOCK_OK) {
        fprintf(stderr, "%s: %s: %s (%s)\n", worker.name, options->url, evlock_strerror(status), evlock_last_error());
        evlock_client_free(worker.client);
        free_all(&worker);
        return 1;
    }
    begin(&worker);
    if (event_base_dispatch(worker.base) < 0)
        worker.failed = 1;
    free_all(&worker);
    return worker.failed;
}
