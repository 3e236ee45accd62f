/*
 * The set of states that were seen, each kept as 56 bits of its fingerprint: of a hundred million states, that two are
 * taken for one has a chance of one in fourteen. It grows as it must, and ends the program when it cannot. Where ways
 * are limited in length, a state that was reached by a shorter way than before is seen anew.
 */
#ifndef MODEL_SEEN_H
#define MODEL_SEEN_H

#include <stdbool.h>
#include <stdint.h>

struct seen;

/* With `futures`, a number is kept beside each state. */
struct seen *seen_new(bool futures);
void seen_free(struct seen *seen);

/* Adds a state, or the shorter way to it; false if there is nothing to add. */
bool seen_add(struct seen *seen, uint64_t state, unsigned length);

uint64_t seen_count(const struct seen *seen);

/* The number beside a state that is there. */
uint64_t *seen_future(struct seen *seen, uint64_t state);

#endif
