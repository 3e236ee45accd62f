/* The commands on strings. */
#include <string.h>

#include "state.h"

static void put_string(const struct call *call, struct entry *entry, int at) {
    entry_clear(entry);
    entry_insert(entry, 0, 1);
    item_set(&entry->items[0], call->argv[at], call->lens[at]);
    entry->type = TYPE_STRING;
}

static bool is_string(const struct entry *entry, const char *bytes, size_t len) {
    return entry->items[0].len == len && memcmp(entry->items[0].bytes, bytes, len) == 0;
}

struct set_options {
    bool nx;
    int equal;  /* the argument that its value is to be like; 0: none */
    int expiry; /* the argument that is a time; 0: none */
};

static bool read_options(const struct call *call, struct set_options *options) {
    for (int at = 3; at < call->argc; at++) {
        if (argument_is(call, at, "NX") && !options->equal)
            options->nx = true;
        else if (call->server->make != SIM_REDIS_7 && argument_is(call, at, "IFEQ") && !options->nx &&
                 !options->equal && at + 1 < call->argc)
            options->equal = ++at;
        else if (argument_is(call, at, "PX") && !options->expiry && at + 1 < call->argc)
            options->expiry = ++at;
        else
            return false;
    }
    return true;
}

static bool read_expiry(const struct call *call, const struct set_options *options, int64_t *ret) {
    int64_t now = now_ms(call->server);
    *ret = STORE_NEVER;
    if (!options->expiry)
        return true;
    if (!integer_argument(call, options->expiry, ret))
        return false;
    if (*ret <= 0 || *ret > INT64_MAX - now) {
        reply_error(call->reply, "ERR invalid expire time in 'set' command");
        return false;
    }
    *ret += now;
    return true;
}

/* Answers if it does not. */
static bool equals(const struct call *call, const struct entry *entry, int at) {
    if (entry && entry->type != TYPE_STRING)
        reply_error(call->reply, "WRONGTYPE Operation against a key holding the wrong kind of value");
    else if (!entry || !is_string(entry, call->argv[at], call->lens[at]))
        reply_nil(call->reply);
    else
        return true;
    return false;
}

static void run_set(struct call *call) {
    struct set_options options = {0};
    int64_t expires;
    if (!read_options(call, &options)) {
        answer_syntax_error(call);
        return;
    }
    if (!read_expiry(call, &options, &expires))
        return;
    struct entry *entry = store_find(call_store(call), call->argv[1], call->lens[1]);
    if (options.equal && !equals(call, entry, options.equal))
        return;
    if (entry && options.nx) {
        reply_nil(call->reply);
        return;
    }
    if (!entry)
        entry = store_add(call_store(call), call->argv[1], call->lens[1], TYPE_STRING);
    put_string(call, entry, 2);
    entry->expires = expires;
    reply_ok(call->reply);
}

/* Deletes a string of these bytes. */
static void delete_equal(struct call *call, int at) {
    struct entry *entry;
    if (!typed_key(call, 1, TYPE_STRING, &entry))
        return;
    bool equal = entry && is_string(entry, call->argv[at], call->lens[at]);
    if (equal)
        store_remove(call_store(call), entry);
    reply_integer(call->reply, equal);
}

static void run_delifeq(struct call *call) {
    delete_equal(call, 2);
}

/* Of its conditions, the server here has one. */
static void run_delex(struct call *call) {
    if (call->argc == 4 && argument_is(call, 2, "IFEQ"))
        delete_equal(call, 3);
    else
        answer_syntax_error(call);
}

static void answer_string(const struct call *call, const struct entry *entry) {
    if (entry && entry->type == TYPE_STRING)
        reply_bulk(call->reply, entry->items[0].bytes, entry->items[0].len);
    else
        reply_nil(call->reply);
}

static void run_get(struct call *call) {
    struct entry *entry;
    if (typed_key(call, 1, TYPE_STRING, &entry))
        answer_string(call, entry);
}

static void run_mget(struct call *call) {
    reply_array(call->reply, (size_t)call->argc - 1);
    for (int i = 1; i < call->argc; i++)
        answer_string(call, store_find(call_store(call), call->argv[i], call->lens[i]));
}

const struct command string_commands[] = {
    {"set", -3, WRITES | KEY, run_set},
    {"delifeq", 3, WRITES | KEY | VALKEY_9, run_delifeq},
    {"delex", -2, WRITES | KEY | REDIS_8, run_delex},
    {"get", 2, KEY, run_get},
    {"mget", -2, KEYS, run_mget},
    {0},
};
