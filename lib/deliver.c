/*
 * Delivery: how a client wakes, and the one place from which users are called. Whatever the loop starts passes through
 * enter and leave; in between, state changes and callbacks are only noted. It decides nothing about a lock.
 */
#include "client.h"
#include "least.h"
#include "lock.h"
#include "queue.h"
#include "status.h"

#define OWNER(type, member, pointer) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* Alarms: about a millisecond of work. Other users of the loop have their turn in between. */
#define SLICE 500

/* So much at once keeps the server at work meanwhile, and the commands in the cache. */
#define WRITE_SIZE 16384

/* In microseconds: by how much an alarm is late, at most, while the loop runs; and how long a loop that stood still is
 * given. */
#define STALL 1000
#define RECOVERY_LEAST 20000
#define RECOVERY_MOST 100000

static void write_out(struct evlock_client *client, size_t bytes) {
    for (unsigned i = 0; i < client->node_count; i++) {
        evl_node_write(&client->nodes[i], bytes);
        if (client->links)
            evl_node_write(&client->links[i], bytes);
    }
}

static void ring_one(struct alarm *alarm, int64_t now) {
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
        evl_client_close_ring(OWNER(struct evlock_client, close_alarm, alarm));
        break;
    }
}

static void send_gathered(struct evlock_client *client, int64_t now) {
    client->gathering = false;
    for (unsigned i = 0; i < client->node_count; i++)
        evl_node_send_waiting(&client->nodes[i], now);
}

/*
 * The timer rings: nothing is given up for want of an answer that lies in a socket. What had come when it rang the time
 * before last was seen, at the latest, when the loop looked for what made it ring last, and all that it saw then has
 * been read before it looked again.
 */
static void note_turn(struct evlock_client *client, int64_t now) {
    client->read = client->turns[1];
    if (now >= client->recovery)
        client->heard = client->read;
    client->turns[1] = client->turns[0];
    client->turns[0] = now;
}

/* What came until it was seen that the loop had stood still has not all been read, for all that is known. */
static bool recovers(const struct evlock_client *client) {
    return client->heard < client->stood;
}

/* What was due and not looked at for more than a moment tells that the loop stood still, here or elsewhere: then
 * commands may not have been written yet, nor connections made. So there is as much time again, within bounds, for them
 * to be answered. Not again before what came until then was read: a loop that is always busy would never end a wait. */
static void note_stall(struct evlock_client *client, int64_t due, int64_t now) {
    int64_t stood = now - max64(client->looked, due);

    client->looked = now;
    if (stood > STALL && client->recovery <= now && !recovers(client)) {
        stood = min64(max64(stood, RECOVERY_LEAST), RECOVERY_MOST);
        client->stood = now;
        client->recovery = now + min64(stood, client->config.command_timeout);
    }
    client->patient = max64(client->recovery, now + 1);
}

bool evl_client_puts_off(struct evlock_client *client, struct alarm *alarm, int64_t begun, int64_t limit) {
    bool fresh = begun >= client->stood; /* what was not under way then has nothing to make up for */

    if (limit <= (fresh ? client->read : client->heard))
        return false;
    evl_alarm_set(&client->alarms, alarm, max64(limit, fresh ? client->looked + 1 : client->patient));
    return true;
}

/* Sees to what is due, as far as a slice of work goes; whether that was all. */
static bool ring(struct evlock_client *client, int64_t now) {
    int64_t next = evl_alarms_next(&client->alarms);
    struct alarm *alarm;
    unsigned left = SLICE;

    note_stall(client, next, now);
    if (next > now)
        return true;
    client->gathering = true;
    for (; left > 0 && evl_alarms_next(&client->alarms) <= now; left--)
        if ((alarm = evl_alarms_due(&client->alarms)))
            ring_one(alarm, now);
    send_gathered(client, now);
    write_out(client, WRITE_SIZE);
    return left > 0;
}

static bool has_news(const struct evlock_client *client) {
    const struct node *trouble;

    return client->news && client->state == CLIENT_OPEN &&
           (client->node_count > 1 || (int)evl_client_connection(client, &trouble) != client->told_connection);
}

static void tell_connection(struct evlock_client *client) {
    const struct node *trouble = NULL;
    enum evlock_connection connection;

    if (!has_news(client))
        return;
    connection = evl_client_connection(client, &trouble);
    client->told_connection = (int)connection;
    client->news = false;
    evl_error_set(trouble ? trouble->error : "");
    if (client->config.on_connection)
        client->config.on_connection(client, connection, connection == EVLOCK_AWAY ? trouble->status : EVLOCK_OK,
                                     client->config.arg);
}

/* The one place from which users are called. Deadlines come first, before each call: the one before may have taken
 * long. So while there are more due than a slice, only losses are told. What is noted meanwhile waits for the next
 * turn, so that a user who asks again at once cannot hold up the loop; but losses are always told next. */
static void deliver(struct evlock_client *client) {
    enum client_state state = client->state;
    struct call *call;
    size_t count = 0;

    TAILQ_FOREACH (call, &client->done, link)
        count++;
    while (client->state == state) {
        bool rung = state == CLIENT_FREED || ring(client, evl_client_now(client));
        if (!STAILQ_EMPTY(&client->noticed)) {
            evl_lock_tell_notices(client);
            continue;
        }
        if (!rung || count-- == 0 || !(call = TAILQ_FIRST(&client->done)))
            break;
        TAILQ_REMOVE(&client->done, call, link);
        evl_call_tell(call);
        write_out(client, WRITE_SIZE);
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
    if (client->state != CLIENT_FREED)
        evl_queue_settle(client);
}

bool evl_client_enter(struct evlock_client *client) {
    if (evl_client_forked(client))
        return false;
    client->now = evl_client_now(client);
    if (client->depth++ == 0 && client->state != CLIENT_FREED)
        ring(client, client->now);
    return true;
}

void evl_client_leave(struct evlock_client *client) {
    if (client->depth == 1) {
        settle(client);
        deliver(client);
        write_out(client, 0);
    }
    if (--client->depth > 0)
        return;
    if (!evl_client_is_over(client)) {
        evl_client_rearm(client);
        return;
    }
    if (client->state == CLIENT_CLOSING)
        evl_client_tear_down(client, false);
    evl_client_destroy(client);
}

/* The timer is set when it must ring earlier than it would; when later, it rings in vain and is set again. By its rings
 * alone a recovery comes to its end. */
void evl_client_rearm(struct evlock_client *client) {
    bool waiting = !TAILQ_EMPTY(&client->done) || !STAILQ_EMPTY(&client->noticed) || evl_client_is_over(client) ||
                   has_news(client);
    int64_t at = waiting ? 0 : evl_alarms_next(&client->alarms);

    if (recovers(client))
        at = min64(at, client->recovery);
    if (client->depth > 0 || at >= client->armed || evl_client_forked(client))
        return;
    client->armed = at;
    client->loop.ops->timer_set(client->timer, at);
}

void evl_client_on_timer(void *arg) {
    struct evlock_client *client = arg;

    client->armed = INT64_MAX;
    note_turn(client, evl_client_now(client));
    if (evl_client_enter(client))
        evl_client_leave(client);
}
