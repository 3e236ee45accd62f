/*
 * evlock elect: runs a command on one of many machines at a time. It stands for election, runs the command while it
 * leads, ends it when it leads no more, and stands again.
 */
#include <signal.h>
#include <stdio.h>

#include "command.h"
#include "duration.h"
#include "exits.h"
#include "say.h"
#include "terminal.h"
#include "work.h"

/* A command that ends at once, again and again, does not keep the server busy. */
enum { ELECT_PAUSE_MS = 1000 };

static bool elect_again;

struct elect {
    struct work work; /* the first member: a work of elect's is its elect */
    struct session session;
    struct event *pause;
};

static void elect_on_pause(evutil_socket_t fd, short what, void *arg) {
    struct elect *elect = arg;
    (void)fd, (void)what;
    int exit = work_stand(&elect->work);
    if (exit)
        session_end(&elect->session, exit);
}

/* Given back, or gone, or in the background: others may lead now, and this one stands behind them. */
static void elect_on_released(evlock *lock, int status, void *arg) {
    struct elect *elect = arg;
    struct timeval pause = duration_span(elect->work.lost ? 0 : ELECT_PAUSE_MS);
    (void)lock, (void)status;
    if (elect->session.ending)
        return;
    if (event_add(elect->pause, &pause) != 0)
        session_end(&elect->session, say_error(EXIT_TROUBLE, "the system refuses a timer"));
}

static void elect_on_end(struct work *work, int exit) {
    struct elect *elect = (struct elect *)work;
    bool stands = (work->lost || elect_again) && !work->stopped_by;
    if (!stands || evlock_release(work->lock, elect_on_released, elect) != EVLOCK_OK)
        session_end(&elect->session, exit);
    else
        say(SAY_NOTES, "leads %s no more, and stands again", work->name);
}

static int elect_run(const struct options *options, int count, char **operands) {
    struct elect elect = {.work = {.name = operands[0], .words = operands + 1, .on_end = elect_on_end}};
    (void)count;
    int exit = session_open(&elect.session, options);
    if (exit)
        return exit;
    elect.work.session = &elect.session;
    elect.pause = event_new(elect.session.base, -1, 0, elect_on_pause, &elect);
    if (!elect.pause)
        exit = say_error(EXIT_TROUBLE, "the system refuses a timer");
    if (exit || (exit = work_open(&elect.work)) != 0 || (exit = work_stand(&elect.work)) != 0)
        session_end(&elect.session, exit);
    exit = session_loop(&elect.session);
    work_close(&elect.work);
    session_forget(elect.pause);
    session_free(&elect.session);
    if (exit == EXIT_SIGNAL + SIGINT)
        terminal_end_by_interrupt();
    return exit;
}

static const struct option_row elect_options[] = {
    {"again", 0, OPTION_FLAG, &elect_again, NULL, "stand again also when the command ends by itself", 0, 0},
    {0},
};

const struct command elect_command = {
    .name = "elect",
    .purpose = "Run a command while this is the leader, again and again.",
    .usage = "[OPTION...] NAME [--] COMMAND [ARGUMENT...]",
    .details =
        "The command runs as by evlock run. When the lock is lost, or --at-most is over, the command is ended and\n"
        "evlock stands for election again. When the command ends by itself, evlock exits as it does; with\n"
        "--again it gives the lock up and stands again, after a second.\n",
    .groups = OPTIONS_SERVER | OPTIONS_LEASE | OPTIONS_WAIT | OPTIONS_WORK | OPTIONS_FIRST,
    .own = elect_options,
    .least = 2,
    .most = -1,
    .run = elect_run,
};
