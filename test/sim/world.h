/*
 * The world of one schedule: true time, chance, the agenda, the nodes, the network between, and the processes. It owns
 * all of them. Everything that happens in it follows from its seed.
 */
#ifndef EVLOCK_SIM_WORLD_H
#define EVLOCK_SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "agenda.h"
#include "scenario.h"
#include "server.h"

#define MS INT64_C(1000)
#define SECOND (1000 * MS)

enum { NODES_MAX = 5, KEYS_FEW = 2, KEYS_MAX = 256, REPLICAS_MAX = 2, FAULTS_MAX = 48, VIOLATION_MAX = 400 };

struct moves;
struct node;
struct process;
struct token;
struct wire;

TAILQ_HEAD(processes, process);
TAILQ_HEAD(wires, wire);

/* What was done, over any number of schedules. */
struct tally {
    uint64_t forks, inside; /* real ones; how many of them in callbacks */
    uint64_t schedules, violations, calls, grants, handed, passed, losses, commands, overlaps;
    uint64_t batches, batched, full_batches; /* of renewals; how many in all of them; of a hundred each */
    uint64_t faults[FAULTS_MAX];
};

/* What a schedule is like; drawn once. */
struct plan {
    int64_t unit;      /* the ttls are about so long, and all else is in proportion */
    int64_t length;    /* until the faults end */
    int64_t latency;   /* of the network, at most, where nothing is wrong */
    int64_t fault_gap; /* between two faults, on average; NEVER: there are none */
    int64_t max_ttl;
    int64_t closed;    /* failover_wait_ms, or 0: clients wait for nothing */
    int64_t drift_ppm; /* of each clock, at most */
    unsigned nodes, processes, keys, handles;
    unsigned servers;   /* the nodes, or the members of a cluster, which is one node for its clients */
    unsigned bad_bytes; /* in a thousand: how much of what is sent meets a fault of its own */
    bool durable;       /* nodes keep their data */
    bool cluster;       /* two masters with a replica each, between which slots move */
    bool twins;         /* clients are often given one server by two addresses */
    bool distrust;      /* of nodes' uptimes: they boot with a wrong time of day, and are set right */
    bool shared;        /* most handles of a process have the same options */
    bool bursts;        /* a process calls with many handles at once */
    bool crowd;         /* and has very many */
    bool fences, breaks, own_tokens, eternal, errors;
    bool outlasts;    /* what is renewed at the end of the faults is held on, and must last */
    bool late_grants; /* what listeners hear is often held up for about as long as a lease */
    bool no_kill;     /* nodes do not let their clients end connections */
    bool lag;         /* user code takes time */
    bool patient;     /* clients wait for answers for longer than some ttls */
    bool extends;     /* holders often extend */
    bool replicas;    /* nodes have some, more or fewer, and handles want them to know of grants */
    bool lagging;     /* these are behind, and take over */
    bool upgraded;    /* nodes have commands that their users have no right to */
    enum sim_make make;
};

/* See forks.h. */
struct forks {
    uint64_t chance;
    int64_t at;
    bool inside;         /* the next is to be in a callback */
    unsigned generation; /* 0: this is nobody's child */
    bool over;           /* a child that does not live on */
    bool leaves_some;    /* of its parent's memory, which nobody can give back there */
};

/* See promotion.h. */
struct promotion {
    struct event due, parting;
    struct sim_server *copy;    /* of what is going to be promoted; or NULL */
    struct node *former;        /* serves on, beside the node in whose place it was; or NULL */
    struct sim_server *process; /* one that has been the node's server and may be so again; or NULL */
};

struct world {
    const struct scenario *scenario;
    uint64_t seed, chance;
    int64_t now;
    struct plan plan;
    struct agenda agenda;
    struct event fault; /* the next */
    struct forks forks;
    struct promotion promotion;
    struct moves *moves; /* see moves.h; NULL: there is no cluster */
    struct node *nodes[NODES_MAX];
    struct processes processes;
    struct wires wires;
    struct judge *judge;
    struct tally *tally;
    struct process *running; /* whose code is on the stack; or NULL */
    struct wire *feeding;    /* whose bytes a server is working on */
    int64_t feeding_sent;    /* since when these are on their way */
    bool calm;               /* the faults are over */
    int64_t calm_at;         /* when every process has come out of what it was doing then */
    int64_t newcomers_at;    /* no client begins before: it could not know what those before it know */
    bool noting, tracing;    /* what happens is told, to the hash or also to the reader */
    uint64_t hash;           /* of all that happened */
    unsigned next_process, next_wire, next_client, next_foreign;
    char violation[VIOLATION_MAX];
};

enum telling { TELL_NOTHING, TELL_HASH, TELL_ALL };

/* Runs one schedule to its end, with forks or without; false: something was violated, and `ret->violation` says what.
 */
struct outcome {
    uint64_t hash; /* TELL_NOTHING: of little */
    char violation[VIOLATION_MAX];
};
bool world_run(const struct scenario *scenario, uint64_t seed, bool forks, enum telling telling, struct tally *tally,
               struct outcome *ret);

/* --- Chance ------------------------------------------------------------------------------------------------------- */

uint64_t draw(struct world *world);
/* Both ends included; evenly, and evenly in magnitude. */
int64_t draw_between(struct world *world, int64_t least, int64_t most);
int64_t draw_magnitude(struct world *world, int64_t least, int64_t most);
bool draw_chance(struct world *world, unsigned percent);

/* --- What happened ------------------------------------------------------------------------------------------------ */

/* A line of the trace; also what makes up the hash. `who` is NULL or a process. */
void note(struct world *world, const struct process *who, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same without a line, where there is much of it. */
void note_number(struct world *world, uint64_t number);
/* An invariant does not hold; the first is told. */
void violated(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
