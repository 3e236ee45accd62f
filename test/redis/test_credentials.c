/*
 * Credentials that change: given when they are asked for, at once, later, never, twice or wrong; given without being
 * asked for; read from a file. Whatever becomes of them, no lease is lost, no waiter loses its place, and no password
 * is left where a core dump would have it.
 */
#include "waiters.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

/* --- The user who is asked ---------------------------------------------------------------------------------------- */

static struct {
    int count; /* how often it was asked; what follows is of the last time */
    size_t node;
    evlock_client *client;
    int by_node[3];
    int early;             /* so often inside a call */
    bool in_call;          /* set around calls */
    const char *passwords; /* with which it answers inside, one for each question, the last for all that follow */
    void (*then)(evlock_client *client, size_t node);
} asked;

static const char *next_password(void) {
    const char *password = asked.passwords;
    if (password && password[0] && password[strlen(password) + 1])
        asked.passwords += strlen(password) + 1;
    return password;
}

static void on_login(evlock_client *client, size_t node, void *arg) {
    const char *password;
    (void)arg;
    asked.count++;
    asked.by_node[node]++;
    asked.early += asked.in_call;
    asked.client = client;
    asked.node = node;
    if (asked.then) {
        asked.then(client, node);
        return;
    }
    password = next_password();
    if (password)
        evlock_client_login(client, node, "worker", password);
}

/* `passwords` are strings one behind the other, with an empty one at the end; NULL: nothing is answered inside. */
static void answer_with(const char *passwords) {
    memset(&asked, 0, sizeof(asked));
    asked.passwords = passwords;
}

static int set_up(void **state) {
    int failed = fixture_setup_bare(state);
    struct fixture *f = *state;
    answer_with(NULL);
    if (!failed)
        server_do(f->server, "ACL SETUSER worker reset on >one ~* &* +@all");
    return failed;
}

static int tear_down(void **state) {
    int failed = fixture_teardown(state);
    server_do(&suite_server, "ACL DELUSER worker");
    return failed;
}

#define CREDENTIALS_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

static evlock_client_options asking(struct fixture *f) {
    evlock_client_options options = client_options(f);
    options.on_login = on_login;
    options.backoff_max_ms = 200;
    return options;
}

static evlock_client *asking_client(struct fixture *f, const char *passwords) {
    evlock_client_options options = asking(f);
    evlock_client *client;
    answer_with(passwords);
    asked.in_call = true;
    client = client_new(f, NULL, &options);
    asked.in_call = false;
    return client;
}

static int login(evlock_client *client, const char *user, const char *password) {
    int status;
    asked.in_call = true;
    status = evlock_client_login(client, 0, user, password);
    asked.in_call = false;
    return status;
}

/* A second password takes the place of the first. */
static void rotate(struct fixture *f, const char *from, const char *to) {
    server_do(f->server, "ACL SETUSER worker >%s <%s", to, from);
}

static int count_in(const char *text, const char *words) {
    int count = 0;
    for (; (text = strstr(text, words)); text++)
        count++;
    return count;
}

/* How many connections the server has whose line in its list says this. */
static int connections_with(struct fixture *f, const char *words) {
    redisReply *reply = server_command(f->server, "CLIENT LIST");
    int count = count_in(reply->str, words);
    freeReplyObject(reply);
    return count;
}

static void acquire_and_release(struct fixture *f) {
    evlock *lock = lock_new(f, "plain", NULL);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    assert_status(await_release(f, lock), EVLOCK_OK);
    lock_free(f, lock);
}

/* --- Answers ------------------------------------------------------------------------------------------------------ */

static void an_answer_inside_the_question_logs_in(void **state) {
    struct fixture *f = *state;
    evlock_client *client = asking_client(f, "one\0");
    await_connected(f, client);
    assert_int_equal(asked.count, 1);
    assert_int_equal(asked.early, 0);
    assert_ptr_equal(asked.client, client);
    assert_int_equal(asked.node, 0);
    assert_int_equal(connections_with(f, "user=worker"), 1);
    acquire_and_release(f);
    assert_int_equal(f->connection_states[EVLOCK_AWAY], 0);
}

/* Until then nothing is sent. */
static void an_answer_may_come_later(void **state) {
    struct fixture *f = *state;
    evlock_client *client = asking_client(f, NULL);
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(evlock_acquire(lock, NULL, record_end, &f->ended), EVLOCK_OK);
    await(f, asked.count == 1);
    run_for(f, 200);
    assert_int_equal(asked.count, 1);
    assert_int_equal(evlock_client_connection(client), EVLOCK_CONNECTING);
    assert_int_equal(connections_with(f, "cmd=NULL"), 1);
    assert_status(login(client, "worker", "one"), EVLOCK_OK);
    await(f, f->ended.count);
    assert_ended(&f->ended, EVLOCK_OK);
    assert_int_equal(asked.count, 1);
    assert_int_equal(connections_with(f, "user=worker"), 1);
}

/* Each attempt to connect asks anew. */
static void a_question_that_is_never_answered_ends_the_attempt(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = asking(f);
    options.connect_timeout_ms = 100;
    evlock_client *client = client_new(f, NULL, &options);
    await(f, f->away.count);
    assert_status(f->away.status, EVLOCK_EUNREACHABLE);
    assert_says(f->away.error, "no credentials within 100 ms");
    await(f, asked.count >= 3);
    answer_with("one\0");
    await_connected(f, client);
}

/* Once the attempt is over, the answer is for the next one, which then does not ask. */
static void a_late_answer_is_for_the_next_login(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = asking(f);
    options.connect_timeout_ms = 1000; /* also for that login, on a busy machine */
    evlock_client *client = client_new(f, NULL, &options);
    await(f, f->away.count);
    assert_int_equal(asked.count, 1);
    assert_status(login(client, "worker", "one"), EVLOCK_OK);
    await_connected(f, client);
    assert_int_equal(asked.count, 1);
}

static void refused_credentials_are_asked_for_once_more_at_once(void **state) {
    struct fixture *f = *state;
    evlock_client *client = asking_client(f, "wrong\0one\0");
    await_connected(f, client);
    assert_int_equal(asked.count, 2);
    acquire_and_release(f);
    answer_with("wrong\0one\0");
    server_do(f->server, "CLIENT KILL USER worker");
    await(f, stats_of(client).reconnects == 1);
    assert_int_equal(asked.count, 2); /* each login may be refused once */
    assert_int_equal(f->connection_states[EVLOCK_AWAY], 0);
    assert_int_equal(server_errors(f->server, "WRONGPASS") > 0, 1);
}

/* An acquire waits for better ones, unless it is not to wait for the server. */
static void credentials_that_are_refused_twice_make_the_node_away(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = asking(f);
    evlock_acquire_options fails = {.size = sizeof(evlock_acquire_options), .fail_when_away = EVLOCK_ON};
    struct record waits = {0};
    answer_with("wrong\0");
    options.backoff_max_ms = 2000;
    evlock_client *client = client_new(f, NULL, &options);
    assert_status(evlock_acquire(lock_new(f, "a", NULL), NULL, record_end, &waits), EVLOCK_OK);
    assert_status(await_acquire(f, lock_new(f, "b", NULL), &fails), EVLOCK_EAUTH);
    assert_says(f->ended.error, "WRONGPASS");
    assert_status(await_try(f, lock_new(f, "c", NULL)), EVLOCK_EAUTH);
    await(f, f->away.count);
    assert_status(f->away.status, EVLOCK_EAUTH);
    assert_int_equal(asked.count, 2);
    assert_null(strstr(f->log, "next try in 0 ms"));
    assert_int_equal(waits.count, 0);
    answer_with("one\0");
    await_connected(f, client);
    await(f, waits.count);
    assert_ended(&waits, EVLOCK_OK);
}

static void answer_twice(evlock_client *client, size_t node) {
    evlock_client_login(client, node, "worker", "one");
    evlock_client_login(client, node, "worker", "wrong");
}

/* The second is sent behind the first, and decides while the login goes on. */
static void the_last_of_two_answers_counts(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = asking(f);
    asked.then = answer_twice;
    evlock_client *client = client_new(f, NULL, &options);
    await(f, f->away.count);
    assert_status(f->away.status, EVLOCK_EAUTH);
    answer_with("one\0");
    await_connected(f, client);
}

static void answer_wrong_twice(evlock_client *client, size_t node) {
    evlock_client_login(client, node, "worker", "wrong");
    evlock_client_login(client, node, "worker", "as wrong");
}

/* Only what it asked for itself is asked for once more. */
static void a_second_answer_is_not_the_second_attempt(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = asking(f);
    options.backoff_max_ms = 2000;
    asked.then = answer_wrong_twice;
    client_new(f, NULL, &options);
    await(f, f->away.count);
    assert_status(f->away.status, EVLOCK_EAUTH);
    assert_int_equal(asked.count, 2);
}

static int asked_again;

static void ask_again(evlock_client *client, size_t node) {
    asked_again = evlock_client_login(client, node, NULL, NULL);
    evlock_client_login(client, node, "worker", "one");
}

/* The loop would never rest. */
static void a_question_is_not_answered_by_asking_anew(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = asking(f);
    evlock_client *client;
    asked.then = ask_again;
    client = client_new(f, NULL, &options);
    await_connected(f, client);
    assert_status(asked_again, EVLOCK_EINVAL);
    assert_int_equal(asked.count, 1);
    assert_status(login(client, NULL, NULL), EVLOCK_OK);
    await(f, asked.count == 2);
}

/* The options' user goes with a password that comes without one. */
static void an_answer_without_a_user_is_of_the_clients(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = asking(f);
    options.user = "worker";
    evlock_client *client = client_new(f, NULL, &options);
    await(f, asked.count);
    assert_status(login(client, NULL, "one"), EVLOCK_OK);
    await_connected(f, client);
    assert_int_equal(connections_with(f, "user=worker"), 1);
}

/* --- Without being asked ------------------------------------------------------------------------------------------ */

static evlock_client *worker_by_options(struct fixture *f) {
    evlock_client_options options = client_options(f);
    options.user = "worker";
    options.password = "one";
    options.backoff_max_ms = 200;
    return client_new(f, NULL, &options);
}

static void a_living_connection_logs_in_anew(void **state) {
    struct fixture *f = *state;
    evlock_client *client = asking_client(f, "one\0");
    await_connected(f, client);
    server_do(f->server, "ACL SETUSER second reset on >two ~* &* +@all");
    assert_status(login(client, "second", "two"), EVLOCK_OK);
    await(f, logged(f, "): logged in anew"));
    assert_int_equal(connections_with(f, "user=second"), 1);
    assert_int_equal(connections_with(f, "user=worker"), 0);
    acquire_and_release(f);
    assert_int_equal(stats_of(client).reconnects, 0);
    assert_int_equal(asked.count, 1);
    client_free(f, client);
    server_do(f->server, "ACL DELUSER second");
}

/* It is the same for the second connection, which waits for replicas. */
static void what_is_asked_for_anew_is_for_all_connections(void **state) {
    struct fixture *f = *state;
    evlock_options options = with_ttl(30000);
    evlock_client *client = asking_client(f, "one\0");
    options.min_replicas = 1;
    await_connected(f, client);
    lock_new(f, "a", &options);
    await(f, times_logged(f, "): connected") == 2);
    await(f, times_logged(f, "logged in anew") == 1); /* the first one, by what the second was answered */
    rotate(f, "one", "two");
    answer_with("two\0");
    assert_status(login(client, NULL, NULL), EVLOCK_OK);
    assert_int_equal(asked.count, 0);
    await(f, times_logged(f, "logged in anew") == 3);
    assert_int_equal(asked.count, 1);
    assert_int_equal(asked.early, 0);
    assert_int_equal(connections_with(f, "user=worker"), 2);

    /* Both wait for one answer. */
    answer_with(NULL);
    server_do(f->server, "CLIENT KILL USER worker");
    await(f, connections_with(f, "cmd=NULL") == 2);
    run_for(f, 20);
    assert_int_equal(asked.count, 1);
    assert_status(login(client, "worker", "two"), EVLOCK_OK);
    await(f, connections_with(f, "user=worker") == 2);
    await_connected(f, client);
    assert_int_equal(asked.count, 1);
}

static void a_connection_keeps_its_login_where_another_is_refused(void **state) {
    struct fixture *f = *state;
    evlock_node_info info;
    evlock_client *client = asking_client(f, "one\0");
    await_connected(f, client);
    assert_status(login(client, "worker", "wrong"), EVLOCK_OK);
    await(f, logged(f, "): keeps the login that it has: WRONGPASS"));
    acquire_and_release(f);
    assert_status(evlock_client_node(client, 0, &info, sizeof(info)), EVLOCK_OK);
    assert_int_equal(info.connection, EVLOCK_CONNECTED);
    assert_status(info.status, EVLOCK_OK);
    assert_int_equal(stats_of(client).reconnects, 0);
    assert_null(strstr(f->log, "wrong"));
}

/* They are not held back until the question that was wanted before is put and answered. */
static void those_given_while_others_are_asked_for_are_used(void **state) {
    struct fixture *f = *state;
    evlock_client *client = asking_client(f, "one\0");
    await_connected(f, client);
    rotate(f, "one", "two");
    answer_with(NULL);
    assert_status(login(client, NULL, NULL), EVLOCK_OK);
    assert_status(login(client, "worker", "two"), EVLOCK_OK);
    await(f, logged(f, "logged in anew") && asked.count == 1);
}

/* They take the place of the options', and stay. */
static void without_a_source_of_new_ones_those_given_are_kept(void **state) {
    struct fixture *f = *state;
    evlock_client *client = worker_by_options(f);
    await_connected(f, client);
    rotate(f, "one", "two");
    assert_status(login(client, NULL, "two"), EVLOCK_OK);
    await(f, logged(f, "logged in anew"));
    acquire_and_release(f);
    server_do(f->server, "CLIENT KILL USER worker");
    await(f, stats_of(client).reconnects == 1);
    assert_status(login(client, NULL, NULL), EVLOCK_OK);
    await(f, times_logged(f, "logged in anew") == 2);
    assert_int_equal(f->connection_states[EVLOCK_AWAY], 0);
}

/* While the connection is being made, and after the old ones were refused, too. */
static void those_given_on_the_way_are_used(void **state) {
    struct fixture *f = *state;
    rotate(f, "one", "two");
    evlock_client *client = worker_by_options(f);
    assert_status(login(client, NULL, "two"), EVLOCK_OK);
    await_connected(f, client);
    assert_int_equal(f->connection_states[EVLOCK_AWAY], 0);
    client_free(f, client);

    client = worker_by_options(f);
    await(f, f->away.count);
    assert_status(f->away.status, EVLOCK_EAUTH);
    assert_status(login(client, NULL, "two"), EVLOCK_OK);
    await_connected(f, client);
}

/* The same on the way back: what was sent there is refused, and followed by them. */
static void those_given_on_the_way_back_are_used(void **state) {
    struct fixture *f = *state;
    evlock_client *client = worker_by_options(f);
    await_connected(f, client);
    acquire_and_release(f);
    rotate(f, "one", "two");
    server_do(f->server, "CLIENT KILL USER worker");
    server_pause(f->server);
    await(f, evlock_client_connection(client) == EVLOCK_CONNECTING);
    run_for(f, 20); /* so that the old ones are on their way */
    assert_status(login(client, "worker", "two"), EVLOCK_OK);
    server_resume(f->server);
    await(f, stats_of(client).reconnects == 1);
    assert_int_equal(f->connection_states[EVLOCK_AWAY], 0);
}

enum { IN_FLIGHT = 1000 };

static void a_new_login_breaks_nothing_that_is_in_flight(void **state) {
    struct fixture *f = *state;
    static struct record records[IN_FLIGHT];
    evlock_client *client = asking_client(f, "one\0");
    evlock *lock = held(f, "a", NULL);
    memset(records, 0, sizeof(records));
    rotate(f, "one", "two");
    for (int i = 0; i < IN_FLIGHT; i++) {
        assert_status(evlock_query(lock, EVLOCK_QUERY_OWNED, record_answer, &records[i]), EVLOCK_OK);
        if (i % 250 == 125)
            assert_status(login(client, "worker", "two"), EVLOCK_OK);
    }
    for (int i = 0; i < IN_FLIGHT; i++) {
        await(f, records[i].count);
        assert_ended(&records[i], EVLOCK_OK);
        assert_true(records[i].answer.owned);
    }
    await(f, times_logged(f, "logged in anew") == IN_FLIGHT / 250);
    assert_int_equal(stats_of(client).reconnects, 0);
    assert_true(evlock_is_held(lock));
}

/* --- Under locks -------------------------------------------------------------------------------------------------- */

/* The channel of the only client that listens; NULL: none does. */
static char *channel_of(struct fixture *f) {
    redisReply *reply = server_command(f->server, "PUBSUB CHANNELS evlock:*");
    char *channel = reply->elements ? strdup(reply->element[0]->str) : NULL;
    freeReplyObject(reply);
    return channel;
}

static long long listeners_of(struct fixture *f, const char *channel) {
    redisReply *reply = server_command(f->server, "PUBSUB NUMSUB %s", channel);
    long long count = reply->element[1]->integer;
    freeReplyObject(reply);
    return count;
}

enum { WAITERS = 3 };

struct scene {
    evlock_client *client; /* the worker's; the holder of "a" is another's */
    evlock *renewed, *held, *holder, *waiters[WAITERS];
    struct record lost, ends[WAITERS];
    char *channel;
};

/* One lock that is renewed, one that is held, three handles in line. */
static void set_scene(struct fixture *f, struct scene *s, evlock_client *client) {
    evlock_client_options plain = client_options(f);
    evlock_options renewed = with_ttl(3000), line = patient(30000);
    renewed.auto_renewal = true;
    renewed.renewal_interval_ms = 100;
    renewed.on_lost = record_end;
    renewed.arg = &s->lost;
    memset(s, 0, sizeof(*s));
    s->client = client;
    await_connected(f, client);
    s->renewed = lock_new_on(f, client, "renewed", &renewed);
    assert_status(await_acquire(f, s->renewed, NULL), EVLOCK_OK);
    s->held = held(f, "held", NULL);
    s->holder = lock_new_on(f, client_new(f, NULL, &plain), "a", &line);
    assert_status(await_acquire(f, s->holder, NULL), EVLOCK_OK);
    for (int i = 0; i < WAITERS; i++)
        s->waiters[i] = joins(f, client, &line, &s->ends[i]);
    await(f, (s->channel = channel_of(f)));
}

/* Nothing was lost, each is in its place, and they are served in order. */
static void check_scene(struct fixture *f, struct scene *s) {
    uint64_t before = stats_of(s->client).renewals;
    evlock *next = s->holder;
    await(f, stats_of(s->client).renewals > before);
    assert_int_equal(s->lost.count, 0);
    assert_true(evlock_is_held(s->renewed) && evlock_is_held(s->held));
    assert_int_equal(waiting(f), WAITERS);
    for (int i = 0; i < WAITERS; i++)
        assert_int_equal(ask_place(f, s->waiters[i]), i + 1);
    for (int i = 0; i < WAITERS; i++) {
        assert_status(await_release(f, next), EVLOCK_OK);
        await(f, s->ends[i].count);
        assert_ended(&s->ends[i], EVLOCK_OK);
        next = s->waiters[i];
    }
    assert_status(await_release(f, next), EVLOCK_OK);
    free(s->channel);
}

/* The server ends all connections of the user. */
static void a_password_is_rotated_under_locks(void **state) {
    struct fixture *f = *state;
    struct scene s;
    set_scene(f, &s, asking_client(f, "one\0"));
    rotate(f, "one", "two");
    answer_with("two\0");
    server_do(f->server, "CLIENT KILL USER worker");
    await(f, stats_of(s.client).reconnects == 1 && listeners_of(f, s.channel) == 1);
    assert_int_equal(f->connection_states[EVLOCK_AWAY], 0);
    check_scene(f, &s);
}

/* The answer is not there before the second attempt. */
static void a_password_that_comes_late_loses_no_lock(void **state) {
    struct fixture *f = *state;
    struct scene s;
    set_scene(f, &s, asking_client(f, "one\0"));
    rotate(f, "one", "two");
    server_do(f->server, "CLIENT KILL USER worker"); /* the old one is answered, and refused */
    await(f, f->away.count);
    assert_status(f->away.status, EVLOCK_EAUTH);
    answer_with("two\0");
    await(f, stats_of(s.client).reconnects == 1 && listeners_of(f, s.channel) == 1);
    check_scene(f, &s);
}

/* Which connection listens: its number on the server. */
static long long listener_id(struct fixture *f) {
    redisReply *reply = server_command(f->server, "CLIENT LIST TYPE pubsub");
    const char *at = strstr(reply->str, "id=");
    long long id = at ? atoll(at + 3) : 0;
    freeReplyObject(reply);
    return id;
}

/* At no time nobody listens. */
static void who_listens_is_replaced_before_it_ends(void **state) {
    struct fixture *f = *state;
    struct scene s;
    long long before;
    set_scene(f, &s, asking_client(f, "one\0"));
    rotate(f, "one", "two");
    answer_with("wrong\0");
    for (int i = 0; i < 3; i++) {
        before = listener_id(f);
        assert_status(login(s.client, "worker", "two"), EVLOCK_OK);
        assert_status(login(s.client, "worker", "two"), EVLOCK_OK);
        await(f, listeners_of(f, s.channel) > 0 && listener_id(f) != before && listeners_of(f, s.channel) == 1);
    }
    assert_int_equal(asked.count, 0);
    assert_int_equal(stats_of(s.client).reconnects, 0);
    check_scene(f, &s);
    assert_int_equal(stats_of(s.client).handed, WAITERS);
}

static bool listens_as(struct fixture *f, const char *user) {
    redisReply *reply = server_command(f->server, "CLIENT LIST TYPE pubsub");
    bool only = strstr(reply->str, user) && count_in(reply->str, "id=") == 1;
    freeReplyObject(reply);
    return only;
}

/* However far the last replacement is on its way. */
static void who_listens_is_who_logged_in_last(void **state) {
    struct fixture *f = *state;
    struct scene s;
    set_scene(f, &s, asking_client(f, "one\0"));
    server_do(f->server, "ACL SETUSER second reset on >two ~* &* +@all");
    for (int turns = 0; turns < 16; turns++) {
        long long before = listener_id(f);
        assert_status(login(s.client, "worker", "one"), EVLOCK_OK);
        for (int i = 0; i < turns; i++)
            loop_turn(f->loop);
        assert_status(login(s.client, "second", "two"), EVLOCK_OK);
        await(f, listener_id(f) != before && listens_as(f, "user=second") && connections_with(f, "user=second") == 2);
    }
    assert_int_equal(stats_of(s.client).reconnects, 0);
    check_scene(f, &s);
    client_free(f, s.client);
    server_do(f->server, "ACL DELUSER second");
}

/* The old one goes on for as long as the new one is refused. */
static void who_listens_stays_while_its_successor_is_refused(void **state) {
    struct fixture *f = *state;
    struct scene s;
    set_scene(f, &s, asking_client(f, "one\0"));
    rotate(f, "one", "two");
    answer_with("wrong\0");
    assert_status(login(s.client, "worker", "wrong"), EVLOCK_OK);
    await(f, asked.count == 3); /* of its second attempt, too */
    assert_int_equal(listeners_of(f, s.channel), 1);
    check_scene(f, &s);
    assert_int_equal(f->connection_states[EVLOCK_AWAY], 0);
}

/* --- The end ------------------------------------------------------------------------------------------------------ */

static void a_client_may_go_while_it_waits_for_an_answer(void **state) {
    struct fixture *f = *state;
    evlock_client *client = asking_client(f, NULL);
    await(f, asked.count == 1);
    client_free(f, client);
    run_for(f, 50);
    assert_int_equal(asked.count, 1);
    client = asking_client(f, NULL); /* before it is asked */
    client_free(f, client);
    run_for(f, 50);
    assert_int_equal(asked.count, 0);
}

static struct fixture *going;

static void free_there(evlock_client *client, size_t node) {
    (void)node;
    client_free(going, client);
}

static void a_client_may_be_freed_inside_a_question(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = asking(f);
    asked.then = free_there;
    going = f;
    client_new(f, NULL, &options);
    await(f, asked.count == 1);
    run_for(f, 50);
    assert_int_equal(asked.count, 1);
}

/* What is held is released by a login that is asked for while the client closes. */
static void a_client_that_closes_asks_for_what_it_has_to_release(void **state) {
    struct fixture *f = *state;
    evlock_client *client = asking_client(f, "one\0");
    held(f, "a", NULL);
    answer_with(NULL);
    server_do(f->server, "CLIENT KILL USER worker");
    struct record closed = {0};
    client_forget(f, client);
    assert_status(evlock_client_close(client, record_closed, &closed), EVLOCK_OK);
    await(f, asked.count == 1);
    assert_int_equal(closed.count, 0);
    assert_status(login(client, "worker", "one"), EVLOCK_OK);
    await(f, closed.count);
    assert_status(closed.status, EVLOCK_OK);
    assert_false(key_exists(f->server, "a"));
}

static void a_close_does_not_wait_for_an_answer_when_nothing_is_held(void **state) {
    struct fixture *f = *state;
    evlock_client *client = asking_client(f, NULL);
    await(f, asked.count == 1);
    assert_status(await_close(f, client), EVLOCK_OK);
}

/* --- Elsewhere ---------------------------------------------------------------------------------------------------- */

static int login_in_child(void *arg) {
    struct fixture *f = arg;
    if (evlock_client_login(f->client, 0, "worker", "one") != EVLOCK_EFORKED)
        return 1;
    if (evlock_client_login(f->client, EVLOCK_ALL_NODES, NULL, NULL) != EVLOCK_EFORKED)
        return 2;
    evlock_client_free(f->client);
    return 0;
}

static void a_child_logs_in_nowhere(void **state) {
    struct fixture *f = *state;
    evlock_client *client = asking_client(f, NULL);
    await(f, asked.count == 1);
    assert_int_equal(in_child(login_in_child, f), 0);
    assert_status(login(client, "worker", "one"), EVLOCK_OK);
    await_connected(f, client);
}

static void log_in_by_post(evlock_client *client, void *arg) {
    evlock_client_login(client, EVLOCK_ALL_NODES, "worker", arg);
}

static void *fetch(void *arg) {
    static char password[] = "one";
    if (evlock_client_login(arg, 0, "worker", password) != EVLOCK_ETHREAD)
        return arg;
    return evlock_client_post(arg, log_in_by_post, password) == EVLOCK_OK ? NULL : arg;
}

/* As one that asks a service for a token. */
static void another_thread_hands_credentials_over(void **state) {
    struct fixture *f = *state;
    evlock_client *client = asking_client(f, NULL);
    pthread_t thread;
    void *failed;
    await(f, asked.count == 1);
    assert_int_equal(pthread_create(&thread, NULL, fetch, client), 0);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    await_connected(f, client);
}

/* --- Files -------------------------------------------------------------------------------------------------------- */

static char path[128];

static void write_file(const char *text, size_t len) {
    char next[144];
    snprintf(next, sizeof(next), "%s.next", path);
    int file = open(next, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, len), len);
    close(file);
    assert_int_equal(rename(next, path), 0);
}

#define FILE_OF(text) write_file((text), strlen(text))

static evlock_client_options by_file(struct fixture *f) {
    evlock_client_options options = client_options(f);
    snprintf(path, sizeof(path), "%s/password", f->server->folder);
    options.user = "worker";
    options.password_file = path;
    options.backoff_max_ms = 200;
    return options;
}

static void a_password_is_read_from_a_file_at_each_login(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = by_file(f);
    struct scene s;
    FILE_OF("one\nand nothing else\n");
    set_scene(f, &s, client_new(f, NULL, &options));
    FILE_OF("two");
    rotate(f, "one", "two");
    server_do(f->server, "CLIENT KILL USER worker");
    await(f, stats_of(s.client).reconnects == 1 && listeners_of(f, s.channel) == 1);
    rotate(f, "two", "three");
    FILE_OF("three\n");
    long long before = listener_id(f);
    assert_status(login(s.client, NULL, NULL), EVLOCK_OK);
    await(f, logged(f, "logged in anew") && listener_id(f) != before && listeners_of(f, s.channel) == 1);
    assert_int_equal(stats_of(s.client).reconnects, 1);
    check_scene(f, &s);
    unlink(path);
}

static void a_file_that_is_gone_is_waited_for(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = by_file(f);
    struct record waits = {0};
    FILE_OF("one");
    evlock_client *client = client_new(f, NULL, &options);
    await_connected(f, client);
    unlink(path);
    assert_status(login(client, NULL, NULL), EVLOCK_EFILE);
    assert_says(evlock_last_error(), "cannot be read: No such file");
    acquire_and_release(f);
    server_do(f->server, "CLIENT KILL USER worker");
    await(f, f->away.count);
    assert_status(f->away.status, EVLOCK_EAUTH);
    assert_says(f->away.error, "cannot be read: No such file");
    assert_status(evlock_acquire(lock_new(f, "a", NULL), NULL, record_end, &waits), EVLOCK_OK);
    FILE_OF("");
    await(f, strstr(f->away.error, "is empty"));
    assert_int_equal(waits.count, 0);
    FILE_OF("one");
    await(f, waits.count);
    assert_ended(&waits, EVLOCK_OK);
    unlink(path);
}

/* It may have been replaced while it was read. */
static void a_file_is_read_once_more_when_its_password_is_refused(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = by_file(f);
    FILE_OF("wrong");
    server_do(f->server, "CONFIG RESETSTAT");
    evlock_client *client = client_new(f, NULL, &options);
    await(f, f->away.count);
    assert_status(f->away.status, EVLOCK_EAUTH);
    assert_says(f->away.error, "WRONGPASS");
    assert_int_equal(server_calls(f->server, "auth"), 2);
    FILE_OF("one");
    await_connected(f, client);
    unlink(path);
}

/* It is not read again for that, and the status is not that of a wrong password. */
static void a_password_that_is_refused_for_now_is_not_wrong(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = by_file(f);
    FILE_OF("one");
    relay_start(&f->relay, f->server);
    evlock_client *client = client_new(f, f->relay.url, &options);
    await(f, relay_say(&f->relay, "-LOADING Redis is loading the dataset in memory\r\n"));
    await(f, f->away.count);
    assert_status(f->away.status, EVLOCK_EREFUSED);
    assert_says(f->away.error, "LOADING");
    relay_hang_up(&f->relay);
    await(f, relay_pump(&f->relay) && evlock_client_connection(client) == EVLOCK_CONNECTED);
    client_free(f, client);
    unlink(path);
}

static void refuses(struct fixture *f, const char *url, const evlock_client_options *options, int status,
                    const char *words) {
    evlock_client *client = NULL;
    assert_status(evlock_client_new(&client, loop_for_evlock(f->loop), url, options), status);
    assert_says(evlock_last_error(), words);
    assert_null(client);
}

static void a_file_without_a_password_is_refused(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = by_file(f);
    char *text = malloc(65537);
    memset(text, 'x', 65537);
    refuses(f, f->server->url, &options, EVLOCK_EFILE, "cannot be read: No such file");
    FILE_OF("");
    refuses(f, f->server->url, &options, EVLOCK_EFILE, "is empty");
    FILE_OF("\none");
    refuses(f, f->server->url, &options, EVLOCK_EFILE, "first line is empty");
    write_file("o\0e\n", 4);
    refuses(f, f->server->url, &options, EVLOCK_EFILE, "NUL");
    write_file(text, 65537);
    refuses(f, f->server->url, &options, EVLOCK_EFILE, "longer than 64 KiB");
    text[65536] = '\n';
    write_file(text, 65537);
    evlock_client *client = client_new(f, NULL, &options);
    await(f, f->away.count);
    assert_status(f->away.status, EVLOCK_EAUTH);
    client_free(f, client);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0); /* nobody writes to it, which is not waited for */
    refuses(f, f->server->url, &options, EVLOCK_EFILE, "is empty");
    options.password_file = f->server->folder;
    refuses(f, f->server->url, &options, EVLOCK_EFILE, "Is a directory");
    free(text);
    unlink(path);
}

/* --- Bad input ---------------------------------------------------------------------------------------------------- */

static void sources_exclude_each_other(void **state) {
    struct fixture *f = *state;
    static const char by_url[] = "redis://worker:one@127.0.0.1";
    static const char words[] = "exclude";
    evlock_client_options options = asking(f);
    refuses(f, by_url, &options, EVLOCK_EINVAL, words);
    options.password = "one";
    refuses(f, f->server->url, &options, EVLOCK_EINVAL, words);
    options.password = NULL;
    options.password_file = "/nowhere";
    refuses(f, f->server->url, &options, EVLOCK_EINVAL, words);
    options.on_login = NULL;
    refuses(f, by_url, &options, EVLOCK_EINVAL, words);
    options.password = "one";
    refuses(f, f->server->url, &options, EVLOCK_EINVAL, words);
}

static void what_is_no_login_is_refused(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = client_options(f);
    options.user = "worker";
    refuses(f, f->server->url, &options, EVLOCK_EINVAL, "a user needs a password");
    evlock_client *client = client_new(f, NULL, NULL);
    await_connected(f, client);
    assert_status(evlock_client_login(NULL, 0, NULL, "one"), EVLOCK_EINVAL);
    assert_status(evlock_client_login(client, 1, NULL, "one"), EVLOCK_EINVAL);
    assert_says(evlock_last_error(), "no such node");
    assert_status(evlock_client_login(client, 0, "worker", NULL), EVLOCK_EINVAL);
    assert_says(evlock_last_error(), "a user needs a password");
    assert_status(evlock_client_login(client, EVLOCK_ALL_NODES, NULL, NULL), EVLOCK_EINVAL);
    assert_says(evlock_last_error(), "nothing to log in with");
    assert_status(evlock_client_login(client, EVLOCK_ALL_NODES, "worker", "one"), EVLOCK_OK);
    await(f, logged(f, "logged in anew"));
    assert_int_equal(connections_with(f, "user=worker"), 1);
}

/* --- Memory ------------------------------------------------------------------------------------------------------- */

/* What the password is, is nowhere in this program: it is made in a page that no core dump has. */
enum { SECRET_LEN = 32 };
static const char hash[] = "#2d59d95f5613a330663c64f7414efcaca59fad301bc9936347e3e6f418a1e5a0";

/* A compiler that knew the numbers would work the password out, and have it in the program. */
static char *make_secret(void) {
    volatile int step = 37;
    char *secret = mmap(NULL, SECRET_LEN + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(secret, MAP_FAILED);
    assert_int_equal(madvise(secret, SECRET_LEN + 1, MADV_DONTDUMP), 0);
    for (int i = 0; i < SECRET_LEN; i++)
        secret[i] = (char)('!' + (i * step + 11) % 90);
    return secret;
}

struct area {
    unsigned long begin, end;
    bool readable;
    bool dumped;
};

/* The next area of this process's memory; false: there is none. */
static bool next_area(FILE *smaps, struct area *area) {
    char line[512], rights[8], *flags;
    unsigned long begin, end;
    bool found = false;
    while (fgets(line, sizeof(line), smaps)) {
        if (sscanf(line, "%lx-%lx %4s", &begin, &end, rights) == 3) {
            *area = (struct area){begin, end, rights[0] == 'r', false};
            found = true;
        } else if (found && (flags = strstr(line, "VmFlags:"))) {
            area->dumped = !strstr(flags, " dd");
            return true;
        }
    }
    return false;
}

static bool has_secret(int memory, const struct area *area, const char *secret, char *room) {
    size_t len = area->end - area->begin;
    ssize_t count = len > (64U << 20) ? -1 : pread(memory, room, len, (off_t)area->begin);
    return count > 0 && memmem(room, (size_t)count, secret, SECRET_LEN);
}

/* How many areas have it: those that a core dump would have, and those that it would not. */
static void count_areas(const char *secret, int *ret_dumped, int *ret_kept_out) {
    FILE *smaps = fopen("/proc/self/smaps", "r");
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    char *room = mmap(NULL, 64U << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct area area;
    assert_non_null(smaps);
    assert_true(memory >= 0);
    *ret_dumped = *ret_kept_out = 0;
    while (next_area(smaps, &area)) {
        if (!area.readable || (char *)area.begin == room || !has_secret(memory, &area, secret, room))
            continue;
        ++*(area.dumped ? ret_dumped : ret_kept_out);
    }
    munmap(room, 64U << 20);
    close(memory);
    fclose(smaps);
}

static int count_in_child(void *secret) {
    int dumped, kept_out;
    count_areas(secret, &dumped, &kept_out);
    return 10 * kept_out + dumped;
}

static const char *secret_password;

static void answer_with_secret(evlock_client *client, size_t node) {
    evlock_client_login(client, node, "worker", secret_password);
}

static void no_password_is_in_a_core_dump(void **state) {
    struct fixture *f = *state;
    char *secret = make_secret();
    int dumped, kept_out;
    server_do(f->server, "ACL SETUSER worker reset on %s ~* &* +@all", hash);
    secret_password = secret;

    /* Asked for, it is kept nowhere. */
    evlock_client_options options = asking(f);
    asked.then = answer_with_secret;
    evlock_client *client = client_new(f, NULL, &options);
    await_connected(f, client);
    count_areas(secret, &dumped, &kept_out);
    assert_int_equal(dumped, 0);
    assert_int_equal(kept_out, 1); /* ours */
    assert_status(login(client, "worker", secret), EVLOCK_OK);
    await(f, logged(f, "logged in anew"));
    count_areas(secret, &dumped, &kept_out);
    assert_int_equal(dumped, 0);
    assert_int_equal(kept_out, 1);
    client_free(f, client);

    /* By the options, it is kept where no core dump has it. */
    options = client_options(f);
    options.user = "worker";
    options.password = secret;
    client = client_new(f, NULL, &options);
    await_connected(f, client);
    count_areas(secret, &dumped, &kept_out);
    assert_int_equal(dumped, 0);
    assert_int_equal(kept_out, 2);
    assert_int_equal(in_child(count_in_child, secret), 10); /* ours */
    assert_status(evlock_acquire(lock_new(f, "a", NULL), NULL, record_end, &f->ended), EVLOCK_OK);
    client_free(f, client); /* whose last callback is still to come */
    count_areas(secret, &dumped, &kept_out);
    assert_int_equal(dumped, 0);
    assert_int_equal(kept_out, 1);
    await(f, f->ended.count);
    munmap(secret, SECRET_LEN + 1);
}

/* --- Several nodes ------------------------------------------------------------------------------------------------ */

enum { NODES = 3 };

static struct server others[NODES - 1];
static char node_passwords[NODES][16];

static int tear_down_nodes(void **state) {
    int failed = tear_down(state);
    for (int i = 0; i < NODES - 1; i++)
        server_stop(&others[i]);
    return failed;
}

static void answer_for_node(evlock_client *client, size_t node) {
    evlock_client_login(client, node, NULL, node_passwords[node]);
}

static struct server *server_of(struct fixture *f, int node) {
    return node ? &others[node - 1] : f->server;
}

static void set_node_password(struct fixture *f, int node, const char *word) {
    snprintf(node_passwords[node], sizeof(node_passwords[node]), "%s%d", word, node);
    server_do(server_of(f, node), "ACL SETUSER worker reset on >%s ~* &* +@all", node_passwords[node]);
}

static void nodes_have_credentials_of_their_own(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = asking(f);
    evlock_options terms = with_ttl(5000);
    struct record lost = {0};
    char url[512];
    for (int i = 0; i < NODES - 1; i++)
        server_start(&others[i], true, NULL);
    for (int i = 0; i < NODES; i++)
        set_node_password(f, i, "old");
    snprintf(url, sizeof(url), "quorum:%s %s %s", f->server->url, others[0].url, others[1].url);
    options.user = "worker";
    options.durable = true;
    asked.then = answer_for_node;
    evlock_client *client = client_new(f, url, &options);
    terms.auto_renewal = true;
    terms.renewal_interval_ms = 100;
    terms.on_lost = record_end;
    terms.arg = &lost;
    evlock *lock = lock_new(f, "a", &terms);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    for (int i = 0; i < NODES; i++) {
        await(f, evlock_keepers(lock) == NODES);
        assert_int_equal(asked.by_node[i], 1);
        set_node_password(f, i, "new");
        server_do(server_of(f, i), "CLIENT KILL USER worker");
        await(f, asked.by_node[i] == 2);
        await(f, stats_of(client).reconnects == (uint64_t)i + 1);
    }
    for (int i = 0; i < NODES; i++)
        set_node_password(f, i, "newer");
    assert_status(evlock_client_login(client, EVLOCK_ALL_NODES, NULL, NULL), EVLOCK_OK);
    await(f, times_logged(f, "logged in anew") == NODES);
    assert_int_equal(asked.by_node[1], 3);
    assert_int_equal(stats_of(client).reconnects, NODES);
    assert_int_equal(lost.count, 0);
    assert_true(evlock_is_held(lock));
    client_free(f, client);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        CREDENTIALS_TEST(an_answer_inside_the_question_logs_in),
        CREDENTIALS_TEST(an_answer_may_come_later),
        CREDENTIALS_TEST(a_question_that_is_never_answered_ends_the_attempt),
        CREDENTIALS_TEST(a_late_answer_is_for_the_next_login),
        CREDENTIALS_TEST(refused_credentials_are_asked_for_once_more_at_once),
        CREDENTIALS_TEST(credentials_that_are_refused_twice_make_the_node_away),
        CREDENTIALS_TEST(the_last_of_two_answers_counts),
        CREDENTIALS_TEST(a_second_answer_is_not_the_second_attempt),
        CREDENTIALS_TEST(a_question_is_not_answered_by_asking_anew),
        CREDENTIALS_TEST(an_answer_without_a_user_is_of_the_clients),
        CREDENTIALS_TEST(a_living_connection_logs_in_anew),
        CREDENTIALS_TEST(what_is_asked_for_anew_is_for_all_connections),
        CREDENTIALS_TEST(a_connection_keeps_its_login_where_another_is_refused),
        CREDENTIALS_TEST(those_given_while_others_are_asked_for_are_used),
        CREDENTIALS_TEST(without_a_source_of_new_ones_those_given_are_kept),
        CREDENTIALS_TEST(those_given_on_the_way_are_used),
        CREDENTIALS_TEST(those_given_on_the_way_back_are_used),
        CREDENTIALS_TEST(a_new_login_breaks_nothing_that_is_in_flight),
        CREDENTIALS_TEST(a_password_is_rotated_under_locks),
        CREDENTIALS_TEST(a_password_that_comes_late_loses_no_lock),
        CREDENTIALS_TEST(who_listens_is_replaced_before_it_ends),
        CREDENTIALS_TEST(who_listens_is_who_logged_in_last),
        CREDENTIALS_TEST(who_listens_stays_while_its_successor_is_refused),
        CREDENTIALS_TEST(a_client_may_go_while_it_waits_for_an_answer),
        CREDENTIALS_TEST(a_client_may_be_freed_inside_a_question),
        CREDENTIALS_TEST(a_client_that_closes_asks_for_what_it_has_to_release),
        CREDENTIALS_TEST(a_close_does_not_wait_for_an_answer_when_nothing_is_held),
        CREDENTIALS_TEST(a_child_logs_in_nowhere),
        CREDENTIALS_TEST(another_thread_hands_credentials_over),
        CREDENTIALS_TEST(a_password_is_read_from_a_file_at_each_login),
        CREDENTIALS_TEST(a_file_that_is_gone_is_waited_for),
        CREDENTIALS_TEST(a_file_is_read_once_more_when_its_password_is_refused),
        CREDENTIALS_TEST(a_password_that_is_refused_for_now_is_not_wrong),
        CREDENTIALS_TEST(a_file_without_a_password_is_refused),
        CREDENTIALS_TEST(sources_exclude_each_other),
        CREDENTIALS_TEST(what_is_no_login_is_refused),
        CREDENTIALS_TEST(no_password_is_in_a_core_dump),
        cmocka_unit_test_setup_teardown(nodes_have_credentials_of_their_own, set_up, tear_down_nodes),
    };
    return run_suite("credentials", tests);
}
