/*
 * Bytes of any kind, which somebody else owns: a key, a token, a command; and the way from a part of a struct to the
 * whole. Nothing here copies or frees.
 */
#ifndef EVL_BYTES_H
#define EVL_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bytes {
    const void *data;
    size_t len;
};

static inline bool evl_same_bytes(struct bytes a, struct bytes b) {
    return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

/* FNV-1a, 64 bits. */
static inline uint64_t evl_hash_bytes(struct bytes bytes) {
    const unsigned char *byte = bytes.data;
    uint64_t value = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < bytes.len; i++)
        value = (value ^ byte[i]) * UINT64_C(1099511628211);
    return value;
}

/* The struct of which `pointer` is a member; const or not as its user says. */
#define EVL_OWNER(type, member, pointer) ((type *)((uintptr_t)(pointer)-offsetof(type, member)))

#endif
