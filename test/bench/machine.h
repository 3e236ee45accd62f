/* The machine and the versions that the figures are of. */
#ifndef EVLOCK_BENCH_MACHINE_H
#define EVLOCK_BENCH_MACHINE_H

struct machine {
    char cpu[96];
    int cores;
    char kernel[72];
    char server[128]; /* the server program, as it tells its version */
    char hiredis[16];
    const char *libevent;
    const char *evlock;
    double load; /* of the last minute */
};

struct machine machine_describe(void);

#endif
