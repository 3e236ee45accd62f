/* The simulated event loop; see loop.h. */
#include "loop.h"

#include <stdlib.h>

#include <hiredis/async.h>

#include "judge.h"
#include "wire.h"

/* --- The adapter -------------------------------------------------------------------------------------------------- */

static int64_t loop_now(void *data) {
    return process_clock(data);
}

static void *timer_new(void *data, evlock_timer_cb cb, void *arg) {
    struct process *process = data;
    struct timer *timer = calloc(1, sizeof(*timer));

    timer->process = process;
    timer->cb = cb;
    timer->arg = arg;
    timer->at = NEVER;
    TAILQ_INSERT_TAIL(&process->timers, timer, link);
    return timer;
}

static void timer_set(void *arg, int64_t at) {
    struct timer *timer = arg;

    timer->at = at;
    loop_wake(timer->process);
}

static void timer_free(void *arg) {
    struct timer *timer = arg;

    TAILQ_REMOVE(&timer->process->timers, timer, link);
    free(timer);
}

/* hiredis's hooks; each is called again for each readiness that is wanted. */

static void add_read(void *arg) {
    struct wire *wire = arg;

    wire->wants_read = true;
    loop_wake(wire->process);
}

static void del_read(void *arg) {
    ((struct wire *)arg)->wants_read = false;
}

static void add_write(void *arg) {
    struct wire *wire = arg;

    wire->wants_write = true;
    loop_wake(wire->process);
}

static void del_write(void *arg) {
    ((struct wire *)arg)->wants_write = false;
}

static void cleanup(void *arg) {
    wire_client_gone(arg);
}

static int attach(void *data, struct redisAsyncContext *connection) {
    struct process *process = data;

    connection->ev.addRead = add_read;
    connection->ev.delRead = del_read;
    connection->ev.addWrite = add_write;
    connection->ev.delWrite = del_write;
    connection->ev.cleanup = cleanup;
    connection->ev.data = wire_new(process, node_at(process->world, connection->c.unix_sock.path), connection);
    return 0;
}

static uint64_t loop_random(void *data) {
    return draw(((struct process *)data)->world);
}

static const evlock_loop_ops ops = {
    .size = sizeof(evlock_loop_ops),
    .now = loop_now,
    .timer_new = timer_new,
    .timer_set = timer_set,
    .timer_free = timer_free,
    .attach = attach,
    .random = loop_random,
};

evlock_loop loop_of(struct process *process) {
    return (evlock_loop){&ops, process};
}

/* --- Turns -------------------------------------------------------------------------------------------------------- */

static bool ready(const struct wire *wire) {
    return wire_can_read(wire) || wire_can_write(wire);
}

void loop_wake(struct process *process) {
    struct world *world = process->world;
    int64_t at = NEVER, due;
    struct timer *timer;
    struct wire *wire;

    if (world->running == process)
        return; /* the turn's end sees to it */
    TAILQ_FOREACH (wire, &process->wires, local)
        if (ready(wire))
            at = world->now;
    TAILQ_FOREACH (timer, &process->timers, link) {
        if (timer->at == NEVER)
            continue;
        due = clock_when(&process->clock, timer->at);
        at = due < at ? due : at;
    }
    if (at < process->still_until)
        at = process->still_until;
    if (at < world->now)
        at = world->now;
    agenda_set(&world->agenda, &process->turn, at);
}

void loop_flush(struct process *process) {
    struct wire *wire;

    TAILQ_FOREACH (wire, &process->wires, local)
        if (wire->connected && socket_has_written(&wire->socket))
            wire_drain(wire);
}

/* How many wires and timers are ready; the `index`-th of them. */
static unsigned find_ready(struct process *process, unsigned index, struct wire **ret_wire, struct timer **ret_timer) {
    unsigned count = 0;
    struct timer *timer;
    struct wire *wire;

    TAILQ_FOREACH (wire, &process->wires, local)
        if (ready(wire) && count++ == index)
            *ret_wire = wire;
    TAILQ_FOREACH (timer, &process->timers, link)
        if (timer->at <= process_clock(process) && count++ == index)
            *ret_timer = timer;
    return count;
}

/* A wire may be gone after each call. */
static void serve_wire(struct wire *wire) {
    struct process *process = wire->process;
    bool reads = wire_can_read(wire) && (!wire_can_write(wire) || draw_chance(wire->world, 50));

    if (!reads) {
        wire->wants_write = false;
        evlock_on_writable(wire->connection);
        return;
    }
    wire->wants_read = false;
    evlock_on_readable(wire->connection);
    TAILQ_FOREACH (wire, &process->wires, local)
        if (wire->readable)
            wire_look(wire);
}

void loop_turn(struct process *process) {
    struct world *world = process->world;
    struct timer *timer;
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
            timer->at = NEVER;
            timer->cb(timer->arg);
        }
        judge_leave(world->judge, process);
        loop_flush(process);
    }
}
