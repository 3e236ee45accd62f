/* What stands in for the tests' TLS in a build that has none; see tls.h. */
#include "tls.h"

#include <stdlib.h>

const char *tls_missing(const char *program) {
    (void)program;
    return "this build has no TLS";
}

const char *const *tls_server_args(void) {
    abort();
}

void tls_trust(evlock_client_options *options) {
    (void)options;
}

void tls_trust_by_default(void) {
}

void tls_leave_error(void) {
}

bool tls_take_error(void) {
    return true;
}

struct tls_end *tls_end_new(int fd) {
    (void)fd;
    abort();
}

void tls_end_free(struct tls_end *end) {
    (void)end;
}

ssize_t tls_end_recv(struct tls_end *end, void *bytes, size_t len) {
    (void)end;
    (void)bytes;
    (void)len;
    abort();
}

ssize_t tls_end_send(struct tls_end *end, const void *bytes, size_t len) {
    (void)end;
    (void)bytes;
    (void)len;
    abort();
}
