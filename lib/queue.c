/* The client's side of the wait queue; see queue.h. */
#include "queue.h"

#include <stdio.h>

#include "memory.h"

/* The client's channel, which is named; at a master of a cluster, its own. What is published on a channel is heard on
 * all masters, and would be heard once by each connection. */
static void queue_name_channel(const struct locks *locks, const struct node *node, char ret[CHANNEL_SIZE]) {
    const char *channel = locks->tenures.tickets.channel;

    if (locks->tenures.deployment.cluster)
        snprintf(ret, CHANNEL_SIZE, "%s-%u", channel, evl_node_index(node));
    else
        snprintf(ret, CHANNEL_SIZE, "%s", channel);
}

/* NULL: no memory. It is not started. */
static struct listener *queue_new_listener(struct locks *locks, struct node *node) {
    struct listener *listener = evl_alloc(sizeof(*listener));
    char channel[CHANNEL_SIZE];

    queue_name_channel(locks, node, channel);
    if (listener)
        evl_listener_init(listener, &evl_locks_deployment(locks)->connections, node, channel, locks->listener_hooks);
    return listener;
}

void evl_queue_open(struct locks *locks, struct node *node) {
    struct tenures *tenures = &locks->tenures;

    if (node->listener)
        evl_connection_want(&node->listener->login.connection);
    if (node->listener || (tenures->deployment.cluster && !evl_cluster_counts(node)) ||
        (!tenures->tickets.channel[0] && !evl_tickets_open(&tenures->tickets, &tenures->entropy)))
        return;
    node->listener = queue_new_listener(locks, node);
    if (node->listener)
        evl_connection_start(&node->listener->login.connection);
}

static void queue_end(struct locks *locks, struct listener *listener) {
    evl_listener_end(listener, &evl_locks_deployment(locks)->connections);
    evl_free(listener);
}

static bool queue_renew(struct locks *locks, struct node *node) {
    if (!node->listener || !evl_login_is_last(&node->listener->login))
        return true;
    if (node->successor && !evl_login_is_last(&node->successor->login))
        return true;
    if (node->successor)
        queue_end(locks, node->successor);
    node->successor = queue_new_listener(locks, node);
    if (node->successor)
        evl_connection_start(&node->successor->login.connection);
    return node->successor;
}

bool evl_queue_renew(struct locks *locks) {
    const struct deployment *deployment = evl_locks_deployment(locks);
    bool done = true;

    for (unsigned i = 0; done && i < deployment->node_count; i++)
        done = queue_renew(locks, deployment->nodes[i]);
    return done;
}

void evl_queue_succeed(struct locks *locks, const struct listener *listener) {
    struct node *node = evl_locks_deployment(locks)->nodes[evl_listener_index(listener)];

    if (listener != node->successor)
        return;
    queue_end(locks, node->listener);
    node->listener = node->successor;
    node->successor = NULL;
}

bool evl_queue_listens(const struct node *node) {
    return node->listener && evl_listener_hears(node->listener) && !evl_login_has_no_clock(&node->pipe.login);
}

void evl_queue_follow(const struct node *node) {
    if (node->listener && (node->replaced || !node->pipe.login.server.run_id[0]))
        evl_listener_follow(node->listener, evl_node_connection_of(node)->since);
}

void evl_queue_stop(struct locks *locks, bool forked) {
    const struct deployment *deployment = evl_locks_deployment(locks);

    for (unsigned i = 0; i < deployment->node_count; i++) {
        struct node *node = deployment->nodes[i];
        if (node->listener)
            evl_connection_stop(&node->listener->login.connection, forked);
        if (node->successor)
            evl_connection_stop(&node->successor->login.connection, forked);
    }
}

void evl_queue_free(struct locks *locks) {
    const struct deployment *deployment = evl_locks_deployment(locks);

    for (unsigned i = 0; i < deployment->node_count; i++) {
        evl_free(deployment->nodes[i]->listener);
        evl_free(deployment->nodes[i]->successor);
    }
}
