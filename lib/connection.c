/* Connections; see connection.h. */
#include "connection.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/async.h>

#include "check.h"
#include "minmax.h"
#include "reply_read.h"
#include "resolver.h"

/* Bytes: more is not queued before some of it is written. It keeps the server at work for a turn of the loop. */
#define QUEUE_SIZE 65536

/* A fifth of the command timeout, and no more than this, is silence. */
static const int64_t silence_most = 1000000;

static void connection_begin(struct connection *connection);

static void connection_wake_at(struct connection *connection, int64_t at) {
    evl_turn_wake(connection->turn, &connection->alarm, at);
}

static void connection_changed(struct connection *connection) {
    if (connection->hooks->changed)
        connection->hooks->changed(connection);
}

/* --- Words -------------------------------------------------------------------------------------------------------- */

/* What goes wrong with a name that is looked for has nothing to do with a port. */
static void connection_write_place(const struct connection *connection, char ret[EVLOCK_ADDRESS_SIZE]) {
    const struct url *url = connection->url;

    if (url->host && (connection->state == CONNECTION_RESOLVING || connection->late))
        snprintf(ret, EVLOCK_ADDRESS_SIZE, "%s", url->host);
    else
        evl_url_write_address(url, ret);
}

void evl_connection_log(const struct connection *connection, enum evlock_log_level level, const char *format, ...) {
    const struct log_sink *log = &connection->turn->log;
    char words[256], place[EVLOCK_ADDRESS_SIZE];
    va_list args;

    if (!evl_log_wants(log, level))
        return;
    va_start(args, format);
    vsnprintf(words, sizeof(words), format, args);
    va_end(args);
    connection_write_place(connection, place);
    evl_log(log, level, place[0] ? "%s %u (%s): %s" : "%s %u%s: %s", connection->called, connection->index, place,
            words);
}

void evl_connection_note(struct connection *connection, const char *words) {
    char place[EVLOCK_ADDRESS_SIZE];
    int len = 0;

    words = words ? words : "";
    connection_write_place(connection, place);
    if (place[0] && words[0])
        len = snprintf(connection->error, sizeof(connection->error), "%s: ", place);
    connection->why = connection->error + len;
    snprintf(connection->error + len, sizeof(connection->error) - (size_t)len, "%s", words);
}

void evl_connection_explain(struct connection *connection, const char *why) {
    connection->explained = why && connection->state == CONNECTION_CONNECTING;
    if (connection->explained)
        evl_connection_note(connection, why);
}

/* Another address of the server was connected to: what came of that says more than that this one fails. */
static bool connection_has_better_words(const struct connection *connection) {
    return connection->met && connection->state == CONNECTION_CONNECTING && !connection->transport.connected;
}

/* The server ended it. One that speaks TLS hangs up, without a word, on those who do not. Never inline, so that most
 * writes need no room on the stack for it. */
__attribute__((noinline)) static void connection_note_end(struct connection *connection, const char *words) {
    const struct url *url = connection->url;
    bool plain = connection->state == CONNECTION_CONNECTING && connection->transport.open && url->host && !url->tls;
    char said[192];

    snprintf(said, sizeof(said), "%s%s", words,
             plain && !connection->greeted ? "; if it speaks TLS, use rediss://" : "");
    evl_reply_drop_quotes(said);
    evl_connection_note(connection, said);
}

bool evl_connection_is_open(const struct connection *connection) {
    switch (connection->state) {
    case CONNECTION_CONNECTING:
    case CONNECTION_RETURNING:
    case CONNECTION_READY:
        return true;
    case CONNECTION_AWAY:
    case CONNECTION_RESOLVING:
    case CONNECTION_ENDED:
    case CONNECTION_IDLE:
    case CONNECTION_STOPPED:
        break;
    }
    return false;
}

/* Hiredis has freed the context by itself, or is about to. */
static bool connection_is_gone(const struct connection *connection) {
    return evl_connection_is_open(connection) && !connection->context;
}

/* What is to be told stands in `error`. */
static void connection_mark_broken(struct connection *connection, int status) {
    connection->broken = status;
    connection_wake_at(connection, 0);
    evl_check(evl_connection_check(connection));
}

void evl_connection_break(struct connection *connection, int status, const char *words) {
    assert(status != EVLOCK_OK && evl_connection_is_open(connection));
    if (connection->broken)
        return;
    evl_connection_note(connection, words);
    connection_mark_broken(connection, status);
}

void evl_connection_break_until(struct connection *connection, int status, const char *words, int64_t until) {
    if (!connection->broken)
        connection->reconnect.not_before = until;
    evl_connection_break(connection, status, words);
}

/* --- What it carries ---------------------------------------------------------------------------------------------- */

/* The connection that hiredis calls back, if there is anything to be done for it. */
static struct connection *connection_called_back(const redisAsyncContext *context, const void *reply) {
    struct connection *connection = context->data;

    if (!connection || connection->broken)
        return NULL; /* its owner says what becomes of what has not been answered */
    if (reply)
        return connection;
    connection->context = NULL;
    return NULL;
}

static void connection_on_reply(redisAsyncContext *context, void *raw, void *request) {
    struct connection *connection = connection_called_back(context, raw);
    const char *words[REPLY_WORDS_MAX];
    struct reply reply;

    if (!connection)
        return;
    assert(connection->state == CONNECTION_READY && connection->unanswered > 0);
    connection->since = connection->turn->now; /* hiredis has many replies from one reading of the socket */
    connection->unanswered--;
    evl_reply_read(raw, words, &reply);
    connection->hooks->answered(connection, request, &reply, connection->since);
}

static void connection_on_greeting(redisAsyncContext *context, void *raw, void *step) {
    struct connection *connection = connection_called_back(context, raw);
    const char *words[REPLY_WORDS_MAX];
    struct reply reply;

    if (!connection)
        return;
    assert(evl_connection_is_open(connection));
    connection->greeted = true;
    evl_reply_read(raw, words, &reply);
    connection->hooks->greeted(connection, (int)(intptr_t)step, &reply);
}

static void connection_on_message(redisAsyncContext *context, void *raw, void *unused) {
    struct connection *connection = connection_called_back(context, raw);
    const char *message;

    (void)unused;
    if (!connection)
        return;
    message = evl_reply_read_message(raw);
    if (connection->state == CONNECTION_CONNECTING && evl_reply_read_is_confirmation(raw))
        connection->hooks->heard(connection, NULL);
    else if (connection->state == CONNECTION_READY && message)
        connection->hooks->heard(connection, message);
}

bool evl_connection_greet(struct connection *connection, int step, int count, const char **words) {
    return redisAsyncCommandArgv(connection->context, connection_on_greeting, (void *)(intptr_t)step, count, words,
                                 NULL) == REDIS_OK;
}

bool evl_connection_greet_with(struct connection *connection, int step, struct bytes text) {
    return redisAsyncFormattedCommand(connection->context, connection_on_greeting, (void *)(intptr_t)step, text.data,
                                      text.len) == REDIS_OK;
}

void evl_connection_listen(struct connection *connection, const char *channel) {
    const char *words[] = {"SUBSCRIBE", channel};

    assert(connection->state == CONNECTION_CONNECTING && connection->hooks->heard);
    evl_reply_guard_listen(&connection->guard, channel, strlen(channel));
    if (redisAsyncCommandArgv(connection->context, connection_on_message, NULL, 2, words, NULL) != REDIS_OK)
        evl_connection_break(connection, EVLOCK_ENOMEM, "hiredis could not queue a command");
    evl_check(evl_connection_check(connection));
}

bool evl_connection_takes(const struct connection *connection) {
    return evl_connection_is_usable(connection) && !connection->transport.full && connection->unwritten < QUEUE_SIZE;
}

/* What is queued while the loop has called in is written when it is left, all at once: to wait until the loop says that
 * the socket is writable, as hiredis would, costs a turn and three system calls. */
static int connection_queue(struct connection *connection, void *request, struct bytes text) {
    void (*add_write)(void *data) = connection->context->ev.addWrite;
    int status;

    connection->unwritten += text.len;
    if (connection->turn->depth > 0)
        connection->context->ev.addWrite = NULL;
    status = redisAsyncFormattedCommand(connection->context, connection_on_reply, request, text.data, text.len);
    connection->context->ev.addWrite = add_write;
    return status;
}

/* Until an answer is late enough to ask elsewhere what may be the matter. */
static int64_t connection_span_of_silence(const struct connection *connection) {
    return evl_min(connection->config->command_timeout / 5, silence_most);
}

bool evl_connection_is_silent(const struct connection *connection, int64_t now) {
    return connection->state == CONNECTION_READY && connection->unanswered > 0 &&
           now - connection->since >= connection_span_of_silence(connection);
}

/* The next moment at which silence matters. */
static int64_t connection_silence_at(const struct connection *connection, int64_t now) {
    bool heeded = connection->hooks->silent && !evl_connection_is_silent(connection, now);

    return connection->since + (heeded ? connection_span_of_silence(connection) : connection->config->command_timeout);
}

void evl_connection_send(struct connection *connection, void *request, struct bytes text, int64_t now) {
    assert(request && evl_connection_is_usable(connection));
    if (connection->unanswered++ == 0) {
        connection->since = now;
        if (!connection->alarm.set)
            connection_wake_at(connection, connection_silence_at(connection, now));
    }
    if (connection_queue(connection, request, text) != REDIS_OK)
        evl_connection_break(connection, EVLOCK_ENOMEM, "hiredis could not queue a command");
    evl_check(evl_connection_check(connection));
}

void evl_connection_hush(struct connection *connection, struct bytes text) {
    (void)connection_queue(connection, NULL, text);
    evl_check(evl_connection_check(connection));
}

/* A server that hangs up has said why, if it refused something just before. */
static void connection_fail(struct connection *connection, struct trouble trouble) {
    bool hung_up = trouble.status == EVLOCK_EUNREACHABLE;

    if (trouble.status == EVLOCK_OK || !connection->context || connection->broken)
        return;
    if (!hung_up)
        evl_connection_note(connection, trouble.words);
    else if (!connection->explained)
        connection_note_end(connection, trouble.words);
    connection_mark_broken(connection, trouble.status);
}

static void connection_write_queued(struct connection *connection) {
    connection->unwritten = 0;
    connection_fail(connection, evl_transport_write(&connection->transport, connection->context));
}

void evl_connection_flush(struct connection *connection) {
    if (evl_connection_is_usable(connection))
        connection_write_queued(connection);
}

void evl_connection_write(struct connection *connection, size_t bytes) {
    if (connection->unwritten <= bytes)
        return;
    evl_connection_flush(connection);
    evl_connection_end_broken(connection);
}

/* --- From the loop ------------------------------------------------------------------------------------------------ */

static void connection_read_guarded(struct connection *connection) {
    struct trouble trouble = evl_transport_read(&connection->transport, connection->context);

    if (connection->context && evl_reply_guard_overrun(&connection->guard))
        evl_connection_break(connection, EVLOCK_EPROTOCOL, connection->guard.refused);
    connection_fail(connection, trouble);
}

static void connection_release_context(struct connection *connection, bool forked) {
    redisAsyncContext *context = connection->context;

    connection->context = NULL;
    evl_transport_end(&connection->transport);
    if (!context)
        return;
    context->data = NULL; /* the handlers that hiredis now calls know by this to do nothing */
    if (forked && evl_turn_loop_forks(connection->turn)) {
        (void)close(context->c.fd); /* first, as the loop's epoll may be the parent's: see loop.h */
        context->c.fd = -1;
    } else if (forked) {
        memset(&context->ev, 0, sizeof(context->ev));
    }
    evl_transport_wipe(context);
    redisAsyncFree(context);
}

/* Brackets of what a connection's socket is ready for. A forked child that runs its copy of the loop is not to be
 * called again for what it must not read: it lets go of the connection. */
static bool connection_enter(struct connection *connection) {
    if (!connection)
        return false;
    if (evl_turn_enter(connection->turn))
        return true;
    if (evl_turn_loop_forks(connection->turn))
        connection_release_context(connection, true);
    return false;
}

static void connection_log_tls(const struct connection *connection) {
    struct words words;

    if (!connection->url->tls || !evl_log_wants(&connection->turn->log, EVLOCK_LOG_DEBUG))
        return;
    evl_tls_describe(connection->transport.peer, &words);
    evl_connection_log(connection, EVLOCK_LOG_DEBUG, "speaks %s", words.text);
}

/* Whether bytes go both ways. Only then the login begins: a server that is not the one that is meant must not hear of
 * it. */
static bool connection_opens(struct connection *connection) {
    struct transport *transport = &connection->transport;

    if (transport->open)
        return true;
    connection_fail(connection, evl_transport_open(transport, &connection->context));
    connection->met |= transport->connected;
    if (!transport->open || connection->broken)
        return false;
    connection_log_tls(connection);
    if (!connection->hooks->greet(connection))
        evl_connection_break(connection, EVLOCK_ENOMEM, evlock_strerror(EVLOCK_ENOMEM));
    return !connection->broken;
}

void evlock_on_readable(redisAsyncContext *context) {
    struct connection *connection = context->data;

    if (!connection_enter(connection))
        return;
    /* Deadlines have been seen to, which may have ended it. */
    if (connection->context == context && !connection->broken && connection_opens(connection))
        connection_read_guarded(connection);
    evl_check(evl_connection_check(connection));
    evl_turn_leave(connection->turn);
}

/* A server that is full says so without being asked, and hangs up: to be read before a write fails for it. */
static bool connection_spoke_first(struct connection *connection) {
    int failed = 0;
    bool spoke;

    if (connection->state != CONNECTION_CONNECTING)
        return false;
    spoke = evl_transport_spoke(connection->context, &failed);
    if (failed)
        evl_connection_break(connection, EVLOCK_EUNREACHABLE, strerror(failed));
    return spoke;
}

void evlock_on_writable(redisAsyncContext *context) {
    struct connection *connection = context->data;

    if (!connection_enter(connection))
        return;
    if (connection->context == context && !connection->broken && connection_opens(connection) &&
        connection_spoke_first(connection))
        connection_read_guarded(connection);
    if (connection->context == context && connection->transport.open && !connection->broken)
        connection_write_queued(connection);
    if (connection->hooks->writable)
        connection->hooks->writable(connection, connection->turn->now);
    evl_check(evl_connection_check(connection));
    evl_turn_leave(connection->turn);
}

/* --- Its end ------------------------------------------------------------------------------------------------------ */

static enum evlock_log_level connection_level_of(const struct connection *connection, int status) {
    if (connection->expected)
        return EVLOCK_LOG_DEBUG;
    return status == EVLOCK_EAUTH || status == EVLOCK_ECERT || status == EVLOCK_EMASTER ? EVLOCK_LOG_ERROR
                                                                                        : EVLOCK_LOG_WARN;
}

/* Nothing is to be done before the next try. */
static void connection_back_off(struct connection *connection, int status) {
    struct turn *turn = connection->turn;
    struct trouble why = {status, connection->why};

    connection->state = CONNECTION_AWAY;
    connection->status = status;
    connection->retry_at =
        evl_reconnect_pause(&connection->reconnect, connection->config, why, evl_turn_now(turn), evl_turn_random(turn));
    connection->expected = false;
    connection->telling = connection->hooks->away && connection->hooks->away(connection, true, 0);
    connection_wake_at(connection, connection->telling ? 0 : connection->retry_at);
    evl_connection_log(connection, connection_level_of(connection, status),
                       "not connected: %s; next try in %" PRId64 " ms",
                       connection->error[0] ? connection->why : evlock_strerror(status),
                       (connection->retry_at - evl_turn_now(turn)) / 1000);
    connection_changed(connection);
}

/* Where the server is may not be known yet: it is moved there, or told why not. */
static bool connection_has_place(const struct connection *connection) {
    return connection->url->host || connection->url->path;
}

static void connection_cancel_resolution(struct connection *connection) {
    if (connection->resolution)
        evl_resolver_cancel(connection->turn, connection->resolution);
    connection->resolution = NULL;
    connection->late = false;
}

/* What ends it knows more than what ended it before. */
static void connection_goes(struct connection *connection, enum connection_next next) {
    if (next > connection->next)
        connection->next = next;
}

static void connection_end_served(struct connection *connection, int status) {
    bool at_once;

    connection->served = evl_turn_now(connection->turn);
    at_once =
        evl_reconnect_after(&connection->reconnect, connection->config,
                            (struct served){status, connection->served - connection->ready_at, connection->proved});
    if (at_once) {
        connection_goes(connection, NEXT_AT_ONCE);
        evl_connection_log(connection, connection->unanswered ? EVLOCK_LOG_WARN : EVLOCK_LOG_INFO,
                           "connection lost: %s", connection->why);
    }
    connection->status = status;
    if (connection->unanswered)
        connection->hooks->lost(connection);
    connection->unanswered = 0;
    connection->state = CONNECTION_ENDED;
    connection_wake_at(connection, 0);
}

static void connection_open_next(struct connection *connection);

static void connection_idle(struct connection *connection) {
    connection_cancel_resolution(connection);
    evl_addresses_free(&connection->addresses);
    connection->state = CONNECTION_IDLE;
    connection->next = NEXT_PAUSE;
    connection->reconnect.backoff = connection->config->backoff_min;
    connection_wake_at(connection, INT64_MAX);
    connection_changed(connection);
}

/* At another address of the name there may be another server. */
static bool connection_is_of_the_address(int status) {
    return status == EVLOCK_EUNREACHABLE || status == EVLOCK_EPROTOCOL;
}

/* The system may take longer for a name than there is time to connect, and would take as long for the next question. So
 * the one that is late goes on, and its answer is as good when it comes. */
static void connection_end(struct connection *connection, int status) {
    assert(status != EVLOCK_OK && (evl_connection_is_open(connection) || connection->state == CONNECTION_RESOLVING));
    connection->late = connection->state == CONNECTION_RESOLVING && connection_has_place(connection);
    connection_release_context(connection, false);
    connection->broken = EVLOCK_OK;
    connection->unwritten = 0;
    if (connection->state == CONNECTION_READY)
        connection_end_served(connection, status);
    else if (connection->next == NEXT_NOWHERE)
        connection_idle(connection);
    else if (connection->next == NEXT_AT_ONCE)
        connection_begin(connection);
    else if (evl_addresses_remain(&connection->addresses) && connection_is_of_the_address(status))
        connection_open_next(connection);
    else
        connection_back_off(connection, status);
}

void evl_connection_end_broken(struct connection *connection) {
    if (connection->state == CONNECTION_STOPPED)
        return;
    if (connection->broken)
        connection_end(connection, connection->broken);
    else if (connection_is_gone(connection))
        connection_end(connection, EVLOCK_EUNREACHABLE);
    evl_check(evl_connection_check(connection));
}

/* --- Its beginning ------------------------------------------------------------------------------------------------ */

static void connection_on_connect(const redisAsyncContext *context, int status) {
    struct connection *connection = context->data;

    if (!connection || status == REDIS_OK)
        return;
    connection->context = NULL; /* hiredis frees it */
    if (!connection_has_better_words(connection))
        evl_connection_note(connection, context->c.errstr);
}

static void connection_on_disconnect(const redisAsyncContext *context, int status) {
    struct connection *connection = context->data;
    bool nonsense = context->err == REDIS_ERR_PROTOCOL;

    (void)status;
    evl_transport_wipe(context);
    if (!connection)
        return;
    connection->context = NULL;
    if (connection->guard.refused)
        evl_connection_break(connection, EVLOCK_EPROTOCOL, connection->guard.refused);
    if (connection->broken)
        return;
    if (!connection->explained || nonsense)
        connection_note_end(connection, context->errstr && context->errstr[0] ? context->errstr : "connection closed");
    if (nonsense)
        connection_mark_broken(connection, EVLOCK_EPROTOCOL);
}

static redisAsyncContext *connection_new_context(struct connection *connection) {
    const char *address = evl_addresses_take(&connection->addresses);
    const struct url *url = connection->url;

    if (url->path)
        return redisAsyncConnectUnix(url->path);
    return redisAsyncConnect(address ? address : url->host, url->port);
}

/* The files of certificates may have changed to what cannot be used. */
static bool connection_begin_transport(struct connection *connection) {
    struct words words;
    struct trouble trouble =
        evl_transport_begin(&connection->transport, connection->url->host, connection->url->port, &words);

    if (trouble.status == EVLOCK_ETLS)
        evl_connection_log(connection, EVLOCK_LOG_WARN, "the certificates of before stay in use: %s", trouble.words);
    return trouble.status == EVLOCK_OK || trouble.status == EVLOCK_ETLS;
}

static bool connection_attach(struct connection *connection) {
    redisAsyncContext *context = connection->context;

    context->data = connection;
    fcntl(context->c.fd, F_SETFD, FD_CLOEXEC);
    if (!connection->url->path)
        redisEnableKeepAlive(&context->c);
    context->c.err = 0; /* a keep-alive that the system refuses is no reason not to connect */
    evl_reply_guard_raise(&connection->guard, context);
    if (!connection_begin_transport(connection) ||
        connection->turn->loop.ops->attach(connection->turn->loop.data, context) != 0)
        return false;
    redisAsyncSetConnectCallback(context, connection_on_connect);
    redisAsyncSetDisconnectCallback(context, connection_on_disconnect);
    return true;
}

static void connection_connect_within(struct connection *connection, int64_t time) {
    connection->since = evl_turn_now(connection->turn);
    connection->connect_by = connection->since + time;
    connection_wake_at(connection, connection->connect_by);
}

/* Opens a connection to the present address, or the next ones while that fails at once. Each has its share of the
 * time. */
static void connection_open_next(struct connection *connection) {
    int64_t share = evl_addresses_share(&connection->addresses, connection->config->connect_timeout);
    int status = EVLOCK_EUNREACHABLE;
    redisAsyncContext *context;

    connection_connect_within(connection, share);
    do {
        context = connection_new_context(connection);
        connection->context = context;
        if (context && !context->err) {
            connection->state = CONNECTION_CONNECTING;
            connection->greeted = connection->explained = false;
            connection->awaited = NULL;
            connection_changed(connection);
            if (connection_attach(connection))
                return;
            status = EVLOCK_ENOMEM;
        }
        if (!context)
            status = EVLOCK_ENOMEM;
        if (status == EVLOCK_ENOMEM)
            evl_connection_note(connection, evlock_strerror(EVLOCK_ENOMEM));
        else if (!connection->met)
            evl_connection_note(connection, context->errstr);
        connection_release_context(connection, false);
    } while (evl_addresses_remain(&connection->addresses));
    connection_back_off(connection, status);
}

static void connection_fail_to_begin(struct connection *connection, int status, const char *words) {
    evl_connection_note(connection, words);
    connection_back_off(connection, status);
}

/* It goes on at once, or when all have been told that it is away. */
static void connection_find_late(struct connection *connection) {
    connection->retry_at = evl_turn_now(connection->turn);
    connection_wake_at(connection, connection->retry_at);
}

static struct trouble connection_keep_answer(struct connection *connection, const char *const *addresses, size_t count,
                                             const char *error) {
    if (count == 0)
        return (struct trouble){EVLOCK_EUNREACHABLE, error};
    if (!evl_addresses_keep(&connection->addresses, addresses, count))
        return (struct trouble){EVLOCK_ENOMEM, evlock_strerror(EVLOCK_ENOMEM)};
    return evl_no_trouble;
}

static void connection_go_on_resolved(struct connection *connection, struct trouble trouble) {
    bool away = connection->state == CONNECTION_AWAY;

    if (trouble.status != EVLOCK_OK && away)
        evl_connection_note(connection, trouble.words);
    else if (trouble.status != EVLOCK_OK)
        connection_fail_to_begin(connection, trouble.status, trouble.words);
    else if (away)
        connection_find_late(connection);
    else
        connection_open_next(connection);
}

/* The alarm may have rung meanwhile, or the connection was moved: another resolution is not to be taken for this one.
 */
static void connection_on_resolved(const char *const *addresses, size_t count, const char *error, void *arg) {
    struct connection *connection = arg;
    struct turn *turn = connection->turn;

    connection->resolution = NULL;
    if (!evl_turn_enter(turn))
        return;
    if ((connection->state == CONNECTION_RESOLVING || connection->late) && !connection->resolution)
        connection_go_on_resolved(connection, connection_keep_answer(connection, addresses, count, error));
    evl_check(evl_connection_check(connection));
    evl_turn_leave(turn);
}

void evl_connection_has_none(struct connection *connection, struct trouble why) {
    assert(why.status != EVLOCK_OK);
    if (connection->state == CONNECTION_RESOLVING && !connection_has_place(connection))
        connection_fail_to_begin(connection, why.status, why.words);
    evl_check(evl_connection_check(connection));
}

static void connection_ask(struct connection *connection) {
    const char *why =
        evl_resolver_exists(connection->turn) ? "the name cannot be resolved now" : "this loop resolves no names";

    connection->resolution =
        evl_resolver_ask(connection->turn, connection->url->host, connection_on_resolved, connection);
    if (!connection->resolution)
        connection_fail_to_begin(connection, EVLOCK_EUNREACHABLE, why);
}

static void connection_begin(struct connection *connection) {
    bool known = connection_has_place(connection) && (connection->url->path || connection->url->literal);

    assert(!connection->context && !connection->broken);
    implies(connection->resolution, connection->late);
    connection->met = false;
    connection->next = NEXT_PAUSE;
    connection->reconnect.not_before = 0; /* it was of the server of before */
    if (!connection->late)
        evl_addresses_free(&connection->addresses);
    connection->late = false;
    if (known || connection->addresses.texts) {
        connection_open_next(connection);
        return;
    }
    connection->state = CONNECTION_RESOLVING;
    connection_changed(connection);
    connection_connect_within(connection, connection->config->connect_timeout);
    if (connection_has_place(connection) && !connection->resolution)
        connection_ask(connection);
}

static void connection_serve(struct connection *connection) {
    connection->state = CONNECTION_READY;
    connection->proved = false;
    connection->reconnect.nonsense = 0;
    connection->ready_at = connection->since = evl_turn_now(connection->turn);
    connection_wake_at(connection, INT64_MAX);
    connection_changed(connection);
}

void evl_connection_return(struct connection *connection) {
    assert(connection->state == CONNECTION_CONNECTING && !connection->broken);
    evl_connection_note(connection, "");
    connection->explained = false;
    if (!connection->hooks->returning) {
        connection_serve(connection);
        return;
    }
    connection->state = CONNECTION_RETURNING;
    connection_wake_at(connection, 0);
    evl_check(evl_connection_check(connection));
}

/* --- Its alarm ---------------------------------------------------------------------------------------------------- */

static void connection_end_late(struct connection *connection, const char *what, int64_t timeout, const char *hint) {
    char words[96];

    snprintf(words, sizeof(words), "no %s within %" PRId64 " ms%s", what, timeout / 1000, hint);
    if (!connection_has_better_words(connection))
        evl_connection_note(connection, words);
    connection_end(connection, EVLOCK_EUNREACHABLE);
}

static void connection_end_silent(struct connection *connection, int64_t now) {
    int64_t timeout = connection->config->command_timeout;
    int64_t limit = connection->since + timeout;

    if (connection->unanswered == 0)
        return;
    if (now < limit) {
        connection_wake_at(connection, connection_silence_at(connection, now));
        if (connection->hooks->silent && evl_connection_is_silent(connection, now))
            connection->hooks->silent(connection);
    } else if (!evl_turn_puts_off(connection->turn, &connection->alarm, connection->since, limit)) {
        connection_end_late(connection, "answer", timeout, "");
    }
}

static void connection_end_connecting(struct connection *connection) {
    const struct transport *transport = &connection->transport;
    const char *what = connection_has_place(connection) ? "connection" : "word of where the server is", *hint = "";

    if (evl_turn_puts_off(connection->turn, &connection->alarm, connection->since, connection->connect_by))
        return;
    if (connection->state == CONNECTION_RESOLVING && connection_has_place(connection)) {
        what = "address";
    } else if (connection->state == CONNECTION_CONNECTING && transport->open) {
        what = connection->awaited ? connection->awaited : "answer to the login";
    } else if (connection->state == CONNECTION_CONNECTING && transport->connected) {
        what = "TLS handshake";
        hint = "; if it speaks no TLS, use redis://";
    }
    connection_end_late(connection, what, connection->connect_by - connection->since, hint);
}

static void connection_go_on_away(struct connection *connection, int64_t now) {
    if (!connection->telling) {
        if (connection->next == NEXT_NOWHERE)
            connection_idle(connection);
        else
            connection_begin(connection);
        return;
    }
    connection->telling = connection->hooks->away(connection, false, now);
    connection_wake_at(connection, connection->telling ? now : connection->retry_at);
}

/* A connection that served is worth an immediate try; nobody needs to be told that it is away. */
static void connection_go_on_ended(struct connection *connection, int64_t now) {
    if (connection->hooks->ended && connection->hooks->ended(connection, now))
        connection_wake_at(connection, now);
    else if (connection->next == NEXT_NOWHERE)
        connection_idle(connection);
    else if (connection->next == NEXT_AT_ONCE)
        connection_begin(connection);
    else
        connection_back_off(connection, connection->status);
}

static void connection_go_on_returning(struct connection *connection, int64_t now) {
    if (connection->hooks->returning(connection, now))
        connection_wake_at(connection, now);
    else
        connection_serve(connection);
}

static void connection_go_on(struct connection *connection, int64_t now) {
    switch (connection->state) {
    case CONNECTION_AWAY:
        connection_go_on_away(connection, now);
        break;
    case CONNECTION_RESOLVING:
    case CONNECTION_CONNECTING:
        connection_end_connecting(connection);
        break;
    case CONNECTION_RETURNING:
        connection_go_on_returning(connection, now);
        break;
    case CONNECTION_READY:
        connection_end_silent(connection, now);
        break;
    case CONNECTION_ENDED:
        connection_go_on_ended(connection, now);
        break;
    case CONNECTION_IDLE:
    case CONNECTION_STOPPED:
        assert(connection->state != CONNECTION_STOPPED && connection->state != CONNECTION_IDLE); /* there is no alarm */
    }
}

void evl_connection_ring(struct alarm *alarm, int64_t now) {
    struct connection *connection = EVL_OWNER(struct connection, alarm, alarm);

    if (connection->broken || connection_is_gone(connection)) {
        evl_connection_end_broken(connection);
        return;
    }
    connection_go_on(connection, now);
    evl_check(evl_connection_check(connection));
}

/* --- From its owner ----------------------------------------------------------------------------------------------- */

void evl_connection_init(struct connection *connection, struct connections *all, unsigned index, const struct url *url,
                         const struct connection_hooks *hooks) {
    TAILQ_INSERT_TAIL(&all->list, connection, link);
    connection->turn = all->turn;
    connection->config = all->config;
    connection->hooks = hooks;
    connection->called = "node";
    connection->why = connection->error;
    connection->index = index;
    connection->url = url;
    connection->transport.tls = url->tls ? all->tls : NULL;
    connection->alarm.kind = ALARM_CONNECTION;
    evl_reconnect_reset(&connection->reconnect, all->config);
}

void evl_connection_start(struct connection *connection) {
    connection_begin(connection);
    evl_check(evl_connection_check(connection));
}

/* One that serves, or may soon, is ended first. */
static void connection_leave(struct connection *connection, enum connection_next next, const char *why) {
    if (!evl_connection_is_open(connection) && connection->state != CONNECTION_ENDED)
        return;
    connection_goes(connection, next);
    if (connection->state != CONNECTION_ENDED)
        evl_connection_break(connection, EVLOCK_EUNREACHABLE, why);
}

void evl_connection_move(struct connection *connection) {
    evl_reconnect_reset(&connection->reconnect, connection->config);
    if (connection->state == CONNECTION_AWAY) {
        connection_cancel_resolution(connection);
        connection->retry_at = 0;
        connection_wake_at(connection, 0);
    } else if (connection->state == CONNECTION_RESOLVING) {
        connection_cancel_resolution(connection);
        connection_begin(connection);
    } else {
        connection_leave(connection, NEXT_AT_ONCE, "another server is asked now");
    }
    evl_check(evl_connection_check(connection));
}

/* One that is away may never have begun. */
void evl_connection_rest(struct connection *connection) {
    if (connection->state == CONNECTION_AWAY && connection->telling)
        connection_goes(connection, NEXT_NOWHERE);
    else if (connection->state == CONNECTION_AWAY || connection->state == CONNECTION_RESOLVING)
        connection_idle(connection);
    else
        connection_leave(connection, NEXT_NOWHERE, "nothing is wanted of it now");
    evl_check(evl_connection_check(connection));
}

void evl_connection_want(struct connection *connection) {
    if (connection->state == CONNECTION_IDLE) {
        connection_begin(connection);
        evl_check(evl_connection_check(connection));
    } else if (connection->next == NEXT_NOWHERE) {
        connection->next = connection->state == CONNECTION_AWAY ? NEXT_PAUSE : NEXT_AT_ONCE;
    }
}

void evl_connection_stop(struct connection *connection, bool forked) {
    if (connection->state == CONNECTION_STOPPED)
        return;
    if (forked && !evl_turn_loop_forks(connection->turn))
        connection->resolution = NULL; /* it stays until the child exits */
    connection_cancel_resolution(connection);
    if (connection->state == CONNECTION_READY && connection->context && !forked)
        evl_transport_drain(connection->context);
    connection_release_context(connection, forked);
    connection->state = CONNECTION_STOPPED;
    connection_wake_at(connection, INT64_MAX);
    evl_addresses_free(&connection->addresses);
    evl_transport_free(&connection->transport);
    evl_check(evl_connection_check(connection));
}

/* --- All of them -------------------------------------------------------------------------------------------------- */

void evl_connections_init(struct connections *all, struct turn *turn, const struct client_config *config) {
    all->turn = turn;
    all->config = config;
    TAILQ_INIT(&all->list);
}

void evl_connections_remove(struct connections *all, struct connection *connection) {
    evl_connection_stop(connection, false);
    TAILQ_REMOVE(&all->list, connection, link);
}

void evl_connections_end_broken(struct connections *all) {
    struct connection *connection;

    TAILQ_FOREACH (connection, &all->list, link)
        evl_connection_end_broken(connection);
}

void evl_connections_write(struct connections *all, size_t bytes) {
    struct connection *connection;

    TAILQ_FOREACH (connection, &all->list, link)
        evl_connection_write(connection, bytes);
}

/* What a lost command leads to must find all of them stopped. */
void evl_connections_stop(struct connections *all, bool forked) {
    struct connection *connection;

    TAILQ_FOREACH (connection, &all->list, link)
        evl_connection_stop(connection, forked);
    TAILQ_FOREACH (connection, &all->list, link)
        while (connection->hooks->ended && connection->hooks->ended(connection, evl_turn_now(all->turn)))
            ;
}

/* --- Invariants --------------------------------------------------------------------------------------------------- */
#ifdef EVL_CHECKS

/* There is nothing of hiredis. */
static void connection_check_closed(const struct connection *connection) {
    assert(!connection->context && !connection->broken);
    assert(!connection->transport.open && !connection->transport.full);
    assert(connection->unwritten == 0 && connection->unanswered == 0);
}

static void connection_check_state(const struct connection *connection) {
    switch (connection->state) {
    case CONNECTION_AWAY:
        connection_check_closed(connection);
        assert(connection->alarm.set && connection->status != EVLOCK_OK);
        break;
    case CONNECTION_RESOLVING:
        connection_check_closed(connection);
        assert(connection->alarm.set &&
               !connection->addresses.texts); /* one that is just being told has no resolution */
        break;
    case CONNECTION_CONNECTING:
        assert(connection->alarm.set && connection->unanswered == 0 && connection->addresses.next > 0);
        break;
    case CONNECTION_RETURNING:
        assert(connection->alarm.set && connection->unanswered == 0 && connection->hooks->returning);
        break;
    case CONNECTION_READY:
        implies(connection->unanswered > 0, connection->alarm.set);
        implies(connection->unanswered > 0, connection->hooks->answered);
        break;
    case CONNECTION_ENDED:
        connection_check_closed(connection);
        assert(connection->alarm.set && connection->status != EVLOCK_OK);
        break;
    case CONNECTION_IDLE:
        connection_check_closed(connection);
        assert(!connection->addresses.texts && !connection->alarm.set);
        break;
    case CONNECTION_STOPPED:
        assert(!connection->context && !connection->addresses.texts && !connection->alarm.set);
        break;
    }
}

void evl_connection_check(const struct connection *connection) {
    size_t addresses = connection->addresses.count ? connection->addresses.count : 1;
    int64_t backoff = connection->reconnect.backoff;

    connection_check_state(connection);
    implies(connection->resolution, connection->state == CONNECTION_RESOLVING || connection->late);
    implies(connection->late, connection->state == CONNECTION_AWAY);
    implies(connection->broken, connection->alarm.set || connection->state == CONNECTION_STOPPED);
    implies(connection->next == NEXT_AT_ONCE, evl_connection_is_open(connection) ||
                                                  connection->state == CONNECTION_ENDED ||
                                                  connection->state == CONNECTION_STOPPED);
    implies(connection->next == NEXT_NOWHERE,
            connection->state != CONNECTION_IDLE && connection->state != CONNECTION_RESOLVING);
    implies(connection->telling, connection->state == CONNECTION_AWAY || connection->state == CONNECTION_STOPPED);
    implies(connection->explained, !evl_connection_is_usable(connection));
    assert(connection->addresses.next <= addresses);
    assert(backoff >= connection->config->backoff_min && backoff <= connection->config->backoff_max);
}

void evl_connections_check(const struct connections *all) {
    const struct connection *connection;

    TAILQ_FOREACH (connection, &all->list, link) {
        evl_connection_check(connection);
        implies(connection_is_gone(connection), connection->broken);
    }
}

#endif
