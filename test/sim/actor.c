/* Actors; see actor.h. */
#include "actor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../urls.h"
#include "forks.h"
#include "loop.h"
#include "node.h"
#include "passes.h"

/* A run: a body under a lock. */
struct body {
    TAILQ_ENTRY(body) link;
    struct actor *actor;
    struct handle *handle;
    struct promise *promise;
    enum { WAITS, WORKS, OVER } stage; /* OVER: nothing but `done` is to come */
    struct event end;                  /* of its wait, or of the body */
    bool made;                         /* the handle is the run's */
    bool ran, lost, freed;
    int value; /* that the body returned */
};

/* A token that is handed from one handle to another. */
struct parcel {
    unsigned key;
    size_t len; /* 0: none */
    char token[128];
};

struct actor {
    struct process *process;
    struct world *world;
    TAILQ_HEAD(, handle) handles;
    TAILQ_HEAD(, body) bodies;
    struct event think;
    struct promise *closing;
    struct {
        unsigned client, key;
        char token[64];
    } left;         /* the own token of a handle that has been freed; "": none */
    unsigned depth; /* of calls made inside callbacks */
    bool leaving;
    bool limits_bodies;     /* a close of its client waits for so long, and not for ever */
    bool forsaken;          /* in a forked child, which is not to be called for it */
    unsigned next_key;      /* of a crowd's handle */
    bool settled;           /* on options that most of its handles share: */
    evlock_options options; /* these */
    struct handle pattern;  /* and what follows from them */
    unsigned groups;        /* of options, so many were drawn */
};

static struct parcel parcel; /* one for all: the last that was handed out */

static void act_on(struct handle *handle);
static void act(struct actor *actor);
static void finish(struct handle *handle);
static void finish_actor(struct actor *actor);

static struct actor *actor_of(const struct handle *handle) {
    return handle->process->actor;
}

int64_t actor_longest_timeout(const struct world *world) {
    int64_t least = 20 * MS + 10 * world->plan.latency;
    int64_t share = world->plan.patient ? world->plan.unit : world->plan.unit / 10;
    return least > share ? least : share;
}

int64_t actor_turns(const struct world *world) {
    return world->plan.crowd ? 8 * world->plan.handles * world->plan.latency : 0;
}

int64_t actor_patience(const struct world *world) {
    int64_t handles = world->plan.processes * (world->plan.handles + 2);
    /* A place that went to another master and back while its waiter left is granted to nobody, each for a ttl. */
    int64_t carried = world->plan.cluster ? handles * world->plan.max_ttl : 0;
    return 10 * SECOND + 8 * world->plan.unit + 2 * world->plan.max_ttl + world->plan.closed +
           handles * world->plan.unit / 2 + 40 * actor_longest_timeout(world) + 4 * actor_turns(world) + carried;
}

static int64_t ms_between(struct world *world, int64_t least, int64_t most) {
    least = least < MS ? MS : least;
    return draw_magnitude(world, least, most < least ? least : most) / MS;
}

/* Some user code takes its time, and the loop with it. */
static void dawdle(struct actor *actor) {
    if (actor->world->plan.lag && !actor->world->calm && draw_chance(actor->world, 4))
        process_lag(actor->process, draw_magnitude(actor->world, 100, actor->world->plan.unit / 2));
}

/* --- Clients ------------------------------------------------------------------------------------------------------ */

static void react(struct actor *actor, struct handle *handle);

/* It says of a server's clock what is true in some worlds alone. */
static void on_log(enum evlock_log_level level, const char *line, void *arg) {
    struct actor *actor = arg;
    const struct scenario *scenario = actor->world->scenario;

    if (strstr(line, "the server's clock") && !scenario->steps && !scenario->beyond)
        violated(actor->world, "a clock that keeps to the bound is warned of: %s", line);
    if (actor->world->tracing)
        printf("%12.6f p%-3u   log %d: %s\n", (double)actor->world->now / 1e6, actor->process->number, (int)level,
               line);
}

static void on_connection(evlock_client *client, enum evlock_connection state, int status, void *arg) {
    struct actor *actor = arg;

    (void)client;
    if (actor->forsaken)
        forks_told(actor->world, "on_connection");
    if (actor->process->crashed)
        return;
    note(actor->world, actor->process, "  connection %d: %s", (int)state, evlock_strerror(status));
    judge_callback(actor->world->judge, actor->process);
    react(actor, NULL);
}

/* In place of one node, another is given twice. */
static const struct node *draw_twin(struct world *world, const char *list[]) {
    static char url[64];
    unsigned of = (unsigned)draw_between(world, 0, world->plan.nodes - 1);
    unsigned at = (of + (unsigned)draw_between(world, 1, world->plan.nodes - 1)) % world->plan.nodes;

    snprintf(url, sizeof(url), "unix://%s", world->nodes[of]->other_path);
    list[at] = url;
    return world->nodes[at];
}

static void begin_client(struct actor *actor) {
    struct world *world = actor->world;
    int64_t longest = actor_longest_timeout(world), least = 20 * MS + 6 * world->plan.latency;
    evlock_client_options options = {.size = sizeof(evlock_client_options)};
    char urls[NODES_MAX][128];
    const char *list[NODES_MAX];
    evlock_loop loop = loop_of(actor->process);
    int status;

    if (world->now < world->newcomers_at)
        return;
    actor->settled = false;
    options.connect_timeout_ms = ms_between(world, least, longest);
    options.command_timeout_ms = ms_between(world, least, longest);
    options.backoff_min_ms = ms_between(world, MS, longest / 8);
    options.backoff_max_ms = options.backoff_min_ms + ms_between(world, MS, longest / 2);
    if (world->plan.cluster) { /* a failover is heard of once in a second: not a thousand attempts until then */
        options.backoff_min_ms += 20;
        options.backoff_max_ms += 200;
    }
    options.max_ttl_ms = world->plan.max_ttl / MS;
    options.failover_wait_ms = (world->plan.closed + MS - 1) / MS;
    options.durable = world->plan.durable;
    options.distrust_uptime = world->plan.distrust;
    if (draw_chance(world, world->plan.lagging ? 50 : 20))
        options.max_inflight = draw_between(world, 1, 4);
    actor->limits_bodies = draw_chance(world, 30);
    if (actor->limits_bodies)
        options.close_wait_ms = ms_between(world, MS, world->plan.unit);
    options.on_connection = on_connection;
    options.arg = actor;
    options.on_log = on_log;
    options.log_level = world->tracing ? EVLOCK_LOG_DEBUG : EVLOCK_LOG_WARN;
    for (unsigned i = 0; i < world->plan.nodes; i++) {
        snprintf(urls[i], sizeof(urls[i]), "unix://%s", world->nodes[i]->path);
        list[i] = urls[i];
    }
    if (world->plan.cluster)
        list[0] = "redis+cluster://127.0.0.1:7000,127.0.0.1:7001";
    actor->process->left_out = world->plan.twins && draw_chance(world, 60) ? draw_twin(world, list) : NULL;
    actor->process->client_number = ++world->next_client;
    actor->process->command_timeout = options.command_timeout_ms * MS;
    actor->process->few_in_flight = options.max_inflight > 0;
    if (actor->process->left_out) /* what it set over the one path before it knew, it deletes by the other in vain */
        judge_unclean(world->judge, actor->process->client_number);
    note(world, actor->process, "client %u begins", actor->process->client_number);
    status = evlock_client_new(&actor->process->client, &loop, urls_joined(list, world->plan.nodes).text, &options);
    if (status != EVLOCK_OK)
        violated(world, "no client could be made: %s", evlock_strerror(status));
}

/* The runs of the client, or of a handle: nothing but their ends is to come. */
static void forget_runs(struct actor *actor, const struct handle *handle) {
    struct body *body;

    TAILQ_FOREACH (body, &actor->bodies, link) {
        if (handle ? body->handle != handle : body->handle->client != actor->process->client_number)
            continue;
        agenda_set(&actor->world->agenda, &body->end, NEVER);
        body->freed = true;
        body->stage = OVER;
    }
}

static void forget_client(struct actor *actor, bool clean) {
    forget_runs(actor, NULL);
    judge_client_ends(actor->world->judge, actor->process, false);
    if (!clean)
        judge_unclean(actor->world->judge, actor->process->client_number);
    actor->process->client = NULL;
    actor->closing = NULL;
}

static void on_closed(int status, void *arg) {
    struct promise *promise = arg;
    struct actor *actor = promise->process->actor;
    struct world *world = actor->world;
    unsigned client = promise->process->client_number;

    judge_told(promise, NULL, status);
    if (actor->closing != promise) /* it was freed meanwhile */
        return;
    forget_client(actor, status == EVLOCK_OK);
    if (status == EVLOCK_OK && !promise->process->crashed)
        judge_closed(world->judge, promise->process, client);
}

static void close_client(struct actor *actor) {
    struct promise *promise;

    if (!actor->process->client || actor->closing)
        return;
    promise = judge_asks(actor->world->judge, actor->process, NULL, P_CLOSE);
    judge_made(promise, evlock_client_close(actor->process->client, on_closed, promise));
    actor->closing = promise;
    actor->process->closes = true;
    judge_client_ends(actor->world->judge, actor->process, true);
    if (actor->limits_bodies)
        judge_lets_lapse(actor->world->judge, actor->process);
}

static void free_client(struct actor *actor) {
    if (!actor->process->client)
        return;
    note(actor->world, actor->process, "client %u is freed", actor->process->client_number);
    evlock_client_free(actor->process->client);
    forget_client(actor, false);
}

/* --- Callbacks ---------------------------------------------------------------------------------------------------- */

static void free_handle(struct handle *handle) {
    struct actor *actor = actor_of(handle);

    if (handle->used[0]) {
        actor->left.client = handle->client;
        actor->left.key = handle->key;
        memcpy(actor->left.token, handle->used, sizeof(handle->used));
    }
    note(handle->process->world, handle->process, "h%u is freed", handle->number);
    judge_keeps_no_more(handle);
    passes_give_up(handle);
    judge_ends(handle, IDLE);
    forget_runs(actor, handle);
    evlock_free(handle->lock);
    handle->lock = NULL;
    TAILQ_REMOVE(&actor->handles, handle, local);
}

/* Calls made from inside a callback: also the end of what it is about. */
static void react(struct actor *actor, struct handle *handle) {
    struct world *world = actor->world;

    if (actor->process->crashed || (actor->process->serving && forks_come(world, true)))
        return;
    dawdle(actor);
    if (world->calm) {
        if (handle && handle->lock && handle->doing == HOLDING)
            finish(handle);
        return;
    }
    if (actor->depth > 0 || draw_chance(world, world->plan.crowd ? 90 : 50)) /* a crowd mostly holds on */
        return;
    actor->depth++;
    if (draw_chance(world, 2))
        free_client(actor);
    else if (draw_chance(world, 1))
        close_client(actor);
    else if (handle && handle->lock && !handle->made && draw_chance(world, 60))
        act_on(handle);
    else
        act(actor);
    actor->depth--;
}

static void on_acquired(struct promise *promise, int status) {
    struct handle *handle = promise->handle;

    bool pending = handle->doing == ACQUIRING && handle->pending == promise;

    if (pending && handle->lock && status == EVLOCK_OK)
        judge_holds(handle, promise->fenced);
    else if (pending)
        handle->doing = IDLE;
    else if (status == EVLOCK_OK && !handle->process->crashed)
        violated(handle->process->world, "h%u was granted what it does not wait for", handle->number);
}

static void on_end(evlock *lock, int status, void *arg) {
    struct promise *promise = arg;
    struct handle *handle = promise->handle;

    judge_told(promise, lock, status);
    if (promise->kind == P_ACQUIRE || promise->kind == P_ADOPT)
        on_acquired(promise, status);
    if (promise->kind == P_RELEASE)
        judge_released(promise, status);
    react(actor_of(handle), handle);
}

static void on_answer(evlock *lock, int status, const evlock_answer *answer, void *arg) {
    struct promise *promise = arg;

    judge_answer(promise, status, answer);
    judge_told(promise, lock, status);
    react(actor_of(promise->handle), promise->handle);
}

static void on_lost(evlock *lock, int reason, void *arg) {
    struct actor *actor = arg;
    struct handle *handle = judge_find(actor->world->judge, lock);

    if (!handle) {
        violated(actor->world, "an unknown handle was told lost");
        return;
    }
    if (handle->hold && !handle->owed)
        violated(actor->world, "h%u: a hold was told lost as others are", handle->number);
    judge_lost(handle, reason);
    react(actor, handle);
}

/* What may stand in the way of a renewal. */
static bool endangers(const struct actor *actor, int trouble) {
    if (actor->world->plan.nodes > 1)
        return trouble == EVLOCK_EQUORUM;
    if (trouble == EVLOCK_EEXCLUDED)
        return actor->world->plan.closed;
    return trouble <= EVLOCK_EUNREACHABLE && trouble >= EVLOCK_EPROTOCOL;
}

static void on_at_risk(evlock *lock, int trouble, void *arg) {
    struct actor *actor = arg;
    struct handle *handle = judge_find(actor->world->judge, lock);

    note(actor->world, actor->process, "  h%u at risk, %d ms left: %s", handle ? handle->number : 0,
         (int)evlock_remaining_ms(lock), evlock_strerror(trouble));
    if (!handle || handle->doing != HOLDING)
        violated(actor->world, "a handle that holds nothing was told at risk");
    else if (!endangers(actor, trouble))
        violated(actor->world, "h%u was told at risk: %s", handle->number, evlock_strerror(trouble));
    else if (handle->warned == process_time(actor->process))
        violated(actor->world, "h%u was told at risk twice", handle->number);
    else
        handle->warned = process_time(actor->process);
}

/* --- Handles ------------------------------------------------------------------------------------------------------ */

/* How often and how long leases are passed on; no attempts are counted then, or else it would wait alone. Others have
 * other terms for certain. */
static void draw_passing(struct actor *actor, struct handle *handle, evlock_options *options) {
    struct world *world = actor->world;

    handle->group = ++actor->groups;
    handle->max_passes = options->max_passes = draw_magnitude(world, 1, 20);
    options->max_pass_ms = ms_between(world, MS, 4 * world->plan.unit) + handle->group;
    handle->max_pass = options->max_pass_ms * MS;
    options->max_attempts = EVLOCK_UNLIMITED;
    if (handle->ttl == 0) { /* nothing is passed on that has no expiry */
        handle->group = 0;
        options->max_passes = options->max_pass_ms = 0;
    }
}

static void draw_new_options(struct actor *actor, struct handle *handle, evlock_options *options) {
    struct world *world = actor->world;
    const struct plan *plan = &world->plan;
    int64_t ttl = draw_magnitude(world, plan->unit / 4, 2 * plan->unit);

    if ((plan->nodes > 1 || plan->closed) && ttl > plan->max_ttl)
        ttl = plan->max_ttl;
    ttl = plan->eternal && draw_chance(world, 20) ? 0 : ttl / MS * MS;
    handle->ttl = ttl;
    handle->max_hold = NEVER;
    judge_ttl(world->judge, handle->key, ttl);
    options->ttl_ms = ttl ? ttl / MS : EVLOCK_NO_EXPIRY;
    if (ttl == 0)
        ttl = plan->unit;
    options->retry_delay_ms = ms_between(world, plan->unit / 50, plan->unit / 4);
    options->retry_jitter = draw_between(world, 20, 100);
    options->max_attempts = draw_chance(world, 30) ? EVLOCK_TRY + draw_between(world, 0, 5) : EVLOCK_UNLIMITED;
    if (world->scenario->queue && handle->ttl && draw_chance(world, 75)) {
        handle->queued = true;
        options->wait = EVLOCK_WAIT_QUEUE;
        options->max_attempts = options->max_attempts == EVLOCK_TRY ? EVLOCK_TRY : EVLOCK_UNLIMITED;
    }
    options->max_wait_ms = draw_chance(world, 30) ? ms_between(world, MS, plan->unit * 2) : EVLOCK_UNLIMITED;
    handle->wait = options->max_wait_ms == EVLOCK_UNLIMITED ? NEVER : options->max_wait_ms * MS;
    if (handle->ttl && !plan->lagging && draw_chance(world, plan->shared ? 85 : 50)) {
        options->auto_renewal = true;
        handle->renews = true;
        if (draw_chance(world, 50))
            options->renewal_interval_ms = ms_between(world, ttl / 20, ttl / 2);
        handle->interval = options->renewal_interval_ms > 0 ? options->renewal_interval_ms * MS : ttl / 3;
        if (draw_chance(world, 20))
            handle->max_hold = (options->max_hold_ms = ms_between(world, MS, 3 * ttl)) * MS;
    }
    if (draw_chance(world, 30))
        options->at_risk_percent = draw_between(world, 1, 99);
    handle->risk = ttl * (options->at_risk_percent > 0 ? options->at_risk_percent : 33) / 100;
    handle->patience = ttl / 10 > MS ? ttl / 10 : MS;
    if (draw_chance(world, 50))
        handle->patience = (options->node_timeout_ms = ms_between(world, 4 * plan->latency, ttl / 4)) * MS;
    if (plan->fences && handle->patience < 8 * plan->latency) /* two round trips, behind what is undone */
        handle->patience = (options->node_timeout_ms = 8 * plan->latency / MS + 1) * MS;
    handle->lead = handle->ttl >= 100 * MS && ttl / MS % 5 == 0 ? ttl / 100 * 7 / MS * MS : 0;
    if (handle->lead)
        options->lost_lead_ms = handle->lead / MS;
    if (draw_chance(world, 20))
        options->holder = "someone";
    if (plan->replicas && handle->ttl && (plan->lagging || draw_chance(world, 40))) {
        options->min_replicas = plan->lagging ? REPLICAS_MAX : draw_between(world, 1, REPLICAS_MAX);
        handle->replicas = (unsigned)options->min_replicas;
        options->replica_timeout_ms =
            ms_between(world, 6 * plan->latency + 5 * MS, actor->process->command_timeout - MS);
        if (handle->renews && !plan->crowd && draw_chance(world, 50)) { /* also while they are asked */
            options->renewal_interval_ms = ms_between(world, MS, ttl / 20);
            handle->interval = options->renewal_interval_ms * MS;
            options->at_risk_percent = 99;
        }
    }
    if (world->scenario->passes && draw_chance(world, 85))
        draw_passing(actor, handle, options);
    options->on_lost = on_lost;
    options->on_at_risk = on_at_risk;
    options->arg = actor;
}

static void copy_options(struct handle *handle, const struct handle *from) {
    handle->ttl = from->ttl;
    handle->max_hold = from->max_hold;
    handle->lead = from->lead;
    handle->risk = from->risk;
    handle->wait = from->wait;
    handle->patience = from->patience;
    handle->interval = from->interval;
    handle->renews = from->renews;
    handle->queued = from->queued;
    handle->replicas = from->replicas;
    handle->group = from->group;
    handle->max_passes = from->max_passes;
    handle->max_pass = from->max_pass;
}

/* Its own, or those that others of the process have too: what is alike may be sent together. */
static void draw_options(struct actor *actor, struct handle *handle, evlock_options *options) {
    if (actor->settled && draw_chance(actor->world, 85)) {
        *options = actor->options;
        if (actor->world->scenario->passes && draw_chance(actor->world, 40))
            options->label = "other"; /* on the same terms, though with a config of its own */
        copy_options(handle, &actor->pattern);
        judge_ttl(actor->world->judge, handle->key, handle->ttl);
        return;
    }
    draw_new_options(actor, handle, options);
    if (!actor->world->plan.shared || actor->settled)
        return;
    actor->options = *options;
    copy_options(&actor->pattern, handle);
    actor->settled = true;
}

/* The same key, by name or by prefix and name. */
static const char *draw_name(struct world *world, unsigned key, evlock_options *options) {
    if (world->plan.shared || draw_chance(world, 50))
        return judge_key(key);
    options->prefix = "lock:";
    return judge_key(key) + strlen("lock:");
}

/* In a crowd most have a key of their own. */
static unsigned draw_key(struct actor *actor) {
    struct world *world = actor->world;

    if (world->plan.bursts && draw_chance(world, 90))
        return actor->next_key++ % world->plan.keys;
    return (unsigned)draw_between(world, 0, world->plan.keys - 1);
}

static struct handle *new_handle(struct actor *actor) {
    struct world *world = actor->world;
    evlock_options options = {.size = sizeof(evlock_options)};
    struct handle *handle;
    int status;

    if (!actor->process->client || actor->closing)
        return NULL;
    handle = judge_handle(world->judge, actor->process, draw_key(actor));
    draw_options(actor, handle, &options);
    status = evlock_new(&handle->lock, actor->process->client, draw_name(world, handle->key, &options), EVLOCK_CSTRING,
                        &options);
    if (status != EVLOCK_OK)
        violated(world, "no handle could be made: %s: %s", evlock_strerror(status), evlock_last_error());
    note(world, actor->process, "h%u is made for %s, ttl %d ms", handle->number, judge_key(handle->key),
         (int)(handle->ttl / MS));
    TAILQ_INSERT_TAIL(&actor->handles, handle, local);
    return handle;
}

/* --- Calls on handles --------------------------------------------------------------------------------------------- */

static struct promise *ask(struct handle *handle, enum promise_kind kind) {
    return judge_asks(handle->process->world->judge, handle->process, handle, kind);
}

static bool expects_closed(const struct handle *handle) {
    const struct actor *actor = actor_of(handle);
    return handle->client != handle->process->client_number || !handle->process->client || actor->closing;
}

/* How long an acquire with this wait may take. */
static int64_t limit_of(const struct handle *handle, int64_t wait_ms) {
    return wait_ms == 0 ? handle->wait : wait_ms == EVLOCK_UNLIMITED ? NEVER : wait_ms * MS;
}

/* Another handle that does nothing with the same lock. */
static struct handle *find_idle(const struct handle *handle, bool with_own) {
    struct handle *other;

    TAILQ_FOREACH (other, &actor_of(handle)->handles, local)
        if (other != handle && other->key == handle->key && other->client == handle->client && other->doing == IDLE &&
            !other->runs && (!with_own || other->used[0]))
            return other;
    return NULL;
}

/* Takes the own token of a handle that is through with it, and may then not use it any more; false: there is none. */
static bool take_own(struct handle *handle) {
    struct actor *actor = actor_of(handle);
    struct handle *before = find_idle(handle, true);
    bool left = actor->left.token[0] && actor->left.client == handle->client && actor->left.key == handle->key;

    if (!left && !before)
        return false;
    memcpy(handle->used, left ? actor->left.token : before->used, sizeof(handle->used));
    if (left) {
        actor->left.token[0] = '\0';
        return true;
    }
    before->used[0] = '\0';
    before->own++;
    return true;
}

static void draw_own(struct handle *handle) {
    const struct actor *actor = actor_of(handle);

    if (draw_chance(actor->world, 70) && take_own(handle))
        return;
    if (!handle->used[0] || draw_chance(actor->world, 50))
        snprintf(handle->used, sizeof(handle->used), "own%s%u-%u-%u", actor->world->scenario->queue ? " one " : "-",
                 handle->client, handle->number, handle->own);
}

static void acquire(struct handle *handle) {
    struct world *world = handle->process->world;
    evlock_acquire_options options = {.size = sizeof(evlock_acquire_options)};
    struct promise *promise = ask(handle, P_ACQUIRE);
    bool defaults = false;
    int status;

    promise->fenced = world->plan.fences && (world->scenario->fences || draw_chance(world, 50));
    options.fence = promise->fenced ? EVLOCK_ON : EVLOCK_INHERIT;
    if (world->calm) {
        options.max_attempts = EVLOCK_UNLIMITED;
        options.max_wait_ms = EVLOCK_UNLIMITED;
    } else if (draw_chance(world, 20)) {
        promise->once = draw_chance(world, 30);
        options.max_attempts = promise->once ? EVLOCK_TRY : 0;
        options.max_wait_ms = promise->once ? EVLOCK_UNLIMITED : ms_between(world, MS, world->plan.unit);
    }
    if (world->plan.own_tokens && (handle->doing == IDLE || handle->doing == LOST) && draw_chance(world, 60)) {
        draw_own(handle);
        options.token = handle->used;
        options.token_len = EVLOCK_CSTRING;
    }
    defaults = draw_chance(world, 30) && !options.fence && !options.token && !world->calm;
    promise->grouped = handle->group && !options.token && (defaults || options.max_attempts != EVLOCK_TRY);
    promise->once = promise->once && !defaults;
    promise->limit = limit_of(handle, defaults ? 0 : options.max_wait_ms);
    if (world->plan.nodes > 1 && promise->once && !handle->replicas && !options.token)
        promise->limit = handle->patience; /* one attempt, in which nobody is waited for any longer */
    status = evlock_acquire(handle->lock, defaults ? NULL : &options, on_end, promise);
    judge_made(promise, status);
    if (status != EVLOCK_OK)
        return;
    judge_acquires(handle, promise);
    if (options.token)
        judge_reuses(world->judge, handle->used, handle->client);
}

static void release(struct handle *handle) {
    struct promise *promise = ask(handle, P_RELEASE);
    int status = evlock_release(handle->lock, on_end, promise);

    judge_made(promise, status);
    if (status == EVLOCK_OK && evlock_is_held(handle->lock))
        violated(handle->process->world, "h%u: it is released, and still held", handle->number);
    if (status == EVLOCK_OK)
        judge_keeps_no_more(handle);
    if (status == EVLOCK_OK)
        judge_ends(handle, RELEASING);
    else if (status == EVLOCK_EINVAL)
        violated(handle->process->world, "a release returned: %s", evlock_strerror(status));
}

static void extend(struct handle *handle) {
    struct world *world = handle->process->world;
    bool add = draw_chance(world, 50);
    int64_t ttl = handle->ttl ? handle->ttl : world->plan.unit;
    int64_t ms = ms_between(world, add ? MS : ttl / 8 + 5 * MS, add ? ttl : 2 * ttl);
    struct promise *promise;
    int status;

    if (world->plan.lagging) /* of that replicas may know nothing */
        return;
    promise = ask(handle, P_EXTEND);
    if ((world->plan.nodes > 1 || world->plan.closed) && ms > world->plan.max_ttl / MS)
        ms = world->plan.max_ttl / MS;
    note(world, handle->process, "  %s %d ms", add ? "adds" : "replaces by", (int)ms);
    status = evlock_extend(handle->lock, ms, add ? EVLOCK_EXTEND_ADD : EVLOCK_EXTEND_REPLACE, on_end, promise);
    judge_made(promise, status);
    if (status != EVLOCK_OK)
        return;
    handle->extended = true;
    passes_tie(handle);
    handle->shortened |= !add;
    if (add && handle->token)
        handle->token->added += ms * MS;
    else
        judge_ttl(world->judge, handle->key, ms * MS);
}

static void reset(struct handle *handle) {
    struct promise *promise;

    if (handle->process->world->plan.lagging)
        return;
    promise = ask(handle, P_EXTEND);
    judge_made(promise, evlock_extend(handle->lock, 0, EVLOCK_EXTEND_RESET, on_end, promise));
    handle->extended = handle->shortened = true;
}

/* One thing, or several. */
static unsigned draw_parts(struct world *world) {
    unsigned parts = world->scenario->queue ? 6 : 4;

    if (draw_chance(world, 50))
        return 1U << draw_between(world, 0, parts - 1);
    return (unsigned)draw_between(world, 1, (1 << parts) - 1);
}

/* Its user may do anything with the token from here on. */
static void show(struct handle *handle) {
    size_t len;

    note(handle->process->world, handle->process, "h%u: its token is asked for", handle->number);
    if (evlock_token(handle->lock, &len))
        passes_tie(handle);
}

static void query(struct handle *handle) {
    struct world *world = handle->process->world;
    unsigned what = draw_parts(world);
    struct promise *promise = ask(handle, P_QUERY);
    int status = evlock_query(handle->lock, what, on_answer, promise);

    judge_made(promise, status);
    if (status == EVLOCK_OK)
        judge_question(promise, what);
}

static void break_lock(struct handle *handle) {
    struct world *world = handle->process->world;
    struct promise *promise;

    if (!world->plan.breaks)
        return;
    promise = ask(handle, P_BREAK);
    judge_made(promise, evlock_break(handle->lock, on_end, promise));
    if (promise->made)
        judge_breaks(world->judge, handle->key);
}

static void cancel(struct handle *handle) {
    int status = evlock_cancel(handle->lock);

    note(handle->process->world, handle->process, "h%u cancel: %s", handle->number, evlock_strerror(status));
    if (status == EVLOCK_OK && handle->doing != ACQUIRING)
        violated(handle->process->world, "h%u: cancelled what was not pending", handle->number);
    if (status == EVLOCK_OK)
        judge_keeps_no_more(handle);
    if (status == EVLOCK_OK)
        handle->doing = IDLE;
}

/* It is through with its own token, of which a use is not settled yet, and another handle uses that at once. */
static void pass_on(struct handle *handle) {
    struct handle *next = find_idle(handle, false);

    if (!next || !handle->used[0] || expects_closed(handle))
        return;
    if (handle->doing == ACQUIRING)
        cancel(handle);
    else
        free_handle(handle);
    acquire(next);
}

/* A token that nobody has taken yet stays where it is. */
static void export(struct handle *handle) {
    struct world *world = handle->process->world;
    struct token *token = handle->token;
    int status;

    if (parcel.len)
        return;
    if (handle->doing == HOLDING && draw_chance(world, 40))
        extend(handle); /* what is on its way then would cut it short for the next */
    status = evlock_export(handle->lock, parcel.token, sizeof(parcel.token), &parcel.len);
    note(world, handle->process, "h%u export: %s", handle->number, evlock_strerror(status));
    if (status != EVLOCK_OK) {
        parcel.len = 0;
        return;
    }
    if (handle->doing != HOLDING || !token) {
        violated(world, "h%u: exported what it does not hold", handle->number);
        return;
    }
    judge_keeps_no_more(handle);
    parcel.key = handle->key;
    handle->own++; /* its own token is another's now */
    handle->used[0] = '\0';
    judge_hands(handle);
}

/* Who has lost its lease asks for it once more: its token may be there yet. */
static void adopt_own(struct handle *handle) {
    struct token *token = handle->token;
    struct promise *promise = ask(handle, P_ADOPT);
    char bytes[160];
    int len = snprintf(bytes, sizeof(bytes), "%s%s%.*s", token->name, token->name[0] ? "/" : "", (int)token->len,
                       token->bytes);
    int status = evlock_adopt(handle->lock, bytes, (size_t)len, on_end, promise);

    judge_made(promise, status);
    if (status != EVLOCK_OK)
        return;
    judge_asks_again(handle, promise);
}

void actor_hands_out(unsigned key, const char *token) {
    parcel.key = key;
    parcel.len = strlen(token);
    memcpy(parcel.token, token, parcel.len);
}

bool actor_may_hand_out(void) {
    return parcel.len == 0;
}

static void adopt(struct handle *handle) {
    struct world *world = handle->process->world;
    struct promise *promise;
    int status;

    if (handle->doing == LOST && handle->token && draw_chance(world, 30)) {
        adopt_own(handle);
        return;
    }
    if (!parcel.len || parcel.key != handle->key)
        return;
    promise = ask(handle, P_ADOPT);
    status = evlock_adopt(handle->lock, parcel.token, parcel.len, on_end, promise);
    judge_made(promise, status);
    if (status != EVLOCK_OK)
        return;
    judge_acquires(handle, promise);
    judge_token(world->judge, parcel.token, parcel.len, handle->client);
    parcel.len = 0;
}

/* --- Holds -------------------------------------------------------------------------------------------------------- */

static void on_report(evlock *lock, int status, void *arg) {
    struct promise *promise = arg;

    judge_reported(promise, lock, status);
    react(actor_of(promise->handle), promise->handle);
}

static void hold(struct handle *handle) {
    struct promise *promise;
    int status;

    if (handle->process->world->plan.lagging) /* of renewals replicas may know nothing */
        return;
    promise = ask(handle, P_HOLD);
    promise->reported = 1; /* nothing */
    status = evlock_hold(handle->lock, on_report, promise);
    judge_made(promise, status);
    if (status == EVLOCK_OK)
        judge_keeps(handle, promise);
}

/* --- Runs --------------------------------------------------------------------------------------------------------- */

/* Releases the handle of a run, and may want to hear of that. */
static int release_run(struct body *body) {
    struct handle *handle = body->handle;
    struct promise *promise = draw_chance(body->actor->world, 40) ? ask(handle, P_RELEASE) : NULL;
    int status = evlock_release(handle->lock, promise ? on_end : NULL, promise);

    if (promise)
        judge_made(promise, status);
    return status;
}

/* A handle of its own; a user's has a way of its own to go. */
static void free_made(struct body *body) {
    note(body->actor->world, body->actor->process, "h%u is freed, a run's", body->handle->number);
    passes_give_up(body->handle);
    judge_ends(body->handle, IDLE);
    forget_runs(body->actor, body->handle);
    evlock_free(body->handle->lock);
    body->handle->lock = NULL;
}

static void end_body(struct body *body) {
    struct handle *handle = body->handle;
    int status;

    agenda_set(&body->actor->world->agenda, &body->end, NEVER);
    if (body->made && draw_chance(body->actor->world, 10)) {
        free_made(body);
        return;
    }
    note(body->actor->world, body->actor->process, "h%u: the body ends", handle->number);
    body->stage = OVER;
    body->lost |= handle->doing == LOST;
    passes_give_up(handle);
    if (handle->doing == HOLDING || handle->doing == LOST)
        judge_ends(handle, RELEASING);
    status = release_run(body);
    if (status != EVLOCK_OK)
        violated(body->actor->world, "h%u: the body's end returned: %s", handle->number, evlock_strerror(status));
}

/* It may have failed already, which is yet to be told. */
static void end_wait(struct body *body) {
    struct handle *handle = body->handle;
    int status;

    if (!handle->lock) /* nobody asked for it */
        return;
    if (body->made && draw_chance(body->actor->world, 20)) {
        free_made(body);
        return;
    }
    status = draw_chance(body->actor->world, 50) ? evlock_cancel(handle->lock) : release_run(body);
    note(body->actor->world, body->actor->process, "h%u: the wait ends: %s", handle->number, evlock_strerror(status));
    if (status == EVLOCK_OK) {
        body->stage = OVER;
        handle->doing = IDLE;
    }
}

static void on_run_end(void *arg) {
    struct body *body = arg;
    struct process *process = body->actor->process;

    if (!process_runs(process)) {
        agenda_set(&body->actor->world->agenda, &body->end, process->still_until + 1);
        return;
    }
    process_enter(process);
    if (body->stage == WORKS)
        end_body(body);
    else if (body->stage == WAITS)
        end_wait(body);
    process_leave(process);
}

static void end_run_later(struct body *body) {
    struct world *world = body->actor->world;

    agenda_set(&world->agenda, &body->end,
               process_time(body->actor->process) + draw_magnitude(world, MS, world->plan.unit));
}

/* The run releases the lock by itself. */
static int fail_to_begin(struct body *body) {
    note(body->actor->world, body->actor->process, "h%u: the body does not begin", body->handle->number);
    body->stage = OVER;
    passes_give_up(body->handle);
    judge_ends(body->handle, RELEASING);
    return body->value = 7;
}

static int on_body(evlock *lock, void *arg) {
    struct body *body = arg;
    struct world *world = body->actor->world;

    if (body->actor->forsaken) {
        forks_told(world, "body");
        return EVLOCK_OK;
    }
    judge_callback(world->judge, body->actor->process);
    if (body->stage != WAITS)
        violated(world, "h%u: a body is called whose run has ended", body->handle->number);
    body->stage = WORKS;
    body->ran = true;
    body->handle->lock = lock;
    note(world, body->actor->process, "h%u: the body begins", body->handle->number);
    judge_holds(body->handle, false);
    if (body->actor->process->serving && forks_come(world, true))
        return (int)draw_between(world, 0, 1);
    dawdle(body->actor);
    if (!world->calm && draw_chance(world, 5))
        return fail_to_begin(body);
    if (world->calm || draw_chance(world, 30))
        end_body(body);
    else
        end_run_later(body);
    return EVLOCK_OK;
}

/* What a lease had come to, its end says. Only its user ends it, or its client's end. */
static void check_run(const struct body *body, int status, bool ran) {
    const struct actor *actor = body->actor;
    bool excused = body->freed || (actor->closing && actor->limits_bodies && body->stage != OVER);

    if (ran != body->ran)
        violated(actor->world, "h%u: a run is told with %d for %d", body->handle->number, ran, body->ran);
    else if (body->value ? status != body->value : status > 0)
        violated(actor->world, "h%u: a body returned %d, and its run %d", body->handle->number, body->value, status);
    else if (body->lost && status == EVLOCK_OK)
        violated(actor->world, "h%u: a run had lost its lease, and is told as if not", body->handle->number);
    else if (ran && status == EVLOCK_ECANCELLED && !excused)
        violated(actor->world, "h%u: a run is cancelled under its body", body->handle->number);
}

static void on_done(int status, bool ran, void *arg) {
    struct body *body = arg;
    struct handle *handle = body->handle;
    struct actor *actor = body->actor;

    if (actor->forsaken) {
        forks_told(actor->world, "done");
        return;
    }
    check_run(body, status, ran);
    agenda_set(&actor->world->agenda, &body->end, NEVER);
    if (handle->lapses)
        judge_ends(handle, IDLE);
    if (body->made)
        handle->lock = NULL;
    judge_told(body->promise, NULL, body->value ? EVLOCK_OK : status);
    judge_ends(handle, IDLE);
    handle->runs = handle->lapses = false;
    TAILQ_REMOVE(&actor->bodies, body, link);
    free(body);
    react(actor, handle->lock ? handle : NULL);
}

static struct body *new_body(struct actor *actor, struct handle *handle, bool made) {
    struct body *body = calloc(1, sizeof(*body));

    body->actor = actor;
    body->handle = handle;
    body->made = handle->made = made;
    body->end.happen = on_run_end;
    body->end.arg = body;
    body->promise = judge_asks(actor->world->judge, actor->process, handle, P_RUN);
    body->promise->grouped = handle->group;
    return body;
}

/* Keeps a body whose run was accepted, and may not wait for it for long. */
static void keep_body(struct body *body, int status) {
    judge_made(body->promise, status);
    if (status != EVLOCK_OK) {
        free(body);
        return;
    }
    TAILQ_INSERT_TAIL(&body->actor->bodies, body, link);
    body->handle->runs = true;
    judge_acquires(body->handle, body->promise);
    if (draw_chance(body->actor->world, 15))
        end_run_later(body);
}

static void run_with(struct handle *handle) {
    struct body *body = new_body(actor_of(handle), handle, false);

    keep_body(body, evlock_with(handle->lock, on_body, on_done, body));
}

static void run(struct actor *actor) {
    struct world *world = actor->world;
    evlock_options options = {.size = sizeof(evlock_options)};
    struct handle *handle;
    struct body *body;
    const char *name;
    bool asks;

    if (!actor->process->client || actor->closing)
        return;
    handle = judge_handle(world->judge, actor->process, (unsigned)draw_between(world, 0, world->plan.keys - 1));
    draw_options(actor, handle, &options);
    name = draw_name(world, handle->key, &options);
    body = new_body(actor, handle, true);
    asks = draw_chance(world, 70);
    keep_body(body, evlock_run(asks ? &handle->lock : NULL, actor->process->client, name, EVLOCK_CSTRING, &options,
                               on_body, on_done, body));
}

/* --- What to do next ---------------------------------------------------------------------------------------------- */

static const struct {
    unsigned weight;
    void (*call)(struct handle *handle);
    bool runs; /* also while a run is under way */
} calls[] = {
    {40, acquire, false}, {25, release, false},  {14, extend, true},     {4, reset, true},
    {8, query, true},     {4, break_lock, true}, {5, cancel, false},     {4, export, true},
    {6, adopt, false},    {5, run_with, false},  {4, free_handle, true}, {8, hold, false},
};
enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

static void act_on(struct handle *handle) {
    struct world *world = handle->process->world;
    unsigned total = 0, drawn, i = 0;

    if (expects_closed(handle) && draw_chance(world, 70)) {
        free_handle(handle);
        return;
    }
    if (handle->doing == HOLDING && world->plan.extends && draw_chance(world, 50)) {
        extend(handle);
        return;
    }
    if (world->plan.own_tokens && !handle->runs && draw_chance(world, 10)) {
        pass_on(handle);
        return;
    }
    if (world->scenario->passes && handle->doing == HOLDING && !handle->runs && draw_chance(world, 50)) {
        (draw_chance(world, 75) ? release : show)(handle);
        return;
    }
    for (unsigned k = 0; k < CALLS; k++)
        total += calls[k].weight;
    drawn = (unsigned)(draw(world) % total);
    while (drawn >= calls[i].weight)
        drawn -= calls[i++].weight;
    if (handle->runs && !calls[i].runs)
        return;
    if (handle->doing == HOLDING && calls[i].call == acquire && draw_chance(world, 90))
        return;
    calls[i].call(handle);
}

static struct handle *draw_handle(struct actor *actor) {
    struct handle *handle, *found = NULL;
    unsigned count = 0;

    TAILQ_FOREACH (handle, &actor->handles, local)
        if (handle->lock && draw(actor->world) % ++count == 0)
            found = handle;
    return count >= actor->world->plan.handles || (count && draw_chance(actor->world, 70)) ? found : new_handle(actor);
}

/* All handles are made, and acquire; then each of some does what comes to its mind. */
static void act_in_bursts(struct actor *actor) {
    struct handle *handle, *next;
    unsigned share = draw_chance(actor->world, 10) ? 100 : (unsigned)draw_between(actor->world, 0, 15), count = 0;

    for (handle = TAILQ_FIRST(&actor->handles); handle; handle = next, count++) {
        next = TAILQ_NEXT(handle, local);
        if (handle->lock && draw_chance(actor->world, share))
            act_on(handle);
    }
    for (; count < actor->world->plan.handles && (handle = new_handle(actor)); count++)
        acquire(handle);
}

static void act(struct actor *actor) {
    struct handle *handle;

    if (!actor->process->client)
        begin_client(actor);
    else if (actor->world->plan.bursts && actor->depth == 0 && draw_chance(actor->world, 90))
        act_in_bursts(actor);
    else if (actor->depth == 0 && draw_chance(actor->world, 1))
        close_client(actor);
    else if (actor->depth == 0 && draw(actor->world) % 200 == 0)
        free_client(actor);
    else if (draw_chance(actor->world, 4))
        run(actor);
    else if ((handle = draw_handle(actor)))
        act_on(handle);
}

static void on_think(void *arg) {
    struct actor *actor = arg;
    struct process *process = actor->process;
    struct world *world = actor->world;

    if (process->crashed || actor->leaving)
        return;
    if (process_runs(process)) {
        process_enter(process);
        if (world->calm)
            finish_actor(actor);
        else
            act(actor);
        process_leave(process);
    }
    agenda_set(&world->agenda, &actor->think,
               (process->still_until > world->now ? process->still_until : world->now) +
                   draw_between(world, 1, world->plan.unit / 5));
}

/* --- Life --------------------------------------------------------------------------------------------------------- */

struct actor *actor_new(struct process *process) {
    struct actor *actor = calloc(1, sizeof(*actor));

    actor->process = process;
    actor->world = process->world;
    TAILQ_INIT(&actor->handles);
    TAILQ_INIT(&actor->bodies);
    actor->think.happen = on_think;
    actor->think.arg = actor;
    if (process->number == 1)
        parcel.len = 0;
    agenda_set(&actor->world->agenda, &actor->think,
               actor->world->now + draw_between(actor->world, 0, actor->world->plan.unit / 2));
    return actor;
}

void actor_free(struct actor *actor) {
    agenda_set(&actor->world->agenda, &actor->think, NEVER);
    free(actor);
}

static struct body *begun_body(struct actor *actor) {
    struct body *body;

    TAILQ_FOREACH (body, &actor->bodies, link)
        if (body->stage == WORKS)
            return body;
    return NULL;
}

void actor_wipe(struct actor *actor) {
    struct handle *handle;

    agenda_set(&actor->world->agenda, &actor->think, NEVER);
    free_client(actor);
    while ((handle = TAILQ_FIRST(&actor->handles)))
        free_handle(handle);
}

static void forsake_body(struct body *body, void (*leave)(enum belonging kind, void *it, unsigned client)) {
    agenda_set(&body->actor->world->agenda, &body->end, NEVER);
    if (body->made && body->handle->lock)
        leave(A_RUN, body->handle->lock, body->handle->client);
    if (body->made)
        body->handle->lock = NULL;
}

void actor_forsake(struct actor *actor, void (*leave)(enum belonging kind, void *it, unsigned client)) {
    struct process *process = actor->process;
    struct handle *handle;
    struct body *body;

    actor->forsaken = true;
    agenda_set(&actor->world->agenda, &actor->think, NEVER);
    TAILQ_FOREACH (body, &actor->bodies, link)
        forsake_body(body, leave);
    while ((handle = TAILQ_FIRST(&actor->handles))) {
        leave(A_LOCK, handle->lock, handle->client);
        judge_ends(handle, IDLE);
        handle->lock = NULL;
        TAILQ_REMOVE(&actor->handles, handle, local);
    }
    if (!process->client)
        return;
    leave(A_CLIENT, process->client, process->client_number);
    forget_client(actor, false);
}

/* --- After the faults --------------------------------------------------------------------------------------------- */

/* What is renewed, and was held when the faults ended, is held for another ttl, which it must outlast. */
static bool keeps_on(const struct handle *handle) {
    const struct world *world = handle->process->world;

    return world->plan.outlasts && handle->renews && handle->since < world->plan.length &&
           world->now < judge_recovered(world->judge) + 2 * handle->ttl;
}

/* Brings a handle nearer to having had its lock, and given it back. */
static void finish(struct handle *handle) {
    if (expects_closed(handle) || handle->runs)
        return;
    handle->finishing = true;
    if (handle->doing == HOLDING && keeps_on(handle)) {
        return;
    } else if (handle->doing == HOLDING) {
        handle->served = true;
        release(handle);
    } else if (handle->doing == IDLE && !handle->served) {
        acquire(handle);
    } else if (handle->doing == LOST) {
        release(handle);
    }
}

static void finish_actor(struct actor *actor) {
    struct handle *handle, *next;
    struct body *body;

    while ((body = begun_body(actor)))
        end_body(body);
    for (handle = TAILQ_FIRST(&actor->handles); handle; handle = next) {
        next = TAILQ_NEXT(handle, local);
        finish(handle);
    }
}

static struct process *each_alive(struct process *process) {
    while (process && process->crashed)
        process = TAILQ_NEXT(process, link);
    return process;
}

void actors_finish(struct world *world) {
    struct process *process = each_alive(TAILQ_FIRST(&world->processes));

    for (; process; process = each_alive(TAILQ_NEXT(process, link))) {
        process_enter(process);
        finish_actor(process->actor);
        process_leave(process);
    }
}

bool actors_served(struct world *world) {
    struct process *process = each_alive(TAILQ_FIRST(&world->processes));
    struct handle *handle;

    for (; process; process = each_alive(TAILQ_NEXT(process, link))) {
        if (process->actor->closing || !TAILQ_EMPTY(&process->actor->bodies))
            return false;
        TAILQ_FOREACH (handle, &process->actor->handles, local)
            if (handle->finishing && (!handle->served || handle->doing == RELEASING))
                return false;
    }
    return true;
}

static void leave(struct actor *actor) {
    struct world *world = actor->world;
    struct handle *handle, *next;
    struct body *body;

    actor->leaving = true;
    while ((body = begun_body(actor)))
        end_body(body);
    for (handle = TAILQ_FIRST(&actor->handles); handle; handle = next) {
        next = TAILQ_NEXT(handle, local);
        if (!handle->runs && draw_chance(world, 50))
            free_handle(handle);
    }
    if (draw_chance(world, 60))
        close_client(actor);
    else if (draw_chance(world, 50))
        free_client(actor);
}

void actors_leave(struct world *world) {
    struct process *process;

    if (world->violation[0])
        return;
    TAILQ_FOREACH (process, &world->processes, link) {
        if (process->crashed)
            continue;
        process_enter(process);
        leave(process->actor);
        process_leave(process);
    }
}
