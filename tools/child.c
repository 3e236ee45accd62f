/* A command that evlock runs, with all that it starts, as evlock sees it. */
#include <errno.h>
#include <evlock/loop.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "duration.h"
#include "exits.h"
#include "say.h"
#include "terminal.h"

/* How often what evlock has killed itself is looked for, at first and at last, in milliseconds. */
enum { CHILD_LOOK_MS = 10, CHILD_LOOK_MOST_MS = 1000 };

static void child_set_timer(struct child *child, int64_t ms) {
    struct timeval span = duration_span(ms);
    event_add(child->killer, &span);
}

static void child_order_all(const struct child *child, int number) {
    supervisor_order(&child->supervisor, (struct supervisor_order){SUPERVISOR_ALL, .number = number});
}

/* --- Ending ------------------------------------------------------------------------------------------------------- */

/* Frees what child_start() has made. */
static void child_forget(struct child *child) {
    if (child->terminal && child->supervisor.page)
        terminal_take(atomic_load(&child->supervisor.page->group));
    signals_end(&child->signals);
    if (child->words)
        event_free(child->words);
    if (child->killer)
        event_free(child->killer);
    supervisor_end(&child->supervisor);
}

/* How the command has ended, or why it was not run, which is said here. */
static int child_exit(const struct child *child) {
    const struct supervisor_page *page = child->supervisor.page;
    int status = atomic_load(&page->status), error = atomic_load(&page->error), exit = atomic_load(&page->not_run);
    if (child->look_ms > 0)
        return EXIT_TROUBLE; /* that was said when the supervisor was killed */
    if (exit == EXIT_TROUBLE)
        return say_error(exit, "cannot start a process: %s", strerror(error));
    if (exit)
        return say_error(exit, "cannot run '%s': %s", child->wishes.words[0], strerror(error));
    return WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

static void child_finish(struct child *child) {
    int exit = child_exit(child);
    child->struck = atomic_load(&child->supervisor.page->struck);
    child->not_run = atomic_load(&child->supervisor.page->not_run) != 0;
    child_forget(child);
    child->wishes.on_end(exit, child->wishes.arg);
}

void child_signal(struct child *child, int number) {
    supervisor_order(&child->supervisor, (struct supervisor_order){SUPERVISOR_PASS, .number = number});
}

void child_end(struct child *child, int64_t grace_ms) {
    int64_t moment = evlock_clock_us() + grace_ms * 1000;
    supervisor_order(&child->supervisor, (struct supervisor_order){SUPERVISOR_END, .moment = moment});
    if (child->look_ms > 0 || moment >= child->kill_at)
        return;
    child->kill_at = moment;
    child_set_timer(child, grace_ms + CHILD_LOOK_MS);
}

void child_set_deadline(struct child *child, int64_t deadline) {
    supervisor_set_deadline(&child->supervisor, deadline);
}

/* Whichever of evlock and the supervisor finds one first. */
static void child_refused(struct child *child, pid_t pid) {
    if (!child->told_of_one)
        child->wishes.on_refused(pid, child->wishes.arg);
    child->told_of_one = true;
}

/* --- In the supervisor's place ------------------------------------------------------------------------------------ */

/* The number is the command's as long as nobody has waited for it. */
static void child_kill_group(const struct child *child) {
    pid_t pid = atomic_load(&child->supervisor.page->pid), group = atomic_load(&child->supervisor.page->group);
    if (pid != 0)
        kill(group ? -group : pid, SIGKILL);
}

/* Without /proc they are the group, or the command alone. Returns whether anybody is left. */
static bool child_kill_blindly(struct child *child) {
    pid_t pid = atomic_load(&child->supervisor.page->pid), group = atomic_load(&child->supervisor.page->group);
    if (pid == 0 && group == 0)
        return false;
    int error = kill(group ? -group : pid, SIGKILL) == 0 ? 0 : errno;
    if (error == EPERM)
        child_refused(child, pid);
    return error != ESRCH;
}

/* The supervisor was killed: its children became evlock's, beside those that evlock had before. */
static void child_kill_all(struct child *child) {
    pid_t refused = 0;
    int left = descendants_signal(SIGKILL, child->since, &refused);
    if (left < 0)
        left = child_kill_blindly(child);
    if (refused)
        child_refused(child, refused);
    if (left == 0) {
        child_finish(child);
        return;
    }
    child_set_timer(child, child->look_ms);
    child->look_ms = 2 * child->look_ms < CHILD_LOOK_MOST_MS ? 2 * child->look_ms : CHILD_LOOK_MOST_MS;
}

/* Also when the supervisor should have killed them by now, and may be frozen. */
static void child_on_kill(evutil_socket_t fd, short what, void *arg) {
    struct child *child = arg;
    (void)fd, (void)what;
    if (child->look_ms > 0)
        child_kill_all(child);
    else
        child_kill_group(child);
}

/* Called before the supervisor, or any child of its, was waited for. */
static void child_bereave(struct child *child) {
    say_error(0, "the parent of the command was killed; ending the command");
    child->since = descendants_birth(child->supervisor.pid);
    child->look_ms = CHILD_LOOK_MS;
    child_kill_group(child);
    child_set_timer(child, 0);
}

/* --- Stopping and going on ---------------------------------------------------------------------------------------- */

static void child_go_on(struct child *child) {
    pid_t group = atomic_load(&child->supervisor.page->group);
    if (atomic_load(&child->supervisor.page->struck) || !child->wishes.may_go_on(child->wishes.arg)) {
        child_end(child, 0);
        return;
    }
    if (child->terminal && terminal_is_ours() && atomic_load(&child->supervisor.page->pid) != 0)
        terminal_give(group);
    child_order_all(child, SIGCONT);
}

/* Stops evlock, after the command: whoever stopped the one meant the other. It returns when evlock goes on. */
static void child_stop_too(struct child *child) {
    child_order_all(child, SIGSTOP);
    if (child->terminal)
        terminal_take(atomic_load(&child->supervisor.page->group));
    raise(SIGSTOP);
    child_go_on(child);
}

/* --- What is heard ------------------------------------------------------------------------------------------------ */

static void child_on_words(evutil_socket_t fd, short what, void *arg) {
    struct child *child = arg;
    struct supervisor_word word;
    bool gone;
    (void)fd, (void)what;
    while (supervisor_hear(&child->supervisor, &word, &gone)) {
        if (word.what == SUPERVISOR_REFUSED)
            child_refused(child, word.number);
        else if (child->terminal && word.number != SIGSTOP)
            child_stop_too(child);
    }
    if (gone)
        event_del(child->words); /* SIGCHLD says the rest */
}

/* Waits for the next that has ended, or for a supervisor that was stopped, which nobody but evlock sees. True if all
 * is over. What was stopped may have ended by now: it is waited for by what was seen, and woken behind that, or its end
 * would go unheard. */
static bool child_reap_one(struct child *child, const siginfo_t *info) {
    siginfo_t taken;
    bool its = info->si_pid == child->supervisor.pid, ended = false;
    bool stopped = info->si_code == CLD_STOPPED || info->si_code == CLD_TRAPPED;
    if (its && !stopped) {
        ended = atomic_load(&child->supervisor.page->ended);
        if (!ended)
            child_bereave(child);
        child->supervisor.pid = 0;
    }
    if (!stopped && info->si_pid == atomic_load(&child->supervisor.page->pid))
        atomic_store(&child->supervisor.page->pid, 0); /* from then on, the number may be another's */
    waitid(P_PID, (id_t)info->si_pid, &taken, (stopped ? WSTOPPED : WEXITED) | WNOHANG);
    if (its && stopped)
        kill(info->si_pid, SIGCONT);
    return ended;
}

static void child_reap(struct child *child) {
    siginfo_t info = {0};
    while (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
        if (child_reap_one(child, &info)) {
            child_finish(child);
            return;
        }
    }
}

static void child_on_signal(int number, void *arg) {
    struct child *child = arg;
    bool from_terminal = number == SIGINT || number == SIGQUIT || number == SIGWINCH;
    if (number == SIGCHLD)
        child_reap(child);
    else if (number == SIGTSTP)
        child_stop_too(child);
    else if (number == SIGCONT)
        child_go_on(child);
    else if (!child->wishes.foreground || !from_terminal || !terminal_is_input()) /* the terminal sends them to both */
        child_signal(child, number);
}

/* --- Starting ----------------------------------------------------------------------------------------------------- */

/* What has to be there before the command is. Returns 0, or -1. */
static int child_prepare(struct child *child) {
    static const int numbers[] = {SIGCHLD, SIGTERM, SIGINT,  SIGHUP,   SIGQUIT, SIGUSR1,
                                  SIGUSR2, SIGCONT, SIGTSTP, SIGWINCH, 0};
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    prctl(PR_SET_CHILD_SUBREAPER, 1);      /* for what a supervisor leaves that is killed */
    signal(SIGCHLD, SIG_DFL);              /* to ignore it would be to reap nothing */
    sigprocmask(SIG_UNBLOCK, &ends, NULL); /* nor would a blocked one ever be heard */
    child->killer = event_new(child->base, -1, 0, child_on_kill, child);
    return child->killer ? signals_catch(&child->signals, child->base, numbers, child_on_signal, child) : -1;
}

static int child_supervise(struct child *child) {
    const struct child_wishes *wishes = &child->wishes;
    struct supervisor_wishes wanted = {
        .launch = {.words = wishes->words,
                   .group = wishes->foreground ? getpgrp() : 0,
                   .in_front = child->terminal && terminal_is_ours(),
                   .inherits = wishes->inherits,
                   .variable = wishes->variable},
        .deadline = wishes->deadline,
        .grace_us = wishes->grace_ms * 1000,
        .end_signal = wishes->end_signal,
        .leave = wishes->leave,
    };
    if (supervisor_start(&child->supervisor, &wanted) != 0)
        return say_error(EXIT_TROUBLE, "cannot start a process: %s", strerror(errno));
    child->words = event_new(child->base, child->supervisor.socket, EV_READ | EV_PERSIST, child_on_words, child);
    if (child->words && event_add(child->words, NULL) == 0)
        return 0;
    return say_error(EXIT_TROUBLE, "the system refuses to wait for a process");
}

int child_start(struct child *child, struct event_base *base, const struct child_wishes *wishes) {
    *child = (struct child){.wishes = *wishes, .base = base, .supervisor = {.socket = -1}, .kill_at = INT64_MAX};
    child->terminal = !wishes->foreground && terminal_is_for_one();
    child->wishes.foreground = wishes->foreground || (terminal_is_input() && !child->terminal);
    int exit = child_prepare(child) == 0 ? child_supervise(child)
                                         : say_error(EXIT_TROUBLE, "the system refuses to wait for signals");
    if (exit)
        child_forget(child);
    return exit;
}
