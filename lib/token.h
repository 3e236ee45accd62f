/*
 * Tokens: a fresh random one for each attempt at a lock. It owns the random bytes that are drawn ahead, and never takes
 * any from anywhere but the system.
 */
#ifndef EVL_TOKEN_H
#define EVL_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* How long the text of a UUID is. */
#define EVL_TOKEN_TEXT 36

/* What parts a holder's name from the UUID behind it. */
#define EVL_TOKEN_HOLDER_END '/'

/* So many random bytes are asked for at a time, for 16 tokens: the system gives that many at once, or none. */
#define ENTROPY_BYTES 256

/* Random bytes that no token has yet; zeroed at the beginning. What a token took is wiped. */
struct entropy {
    size_t left; /* the first so many are fresh */
    unsigned char bytes[ENTROPY_BYTES];
};

/* Writes a random UUID (version 4) as lower-case text, without a NUL. False: the system refuses random bytes. */
bool evl_token_generate(struct entropy *entropy, char token[EVL_TOKEN_TEXT]);

/* How long a token is that is drawn for a holder of this name; NULL: it has none. */
static inline size_t evl_token_drawn_len(const char *holder) {
    return (holder ? strlen(holder) + 1 : 0) + EVL_TOKEN_TEXT;
}

/* Writes such a token, which begins with the name, without a NUL. False: the system refuses random bytes. */
static inline bool evl_token_draw(struct entropy *entropy, const char *holder, char *token) {
    size_t len = 0;

    if (holder) {
        len = strlen(holder);
        memcpy(token, holder, len);
        token[len++] = EVL_TOKEN_HOLDER_END;
    }
    return evl_token_generate(entropy, token + len);
}

/* At its owner's end. */
void evl_entropy_wipe(struct entropy *entropy);

/* How much of a token is its holder's name; 0: it has none. */
size_t evl_token_holder_len(const char *token, size_t len);

#endif
