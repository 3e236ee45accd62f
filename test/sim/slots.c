/* Members of a cluster; see slots.h. */
#include "slots.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "state.h"

enum { NOBODY = 0xFF };

struct slots {
    unsigned self, count;
    struct {
        unsigned master; /* itself: it is one */
        uint64_t epoch;
    } members[SLOTS_MEMBERS];
    unsigned version;              /* of what it says of itself, which only grows */
    unsigned heard[SLOTS_MEMBERS]; /* the version of each other that is in here; 0: none is for certain */
    uint8_t owners[SLOTS];
    uint8_t to[SLOTS], from[SLOTS]; /* of those on their way; or NOBODY */
};

/* --- Slots of keys ------------------------------------------------------------------------------------------------ */

/* CRC16 as of XMODEM. */
static unsigned crc16(const char *bytes, size_t len) {
    unsigned crc = 0;
    for (size_t i = 0; i < len; i++) {
        crc ^= (unsigned)(unsigned char)bytes[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1) & 0xFFFF;
    }
    return crc;
}

unsigned sim_slots_of(const char *key, size_t len) {
    const char *open = memchr(key, '{', len);
    const char *close = open ? memchr(open, '}', (size_t)(key + len - open)) : NULL;
    if (close && close > open + 1)
        return crc16(open + 1, (size_t)(close - open - 1)) % SLOTS;
    return crc16(key, len) % SLOTS;
}

/* --- The view ----------------------------------------------------------------------------------------------------- */

void sim_slots_join(sim_server *server, unsigned self, unsigned count) {
    struct slots *slots = need(calloc(1, sizeof(*slots)));
    unsigned masters = count / 2;
    slots->self = self;
    slots->count = count;
    slots->version = 1;
    for (unsigned i = 0; i < count; i++) {
        slots->members[i].master = i % masters;
        slots->members[i].epoch = i % masters + 1;
    }
    for (unsigned slot = 0; slot < SLOTS; slot++)
        slots->owners[slot] = (uint8_t)(slot * masters / SLOTS);
    memset(slots->to, NOBODY, sizeof(slots->to));
    memset(slots->from, NOBODY, sizeof(slots->from));
    server->slots = slots;
}

bool slots_follow(const sim_server *server) {
    return server->slots && server->slots->members[server->slots->self].master != server->slots->self;
}

static uint64_t greatest_epoch(const struct slots *slots) {
    uint64_t greatest = 0;
    for (unsigned i = 0; i < slots->count; i++)
        greatest = slots->members[i].epoch > greatest ? slots->members[i].epoch : greatest;
    return greatest;
}

static void changed(struct slots *slots) {
    slots->version++;
    memset(slots->heard, 0, sizeof(slots->heard));
}

void sim_slots_import(sim_server *server, unsigned slot, unsigned from) {
    server->slots->from[slot] = (uint8_t)from;
    changed(server->slots);
}

void sim_slots_migrate(sim_server *server, unsigned slot, unsigned to) {
    server->slots->to[slot] = (uint8_t)to;
}

void sim_slots_settle(sim_server *server, unsigned slot) {
    server->slots->to[slot] = server->slots->from[slot] = NOBODY;
    changed(server->slots);
}

/* Who gets a slot that it was to get has the greatest epoch from then on. */
void sim_slots_give(sim_server *server, unsigned slot, unsigned to) {
    struct slots *slots = server->slots;
    uint64_t greatest = greatest_epoch(slots);
    if (to == slots->self && slots->from[slot] != NOBODY && slots->members[to].epoch != greatest)
        slots->members[to].epoch = greatest + 1;
    slots->owners[slot] = (uint8_t)to;
    sim_slots_settle(server, slot);
}

void sim_slots_carry(sim_server *from, sim_server *to, const char *key, size_t len, int64_t later) {
    struct entry *entry = store_find(&from->stores[0], key, len), *other = store_find(&to->stores[0], key, len);
    if (!entry)
        return;
    if (other)
        store_remove(&to->stores[0], other);
    other = store_add_copy(&to->stores[0], entry);
    if (entry->expires != STORE_NEVER)
        other->expires = (to->now + later) / 1000 + entry->expires - now_ms(from);
    store_remove(&from->stores[0], entry);
    from->written++;
    to->written++;
}

const char *sim_slots_key(sim_server *server, unsigned slot, unsigned nth, size_t *len) {
    const struct store *store = &server->stores[0];
    for (size_t i = 0; i < store->size; i++) {
        for (const struct entry *entry = store->buckets[i]; entry; entry = entry->next) {
            if (entry_expired(store, entry) || sim_slots_of(entry->key, entry->key_len) != slot)
                continue;
            if (nth-- > 0)
                continue;
            *len = entry->key_len;
            return entry->key;
        }
    }
    return NULL;
}

void sim_slots_take_over(sim_server *server, sim_server *master) {
    struct slots *slots = server->slots;
    unsigned before = master->slots->self;
    for (unsigned db = 0; db < DATABASES; db++) {
        store_clear(&server->stores[db]);
        store_copy(&server->stores[db], &master->stores[db]);
        store_clear(&master->stores[db]);
    }
    memcpy(server->replid2, master->replid, sizeof(server->replid2));
    server_draw_id(server, server->replid);
    slots->members[slots->self].epoch = greatest_epoch(slots) + 1;
    slots->members[slots->self].master = slots->self;
    for (unsigned slot = 0; slot < SLOTS; slot++)
        if (slots->owners[slot] == before)
            slots->owners[slot] = (uint8_t)slots->self;
    slots->members[before].master = slots->self;
    memset(slots->to, NOBODY, sizeof(slots->to));
    memset(slots->from, NOBODY, sizeof(slots->from));
    changed(slots);
    slots->version += master->slots->version;
    *master->slots = *slots;
    master->slots->self = before;
}

/* Of a slot that two say is theirs, who has the greater epoch has it; one that is on its way here is settled by hand.
 */
void sim_slots_hear(sim_server *server, const sim_server *other) {
    struct slots *to = server->slots;
    const struct slots *from = other->slots;
    unsigned who = from->self;
    uint64_t epoch = from->members[who].epoch;
    if (to->heard[who] == from->version)
        return;
    to->heard[who] = from->version;
    to->members[who].master = from->members[who].master;
    if (from->members[who].master != who)
        return;
    if (to->members[who].epoch < epoch)
        to->members[who].epoch = epoch;
    to->version++;
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        if (from->owners[slot] != who || to->owners[slot] == who || to->from[slot] != NOBODY ||
            to->members[to->owners[slot]].epoch >= epoch)
            continue;
        to->owners[slot] = (uint8_t)who;
        to->to[slot] = NOBODY;
    }
}

unsigned sim_slots_owner(const sim_server *server, unsigned slot) {
    return server->slots->owners[slot];
}

uint64_t sim_slots_epoch(const sim_server *server) {
    return server->slots->members[server->slots->self].epoch;
}

/* --- Commands about keys ------------------------------------------------------------------------------------------ */

/* Which of the arguments are keys: so many from there on. */
static int keys_of(const struct call *call, int *count) {
    int64_t counted = 0;
    *count = call->command->flags & KEY ? 1 : call->command->flags & KEYS ? call->argc - 1 : 0;
    if (!(call->command->flags & COUNTED_KEYS))
        return 1;
    if (parse_integer(call->argv[2], call->lens[2], &counted) && counted > 0 && counted <= call->argc - 3)
        *count = (int)counted;
    return 3;
}

enum served { HERE, ELSEWHERE, ASKED, HALFWAY, SCATTERED };

/* Where a command about these keys is run; `*ret_who` is who has them, if somebody else. */
static enum served judge_keys(const struct call *call, int first, int count, unsigned slot, unsigned *ret_who) {
    struct slots *slots = call->server->slots;
    bool goes = slots->owners[slot] == slots->self && slots->to[slot] != NOBODY;
    bool comes = slots->owners[slot] != slots->self && slots->from[slot] != NOBODY;
    int missing = 0;
    for (int i = first; i < first + count; i++) {
        if (sim_slots_of(call->argv[i], call->lens[i]) != slot)
            return SCATTERED;
        missing += !store_find(call_store(call), call->argv[i], call->lens[i]);
    }
    if (goes && missing) {
        *ret_who = slots->to[slot];
        return missing < count ? HALFWAY : ASKED;
    }
    if (comes && call->session->asking)
        return count > 1 && missing ? HALFWAY : HERE;
    *ret_who = slots->owners[slot];
    return *ret_who == slots->self ? HERE : ELSEWHERE;
}

static enum served where_keys_are(const struct call *call, unsigned *ret_slot, unsigned *ret_who) {
    int count, first = keys_of(call, &count);
    if (!call->server->slots || count == 0)
        return HERE;
    *ret_slot = sim_slots_of(call->argv[first], call->lens[first]);
    return judge_keys(call, first, count, *ret_slot, ret_who);
}

bool slots_serve(const struct call *call) {
    unsigned slot = 0, who = 0;
    switch (where_keys_are(call, &slot, &who)) {
    case HERE:
        return true;
    case ELSEWHERE:
        reply_error(call->reply, "MOVED %u 127.0.0.1:%u", slot, SLOTS_PORT + who);
        break;
    case ASKED:
        reply_error(call->reply, "ASK %u 127.0.0.1:%u", slot, SLOTS_PORT + who);
        break;
    case HALFWAY:
        reply_error(call->reply, "TRYAGAIN Multiple keys request during rehashing of slot");
        break;
    case SCATTERED:
        reply_error(call->reply, "CROSSSLOT Keys in request don't hash to the same slot");
        break;
    }
    return false;
}

bool slots_serve_script(const struct call *call) {
    unsigned slot, who;
    return where_keys_are(call, &slot, &who) == HERE;
}

/* --- Commands about slots ----------------------------------------------------------------------------------------- */

static bool in_cluster(const struct call *call) {
    if (!call->server->slots)
        reply_error(call->reply, "ERR This instance has cluster support disabled");
    return call->server->slots;
}

static void run_asking(struct call *call) {
    if (!in_cluster(call))
        return;
    call->session->asking = true;
    reply_ok(call->reply);
}

bool sim_session_asks(const sim_session *session) {
    return session->asking;
}

static void run_cluster_info(struct call *call) {
    static const char text[] = "cluster_state:ok\r\ncluster_slots_assigned:16384\r\ncluster_size:2\r\n";
    if (in_cluster(call))
        reply_bulk(call->reply, text, sizeof(text) - 1);
}

/* An id is 40 digits that are the member's number. */
static void put_id(char id[41], unsigned member) {
    memset(id, '0' + (int)member, 40);
    id[40] = '\0';
}

/* " 0-5460 7": the ranges that are a member's. */
static size_t put_slots(char *text, size_t size, const struct slots *slots, unsigned member) {
    size_t len = 0;
    for (unsigned slot = 0, last; slot < SLOTS && len < size; slot = last + 1) {
        last = slot;
        if (slots->owners[slot] != member)
            continue;
        while (last + 1 < SLOTS && slots->owners[last + 1] == member)
            last++;
        len += (size_t)snprintf(text + len, size - len, last > slot ? " %u-%u" : " %u", slot, last);
    }
    return len;
}

/* " [7->-id]": those that are on their way. */
static size_t put_moving(char *text, size_t size, const struct slots *slots) {
    size_t len = 0;
    char id[41];
    for (unsigned slot = 0; slot < SLOTS && len < size; slot++) {
        bool goes = slots->to[slot] != NOBODY;
        if (!goes && slots->from[slot] == NOBODY)
            continue;
        put_id(id, goes ? slots->to[slot] : slots->from[slot]);
        len += (size_t)snprintf(text + len, size - len, goes ? " [%u->-%s]" : " [%u-<-%s]", slot, id);
    }
    return len;
}

static size_t put_member(char *text, size_t size, const struct slots *slots, unsigned member) {
    unsigned master = slots->members[member].master;
    char id[41], of[41];
    size_t len;
    put_id(id, member);
    put_id(of, master);
    len = (size_t)snprintf(text, size, "%s 127.0.0.1:%u@%u %s%s %s 0 0 %" PRIu64 " connected", id, SLOTS_PORT + member,
                           SLOTS_PORT + 10000 + member, member == slots->self ? "myself," : "",
                           master == member ? "master" : "slave", master == member ? "-" : of,
                           slots->members[master].epoch);
    len += put_slots(text + len, size - len, slots, member);
    if (member == slots->self)
        len += put_moving(text + len, size - len, slots);
    return len + (size_t)snprintf(text + len, size - len, "\n");
}

static void run_cluster_nodes(struct call *call) {
    char text[8192];
    size_t len = 0;
    if (!in_cluster(call))
        return;
    for (unsigned i = 0; i < call->server->slots->count; i++)
        len += put_member(text + len, sizeof(text) - len, call->server->slots, i);
    reply_bulk(call->reply, text, len);
}

const struct command slot_commands[] = {
    {"asking", 1, NO_SCRIPT, run_asking},
    {"cluster", -2, LOGIN, NULL},
    {"cluster|info", 2, NO_SCRIPT | LOGIN, run_cluster_info},
    {"cluster|nodes", 2, NO_SCRIPT | LOGIN, run_cluster_nodes},
    {0},
};
