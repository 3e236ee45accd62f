/*
 * TLS: verifies a server, and hides what is said to it. OpenSSL does both, between two buffers in memory. This room
 * owns what a client trusts and shows, and each conversation. It never touches a socket, and leaves the thread's queue
 * of OpenSSL's errors as it was found. In a build without OpenSSL, no_tls.c stands in the place of tls.c, and says so.
 */
#ifndef EVL_TLS_H
#define EVL_TLS_H

#include <stdbool.h>
#include <stddef.h>

#include "status.h"

/* What a client trusts, and shows of itself; and of each server the sessions by which the next conversations with it
 * are shorter. */
struct tls;

/* A server as a connection sees it: the conversation. */
struct tls_peer;

/* By a client's options, whose files are read. EVLOCK_OK, _EINVAL, _ESCHEME, _ETLS or _ENOMEM. */
struct trouble evl_tls_new(struct tls **ret, const evlock_client_options *options, struct words *words);

/* Whether the certificates of a server at this host can be expected to be of it, or have a name of their own: EVLOCK_OK
 * or _EURL. */
struct trouble evl_tls_expect(const struct tls *tls, const char *host);

/* Its peers have been freed. NULL is allowed. */
void evl_tls_free(struct tls *tls);

/* Whether the options say anything about TLS. */
static inline bool evl_tls_is_wanted(const evlock_client_options *options) {
    return options->tls_ca || options->tls_cert || options->tls_key || options->tls_name || options->tls_context;
}

/* Begins a conversation with the server at this host, which was expected, and port. Files that
 * changed are read again before. `*peer` is made if it is NULL. EVLOCK_OK; EVLOCK_ETLS: it began, with the files of
 * before, as those of now cannot be used; EVLOCK_ENOMEM. */
struct trouble evl_tls_begin(struct tls_peer **peer, struct tls *tls, const char *host, int port, struct words *words);

/* The end of the conversation, if there is one: its session is kept for the next connection to this server. */
void evl_tls_end(struct tls_peer *peer);

/* NULL is allowed. */
void evl_tls_peer_free(struct tls_peer *peer);

/* Hands in what came from the socket. EVLOCK_OK, _EPROTOCOL or _ENOMEM. */
struct trouble evl_tls_feed(struct tls_peer *peer, const void *bytes, size_t len);

/* Goes on with the handshake, as far as what was handed in reaches. `*ret_open`: the server is verified, and both sides
 * can be heard. EVLOCK_OK, _ECERT or _EPROTOCOL, with words that are the peer's. */
struct trouble evl_tls_shake(struct tls_peer *peer, bool *ret_open);

/* Takes out what was said, up to `size` bytes; 0: no more for now. EVLOCK_OK, _EUNREACHABLE (the server has ended the
 * conversation), _ECERT or _EPROTOCOL. */
struct trouble evl_tls_take(struct tls_peer *peer, void *bytes, size_t size, size_t *ret_len);

/* Says something. EVLOCK_OK, _EPROTOCOL or _ENOMEM. */
struct trouble evl_tls_put(struct tls_peer *peer, const void *bytes, size_t len);

/* What is to be sent by the socket, and that so much of it was. */
size_t evl_tls_sealed(struct tls_peer *peer, const char **ret_bytes);
void evl_tls_sent(struct tls_peer *peer, size_t len);

/* How it is spoken: the version, the cipher, and whether a session was resumed. */
void evl_tls_describe(const struct tls_peer *peer, struct words *ret);

#endif
