/* Queries; see query.h. */
#include "query.h"

#include <string.h>

#include "dialect.h"
#include "memory.h"
#include "quorum.h"
#include "token.h"

enum finding_state { ASKED, FAILED, ABSENT, FOUND, BROKEN, CHANGED };

/* What one node said. */
struct finding {
    enum finding_state state;
    char *token; /* FOUND, but for a number; of a break: its mark */
    size_t token_len;
    int64_t number; /* of queries for one; INT64_MAX: no expiry */
    bool resent;
};

static void query_free(struct call *call) {
    for (unsigned i = 0; call->query.findings && i < call->count; i++)
        evl_free(call->query.findings[i].token);
    evl_free(call->query.findings);
    evl_free(call->query.token);
}

/* By their kinds. */
static const struct call_sort sorts[] = {
    [CALL_LOCKED] = {CALL_LOCKED, NULL, query_free},         [CALL_OWNED] = {CALL_OWNED, NULL, query_free},
    [CALL_SERVER_TTL] = {CALL_SERVER_TTL, NULL, query_free}, [CALL_BREAK] = {CALL_BREAK, NULL, query_free},
    [CALL_HOLDER] = {CALL_HOLDER, NULL, query_free},         [CALL_WAITERS] = {CALL_WAITERS, NULL, query_free},
    [CALL_PLACE] = {CALL_PLACE, NULL, query_free},
};

static bool query_asks_number(const struct call *call) {
    return call->sort->kind == CALL_SERVER_TTL || call->sort->kind == CALL_WAITERS || call->sort->kind == CALL_PLACE;
}

/* --- What the nodes' answers come to ------------------------------------------------------------------------------ */

static unsigned query_count(const struct call *call, enum finding_state state) {
    unsigned sum = 0;

    for (unsigned i = 0; i < call->count; i++)
        sum += call->query.findings[i].state == state;
    return sum;
}

static unsigned query_count_token(const struct call *call, const char *token, size_t len) {
    const struct finding *findings = call->query.findings;
    const struct bytes sought = {token, len};
    unsigned sum = 0;

    for (unsigned i = 0; i < call->count; i++)
        sum += findings[i].state == FOUND &&
               evl_same_bytes((struct bytes){findings[i].token, findings[i].token_len}, sought);
    return sum;
}

/* On how many nodes what is asked for is: the handle's token, or the one that most nodes have, or any. */
static unsigned query_count_holder(const struct call *call) {
    const struct finding *findings = call->query.findings;
    unsigned most = 0, sum;

    if (query_asks_number(call))
        return query_count(call, FOUND);
    if (call->sort->kind == CALL_OWNED)
        return query_count_token(call, call->query.token, call->query.token_len);
    for (unsigned i = 0; i < call->count; i++) {
        sum = findings[i].state == FOUND ? query_count_token(call, findings[i].token, findings[i].token_len) : 0;
        most = sum > most ? sum : most;
    }
    return most;
}

/* What a quorum has at least: of ttls, so long a quorum keeps the key. */
static int64_t query_quorum_number(const struct call *call) {
    const struct finding *findings = call->query.findings;
    int64_t numbers[LEASE_NODES] = {0};

    for (unsigned i = 0; i < call->count; i++)
        if (findings[i].state == FOUND)
            numbers[i] = findings[i].number;
    return evl_quorum_number(numbers, call->count);
}

/* The name in the token that a quorum has. */
static void query_note_name(struct call *call) {
    struct finding *findings = call->query.findings;

    for (unsigned i = 0; i < call->count; i++) {
        if (findings[i].state != FOUND ||
            !evl_quorum_reached(call->count, query_count_token(call, findings[i].token, findings[i].token_len)))
            continue;
        call->query.name = findings[i].token;
        call->query.name_len = evl_token_holder_len(findings[i].token, findings[i].token_len);
        findings[i].token[call->query.name_len] = '\0'; /* it ends where the rest of the token begins */
        return;
    }
}

static void query_end_held(struct call *call, const char *words) {
    call->value = query_asks_number(call) ? query_quorum_number(call) : 1;
    if (call->sort->kind == CALL_HOLDER)
        query_note_name(call);
    evl_call_end(call, call->value == INT64_MAX ? EVLOCK_ENOTTL : EVLOCK_OK, words);
}

static void query_end_free(struct call *call, const char *words) {
    bool is_answer = call->sort->kind == CALL_LOCKED || call->sort->kind == CALL_OWNED;

    call->value = 0;
    evl_call_end(call, is_answer ? EVLOCK_OK : EVLOCK_ENOTHELD, words);
}

static void query_end_failed(struct call *call, const char *words) {
    evl_call_end(call, call->count == 1 ? call->status : EVLOCK_EQUORUM, words);
}

/* A break is reported when it is done on a quorum, and goes on with the others. */
static void query_decide_break(struct call *call, const char *words) {
    if (evl_quorum_missed(call->count, query_count(call, FAILED)))
        query_end_failed(call, words);
    else if (!evl_quorum_reached(call->count,
                                 query_count(call, BROKEN) + query_count(call, ABSENT) + query_count(call, CHANGED)))
        return;
    else if (query_count(call, BROKEN) > 0)
        evl_call_end(call, EVLOCK_OK, "");
    else
        evl_call_end(call, query_count(call, CHANGED) > 0 ? EVLOCK_ENOTOWNED : EVLOCK_ENOTHELD, words);
}

/* `words` are those of the node that was heard last. */
static void query_decide(struct call *call, const char *words) {
    unsigned open = query_count(call, ASKED);
    unsigned holder;

    if (call->sort->kind == CALL_BREAK) {
        query_decide_break(call, words);
        return;
    }
    holder = query_count_holder(call);
    if (evl_quorum_reached(call->count, holder))
        query_end_held(call, words);
    else if (evl_quorum_missed(call->count, query_count(call, FAILED)))
        query_end_failed(call, words);
    else if (open == 0 || !evl_quorum_reached(call->count, holder + open))
        query_end_free(call, words);
}

/* --- On the wire -------------------------------------------------------------------------------------------------- */

static struct finding *query_finding_of(struct request *request) {
    return &evl_call_of(request)->query.findings[request->node];
}

static void query_submit(struct request *request) {
    const struct call *call = evl_call_of(request);

    evl_pipe_submit(evl_call_pipe(call, request->node), request, evl_turn_now(evl_handle_turn(call->lock)));
}

static bool query_is_second_step(struct request *request) {
    return evl_call_of(request)->sort->kind == CALL_BREAK && query_finding_of(request)->state == FOUND;
}

static enum ask query_ask_of(struct request *request) {
    switch (evl_call_of(request)->sort->kind) {
    case CALL_SERVER_TTL:
        return ASK_TTL;
    case CALL_WAITERS:
        return ASK_WAITERS;
    case CALL_PLACE:
        return ASK_PLACE;
    case CALL_BREAK:
        return query_is_second_step(request) ? ASK_BREAK : ASK_MARK;
    default:
        return ASK_TOKEN;
    }
}

static bool query_take(struct request *request, int64_t now, struct command *command) {
    const struct call *call = evl_call_of(request);
    const struct finding *finding = query_finding_of(request);
    struct subject subject = {
        .key = evl_handle_key(call->lock),
        .sought = {call->query.token, call->query.token_len},
    };

    (void)now;
    if (query_is_second_step(request))
        subject.sought = (struct bytes){finding->token, finding->token_len};
    evl_command_write(command, &evl_call_dialect(call)->asks[query_ask_of(request)]->form, &subject);
    return true;
}

static void query_fail(struct request *request, int status) {
    struct call *call = evl_call_of(request);

    query_finding_of(request)->state = FAILED;
    if (!call->ended)
        call->status = status;
}

static void query_note_broken(struct finding *finding, const struct found *found) {
    /* Gone after a release whose answer was lost: by that one. */
    finding->state = found->number || finding->resent ? BROKEN : CHANGED;
}

static void query_note_token(struct request *request, const struct found *found) {
    struct finding *finding = query_finding_of(request);

    finding->token = evl_dup(found->text.data, found->text.len);
    finding->token_len = found->text.len;
    if (!finding->token) {
        query_fail(request, EVLOCK_ENOMEM);
        return;
    }
    finding->state = FOUND;
    finding->resent = false;
    if (evl_call_of(request)->sort->kind == CALL_BREAK)
        query_submit(request);
}

static void query_note_found(struct request *request, const struct found *found) {
    struct finding *finding = query_finding_of(request);

    if (query_is_second_step(request)) {
        query_note_broken(finding, found);
    } else if (!found->there) {
        finding->state = ABSENT;
    } else if (query_asks_number(evl_call_of(request))) {
        finding->state = FOUND;
        finding->number = found->number;
    } else {
        query_note_token(request, found);
    }
}

static bool query_is_stopped(struct request *request) {
    return evl_pipe_connection(evl_call_pipe(evl_call_of(request), request->node))->state == CONNECTION_STOPPED;
}

/* The second step of a break may run late, and would then end another lease of the same token: whoever wants to use
 * that as their own must know. False: out of memory. */
static bool query_watch(struct request *request) {
    struct call *call = evl_call_of(request);
    const struct finding *finding = query_finding_of(request);
    bool token = finding->token_len > 0 && finding->token_len <= TOKEN_MAX;

    if (!token || !evl_locks_of(call->lock)->open || query_is_stopped(request))
        return true;
    return evl_tenure_watch(call->lock, (struct bytes){finding->token, finding->token_len}, request->node);
}

/* The command did not run, or may be run twice without harm. */
static bool query_send_again(struct request *request, const struct reply *reply) {
    struct finding *finding = query_finding_of(request);
    bool missing = reply->type == REPLY_ERROR && evl_reply_meaning(reply->text).verdict == LEASE_AGAIN;

    if (!missing && (reply->type != REPLY_LOST || finding->resent || query_is_stopped(request)))
        return false;
    finding->resent = !missing;
    query_submit(request);
    return true;
}

/* False for an answer that the command cannot have. */
static bool query_note(struct request *request, const struct reply *reply) {
    struct found found;

    if (reply->type == REPLY_ERROR || reply->type == REPLY_LOST) {
        query_fail(request, reply->type == REPLY_LOST ? EVLOCK_EUNREACHABLE : evl_reply_meaning(reply->text).status);
        return true;
    }
    if (!evl_dialect_find(evl_call_dialect(evl_call_of(request)), query_ask_of(request), reply, &found)) {
        query_fail(request, EVLOCK_EPROTOCOL);
        return false;
    }
    query_note_found(request, &found);
    return true;
}

/* Nobody is called for it any more: its second step goes at once or not at all. */
static void query_answer_ended(struct request *request, const struct reply *reply) {
    struct call *call = evl_call_of(request);

    if (call->sort->kind == CALL_BREAK && reply->type != REPLY_LOST)
        query_note(request, reply);
    evl_pipe_withdraw(evl_call_pipe(call, request->node), request);
    evl_call_free_told(call);
}

static bool query_answer(struct request *request, const struct reply *reply, int64_t now) {
    struct call *call = evl_call_of(request);
    bool watched = reply->type != REPLY_LOST || !query_is_second_step(request) || query_watch(request);
    bool says = reply->type == REPLY_ERROR || reply->type == REPLY_LOST;
    bool fits;

    (void)now;
    if (call->ended) {
        query_answer_ended(request, reply);
        return true;
    }
    if (!watched) {
        query_fail(request, EVLOCK_ENOMEM);
        query_decide(call, "no memory to go on with a break");
        return true;
    }
    if (query_send_again(request, reply))
        return true;
    fits = query_note(request, reply);
    query_decide(call, says ? reply->text : "");
    return fits;
}

static void query_away(struct request *request, struct trouble why, int64_t now) {
    struct call *call = evl_call_of(request);

    (void)now;
    evl_pipe_withdraw(evl_call_pipe(call, request->node), request);
    query_fail(request, why.status);
    query_decide(call, why.words);
}

const struct request_ops evl_query_requests = {query_take, query_answer, NULL, query_away};

/* --- The calls ---------------------------------------------------------------------------------------------------- */

static void query_begin(struct call *call) {
    const struct connection *connection;
    const char *words = "";

    for (unsigned i = 0; i < call->count; i++) {
        connection = evl_pipe_connection(evl_call_pipe(call, i));
        if (connection->state != CONNECTION_AWAY) {
            query_submit(&call->requests[i]);
            continue;
        }
        words = connection->error;
        query_fail(&call->requests[i], connection->status);
    }
    query_decide(call, words);
    evl_turn_rearm(evl_handle_turn(call->lock));
}

/* A copy of what the query is to look for, if anything; false: out of memory. */
static bool query_copy_sought(struct call *call) {
    struct tenure *tenure = call->lock->tenure;
    char waiter[WAITER_SIZE];
    struct waiter place;

    if (call->sort->kind == CALL_OWNED && evl_lock_holds(call->lock)) {
        call->query.token = evl_dup(evl_tenure_token(tenure).data, evl_tenure_token(tenure).len);
        call->query.token_len = evl_tenure_token(tenure).len;
        return call->query.token;
    }
    if (call->sort->kind == CALL_PLACE && evl_lock_queues(call->lock)) {
        place = evl_tenure_waiter(tenure);
        call->query.token_len = evl_wire_waiter(waiter, evl_tenure_token(tenure), &place);
        call->query.token = evl_dup(waiter, call->query.token_len);
        return call->query.token;
    }
    return true;
}

/* A call with room for the nodes' answers, and what is to be looked for. */
static struct call *query_new(evlock *lock, enum call_kind kind, void *arg) {
    struct call *call = evl_call_new(lock, &sorts[kind], arg);

    if (!call)
        return NULL;
    evl_call_ask(call, REQUEST_QUERY);
    call->query.findings = evl_alloc(call->count * sizeof(struct finding));
    if (call->query.findings && query_copy_sought(call))
        return call;
    evl_call_drop(call);
    return NULL;
}

static struct trouble query(evlock *lock, enum call_kind kind, evlock_value_cb cb, evlock_text_cb text_cb, void *arg) {
    struct call *call;
    struct trouble trouble = evl_lock_validate(lock);

    if (trouble.status != EVLOCK_OK)
        return trouble;
    if (!cb && !text_cb)
        return (struct trouble){EVLOCK_EINVAL, "a query needs a callback"};
    if ((kind == CALL_WAITERS || kind == CALL_PLACE) && lock->config->deployment->node_count > 1)
        return (struct trouble){EVLOCK_EQUEUE, "several nodes have no queue in common"};
    call = query_new(lock, kind, arg);
    if (!call)
        return (struct trouble){EVLOCK_ENOMEM, "no memory for a query"};
    call->value_cb = cb;
    call->text_cb = text_cb;
    if ((kind == CALL_OWNED || kind == CALL_PLACE) && !call->query.token)
        query_end_free(call, "");
    else
        query_begin(call);
    return evl_no_trouble;
}

int evlock_locked(evlock *lock, evlock_value_cb cb, void *arg) {
    return evl_report(query(lock, CALL_LOCKED, cb, NULL, arg));
}

int evlock_owned(evlock *lock, evlock_value_cb cb, void *arg) {
    return evl_report(query(lock, CALL_OWNED, cb, NULL, arg));
}

int evlock_server_ttl(evlock *lock, evlock_value_cb cb, void *arg) {
    return evl_report(query(lock, CALL_SERVER_TTL, cb, NULL, arg));
}

int evlock_holder(evlock *lock, evlock_text_cb cb, void *arg) {
    return evl_report(query(lock, CALL_HOLDER, NULL, cb, arg));
}

int evlock_waiters(evlock *lock, evlock_value_cb cb, void *arg) {
    return evl_report(query(lock, CALL_WAITERS, cb, NULL, arg));
}

int evlock_place(evlock *lock, evlock_value_cb cb, void *arg) {
    return evl_report(query(lock, CALL_PLACE, cb, NULL, arg));
}

int evlock_break(evlock *lock, evlock_cb cb, void *arg) {
    struct call *call;
    struct trouble trouble = evl_lock_validate(lock);

    if (trouble.status != EVLOCK_OK)
        return evl_report(trouble);
    call = query_new(lock, CALL_BREAK, arg);
    if (!call)
        return evl_fail(EVLOCK_ENOMEM, "no memory for a break");
    call->cb = cb;
    evl_handle_log(lock, EVLOCK_LOG_INFO, "breaking");
    query_begin(call);
    return evl_report(evl_no_trouble);
}
