/*
 * Names of servers, as certificates have them: what a certificate must be of when a client connects to a host. It knows
 * neither OpenSSL nor options, allocates nothing, and resolves no name.
 */
#ifndef EVL_TLS_NAMES_H
#define EVL_TLS_NAMES_H

/* Of the longest name that a server can be asked for, with its NUL. */
enum { TLS_NAME_SIZE = 256 };

enum tls_name_kind {
    TLS_NAME_NONE, /* no certificate can be of it */
    TLS_NAME_HOST,
    TLS_NAME_ADDRESS
};

struct tls_name {
    enum tls_name_kind kind;
    char text[TLS_NAME_SIZE]; /* "": none */
};

/* What a certificate for this host must have. */
struct tls_name evl_tls_names_of(const char *host);

#endif
