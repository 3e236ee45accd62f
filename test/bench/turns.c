/* Turns at one lock, by several processes; see turns.h. */
#include "turns.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "meter.h"

/* What the processes share. */
static struct {
    atomic_int open; /* processes that are ready */
    atomic_bool begun, over;
    atomic_size_t granted, released;
    atomic_long of_each[WAITERS];
    struct turn turns[TURNS_MAX];
} * shared;

static pid_t processes[PROCESSES];
static int let_go[2]; /* a pipe: its end lets the first turn go */
static bool is_endless;

/* --- In a process ------------------------------------------------------------------------------------------------- */

static const struct way *way;
static size_t process, left;
static struct event_base *base;

static void release(size_t waiter) {
    atomic_store(&shared->begun, true);
    shared->turns[atomic_load(&shared->granted) - 1].released = clock_now();
    way->release(waiter);
}

void turn_granted(size_t waiter) {
    size_t turn = atomic_fetch_add(&shared->granted, 1);

    CHECK(turn < TURNS_MAX, "too many turns");
    CHECK(turn == atomic_load(&shared->released) || atomic_load(&shared->begun), "two holders");
    shared->turns[turn].granted = clock_now();
    atomic_fetch_add(&shared->of_each[process * SHARE + waiter], 1);
    if (turn > 0)
        release(waiter);
}

void turn_released(size_t waiter) {
    atomic_fetch_add(&shared->released, 1);
    if (is_endless && !atomic_load(&shared->over))
        way->acquire(waiter);
    else if (--left == 0)
        event_base_loopbreak(base);
}

static void on_let_go(evutil_socket_t fd, short what, void *arg) {
    (void)fd, (void)what;
    event_del(arg);
    release(0);
}

/* The first waiter of the first process has the lock before any other is there. */
static void run_process(void) {
    struct event *go;

    CHECK((base = event_base_new()), "no loop");
    way->open(base);
    left = SHARE;
    go = event_new(base, let_go[0], EV_READ, on_let_go, event_self_cbarg());
    if (process == 0) {
        CHECK(event_add(go, NULL) == 0, "no event");
        way->acquire(0);
    }
    while (atomic_load(&shared->granted) == 0)
        CHECK(event_base_loop(base, EVLOOP_NONBLOCK) >= 0, "the loop ended");
    for (size_t i = process == 0; i < SHARE; i++)
        way->acquire(i);
    atomic_fetch_add(&shared->open, 1);
    event_base_dispatch(base);
    way->close();
    event_free(go);
    event_base_free(base);
    _exit(0);
}

/* --- In the benchmark --------------------------------------------------------------------------------------------- */

static void pause_a_moment(void) {
    nanosleep(&(struct timespec){0, 1000000}, NULL);
}

static void check_processes(void) {
    for (size_t i = 0; i < PROCESSES; i++) {
        siginfo_t ended = {0};
        int known = waitid(P_PID, (id_t)processes[i], &ended, WEXITED | WNOHANG | WNOWAIT);
        CHECK(known == 0 && (ended.si_pid == 0 || ended.si_status == 0), "a process failed");
    }
}

static bool all_wait(void) {
    return atomic_load(&shared->open) == PROCESSES &&
           (!way->queued || server_integer(&servers[0], way->queued) >= WAITERS - 1);
}

/* Until all but the holder wait; where they cannot be counted, each is given the time for its first attempt. */
static void await_waiters(void) {
    while (!all_wait()) {
        check_processes();
        pause_a_moment();
    }
    if (!way->queued)
        nanosleep(&(struct timespec){0, 200000000}, NULL);
}

void turns_begin(const struct way *chosen, bool endless) {
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED && pipe2(let_go, O_CLOEXEC) == 0, "no shared memory");
    way = chosen;
    is_endless = endless;
    for (process = 0; process < PROCESSES; process++) {
        processes[process] = fork();
        CHECK(processes[process] >= 0, "no process");
        if (processes[process] == 0)
            run_process();
    }
    await_waiters();
}

void turns_let_go(void) {
    CHECK(write(let_go[1], "!", 1) == 1, "the pipe is broken");
}

size_t turns_count(void) {
    check_processes();
    return atomic_load(&shared->released);
}

struct turn turns_at(size_t index) {
    return shared->turns[index];
}

void turns_of_each(long turns[WAITERS]) {
    for (size_t i = 0; i < WAITERS; i++)
        turns[i] = atomic_load(&shared->of_each[i]);
}

double turns_cpu(void) {
    struct timespec cpu;
    clockid_t clock;
    double sum = 0;

    for (size_t i = 0; i < PROCESSES; i++) {
        CHECK(clock_getcpuclockid(processes[i], &clock) == 0 && clock_gettime(clock, &cpu) == 0, "no CPU clock");
        sum += (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9;
    }
    return sum;
}

void turns_end(void) {
    int status;

    atomic_store(&shared->over, true);
    for (size_t i = 0; i < PROCESSES; i++) {
        CHECK(waitpid(processes[i], &status, 0) == processes[i], "a process is gone");
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a process failed");
    }
    close(let_go[0]);
    close(let_go[1]);
    munmap(shared, sizeof(*shared));
}
