/* Pipes; see pipe.h. */
#include "pipe.h"

#include <string.h>

#include "batch.h"
#include "check.h"
#include "hash_tag.h"
#include "memory.h"
#include "prefetch.h"

void evl_pipe_init(struct pipe *pipe, const struct request_ops *const ops[REQUEST_KINDS]) {
    pipe->ops = ops;
    TAILQ_INIT(&pipe->waiting);
    TAILQ_INIT(&pipe->flying);
}

static int64_t pipe_now_of(const struct pipe *pipe) {
    return evl_turn_now(pipe->login.connection.turn);
}

static const struct request_ops *pipe_ops_of(const struct pipe *pipe, const struct request *request) {
    return pipe->ops[request->kind];
}

static void pipe_break_connection(struct pipe *pipe, int status, const char *words) {
    evl_connection_break(&pipe->login.connection, status, words);
}

/* --- Scripts that are not there ----------------------------------------------------------------------------------- */

/* A script that is missing is loaded, and the command sent again by its owner; the second time in a row it is sent with
 * the script in it; a third time, of which no server can be thought, the owner is told. The refusal of a batch counts
 * for each of its members, whoever they are sent with next; one load serves all. */
static struct reply pipe_mend_noscript(struct pipe *pipe, struct request *request, const struct reply *reply) {
    struct login *login = &pipe->login;

    request->older = (request->flying - 1U) & 3U;
    switch (request->noscripts++) {
    case 0:
        if (!evl_login_load_scripts(login))
            pipe_break_connection(pipe, EVLOCK_ENOMEM, "hiredis could not queue a command");
        return *reply;
    case 1:
        evl_login_spell(login, login->server.load_error[0] ? login->server.load_error
                                                           : "those that were loaded are not there");
        return *reply;
    default:
        request->noscripts = 0;
        return evl_reply_instead(ERROR_FOR_NOW, "TRYAGAIN the server keeps losing its scripts");
    }
}

/* Who may not send a digest may be allowed to send the script itself: as if the script were missing. */
static struct reply pipe_mend_no_right(struct pipe *pipe, struct request *request, const struct reply *reply) {
    if (request->noscripts > 0) {
        request->noscripts = 0;
        return *reply;
    }
    request->noscripts = 2;
    evl_login_spell(&pipe->login, reply->text);
    return evl_reply_instead(ERROR_NOSCRIPT, "NOSCRIPT");
}

/* A script that may not read the clock has done nothing. It is sent again, behind the question for the clock, and when
 * that is known, with it. */
static struct reply pipe_mend_noclock(struct pipe *pipe, struct request *request, const struct reply *reply) {
    const char *why = reply->text + strlen("NOCLOCK");

    while (*why == ' ')
        why++;
    if (evl_login_bring_clock(&pipe->login, why) && request->noscripts < 2) {
        request->noscripts++;
        return *reply;
    }
    request->noscripts = 0;
    if (evl_login_has_no_clock(&pipe->login))
        return evl_reply_instead(ERROR_NO_CLOCK, "NOTIME the server gives its clock neither to scripts nor by TIME");
    return evl_reply_of(why);
}

/* Who may not send scripts whole may be allowed to load them by the next time. */
static void pipe_note_refusal(struct login *login, const struct reply *reply) {
    if (!login->server.spells || !evl_reply_is_lacking(evl_reply_meaning(reply->error)))
        return;
    if (reply->error == ERROR_NO_EVAL)
        evl_login_lacks(login, EVLOCK_MISSING_SCRIPTS, reply->text);
    login->server.spells = login->server.lacks_evalsha;
}

/* What the owner of a request is told in place of an error: that may be mended. */
static struct reply pipe_mend(struct pipe *pipe, struct request *request, const struct reply *reply) {
    switch (reply->error) {
    case ERROR_NOSCRIPT:
        return pipe_mend_noscript(pipe, request, reply);
    case ERROR_NOCLOCK:
        return pipe_mend_noclock(pipe, request, reply);
    case ERROR_NO_EVALSHA:
        return pipe_mend_no_right(pipe, request, reply);
    default:
        request->noscripts = 0;
        pipe_note_refusal(&pipe->login, reply);
        return *reply;
    }
}

/* --- The way back ------------------------------------------------------------------------------------------------- */

static void pipe_land(struct pipe *pipe, struct request *request) {
    assert(request->flying > 0 && !request->batch && !request->waiting);
    if (--request->flying == 0)
        TAILQ_REMOVE(&pipe->flying, request, link);
}

static void pipe_tell(struct pipe *pipe, struct request *request, const struct reply *reply, int64_t now) {
    pipe_land(pipe, request);
    if (!pipe_ops_of(pipe, request)->answer(request, reply, now))
        pipe_break_connection(pipe, EVLOCK_EPROTOCOL, "a reply that the command cannot have");
}

/* Only the server's own words say where a key is. What is sent again for want of a script says nothing of that, and
 * ends no row of answers that sent it elsewhere. */
static void pipe_route(struct pipe *pipe, struct request *request, const struct reply *error, struct reply *told,
                       int64_t now) {
    if (evl_reply_meaning(told->error).verdict == LEASE_AGAIN)
        return;
    if (told->text == error->text)
        *told = pipe->routes->redirect(pipe, request, error, now);
    else
        request->turns = 0;
}

/* An error may be mended, and one server may send commands on to another. Never inline, so that most answers need no
 * room on the stack for it. */
__attribute__((noinline)) static void pipe_answer_error(struct pipe *pipe, struct request *request,
                                                        const struct reply *error, int64_t now) {
    struct reply told = *error;

    if (request->older > 0) /* it was sent before that was mended */
        request->older--;
    else
        told = pipe_mend(pipe, request, error);
    if (pipe->routes)
        pipe_route(pipe, request, error, &told, now);
    pipe_tell(pipe, request, &told, now);
    if (pipe->routes)
        pipe->routes->redirected(pipe);
}

/* To the oldest command of a request. */
static void pipe_answer(struct pipe *pipe, struct request *request, const struct reply *reply, int64_t now) {
    if (reply->type == REPLY_ERROR) {
        pipe_answer_error(pipe, request, reply, now);
        return;
    }
    request->turns = 0;
    if (request->older > 0)
        request->older--;
    else if (reply->type != REPLY_AGAIN)
        request->noscripts = 0;
    pipe_tell(pipe, request, reply, now);
}

/* A batch that is refused because of one of them, or because they are together: each is asked for anew, alone or with
 * those that are in one place with it for certain. */
static bool pipe_parts_batch(struct login *login, const struct reply *reply) {
    bool scattered = reply->type == REPLY_ERROR && evl_reply_is_scattered(reply->error);

    if (!evl_batch_is_refused(reply) && !(scattered && !login->server.renews_by_tag))
        return false;
    if (scattered && !login->server.renews_by_tag)
        login->server.renews_by_tag = true;
    else
        login->server.renews_many = false;
    evl_login_lacks(login, EVLOCK_MISSING_BATCHES, reply->text);
    return true;
}

/* A request flies until it is answered. So the next member is still there when one is, which may be gone by that, the
 * first as well. */
static void pipe_answer_batch(struct pipe *pipe, struct request *first, const struct reply *reply, int64_t now) {
    static const struct reply again = {.type = REPLY_AGAIN};
    struct request *member = first, *next;
    unsigned count = first->batch;
    size_t back = first->back;
    struct reply own;

    if (pipe_parts_batch(&pipe->login, reply))
        reply = &again;
    first->batch = 0;
    for (unsigned i = 0; i < count; i++, member = next) {
        next = TAILQ_NEXT(member, link);
        if (next && TAILQ_NEXT(next, link))
            evl_prefetch(TAILQ_NEXT(next, link), -(ptrdiff_t)back, back + CACHE_LINE);
        own = evl_batch_part(reply, i, count);
        pipe_answer(pipe, member, &own, now);
    }
}

void evl_pipe_answered(struct connection *connection, void *of, const struct reply *reply, int64_t now) {
    struct pipe *pipe = evl_pipe_of(connection);
    struct request *request = of;
    struct reply_meaning meaning;

    assert(request->flying > 0);
    if (reply->type != REPLY_ERROR)
        connection->proved = true;
    else if ((meaning = evl_reply_meaning(reply->error)).reconnect)
        pipe_break_connection(pipe, meaning.status, reply->text);
    if (request->batch)
        pipe_answer_batch(pipe, request, reply, now);
    else
        pipe_answer(pipe, request, reply, now);
    evl_pipe_send_waiting(pipe, now);
}

/* Some waiting requests more are told; what is queued meanwhile comes behind. Where some were withdrawn, others are
 * told again, which changes nothing. */
bool evl_pipe_away(struct connection *connection, bool begins, int64_t now) {
    struct pipe *pipe = evl_pipe_of(connection);
    struct request *request;

    if (begins)
        pipe->untold = pipe->waiting_count;
    for (int i = 0; !begins && i < TOLD_A_RING && pipe->untold > 0; i++) {
        pipe->untold--;
        if (!(request = TAILQ_FIRST(&pipe->waiting)))
            continue;
        TAILQ_REMOVE(&pipe->waiting, request, link);
        TAILQ_INSERT_TAIL(&pipe->waiting, request, link);
        pipe_ops_of(pipe, request)->away(request, (struct trouble){connection->status, connection->error}, now);
    }
    return pipe->untold > 0;
}

/* The owner may go with its last answer, and queues nothing here before it. */
static void pipe_lose(struct pipe *pipe, struct request *request, const struct reply *reply, int64_t now) {
    unsigned count = request->flying;

    TAILQ_REMOVE(&pipe->flying, request, link);
    request->flying = 0;
    request->noscripts = 0;
    request->older = 0;
    request->batch = 0;
    while (count-- > 0)
        pipe_ops_of(pipe, request)->answer(request, reply, now);
}

bool evl_pipe_ended(struct connection *connection, int64_t now) {
    struct reply reply = {.type = REPLY_LOST, .text = connection->error, .len = strlen(connection->error)};
    struct pipe *pipe = evl_pipe_of(connection);
    struct request *request;

    for (int i = 0; i < TOLD_A_RING && (request = TAILQ_FIRST(&pipe->flying)); i++)
        pipe_lose(pipe, request, &reply, now);
    evl_check(evl_pipe_check(pipe));
    return !TAILQ_EMPTY(&pipe->flying);
}

/* --- The way out -------------------------------------------------------------------------------------------------- */

static bool pipe_may_send(const struct pipe *pipe) {
    const struct connection *connection = &pipe->login.connection;

    return evl_connection_takes(connection) &&
           (pipe->parting || connection->unanswered < connection->config->max_inflight);
}

static void pipe_fly(struct pipe *pipe, struct request *request) {
    assert(!request->waiting);
    if (request->flying++ == 0)
        TAILQ_INSERT_TAIL(&pipe->flying, request, link);
}

static void pipe_send_command(struct pipe *pipe, struct request *request, struct command *command, int64_t now) {
    struct connection *connection = &pipe->login.connection;
    char *text;
    size_t len;

    if (!pipe->login.server.spells || !command->script) {
        evl_connection_send(connection, request, evl_command_text(command), now);
    } else if ((text = evl_command_spelled(command, &len))) {
        evl_connection_send(connection, request, (struct bytes){text, len}, now);
        evl_free(text);
    } else {
        pipe_break_connection(pipe, EVLOCK_ENOMEM, "hiredis could not queue a command");
    }
}

static void pipe_send_alone(struct pipe *pipe, struct request *request, int64_t now) {
    struct command command;

    if (pipe_ops_of(pipe, request)->take(request, now, &command)) {
        pipe_fly(pipe, request);
        if (request->asking && !evl_login_ask_for_coming(&pipe->login))
            pipe_break_connection(pipe, EVLOCK_ENOMEM, "hiredis could not queue a command");
        else
            pipe_send_command(pipe, request, &command, now);
    }
    request->asking = false;
}

/* Takes a request that waits, if it wants to be renewed and the batch has room for it. What waits has nothing
 * unanswered, so it flies right behind the one that was taken before. */
static bool pipe_take_into(struct batch *batch, struct pipe *pipe, struct request *request, int64_t now) {
    const struct request_ops *ops = request ? pipe_ops_of(pipe, request) : NULL;
    struct renewal *place = evl_batch_place(batch);

    if (!place || !ops || !ops->join || request->asking || !ops->join(request, now, place))
        return false;
    assert(!request->flying);
    evl_batch_add(batch);
    evl_pipe_withdraw(pipe, request);
    pipe_fly(pipe, request);
    return true;
}

/* Of the renewals at the front, takes those whose key has the hash tag of the first. */
static void pipe_take_kin_into(struct batch *batch, struct pipe *pipe, int64_t now) {
    struct request *request = TAILQ_FIRST(&pipe->waiting), *next;
    struct bytes tag = {"", 0}, key;

    for (unsigned i = 0; request && i < BATCH_MEMBERS; i++, request = next) {
        const struct request_ops *ops = pipe_ops_of(pipe, request);
        next = TAILQ_NEXT(request, link);
        if (!ops->renews || !ops->renews(request, &key))
            return;
        key = evl_hash_tag_of(key);
        if (i == 0)
            tag = key;
        if (tag.len == 0)
            return;
        if (key.len == tag.len && memcmp(key.data, tag.data, tag.len) == 0 &&
            !pipe_take_into(batch, pipe, request, now))
            return;
    }
}

/* Sends the renewals at the front of those that wait as one command, up to the first request that wants something else;
 * false if there are none, or the server cannot renew many at once: then each is sent alone. */
static bool pipe_send_batch(struct pipe *pipe, int64_t now) {
    struct request *first = TAILQ_FIRST(&pipe->waiting);
    struct command command;
    struct batch batch;

    if (!pipe->login.server.renews_many || first == TAILQ_LAST(&pipe->waiting, requests))
        return false;
    evl_batch_begin(&batch);
    if (pipe->login.server.renews_by_tag)
        pipe_take_kin_into(&batch, pipe, now);
    else
        while (pipe_take_into(&batch, pipe, TAILQ_FIRST(&pipe->waiting), now))
            ;
    if (batch.count == 0)
        return false;
    first->batch = (uint8_t)batch.count;
    evl_batch_write(&batch, pipe->login.in_cluster, &command);
    pipe_send_command(pipe, first, &command, now);
    return true;
}

void evl_pipe_submit_anew(struct pipe *pipe, int64_t now) {
    size_t count = pipe->waiting_count;
    struct request *request;

    while (count-- > 0 && (request = TAILQ_FIRST(&pipe->waiting))) {
        evl_pipe_withdraw(pipe, request);
        pipe_ops_of(pipe, request)->submit(request, now);
    }
}

void evl_pipe_send_waiting(struct pipe *pipe, int64_t now) {
    struct request *request;

    pipe->gathered = 0;
    while (pipe_may_send(pipe) && (request = TAILQ_FIRST(&pipe->waiting))) {
        if (pipe_send_batch(pipe, now))
            continue;
        evl_pipe_withdraw(pipe, request);
        pipe_send_alone(pipe, request, now);
    }
    evl_check(evl_pipe_check(pipe));
}

void evl_pipe_writable(struct connection *connection, int64_t now) {
    evl_pipe_send_waiting(evl_pipe_of(connection), now);
}

/* What follows an unanswered command of its own goes the same way, so as to arrive behind it. Others arrive behind what
 * was asked for before them: who has released a lock may ask for it by another handle. */
static bool pipe_must_wait(const struct pipe *pipe, const struct request *request) {
    if (!evl_connection_is_usable(&pipe->login.connection))
        return true;
    return !request->flying && (!pipe_may_send(pipe) || pipe->waiting_count > pipe->gathered);
}

static void pipe_hold_back(struct pipe *pipe, struct request *request) {
    assert(!request->flying);
    TAILQ_INSERT_TAIL(&pipe->waiting, request, link);
    request->waiting = true;
    pipe->waiting_count++;
}

void evl_pipe_submit(struct pipe *pipe, struct request *request, int64_t now) {
    const struct connection *connection = &pipe->login.connection;

    if (request->waiting || connection->state == CONNECTION_STOPPED)
        return;
    if (pipe_must_wait(pipe, request)) {
        assert(!request->flying || connection->broken || !connection->context);
        if (!request->flying)
            pipe_hold_back(pipe, request);
    } else if (connection->turn->gathering && pipe_ops_of(pipe, request)->join && !request->flying) {
        pipe_hold_back(pipe, request); /* for others to be sent with */
        if (++pipe->gathered == BATCH_MEMBERS)
            evl_pipe_send_waiting(pipe, now);
    } else {
        pipe_send_alone(pipe, request, now);
    }
    evl_check(evl_request_check(request));
}

void evl_pipe_follow(struct pipe *pipe, struct request *request, int64_t now) {
    assert(evl_connection_is_usable(&pipe->login.connection));
    pipe_send_alone(pipe, request, now);
    evl_check(evl_request_check(request));
}

void evl_pipe_withdraw(struct pipe *pipe, struct request *request) {
    if (!request->waiting)
        return;
    assert(pipe->waiting_count > 0);
    TAILQ_REMOVE(&pipe->waiting, request, link);
    request->waiting = false;
    pipe->waiting_count--;
    evl_check(evl_request_check(request));
}

/* --- Its end ------------------------------------------------------------------------------------------------------ */

/* A server that writes to a socket that is closed drops what it has not read by then, so it is to write no more. One
 * that did not tell its number would refuse this, too. */
void evl_pipe_part(struct pipe *pipe) {
    static const char quiet[] = "*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$3\r\nOFF\r\n";

    pipe->parting = true;
    if (pipe_may_send(pipe) && pipe->login.server.id)
        evl_connection_hush(&pipe->login.connection, (struct bytes){quiet, sizeof(quiet) - 1});
    evl_check(evl_pipe_check(pipe));
}

void evl_pipe_flush(struct pipe *pipe) {
    do {
        evl_pipe_send_waiting(pipe, pipe_now_of(pipe));
        evl_connection_flush(&pipe->login.connection);
    } while (pipe_may_send(pipe) && !TAILQ_EMPTY(&pipe->waiting));
}

/* --- Invariants --------------------------------------------------------------------------------------------------- */
#ifdef EVL_CHECKS

/* It waits, or it flies: it has one link for either. */
void evl_request_check(const struct request *request) {
    assert(!(request->waiting && request->flying));
    assert(request->older <= request->flying && request->noscripts <= 2);
    implies(request->batch, request->flying && request->batch <= BATCH_MEMBERS);
}

/* Nothing is said of one that is being lost: its answers come one by one. */
void evl_pipe_check(const struct pipe *pipe) {
    const struct connection *connection = &pipe->login.connection;
    bool none = TAILQ_EMPTY(&pipe->flying);

    assert((pipe->waiting_count == 0) == TAILQ_EMPTY(&pipe->waiting));
    implies(evl_connection_is_usable(connection), none == (connection->unanswered == 0));
    implies(!none, connection->state == CONNECTION_READY || connection->state == CONNECTION_ENDED ||
                       connection->state == CONNECTION_STOPPED);
    implies(pipe->gathered, connection->turn->gathering);
    assert(pipe->gathered < BATCH_MEMBERS);
    implies(connection->state == CONNECTION_AWAY, connection->telling == (pipe->untold > 0));
    implies(connection->state != CONNECTION_STOPPED, pipe->untold == 0 || connection->telling);
}

static void pipe_check_batch(const struct request *first) {
    const struct request *member = first;

    for (unsigned i = 1; i < first->batch; i++) {
        member = TAILQ_NEXT(member, link);
        assert(member && member->flying && !member->batch);
    }
}

/* Each member of a batch flies, and the command is one. */
static size_t pipe_count_flying(const struct pipe *pipe) {
    const struct request *request;
    size_t count = 0;

    TAILQ_FOREACH (request, &pipe->flying, link) {
        assert(request->flying);
        evl_request_check(request);
        pipe_check_batch(request);
        count += request->flying;
        count -= request->batch ? request->batch - 1U : 0;
    }
    return count;
}

static size_t pipe_count_waiting(const struct pipe *pipe) {
    const struct request *request;
    size_t count = 0;

    TAILQ_FOREACH (request, &pipe->waiting, link) {
        assert(request->waiting);
        evl_request_check(request);
        count++;
    }
    return count;
}

void evl_pipe_check_all(const struct pipe *pipe) {
    const struct connection *connection = &pipe->login.connection;
    size_t flying = pipe_count_flying(pipe);

    evl_pipe_check(pipe);
    assert(pipe_count_waiting(pipe) == pipe->waiting_count);
    implies(evl_connection_is_usable(connection), flying == connection->unanswered);
    /* What waits goes on with the next answer, or when the socket takes more. */
    implies(evl_connection_is_usable(connection) && pipe->waiting_count > 0,
            connection->unanswered > 0 || connection->transport.full);
}

#endif
