/*
 * The tests of an adapter, the same for every one: what <evlock/loop.h> asks of timers, connections and names. Each
 * adapter's own test program tells how its loop is made, turned and ended.
 */
#ifndef EVLOCK_TEST_ADAPTER_TESTS_H
#define EVLOCK_TEST_ADAPTER_TESTS_H

#include <evlock/evlock.h>
#include <evlock/loop.h>

struct adapter {
    /** Makes a loop. */
    void *(*open)(void);
    /** The loop as evlock takes it. */
    evlock_loop (*loop)(void *data);
    /** Makes a client on it. */
    int (*client)(evlock_client **ret_client, void *data, const char *url, const evlock_client_options *options);
    /** One turn of the loop, without waiting. */
    void (*turn)(void *data);
    /** How much is registered or under way on it. */
    int (*busy)(void *data);
    /** Ends it; nothing is registered on it any more. */
    void (*close)(void *data);
};

/** Runs the tests; returns how many failed. */
int adapter_tests(const struct adapter *adapter);

#endif
