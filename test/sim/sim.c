/*
 * The simulation's command line.
 *
 *     sim --seeds N [--start S] [--scenario NAME] [--jobs J] [--twice] [--first]   runs N schedules, says what happened
 *     sim --seed S --scenario NAME --trace                               replays one, and tells all of it
 *
 * Without a scenario, the seeds are shared out among all of them. --twice runs each schedule twice, the second time
 * without forks, and both must be the same in every step; --first ends a job with its first violation. It owns the
 * worker processes; each runs every J-th seed.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "faults.h"
#include "judge.h"
#include "node.h"
#include "world.h"

#ifdef EVL_CHECKS
extern bool evl_checks_all; /* of the library: see lib/client.h */
#endif

enum { SCENARIOS_MAX = 24, JOBS_MAX = 64 };

struct options {
    uint64_t start, seeds;
    const struct scenario *scenario; /* NULL: all, by their shares */
    unsigned jobs;
    bool twice, first, tracing;
};

/* What a worker has done so far; shared with the parent, who wants to know where one died. */
struct work {
    uint64_t seed;
    const struct scenario *scenario;
    struct tally tallies[SCENARIOS_MAX];
};

static const struct scenario *find_scenario(const char *name) {
    for (size_t i = 0; i < scenario_count; i++)
        if (strcmp(scenarios[i].name, name) == 0)
            return &scenarios[i];
    fprintf(stderr, "sim: no such scenario: %s; there are:\n", name);
    for (size_t i = 0; i < scenario_count; i++)
        fprintf(stderr, "  %-14s %s\n", scenarios[i].name, scenarios[i].summary);
    exit(2);
}

/* The scenario of a seed, where all are run. */
static const struct scenario *share_out(uint64_t seed) {
    unsigned total = 0, drawn;
    size_t i = 0;

    for (size_t k = 0; k < scenario_count; k++)
        total += scenarios[k].share;
    drawn = (unsigned)(seed % total);
    while (drawn >= scenarios[i].share)
        drawn -= scenarios[i++].share;
    return &scenarios[i];
}

/* --- Schedules ---------------------------------------------------------------------------------------------------- */

static void report(const struct scenario *scenario, uint64_t seed, const char *words) {
    printf("# violated: %s\n#   replay: sim --scenario %s --seed %" PRIu64 " --trace\n", words, scenario->name, seed);
    fflush(stdout);
}

/* A schedule that takes so long, of the processor's time, hangs: its worker is ended by that. */
static void watch_time(void) {
    static const struct itimerval limit = {.it_value.tv_sec = 240};

    setitimer(ITIMER_VIRTUAL, &limit, NULL);
}

static void run_schedule(const struct options *options, struct work *work, uint64_t seed) {
    const struct scenario *scenario = options->scenario ? options->scenario : share_out(seed);
    struct tally *tally = &work->tallies[scenario - scenarios], unused = {0};
    enum telling telling = options->tracing ? TELL_ALL : options->twice ? TELL_HASH : TELL_NOTHING;
    struct outcome first, second;

    work->seed = seed;
    work->scenario = scenario;
    watch_time();
    if (!world_run(scenario, seed, true, telling, tally, &first))
        report(scenario, seed, first.violation);
    if (!options->twice)
        return;
    world_run(scenario, seed, false, TELL_HASH, &unused, &second);
    if (first.hash == second.hash)
        return;
    tally->violations++;
    report(scenario, seed, "the same seed gave another schedule");
}

static uint64_t violations(const struct work *work) {
    uint64_t sum = 0;

    for (size_t i = 0; i < scenario_count; i++)
        sum += work->tallies[i].violations;
    return sum;
}

static void work_off(const struct options *options, struct work *work, unsigned job) {
    judge_memory();
    for (uint64_t i = job; i < options->seeds && !(options->first && violations(work)); i += options->jobs)
        run_schedule(options, work, options->start + i);
}

/* Runs all seeds in worker processes; how many of these died. */
static unsigned run_jobs(const struct options *options, struct work *works) {
    pid_t workers[JOBS_MAX];
    unsigned died = 0;
    int status;

    for (unsigned job = 0; job < options->jobs; job++) {
        fflush(stdout);
        workers[job] = fork();
        if (workers[job] == 0) {
            work_off(options, &works[job], job);
            exit(0);
        }
    }
    for (unsigned job = 0; job < options->jobs; job++) {
        if (workers[job] > 0 && waitpid(workers[job], &status, 0) == workers[job] && status == 0)
            continue;
        died++;
        report(works[job].scenario ? works[job].scenario : scenarios, works[job].seed, "the library died, or hung");
    }
    return died;
}

/* --- What happened ------------------------------------------------------------------------------------------------ */

static void add_up(struct tally *sum, const struct work *works, unsigned jobs, size_t scenario) {
    uint64_t *to = (uint64_t *)sum;

    for (unsigned job = 0; job < jobs; job++)
        for (size_t i = 0; i < sizeof(*sum) / sizeof(*to); i++)
            to[i] += ((const uint64_t *)&works[job].tallies[scenario])[i];
}

/* One line a scenario, as a test; whether it is passed. */
static bool tell(const struct scenario *scenario, const struct tally *sum, unsigned number) {
    bool blind = scenario->must_overlap && sum->overlaps == 0 && sum->schedules >= 50;
    bool good = sum->violations == 0 && !blind;

    printf("%sok %u - %s: %" PRIu64 " schedules, %" PRIu64 " calls, %" PRIu64 " grants, %" PRIu64 " losses, %" PRIu64
           " commands, %" PRIu64 " overlaps, %" PRIu64 " violations%s\n",
           good ? "" : "not ", number, scenario->name, sum->schedules, sum->calls, sum->grants, sum->losses,
           sum->commands, sum->overlaps, sum->violations, blind ? " (two holders should have been seen)" : "");
    printf("#   renewals sent together: %" PRIu64 " in %" PRIu64 " commands, %" PRIu64 " of them full\n", sum->batched,
           sum->batches, sum->full_batches);
    printf("#   forks: %" PRIu64 ", %" PRIu64 " of them inside callbacks\n", sum->forks, sum->inside);
    if (scenario->queue)
        printf("#   granted from the queue: %" PRIu64 "\n", sum->handed);
    if (scenario->passes)
        printf("#   passed on: %" PRIu64 "\n", sum->passed);
    printf("#   faults:");
    for (size_t i = 0; faults_name(i); i++)
        printf("%s %" PRIu64 " %s", i ? "," : "", sum->faults[i], faults_name(i));
    printf("\n");
    fflush(stdout);
    return good;
}

static int run_all(const struct options *options) {
    size_t size = options->jobs * sizeof(struct work);
    struct work *works = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    unsigned failed, number = 0;

    if (works == MAP_FAILED) {
        perror("mmap");
        return 2;
    }
    failed = run_jobs(options, works);
    for (size_t i = 0; i < scenario_count; i++) {
        struct tally sum = {0};
        add_up(&sum, works, options->jobs, i);
        if (sum.schedules)
            failed += !tell(&scenarios[i], &sum, ++number);
    }
    printf("1..%u\n", number);
    return failed ? 1 : 0;
}

/* --- The command line --------------------------------------------------------------------------------------------- */

static void usage(void) {
    fprintf(stderr, "usage: sim --seeds N [--start S] [--scenario NAME] [--jobs J] [--twice] [--first]\n"
                    "       sim --seed S --scenario NAME [--trace]\n");
    exit(2);
}

int main(int argc, char **argv) {
    static const struct option names[] = {
        {"seeds", required_argument, NULL, 'n'},
        {"start", required_argument, NULL, 's'},
        {"seed", required_argument, NULL, 'o'},
        {"scenario", required_argument, NULL, 'c'},
        {"jobs", required_argument, NULL, 'j'},
        {"twice", no_argument, NULL, 't'},
        {"first", no_argument, NULL, 'f'},
        {"trace", no_argument, NULL, 'v'},
        {NULL, 0, NULL, 0},
    };
    struct options options = {.start = 1, .jobs = 1};
    int option;

#ifdef EVL_CHECKS
    evl_checks_all = true;
#endif
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        switch (option) {
        case 'n':
            options.seeds = strtoull(optarg, NULL, 10);
            break;
        case 'o':
            options.seeds = 1;
            options.start = strtoull(optarg, NULL, 10);
            break;
        case 's':
            options.start = strtoull(optarg, NULL, 10);
            break;
        case 'c':
            options.scenario = find_scenario(optarg);
            break;
        case 'j':
            options.jobs = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 't':
            options.twice = true;
            break;
        case 'f':
            options.first = true;
            break;
        case 'v':
            options.tracing = true;
            break;
        default:
            usage();
        }
    }
    if (options.seeds == 0 || optind < argc || options.jobs < 1 || options.jobs > JOBS_MAX)
        usage();
    return run_all(&options);
}
