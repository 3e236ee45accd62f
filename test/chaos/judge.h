/*
 * The judgment on a history: leases of one name never overlap where that is claimed, fences grow, and no process
 * complained. It looks at nothing but the history; what it finds, it prints with what happened around that time.
 */
#ifndef EVLOCK_TEST_CHAOS_JUDGE_H
#define EVLOCK_TEST_CHAOS_JUDGE_H

#include "history.h"
#include "mode.h"
#include "weather.h"

/* Prints how many leases there were of each name, and every violation; returns the number of those. */
size_t judge(const struct history *history, const struct weather *weather);

#endif
