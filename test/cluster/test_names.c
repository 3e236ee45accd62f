/*
 * A cluster that announces host names, by which its nodes send commands on: clients that were given addresses, and
 * clients that were given names. Each test is named after the behaviour that it shows.
 */
#include "clustered.h"

#include <stdio.h>

/* On all masters, and where a slot goes. */
static void locks_work(struct fixture *f, const char *url) {
    client_new(f, url, NULL);
    await_connected(f, f->client);
    for (int i = 0; i < 3; i++) {
        evlock *lock = lock_at(f, i, 0, NULL);
        int slot = slot_of(lock);
        assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
        cluster_move(&cluster, slot, other_than(i));
        assert_true(ask_owned(f, lock));
        assert_true(is_kept(lock));
        assert_status(await_release(f, lock), EVLOCK_OK);
        cluster_move(&cluster, slot, i);
    }
    assert_true(stats_of(f->client).redirects > 0);
}

static void who_was_given_addresses_uses_addresses(void **state) {
    struct fixture *f = *state;
    char url[128];
    snprintf(url, sizeof(url), "%s+cluster://127.0.0.1:%d", server_scheme(), cluster.nodes[0].port);
    locks_work(f, url);
}

static void who_was_given_names_uses_names(void **state) {
    struct fixture *f = *state;
    char url[128];
    snprintf(url, sizeof(url), "%s+cluster://localhost:%d", server_scheme(), cluster.nodes[1].port);
    locks_work(f, url);
}

int main(void) {
    static const struct cluster_options options = {.hostnames = true, .alone = true};
    const struct CMUnitTest tests[] = {
        CLUSTERED_BARE(who_was_given_addresses_uses_addresses),
        CLUSTERED_BARE(who_was_given_names_uses_names),
    };
    return run_clustered("cluster-names", tests, &options);
}
