/* Faults; see faults.h. */
#include "faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "actor.h"
#include "judge.h"
#include "loop.h"
#include "moves.h"
#include "process.h"
#include "promotion.h"
#include "reach.h"

/* How long something lasts: from hardly noticed to far beyond a ttl. */
static int64_t draw_until(struct world *world) {
    return world->now + draw_magnitude(world, world->plan.latency, 3 * world->plan.unit);
}

static struct node *draw_node(struct world *world) {
    return world->nodes[draw_between(world, 0, world->plan.servers - 1)];
}

static struct process *draw_process(struct world *world) {
    struct process *process, *found = NULL;
    unsigned count = 0;

    TAILQ_FOREACH (process, &world->processes, link)
        if (!process->crashed && draw(world) % ++count == 0)
            found = process;
    return found;
}

/* Often one on which something is under way. */
static struct wire *draw_wire(struct world *world) {
    struct wire *wire, *found = NULL, *busy = NULL;
    unsigned count = 0, busy_count = 0;

    TAILQ_FOREACH (wire, &world->wires, link) {
        if (wire->connection && draw(world) % ++count == 0)
            found = wire;
        if (wire->connection && !TAILQ_EMPTY(&wire->up.segments) && draw(world) % ++busy_count == 0)
            busy = wire;
    }
    return busy && draw_chance(world, 70) ? busy : found;
}

static struct wire *draw_listener(struct world *world) {
    struct wire *wire, *found = NULL;
    unsigned count = 0;

    TAILQ_FOREACH (wire, &world->wires, link)
        if (wire->connection && wire->session && sim_session_listens(wire->session) && draw(world) % ++count == 0)
            found = wire;
    return found;
}

/* --- Of the network ----------------------------------------------------------------------------------------------- */

static bool hold_wire(struct world *world) {
    struct wire *wire = draw_wire(world);

    if (wire)
        wire_disturb(wire, draw_chance(world, 50), FLOW_HOLD,
                     draw_until(world) + (world->scenario->lingers ? world->plan.unit : 0));
    return wire != NULL;
}

static bool lose_requests(struct world *world) {
    struct wire *wire = draw_wire(world);

    if (wire)
        wire_disturb(wire, true, FLOW_LOSE, 0);
    return wire != NULL;
}

static bool lose_replies(struct world *world) {
    struct wire *wire = draw_wire(world);

    if (wire)
        wire_disturb(wire, false, FLOW_LOSE, 0);
    return wire != NULL;
}

static bool reset_before(struct world *world) {
    struct wire *wire = draw_wire(world);

    if (wire)
        wire_reset(wire, false, true);
    return wire != NULL;
}

static bool reset_after(struct world *world) {
    struct wire *wire = draw_wire(world);

    if (wire)
        wire_reset(wire, true, true);
    return wire != NULL;
}

static bool half_open(struct world *world) {
    struct wire *wire = draw_wire(world);

    if (wire)
        wire_reset(wire, draw_chance(world, 50), false);
    return wire != NULL;
}

/* The connection ends at the process, while what it has sent lies unread at the server, to be run later. */
static bool strand(struct world *world) {
    struct wire *wire = draw_wire(world);

    if (!wire || !wire->connected)
        return false;
    wire_strand(wire, draw_chance(world, 50) ? draw_until(world) : world->now + world->plan.unit / 4);
    return true;
}

static bool part(struct world *world) {
    struct process *process = draw_process(world);
    struct node *node = draw_node(world);
    int64_t until = draw_until(world);
    struct wire *wire;

    if (!process)
        return false;
    process->parted_until[node->index] = until;
    TAILQ_FOREACH (wire, &process->wires, local) {
        if (wire->node != node)
            continue;
        wire_disturb(wire, true, FLOW_HOLD, until);
        wire_disturb(wire, false, FLOW_HOLD, until);
    }
    return true;
}

/* --- Of nodes ----------------------------------------------------------------------------------------------------- */

static bool pause_node(struct world *world) {
    struct node *node = draw_node(world);

    node->paused_until = draw_until(world);
    reach_away(node, node->paused_until);
    return true;
}

static bool refuse_connections(struct world *world) {
    node_refuse(draw_node(world), draw_until(world));
    return true;
}

static bool restart(struct world *world) {
    struct node *node = draw_node(world);

    if (draw_chance(world, 50))
        node_refuse(node, draw_until(world));
    sim_server_restart(node_now(node), true, draw_chance(world, 50));
    node->replaced_at = world->now;
    reach_replaced(node, 0);
    return true;
}

/* Most of several nodes restart at once, and are away for a while. */
static bool restart_most(struct world *world) {
    unsigned nodes = world->plan.nodes, first = (unsigned)draw_between(world, 0, nodes - 1);
    int64_t until = draw_until(world);

    for (unsigned i = 0; i <= nodes / 2 && nodes > 1; i++) {
        struct node *node = world->nodes[(first + i) % nodes];
        node_refuse(node, until);
        sim_server_restart(node_now(node), true, true);
        node->replaced_at = world->now;
    }
    return nodes > 1;
}

static bool may_lose(const struct world *world) {
    return world->scenario->loses_data && !world->plan.durable;
}

static bool restart_empty(struct world *world) {
    struct node *node = draw_node(world);

    if (!may_lose(world))
        return false;
    judge_forgets(world->judge, node);
    if (draw_chance(world, 50))
        node_refuse(node, draw_until(world));
    if (world->plan.distrust && draw_chance(world, 50)) {
        node_be_slow(node, draw_between(world, 0, 2 * world->plan.max_ttl),
                     world->now + draw_magnitude(world, world->plan.latency, world->plan.max_ttl / 4));
        faults_count(world, "booted with a slow clock");
    }
    sim_server_restart(node_now(node), false, draw_chance(world, 50));
    node->emptied_at = world->now;
    node->replaced_at = world->now;
    return true;
}

static bool change_replicas(struct world *world) {
    if (world->plan.replicas)
        node_replicate(draw_node(world), (unsigned)draw_between(world, 0, REPLICAS_MAX));
    return world->plan.replicas;
}

/* What the replica has not received comes back, if it had been deleted. */
static bool fail_over_behind(struct world *world) {
    struct node *node = draw_node(world);
    int64_t step = world->scenario->steps ? draw_between(world, -world->plan.unit, world->plan.unit) : 0;

    if (!world->plan.lagging || !node_fail_over(node, (unsigned)draw_between(world, 0, REPLICAS_MAX - 1), step))
        return false;
    judge_resurrects(world->judge, node);
    if (draw_chance(world, 30))
        node_refuse(node, draw_until(world));
    return true;
}

static bool fail_over(struct world *world) {
    struct node *node = draw_node(world);

    if (world->plan.cluster)
        return moves_fail_over(world);
    if (world->plan.lagging)
        return false;
    sim_server_become(node->server, sim_server_copy(node_now(node)), false);
    reach_replaced(node, 0);
    return true;
}

/* Whether each client knows the node by its last login, and so will see that another server has taken its place. */
static bool all_have_met(struct world *world, const struct node *node) {
    evlock_node_info info = {.connection = EVLOCK_CONNECTED};
    struct process *process;

    TAILQ_FOREACH (process, &world->processes, link) {
        if (!process->crashed && process->client)
            (void)evlock_client_node(process->client, node->index, &info, sizeof(info));
        if (info.connection != EVLOCK_CONNECTED || process->left_out) /* which has not met it by its other address */
            return false;
    }
    return !world->plan.errors;
}

/* First a copy is made, and the next time it takes over. Where several nodes count, one that has been running for long
 * cannot be told from the one before by who has never met that: then it is a new process. */
static bool fail_over_stale(struct world *world) {
    struct node *node = draw_node(world);
    bool met, same;

    if (!may_lose(world))
        return false;
    if (!node->copy) {
        node->copy = sim_server_copy(node_now(node));
        return false;
    }
    judge_forgets(world->judge, node);
    node->flushed_at = world->now;
    judge_resurrects(world->judge, node);
    met = all_have_met(world, node);
    same = met && draw_chance(world, 30);
    if (same)
        faults_count(world, "replica id changed alone");
    sim_server_become(node_now(node), node->copy, same);
    node->copy = NULL;
    node->replaced_at = world->now;
    if (met)
        world->newcomers_at = world->now + world->plan.max_ttl + world->plan.max_ttl / 50 + SECOND;
    else
        sim_server_restart(node->server, true, true);
    return true;
}

/* All that a node has goes, or one key of it: nothing restarts, and nobody is told. */
static bool flush_data(struct world *world) {
    struct node *node = draw_node(world);

    if (!may_lose(world) || world->scenario->exclusive)
        return false;
    judge_forgets(world->judge, node);
    node->flushed_at = world->now;
    sim_server_forget(node_now(node), draw_chance(world, 50) ? NULL : judge_key(0));
    return true;
}

/* A client of another kind takes a lock on all of several nodes, for longer than any of evlock's might, and hands it
 * over. */
static bool act_foreign_quorum(struct world *world, unsigned key, const char *token) {
    const char *lock = judge_key(key);
    int64_t ttl = draw_magnitude(world, world->plan.unit / 8, 3 * world->plan.max_ttl) / MS * MS;
    size_t len;

    for (unsigned i = 0; i < world->plan.nodes; i++)
        if (sim_server_get(node_now(world->nodes[i]), lock, strlen(lock), &len))
            return false;
    for (unsigned i = 0; i < world->plan.nodes; i++)
        sim_server_put(world->nodes[i]->server, lock, token, ttl / MS);
    judge_foreign(world->judge, key, token, strlen(token), ttl);
    judge_foreign_ends(world->judge, key);
    if (actor_may_hand_out())
        actor_hands_out(key, token);
    return true;
}

/* A client of another kind takes a lock by SET NX PX, or gives back what it has by compare-and-delete, or hands it
 * over. */
static bool act_foreign(struct world *world) {
    static const char name[] = "foreign-token";
    unsigned key = (unsigned)draw_between(world, 0, world->plan.keys - 1);
    const char *lock = judge_key(key), *there;
    struct node *node = draw_node(world);
    int64_t ttl = draw_magnitude(world, world->plan.unit / 8, world->plan.unit) / MS * MS;
    char token[40];
    size_t len;

    if (world->plan.lagging || world->plan.closed || world->plan.cluster)
        return false;
    snprintf(token, sizeof(token), "%s-%u", name, ++world->next_foreign);
    if (world->plan.nodes > 1)
        return act_foreign_quorum(world, key, token);
    there = sim_server_get(node_now(node), lock, strlen(lock), &len);
    if (there && len > sizeof(name) && memcmp(there, name, sizeof(name) - 1) == 0 &&
        judge_foreign_holds(world->judge, key)) {
        judge_foreign_ends(world->judge, key);
        sim_server_forget(node->server, lock);
    } else if (!there) {
        sim_server_put(node->server, lock, token, ttl / MS);
        judge_foreign(world->judge, key, token, strlen(token), ttl);
    }
    if (!there && actor_may_hand_out() && draw_chance(world, 30)) {
        judge_foreign_ends(world->judge, key);
        actor_hands_out(key, token);
    }
    return true;
}

static bool flush_scripts(struct world *world) {
    sim_server_flush_scripts(node_now(draw_node(world)));
    return true;
}

static bool kill_clients(struct world *world) {
    sim_server_kill_sessions(node_now(draw_node(world)));
    return true;
}

/* Every error of the table in docs/protocol.md. */
static bool refuse_commands(struct world *world) {
    static const char *const errors[] = {
        "NOSCRIPT No matching script. Please use EVAL.",
        "LOADING Redis is loading the dataset in memory",
        "BUSY Redis is busy running a script.",
        "MASTERDOWN Link with MASTER is down",
        "TRYAGAIN Multiple keys request during rehashing of slot",
        "CLUSTERDOWN The cluster is down",
        "OOM command not allowed when used memory > 'maxmemory'.",
        "MISCONF Redis is configured to save RDB snapshots",
        "NOREPLICAS Not enough good replicas to write.",
        "READONLY You can't write against a read only replica.",
        "ERR max number of clients reached",
        "MOVED 866 127.0.0.1:7001",
        "ASK 866 127.0.0.1:7001",
        "CROSSSLOT Keys in request don't hash to the same slot",
        "NOAUTH Authentication required.",
        "WRONGPASS invalid username-password pair or user is disabled.",
        "NOPERM this user has no permissions to run this command",
        "ERR The user executing the script can't run this command or subcommand",
        "WRONGTYPE Operation against a key holding the wrong kind of value",
        "ERR unknown command",
        "ERR DB index is out of range",
        "ERR something else",
        "STRANGE something else",
    };
    static const char *const verbs[] = {"",        "",     "set",  "evalsha",     "evalsha",   "get",   "del",
                                        "pexpire", "pttl", "info", "client|kill", "client|id", "script"};
    struct node *node = draw_node(world);
    static const char *const queue_verbs[] = {"zadd",          "zpopmin", "zrem", "zrank",
                                              "pubsub|numsub", "publish", "time", "subscribe"};
    const char *verb = verbs[draw(world) % (sizeof(verbs) / sizeof(verbs[0]))];
    const char *error = errors[draw(world) % (sizeof(errors) / sizeof(errors[0]))];

    if (!world->plan.errors)
        return false;
    if (world->scenario->queue && draw_chance(world, 50))
        verb = queue_verbs[draw(world) % (sizeof(queue_verbs) / sizeof(queue_verbs[0]))];
    if (world->plan.twins && (!verb[0] || strcmp(verb, "info") == 0))
        verb = "set"; /* who may not ask a server's name does not find out that it is given twice */
    node->refused = true;
    node->lied |= strncmp(error, "WRONGTYPE", 9) == 0;
    node->spares |= strncmp(verb, "client", 6) == 0 || strcmp(verb, "info") == 0;
    sim_server_refuse(node_now(node), verb, error, (unsigned)draw_magnitude(world, 1, 20));
    return true;
}

/* --- Of processes and clocks -------------------------------------------------------------------------------------- */

static bool change_rate(struct world *world) {
    struct process *process = draw_process(world);
    struct node *node = draw_node(world);
    int64_t ppm = draw_between(world, -world->plan.drift_ppm, world->plan.drift_ppm);

    if (draw_chance(world, 30))
        ppm = ppm < 0 ? -world->plan.drift_ppm : world->plan.drift_ppm;
    if (process && process->busy_until <= world->now && draw_chance(world, 50)) {
        clock_change(&process->clock, world->now, ppm);
        loop_wake(process);
    } else {
        clock_change(&node->clock, world->now, ppm);
    }
    return true;
}

static bool stall(struct world *world) {
    struct process *process = draw_process(world);

    if (process)
        process_stop(process, world->now + draw_magnitude(world, MS, world->plan.unit / 2));
    return process != NULL;
}

static bool stop(struct world *world) {
    struct process *process = draw_process(world);

    if (process)
        process_stop(process, world->now + draw_between(world, world->plan.unit, 4 * world->plan.unit));
    return process != NULL;
}

static bool crash(struct world *world) {
    struct process *process = draw_process(world);

    if (!process)
        return false;
    process_crash(process);
    process_new(world);
    return true;
}

/* --- When --------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    unsigned weight;
    bool (*strike)(struct world *world); /* NULL: counted elsewhere; false: it did not come about */
} kinds[] = {
    {"connection held", 10, hold_wire},
    {"requests lost", 6, lose_requests},
    {"replies lost", 6, lose_replies},
    {"reset before it ran", 4, reset_before},
    {"reset after it ran", 4, reset_after},
    {"half open", 4, half_open},
    {"stranded at the server", 6, strand},
    {"parted from a node", 5, part},
    {"node paused", 6, pause_node},
    {"connections refused", 4, refuse_connections},
    {"restart", 4, restart},
    {"restart of most nodes", 2, restart_most},
    {"restart without data", 5, restart_empty},
    {"failover", 2, fail_over},
    {"failover to old copy", 6, fail_over_stale},
    {"failover to a replica", 0, NULL},
    {"promotion beside the server of before", 0, NULL},
    {"replicas come and go", 5, change_replicas},
    {"flushed or evicted", 3, flush_data},
    {"foreign client", 5, act_foreign},
    {"scripts flushed", 4, flush_scripts},
    {"clients killed", 4, kill_clients},
    {"commands refused", 8, refuse_commands},
    {"clock changes rate", 6, change_rate},
    {"process stalled", 8, stall},
    {"process stopped", 5, stop},
    {"process crashed", 3, crash},
    {"bytes split", 0, NULL},
    {"bytes held", 0, NULL},
    {"bytes lost", 0, NULL},
    {"reset by bytes", 0, NULL},
    {"listener held", 0, NULL},
    {"listener deaf", 0, NULL},
    {"listener cut", 0, NULL},
    {"clock steps", 0, NULL},
    {"slot moves", 0, NULL},
    {"move cancelled", 0, NULL},
    {"replica id changed alone", 0, NULL},
    {"booted with a slow clock", 0, NULL},
    {"slow connect", 0, NULL},
    {"hanging connect", 0, NULL},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };
_Static_assert((int)KINDS <= (int)FAULTS_MAX, "a tally has room for each kind");

const char *faults_name(size_t index) {
    return index < KINDS ? kinds[index].name : NULL;
}

void faults_count(struct world *world, const char *name) {
    for (size_t i = 0; i < KINDS; i++)
        if (strcmp(kinds[i].name, name) == 0)
            world->tally->faults[i]++;
}

static void plan_next(struct world *world) {
    agenda_set(&world->agenda, &world->fault,
               world->plan.fault_gap == NEVER ? NEVER : world->now + draw_between(world, 1, 2 * world->plan.fault_gap));
}

/* What a queue adds: the connection that listens is held, mostly for longer than a lease, cut, or hears nothing; and,
 * where that is drawn, the server's clock jumps. Whether one of these strikes. */
static bool strike_queue(struct world *world) {
    struct wire *wire = draw_listener(world);

    if (world->scenario->steps && draw_chance(world, 20)) {
        int64_t by = draw_magnitude(world, MS, world->plan.unit);
        bool back = !draw_chance(world, 50);
        clock_step(&world->nodes[0]->clock, back ? -by : by);
        if (back)
            world->nodes[0]->set_back_at = world->now;
        faults_count(world, "clock steps");
        return true;
    }
    if (!wire || !draw_chance(world, 30))
        return false;
    switch (draw_between(world, 0, 2)) {
    case 0:
        wire_disturb(wire, false, FLOW_HOLD,
                     world->now + draw_between(world, world->plan.latency, 4 * world->plan.unit));
        faults_count(world, "listener held");
        return true;
    case 1:
        wire_disturb(wire, false, FLOW_LOSE, 0);
        faults_count(world, "listener deaf");
        return true;
    default:
        wire_reset(wire, false, draw_chance(world, 70));
        faults_count(world, "listener cut");
        return true;
    }
}

static void strike(void *arg) {
    struct world *world = arg;
    unsigned total = 0, drawn;
    size_t i = 0;

    plan_next(world);
    if (world->scenario->queue && strike_queue(world))
        return;
    if (world->plan.lagging && draw_chance(world, 25) && fail_over_behind(world)) {
        faults_count(world, "failover to a replica");
        return;
    }
    if (world->plan.cluster && draw_chance(world, 8) && moves_fail_over(world)) {
        faults_count(world, "failover");
        return;
    }
    if (world->scenario->promotes && draw_chance(world, 30) && promotion_strike(world)) {
        faults_count(world, "promotion beside the server of before");
        return;
    }
    for (size_t k = 0; k < KINDS; k++)
        total += kinds[k].weight;
    drawn = (unsigned)(draw(world) % total);
    while (drawn >= kinds[i].weight)
        drawn -= kinds[i++].weight;
    note(world, NULL, "fault: %s", kinds[i].name);
    world->tally->faults[i] += kinds[i].strike(world);
}

void faults_begin(struct world *world) {
    world->fault = (struct event){.happen = strike, .arg = world};
    plan_next(world);
}

void faults_end(struct world *world) {
    struct process *process;
    struct wire *wire, *next;

    agenda_set(&world->agenda, &world->fault, NEVER);
    promotion_end(world);
    moves_finish(world);
    for (unsigned i = 0; i < world->plan.servers; i++) {
        struct node *node = world->nodes[i];
        node->paused_until = 0;
        if (node->refuses)
            agenda_set(&world->agenda, &node->open, world->now);
        sim_server_allow(node_now(node));
        if (world->plan.replicas)
            node_replicate(node, REPLICAS_MAX);
    }
    reach_heal(world);
    for (wire = TAILQ_FIRST(&world->wires); wire; wire = next) {
        next = TAILQ_NEXT(wire, link);
        wire_heal(wire);
    }
    TAILQ_FOREACH (process, &world->processes, link) {
        memset(process->parted_until, 0, sizeof(process->parted_until));
        if (!process->crashed)
            process_continue(process);
    }
}

/* --- Of single bytes ---------------------------------------------------------------------------------------------- */

static bool bad(struct world *world, unsigned of) {
    return !world->calm && draw(world) % of < world->plan.bad_bytes;
}

void faults_on_push(struct wire *wire) {
    struct world *world = wire->world;

    if (world->calm || !world->plan.late_grants || !draw_chance(world, 30))
        return;
    faults_count(world, "listener held");
    wire_disturb(wire, false, FLOW_HOLD, world->now + draw_between(world, world->plan.latency, 2 * world->plan.unit));
}

void faults_on_bytes(struct wire *wire, bool up) {
    struct world *world = wire->world;
    unsigned kind;

    if (!bad(world, 1000))
        return;
    kind = (unsigned)(draw(world) % 100);
    if (kind < 60) {
        faults_count(world, "bytes held");
        wire_disturb(wire, up, FLOW_HOLD, draw_until(world));
    } else if (kind < 80 || !up) { /* a server that is working must not be told of an end */
        faults_count(world, "bytes lost");
        wire_disturb(wire, up, FLOW_LOSE, 0);
    } else {
        faults_count(world, "reset by bytes");
        wire_reset(wire, draw_chance(world, 50), draw_chance(world, 50));
    }
}

void faults_on_gone(struct wire *wire) {
    struct world *world = wire->world;

    if (world->scenario->lingers && !world->calm && draw_chance(world, 70))
        wire_due(wire, world->now + draw_between(world, 0, world->plan.unit / 5));
}

int64_t faults_on_connect(struct wire *wire, int64_t at) {
    struct world *world = wire->world;
    int64_t late = at, parted = wire->process->parted_until[wire->node->index];

    if (late < parted)
        late = parted;
    if (bad(world, 300) && draw_chance(world, 70)) {
        faults_count(world, "slow connect");
        late += draw_magnitude(world, world->plan.latency, world->plan.unit);
    } else if (bad(world, 1000)) {
        faults_count(world, "hanging connect");
        late = NEVER;
    }
    if (late > at)
        reach_spoil(wire, late);
    return late;
}
