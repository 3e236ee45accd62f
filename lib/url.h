/*
 * URLs: where a server is, or those that know where it is, and who logs in there; and how several stand in one string.
 * A parsed URL owns its strings and wipes the password when it goes. It resolves nothing, and its error texts never
 * quote the URL, which may hold a password.
 */
#ifndef EVL_URL_H
#define EVL_URL_H

#include <stdbool.h>

#include "status.h"

/* What the address of a URL leads to. */
enum url_kind {
    URL_SERVER,
    URL_SENTINELS, /* they know where the server is */
    URL_CLUSTER,   /* nodes of one, which know the others */
};

/* Of a list that has more than one. */
struct url_address {
    char *host;
    int port;
    bool literal;
};

struct url {
    enum url_kind kind;
    char *host;     /* name or address, the first of a list; NULL: a unix socket, or not known */
    char *path;     /* of the unix socket, else NULL */
    char *user;     /* NULL: the default user */
    char *password; /* NULL: none */
    int port;
    int db;
    bool literal;               /* the host is an address, so that there is nothing to resolve */
    bool tls;                   /* it is spoken to over TLS */
    char *master;               /* of sentinels: the name that they know the server by */
    struct url_address *others; /* of a list, behind the first */
    unsigned other_count;
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

/* How many addresses it has. */
static inline unsigned evl_url_addresses(const struct url *url) {
    return 1 + url->other_count;
}

/* The URL of a single server, at one of its addresses, without who logs in there; EVLOCK_OK or EVLOCK_ENOMEM. */
int evl_url_take_address(struct url *ret_url, const struct url *url, unsigned index);

/* The same at an address that a server has announced, spoken to as `url` says, and with its database. EVLOCK_OK,
 * EVLOCK_ENOMEM, or EVLOCK_EURL if that is no address. */
int evl_url_announced(struct url *ret_url, const struct url *url, const char *host, int64_t port);

/* Writes where the server is, as users write it: HOST:PORT, or the path of its socket; "": it is not known. */
void evl_url_write_address(const struct url *url, char ret[EVLOCK_ADDRESS_SIZE]);

/* Wipes and frees who logs in there. */
void evl_url_forget_login(struct url *url);

/* Wipes, frees and zeroes. */
void evl_url_free(struct url *url);

#endif
