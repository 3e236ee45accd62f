/*
 * Tokens: a fresh random one for each attempt at a lock. It owns the random bytes that are drawn ahead, and never takes
 * any from anywhere but the system.
 */
#include "token.h"

#include <sys/random.h>

#include <uuid/uuid.h>

_Static_assert(ENTROPY_BYTES % sizeof(uuid_t) == 0, "nothing is left over");
_Static_assert(ENTROPY_BYTES <= 256, "so much is given at once, or none");

static bool token_draw_ahead(struct entropy *entropy) {
    if (getrandom(entropy->bytes, sizeof(entropy->bytes), GRND_NONBLOCK) != sizeof(entropy->bytes))
        return false;
    entropy->left = sizeof(entropy->bytes);
    return true;
}

bool evl_token_generate(struct entropy *entropy, char token[EVL_TOKEN_TEXT]) {
    unsigned char *uuid;
    char text[UUID_STR_LEN];

    if (entropy->left == 0 && !token_draw_ahead(entropy))
        return false;
    entropy->left -= sizeof(uuid_t);
    uuid = entropy->bytes + entropy->left;
    uuid[6] = (uuid[6] & 0x0f) | 0x40; /* the version: random */
    uuid[8] = (uuid[8] & 0x3f) | 0x80; /* the variant: RFC 4122 */
    uuid_unparse_lower(uuid, text);
    memcpy(token, text, EVL_TOKEN_TEXT);
    explicit_bzero(uuid, sizeof(uuid_t));
    return true;
}

void evl_entropy_wipe(struct entropy *entropy) {
    explicit_bzero(entropy, sizeof(*entropy));
}

size_t evl_token_holder_len(const char *token, size_t len) {
    const char *uuid;

    if (len < EVL_TOKEN_TEXT + 2)
        return 0;
    uuid = token + len - EVL_TOKEN_TEXT;
    if (uuid[-1] != EVL_TOKEN_HOLDER_END)
        return 0;
    return uuid[8] == '-' && uuid[13] == '-' && uuid[18] == '-' && uuid[23] == '-' ? len - EVL_TOKEN_TEXT - 1 : 0;
}
