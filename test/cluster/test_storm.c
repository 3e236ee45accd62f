/*
 * Everything at once: handles of all sorts that acquire, extend, ask, cancel, break and release by chance, while slots
 * move, moves are cancelled, and replicas take over. No two hold one lock where no data were lost, every call ends, and
 * nothing is left behind. Each test is named after the behaviour that it shows.
 */
#include "clustered.h"

#include <stdio.h>
#include <stdlib.h>

#include "../world/chance.h"

enum { NAMES = 9, HANDLES = 90, CLIENTS = 2 };

struct user {
    evlock *lock;
    int name;
    struct record acquired, other;
    bool acquiring, asking;
};

static struct user users[HANDLES];
static uint64_t chance;
static int slots[NAMES];
static char names[NAMES][NAME_SIZE];

static unsigned below(unsigned most) {
    return (unsigned)(chance_next(&chance) % most);
}

static evlock_options any_options(int i) {
    evlock_options options = {.size = sizeof(options), .ttl_ms = 2000, .retry_delay_ms = 20};
    options.wait = i % 3 == 0 ? EVLOCK_WAIT_QUEUE : EVLOCK_WAIT_POLL;
    options.auto_renewal = i % 2;
    options.fence = i % 5 == 0;
    options.max_wait_ms = i % 4 ? 3000 : EVLOCK_UNLIMITED;
    if (i % 7 == 0) {
        options.min_replicas = 1;
        options.replica_timeout_ms = 150;
    }
    return options;
}

static void note_answer(evlock *lock, int status, const evlock_answer *answer, void *arg) {
    struct user *user = arg;
    (void)lock, (void)status, (void)answer;
    user->asking = false;
}

static void note_other(evlock *lock, int status, void *arg) {
    struct user *user = arg;
    (void)lock, (void)status;
    user->asking = false;
}

static void note_acquired(evlock *lock, int status, void *arg) {
    struct user *user = arg;
    (void)lock, (void)status;
    user->acquiring = false;
}

static void act(struct user *user) {
    if (user->asking)
        return;
    switch (below(10)) {
    case 0:
    case 1:
    case 2:
    case 3:
        if (!user->acquiring && evlock_acquire(user->lock, NULL, note_acquired, user) == EVLOCK_OK)
            user->acquiring = true;
        break;
    case 4:
        user->asking = evlock_query(user->lock, EVLOCK_QUERY_LOCKED | EVLOCK_QUERY_TTL, note_answer, user) == EVLOCK_OK;
        break;
    case 5:
        user->asking = evlock_extend(user->lock, 1000, EVLOCK_EXTEND_ADD, note_other, user) == EVLOCK_OK;
        break;
    case 6:
        (void)evlock_cancel(user->lock);
        break;
    case 7:
        if (below(20) == 0)
            user->asking = evlock_break(user->lock, note_other, user) == EVLOCK_OK;
        break;
    default:
        if (evlock_is_held(user->lock))
            user->asking = evlock_release(user->lock, note_other, user) == EVLOCK_OK;
        break;
    }
}

/* Fewer than two believe. A break, which is rare, is the holder's loss at the next renewal alone, so it is let out. */
static void begin_storm(struct fixture *f, uint64_t seed) {
    chance = seed;
    for (int i = 0; i < NAMES; i++) {
        evlock *named = lock_at(f, i % 3, i / 3, NULL);
        snprintf(names[i], sizeof(names[i]), "%s", name_of(named));
        slots[i] = slot_of(named);
    }
    for (int i = 0; i < CLIENTS; i++)
        client_new(f, cluster.url, NULL);
    for (int i = 0; i < HANDLES; i++) {
        evlock_options options = any_options(i);
        users[i] = (struct user){.name = i % NAMES};
        users[i].lock = lock_new_on(f, f->clients[i % (int)f->clients_len], names[i % NAMES], &options);
    }
}

static void rage(struct fixture *f, int64_t ms) {
    int64_t end = evlock_clock_us() + ms * 1000;
    while (evlock_clock_us() < end) {
        for (int i = 0; i < 8; i++)
            act(&users[below(HANDLES)]);
        loop_turn(f->loop);
    }
}

static bool is_busy(void) {
    for (int i = 0; i < HANDLES; i++)
        if (users[i].acquiring || users[i].asking)
            return true;
    return false;
}

/* How many keys of locks a server has: also of slots that are another's by now, as after a move that was cancelled. */
static int locks_at(struct server *server) {
    redisReply *reply = server_ask(server, "KEYS *");
    int count = 0;
    for (size_t i = 0; i < reply->elements; i++)
        count += reply->element[i]->str[0] != '{'; /* as their queues and counters begin */
    freeReplyObject(reply);
    return count;
}

static bool is_clean(void) {
    for (size_t i = 0; i < cluster.len; i++)
        if (cluster.nodes[i].pid && locks_at(&cluster.nodes[i]) > 0)
            return false;
    return true;
}

/* All calls end, and what is held is given back. */
static void calm_down(struct fixture *f) {
    for (int i = 0; i < HANDLES; i++)
        (void)evlock_cancel(users[i].lock);
    await(f, !is_busy());
    while (f->locks_len > 0)
        lock_free(f, f->locks[f->locks_len - 1]);
    await(f, is_clean());
    while (f->clients_len > 0) {
        evlock_client *client = f->clients[0];
        client_forget(f, client);
        assert_int_not_equal(await_close(f, client), EVLOCK_ECANCELLED);
    }
}

/* One of those whose move was not cancelled: that may have left keys where they were on their way to, and these refuse
 * others of the same name. */
static int any_slot(const bool cancelled[NAMES], unsigned *ret_name) {
    do
        *ret_name = below(NAMES);
    while (cancelled[*ret_name]);
    return slots[*ret_name];
}

static void slots_that_move_all_the_time(void **state) {
    struct fixture *f = *state;
    bool cancelled[NAMES] = {false};
    int cancels = 0;
    begin_storm(f, 16);
    for (int round = 0; round < 12; round++) {
        unsigned name;
        int slot = any_slot(cancelled, &name), to = other_than(cluster_owner(&cluster, slot));
        cluster_open(&cluster, slot, to);
        rage(f, 100);
        if (cancels < NAMES - 1 && below(4) == 0) {
            cluster_cancel(&cluster, slot);
            cancelled[name] = true;
            cancels++;
            continue;
        }
        cluster_migrate(&cluster, slot, to);
        rage(f, 100);
        cluster_settle(&cluster, slot, to);
        rage(f, 150);
    }
    calm_down(f);
}

static void replicas_that_take_over_all_the_time(void **state) {
    struct fixture *f = *state;
    begin_storm(f, 17);
    for (int round = 0; round < 3; round++) {
        int slot = slots[round], old = cluster_owner(&cluster, slot), owner = old;
        cluster_fail_over(&cluster, cluster_replica_of(&cluster, old), round == 1 ? "TAKEOVER" : "");
        int64_t end = evlock_clock_us() + (int64_t)WAIT_MS * 1000;
        while (((owner = cluster_owner(&cluster, slot)) < 0 || owner == old) && evlock_clock_us() < end)
            rage(f, 20);
        assert_int_not_equal(owner, old);
        rage(f, 700);
        cluster_await_ok(&cluster);
    }
    calm_down(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CLUSTERED(slots_that_move_all_the_time),
        CLUSTERED(replicas_that_take_over_all_the_time),
    };
    return run_clustered("cluster-storm", tests, NULL);
}
