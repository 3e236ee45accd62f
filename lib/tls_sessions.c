/* Sessions; see tls_sessions.h. */
#include "tls_sessions.h"

#include <stdbool.h>
#include <string.h>

#include "check.h"
#include "memory.h"

static bool tls_sessions_is_of(const struct tls_session *kept, const char *host, int port) {
    return kept->port == port && strcmp(kept->host, host) == 0;
}

#ifdef EVL_CHECKS
static void tls_sessions_check(const struct tls_sessions *sessions) {
    assert(sessions->count <= TLS_SESSIONS_MAX);
    for (unsigned i = 0; i < sessions->count; i++) {
        const struct tls_session *kept = &sessions->kept[i];
        unsigned of_server = 0;
        assert(kept->session && kept->host);
        for (unsigned k = 0; k < sessions->count; k++)
            of_server += tls_sessions_is_of(&sessions->kept[k], kept->host, kept->port);
        assert(of_server <= TLS_SESSIONS_EACH);
    }
}
#endif

static struct ssl_session_st *tls_sessions_take_at(struct tls_sessions *sessions, unsigned index) {
    struct ssl_session_st *session = sessions->kept[index].session;

    evl_free(sessions->kept[index].host);
    sessions->count--;
    memmove(&sessions->kept[index], &sessions->kept[index + 1], (sessions->count - index) * sizeof(sessions->kept[0]));
    evl_check(tls_sessions_check(sessions));
    return session;
}

/* Makes room for one more: the oldest goes, of this server, or else of all. */
static struct ssl_session_st *tls_sessions_make_room(struct tls_sessions *sessions, const char *host, int port) {
    unsigned count = 0, oldest = 0;

    for (unsigned i = sessions->count; i > 0; i--)
        if (tls_sessions_is_of(&sessions->kept[i - 1], host, port)) {
            count++;
            oldest = i - 1;
        }
    if (count == TLS_SESSIONS_EACH || sessions->count == TLS_SESSIONS_MAX)
        return tls_sessions_take_at(sessions, count == TLS_SESSIONS_EACH ? oldest : 0);
    return NULL;
}

struct ssl_session_st *evl_tls_sessions_keep(struct tls_sessions *sessions, const char *host, int port,
                                             struct ssl_session_st *session) {
    char *copy = evl_dup(host, strlen(host));
    struct ssl_session_st *dropped;

    if (!copy)
        return session;
    dropped = tls_sessions_make_room(sessions, host, port);
    sessions->kept[sessions->count++] = (struct tls_session){session, copy, port};
    evl_check(tls_sessions_check(sessions));
    return dropped;
}

struct ssl_session_st *evl_tls_sessions_take(struct tls_sessions *sessions, const char *host, int port) {
    for (unsigned i = sessions->count; i > 0; i--)
        if (tls_sessions_is_of(&sessions->kept[i - 1], host, port))
            return tls_sessions_take_at(sessions, i - 1);
    return NULL;
}

struct ssl_session_st *evl_tls_sessions_take_any(struct tls_sessions *sessions) {
    return sessions->count > 0 ? tls_sessions_take_at(sessions, sessions->count - 1) : NULL;
}
