/*
 * Faults: what goes wrong in a schedule, and when. Each kind is a line of the table in faults.c; those that strike
 * single bytes on their way are drawn here, too. Each is counted by its name.
 */
#ifndef EVLOCK_SIM_FAULTS_H
#define EVLOCK_SIM_FAULTS_H

#include "wire.h"
#include "world.h"

void faults_begin(struct world *world);
/* All is well from now on: nothing is held, refused or stopped any more. */
void faults_end(struct world *world);

/* What a listener is to hear is about to be sent; bytes are about to be sent on a wire; the process has closed its end
 * of one; a connection is about to stand at `at`: the moment when it does, or NEVER. */
void faults_on_push(struct wire *wire);
void faults_on_bytes(struct wire *wire, bool up);
void faults_on_gone(struct wire *wire);
int64_t faults_on_connect(struct wire *wire, int64_t at);

/* Counts a fault by its name, which is one of the table's, or of those for bytes. */
void faults_count(struct world *world, const char *name);
/* The name of the kind that is counted at `index` of a tally; NULL: there are no more. */
const char *faults_name(size_t index);

#endif
