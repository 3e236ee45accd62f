/* A tenure: one lease on the wire; see tenure.h. */
#include "tenure.h"

#include <string.h>

#include "check.h"
#include "dialect.h"
#include "memory.h"
#include "minmax.h"
#include "prefetch.h"
#include "stats.h"
#include "token.h"

/* By way of its terms, which are a config's: there may be so many handles that theirs is in no cache. */
static struct tenures *tenure_family_of(struct tenure *tenure) {
    const struct lease_terms *terms = evl_lease_terms(evl_tenure_lease(tenure));

    return evl_tenures_of(evl_config_of_terms(terms)->deployment);
}

static struct turn *tenure_turn_of(struct tenure *tenure) {
    return &tenure_family_of(tenure)->deployment.turn;
}

static int64_t tenure_now_of(struct tenure *tenure) {
    return evl_turn_now(tenure_turn_of(tenure));
}

static bool tenure_is_in_cluster(struct tenure *tenure) {
    return tenure_family_of(tenure)->deployment.cluster;
}

/* Where its request goes. */
static struct node *tenure_node_for(struct tenure *tenure, const struct request *request) {
    return tenure_family_of(tenure)->deployment.nodes[request->node];
}

/* Where the command goes by which this vote is sought. */
static struct node *tenure_node_of(struct tenure *tenure, unsigned vote) {
    return tenure_node_for(tenure, evl_tenure_request(tenure, vote));
}

static size_t tenure_size_of(unsigned nodes, size_t token_len, bool queued) {
    return sizeof(struct tenure) + evl_lease_size(nodes) + nodes * sizeof(struct request) + sizeof(struct tenure_rest) +
           token_len + (queued ? TICKET_SIZE : 0);
}

/* The pool is for those with a token of evlock's own, without a holder's name. */
static struct tenure *tenure_allocate(struct tenures *family, size_t size) {
    if (size == family->pool.size)
        return evl_pool_alloc(&family->pool);
    return evl_alloc(size);
}

static void tenure_free_block(struct tenures *family, struct tenure *tenure, bool queued) {
    if (tenure_size_of(family->deployment.votes, evl_tenure_rest(tenure)->token_len, queued) == family->pool.size)
        evl_pool_free(&family->pool, tenure);
    else
        evl_free(tenure);
}

void evl_tenure_free(struct tenure *tenure) {
    struct tenures *family = tenure_family_of(tenure);

    assert(tenure->lock->tenure != tenure);
    family->left_until = evl_max(family->left_until, evl_lease_left_until(evl_tenure_lease(tenure)));
    evl_rounds_remove(&family->rounds, &tenure->member, true);
    for (unsigned i = 0; i < family->deployment.votes; i++)
        evl_pipe_withdraw(&tenure_node_of(tenure, i)->pipe, evl_tenure_request(tenure, i));
    evl_turn_wake(&family->deployment.turn, &tenure->alarm, INT64_MAX);
    evl_handle_unref(tenure->lock);
    tenure_free_block(family, tenure, evl_lease_queued(evl_tenure_lease(tenure)));
}

static void tenure_withdraw_ticket(struct tenure *tenure) {
    evl_tickets_withdraw(&tenure_family_of(tenure)->tickets, tenure, evl_tenure_ticket(tenure));
}

/* Where nothing but an answer is overdue, the alarm is put off until more has been heard, or something else is due. */
static void tenure_set_alarm(struct tenure *tenure) {
    struct turn *turn = tenure_turn_of(tenure);
    int64_t exact, at = evl_lease_next(evl_tenure_lease(tenure));

    if (at <= turn->looked && (exact = evl_lease_next_exact(evl_tenure_lease(tenure))) > turn->looked)
        evl_turn_put_off(turn, &tenure->alarm, 0, exact);
    else
        evl_turn_wake(turn, &tenure->alarm, at);
}

/* What the node has just said, or what is said of it, is kept for a call that may end by its time. */
static void tenure_note_words(struct tenure *tenure, const char *words) {
    if (evl_lease_owes_answer(evl_tenure_lease(tenure)) && !evl_tenure_is_ghost(tenure))
        tenure_family_of(tenure)->hooks->spoken(tenure->lock, words);
}

static void tenure_note_away(struct tenure *tenure, unsigned node, struct trouble why, int64_t now,
                             struct lease_out *out) {
    tenure_note_words(tenure, why.words);
    if (evl_lease_in_line(evl_tenure_lease(tenure)) && !evl_tenure_is_ghost(tenure))
        tenure_family_of(tenure)->hooks->away(tenure->lock, why);
    evl_lease_node_away(evl_tenure_lease(tenure), node, why.status, now, out);
}

/* A node that must not grant anything takes a release like any other. The only one also takes what keeps a lease. */
static bool tenure_may_send(struct tenure *tenure, unsigned vote, int64_t now) {
    enum lease_command wanted = evl_lease_wanted(evl_tenure_lease(tenure), vote);

    if (wanted == LEASE_RELEASE)
        return true;
    return wanted != LEASE_ACQUIRE && wanted != LEASE_ADOPT && evl_node_restores(tenure_node_of(tenure, vote), now);
}

/* How it is renewed there: by the server's own command, if it has one. Nobody else can have a lock that this node may
 * have forgotten, so its renewal sets it again. */
static enum lease_command tenure_renewal(struct tenure *tenure, const struct node *node, int64_t now) {
    if (evl_node_restores(node, now))
        return LEASE_RESTORE;
    if (now >= node->pipe.login.server.native.refreshes_from && evl_lease_may_refresh(evl_tenure_lease(tenure)))
        return LEASE_REFRESH;
    return LEASE_RENEW;
}

/* A node that does not serve may make the lease want something else; a release waits for it. `*words` become the node's
 * if it is of no use. Never inline, so that most sendings need no room on the stack for it. */
__attribute__((noinline)) static void tenure_send_in_trouble(struct tenure *tenure, unsigned i, struct node *node,
                                                             int64_t now, struct lease_out *out, const char **words) {
    struct request *request = evl_tenure_request(tenure, i);
    struct trouble trouble = evl_node_trouble(node, now);

    if (trouble.status == EVLOCK_EEXCLUDED && tenure_may_send(tenure, i, now))
        trouble.status = EVLOCK_OK;
    if (trouble.status != EVLOCK_EEXCLUDED)
        evl_pipe_submit(&node->pipe, request, now);
    if (trouble.status != EVLOCK_OK) {
        *words = trouble.words;
        tenure_note_away(tenure, i, trouble, now, out);
    }
}

/* Sends what the lease wants sent to a node, which may make it want something else. */
static void tenure_send_wanted(struct tenure *tenure, unsigned i, int64_t now, struct lease_out *out,
                               const char **words) {
    struct request *request = evl_tenure_request(tenure, i);
    struct node *node =
        evl_deployment_route(&tenure_family_of(tenure)->deployment, request, evl_handle_key(tenure->lock));

    if (evl_node_serves(node, now))
        evl_pipe_submit(&node->pipe, request, now);
    else
        tenure_send_in_trouble(tenure, i, node, now, out, words);
}

/* Does what an input at `now` led to. What the handle makes of it may be inputs in turn. `words` were said with the
 * input. The tenure may be gone on return. */
static void tenure_act(struct tenure *tenure, int64_t now, struct lease_out *out, const char *words) {
    evl_tenure_rest(tenure)->acting++;
    while (out->wake) {
        unsigned node = (unsigned)__builtin_ctz(out->wake);
        out->wake &= ~(1U << node);
        tenure_send_wanted(tenure, node, now, out, &words);
    }
    tenure_set_alarm(tenure);
    if (evl_lease_queued(evl_tenure_lease(tenure)) && !evl_lease_in_line(evl_tenure_lease(tenure)))
        tenure_withdraw_ticket(tenure);
    if (out->events && !evl_tenure_is_ghost(tenure)) {
        tenure_family_of(tenure)->hooks->happened(tenure->lock, out, words);
        /* Or else it would stay for as long as its client. */
        assert(!evl_tenure_is_ghost(tenure) || evl_lease_state(evl_tenure_lease(tenure)) == LEASE_UNDOING ||
               evl_lease_state(evl_tenure_lease(tenure)) == LEASE_ENDED);
    }
    if (--evl_tenure_rest(tenure)->acting > 0)
        return;
    if (evl_tenure_is_ghost(tenure) && evl_lease_over(evl_tenure_lease(tenure)))
        evl_tenure_free(tenure);
    else
        evl_check(evl_tenure_check(tenure));
}

/* --- From the node ------------------------------------------------------------------------------------------------ */

bool evl_tenure_flies(struct tenure *tenure) {
    for (unsigned i = 0; i < evl_lease_nodes(evl_tenure_lease(tenure)); i++)
        if (evl_tenure_request(tenure, i)->flying)
            return true;
    return false;
}

/* Each master of a cluster tells of grants on a channel of its own, also while nobody listens to it yet: in the queue,
 * the waiter is known by that. */
struct waiter evl_tenure_waiter(struct tenure *tenure) {
    struct tenures *family = tenure_family_of(tenure);

    if (!evl_lease_queued(evl_tenure_lease(tenure)))
        return (struct waiter){.ticket = NULL};
    return (struct waiter){
        .channel = family->tickets.channel,
        .ticket = evl_tenure_ticket(tenure),
        .ttl = evl_lease_terms(evl_tenure_lease(tenure))->ttl,
        .fenced = evl_lease_fenced(evl_tenure_lease(tenure)),
        .master = family->deployment.cluster ? evl_tenure_request(tenure, 0)->node : 0,
    };
}

/* In line, a fence is drawn for whoever the lock is handed on to. */
static const struct dialect *tenure_dialect_of(struct tenure *tenure) {
    const struct lease *lease = evl_tenure_lease(tenure);
    enum taking taking = evl_lease_fenced(lease) ? TAKE_FENCED : TAKE_AT_ONCE;

    return evl_dialect(tenure->lock->config->kind, evl_lease_queued(lease) ? TAKE_IN_LINE : taking);
}

/* The form of a command that was just taken. */
static const struct form *tenure_form(struct tenure *tenure, struct request *request, const struct node *node,
                                      enum lease_command kind) {
    const struct dialect *dialect = tenure_dialect_of(tenure);
    const struct form *form;

    if (kind != LEASE_RELEASE)
        return &dialect->commands[kind]->form;
    if (evl_tenure_rest(tenure)->owing.plainly)
        dialect = evl_dialect(LOCK_PLAIN, TAKE_AT_ONCE);
    form = evl_native_release(&node->pipe.login.server.native, dialect);
    request->native = !form->script;
    return form;
}

static bool tenure_take(struct request *request, int64_t now, struct command *command) {
    struct tenure *tenure = evl_request_owner(request);
    struct lease *lease = evl_tenure_lease(tenure);
    struct node *node = tenure_node_for(tenure, request);
    bool renews = evl_lease_wanted(lease, request->vote) == LEASE_RENEW;
    enum lease_command renewal = renews ? tenure_renewal(tenure, node, now) : LEASE_RENEW;
    enum lease_command kind = evl_lease_take(lease, request->vote, renewal, now);

    if (kind == LEASE_NOTHING)
        return false;
    if (kind != LEASE_RELEASE)
        evl_login_confirm(&node->pipe.login, now);
    const struct form *form = tenure_form(tenure, request, node, kind);
    const struct subject subject = {
        .key = evl_handle_key(tenure->lock),
        .token = evl_tenure_token(tenure),
        .ttl = evl_lease_ttl(lease, kind, now),
        .fence = evl_lease_last_fence(lease),
        .spare = evl_lease_spare(lease),
        .alone = evl_lease_nodes(lease) == 1,
        .clock = evl_login_clock(&node->pipe.login, form, now),
        .waiter = evl_tenure_waiter(tenure),
    };
    evl_command_write(command, form, &subject);
    if (!evl_tenure_rest(tenure)->acting) /* a node that was away takes it later than it was asked for */
        tenure_set_alarm(tenure);
    return true;
}

static bool tenure_join(struct request *request, int64_t now, struct renewal *ret) {
    struct tenure *tenure = evl_request_owner(request);
    struct lease *lease = evl_tenure_lease(tenure);
    const struct node *node = tenure_node_for(tenure, request);
    int64_t ttl = evl_lease_terms(lease)->ttl;

    if (evl_lease_wanted(lease, request->vote) != LEASE_RENEW || (ret->ttl && ret->ttl != ttl) ||
        tenure_renewal(tenure, node, now) != LEASE_RENEW)
        return false;
    if (evl_lease_take(lease, request->vote, LEASE_RENEW, now) == LEASE_NOTHING)
        return false;
    evl_login_confirm(&tenure_node_for(tenure, request)->pipe.login, now);
    assert(evl_dialect_renews_plainly(tenure_dialect_of(tenure)));
    ret->ttl = ttl;
    ret->key = evl_handle_key(tenure->lock);
    ret->token = evl_tenure_token(tenure);
    return true;
}

static bool tenure_renews(struct request *request, struct bytes *ret_key) {
    struct tenure *tenure = evl_request_owner(request);

    *ret_key = evl_handle_key(tenure->lock);
    return evl_lease_wanted(evl_tenure_lease(tenure), request->vote) == LEASE_RENEW;
}

/* --- Of a cluster: a lease's commands go to where its slot is, and what was lost may be owed by another master ---- */

/* A queue that is halfway to another master is not handed on to, and a lock is given back without it. But who waits in
 * it must leave it; and who looks from it keeps the place, for as long as that takes. */
static void tenure_note_route(struct tenure *tenure, struct request *request, enum lease_command kind,
                              const struct reply *reply) {
    const struct lease *lease = evl_tenure_lease(tenure);
    struct tenure_rest *rest = evl_tenure_rest(tenure);
    bool halfway = reply->error == ERROR_HALFWAY;

    if (reply->type == REPLY_LOST)
        evl_owing_lost(&rest->owing, request->node);
    if (kind == LEASE_RELEASE)
        rest->owing.plainly =
            (halfway && !evl_lease_may_queue(lease)) || (rest->owing.plainly && reply->error == ERROR_ELSEWHERE);
    if (halfway && evl_lease_in_line(lease) && request->turns > 4)
        request->turns = 4;
}

/* Who waits in line looks then, by a pace of its own. */
static void tenure_tell_back(struct tenure *tenure, unsigned vote, const struct comeback *comeback, int64_t now,
                             struct lease_out *out) {
    if (!comeback->heard)
        return;
    evl_lease_node_back(evl_tenure_lease(tenure), vote, comeback->settled, comeback->replaced, now, out);
    if (evl_lease_in_line(evl_tenure_lease(tenure)) && !evl_tenure_is_ghost(tenure))
        tenure_family_of(tenure)->hooks->back(tenure->lock);
}

/* What the master owed that was back meanwhile. Never inline, so that most answers need no room on the stack for it. */
__attribute__((noinline)) static void tenure_settle(struct tenure *tenure, int64_t now, struct lease_out *out) {
    bool flying = evl_lease_flying(evl_tenure_lease(tenure), 0) > 0;
    struct comeback comeback = evl_owing_answered(&evl_tenure_rest(tenure)->owing, flying);

    tenure_tell_back(tenure, 0, &comeback, now, out);
}

/* What the server refuses of its own command is asked by script. Nobody need hear of that but the log. */
static void tenure_mend_native(struct tenure *tenure, const struct request *request, enum lease_command kind,
                               enum reply_error error, struct login *login, int64_t now, struct reading *reading) {
    bool native = kind == LEASE_REFRESH || (kind == LEASE_RELEASE && request->native);

    if (!native || !evl_native_withdraw(&login->server.native, kind, error, now))
        return;
    evl_handle_log(tenure->lock, EVLOCK_LOG_DEBUG, "node %u goes by script: %s", login->connection.index,
                   reading->words);
    reading->answer.verdict = LEASE_AGAIN;
    reading->words = NULL;
}

/* A node keeps the lease on. If somebody made the key last for ever, it is not a renewal's to end that. */
static void tenure_note_kept(struct tenure *tenure, enum lease_command kind, const struct lease_answer *answer) {
    tenure_family_of(tenure)->deployment.stats.renewals += kind != LEASE_MEND;
    if (answer->ttl != LEASE_NEVER || evl_tenure_is_ghost(tenure) || evl_tenure_rest(tenure)->owing.endless)
        return;
    evl_tenure_rest(tenure)->owing.endless = true;
    evl_handle_log(tenure->lock, EVLOCK_LOG_WARN,
                   "the key has no expiry: if this process is killed, the lock stays held for ever; an extension that "
                   "replaces the ttl gives it an end");
}

static bool tenure_answer(struct request *request, const struct reply *reply, int64_t now) {
    struct tenure *tenure = evl_request_owner(request);
    enum lease_command kind = evl_lease_unanswered(evl_tenure_lease(tenure), request->vote);
    struct reading reading;
    struct lease_answer *answer = &reading.answer;
    struct lease_out out = {0};
    bool fits = evl_dialect_read(tenure_dialect_of(tenure), kind, reply, evl_lease_terms(evl_tenure_lease(tenure))->ttl,
                                 &reading);
    bool in_cluster = tenure_is_in_cluster(tenure);
    const char *words;

    if (reply->type == REPLY_ERROR)
        tenure_mend_native(tenure, request, kind, reply->error, &tenure_node_for(tenure, request)->pipe.login, now,
                           &reading);
    words = reading.words ? reading.words : "";
    if (!fits) {
        answer->verdict = LEASE_UNKNOWN;
        answer->status = EVLOCK_EPROTOCOL;
    }
    if (answer->verdict == LEASE_YES && (evl_lease_renews(kind) || kind == LEASE_REARM || kind == LEASE_MEND))
        tenure_note_kept(tenure, kind, answer);
    if (reading.no_clock)
        evl_login_bring_clock(&tenure_node_for(tenure, request)->pipe.login, "a release could not hand on");
    if (kind != LEASE_RELEASE)
        tenure_node_for(tenure, request)->agreed = answer->verdict == LEASE_YES;
    if (in_cluster)
        tenure_note_route(tenure, request, kind, reply);
    if (!in_cluster || !evl_reply_sends_on(reply))
        tenure_note_words(tenure, words);
    if (answer->verdict == LEASE_QUEUED && !evl_tenure_is_ghost(tenure) && evl_lease_in_line(evl_tenure_lease(tenure)))
        tenure_family_of(tenure)->hooks->queued(tenure->lock, evl_lease_sent(evl_tenure_lease(tenure), request->vote),
                                                answer);
    evl_lease_answer(evl_tenure_lease(tenure), request->vote, answer, now, &out);
    if (in_cluster && evl_tenure_rest(tenure)->owing.back)
        tenure_settle(tenure, now, &out);
    tenure_act(tenure, now, &out, words);
    return fits;
}

/* What waits for the node goes first, in vain if that must not grant anything now. */
void evl_tenure_hear(struct tenure *tenure, unsigned vote, const struct comeback *comeback, int64_t now) {
    struct lease_out out = {0};
    const char *words = "";

    if (comeback->here && evl_tenure_request(tenure, vote)->waiting)
        tenure_send_wanted(tenure, vote, now, &out, &words);
    tenure_tell_back(tenure, vote, comeback, now, &out);
    tenure_act(tenure, now, &out, words);
}

static void tenure_away(struct request *request, struct trouble why, int64_t now) {
    struct tenure *tenure = evl_request_owner(request);
    struct lease_out out = {0};

    tenure_note_away(tenure, request->vote, why, now, &out);
    tenure_act(tenure, now, &out, why.words);
}

/* It may have another place to go to. A look that was given up while its master was away is wanted there: nobody else
 * looks for who waits in line, if that master has no more to do with it. */
static void tenure_submit(struct request *request, int64_t now) {
    struct tenure *tenure = evl_request_owner(request);
    struct lease_out out = {0};
    const char *words = "";

    if (evl_lease_in_line(evl_tenure_lease(tenure)) && !evl_tenure_is_ghost(tenure))
        evl_lease_look(evl_tenure_lease(tenure), &out);
    tenure_send_wanted(tenure, request->vote, now, &out, &words);
    tenure_act(tenure, now, &out, words);
}

const struct request_ops evl_tenure_requests = {tenure_take,   tenure_answer, tenure_join,
                                                tenure_renews, tenure_away,   tenure_submit};

/* --- From the handle ---------------------------------------------------------------------------------------------- */

/* Its lease is begun, and nothing more. `*ret` is set on success only; else EVLOCK_ENOMEM or EVLOCK_ESYSTEM. */
static struct trouble tenure_make(struct tenure **ret, struct evlock *lock, const struct tenure_entry *entry,
                                  int64_t now, struct lease_out *out) {
    struct tenures *family = evl_tenures_of(lock->config->deployment);
    unsigned nodes = family->deployment.votes;
    size_t token_len = entry->token.data ? entry->token.len : evl_token_drawn_len(lock->config->holder);
    struct tenure *tenure = tenure_allocate(family, tenure_size_of(nodes, token_len, entry->lease.queued));

    assert(entry->lease.own == (entry->token.data != NULL));
    if (!tenure)
        return (struct trouble){EVLOCK_ENOMEM, "no memory for a lease"};
    tenure->lock = lock;
    tenure->alarm.kind = ALARM_TENURE;
    evl_lease_begin(evl_tenure_lease(tenure), entry->kept ? &lock->config->kept : &lock->config->terms, nodes,
                    &entry->lease, now, out);
    for (unsigned i = 0; i < nodes; i++)
        evl_request_init(evl_tenure_request(tenure, i), tenure, REQUEST_LEASE, i);
    evl_tenure_rest(tenure)->token_len = (uint8_t)token_len;
    if (entry->token.data)
        memcpy(evl_tenure_rest(tenure)->token, entry->token.data, token_len);
    else if (!evl_token_draw(&family->entropy, lock->config->holder, evl_tenure_rest(tenure)->token)) {
        tenure_free_block(family, tenure, entry->lease.queued);
        return (struct trouble){EVLOCK_ESYSTEM, "the system refuses random bytes for a token"};
    }
    *ret = tenure;
    return evl_no_trouble;
}

struct trouble evl_tenure_begin(struct evlock *lock, const struct tenure_entry *entry, int64_t now) {
    struct tenures *family = evl_tenures_of(lock->config->deployment);
    struct lease_out out = {0};
    struct tenure *tenure;
    struct trouble trouble = tenure_make(&tenure, lock, entry, now, &out);

    if (trouble.status != EVLOCK_OK)
        return trouble;
    if (entry->lease.queued)
        trouble =
            evl_tickets_draw(&family->tickets, &family->entropy, tenure, entry->lease.spare, evl_tenure_ticket(tenure));
    if (trouble.status != EVLOCK_OK) {
        tenure_free_block(family, tenure, true);
        return trouble;
    }
    assert(!lock->tenure);
    evl_handle_ref(lock);
    lock->tenure = tenure;
    evl_rounds_add(&family->rounds, &tenure->member, false);
    tenure_act(tenure, now, &out, "");
    return evl_no_trouble;
}

bool evl_tenure_watch(struct evlock *lock, struct bytes token, const struct request *request) {
    struct tenures *family = evl_tenures_of(lock->config->deployment);
    struct tenure_entry entry = {.token = token, .lease = {.own = true, .watched = (uint16_t)(1U << request->vote)}};
    struct lease_out none = {0};
    struct tenure *tenure;

    if (tenure_make(&tenure, lock, &entry, evl_turn_now(&family->deployment.turn), &none).status != EVLOCK_OK)
        return false;
    if (family->deployment.cluster) {
        evl_request_aim(evl_tenure_request(tenure, 0), request->node);
        evl_owing_lost(&evl_tenure_rest(tenure)->owing, request->node);
    }
    evl_handle_ref(lock);
    evl_rounds_add(&family->rounds, &tenure->member, true);
    return true;
}

void evl_tenure_look(struct tenure *tenure, int64_t now) {
    struct lease_out out = {0};

    evl_lease_look(evl_tenure_lease(tenure), &out);
    tenure_act(tenure, now, &out, "");
}

void evl_tenure_granted(struct tenure *tenure, int64_t since, const struct lease_answer *yes, int64_t now) {
    struct lease_out out = {0};

    evl_lease_granted(evl_tenure_lease(tenure), since, yes, now, &out);
    tenure_act(tenure, now, &out, "");
}

void evl_tenure_extend(struct tenure *tenure, enum lease_command command, int64_t ttl) {
    int64_t now = tenure_now_of(tenure), timeout = tenure_family_of(tenure)->deployment.config.command_timeout;
    struct lease_out out = {0};

    evl_lease_extend(evl_tenure_lease(tenure), command, ttl, now + timeout, &out);
    tenure_act(tenure, now, &out, "");
}

void evl_tenure_count_hold(struct tenure *tenure, int64_t now) {
    evl_stats_count(tenure_family_of(tenure)->deployment.stats.hold, now - evl_lease_since(evl_tenure_lease(tenure)));
}

void evl_tenure_release(struct tenure *tenure) {
    int64_t now = tenure_now_of(tenure), timeout = tenure_family_of(tenure)->deployment.config.command_timeout;
    struct lease_out out = {0};

    if (evl_lease_state(evl_tenure_lease(tenure)) == LEASE_HELD)
        evl_tenure_count_hold(tenure, now);
    evl_lease_release(evl_tenure_lease(tenure), now + timeout, &out);
    tenure_act(tenure, now, &out, "");
}

/* Returns the handle that had it, whose reference becomes the caller's. */
static struct evlock *tenure_change_handle(struct tenure *tenure, struct evlock *to) {
    struct evlock *from = tenure->lock;

    assert(from->tenure == tenure && !to->tenure && evl_same_bytes(evl_handle_key(from), evl_handle_key(to)));
    from->tenure = NULL;
    to->tenure = tenure;
    tenure->lock = to;
    evl_handle_ref(to);
    return from;
}

void evl_tenure_pass(struct tenure *tenure, struct evlock *to) {
    struct evlock *from = tenure_change_handle(tenure, to);
    int64_t now = tenure_now_of(tenure);
    struct lease_out out = {0};

    evl_lease_pass(evl_tenure_lease(tenure), &to->config->terms, now, &out);
    if (out.wake)
        tenure_act(tenure, now, &out, "");
    else
        tenure_set_alarm(tenure);
    evl_handle_unref(from);
}

void evl_tenure_inherit(struct tenure *tenure, struct evlock *to) {
    struct evlock *from = tenure_change_handle(tenure, to);

    evl_lease_inherit(evl_tenure_lease(tenure), &to->config->terms);
    evl_handle_unref(from);
}

void evl_tenure_drop(struct tenure *tenure) {
    struct tenures *family = tenure_family_of(tenure);
    struct evlock *lock = tenure->lock;

    assert(lock->tenure == tenure);
    if (evl_lease_queued(evl_tenure_lease(tenure)))
        tenure_withdraw_ticket(tenure);
    evl_rounds_remove(&family->rounds, &tenure->member, false);
    evl_rounds_add(&family->rounds, &tenure->member, true);
    lock->tenure = NULL;
}

void evl_tenure_abandon(struct tenure *tenure) {
    int64_t now = tenure_now_of(tenure);
    struct lease_out out = {0};

    evl_tenure_drop(tenure);
    evl_lease_abandon(evl_tenure_lease(tenure), now, &out);
    tenure_act(tenure, now, &out, "");
}

void evl_tenure_export(struct tenure *tenure) {
    int64_t now = tenure_now_of(tenure);
    struct lease_out out = {0};

    evl_tenure_drop(tenure);
    evl_lease_export(evl_tenure_lease(tenure));
    tenure_act(tenure, now, &out, "");
}

void evl_tenure_warn_anew(struct tenure *tenure) {
    if (evl_lease_warn_anew(evl_tenure_lease(tenure)))
        tenure_set_alarm(tenure);
}

void evl_tenure_ring(struct alarm *alarm, int64_t now) {
    struct tenure *tenure = EVL_OWNER(struct tenure, alarm, alarm);
    struct lease_out out = {0};

    evl_prefetch(tenure->lock, 0, sizeof(struct evlock) + CACHE_LINE); /* for its key, if there is anything to send */
    evl_lease_time(evl_tenure_lease(tenure), now, tenure_turn_of(tenure)->heard, &out);
    tenure_act(tenure, now, &out, "");
}

/* --- All of them -------------------------------------------------------------------------------------------------- */

void evl_tenures_init(struct tenures *tenures, const struct tenure_hooks *hooks, unsigned kept) {
    size_t size = tenure_size_of(tenures->deployment.votes, EVL_TOKEN_TEXT, false);

    tenures->hooks = hooks;
    tenures->pool = (struct pool){.size = size, .keep = kept};
    tenures->deployment.turn.alarms.owner_size = (uint16_t)size;
    tenures->deployment.turn.alarms.before = offsetof(struct tenure, alarm);
    evl_rounds_init(&tenures->rounds);
}

void evl_tenures_free(struct tenures *tenures) {
    evl_pool_free_kept(&tenures->pool);
    evl_tickets_free(&tenures->tickets);
    evl_entropy_wipe(&tenures->entropy);
}

bool evl_tenures_haunt(const struct tenures *tenures, struct bytes key, struct bytes token) {
    struct tenure *ghost;

    for (ghost = evl_tenures_first(&tenures->rounds.ghosts); ghost; ghost = evl_tenures_next(ghost))
        if (evl_same_bytes(evl_tenure_token(ghost), token) && evl_same_bytes(evl_handle_key(ghost->lock), key))
            return true;
    for (unsigned i = 0; i < tenures->deployment.node_count; i++)
        if (evl_node_state(tenures->deployment.nodes[i]) == CONNECTION_ENDED) /* who has lost what is yet to be told */
            return true;
    return false;
}

/* --- Invariants --------------------------------------------------------------------------------------------------- */
#ifdef EVL_CHECKS

static bool tenure_is_stopped(struct tenure *tenure, unsigned node) {
    return evl_node_state(tenure_node_of(tenure, node)) == CONNECTION_STOPPED;
}

/* A handle has it while something can still be told of it; a ghost is being undone, or has a last answer to come,
 * unless its client goes with all that is under way. */
static void tenure_check_state(struct tenure *tenure) {
    if (tenure_is_stopped(tenure, 0))
        return;
    switch (evl_lease_state(evl_tenure_lease(tenure))) {
    case LEASE_ACQUIRING:
    case LEASE_HELD:
    case LEASE_LOST:
    case LEASE_RELEASING:
        assert(!evl_tenure_is_ghost(tenure));
        break;
    case LEASE_UNDOING:
        assert(evl_tenure_is_ghost(tenure));
        break;
    case LEASE_ENDED:
        assert(evl_tenure_is_ghost(tenure) && !evl_lease_over(evl_tenure_lease(tenure)));
        break;
    }
}

static bool tenure_has_ticket(struct tenure *tenure) {
    const char *rest;

    return evl_lease_queued(evl_tenure_lease(tenure)) &&
           evl_tickets_find(&tenure_family_of(tenure)->tickets, evl_tenure_ticket(tenure), &rest) == tenure;
}

/* Its alarm does not ring later than the lease has something to do. */
static void tenure_check_alarm(struct tenure *tenure) {
    const struct turn *turn = tenure_turn_of(tenure);
    const struct lease *lease = evl_tenure_lease(tenure);
    int64_t next = evl_lease_next(lease), exact = evl_lease_next_exact(lease);
    int64_t put_off = evl_alarm_is_put_off(&tenure->alarm) ? exact : evl_min(exact, turn->recovery);
    int64_t latest = evl_max(evl_max(next, put_off), turn->alarms.base);

    implies(next != LEASE_NEVER, tenure->alarm.set && (int64_t)tenure->alarm.at <= latest);
}

void evl_tenure_check(struct tenure *tenure) {
    const struct lease *lease = evl_tenure_lease(tenure);

    tenure_check_state(tenure);
    assert(evl_tenure_rest(tenure)->acting == 0);
    evl_owing_check(&evl_tenure_rest(tenure)->owing);
    implies(!evl_tenure_is_ghost(tenure), evl_config_of_terms(evl_lease_terms(lease)) == tenure->lock->config);
    assert(tenure_has_ticket(tenure) == (evl_lease_in_line(lease) && !evl_tenure_is_ghost(tenure)));
    tenure_check_alarm(tenure);
    for (unsigned i = 0; i < evl_lease_nodes(lease); i++)
        evl_request_check(evl_tenure_request(tenure, i));
}

/* It flies with what is unanswered, and what is wanted waits or comes behind that. */
static void tenure_check_request(struct tenure *tenure, unsigned node) {
    const struct lease *lease = evl_tenure_lease(tenure);
    const struct request *request = evl_tenure_request(tenure, node);
    bool out = request->waiting || request->flying;

    assert(request->flying == evl_lease_flying(lease, node));
    implies(evl_lease_wanted(lease, node) != LEASE_NOTHING, out || tenure_is_stopped(tenure, node));
}

static void tenures_check_list(const struct round_members *list, bool ghosts) {
    struct tenure *tenure;

    for (tenure = evl_tenures_first(list); tenure; tenure = evl_tenures_next(tenure)) {
        assert(evl_tenure_is_ghost(tenure) == ghosts);
        evl_tenure_check(tenure);
        evl_handle_check(tenure->lock);
        for (unsigned i = 0; i < evl_lease_nodes(evl_tenure_lease(tenure)); i++)
            tenure_check_request(tenure, i);
    }
}

void evl_tenures_check_all(struct tenures *tenures) {
    evl_rounds_check(&tenures->rounds);
    tenures_check_list(&tenures->rounds.live, false);
    tenures_check_list(&tenures->rounds.ghosts, true);
}

#endif
