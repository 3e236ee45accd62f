/*
 * failover_wait_ms in a cluster: each shard waits by itself. What a master may have lost is granted to nobody else
 * while its holder may believe, holders keep their leases, and other shards go on. Each test is named after the
 * behaviour that it shows.
 */
#include "clustered.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SHARDS = 3, TTL = 12000, SHORT_TTL = 2000 };

static struct record losses;

static evlock_client_options waiting_options(struct fixture *f, int64_t closed_ms, int64_t max_ttl_ms) {
    evlock_client_options options = client_options(f);
    options.failover_wait_ms = closed_ms;
    options.max_ttl_ms = max_ttl_ms;
    options.backoff_min_ms = 10;
    options.backoff_max_ms = 200;
    return options;
}

static evlock_client *waiting_client(struct fixture *f, int64_t closed_ms, int64_t max_ttl_ms) {
    evlock_client_options options = waiting_options(f, closed_ms, max_ttl_ms);
    evlock_client *client = client_new(f, cluster.url, &options);
    await_connected(f, client);
    return client;
}

static int shard_owner(int shard) {
    return cluster_owner(&cluster, shard * CLUSTER_SLOTS / SHARDS + 1000);
}

/* As if all had been waited for long ago. */
static void age_marks(void) {
    static const char older[] = "for _, mark in ipairs(redis.call('KEYS', 'evlock:history:*')) do "
                                "redis.call('SET', mark, (string.gsub(redis.call('GET', mark), '%d+$', '1'))) end";
    for (int i = 0; i < SHARDS; i++)
        server_do(&cluster.nodes[shard_owner(i)], "EVAL %s 0", older);
}

/* Two clients that wait for nothing now. */
static void begin_waited_out(struct fixture *f, int64_t closed_ms, int64_t max_ttl_ms, evlock_client *clients[2]) {
    losses = (struct record){0};
    evlock_client *first = waiting_client(f, closed_ms, max_ttl_ms);
    age_marks();
    client_free(f, first);
    for (int i = 0; i < 2; i++)
        clients[i] = waiting_client(f, closed_ms, max_ttl_ms);
    f->away = (struct record){0};
}

static evlock *lock_of(struct fixture *f, evlock_client *client, int node, int nth, int64_t ttl_ms) {
    evlock_options options = {
        .size = sizeof(options),
        .ttl_ms = ttl_ms,
        .renewal_interval_ms = 300,
        .retry_delay_ms = 20,
        .auto_renewal = true,
        .fence = true,
        .on_lost = record_end,
        .arg = &losses,
    };
    evlock_client *usual = f->client;
    f->client = client;
    evlock *lock = lock_at(f, node, nth, &options);
    f->client = usual;
    return lock;
}

/* Another master, after whatever failovers. */
static int elsewhere_than(int node) {
    return shard_owner(0) == node ? shard_owner(1) : shard_owner(0);
}

/* A mark of the shard of a node, the `nth`, as the library chooses it. */
static void mark_of(int node, int nth, char mark[NAME_SIZE]) {
    int number = 0;
    do
        snprintf(mark, NAME_SIZE, "evlock:history:{%d}", number++);
    while (cluster_owner(&cluster, cluster_slot(&cluster, mark)) != node || nth-- > 0);
}

static bool has_key(int node, const char *key) {
    return server_integer(&cluster.nodes[node], "EXISTS %s", key) == 1;
}

/* --- A new history ------------------------------------------------------------------------------------------------ */

static void no_shard_grants_at_first(void **state) {
    struct fixture *f = *state;
    int64_t begun = evlock_clock_us();
    evlock_client *client = waiting_client(f, 400, TTL / 2);
    evlock *locks[SHARDS];
    evlock_node_info info;
    char mark[NAME_SIZE];

    assert_true(evlock_clock_us() - begun >= 400 * 1000);
    assert_status(f->away.status, EVLOCK_EEXCLUDED);
    for (unsigned i = 0; i < SHARDS; i++) {
        assert_status(evlock_client_node(client, i, &info, sizeof(info)), EVLOCK_OK);
        assert_status(info.status, EVLOCK_EEXCLUDED);
        locks[i] = lock_of(f, client, (int)i, 0, TTL / 2);
        assert_status(await_try(f, locks[i]), EVLOCK_EEXCLUDED);
        mark_of((int)i, 0, mark);
        assert_true(has_key((int)i, mark));
    }
    for (int i = 0; i < SHARDS; i++)
        assert_status(await_acquire(f, locks[i], NULL), EVLOCK_OK);
    assert_true(evlock_clock_us() - begun >= (400 + TTL / 2) * 1000);
    int waits = f->away.count;
    client = waiting_client(f, 400, TTL / 2);
    for (int i = 0; i < SHARDS; i++)
        assert_status(await_acquire(f, lock_of(f, client, i, 1, TTL / 2), NULL), EVLOCK_OK);
    assert_int_equal(f->away.count, waits);
}

/* A holder, who wants its lock, and who wants another lock of the same slot, which tells when that is granted again;
 * and a lock of another master. */
struct three {
    evlock *held, *wanted, *probe, *elsewhere;
    struct record granted, probed;
};

static void begin_three(struct fixture *f, struct three *three, int64_t closed_ms, int node, int64_t ttl_ms) {
    evlock_client *clients[2];
    begin_waited_out(f, closed_ms, ttl_ms, clients);
    *three = (struct three){.held = lock_of(f, clients[0], node, 0, ttl_ms)};
    assert_status(await_acquire(f, three->held, NULL), EVLOCK_OK);
    three->wanted = lock_of(f, clients[1], node, 0, ttl_ms);
    evlock_options options = with_ttl(ttl_ms);
    char name[NAME_SIZE + 8];
    snprintf(name, sizeof(name), "{%s}probe", name_of(three->held));
    options.retry_delay_ms = 20;
    three->probe = lock_new_on(f, clients[1], name, &options);
    assert_status(evlock_acquire(three->wanted, NULL, record_end, &three->granted), EVLOCK_OK);
    three->elsewhere = lock_of(f, clients[1], (node + 1) % (int)cluster.masters, 0, ttl_ms);
}

/* While the shard grants nothing, another one does. */
static void await_end_of_wait(struct fixture *f, struct three *three) {
    int64_t end = evlock_clock_us() + 2 * WAIT_MS * INT64_C(1000);
    int served = 0;
    assert_status(evlock_acquire(three->probe, NULL, record_end, &three->probed), EVLOCK_OK);
    while (!three->probed.count && evlock_clock_us() < end) {
        assert_status(await_acquire(f, three->elsewhere, NULL), EVLOCK_OK);
        assert_status(await_release(f, three->elsewhere), EVLOCK_OK);
        assert_true(evlock_is_held(three->held));
        assert_int_equal(three->granted.count, 0);
        served++;
        run_for(f, 20);
    }
    assert_ended(&three->probed, EVLOCK_OK);
    assert_true(served > 10);
}

static void end_three(struct fixture *f, struct three *three, int64_t closed_since, int64_t wait_ms) {
    assert_true(three->probed.at - closed_since >= wait_ms * 1000);
    assert_int_equal(three->granted.count, 0);
    assert_true(evlock_is_held(three->held) && is_kept(three->held));
    assert_int_equal(losses.count, 0);
    uint64_t fence = evlock_fence(three->held);
    assert_status(await_release(f, three->held), EVLOCK_OK);
    await(f, three->granted.count);
    assert_ended(&three->granted, EVLOCK_OK);
    assert_true(evlock_fence(three->wanted) > fence);
}

/* The heir has not got the lock: it is deleted there before the heir is asked for anything. */
static void await_heir_without(struct fixture *f, int slot, int old, const char *key) {
    int heir = old;
    await(f, (heir = cluster_owner(&cluster, slot)) >= 0 && heir != old);
    server_do(&cluster.nodes[heir], "DEL %s", key);
}

static void a_killed_master_s_locks_are_kept_and_not_granted(void **state) {
    struct fixture *f = *state;
    struct three three;
    begin_three(f, &three, 1500, 0, TTL);
    int old = owner_of(three.held), slot = slot_of(three.held);
    int64_t killed = evlock_clock_us();
    server_kill9(&cluster.nodes[old]);
    await_heir_without(f, slot, old, name_of(three.held));
    await_end_of_wait(f, &three);
    end_three(f, &three, killed, 1500 + TTL);
}

static void a_takeover_is_waited_out(void **state) {
    struct fixture *f = *state;
    struct three three;
    begin_three(f, &three, 1000, 1, TTL / 2);
    int old = owner_of(three.held), slot = slot_of(three.held);
    int64_t taken = evlock_clock_us();
    cluster_fail_over(&cluster, cluster_replica_of(&cluster, old), "TAKEOVER");
    await_heir_without(f, slot, old, name_of(three.held));
    await_end_of_wait(f, &three);
    end_three(f, &three, taken, 1000 + TTL / 2);
}

static void a_master_that_restarts_empty_grants_nothing(void **state) {
    struct fixture *f = *state;
    struct three three;
    begin_three(f, &three, 500, 2, TTL);
    int64_t restarted = evlock_clock_us();
    server_restart(&cluster.nodes[owner_of(three.held)]);
    await_end_of_wait(f, &three);
    end_three(f, &three, restarted, 500 + TTL);
}

/* Nothing ends a connection to a master that another replaces, and that replaces the other: who was idle meanwhile must
 * not take it for the one before. What was confirmed within the last second may still be believed: both take longer.
 * Returns when the first of both failovers was over. */
static int64_t fail_over_and_back(struct fixture *f, const evlock *lock) {
    int slot = slot_of(lock), old = owner_of(lock), heir = cluster_replica_of(&cluster, old);
    int64_t begun = evlock_clock_us();
    cluster_fail_over(&cluster, heir, "TAKEOVER");
    assert_int_equal(cluster_await_other(&cluster, slot, old), heir);
    cluster_await_ok(&cluster);
    int64_t taken = evlock_clock_us();
    cluster_fail_over(&cluster, old, "TAKEOVER");
    assert_int_equal(cluster_await_other(&cluster, slot, heir), old);
    cluster_await_ok(&cluster);
    while (evlock_clock_us() - begun <= 1100 * 1000)
        usleep(10 * 1000); /* idle: the loop does not turn */
    assert_int_equal(f->away.count, 0);
    return taken;
}

#define ANOTHER "its history is another than at the login"

static void an_idle_connection_outlives_no_history(void **state) {
    struct fixture *f = *state;
    evlock_client *clients[2];
    begin_waited_out(f, 500, SHORT_TTL, clients);
    evlock *lock = lock_of(f, clients[0], 0, 0, SHORT_TTL);
    int64_t taken = fail_over_and_back(f, lock);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_true(evlock_clock_us() - taken >= (500 + SHORT_TTL) * 1000);
    assert_true(logged(f, ANOTHER));
}

/* Nor is a belief prolonged by what another history has. */
static void an_idle_connection_prolongs_nothing_in_another_history(void **state) {
    struct fixture *f = *state;
    struct record extended = {0};
    evlock_options options = with_ttl(TTL);
    evlock_client *clients[2];
    begin_waited_out(f, 500, TTL, clients);
    f->client = clients[0];
    evlock *lock = lock_at(f, 0, 0, &options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    (void)fail_over_and_back(f, lock);
    assert_status(evlock_extend(lock, TTL, EVLOCK_EXTEND_REPLACE, record_end, &extended), EVLOCK_OK);
    await(f, logged(f, ANOTHER) || extended.count);
    assert_int_equal(extended.count, 0);
}

/* What a master may not say any more may be another by now. */
static void a_history_that_is_refused_is_another(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    evlock_client *clients[2];
    begin_waited_out(f, 500, SHORT_TTL, clients);
    evlock *lock = lock_of(f, clients[0], 0, 0, SHORT_TTL);
    struct server *master = &cluster.nodes[owner_of(lock)];
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_status(await_release(f, lock), EVLOCK_OK);
    run_for(f, 1100);
    server_do(master, "ACL SETUSER default -info");
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    await(f, logged(f, ANOTHER));
    assert_int_equal(record.count, 0);
    server_do(master, "ACL SETUSER default +info");
    await(f, record.count);
    assert_ended(&record, EVLOCK_OK);
}

/* What was asked a second ago says nothing of now, however late it was answered. */
static void a_history_is_known_since_it_was_asked_for(void **state) {
    struct fixture *f = *state;
    evlock_client *clients[2];
    struct record record = {0};
    begin_waited_out(f, 500, TTL, clients);
    evlock *lock = lock_of(f, clients[0], 0, 0, TTL), *next = lock_of(f, clients[0], 0, 1, TTL);
    struct server *master = &cluster.nodes[owner_of(lock)];
    long long before = server_calls(master, "info");
    server_pause(master);
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    run_for(f, 1100);
    server_resume(master);
    await(f, record.count > 0);
    assert_status(await_acquire(f, next, NULL), EVLOCK_OK);
    assert_true(server_calls(master, "info") >= before + 1 + 2); /* that of the test, and those of the client */
}

/* --- Marks and slots ---------------------------------------------------------------------------------------------- */

/* Who has waited needs the mark no more; who comes later finds another, and waits. */
static void a_mark_may_move_away(void **state) {
    struct fixture *f = *state;
    evlock_client *clients[2];
    char mark[NAME_SIZE], next[NAME_SIZE];
    begin_waited_out(f, 400, SHORT_TTL, clients);
    evlock *lock = lock_of(f, clients[0], 0, 0, SHORT_TTL);
    int node = owner_of(lock);
    mark_of(node, 0, mark);
    cluster_move(&cluster, cluster_slot(&cluster, mark), elsewhere_than(node));
    assert_true(has_key(elsewhere_than(node), mark));
    assert_status(await_try(f, lock), EVLOCK_OK);
    assert_status(await_release(f, lock), EVLOCK_OK);
    int64_t begun = evlock_clock_us();
    evlock *late = lock_of(f, waiting_client(f, 400, SHORT_TTL), 0, 0, SHORT_TTL);
    assert_status(await_try(f, late), EVLOCK_EEXCLUDED);
    assert_status(await_try(f, lock), EVLOCK_OK);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_status(await_acquire(f, late, NULL), EVLOCK_OK);
    assert_true(evlock_clock_us() - begun >= (400 + SHORT_TTL) * 1000);
    mark_of(node, 0, next);
    assert_string_not_equal(mark, next);
    assert_true(has_key(node, next));
}

/* A slot may be on its way for long, as when who moved it was interrupted. */
static void a_mark_that_is_on_its_way_is_replaced(void **state) {
    struct fixture *f = *state;
    char mark[NAME_SIZE];
    int node = shard_owner(0);
    mark_of(node, 0, mark);
    int slot = cluster_slot(&cluster, mark);
    cluster_open(&cluster, slot, elsewhere_than(node));
    waiting_client(f, 400, SHORT_TTL);
    mark_of(node, 1, mark);
    assert_true(has_key(node, mark));
    assert_int_equal(server_integer(&cluster.nodes[node], "DBSIZE"), 1);
    cluster_cancel(&cluster, slot);
}

static bool says(int node, const char *question, const char *words) {
    redisReply *reply = server_ask(&cluster.nodes[node], question);
    bool found = reply->type == REDIS_REPLY_STRING && strstr(reply->str, words);
    freeReplyObject(reply);
    return found;
}

/* Those of docs/protocol.md. Who may not see the marks cannot know that nothing was lost. */
static void no_more_rights_are_needed_than_documented(void **state) {
    static const char rights[] =
        "ACL SETUSER waiter reset on >secret -@all +get +mget +set +del +pttl +pexpire +evalsha "
        "+script|load +client|id +client|info +client|kill +client|reply +wait "
        "+cluster|nodes +asking +info +time ~N:* ~{N:*";
    struct fixture *f = *state;
    evlock_client_options options = waiting_options(f, 100, SHORT_TTL);
    options.user = "waiter";
    options.password = "secret";
    for (size_t i = 0; i < cluster.len; i++)
        server_do(&cluster.nodes[i], rights);
    evlock_client *client = client_new(f, cluster.url, &options);
    await(f, f->away.count > 0);
    assert_status(f->away.status, EVLOCK_EPERM);
    for (size_t i = 0; i < cluster.len; i++)
        server_do(&cluster.nodes[i], "ACL SETUSER waiter ~evlock:history:*");
    await_connected(f, client);
    assert_status(await_acquire(f, lock_of(f, client, 0, 0, SHORT_TTL), NULL), EVLOCK_OK);
}

/* A replica becomes a master without slots, as all know. */
static int new_master(struct fixture *f) {
    int node = cluster_replica_of(&cluster, cluster_owner(&cluster, CLUSTER_SLOTS - 1));
    char known[256];
    server_do(&cluster.nodes[node], "CLUSTER RESET SOFT");
    server_do(&cluster.nodes[node], "CLUSTER MEET 127.0.0.1 %d", cluster.nodes[0].port);
    await(f, says(node, "CLUSTER INFO", "cluster_state:ok"));
    snprintf(known, sizeof(known), "%s 127.0.0.1:%d@%d master", cluster.ids[node], cluster.nodes[node].port,
             cluster.nodes[node].port + 10000);
    for (int i = 0; i < (int)cluster.len; i++)
        await(f, i == node || says(i, "CLUSTER NODES", known));
    return node;
}

/* A master that had no slots, and so no mark, gets one with a lock in it: nobody may be granted anything there before
 * it has waited, and the lock is kept. */
static void slots_that_arrive_where_no_mark_is_wait_for_one(void **state) {
    struct fixture *f = *state;
    struct three three;
    int node = new_master(f);
    begin_three(f, &three, 500, 0, TTL);
    int slot = slot_of(three.held);
    cluster_open(&cluster, slot, node);
    cluster_migrate(&cluster, slot, node);
    await(f, logged(f, "it has no slots, and no mark of its history"));
    assert_int_equal(three.granted.count, 0);
    int64_t settled = evlock_clock_us();
    cluster_settle(&cluster, slot, node);
    await_end_of_wait(f, &three);
    end_three(f, &three, settled, 500 + TTL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CLUSTERED_BARE(no_shard_grants_at_first),
        CLUSTERED_BARE(a_killed_master_s_locks_are_kept_and_not_granted),
        CLUSTERED_BARE(a_takeover_is_waited_out),
        CLUSTERED_BARE(a_master_that_restarts_empty_grants_nothing),
        CLUSTERED_BARE(an_idle_connection_outlives_no_history),
        CLUSTERED_BARE(an_idle_connection_prolongs_nothing_in_another_history),
        CLUSTERED_BARE(a_history_that_is_refused_is_another),
        CLUSTERED_BARE(a_history_is_known_since_it_was_asked_for),
        CLUSTERED_BARE(a_mark_may_move_away),
        CLUSTERED_BARE(a_mark_that_is_on_its_way_is_replaced),
        CLUSTERED_BARE(no_more_rights_are_needed_than_documented),
        CLUSTERED_BARE(slots_that_arrive_where_no_mark_is_wait_for_one), /* the last: its cluster is another after it */
    };
    return run_clustered("cluster-failover-wait", tests, NULL);
}
