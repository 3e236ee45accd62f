/* A process that watches evlock, and kills the command when evlock cannot. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "guard.h"

/* How many descriptors are closed where the system cannot close all at once. */
enum { GUARD_DESCRIPTORS = 65536 };

static int64_t guard_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* --- The guard's own process -------------------------------------------------------------------------------------- */

static void guard_close(unsigned first, unsigned last) {
#ifdef SYS_close_range
    if (first > last || syscall(SYS_close_range, first, last, 0) == 0)
        return;
#endif
    for (unsigned fd = first; fd <= last && fd < GUARD_DESCRIPTORS; fd++)
        close((int)fd);
}

/* Closes what belongs to evlock: a connection that stays open here would not be seen to end. */
static void guard_close_others(int one, int other) {
    unsigned low = (unsigned)(one < other ? one : other), high = (unsigned)(one < other ? other : one);
    if (low > 0)
        guard_close(0, low - 1);
    guard_close(low + 1, high - 1);
    guard_close(high + 1, ~0U);
}

/* Waits for the deadline as it is known now. True when it has passed, false when evlock has ended. */
static bool guard_wait(const struct guard *guard, int timer, int alive) {
    for (;;) {
        int64_t deadline = atomic_load(&guard->page->deadline), now = guard_now();
        if (deadline <= now)
            return true;
        /* A deadline that has moved out is seen when the one before passes. */
        struct itimerspec when = {
            .it_value = {.tv_sec = (time_t)(deadline / 1000000), .tv_nsec = deadline % 1000000 * 1000}};
        timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, NULL);
        struct pollfd ready[] = {{.fd = alive, .events = POLLIN}, {.fd = timer, .events = POLLIN}};
        if (poll(ready, 2, -1) > 0 && ready[0].revents)
            return false;
    }
}

static void guard_kill(const struct guard *guard, const struct descendants *descendants) {
    pid_t group = atomic_load(&guard->page->group);
    descendants_signal(descendants, SIGKILL);
    if (group > 0)
        kill(-group, SIGKILL);
}

__attribute__((noreturn)) static void guard_live(const struct guard *guard, struct descendants descendants, int alive) {
    int timer = timerfd_create(CLOCK_BOOTTIME, 0);
    descendants_spare(&descendants, getpid());
    setsid(); /* away from the terminal and from signals to evlock's group */
    prctl(PR_SET_NAME, "evlock-guard");
    guard_close_others(alive, timer);
    if (chdir("/") != 0 || timer < 0)
        _exit(1);
    bool passed = guard_wait(guard, timer, alive);
    atomic_store(&guard->page->struck, true);
    /* A process that forks faster than it is found is found the next time. */
    do {
        guard_kill(guard, &descendants);
        struct pollfd ready = {.fd = alive, .events = POLLIN};
        passed = passed && poll(&ready, 1, 20) == 0;
    } while (passed);
    guard_kill(guard, &descendants);
    _exit(0);
}

/* --- Evlock's side ------------------------------------------------------------------------------------------------ */

int guard_start(struct guard *guard, const struct descendants *descendants, int64_t ms) {
    int ends[2];
    sigset_t all, before;
    *guard = (struct guard){.alive = -1};
    void *page = mmap(NULL, sizeof *guard->page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return -1;
    guard->page = page;
    atomic_init(&guard->page->group, 0);
    atomic_init(&guard->page->struck, false);
    guard_set_remaining(guard, ms);
    if (pipe2(ends, O_CLOEXEC) != 0) {
        guard_end(guard);
        return -1;
    }
    guard->alive = ends[1];
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before); /* for the guard's whole life */
    guard->pid = fork();
    if (guard->pid == 0) {
        close(ends[1]);
        guard_live(guard, *descendants, ends[0]);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(ends[0]);
    if (guard->pid > 0)
        return 0;
    int error = errno;
    guard->pid = 0;
    guard_end(guard);
    errno = error;
    return -1;
}

void guard_set_group(struct guard *guard, pid_t group) {
    atomic_store(&guard->page->group, group);
}

void guard_set_remaining(struct guard *guard, int64_t ms) {
    int64_t now = guard_now();
    atomic_store(&guard->page->deadline, now + ms * 1000);
}

bool guard_struck(const struct guard *guard) {
    return guard->page && atomic_load(&guard->page->struck);
}

void guard_end(struct guard *guard) {
    if (guard->pid > 0) {
        kill(guard->pid, SIGKILL);
        while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    if (guard->alive >= 0)
        close(guard->alive);
    if (guard->page)
        munmap(guard->page, sizeof *guard->page);
    *guard = (struct guard){.alive = -1};
}
