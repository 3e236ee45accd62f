/*
 * Randomness of the simulation's own in place of libuuid's: tokens follow from the seed, and the judge learns of each.
 * The linker takes this definition for the library's call.
 */
#include <string.h>

#include <uuid/uuid.h>

#include "judge.h"
#include "tokens.h"

static struct world *the_world;

void tokens_from(struct world *world) {
    the_world = world;
}

void uuid_generate_random(uuid_t out) {
    char text[UUID_STR_LEN];
    uint64_t halves[2] = {draw(the_world), draw(the_world)};

    memcpy(out, halves, sizeof(halves));
    uuid_unparse_lower(out, text);
    if (the_world->running)
        judge_token(the_world->judge, text, UUID_STR_LEN - 1, the_world->running->client_number);
}
