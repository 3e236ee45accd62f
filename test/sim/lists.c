/* The commands on lists. */
#include <string.h>

#include "state.h"

static void push(struct call *call, bool left) {
    struct entry *entry;
    if (!typed_key(call, 1, TYPE_LIST, &entry))
        return;
    if (!entry)
        entry = store_add(call_store(call), call->argv[1], call->lens[1], TYPE_LIST);
    for (int i = 2; i < call->argc; i++) {
        size_t at = left ? 0 : entry->count;
        entry_insert(entry, at, 1);
        item_set(&entry->items[at], call->argv[i], call->lens[i]);
    }
    reply_integer(call->reply, (int64_t)entry->count);
}

static void run_lpush(struct call *call) {
    push(call, true);
}

static void run_rpush(struct call *call) {
    push(call, false);
}

static void pop(struct call *call, bool left) {
    bool many = call->argc == 3;
    int64_t count = 1;
    struct entry *entry;
    if (call->argc > 3) {
        answer_wrong_arity(call);
        return;
    }
    if ((many && !positive_argument(call, 2, NULL, &count)) || !typed_key(call, 1, TYPE_LIST, &entry))
        return;
    if (!entry) {
        (many ? reply_nil_array : reply_nil)(call->reply);
        return;
    }
    if ((uint64_t)count > entry->count)
        count = (int64_t)entry->count;
    if (many)
        reply_array(call->reply, (size_t)count);
    for (; count > 0; count--) {
        size_t at = left ? 0 : entry->count - 1;
        reply_bulk(call->reply, entry->items[at].bytes, entry->items[at].len);
        entry_erase(entry, at, 1);
    }
    drop_if_empty(call, entry);
}

static void run_lpop(struct call *call) {
    pop(call, true);
}

static void run_rpop(struct call *call) {
    pop(call, false);
}

static void run_llen(struct call *call) {
    struct entry *entry;
    if (typed_key(call, 1, TYPE_LIST, &entry))
        reply_integer(call->reply, entry ? (int64_t)entry->count : 0);
}

static void run_lrange(struct call *call) {
    int64_t first, last;
    size_t from, end;
    struct entry *entry;
    if (!integer_argument(call, 2, &first) || !integer_argument(call, 3, &last) ||
        !typed_key(call, 1, TYPE_LIST, &entry))
        return;
    if (!entry || !index_range(first, last, entry->count, &from, &end)) {
        reply_array(call->reply, 0);
        return;
    }
    reply_array(call->reply, end - from);
    for (size_t at = from; at < end; at++)
        reply_bulk(call->reply, entry->items[at].bytes, entry->items[at].len);
}

/* The item at an index that counts from the end if it is negative; NULL: there is none. */
static struct item *item_at(const struct entry *entry, int64_t index) {
    if (index < 0)
        index += (int64_t)entry->count;
    return index >= 0 && index < (int64_t)entry->count ? &entry->items[index] : NULL;
}

static void run_lindex(struct call *call) {
    int64_t index;
    struct entry *entry;
    if (!typed_key(call, 1, TYPE_LIST, &entry) || (entry && !integer_argument(call, 2, &index)))
        return;
    const struct item *item = entry ? item_at(entry, index) : NULL;
    if (item)
        reply_bulk(call->reply, item->bytes, item->len);
    else
        reply_nil(call->reply);
}

static void run_lset(struct call *call) {
    int64_t index;
    struct entry *entry;
    if (!typed_key(call, 1, TYPE_LIST, &entry))
        return;
    if (!entry) {
        reply_error(call->reply, "ERR no such key");
        return;
    }
    if (!integer_argument(call, 2, &index))
        return;
    struct item *item = item_at(entry, index);
    if (!item) {
        reply_error(call->reply, "ERR index out of range");
        return;
    }
    item_set(item, call->argv[3], call->lens[3]);
    reply_ok(call->reply);
}

static void run_lrem(struct call *call) {
    int64_t most, removed = 0;
    struct entry *entry;
    if (!integer_argument(call, 2, &most) || !typed_key(call, 1, TYPE_LIST, &entry))
        return;
    uint64_t limit = most > 0 ? (uint64_t)most : most < 0 ? 0 - (uint64_t)most : UINT64_MAX;
    size_t at = most < 0 && entry ? entry->count : 0;
    while (entry && (uint64_t)removed < limit && (most < 0 ? at-- > 0 : at < entry->count)) {
        if (item_is(&entry->items[at], call->argv[3], call->lens[3])) {
            entry_erase(entry, at, 1);
            removed++;
        } else if (most >= 0) {
            at++;
        }
    }
    if (entry)
        drop_if_empty(call, entry);
    reply_integer(call->reply, removed);
}

/* --- LPOS --------------------------------------------------------------------------------------------------------- */

struct lpos_options {
    int64_t rank, count, maxlen; /* count: -1 if it was not given */
};

static bool read_lpos_options(const struct call *call, struct lpos_options *options) {
    for (int at = 3; at < call->argc; at += 2) {
        bool fine;
        if (at + 1 < call->argc && argument_is(call, at, "RANK")) {
            fine = integer_argument(call, at + 1, &options->rank);
            if (fine && options->rank == 0) {
                reply_error(call->reply, "ERR RANK can't be zero: use 1 to start from the first match, 2 from the "
                                         "second ... or use negative to start from the end of the list");
                fine = false;
            }
        } else if (at + 1 < call->argc && argument_is(call, at, "COUNT")) {
            fine = positive_argument(call, at + 1, "COUNT can't be negative", &options->count);
        } else if (at + 1 < call->argc && argument_is(call, at, "MAXLEN")) {
            fine = positive_argument(call, at + 1, "MAXLEN can't be negative", &options->maxlen);
        } else {
            answer_syntax_error(call);
            fine = false;
        }
        if (!fine)
            return false;
    }
    return true;
}

static void run_lpos(struct call *call) {
    struct lpos_options options = {.rank = 1, .count = -1};
    struct entry *entry;
    size_t found = 0;
    if (!read_lpos_options(call, &options) || !typed_key(call, 1, TYPE_LIST, &entry))
        return;
    size_t size = entry ? entry->count : 0;
    size_t looks = options.maxlen && (uint64_t)options.maxlen < size ? (size_t)options.maxlen : size;
    uint64_t skip = (options.rank < 0 ? 0 - (uint64_t)options.rank : (uint64_t)options.rank) - 1;
    uint64_t limit = options.count < 0 ? 1 : options.count == 0 ? UINT64_MAX : (uint64_t)options.count;
    struct output positions = {0};
    for (size_t i = 0; i < looks && found < limit; i++) {
        size_t at = options.rank < 0 ? size - 1 - i : i;
        if (!item_is(&entry->items[at], call->argv[2], call->lens[2]))
            continue;
        if (skip > 0) {
            skip--;
            continue;
        }
        reply_integer(&positions, (int64_t)at);
        found++;
    }
    if (options.count >= 0)
        reply_array(call->reply, found);
    else if (!found)
        reply_nil(call->reply);
    if (found)
        reply_raw(call->reply, positions.bytes, positions.len);
    reply_free(&positions);
}

const struct command list_commands[] = {
    {"lindex", 3, 0, run_lindex},
    {"llen", 2, 0, run_llen},
    {"lpop", -2, WRITES, run_lpop},
    {"lpos", -3, 0, run_lpos},
    {"lpush", -3, WRITES, run_lpush},
    {"lrange", 4, 0, run_lrange},
    {"lrem", 4, WRITES, run_lrem},
    {"lset", 4, WRITES, run_lset},
    {"rpop", -2, WRITES, run_rpop},
    {"rpush", -3, WRITES, run_rpush},
    {0},
};
