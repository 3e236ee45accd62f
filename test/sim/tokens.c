/*
 * Randomness of the simulation's own in place of the system's: tokens follow from the seed, and the judge learns of
 * each. It reads them later, too, which must change nothing. The linker takes these functions for the library's own
 * (--wrap).
 */
#include <stdbool.h>
#include <string.h>

#include <uuid/uuid.h>

#include "judge.h"
#include "tokens.h"

static struct world *the_world;

void tokens_from(struct world *world) {
    the_world = world;
}

struct entropy;
bool __wrap_evl_token_generate(struct entropy *entropy, char *token);

bool __wrap_evl_token_generate(struct entropy *entropy, char *token) {
    uint64_t halves[2] = {draw(the_world), draw(the_world)};
    char text[UUID_STR_LEN];
    uuid_t uuid;

    (void)entropy;
    memcpy(uuid, halves, sizeof(uuid));
    uuid_unparse_lower(uuid, text);
    memcpy(token, text, UUID_STR_LEN - 1);
    if (the_world->running)
        judge_token(the_world->judge, text, UUID_STR_LEN - 1, the_world->running->client_number);
    return true;
}

struct lease;
void __real_evl_lease_tie(struct lease *lease);
void __wrap_evl_lease_tie(struct lease *lease);

static bool peeking;

void __wrap_evl_lease_tie(struct lease *lease) {
    if (!peeking)
        __real_evl_lease_tie(lease);
}

const void *tokens_peek(const evlock *lock, size_t *ret_len) {
    const void *bytes;

    peeking = true;
    bytes = evlock_token(lock, ret_len);
    peeking = false;
    return bytes;
}
