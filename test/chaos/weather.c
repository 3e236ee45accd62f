/* The faults; see weather.h. */
#include "weather.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <evlock/evlock.h>
#include <evlock/loop.h>

#include "history.h"

enum {
    CALM_MS = 100, /* from one fault to the next, at most */
    TAKEOVER_MS = 6000,
    LONG_MS = 3000,   /* so long a node of a cluster may be away */
    TROUBLED_MAX = 2, /* of five servers; the others are the quorum that makes the test worth while */
};

static struct weather *weather; /* of the running step, for the faults below */

static long between(long least, long most) {
    return least + random() % (most - least + 1);
}

static struct wire *wire_of(int number) {
    return &weather->proxy->wires[number];
}

/* --- Of wires ----------------------------------------------------------------------------------------------------- */

static bool delay_briefly(int wire) {
    atomic_store(&wire_of(wire)->delay_ms, (int)between(2, 40));
    return true;
}

static bool delay_long(int wire) {
    atomic_store(&wire_of(wire)->delay_ms, (int)between(100, 600));
    return true;
}

static void end_delay(int wire) {
    atomic_store(&wire_of(wire)->delay_ms, 0);
}

static bool split(int wire) {
    atomic_store(&wire_of(wire)->split, 1);
    return true;
}

static void end_split(int wire) {
    atomic_store(&wire_of(wire)->split, 0);
}

static bool refuse(int wire) {
    atomic_store(&wire_of(wire)->refuse, 1);
    proxy_cut(wire_of(wire), (int)between(0, 100));
    return true;
}

static void end_refusal(int wire) {
    atomic_store(&wire_of(wire)->refuse, 0);
}

static bool stall(int wire) {
    atomic_store(&wire_of(wire)->stall_ways, (int)between(TO_SERVER, TO_SERVER | TO_CLIENT));
    atomic_store(&wire_of(wire)->stall_percent, (int)between(30, 100));
    return true;
}

static void end_stall(int wire) {
    atomic_store(&wire_of(wire)->stall_percent, 0);
}

/* What is asked for is done, and nobody hears of it, until the connections break. */
static bool lose_replies(int wire) {
    atomic_store(&wire_of(wire)->stall_ways, TO_CLIENT);
    atomic_store(&wire_of(wire)->stall_percent, 100);
    return true;
}

static void end_loss(int wire) {
    proxy_cut(wire_of(wire), 100);
    end_stall(wire);
}

static bool cut(int wire) {
    proxy_cut(wire_of(wire), (int)between(20, 100));
    return true;
}

static bool cut_all(int wire) {
    (void)wire;
    for (int i = 0; i < weather->mode->wires; i++)
        proxy_cut(wire_of(i), 100);
    return true;
}

/* --- Of servers --------------------------------------------------------------------------------------------------- */

static struct server *server_of(int number) {
    return weather->servers[number];
}

static bool answers(int server) {
    return server_of(server)->pid && !server_of(server)->paused;
}

static bool pause_server(int server) {
    server_pause(server_of(server));
    return true;
}

static void resume_server(int server) {
    server_resume(server_of(server));
}

static bool kill_server(int server) {
    server_kill9(server_of(server));
    return true;
}

static void restart_server(int server) {
    if (server < weather->mode->servers)
        server_restart(server_of(server));
    else
        sentinels_restart(&weather->group, (size_t)(server - weather->mode->servers));
}

/* A server of the quorum forgets, or goes back to what it saved at some time. */
static bool kill_forgetting(int server) {
    char path[96];
    snprintf(path, sizeof(path), "%s/dump.rdb", server_of(server)->folder);
    if (random() % 2)
        unlink(path);
    return kill_server(server);
}

/* One that has just restarted may still be loading, and say no. That it is done once more does no harm. */
static bool order(int server, const char *command) {
    freeReplyObject(server_ask(server_of(server), command));
    return true;
}

static bool save(int server) {
    return order(server, "SAVE");
}

/* A majority of those that are well forgets at once, and comes back at once. */
static bool forget_everything(int first) {
    int chosen[SERVERS_MAX], len = 0;
    for (int i = 0; i < weather->mode->servers && len <= weather->mode->servers / 2; i++) {
        int server = (first + i) % weather->mode->servers;
        if (!weather->now[SERVER][server].fault)
            chosen[len++] = server;
    }
    for (int i = 0; i < len; i++)
        kill_forgetting(chosen[i]);
    for (int i = 0; i < len; i++)
        restart_server(chosen[i]);
    return true;
}

static bool flush_scripts(int server) {
    return order(server, "SCRIPT FLUSH");
}

static bool kill_clients(int server) {
    return order(server, "CLIENT KILL TYPE normal SKIPME yes");
}

/* --- Of a primary and its replica --------------------------------------------------------------------------------- */

static bool follows(struct server *replica) {
    redisReply *reply = server_ask(replica, "INFO replication");
    bool up = reply->type == REDIS_REPLY_STRING && strstr(reply->str, "master_link_status:up");
    freeReplyObject(reply);
    return up;
}

static bool can_follow(int replica) {
    return replica != weather->primary && answers(replica) && answers(weather->primary) && follows(server_of(replica));
}

/* The wire must not lead to two primaries: nothing passes while the one gives way to the other. */
static void fail_over(bool (*lose)(int server)) {
    int old = weather->primary, new = 1 - old;
    atomic_store(&wire_of(0)->server, 0);
    proxy_cut(wire_of(0), 100);
    lose(old);
    server_resume(server_of(new));
    server_do(server_of(new), "REPLICAOF NO ONE");
    weather->primary = new;
    atomic_store(&wire_of(0)->server, server_of(new)->port);
}

static bool primary_dies(int server) {
    if (server != weather->primary || !can_follow(1 - server))
        return false;
    fail_over(kill_server);
    return true;
}

static bool primary_hangs(int server) {
    if (server != weather->primary || !can_follow(1 - server))
        return false;
    fail_over(pause_server);
    return true;
}

/* For a while the replica gets nothing of what the primary grants. */
static bool primary_dies_ahead(int server) {
    if (server != weather->primary || !can_follow(1 - server))
        return false;
    server_pause(server_of(1 - server));
    order(server, "CLIENT KILL TYPE replica");
    usleep((useconds_t)between(5, 200) * 1000);
    fail_over(kill_server);
    return true;
}

static void old_primary_follows(int server) {
    if (!server_of(server)->pid)
        restart_server(server);
    resume_server(server);
    server_do(server_of(server), "REPLICAOF 127.0.0.1 %d", server_of(weather->primary)->port);
}

static bool replica_dies(int server) {
    return server != weather->primary && kill_server(server);
}

static bool replica_hangs(int server) {
    return server != weather->primary && pause_server(server);
}

/* --- Of a primary, its replica and their sentinels ---------------------------------------------------------------- */

static bool is_sentinel(int number) {
    return number >= weather->mode->servers;
}

/* What one has confirmed would go with the other: it must have all of it, also when it is started again. Of a server
 * that sentinels cannot see, the other takes the place. */
static bool all_are_well(void) {
    int linked = 0;
    for (int i = 0; i < weather->mode->servers; i++) {
        if (!answers(i) || (weather->mode->bit == SENTINEL && weather->now[WIRE][i].fault))
            return false;
        redisReply *reply = server_ask(server_of(i), "INFO persistence");
        bool rewriting = reply->type != REDIS_REPLY_STRING || strstr(reply->str, "aof_rewrite_in_progress:1") ||
                         strstr(reply->str, "aof_rewrite_scheduled:1");
        freeReplyObject(reply);
        if (rewriting)
            return false;
        linked += follows(server_of(i));
    }
    return linked == weather->mode->servers / 2;
}

static bool kill_one(int server) {
    return (is_sentinel(server) || all_are_well()) && kill_server(server);
}

static bool pause_one(int server) {
    return (is_sentinel(server) || all_are_well()) && pause_server(server);
}

/* For longer than the sentinels are patient; one of them would not trust its own clock after that. */
static bool pause_for_long(int server) {
    return !is_sentinel(server) && all_are_well() && pause_server(server);
}

static bool cut_off(int wire) {
    if (is_sentinel(wire) || !all_are_well())
        return false;
    atomic_store(&wire_of(wire)->stall_ways, TO_SERVER | TO_CLIENT);
    atomic_store(&wire_of(wire)->stall_percent, 100);
    return true;
}

static bool order_failover(int sentinel) {
    return is_sentinel(sentinel) && order(sentinel, "SENTINEL FAILOVER " SENTINELS_NAME);
}

/* --- Of a cluster ------------------------------------------------------------------------------------------------- */

static bool cluster_is_well(void) {
    return all_are_well() && cluster_is_ok(&weather->cluster);
}

/* A node that was elected takes the votes for new ones when its master fails soon after (see cluster.h). So what makes
 * for an election begins when the last one was long ago. */
static bool may_elect(int lasts_ms) {
    static int64_t next;
    int64_t now = evlock_clock_us();
    if (now < next || !cluster_is_well())
        return false;
    next = now + (lasts_ms + 6 * CLUSTER_TIMEOUT_MS) * (int64_t)1000;
    return true;
}

static bool kill_node(int node) {
    return may_elect(LONG_MS) && kill_server(node);
}

static bool pause_node(int node) {
    return may_elect(LONG_MS) && pause_server(node);
}

/* Told to the replica, in any of the three ways, and waited for, or until it is given up: a slot that moved meanwhile
 * would lose its keys. */
static bool order_takeover(int node) {
    static const char *const orders[] = {"CLUSTER FAILOVER", "CLUSTER FAILOVER FORCE", "CLUSTER FAILOVER TAKEOVER"};
    if (!answers(node) || !follows(server_of(node)) || !may_elect(0))
        return false;
    order(node, orders[random() % 3]);
    for (int i = 0; i < TAKEOVER_MS && (follows(server_of(node)) || !cluster_is_well()); i++)
        usleep(1000);
    return true;
}

/* A name's slot, with all that is in it. A move does not wait for the replica of the new master: this does. */
static bool move_slot(int to) {
    const char *key = weather->mode->names[random() % weather->mode->names_len].key;
    int slot = cluster_slot(&weather->cluster, key);
    if (!cluster_is_well() || follows(server_of(to)))
        return false;
    int from = cluster_owner(&weather->cluster, slot);
    if (from < 0 || from == to)
        return false;
    cluster_open(&weather->cluster, slot, to);
    usleep((useconds_t)between(0, 20) * 1000);
    cluster_migrate(&weather->cluster, slot, to);
    usleep((useconds_t)between(0, 20) * 1000);
    cluster_settle(&weather->cluster, slot, to);
    server_do(server_of(to), "SET {%s}:moved 1 PX 1", key);
    return server_integer(server_of(to), "WAIT 1 2000") == 1;
}

/* --- Of processes ------------------------------------------------------------------------------------------------- */

static bool stop_process(int process) {
    weather->stop(process);
    return true;
}

static void resume_process(int process) {
    weather->resume(process);
}

static bool crash_process(int process) {
    if (process < STEADY)
        return false;
    weather->crash(process);
    return true;
}

static bool retire_process(int process) {
    if (process < STEADY)
        return false;
    weather->retire(process);
    return true;
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

struct fault {
    const char *name;
    enum target target;
    int modes;
    int weight;
    int least_ms; /* how long it lasts; without an end, until it may come again to the same target */
    int most_ms;
    bool (*begin)(int number); /* false: it cannot be now */
    void (*end)(int number);   /* NULL: nothing is to be mended */
};

enum { ALL = SINGLE | QUORUM | FAILOVER | SENTINEL | CLUSTER };

static const struct fault faults[] = {
    {"brief delays", WIRE, ALL, 4, 50, 500, delay_briefly, end_delay},
    {"long delays", WIRE, ALL, 3, 200, 1000, delay_long, end_delay},
    {"split packets", WIRE, ALL, 2, 50, 300, split, end_split},
    {"connections refused", WIRE, ALL, 1, 10, 300, refuse, end_refusal},
    {"connections half open", WIRE, ALL, 3, 50, 1200, stall, end_stall},
    {"replies lost", WIRE, ALL, 4, 2, 100, lose_replies, end_loss},
    {"connections cut", CONNECTIONS, ALL, 6, 0, 50, cut, NULL},
    {"all connections cut", CONNECTIONS, QUORUM, 1, 0, 50, cut_all, NULL},
    {"server stopped", SERVER, SINGLE | QUORUM, 2, 20, 800, pause_server, resume_server},
    {"server killed, keeping its data", SERVER, SINGLE, 2, 0, 200, kill_server, restart_server},
    {"server killed, forgetting", SERVER, QUORUM, 2, 0, 200, kill_forgetting, restart_server},
    {"server saved", SERVER, QUORUM, 1, 0, 0, save, NULL},
    {"majority killed, forgetting", SERVER, QUORUM, 3, MAX_TTL_MS + 1500, 4000, forget_everything, NULL},
    {"scripts flushed", SERVER, ALL, 2, 0, 0, flush_scripts, NULL},
    {"clients killed", SERVER, ALL, 2, 0, 0, kill_clients, NULL},
    {"primary died", SERVER, FAILOVER, 2, 0, 300, primary_dies, old_primary_follows},
    {"primary died, its replica behind", SERVER, FAILOVER, 2, 0, 300, primary_dies_ahead, old_primary_follows},
    {"primary hung", SERVER, FAILOVER, 2, 100, 1000, primary_hangs, old_primary_follows},
    {"replica died", SERVER, FAILOVER, 1, 0, 500, replica_dies, old_primary_follows},
    {"replica hung", SERVER, FAILOVER, 1, 50, 1000, replica_hangs, resume_server},
    {"failover ordered", SERVER, SENTINEL, 2, 0, 500, order_failover, NULL},
    {"cut off", WIRE, SENTINEL, 12, 1500, 4000, cut_off, end_stall},
    {"killed", SERVER, SENTINEL, 2, 0, 500, kill_one, restart_server},
    {"killed for long", SERVER, SENTINEL, 2, 1500, 4000, kill_one, restart_server},
    {"stopped", SERVER, SENTINEL, 2, 20, 800, pause_one, resume_server},
    {"stopped for long", SERVER, SENTINEL, 3, 1500, 3000, pause_for_long, resume_server},
    {"takeover ordered", SERVER, CLUSTER, 12, 0, 500, order_takeover, NULL},
    {"slot moved", SERVER, CLUSTER, 20, 0, 100, move_slot, NULL},
    {"node killed", SERVER, CLUSTER, 3, 0, 500, kill_node, restart_server},
    {"node killed for long", SERVER, CLUSTER, 3, 1500, LONG_MS, kill_node, restart_server},
    {"node stopped", SERVER, CLUSTER, 3, 20, 800, pause_node, resume_server},
    {"node stopped for long", SERVER, CLUSTER, 3, 1500, LONG_MS, pause_node, resume_server},
    {"process stopped", PROCESS, ALL, 4, 10, 1200, stop_process, resume_process},
    {"process crashed", PROCESS, ALL, 1, 100, 1000, crash_process, NULL},
    {"process retired", PROCESS, ALL, 1, 200, 1000, retire_process, NULL},
};

enum { FAULTS = sizeof(faults) / sizeof(faults[0]) };

static const struct fault *draw_fault(void) {
    int sum = 0;
    for (int i = 0; i < FAULTS; i++)
        sum += faults[i].modes & weather->mode->bit ? faults[i].weight : 0;
    long draw = random() % sum;
    for (int i = 0; i < FAULTS; i++) {
        draw -= faults[i].modes & weather->mode->bit ? faults[i].weight : 0;
        if (draw < 0)
            return &faults[i];
    }
    return NULL;
}

static int targets(enum target target) {
    int servers = weather->mode->servers + weather->mode->sentinels;
    return target == SERVER ? servers : target == PROCESS ? WORKERS : weather->mode->wires;
}

static bool enough(enum target target) {
    int troubled = 0;
    for (int i = 0; i < targets(target); i++)
        troubled += weather->now[target][i].fault != NULL;
    return target == SERVER && weather->mode->bit == QUORUM && troubled >= TROUBLED_MAX;
}

static void record(const struct fault *fault, int number, int64_t at, int64_t until) {
    if (weather->incidents_len == weather->incidents_size) {
        weather->incidents_size = weather->incidents_size ? 2 * weather->incidents_size : 1024;
        weather->incidents = realloc(weather->incidents, weather->incidents_size * sizeof(struct incident));
        if (!weather->incidents)
            exit(2);
    }
    weather->incidents[weather->incidents_len++] = (struct incident){at, until, fault->name, fault->target, number};
}

static void begin_one(void) {
    const struct fault *fault = draw_fault();
    int number = (int)between(0, targets(fault->target) - 1);
    int64_t at = evlock_clock_us(), lasts = between(fault->least_ms, fault->most_ms) * 1000;
    if (weather->now[fault->target][number].fault || enough(fault->target) || !fault->begin(number))
        return;
    weather->now[fault->target][number].fault = fault;
    weather->now[fault->target][number].until = evlock_clock_us() + lasts;
    record(fault, number, at, evlock_clock_us() + lasts);
}

static void end_those_before(int64_t moment) {
    for (enum target target = 0; target < TARGETS; target++)
        for (int i = 0; i < targets(target); i++) {
            const struct fault *fault = weather->now[target][i].fault;
            if (!fault || weather->now[target][i].until > moment)
                continue;
            weather->now[target][i].fault = NULL;
            if (fault->end)
                fault->end(i);
        }
}

void weather_step(struct weather *of) {
    weather = of;
    end_those_before(evlock_clock_us());
    if (evlock_clock_us() < of->next)
        return;
    begin_one();
    of->next = evlock_clock_us() + between(1, CALM_MS) * 1000;
}

void weather_clear(struct weather *of) {
    weather = of;
    end_those_before(INT64_MAX);
}

void weather_report(const struct weather *of) {
    printf("faults:");
    for (int i = 0; i < FAULTS; i++) {
        size_t count = 0;
        for (size_t j = 0; j < of->incidents_len; j++)
            count += of->incidents[j].fault == faults[i].name;
        if (count)
            printf(" %s %zu;", faults[i].name, count);
    }
    printf(" in all %zu\n", of->incidents_len);
}
