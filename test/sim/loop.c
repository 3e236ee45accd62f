/* The simulated event loop; see loop.h. */
#include "loop.h"

#include <hiredis/async.h>

#include "judge.h"
#include "wire.h"

/* --- The adapter -------------------------------------------------------------------------------------------------- */

static struct process *owner_of(const struct virtual_loop *loop) {
    return loop->owner;
}

static int64_t loop_now(void *data) {
    return process_clock(owner_of(data));
}

static int attach(void *data, struct redisAsyncContext *connection) {
    wire_new(owner_of(data), connection);
    return 0;
}

static uint64_t loop_random(void *data) {
    return draw(owner_of(data)->world);
}

#define OPS(knows_of_forks)                                                                                            \
    {                                                                                                                  \
        .size = sizeof(evlock_loop_ops), .now = loop_now, .timer_new = virtual_timer_new,                              \
        .timer_set = virtual_timer_set, .timer_free = virtual_timer_free, .attach = attach, .random = loop_random,     \
        .forks = (knows_of_forks)                                                                                      \
    }

static const evlock_loop_ops ops[] = {OPS(0), OPS(1)};

static void wake(void *owner) {
    loop_wake(owner);
}

void loop_init(struct process *process) {
    virtual_loop_init(&process->loop, wake, process);
}

evlock_loop loop_of(struct process *process) {
    return (evlock_loop){&ops[loop_forks(process)], &process->loop};
}

bool loop_forks(const struct process *process) {
    return process->number % 2 == 1;
}

/* --- Turns -------------------------------------------------------------------------------------------------------- */

static bool ready(const struct wire *wire) {
    return wire_can_read(wire) || wire_can_write(wire);
}

void loop_wake(struct process *process) {
    struct world *world = process->world;
    const struct virtual_timer *timer;
    int64_t at = NEVER;
    struct wire *wire;

    if (world->running == process)
        return; /* the turn's end sees to it */
    timer = virtual_timer_next(&process->loop);
    if (timer)
        at = clock_when(&process->clock, timer->at);
    TAILQ_FOREACH (wire, &process->wires, local)
        if (ready(wire))
            at = world->now;
    if (at < process->still_until)
        at = process->still_until;
    if (at < world->now)
        at = world->now;
    agenda_set(&world->agenda, &process->turn, at);
}

void loop_flush(struct process *process) {
    struct wire *wire;

    TAILQ_FOREACH (wire, &process->wires, local)
        if (wire->connected && socket_has_written(wire->socket))
            wire_drain(wire);
}

/* How many wires and timers are ready; the `index`-th of them. */
static unsigned find_ready(struct process *process, unsigned index, struct wire **ret_wire,
                           struct virtual_timer **ret_timer) {
    unsigned count = 0;
    struct virtual_timer *timer;
    struct wire *wire;

    TAILQ_FOREACH (wire, &process->wires, local)
        if (ready(wire) && count++ == index)
            *ret_wire = wire;
    TAILQ_FOREACH (timer, &process->loop.timers, link)
        if (timer->at <= process_clock(process) && count++ == index)
            *ret_timer = timer;
    return count;
}

/* A wire may be gone after each call. */
static void serve_wire(struct wire *wire) {
    struct process *process = wire->process;
    bool reads = wire_can_read(wire) && (!wire_can_write(wire) || draw_chance(wire->world, 50));

    if (!reads) {
        wire->watch.writes = false;
        evlock_on_writable(wire->connection);
        return;
    }
    wire->watch.reads = false;
    evlock_on_readable(wire->connection);
    TAILQ_FOREACH (wire, &process->wires, local)
        if (wire->readable)
            wire_look(wire);
}

void loop_turn(struct process *process) {
    struct world *world = process->world;
    struct virtual_timer *timer;
    struct wire *wire;
    unsigned count, calls = 0;

    while (wire = NULL, timer = NULL, (count = find_ready(process, 0, &wire, &timer)) > 0 && calls++ < 64) {
        wire = NULL;
        timer = NULL;
        find_ready(process, (unsigned)draw_between(world, 0, count - 1), &wire, &timer);
        judge_enter(world->judge, process);
        if (wire) {
            serve_wire(wire);
        } else {
            virtual_timer_ring(timer);
        }
        judge_leave(world->judge, process);
        loop_flush(process);
    }
}
