/*
 * The login of a connection, by the steps that its sort needs: who the user is, which server process answers, what data
 * it has, the scripts. All is sent at once but for what must know an answer first. It owns what the server said of
 * itself, and what may still run of the connection before. It refuses a server without locks; whether one has forgotten
 * some, it never judges.
 */
#ifndef EVL_LOGIN_H
#define EVL_LOGIN_H

#include "connection.h"
#include "credentials.h"
#include "drift.h"
#include "info.h"
#include "native.h"
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

struct login {
    struct connection connection;
    const struct login_hooks *hooks;
    LIST_ENTRY(login) link; /* among those with the same credentials */
    struct credentials *credentials;
    const char *channel;      /* of a connection that will listen there; else NULL */
    bool to_sentinel;         /* the server is a Sentinel, which has no locks */
    bool in_cluster;          /* the server is one of a cluster, and was chosen for what it has of that */
    bool scouts;              /* it asks for the table of a cluster, and nothing else */
    int open;                 /* steps that are not answered yet */
    int64_t id;               /* this connection's number on the server; 0: unknown */
    int64_t lost_id;          /* of the last connection that ended with commands unanswered */
    char run_id[ID_SIZE];     /* the server process; "": unknown */
    char old_run_id[ID_SIZE]; /* the same of the last connection that served */
    char replid[ID_SIZE];     /* the history of its data, which a promoted replica changes */
    char old_replid[ID_SIZE];
    int64_t started;          /* when the server process began, at the latest; 0: unknown */
    bool inherited;           /* its data may have been another server's, since its process began */
    bool bare;                /* it has replicas, and goes on taking writes when none of them gets these */
    int64_t reigned_since;    /* when the first login of all saw this history, at the latest; 0: it is not known */
    unsigned marks_refused;   /* so many of its marks could not be read there */
    int64_t confirmed_at;     /* that history is known to be the server's since, by what was asked then; 0: not anew */
    int64_t asked_history_at; /* it is being asked for since then; 0: it is not */
    struct native native;     /* its own commands in place of scripts */
    bool renews_by_tag;       /* of many, only those that have one hash tag: the server keeps others apart */
    bool renews_many;         /* the server is new enough, and has not refused it */
    bool shared;              /* the server sees one connection where others are as well: `id` is 0 */
    bool killed;              /* the connection before has been ended on the server */
    bool unsettled;           /* commands of an ended connection may still run */
    bool spells;              /* scripts are sent whole, as they are not there */
    bool lacks_evalsha;       /* the server has no such command, or not for this user */
    struct clock_reading clock; /* of a server that does not let scripts read it: the newest; 0: none yet */
    int64_t asked_clock_at;
    struct info_product product; /* what the server is, as far as it says */
    enum evlock_persistence persistence;
    bool reading;          /* it is being asked for */
    bool hides_clock;      /* it was refused */
    uint32_t missing;      /* what this connection's server lacks, as far as it is known: enum evlock_missing */
    uint32_t missed;       /* the same of the connections before, until this one serves */
    bool entered;          /* credentials were taken, or none were needed */
    bool again;            /* CONNECTING: refused credentials were asked for once more */
    bool owes;             /* it has not logged in yet with the newest that were given */
    char load_error[128];  /* why the scripts could not be loaded, or "" */
    char clock_error[128]; /* why a script could not read the clock, or "" */
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
    return login->hides_clock && !login->clock.server;
}

/* A script could not read the server's clock, for this reason: asks for it. False: there is none to be had. */
bool evl_login_bring_clock(struct login *login, const char *why);

/* The server's clock, which is known. One that is not quite new is asked for anew, ahead of what is sent now. */
int64_t evl_login_brought_clock(struct login *login, int64_t now);

/* The server's clock as a command of this form is to bring it; 0: it brings none, or the server's scripts read it, or
 * it is not known yet. */
static inline int64_t evl_login_clock(struct login *login, const struct form *form, int64_t now) {
    return login->clock.server && evl_form_has(form, ARG_CLOCK) ? evl_login_brought_clock(login, now) : 0;
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
