/* The commands on keys of any type: whether they are there, and how long they live. */
#include <string.h>

#include "state.h"

static struct entry *find(const struct call *call, int at) {
    return store_find(call_store(call), call->argv[at], call->lens[at]);
}

static void run_del(struct call *call) {
    int64_t count = 0;
    for (int i = 1; i < call->argc; i++) {
        struct entry *entry = find(call, i);
        count += entry != NULL;
        if (entry)
            store_remove(call_store(call), entry);
    }
    reply_integer(call->reply, count);
}

static void run_exists(struct call *call) {
    int64_t count = 0;
    for (int i = 1; i < call->argc; i++)
        count += find(call, i) != NULL;
    reply_integer(call->reply, count);
}

/* --- Expiry ------------------------------------------------------------------------------------------------------- */

static void run_pttl(struct call *call) {
    const struct entry *entry = find(call, 1);
    reply_integer(call->reply, !entry                          ? -2
                               : entry->expires == STORE_NEVER ? -1
                                                               : entry->expires - now_ms(call->server));
}

struct conditions {
    bool nx, xx, gt, lt;
};

static bool read_conditions(const struct call *call, struct conditions *on) {
    for (int i = 3; i < call->argc; i++) {
        bool *word = argument_is(call, i, "NX")   ? &on->nx
                     : argument_is(call, i, "XX") ? &on->xx
                     : argument_is(call, i, "GT") ? &on->gt
                     : argument_is(call, i, "LT") ? &on->lt
                                                  : NULL;
        if (!word) {
            reply_error(call->reply, "ERR Unsupported option %s", call->argv[i]);
            return false;
        }
        *word = true;
    }
    if (on->nx && (on->xx || on->gt || on->lt)) {
        reply_error(call->reply, "ERR NX and XX, GT or LT options at the same time are not compatible");
        return false;
    }
    if (on->gt && on->lt) {
        reply_error(call->reply, "ERR GT and LT options at the same time are not compatible");
        return false;
    }
    return true;
}

/* No expiry is later than any. */
static bool conditions_hold(const struct conditions *on, int64_t now, int64_t wanted) {
    if (now == STORE_NEVER)
        return !on->xx && !on->gt;
    return !on->nx && !(on->gt && wanted <= now) && !(on->lt && wanted >= now);
}

static void run_pexpire(struct call *call) {
    struct conditions on = {0};
    int64_t when;
    if (!read_conditions(call, &on) || !integer_argument(call, 2, &when))
        return;
    if (__builtin_add_overflow(when, now_ms(call->server), &when)) {
        reply_error(call->reply, "ERR invalid expire time in '%s' command", call->command->name);
        return;
    }
    struct entry *entry = find(call, 1);
    if (!entry || !conditions_hold(&on, entry->expires, when)) {
        reply_integer(call->reply, 0);
        return;
    }
    if (when <= now_ms(call->server))
        store_remove(call_store(call), entry);
    else
        entry->expires = when;
    reply_integer(call->reply, 1);
}

const struct command key_commands[] = {
    {"del", -2, WRITES | KEYS, run_del},
    {"exists", -2, KEYS, run_exists},
    {"pexpire", -3, WRITES | KEY, run_pexpire},
    {"pttl", 2, KEY, run_pttl},
    {0},
};
