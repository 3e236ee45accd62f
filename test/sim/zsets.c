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

/* --- ZADD --------------------------------------------------------------------------------------------------------- */

struct zadd_options {
    bool nx, xx, gt, lt, ch;
    int first; /* the first score */
};

static bool read_options(const struct call *call, struct zadd_options *options) {
    int at = 2;
    for (; at < call->argc; at++) {
        bool *word = argument_is(call, at, "NX")   ? &options->nx
                     : argument_is(call, at, "XX") ? &options->xx
                     : argument_is(call, at, "GT") ? &options->gt
                     : argument_is(call, at, "LT") ? &options->lt
                     : argument_is(call, at, "CH") ? &options->ch
                                                   : NULL;
        if (!word)
            break;
        *word = true;
    }
    options->first = at;
    if (at == call->argc || (call->argc - at) % 2 == 1) {
        answer_syntax_error(call);
        return false;
    }
    if (options->nx && options->xx) {
        reply_error(call->reply, "ERR XX and NX options at the same time are not compatible");
        return false;
    }
    if (options->nx + options->gt + options->lt > 1) {
        reply_error(call->reply, "ERR GT, LT, and/or NX options at the same time are not compatible");
        return false;
    }
    return true;
}

static void run_zadd(struct call *call) {
    struct zadd_options options = {0};
    int64_t added = 0, changed = 0;
    double score;
    struct entry *entry;
    if (!read_options(call, &options))
        return;
    for (int i = options.first; i < call->argc; i += 2) {
        if (!float_argument(call, i, &score))
            return;
    }
    if (!typed_key(call, 1, TYPE_ZSET, &entry))
        return;
    if (!entry && !options.xx)
        entry = store_add(call_store(call), call->argv[1], call->lens[1], TYPE_ZSET);
    for (int i = options.first; entry && i < call->argc; i += 2) {
        const struct item *item = find(call, entry, i + 1);
        float_argument(call, i, &score);
        if (item ? options.nx || (options.gt && score <= item->score) || (options.lt && score >= item->score)
                 : options.xx)
            continue;
        added += !item;
        changed += item && item->score != score;
        if (item)
            entry_erase(entry, (size_t)(item - entry->items), 1);
        put(call, entry, score, i + 1);
    }
    reply_integer(call->reply, options.ch ? added + changed : added);
}

/* --- The rest ----------------------------------------------------------------------------------------------------- */

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

static void run_zscore(struct call *call) {
    struct entry *entry;
    if (!typed_key(call, 1, TYPE_ZSET, &entry))
        return;
    const struct item *item = find(call, entry, 2);
    if (item)
        reply_double(call->reply, item->score);
    else
        reply_nil(call->reply);
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

static void answer_items(const struct call *call, const struct entry *entry, size_t from, size_t end, bool scores) {
    reply_array(call->reply, (end - from) * (scores ? 2 : 1));
    for (size_t i = from; i < end; i++) {
        reply_bulk(call->reply, entry->items[i].bytes, entry->items[i].len);
        if (scores)
            reply_double(call->reply, entry->items[i].score);
    }
}

static void run_zrange(struct call *call) {
    int64_t first, last;
    size_t from = 0, end = 0;
    struct entry *entry;
    for (int i = 4; i < call->argc; i++) {
        if (!argument_is(call, i, "WITHSCORES")) {
            answer_syntax_error(call);
            return;
        }
    }
    if (!integer_argument(call, 2, &first) || !integer_argument(call, 3, &last) ||
        !typed_key(call, 1, TYPE_ZSET, &entry))
        return;
    if (entry)
        index_range(first, last, entry->count, &from, &end);
    answer_items(call, entry, from, end, call->argc > 4);
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
    answer_items(call, entry, 0, end, true);
    if (!entry)
        return;
    entry_erase(entry, 0, end);
    drop_if_empty(call, entry);
}

const struct command zset_commands[] = {
    {"zadd", -4, WRITES, run_zadd},       {"zcard", 2, 0, run_zcard},
    {"zpopmin", -2, WRITES, run_zpopmin}, {"zrange", -4, 0, run_zrange},
    {"zrank", 3, 0, run_zrank},           {"zrem", -3, WRITES, run_zrem},
    {"zscore", 3, 0, run_zscore},         {0},
};
