/* Simulated processes; see process.h. */
#include "process.h"

#include <stdlib.h>

#include "actor.h"
#include "judge.h"
#include "loop.h"
#include "wire.h"

static void take_turn(void *arg) {
    struct process *process = arg;

    process_enter(process);
    loop_turn(process);
    process_leave(process);
}

struct process *process_new(struct world *world) {
    struct process *process = calloc(1, sizeof(*process));

    process->world = world;
    process->number = ++world->next_process;
    process->clock = (struct clock){world->now, draw_between(world, SECOND, 1000000 * SECOND),
                                    draw_between(world, -world->plan.drift_ppm, world->plan.drift_ppm)};
    process->turn.happen = take_turn;
    process->turn.arg = process;
    loop_init(process);
    TAILQ_INIT(&process->wires);
    TAILQ_INSERT_TAIL(&world->processes, process, link);
    process->actor = actor_new(process);
    return process;
}

void process_free(struct process *process) {
    struct world *world = process->world;

    if (!process->crashed)
        process_crash(process);
    agenda_set(&world->agenda, &process->turn, NEVER);
    actor_free(process->actor);
    TAILQ_REMOVE(&world->processes, process, link);
    free(process);
}

unsigned process_number(const struct process *process) {
    return process->number;
}

int64_t process_time(const struct process *process) {
    return process->world->now + process->lag;
}

int64_t process_clock(const struct process *process) {
    return clock_read(&process->clock, process_time(process));
}

bool process_runs(const struct process *process) {
    return !process->crashed && process->still_until <= process->world->now;
}

void process_stop(struct process *process, int64_t until) {
    if (process->still_until < until)
        process->still_until = until;
    loop_wake(process);
}

void process_continue(struct process *process) {
    if (process->still_until > process->world->now)
        process->still_until = process->world->now;
    if (process->still_until < process->busy_until)
        process->still_until = process->busy_until;
    loop_wake(process);
}

void process_enter(struct process *process) {
    process->world->running = process;
}

void process_leave(struct process *process) {
    struct world *world = process->world;

    loop_flush(process);
    world->running = NULL;
    if (process->lag) {
        process->busy_until = world->now + process->lag;
        process_stop(process, process->busy_until);
        process->lag = 0;
    }
    loop_wake(process);
}

void process_lag(struct process *process, int64_t time) {
    process->lag += time;
}

void process_crash(struct process *process) {
    struct wire *wire, *next;

    note(process->world, process, "crashes");
    process->crashed = true;
    for (wire = TAILQ_FIRST(&process->wires); wire; wire = next) {
        next = TAILQ_NEXT(wire, local);
        wire_drain(wire);
        wire->dead = true;
        if (draw_chance(process->world, 30)) /* the machine is gone, too */
            wire_disturb(wire, true, FLOW_LOSE, 0);
    }
    /* What the system would take back is freed; the callbacks that this leads to are nobody's. */
    process_enter(process);
    actor_wipe(process->actor);
    loop_turn(process);
    process_leave(process);
    agenda_set(&process->world->agenda, &process->turn, NEVER);
}
