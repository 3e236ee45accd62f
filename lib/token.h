/*
 * Tokens: a fresh random one for each attempt at a lock. It owns nothing, and never takes randomness from anywhere but
 * libuuid's random generator.
 */
#ifndef EVL_TOKEN_H
#define EVL_TOKEN_H

#include <stddef.h>

/** How long the text of a UUID is. */
#define EVL_TOKEN_TEXT 36

/** What parts a holder's name from the UUID behind it. */
#define EVL_TOKEN_HOLDER_END '/'

/** Writes a random UUID (version 4) as lower-case text, without a NUL. */
void evl_token_generate(char token[EVL_TOKEN_TEXT]);

/** How much of a token is its holder's name; 0: it has none. */
size_t evl_token_holder_len(const char *token, size_t len);

#endif
