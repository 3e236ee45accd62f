/*
 * A primary with its replicas, and the sentinels that watch them: real processes on loopback ports of their own, for
 * one test or for a suite. Owns the processes, the folder of the files that they rewrite, and nothing of a client. With
 * EVLOCK_TEST_TLS=1 all of them speak TLS, with each other too. Never decides who the primary is: the sentinels do.
 *
 * As with the server that it is built on, what cannot be done fails the running cmocka test.
 */
#ifndef EVLOCK_TEST_SENTINELS_H
#define EVLOCK_TEST_SENTINELS_H

#include "../redis/server.h"

enum {
    GROUP_MAX = 4, /* a primary and its replicas */
    SENTINELS_MAX = 5,
    GROUP_ARGS = 32,
};

/* All zero: what most have, on one machine. */
struct sentinels_options {
    size_t replicas;         /* default 2 */
    size_t sentinels;        /* default 3 */
    int down_after_ms;       /* default 1000 */
    int failover_timeout_ms; /* default 3000: a second failover by itself comes after twice that, at the earliest */
    int min_replicas;        /* min-replicas-to-write; default none */
    int max_lag_s;           /* min-replicas-max-lag; default Redis's own, 10 */
    bool unhurried;          /* the sentinels look at others as seldom as they do elsewhere: then this takes 5 s */
    const char *password;    /* of the servers */
    const char *sentinel_password;
    bool keeping;       /* what the servers have acknowledged is not forgotten when they are killed */
    const int *seen_at; /* by others, each server is seen at this port of 127.0.0.1, … */
    void (*started)(size_t server, int port, void *arg); /* … which leads to its own from this call on; with `arg` */
    void *arg;
};

struct sentinels {
    struct server servers[GROUP_MAX]; /* the first one was the primary at the start */
    size_t servers_len;
    struct server watchers[SENTINELS_MAX];
    size_t watchers_len;
    struct server stale;      /* a sentinel that knows no better; runs when it was started */
    char folder[FOLDER_SIZE]; /* of the files of options */
    const char *password;     /* of the servers; NULL: none */
    bool unhurried;
    char url[256]; /* of all sentinels, for evlock_client_new() */

    /* The arguments of the processes. */
    char files[GROUP_MAX + SENTINELS_MAX + 1][FOLDER_SIZE + 32];
    char numbers[2][16];
    int ports[GROUP_MAX]; /* where the servers are seen */
    char seen[GROUP_MAX][16];
    const char *server_args[GROUP_MAX][GROUP_ARGS];
    const char *watcher_args[SENTINELS_MAX + 1][GROUP_ARGS];
};

/* The name by which the sentinels know the primary. */
#define SENTINELS_NAME "locks"

/* Starts all, and returns when the replicas follow and every sentinel knows all the others, and all servers. NULL for
 * `options`: the defaults. */
void sentinels_start(struct sentinels *group, const struct sentinels_options *options);
/* Ends all, and removes the files. Harmless when it was not started. */
void sentinels_stop(struct sentinels *group);

/* Starts a sentinel again that was killed. It knows what it knew, and finds the others in a second. */
void sentinels_restart(struct sentinels *group, size_t watcher);

/* The URL of the sentinels from `from` to `to` - 1, until the next call, with the servers' password. */
const char *sentinels_url(const struct sentinels *group, size_t from, size_t to);

/* Starts one more sentinel, which calls this server the primary and never learns better, since the servers refuse it:
 * they must have a password. It has no part in failovers. */
void sentinels_start_stale(struct sentinels *group, int server);

/* Which server this sentinel calls the primary; -1: none of the group, or it does not answer. */
int sentinels_said(struct sentinels *group, size_t watcher);
/* Which server all sentinels that run call the primary, and it says so itself; -1: they do not agree. */
int sentinels_primary(struct sentinels *group);
/* Whether the replicas that run, of which there is one, follow that primary, and the sentinels have seen them do so: it
 * can fail over. */
bool sentinels_ready(struct sentinels *group);

/* The planned failover: ordered from the first sentinel that runs. */
void sentinels_fail_over(struct sentinels *group);
/* Waits until the primary is another than `old`, and returns which. */
int sentinels_await_other(struct sentinels *group, int old);
void sentinels_await_ready(struct sentinels *group);

#endif
