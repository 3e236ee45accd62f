/*
 * Leases that are passed on inside a client, in a cluster: also while their slot goes to another master, and while
 * their master fails over. Nobody waits for ever, no two hold, and who waits in line keeps its place. Each test is
 * named after the behaviour that it shows.
 */
#include "../redis/users.h"
#include "clustered.h"

enum { USERS = 8, PASSES = 4 };

/* A group, and another client's handle of the same lock. */
struct party {
    struct user users[USERS], other;
    evlock_client *client;
    int had;    /* of the group: so many have had it */
    int turn;   /* of the other, in the queue: when so many have had it */
    bool queue; /* they wait there */
};

static void invite(struct fixture *f, struct party *party, int shard, const evlock_options *options) {
    *party = (struct party){.turn = PASSES + 1, .queue = options->wait == EVLOCK_WAIT_QUEUE};
    party->client = client_new(f, cluster.url, NULL);
    party->users[0] = (struct user){.lock = lock_at(f, shard, 0, options)};
    make_named(f, party->users + 1, USERS - 1, name_of(party->users[0].lock), options);
    party->other = (struct user){.lock = lock_new_on(f, party->client, name_of(party->users[0].lock), options)};
}

static evlock *lock_of(const struct party *party) {
    return party->users[0].lock;
}

static int holders(const struct party *party) {
    int count = evlock_is_held(party->other.lock);

    for (int i = 0; i < USERS; i++)
        count += evlock_is_held(party->users[i].lock);
    return count;
}

/* The next of the group has it, and gives it back. */
static void next_has_it(struct fixture *f, struct party *party) {
    struct user *user = &party->users[party->had++];

    await_held(f, user);
    assert_int_equal(holders(party), 1);
    for (int i = party->had; i < USERS; i++)
        assert_int_equal(party->users[i].record.count, 0);
    release(user);
    assert_true(holders(party) == 0);
}

static void other_has_it(struct fixture *f, struct party *party) {
    await_held(f, &party->other);
    assert_int_equal(holders(party), 1);
    release(&party->other);
}

/* Until all have had it: who polls may come at any time, and who is in the queue in its turn. */
static void rest_have_it(struct fixture *f, struct party *party) {
    bool had = false;

    while (!had || party->had < USERS) {
        const struct record *next = party->had < USERS ? &party->users[party->had].record : NULL;
        await(f, (next && next->count) || (!had && party->other.record.count));
        if (!had && party->other.record.count) {
            assert_true(!party->queue || party->had == party->turn);
            other_has_it(f, party);
            had = true;
        } else {
            next_has_it(f, party);
        }
    }
    await(f, !ask_locked(f, lock_of(party)));
}

/* --- What happens to the cluster ---------------------------------------------------------------------------------- */

enum step { BEGIN, GO, END, STEPS };

struct event {
    int slot, from, to;
};

static void move_slot(struct fixture *f, struct event *event, enum step step) {
    (void)f;
    if (step == BEGIN)
        cluster_open(&cluster, event->slot, event->to = other_than(event->from));
    else if (step == GO)
        cluster_migrate(&cluster, event->slot, event->to);
    else
        cluster_settle(&cluster, event->slot, event->to);
}

/* No replica twice; see cluster_fail_over(). */
static void fail_over(struct fixture *f, struct event *event, enum step step) {
    if (step == BEGIN)
        cluster_fail_over(&cluster, cluster_replica_of(&cluster, event->from), "");
    else if (step == END)
        await(f, (event->to = cluster_owner(&cluster, event->slot)) >= 0 && event->to != event->from &&
                     cluster_agrees(&cluster, event->slot, event->to));
}

typedef void (*happening)(struct fixture *f, struct event *event, enum step step);

static void after(happening happens, const struct event *event) {
    if (happens == move_slot)
        cluster_move(&cluster, event->slot, event->from);
}

static struct event event_at(const struct party *party) {
    return (struct event){.slot = slot_of(lock_of(party)), .from = owner_of(lock_of(party))};
}

/* What is published at the lock's master for those in line is heard: so many. */
static bool are_heard(const struct party *party, int count) {
    static const char heard[] =
        "local count = 0 for _, waiter in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do "
        "count = count + redis.call('PUBSUB', 'NUMSUB', string.match(waiter, '^[^ ]+'))[2] end return count";

    return !party->queue || server_integer(&cluster.nodes[owner_of(lock_of(party))], "EVAL %s 1 {%s}:queue", heard,
                                           name_of(lock_of(party))) == count;
}

/* In the queue all of the group have one place. Where a slot moves, whoever looks there first is the first. */
static void see_places(struct fixture *f, struct party *party, bool kept) {
    int64_t place = ask_place(f, lock_of(party)), other = ask_place(f, party->other.lock);

    for (int i = 1; i < USERS; i++)
        assert_int_equal(ask_place(f, party->users[i].lock), place);
    assert_true(place > 0 && other > 0 && place != other);
    assert_true(!kept || (place == 1 && other == 2));
    party->turn = place < other ? PASSES + 1 : 0;
}

static bool has_place(struct fixture *f, const struct party *party, evlock *lock, int64_t place) {
    return !party->queue || ask_place(f, lock) == place;
}

/* --- A group ------------------------------------------------------------------------------------------------------ */

static void passes_on(struct fixture *f, int shard, const evlock_options *options) {
    struct party party;
    uint64_t before = passed(f);

    invite(f, &party, shard, options);
    for (int i = 0; i < USERS; i++)
        acquire(&party.users[i]);
    while (party.had < USERS)
        next_has_it(f, &party);
    await(f, !ask_locked(f, lock_of(&party)));
    assert_int_equal(passed(f) - before, USERS - 1);
}

static void a_group_passes_on_in_a_cluster(void **state) {
    evlock_options polls = passing(USERS), queues = passing_in_queue(USERS);

    passes_on(*state, 0, &polls);
    passes_on(*state, 0, &queues);
}

/* In each step the lease goes to the next. When all is done, the bound is reached, and others have their turn. */
static void is_passed_on_during(struct fixture *f, int shard, happening happens, const evlock_options *options) {
    struct party party;
    struct event event;

    invite(f, &party, shard, options);
    for (int i = 0; i < USERS; i++)
        acquire(&party.users[i]);
    await_held(f, &party.users[0]);
    acquire(&party.other);
    await(f, has_place(f, &party, party.other.lock, 1));
    event = event_at(&party);
    next_has_it(f, &party);
    for (enum step step = BEGIN; step < STEPS; step++) {
        happens(f, &event, step);
        next_has_it(f, &party);
        await_held(f, &party.users[party.had]);
    }
    assert_int_equal(passed(f), PASSES);
    assert_int_equal(owner_of(lock_of(&party)), event.to);
    await(f, are_heard(&party, 1));
    if (happens == fail_over)
        assert_true(has_place(f, &party, party.other.lock, 1));
    rest_have_it(f, &party);
    after(happens, &event);
}

static void a_polling_group_passes_on_while_its_slot_moves(void **state) {
    evlock_options options = passing(PASSES);

    is_passed_on_during(*state, 0, move_slot, &options);
}

static void a_queueing_group_passes_on_while_its_slot_moves(void **state) {
    evlock_options options = passing_in_queue(PASSES);

    is_passed_on_during(*state, 0, move_slot, &options);
}

static void a_polling_group_passes_on_while_its_master_fails_over(void **state) {
    evlock_options options = passing(PASSES);

    is_passed_on_during(*state, 0, fail_over, &options);
}

static void a_queueing_group_passes_on_while_its_master_fails_over(void **state) {
    evlock_options options = passing_in_queue(PASSES);

    is_passed_on_during(*state, 1, fail_over, &options);
}

/* --- A group that waits ------------------------------------------------------------------------------------------- */

/* Another holds, the group waits, and a third client's handle waits behind it. */
static void waits_on_during(struct fixture *f, int shard, happening happens, const evlock_options *options) {
    evlock_client *third = client_new(f, cluster.url, NULL);
    struct party party;
    struct user holder;
    struct event event;

    invite(f, &party, shard, options);
    holder = (struct user){.lock = lock_new_on(f, third, name_of(lock_of(&party)), options)};
    acquire(&holder);
    await_held(f, &holder);
    for (int i = 0; i < USERS; i++)
        acquire(&party.users[i]);
    await(f, has_place(f, &party, lock_of(&party), 1));
    acquire(&party.other);
    await(f, has_place(f, &party, party.other.lock, 2));
    event = event_at(&party);
    for (enum step step = BEGIN; step < STEPS; step++)
        happens(f, &event, step);
    await(f, are_heard(&party, 2));
    if (party.queue)
        see_places(f, &party, happens == fail_over);
    assert_true(holders(&party) == 0 && evlock_is_held(holder.lock));
    release(&holder);
    rest_have_it(f, &party);
    after(happens, &event);
}

static void a_polling_group_waits_on_where_its_slot_goes(void **state) {
    evlock_options options = passing(PASSES);

    waits_on_during(*state, 0, move_slot, &options);
}

static void a_queueing_group_waits_on_where_its_slot_goes(void **state) {
    evlock_options options = passing_in_queue(PASSES);

    waits_on_during(*state, 0, move_slot, &options);
}

static void a_polling_group_waits_on_at_the_new_master(void **state) {
    evlock_options options = passing(PASSES);

    waits_on_during(*state, 2, fail_over, &options);
}

static void a_queueing_group_keeps_its_place_at_the_new_master(void **state) {
    evlock_options options = passing_in_queue(PASSES);

    waits_on_during(*state, 0, fail_over, &options);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CLUSTERED(a_group_passes_on_in_a_cluster),
        CLUSTERED(a_polling_group_passes_on_while_its_slot_moves),
        CLUSTERED(a_queueing_group_passes_on_while_its_slot_moves),
        CLUSTERED(a_polling_group_waits_on_where_its_slot_goes),
        CLUSTERED(a_queueing_group_waits_on_where_its_slot_goes),
        /* who has failed over may not be where slots are moved to */
        CLUSTERED(a_polling_group_passes_on_while_its_master_fails_over),
        CLUSTERED(a_queueing_group_passes_on_while_its_master_fails_over),
        CLUSTERED(a_polling_group_waits_on_at_the_new_master),
        CLUSTERED(a_queueing_group_keeps_its_place_at_the_new_master),
    };
    return run_clustered("cluster-passing", tests, NULL);
}
