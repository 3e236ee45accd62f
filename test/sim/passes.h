/*
 * Passes: the judge's book on leases that go from handle to handle inside a client: who had one before, whether that
 * one might pass it on, and whether it was the turn of the one who has it now. The book is in each token's relay.
 */
#ifndef EVLOCK_SIM_PASSES_H
#define EVLOCK_SIM_PASSES_H

#include "judge.h"

/* A handle is about to give up what it holds, if it holds: by a release, or its end. */
void passes_give_up(struct handle *handle);
/* Its user knows the token, or has extended the lease: nobody else may have it. */
void passes_tie(const struct handle *handle);
/* It was told that it holds. */
void passes_hold(struct handle *handle);
/* It was told that it has lost it. */
void passes_lose(const struct handle *handle, int reason);
/* Its release was told; whether another may have the lease, which nobody has deleted then. */
void passes_released(const struct handle *handle, int status);
bool passes_may_go(const struct handle *handle);

/* The client takes out of the queue who has waited there since then. */
void passes_leave_line(const struct process *process, const struct node *node, unsigned key, int64_t since);

/* At every step. */
void passes_look(struct judge *judge);

#endif
