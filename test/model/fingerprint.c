/*
 * A small world's state as one number; see world.h. Moments count from now, each on its own clock. Clients are ordered
 * by what is theirs and nodes by what is on them, so it does not matter which is which. Fences count from the last that
 * was granted, and none is drawn by a clock. What the lease core will not read again before it writes it is left out.
 */
#include "world.h"

/* Not alike in its two parameters, since both may be numbers that were mixed in the same way. */
static uint64_t mix(uint64_t h, uint64_t v) {
    h = (h + 1) * UINT64_C(0x9E3779B97F4A7C15);
    h = ((h ^ h >> 29) + v) * UINT64_C(0xD6E8FEB86659FD93);
    return h ^ h >> 32;
}

static uint64_t from_now(int64_t moment, int64_t now) {
    return (uint64_t)(moment == LEASE_NEVER || moment == 0 ? moment : moment - now);
}

/* Of a moment that is past, it only matters that it was. */
static uint64_t to_come(int64_t moment, int64_t now) {
    return (uint64_t)(moment == LEASE_NEVER || moment == 0 ? moment : moment > now ? moment - now : -1);
}

static uint64_t pack(unsigned a, unsigned b, unsigned c, unsigned d) {
    return (uint64_t)a | (uint64_t)b << 8 | (uint64_t)c << 16 | (uint64_t)d << 24;
}

static unsigned flags(bool a, bool b, bool c, bool d) {
    return (unsigned)a | (unsigned)b << 1 | (unsigned)c << 2 | (unsigned)d << 3;
}

static uint64_t mix_lease(uint64_t h, const struct lease *lease, int64_t now) {
    bool held = lease->state == LEASE_HELD;

    h = mix(h, pack(lease->state, held ? lease->extending : 0,
                    flags(lease->adopted, lease->own, held && lease->failing, lease->queued), 0));
    if (lease->state == LEASE_ENDED)
        return h;
    h = mix(h, (uint64_t)lease->longest_ms);
    h = mix(h, from_now(lease->due, now));
    h = mix(h, from_now(lease->until, now));
    if (lease->state == LEASE_ACQUIRING && lease->nodes > 1)
        h = mix(h, from_now(lease->since, now));
    if (held && lease->extending)
        h = mix(h, (uint64_t)lease->extension);
    if (held && lease->nodes > 1)
        h = mix(mix(h, to_come(lease->since + 50 * 1000, now)), lease->asked != 0); /* when a node is mended first, */
    if (held && lease->nodes > 1)
        h = mix(h, (uint64_t)(now - lease->since) % 1000); /* and later, in whole milliseconds */
    return h;
}

/* A server refuses numbers besides behind odd ones. */
static uint64_t from_last_fence(const struct world *w, int64_t fence) {
    return fence ? (uint64_t)(fence - w->fence / 2 * 2) + LONG_AGO : 0;
}

/* What matters to those whom a lease is passed on to. */
static uint64_t mix_relays(uint64_t h, const struct world *w, unsigned c, const struct use *use) {
    const struct lease *lease = lease_of(use);
    bool held = lease->state == LEASE_HELD, asks = lease->state == LEASE_ACQUIRING;
    int64_t now = client_clock(w, c);

    if (held || asks)
        h = mix(mix(h, from_last_fence(w, lease->fence)), (uint64_t)evl_lease_spare(lease) << 1 | lease->raising);
    if (!held)
        return h;
    h = mix(
        h, pack(flags(lease->tied, use->tied, lease->warned, use->endangered), use->untold, use->unheard, use->relays));
    h = mix(h, lease->terms->risk ? from_now(lease->asked, now) : lease->asked != 0);
    if (lease->terms->max_hold != LEASE_NEVER)
        h = mix(mix(h, from_now(lease->since, now)), from_now(use->had_from, now));
    return h;
}

/* What an answer or a timer may still do with a slot. */
static uint64_t mix_slot(uint64_t h, const struct lease *lease, const struct lease_slot *slot, int64_t now) {
    bool held = lease->state == LEASE_HELD;
    bool votes = lease->state == LEASE_ACQUIRING || lease->state == LEASE_RELEASING || (held && lease->extending);
    bool undoing = lease->state == LEASE_UNDOING;

    h = mix(h, slot->flying << 1 | slot->releasing);
    if (lease->state == LEASE_ENDED)
        return h;
    h = mix(h, pack(slot->want, votes ? slot->vote : 0, slot->trace, slot->stray) |
                   (uint64_t)pack(slot->late,
                                  flags(held && slot->voting, !undoing && slot->resent, held && slot->fresh,
                                        (held || lease->state == LEASE_ACQUIRING) && slot->replaced),
                                  lease->queued && slot->removed, slot->twice)
                       << 32);
    if (slot->flying && !undoing)
        h = mix(h, from_now(slot->sent, now));
    if (undoing)
        return h;
    h = mix(h, to_come(slot->deadline, now));
    if (!held)
        return h;
    if (slot->flying == LEASE_REPLACE)
        h = mix(h, to_come(slot->uncut, now));
    if (slot->flying == LEASE_ADD || slot->flying == LEASE_REPLACE)
        h = mix(h, (uint64_t)lease->extension);
    if (slot->mend_ms != LEASE_AGES)
        h = mix(h, to_come(lease->since + slot->mend_ms * INT64_C(1000), now));
    if (slot->cut_ms != LEASE_NO_CUT)
        h = mix(h, to_come(lease->cut_over, now));
    return mix(mix(h, (uint64_t)slot->replacing_ms), (uint64_t)slot->cut_ms);
}

static uint64_t mix_relays_at(uint64_t h, const struct world *w, const struct use *use, unsigned n) {
    const struct lease *lease = lease_of(use);
    const struct lease_slot *slot = &lease->slots[n];

    if (lease->state == LEASE_ACQUIRING)
        h = mix(h, from_last_fence(w, slot->counter) << 1 | slot->spares);
    return lease->state == LEASE_HELD ? mix(h, use->failed >> n & 1U) : h;
}

static uint64_t mix_message(uint64_t h, const struct world *w, const struct message *m, const struct channel *channel) {
    bool asks = m->command == LEASE_ACQUIRE;

    h = mix(h, pack(m->attempt, m->command, (unsigned)(channel->connection - m->connection),
                    m->ran ? (1U + m->verdict) << 1 | m->stale : 0));
    h = mix(h, m->command == LEASE_RAISE ? from_last_fence(w, m->ttl) : (uint64_t)m->ttl);
    return mix(h, asks ? from_last_fence(w, m->left) << 8 | m->spare : (uint64_t)m->left);
}

static uint64_t of_channel(const struct world *w, const struct channel *channel) {
    uint64_t h = pack(channel->up, channel->restarted, channel->count, channel->lost);

    for (unsigned i = 0; i < channel->count; i++)
        h = mix_message(h, w, &channel->queue[i], channel);
    for (unsigned i = 0; i < channel->lost; i++)
        h = mix_message(h, w, &channel->strays[i], channel);
    return h;
}

static uint64_t of_ears(const struct world *w, const struct ears *ears) {
    uint64_t h = pack(ears->up, ears->count, 0, 0);

    for (unsigned i = 0; i < ears->count; i++)
        h = mix(mix(h, (uint64_t)(w->time - ears->queue[i].time) << 8 | ears->queue[i].attempt << 1 |
                           ears->queue[i].outdated),
                from_last_fence(w, ears->queue[i].fence) << 8 | ears->queue[i].spare);
    return h;
}

/* What a client has, apart from what it has at each node. */
static uint64_t of_client(const struct world *w, unsigned c) {
    const struct client *client = &w->clients[c];
    uint64_t h = mix(client->rate,
                     pack(client->begun, !client->begun || client->uses[client->begun - 1].done, client->stalled, 0));

    if (w->scope->queues)
        h = mix(h, of_ears(w, &client->ears));
    for (unsigned a = 0; a < client->begun; a++) {
        const struct use *use = &client->uses[a];
        if (use->over)
            continue;
        h = mix(h, pack(a, use->done, use->leaves, use->late));
        if (!use->done)
            h = mix(h, flags(use->granted, use->lost, use->extending, use->releasing));
        h = mix_lease(h, lease_of(use), client_clock(w, c));
        if (w->scope->relays)
            h = mix_relays(h, w, c, use);
    }
    return h;
}

static uint64_t of_client_at(const struct world *w, unsigned c, unsigned n) {
    const struct client *client = &w->clients[c];
    uint64_t h = mix(1, of_channel(w, &client->channels[n]));

    for (unsigned a = 0; a < client->begun; a++) {
        const struct use *use = &client->uses[a];
        if (use->over)
            continue;
        h = mix(h, a << 2 | (!use->done && use->freed >> n & 1U) << 1 | (use->stale >> n & 1U));
        h = mix_slot(h, lease_of(use), &lease_of(use)->slots[n], client_clock(w, c));
        if (w->scope->relays)
            h = mix_relays_at(h, w, use, n);
    }
    return h;
}

/* A token or ticket by the place of its client: 1 and so on for the first one's, and then for the second one's. */
static unsigned rename_token(unsigned token, bool swapped) {
    if (!token || !swapped)
        return token;
    return token > ATTEMPTS ? token - ATTEMPTS : token + ATTEMPTS;
}

static uint64_t of_queue(const struct server *server, bool swapped) {
    unsigned listens = server->listens;
    uint64_t h = swapped ? (listens & 1) << 1 | listens >> 1 : listens;

    for (unsigned i = 0; i < server->waiting; i++)
        h = mix(h, rename_token(server->line[i].ticket, swapped));
    return h;
}

static uint64_t of_node(const struct world *w, unsigned n, bool swapped) {
    const struct node *node = &w->nodes[n];
    int64_t clock = server_clock(w, n);
    uint64_t h = node->rate;

    if (clock < node->server.expires)
        h = mix(mix(h, rename_token((unsigned)node->server.token, swapped) | (unsigned)node->setter << 8),
                from_now(node->server.expires, clock));
    if (w->scope->queues)
        h = mix(h, of_queue(&node->server, swapped));
    h = mix(h, from_last_fence(w, node->server.counter));
    if (node->wiped && w->time - node->wiped < 2 * 5000) {
        h = mix(h, (uint64_t)(w->time - node->wiped));
        h = mix(h, rename_token((unsigned)node->forgotten, swapped));
        h = mix(h, to_come(node->would_expire, clock));
    }
    return h;
}

static void sort(uint64_t *values, unsigned count) {
    for (unsigned i = 1; i < count; i++)
        for (unsigned k = i; k > 0 && values[k - 1] > values[k]; k--) {
            uint64_t value = values[k];
            values[k] = values[k - 1];
            values[k - 1] = value;
        }
}

static uint64_t in_order(const struct world *w, const uint64_t of[CLIENTS], uint64_t at[CLIENTS][NODES], bool swapped) {
    uint64_t nodes[NODES];
    uint64_t h = mix(pack(w->attempts, w->extends, w->faults, w->passes) |
                         (uint64_t)rename_token((unsigned)w->handed_over, swapped) << 32,
                     of[swapped]);

    h = mix(mix(h, of[!swapped]), pack(w->relays, w->forced, w->lapsed, (unsigned)(w->fence - w->told)));
    for (unsigned n = 0; n < w->scope->nodes; n++)
        nodes[n] = mix(mix(at[swapped][n], at[!swapped][n]), of_node(w, n, swapped));
    sort(nodes, w->scope->nodes);
    for (unsigned n = 0; n < w->scope->nodes; n++)
        h = mix(h, nodes[n]);
    return h;
}

uint64_t world_fingerprint(const struct world *w) {
    uint64_t of[CLIENTS], at[CLIENTS][NODES], rank[CLIENTS], h, other;

    for (unsigned c = 0; c < CLIENTS; c++) {
        rank[c] = of[c] = of_client(w, c);
        for (unsigned n = 0; n < w->scope->nodes; n++) {
            at[c][n] = of_client_at(w, c, n);
            rank[c] += at[c][n];
        }
    }
    h = in_order(w, of, at, rank[0] > rank[1]);
    if (rank[0] != rank[1])
        return h;
    other = in_order(w, of, at, true);
    return h < other ? h : other;
}
