/*
 * What something cost: the wall clock, this process's CPU time, and the CPU time, commands and bytes of a server or of
 * several together. A reading is taken before and after; the cost is the difference. It owns nothing.
 */
#ifndef EVLOCK_BENCH_METER_H
#define EVLOCK_BENCH_METER_H

#include "servers.h"

struct cost {
    double wall; /* seconds, as all times here */
    double client_cpu;
    double server_cpu;
    double sets; /* commands, also those that scripts ran */
    double scripts;
    double script_time; /* of the server's, in all scripts */
    double deletions;   /* the same */
    double natives;     /* those of them that compared the token themselves */
    double expiries;
    double messages;
    double bytes; /* in and out */
};

/* Seconds on a clock that does not step, and of CPU time used by this thread. */
double clock_now(void);
double clock_cpu(void);

/* Begins, and ends with what it cost since. */
struct cost meter_begin(struct server *server);
struct cost meter_end(struct server *server, const struct cost *begun);
struct cost meter_begin_among(struct keepers keepers);
struct cost meter_end_among(struct keepers keepers, const struct cost *begun);

#endif
