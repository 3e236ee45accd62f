/*
 * Locks in a cluster that nothing happens to: each lives on the master of its slot, whatever is done with it, and
 * connections are made where there is something to ask. Each test is named after the behaviour that it shows.
 */
#include "clustered.h"

#include <stdio.h>

static void each_lock_is_on_its_slots_master(void **state) {
    struct fixture *f = *state;
    for (int i = 0; i < 3; i++) {
        evlock *lock = lock_at(f, i, 0, NULL);
        assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
        assert_true(is_kept(lock));
        assert_true(ask_locked(f, lock) && ask_owned(f, lock));
        assert_int_in_range(ask_ttl(f, lock), 1, 30000);
        assert_status(await_extend(f, lock, 60000, EVLOCK_EXTEND_REPLACE), EVLOCK_OK);
        assert_int_in_range(ask_ttl(f, lock), 30001, 60000);
        assert_status(await_release(f, lock), EVLOCK_OK);
        assert_false(key_exists(&cluster.nodes[i], name_of(lock)));
    }
    assert_int_equal(stats_of(f->client).redirects, 0);
}

static void masters_are_connected_when_they_are_needed(void **state) {
    struct fixture *f = *state;
    evlock_node_info info;
    size_t connected[] = {0, 0};
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < 3; i++) {
            assert_status(evlock_client_node(f->client, i, &info, sizeof(info)), EVLOCK_OK);
            connected[round] += info.connection == EVLOCK_CONNECTED;
        }
        assert_int_equal(evlock_client_node(f->client, 3, &info, sizeof(info)), EVLOCK_EINVAL);
        if (round == 0)
            assert_status(await_acquire(f, lock_at(f, 1, 0, NULL), NULL), EVLOCK_OK);
    }
    assert_int_equal(connected[0], 0);
    assert_int_equal(connected[1], 1);
    assert_int_equal(evlock_client_connection(f->client), EVLOCK_CONNECTED);
}

/* Of those that nothing was asked of, what they are is not known. */
static void each_master_says_where_and_what_it_is(void **state) {
    struct fixture *f = *state;
    size_t seen = 0, asked = 0;
    assert_status(await_acquire(f, lock_at(f, 1, 0, NULL), NULL), EVLOCK_OK);
    for (size_t i = 0; i < 3; i++) {
        evlock_node_info info;
        char address[32];
        assert_status(evlock_client_node(f->client, i, &info, sizeof(info)), EVLOCK_OK);
        for (size_t node = 0; node < 3; node++) {
            snprintf(address, sizeof(address), "127.0.0.1:%d", cluster.nodes[node].port);
            seen += strcmp(info.address, address) == 0;
        }
        snprintf(address, sizeof(address), "127.0.0.1:%d", cluster.nodes[1].port);
        bool known = strcmp(info.address, address) == 0;
        asked += known;
        assert_int_equal(info.persistence, known ? EVLOCK_PERSISTENCE_NO_AOF : EVLOCK_PERSISTENCE_UNKNOWN);
        assert_int_equal(info.product[0] != '\0' && info.version[0] != '\0', known);
    }
    assert_int_equal(seen, 3);
    assert_int_equal(asked, 1);
}

static void a_held_lock_is_held(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_at(f, 2, 0, NULL), *same = lock_new(f, name_of(lock), NULL);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_status(await_try(f, same), EVLOCK_EHELD);
    assert_status(await_break(f, same), EVLOCK_OK);
    assert_status(await_acquire(f, same, NULL), EVLOCK_OK);
}

static void a_wrongly_typed_key_is_found(void **state) {
    struct fixture *f = *state;
    evlock *lock = lock_at(f, 2, 0, NULL);
    server_do(&cluster.nodes[2], "LPUSH %s x", name_of(lock));
    assert_status(await_acquire(f, lock, NULL), EVLOCK_EWRONGTYPE);
}

static void fences_grow_on_each_master(void **state) {
    struct fixture *f = *state;
    evlock_options options = {.size = sizeof(options), .fence = true};
    for (int i = 0; i < 3; i++) {
        evlock *lock = lock_at(f, i, 0, &options);
        uint64_t last = 0;
        for (int nth = 0; nth < 3; nth++) {
            assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
            assert_true(evlock_fence(lock) > last);
            last = evlock_fence(lock);
            assert_status(await_release(f, lock), EVLOCK_OK);
        }
    }
}

/* Many slots at once are renewed by few commands at each master. */
static void renewals_are_batched_by_master(void **state) {
    struct fixture *f = *state;
    evlock_options options = {.size = sizeof(options), .ttl_ms = 3000, .auto_renewal = true};
    evlock *locks[60];
    struct record records[60] = {0};
    for (int i = 0; i < 60; i++) {
        locks[i] = lock_at(f, i % 3, i / 3, &options);
        assert_status(evlock_acquire(locks[i], NULL, record_end, &records[i]), EVLOCK_OK);
    }
    for (int i = 0; i < 60; i++) {
        await(f, records[i].count == 1 && records[i].status == EVLOCK_OK);
        renew_by_script(locks[i]);
    }
    await(f, stats_of(f->client).renewals >= 180);
    long long scripts = 0;
    for (int i = 0; i < 3; i++)
        scripts += server_calls(&cluster.nodes[i], "evalsha");
    assert_true(scripts < 90);
    for (int i = 0; i < 60; i++)
        assert_true(evlock_is_held(locks[i]) && is_kept(locks[i]));
    assert_int_equal(server_errors(&cluster.nodes[0], "CROSSSLOT"), 0);
}

/* A ttl that is longer stays, and a key that is another's is left alone, and said. */
static void what_a_batch_renews_is_its_own(void **state) {
    struct fixture *f = *state;
    struct record lost = {0};
    evlock_options options = {.size = sizeof(options), .ttl_ms = 3000, .auto_renewal = true};
    options.on_lost = record_end;
    options.arg = &lost;
    evlock *locks[20];
    struct record records[20] = {0};
    for (int i = 0; i < 20; i++) {
        locks[i] = lock_at(f, 0, i, &options);
        assert_status(evlock_acquire(locks[i], NULL, record_end, &records[i]), EVLOCK_OK);
    }
    for (int i = 0; i < 20; i++) {
        await(f, records[i].count == 1 && records[i].status == EVLOCK_OK);
        renew_by_script(locks[i]);
    }
    server_do(&cluster.nodes[owner_of(locks[0])], "PEXPIRE %s 600000", name_of(locks[0]));
    server_do(&cluster.nodes[owner_of(locks[1])], "SET %s stranger PX 600000", name_of(locks[1]));
    await(f, lost.count);
    assert_true(lost.object == locks[1]);
    uint64_t renewals = stats_of(f->client).renewals;
    await(f, stats_of(f->client).renewals >= renewals + 60);
    assert_true(ask_ttl(f, locks[0]) > 300000);
    assert_true(server_integer(&cluster.nodes[owner_of(locks[1])], "PTTL %s", name_of(locks[1])) > 300000);
    assert_int_equal(lost.count, 1);
}

static void names_with_braces_have_their_queue_beside_them(void **state) {
    struct fixture *f = *state;
    static const char *const names[] = {"a}b", "{}a", "{x}y", "{", "}", "{{a}", "plain"};
    evlock_options options = {.size = sizeof(options), .fence = true, .wait = EVLOCK_WAIT_QUEUE};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        evlock *lock = lock_new(f, names[i], &options), *waits = lock_new(f, names[i], &options);
        struct record record = {0};
        assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
        assert_status(evlock_acquire(waits, NULL, record_end, &record), EVLOCK_OK);
        await(f, ask_waiters(f, lock) == 1);
        assert_status(await_release(f, lock), EVLOCK_OK);
        await(f, record.count == 1);
        assert_ended(&record, EVLOCK_OK);
        assert_true(evlock_fence(waits) > 0);
        assert_status(await_release(f, waits), EVLOCK_OK);
    }
}

static void a_grant_is_on_the_replica_when_told(void **state) {
    struct fixture *f = *state;
    evlock_options options = {.size = sizeof(options), .min_replicas = 1, .replica_timeout_ms = 2000};
    for (int i = 0; i < 3; i++) {
        evlock *lock = lock_at(f, i, 0, &options);
        assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
        assert_status(await_release(f, lock), EVLOCK_OK);
    }
}

static struct {
    int names, pages;
    bool answered;
    evlock_page page;
} listing;

static void note_page(evlock_client *client, int status, const evlock_page *page, void *arg) {
    (void)client, (void)arg;
    listing.answered = true;
    listing.pages++;
    listing.page = status == EVLOCK_OK ? *page : (evlock_page){0};
    listing.names += (int)listing.page.count;
}

/* The first step is asked for before any master is known. */
static void all_masters_are_listed(void **state) {
    struct fixture *f = *state;
    for (int i = 0; i < 30; i++)
        assert_status(await_acquire(f, lock_at(f, i % 3, i / 3, NULL), NULL), EVLOCK_OK);
    evlock_client *client = client_new(f, cluster.url, NULL);
    memset(&listing, 0, sizeof(listing));
    do {
        evlock_cursor from = listing.page.next;
        listing.answered = false;
        assert_status(evlock_client_list(client, "", 0, listing.pages ? &from : NULL, note_page, NULL), EVLOCK_OK);
        await(f, listing.answered);
    } while (listing.page.more);
    assert_int_equal(listing.names, 30);
    assert_int_equal(listing.pages, 3);
}

static void it_closes(void **state) {
    struct fixture *f = *state;
    for (int i = 0; i < 3; i++)
        assert_status(await_acquire(f, lock_at(f, i, 0, NULL), NULL), EVLOCK_OK);
    evlock_client *client = f->client;
    client_forget(f, client);
    assert_status(await_close(f, client), EVLOCK_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(server_integer(&cluster.nodes[i], "DBSIZE"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CLUSTERED(each_lock_is_on_its_slots_master),
        CLUSTERED(masters_are_connected_when_they_are_needed),
        CLUSTERED(each_master_says_where_and_what_it_is),
        CLUSTERED(a_held_lock_is_held),
        CLUSTERED(a_wrongly_typed_key_is_found),
        CLUSTERED(fences_grow_on_each_master),
        CLUSTERED(renewals_are_batched_by_master),
        CLUSTERED(what_a_batch_renews_is_its_own),
        CLUSTERED(names_with_braces_have_their_queue_beside_them),
        CLUSTERED(a_grant_is_on_the_replica_when_told),
        CLUSTERED(all_masters_are_listed),
        CLUSTERED(it_closes),
    };
    return run_clustered("cluster-locks", tests, NULL);
}
