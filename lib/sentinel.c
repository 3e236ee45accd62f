/* Sentinels; see sentinel.h. */
#include "sentinel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "memory.h"

static const char switched[] = "+switch-master";

static struct sentinel *sentinel_that_asks(struct connection *connection) {
    return EVL_OWNER(struct sentinel, asks.connection, connection);
}

static struct sentinel *sentinel_that_hears(struct connection *connection) {
    return EVL_OWNER(struct sentinel, hears.connection, connection);
}

static void sentinel_say(struct sentinel *sentinel, int status, const char *words) {
    const struct sentinel_word word = {
        .trouble = {status, words}, .epoch = sentinel->epoch, .host = sentinel->host, .port = sentinel->port};

    sentinel->status = status;
    sentinel->hooks->said(sentinel, &word);
}

/* --- The questions ------------------------------------------------------------------------------------------------ */

static char *sentinel_write_question(const char *verb, const char *master) {
    size_t size = strlen(verb) + strlen(master) + 64;
    char *text = evl_alloc(size);

    if (text)
        snprintf(text, size, "*3\r\n$8\r\nSENTINEL\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n", strlen(verb), verb, strlen(master),
                 master);
    return text;
}

bool evl_sentinel_write_questions(const char *master, char **ret_about, char **ret_address) {
    *ret_about = sentinel_write_question("MASTER", master);
    *ret_address = sentinel_write_question("GET-MASTER-ADDR-BY-NAME", master);
    return *ret_about && *ret_address;
}

/* The epoch is asked for before and after the address: they belong together if it did not change between. A Sentinel
 * that reads nothing is asked no more before it does, whatever it answers or tells. */
void evl_sentinel_ask(struct sentinel *sentinel) {
    const char *const questions[] = {sentinel->about, sentinel->address, sentinel->about};
    struct connection *connection = &sentinel->asks.connection;
    int64_t now = evl_turn_now(connection->turn);

    sentinel->stale = true;
    if (sentinel->unanswered > 0 || !evl_connection_takes(connection))
        return;
    sentinel->stale = false;
    sentinel->epoch = -1;
    sentinel->named = false;
    for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]) && evl_connection_is_usable(connection); i++) {
        evl_connection_send(connection, sentinel, (struct bytes){questions[i], strlen(questions[i])}, now);
        sentinel->unanswered++;
    }
}

/* --- The answers -------------------------------------------------------------------------------------------------- */

/* Of a list of names and values. A number that is none is none that was said. */
static int64_t sentinel_read_epoch(const struct reply *reply) {
    char *end;

    for (size_t i = 0; i + 1 < reply->len; i += 2) {
        if (strcmp(reply->words[i], "config-epoch") != 0)
            continue;
        int64_t epoch = strtoll(reply->words[i + 1], &end, 10);
        return *end || epoch < 0 ? -1 : epoch;
    }
    return -1;
}

static void sentinel_read_address(struct sentinel *sentinel, const struct reply *reply) {
    char *end;

    if (reply->len != 2 || strlen(reply->words[0]) >= sizeof(sentinel->host))
        return;
    sentinel->port = strtoll(reply->words[1], &end, 10);
    sentinel->named = !*end && sentinel->port > 0;
    memcpy(sentinel->host, reply->words[0], strlen(reply->words[0]) + 1);
}

/* The answer to the question whose turn it is, as far as it is one. */
static void sentinel_read(struct sentinel *sentinel, const struct reply *reply) {
    int64_t epoch = sentinel_read_epoch(reply);

    switch (sentinel->unanswered) {
    case 2:
        sentinel->epoch = epoch;
        break;
    case 1:
        sentinel_read_address(sentinel, reply);
        break;
    default:
        sentinel->stale |= epoch != sentinel->epoch;
        break;
    }
}

/* The last answer stands for all. */
static void sentinel_conclude(struct sentinel *sentinel, const struct reply *reply) {
    if (reply->error == ERROR_NO_MASTER) {
        sentinel_say(sentinel, EVLOCK_EMASTER, reply->text);
    } else if (reply->type == REPLY_ERROR) {
        sentinel_say(sentinel, evl_reply_meaning(reply->error).status, reply->text);
    } else if (sentinel->stale) {
        evl_sentinel_ask(sentinel);
    } else if (!sentinel->named || sentinel->epoch < 0) {
        evl_connection_break(&sentinel->asks.connection, EVLOCK_EPROTOCOL, "an answer that no Sentinel gives");
    } else {
        sentinel_say(sentinel, EVLOCK_OK, "");
    }
}

/* --- From the connection that asks -------------------------------------------------------------------------------- */

/* All that it knows of a master is a longer answer than any about a lock. */
static bool sentinel_greet(struct connection *connection) {
    evl_reply_guard_allow(&connection->guard, REPLY_WORDS_MAX);
    return evl_login_greet(connection);
}

static void sentinel_on_answered(struct connection *connection, void *of, const struct reply *reply, int64_t now) {
    struct sentinel *sentinel = of;

    (void)now;
    assert(sentinel->unanswered > 0);
    sentinel->unanswered--;
    connection->proved |= reply->type == REPLY_WORDS;
    if (reply->type == REPLY_WORDS)
        sentinel_read(sentinel, reply);
    if (sentinel->unanswered == 0)
        sentinel_conclude(sentinel, reply);
}

static bool sentinel_on_ended(struct connection *connection, int64_t now) {
    struct sentinel *sentinel = sentinel_that_asks(connection);

    (void)now;
    sentinel->unanswered = 0;
    return false;
}

/* There is nothing more to be told: that it is away is said when that begins. */
static bool sentinel_on_away(struct connection *connection, bool begins, int64_t now) {
    (void)begins, (void)now;
    sentinel_say(sentinel_that_asks(connection), connection->status, connection->error);
    return false;
}

/* It is listened to from the moment at which it can be asked: its first answer comes after it was. */
static void sentinel_on_asks_changed(struct connection *connection) {
    struct sentinel *sentinel = sentinel_that_asks(connection);

    if (connection->state == CONNECTION_READY)
        evl_sentinel_ask(sentinel);
}

static void sentinel_on_entered(struct login *login, bool settled) {
    (void)settled;
    evl_login_keep(login);
    evl_connection_return(&login->connection);
}

static void sentinel_on_writable(struct connection *connection, int64_t now) {
    struct sentinel *sentinel = sentinel_that_asks(connection);

    (void)now;
    if (sentinel->stale)
        evl_sentinel_ask(sentinel);
}

static const struct connection_hooks asks_hooks = {
    .greet = sentinel_greet,
    .greeted = evl_login_greeted,
    .answered = sentinel_on_answered,
    .writable = sentinel_on_writable,
    .lost = evl_login_lost,
    .ended = sentinel_on_ended,
    .away = sentinel_on_away,
    .changed = sentinel_on_asks_changed,
};

static const struct login_hooks asks_login_hooks = {.done = sentinel_on_entered};

/* --- From the connection that listens ----------------------------------------------------------------------------- */

/* "NAME OLD-HOST OLD-PORT NEW-HOST NEW-PORT". Which epoch it is of is not said, so it is asked. */
static bool sentinel_is_about(const struct sentinel *sentinel, const char *message) {
    size_t len = strlen(sentinel->master);

    return strncmp(message, sentinel->master, len) == 0 && message[len] == ' ';
}

/* What changed before it listened was not heard. */
static void sentinel_on_heard(struct connection *connection, const char *message) {
    struct sentinel *sentinel = sentinel_that_hears(connection);

    if (!message) {
        evl_login_keep(&sentinel->hears);
        evl_connection_return(connection);
        connection->proved = true;
    }
    if (!message || sentinel_is_about(sentinel, message))
        evl_sentinel_ask(sentinel);
}

/* That a Sentinel is away is said by the other connection. */
static bool sentinel_on_deaf(struct connection *connection, bool begins, int64_t now) {
    (void)begins, (void)now;
    connection->expected = sentinel_that_hears(connection)->asks.connection.state == CONNECTION_AWAY;
    return false;
}

static void sentinel_on_entered_to_hear(struct login *login, bool settled) {
    (void)settled;
    evl_connection_explain(&login->connection, NULL);
    evl_connection_listen(&login->connection, login->channel);
}

static const struct connection_hooks hears_hooks = {
    .greet = evl_login_greet,
    .greeted = evl_login_greeted,
    .heard = sentinel_on_heard,
    .lost = evl_login_lost,
    .away = sentinel_on_deaf,
};

static const struct login_hooks hears_login_hooks = {.done = sentinel_on_entered_to_hear};

/* --- The beginning ------------------------------------------------------------------------------------------------ */

static void sentinel_init_login(struct login *login, struct connections *all, unsigned index,
                                struct credentials *credentials, const struct url *url,
                                const struct connection_hooks *hooks, const struct login_hooks *login_hooks) {
    evl_connection_init(&login->connection, all, index, url, hooks);
    evl_login_init(login, credentials, login_hooks);
    login->connection.called = "sentinel";
    login->role = LOGIN_TO_SENTINEL;
}

void evl_sentinel_init(struct sentinel *sentinel, struct connections *all, unsigned index,
                       struct credentials *credentials, const struct sentinel_hooks *hooks) {
    sentinel->hooks = hooks;
    sentinel_init_login(&sentinel->asks, all, index, credentials, &sentinel->url, &asks_hooks, &asks_login_hooks);
    sentinel_init_login(&sentinel->hears, all, index, credentials, &sentinel->url, &hears_hooks, &hears_login_hooks);
    sentinel->hears.channel = switched;
}

void evl_sentinel_start(struct sentinel *sentinel) {
    evl_connection_start(&sentinel->asks.connection);
    evl_connection_start(&sentinel->hears.connection);
}
