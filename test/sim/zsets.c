/* The commands on sorted sets: an array that is kept sorted by score, then by member. */
#include <string.h>

#include "state.h"

static struct item *find(const struct call *call, const struct entry *entry, int at) {
    for (size_t i = 0; entry && i < entry->count; i++) {
        if (item_is(&entry->items[i], call->argv[at], call->lens[at]))
            return &entry->items[i];
    }
    return NULL;
}

static bool before(const struct item *item, double score, const char *member, size_t len) {
    if (item->score != score)
        return item->score < score;
    int order = memcmp(item->bytes, member, item->len < len ? item->len : len);
    return order < 0 || (order == 0 && item->len < len);
}

static void put(const struct call *call, struct entry *entry, double score, int member) {
    size_t at = 0;
    while (at < entry->count && before(&entry->items[at], score, call->argv[member], call->lens[member]))
        at++;
    entry_insert(entry, at, 1);
    item_set(&entry->items[at], call->argv[member], call->lens[member]);
    entry->items[at].score = score + 0.0; /* never -0, as in a small set of Redis */
}

static void run_zadd(struct call *call) {
    int first = 2; /* the first score */
    int64_t added = 0;
    double score;
    struct entry *entry;
    while (first < call->argc && argument_is(call, first, "NX"))
        first++;
    if (first == call->argc || (call->argc - first) % 2 == 1) {
        answer_syntax_error(call);
        return;
    }
    for (int i = first; i < call->argc; i += 2) {
        if (!float_argument(call, i, &score))
            return;
    }
    if (!typed_key(call, 1, TYPE_ZSET, &entry))
        return;
    if (!entry)
        entry = store_add(call_store(call), call->argv[1], call->lens[1], TYPE_ZSET);
    for (int i = first; i < call->argc; i += 2) {
        const struct item *item = find(call, entry, i + 1);
        float_argument(call, i, &score);
        if (item && first > 2)
            continue;
        added += !item;
        if (item)
            entry_erase(entry, (size_t)(item - entry->items), 1);
        put(call, entry, score, i + 1);
    }
    reply_integer(call->reply, added);
}

static void run_zrem(struct call *call) {
    struct entry *entry;
    if (!typed_key(call, 1, TYPE_ZSET, &entry))
        return;
    size_t count = entry ? entry->count : 0;
    for (int i = 2; entry && i < call->argc; i++) {
        const struct item *item = find(call, entry, i);
        if (item)
            entry_erase(entry, (size_t)(item - entry->items), 1);
    }
    reply_integer(call->reply, entry ? (int64_t)(count - entry->count) : 0);
    if (entry)
        drop_if_empty(call, entry);
}

static void run_zcard(struct call *call) {
    struct entry *entry;
    if (typed_key(call, 1, TYPE_ZSET, &entry))
        reply_integer(call->reply, entry ? (int64_t)entry->count : 0);
}

static void run_zrank(struct call *call) {
    struct entry *entry;
    if (!typed_key(call, 1, TYPE_ZSET, &entry))
        return;
    const struct item *item = find(call, entry, 2);
    if (item)
        reply_integer(call->reply, item - entry->items);
    else
        reply_nil(call->reply);
}

static void run_zpopmin(struct call *call) {
    int64_t count = 1;
    struct entry *entry;
    if (call->argc > 3) {
        answer_syntax_error(call);
        return;
    }
    if ((call->argc == 3 && !positive_argument(call, 2, NULL, &count)) || !typed_key(call, 1, TYPE_ZSET, &entry))
        return;
    size_t end = entry ? entry->count : 0;
    if ((uint64_t)count < end)
        end = (size_t)count;
    reply_array(call->reply, 2 * end);
    for (size_t i = 0; i < end; i++) {
        reply_bulk(call->reply, entry->items[i].bytes, entry->items[i].len);
        reply_double(call->reply, entry->items[i].score);
    }
    if (!entry)
        return;
    entry_erase(entry, 0, end);
    drop_if_empty(call, entry);
}

const struct command zset_commands[] = {
    {"zadd", -4, WRITES | KEY, run_zadd},       {"zcard", 2, KEY, run_zcard},
    {"zpopmin", -2, WRITES | KEY, run_zpopmin}, {"zrank", 3, KEY, run_zrank},
    {"zrem", -3, WRITES | KEY, run_zrem},       {0},
};
