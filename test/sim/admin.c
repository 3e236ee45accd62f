/* The commands on the connection and the server: who logs in, who else is there, and what the server tells of itself.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "state.h"

/* --- The connection ----------------------------------------------------------------------------------------------- */

static void run_auth(struct call *call) {
    const char *user = call->argc == 3 ? call->argv[1] : "default";
    const char *password = call->argv[call->argc - 1], *wanted = call->server->password;
    if (call->argc > 3) {
        answer_syntax_error(call);
    } else if (call->argc == 2 && !wanted) {
        reply_error(call->reply, "ERR AUTH <password> called without any password configured for the default user. "
                                 "Are you sure your configuration is correct?");
    } else if (strcmp(user, "default") != 0 || (wanted && strcmp(password, wanted) != 0)) {
        reply_error(call->reply, "WRONGPASS invalid username-password pair or user is disabled.");
    } else {
        call->session->may_command = true;
        reply_ok(call->reply);
    }
}

static void run_select(struct call *call) {
    int64_t db;
    if (!integer_argument(call, 1, &db))
        return;
    if (db < INT32_MIN || db > INT32_MAX) {
        reply_error(call->reply, "ERR value is out of range, value must between %d and %d", INT32_MIN, INT32_MAX);
        return;
    }
    if (db != 0 && call->server->slots) {
        reply_error(call->reply, "ERR SELECT is not allowed in cluster mode");
        return;
    }
    if (db < 0 || db >= DATABASES) {
        reply_error(call->reply, "ERR DB index is out of range");
        return;
    }
    call->session->db = (unsigned)db;
    reply_ok(call->reply);
}

static void run_ping(struct call *call) {
    if (call->argc > 2) {
        answer_wrong_arity(call);
    } else if (call->session->subscribed) {
        reply_array(call->reply, 2);
        reply_bulk(call->reply, "pong", 4);
        reply_bulk(call->reply, call->argc == 2 ? call->argv[1] : "", call->argc == 2 ? call->lens[1] : 0);
    } else if (call->argc == 2) {
        reply_bulk(call->reply, call->argv[1], call->lens[1]);
    } else {
        reply_status(call->reply, "PONG", 4);
    }
}

/* --- CLIENT ------------------------------------------------------------------------------------------------------- */

static void run_client_id(struct call *call) {
    reply_integer(call->reply, call->session->id);
}

/* CLIENT INFO: what evlock reads of it. */
static void run_client_info(struct call *call) {
    char text[96];
    int64_t age = (call->server->now - call->session->since) / 1000000;
    reply_bulk(call->reply, text,
               (size_t)snprintf(text, sizeof(text), "id=%" PRId64 " addr=simulation:0 name= age=%" PRId64 " idle=0\n",
                                call->session->id, age));
}

/* CLIENT SETNAME name. */
static void run_client_setname(struct call *call) {
    for (size_t i = 0; i < call->lens[2]; i++) {
        if (call->argv[2][i] >= '!' && call->argv[2][i] <= '~')
            continue;
        reply_error(call->reply, "ERR Client names cannot contain spaces, newlines or special characters.");
        return;
    }
    reply_ok(call->reply);
}

/* CLIENT KILL ID number [SKIPME yes|no]. */
static bool read_kill(const struct call *call, int64_t *id, bool *skip_me) {
    for (int at = 2; at < call->argc; at += 2) {
        if (at + 1 < call->argc && argument_is(call, at, "ID")) {
            if (!parse_integer(call->argv[at + 1], call->lens[at + 1], id) || *id < 1) {
                reply_error(call->reply, "ERR client-id should be greater than 0");
                return false;
            }
        } else if (at + 1 < call->argc && argument_is(call, at, "SKIPME") &&
                   (argument_is(call, at + 1, "yes") || argument_is(call, at + 1, "no"))) {
            *skip_me = argument_is(call, at + 1, "yes");
        } else {
            answer_syntax_error(call);
            return false;
        }
    }
    return true;
}

static void run_client_kill(struct call *call) {
    int64_t id = 0, count = 0;
    bool skip_me = true;
    if (call->argc == 3) { /* by an address, which sessions have none of here */
        reply_error(call->reply, "ERR No such client");
        return;
    }
    if (!read_kill(call, &id, &skip_me))
        return;
    for (sim_session *session = TAILQ_FIRST(&call->server->sessions), *next; session; session = next) {
        next = TAILQ_NEXT(session, next);
        if ((id && session->id != id) || (skip_me && session == call->session))
            continue;
        count++;
        session_end(session);
    }
    reply_integer(call->reply, count);
}

/* CLIENT REPLY ON|OFF. (The server knows SKIP, too.) */
static void run_client_reply(struct call *call) {
    bool on = argument_is(call, 2, "on");
    if (!on && !argument_is(call, 2, "off")) {
        answer_syntax_error(call);
        return;
    }
    call->session->quiet = !on;
    reply_ok(call->reply);
}

/* --- What the server tells of itself ------------------------------------------------------------------------------ */

/* The uptime is the difference of two moments in whole seconds: up to one more than the time that has passed. */
static int info_server(const sim_server *server, char *text, size_t size) {
    static const char *const versions[] = {
        [SIM_REDIS_7] = "redis_version:7.0.15\r\n",
        [SIM_VALKEY_9] = "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2\r\n",
        [SIM_REDIS_8] = "redis_version:8.4.0\r\n",
    };
    return snprintf(text, size,
                    "# Server\r\n%sredis_mode:%s\r\nrun_id:%s\r\n"
                    "server_time_usec:%" PRId64 "\r\nuptime_in_seconds:%" PRId64 "\r\n",
                    versions[server->make], server->slots ? "cluster" : "standalone", server->run_id, server->now,
                    server->now / 1000000 - server->started / 1000000);
}

static int info_memory(const sim_server *server, char *text, size_t size) {
    (void)server;
    return snprintf(text, size, "# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n");
}

static int info_persistence(const sim_server *server, char *text, size_t size) {
    (void)server;
    return snprintf(text, size, "# Persistence\r\nloading:0\r\naof_enabled:0\r\n");
}

static int info_replication(const sim_server *server, char *text, size_t size) {
    return snprintf(text, size,
                    "# Replication\r\nrole:%s\r\nconnected_slaves:%u\r\nmaster_replid:%s\r\n"
                    "master_replid2:%s\r\n",
                    slots_follow(server) ? "slave" : "master", server->replicas, server->replid, server->replid2);
}

static bool asks_for(const struct call *call, const char *section) {
    for (int i = 1; i < call->argc; i++) {
        if (argument_is(call, i, section))
            return true;
    }
    return call->argc == 1;
}

static void run_info(struct call *call) {
    static const struct {
        const char *name;
        int (*tell)(const sim_server *server, char *text, size_t size);
    } sections[] = {{"server", info_server},
                    {"memory", info_memory},
                    {"persistence", info_persistence},
                    {"replication", info_replication}};
    char text[1024];
    size_t len = 0;
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        if (!asks_for(call, sections[i].name))
            continue;
        if (len > 0)
            len += (size_t)snprintf(text + len, sizeof(text) - len, "\r\n");
        len += (size_t)sections[i].tell(call->server, text + len, sizeof(text) - len);
    }
    reply_bulk(call->reply, text, len);
}

static void run_time(struct call *call) {
    char digits[24];
    int64_t now = call->server->now;
    reply_array(call->reply, 2);
    reply_bulk(call->reply, digits, (size_t)snprintf(digits, sizeof(digits), "%" PRId64, now / 1000000));
    reply_bulk(call->reply, digits, (size_t)snprintf(digits, sizeof(digits), "%" PRId64, now % 1000000));
}

static void run_wait(struct call *call) {
    int64_t wanted, timeout;
    if (!integer_argument(call, 1, &wanted))
        return;
    if (!parse_integer(call->argv[2], call->lens[2], &timeout)) {
        reply_error(call->reply, "ERR timeout is not an integer or out of range");
    } else if (timeout < 0) {
        reply_error(call->reply, "ERR timeout is negative");
    } else if (session_replicas(call->session) >= wanted) {
        reply_integer(call->reply, session_replicas(call->session));
    } else {
        call->session->wait_for = wanted;
        call->session->wait_until = timeout ? call->server->now + timeout * 1000 : INT64_MAX;
    }
}

const struct command admin_commands[] = {
    {"auth", -2, NO_SCRIPT | LOGIN | NO_AUTH, run_auth},
    {"client", -2, NO_SCRIPT | LOGIN, NULL},
    {"client|id", 2, NO_SCRIPT | LOGIN, run_client_id},
    {"client|info", 2, NO_SCRIPT | LOGIN, run_client_info},
    {"client|kill", -3, NO_SCRIPT | LOGIN, run_client_kill},
    {"client|reply", 3, NO_SCRIPT | LOGIN, run_client_reply},
    {"client|setname", 3, NO_SCRIPT | LOGIN, run_client_setname},
    {"info", -1, LOGIN, run_info},
    {"ping", -1, PUBSUB, run_ping},
    {"select", 2, LOGIN, run_select},
    {"time", 1, 0, run_time},
    {"wait", 3, NO_SCRIPT, run_wait},
    {0},
};
