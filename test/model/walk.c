/*
 * Walks through the world at random: each seed draws how many nodes there are, how the locks are used and what may go
 * wrong, then what happens next, again and again; in the end all that is broken is mended, everybody gives up, and
 * nothing may be left. `walk [FIRST [COUNT]]` takes so many seeds; without these, the usual ones. One alone is printed
 * move by move; else it prints TAP. That a walk finds what it looks for is shown on worlds in which a part is missing.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

#define MS INT64_C(1000)
#define SECOND (1000 * MS)

enum { STEPS = 1500, MANNERS = 8, SEEDS = 1000, HEALING = 40000 };

static struct scope scope;
static struct manner manners[MANNERS];
static struct world w;
static uint64_t state;

static bool traced; /* each move is printed */

/* How often something came to pass that the promises are about. */
static unsigned granted, raised, rearmed, mended, handed, looked, passed, passed_fenced, continued;

static unsigned any(unsigned below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)((state >> 11) % below);
}

static bool chance(unsigned percent) {
    return any(100) < percent;
}

/* --- What a seed draws -------------------------------------------------------------------------------------------- */

static void draw_manner(struct manner *manner) {
    int64_t ttl = scope.nodes == 1 && chance(10) ? 0 : (1 + any(4)) * SECOND / 2;

    manner->fenced = chance(50);
    manner->own = chance(30);
    manner->terms = (struct lease_terms){
        .ttl = ttl,
        .max_ttl = ttl ? 3 * SECOND : 0,
        .interval = chance(30)   ? 0
                    : chance(70) ? ttl / 3
                                 : ttl * 9 / 10,
        .lead = chance(70) ? evl_lease_moment(ttl) : any(2 + (unsigned)ttl / 15),
        .max_hold = chance(70) ? LEASE_NEVER : ttl * 2,
        .patience = ttl * (1 + any(10)) / 10,
        .risk = ttl * (1 + any(99)) / 100,
    };
    manner->heirs = manner->terms;
    manner->spare = (uint8_t)(manner->terms.patience / 50000 % 3 * 20); /* as chance has it */
}

static void begin(uint64_t seed, enum flaw flaw) {
    static const unsigned sizes[] = {1, 1, 2, 3, 3, 4, 5, 5};

    state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    scope = (struct scope){
        .name = "walk",
        .nodes = sizes[any(sizeof sizes / sizeof *sizes)],
        .attempts = CLIENTS * ATTEMPTS,
        .extends = UINT32_MAX,
        .faults = UINT32_MAX,
        .passes = UINT32_MAX,
        .relays = UINT32_MAX,
        .kinds = (ALL_KINDS & ~(LAPSES | WIPES)) | FORGETFUL_COUNTERS,
        .unkilled = true,
        .lazy = chance(70),
        .flaw = flaw,
        .manners = manners,
        .native = seed % 2 == 0,
    };
    scope.queues = scope.nodes == 1 && chance(50);
    scope.handover = chance(50);
    if (chance(50))
        scope.kinds |= LAPSES | WIPES;
    if (chance(20))
        scope.kinds |= BREAKS;
    for (unsigned i = 0; i < MANNERS; i++)
        draw_manner(&manners[i]);
    world_begin(&w, &scope, 0);
    for (unsigned c = 0; c < CLIENTS; c++)
        w.clients[c].rate = 199 + any(3);
    for (unsigned n = 0; n < NODES; n++)
        w.nodes[n].rate = 199 + any(3);
}

/* --- Moves -------------------------------------------------------------------------------------------------------- */

/* How often each is taken, beside the others that may happen. */
static const unsigned char weights[] = {
    [BEGIN] = 20,          [JOIN] = 20,      [LOOK] = 5,         [ADOPT] = 40,   [CANCEL] = 3,
    [RELEASE] = 6,         [EXPORT] = 6,     [ADD] = 5,          [SEND] = 60,    [SERVE] = 60,
    [SAY_AGAIN] = 2,       [REFUSE] = 2,     [FORBID] = 1,       [DELIVER] = 60, [CUT] = 3,
    [BACK_KILLED] = 10,    [BACK] = 10,      [RUN_LATE] = 3,     [HEAR] = 20,    [HEAR_EARLY] = 20,
    [DEAFEN] = 2,          [NOTICE] = 5,     [LISTEN] = 10,      [RESTART] = 1,  [WIPE] = 1,
    [FORGET] = 1,          [LOSE_QUEUE] = 1, [LOSE_COUNTER] = 1, [BREAK] = 1,    [STRETCH] = 1,
    [PASS_SHORT] = 60,     [PASS] = 30,      [STALL] = 1,        [WAKE] = 20,    [REPLACE_LONGER] = 5,
    [REPLACE_SHORTER] = 5, [SHOW] = 1,       [RELAY] = 10,       [TELL] = 20,    [RELAY_ATTEMPT] = 2,
};

/* Where exclusion is missing, what it is for happens more often, and to those who are there. */
static unsigned weight_of(const struct move *move) {
    if (scope.flaw == NO_EXCLUSION && move->what == WIPE)
        return 20;
    if (scope.flaw == NO_EXCLUSION && move->what == BACK_KILLED)
        return 60;
    return weights[move->what];
}

static void note(const struct move *move) {
    const struct channel *channel = &w.clients[move->client].channels[move->node];

    handed += move->what == HEAR;
    looked += move->what == LOOK;
    passed += move->what == RELAY;
    passed_fenced += move->what == RELAY && w.clients[move->client].uses[w.clients[move->client].begun - 1].fenced;
    continued += move->what == RELAY_ATTEMPT;
    if (move->what != DELIVER || channel->queue[0].verdict != LEASE_YES)
        return;
    granted += channel->queue[0].command == LEASE_ACQUIRE && scope.nodes > 1;
    raised += channel->queue[0].command == LEASE_RAISE;
    rearmed += channel->queue[0].command == LEASE_REARM;
    mended += channel->queue[0].command == LEASE_MEND;
}

static void take(struct move move) {
    note(&move);
    world_move(&w, move);
    if (traced)
        world_print_move(&w, move);
}

/* What goes beside the move: a manner, how much time, ... */
static unsigned char draw_with(unsigned what) {
    switch ((enum happening)what) {
    case BEGIN:
    case JOIN:
    case ADOPT:
        return (unsigned char)any(MANNERS);
    case REPLACE_LONGER:
    case REPLACE_SHORTER:
    case ADD:
        return (unsigned char)any(20);
    case BACK_KILLED:
        return chance(20);
    case PASS:
    case PASS_SHORT:
        return (unsigned char)(chance(50) ? any(12) : chance(80) ? 0 : any(60));
    default:
        return 0;
    }
}

static void step(void) {
    static struct move moves[MOVES];
    unsigned count = world_moves(&w, moves), sum = 0, drawn, i = 0;

    for (unsigned k = 0; k < count; k++)
        sum += weight_of(&moves[k]);
    for (drawn = any(sum); drawn >= weight_of(&moves[i]); i++)
        drawn -= weight_of(&moves[i]);
    moves[i].with = draw_with(moves[i].what);
    take(moves[i]);
}

/* --- The end ------------------------------------------------------------------------------------------------------ */

static unsigned living(void) {
    unsigned count = 0;

    for (unsigned c = 0; c < CLIENTS; c++)
        for (unsigned a = 0; a < w.clients[c].begun; a++)
            count += !w.clients[c].uses[a].over;
    return count;
}

static bool heals(unsigned what) {
    return what == CANCEL || what == SEND || what == SERVE || what == DELIVER || what == BACK_KILLED || what == HEAR ||
           what == LISTEN || what == RUN_LATE || what == WAKE;
}

/* An hour, if so, where nothing expires: the releases that fall due on the way, each at its time, wait for answers. */
static void rest(bool long_rest) {
    int64_t hour = 5 * 3600 * 1000, until = w.time + hour;

    scope.stride = long_rest ? hour : 0;
    do
        take((struct move){.what = PASS});
    while (long_rest && w.time < until && living() && !w.broken);
}

/* Everything works, and everybody gives up: then all that there was comes to its end. */
static void heal(void) {
    static struct move moves[MOVES];

    for (unsigned c = 0; c < CLIENTS; c++)
        for (unsigned n = 0; n < scope.nodes; n++)
            if (w.clients[c].channels[n].up && !w.broken)
                take((struct move){.what = CUT, .client = (uint8_t)c, .node = (uint8_t)n});
    for (unsigned i = 0; i < HEALING && living() && !w.broken; i++) {
        unsigned count = world_moves(&w, moves), k = 0;
        while (k < count && !heals(moves[k].what))
            k++;
        if (k < count)
            take(moves[k]);
        else
            rest(i > HEALING / 10);
    }
    if (!w.broken && living())
        w.broken = "in the end everything is over";
}

/* Whether what a node still has may be there: its use was excused. */
static bool may_be_left(unsigned token) {
    for (unsigned c = 0; c < CLIENTS; c++)
        for (unsigned a = 0; a < w.clients[c].begun; a++)
            if (w.clients[c].uses[a].token == token && (w.clients[c].uses[a].leaves || w.clients[c].uses[a].late))
                return true;
    return false;
}

static void check_left(void) {
    for (unsigned n = 0; n < scope.nodes && !w.broken; n++) {
        const struct server *server = &w.nodes[n].server;
        if (server_clock(&w, n) < server->expires && !may_be_left((unsigned)server->token))
            w.broken = "in the end nothing is left";
        for (unsigned i = 0; i < server->waiting && !w.broken; i++)
            if (!may_be_left(server->line[i].token))
                w.broken = "in the end nobody is left in the queue";
    }
}

static bool walk(uint64_t seed, enum flaw flaw) {
    begin(seed, flaw);
    for (unsigned i = 0; i < STEPS && !w.broken; i++)
        step();
    heal();
    check_left();
    if (w.broken)
        printf("# broken: %s; again by: walk %" PRIu64 "\n", w.broken, seed);
    return !w.broken;
}

/* --- Tests -------------------------------------------------------------------------------------------------------- */

static bool promises_hold(uint64_t first, uint64_t count) {
    for (uint64_t seed = first; seed < first + count; seed++)
        if (!walk(seed, NO_FLAW))
            return false;
    return count < SEEDS ||
           (granted && raised && rearmed && mended && handed && looked && passed && passed_fenced && continued);
}

/* Nodes that start again empty between two acquires hand the lock out twice. */
static bool two_hold_without_exclusion(void) {
    for (uint64_t seed = 1; seed <= SEEDS && walk(seed, NO_EXCLUSION); seed++)
        if (w.twice)
            return true;
    return false;
}

/* A quorum that has not the fence hands out a smaller one. */
static bool fences_go_back_without_raising(void) {
    for (uint64_t seed = 1; seed <= SEEDS && walk(seed, NO_RAISING); seed++)
        if (w.backwards)
            return true;
    return false;
}

static bool report(unsigned number, bool holds, const char *what) {
    printf("%sok %u - %s\n", holds ? "" : "not ", number, what);
    return holds;
}

int main(int argc, char **argv) {
    bool fine;

    traced = argc == 2;
    if (argc > 1)
        return !promises_hold(strtoull(argv[1], NULL, 10), argc > 2 ? strtoull(argv[2], NULL, 10) : 1);
    puts("1..3");
    fine = report(1, promises_hold(1, SEEDS), "the promises hold whatever happens");
    fine &= report(2, two_hold_without_exclusion(), "without exclusion two hold it");
    fine &= report(3, fences_go_back_without_raising(), "without raising fences go back");
    return !fine;
}
