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
