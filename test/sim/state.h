/*
 * What the files of a simulated server share: the server, its sessions, and a command on its way. Nobody outside of
 * them includes this; see server.h.
 */
#ifndef EVLOCK_SIM_STATE_H
#define EVLOCK_SIM_STATE_H

#include <sys/queue.h>

#include "server.h"
#include "store.h"
#include "world/resp.h"

#define DATABASES 16

/* A channel or a pattern that a session listens to. */
struct subscription {
    TAILQ_ENTRY(subscription) next;
    struct item name;
};

struct slots;

struct refusal {
    TAILQ_ENTRY(refusal) next;
    unsigned count;
    char *verb, *error;
};

/* The digests of the scripts that a server has been given. */
struct script_set {
    char (*shas)[41];
    size_t count, room;
};

struct sim_session {
    TAILQ_ENTRY(sim_session) next;
    sim_server *server;
    sim_output output;
    sim_ended ended;
    void *arg;
    int64_t id;
    int64_t since; /* when it was connected */
    unsigned db;
    bool may_command; /* it needs no AUTH, or has it behind it */
    bool running;     /* a command of its own, after which an end waits */
    bool ending;
    bool quiet;  /* it is told nothing */
    bool asking; /* its next command may be about a slot that is on its way here */
    struct requests requests;
    TAILQ_HEAD(, subscription) subscriptions;
    int64_t subscribed;           /* how many */
    int64_t written;              /* of the server, when its last command had run */
    int64_t wait_for, wait_until; /* WAIT: for so many replicas; 0: it is not waiting */
};

struct sim_server {
    struct store stores[DATABASES];
    TAILQ_HEAD(, sim_session) sessions;
    TAILQ_HEAD(, refusal) refusals;
    struct script_set scripts;
    int64_t now, started; /* us of its clock */
    int64_t last_id;      /* of a session */
    enum sim_make make;
    uint64_t random;
    unsigned replicas;
    bool lagging;    /* replicas have what they are said to have received */
    int64_t written; /* the number of writes */
    int64_t received[SIM_REPLICAS_MAX];
    char *password;
    char run_id[41], replid[41];
    char replid2[41];    /* of the server whose data it took over; else zeros */
    struct slots *slots; /* of a cluster; NULL: it is in none */
    sim_watch watch, watch_refused;
    void *watch_arg;
    struct output reply;        /* what is being written to a session */
    struct output script_reply; /* what the running script's command answers */
};

/* --- A command on its way ----------------------------------------------------------------------------------------- */

struct command;

struct call {
    sim_server *server;
    sim_session *session;
    const struct command *command;
    int argc;
    const char *const *argv; /* each ended by a zero */
    const size_t *lens;
    struct output *reply;
};

/* command.flags; KEY and so on: its first argument is a key, all are, or those that are counted before them */
enum {
    WRITES = 1,
    NO_SCRIPT = 2,
    LOGIN = 4,
    PUBSUB = 8,
    NO_AUTH = 16,
    KEY = 32,
    KEYS = 64,
    COUNTED_KEYS = 128,
    VALKEY_9 = 256,
    REDIS_8 = 512,
};

struct command {
    const char *name; /* "client|id": of a container */
    int arity;        /* with the name; at least that, if negative */
    unsigned flags;
    void (*run)(struct call *call); /* NULL: a container */
};

/* Each kind of commands has its table, ended by one without name. */
extern const struct command admin_commands[], key_commands[], pubsub_commands[], script_commands[], slot_commands[],
    string_commands[], zset_commands[];

/* Runs the last command of the session's input; answers into the server's reply. */
void command_from_session(sim_session *session);
/* Runs what a script calls, answering into call->reply; only argc, argv, lens, server and session are filled in. */
void command_from_script(struct call *call);

/* Whether a refusal fits the command; if so, answers with it. */
bool refusal_use(const struct call *call);

/* A new one, for a process or a history. */
void server_draw_id(sim_server *server, char id[41]);

/* Of a cluster: whether the server has the keys of the command; if not, answers who has. In a script, false is all. */
bool slots_serve(const struct call *call);
bool slots_serve_script(const struct call *call);
/* Whether the server is a replica there. */
bool slots_follow(const sim_server *server);

/* --- For the commands --------------------------------------------------------------------------------------------- */

static inline struct store *call_store(const struct call *call) {
    return &call->server->stores[call->session->db];
}

static inline int64_t now_ms(const sim_server *server) {
    return server->now / 1000;
}

/* Whether an argument is this word, in any case. */
bool argument_is(const struct call *call, int at, const char *word);
/* Each of these answers with an error if it returns false. */
bool integer_argument(const struct call *call, int at, int64_t *ret);
/* As integer_argument(), for one that must not be negative, with the words for that; NULL: Redis's usual ones. */
bool positive_argument(const struct call *call, int at, const char *words, int64_t *ret);
bool float_argument(const struct call *call, int at, double *ret);
/* The key in the argument, if it has this type; NULL if there is none. */
bool typed_key(const struct call *call, int at, enum type type, struct entry **ret);
/* A hash, a list or a sorted set without items is gone. */
void drop_if_empty(const struct call *call, struct entry *entry);

void answer_syntax_error(const struct call *call);
void answer_wrong_arity(const struct call *call);

/* --- Sessions ----------------------------------------------------------------------------------------------------- */

/* Ends it now, or after its command if it runs one. */
void session_end(sim_session *session);
/* Writes what is in the reply, and empties that. */
void session_write(sim_session *session, struct output *reply);
void session_unsubscribe_all(sim_session *session);
/* How many replicas have what was written before its last command. */
unsigned session_replicas(const sim_session *session);

#endif
