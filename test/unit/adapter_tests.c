/*
 * The tests of an adapter; see adapter_tests.h. Time is waited for in turns of the loop, with a bound that only a
 * broken adapter reaches. After each test the loop must be empty and every descriptor closed.
 */
#include "adapter_tests.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <fcntl.h>
#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "resolver.h"

enum { MS = 1000, PATIENCE = 30000 * MS };

static const struct adapter *adapter;
static void *loop_data;
static evlock_loop loop;
static int descriptors_before;

/* evlock's own handlers, with hiredis alone behind them. */
static int readable_told, writable_told;

void evlock_on_readable(struct redisAsyncContext *connection) {
    readable_told++;
    redisAsyncHandleRead(connection);
}

void evlock_on_writable(struct redisAsyncContext *connection) {
    writable_told++;
    redisAsyncHandleWrite(connection);
}

/* What a client was asked for with. */
static struct {
    evlock_loop loop; /* zero: there was none */
    evlock_client **ret_client;
    const char *url;
    const evlock_client_options *options;
} asked;

int evlock_client_new(evlock_client **ret_client, const evlock_loop *on, const char *url,
                      const evlock_client_options *options) {
    memset(&asked, 0, sizeof(asked));
    if (on)
        asked.loop = *on;
    asked.ret_client = ret_client;
    asked.url = url;
    asked.options = options;
    return on ? EVLOCK_EURL : EVLOCK_EINVAL;
}

static int64_t now(void) {
    return loop.ops->now(loop.data);
}

static void turn(void) {
    static const struct timespec pause = {0, MS * 1000};
    adapter->turn(loop_data);
    nanosleep(&pause, NULL);
}

/* Turns the loop until the condition holds. */
#define await(condition)                                                                                               \
    do {                                                                                                               \
        int64_t give_up = now() + PATIENCE;                                                                            \
        bool met;                                                                                                      \
        while (!(met = (condition)) && now() < give_up)                                                                \
            turn();                                                                                                    \
        assert_true(met);                                                                                              \
    } while (0)

/** Turns the loop for some time, for what must not happen. */
static void turn_for(int64_t duration) {
    for (int64_t end = now() + duration; now() < end;)
        turn();
}

/** How many descriptors are open; those that a child process would be given, if `inherited`. */
static int count_descriptors(bool inherited) {
    int count = 0;
    for (int fd = 0; fd < 1024; fd++) {
        int flags = fcntl(fd, F_GETFD);
        count += flags >= 0 && (!inherited || !(flags & FD_CLOEXEC));
    }
    return count;
}

/* --- Timers ------------------------------------------------------------------------------------------------------- */

enum { ALARMS = 3 };

static struct rung_alarm {
    void *timer;
    int64_t set_to;
    int64_t rung_at;
    int rung;
    struct rung_alarm *victim; /* what its ringing does something to */
    void (*then)(struct rung_alarm *victim);
} alarms[ALARMS];

static struct rung_alarm *ringing[10];
static int rings;

static void ring(void *arg) {
    struct rung_alarm *alarm = arg;
    alarm->rung++;
    alarm->rung_at = now();
    if (rings < 10)
        ringing[rings++] = alarm;
    if (alarm->then)
        alarm->then(alarm->victim);
}

static void alarm_new(struct rung_alarm *alarm) {
    alarm->timer = loop.ops->timer_new(loop.data, ring, alarm);
    assert_non_null(alarm->timer);
}

static void alarm_set(struct rung_alarm *alarm, int64_t at) {
    alarm->set_to = at;
    loop.ops->timer_set(alarm->timer, at);
}

static void alarm_free(struct rung_alarm *alarm) {
    if (alarm->timer)
        loop.ops->timer_free(alarm->timer);
    alarm->timer = NULL;
}

static void alarm_put_off(struct rung_alarm *alarm) {
    alarm_set(alarm, now() + PATIENCE);
}

static void alarm_repeat(struct rung_alarm *alarm) {
    if (alarm->rung < 3)
        alarm_set(alarm, now() + 5 * MS);
}

CASE(a_timer_that_is_not_set_does_not_ring) {
    alarm_new(&alarms[0]);
    turn_for(20 * MS);
    assert_int_equal(rings, 0);
}

/* In 32 bits of seconds, the first one's moment would be past. */
CASE(a_timer_for_the_far_future_does_not_ring) {
    alarm_new(&alarms[0]);
    alarm_new(&alarms[1]);
    alarm_set(&alarms[0], ((INT64_C(1) << 32) + 1) * 1000 * MS);
    alarm_set(&alarms[1], INT64_MAX - 1);
    turn_for(20 * MS);
    assert_int_equal(rings, 0);
}

CASE(a_timer_rings_once_and_not_before_its_moment) {
    alarm_new(&alarms[0]);
    alarm_set(&alarms[0], now() + 20 * MS);
    await(rings > 0);
    assert_true(alarms[0].rung_at >= alarms[0].set_to);
    turn_for(30 * MS);
    assert_int_equal(rings, 1);
}

CASE(timers_ring_in_the_order_of_their_moments) {
    for (int i = 0; i < ALARMS; i++)
        alarm_new(&alarms[i]);
    int64_t start;
    do { /* again, if this process was held up in between */
        start = now();
        alarm_set(&alarms[0], start + 300 * MS);
        alarm_set(&alarms[1], start + 100 * MS);
        alarm_set(&alarms[2], start + 200 * MS);
    } while (now() >= start + 100 * MS);
    await(rings == 3);
    assert_ptr_equal(ringing[0], &alarms[1]);
    assert_ptr_equal(ringing[1], &alarms[2]);
    assert_ptr_equal(ringing[2], &alarms[0]);
}

CASE(a_timer_can_be_moved) {
    alarm_new(&alarms[0]);
    alarm_put_off(&alarms[0]);
    alarm_set(&alarms[0], now() + 10 * MS);
    alarm_set(&alarms[0], now() + 60 * MS);
    await(rings == 1);
    assert_true(alarms[0].rung_at >= alarms[0].set_to);
    assert_true(alarms[0].rung_at < alarms[0].set_to + PATIENCE / 2);
}

CASE(a_disarmed_timer_does_not_ring) {
    alarm_new(&alarms[0]);
    alarm_set(&alarms[0], now() + 10 * MS);
    alarm_set(&alarms[0], INT64_MAX);
    alarm_new(&alarms[1]);
    alarm_set(&alarms[1], now());
    alarm_set(&alarms[1], INT64_MAX);
    turn_for(40 * MS);
    assert_int_equal(rings, 0);
    alarm_set(&alarms[0], now());
    await(rings == 1);
}

CASE(a_past_moment_rings_on_a_later_turn) {
    static const int64_t moments[] = {INT64_MIN, -1, 0, 1, 1000000};
    alarm_new(&alarms[0]);
    for (size_t i = 0; i < sizeof moments / sizeof *moments; i++) {
        rings = 0;
        alarm_set(&alarms[0], moments[i]);
        assert_int_equal(rings, 0);
        await(rings == 1);
    }
    rings = 0;
    alarm_set(&alarms[0], now() - 1);
    assert_int_equal(rings, 0);
    await(rings == 1);
}

CASE(the_farthest_moments_are_taken) {
    alarm_new(&alarms[0]);
    alarm_set(&alarms[0], INT64_MAX - 1);
    turn_for(20 * MS);
    assert_int_equal(rings, 0);
}

CASE(a_timer_can_be_set_by_its_own_callback) {
    alarms[0].victim = &alarms[0];
    alarms[0].then = alarm_repeat;
    alarm_new(&alarms[0]);
    alarm_set(&alarms[0], now());
    await(rings == 3);
    turn_for(20 * MS);
    assert_int_equal(rings, 3);
}

CASE(a_timer_can_be_freed_by_its_own_callback) {
    alarms[0].victim = &alarms[0];
    alarms[0].then = alarm_free;
    alarm_new(&alarms[0]);
    alarm_set(&alarms[0], now());
    await(rings == 1);
    assert_null(alarms[0].timer);
}

/** Two timers, both due on the same turn, of which the one that rings first does `then` to the other. */
static void ring_two(void (*then)(struct rung_alarm *victim)) {
    for (int i = 0; i < 2; i++) {
        alarms[i].victim = &alarms[1 - i];
        alarms[i].then = then;
        alarm_new(&alarms[i]);
        alarm_set(&alarms[i], now());
    }
    static const struct timespec until_due = {0, 5 * MS * 1000};
    nanosleep(&until_due, NULL);
    await(rings > 0);
    turn_for(20 * MS);
    assert_int_equal(rings, 1);
}

CASE(a_due_timer_can_be_put_off_by_another) {
    ring_two(alarm_put_off);
}

CASE(a_due_timer_can_be_freed_by_another) {
    ring_two(alarm_free);
}

CASE(no_child_process_is_given_a_timer) {
    int inherited = count_descriptors(true);
    alarm_new(&alarms[0]);
    assert_true(count_descriptors(false) > descriptors_before);
    assert_int_equal(count_descriptors(true), inherited);
}

CASE(the_clock_is_evlock_s) {
    int64_t before = evlock_clock_us();
    int64_t told = now();
    assert_true(told >= before);
    assert_true(evlock_clock_us() >= told);
    struct timespec boot;
    if (clock_gettime(CLOCK_BOOTTIME, &boot) == 0) {
        assert_true((int64_t)boot.tv_sec * 1000000 + boot.tv_nsec / 1000 >= told);
        assert_true((int64_t)boot.tv_sec * 1000000 + boot.tv_nsec / 1000 < told + PATIENCE);
    }
}

/* --- Names -------------------------------------------------------------------------------------------------------- */

/* evlock's resolver, on this loop. */
static struct turn resolving;

static struct answer {
    int told;
    size_t count;
    bool all_loopback;
    char error[100];
} answer;

static void answered(const char *const *addresses, size_t count, const char *error, void *arg) {
    struct answer *here = arg;
    here->told++;
    here->count = count;
    here->all_loopback = true;
    for (size_t i = 0; i < count; i++)
        here->all_loopback &= strncmp(addresses[i], "127.", 4) == 0 || strcmp(addresses[i], "::1") == 0;
    snprintf(here->error, sizeof here->error, "%s", error ? error : "");
}

CASE(a_name_of_the_hosts_file_is_resolved_later) {
    assert_non_null(evl_resolver_ask(&resolving, "localhost", answered, &answer));
    assert_int_equal(answer.told, 0);
    await(answer.told);
    assert_int_in_range(answer.count, 1, 16);
    assert_true(answer.all_loopback);
    assert_string_equal(answer.error, "");
    turn_for(20 * MS);
    assert_int_equal(answer.told, 1);
}

CASE(an_address_is_resolved_to_itself) {
    assert_non_null(evl_resolver_ask(&resolving, "127.0.0.1", answered, &answer));
    assert_int_equal(answer.told, 0);
    await(answer.told);
    assert_int_equal(answer.count, 1);
    assert_true(answer.all_loopback);
}

CASE(a_name_that_cannot_be_ends_in_an_error) {
    char name[200];
    memset(name, 'x', sizeof name); /* a label is 63 bytes long at most, so that nobody is asked about it */
    name[sizeof name - 1] = '\0';
    void *resolution = evl_resolver_ask(&resolving, name, answered, &answer);
    assert_int_equal(answer.told, 0);
    if (resolution)
        await(answer.told);
    assert_int_equal(answer.count, 0);
    assert_int_equal(strlen(answer.error) > 0, resolution != NULL);
}

CASE(a_cancelled_resolution_is_not_told) {
    void *resolution = evl_resolver_ask(&resolving, "localhost", answered, &answer);
    evl_resolver_cancel(&resolving, resolution);
    turn_for(30 * MS);
    assert_int_equal(answer.told, 0);
}

CASE(resolutions_do_not_mix) {
    struct answer answers[4] = {{0}};
    void *resolutions[4];
    for (int i = 0; i < 4; i++)
        resolutions[i] = evl_resolver_ask(&resolving, "localhost", answered, &answers[i]);
    evl_resolver_cancel(&resolving, resolutions[2]);
    await(answers[0].told && answers[1].told && answers[3].told);
    assert_int_equal(answers[2].told, 0);
    await(adapter->busy(loop_data) == 0);
}

/* --- Connections -------------------------------------------------------------------------------------------------- */

static struct {
    redisAsyncContext *connection;
    int listener;
    int connected; /* 1: connected; -1: refused */
    int disconnected;
    char reply[100];
    bool frees; /* the reply's callback frees the connection */
} talk;

static void on_connect(const redisAsyncContext *connection, int status) {
    (void)connection;
    talk.connected = status == REDIS_OK ? 1 : -1;
    if (status != REDIS_OK)
        talk.connection = NULL;
}

static void on_disconnect(const redisAsyncContext *connection, int status) {
    (void)connection;
    (void)status;
    talk.disconnected++;
    talk.connection = NULL;
}

static void on_reply(redisAsyncContext *connection, void *reply, void *arg) {
    (void)arg;
    snprintf(talk.reply, sizeof talk.reply, "%s", reply ? ((redisReply *)reply)->str : "none");
    if (talk.frees)
        redisAsyncFree(connection);
}

/** A listening socket on a port of its own; the port. */
static int listen_locally(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    talk.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(talk.listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(talk.listener, 1), 0);
    assert_int_equal(getsockname(talk.listener, (struct sockaddr *)&address, &len), 0);
    return ntohs(address.sin_port);
}

static void connect_to(int port) {
    talk.connection = redisAsyncConnect("127.0.0.1", port);
    assert_non_null(talk.connection);
    assert_int_equal(talk.connection->err, 0);
    assert_int_equal(loop.ops->attach(loop.data, talk.connection), 0);
    redisAsyncSetConnectCallback(talk.connection, on_connect);
    redisAsyncSetDisconnectCallback(talk.connection, on_disconnect);
}

/** Connects, and takes the command PING at the other end, whose descriptor it returns. */
static int connect_and_ping(void) {
    connect_to(listen_locally());
    assert_int_equal(redisAsyncCommand(talk.connection, on_reply, NULL, "PING"), REDIS_OK);
    await(talk.connected == 1);
    int peer = accept4(talk.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_true(peer >= 0);
    char command[100];
    ssize_t len;
    await((len = read(peer, command, sizeof command)) > 0);
    assert_int_equal(len, 14);
    assert_memory_equal(command, "*1\r\n$4\r\nPING\r\n", 14);
    return peer;
}

CASE(a_connection_talks_and_ends) {
    int peer = connect_and_ping();
    assert_int_equal(write(peer, "+PONG\r\n", 7), 7);
    await(talk.reply[0]);
    assert_string_equal(talk.reply, "PONG");
    assert_int_equal(talk.disconnected, 0);
    assert_true(readable_told > 0);
    assert_true(writable_told > 0);
    close(peer);
    await(talk.disconnected);
}

CASE(a_connection_can_be_freed_by_its_reply) {
    int peer = connect_and_ping();
    talk.frees = true;
    assert_int_equal(write(peer, "+PONG\r\n", 7), 7);
    await(talk.disconnected);
    assert_string_equal(talk.reply, "PONG");
    close(peer);
}

CASE(a_refused_connection_is_told) {
    int port = listen_locally();
    close(talk.listener);
    talk.listener = -1;
    connect_to(port);
    await(talk.connected != 0);
    assert_int_equal(talk.connected, -1);
}

/* ------------------------------------------------------------------------------------------------------------------ */

static int begin(void **state) {
    (void)state;
    memset(alarms, 0, sizeof alarms);
    memset(&answer, 0, sizeof answer);
    memset(&talk, 0, sizeof talk);
    talk.listener = -1;
    readable_told = writable_told = 0;
    rings = 0;
    loop_data = adapter->open();
    loop = adapter->loop(loop_data);
    resolving = (struct turn){.loop = loop, .process = evlock_process()};
    descriptors_before = count_descriptors(false);
    return 0;
}

static int end(void **state) {
    (void)state;
    for (int i = 0; i < ALARMS; i++)
        alarm_free(&alarms[i]);
    if (talk.connection)
        redisAsyncFree(talk.connection);
    if (talk.listener >= 0)
        close(talk.listener);
    await(adapter->busy(loop_data) == 0);
    int left_open = count_descriptors(false) - descriptors_before;
    adapter->close(loop_data);
    assert_int_equal(left_open, 0);
    return 0;
}

/* --- Threads ------------------------------------------------------------------------------------------------------ */

struct other {
    void *timer;
    int rung;
    bool elsewhere;
    pthread_t home;
};

static void ring_home(void *arg) {
    struct other *other = arg;
    other->rung++;
    other->elsewhere |= !pthread_equal(pthread_self(), other->home);
}

static void *set_from_elsewhere(void *arg) {
    const struct other *other = arg;
    for (int i = 0; i < 100; i++)
        loop.ops->timer_set(other->timer, i % 2 ? 0 : INT64_MAX);
    return NULL;
}

static void a_timer_can_be_set_by_other_threads(void **state) {
    enum { THREADS = 4 };
    struct other other = {.home = pthread_self()};
    pthread_t threads[THREADS];
    (void)state;
    assert_int_equal(loop.ops->threads, 1);
    other.timer = loop.ops->timer_new(loop.data, ring_home, &other);
    assert_non_null(other.timer);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, set_from_elsewhere, &other), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    await(other.rung > 0); /* each of them set it last for now */
    assert_false(other.elsewhere);
    loop.ops->timer_free(other.timer);
}

/* --- Clients ------------------------------------------------------------------------------------------------------ */

static void a_client_is_made_on_the_loop(void **state) {
    static const evlock_client_options options;
    evlock_client *client;
    (void)state;
    assert_int_equal(adapter->client(&client, loop_data, "url", &options), EVLOCK_EURL);
    assert_ptr_equal(asked.loop.ops, loop.ops);
    assert_ptr_equal(asked.loop.data, loop.data);
    assert_ptr_equal(asked.ret_client, &client);
    assert_string_equal(asked.url, "url");
    assert_ptr_equal(asked.options, &options);
}

static void no_client_is_made_on_no_loop(void **state) {
    evlock_client *client;
    (void)state;
    assert_int_equal(adapter->client(&client, NULL, "url", NULL), EVLOCK_EINVAL);
    assert_null(asked.loop.ops);
}

int adapter_tests(const struct adapter *tested) {
    adapter = tested;
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_timer_that_is_not_set_does_not_ring),
        TEST(a_timer_for_the_far_future_does_not_ring),
        TEST(a_timer_rings_once_and_not_before_its_moment),
        TEST(timers_ring_in_the_order_of_their_moments),
        TEST(a_timer_can_be_moved),
        TEST(a_disarmed_timer_does_not_ring),
        TEST(a_past_moment_rings_on_a_later_turn),
        TEST(the_farthest_moments_are_taken),
        TEST(a_timer_can_be_set_by_its_own_callback),
        TEST(a_timer_can_be_freed_by_its_own_callback),
        TEST(a_due_timer_can_be_put_off_by_another),
        TEST(a_due_timer_can_be_freed_by_another),
        TEST(no_child_process_is_given_a_timer),
        TEST(the_clock_is_evlock_s),
        TEST(a_name_of_the_hosts_file_is_resolved_later),
        TEST(an_address_is_resolved_to_itself),
        TEST(a_name_that_cannot_be_ends_in_an_error),
        TEST(a_cancelled_resolution_is_not_told),
        TEST(resolutions_do_not_mix),
        TEST(a_connection_talks_and_ends),
        TEST(a_connection_can_be_freed_by_its_reply),
        TEST(a_refused_connection_is_told),
        TEST(a_timer_can_be_set_by_other_threads),
        TEST(a_client_is_made_on_the_loop),
        TEST(no_client_is_made_on_no_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
