/* The commands on strings: SET with all of its options, and what reads and counts them. */
#include <stdio.h>
#include <string.h>

#include "state.h"

static void answer_string(const struct call *call, const struct entry *entry) {
    if (entry && entry->type == TYPE_STRING)
        reply_bulk(call->reply, entry->items[0].bytes, entry->items[0].len);
    else
        reply_nil(call->reply);
}

static void put_string(const struct call *call, struct entry *entry, int at) {
    entry_clear(entry);
    entry_insert(entry, 0, 1);
    item_set(&entry->items[0], call->argv[at], call->lens[at]);
    entry->type = TYPE_STRING;
}

/* --- SET ---------------------------------------------------------------------------------------------------------- */

struct set_options {
    bool nx, xx, get, keep;
    int expiry;      /* the argument that is a time; 0: none */
    int64_t scale;   /* of that in ms */
    bool from_epoch; /* else from now */
};

static bool read_expiry_option(const struct call *call, int at, struct set_options *options) {
    static const struct {
        const char *word;
        int64_t scale;
        bool from_epoch;
    } units[] = {{"EX", 1000, false}, {"PX", 1, false}, {"EXAT", 1000, true}, {"PXAT", 1, true}};
    if (options->keep || options->expiry || at + 1 >= call->argc)
        return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (argument_is(call, at, units[i].word)) {
            options->expiry = at + 1;
            options->scale = units[i].scale;
            options->from_epoch = units[i].from_epoch;
            return true;
        }
    }
    return false;
}

static bool read_options(const struct call *call, struct set_options *options) {
    for (int at = 3; at < call->argc; at++) {
        if (argument_is(call, at, "NX") && !options->xx)
            options->nx = true;
        else if (argument_is(call, at, "XX") && !options->nx)
            options->xx = true;
        else if (argument_is(call, at, "GET"))
            options->get = true;
        else if (argument_is(call, at, "KEEPTTL") && !options->expiry)
            options->keep = true;
        else if (read_expiry_option(call, at, options))
            at++;
        else
            return false;
    }
    return true;
}

static bool read_expiry(const struct call *call, const struct set_options *options, int64_t *ret) {
    int64_t from = options->from_epoch ? 0 : now_ms(call->server);
    *ret = STORE_NEVER;
    if (!options->expiry)
        return true;
    if (!integer_argument(call, options->expiry, ret))
        return false;
    if (*ret <= 0 || *ret > (INT64_MAX - from) / options->scale) {
        reply_error(call->reply, "ERR invalid expire time in 'set' command");
        return false;
    }
    *ret = *ret * options->scale + from;
    return true;
}

static void run_set(struct call *call) {
    struct set_options options = {0};
    struct entry *entry;
    int64_t expires;
    if (!read_options(call, &options)) {
        answer_syntax_error(call);
        return;
    }
    if (!read_expiry(call, &options, &expires))
        return;
    if (!options.get)
        entry = store_find(call_store(call), call->argv[1], call->lens[1]);
    else if (!typed_key(call, 1, TYPE_STRING, &entry))
        return;
    if (options.get)
        answer_string(call, entry);
    if (entry ? options.nx : options.xx) {
        if (!options.get)
            reply_nil(call->reply);
        return;
    }
    if (!entry)
        entry = store_add(call_store(call), call->argv[1], call->lens[1], TYPE_STRING);
    put_string(call, entry, 2);
    if (!options.keep)
        entry->expires = expires;
    if (!options.get)
        reply_ok(call->reply);
}

/* --- The rest ----------------------------------------------------------------------------------------------------- */

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

static void add(struct call *call, int64_t more) {
    struct entry *entry;
    int64_t value = 0;
    char digits[24];
    if (!typed_key(call, 1, TYPE_STRING, &entry))
        return;
    if (entry && !parse_integer(entry->items[0].bytes, entry->items[0].len, &value)) {
        reply_error(call->reply, "ERR value is not an integer or out of range");
        return;
    }
    if (__builtin_add_overflow(value, more, &value)) {
        reply_error(call->reply, "ERR increment or decrement would overflow");
        return;
    }
    if (!entry) {
        entry = store_add(call_store(call), call->argv[1], call->lens[1], TYPE_STRING);
        entry_insert(entry, 0, 1);
    }
    item_set(&entry->items[0], digits, (size_t)snprintf(digits, sizeof(digits), "%lld", (long long)value));
    reply_integer(call->reply, value);
}

static void run_incr(struct call *call) {
    add(call, 1);
}

static void run_incrby(struct call *call) {
    int64_t more;
    if (integer_argument(call, 2, &more))
        add(call, more);
}

const struct command string_commands[] = {
    {"set", -3, WRITES, run_set},      {"get", 2, 0, run_get},
    {"mget", -2, 0, run_mget},         {"incr", 2, WRITES, run_incr},
    {"incrby", 3, WRITES, run_incrby}, {0},
};
