/* The client: alarms, delivery, and the two ways of ending; see client.h. */
#include "client.h"

#include <assert.h>
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
    evl_node_stop(&client->node, forked);
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
    evl_node_flush(&client->node);
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

static void tell_connection(struct evlock_client *client) {
    if (client->connection == client->told_connection || client->state != CLIENT_OPEN)
        return;
    client->told_connection = client->connection;
    evl_error_set(client->node.error);
    if (client->config.on_connection)
        client->config.on_connection(client, (enum evlock_connection)client->connection, client->connection_status,
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

bool evl_client_enter(struct evlock_client *client) {
    if (evl_client_forked(client))
        return false;
    if (client->depth++ == 0 && client->state != CLIENT_FREED)
        ring(client);
    return true;
}

void evl_client_leave(struct evlock_client *client) {
    if (client->depth == 1) {
        if (client->state != CLIENT_FREED)
            evl_node_settle(&client->node);
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
    bool waiting = !TAILQ_EMPTY(&client->done) || !TAILQ_EMPTY(&client->noticed) || is_over(client) ||
                   (client->state == CLIENT_OPEN && client->connection != client->told_connection);
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

/* --- From the node ------------------------------------------------------------------------------------------------ */

void evl_client_node_back(struct evlock_client *client, bool settled, bool replaced) {
    struct tenures *lists[] = {&client->tenures, &client->ghosts};
    struct tenure *tenure, *next;

    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        for (tenure = TAILQ_FIRST(lists[i]); tenure; tenure = next) {
            next = TAILQ_NEXT(tenure, link);
            evl_tenure_node_back(tenure, settled, replaced, evl_client_now(client));
        }
    }
}

void evl_client_node_changed(struct evlock_client *client, enum evlock_connection connection, int status) {
    client->connection = connection;
    client->connection_status = status;
    evl_client_rearm(client);
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

static void init(struct evlock_client *client, evlock_loop loop, const struct client_config *config, struct url *url) {
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
    evl_node_init(&client->node, client, url);
}

/* Room for the alarms that every client has: its node's and that of its close. */
static int reserve(struct evlock_client *client) {
    client->timer = client->loop.ops->timer_new(client->loop.data, on_timer, client);
    if (!client->timer)
        return evl_fail(EVLOCK_ESYSTEM, "the event loop has no timer to give");
    if (evl_alarms_reserve(&client->alarms) == EVLOCK_OK && evl_alarms_reserve(&client->alarms) == EVLOCK_OK)
        return EVLOCK_OK;
    client->loop.ops->timer_free(client->timer);
    return evl_fail(EVLOCK_ENOMEM, "no memory for a client");
}

int evlock_client_new(evlock_client **ret_client, evlock_loop loop, const char *url,
                      const evlock_client_options *options) {
    evlock_client_options given;
    struct client_config config;
    struct evlock_client *client = NULL;
    struct url parsed;
    int status;

    evl_error_clear();
    if (!ret_client || !url)
        return evl_fail(EVLOCK_EINVAL, "%s is NULL", ret_client ? "the URL" : "ret_client");
    if ((status = check_loop(loop)) != EVLOCK_OK || (status = evl_client_config(&config, &given, options)) != EVLOCK_OK ||
        (status = evl_url_parse(&parsed, url)) != EVLOCK_OK)
        return status;
    if ((status = log_in_as(&parsed, &given)) == EVLOCK_OK) {
        client = evl_alloc(sizeof(*client));
        if (client)
            init(client, loop, &config, &parsed);
        status = client ? reserve(client) : evl_fail(EVLOCK_ENOMEM, "no memory for a client");
    }
    if (status != EVLOCK_OK) {
        evl_url_clear(&parsed);
        if (client)
            evl_alarms_clear(&client->alarms);
        evl_free(client);
        return status;
    }
    client->depth = 1; /* nothing is told before this call has returned */
    evl_node_start(&client->node);
    client->depth = 0;
    *ret_client = client;
    evl_error_clear();
    evl_client_rearm(client);
    return EVLOCK_OK;
}

enum evlock_connection evlock_client_connection(const evlock_client *client) {
    return client && client->connection ? (enum evlock_connection)client->connection : EVLOCK_AWAY;
}
