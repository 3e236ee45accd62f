/*
 * The keys of a simulated server: a hash table of entries, each of one of Redis's types and with an expiry or none. It
 * owns every byte that it keeps. It knows no commands, and expires only what it is asked for.
 */
#ifndef EVLOCK_SIM_STORE_H
#define EVLOCK_SIM_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "world/need.h"

#define STORE_NEVER (-1)

enum type { TYPE_STRING, TYPE_ZSET };

struct item {
    char *bytes; /* ended by a zero that is not counted */
    size_t len;
    double score; /* of a member of a sorted set */
};

/* A string is one item; a hash is its fields, each with its value behind it; a sorted set is sorted. */
struct entry {
    struct entry *next; /* in its bucket */
    uint64_t hash;
    enum type type;
    int64_t expires; /* unix time in ms, the last at which it is there; or STORE_NEVER */
    struct item *items;
    size_t count, room;
    size_t key_len;
    char key[];
};

struct store {
    struct entry **buckets;
    size_t size, count;
    int64_t now; /* ms, set by the owner */
};

void store_clear(struct store *store);
void store_copy(struct store *to, const struct store *from);

/* NULL: there is none, or it is expired. */
struct entry *store_find(struct store *store, const char *key, size_t len);
/* A new, empty entry; there must be none with this key. */
struct entry *store_add(struct store *store, const char *key, size_t len, enum type type);
/* The same as one of another store has; there must be none with its key. */
struct entry *store_add_copy(struct store *to, const struct entry *entry);
void store_remove(struct store *store, struct entry *entry);

bool entry_expired(const struct store *store, const struct entry *entry);

/* Room for `count` items before the one at `at`, made of no bytes. */
void entry_insert(struct entry *entry, size_t at, size_t count);
void entry_erase(struct entry *entry, size_t at, size_t count);
void entry_clear(struct entry *entry);
void item_set(struct item *item, const char *bytes, size_t len);
bool item_is(const struct item *item, const char *bytes, size_t len);

#endif
