/*
 * Servers that say of themselves that they are a cluster, and send commands round in it: what a real one never does.
 * Owns a process, which listens at two ports and answers by a rule. It keeps nothing.
 */
#ifndef EVLOCK_TEST_LIAR_H
#define EVLOCK_TEST_LIAR_H

#include <sys/types.h>

/* How a command about a key is answered, as if it were "a". */
enum lie {
    LIE_MOVED,    /* it is at the other port */
    LIE_SOON,     /* the same, for a moment from the first of them on; then nothing is there */
    LIE_HELD,     /* the same; but a lock that is asked for is granted at either */
    LIE_ASK,      /* ask there */
    LIE_SELF,     /* it is at this one */
    LIE_STRANGER, /* it is where nobody is known to be */
    LIE_NONSENSE, /* a redirection without a place */
    LIE_TABLE,    /* the table is none */
    LIE_FULL,     /* there is no room for who asks for the table */
    LIE_PLAIN,    /* it is no node of a cluster */
    LIE_EMPTY,    /* the table knows of no slots */
    LIE_NAME,     /* nothing is there; and the names in the table are nobody's */
    LIE_ADDRESS,  /* the same, of the addresses: the names are right */
    LIE_OTHERS,   /* nothing is there; and all tables but the first are of other servers, at the same ports */
    LIE_OLDER,    /* the same, but they are older than the first: all is at the first port */
    LIE_CLAIM,    /* the second says: ask at the first, which says once that it is there; then nothing is anywhere */
    LIE_LEAVES,   /* nothing is there; but what comes to the second port is lost, and the first has all from then on */
    LIE_SILENCE,  /* the same, and what comes to the second is not answered, and its connection stays */
    LIE_LOSES,    /* as where it leaves; and the first loses what comes next, and is another process after that */
};

struct liar {
    pid_t pid;
    int ports[2];
    char url[96];
    int counts[2]; /* a pipe that has a byte for each command about a key: by which port it came */
    long asked[2]; /* how many have been read from it, of each port */
};

void liar_start(struct liar *liar, enum lie lie);
/* How many commands about keys there were so far; and by one of the ports. */
long liar_count(struct liar *liar);
long liar_count_at(struct liar *liar, int side);
void liar_stop(struct liar *liar);

#endif
