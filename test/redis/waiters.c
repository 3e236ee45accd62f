/* What the tests of the wait queue have in common; see waiters.h. */
#include "waiters.h"

evlock_options queueing(int64_t ttl_ms) {
    evlock_options options = with_ttl(ttl_ms);
    options.wait = EVLOCK_WAIT_QUEUE;
    options.retry_delay_ms = 10;
    return options;
}

evlock_options patient(int64_t ttl_ms) {
    evlock_options options = queueing(ttl_ms);
    options.retry_delay_ms = ttl_ms < 10000 ? ttl_ms : 10000;
    return options;
}

long long waiting(struct fixture *f) {
    return server_integer(f->server, "ZCARD " QUEUE);
}

evlock *held(struct fixture *f, const char *name, const evlock_options *options) {
    evlock *lock = lock_new(f, name, options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    return lock;
}

evlock *joins(struct fixture *f, evlock_client *client, const evlock_options *options, struct record *record) {
    evlock *lock = lock_new_on(f, client, "a", options);
    long long before = waiting(f);

    assert_status(evlock_acquire(lock, NULL, record_end, record), EVLOCK_OK);
    await(f, waiting(f) == before + 1);
    assert_int_equal(record->count, 0);
    return lock;
}

void leaves_nothing(struct fixture *f) {
    while (f->locks_len)
        lock_free(f, f->locks[0]);
    await(f, server_integer(f->server, "DBSIZE") == 0);
}
