/*
 * From a command's words to the function that runs it: finds it, and checks what Redis checks of every command, with
 * its words. Also what many commands need to read their arguments. It runs nothing itself.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "state.h"

/* --- Finding ------------------------------------------------------------------------------------------------------ */

static const struct command *const tables[] = {string_commands, script_commands, key_commands, admin_commands,
                                               zset_commands,   pubsub_commands, slot_commands};

#define SLOTS 256
static const struct command *slots[SLOTS]; /* by the names' hash, with open addressing */

static unsigned slot_of(const char *name) {
    unsigned hash = 5381;
    for (; *name; name++)
        hash = hash * 33 + (unsigned char)(*name | 0x20);
    return hash % SLOTS;
}

__attribute__((constructor)) static void fill_slots(void) {
    for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
        for (const struct command *command = tables[t]; command->name; command++) {
            unsigned at = slot_of(command->name);
            while (slots[at])
                at = (at + 1) % SLOTS;
            slots[at] = command;
        }
    }
}

static const struct command *find(const char *name, size_t len) {
    if (memchr(name, '\0', len) || len == 0)
        return NULL;
    for (unsigned at = slot_of(name); slots[at]; at = (at + 1) % SLOTS) {
        if (strcasecmp(slots[at]->name, name) == 0)
            return slots[at];
    }
    return NULL;
}

/* Not every make has every command. */
static const struct command *had_by(const sim_server *server, const struct command *command) {
    bool alien = command && ((command->flags & VALKEY_9 && server->make != SIM_VALKEY_9) ||
                             (command->flags & REDIS_8 && server->make != SIM_REDIS_8));
    return alien ? NULL : command;
}

/* The command, or that of its container; NULL: there is none. `container` is told for the words about that. */
static const struct command *find_command(const struct call *call, bool *container) {
    char name[64];
    const struct command *command = strchr(call->argv[0], '|') ? NULL : find(call->argv[0], call->lens[0]);
    command = had_by(call->server, command);
    *container = command && !command->run;
    if (!*container || call->argc < 2)
        return command;
    int len = snprintf(name, sizeof(name), "%s|%s", command->name, call->argv[1]);
    return len < (int)sizeof(name) && strlen(call->argv[1]) == call->lens[1] ? find(name, (size_t)len) : NULL;
}

static bool arity_fits(const struct command *command, int argc) {
    return command->arity < 0 ? argc >= -command->arity : argc == command->arity;
}

/* --- Running ------------------------------------------------------------------------------------------------------ */

static void show(const struct call *call, sim_watch watch) {
    if (watch)
        watch(call->server->watch_arg, call->session, call->argc, call->argv, call->lens);
}

static void answer_unknown(const struct call *call, bool container) {
    char args[160] = "";
    size_t len = 0;
    if (container) {
        char name[32] = "";
        for (size_t i = 0; i < sizeof(name) - 1 && call->argv[0][i]; i++)
            name[i] = (char)(call->argv[0][i] & ~0x20);
        reply_error(call->reply, "ERR unknown subcommand '%.128s'. Try %s HELP.", call->argv[1], name);
        return;
    }
    for (int i = 1; i < call->argc && len < 128; i++)
        len += (size_t)snprintf(args + len, sizeof(args) - len, "'%.*s' ", (int)(128 - len), call->argv[i]);
    reply_error(call->reply, "ERR unknown command '%.128s', with args beginning with: %s", call->argv[0], args);
}

void answer_wrong_arity(const struct call *call) {
    reply_error(call->reply, "ERR wrong number of arguments for '%s' command", call->command->name);
}

static void answer_only_pubsub(const struct call *call) {
    reply_error(call->reply,
                "ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in "
                "this context",
                call->command->name);
}

void command_from_session(sim_session *session) {
    struct call call = {.server = session->server,
                        .session = session,
                        .argc = session->requests.argc,
                        .argv = session->requests.argv,
                        .lens = session->requests.lens,
                        .reply = &session->server->reply};
    bool container;
    call.command = find_command(&call, &container);
    if (!call.command)
        answer_unknown(&call, container);
    else if (!arity_fits(call.command, call.argc))
        answer_wrong_arity(&call);
    else if (!session->may_command && !(call.command->flags & NO_AUTH))
        reply_error(call.reply, "NOAUTH Authentication required.");
    else if (session->subscribed && !(call.command->flags & PUBSUB))
        answer_only_pubsub(&call);
    else if (!slots_serve(&call))
        session->asking = false;
    else if (refusal_use(&call))
        show(&call, session->server->watch_refused);
    else {
        show(&call, session->server->watch);
        call.command->run(&call);
        call.server->written += (call.command->flags & WRITES) != 0;
        session->asking &= strcmp(call.command->name, "asking") == 0;
    }
}

void command_from_script(struct call *call) {
    bool container;
    call->command = find_command(call, &container);
    if (!call->command)
        reply_error(call->reply, "ERR Unknown Redis command called from script");
    else if (!arity_fits(call->command, call->argc))
        reply_error(call->reply, "ERR Wrong number of args calling Redis command from script");
    else if (call->command->flags & NO_SCRIPT)
        reply_error(call->reply, "ERR This Redis command is not allowed from script");
    else if (!slots_serve_script(call))
        reply_error(call->reply, "ERR Script attempted to access a non local key in a cluster node");
    else if (!refusal_use(call)) {
        if (call->command->flags & WRITES)
            show(call, call->server->watch);
        call->command->run(call);
        call->server->written += (call->command->flags & WRITES) != 0;
    }
}

/* --- Arguments ---------------------------------------------------------------------------------------------------- */

bool argument_is(const struct call *call, int at, const char *word) {
    return strcasecmp(call->argv[at], word) == 0;
}

void answer_syntax_error(const struct call *call) {
    reply_error(call->reply, "ERR syntax error");
}

bool integer_argument(const struct call *call, int at, int64_t *ret) {
    if (parse_integer(call->argv[at], call->lens[at], ret))
        return true;
    reply_error(call->reply, "ERR value is not an integer or out of range");
    return false;
}

bool positive_argument(const struct call *call, int at, const char *words, int64_t *ret) {
    if (parse_integer(call->argv[at], call->lens[at], ret) && *ret >= 0)
        return true;
    reply_error(call->reply, "ERR %s", words ? words : "value is out of range, must be positive");
    return false;
}

bool float_argument(const struct call *call, int at, double *ret) {
    char *end;
    const char *text = call->argv[at];
    *ret = strtod(text, &end);
    if (end != text && end == text + call->lens[at] && !strchr(" \t\n\v\f\r", text[0]) && !isnan(*ret))
        return true;
    reply_error(call->reply, "ERR value is not a valid float");
    return false;
}

bool typed_key(const struct call *call, int at, enum type type, struct entry **ret) {
    *ret = store_find(call_store(call), call->argv[at], call->lens[at]);
    if (!*ret || (*ret)->type == type)
        return true;
    reply_error(call->reply, "WRONGTYPE Operation against a key holding the wrong kind of value");
    return false;
}

void drop_if_empty(const struct call *call, struct entry *entry) {
    if (entry->count == 0)
        store_remove(call_store(call), entry);
}
