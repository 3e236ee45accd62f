/*
 * Owing: what a master of a cluster owes a lease. A lease has one vote there, and its commands follow its slot from
 * master to master. One whose connection ended with a command unanswered owes an end of it: when it is back, it is
 * known whether that command may still run. The lease may be at another by then. What the lease is to hear of all that,
 * and when, is decided here. It sends nothing, reads no clock, and knows no node but by its number.
 */
#ifndef EVL_OWING_H
#define EVL_OWING_H

#include <stdbool.h>
#include <stdint.h>

/* The numbers of masters are less. */
#define OWING_MASTERS 0x7FFU

/* Of one lease, and small, for there may be very many; zeroed at first. */
struct owing {
    uint16_t debtor : 11; /* the master that owes, counted from 1; 0: none does, and the next three are not set */
    uint16_t more : 1;    /* another one owes as well, and nobody waits for that: no end of this one's settles both */
    uint16_t back : 1;    /* it was back, while something was unanswered at another; */
    uint16_t settled : 1; /* and nothing of it can run any more */
    uint16_t plainly : 1; /* These two are marks of the tenure, which has no room for them elsewhere; see tenure.h. */
    uint16_t endless : 1; /* Nothing here looks at them, or changes them. */
};

/* Where the lease's commands go. */
struct owing_place {
    unsigned master;
    bool flying; /* one of them is unanswered */
};

/* A node is back: which one, and the same of it as in struct node. */
struct owing_return {
    unsigned master;
    bool settled;
    bool replaced;
};

/* What a lease is to hear of a node's return now. */
struct comeback {
    bool heard;    /* that it is back; or else nothing, and the rest is not set */
    bool here;     /* what waits to be sent waits for it */
    bool settled;  /* nothing that was lost can run any more */
    bool replaced; /* it is another server than the one that was asked before */
};

/* A master has lost a command of the lease. */
void evl_owing_lost(struct owing *owing, unsigned master);

/* A master is back: the one where the lease is now, or that owes, or both, or neither. */
struct comeback evl_owing_back(struct owing *owing, struct owing_place at, struct owing_return from);

/* A master is done with, and will not be back. */
struct comeback evl_owing_gone(struct owing *owing, bool flying, unsigned master);

/* The lease has heard an answer: what it had to hear before what is owed. */
struct comeback evl_owing_answered(struct owing *owing, bool flying);

/* Slots have moved, and this lease's is at `home` now. */
struct comeback evl_owing_moved(const struct owing *owing, struct owing_place at, unsigned home);

/* Asserts what must be true between two inputs; see check.h. */
void evl_owing_check(const struct owing *owing);

#endif
