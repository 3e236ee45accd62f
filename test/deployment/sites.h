/*
 * One of each deployment that a client can have, all at once, as columns of a table: what a client says is tried in all
 * of them. Owns the servers and nothing of a client. No server is ever stopped for good, and no key is removed: each
 * test has names of its own.
 *
 * As with the servers that it is built on, what cannot be done fails the running cmocka test.
 */
#ifndef EVLOCK_TEST_SITES_H
#define EVLOCK_TEST_SITES_H

#include "../redis/harness.h"

enum site_kind {
    SITE_ONE,      /* one server */
    SITE_FAILOVER, /* one with a replica, and failover_wait_ms */
    SITE_QUORUM,   /* three independent servers */
    SITE_SENTINEL, /* a primary and a replica, with a sentinel */
    SITE_CLUSTER,  /* three masters */
    SITES,
};

struct site {
    enum site_kind kind;
    const char *name;
    struct server *servers[3]; /* that grant locks */
    size_t len;
    struct server *watcher; /* the sentinel; NULL: clients ask the servers */
    char url[512];          /* for evlock_client_new() */
};

/* Starts all. The first three have run for some seconds then. */
void sites_start(void);
/* Ends all. Harmless when they were not started. */
void sites_stop(void);
struct site *site_at(enum site_kind kind);

/* For the next test: what was paused goes on, every user but the default one is gone, and a history that is waited for
 * is older than any wait. */
void site_mend(struct site *site);

/* All is silent from here on: the servers, or also the sentinel. */
void site_pause(struct site *site, bool watcher);
void site_resume(struct site *site);
/* One command for every server that grants locks, formatted as by hiredis; an error reply fails the test. */
void site_do(struct site *site, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* How often a command was run on all of them. */
long long site_calls(struct site *site, const char *command);
/* How many of their connections have a line in CLIENT LIST that says this. */
int site_connections(struct site *site, const char *words);
int server_connections(struct server *server, const char *words);
/* On how many of them the key is; and on one of them its PTTL. */
size_t site_having(struct site *site, const char *key);
int64_t site_ttl(struct site *site, const char *key);

/* Options of a client of this deployment, which records in the fixture. */
evlock_client_options site_options(struct fixture *fixture, const struct site *site);
/* NULL for `options`: those. Freed by the clean-up of the fixture. */
evlock_client *site_client(struct fixture *fixture, const struct site *site, const evlock_client_options *options);

#endif
