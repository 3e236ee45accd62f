/* The ends of a client; see close.h. */
#include "close.h"

#include "check.h"
#include "deliver.h"
#include "held.h"
#include "lock.h"
#include "memory.h"
#include "queue.h"
#include "run.h"

/* The memory of a client goes, and a close is reported. */
static void close_free(struct evlock_client *client) {
    evlock_closed_cb closed = client->closed;
    void *arg = client->closed_arg;
    struct turn *turn = evl_client_turn(client);
    bool left = client->late || evl_turn_now(turn) < client->locks.tenures.left_until;
    int status = client->state == CLIENT_FREED ? EVLOCK_ECANCELLED : left ? EVLOCK_EUNREACHABLE : EVLOCK_OK;
    bool forked = evl_turn_forked(turn);

    evl_turn_free(turn);
    evl_queue_free(&client->locks);
    evl_locks_free(&client->locks);
    evl_tenures_free(&client->locks.tenures);
    evl_posts_free(&client->posts);
    evl_deployment_free(evl_client_deployment(client));
    evl_free(client);
    if (closed && !forked)
        evl_deliver_closed(closed, status, arg);
}

/* Nothing is sent from here on. */
static void close_stop(struct evlock_client *client, bool forked) {
    struct tenures *tenures = &client->locks.tenures;
    struct tenure *tenure;

    while ((tenure = evl_tenures_first(&tenures->rounds.live)))
        evl_tenure_drop(tenure);
    evl_deployment_stop(&tenures->deployment, forked);
    while ((tenure = evl_tenures_first(&tenures->rounds.ghosts)))
        evl_tenure_free(tenure);
    evl_locks_drop_handles(&client->locks);
}

/* Each handle that has anything under way, which ends by that. */
static void close_drop_all(struct evlock_client *client, void (*drop)(struct evlock *lock)) {
    struct tenure *tenure;
    struct call *call;

    while ((tenure = evl_tenures_first(&client->locks.tenures.rounds.live)))
        drop(tenure->lock);
    while ((call = TAILQ_FIRST(&client->locks.pending)) || (call = TAILQ_FIRST(&client->locks.running)))
        drop(call->lock);
}

/* The same, but for releases and the bodies of runs, which are waited for. */
static void close_drop_but_waited_for(struct evlock_client *client) {
    struct tenure *tenure, *next_tenure;
    struct call *call, *next_call;
    struct evlock *lock;

    STAILQ_FOREACH (lock, &client->locks.noticed, notice)
        if (!evl_call_pending(lock, CALL_RUN))
            evl_lock_drop_notices(lock);
    for (tenure = evl_tenures_first(&client->locks.tenures.rounds.live); tenure; tenure = next_tenure) {
        next_tenure = evl_tenures_next(tenure);
        evl_lock_drop_but_waited_for(tenure->lock);
    }
    for (call = TAILQ_FIRST(&client->locks.pending); call; call = next_call) {
        next_call = TAILQ_NEXT(call, link);
        if (call->sort->kind != CALL_RELEASE)
            evl_call_cancel(call);
    }
}

/* A forked child's copy: memory goes, nobody is told, and the loop is not touched. Inside a callback, the client itself
 * goes when that has returned. */
static void close_free_forked(struct evlock_client *client) {
    struct turn *turn = evl_client_turn(client);
    struct call *call;

    close_drop_all(client, evl_lock_drop_forked);
    close_stop(client, true);
    while ((call = TAILQ_FIRST(&client->locks.done))) {
        TAILQ_REMOVE(&client->locks.done, call, link);
        evl_run_free_handle(call);
        evl_call_free(call);
    }
    evl_turn_free(turn);
    client->state = CLIENT_FREED;
    client->locks.open = false;
    if (turn->depth == 0)
        close_free(client);
}

static bool close_all_told(const struct evlock_client *client) {
    return TAILQ_EMPTY(&client->locks.done) && !evl_posts_left(&client->posts);
}

static bool close_all_settled(const struct evlock_client *client) {
    const struct rounds *rounds = &client->locks.tenures.rounds;

    return TAILQ_EMPTY(&rounds->live) && TAILQ_EMPTY(&rounds->ghosts);
}

bool evl_close_is_over(const struct evlock_client *client) {
    switch (client->state) {
    case CLIENT_OPEN:
        return false;
    case CLIENT_CLOSING:
        return close_all_told(client) && TAILQ_EMPTY(&client->locks.running) &&
               (client->late || close_all_settled(client));
    case CLIENT_FREED:
        return close_all_told(client);
    }
    return false;
}

bool evl_close_moves_on(const struct evlock_client *client) {
    return client->state == CLIENT_CLOSING && !client->releasing && TAILQ_EMPTY(&client->locks.running);
}

/* What is being released and undone is waited for from here on. */
static void close_await_releases(struct evlock_client *client) {
    client->releasing = true;
    client->close_by = evl_turn_now(evl_client_turn(client)) + evl_client_deployment(client)->config.command_timeout;
    evl_turn_wake(evl_client_turn(client), &client->close_alarm.alarm, client->close_by);
}

/* Bodies may take as long as the client's options say. */
static void close_await_bodies(struct evlock_client *client) {
    int64_t wait = evl_client_deployment(client)->config.close_wait;

    if (wait != INT64_MAX)
        evl_turn_wake(evl_client_turn(client), &client->close_alarm.alarm,
                      evl_turn_now(evl_client_turn(client)) + wait);
}

/* A post may have ended the last body before its thread has let go of the client. It is looked at again soon, and not
 * waited for here: that thread may need this processor. */
static bool close_awaits_posters(struct evlock_client *client) {
    static const int64_t soon = 1000;
    bool waits = client->state == CLIENT_CLOSING && evl_posts_adding(&client->posts);

    if (waits)
        evl_turn_wake(evl_client_turn(client), &client->close_alarm.alarm,
                      evl_turn_now(evl_client_turn(client)) + soon);
    return waits;
}

bool evl_close_left(struct turn *turn) {
    struct evlock_client *client = evl_client_of_turn(turn);

    if (evl_close_moves_on(client) && !evl_turn_forked(turn))
        close_await_releases(client);
    if (!evl_close_is_over(client) || (client->state == CLIENT_CLOSING && evl_turn_forked(turn)))
        return false;
    evl_posts_close(&client->posts); /* not before: a body that another thread is at may end by a post */
    if (evl_posts_left(&client->posts) || close_awaits_posters(client))
        return false;
    if (client->state == CLIENT_CLOSING)
        close_stop(client, false);
    close_free(client);
    return true;
}

/* Each release that was not confirmed in time says so. */
static void close_end_releases(struct evlock_client *client) {
    struct call *call, *next;

    for (call = TAILQ_FIRST(&client->locks.pending); call; call = next) {
        next = TAILQ_NEXT(call, link);
        if (call->sort->kind == CALL_RELEASE)
            evl_held_end(call, (struct trouble){EVLOCK_EUNREACHABLE, ""});
    }
}

/* Bodies that go on are at work without their locks from here on. */
static void close_end_bodies(struct evlock_client *client) {
    struct call *call;

    while ((call = TAILQ_FIRST(&client->locks.running)))
        evl_lock_drop(call->lock);
    close_await_releases(client);
}

void evl_close_ring(struct other_alarm *other, int64_t now) {
    struct evlock_client *client = EVL_OWNER(struct evlock_client, close_alarm, other);
    int64_t begun = client->close_by - evl_client_deployment(client)->config.command_timeout;

    (void)now;
    assert(client->state == CLIENT_CLOSING);
    if (!client->releasing) {
        close_end_bodies(client);
        return;
    }
    if (evl_turn_puts_off(evl_client_turn(client), &other->alarm, begun, client->close_by))
        return;
    client->late = !close_all_settled(client);
    close_end_releases(client);
    close_drop_all(client, evl_lock_drop);
}

int evlock_client_close(evlock_client *client, evlock_closed_cb cb, void *arg) {
    struct trouble trouble;

    if (!client)
        return evl_fail(EVLOCK_EINVAL, "the client is NULL");
    trouble = evl_locks_validate(&client->locks);
    if (trouble.status != EVLOCK_OK)
        return evl_report(trouble);
    client->state = CLIENT_CLOSING;
    client->locks.open = false;
    client->closed = cb;
    client->closed_arg = arg;
    close_drop_but_waited_for(client);
    if (TAILQ_EMPTY(&client->locks.running))
        close_await_releases(client);
    else
        close_await_bodies(client);
    evl_check(evl_client_check(client));
    evl_turn_rearm(evl_client_turn(client));
    return evl_report(evl_no_trouble);
}

void evlock_client_free(evlock_client *client) {
    struct turn *turn;

    if (!client || !evl_turn_may_free(evl_client_turn(client)) || client->state == CLIENT_FREED)
        return;
    turn = evl_client_turn(client);
    if (evl_turn_forked(turn)) {
        close_free_forked(client);
        return;
    }
    client->locks.open = false;            /* nothing is passed on to who goes too */
    evl_queue_stop(&client->locks, false); /* first, so that what is given back is not granted to those who go too */
    evl_deployment_part(evl_client_deployment(client));
    close_drop_all(client, evl_lock_drop);
    evl_deployment_flush(evl_client_deployment(client));
    client->state = CLIENT_FREED;
    close_stop(client, false);
    evl_turn_wake(turn, &client->close_alarm.alarm, INT64_MAX);
    evl_posts_close(&client->posts);
    if (turn->depth == 0 && close_all_told(client) && !client->closed)
        close_free(client);
    else
        evl_turn_rearm(turn);
}
