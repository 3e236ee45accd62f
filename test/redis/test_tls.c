/*
 * TLS: whom the client trusts and whom it does not, by which files, and what stays of that from one connection to the
 * next. The server is a real one, whose certificate changes from test to test. Each test is named after the behaviour
 * that it shows.
 */
#include "tls_suite.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/err.h>

#include "waiters.h"

/* --- Whom the client trusts --------------------------------------------------------------------------------------- */

static void a_name_in_the_certificate_is_trusted(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = trusting(f);
    char url[128];
    works(f, url_of(f, "localhost"), &options);
    snprintf(url, sizeof(url), "valkeys://localhost:%d/3", tls_port(f));
    evlock_client *client = client_new(f, url, &options);
    evlock *lock = lock_new_on(f, client, "a", NULL);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    server_do(f->server, "SELECT 3");
    assert_true(key_exists(f->server, "a"));
    assert_status(await_release(f, lock), EVLOCK_OK);
    server_do(f->server, "SELECT 0");
}

static void an_address_in_the_certificate_is_trusted(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = trusting(f);
    works(f, url_of(f, "127.0.0.1"), &options);
    if (f->server->ipv6)
        works(f, url_of(f, "[::1]"), &options);
}

static void another_name_can_be_asked_for(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = trusting(f);
    serve(f, "named", NULL, NULL);
    options.tls_name = "redis.test";
    works(f, url_of(f, "127.0.0.1"), &options);
    works(f, url_of(f, "localhost"), &options);
    options.tls_name = "10.0.0.7";
    works(f, url_of(f, "localhost"), &options);
    options.tls_name = "2001:db8::7";
    works(f, url_of(f, "localhost"), &options);
}

static void a_wildcard_stands_for_one_whole_label(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = trusting(f);
    serve(f, "wild", NULL, NULL);
    options.tls_name = "one.wild.test";
    works(f, url_of(f, "localhost"), &options);
    options.tls_name = "one.two.wild.test";
    fails(f, url_of(f, "localhost"), &options, EVLOCK_ECERT, "mismatch");
    options.tls_name = "wild.test";
    fails(f, url_of(f, "localhost"), &options, EVLOCK_ECERT, "mismatch");
    serve(f, "partly_wild", NULL, NULL);
    options.tls_name = "one.wild.test";
    fails(f, url_of(f, "localhost"), &options, EVLOCK_ECERT, "mismatch");
}

/* Which is where OpenSSL looks, or where its variable says. */
static void the_systems_certificates_are_trusted_by_default(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = trusting(f);
    options.tls_ca = NULL;
    setenv("SSL_CERT_FILE", cert_file("authority"), 1);
    evlock_client *client = client_new(f, url_of(f, "localhost"), &options);
    unsetenv("SSL_CERT_FILE");
    works_on(f, client);
}

/* A chain may be longer than the server's own certificate. */
static void a_chain_is_followed(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = trusting(f);
    serve(f, "chained", NULL, NULL);
    works(f, url_of(f, "localhost"), &options);
}

static void both_versions_of_tls_work(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = trusting(f);
    static const char *const versions[] = {"TLSv1.2", "TLSv1.3"};
    for (int i = 0; i < 2; i++) {
        serve(f, "server", NULL, versions[i]);
        works(f, url_of(f, "localhost"), &options);
        assert_non_null(strstr(f->log, versions[i]));
    }
}

static void a_password_is_taken_over_tls(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = trusting(f);
    char url[128];
    server_do(f->server, "ACL SETUSER walter on >s3cret ~* &* +@all");
    snprintf(url, sizeof(url), "rediss://walter:s3cret@localhost:%d", tls_port(f));
    works(f, url, &options);
    snprintf(url, sizeof(url), "rediss://walter:wrong@localhost:%d", tls_port(f));
    fails(f, url, &options, EVLOCK_EAUTH, "WRONGPASS");
    server_do(f->server, "ACL DELUSER walter");
}

static void a_quorum_may_have_both_kinds_of_nodes(void **state) {
    struct fixture *f = *state;
    struct server others[2];
    evlock_client_options options = trusting(f);
    char urls[512];
    for (int i = 0; i < 2; i++)
        server_start(&others[i], false, NULL);
    snprintf(urls, sizeof(urls), "quorum:%s %s %s", url_of(f, "localhost"), others[0].url, others[1].url);
    options.max_ttl_ms = 100;
    evlock_client *client = client_new(f, urls, &options);
    evlock_options lock_options = with_ttl(100);
    evlock *lock = lock_new_on(f, client, "a", &lock_options);
    server_kill9(&others[1]); /* so that the one over TLS is needed */
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    client_free(f, client);
    for (int i = 0; i < 2; i++)
        server_stop(&others[i]);
}

/* --- Whom it does not trust --------------------------------------------------------------------------------------- */

static void a_certificate_that_is_not_to_be_trusted(void **state) {
    static const struct {
        const char *cert, *host, *name, *ca, *words;
    } rows[] = {
        {"named", "localhost", NULL, "authority", "hostname mismatch"},
        {"server", "localhost", "elsewhere.test", "authority", "hostname mismatch"},
        {"named", "127.0.0.1", NULL, "authority", "IP address mismatch"},
        {"server", "localhost", "127.0.0.2", "authority", "IP address mismatch"},
        {"addressed", "localhost", NULL, "authority", "hostname mismatch"}, /* has its address alone */
        {"textual", "127.0.0.1", NULL, "authority", "IP address mismatch"}, /* has the address as a name */
        {"foreign", "localhost", NULL, "authority", "issuer certificate"},
        {"server", "localhost", NULL, "foreign_authority", "certificate in certificate chain"},
        {"server", "localhost", NULL, NULL, "certificate"}, /* the system does not know it */
        {"alone", "localhost", NULL, "authority", "self-signed certificate"},
        {"expired", "localhost", NULL, "authority", "certificate has expired"},
        {"future", "localhost", NULL, "authority", "certificate is not yet valid"},
        {"of_client", "localhost", NULL, "authority", "certificate purpose"},
        {"of_leaf", "localhost", NULL, "authority", "certificate"}, /* signed by one that may not sign */
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        evlock_client_options options = trusting(f);
        print_message("%s, %s\n", rows[i].cert, rows[i].words);
        serve(f, rows[i].cert, NULL, NULL);
        options.tls_ca = rows[i].ca ? cert_file(rows[i].ca) : NULL;
        options.tls_name = rows[i].name;
        fails(f, url_of(f, rows[i].host), &options, EVLOCK_ECERT, rows[i].words);
        assert_words(f->away.error, "the server's certificate");
    }
    serve(f, "server", NULL, "TLSv1.2");
    evlock_client_options options = trusting(f);
    options.tls_name = "elsewhere.test";
    fails(f, url_of(f, "localhost"), &options, EVLOCK_ECERT, "hostname mismatch");
}

/* Nothing is gained by asking soon again. */
static void trust_that_fails_is_not_tried_again_soon(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = trusting(f);
    options.backoff_max_ms = 60 * 1000;
    serve(f, "expired", NULL, NULL);
    client_new(f, url_of(f, "localhost"), &options);
    await(f, f->away.count);
    run_for(f, 500);
    assert_int_equal(f->connection_states[EVLOCK_CONNECTING], 1);
    const char *next = strstr(f->log, "next try in ");
    assert_non_null(next);
    assert_int_in_range(atol(next + strlen("next try in ")), 30 * 1000, 60 * 1000);
}

/* And it is not lost for ever. */
static void trust_comes_back_with_a_good_certificate(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = trusting(f);
    serve(f, "expired", NULL, NULL);
    evlock_client *client = client_new(f, url_of(f, "localhost"), &options);
    await(f, f->away.count);
    serve(f, "server", NULL, NULL);
    await_connected(f, client);
    works_on(f, client);
}

/* A held lock outlives it, as long as its lease does: an old connection lives on, a new one is refused. */
static void a_certificate_that_goes_bad_ends_no_lease(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = trusting(f);
    evlock_client *client = client_new(f, url_of(f, "localhost"), &options);
    evlock *lock = lock_new_on(f, client, "a", NULL);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    serve(f, "expired", NULL, NULL);
    assert_status(await_extend(f, lock, 60000, EVLOCK_EXTEND_REPLACE), EVLOCK_OK);
    server_do(f->server, "CLIENT KILL TYPE normal");
    await(f, f->away.status == EVLOCK_ECERT);
    assert_true(evlock_is_held(lock));
    serve(f, "server", NULL, NULL);
    await_connected(f, client);
    assert_status(await_release(f, lock), EVLOCK_OK);
}

/* --- Whom the server trusts --------------------------------------------------------------------------------------- */

static void a_client_certificate_is_shown(void **state) {
    static const char *const versions[] = {"TLSv1.2", "TLSv1.3"};
    struct fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        evlock_client_options options = with_pair(f, "client");
        serve(f, "server", "authority", versions[i]);
        works(f, url_of(f, "localhost"), &options);
        options = with_pair(f, "chained_client"); /* the server has the root alone */
        works(f, url_of(f, "localhost"), &options);
    }
}

static void a_client_certificate_may_be_refused(void **state) {
    static const char *const versions[] = {"TLSv1.2", "TLSv1.3"};
    struct fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        evlock_client_options options = trusting(f);
        serve(f, "server", "authority", versions[i]);
        print_message("none, %s\n", versions[i]);
        fails(f, url_of(f, "localhost"), &options, EVLOCK_ECERT, "refuses this client's certificate");
        print_message("foreign\n");
        options = with_pair(f, "foreign_client");
        fails(f, url_of(f, "localhost"), &options, EVLOCK_ECERT, "refuses this client's certificate: ");
        print_message("expired\n");
        options = with_pair(f, "expired_client");
        fails(f, url_of(f, "localhost"), &options, EVLOCK_ECERT, "expired");
    }
}

/* --- Other servers ------------------------------------------------------------------------------------------------ */

/* Some wait for more of what they take for a command, others answer. */
static void a_plain_server_behind_rediss(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = trusting(f);
    char url[64];
    options.connect_timeout_ms = 500;
    snprintf(url, sizeof(url), "rediss://localhost:%d", f->server->port);
    client_new(f, url, &options);
    await(f, f->away.count);
    assert_true(f->away.status == EVLOCK_EUNREACHABLE || f->away.status == EVLOCK_EPROTOCOL);
    assert_words(f->away.error, "TLS");
}

static void a_server_that_answers_something_else(void **state) {
    static const char *const answers[] = {"-ERR unknown command\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n",
                                          "220 mail.test ESMTP\r\n"};
    struct fixture *f = *state;
    for (int i = 0; i < 3; i++) {
        evlock_client_options options = trusting(f);
        start_peer(f, NULL);
        f->away = (struct record){0};
        evlock_client *client = client_new(f, peer.url, &options);
        await(f, tls_peer_accept(&peer) && peer.count);
        tls_peer_say_raw(&peer, answers[i], strlen(answers[i]));
        await(f, f->away.count);
        assert_status(f->away.status, EVLOCK_EPROTOCOL);
        assert_words(f->away.error, "the server does not speak TLS");
        client_free(f, client);
        tls_peer_stop(&peer);
    }
}

static void a_tls_server_behind_redis(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = client_options(f);
    char url[64];
    snprintf(url, sizeof(url), "redis://localhost:%d", tls_port(f));
    fails(f, url, &options, EVLOCK_EUNREACHABLE, "if it speaks TLS, use rediss://");
}

/* Some refuse what is no TLS in its own words, which are no reply. */
static void a_tls_server_that_answers_behind_redis(void **state) {
    static const unsigned char alert[] = {0x15, 3, 1, 0, 2, 2, 70};
    struct fixture *f = *state;
    evlock_client_options options = client_options(f);
    char url[64];
    start_peer(f, NULL);
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d", peer.port);
    client_new(f, url, &options);
    await(f, tls_peer_accept(&peer) && peer.count);
    tls_peer_say_raw(&peer, alert, sizeof(alert));
    await(f, f->away.count);
    assert_status(f->away.status, EVLOCK_EPROTOCOL);
    assert_words(f->away.error, "Protocol error");
    assert_words(f->away.error, "if it speaks TLS, use rediss://");
    tls_peer_stop(&peer);
}

/* Nothing waits for it but the connection: the loop goes on, and other clients do. */
static void a_server_that_is_silent_in_the_handshake(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = trusting(f);
    int turns = 0;
    options.connect_timeout_ms = 1000;
    server_pause(f->server);
    evlock_client *client = client_new(f, url_of(f, "127.0.0.1"), &options);
    await(f, ++turns && f->away.count);
    assert_int_in_range(turns, 20, INT32_MAX);
    assert_status(f->away.status, EVLOCK_EUNREACHABLE);
    assert_words(f->away.error, "within 1000 ms");
    server_resume(f->server);
    await_connected(f, client);
    works_on(f, client);
}

/* --- What leaves, and when ---------------------------------------------------------------------------------------- */

/* Neither a password nor anything else of a login, encrypted or not. */
static void nothing_of_the_login_leaves_before_the_server_is_verified(void **state) {
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    static const char *const certs[] = {"foreign", "expired", "named"};
    static const int alerts[] = {SSL_AD_UNKNOWN_CA, SSL_AD_CERTIFICATE_EXPIRED, SSL_AD_BAD_CERTIFICATE};
    struct fixture *f = *state;
    char url[96];
    for (int i = 0; i < 6; i++) {
        evlock_client_options options = trusting(f);
        start_peer(f, &(struct tls_peer_options){.cert = cert_file(certs[i / 2]),
                                                 .key = cert_key_file(certs[i / 2]),
                                                 .version = versions[i % 2]});
        snprintf(url, sizeof(url), "rediss://:s3cret@127.0.0.1:%d", peer.port);
        fails(f, url, &options, EVLOCK_ECERT, "the server's certificate");
        for (int j = 0; j < 20; j++)
            tls_peer_pump(&peer);
        assert_int_in_range(peer.count, 1, TLS_PEER_PAIRS);
        for (int j = 0; j < peer.count; j++) {
            assert_int_equal(peer.pairs[j].heard, 0);
            assert_false(peer.pairs[j].raw_login);
        }
        assert_int_equal(peer.pairs[0].alert, alerts[i / 2]); /* the server is told why */
        tls_peer_stop(&peer);
    }
}

/* The whole conversation is encrypted. */
static void nothing_goes_in_the_clear(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = trusting(f);
    start_peer(f, NULL);
    evlock_client *client = client_new(f, peer.url, &options);
    await(f, tls_peer_pump(&peer) && evlock_client_connection(client) == EVLOCK_CONNECTED);
    assert_true(peer.pairs[0].heard > 0);
    assert_false(peer.pairs[0].raw_login);
}

/* What a connection asks for when the URL has this host and the options this name. */
static const struct tls_peer_pair *asked(struct fixture *f, const char *host, const char *name) {
    evlock_client_options options = trusting(f);
    char url[64];
    start_peer(f, NULL);
    options.tls_name = name;
    snprintf(url, sizeof(url), "rediss://%s:%d", host, peer.port);
    evlock_client *client = client_new(f, url, &options);
    await(f, tls_peer_pump(&peer) && peer.count && SSL_is_init_finished(peer.pairs[0].ssl));
    static struct tls_peer_pair pair;
    pair = peer.pairs[0];
    client_free(f, client);
    tls_peer_stop(&peer);
    return &pair;
}

static void the_name_is_asked_for(void **state) {
    struct fixture *f = *state;
    assert_string_equal(asked(f, "localhost", NULL)->name, "localhost");
    assert_false(asked(f, "127.0.0.1", NULL)->asked); /* addresses are no names */
    assert_string_equal(asked(f, "127.0.0.1", "localhost")->name, "localhost");
    assert_false(asked(f, "localhost", "127.0.0.1")->asked);
    assert_false(asked(f, "localhost", "::1")->asked);
}

/* Certificates know neither. */
static void the_dot_at_the_end_and_the_zone_are_left_out(void **state) {
    static const char *const names[] = {"redis.test.", "2001:db8::7%eth0", "2001:db8::7%"};
    struct fixture *f = *state;
    evlock_client_options options = trusting(f);
    assert_string_equal(asked(f, "127.0.0.1", "localhost.")->name, "localhost");
    assert_false(asked(f, "127.0.0.1", "::1%lo")->asked);
    serve(f, "named", NULL, NULL);
    for (int i = 0; i < 3; i++) {
        options.tls_name = names[i];
        works(f, url_of(f, "localhost"), &options);
    }
}

/* --- Sessions ----------------------------------------------------------------------------------------------------- */

static int count_in_log(const struct fixture *f, const char *words) {
    int count = 0;
    for (const char *at = f->log; at && (at = strstr(at, words)); at += strlen(words))
        count++;
    return count;
}

/* Ends every connection, and waits until the client has another. */
static void reconnect(struct fixture *f, struct server *server) {
    int connected = f->connection_states[EVLOCK_CONNECTED];
    server_do(server, "CLIENT KILL TYPE normal");
    await(f, f->connection_states[EVLOCK_CONNECTED] > connected);
}

static void a_session_is_resumed(void **state) {
    static const char *const versions[] = {"TLSv1.2", "TLSv1.3"};
    struct fixture *f = *state;
    for (int i = 0; i < 4; i++) {
        evlock_client_options options = i < 2 ? trusting(f) : with_pair(f, "client");
        serve(f, "server", i < 2 ? NULL : "authority", versions[i % 2]);
        int before = count_in_log(f, "resumed");
        evlock_client *client = client_new(f, url_of(f, "localhost"), &options);
        works_on(f, client);
        assert_int_equal(count_in_log(f, "resumed"), before);
        for (int j = 1; j <= 3; j++) {
            reconnect(f, f->server);
            works_on(f, client);
            assert_int_equal(count_in_log(f, "resumed"), before + j);
        }
        client_free(f, client);
    }
}

/* The connection that listens makes room for another one, whose successor resumes the session of the first. */
static void a_session_is_resumed_by_another_connection(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = trusting(f);
    evlock_options patience = queueing(30000);
    struct record ended = {0};
    long long others = server_info(f->server, "clients", "connected_clients:");
    server_do(f->server, "SET a stranger PX 600000");
    evlock_client *client = client_new(f, url_of(f, "localhost"), &options);
    evlock *lock = lock_new_on(f, client, "a", &patience);
    assert_status(evlock_acquire(lock, NULL, record_end, &ended), EVLOCK_OK);
    await(f, waiting(f) == 1);
    for (int i = 3; i <= 4; i++) {
        assert_int_equal(count_in_log(f, "resumed"), 0);
        assert_status(evlock_client_login(client, EVLOCK_ALL_NODES, "default", "whatever"), EVLOCK_OK);
        await(f, count_in_log(f, "speaks TLS") == i &&
                     server_info(f->server, "clients", "connected_clients:") == others + 2);
    }
    assert_int_equal(count_in_log(f, "resumed"), 1);
    client_free(f, client);
}

/* Servers may let a session be resumed once only, and who reads the network would see that two are one client's. */
static void a_session_that_is_in_use_is_offered_by_no_other_connection(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = trusting(f);
    evlock_options patience = queueing(30000);
    struct record ended = {0};
    evlock_client *client = client_new(f, url_of(f, "localhost"), &options);
    works_on(f, client);
    reconnect(f, f->server);
    works_on(f, client);
    assert_int_equal(count_in_log(f, "resumed"), 1);
    server_do(f->server, "SET a stranger PX 600000");
    evlock *lock = lock_new_on(f, client, "a", &patience);
    assert_status(evlock_acquire(lock, NULL, record_end, &ended), EVLOCK_OK);
    await(f, waiting(f) == 1);
    assert_int_equal(count_in_log(f, "speaks TLS"), 3);
    assert_int_equal(count_in_log(f, "resumed"), 1);
    client_free(f, client);
}

/* Of several nodes each knows its own sessions alone. */
static void each_node_resumes_its_own_session(void **state) {
    struct fixture *f = *state;
    struct server other;
    evlock_client_options options = trusting(f);
    char urls[256];
    server_start(&other, true, NULL);
    serve_by(&other, "server", NULL, NULL);
    snprintf(urls, sizeof(urls), "quorum:%s rediss://localhost:%d", url_of(f, "localhost"), other.port + TLS_PORT);
    evlock_client *client = client_new(f, urls, &options);
    for (int i = 0; i <= 4; i++) {
        await(f, count_in_log(f, "speaks TLS") == 2 * (i + 1));
        assert_int_equal(count_in_log(f, "resumed"), 2 * i);
        server_do(f->server, "CLIENT KILL TYPE normal");
        server_do(&other, "CLIENT KILL TYPE normal");
    }
    client_free(f, client);
    server_stop(&other);
}

/* Nor is one lost by connections that come to nothing. */
static void a_session_outlives_failures(void **state) {
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    struct fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        evlock_client_options options = trusting(f);
        start_peer(f, &(struct tls_peer_options){.version = versions[i]});
        evlock_client *client = client_new(f, peer.url, &options);
        await(f, tls_peer_pump(&peer) && evlock_client_connection(client) == EVLOCK_CONNECTED);
        peer.cut_after = 0;
        tls_peer_end(&peer, TLS_PEER_NOTIFIES);
        await(f, tls_peer_pump(&peer) && peer.count >= 4);
        peer.cut_after = SIZE_MAX;
        await(f, tls_peer_pump(&peer) && evlock_client_connection(client) == EVLOCK_CONNECTED);
        assert_int_equal(count_in_log(f, "resumed"), i + 1);
        client_free(f, client);
        tls_peer_stop(&peer);
    }
}

/* Trusts the authority by a file of the test's own, own_ca.crt, which it may change. */
static evlock_client_options trusting_a_copy(struct fixture *f) {
    evlock_client_options options = trusting(f);
    options.tls_ca = file("own_ca.crt");
    copy(cert_file("authority"), options.tls_ca);
    return options;
}

/* What was trusted by other certificates, or shown with another one of this client's, is not trusted by these. */
static void a_session_ends_when_the_files_change(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = trusting_a_copy(f);
    evlock_client *client = client_new(f, url_of(f, "localhost"), &options);
    works_on(f, client);
    copy(cert_file("foreign_authority"), file("own_ca.crt"));
    server_do(f->server, "CLIENT KILL TYPE normal");
    await(f, f->away.status == EVLOCK_ECERT);
    assert_words(f->away.error, "certificate in certificate chain");
    assert_int_equal(count_in_log(f, "resumed"), 0);
    copy(cert_file("authority"), file("own_ca.crt"));
    await_connected(f, client);
    works_on(f, client);
    assert_int_equal(count_in_log(f, "resumed"), 0);
}

/* Also of a connection that outlived the change, while another was refused by it. */
static void a_session_of_before_is_not_kept_after_a_change(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = trusting_a_copy(f);
    evlock_options patience = queueing(30000);
    struct record ended = {0};
    evlock_client *client = client_new(f, url_of(f, "localhost"), &options);
    await_connected(f, client);
    copy(cert_file("foreign_authority"), file("own_ca.crt"));
    server_do(f->server, "SET a stranger PX 600000");
    evlock *lock = lock_new_on(f, client, "a", &patience);
    assert_status(evlock_acquire(lock, NULL, record_end, &ended), EVLOCK_OK);
    await(f, count_in_log(f, "certificate in certificate chain"));
    assert_int_equal(f->away.count, 0); /* it was the one that is to listen */
    server_do(f->server, "CLIENT KILL TYPE normal");
    await(f, f->away.count);
    assert_status(f->away.status, EVLOCK_ECERT);
    assert_int_equal(count_in_log(f, "resumed"), 0);
    client_free(f, client);
}

/* --- Files that change -------------------------------------------------------------------------------------------- */

static void a_new_ca_is_read(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = trusting_a_copy(f);
    evlock_client *client = client_new(f, url_of(f, "localhost"), &options);
    evlock *lock = lock_new_on(f, client, "a", NULL);
    assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
    serve(f, "foreign", NULL, NULL);
    server_do(f->server, "CLIENT KILL TYPE normal");
    await(f, f->away.status == EVLOCK_ECERT);
    copy(cert_file("foreign_authority"), file("own_ca.crt"));
    await_connected(f, client);
    assert_status(await_release(f, lock), EVLOCK_OK);
}

/* To the end of another file. */
static void add(const char *from, const char *to) {
    char bytes[16384];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "ab");
    assert_true(in && out);
    size_t len = fread(bytes, 1, sizeof(bytes), in);
    assert_int_equal(fwrite(bytes, 1, len, out), len);
    fclose(in);
    fclose(out);
}

/* While one authority follows another, both are trusted by one file. */
static void all_authorities_of_a_file_are_trusted(void **state) {
    static const char *const served[] = {"server", "foreign"};
    struct fixture *f = *state;
    evlock_client_options options = trusting_a_copy(f);
    add(cert_file("foreign_authority"), options.tls_ca);
    for (int i = 0; i < 2; i++) {
        serve(f, served[i], NULL, NULL);
        works(f, url_of(f, "localhost"), &options);
    }
}

static void a_new_pair_is_read(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = trusting(f);
    start_peer(f, &(struct tls_peer_options){.client_ca = cert_file("authority"), .forgetful = true});
    copy(cert_file("client"), file("own.crt"));
    copy(cert_key_file("client"), file("own.key"));
    options.tls_cert = file("own.crt");
    options.tls_key = file("own.key");
    client_new(f, peer.url, &options);
    evlock *lock = held_by_peer(f, "a", NULL);
    assert_string_equal(tls_peer_newest(&peer)->subject, "client");
    copy(cert_file("second"), file("own.crt")); /* half of it: the old pair stays in use */
    for (int i = 0; i < 3; i++) {
        int connected = f->connection_states[EVLOCK_CONNECTED];
        tls_peer_end(&peer, TLS_PEER_LEAVES);
        await(f, tls_peer_pump(&peer) && f->connection_states[EVLOCK_CONNECTED] > connected);
        assert_status(extend_by_peer(f, lock), EVLOCK_OK);
        assert_string_equal(tls_peer_newest(&peer)->subject, i < 2 ? "client" : "second");
        if (i == 0) {
            assert_non_null(strstr(f->log, "own.key"));
            assert_int_equal(unlink(file("own.key")), 0);
        }
        if (i == 1)
            copy(cert_key_file("second"), file("own.key"));
    }
    assert_status(release_by_peer(f, lock), EVLOCK_OK);
}

/* A copy of a fixed length, in place. */
static void overwrite(const char *from, const char *to) {
    char bytes[4096];
    memset(bytes, '\n', sizeof(bytes));
    FILE *in = fopen(from, "rb");
    assert_non_null(in);
    assert_true(fread(bytes, 1, sizeof(bytes), in) < sizeof(bytes));
    fclose(in);
    FILE *out = fopen(to, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, sizeof(bytes), out), sizeof(bytes));
    fclose(out);
}

/* As orchestrators do it: the path stays, and leads elsewhere. The times of the new file may be those of the old, as
 * its length. */
static void a_file_that_is_replaced_is_read_whatever_its_times(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = trusting(f);
    struct timespec times[2] = {{.tv_sec = 1700000000}, {.tv_sec = 1700000000}};
    char folders[2][80], link[160], temporary[160];
    for (int i = 0; i < 2; i++) {
        snprintf(folders[i], sizeof(folders[i]), "%s/%d", file(""), i);
        assert_int_equal(mkdir(folders[i], 0700), 0);
        snprintf(link, sizeof(link), "%.70s/ca.crt", folders[i]);
        overwrite(cert_file(i ? "foreign_authority" : "authority"), link);
        assert_int_equal(utimensat(AT_FDCWD, link, times, 0), 0);
    }
    snprintf(link, sizeof(link), "%s", file("data"));
    snprintf(temporary, sizeof(temporary), "%s", file("data.new"));
    assert_int_equal(symlink(folders[0], link), 0);
    options.tls_ca = file("data/ca.crt");
    evlock_client *client = client_new(f, url_of(f, "localhost"), &options);
    works_on(f, client);
    serve(f, "foreign", NULL, NULL);
    assert_int_equal(symlink(folders[1], temporary), 0);
    assert_int_equal(rename(temporary, link), 0);
    reconnect(f, f->server);
    works_on(f, client);
}

/* It is asked for by each connection, and said each time that it is not there. */
static void a_file_that_is_gone_is_missed_by_each_connection(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = trusting_a_copy(f);
    evlock_client *client = client_new(f, url_of(f, "localhost"), &options);
    works_on(f, client);
    assert_int_equal(unlink(file("own_ca.crt")), 0);
    for (int i = 1; i <= 3; i++) {
        reconnect(f, f->server);
        works_on(f, client);
        assert_int_equal(count_in_log(f, "own_ca.crt: No such file"), i);
    }
}

/* The loop would wait for one who writes to it. */
static void a_pipe_in_the_place_of_a_file_stops_nothing(void **state) {
    static const char *const names[] = {"own_ca.crt", "own.crt", "own.key"};
    struct fixture *f = *state;
    for (int i = 0; i < 3; i++) {
        evlock_client_options options = trusting(f);
        copy(cert_file("authority"), options.tls_ca = file("own_ca.crt"));
        copy(cert_file("client"), options.tls_cert = file("own.crt"));
        copy(cert_key_file("client"), options.tls_key = file("own.key"));
        serve(f, "server", "authority", NULL);
        evlock_client *client = client_new(f, url_of(f, "localhost"), &options);
        works_on(f, client);
        assert_int_equal(unlink(file(names[i])), 0);
        assert_int_equal(mkfifo(file(names[i]), 0600), 0);
        reconnect(f, f->server);
        works_on(f, client);
        assert_words(f->log, "the certificates of before stay in use: tls_");
        char words[160];
        snprintf(words, sizeof(words), "%s: it is no regular file", file(names[i]));
        assert_words(f->log, words);
        client_free(f, client);
    }
}

/* Nothing but the time says that it is another. */
static void a_file_that_is_written_over_is_read(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = trusting(f);
    overwrite(cert_file("authority"), file("one_ca.crt"));
    options.tls_ca = file("one_ca.crt");
    evlock_client *client = client_new(f, url_of(f, "localhost"), &options);
    works_on(f, client);
    serve(f, "foreign", NULL, NULL);
    overwrite(cert_file("foreign_authority"), file("one_ca.crt"));
    reconnect(f, f->server);
    works_on(f, client);
}

/* --- A context of the caller's own -------------------------------------------------------------------------------- */

static evlock_client_options by_context(struct fixture *f, SSL_CTX *context) {
    evlock_client_options options = trusting(f);
    options.tls_ca = NULL;
    options.tls_context = context;
    return options;
}

static void a_context_of_ones_own_may_verify_nothing(void **state) {
    static const char *const certs[] = {"foreign", "named", "expired"};
    struct fixture *f = *state;
    for (int i = 0; i < 3; i++) {
        SSL_CTX *context = SSL_CTX_new(TLS_client_method());
        evlock_client_options options = by_context(f, context);
        serve(f, certs[i], NULL, NULL);
        works(f, url_of(f, "localhost"), &options);
        SSL_CTX_free(context);
    }
}

/* The client keeps it, and the name is looked at where anything is. */
static void a_context_of_ones_own_may_verify_all(void **state) {
    struct fixture *f = *state;
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    evlock_client_options options = by_context(f, context);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    assert_int_equal(SSL_CTX_load_verify_locations(context, cert_file("authority"), NULL), 1);
    serve(f, "named", NULL, NULL);
    fails(f, url_of(f, "localhost"), &options, EVLOCK_ECERT, "hostname mismatch");
    serve(f, "foreign", NULL, NULL);
    fails(f, url_of(f, "localhost"), &options, EVLOCK_ECERT, "issuer certificate");
    serve(f, "server", NULL, NULL);
    evlock_client *client = client_new(f, url_of(f, "localhost"), &options);
    SSL_CTX_free(context);
    works_on(f, client);
    reconnect(f, f->server);
    works_on(f, client);
}

/* It may have OpenSSL take a part of what is said, or stop at what is no data; both lose nothing. */
static void a_context_of_ones_own_may_take_parts(void **state) {
    struct fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        SSL_CTX *context = SSL_CTX_new(TLS_client_method());
        evlock_client_options options = by_context(f, context);
        if (i == 0)
            SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE);
        else
            SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
        serve(f, "server", NULL, NULL);
        works(f, url_of(f, "localhost"), &options);
        SSL_CTX_free(context);
    }
}

/* --- OpenSSL's queue of errors ------------------------------------------------------------------------------------ */

enum { ERRORS = 3 };

static int intact; /* how often the queue was looked at, and was as it was left */
static int spoilt;

static void leave_errors(void) {
    ERR_clear_error();
    for (int i = 0; i < ERRORS; i++)
        ERR_raise_data(ERR_LIB_USER, 100 + i, "left by the caller: %d", i);
}

/* Takes the errors out and puts them back. */
static void look_at_errors(void) {
    bool same = true;
    const char *data;
    int flags;
    char expected[64];
    for (int i = 0; i < ERRORS; i++) {
        unsigned long code = ERR_get_error_all(NULL, NULL, NULL, &data, &flags);
        snprintf(expected, sizeof(expected), "left by the caller: %d", i);
        same &= ERR_GET_REASON(code) == 100 + i && (flags & ERR_TXT_STRING) && strcmp(data, expected) == 0;
    }
    same &= ERR_get_error() == 0;
    intact += same;
    spoilt += !same;
    leave_errors();
}

static void look_then(struct record *record) {
    (void)record;
    look_at_errors();
}

static void look_on_connection(evlock_client *client, enum evlock_connection state, int status, void *arg) {
    struct fixture *f = arg;
    f->connection_states[state]++;
    record_connection(client, state, status, &f->connection);
    if (state == EVLOCK_AWAY)
        f->away = f->connection;
    look_at_errors();
}

static void look_on_log(enum evlock_log_level level, const char *line, void *arg) {
    (void)level, (void)line, (void)arg;
    look_at_errors();
}

/* An acquire with the caller's errors in the queue all the time. */
static void acquire_amid_errors(struct fixture *f, const char *host, const char *name, int status) {
    evlock_client_options options = trusting(f);
    evlock_client *client = NULL;
    evlock *lock = NULL;
    struct record ended = {.then = look_then};
    options.on_connection = look_on_connection;
    options.on_log = look_on_log;
    options.tls_name = name;
    leave_errors();
    assert_status(evlock_client_new(&client, loop_for_evlock(f->loop), url_of(f, host), &options), EVLOCK_OK);
    look_at_errors();
    assert_status(evlock_new(&lock, client, "a", EVLOCK_CSTRING, NULL), EVLOCK_OK);
    assert_status(evlock_acquire(lock, NULL, record_end, &ended), EVLOCK_OK);
    await(f, (look_at_errors(), ended.count));
    assert_ended(&ended, status);
    if (status == EVLOCK_OK) {
        server_do(f->server, "CLIENT KILL TYPE normal");
        int connected = f->connection_states[EVLOCK_CONNECTED];
        await(f, (look_at_errors(), f->connection_states[EVLOCK_CONNECTED] > connected));
        ended = (struct record){.then = look_then};
        assert_status(evlock_release(lock, record_end, &ended), EVLOCK_OK);
        await(f, (look_at_errors(), ended.count));
        assert_ended(&ended, EVLOCK_OK);
    }
    evlock_client_free(client);
    look_at_errors();
    evlock_free(lock);
}

static void errors_of_the_caller_harm_nothing_and_stay(void **state) {
    struct fixture *f = *state;
    evlock_client *client = NULL;
    intact = spoilt = 0;
    acquire_amid_errors(f, "localhost", NULL, EVLOCK_OK);
    acquire_amid_errors(f, "localhost", "elsewhere.test", EVLOCK_ECERT);
    serve(f, "server", "authority", NULL);
    acquire_amid_errors(f, "localhost", NULL, EVLOCK_ECERT);
    evlock_client_options options = trusting(f);
    options.tls_ca = file("nothing.crt");
    leave_errors();
    assert_status(evlock_client_new(&client, loop_for_evlock(f->loop), url_of(f, "localhost"), &options), EVLOCK_ETLS);
    look_at_errors();
    ERR_clear_error();
    assert_int_equal(spoilt, 0);
    assert_true(intact > 20);
}

/* And it leaves none of its own. */
static void no_error_is_left_behind(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = trusting(f);
    ERR_clear_error();
    works(f, url_of(f, "localhost"), &options);
    assert_int_equal(ERR_peek_error(), 0);
    serve(f, "expired", NULL, NULL);
    fails(f, url_of(f, "localhost"), &options, EVLOCK_ECERT, "expired");
    assert_int_equal(ERR_peek_error(), 0);
}

/* --- Forks -------------------------------------------------------------------------------------------------------- */

/* In a child: gives all back, and makes a client of its own. */
static int free_and_begin_anew(void *arg) {
    struct fixture *f = arg, own;
    evlock_client *client = NULL;
    evlock *lock = NULL;
    struct record ended = {0};
    evlock_client_options options = {.size = sizeof(evlock_client_options)};
    evlock_free(f->locks[0]);
    evlock_client_free(f->client);
    if (!fixture_init(&own, f->server))
        return 1;
    options.tls_ca = cert_file("authority");
    if (evlock_client_new(&client, loop_for_evlock(own.loop), url_of(f, "localhost"), &options) != EVLOCK_OK)
        return 2;
    if (evlock_new(&lock, client, "b", EVLOCK_CSTRING, NULL) != EVLOCK_OK)
        return 3;
    if (!ends(&own, evlock_acquire(lock, NULL, record_end, &ended), &ended, EVLOCK_OK))
        return 4;
    ended = (struct record){0};
    if (!ends(&own, evlock_release(lock, record_end, &ended), &ended, EVLOCK_OK))
        return 5;
    evlock_free(lock);
    evlock_client_free(client);
    return fixture_free(&own) ? 6 : 0;
}

/* Not a byte of the child's may get into the parent's conversation. */
static void a_child_frees_and_the_parent_goes_on(void **state) {
    static const char *const versions[] = {"TLSv1.2", "TLSv1.3"};
    struct fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        evlock_client_options options = trusting(f);
        serve(f, "server", NULL, versions[i]);
        evlock_client *client = client_new(f, url_of(f, "localhost"), &options);
        evlock *lock = lock_new_on(f, client, "a", NULL);
        f->client = client;
        assert_status(await_acquire(f, lock, NULL), EVLOCK_OK);
        int connecting = f->connection_states[EVLOCK_CONNECTING];
        assert_int_equal(in_child(free_and_begin_anew, f), 0);
        assert_status(await_extend(f, lock, 60000, EVLOCK_EXTEND_REPLACE), EVLOCK_OK);
        assert_status(await_release(f, lock), EVLOCK_OK);
        assert_int_equal(f->connection_states[EVLOCK_CONNECTING], connecting);
        lock_free(f, lock);
        client_free(f, client);
    }
}

/* --- Bad input ---------------------------------------------------------------------------------------------------- */

static const char *refuses(struct fixture *f, const char *url, const evlock_client_options *options, int status) {
    evlock_client *client = NULL;
    ERR_clear_error();
    assert_status(evlock_client_new(&client, loop_for_evlock(f->loop), url, options), status);
    assert_null(client);
    assert_string_not_equal(evlock_last_error(), "");
    assert_int_equal(ERR_peek_error(), 0);
    assert_int_equal(loop_registrations(f->loop), 0);
    return evlock_last_error();
}

static void options_that_do_not_fit_together_are_refused(void **state) {
    struct fixture *f = *state;
    const char *url = url_of(f, "localhost");
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    evlock_client_options options = trusting(f);
    options.tls_cert = cert_file("client");
    assert_words(refuses(f, url, &options, EVLOCK_EINVAL), "tls_key");
    options.tls_cert = NULL;
    options.tls_key = cert_key_file("client");
    assert_words(refuses(f, url, &options, EVLOCK_EINVAL), "tls_cert");
    options = by_context(f, context);
    options.tls_ca = cert_file("authority");
    assert_words(refuses(f, url, &options, EVLOCK_EINVAL), "tls_context");
    options = with_pair(f, "client");
    options.tls_ca = NULL;
    options.tls_context = context;
    assert_words(refuses(f, url, &options, EVLOCK_EINVAL), "tls_context");
    SSL_CTX_free(context);
}

/* To OpenSSL, a name that begins with a dot stands for all hosts below it. */
static const char *const no_hosts[] = {".",           ".test",   ".wild.test", "..",  "a..test",       "a.test..",
                                       "*.wild.test", "a b",     "a/b",        "a@b", "\xc3\xa4.test", "127.1",
                                       "10.0.0.256",  "a.test.1"};

static void a_tls_name_is_that_of_a_host(void **state) {
    static const char *const others[] = {"", "%x:", "%x", "[::1]", "1:2", ":", "a:6379", "a.te\nst"};
    struct fixture *f = *state;
    evlock_client_options options = trusting(f);
    for (size_t i = 0; i < sizeof(no_hosts) / sizeof(no_hosts[0]); i++) {
        options.tls_name = no_hosts[i];
        print_message("\"%s\"\n", options.tls_name);
        assert_words(refuses(f, url_of(f, "localhost"), &options, EVLOCK_EINVAL), "tls_name");
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        options.tls_name = others[i];
        print_message("\"%s\"\n", options.tls_name);
        assert_words(refuses(f, url_of(f, "localhost"), &options, EVLOCK_EINVAL), "tls_name");
    }
}

/* The longest that can be asked for has 255 bytes, and a dot at its end is one of them. */
static void a_tls_name_is_not_too_long(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = trusting(f);
    char name[257] = {0};
    memset(name, 'a', 255);
    options.tls_name = name;
    fails(f, url_of(f, "localhost"), &options, EVLOCK_ECERT, "hostname mismatch");
    name[255] = '.';
    assert_words(refuses(f, url_of(f, "localhost"), &options, EVLOCK_EINVAL), "tls_name");
    name[255] = 'a';
    assert_words(refuses(f, url_of(f, "localhost"), &options, EVLOCK_EINVAL), "tls_name");
}

/* The same of a URL's host. */
static void a_host_is_one_that_certificates_can_be_of(void **state) {
    struct fixture *f = *state;
    char url[128], urls[256];
    for (size_t i = 0; i < sizeof(no_hosts) / sizeof(no_hosts[0]); i++) {
        evlock_client_options options = trusting(f);
        const char *host = strcmp(no_hosts[i], "a b") == 0   ? "a%20b"
                           : strcmp(no_hosts[i], "a/b") == 0 ? "a%2Fb"
                           : strcmp(no_hosts[i], "a@b") == 0 ? "a%40b"
                                                             : no_hosts[i];
        print_message("%s\n", host);
        snprintf(url, sizeof(url), "rediss://%s", host);
        assert_words(refuses(f, url, &options, EVLOCK_EURL), "URL: no certificate");
        snprintf(urls, sizeof(urls), "quorum:redis://a rediss://b %s", url);
        assert_words(refuses(f, urls, &options, EVLOCK_EURL), "the URL of node 2: no certificate");
    }
}

/* Nobody asks for it where a tls_name takes its place, or without TLS. */
static void a_host_that_is_not_asked_for_may_be_any(void **state) {
    struct fixture *f = *state;
    evlock_client_options options = trusting(f);
    options.tls_name = "localhost";
    refuses(f, "quorum:rediss://127.1 rediss://127.1", &options, EVLOCK_ESAME); /* which is found later */
    options = client_options(f);
    refuses(f, "quorum:redis://127.1 redis://127.1", &options, EVLOCK_ESAME);
}

static void options_of_tls_are_of_no_use_without_it(void **state) {
    struct fixture *f = *state;
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    char urls[512];
    for (int i = 0; i < 4; i++) {
        evlock_client_options options = client_options(f);
        options.tls_ca = i == 0 ? cert_file("authority") : NULL;
        options.tls_cert = i == 1 ? cert_file("client") : NULL;
        options.tls_key = i == 1 ? cert_key_file("client") : NULL;
        options.tls_name = i == 2 ? "localhost" : NULL;
        options.tls_context = i == 3 ? context : NULL;
        assert_words(refuses(f, f->server->tcp_url, &options, EVLOCK_EINVAL), "rediss://");
        assert_words(refuses(f, f->server->url, &options, EVLOCK_EINVAL), "rediss://");
        snprintf(urls, sizeof(urls), "quorum:%s redis://a redis://b", f->server->url);
        assert_words(refuses(f, urls, &options, EVLOCK_EINVAL), "rediss://");
    }
    SSL_CTX_free(context);
}

/* "+label" and "-label" are a certificate and a key; what is not absolute is in the suite's folder. */
static const char *path_of(const char *name) {
    return *name == '/'   ? name
           : *name == '+' ? cert_file(name + 1)
           : *name == '-' ? cert_key_file(name + 1)
                          : file(name);
}

static void a_file_that_cannot_be_used_is_named(void **state) {
    static const struct {
        const char *ca, *cert, *key, *named;
    } rows[] = {
        {"nothing", NULL, NULL, "nothing"},
        {"empty", NULL, NULL, "empty"},
        {"garbage", NULL, NULL, "garbage"},
        {"", NULL, NULL, ""}, /* the folder itself */
        {"pipe", NULL, NULL, "pipe"},
        {"socket", NULL, NULL, "socket"},
        {"/dev/zero", NULL, NULL, "/dev/zero"},
        {"huge", NULL, NULL, "huge"},
        {"-client", NULL, NULL, "-client"},
        {"broken", NULL, NULL, "broken"},
        {"+authority", "nothing", "-client", "nothing"},
        {"+authority", "empty", "-client", "empty"},
        {"+authority", "garbage", "-client", "garbage"},
        {"+authority", "", "-client", ""},
        {"+authority", "pipe", "-client", "pipe"},
        {"+authority", "socket", "-client", "socket"},
        {"+authority", "/dev/zero", "-client", "/dev/zero"},
        {"+authority", "-client", "-client", "-client"},
        {"+authority", "broken", "-client", "broken"},
        {"+authority", "+client", "nothing", "nothing"},
        {"+authority", "+client", "empty", "empty"},
        {"+authority", "+client", "garbage", "garbage"},
        {"+authority", "+client", "", ""},
        {"+authority", "+client", "pipe", "pipe"},
        {"+authority", "+client", "socket", "socket"},
        {"+authority", "+client", "/dev/zero", "/dev/zero"},
        {"+authority", "+client", "+client", "+client"},
        {"+authority", "+client", "-second", "-second"}, /* of another certificate */
        {"+authority", "+locked", "-locked", "-locked"}, /* encrypted */
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        evlock_client_options options = trusting(f);
        options.tls_ca = path_of(rows[i].ca);
        options.tls_cert = rows[i].cert ? path_of(rows[i].cert) : NULL;
        options.tls_key = rows[i].key ? path_of(rows[i].key) : NULL;
        print_message("%s, %s, %s\n", rows[i].ca, rows[i].cert ? rows[i].cert : "", rows[i].key ? rows[i].key : "");
        const char *words = refuses(f, url_of(f, "localhost"), &options, EVLOCK_ETLS);
        print_message("%s\n", words);
        assert_words(words, path_of(rows[i].named));
        assert_int_in_range(strlen(words), strlen(path_of(rows[i].named)) + 5, 400); /* and why */
    }
}

/* The passphrase would be there to be read. */
static int give_a_passphrase(void *arg) {
    struct fixture *f = arg;
    evlock_client_options options = with_pair(f, "locked");
    evlock_client *client = NULL;
    int ends[2];
    if (setsid() < 0 || pipe(ends) || write(ends[1], "secret\nsecret\n", 14) != 14 || dup2(ends[0], 0))
        return 1;
    int status = evlock_client_new(&client, loop_for_evlock(f->loop), url_of(f, "localhost"), &options);
    char byte;
    if (status != EVLOCK_ETLS || client || !strstr(evlock_last_error(), "encrypted"))
        return 2;
    return read(0, &byte, 1) == 1 && byte == 's' ? 0 : 3;
}

static void nobody_is_asked_for_a_passphrase(void **state) {
    assert_int_equal(in_child(give_a_passphrase, *state), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TLS_TEST(a_name_in_the_certificate_is_trusted),
        TLS_TEST(an_address_in_the_certificate_is_trusted),
        TLS_TEST(another_name_can_be_asked_for),
        TLS_TEST(a_wildcard_stands_for_one_whole_label),
        TLS_TEST(the_systems_certificates_are_trusted_by_default),
        TLS_TEST(a_chain_is_followed),
        TLS_TEST(both_versions_of_tls_work),
        TLS_TEST(a_password_is_taken_over_tls),
        TLS_TEST(a_quorum_may_have_both_kinds_of_nodes),
        TLS_TEST(a_certificate_that_is_not_to_be_trusted),
        TLS_TEST(trust_that_fails_is_not_tried_again_soon),
        TLS_TEST(trust_comes_back_with_a_good_certificate),
        TLS_TEST(a_certificate_that_goes_bad_ends_no_lease),
        TLS_TEST(a_client_certificate_is_shown),
        TLS_TEST(a_client_certificate_may_be_refused),
        TLS_TEST(a_plain_server_behind_rediss),
        TLS_TEST(a_server_that_answers_something_else),
        TLS_TEST(a_tls_server_behind_redis),
        TLS_TEST(a_tls_server_that_answers_behind_redis),
        TLS_TEST(a_server_that_is_silent_in_the_handshake),
        TLS_TEST(nothing_of_the_login_leaves_before_the_server_is_verified),
        TLS_TEST(nothing_goes_in_the_clear),
        TLS_TEST(the_name_is_asked_for),
        TLS_TEST(the_dot_at_the_end_and_the_zone_are_left_out),
        TLS_TEST(a_session_is_resumed),
        TLS_TEST(a_session_is_resumed_by_another_connection),
        TLS_TEST(a_session_that_is_in_use_is_offered_by_no_other_connection),
        TLS_TEST(each_node_resumes_its_own_session),
        TLS_TEST(a_session_outlives_failures),
        TLS_TEST(a_session_ends_when_the_files_change),
        TLS_TEST(a_session_of_before_is_not_kept_after_a_change),
        TLS_TEST(a_new_ca_is_read),
        TLS_TEST(all_authorities_of_a_file_are_trusted),
        TLS_TEST(a_new_pair_is_read),
        TLS_TEST(a_file_that_is_replaced_is_read_whatever_its_times),
        TLS_TEST(a_file_that_is_gone_is_missed_by_each_connection),
        TLS_TEST(a_pipe_in_the_place_of_a_file_stops_nothing),
        TLS_TEST(a_file_that_is_written_over_is_read),
        TLS_TEST(a_context_of_ones_own_may_verify_nothing),
        TLS_TEST(a_context_of_ones_own_may_verify_all),
        TLS_TEST(a_context_of_ones_own_may_take_parts),
        TLS_TEST(errors_of_the_caller_harm_nothing_and_stay),
        TLS_TEST(no_error_is_left_behind),
        TLS_TEST(a_child_frees_and_the_parent_goes_on),
        TLS_TEST(options_that_do_not_fit_together_are_refused),
        TLS_TEST(a_tls_name_is_that_of_a_host),
        TLS_TEST(a_tls_name_is_not_too_long),
        TLS_TEST(a_host_is_one_that_certificates_can_be_of),
        TLS_TEST(a_host_that_is_not_asked_for_may_be_any),
        TLS_TEST(options_of_tls_are_of_no_use_without_it),
        TLS_TEST(a_file_that_cannot_be_used_is_named),
        TLS_TEST(nobody_is_asked_for_a_passphrase),
    };
    return run_tls_suite("tls", tests, sizeof(tests) / sizeof(tests[0]));
}
