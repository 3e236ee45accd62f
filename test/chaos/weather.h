/*
 * What befalls the servers, the wires and the contending processes: a table of faults, drawn at random, each with a
 * beginning and an end. It keeps an account of them, and heals everything when it is told to.
 */
#ifndef EVLOCK_TEST_CHAOS_WEATHER_H
#define EVLOCK_TEST_CHAOS_WEATHER_H

#include <stddef.h>
#include <stdint.h>

#include "../deployment/cluster.h"
#include "../deployment/sentinels.h"
#include "../redis/server.h"
#include "mode.h"
#include "proxy.h"

/* What a fault befalls; at most one of a kind befalls the same target at a time. */
enum target {
    WIRE,        /* what passes, and what is let in */
    CONNECTIONS, /* those of a wire, whatever befalls that */
    SERVER,
    PROCESS,
    TARGETS,
};

enum { SLOTS = 8 }; /* servers, wires or processes at most */

struct incident {
    int64_t at;
    int64_t until;
    const char *fault;
    enum target target;
    int number;
};

struct fault;

struct weather {
    const struct mode *mode;
    struct proxy *proxy;
    struct server *servers[SERVERS_MAX]; /* and sentinels; they are in one of these: */
    struct server own[SERVERS_MAX];
    struct sentinels group;
    struct cluster cluster;
    int primary; /* in a failover: which server the wire leads to */
    /* What befalls processes is up to who has them. */
    void (*stop)(int process);
    void (*resume)(int process);
    void (*crash)(int process);
    void (*retire)(int process);

    struct {
        const struct fault *fault; /* NULL: all is well */
        int64_t until;
    } now[TARGETS][SLOTS];
    int64_t next;               /* when something is to begin */
    struct incident *incidents; /* all of them, in the order of time */
    size_t incidents_len;
    size_t incidents_size;
};

/* One step: ends what is to end, and begins something else now and then. */
void weather_step(struct weather *weather);
/* Ends all. */
void weather_clear(struct weather *weather);
/* Prints how often each fault came. */
void weather_report(const struct weather *weather);

#endif
