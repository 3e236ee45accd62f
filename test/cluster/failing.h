/*
 * A server that lets clients log in, grants what it is told to, and fails from then on: always in the same way, however
 * often it is asked. Owns a process, which listens at one port of loopback. It keeps nothing.
 */
#ifndef EVLOCK_TEST_FAILING_H
#define EVLOCK_TEST_FAILING_H

#include <sys/types.h>

/* How each command about a key is answered. A connection that is ended has lasted for LASTING_MS, so that clients find
 * it worth an immediate try. */
enum failing {
    FAILING_HANGS_UP,   /* by the connection's end */
    FAILING_IS_SILENT,  /* not at all */
    FAILING_FORGETS,    /* scripts are missing, also those that came with the command */
    FAILING_FLICKERS,   /* scripts are missing, and the next command ends its connection */
    FAILING_WANDERS,    /* scripts are missing, and the next command belongs elsewhere */
    FAILING_NO_CLOCK,   /* scripts may not read the clock */
    FAILING_MOVES,      /* the key is elsewhere, which is here */
    FAILING_ASKS,       /* ask elsewhere, which is here */
    FAILING_TRY_AGAIN,  /* keys are on their way */
    FAILING_IS_DOWN,    /* the cluster is down */
    FAILING_LOADS,      /* the data are not there yet */
    FAILING_READS_ONLY, /* it is a replica */
    FAILING_IS_BUSY,    /* a script runs for too long */
    FAILINGS,
};

enum { LASTING_MS = 60 };

/* The key of a lock that another holds. */
#define FAILING_HELD "held"

struct failing_server {
    pid_t pid;
    int port;
    char url[64];         /* for evlock_client_new() */
    char cluster_url[64]; /* the same server as a cluster of its own */
    int counts[2];        /* a pipe that has a byte for each command about a key */
    long asked;           /* how many have been read from it */
};

/* The first `healthy` commands about keys are answered as by a server that grants every lock but one. */
void failing_start(struct failing_server *server, enum failing failing, int healthy);
/* How many commands about keys there were so far. */
long failing_count(struct failing_server *server);
/* Harmless when it was not started. */
void failing_stop(struct failing_server *server);

#endif
