/* Delivery; see deliver.h. */
#include "deliver.h"

#include <string.h>

#include "check.h"
#include "run.h"

/* So much at once keeps the server at work meanwhile, and the commands in the cache. */
#define WRITE_SIZE 16384

/* A child that was made inside a callback, and returns from it, has nothing to write, and nobody to call. */
static bool deliver_goes_on(struct evlock_client *client, enum client_state state) {
    return client->state == state && !evl_turn_forked(evl_client_turn(client));
}

static void deliver_write_out(struct evlock_client *client, size_t bytes) {
    if (!evl_turn_forked(evl_client_turn(client)))
        evl_connections_write(&evl_client_deployment(client)->connections, bytes);
}

void evl_deliver_rung(struct turn *turn, int64_t now) {
    struct evlock_client *client = evl_client_of_turn(turn);

    evl_deployment_send_waiting(evl_client_deployment(client), now);
    deliver_write_out(client, WRITE_SIZE);
}

/* --- What users are called for ------------------------------------------------------------------------------------ */

static bool deliver_has_news(const struct evlock_client *client) {
    const struct deployment *deployment = &client->locks.tenures.deployment;
    const struct node *trouble;

    return client->news && client->state == CLIENT_OPEN &&
           (deployment->votes > 1 || (int)evl_deployment_connection(deployment, &trouble) != client->told_connection);
}

static void deliver_tell_connection(struct evlock_client *client) {
    const struct deployment *deployment = evl_client_deployment(client);
    const struct connection *away = NULL;
    const struct node *trouble = NULL;
    enum evlock_connection connection;

    if (!deliver_has_news(client))
        return;
    connection = evl_deployment_connection(deployment, &trouble);
    client->told_connection = (int)connection;
    client->news = false;
    if (trouble)
        away = evl_node_connection_of(trouble);
    evl_error_set(away ? away->error : "");
    if (deployment->config.on_connection)
        deployment->config.on_connection(client, connection, connection == EVLOCK_AWAY ? away->status : EVLOCK_OK,
                                         deployment->config.arg);
}

/* What is known of it in words: how many of several nodes agreed, or why the only one is of no use. */
static void deliver_explain(const struct evlock *lock, int why) {
    const struct deployment *deployment = lock->config->deployment;
    const struct connection *only = evl_node_connection_of(evl_handle_home(lock));

    if (deployment->votes > 1)
        evl_fail(why, "%u of %u nodes still agreed", lock->agreed, deployment->votes);
    else
        evl_error_set(only->status == why ? only->error : "");
}

/* A hold's user is called for all that befalls it, and not only at its end. It may be gone when that returns. */
static void deliver_tell_hold(struct call *hold, int lost) {
    int status = hold->sort->noticed(hold, lost);

    if (!status)
        return;
    if (lost)
        deliver_explain(hold->lock, lost);
    else
        evl_error_set(hold->error && strcmp(hold->error, evlock_strerror(status)) != 0 ? hold->error : "");
    hold->cb(hold->lock, status, hold->arg);
}

/* A hold is told its loss in place of on_lost. While one waits, a loss is of the lease before. */
static void deliver_tell_notices(struct evlock *lock) {
    struct call *hold = evl_call_pending(lock, CALL_HOLD);
    evlock_cb cb = lock->lost ? lock->config->on_lost : lock->config->on_at_risk;
    bool lost = lock->lost;
    int why = lock->why;

    evl_lock_drop_notices(lock);
    if (evl_call_hold(lock)) /* the handle could not be in both lists */
        evl_locks_announce(evl_locks_of(lock), lock);
    if (hold && lost) {
        deliver_tell_hold(hold, why);
    } else if (why && cb) {
        deliver_explain(lock, why);
        cb(lock, why, lock->arg);
    }
}

static void deliver_tell_news(struct evlock *lock) {
    struct call *hold = evl_call_hold(lock);

    if (hold)
        deliver_tell_hold(hold, EVLOCK_OK);
}

/* A child that was made inside the body has freed the run, or leaves it alone. */
static void deliver_call_body(struct evlock_client *client, struct call *call) {
    int value;

    evl_run_enter(call);
    value = call->body(call->lock, call->arg);
    if (!evl_turn_forked(evl_client_turn(client)))
        evl_run_entered(call, value);
}

static void deliver_tell_run(struct call *call) {
    bool ran = call->sort->kind != CALL_ACQUIRE;

    if (call->done)
        call->done(call->status, ran, call->arg);
    evl_run_free_handle(call);
}

static void deliver_tell_page(struct evlock_client *client, const struct call *call) {
    const evlock_page *page = call->status == EVLOCK_OK ? &call->list.page : NULL;

    call->list.cb(client->state == CLIENT_FREED ? NULL : client, call->status, page, call->arg);
}

/* It is told after the user has been called, and not before: that may have ended the connection, and with it the last
 * request. */
static void deliver_tell_call(struct evlock_client *client, struct call *call) {
    struct evlock *lock = call->lock;
    evlock *handle = lock->freed ? NULL : lock;

    if (lock->untold == call) {
        lock->untold = NULL;
        evl_tenure_warn_anew(lock->tenure);
    }
    if (call->sort->count)
        call->sort->count(call);
    if (call->body)
        evl_run_settle(call);
    evl_error_set("");
    if (call->status == EVLOCK_OK && call->sort->goes_on) {
        call->sort->goes_on(call);
        call->cb(handle, EVLOCK_OK, call->arg);
        return;
    }
    if (call->error && call->status != EVLOCK_OK)
        evl_error_set(call->error);
    if (call->body && call->sort->kind == CALL_ACQUIRE && call->status == EVLOCK_OK) {
        deliver_call_body(client, call);
        return;
    }
    if (call->body)
        deliver_tell_run(call);
    else if (call->cb)
        call->cb(handle, call->status, call->arg);
    else if (call->query_cb)
        call->query_cb(handle, call->status, call->status == EVLOCK_OK ? &call->query.answer : NULL, call->arg);
    else if (call->sort->kind == CALL_LIST)
        deliver_tell_page(client, call);
    call->told = true;
    evl_call_free_told(call);
}

/* The next one that is to be put, of each node one in a turn. False: there is none. */
static bool deliver_question(struct evlock_client *client, unsigned *node) {
    struct deployment *deployment = evl_client_deployment(client);

    while (deployment->config.on_login && *node < evl_deployment_identities(deployment))
        if (evl_credentials_take_question(&deployment->nodes[(*node)++]->credentials)) {
            evl_error_set("");
            deployment->asking = true;
            deployment->config.on_login(client, *node - 1, deployment->config.arg);
            deployment->asking = false;
            return true;
        }
    return false;
}

static void deliver_post(struct evlock_client *client) {
    struct post post = evl_posts_next(&client->posts);

    evl_error_set("");
    post.cb(client->state == CLIENT_FREED ? NULL : client, post.arg);
}

void evl_deliver_closed(evlock_closed_cb cb, int status, void *arg) {
    evl_error_set("");
    cb(status, arg);
}

/* --- In which order ----------------------------------------------------------------------------------------------- */

/* A lease that is passed on is told in the same turn, and what was noted before it: a turn for each would cost more
 * than all the rest. But so many are enough for a turn. */
enum { PASSED_A_TURN = 64 };

/* Whether a call that is to be told is of a lease that was passed on. It is not one of those to be told any more. */
static bool deliver_takes_pass(struct evlock_client *client, const struct call *call) {
    bool passed = client->locks.passed > 0 && evl_call_passed(call);

    client->locks.passed -= passed;
    return passed;
}

/* Deadlines come first, before each call: the one before may have taken long. So while there are more due than a slice,
 * only losses are reported, and not even the connection. What else is noted meanwhile waits for the next turn, so that
 * a user who asks again at once cannot hold up the loop; but losses are always reported next. Posts come after the
 * calls. */
static void deliver_all(struct evlock_client *client) {
    enum client_state state = client->state;
    struct turn *turn = evl_client_turn(client);
    struct evlock *lock;
    struct call *call;
    size_t count = 0, news = 0, passes = PASSED_A_TURN;
    unsigned node = 0;
    bool rung = true;

    if (evl_turn_asked(turn))
        evl_posts_take(&client->posts);
    TAILQ_FOREACH (call, &client->locks.done, link)
        count++;
    STAILQ_FOREACH (lock, &client->locks.announced, notice)
        news++;
    while (deliver_goes_on(client, state)) {
        rung = evl_turn_ring(turn, evl_turn_now(turn));
        if ((lock = evl_locks_next(&client->locks.noticed))) {
            deliver_tell_notices(lock);
            evl_handle_unref(lock);
            continue;
        }
        if (!rung)
            break;
        if (news > 0 && (lock = evl_locks_next(&client->locks.announced))) {
            news--;
            deliver_tell_news(lock);
            evl_handle_unref(lock);
            continue;
        }
        if (deliver_question(client, &node)) {
            /* what was answered is written below */
        } else if ((count > 0 || (passes > 0 && client->locks.passed > 0)) &&
                   (call = TAILQ_FIRST(&client->locks.done))) {
            count -= count > 0;
            passes -= deliver_takes_pass(client, call) && passes > 0;
            TAILQ_REMOVE(&client->locks.done, call, link);
            deliver_tell_call(client, call);
        } else if (evl_posts_left(&client->posts)) {
            deliver_post(client);
        } else {
            break;
        }
        deliver_write_out(client, WRITE_SIZE);
    }
    if (rung && deliver_goes_on(client, CLIENT_OPEN))
        deliver_tell_connection(client);
}

void evl_deliver_at_end(struct turn *turn) {
    struct evlock_client *client = evl_client_of_turn(turn);

    evl_connections_end_broken(&evl_client_deployment(client)->connections);
    deliver_all(client);
    deliver_write_out(client, 0);
    evl_check(evl_client_check(client));
}

bool evl_deliver_has_some(const struct evlock_client *client) {
    return !TAILQ_EMPTY(&client->locks.done) || evl_posts_left(&client->posts) ||
           !STAILQ_EMPTY(&client->locks.noticed) || !STAILQ_EMPTY(&client->locks.announced) ||
           evl_deployment_asks(&client->locks.tenures.deployment) || deliver_has_news(client);
}
