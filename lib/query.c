/* Queries; see query.h. */
#include "query.h"

#include <string.h>

#include "cohort.h"
#include "dialect.h"
#include "memory.h"
#include "quorum.h"
#include "token.h"

enum finding_state { ASKED, FAILED, ABSENT, FOUND, BROKEN, CHANGED };

/* What a node's value of the lock says. */
#define VALUE_PARTS ((unsigned)EVLOCK_QUERY_LOCKED | EVLOCK_QUERY_OWNED | EVLOCK_QUERY_HOLDER)
/* What its queue says. */
#define QUEUE_PARTS ((unsigned)EVLOCK_QUERY_WAITERS | EVLOCK_QUERY_PLACE)
#define ALL_PARTS (VALUE_PARTS | QUEUE_PARTS | EVLOCK_QUERY_TTL)

/* What one node said. */
struct finding {
    enum finding_state state;
    char *token; /* FOUND, if the value was asked for; of a break: its mark */
    size_t token_len;
    int64_t ttl; /* INT64_MAX: no expiry */
    int64_t waiters;
    int64_t place;
    bool resent;
};

static void query_free(struct call *call) {
    for (unsigned i = 0; call->query.findings && i < call->count; i++)
        evl_free(call->query.findings[i].token);
    evl_free(call->query.findings);
    evl_free(call->query.sought);
}

static const struct call_sort sort_query = {.kind = CALL_QUERY, .free = query_free};
static const struct call_sort sort_break = {.kind = CALL_BREAK, .free = query_free};

/* The question that has all the parts asked for, and as few others as can be: what one plain command answers needs no
 * right to call scripts. */
static enum ask query_ask_for(unsigned parts) {
    if ((parts & ~VALUE_PARTS) == 0)
        return ASK_TOKEN;
    switch (parts) {
    case EVLOCK_QUERY_TTL:
        return ASK_TTL;
    case EVLOCK_QUERY_WAITERS:
        return ASK_WAITERS;
    case EVLOCK_QUERY_PLACE:
        return ASK_PLACE;
    default:
        return parts & QUEUE_PARTS ? ASK_WHOLE : ASK_STATE;
    }
}

/* Whether the nodes' answers come with the values that they have. */
static bool query_hears_tokens(const struct call *call) {
    enum ask ask = query_ask_for(call->query.asked);

    return call->sort->kind == CALL_BREAK || ask == ASK_TOKEN || ask == ASK_STATE || ask == ASK_WHOLE;
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

    if (!query_hears_tokens(call))
        return query_count(call, FOUND);
    if (call->query.asked == EVLOCK_QUERY_OWNED)
        return query_count_token(call, call->query.sought, call->query.sought_len);
    for (unsigned i = 0; i < call->count; i++) {
        sum = findings[i].state == FOUND ? query_count_token(call, findings[i].token, findings[i].token_len) : 0;
        most = sum > most ? sum : most;
    }
    return most;
}

/* One that says what a quorum says: with the token that the lock has, or, without tokens, any; NULL: nobody has it. */
static struct finding *query_agreed(const struct call *call) {
    struct finding *findings = call->query.findings;

    for (unsigned i = 0; i < call->count; i++)
        if (findings[i].state == FOUND &&
            (!query_hears_tokens(call) ||
             evl_quorum_reached(call->count, query_count_token(call, findings[i].token, findings[i].token_len))))
            return &findings[i];
    return NULL;
}

/* How long a quorum keeps what that one has, at least. */
static int64_t query_quorum_ttl(const struct call *call, const struct finding *agreed) {
    const struct finding *findings = call->query.findings;
    const struct bytes token = {agreed->token, agreed->token_len};
    int64_t ttls[LEASE_NODES] = {0};

    for (unsigned i = 0; i < call->count; i++)
        if (findings[i].state == FOUND &&
            (!agreed->token || evl_same_bytes((struct bytes){findings[i].token, findings[i].token_len}, token)))
            ttls[i] = findings[i].ttl;
    return evl_quorum_number(ttls, call->count);
}

/* The name in a token, which ends where the rest of the token begins. */
static void query_answer_name(evlock_answer *answer, struct finding *agreed) {
    answer->holder_len = evl_token_holder_len(agreed->token, agreed->token_len);
    agreed->token[answer->holder_len] = '\0';
    answer->holder = agreed->token;
}

/* What is known of a lock that somebody has. */
static void query_answer_held(struct call *call, struct finding *agreed) {
    evlock_answer *answer = &call->query.answer;
    const struct bytes sought = {call->query.sought, call->query.sought_len};
    unsigned asked = call->query.asked;
    int64_t ttl;

    answer->locked = asked & EVLOCK_QUERY_LOCKED;
    if (asked & EVLOCK_QUERY_OWNED)
        answer->owned = evl_same_bytes((struct bytes){agreed->token, agreed->token_len}, sought);
    if (asked & EVLOCK_QUERY_TTL) {
        ttl = query_quorum_ttl(call, agreed);
        answer->ttl_ms = ttl == INT64_MAX ? EVLOCK_NO_EXPIRY : ttl;
    }
    if (asked & EVLOCK_QUERY_HOLDER)
        query_answer_name(answer, agreed);
}

/* Its queue is that of the only node. */
static void query_end_answered(struct call *call, struct finding *agreed) {
    const struct finding *only = &call->query.findings[0];

    if (agreed)
        query_answer_held(call, agreed);
    if (call->query.asked & EVLOCK_QUERY_WAITERS)
        call->query.answer.waiters = only->waiters;
    if (call->query.asked & EVLOCK_QUERY_PLACE)
        call->query.answer.place = only->place;
    evl_call_end(call, EVLOCK_OK, "");
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
        query_end_answered(call, query_agreed(call));
    else if (evl_quorum_missed(call->count, query_count(call, FAILED)))
        query_end_failed(call, words);
    else if (open == 0 || !evl_quorum_reached(call->count, holder + open))
        query_end_answered(call, NULL);
}

/* --- On the wire -------------------------------------------------------------------------------------------------- */

static struct finding *query_finding_of(struct request *request) {
    return &evl_call_of(request)->query.findings[request->vote];
}

static void query_submit(struct request *request) {
    evl_call_submit(evl_call_of(request), request->vote);
}

static void query_submit_anew(struct request *request, int64_t now) {
    (void)now;
    query_submit(request);
}

static bool query_is_second_step(struct request *request) {
    return evl_call_of(request)->sort->kind == CALL_BREAK && query_finding_of(request)->state == FOUND;
}

static enum ask query_ask_of(struct request *request) {
    const struct call *call = evl_call_of(request);

    if (call->sort->kind == CALL_BREAK)
        return query_is_second_step(request) ? ASK_BREAK : ASK_MARK;
    return query_ask_for(call->query.asked);
}

static struct login *query_login_of(struct request *request) {
    return &evl_call_pipe(evl_call_of(request), request->vote)->login;
}

static bool query_take(struct request *request, int64_t now, struct command *command) {
    const struct call *call = evl_call_of(request);
    const struct finding *finding = query_finding_of(request);
    const struct form *form = &evl_call_dialect(call)->asks[query_ask_of(request)]->form;
    struct subject subject = {
        .key = evl_handle_key(call->lock),
        .clock = evl_login_clock(query_login_of(request), form, now),
        .sought = {"", 0},
    };

    if (query_is_second_step(request))
        subject.sought = (struct bytes){finding->token, finding->token_len};
    else if (call->query.asked & EVLOCK_QUERY_PLACE)
        subject.sought = (struct bytes){call->query.sought, call->query.sought_len};
    evl_command_write(command, form, &subject);
    return true;
}

static void query_fail(struct request *request, int status) {
    struct call *call = evl_call_of(request);

    query_finding_of(request)->state = FAILED;
    if (!call->ended)
        call->status = status;
}

/* Whoever holds now may be whom a break ends, from its call on, and long before its answer comes. With each answer that
 * may be another. */
static void query_doubt(const struct call *call) {
    if (call->sort->kind == CALL_BREAK)
        evl_cohorts_doubt(call->lock);
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

    query_doubt(evl_call_of(request));
    if (query_is_second_step(request)) {
        query_note_broken(finding, found);
        return;
    }
    finding->ttl = found->ttl;
    finding->waiters = found->waiters;
    finding->place = found->place;
    finding->state = found->there ? FOUND : ABSENT;
    if (found->there && query_hears_tokens(evl_call_of(request)))
        query_note_token(request, found);
}

static bool query_is_stopped(struct request *request) {
    return evl_pipe_connection(evl_call_pipe(evl_call_of(request), request->vote))->state == CONNECTION_STOPPED;
}

/* The second step of a break may run late, and would then end another lease of the same token: whoever wants to use
 * that as their own must know. False: out of memory. */
static bool query_watch(struct request *request) {
    struct call *call = evl_call_of(request);
    const struct finding *finding = query_finding_of(request);
    bool token = finding->token_len > 0 && finding->token_len <= EVLOCK_TOKEN_MAX;

    if (!token || !evl_locks_of(call->lock)->open || query_is_stopped(request))
        return true;
    return evl_tenure_watch(call->lock, (struct bytes){finding->token, finding->token_len}, request);
}

/* The command did not run, or may be run twice without harm. One of a step that was lost stays lost, whatever is said
 * of the next: it may have run. */
static bool query_send_again(struct request *request, const struct reply *reply) {
    struct finding *finding = query_finding_of(request);
    bool missing = reply->type == REPLY_ERROR && evl_reply_meaning(reply->error).verdict == LEASE_AGAIN;

    if (!missing && (reply->type != REPLY_LOST || finding->resent || query_is_stopped(request)))
        return false;
    finding->resent |= !missing;
    query_submit(request);
    return true;
}

/* False for an answer that the command cannot have. */
static bool query_note(struct request *request, const struct reply *reply) {
    struct found found;

    if (reply->type == REPLY_ERROR || reply->type == REPLY_LOST) {
        query_fail(request, reply->type == REPLY_LOST ? EVLOCK_EUNREACHABLE : evl_reply_meaning(reply->error).status);
        return true;
    }
    if (!evl_dialect_find(evl_call_dialect(evl_call_of(request)), query_ask_of(request), reply, &found)) {
        query_fail(request, EVLOCK_EPROTOCOL);
        return false;
    }
    if (found.no_clock)
        evl_login_bring_clock(query_login_of(request), "a break could not hand on");
    query_note_found(request, &found);
    return true;
}

/* Nobody is called for it any more: its second step goes at once or not at all. */
static void query_answer_ended(struct request *request, const struct reply *reply) {
    struct call *call = evl_call_of(request);

    if (call->sort->kind == CALL_BREAK && reply->type != REPLY_LOST)
        query_note(request, reply);
    evl_pipe_withdraw(evl_call_pipe(call, request->vote), request);
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
    evl_pipe_withdraw(evl_call_pipe(call, request->vote), request);
    query_fail(request, why.status);
    query_decide(call, why.words);
}

const struct request_ops evl_query_requests = {query_take, query_answer, NULL, NULL, query_away, query_submit_anew};

/* --- The calls ---------------------------------------------------------------------------------------------------- */

static void query_begin(struct call *call) {
    const struct connection *connection;
    const char *words = "";

    query_doubt(call);
    for (unsigned i = 0; i < call->count; i++) {
        evl_deployment_route(call->lock->config->deployment, &call->requests[i], evl_handle_key(call->lock));
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

/* What the handle looks for on the servers, and what it has not got and need not ask for. It has a token or a place, or
 * neither, and never both. False: out of memory. */
static bool query_copy_sought(struct call *call) {
    struct tenure *tenure = evl_cohort_standing(call->lock);
    struct bytes sought = {NULL, 0};
    char text[WAITER_SIZE];
    struct waiter waiter;

    if (!evl_lock_holds(call->lock))
        call->query.asked &= ~(unsigned)EVLOCK_QUERY_OWNED;
    if (!tenure || !evl_lease_in_line(evl_tenure_lease(tenure)))
        call->query.asked &= ~(unsigned)EVLOCK_QUERY_PLACE;
    if (call->query.asked & EVLOCK_QUERY_PLACE) {
        waiter = evl_tenure_waiter(tenure);
        sought = (struct bytes){text, evl_wire_waiter(text, evl_tenure_token(tenure), &waiter)};
    } else if (call->query.asked & EVLOCK_QUERY_OWNED) {
        sought = evl_tenure_token(tenure);
    }
    if (!sought.data)
        return true;
    call->query.sought = evl_dup(sought.data, sought.len);
    call->query.sought_len = sought.len;
    return call->query.sought;
}

/* A call with room for the nodes' answers, and what is to be looked for. */
static struct call *query_new(evlock *lock, const struct call_sort *sort, unsigned what, void *arg) {
    struct call *call = evl_call_new(lock, sort, arg);

    if (!call)
        return NULL;
    evl_call_ask(call, REQUEST_QUERY);
    call->query.asked = what;
    call->query.answer.holder = "";
    call->query.findings = evl_alloc(call->count * sizeof(struct finding));
    if (call->query.findings && query_copy_sought(call))
        return call;
    evl_call_drop(call);
    return NULL;
}

static struct trouble query_validate(const evlock *lock, unsigned what, evlock_query_cb cb, struct words *words) {
    struct trouble trouble = evl_lock_validate(lock);

    if (trouble.status != EVLOCK_OK)
        return trouble;
    if (!cb)
        return (struct trouble){EVLOCK_EINVAL, "a query needs a callback"};
    if (what == 0)
        return (struct trouble){EVLOCK_EINVAL, "the query asks for nothing"};
    if (what & ~ALL_PARTS)
        return evl_trouble(words, EVLOCK_EINVAL, "this library does not know %#x of what a query asks for",
                           what & ~ALL_PARTS);
    if (what & QUEUE_PARTS && lock->config->deployment->votes > 1)
        return (struct trouble){EVLOCK_EQUEUE, "several nodes have no queue in common"};
    return evl_no_trouble;
}

int evlock_query(evlock *lock, unsigned what, evlock_query_cb cb, void *arg) {
    struct call *call;
    struct words words;
    struct trouble trouble = query_validate(lock, what, cb, &words);

    if (trouble.status != EVLOCK_OK)
        return evl_report(trouble);
    call = query_new(lock, &sort_query, what, arg);
    if (!call)
        return evl_fail(EVLOCK_ENOMEM, "no memory for a query");
    call->query_cb = cb;
    if (call->query.asked)
        query_begin(call);
    else
        query_end_answered(call, NULL);
    return evl_report(evl_no_trouble);
}

int evlock_break(evlock *lock, evlock_cb cb, void *arg) {
    struct call *call;
    struct trouble trouble = evl_lock_validate(lock);

    if (trouble.status != EVLOCK_OK)
        return evl_report(trouble);
    call = query_new(lock, &sort_break, 0, arg);
    if (!call)
        return evl_fail(EVLOCK_ENOMEM, "no memory for a break");
    call->cb = cb;
    evl_handle_log(lock, EVLOCK_LOG_INFO, "breaking");
    query_begin(call);
    return evl_report(evl_no_trouble);
}
