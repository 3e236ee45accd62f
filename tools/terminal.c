/* The terminal: who is in its foreground. */
#include <signal.h>
#include <unistd.h>

#include "terminal.h"

bool terminal_is_input(void) {
    return tcgetpgrp(STDIN_FILENO) >= 0;
}

bool terminal_is_for_one(void) {
    return terminal_is_input() && isatty(STDOUT_FILENO) && getpgrp() == getpid();
}

bool terminal_is_ours(void) {
    return tcgetpgrp(STDIN_FILENO) == getpgrp();
}

void terminal_give(pid_t group) {
    sigset_t stop, before;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTTOU); /* which a process in the background would be stopped by */
    sigprocmask(SIG_BLOCK, &stop, &before);
    tcsetpgrp(STDIN_FILENO, group);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

void terminal_take(pid_t group) {
    if (group > 0 && tcgetpgrp(STDIN_FILENO) == group)
        terminal_give(getpgrp());
}

void terminal_end_by_interrupt(void) {
    if (!terminal_is_input())
        return;
    signal(SIGINT, SIG_DFL);
    raise(SIGINT);
}
