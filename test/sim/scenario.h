/*
 * Scenarios: what a schedule may contain, and what must then hold. Each is a line of the table in scenario.c; to add
 * one, add a line.
 */
#ifndef EVLOCK_SIM_SCENARIO_H
#define EVLOCK_SIM_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>

struct plan;
struct world;

struct scenario {
    const char *name, *summary;
    unsigned few, many; /* nodes: the one or the other */
    bool exclusive;     /* no two holders at a time */
    bool loses_data;    /* nodes restart without their data or as a stale copy */
    bool lingers;       /* what was sent on a lost connection may run at any time */
    bool fences;        /* every acquire draws one */
    bool queue;         /* handles wait in line */
    bool steps;         /* the nodes' clocks jump */
    bool beyond;        /* clocks run apart by more than is allowed */
    bool fails_over;    /* replicas are behind, and take over; every lock wants all of them to know of it */
    bool waits;         /* clients wait out what a node may have forgotten, as failover_wait_ms says */
    bool promotes;      /* another server takes a node's place, which goes on serving for a while */
    bool cluster;       /* the node is two masters of a cluster, between which slots move */
    bool gaps;          /* moves and failovers in ways that are not claimed to be safe */
    bool native;        /* servers have commands in place of scripts */
    bool crowds;        /* hundreds of handles a process */
    bool passes;        /* most handles pass their leases on to others of their client */
    bool must_overlap;  /* two holders at a time must have been seen, over all schedules */
    unsigned share;     /* of the schedules, where all are run: so many in a hundred */
};

extern const struct scenario scenarios[];
extern const size_t scenario_count;

/* Draws what a schedule of the scenario is like. */
void scenario_plan(struct world *world, struct plan *plan);

#endif
