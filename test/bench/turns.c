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
    atomic_size_t granted, released, most_waited;
    atomic_long of_each[WAITERS_MAX];
    struct turn turns[TURNS_MAX];
} * shared;

static pid_t processes[PROCESSES_MAX];
static int let_go[2]; /* a pipe: its end lets the first turn go */
static struct crowd crowd;

/* --- In a process ------------------------------------------------------------------------------------------------- */

static size_t process, share, left, holder;
static size_t asked[WAITERS_MAX]; /* how many turns there had been when it began to wait */
static struct event_base *base;
static struct event *held; /* for as long as a turn lasts */

static void acquire(size_t waiter) {
    asked[waiter] = atomic_load(&shared->granted);
    crowd.way->acquire(waiter);
}

static void release(size_t waiter) {
    atomic_store(&shared->begun, true);
    shared->turns[atomic_load(&shared->granted) - 1].released = clock_now();
    crowd.way->release(waiter);
}

static void on_held(evutil_socket_t fd, short what, void *arg) {
    (void)fd, (void)what, (void)arg;
    release(holder);
}

static void hold(size_t waiter) {
    holder = waiter;
    CHECK(event_add(held, &(struct timeval){0, crowd.hold_ms * 1000}) == 0, "no event");
}

/* Whoever is granted a turn is the only one to write this. */
static void note_wait(size_t turns) {
    if (turns > atomic_load(&shared->most_waited))
        atomic_store(&shared->most_waited, turns);
}

void turn_granted(size_t waiter) {
    size_t turn = atomic_fetch_add(&shared->granted, 1);

    CHECK(turn < TURNS_MAX, "too many turns");
    CHECK(turn == atomic_load(&shared->released) || atomic_load(&shared->begun), "two holders");
    shared->turns[turn].granted = clock_now();
    atomic_fetch_add(&shared->of_each[process * share + waiter], 1);
    note_wait(turn - asked[waiter]);
    if (turn > 0 && crowd.hold_ms > 0)
        hold(waiter);
    else if (turn > 0)
        release(waiter);
}

void turn_released(size_t waiter) {
    atomic_fetch_add(&shared->released, 1);
    if (crowd.endless && !atomic_load(&shared->over))
        acquire(waiter);
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
    crowd.way->open(base, share);
    left = share;
    go = event_new(base, let_go[0], EV_READ, on_let_go, event_self_cbarg());
    held = evtimer_new(base, on_held, NULL);
    if (process == 0) {
        CHECK(event_add(go, NULL) == 0, "no event");
        acquire(0);
    }
    while (atomic_load(&shared->granted) == 0)
        CHECK(event_base_loop(base, EVLOOP_NONBLOCK) >= 0, "the loop ended");
    for (size_t i = process == 0; i < share; i++)
        acquire(i);
    atomic_fetch_add(&shared->open, 1);
    event_base_dispatch(base);
    crowd.way->close();
    event_free(held);
    event_free(go);
    event_base_free(base);
    _exit(0);
}

/* --- In the benchmark --------------------------------------------------------------------------------------------- */

static void pause_a_moment(void) {
    nanosleep(&(struct timespec){0, 1000000}, NULL);
}

static void check_processes(void) {
    for (size_t i = 0; i < crowd.processes; i++) {
        siginfo_t ended = {0};
        int known = waitid(P_PID, (id_t)processes[i], &ended, WEXITED | WNOHANG | WNOWAIT);
        CHECK(known == 0 && (ended.si_pid == 0 || ended.si_status == 0), "a process failed");
    }
}

/* All but the holder, or but the holder's process. */
static bool all_wait(void) {
    size_t places = crowd.way->grouped ? crowd.processes : crowd.waiters;

    return (size_t)atomic_load(&shared->open) == crowd.processes &&
           (!crowd.way->queued || (size_t)server_integer(&servers[0], crowd.way->queued) >= places - 1);
}

/* Until all but the holder wait; where they cannot be counted, each is given the time for its first attempt. */
static void await_waiters(void) {
    while (!all_wait()) {
        check_processes();
        pause_a_moment();
    }
    if (!crowd.way->queued)
        nanosleep(&(struct timespec){0, 200000000}, NULL);
}

void turns_begin(const struct crowd *chosen) {
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED && pipe2(let_go, O_CLOEXEC) == 0, "no shared memory");
    crowd = *chosen;
    share = crowd.waiters / crowd.processes;
    CHECK(crowd.processes <= PROCESSES_MAX && crowd.waiters <= WAITERS_MAX && share * crowd.processes == crowd.waiters,
          "not so many waiters");
    for (process = 0; process < crowd.processes; process++) {
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

void turns_of_each(long turns[WAITERS_MAX]) {
    for (size_t i = 0; i < crowd.waiters; i++)
        turns[i] = atomic_load(&shared->of_each[i]);
}

size_t turns_most_waited(void) {
    return atomic_load(&shared->most_waited);
}

double turns_cpu(void) {
    struct timespec cpu;
    clockid_t clock;
    double sum = 0;

    for (size_t i = 0; i < crowd.processes; i++) {
        CHECK(clock_getcpuclockid(processes[i], &clock) == 0 && clock_gettime(clock, &cpu) == 0, "no CPU clock");
        sum += (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9;
    }
    return sum;
}

void turns_end(void) {
    int status;

    atomic_store(&shared->over, true);
    for (size_t i = 0; i < crowd.processes; i++) {
        CHECK(waitpid(processes[i], &status, 0) == processes[i], "a process is gone");
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a process failed");
    }
    close(let_go[0]);
    close(let_go[1]);
    munmap(shared, sizeof(*shared));
}
