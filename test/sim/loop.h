/*
 * The event loop of a simulated process: an adapter of evlock's in virtual time. Whatever is ready is called in an
 * order drawn at random, one after the other, and not at all while the process stands still.
 */
#ifndef EVLOCK_SIM_LOOP_H
#define EVLOCK_SIM_LOOP_H

#include "process.h"

void loop_init(struct process *process);
/* What evlock takes. Every other process's says that it knows of forks. */
evlock_loop loop_of(struct process *process);
bool loop_forks(const struct process *process);

/* Something may be ready: the process takes a turn as soon as it can. */
void loop_wake(struct process *process);
/* Runs all that is ready now. */
void loop_turn(struct process *process);
/* The end of a piece of the process's code: what it wrote is sent on. */
void loop_flush(struct process *process);

#endif
