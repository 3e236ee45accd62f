/*
 * The two ways in which a client ends: the close, which gives back what is held and waits for that, and the free, which
 * does not wait. Both leave the handles to their users, without a client. In a forked child only memory goes.
 */
#include "client.h"
#include "lock.h"
#include "memory.h"
#include "queue.h"
#include "status.h"

void evl_client_destroy(struct evlock_client *client) {
    evlock_closed_cb closed = client->closed;
    void *arg = client->closed_arg;
    bool left = client->late || evl_client_now(client) < client->left_until;
    int status = client->state == CLIENT_FREED ? EVLOCK_ECANCELLED : left ? EVLOCK_EUNREACHABLE : EVLOCK_OK;
    bool forked = evl_client_forked(client);

    if (!forked || evl_client_loop_forks(client))
        client->loop.ops->timer_free(client->timer);
    evl_config_unref(client->last_config);
    evl_free(client->fences);
    evl_pool_clear(&client->calls);
    evl_pool_clear(&client->leases);
    evl_free(client->links);
    evl_queue_free(client);
    evl_free(client->nodes);
    evl_entropy_wipe(&client->entropy);
    evl_free(client);
    evl_error_clear();
    if (closed && !forked)
        closed(status, arg);
}

/* The handles stay, without a client. */
static void leave_handles(struct evlock_client *client) {
    struct config *config;
    struct evlock *lock;

    while ((lock = STAILQ_FIRST(&client->noticed))) {
        STAILQ_REMOVE_HEAD(&client->noticed, notice);
        evl_lock_unref(lock);
    }
    while ((config = LIST_FIRST(&client->configs))) {
        LIST_REMOVE(config, link);
        config->client = NULL;
    }
}

/* Nothing is sent from here on. */
void evl_client_tear_down(struct evlock_client *client, bool forked) {
    struct tenure *tenure;

    while ((tenure = TAILQ_FIRST(&client->tenures)))
        evl_tenure_let_go(tenure);
    for (unsigned i = 0; i < client->node_count; i++) {
        evl_node_stop(&client->nodes[i], forked);
        if (client->links)
            evl_node_stop(&client->links[i], forked);
    }
    evl_queue_stop(client, forked);
    for (unsigned i = 0; i < client->node_count; i++) {
        evl_node_wind_up(&client->nodes[i]);
        if (client->links)
            evl_node_wind_up(&client->links[i]);
    }
    while ((tenure = TAILQ_FIRST(&client->ghosts)))
        evl_tenure_destroy(tenure);
    leave_handles(client);
}

/* Each handle that has anything under way, which ends by that. */
static void drop_all(struct evlock_client *client, void (*drop)(struct evlock *lock)) {
    struct tenure *tenure;
    struct call *call;

    while ((tenure = TAILQ_FIRST(&client->tenures)))
        drop(tenure->lock);
    while ((call = TAILQ_FIRST(&client->pending)))
        drop(call->lock);
}

/* The same, but for those that wait for a release. */
static void wind_up_all(struct evlock_client *client) {
    struct tenure *tenure, *next_tenure;
    struct call *call, *next_call;
    struct evlock *lock;

    STAILQ_FOREACH (lock, &client->noticed, notice)
        evl_lock_forget_notices(lock);
    for (tenure = TAILQ_FIRST(&client->tenures); tenure; tenure = next_tenure) {
        next_tenure = TAILQ_NEXT(tenure, link);
        evl_lock_wind_up(tenure->lock);
    }
    for (call = TAILQ_FIRST(&client->pending); call; call = next_call) {
        next_call = TAILQ_NEXT(call, link);
        if (call->kind != CALL_RELEASE)
            evl_call_cancel(call);
    }
}

/* A forked child's copy: memory goes, nobody is told, and the loop is not touched. */
static void free_forked(struct evlock_client *client) {
    struct call *call;

    drop_all(client, evl_lock_drop_forked);
    evl_client_tear_down(client, true);
    while ((call = TAILQ_FIRST(&client->done))) {
        TAILQ_REMOVE(&client->done, call, link);
        evl_call_free(call);
    }
    evl_client_destroy(client);
}

static bool all_settled(const struct evlock_client *client) {
    return TAILQ_EMPTY(&client->tenures) && TAILQ_EMPTY(&client->ghosts);
}

/* Whether there is nothing left to wait for before the client goes. */
bool evl_client_is_over(const struct evlock_client *client) {
    switch (client->state) {
    case CLIENT_OPEN:
        return false;
    case CLIENT_CLOSING:
        return TAILQ_EMPTY(&client->done) && (client->late || all_settled(client));
    case CLIENT_FREED:
        return TAILQ_EMPTY(&client->done);
    }
    return false;
}

void evl_client_close_ring(struct evlock_client *client) {
    if (evl_client_puts_off(client, &client->close_alarm, client->close_by - client->config.command_timeout,
                            client->close_by))
        return;
    client->late = !all_settled(client);
    drop_all(client, evl_lock_drop);
}

int evlock_client_close(evlock_client *client, evlock_closed_cb cb, void *arg) {
    int status;

    evl_error_clear();
    if (!client)
        return evl_fail(EVLOCK_EINVAL, "the client is NULL");
    if ((status = evl_client_check(client)) != EVLOCK_OK)
        return status;
    client->state = CLIENT_CLOSING;
    client->closed = cb;
    client->closed_arg = arg;
    wind_up_all(client);
    client->close_by = evl_client_now(client) + client->config.command_timeout;
    evl_alarm_set(&client->alarms, &client->close_alarm, client->close_by);
    evl_client_rearm(client);
    return EVLOCK_OK;
}

void evlock_client_free(evlock_client *client) {
    if (!client || client->state == CLIENT_FREED)
        return;
    if (evl_client_forked(client)) {
        free_forked(client);
        return;
    }
    evl_queue_stop(client, false); /* first, so that what is given back is not granted to those who go too */
    for (unsigned i = 0; i < client->node_count; i++)
        evl_node_part(&client->nodes[i]);
    drop_all(client, evl_lock_drop);
    for (unsigned i = 0; i < client->node_count; i++)
        evl_node_flush(&client->nodes[i]);
    client->state = CLIENT_FREED;
    evl_client_tear_down(client, false);
    evl_alarm_set(&client->alarms, &client->close_alarm, INT64_MAX);
    if (client->depth == 0 && TAILQ_EMPTY(&client->done) && !client->closed)
        evl_client_destroy(client);
    else
        evl_client_rearm(client);
}
