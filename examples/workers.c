/*
 * Several processes that want one lock, and a check that it was never held twice.
 *
 *     workers redis://127.0.0.1 --workers 4 --seconds 30
 *
 * Each worker polls for the lock, works under it while it extends its short lease, and gives it back; now and then it
 * stalls on purpose for so long that it loses the lock, and then its release must fail and leave the new holder alone.
 * Every step is printed with its time and its worker. The workers (worker.c) are forked before any event base or client
 * exists; this file starts them, collects their holds through a pipe, and at the end prints a summary and whether two
 * holds overlapped (timeline.c). Exit status: 0; 1 if holds overlapped or a worker failed; 2 for a wrong command line.
 */
#include "timeline.h"
#include "worker.h"

#include <errno.h>
#include <event2/event.h>
#include <evlock/evlock.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_WORKERS = 100 };

/* The parent of the workers. */
struct parent {
    struct worker_options options;
    int workers;
    long seconds;
    pid_t pids[MAX_WORKERS];
    int started;
    struct event_base *base;
    struct timeline timeline;
    int failed;
};

static void usage(FILE *out) {
    fputs("usage: workers URL [--workers N] [--seconds S] [--seed N] [--lock NAME]\n"
          "  URL          redis://host or unix:///path, as evlock_client_new() takes it\n"
          "  --workers N  processes, 1 to 100 (4)\n"
          "  --seconds S  how long they go on (30)\n"
          "  --seed N     repeat the random choices of an earlier run\n"
          "  --lock NAME  the lock's name (evlock-workers)\n",
          out);
}

/* A whole number from `min` to `max`, or the end of the program. */
static long number(const char *option, const char *text, long min, long max) {
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < min || value > max) {
        fprintf(stderr, "workers: --%s takes a whole number from %ld to %ld\n", option, min, max);
        exit(2);
    }
    return value;
}

static void parse(struct parent *parent, int argc, char **argv) {
    static const struct option options[] = {
        {"workers", required_argument, NULL, 'w'}, {"seconds", required_argument, NULL, 's'},
        {"seed", required_argument, NULL, 'r'},    {"lock", required_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},          {NULL, 0, NULL, 0},
    };
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 'w':
            parent->workers = (int)number("workers", optarg, 1, MAX_WORKERS);
            break;
        case 's':
            parent->seconds = number("seconds", optarg, 1, 24L * 60 * 60);
            break;
        case 'r':
            parent->options.seed = (unsigned int)number("seed", optarg, 0, INT_MAX);
            break;
        case 'l':
            parent->options.lock = optarg;
            break;
        case 'h':
            usage(stdout);
            exit(0);
        default:
            usage(stderr);
            exit(2);
        }
    }
    if (optind != argc - 1) {
        usage(stderr);
        exit(2);
    }
    parent->options.url = argv[optind];
}

/* Forks the workers; returns the end of the pipe on which they report, or -1. */
static int start_workers(struct parent *parent) {
    int report[2];
    if (pipe(report) != 0) {
        perror("workers: pipe");
        return -1;
    }
    for (int i = 0; i < parent->workers; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            close(report[0]);
            exit(worker_run(&parent->options, i + 1, report[1]));
        }
        if (pid < 0) {
            perror("workers: fork");
            parent->failed = 1;
            break;
        }
        parent->pids[parent->started++] = pid;
    }
    close(report[1]);
    return report[0];
}

static void stop_workers(struct parent *parent) {
    for (int i = 0; i < parent->started; i++)
        kill(parent->pids[i], SIGTERM);
}

/* The time is up, or somebody wants the program to end. */
static void on_stop(evutil_socket_t fd, short events, void *arg) {
    (void)fd, (void)events;
    stop_workers(arg);
}

/* A hold is shorter than what a pipe takes in one piece, so holds never mix. The end of the pipe: all workers ended. */
static void on_report(evutil_socket_t fd, short events, void *arg) {
    struct parent *parent = arg;
    (void)events;
    struct hold hold;
    ssize_t got = read(fd, &hold, sizeof hold);
    if (got == (ssize_t)sizeof hold) {
        if (timeline_add(&parent->timeline, &hold) == 0)
            return;
        fputs("workers: out of memory\n", stderr);
    } else if (got == 0) {
        event_base_loopbreak(parent->base);
        return;
    } else if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
        return;
    }
    parent->failed = 1;
    event_base_loopbreak(parent->base);
}

/* Runs the parent's loop until the workers have ended. */
static int collect(struct parent *parent, int report) {
    struct timeval seconds = {.tv_sec = parent->seconds};
    parent->base = event_base_new();
    if (!parent->base)
        return -1;
    struct event *events[] = {
        event_new(parent->base, report, EV_READ | EV_PERSIST, on_report, parent),
        evtimer_new(parent->base, on_stop, parent),
        evsignal_new(parent->base, SIGTERM, on_stop, parent),
        evsignal_new(parent->base, SIGINT, on_stop, parent),
    };
    int failed = 0;
    for (int i = 0; i < 4; i++)
        if (!events[i] || event_add(events[i], i == 1 ? &seconds : NULL) != 0)
            failed = -1;

    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    if (failed == 0 && sigprocmask(SIG_UNBLOCK, &set, NULL) == 0)
        failed = event_base_dispatch(parent->base) < 0 ? -1 : 0;

    for (int i = 0; i < 4; i++)
        if (events[i])
            event_free(events[i]);
    event_base_free(parent->base);
    return failed;
}

static void wait_for_workers(struct parent *parent) {
    for (int i = 0; i < parent->started; i++) {
        int status;
        if (waitpid(parent->pids[i], &status, 0) < 0)
            perror("workers: waitpid");
        else if (WIFSIGNALED(status))
            fprintf(stderr, "workers: worker-%d was killed by signal %d\n", i + 1, WTERMSIG(status));
        else if (WEXITSTATUS(status) != 0)
            fprintf(stderr, "workers: worker-%d failed\n", i + 1);
        else
            continue;
        parent->failed = 1;
    }
}

static double seconds(int64_t microseconds) {
    return (double)microseconds / 1e6;
}

/* The holds of one worker, or of all for 0. */
static void print_holds(const struct timeline *timeline, int worker, const char *name) {
    int acquisitions = 0, lost = 0;
    int64_t longest = 0;
    for (size_t i = 0; i < timeline->count; i++) {
        const struct hold *hold = &timeline->holds[i];
        if (worker != 0 && hold->worker != worker)
            continue;
        acquisitions++;
        lost += hold->lost;
        if (hold->got - hold->asked > longest)
            longest = hold->got - hold->asked;
    }
    printf("  %-10s %3d acquisitions, longest wait %6.3f seconds, %2d lost leases\n", name, acquisitions,
           seconds(longest), lost);
}

static void summarize(struct parent *parent) {
    printf("summary (seed %u)\n", parent->options.seed);
    for (int i = 1; i <= parent->workers; i++) {
        char name[24];
        snprintf(name, sizeof name, "worker-%d", i);
        print_holds(&parent->timeline, i, name);
    }
    print_holds(&parent->timeline, 0, "all");
    size_t overlaps = timeline_overlaps(&parent->timeline, stdout);
    if (overlaps == 0)
        printf("no two workers held the lock at once\n");
    else
        printf("OVERLAP: the lock was held twice %zu times\n", overlaps);
    parent->failed |= overlaps > 0;
}

int main(int argc, char **argv) {
    struct parent parent = {
        .options = {.lock = "evlock-workers", .seed = (unsigned int)time(NULL) & INT_MAX, .start = evlock_clock_us()},
        .workers = 4,
        .seconds = 30,
    };
    parse(&parent, argc, argv);
    setvbuf(stdout, NULL, _IOLBF, 0);

    /* Until each process has its own handlers, the signals that end it wait. */
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0) {
        perror("workers: sigprocmask");
        return 1;
    }
    int report = start_workers(&parent);
    if (report < 0)
        return 1;
    if (parent.failed || collect(&parent, report) != 0) {
        parent.failed = 1;
        stop_workers(&parent);
    }
    close(report);
    wait_for_workers(&parent);
    summarize(&parent);
    timeline_clear(&parent.timeline);
    return parent.failed;
}
