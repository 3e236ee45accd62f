/*
 * How a client is made: the options are checked, and each floor is set up on the one below it, with the hooks by which
 * that one answers. So this is the one room that knows all of them. It does nothing to a client that stands.
 */
#include <string.h>

#include "acquire.h"
#include "close.h"
#include "deliver.h"
#include "list.h"
#include "memory.h"
#include "outcome.h"
#include "query.h"
#include "queue.h"
#include "replicas.h"
#include "returns.h"
#include "waiter.h"

/* So many locks come and go at a time without allocating. */
#define BLOCKS_KEPT 1000

/* --- What the rooms below are handed ------------------------------------------------------------------------------ */

static const struct request_ops *const request_ops[REQUEST_KINDS] = {
    [REQUEST_LEASE] = &evl_tenure_requests, [REQUEST_QUERY] = &evl_query_requests,
    [REQUEST_LOOK] = &evl_acquire_requests, [REQUEST_REPLICAS] = &evl_replicas_requests,
    [REQUEST_LIST] = &evl_list_requests,
};

/* Something is to be done in a turn of its own, soon. */
static bool create_is_waiting(const struct turn *turn) {
    const struct evlock_client *client = evl_client_of_turn(turn);

    return evl_deliver_has_some(client) || evl_close_moves_on(client) || evl_close_is_over(client);
}

static const struct turn_hooks turn_hooks = {
    .ring =
        {
            [ALARM_CONNECTION] = evl_connection_ring,
            [ALARM_TENURE] = evl_tenure_ring,
            [ALARM_CALL] = evl_acquire_ring,
            [ALARM_OTHER] = evl_turn_ring_other,
        },
    .rung = evl_deliver_rung,
    .end = evl_deliver_at_end,
    .left = evl_close_left,
    .waiting = create_is_waiting,
};

static struct evlock_client *create_client_of(struct node *node) {
    return evl_client_of_turn(evl_node_connection(node)->turn);
}

static void create_on_returned(struct node *node) {
    struct evlock_client *client = create_client_of(node);

    evl_queue_follow(node);
    evl_returns_begin(&client->locks.tenures, node);
}

static bool create_tell_back(struct node *node, int64_t now) {
    return evl_returns_go_on(&create_client_of(node)->locks.tenures, node, now);
}

static void create_on_changed(struct node *node) {
    struct evlock_client *client = create_client_of(node);

    if (evl_node_state(node) == CONNECTION_AWAY)
        evl_waiters_left(&client->locks);
    client->news = true;
    evl_turn_rearm(evl_client_turn(client));
}

static void create_on_gone(struct node *node) {
    evl_returns_forget(&create_client_of(node)->locks.tenures, node);
}

static const struct deployment_hooks deployment_hooks = {
    .returned = create_on_returned,
    .tell_back = create_tell_back,
    .changed = create_on_changed,
    .gone = create_on_gone,
};

/* --- The beginning ------------------------------------------------------------------------------------------------ */

static struct trouble create_validate_loop(const evlock_loop *loop) {
    const evlock_loop_ops *ops = loop ? loop->ops : NULL;

    if (!loop)
        return (struct trouble){EVLOCK_EINVAL, "the event loop is NULL"};
    if (!ops || ops->size < offsetof(evlock_loop_ops, forks) || !ops->now || !ops->timer_new || !ops->timer_set ||
        !ops->timer_free || !ops->attach || (ops->resolve && !ops->resolve_cancel))
        return (struct trouble){EVLOCK_EINVAL, "the event loop lacks an operation"};
    return evl_no_trouble;
}

/* A client of zeroed memory gets a turn, and nodes that are not started. */
static struct trouble create_make(struct evlock_client *client, const evlock_loop *loop, const struct url_list *urls,
                                  const struct client_config *config, const evlock_client_options *given,
                                  struct words *words) {
    struct deployment *deployment = evl_client_deployment(client);
    struct log_sink log = {config->on_log, config->log_level, config->arg};
    struct trouble trouble;

    deployment->config = *config;
    trouble = evl_deployment_make(deployment, urls, given, &deployment_hooks, request_ops, words);
    if (trouble.status == EVLOCK_OK &&
        !evl_turn_init(&deployment->turn, loop, &turn_hooks, &log, config->command_timeout))
        trouble = (struct trouble){EVLOCK_ESYSTEM, "the event loop has no timer to give"};
    if (trouble.status != EVLOCK_OK) {
        evl_deployment_free(deployment);
        return trouble;
    }
    evl_tenures_init(&client->locks.tenures, &evl_outcome_hooks, BLOCKS_KEPT);
    evl_locks_init(&client->locks, &evl_waiter_hooks, evl_acquire_grant, evl_call_size(deployment->votes), BLOCKS_KEPT);
    client->close_alarm.alarm.kind = ALARM_OTHER;
    client->close_alarm.ring = evl_close_ring;
    return evl_no_trouble;
}

int evlock_client_new(evlock_client **ret_client, const evlock_loop *loop, const char *url,
                      const evlock_client_options *options) {
    evlock_client_options given;
    struct client_config config;
    evlock_client *client;
    struct trouble trouble;
    struct url_list urls;
    struct words words;
    struct turn *turn;

    if (!ret_client || !url)
        return evl_fail(EVLOCK_EINVAL, "%s is NULL", ret_client ? "the URL" : "ret_client");
    trouble = create_validate_loop(loop);
    if (trouble.status == EVLOCK_OK && (trouble = evl_url_list(&urls, url)).status != EVLOCK_OK)
        return evl_fail(trouble.status, "URL: %s", trouble.words);
    if (trouble.status == EVLOCK_OK)
        trouble = evl_config_read_client(&config, &given, options, &words);
    if (trouble.status != EVLOCK_OK)
        return evl_report(trouble);
    client = evl_alloc(sizeof(*client));
    if (!client)
        return evl_fail(EVLOCK_ENOMEM, "no memory for a client");
    trouble = create_make(client, loop, &urls, &config, &given, &words);
    if (trouble.status != EVLOCK_OK) {
        evl_free(client);
        return evl_report(trouble);
    }
    turn = evl_client_turn(client);
    turn->depth = 1; /* nothing is reported before this call has returned */
    evl_deployment_start(evl_client_deployment(client));
    turn->depth = 0;
    *ret_client = client;
    evl_turn_rearm(turn);
    return evl_report(evl_no_trouble);
}
