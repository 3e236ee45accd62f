/* The client's side of the wait queue; see queue.h. */
#include "queue.h"

#include "memory.h"

void evl_queue_open(struct locks *locks) {
    struct tenures *tenures = &locks->tenures;
    struct deployment *deployment = &tenures->deployment;
    struct listener *listener;
    struct url url;

    if (locks->listener || !(listener = evl_alloc(sizeof(*listener))))
        return;
    if (!evl_tickets_open(&tenures->tickets, &tenures->entropy) ||
        evl_url_copy(&url, &evl_node_connection(&deployment->nodes[0])->url) != EVLOCK_OK) {
        evl_free(listener);
        return;
    }
    evl_listener_init(listener, &deployment->connections, &url, tenures->tickets.channel, locks->listener_hooks);
    locks->listener = listener;
    evl_connection_start(&listener->login.connection);
}

bool evl_queue_listens(const struct locks *locks) {
    return locks->listener && evl_listener_hears(locks->listener);
}

void evl_queue_follow(struct locks *locks, const struct node *node) {
    if (locks->listener && (node->replaced || !node->pipe.login.run_id[0]))
        evl_listener_follow(locks->listener, evl_node_connection_of(node)->since);
}

void evl_queue_stop(struct locks *locks, bool forked) {
    if (locks->listener)
        evl_connection_stop(&locks->listener->login.connection, forked);
}
