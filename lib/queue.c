/* The client's side of the wait queue; see queue.h. */
#include "queue.h"

#include "memory.h"

/* On the client's channel, which is named; NULL: no memory. It is not started. */
static struct listener *queue_new_listener(struct locks *locks) {
    struct deployment *deployment = evl_locks_deployment(locks);
    struct listener *listener = evl_alloc(sizeof(*listener));
    struct node *node = &deployment->nodes[0];
    struct url url;

    if (!listener || evl_url_copy(&url, &evl_node_connection(node)->url) != EVLOCK_OK) {
        evl_free(listener);
        return NULL;
    }
    evl_listener_init(listener, &deployment->connections, &node->credentials, &url, locks->tenures.tickets.channel,
                      locks->listener_hooks);
    return listener;
}

void evl_queue_open(struct locks *locks) {
    struct tenures *tenures = &locks->tenures;

    if (locks->listener || !evl_tickets_open(&tenures->tickets, &tenures->entropy))
        return;
    locks->listener = queue_new_listener(locks);
    if (locks->listener)
        evl_connection_start(&locks->listener->login.connection);
}

static void queue_end(struct locks *locks, struct listener *listener) {
    evl_listener_end(listener, &evl_locks_deployment(locks)->connections);
    evl_free(listener);
}

bool evl_queue_renew(struct locks *locks) {
    if (!locks->listener || !evl_login_is_last(&locks->listener->login))
        return true;
    if (locks->successor && !evl_login_is_last(&locks->successor->login))
        return true;
    if (locks->successor)
        queue_end(locks, locks->successor);
    locks->successor = queue_new_listener(locks);
    if (locks->successor)
        evl_connection_start(&locks->successor->login.connection);
    return locks->successor;
}

void evl_queue_succeed(struct locks *locks, const struct listener *listener) {
    if (listener != locks->successor)
        return;
    queue_end(locks, locks->listener);
    locks->listener = locks->successor;
    locks->successor = NULL;
}

bool evl_queue_listens(const struct locks *locks) {
    return locks->listener && evl_listener_hears(locks->listener) &&
           !evl_login_has_no_clock(&locks->tenures.deployment.nodes[0].pipe.login);
}

void evl_queue_follow(struct locks *locks, const struct node *node) {
    if (locks->listener && (node->replaced || !node->pipe.login.run_id[0]))
        evl_listener_follow(locks->listener, evl_node_connection_of(node)->since);
}

void evl_queue_stop(struct locks *locks, bool forked) {
    if (locks->listener)
        evl_connection_stop(&locks->listener->login.connection, forked);
    if (locks->successor)
        evl_connection_stop(&locks->successor->login.connection, forked);
}
