/*
 * What the tests of TLS share: files and certificates, a server whose certificate changes from test to test, the tests'
 * own server (tls_peer.h), and the usual stories of a client. Owns a folder and that server; all of it ends with a
 * suite.
 */
#ifndef EVLOCK_TEST_TLS_SUITE_H
#define EVLOCK_TEST_TLS_SUITE_H

#include "certs.h"
#include "harness.h"
#include "tls_peer.h"

/* Starts nothing by itself; see start_peer(). */
extern struct tls_peer peer;

/* Runs the tests, each set up with a server that has a good certificate, and no client yet. */
int run_tls_suite(const char *name, const struct CMUnitTest *tests, size_t count);
int tls_setup(void **state);
int tls_teardown(void **state);
#define TLS_TEST(function) cmocka_unit_test_setup_teardown(function, tls_setup, tls_teardown)

/* --- Files -------------------------------------------------------------------------------------------------------- */

/* The path of a file in the suite's folder ("": of that), until the eighth call after this one. There are "empty",
 * "garbage", "broken" and "huge", and what is no file: "pipe" and "socket". Beside the usual certificates, those of
 * tls_suite.c are there. */
const char *file(const char *name);
/* In one step, so that nobody reads the half of it. */
void copy(const char *from, const char *to);

/* --- The suite's server ------------------------------------------------------------------------------------------- */

/* A server's second port is so far from its first (see server.c); no cluster takes it here. */
enum { TLS_PORT = 10000 };

/* Its port for TLS; the other one is for the rest. */
int tls_port(const struct fixture *f);
/* From now on a server, or the suite's, has this certificate. NULL for `client_authority`: it asks for none; for
 * `protocols`: all there are.
 */
void serve_by(struct server *server, const char *cert, const char *client_authority, const char *protocols);
void serve(struct fixture *f, const char *cert, const char *client_authority, const char *protocols);
/* With this host; until the next call. */
const char *url_of(const struct fixture *f, const char *host);

/* --- Clients ------------------------------------------------------------------------------------------------------ */

/* Of a client that trusts the tests' authority, and comes back soon; and of one with a certificate of its own. */
evlock_client_options trusting(struct fixture *f);
evlock_client_options with_pair(struct fixture *f, const char *name);

/* A lock is had there, kept and given back. */
void works_on(struct fixture *f, evlock_client *client);
void works(struct fixture *f, const char *url, const evlock_client_options *options);
/* The connection is of no use, for this reason and in these words, and an acquire is told so. */
void fails(struct fixture *f, const char *url, const evlock_client_options *options, int status, const char *words);
void assert_words(const char *said, const char *words);

/* --- The tests' own server ---------------------------------------------------------------------------------------- */

/* Starts it, by default with the certificate "server". It stops at the end of the test, or before. */
void start_peer(struct fixture *f, const struct tls_peer_options *options);
/* Begins the fixture's record anew, for a call that follows. */
struct record *anew(struct fixture *f);
/* Waits for the end of that call while the peer is at work, and returns its status. */
int ends_by_peer(struct fixture *f, int returned);
evlock *held_by_peer(struct fixture *f, const char *name, const evlock_options *options);
int extend_by_peer(struct fixture *f, evlock *lock);
int release_by_peer(struct fixture *f, evlock *lock);

#endif
