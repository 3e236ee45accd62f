/*
 * Counts of instructions, which repeat where times do not: under valgrind's callgrind, what is between a begin and an
 * end is counted, and left in a file of callgrind's. Elsewhere nothing is done. test/bench/instructions reads the
 * files.
 */
#ifndef EVLOCK_BENCH_INSTRUCTIONS_H
#define EVLOCK_BENCH_INSTRUCTIONS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether they are counted; then everything is slow, and times say nothing. */
bool instructions_counted(void);

void instructions_begin(void);
/* Ends: so many of something have been counted, by evlock in some way or by the floor, with so many locks held. */
void instructions_end(const char *what, const char *way, size_t held, size_t count);

#endif
