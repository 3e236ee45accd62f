/* Forks; see forks.h. */
#include "forks.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hiredis/async.h>

#include "../unit/children.h"
#include "actor.h"
#include "judge.h"
#include "loop.h"
#include "wire.h"

enum { GENERATIONS_MAX = 3 };

/* Something of evlock's that the parent made. */
struct thing {
    TAILQ_ENTRY(thing) link;
    enum belonging kind;
    void *it;
    unsigned client; /* its number */
};

/* A connection of the parent's: the wire stays behind, and hiredis has this instead. */
struct orphan {
    TAILQ_ENTRY(orphan) link;
    struct virtual_watch watch;
    struct redisAsyncContext *connection;
    struct process *process;
};

static TAILQ_HEAD(, thing) estate = TAILQ_HEAD_INITIALIZER(estate);
static TAILQ_HEAD(, orphan) orphans = TAILQ_HEAD_INITIALIZER(orphans);
static unsigned orphan_count;
static char *verdict; /* where a child writes it for its parent */

/* --- When --------------------------------------------------------------------------------------------------------- */

/* As draw_between(), of the forks' own chance. */
static int64_t draw_apart(struct world *world, int64_t least, int64_t most) {
    uint64_t others = world->chance;
    int64_t drawn;

    world->chance = world->forks.chance;
    drawn = draw_between(world, least, most);
    world->forks.chance = world->chance;
    world->chance = others;
    return drawn;
}

static void plan_next(struct world *world, int64_t percent) {
    struct forks *forks = &world->forks;

    forks->at = NEVER;
    if (draw_apart(world, 0, 99) >= percent || forks->generation == GENERATIONS_MAX)
        return;
    forks->inside = draw_apart(world, 0, 1);
    forks->at = draw_apart(world, world->now, world->plan.length);
}

void forks_begin(struct world *world, int64_t share) {
    world->forks.chance = ~world->chance;
    plan_next(world, share);
}

bool forks_over(const struct world *world) {
    return world->forks.over;
}

/* --- What a child sees -------------------------------------------------------------------------------------------- */

void forks_told(struct world *world, const char *what) {
    violated(world, "the parent's %s was called", what);
}

static void on_end(evlock *lock, int status, void *arg) {
    (void)lock;
    (void)status;
    forks_told(arg, "callback");
}

static void on_answer(evlock *lock, int status, const evlock_answer *answer, void *arg) {
    (void)answer;
    on_end(lock, status, arg);
}

static void on_closed(int status, void *arg) {
    on_end(NULL, status, arg);
}

static int on_body(evlock *lock, void *arg) {
    on_end(lock, EVLOCK_OK, arg);
    return EVLOCK_OK;
}

static void check_untouched(struct world *world) {
    if (sockets_used())
        violated(world, "a child used a connection of its parent's");
}

/* --- What a child does -------------------------------------------------------------------------------------------- */

static bool client_is_gone(unsigned number) {
    const struct thing *thing;

    TAILQ_FOREACH (thing, &estate, link)
        if (thing->kind == A_CLIENT && thing->client == number)
            return false;
    return true;
}

struct said {
    const char *call;
    int status;
};

static void check_said(struct world *world, const struct said *said, size_t count, int promised) {
    for (size_t i = 0; i < count; i++)
        if (said[i].status != promised)
            violated(world, "%s() on what is the parent's returns: %s", said[i].call, evlock_strerror(said[i].status));
}

static void look_at_lock(struct world *world, const evlock *lock) {
    size_t len = 12345;

    if (evlock_is_held(lock) || evlock_remaining_ms(lock) || evlock_keepers(lock) || evlock_fence(lock) ||
        evlock_token(lock, &len) || len != 12345)
        violated(world, "a child believes to hold its parent's lock");
    if (evlock_waited_ms(lock))
        violated(world, "a child believes to wait for its parent's lock");
}

static void call_lock(struct world *world, evlock *lock, int promised) {
    char token[128];
    size_t len;
    const struct said said[] = {
        {"evlock_acquire", evlock_acquire(lock, NULL, on_end, world)},
        {"evlock_cancel", evlock_cancel(lock)},
        {"evlock_release", evlock_release(lock, on_end, world)},
        {"evlock_extend", evlock_extend(lock, 1000, EVLOCK_EXTEND_REPLACE, on_end, world)},
        {"evlock_extend, reset", evlock_extend(lock, 0, EVLOCK_EXTEND_RESET, on_end, world)},
        {"evlock_export", evlock_export(lock, token, sizeof(token), &len)},
        {"evlock_adopt", evlock_adopt(lock, "t", 1, on_end, world)},
        {"evlock_query", evlock_query(lock, EVLOCK_QUERY_LOCKED, on_answer, world)},
        {"evlock_break", evlock_break(lock, on_end, world)},
        {"evlock_with", evlock_with(lock, on_body, NULL, world)},
    };
    check_said(world, said, sizeof(said) / sizeof(said[0]), promised);
}

static void call_client(struct world *world, evlock_client *client) {
    evlock_node_info node;
    evlock_stats stats;
    evlock *lock;
    const struct said said[] = {
        {"evlock_new", evlock_new(&lock, client, "n", 1, NULL)},
        {"evlock_run", evlock_run(&lock, client, "n", 1, NULL, on_body, NULL, world)},
        {"evlock_client_stats", evlock_client_stats(client, &stats, sizeof(stats))},
        {"evlock_client_node", /* of a cluster that is not known yet there is none */
         world->plan.cluster ? EVLOCK_EFORKED : evlock_client_node(client, 0, &node, sizeof(node))},
        {"evlock_client_close", evlock_client_close(client, on_closed, world)},
    };
    check_said(world, said, sizeof(said) / sizeof(said[0]), EVLOCK_EFORKED);
    if (evlock_client_connection(client) != EVLOCK_AWAY)
        violated(world, "a child believes to be connected as its parent is");
}

static void use(struct world *world, const struct thing *thing) {
    int promised = client_is_gone(thing->client) ? EVLOCK_ECLOSED : EVLOCK_EFORKED;

    note(world, NULL, "uses %s of client %u", thing->kind == A_CLIENT ? "things" : "a lock", thing->client);
    if (thing->kind == A_CLIENT) {
        call_client(world, thing->it);
        return;
    }
    look_at_lock(world, thing->it);
    call_lock(world, thing->it, promised);
}

/* The handles of its runs have gone with a client. */
static void strike_out_runs(unsigned client) {
    struct thing *thing, *next;

    for (thing = TAILQ_FIRST(&estate); thing; thing = next) {
        next = TAILQ_NEXT(thing, link);
        if (thing->kind != A_RUN || thing->client != client)
            continue;
        TAILQ_REMOVE(&estate, thing, link);
        free(thing);
    }
}

static void give_back(struct world *world, struct thing *thing) {
    static const char *const names[] = {[A_CLIENT] = "the client", [A_LOCK] = "a lock", [A_RUN] = "a run"};

    note(world, NULL, "frees %s of client %u", names[thing->kind], thing->client);
    TAILQ_REMOVE(&estate, thing, link);
    if (thing->kind == A_CLIENT) {
        evlock_client_free(thing->it);
        strike_out_runs(thing->client);
    } else {
        evlock_free(thing->it);
    }
    free(thing);
}

static struct thing *draw_thing(struct world *world) {
    struct thing *thing, *found = NULL;
    unsigned count = 0;

    TAILQ_FOREACH (thing, &estate, link)
        if (draw(world) % ++count == 0)
            found = thing;
    return found;
}

/* Each timer rings, and stays as it is then. */
static void ring_timers(struct process *process) {
    struct virtual_timer *timer, *next;

    for (timer = TAILQ_FIRST(&process->loop.timers); timer; timer = next) {
        next = TAILQ_NEXT(timer, link);
        if (timer->at != NEVER)
            virtual_timer_ring(timer);
    }
    if (virtual_timer_next(&process->loop))
        violated(process->world, "a child sets a timer of its parent's");
}

/* A connection is called once, and then let go. */
static void serve(struct world *world, struct redisAsyncContext *connection) {
    unsigned before = orphan_count;

    if (draw_chance(world, 50))
        evlock_on_readable(connection);
    else
        evlock_on_writable(connection);
    if (orphan_count != before - 1)
        violated(world, "a connection of the parent's stays on the child's loop");
}

/* The child's copy of the loops, of those that know of forks: the others it may not run. */
static void run_loops(struct world *world) {
    struct process *process;
    struct orphan *orphan, *next;

    note(world, NULL, "runs its parent's loops");
    TAILQ_FOREACH (process, &world->processes, link)
        if (process->crashed && loop_forks(process))
            ring_timers(process);
    for (orphan = TAILQ_FIRST(&orphans); orphan; orphan = next) {
        next = TAILQ_NEXT(orphan, link);
        if (loop_forks(orphan->process) && draw_chance(world, 70))
            serve(world, orphan->connection);
    }
}

static void do_something(struct world *world, bool inside) {
    struct thing *thing = draw_thing(world);
    int64_t deed = draw_between(world, 0, 99);

    if (thing && deed < 60)
        use(world, thing);
    else if (thing && deed < 85)
        give_back(world, thing);
    else if (!inside)
        run_loops(world);
    check_untouched(world);
}

static void give_back_all(struct world *world) {
    struct thing *thing;

    while ((thing = draw_thing(world)))
        give_back(world, thing);
    check_untouched(world);
}

/* --- The child ---------------------------------------------------------------------------------------------------- */

static void inherit(enum belonging kind, void *it, unsigned client) {
    struct thing *thing = malloc(sizeof(*thing));

    *thing = (struct thing){.kind = kind, .it = it, .client = client};
    TAILQ_INSERT_TAIL(&estate, thing, link);
}

/* hiredis cleans up a connection of the parent's. */
static void on_gone(void *owner) {
    struct orphan *orphan = owner;

    if (!loop_forks(orphan->process))
        violated(orphan->process->world, "a child calls a loop that knows nothing of forks");
    else if (orphan->connection->c.fd >= 0)
        violated(orphan->process->world, "a child takes a connection off its loop before it has closed it");
    TAILQ_REMOVE(&orphans, orphan, link);
    orphan_count--;
    free(orphan);
}

/* The server sees the end of it when the parent's system would have it see that: here it ends with its process. */
static void orphan_wire(struct wire *wire) {
    struct orphan *orphan = malloc(sizeof(*orphan));

    orphan->connection = wire->connection;
    orphan->process = wire->process;
    virtual_watch_init(&orphan->watch, &wire->process->loop, wire->connection, on_gone, orphan);
    TAILQ_INSERT_TAIL(&orphans, orphan, link);
    orphan_count++;
    wire_client_gone(wire);
}

/* In the child's copy of the world there is no parent any more, as if it had crashed. */
static void forsake(struct process *process) {
    struct virtual_timer *timer;
    struct wire *wire;

    process->crashed = true;
    judge_forsakes(process->world->judge, process);
    actor_forsake(process->actor, inherit);
    while ((wire = TAILQ_FIRST(&process->wires)))
        orphan_wire(wire);
    if (loop_forks(process))
        return;
    TAILQ_FOREACH (timer, &process->loop.timers, link)
        timer->at = NEVER;
}

/* A schedule that takes so long, of the processor's time, hangs; the parent's clock for that is not inherited. */
static void watch_time(void) {
    static const struct itimerval limit = {.it_value.tv_sec = 240};

    setitimer(ITIMER_VIRTUAL, &limit, NULL);
}

static void become_child(struct world *world, bool inside) {
    static struct tally uncounted;
    struct process *process;

    world->forks.generation++;
    world->chance += world->forks.chance;
    world->tally = &uncounted;
    watch_time();
    sockets_forked();
    TAILQ_FOREACH (process, &world->processes, link)
        if (!process->crashed)
            forsake(process);
    for (int64_t deeds = draw_between(world, 0, 12); deeds > 0; deeds--)
        do_something(world, inside);
    if (draw_chance(world, 50))
        give_back_all(world);
    world->forks.over = draw_chance(world, 60);
    for (int64_t count = draw_between(world, 1, 2); count > 0 && !world->forks.over; count--)
        process_new(world);
    plan_next(world, world->forks.over ? 0 : 30);
}

void forks_close(struct world *world) {
    struct process *process;

    if (world->forks.generation == 0)
        return;
    for (int64_t deeds = draw_between(world, 0, 6); deeds > 0; deeds--)
        do_something(world, false);
    give_back_all(world);
    TAILQ_FOREACH (process, &world->processes, link)
        if (process->crashed && !loop_forks(process) && virtual_timer_next(&process->loop))
            violated(world, "a child sets a timer of a loop that knows nothing of forks");
}

/* --- The parent --------------------------------------------------------------------------------------------------- */

/* What a child has seen; it may have died of that. */
static void wait_for(struct world *world, pid_t child) {
    int status = -1;

    if (child < 0 || waitpid(child, &status, 0) != child)
        violated(world, "no child could be made, or waited for");
    else if (WIFSIGNALED(status))
        violated(world, "a child died: %s", strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status))
        violated(world, "a child ended: %d", WEXITSTATUS(status));
    else if (verdict[0])
        violated(world, "in a child: %s", verdict);
}

bool forks_come(struct world *world, bool inside) {
    struct forks *forks = &world->forks;
    pid_t child;

    if (world->now < forks->at || forks->inside != inside || world->calm || world->violation[0])
        return false;
    forks->at = NEVER;
    if (!verdict)
        verdict = mmap(NULL, VIOLATION_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (verdict == MAP_FAILED)
        abort();
    fflush(stdout);
    world->tally->forks++;
    world->tally->inside += inside;
    child = child_kinds[draw_apart(world, 0, CHILD_KINDS - 1)]();
    if (child == 0) {
        become_child(world, inside);
        return true;
    }
    wait_for(world, child);
    plan_next(world, 40);
    return false;
}

void forks_end(const struct world *world) {
    if (world->forks.generation == 0)
        return;
    memcpy(verdict, world->violation, VIOLATION_MAX);
    fflush(stdout);
    _exit(0);
}
