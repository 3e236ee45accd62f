/* TLS in a build without OpenSSL, in the place of tls.c: no client can come to more than the first of these. */
#include "tls.h"

struct trouble evl_tls_new(struct tls **ret, const evlock_client_options *options, struct words *words) {
    (void)ret, (void)options, (void)words;
    return (struct trouble){EVLOCK_ESCHEME, "rediss:// needs TLS, which is not built in"};
}

void evl_tls_free(struct tls *tls) {
    (void)tls;
}

static const struct trouble tls_none = {EVLOCK_ESCHEME, "TLS is not built in"};

struct trouble evl_tls_expect(const struct tls *tls, const char *host) {
    (void)tls, (void)host;
    return tls_none;
}

struct trouble evl_tls_begin(struct tls_peer **peer, struct tls *tls, const char *host, int port, struct words *words) {
    (void)peer, (void)tls, (void)host, (void)port, (void)words;
    return tls_none;
}

void evl_tls_end(struct tls_peer *peer) {
    (void)peer;
}

void evl_tls_peer_free(struct tls_peer *peer) {
    (void)peer;
}

struct trouble evl_tls_feed(struct tls_peer *peer, const void *bytes, size_t len) {
    (void)peer, (void)bytes, (void)len;
    return tls_none;
}

struct trouble evl_tls_shake(struct tls_peer *peer, bool *ret_open) {
    (void)peer;
    *ret_open = false;
    return tls_none;
}

struct trouble evl_tls_take(struct tls_peer *peer, void *bytes, size_t size, size_t *ret_len) {
    (void)peer, (void)bytes, (void)size;
    *ret_len = 0;
    return tls_none;
}

struct trouble evl_tls_put(struct tls_peer *peer, const void *bytes, size_t len) {
    (void)peer, (void)bytes, (void)len;
    return tls_none;
}

size_t evl_tls_sealed(struct tls_peer *peer, const char **ret_bytes) {
    (void)peer, (void)ret_bytes;
    return 0;
}

void evl_tls_sent(struct tls_peer *peer, size_t len) {
    (void)peer, (void)len;
}

void evl_tls_describe(const struct tls_peer *peer, struct words *ret) {
    (void)peer;
    ret->text[0] = '\0';
}
