/* The floor in a cluster; see cluster_floor.h. */
#include "cluster_floor.h"

#include <hiredis/adapters/libevent.h>

#include <stdlib.h>

#include "check.h"
#include "floor.h"

struct cluster_floor {
    struct event_base *base;
    redisAsyncContext *connections[CLUSTER_MAX];
    size_t count;
    redisAsyncContext *of_slot[CLUSTER_SLOTS];
    struct lease *leases;
    size_t level;
    long wanted;  /* pairs still to be begun */
    long pending; /* begun and not ended */
};

/* --- Slots -------------------------------------------------------------------------------------------------------- */

static uint16_t crc_of_byte[256];

static void make_crcs(void) {
    for (unsigned byte = 0; byte < 256; byte++) {
        unsigned crc = byte << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1;
        crc_of_byte[byte] = (uint16_t)crc;
    }
}

/* Of a key without braces. */
static unsigned slot_of(const struct lease *lease) {
    unsigned crc = 0;
    for (size_t i = 0; i < KEY_LEN; i++)
        crc = (crc << 8 & 0xFFFF) ^ crc_of_byte[crc >> 8 ^ (unsigned char)lease->key[i]];
    return crc % CLUSTER_SLOTS;
}

static redisAsyncContext *connection_of(const struct cluster_floor *floor, const struct lease *lease) {
    return floor->of_slot[slot_of(lease)];
}

/* A row of the answer: the first slot, the last one, and the master's address, port and name. */
static void note_slots(struct cluster_floor *floor, struct keepers masters, const redisReply *row) {
    for (size_t i = 0; i < masters.count; i++)
        if (row->element[2]->element[1]->integer == masters.at[i].port)
            for (long long slot = row->element[0]->integer; slot <= row->element[1]->integer; slot++)
                floor->of_slot[slot] = floor->connections[i];
}

static void read_slots(struct cluster_floor *floor, struct keepers masters) {
    redisReply *reply = server_command(&masters.at[0], "CLUSTER SLOTS");
    for (size_t i = 0; i < reply->elements; i++)
        note_slots(floor, masters, reply->element[i]);
    freeReplyObject(reply);
    for (size_t slot = 0; slot < CLUSTER_SLOTS; slot++)
        CHECK(floor->of_slot[slot], "slot %zu is nobody's", slot);
}

/* --- Pairs -------------------------------------------------------------------------------------------------------- */

static void acquired(redisAsyncContext *connection, void *reply, void *arg);

static struct cluster_floor *floor_of(const redisAsyncContext *connection) {
    return connection->data;
}

static void acquire(const struct cluster_floor *floor, struct lease *lease) {
    floor_draw(lease);
    floor_acquire(connection_of(floor, lease), lease, acquired, lease);
}

static void released(redisAsyncContext *connection, void *reply, void *arg) {
    struct cluster_floor *floor = floor_of(connection);
    floor_expect_one(reply);
    if (floor->wanted > 0) {
        floor->wanted--;
        acquire(floor, arg);
    } else if (--floor->pending == 0) {
        event_base_loopbreak(floor->base);
    }
}

static void acquired(redisAsyncContext *connection, void *reply, void *arg) {
    floor_expect_ok(reply);
    floor_release(connection_of(floor_of(connection), arg), arg, released, arg);
}

void cluster_floor_run(void *arg, long pairs) {
    struct cluster_floor *floor = arg;
    floor->wanted = pairs - (long)floor->level;
    floor->pending = (long)floor->level;
    for (size_t i = 0; i < floor->level; i++)
        acquire(floor, &floor->leases[i]);
    event_base_dispatch(floor->base);
}

/* --- Beginning and end -------------------------------------------------------------------------------------------- */

static redisAsyncContext *connect_to(struct cluster_floor *floor, struct server *master) {
    floor_load(master);
    redisAsyncContext *connection = redisAsyncConnect("127.0.0.1", master->port);
    CHECK(connection && !connection->err && redisLibeventAttach(connection, floor->base) == REDIS_OK, "no connection");
    connection->data = floor;
    return connection;
}

struct cluster_floor *cluster_floor_open(struct event_base *base, struct keepers masters, size_t level) {
    struct cluster_floor *floor = calloc(1, sizeof(*floor));
    CHECK(floor, "out of memory");
    *floor = (struct cluster_floor){.base = base, .count = masters.count, .level = level};
    floor->leases = calloc(level, sizeof(struct lease));
    CHECK(floor->leases, "out of memory");
    for (size_t i = 0; i < level; i++)
        key_write(floor->leases[i].key, i);
    for (size_t i = 0; i < masters.count; i++)
        floor->connections[i] = connect_to(floor, &masters.at[i]);
    make_crcs();
    read_slots(floor, masters);
    return floor;
}

void cluster_floor_close(struct cluster_floor *floor) {
    for (size_t i = 0; i < floor->count; i++)
        redisAsyncFree(floor->connections[i]);
    free(floor->leases);
    free(floor);
}
