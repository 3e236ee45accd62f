/*
 * Explores small worlds around the lease core whole: whatever may happen in a scope is made to happen, in every order,
 * from each state once. It prints how many states there were, and the way to a broken promise if there is one.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "seen.h"
#include "world.h"

enum { LONGEST = 250, TTL = 1000 * 1000 /* of all manners, also of the one in world.c */ };

/* An extension may be believed in for longer than a renewal asks for, and is still when that is due. */
static const struct manner natives = {.terms = {.ttl = TTL,
                                                .max_ttl = 2 * TTL,
                                                .interval = TTL / 3,
                                                .lead = 1000,
                                                .max_hold = LEASE_NEVER,
                                                .patience = TTL / 2}};

/* The same for each who has a lease in turn. */
#define ALIKE(...) .terms = {__VA_ARGS__}, .heirs = {__VA_ARGS__}

static const struct manner passed = {
    ALIKE(.ttl = TTL, .max_ttl = TTL, .lead = 1000, .max_hold = LEASE_NEVER, .patience = TTL / 2)};

/* Who holds for long hangs before half of the ttl is gone, and is warned about then. */
static const struct manner passed_and_renewed = {ALIKE(.ttl = TTL, .max_ttl = TTL, .interval = TTL * 3 / 20,
                                                       .lead = 1000, .max_hold = TTL / 5, .patience = TTL / 2,
                                                       .risk = TTL * 9 / 10)};

static const struct manner passed_with_fences = {
    ALIKE(.ttl = TTL, .max_ttl = TTL, .lead = 1000, .max_hold = LEASE_NEVER, .patience = TTL / 2), .fenced = true,
    .spare = 2};

static const struct scope scopes[] = {
    {.name = "one",
     .about = "one node, and everything that goes wrong with it",
     .nodes = 1,
     .attempts = 2,
     .faults = 2,
     .passes = 3,
     .clocks = 3,
     .kinds = ALL_KINDS,
     .unkilled = true},
    {.name = "one-extend",
     .about = "one node, renewals and an extension",
     .nodes = 1,
     .attempts = 2,
     .extends = 1,
     .faults = 1,
     .passes = 3,
     .clocks = 1,
     .kinds = ALL_KINDS,
     .renews = true,
     .unkilled = true},
    {.name = "one-native",
     .about = "one node, renewals that set the ttl, and an extension",
     .nodes = 1,
     .attempts = 2,
     .extends = 1,
     .faults = 1,
     .passes = 3,
     .clocks = 1,
     .kinds = ALL_KINDS,
     .renews = true,
     .native = true,
     .manners = &natives,
     .unkilled = true},
    {.name = "one-long",
     .about = "one node, renewals for longer than a ttl",
     .nodes = 1,
     .attempts = 2,
     .faults = 1,
     .passes = 5,
     .clocks = 5,
     .kinds = ALL_KINDS,
     .renews = true},
    {.name = "one-own",
     .about = "one node, tokens of the clients' own that are used again",
     .nodes = 1,
     .attempts = 3,
     .extends = 1,
     .faults = 1,
     .passes = 2,
     .clocks = 1,
     .kinds = ALL_KINDS,
     .own = true,
     .unkilled = true},
    {.name = "one-handover",
     .about = "one node, leases that are exported and adopted",
     .nodes = 1,
     .attempts = 3,
     .extends = 1,
     .faults = 1,
     .passes = 2,
     .clocks = 1,
     .kinds = ALL_KINDS,
     .handover = true},
    {.name = "one-queue",
     .about = "one node, and attempts that wait in its queue",
     .nodes = 1,
     .attempts = 2,
     .faults = 2,
     .passes = 1,
     .clocks = 1,
     .kinds = ALL_KINDS,
     .queues = true,
     .unkilled = true},
    {.name = "one-queue-long",
     .about = "one node, and its queue beyond a ttl",
     .nodes = 1,
     .attempts = 2,
     .faults = 1,
     .passes = 3,
     .clocks = 1,
     .kinds = ALL_KINDS,
     .queues = true,
     .unkilled = true},
    {.name = "one-queue-renew",
     .about = "one node, its queue, and renewals",
     .nodes = 1,
     .attempts = 2,
     .faults = 1,
     .passes = 2,
     .clocks = 1,
     .kinds = ALL_KINDS,
     .renews = true,
     .queues = true,
     .unkilled = true},
    {.name = "one-queue-more",
     .about = "one node, and two that wait in its queue",
     .nodes = 1,
     .attempts = 3,
     .faults = 1,
     .passes = 0,
     .clocks = 1,
     .kinds = ALL_KINDS,
     .queues = true,
     .unkilled = true},
    {.name = "one-queue-own",
     .about = "one node, its queue, and tokens of the clients' own",
     .nodes = 1,
     .attempts = 3,
     .faults = 1,
     .passes = 1,
     .clocks = 1,
     .kinds = ALL_KINDS,
     .own = true,
     .queues = true,
     .unkilled = true},
    {.name = "one-pass",
     .about = "one node, leases that are passed on, and somebody who breaks them",
     .nodes = 1,
     .attempts = 2,
     .extends = 1,
     .faults = 1,
     .passes = 2,
     .relays = 2,
     .clocks = 1,
     .kinds = ALL_KINDS | BREAKS,
     .unkilled = true,
     .stride = 1500,
     .manners = &passed},
    {.name = "one-pass-renew",
     .about = "one node, leases that are passed on and renewed",
     .nodes = 1,
     .attempts = 2,
     .faults = 1,
     .passes = 3,
     .relays = 2,
     .clocks = 1,
     .kinds = ALL_KINDS,
     .renews = true,
     .unkilled = true,
     .manners = &passed_and_renewed},
    {.name = "one-pass-fence",
     .about = "one node, leases that are passed on with their fences",
     .nodes = 1,
     .attempts = 3,
     .faults = 1,
     .passes = 1,
     .relays = 2,
     .clocks = 1,
     .kinds = ALL_KINDS,
     .unkilled = true,
     .counted = 101,
     .manners = &passed_with_fences},
    {.name = "one-pass-queue",
     .about = "one node, its queue, and leases that are passed on with their fences",
     .nodes = 1,
     .attempts = 3,
     .faults = 1,
     .passes = 0,
     .relays = 1,
     .clocks = 1,
     .kinds = ALL_KINDS & ~(RESTARTS | STALLS),
     .queues = true,
     .unkilled = true,
     .counted = 101,
     .manners = &passed_with_fences},
    {.name = "three",
     .about = "three nodes that do not fail, while time passes",
     .nodes = 3,
     .attempts = 2,
     .passes = 2,
     .clocks = 1},
    {.name = "three-fault",
     .about = "three nodes, of which something goes wrong with one",
     .nodes = 3,
     .attempts = 2,
     .faults = 1,
     .clocks = 1,
     .kinds = ALL_KINDS & ~STALLS,
     .unkilled = true},
    {.name = "three-lapse",
     .about = "three nodes, of which one loses its data and does not start again",
     .nodes = 3,
     .attempts = 2,
     .faults = 1,
     .passes = 1,
     .clocks = 1,
     .kinds = LAPSES},
    {.name = "three-stall",
     .about = "three nodes, and a client that is stopped",
     .nodes = 3,
     .attempts = 2,
     .faults = 1,
     .clocks = 1,
     .kinds = STALLS},
    {.name = "three-renew",
     .about = "three nodes, one client that renews",
     .nodes = 3,
     .attempts = 1,
     .faults = 2,
     .passes = 1,
     .clocks = 1,
     .kinds = ALL_KINDS,
     .renews = true,
     .unkilled = true},
    {.name = "three-extend",
     .about = "three nodes, one client that renews and extends",
     .nodes = 3,
     .attempts = 1,
     .extends = 1,
     .faults = 1,
     .passes = 1,
     .clocks = 1,
     .kinds = ALL_KINDS,
     .renews = true,
     .unkilled = true},
    {.name = "three-native",
     .about = "three nodes, one client that extends, and renews by setting the ttl",
     .nodes = 3,
     .attempts = 1,
     .extends = 1,
     .faults = 1,
     .passes = 1,
     .clocks = 1,
     .kinds = ALL_KINDS,
     .renews = true,
     .native = true,
     .manners = &natives,
     .unkilled = true},
    {.name = "three-pass",
     .about = "three nodes, one client that renews, and leases that are passed on",
     .nodes = 3,
     .attempts = 1,
     .faults = 1,
     .passes = 1,
     .relays = 2,
     .clocks = 1,
     .kinds = ALL_KINDS,
     .renews = true,
     .unkilled = true,
     .manners = &passed_and_renewed},
    {.name = "three-pass-mend",
     .about = "three nodes, one client that does not renew, and leases that are passed on",
     .nodes = 3,
     .attempts = 1,
     .faults = 1,
     .passes = 2,
     .relays = 1,
     .clocks = 1,
     .kinds = ALL_KINDS,
     .unkilled = true,
     .stride = 1500,
     .manners = &passed},
    {.name = "three-pass-fence",
     .about = "three nodes, and leases that are passed on with their fences",
     .nodes = 3,
     .attempts = 2,
     .relays = 1,
     .clocks = 1,
     .counted = 101,
     .manners = &passed_with_fences},
};

static struct search {
    const struct scope *scope;
    struct seen *seen;
    unsigned clocks, depth, longest;
    unsigned long long moves;
    bool limited, verifies;
    const char *broken;
    unsigned broken_at;
    struct move way[LONGEST + 1];
} search;

/* What may come of a state, as one number: it is the same for states that count as one. */
static uint64_t future_of(const struct world *w) {
    struct move moves[MOVES];
    unsigned count = world_moves(w, moves);
    uint64_t sum = count;

    for (unsigned i = 0; i < count; i++) {
        struct world next = *w;
        world_move(&next, moves[i]);
        sum += next.broken ? 1 : world_fingerprint(&next);
    }
    return sum;
}

static void verify(const struct world *w, uint64_t state, bool is_new) {
    uint64_t *future = seen_future(search.seen, state);

    if (is_new)
        *future = future_of(w);
    else if (*future != future_of(w))
        search.broken = "states that count as one have one future";
}

/* Goes on from a world in all ways, until a promise is broken. */
static void explore(const struct world *w, unsigned length) {
    struct move moves[MOVES];
    unsigned count = length < search.depth ? world_moves(w, moves) : 0;

    search.longest = length > search.longest ? length : search.longest;
    for (unsigned i = 0; i < count && !search.broken; i++) {
        struct world next = *w;
        uint64_t state;
        bool is_new;

        search.way[length] = moves[i];
        search.broken_at = length + 1;
        search.moves++;
        world_move(&next, moves[i]);
        search.broken = next.broken;
        if (next.broken)
            return;
        state = world_fingerprint(&next);
        is_new = seen_add(search.seen, state, search.limited ? length + 1 : 0);
        if (search.verifies)
            verify(&next, state, is_new);
        if (is_new && !search.broken)
            explore(&next, length + 1);
    }
}

static void print_way(void) {
    struct world w;

    world_begin(&w, search.scope, search.clocks);
    for (unsigned i = 0; i < search.broken_at; i++) {
        world_move(&w, search.way[i]);
        world_print_move(&w, search.way[i]);
    }
    printf("broken: %s\n", search.broken);
}

static bool run(const struct scope *scope) {
    clock_t begun = clock();

    search.scope = scope;
    search.longest = 0;
    search.moves = 0;
    search.seen = seen_new(search.verifies);
    for (unsigned clocks = 0; clocks < CLOCKS && !search.broken; clocks++) {
        struct world w;
        if (!(scope->clocks & 1U << clocks))
            continue;
        search.clocks = clocks;
        world_begin(&w, scope, clocks);
        explore(&w, 0);
    }
    if (search.broken)
        print_way();
    else if (search.longest == LONGEST)
        printf("(no way is followed for more than %d moves)\n", LONGEST);
    printf(
        "%-16s %u node%s, %u attempts, %u extensions, %u faults, %u passes, %u relays: %llu states, %llu moves, %u at "
        "most in a row, %.1f s\n",
        scope->name, scope->nodes, scope->nodes > 1 ? "s" : "", scope->attempts, scope->extends, scope->faults,
        scope->passes, scope->relays, (unsigned long long)seen_count(search.seen), search.moves, search.longest,
        (double)(clock() - begun) / CLOCKS_PER_SEC);
    fflush(stdout);
    seen_free(search.seen);
    return !search.broken;
}

static int usage(void) {
    puts("Usage: exhaust [OPTION...] [SCOPE...]\n"
         "Explores the scopes, or all that CI does. In place of what a scope has:\n"
         "  --attempts N --extensions N --faults N --passes N --relays N\n"
         "  --depth N     follow no way for more than N moves, from each state by the shortest\n"
         "  --verify      see that states which count as one have one future\n"
         "  --help        only say this, and what the scopes are");
    for (unsigned i = 0; i < sizeof scopes / sizeof *scopes; i++)
        printf("%-16s %s\n", scopes[i].name, scopes[i].about);
    return 2;
}

static bool is_chosen(const char *name, char **names) {
    for (char **chosen = names; *chosen; chosen++)
        if (strcmp(*chosen, name) == 0)
            return true;
    return !*names;
}

int main(int argc, char **argv) {
    static const struct option options[] = {
        {"attempts", required_argument, NULL, 'a'},
        {"extensions", required_argument, NULL, 'e'},
        {"faults", required_argument, NULL, 'f'},
        {"passes", required_argument, NULL, 'p'},
        {"relays", required_argument, NULL, 'r'},
        {"depth", required_argument, NULL, 'd'},
        {"verify", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    const char *given['z'] = {0};
    bool kept = true;

    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option == '?' || option == 'h')
            return usage();
        given[option] = optarg ? optarg : "1";
    }
    search.verifies = given['v'];
    search.limited = given['d'];
    search.depth = given['d'] && atoi(given['d']) < LONGEST ? (unsigned)atoi(given['d']) : LONGEST;
    for (unsigned i = 0; i < sizeof scopes / sizeof *scopes && kept; i++) {
        struct scope scope = scopes[i];
        if (!is_chosen(scope.name, argv + optind))
            continue;
        scope.attempts = given['a'] ? (unsigned)atoi(given['a']) : scope.attempts;
        scope.extends = given['e'] ? (unsigned)atoi(given['e']) : scope.extends;
        scope.faults = given['f'] ? (unsigned)atoi(given['f']) : scope.faults;
        scope.passes = given['p'] ? (unsigned)atoi(given['p']) : scope.passes;
        scope.relays = given['r'] ? (unsigned)atoi(given['r']) : scope.relays;
        kept = run(&scope);
    }
    return !kept;
}
