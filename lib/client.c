/* The client: alarms, delivery, and the two ways of ending; see client.h. */
#include "client.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "fork.h"
#include "lock.h"
#include "log.h"
#include "memory.h"
#include "status.h"

#define OWNER(type, member, pointer) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

int64_t evl_client_now(const struct evlock_client *client) {
    return client->loop.ops->now(client->loop.data);
}

/* xorshift64*: jitter needs to differ, not to be secret. */
uint64_t evl_client_random(struct evlock_client *client) {
    if (client->loop.ops->random)
        return client->loop.ops->random(client->loop.data);
    client->random ^= client->random >> 12;
    client->random ^= client->random << 25;
    client->random ^= client->random >> 27;
    return client->random * UINT64_C(2685821657736338717);
}

bool evl_client_forked(const struct evlock_client *client) {
    return client->fork != evl_fork_generation();
}

int evl_client_check(const struct evlock_client *client) {
    if (evl_client_forked(client))
        return evl_fail(EVLOCK_EFORKED, "the client belongs to the parent process");
    if (client->state != CLIENT_OPEN)
        return evl_fail(EVLOCK_ECLOSED, "the client is closing");
    return EVLOCK_OK;
}

/* --- The end ------------------------------------------------------------------------------------------------------ */

static void destroy(struct evlock_client *client) {
    evlock_closed_cb closed = client->closed;
    void *arg = client->closed_arg;
    int status = client->state == CLIENT_FREED ? EVLOCK_ECANCELLED : client->unclean ? EVLOCK_EUNREACHABLE : EVLOCK_OK;
    bool forked = evl_client_forked(client);

    if (!forked) /* in a child it is registered with the parent's loop */
        client->loop.ops->timer_free(client->timer);
    evl_alarms_clear(&client->alarms);
    evl_config_unref(client->last_config);
    evl_free(client->links);
    evl_free(client->nodes);
    evl_free(client);
    evl_error_clear();
    if (closed && !forked)
        closed(status, arg);
}

/* Nothing is sent from here on. The handles stay, without a client. */
static void tear_down(struct evlock_client *client, bool forked) {
    struct tenure *tenure;
    struct evlock *lock;

    TAILQ_FOREACH(lock, &client->handles, link)
        if (lock->tenure)
            evl_tenure_let_go(lock->tenure);
    for (unsigned i = 0; i < client->node_count; i++) {
        evl_node_stop(&client->nodes[i], forked);
        if (client->links)
            evl_node_stop(&client->links[i], forked);
    }
    while ((tenure = TAILQ_FIRST(&client->ghosts)))
        evl_tenure_destroy(tenure);
    while ((lock = TAILQ_FIRST(&client->handles))) {
        TAILQ_REMOVE(&client->handles, lock, link);
        lock->client = NULL;
    }
}

static void drop_all(struct evlock_client *client) {
    struct evlock *lock;

    TAILQ_FOREACH(lock, &client->handles, link)
        evl_lock_drop(lock);
}

/* A forked child's copy: memory goes, nobody is told, and the loop is not touched. */
static void free_forked(struct evlock_client *client) {
    struct evlock *lock;
    struct call *call;

    TAILQ_FOREACH(lock, &client->handles, link)
        evl_lock_drop_forked(lock);
    tear_down(client, true);
    while ((call = TAILQ_FIRST(&client->done))) {
        TAILQ_REMOVE(&client->done, call, link);
        evl_call_free(call);
    }
    destroy(client);
}

static bool all_settled(const struct evlock_client *client) {
    return TAILQ_EMPTY(&client->tenures) && TAILQ_EMPTY(&client->ghosts);
}

/* Whether there is nothing left to wait for before the client goes. */
static bool is_over(const struct evlock_client *client) {
    switch (client->state) {
    case CLIENT_OPEN:
        return false;
    case CLIENT_CLOSING:
        return TAILQ_EMPTY(&client->done) && (client->unclean || all_settled(client));
    case CLIENT_FREED:
        return TAILQ_EMPTY(&client->done);
    }
    return false;
}

static void close_ring(struct evlock_client *client) {
    client->unclean = !all_settled(client);
    drop_all(client);
}

int evlock_client_close(evlock_client *client, evlock_closed_cb cb, void *arg) {
    struct evlock *lock;
    int status;

    evl_error_clear();
    if (!client)
        return evl_fail(EVLOCK_EINVAL, "the client is NULL");
    if ((status = evl_client_check(client)) != EVLOCK_OK)
        return status;
    client->state = CLIENT_CLOSING;
    client->closed = cb;
    client->closed_arg = arg;
    TAILQ_FOREACH(lock, &client->handles, link)
        if (!evl_lock_pending(lock, CALL_RELEASE)) /* what is being released is waited for */
            evl_lock_drop(lock);
    evl_alarm_set(&client->alarms, &client->close_alarm, evl_client_now(client) + client->config.command_timeout);
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
    drop_all(client);
    for (unsigned i = 0; i < client->node_count; i++)
        evl_node_flush(&client->nodes[i]);
    client->state = CLIENT_FREED;
    tear_down(client, false);
    evl_alarm_set(&client->alarms, &client->close_alarm, INT64_MAX);
    if (client->depth == 0 && TAILQ_EMPTY(&client->done) && !client->closed)
        destroy(client);
    else
        evl_client_rearm(client);
}

/* --- Delivery ----------------------------------------------------------------------------------------------------- */

static void ring(struct evlock_client *client) {
    struct alarm *alarm;
    int64_t now = evl_client_now(client);

    while ((alarm = evl_alarms_due(&client->alarms, now))) {
        evl_error_clear();
        switch ((enum alarm_kind)alarm->kind) {
        case ALARM_NODE:
            evl_node_ring(OWNER(struct node, alarm, alarm), now);
            break;
        case ALARM_TENURE:
            evl_tenure_ring(OWNER(struct tenure, alarm, alarm), now);
            break;
        case ALARM_CALL:
            evl_acquire_ring(OWNER(struct call, alarm, alarm), now);
            break;
        case ALARM_CLOSE:
            close_ring(OWNER(struct evlock_client, close_alarm, alarm));
            break;
        }
    }
}

unsigned evl_client_quorum(const struct evlock_client *client) {
    return client->node_count / 2 + 1;
}

/* What all nodes together are doing, and why if that is AWAY. */
static enum evlock_connection connection_of(const struct evlock_client *client, const struct node **ret_trouble) {
    unsigned ready = 0, away = 0;

    for (unsigned i = 0; i < client->node_count; i++) {
        ready += client->nodes[i].state == NODE_READY;
        if (client->nodes[i].state != NODE_AWAY)
            continue;
        away++;
        *ret_trouble = &client->nodes[i];
    }
    if (ready >= evl_client_quorum(client))
        return EVLOCK_CONNECTED;
    return client->node_count - away < evl_client_quorum(client) ? EVLOCK_AWAY : EVLOCK_CONNECTING;
}

static bool has_news(const struct evlock_client *client) {
    const struct node *trouble;

    return client->news && client->state == CLIENT_OPEN &&
           (client->node_count > 1 || (int)connection_of(client, &trouble) != client->told_connection);
}

static void tell_connection(struct evlock_client *client) {
    const struct node *trouble = NULL;
    enum evlock_connection connection;

    if (!has_news(client))
        return;
    connection = connection_of(client, &trouble);
    client->told_connection = (int)connection;
    client->news = false;
    evl_error_set(trouble ? trouble->error : "");
    if (client->config.on_connection)
        client->config.on_connection(client, connection, connection == EVLOCK_AWAY ? trouble->status : EVLOCK_OK,
                                     client->config.arg);
}

/* The one place from which users are called. Deadlines come first, before each call: the one before may have taken
 * long. What is noted meanwhile waits for the next turn, so that a user who asks again at once cannot hold up the loop;
 * but losses are always told next. */
static void deliver(struct evlock_client *client) {
    enum client_state state = client->state;
    struct call *call, *last = TAILQ_LAST(&client->done, calls);

    while (client->state == state) {
        if (state != CLIENT_FREED)
            ring(client);
        if (!TAILQ_EMPTY(&client->noticed)) {
            evl_lock_tell_notices(TAILQ_FIRST(&client->noticed));
            continue;
        }
        if (!last || !(call = TAILQ_FIRST(&client->done)))
            break;
        if (call == last)
            last = NULL;
        TAILQ_REMOVE(&client->done, call, link);
        evl_call_tell(call);
    }
    if (client->state == CLIENT_OPEN)
        tell_connection(client);
}

/* Ends the connections that were found broken while hiredis was on the stack. */
static void settle(struct evlock_client *client) {
    for (unsigned i = 0; i < client->node_count && client->state != CLIENT_FREED; i++) {
        evl_node_settle(&client->nodes[i]);
        if (client->links)
            evl_node_settle(&client->links[i]);
    }
}

bool evl_client_enter(struct evlock_client *client) {
    if (evl_client_forked(client))
        return false;
    if (client->depth++ == 0 && client->state != CLIENT_FREED)
        ring(client);
    return true;
}

void evl_client_leave(struct evlock_client *client) {
    if (client->depth == 1) {
        settle(client);
        deliver(client);
    }
    if (--client->depth > 0)
        return;
    if (!is_over(client)) {
        evl_client_rearm(client);
        return;
    }
    if (client->state == CLIENT_CLOSING)
        tear_down(client, false);
    destroy(client);
}

/* The timer is set when it must ring earlier than it would; when later, it rings in vain and is set again. */
void evl_client_rearm(struct evlock_client *client) {
    bool waiting = !TAILQ_EMPTY(&client->done) || !TAILQ_EMPTY(&client->noticed) || is_over(client) || has_news(client);
    int64_t at = waiting ? 0 : evl_alarms_next(&client->alarms);

    if (client->depth > 0 || at >= client->armed || evl_client_forked(client))
        return;
    client->armed = at;
    client->loop.ops->timer_set(client->timer, at);
}

static void on_timer(void *arg) {
    struct evlock_client *client = arg;

    client->armed = INT64_MAX;
    if (evl_client_enter(client))
        evl_client_leave(client);
}

/* --- From the nodes ------------------------------------------------------------------------------------------------ */

void evl_client_node_back(struct evlock_client *client, const struct node *node, bool settled, bool replaced) {
    struct tenures *lists[] = {&client->tenures, &client->ghosts};
    struct tenure *tenure, *next;

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        for (tenure = TAILQ_FIRST(lists[i]); tenure; tenure = next) {
            next = TAILQ_NEXT(tenure, link);
            evl_tenure_node_back(tenure, node->index, settled, replaced, evl_client_now(client));
        }
    }
}

void evl_client_node_changed(struct evlock_client *client) {
    client->news = true;
    evl_client_rearm(client);
}

void evl_client_refuse_twins(struct evlock_client *client, struct node *node) {
    char words[64];

    for (unsigned i = 0; i < client->node_count; i++) {
        struct node *other = &client->nodes[i];
        if (other == node || other->state != NODE_READY || !node->run_id[0] || strcmp(other->run_id, node->run_id) != 0)
            continue;
        snprintf(words, sizeof(words), "node %u and node %u are the same server", other->index, node->index);
        evl_node_break(other->index < node->index ? node : other, EVLOCK_ESAME, words);
    }
}

/* --- The beginning ------------------------------------------------------------------------------------------------ */

static int check_loop(evlock_loop loop) {
    if (!loop.ops || loop.ops->size < sizeof(evlock_loop_ops) || !loop.ops->now || !loop.ops->timer_new ||
        !loop.ops->timer_set || !loop.ops->timer_free || !loop.ops->attach ||
        (loop.ops->resolve && !loop.ops->resolve_cancel))
        return evl_fail(EVLOCK_EINVAL, "the event loop lacks an operation");
    return EVLOCK_OK;
}

/* The options' user and password win over the URL's. */
static int log_in_as(struct url *url, const evlock_client_options *options) {
    const char *given[] = {options ? options->user : NULL, options ? options->password : NULL};
    char **places[] = {&url->user, &url->password};

    for (size_t i = 0; i < 2; i++) {
        if (!given[i])
            continue;
        evl_free(*places[i]);
        *places[i] = evl_dup(given[i], strlen(given[i]));
        if (!*places[i])
            return evl_fail(EVLOCK_ENOMEM, "no memory for a client");
    }
    if (url->user && !url->password)
        return evl_fail(EVLOCK_EINVAL, "a user needs a password");
    return EVLOCK_OK;
}

static void init(struct evlock_client *client, evlock_loop loop, const struct client_config *config) {
    client->loop = loop;
    client->armed = INT64_MAX;
    client->config = *config;
    client->fork = evl_fork_generation();
    client->close_alarm.kind = ALARM_CLOSE;
    TAILQ_INIT(&client->handles);
    TAILQ_INIT(&client->noticed);
    TAILQ_INIT(&client->tenures);
    TAILQ_INIT(&client->ghosts);
    TAILQ_INIT(&client->done);
    if (getrandom(&client->random, sizeof(client->random), GRND_NONBLOCK) != sizeof(client->random))
        client->random = (uint64_t)evl_client_now(client);
    client->random |= 1; /* xorshift stays at zero */
}

/* Parses the URLs into nodes that are not started; EVLOCK_OK, or what is wrong with which. */
static int make_nodes(struct evlock_client *client, const char *const *urls, size_t count,
                      const evlock_client_options *options) {
    struct url url;
    char words[200];
    int status;

    client->nodes = evl_alloc(count * sizeof(*client->nodes));
    if (!client->nodes)
        return evl_fail(EVLOCK_ENOMEM, "no memory for a client");
    for (size_t i = 0; i < count; i++) {
        status = urls[i] ? evl_url_parse(&url, urls[i]) : evl_fail(EVLOCK_EINVAL, "it is NULL");
        if (status == EVLOCK_OK) {
            evl_node_init(&client->nodes[client->node_count++], client, (unsigned)i, &url);
            status = log_in_as(&client->nodes[i].url, options);
        }
        for (size_t j = 0; status == EVLOCK_OK && j < i; j++)
            if (strcmp(urls[i], urls[j]) == 0)
                status = evl_fail(EVLOCK_ESAME, "it is that of node %zu, too", j);
        if (status == EVLOCK_OK)
            continue;
        if (count > 1) {
            snprintf(words, sizeof(words), "%s", evlock_last_error());
            evl_fail(status, "the URL of node %zu: %s", i, words);
        }
        return status;
    }
    return EVLOCK_OK;
}

/* Room for the timer and for the alarms that every client has: those of its nodes, of their second connections, and of
 * its close. */
static int reserve(struct evlock_client *client) {
    for (unsigned i = 0; i < 2 * client->node_count + 1; i++)
        if (evl_alarms_reserve(&client->alarms) != EVLOCK_OK)
            return evl_fail(EVLOCK_ENOMEM, "no memory for a client");
    client->timer = client->loop.ops->timer_new(client->loop.data, on_timer, client);
    if (!client->timer)
        return evl_fail(EVLOCK_ESYSTEM, "the event loop has no timer to give");
    return EVLOCK_OK;
}

static void unmake(struct evlock_client *client) {
    for (unsigned i = 0; i < client->node_count; i++)
        evl_url_clear(&client->nodes[i].url);
    evl_alarms_clear(&client->alarms);
    evl_free(client->nodes);
    evl_free(client);
}

int evlock_client_new_quorum(evlock_client **ret_client, evlock_loop loop, const char *const *urls, size_t count,
                             const evlock_client_options *options) {
    evlock_client_options given;
    struct client_config config;
    evlock_client *client;
    int status;

    evl_error_clear();
    if (!ret_client || !urls)
        return evl_fail(EVLOCK_EINVAL, "%s is NULL", ret_client ? "the list of URLs" : "ret_client");
    if (count < 1 || count > EVLOCK_NODES_MAX)
        return evl_fail(EVLOCK_EINVAL, "%zu URLs, not 1 to %d", count, EVLOCK_NODES_MAX);
    if ((status = check_loop(loop)) != EVLOCK_OK || (status = evl_client_config(&config, &given, options)) != EVLOCK_OK)
        return status;
    client = evl_alloc(sizeof(*client));
    if (!client)
        return evl_fail(EVLOCK_ENOMEM, "no memory for a client");
    init(client, loop, &config);
    if ((status = make_nodes(client, urls, count, &given)) != EVLOCK_OK || (status = reserve(client)) != EVLOCK_OK) {
        unmake(client);
        return status;
    }
    client->depth = 1; /* nothing is told before this call has returned */
    for (unsigned i = 0; i < client->node_count; i++)
        evl_node_start(&client->nodes[i]);
    client->depth = 0;
    *ret_client = client;
    evl_error_clear();
    evl_client_rearm(client);
    return EVLOCK_OK;
}

int evlock_client_new(evlock_client **ret_client, evlock_loop loop, const char *url,
                      const evlock_client_options *options) {
    return evlock_client_new_quorum(ret_client, loop, &url, 1, options);
}

int evl_client_link(struct evlock_client *client) {
    struct node *links;
    struct url url;

    if (client->links)
        return EVLOCK_OK;
    links = evl_alloc(client->node_count * sizeof(*links));
    if (!links)
        return evl_fail(EVLOCK_ENOMEM, "no memory for second connections");
    for (unsigned i = 0; i < client->node_count; i++) {
        if (evl_url_copy(&url, &client->nodes[i].url) != EVLOCK_OK) {
            while (i > 0)
                evl_url_clear(&links[--i].url);
            evl_free(links);
            return evl_fail(EVLOCK_ENOMEM, "no memory for second connections");
        }
        evl_node_init(&links[i], client, i, &url);
        links[i].link = true;
    }
    client->links = links;
    for (unsigned i = 0; i < client->node_count; i++)
        evl_node_start(&links[i]);
    return EVLOCK_OK;
}

/* --- What is known of it ------------------------------------------------------------------------------------------ */

enum evlock_connection evlock_client_connection(const evlock_client *client) {
    const struct node *trouble;

    return client && client->state != CLIENT_FREED ? connection_of(client, &trouble) : EVLOCK_AWAY;
}

size_t evlock_client_nodes(const evlock_client *client) {
    return client ? client->node_count : 0;
}

int evlock_client_node(const evlock_client *client, size_t index, evlock_node_info *ret_info, size_t size) {
    const struct node *node;
    evlock_node_info info;
    int64_t now;

    evl_error_clear();
    if (!client || !ret_info || index >= client->node_count || size > 4096)
        return evl_fail(EVLOCK_EINVAL, "there is no such node");
    node = &client->nodes[index];
    now = evl_client_now(client);
    memset(&info, 0, sizeof(info));
    info.connection = node->state == NODE_READY                                 ? EVLOCK_CONNECTED
                      : node->state == NODE_AWAY || node->state == NODE_STOPPED ? EVLOCK_AWAY
                                                                                : EVLOCK_CONNECTING;
    info.status = evl_node_trouble(node, now);
    info.excluded_ms = node->excluded_until > now ? (node->excluded_until - now + 999) / 1000 : 0;
    info.agreed = node->agreed;
    memcpy(ret_info, &info, size < sizeof(info) ? size : sizeof(info));
    evl_error_set(node->error);
    return EVLOCK_OK;
}
