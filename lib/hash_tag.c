/* Hash tags; see hash_tag.h. The arithmetic is the Redis Cluster specification's: CRC-16/XMODEM, modulo 16,384. */
#include "hash_tag.h"

#include <stdint.h>
#include <string.h>

#include "check.h"

#define SLOT_BITS 14
_Static_assert(1 << SLOT_BITS == HASH_TAG_SLOTS, "all slots have that many bits");

#define SLOT_POLYNOMIAL 0x1021U

struct bytes evl_hash_tag_of(struct bytes key) {
    const char *open = memchr(key.data, '{', key.len);
    const char *close = open ? memchr(open, '}', key.len - (size_t)(open - (const char *)key.data)) : NULL;

    return close ? (struct bytes){open + 1, (size_t)(close - open) - 1} : (struct bytes){"", 0};
}

/* What four bits lead to: the multiples of the polynomial. */
static const uint16_t crc_of_bits[16] = {0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50A5, 0x60C6, 0x70E7,
                                         0x8108, 0x9129, 0xA14A, 0xB16B, 0xC18C, 0xD1AD, 0xE1CE, 0xF1EF};

static unsigned hash_tag_crc_after(unsigned crc, struct bytes text) {
    const unsigned char *byte = text.data;

    for (size_t i = 0; i < text.len; i++) {
        crc = (crc << 4 ^ crc_of_bits[crc >> 12 ^ byte[i] >> 4]) & 0xFFFF;
        crc = (crc << 4 ^ crc_of_bits[crc >> 12 ^ (byte[i] & 15U)]) & 0xFFFF;
    }
    return crc;
}

unsigned evl_hash_tag_slot(struct bytes key) {
    struct bytes tag = evl_hash_tag_of(key);

    return hash_tag_crc_after(0, tag.len ? tag : key) & (HASH_TAG_SLOTS - 1);
}

/* The CRC from which two bytes of zero lead to this one. The polynomial is odd: so the last bit says what was done. */
static unsigned hash_tag_crc_before_two(unsigned crc) {
    for (int bit = 0; bit < 16; bit++)
        crc = crc & 1 ? (crc ^ SLOT_POLYNOMIAL) >> 1 | 0x8000 : crc >> 1;
    return crc;
}

static bool hash_tag_takes(unsigned byte) {
    return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z');
}

/* A CRC is linear: two bytes lead from one to another by the difference that both had before two bytes of zero. */
static bool hash_tag_lead(char to[HASH_TAG_SIZE], char first, unsigned crc) {
    unsigned two = hash_tag_crc_after(0, (struct bytes){&first, 1}) ^ hash_tag_crc_before_two(crc);

    to[0] = first;
    to[1] = (char)(two >> 8);
    to[2] = (char)(two & 0xFF);
    return hash_tag_takes(two >> 8) && hash_tag_takes(two & 0xFF);
}

/* Each slot has four CRCs, and with 26 letters there is a tag for each slot: the test goes through all of them. */
void evl_hash_tag_make(char to[HASH_TAG_SIZE], struct bytes text) {
    unsigned slot = hash_tag_crc_after(0, text) & ((1U << SLOT_BITS) - 1);
    bool found = false;

    for (char first = 'a'; !found && first <= 'z'; first++)
        for (unsigned high = 0; !found && high < 1U << (16 - SLOT_BITS); high++)
            found = hash_tag_lead(to, first, high << SLOT_BITS | slot);
    assert(found);
    (void)found;
}
