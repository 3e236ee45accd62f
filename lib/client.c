/* The client: how it is made, its nodes, and what is known of them; see client.h. */
#include "client.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "memory.h"
#include "quorum.h"
#include "status.h"

/* So many locks come and go at a time without allocating. */
#define BLOCKS_KEPT 1000

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
    return client->fork != evlock_process();
}

bool evl_client_loop_forks(const struct evlock_client *client) {
    return client->loop.ops->size > offsetof(evlock_loop_ops, forks) && client->loop.ops->forks;
}

int evl_client_check(const struct evlock_client *client) {
    if (evl_client_forked(client))
        return evl_fail(EVLOCK_EFORKED, "the client belongs to the parent process");
    if (client->state != CLIENT_OPEN)
        return evl_fail(EVLOCK_ECLOSED, "the client is closing");
    return EVLOCK_OK;
}

/* What all nodes together are doing, and why if that is AWAY. */
enum evlock_connection evl_client_connection(const struct evlock_client *client, const struct node **ret_trouble) {
    unsigned ready = 0, away = 0;

    for (unsigned i = 0; i < client->node_count; i++) {
        ready += client->nodes[i].state == NODE_READY;
        if (client->nodes[i].state != NODE_AWAY)
            continue;
        away++;
        *ret_trouble = &client->nodes[i];
    }
    if (evl_quorum_reached(client->node_count, ready))
        return EVLOCK_CONNECTED;
    return evl_quorum_missed(client->node_count, away) ? EVLOCK_AWAY : EVLOCK_CONNECTING;
}

/* --- From the nodes ----------------------------------------------------------------------------------------------- */

/* A tenure that becomes a ghost meanwhile comes last, and may be told again, which changes nothing. One that is begun
 * meanwhile need not be told. */
bool evl_client_tell_back(struct evlock_client *client, struct node *node, int64_t now) {
    for (int i = 0; i < TOLD_A_RING; i++) {
        struct tenure *tenure = node->telling;
        if (!tenure) {
            if (node->telling_ghosts)
                return true;
            node->telling_ghosts = true;
            node->telling = TAILQ_FIRST(&client->ghosts);
            continue;
        }
        if ((node->telling = TAILQ_NEXT(tenure, link)))
            prefetch(node->telling, 0, client->leases.size);
        evl_tenure_node_back(tenure, node->index, node->settled, node->replaced, now);
    }
    return false;
}

void evl_client_node_changed(struct evlock_client *client) {
    client->news = true;
    evl_client_rearm(client);
}

/* Whether leases may count on what `other` said for the very server process that `node` has met: while it serves, and
 * until the longest of them must have ended. */
static bool has_voted(const struct node *other, const struct node *node) {
    int64_t until = other->served ? other->served + other->client->config.max_ttl : 0;

    return strcmp(other->old_run_id, node->run_id) == 0 &&
           (other->state == NODE_READY || evl_client_now(other->client) < until);
}

/* One that has voted stays, also while it is away, or the same server would vote again by its other address. */
void evl_client_refuse_twins(struct evlock_client *client, struct node *node) {
    char words[64];

    for (unsigned i = 0; i < client->node_count; i++) {
        struct node *other = &client->nodes[i];
        bool twin = other->state == NODE_RETURNING && strcmp(other->run_id, node->run_id) == 0;
        bool voted = has_voted(other, node);
        if (other == node || !node->run_id[0] || (!twin && !voted))
            continue;
        snprintf(words, sizeof(words), "node %u and node %u are the same server", other->index, node->index);
        evl_node_break(voted || other->index < node->index ? node : other, EVLOCK_ESAME, words);
    }
}

/* --- The beginning ------------------------------------------------------------------------------------------------ */

static int check_loop(evlock_loop loop) {
    if (!loop.ops || loop.ops->size < offsetof(evlock_loop_ops, forks) || !loop.ops->now || !loop.ops->timer_new ||
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
        if (*places[i])
            explicit_bzero(*places[i], strlen(*places[i]));
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
    client->looked = evl_client_now(client);
    client->config = *config;
    client->fork = evlock_process();
    client->close_alarm.kind = ALARM_CLOSE;
    STAILQ_INIT(&client->noticed);
    TAILQ_INIT(&client->tenures);
    TAILQ_INIT(&client->ghosts);
    TAILQ_INIT(&client->pending);
    TAILQ_INIT(&client->done);
    if (getrandom(&client->random, sizeof(client->random), GRND_NONBLOCK) != sizeof(client->random))
        client->random = (uint64_t)evl_client_now(client);
    client->random |= 1; /* xorshift stays at zero */
    client->phase = evl_client_random(client);
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

static int make_timer(struct evlock_client *client) {
    client->timer = client->loop.ops->timer_new(client->loop.data, evl_client_on_timer, client);
    if (!client->timer)
        return evl_fail(EVLOCK_ESYSTEM, "the event loop has no timer to give");
    return EVLOCK_OK;
}

static void unmake(struct evlock_client *client) {
    for (unsigned i = 0; i < client->node_count; i++)
        evl_url_clear(&client->nodes[i].url);
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
    if ((status = make_nodes(client, urls, count, &given)) != EVLOCK_OK || (status = make_timer(client)) != EVLOCK_OK) {
        unmake(client);
        return status;
    }
    client->calls = (struct pool){.size = evl_call_size(client->node_count), .keep = BLOCKS_KEPT};
    client->leases = (struct pool){.size = evl_tenure_size(client->node_count), .keep = BLOCKS_KEPT};
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

    return client && client->state != CLIENT_FREED && !evl_client_forked(client)
               ? evl_client_connection(client, &trouble)
               : EVLOCK_AWAY;
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
    if (evl_client_forked(client))
        return evl_fail(EVLOCK_EFORKED, "the client belongs to the parent process");
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
    evl_error_set(info.status == EVLOCK_EEXCLUDED ? evlock_strerror(EVLOCK_EEXCLUDED) : node->error);
    return EVLOCK_OK;
}
