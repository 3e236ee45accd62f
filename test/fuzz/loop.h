/*
 * An event loop in virtual time, for fuzzing: an adapter of evlock's. It owns what it knows of the attached
 * connections. Time stands still but where loop_pass() is called, so that a run depends on its input alone.
 */
#ifndef EVLOCK_FUZZ_LOOP_H
#define EVLOCK_FUZZ_LOOP_H

#include <sys/queue.h>

#include "world/loop.h"
#include "world/socket.h"

struct loop {
    struct virtual_loop common;
    uint64_t random;
    unsigned rings; /* moments to which it let time pass */
    TAILQ_HEAD(, watch) watches;
};

void loop_begin(struct loop *loop);
/* What evlock takes. */
evlock_loop loop_adapter(struct loop *loop);
/* Hands out what is ready: each connection once, then due timers. */
void loop_turn(struct loop *loop);
/* Lets time pass, ringing each timer at its moment; less of it when many have rung already. */
void loop_pass(struct loop *loop, int64_t us);
/* Checks that nothing is left on it. */
void loop_end(struct loop *loop);

#endif
