/* Listeners; see listener.h. */
#include "listener.h"

#include <string.h>

#include "check.h"
#include "lacks.h"

static struct listener *listener_of(struct connection *connection) {
    return EVL_OWNER(struct listener, login.connection, connection);
}

/* It answers nothing that would prove it to be of use. */
static void listener_begin_to_hear(struct connection *connection) {
    struct listener *listener = listener_of(connection);

    evl_login_keep(&listener->login);
    evl_connection_return(connection);
    connection->proved = true;
    listener->missing = 0;
    listener->hooks->listens(listener);
}

static void listener_on_heard(struct connection *connection, const char *message) {
    struct listener *listener = listener_of(connection);

    if (message)
        listener->hooks->heard(listener, message);
    else
        listener_begin_to_hear(connection);
}

static void listener_on_login_done(struct login *login, bool settled) {
    (void)settled;
    evl_connection_explain(&login->connection, NULL);
    evl_connection_listen(&login->connection, login->channel);
}

/* Whatever was refused, nothing can be heard without, but for what the login did without. It is tried for ever, as it
 * may be allowed one day. */
static bool listener_on_away(struct connection *connection, bool begins, int64_t now) {
    struct listener *listener = listener_of(connection);

    (void)begins, (void)now;
    if (connection->explained || !evl_reply_is_lacking(evl_reply_meaning(evl_reply_error(connection->why))))
        return false;
    connection->expected = listener->missing;
    evl_lacks_note(&listener->missing, EVLOCK_MISSING_CHANNELS, connection->why, connection);
    return false;
}

static const struct connection_hooks connection_hooks = {
    .greet = evl_login_greet,
    .greeted = evl_login_greeted,
    .heard = listener_on_heard,
    .lost = evl_login_lost,
    .away = listener_on_away,
};

static const struct login_hooks login_hooks = {.done = listener_on_login_done};

void evl_listener_init(struct listener *listener, struct connections *all, struct node *node, const char *channel,
                       const struct listener_hooks *hooks) {
    evl_connection_init(&listener->login.connection, all, evl_node_index(node), &node->url, &connection_hooks);
    evl_login_init(&listener->login, node->pipe.login.credentials, &login_hooks);
    assert(strlen(channel) < sizeof(listener->channel));
    memcpy(listener->channel, channel, strlen(channel) + 1);
    listener->login.role = LOGIN_TO_LISTEN;
    listener->login.channel = listener->channel;
    listener->hooks = hooks;
}

void evl_listener_end(struct listener *listener, struct connections *all) {
    evl_login_end(&listener->login);
    evl_connections_remove(all, &listener->login.connection);
}

bool evl_listener_hears(const struct listener *listener) {
    const struct connection *connection = &listener->login.connection;

    return connection->state == CONNECTION_READY && !connection->broken;
}

void evl_listener_follow(struct listener *listener, int64_t since) {
    struct connection *connection = &listener->login.connection;

    if (connection->state == CONNECTION_READY && connection->ready_at < since)
        evl_connection_break(connection, EVLOCK_EUNREACHABLE, "another server is asked now");
}
