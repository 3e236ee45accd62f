/*
 * The master of a name, as Sentinels say: which server it is now. It owns the Sentinels and what they said, decides
 * whom to believe, and has the node moved to where the master is. It knows nothing of locks, and looks at no server
 * itself.
 */
#ifndef EVL_MASTER_H
#define EVL_MASTER_H

#include "node.h"
#include "sentinel.h"

struct master {
    struct node *node; /* which is moved; its owner sets it */
    struct sentinel *sentinels;
    unsigned count;
    struct credentials credentials; /* for the Sentinels */
    struct url pattern;             /* how the master is spoken to, and its database, without a host */
    char *name;
    char *about; /* the questions */
    char *address;
    bool known;       /* there was an answer: */
    int64_t epoch;    /* the highest that was heard of */
    int64_t asked_at; /* for another answer; 0: never */
    bool alone;       /* no Sentinel answers, which was said */
    bool warned;      /* of a master that takes writes alone */
};

/* Sets up a master of zeroed memory, of a URL of Sentinels, from which it takes the name. EVLOCK_OK, EVLOCK_ENOMEM, or
 * EVLOCK_EINVAL of the options; evl_master_free() is to be called in any case. */
struct trouble evl_master_make(struct master *master, struct connections *all, struct url *url,
                               const evlock_client_options *options);

/* Begins to connect to the Sentinels. The node has been started, without a place. */
void evl_master_start(struct master *master);

/* The node's connection changed its state: a master that cannot be had may be one no more. */
void evl_master_node_changed(struct master *master);

/* The node is logged in: warns, once, of a master that goes on alone. */
void evl_master_node_returned(struct master *master);

/* Nothing is sent any more. */
void evl_master_wipe(struct master *master);

/* Frees what it owns, but for its own memory. The connections have been stopped, or were never started. */
void evl_master_free(struct master *master);

#endif
