/* The command's own process, from its fork until it is the command. */
#include <errno.h>
#include <evlock/loop.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "launch.h"
#include "terminal.h"

/* As if evlock had never caught a signal. What was ignored before stays so. */
static void launch_reset_signals(const sigset_t *mask) {
    struct sigaction action;
    for (int number = 1; number < NSIG; number++) {
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            signal(number, SIG_DFL);
    }
    sigprocmask(SIG_SETMASK, mask, NULL);
}

/* Gives the command its descriptor: shells know numbers of one digit best. What closes at exec is free for that. */
static int launch_pass_on(const struct launch *launch) {
    int number = STDERR_FILENO + 1, flags = 0;
    char text[12];
    while ((flags = fcntl(number, F_GETFD)) >= 0 && !(flags & FD_CLOEXEC))
        number++;
    if (number == launch->inherits)
        fcntl(number, F_SETFD, 0);
    else if (dup2(launch->inherits, number) < 0)
        return -1;
    snprintf(text, sizeof text, "%d", number);
    return setenv(launch->variable, text, 1);
}

int launch(const struct launch *launch, pid_t parent, const _Atomic int64_t *deadline) {
    if (setpgid(0, launch->group) == 0 && launch->in_front)
        terminal_give(getpgrp());
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* which had ended before it could be asked for */
        return 0;
    if (launch_pass_on(launch) != 0)
        return errno;
    launch_reset_signals(&launch->mask);
    if (evlock_clock_us() >= atomic_load(deadline))
        return 0;
    execvp(launch->words[0], launch->words);
    return errno;
}
