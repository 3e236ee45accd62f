/*
 * The benchmark's servers: the first so many of five private ones, on unix sockets, or a cluster, ended with it. This
 * process keeps to one core and the servers to the others: left to itself the scheduler puts them now on one core and
 * now on two, where a round trip takes three times as long. What is asked of the servers over their side connections is
 * never part of what is measured.
 */
#ifndef EVLOCK_BENCH_SERVERS_H
#define EVLOCK_BENCH_SERVERS_H

#include "../deployment/cluster.h"
#include "../redis/server.h"

enum { SERVERS_MAX = 5 };

extern struct server servers[SERVERS_MAX];

/* Those that have the keys among them: a server by itself, or the masters of a cluster. */
struct keepers {
    struct server *at;
    size_t count;
};

/* Starts `count` servers, away from this process's core, or one with TLS and with more arguments, or a cluster of three
 * masters; ends all that run. */
void servers_start(size_t count);
void servers_start_tls(const char *const *extra);
struct cluster *servers_start_cluster(void);
void servers_stop(void);

/* Ends the benchmark unless exactly so many keys are there. */
void check_keys(struct server *server, size_t count);
void check_keys_among(struct keepers keepers, size_t count);
/* Ends the benchmark unless the key has the token, at one of them. */
void check_token(struct keepers keepers, const char *key, const void *token, size_t len);

#endif
