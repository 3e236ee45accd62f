/* Locks in a cluster; see clustered.h. */
#include "clustered.h"

#include <stdio.h>
#include <stdlib.h>

struct cluster cluster;
static const struct cluster_options *wanted;

/* The names of handles, which do not tell them. */
static struct {
    const evlock *lock;
    char name[NAME_SIZE];
} named[MAX_LOCKS];
static size_t named_len;

/* Who has the slots of each master of the start, now that some may have failed over. */
static int masters[CLUSTER_MAX];

static int begin(void **state) {
    (void)state;
    cluster_start(&cluster, wanted);
    return 0;
}

static int end(void **state) {
    (void)state;
    cluster_stop(&cluster);
    return 0;
}

int run_clustered_of(const char *name, const struct CMUnitTest *tests, size_t count,
                     const struct cluster_options *options) {
    wanted = options;
    return run_suite_with(name, tests, count, begin, end);
}

int clustered_setup_bare(void **state) {
    static struct fixture fixture;
    cluster_mend(&cluster);
    named_len = 0;
    for (size_t i = 0; i < cluster.masters; i++)
        masters[i] = cluster_owner(&cluster, (int)(i * CLUSTER_SLOTS / cluster.masters) + 1000);
    *state = &fixture;
    return fixture_init(&fixture, &cluster.nodes[0]) ? 0 : -1;
}

int clustered_setup(void **state) {
    if (clustered_setup_bare(state))
        return -1;
    struct fixture *f = *state;
    client_new(f, cluster.url, NULL);
    await_connected(f, f->client);
    return 0;
}

int clustered_teardown(void **state) {
    for (size_t i = 0; i < cluster.len; i++)
        server_resume(&cluster.nodes[i]);
    return fixture_teardown(state);
}

evlock *lock_at(struct fixture *f, int node, int nth, const evlock_options *options) {
    char *name = named[named_len].name;
    cluster_key(&cluster, masters[node], nth, name, NAME_SIZE);
    named[named_len].lock = lock_new(f, name, options);
    return (evlock *)(uintptr_t)named[named_len++].lock;
}

const char *name_of(const evlock *lock) {
    for (size_t i = 0; i < named_len; i++)
        if (named[i].lock == lock)
            return named[i].name;
    fail_msg("a lock without a name");
    return NULL;
}

int slot_of(const evlock *lock) {
    return cluster_slot(&cluster, name_of(lock));
}

int owner_of(const evlock *lock) {
    int owner = cluster_owner(&cluster, slot_of(lock));
    assert_true(owner >= 0);
    return owner;
}

int other_than(int node) {
    return (node + 1) % (int)cluster.masters;
}

bool is_kept(const evlock *lock) {
    size_t len;
    const void *token = evlock_token(lock, &len);
    return token && key_is(&cluster.nodes[owner_of(lock)], name_of(lock), token, len);
}
