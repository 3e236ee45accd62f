/*
 * Several processes that want one lock, and a check that it was never held twice.
 *
 *     workers redis://127.0.0.1 --workers 4 --seconds 30
 *
 * Each worker polls for the lock, works under it while it extends its short lease, and gives it back. Now and then it
 * stalls on purpose for so long that it loses the lock; then its release must fail and leave the new holder alone. The
 * workers (worker.c) are forked before any event base or client exists. They report each step through a pipe. This file
 * starts them, prints their reports, and keeps them (timeline.c). At the end it prints a summary, draws the timeline as
 * a picture (picture.c), and says whether two workers held the lock at once.
 *
 * Exit status: 0; 1 if the lock was held twice at once, if nobody held it, or if anything failed; 2 for a wrong command
 * line.
 */
#include "picture.h"
#include "timeline.h"
#include "worker.h"

#include <errno.h>
#include <event2/event.h>
#include <evlock/evlock.h>
#include <evlock/loop.h>
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
    const char *picture; /* the file to draw the timeline in */
    int workers;
    long seconds;
    int64_t start;
    int reports; /* the pipe's end to read from */
    pid_t pids[MAX_WORKERS];
    bool gone[MAX_WORKERS];
    bool failed[MAX_WORKERS];
    int started;
    struct event_base *base;
    struct timeline timeline;
    char trouble[sizeof(((struct report *)NULL)->text)]; /* the last that was printed */
    bool broken;                                         /* the parent itself could not go on */
};

static void usage(FILE *out) {
    fputs("usage: workers URL [--workers N] [--seconds S] [--seed N] [--lock NAME] [--svg FILE]\n"
          "  URL          redis://host or unix:///path, as evlock_client_new() takes it\n"
          "  --workers N  processes, 1 to 100 (4)\n"
          "  --seconds S  how long they go on (30)\n"
          "  --seed N     repeat the random choices of an earlier run\n"
          "  --lock NAME  the lock's name (evlock-workers)\n"
          "  --svg FILE   where to draw the timeline (workers.svg)\n",
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
        {"workers", required_argument, NULL, 'w'},
        {"seconds", required_argument, NULL, 's'},
        {"seed", required_argument, NULL, 'r'},
        {"lock", required_argument, NULL, 'l'},
        {"svg", required_argument, NULL, 'p'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
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
        case 'p':
            parent->picture = optarg;
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

/* --- The workers' reports ----------------------------------------------------------------------------------------- */

/* Prints a report, and keeps it. What all workers say of one trouble is printed once. */
static void take(struct parent *parent, const struct report *report) {
    bool trouble = report->kind == TROUBLE || report->kind == FAILED || report->kind == DIED;
    if (report->kind == FAILED || report->kind == DIED)
        parent->failed[report->worker - 1] = true;
    if (!trouble || strcmp(report->text, parent->trouble) != 0)
        fprintf(trouble ? stderr : stdout, "%8.3f  worker-%d %s\n", (double)(report->at - parent->start) / 1e6,
                report->worker, report->text);
    if (trouble)
        memcpy(parent->trouble, report->text, sizeof parent->trouble);
    if (timeline_add(&parent->timeline, report) != 0) {
        fputs("workers: out of memory\n", stderr);
        parent->broken = true;
    }
}

/* Takes the reports that are there. Returns true at the end of the pipe: all workers have ended. */
static bool take_all(struct parent *parent) {
    struct report report;
    ssize_t got;
    while ((got = read(parent->reports, &report, sizeof report)) == (ssize_t)sizeof report)
        take(parent, &report);
    return got == 0;
}

static void on_report(evutil_socket_t fd, short events, void *arg) {
    struct parent *parent = arg;
    (void)fd, (void)events;
    if (take_all(parent))
        event_base_loopbreak(parent->base);
}

/* A worker has ended. What it reported before is taken first. */
static void take_leave(struct parent *parent, int worker, int status) {
    struct report report = {.at = evlock_clock_us(), .worker = worker, .kind = DIED};
    (void)take_all(parent);
    parent->gone[worker - 1] = true;
    if (WIFSIGNALED(status))
        snprintf(report.text, sizeof report.text, "FAILED: killed by signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0 && !parent->failed[worker - 1])
        snprintf(report.text, sizeof report.text, "FAILED: exit status %d", WEXITSTATUS(status));
    else
        return;
    take(parent, &report);
}

/* Looks for workers that have ended; with `options` 0, waits for all. */
static void look_for_ended(struct parent *parent, int options) {
    for (int i = 0; i < parent->started; i++) {
        int status;
        if (!parent->gone[i] && waitpid(parent->pids[i], &status, options) == parent->pids[i])
            take_leave(parent, i + 1, status);
    }
}

static void on_child(evutil_socket_t fd, short events, void *arg) {
    (void)fd, (void)events;
    look_for_ended(arg, WNOHANG);
}

/* --- The workers' life -------------------------------------------------------------------------------------------- */

/* Forks the workers, which report on a pipe; returns 0 or -1. */
static int start_workers(struct parent *parent) {
    int reports[2];
    if (pipe(reports) != 0 || fcntl(reports[0], F_SETFL, O_NONBLOCK) != 0) {
        perror("workers: pipe");
        return -1;
    }
    parent->reports = reports[0];
    for (int i = 0; i < parent->workers; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            close(reports[0]);
            exit(worker_run(&parent->options, i + 1, reports[1]));
        }
        if (pid < 0) {
            perror("workers: fork");
            parent->broken = true;
            break;
        }
        parent->pids[parent->started++] = pid;
    }
    close(reports[1]);
    return 0;
}

static void stop_workers(struct parent *parent) {
    for (int i = 0; i < parent->started; i++)
        if (!parent->gone[i])
            kill(parent->pids[i], SIGTERM);
}

/* The time is up, or somebody wants the program to end. */
static void on_stop(evutil_socket_t fd, short events, void *arg) {
    struct parent *parent = arg;
    (void)fd;
    printf("%8.3f  %s: all workers stop\n", (double)(evlock_clock_us() - parent->start) / 1e6,
           events & EV_TIMEOUT ? "the time is up" : "told to end");
    stop_workers(parent);
}

/* Lets the signals come that were kept back until now. */
static int unblock_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGCHLD);
    return sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* Runs the parent's loop until the workers have ended. */
static int collect(struct parent *parent) {
    struct timeval seconds = {.tv_sec = parent->seconds};
    parent->base = event_base_new();
    if (!parent->base)
        return -1;
    enum { EVENTS = 5 };
    struct event *events[EVENTS] = {
        evtimer_new(parent->base, on_stop, parent),
        event_new(parent->base, parent->reports, EV_READ | EV_PERSIST, on_report, parent),
        evsignal_new(parent->base, SIGTERM, on_stop, parent),
        evsignal_new(parent->base, SIGINT, on_stop, parent),
        evsignal_new(parent->base, SIGCHLD, on_child, parent),
    };
    int failed = 0;
    for (int i = 0; i < EVENTS; i++)
        if (!events[i] || event_add(events[i], i == 0 ? &seconds : NULL) != 0)
            failed = -1;
    if (failed == 0 && unblock_signals() == 0)
        failed = event_base_dispatch(parent->base) < 0 ? -1 : 0;

    for (int i = 0; i < EVENTS; i++)
        if (events[i])
            event_free(events[i]);
    event_base_free(parent->base);
    return failed;
}

/* --- The end ------------------------------------------------------------------------------------------------------ */

static void print_tally(const char *name, struct tally tally) {
    printf("  %-10s %5d %6d %10d %13.3f s\n", name, tally.held, tally.lost, tally.in_vain,
           (double)tally.longest_wait / 1e6);
}

static void print_tallies(const struct parent *parent) {
    printf("             holds   lost   in vain    longest wait\n");
    for (int i = 1; i <= parent->workers; i++) {
        char name[24];
        snprintf(name, sizeof name, "worker-%d", i);
        print_tally(name, timeline_count(&parent->timeline, i));
    }
    print_tally("all", timeline_count(&parent->timeline, 0));
    printf("(lost: leases that ended before they were released; in vain: waits that ended without the lock)\n");
    printf("to repeat the random choices: --seed %u\n", parent->options.seed);
}

/* The timeline as a picture; returns 0 or -1. */
static int draw(const struct parent *parent) {
    FILE *out = fopen(parent->picture, "w");
    if (out)
        picture_draw(&parent->timeline, parent->workers, parent->start, evlock_clock_us(), out);
    bool failed = !out || ferror(out);
    if ((out && fclose(out) != 0) || failed) {
        fprintf(stderr, "workers: %s: %s\n", parent->picture, strerror(errno));
        return -1;
    }
    printf("timeline: %s (a picture; any browser shows it)\n", parent->picture);
    return 0;
}

/* The last words, and the exit status. */
static int judge(const struct parent *parent, struct findings findings) {
    int failed = 0;
    for (int i = 0; i < parent->workers; i++)
        failed += parent->failed[i];
    if (findings.overlaps > 0)
        printf("FAILED: two workers held the lock at once, %zu times\n", findings.overlaps);
    else if (findings.falls > 0)
        printf("FAILED: a fence was not greater than the one before, %zu times\n", findings.falls);
    else if (failed > 0)
        printf("FAILED: %d of %d workers failed\n", failed, parent->workers);
    else if (parent->broken)
        printf("FAILED: it could not be shown\n");
    else if (timeline_count(&parent->timeline, 0).held == 0)
        printf("FAILED: no worker ever held the lock\n");
    else {
        printf("OK: no two workers held the lock at once, and each fence was greater than the one before\n");
        return 0;
    }
    return 1;
}

static int conclude(struct parent *parent) {
    struct findings findings = {0};
    if (parent->timeline.count > 0) {
        findings = timeline_check(&parent->timeline, stdout);
        print_tallies(parent);
        if (draw(parent) != 0)
            parent->broken = true;
    }
    int status = judge(parent, findings);
    timeline_clear(&parent->timeline);
    return status;
}

static void introduce(const struct parent *parent) {
    printf("%d worker%s the lock \"%s\", for %ld seconds. At most one may hold it at a time.\n", parent->workers,
           parent->workers == 1 ? " wants" : "s want", parent->options.lock, parent->seconds);
    printf("A lease lasts %d s. A holder that works extends it; one that stalls loses it.\n", TTL_MS / 1000);
    printf(" seconds  what happened\n");
}

int main(int argc, char **argv) {
    struct parent parent = {
        .options = {.lock = "evlock-workers", .seed = (unsigned int)time(NULL) & INT_MAX},
        .picture = "workers.svg",
        .workers = 4,
        .seconds = 30,
        .start = evlock_clock_us(),
    };
    parse(&parent, argc, argv);
    setvbuf(stdout, NULL, _IOLBF, 0);

    /* Until each process has its own handlers, the signals that end it wait. */
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0) {
        perror("workers: sigprocmask");
        return 1;
    }
    introduce(&parent);
    if (start_workers(&parent) != 0)
        return 1;
    if (parent.broken || collect(&parent) != 0) {
        parent.broken = true;
        stop_workers(&parent);
    }
    look_for_ended(&parent, 0);
    close(parent.reports);
    return conclude(&parent);
}
