/*
 * evlock hold: holds a lock while somebody else works, as long as its standard input is open and no signal comes. It
 * prints the fence, so that a script can read it.
 */
#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "duration.h"
#include "exits.h"
#include "json.h"
#include "output.h"
#include "say.h"
#include "session.h"
#include "signals.h"

/* How often evlock looks whether it is in the foreground by now. */
enum { HOLD_LOOK_MS = 500 };

static int64_t hold_at_most_ms;

struct hold {
    struct session session;
    struct signals signals;
    struct event *limit;
    struct event *input; /* NULL: the standard input has no end to wait for */
    struct event *later; /* pending: evlock is in the background, and its terminal's input is somebody else's */
    evlock *lock;
    const char *name;
    bool held;
};

/* Whether the end of the standard input means something: a file, or nothing at all, has ended already. */
static bool hold_has_input(void) {
    struct stat input;
    return fstat(STDIN_FILENO, &input) == 0 &&
           (S_ISFIFO(input.st_mode) || S_ISSOCK(input.st_mode) || isatty(STDIN_FILENO));
}

static void hold_on_input(evutil_socket_t fd, short what, void *arg) {
    struct hold *hold = arg;
    char dropped[512];
    (void)what;
    if (isatty(fd) && tcgetpgrp(fd) != getpgrp()) { /* to read in the background would stop evlock */
        struct timeval look = duration_span(HOLD_LOOK_MS);
        event_del(hold->input);
        event_add(hold->later, &look);
    } else if (read(fd, dropped, sizeof dropped) <= 0) {
        event_del(hold->input);
        session_end(&hold->session, hold->held ? EXIT_OK : (int)hold->session.options->not_had);
    }
}

static void hold_on_later(evutil_socket_t fd, short what, void *arg) {
    struct hold *hold = arg;
    (void)fd, (void)what;
    event_add(hold->input, NULL);
}

static void hold_on_signal(int number, void *arg) {
    struct hold *hold = arg;
    session_end(&hold->session, hold->held ? EXIT_OK : EXIT_SIGNAL + number);
}

static void hold_on_lost(evlock *lock, int status, void *arg) {
    struct hold *hold = arg;
    (void)lock;
    session_end(&hold->session, say_error(EXIT_LOST, "lost %s: %s", hold->name, evlock_strerror(status)));
}

static void hold_on_limit(evutil_socket_t fd, short what, void *arg) {
    struct hold *hold = arg;
    (void)fd, (void)what;
    session_end(&hold->session, say_error(EXIT_LOST, "%s was held for as long as --at-most says", hold->name));
}

/* Returns 0, or the exit status if that did not arrive. */
static int hold_print(const struct hold *hold) {
    struct json json = {.out = stdout};
    if (!hold->session.options->json) {
        printf("%" PRIu64 "\n", evlock_fence(hold->lock));
        return output_arrived();
    }
    json_open(&json, NULL, '{');
    json_text(&json, "name", hold->name);
    json_fence(&json, "fence", evlock_fence(hold->lock));
    json_text(&json, "holder", hold->session.options->holder);
    json_number(&json, "ttl_ms", hold->session.options->ttl_ms);
    json_close(&json, '}');
    json_end(&json);
    return output_arrived();
}

static void hold_on_acquired(evlock *lock, int status, void *arg) {
    struct hold *hold = arg;
    if (status == EVLOCK_OK) {
        struct timeval limit = duration_span(hold_at_most_ms);
        hold->held = true;
        if (hold_at_most_ms)
            event_add(hold->limit, &limit);
        int exit = hold_print(hold);
        if (exit) /* who cannot be told gets no lock */
            session_end(&hold->session, exit);
    } else
        session_end_not_had(&hold->session, lock, hold->name, status);
}

static int hold_start(struct hold *hold) {
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, 0};
    struct event_base *base = hold->session.base;
    signals_outlive_pipes();
    if (hold_has_input())
        hold->input = event_new(base, STDIN_FILENO, EV_READ | EV_PERSIST, hold_on_input, hold);
    hold->limit = event_new(base, -1, 0, hold_on_limit, hold);
    hold->later = event_new(base, -1, 0, hold_on_later, hold);
    if (!hold->limit || !hold->later || signals_catch(&hold->signals, base, numbers, hold_on_signal, hold) != 0 ||
        (hold->input && event_add(hold->input, NULL) != 0))
        return say_error(EXIT_TROUBLE, "the system refuses to wait for events");

    evlock_options options = options_lock(hold->session.options);
    options.fence = true;
    options.auto_renewal = true;
    options.max_hold_ms = hold_at_most_ms;
    options.on_lost = hold_on_lost;
    options.arg = hold;
    int exit = session_lock(&hold->session, hold->name, &options, &hold->lock);
    int status = exit ? EVLOCK_OK : evlock_acquire(hold->lock, NULL, hold_on_acquired, hold);
    return status == EVLOCK_OK ? exit : say_status("cannot lock that", status);
}

static int hold_run(const struct options *options, int count, char **operands) {
    struct hold hold = {.name = operands[0]};
    (void)count;
    int exit = session_open(&hold.session, options);
    if (exit)
        return exit;
    if ((exit = hold_start(&hold)) != 0)
        session_end(&hold.session, exit);
    exit = session_loop(&hold.session);
    signals_end(&hold.signals);
    session_forget(hold.limit);
    session_forget(hold.input);
    session_forget(hold.later);
    evlock_free(hold.lock);
    session_free(&hold.session);
    return exit;
}

static const struct option_row hold_options[] = {
    {"at-most", 0, OPTION_DURATION, &hold_at_most_ms, "TIME", "hold it no longer than this", 0, 0},
    {0},
};

const struct command hold_command = {
    .name = "hold",
    .purpose = "Hold a lock until a signal comes or the standard input ends.",
    .usage = "[OPTION...] NAME",
    .details = "It prints the fence when it holds the lock: one line, or JSON. The end of a pipe, a socket or a\n"
               "terminal ends it; a file as the standard input does not. It exits with 124 when the lock is lost.\n",
    .groups = OPTIONS_SERVER | OPTIONS_LEASE | OPTIONS_WAIT,
    .own = hold_options,
    .least = 1,
    .most = 1,
    .run = hold_run,
};
