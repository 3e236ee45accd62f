/*
 * The scenarios: everything that a program does with evlock, each a short story on a stage. They own nothing, and say
 * what each call is told when nothing is refused; what must be true otherwise is the stage's to check.
 */
#ifndef EVLOCK_TEST_SCENARIOS_H
#define EVLOCK_TEST_SCENARIOS_H

#include "stage.h"

struct scenario {
    const char *name;
    void (*play)(struct stage *stage);
    bool listens; /* from 1.0 on hiredis aborts where a subscription fails: only evlock is refused memory then */
};

extern const struct scenario scenarios[];
extern const size_t scenario_count;

#endif
