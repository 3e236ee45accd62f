/*
 * A simulated process: a clock of its own, an event loop that can stand still, and, one after the other, clients of
 * evlock with their handles. It owns its timers; what it does with evlock is decided in actor.c.
 */
#ifndef EVLOCK_SIM_PROCESS_H
#define EVLOCK_SIM_PROCESS_H

#include <evlock/evlock.h>

#include "clock.h"
#include "world.h"
#include "world/loop.h"

struct actor;
struct node;

struct process {
    TAILQ_ENTRY(process) link;
    struct world *world;
    unsigned number;
    struct clock clock;
    int64_t still_until; /* stopped, or busy */
    int64_t busy_until;  /* it has read its clock as far as that */
    int64_t lag;         /* how long its code on the stack has taken so far */
    struct event turn;
    struct virtual_loop loop; /* its timers are set by the process's clock */
    TAILQ_HEAD(, wire) wires; /* those whose end here is open */
    evlock_client *client;    /* NULL: none */
    unsigned client_number;
    int64_t command_timeout;     /* the client's */
    bool few_in_flight;          /* its commands wait for each other */
    const struct node *left_out; /* by the client: two of its URLs lead to another node; or NULL */
    bool crashed, serving;       /* serving: the library's code runs, called by the loop */
    bool closes; /* in that, a close of the client was called: what else is to be told comes in the next turn */
    int64_t parted_until[NODES_MAX]; /* from each node */
    int64_t lost_until[NODES_MAX];   /* its connections to each, of those that are closed; see reach.h */
    int64_t sent_on_at[KEYS_MAX];    /* when a member of a cluster last sent what it asked about a key elsewhere */
    struct actor *actor;
};

struct process *process_new(struct world *world);
void process_free(struct process *process);
unsigned process_number(const struct process *process);

/* True time, and the process's, at this point of its code. */
int64_t process_time(const struct process *process);
int64_t process_clock(const struct process *process);

/* Whether it may run code now. */
bool process_runs(const struct process *process);
/* It does nothing until then. */
void process_stop(struct process *process, int64_t until);
/* It goes on now, as far as it can. */
void process_continue(struct process *process);
/* Brackets of code that the process runs by itself. */
void process_enter(struct process *process);
void process_leave(struct process *process);
/* Its code takes so long. */
void process_lag(struct process *process, int64_t time);
/* It ends on the spot: nothing is sent any more, and nobody is told. */
void process_crash(struct process *process);

#endif
