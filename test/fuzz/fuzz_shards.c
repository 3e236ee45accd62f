/*
 * Tables of clusters and redirections, as arbitrary text: what is taken has members and owners that are there, what is
 * refused leaves nothing behind, and mended by another table it is still one.
 */
#include "input.h"

#include <stdbool.h>

#include <evlock/evlock.h>

#include "../unit/counted.h"
#include "shards.h"

static void check_bytes(const struct shards *shards, size_t len, struct bytes bytes) {
    const char *at = bytes.data;

    check(at >= shards->text && at + bytes.len <= shards->text + len);
}

static void check_table(const struct shards *shards) {
    check(shards->count > 0 && shards->count <= SHARDS_MEMBERS_MAX);
    for (unsigned i = 0; i < shards->count; i++) {
        check(shards->members[i].master == SHARDS_NONE || shards->members[i].master < shards->count);
        check(shards->members[i].master != i);
        check(evl_shards_find(shards, shards->members[i].id) <= i);
    }
    for (unsigned slot = 0; slot < HASH_TAG_SLOTS; slot++) {
        check(shards->owners[slot] == SHARDS_NONE || shards->owners[slot] < shards->count);
        check(shards->owners[slot] == SHARDS_NONE || shards->members[shards->owners[slot]].owns);
    }
}

static bool read_table(struct shards *ret, const uint8_t *text, size_t len) {
    int status = evl_shards_read(ret, (const char *)text, len).status;

    check(status == EVLOCK_OK || status == EVLOCK_EPROTOCOL);
    check(status == EVLOCK_OK || (!ret->text && !ret->members));
    if (status != EVLOCK_OK)
        return false;
    check_table(ret);
    for (unsigned i = 0; i < ret->count; i++) {
        check_bytes(ret, len, ret->members[i].id);
        check_bytes(ret, len, ret->members[i].address);
        check(ret->members[i].name.len == 0 || (check_bytes(ret, len, ret->members[i].name), true));
    }
    return true;
}

static void redirect(const uint8_t *text, size_t len) {
    char *error = malloc(len + 1);
    struct redirect to;

    check(error);
    memcpy(error, text, len);
    error[len] = '\0';
    if (evl_shards_redirect(&to, error)) {
        check(to.slot < HASH_TAG_SLOTS && to.port > 0);
        check((const char *)to.host.data >= error && to.host.len < len);
        check(!memchr(to.host.data, ' ', to.host.len) && !memchr(to.host.data, '/', to.host.len));
    }
    free(error);
}

/* The first byte says how much of the rest is the first table. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t first = size > 0 ? (size - 1) * data[0] / 255 : 0;
    struct shards known, said;
    bool knows, says;

    counted_begin(NULL);
    if (size == 0)
        return 0;
    redirect(data + 1, size - 1);
    knows = read_table(&known, data + 1, first);
    says = read_table(&said, data + 1 + first, size - 1 - first);
    if (knows && says) {
        evl_shards_mend(&said, &known);
        check_table(&said);
    }
    if (knows)
        evl_shards_free(&known);
    if (says)
        evl_shards_free(&said);
    check(counted_live() == 0);
    return 0;
}
