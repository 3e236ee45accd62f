/* Logins; see login.h. */
#include "login.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "lacks.h"

/* Of one command, at most. */
#define WORDS 8

/* So many marks of one history are tried at a login. */
#define MARKS_MOST 4

enum login_step {
    AUTH,
    LIBRARY,
    VERSION,
    NAME,
    SERVER,
    SHARDS,
    TABLE,
    SELECT,
    ID,
    SELF,
    MEMORY,
    PERSISTENCE,
    REPLICATION,
    LOAD,
    CALL,
    SPELL,
    HISTORY,
    KILL,
    COUNT,
    PUBLISH,
    KIND,
    ANEW,  /* no step of a login: where it is done, another */
    CLOCK, /* no step of a login either, nor are these */
    TABLE_ANEW,
    COMING,
    HISTORY_ANEW,
};

static struct login *login_of(struct connection *connection) {
    return EVL_OWNER(struct login, connection, connection);
}

static bool login_greet(struct login *login, enum login_step step, const char *word, ...) __attribute__((sentinel));

/* Queues a command of these words, the last of which is NULL. */
static bool login_greet(struct login *login, enum login_step step, const char *word, ...) {
    const char *words[WORDS] = {NULL};
    va_list rest;
    int count = 0;

    va_start(rest, word);
    for (; word && count < WORDS; word = va_arg(rest, const char *))
        words[count++] = word;
    va_end(rest);
    if (!evl_connection_greet(&login->connection, (int)step, count, words))
        return false;
    login->open++;
    return true;
}

static void login_refuse(struct login *login, int status, const char *words) {
    evl_connection_break(&login->connection, status, words);
}

void evl_login_lacks(struct login *login, enum evlock_missing what, const char *why) {
    evl_lacks_note(&login->server.missing, what, why, &login->connection);
}

/* What was found out on the way is to be asked about as well. */
static void login_ask_more(struct login *login, bool queued) {
    if (!queued)
        login_refuse(login, EVLOCK_ENOMEM, "hiredis could not queue a command");
}

static void login_share(struct login *login) {
    if (!login->server.shared)
        evl_login_lacks(login, EVLOCK_MISSING_KILL, "the server sees a connection that is shared with others");
    evl_server_share(&login->server);
}

/* --- Each step's command ------------------------------------------------------------------------------------------ */

/* Who the connection belongs to, for those who look at the server's list of them. */
static bool login_ask_library(struct login *login) {
    return login_greet(login, LIBRARY, "CLIENT", "SETINFO", "LIB-NAME", "evlock", NULL);
}

static bool login_ask_version(struct login *login) {
    return login_greet(login, VERSION, "CLIENT", "SETINFO", "LIB-VER", EVLOCK_VERSION_STRING, NULL);
}

static bool login_ask_name(struct login *login) {
    const char *name = login->connection.config->connection_name;

    return !name[0] || login_greet(login, NAME, "CLIENT", "SETNAME", name, NULL);
}

static bool login_ask_select(struct login *login) {
    char number[16];

    if (login->connection.url->db == 0)
        return true;
    snprintf(number, sizeof(number), "%d", login->connection.url->db);
    return login_greet(login, SELECT, "SELECT", number, NULL);
}

static bool login_ask_server(struct login *login) {
    return login_greet(login, SERVER, "INFO", "server", NULL);
}

static bool login_ask_kind(struct login *login) {
    return login_greet(login, KIND, "INFO", "server", NULL);
}

static bool login_ask_id(struct login *login) {
    return login_greet(login, ID, "CLIENT", "ID", NULL);
}

static bool login_ask_self(struct login *login) {
    return login_greet(login, SELF, "CLIENT", "INFO", NULL);
}

static bool login_ask_memory(struct login *login) {
    return login_greet(login, MEMORY, "INFO", "memory", NULL);
}

static bool login_ask_persistence(struct login *login) {
    return login_greet(login, PERSISTENCE, "INFO", "persistence", NULL);
}

static bool login_ask_replication(struct login *login) {
    return login_greet(login, REPLICATION, "INFO", "replication", NULL);
}

/* Only who grants locks has to know for how long the server has been what it is. */
static bool login_is_to_wait(const struct login *login) {
    return login->connection.config->failover_wait > 0 && login->hooks->mark;
}

/* Many are renewed by one script in a cluster, and by another elsewhere. */
static bool login_needs(const struct login *login, unsigned script) {
    if (script == SCRIPT_HISTORY)
        return login_is_to_wait(login);
    return script != (login->in_cluster ? SCRIPT_RENEW_MANY : SCRIPT_RENEW_ANY);
}

static bool login_ask_load(struct login *login) {
    bool done = true;

    for (unsigned i = 0; done && i < evl_script_count; i++)
        if (login_needs(login, i))
            done = login_greet(login, LOAD, "SCRIPT", "LOAD", evl_scripts[i].text, NULL);
    return done;
}

/* Of a script that there is not, and of no key: who may call scripts is told that. Without arguments, it would be the
 * number of these that is refused, whatever the user may. */
static bool login_ask_call(struct login *login) {
    return login_greet(login, CALL, "EVALSHA", "0000000000000000000000000000000000000000", "0", NULL);
}

static bool login_ask_shards(struct login *login) {
    return login_greet(login, SHARDS, "CLUSTER", "INFO", NULL);
}

static bool login_ask_table(struct login *login) {
    return !login->hooks->table || login_greet(login, TABLE, "CLUSTER", "NODES", NULL);
}

static bool login_ask_spell(struct login *login) {
    return login_greet(login, SPELL, "EVAL", "return 1", "0", NULL);
}

/* The number of a connection means nothing to another process. A process counts on: if this connection has no greater
 * number than the one before, neither number is a connection's own. */
static bool login_ask_kill(struct login *login) {
    char number[24];

    if (!login->unsettled || !login->lost_id || !evl_login_is_same_process(login))
        return true;
    if (login->server.id && login->server.id <= login->lost_id)
        login_share(login);
    if (login->server.shared)
        return true;
    snprintf(number, sizeof(number), "%" PRId64, login->lost_id);
    return login_greet(login, KILL, "CLIENT", "KILL", "ID", number, NULL);
}

static bool login_ask_history(struct login *login) {
    const struct script *script = &evl_scripts[SCRIPT_HISTORY];
    bool spells = login->server.spells || login->server.load_error[0];
    char mark[SHARDS_MARK_SIZE];

    if (!login_is_to_wait(login) || login->server.reigned_since)
        return true;
    if (!login->server.run_id[0] || !login->server.replid[0]) {
        login_refuse(login, EVLOCK_EUNSUPPORTED, "failover_wait_ms needs the run_id and master_replid of INFO");
        return true;
    }
    if (!login->hooks->mark(login, login->server.marks_refused, mark)) {
        login_refuse(login, EVLOCK_EREFUSED, "it has no slots, and no mark of its history");
        return true;
    }
    return login_greet(login, HISTORY, spells ? "EVAL" : "EVALSHA", spells ? script->text : script->sha, "1", mark,
                       login->server.run_id, login->server.replid, login->server.inherited ? "1" : "0", NULL);
}

static bool login_ask_count(struct login *login) {
    return login_greet(login, COUNT, "PUBSUB", "NUMSUB", login->channel, NULL);
}

/* What a release does to tell a waiter is tried, so that nobody waits for what may not be told. */
static bool login_ask_publish(struct login *login) {
    return login_greet(login, PUBLISH, "PUBLISH", login->channel, "", NULL);
}

/* --- What is answered --------------------------------------------------------------------------------------------- */

/* Which process this is, what it can do, and since when it runs. Of a cluster, one node may have all slots. */
static void login_on_server(struct login *login, const struct reply *reply) {
    struct info_server info;

    if (reply->type != REPLY_STRING)
        return;
    evl_info_server(reply->text, &info);
    evl_server_learn(&login->server, &info, evl_turn_now(login->connection.turn));
    if (info.refusal.status != EVLOCK_OK)
        login_refuse(login, info.refusal.status, info.refusal.words);
    else if (info.clusters && !login->in_cluster)
        login_ask_more(login, login_ask_shards(login));
    if (login->hooks->met)
        login->hooks->met(login);
}

static void login_on_kind(struct login *login, const struct reply *reply) {
    if (reply->type == REPLY_STRING && !evl_info_is_sentinel(reply->text))
        login_refuse(login, EVLOCK_EUNSUPPORTED, "this is no Sentinel; a server's own URL is redis://HOST:PORT");
}

/* Names whose slots others have would be refused one by one. While the cluster is down, or does not say how large it
 * is, it may be one that has all slots here. `info` is what is known of it. */
static void login_refuse_shards(struct login *login, const char *info) {
    char shards[SHARDS_SIZE], words[96];

    if (evl_info_is_whole(info, shards))
        return;
    if (!shards[0]) {
        evl_connection_log(&login->connection, EVLOCK_LOG_WARN,
                           "belongs to a cluster; if that has several masters, use redis+cluster://");
        return;
    }
    snprintf(words, sizeof(words), "this server is one of a cluster of %s masters; use redis+cluster://", shards);
    login_refuse(login, EVLOCK_EUNSUPPORTED, words);
}

static void login_on_shards(struct login *login, const struct reply *reply) {
    if (reply->type == REPLY_STRING)
        login_refuse_shards(login, reply->text);
}

static void login_on_table(struct login *login, const struct reply *reply) {
    login->hooks->table(login, reply);
}

static void login_on_id(struct login *login, const struct reply *reply) {
    if (reply->type == REPLY_INTEGER)
        login->server.id = reply->integer;
}

static void login_on_self(struct login *login, const struct reply *reply) {
    int64_t passed = evl_turn_now(login->connection.turn) - login->connection.since;
    int64_t id, age;

    if (reply->type != REPLY_STRING)
        return;
    evl_info_connection(reply->text, &id, &age);
    if (evl_server_sees_another(&login->server, id, age, passed))
        login_share(login);
}

/* Keys with an expiry that a full server may evict are locks that it may drop. */
static void login_on_memory(struct login *login, const struct reply *reply) {
    char policy[POLICY_SIZE];

    if (reply->type == REPLY_STRING && evl_info_evicts(reply->text, policy))
        evl_connection_log(&login->connection, EVLOCK_LOG_WARN,
                           "the server's maxmemory-policy %s may evict locks; use noeviction", policy);
}

static void login_on_persistence(struct login *login, const struct reply *reply) {
    if (reply->type == REPLY_STRING)
        login->server.persistence = evl_info_persistence(reply->text);
}

static void login_on_replication(struct login *login, const struct reply *reply) {
    struct info_data info;

    if (reply->type != REPLY_STRING)
        return;
    evl_info_data(reply->text, &info);
    evl_server_learn_data(&login->server, &info);
    if (info.refusal.status != EVLOCK_OK)
        login_refuse(login, info.refusal.status, info.refusal.words);
}

static void login_on_history(struct login *login, const struct reply *reply) {
    int64_t age = reply->type == REPLY_STRING ? strtoll(reply->text, NULL, 10) : -1;

    evl_server_learn_age(&login->server, age, evl_turn_now(login->connection.turn));
    if (reply->type != REPLY_STRING)
        login_refuse(login, EVLOCK_EPROTOCOL, "no age of the server's history");
}

static void login_on_load(struct login *login, const struct reply *reply) {
    (void)reply;
    login->server.load_error[0] = '\0';
}

/* None with that number is as good: it has ended. */
static void login_on_kill(struct login *login, const struct reply *reply) {
    login->killed = reply->type == REPLY_INTEGER;
}

/* --- What is refused ---------------------------------------------------------------------------------------------- */

static void login_on_no_shards(struct login *login, const struct reply *error) {
    (void)error;
    login_refuse_shards(login, "");
}

static void login_on_no_table(struct login *login, const struct reply *error) {
    switch (error->error) {
    case ERROR_LACKING:
    case ERROR_ARGUMENTS:
    case ERROR_SENSELESS:
        login_refuse(login, EVLOCK_EUNSUPPORTED, "this is no node of a cluster; use redis:// or redis+sentinel://");
        break;
    default:
        break;
    }
}

static void login_on_no_name(struct login *login, const struct reply *error) {
    evl_connection_log(&login->connection, EVLOCK_LOG_WARN, "the server refuses the connection's name: %s",
                       error->text);
}

static void login_on_no_load(struct login *login, const struct reply *error) {
    snprintf(login->server.load_error, sizeof(login->server.load_error), "%s", error->text);
}

/* A server without EVALSHA may have EVAL, and so may who has no right to it. */
static void login_on_no_call(struct login *login, const struct reply *error) {
    if (!evl_reply_is_lacking(evl_reply_meaning(error->error)))
        return;
    evl_login_spell(login, error->text);
    login->server.lacks_evalsha = true;
    login_ask_more(login, login_ask_spell(login));
}

static void login_on_no_kill(struct login *login, const struct reply *error) {
    evl_login_lacks(login, EVLOCK_MISSING_KILL, error->text);
}

static void login_on_no_spell(struct login *login, const struct reply *error) {
    if (evl_reply_is_lacking(evl_reply_meaning(error->error)))
        evl_login_lacks(login, EVLOCK_MISSING_SCRIPTS, error->text);
}

/* --- The steps ---------------------------------------------------------------------------------------------------- */

/* A step that is answered otherwise than by a refusal, or refused, goes to these; NULL: it makes no difference. AUTH is
 * asked before them, and alone. */
static const struct step {
    bool (*ask)(struct login *login);
    void (*granted)(struct login *login, const struct reply *reply);
    void (*refused)(struct login *login, const struct reply *error);
    bool needed; /* without it the connection is of no use */
} steps[] = {
    [AUTH] = {NULL, NULL, NULL, true},
    [LIBRARY] = {login_ask_library, NULL, NULL, false},
    [VERSION] = {login_ask_version, NULL, NULL, false},
    [NAME] = {login_ask_name, NULL, login_on_no_name, false},
    [SERVER] = {login_ask_server, login_on_server, NULL, false},
    [SHARDS] = {login_ask_shards, login_on_shards, login_on_no_shards, false},
    [TABLE] = {login_ask_table, login_on_table, login_on_no_table, true},
    [SELECT] = {login_ask_select, NULL, NULL, true},
    [ID] = {login_ask_id, login_on_id, NULL, false},
    [SELF] = {login_ask_self, login_on_self, NULL, false},
    [MEMORY] = {login_ask_memory, login_on_memory, NULL, false},
    [PERSISTENCE] = {login_ask_persistence, login_on_persistence, NULL, false},
    [REPLICATION] = {login_ask_replication, login_on_replication, NULL, false},
    [LOAD] = {login_ask_load, login_on_load, login_on_no_load, false},
    [CALL] = {login_ask_call, NULL, login_on_no_call, false},
    [SPELL] = {login_ask_spell, NULL, login_on_no_spell, false},
    [HISTORY] = {login_ask_history, login_on_history, NULL, true},
    [KILL] = {login_ask_kill, login_on_kill, login_on_no_kill, false},
    [COUNT] = {login_ask_count, NULL, NULL, true},
    [PUBLISH] = {login_ask_publish, NULL, NULL, true},
    [KIND] = {login_ask_kind, login_on_kind, NULL, false},
};

/* What each role goes on with. SHARDS and SPELL come where an answer asks for them, HISTORY and KILL at the end. */
static const enum login_step to_send[] = {TABLE,       SERVER, SELECT, ID,      SELF,    MEMORY, PERSISTENCE,
                                          REPLICATION, LOAD,   CALL,   LIBRARY, VERSION, NAME};
static const enum login_step to_scout[] = {TABLE};
static const enum login_step to_listen[] = {COUNT, PUBLISH, LIBRARY, VERSION, NAME};
static const enum login_step to_sentinel[] = {KIND, NAME};

#define STEPS(list)                                                                                                    \
    { list, sizeof(list) / sizeof((list)[0]) }

static const struct {
    const enum login_step *steps;
    size_t count;
} roles[] = {
    [LOGIN_TO_SEND] = STEPS(to_send),
    [LOGIN_TO_SCOUT] = STEPS(to_scout),
    [LOGIN_TO_LISTEN] = STEPS(to_listen),
    [LOGIN_TO_SENTINEL] = STEPS(to_sentinel),
};

static bool login_ask_rest(struct login *login) {
    login->entered = true;
    for (size_t i = 0; i < roles[login->role].count; i++)
        if (!steps[roles[login->role].steps[i]].ask(login))
            return false;
    return true;
}

/* --- Who logs in -------------------------------------------------------------------------------------------------- */

/* What was given is wiped when it has been used by all. */
static void login_pay(struct login *login) {
    const struct login *other;

    login->owes = false;
    LIST_FOREACH (other, &login->credentials->logins, link)
        if (other->owes)
            return;
    evl_secret_wipe(&login->credentials->given);
}

static bool login_send(struct login *login, enum login_step step, const struct secret *command) {
    struct bytes text = {command->bytes, command->len};

    return evl_connection_greet_with(&login->connection, (int)step, text);
}

static bool login_authenticate_by(struct login *login, const struct secret *command) {
    if (!login_send(login, AUTH, command))
        return false;
    login->open++;
    return true;
}

/* False: no memory. A file that cannot be read breaks the connection. */
static bool login_authenticate_by_file(struct login *login) {
    struct secret command = {0};
    struct words words;
    struct trouble trouble = evl_credentials_read(login->credentials, &command, &words);
    bool queued = trouble.status == EVLOCK_OK && login_authenticate_by(login, &command);

    evl_secret_wipe(&command);
    if (trouble.status != EVLOCK_EFILE)
        return queued;
    login_refuse(login, EVLOCK_EAUTH, trouble.words);
    return true;
}

/* Nothing is sent before its user has given credentials. */
static bool login_waits(const struct login *login) {
    return login->connection.state == CONNECTION_CONNECTING && login->connection.awaited;
}

/* One question is for all who wait. */
static void login_await_answer(struct login *login) {
    const struct login *other;
    bool asked = false;

    LIST_FOREACH (other, &login->credentials->logins, link)
        asked |= login_waits(other);
    login->connection.awaited = "credentials";
    if (!asked)
        login->credentials->wanted = true;
}

/* It is alone on its way: whatever else is asked for could not be wiped with it, and would be refused with it. */
static bool login_authenticate(struct login *login) {
    struct credentials *credentials = login->credentials;
    bool queued = true;

    if (login->owes && evl_credentials_newest(credentials)->bytes) {
        queued = login_authenticate_by(login, evl_credentials_newest(credentials));
        login_pay(login);
    } else if (credentials->asks) {
        login_await_answer(login);
    } else if (credentials->file) {
        queued = login_authenticate_by_file(login);
    } else if (credentials->kept.bytes) {
        queued = login_authenticate_by(login, &credentials->kept);
    } else {
        queued = login_ask_rest(login);
    }
    return queued;
}

/* Refused credentials are followed by newer ones, if there are any, or asked for once more. */
static bool login_tries_again(struct login *login, const struct reply *error) {
    bool newer = login->owes;

    if (evl_reply_meaning(error->error).verdict == LEASE_REFUSED || login->connection.broken ||
        (!newer && (login->again || !evl_credentials_renew(login->credentials))))
        return false;
    login->again |= !newer;
    evl_connection_explain(&login->connection, error->text);
    login_ask_more(login, login_authenticate(login));
    return true;
}

/* --- Anew, where it is logged in ---------------------------------------------------------------------------------- */

/* At once, before anything is queued behind it that could move it in memory. */
static void login_send_anew(struct login *login) {
    bool queued = login_send(login, ANEW, evl_credentials_newest(login->credentials));

    login_pay(login);
    login_ask_more(login, queued);
    evl_connection_flush(&login->connection);
}

static void login_on_anew(const struct login *login, const struct reply *reply) {
    if (reply->type == REPLY_ERROR)
        evl_connection_log(&login->connection, EVLOCK_LOG_WARN, "keeps the login that it has: %s", reply->text);
    else
        evl_connection_log(&login->connection, EVLOCK_LOG_INFO, "logged in anew");
}

static bool login_is_in(const struct login *login) {
    const struct connection *connection = &login->connection;

    return evl_connection_is_open(connection) && connection->transport.open && login->entered && connection->context &&
           !connection->broken;
}

bool evl_login_is_last(const struct login *login) {
    return login->channel && login_is_in(login) && login->open == 0;
}

static void login_renew(struct login *login) {
    if (login_waits(login) && !login->connection.broken) {
        login->connection.awaited = NULL;
        login_ask_more(login, login_authenticate(login));
    } else if (evl_login_is_last(login)) {
        login_pay(login);
    } else if (login_is_in(login)) {
        login_send_anew(login);
    }
}

/* First all owe it, so that it is not wiped before the last has used it. */
void evl_logins_renew(struct credentials *credentials) {
    struct login *login;

    LIST_FOREACH (login, &credentials->logins, link)
        login->owes = login->connection.state != CONNECTION_STOPPED && login->connection.state != CONNECTION_IDLE;
    LIST_FOREACH (login, &credentials->logins, link)
        if (login->owes)
            login_renew(login);
}

/* --- What comes of a step ----------------------------------------------------------------------------------------- */

/* What is refused for now alone is asked again by the next login: a server that could not say who it is might be taken
 * for another. */
static bool login_can_do_without(enum login_step step, enum reply_error error) {
    struct reply_meaning meaning = evl_reply_meaning(error);

    if (meaning.reconnect || evl_reply_passes(error))
        return false;
    if (step == SPELL)
        return !evl_reply_is_lacking(meaning);
    return !steps[step].needed;
}

/* A script that was loaded may be gone by the time that it is called: then it is sent whole, once. */
static bool login_spells_history(struct login *login, const struct reply *error) {
    if (login->server.spells || login->server.load_error[0] || error->error != ERROR_NOSCRIPT)
        return false;
    login_on_no_load(login, error);
    login_ask_more(login, login_ask_history(login));
    return true;
}

/* One whose slot is on its way to another master is as good as any: the next one is read. Where that does not help, the
 * table that is asked for at the next login may. */
static bool login_marks_elsewhere(struct login *login, const struct reply *error) {
    struct redirect to;

    if (!login->in_cluster || !evl_shards_redirect(&to, error->text))
        return false;
    if (++login->server.marks_refused < MARKS_MOST)
        login_ask_more(login, login_ask_history(login));
    else
        login_refuse(login, EVLOCK_EREFUSED, error->text);
    return true;
}

static void login_on_refused(struct login *login, enum login_step step, const struct reply *error) {
    struct reply_meaning meaning = evl_reply_meaning(error->error);

    if (steps[step].refused)
        steps[step].refused(login, error);
    if (step == AUTH && login_tries_again(login, error))
        return;
    if (step == HISTORY && (login_spells_history(login, error) || login_marks_elsewhere(login, error)))
        return;
    if (login_can_do_without(step, error->error)) {
        evl_connection_explain(&login->connection, error->text);
        return;
    }
    if (step == AUTH && meaning.verdict != LEASE_REFUSED)
        meaning.status = EVLOCK_EAUTH;
    login_refuse(login, meaning.status, error->text);
}

static void login_on_granted(struct login *login, enum login_step step, const struct reply *reply) {
    evl_connection_explain(&login->connection, NULL);
    if (steps[step].granted)
        steps[step].granted(login, reply);
    if (step == AUTH && !login->connection.broken)
        login_ask_more(login, login->owes ? login_authenticate(login) : login_ask_rest(login));
}

/* What follows when all else is answered; false: nothing does. What was sent on the last connection may lie in its
 * socket, unread: that connection is ended on the server. */
static bool login_asks_last(struct login *login, enum login_step step) {
    if (step == KILL)
        return false;
    login_ask_more(login, login_ask_history(login));
    if (login->open == 0 && !login->connection.broken)
        login_ask_more(login, login_ask_kill(login));
    return login->open > 0 || login->connection.broken;
}

static void login_go_on(struct login *login, enum login_step step) {
    const struct connection *connection = &login->connection;

    if (--login->open > 0 || connection->broken || connection->state != CONNECTION_CONNECTING || login_waits(login) ||
        login_asks_last(login, step))
        return;
    login->hooks->done(login, !login->unsettled || login->killed);
}

/* Of the server's clock: it may show more by now, and no less. */
static void login_on_clock(struct login *login, const struct reply *reply) {
    login->server.reading = false;
    if (reply->type == REPLY_TIME) {
        login->server.clock =
            (struct clock_reading){reply->integer, login->server.asked_clock_at, evl_turn_now(login->connection.turn)};
        evl_login_lacks(login, EVLOCK_MISSING_CLOCK, login->server.clock_error);
    } else if (reply->type == REPLY_ERROR && !evl_reply_passes(reply->error)) {
        login->server.hides_clock = true;
    }
    if (evl_login_has_no_clock(login))
        evl_login_lacks(login, EVLOCK_MISSING_TIME, reply->text);
}

/* A server that was a replica meanwhile, and maybe is none any more, has other data. */
static void login_on_history_anew(struct login *login, const struct reply *reply) {
    struct info_data info = {.inherited = true};

    if (reply->type == REPLY_STRING)
        evl_info_data(reply->text, &info);
    login->server.confirmed_at = login->server.asked_history_at;
    login->server.asked_history_at = 0;
    if (info.refusal.status != EVLOCK_OK)
        login_refuse(login, info.refusal.status, info.refusal.words);
    else if (info.inherited && strcmp(info.replid, login->server.replid) != 0)
        login_refuse(login, EVLOCK_EREFUSED, "its history is another than at the login");
}

/* Who is answered so can call scripts: something in between may want a key. */
static bool login_can_call(enum login_step step, enum reply_error error) {
    return step == CALL && (error == ERROR_NOSCRIPT || error == ERROR_ARGUMENTS);
}

void evl_login_greeted(struct connection *connection, int answered, const struct reply *reply) {
    struct login *login = login_of(connection);
    enum login_step step = (enum login_step)answered;

    if (step == CLOCK) {
        login_on_clock(login, reply);
        return;
    }
    if (step == ANEW) {
        login_on_anew(login, reply);
        return;
    }
    if (step == TABLE_ANEW)
        login->hooks->table(login, reply);
    if (step == HISTORY_ANEW)
        login_on_history_anew(login, reply);
    if (step == TABLE_ANEW || step == COMING || step == HISTORY_ANEW)
        return;
    assert(login->open > 0 && (step == LOAD || connection->state == CONNECTION_CONNECTING));
    if (reply->type == REPLY_ERROR && !login_can_call(step, reply->error))
        login_on_refused(login, step, reply);
    else
        login_on_granted(login, step, reply);
    login_go_on(login, step);
    evl_check(evl_login_check(login));
}

bool evl_login_greet(struct connection *connection) {
    struct login *login = login_of(connection);

    login->missed |= login->server.missing;
    evl_server_reset(&login->server);
    login->open = 0;
    login->killed = false;
    login->entered = login->again = false;
    return login_authenticate(login);
}

void evl_login_init(struct login *login, struct credentials *credentials, const struct login_hooks *hooks) {
    login->hooks = hooks;
    evl_server_reset(&login->server);
    login->in_cluster = hooks->table;
    login->credentials = credentials;
    LIST_INSERT_HEAD(&credentials->logins, login, link);
}

void evl_login_end(struct login *login) {
    LIST_REMOVE(login, link);
    login_pay(login);
}

/* --- For its owner ------------------------------------------------------------------------------------------------ */

void evl_login_lost(struct connection *connection) {
    struct login *login = login_of(connection);

    assert(connection->state == CONNECTION_READY);
    login->unsettled = true;
    login->lost_id = login->server.id;
}

/* --- The server's clock, where scripts may not read it ------------------------------------------------------------ */

/* So old may one be. */
static const int64_t clock_stale = 1000000;

static void login_read_clock(struct login *login, int64_t now) {
    const char *words[] = {"TIME"};

    if (login->server.reading || login->server.hides_clock)
        return;
    login->server.asked_clock_at = now;
    login->server.reading = evl_connection_greet(&login->connection, CLOCK, 1, words);
}

bool evl_login_bring_clock(struct login *login, const char *why) {
    if (!login->server.clock_error[0])
        snprintf(login->server.clock_error, sizeof(login->server.clock_error), "%s", why);
    if (!login->server.clock.server)
        login_read_clock(login, evl_turn_now(login->connection.turn));
    return !evl_login_has_no_clock(login);
}

int64_t evl_login_brought_clock(struct login *login, int64_t now) {
    assert(login->server.clock.server);
    if (now - login->server.clock.received > clock_stale)
        login_read_clock(login, now);
    return evl_server_clock(&login->server, now);
}

/* --- Clusters ----------------------------------------------------------------------------------------------------- */

bool evl_login_ask_table(struct login *login) {
    const char *words[] = {"CLUSTER", "NODES"};

    return evl_connection_is_usable(&login->connection) &&
           evl_connection_greet(&login->connection, TABLE_ANEW, 2, words);
}

bool evl_login_ask_for_coming(struct login *login) {
    const char *words[] = {"ASKING"};

    return evl_connection_greet(&login->connection, COMING, 1, words);
}

/* For so long a history that was confirmed is taken for the server's. */
static const int64_t history_stale = 1000000;

/* A master that fails over ends no connection. (A Sentinel has it end all.) */
void evl_login_confirm_history(struct login *login, int64_t now) {
    const char *words[] = {"INFO", "replication"};

    if (!login_is_to_wait(login) || login->server.asked_history_at ||
        (login->server.confirmed_at && now - login->server.confirmed_at <= history_stale))
        return;
    login->server.asked_history_at = now;
    login_ask_more(login, evl_connection_greet(&login->connection, HISTORY_ANEW, 2, words));
}

/* ------------------------------------------------------------------------------------------------------------------ */

bool evl_login_load_scripts(struct login *login) {
    bool loads = login->connection.state == CONNECTION_READY && login->open > 0; /* ahead of whatever is sent now */

    return loads || login_ask_load(login);
}

void evl_login_spell(struct login *login, const char *why) {
    evl_login_lacks(login, EVLOCK_MISSING_DIGESTS, why);
    login->server.spells = true;
}

/* What no refusal said. */
void evl_login_take_stock(struct login *login) {
    if (!login->server.run_id[0])
        evl_login_lacks(login, EVLOCK_MISSING_IDENTITY, "INFO does not give it");
    if (!login->server.renews_many)
        evl_login_lacks(login, EVLOCK_MISSING_BATCHES, "it is older than Redis 7, or INFO does not give its version");
    if (!login->server.id || !login->server.run_id[0])
        evl_login_lacks(login, EVLOCK_MISSING_KILL, "CLIENT ID and INFO do not give what it needs");
}

uint32_t evl_login_missing(const struct login *login) {
    return login->server.missing | (login->connection.state == CONNECTION_READY ? 0 : login->missed);
}

bool evl_login_is_same_process(const struct login *login) {
    return evl_server_is_same(&login->server, &login->before);
}

bool evl_login_is_other_process(const struct login *login) {
    return evl_server_is_other(&login->server, &login->before);
}

bool evl_login_has_other_data(const struct login *login) {
    return evl_server_has_other_data(&login->server, &login->before);
}

void evl_login_keep(struct login *login) {
    evl_connection_log(&login->connection, EVLOCK_LOG_INFO, "connected%s",
                       evl_login_is_other_process(login) ? ", to another server process than before" : "");
    login->before = login->server;
    login->unsettled = false;
    login->lost_id = 0;
    login->missed = 0;
}

/* --- Invariants --------------------------------------------------------------------------------------------------- */
#ifdef EVL_CHECKS

void evl_login_check(const struct login *login) {
    const struct connection *connection = &login->connection;
    bool served = connection->state == CONNECTION_READY;

    assert(login->open >= 0);
    /* One that is not to listen is done when nothing is open. */
    implies(connection->state == CONNECTION_CONNECTING && connection->transport.open && connection->context &&
                !connection->broken && !login->channel,
            login->open > 0 || login_waits(login));
    implies(login->owes && connection->state != CONNECTION_STOPPED, evl_credentials_newest(login->credentials)->bytes);
    implies(connection->state == CONNECTION_RETURNING, login->open == 0);
    implies(served, login->open <= (int)evl_script_count);
    implies(served, !login->unsettled && strcmp(login->server.run_id, login->before.run_id) == 0);
    implies(login->lost_id, login->unsettled);
    implies(login->server.lacks_evalsha, login->server.spells);
}

#endif
