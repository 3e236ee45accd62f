/* What the contending processes and the test that drives them agree on. */
#ifndef EVLOCK_TEST_CONTEND_H
#define EVLOCK_TEST_CONTEND_H

#define CONTEND_NAME "contended"

enum {
    CONTEND_TTL_MS = 500,
    CONTEND_MAX_TTL_MS = 1000,
};

#endif
