/* The world: how a schedule begins, goes on and ends; see world.h. */
#include "world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "actor.h"
#include "faults.h"
#include "forks.h"
#include "judge.h"
#include "moves.h"
#include "node.h"
#include "process.h"
#include "promotion.h"
#include "tokens.h"
#include "wire.h"
#include "world/chance.h"

/* So much happening at one moment is a loop that spins. */
enum { SPIN = 30000 }; /* a server that stood still answers hundreds of logins at once */

/* --- Chance ------------------------------------------------------------------------------------------------------- */

uint64_t draw(struct world *world) {
    return chance_next(&world->chance);
}

int64_t draw_between(struct world *world, int64_t least, int64_t most) {
    return most <= least ? least : least + (int64_t)(draw(world) % (uint64_t)(most - least + 1));
}

int64_t draw_magnitude(struct world *world, int64_t least, int64_t most) {
    unsigned doublings = 0;

    while (most >> (doublings + 1) >= least && doublings < 60)
        doublings++;
    least <<= draw_between(world, 0, doublings);
    return draw_between(world, least, least * 2 < most ? least * 2 : most);
}

bool draw_chance(struct world *world, unsigned percent) {
    return draw(world) % 100 < percent;
}

/* --- What happened ------------------------------------------------------------------------------------------------ */

void note_number(struct world *world, uint64_t number) {
    world->hash = (world->hash ^ number) * UINT64_C(1099511628211);
    world->hash ^= world->hash >> 29;
}

void note(struct world *world, const struct process *who, const char *format, ...) {
    char line[400];
    va_list args;
    int len;

    if (!world->noting)
        return;
    va_start(args, format);
    len = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    note_number(world, (uint64_t)world->now);
    for (int i = 0; i < len && line[i]; i++)
        world->hash = (world->hash ^ (unsigned char)line[i]) * UINT64_C(1099511628211);
    if (!world->tracing)
        return;
    printf("%.*s%12.6f ", (int)world->forks.generation, "'''", (double)world->now / 1e6);
    if (who)
        printf("p%-3u ", process_number(who));
    else
        printf("     ");
    puts(line);
}

void violated(struct world *world, const char *format, ...) {
    va_list args;

    if (world->violation[0])
        return;
    va_start(args, format);
    vsnprintf(world->violation, sizeof(world->violation), format, args);
    va_end(args);
    note(world, NULL, "VIOLATION: %s", world->violation);
}

/* --- A schedule --------------------------------------------------------------------------------------------------- */

static void world_open(struct world *world) {
    scenario_plan(world, &world->plan);
    TAILQ_INIT(&world->processes);
    TAILQ_INIT(&world->wires);
    world->judge = judge_new(world);
    for (unsigned i = 0; i < world->plan.servers; i++)
        world->nodes[i] = node_new(world, i);
    promotion_begin(world);
    moves_begin(world);
    for (unsigned i = 0; i < world->plan.processes; i++)
        process_new(world);
}

static void world_close(struct world *world) {
    struct process *process;
    struct wire *wire;

    forks_close(world);
    while ((process = TAILQ_FIRST(&world->processes)))
        process_free(process);
    while ((wire = TAILQ_FIRST(&world->wires)))
        wire_free(wire);
    promotion_end(world);
    moves_end(world);
    for (unsigned i = 0; i < world->plan.servers; i++)
        node_free(world->nodes[i]);
    judge_free(world->judge);
    agenda_clear(&world->agenda);
}

/* Runs what is on the agenda until `until`, or until nothing is left, or something was violated. */
static void world_go(struct world *world, int64_t until) {
    struct event *event;
    unsigned at_once = 0;

    while (!world->violation[0] && !forks_over(world) && (event = agenda_next(&world->agenda))) {
        if (event->at > until) {
            agenda_set(&world->agenda, event, event->at);
            break;
        }
        at_once = event->at > world->now ? 0 : at_once + 1;
        if (event->at > world->now)
            world->now = event->at;
        event->happen(event->arg);
        judge_look(world->judge);
        forks_come(world, false);
        if (at_once > SPIN)
            violated(world, "something spins: %u events at one moment", at_once);
    }
    if (!world->violation[0] && until != NEVER && world->now < until)
        world->now = until;
}

/* The faults are over: everyone is served, and leaves; nothing may remain. */
static void world_wind_up(struct world *world) {
    struct process *process;
    int64_t end;

    world->calm = true;
    world->calm_at = world->now;
    TAILQ_FOREACH (process, &world->processes, link)
        if (!process->crashed && process->busy_until > world->calm_at)
            world->calm_at = process->busy_until;
    end = world->calm_at + actor_patience(world);
    note(world, NULL, "the faults are over");
    faults_end(world);
    actors_finish(world);
    world_go(world, world->calm_at + judge_patience(world->judge));
    judge_strays(world->judge);
    while (!world->violation[0] && world->now < end && !actors_served(world))
        world_go(world, world->now + world->plan.unit);
    judge_served(world->judge);
    actors_leave(world);
    world_go(world, world->now + actor_patience(world));
    judge_empty(world->judge);
}

bool world_run(const struct scenario *scenario, uint64_t seed, bool forks, enum telling telling, struct tally *tally,
               struct outcome *ret) {
    struct world world = {
        .scenario = scenario,
        .seed = seed,
        .chance = seed,
        .noting = telling != TELL_NOTHING,
        .tracing = telling == TELL_ALL,
        .tally = tally,
    };

    for (const char *name = scenario->name; *name; name++) /* one seed is not the same in two scenarios */
        world.chance = world.chance * 31 + (unsigned char)*name;
    tokens_from(&world);
    world_open(&world);
    forks_begin(&world, forks ? FORKS_SHARE : 0);
    faults_begin(&world);
    world_go(&world, world.plan.length);
    if (!world.violation[0] && !forks_over(&world))
        world_wind_up(&world);
    ret->hash = world.hash;
    world_close(&world);
    judge_leaks(&world);
    forks_end(&world);
    tally->schedules++;
    tally->violations += world.violation[0] != 0;
    memcpy(ret->violation, world.violation, sizeof(ret->violation));
    return !world.violation[0];
}
