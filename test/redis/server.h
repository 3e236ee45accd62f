/*
 * A private server for the tests: a real redis-server or valkey-server process on a unix socket in a folder of its own,
 * and on a loopback port when asked. With EVLOCK_TEST_TLS=1 the port is there always, and for TLS alone. Owns the
 * process, the folder and one synchronous connection by which tests look at the keys and give orders. Never saves data,
 * never touches a server that it did not start.
 *
 * Functions that cannot do their work fail the running cmocka test, so call them in the thread that runs it.
 */
#ifndef EVLOCK_TEST_SERVER_H
#define EVLOCK_TEST_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <hiredis/hiredis.h>

#include "../folder.h"

struct server {
    pid_t pid;   /* 0: not running */
    int port;    /* of 127.0.0.1, and of ::1 if `ipv6`; 0: no TCP */
    int kept[2]; /* sockets that keep it, and the one of a cluster, for as long as the server has a folder */
    bool ipv6;   /* the machine has an IPv6 loopback, and the server listens there */
    bool tls;    /* the port is for TLS */
    bool paused;
    char folder[FOLDER_SIZE]; /* its working directory */
    char socket[96];          /* the unix socket's path */
    char socket_url[128];     /* of the unix socket, for evlock_client_new() */
    char url[128];            /* the same, or, with TLS, `tcp_url` */
    char tcp_url[64];         /* of 127.0.0.1; "" without TCP */
    const char *const *extra; /* the extra arguments, for restarts */
    redisContext *side;       /* the tests' own connection; NULL until used */
};

/*
 * Starts the program that EVLOCK_TEST_SERVER names (default redis-server) and waits until it answers. `extra` are more
 * arguments, ended by NULL, which win over the harness's own; NULL for none; they must outlive the server. The first
 * may be the path of a file of options.
 */
void server_start(struct server *server, bool tcp, const char *const *extra);
/* "redis" or "rediss", of the URL of a port. */
const char *server_scheme(void);
/* Why no server can be started as the environment asks for it; NULL: they can. */
const char *server_missing(void);
/* Ends the process and removes its folder. Harmless when it was not started. */
void server_stop(struct server *server);
/* Kills the process as a crash would; the folder stays. */
void server_kill9(struct server *server);
/* Kills it if it runs, and starts it again at the same addresses, without its data. */
void server_restart(struct server *server);
/* SIGSTOP: connections stay open and accept bytes, but nothing is answered. Returns when it has stopped. */
void server_pause(struct server *server);
/* SIGCONT. Harmless when it is not paused. */
void server_resume(struct server *server);

/* One command on the side connection, formatted as by hiredis; fails the test when there is no answer. The caller frees
 * the reply, which may be an error. Must not be called while the server is paused. */
redisReply *server_command(struct server *server, const char *format, ...);
/* As server_command(), and again when the connection ended meanwhile, as where a server changes its role: only for what
 * changes nothing. */
redisReply *server_ask(struct server *server, const char *format, ...);
/* As server_command(), for commands whose answer is not looked at; an error reply fails the test. */
void server_do(struct server *server, const char *format, ...);
/* As server_command(), for integer answers; anything else fails the test. */
long long server_integer(struct server *server, const char *format, ...);
/* The number that follows these words in a section of INFO; 0 if they are not there. */
long long server_info(struct server *server, const char *section, const char *words);
/* How often a command was run since the start or CONFIG RESETSTAT, also by scripts; `command` in lower case. */
long long server_calls(struct server *server, const char *command);
/* How often a command was refused before it ran, likewise. */
long long server_refusals(struct server *server, const char *command);
/* How many errors with this code it has answered since the start or CONFIG RESETSTAT. */
long long server_errors(struct server *server, const char *code);

/* Whether the key exists. */
bool key_exists(struct server *server, const char *key);
/* Whether the key is a string of exactly these bytes. */
bool key_is(struct server *server, const char *key, const void *value, size_t len);
/* A copy of the key's string, ended by a zero, of at most `size` - 1 bytes; returns its length, or -1 for no string. */
ssize_t key_value(struct server *server, const char *key, void *value, size_t size);
/* Its PTTL in milliseconds: -1 without expiry, -2 without key. */
int64_t key_ttl(struct server *server, const char *key);

#endif
