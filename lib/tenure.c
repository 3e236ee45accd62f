/* A tenure: one lease on the wire; see tenure.h. */
#include "tenure.h"

#include <assert.h>
#include <string.h>

#include "client.h"
#include "lock.h"
#include "memory.h"
#include "queue.h"
#include "status.h"
#include "token.h"

static struct tenure *tenure_of(struct request *request) {
    char *first = (char *)(request - request->node);
    return (struct tenure *)(void *)(first - offsetof(struct tenure, requests));
}

static void take_out(struct tenure *tenure) {
    struct evlock_client *client = tenure->lock->client;

    if (tenure->ghost)
        TAILQ_REMOVE(&client->ghosts, tenure, link);
    else
        TAILQ_REMOVE(&client->tenures, tenure, link);
}

static size_t size_of(unsigned nodes, size_t token_len, bool queued) {
    return sizeof(struct tenure) + nodes * sizeof(struct request) + evl_lease_size(nodes) + token_len +
           (queued ? TICKET_SIZE : 0);
}

size_t evl_tenure_size(unsigned nodes) {
    return size_of(nodes, EVL_TOKEN_TEXT, false);
}

/* The pool is for those of the usual size. */
static struct tenure *allocate(struct evlock_client *client, size_t size) {
    if (size == client->leases.size)
        return evl_pool_alloc(&client->leases);
    return evl_alloc(size);
}

static void give_back(struct evlock_client *client, struct tenure *tenure, bool queued) {
    if (size_of(client->node_count, tenure->token_len, queued) == client->leases.size)
        evl_pool_free(&client->leases, tenure);
    else
        evl_free(tenure);
}

void evl_tenure_destroy(struct tenure *tenure) {
    struct evlock_client *client = tenure->lock->client;
    const struct lease *lease = lease_of(tenure);
    /* What was not let out of the queue has no ttl before its turn comes. */
    int64_t until = lease->queued && !lease->granted ? INT64_MAX : lease->until;

    assert(tenure->lock->tenure != tenure);
    if (lease->left && client->left_until < until)
        client->left_until = until;
    take_out(tenure);
    for (unsigned i = 0; i < client->node_count; i++)
        evl_node_withdraw(&client->nodes[i], &tenure->requests[i]);
    evl_alarm_set(&client->alarms, &tenure->alarm, INT64_MAX);
    evl_lock_unref(tenure->lock);
    give_back(client, tenure, lease_of(tenure)->queued);
}

static void set_alarm(struct tenure *tenure) {
    evl_alarm_set(&tenure->lock->client->alarms, &tenure->alarm, evl_lease_next(lease_of(tenure)));
}

/* What the node has just said, or what is said of it, is kept for a call that may end by its time. */
static void note_words(struct tenure *tenure) {
    if (!tenure->ghost)
        evl_lock_note_words(tenure->lock);
}

static void note_away(struct tenure *tenure, unsigned node, int status, int64_t now, struct lease_out *out) {
    note_words(tenure);
    evl_lease_node_away(lease_of(tenure), node, status, now, out);
}

/* A node that must not grant anything takes a release like any other. */
static bool gives_back(struct tenure *tenure, unsigned node, int trouble) {
    return trouble == EVLOCK_EEXCLUDED && lease_of(tenure)->slots[node].want == LEASE_RELEASE;
}

/* Sends what the lease wants sent to a node. One that is away, or must not grant anything now, may make it want
 * something else; a release waits for it. */
static void send_wanted(struct tenure *tenure, unsigned i, int64_t now, struct lease_out *out) {
    struct node *node = &tenure->lock->client->nodes[i];
    int trouble = evl_node_trouble(node, now);

    if (gives_back(tenure, i, trouble))
        trouble = EVLOCK_OK;
    if (trouble != EVLOCK_EEXCLUDED)
        evl_node_submit(node, &tenure->requests[i], now);
    if (trouble != EVLOCK_OK) {
        evl_error_set(node->error);
        note_away(tenure, i, trouble, now, out);
    }
}

/* Does what an input at `now` led to. What the handle makes of it may be inputs in turn. The tenure may be gone on
 * return. */
static void act(struct tenure *tenure, int64_t now, struct lease_out *out) {
    struct evlock *lock = tenure->lock;

    tenure->acting++;
    for (unsigned i = 0; out->wake; i = (i + 1) % lock->client->node_count) {
        if (!(out->wake & 1U << i))
            continue;
        out->wake &= ~(1U << i);
        send_wanted(tenure, i, now, out);
    }
    set_alarm(tenure);
    if (lease_of(tenure)->queued && lease_of(tenure)->state != LEASE_ACQUIRING)
        evl_queue_leave(tenure);
    if (out->events && !tenure->ghost)
        evl_lock_events(lock, out);
    if (--tenure->acting == 0 && tenure->ghost && evl_lease_over(lease_of(tenure)))
        evl_tenure_destroy(tenure);
}

/* --- From the node ------------------------------------------------------------------------------------------------ */

struct waiter evl_tenure_waiter(struct tenure *tenure) {
    if (!lease_of(tenure)->queued)
        return (struct waiter){.ticket = NULL};
    return (struct waiter){
        .channel = evl_queue_channel(tenure->lock->client),
        .ticket = ticket_text(tenure),
        .ttl = lease_of(tenure)->terms->ttl,
        .fenced = lease_of(tenure)->fenced,
    };
}

static bool take(struct request *request, int64_t now, struct command *command) {
    struct tenure *tenure = tenure_of(request);
    struct lease *lease = lease_of(tenure);
    struct bytes key = evl_lock_key(tenure->lock);
    struct bytes token = token_of(tenure);
    struct waiter waiter = evl_tenure_waiter(tenure);
    enum lease_command kind = evl_lease_take(lease, request->node, now);

    if (kind == LEASE_NOTHING)
        return false;
    if (kind == LEASE_ACQUIRE && lease->queued)
        evl_command_join(command, key, token, &waiter);
    else if (kind == LEASE_ACQUIRE && lease->fenced)
        evl_command_fenced(command, key, token, lease->terms->ttl, lease->nodes == 1);
    else if (kind == LEASE_RAISE)
        evl_command_raise(command, key, lease->fence);
    else if (kind == LEASE_RELEASE && tenure->lock->config->queue)
        evl_command_hand(command, key, token, &waiter);
    else
        evl_command_lease(command, kind, key, token,
                          kind == LEASE_ADD || kind == LEASE_REPLACE ? lease->extension : lease->terms->ttl);
    if (!tenure->acting) /* a node that was away takes it later than it was asked for */
        set_alarm(tenure);
    return true;
}

static bool join(struct request *request, int64_t now, struct renewal *ret) {
    struct tenure *tenure = tenure_of(request);
    struct lease *lease = lease_of(tenure);

    if (lease->slots[request->node].want != LEASE_RENEW || (ret->ttl && ret->ttl != lease->terms->ttl))
        return false;
    if (evl_lease_take(lease, request->node, now) == LEASE_NOTHING)
        return false;
    ret->ttl = lease->terms->ttl;
    ret->key = evl_lock_key(tenure->lock);
    ret->token = token_of(tenure);
    return true;
}

static bool answer(struct request *request, const struct reply *reply, int64_t now) {
    struct tenure *tenure = tenure_of(request);
    const struct lease_slot *slot = &lease_of(tenure)->slots[request->node];
    enum lease_command kind = slot->flying ? slot->flying : LEASE_RELEASE;
    struct lease_answer answer;
    struct lease_out out = {0};
    bool fits = evl_command_answer(kind, lease_of(tenure), reply, &answer);

    if (!fits) {
        answer.verdict = LEASE_UNKNOWN;
        answer.status = EVLOCK_EPROTOCOL;
    }
    if (kind == LEASE_RENEW || kind == LEASE_REARM)
        tenure->lock->client->stats.renewals += answer.verdict == LEASE_YES;
    if (kind != LEASE_RELEASE)
        tenure->lock->client->nodes[request->node].agreed = answer.verdict == LEASE_YES;
    note_words(tenure);
    if (answer.verdict == LEASE_QUEUED && !tenure->ghost && lease_of(tenure)->state == LEASE_ACQUIRING)
        evl_acquire_queued(tenure->lock, slot->sent, &answer);
    evl_lease_answer(lease_of(tenure), request->node, &answer, now, &out);
    act(tenure, now, &out);
    return fits;
}

static void away(struct request *request, int status, int64_t now) {
    struct tenure *tenure = tenure_of(request);
    struct lease_out out = {0};

    if (gives_back(tenure, request->node, status))
        return;
    note_away(tenure, request->node, status, now, &out);
    act(tenure, now, &out);
}

static const struct request_ops ops = {take, answer, join, away};

/* --- From the handle ---------------------------------------------------------------------------------------------- */

/* A random token begins with the name that the holder gives itself. */
static void draw_token(const struct config *config, char *token) {
    size_t len = config->holder ? strlen(config->holder) : 0;

    if (len) {
        memcpy(token, config->holder, len);
        token[len++] = EVL_TOKEN_HOLDER_END;
    }
    evl_token_generate(token + len);
}

static size_t drawn_len(const struct config *config) {
    return (config->holder ? strlen(config->holder) + 1 : 0) + EVL_TOKEN_TEXT;
}

static struct tenure *make(struct evlock *lock, struct bytes token, bool queued) {
    struct evlock_client *client = lock->client;
    size_t token_len = token.data ? token.len : drawn_len(lock->config);
    struct tenure *tenure = allocate(client, size_of(client->node_count, token_len, queued));

    if (!tenure)
        return NULL;
    tenure->lock = lock;
    tenure->alarm.kind = ALARM_TENURE;
    tenure->nodes = (uint8_t)client->node_count;
    tenure->token_len = (uint8_t)token_len;
    if (token.data)
        memcpy(token_text(tenure), token.data, token_len);
    else
        draw_token(lock->config, token_text(tenure));
    for (unsigned i = 0; i < client->node_count; i++) {
        tenure->requests[i].ops = &ops;
        tenure->requests[i].node = (uint8_t)i;
    }
    return tenure;
}

bool evl_tenure_begin(struct evlock *lock, const struct entry *entry) {
    struct evlock_client *client = lock->client;
    struct tenure *tenure = make(lock, entry->token, entry->queued);
    int64_t now = evl_client_now(client);
    struct lease_out out = {0};

    if (!tenure)
        return false;
    if (entry->queued && !evl_queue_enter(tenure)) {
        give_back(client, tenure, true);
        return false;
    }
    evl_lock_ref(lock);
    lock->tenure = tenure;
    TAILQ_INSERT_TAIL(&client->tenures, tenure, link);
    evl_lease_begin(lease_of(tenure), &lock->config->terms, client->node_count, entry->adopt, now, &out);
    lease_of(tenure)->fenced = entry->fenced;
    lease_of(tenure)->queued = entry->queued;
    lease_of(tenure)->own = entry->token.data != NULL;
    act(tenure, now, &out);
    return true;
}

void evl_tenure_look(struct tenure *tenure, int64_t now) {
    struct lease_out out = {0};

    evl_lease_look(lease_of(tenure), &out);
    act(tenure, now, &out);
}

void evl_tenure_granted(struct tenure *tenure, int64_t since, int64_t fence, int64_t now) {
    struct lease_out out = {0};

    evl_lease_granted(lease_of(tenure), since, fence, now, &out);
    act(tenure, now, &out);
}

void evl_tenure_extend(struct tenure *tenure, enum lease_command command, int64_t ttl) {
    const struct evlock_client *client = tenure->lock->client;
    int64_t now = evl_client_now(client);
    struct lease_out out = {0};

    evl_lease_extend(lease_of(tenure), command, ttl, now + client->config.command_timeout, &out);
    act(tenure, now, &out);
}

void evl_tenure_release(struct tenure *tenure) {
    const struct evlock_client *client = tenure->lock->client;
    int64_t now = evl_client_now(client);
    struct lease_out out = {0};

    if (lease_of(tenure)->state == LEASE_HELD)
        evl_lock_count_hold(tenure->lock, now);
    evl_lease_release(lease_of(tenure), now + client->config.command_timeout, &out);
    act(tenure, now, &out);
}

void evl_tenure_let_go(struct tenure *tenure) {
    struct evlock *lock = tenure->lock;

    assert(lock->tenure == tenure);
    lock->tenure = NULL;
    if (lease_of(tenure)->queued)
        evl_queue_leave(tenure);
    take_out(tenure);
    tenure->ghost = true;
    TAILQ_INSERT_TAIL(&lock->client->ghosts, tenure, link);
}

void evl_tenure_abandon(struct tenure *tenure) {
    int64_t now = evl_client_now(tenure->lock->client);
    struct lease_out out = {0};

    evl_tenure_let_go(tenure);
    evl_lease_abandon(lease_of(tenure), now, &out);
    act(tenure, now, &out);
}

void evl_tenure_export(struct tenure *tenure) {
    int64_t now = evl_client_now(tenure->lock->client);
    struct lease_out out = {0};

    evl_tenure_let_go(tenure);
    evl_lease_export(lease_of(tenure));
    act(tenure, now, &out);
}

/* --- From the client ---------------------------------------------------------------------------------------------- */

void evl_tenure_ring(struct tenure *tenure, int64_t now) {
    struct lease_out out = {0};

    evl_lease_time(lease_of(tenure), now, &out);
    act(tenure, now, &out);
}

void evl_tenure_node_back(struct tenure *tenure, unsigned node, bool settled, bool replaced, int64_t now) {
    struct lease_out out = {0};

    evl_lease_node_back(lease_of(tenure), node, settled, replaced, now, &out);
    act(tenure, now, &out);
}
