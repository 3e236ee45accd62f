/* The tests' own TLS server; see tls_peer.h. */
#include "tls_peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/x509.h>

enum { CHUNK = 16384 };

/* What OpenSSL says of this side is not the client's business, whose thread this is. */
#define QUIETLY(statement)                                                                                             \
    do {                                                                                                               \
        statement;                                                                                                     \
        ERR_clear_error();                                                                                             \
    } while (0)

/* --- One connection ----------------------------------------------------------------------------------------------- */

static void pair_close(struct tls_peer_pair *pair, bool resets) {
    struct linger now = {.l_onoff = 1};
    if (pair->client < 0)
        return;
    if (resets)
        setsockopt(pair->client, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(pair->client);
    close(pair->server);
    SSL_set_shutdown(pair->ssl,
                     SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN); /* or else its session could not be resumed */
    SSL_free(pair->ssl);
    pair->ssl = NULL;
    pair->client = -1;
}

/* Sends raw bytes; false when the connection is of no use any more. */
static bool pair_send(struct tls_peer *peer, struct tls_peer_pair *pair, const void *bytes, size_t len) {
    size_t left = peer->cut_after > pair->sent ? peer->cut_after - pair->sent : 0;
    size_t most = len < left ? len : left;
    ssize_t sent = most ? send(pair->client, bytes, most, MSG_NOSIGNAL) : 0;
    if (sent > 0)
        pair->sent += (size_t)sent;
    return sent == (ssize_t)len;
}

/* Of what waits to be sent, one piece. */
static bool pair_flush(struct tls_peer *peer, struct tls_peer_pair *pair) {
    char bytes[CHUNK];
    size_t most = peer->options.piece && peer->options.piece < CHUNK ? peer->options.piece : CHUNK;
    do {
        int len = BIO_read(pair->out, bytes, (int)most);
        if (len <= 0)
            return true;
        if (!pair_send(peer, pair, bytes, (size_t)len))
            return false;
    } while (!peer->options.piece);
    return true;
}

static bool contains(const char *bytes, size_t len, const char *word) {
    return memmem(bytes, len, word, strlen(word)) != NULL;
}

/* From the client's socket; false at its end. */
static bool pair_receive(struct tls_peer_pair *pair) {
    char bytes[CHUNK];
    for (;;) {
        ssize_t len = pair->deaf ? -1 : recv(pair->client, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (len < 0)
            return pair->deaf || errno == EAGAIN;
        if (len == 0)
            return false;
        pair->raw_login |= contains(bytes, (size_t)len, "AUTH") || contains(bytes, (size_t)len, "HELLO");
        pair->received += (size_t)len;
        BIO_write(pair->in, bytes, (int)len);
    }
}

/* What was decrypted goes to the real server; false when TLS has ended. */
static bool pair_decrypt(struct tls_peer_pair *pair) {
    char bytes[CHUNK];
    int len;
    while ((len = SSL_read(pair->ssl, bytes, sizeof(bytes))) > 0) {
        pair->heard += (size_t)len;
        if (send(pair->server, bytes, (size_t)len, MSG_NOSIGNAL) != len)
            fail_msg("the server behind the TLS peer does not take all: %s", strerror(errno));
    }
    bool alive = SSL_get_error(pair->ssl, len) == SSL_ERROR_WANT_READ;
    ERR_clear_error();
    return alive;
}

static void pair_note_subject(struct tls_peer_pair *pair) {
    X509 *cert = SSL_get_peer_certificate(pair->ssl);
    if (!cert)
        return;
    X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, pair->subject, sizeof(pair->subject));
    X509_free(cert);
}

/* What the real server says is encrypted; false at its end. */
static bool pair_encrypt(const struct tls_peer *peer, struct tls_peer_pair *pair) {
    char bytes[CHUNK];
    size_t most = peer->options.record && peer->options.record < CHUNK ? peer->options.record : CHUNK;
    if (pair->mute || !SSL_is_init_finished(pair->ssl))
        return true;
    for (;;) {
        ssize_t len = recv(pair->server, bytes, most, MSG_DONTWAIT);
        if (len < 0)
            return errno == EAGAIN;
        if (len == 0)
            return false;
        QUIETLY(SSL_write(pair->ssl, bytes, (int)len));
    }
}

/* False when it is to be ended. */
static bool pair_move(struct tls_peer *peer, struct tls_peer_pair *pair) {
    bool received = pair_receive(pair);
    bool alive = pair_decrypt(pair);
    if (alive && !pair->handshake && SSL_is_init_finished(pair->ssl))
        pair->handshake = pair->sent + BIO_pending(pair->out);
    if (alive && SSL_is_init_finished(pair->ssl)) {
        if (!pair->subject[0])
            pair_note_subject(pair);
        alive = pair_encrypt(peer, pair);
    }
    return pair_flush(peer, pair) && alive && received;
}

/* --- All of them -------------------------------------------------------------------------------------------------- */

static int on_name(SSL *ssl, int *alert, void *arg) {
    struct tls_peer_pair *pair = SSL_get_app_data(ssl);
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    (void)alert, (void)arg;
    pair->asked = name != NULL;
    snprintf(pair->name, sizeof(pair->name), "%s", name ? name : "");
    return SSL_TLSEXT_ERR_OK;
}

static void on_message(int sent, int version, int type, const void *bytes, size_t len, SSL *ssl, void *arg) {
    struct tls_peer_pair *pair = SSL_get_app_data(ssl);
    const unsigned char *said = bytes;
    (void)version, (void)arg;
    if (sent)
        return;
    pair->hellos += type == SSL3_RT_HANDSHAKE && len > 0 && said[0] == SSL3_MT_CLIENT_HELLO;
    if (type == SSL3_RT_ALERT && len == 2)
        pair->alert = said[1];
}

static SSL_CTX *context_new(const struct tls_peer_options *options) {
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    int least = options->version ? options->version : TLS1_VERSION;
    if (options->version && options->version < TLS1_2_VERSION)
        SSL_CTX_set_security_level(context, 0);
    if (SSL_CTX_use_certificate_chain_file(context, options->cert) != 1 ||
        SSL_CTX_use_PrivateKey_file(context, options->key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_set_min_proto_version(context, least) != 1 ||
        SSL_CTX_set_max_proto_version(context, options->version) != 1)
        fail_msg("the TLS peer cannot use %s", options->cert);
    if (options->client_ca && SSL_CTX_load_verify_locations(context, options->client_ca, NULL) != 1)
        fail_msg("the TLS peer cannot use %s", options->client_ca);
    if (options->client_ca)
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    if (options->forgetful) {
        SSL_CTX_set_num_tickets(context, 0);
        SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
        SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    }
    SSL_CTX_set_session_id_context(context, (const unsigned char *)"peer", 4);
    SSL_CTX_set_tlsext_servername_callback(context, on_name);
    SSL_CTX_set_msg_callback(context, on_message);
    SSL_CTX_clear_options(context, SSL_OP_NO_RENEGOTIATION);
    return context;
}

void tls_peer_start(struct tls_peer *peer, const struct server *server, const struct tls_peer_options *options) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int narrow = 4096; /* so that a client has to wait for a peer that is deaf */
    memset(peer, 0, sizeof(*peer));
    peer->server = server;
    peer->options = *options;
    peer->cut_after = SIZE_MAX;
    peer->context = context_new(options);
    peer->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    setsockopt(peer->listener, SOL_SOCKET, SO_RCVBUF, &narrow, sizeof(narrow));
    if (peer->listener < 0 || bind(peer->listener, (struct sockaddr *)&address, len) || listen(peer->listener, 64) ||
        getsockname(peer->listener, (struct sockaddr *)&address, &len))
        fail_msg("no TLS peer: %s", strerror(errno));
    peer->port = ntohs(address.sin_port);
    snprintf(peer->url, sizeof(peer->url), "rediss://127.0.0.1:%d", peer->port);
}

void tls_peer_stop(struct tls_peer *peer) {
    if (!peer->context)
        return;
    tls_peer_end(peer, TLS_PEER_LEAVES);
    close(peer->listener);
    SSL_CTX_free(peer->context);
    peer->context = NULL;
}

static void accept_one(struct tls_peer *peer) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int client = accept4(peer->listener, NULL, NULL, SOCK_CLOEXEC), on = 1;
    if (client < 0)
        return;
    if (peer->count == TLS_PEER_PAIRS)
        fail_msg("the TLS peer has had too many connections");
    struct tls_peer_pair *pair = &peer->pairs[peer->count++];
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", peer->server->socket);
    int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(server, (struct sockaddr *)&address, sizeof(address)))
        fail_msg("the TLS peer cannot connect: %s", strerror(errno));
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    *pair = (struct tls_peer_pair){.client = client, .server = server, .ssl = SSL_new(peer->context)};
    pair->in = BIO_new(BIO_s_mem());
    pair->out = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(pair->in, -1);
    BIO_set_mem_eof_return(pair->out, -1);
    SSL_set_bio(pair->ssl, pair->in, pair->out);
    SSL_set_app_data(pair->ssl, pair);
    SSL_set_accept_state(pair->ssl);
}

bool tls_peer_accept(struct tls_peer *peer) {
    if (peer->context)
        QUIETLY(accept_one(peer));
    return true;
}

bool tls_peer_pump(struct tls_peer *peer) {
    tls_peer_accept(peer);
    for (int i = 0; i < peer->count; i++) {
        struct tls_peer_pair *pair = &peer->pairs[i];
        if (pair->client >= 0 && !pair_move(peer, pair))
            pair_close(pair, peer->resets);
    }
    return true;
}

struct tls_peer_pair *tls_peer_newest(struct tls_peer *peer) {
    struct tls_peer_pair *pair = peer->count ? &peer->pairs[peer->count - 1] : NULL;
    return pair && pair->client >= 0 ? pair : NULL;
}

int tls_peer_alive(const struct tls_peer *peer) {
    int alive = 0;
    for (int i = 0; i < peer->count; i++)
        alive += peer->pairs[i].client >= 0;
    return alive;
}

/* --- What it is told to do ---------------------------------------------------------------------------------------- */

#define FOR_EACH_ALIVE(pair, peer)                                                                                     \
    for (struct tls_peer_pair *pair = (peer)->pairs; pair < (peer)->pairs + (peer)->count; pair++)                     \
        if (pair->client >= 0)

void tls_peer_update_keys(struct tls_peer *peer, bool answered) {
    FOR_EACH_ALIVE(pair, peer) {
        int done;
        QUIETLY(done = SSL_key_update(pair->ssl, answered ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED) &&
                       SSL_do_handshake(pair->ssl));
        if (!done)
            fail_msg("the TLS peer cannot update its keys");
    }
}

void tls_peer_renegotiate(struct tls_peer *peer) {
    FOR_EACH_ALIVE(pair, peer) {
        int done;
        QUIETLY(done = SSL_renegotiate(pair->ssl); SSL_do_handshake(pair->ssl));
        if (!done)
            fail_msg("the TLS peer cannot ask for another handshake");
    }
}

bool tls_peer_asks_for_certificate(struct tls_peer *peer) {
    bool asks = false;
    FOR_EACH_ALIVE(pair, peer) {
        SSL_set_verify(pair->ssl, SSL_VERIFY_PEER, NULL);
        QUIETLY(asks |= SSL_verify_client_post_handshake(pair->ssl) == 1; SSL_do_handshake(pair->ssl));
    }
    return asks;
}

void tls_peer_flush(struct tls_peer *peer) {
    FOR_EACH_ALIVE(pair, peer)
    (void)pair_flush(peer, pair);
}

void tls_peer_say_raw(struct tls_peer *peer, const void *bytes, size_t len) {
    FOR_EACH_ALIVE(pair, peer)
    (void)pair_send(peer, pair, bytes, len);
}

void tls_peer_end(struct tls_peer *peer, enum tls_peer_end how) {
    FOR_EACH_ALIVE(pair, peer) {
        if (how == TLS_PEER_NOTIFIES) {
            QUIETLY(SSL_shutdown(pair->ssl));
            (void)pair_flush(peer, pair);
        }
        pair_close(pair, how == TLS_PEER_RESETS);
    }
}
