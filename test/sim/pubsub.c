/* Publish and subscribe: who listens to what is kept with each session. Once it listens, it may do little else. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

static struct subscription *find(const sim_session *session, bool pattern, const char *name, size_t len) {
    struct subscription *each;
    TAILQ_FOREACH (each, &session->subscriptions, next) {
        if (each->pattern == pattern && item_is(&each->name, name, len))
            return each;
    }
    return NULL;
}

static void drop(sim_session *session, struct subscription *subscription) {
    TAILQ_REMOVE(&session->subscriptions, subscription, next);
    session->subscribed--;
    free(subscription->name.bytes);
    free(subscription);
}

void session_unsubscribe_all(sim_session *session) {
    while (!TAILQ_EMPTY(&session->subscriptions))
        drop(session, TAILQ_FIRST(&session->subscriptions));
}

static void text(struct output *reply, const char *string) {
    reply_bulk(reply, string, strlen(string));
}

/* --- Subscribing -------------------------------------------------------------------------------------------------- */

static void subscribe(struct call *call, bool pattern) {
    sim_session *session = call->session;
    for (int i = 1; i < call->argc; i++) {
        if (!find(session, pattern, call->argv[i], call->lens[i])) {
            struct subscription *new = need(calloc(1, sizeof(*new)));
            new->pattern = pattern;
            item_set(&new->name, call->argv[i], call->lens[i]);
            TAILQ_INSERT_TAIL(&session->subscriptions, new, next);
            session->subscribed++;
        }
        reply_array(call->reply, 3);
        text(call->reply, pattern ? "psubscribe" : "subscribe");
        reply_bulk(call->reply, call->argv[i], call->lens[i]);
        reply_integer(call->reply, session->subscribed);
    }
}

static void run_subscribe(struct call *call) {
    subscribe(call, false);
}

static void run_psubscribe(struct call *call) {
    subscribe(call, true);
}

static void unsubscribe_one(struct call *call, bool pattern, const char *name, size_t len) {
    struct subscription *found = find(call->session, pattern, name, len);
    reply_array(call->reply, 3);
    text(call->reply, pattern ? "punsubscribe" : "unsubscribe");
    reply_bulk(call->reply, name, len);
    if (found)
        drop(call->session, found);
    reply_integer(call->reply, call->session->subscribed);
}

static void unsubscribe(struct call *call, bool pattern) {
    bool any = false;
    for (int i = 1; i < call->argc; i++)
        unsubscribe_one(call, pattern, call->argv[i], call->lens[i]);
    if (call->argc > 1)
        return;
    for (struct subscription *each = TAILQ_FIRST(&call->session->subscriptions), *next; each; each = next) {
        next = TAILQ_NEXT(each, next);
        if (each->pattern != pattern)
            continue;
        unsubscribe_one(call, pattern, each->name.bytes, each->name.len);
        any = true;
    }
    if (any)
        return;
    reply_array(call->reply, 3);
    text(call->reply, pattern ? "punsubscribe" : "unsubscribe");
    reply_nil(call->reply);
    reply_integer(call->reply, call->session->subscribed);
}

static void run_unsubscribe(struct call *call) {
    unsubscribe(call, false);
}

static void run_punsubscribe(struct call *call) {
    unsubscribe(call, true);
}

/* --- Publishing --------------------------------------------------------------------------------------------------- */

static void push(const struct call *call, sim_session *session, const struct subscription *to) {
    struct output message = {0};
    reply_array(&message, to->pattern ? 4 : 3);
    text(&message, to->pattern ? "pmessage" : "message");
    if (to->pattern)
        reply_bulk(&message, to->name.bytes, to->name.len);
    reply_bulk(&message, call->argv[1], call->lens[1]);
    reply_bulk(&message, call->argv[2], call->lens[2]);
    session_write(session, &message);
    reply_free(&message);
}

static int64_t push_to_all(const struct call *call, bool patterns) {
    int64_t count = 0;
    sim_session *session;
    const struct subscription *to;
    TAILQ_FOREACH (session, &call->server->sessions, next) {
        TAILQ_FOREACH (to, &session->subscriptions, next) {
            if (to->pattern != patterns || (patterns ? fnmatch(to->name.bytes, call->argv[1], 0) != 0
                                                     : !item_is(&to->name, call->argv[1], call->lens[1])))
                continue;
            push(call, session, to);
            count++;
        }
    }
    return count;
}

static void run_publish(struct call *call) {
    int64_t to_channel = push_to_all(call, false);
    reply_integer(call->reply, to_channel + push_to_all(call, true));
}

int64_t sim_server_listeners(const sim_server *server, const char *channel, size_t len) {
    const sim_session *session;
    int64_t count = 0;
    TAILQ_FOREACH (session, &server->sessions, next) {
        count += find(session, false, channel, len) != NULL;
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
    {"psubscribe", -2, PUBSUB | NO_SCRIPT, run_psubscribe},
    {"publish", 3, 0, run_publish},
    {"pubsub", -2, 0, NULL},
    {"pubsub|numsub", -2, 0, run_numsub},
    {"punsubscribe", -1, PUBSUB | NO_SCRIPT, run_punsubscribe},
    {"subscribe", -2, PUBSUB | NO_SCRIPT, run_subscribe},
    {"unsubscribe", -1, PUBSUB | NO_SCRIPT, run_unsubscribe},
    {0},
};
