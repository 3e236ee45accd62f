/* The judge; see judge.h. */
#include "judge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "actor.h"
#include "duties.h"
#include "node.h"
#include "passes.h"
#include "questions.h"
#include "reach.h"
#include "tokens.h"
#include "turns.h"
#include "wire.h"

enum { PLACES = 16384, CLIENTS_MAX = 1024 };
enum { DRAWN = 36 };      /* how long a token is that the library draws */
enum { CROWD_LOOK = 16 }; /* at a crowd, the judge looks after so many steps, or it would take most of the time */

/* What is known of a key. */
struct key {
    int64_t longest;       /* of all ttls that were asked for */
    uint64_t fence;        /* the greatest that was told */
    unsigned breaks;       /* of it that are under way */
    int64_t broken_until;  /* or what they have sent on may yet be */
    struct token *foreign; /* another kind of client has set it, and believes in it for so long */
    int64_t foreign_until;
    struct token *parents; /* the parent of this forked child holds it, for so long */
    int64_t parents_until;
};

struct judge {
    struct world *world;
    struct turns *turns; /* NULL: there are no queues */
    struct questions *questions;
    TAILQ_HEAD(, handle) handles, holders; /* holders: those that are HOLDING */
    TAILQ_HEAD(, promise) promises;
    struct token *tokens[PLACES];
    struct key keys[KEYS_MAX];
    bool unclean[CLIENTS_MAX];   /* clients that ended without a word */
    bool resurrected[NODES_MAX]; /* what had been deleted came back with an old copy */
    unsigned next_handle, next_promise;
    unsigned looks; /* that were due */
};

static const char *const kinds[] = {"acquire", "adopt", "release", "extend", "query", "break", "run", "close", "hold"};
static long blocks;

struct judge *judge_new(struct world *world) {
    struct judge *judge = calloc(1, sizeof(*judge));

    judge->world = world;
    TAILQ_INIT(&judge->handles);
    TAILQ_INIT(&judge->holders);
    TAILQ_INIT(&judge->promises);
    judge->questions = questions_new(world);
    judge->turns = world->scenario->queue ? turns_new(judge, world) : NULL;
    return judge;
}

void judge_free(struct judge *judge) {
    struct promise *promise;
    struct handle *handle;
    struct token *token;

    while ((promise = TAILQ_FIRST(&judge->promises))) {
        TAILQ_REMOVE(&judge->promises, promise, link);
        if (promise->made && !promise->told)
            violated(judge->world, "the callback of a %s (call %u) never came", kinds[promise->kind], promise->number);
        free(promise);
    }
    while ((handle = TAILQ_FIRST(&judge->handles))) {
        TAILQ_REMOVE(&judge->handles, handle, link);
        free(handle);
    }
    for (size_t i = 0; i < PLACES; i++) {
        while ((token = judge->tokens[i])) {
            judge->tokens[i] = token->next;
            free(token);
        }
    }
    if (judge->turns)
        turns_free(judge->turns);
    questions_free(judge->questions);
    free(judge);
}

const char *judge_key(unsigned key) {
    static const char *const few[KEYS_FEW] = {"lock:one", "lock:{two}"};
    static char many[KEYS_MAX][16];

    if (key < KEYS_FEW)
        return few[key];
    if (!many[key][0])
        snprintf(many[key], sizeof(many[key]), "lock:%u", key);
    return many[key];
}

/* --- Asked and told ----------------------------------------------------------------------------------------------- */

/* It has no connection to so many nodes that no quorum is left. */
static bool most_are_away(const struct process *process) {
    unsigned nodes = process->world->plan.nodes, connected = 0;
    const struct wire *wire;

    if (nodes == 1 || process->left_out) /* what is wanted of the only node waits; twins share their wires */
        return false;
    for (unsigned i = 0; i < nodes; i++) {
        bool any = false;
        TAILQ_FOREACH (wire, &process->wires, local)
            any |= wire->node->index == i;
        connected += any;
    }
    return connected < nodes / 2 + 1;
}

/* A release is told within a command's time, and so is each extension once those before it are; whatever has become of
 * the connection. Where most of several nodes are away, an extension is told at once. */
static int64_t limit_of(const struct process *process, const struct handle *handle, enum promise_kind kind) {
    if (kind != P_RELEASE && kind != P_EXTEND)
        return NEVER;
    if (kind == P_EXTEND && handle->extends == 0 && most_are_away(process))
        return 0;
    return process->command_timeout * (kind == P_EXTEND ? handle->extends + 1 : 1);
}

/* Until when a holder believes, by its clock. */
static int64_t believed_until(const struct handle *handle) {
    int64_t left = evlock_remaining_ms(handle->lock);

    return left == INT64_MAX ? NEVER : process_clock(handle->process) + left * MS;
}

struct promise *judge_asks(struct judge *judge, struct process *process, struct handle *handle,
                           enum promise_kind kind) {
    struct promise *promise = calloc(1, sizeof(*promise));

    promise->process = process;
    promise->handle = handle;
    promise->kind = kind;
    promise->number = ++judge->next_promise;
    promise->asked = process_time(process);
    promise->limit = limit_of(process, handle, kind);
    promise->in_line = process->few_in_flight;
    if (kind == P_RELEASE)
        passes_give_up(handle);
    if (kind == P_EXTEND && handle->doing == HOLDING && handle->extends == 0)
        promise->kept = believed_until(handle);
    TAILQ_INSERT_TAIL(&judge->promises, promise, link);
    note(judge->world, process, "h%u %s (call %u)", handle ? handle->number : 0, kinds[kind], promise->number);
    return promise;
}

void judge_made(struct promise *promise, int status) {
    struct world *world = promise->process->world;

    if (status == EVLOCK_ENOMEM || status == EVLOCK_ESYSTEM || status == EVLOCK_EFORKED || status == EVLOCK_EINVAL)
        violated(world, "call %u, a %s, returned: %s", promise->number, kinds[promise->kind], evlock_strerror(status));
    note_number(world, (uint64_t)status);
    if (status != EVLOCK_OK) {
        note(world, promise->process, "  call %u: %s", promise->number, evlock_strerror(status));
        promise->told = true; /* and never will be */
        return;
    }
    world->tally->calls++;
    promise->made = true;
    if (promise->kind == P_EXTEND)
        promise->handle->extends++;
}

/* Whether a call may have waited in vain for a node without a fault: for commands before its own; or, of a close, for
 * the undoing of what may come late, which takes a ttl. A close also tells of what a node once refused to delete. */
static bool waits_long(const struct promise *promise, const struct node *node) {
    const struct scenario *scenario = promise->process->world->scenario;
    bool stale = scenario->loses_data || scenario->promotes; /* a copy counts connections anew, as a proxy may */
    bool moved = scenario->cluster; /* what a master has lost is undone by its ttl alone, if the slot has left it */
    bool halfway = scenario->cluster && scenario->queue && promise->kind != P_CLOSE; /* to another master */

    if (promise->kind == P_CLOSE && (node->spares || node->refused || stale || moved))
        return true;
    if (promise->handle && reach_is_late(promise->process, promise->handle->key, promise->asked))
        return true;
    return (promise->kind == P_CLOSE || promise->kind == P_RUN || promise->limit != NEVER) &&
           (promise->in_line || halfway);
}

/* Whether somebody was breaking the lock at that moment. */
static bool breaking(const struct judge *judge, unsigned key, int64_t at) {
    return judge->keys[key].breaks > 0 || at <= judge->keys[key].broken_until;
}

/* How many nodes the call may have found out of reach. */
static unsigned unreachable(const struct promise *promise) {
    const struct world *world = promise->process->world;
    unsigned count = 0;

    for (unsigned i = 0; i < world->plan.servers; i++)
        count += reach_fails(promise->process, world->nodes[i], promise->asked) || waits_long(promise, world->nodes[i]);
    return count;
}

/* The longest that a token may live where its release was refused. */
static int64_t longest_life(const struct judge *judge) {
    int64_t longest = 0;

    for (unsigned key = 0; key < judge->world->plan.keys; key++)
        longest = judge->keys[key].longest > longest ? judge->keys[key].longest : longest;
    return longest + longest / 50;
}

/* Whether a close has to say that something is left: a node refused to delete it, and its ttl is not over. */
static bool leaves_something(const struct promise *promise) {
    const struct world *world = promise->process->world;
    bool leaves = false;

    for (unsigned i = 0; i < world->plan.servers; i++)
        leaves |=
            world->nodes[i]->refused && world->nodes[i]->refused_until + longest_life(world->judge) >= promise->asked;
    return leaves && promise->kind == P_CLOSE;
}

static bool acquires(const struct promise *promise) {
    return promise->kind == P_ACQUIRE || promise->kind == P_RUN || promise->kind == P_HOLD;
}

/* Whether a call of the kind may end so. */
static bool fits(const struct judge *judge, const struct promise *promise, int status) {
    unsigned nodes = judge->world->plan.nodes;

    switch (status) {
    case EVLOCK_OK:
    case EVLOCK_ECANCELLED:
        return true;
    case EVLOCK_EUNREACHABLE:
        return unreachable(promise) > 0 || leaves_something(promise);
    case EVLOCK_EHELD:
        return acquires(promise);
    case EVLOCK_ETIMEDOUT:
        return acquires(promise) && promise->kind != P_HOLD;
    case EVLOCK_EREPLICAS:
        return acquires(promise) && promise->handle->replicas > 0;
    case EVLOCK_EFENCE:
        return acquires(promise) &&
               (!judge->world->scenario->exclusive || breaking(judge, promise->handle->key, judge->world->now));
    case EVLOCK_EREFUSED:
        return judge->world->plan.errors || judge->world->plan.cluster || acquires(promise);
    case EVLOCK_ENOTOWNED:
        return promise->kind != P_ACQUIRE && promise->kind != P_HOLD && promise->kind != P_CLOSE &&
               promise->kind != P_QUERY;
    case EVLOCK_ELOST:
        return promise->kind == P_EXTEND || promise->kind == P_RUN;
    case EVLOCK_ENOTHELD:
        return promise->kind == P_BREAK || promise->kind == P_RUN ||
               promise->kind == P_RELEASE; /* of a hold or a run that waited, or a body that handed its lease over */
    case EVLOCK_EEXCLUDED:
        return judge->world->plan.closed;
    case EVLOCK_EQUORUM:
        return nodes > 1 && ((promise->kind != P_QUERY && promise->kind != P_BREAK) ||
                             unreachable(promise) >= nodes - nodes / 2); /* else nodes may just disagree */
    case EVLOCK_EPERM:
    case EVLOCK_EAUTH:
    case EVLOCK_EWRONGTYPE:
    case EVLOCK_EUNSUPPORTED:
    case EVLOCK_EPROTOCOL:
        return judge->world->plan.errors;
    default:
        return false;
    }
}

/* A clock may be fast or slow, by a little. */
static int64_t with_grain(int64_t time) {
    return time + time / 10 + MS;
}

/* After a process stood still, also in its own code, what it waits for is given as much time again: so much at most. */
static int64_t recovery(const struct process *process) {
    return with_grain(process->command_timeout < 100 * MS ? process->command_timeout : 100 * MS);
}

static void check_in_time(const struct promise *promise) {
    const struct process *process = promise->process;
    int64_t still = process->still_until, from = promise->asked > still ? promise->asked : still;
    int64_t now = process->world->now; /* and not what its own code took, just now */

    if (promise->limit != NEVER && !process->crashed && now > from + with_grain(promise->limit) + recovery(process))
        violated(process->world, "call %u, a %s, took %" PRId64 " us, and has %" PRId64, promise->number,
                 kinds[promise->kind], now - from, promise->limit);
}

/* An extension that did not run has moved no deadline in. One that is given up late may run yet, and the next one may
 * be on its way. */
static void check_refused(const struct promise *promise, int status) {
    const struct handle *handle = promise->handle;
    struct world *world = promise->process->world;
    int64_t took = world->now - promise->asked;

    if (promise->kind != P_EXTEND || !promise->kept || status != EVLOCK_EREFUSED || world->plan.nodes > 1 ||
        handle->doing != HOLDING || handle->extends > 1 || took > promise->limit / 2)
        return;
    if (believed_until(handle) < promise->kept - 2 * MS)
        violated(world, "h%u: call %u was refused, and the lease is shorter for that", handle->number, promise->number);
}

void judge_told(struct promise *promise, const evlock *lock, int status) {
    struct world *world = promise->process->world;
    const struct handle *handle = promise->handle;

    note(world, promise->process, "  call %u, a %s of h%u, ends: %s%s%s", promise->number, kinds[promise->kind],
         handle ? handle->number : 0, evlock_strerror(status), evlock_last_error()[0] ? ": " : "", evlock_last_error());
    if (!promise->made)
        violated(world, "call %u was told before it had returned", promise->number);
    else if (promise->told)
        violated(world, "call %u, a %s, was told twice", promise->number, kinds[promise->kind]);
    else if (!fits(world->judge, promise, status))
        violated(world, "call %u, a %s, ends so: %s", promise->number, kinds[promise->kind], evlock_strerror(status));
    else if (handle && promise->kind != P_RUN && lock != handle->lock)
        violated(world, "call %u was told with another handle", promise->number);
    promise->told = true;
    check_in_time(promise);
    check_refused(promise, status);
    duties_told(promise, status);
    if (promise->kind == P_EXTEND)
        promise->handle->extends--;
    if (promise->kind == P_BREAK) { /* among several nodes, it goes on with those that are slow */
        world->judge->keys[handle->key].breaks--;
        world->judge->keys[handle->key].broken_until = world->now + judge_patience(world->judge);
    }
    if (acquires(promise)) {
        promise->handle->gave_up = world->now;
        *(promise->grouped ? &promise->handle->gave_up_group[promise->fenced] : &promise->handle->gave_up_alone) =
            world->now;
    }
    if (promise->kind != P_CLOSE)
        judge_callback(world->judge, promise->process);
}

void judge_question(struct promise *promise, unsigned what) {
    questions_open(promise->process->world->judge->questions, promise, what);
}

void judge_answer(struct promise *promise, int status, const evlock_answer *answer) {
    questions_close(promise->process->world->judge->questions, promise, status, answer);
}

/* What lapses may be over at any time, without a word. */
static bool believes(const struct handle *handle) {
    return handle->doing == HOLDING && handle->lock && (handle->lapses || evlock_is_held(handle->lock));
}

/* Nothing else is told before a loss. */
void judge_callback(struct judge *judge, struct process *process) {
    struct handle *handle;

    if (process->crashed || !process->serving)
        return;
    TAILQ_FOREACH (handle, &judge->holders, holding)
        if (handle->process == process && handle->client == process->client_number && !believes(handle))
            violated(judge->world, "h%u: something was told before the loss", handle->number);
}

void judge_enter(struct judge *judge, struct process *process) {
    struct handle *handle;

    process->serving = true;
    process->closes = false;
    TAILQ_FOREACH (handle, &judge->holders, holding)
        handle->overdue = handle->process == process && !believes(handle);
}

void judge_leave(struct judge *judge, struct process *process) {
    struct handle *handle;

    process->serving = false;
    TAILQ_FOREACH (handle, &judge->holders, holding)
        if (handle->process == process && handle->overdue && !process->crashed && !process->closes)
            violated(judge->world, "h%u: code ran past the deadline without telling the loss", handle->number);
}

/* --- Tokens ------------------------------------------------------------------------------------------------------- */

static struct token **place_of(struct judge *judge, const char *bytes, size_t len) {
    uint32_t hash = 2166136261U;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 16777619U;
    return &judge->tokens[hash % PLACES];
}

static struct token *find_token(struct judge *judge, const char *bytes, size_t len) {
    struct token *token = *place_of(judge, bytes, len);

    while (token && (token->len != len || memcmp(token->bytes, bytes, len) != 0))
        token = token->next;
    return token;
}

/* A token that the library has drawn may have its holder's name before it, and a slash: how long these are. */
static size_t name_len(const char *bytes, size_t len) {
    return len > DRAWN && bytes[len - DRAWN - 1] == '/' ? len - DRAWN : 0;
}

struct token *judge_known(struct judge *judge, const char *bytes, size_t len) {
    size_t name = name_len(bytes, len);
    struct token *token = find_token(judge, bytes + name, len - name);

    if (token && name)
        snprintf(token->name, sizeof(token->name), "%.*s", (int)name - 1, bytes);
    return token;
}

static struct owner *owner_of(struct token *token, unsigned client) {
    for (unsigned i = 0; i < token->owner_count; i++)
        if (token->owners[i].client == client)
            return &token->owners[i];
    return NULL;
}

bool judge_owns(struct token *token, unsigned client) {
    return owner_of(token, client) != NULL;
}

struct token *judge_token(struct judge *judge, const char *bytes, size_t len, unsigned client) {
    struct token *token = judge_known(judge, bytes, len);
    struct owner *owner;

    if (!token) {
        struct token **place = place_of(judge, bytes, len);
        token = calloc(1, sizeof(*token));
        token->len = len;
        memcpy(token->bytes, bytes, len);
        token->next = *place;
        *place = token;
    }
    owner = owner_of(token, client);
    if (!owner && token->owner_count == sizeof(token->owners) / sizeof(token->owners[0]))
        owner = &token->owners[0];
    else if (!owner)
        owner = &token->owners[token->owner_count++];
    *owner = (struct owner){.client = client, .finished = NEVER};
    token->broken = false;
    return token;
}

void judge_reuses(struct judge *judge, const char *own, unsigned client) {
    struct token *token = judge_token(judge, own, strlen(own), client);

    token->own = true;
    token->spared = token->queued = false; /* whoever used it before */
}

/* --- Handles ------------------------------------------------------------------------------------------------------ */

struct handle *judge_handle(struct judge *judge, struct process *process, unsigned key) {
    struct handle *handle = calloc(1, sizeof(*handle));

    handle->process = process;
    handle->client = process->client_number;
    handle->key = key;
    handle->number = ++judge->next_handle;
    TAILQ_INSERT_TAIL(&judge->handles, handle, link);
    return handle;
}

struct handle *judge_find(struct judge *judge, const evlock *lock) {
    struct handle *handle;

    TAILQ_FOREACH (handle, &judge->handles, link)
        if (handle->lock == lock)
            return handle;
    return NULL;
}

unsigned judge_waiting(const struct judge *judge, unsigned key, unsigned client, uint64_t *places) {
    return turns_waiting(judge->turns, key, client, places);
}

unsigned judge_pending(const struct judge *judge, unsigned client, unsigned key) {
    const struct handle *handle;
    unsigned count = 0;

    TAILQ_FOREACH (handle, &judge->handles, link)
        count += handle->client == client && handle->key == key &&
                 (handle->doing == ACQUIRING || judge->world->now - handle->gave_up < judge_patience(judge) / 2);
    return count;
}

void judge_each_holder(struct judge *judge, const struct wire *wire,
                       void (*look)(struct handle *handle, const struct wire *wire)) {
    struct handle *handle;

    TAILQ_FOREACH (handle, &judge->holders, holding)
        if (handle->process == wire->process && handle->client == wire->client)
            look(handle, wire);
}

void judge_each_handle(const struct judge *judge, const struct process *process,
                       void (*look)(struct handle *handle, void *arg), void *arg) {
    struct handle *handle;

    TAILQ_FOREACH (handle, &judge->handles, link)
        if (!handle->process->crashed &&
            (!process || (handle->process == process && handle->client == process->client_number)))
            look(handle, arg);
}

struct handle *judge_acquiring(const struct judge *judge, unsigned client, unsigned key) {
    struct handle *handle;

    if (judge_pending(judge, client, key) != 1)
        return NULL;
    TAILQ_FOREACH (handle, &judge->handles, link)
        if (handle->client == client && handle->key == key && handle->doing == ACQUIRING)
            return handle;
    return NULL;
}

/* Where nothing is lost, a majority has counted as far as any fence that is told: also if it came with a pass. */
static void check_counted(const struct handle *handle, uint64_t fence) {
    const struct world *world = handle->process->world;
    const struct scenario *scenario = world->scenario;
    const char *key = judge_key(handle->key), *counter;
    unsigned counted = 0;
    char name[32];
    size_t len;

    if (!scenario->exclusive || scenario->loses_data || scenario->fails_over || scenario->waits || scenario->cluster ||
        handle->process->left_out)
        return;
    snprintf(name, sizeof(name), strchr(key, '{') ? "%s::fence" : "{%s}:fence", key);
    for (unsigned i = 0; i < world->plan.servers; i++) {
        counter = sim_server_get(node_now(world->nodes[i]), name, strlen(name), &len);
        counted += counter && strtoull(counter, NULL, 10) >= fence;
    }
    if (counted < world->plan.nodes / 2 + 1)
        violated(handle->process->world, "h%u: %u nodes have counted up to its fence %" PRIu64, handle->number, counted,
                 fence);
}

/* Fences grow with grants: with all that were told before, or, where holders may overlap, before it was asked for. */
static void check_fence(struct handle *handle, bool fenced) {
    struct judge *judge = handle->process->world->judge;
    struct key *key = &judge->keys[handle->key];
    bool strict =
        judge->world->scenario->exclusive && !handle->token->broken && !breaking(judge, handle->key, judge->world->now);
    uint64_t fence = evlock_fence(handle->lock), before = strict ? key->fence : handle->fence_before;

    if ((fence != 0) != fenced)
        violated(judge->world, "h%u: a fence of %" PRIu64 " where %s was asked for", handle->number, fence,
                 fenced ? "one" : "none");
    else if (fenced && fence <= before)
        violated(judge->world, "h%u: the fence %" PRIu64 " comes after %" PRIu64, handle->number, fence, before);
    else if (fenced)
        check_counted(handle, fence);
    if (fence > key->fence)
        key->fence = fence;
}

/* A quorum of nodes had as many replicas as the handle wants: also of those that it can reach. */
static void check_replicas(const struct handle *handle) {
    const struct world *world = handle->process->world;
    int64_t asked = handle->token->relay.since_asked; /* of one that is passed on, nobody asks again */
    unsigned count = 0;

    for (unsigned i = 0; i < world->plan.servers; i++)
        count += world->nodes[i] != handle->process->left_out && node_had(world->nodes[i], handle->replicas, asked);
    if (handle->pending->kind != P_ADOPT && count < world->plan.nodes / 2 + 1)
        violated(handle->process->world, "h%u was granted, and %u nodes had %u replicas", handle->number, count,
                 handle->replicas);
}

static void note_ttl(struct owner *owner, int64_t ttl) {
    if (ttl && (!owner->ttl || owner->ttl > ttl))
        owner->ttl = ttl;
}

void judge_holds(struct handle *handle, bool fenced) {
    struct world *world = handle->process->world;
    const char *bytes;
    size_t len = 0;

    if (handle->doing != HOLDING)
        TAILQ_INSERT_TAIL(&world->judge->holders, handle, holding);
    handle->doing = HOLDING;
    handle->overdue = false;
    handle->warned = 0;
    handle->extended = handle->pending && handle->pending->kind == P_ADOPT; /* it has the ttl that it was found with */
    handle->since = process_time(handle->process); /* what ran before it on the stack took its time */
    handle->refused_at = handle->asked_at = handle->back_at = 0;
    world->tally->grants++;
    bytes = tokens_peek(handle->lock, &len);
    if (!evlock_is_held(handle->lock) || !bytes) {
        violated(world, "h%u: told as held, and is not", handle->number);
        return;
    }
    handle->token = judge_known(world->judge, bytes, len);
    if (!handle->token || !owner_of(handle->token, handle->client)) {
        violated(world, "h%u: holds by a token that is not its client's", handle->number);
        return;
    }
    handle->deadline = believed_until(handle); /* and not that of the lease before */
    handle->length = evlock_remaining_ms(handle->lock) == INT64_MAX ? NEVER : evlock_remaining_ms(handle->lock) * MS;
    note_ttl(owner_of(handle->token, handle->client), handle->ttl);
    handle->token->holder = handle;
    handle->token->queued = handle->queued;
    handle->token->loose = handle->token->spared = false;
    handle->token->deleted = 0;
    handle->shortened = false;
    passes_hold(handle);
    owner_of(handle->token, handle->client)->finished = NEVER; /* also if another of its handles gave it up */
    check_fence(handle, fenced);
    check_replicas(handle);
    note(world, handle->process, "  h%u holds, %" PRId64 " ms", handle->number, evlock_remaining_ms(handle->lock));
}

void judge_ends(struct handle *handle, enum doing next) {
    struct owner *owner = handle->token ? owner_of(handle->token, handle->client) : NULL;

    if (owner && owner->finished == NEVER && handle->token->relay.holder == handle)
        owner->finished = process_time(handle->process);
    if (handle->doing == HOLDING)
        TAILQ_REMOVE(&handle->process->world->judge->holders, handle, holding);
    handle->doing = next;
    if (next == LOST || next == RELEASING)
        return;
    if (handle->token && handle->token->holder == handle)
        handle->token->holder = NULL;
    handle->token = NULL;
}

void judge_acquires(struct handle *handle, struct promise *promise) {
    handle->owed = handle->doing == HOLDING;
    judge_ends(handle, ACQUIRING);
    handle->pending = promise;
    handle->fence_before = handle->process->world->judge->keys[handle->key].fence;
}

void judge_hands(struct handle *handle) {
    struct token *token = handle->token;
    struct owner *owner = owner_of(token, handle->client);

    token->loose = token->spared = true;
    token->handed |= handle->process->world->plan.nodes > 1;
    if (owner)
        owner->handed = true;
    judge_ends(handle, IDLE);
}

/* Where servers have a command for that, an unanswered renewal may be one that sets the ttl. */
static bool may_be_refreshed(const struct world *world, const struct token *token) {
    return world->plan.make != SIM_REDIS_7 && !token->own;
}

/* What might be cut short unseen, or join the queue once more, is released before. */
void judge_asks_again(struct handle *handle, struct promise *promise) {
    struct world *world = handle->process->world;
    struct token *token = handle->token;

    token->loose = true; /* what is not adopted is not its to undo */
    token->spared = !handle->shortened && !handle->queued && !may_be_refreshed(world, token);
    judge_acquires(handle, promise);
    judge_token(world->judge, token->bytes, token->len, handle->client);
}

/* Told as released, it was deleted by this client, and not by its ttl. */
void judge_released(struct promise *promise, int status) {
    struct handle *handle = promise->handle;
    struct judge *judge = handle->process->world->judge;

    if (handle->doing != RELEASING)
        return;
    passes_released(handle, status);
    if (status == EVLOCK_OK && !passes_may_go(handle) && judge->world->scenario->exclusive &&
        judge->world->plan.nodes == 1 && !judge->world->plan.closed && !handle->token->broken &&
        !breaking(judge, handle->key, judge->world->now) && handle->token->deleted == 0)
        violated(judge->world, "h%u: told as released, and nothing was deleted", handle->number);
    judge_ends(handle, IDLE);
}

/* A lease that is renewed lasts while nothing is wrong, as one does that has outlived the faults for so long. */
static bool lasts(const struct handle *handle) {
    const struct world *world = handle->process->world;

    return world->calm && handle->renews && handle->max_hold == NEVER && world->now > judge_recovered(world->judge);
}

/* The only node started without its data since the grant, and nothing else made it forget. */
static bool is_other_process(const struct handle *handle) {
    const struct world *world = handle->process->world;
    const struct node *node = world->nodes[0];

    return world->plan.nodes == 1 && !world->plan.errors && !world->plan.breaks && node->emptied_at > handle->since &&
           node->flushed_at < handle->since;
}

/* A refusal has moved its deadline into the past, so nobody could warn of it. */
static bool fell(const struct handle *handle) {
    return process_clock(handle->process) < handle->deadline - 2 * MS;
}

void judge_lost(struct handle *handle, int reason) {
    struct process *process = handle->process;
    struct world *world = process->world;
    bool still = process->still_until >= world->now || process->lag > 0;

    note(world, process, "  h%u lost: %s", handle->number, evlock_strerror(reason));
    world->tally->losses++;
    if (handle->owed) {
        handle->owed = false;
        return;
    }
    if (handle->doing != HOLDING)
        violated(world, "h%u: told lost while it did not hold (%d)", handle->number, handle->doing);
    else if (evlock_is_held(handle->lock))
        violated(world, "h%u: told lost, and still held", handle->number);
    else if ((reason == EVLOCK_EEXPIRED || reason == EVLOCK_EMAXHOLD) && !still && !world->plan.crowd &&
             process_clock(process) > handle->deadline - handle->lead + MS)
        violated(world, "h%u: told lost %" PRId64 " us after the deadline less its lead", handle->number,
                 process_clock(process) - handle->deadline + handle->lead);
    else if (reason == EVLOCK_EEXPIRED && !still && handle->renews && !handle->extended && !handle->warned &&
             !fell(handle) && handle->risk > handle->lead + recovery(process) && /* else the loss may come first */
             process->still_until < world->now - handle->ttl)
        violated(world, "h%u: lost, as it was not renewed, and never told at risk", handle->number);
    else if (reason == EVLOCK_ENOTOWNED && is_other_process(handle))
        violated(world, "h%u: told gone, and not that the server lost its data", handle->number);
    else if (reason == EVLOCK_EEXPIRED && lasts(handle))
        violated(world, "h%u: lost, as it was not renewed", handle->number);
    else if (reason == EVLOCK_EEXPIRED)
        duties_lost(handle);
    passes_lose(handle, reason);
    judge_ends(handle, LOST);
}

/* --- Holds -------------------------------------------------------------------------------------------------------- */

/* It is renewed for as long as it is held for ever. */
void judge_keeps(struct handle *handle, struct promise *promise) {
    judge_acquires(handle, promise);
    handle->hold = promise;
    handle->renews_else = handle->renews;
    handle->renews = handle->ttl != 0;
    if (!handle->interval)
        handle->interval = handle->ttl / 3;
}

void judge_keeps_no_more(struct handle *handle) {
    if (!handle->hold)
        return;
    handle->hold->ended = true;
    handle->hold = NULL;
    handle->renews = handle->renews_else;
}

static bool is_loss(int status) {
    return status == EVLOCK_EEXPIRED || status == EVLOCK_ENOTOWNED || status == EVLOCK_EDATALOSS ||
           status == EVLOCK_EMAXHOLD;
}

/* Who waits in line counts a grant by the server's clock. Where that was set back since it last looked, the grant seems
 * to be over when it comes: no answer has come in time then. */
static bool is_late(const struct promise *promise, int status) {
    const struct node *node = promise->process->world->nodes[0];

    return status == EVLOCK_EUNREACHABLE && promise->handle->queued && node->set_back_at > promise->asked;
}

/* Each report is a change, and fits what the handle does. Its end is told once, and by none but its user. */
static void check_report(const struct promise *promise, const evlock *lock, int status) {
    struct world *world = promise->process->world;
    const struct handle *handle = promise->handle;

    if (!promise->made)
        violated(world, "h%u: a hold reported before it had returned", handle->number);
    else if (promise->told)
        violated(world, "h%u: a hold reported after its end: %s", handle->number, evlock_strerror(status));
    else if (promise->ended != (status == EVLOCK_ECANCELLED))
        violated(world, "h%u: a hold that was %sended reports: %s", handle->number, promise->ended ? "" : "not ",
                 evlock_strerror(status));
    else if (promise->made && promise->reported == status)
        violated(world, "h%u: a hold reports twice: %s", handle->number, evlock_strerror(status));
    else if (lock != handle->lock)
        violated(world, "h%u: a hold reports with another handle", handle->number);
    else if (!is_loss(status) && !fits(world->judge, promise, status) && !is_late(promise, status))
        violated(world, "h%u: a hold reports: %s", handle->number, evlock_strerror(status));
    else if (status != EVLOCK_ECANCELLED && is_loss(status) != (handle->doing == HOLDING))
        violated(world, "h%u: a hold that %s reports: %s", handle->number, handle->doing == HOLDING ? "holds" : "waits",
                 evlock_strerror(status));
    else if (status != EVLOCK_OK && !promise->ended && evlock_is_held(lock))
        violated(world, "h%u: a hold holds, and reports: %s", handle->number, evlock_strerror(status));
}

void judge_reported(struct promise *promise, const evlock *lock, int status) {
    struct handle *handle = promise->handle;

    note(promise->process->world, promise->process, "  h%u, to be held, is: %s%s%s", handle->number,
         evlock_strerror(status), evlock_last_error()[0] ? ": " : "", evlock_last_error());
    check_report(promise, lock, status);
    promise->reported = status;
    promise->told |= status == EVLOCK_ECANCELLED;
    if (is_loss(status)) {
        judge_lost(handle, status);
        judge_acquires(handle, promise);
        return;
    }
    if (status == EVLOCK_ECANCELLED)
        handle->gave_up = handle->gave_up_alone = promise->process->world->now;
    if (status == EVLOCK_OK && handle->lock && !promise->told)
        judge_holds(handle, promise->fenced);
    judge_callback(promise->process->world->judge, promise->process);
}

/* --- Clients ------------------------------------------------------------------------------------------------------ */

/* A close lets bodies go on. */
static bool outlasts_close(const struct handle *handle) {
    return handle->runs && handle->doing != ACQUIRING;
}

void judge_client_ends(struct judge *judge, struct process *process, bool closes) {
    struct handle *handle;

    TAILQ_FOREACH (handle, &judge->handles, link)
        if (handle->process == process && handle->client == process->client_number &&
            !(closes && outlasts_close(handle))) {
            judge_keeps_no_more(handle);
            judge_ends(handle, IDLE);
        }
}

void judge_lets_lapse(struct judge *judge, struct process *process) {
    struct handle *handle;

    TAILQ_FOREACH (handle, &judge->handles, link)
        handle->lapses |= handle->process == process && handle->runs;
}

/* An extension that is not answered may have moved the deadline in, which can no longer be asked for. */
static void leave_to_parent(struct judge *judge, const struct handle *handle) {
    struct key *key = &judge->keys[handle->key];
    int64_t until = handle->deadline == NEVER ? NEVER : clock_when(&handle->process->clock, handle->deadline);

    if (handle->shortened || until <= judge->world->now)
        return;
    key->parents = handle->token;
    key->parents_until = until;
}

/* What a client that has been freed will tell is nobody's in a child. */
static bool goes_untold(const struct promise *promise) {
    const struct handle *handle = promise->handle;

    return !promise->process->client || (handle && handle->client != promise->process->client_number);
}

void judge_forsakes(struct judge *judge, struct process *process) {
    struct promise *promise;
    struct handle *handle;

    TAILQ_FOREACH (handle, &judge->holders, holding)
        if (handle->process == process)
            leave_to_parent(judge, handle);
    TAILQ_FOREACH (promise, &judge->promises, link) {
        if (promise->process != process || !promise->made || promise->told)
            continue;
        judge->world->forks.leaves_some |= goes_untold(promise);
        if (promise->kind == P_QUERY)
            judge_answer(promise, EVLOCK_ECANCELLED, NULL);
        judge_told(promise, promise->handle ? promise->handle->lock : NULL, EVLOCK_ECANCELLED);
    }
    TAILQ_FOREACH (handle, &judge->handles, link)
        if (handle->process == process)
            judge_ends(handle, IDLE);
}

void judge_unclean(struct judge *judge, unsigned client) {
    judge->unclean[client % CLIENTS_MAX] = true;
}

void judge_breaks(struct judge *judge, unsigned key) {
    judge->keys[key].breaks++;
}

void judge_ttl(struct judge *judge, unsigned key, int64_t ttl) {
    if (judge->keys[key].longest < ttl)
        judge->keys[key].longest = ttl;
}

/* --- The servers -------------------------------------------------------------------------------------------------- */

static int key_index(const char *key, size_t len) {
    char *end;
    unsigned long number;

    for (unsigned i = 0; i < KEYS_FEW; i++)
        if (strlen(judge_key(i)) == len && memcmp(judge_key(i), key, len) == 0)
            return (int)i;
    if (len < 6 || len > 8 || memcmp(key, "lock:", 5) != 0)
        return -1;
    number = strtoul(key + 5, &end, 10);
    return end == key + len && number >= KEYS_FEW && number < KEYS_MAX ? (int)number : -1;
}

static struct token *token_on(struct judge *judge, struct node *node, unsigned key) {
    size_t len;
    const char *bytes = sim_server_get(node->server, judge_key(key), strlen(judge_key(key)), &len);

    return bytes ? judge_known(judge, bytes, len) : NULL;
}

/* Where connections are not ended, a command that was lost with one may run at any time; for a ttl that is seen to, by
 * a process that runs and reaches the node. */
bool judge_comes_late(const struct judge *judge, int64_t ttl) {
    const struct wire *wire = judge->world->feeding;
    int64_t parted_until = wire->process->parted_until[wire->node->index];
    int64_t seen = judge->world->now;

    if (seen < wire->process->still_until)
        seen = wire->process->still_until;
    if (seen < parted_until)
        seen = parted_until;
    return wire->node->spares && !wire->connection && seen - wire->gone_at > ttl - ttl / 10;
}

/* A token of the caller's own is used again; what comes late of its use before hurts it. */
static bool hurts_own(const struct judge *judge, const struct token *token) {
    return token->own && judge_comes_late(judge, judge->world->plan.unit / 4);
}

/* Only its owner deletes a token, when it has no more use for it; or somebody breaks the lock. */
static void check_delete(struct judge *judge, struct token *token, unsigned key, unsigned client) {
    struct handle *holder = token->holder;
    bool owned = owner_of(token, client) != NULL;

    if (judge->turns && turns_granted(judge->turns, token))
        return; /* taken back: its waiter could not be told */
    if (breaking(judge, key, judge->world->feeding_sent) || hurts_own(judge, token)) {
        token->broken = true;
    } else if (!owned) {
        violated(judge->world, "client %u deletes another's lock", client);
    } else if (holder && believes(holder)) {
        violated(judge->world, "client %u deletes the lock that h%u holds", client, holder->number);
    } else if (token->spared) {
        violated(judge->world, "client %u deletes a lock that it handed over, or did not get", client);
    }
    token->deleted += owned;
}

static void check_del(struct judge *judge, struct node *node, struct token *token, unsigned key) {
    check_delete(judge, token, key, judge->world->feeding->client);
    if (judge->turns && !breaking(judge, key, judge->world->feeding_sent))
        turns_delete(judge->turns, node, key, token);
}

/* A holder that hangs sends nothing that prolongs its lease, however long that had to wait. Where its code takes time,
 * what is written at its end was decided before. */
static void check_hung(const struct judge *judge, const struct token *token) {
    const struct world *world = judge->world;
    const struct handle *holder = token->holder;

    if (holder && holder->doing == HOLDING && holder->max_hold != NEVER && !holder->extended && !world->plan.lag &&
        !world->plan.crowd && !world->scenario->beyond && holder->client == world->feeding->client &&
        world->feeding_sent > holder->since + holder->max_hold + holder->max_hold / 50 + 2 * MS)
        violated(judge->world, "h%u: renewed beyond its max_hold", holder->number);
}

static bool shortens(const struct node *node, unsigned key, int64_t ttl) {
    int64_t expiry = sim_server_expiry(node->server, judge_key(key), strlen(judge_key(key)));

    return expiry == -1 || clock_read(&node->clock, node->world->now) + ttl < expiry - 2 * MS;
}

/* Where connections are not ended, what was lost with one and may cut a lease short is waited out for as long as the
 * token may live. Behind that, nothing is held back for it, and it may come yet. */
static bool outlives_wait(const struct judge *judge, const struct owner *owner) {
    const struct wire *wire = judge->world->feeding;

    return wire->node->spares && !wire->connection && owner->ttl && judge->world->now - wire->gone_at > owner->ttl;
}

/* Where connections are not ended, what was lost with one may still be added to what a newer one has made up for it. */
static int64_t longest_ttl(const struct judge *judge, struct token *token, unsigned key) {
    const struct wire *wire = judge->world->feeding;

    token->strayed |= wire->node->spares && !wire->connection;
    return judge->keys[key].longest + token->added * (token->strayed ? 2 : 1);
}

/* Only its owner prolongs a token, until it has no more use for it: at most what was on its way then comes late. */
static void check_prolong(struct judge *judge, struct node *node, struct token *token, unsigned key, int64_t ttl,
                          bool only_longer) {
    struct owner *owner = owner_of(token, judge->world->feeding->client);
    const struct scenario *scenario = judge->world->scenario;
    bool cuts = !only_longer && shortens(node, key, ttl);

    if (!owner) {
        violated(judge->world, "client %u prolongs another's lock", judge->world->feeding->client);
        return;
    }
    token->broken |= hurts_own(judge, token);
    check_hung(judge, token);
    if (cuts && outlives_wait(judge, owner))
        token->broken = true;
    else if (cuts && owner->handed)
        violated(judge->world, "client %u cuts short a lock that it has handed over", owner->client);
    if (judge->world->feeding_sent > owner->finished && ++owner->late[node->index] > 1)
        violated(judge->world, "client %u prolongs a lock that it has given up", owner->client);
    if (ttl > longest_ttl(judge, token, key) + 2 * MS && !scenario->steps && !scenario->promotes) /* as clocks went */
        violated(judge->world, "a lock is to live for %" PRId64 " ms, longer than was asked for", ttl / MS);
}

/* A release hands the lock on, or who looks finds it free, and it is the first one's in the queue. */
static void check_grant(struct judge *judge, struct node *node, unsigned key, struct token *there,
                        const char *const *argv, const size_t *lens) {
    struct token *token = judge_known(judge, argv[2], lens[2]);

    if (!token) {
        violated(judge->world, "granted to nobody");
        return;
    }
    if (there)
        check_delete(judge, there, key, judge->world->feeding->client);
    token->set_at[node->index] = judge->world->now;
    turns_grant(judge->turns, node, key, token);
}

/* A node that may have forgotten locks grants none before they have ended. Where clients wait that out, who had the
 * lock has it set again, but not as long as the server of before might grant it. */
static void check_excluded(const struct judge *judge, const struct node *node, const struct token *token) {
    const struct plan *plan = &judge->world->plan;
    int64_t since = judge->world->now - node->replaced_at;
    int64_t least = token && token->set_at[node->index] && plan->closed ? plan->closed : plan->closed + plan->max_ttl;

    if (judge->world->scenario->promotes)
        return; /* that is to show by its harm */
    if ((plan->nodes > 1 || plan->closed) && !plan->durable && node->replaced_at != NEVER && since < least - least / 50)
        violated(judge->world, "client %u is granted a lock by node %u, which may have forgotten it %" PRId64 " us ago",
                 judge->world->feeding->client, node->index, since);
}

static void check_set(struct judge *judge, struct node *node, unsigned key, int argc, const char *const *argv,
                      const size_t *lens) {
    struct token *there = token_on(judge, node, key), *token = judge_known(judge, argv[2], lens[2]);
    bool only_new = argc > 3 && strcasecmp(argv[3], "NX") == 0;

    if (there && only_new && token)
        duties_denied(node, token, key);
    if (there && only_new)
        return;
    check_excluded(judge, node, token);
    if (judge->turns && !only_new) {
        check_grant(judge, node, key, there, argv, lens);
        return;
    }
    if (there && there != token)
        violated(judge->world, "client %u overwrites another's lock", judge->world->feeding->client);
    else if (!token || !owner_of(token, judge->world->feeding->client))
        violated(judge->world, "client %u sets a token that is not its own", judge->world->feeding->client);
    else
        token->set_at[node->index] = judge->world->now;
    if (token)
        token->late = judge_comes_late(judge, argc > 5 ? strtoll(argv[5], NULL, 10) * MS : 0);
}

/* The counter of a lock's fences only grows. */
static void check_counter(struct judge *judge, struct node *node, int argc, const char *const *argv,
                          const size_t *lens) {
    size_t len;
    const char *before = sim_server_get(node->server, argv[1], lens[1], &len);

    if (argc > 2 && before && strtoull(argv[2], NULL, 10) <= strtoull(before, NULL, 10))
        violated(judge->world, "the counter of the fences goes from %s to %s", before, argv[2]);
}

static void note_command(struct world *world, const struct node *node, int argc, const char *const *argv) {
    char line[200] = "";
    size_t len = 0;

    if (!world->noting)
        return;
    for (int i = 0; i < argc && len < sizeof(line) - 50; i++)
        len += (size_t)snprintf(line + len, sizeof(line) - len, " %.*s", strlen(argv[i]) > 40 ? 10 : 40, argv[i]);
    note(world, world->feeding->process, "w%-3u n%u%s runs%s", world->feeding->number, node->index,
         node->former ? " of before" : "", line);
}

/* Many renewals in one command: "EVALSHA digest N keys ttl tokens", or, in a cluster, "EVALSHA digest 0 ttl keys
 * tokens", of which no other script has as many. */
static void count_batch(struct tally *tally, int argc, const char *const *argv) {
    int keys = argc > 3 && strncasecmp(argv[0], "EVAL", 4) == 0 ? atoi(argv[2]) : -1;
    int count = keys == 0 ? (argc - 4) / 2 : keys;

    if (argc != 4 + 2 * count || (count != 2 && count < 4))
        return;
    tally->batches++;
    tally->batched += (uint64_t)count;
    tally->full_batches += count >= 100;
}

/* A server's own command changes the key only where it finds the token. */
static struct token *named_on(struct judge *judge, struct node *node, unsigned key, const char *bytes, size_t len) {
    struct token *there = token_on(judge, node, key);

    return there && there == judge_known(judge, bytes, len) ? there : NULL;
}

static void check_refresh(struct judge *judge, struct node *node, unsigned key, const char *const *argv,
                          const size_t *lens) {
    struct token *token = named_on(judge, node, key, argv[4], lens[4]);

    if (lens[2] != lens[4] || memcmp(argv[2], argv[4], lens[2]) != 0)
        violated(judge->world, "a renewal sets another token");
    if (token)
        check_prolong(judge, node, token, key, strtoll(argv[6], NULL, 10) * MS, false);
}

/* Whether it was one of these. */
static bool check_native(struct judge *judge, struct node *node, unsigned key, int argc, const char *const *argv,
                         const size_t *lens) {
    bool refresh = argc == 7 && strcasecmp(argv[0], "SET") == 0 && strcasecmp(argv[3], "IFEQ") == 0;
    bool deletes = strcasecmp(argv[0], "DELIFEQ") == 0 || strcasecmp(argv[0], "DELEX") == 0;
    struct token *token;

    if (refresh)
        check_refresh(judge, node, key, argv, lens);
    else if (deletes && (token = named_on(judge, node, key, argv[argc - 1], lens[argc - 1])))
        check_del(judge, node, token, key);
    return refresh || deletes;
}

void judge_watch(void *arg, sim_session *session, int argc, const char *const *argv, const size_t *lens) {
    struct node *node = arg;
    struct world *world = node->world;
    struct judge *judge = world->judge;
    struct token *token;
    int key = argc > 1 ? key_index(argv[1], lens[1]) : -1;

    (void)session;
    world->tally->commands++;
    count_batch(world->tally, argc, argv);
    questions_look(judge->questions, node);
    note_command(world, node, argc, argv);
    duties_command(node, argc, argv, lens, false);
    if (judge->turns)
        turns_command(judge->turns, node, argc, argv, lens);
    if (key < 0) {
        if (argc > 1 && lens[1] > 6 && memcmp(argv[1] + lens[1] - 6, ":fence", 6) == 0 &&
            strcasecmp(argv[0], "SET") == 0)
            check_counter(judge, node, argc, argv, lens);
        return;
    }
    if (check_native(judge, node, (unsigned)key, argc, argv, lens))
        return;
    if (strcasecmp(argv[0], "SET") == 0)
        check_set(judge, node, (unsigned)key, argc, argv, lens);
    else if (strcasecmp(argv[0], "DEL") == 0 && (token = token_on(judge, node, (unsigned)key)))
        check_del(judge, node, token, (unsigned)key);
    else if (strcasecmp(argv[0], "PEXPIRE") == 0 && (token = token_on(judge, node, (unsigned)key)))
        check_prolong(judge, node, token, (unsigned)key, strtoll(argv[2], NULL, 10) * MS, argc > 3);
}

void judge_refused(void *arg, sim_session *session, int argc, const char *const *argv, const size_t *lens) {
    (void)session;
    duties_command(arg, argc, argv, lens, true);
}

void judge_foreign(struct judge *judge, unsigned key, const char *bytes, size_t len, int64_t ttl) {
    struct key *lock = &judge->keys[key];

    lock->foreign = judge_token(judge, bytes, len, 0);
    lock->foreign->loose = true;
    for (unsigned i = 0; i < NODES_MAX; i++)
        lock->foreign->set_at[i] = judge->world->now;
    lock->foreign_until = judge->world->now + ttl - ttl / 50 - 2 * MS;
    judge_ttl(judge, key, ttl);
}

void judge_foreign_ends(struct judge *judge, unsigned key) {
    judge->keys[key].foreign_until = 0;
}

bool judge_foreign_holds(const struct judge *judge, unsigned key) {
    return judge->keys[key].foreign_until != 0;
}

void judge_forgets(struct judge *judge, struct node *node) {
    node_now(node);
    for (unsigned key = 0; key < judge->world->plan.keys; key++) {
        struct token *token = token_on(judge, node, key);
        if (token)
            token->promised |= 1U << node->index;
    }
}

void judge_carries(struct judge *judge, const struct node *from, struct node *to, const char *key, size_t len) {
    int index = key_index(key, len);
    struct token *token = index < 0 ? NULL : token_on(judge, to, (unsigned)index);

    if (token)
        token->set_at[to->index] = token->set_at[from->index];
    if (judge->turns)
        turns_carry(judge->turns, key, len);
}

void judge_succeeds(struct judge *judge, const struct node *before, struct node *after) {
    for (unsigned key = 0; key < judge->world->plan.keys; key++)
        judge_carries(judge, before, after, judge_key(key), strlen(judge_key(key)));
    if (judge->turns)
        turns_carry(judge->turns, NULL, 0);
    questions_look(judge->questions, after);
}

void judge_resurrects(struct judge *judge, struct node *node) {
    judge->resurrected[node->index] = true;
}

/* --- Looks -------------------------------------------------------------------------------------------------------- */

/* Whether the node keeps the holder's token for as long as the holder believes; or had to forget it. */
static bool keeps(struct node *node, const struct handle *handle) {
    const struct token *token = handle->token;
    const char *key = judge_key(handle->key), *bytes;
    int64_t expiry;
    size_t len;

    if (token->promised & 1U << node->index)
        return true;
    bytes = sim_server_get(node_now(node), key, strlen(key), &len);
    if (!bytes || len < token->len || memcmp(bytes + len - token->len, token->bytes, token->len) != 0)
        return false;
    expiry = sim_server_expiry(node->server, key, strlen(key));
    return expiry == -1 || (handle->deadline != NEVER &&
                            clock_when(&node->clock, expiry) >= clock_when(&handle->process->clock, handle->deadline));
}

/* Of a node whose place was taken, either server may. */
static bool either_keeps(const struct world *world, unsigned index, const struct handle *handle) {
    return keeps(world->nodes[index], handle) || (world->promotion.former && keeps(world->promotion.former, handle));
}

/* Who believes has a majority behind it. */
static void check_belief(const struct judge *judge, const struct handle *handle) {
    unsigned nodes = judge->world->plan.nodes, count = 0;

    if (handle->token->broken || !judge->world->scenario->exclusive)
        return;
    for (unsigned i = 0; i < judge->world->plan.servers; i++)
        count += either_keeps(judge->world, i, handle);
    if (count < nodes / 2 + 1)
        violated(judge->world, "h%u believes to hold for %" PRId64 " us more, and %u of %u nodes keep it as long",
                 handle->number, handle->deadline - clock_read(&handle->process->clock, judge->world->now), count,
                 nodes);
}

/* A loss is told by the deadline, unless the process stands still. */
static void check_told(struct judge *judge, const struct handle *handle) {
    if (!handle->process->crashed && handle->process->still_until < judge->world->now)
        violated(judge->world, "h%u: the deadline has passed, and no loss was told", handle->number);
}

/* One that hangs is not renewed for ever. In a crowd it may be told late in a long turn of the loop that it holds. */
static void check_max_hold(struct judge *judge, const struct handle *handle) {
    int64_t longest;

    if (handle->max_hold == NEVER || handle->extended || judge->world->scenario->beyond ||
        judge->world->scenario->steps || judge->world->plan.crowd)
        return;
    longest = handle->max_hold + handle->ttl;
    if (judge->world->now > handle->since + longest + longest / 50)
        violated(judge->world, "h%u: held beyond its max_hold and its ttl", handle->number);
}

/* Of several nodes, each may have forgotten it by then. */
static void check_max_ttl(const struct judge *judge, const struct handle *handle) {
    const struct plan *plan = &judge->world->plan;

    if ((plan->nodes > 1 || plan->closed) && !plan->durable &&
        handle->deadline > process_clock(handle->process) + plan->max_ttl + 2 * MS)
        violated(judge->world, "h%u: believes to hold for longer than max_ttl", handle->number);
}

/* What is not evlock's, or a parent's, and was there first, is respected. */
static void check_foreign(const struct judge *judge, const struct handle *handle) {
    const struct key *key = &judge->keys[handle->key];

    if (!judge->world->scenario->exclusive)
        return;
    if (key->foreign && !key->foreign->broken && key->foreign_until > judge->world->now)
        violated(judge->world, "h%u and another kind of client hold the same lock", handle->number);
    if (key->parents && !key->parents->broken && key->parents_until > judge->world->now)
        violated(judge->world, "h%u and the process that this one is forked from hold the same lock", handle->number);
}

void judge_look(struct judge *judge) {
    const struct handle *holders[KEYS_MAX] = {NULL};
    struct world *world = judge->world;
    struct handle *handle;

    if (world->plan.crowd && ++judge->looks % CROWD_LOOK)
        return;
    TAILQ_FOREACH (handle, &judge->holders, holding) {
        if (!believes(handle)) {
            check_told(judge, handle);
            continue;
        }
        if (!evlock_is_held(handle->lock))
            continue;
        handle->deadline = believed_until(handle);
        check_belief(judge, handle);
        check_max_hold(judge, handle);
        check_max_ttl(judge, handle);
        duties_look(handle);
        if (handle->token->broken)
            continue;
        check_foreign(judge, handle);
        if (holders[handle->key] && world->scenario->exclusive)
            violated(world, "h%u and h%u hold the same lock", holders[handle->key]->number, handle->number);
        world->tally->overlaps += holders[handle->key] != NULL;
        holders[handle->key] = handle;
    }
    questions_look(judge->questions, NULL);
    if (judge->turns)
        turns_look(judge->turns);
    if (world->scenario->passes)
        passes_look(judge);
}

/* Calls work for each key of a lock on each node, with the token there, if it is of evlock's. */
typedef void (*token_look)(struct judge *judge, struct node *node, unsigned key, struct token *token);

static void each_token(struct judge *judge, token_look look) {
    for (unsigned i = 0; i < judge->world->plan.servers; i++) {
        struct node *node = judge->world->nodes[i];
        node_now(node);
        for (unsigned key = 0; key < judge->world->plan.keys; key++) {
            struct token *token = token_on(judge, node, key);
            if (token)
                look(judge, node, key, token);
        }
    }
}

int64_t judge_patience(const struct judge *judge) {
    return 3 * SECOND + 50 * judge->world->plan.latency + 4 * actor_longest_timeout(judge->world) +
           actor_turns(judge->world);
}

int64_t judge_recovered(const struct judge *judge) {
    const struct plan *plan = &judge->world->plan;
    int64_t span = plan->closed + plan->max_ttl;
    int64_t excluded = plan->nodes > 1 || plan->closed ? span + span / 50 + SECOND : 0;

    return judge->world->calm_at + excluded + judge_patience(judge);
}

/* A token may be left to its ttl where its client ended without a word, where a node would not take the command to
 * delete it, where it came back with an old copy, and where nobody has adopted it yet; and in a move that is given up
 * at the old master alone. */
static bool may_be_left(const struct judge *judge, const struct node *node, const struct token *token) {
    /* One that could not leave the queue is set when its turn comes. */
    bool refused = node->refused && (judge->turns || node->refused_until >= token->set_at[node->index]);
    bool unclean =
        token->loose || token->late || refused || judge->resurrected[node->index] || judge->world->scenario->gaps;

    for (unsigned i = 0; i < token->owner_count; i++)
        unclean |= judge->unclean[token->owners[i].client % CLIENTS_MAX];
    return unclean;
}

bool judge_came_back(const struct judge *judge, const struct node *node) {
    return judge->resurrected[node->index];
}

/* It was given up a moment ago, as by a hold that has lost it: what deletes it may be on its way, for as long as a
 * command takes. */
static bool is_being_deleted(const struct judge *judge, const struct token *token) {
    int64_t since = judge->world->now - actor_longest_timeout(judge->world) - actor_turns(judge->world);
    bool recent = false;

    for (unsigned i = 0; i < token->owner_count; i++)
        recent |= token->owners[i].finished != NEVER && token->owners[i].finished > since;
    return recent;
}

/* Who would delete it may keep away, for as long as the node is closed to it. */
static void check_stray(struct judge *judge, struct node *node, unsigned key, struct token *token) {
    bool recent = judge->world->now - token->set_at[node->index] < judge_patience(judge) / 2;

    bool closed = node->closed_until && judge->world->now < node->closed_until + judge_patience(judge);

    if (token->holder || recent || closed || is_being_deleted(judge, token) || may_be_left(judge, node, token))
        return;
    violated(judge->world, "node %u still has a token at %s that nobody holds: %.*s", node->index, judge_key(key),
             (int)token->len, token->bytes);
}

void judge_strays(struct judge *judge) {
    if (!judge->world->violation[0])
        each_token(judge, check_stray);
    if (judge->turns)
        turns_strays(judge->turns);
}

/* Of the close that is being looked at: whose, and when, as the process has it. */
static unsigned closed_client;
static int64_t closed_at;

static void check_closed(struct judge *judge, struct node *node, unsigned key, struct token *token) {
    bool excused = token->loose || token->handed || token->late || node->lied || judge->resurrected[node->index] ||
                   judge->world->scenario->steps || judge->world->scenario->gaps;
    int64_t expiry = sim_server_expiry(node->server, judge_key(key), strlen(judge_key(key)));

    if (token->owner_count == 1 && owner_of(token, closed_client) && !excused &&
        (expiry == -1 || expiry > clock_read(&node->clock, closed_at)))
        violated(judge->world, "client %u was closed in good order, and node %u still has its token at %s: %.*s",
                 closed_client, node->index, judge_key(key), (int)token->len, token->bytes);
}

void judge_closed(struct judge *judge, const struct process *process, unsigned client) {
    closed_client = client;
    closed_at = process_time(process);
    each_token(judge, check_closed);
    if (judge->turns)
        turns_closed(judge->turns, client);
}

/* An attempt on several nodes waits for each of them for a tenth of the ttl, unless told otherwise. In a crowd that
 * polls with ttls as short as its queue of commands, all attempts may be answered too late: those that are undone hold
 * up the others. */
static bool may_starve(const struct judge *judge) {
    const struct handle *handle;
    bool hasty = false;

    TAILQ_FOREACH (handle, &judge->handles, link)
        hasty |= handle->ttl && handle->ttl < 100 * MS;
    return judge->world->plan.crowd && judge->world->plan.nodes > 1 && hasty;
}

void judge_served(struct judge *judge) {
    struct handle *handle;

    if (judge->world->violation[0] || judge->world->plan.eternal || may_starve(judge))
        return;
    TAILQ_FOREACH (handle, &judge->handles, link)
        if (handle->finishing && !handle->served &&
            !handle->process->left_out) /* a use of its own token, over the one path, is not settled over the other */
            violated(judge->world, "h%u was not served within %" PRId64 " ms after the faults", handle->number,
                     actor_patience(judge->world) / MS);
}

static void check_gone(struct judge *judge, struct node *node, unsigned key, struct token *token) {
    int64_t expiry = sim_server_expiry(node->server, judge_key(key), strlen(judge_key(key)));

    if (expiry != -1 || !judge->world->plan.eternal)
        violated(judge->world, "node %u keeps %s beyond its ttl: %.*s", node->index, judge_key(key), (int)token->len,
                 token->bytes);
}

void judge_empty(struct judge *judge) {
    if (judge->world->violation[0])
        return;
    judge->world->now += longest_life(judge);
    each_token(judge, check_gone);
    if (judge->turns)
        turns_empty(judge->turns);
}

/* --- What is left ------------------------------------------------------------------------------------------------- */

static void *resize(void *block, size_t size) {
    void *grown = realloc(block, size);

    blocks += !block && grown;
    return grown;
}

static void release(void *block) {
    blocks -= block != NULL;
    free(block);
}

void judge_memory(void) {
    evlock_set_allocator(resize, release);
}

void judge_leaks(struct world *world) {
    static unsigned told;
    unsigned left = sockets_count() - told;

    if (blocks && !world->forks.leaves_some)
        violated(world, "%ld blocks of memory are left", blocks);
    if (left)
        violated(world, "%u sockets are left", left);
    blocks = 0;
    told += left;
}
