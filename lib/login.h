/*
 * The login of a connection, by the steps that its role needs: who the user is, which server process answers, what data
 * it has, the scripts. All is sent at once but for what must know an answer first. It owns what may still run of the
 * connection before. It refuses a server without locks; whether one has forgotten
 * some, it never judges.
 */
#ifndef EVL_LOGIN_H
#define EVL_LOGIN_H

#include "connection.h"
#include "credentials.h"
#include "server.h"
#include "shards.h"
#include "wire.h"

struct login;

/* What the owner of a login does with it. */
struct login_hooks {
    /* The server said which process it is. May be NULL. */
    void (*met)(struct login *login);
    /* What a node of a cluster said of that, now or when it was asked anew. NULL: it is not asked. */
    void (*table)(struct login *login, const struct reply *reply);
    /* Writes the key of a mark of the server's history: the first, or one that is as good; false: it has none. NULL:
     * the server grants nothing over this connection, and its history is not asked for. */
    bool (*mark)(struct login *login, unsigned nth, char ret[SHARDS_MARK_SIZE]);
    /* All steps are done. `settled`: nothing of the connection before can still run. */
    void (*done)(struct login *login, bool settled);
};

/* What the connection is for, and so what is asked of the server. */
enum login_role {
    LOGIN_TO_SEND,
    LOGIN_TO_SCOUT,    /* it asks for the table of a cluster, and nothing else */
    LOGIN_TO_LISTEN,   /* on a server with locks */
    LOGIN_TO_SENTINEL, /* which has no locks: to ask it, or to listen there */
};

struct login {
    struct connection connection;
    const struct login_hooks *hooks;
    LIST_ENTRY(login) link; /* among those with the same credentials */
    struct credentials *credentials;
    enum login_role role;
    const char *channel;  /* where the connection will listen; NULL: nowhere */
    bool in_cluster;      /* the server is one of a cluster, and was chosen for what it has of that */
    int open;             /* steps that are not answered yet */
    struct server server; /* as this login finds it */
    struct server before; /* as the last one that served has found it */
    int64_t lost_id;      /* of the last connection that ended with commands unanswered; 0: unknown */
    bool unsettled;       /* commands of an ended connection may still run */
    bool killed;          /* the connection before has been ended on the server */
    uint32_t missed;      /* what servers of the connections before lacked, until this one serves */
    bool entered;         /* credentials were taken, or none were needed */
    bool again;           /* CONNECTING: refused credentials were asked for once more */
    bool owes;            /* it has not logged in yet with the newest that were given */
};

/* Sets up a login of zeroed memory, by credentials that it shares. */
void evl_login_init(struct login *login, struct credentials *credentials, const struct login_hooks *hooks);

/* It shares them no longer. */
void evl_login_end(struct login *login);

/* Whether it listens, or is about to: it can send nothing more, and not log in anew. */
bool evl_login_is_last(const struct login *login);

/* There are new credentials: all logins that share them use them as soon as can be, but for those that are the last of
 * their connection. */
void evl_logins_renew(struct credentials *credentials);

/* Hook of its connection: begins the login. */
bool evl_login_greet(struct connection *connection);

/* Hook of its connection: a step is answered. */
void evl_login_greeted(struct connection *connection, int answered, const struct reply *reply);

/* Hook of its connection: it ended with commands unanswered, which the next login may have to settle. */
void evl_login_lost(struct connection *connection);

/* Loads every script, unless that is under way; false: out of memory. */
bool evl_login_load_scripts(struct login *login);

/* Asks a node of a cluster anew what it says of that; false: it cannot be asked now. */
bool evl_login_ask_table(struct login *login);

/* What is sent next is for a slot that is on its way there; false: out of memory. */
bool evl_login_ask_for_coming(struct login *login);

/* In a cluster, what is sent next may begin or prolong a belief, and must not run in another history than was waited
 * out. Unless that was confirmed lately, the server is asked, and one that has another is left before the answer is
 * heard. */
void evl_login_confirm_history(struct login *login, int64_t now);

/* The same, wherever it is. */
static inline void evl_login_confirm(struct login *login, int64_t now) {
    if (login->in_cluster)
        evl_login_confirm_history(login, now);
}

/* Digests are of no use on this connection: scripts are sent whole from now on. */
void evl_login_spell(struct login *login, const char *why);

/* The server lacks something, for this reason: a line of the log, once for each connection. */
void evl_login_lacks(struct login *login, enum evlock_missing what, const char *why);

/* The server's clock is to be had neither in scripts nor by a plain command, as far as it is known. */
static inline bool evl_login_has_no_clock(const struct login *login) {
    return login->server.hides_clock && !login->server.clock.server;
}

/* A script could not read the server's clock, for this reason: asks for it. False: there is none to be had. */
bool evl_login_bring_clock(struct login *login, const char *why);

/* The server's clock, which is known. One that is not quite new is asked for anew, ahead of what is sent now. */
int64_t evl_login_brought_clock(struct login *login, int64_t now);

/* The server's clock as a command of this form is to bring it; 0: it brings none, or the server's scripts read it, or
 * it is not known yet. */
static inline int64_t evl_login_clock(struct login *login, const struct form *form, int64_t now) {
    return login->server.clock.server && evl_form_has(form, ARG_CLOCK) ? evl_login_brought_clock(login, now) : 0;
}

/* It is logged in: what the server has not given is lacking, too. */
void evl_login_take_stock(struct login *login);

/* What the server lacks, as far as it is known; of one that is not connected, what it lacked before. */
uint32_t evl_login_missing(const struct login *login);

/* Whether it found the server process that the connection before led to. */
bool evl_login_is_same_process(const struct login *login);

/* Whether it found another one; both are false if either is unknown. */
bool evl_login_is_other_process(const struct login *login);

/* Whether the server's data may have another history than before. */
bool evl_login_has_other_data(const struct login *login);

/* It serves: only now is the connection before done with. */
void evl_login_keep(struct login *login);

/* Asserts what must be true between two inputs; see check.h. */
void evl_login_check(const struct login *login);

#endif
