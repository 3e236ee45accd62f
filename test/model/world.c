/* What happens in a small world, and whether the promises stand; see world.h. */
#include "world.h"

#include <string.h>

#include <evlock/evlock.h>

#define MS INT64_C(1000)
#define TTL (1000 * MS)
#define WAIT (600 * MS)  /* for the answer to a release or an extension */
#define GRAIN (MS - 1)   /* the most of a server's millisecond that can be gone when a ttl begins */
#define STRIDE (600 * 5) /* in quanta */

static const int64_t lengths[] = {
    [REPLACE_LONGER] = 3 * TTL / 2,
    [REPLACE_SHORTER] = TTL / 2,
    [ADD] = TTL / 2,
};

static const struct manner manners[] = {
    {.terms = {.ttl = TTL, .max_ttl = TTL, .interval = 0, .lead = MS, .max_hold = LEASE_NEVER, .patience = TTL / 2}},
    {.terms =
         {.ttl = TTL, .max_ttl = TTL, .interval = TTL / 2, .lead = MS, .max_hold = LEASE_NEVER, .patience = TTL / 2}},
};

static const struct manner *manners_of(const struct world *w) {
    return w->scope->manners ? w->scope->manners : &manners[w->scope->renews];
}

static void promise(struct world *w, bool kept, const char *what) {
    if (!kept && !w->broken)
        w->broken = what;
}

static int64_t later(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static void act(struct world *w, unsigned c, struct use *use, struct lease_out *out);

/* --- Time --------------------------------------------------------------------------------------------------------- */

/* The first quantum in which a clock has come to a moment. */
static int64_t quantum(int64_t moment, unsigned rate) {
    return (moment + rate - 1) / rate;
}

/* For how long a node that lost its data is asked for nothing. */
static bool is_excluded(const struct world *w, unsigned c, unsigned n) {
    unsigned rate = w->clients[c].rate;
    return w->scope->flaw != NO_EXCLUSION && w->nodes[n].wiped &&
           (w->time - w->nodes[n].wiped) * rate < manners_of(w)->terms.max_ttl;
}

static struct use *use_living(struct client *client, unsigned attempt) {
    struct use *use = &client->uses[attempt];
    return use->begun && !use->over ? use : NULL;
}

/* --- Answers to the users ----------------------------------------------------------------------------------------- */

static bool believes(const struct world *w, unsigned c, const struct use *use) {
    return use->begun && !use->over && client_clock(w, c) < evl_lease_deadline(lease_of(use));
}

static unsigned count_bits(unsigned bits) {
    return (unsigned)__builtin_popcount(bits);
}

static void hear_end(struct world *w, struct use *use, const struct lease_out *out) {
    unsigned quorum = w->scope->nodes / 2 + 1;

    if (out->events & LEASE_TELL_FAILED) {
        promise(w, !use->granted && out->status < 0, "a failure is told of an attempt that is not over, as an error");
        use->done = true;
    }
    if (out->events & LEASE_TELL_RELEASED) {
        promise(w, use->releasing, "the end of a release is told once, to who asked for it");
        promise(w, out->status != EVLOCK_OK || count_bits(use->freed) >= quorum,
                "a release is told as done when it freed a quorum");
        use->releasing = false;
        use->done = true;
    }
}

/* Fences grow in the order in which they are granted. */
static void hear_fence(struct world *w, const struct use *use) {
    int64_t fence = lease_of(use)->fence;

    if (!use->fenced || w->forced || w->lapsed)
        return;
    promise(w, fence > w->fence || w->scope->flaw, "fences grow");
    w->backwards |= fence <= w->fence;
    w->fence = evl_lease_last_fence(lease_of(use));
    w->told = fence;
}

/* Who has it next is to hear of a risk that came up before. */
static void hear_risk(struct world *w, struct use *use) {
    promise(w, use->granted && !use->lost && !use->releasing, "a risk is told of what is held");
    use->endangered = true;
    use->unheard = use->untold;
}

static void hear(struct world *w, unsigned c, struct use *use, const struct lease_out *out) {
    promise(w, !out->events || !use->done, "nothing is told after the end");
    if (out->events & LEASE_TELL_GRANTED) {
        promise(w, !use->granted, "a grant is told once");
        use->granted = true;
        use->leaves = false;
        use->had_from = client_clock(w, c);
        hear_fence(w, use);
    }
    if (out->events & LEASE_TELL_EXTENDED) {
        promise(w, use->extending, "the end of an extension is told once, to who asked for it");
        use->extending = false;
    }
    if (out->events & LEASE_TELL_LOST) {
        promise(w, use->granted && !use->lost && !use->extending, "a loss is told once, of what is held");
        promise(w, !use->releasing, "no loss is told after a release was asked");
        use->lost = true;
    }
    if (out->events & LEASE_TELL_RISK)
        hear_risk(w, use);
    hear_end(w, use, out);
}

/* --- To the nodes ------------------------------------------------------------------------------------------------- */

static int trouble(const struct world *w, unsigned c, unsigned n, const struct lease *lease) {
    if (!w->clients[c].channels[n].up)
        return EVLOCK_EUNREACHABLE;
    if (is_excluded(w, c, n) && lease->slots[n].want != LEASE_RELEASE)
        return EVLOCK_EEXCLUDED;
    return EVLOCK_OK;
}

/* What is asked for is the most that may be believed, whatever a server answers. */
static void note_asked(const struct world *w, unsigned c, struct use *use, enum lease_command command) {
    const struct lease *lease = lease_of(use);
    int64_t ttl = evl_lease_ttl(lease, command, client_clock(w, c));

    if (command == LEASE_ADOPT || command == LEASE_RAISE || command == LEASE_RELEASE)
        return;
    if (command == LEASE_ADD && use->most != LEASE_NEVER)
        use->most = later(use->most, client_clock(w, c) + lease->longest_ms * MS) + ttl; /* it ran at any time */
    else if ((command == LEASE_ACQUIRE && !lease->terms->ttl) || use->most == LEASE_NEVER)
        use->most = LEASE_NEVER;
    else
        use->most = later(use->most, client_clock(w, c) + ttl);
}

static void transmit(struct world *w, unsigned c, struct use *use, unsigned n) {
    struct lease *lease = lease_of(use);
    struct channel *channel = &w->clients[c].channels[n];
    uint8_t attempt = (uint8_t)(use - w->clients[c].uses);
    bool native = w->scope->native && evl_lease_may_refresh(lease);
    enum lease_command command = evl_lease_take(lease, n, native ? LEASE_REFRESH : LEASE_RENEW, client_clock(w, c));

    if (command == LEASE_NOTHING)
        return;
    promise(w, command == LEASE_RELEASE || lease->state == LEASE_ACQUIRING || lease->state == LEASE_HELD,
            "what is not held any more sends releases alone");
    for (unsigned i = 0; i < channel->count; i++)
        promise(w,
                channel->queue[i].attempt != attempt ||
                    (command == LEASE_RELEASE && channel->queue[i].command != LEASE_RELEASE),
                "one command that sets a ttl is unanswered on a node, and one release behind it");
    if (w->broken)
        return;
    note_asked(w, c, use, command);
    channel->queue[channel->count++] = (struct message){
        .ttl = command == LEASE_RAISE ? evl_lease_last_fence(lease) : evl_lease_ttl(lease, command, client_clock(w, c)),
        .attempt = attempt,
        .command = (uint8_t)command,
        .connection = channel->connection,
    };
}

/* A node cannot be asked. */
static void lack(struct world *w, unsigned c, struct use *use, unsigned n, int why, struct lease_out *out) {
    struct lease *lease = lease_of(use);

    if (lease->state == LEASE_HELD && lease->slots[n].want == LEASE_RENEW)
        use->failed |= (uint8_t)(1U << n);
    evl_lease_node_away(lease, n, why, client_clock(w, c), out);
}

/* What was passed on is lost before its new user was told, who goes on waiting. */
static void drop_untold(struct world *w, unsigned c, struct use *use) {
    struct lease_out out = {0};

    use->untold = false;
    use->done = true;
    evl_lease_abandon(lease_of(use), client_clock(w, c), &out);
    act(w, c, use, &out);
}

static void act(struct world *w, unsigned c, struct use *use, struct lease_out *out) {
    hear(w, c, use, out);
    if (use->untold && use->lost)
        drop_untold(w, c, use);
    for (unsigned n = 0; n < w->scope->nodes && !w->broken; n++) {
        struct lease *lease = lease_of(use);
        struct lease_out more = {0};
        int why = trouble(w, c, n, lease);
        if (!(out->wake & 1U << n))
            continue;
        if (why == EVLOCK_OK && w->scope->lazy)
            continue;
        if (why == EVLOCK_OK)
            transmit(w, c, use, n);
        else
            lack(w, c, use, n, why, &more);
        promise(w, !(more.wake & 1U << n) || lease->slots[n].want == LEASE_RELEASE,
                "a node that is away is not asked again at once");
        if (!w->broken && (more.wake || more.events))
            act(w, c, use, &more);
    }
}

/* What a client has not yet sent to a node goes out. */
static void send(struct world *w, unsigned c, unsigned n) {
    struct client *client = &w->clients[c];

    for (unsigned a = 0; a < client->begun && client->channels[n].count < QUEUE; a++) {
        struct use *use = use_living(client, a);
        if (use && lease_of(use)->slots[n].want)
            transmit(w, c, use, n);
    }
}

/* --- Timers ------------------------------------------------------------------------------------------------------- */

static void forget_stray(struct channel *channel, unsigned i) {
    channel->lost--;
    memmove(channel->strays + i, channel->strays + i + 1, (channel->lost - i) * sizeof *channel->strays);
    channel->strays[channel->lost] = (struct message){0};
}

/* Whether a use has something left in the key of a node, or in its queue. Of what an earlier use of the token has left,
 * for which it was excused, or has brought back after an export, it knows nothing. */
static bool is_left(const struct world *w, unsigned c, unsigned n, const struct use *use) {
    const struct node *node = &w->nodes[n];
    bool is_earlier =
        (w->scope->own && node->setter < use - w->clients[c].uses) || (lease_of(use)->adopted && node->brought_back);

    return (server_has(&node->server, use->token, server_clock(w, n)) && !is_earlier) ||
           server_waits(&node->server, use->ticket);
}

/* Where an undo has ended by time, what it could not remove has expired. That no command of an own token, lost before
 * the present connection stood, runs later than this, is an assumption. */
static void pass_undo_limit(struct world *w, unsigned c, struct use *use) {
    for (unsigned n = 0; n < w->scope->nodes; n++) {
        struct channel *channel = &w->clients[c].channels[n];
        promise(w, use->late || use->leaves || lease_of(use)->adopted || !is_left(w, c, n, use),
                "an undo goes on until the token has expired");
        for (unsigned i = channel->lost; w->scope->own && i-- > 0;)
            if (channel->strays[i].connection < channel->connection)
                forget_stray(channel, i);
    }
    use->leaves = true;
}

/* What waited in a queue is released once more when, by the same assumption, no look of it can run any more. */
static void pass_last_look(struct world *w, unsigned c, const struct use *use) {
    for (unsigned n = 0; n < w->scope->nodes; n++) {
        struct channel *channel = &w->clients[c].channels[n];
        for (unsigned i = channel->lost; i-- > 0;)
            if (w->clients[c].uses[channel->strays[i].attempt].token == use->token &&
                channel->strays[i].connection < channel->connection)
                forget_stray(channel, i);
    }
}

static bool is_cut(const struct message *m, unsigned attempt) {
    return m->attempt == attempt && (m->command == LEASE_REPLACE || m->command == LEASE_REFRESH);
}

/* Nor does what was lost and sets the ttl. */
static void pass_cuts(struct world *w, unsigned c, unsigned attempt) {
    for (unsigned n = 0; n < w->scope->nodes; n++) {
        struct channel *channel = &w->clients[c].channels[n];
        for (unsigned i = channel->lost; i-- > 0;)
            if (is_cut(&channel->strays[i], attempt) && channel->strays[i].connection < channel->connection)
                forget_stray(channel, i);
    }
}

/* A lease waits for that for as long as the token may live. */
static void check_cuts(struct world *w, unsigned c, unsigned n, unsigned attempt) {
    const struct channel *channel = &w->clients[c].channels[n];
    const struct lease *lease = lease_of(&w->clients[c].uses[attempt]);

    for (unsigned i = 0; i < channel->lost; i++)
        promise(w,
                !is_cut(&channel->strays[i], attempt) || channel->strays[i].connection + 1 < channel->connection ||
                    lease->cut_over >= client_clock(w, c) + lease->longest_ms * MS,
                "what may cut a lease is reckoned with for as long as it may live");
}

/* A client looks at its deadlines, before it does anything else. */
static void ring(struct world *w, unsigned c) {
    struct client *client = &w->clients[c];
    int64_t now = client_clock(w, c);

    client->stalled = false;
    for (unsigned a = 0; a < client->begun && !w->broken; a++) {
        struct use *use = use_living(client, a);
        struct lease_out out = {0};
        if (use && lease_of(use)->cut_over <= now)
            pass_cuts(w, c, a);
        if (!use || evl_lease_next(lease_of(use)) > now)
            continue;
        bool undone = lease_of(use)->state == LEASE_UNDOING && lease_of(use)->until <= now;
        evl_lease_time(lease_of(use), now, now, &out);
        if (undone && lease_of(use)->state == LEASE_ENDED)
            pass_undo_limit(w, c, use);
        else if (undone && lease_of(use)->until == LEASE_NEVER)
            pass_last_look(w, c, use);
        promise(w, evl_lease_next(lease_of(use)) > now, "what is due is done at once");
        act(w, c, use, &out);
    }
}

static int64_t sooner(int64_t next, const struct world *w, int64_t moment, unsigned rate) {
    int64_t at;

    if (moment == LEASE_NEVER)
        return next;
    at = quantum(moment, rate);
    return at > w->time && at < next ? at : next;
}

static int64_t next_expiry(const struct world *w) {
    int64_t next = w->time + (w->scope->stride ? w->scope->stride : STRIDE);

    for (unsigned n = 0; n < w->scope->nodes; n++)
        if (w->nodes[n].server.token)
            next = sooner(next, w, w->nodes[n].server.expires, w->nodes[n].rate);
    return next;
}

static int64_t next_without_mending(const struct use *use, unsigned nodes) {
    struct use other = *use;

    for (unsigned n = 0; n < nodes; n++)
        lease_of(&other)->slots[n].mend_ms = LEASE_AGES;
    return evl_lease_next(lease_of(&other));
}

/* When something comes due: on a client that runs, on a server, or with a node that was excluded. */
static int64_t next_moment(struct world *w, bool mends) {
    int64_t next = next_expiry(w);

    for (unsigned c = 0; c < CLIENTS; c++) {
        struct client *client = &w->clients[c];
        for (unsigned a = 0; a < client->begun && !client->stalled; a++)
            if (use_living(client, a))
                next = sooner(next, w,
                              mends ? evl_lease_next(lease_of(&client->uses[a]))
                                    : next_without_mending(&client->uses[a], w->scope->nodes),
                              client->rate);
        for (unsigned n = 0; n < w->scope->nodes; n++)
            if (is_excluded(w, c, n))
                next = sooner(next, w, w->nodes[n].wiped * client->rate + manners_of(w)->terms.max_ttl, client->rate);
    }
    return next;
}

/* `most`: in quanta; 0: until something is due or expires. */
static void pass(struct world *w, bool mends, int64_t most) {
    int64_t next = next_moment(w, mends);

    w->time = most && w->time + most < next ? w->time + most : next;
    for (unsigned c = 0; c < CLIENTS; c++)
        if (!w->clients[c].stalled)
            ring(w, c);
}

static void stall(struct world *w, unsigned c) {
    int64_t until = next_expiry(w);

    w->clients[c].stalled = true;
    while (w->time < until && !w->broken)
        pass(w, false, 0);
}

/* --- Servers ------------------------------------------------------------------------------------------------------ */

/* A waiter was granted the lock; if its client does not listen, the message is lost. */
static void tell_grant(struct world *w, unsigned n, const struct grant_note *told) {
    struct client *client = &w->clients[told->waiter.channel];
    struct ears *ears = &client->ears;
    uint8_t attempt = (uint8_t)((told->waiter.ticket - 1) % ATTEMPTS);
    const struct use *use = &client->uses[attempt];

    promise(w, !use->over || use->late || use->leaves, "nobody who is gone is granted the lock");
    w->nodes[n].setter = attempt;
    if (!ears->up)
        return;
    promise(w, ears->count < GRANTS, "(there is room for what is to be heard)");
    if (!w->broken)
        ears->queue[ears->count++] =
            (struct grant){.time = w->time, .fence = told->fence, .spare = told->spare, .attempt = attempt};
}

/* Of a grant from before a look that was answered "queued", the message says nothing any more. */
static void outdate_grants(struct ears *ears, unsigned attempt) {
    for (unsigned i = 0; i < ears->count; i++)
        ears->queue[i].outdated |= ears->queue[i].attempt == attempt;
}

static void run(struct world *w, unsigned c, unsigned n, struct message *m) {
    struct node *node = &w->nodes[n];
    struct use *use = &w->clients[c].uses[m->attempt];
    struct request request = {
        .command = (enum lease_command)m->command,
        .token = use->token,
        .ttl = m->ttl,
        .fence = w->scope->flaw == NO_RAISING ? 0 : m->ttl,
        .ticket = use->ticket,
        .channel = (uint8_t)c,
        .fenced = use->fenced,
        .spare = use->spare,
    };
    bool had = server_has(&node->server, use->token, server_clock(w, n));
    struct lease_answer answer = {0};
    struct grant_note told = {0};

    m->verdict = (uint8_t)server_run(&node->server, &request, server_clock(w, n), GRAIN, &answer, &told);
    m->left = request.command == LEASE_ACQUIRE ? answer.fence : answer.ttl;
    m->spare = answer.spare;
    m->ran = true;
    if (m->verdict == LEASE_YES) {
        promise(w, !had || !w->scope->own || node->setter <= m->attempt,
                "no command acts on the key that a later use of its token has set");
        node->setter = m->attempt;
        if (!had)
            node->brought_back = use->leaves;
        if (request.command == LEASE_RELEASE)
            use->freed |= (uint8_t)(1U << n);
    }
    if (m->verdict == LEASE_QUEUED)
        outdate_grants(&w->clients[c].ears, m->attempt);
    if (told.waiter.ticket)
        tell_grant(w, n, &told);
}

static struct message *oldest_to_run(struct channel *channel) {
    for (unsigned i = 0; i < channel->count; i++)
        if (!channel->queue[i].ran)
            return &channel->queue[i];
    return NULL;
}

static void refuse(struct channel *channel, enum lease_verdict verdict) {
    struct message *m = oldest_to_run(channel);

    m->ran = true;
    m->verdict = (uint8_t)verdict;
}

/* --- Grants that are heard of ------------------------------------------------------------------------------------- */

static void forget_grant(struct ears *ears, unsigned i) {
    ears->count--;
    memmove(ears->queue + i, ears->queue + i + 1, (ears->count - i) * sizeof *ears->queue);
    ears->queue[ears->count] = (struct grant){0};
}

static void hear_grant(struct world *w, unsigned c, bool early) {
    struct client *client = &w->clients[c];
    struct grant grant = client->ears.queue[0];
    struct use *use = use_living(client, grant.attempt);
    int64_t since = grant.time * client->rate - (early ? TTL / 10 : 0);
    const struct lease_answer yes = {.verdict = LEASE_YES, .fence = grant.fence, .spare = grant.spare};
    struct lease_out out = {0};

    forget_grant(&client->ears, 0);
    if (!use)
        return;
    if (lease_of(use)->state == LEASE_ACQUIRING)
        use->most = client_clock(w, c) + lease_of(use)->terms->ttl;
    evl_lease_granted(lease_of(use), since, &yes, client_clock(w, c), &out);
    act(w, c, use, &out);
}

static void deafen(struct world *w, unsigned c) {
    w->clients[c].ears = (struct ears){0};
}

static void listen(struct world *w, unsigned c) {
    w->clients[c].ears.up = true;
    w->nodes[0].server.listens |= (uint8_t)(1U << c);
}

static void look(struct world *w, unsigned c) {
    struct client *client = &w->clients[c];
    struct use *use = &client->uses[client->begun - 1];
    struct lease_out out = {0};

    evl_lease_look(lease_of(use), &out);
    act(w, c, use, &out);
}

/* --- Connections -------------------------------------------------------------------------------------------------- */

/* Of what was heard, what matters to whom the lease is passed on to. */
static void note_heard(struct use *use, unsigned n, const struct message *m) {
    const struct lease *lease = lease_of(use);
    bool renews = m->command == LEASE_RENEW || m->command == LEASE_REFRESH;
    unsigned fresh = 0;

    if (lease->state != LEASE_HELD)
        return;
    if (m->verdict == LEASE_YES && m->command != LEASE_ACQUIRE && m->left > lease->terms->ttl)
        use->tied = true;
    if (renews && m->verdict != LEASE_YES && m->verdict != LEASE_AGAIN)
        use->failed |= (uint8_t)(1U << n);
    for (unsigned i = 0; i < lease->nodes; i++)
        fresh += lease->slots[i].fresh;
    if (fresh > lease->nodes / 2) {
        use->failed = 0;
        use->endangered = use->unheard = false;
    }
}

static void deliver(struct world *w, unsigned c, unsigned n) {
    struct channel *channel = &w->clients[c].channels[n];
    struct message m = channel->queue[0];
    struct use *use = &w->clients[c].uses[m.attempt];
    struct lease_answer answer = {
        .verdict = (enum lease_verdict)m.verdict, .ttl = m.left, .fence = m.left, .spare = m.spare};
    int64_t deadline = evl_lease_deadline(lease_of(use));
    struct lease_out out = {0};

    memmove(channel->queue, channel->queue + 1, --channel->count * sizeof m);
    channel->queue[channel->count] = (struct message){0};
    if (m.verdict != LEASE_YES && m.verdict != LEASE_NO)
        answer.status = m.verdict == LEASE_UNKNOWN ? EVLOCK_EUNREACHABLE : EVLOCK_EREFUSED;
    if (m.command == LEASE_RELEASE && m.verdict == LEASE_FORBIDDEN)
        use->leaves = true;
    for (unsigned i = w->clients[c].ears.count; m.verdict == LEASE_QUEUED && i-- > 0;)
        if (w->clients[c].ears.queue[i].attempt == m.attempt && w->clients[c].ears.queue[i].outdated)
            forget_grant(&w->clients[c].ears, i);
    if (m.verdict == LEASE_YES && m.stale && m.command != LEASE_RAISE)
        use->stale |= (uint8_t)(1U << n);
    else if (m.verdict == LEASE_YES && m.command != LEASE_RAISE)
        use->stale &= (uint8_t) ~(1U << n);
    if (m.command == LEASE_ADOPT && m.verdict == LEASE_YES) /* nobody here knows what was asked for */
        use->most = m.left == LEASE_NEVER ? LEASE_NEVER : later(use->most, client_clock(w, c) + m.left);
    evl_lease_answer(lease_of(use), n, &answer, client_clock(w, c), &out);
    promise(w, m.command != LEASE_MEND || evl_lease_deadline(lease_of(use)) <= deadline,
            "mending moves no deadline out");
    note_heard(use, n, &m);
    act(w, c, use, &out);
}

static void cut(struct world *w, unsigned c, unsigned n, bool dead) {
    struct client *client = &w->clients[c];
    struct channel *channel = &client->channels[n];

    channel->up = false;
    for (unsigned i = 0; i < channel->count; i++) {
        struct message *m = &channel->queue[i];
        if (!m->ran && !dead) {
            promise(w, channel->lost < STRAYS, "(there is room for what was lost)");
            if (w->broken)
                return;
            channel->strays[channel->lost++] = *m;
        }
        m->ran = true;
        m->verdict = LEASE_UNKNOWN;
    }
    while (channel->count && !w->broken)
        deliver(w, c, n);
    for (unsigned a = 0; a < client->begun && !w->broken; a++) {
        struct use *use = use_living(client, a);
        struct lease_out out = {0};
        if (!use || !lease_of(use)->slots[n].want)
            continue;
        lack(w, c, use, n, EVLOCK_EUNREACHABLE, &out);
        act(w, c, use, &out);
    }
}

static void come_back(struct world *w, unsigned c, unsigned n, bool settled, bool replaced) {
    struct client *client = &w->clients[c];
    struct channel *channel = &client->channels[n];

    replaced |= channel->restarted;
    for (unsigned i = channel->lost; settled && i-- > 0;)
        if (channel->strays[i].connection == channel->connection)
            forget_stray(channel, i);
    channel->up = true;
    channel->restarted = false;
    channel->connection++;
    for (unsigned a = 0; a < client->begun && !w->broken; a++) {
        struct use *use = use_living(client, a);
        struct lease_out out = {0};
        if (!use)
            continue;
        evl_lease_node_back(lease_of(use), n, settled, replaced, client_clock(w, c), &out);
        check_cuts(w, c, n, a);
        if (lease_of(use)->slots[n].want)
            out.wake |= 1U << n; /* what has waited for the node goes out, or is told why not */
        act(w, c, use, &out);
    }
}

static void run_late(struct world *w, unsigned c, unsigned n, unsigned i) {
    struct channel *channel = &w->clients[c].channels[n];
    struct message m = channel->strays[i];

    forget_stray(channel, i);
    run(w, c, n, &m);
    if (m.connection < channel->connection)
        w->clients[c].uses[m.attempt].late = true;
}

static void forget_data(struct world *w, unsigned n) {
    struct node *node = &w->nodes[n];

    if (server_clock(w, n) < node->server.expires) {
        node->forgotten = node->server.token;
        node->would_expire = node->server.expires;
    }
    node->server = (struct server){0};
    node->setter = 0;
    node->wiped = w->time;
    for (unsigned c = 0; c < CLIENTS; c++)
        for (unsigned a = 0; a < ATTEMPTS; a++)
            w->clients[c].uses[a].freed |= (uint8_t)(1U << n);
}

/* As by FLUSHALL: what its clients were told, they believe. */
static void lapse(struct world *w, unsigned n) {
    struct node *node = &w->nodes[n];

    w->lapsed = true;
    node->server.token = 0;
    node->server.expires = 0;
    node->setter = 0;
    for (unsigned c = 0; c < CLIENTS; c++) {
        struct channel *channel = &w->clients[c].channels[n];
        for (unsigned a = 0; a < w->clients[c].begun; a++) {
            w->clients[c].uses[a].freed |= (uint8_t)(1U << n);
            w->clients[c].uses[a].stale |= (uint8_t)(1U << n);
        }
        for (unsigned i = 0; i < channel->count; i++)
            channel->queue[i].stale |= channel->queue[i].ran;
    }
}

static void restart(struct world *w, unsigned n, bool wiped) {
    if (wiped)
        forget_data(w, n);
    for (unsigned c = 0; c < CLIENTS; c++) {
        struct channel *channel = &w->clients[c].channels[n];
        ring(w, c);
        memset(channel->strays, 0, sizeof channel->strays);
        channel->lost = 0;
        cut(w, c, n, true);
        channel->restarted = true;
        if (w->scope->queues)
            deafen(w, c);
    }
    w->nodes[n].server.listens = 0;
}

static void lose_queue(struct server *server) {
    server->waiting = 0;
    memset(server->line, 0, sizeof server->line);
}

/* The counter of the only node is evicted, not in the same microsecond as it was drawn from. */
static void lose_counter(struct world *w) {
    pass(w, true, 5);
    w->nodes[0].server.counter = 0;
}

/* Somebody else makes the key live longer, as a clock does that is set back; or removes it. */
static void break_in(struct world *w, unsigned n, int64_t longer) {
    struct server *server = &w->nodes[n].server;

    w->forced = true;
    server->expires = longer ? server->expires + longer : 0;
    for (unsigned c = 0; c < CLIENTS; c++)
        for (unsigned a = 0; a < w->clients[c].begun; a++) {
            struct use *use = &w->clients[c].uses[a];
            use->late |= longer && use->token == server->token;
            if (!longer)
                use->freed |= (uint8_t)(1U << n);
        }
}

/* --- Users -------------------------------------------------------------------------------------------------------- */

static void begin(struct world *w, unsigned c, enum happening how, unsigned with) {
    struct client *client = &w->clients[c];
    unsigned attempt = client->begun++;
    struct use *use = &client->uses[attempt];
    const struct manner *manner = manners_of(w) + with;
    struct lease_entry entry = {.fenced = manner->fenced && how != ADOPT,
                                .spare = manner->fenced && how != ADOPT ? manner->spare : 0,
                                .queued = how == JOIN && manner->terms.ttl,
                                .adopt = how == ADOPT,
                                .own = w->scope->own || how == ADOPT || (manner->own && how == BEGIN)};
    struct lease_out out = {0};

    w->attempts--;
    use->begun = true;
    use->fenced = entry.fenced;
    use->spare = (uint8_t)entry.spare;
    use->manner = (uint8_t)with;
    use->tied = entry.own || entry.adopt;
    use->token = (uint8_t)(1 + c * ATTEMPTS + (w->scope->own ? 0 : attempt));
    if (entry.queued)
        use->ticket = (uint8_t)(1 + c * ATTEMPTS + attempt);
    if (how == ADOPT) {
        use->token = (uint8_t)w->handed_over;
        use->leaves = true;
        w->handed_over = 0;
    }
    evl_lease_begin(lease_of(use), &manner->terms, w->scope->nodes, &entry, client_clock(w, c), &out);
    act(w, c, use, &out);
}

static void extend(struct world *w, unsigned c, enum happening how, unsigned with) {
    struct use *use = &w->clients[c].uses[w->clients[c].begun - 1];
    int64_t ttl = lengths[how] + with * (TTL / 10);
    struct lease_out out = {0};

    w->extends--;
    use->extending = true;
    use->extended = use->tied = true;
    evl_lease_extend(lease_of(use), how == ADD ? LEASE_ADD : LEASE_REPLACE, ttl, client_clock(w, c) + WAIT, &out);
    act(w, c, use, &out);
}

static void call(struct world *w, unsigned c, enum happening what) {
    struct use *use = &w->clients[c].uses[w->clients[c].begun - 1];
    struct lease_out out = {0};

    if (what == CANCEL) {
        use->done = true;
        use->untold = false;
        evl_lease_abandon(lease_of(use), client_clock(w, c), &out);
    } else if (what == RELEASE) {
        use->releasing = true;
        use->extending = false;
        evl_lease_release(lease_of(use), client_clock(w, c) + WAIT, &out);
    } else {
        use->done = true;
        use->leaves = true;
        w->handed_over = use->token;
        evl_lease_export(lease_of(use));
    }
    act(w, c, use, &out);
}

/* --- Passing on --------------------------------------------------------------------------------------------------- */

static const struct lease_terms *terms_of_heir(const struct world *w, const struct use *use) {
    const struct manner *manner = manners_of(w) + use->manner;

    return lease_of(use)->terms == &manner->terms ? &manner->heirs : &manner->terms;
}

/* Who has it next need not reckon with who had it, and has time. */
static void check_passable(struct world *w, unsigned c, const struct use *use) {
    const struct lease *lease = lease_of(use);
    int64_t ttl = lease->terms->ttl;

    promise(w, !use->tied, "what somebody else may still change is not passed on");
    promise(w, ttl && evl_lease_deadline(lease) - client_clock(w, c) >= ttl / 2,
            "what is passed on has half of its ttl left");
    promise(w, !use->endangered && count_bits(use->failed) <= w->scope->nodes / 2,
            "what is not renewed as it should is not passed on");
    promise(w, !use->fenced || use->relays < use->spare, "no more are passed a lease than it has fences for");
}

/* The next who hears of a fence hears of a greater one, and it is not one that others are granted. */
static void check_passed_fence(struct world *w, const struct use *use) {
    int64_t fence = lease_of(use)->fence;

    if (!use->fenced || w->forced || w->lapsed)
        return;
    promise(w, (fence > w->told && fence <= w->fence) || w->scope->flaw, "fences grow as a lease is passed on");
    w->told = fence;
}

static int64_t mends_at(const struct lease *lease, unsigned n) {
    return lease->slots[n].mend_ms == LEASE_AGES ? LEASE_NEVER : lease->since + lease->slots[n].mend_ms * MS;
}

/* `before`: the lease as it was. */
static void check_passed(struct world *w, unsigned c, const struct use *use, const struct use *before,
                         const struct lease_out *out) {
    const struct lease *lease = lease_of(use), *old = lease_of(before);
    bool low = evl_lease_deadline(old) - client_clock(w, c) < lease->terms->ttl / 4 * 3;
    bool hung = lease->terms->interval && old->due == LEASE_NEVER, renewed = lease->asked != 0;

    promise(w, lease->terms == terms_of_heir(w, before), "a lease goes by the terms of who has it");
    promise(w, evl_lease_deadline(lease) == evl_lease_deadline(old) && !out->events, "a pass leaves a lease as it is");
    promise(w, low || hung || !out->wake, "a pass sends nothing");
    for (unsigned n = 0; n < w->scope->nodes; n++) {
        renewed |= lease->slots[n].want || lease->slots[n].flying;
        promise(w, mends_at(lease, n) <= mends_at(old, n), "a pass puts off no mending");
    }
    promise(w, !low || renewed, "what has little left is renewed along with a pass");
}

/* Unless what was due has just changed that. */
static void relay(struct world *w, unsigned c) {
    struct use *use = &w->clients[c].uses[w->clients[c].begun - 1];
    struct use before = *use;
    struct lease_out out = {0};

    if (!evl_lease_passable(lease_of(use), client_clock(w, c)))
        return;
    check_passable(w, c, use);
    if (w->broken)
        return;
    w->relays--;
    use->relays++;
    use->untold = true;
    use->unheard = false;
    use->had_from = client_clock(w, c);
    evl_lease_pass(lease_of(use), terms_of_heir(w, use), client_clock(w, c), &out);
    check_passed(w, c, use, &before, &out);
    check_passed_fence(w, use);
    act(w, c, use, &out);
}

/* Who is told of the lease is told of its risk, too, as soon as it lasts. */
static void tell(struct world *w, unsigned c) {
    struct use *use = &w->clients[c].uses[w->clients[c].begun - 1];

    if (!use->untold)
        return;
    use->untold = false;
    evl_lease_warn_anew(lease_of(use));
    ring(w, c);
    promise(w, !use->unheard || use->lost || !lease_of(use)->warned, "who has a lease that is at risk is told");
}

static void relay_attempt(struct world *w, unsigned c) {
    struct use *use = &w->clients[c].uses[w->clients[c].begun - 1];
    const struct lease_terms *terms = terms_of_heir(w, use);

    if (lease_of(use)->state != LEASE_ACQUIRING)
        return;
    w->relays--;
    evl_lease_inherit(lease_of(use), terms);
    promise(w, lease_of(use)->terms == terms, "an attempt goes by the terms of who makes it");
}

static void show(struct world *w, unsigned c) {
    struct use *use = &w->clients[c].uses[w->clients[c].begun - 1];

    if (lease_of(use)->state != LEASE_HELD)
        return;
    use->tied = true;
    evl_lease_tie(lease_of(use));
}

/* --- Promises ----------------------------------------------------------------------------------------------------- */

/* Whether a node keeps the token, or keeps others from having one, in all quanta up to this one. */
static bool keeps(const struct world *w, unsigned n, int token, int64_t last) {
    const struct node *node = &w->nodes[n];

    if (last == LEASE_NEVER || node->server.expires == LEASE_NEVER)
        return node->server.token == token && node->server.expires == LEASE_NEVER;
    if (node->server.token == token && last * node->rate < node->server.expires)
        return true;
    if (!node->wiped || node->forgotten != token || last * node->rate >= node->would_expire)
        return false;
    for (unsigned c = 0; c < CLIENTS; c++)
        if ((last - node->wiped) * w->clients[c].rate >= manners_of(w)->terms.max_ttl)
            return false;
    return true;
}

/* Whether more nodes forgot it than confirmed it beyond the quorum: then nothing is promised. That a quorum confirmed
 * it at all is never excused. */
static bool is_forgotten(const struct world *w, const struct use *use) {
    const struct lease *lease = lease_of(use);
    unsigned confirmed = 0, sure = 0;

    for (unsigned n = 0; n < w->scope->nodes; n++) {
        bool confirms = lease->slots[n].deadline >= evl_lease_deadline(lease);
        confirmed += confirms;
        sure += confirms && !(use->stale & 1U << n);
    }
    return confirmed > w->scope->nodes / 2 && sure <= w->scope->nodes / 2;
}

/* Nobody is granted a smaller fence there, as long as the holder believes. */
static bool counts(const struct world *w, unsigned n, int64_t fence) {
    const struct node *node = &w->nodes[n];
    bool excluded = node->wiped;

    for (unsigned c = 0; c < CLIENTS; c++)
        excluded &= (w->time - node->wiped) * w->clients[c].rate < manners_of(w)->terms.max_ttl;
    return node->server.counter >= fence || excluded || (w->scope->nodes == 1 && !node->server.counter);
}

static void check_fence(struct world *w, const struct use *use) {
    unsigned count = 0;

    for (unsigned n = 0; n < w->scope->nodes; n++)
        count += counts(w, n, lease_of(use)->fence);
    promise(w, !use->fenced || w->scope->flaw || count > w->scope->nodes / 2,
            "a quorum has counted the holder's fence");
}

/* Who has it by now did not choose when it was granted. */
static void check_renewed(struct world *w, unsigned c, const struct use *use) {
    const struct lease *lease = lease_of(use);
    int64_t most = lease->terms->max_hold;
    bool hung = most != LEASE_NEVER && client_clock(w, c) >= use->had_from + most;

    promise(w, !lease->terms->interval || hung || lease->due != LEASE_NEVER,
            "a lease is renewed for as long as it may be held");
}

/* A node that lacks the token, and can be asked for it, is seen to some time. */
static void check_mended(struct world *w, unsigned c, const struct use *use) {
    const struct lease *lease = lease_of(use);
    int64_t last = lease->terms->max_hold == LEASE_NEVER ? LEASE_NEVER : lease->since + lease->terms->max_hold;

    if ((!lease->terms->interval && use->extended) || lease->extending ||
        client_clock(w, c) >= last) /* then after that, or never */
        return;
    for (unsigned n = 0; n < w->scope->nodes && w->scope->nodes > 1; n++) {
        const struct lease_slot *slot = &lease->slots[n];
        bool busy = slot->flying || slot->want || slot->stray || !w->clients[c].channels[n].up;
        promise(w,
                busy || slot->mend_ms != LEASE_AGES || lease->due != LEASE_NEVER ||
                    slot->deadline >= evl_lease_deadline(lease) - evl_lease_moment(lease->terms->ttl),
                "a node without the token is seen to");
    }
}

static void check_holder(struct world *w, unsigned c, const struct use *use) {
    int64_t deadline = evl_lease_deadline(lease_of(use));
    unsigned keepers = 0;

    promise(w, deadline <= use->most, "the deadline is not beyond what was asked for");
    if (is_forgotten(w, use) || w->forced || w->scope->flaw == NO_EXCLUSION)
        return;
    for (unsigned n = 0; n < w->scope->nodes; n++)
        keepers +=
            keeps(w, n, use->token, deadline == LEASE_NEVER ? LEASE_NEVER : quantum(deadline, w->clients[c].rate) - 1);
    promise(w, keepers > w->scope->nodes / 2, "a quorum keeps the token until the deadline");
}

/* Whether a lost command can bring back the token of a use that is over. Who adopts a lease does not know what was lost
 * before; this client itself may have exported it. */
static bool brings_back(const struct client *client, const struct message *m, const struct use *use) {
    bool sets = m->command == LEASE_ACQUIRE || m->command == LEASE_REARM || m->command == LEASE_MEND;
    bool before = lease_of(use)->adopted && &client->uses[m->attempt] != use && client->uses[m->attempt].leaves;

    return client->uses[m->attempt].token == use->token && (lease_of(use)->own || sets) && !before;
}

/* It is over: what it was told, and what it has left. */
static void check_end(struct world *w, unsigned c, struct use *use) {
    promise(w, use->done, "a lease that is over was told how it ended");
    for (unsigned n = 0; n < w->scope->nodes; n++) {
        const struct channel *channel = &w->clients[c].channels[n];
        promise(w, use->leaves || !is_left(w, c, n, use), "a lease that is over has left nothing");
        for (unsigned i = 0; i < channel->lost && !use->leaves; i++)
            promise(w, !brings_back(&w->clients[c], &channel->strays[i], use),
                    "when a lease is over nothing can bring its token back");
    }
    use->over = true;
    memset(use->lease, 0, sizeof use->lease);
}

/* Somebody waits, and nothing is under way that could end it. */
static bool is_stuck(const struct world *w, unsigned c, const struct use *use) {
    const struct lease *lease = lease_of(use);

    if (lease->state == LEASE_LOST || evl_lease_next(lease) != LEASE_NEVER)
        return false;
    if (lease->state == LEASE_HELD && evl_lease_deadline(lease) == LEASE_NEVER)
        return false;
    if (lease->state == LEASE_ACQUIRING && lease->queued)
        return false; /* who waits in a queue looks */
    for (unsigned n = 0; n < w->scope->nodes; n++) {
        const struct channel *channel = &w->clients[c].channels[n];
        if (!channel->up || (w->scope->lazy && lease->slots[n].want))
            return false;
        for (unsigned i = 0; i < channel->count; i++)
            if (&w->clients[c].uses[channel->queue[i].attempt] == use)
                return false;
    }
    return true;
}

static void check(struct world *w) {
    unsigned holders = 0;
    bool excused = false;

    for (unsigned c = 0; c < CLIENTS; c++) {
        struct client *client = &w->clients[c];
        for (unsigned a = 0; a < client->begun && !w->broken; a++) {
            struct use *use = use_living(client, a);
            if (!use)
                continue;
            if (believes(w, c, use)) {
                holders++;
                excused |= is_forgotten(w, use);
                check_holder(w, c, use);
                check_mended(w, c, use);
                check_fence(w, use);
                check_renewed(w, c, use);
            } else {
                promise(w, client->stalled || lease_of(use)->state != LEASE_HELD, "a loss is told by the deadline");
            }
            if (evl_lease_over(lease_of(use)))
                check_end(w, c, use);
            else
                promise(w, !is_stuck(w, c, use), "nobody waits for ever");
        }
    }
    if (holders <= 1 || excused || w->forced)
        return;
    promise(w, w->scope->flaw == NO_EXCLUSION, "at most one believes to hold the lock");
    w->twice = true;
}

/* --- What happens ------------------------------------------------------------------------------------------------- */

void world_begin(struct world *w, const struct scope *scope, unsigned clocks) {
    static const unsigned rates[CLOCKS][5] = {
        {199, 199, 201, 201, 201}, /* the servers fast */
        {201, 201, 199, 199, 199}, /* the clients fast */
        {199, 201, 201, 199, 201}, /* both, mixed */
    };

    memset(w, 0, sizeof *w);
    w->scope = scope;
    w->time = LONG_AGO;
    w->attempts = scope->attempts;
    w->extends = scope->extends;
    w->faults = scope->faults;
    w->passes = scope->passes;
    w->relays = scope->relays;
    for (unsigned c = 0; c < CLIENTS; c++) {
        w->clients[c].rate = rates[clocks][c % 2];
        for (unsigned n = 0; n < scope->nodes; n++)
            w->clients[c].channels[n].up = true;
        if (scope->queues)
            listen(w, c);
    }
    for (unsigned n = 0; n < NODES; n++) {
        w->nodes[n].rate = rates[clocks][2 + n % 3];
        w->nodes[n].server.counter = scope->counted ? scope->counted + n % 2 : 0;
    }
}

static void at_node(struct world *w, struct move move) {
    struct channel *channel = &w->clients[move.client].channels[move.node];

    switch ((enum happening)move.what) {
    case SERVE:
        run(w, move.client, move.node, oldest_to_run(channel));
        break;
    case SAY_AGAIN:
        refuse(channel, LEASE_AGAIN);
        break;
    case REFUSE:
        refuse(channel, LEASE_REFUSED);
        break;
    case FORBID:
        refuse(channel, LEASE_FORBIDDEN);
        break;
    case RUN_LATE:
        run_late(w, move.client, move.node, move.stray);
        break;
    case NOTICE:
        w->nodes[move.node].server.listens &= (uint8_t) ~(1U << move.client);
        break;
    case FORGET:
        lapse(w, move.node);
        break;
    case LOSE_QUEUE:
        lose_queue(&w->nodes[move.node].server);
        break;
    case BREAK:
    case STRETCH:
        break_in(w, move.node, move.what == STRETCH ? 100 * TTL : 0);
        break;
    default:
        restart(w, move.node, move.what == WIPE);
        break;
    }
}

static void at_client(struct world *w, struct move move) {
    unsigned c = move.client;

    ring(w, c);
    if (w->broken)
        return;
    switch ((enum happening)move.what) {
    case BEGIN:
    case JOIN:
    case ADOPT:
        begin(w, c, (enum happening)move.what, move.with);
        break;
    case LOOK:
        look(w, c);
        break;
    case HEAR:
    case HEAR_EARLY:
        hear_grant(w, c, move.what == HEAR_EARLY);
        break;
    case DEAFEN:
        deafen(w, c);
        break;
    case LISTEN:
        listen(w, c);
        break;
    case CANCEL:
    case RELEASE:
    case EXPORT:
        call(w, c, (enum happening)move.what);
        break;
    case SHOW:
        show(w, c);
        break;
    case RELAY:
        relay(w, c);
        break;
    case TELL:
        tell(w, c);
        break;
    case RELAY_ATTEMPT:
        relay_attempt(w, c);
        break;
    case REPLACE_LONGER:
    case REPLACE_SHORTER:
    case ADD:
        extend(w, c, (enum happening)move.what, move.with);
        break;
    case SEND:
        send(w, c, move.node);
        break;
    case DELIVER:
        deliver(w, c, move.node);
        break;
    case CUT:
        cut(w, c, move.node, false);
        break;
    case BACK_KILLED:
    case BACK:
        come_back(w, c, move.node, move.what == BACK_KILLED, move.with);
        break;
    default:
        break; /* it only wakes */
    }
}

static bool is_fault(enum happening what) {
    return what == CUT || what == RESTART || what == WIPE || what == STALL || what == SAY_AGAIN || what == REFUSE ||
           what == FORBID || what == DEAFEN || what == LOSE_QUEUE || what == FORGET || what == LOSE_COUNTER ||
           what == BREAK || what == STRETCH;
}

static bool is_at_node(enum happening what) {
    return what == SERVE || what == SAY_AGAIN || what == REFUSE || what == FORBID || what == RUN_LATE ||
           what == NOTICE || what == RESTART || what == WIPE || what == LOSE_QUEUE || what == FORGET || what == BREAK ||
           what == STRETCH;
}

void world_move(struct world *w, struct move move) {
    enum happening what = (enum happening)move.what;

    w->faults -= is_fault(what);
    w->passes -= what == PASS || what == PASS_SHORT;
    if (what == PASS || what == PASS_SHORT)
        pass(w, what == PASS_SHORT, move.with * move.with);
    else if (what == STALL)
        stall(w, move.client);
    else if (what == LOSE_COUNTER)
        lose_counter(w);
    else if (is_at_node(what))
        at_node(w, move);
    else
        at_client(w, move);
    if (!w->broken)
        check(w);
}
