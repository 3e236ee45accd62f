/*
 * A Sentinel of the tests' own, which says what a real one says rarely, or by a lie. Owns a process, which answers by a
 * rule. A client that begins to listen is told so after its first question has been answered.
 */
#ifndef EVLOCK_TEST_TELLER_H
#define EVLOCK_TEST_TELLER_H

#include <sys/types.h>

/* Where the master is said to be. "Nowhere" is where nobody listens. */
enum tale {
    TALE_TRUE,    /* at the server, by epoch 5 */
    TALE_FALSE,   /* nowhere, by epoch 5 */
    TALE_TORN,    /* nowhere, by epoch 1; while that is said, the server becomes it, by epoch 2 */
    TALE_MISSED,  /* at the server, by epoch 1; before it can be listened to, at another name of it, by epoch 2 */
    TALE_PUSHED,  /* the same, but the change is told while the second question is under way; then it stops, and the
                   * answers after SIGCONT are still those of before */
    TALE_AGAIN,   /* at the server, by epoch 5, and then by epoch 6 */
    TALE_MENDED,  /* nowhere, by epoch 5; from the third time on at the server, by the same */
    TALE_CUT,     /* as the truth, but the first question is answered by a hang-up */
    TALE_NO_PORT, /* at a port that there is not */
    TALE_SHOUTED, /* as where it is pushed, but a thousand changes are told */
    TALE_LONG,    /* as the truth, in more words than any Sentinel has */
    TALE_DEAF,    /* once it has answered, it reads nothing more, and answers what it was not asked yet: the epoch is
                   * another each time */
};

struct teller {
    pid_t pid;
    int port;
    int counts[2]; /* a pipe that has a byte for each time that an address was said */
    long said;
};

/* The server is the one at this port of 127.0.0.1. */
void teller_start(struct teller *teller, enum tale tale, int server);
/* How often it has said an address so far. */
long teller_said(struct teller *teller);
/* Harmless when it was not started. */
void teller_stop(struct teller *teller);

#endif
