/*
 * A server's clock that goes too fast or too slow, as one who waits in line sees it: the log says so, once for a
 * connection, and never of a clock that is right. The server is real, and a relay changes the times that it answers.
 */
#include <ctype.h>

#include "waiters.h"

enum { DIGITS = 16 }; /* of the server's clock in microseconds */

#define HOUR INT64_C(3600000000)

static int64_t ahead; /* by so much another clock is shown than the server has, */
static int percent;   /* and so much too fast, */
static int64_t since; /* since then by the server's */

static int64_t read_time(const char *at) {
    int64_t time = 0;
    for (int i = 0; i < DIGITS; i++)
        time = time * 10 + (at[i] - '0');
    return time;
}

static void write_time(char *at, int64_t time) {
    for (int i = DIGITS; i-- > 0; time /= 10)
        at[i] = (char)('0' + time % 10);
}

static bool is_time(const char *at, const char *end) {
    int digits = 0;
    while (at + digits < end && isdigit((unsigned char)at[digits]))
        digits++;
    return digits == DIGITS && at + digits < end && at[digits] == ' ';
}

/* The answers to looks begin with the time. */
static void show_wrong_times(struct relay *relay, char *bytes, size_t len, bool to_server) {
    char *end = bytes + len;
    (void)relay;
    for (char *at = bytes; !to_server && at < end; at++) {
        if (at == bytes || at[-1] != '\n' || !is_time(at, end))
            continue;
        int64_t time = read_time(at);
        if (!since)
            since = time;
        write_time(at, time + ahead + (time - since) * percent / 100);
    }
}

/* A new connection to a server with such a clock. */
static void reconnect(struct fixture *f, int newest, int64_t shift, int rate) {
    int count = f->relay.count;
    relay_cut(&f->relay, newest);
    ahead = shift;
    percent = rate;
    since = 0;
    await(f, relay_pump(&f->relay) && f->relay.count > count);
}

static void pump_for(struct fixture *f, int64_t ms) {
    int64_t end = evlock_clock_us() + ms * 1000;
    await(f, relay_pump(&f->relay) && evlock_clock_us() > end);
}

static void a_clock_that_goes_wrong_is_told_once_for_a_connection(void **state) {
    struct fixture *f = *state;
    evlock_options options = queueing(60000);
    evlock_client_options recorded = client_options(f);
    struct record record = {0};

    relay_start(&f->relay, f->server);
    f->relay.edit = show_wrong_times;
    evlock_client *client = client_new(f, f->relay.url, &recorded);
    held(f, "a", &options);
    evlock *lock = lock_new_on(f, client, "a", &options);
    assert_status(evlock_acquire(lock, NULL, record_end, &record), EVLOCK_OK);
    pump_for(f, 1500); /* long enough to be told of */
    assert_true(waiting(f) == 1 && since);
    reconnect(f, 0, HOUR, 0); /* the next server's clock may be any */
    pump_for(f, 1500);
    assert_true(waiting(f) == 1 && since);
    assert_int_equal(times_logged(f, "the server's clock"), 0);

    reconnect(f, f->relay.count - 1, 0, 5);
    await(f, relay_pump(&f->relay) && times_logged(f, "the server's clock gained") == 1);
    pump_for(f, 1500);
    assert_int_equal(times_logged(f, "the server's clock"), 1);

    reconnect(f, f->relay.count - 1, 0, -5);
    await(f, relay_pump(&f->relay) && times_logged(f, "the server's clock lost") == 1);
    assert_int_equal(times_logged(f, "the server's clock"), 2);
    assert_int_equal(record.count, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_clock_that_goes_wrong_is_told_once_for_a_connection),
    };
    return run_suite("drift", tests);
}
