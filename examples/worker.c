/*
 * One worker: a state machine on an event loop of its own. Ask for the lock, work in steps and extend the lease after
 * each (or stall, and lose the lock), release, pause. It reports every step, prints nothing, and never waits for the
 * server; when it does block, it does so on purpose, to lose the lock.
 */
#include "worker.h"
#include "timeline.h"

#include <event2/event.h>
#include <evlock/evlock.h>
#include <evlock/libevent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { STEPS = 10, STEP_MS = 200, STALL_S = 2, SECOND_STALL_S = 4, CONNECT_MS = 900, START_MS = 3000 };

struct worker {
    const struct worker_options *options;
    int number;
    int reports;
    struct event_base *base;
    struct event *timer;
    struct event *signals[2];
    evlock_client *client;
    evlock *lock;
    void (*next)(struct worker *worker); /* the step that the timer begins */
    int64_t asked;
    int64_t deadline; /* until when the worker may believe in its lease, in microseconds */
    int steps;        /* of work, done */
    bool begun;
    bool away; /* there is no server */
    bool waiting;
    bool holding; /* as the timeline sees it */
    bool losing;  /* this time it is to lose the lock */
    bool stopping;
    bool failed;
};

static void begin(struct worker *worker);
static void stop(struct worker *worker);

/* --- Reports ------------------------------------------------------------------------------------------------------ */

/* One write each, and shorter than what a pipe takes in one piece: the reports of several processes do not mix. */
__attribute__((format(printf, 3, 4))) static void tell(struct worker *worker, enum report_kind kind, const char *format,
                                                       ...) {
    struct report report = {
        .at = evlock_clock_us(),
        .deadline = worker->deadline,
        .fence = evlock_fence(worker->lock),
        .worker = worker->number,
        .kind = kind,
    };
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report.text, sizeof report.text, format, arguments);
    va_end(arguments);
    if (write(worker->reports, &report, sizeof report) != (ssize_t)sizeof report)
        worker->failed = true;
}

/* A status in words, with the library's particulars where there are any. */
static const char *why(int status) {
    static char text[160];
    const char *particulars = evlock_last_error();
    snprintf(text, sizeof text, "%s%s%s", evlock_strerror(status), *particulars ? ": " : "", particulars);
    return text;
}

static void fail(struct worker *worker, const char *what, int status) {
    tell(worker, FAILED, "FAILED: %s: %s", what, why(status));
    worker->failed = true;
    stop(worker);
}

static const char *state(const struct worker *worker) {
    return evlock_is_held(worker->lock) ? "holds" : "holds nothing";
}

static double waited(const struct worker *worker) {
    return (double)(evlock_clock_us() - worker->asked) / 1e6;
}

/* remaining_ms is rounded down, so a millisecond more is on the strict side of the check for overlaps. */
static void note_deadline(struct worker *worker) {
    worker->deadline = evlock_clock_us() + (evlock_remaining_ms(worker->lock) + 1) * 1000;
}

/* --- Time --------------------------------------------------------------------------------------------------------- */

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

/* Blocks the whole event loop, which no program should do. A signal ends it early, and then the worker stops. */
static void stall(struct worker *worker, time_t seconds, void (*next)(struct worker *worker)) {
    if (nanosleep(&(struct timespec){.tv_sec = seconds}, NULL) != 0)
        return;
    event_base_update_cache_time(worker->base);
    after(worker, 0, next);
}

/* --- The steps ---------------------------------------------------------------------------------------------------- */

static void on_lost(evlock *lock, int reason, void *arg) {
    struct worker *worker = arg;
    (void)lock;
    worker->holding = false;
    tell(worker, LOSES, "lost the lock: %s", evlock_strerror(reason));
}

static void on_released(evlock *lock, int status, void *arg) {
    struct worker *worker = arg;
    (void)lock;
    if (worker->stopping)
        return; /* the end of the client tells what became of the lock */
    if (status == EVLOCK_OK)
        tell(worker, NOTE, "released");
    else
        tell(worker, REFUSED, "could not release: %s", evlock_strerror(status));
    tell(worker, NOTE, "%s", state(worker));
    if (worker->losing && status == EVLOCK_OK) {
        fail(worker, "released a lock that it had lost", status);
        return;
    }
    long seconds = 1 + random() % 4;
    tell(worker, NOTE, "pauses for %ld s", seconds);
    after(worker, 1000 * seconds, begin);
}

static void release(struct worker *worker) {
    tell(worker, RELEASES, worker->holding ? "releases" : "releases, too late");
    worker->holding = false;
    int status = evlock_release(worker->lock, on_released, worker);
    if (status != EVLOCK_OK)
        on_released(worker->lock, status, worker);
}

/* The loop has turned after the first stall, and so the loss has been reported. */
static void stall_again(struct worker *worker) {
    tell(worker, NOTE, "stalls for %d s more", SECOND_STALL_S);
    stall(worker, SECOND_STALL_S, release);
}

static void work(struct worker *worker);

static void on_extended(evlock *lock, int status, void *arg) {
    struct worker *worker = arg;
    if (status == EVLOCK_ECANCELLED)
        return;
    if (status == EVLOCK_OK)
        note_deadline(worker);
    else
        tell(worker, NOTE, "could not extend its lease: %s", why(status));
    if (evlock_is_held(lock) && worker->steps < STEPS)
        work(worker);
    else
        release(worker);
}

static void extend(struct worker *worker) {
    int status = evlock_extend(worker->lock, TTL_MS, EVLOCK_EXTEND_REPLACE, on_extended, worker);
    if (status != EVLOCK_OK)
        on_extended(worker->lock, status, worker);
}

static void work(struct worker *worker) {
    worker->steps++;
    tell(worker, NOTE, "works, step %d of %d", worker->steps, STEPS);
    after(worker, STEP_MS, extend);
}

static void on_acquired(evlock *lock, int status, void *arg) {
    struct worker *worker = arg;
    if (status == EVLOCK_ECANCELLED)
        return;
    if (status != EVLOCK_OK) {
        fail(worker, "acquire", status);
        return;
    }
    worker->waiting = false;
    worker->holding = true;
    note_deadline(worker);
    tell(worker, NOTE, "waited %.3f s", waited(worker));
    tell(worker, HOLDS, "%s, fence %" PRIu64, state(worker), evlock_fence(lock));
    size_t length;
    const char *token = evlock_token(lock, &length);
    tell(worker, NOTE, "has the token %.*s", (int)length, token);

    worker->steps = 0;
    worker->losing = random() % 10 < 2;
    if (worker->losing) {
        tell(worker, STALLS, "stalls for %d s, on purpose", STALL_S);
        stall(worker, STALL_S, stall_again);
    } else {
        work(worker);
    }
}

static void begin(struct worker *worker) {
    evlock_acquire_options options = {.size = sizeof(evlock_acquire_options)};
    options.fence = EVLOCK_ON;
    worker->asked = evlock_clock_us();
    worker->deadline = 0;
    worker->waiting = true;
    tell(worker, WAITS, "waits");
    int status = evlock_acquire(worker->lock, &options, on_acquired, worker);
    if (status != EVLOCK_OK)
        fail(worker, "acquire", status);
}

/* --- The worker's life -------------------------------------------------------------------------------------------- */

/* A server that goes away later is waited for, however long that takes. */
static void on_connection(evlock_client *client, enum evlock_connection now, int status, void *arg) {
    struct worker *worker = arg;
    (void)client;
    if (now == EVLOCK_AWAY && !worker->away) {
        worker->away = true;
        tell(worker, worker->begun ? NOTE : TROUBLE, "cannot connect: %s", why(status));
    } else if (now == EVLOCK_CONNECTED) {
        if (!worker->begun)
            after(worker, 0, begin);
        else if (worker->away)
            tell(worker, NOTE, "is connected again");
        worker->begun = true;
        worker->away = false;
    }
}

/* A server that is not there at the start ends the worker. */
static void give_up_start(struct worker *worker) {
    tell(worker, FAILED, "FAILED: no server in %d s", START_MS / 1000);
    worker->failed = true;
    stop(worker);
}

static void on_closed(int status, void *arg) {
    struct worker *worker = arg;
    if (status != EVLOCK_OK) {
        tell(worker, FAILED, "FAILED: its lock is left to its ttl: %s", evlock_strerror(status));
        worker->failed = true;
    } else if (worker->begun) {
        tell(worker, NOTE, "%s", state(worker));
    }
    for (int i = 0; i < 2; i++)
        event_del(worker->signals[i]); /* the last events of the base: the loop ends */
}

/* Ends in good order: the client gives back the lock, if it is held, before it calls on_closed. */
static void stop(struct worker *worker) {
    if (worker->stopping)
        return;
    worker->stopping = true;
    event_del(worker->timer);
    if (worker->waiting)
        tell(worker, GIVES_UP, "waited %.3f s in vain", waited(worker));
    if (worker->holding)
        tell(worker, RELEASES, "releases");
    int status = evlock_client_close(worker->client, on_closed, worker);
    if (status != EVLOCK_OK) {
        evlock_client_free(worker->client);
        on_closed(status, worker);
    }
}

static void on_signal(evutil_socket_t signal_number, short events, void *arg) {
    (void)signal_number, (void)events;
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
    evlock_client_options client_options = {.size = sizeof(evlock_client_options)};
    client_options.connect_timeout_ms = CONNECT_MS;
    client_options.on_connection = on_connection;
    client_options.arg = worker;
    int status = evlock_client_new_libevent(&worker->client, worker->base, worker->options->url, &client_options);
    if (status != EVLOCK_OK)
        return status;

    evlock_options options = {.size = sizeof(evlock_options)};
    options.ttl_ms = TTL_MS;
    options.retry_delay_ms = POLL_MS;
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

int worker_run(const struct worker_options *options, int number, int reports) {
    struct worker worker = {.options = options, .number = number, .reports = reports};
    srandom(options->seed + (unsigned int)number);

    if (start_events(&worker) != 0) {
        tell(&worker, FAILED, "FAILED: no event loop");
        free_all(&worker);
        return 1;
    }
    int status = start_lock(&worker);
    if (status != EVLOCK_OK) {
        tell(&worker, FAILED, "FAILED: %s", why(status));
        evlock_client_free(worker.client);
        free_all(&worker);
        return 1;
    }
    after(&worker, START_MS, give_up_start);
    if (event_base_dispatch(worker.base) < 0)
        worker.failed = true;
    free_all(&worker);
    return worker.failed;
}
