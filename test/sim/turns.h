/*
 * Turns: the judge's book on the queues: who waits in line on the node, since when, and to whom the lock is granted
 * from there. Of scenarios with queues alone, which have one node, or one cluster. It owns the book, and changes
 * nothing of the world.
 */
#ifndef EVLOCK_SIM_TURNS_H
#define EVLOCK_SIM_TURNS_H

#include "judge.h"

struct turns;

struct turns *turns_new(struct judge *judge, struct world *world);
void turns_free(struct turns *turns);

/* A command is about to run. */
void turns_command(struct turns *turns, struct node *node, int argc, const char *const *argv, const size_t *lens);
/* A key of a cluster has been carried from one server to the other; NULL: all have, to who takes its place. */
void turns_carry(struct turns *turns, const char *key, size_t len);
/* It gives a lock to a token, whosever that is; whether it has done so just before. */
void turns_grant(struct turns *turns, struct node *node, unsigned key, struct token *token);
bool turns_granted(const struct turns *turns, const struct token *token);
/* How many wait in line; at which places, by bit from 1, the client does is added to `places`. */
unsigned turns_waiting(const struct turns *turns, unsigned key, unsigned client, uint64_t *places);
/* It deletes a lock. */
void turns_delete(struct turns *turns, struct node *node, unsigned key, const struct token *token);

/* At every step; some time after the faults; when a client was closed; when all that expires has. */
void turns_look(struct turns *turns);
void turns_strays(struct turns *turns);
void turns_closed(struct turns *turns, unsigned client);
void turns_empty(struct turns *turns);

#endif
