/* The server of the fuzz targets; see server.h. */
#include "server.h"

#include <limits.h>
#include <stdarg.h>

#include "input.h"
#include "wire.h"

enum { WORDS = 12 };

void server_begin(struct server *server) {
    memset(server->token, 0, sizeof(server->token));
    memset(server->waiters, 0, sizeof(server->waiters));
    server->joined = 0;
    server->piece = 0;
    for (unsigned i = 0; i < SERVER_NODES; i++) {
        sockets_listen(i, true);
        snprintf(server->urls[i], sizeof(server->urls[i]), "unix://" SOCKETS_FOLDER "%u?db=%u", i, i);
    }
    server->fence = UINT64_C(1000000000000000);
}

static const struct server_way *way = &(const struct server_way){socket_take, socket_put, socket_end};

void server_goes(const struct server_way *other_way) {
    way = other_way;
}

void server_hang_up(struct peer *peer) {
    way->end(peer->socket);
    requests_free(&peer->requests);
    peer->requests = (struct requests){0};
    peer->asked = 0;
    peer->socket = NULL;
}

/* --- What clients ask --------------------------------------------------------------------------------------------- */

static void welcome(struct server *server, unsigned node) {
    struct socket *socket;

    while ((socket = socket_accept(node))) {
        struct peer *peer = server->peers;
        while (peer < server->peers + SERVER_PEERS && peer->socket)
            peer++;
        if (peer == server->peers + SERVER_PEERS || socket_is_left(socket)) {
            socket_end(socket);
            continue;
        }
        peer->socket = socket;
        peer->node = node;
        peer->listens = peer->mumbled = false;
    }
}

static void keep_word(char *to, size_t size, const char *word, size_t len) {
    len = len < size - 1 ? len : size - 1;
    memcpy(to, word, len);
    to[len] = '\0';
}

static const char *script_name(const char *sha) {
    for (unsigned i = 0; i < evl_script_count; i++)
        if (strcmp(sha, evl_scripts[i].sha) == 0)
            return evl_scripts[i].name;
    return "";
}

static bool joins(const struct question *question) {
    return strcmp(question->verb, "EVALSHA") == 0 && strcmp(script_name(question->second), "join") == 0;
}

static bool looks(const struct question *question) {
    return strcmp(question->verb, "EVALSHA") == 0 && strcmp(script_name(question->second), "look") == 0;
}

static bool surveys(const struct question *question) {
    return strcmp(question->verb, "EVALSHA") == 0 && strcmp(script_name(question->second), "survey") == 0;
}

static bool renews_many(const struct question *question) {
    return strcmp(question->verb, "EVALSHA") == 0 && strcmp(script_name(question->second), "renew_many") == 0;
}

/* The token of SET, and of a script, which stands behind the keys, and behind the waiter that joins, or the ttl of many
 * renewals. */
static unsigned token_place(const struct question *question) {
    if (strcmp(question->verb, "SET") == 0)
        return 2;
    if (strcmp(question->verb, "EVALSHA") != 0)
        return WORDS;
    return 3 + question->keys + (joins(question) || renews_many(question));
}

/* "CHANNEL TICKET ...", who joins the queue of the lock. */
static void note_waiter(struct server *server, const char *key, size_t key_len, const char *text) {
    struct waiting *waiter = &server->waiters[server->joined++ % SERVER_WAITERS];

    memset(waiter, 0, sizeof(*waiter));
    keep_word(waiter->key, sizeof(waiter->key), key, key_len);
    check(sscanf(text, "%47s %23s", waiter->channel, waiter->ticket) == 2);
}

static void note_question(struct server *server, struct peer *peer, const struct requests *command) {
    struct question *question = &peer->questions[peer->asked++];
    const char *const *words = command->argv;
    unsigned token;

    check(command->argc > 0 && command->argc <= WORDS);
    *question = (struct question){0};
    keep_word(question->verb, sizeof(question->verb), words[0], command->lens[0]);
    if (command->argc > 1)
        keep_word(question->second, sizeof(question->second), words[1], command->lens[1]);
    question->keys = command->argc > 2 ? (unsigned)strtoul(words[2], NULL, 10) : 0;
    token = token_place(question);
    if (joins(question))
        note_waiter(server, words[3], command->lens[3], words[6]);
    if (token < (unsigned)command->argc)
        keep_word(question->token, sizeof(question->token), words[token], command->lens[token]);
    peer->listens |= strcmp(question->verb, "PUBSUB") == 0;
    if (question->token[0])
        memcpy(server->token, question->token, sizeof(server->token));
}

static void read_questions(struct server *server, struct peer *peer) {
    enum parsed parsed = PARSED_PART;

    while (peer->asked < SERVER_QUESTIONS && (parsed = requests_parse(&peer->requests)) == PARSED_COMMAND)
        note_question(server, peer, &peer->requests);
    check(parsed != PARSED_WRONG);
}

void server_turn(struct server *server) {
    char bytes[16384];
    size_t len;

    for (unsigned node = 0; node < SERVER_NODES; node++)
        welcome(server, node);
    for (struct peer *peer = server->peers; peer < server->peers + SERVER_PEERS; peer++) {
        if (!peer->socket)
            continue;
        while ((len = way->take(peer->socket, bytes, sizeof(bytes))) > 0)
            requests_add(&peer->requests, bytes, len);
        if (socket_is_left(peer->socket))
            server_hang_up(peer);
        else
            read_questions(server, peer);
    }
}

struct peer *server_peer(struct server *server, unsigned which) {
    unsigned count = 0;

    for (int i = 0; i < SERVER_PEERS; i++)
        count += server->peers[i].socket != NULL;
    if (count == 0)
        return NULL;
    which %= count;
    for (struct peer *peer = server->peers;; peer++)
        if (peer->socket && which-- == 0)
            return peer;
}

/* --- What it says ------------------------------------------------------------------------------------------------- */

static void send_pieces(struct server *server, struct peer *peer, const void *bytes, size_t len) {
    size_t piece = server->piece ? server->piece : len;

    for (size_t at = 0; at < len && peer->socket; at += piece) {
        way->put(peer->socket, (const char *)bytes + at, len - at < piece ? len - at : piece);
        if (server->piece)
            server->between();
    }
}

void server_say(struct server *server, struct peer *peer, const void *bytes, size_t len) {
    peer->mumbled = true;
    if (!peer->listens)
        server->said(peer->node, NULL);
    send_pieces(server, peer, bytes, len);
}

void server_flood(struct server *server, struct peer *peer, size_t len) {
    static char bytes[16384];
    size_t piece = server->piece;

    if (!bytes[0])
        memset(bytes, '1', sizeof(bytes));
    server->piece = sizeof(bytes);
    for (; len > 0 && peer->socket; len -= len < sizeof(bytes) ? len : sizeof(bytes))
        server_say(server, peer, bytes, len < sizeof(bytes) ? len : sizeof(bytes));
    server->piece = piece;
}

bool server_mumbles(const struct server *server, unsigned node) {
    const struct peer *peer;

    for (peer = server->peers; peer < server->peers + SERVER_PEERS; peer++)
        if (peer->socket && peer->node == node && peer->mumbled && !peer->listens)
            return true;
    return false;
}

static void say(struct server *server, struct peer *peer, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void say(struct server *server, struct peer *peer, const char *format, ...) {
    char text[1024];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    send_pieces(server, peer, text, strlen(text));
}

static void say_string(struct server *server, struct peer *peer, const char *text) {
    say(server, peer, "$%zu\r\n%s\r\n", strlen(text), text);
}

static void say_info(struct server *server, struct peer *peer, unsigned detail) {
    static const char *const uptimes[] = {"100000", "1", "0", "9223372036854775807", "-9223372036854775808"};
    char text[512];

    snprintf(text, sizeof(text),
             "# Server\r\nredis_version:%s\r\nrun_id:%038u%02u\r\nuptime_in_seconds:%s\r\nmaxmemory:%u\r\n"
             "maxmemory_policy:%s\r\nmaster_replid:%040u\r\n",
             detail % 7 < 6 ? "7.0.15" : "6.2.14", detail / 64, detail / 32 % 2 ? peer->node : 9 - peer->node,
             uptimes[detail % 5], detail / 16, detail % 2 ? "allkeys-lru" : "noeviction\x1b[2J", detail / 128);
    say_string(server, peer, text);
}

/* What holds a lock: a token, or what is longer than any command has room for. */
static void say_found(struct server *server, struct peer *peer, unsigned detail) {
    static char value[20000];

    if (!value[0])
        memset(value, 'v', sizeof(value) - 1);
    if (detail % 4 < 3) {
        say_string(server, peer, detail % 2 ? "a stranger's token" : server->token);
        return;
    }
    say(server, peer, "$%zu\r\n", strlen(value));
    send_pieces(server, peer, value, strlen(value));
    if (peer->socket)
        say(server, peer, "\r\n");
}

/* How a waiter stands: "TIME AHEAD LEFT". */
static void say_queued(struct server *server, struct peer *peer, unsigned detail) {
    static const char *const ahead[] = {"0", "1", "99", "9223372036854775807", "-1", "", "x"};
    static const char *const left[] = {"-1", "1", "30000", "9223372036854775807", "-2", "", "0 0"};
    char text[96];

    snprintf(text, sizeof(text), "%lld %s %s", detail == 255 ? LLONG_MAX : (long long)server->time,
             detail < 128 ? ahead[detail % 4] : ahead[detail % 7],
             detail < 128 ? left[detail / 4 % 4] : left[detail / 7 % 7]);
    say_string(server, peer, text);
}

/* How a lock stands: "LEFT WAITERS AHEAD VALUE". */
static void say_surveyed(struct server *server, struct peer *peer, const struct question *question, unsigned detail) {
    static const char *const left[] = {"30000", "-1", "0", "-2", "9223372036854775807", "-3", "x", ""};
    static const char *const queue[] = {"0 -1", "3 0", "3 2", "9223372036854775806 9223372036854775807", "-1 0", "3"};
    char text[160];

    snprintf(text, sizeof(text), "%s %s %s", detail < 128 ? left[detail % 4] : left[detail % 8],
             question->keys == 1 ? queue[0]
             : detail < 128      ? queue[detail / 4 % 3]
                                 : queue[detail / 8 % 6],
             detail / 16 % 4 ? server->token : "a stranger's token");
    say_string(server, peer, text);
}

/* Some names and where to go on: "CURSOR LEN NAME ...". */
static void say_listed(struct server *server, struct peer *peer, unsigned detail) {
    static const char *const pages[] = {
        "0",      "5",     "0 1 a",    "7 1 a 1 b",           "18446744073709551615 3 abc",
        "0 0 ",   "x 1 a", "0 2 a",    "0 99999999999999999", "0 1a",
        "0 1 a ", "",      "0 -1 abc", "0 8 a::fence 1 b"};

    say_string(server, peer, pages[detail % (detail < 128 ? 5 : 14)]);
}

/* A letter for each lock: all are renewed, but for one. */
static void say_renewed(struct server *server, struct peer *peer, unsigned keys, unsigned detail) {
    char letters[WORDS + 1] = "";

    check(keys > 0 && keys < WORDS);
    memset(letters, '1', keys);
    letters[detail / 4 % keys] = "1?0x"[detail % 4];
    say_string(server, peer, letters + (detail == 255));
}

/* What each script answers when all is well. */
static void say_script(struct server *server, struct peer *peer, const struct question *question, unsigned detail) {
    static const char *const ttls[] = {"30000", "1", "9223372036854775807", "-1", "100"};
    const char *name = script_name(question->second);

    if (strcmp(name, "release") == 0 || strcmp(name, "hand") == 0 || strcmp(name, "break") == 0)
        say(server, peer, ":1\r\n");
    else if (looks(question))
        say_found(server, peer, detail);
    else if (surveys(question))
        say_surveyed(server, peer, question, detail);
    else if (strcmp(name, "list") == 0)
        say_listed(server, peer, detail);
    else if (renews_many(question))
        say_renewed(server, peer, question->keys, detail);
    else if (strcmp(name, "join") == 0 && detail % 4 != 3)
        say_queued(server, peer, detail);
    else if (strcmp(name, "join") == 0 && detail % 8 == 3)
        say(server, peer, ":1\r\n");
    else if (strcmp(name, "join") == 0)
        say(server, peer, ":%llu\r\n", (unsigned long long)(server->fence += 1 - detail / 8 % 3));
    else if (strcmp(name, "fenced") == 0 || strcmp(name, "raise") == 0)
        say(server, peer, ":%llu\r\n", (unsigned long long)(server->fence += 1 - detail % 3));
    else
        say(server, peer, ":%s\r\n", ttls[detail % 5]);
}

static void say_yes(struct server *server, struct peer *peer, const struct question *question, unsigned detail) {
    const char *verb = question->verb;

    if (strcmp(verb, "INFO") == 0)
        say_info(server, peer, detail);
    else if (strcmp(verb, "CLIENT") == 0 || strcmp(verb, "WAIT") == 0)
        say(server, peer, ":%u\r\n", detail % 4 + 1);
    else if (strcmp(verb, "SCRIPT") == 0)
        say(server, peer, "$40\r\n%040u\r\n", 0);
    else if (strcmp(verb, "GET") == 0)
        say_found(server, peer, detail);
    else if (strcmp(verb, "PTTL") == 0)
        say(server, peer, ":%d\r\n", detail % 4 == 3 ? -1 : (int)detail * 100);
    else if (strcmp(verb, "EVALSHA") == 0)
        say_script(server, peer, question, detail);
    else if (strcmp(verb, "ZCARD") == 0 || strcmp(verb, "ZRANK") == 0)
        say(server, peer, ":%u\r\n", detail);
    else if (strcmp(verb, "PUBSUB") == 0)
        say(server, peer, "*2\r\n$%zu\r\n%s\r\n:0\r\n", strlen(question->token), question->token);
    else if (strcmp(verb, "PUBLISH") == 0)
        say(server, peer, ":0\r\n");
    else if (strcmp(verb, "SUBSCRIBE") == 0)
        say(server, peer, "*3\r\n$9\r\nsubscribe\r\n$%zu\r\n%s\r\n:1\r\n", strlen(question->second), question->second);
    else
        say(server, peer, "+OK\r\n");
}

static void say_no(struct server *server, struct peer *peer, const struct question *question) {
    const char *verb = question->verb;

    if (strcmp(verb, "SET") == 0 || strcmp(verb, "GET") == 0 || strcmp(verb, "ZRANK") == 0 || looks(question))
        say(server, peer, "$-1\r\n");
    else if (strcmp(verb, "PTTL") == 0)
        say(server, peer, ":-2\r\n");
    else if (surveys(question))
        say_string(server, peer, "-2 0 -1 ");
    else
        say(server, peer, ":0\r\n");
}

/* With those below, one of each kind that lib/reply.h has. */
static const char *seldom_error(unsigned detail) {
    static const char *const errors[] = {
        "NOCLOCK ERR not allowed from script",
        "NOCLOCK",
        "NOTIME",
        "FENCE",
        "DENIED",
        "ASK 1 127.0.0.1:1",
        "NOPERM 'evalsha'",
        "NOPERM 'eval'",
        "ERR WAIT cannot be used",
        "ERR max requests limit exceeded",
        "ERR non local key",
        "ERR same slot",
        "ERR wrong number of arguments",
        "ERR No such master",
        "STRANGE",
    };

    return errors[detail % (sizeof(errors) / sizeof(errors[0]))];
}

static void say_error(struct server *server, struct peer *peer, const struct question *question, unsigned detail) {
    static const char *const errors[] = {
        "NOSCRIPT No matching script",
        "LOADING",
        "BUSY",
        "MASTERDOWN",
        "TRYAGAIN",
        "CLUSTERDOWN",
        "OOM",
        "MISCONF",
        "NOREPLICAS",
        "READONLY",
        "ERR max number of clients reached",
        "MOVED 1 127.0.0.1:1",
        "CROSSSLOT",
        "NOAUTH",
        "WRONGPASS",
        "NOPERM",
        "ERR user executing the script can't run it",
        "WRONGTYPE",
        "ERR DB index",
        "ERR",
        "",
        "\x1b[2J\n\t\xff",
    };
    unsigned count = sizeof(errors) / sizeof(errors[0]);

    if (detail >= 230)
        say(server, peer, "-%s\r\n", seldom_error(detail));
    else if (detail % (count + 1) < count)
        say(server, peer, "-%s\r\n", errors[detail % (count + 1)]);
    else
        say(server, peer, "-ERR unknown command '%s', with args beginning with: '%s' '%s'\r\n", question->verb,
            question->second, question->token);
}

static void say_other(struct server *server, struct peer *peer, unsigned detail) {
    static const char *const others[] = {
        "+QUEUED\r\n",
        ":9223372036854775807\r\n",
        ":-9223372036854775808\r\n",
        "*0\r\n",
        "*-1\r\n",
        "$0\r\n\r\n",
        "*1\r\n*1\r\n",
        "*2147483647\r\n",
        ":-3\r\n",
        "*2\r\n+OK\r\n:1\r\n",
        ">2\r\n:1\r\n:1\r\n",
        "$512\r\n",
        "+OK",
        "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n",
        ":1\r\n:1\r\n:1\r\n:1\r\n",
        "$5\r\n1 0 1\r\n",
        "$20\r\n-9223372036854775808\r\n",
        "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n",
        "*3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:0\r\n",
    };

    say(server, peer, "%s", others[detail % (sizeof(others) / sizeof(others[0]))]);
}

/* Whether a yes to this can grant a lock; who joins is told mostly that it waits. */
static bool may_grant(const struct question *question, unsigned detail) {
    if (joins(question))
        return detail % 4 == 3;
    return strcmp(question->verb, "SET") == 0 || strcmp(question->verb, "EVALSHA") == 0 ||
           strcmp(question->verb, "WAIT") == 0;
}

void server_answer(struct server *server, struct peer *peer, enum server_answer how, unsigned detail) {
    struct question question;

    if (peer->asked == 0)
        return;
    question = peer->questions[0];
    memmove(peer->questions, peer->questions + 1, --peer->asked * sizeof(question));
    peer->mumbled |= how == ANSWER_OTHER; /* it may be more than one reply, or less */
    if (!peer->listens && (peer->mumbled || (how == ANSWER_YES && may_grant(&question, detail))))
        server->said(peer->node, NULL);
    switch (how) {
    case ANSWER_YES:
        say_yes(server, peer, &question, detail);
        break;
    case ANSWER_NO:
        say_no(server, peer, &question);
        break;
    case ANSWER_ERROR:
        say_error(server, peer, &question, detail);
        break;
    case ANSWER_OTHER:
        say_other(server, peer, detail);
        break;
    }
}

/* --- Grants to waiters ------------------------------------------------------------------------------------------- */

void server_forget(struct server *server, const char *key) {
    for (int i = 0; i < SERVER_WAITERS; i++)
        if (strcmp(server->waiters[i].key, key) == 0)
            server->waiters[i].over = true;
}

/* Whether it is the newest of its lock: the tickets of attempts before it are void. */
static bool is_newest(const struct server *server, const struct waiting *waiter) {
    for (unsigned i = 1; i <= SERVER_WAITERS; i++) {
        const struct waiting *other = &server->waiters[(server->joined - i) % SERVER_WAITERS];
        if (strcmp(other->key, waiter->key) == 0)
            return strcmp(other->ticket, waiter->ticket) == 0;
    }
    return false;
}

static struct peer *listener(struct server *server, unsigned which) {
    struct peer *peer;

    for (unsigned i = 0; i < SERVER_PEERS; i++)
        if ((peer = server_peer(server, which + i)) && peer->listens)
            return peer;
    return NULL;
}

/* Spoils a ticket, if so chosen; true: it is right. */
static bool write_ticket(char ticket[24], unsigned choice) {
    size_t len = strlen(ticket);

    if (choice == 13)
        ticket[len - 1] ^= 1;
    else if (choice == 14)
        ticket[0] = 'f';
    else if (choice == 15)
        ticket[len - 1] = '\0';
    return choice < 13;
}

void server_grant(struct server *server, const uint8_t *how, size_t len) {
    static const long long times[] = {0, 1, -1, LLONG_MAX, LLONG_MIN};
    unsigned what = len > 0 ? how[0] : 0, when = len > 1 ? how[1] : 0;
    const struct waiting *waiter = &server->waiters[(server->joined - 1 - what / 16 % 4) % SERVER_WAITERS];
    struct peer *peer = listener(server, what / 64);
    long long time = when < 5 ? times[when] : (long long)server->time + ((int)when - 64) * 1000;
    char ticket[24], text[128];
    bool right;

    if (!peer || !waiter->ticket[0])
        return;
    memcpy(ticket, waiter->ticket, sizeof(ticket));
    right = write_ticket(ticket, what % 16);
    if (what % 16 == 12) /* anything may follow the ticket */
        snprintf(text, sizeof(text), "%s%.*s", ticket, (int)(len > 1 ? (len - 1 < 80 ? len - 1 : 80) : 0),
                 (const char *)how + 1);
    else
        snprintf(text, sizeof(text), "%s %lld %lld", ticket, time,
                 what % 4 == 0   ? 0
                 : what % 4 == 3 ? times[when % 5]
                                 : (long long)(server->fence += what % 4));
    if (right && !waiter->over && is_newest(server, waiter))
        server->said(peer->node, waiter->key);
    say(server, peer, "*3\r\n$7\r\nmessage\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n", strlen(waiter->channel), waiter->channel,
        strlen(text), text);
}

void server_end(struct server *server) {
    server_turn(server);
    for (struct peer *peer = server->peers; peer < server->peers + SERVER_PEERS; peer++)
        check(!peer->socket);
}
