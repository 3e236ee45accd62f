/*
 * What the server's clock becomes on its way into a fence, or a place in the queue, where numbers are short of digits
 * or come to their end. The server is real, and its clock stands where the test has set it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "waiters.h"

#define SECOND INT64_C(1000000)
#define TODAY (1700000000 * SECOND)

/* As reason.lua has them. */
#define YEAR INT64_C(31622400000000)
#define MOST INT64_C(9007199254740991)

/* Where the microseconds of a second get a digit more, and the last. */
static const int64_t edges[] = {0, 1, 9, 10, 99, 100, 999, 1000, 9999, 10000, 99999, 100000, 999999};
enum { EDGES = sizeof(edges) / sizeof(edges[0]) };

static volatile int64_t *shown;
static char path[] = "/tmp/evlock-clock-XXXXXX";

static int begin(void **state) {
    int fd = mkstemp(path);
    void *bytes = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, sizeof(*shown)) == 0)
        bytes = mmap(NULL, sizeof(*shown), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (bytes == MAP_FAILED)
        return -1;
    shown = bytes;
    (void)state;
    setenv("EVLOCK_TEST_CLOCK", path, 1);
    setenv("LD_PRELOAD", getenv("EVLOCK_TEST_CLOCK_MODULE"), 1);
    server_start(&suite_server, true, NULL);
    unsetenv("LD_PRELOAD");
    return unlink(path); /* the server has mapped it */
}

static int end(void **state) {
    (void)state;
    server_stop(&suite_server);
    return munmap((void *)(uintptr_t)shown, sizeof(*shown));
}

static int go_on(void **state) {
    *shown = 0;
    return fixture_teardown(state);
}

/* A server that reads its clock by another function than the one in the clock's place is of no use. */
static void set_clock(struct fixture *f, int64_t time) {
    *shown = time;
    redisReply *reply = server_command(f->server, "TIME");
    bool set = strtoll(reply->element[0]->str, NULL, 10) == time / SECOND;
    freeReplyObject(reply);
    if (!set)
        skip();
}

static evlock_options fenced(void) {
    evlock_options options = patient(60000);
    options.fence = EVLOCK_ON;
    return options;
}

static void a_fence_is_the_clock_to_the_microsecond(void **state) {
    struct fixture *f = *state;
    evlock_options options = fenced();
    options.wait = EVLOCK_WAIT_POLL;
    for (int i = 0; i < EDGES; i++) {
        set_clock(f, TODAY + i * SECOND + edges[i]);
        server_do(f->server, "DEL {a}:fence");
        evlock *lock = lock_new(f, "a", &options);
        assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
        assert_int_equal(evlock_fence(lock), TODAY + i * SECOND + edges[i]);
        lock_free(f, lock);
    }
}

/* The place of a waiter and its fence: of the moments in which it came, and in which the lock was given to it. */
static void a_grant_in_the_queue_is_the_clock_to_the_microsecond(void **state) {
    struct fixture *f = *state;
    evlock_options options = fenced();
    for (int i = 0; i < EDGES; i++) {
        int64_t came = TODAY + (2 * i) * SECOND + edges[i], given = came + SECOND;
        struct record record = {0};
        set_clock(f, came);
        evlock *holder = held(f, "a", &options);
        evlock *lock = joins(f, f->client, &options, &record);
        redisReply *reply = server_command(f->server, "ZRANGE " QUEUE " 0 0 WITHSCORES");
        assert_int_equal(reply->elements, 2);
        assert_int_equal(strtoll(reply->element[1]->str, NULL, 10), came);
        freeReplyObject(reply);
        server_do(f->server, "DEL {a}:fence");
        set_clock(f, given);
        assert_status(await_release(f, holder), EVLOCK_OK);
        await(f, record.count);
        assert_ended(&record, EVLOCK_OK);
        assert_int_equal(evlock_fence(lock), given);
        lock_free(f, lock);
    }
}

/* Who came first is first, also where the text of the later moment is the shorter one. */
static void waiters_are_in_line_by_the_clock(void **state) {
    struct fixture *f = *state;
    evlock_options options = patient(60000);
    struct record records[EDGES] = {0};
    set_clock(f, TODAY);
    evlock *holder = held(f, "a", &options);
    evlock *locks[EDGES];
    for (int i = 0; i < EDGES; i++) {
        set_clock(f, TODAY + edges[i]);
        locks[i] = joins(f, f->client, &options, &records[i]);
        assert_int_equal(ask_place(f, locks[i]), i + 1);
    }
    set_clock(f, TODAY + SECOND);
    lock_free(f, holder);
    for (int i = 0; i < EDGES; i++) {
        await(f, records[i].count);
        assert_ended(&records[i], EVLOCK_OK);
        lock_free(f, locks[i]);
    }
}

/* Numbers have gaps in scripts from 2^53 on; a year before that is the last. */
static void a_clock_beyond_reason_draws_no_fence(void **state) {
    struct fixture *f = *state;
    evlock_options options = fenced();
    options.wait = EVLOCK_WAIT_POLL;
    evlock *lock = lock_new(f, "a", &options);
    set_clock(f, MOST - YEAR);
    server_do(f->server, "DEL {a}:fence");
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_int_equal(evlock_fence(lock), MOST - YEAR);
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_int_equal(evlock_fence(lock), MOST - YEAR + 1);
    assert_status(await_release(f, lock), EVLOCK_OK);
    server_do(f->server, "SET {a}:fence %lld", (long long)MOST - 1);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_int_equal(evlock_fence(lock), MOST);
    assert_status(await_release(f, lock), EVLOCK_OK);
    server_do(f->server, "DEL {a}:fence");
    set_clock(f, MOST - YEAR + 1);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_EFENCE);
    assert_false(key_exists(f->server, "a"));
    assert_false(key_exists(f->server, "{a}:fence"));
}

#define CLOCK_TEST(function) cmocka_unit_test_setup_teardown(function, fixture_setup, go_on)

int main(void) {
    const struct CMUnitTest tests[] = {
        CLOCK_TEST(a_fence_is_the_clock_to_the_microsecond),
        CLOCK_TEST(a_grant_in_the_queue_is_the_clock_to_the_microsecond),
        CLOCK_TEST(waiters_are_in_line_by_the_clock),
        CLOCK_TEST(a_clock_beyond_reason_draws_no_fence),
    };
    return run_suite_with("clock", tests, sizeof(tests) / sizeof(tests[0]), begin, end);
}
