/* The command's parent: starts it, and kills it and all that it started in time. */
#include <errno.h>
#include <evlock/loop.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "descendants.h"
#include "exits.h"
#include "supervisor.h"

/* How many descriptors are closed where the system cannot close all at once. */
enum { SUPERVISOR_DESCRIPTORS = 65536 };

/* How often what was killed is looked for, at first and at last, in microseconds. Mostly its end is heard before. */
enum { SUPERVISOR_LOOK_US = 10000, SUPERVISOR_LOOK_MOST_US = 1000000 };

/* Its descriptors, in the places of the standard ones, which it does not need. */
enum { SUPERVISOR_SOCKET, SUPERVISOR_TIMER, SUPERVISOR_SIGNALS, SUPERVISOR_OWN };

/* The supervisor's own state. */
struct supervisor_watch {
    const struct supervisor_wishes *wishes;
    struct supervisor_page *page;
    pid_t evlock;     /* 0: it is gone */
    int64_t kill_at;  /* when all are killed, if the deadline is not sooner */
    int64_t look_us;  /* the next pause between two looks for what was killed; 0: nothing was killed yet */
    bool asked;       /* all were asked to end */
    bool told_of_one; /* evlock knows of one that may not be signalled */
};

/* --- Signals to the command --------------------------------------------------------------------------------------- */

static void supervisor_say(const struct supervisor_watch *watch, struct supervisor_word word) {
    if (watch->evlock)
        send(SUPERVISOR_SOCKET, &word, sizeof word, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Once is enough. */
static void supervisor_refused(struct supervisor_watch *watch, pid_t pid) {
    if (!watch->told_of_one)
        supervisor_say(watch, (struct supervisor_word){SUPERVISOR_REFUSED, pid});
    watch->told_of_one = true;
}

/* To the command and its group, as long as the command was not waited for: nobody else can have its number. */
static void supervisor_signal(struct supervisor_watch *watch, int number) {
    pid_t pid = atomic_load(&watch->page->pid), group = atomic_load(&watch->page->group);
    if (pid != 0 && kill(group ? -group : pid, number) != 0 && errno == EPERM)
        supervisor_refused(watch, pid);
}

/* Without /proc. A group whose first process was waited for keeps its number while anybody is in it. */
static void supervisor_signal_blindly(struct supervisor_watch *watch, int number) {
    pid_t group = atomic_load(&watch->page->group);
    if (atomic_load(&watch->page->pid) != 0)
        supervisor_signal(watch, number);
    else if (!group || kill(-group, number) != 0)
        supervisor_refused(watch, 0);
}

/* To each of its descendants. */
static void supervisor_signal_all(struct supervisor_watch *watch, int number) {
    pid_t refused = 0;
    if (descendants_signal(number, (struct descendants_birth){0}, &refused) < 0)
        supervisor_signal_blindly(watch, number);
    else if (refused)
        supervisor_refused(watch, refused);
}

/* --- The end of the command --------------------------------------------------------------------------------------- */

/* One was stopped. It may have ended by now, and is waited for as stopped alone, or its end would go unheard. */
static void supervisor_reap_stopped(const struct supervisor_watch *watch, pid_t pid) {
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG) == 0 && info.si_pid != 0 &&
        pid == atomic_load(&watch->page->pid))
        supervisor_say(watch, (struct supervisor_word){SUPERVISOR_STOPPED, info.si_status});
}

/* Waits for all that have ended or stopped. Returns how many have ended. `ret_none` is whether no descendant is left:
 * that is exact, since whoever is orphaned becomes this process's child. */
static int supervisor_reap(struct supervisor_watch *watch, bool *ret_none) {
    siginfo_t info = {0};
    int status = 0, ended = 0;
    pid_t command = atomic_load(&watch->page->pid);
    while (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
        if (info.si_code == CLD_STOPPED || info.si_code == CLD_TRAPPED) {
            supervisor_reap_stopped(watch, info.si_pid);
            continue;
        }
        if (info.si_pid == command)
            atomic_store(&watch->page->pid, 0); /* first: from then on, the number may be another's */
        if (waitpid(info.si_pid, &status, WNOHANG) <= 0)
            continue;
        ended++;
        if (info.si_pid == command)
            atomic_store(&watch->page->status, status);
    }
    *ret_none = waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;
    return ended;
}

static void supervisor_ask(struct supervisor_watch *watch, int64_t kill_at) {
    if (!watch->asked) {
        watch->asked = true;
        supervisor_signal_all(watch, watch->wishes->end_signal);
        supervisor_signal_all(watch, SIGCONT); /* what is stopped hears no other signal */
    }
    if (kill_at < watch->kill_at)
        watch->kill_at = kill_at;
}

/* The group first, by one call. Whose parent was killed becomes a child of this process, and is seen the next time. */
static void supervisor_kill(struct supervisor_watch *watch, bool *ret_none) {
    do {
        supervisor_signal(watch, SIGKILL);
        supervisor_signal_all(watch, SIGKILL);
    } while (supervisor_reap(watch, ret_none) > 0 && !*ret_none);
    watch->look_us = watch->look_us == 0 ? SUPERVISOR_LOOK_US : 2 * watch->look_us;
    if (watch->look_us > SUPERVISOR_LOOK_MOST_US)
        watch->look_us = SUPERVISOR_LOOK_MOST_US;
}

/* The deadline has passed, and nothing was killed yet. */
static bool supervisor_is_late(const struct supervisor_watch *watch, int64_t now) {
    return watch->look_us == 0 && now >= atomic_load(&watch->page->deadline);
}

/* Does what is due. False if there is nothing left to do. */
static bool supervisor_act(struct supervisor_watch *watch) {
    bool none;
    if (supervisor_reap(watch, &none) > 0 && watch->look_us > 0)
        watch->look_us = SUPERVISOR_LOOK_US;
    bool ended = atomic_load(&watch->page->pid) == 0;
    if (none || (ended && watch->wishes->leave && !watch->asked && watch->look_us == 0))
        return false;
    int64_t now = evlock_clock_us();
    bool late = supervisor_is_late(watch, now);
    if (late)
        atomic_store(&watch->page->struck, true);
    if (late || now >= watch->kill_at || watch->look_us > 0)
        supervisor_kill(watch, &none);
    else if (ended) /* behind the deadline nobody is asked: who is stopped would go on for that */
        supervisor_ask(watch, now + watch->wishes->grace_us);
    return !none;
}

/* --- Its life ----------------------------------------------------------------------------------------------------- */

/* A deadline that has moved out is seen when the one before passes. */
static void supervisor_set_timer(const struct supervisor_watch *watch) {
    int64_t when = atomic_load(&watch->page->deadline);
    if (watch->kill_at < when)
        when = watch->kill_at;
    if (watch->look_us > 0)
        when = evlock_clock_us() + watch->look_us;
    if (when < 1)
        when = 1; /* zero would be never */
    struct itimerspec at = {.it_value = {.tv_sec = (time_t)(when / 1000000), .tv_nsec = when % 1000000 * 1000}};
    timerfd_settime(SUPERVISOR_TIMER, TFD_TIMER_ABSTIME, &at, NULL);
}

static void supervisor_obey(struct supervisor_watch *watch) {
    struct supervisor_order order;
    ssize_t got;
    while ((got = recv(SUPERVISOR_SOCKET, &order, sizeof order, MSG_DONTWAIT)) == (ssize_t)sizeof order) {
        if (order.what == SUPERVISOR_PASS)
            supervisor_signal(watch, order.number);
        else if (order.what == SUPERVISOR_ALL)
            supervisor_signal_all(watch, order.number);
        else
            supervisor_ask(watch, order.moment);
    }
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        watch->evlock = 0;
        watch->kill_at = 0;
    }
}

/* The command takes its parent for evlock, and evlock shall get what is sent to it. */
static void supervisor_pass_up(const struct supervisor_watch *watch) {
    struct signalfd_siginfo info;
    while (read(SUPERVISOR_SIGNALS, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo != SIGCHLD && watch->evlock && getppid() == watch->evlock)
            kill(watch->evlock, (int)info.ssi_signo);
    }
}

/* Behind the deadline, nothing is obeyed before all are killed: an order may let go on what is stopped. */
static void supervisor_wait(struct supervisor_watch *watch) {
    uint64_t times;
    struct pollfd ready[SUPERVISOR_OWN] = {{.fd = watch->evlock ? SUPERVISOR_SOCKET : -1, .events = POLLIN},
                                           {.fd = SUPERVISOR_TIMER, .events = POLLIN},
                                           {.fd = SUPERVISOR_SIGNALS, .events = POLLIN}};
    supervisor_set_timer(watch);
    poll(ready, SUPERVISOR_OWN, -1);
    if (ready[SUPERVISOR_TIMER].revents && read(SUPERVISOR_TIMER, &times, sizeof times) < 0)
        return; /* it was set anew */
    if (ready[SUPERVISOR_SIGNALS].revents)
        supervisor_pass_up(watch);
    if (ready[SUPERVISOR_SOCKET].revents && !supervisor_is_late(watch, evlock_clock_us()))
        supervisor_obey(watch);
}

static void supervisor_fail(struct supervisor_page *page, int exit, int error) {
    atomic_store(&page->error, error);
    atomic_store(&page->not_run, exit);
}

/* In the process that is to be the command. */
__attribute__((noreturn)) static void supervisor_become(const struct supervisor_watch *watch, pid_t self) {
    int error = launch(&watch->wishes->launch, self, &watch->page->deadline);
    if (error)
        supervisor_fail(watch->page, error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN, error);
    else
        atomic_store(&watch->page->struck, true);
    _exit(EXIT_TROUBLE);
}

/* Starts the command, unless its time has passed by now. */
static void supervisor_launch(const struct supervisor_watch *watch) {
    struct supervisor_page *page = watch->page;
    pid_t self = getpid();
    if (evlock_clock_us() >= atomic_load(&page->deadline)) {
        atomic_store(&page->struck, true);
        return;
    }
    pid_t pid = fork();
    if (pid == 0)
        supervisor_become(watch, self);
    if (pid < 0) {
        supervisor_fail(page, EXIT_TROUBLE, errno);
        return;
    }
    pid_t group = watch->wishes->launch.group;
    setpgid(pid, group); /* here too, so that it is done when the first signal is passed on */
    atomic_store(&page->group, group ? 0 : pid);
    atomic_store(&page->pid, pid);
}

/* Takes the places of the standard descriptors, which evlock always has, and closes all others: a connection of
 * evlock's that stays open here would not be seen to end. */
static void supervisor_close_others(const int own[SUPERVISOR_OWN]) {
    for (int i = 0; i < SUPERVISOR_OWN; i++)
        dup2(own[i], i);
#ifdef SYS_close_range
    if (syscall(SYS_close_range, SUPERVISOR_OWN, ~0U, 0) == 0)
        return;
#endif
    for (int fd = SUPERVISOR_OWN; fd < SUPERVISOR_DESCRIPTORS; fd++)
        close(fd);
}

/* It stays in evlock's session, or the command's group would be an orphan there, which ctrl-Z does not stop. */
__attribute__((noreturn)) static void supervisor_live(const struct supervisor_wishes *wishes,
                                                      struct supervisor_page *page, const int own[SUPERVISOR_OWN],
                                                      pid_t evlock) {
    struct supervisor_watch watch = {.wishes = wishes, .page = page, .evlock = evlock, .kill_at = INT64_MAX};
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_NAME, "evlock-parent");
    setpgid(0, 0); /* away from signals to evlock's group, and from the terminal's */
    supervisor_launch(&watch);
    supervisor_close_others(own);
    int left = chdir("/"); /* its file system can be taken away while the command runs */
    (void)left;
    while (supervisor_act(&watch))
        supervisor_wait(&watch);
    atomic_store(&page->ended, true);
    _exit(0);
}

/* --- Evlock's side ------------------------------------------------------------------------------------------------ */

static int supervisor_open(int ret_own[SUPERVISOR_OWN], int *ret_socket) {
    static const int numbers[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP};
    int ends[2] = {-1, -1};
    sigset_t heard;
    sigemptyset(&heard);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaddset(&heard, numbers[i]);
    int failed = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
    *ret_socket = ends[0];
    ret_own[SUPERVISOR_SOCKET] = ends[1];
    ret_own[SUPERVISOR_TIMER] = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    ret_own[SUPERVISOR_SIGNALS] = signalfd(-1, &heard, SFD_CLOEXEC | SFD_NONBLOCK);
    return failed || ret_own[SUPERVISOR_TIMER] < 0 || ret_own[SUPERVISOR_SIGNALS] < 0 ? -1 : 0;
}

static int supervisor_fork(struct supervisor *supervisor, const struct supervisor_wishes *wishes) {
    int own[SUPERVISOR_OWN];
    sigset_t all, before;
    pid_t evlock = getpid();
    int failed = supervisor_open(own, &supervisor->socket), error = errno;
    if (!failed) {
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, &before); /* for the supervisor's whole life */
        struct supervisor_wishes its = *wishes;
        its.launch.mask = before;
        supervisor->pid = fork();
        error = errno;
        if (supervisor->pid == 0) {
            close(supervisor->socket);
            supervisor_live(&its, supervisor->page, own, evlock);
        }
        sigprocmask(SIG_SETMASK, &before, NULL);
    }
    for (int i = 0; i < SUPERVISOR_OWN; i++) {
        if (own[i] >= 0)
            close(own[i]);
    }
    errno = error;
    return failed || supervisor->pid < 0 ? -1 : 0;
}

int supervisor_start(struct supervisor *supervisor, const struct supervisor_wishes *wishes) {
    *supervisor = (struct supervisor){.socket = -1};
    void *page = mmap(NULL, sizeof *supervisor->page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return -1;
    supervisor->page = page; /* all zero */
    supervisor_set_deadline(supervisor, wishes->deadline);
    if (supervisor_fork(supervisor, wishes) == 0)
        return 0;
    int error = errno;
    supervisor_end(supervisor);
    errno = error;
    return -1;
}

void supervisor_set_deadline(struct supervisor *supervisor, int64_t deadline) {
    atomic_store(&supervisor->page->deadline, deadline);
}

void supervisor_order(const struct supervisor *supervisor, struct supervisor_order order) {
    send(supervisor->socket, &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool supervisor_hear(const struct supervisor *supervisor, struct supervisor_word *ret_word, bool *ret_gone) {
    ssize_t got = recv(supervisor->socket, ret_word, sizeof *ret_word, MSG_DONTWAIT);
    *ret_gone = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
    return got == (ssize_t)sizeof *ret_word;
}

void supervisor_end(struct supervisor *supervisor) {
    if (supervisor->pid > 0) {
        kill(supervisor->pid, SIGKILL);
        while (waitpid(supervisor->pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    if (supervisor->socket >= 0)
        close(supervisor->socket);
    if (supervisor->page)
        munmap(supervisor->page, sizeof *supervisor->page);
    *supervisor = (struct supervisor){.socket = -1};
}
