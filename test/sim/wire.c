/* Wires; see wire.h. */
#include "wire.h"

#include <stdlib.h>
#include <string.h>

#include <hiredis/async.h>

#include "duties.h"
#include "faults.h"
#include "loop.h"
#include "process.h"
#include "reach.h"

static void arrive_up(void *arg);
static void arrive_down(void *arg);
static void establish(void *arg);

static void flow_init(struct flow *flow, void (*arrive)(void *), struct wire *wire) {
    TAILQ_INIT(&flow->segments);
    flow->arrival.happen = arrive;
    flow->arrival.arg = wire;
}

static void flow_clear(struct wire *wire, struct flow *flow) {
    struct segment *segment;

    while ((segment = TAILQ_FIRST(&flow->segments))) {
        TAILQ_REMOVE(&flow->segments, segment, link);
        free(segment);
    }
    agenda_set(&wire->world->agenda, &flow->arrival, NEVER);
}

static void flow_plan(struct wire *wire, struct flow *flow) {
    const struct segment *first = TAILQ_FIRST(&flow->segments);

    agenda_set(&wire->world->agenda, &flow->arrival, first ? first->at : NEVER);
}

static struct segment *flow_take(struct flow *flow) {
    struct segment *first = TAILQ_FIRST(&flow->segments);

    if (first)
        TAILQ_REMOVE(&flow->segments, first, link);
    return first;
}

static void flow_push(struct wire *wire, struct flow *flow, const char *bytes, size_t len) {
    struct world *world = wire->world;
    int64_t sent = process_time(wire->process);
    int64_t at = sent + draw_between(world, world->plan.latency / 4, world->plan.latency);
    struct segment *segment;

    if (flow->lost)
        return;
    if (at < flow->held_until)
        at = flow->held_until;
    if (at < flow->last)
        at = flow->last;
    flow->last = at;
    segment = malloc(sizeof(*segment) + len);
    *segment = (struct segment){.at = at, .sent = sent, .end = len == 0, .len = len};
    if (len)
        memcpy(segment->bytes, bytes, len);
    TAILQ_INSERT_TAIL(&flow->segments, segment, link);
    flow_plan(wire, flow);
}

/* Bytes go in one piece, in several, or one by one. */
static void flow_push_split(struct wire *wire, struct flow *flow, const char *bytes, size_t len) {
    struct world *world = wire->world;
    bool split = !world->calm && draw_chance(world, world->plan.bad_bytes / 4);
    size_t piece = split && draw_chance(world, 30) && len < 600 ? 1 : len;

    if (split)
        faults_count(world, "bytes split");
    while (len > 0) {
        size_t some = split && piece > 1 ? (size_t)draw_between(world, 1, (int64_t)len) : piece;
        some = some < len ? some : len;
        flow_push(wire, flow, bytes, some);
        bytes += some;
        len -= some;
    }
}

/* The process will not hear what is on its way to it. */
static void clear_down(struct wire *wire) {
    const struct segment *first = TAILQ_FIRST(&wire->down.segments);

    if (first && !wire->unheard)
        wire->unheard = first->sent;
    flow_clear(wire, &wire->down);
}

/* --- From the process to the server ------------------------------------------------------------------------------- */

/* Nobody is left at either end, and nothing is on its way. */
static void free_if_over(struct wire *wire) {
    if (!wire->connection && !wire->session && TAILQ_EMPTY(&wire->up.segments))
        wire_free(wire);
}

static void on_output(void *arg, const char *bytes, size_t len) {
    struct wire *wire = arg;

    note_number(wire->world, len);
    if (wire->world->tracing)
        note(wire->world, NULL, "w%-3u n%u answers %.*s%s", wire->number, wire->node->index,
             (int)strcspn(bytes, "\r\n"), bytes, len > 60 ? " …" : "");
    if (!wire->unheard && (!wire->connection || wire->down.lost))
        wire->unheard = wire->world->now;
    if (!wire->connection)
        return;
    wire->sends_on |= memmem(bytes, len, "-ASK ", 5) != NULL;
    reach_answered(wire, bytes, len);
    faults_on_bytes(wire, false);
    if (wire->session && sim_session_listens(wire->session))
        faults_on_push(wire);
    flow_push_split(wire, &wire->down, bytes, len);
}

static void on_ended(void *arg) {
    struct wire *wire = arg;

    wire->session = NULL;
    reach_spoil(wire, NEVER);
    flow_clear(wire, &wire->up);
    wire->up.lost = true;
    if (wire->connection)
        flow_push(wire, &wire->down, NULL, 0);
}

static void establish(void *arg) {
    struct wire *wire = arg;

    wire->connected = true;
    wire->session = sim_server_connect(node_now(wire->node), on_output, on_ended, wire);
    flow_plan(wire, &wire->up);
    if (!wire->connection)
        return;
    duties_connected(wire);
    loop_wake(wire->process);
}

static void feed(struct wire *wire, const struct segment *segment) {
    struct world *world = wire->world;

    node_now(wire->node);
    world->feeding = wire;
    world->feeding_sent = segment->sent;
    if (sim_server_refuses(wire->node->server))
        wire->node->refused_until = world->now;
    if (segment->end) {
        sim_session_close(wire->session);
        wire->session = NULL;
    } else {
        sim_session_feed(wire->session, segment->bytes, segment->len);
    }
    world->feeding = NULL;
    node_fed(wire->node);
}

void wire_resume(struct wire *wire) {
    struct world *world = wire->world;

    world->feeding = wire;
    world->feeding_sent = world->now;
    sim_session_resume(wire->session);
    world->feeding = NULL;
}

static void arrive_up(void *arg) {
    struct wire *wire = arg;
    struct segment *segment;

    if (!wire->connected)
        return; /* establish() plans anew */
    if (wire->node->paused_until > wire->world->now) {
        agenda_set(&wire->world->agenda, &wire->up.arrival, wire->node->paused_until);
        return;
    }
    segment = flow_take(&wire->up);
    if (wire->session)
        feed(wire, segment);
    free(segment);
    if (!wire->session)
        flow_clear(wire, &wire->up);
    flow_plan(wire, &wire->up);
    free_if_over(wire);
}

void wire_drain(struct wire *wire) {
    char bytes[16384];
    size_t len;

    do {
        len = socket_take(wire->socket, bytes, sizeof(bytes));
        if (len == 0 || wire->dead || wire->up.lost)
            continue;
        faults_on_bytes(wire, true);
        flow_push_split(wire, &wire->up, bytes, len);
    } while (len == sizeof(bytes));
}

void wire_client_gone(struct wire *wire) {
    if (!wire->connection)
        return;
    wire_drain(wire);
    TAILQ_REMOVE(&wire->process->wires, wire, local);
    wire->connection = NULL;
    wire->gone_at = wire->world->now;
    reach_closed(wire);
    socket_end(wire->socket);
    wire->socket = NULL;
    clear_down(wire);
    duties_parted(wire);
    if (!wire->connected) { /* and so nothing was sent */
        wire_free(wire);
        return;
    }
    flow_push(wire, &wire->up, NULL, 0);
    faults_on_gone(wire);
    free_if_over(wire);
}

/* --- From the server to the process ------------------------------------------------------------------------------- */

static void arrive_down(void *arg) {
    struct wire *wire = arg;
    struct segment *segment = flow_take(&wire->down);

    if (segment->end)
        socket_end(wire->socket);
    else
        socket_put(wire->socket, segment->bytes, segment->len);
    free(segment);
    wire->readable = true;
    flow_plan(wire, &wire->down);
    loop_wake(wire->process);
}

bool wire_can_read(const struct wire *wire) {
    return wire->connected && wire->watch.reads && wire->readable;
}

bool wire_can_write(const struct wire *wire) {
    return wire->connected && wire->watch.writes;
}

static bool all_is_read(const struct wire *wire) {
    return TAILQ_EMPTY(&wire->down.segments) && !socket_readable(wire->socket);
}

void wire_look(struct wire *wire) {
    wire->readable = socket_readable(wire->socket);
    wire->sends_on &= !all_is_read(wire);
}

bool wire_sends_on(const struct wire *wire) {
    return wire->connection && wire->sends_on && !all_is_read(wire);
}

/* --- Life --------------------------------------------------------------------------------------------------------- */

static void gone(void *owner) {
    wire_client_gone(owner);
}

struct wire *wire_new(struct process *process, struct redisAsyncContext *connection) {
    struct world *world = process->world;
    struct wire *wire = calloc(1, sizeof(*wire));
    int64_t at;

    wire->world = world;
    wire->process = process;
    wire->socket = socket_of(connection->c.fd);
    wire->node = world->nodes[socket_place(wire->socket) % NODES_MAX];
    wire->number = world->next_wire++;
    wire->client = process->client_number;
    wire->connection = connection;
    virtual_watch_init(&wire->watch, &process->loop, connection, gone, wire);
    wire->watch.reads = wire->watch.writes = true;
    flow_init(&wire->up, arrive_up, wire);
    flow_init(&wire->down, arrive_down, wire);
    wire->connect.happen = establish;
    wire->connect.arg = wire;
    at = process_time(process) + draw_between(world, world->plan.latency / 2, world->plan.latency * 2);
    at = faults_on_connect(wire, at);
    agenda_set(&world->agenda, &wire->connect, at);
    TAILQ_INSERT_TAIL(&world->wires, wire, link);
    TAILQ_INSERT_TAIL(&process->wires, wire, local);
    note(world, process, "w%u connects to n%u", wire->number, wire->node->index);
    return wire;
}

void wire_free(struct wire *wire) {
    agenda_set(&wire->world->agenda, &wire->connect, NEVER);
    flow_clear(wire, &wire->up);
    flow_clear(wire, &wire->down);
    if (wire->session)
        sim_session_close(wire->session);
    TAILQ_REMOVE(&wire->world->wires, wire, link);
    free(wire);
}

/* --- Faults ------------------------------------------------------------------------------------------------------- */

void wire_disturb(struct wire *wire, bool up, enum flow_fault fault, int64_t until) {
    struct flow *flow = up ? &wire->up : &wire->down;
    struct segment *segment;

    reach_spoil(wire, fault == FLOW_LOSE ? NEVER : until);
    if (fault == FLOW_LOSE) {
        flow->lost = true;
        if (up)
            flow_clear(wire, flow);
        else
            clear_down(wire);
        return;
    }
    flow->held_until = until;
    TAILQ_FOREACH (segment, &flow->segments, link)
        if (segment->at < until)
            segment->at = until;
    if (flow->last < until)
        flow->last = until;
    flow_plan(wire, flow);
}

void wire_due(struct wire *wire, int64_t at) {
    struct segment *segment;

    TAILQ_FOREACH (segment, &wire->up.segments, link)
        segment->at = at;
    wire->up.held_until = wire->up.last = at;
    flow_plan(wire, &wire->up);
}

static void end_towards_process(struct wire *wire) {
    reach_spoil(wire, NEVER);
    clear_down(wire);
    if (!wire->connection)
        return;
    wire->down.lost = false;
    wire->down.last = 0;
    wire->down.held_until = 0;
    flow_push(wire, &wire->down, NULL, 0);
    wire->down.lost = true;
}

void wire_strand(struct wire *wire, int64_t until) {
    note(wire->world, NULL, "w%u is stranded", wire->number);
    wire_drain(wire);
    wire_disturb(wire, true, FLOW_HOLD, until);
    end_towards_process(wire);
}

void wire_reset(struct wire *wire, bool run, bool noticed) {
    struct segment *segment;

    note(wire->world, NULL, "w%u is reset", wire->number);
    while (run && wire->session && (segment = flow_take(&wire->up))) {
        if (!segment->end && segment->sent <= wire->world->now)
            feed(wire, segment);
        free(segment);
    }
    flow_clear(wire, &wire->up);
    wire->up.lost = true;
    if (noticed && wire->session) {
        sim_session_close(wire->session);
        wire->session = NULL;
    }
    end_towards_process(wire);
    free_if_over(wire);
}

bool wire_asks(const struct wire *wire) {
    static const char word[] = "ASKING";
    const struct segment *segment;

    TAILQ_FOREACH (segment, &wire->up.segments, link)
        if (memmem(segment->bytes, segment->len, word, sizeof(word) - 1))
            return true;
    return wire->session && sim_session_asks(wire->session);
}

void wire_heal(struct wire *wire) {
    struct flow *flows[] = {&wire->up, &wire->down};
    struct segment *segment;

    if (wire->up.lost || wire->down.lost) {
        wire_reset(wire, false, true);
        return;
    }
    for (unsigned i = 0; i < 2; i++) {
        flows[i]->held_until = 0;
        flows[i]->last = wire->world->now;
        TAILQ_FOREACH (segment, &flows[i]->segments, link)
            flows[i]->last = segment->at = segment->sent > flows[i]->last ? segment->sent : flows[i]->last;
        flow_plan(wire, flows[i]);
    }
    if (!wire->connected) /* at once, but not before the process asked for it */
        agenda_set(&wire->world->agenda, &wire->connect,
                   wire->process->busy_until > wire->world->now ? wire->process->busy_until : wire->world->now);
}
