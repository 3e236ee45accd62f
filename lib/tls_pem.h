/*
 * PEM: what a text says of whom a client trusts, and of itself, put into a context of OpenSSL's. Where the text comes
 * from it does not know: it opens no file, and asks nobody for a passphrase.
 */
#ifndef EVL_TLS_PEM_H
#define EVL_TLS_PEM_H

#include <openssl/types.h>

#include "secret.h"
#include "status.h"

/* What a text is to hold. */
enum tls_pem {
    TLS_PEM_CA,   /* certificates of authorities, which are trusted */
    TLS_PEM_CERT, /* the client's own certificate, followed by those of its signers */
    TLS_PEM_KEY,  /* its key; the certificate is in the context already, and is compared with it */
    TLS_PEM_KINDS
};

/* The context takes it, or is of no use any more. EVLOCK_OK; EVLOCK_ETLS, and why; EVLOCK_ENOMEM. OpenSSL's queue of
 * errors is empty before; what it holds afterwards is about this text. */
struct trouble evl_tls_pem_take(SSL_CTX *context, enum tls_pem kind, const struct secret *text);

#endif
