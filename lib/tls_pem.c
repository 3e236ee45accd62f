/* PEM; see tls_pem.h. */
#include "tls_pem.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "tls_errors.h"

/* What is read of a text, and whether it wanted a passphrase. */
struct tls_text {
    BIO *bio;
    bool encrypted;
};

/* A program that waits for events asks nobody for a passphrase. */
static int tls_pem_on_encrypted(char *buffer, int size, int writing, void *encrypted) {
    (void)writing;
    if (size > 0)
        buffer[0] = '\0';
    *(bool *)encrypted = true;
    return -1;
}

/* Whether nothing but the text's end kept OpenSSL from finding more in it. */
static bool tls_pem_is_at_end(void) {
    unsigned long code = ERR_peek_last_error();

    if (ERR_GET_LIB(code) != ERR_LIB_PEM || ERR_GET_REASON(code) != PEM_R_NO_START_LINE)
        return false;
    ERR_clear_error();
    return true;
}

static bool tls_pem_take_trust(SSL_CTX *context, struct tls_text *text) {
    X509_STORE *store = SSL_CTX_get_cert_store(context);
    bool taken = false;
    X509 *cert;

    while ((cert = PEM_read_bio_X509_AUX(text->bio, NULL, tls_pem_on_encrypted, &text->encrypted))) {
        taken = X509_STORE_add_cert(store, cert);
        X509_free(cert);
        if (!taken)
            break;
    }
    return taken && tls_pem_is_at_end();
}

static bool tls_pem_take_chain(SSL_CTX *context, struct tls_text *text) {
    X509 *cert = PEM_read_bio_X509_AUX(text->bio, NULL, tls_pem_on_encrypted, &text->encrypted);
    bool taken = cert && SSL_CTX_use_certificate(context, cert);

    X509_free(cert);
    while (taken && (cert = PEM_read_bio_X509(text->bio, NULL, tls_pem_on_encrypted, &text->encrypted))) {
        taken = SSL_CTX_add0_chain_cert(context, cert);
        if (!taken)
            X509_free(cert);
    }
    return taken && tls_pem_is_at_end();
}

static bool tls_pem_take_key(SSL_CTX *context, struct tls_text *text) {
    EVP_PKEY *key = PEM_read_bio_PrivateKey(text->bio, NULL, tls_pem_on_encrypted, &text->encrypted);
    bool taken = key && SSL_CTX_use_PrivateKey(context, key) && SSL_CTX_check_private_key(context);

    EVP_PKEY_free(key);
    return taken;
}

static bool (*const tls_pem_takers[TLS_PEM_KINDS])(SSL_CTX *, struct tls_text *) = {
    [TLS_PEM_CA] = tls_pem_take_trust,
    [TLS_PEM_CERT] = tls_pem_take_chain,
    [TLS_PEM_KEY] = tls_pem_take_key,
};

/* Why it was not taken. */
static const char *tls_pem_reason(const struct tls_text *text) {
    if (text->encrypted)
        return "it is encrypted, and no passphrase is asked for";
    return tls_pem_is_at_end() ? "no certificate is in it" : evl_tls_errors_reason(ERR_peek_error());
}

struct trouble evl_tls_pem_take(SSL_CTX *context, enum tls_pem kind, const struct secret *text) {
    struct tls_text read = {BIO_new_mem_buf(text->bytes, (int)text->len), false};
    struct trouble trouble = evl_no_trouble;

    if (!read.bio)
        return evl_tls_no_memory;
    if (!tls_pem_takers[kind](context, &read))
        trouble = (struct trouble){EVLOCK_ETLS, tls_pem_reason(&read)};
    BIO_free(read.bio);
    return trouble;
}
