/* Publish and subscribe: who listens to what is kept with each session. Once it listens, it may do little else. */
#include <stdlib.h>
#include <string.h>

#include "state.h"

static bool listens(const sim_session *session, const char *name, size_t len) {
    const struct subscription *each;
    TAILQ_FOREACH (each, &session->subscriptions, next) {
        if (item_is(&each->name, name, len))
            return true;
    }
    return false;
}

void session_unsubscribe_all(sim_session *session) {
    struct subscription *each;
    while ((each = TAILQ_FIRST(&session->subscriptions))) {
        TAILQ_REMOVE(&session->subscriptions, each, next);
        free(each->name.bytes);
        free(each);
    }
    session->subscribed = 0;
}

static void text(struct output *reply, const char *string) {
    reply_bulk(reply, string, strlen(string));
}

static void run_subscribe(struct call *call) {
    sim_session *session = call->session;
    for (int i = 1; i < call->argc; i++) {
        if (!listens(session, call->argv[i], call->lens[i])) {
            struct subscription *new = need(calloc(1, sizeof(*new)));
            item_set(&new->name, call->argv[i], call->lens[i]);
            TAILQ_INSERT_TAIL(&session->subscriptions, new, next);
            session->subscribed++;
        }
        reply_array(call->reply, 3);
        text(call->reply, "subscribe");
        reply_bulk(call->reply, call->argv[i], call->lens[i]);
        reply_integer(call->reply, session->subscribed);
    }
}

static void push(const struct call *call, sim_session *session) {
    struct output message = {0};
    reply_array(&message, 3);
    text(&message, "message");
    reply_bulk(&message, call->argv[1], call->lens[1]);
    reply_bulk(&message, call->argv[2], call->lens[2]);
    session_write(session, &message);
    reply_free(&message);
}

static void run_publish(struct call *call) {
    int64_t count = 0;
    sim_session *session;
    TAILQ_FOREACH (session, &call->server->sessions, next) {
        if (!listens(session, call->argv[1], call->lens[1]))
            continue;
        push(call, session);
        count++;
    }
    reply_integer(call->reply, count);
}

int64_t sim_server_listeners(const sim_server *server, const char *channel, size_t len) {
    const sim_session *session;
    int64_t count = 0;
    TAILQ_FOREACH (session, &server->sessions, next) {
        count += listens(session, channel, len);
    }
    return count;
}

bool sim_session_listens(const sim_session *session) {
    return session->subscribed > 0;
}

static void run_numsub(struct call *call) {
    reply_array(call->reply, 2 * ((size_t)call->argc - 2));
    for (int i = 2; i < call->argc; i++) {
        reply_bulk(call->reply, call->argv[i], call->lens[i]);
        reply_integer(call->reply, sim_server_listeners(call->server, call->argv[i], call->lens[i]));
    }
}

const struct command pubsub_commands[] = {
    {"publish", 3, 0, run_publish},
    {"pubsub", -2, 0, NULL},
    {"pubsub|numsub", -2, 0, run_numsub},
    {"subscribe", -2, PUBSUB | NO_SCRIPT, run_subscribe},
    {0},
};
