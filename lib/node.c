/* The node: its connection's life and its requests; see node.h. The login is in login.c. */
#include "node.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <hiredis/async.h>

#include "batch.h"
#include "client.h"
#include "hiredis.h"
#include "log.h"
#include "memory.h"
#include "queue.h"
#include "status.h"

/* Bytes: more is not queued before some of it is written. It keeps the server at work for a turn of the loop. */
#define QUEUE_SIZE 65536

/* So often a socket is read that is about to be closed: a server that never ends to speak is not heard out. */
#define DRAINED 64

static void connect_begin(struct node *node);
static void connection_end(struct node *node, int status);

static int64_t now_of(const struct node *node) {
    return evl_client_now(node->client);
}

static void wake_at(struct node *node, int64_t at) {
    evl_alarm_set(&node->client->alarms, &node->alarm, at);
}

static void changed(const struct node *node) {
    if (!node->link)
        evl_client_node_changed(node->client);
}

void evl_node_note(struct node *node, const char *error) {
    snprintf(node->error, sizeof(node->error), "%s", error ? error : "");
}

/* --- Requests ----------------------------------------------------------------------------------------------------- */

/* A server that does not know a command quotes what it was sent with it: a token, or a password. */
void evl_node_drop_quotes(char *error) {
    char *quotes = strstr(error, ", with args");

    if (quotes)
        *quotes = '\0';
}

static struct reply reply_from(const redisReply *from) {
    struct reply reply = {REPLY_OTHER, 0, "", 0};

    switch (from->type) {
    case REDIS_REPLY_STATUS:
        reply.type = strcmp(from->str, "OK") == 0 ? REPLY_OK : REPLY_OTHER;
        break;
    case REDIS_REPLY_NIL:
        reply.type = REPLY_NIL;
        break;
    case REDIS_REPLY_INTEGER:
        reply.type = REPLY_INTEGER;
        reply.integer = from->integer;
        break;
    case REDIS_REPLY_STRING:
        reply.type = REPLY_STRING;
        reply.text = from->str;
        reply.len = (size_t)from->len;
        break;
    case REDIS_REPLY_ERROR:
        evl_node_drop_quotes(from->str);
        reply.type = REPLY_ERROR;
        reply.text = from->str;
        reply.len = strlen(from->str);
        break;
    default:
        break;
    }
    return reply;
}

const struct request_ops *const evl_request_ops[] = {
    [REQUEST_LEASE] = &evl_lease_requests,
    [REQUEST_QUERY] = &evl_query_requests,
    [REQUEST_LOOK] = &evl_look_requests,
    [REQUEST_REPLICAS] = &evl_replicas_requests,
};

void evl_node_fly(struct node *node, struct request *request) {
    if (request->flying++ == 0)
        TAILQ_INSERT_TAIL(&node->flying, request, link);
}

static void land(struct node *node, struct request *request) {
    assert(request->flying > 0 && !request->batch);
    if (--request->flying == 0)
        TAILQ_REMOVE(&node->flying, request, link);
}

/* The clock is read anew: the answer may have come after the reading of it when the loop called. */
void evl_node_compare_clocks(struct node *node, int64_t sent, int64_t server) {
    struct clock_reading reading = {server, sent, now_of(node)};
    struct drift_found found;

    if (evl_drift_note(&node->drift, &reading, &found))
        evl_log(node->client, EVLOCK_LOG_WARN,
                "node %u: the server's clock %s %" PRId64 " ms or more in %" PRId64
                " ms: it steps, or drifts by more than leases allow for",
                node->index, found.gained > 0 ? "gained" : "lost",
                (found.gained > 0 ? found.gained : -found.gained) / 1000, found.span / 1000);
}

/* To be ended as soon as hiredis is off the stack. */
void evl_node_break(struct node *node, int status, const char *error) {
    if (node->broken)
        return;
    node->broken = true;
    node->status = status;
    evl_node_note(node, error);
    wake_at(node, 0);
}

static bool may_send(const struct node *node) {
    return node->state == NODE_READY && !node->broken && !node->gone && !node->full && node->unwritten < QUEUE_SIZE &&
           (node->parting || node->inflight < node->client->config.max_inflight);
}

void evl_node_spell(struct node *node, const char *why) {
    if (!node->spells)
        evl_log(node->client, EVLOCK_LOG_WARN, "node %u: sends its scripts whole: %s", node->index, why);
    node->spells = true;
}

/* A script that is missing is loaded, and the command sent again by its owner; the second time in a row it is sent with
 * the script in it; a third time, of which no server can be thought, the owner is told. The refusal of a batch counts
 * for each of its members, whoever they are sent with next; one load serves all. */
static struct reply mend_noscript(struct node *node, struct request *request, const struct reply *reply) {
    static const char words[] = "TRYAGAIN the server keeps losing its scripts";

    request->older = (uint8_t)(request->flying - 1);
    switch (request->noscripts++) {
    case 0:
        if (!evl_node_load_scripts(node))
            evl_node_break(node, EVLOCK_ENOMEM, "hiredis could not queue a command");
        return *reply;
    case 1:
        evl_node_spell(node, node->load_error[0] ? node->load_error : "those that were loaded are not there");
        return *reply;
    default:
        request->noscripts = 0;
        return (struct reply){.type = REPLY_ERROR, .text = words, .len = strlen(words)};
    }
}

static bool may_not_call(const struct reply *reply) {
    return reply->type == REPLY_ERROR && strncmp(reply->text, "NOPERM", 6) == 0 && strstr(reply->text, "'evalsha'");
}

/* Who may not send a digest may be allowed to send the script itself: as if the script were missing. */
static struct reply mend_no_right(struct node *node, struct request *request, const struct reply *reply) {
    static const char words[] = "NOSCRIPT";

    if (request->noscripts > 0) {
        request->noscripts = 0;
        return *reply;
    }
    request->noscripts = 2;
    evl_node_spell(node, reply->text);
    return (struct reply){.type = REPLY_ERROR, .text = words, .len = strlen(words)};
}

/* Who may not send scripts whole may be allowed to load them by the next time. */
static void note_refusal(struct node *node, const struct reply *reply) {
    if (node->spells && reply->type == REPLY_ERROR && evl_reply_is_lacking(evl_reply_meaning(reply->text)))
        node->spells = node->lacks_evalsha;
}

void evl_node_answer(struct node *node, struct request *request, const struct reply *reply, int64_t now) {
    bool noscript = reply->type == REPLY_ERROR && strncmp(reply->text, "NOSCRIPT", 8) == 0;
    struct reply mended;

    if (request->older > 0) { /* it was sent before that was mended */
        request->older--;
    } else if (noscript) {
        mended = mend_noscript(node, request, reply);
        reply = &mended;
    } else if (may_not_call(reply)) {
        mended = mend_no_right(node, request, reply);
        reply = &mended;
    } else if (reply->type != REPLY_AGAIN) {
        request->noscripts = 0;
        note_refusal(node, reply);
    }
    land(node, request);
    evl_error_clear();
    if (!evl_request_ops[request->kind]->answer(request, reply, now))
        evl_node_break(node, EVLOCK_EPROTOCOL, "a reply that the command cannot have");
}

static void on_reply(redisAsyncContext *connection, void *raw, void *privdata) {
    struct node *node = connection->data;
    struct request *request = privdata;
    struct reply reply;
    int64_t now;

    if (!node || node->broken)
        return; /* connection_end() answers what has not been answered */
    if (!raw) {
        node->gone = true;
        return;
    }
    now = node->since = node->client->now; /* hiredis has many replies from one reading of the socket */
    reply = reply_from(raw);
    if (reply.type != REPLY_ERROR)
        node->good = true;
    else if (evl_reply_meaning(reply.text).reconnect)
        evl_node_break(node, evl_reply_meaning(reply.text).status, reply.text);
    node->inflight--;
    if (request->batch)
        evl_batch_answer(node, request, &reply, now);
    else
        evl_node_answer(node, request, &reply, now);
    evl_node_send_waiting(node, now);
}

/* What is queued while the loop has called in is written when it is left, all at once: to wait until the loop says that
 * the socket is writable, as hiredis would, costs a turn and three system calls. */
static int queue(struct node *node, struct request *request, struct bytes text) {
    void (*add_write)(void *data) = node->connection->ev.addWrite;
    int status;

    node->unwritten += text.len;
    if (node->client->depth > 0)
        node->connection->ev.addWrite = NULL;
    status = redisAsyncFormattedCommand(node->connection, on_reply, request, text.data, text.len);
    node->connection->ev.addWrite = add_write;
    return status;
}

static int queue_command(struct node *node, struct request *request, struct command *command) {
    char *text;
    size_t len;
    int status;

    if (!node->spells || !command->script)
        return queue(node, request, evl_command_text(command));
    if (!(text = evl_command_spelled(command, &len)))
        return REDIS_ERR;
    status = queue(node, request, (struct bytes){text, len});
    evl_free(text);
    return status;
}

void evl_node_send(struct node *node, struct request *request, struct command *command, int64_t now) {
    if (node->inflight++ == 0) {
        node->since = now;
        if (!node->alarm.set)
            wake_at(node, now + node->client->config.command_timeout);
    }
    if (queue_command(node, request, command) != REDIS_OK)
        evl_node_break(node, EVLOCK_ENOMEM, "hiredis could not queue a command");
}

/* What follows an unanswered command of its own goes the same way, so as to arrive behind it. Others arrive behind what
 * was asked for before them: who has released a lock may ask for it by another handle. */
static bool must_wait(const struct node *node, const struct request *request) {
    if (node->state != NODE_READY || node->broken || node->gone)
        return true;
    return !request->flying && (!may_send(node) || node->waiting_count > node->gathered);
}

static void send_alone(struct node *node, struct request *request, int64_t now) {
    struct command command;

    if (evl_request_ops[request->kind]->take(request, now, &command)) {
        evl_node_fly(node, request);
        evl_node_send(node, request, &command, now);
    }
}

void evl_node_send_waiting(struct node *node, int64_t now) {
    struct request *request;

    node->gathered = 0;
    while (may_send(node) && (request = TAILQ_FIRST(&node->waiting))) {
        if (evl_batch_send(node, now))
            continue;
        evl_node_withdraw(node, request);
        send_alone(node, request, now);
    }
}

static void hold_back(struct node *node, struct request *request) {
    TAILQ_INSERT_TAIL(&node->waiting, request, link);
    request->waiting = true;
    node->waiting_count++;
}

void evl_node_submit(struct node *node, struct request *request, int64_t now) {
    if (request->waiting || node->state == NODE_STOPPED)
        return;
    if (must_wait(node, request)) {
        assert(!request->flying || node->broken || node->gone || node->state == NODE_ENDED);
        if (!request->flying)
            hold_back(node, request);
    } else if (node->client->gathering && evl_request_ops[request->kind]->join && !request->flying) {
        hold_back(node, request); /* for others to be sent with */
        if (++node->gathered == BATCH_MEMBERS)
            evl_node_send_waiting(node, now);
    } else {
        send_alone(node, request, now);
    }
}

void evl_node_follow(struct node *node, struct request *request, int64_t now) {
    assert(node->state == NODE_READY && !node->broken && !node->gone);
    send_alone(node, request, now);
}

void evl_node_withdraw(struct node *node, struct request *request) {
    if (!request->waiting)
        return;
    TAILQ_REMOVE(&node->waiting, request, link);
    request->waiting = false;
    node->waiting_count--;
}

/* Tells some waiting requests more; what is queued meanwhile comes behind. Where some were withdrawn, others are told
 * again, which changes nothing. */
static void tell_away(struct node *node, int64_t now) {
    struct request *request;

    for (int i = 0; i < TOLD_A_RING && node->untold > 0; i++) {
        node->untold--;
        if (!(request = TAILQ_FIRST(&node->waiting)))
            continue;
        TAILQ_REMOVE(&node->waiting, request, link);
        TAILQ_INSERT_TAIL(&node->waiting, request, link);
        evl_error_set(node->error);
        evl_request_ops[request->kind]->away(request, node->status, now);
    }
    wake_at(node, node->untold ? now : node->retry_at);
}

/* Some unanswered commands more end as lost. */
static void tell_lost(struct node *node, int64_t now) {
    struct reply reply = {REPLY_LOST, 0, node->error, strlen(node->error)};
    struct request *request;

    for (int i = 0; i < TOLD_A_RING && (request = TAILQ_FIRST(&node->flying)); i++) {
        unsigned count = request->flying;
        TAILQ_REMOVE(&node->flying, request, link);
        request->flying = 0;
        request->noscripts = 0;
        request->older = 0;
        request->batch = 0;
        /* The owner may go with its last answer, and queues nothing here before it. */
        while (count-- > 0)
            evl_request_ops[request->kind]->answer(request, &reply, now);
    }
}

/* --- The connection ----------------------------------------------------------------------------------------------- */

static void forget_addresses(struct node *node) {
    for (size_t i = 0; i < node->address_count; i++)
        evl_free(node->addresses[i]);
    evl_free(node->addresses);
    node->addresses = NULL;
    node->address_count = node->address_next = 0;
}

/* Pauses, half of it at random, before the next connection; longest where a quick return cannot help. */
static void back_off(struct node *node, int status) {
    const struct client_config *config = &node->client->config;
    bool hopeless = status == EVLOCK_EAUTH || status == EVLOCK_EPERM || status == EVLOCK_EUNSUPPORTED ||
                    status == EVLOCK_ESAME || strncmp(node->error, "ERR max", 7) == 0;
    int64_t pause = hopeless ? config->backoff_max : node->backoff;

    node->state = NODE_AWAY;
    node->status = status;
    node->backoff = pause * 2 < config->backoff_max ? pause * 2 : config->backoff_max;
    pause = pause / 2 + (int64_t)(evl_client_random(node->client) % (uint64_t)(pause / 2 + 1));
    node->retry_at = now_of(node) + pause;
    node->untold = node->waiting_count;
    wake_at(node, node->untold ? 0 : node->retry_at);
    evl_log(node->client, status == EVLOCK_EAUTH ? EVLOCK_LOG_ERROR : EVLOCK_LOG_WARN,
            "node %u: not connected: %s; next try in %" PRId64 " ms", node->index,
            node->error[0] ? node->error : evlock_strerror(status), pause / 1000);
    evl_error_set(node->error);
    changed(node);
}

static void release_context(struct node *node, bool forked) {
    redisAsyncContext *connection = node->connection;

    node->connection = NULL;
    if (!connection || node->gone)
        return;
    connection->data = NULL; /* the handlers that hiredis now calls know by this to do nothing */
    if (forked && evl_client_loop_forks(node->client)) {
        (void)close(connection->c.fd); /* first, as the loop's epoll may be the parent's: see loop.h */
        connection->c.fd = -1;
    } else if (forked) {
        memset(&connection->ev, 0, sizeof(connection->ev));
    }
    redisAsyncFree(connection);
}

static void connection_end(struct node *node, int status) {
    bool was_ready = node->state == NODE_READY;
    bool busy = node->inflight > 0; /* or else it may have been closed for idling */
    bool quick;

    if (node->resolution) {
        node->client->loop.ops->resolve_cancel(node->resolution);
        node->resolution = NULL;
    }
    release_context(node, false);
    node->gone = node->broken = node->full = false;
    node->greetings = 0;
    node->unwritten = 0;
    if (node->inflight) {
        node->unsettled = true;
        node->lost_id = node->id;
    }
    node->inflight = 0;
    if (was_ready)
        node->served = now_of(node);
    quick = was_ready && (node->good || now_of(node) - node->ready_at > node->client->config.backoff_max);
    if (quick)
        node->backoff = node->client->config.backoff_min;
    node->good = false;
    node->quick = quick && status == EVLOCK_EUNREACHABLE;
    node->status = status;
    if (node->quick)
        evl_log(node->client, busy ? EVLOCK_LOG_WARN : EVLOCK_LOG_INFO, "node %u: connection lost: %s", node->index,
                node->error);
    if (was_ready) {
        node->state = NODE_ENDED;
        wake_at(node, 0);
    } else if (node->address_next < node->address_count && status == EVLOCK_EUNREACHABLE) {
        evl_node_open(node);
    } else {
        back_off(node, status);
    }
}

/* A connection that served is worth an immediate try; nobody needs to be told that it is away. */
static void after_end(struct node *node, int64_t now) {
    tell_lost(node, now);
    if (!TAILQ_EMPTY(&node->flying))
        wake_at(node, now);
    else if (node->quick)
        connect_begin(node);
    else
        back_off(node, node->status);
}

void evl_node_settle(struct node *node) {
    if (node->state == NODE_STOPPED)
        return;
    if (node->gone)
        connection_end(node, node->broken ? node->status : EVLOCK_EUNREACHABLE);
    else if (node->broken)
        connection_end(node, node->status);
}

static void on_connect(const redisAsyncContext *connection, int status) {
    struct node *node = connection->data;

    if (!node || status == REDIS_OK)
        return;
    node->gone = true; /* hiredis frees it */
    evl_node_note(node, connection->c.errstr);
}

static void on_disconnect(const redisAsyncContext *connection, int status) {
    struct node *node = connection->data;

    (void)status;
    if (!node)
        return;
    node->gone = true;
    if (node->shield.refused)
        evl_node_break(node, EVLOCK_EPROTOCOL, node->shield.refused);
    if (!node->broken && !node->explained)
        evl_node_note(node, connection->errstr && connection->errstr[0] ? connection->errstr : "connection closed");
}

static redisAsyncContext *new_context(const struct node *node) {
    if (node->url.path)
        return redisAsyncConnectUnix(node->url.path);
    return redisAsyncConnect(node->addresses ? node->addresses[node->address_next] : node->url.host, node->url.port);
}

static bool attach(struct node *node) {
    redisAsyncContext *connection = node->connection;

    connection->data = node;
    fcntl(connection->c.fd, F_SETFD, FD_CLOEXEC);
    if (!node->url.path)
        redisEnableKeepAlive(&connection->c);
    connection->c.err = 0; /* a keep-alive that the system refuses is no reason not to connect */
    evl_shield_raise(&node->shield, connection);
    if (node->client->loop.ops->attach(node->client->loop.data, connection) != 0)
        return false;
    redisAsyncSetConnectCallback(connection, on_connect);
    redisAsyncSetDisconnectCallback(connection, on_disconnect);
    return true;
}

static void connect_within(struct node *node, int64_t time) {
    node->connect_by = now_of(node) + time;
    wake_at(node, node->connect_by);
}

/* Opens a connection to the present address, or the next ones while that fails at once. */
void evl_node_open(struct node *node) {
    redisAsyncContext *connection;
    int status = EVLOCK_EUNREACHABLE;

    /* Each address has its share of the time. */
    connect_within(node,
                   node->client->config.connect_timeout / (int64_t)(node->address_count ? node->address_count : 1));
    do {
        connection = new_context(node);
        node->address_next++;
        if (connection && !connection->err) {
            node->connection = connection;
            node->state = NODE_CONNECTING;
            changed(node);
            if (attach(node) && evl_node_greet(node))
                return;
            status = EVLOCK_ENOMEM;
        }
        evl_node_note(node,
                      !connection || status == EVLOCK_ENOMEM ? evlock_strerror(EVLOCK_ENOMEM) : connection->errstr);
        node->connection = connection;
        release_context(node, false);
    } while (node->address_next < node->address_count);
    back_off(node, connection ? status : EVLOCK_ENOMEM);
}

static bool keep_addresses(struct node *node, const char *const *addresses, size_t count) {
    forget_addresses(node);
    node->addresses = evl_alloc(count * sizeof(*node->addresses));
    for (; node->addresses && node->address_count < count; node->address_count++)
        if (!(node->addresses[node->address_count] =
                  evl_dup(addresses[node->address_count], strlen(addresses[node->address_count]))))
            break;
    return node->address_count == count;
}

static void on_resolved(const char *const *addresses, size_t count, const char *error, void *arg) {
    struct node *node = arg;
    struct evlock_client *client = node->client;

    node->resolution = NULL;
    if (!evl_client_enter(client))
        return;
    if (node->state == NODE_RESOLVING) {
        if (count == 0) {
            evl_node_note(node, error);
            back_off(node, EVLOCK_EUNREACHABLE);
        } else if (!keep_addresses(node, addresses, count)) {
            evl_node_note(node, evlock_strerror(EVLOCK_ENOMEM));
            back_off(node, EVLOCK_ENOMEM);
        } else {
            evl_node_open(node);
        }
    }
    evl_client_leave(client);
}

static void connect_begin(struct node *node) {
    const struct evlock_loop *loop = &node->client->loop;

    forget_addresses(node);
    if (node->url.path || node->url.literal) {
        evl_node_open(node);
        return;
    }
    node->state = NODE_RESOLVING;
    changed(node);
    connect_within(node, node->client->config.connect_timeout);
    if (loop->ops->resolve)
        node->resolution = loop->ops->resolve(loop->data, node->url.host, on_resolved, node);
    if (!node->resolution) {
        evl_node_note(node, loop->ops->resolve ? "the name cannot be resolved now" : "this loop resolves no names");
        back_off(node, EVLOCK_EUNREACHABLE);
    }
}

static bool differs(const char *before, const char *now) {
    return before[0] && now[0] && strcmp(before, now) != 0;
}

bool evl_node_same_process(const struct node *node) {
    return node->run_id[0] && strcmp(node->run_id, node->old_run_id) == 0;
}

/* A process gives the history of its data another name when its first replica comes, and again a while after its last
 * has gone, and has lost nothing by that: where it took over data, it names their history beside its own. */
static bool has_other_data(const struct node *node) {
    return differs(node->old_replid, node->replid) && (node->inherited || !evl_node_same_process(node));
}

/* Until when, at the latest, it may have forgotten locks. */
static int64_t may_have_forgotten_until(const struct node *node, int64_t now) {
    bool stranger = node->client->config.distrust_uptime && !evl_node_same_process(node);

    return node->replaced || has_other_data(node) || !node->started || stranger ? now : node->started;
}

/* Among several nodes, one that may have forgotten locks does not count before the longest of them must have ended.
 * What was found out before stays: another login is no reason to count earlier. */
static void exclude(struct node *node) {
    const struct evlock_client *client = node->client;
    int64_t now = now_of(node);
    int64_t since = may_have_forgotten_until(node, now);

    if (client->node_count == 1 || client->config.durable || node->link)
        return;
    if (node->excluded_until < since + client->config.max_ttl)
        node->excluded_until = since + client->config.max_ttl;
    if (node->excluded_until > now)
        evl_log(node->client, EVLOCK_LOG_WARN,
                "node %u: may have forgotten locks, and does not count for %" PRId64 " ms", node->index,
                (node->excluded_until - now) / 1000);
}

int evl_node_trouble(const struct node *node, int64_t now) {
    if (node->state == NODE_AWAY)
        return node->status;
    if (node->state != NODE_RETURNING && node->state != NODE_READY)
        return EVLOCK_OK;
    return now < node->excluded_until ? EVLOCK_EEXCLUDED : EVLOCK_OK;
}

/* All have been told. Only now is the connection before done with: had this one ended meanwhile, the next would tell
 * all anew, and those who had been told would keep to the worse of the two. */
static void serve(struct node *node) {
    memcpy(node->old_run_id, node->run_id, sizeof(node->run_id));
    memcpy(node->old_replid, node->replid, sizeof(node->replid));
    node->unsettled = false;
    node->lost_id = 0;
    node->state = NODE_READY;
    node->client->stats.reconnects += !node->link && node->ready_at != 0;
    node->good = node->ears; /* it answers nothing more */
    node->ready_at = node->since = now_of(node);
    wake_at(node, LEASE_NEVER);
    evl_log(node->client, EVLOCK_LOG_INFO, "node %u: connected%s", node->index,
            node->replaced ? ", to another server process than before" : "");
    changed(node);
    if (node->ears)
        evl_queue_ready(node->client);
}

static void tell_back(struct node *node, int64_t now) {
    if (evl_client_tell_back(node->client, node, now))
        serve(node);
    else
        wake_at(node, now);
}

void evl_node_ready(struct node *node, bool settled) {
    if (!node->link)
        evl_client_refuse_twins(node->client, node);
    if (node->broken)
        return;

    /* The commands of a process that has ended cannot run any more. */
    node->replaced = differs(node->old_run_id, node->run_id);
    node->settled = settled || node->replaced;
    node->error[0] = '\0';
    node->explained = false;
    exclude(node);
    if (node->link) {
        serve(node);
        evl_node_send_waiting(node, node->since);
        return;
    }
    if (node->replaced || !node->run_id[0])
        evl_queue_move(node->client, node->since);
    node->state = NODE_RETURNING;
    node->telling = TAILQ_FIRST(&node->client->tenures);
    node->telling_ghosts = false;
    wake_at(node, 0);
}

/* --- From the client and the loop --------------------------------------------------------------------------------- */

void evl_node_init(struct node *node, struct evlock_client *client, unsigned index, struct url *url) {
    memset(node, 0, sizeof(*node));
    node->client = client;
    node->index = index;
    node->url = *url;
    node->alarm.kind = ALARM_NODE;
    node->backoff = client->config.backoff_min;
    TAILQ_INIT(&node->waiting);
    TAILQ_INIT(&node->flying);
}

void evl_node_start(struct node *node) {
    connect_begin(node);
}

/* A server that writes to a socket that is closed drops what it has not read by then, so it is to write no more. One
 * that did not tell its number would refuse this, too. */
void evl_node_part(struct node *node) {
    static const char quiet[] = "*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$3\r\nOFF\r\n";

    node->parting = true;
    if (may_send(node) && node->id)
        (void)queue(node, NULL, (struct bytes){quiet, sizeof(quiet) - 1});
}

/* What lies unread in a socket that is closed makes the kernel end the connection at once, with what was written. */
static void drain(const struct node *node) {
    char bytes[16384];

    for (int i = 0; i < DRAINED && recv(node->connection->c.fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0; i++)
        ;
}

void evl_node_stop(struct node *node, bool forked) {
    if (node->state == NODE_STOPPED)
        return;
    if (node->parting && node->state == NODE_READY && !node->gone)
        drain(node);
    if (node->resolution && (!forked || evl_client_loop_forks(node->client)))
        node->client->loop.ops->resolve_cancel(node->resolution);
    node->resolution = NULL;
    release_context(node, forked);
    node->state = NODE_STOPPED;
    wake_at(node, LEASE_NEVER);
    forget_addresses(node);
    evl_url_clear(&node->url);
}

void evl_node_wind_up(struct node *node) {
    while (!TAILQ_EMPTY(&node->flying))
        tell_lost(node, now_of(node));
}

static void give_up_on_silence(struct node *node, int64_t now) {
    int64_t limit = node->since + node->client->config.command_timeout;
    char words[64];

    if (node->inflight == 0)
        return;
    if (now < limit) {
        wake_at(node, limit);
    } else if (!evl_client_puts_off(node->client, &node->alarm, node->since, limit)) {
        snprintf(words, sizeof(words), "no answer within %" PRId64 " ms", node->client->config.command_timeout / 1000);
        evl_node_note(node, words);
        connection_end(node, EVLOCK_EUNREACHABLE);
    }
}

void evl_node_ring(struct node *node, int64_t now) {
    char words[64];

    if (node->gone || node->broken) {
        evl_node_settle(node);
        return;
    }
    switch (node->state) {
    case NODE_ENDED:
        after_end(node, now);
        break;
    case NODE_AWAY:
        if (node->untold)
            tell_away(node, now);
        else
            connect_begin(node);
        break;
    case NODE_RESOLVING:
    case NODE_CONNECTING:
        if (evl_client_puts_off(node->client, &node->alarm, node->since, node->connect_by))
            break;
        snprintf(words, sizeof(words), "no connection within %" PRId64 " ms",
                 node->client->config.connect_timeout / 1000);
        evl_node_note(node, words);
        connection_end(node, EVLOCK_EUNREACHABLE);
        break;
    case NODE_RETURNING:
        tell_back(node, now);
        break;
    case NODE_READY:
        give_up_on_silence(node, now);
        break;
    case NODE_STOPPED:
        break;
    }
}

/* Writes with SIGPIPE held back from this thread: a library must not end the process, nor change its dispositions. */
static void write_quietly(redisAsyncContext *connection) {
    struct timespec none = {0, 0};
    sigset_t pipe, before, pending;
    struct node *node = connection->data;

    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigemptyset(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    if (sigismember(&before, SIGPIPE)) /* or else none can be pending */
        sigpending(&pending);
    node->unwritten = 0;
    redisAsyncHandleWrite(connection);
    node->full = !node->gone && connection->c.obuf[0];
    if (node->gone && !sigismember(&pending, SIGPIPE))
        sigtimedwait(&pipe, NULL, &none);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void write_queued(struct node *node) {
    if (node->state == NODE_READY && !node->gone && !node->broken)
        write_quietly(node->connection);
}

void evl_node_flush(struct node *node) {
    do {
        evl_node_send_waiting(node, now_of(node));
        write_queued(node);
    } while (may_send(node) && !TAILQ_EMPTY(&node->waiting));
}

void evl_node_write(struct node *node, size_t bytes) {
    if (node->unwritten <= bytes)
        return;
    write_queued(node);
    evl_node_settle(node);
}

static void read_guarded(redisAsyncContext *connection) {
    struct node *node = connection->data;

    redisAsyncHandleRead(connection);
    if (!node->gone && evl_shield_overrun(&node->shield))
        evl_node_break(node, EVLOCK_EPROTOCOL, node->shield.refused);
}

/* Brackets of what a connection's socket is ready for. A forked child that runs its copy of the loop is not to be
 * called again for what it must not read: it lets go of the connection. */
static bool enter(struct node *node) {
    if (!node)
        return false;
    if (evl_client_enter(node->client))
        return true;
    if (evl_client_loop_forks(node->client))
        release_context(node, true);
    return false;
}

void evlock_on_readable(redisAsyncContext *connection) {
    struct node *node = connection->data;

    if (!enter(node))
        return;
    if (node->connection == connection) /* deadlines have been seen to, which may have ended it */
        read_guarded(connection);
    evl_client_leave(node->client);
}

/* A server that is full says so without being asked, and hangs up: to be read before a write fails for it. The look
 * takes why a connection failed off the socket, where hiredis would have found it. */
static bool spoke_first(struct node *node) {
    ssize_t count;
    char byte;

    if (node->state != NODE_CONNECTING)
        return false;
    count = recv(node->connection->c.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (count < 0 && errno != EAGAIN && errno != EINTR && errno != ENOTCONN)
        evl_node_break(node, EVLOCK_EUNREACHABLE, strerror(errno));
    return count == 1;
}

void evlock_on_writable(redisAsyncContext *connection) {
    struct node *node = connection->data;

    if (!enter(node))
        return;
    if (node->connection == connection && spoke_first(node))
        read_guarded(connection);
    if (node->connection == connection && !node->gone && !node->broken)
        write_quietly(connection);
    evl_node_send_waiting(node, node->client->now);
    evl_client_leave(node->client);
}
