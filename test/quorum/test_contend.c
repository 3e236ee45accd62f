/*
 * Ten processes contend for one lock on five nodes, while nodes and processes are stopped and nodes are killed and come
 * back, empty or with an old copy of their data, at random. Every window in which a process believed in the lock comes
 * here through a pipe, and is judged: none overlaps another, and the fences grow.
 *
 * What happens when is drawn from a seed, which is told; EVLOCK_TEST_SEED sets it. The first argument is the program
 * of the processes.
 */
#include "nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contend.h"
#include "windows.h"

enum {
    CONTENDERS = 10,
    WANTED = 2000,           /* windows, at least */
    TROUBLED_MS = 25 * 1000, /* for so long, at least */
    PATIENCE_MS = 200 * 1000,
    STORM_MS = 6 * 1000, /* from one to the next */
    MAX_WINDOWS = 1000 * 1000,
    AGE_MS = CONTEND_MAX_TTL_MS + 1500, /* by then a restarted node counts again */
};

static const char *program;

/* --- The contenders ----------------------------------------------------------------------------------------------- */

struct contenders {
    pid_t pids[CONTENDERS];
    int64_t stopped_until[CONTENDERS]; /* 0: runs */
    int input;                         /* to be closed for their end */
    int output;
    struct window *windows;
    size_t count;
};

static void become_contender(int holder, unsigned seed, int input, int output) {
    char number[16], seed_text[16];
    const char *args[4 + NODES] = {program, number, seed_text};
    snprintf(number, sizeof(number), "%d", holder);
    snprintf(seed_text, sizeof(seed_text), "%u", seed + (unsigned)holder);
    for (int i = 0; i < NODES; i++)
        args[3 + i] = nodes[i].url;
    args[3 + NODES] = NULL;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(input, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    execv(program, (char *const *)(uintptr_t)args);
    _exit(127);
}

static void start_contenders(struct contenders *contenders, unsigned seed) {
    int input[2], output[2];
    assert_int_equal(pipe2(input, O_CLOEXEC), 0);
    assert_int_equal(pipe2(output, O_CLOEXEC), 0);
    *contenders = (struct contenders){.input = input[1], .output = output[0]};
    contenders->windows = calloc(MAX_WINDOWS, sizeof(struct window));
    assert_non_null(contenders->windows);
    fflush(NULL);
    for (int i = 0; i < CONTENDERS; i++) {
        contenders->pids[i] = fork();
        assert_true(contenders->pids[i] >= 0);
        if (contenders->pids[i] == 0)
            become_contender(i, seed, input[0], output[1]);
    }
    close(input[0]);
    close(output[1]);
}

/* Takes in what has come, waiting for it for so long; false when all of them have ended. */
static bool take_in(struct contenders *contenders, int wait_ms) {
    struct pollfd ready = {.fd = contenders->output, .events = POLLIN};
    if (poll(&ready, 1, wait_ms) <= 0)
        return true;
    assert_true(contenders->count < MAX_WINDOWS);
    ssize_t got = read(contenders->output, &contenders->windows[contenders->count], sizeof(struct window));
    assert_true(got == 0 || got == sizeof(struct window)); /* each is written and read whole */
    contenders->count += got > 0;
    return got > 0;
}

static void end_contenders(struct contenders *contenders) {
    int status;
    for (int i = 0; i < CONTENDERS; i++)
        kill(contenders->pids[i], SIGCONT);
    close(contenders->input);
    int64_t end = evlock_clock_us() + (int64_t)WAIT_MS * 1000;
    while (take_in(contenders, 1000))
        assert_true(evlock_clock_us() < end);
    for (int i = 0; i < CONTENDERS; i++) {
        assert_int_equal(waitpid(contenders->pids[i], &status, 0), contenders->pids[i]);
        if (status)
            fail_msg("contender %d ended with status %#x", i, (unsigned)status);
    }
    close(contenders->output);
}

/* --- Trouble ------------------------------------------------------------------------------------------------------ */

struct weather {
    int64_t until[NODES]; /* when the node is to be mended, or counts again; 0: it is all right */
    int64_t storm;        /* when the next is due */
    int stops, kills, empties, copies, storms, holders;
};

static int64_t in_ms(long ms) {
    return evlock_clock_us() + ms * 1000;
}

static long between(long least, long most) {
    return least + random() % (most - least + 1);
}

static void mend_nodes(struct weather *weather) {
    int64_t now = evlock_clock_us();
    for (int i = 0; i < NODES; i++) {
        if (!weather->until[i] || now < weather->until[i])
            continue;
        weather->until[i] = 0;
        server_resume(&nodes[i]);
        if (!nodes[i].pid) {
            server_restart(&nodes[i]);
            weather->until[i] = in_ms(AGE_MS);
        }
    }
}

static int troubled(const struct weather *weather) {
    int count = 0;
    for (int i = 0; i < NODES; i++)
        count += weather->until[i] != 0;
    return count;
}

/* A server that saved at one time or another comes back with that. */
static void kill_node(struct weather *weather, int node, bool empty) {
    char path[96];
    snprintf(path, sizeof(path), "%s/dump.rdb", nodes[node].folder);
    server_kill9(&nodes[node]);
    if (empty)
        unlink(path);
    weather->kills++;
    weather->empties += empty;
    weather->copies += !empty && access(path, F_OK) == 0;
    weather->until[node] = in_ms(between(0, 200));
}

/* Three nodes forget everything at once. */
static void storm(struct weather *weather) {
    int first = (int)(random() % NODES);
    weather->storms++;
    weather->storm = in_ms(STORM_MS);
    for (int i = 0; i < MAJORITY; i++) {
        int node = (first + i) % NODES;
        kill_node(weather, node, true);
        weather->until[node] = in_ms(0);
    }
}

static void trouble_a_node(struct weather *weather) {
    int node = (int)(random() % NODES);
    if (weather->until[node])
        return;
    switch (random() % 5) {
    case 0:
        kill_node(weather, node, true);
        break;
    case 1:
        kill_node(weather, node, false);
        break;
    case 2:
        server_do(&nodes[node], "SAVE");
        break;
    default:
        server_pause(&nodes[node]);
        weather->stops++;
        weather->until[node] = in_ms(between(20, 800));
    }
}

static void stop_a_holder(struct weather *weather, struct contenders *contenders) {
    int holder = (int)(random() % CONTENDERS);
    if (contenders->stopped_until[holder])
        return;
    kill(contenders->pids[holder], SIGSTOP);
    contenders->stopped_until[holder] = in_ms(between(10, 2 * CONTEND_TTL_MS));
    weather->holders++;
}

static void wake_holders(struct contenders *contenders) {
    int64_t now = evlock_clock_us();
    for (int i = 0; i < CONTENDERS; i++)
        if (contenders->stopped_until[i] && now >= contenders->stopped_until[i]) {
            kill(contenders->pids[i], SIGCONT);
            contenders->stopped_until[i] = 0;
        }
}

/* Two nodes at most are in trouble at a time, but for the storms: they come out of a clear sky. */
static void make_weather(struct weather *weather, struct contenders *contenders) {
    bool storm_due = evlock_clock_us() >= weather->storm;
    mend_nodes(weather);
    wake_holders(contenders);
    if (random() % 20 == 0)
        stop_a_holder(weather, contenders);
    else if (storm_due && troubled(weather) == 0)
        storm(weather);
    else if (!storm_due && troubled(weather) < 2)
        trouble_a_node(weather);
}

/* --- The test ----------------------------------------------------------------------------------------------------- */

static unsigned choose_seed(void) {
    const char *given = getenv("EVLOCK_TEST_SEED");
    unsigned seed = given && *given ? (unsigned)strtoul(given, NULL, 10) : (unsigned)evlock_clock_us();
    srandom(seed);
    printf("# EVLOCK_TEST_SEED=%u\n", seed);
    fflush(stdout);
    return seed;
}

static void weather_on(struct weather *weather, struct contenders *contenders) {
    int64_t start = evlock_clock_us(), next = start;
    weather->storm = in_ms(STORM_MS);
    while (contenders->count < WANTED || evlock_clock_us() < start + (int64_t)TROUBLED_MS * 1000) {
        if (evlock_clock_us() > start + (int64_t)PATIENCE_MS * 1000)
            fail_msg("only %zu windows", contenders->count);
        if (evlock_clock_us() >= next) {
            make_weather(weather, contenders);
            next = in_ms(between(10, 100));
        }
        if (!take_in(contenders, 5))
            fail_msg("the contenders ended by themselves");
    }
    for (int i = 0; i < NODES; i++)
        weather->until[i] = weather->until[i] ? 1 : 0; /* it is over */
    mend_nodes(weather);
    printf("# %zu windows in %" PRId64
           " ms; nodes were stopped %d times and killed %d times (%d came back empty, %d with "
           "an old copy; %d times three at once); contenders were stopped %d times\n",
           contenders->count, (evlock_clock_us() - start) / 1000, weather->stops, weather->kills, weather->empties,
           weather->copies, weather->storms, weather->holders);
}

static void no_two_hold_at_once_and_fences_grow(void **state) {
    struct fixture *f = *state;
    struct contenders contenders;
    struct weather weather = {0};
    char words[512];
    size_t first;
    start_contenders(&contenders, choose_seed());
    while (contenders.count == 0) /* fresh servers are excluded at first */
        assert_true(take_in(&contenders, WAIT_MS));
    weather_on(&weather, &contenders);
    end_contenders(&contenders);
    size_t faults = windows_check(contenders.windows, contenders.count, words, sizeof(words), &first);
    if (faults)
        fail_msg("%zu faults; the first: %s", faults, words);
    await(f, nodes_having(CONTEND_NAME) == 0);
    free(contenders.windows);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {QUORUM_TEST_BARE(no_two_hold_at_once_and_fences_grow)};
    if (argc < 2)
        return 2;
    program = argv[1];
    return run_quorum_suite("contend", tests);
}
