/* What the tests of passing on have in common; see users.h. */
#include "users.h"

evlock_options passing(int64_t passes) {
    evlock_options options = with_ttl(60000);

    options.max_passes = passes;
    options.retry_delay_ms = 20;
    return options;
}

evlock_options passing_in_queue(int64_t passes) {
    evlock_options options = passing(passes);

    options.wait = EVLOCK_WAIT_QUEUE;
    return options;
}

void make_named(struct fixture *f, struct user *users, int count, const char *name, const evlock_options *options) {
    for (int i = 0; i < count; i++)
        users[i] = (struct user){.lock = lock_new(f, name, options)};
}

void make(struct fixture *f, struct user *users, int count, const evlock_options *options) {
    make_named(f, users, count, "a", options);
}

void acquire(struct user *user) {
    memset(&user->record, 0, sizeof(user->record));
    assert_status(evlock_acquire(user->lock, NULL, record_end, &user->record), EVLOCK_OK);
}

void acquire_for(struct user *user, int64_t ms) {
    memset(&user->record, 0, sizeof(user->record));
    assert_status(evlock_acquire(user->lock, EVLOCK_ACQUIRE_OPTIONS(.max_wait_ms = ms), record_end, &user->record),
                  EVLOCK_OK);
}

void release(struct user *user) {
    memset(&user->released, 0, sizeof(user->released));
    assert_status(evlock_release(user->lock, record_end, &user->released), EVLOCK_OK);
}

void await_held(struct fixture *f, struct user *user) {
    await(f, user->record.count);
    assert_ended(&user->record, EVLOCK_OK);
    assert_true(evlock_is_held(user->lock));
}

void crowd(struct fixture *f, struct user *users, int count, const evlock_options *options) {
    make(f, users, count, options);
    for (int i = 0; i < count; i++)
        acquire(&users[i]);
    await_held(f, &users[0]);
}

uint64_t passed(const struct fixture *f) {
    return stats_of(f->client).passed;
}
