/*
 * URLs: where a server is and who logs in there, and how several stand in one string. A parsed URL owns its strings and
 * wipes the password when it goes. It resolves nothing, and its error texts never quote the URL, which may hold a
 * password.
 */
#ifndef EVL_URL_H
#define EVL_URL_H

#include <stdbool.h>

#include "status.h"

struct url {
    char *host;     /* name or address; NULL: a unix socket */
    char *path;     /* of the unix socket, else NULL */
    char *user;     /* NULL: the default user */
    char *password; /* NULL: none */
    int port;
    int db;
    bool literal; /* the host is an address, so that there is nothing to resolve */
    bool tls;     /* it is spoken to over TLS */
};

/* The URLs in a client's string, which they are parts of. */
struct url_list {
    struct {
        const char *at;
        size_t len;
    } urls[EVLOCK_NODES_MAX];
    unsigned count;
};

/* Finds the URLs in `text`: a single one, or those behind the word for several. They are not looked into. EVLOCK_OK or
 * EVLOCK_EURL. */
struct trouble evl_url_list(struct url_list *ret, const char *text);

/* Parses the `len` bytes of `text`. `*ret_url` is set on success only. EVLOCK_OK, _EURL, _ESCHEME, _EPATH or _ENOMEM;
 * the words may be put together in `words`, and stand without "URL". */
struct trouble evl_url_parse(struct url *ret_url, const char *text, size_t len, struct words *words);

/* Whether both lead to one server, as far as the text says: its databases are no servers of their own. */
bool evl_url_is_same_server(const struct url *one, const struct url *other);

/* A copy that owns its strings, of one that has forgotten who logs in; EVLOCK_OK or EVLOCK_ENOMEM. */
int evl_url_copy(struct url *ret_url, const struct url *url);

/* Wipes and frees who logs in there. */
void evl_url_forget_login(struct url *url);

/* Wipes, frees and zeroes. */
void evl_url_free(struct url *url);

#endif
