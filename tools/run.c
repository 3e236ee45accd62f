/*
 * evlock run: runs a command while it holds a lock, and exits as the command does. It owns what happens behind the
 * command's end: the lock is released, or kept for as long as --at-least says.
 */
#include <evlock/loop.h>
#include <signal.h>

#include "command.h"
#include "duration.h"
#include "exits.h"
#include "outlive.h"
#include "say.h"
#include "terminal.h"
#include "work.h"

static int64_t run_at_least_ms;

struct run {
    struct work work; /* the first member: a work of run's is its run */
    struct session session;
    struct outlive outlive;
    struct event *rest; /* pending: the lock is kept for the rest of --at-least */
    bool extending;     /* it is not known yet whether the server keeps it */
    bool impatient;     /* a signal has come */
    int exit;
};

static void run_on_rest(evutil_socket_t fd, short what, void *arg) {
    struct run *run = arg;
    (void)fd, (void)what;
    session_end(&run->session, run->exit);
}

/* The lock ends by itself on the server, and evlock need not wait for that. */
static void run_on_extended(evlock *lock, int status, void *arg) {
    struct run *run = arg;
    (void)lock;
    run->extending = false;
    if (status == EVLOCK_OK || run->impatient)
        outlive(&run->outlive, run->exit);
}

/* What is left of the lease then is more than a rest which could not be left to the server. */
static void run_on_signal(struct work *work, int exit) {
    struct run *run = (struct run *)work;
    run->exit = exit;
    run->impatient = true;
    if (!run->extending)
        outlive(&run->outlive, exit);
}

static void run_on_lost(struct work *work) {
    struct run *run = (struct run *)work;
    outlive(&run->outlive, run->exit);
}

static void run_on_end(struct work *work, int exit) {
    struct run *run = (struct run *)work;
    int64_t left = run_at_least_ms - (evlock_clock_us() - work->granted) / 1000;
    struct timeval span = duration_span(left);
    run->exit = exit;
    if (!evlock_is_held(work->lock) || left <= 0 || event_add(run->rest, &span) != 0) {
        session_end(&run->session, exit);
        return;
    }
    work->on_signal = run_on_signal;
    work->on_lost = run_on_lost;
    /* What cannot be left to the server is waited for: a rest that is very short, or a server that is away. */
    int status = evlock_extend(work->lock, left, EVLOCK_EXTEND_REPLACE, run_on_extended, run);
    run->extending = status == EVLOCK_OK;
}

static int run_run(const struct options *options, int count, char **operands) {
    struct run run = {.work = {.name = operands[0], .words = operands + 1, .on_end = run_on_end}};
    (void)count;
    int exit = session_open(&run.session, options);
    if (exit)
        return exit;
    run.work.session = &run.session;
    run.rest = event_new(run.session.base, -1, 0, run_on_rest, &run);
    if (!run.rest)
        exit = say_error(EXIT_TROUBLE, "the system refuses a timer");
    if (exit || (exit = outlive_open(&run.outlive, &run.session)) != 0 || (exit = work_open(&run.work)) != 0 ||
        (exit = work_stand(&run.work)) != 0)
        session_end(&run.session, exit);
    run.outlive.lock = run.work.lock;
    run.outlive.name = run.work.name;
    exit = session_loop(&run.session);
    outlive_close(&run.outlive);
    work_close(&run.work);
    session_forget(run.rest);
    session_free(&run.session);
    if (exit == EXIT_SIGNAL + SIGINT)
        terminal_end_by_interrupt();
    return exit;
}

static const struct option_row run_options[] = {
    {"at-least", 0, OPTION_DURATION, &run_at_least_ms, "TIME", "keep the lock so long, though the command ends", 0, 0},
    {0},
};

static const char run_details[] =
    "The command runs without a shell, in a process group of its own, while the lock is held and renewed. It and all\n"
    "that it started are dead by the lease's deadline. It finds EVLOCK_NAME, EVLOCK_FENCE (with --fence),\n"
    "EVLOCK_HOLDER, EVLOCK_TTL_MS, EVLOCK_HELD=1, and EVLOCK_FD: a descriptor to read \"at risk\" and \"lost\" from.\n"
    "\n"
    "Exit status: the command's own, or 128 + the signal that ended it; 1 (or -E) if the lock was not had; 124 if it\n"
    "was lost, or --at-most was over; 125 for trouble of evlock; 126 and 127 for a command that cannot be run.\n";

const struct command run_command = {
    .name = "run",
    .purpose = "Run a command while holding a lock.",
    .usage = "[OPTION...] NAME [--] COMMAND [ARGUMENT...]",
    .details = run_details,
    .groups = OPTIONS_SERVER | OPTIONS_LEASE | OPTIONS_WAIT | OPTIONS_WORK | OPTIONS_FIRST,
    .own = run_options,
    .least = 2,
    .most = -1,
    .run = run_run,
};
