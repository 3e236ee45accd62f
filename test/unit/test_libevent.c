/*
 * The adapter for libevent, by the tests that all adapters share, and by those of what is its own: memory that ends,
 * and questions to nameservers, which here are sockets of the test's own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <evlock/libevent.h>
#include <fcntl.h>
#include <hiredis/async.h>
#include <hiredis/hiredis.h>

#include "adapter_tests.h"
#include "counted.h"

static void *open_base(void) {
    return event_base_new();
}

static evlock_loop base_loop(void *base) {
    return evlock_libevent(base);
}

static int base_client(evlock_client **ret_client, void *base, const char *url, const evlock_client_options *options) {
    return evlock_client_new_libevent(ret_client, base, url, options);
}

static void turn_base(void *base) {
    event_base_loop(base, EVLOOP_NONBLOCK);
}

static int count_events(void *base) {
    return event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED | EVENT_BASE_COUNT_ACTIVE);
}

static void close_base(void *base) {
    event_base_free(base);
}

static const struct adapter libevent = {open_base, base_loop, base_client, turn_base, count_events, close_base};

/* --- Memory that ends --------------------------------------------------------------------------------------------- */

static long good_before_bad = -1; /* libevent's allocations until the one that fails; negative: none does */

static bool may_allocate(void) {
    return good_before_bad < 0 || good_before_bad-- > 0;
}

static void *event_malloc(size_t size) {
    return may_allocate() ? malloc(size) : NULL;
}

static void *event_realloc(void *block, size_t size) {
    return may_allocate() ? realloc(block, size) : NULL;
}

static void never_called(void *arg) {
    (void)arg;
    fail();
}

static void never_answered(const char *const *addresses, size_t count, const char *error, void *arg) {
    (void)addresses;
    (void)count;
    (void)error;
    (void)arg;
    fail();
}

CASE(without_memory_there_is_no_timer_and_no_resolution) {
    struct event_base *base = event_base_new();
    evlock_loop loop = evlock_libevent(base);
    counted_begin(NULL);
    counted_fail_after(0);
    assert_null(loop.ops->timer_new(loop.data, never_called, NULL));
    assert_null(loop.ops->resolve(loop.data, "localhost", never_answered, NULL));
    counted_fail_after(-1);
    void *timer = NULL;
    for (long good = 0; !timer; good++) {
        assert_int_equal(counted_live(), 0);
        good_before_bad = good;
        timer = loop.ops->timer_new(loop.data, never_called, NULL);
        good_before_bad = -1;
    }
    loop.ops->timer_free(timer);
    for (int good = 0; good < 3; good++) { /* its event, the event's place among the timers, and evdns */
        good_before_bad = good;
        assert_null(loop.ops->resolve(loop.data, "localhost", never_answered, NULL));
        good_before_bad = -1;
    }
    assert_int_equal(counted_live(), 0);
    counted_end();
    assert_int_equal(count_events(base), 0);
    event_base_free(base);
}

#if HIREDIS_MAJOR >= 1 /* 0.14's adapter does not survive this */
CASE(without_memory_there_is_no_attachment) {
    struct event_base *base = event_base_new();
    evlock_loop loop = evlock_libevent(base);
    redisAsyncContext *connection = redisAsyncConnect("127.0.0.1", 1);
    assert_non_null(connection);
    good_before_bad = 0;
    assert_int_equal(loop.ops->attach(loop.data, connection), -1);
    good_before_bad = -1;
    redisAsyncFree(connection);
    event_base_free(base);
}
#endif

/* --- A question under way ----------------------------------------------------------------------------------------- */

static void count_answer(const char *const *addresses, size_t count, const char *error, void *arg) {
    (void)addresses;
    (void)count;
    (void)error;
    ++*(int *)arg;
}

CASE(a_question_under_way_can_be_cancelled) {
    struct event_base *base = event_base_new();
    evlock_loop loop = evlock_libevent(base);
    counted_begin(NULL);
    for (int turns = 0; turns < 3; turns++) {
        int answers = 0;
        void *resolution = loop.ops->resolve(loop.data, "evlock.invalid", count_answer, &answers);
        assert_non_null(resolution);
        for (int i = 0; i < turns; i++)
            event_base_loop(base, EVLOOP_NONBLOCK);
        if (answers > 0) /* a nameserver that is as quick as that leaves nothing to be cancelled */
            break;
        loop.ops->resolve_cancel(resolution);
        for (int i = 0; i < 10; i++)
            event_base_loop(base, EVLOOP_NONBLOCK);
        assert_int_equal(answers, 0);
        assert_int_equal(counted_live(), 0);
        assert_int_equal(count_events(base), 0);
    }
    counted_end();
    event_base_free(base);
}

/* --- Nameservers -------------------------------------------------------------------------------------------------- */

enum { ADDRESSES_NONE, ADDRESSES_ONE, SILENT };
enum { TYPE_A = 1, TYPE_AAAA = 28, HEADER = 12, QUESTION_END = 5 /* the root, the type, the class */ };

/* One on the loopback: what it answers to each type, and how often it was asked. */
struct nameserver {
    int fd;
    int a, aaaa;
    int asked_a, asked_aaaa;
};

static struct nameserver nameservers[3];
static char resolv_conf[96]; /* the file that takes the machine's place; "" for the machine's */

int __real_evdns_base_resolv_conf_parse(struct evdns_base *base, int flags, const char *path);
int __wrap_evdns_base_resolv_conf_parse(struct evdns_base *base, int flags, const char *path);
int __wrap_evdns_base_resolv_conf_parse(struct evdns_base *base, int flags, const char *path) {
    return __real_evdns_base_resolv_conf_parse(base, flags, resolv_conf[0] ? resolv_conf : path);
}

static int lists_freed;

void __real_evutil_freeaddrinfo(struct evutil_addrinfo *list);
void __wrap_evutil_freeaddrinfo(struct evutil_addrinfo *list);
void __wrap_evutil_freeaddrinfo(struct evutil_addrinfo *list) {
    lists_freed++;
    __real_evutil_freeaddrinfo(list);
}

/* Turns a question into its answer; returns its length. */
static size_t answer_question(unsigned char *message, size_t len, int type, bool address) {
    static const unsigned char of_an_address[] = {0xc0, HEADER, 0, 0, 0, 1, 0, 0, 0, 60, 0, 0};
    size_t size = type == TYPE_A ? 4 : 16;
    message[2] = 0x81; /* an answer; recursion was desired, */
    message[3] = 0x80; /* and was available */
    if (!address)
        return len;
    message[7] = 1;
    memcpy(message + len, of_an_address, sizeof(of_an_address));
    message[len + 3] = (unsigned char)type;
    message[len + 11] = (unsigned char)size;
    memset(message + len + 12, 0, size);
    if (type == TYPE_A)
        message[len + 12] = 127;
    message[len + 11 + size] = 1;
    return len + 12 + size;
}

static void serve(struct nameserver *nameserver) {
    unsigned char message[512];
    struct sockaddr_in from;
    socklen_t from_len = sizeof(from);
    ssize_t len;
    while ((len = recvfrom(nameserver->fd, message, 256, 0, (struct sockaddr *)&from, &from_len)) >= HEADER) {
        size_t end = HEADER + strlen((char *)message + HEADER) + QUESTION_END;
        int type = message[end - 3], does = type == TYPE_A ? nameserver->a : nameserver->aaaa;
        ++*(type == TYPE_A ? &nameserver->asked_a : &nameserver->asked_aaaa);
        message[11] = 0; /* no additional records */
        if (does != SILENT)
            (void)!sendto(nameserver->fd, message, answer_question(message, end, type, does == ADDRESSES_ONE), 0,
                          (struct sockaddr *)&from, from_len);
    }
}

/* Opens one and names it in the file. */
static void nameserver_open(struct nameserver *nameserver, FILE *file) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    nameserver->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(nameserver->fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(getsockname(nameserver->fd, (struct sockaddr *)&address, &len), 0);
    fprintf(file, "nameserver 127.0.0.1:%d\n", ntohs(address.sin_port));
}

/* What a resolution has told. */
struct told {
    int times;
    size_t count;
    char first[64], error[100];
};

static void take_note(const char *const *addresses, size_t count, const char *error, void *arg) {
    struct told *told = arg;
    told->times++;
    told->count = count;
    snprintf(told->first, sizeof(told->first), "%s", count ? addresses[0] : "");
    snprintf(told->error, sizeof(told->error), "%s", error ? error : "");
}

static void be_quiet(int severity, const char *words) {
    (void)severity;
    (void)words;
}

/* The descriptors that a child process would be given. */
static int count_inherited(void) {
    int count = 0;
    for (int fd = 0; fd < 1024; fd++) {
        int flags = fcntl(fd, F_GETFD);
        count += flags >= 0 && !(flags & FD_CLOEXEC);
    }
    return count;
}

static void turn_and_serve(struct event_base *base, size_t count) {
    event_base_loop(base, EVLOOP_NONBLOCK);
    for (size_t i = 0; i < count; i++)
        serve(&nameservers[i]);
    usleep(1000);
}

/* What happens once the first nameserver was asked, if anything. */
static void (*meanwhile)(const evlock_loop *loop, void *resolution, const struct told *told);
static bool cancelled;

/* Resolves a name by such nameservers and options, until all of it has ended. */
static struct told resolve_by(const struct nameserver *which, size_t count, const char *options) {
    const char *folder = getenv("TMPDIR");
    struct event_base *base = event_base_new();
    evlock_loop loop = evlock_libevent(base);
    struct told told = {0};
    snprintf(resolv_conf, sizeof(resolv_conf), "%.60s/resolv-%d", folder ? folder : "/tmp", (int)getpid());
    FILE *file = fopen(resolv_conf, "we");
    assert_non_null(file);
    fprintf(file, "options %s\n", options);
    for (size_t i = 0; i < count; i++) {
        nameservers[i] = which[i];
        nameserver_open(&nameservers[i], file);
    }
    fclose(file);
    event_set_log_callback(be_quiet);
    int inherited = count_inherited();
    void *resolution = loop.ops->resolve(loop.data, "server.example", take_note, &told);
    assert_non_null(resolution);
    assert_int_equal(count_inherited(), inherited);
    cancelled = false;
    for (int i = 0; i < 30 * 1000 && !told.times && !cancelled; i++) {
        turn_and_serve(base, count);
        if (meanwhile && nameservers[0].asked_a && nameservers[0].asked_aaaa) {
            meanwhile(&loop, resolution, &told);
            meanwhile = NULL;
        }
    }
    struct nameserver asked[3];
    memcpy(asked, nameservers, sizeof(asked)); /* by the time at which it was told */
    for (int i = 0; i < 1000 && count_events(base) > 0; i++)
        turn_and_serve(base, count);
    assert_int_equal(count_events(base), 0);
    assert_int_equal(told.times, cancelled ? 0 : 1);
    memcpy(nameservers, asked, sizeof(asked));
    for (size_t i = 0; i < count; i++)
        close(nameservers[i].fd);
    event_set_log_callback(NULL);
    unlink(resolv_conf);
    resolv_conf[0] = '\0';
    event_base_free(base);
    return told;
}

/* Whatever the options are with which the machine's other programs live. In which order evdns asks is its own affair.
 */
CASE(a_dead_nameserver_costs_one_question) {
    static const struct nameserver dead = {.a = SILENT, .aaaa = SILENT}, alive = {.a = ADDRESSES_ONE};
    const struct nameserver orders[][3] = {{dead, alive}, {alive, dead}, {dead, dead, alive}, {dead, alive, dead}};
    const size_t counts[] = {2, 2, 3, 3};
    for (int i = 0; i < 4; i++) {
        struct told told = resolve_by(orders[i], counts[i], "timeout:2 attempts:2");
        assert_string_equal(told.error, "");
        assert_int_equal(told.count, 1);
        assert_string_equal(told.first, "127.0.0.1");
        for (size_t j = 0; j < counts[i]; j++)
            assert_int_in_range(nameservers[j].asked_a, 0, 1);
    }
}

/* Within a connect timeout, though the options would have each nameserver waited for longer than that. */
CASE(a_dead_nameserver_costs_a_second) {
    static const struct nameserver dead = {.a = SILENT, .aaaa = SILENT}, alive = {.a = ADDRESSES_ONE};
    int64_t begun = evlock_clock_us();
    struct told told = resolve_by((const struct nameserver[]){dead, alive}, 2, "timeout:9 attempts:2");
    assert_string_equal(told.first, "127.0.0.1");
    told = resolve_by((const struct nameserver[]){alive, dead}, 2, "timeout:9 attempts:2");
    assert_string_equal(told.first, "127.0.0.1");
    assert_true(evlock_clock_us() < begun + 8 * 1000 * 1000);
}

/* On a machine that stood still for a second, the question may be asked once more before what is known is told. */
CASE(an_unanswered_question_does_not_hold_up_the_other) {
    const struct nameserver of_ipv4 = {.a = ADDRESSES_ONE, .aaaa = SILENT};
    const struct nameserver of_ipv6 = {.a = SILENT, .aaaa = ADDRESSES_ONE};
    struct told told = resolve_by(&of_ipv4, 1, "timeout:1 attempts:5");
    assert_string_equal(told.first, "127.0.0.1");
    assert_int_in_range(nameservers[0].asked_aaaa, 1, 2);
    told = resolve_by(&of_ipv6, 1, "timeout:1 attempts:5");
    assert_string_equal(told.first, "::1");
    assert_int_in_range(nameservers[0].asked_a, 1, 2);
}

/* That there is no IPv4 address is known at once, and the IPv6 one only after the dead nameserver's time. */
CASE(who_has_no_address_waits_for_the_other) {
    const struct nameserver both[] = {{.a = ADDRESSES_NONE, .aaaa = SILENT}, {.aaaa = ADDRESSES_ONE}};
    struct told told = resolve_by(both, 2, "timeout:2 attempts:1");
    assert_string_equal(told.error, "");
    assert_int_equal(told.count, 1);
    assert_string_equal(told.first, "::1");
}

CASE(both_families_are_told_ipv4_first) {
    const struct nameserver both = {.a = ADDRESSES_ONE, .aaaa = ADDRESSES_ONE};
    struct told told = resolve_by(&both, 1, "timeout:9");
    assert_int_equal(told.count, 2);
    assert_string_equal(told.first, "127.0.0.1");
}

CASE(silence_ends_in_an_error) {
    const struct nameserver dead = {.a = SILENT, .aaaa = SILENT};
    struct told told = resolve_by(&dead, 1, "timeout:2 attempts:2");
    assert_int_equal(told.count, 0);
    assert_true(told.error[0]);
    assert_int_equal(nameservers[0].asked_a, 3);
}

/* Unless this machine stood still for so long that the one answer was content enough. */
static void cancel_with_one_answer(const evlock_loop *loop, void *resolution, const struct told *told) {
    for (int i = 0; i < 5 && !told->times; i++)
        event_base_loop(loop->data, EVLOOP_NONBLOCK);
    lists_freed = 0;
    cancelled = !told->times;
    if (cancelled)
        loop->ops->resolve_cancel(resolution);
}

CASE(what_was_found_before_it_was_cancelled_is_freed) {
    const struct nameserver of_ipv4 = {.a = ADDRESSES_ONE, .aaaa = SILENT};
    meanwhile = cancel_with_one_answer;
    (void)resolve_by(&of_ipv4, 1, "timeout:1 attempts:5");
    if (cancelled)
        assert_int_equal(lists_freed, 1);
}

static void cancel_in_a_child(const evlock_loop *loop, void *resolution, const struct told *told) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        loop->ops->resolve_cancel(resolution);
        _exit(told->times);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    nameservers[0].a = ADDRESSES_ONE; /* when it is asked again */
}

/* The loop's epoll is shared with the child. */
CASE(a_child_does_not_cancel_its_parents_question) {
    const struct nameserver late = {.a = SILENT, .aaaa = SILENT};
    meanwhile = cancel_in_a_child;
    struct told told = resolve_by(&late, 1, "timeout:2 attempts:2");
    assert_string_equal(told.error, "");
    assert_string_equal(told.first, "127.0.0.1");
}

int main(void) {
    event_set_mem_functions(event_malloc, event_realloc, free);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_there_is_no_timer_and_no_resolution),
#if HIREDIS_MAJOR >= 1
        cmocka_unit_test(without_memory_there_is_no_attachment),
#endif
        cmocka_unit_test(a_question_under_way_can_be_cancelled),
        cmocka_unit_test(a_dead_nameserver_costs_one_question),
        cmocka_unit_test(a_dead_nameserver_costs_a_second),
        cmocka_unit_test(an_unanswered_question_does_not_hold_up_the_other),
        cmocka_unit_test(who_has_no_address_waits_for_the_other),
        cmocka_unit_test(both_families_are_told_ipv4_first),
        cmocka_unit_test(silence_ends_in_an_error),
        cmocka_unit_test(what_was_found_before_it_was_cancelled_is_freed),
        cmocka_unit_test(a_child_does_not_cancel_its_parents_question),
    };
    int failed = adapter_tests(&libevent);
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
