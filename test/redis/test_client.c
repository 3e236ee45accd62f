/*
 * The client, on a real server: its URLs, its connection, its two ends, and its log. Each test is named after the
 * behaviour that it shows.
 */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static evlock *held(struct fixture *f, const char *name) {
    evlock *lock = lock_new(f, name, NULL);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    return lock;
}

/* --- URLs --------------------------------------------------------------------------------------------------------- */

/* A client with this URL locks in that database. */
static void url_works(struct fixture *f, const char *url, int db) {
    evlock_client_options plain = plain_client_options(f);
    evlock_client *client = client_new(f, url, strncmp(url, "unix:", 5) == 0 ? &plain : NULL);
    evlock *lock = lock_new_on(f, client, "a", NULL);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    server_do(f->server, "SELECT %d", db);
    assert_true(key_exists(f->server, "a"));
    assert_status(await_release(f, lock), EVLOCK_OK);
    assert_false(key_exists(f->server, "a"));
    server_do(f->server, "SELECT 0");
    lock_free(f, lock);
    client_free(f, client);
}

static void a_unix_socket(void **state) {
    struct fixture *f = *state;
    char url[256];
    url_works(f, f->server->socket_url, 0);
    snprintf(url, sizeof(url), "%s?db=3", f->server->socket_url);
    url_works(f, url, 3);
}

static void a_path_in_percents(void **state) {
    struct fixture *f = *state;
    char url[512] = "unix://";
    for (size_t i = 0; f->server->socket[i]; i++)
        snprintf(url + strlen(url), 8, i ? "%%%02x" : "/", (unsigned char)f->server->socket[i]);
    url_works(f, url, 0);
}

static void an_ipv4_address(void **state) {
    struct fixture *f = *state;
    char url[128];
    url_works(f, f->server->tcp_url, 0);
    snprintf(url, sizeof(url), "%s://127.0.0.1:%d/1", server_scheme(), f->server->port);
    url_works(f, url, 1);
    snprintf(url, sizeof(url), "%s://127.0.0.1:%d/", server_scheme(), f->server->port);
    url_works(f, url, 0);
}

static void an_ipv6_address(void **state) {
    struct fixture *f = *state;
    char url[128];
    if (!f->server->ipv6)
        skip();
    snprintf(url, sizeof(url), "%s://[::1]:%d", server_scheme(), f->server->port);
    url_works(f, url, 0);
    snprintf(url, sizeof(url), "%s://[::1]:%d/2", server_scheme(), f->server->port);
    url_works(f, url, 2);
}

static void a_host_name(void **state) {
    struct fixture *f = *state;
    char url[128];
    snprintf(url, sizeof(url), "%s://localhost:%d", server_scheme(), f->server->port);
    url_works(f, url, 0);
}

static void a_name_without_address(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = client_options(f);
    options.connect_timeout_ms = 1000;
    char url[64];
    snprintf(url, sizeof(url), "%s://no-such-host.invalid", server_scheme());
    client_new(f, url, &options);
    await(f, f->away.count);
    assert_status(f->away.status, EVLOCK_EUNREACHABLE);
    assert_string_not_equal(f->away.error, "");
}

/* --- Who logs in -------------------------------------------------------------------------------------------------- */

static void add_alice(struct fixture *f) {
    server_do(f->server, "ACL SETUSER alice on >s3:cret@/ ~* +@all");
}

static int remove_alice(void **state) {
    server_do(&suite_server, "ACL DELUSER alice");
    server_do(&suite_server, "CONFIG SET requirepass %s", "");
    return fixture_teardown(state);
}

#define TEST_LOGIN(function) cmocka_unit_test_setup_teardown(function, fixture_setup_bare, remove_alice)

static void assert_logged_in(struct fixture *f, const char *user) {
    char wanted[64];
    redisReply *reply = server_command(f->server, "CLIENT LIST");
    snprintf(wanted, sizeof(wanted), " user=%s ", user);
    bool found = strstr(reply->str, wanted) != NULL;
    freeReplyObject(reply);
    assert_true(found);
}

static void a_user_and_password_by_url(void **state) {
    struct fixture *f = *state;
    char url[128];
    add_alice(f);
    snprintf(url, sizeof(url), "%s://alice:s3%%3Acret%%40%%2F@127.0.0.1:%d", server_scheme(), f->server->port);
    client_new(f, url, NULL);
    held(f, "a");
    assert_logged_in(f, "alice");
}

static void a_user_and_password_by_option(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = client_options(f);
    add_alice(f);
    options.user = "alice";
    options.password = "s3:cret@/";
    client_new(f, NULL, &options);
    held(f, "a");
    assert_logged_in(f, "alice");
}

static void options_win_over_the_url(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = client_options(f);
    char url[128];
    add_alice(f);
    options.user = "alice";
    options.password = "s3:cret@/";
    snprintf(url, sizeof(url), "%s://bob:wrong@127.0.0.1:%d", server_scheme(), f->server->port);
    client_new(f, url, &options);
    held(f, "a");
    assert_logged_in(f, "alice");
}

static void a_password_alone_is_the_default_users(void **state) {
    struct fixture *f = *state;
    char url[128];
    server_do(f->server, "CONFIG SET requirepass letmein");
    snprintf(url, sizeof(url), "%s://:letmein@127.0.0.1:%d", server_scheme(), f->server->port);
    client_new(f, url, NULL);
    held(f, "a");
}

static void wrong_credentials_are_told(struct fixture *f, const char *user, const char *password) {
    evlock_client_options options = client_options(f);
    options.user = user;
    options.password = password;
    f->away = (struct record){0};
    evlock_client *client = client_new(f, NULL, &options);
    evlock *lock = lock_new_on(f, client, "a", NULL);
    /* at once, also where the acquire would wait without limit */
    assert_status(await_acquire(f, lock, NULL), EVLOCK_EAUTH);
    await(f, f->away.count);
    assert_status(f->away.status, EVLOCK_EAUTH);
    assert_string_not_equal(f->away.error, "");
    client_free(f, client);
}

static void a_refused_login_is_told(void **state) {
    struct fixture *f = *state;
    add_alice(f);
    wrong_credentials_are_told(f, "alice", "wr0ng");
    wrong_credentials_are_told(f, "nobody", "wr0ng");
    server_do(f->server, "CONFIG SET requirepass letmein");
    wrong_credentials_are_told(f, NULL, NULL);
    wrong_credentials_are_told(f, NULL, "wr0ng");
    assert_null(strstr(f->log, "wr0ng"));
}

/* --- The connection ----------------------------------------------------------------------------------------------- */

static void a_connection_is_told(void **state) {
    struct fixture *f = *state;
    evlock_client *client = client_new(f, NULL, NULL);
    assert_int_not_equal(evlock_client_connection(client), EVLOCK_CONNECTED);
    assert_int_equal(f->connection_states[EVLOCK_CONNECTED], 0);
    await(f, f->connection_states[EVLOCK_CONNECTED]);
    assert_int_equal(f->connection.value, EVLOCK_CONNECTED);
    assert_status(f->connection.status, EVLOCK_OK);
    assert_ptr_equal(f->connection.object, client);
    assert_int_equal(evlock_client_connection(client), EVLOCK_CONNECTED);
}

static void a_lost_connection_comes_back(void **state) {
    struct fixture *f = *state;
    evlock_client *client = client_new(f, NULL, NULL);
    evlock_stats stats;
    await_connected(f, client);
    for (int i = 1; i <= 3; i++) {
        server_do(f->server, "CLIENT KILL TYPE normal");
        await(f, f->connection_states[EVLOCK_CONNECTED] == i + 1);
        assert_status(evlock_client_stats(client, &stats, sizeof(stats)), EVLOCK_OK);
        assert_int_equal(stats.reconnects, i);
    }
    held(f, "a");
}

static void a_server_that_comes_later_is_found(void **state) {
    struct fixture *f = *state;
    server_kill9(f->server);
    evlock_client *client = client_new(f, NULL, NULL);
    evlock *lock = lock_new(f, "a", NULL);
    assert_status(evlock_acquire(lock, NULL, record_end, &f->ended), EVLOCK_OK);
    await(f, f->connection_states[EVLOCK_AWAY]);
    run_for(f, 200);
    assert_int_not_equal(evlock_client_connection(client), EVLOCK_CONNECTED);
    assert_int_equal(f->ended.count, 0);
    server_restart(f->server);
    await_connected(f, client);
    await(f, f->ended.count);
    assert_ended(&f->ended, EVLOCK_OK);
}

static void a_try_without_a_server_is_answered(void **state) {
    struct fixture *f = *state;
    server_kill9(f->server);
    client_new(f, NULL, NULL);
    evlock *lock = lock_new(f, "a", NULL);
    /* the first while the client connects, the second when it knows better */
    for (int i = 0; i < 2; i++) {
        assert_status(await_try(f, lock), EVLOCK_EUNREACHABLE);
        assert_string_not_equal(f->ended.error, "");
    }
    evlock_acquire_options wait = {.size = sizeof(evlock_acquire_options)};
    wait.max_wait_ms = 200;
    assert_status(await_acquire(f, lock, &wait), EVLOCK_ETIMEDOUT);
    assert_string_not_equal(f->ended.error, "");
}

static void a_silent_server_is_left_after_the_command_timeout(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = client_options(f);
    options.command_timeout_ms = 200;
    evlock_client *client = client_new(f, NULL, &options);
    await_connected(f, client);
    server_pause(f->server);
    /* nothing was asked, so nothing is overdue */
    run_for(f, 600);
    assert_int_equal(evlock_client_connection(client), EVLOCK_CONNECTED);
    assert_status(await_query(f, lock_new(f, "a", NULL), EVLOCK_QUERY_LOCKED), EVLOCK_EUNREACHABLE);
    await(f, evlock_client_connection(client) != EVLOCK_CONNECTED);
    server_resume(f->server);
    await_connected(f, client);
}

static void a_silent_server_is_left_after_the_connect_timeout(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = client_options(f);
    options.connect_timeout_ms = 200;
    server_pause(f->server);
    evlock_client *client = client_new(f, NULL, &options);
    await(f, f->connection_states[EVLOCK_AWAY] >= 2);
    server_resume(f->server);
    await_connected(f, client);
}

static void the_pause_before_connecting_again_is_the_users(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = client_options(f);
    options.backoff_min_ms = options.backoff_max_ms = 60 * 60 * 1000;
    evlock_client *client = client_new(f, NULL, &options);
    await_connected(f, client);
    server_kill9(f->server);
    await(f, f->connection_states[EVLOCK_AWAY] == 1);
    server_restart(f->server);
    run_for(f, 500);
    assert_int_equal(evlock_client_connection(client), EVLOCK_AWAY);
    assert_int_equal(f->connection_states[EVLOCK_CONNECTED], 1);
}

/* --- Closing ------------------------------------------------------------------------------------------------------ */

static void a_close_gives_back_what_is_held(void **state) {
    struct fixture *f = *state;
    struct record waiting = {0};
    struct record trying = {0};
    struct record releasing = {0};
    struct record lost = {0};
    evlock_options options = with_ttl(60 * 1000);
    options.auto_renewal = true;
    options.on_lost = record_end;
    options.arg = &lost;
    held(f, "a");
    evlock *lock = lock_new(f, "b", &options);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    server_do(f->server, "SET c stranger");
    assert_status(evlock_release(held(f, "d"), record_end, &releasing), EVLOCK_OK);
    assert_status(evlock_acquire(lock_new(f, "c", NULL), NULL, record_end, &waiting), EVLOCK_OK);
    assert_status(evlock_acquire(lock_new(f, "e", NULL), NULL, record_end, &trying), EVLOCK_OK);

    assert_status(await_close(f, f->client), EVLOCK_OK);
    assert_ended(&waiting, EVLOCK_ECANCELLED);
    assert_ended(&trying, EVLOCK_ECANCELLED);
    assert_ended(&releasing, EVLOCK_OK);
    assert_true(f->ended.order > waiting.order && f->ended.order > trying.order && f->ended.order > releasing.order);
    assert_int_equal(lost.count, 0);
    assert_int_equal(server_integer(f->server, "DBSIZE"), 1);
    assert_true(key_is(f->server, "c", "stranger", 8));
    run_for(f, 200);
    assert_int_equal(server_integer(f->server, "DBSIZE"), 1);
    assert_int_equal(loop_registrations(f->loop), 0);
}

static void a_close_of_an_idle_client(void **state) {
    struct fixture *f = *state;
    assert_status(await_close(f, f->client), EVLOCK_OK);
    evlock_client *client = client_new(f, NULL, NULL);
    await_connected(f, client);
    assert_status(await_close(f, client), EVLOCK_OK);
    /* and without anyone to tell */
    client = client_new(f, NULL, NULL);
    client_forget(f, client);
    assert_status(evlock_client_close(client, NULL, NULL), EVLOCK_OK);
    await(f, loop_registrations(f->loop) == 0);
}

static void a_close_refuses_new_calls_at_once(void **state) {
    struct fixture *f = *state;
    struct record closed = {0};
    char token[128];
    size_t len;
    evlock *lock = held(f, "a");
    evlock *other = NULL;
    evlock_client *client = f->client;
    f->ended = (struct record){0};
    client_forget(f, client);
    server_pause(f->server);
    assert_status(evlock_client_close(client, record_closed, &closed), EVLOCK_OK);
    assert_status(evlock_client_close(client, record_closed, &f->ended), EVLOCK_ECLOSED);
    assert_status(evlock_new(&other, client, "b", EVLOCK_CSTRING, NULL), EVLOCK_ECLOSED);
    assert_status(evlock_acquire(lock, NULL, record_end, &f->ended), EVLOCK_ECLOSED);
    assert_status(evlock_release(lock, record_end, &f->ended), EVLOCK_ECLOSED);
    assert_status(evlock_extend(lock, 1000, EVLOCK_EXTEND_ADD, record_end, &f->ended), EVLOCK_ECLOSED);
    assert_status(evlock_query(lock, EVLOCK_QUERY_LOCKED, record_answer, &f->ended), EVLOCK_ECLOSED);
    assert_status(evlock_export(lock, token, sizeof(token), &len), EVLOCK_ECLOSED);
    assert_false(evlock_is_held(lock));
    run_for(f, 50);
    assert_int_equal(closed.count, 0);
    server_resume(f->server);
    await(f, closed.count);
    assert_ended(&closed, EVLOCK_OK);
    assert_int_equal(f->ended.count, 0);
    assert_false(key_exists(f->server, "a"));
    /* handles stay the user's */
    assert_status(evlock_acquire(lock, NULL, record_end, &f->ended), EVLOCK_ECLOSED);
    assert_string_equal(evlock_name(lock, NULL), "a");
}

static void a_close_without_its_server_says_so(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = client_options(f);
    struct record lost = {0};
    evlock_options watched = with_ttl(500);
    options.command_timeout_ms = 1000;
    client_new(f, NULL, &options);
    watched.on_lost = record_end;
    watched.arg = &lost;
    evlock *lock = lock_new(f, "a", &watched);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    held(f, "b");
    server_pause(f->server);
    assert_status(await_close(f, f->client), EVLOCK_EUNREACHABLE);
    assert_int_equal(lost.count, 0);
    assert_int_equal(loop_registrations(f->loop), 0);
}

static void a_close_without_a_hold_needs_no_server(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    server_kill9(f->server);
    client_new(f, NULL, NULL);
    assert_status(evlock_acquire(lock_new(f, "a", NULL), NULL, record_end, &record), EVLOCK_OK);
    await(f, f->connection_states[EVLOCK_AWAY]);
    assert_status(await_close(f, f->client), EVLOCK_OK);
    assert_ended(&record, EVLOCK_ECANCELLED);
}

/* It takes the connection, and never says a word. A close that had waited for one would have failed. */
static void a_close_needs_no_server_that_was_never_up(void **state) {
    struct fixture *f = *state;
    struct record record = {0};
    server_pause(f->server);
    evlock_client *client = client_new(f, NULL, NULL);
    assert_status(await_close(f, client_new(f, NULL, NULL)), EVLOCK_OK);
    assert_status(evlock_acquire(lock_new_on(f, client, "a", NULL), NULL, record_end, &record), EVLOCK_OK);
    run_for(f, 50);
    assert_status(await_close(f, client), EVLOCK_OK);
    assert_ended(&record, EVLOCK_ECANCELLED);
}

static void handles_may_go_before_during_and_after_a_close(void **state) {
    struct fixture *f = *state;
    struct record closed = {0};
    evlock *before = held(f, "a");
    evlock *during = held(f, "b");
    evlock *after = held(f, "c");
    lock_free(f, before);
    assert_status(evlock_client_close(f->client, record_closed, &closed), EVLOCK_OK);
    client_forget(f, f->client);
    lock_free(f, during);
    await(f, closed.count);
    assert_ended(&closed, EVLOCK_OK);
    assert_int_equal(server_integer(f->server, "DBSIZE"), 0);
    lock_free(f, after);
}

/* --- Freeing ------------------------------------------------------------------------------------------------------ */

static void a_freed_client_leaves_nothing(void **state) {
    struct fixture *f = *state;
    await_connected(f, f->client);
    client_free(f, f->client);
    assert_int_equal(loop_registrations(f->loop), 0);
    /* nor does one that never connected */
    client_free(f, client_new(f, NULL, NULL));
    assert_int_equal(loop_registrations(f->loop), 0);
}

static void a_freed_client_gives_back_what_it_can(void **state) {
    struct fixture *f = *state;
    held(f, "a");
    held(f, "b");
    client_free(f, f->client);
    await(f, server_integer(f->server, "DBSIZE") == 0);
}

/* Has the client hold so many locks; the caller frees them. */
static evlock **hold_many(struct fixture *f, evlock_client *client, int count) {
    evlock_options options = with_ttl(10 * WAIT_MS);
    struct record got = {0};
    char name[16];
    evlock **locks = calloc((size_t)count, sizeof(*locks));
    assert_non_null(locks);
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "lock-%d", i);
        assert_status(evlock_new(&locks[i], client, name, EVLOCK_CSTRING, &options), EVLOCK_OK);
        assert_status(evlock_acquire(locks[i], NULL, record_end, &got), EVLOCK_OK);
    }
    await(f, got.count == count);
    assert_int_equal(server_integer(f->server, "DBSIZE"), count);
    return locks;
}

static void free_many(evlock **locks, int count) {
    for (int i = 0; i < count; i++)
        evlock_free(locks[i]);
    free(locks);
}

/* Frees a client at `url` that holds so many locks, and sees them gone long before their ttl. */
static void free_while_holding(struct fixture *f, const char *url, int count, int64_t max_inflight) {
    evlock_client_options client_options = {.size = sizeof(evlock_client_options)};
    client_options.max_inflight = max_inflight;
    evlock_client *client = client_new(f, url, &client_options);
    evlock **locks = hold_many(f, client, count);
    client_free(f, client);
    free_many(locks, count);
    await(f, server_integer(f->server, "DBSIZE") == 0);
}

/* Some rounds, as it depends on when the server reads what. */
static void a_freed_client_gives_back_all_that_the_socket_takes(void **state) {
    struct fixture *f = *state;
    for (int i = 0; i < 5; i++) {
        free_while_holding(f, f->server->tcp_url, 600, 0);
        free_while_holding(f, f->server->url, 300, 0);
    }
    free_while_holding(f, f->server->url, 50, 1); /* without any answer, there is nothing to wait for */
}

/* A socket that is closed over an answer that nobody has read drops what it has not sent, too. */
static void a_freed_client_gives_back_what_the_socket_took_beside_an_unread_answer(void **state) {
    enum { COUNT = 1500 }; /* more than the server's end takes while it is stopped */
    struct fixture *f = *state;
    struct record asked = {0};
    evlock_client *client = client_new(f, f->server->tcp_url, NULL);
    evlock **locks = hold_many(f, client, COUNT);
    server_do(f->server, "CONFIG RESETSTAT");
    server_pause(f->server);
    assert_status(evlock_query(locks[0], EVLOCK_QUERY_LOCKED, record_answer, &asked), EVLOCK_OK);
    run_for(f, 50);
    server_resume(f->server);
    for (int i = 0; i < WAIT_MS && server_calls(f->server, "get") == 0; i++) /* the loop stands still */
        usleep(1000);
    server_do(f->server, "PING"); /* what was answered before has been sent by now */
    server_pause(f->server);
    client_free(f, client);
    free_many(locks, COUNT);
    server_resume(f->server);
    await(f, asked.count && server_integer(f->server, "DBSIZE") == 0);
    assert_ended(&asked, EVLOCK_ECANCELLED);
}

/* What is answered finds nobody; what is in the server's hands by then is done. */
static void a_freed_client_gives_back_what_it_can_where_it_may_not_hush_the_server(void **state) {
    struct fixture *f = *state;
    char url[128];
    server_do(f->server, "ACL SETUSER mute on >p ~* &* +@all -client");
    server_do(f->server, "CONFIG RESETSTAT");
    snprintf(url, sizeof(url), "%s://mute:p@127.0.0.1:%d", server_scheme(), f->server->port);
    free_while_holding(f, url, 50, 0);
    assert_int_equal(server_info(f->server, "commandstats",
                                 "cmdstat_client|reply:calls=0,usec=0,usec_per_call=0.00,rejected_calls="),
                     0); /* nor was it tried, which some proxies would answer by hanging up */
    server_do(f->server, "ACL DELUSER mute");
}

static void a_freed_client_ends_pending_calls(void **state) {
    struct fixture *f = *state;
    struct record records[7] = {0};
    evlock *lock = held(f, "a");
    evlock *other = held(f, "b");
    evlock *third = lock_new(f, "c", NULL);
    evlock *fourth = lock_new(f, "d", NULL);
    server_pause(f->server);
    assert_status(evlock_extend(lock, 1000, EVLOCK_EXTEND_ADD, record_end, &records[0]), EVLOCK_OK);
    assert_status(evlock_query(lock, EVLOCK_QUERY_LOCKED, record_answer, &records[1]), EVLOCK_OK);
    assert_status(evlock_query(lock, EVLOCK_QUERY_TTL, record_answer, &records[2]), EVLOCK_OK);
    assert_status(evlock_break(lock, record_end, &records[3]), EVLOCK_OK);
    assert_status(evlock_release(other, record_end, &records[4]), EVLOCK_OK);
    assert_status(evlock_acquire(third, NULL, record_end, &records[5]), EVLOCK_OK);
    assert_status(evlock_adopt(fourth, "t", 1, record_end, &records[6]), EVLOCK_OK);
    run_for(f, 20);
    client_free(f, f->client);
    for (int i = 0; i < 7; i++)
        assert_int_equal(records[i].count, 0);
    loop_turn(f->loop);
    for (int i = 0; i < 7; i++) {
        assert_ended(&records[i], EVLOCK_ECANCELLED);
        assert_non_null(records[i].object);
    }
    assert_int_equal(loop_registrations(f->loop), 0);
    server_resume(f->server);
}

static void a_free_overtakes_a_close(void **state) {
    struct fixture *f = *state;
    struct record closed = {0};
    held(f, "a");
    server_pause(f->server);
    assert_status(evlock_client_close(f->client, record_closed, &closed), EVLOCK_OK);
    run_for(f, 20);
    client_free(f, f->client);
    assert_int_equal(closed.count, 0);
    await(f, closed.count);
    assert_ended(&closed, EVLOCK_ECANCELLED);
    assert_int_equal(loop_registrations(f->loop), 0);
}

/* --- The log ------------------------------------------------------------------------------------------------------ */

static void nothing_secret_is_told(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = client_options(f);
    evlock_acquire_options own = {.size = sizeof(evlock_acquire_options)};
    struct record lost = {0};
    evlock_options watched = with_ttl(500);
    char token[128];
    size_t len;

    add_alice(f);
    options.user = "alice";
    options.password = "s3:cret@/";
    client_new(f, NULL, &options);
    own.token = "t0ken";
    own.token_len = EVLOCK_CSTRING;
    watched.on_lost = record_end;
    watched.arg = &lost;
    evlock *lock = lock_new(f, "a", &watched);
    assert_status(await_acquire(f, lock, &own), EVLOCK_OK);
    assert_status(await_extend(f, lock, 500, EVLOCK_EXTEND_ADD), EVLOCK_OK);
    await(f, lost.count && !key_exists(f->server, "a"));
    assert_status(await_release(f, lock), EVLOCK_ENOTOWNED);
    assert_status(await_adopt(f, lock, "t0ken", EVLOCK_CSTRING), EVLOCK_ENOTOWNED);
    assert_null(strstr(f->ended.error, "t0ken"));

    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    const void *random = evlock_token(lock, &len);
    memcpy(token, random, len);
    token[len] = '\0';
    server_do(f->server, "CLIENT KILL TYPE normal");
    await(f, f->connection_states[EVLOCK_CONNECTED] > 1);
    assert_status(await_release(f, lock), EVLOCK_OK);

    /* a server that quotes what it was sent, and one that refuses the login */
    server_do(f->server, "ACL SETUSER alice -set");
    int status = await_acquire(f, lock, &own);
    assert_status(status, EVLOCK_EPERM);
    assert_null(strstr(f->ended.error, "t0ken"));
    server_do(f->server, "ACL SETUSER alice +set resetpass >other");
    server_do(f->server, "CLIENT KILL USER alice");
    await(f, f->away.status == EVLOCK_EAUTH);
    assert_null(strstr(f->away.error, "s3:cret"));

    assert_true(f->log_len > 0);
    assert_null(strstr(f->log, "t0ken"));
    assert_null(strstr(f->log, token));
    assert_null(strstr(f->log, "s3:cret"));
}

/* A server that lacks a command quotes in its refusal what it was sent with it. */
static void a_server_that_quotes_gives_nothing_away(void **state) {
    struct fixture *f = *state;
    const char *const without_much[] = {"--rename-command", "AUTH", "", "--rename-command", "SET", "", NULL};
    evlock_client_options login = client_options(f);
    evlock_acquire_options own = {.size = sizeof(evlock_acquire_options)};
    struct server quoting;
    char error[256];
    own.token = "t0ken";
    own.token_len = EVLOCK_CSTRING;

    server_start(&quoting, false, without_much);
    login.user = "alice";
    login.password = "s3:cret@/";
    own.max_attempts = EVLOCK_TRY;
    int set = await_acquire(f, lock_new_on(f, client_new(f, quoting.url, NULL), "a", NULL), &own);
    memcpy(error, f->ended.error, sizeof(error));
    int logged_in = await_acquire(f, lock_new_on(f, client_new(f, quoting.url, &login), "a", NULL), &own);
    server_stop(&quoting);
    assert_int_not_equal(set, EVLOCK_OK);
    assert_int_not_equal(logged_in, EVLOCK_OK);
    assert_null(strstr(error, "t0ken"));
    assert_null(strstr(f->ended.error, "s3:cret"));
    assert_null(strstr(f->log, "t0ken"));
    assert_null(strstr(f->log, "s3:cret"));
}

static void the_log_calls_a_lock_by_its_label(void **state) {
    struct fixture *f = *state;
    evlock_options options = {.size = sizeof(evlock_options)};
    options.label = "the nightly invoices";
    assert_status(await_acquire(f, lock_new(f, "a", &options), NULL), EVLOCK_OK);
    assert_non_null(strstr(f->log, "the nightly invoices"));
    evlock *lock = NULL;
    assert_status(evlock_new(&lock, f->client, "x\n\0y", 4, NULL), EVLOCK_OK);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    evlock_free(lock);
    assert_non_null(strstr(f->log, "x\\x0a\\x00y"));
}

struct levels {
    int lines[EVLOCK_LOG_ERROR + 1];
    bool newline;
};

static void count_levels(enum evlock_log_level level, const char *line, void *arg) {
    struct levels *levels = arg;
    levels->lines[level]++;
    levels->newline |= strchr(line, '\n') != NULL;
}

/* A connection made, a lock taken and lost. */
static void live_a_little(struct fixture *f, struct levels *levels, enum evlock_log_level level) {
    evlock_client_options options = {.size = sizeof(evlock_client_options)};
    struct record lost = {0};
    evlock_options watched = with_ttl(300);
    *levels = (struct levels){0};
    options.on_log = count_levels;
    options.arg = levels;
    options.log_level = level;
    watched.on_lost = record_end;
    watched.arg = &lost;
    evlock_client *client = client_new(f, NULL, &options);
    evlock *lock = lock_new_on(f, client, "a", &watched);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    await(f, lost.count);
    lock_free(f, lock);
    client_free(f, client);
    assert_false(levels->newline);
}

static void the_log_has_levels(void **state) {
    struct fixture *f = *state;
    struct levels levels;
    live_a_little(f, &levels, EVLOCK_LOG_DEBUG);
    assert_true(levels.lines[EVLOCK_LOG_DEBUG] > 0);
    assert_true(levels.lines[EVLOCK_LOG_INFO] > 0);
    assert_true(levels.lines[EVLOCK_LOG_ERROR] > 0);
    live_a_little(f, &levels, 0);
    assert_int_equal(levels.lines[EVLOCK_LOG_DEBUG], 0);
    assert_true(levels.lines[EVLOCK_LOG_INFO] > 0);
    live_a_little(f, &levels, EVLOCK_LOG_ERROR);
    assert_int_equal(levels.lines[EVLOCK_LOG_DEBUG] + levels.lines[EVLOCK_LOG_INFO] + levels.lines[EVLOCK_LOG_WARN], 0);
    assert_true(levels.lines[EVLOCK_LOG_ERROR] > 0);
}

CASE(the_version_is_the_headers) {
    assert_string_equal(evlock_version(), EVLOCK_VERSION_STRING);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST_BARE(a_unix_socket),
        TEST_BARE(a_path_in_percents),
        TEST_BARE(an_ipv4_address),
        TEST_BARE(an_ipv6_address),
        TEST_BARE(a_host_name),
        TEST_BARE(a_name_without_address),
        TEST_LOGIN(a_user_and_password_by_url),
        TEST_LOGIN(a_user_and_password_by_option),
        TEST_LOGIN(options_win_over_the_url),
        TEST_LOGIN(a_password_alone_is_the_default_users),
        TEST_LOGIN(a_refused_login_is_told),
        TEST_BARE(a_connection_is_told),
        TEST_BARE(a_lost_connection_comes_back),
        TEST_BARE(a_server_that_comes_later_is_found),
        TEST_BARE(a_try_without_a_server_is_answered),
        TEST_BARE(a_silent_server_is_left_after_the_command_timeout),
        TEST_BARE(a_silent_server_is_left_after_the_connect_timeout),
        TEST_BARE(the_pause_before_connecting_again_is_the_users),
        TEST(a_close_gives_back_what_is_held),
        TEST(a_close_of_an_idle_client),
        TEST(a_close_refuses_new_calls_at_once),
        TEST_BARE(a_close_without_its_server_says_so),
        TEST_BARE(a_close_without_a_hold_needs_no_server),
        TEST_BARE(a_close_needs_no_server_that_was_never_up),
        TEST(handles_may_go_before_during_and_after_a_close),
        TEST(a_freed_client_leaves_nothing),
        TEST(a_freed_client_gives_back_what_it_can),
        TEST(a_freed_client_gives_back_all_that_the_socket_takes),
        TEST(a_freed_client_gives_back_what_the_socket_took_beside_an_unread_answer),
        TEST(a_freed_client_gives_back_what_it_can_where_it_may_not_hush_the_server),
        TEST(a_freed_client_ends_pending_calls),
        TEST(a_free_overtakes_a_close),
        TEST_LOGIN(nothing_secret_is_told),
        TEST_BARE(a_server_that_quotes_gives_nothing_away),
        TEST(the_log_calls_a_lock_by_its_label),
        TEST_BARE(the_log_has_levels),
        TEST_BARE(the_version_is_the_headers),
    };
    return run_suite("client", tests);
}
