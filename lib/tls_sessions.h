/*
 * Sessions: of each server those by which the next conversations with it are shorter, a few of each, and the newest
 * first. It owns the sessions that it keeps, but only hands them on: it never looks into one, nor frees any. A
 * struct ssl_session_st is what OpenSSL calls an SSL_SESSION.
 */
#ifndef EVL_TLS_SESSIONS_H
#define EVL_TLS_SESSIONS_H

#include <evlock/evlock.h>

/* So many are kept of a server: as many as it may have connections, with one that takes another's place. */
#define TLS_SESSIONS_EACH 4

/* So many are kept of all servers. */
#define TLS_SESSIONS_MAX (EVLOCK_NODES_MAX * TLS_SESSIONS_EACH)

struct tls_session {
    struct ssl_session_st *session;
    char *host; /* of the server */
    int port;
};

/* Zeroed: there are none. */
struct tls_sessions {
    struct tls_session kept[TLS_SESSIONS_MAX]; /* the newest is the last */
    unsigned count;
};

/* Keeps the server's session. What is returned is the caller's to free: one that has no room any more, or this one, for
 * which there is no memory. NULL: neither. */
struct ssl_session_st *evl_tls_sessions_keep(struct tls_sessions *sessions, const char *host, int port,
                                             struct ssl_session_st *session);

/* Takes out the newest of the server; NULL: there is none. A server may resume a session once only, so nobody else is
 * to have it. */
struct ssl_session_st *evl_tls_sessions_take(struct tls_sessions *sessions, const char *host, int port);

/* Takes out one of any server; NULL: there is none left. */
struct ssl_session_st *evl_tls_sessions_take_any(struct tls_sessions *sessions);

#endif
