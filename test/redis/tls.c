/* The tests' TLS, by OpenSSL; see tls.h. An end has two memory BIOs: the socket's bytes go by hand. */
#include "tls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "certs.h"

/* A server that knows TLS finds fault with what it is told of it; one that does not, with the word. */
const char *tls_missing(const char *program) {
    char command[256], line[256];
    bool unknown = false;
    snprintf(command, sizeof(command), "echo tls-port none | '%s' - 2>&1", program);
    FILE *said = popen(command, "r");
    while (said && fgets(line, sizeof(line), said))
        unknown |= strstr(line, "Bad directive") != NULL;
    if (said)
        pclose(said);
    return unknown ? "the server was built without TLS" : NULL;
}

/* --- Servers and clients ------------------------------------------------------------------------------------------ */

const char *const *tls_server_args(void) {
    const char *const files[][2] = {
        {"--tls-cert-file", cert_file("server")},        {"--tls-key-file", cert_key_file("server")},
        {"--tls-client-cert-file", cert_file("client")}, {"--tls-client-key-file", cert_key_file("client")},
        {"--tls-ca-cert-file", cert_file("authority")},
    };
    static const char *args[] = {"--tls-auth-clients", "optional", "--tls-replication", "yes",
                                 "--tls-cluster",      "yes",      [16] = NULL};
    memcpy(args + 6, files, sizeof(files));
    return args;
}

void tls_trust(evlock_client_options *options) {
    if (!tls_wanted())
        return;
    options->tls_ca = cert_file("authority");
    options->tls_cert = cert_file("client");
    options->tls_key = cert_key_file("client");
}

void tls_trust_by_default(void) {
    setenv("SSL_CERT_FILE", cert_file("authority"), 1);
}

void tls_leave_error(void) {
    if (tls_wanted())
        ERR_raise_data(ERR_LIB_USER, ERR_R_PASSED_INVALID_ARGUMENT, "the program's own");
}

bool tls_take_error(void) {
    if (!tls_wanted())
        return true;
    unsigned long code = ERR_get_error();
    bool alone = !ERR_peek_error();
    ERR_clear_error();
    return alone && ERR_GET_LIB(code) == ERR_LIB_USER && ERR_GET_REASON(code) == ERR_R_PASSED_INVALID_ARGUMENT;
}

/* --- The server's end of a connection ----------------------------------------------------------------------------- */

struct tls_end {
    int fd;
    SSL *ssl;
    BIO *in;
    BIO *out;
    bool over; /* the socket's end was read */
};

/* One for the process: it is never freed, so that resumption can be met. */
static SSL_CTX *server_context(void) {
    static SSL_CTX *context;
    if (context)
        return context;
    context = SSL_CTX_new(TLS_server_method());
    if (!context || SSL_CTX_use_certificate_file(context, cert_file("server"), SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, cert_key_file("server"), SSL_FILETYPE_PEM) != 1)
        abort();
    return context;
}

struct tls_end *tls_end_new(int fd) {
    struct tls_end *end = calloc(1, sizeof(*end));
    if (!end)
        abort();
    *end = (struct tls_end){.fd = fd, .ssl = SSL_new(server_context()), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem())};
    if (!end->ssl || !end->in || !end->out)
        abort();
    SSL_set_bio(end->ssl, end->in, end->out);
    SSL_set_accept_state(end->ssl);
    return end;
}

void tls_end_free(struct tls_end *end) {
    if (!end)
        return;
    SSL_free(end->ssl);
    free(end);
}

/* What OpenSSL has written goes out; false when nobody takes it. */
static bool flush(struct tls_end *end) {
    char bytes[16384];
    int len;
    while ((len = BIO_read(end->out, bytes, sizeof(bytes))) > 0)
        if (send(end->fd, bytes, (size_t)len, MSG_NOSIGNAL) != len)
            return false;
    return true;
}

static void fill(struct tls_end *end) {
    char bytes[16384];
    ssize_t len;
    while ((len = recv(end->fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
        BIO_write(end->in, bytes, (int)len);
    end->over |= len == 0 || errno != EAGAIN;
}

/* The client in the same thread has an error queue of its own. */
ssize_t tls_end_recv(struct tls_end *end, void *bytes, size_t len) {
    fill(end);
    int got = SSL_read(end->ssl, bytes, (int)len);
    int error = got > 0 ? SSL_ERROR_NONE : SSL_get_error(end->ssl, got);
    ERR_clear_error();
    bool taken = flush(end);
    if (got > 0)
        return got;
    if (error != SSL_ERROR_WANT_READ || end->over || !taken)
        return 0;
    errno = EAGAIN;
    return -1;
}

ssize_t tls_end_send(struct tls_end *end, const void *bytes, size_t len) {
    int put = SSL_write(end->ssl, bytes, (int)len);
    ERR_clear_error();
    return put > 0 && flush(end) ? put : -1;
}
