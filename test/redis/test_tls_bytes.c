/*
 * The bytes of TLS: what a server may do with them, from the first of a handshake to the last of a connection. The
 * server is the tests' own (tls_peer.h), with a real one behind it. Each test is named after the behaviour that it
 * shows.
 */
#include "tls_suite.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- Handshakes --------------------------------------------------------------------------------------------------- */

/* How much a connection is sent in its handshake. */
static size_t length_of_handshake(struct fixture *f, int version) {
    evlock_client_options options = trusting(f);
    start_peer(f, &(struct tls_peer_options){.version = version});
    evlock_client *client = client_new(f, peer.url, &options);
    await(f, tls_peer_pump(&peer) && evlock_client_connection(client) == EVLOCK_CONNECTED);
    size_t len = peer.pairs[0].handshake;
    client_free(f, client);
    tls_peer_stop(&peer);
    return len;
}

/* Ends each connection at this byte of what the server says. */
static void cut_at(struct fixture *f, size_t at, bool resets) {
    f->away = (struct record){0};
    peer.cut_after = at;
    peer.resets = resets;
    peer.options.piece = 512;
    tls_peer_end(&peer, TLS_PEER_RESETS);
    await(f, tls_peer_pump(&peer) && f->away.count);
    if (f->away.status != EVLOCK_EUNREACHABLE)
        fail_msg("an end after %zu bytes is %s (%s)", at, evlock_strerror(f->away.status), f->away.error);
    assert_string_not_equal(f->away.error, "");
}

static void an_end_anywhere_in_the_handshake(void **state) {
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    struct fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        size_t len = length_of_handshake(f, versions[i]);
        evlock_client_options options = trusting(f);
        options.backoff_min_ms = options.backoff_max_ms = 1;
        start_peer(f, &(struct tls_peer_options){.version = versions[i]});
        peer.cut_after = 0;
        evlock_client *client = client_new(f, peer.url, &options);
        for (size_t at = 0; at < len; at += at < 16 ? 1 : 61)
            cut_at(f, at, at % 2);
        peer.cut_after = SIZE_MAX;
        peer.options.piece = 0;
        await(f, tls_peer_pump(&peer) && evlock_client_connection(client) == EVLOCK_CONNECTED);
        client_free(f, client);
        tls_peer_stop(&peer);
    }
}

static void an_old_version_is_refused(void **state) {
    struct fixture *f = *state;
    static const int versions[] = {TLS1_VERSION, TLS1_1_VERSION};
    for (int i = 0; i < 2; i++) {
        evlock_client_options options = trusting(f);
        start_peer(f, &(struct tls_peer_options){.version = versions[i]});
        fails(f, peer.url, &options, EVLOCK_EPROTOCOL, "version");
        assert_int_equal(peer.pairs[0].heard, 0);
        tls_peer_stop(&peer);
    }
}

/* --- The bytes between -------------------------------------------------------------------------------------------- */

static evlock_client *peer_client(struct fixture *f, const struct tls_peer_options *options) {
    evlock_client_options own = trusting(f);
    own.connect_timeout_ms = own.command_timeout_ms = WAIT_MS; /* also for bytes that come one by one */
    start_peer(f, options);
    return client_new(f, peer.url, &own);
}

/* The server has answered, and the first connection is not told of it yet. */
static void await_answers(struct fixture *f) {
    int waiting = 0;
    await(f, tls_peer_pump(&peer) && ioctl(peer.pairs[0].server, FIONREAD, &waiting) == 0 && waiting > 0);
    server_do(f->server, "PING"); /* behind all that came with it */
}

/* A lock's whole life, with a wait in line, which takes a second connection. */
static void lives_by_peer(struct fixture *f) {
    evlock_options queueing = with_ttl(30000);
    struct record waited = {0};
    queueing.wait = EVLOCK_WAIT_QUEUE;
    evlock *first = held_by_peer(f, "a", &queueing), *second = lock_new(f, "a", &queueing);
    assert_status(evlock_acquire(second, NULL, record_end, &waited), EVLOCK_OK);
    assert_status(extend_by_peer(f, first), EVLOCK_OK);
    await(f, tls_peer_pump(&peer) && server_integer(f->server, "DBSIZE") >= 2); /* it waits in line */
    assert_status(release_by_peer(f, first), EVLOCK_OK);
    await(f, tls_peer_pump(&peer) && waited.count);
    assert_ended(&waited, EVLOCK_OK);
    assert_status(release_by_peer(f, second), EVLOCK_OK);
    assert_int_equal(f->connection_states[EVLOCK_AWAY], 0);
}

static void bytes_that_come_one_by_one(void **state) {
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    struct fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        evlock_client *client =
            peer_client(f, &(struct tls_peer_options){.version = versions[i], .record = 1, .piece = 1});
        f->client = client;
        await(f, tls_peer_pump(&peer) && peer.count && peer.pairs[0].handshake);
        peer.options.piece = 7;
        lives_by_peer(f);
        client_free(f, client);
        tls_peer_stop(&peer);
    }
}

/* Many records come at once, and the loop says so once: none may wait for the next event. */
static void records_that_come_together(void **state) {
    struct fixture *f = *state;
    evlock *locks[50];
    struct record records[50] = {0};
    char name[16];
    peer_client(f, &(struct tls_peer_options){.record = 1});
    lives_by_peer(f);
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof(name), "lock%d", i);
        locks[i] = lock_new(f, name, NULL);
        assert_status(evlock_acquire(locks[i], NULL, record_end, &records[i]), EVLOCK_OK);
    }
    for (int i = 0; i < 50; i++) {
        await(f, tls_peer_pump(&peer) && records[i].count);
        assert_ended(&records[i], EVLOCK_OK);
    }
}

/* One reading has it all: nothing comes after it that could wake the loop again. */
static void what_was_decrypted_is_handed_on_at_once(void **state) {
    struct fixture *f = *state;
    struct record extended = {0}, asked_for = {0};
    peer_client(f, &(struct tls_peer_options){.record = 1});
    evlock *lock = held_by_peer(f, "a", NULL);
    peer.pairs[0].mute = true;
    assert_status(evlock_extend(lock, 60000, EVLOCK_EXTEND_REPLACE, record_end, &extended), EVLOCK_OK);
    assert_status(evlock_query(lock, EVERY_QUERY, record_answer, &asked_for), EVLOCK_OK);
    await_answers(f);
    peer.pairs[0].mute = false;
    tls_peer_pump(&peer);
    int turns = 0;
    while (!asked_for.count && turns++ < 100)
        loop_turn(f->loop);
    assert_ended(&extended, EVLOCK_OK);
    assert_ended(&asked_for, EVLOCK_OK);
    assert_true(extended.order < asked_for.order);
}

/* The answer came before the end, which comes with it. */
static void an_answer_before_the_end_counts(void **state) {
    static const enum tls_peer_end ends[] = {TLS_PEER_NOTIFIES, TLS_PEER_LEAVES};
    struct fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        struct record ended = {0};
        evlock_options options = with_ttl(60000);
        evlock_client *client = peer_client(f, NULL);
        f->client = client;
        evlock *lock = held_by_peer(f, "a", &options);
        peer.pairs[0].mute = true;
        assert_status(evlock_release(lock, record_end, &ended), EVLOCK_OK);
        await_answers(f);
        peer.pairs[0].mute = false;
        tls_peer_pump(&peer);
        tls_peer_end(&peer, ends[i]);
        for (int turns = 0; turns < 100 && !ended.count; turns++)
            loop_turn(f->loop);
        assert_ended(&ended, EVLOCK_OK);
        lock_free(f, lock);
        client_free(f, client);
        tls_peer_stop(&peer);
    }
}

/* A connection that ends in any way is made anew, and what was held is held on. */
static void an_end_of_any_kind_is_survived(void **state) {
    struct fixture *f = *state;
    peer_client(f, NULL);
    evlock *lock = held_by_peer(f, "a", NULL);
    for (int how = TLS_PEER_NOTIFIES; how <= TLS_PEER_RESETS; how++) {
        int connected = f->connection_states[EVLOCK_CONNECTED];
        tls_peer_end(&peer, (enum tls_peer_end)how);
        await(f, tls_peer_pump(&peer) && f->connection_states[EVLOCK_CONNECTED] > connected);
        assert_status(extend_by_peer(f, lock), EVLOCK_OK);
    }
    assert_status(release_by_peer(f, lock), EVLOCK_OK);
}

/* Who waits for a lock waits on, however often that is. */
static void a_goodbye_amid_the_login_is_an_end(void **state) {
    struct fixture *f = *state;
    peer_client(f, NULL);
    await(f, tls_peer_accept(&peer) && peer.count == 1);
    peer.pairs[0].mute = true;
    await(f, tls_peer_pump(&peer) && peer.pairs[0].heard > 0);
    tls_peer_end(&peer, TLS_PEER_NOTIFIES);
    await(f, tls_peer_pump(&peer) && f->away.count > 0);
    assert_status(f->away.status, EVLOCK_EUNREACHABLE);
    assert_says(f->away.error, "the server ended TLS");
}

static void garbage_after_a_handshake(void **state) {
    static const struct {
        const char *bytes;
        size_t len;
    } garbage[] = {
        {"-ERR unknown command\r\n", 22},
        {"\x17\x03\x03\x00\x20"
         "0123456789abcdef0123456789abcdef",
         37}, /* a record that nobody has encrypted */
        {"\x17\x03\x03\xff\xff"
         "0123456789abcdef",
         21},                                /* and one that is too long */
        {"\x15\x03\x03\x00\x02\x01\x00", 7}, /* a goodbye in the clear */
        {"\0\0\0\0\0\0\0\0", 8},
    };
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    struct fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        evlock_client *client = peer_client(f, &(struct tls_peer_options){.version = versions[i]});
        f->client = client;
        evlock *lock = held_by_peer(f, "a", NULL);
        for (size_t j = 0; j < sizeof(garbage) / sizeof(garbage[0]); j++) {
            int connected = f->connection_states[EVLOCK_CONNECTED];
            f->away = (struct record){0};
            tls_peer_say_raw(&peer, garbage[j].bytes, garbage[j].len);
            await(f, tls_peer_pump(&peer) && f->connection_states[EVLOCK_CONNECTED] > connected);
            assert_status(extend_by_peer(f, lock), EVLOCK_OK);
        }
        assert_status(release_by_peer(f, lock), EVLOCK_OK);
        client_free(f, client);
        tls_peer_stop(&peer);
    }
}

/* The server ends the connection because of what it cannot read, and says so. A new login is sent at once, before the
 * loop finds what came. */
static void what_a_server_said_last_is_heard_where_nothing_can_be_sent(void **state) {
    static const char unreadable[] = "\x17\x03\x03\x00\x20"
                                     "0123456789abcdef0123456789abcdef";
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    struct fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        evlock_client *client = peer_client(f, &(struct tls_peer_options){.version = versions[i]});
        await(f, tls_peer_pump(&peer) && evlock_client_connection(client) == EVLOCK_CONNECTED);
        f->away = (struct record){0};
        peer.resets = true;
        BIO_write(peer.pairs[0].in, unreadable, sizeof(unreadable) - 1);
        tls_peer_pump(&peer);
        assert_int_equal(tls_peer_alive(&peer), 0);
        assert_status(evlock_client_login(client, 0, "default", "any"), EVLOCK_OK);
        await(f, f->away.count);
        assert_status(f->away.status, EVLOCK_EPROTOCOL);
        assert_words(f->away.error, "bad record mac");
        client_free(f, client);
        tls_peer_stop(&peer);
    }
}

static void keys_may_be_updated(void **state) {
    struct fixture *f = *state;
    peer_client(f, &(struct tls_peer_options){.version = TLS1_3_VERSION});
    evlock *lock = held_by_peer(f, "a", NULL);
    for (int i = 0; i < 20; i++) {
        tls_peer_update_keys(&peer, i % 2);
        if (i % 5)
            assert_status(extend_by_peer(f, lock), EVLOCK_OK);
    }
    assert_status(release_by_peer(f, lock), EVLOCK_OK);
    assert_int_equal(f->connection_states[EVLOCK_AWAY], 0);
    assert_int_equal(peer.count, 1);
}

static void a_renegotiation_is_refused(void **state) {
    struct fixture *f = *state;
    peer_client(f, &(struct tls_peer_options){.version = TLS1_2_VERSION});
    evlock *lock = held_by_peer(f, "a", NULL);
    tls_peer_renegotiate(&peer);
    struct tls_peer_pair *asking = &peer.pairs[0];
    for (int i = 0; i < 50; i++) {
        tls_peer_pump(&peer);
        loop_turn(f->loop);
    }
    assert_int_equal(asking->hellos, 1);
    assert_status(extend_by_peer(f, lock), EVLOCK_OK); /* on this connection, or on another */
    assert_status(release_by_peer(f, lock), EVLOCK_OK);
}

/* The client's end of its connections takes little at a time. */
static void narrow_sockets(void) {
    struct sockaddr_in address;
    int least = 1, narrowed = 0;
    for (int fd = 3; fd < 1024; fd++) {
        socklen_t len = sizeof(address);
        if (getpeername(fd, (struct sockaddr *)&address, &len) == 0 && ntohs(address.sin_port) == peer.port)
            narrowed += setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &least, sizeof(least)) == 0;
    }
    assert_true(narrowed > 0);
}

/* The server asks for something that TLS answers by itself, without end, and reads nothing. */
static void is_ended(struct fixture *f, int version, void (*ask)(struct tls_peer *)) {
    evlock_client *client = peer_client(f, &(struct tls_peer_options){.version = version});
    await(f, tls_peer_pump(&peer) && evlock_client_connection(client) == EVLOCK_CONNECTED);
    narrow_sockets();
    forget_log(f);
    peer.pairs[0].deaf = true;
    for (int i = 0; !logged(f, "reads no answer"); i++) {
        if (i > 2000)
            fail_msg("a client goes on answering a server that reads nothing");
        for (int asked = 0; asked < 50 && peer.count == 1; asked++)
            ask(&peer);
        tls_peer_pump(&peer);
        loop_turn(f->loop);
    }
    peer.pairs[0].deaf = false;
    await(f, tls_peer_pump(&peer) && evlock_client_connection(client) == EVLOCK_CONNECTED);
    client_free(f, client);
    tls_peer_stop(&peer);
}

static void ask_for_keys(struct tls_peer *of) {
    tls_peer_update_keys(of, true);
}

/* Else a client would keep what it cannot send, without bound. */
static void a_server_that_asks_without_end_and_reads_nothing_is_left(void **state) {
    is_ended(*state, TLS1_3_VERSION, ask_for_keys);
    is_ended(*state, TLS1_2_VERSION, tls_peer_renegotiate);
}

/* A client that had offered it could be asked for its certificate in the middle of anything. */
static void a_certificate_cannot_be_asked_for_later(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = with_pair(f, "client");
    start_peer(f, &(struct tls_peer_options){.version = TLS1_3_VERSION});
    client_new(f, peer.url, &options);
    evlock *lock = held_by_peer(f, "a", NULL);
    assert_false(tls_peer_asks_for_certificate(&peer));
    assert_status(release_by_peer(f, lock), EVLOCK_OK);
    assert_string_equal(peer.pairs[0].subject, "");
}

static volatile sig_atomic_t pipes;

static void on_sigpipe(int number) {
    (void)number;
    pipes++;
}

/* OpenSSL has to say something to who is not there any more: because of garbage, or a goodbye, or an update. */
static void a_peer_that_dies_raises_no_signal(void **state) {
    struct fixture *f = *state;
    struct sigaction before, count = {.sa_handler = on_sigpipe};
    evlock *lock = NULL;
    pipes = 0;
    assert_int_equal(sigaction(SIGPIPE, &count, &before), 0);
    assert_ptr_equal(before.sa_handler, SIG_DFL);
    for (int i = 0; i < 12; i++) {
        evlock_client *client = peer_client(f, &(struct tls_peer_options){.version = TLS1_3_VERSION});
        f->client = client;
        lock = held_by_peer(f, "a", NULL);
        f->ended = (struct record){0};
        if (i % 4 < 2)
            tls_peer_say_raw(&peer, "this is no TLS", 14);
        else
            tls_peer_update_keys(&peer, true), tls_peer_flush(&peer);
        if (i % 3)
            assert_status(evlock_extend(lock, 60000, EVLOCK_EXTEND_REPLACE, record_end, &f->ended), EVLOCK_OK);
        tls_peer_end(&peer, i % 2 ? TLS_PEER_RESETS : TLS_PEER_LEAVES);
        usleep(2000); /* both are there when the client looks */
        int connected = f->connection_states[EVLOCK_CONNECTED];
        await(f, tls_peer_pump(&peer) && f->connection_states[EVLOCK_CONNECTED] > connected);
        await(f, tls_peer_pump(&peer) && (i % 3 == 0 || f->ended.count));
        assert_status(release_by_peer(f, lock), EVLOCK_OK);
        lock_free(f, lock);
        client_free(f, client);
        tls_peer_stop(&peer);
    }
    assert_int_equal(sigaction(SIGPIPE, &before, NULL), 0);
    assert_int_equal(pipes, 0);
}

/* Two hundred long commands fill the socket of a server that reads nothing. */
static void a_server_that_does_not_read_is_waited_for(void **state) {
    struct fixture *f = *state;
    struct record records[200] = {0};
    char name[500];
    int ended = 0;
    peer_client(f, NULL);
    await(f, tls_peer_pump(&peer) && evlock_client_connection(f->client) == EVLOCK_CONNECTED);
    tls_peer_newest(&peer)->deaf = true;
    narrow_sockets();
    memset(name, 'n', sizeof(name));
    for (int i = 0; i < 200; i++) {
        snprintf(name + sizeof(name) - 5, 5, "%04d", i);
        evlock *lock = lock_new(f, name, NULL);
        assert_status(evlock_acquire(lock, NULL, record_end, &records[i]), EVLOCK_OK);
    }
    for (int i = 0; i < 20; i++) {
        tls_peer_pump(&peer);
        loop_turn(f->loop);
    }
    tls_peer_newest(&peer)->deaf = false;
    for (int i = 0; i < 200; i++) {
        await(f, tls_peer_pump(&peer) && records[i].count);
        ended += records[i].status == EVLOCK_OK;
    }
    assert_int_equal(ended, 200);
    assert_int_equal(f->connection_states[EVLOCK_AWAY], 0);
}

/* A foreign value under the lock's key is told whole by the server, whatever it is worth. */
static void an_answer_may_be_long(void **state) {
    static const char *const versions[] = {"TLSv1.2", "TLSv1.3"};
    struct fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        evlock_client_options options = trusting(f);
        serve(f, "server", NULL, versions[i]);
        evlock_client *client = client_new(f, url_of(f, "localhost"), &options);
        evlock *lock = lock_new_on(f, client, "a", NULL);
        for (int len = 16 * 1024 - 40; len < 16 * 1024 + 40; len += 7) { /* about a record's greatest length */
            server_do(f->server, "DEL a");
            server_do(f->server, "SETRANGE a %d v", len);
            assert_status(await_query(f, lock, EVERY_QUERY), EVLOCK_OK);
            assert_true(f->ended.answer.locked);
        }
        server_do(f->server, "SETRANGE a %d v", 3 * 1024 * 1024);
        assert_status(await_query(f, lock, EVERY_QUERY), EVLOCK_OK);
        assert_true(f->ended.answer.locked);
        assert_false(f->ended.answer.owned);
        assert_status(await_try(f, lock), EVLOCK_EHELD);
        assert_status(await_break(f, lock), EVLOCK_OK);
        assert_int_equal(f->connection_states[EVLOCK_AWAY], 0);
        client_free(f, client);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TLS_TEST(an_end_anywhere_in_the_handshake),
        TLS_TEST(an_old_version_is_refused),
        TLS_TEST(bytes_that_come_one_by_one),
        TLS_TEST(records_that_come_together),
        TLS_TEST(what_was_decrypted_is_handed_on_at_once),
        TLS_TEST(an_answer_before_the_end_counts),
        TLS_TEST(an_end_of_any_kind_is_survived),
        TLS_TEST(a_goodbye_amid_the_login_is_an_end),
        TLS_TEST(garbage_after_a_handshake),
        TLS_TEST(what_a_server_said_last_is_heard_where_nothing_can_be_sent),
        TLS_TEST(keys_may_be_updated),
        TLS_TEST(a_renegotiation_is_refused),
        TLS_TEST(a_server_that_asks_without_end_and_reads_nothing_is_left),
        TLS_TEST(a_certificate_cannot_be_asked_for_later),
        TLS_TEST(a_peer_that_dies_raises_no_signal),
        TLS_TEST(a_server_that_does_not_read_is_waited_for),
        TLS_TEST(an_answer_may_be_long),
    };
    return run_tls_suite("tls_bytes", tests, sizeof(tests) / sizeof(tests[0]));
}
