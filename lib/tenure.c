/* A tenure: one lease on the wire; see tenure.h. */
#include "tenure.h"

#include <assert.h>
#include <string.h>

#include "client.h"
#include "dialect.h"
#include "least.h"
#include "lock.h"
#include "memory.h"
#include "queue.h"
#include "status.h"
#include "token.h"

/* Its handle has no more use for it. */
static bool ghost(const struct tenure *tenure) {
    return tenure->lock->tenure != tenure;
}

static void take_out(struct tenure *tenure) {
    struct evlock_client *client = client_of(tenure->lock);

    for (unsigned i = 0; i < client->node_count; i++)
        if (client->nodes[i].telling == tenure)
            client->nodes[i].telling = TAILQ_NEXT(tenure, link);
    if (ghost(tenure))
        TAILQ_REMOVE(&client->ghosts, tenure, link);
    else
        TAILQ_REMOVE(&client->tenures, tenure, link);
}

static size_t size_of(unsigned nodes, size_t token_len, bool queued) {
    return sizeof(struct tenure) + evl_lease_size(nodes) + nodes * sizeof(struct request) + sizeof(struct tenure_rest) +
           token_len + (queued ? TICKET_SIZE : 0);
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
    if (size_of(client->node_count, rest_of(tenure)->token_len, queued) == client->leases.size)
        evl_pool_free(&client->leases, tenure);
    else
        evl_free(tenure);
}

void evl_tenure_destroy(struct tenure *tenure) {
    struct evlock_client *client = client_of(tenure->lock);

    assert(tenure->lock->tenure != tenure);
    client->left_until = max64(client->left_until, evl_lease_left_until(lease_of(tenure)));
    take_out(tenure);
    for (unsigned i = 0; i < client->node_count; i++)
        evl_node_withdraw(&client->nodes[i], &requests_of(tenure)[i]);
    evl_alarm_set(&client->alarms, &tenure->alarm, INT64_MAX);
    evl_lock_unref(tenure->lock);
    give_back(client, tenure, evl_lease_queued(lease_of(tenure)));
}

/* By way of its terms, which are a config's: there may be so many handles that theirs is in no cache. */
static struct evlock_client *client_for(struct tenure *tenure) {
    const char *terms = (const char *)evl_lease_terms(lease_of(tenure));

    return ((const struct config *)(const void *)(terms - offsetof(struct config, terms)))->client;
}

static void set_alarm(struct tenure *tenure) {
    struct evlock_client *client = client_for(tenure);
    int64_t at = evl_lease_next(lease_of(tenure));

    if (at < client->patient)
        at = evl_lease_next_patiently(lease_of(tenure), client->patient);
    evl_alarm_set(&client->alarms, &tenure->alarm, at);
}

/* What the node has just said, or what is said of it, is kept for a call that may end by its time. */
static void note_words(struct tenure *tenure) {
    if (evl_lease_owes_answer(lease_of(tenure)) && !ghost(tenure))
        evl_lock_note_words(tenure->lock);
}

static void note_away(struct tenure *tenure, unsigned node, int status, int64_t now, struct lease_out *out) {
    note_words(tenure);
    evl_lease_node_away(lease_of(tenure), node, status, now, out);
}

/* A node that must not grant anything takes a release like any other. */
static bool gives_back(struct tenure *tenure, unsigned node, int trouble) {
    return trouble == EVLOCK_EEXCLUDED && evl_lease_wanted(lease_of(tenure), node) == LEASE_RELEASE;
}

/* Sends what the lease wants sent to a node. One that is away, or must not grant anything now, may make it want
 * something else; a release waits for it. */
static void send_wanted(struct tenure *tenure, unsigned i, int64_t now, struct lease_out *out) {
    struct node *node = &client_for(tenure)->nodes[i];
    int trouble = evl_node_trouble(node, now);

    if (gives_back(tenure, i, trouble))
        trouble = EVLOCK_OK;
    if (trouble != EVLOCK_EEXCLUDED)
        evl_node_submit(node, &requests_of(tenure)[i], now);
    if (trouble != EVLOCK_OK) {
        evl_error_set(node->error);
        note_away(tenure, i, trouble, now, out);
    }
}

/* Does what an input at `now` led to. What the handle makes of it may be inputs in turn. The tenure may be gone on
 * return. */
static void act(struct tenure *tenure, int64_t now, struct lease_out *out) {
    rest_of(tenure)->acting++;
    while (out->wake) {
        unsigned node = (unsigned)__builtin_ctz(out->wake);
        out->wake &= ~(1U << node);
        send_wanted(tenure, node, now, out);
    }
    set_alarm(tenure);
    if (evl_lease_queued(lease_of(tenure)) && !evl_lease_in_line(lease_of(tenure)))
        evl_queue_leave(tenure);
    if (out->events && !ghost(tenure)) {
        evl_lock_events(tenure->lock, out);
        /* Or else it would stay for as long as its client. */
        assert(!ghost(tenure) || evl_lease_state(lease_of(tenure)) == LEASE_UNDOING ||
               evl_lease_state(lease_of(tenure)) == LEASE_ENDED);
    }
    if (--rest_of(tenure)->acting == 0 && evl_lease_over(lease_of(tenure)) && ghost(tenure))
        evl_tenure_destroy(tenure);
}

/* --- From the node ------------------------------------------------------------------------------------------------ */

struct waiter evl_tenure_waiter(struct tenure *tenure) {
    if (!evl_lease_queued(lease_of(tenure)))
        return (struct waiter){.ticket = NULL};
    return (struct waiter){
        .channel = evl_queue_channel(client_of(tenure->lock)),
        .ticket = ticket_text(tenure),
        .ttl = evl_lease_terms(lease_of(tenure))->ttl,
        .fenced = evl_lease_fenced(lease_of(tenure)),
    };
}

static const struct dialect *dialect_of(struct tenure *tenure) {
    const struct lease *lease = lease_of(tenure);

    return evl_dialect(tenure->lock->config->queue, evl_lease_queued(lease), evl_lease_fenced(lease));
}

static bool take(struct request *request, int64_t now, struct command *command) {
    struct tenure *tenure = owner_of(request);
    struct lease *lease = lease_of(tenure);
    enum lease_command kind = evl_lease_take(lease, request->node, now);

    if (kind == LEASE_NOTHING)
        return false;
    const struct subject subject = {
        .key = evl_lock_key(tenure->lock),
        .token = token_of(tenure),
        .ttl = evl_lease_ttl(lease, kind, now),
        .fence = evl_lease_fence(lease),
        .alone = evl_lease_nodes(lease) == 1,
        .waiter = evl_tenure_waiter(tenure),
    };
    evl_command_write(command, &dialect_of(tenure)->commands[kind]->form, &subject);
    if (!rest_of(tenure)->acting) /* a node that was away takes it later than it was asked for */
        set_alarm(tenure);
    return true;
}

static bool join(struct request *request, int64_t now, struct renewal *ret) {
    struct tenure *tenure = owner_of(request);
    struct lease *lease = lease_of(tenure);
    int64_t ttl = evl_lease_terms(lease)->ttl;

    if (evl_lease_wanted(lease, request->node) != LEASE_RENEW || (ret->ttl && ret->ttl != ttl))
        return false;
    if (evl_lease_take(lease, request->node, now) == LEASE_NOTHING)
        return false;
    ret->ttl = ttl;
    ret->key = evl_lock_key(tenure->lock);
    ret->token = token_of(tenure);
    return true;
}

static bool answer(struct request *request, const struct reply *reply, int64_t now) {
    struct tenure *tenure = owner_of(request);
    enum lease_command kind = evl_lease_unanswered(lease_of(tenure), request->node);
    struct reading reading;
    struct lease_answer *answer = &reading.answer;
    struct lease_out out = {0};
    bool fits = evl_dialect_read(dialect_of(tenure), kind, reply, evl_lease_terms(lease_of(tenure))->ttl, &reading);

    if (reading.words)
        evl_error_set(reading.words);
    if (!fits) {
        answer->verdict = LEASE_UNKNOWN;
        answer->status = EVLOCK_EPROTOCOL;
    }
    if (kind == LEASE_RENEW || kind == LEASE_REARM)
        client_for(tenure)->stats.renewals += answer->verdict == LEASE_YES;
    if (kind != LEASE_RELEASE)
        client_for(tenure)->nodes[request->node].agreed = answer->verdict == LEASE_YES;
    note_words(tenure);
    if (answer->verdict == LEASE_QUEUED && !ghost(tenure) && evl_lease_in_line(lease_of(tenure)))
        evl_acquire_queued(tenure->lock, evl_lease_sent(lease_of(tenure), request->node), answer);
    evl_lease_answer(lease_of(tenure), request->node, answer, now, &out);
    act(tenure, now, &out);
    return fits;
}

static void away(struct request *request, int status, int64_t now) {
    struct tenure *tenure = owner_of(request);
    struct lease_out out = {0};

    if (gives_back(tenure, request->node, status))
        return;
    note_away(tenure, request->node, status, now, &out);
    act(tenure, now, &out);
}

const struct request_ops evl_lease_requests = {take, answer, join, away};

/* --- From the handle ---------------------------------------------------------------------------------------------- */

/* A random token begins with the name that the holder gives itself. */
static bool draw_token(struct evlock_client *client, const struct config *config, char *token) {
    size_t len = config->holder ? strlen(config->holder) : 0;

    if (len) {
        memcpy(token, config->holder, len);
        token[len++] = EVL_TOKEN_HOLDER_END;
    }
    return evl_token_generate(&client->entropy, token + len);
}

static size_t drawn_len(const struct config *config) {
    return (config->holder ? strlen(config->holder) + 1 : 0) + EVL_TOKEN_TEXT;
}

/* Its lease is begun, and nothing more. `*ret` is set on success only; else EVLOCK_ENOMEM or EVLOCK_ESYSTEM. */
static int make(struct tenure **ret, struct evlock *lock, const struct entry *entry, int64_t now,
                struct lease_out *out) {
    struct evlock_client *client = client_of(lock);
    size_t token_len = entry->token.data ? entry->token.len : drawn_len(lock->config);
    struct tenure *tenure = allocate(client, size_of(client->node_count, token_len, entry->lease.queued));

    assert(entry->lease.own == (entry->token.data != NULL));
    if (!tenure)
        return evl_fail(EVLOCK_ENOMEM, "no memory for a lease");
    tenure->lock = lock;
    tenure->alarm.kind = ALARM_TENURE;
    evl_lease_begin(lease_of(tenure), &lock->config->terms, client->node_count, &entry->lease, now, out);
    for (unsigned i = 0; i < client->node_count; i++)
        evl_request_init(&requests_of(tenure)[i], tenure, REQUEST_LEASE, i);
    rest_of(tenure)->token_len = (uint8_t)token_len;
    if (entry->token.data)
        memcpy(rest_of(tenure)->token, entry->token.data, token_len);
    else if (!draw_token(client, lock->config, rest_of(tenure)->token)) {
        give_back(client, tenure, entry->lease.queued);
        return evl_fail(EVLOCK_ESYSTEM, "the system refuses random bytes for a token");
    }
    *ret = tenure;
    return EVLOCK_OK;
}

int evl_tenure_begin(struct evlock *lock, const struct entry *entry, int64_t now) {
    struct evlock_client *client = client_of(lock);
    struct lease_out out = {0};
    struct tenure *tenure;
    int status = make(&tenure, lock, entry, now, &out);

    if (status != EVLOCK_OK)
        return status;
    if (entry->lease.queued && (status = evl_queue_enter(tenure)) != EVLOCK_OK) {
        give_back(client, tenure, true);
        return status;
    }
    evl_lock_ref(lock);
    lock->tenure = tenure;
    TAILQ_INSERT_TAIL(&client->tenures, tenure, link);
    act(tenure, now, &out);
    return EVLOCK_OK;
}

bool evl_tenure_watch(struct evlock *lock, struct bytes token, unsigned node) {
    struct evlock_client *client = client_of(lock);
    struct entry entry = {token, {.own = true, .watched = (uint16_t)(1U << node)}};
    struct lease_out none = {0};
    struct tenure *tenure;

    if (make(&tenure, lock, &entry, evl_client_now(client), &none) != EVLOCK_OK)
        return false;
    evl_lock_ref(lock);
    TAILQ_INSERT_TAIL(&client->ghosts, tenure, link);
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
    const struct evlock_client *client = client_of(tenure->lock);
    int64_t now = evl_client_now(client);
    struct lease_out out = {0};

    evl_lease_extend(lease_of(tenure), command, ttl, now + client->config.command_timeout, &out);
    act(tenure, now, &out);
}

void evl_tenure_release(struct tenure *tenure) {
    const struct evlock_client *client = client_of(tenure->lock);
    int64_t now = evl_client_now(client);
    struct lease_out out = {0};

    if (evl_lease_state(lease_of(tenure)) == LEASE_HELD)
        evl_lock_count_hold(tenure->lock, now);
    evl_lease_release(lease_of(tenure), now + client->config.command_timeout, &out);
    act(tenure, now, &out);
}

void evl_tenure_let_go(struct tenure *tenure) {
    struct evlock *lock = tenure->lock;

    assert(lock->tenure == tenure);
    if (evl_lease_queued(lease_of(tenure)))
        evl_queue_leave(tenure);
    take_out(tenure);
    lock->tenure = NULL;
    TAILQ_INSERT_TAIL(&client_of(lock)->ghosts, tenure, link);
}

void evl_tenure_abandon(struct tenure *tenure) {
    int64_t now = evl_client_now(client_of(tenure->lock));
    struct lease_out out = {0};

    evl_tenure_let_go(tenure);
    evl_lease_abandon(lease_of(tenure), now, &out);
    act(tenure, now, &out);
}

void evl_tenure_export(struct tenure *tenure) {
    int64_t now = evl_client_now(client_of(tenure->lock));
    struct lease_out out = {0};

    evl_tenure_let_go(tenure);
    evl_lease_export(lease_of(tenure));
    act(tenure, now, &out);
}

/* --- From the client ---------------------------------------------------------------------------------------------- */

void evl_tenure_ring(struct tenure *tenure, int64_t now) {
    struct lease_out out = {0};

    prefetch(tenure->lock, 0, sizeof(struct evlock) + CACHE_LINE); /* for its key, if there is anything to send */
    evl_lease_time(lease_of(tenure), now, client_for(tenure)->heard, &out);
    act(tenure, now, &out);
}

void evl_tenure_node_back(struct tenure *tenure, unsigned node, bool settled, bool replaced, int64_t now) {
    struct lease_out out = {0};

    if (requests_of(tenure)[node].waiting) /* in vain, if the node must not grant anything now */
        send_wanted(tenure, node, now, &out);
    evl_lease_node_back(lease_of(tenure), node, settled, replaced, now, &out);
    act(tenure, now, &out);
}
