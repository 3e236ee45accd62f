/*
 * One of the contending processes: a client of the library, on libevent or libuv, with a few hands that take the names,
 * hold them in every way, and give them back, at random. In some processes the hands mostly want one name, and pass its
 * leases on to each other. It keeps its diary, and complains there of whatever the
 * library owes it: callbacks that come early, twice or never, losses told late, twice or for nothing, memory or
 * descriptors left.
 */
#ifndef EVLOCK_TEST_CHAOS_WORKER_H
#define EVLOCK_TEST_CHAOS_WORKER_H

#include "history.h"
#include "mode.h"

struct employment {
    const struct mode *mode;
    struct history *history;
    const char *const *urls;
    size_t urls_len;
    int number;     /* of its diary */
    int generation; /* how many came before it */
    bool passes;    /* its hands wait together, and pass leases on */
    unsigned seed;
};

/* Works until its diary says that it is to retire; never returns. */
_Noreturn void worker_run(const struct employment *employment);

#endif
