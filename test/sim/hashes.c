/* The commands on hashes, whose fields stay in the order in which they came, as in a small hash of Redis. */
#include <stdio.h>
#include <string.h>

#include "state.h"

/* The value of the field in the argument; NULL: there is none. */
static struct item *value_of(const struct call *call, const struct entry *entry, int at) {
    for (size_t i = 0; entry && i < entry->count; i += 2) {
        if (item_is(&entry->items[i], call->argv[at], call->lens[at]))
            return &entry->items[i + 1];
    }
    return NULL;
}

/* The value of a field that is made if there is none. */
static struct item *make_value(const struct call *call, struct entry *entry, int at) {
    struct item *value = value_of(call, entry, at);
    if (value)
        return value;
    entry_insert(entry, entry->count, 2);
    item_set(&entry->items[entry->count - 2], call->argv[at], call->lens[at]);
    return &entry->items[entry->count - 1];
}

static void answer_value(const struct call *call, const struct item *value) {
    if (value)
        reply_bulk(call->reply, value->bytes, value->len);
    else
        reply_nil(call->reply);
}

static void run_hset(struct call *call) {
    struct entry *entry;
    if (call->argc % 2 == 1) {
        answer_wrong_arity(call);
        return;
    }
    if (!typed_key(call, 1, TYPE_HASH, &entry))
        return;
    if (!entry)
        entry = store_add(call_store(call), call->argv[1], call->lens[1], TYPE_HASH);
    size_t before = entry->count;
    for (int i = 2; i < call->argc; i += 2)
        item_set(make_value(call, entry, i), call->argv[i + 1], call->lens[i + 1]);
    reply_integer(call->reply, (int64_t)(entry->count - before) / 2);
}

static void run_hget(struct call *call) {
    struct entry *entry;
    if (typed_key(call, 1, TYPE_HASH, &entry))
        answer_value(call, value_of(call, entry, 2));
}

static void run_hmget(struct call *call) {
    struct entry *entry;
    if (!typed_key(call, 1, TYPE_HASH, &entry))
        return;
    reply_array(call->reply, (size_t)call->argc - 2);
    for (int i = 2; i < call->argc; i++)
        answer_value(call, value_of(call, entry, i));
}

static void run_hexists(struct call *call) {
    struct entry *entry;
    if (typed_key(call, 1, TYPE_HASH, &entry))
        reply_integer(call->reply, value_of(call, entry, 2) != NULL);
}

static void run_hlen(struct call *call) {
    struct entry *entry;
    if (typed_key(call, 1, TYPE_HASH, &entry))
        reply_integer(call->reply, entry ? (int64_t)entry->count / 2 : 0);
}

static void run_hgetall(struct call *call) {
    struct entry *entry;
    if (!typed_key(call, 1, TYPE_HASH, &entry))
        return;
    reply_array(call->reply, entry ? entry->count : 0);
    for (size_t i = 0; entry && i < entry->count; i++)
        reply_bulk(call->reply, entry->items[i].bytes, entry->items[i].len);
}

static void run_hdel(struct call *call) {
    struct entry *entry;
    if (!typed_key(call, 1, TYPE_HASH, &entry))
        return;
    size_t before = entry ? entry->count : 0;
    for (int i = 2; entry && i < call->argc; i++) {
        const struct item *value = value_of(call, entry, i);
        if (value)
            entry_erase(entry, (size_t)(value - entry->items) - 1, 2);
    }
    reply_integer(call->reply, entry ? (int64_t)(before - entry->count) / 2 : 0);
    if (entry)
        drop_if_empty(call, entry);
}

static void run_hincrby(struct call *call) {
    int64_t more, sum = 0;
    char digits[24];
    struct entry *entry;
    if (!integer_argument(call, 3, &more) || !typed_key(call, 1, TYPE_HASH, &entry))
        return;
    struct item *value = value_of(call, entry, 2);
    if (value && !parse_integer(value->bytes, value->len, &sum)) {
        reply_error(call->reply, "ERR hash value is not an integer");
        return;
    }
    if (__builtin_add_overflow(sum, more, &sum)) {
        reply_error(call->reply, "ERR increment or decrement would overflow");
        return;
    }
    if (!entry)
        entry = store_add(call_store(call), call->argv[1], call->lens[1], TYPE_HASH);
    int len = snprintf(digits, sizeof(digits), "%lld", (long long)sum);
    item_set(make_value(call, entry, 2), digits, (size_t)len);
    reply_integer(call->reply, sum);
}

const struct command hash_commands[] = {
    {"hdel", -3, WRITES, run_hdel}, {"hexists", 3, 0, run_hexists},      {"hget", 3, 0, run_hget},
    {"hgetall", 2, 0, run_hgetall}, {"hincrby", 4, WRITES, run_hincrby}, {"hlen", 2, 0, run_hlen},
    {"hmget", -3, 0, run_hmget},    {"hset", -4, WRITES, run_hset},      {0},
};
