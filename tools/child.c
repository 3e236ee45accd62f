/* A command that evlock runs, with all that it starts. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "duration.h"
#include "exits.h"
#include "say.h"
#include "terminal.h"

/* How often what was killed is looked for, at first and at last, in milliseconds. */
enum { CHILD_LOOK_MS = 10, CHILD_LOOK_MOST_MS = 1000 };

static void child_set_timer(struct child *child, int64_t ms) {
    struct timeval span = duration_span(ms);
    event_add(child->killer, &span);
}

/* --- Ending ------------------------------------------------------------------------------------------------------- */

/* Sends a signal to all; returns how many live. Without /proc these are the members of the group. */
static int child_signal_all(const struct child *child, int number) {
    int living = descendants_signal(&child->descendants, number);
    if (living >= 0)
        return living;
    pid_t target = child->group > 0 ? -child->group : child->pid;
    return target != 0 && kill(target, number) == 0;
}

static void child_finish(struct child *child) {
    signals_end(&child->signals);
    event_free(child->killer);
    child->struck = guard_struck(&child->guard);
    guard_end(&child->guard);
    if (child->terminal)
        terminal_take(child->group);
    child->wishes.on_end(child->status, child->wishes.arg);
}

static void child_on_kill(evutil_socket_t fd, short what, void *arg) {
    struct child *child = arg;
    (void)fd, (void)what;
    child->look_ms = child->look_ms == 0 ? CHILD_LOOK_MS : 2 * child->look_ms;
    if (child->look_ms > CHILD_LOOK_MOST_MS)
        child->look_ms = CHILD_LOOK_MOST_MS;
    if (child_signal_all(child, SIGKILL) == 0 && child->pid == 0)
        child_finish(child);
    else
        child_set_timer(child, child->look_ms);
}

void child_end(struct child *child, int64_t grace_ms) {
    struct timeval due, now;
    if (child->look_ms > 0)
        return;
    if (!child->ending) {
        child->ending = true;
        child_signal_all(child, child->wishes.end_signal);
        child_signal_all(child, SIGCONT); /* what is stopped hears no other signal */
    } else if (event_pending(child->killer, EV_TIMEOUT, &due)) {
        event_base_gettimeofday_cached(child->base, &now);
        if ((due.tv_sec - now.tv_sec) * 1000 + (due.tv_usec - now.tv_usec) / 1000 <= grace_ms)
            return;
    }
    child_set_timer(child, grace_ms);
}

/* The command has ended; and with it, or a little later, all that it started. */
static void child_go_on_ending(struct child *child) {
    if (child->pid != 0)
        return;
    bool gone = (child->wishes.leave && !child->ending) || child_signal_all(child, 0) == 0;
    if (gone)
        child_finish(child);
    else
        child_end(child, child->wishes.grace_ms);
}

/* --- Stopping and going on ---------------------------------------------------------------------------------------- */

static void child_go_on(struct child *child) {
    if (guard_struck(&child->guard) || !child->wishes.may_go_on(child->wishes.arg)) {
        child_end(child, 0);
        return;
    }
    if (child->terminal && terminal_is_ours() && child->pid != 0)
        terminal_give(child->group);
    child_signal_all(child, SIGCONT);
}

/* Stops evlock, after the command: whoever stopped the one meant the other. It returns when evlock goes on. */
static void child_stop_too(struct child *child) {
    child_signal_all(child, SIGSTOP);
    if (child->terminal)
        terminal_take(child->group);
    raise(SIGSTOP);
    child_go_on(child);
}

/* --- Signals ------------------------------------------------------------------------------------------------------ */

void child_signal(struct child *child, int number) {
    if (child->pid != 0)
        kill(child->group > 0 ? -child->group : child->pid, number);
}

static void child_reap(struct child *child) {
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0;) {
        if (pid == child->guard.pid)
            child->guard.pid = 0; /* killed by someone; the command goes on without it */
        if (pid != child->pid)
            continue;
        if (!WIFSTOPPED(status)) {
            child->pid = 0;
            child->status = status;
        } else if (child->terminal && WSTOPSIG(status) != SIGSTOP)
            child_stop_too(child);
    }
    child_go_on_ending(child);
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
    else if (child->group > 0 || !from_terminal || !terminal_is_input()) /* the terminal sends them to both */
        child_signal(child, number);
}

/* --- Starting ----------------------------------------------------------------------------------------------------- */

/* As if evlock had never caught a signal. What was ignored before stays so. */
static void child_reset_signals(const sigset_t *mask) {
    struct sigaction action;
    for (int number = 1; number < NSIG; number++) {
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            signal(number, SIG_DFL);
    }
    sigprocmask(SIG_SETMASK, mask, NULL);
}

/* Gives the command its descriptor: shells know numbers of one digit best. What closes at exec is free for that. */
static int child_pass_on(const struct child *child, int report) {
    int number = STDERR_FILENO + 1, flags = 0;
    char text[12];
    while (number == report || ((flags = fcntl(number, F_GETFD)) >= 0 && !(flags & FD_CLOEXEC)))
        number++;
    if (number == child->wishes.inherits)
        fcntl(number, F_SETFD, 0);
    else if (dup2(child->wishes.inherits, number) < 0)
        return -1;
    snprintf(text, sizeof text, "%d", number);
    return setenv(child->wishes.variable, text, 1);
}

/* In the new process. All signals are blocked. What goes wrong is reported through `report`. */
__attribute__((noreturn)) static void child_exec(const struct child *child, pid_t parent, bool in_front,
                                                 const sigset_t *mask, int report) {
    if (!child->wishes.foreground && setpgid(0, 0) == 0 && in_front)
        terminal_give(getpgrp());
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* which had ended before it could be asked for */
        _exit(EXIT_TROUBLE);
    if (child_pass_on(child, report) == 0) {
        child_reset_signals(mask);
        execvp(child->wishes.words[0], child->wishes.words);
    }
    int error = errno;
    ssize_t written = write(report, &error, sizeof error);
    (void)written;
    _exit(EXIT_NOT_RUN);
}

/* Why the command is not run, once its process was there. The pipe ends without a word when it is. */
static int child_wait_for_exec(int report) {
    int error = 0;
    while (read(report, &error, sizeof error) < 0 && errno == EINTR) {
    }
    return error;
}

/* Starts the process and waits until it runs the command. Returns 0, or an exit status after saying why. */
static int child_fork(struct child *child) {
    int ends[2];
    sigset_t all, mask;
    pid_t parent = getpid();
    bool in_front = child->terminal && terminal_is_ours();
    if (pipe2(ends, O_CLOEXEC) != 0)
        return say_error(EXIT_TROUBLE, "cannot start a process: %s", strerror(errno));
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &mask);
    child->pid = fork();
    if (child->pid == 0)
        child_exec(child, parent, in_front, &mask, ends[1]);
    int error = child->pid < 0 ? errno : 0;
    close(ends[1]);
    if (child->pid > 0 && !child->wishes.foreground) {
        setpgid(child->pid, child->pid); /* here too, so that it is done when the first signal is passed on */
        child->group = child->pid;
        guard_set_group(&child->guard, child->group);
    }
    if (child->pid > 0 && (error = child_wait_for_exec(ends[0])) != 0)
        waitpid(child->pid, NULL, 0);
    close(ends[0]);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    if (child->pid < 0)
        return say_error(EXIT_TROUBLE, "cannot start a process: %s", strerror(error));
    if (error)
        return say_error(error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN, "cannot run '%s': %s", child->wishes.words[0],
                         strerror(error));
    return 0;
}

/* What has to be there before the command is. Returns as child_fork(). */
static int child_prepare(struct child *child) {
    static const int numbers[] = {SIGCHLD, SIGTERM, SIGINT,  SIGHUP,   SIGQUIT, SIGUSR1,
                                  SIGUSR2, SIGCONT, SIGTSTP, SIGWINCH, 0};
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    signal(SIGCHLD, SIG_DFL); /* to ignore it would be to reap nothing */
    descendants_begin(&child->descendants, getpid());
    int started = guard_start(&child->guard, &child->descendants, child->wishes.remaining_ms);
    if (started != 0)
        return say_error(EXIT_TROUBLE, "cannot start a process: %s", strerror(errno));
    descendants_spare(&child->descendants, child->guard.pid);
    child->killer = event_new(child->base, -1, 0, child_on_kill, child);
    if (child->killer && signals_catch(&child->signals, child->base, numbers, child_on_signal, child) == 0)
        return 0;
    return say_error(EXIT_TROUBLE, "the system refuses to wait for signals");
}

int child_start(struct child *child, struct event_base *base, const struct child_wishes *wishes) {
    *child = (struct child){.wishes = *wishes, .base = base, .guard = {.alive = -1}};
    child->terminal = !wishes->foreground && terminal_is_for_one();
    child->wishes.foreground = wishes->foreground || (terminal_is_input() && !child->terminal);
    int exit = child_prepare(child);
    if (exit == 0)
        exit = child_fork(child);
    if (exit == 0)
        return 0;
    signals_end(&child->signals);
    if (child->killer)
        event_free(child->killer);
    guard_end(&child->guard);
    if (child->terminal)
        terminal_take(child->group);
    return exit;
}

void child_set_remaining(struct child *child, int64_t ms) {
    guard_set_remaining(&child->guard, ms);
}
