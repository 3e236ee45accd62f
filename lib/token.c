/*
 * Tokens: a fresh random one for each attempt at a lock. It owns nothing, and never takes randomness from anywhere but
 * libuuid's random generator.
 */
#include "token.h"

#include <string.h>

#include <uuid/uuid.h>

void evl_token_generate(char token[EVL_TOKEN_TEXT]) {
    uuid_t uuid;
    char text[UUID_STR_LEN];
    uuid_generate_random(uuid);
    uuid_unparse_lower(uuid, text);
    memcpy(token, text, EVL_TOKEN_TEXT);
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
