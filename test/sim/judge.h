/*
 * The judge: keeps the books on what evlock was asked, what it told, who believes to hold what, and what the servers
 * did, and compares them at every step. It changes nothing of the world. Each invariant is a function in judge.c.
 */
#ifndef EVLOCK_SIM_JUDGE_H
#define EVLOCK_SIM_JUDGE_H

#include <evlock/evlock.h>

#include "process.h"
#include "server.h"
#include "world.h"

struct judge;
struct node;

enum promise_kind { P_ACQUIRE, P_ADOPT, P_RELEASE, P_EXTEND, P_QUERY, P_BREAK, P_RUN, P_CLOSE, P_HOLD };

/* Of queries; of a queue, the last two. */

/* What a handle is doing, as far as its user has been told. */
enum doing { IDLE, ACQUIRING, HOLDING, LOST, RELEASING };

/* A user's handle, kept in the books beyond its life. */
struct handle {
    TAILQ_ENTRY(handle) link;  /* the judge's */
    TAILQ_ENTRY(handle) local; /* the actor's */
    TAILQ_ENTRY(handle) holding;
    struct process *process;
    evlock *lock; /* NULL: freed, or a run's that nobody asked for */
    unsigned number, client, key;
    enum doing doing;
    struct promise *pending; /* ACQUIRING */
    struct token *token;     /* HOLDING, LOST, RELEASING */
    int64_t deadline;        /* by the process's clock: what it has last been seen to believe */
    int64_t ttl, max_hold;   /* max_hold: NEVER, if there is none */
    int64_t lead;            /* how early its losses are to be told; 0: as by default */
    int64_t risk;            /* what is left when it is told at risk */
    int64_t wait;            /* how long its acquires may take; NEVER: as long as they like */
    int64_t since;           /* HOLDING: when it was told so */
    int64_t patience;        /* how long one attempt may take, among several nodes */
    int64_t interval;        /* between renewals */
    int64_t length;          /* HOLDING: for how long, when it was told so */
    int64_t refused_at;      /* when a renewal was last refused, and no other has come since; 0: none */
    int64_t asked_at;        /* when a server last ran one that may not have been answered; 0: none */
    int64_t back_at;         /* since when there is another connection for what was lost with one; 0: nothing was */
    unsigned refused_over, asked_over, back_over; /* which wires */
    int64_t warned;                               /* when it was last told at risk; 0: not since the grant */
    bool renews, extended;
    uint64_t fence_before;    /* the greatest fence that had been told when it asked */
    bool queued;              /* it waits in line */
    int64_t gave_up;          /* when its last acquire ended */
    int64_t gave_up_alone;    /* and one in which it did not wait with others */
    int64_t gave_up_group[2]; /* and one in which it waited with those who want a fence, or none */
    bool owed;                /* a loss is yet to be told, though it acquires anew */
    bool overdue;             /* the deadline had passed when the library's code began to run */
    bool runs;                /* a run is under way on it */
    bool made;                /* by that run: its actor does nothing else with it */
    bool lapses;              /* its client closes, and may end the run at any time */
    struct promise *hold;     /* it is to be held for ever; or NULL */
    bool renews_else;         /* without a hold */
    bool served;              /* since the faults are over */
    bool finishing;
    unsigned group;     /* it waits, and passes on, with those of its client, key and options: their number; 0: alone */
    int64_t max_passes; /* so many times in a row, */
    int64_t max_pass;   /* and for so long */
    unsigned replicas;  /* that must know of its grants */
    unsigned extends;   /* extensions that are not told yet */
    bool shortened;     /* one was asked for since the grant that may make the ttl shorter */
    unsigned own;       /* how often its own token has been given away */
    char used[64];      /* its own token, since it was last used by this handle; "": another has it, or there is none */
};

/* A callback that evlock owes. */
struct promise {
    TAILQ_ENTRY(promise) link;
    struct process *process;
    struct handle *handle; /* NULL: of a close */
    enum promise_kind kind;
    unsigned number;
    int64_t asked; /* true time */
    int64_t limit; /* how long it may take, while its process runs; NEVER: as long as it likes */
    int64_t kept;  /* of an extension without others before it: until when the handle believed; else 0 */
    bool in_line;  /* its client's commands wait for each other; the process may have another client when it ends */
    bool made, told;
    bool fenced;
    bool once;            /* an acquire that makes one attempt */
    bool grouped;         /* one that waits with others */
    bool ended;           /* a hold that its user has ended */
    int reported;         /* what a hold said last */
    bool denied_in_time;  /* the attempt waits for that */
    unsigned denied_over; /* which wire */
    int64_t denied_at;    /* when a node last said that another has the lock; 0: none did */
};

/* One client's part in a token. */
struct owner {
    unsigned client;
    int64_t finished;         /* since when it has no business with it; NEVER */
    int64_t ttl;              /* the shortest of its handles that have held by it; 0: none that ends */
    bool handed;              /* it has handed it over */
    unsigned late[NODES_MAX]; /* what was sent after that to make it live longer */
};

/* A lease that goes from handle to handle; see passes.h. */
struct relay {
    const struct handle *holder; /* who was told last that it holds by it; NULL: nobody was */
    int64_t first;               /* when the first was told, by its process's clock */
    int64_t since_asked;         /* when the first asked for it */
    int64_t passes;              /* since then */
    int64_t given_up, left;      /* when its holder gave it up, and what was left then; 0: it has not */
    int64_t gone_at;             /* the same in true time */
    int64_t passed_at;           /* when it was given up that its holder has; 0: it has it from a server */
    bool awaited;                /* somebody waited for it then who may have it */
    bool tied;                   /* its user knows its token, or has extended it */
    int status;                  /* of its holder's release */
};

struct token {
    struct token *next; /* in its place of the table */
    struct handle *holder;
    struct owner owners[4];
    unsigned owner_count;
    int64_t set_at[NODES_MAX]; /* when a node last took it */
    unsigned promised;         /* nodes, by bit, that lost it with their data */
    unsigned deleted;          /* how often an owner's command has deleted it */
    int64_t added;             /* the sum of what it was extended by */
    struct relay relay;
    bool queued;   /* it was last held by a handle that queues */
    bool broken;   /* by force */
    bool own;      /* the caller's, to be used again */
    bool strayed;  /* what a lost connection was to prolong it by may have come after it was made up for */
    bool late;     /* set, or let wait, by a connection that had ended a ttl before: its undo was over by then */
    bool loose;    /* handed out, and adopted by nobody yet */
    bool handed;   /* handed out by one who may have asked a node for it that was away: nobody else can know */
    bool spared;   /* nobody has it, and nobody is to delete it: handed over, or asked for again by who lost it */
    char name[16]; /* of its holder, as it was seen on a server */
    size_t len;    /* without that */
    char bytes[128];
};

struct judge *judge_new(struct world *world);
void judge_free(struct judge *judge);

/* --- Asked and told ----------------------------------------------------------------------------------------------- */

/* A call is about to be made; what it returned. */
struct promise *judge_asks(struct judge *judge, struct process *process, struct handle *handle, enum promise_kind kind);
void judge_made(struct promise *promise, int status);
/* Its callback came. `lock`: what it was given; not for runs and closes. */
void judge_told(struct promise *promise, const evlock *lock, int status);
/* A query was accepted; what it is told: a number, or `text` of a holder. */
void judge_question(struct promise *promise, unsigned what);
void judge_answer(struct promise *promise, int status, const evlock_answer *answer);
/* Some callback other than a loss or a risk is being called. */
void judge_callback(struct judge *judge, struct process *process);
/* Code of the library is about to run from the loop; it has run. */
void judge_enter(struct judge *judge, struct process *process);
void judge_leave(struct judge *judge, struct process *process);

/* --- Handles ------------------------------------------------------------------------------------------------------ */

struct handle *judge_handle(struct judge *judge, struct process *process, unsigned key);
struct handle *judge_find(struct judge *judge, const evlock *lock);
/* Its user learns that it holds; `fenced`: and has a fence. */
void judge_holds(struct handle *handle, bool fenced);
/* Its user gives it up, or hands it out. */
void judge_ends(struct handle *handle, enum doing next);
/* Its acquire was accepted; its release was told. */
void judge_acquires(struct handle *handle, struct promise *promise);
/* It is handed out; or who lost it asks for it once more. */
void judge_hands(struct handle *handle);
void judge_asks_again(struct handle *handle, struct promise *promise);
void judge_released(struct promise *promise, int status);
void judge_lost(struct handle *handle, int reason);
/* A hold was accepted; reports a change; and is ended by its user, who is yet to be told so. */
void judge_keeps(struct handle *handle, struct promise *promise);
void judge_reported(struct promise *promise, const evlock *lock, int status);
void judge_keeps_no_more(struct handle *handle);
/* The client ends or has ended; its handles hold nothing any more. unclean: something of it may be left. */
void judge_client_ends(struct judge *judge, struct process *process, bool closes);
/* It closes, and the runs that go on may end before their bodies. */
void judge_lets_lapse(struct judge *judge, struct process *process);
void judge_unclean(struct judge *judge, unsigned client);
void judge_closed(struct judge *judge, const struct process *process, unsigned client);

/* In a forked child: the process is its parent's. Nothing that was asked for is told any more; what was held is the
 * parent's for as long as that believes. */
void judge_forsakes(struct judge *judge, struct process *process);

/* --- Tokens ------------------------------------------------------------------------------------------------------- */

/* A token comes into use by the running process's client; `revive` if it may be used again. */
struct token *judge_token(struct judge *judge, const char *bytes, size_t len, unsigned client);
/* The token, if it is known; whether it is the client's. */
struct token *judge_known(struct judge *judge, const char *bytes, size_t len);
bool judge_owns(struct token *token, unsigned client);
/* One of the caller's own is asked for, once more or for the first time. */
void judge_reuses(struct judge *judge, const char *own, unsigned client);
/* Looks at each handle that the wire's client holds. */
void judge_each_holder(struct judge *judge, const struct wire *wire,
                       void (*look)(struct handle *handle, const struct wire *wire));
/* Who of the client acquires the key; NULL: nobody, or more than one, or one did so a moment ago. */
struct handle *judge_acquiring(const struct judge *judge, unsigned client, unsigned key);
/* Looks at each handle of the process's client; or at all, if the process is NULL. */
void judge_each_handle(const struct judge *judge, const struct process *process,
                       void (*look)(struct handle *handle, void *arg), void *arg);
/* How many acquires of the client are pending, or were so a moment ago. */
unsigned judge_pending(const struct judge *judge, unsigned client, unsigned key);
/* How many wait in line, of all; at which places, by bit from 1, the client does is added to `places`. */
unsigned judge_waiting(const struct judge *judge, unsigned key, unsigned client, uint64_t *places);
/* A break was asked for. Longer than this no ttl of the key is. */
void judge_breaks(struct judge *judge, unsigned key);
void judge_ttl(struct judge *judge, unsigned key, int64_t ttl);
const char *judge_key(unsigned key);

/* --- The servers -------------------------------------------------------------------------------------------------- */

void judge_watch(void *node, sim_session *session, int argc, const char *const *argv, const size_t *lens);
void judge_refused(void *node, sim_session *session, int argc, const char *const *argv, const size_t *lens);
/* Whether the command that runs was lost with its connection, and is beyond what evlock sees to for a lease of ttl. */
bool judge_comes_late(const struct judge *judge, int64_t ttl);
/* A client of another kind has set the lock, and believes in it for its ttl; it does not any more; whether it does. */
void judge_foreign(struct judge *judge, unsigned key, const char *bytes, size_t len, int64_t ttl);
void judge_foreign_ends(struct judge *judge, unsigned key);
bool judge_foreign_holds(const struct judge *judge, unsigned key);
/* A node is about to lose what it has; what it lost may come back. */
void judge_forgets(struct judge *judge, struct node *node);
void judge_resurrects(struct judge *judge, struct node *node);
/* A key has been carried from one server of a cluster to the other; all have, to who takes its place. */
void judge_carries(struct judge *judge, const struct node *from, struct node *to, const char *key, size_t len);
void judge_succeeds(struct judge *judge, const struct node *before, struct node *after);
bool judge_came_back(const struct judge *judge, const struct node *node);

/* --- Looks -------------------------------------------------------------------------------------------------------- */

/* At every step. */
void judge_look(struct judge *judge);
/* After the faults: so much later nothing is left on the servers that nobody holds. */
int64_t judge_patience(const struct judge *judge);
/* When nothing is wrong any more: also nodes that restarted count again. */
int64_t judge_recovered(const struct judge *judge);
void judge_strays(struct judge *judge);
void judge_served(struct judge *judge);
/* At the end. */
void judge_empty(struct judge *judge);
void judge_leaks(struct world *world);

/* Makes evlock's allocations count. Once, before anything else. */
void judge_memory(void);

#endif
