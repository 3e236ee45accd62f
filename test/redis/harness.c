/* The tests' fixture, recorder and waiting calls; see harness.h. */
#include "harness.h"

#include "tls.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct server suite_server;

/* --- The recorder ------------------------------------------------------------------------------------------------- */

static _Atomic int last_order;
static _Atomic bool over; /* the test has ended: its records are gone with its stack, however it ended */

static void record(struct record *record, void *object, int status, int64_t value) {
    if (over)
        return;
    record->count++;
    record->status = status;
    record->value = value;
    record->object = object;
    record->at = evlock_clock_us();
    record->order = ++last_order;
    record->early += record->in_call;
    snprintf(record->error, sizeof(record->error), "%s", evlock_last_error());
    if (record->then)
        record->then(record);
}

void record_end(evlock *lock, int status, void *arg) {
    record(arg, lock, status, 0);
}

void record_answer(evlock *lock, int status, const evlock_answer *answer, void *arg) {
    static const evlock_answer none;
    struct record *to = arg;
    if (over)
        return;
    to->unfit += (status == EVLOCK_OK) != (answer != NULL);
    to->answer = answer ? *answer : none;
    snprintf(to->holder, sizeof(to->holder), "%s", answer ? answer->holder : "");
    to->unfit += answer && strlen(answer->holder) != answer->holder_len;
    to->answer.holder = to->holder;
    record(to, lock, status, 0);
}

void record_risk(evlock *lock, int status, void *arg) {
    record(arg, lock, status, evlock_remaining_ms(lock));
}

void record_closed(int status, void *arg) {
    record(arg, NULL, status, 0);
}

void record_run(int status, bool ran, void *arg) {
    record(arg, NULL, status, ran);
}

void record_connection(evlock_client *client, enum evlock_connection state, int status, void *arg) {
    record(arg, client, status, (int64_t)state);
}

/* --- The fixture -------------------------------------------------------------------------------------------------- */

static void fixture_connection(evlock_client *client, enum evlock_connection state, int status, void *arg) {
    struct fixture *fixture = arg;
    fixture->connection_states[state]++;
    record_connection(client, state, status, &fixture->connection);
    if (state == EVLOCK_AWAY)
        fixture->away = fixture->connection;
}

static void fixture_log(enum evlock_log_level level, const char *line, void *arg) {
    struct fixture *fixture = arg;
    size_t len = strlen(line);
    char *log = realloc(fixture->log, fixture->log_len + len + 2);
    fixture->log_lines[level]++;
    if (!log)
        return;
    memcpy(log + fixture->log_len, line, len);
    memcpy(log + fixture->log_len + len, "\n", 2);
    fixture->log = log;
    fixture->log_len += len + 1;
}

long long server_releases(struct server *server) {
    return server_calls(server, "evalsha") + server_calls(server, "delifeq") + server_calls(server, "delex");
}

const char *deleting_rights(struct server *server) {
    bool delifeq, delex;
    redisReply *reply = server_command(server, "COMMAND INFO delifeq delex");

    assert_int_equal(reply->elements, 2);
    delifeq = reply->element[0]->type == REDIS_REPLY_ARRAY && reply->element[0]->elements > 0;
    delex = reply->element[1]->type == REDIS_REPLY_ARRAY && reply->element[1]->elements > 0;
    freeReplyObject(reply);
    if (delifeq && delex)
        return "-del -delifeq -delex";
    return delifeq ? "-del -delifeq" : delex ? "-del -delex" : "-del";
}

void release_by_script(struct fixture *fixture) {
    const char *rights = deleting_rights(fixture->server) + strlen("-del");
    char command[64];
    evlock *lock;

    if (!*rights)
        return;
    lock = lock_new(fixture, "released by script", NULL);
    assert_status(await_acquire(fixture, lock, NULL), EVLOCK_OK);
    snprintf(command, sizeof(command), "ACL SETUSER default%s", rights);
    server_do(fixture->server, command);
    assert_status(await_release(fixture, lock), EVLOCK_OK); /* what was refused once is not tried again */
    server_do(fixture->server, "ACL SETUSER default +@all");
    lock_free(fixture, lock);
}

bool server_refreshes(struct server *server) {
    redisReply *reply = server_command(server, "SET none token IFEQ token PX 1000");
    bool has = reply->type == REDIS_REPLY_NIL;

    freeReplyObject(reply);
    return has;
}

/* As what Redis it passes, in place of what it is; as what Valkey, not at all. */
static void edit_version(char *bytes, size_t len, char major, char minor) {
    char *version = memmem(bytes, len, "\nredis_version:", 15);
    char *valkey = memmem(bytes, len, "\nvalkey_version:", 16);

    if (version && version + 18 <= bytes + len) {
        version[15] = major;
        version[17] = minor;
    }
    if (valkey)
        valkey[1] = 'x';
}

void say_newer(struct relay *relay, char *bytes, size_t len, bool to_server) {
    (void)relay;
    if (!to_server)
        edit_version(bytes, len, '8', '9');
}

void say_older(struct relay *relay, char *bytes, size_t len, bool to_server) {
    (void)relay;
    if (!to_server)
        edit_version(bytes, len, '7', '0');
}

void renew_by_script(const evlock *lock) {
    assert_non_null(evlock_token(lock, NULL));
}

int times_logged(const struct fixture *fixture, const char *words) {
    int count = 0;
    for (const char *at = fixture->log; at && (at = strstr(at, words)); at++)
        count++;
    return count;
}

bool logged(const struct fixture *fixture, const char *words) {
    return times_logged(fixture, words) > 0;
}

void forget_log(struct fixture *fixture) {
    free(fixture->log);
    fixture->log = NULL;
    fixture->log_len = 0;
}

evlock_stats stats_of(const evlock_client *client) {
    evlock_stats stats;
    assert_status(evlock_client_stats(client, &stats, sizeof(stats)), EVLOCK_OK);
    return stats;
}

bool fixture_init(struct fixture *fixture, struct server *server) {
    over = false;
    *fixture = (struct fixture){.server = server, .loop = loop_new()};
    return fixture->loop != NULL;
}

int fixture_free(struct fixture *fixture) {
    while (fixture->locks_len)
        evlock_free(fixture->locks[--fixture->locks_len]);
    while (fixture->clients_len)
        evlock_client_free(fixture->clients[--fixture->clients_len]);
    loop_turn(fixture->loop); /* the turn on which what was pending ends */
    int left = loop_registrations(fixture->loop);
    loop_free(fixture->loop);
    free(fixture->log);
    return left;
}

int fixture_setup_bare(void **state) {
    static struct fixture fixture;
    if (!suite_server.pid)
        server_restart(&suite_server);
    server_resume(&suite_server);
    server_do(&suite_server, "FLUSHALL");
    server_do(&suite_server, "CONFIG RESETSTAT");
    *state = &fixture;
    return fixture_init(&fixture, &suite_server) ? 0 : -1;
}

int fixture_setup(void **state) {
    if (fixture_setup_bare(state))
        return -1;
    client_new(*state, NULL, NULL);
    return 0;
}

int fixture_teardown(void **state) {
    struct fixture *fixture = *state;
    server_resume(&suite_server);
    over = true;
    relay_free(&fixture->relay);
    int left = fixture_free(fixture);
    if (left)
        fail_msg("%d registrations were left on the loop", left);
    return 0;
}

int fixture_teardown_restart(void **state) {
    struct fixture *fixture = *state;
    relay_stop(&fixture->relay); /* first: its clients are freed without it, and without their server */
    server_stop(&suite_server);
    server_start(&suite_server, true, NULL);
    return fixture_teardown(state);
}

evlock_client_options plain_client_options(struct fixture *fixture) {
    evlock_client_options options = {.size = sizeof(evlock_client_options)};
    options.on_connection = fixture_connection;
    options.on_log = fixture_log;
    options.log_level = EVLOCK_LOG_DEBUG;
    options.arg = fixture;
    return options;
}

evlock_client_options client_options(struct fixture *fixture) {
    evlock_client_options options = plain_client_options(fixture);
    tls_trust(&options);
    return options;
}

evlock_client *client_new(struct fixture *fixture, const char *url, const evlock_client_options *options) {
    evlock_client_options own = client_options(fixture);
    evlock_client *client = NULL;
    int status = evlock_client_new(&client, loop_for_evlock(fixture->loop), url ? url : fixture->server->url,
                                   options ? options : &own);
    assert_status(status, EVLOCK_OK);
    assert_true(fixture->clients_len < MAX_CLIENTS);
    fixture->clients[fixture->clients_len++] = client;
    if (!fixture->client)
        fixture->client = client;
    return client;
}

evlock *lock_new_on(struct fixture *fixture, evlock_client *client, const char *name, const evlock_options *options) {
    evlock *lock = NULL;
    assert_status(evlock_new(&lock, client, name, EVLOCK_CSTRING, options), EVLOCK_OK);
    assert_true(fixture->locks_len < MAX_LOCKS);
    fixture->locks[fixture->locks_len++] = lock;
    return lock;
}

evlock *lock_new(struct fixture *fixture, const char *name, const evlock_options *options) {
    return lock_new_on(fixture, fixture->client, name, options);
}

void lock_forget(struct fixture *fixture, evlock *lock) {
    for (size_t i = 0; i < fixture->locks_len; i++)
        if (fixture->locks[i] == lock)
            fixture->locks[i--] = fixture->locks[--fixture->locks_len];
}

void client_forget(struct fixture *fixture, evlock_client *client) {
    for (size_t i = 0; i < fixture->clients_len; i++)
        if (fixture->clients[i] == client)
            fixture->clients[i--] = fixture->clients[--fixture->clients_len];
    if (fixture->client == client)
        fixture->client = NULL;
}

void lock_free(struct fixture *fixture, evlock *lock) {
    lock_forget(fixture, lock);
    evlock_free(lock);
}

void client_free(struct fixture *fixture, evlock_client *client) {
    client_forget(fixture, client);
    evlock_client_free(client);
}

evlock_options with_ttl(int64_t ttl_ms) {
    evlock_options options = {.size = sizeof(evlock_options)};
    options.ttl_ms = ttl_ms;
    return options;
}

/* --- Running the loop --------------------------------------------------------------------------------------------- */

bool run_until(struct fixture *fixture, bool (*condition)(void *arg), void *arg, int64_t ms) {
    int64_t end = evlock_clock_us() + ms * 1000;
    while (!condition(arg)) {
        if (evlock_clock_us() > end)
            return false;
        loop_turn(fixture->loop);
    }
    return true;
}

static bool never(void *arg) {
    (void)arg;
    return false;
}

void run_for(struct fixture *fixture, int64_t ms) {
    run_until(fixture, never, NULL, ms);
}

/* --- Calls that wait ---------------------------------------------------------------------------------------------- */

static struct record *begin(struct fixture *fixture) {
    fixture->ended = (struct record){.in_call = true};
    return &fixture->ended;
}

static int finish(struct fixture *fixture, int returned) {
    fixture->ended.in_call = false;
    assert_status(returned, EVLOCK_OK);
    await(fixture, fixture->ended.count);
    assert_ended(&fixture->ended, fixture->ended.status);
    return fixture->ended.status;
}

int await_acquire(struct fixture *fixture, evlock *lock, const evlock_acquire_options *options) {
    return finish(fixture, evlock_acquire(lock, options, record_end, begin(fixture)));
}

int await_try(struct fixture *fixture, evlock *lock) {
    evlock_acquire_options options = {.size = sizeof(evlock_acquire_options)};
    options.max_attempts = EVLOCK_TRY;
    return await_acquire(fixture, lock, &options);
}

int await_release(struct fixture *fixture, evlock *lock) {
    return finish(fixture, evlock_release(lock, record_end, begin(fixture)));
}

int await_extend(struct fixture *fixture, evlock *lock, int64_t ms, enum evlock_extend_mode mode) {
    return finish(fixture, evlock_extend(lock, ms, mode, record_end, begin(fixture)));
}

int await_adopt(struct fixture *fixture, evlock *lock, const void *token, size_t len) {
    return finish(fixture, evlock_adopt(lock, token, len, record_end, begin(fixture)));
}

int await_break(struct fixture *fixture, evlock *lock) {
    return finish(fixture, evlock_break(lock, record_end, begin(fixture)));
}

int await_query(struct fixture *fixture, evlock *lock, unsigned what) {
    return finish(fixture, evlock_query(lock, what, record_answer, begin(fixture)));
}

static const evlock_answer *answer_to(struct fixture *fixture, evlock *lock, unsigned what) {
    assert_status(await_query(fixture, lock, what), EVLOCK_OK);
    assert_ptr_equal(fixture->ended.object, lock);
    return &fixture->ended.answer;
}

bool ask_locked(struct fixture *fixture, evlock *lock) {
    return answer_to(fixture, lock, EVLOCK_QUERY_LOCKED)->locked;
}

bool ask_owned(struct fixture *fixture, evlock *lock) {
    return answer_to(fixture, lock, EVLOCK_QUERY_OWNED)->owned;
}

int64_t ask_ttl(struct fixture *fixture, evlock *lock) {
    return answer_to(fixture, lock, EVLOCK_QUERY_TTL)->ttl_ms;
}

const char *ask_holder(struct fixture *fixture, evlock *lock) {
    return answer_to(fixture, lock, EVLOCK_QUERY_HOLDER)->holder;
}

int64_t ask_waiters(struct fixture *fixture, evlock *lock) {
    return answer_to(fixture, lock, EVLOCK_QUERY_WAITERS)->waiters;
}

int64_t ask_place(struct fixture *fixture, evlock *lock) {
    return answer_to(fixture, lock, EVLOCK_QUERY_PLACE)->place;
}

void await_connected(struct fixture *fixture, evlock_client *client) {
    await(fixture, evlock_client_connection(client) == EVLOCK_CONNECTED);
}

int await_close(struct fixture *fixture, evlock_client *client) {
    client_forget(fixture, client);
    return finish(fixture, evlock_client_close(client, record_closed, begin(fixture)));
}

/* --- Other threads and processes ---------------------------------------------------------------------------------- */

static bool recorded(void *arg) {
    return ((const struct record *)arg)->count > 0;
}

bool ends(struct fixture *fixture, int returned, const struct record *record, int status) {
    return returned == EVLOCK_OK && run_until(fixture, recorded, (void *)(uintptr_t)record, WAIT_MS) &&
           record->count == 1 && record->status == status;
}

int in_child(int (*body)(void *arg), void *arg) {
    return in_child_by(fork, body, arg);
}

int in_child_by(pid_t (*make)(void), int (*body)(void *arg), void *arg) {
    int status;
    fflush(NULL);
    pid_t pid = make();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(2 * WAIT_MS / 1000);
        _exit(body(arg));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status))
        fail_msg("the child was ended by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

/* --- Assertions --------------------------------------------------------------------------------------------------- */

void assert_status_at(int status, int expected, const char *what, const char *file, int line) {
    if (status == expected)
        return;
    print_error("%s is %d (%s), not %d (%s); last error: \"%s\"\n", what, status, evlock_strerror(status), expected,
                evlock_strerror(expected), evlock_last_error());
    _fail(file, line);
}

void assert_says_at(const char *said, const char *words, const char *file, int line) {
    if (strstr(said, words))
        return;
    print_error("the words are \"%s\", not \"%s\"\n", said, words);
    _fail(file, line);
}

int64_t deadline_of(const evlock *lock) {
    int64_t first = evlock_remaining_ms(lock);
    int64_t left = first;
    while (left == first && left > 0)
        left = evlock_remaining_ms(lock);
    return evlock_clock_us() + (left + 1) * 1000;
}

/* --- Suites ------------------------------------------------------------------------------------------------------- */

static int suite_setup(void **state) {
    (void)state;
    server_start(&suite_server, true, NULL);
    return 0;
}

static int suite_teardown(void **state) {
    (void)state;
    server_stop(&suite_server);
    return 0;
}

int run_suite_with(const char *name, const struct CMUnitTest *tests, size_t count, CMFixtureFunction set_up,
                   CMFixtureFunction clean_up) {
    struct test_loop *loop = loop_new();
    if (!loop) {
        printf("this build has no loop called %s\n", getenv("EVLOCK_TEST_LOOP"));
        return 77;
    }
    loop_free(loop);
    const char *missing = server_missing();
    if (missing) {
        printf("%s\n", missing);
        return 77;
    }
    cmocka_set_test_filter(getenv("EVLOCK_TEST_FILTER"));
    return _cmocka_run_group_tests(name, tests, count, set_up, clean_up);
}

int run_suite_of(const char *name, const struct CMUnitTest *tests, size_t count) {
    return run_suite_with(name, tests, count, suite_setup, suite_teardown);
}
