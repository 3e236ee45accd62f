/* SHA-1 (FIPS 180-4), over bytes that are all there at once. */
#include "sha1.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint32_t rotate(uint32_t value, unsigned by) {
    return value << by | value >> (32 - by);
}

static void add_block(uint32_t state[5], const unsigned char *block) {
    uint32_t w[80], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
               block[4 * i + 3];
    for (int i = 16; i < 80; i++)
        w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (int i = 0; i < 80; i++) {
        uint32_t mix = i < 20   ? ((b & c) | (~b & d)) + 0x5a827999
                       : i < 40 ? (b ^ c ^ d) + 0x6ed9eba1
                       : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc
                                : (b ^ c ^ d) + 0xca62c1d6;
        uint32_t next = rotate(a, 5) + mix + e + w[i];
        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
}

void sha1_hex(const char *bytes, size_t len, char hex[41]) {
    uint32_t state[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    unsigned char last[128] = {0};
    const unsigned char *at = (const unsigned char *)bytes;
    size_t left = len;
    for (; left >= 64; left -= 64, at += 64)
        add_block(state, at);
    memcpy(last, at, left);
    last[left] = 0x80;
    size_t padded = left < 56 ? 64 : 128;
    for (size_t i = 0; i < 8; i++)
        last[padded - 1 - i] = (unsigned char)((uint64_t)len * 8 >> 8 * i);
    for (size_t done = 0; done < padded; done += 64)
        add_block(state, last + done);
    for (int i = 0; i < 5; i++)
        snprintf(hex + 8 * i, 9, "%08x", state[i]);
}
