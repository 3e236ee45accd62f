/*
 * OpenSSL without memory: each of its allocations in the life of a client over TLS is refused in turn, once and from
 * there on, on a real server. A call may fail but must say so; what was accepted is answered; when nothing is refused
 * any more the lock can be had; and no block of OpenSSL's stays. OpenSSL's allocator is replaced before its first call.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <openssl/crypto.h>
#include <openssl/err.h>

#include <evlock/evlock.h>

#include "../redis/loops.h"
#include "../redis/server.h"
#include "certs.h"

enum {
    RUN_S = 60,       /* a run that takes longer hangs */
    CALL_MS = 10000,  /* within which a call ends */
    REFUSING_MS = 20, /* from there on, for so long */
    WARM_RUNS = 20,   /* until OpenSSL has in its caches what it keeps */
    REPEATS = 3,      /* of what left something behind */
    WRONGS_MAX = 5,
};

/* --- OpenSSL's memory --------------------------------------------------------------------------------------------- */

static struct {
    bool armed;
    long at; /* negative: none is refused */
    bool from_there_on;
    bool fired;
    long passed, refused;
    long live;
    int64_t until; /* from there on, when it has fired */
} plan;

static bool is_refused(void) {
    if (!plan.armed || plan.at < 0)
        return false;
    if (!plan.fired && plan.passed++ != plan.at)
        return false;
    if (plan.fired && (!plan.from_there_on || evlock_clock_us() > plan.until))
        return false;
    if (!plan.fired)
        plan.until = evlock_clock_us() + REFUSING_MS * 1000;
    plan.fired = true;
    plan.refused++;
    return true;
}

static void *ssl_malloc(size_t size, const char *file, int line) {
    void *block = size == 0 || is_refused() ? NULL : malloc(size);
    (void)file, (void)line;
    plan.live += block != NULL;
    return block;
}

static void ssl_free(void *block, const char *file, int line) {
    (void)file, (void)line;
    plan.live -= block != NULL;
    free(block);
}

static void *ssl_realloc(void *block, size_t size, const char *file, int line) {
    if (!block)
        return ssl_malloc(size, file, line);
    if (size == 0) {
        ssl_free(block, file, line);
        return NULL;
    }
    return is_refused() ? NULL : realloc(block, size);
}

/* What is done without memory: a client is made, or it connects, locks and closes. */
enum part { MAKING, TALKING };

/* --- A run -------------------------------------------------------------------------------------------------------- */

static struct server server;
static char label[64];

static struct run {
    struct test_loop *loop;
    evlock_client *client;
    evlock *lock;
    int wrong;
    char words[200]; /* why it was away last */
    long left;       /* blocks, that it gave and did not take back */
} run;

static void wrong(const char *what, int status) {
    print_error("%s: %s: %s (%s)\n", label, what, evlock_strerror(status), run.words);
    run.wrong++;
}

struct told {
    int count, status;
    char words[200];
};

static void tell(struct told *told, int status) {
    told->count++;
    told->status = status;
    snprintf(told->words, sizeof(told->words), "%s", evlock_last_error());
}

static void on_end(evlock *lock, int status, void *arg) {
    (void)lock;
    tell(arg, status);
}

static void on_closed(int status, void *arg) {
    tell(arg, status);
}

/* Why the client is away. */
static void on_connection(evlock_client *client, enum evlock_connection state, int status, void *arg) {
    (void)client, (void)status, (void)arg;
    if (state == EVLOCK_AWAY)
        snprintf(run.words, sizeof(run.words), "%s", evlock_last_error());
}

/* Runs the loop until the call is answered, which it must be once; returns its status. */
static int await_told(const char *what, int returned, struct told *told) {
    int64_t limit = evlock_clock_us() + (int64_t)CALL_MS * 1000;
    if (returned != EVLOCK_OK) {
        wrong(what, returned);
        return returned;
    }
    while (!told->count && evlock_clock_us() < limit)
        loop_turn(run.loop);
    if (told->count != 1)
        wrong(what, told->count ? told->status : EVLOCK_EUNREACHABLE);
    return told->status;
}

/* How a lack of memory may be told. The server finds fault with the half of something; and OpenSSL takes a key for a
 * weak one that it could not look at. */
static bool lacks_memory(int status) {
    return status == EVLOCK_ENOMEM || status == EVLOCK_EPROTOCOL || status == EVLOCK_ECERT;
}

static int acquire(void) {
    struct told told = {0};
    int status = await_told("the acquire", evlock_acquire(run.lock, NULL, on_end, &told), &told);
    if (status != EVLOCK_OK && (!plan.fired || !lacks_memory(status))) {
        print_error("%s\n", told.words);
        wrong("the acquire's end", status);
    }
    return status;
}

/* Nothing is refused any more. */
static bool comes_back(void) {
    int64_t limit = evlock_clock_us() + (int64_t)CALL_MS * 1000;
    plan.at = -1;
    while (evlock_client_connection(run.client) != EVLOCK_CONNECTED && evlock_clock_us() < limit)
        loop_turn(run.loop);
    return evlock_client_connection(run.client) == EVLOCK_CONNECTED;
}

/* An acquire may end by the lack of memory, and the next one must do. */
static void acquire_and_release(void) {
    struct told released = {0};
    int status = EVLOCK_ENOMEM;
    if (evlock_new(&run.lock, run.client, "a", EVLOCK_CSTRING, NULL) != EVLOCK_OK) {
        wrong("the handle", EVLOCK_ENOMEM);
        return;
    }
    status = acquire();
    if (status != EVLOCK_OK && comes_back())
        status = acquire();
    if (status == EVLOCK_OK)
        status = await_told("the release", evlock_release(run.lock, on_end, &released), &released);
    if (status != EVLOCK_OK)
        wrong("the lock at last", status);
}

static void live(enum part part) {
    evlock_client_options options = {.size = sizeof(evlock_client_options)};
    struct told closed = {0};
    char url[64];
    options.tls_ca = cert_file("authority");
    options.tls_cert = cert_file("client");
    options.tls_key = cert_key_file("client");
    options.on_connection = on_connection;
    options.backoff_min_ms = 1;
    options.backoff_max_ms = 5;
    snprintf(url, sizeof(url), "rediss://127.0.0.1:%d", server.port + 10000);
    plan.armed = part == MAKING;
    int status = evlock_client_new(&run.client, loop_for_evlock(run.loop), url, &options);
    plan.armed = part == TALKING;
    if (status == EVLOCK_OK && part == TALKING) {
        acquire_and_release();
        status = await_told("the close", evlock_client_close(run.client, on_closed, &closed), &closed);
        evlock_free(run.lock);
    } else if (status == EVLOCK_OK) {
        evlock_client_free(run.client);
    } else if (!plan.fired || (status != EVLOCK_ENOMEM && status != EVLOCK_ETLS) || !evlock_last_error()[0]) {
        wrong("the client", status);
    }
    plan.armed = false;
}

/* One run; whether the planned point was reached. */
static bool play(enum part part, long at, bool from_there_on, int *wrongs) {
    long before = plan.live;
    alarm(RUN_S);
    plan.at = at;
    plan.from_there_on = from_there_on;
    plan.passed = 0;
    plan.fired = false;
    snprintf(label, sizeof(label), "point %ld, %s", at, from_there_on ? "from there on" : "once");
    run = (struct run){.loop = loop_new()};
    live(part);
    loop_turn(run.loop);
    if (loop_registrations(run.loop))
        wrong("something is left on the loop", EVLOCK_OK);
    loop_free(run.loop);
    if (ERR_peek_error()) {
        wrong("errors are left in the queue", EVLOCK_OK);
        ERR_print_errors_fp(stderr);
    }
    if (key_exists(&server, "a")) {
        wrong("a key is left", EVLOCK_OK);
        server_do(&server, "DEL a");
    }
    *wrongs += run.wrong > 0;
    run.left = plan.live - before;
    return plan.fired;
}

/* The same; and what stays behind, stays once for the process: OpenSSL keeps some things that it makes when they are
 * asked for first. */
static bool play_and_count(enum part part, long at, bool from_there_on, int *wrongs) {
    bool fired = play(part, at, from_there_on, wrongs);
    for (int i = 0; run.left > 0 && i < REPEATS; i++)
        play(part, at, from_there_on, wrongs);
    if (run.left > 0) {
        print_error("%s: %ld blocks are left each time\n", label, run.left);
        ++*wrongs;
    }
    return fired;
}

/* --- The tests ---------------------------------------------------------------------------------------------------- */

static void tell_run(int signal_number) {
    (void)!write(STDERR_FILENO, "\nin ", 4);
    (void)!write(STDERR_FILENO, label, strlen(label));
    (void)!write(STDERR_FILENO, "\n", 1);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

/* There are 23,000 points, most of them in OpenSSL's reading of certificates. */
static long stride(void) {
    const char *said = getenv("EVLOCK_TEST_STRIDE");
    long number = said ? strtol(said, NULL, 10) : 1;
    return 7 * (number > 0 ? number : 1);
}

static void refuse(enum part part, bool from_there_on) {
    const char *only = getenv("EVLOCK_TEST_FAULT"); /* "POINT ON", as numbers, to look at one run */
    int wrongs = 0, on;
    long at = 0;
    for (int i = 0; i < WARM_RUNS; i++)
        play(part, -1, false, &wrongs);
    assert_int_equal(wrongs, 0);
    if (only && sscanf(only, "%ld %d", &at, &on) == 2) {
        play_and_count(part, at, on, &wrongs);
        assert_int_equal(wrongs, 0);
        return;
    }
    while (wrongs < WRONGS_MAX && play_and_count(part, at, from_there_on, &wrongs))
        at += stride();
    print_message("%ld points, %ld refusals\n", at, plan.refused);
    assert_int_equal(wrongs, 0);
}

/* A context that was made with less memory than it needed may be of no use for good, and OpenSSL does not say so. */
CASE(a_client_is_made_with_each_allocation_refused_once) {
    refuse(MAKING, false);
}

CASE(a_client_is_made_with_all_allocations_from_each_on_refused) {
    refuse(MAKING, true);
}

CASE(a_client_talks_with_each_allocation_refused_once) {
    refuse(TALKING, false);
}

CASE(a_client_talks_with_all_allocations_from_each_on_refused) {
    refuse(TALKING, true);
}

static int setup(void **state) {
    (void)state;
    server_start(&server, true, NULL);
    server_do(&server,
              "CONFIG SET tls-cert-file %s tls-key-file %s tls-ca-cert-file %s tls-auth-clients yes tls-port %d",
              cert_file("server"), cert_key_file("server"), cert_file("authority"), server.port + 10000);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    server_stop(&server);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_is_made_with_each_allocation_refused_once),
        cmocka_unit_test(a_client_is_made_with_all_allocations_from_each_on_refused),
        cmocka_unit_test(a_client_talks_with_each_allocation_refused_once),
        cmocka_unit_test(a_client_talks_with_all_allocations_from_each_on_refused),
    };
    if (!CRYPTO_set_mem_functions(ssl_malloc, ssl_realloc, ssl_free))
        return EXIT_FAILURE;
    signal(SIGSEGV, tell_run);
    signal(SIGABRT, tell_run);
    signal(SIGALRM, tell_run);
    cmocka_set_test_filter(getenv("EVLOCK_TEST_FILTER"));
    return cmocka_run_group_tests_name("tls_failures", tests, setup, teardown);
}
