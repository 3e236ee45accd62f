/*
 * The keys of a simulated server; see store.h. The table doubles when it is full, and an expired entry goes when it is
 * looked for.
 */
#include "store.h"

#include <stdlib.h>
#include <string.h>

/* --- Entries ------------------------------------------------------------------------------------------------------ */

void item_set(struct item *item, const char *bytes, size_t len) {
    char *copy = need(malloc(len + 1));
    memcpy(copy, bytes, len);
    copy[len] = '\0';
    free(item->bytes);
    item->bytes = copy;
    item->len = len;
}

bool item_is(const struct item *item, const char *bytes, size_t len) {
    return item->len == len && memcmp(item->bytes, bytes, len) == 0;
}

void entry_insert(struct entry *entry, size_t at, size_t count) {
    if (entry->count + count > entry->room) {
        entry->room = entry->room ? 2 * (entry->count + count) : count;
        entry->items = need(realloc(entry->items, entry->room * sizeof(*entry->items)));
    }
    memmove(&entry->items[at + count], &entry->items[at], (entry->count - at) * sizeof(*entry->items));
    memset(&entry->items[at], 0, count * sizeof(*entry->items));
    entry->count += count;
}

void entry_erase(struct entry *entry, size_t at, size_t count) {
    if (count == 0)
        return; /* there may be no array */
    for (size_t i = at; i < at + count; i++)
        free(entry->items[i].bytes);
    entry->count -= count;
    memmove(&entry->items[at], &entry->items[at + count], (entry->count - at) * sizeof(*entry->items));
}

void entry_clear(struct entry *entry) {
    entry_erase(entry, 0, entry->count);
}

static void entry_free(struct entry *entry) {
    entry_clear(entry);
    free(entry->items);
    free(entry);
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

/* FNV-1a. */
static uint64_t hash_of(const char *key, size_t len) {
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)key[i]) * UINT64_C(1099511628211);
    return hash;
}

static struct entry **bucket_of(struct store *store, uint64_t hash) {
    return &store->buckets[hash & (store->size - 1)];
}

static void link_in(struct store *store, struct entry *entry) {
    struct entry **bucket = bucket_of(store, entry->hash);
    entry->next = *bucket;
    *bucket = entry;
}

static void grow(struct store *store) {
    struct store bigger = {.size = store->size ? 2 * store->size : 16};
    bigger.buckets = need(calloc(bigger.size, sizeof(struct entry *)));
    for (size_t i = 0; i < store->size; i++) {
        for (struct entry *entry = store->buckets[i], *next; entry; entry = next) {
            next = entry->next;
            link_in(&bigger, entry);
        }
    }
    free(store->buckets);
    store->buckets = bigger.buckets;
    store->size = bigger.size;
}

bool entry_expired(const struct store *store, const struct entry *entry) {
    return entry->expires != STORE_NEVER && store->now > entry->expires;
}

struct entry *store_find(struct store *store, const char *key, size_t len) {
    uint64_t hash = hash_of(key, len);
    if (!store->count)
        return NULL;
    for (struct entry *entry = *bucket_of(store, hash); entry; entry = entry->next) {
        if (entry->hash != hash || entry->key_len != len || memcmp(entry->key, key, len) != 0)
            continue;
        if (!entry_expired(store, entry))
            return entry;
        store_remove(store, entry);
        return NULL;
    }
    return NULL;
}

struct entry *store_add(struct store *store, const char *key, size_t len, enum type type) {
    struct entry *entry = need(calloc(1, sizeof(*entry) + len + 1));
    memcpy(entry->key, key, len);
    entry->key_len = len;
    entry->hash = hash_of(key, len);
    entry->type = type;
    entry->expires = STORE_NEVER;
    if (store->count == store->size)
        grow(store);
    link_in(store, entry);
    store->count++;
    return entry;
}

void store_remove(struct store *store, struct entry *entry) {
    struct entry **link = bucket_of(store, entry->hash);
    while (*link != entry)
        link = &(*link)->next;
    *link = entry->next;
    store->count--;
    entry_free(entry);
}

void store_clear(struct store *store) {
    for (size_t i = 0; i < store->size; i++) {
        for (struct entry *entry = store->buckets[i], *next; entry; entry = next) {
            next = entry->next;
            entry_free(entry);
        }
    }
    free(store->buckets);
    *store = (struct store){.now = store->now};
}

struct entry *store_add_copy(struct store *to, const struct entry *entry) {
    struct entry *copy = store_add(to, entry->key, entry->key_len, entry->type);
    copy->expires = entry->expires;
    entry_insert(copy, 0, entry->count);
    for (size_t at = 0; at < entry->count; at++) {
        item_set(&copy->items[at], entry->items[at].bytes, entry->items[at].len);
        copy->items[at].score = entry->items[at].score;
    }
    return copy;
}

void store_copy(struct store *to, const struct store *from) {
    *to = (struct store){.now = from->now};
    for (size_t i = 0; i < from->size; i++) {
        for (const struct entry *entry = from->buckets[i]; entry; entry = entry->next)
            (void)store_add_copy(to, entry);
    }
}
