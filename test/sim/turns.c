/* Turns; see turns.h. */
#include "turns.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "actor.h"
#include "moves.h"
#include "node.h"
#include "passes.h"
#include "wire.h"

/* A queue goes by itself a minute after anyone has looked. */
static const int64_t queue_lives = 60 * SECOND;

/* The first in line looks so often at least. */
static const int64_t looks_least = 5 * SECOND;

/* Who has ever waited in line. */
struct waiter {
    TAILQ_ENTRY(waiter) link;
    unsigned key;
    struct token *token;
    int64_t arrived; /* by the node's clock, or by the one that its client brought: that settles its place */
    int64_t since;   /* true time from when that was on its way */
    int64_t looked;  /* true time of its last look */
    bool late;       /* nobody waits: it was let in by a command that came late, or its queue was carried away */
    char channel[64];
    size_t len;
    char member[];
};

/* A client has begun to listen after the faults. */
struct listener {
    TAILQ_ENTRY(listener) link;
    struct wire *wire;
    unsigned wire_number;
    int64_t since;
    char channel[64];
};

struct turns {
    struct judge *judge;
    struct world *world;
    TAILQ_HEAD(, waiter) waiters;
    TAILQ_HEAD(, listener) listeners;
    int64_t ttl;                  /* that the command that runs asks for */
    bool brought;                 /* with a clock of its client's */
    struct waiter *taken;         /* out of the queue, by the command that runs */
    const struct token *granted;  /* by it */
    int64_t idle_since[KEYS_FEW]; /* free, while somebody waits who listens; NEVER: it is not */
};

struct turns *turns_new(struct judge *judge, struct world *world) {
    struct turns *turns = calloc(1, sizeof(*turns));

    turns->judge = judge;
    turns->world = world;
    TAILQ_INIT(&turns->waiters);
    TAILQ_INIT(&turns->listeners);
    for (unsigned key = 0; key < KEYS_FEW; key++)
        turns->idle_since[key] = NEVER;
    return turns;
}

static void drop_listener(struct turns *turns, struct listener *listener) {
    TAILQ_REMOVE(&turns->listeners, listener, link);
    free(listener);
}

void turns_free(struct turns *turns) {
    struct waiter *waiter;

    while ((waiter = TAILQ_FIRST(&turns->waiters))) {
        TAILQ_REMOVE(&turns->waiters, waiter, link);
        free(waiter);
    }
    while (!TAILQ_EMPTY(&turns->listeners))
        drop_listener(turns, TAILQ_FIRST(&turns->listeners));
    free(turns);
}

/* --- The queue's key, and who is in it ---------------------------------------------------------------------------- */

static const char *queue_key(unsigned key) {
    static const char *const names[] = {"{lock:one}:queue", "lock:{two}::queue"};
    return names[key];
}

/* Where the queue is; or would be. */
static struct node *node_of(const struct turns *turns, unsigned key) {
    struct node *node = moves_find(turns->world, queue_key(key));

    node_now(node);
    return node;
}

static int queue_index(const char *key, size_t len) {
    for (unsigned i = 0; i < KEYS_FEW; i++)
        if (strlen(queue_key(i)) == len && memcmp(queue_key(i), key, len) == 0)
            return (int)i;
    return -1;
}

static struct waiter *find_waiter(const struct turns *turns, unsigned key, const char *member, size_t len) {
    struct waiter *waiter;

    TAILQ_FOREACH (waiter, &turns->waiters, link)
        if (waiter->key == key && waiter->len == len && memcmp(waiter->member, member, len) == 0)
            return waiter;
    return NULL;
}

/* The waiter at a place of the queue; NULL: none is. */
static struct waiter *waiter_at(const struct turns *turns, struct node *node, unsigned key, size_t place) {
    size_t len;
    const char *member = sim_server_member(node->server, queue_key(key), strlen(queue_key(key)), place, &len);

    return member ? find_waiter(turns, key, member, len) : NULL;
}

static bool waits(const struct turns *turns, struct node *node, const struct waiter *waiter) {
    const struct waiter *other;

    for (size_t place = 0; (other = waiter_at(turns, node, waiter->key, place)); place++)
        if (other == waiter)
            return true;
    return false;
}

static bool listens(struct node *node, const struct waiter *waiter) {
    return sim_server_listeners(node->server, waiter->channel, strlen(waiter->channel)) > 0;
}

/* The first in line who listens; NULL: nobody does. */
static const struct waiter *next_waiter(const struct turns *turns, struct node *node, unsigned key) {
    const struct waiter *waiter;

    for (size_t place = 0; (waiter = waiter_at(turns, node, key, place)); place++)
        if (listens(node, waiter))
            return waiter;
    return NULL;
}

/* Whom nobody looks for. Who has been granted by one of two places leaves the other. */
static bool is_nobodys(const struct turns *turns, const struct waiter *waiter) {
    const struct waiter *other;

    TAILQ_FOREACH (other, &turns->waiters, link)
        if (other->late && (other == waiter || (turns->world->plan.cluster && other->token == waiter->token)))
            return true;
    return false;
}

/* The token of a member: what comes after four blanks. */
static struct token *token_of(const struct turns *turns, const char *member, size_t len) {
    const char *at = member, *end = member + len;

    for (unsigned blanks = 0; at && blanks < 4; blanks++)
        if ((at = memchr(at, ' ', (size_t)(end - at))))
            at++;
    return at ? judge_known(turns->judge, at, (size_t)(end - at)) : NULL;
}

/* --- What commands do --------------------------------------------------------------------------------------------- */

static void add_waiter(struct turns *turns, struct node *node, unsigned key, int64_t score, const char *member,
                       size_t len) {
    struct world *world = turns->world;
    struct waiter *waiter = find_waiter(turns, key, member, len);

    if (!waiter) {
        waiter = calloc(1, sizeof(*waiter) + len + 1);
        waiter->key = key;
        waiter->token = token_of(turns, member, len);
        waiter->len = len;
        memcpy(waiter->member, member, len);
        snprintf(waiter->channel, sizeof(waiter->channel), "%.*s", (int)strcspn(waiter->member, " "), waiter->member);
        TAILQ_INSERT_TAIL(&turns->waiters, waiter, link);
    }
    if (!waiter->token || !judge_owns(waiter->token, world->feeding->client))
        violated(world, "client %u lets another wait: %s", world->feeding->client, waiter->member);
    waiter->looked = world->now;
    if (waits(turns, node, waiter))
        return;
    waiter->late = judge_comes_late(turns->judge, turns->ttl);
    waiter->since = world->feeding_sent;
    waiter->arrived = turns->brought ? score : clock_read(&node->clock, world->now);
}

/* Who looks at the other master waits there once more, on its channel. The place of before is nobody's from then on. It
 * goes when its turn comes, unless its slot is back by then: then the lock is granted to who may have given up. */
void turns_carry(struct turns *turns, const char *key, size_t len) {
    int index = key ? queue_index(key, len) : -1;
    struct waiter *waiter;

    TAILQ_FOREACH (waiter, &turns->waiters, link)
        waiter->late |= !key || (int)waiter->key == index;
}

static void note_listener(struct turns *turns, const char *channel) {
    struct listener *listener = calloc(1, sizeof(*listener));

    listener->wire = turns->world->feeding;
    listener->wire_number = listener->wire->number;
    listener->since = turns->world->now;
    snprintf(listener->channel, sizeof(listener->channel), "%s", channel);
    TAILQ_INSERT_TAIL(&turns->listeners, listener, link);
}

/* A call of a script: "EVALSHA digest 3 lock queue counter waiter token", or EVAL and its text, if it is join.lua;
 * where scripts cannot read the clock, with one more word for it. A waiter begins with its channel, and has its ttl
 * third. */
static void begin_script(struct turns *turns, int argc, const char *const *argv, const size_t *lens) {
    bool joins = argc > 7 && strncmp(argv[6], "evlock:", 7) == 0;
    int key = joins ? queue_index(argv[4], lens[4]) : -1;
    struct waiter *waiter = key < 0 ? NULL : find_waiter(turns, (unsigned)key, argv[6], lens[6]);

    turns->taken = NULL;
    turns->granted = NULL;
    turns->ttl = joins ? strtoll(strchr(strchr(argv[6], ' ') + 1, ' '), NULL, 10) * MS : 0;
    turns->brought = joins && argc == 9;
    if (waiter)
        waiter->looked = turns->world->now;
}

static void remove_waiter(const struct turns *turns, struct node *node, const struct waiter *waiter) {
    const struct wire *wire = turns->world->feeding;

    if (!judge_owns(waiter->token, wire->client))
        violated(turns->world, "client %u takes another out of the queue", wire->client);
    else if (turns->world->scenario->passes && wire->client == wire->process->client_number && !waiter->late &&
             waits(turns, node, waiter))
        passes_leave_line(wire->process, node, waiter->key, waiter->since);
}

void turns_command(struct turns *turns, struct node *node, int argc, const char *const *argv, const size_t *lens) {
    int key = argc > 1 ? queue_index(argv[1], lens[1]) : -1;
    struct waiter *waiter;

    if (strcasecmp(argv[0], "EVALSHA") == 0 || strcasecmp(argv[0], "EVAL") == 0)
        begin_script(turns, argc, argv, lens);
    else if (strcasecmp(argv[0], "SUBSCRIBE") == 0 && turns->world->calm)
        note_listener(turns, argv[1]);
    else if (key >= 0 && strcasecmp(argv[0], "ZADD") == 0)
        add_waiter(turns, node, (unsigned)key, strtoll(argv[argc - 2], NULL, 10), argv[argc - 1], lens[argc - 1]);
    else if (key >= 0 && strcasecmp(argv[0], "ZPOPMIN") == 0)
        turns->taken = waiter_at(turns, node, (unsigned)key, 0);
    else if (key >= 0 && strcasecmp(argv[0], "ZREM") == 0 &&
             (waiter = find_waiter(turns, (unsigned)key, argv[2], lens[2])))
        remove_waiter(turns, node, waiter);
}

/* First come, first served, of those who listen; where queues and clocks stay as they were. */
static void check_order(struct turns *turns, struct node *node, unsigned key, const struct waiter *winner) {
    const struct waiter *other;

    if (!turns->world->scenario->exclusive ||
        turns->world->plan.cluster) /* of a clock each, which it may have changed */
        return;
    for (size_t place = 0; (other = waiter_at(turns, node, key, place)); place++)
        if (other->arrived < winner->arrived && listens(node, other))
            violated(turns->world, "granted to who has waited %" PRId64 " us less than another: %s",
                     winner->arrived - other->arrived, winner->member);
}

void turns_grant(struct turns *turns, struct node *node, unsigned key, struct token *token) {
    struct world *world = turns->world;
    const struct waiter *waiter = turns->taken;

    world->tally->handed++;
    turns->granted = token;
    token->late |= waiter && is_nobodys(turns, waiter);
    if (!waiter || waiter->token != token)
        violated(world, "granted to who was not taken out of the queue");
    else if (waits(turns, node, waiter))
        violated(world, "granted to who still waits: %s", waiter->member);
    else if (!listens(node, waiter) && !judge_owns(token, world->feeding->client))
        violated(world, "granted to who does not listen: %s", waiter->member);
    else
        check_order(turns, node, key, waiter);
}

bool turns_granted(const struct turns *turns, const struct token *token) {
    return turns->granted == token;
}

/* Who holds by a handle that queues hands the lock on. */
void turns_delete(struct turns *turns, struct node *node, unsigned key, const struct token *token) {
    const struct waiter *next = next_waiter(turns, node, key);

    if (next && token->queued && !node->refused && !turns->world->plan.cluster) /* there, not while it is halfway */
        violated(turns->world, "deleted, and not handed on to who waits: %s", next->member);
}

/* Who has given up may be left in the queue: where a node would not let it out, or came back with an old copy. */
static bool may_be_left(const struct turns *turns, const struct node *node) {
    return node->refused || judge_came_back(turns->judge, node);
}

/* --- Looks -------------------------------------------------------------------------------------------------------- */

/* Something that is asked for at once is done so soon, when nothing is wrong. */
static int64_t soon(const struct turns *turns) {
    return 3 * actor_longest_timeout(turns->world) + 50 * turns->world->plan.latency;
}

static void check_expiry(struct turns *turns, struct node *node, unsigned key) {
    if (sim_server_expiry(node->server, queue_key(key), strlen(queue_key(key))) == -1 && !node->refused)
        violated(turns->world, "the queue of %s has no expiry", judge_key(key));
}

/* A lock that is free does not stay so while somebody waits for it. */
static void check_idle(struct turns *turns, struct node *node, unsigned key) {
    struct node *holds = moves_find(turns->world, judge_key(key));
    bool held = sim_server_expiry(node_now(holds), judge_key(key), strlen(judge_key(key))) != -2;
    const struct waiter *next = held || !turns->world->calm ? NULL : next_waiter(turns, node, key);
    int64_t *since = &turns->idle_since[key];

    if (!next || is_nobodys(turns, next))
        *since = NEVER;
    else if (*since == NEVER)
        *since = turns->world->now;
    else if (turns->world->now > *since + looks_least + soon(turns))
        violated(turns->world, "%s has been free for %" PRId64 " us, and somebody waits for it: %s", judge_key(key),
                 turns->world->now - *since, next->member);
}

/* The listener's connection as it was then. */
static bool still_listens(const struct turns *turns, const struct listener *listener) {
    const struct wire *wire;

    TAILQ_FOREACH (wire, &turns->world->wires, link)
        if (wire == listener->wire && wire->number == listener->wire_number)
            return wire->connection && wire->session;
    return false;
}

/* Who listens again looks at once: what was granted meanwhile was not heard. */
static void check_listener(struct turns *turns, const struct listener *listener) {
    const struct waiter *waiter;

    TAILQ_FOREACH (waiter, &turns->waiters, link)
        if (strcmp(waiter->channel, listener->channel) == 0 && waiter->looked < listener->since &&
            !is_nobodys(turns, waiter) && waits(turns, node_of(turns, waiter->key), waiter))
            violated(turns->world, "%s listens again, and has not looked since", waiter->member);
}

static void check_listeners(struct turns *turns) {
    struct listener *listener, *next;

    for (listener = TAILQ_FIRST(&turns->listeners); listener; listener = next) {
        next = TAILQ_NEXT(listener, link);
        if (turns->world->now <= listener->since + soon(turns))
            continue;
        if (still_listens(turns, listener) && !may_be_left(turns, listener->wire->node))
            check_listener(turns, listener);
        drop_listener(turns, listener);
    }
}

void turns_look(struct turns *turns) {
    for (unsigned key = 0; key < KEYS_FEW; key++) {
        struct node *node = node_of(turns, key);
        check_expiry(turns, node, key);
        check_idle(turns, node, key);
    }
    check_listeners(turns);
}

/* How many wait in line by this client's tokens. */
static unsigned count_waiting(const struct turns *turns, unsigned key, unsigned client) {
    struct node *node = node_of(turns, key);
    const struct waiter *waiter;
    unsigned count = 0;

    for (size_t place = 0; (waiter = waiter_at(turns, node, key, place)); place++)
        count += judge_owns(waiter->token, client) && !is_nobodys(turns, waiter);
    return count;
}

unsigned turns_waiting(const struct turns *turns, unsigned key, unsigned client, uint64_t *places) {
    struct node *node = node_of(turns, key);
    const struct waiter *waiter;
    unsigned count = 0;

    while ((waiter = waiter_at(turns, node, key, count))) {
        count++;
        if (judge_owns(waiter->token, client) && count < 64)
            *places |= UINT64_C(1) << count;
    }
    return count;
}

/* Nobody waits in line for whom no acquire is pending. */
void turns_strays(struct turns *turns) {
    const struct process *process;
    unsigned waiting, pending;

    TAILQ_FOREACH (process, &turns->world->processes, link) {
        for (unsigned key = 0; key < KEYS_FEW && process->client; key++) {
            if (may_be_left(turns, node_of(turns, key)))
                continue;
            waiting = count_waiting(turns, key, process->client_number);
            pending = judge_pending(turns->judge, process->client_number, key);
            if (waiting > pending)
                violated(turns->world, "client %u has %u in the queue of %s, and %u acquires", process->client_number,
                         waiting, judge_key(key), pending);
        }
    }
}

void turns_closed(struct turns *turns, unsigned client) {
    for (unsigned key = 0; key < KEYS_FEW; key++) {
        const struct node *node = node_of(turns, key);
        if (count_waiting(turns, key, client) > 0 && !node->lied && !judge_came_back(turns->judge, node))
            violated(turns->world, "client %u was closed in good order, and still waits for %s", client,
                     judge_key(key));
    }
}

/* A server that is being looked at. */
struct look {
    const struct turns *turns;
    const struct node *node;
};

static void check_key(void *arg, const char *key, size_t len) {
    const struct look *look = arg;
    struct world *world = look->turns->world;

    if (queue_index(key, len) >= 0)
        violated(world, "node %u keeps %.*s beyond its ttl", look->node->index, (int)len, key);
    else if (sim_server_expiry(look->node->server, key, len) == -1 && !world->plan.eternal)
        violated(world, "node %u keeps %.*s for ever", look->node->index, (int)len, key);
}

void turns_empty(struct turns *turns) {
    struct world *world = turns->world;

    world->now += queue_lives + queue_lives / 50;
    for (unsigned i = 0; i < world->plan.servers; i++) {
        struct look look = {turns, world->nodes[i]};
        if (!look.node->refused)
            sim_server_each_key(node_now(world->nodes[i]), check_key, &look);
    }
}
