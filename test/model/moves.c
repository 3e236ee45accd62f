/* What may happen next in a small world, and its words; see world.h. It changes nothing. */
#include "world.h"

#include <stdio.h>

struct list {
    struct move *moves;
    unsigned count;
};

static void add(struct list *list, enum happening what, unsigned client, unsigned node, unsigned stray) {
    list->moves[list->count++] = (struct move){(uint8_t)what, (uint8_t)client, (uint8_t)node, (uint8_t)stray, 0};
}

static bool allows(const struct world *w, unsigned kind) {
    return w->faults && w->scope->kinds & kind;
}

/* A client's next attempt follows when the last is told; with a token of its own, when nothing of it is left. */
static bool may_begin(const struct world *w, const struct client *client) {
    const struct use *last;

    if (!w->attempts || client->begun == ATTEMPTS)
        return false;
    last = client->begun ? &client->uses[client->begun - 1] : NULL;
    return !last || (w->scope->own ? last->over : last->done);
}

/* Somebody waits beside. */
static void add_relays(const struct world *w, unsigned c, struct list *list) {
    const struct use *last = &w->clients[c].uses[w->clients[c].begun - 1];
    const struct lease *lease = lease_of(last);
    bool asks = lease->state == LEASE_ACQUIRING && !lease->adopted && !lease->own;

    if (w->relays && asks)
        add(list, RELAY_ATTEMPT, c, 0, 0);
    if (w->relays && evl_lease_passable(lease, client_clock(w, c)))
        add(list, RELAY, c, 0, 0);
    if (last->untold)
        add(list, TELL, c, 0, 0);
    if (lease->state == LEASE_HELD && !last->untold && !last->tied)
        add(list, SHOW, c, 0, 0);
}

static void add_calls(const struct world *w, unsigned c, struct list *list) {
    const struct client *client = &w->clients[c];
    const struct use *last = client->begun ? &client->uses[client->begun - 1] : NULL;
    const struct lease *lease = last && !last->done ? lease_of(last) : NULL;
    bool held = lease && lease->state == LEASE_HELD;

    if (may_begin(w, client)) {
        add(list, BEGIN, c, 0, 0);
        if (client->ears.up)
            add(list, JOIN, c, 0, 0);
        if (w->handed_over)
            add(list, ADOPT, c, 0, 0);
    }
    if (!lease)
        return;
    add(list, CANCEL, c, 0, 0);
    if (w->scope->relays)
        add_relays(w, c, list);
    if (last->untold)
        return;
    if (lease->state == LEASE_ACQUIRING && lease->queued && !lease->slots[0].want)
        add(list, LOOK, c, 0, 0);
    if (held || lease->state == LEASE_LOST)
        add(list, RELEASE, c, 0, 0);
    if (held && w->scope->handover && !w->handed_over && evl_lease_exportable(lease, client_clock(w, c)))
        add(list, EXPORT, c, 0, 0);
    if (!held || last->extending || !w->extends || !lease->terms->ttl)
        return;
    add(list, REPLACE_LONGER, c, 0, 0);
    add(list, REPLACE_SHORTER, c, 0, 0);
    add(list, ADD, c, 0, 0);
}

/* Of each connection that was lost, the oldest command runs first. */
static bool is_oldest(const struct channel *channel, unsigned i) {
    for (unsigned k = 0; k < i; k++)
        if (channel->strays[k].connection == channel->strays[i].connection)
            return false;
    return true;
}

static bool has_to_send(const struct client *client, unsigned n) {
    for (unsigned a = 0; a < client->begun; a++)
        if (!client->uses[a].over && lease_of(&client->uses[a])->slots[n].want)
            return true;
    return false;
}

static void add_traffic(const struct world *w, unsigned c, unsigned n, struct list *list) {
    const struct channel *channel = &w->clients[c].channels[n];
    bool waits = channel->count && !channel->queue[channel->count - 1].ran;

    if (w->scope->lazy && channel->up && channel->count < QUEUE && has_to_send(&w->clients[c], n))
        add(list, SEND, c, n, 0);
    if (waits) {
        add(list, SERVE, c, n, 0);
        if (allows(w, REFUSALS)) {
            add(list, SAY_AGAIN, c, n, 0);
            add(list, REFUSE, c, n, 0);
            if (!w->scope->own) /* what may not be removed stays, and is in the way of the next attempt */
                add(list, FORBID, c, n, 0);
        }
    }
    if (channel->count && channel->queue[0].ran)
        add(list, DELIVER, c, n, 0);
    if (channel->up && allows(w, CUTS))
        add(list, CUT, c, n, 0);
    for (unsigned i = 0; i < channel->lost; i++)
        if (is_oldest(channel, i))
            add(list, RUN_LATE, c, n, i);
    if (channel->up)
        return;
    add(list, BACK_KILLED, c, n, 0);
    if (w->scope->unkilled && !channel->restarted)
        add(list, BACK, c, n, 0);
}

static void add_grants(const struct world *w, unsigned c, struct list *list) {
    const struct ears *ears = &w->clients[c].ears;

    if (ears->count) {
        add(list, HEAR, c, 0, 0);
        add(list, HEAR_EARLY, c, 0, 0);
    }
    if (ears->up && allows(w, DEAFNESS))
        add(list, DEAFEN, c, 0, 0);
    if (!ears->up && w->nodes[0].server.listens & 1U << c)
        add(list, NOTICE, c, 0, 0);
    if (!ears->up)
        add(list, LISTEN, c, 0, 0);
}

static void add_failures(const struct world *w, struct list *list) {
    for (unsigned n = 0; n < w->scope->nodes; n++) {
        if (allows(w, RESTARTS))
            add(list, RESTART, 0, n, 0);
        if (allows(w, WIPES) && w->scope->nodes > 1)
            add(list, WIPE, 0, n, 0);
        if (allows(w, LAPSES) && w->scope->nodes > 1 && server_clock(w, n) < w->nodes[n].server.expires)
            add(list, FORGET, 0, n, 0);
        if (allows(w, LOSSES) && w->nodes[n].server.waiting)
            add(list, LOSE_QUEUE, 0, n, 0);
        if (allows(w, FORGETFUL_COUNTERS) && w->scope->nodes == 1)
            add(list, LOSE_COUNTER, 0, n, 0);
        if (allows(w, BREAKS) && server_clock(w, n) < w->nodes[n].server.expires)
            add(list, BREAK, 0, n, 0);
        if (allows(w, BREAKS) && server_clock(w, n) < w->nodes[n].server.expires &&
            w->nodes[n].server.expires != LEASE_NEVER)
            add(list, STRETCH, 0, n, 0);
    }
}

unsigned world_moves(const struct world *w, struct move moves[MOVES]) {
    struct list list = {moves, 0};
    bool stalled = false;

    for (unsigned c = 0; c < CLIENTS; c++) {
        const struct client *client = &w->clients[c];
        stalled |= client->stalled;
        if (client->stalled)
            add(&list, WAKE, c, 0, 0);
        else
            add_calls(w, c, &list);
        for (unsigned n = 0; n < w->scope->nodes; n++)
            add_traffic(w, c, n, &list);
        if (w->scope->queues)
            add_grants(w, c, &list);
        if (allows(w, STALLS) && client->begun)
            add(&list, STALL, c, 0, 0);
    }
    add_failures(w, &list);
    if (w->passes && !stalled) {
        add(&list, PASS, 0, 0, 0);
        if (w->scope->nodes > 1)
            add(&list, PASS_SHORT, 0, 0, 0);
    }
    return list.count;
}

/* --- Words -------------------------------------------------------------------------------------------------------- */

static const char *const commands[] = {
    [LEASE_NOTHING] = "nothing", [LEASE_ACQUIRE] = "acquire", [LEASE_ADOPT] = "adopt",     [LEASE_RAISE] = "raise",
    [LEASE_RENEW] = "renew",     [LEASE_REFRESH] = "refresh", [LEASE_RESTORE] = "restore", [LEASE_REARM] = "rearm",
    [LEASE_MEND] = "mend",       [LEASE_ADD] = "add",         [LEASE_REPLACE] = "replace", [LEASE_RELEASE] = "release",
};
static const char *const verdicts[] = {"yes", "no", "again", "refused", "forbidden", "unknown", "queued"};
static const char *const states[] = {"acquiring", "held", "lost", "releasing", "undoing", "ended"};

static const char *const words[] = {
    [BEGIN] = "an attempt begins",
    [JOIN] = "an attempt begins that waits in the queue",
    [LOOK] = "the client looks how it stands",
    [ADOPT] = "the client adopts",
    [CANCEL] = "the client cancels",
    [RELEASE] = "a release is asked for",
    [EXPORT] = "the client exports",
    [SHOW] = "its user is told the token",
    [RELAY] = "the lease is passed on",
    [TELL] = "who has it is told",
    [RELAY_ATTEMPT] = "another goes on with the attempt",
    [REPLACE_LONGER] = "the ttl is to be replaced by a longer one",
    [REPLACE_SHORTER] = "the ttl is to be replaced by a shorter one",
    [ADD] = "the ttl is to be added to",
    [SEND] = "commands go out",
    [SERVE] = "a command runs",
    [SAY_AGAIN] = "a command is to be sent again",
    [REFUSE] = "a command is refused",
    [FORBID] = "a command is forbidden",
    [DELIVER] = "an answer is heard",
    [CUT] = "the connection is lost",
    [BACK_KILLED] = "the connection is back, and the old one ended",
    [BACK] = "the connection is back",
    [RUN_LATE] = "a lost command runs late",
    [HEAR] = "a grant is heard of",
    [HEAR_EARLY] = "a grant is heard of, and counted from earlier",
    [DEAFEN] = "the client does not listen any more",
    [NOTICE] = "it is noticed that the client does not listen",
    [LISTEN] = "the client listens",
    [RESTART] = "the node starts again with its data",
    [WIPE] = "the node starts again without its data",
    [FORGET] = "the node loses its data",
    [LOSE_QUEUE] = "the queue is lost",
    [LOSE_COUNTER] = "the counter is lost",
    [BREAK] = "somebody removes the key",
    [STRETCH] = "somebody makes the key live longer",
    [PASS_SHORT] = "(all) time passes",
    [PASS] = "(all) time passes, whatever is to be mended",
    [STALL] = "time passes, and the client is stopped",
    [WAKE] = "the client goes on",
};

static void print_message(const struct message *m) {
    printf(" %s#%u%s%s", commands[m->command], m->attempt, m->ran ? "=" : "", m->ran ? verdicts[m->verdict] : "");
}

static void print_client(const struct world *w, unsigned c) {
    const struct client *client = &w->clients[c];

    printf("\n                  client %u:", c);
    for (unsigned a = 0; a < client->begun; a++)
        printf(" #%u %s", a, client->uses[a].over ? "over" : states[lease_of(&client->uses[a])->state]);
    for (unsigned n = 0; n < w->scope->nodes; n++) {
        printf("  [%u %s:", n, client->channels[n].up ? "up" : "down");
        for (unsigned i = 0; i < client->channels[n].count; i++)
            print_message(&client->channels[n].queue[i]);
        putchar(']');
    }
}

void world_print_move(const struct world *w, struct move move) {
    printf("%9.1f ms  client %u, node %u: %s", (double)(w->time - LONG_AGO) / 5, move.client, move.node,
           words[move.what]);
    for (unsigned c = 0; c < CLIENTS; c++)
        print_client(w, c);
    putchar('\n');
}
