/*
 * A Sentinel: asked who is the master of a name, and listened to for when that changes. It owns two connections, since
 * one that listens can ask nothing. It reports what this Sentinel says, and judges nothing: whom to believe is its
 * owner's business.
 */
#ifndef EVL_SENTINEL_H
#define EVL_SENTINEL_H

#include "login.h"

struct sentinel;

/* What a Sentinel said. The words and the host are valid during the call. */
struct sentinel_word {
    struct trouble trouble; /* EVLOCK_OK; EVLOCK_EMASTER: it does not know the name; or why it said nothing */
    int64_t epoch;          /* of the failover that made it the master */
    const char *host;
    int64_t port;
};

/* What the owner of a Sentinel does with it. */
struct sentinel_hooks {
    void (*said)(struct sentinel *sentinel, const struct sentinel_word *word);
};

struct sentinel {
    struct url url;
    struct login asks;
    struct login hears;
    const struct sentinel_hooks *hooks;
    void *owner;
    int status;          /* of what it said last; EVLOCK_OK, before it said anything */
    const char *master;  /* the name */
    const char *about;   /* the question for all that is known of it, */
    const char *address; /* and that for its address; its owner's */
    unsigned unanswered; /* questions */
    bool stale;          /* another answer is wanted than to the present questions */
    int64_t epoch;       /* as the first of these answers says; -1: it does not */
    bool named;          /* the second is: */
    int64_t port;
    char host[256];
};

/* Sets up a Sentinel of zeroed memory, with its `url` in place; what it is given must stay. */
void evl_sentinel_init(struct sentinel *sentinel, struct connections *all, unsigned index,
                       struct credentials *credentials, const struct sentinel_hooks *hooks);

/* What is asked of each about the master of this name, as commands in blocks for evl_free(). False: no memory. */
bool evl_sentinel_write_questions(const char *master, char **ret_about, char **ret_address);

/* Begins to connect, and to ask. */
void evl_sentinel_start(struct sentinel *sentinel);

/* What it said may be out of date: asks anew, as soon as can be. */
void evl_sentinel_ask(struct sentinel *sentinel);

#endif
