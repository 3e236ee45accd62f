/*
 * A server of the tests that speaks TLS and misbehaves as it is told: between a client and the tests' real server, in
 * the test's own thread. It moves bytes only when it is pumped, and counts what it decrypts. It empties the thread's
 * queue of OpenSSL's errors.
 */
#ifndef EVLOCK_TEST_TLS_PEER_H
#define EVLOCK_TEST_TLS_PEER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include <openssl/ssl.h>

#include "server.h"

enum { TLS_PEER_PAIRS = 256 };

struct tls_peer_options {
    const char *cert; /* files */
    const char *key;
    const char *client_ca; /* asks the client for a certificate of this one's; NULL: asks for none */
    int version;           /* the only one; 0: all that OpenSSL has */
    bool forgetful;        /* resumes no session */
    size_t record;         /* so much plaintext goes into a record; 0: as much as fits */
    size_t piece;          /* so much ciphertext is sent in a pump; 0: all there is */
};

struct tls_peer {
    char url[64]; /* of 127.0.0.1, for evlock_client_new() */
    int port;
    const struct server *server;
    struct tls_peer_options options;
    size_t cut_after; /* a connection ends when it was sent so much ciphertext; SIZE_MAX: none does */
    bool resets;      /* such an end is a reset */
    SSL_CTX *context;
    int listener;
    int count; /* connections so far, the first is 0 */
    struct tls_peer_pair {
        int client; /* -1: ended */
        int server;
        SSL *ssl;
        BIO *in, *out;
        bool deaf;      /* what the client sends stays in its socket */
        bool mute;      /* what the server says stays in its socket */
        bool asked;     /* the client asked for `name` */
        bool raw_login; /* what is on the wire has something of a login, unencrypted */
        char name[256];
        char subject[256]; /* of the client's certificate, or "" */
        size_t sent;       /* of ciphertext */
        size_t heard;      /* decrypted bytes */
        size_t received;   /* of ciphertext, and all else */
        size_t handshake;  /* of ciphertext, sent until the client could speak */
        int alert;         /* the last that the client gave; 0: none */
        int hellos;        /* with which a client begins a handshake */
    } pairs[TLS_PEER_PAIRS];
};

/* Listens on 127.0.0.1. Fails the test when it cannot. */
void tls_peer_start(struct tls_peer *peer, const struct server *server, const struct tls_peer_options *options);
/* Harmless when it was not started. */
void tls_peer_stop(struct tls_peer *peer);
/* Accepts and moves what there is, without waiting; true, so as to be put before a condition that is waited for. */
bool tls_peer_pump(struct tls_peer *peer);
/* Accepts only. */
bool tls_peer_accept(struct tls_peer *peer);

/* The newest connection; NULL: there is none, or it has ended. */
struct tls_peer_pair *tls_peer_newest(struct tls_peer *peer);
/* How many have not ended. */
int tls_peer_alive(const struct tls_peer *peer);

/* The same for each of them that is alive. What is to be sent goes with the next pump, but for raw bytes. */
void tls_peer_update_keys(struct tls_peer *peer, bool answered);
void tls_peer_renegotiate(struct tls_peer *peer);
/* Whether any client would have to answer for it: asks for a certificate after the handshake. */
bool tls_peer_asks_for_certificate(struct tls_peer *peer);
void tls_peer_say_raw(struct tls_peer *peer, const void *bytes, size_t len);
/* Sends what waits to be sent, now. */
void tls_peer_flush(struct tls_peer *peer);

/* How all that are alive are ended. */
enum tls_peer_end {
    TLS_PEER_NOTIFIES, /* with TLS's own goodbye, and then the connection's end */
    TLS_PEER_LEAVES,   /* by the connection's end alone */
    TLS_PEER_RESETS,
};
void tls_peer_end(struct tls_peer *peer, enum tls_peer_end how);

#endif
