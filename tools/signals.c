/* Signals: their names, and those that the event loop reports. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "signals.h"

static const struct {
    const char *name;
    int number;
} signals_names[] = {
    {"HUP", SIGHUP},   {"INT", SIGINT},     {"QUIT", SIGQUIT}, {"ILL", SIGILL},   {"TRAP", SIGTRAP},
    {"ABRT", SIGABRT}, {"BUS", SIGBUS},     {"FPE", SIGFPE},   {"KILL", SIGKILL}, {"USR1", SIGUSR1},
    {"SEGV", SIGSEGV}, {"USR2", SIGUSR2},   {"PIPE", SIGPIPE}, {"ALRM", SIGALRM}, {"TERM", SIGTERM},
    {"CHLD", SIGCHLD}, {"CONT", SIGCONT},   {"STOP", SIGSTOP}, {"TSTP", SIGTSTP}, {"TTIN", SIGTTIN},
    {"TTOU", SIGTTOU}, {"URG", SIGURG},     {"XCPU", SIGXCPU}, {"XFSZ", SIGXFSZ}, {"VTALRM", SIGVTALRM},
    {"PROF", SIGPROF}, {"WINCH", SIGWINCH}, {"IO", SIGIO},     {"SYS", SIGSYS},
};

int signals_number(const char *text) {
    char *end;
    long number = strtol(text, &end, 10);
    if (end != text && !*end)
        return number > 0 && number < NSIG ? (int)number : 0;
    if (strncmp(text, "SIG", 3) == 0)
        text += 3;
    for (size_t i = 0; i < sizeof signals_names / sizeof *signals_names; i++) {
        if (strcmp(signals_names[i].name, text) == 0)
            return signals_names[i].number;
    }
    return 0;
}

const char *signals_name(int number) {
    for (size_t i = 0; i < sizeof signals_names / sizeof *signals_names; i++) {
        if (signals_names[i].number == number)
            return signals_names[i].name;
    }
    return "?";
}

static void signals_on_signal(evutil_socket_t number, short what, void *arg) {
    struct signals *signals = arg;
    (void)what;
    signals->cb((int)number, signals->arg);
}

int signals_catch(struct signals *signals, struct event_base *base, const int *numbers, signals_cb cb, void *arg) {
    signals->cb = cb;
    signals->arg = arg;
    for (; *numbers && signals->count < SIGNALS_MOST; numbers++) {
        struct sigaction before;
        if (sigaction(*numbers, NULL, &before) == 0 && before.sa_handler == SIG_IGN)
            continue;
        struct event *event = evsignal_new(base, *numbers, signals_on_signal, signals);
        if (!event || event_add(event, NULL) != 0) {
            if (event)
                event_free(event);
            return -1;
        }
        signals->events[signals->count++] = event;
    }
    return 0;
}

static void signals_on_pipe(int number) {
    (void)number;
}

void signals_outlive_pipes(void) {
    struct sigaction before, action = {.sa_handler = signals_on_pipe}; /* a handler, which does not outlive exec */
    if (sigaction(SIGPIPE, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
        sigaction(SIGPIPE, &action, NULL);
}

void signals_end(struct signals *signals) {
    while (signals->count > 0)
        event_free(signals->events[--signals->count]);
}
