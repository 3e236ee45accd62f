/* A command under a lock: waits for the lock, runs the command, and ends it in time when the lock is lost. */
#include <errno.h>
#include <evlock/loop.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "duration.h"
#include "exits.h"
#include "say.h"
#include "work.h"

static int64_t work_at_most(int64_t value, int64_t most) {
    return value < most ? value : most;
}

/* --- What the command is told ------------------------------------------------------------------------------------- */

static void work_tell(const struct work *work, const char *line) {
    ssize_t written = work->told[1] >= 0 ? write(work->told[1], line, strlen(line)) : 0;
    (void)written; /* a command that reads nothing finds the pipe full */
}

/* The reading end stays open here, or else to write to a command that has closed it would end evlock. */
static void work_close_pipe(struct work *work) {
    for (int i = 0; i < 2; i++) {
        if (work->told[i] >= 0)
            close(work->told[i]);
        work->told[i] = -1;
    }
}

static int work_open_pipe(struct work *work) {
    if (pipe2(work->told, O_CLOEXEC) != 0)
        return -1;
    return fcntl(work->told[1], F_SETFL, O_NONBLOCK); /* evlock never waits for the command to read */
}

static int work_set_number(const char *name, uint64_t number) {
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, number);
    return setenv(name, text, 1);
}

/* The names of all locks that are held around this are in EVLOCK_AROUND: each as its length, a colon and itself. */
static bool work_is_around(const char *name) {
    const char *around = getenv("EVLOCK_AROUND");
    size_t length = strlen(name);
    while (around && *around) {
        char *first;
        unsigned long size = strtoul(around, &first, 10);
        if (*first != ':' || size > strlen(first + 1))
            return false; /* somebody else's words */
        if (size == length && memcmp(first + 1, name, length) == 0)
            return true;
        around = first + 1 + size;
    }
    return false;
}

static int work_set_around(const char *name) {
    const char *around = getenv("EVLOCK_AROUND");
    size_t size = strlen(name) + (around ? strlen(around) : 0) + 24;
    char *more = work_is_around(name) ? NULL : malloc(size);
    if (!more)
        return work_is_around(name) ? 0 : -1;
    snprintf(more, size, "%zu:%s%s", strlen(name), name, around ? around : "");
    int failed = setenv("EVLOCK_AROUND", more, 1);
    free(more);
    return failed;
}

static int work_set_environment(const struct work *work) {
    const struct options *options = work->session->options;
    int failed = setenv("EVLOCK_NAME", work->name, 1) | setenv("EVLOCK_HELD", "1", 1) |
                 setenv("EVLOCK_HOLDER", options->holder, 1) |
                 work_set_number("EVLOCK_TTL_MS", (uint64_t)options->ttl_ms);
    if (!options->leave) /* what is left running would be refused the name when the lock is long free */
        failed |= work_set_around(work->name);
    if (work->session->options->fence)
        return failed | work_set_number("EVLOCK_FENCE", evlock_fence(work->lock));
    return failed | unsetenv("EVLOCK_FENCE"); /* the one of a lock around this */
}

/* --- The end of the command --------------------------------------------------------------------------------------- */

static void work_end_child(struct work *work) {
    int64_t left = (work->deadline - evlock_clock_us()) / 1000 - work->margin;
    child_end(&work->child, work_at_most(work->kill_after, left));
}

/* `head`: "lost ", where the lock is. */
static void work_lose(struct work *work, const char *head, const char *why) {
    if (work->lost)
        return;
    work->lost = true;
    say_error(0, "%s%s: %s; ending the command", head, work->name, why);
    work_tell(work, "lost\n");
}

static void work_on_child_end(int exit, void *arg) {
    struct work *work = arg;
    if (work->child.struck || !evlock_is_held(work->lock))
        work_lose(work, "lost ", "its time is over");
    work->running = false;
    if (exit == EXIT_SIGNAL + SIGHUP) /* which makes others read their files anew, and live on */
        work->stopped_by = SIGHUP;
    event_del(work->tick);
    event_del(work->limit);
    work_close_pipe(work);
    if (work->child.not_run)
        session_end(work->session, exit);
    else
        work->on_end(work, work->lost ? EXIT_LOST : exit);
}

/* What evlock cannot kill works on. So the lock is renewed until it has ended, also behind --at-most. */
static void work_on_refused(pid_t pid, void *arg) {
    struct work *work = arg;
    char who[64] = "what is not found without /proc";
    if (pid != 0)
        snprintf(who, sizeof who, "process %d: not permitted", (int)pid);
    work->refused = true;
    if (evlock_is_held(work->lock))
        say_error(0, "cannot end %s; %s is kept until it ends", who, work->name);
    else
        say_error(0, "cannot end %s; it goes on without %s", who, work->name);
}

/* --- The lease ---------------------------------------------------------------------------------------------------- */

static void work_on_lost(evlock *lock, int status, void *arg) {
    struct work *work = arg;
    (void)lock;
    if (!work->running) {
        if (work->on_lost)
            work->on_lost(work);
        return;
    }
    if (work->lost && work->refused)
        say_error(0, "lost %s: %s; what cannot be ended goes on without it", work->name, evlock_strerror(status));
    work_lose(work, "lost ", evlock_strerror(status));
    work_end_child(work);
}

/* The library says so, too. */
static void work_on_at_risk(evlock *lock, int status, void *arg) {
    struct work *work = arg;
    (void)lock, (void)status;
    if (!work->running)
        return;
    work_tell(work, "at risk\n");
    if (work->session->options->warn_signal)
        child_signal(&work->child, work->session->options->warn_signal);
}

static void work_on_limit(evutil_socket_t fd, short what, void *arg) {
    struct work *work = arg;
    (void)fd, (void)what;
    work_lose(work, "", "it was held for as long as --at-most says");
    child_end(&work->child, work->kill_after);
}

static bool work_may_go_on(void *arg) {
    struct work *work = arg;
    if (evlock_is_held(work->lock))
        return true;
    work_lose(work, "lost ", "its time went by while evlock was stopped");
    return false;
}

/* When the command is dead. */
static int64_t work_dead_by(const struct work *work) {
    int64_t at_most_ms = work->session->options->at_most_ms, dead = work->deadline - work->margin * 1000;
    return at_most_ms ? work_at_most(dead, work->granted + at_most_ms * 1000) : dead;
}

/* The clock is read first: if evlock is stopped in between, the deadline is too early, and never too late. */
static void work_look(struct work *work) {
    int64_t now = evlock_clock_us(), left = evlock_remaining_ms(work->lock);
    work->deadline = now + left * 1000;
}

static void work_on_tick(evutil_socket_t fd, short what, void *arg) {
    struct work *work = arg;
    (void)fd, (void)what;
    if (!evlock_is_held(work->lock))
        return;
    work_look(work);
    child_set_deadline(&work->child, work_dead_by(work));
}

/* --- Beginning ---------------------------------------------------------------------------------------------------- */

static int work_start_child(struct work *work) {
    work->granted = evlock_clock_us();
    work->lost = work->refused = false;
    work_look(work);
    if (work_open_pipe(work) != 0 || work_set_environment(work) != 0)
        return say_error(EXIT_TROUBLE, "cannot tell the command of its lock: %s", strerror(errno));
    struct child_wishes wishes = {
        .words = work->words,
        .foreground = work->session->options->foreground,
        .leave = work->session->options->leave,
        .end_signal = work->session->options->end_signal,
        .grace_ms = work->kill_after,
        .deadline = work_dead_by(work),
        .inherits = work->told[0],
        .variable = "EVLOCK_FD",
        .on_end = work_on_child_end,
        .may_go_on = work_may_go_on,
        .on_refused = work_on_refused,
        .arg = work,
    };
    int exit = child_start(&work->child, work->session->base, &wishes);
    if (exit)
        return exit;
    work->running = true;
    struct timeval tick = duration_span(work->session->options->ttl_ms / 10 + 1);
    event_add(work->tick, &tick);
    struct timeval limit = duration_span(work->session->options->at_most_ms - work->kill_after);
    if (work->session->options->at_most_ms)
        event_add(work->limit, &limit);
    return 0;
}

static void work_on_acquired(evlock *lock, int status, void *arg) {
    struct work *work = arg;
    progress_end(&work->progress);
    if (status != EVLOCK_OK) {
        session_end_not_had(work->session, lock, work->name, status);
        return;
    }
    say(SAY_STEPS, "acquired %s", work->name);
    int exit = work_start_child(work);
    if (exit)
        session_end(work->session, exit);
}

static void work_on_signal(int number, void *arg) {
    struct work *work = arg;
    if (number != SIGUSR1 && number != SIGUSR2 && number != SIGHUP)
        work->stopped_by = number;
    if (work->running) /* the command gets it */
        return;
    if (work->on_signal)
        work->on_signal(work, EXIT_SIGNAL + number);
    else
        session_end(work->session, EXIT_SIGNAL + number);
}

int work_stand(struct work *work) {
    int status = evlock_acquire(work->lock, NULL, work_on_acquired, work);
    if (status != EVLOCK_OK)
        return say_status("cannot lock that", status);
    progress_begin(&work->progress, work->session, work->lock, work->name);
    return 0;
}

/* What the options mean for this ttl. */
static int work_reckon(struct work *work) {
    int64_t ttl = work->session->options->ttl_ms, at_most = work->session->options->at_most_ms;
    if (!work->session->options->nested && work_is_around(work->name))
        return say_error(EXIT_TROUBLE,
                         "%s is held around this already, which would wait for itself; --nested says it is another",
                         work->name);
    work->margin = work_at_most(ttl / 50, 200);
    work->kill_after = work->session->options->kill_after_ms;
    if (work->kill_after < 0)
        work->kill_after = work_at_most(at_most ? work_at_most(ttl, at_most) / 5 : ttl / 5, 1000);
    if (work->kill_after + work->margin > ttl / 2)
        return say_error(EXIT_TROUBLE, "--kill-after is %" PRId64 " ms, and at most %" PRId64 " ms with this --ttl",
                         work->kill_after, ttl / 2 - work->margin);
    if (at_most && at_most <= work->kill_after)
        return say_error(EXIT_TROUBLE, "--at-most is not longer than --kill-after");
    return 0;
}

int work_open(struct work *work) {
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, 0};
    struct event_base *base = work->session->base;
    evlock_options options = options_lock(work->session->options);
    int exit = work_reckon(work);
    signals_outlive_pipes();
    work->told[0] = work->told[1] = -1;
    if (exit)
        return exit;
    int64_t lead = work->kill_after + work->margin, risk = 100 * lead / options.ttl_ms + 10;
    options.fence = work->session->options->fence;
    options.auto_renewal = true;
    options.lost_lead_ms = lead ? lead : EVLOCK_NO_LEAD;
    options.at_risk_percent = risk > 33 ? risk : 33;
    options.on_lost = work_on_lost;
    options.on_at_risk = work_on_at_risk;
    options.arg = work;
    work->tick = event_new(base, -1, EV_PERSIST, work_on_tick, work);
    work->limit = event_new(base, -1, 0, work_on_limit, work);
    if (!work->tick || !work->limit || signals_catch(&work->signals, base, numbers, work_on_signal, work) != 0)
        return say_error(EXIT_TROUBLE, "the system refuses to wait for signals");
    return session_lock(work->session, work->name, &options, &work->lock);
}

void work_close(struct work *work) {
    progress_end(&work->progress);
    signals_end(&work->signals);
    work_close_pipe(work);
    session_forget(work->tick);
    session_forget(work->limit);
    evlock_free(work->lock);
}
