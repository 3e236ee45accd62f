/*
 * A cluster that announces host names, by which its nodes send commands on: clients that were given addresses, and
 * clients that were given names. Each test is named after the behaviour that it shows.
 */
#include "clustered.h"

#include <stdio.h>
#include <string.h>

/* Each master is connected to by this host. */
static void assert_at(const evlock_client *client, const char *host) {
    evlock_node_info info;
    size_t count = 0;
    while (evlock_client_node(client, count, &info, sizeof(info)) == EVLOCK_OK) {
        assert_memory_equal(info.address, host, strlen(host));
        assert_int_equal(info.address[strlen(host)], ':');
        count++;
    }
    assert_int_equal(count, 3);
}

/* On all masters, and where a slot goes. */
static void locks_work(struct fixture *f, const char *url, const char *host) {
    client_new(f, url, NULL);
    await_connected(f, f->client);
    assert_at(f->client, host);
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

/* Unless there are certificates, which have names. */
static void who_was_given_addresses_uses_addresses(void **state) {
    struct fixture *f = *state;
    bool tls = strcmp(server_scheme(), "rediss") == 0;
    char url[128];
    snprintf(url, sizeof(url), "%s+cluster://127.0.0.1:%d", server_scheme(), cluster.nodes[0].port);
    locks_work(f, url, tls ? "localhost" : "127.0.0.1");
}

static void who_was_given_names_uses_names(void **state) {
    struct fixture *f = *state;
    char url[128];
    snprintf(url, sizeof(url), "%s+cluster://localhost:%d", server_scheme(), cluster.nodes[1].port);
    locks_work(f, url, "localhost");
}

int main(void) {
    static const struct cluster_options options = {.hostnames = true, .alone = true};
    const struct CMUnitTest tests[] = {
        CLUSTERED_BARE(who_was_given_addresses_uses_addresses),
        CLUSTERED_BARE(who_was_given_names_uses_names),
    };
    return run_clustered("cluster-names", tests, &options);
}
