/*
 * A Redis of the simulation: a server in this process that takes the bytes of clients and gives the bytes that a real
 * one would answer (RESP2, Redis 7.0), running Lua scripts in real Lua 5.1. It owns its keys, its sessions and its
 * clock. It does no I/O, reads no clock, and draws nothing at random but from its seed.
 *
 * It runs each command when its last byte was fed; to delay, split and lose bytes is the caller's business. One thread.
 */
#ifndef EVLOCK_SIM_SERVER_H
#define EVLOCK_SIM_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sim_server sim_server;
typedef struct sim_session sim_session; /* a connection as the server sees it */

/*
 * The callbacks below may look at the server (the functions under "Looks") and keep notes; they must not feed it, close
 * a session or change anything else of it.
 */

/* What the server writes to a session: replies and pushes, in order. */
typedef void (*sim_output)(void *arg, const char *bytes, size_t len);
/* The server has ended the session (CLIENT KILL, QUIT, a protocol error, a restart, …), after all of its output. The
 * session must not be used any more. Not called by sim_session_close(). */
typedef void (*sim_ended)(void *arg);

/* --- Servers ------------------------------------------------------------------------------------------------------ */

/* `seed` is for its run_id and replication ids, which differ between seeds. Its clock stands at 0 until set, which
 * is also its start: it counts as up for as long as its clock says. */
sim_server *sim_server_new(unsigned seed);
/* Sessions that are still open are dropped without a word. */
void sim_server_free(sim_server *server);
/* The server's own clock, in microseconds of its unix time. Keys expire by it, in whole milliseconds as in Redis: a key
 * is there until the end of the millisecond that is its expiry. Set it before anything is fed. */
void sim_server_set_time(sim_server *server, int64_t us);
/* From now on, new sessions must AUTH with this password (of the user `default`); NULL: none is needed. */
void sim_server_set_password(sim_server *server, const char *password);
/* What it says that it is, and the commands in place of scripts that it has: Redis 7.0, which has none, at first; SET
 * with IFEQ, and DELIFEQ or DELEX. */
enum sim_make { SIM_REDIS_7, SIM_VALKEY_9, SIM_REDIS_8 };
void sim_server_set_make(sim_server *server, enum sim_make make);
/* How many replicas WAIT is told of, at once. 0 at first. */
void sim_server_set_replicas(sim_server *server, unsigned replicas);

/* --- Replicas that are behind ------------------------------------------------------------------------------------- */

#define SIM_REPLICAS_MAX 4

/* From now on WAIT tells of a replica only when that has what was written before the last command of its session, and
 * its session stands still meanwhile, which sim_session_resume() ends. No replica has anything at first. */
void sim_server_lag(sim_server *server);
/* How much has been written; a replica has so much of it (of those that are set, from 0). */
int64_t sim_server_written(const sim_server *server);
void sim_server_received(sim_server *server, unsigned replica, int64_t written);
/* Answers the session's WAIT if enough have it, or its time is up, and goes on with what was fed meanwhile. */
void sim_session_resume(sim_session *session);
/* By the server's clock, when the time of the session's WAIT is up; INT64_MAX: it has none, or does not wait. */
int64_t sim_session_waits(const sim_session *session);

/* --- Sessions ----------------------------------------------------------------------------------------------------- */

sim_session *sim_server_connect(sim_server *server, sim_output output, sim_ended ended, void *arg);
/* Bytes from the client, in any pieces. Each complete command is run and answered at once, by one output or none. If
 * the session ends by what it was fed, the rest is not run, and ended() is called before this returns. */
void sim_session_feed(sim_session *session, const char *bytes, size_t len);
/* The client's end is gone, and the server has noticed. A partial command is dropped. */
void sim_session_close(sim_session *session);
/* What CLIENT ID answers, and the arg that the session was made with. */
int64_t sim_session_id(const sim_session *session);
void *sim_session_arg(const sim_session *session);

/* --- Faults ------------------------------------------------------------------------------------------------------- */

/* As a new process: new run_id, uptime counted from now, scripts gone, every session ended. */
void sim_server_restart(sim_server *server, bool keep_data, bool keep_replid);
void sim_server_flush_scripts(sim_server *server);
/* The key goes, or all (NULL); a string comes, with a ttl in ms. */
void sim_server_forget(sim_server *server, const char *key);
void sim_server_put(sim_server *server, const char *key, const char *value, int64_t ttl);
void sim_server_kill_sessions(sim_server *server);
/* A replica as it is now: the data, and as long an uptime, with a clock of its own from here on. No sessions, scripts,
 * password, refusals or watch. */
sim_server *sim_server_copy(const sim_server *server);
/* A failover: the server takes over the copy's data and uptime, with a new run_id and replication id; scripts are gone
 * and every session is ended. Its clock, password, refusals and watch stay. Frees the copy. `same`: it is the same
 * process, which has got the copy from another one and then been made a primary again: it keeps its run_id. */
void sim_server_become(sim_server *server, sim_server *copy, bool same);
/*
 * The next `count` commands with this name are answered by this error, which goes without '-' and line end, and are not
 * run. A name is as in an ACL, in any case: "evalsha", "client|kill", or "script" for all of its kind; it is met from
 * sessions and in scripts alike. "" is any command but those of a login (AUTH, SELECT, CLIENT, INFO, SCRIPT) and QUIT.
 * Of several refusals that fit, the oldest is used up first.
 */
void sim_server_refuse(sim_server *server, const char *verb, const char *error, unsigned count);
/* Whether there are refusals that are not used up. */
bool sim_server_refuses(const sim_server *server);
/* Withdraws all refusals that are left. */
void sim_server_allow(sim_server *server);

/* --- Looks -------------------------------------------------------------------------------------------------------- */

/* All of them see database 0. */

/* The key's string, which lives until the key is changed; NULL if it has none, or is expired. */
const char *sim_server_get(sim_server *server, const char *key, size_t key_len, size_t *len);
/* The expiry in microseconds of its clock (whole milliseconds); -1: none; -2: no such key. */
int64_t sim_server_expiry(sim_server *server, const char *key, size_t key_len);
/* The member at a place of the key's sorted set, as a string above; NULL: it has none there. */
const char *sim_server_member(sim_server *server, const char *key, size_t key_len, size_t place, size_t *len);
/* How many sessions listen to the channel; whether this one listens to any. */
int64_t sim_server_listeners(const sim_server *server, const char *channel, size_t len);
bool sim_session_listens(const sim_session *session);
/* Whether its last command was ASKING. */
bool sim_session_asks(const sim_session *session);
/* Every key that is not expired, of any type. */
void sim_server_each_key(sim_server *server, void (*look)(void *arg, const char *key, size_t len), void *arg);

/* Called just before each command that a session runs, or that is refused, and each write that a script is about to do
 * for that session. Each argument ends with a zero that is not counted. */
typedef void (*sim_watch)(void *arg, sim_session *session, int argc, const char *const *argv, const size_t *lens);
/* NULL: not, or no more. */
void sim_server_watch(sim_server *server, sim_watch watch, sim_watch refused, void *arg);

#endif
