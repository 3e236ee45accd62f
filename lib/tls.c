/* TLS; see tls.h. */
#include "tls.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "check.h"
#include "memory.h"
#include "tls_errors.h"
#include "tls_files.h"
#include "tls_names.h"
#include "tls_sessions.h"

struct tls {
    struct tls_files files;
    struct tls_name name; /* which servers' certificates must have; TLS_NAME_NONE: that of their URL */
    SSL_CTX *context;
    bool own;                     /* the context is made of the files */
    bool stale;                   /* its files are other ones by now, and cannot be used */
    unsigned generation;          /* of the context */
    struct tls_sessions sessions; /* of this context's conversations */
};

struct tls_peer {
    struct tls *tls;
    char *host; /* of the server */
    int port;
    SSL *ssl;             /* NULL: there is no conversation */
    SSL_SESSION *offered; /* the session that is to be resumed; NULL: none, or it has become of no use */
    unsigned generation;  /* of the context of this conversation */
    bool heard;           /* the first byte of this conversation has come */
    struct words words;   /* of the last trouble */
};

/* --- What a client has -------------------------------------------------------------------------------------------- */

static void tls_forget_sessions(struct tls *tls) {
    SSL_SESSION *session;

    while ((session = evl_tls_sessions_take_any(&tls->sessions)))
        SSL_SESSION_free(session);
}

/* Puts a context made of the files in the place of the present one, or leaves that as it is. */
static struct trouble tls_load(struct tls *tls, struct words *words) {
    SSL_CTX *context;
    struct trouble trouble = evl_tls_files_load(&tls->files, &context, words);

    if (trouble.status != EVLOCK_OK)
        return trouble;
    SSL_CTX_free(tls->context);
    tls->context = context;
    tls->generation++;
    tls_forget_sessions(tls);
    return evl_no_trouble;
}

/* Files that cannot be used may be half of a change: they are read again for the next connection, changed or not. */
static struct trouble tls_refresh(struct tls *tls, struct words *words) {
    struct trouble trouble = evl_no_trouble;

    if (tls->own && (evl_tls_files_changed(&tls->files) || tls->stale))
        trouble = tls_load(tls, words);
    tls->stale = trouble.status != EVLOCK_OK;
    return trouble;
}

static struct trouble tls_validate(const evlock_client_options *options) {
    if (!options->tls_cert != !options->tls_key)
        return (struct trouble){EVLOCK_EINVAL, "tls_cert and tls_key belong together"};
    if (options->tls_context && (options->tls_ca || options->tls_cert))
        return (struct trouble){EVLOCK_EINVAL, "tls_context excludes tls_ca, tls_cert and tls_key"};
    if (options->tls_name && evl_tls_names_of(options->tls_name).kind == TLS_NAME_NONE)
        return (struct trouble){EVLOCK_EINVAL,
                                "tls_name must be a host's name or a whole address, up to 255 bytes long"};
    return evl_no_trouble;
}

static struct trouble tls_make(struct tls *tls, const evlock_client_options *options, struct words *words) {
    struct tls_errors errors;
    struct trouble trouble;

    if (!evl_tls_files_take(&tls->files, options))
        return (struct trouble){EVLOCK_ENOMEM, "no memory for a client"};
    if (options->tls_name)
        tls->name = evl_tls_names_of(options->tls_name);
    evl_tls_errors_set_aside(&errors);
    tls->own = !options->tls_context;
    if (tls->own) {
        (void)evl_tls_files_changed(&tls->files);
        trouble = tls_load(tls, words);
    } else {
        trouble = evl_no_trouble;
        SSL_CTX_up_ref(options->tls_context);
        tls->context = options->tls_context;
    }
    evl_tls_errors_put_back(&errors);
    return trouble;
}

struct trouble evl_tls_new(struct tls **ret, const evlock_client_options *options, struct words *words) {
    struct trouble trouble = tls_validate(options);
    struct tls *tls;

    if (trouble.status != EVLOCK_OK)
        return trouble;
    tls = evl_alloc(sizeof(*tls));
    if (!tls)
        return (struct trouble){EVLOCK_ENOMEM, "no memory for a client"};
    trouble = tls_make(tls, options, words);
    if (trouble.status == EVLOCK_OK)
        *ret = tls;
    else
        evl_tls_free(tls);
    return trouble;
}

static struct tls_name tls_name_for(const struct tls *tls, const char *host) {
    return tls->name.kind != TLS_NAME_NONE ? tls->name : evl_tls_names_of(host);
}

struct trouble evl_tls_expect(const struct tls *tls, const char *host) {
    if (tls_name_for(tls, host).kind != TLS_NAME_NONE)
        return evl_no_trouble;
    return (struct trouble){EVLOCK_EURL,
                            "no certificate can be of this host: it is neither a name nor a whole address"};
}

void evl_tls_free(struct tls *tls) {
    struct tls_errors errors;

    if (!tls)
        return;
    evl_tls_errors_set_aside(&errors);
    tls_forget_sessions(tls);
    SSL_CTX_free(tls->context);
    evl_tls_errors_put_back(&errors);
    evl_tls_files_free(&tls->files);
    evl_free(tls);
}

/* --- A conversation ----------------------------------------------------------------------------------------------- */

static_assert(TLS_NAME_SIZE == TLSEXT_MAXLEN_host_name + 1, "the longest name has room");

/* Whom the certificate must be of. Only names can be asked for: a server has no choice of addresses. Without a
 * name OpenSSL would take the certificate of anybody who is trusted, so that is refused whatever went before. */
static bool tls_expect(SSL *ssl, struct tls_name *name) {
    assert(name->kind != TLS_NAME_NONE);
    if (name->kind == TLS_NAME_ADDRESS)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name->text);
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return name->kind == TLS_NAME_HOST && SSL_set1_host(ssl, name->text) && SSL_set_tlsext_host_name(ssl, name->text);
}

/* Whatever a context of the caller's says: all is taken that is said, and all is handed on that has come. */
static void tls_be_whole(SSL *ssl) {
    SSL_clear_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE);
    SSL_set_mode(ssl, SSL_MODE_AUTO_RETRY);
}

static bool tls_connect_buffers(SSL *ssl) {
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());

    if (!in || !out) {
        BIO_free(in);
        BIO_free(out);
        return false;
    }
    SSL_set_bio(ssl, in, out);
    return true;
}

/* As the client. What has no memory for that says so in the queue alone, and could not be used. */
static bool tls_take_part(SSL *ssl) {
    SSL_set_connect_state(ssl);
    return !ERR_peek_error();
}

static void tls_resume(struct tls_peer *peer) {
    peer->generation = peer->tls->generation;
    peer->offered = evl_tls_sessions_take(&peer->tls->sessions, peer->host, peer->port);
    if (peer->offered)
        SSL_set_session(peer->ssl, peer->offered);
}

static struct trouble tls_begin(struct tls_peer *peer, const char *host) {
    struct tls_name name = tls_name_for(peer->tls, host);
    SSL *ssl = SSL_new(peer->tls->context);

    if (ssl)
        tls_be_whole(ssl);
    if (!ssl || !tls_connect_buffers(ssl) || !tls_expect(ssl, &name) || !tls_take_part(ssl)) {
        SSL_free(ssl);
        return evl_tls_no_memory;
    }
    peer->ssl = ssl;
    peer->heard = false;
    tls_resume(peer);
    return evl_no_trouble;
}

/* Whom the next conversation is with; false: no memory. */
static bool tls_turn_to(struct tls_peer *peer, const char *host, int port) {
    char *copy = evl_dup(host, strlen(host));

    if (!copy)
        return false;
    evl_free(peer->host);
    peer->host = copy;
    peer->port = port;
    return true;
}

struct trouble evl_tls_begin(struct tls_peer **ret_peer, struct tls *tls, const char *host, int port,
                             struct words *words) {
    struct tls_peer *peer = *ret_peer ? *ret_peer : evl_alloc(sizeof(*peer));
    struct trouble stale, trouble;
    struct tls_errors errors;

    if (!peer)
        return evl_tls_no_memory;
    *ret_peer = peer;
    peer->tls = tls;
    evl_tls_end(peer);
    if (!tls_turn_to(peer, host, port))
        return evl_tls_no_memory;
    evl_tls_errors_set_aside(&errors);
    stale = tls_refresh(tls, words);
    ERR_clear_error();
    trouble = tls_begin(peer, host);
    evl_tls_errors_put_back(&errors);
    return trouble.status == EVLOCK_OK ? stale : trouble;
}

static void tls_drop_offered(struct tls_peer *peer) {
    SSL_SESSION_free(peer->offered);
    peer->offered = NULL;
}

/* That of this conversation; or the one that was offered, where it did not come to that. It is the caller's. NULL:
 * there is none that can be resumed. */
static SSL_SESSION *tls_session_left(struct tls_peer *peer) {
    SSL_SESSION *session = peer->offered;

    peer->offered = NULL;
    if (SSL_is_init_finished(peer->ssl)) {
        SSL_SESSION_free(session);
        session = SSL_get1_session(peer->ssl);
    }
    if (session && SSL_SESSION_is_resumable(session) && peer->generation == peer->tls->generation)
        return session;
    SSL_SESSION_free(session);
    return NULL;
}

/* One that is not said to have ended well is not to be resumed, says OpenSSL, and nothing is said here. */
void evl_tls_end(struct tls_peer *peer) {
    SSL_SESSION *session;
    struct tls_errors errors;

    if (!peer || !peer->ssl)
        return;
    evl_tls_errors_set_aside(&errors);
    session = tls_session_left(peer);
    if (session)
        SSL_SESSION_free(evl_tls_sessions_keep(&peer->tls->sessions, peer->host, peer->port, session));
    SSL_set_shutdown(peer->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(peer->ssl);
    peer->ssl = NULL;
    evl_tls_errors_put_back(&errors);
}

void evl_tls_peer_free(struct tls_peer *peer) {
    if (!peer)
        return;
    evl_tls_end(peer);
    evl_free(peer->host);
    evl_free(peer);
}

/* --- What goes wrong in it ---------------------------------------------------------------------------------------- */

/* Why a call of OpenSSL failed; its queue holds nothing else. */
static struct trouble tls_fail(struct tls_peer *peer) {
    const struct tls_failure failure = {
        .code = ERR_peek_error(),
        .verified = SSL_get_verify_result(peer->ssl),
        .wants_certificate = SSL_get0_peer_CA_list(peer->ssl) != NULL,
    };

    tls_drop_offered(peer);
    return evl_tls_errors_explain(&failure, &peer->words);
}

/* What came of a call that did not succeed: it may only want more to be handed in. */
static struct trouble tls_outcome(struct tls_peer *peer, int result) {
    switch (SSL_get_error(peer->ssl, result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return evl_no_trouble;
    case SSL_ERROR_ZERO_RETURN:
        return (struct trouble){EVLOCK_EUNREACHABLE, "the server ended TLS"};
    default:
        return tls_fail(peer);
    }
}

/* --- What is said ------------------------------------------------------------------------------------------------- */

/* Each record begins with its kind. */
static bool tls_is_record(const void *bytes) {
    unsigned char kind;

    memcpy(&kind, bytes, 1);
    return kind >= SSL3_RT_CHANGE_CIPHER_SPEC && kind <= SSL3_RT_APPLICATION_DATA;
}

struct trouble evl_tls_feed(struct tls_peer *peer, const void *bytes, size_t len) {
    struct tls_errors errors;
    bool fed;

    if (len > 0 && !peer->heard && !tls_is_record(bytes))
        return (struct trouble){EVLOCK_EPROTOCOL, "the server does not speak TLS"};
    peer->heard |= len > 0;
    evl_tls_errors_set_aside(&errors);
    fed = len <= INT_MAX && BIO_write(SSL_get_rbio(peer->ssl), bytes, (int)len) == (int)len;
    evl_tls_errors_put_back(&errors);
    return fed ? evl_no_trouble : evl_tls_no_memory;
}

struct trouble evl_tls_shake(struct tls_peer *peer, bool *ret_open) {
    struct tls_errors errors;
    struct trouble trouble;
    int result;

    evl_tls_errors_set_aside(&errors);
    result = SSL_do_handshake(peer->ssl);
    trouble = result == 1 ? evl_no_trouble : tls_outcome(peer, result);
    *ret_open = result == 1;
    evl_tls_errors_put_back(&errors);
    return trouble;
}

struct trouble evl_tls_take(struct tls_peer *peer, void *bytes, size_t size, size_t *ret_len) {
    struct tls_errors errors;
    struct trouble trouble;
    int result;

    evl_tls_errors_set_aside(&errors);
    result = SSL_read_ex(peer->ssl, bytes, size, ret_len);
    trouble = result == 1 ? evl_no_trouble : tls_outcome(peer, result);
    if (result != 1)
        *ret_len = 0;
    evl_tls_errors_put_back(&errors);
    return trouble;
}

struct trouble evl_tls_put(struct tls_peer *peer, const void *bytes, size_t len) {
    struct tls_errors errors;
    struct trouble trouble;
    size_t written;
    int result;

    evl_tls_errors_set_aside(&errors);
    result = SSL_write_ex(peer->ssl, bytes, len, &written);
    trouble = result == 1 ? evl_no_trouble : tls_fail(peer);
    evl_tls_errors_put_back(&errors);
    return trouble;
}

size_t evl_tls_sealed(struct tls_peer *peer, const char **ret_bytes) {
    char *bytes;
    long len = BIO_get_mem_data(SSL_get_wbio(peer->ssl), &bytes);

    *ret_bytes = bytes;
    return len > 0 ? (size_t)len : 0;
}

void evl_tls_sent(struct tls_peer *peer, size_t len) {
    BIO *out = SSL_get_wbio(peer->ssl);
    char bytes[4096];

    while (len > 0) {
        int count = BIO_read(out, bytes, len < sizeof(bytes) ? (int)len : (int)sizeof(bytes));
        if (count <= 0)
            break;
        len -= (size_t)count;
    }
}

void evl_tls_describe(const struct tls_peer *peer, struct words *ret) {
    snprintf(ret->text, sizeof(ret->text), "%s, %s%s", SSL_get_version(peer->ssl), SSL_get_cipher_name(peer->ssl),
             SSL_session_reused(peer->ssl) ? ", resumed" : "");
}
