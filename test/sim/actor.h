/*
 * Actors: what simulated processes do with evlock. They draw options and calls at random, also from inside callbacks,
 * within what the manual allows; when the faults are over, each sees that every handle gets its lock once, and leaves.
 * An actor owns its client, its handles and its runs.
 */
#ifndef EVLOCK_SIM_ACTOR_H
#define EVLOCK_SIM_ACTOR_H

#include "judge.h"
#include "process.h"

struct actor *actor_new(struct process *process);
void actor_free(struct actor *actor);
/* The process has crashed: frees all that it had. */
void actor_wipe(struct actor *actor);
/* In a forked child: it does nothing any more, and what it had of evlock's is another's to free, in any order. */
enum belonging { A_CLIENT, A_LOCK, A_RUN };
void actor_forsake(struct actor *actor, void (*leave)(enum belonging kind, void *it, unsigned client));

/* No timeout of a client is longer. */
int64_t actor_longest_timeout(const struct world *world);
/* So long after the faults everyone has been served. */
int64_t actor_patience(const struct world *world);
/* How long it takes until all of a crowd have had their turn, where commands wait for each other. */
int64_t actor_turns(const struct world *world);

/* From now on, every handle gets its lock once more. */
void actors_finish(struct world *world);
bool actors_served(struct world *world);
/* All clients end, in one way or another. */
void actors_leave(struct world *world);

/* A token is there for whoever adopts it; only if the last one is not there any more. */
bool actor_may_hand_out(void);
void actor_hands_out(unsigned key, const char *token);

#endif
