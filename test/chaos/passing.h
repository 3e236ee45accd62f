/*
 * Passing on, as one process does it: the terms on which its hands wait together, drawn once, and what it knows of the
 * leases that go from hand to hand. It judges these by that alone, and calls nothing of the library.
 */
#ifndef EVLOCK_TEST_CHAOS_PASSING_H
#define EVLOCK_TEST_CHAOS_PASSING_H

#include "mode.h"

/* What is known of the last lease of a name. */
struct chain {
    bool known;     /* the grant was told, and nobody has left since who may have had the lease untold */
    int64_t since;  /* when the grant was told */
    int64_t passes; /* that were told since then */
    uint64_t fence; /* the last */
    int64_t let_go; /* when its last holder did that */
    int64_t left;   /* so much of it was left then, at most */
};

struct passing {
    const struct mode *mode;
    const struct name *wanted; /* by most of the hands */
    bool queue;                /* they wait in it, and do not poll */
    bool renewal;              /* where a name is renewed at all */
    int64_t most;              /* passes in a row */
    int64_t most_ms;           /* and for how long; 0: the ttl */
    uint64_t counted;          /* passes, by the library */
    struct chain chains[NAMES_MAX];
};

/* Draws the terms. */
void passing_draw(struct passing *passing, const struct mode *mode);

/* How long leases of a name may be passed on. */
int64_t passing_ms(const struct passing *passing, const struct name *name);

/* A hand has let go of what may be passed on, with so much of it left at most. */
void passing_let_go(struct passing *passing, const struct name *name, int64_t now, int64_t left);

/* A hand that waited has left. It may have had a lease without knowing. */
void passing_left(struct passing *passing, const struct name *name);

/* A hand was told of a lease that the server has granted. */
void passing_granted(struct passing *passing, const struct name *name, int64_t now, uint64_t fence);

/* A hand was told of a lease that was passed on. Returns what is wrong with that, or NULL. */
const char *passing_passed(struct passing *passing, const struct name *name, uint64_t fence);

#endif
