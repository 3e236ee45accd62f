/*
 * What the tests on a real server share: one server a suite, a fixture a test (a loop, a client on it, what it logged),
 * a recorder for every kind of callback, and calls that wait for their callback. Owns whatever its factories made and
 * the test did not take back. Never asserts how fast something is: it waits for conditions, for at most WAIT_MS.
 *
 * A suite is a file with tests and `return run_suite("name", tests)`. Failures end the running cmocka test, so use
 * these functions in its thread and process only, and never fail inside a callback.
 */
#ifndef EVLOCK_TEST_HARNESS_H
#define EVLOCK_TEST_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <evlock/evlock.h>

#include "loops.h"
#include "relay.h"
#include "server.h"

enum {
    WAIT_MS = 30 * 1000, /* what must happen has happened by then, also under valgrind on a busy machine */
    MAX_LOCKS = 256,
    MAX_CLIENTS = 8,
    SCRIPTS = 15, /* that the library has */
};

/* --- The recorder ------------------------------------------------------------------------------------------------- */

/* What one callback was told. Zero it, give its address as the callback's arg. */
struct record {
    int count;       /* how often it was called; what follows is of the last time */
    int status;      /* the call's, the loss's, the risk's or the connection's */
    int64_t value;   /* what remains at risk, the run's `ran`, or the connection's state */
    void *object;    /* the handle or client that it was given */
    int64_t at;      /* when, by evlock_clock_us() */
    int order;       /* its place among all callbacks recorded in this process, from 1 */
    bool in_call;    /* set by the test around the call that asks for it … */
    int early;       /* … counts callbacks that came before the call had returned */
    char error[256]; /* evlock_last_error() */

    evlock_answer answer; /* of a query; all zero unless it was answered … */
    char holder[128];     /* … with this name in it */
    int unfit;            /* counts answers that came with a failure, or did not come with EVLOCK_OK */

    void (*then)(struct record *record); /* run inside the callback, after recording; may be NULL */
    void *then_arg;
};

void record_end(evlock *lock, int status, void *arg);
void record_answer(evlock *lock, int status, const evlock_answer *answer, void *arg);
void record_risk(evlock *lock, int status, void *arg);
void record_closed(int status, void *arg);
void record_run(int status, bool ran, void *arg);
void record_connection(evlock_client *client, enum evlock_connection state, int status, void *arg);

/* --- The fixture -------------------------------------------------------------------------------------------------- */

struct fixture {
    struct server *server; /* the suite's, running, empty */
    struct test_loop *loop;
    evlock_client *client;    /* the first that client_new() made */
    struct record connection; /* on_connection of every client with client_options() */
    int connection_states[4]; /* how often each state was told */
    struct record away;       /* the last EVLOCK_AWAY among them: the next try may have begun since */
    struct record ended;      /* the last callback that an await_ function waited for */
    char *log;                /* every log line of those clients, each with its newline; NULL for none */
    size_t log_len;
    int log_lines[EVLOCK_LOG_ERROR + 1]; /* how many there were so far of each level */
    evlock *locks[MAX_LOCKS];
    size_t locks_len;
    evlock_client *clients[MAX_CLIENTS];
    size_t clients_len;
    struct relay relay; /* runs from relay_start() on, until the clean-up */
};

/* The suite's server, which run_suite() starts, TCP included. */
extern struct server suite_server;

/* Per-test set-up and clean-up. `fixture_setup` makes a client of the server's URL, not yet connected; the bare one
 * does not. The clean-up frees what the factories made and checks that nothing is left registered on the loop. */
int fixture_setup(void **state);
int fixture_setup_bare(void **state);
int fixture_teardown(void **state);
/* The same, and the next test gets a new server, whatever became of this one. */
int fixture_teardown_restart(void **state);

#define TEST(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)
#define TEST_BARE(function) cmocka_unit_test_setup_teardown(function, fixture_setup_bare, fixture_teardown)

/* Runs the tests of one file on a server of their own; those whose name matches EVLOCK_TEST_FILTER ("*" and "?" are
 * wild), if that is set. Skips all, with status 77, if EVLOCK_TEST_LOOP names a loop that is not built in, or
 * EVLOCK_TEST_TLS asks for what this build or this server has not. */
#define run_suite(name, tests) run_suite_of((name), (tests), sizeof(tests) / sizeof((tests)[0]))
int run_suite_of(const char *name, const struct CMUnitTest *tests, size_t count);
/* The same, on what the suite sets up by itself. */
int run_suite_with(const char *name, const struct CMUnitTest *tests, size_t count, CMFixtureFunction set_up,
                   CMFixtureFunction clean_up);

/* For a second fixture inside a test, or for one in another thread or process: as the set-up does, without failing or
 * touching the server; free with fixture_free(). False when there is no loop. */
bool fixture_init(struct fixture *fixture, struct server *server);
/* Returns how many registrations were left on the loop. */
int fixture_free(struct fixture *fixture);

/* Options by which a client records its connection and its log, all levels, in the fixture. The plain ones are for URLs
 * without TLS, in any case. */
evlock_client_options client_options(struct fixture *fixture);
evlock_client_options plain_client_options(struct fixture *fixture);
/* A client, freed by the clean-up. NULL for `url`: the server's; NULL for `options`: client_options(). */
evlock_client *client_new(struct fixture *fixture, const char *url, const evlock_client_options *options);
/* A handle on the fixture's client, or on `client`, freed by the clean-up. `options` may be NULL. */
evlock *lock_new(struct fixture *fixture, const char *name, const evlock_options *options);
evlock *lock_new_on(struct fixture *fixture, evlock_client *client, const char *name, const evlock_options *options);
/* Takes an object back from the clean-up, for a test that frees it itself, or frees it now. */
void lock_forget(struct fixture *fixture, evlock *lock);
void client_forget(struct fixture *fixture, evlock_client *client);
void lock_free(struct fixture *fixture, evlock *lock);
void client_free(struct fixture *fixture, evlock_client *client);

/* Plain options with a ttl. */
evlock_options with_ttl(int64_t ttl_ms);

/* Shows the token of what is held: from then on it is renewed by script, also by servers with a command of their own
 * for that. */
void renew_by_script(const evlock *lock);

/* The fixture's client, which is connected, releases by script from here on, also on servers with a command of their
 * own for that. */
void release_by_script(struct fixture *fixture);

/* Whether the server renews by a command of its own. */
bool server_refreshes(struct server *server);

/* For a relay to change: the server says that it is a Redis that has commands of its own, or one that has none,
 * whatever it is. */
void say_newer(struct relay *relay, char *bytes, size_t len, bool to_server);
void say_older(struct relay *relay, char *bytes, size_t len, bool to_server);

/* How often a release or an undo was run, or a script for something else: logins ask for one, too. */
long long server_releases(struct server *server);
/* The rights without which nothing is deleted on this server, as ACL SETUSER takes them away. */
const char *deleting_rights(struct server *server);

/* How often the log of the fixture's clients says this, and whether it does. */
int times_logged(const struct fixture *fixture, const char *words);
bool logged(const struct fixture *fixture, const char *words);
/* It begins anew. */
void forget_log(struct fixture *fixture);

/* A client's statistics as they are now; its thread's alone. */
evlock_stats stats_of(const evlock_client *client);

/* --- Running the loop --------------------------------------------------------------------------------------------- */

/* Runs the loop until the condition holds; false if it does not within `ms`. */
bool run_until(struct fixture *fixture, bool (*condition)(void *arg), void *arg, int64_t ms);
/* Runs the loop for so long. */
void run_for(struct fixture *fixture, int64_t ms);
/* Runs the loop until the expression holds; fails the test if it does not within WAIT_MS. */
#define await(fixture, expression)                                                                                     \
    do {                                                                                                               \
        int64_t await_end = evlock_clock_us() + (int64_t)WAIT_MS * 1000;                                               \
        while (!(expression)) {                                                                                        \
            if (evlock_clock_us() > await_end)                                                                         \
                fail_msg("waited in vain for: %s", #expression);                                                       \
            loop_turn((fixture)->loop);                                                                                \
        }                                                                                                              \
    } while (0)

/* --- Calls that wait for their callback --------------------------------------------------------------------------- */

/* Each makes the call, which must return EVLOCK_OK, waits for its callback, checks that it came once and not before the
 * call had returned, and returns its status; fixture->ended has the rest. */
int await_acquire(struct fixture *fixture, evlock *lock, const evlock_acquire_options *options);
int await_try(struct fixture *fixture, evlock *lock);
int await_release(struct fixture *fixture, evlock *lock);
int await_extend(struct fixture *fixture, evlock *lock, int64_t ms, enum evlock_extend_mode mode);
int await_adopt(struct fixture *fixture, evlock *lock, const void *token, size_t len);
int await_break(struct fixture *fixture, evlock *lock);
/* The answer is fixture->ended.answer. */
#define EVERY_QUERY 63U
int await_query(struct fixture *fixture, evlock *lock, unsigned what);
/* Each asks for one thing alone, which must be answered. */
bool ask_locked(struct fixture *fixture, evlock *lock);
bool ask_owned(struct fixture *fixture, evlock *lock);
int64_t ask_ttl(struct fixture *fixture, evlock *lock);
const char *ask_holder(struct fixture *fixture, evlock *lock);
int64_t ask_waiters(struct fixture *fixture, evlock *lock);
int64_t ask_place(struct fixture *fixture, evlock *lock);
/* Waits until the client is connected. */
void await_connected(struct fixture *fixture, evlock_client *client);
/* Closes the client, which leaves the fixture, and waits for the end. */
int await_close(struct fixture *fixture, evlock_client *client);

/* --- Other threads and processes ---------------------------------------------------------------------------------- */

/* Where a failing assertion has nowhere to go: whether the call returned EVLOCK_OK and ended with that status. */
bool ends(struct fixture *fixture, int returned, const struct record *record, int status);
/* Runs `body` in a forked child and returns what it returned, 0 to 100; a crash or a hang is a failure. */
int in_child(int (*body)(void *arg), void *arg);
/* The same, in one that is made otherwise. */
int in_child_by(pid_t (*make)(void), int (*body)(void *arg), void *arg);

/* --- Assertions --------------------------------------------------------------------------------------------------- */

/* A status, told by name when it is another. */
#define assert_status(status, expected) assert_status_at((status), (expected), #status, __FILE__, __LINE__)
void assert_status_at(int status, int expected, const char *what, const char *file, int line);

/* A reason, of which these words are a part. */
#define assert_says(said, words) assert_says_at((said), (words), __FILE__, __LINE__)
void assert_says_at(const char *said, const char *words, const char *file, int line);

/* An ended call: once, not early, with this status. */
#define assert_ended(record, expected)                                                                                 \
    do {                                                                                                               \
        assert_int_equal((record)->count, 1);                                                                          \
        assert_int_equal((record)->early, 0);                                                                          \
        assert_int_equal((record)->unfit, 0);                                                                          \
        assert_status((record)->status, (expected));                                                                   \
    } while (0)

/* A held lease's deadline by evlock_clock_us(), to a few microseconds: waits for the tick of its milliseconds. */
int64_t deadline_of(const evlock *lock);

#endif
