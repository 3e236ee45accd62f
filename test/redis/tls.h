/*
 * Whether the tests' servers speak TLS, which EVLOCK_TEST_TLS=1 asks for, and what servers, clients and relays need for
 * it. Owns the certificates' use; the files are those of test/certs. Never decides anything for a test of TLS itself.
 */
#ifndef EVLOCK_TEST_TLS_H
#define EVLOCK_TEST_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include <evlock/evlock.h>

/* Whether it was asked for. */
static inline bool tls_wanted(void) {
    const char *wanted = getenv("EVLOCK_TEST_TLS");
    return wanted && strcmp(wanted, "1") == 0;
}
/* Why it cannot be had, of this build or of this server program; NULL: it can. */
const char *tls_missing(const char *program);

/* A server's arguments for it, ended by NULL; they stay. */
const char *const *tls_server_args(void);
/* What these clients trust, and their own certificate; nothing when it was not asked for. */
void tls_trust(evlock_client_options *options);
/* Clients without options trust the tests' authority as the system's, in this process and in those that it starts. */
void tls_trust_by_default(void);

/* Leaves an error of the program's in OpenSSL's queue, and takes it out again: whether it was there, and alone. Nothing
 * and true when TLS was not asked for. */
void tls_leave_error(void);
bool tls_take_error(void);

/* --- The server's end of a connection ----------------------------------------------------------------------------- */

/* TLS that ends here, for who stands between a client and a server. It owns no descriptor. */
struct tls_end;

/* Of an accepted socket. */
struct tls_end *tls_end_new(int fd);
void tls_end_free(struct tls_end *end);
/* As recv() and send() of what is inside, without waiting to read, and with waiting to write. The handshake goes on
 * as the client's part of it comes: until then there is nothing to read. */
ssize_t tls_end_recv(struct tls_end *end, void *bytes, size_t len);
ssize_t tls_end_send(struct tls_end *end, const void *bytes, size_t len);

#endif
