/* Moves; see moves.h. */
#include "moves.h"

#include <stdlib.h>
#include <string.h>

#include "faults.h"
#include "judge.h"
#include "node.h"
#include "reach.h"
#include "slots.h"
#include "wire.h"

enum { MASTERS = 2, MOVING_MOST = 8 };

/* What has been done last. SETTLED: the new master knows that the slot does not come, and the old one not yet. */
enum step { RESTS, IMPORTING, MIGRATING, GIVEN, SETTLED };

struct move {
    struct moves *moves;
    struct event next;
    unsigned slot;
    unsigned from, to; /* servers */
    enum step step;
    int64_t rests_until; /* it was given up; who was told to ask elsewhere may yet do so */
};

struct moves {
    struct world *world;
    struct event hears;
    unsigned masters[MASTERS]; /* servers; the others are their replicas */
    struct move each[MOVING_MOST];
    unsigned count;
};

static sim_server *server_of(const struct moves *moves, unsigned index) {
    return node_now(moves->world->nodes[index]);
}

static unsigned owner_of(const struct moves *moves, unsigned slot) {
    unsigned one = moves->masters[0], other = moves->masters[1];
    sim_server *a = server_of(moves, one), *b = server_of(moves, other);

    if (sim_slots_owner(a, slot) != one)
        return other;
    return sim_slots_owner(b, slot) == other && sim_slots_epoch(b) > sim_slots_epoch(a) ? other : one;
}

/* What is late is only the newest: who takes a greater epoch for one slot would else hide what it gave away before. */
static void all_hear(struct moves *moves) {
    for (unsigned one = 0; one < 2 * MASTERS; one++)
        for (unsigned other = 0; other < 2 * MASTERS; other++)
            if (one != other)
                sim_slots_hear(server_of(moves, one), server_of(moves, other));
}

/* --- One after the other ------------------------------------------------------------------------------------------ */

static void wait_for_next(struct move *move) {
    struct world *world = move->moves->world;
    int64_t longest = move->step == RESTS ? 2 * world->plan.unit : world->plan.unit / 4;

    agenda_set(&world->agenda, &move->next, world->now + draw_magnitude(world, world->plan.latency / 4, longest));
}

/* What is carried counts its ttl anew when it has arrived, which takes some time. */
static bool carry_one(struct move *move, unsigned from, unsigned to) {
    struct world *world = move->moves->world;
    sim_server *server = server_of(move->moves, from);
    const char *key;
    char name[64];
    unsigned count = 0;
    size_t len;

    while (sim_slots_key(server, move->slot, count, &len))
        count++;
    if (count == 0)
        return false;
    key = sim_slots_key(server, move->slot, (unsigned)draw_between(world, 0, count - 1), &len);
    memcpy(name, key, len + 1);
    note(world, NULL, "%s goes from n%u to n%u", name, from, to);
    sim_slots_carry(server, server_of(move->moves, to), name, len, MS + draw_between(world, 0, world->plan.latency));
    judge_carries(world->judge, world->nodes[from], world->nodes[to], name, len);
    return true;
}

/* What somebody was told to ask there is taken by any move of the slot to there, also by a later one, while the key is
 * where that comes from. */
static void cut_late(struct move *move) {
    struct world *world = move->moves->world;
    struct wire *wire, *next;

    for (wire = TAILQ_FIRST(&world->wires); wire && !world->scenario->gaps; wire = next) {
        next = TAILQ_NEXT(wire, link);
        if (wire->node == world->nodes[move->to] && wire_asks(wire))
            wire_reset(wire, false, true);
    }
}

/* Somebody is yet to read that an earlier move has him ask there, and would ask during this one. */
static bool would_be_asked_late(const struct move *move) {
    const struct world *world = move->moves->world;
    const struct wire *wire;

    TAILQ_FOREACH (wire, &world->wires, link)
        if (wire->node != world->nodes[move->to] && wire_sends_on(wire))
            return !world->scenario->gaps;
    return false;
}

static void begin(struct move *move) {
    struct moves *moves = move->moves;

    if (move->rests_until > moves->world->now)
        return;
    move->from = owner_of(moves, move->slot);
    move->to = moves->masters[move->from == moves->masters[0]];
    if (sim_slots_owner(server_of(moves, move->to), move->slot) == move->to || would_be_asked_late(move))
        return; /* who had it has not heard yet */
    note(moves->world, NULL, "slot %u begins to move from n%u to n%u", move->slot, move->from, move->to);
    faults_count(moves->world, "slot moves");
    cut_late(move);
    sim_slots_import(server_of(moves, move->to), move->slot, move->from);
    move->step = IMPORTING;
}

/* Only the old master is told, and what has been carried or made elsewhere is out of reach. */
static void give_up(struct move *move) {
    struct moves *moves = move->moves;

    note(moves->world, NULL, "the move of slot %u is given up at n%u alone", move->slot, move->from);
    judge_resurrects(moves->world->judge, moves->world->nodes[move->from]);
    judge_resurrects(moves->world->judge, moves->world->nodes[move->to]);
    sim_slots_settle(server_of(moves, move->from), move->slot);
    move->step = RESTS;
}

static void turn_back(struct move *move) {
    struct moves *moves = move->moves;

    size_t len;

    if (moves->world->scenario->gaps)
        give_up(move);
    else if (sim_slots_key(server_of(moves, move->to), move->slot, 0, &len))
        return; /* what is on its way there may make anew what has been carried back */
    sim_slots_settle(server_of(moves, move->to), move->slot);
    move->rests_until = moves->world->now + moves->world->plan.unit;
    move->step = move->step == RESTS ? RESTS : SETTLED;
    faults_count(moves->world, "move cancelled");
}

static void give(struct move *move) {
    note(move->moves->world, NULL, "slot %u is n%u's", move->slot, move->to);
    all_hear(move->moves);
    sim_slots_give(server_of(move->moves, move->to), move->slot, move->to);
    move->step = GIVEN;
}

/* The old master may be left to hear it from the new one. */
static void tell_old(struct move *move) {
    if (draw_chance(move->moves->world, 60))
        sim_slots_give(server_of(move->moves, move->from), move->slot, move->to);
    move->step = RESTS;
}

static void go_on(struct move *move) {
    struct moves *moves = move->moves;
    bool turns = (move->step == IMPORTING || move->step == MIGRATING) && !moves->world->calm;

    if (turns && draw_chance(moves->world, 15)) {
        turn_back(move);
        return;
    }
    switch (move->step) {
    case RESTS:
        begin(move);
        break;
    case IMPORTING:
        sim_slots_migrate(server_of(moves, move->from), move->slot, move->to);
        move->step = MIGRATING;
        break;
    case MIGRATING:
        if (!carry_one(move, move->from, move->to))
            give(move);
        break;
    case GIVEN:
        tell_old(move);
        break;
    case SETTLED:
        sim_slots_settle(server_of(moves, move->from), move->slot);
        move->step = RESTS;
        break;
    }
}

static bool stands_still(const struct node *node) {
    return node->refuses || node->paused_until > node->world->now;
}

static void on_next(void *arg) {
    struct move *move = arg;
    struct moves *moves = move->moves;

    if (!stands_still(moves->world->nodes[moves->masters[0]]) && !stands_still(moves->world->nodes[moves->masters[1]]))
        go_on(move);
    wait_for_next(move);
}

/* --- Who hears of it ---------------------------------------------------------------------------------------------- */

static void wait_for_hearing(struct moves *moves) {
    struct world *world = moves->world;

    agenda_set(&world->agenda, &moves->hears,
               world->now + draw_magnitude(world, world->plan.latency, world->plan.unit / 4));
}

static void on_hears(void *arg) {
    struct moves *moves = arg;
    unsigned one = (unsigned)draw_between(moves->world, 0, 2 * MASTERS - 1);
    unsigned other = (one + (unsigned)draw_between(moves->world, 1, 2 * MASTERS - 1)) % (2 * MASTERS);

    if (!moves->world->nodes[one]->refuses && !moves->world->nodes[other]->refuses)
        sim_slots_hear(server_of(moves, one), server_of(moves, other));
    wait_for_hearing(moves);
}

/* --- Failovers ---------------------------------------------------------------------------------------------------- */

/* The replica does not know that the slot moves. If nothing is lost by that, the move is given up before. */
static bool may_fail(struct move *move, unsigned old) {
    const struct moves *moves = move->moves;
    size_t len;

    if (move->from != old || move->step == RESTS || move->step == GIVEN || moves->world->scenario->gaps)
        return true;
    return !sim_slots_key(server_of(moves, move->to), move->slot, 0, &len);
}

static void leave_old(struct move *move, unsigned old) {
    struct moves *moves = move->moves;
    struct world *world = moves->world;

    if (move->step == RESTS || move->step == GIVEN || move->from != old)
        return;
    if (world->scenario->gaps && draw_chance(world, 50))
        return; /* where it comes to, nobody tells that it does no more */
    sim_slots_settle(server_of(moves, move->to), move->slot);
    move->rests_until = world->now + world->plan.unit;
    move->step = RESTS;
}

/* It comes to who has taken the place, from here on; or it came from there, and does no more. */
static void follow_new(struct move *move, unsigned old, unsigned new) {
    struct moves *moves = move->moves;
    bool under_way = move->step != RESTS && move->step != GIVEN;

    if (move->from == old && under_way) {
        judge_resurrects(moves->world->judge, moves->world->nodes[new]);
        judge_resurrects(moves->world->judge, moves->world->nodes[move->to]);
        move->step = RESTS;
    } else if (move->to == old && under_way && move->step != SETTLED) {
        sim_slots_import(server_of(moves, new), move->slot, move->from);
        if (move->step != IMPORTING)
            sim_slots_migrate(server_of(moves, move->from), move->slot, new);
    }
    if (move->from == old)
        move->from = new;
    if (move->to == old)
        move->to = new;
}

static void replace(struct moves *moves, unsigned old, unsigned new) {
    struct world *world = moves->world;
    struct node *before = world->nodes[old], *after = world->nodes[new];

    /* What was sent to it before it was a replica would run once more when it is none: then a token may stay for its
     * ttl. */
    sim_server_kill_sessions(server_of(moves, new));
    after->clock = before->clock;
    clock_change(&after->clock, world->now, draw_between(world, -world->plan.drift_ppm, world->plan.drift_ppm));
    sim_slots_take_over(server_of(moves, new), server_of(moves, old));
    after->replaced_at = before->replaced_at = world->now;
    judge_succeeds(world->judge, before, after);
    if (draw_chance(world, 60)) {
        sim_server_restart(server_of(moves, old), true, true);
        node_refuse(before, world->now + draw_magnitude(world, world->plan.latency, world->plan.unit / 4));
    }
    reach_away(before, world->now + 10 * SECOND); /* clients hear of it from others, once in a while */
    reach_away(after, world->now + 10 * SECOND);
}

bool moves_fail_over(struct world *world) {
    struct moves *moves = world->moves;
    unsigned which = (unsigned)draw_between(world, 0, MASTERS - 1);
    unsigned old = moves->masters[which], new = (old + MASTERS) % (2 * MASTERS);

    if (world->nodes[new]->refuses)
        return false;
    for (unsigned i = 0; i < moves->count; i++)
        if (!may_fail(&moves->each[i], old))
            return false;
    note(world, NULL, "n%u takes the place of n%u", new, old);
    for (unsigned i = 0; i < moves->count; i++)
        leave_old(&moves->each[i], old);
    all_hear(moves);
    replace(moves, old, new);
    moves->masters[which] = new;
    for (unsigned i = 0; i < moves->count; i++)
        follow_new(&moves->each[i], old, new);
    return true;
}

/* --- Life --------------------------------------------------------------------------------------------------------- */

void moves_begin(struct world *world) {
    struct moves *moves;

    if (!world->plan.cluster)
        return;
    moves = world->moves = calloc(1, sizeof(*moves));
    moves->world = world;
    moves->hears = (struct event){.happen = on_hears, .arg = moves};
    moves->count = world->plan.keys;
    for (unsigned i = 0; i < MASTERS; i++)
        moves->masters[i] = i;
    for (unsigned i = 0; i < 2 * MASTERS; i++)
        sim_slots_join(server_of(moves, i), i, 2 * MASTERS);
    for (unsigned i = 0; i < moves->count; i++) {
        struct move *move = &moves->each[i];
        *move = (struct move){.moves = moves, .next = {.happen = on_next, .arg = move}};
        move->slot = sim_slots_of(judge_key(i), strlen(judge_key(i)));
        wait_for_next(move);
    }
    wait_for_hearing(moves);
}

void moves_finish(struct world *world) {
    struct moves *moves = world->moves;

    for (unsigned i = 0; moves && i < moves->count; i++) {
        while (moves->each[i].step != RESTS)
            go_on(&moves->each[i]);
        agenda_set(&world->agenda, &moves->each[i].next, NEVER);
    }
    if (!moves)
        return;
    agenda_set(&world->agenda, &moves->hears, NEVER);
    all_hear(moves);
}

void moves_end(struct world *world) {
    struct moves *moves = world->moves;

    for (unsigned i = 0; moves && i < moves->count; i++)
        agenda_set(&world->agenda, &moves->each[i].next, NEVER);
    if (moves)
        agenda_set(&world->agenda, &moves->hears, NEVER);
    free(moves);
    world->moves = NULL;
}

/* --- Looks -------------------------------------------------------------------------------------------------------- */

struct node *moves_home(const struct world *world, const char *key) {
    return world->nodes[world->moves ? owner_of(world->moves, sim_slots_of(key, strlen(key))) : 0];
}

struct node *moves_find(const struct world *world, const char *key) {
    for (unsigned i = 0; world->moves && i < world->plan.servers; i++)
        if (sim_server_expiry(node_now(world->nodes[i]), key, strlen(key)) != -2)
            return world->nodes[i];
    return moves_home(world, key);
}
